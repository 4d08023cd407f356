//! Commands of the group hash.

// Written by `cargo xtask codegen` from the command table. Not to be edited.
#![allow(unused_imports, reason = "each group needs some of them")]
#![allow(clippy::type_complexity, clippy::too_many_arguments, reason = "replies and requests are what they are")]

use super::*;
use crate::commands::{Pairs, ToArg, ToDouble, ToInteger, Typed, builder};
use crate::{Reply, ToArgs, cmd};
use bytes::Bytes;
use std::collections::HashMap;

/// Delete fields of a hash.
///
/// ```text
/// HDEL key field [field ...]
/// ```
///
/// Since 2.0.0. Takes O(N). ACL: @write @hash @fast.
/// See [Redis](https://redis.io/docs/latest/commands/hdel/) and [Valkey](https://valkey.io/commands/hdel/).
pub fn hdel(key: impl ToArg, fields: impl ToArgs) -> Typed<i64> {
    let mut request = cmd("HDEL");
    key.write_args(&mut request);
    fields.write_args(&mut request);
    Typed::new(request)
}

/// Tell whether a hash has a field.
///
/// ```text
/// HEXISTS key field
/// ```
///
/// Since 2.0.0. Takes O(1). ACL: @read @hash @fast.
/// See [Redis](https://redis.io/docs/latest/commands/hexists/) and [Valkey](https://valkey.io/commands/hexists/).
pub fn hexists(key: impl ToArg, field: impl ToArg) -> Typed<bool> {
    let mut request = cmd("HEXISTS");
    key.write_args(&mut request);
    field.write_args(&mut request);
    Typed::new(request)
}

/// Let fields of a hash expire after seconds.
///
/// ```text
/// HEXPIRE key seconds [NX | XX | GT | LT] FIELDS numfields field [field ...]
/// ```
///
/// Since 7.4.0. Takes O(N). ACL: @write @hash @fast.
/// See [Redis](https://redis.io/docs/latest/commands/hexpire/) and [Valkey](https://valkey.io/commands/hexpire/).
pub fn hexpire(key: impl ToArg, seconds: impl ToInteger, fields: impl ToArgs) -> Hexpire {
    let mut request = cmd("HEXPIRE");
    key.write_args(&mut request);
    seconds.write_args(&mut request);
    let place = request.place();
    request.push(b"FIELDS");
    request.push_counted(1, |request| fields.write_args(request));
    Hexpire::new(request, place)
}

builder! {
    /// A request of [`hexpire()`] and its options.
    Hexpire, Vec<i64>
}

impl<T, S> Hexpire<T, S> {
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
    /// `GT`.
    pub fn gt(self) -> Self {
        self.with(|request| {
            request.push(b"GT");
        })
    }
    /// `LT`.
    pub fn lt(self) -> Self {
        self.with(|request| {
            request.push(b"LT");
        })
    }
}

/// Let fields of a hash expire at a Unix time in seconds.
///
/// ```text
/// HEXPIREAT key unix-time-seconds [NX | XX | GT | LT] FIELDS numfields field [field ...]
/// ```
///
/// Since 7.4.0. Takes O(N). ACL: @write @hash @fast.
/// See [Redis](https://redis.io/docs/latest/commands/hexpireat/) and [Valkey](https://valkey.io/commands/hexpireat/).
pub fn hexpireat(key: impl ToArg, unix_time_seconds: impl ToInteger, fields: impl ToArgs) -> Hexpireat {
    let mut request = cmd("HEXPIREAT");
    key.write_args(&mut request);
    unix_time_seconds.write_args(&mut request);
    let place = request.place();
    request.push(b"FIELDS");
    request.push_counted(1, |request| fields.write_args(request));
    Hexpireat::new(request, place)
}

builder! {
    /// A request of [`hexpireat()`] and its options.
    Hexpireat, Vec<i64>
}

impl<T, S> Hexpireat<T, S> {
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
    /// `GT`.
    pub fn gt(self) -> Self {
        self.with(|request| {
            request.push(b"GT");
        })
    }
    /// `LT`.
    pub fn lt(self) -> Self {
        self.with(|request| {
            request.push(b"LT");
        })
    }
}

/// Tell when fields of a hash expire, as Unix times in seconds.
///
/// ```text
/// HEXPIRETIME key FIELDS numfields field [field ...]
/// ```
///
/// Since 7.4.0. Takes O(N). ACL: @read @hash @fast.
/// See [Redis](https://redis.io/docs/latest/commands/hexpiretime/) and [Valkey](https://valkey.io/commands/hexpiretime/).
pub fn hexpiretime(key: impl ToArg, fields: impl ToArgs) -> Typed<Vec<i64>> {
    let mut request = cmd("HEXPIRETIME");
    key.write_args(&mut request);
    request.push(b"FIELDS");
    request.push_counted(1, |request| fields.write_args(request));
    Typed::new(request)
}

/// Tell the value of a field.
///
/// ```text
/// HGET key field
/// ```
///
/// Since 2.0.0. Takes O(1). ACL: @read @hash @fast.
/// See [Redis](https://redis.io/docs/latest/commands/hget/) and [Valkey](https://valkey.io/commands/hget/).
pub fn hget(key: impl ToArg, field: impl ToArg) -> Typed<Option<Bytes>> {
    let mut request = cmd("HGET");
    key.write_args(&mut request);
    field.write_args(&mut request);
    Typed::new(request)
}

/// List the fields and values of a hash.
///
/// ```text
/// HGETALL key
/// ```
///
/// Since 2.0.0. Takes O(N). ACL: @read @hash @slow.
/// See [Redis](https://redis.io/docs/latest/commands/hgetall/) and [Valkey](https://valkey.io/commands/hgetall/).
pub fn hgetall(key: impl ToArg) -> Typed<HashMap<Bytes, Bytes>> {
    let mut request = cmd("HGETALL");
    key.write_args(&mut request);
    Typed::new(request)
}

/// Tell the values of fields and delete them.
///
/// ```text
/// HGETDEL key FIELDS numfields field [field ...]
/// ```
///
/// Since 8.0.0. Takes O(N). ACL: @write @hash @fast.
/// See [Redis](https://redis.io/docs/latest/commands/hgetdel/) and [Valkey](https://valkey.io/commands/hgetdel/).
pub fn hgetdel(key: impl ToArg, fields: impl ToArgs) -> Typed<Vec<Option<Bytes>>> {
    let mut request = cmd("HGETDEL");
    key.write_args(&mut request);
    request.push(b"FIELDS");
    request.push_counted(1, |request| fields.write_args(request));
    Typed::new(request)
}

/// Tell the values of fields and set or drop their expiry.
///
/// ```text
/// HGETEX key [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | PERSIST] FIELDS numfields field [field ...]
/// ```
///
/// Since 8.0.0. Takes O(N). ACL: @write @hash @fast.
/// See [Redis](https://redis.io/docs/latest/commands/hgetex/) and [Valkey](https://valkey.io/commands/hgetex/).
pub fn hgetex(key: impl ToArg, fields: impl ToArgs) -> Hgetex {
    let mut request = cmd("HGETEX");
    key.write_args(&mut request);
    let place = request.place();
    request.push(b"FIELDS");
    request.push_counted(1, |request| fields.write_args(request));
    Hgetex::new(request, place)
}

builder! {
    /// A request of [`hgetex()`] and its options.
    Hgetex, Vec<Option<Bytes>>
}

impl<T, S> Hgetex<T, S> {
    /// `EX seconds`.
    pub fn ex(self, seconds: impl ToInteger) -> Self {
        self.with(|request| {
            request.push(b"EX");
            seconds.write_args(request);
        })
    }
    /// `PX milliseconds`.
    pub fn px(self, milliseconds: impl ToInteger) -> Self {
        self.with(|request| {
            request.push(b"PX");
            milliseconds.write_args(request);
        })
    }
    /// `EXAT unix-time-seconds`.
    pub fn exat(self, unix_time_seconds: impl ToInteger) -> Self {
        self.with(|request| {
            request.push(b"EXAT");
            unix_time_seconds.write_args(request);
        })
    }
    /// `PXAT unix-time-milliseconds`.
    pub fn pxat(self, unix_time_milliseconds: impl ToInteger) -> Self {
        self.with(|request| {
            request.push(b"PXAT");
            unix_time_milliseconds.write_args(request);
        })
    }
    /// `PERSIST`.
    pub fn persist(self) -> Self {
        self.with(|request| {
            request.push(b"PERSIST");
        })
    }
}

/// Add to the integer in a field.
///
/// ```text
/// HINCRBY key field increment
/// ```
///
/// Since 2.0.0. Takes O(1). ACL: @write @hash @fast.
/// See [Redis](https://redis.io/docs/latest/commands/hincrby/) and [Valkey](https://valkey.io/commands/hincrby/).
pub fn hincrby(key: impl ToArg, field: impl ToArg, increment: impl ToInteger) -> Typed<i64> {
    let mut request = cmd("HINCRBY");
    key.write_args(&mut request);
    field.write_args(&mut request);
    increment.write_args(&mut request);
    Typed::new(request)
}

/// Add to the number in a field.
///
/// ```text
/// HINCRBYFLOAT key field increment
/// ```
///
/// Since 2.6.0. Takes O(1). ACL: @write @hash @fast.
/// See [Redis](https://redis.io/docs/latest/commands/hincrbyfloat/) and [Valkey](https://valkey.io/commands/hincrbyfloat/).
pub fn hincrbyfloat(key: impl ToArg, field: impl ToArg, increment: impl ToDouble) -> Typed<f64> {
    let mut request = cmd("HINCRBYFLOAT");
    key.write_args(&mut request);
    field.write_args(&mut request);
    increment.write_args(&mut request);
    Typed::new(request)
}

/// List the fields of a hash.
///
/// ```text
/// HKEYS key
/// ```
///
/// Since 2.0.0. Takes O(N). ACL: @read @hash @slow.
/// See [Redis](https://redis.io/docs/latest/commands/hkeys/) and [Valkey](https://valkey.io/commands/hkeys/).
pub fn hkeys(key: impl ToArg) -> Typed<Vec<Bytes>> {
    let mut request = cmd("HKEYS");
    key.write_args(&mut request);
    Typed::new(request)
}

/// Count the fields of a hash.
///
/// ```text
/// HLEN key
/// ```
///
/// Since 2.0.0. Takes O(1). ACL: @read @hash @fast.
/// See [Redis](https://redis.io/docs/latest/commands/hlen/) and [Valkey](https://valkey.io/commands/hlen/).
pub fn hlen(key: impl ToArg) -> Typed<i64> {
    let mut request = cmd("HLEN");
    key.write_args(&mut request);
    Typed::new(request)
}

/// Tell the values of several fields.
///
/// ```text
/// HMGET key field [field ...]
/// ```
///
/// Since 2.0.0. Takes O(N). ACL: @read @hash @fast.
/// See [Redis](https://redis.io/docs/latest/commands/hmget/) and [Valkey](https://valkey.io/commands/hmget/).
pub fn hmget(key: impl ToArg, fields: impl ToArgs) -> Typed<Vec<Option<Bytes>>> {
    let mut request = cmd("HMGET");
    key.write_args(&mut request);
    fields.write_args(&mut request);
    Typed::new(request)
}

/// Set several fields of a hash.
///
/// ```text
/// HMSET key field value [field value ...]
/// ```
///
/// Since 2.0.0. Deprecated since 4.0.0: use HSET. Takes O(N). ACL: @write @hash @fast.
/// See [Redis](https://redis.io/docs/latest/commands/hmset/) and [Valkey](https://valkey.io/commands/hmset/).
pub fn hmset(key: impl ToArg, pairs: impl ToArgs) -> Typed<()> {
    let mut request = cmd("HMSET");
    key.write_args(&mut request);
    pairs.write_args(&mut request);
    Typed::new(request)
}

/// Drop the expiry of fields.
///
/// ```text
/// HPERSIST key FIELDS numfields field [field ...]
/// ```
///
/// Since 7.4.0. Takes O(N). ACL: @write @hash @fast.
/// See [Redis](https://redis.io/docs/latest/commands/hpersist/) and [Valkey](https://valkey.io/commands/hpersist/).
pub fn hpersist(key: impl ToArg, fields: impl ToArgs) -> Typed<Vec<i64>> {
    let mut request = cmd("HPERSIST");
    key.write_args(&mut request);
    request.push(b"FIELDS");
    request.push_counted(1, |request| fields.write_args(request));
    Typed::new(request)
}

/// Let fields of a hash expire after milliseconds.
///
/// ```text
/// HPEXPIRE key milliseconds [NX | XX | GT | LT] FIELDS numfields field [field ...]
/// ```
///
/// Since 7.4.0. Takes O(N). ACL: @write @hash @fast.
/// See [Redis](https://redis.io/docs/latest/commands/hpexpire/) and [Valkey](https://valkey.io/commands/hpexpire/).
pub fn hpexpire(key: impl ToArg, milliseconds: impl ToInteger, fields: impl ToArgs) -> Hpexpire {
    let mut request = cmd("HPEXPIRE");
    key.write_args(&mut request);
    milliseconds.write_args(&mut request);
    let place = request.place();
    request.push(b"FIELDS");
    request.push_counted(1, |request| fields.write_args(request));
    Hpexpire::new(request, place)
}

builder! {
    /// A request of [`hpexpire()`] and its options.
    Hpexpire, Vec<i64>
}

impl<T, S> Hpexpire<T, S> {
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
    /// `GT`.
    pub fn gt(self) -> Self {
        self.with(|request| {
            request.push(b"GT");
        })
    }
    /// `LT`.
    pub fn lt(self) -> Self {
        self.with(|request| {
            request.push(b"LT");
        })
    }
}

/// Let fields of a hash expire at a Unix time in milliseconds.
///
/// ```text
/// HPEXPIREAT key unix-time-milliseconds [NX | XX | GT | LT] FIELDS numfields field [field ...]
/// ```
///
/// Since 7.4.0. Takes O(N). ACL: @write @hash @fast.
/// See [Redis](https://redis.io/docs/latest/commands/hpexpireat/) and [Valkey](https://valkey.io/commands/hpexpireat/).
pub fn hpexpireat(key: impl ToArg, unix_time_milliseconds: impl ToInteger, fields: impl ToArgs) -> Hpexpireat {
    let mut request = cmd("HPEXPIREAT");
    key.write_args(&mut request);
    unix_time_milliseconds.write_args(&mut request);
    let place = request.place();
    request.push(b"FIELDS");
    request.push_counted(1, |request| fields.write_args(request));
    Hpexpireat::new(request, place)
}

builder! {
    /// A request of [`hpexpireat()`] and its options.
    Hpexpireat, Vec<i64>
}

impl<T, S> Hpexpireat<T, S> {
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
    /// `GT`.
    pub fn gt(self) -> Self {
        self.with(|request| {
            request.push(b"GT");
        })
    }
    /// `LT`.
    pub fn lt(self) -> Self {
        self.with(|request| {
            request.push(b"LT");
        })
    }
}

/// Tell when fields of a hash expire, as Unix times in milliseconds.
///
/// ```text
/// HPEXPIRETIME key FIELDS numfields field [field ...]
/// ```
///
/// Since 7.4.0. Takes O(N). ACL: @read @hash @fast.
/// See [Redis](https://redis.io/docs/latest/commands/hpexpiretime/) and [Valkey](https://valkey.io/commands/hpexpiretime/).
pub fn hpexpiretime(key: impl ToArg, fields: impl ToArgs) -> Typed<Vec<i64>> {
    let mut request = cmd("HPEXPIRETIME");
    key.write_args(&mut request);
    request.push(b"FIELDS");
    request.push_counted(1, |request| fields.write_args(request));
    Typed::new(request)
}

/// Tell for how many milliseconds fields of a hash live.
///
/// ```text
/// HPTTL key FIELDS numfields field [field ...]
/// ```
///
/// Since 7.4.0. Takes O(N). ACL: @read @hash @fast.
/// See [Redis](https://redis.io/docs/latest/commands/hpttl/) and [Valkey](https://valkey.io/commands/hpttl/).
pub fn hpttl(key: impl ToArg, fields: impl ToArgs) -> Typed<Vec<i64>> {
    let mut request = cmd("HPTTL");
    key.write_args(&mut request);
    request.push(b"FIELDS");
    request.push_counted(1, |request| fields.write_args(request));
    Typed::new(request)
}

/// Pick random fields of a hash.
///
/// ```text
/// HRANDFIELD key [count [WITHVALUES]]
/// ```
///
/// Since 6.2.0. Takes O(N). ACL: @read @hash @slow.
/// See [Redis](https://redis.io/docs/latest/commands/hrandfield/) and [Valkey](https://valkey.io/commands/hrandfield/).
pub fn hrandfield(key: impl ToArg) -> Hrandfield {
    let mut request = cmd("HRANDFIELD");
    key.write_args(&mut request);
    let place = request.place();
    Hrandfield::new(request, place)
}

builder! {
    /// A request of [`hrandfield()`] and its options.
    Hrandfield, Option<Bytes>
}

impl<S> Hrandfield<Option<Bytes>, S> {
    /// `count`.
    pub fn count(self, count: impl ToInteger) -> Hrandfield<Vec<Bytes>, S> {
        self.with(|request| {
            count.write_args(request);
        })
        .retyped()
    }
    /// `WITHVALUES`.
    pub fn withvalues(self) -> Hrandfield<Pairs<Bytes, Bytes>, S> {
        self.with(|request| {
            request.push(b"WITHVALUES");
        })
        .retyped()
    }
}

impl<S> Hrandfield<Vec<Bytes>, S> {
    /// `count`.
    pub fn count(self, count: impl ToInteger) -> Self {
        self.with(|request| {
            count.write_args(request);
        })
    }
    /// `WITHVALUES`.
    pub fn withvalues(self) -> Hrandfield<Pairs<Bytes, Bytes>, S> {
        self.with(|request| {
            request.push(b"WITHVALUES");
        })
        .retyped()
    }
}

impl<S> Hrandfield<Pairs<Bytes, Bytes>, S> {
    /// `count`.
    pub fn count(self, count: impl ToInteger) -> Self {
        self.with(|request| {
            count.write_args(request);
        })
    }
    /// `WITHVALUES`.
    pub fn withvalues(self) -> Self {
        self.with(|request| {
            request.push(b"WITHVALUES");
        })
    }
}

/// Walk through a hash in steps.
///
/// ```text
/// HSCAN key cursor [MATCH pattern] [COUNT count] [NOVALUES]
/// ```
///
/// Since 2.8.0. Takes O(1). ACL: @read @hash @slow.
/// See [Redis](https://redis.io/docs/latest/commands/hscan/) and [Valkey](https://valkey.io/commands/hscan/).
pub fn hscan(key: impl ToArg, cursor: impl ToInteger) -> Hscan {
    let mut request = cmd("HSCAN");
    key.write_args(&mut request);
    cursor.write_args(&mut request);
    let place = request.place();
    Hscan::new(request, place)
}

builder! {
    /// A request of [`hscan()`] and its options.
    Hscan, (u64, Pairs<Bytes, Bytes>)
}

impl<T, S> Hscan<T, S> {
    /// `MATCH pattern`.
    pub fn match_(self, pattern: impl ToArg) -> Self {
        self.with(|request| {
            request.push(b"MATCH");
            pattern.write_args(request);
        })
    }
    /// `COUNT count`.
    pub fn count(self, count: impl ToInteger) -> Self {
        self.with(|request| {
            request.push(b"COUNT");
            count.write_args(request);
        })
    }
}

impl<S> Hscan<(u64, Pairs<Bytes, Bytes>), S> {
    /// `NOVALUES`, since 7.4.0.
    pub fn novalues(self) -> Hscan<(u64, Vec<Bytes>), S> {
        self.with(|request| {
            request.push(b"NOVALUES");
        })
        .retyped()
    }
}

impl<S> Hscan<(u64, Vec<Bytes>), S> {
    /// `NOVALUES`, since 7.4.0.
    pub fn novalues(self) -> Self {
        self.with(|request| {
            request.push(b"NOVALUES");
        })
    }
}

/// Set fields of a hash.
///
/// ```text
/// HSET key field value [field value ...]
/// ```
///
/// Since 2.0.0. Takes O(1). ACL: @write @hash @fast.
/// See [Redis](https://redis.io/docs/latest/commands/hset/) and [Valkey](https://valkey.io/commands/hset/).
pub fn hset(key: impl ToArg, pairs: impl ToArgs) -> Typed<i64> {
    let mut request = cmd("HSET");
    key.write_args(&mut request);
    pairs.write_args(&mut request);
    Typed::new(request)
}

/// Set fields of a hash and their expiry.
///
/// ```text
/// HSETEX key [FNX | FXX] [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | KEEPTTL] FIELDS numfields field value [field value ...]
/// ```
///
/// Since 8.0.0. Takes O(N). ACL: @write @hash @fast.
/// See [Redis](https://redis.io/docs/latest/commands/hsetex/) and [Valkey](https://valkey.io/commands/hsetex/).
pub fn hsetex(key: impl ToArg, pairs: impl ToArgs) -> Hsetex {
    let mut request = cmd("HSETEX");
    key.write_args(&mut request);
    let place = request.place();
    request.push(b"FIELDS");
    request.push_counted(2, |request| pairs.write_args(request));
    Hsetex::new(request, place)
}

builder! {
    /// A request of [`hsetex()`] and its options.
    Hsetex, bool
}

impl<T, S> Hsetex<T, S> {
    /// `FNX`.
    pub fn fnx(self) -> Self {
        self.with(|request| {
            request.push(b"FNX");
        })
    }
    /// `FXX`.
    pub fn fxx(self) -> Self {
        self.with(|request| {
            request.push(b"FXX");
        })
    }
    /// `EX seconds`.
    pub fn ex(self, seconds: impl ToInteger) -> Self {
        self.with(|request| {
            request.push(b"EX");
            seconds.write_args(request);
        })
    }
    /// `PX milliseconds`.
    pub fn px(self, milliseconds: impl ToInteger) -> Self {
        self.with(|request| {
            request.push(b"PX");
            milliseconds.write_args(request);
        })
    }
    /// `EXAT unix-time-seconds`.
    pub fn exat(self, unix_time_seconds: impl ToInteger) -> Self {
        self.with(|request| {
            request.push(b"EXAT");
            unix_time_seconds.write_args(request);
        })
    }
    /// `PXAT unix-time-milliseconds`.
    pub fn pxat(self, unix_time_milliseconds: impl ToInteger) -> Self {
        self.with(|request| {
            request.push(b"PXAT");
            unix_time_milliseconds.write_args(request);
        })
    }
    /// `KEEPTTL`.
    pub fn keepttl(self) -> Self {
        self.with(|request| {
            request.push(b"KEEPTTL");
        })
    }
}

/// Set a field that the hash does not have yet.
///
/// ```text
/// HSETNX key field value
/// ```
///
/// Since 2.0.0. Takes O(1). ACL: @write @hash @fast.
/// See [Redis](https://redis.io/docs/latest/commands/hsetnx/) and [Valkey](https://valkey.io/commands/hsetnx/).
pub fn hsetnx(key: impl ToArg, field: impl ToArg, value: impl ToArg) -> Typed<bool> {
    let mut request = cmd("HSETNX");
    key.write_args(&mut request);
    field.write_args(&mut request);
    value.write_args(&mut request);
    Typed::new(request)
}

/// Tell the length of a field's value.
///
/// ```text
/// HSTRLEN key field
/// ```
///
/// Since 3.2.0. Takes O(1). ACL: @read @hash @fast.
/// See [Redis](https://redis.io/docs/latest/commands/hstrlen/) and [Valkey](https://valkey.io/commands/hstrlen/).
pub fn hstrlen(key: impl ToArg, field: impl ToArg) -> Typed<i64> {
    let mut request = cmd("HSTRLEN");
    key.write_args(&mut request);
    field.write_args(&mut request);
    Typed::new(request)
}

/// Tell for how many seconds fields of a hash live.
///
/// ```text
/// HTTL key FIELDS numfields field [field ...]
/// ```
///
/// Since 7.4.0. Takes O(N). ACL: @read @hash @fast.
/// See [Redis](https://redis.io/docs/latest/commands/httl/) and [Valkey](https://valkey.io/commands/httl/).
pub fn httl(key: impl ToArg, fields: impl ToArgs) -> Typed<Vec<i64>> {
    let mut request = cmd("HTTL");
    key.write_args(&mut request);
    request.push(b"FIELDS");
    request.push_counted(1, |request| fields.write_args(request));
    Typed::new(request)
}

/// List the values of a hash.
///
/// ```text
/// HVALS key
/// ```
///
/// Since 2.0.0. Takes O(N). ACL: @read @hash @slow.
/// See [Redis](https://redis.io/docs/latest/commands/hvals/) and [Valkey](https://valkey.io/commands/hvals/).
pub fn hvals(key: impl ToArg) -> Typed<Vec<Bytes>> {
    let mut request = cmd("HVALS");
    key.write_args(&mut request);
    Typed::new(request)
}

/// Commands of the group hash.
impl crate::Client {
    /// Delete fields of a hash.
    ///
    /// `HDEL key field [field ...]`: see [`hdel()`].
    pub fn hdel(&self, key: impl ToArg, fields: impl ToArgs) -> Typed<i64, &Self> {
        hdel(key, fields).on(self)
    }
    /// Tell whether a hash has a field.
    ///
    /// `HEXISTS key field`: see [`hexists()`].
    pub fn hexists(&self, key: impl ToArg, field: impl ToArg) -> Typed<bool, &Self> {
        hexists(key, field).on(self)
    }
    /// Let fields of a hash expire after seconds.
    ///
    /// `HEXPIRE key seconds [NX | XX | GT | LT] FIELDS numfields field [field ...]`: see [`hexpire()`].
    pub fn hexpire(&self, key: impl ToArg, seconds: impl ToInteger, fields: impl ToArgs) -> Hexpire<Vec<i64>, &Self> {
        hexpire(key, seconds, fields).on(self)
    }
    /// Let fields of a hash expire at a Unix time in seconds.
    ///
    /// `HEXPIREAT key unix-time-seconds [NX | XX | GT | LT] FIELDS numfields field [field ...]`: see [`hexpireat()`].
    pub fn hexpireat(
        &self,
        key: impl ToArg,
        unix_time_seconds: impl ToInteger,
        fields: impl ToArgs,
    ) -> Hexpireat<Vec<i64>, &Self> {
        hexpireat(key, unix_time_seconds, fields).on(self)
    }
    /// Tell when fields of a hash expire, as Unix times in seconds.
    ///
    /// `HEXPIRETIME key FIELDS numfields field [field ...]`: see [`hexpiretime()`].
    pub fn hexpiretime(&self, key: impl ToArg, fields: impl ToArgs) -> Typed<Vec<i64>, &Self> {
        hexpiretime(key, fields).on(self)
    }
    /// Tell the value of a field.
    ///
    /// `HGET key field`: see [`hget()`].
    pub fn hget(&self, key: impl ToArg, field: impl ToArg) -> Typed<Option<Bytes>, &Self> {
        hget(key, field).on(self)
    }
    /// List the fields and values of a hash.
    ///
    /// `HGETALL key`: see [`hgetall()`].
    pub fn hgetall(&self, key: impl ToArg) -> Typed<HashMap<Bytes, Bytes>, &Self> {
        hgetall(key).on(self)
    }
    /// Tell the values of fields and delete them.
    ///
    /// `HGETDEL key FIELDS numfields field [field ...]`: see [`hgetdel()`].
    pub fn hgetdel(&self, key: impl ToArg, fields: impl ToArgs) -> Typed<Vec<Option<Bytes>>, &Self> {
        hgetdel(key, fields).on(self)
    }
    /// Tell the values of fields and set or drop their expiry.
    ///
    /// `HGETEX key [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | PERSIST] FIELDS numfields field [field ...]`: see [`hgetex()`].
    pub fn hgetex(&self, key: impl ToArg, fields: impl ToArgs) -> Hgetex<Vec<Option<Bytes>>, &Self> {
        hgetex(key, fields).on(self)
    }
    /// Add to the integer in a field.
    ///
    /// `HINCRBY key field increment`: see [`hincrby()`].
    pub fn hincrby(&self, key: impl ToArg, field: impl ToArg, increment: impl ToInteger) -> Typed<i64, &Self> {
        hincrby(key, field, increment).on(self)
    }
    /// Add to the number in a field.
    ///
    /// `HINCRBYFLOAT key field increment`: see [`hincrbyfloat()`].
    pub fn hincrbyfloat(&self, key: impl ToArg, field: impl ToArg, increment: impl ToDouble) -> Typed<f64, &Self> {
        hincrbyfloat(key, field, increment).on(self)
    }
    /// List the fields of a hash.
    ///
    /// `HKEYS key`: see [`hkeys()`].
    pub fn hkeys(&self, key: impl ToArg) -> Typed<Vec<Bytes>, &Self> {
        hkeys(key).on(self)
    }
    /// Count the fields of a hash.
    ///
    /// `HLEN key`: see [`hlen()`].
    pub fn hlen(&self, key: impl ToArg) -> Typed<i64, &Self> {
        hlen(key).on(self)
    }
    /// Tell the values of several fields.
    ///
    /// `HMGET key field [field ...]`: see [`hmget()`].
    pub fn hmget(&self, key: impl ToArg, fields: impl ToArgs) -> Typed<Vec<Option<Bytes>>, &Self> {
        hmget(key, fields).on(self)
    }
    /// Set several fields of a hash.
    ///
    /// `HMSET key field value [field value ...]`: see [`hmset()`].
    pub fn hmset(&self, key: impl ToArg, pairs: impl ToArgs) -> Typed<(), &Self> {
        hmset(key, pairs).on(self)
    }
    /// Drop the expiry of fields.
    ///
    /// `HPERSIST key FIELDS numfields field [field ...]`: see [`hpersist()`].
    pub fn hpersist(&self, key: impl ToArg, fields: impl ToArgs) -> Typed<Vec<i64>, &Self> {
        hpersist(key, fields).on(self)
    }
    /// Let fields of a hash expire after milliseconds.
    ///
    /// `HPEXPIRE key milliseconds [NX | XX | GT | LT] FIELDS numfields field [field ...]`: see [`hpexpire()`].
    pub fn hpexpire(
        &self,
        key: impl ToArg,
        milliseconds: impl ToInteger,
        fields: impl ToArgs,
    ) -> Hpexpire<Vec<i64>, &Self> {
        hpexpire(key, milliseconds, fields).on(self)
    }
    /// Let fields of a hash expire at a Unix time in milliseconds.
    ///
    /// `HPEXPIREAT key unix-time-milliseconds [NX | XX | GT | LT] FIELDS numfields field [field ...]`: see [`hpexpireat()`].
    pub fn hpexpireat(
        &self,
        key: impl ToArg,
        unix_time_milliseconds: impl ToInteger,
        fields: impl ToArgs,
    ) -> Hpexpireat<Vec<i64>, &Self> {
        hpexpireat(key, unix_time_milliseconds, fields).on(self)
    }
    /// Tell when fields of a hash expire, as Unix times in milliseconds.
    ///
    /// `HPEXPIRETIME key FIELDS numfields field [field ...]`: see [`hpexpiretime()`].
    pub fn hpexpiretime(&self, key: impl ToArg, fields: impl ToArgs) -> Typed<Vec<i64>, &Self> {
        hpexpiretime(key, fields).on(self)
    }
    /// Tell for how many milliseconds fields of a hash live.
    ///
    /// `HPTTL key FIELDS numfields field [field ...]`: see [`hpttl()`].
    pub fn hpttl(&self, key: impl ToArg, fields: impl ToArgs) -> Typed<Vec<i64>, &Self> {
        hpttl(key, fields).on(self)
    }
    /// Pick random fields of a hash.
    ///
    /// `HRANDFIELD key [count [WITHVALUES]]`: see [`hrandfield()`].
    pub fn hrandfield(&self, key: impl ToArg) -> Hrandfield<Option<Bytes>, &Self> {
        hrandfield(key).on(self)
    }
    /// Walk through a hash in steps.
    ///
    /// `HSCAN key cursor [MATCH pattern] [COUNT count] [NOVALUES]`: see [`hscan()`].
    pub fn hscan(&self, key: impl ToArg, cursor: impl ToInteger) -> Hscan<(u64, Pairs<Bytes, Bytes>), &Self> {
        hscan(key, cursor).on(self)
    }
    /// Set fields of a hash.
    ///
    /// `HSET key field value [field value ...]`: see [`hset()`].
    pub fn hset(&self, key: impl ToArg, pairs: impl ToArgs) -> Typed<i64, &Self> {
        hset(key, pairs).on(self)
    }
    /// Set fields of a hash and their expiry.
    ///
    /// `HSETEX key [FNX | FXX] [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | KEEPTTL] FIELDS numfields field value [field value ...]`: see [`hsetex()`].
    pub fn hsetex(&self, key: impl ToArg, pairs: impl ToArgs) -> Hsetex<bool, &Self> {
        hsetex(key, pairs).on(self)
    }
    /// Set a field that the hash does not have yet.
    ///
    /// `HSETNX key field value`: see [`hsetnx()`].
    pub fn hsetnx(&self, key: impl ToArg, field: impl ToArg, value: impl ToArg) -> Typed<bool, &Self> {
        hsetnx(key, field, value).on(self)
    }
    /// Tell the length of a field's value.
    ///
    /// `HSTRLEN key field`: see [`hstrlen()`].
    pub fn hstrlen(&self, key: impl ToArg, field: impl ToArg) -> Typed<i64, &Self> {
        hstrlen(key, field).on(self)
    }
    /// Tell for how many seconds fields of a hash live.
    ///
    /// `HTTL key FIELDS numfields field [field ...]`: see [`httl()`].
    pub fn httl(&self, key: impl ToArg, fields: impl ToArgs) -> Typed<Vec<i64>, &Self> {
        httl(key, fields).on(self)
    }
    /// List the values of a hash.
    ///
    /// `HVALS key`: see [`hvals()`].
    pub fn hvals(&self, key: impl ToArg) -> Typed<Vec<Bytes>, &Self> {
        hvals(key).on(self)
    }
}
