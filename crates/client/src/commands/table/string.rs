//! Commands of the group string.

// Written by `cargo xtask codegen` from the command table. Not to be edited.
#![allow(unused_imports, reason = "each group needs some of them")]
#![allow(clippy::type_complexity, clippy::too_many_arguments, reason = "replies and requests are what they are")]

use super::*;
use crate::commands::{Pairs, ToArg, ToDouble, ToInteger, Typed, builder};
use crate::{Reply, ToArgs, cmd};
use bytes::Bytes;
use std::collections::HashMap;

/// Add bytes to the end of a string; a missing key starts empty.
///
/// ```text
/// APPEND key value
/// ```
///
/// Since 2.0.0. Takes O(1). ACL: @write @string @fast.
/// See [Redis](https://redis.io/docs/latest/commands/append/) and [Valkey](https://valkey.io/commands/append/).
pub fn append(key: impl ToArg, value: impl ToArg) -> Typed<i64> {
    let mut request = cmd("APPEND");
    key.write_args(&mut request);
    value.write_args(&mut request);
    Typed::new(request)
}

/// Subtract one from an integer.
///
/// ```text
/// DECR key
/// ```
///
/// Since 1.0.0. Takes O(1). ACL: @write @string @fast.
/// See [Redis](https://redis.io/docs/latest/commands/decr/) and [Valkey](https://valkey.io/commands/decr/).
pub fn decr(key: impl ToArg) -> Typed<i64> {
    let mut request = cmd("DECR");
    key.write_args(&mut request);
    Typed::new(request)
}

/// Subtract from an integer.
///
/// ```text
/// DECRBY key decrement
/// ```
///
/// Since 1.0.0. Takes O(1). ACL: @write @string @fast.
/// See [Redis](https://redis.io/docs/latest/commands/decrby/) and [Valkey](https://valkey.io/commands/decrby/).
pub fn decrby(key: impl ToArg, decrement: impl ToInteger) -> Typed<i64> {
    let mut request = cmd("DECRBY");
    key.write_args(&mut request);
    decrement.write_args(&mut request);
    Typed::new(request)
}

/// Delete a key if it holds a certain string.
///
/// ```text
/// DELEX key [IFEQ ifeq-value | IFNE ifne-value | IFDEQ ifdeq-digest | IFDNE ifdne-digest]
/// ```
///
/// Since 8.4.0. Takes O(1). ACL: @write @string @fast.
/// See [Redis](https://redis.io/docs/latest/commands/delex/) and [Valkey](https://valkey.io/commands/delex/).
pub fn delex(key: impl ToArg) -> Delex {
    let mut request = cmd("DELEX");
    key.write_args(&mut request);
    let place = request.place();
    Delex::new(request, place)
}

builder! {
    /// A request of [`delex()`] and its options.
    Delex, bool
}

impl<T, S> Delex<T, S> {
    /// `IFEQ ifeq-value`.
    pub fn ifeq(self, ifeq_value: impl ToArg) -> Self {
        self.with(|request| {
            request.push(b"IFEQ");
            ifeq_value.write_args(request);
        })
    }
    /// `IFNE ifne-value`.
    pub fn ifne(self, ifne_value: impl ToArg) -> Self {
        self.with(|request| {
            request.push(b"IFNE");
            ifne_value.write_args(request);
        })
    }
    /// `IFDEQ ifdeq-digest`.
    pub fn ifdeq(self, ifdeq_digest: impl ToArg) -> Self {
        self.with(|request| {
            request.push(b"IFDEQ");
            ifdeq_digest.write_args(request);
        })
    }
    /// `IFDNE ifdne-digest`.
    pub fn ifdne(self, ifdne_digest: impl ToArg) -> Self {
        self.with(|request| {
            request.push(b"IFDNE");
            ifdne_digest.write_args(request);
        })
    }
}

/// Delete a key if it holds a certain string (Valkey).
///
/// ```text
/// DELIFEQ key value
/// ```
///
/// Since 9.0.0. Takes O(1). ACL: @write @string @fast.
/// See [Redis](https://redis.io/docs/latest/commands/delifeq/) and [Valkey](https://valkey.io/commands/delifeq/).
pub fn delifeq(key: impl ToArg, value: impl ToArg) -> Typed<bool> {
    let mut request = cmd("DELIFEQ");
    key.write_args(&mut request);
    value.write_args(&mut request);
    Typed::new(request)
}

/// Tell a hash of a string, with which others can be compared.
///
/// ```text
/// DIGEST key
/// ```
///
/// Since 8.4.0. Takes O(N). ACL: @read @string @fast.
/// See [Redis](https://redis.io/docs/latest/commands/digest/) and [Valkey](https://valkey.io/commands/digest/).
pub fn digest(key: impl ToArg) -> Typed<Option<Bytes>> {
    let mut request = cmd("DIGEST");
    key.write_args(&mut request);
    Typed::new(request)
}

/// Tell the value of a string.
///
/// ```text
/// GET key
/// ```
///
/// Since 1.0.0. Takes O(1). ACL: @read @string @fast.
/// See [Redis](https://redis.io/docs/latest/commands/get/) and [Valkey](https://valkey.io/commands/get/).
pub fn get(key: impl ToArg) -> Typed<Option<Bytes>> {
    let mut request = cmd("GET");
    key.write_args(&mut request);
    Typed::new(request)
}

/// Tell the value of a string and delete the key.
///
/// ```text
/// GETDEL key
/// ```
///
/// Since 6.2.0. Takes O(1). ACL: @write @string @fast.
/// See [Redis](https://redis.io/docs/latest/commands/getdel/) and [Valkey](https://valkey.io/commands/getdel/).
pub fn getdel(key: impl ToArg) -> Typed<Option<Bytes>> {
    let mut request = cmd("GETDEL");
    key.write_args(&mut request);
    Typed::new(request)
}

/// Tell the value of a string and set or drop its expiry.
///
/// ```text
/// GETEX key [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | PERSIST]
/// ```
///
/// Since 6.2.0. Takes O(1). ACL: @write @string @fast.
/// See [Redis](https://redis.io/docs/latest/commands/getex/) and [Valkey](https://valkey.io/commands/getex/).
pub fn getex(key: impl ToArg) -> Getex {
    let mut request = cmd("GETEX");
    key.write_args(&mut request);
    let place = request.place();
    Getex::new(request, place)
}

builder! {
    /// A request of [`getex()`] and its options.
    Getex, Option<Bytes>
}

impl<T, S> Getex<T, S> {
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

/// Tell a part of a string.
///
/// ```text
/// GETRANGE key start end
/// ```
///
/// Since 2.4.0. Takes O(N). ACL: @read @string @slow.
/// See [Redis](https://redis.io/docs/latest/commands/getrange/) and [Valkey](https://valkey.io/commands/getrange/).
pub fn getrange(key: impl ToArg, start: impl ToInteger, end: impl ToInteger) -> Typed<Bytes> {
    let mut request = cmd("GETRANGE");
    key.write_args(&mut request);
    start.write_args(&mut request);
    end.write_args(&mut request);
    Typed::new(request)
}

/// Replace a string and tell the value it had.
///
/// ```text
/// GETSET key value
/// ```
///
/// Since 1.0.0. Deprecated since 6.2.0: use SET with GET. Takes O(1). ACL: @write @string @fast.
/// See [Redis](https://redis.io/docs/latest/commands/getset/) and [Valkey](https://valkey.io/commands/getset/).
pub fn getset(key: impl ToArg, value: impl ToArg) -> Typed<Option<Bytes>> {
    let mut request = cmd("GETSET");
    key.write_args(&mut request);
    value.write_args(&mut request);
    Typed::new(request)
}

/// Add one to an integer.
///
/// ```text
/// INCR key
/// ```
///
/// Since 1.0.0. Takes O(1). ACL: @write @string @fast.
/// See [Redis](https://redis.io/docs/latest/commands/incr/) and [Valkey](https://valkey.io/commands/incr/).
pub fn incr(key: impl ToArg) -> Typed<i64> {
    let mut request = cmd("INCR");
    key.write_args(&mut request);
    Typed::new(request)
}

/// Add to an integer.
///
/// ```text
/// INCRBY key increment
/// ```
///
/// Since 1.0.0. Takes O(1). ACL: @write @string @fast.
/// See [Redis](https://redis.io/docs/latest/commands/incrby/) and [Valkey](https://valkey.io/commands/incrby/).
pub fn incrby(key: impl ToArg, increment: impl ToInteger) -> Typed<i64> {
    let mut request = cmd("INCRBY");
    key.write_args(&mut request);
    increment.write_args(&mut request);
    Typed::new(request)
}

/// Add to a number.
///
/// ```text
/// INCRBYFLOAT key increment
/// ```
///
/// Since 2.6.0. Takes O(1). ACL: @write @string @fast.
/// See [Redis](https://redis.io/docs/latest/commands/incrbyfloat/) and [Valkey](https://valkey.io/commands/incrbyfloat/).
pub fn incrbyfloat(key: impl ToArg, increment: impl ToDouble) -> Typed<f64> {
    let mut request = cmd("INCRBYFLOAT");
    key.write_args(&mut request);
    increment.write_args(&mut request);
    Typed::new(request)
}

/// Find the longest common subsequence of two strings.
///
/// ```text
/// LCS key1 key2 [LEN] [IDX] [MINMATCHLEN len] [WITHMATCHLEN]
/// ```
///
/// Since 7.0.0. Takes O(N·M). ACL: @read @string @slow.
/// See [Redis](https://redis.io/docs/latest/commands/lcs/) and [Valkey](https://valkey.io/commands/lcs/).
pub fn lcs(key1: impl ToArg, key2: impl ToArg) -> Lcs {
    let mut request = cmd("LCS");
    key1.write_args(&mut request);
    key2.write_args(&mut request);
    let place = request.place();
    Lcs::new(request, place)
}

builder! {
    /// A request of [`lcs()`] and its options.
    Lcs, Bytes
}

impl<T, S> Lcs<T, S> {
    /// `MINMATCHLEN len`.
    pub fn minmatchlen(self, len: impl ToInteger) -> Self {
        self.with(|request| {
            request.push(b"MINMATCHLEN");
            len.write_args(request);
        })
    }
    /// `WITHMATCHLEN`.
    pub fn withmatchlen(self) -> Self {
        self.with(|request| {
            request.push(b"WITHMATCHLEN");
        })
    }
}

impl<S> Lcs<Bytes, S> {
    /// `LEN`.
    pub fn len(self) -> Lcs<i64, S> {
        self.with(|request| {
            request.push(b"LEN");
        })
        .retyped()
    }
    /// `IDX`.
    pub fn idx(self) -> Lcs<HashMap<Bytes, Reply>, S> {
        self.with(|request| {
            request.push(b"IDX");
        })
        .retyped()
    }
}

impl<S> Lcs<i64, S> {
    /// `LEN`.
    pub fn len(self) -> Self {
        self.with(|request| {
            request.push(b"LEN");
        })
    }
    /// `IDX`.
    pub fn idx(self) -> Lcs<HashMap<Bytes, Reply>, S> {
        self.with(|request| {
            request.push(b"IDX");
        })
        .retyped()
    }
}

impl<S> Lcs<HashMap<Bytes, Reply>, S> {
    /// `LEN`.
    pub fn len(self) -> Self {
        self.with(|request| {
            request.push(b"LEN");
        })
    }
    /// `IDX`.
    pub fn idx(self) -> Self {
        self.with(|request| {
            request.push(b"IDX");
        })
    }
}

/// Tell the values of several strings.
///
/// ```text
/// MGET key [key ...]
/// ```
///
/// Since 1.0.0. Takes O(N). ACL: @read @string @fast.
/// See [Redis](https://redis.io/docs/latest/commands/mget/) and [Valkey](https://valkey.io/commands/mget/).
pub fn mget(keys: impl ToArgs) -> Typed<Vec<Option<Bytes>>> {
    let mut request = cmd("MGET");
    keys.write_args(&mut request);
    Typed::new(request)
}

/// Set several strings.
///
/// ```text
/// MSET key value [key value ...]
/// ```
///
/// Since 1.0.1. Takes O(N). ACL: @write @string @slow.
/// See [Redis](https://redis.io/docs/latest/commands/mset/) and [Valkey](https://valkey.io/commands/mset/).
pub fn mset(pairs: impl ToArgs) -> Typed<()> {
    let mut request = cmd("MSET");
    pairs.write_args(&mut request);
    Typed::new(request)
}

/// Set several strings that expire together, if all of the keys exist or none does.
///
/// ```text
/// MSETEX numkeys key value [key value ...] [NX | XX] [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | KEEPTTL]
/// ```
///
/// Since 8.4.0. Takes O(N). ACL: @write @string @slow.
/// See [Redis](https://redis.io/docs/latest/commands/msetex/) and [Valkey](https://valkey.io/commands/msetex/).
pub fn msetex(pairs: impl ToArgs) -> Msetex {
    let mut request = cmd("MSETEX");
    request.push_counted(2, |request| pairs.write_args(request));
    let place = request.place();
    Msetex::new(request, place)
}

builder! {
    /// A request of [`msetex()`] and its options.
    Msetex, bool
}

impl<T, S> Msetex<T, S> {
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

/// Set several strings if none of the keys exists.
///
/// ```text
/// MSETNX key value [key value ...]
/// ```
///
/// Since 1.0.1. Takes O(N). ACL: @write @string @slow.
/// See [Redis](https://redis.io/docs/latest/commands/msetnx/) and [Valkey](https://valkey.io/commands/msetnx/).
pub fn msetnx(pairs: impl ToArgs) -> Typed<bool> {
    let mut request = cmd("MSETNX");
    pairs.write_args(&mut request);
    Typed::new(request)
}

/// Set a string that expires after milliseconds.
///
/// ```text
/// PSETEX key milliseconds value
/// ```
///
/// Since 2.6.0. Takes O(1). ACL: @write @string @slow.
/// See [Redis](https://redis.io/docs/latest/commands/psetex/) and [Valkey](https://valkey.io/commands/psetex/).
pub fn psetex(key: impl ToArg, milliseconds: impl ToInteger, value: impl ToArg) -> Typed<()> {
    let mut request = cmd("PSETEX");
    key.write_args(&mut request);
    milliseconds.write_args(&mut request);
    value.write_args(&mut request);
    Typed::new(request)
}

/// Set a string, whatever the key held.
///
/// ```text
/// SET key value [NX | XX | IFEQ comparison-value] [GET] [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | KEEPTTL]
/// ```
///
/// Since 1.0.0. Takes O(1). ACL: @write @string @slow.
/// See [Redis](https://redis.io/docs/latest/commands/set/) and [Valkey](https://valkey.io/commands/set/).
pub fn set(key: impl ToArg, value: impl ToArg) -> Set {
    let mut request = cmd("SET");
    key.write_args(&mut request);
    value.write_args(&mut request);
    let place = request.place();
    Set::new(request, place)
}

builder! {
    /// A request of [`set()`] and its options.
    Set, ()
}

impl<T, S> Set<T, S> {
    /// `EX seconds`, since 2.6.12.
    pub fn ex(self, seconds: impl ToInteger) -> Self {
        self.with(|request| {
            request.push(b"EX");
            seconds.write_args(request);
        })
    }
    /// `PX milliseconds`, since 2.6.12.
    pub fn px(self, milliseconds: impl ToInteger) -> Self {
        self.with(|request| {
            request.push(b"PX");
            milliseconds.write_args(request);
        })
    }
    /// `EXAT unix-time-seconds`, since 6.2.0.
    pub fn exat(self, unix_time_seconds: impl ToInteger) -> Self {
        self.with(|request| {
            request.push(b"EXAT");
            unix_time_seconds.write_args(request);
        })
    }
    /// `PXAT unix-time-milliseconds`, since 6.2.0.
    pub fn pxat(self, unix_time_milliseconds: impl ToInteger) -> Self {
        self.with(|request| {
            request.push(b"PXAT");
            unix_time_milliseconds.write_args(request);
        })
    }
    /// `KEEPTTL`, since 6.0.0.
    pub fn keepttl(self) -> Self {
        self.with(|request| {
            request.push(b"KEEPTTL");
        })
    }
}

impl<S> Set<(), S> {
    /// `NX`.
    pub fn nx(self) -> Set<bool, S> {
        self.with(|request| {
            request.push(b"NX");
        })
        .retyped()
    }
    /// `XX`.
    pub fn xx(self) -> Set<bool, S> {
        self.with(|request| {
            request.push(b"XX");
        })
        .retyped()
    }
    /// `IFEQ comparison-value`, since 8.1.0.
    pub fn ifeq(self, comparison_value: impl ToArg) -> Set<bool, S> {
        self.with(|request| {
            request.push(b"IFEQ");
            comparison_value.write_args(request);
        })
        .retyped()
    }
    /// `GET`, since 6.2.0.
    pub fn get(self) -> Set<Option<Bytes>, S> {
        self.with(|request| {
            request.push(b"GET");
        })
        .retyped()
    }
}

impl<S> Set<bool, S> {
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
    /// `IFEQ comparison-value`, since 8.1.0.
    pub fn ifeq(self, comparison_value: impl ToArg) -> Self {
        self.with(|request| {
            request.push(b"IFEQ");
            comparison_value.write_args(request);
        })
    }
    /// `GET`, since 6.2.0.
    pub fn get(self) -> Set<Option<Bytes>, S> {
        self.with(|request| {
            request.push(b"GET");
        })
        .retyped()
    }
}

impl<S> Set<Option<Bytes>, S> {
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
    /// `IFEQ comparison-value`, since 8.1.0.
    pub fn ifeq(self, comparison_value: impl ToArg) -> Self {
        self.with(|request| {
            request.push(b"IFEQ");
            comparison_value.write_args(request);
        })
    }
    /// `GET`, since 6.2.0.
    pub fn get(self) -> Self {
        self.with(|request| {
            request.push(b"GET");
        })
    }
}

/// Set a string that expires after seconds.
///
/// ```text
/// SETEX key seconds value
/// ```
///
/// Since 2.0.0. Takes O(1). ACL: @write @string @slow.
/// See [Redis](https://redis.io/docs/latest/commands/setex/) and [Valkey](https://valkey.io/commands/setex/).
pub fn setex(key: impl ToArg, seconds: impl ToInteger, value: impl ToArg) -> Typed<()> {
    let mut request = cmd("SETEX");
    key.write_args(&mut request);
    seconds.write_args(&mut request);
    value.write_args(&mut request);
    Typed::new(request)
}

/// Set a string if the key does not exist.
///
/// ```text
/// SETNX key value
/// ```
///
/// Since 1.0.0. Takes O(1). ACL: @write @string @fast.
/// See [Redis](https://redis.io/docs/latest/commands/setnx/) and [Valkey](https://valkey.io/commands/setnx/).
pub fn setnx(key: impl ToArg, value: impl ToArg) -> Typed<bool> {
    let mut request = cmd("SETNX");
    key.write_args(&mut request);
    value.write_args(&mut request);
    Typed::new(request)
}

/// Overwrite a part of a string.
///
/// ```text
/// SETRANGE key offset value
/// ```
///
/// Since 2.2.0. Takes O(1). ACL: @write @string @slow.
/// See [Redis](https://redis.io/docs/latest/commands/setrange/) and [Valkey](https://valkey.io/commands/setrange/).
pub fn setrange(key: impl ToArg, offset: impl ToInteger, value: impl ToArg) -> Typed<i64> {
    let mut request = cmd("SETRANGE");
    key.write_args(&mut request);
    offset.write_args(&mut request);
    value.write_args(&mut request);
    Typed::new(request)
}

/// Tell the length of a string.
///
/// ```text
/// STRLEN key
/// ```
///
/// Since 2.2.0. Takes O(1). ACL: @read @string @fast.
/// See [Redis](https://redis.io/docs/latest/commands/strlen/) and [Valkey](https://valkey.io/commands/strlen/).
pub fn strlen(key: impl ToArg) -> Typed<i64> {
    let mut request = cmd("STRLEN");
    key.write_args(&mut request);
    Typed::new(request)
}

/// Tell a part of a string.
///
/// ```text
/// SUBSTR key start end
/// ```
///
/// Since 1.0.0. Deprecated since 2.0.0: use GETRANGE. Takes O(N). ACL: @read @string @slow.
/// See [Redis](https://redis.io/docs/latest/commands/substr/) and [Valkey](https://valkey.io/commands/substr/).
pub fn substr(key: impl ToArg, start: impl ToInteger, end: impl ToInteger) -> Typed<Bytes> {
    let mut request = cmd("SUBSTR");
    key.write_args(&mut request);
    start.write_args(&mut request);
    end.write_args(&mut request);
    Typed::new(request)
}

/// Commands of the group string.
impl crate::Client {
    /// Add bytes to the end of a string; a missing key starts empty.
    ///
    /// `APPEND key value`: see [`append()`].
    pub fn append(&self, key: impl ToArg, value: impl ToArg) -> Typed<i64, &Self> {
        append(key, value).on(self)
    }
    /// Subtract one from an integer.
    ///
    /// `DECR key`: see [`decr()`].
    pub fn decr(&self, key: impl ToArg) -> Typed<i64, &Self> {
        decr(key).on(self)
    }
    /// Subtract from an integer.
    ///
    /// `DECRBY key decrement`: see [`decrby()`].
    pub fn decrby(&self, key: impl ToArg, decrement: impl ToInteger) -> Typed<i64, &Self> {
        decrby(key, decrement).on(self)
    }
    /// Delete a key if it holds a certain string.
    ///
    /// `DELEX key [IFEQ ifeq-value | IFNE ifne-value | IFDEQ ifdeq-digest | IFDNE ifdne-digest]`: see [`delex()`].
    pub fn delex(&self, key: impl ToArg) -> Delex<bool, &Self> {
        delex(key).on(self)
    }
    /// Delete a key if it holds a certain string (Valkey).
    ///
    /// `DELIFEQ key value`: see [`delifeq()`].
    pub fn delifeq(&self, key: impl ToArg, value: impl ToArg) -> Typed<bool, &Self> {
        delifeq(key, value).on(self)
    }
    /// Tell a hash of a string, with which others can be compared.
    ///
    /// `DIGEST key`: see [`digest()`].
    pub fn digest(&self, key: impl ToArg) -> Typed<Option<Bytes>, &Self> {
        digest(key).on(self)
    }
    /// Tell the value of a string.
    ///
    /// `GET key`: see [`get()`].
    pub fn get(&self, key: impl ToArg) -> Typed<Option<Bytes>, &Self> {
        get(key).on(self)
    }
    /// Tell the value of a string and delete the key.
    ///
    /// `GETDEL key`: see [`getdel()`].
    pub fn getdel(&self, key: impl ToArg) -> Typed<Option<Bytes>, &Self> {
        getdel(key).on(self)
    }
    /// Tell the value of a string and set or drop its expiry.
    ///
    /// `GETEX key [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | PERSIST]`: see [`getex()`].
    pub fn getex(&self, key: impl ToArg) -> Getex<Option<Bytes>, &Self> {
        getex(key).on(self)
    }
    /// Tell a part of a string.
    ///
    /// `GETRANGE key start end`: see [`getrange()`].
    pub fn getrange(&self, key: impl ToArg, start: impl ToInteger, end: impl ToInteger) -> Typed<Bytes, &Self> {
        getrange(key, start, end).on(self)
    }
    /// Replace a string and tell the value it had.
    ///
    /// `GETSET key value`: see [`getset()`].
    pub fn getset(&self, key: impl ToArg, value: impl ToArg) -> Typed<Option<Bytes>, &Self> {
        getset(key, value).on(self)
    }
    /// Add one to an integer.
    ///
    /// `INCR key`: see [`incr()`].
    pub fn incr(&self, key: impl ToArg) -> Typed<i64, &Self> {
        incr(key).on(self)
    }
    /// Add to an integer.
    ///
    /// `INCRBY key increment`: see [`incrby()`].
    pub fn incrby(&self, key: impl ToArg, increment: impl ToInteger) -> Typed<i64, &Self> {
        incrby(key, increment).on(self)
    }
    /// Add to a number.
    ///
    /// `INCRBYFLOAT key increment`: see [`incrbyfloat()`].
    pub fn incrbyfloat(&self, key: impl ToArg, increment: impl ToDouble) -> Typed<f64, &Self> {
        incrbyfloat(key, increment).on(self)
    }
    /// Find the longest common subsequence of two strings.
    ///
    /// `LCS key1 key2 [LEN] [IDX] [MINMATCHLEN len] [WITHMATCHLEN]`: see [`lcs()`].
    pub fn lcs(&self, key1: impl ToArg, key2: impl ToArg) -> Lcs<Bytes, &Self> {
        lcs(key1, key2).on(self)
    }
    /// Tell the values of several strings.
    ///
    /// `MGET key [key ...]`: see [`mget()`].
    pub fn mget(&self, keys: impl ToArgs) -> Typed<Vec<Option<Bytes>>, &Self> {
        mget(keys).on(self)
    }
    /// Set several strings.
    ///
    /// `MSET key value [key value ...]`: see [`mset()`].
    pub fn mset(&self, pairs: impl ToArgs) -> Typed<(), &Self> {
        mset(pairs).on(self)
    }
    /// Set several strings that expire together, if all of the keys exist or none does.
    ///
    /// `MSETEX numkeys key value [key value ...] [NX | XX] [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | KEEPTTL]`: see [`msetex()`].
    pub fn msetex(&self, pairs: impl ToArgs) -> Msetex<bool, &Self> {
        msetex(pairs).on(self)
    }
    /// Set several strings if none of the keys exists.
    ///
    /// `MSETNX key value [key value ...]`: see [`msetnx()`].
    pub fn msetnx(&self, pairs: impl ToArgs) -> Typed<bool, &Self> {
        msetnx(pairs).on(self)
    }
    /// Set a string that expires after milliseconds.
    ///
    /// `PSETEX key milliseconds value`: see [`psetex()`].
    pub fn psetex(&self, key: impl ToArg, milliseconds: impl ToInteger, value: impl ToArg) -> Typed<(), &Self> {
        psetex(key, milliseconds, value).on(self)
    }
    /// Set a string, whatever the key held.
    ///
    /// `SET key value [NX | XX | IFEQ comparison-value] [GET] [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | KEEPTTL]`: see [`set()`].
    pub fn set(&self, key: impl ToArg, value: impl ToArg) -> Set<(), &Self> {
        set(key, value).on(self)
    }
    /// Set a string that expires after seconds.
    ///
    /// `SETEX key seconds value`: see [`setex()`].
    pub fn setex(&self, key: impl ToArg, seconds: impl ToInteger, value: impl ToArg) -> Typed<(), &Self> {
        setex(key, seconds, value).on(self)
    }
    /// Set a string if the key does not exist.
    ///
    /// `SETNX key value`: see [`setnx()`].
    pub fn setnx(&self, key: impl ToArg, value: impl ToArg) -> Typed<bool, &Self> {
        setnx(key, value).on(self)
    }
    /// Overwrite a part of a string.
    ///
    /// `SETRANGE key offset value`: see [`setrange()`].
    pub fn setrange(&self, key: impl ToArg, offset: impl ToInteger, value: impl ToArg) -> Typed<i64, &Self> {
        setrange(key, offset, value).on(self)
    }
    /// Tell the length of a string.
    ///
    /// `STRLEN key`: see [`strlen()`].
    pub fn strlen(&self, key: impl ToArg) -> Typed<i64, &Self> {
        strlen(key).on(self)
    }
    /// Tell a part of a string.
    ///
    /// `SUBSTR key start end`: see [`substr()`].
    pub fn substr(&self, key: impl ToArg, start: impl ToInteger, end: impl ToInteger) -> Typed<Bytes, &Self> {
        substr(key, start, end).on(self)
    }
}
