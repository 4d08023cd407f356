//! Commands of the group geo.

// Written by `cargo xtask codegen` from the command table. Not to be edited.
#![allow(unused_imports, reason = "each group needs some of them")]
#![allow(clippy::type_complexity, clippy::too_many_arguments, reason = "replies and requests are what they are")]

use super::*;
use crate::commands::{Pairs, ToArg, ToDouble, ToInteger, Typed, builder};
use crate::{Reply, ToArgs, cmd};
use bytes::Bytes;
use std::collections::HashMap;

/// Add places to a geospatial index.
///
/// ```text
/// GEOADD key [NX | XX] [CH] longitude latitude member [longitude latitude member ...]
/// ```
///
/// Since 3.2.0. Takes O(log(N)). ACL: @write @geo @slow.
/// See [Redis](https://redis.io/docs/latest/commands/geoadd/) and [Valkey](https://valkey.io/commands/geoadd/).
pub fn geoadd(key: impl ToArg, triples: impl ToArgs) -> Geoadd {
    let mut request = cmd("GEOADD");
    key.write_args(&mut request);
    let place = request.place();
    triples.write_args(&mut request);
    Geoadd::new(request, place)
}

builder! {
    /// A request of [`geoadd()`] and its options.
    Geoadd, i64
}

impl<T, S> Geoadd<T, S> {
    /// `NX`.
    pub fn nx(self) -> Self {
        self.with(|request| {
            request.push(b"NX");
        })
    }
    /// `XX`.
    pub fn xx(self) -> Self {
        self.with(|request| {
            request.push(b"XX");
        })
    }
    /// `CH`, since 6.2.0.
    pub fn ch(self) -> Self {
        self.with(|request| {
            request.push(b"CH");
        })
    }
}

/// Tell the distance between two places.
///
/// ```text
/// GEODIST key member1 member2 [M | KM | FT | MI]
/// ```
///
/// Since 3.2.0. Takes O(log(N)). ACL: @read @geo @slow.
/// See [Redis](https://redis.io/docs/latest/commands/geodist/) and [Valkey](https://valkey.io/commands/geodist/).
pub fn geodist(key: impl ToArg, member1: impl ToArg, member2: impl ToArg) -> Geodist {
    let mut request = cmd("GEODIST");
    key.write_args(&mut request);
    member1.write_args(&mut request);
    member2.write_args(&mut request);
    let place = request.place();
    Geodist::new(request, place)
}

builder! {
    /// A request of [`geodist()`] and its options.
    Geodist, Option<f64>
}

impl<T, S> Geodist<T, S> {
    /// `M`.
    pub fn m(self) -> Self {
        self.with(|request| {
            request.push(b"M");
        })
    }
    /// `KM`.
    pub fn km(self) -> Self {
        self.with(|request| {
            request.push(b"KM");
        })
    }
    /// `FT`.
    pub fn ft(self) -> Self {
        self.with(|request| {
            request.push(b"FT");
        })
    }
    /// `MI`.
    pub fn mi(self) -> Self {
        self.with(|request| {
            request.push(b"MI");
        })
    }
}

/// Tell the geohashes of places.
///
/// ```text
/// GEOHASH key member [member ...]
/// ```
///
/// Since 3.2.0. Takes O(log(N)). ACL: @read @geo @slow.
/// See [Redis](https://redis.io/docs/latest/commands/geohash/) and [Valkey](https://valkey.io/commands/geohash/).
pub fn geohash(key: impl ToArg, members: impl ToArgs) -> Typed<Vec<Option<Bytes>>> {
    let mut request = cmd("GEOHASH");
    key.write_args(&mut request);
    members.write_args(&mut request);
    Typed::new(request)
}

/// Tell the coordinates of places.
///
/// ```text
/// GEOPOS key member [member ...]
/// ```
///
/// Since 3.2.0. Takes O(N). ACL: @read @geo @slow.
/// See [Redis](https://redis.io/docs/latest/commands/geopos/) and [Valkey](https://valkey.io/commands/geopos/).
pub fn geopos(key: impl ToArg, members: impl ToArgs) -> Typed<Vec<Option<(f64, f64)>>> {
    let mut request = cmd("GEOPOS");
    key.write_args(&mut request);
    members.write_args(&mut request);
    Typed::new(request)
}

/// Find, and perhaps store, the places around a point.
///
/// ```text
/// GEORADIUS key longitude latitude radius <M | KM | FT | MI> [WITHCOORD] [WITHDIST] [WITHHASH] [COUNT count [ANY]] [ASC | DESC] [STORE key] [STOREDIST key]
/// ```
///
/// Since 3.2.0. Deprecated since 6.2.0: use GEOSEARCH or GEOSEARCHSTORE with FROMLONLAT and BYRADIUS. Takes O(N+log(M)). ACL: @write @geo @slow.
/// See [Redis](https://redis.io/docs/latest/commands/georadius/) and [Valkey](https://valkey.io/commands/georadius/).
pub fn georadius(
    key: impl ToArg,
    longitude: impl ToDouble,
    latitude: impl ToDouble,
    radius: impl ToDouble,
    unit: Unit,
) -> Georadius {
    let mut request = cmd("GEORADIUS");
    key.write_args(&mut request);
    longitude.write_args(&mut request);
    latitude.write_args(&mut request);
    radius.write_args(&mut request);
    unit.write_args(&mut request);
    let place = request.place();
    Georadius::new(request, place)
}

builder! {
    /// A request of [`georadius()`] and its options.
    Georadius, Vec<Bytes>
}

impl<T, S> Georadius<T, S> {
    /// `COUNT count`.
    pub fn count(self, count: impl ToInteger) -> Self {
        self.with(|request| {
            request.push(b"COUNT");
            count.write_args(request);
        })
    }
    /// `ANY`, since 6.2.0.
    pub fn any(self) -> Self {
        self.with(|request| {
            request.push(b"ANY");
        })
    }
    /// `ASC`.
    pub fn asc(self) -> Self {
        self.with(|request| {
            request.push(b"ASC");
        })
    }
    /// `DESC`.
    pub fn desc(self) -> Self {
        self.with(|request| {
            request.push(b"DESC");
        })
    }
}

impl<S> Georadius<Vec<Bytes>, S> {
    /// `WITHCOORD`.
    pub fn withcoord(self) -> Georadius<Vec<Reply>, S> {
        self.with(|request| {
            request.push(b"WITHCOORD");
        })
        .retyped()
    }
    /// `WITHDIST`.
    pub fn withdist(self) -> Georadius<Vec<Reply>, S> {
        self.with(|request| {
            request.push(b"WITHDIST");
        })
        .retyped()
    }
    /// `WITHHASH`.
    pub fn withhash(self) -> Georadius<Vec<Reply>, S> {
        self.with(|request| {
            request.push(b"WITHHASH");
        })
        .retyped()
    }
    /// `STORE key`.
    pub fn store(self, key: impl ToArg) -> Georadius<i64, S> {
        self.with(|request| {
            request.push(b"STORE");
            key.write_args(request);
        })
        .retyped()
    }
    /// `STOREDIST key`.
    pub fn storedist(self, key: impl ToArg) -> Georadius<i64, S> {
        self.with(|request| {
            request.push(b"STOREDIST");
            key.write_args(request);
        })
        .retyped()
    }
}

impl<S> Georadius<Vec<Reply>, S> {
    /// `WITHCOORD`.
    pub fn withcoord(self) -> Self {
        self.with(|request| {
            request.push(b"WITHCOORD");
        })
    }
    /// `WITHDIST`.
    pub fn withdist(self) -> Self {
        self.with(|request| {
            request.push(b"WITHDIST");
        })
    }
    /// `WITHHASH`.
    pub fn withhash(self) -> Self {
        self.with(|request| {
            request.push(b"WITHHASH");
        })
    }
    /// `STORE key`.
    pub fn store(self, key: impl ToArg) -> Georadius<i64, S> {
        self.with(|request| {
            request.push(b"STORE");
            key.write_args(request);
        })
        .retyped()
    }
    /// `STOREDIST key`.
    pub fn storedist(self, key: impl ToArg) -> Georadius<i64, S> {
        self.with(|request| {
            request.push(b"STOREDIST");
            key.write_args(request);
        })
        .retyped()
    }
}

impl<S> Georadius<i64, S> {
    /// `WITHCOORD`.
    pub fn withcoord(self) -> Self {
        self.with(|request| {
            request.push(b"WITHCOORD");
        })
    }
    /// `WITHDIST`.
    pub fn withdist(self) -> Self {
        self.with(|request| {
            request.push(b"WITHDIST");
        })
    }
    /// `WITHHASH`.
    pub fn withhash(self) -> Self {
        self.with(|request| {
            request.push(b"WITHHASH");
        })
    }
    /// `STORE key`.
    pub fn store(self, key: impl ToArg) -> Self {
        self.with(|request| {
            request.push(b"STORE");
            key.write_args(request);
        })
    }
    /// `STOREDIST key`.
    pub fn storedist(self, key: impl ToArg) -> Self {
        self.with(|request| {
            request.push(b"STOREDIST");
            key.write_args(request);
        })
    }
}

/// Find the places around a point.
///
/// ```text
/// GEORADIUS_RO key longitude latitude radius <M | KM | FT | MI> [WITHCOORD] [WITHDIST] [WITHHASH] [COUNT count [ANY]] [ASC | DESC]
/// ```
///
/// Since 3.2.10. Deprecated since 6.2.0: use GEOSEARCH with FROMLONLAT and BYRADIUS. Takes O(N+log(M)). ACL: @read @geo @slow.
/// See [Redis](https://redis.io/docs/latest/commands/georadius_ro/) and [Valkey](https://valkey.io/commands/georadius_ro/).
pub fn georadius_ro(
    key: impl ToArg,
    longitude: impl ToDouble,
    latitude: impl ToDouble,
    radius: impl ToDouble,
    unit: Unit,
) -> GeoradiusRo {
    let mut request = cmd("GEORADIUS_RO");
    key.write_args(&mut request);
    longitude.write_args(&mut request);
    latitude.write_args(&mut request);
    radius.write_args(&mut request);
    unit.write_args(&mut request);
    let place = request.place();
    GeoradiusRo::new(request, place)
}

builder! {
    /// A request of [`georadius_ro()`] and its options.
    GeoradiusRo, Vec<Bytes>
}

impl<T, S> GeoradiusRo<T, S> {
    /// `COUNT count`.
    pub fn count(self, count: impl ToInteger) -> Self {
        self.with(|request| {
            request.push(b"COUNT");
            count.write_args(request);
        })
    }
    /// `ANY`, since 6.2.0.
    pub fn any(self) -> Self {
        self.with(|request| {
            request.push(b"ANY");
        })
    }
    /// `ASC`.
    pub fn asc(self) -> Self {
        self.with(|request| {
            request.push(b"ASC");
        })
    }
    /// `DESC`.
    pub fn desc(self) -> Self {
        self.with(|request| {
            request.push(b"DESC");
        })
    }
}

impl<S> GeoradiusRo<Vec<Bytes>, S> {
    /// `WITHCOORD`.
    pub fn withcoord(self) -> GeoradiusRo<Vec<Reply>, S> {
        self.with(|request| {
            request.push(b"WITHCOORD");
        })
        .retyped()
    }
    /// `WITHDIST`.
    pub fn withdist(self) -> GeoradiusRo<Vec<Reply>, S> {
        self.with(|request| {
            request.push(b"WITHDIST");
        })
        .retyped()
    }
    /// `WITHHASH`.
    pub fn withhash(self) -> GeoradiusRo<Vec<Reply>, S> {
        self.with(|request| {
            request.push(b"WITHHASH");
        })
        .retyped()
    }
}

impl<S> GeoradiusRo<Vec<Reply>, S> {
    /// `WITHCOORD`.
    pub fn withcoord(self) -> Self {
        self.with(|request| {
            request.push(b"WITHCOORD");
        })
    }
    /// `WITHDIST`.
    pub fn withdist(self) -> Self {
        self.with(|request| {
            request.push(b"WITHDIST");
        })
    }
    /// `WITHHASH`.
    pub fn withhash(self) -> Self {
        self.with(|request| {
            request.push(b"WITHHASH");
        })
    }
}

/// Find, and perhaps store, the places around a place.
///
/// ```text
/// GEORADIUSBYMEMBER key member radius <M | KM | FT | MI> [WITHCOORD] [WITHDIST] [WITHHASH] [COUNT count [ANY]] [ASC | DESC] [STORE key] [STOREDIST key]
/// ```
///
/// Since 3.2.0. Deprecated since 6.2.0: use GEOSEARCH or GEOSEARCHSTORE with FROMMEMBER and BYRADIUS. Takes O(N+log(M)). ACL: @write @geo @slow.
/// See [Redis](https://redis.io/docs/latest/commands/georadiusbymember/) and [Valkey](https://valkey.io/commands/georadiusbymember/).
pub fn georadiusbymember(key: impl ToArg, member: impl ToArg, radius: impl ToDouble, unit: Unit) -> Georadiusbymember {
    let mut request = cmd("GEORADIUSBYMEMBER");
    key.write_args(&mut request);
    member.write_args(&mut request);
    radius.write_args(&mut request);
    unit.write_args(&mut request);
    let place = request.place();
    Georadiusbymember::new(request, place)
}

builder! {
    /// A request of [`georadiusbymember()`] and its options.
    Georadiusbymember, Vec<Bytes>
}

impl<T, S> Georadiusbymember<T, S> {
    /// `COUNT count`.
    pub fn count(self, count: impl ToInteger) -> Self {
        self.with(|request| {
            request.push(b"COUNT");
            count.write_args(request);
        })
    }
    /// `ANY`.
    pub fn any(self) -> Self {
        self.with(|request| {
            request.push(b"ANY");
        })
    }
    /// `ASC`.
    pub fn asc(self) -> Self {
        self.with(|request| {
            request.push(b"ASC");
        })
    }
    /// `DESC`.
    pub fn desc(self) -> Self {
        self.with(|request| {
            request.push(b"DESC");
        })
    }
}

impl<S> Georadiusbymember<Vec<Bytes>, S> {
    /// `WITHCOORD`.
    pub fn withcoord(self) -> Georadiusbymember<Vec<Reply>, S> {
        self.with(|request| {
            request.push(b"WITHCOORD");
        })
        .retyped()
    }
    /// `WITHDIST`.
    pub fn withdist(self) -> Georadiusbymember<Vec<Reply>, S> {
        self.with(|request| {
            request.push(b"WITHDIST");
        })
        .retyped()
    }
    /// `WITHHASH`.
    pub fn withhash(self) -> Georadiusbymember<Vec<Reply>, S> {
        self.with(|request| {
            request.push(b"WITHHASH");
        })
        .retyped()
    }
    /// `STORE key`.
    pub fn store(self, key: impl ToArg) -> Georadiusbymember<i64, S> {
        self.with(|request| {
            request.push(b"STORE");
            key.write_args(request);
        })
        .retyped()
    }
    /// `STOREDIST key`.
    pub fn storedist(self, key: impl ToArg) -> Georadiusbymember<i64, S> {
        self.with(|request| {
            request.push(b"STOREDIST");
            key.write_args(request);
        })
        .retyped()
    }
}

impl<S> Georadiusbymember<Vec<Reply>, S> {
    /// `WITHCOORD`.
    pub fn withcoord(self) -> Self {
        self.with(|request| {
            request.push(b"WITHCOORD");
        })
    }
    /// `WITHDIST`.
    pub fn withdist(self) -> Self {
        self.with(|request| {
            request.push(b"WITHDIST");
        })
    }
    /// `WITHHASH`.
    pub fn withhash(self) -> Self {
        self.with(|request| {
            request.push(b"WITHHASH");
        })
    }
    /// `STORE key`.
    pub fn store(self, key: impl ToArg) -> Georadiusbymember<i64, S> {
        self.with(|request| {
            request.push(b"STORE");
            key.write_args(request);
        })
        .retyped()
    }
    /// `STOREDIST key`.
    pub fn storedist(self, key: impl ToArg) -> Georadiusbymember<i64, S> {
        self.with(|request| {
            request.push(b"STOREDIST");
            key.write_args(request);
        })
        .retyped()
    }
}

impl<S> Georadiusbymember<i64, S> {
    /// `WITHCOORD`.
    pub fn withcoord(self) -> Self {
        self.with(|request| {
            request.push(b"WITHCOORD");
        })
    }
    /// `WITHDIST`.
    pub fn withdist(self) -> Self {
        self.with(|request| {
            request.push(b"WITHDIST");
        })
    }
    /// `WITHHASH`.
    pub fn withhash(self) -> Self {
        self.with(|request| {
            request.push(b"WITHHASH");
        })
    }
    /// `STORE key`.
    pub fn store(self, key: impl ToArg) -> Self {
        self.with(|request| {
            request.push(b"STORE");
            key.write_args(request);
        })
    }
    /// `STOREDIST key`.
    pub fn storedist(self, key: impl ToArg) -> Self {
        self.with(|request| {
            request.push(b"STOREDIST");
            key.write_args(request);
        })
    }
}

/// Find the places around a place.
///
/// ```text
/// GEORADIUSBYMEMBER_RO key member radius <M | KM | FT | MI> [WITHCOORD] [WITHDIST] [WITHHASH] [COUNT count [ANY]] [ASC | DESC]
/// ```
///
/// Since 3.2.10. Deprecated since 6.2.0: use GEOSEARCH with FROMMEMBER and BYRADIUS. Takes O(N+log(M)). ACL: @read @geo @slow.
/// See [Redis](https://redis.io/docs/latest/commands/georadiusbymember_ro/) and [Valkey](https://valkey.io/commands/georadiusbymember_ro/).
pub fn georadiusbymember_ro(
    key: impl ToArg,
    member: impl ToArg,
    radius: impl ToDouble,
    unit: Unit,
) -> GeoradiusbymemberRo {
    let mut request = cmd("GEORADIUSBYMEMBER_RO");
    key.write_args(&mut request);
    member.write_args(&mut request);
    radius.write_args(&mut request);
    unit.write_args(&mut request);
    let place = request.place();
    GeoradiusbymemberRo::new(request, place)
}

builder! {
    /// A request of [`georadiusbymember_ro()`] and its options.
    GeoradiusbymemberRo, Vec<Bytes>
}

impl<T, S> GeoradiusbymemberRo<T, S> {
    /// `COUNT count`.
    pub fn count(self, count: impl ToInteger) -> Self {
        self.with(|request| {
            request.push(b"COUNT");
            count.write_args(request);
        })
    }
    /// `ANY`.
    pub fn any(self) -> Self {
        self.with(|request| {
            request.push(b"ANY");
        })
    }
    /// `ASC`.
    pub fn asc(self) -> Self {
        self.with(|request| {
            request.push(b"ASC");
        })
    }
    /// `DESC`.
    pub fn desc(self) -> Self {
        self.with(|request| {
            request.push(b"DESC");
        })
    }
}

impl<S> GeoradiusbymemberRo<Vec<Bytes>, S> {
    /// `WITHCOORD`.
    pub fn withcoord(self) -> GeoradiusbymemberRo<Vec<Reply>, S> {
        self.with(|request| {
            request.push(b"WITHCOORD");
        })
        .retyped()
    }
    /// `WITHDIST`.
    pub fn withdist(self) -> GeoradiusbymemberRo<Vec<Reply>, S> {
        self.with(|request| {
            request.push(b"WITHDIST");
        })
        .retyped()
    }
    /// `WITHHASH`.
    pub fn withhash(self) -> GeoradiusbymemberRo<Vec<Reply>, S> {
        self.with(|request| {
            request.push(b"WITHHASH");
        })
        .retyped()
    }
}

impl<S> GeoradiusbymemberRo<Vec<Reply>, S> {
    /// `WITHCOORD`.
    pub fn withcoord(self) -> Self {
        self.with(|request| {
            request.push(b"WITHCOORD");
        })
    }
    /// `WITHDIST`.
    pub fn withdist(self) -> Self {
        self.with(|request| {
            request.push(b"WITHDIST");
        })
    }
    /// `WITHHASH`.
    pub fn withhash(self) -> Self {
        self.with(|request| {
            request.push(b"WITHHASH");
        })
    }
}

/// Find the places within a circle or box.
///
/// ```text
/// GEOSEARCH key <FROMMEMBER member | FROMLONLAT longitude latitude> <BYRADIUS radius <M | KM | FT | MI> | BYBOX width height <M | KM | FT | MI>> [ASC | DESC] [COUNT count [ANY]] [WITHCOORD] [WITHDIST] [WITHHASH]
/// ```
///
/// Since 6.2.0. Takes O(N+log(M)). ACL: @read @geo @slow.
/// See [Redis](https://redis.io/docs/latest/commands/geosearch/) and [Valkey](https://valkey.io/commands/geosearch/).
pub fn geosearch(key: impl ToArg) -> Geosearch {
    let mut request = cmd("GEOSEARCH");
    key.write_args(&mut request);
    let place = request.place();
    Geosearch::new(request, place)
}

builder! {
    /// A request of [`geosearch()`] and its options.
    Geosearch, Vec<Bytes>
}

impl<T, S> Geosearch<T, S> {
    /// `FROMMEMBER member`.
    pub fn frommember(self, member: impl ToArg) -> Self {
        self.with(|request| {
            request.push(b"FROMMEMBER");
            member.write_args(request);
        })
    }
    /// `FROMLONLAT longitude latitude`.
    pub fn fromlonlat(self, longitude: impl ToDouble, latitude: impl ToDouble) -> Self {
        self.with(|request| {
            request.push(b"FROMLONLAT");
            longitude.write_args(request);
            latitude.write_args(request);
        })
    }
    /// `BYRADIUS radius <M | KM | FT | MI>`.
    pub fn byradius(self, radius: impl ToDouble, unit: Unit) -> Self {
        self.with(|request| {
            request.push(b"BYRADIUS");
            radius.write_args(request);
            unit.write_args(request);
        })
    }
    /// `BYBOX width height <M | KM | FT | MI>`.
    pub fn bybox(self, width: impl ToDouble, height: impl ToDouble, unit: Unit) -> Self {
        self.with(|request| {
            request.push(b"BYBOX");
            width.write_args(request);
            height.write_args(request);
            unit.write_args(request);
        })
    }
    /// `ASC`.
    pub fn asc(self) -> Self {
        self.with(|request| {
            request.push(b"ASC");
        })
    }
    /// `DESC`.
    pub fn desc(self) -> Self {
        self.with(|request| {
            request.push(b"DESC");
        })
    }
    /// `COUNT count`.
    pub fn count(self, count: impl ToInteger) -> Self {
        self.with(|request| {
            request.push(b"COUNT");
            count.write_args(request);
        })
    }
    /// `ANY`.
    pub fn any(self) -> Self {
        self.with(|request| {
            request.push(b"ANY");
        })
    }
}

impl<S> Geosearch<Vec<Bytes>, S> {
    /// `WITHCOORD`.
    pub fn withcoord(self) -> Geosearch<Vec<Reply>, S> {
        self.with(|request| {
            request.push(b"WITHCOORD");
        })
        .retyped()
    }
    /// `WITHDIST`.
    pub fn withdist(self) -> Geosearch<Vec<Reply>, S> {
        self.with(|request| {
            request.push(b"WITHDIST");
        })
        .retyped()
    }
    /// `WITHHASH`.
    pub fn withhash(self) -> Geosearch<Vec<Reply>, S> {
        self.with(|request| {
            request.push(b"WITHHASH");
        })
        .retyped()
    }
}

impl<S> Geosearch<Vec<Reply>, S> {
    /// `WITHCOORD`.
    pub fn withcoord(self) -> Self {
        self.with(|request| {
            request.push(b"WITHCOORD");
        })
    }
    /// `WITHDIST`.
    pub fn withdist(self) -> Self {
        self.with(|request| {
            request.push(b"WITHDIST");
        })
    }
    /// `WITHHASH`.
    pub fn withhash(self) -> Self {
        self.with(|request| {
            request.push(b"WITHHASH");
        })
    }
}

/// Store the places within a circle or box.
///
/// ```text
/// GEOSEARCHSTORE destination source <FROMMEMBER member | FROMLONLAT longitude latitude> <BYRADIUS radius <M | KM | FT | MI> | BYBOX width height <M | KM | FT | MI>> [ASC | DESC] [COUNT count [ANY]] [STOREDIST]
/// ```
///
/// Since 6.2.0. Takes O(N+log(M)). ACL: @write @geo @slow.
/// See [Redis](https://redis.io/docs/latest/commands/geosearchstore/) and [Valkey](https://valkey.io/commands/geosearchstore/).
pub fn geosearchstore(destination: impl ToArg, source: impl ToArg) -> Geosearchstore {
    let mut request = cmd("GEOSEARCHSTORE");
    destination.write_args(&mut request);
    source.write_args(&mut request);
    let place = request.place();
    Geosearchstore::new(request, place)
}

builder! {
    /// A request of [`geosearchstore()`] and its options.
    Geosearchstore, i64
}

impl<T, S> Geosearchstore<T, S> {
    /// `FROMMEMBER member`.
    pub fn frommember(self, member: impl ToArg) -> Self {
        self.with(|request| {
            request.push(b"FROMMEMBER");
            member.write_args(request);
        })
    }
    /// `FROMLONLAT longitude latitude`.
    pub fn fromlonlat(self, longitude: impl ToDouble, latitude: impl ToDouble) -> Self {
        self.with(|request| {
            request.push(b"FROMLONLAT");
            longitude.write_args(request);
            latitude.write_args(request);
        })
    }
    /// `BYRADIUS radius <M | KM | FT | MI>`.
    pub fn byradius(self, radius: impl ToDouble, unit: Unit) -> Self {
        self.with(|request| {
            request.push(b"BYRADIUS");
            radius.write_args(request);
            unit.write_args(request);
        })
    }
    /// `BYBOX width height <M | KM | FT | MI>`.
    pub fn bybox(self, width: impl ToDouble, height: impl ToDouble, unit: Unit) -> Self {
        self.with(|request| {
            request.push(b"BYBOX");
            width.write_args(request);
            height.write_args(request);
            unit.write_args(request);
        })
    }
    /// `ASC`.
    pub fn asc(self) -> Self {
        self.with(|request| {
            request.push(b"ASC");
        })
    }
    /// `DESC`.
    pub fn desc(self) -> Self {
        self.with(|request| {
            request.push(b"DESC");
        })
    }
    /// `COUNT count`.
    pub fn count(self, count: impl ToInteger) -> Self {
        self.with(|request| {
            request.push(b"COUNT");
            count.write_args(request);
        })
    }
    /// `ANY`.
    pub fn any(self) -> Self {
        self.with(|request| {
            request.push(b"ANY");
        })
    }
    /// `STOREDIST`.
    pub fn storedist(self) -> Self {
        self.with(|request| {
            request.push(b"STOREDIST");
        })
    }
}

/// Commands of the group geo.
impl crate::Client {
    /// Add places to a geospatial index.
    ///
    /// `GEOADD key [NX | XX] [CH] longitude latitude member [longitude latitude member ...]`: see [`geoadd()`].
    pub fn geoadd(&self, key: impl ToArg, triples: impl ToArgs) -> Geoadd<i64, &Self> {
        geoadd(key, triples).on(self)
    }
    /// Tell the distance between two places.
    ///
    /// `GEODIST key member1 member2 [M | KM | FT | MI]`: see [`geodist()`].
    pub fn geodist(&self, key: impl ToArg, member1: impl ToArg, member2: impl ToArg) -> Geodist<Option<f64>, &Self> {
        geodist(key, member1, member2).on(self)
    }
    /// Tell the geohashes of places.
    ///
    /// `GEOHASH key member [member ...]`: see [`geohash()`].
    pub fn geohash(&self, key: impl ToArg, members: impl ToArgs) -> Typed<Vec<Option<Bytes>>, &Self> {
        geohash(key, members).on(self)
    }
    /// Tell the coordinates of places.
    ///
    /// `GEOPOS key member [member ...]`: see [`geopos()`].
    pub fn geopos(&self, key: impl ToArg, members: impl ToArgs) -> Typed<Vec<Option<(f64, f64)>>, &Self> {
        geopos(key, members).on(self)
    }
    /// Find, and perhaps store, the places around a point.
    ///
    /// `GEORADIUS key longitude latitude radius <M | KM | FT | MI> [WITHCOORD] [WITHDIST] [WITHHASH] [COUNT count [ANY]] [ASC | DESC] [STORE key] [STOREDIST key]`: see [`georadius()`].
    pub fn georadius(
        &self,
        key: impl ToArg,
        longitude: impl ToDouble,
        latitude: impl ToDouble,
        radius: impl ToDouble,
        unit: Unit,
    ) -> Georadius<Vec<Bytes>, &Self> {
        georadius(key, longitude, latitude, radius, unit).on(self)
    }
    /// Find the places around a point.
    ///
    /// `GEORADIUS_RO key longitude latitude radius <M | KM | FT | MI> [WITHCOORD] [WITHDIST] [WITHHASH] [COUNT count [ANY]] [ASC | DESC]`: see [`georadius_ro()`].
    pub fn georadius_ro(
        &self,
        key: impl ToArg,
        longitude: impl ToDouble,
        latitude: impl ToDouble,
        radius: impl ToDouble,
        unit: Unit,
    ) -> GeoradiusRo<Vec<Bytes>, &Self> {
        georadius_ro(key, longitude, latitude, radius, unit).on(self)
    }
    /// Find, and perhaps store, the places around a place.
    ///
    /// `GEORADIUSBYMEMBER key member radius <M | KM | FT | MI> [WITHCOORD] [WITHDIST] [WITHHASH] [COUNT count [ANY]] [ASC | DESC] [STORE key] [STOREDIST key]`: see [`georadiusbymember()`].
    pub fn georadiusbymember(
        &self,
        key: impl ToArg,
        member: impl ToArg,
        radius: impl ToDouble,
        unit: Unit,
    ) -> Georadiusbymember<Vec<Bytes>, &Self> {
        georadiusbymember(key, member, radius, unit).on(self)
    }
    /// Find the places around a place.
    ///
    /// `GEORADIUSBYMEMBER_RO key member radius <M | KM | FT | MI> [WITHCOORD] [WITHDIST] [WITHHASH] [COUNT count [ANY]] [ASC | DESC]`: see [`georadiusbymember_ro()`].
    pub fn georadiusbymember_ro(
        &self,
        key: impl ToArg,
        member: impl ToArg,
        radius: impl ToDouble,
        unit: Unit,
    ) -> GeoradiusbymemberRo<Vec<Bytes>, &Self> {
        georadiusbymember_ro(key, member, radius, unit).on(self)
    }
    /// Find the places within a circle or box.
    ///
    /// `GEOSEARCH key <FROMMEMBER member | FROMLONLAT longitude latitude> <BYRADIUS radius <M | KM | FT | MI> | BYBOX width height <M | KM | FT | MI>> [ASC | DESC] [COUNT count [ANY]] [WITHCOORD] [WITHDIST] [WITHHASH]`: see [`geosearch()`].
    pub fn geosearch(&self, key: impl ToArg) -> Geosearch<Vec<Bytes>, &Self> {
        geosearch(key).on(self)
    }
    /// Store the places within a circle or box.
    ///
    /// `GEOSEARCHSTORE destination source <FROMMEMBER member | FROMLONLAT longitude latitude> <BYRADIUS radius <M | KM | FT | MI> | BYBOX width height <M | KM | FT | MI>> [ASC | DESC] [COUNT count [ANY]] [STOREDIST]`: see [`geosearchstore()`].
    pub fn geosearchstore(&self, destination: impl ToArg, source: impl ToArg) -> Geosearchstore<i64, &Self> {
        geosearchstore(destination, source).on(self)
    }
}
