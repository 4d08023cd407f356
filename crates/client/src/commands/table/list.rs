//! Commands of the group list.

// Written by `cargo xtask codegen` from the command table. Not to be edited.
#![allow(unused_imports, reason = "each group needs some of them")]
#![allow(clippy::type_complexity, clippy::too_many_arguments, reason = "replies and requests are what they are")]

use super::*;
use crate::commands::{Pairs, ToArg, ToDouble, ToInteger, Typed, builder};
use crate::{Reply, ToArgs, cmd};
use bytes::Bytes;
use std::collections::HashMap;

/// Move an element from one end of a list to an end of another, waiting for one.
///
/// ```text
/// BLMOVE source destination <LEFT | RIGHT> <LEFT | RIGHT> timeout
/// ```
///
/// Since 6.2.0. Takes O(1). ACL: @write @list @slow @blocking.
/// See [Redis](https://redis.io/docs/latest/commands/blmove/) and [Valkey](https://valkey.io/commands/blmove/).
pub fn blmove(
    source: impl ToArg,
    destination: impl ToArg,
    wherefrom: LeftRight,
    whereto: LeftRight,
    timeout: impl ToDouble,
) -> Typed<Option<Bytes>> {
    let mut request = cmd("BLMOVE");
    source.write_args(&mut request);
    destination.write_args(&mut request);
    wherefrom.write_args(&mut request);
    whereto.write_args(&mut request);
    timeout.write_args(&mut request);
    Typed::new(request)
}

/// Take elements from the first list that has any, waiting for one.
///
/// ```text
/// BLMPOP timeout numkeys key [key ...] <LEFT | RIGHT> [COUNT count]
/// ```
///
/// Since 7.0.0. Takes O(N+M). ACL: @write @list @slow @blocking.
/// See [Redis](https://redis.io/docs/latest/commands/blmpop/) and [Valkey](https://valkey.io/commands/blmpop/).
pub fn blmpop(timeout: impl ToDouble, keys: impl ToArgs, where_: LeftRight) -> Blmpop {
    let mut request = cmd("BLMPOP");
    timeout.write_args(&mut request);
    request.push_counted(1, |request| keys.write_args(request));
    where_.write_args(&mut request);
    let place = request.place();
    Blmpop::new(request, place)
}

builder! {
    /// A request of [`blmpop()`] and its options.
    Blmpop, Option<(Bytes, Vec<Bytes>)>
}

impl<T, S> Blmpop<T, S> {
    /// `COUNT count`.
    pub fn count(self, count: impl ToInteger) -> Self {
        self.with(|request| {
            request.push(b"COUNT");
            count.write_args(request);
        })
    }
}

/// Take the first element of the first list that has any, waiting for one.
///
/// ```text
/// BLPOP key [key ...] timeout
/// ```
///
/// Since 2.0.0. Takes O(N). ACL: @write @list @slow @blocking.
/// See [Redis](https://redis.io/docs/latest/commands/blpop/) and [Valkey](https://valkey.io/commands/blpop/).
pub fn blpop(keys: impl ToArgs, timeout: impl ToDouble) -> Typed<Option<(Bytes, Bytes)>> {
    let mut request = cmd("BLPOP");
    keys.write_args(&mut request);
    timeout.write_args(&mut request);
    Typed::new(request)
}

/// Take the last element of the first list that has any, waiting for one.
///
/// ```text
/// BRPOP key [key ...] timeout
/// ```
///
/// Since 2.0.0. Takes O(N). ACL: @write @list @slow @blocking.
/// See [Redis](https://redis.io/docs/latest/commands/brpop/) and [Valkey](https://valkey.io/commands/brpop/).
pub fn brpop(keys: impl ToArgs, timeout: impl ToDouble) -> Typed<Option<(Bytes, Bytes)>> {
    let mut request = cmd("BRPOP");
    keys.write_args(&mut request);
    timeout.write_args(&mut request);
    Typed::new(request)
}

/// Move the last element of a list to the head of another, waiting for one.
///
/// ```text
/// BRPOPLPUSH source destination timeout
/// ```
///
/// Since 2.2.0. Deprecated since 6.2.0: use BLMOVE with RIGHT and LEFT. Takes O(1). ACL: @write @list @slow @blocking.
/// See [Redis](https://redis.io/docs/latest/commands/brpoplpush/) and [Valkey](https://valkey.io/commands/brpoplpush/).
pub fn brpoplpush(source: impl ToArg, destination: impl ToArg, timeout: impl ToDouble) -> Typed<Option<Bytes>> {
    let mut request = cmd("BRPOPLPUSH");
    source.write_args(&mut request);
    destination.write_args(&mut request);
    timeout.write_args(&mut request);
    Typed::new(request)
}

/// Tell the element at an index of a list.
///
/// ```text
/// LINDEX key index
/// ```
///
/// Since 1.0.0. Takes O(N). ACL: @read @list @slow.
/// See [Redis](https://redis.io/docs/latest/commands/lindex/) and [Valkey](https://valkey.io/commands/lindex/).
pub fn lindex(key: impl ToArg, index: impl ToInteger) -> Typed<Option<Bytes>> {
    let mut request = cmd("LINDEX");
    key.write_args(&mut request);
    index.write_args(&mut request);
    Typed::new(request)
}

/// Put an element before or after another one in a list.
///
/// ```text
/// LINSERT key <BEFORE | AFTER> pivot element
/// ```
///
/// Since 2.2.0. Takes O(N). ACL: @write @list @slow.
/// See [Redis](https://redis.io/docs/latest/commands/linsert/) and [Valkey](https://valkey.io/commands/linsert/).
pub fn linsert(key: impl ToArg, where_: BeforeAfter, pivot: impl ToArg, element: impl ToArg) -> Typed<i64> {
    let mut request = cmd("LINSERT");
    key.write_args(&mut request);
    where_.write_args(&mut request);
    pivot.write_args(&mut request);
    element.write_args(&mut request);
    Typed::new(request)
}

/// Count the elements of a list.
///
/// ```text
/// LLEN key
/// ```
///
/// Since 1.0.0. Takes O(1). ACL: @read @list @fast.
/// See [Redis](https://redis.io/docs/latest/commands/llen/) and [Valkey](https://valkey.io/commands/llen/).
pub fn llen(key: impl ToArg) -> Typed<i64> {
    let mut request = cmd("LLEN");
    key.write_args(&mut request);
    Typed::new(request)
}

/// Move an element from one end of a list to an end of another.
///
/// ```text
/// LMOVE source destination <LEFT | RIGHT> <LEFT | RIGHT>
/// ```
///
/// Since 6.2.0. Takes O(1). ACL: @write @list @slow.
/// See [Redis](https://redis.io/docs/latest/commands/lmove/) and [Valkey](https://valkey.io/commands/lmove/).
pub fn lmove(
    source: impl ToArg,
    destination: impl ToArg,
    wherefrom: LeftRight,
    whereto: LeftRight,
) -> Typed<Option<Bytes>> {
    let mut request = cmd("LMOVE");
    source.write_args(&mut request);
    destination.write_args(&mut request);
    wherefrom.write_args(&mut request);
    whereto.write_args(&mut request);
    Typed::new(request)
}

/// Take elements from the first list that has any.
///
/// ```text
/// LMPOP numkeys key [key ...] <LEFT | RIGHT> [COUNT count]
/// ```
///
/// Since 7.0.0. Takes O(N+M). ACL: @write @list @slow.
/// See [Redis](https://redis.io/docs/latest/commands/lmpop/) and [Valkey](https://valkey.io/commands/lmpop/).
pub fn lmpop(keys: impl ToArgs, where_: LeftRight) -> Lmpop {
    let mut request = cmd("LMPOP");
    request.push_counted(1, |request| keys.write_args(request));
    where_.write_args(&mut request);
    let place = request.place();
    Lmpop::new(request, place)
}

builder! {
    /// A request of [`lmpop()`] and its options.
    Lmpop, Option<(Bytes, Vec<Bytes>)>
}

impl<T, S> Lmpop<T, S> {
    /// `COUNT count`.
    pub fn count(self, count: impl ToInteger) -> Self {
        self.with(|request| {
            request.push(b"COUNT");
            count.write_args(request);
        })
    }
}

/// Take elements from the head of a list.
///
/// ```text
/// LPOP key [count]
/// ```
///
/// Since 1.0.0. Takes O(N). ACL: @write @list @fast.
/// See [Redis](https://redis.io/docs/latest/commands/lpop/) and [Valkey](https://valkey.io/commands/lpop/).
pub fn lpop(key: impl ToArg) -> Lpop {
    let mut request = cmd("LPOP");
    key.write_args(&mut request);
    let place = request.place();
    Lpop::new(request, place)
}

builder! {
    /// A request of [`lpop()`] and its options.
    Lpop, Option<Bytes>
}

impl<S> Lpop<Option<Bytes>, S> {
    /// `count`, since 6.2.0.
    pub fn count(self, count: impl ToInteger) -> Lpop<Option<Vec<Bytes>>, S> {
        self.with(|request| {
            count.write_args(request);
        })
        .retyped()
    }
}

impl<S> Lpop<Option<Vec<Bytes>>, S> {
    /// `count`, since 6.2.0.
    pub fn count(self, count: impl ToInteger) -> Self {
        self.with(|request| {
            count.write_args(request);
        })
    }
}

/// Find elements of a list.
///
/// ```text
/// LPOS key element [RANK rank] [COUNT num-matches] [MAXLEN len]
/// ```
///
/// Since 6.0.6. Takes O(N). ACL: @read @list @slow.
/// See [Redis](https://redis.io/docs/latest/commands/lpos/) and [Valkey](https://valkey.io/commands/lpos/).
pub fn lpos(key: impl ToArg, element: impl ToArg) -> Lpos {
    let mut request = cmd("LPOS");
    key.write_args(&mut request);
    element.write_args(&mut request);
    let place = request.place();
    Lpos::new(request, place)
}

builder! {
    /// A request of [`lpos()`] and its options.
    Lpos, Option<i64>
}

impl<T, S> Lpos<T, S> {
    /// `RANK rank`.
    pub fn rank(self, rank: impl ToInteger) -> Self {
        self.with(|request| {
            request.push(b"RANK");
            rank.write_args(request);
        })
    }
    /// `MAXLEN len`.
    pub fn maxlen(self, len: impl ToInteger) -> Self {
        self.with(|request| {
            request.push(b"MAXLEN");
            len.write_args(request);
        })
    }
}

impl<S> Lpos<Option<i64>, S> {
    /// `COUNT num-matches`.
    pub fn count(self, num_matches: impl ToInteger) -> Lpos<Vec<i64>, S> {
        self.with(|request| {
            request.push(b"COUNT");
            num_matches.write_args(request);
        })
        .retyped()
    }
}

impl<S> Lpos<Vec<i64>, S> {
    /// `COUNT num-matches`.
    pub fn count(self, num_matches: impl ToInteger) -> Self {
        self.with(|request| {
            request.push(b"COUNT");
            num_matches.write_args(request);
        })
    }
}

/// Put elements at the head of a list.
///
/// ```text
/// LPUSH key element [element ...]
/// ```
///
/// Since 1.0.0. Takes O(1). ACL: @write @list @fast.
/// See [Redis](https://redis.io/docs/latest/commands/lpush/) and [Valkey](https://valkey.io/commands/lpush/).
pub fn lpush(key: impl ToArg, elements: impl ToArgs) -> Typed<i64> {
    let mut request = cmd("LPUSH");
    key.write_args(&mut request);
    elements.write_args(&mut request);
    Typed::new(request)
}

/// Put elements at the head of a list that exists.
///
/// ```text
/// LPUSHX key element [element ...]
/// ```
///
/// Since 2.2.0. Takes O(1). ACL: @write @list @fast.
/// See [Redis](https://redis.io/docs/latest/commands/lpushx/) and [Valkey](https://valkey.io/commands/lpushx/).
pub fn lpushx(key: impl ToArg, elements: impl ToArgs) -> Typed<i64> {
    let mut request = cmd("LPUSHX");
    key.write_args(&mut request);
    elements.write_args(&mut request);
    Typed::new(request)
}

/// List elements between two indexes.
///
/// ```text
/// LRANGE key start stop
/// ```
///
/// Since 1.0.0. Takes O(S+N). ACL: @read @list @slow.
/// See [Redis](https://redis.io/docs/latest/commands/lrange/) and [Valkey](https://valkey.io/commands/lrange/).
pub fn lrange(key: impl ToArg, start: impl ToInteger, stop: impl ToInteger) -> Typed<Vec<Bytes>> {
    let mut request = cmd("LRANGE");
    key.write_args(&mut request);
    start.write_args(&mut request);
    stop.write_args(&mut request);
    Typed::new(request)
}

/// Remove elements that equal a value from a list.
///
/// ```text
/// LREM key count element
/// ```
///
/// Since 1.0.0. Takes O(N+M). ACL: @write @list @slow.
/// See [Redis](https://redis.io/docs/latest/commands/lrem/) and [Valkey](https://valkey.io/commands/lrem/).
pub fn lrem(key: impl ToArg, count: impl ToInteger, element: impl ToArg) -> Typed<i64> {
    let mut request = cmd("LREM");
    key.write_args(&mut request);
    count.write_args(&mut request);
    element.write_args(&mut request);
    Typed::new(request)
}

/// Replace the element at an index of a list.
///
/// ```text
/// LSET key index element
/// ```
///
/// Since 1.0.0. Takes O(N). ACL: @write @list @slow.
/// See [Redis](https://redis.io/docs/latest/commands/lset/) and [Valkey](https://valkey.io/commands/lset/).
pub fn lset(key: impl ToArg, index: impl ToInteger, element: impl ToArg) -> Typed<()> {
    let mut request = cmd("LSET");
    key.write_args(&mut request);
    index.write_args(&mut request);
    element.write_args(&mut request);
    Typed::new(request)
}

/// Keep only the elements between two indexes.
///
/// ```text
/// LTRIM key start stop
/// ```
///
/// Since 1.0.0. Takes O(N). ACL: @write @list @slow.
/// See [Redis](https://redis.io/docs/latest/commands/ltrim/) and [Valkey](https://valkey.io/commands/ltrim/).
pub fn ltrim(key: impl ToArg, start: impl ToInteger, stop: impl ToInteger) -> Typed<()> {
    let mut request = cmd("LTRIM");
    key.write_args(&mut request);
    start.write_args(&mut request);
    stop.write_args(&mut request);
    Typed::new(request)
}

/// Take elements from the tail of a list.
///
/// ```text
/// RPOP key [count]
/// ```
///
/// Since 1.0.0. Takes O(N). ACL: @write @list @fast.
/// See [Redis](https://redis.io/docs/latest/commands/rpop/) and [Valkey](https://valkey.io/commands/rpop/).
pub fn rpop(key: impl ToArg) -> Rpop {
    let mut request = cmd("RPOP");
    key.write_args(&mut request);
    let place = request.place();
    Rpop::new(request, place)
}

builder! {
    /// A request of [`rpop()`] and its options.
    Rpop, Option<Bytes>
}

impl<S> Rpop<Option<Bytes>, S> {
    /// `count`, since 6.2.0.
    pub fn count(self, count: impl ToInteger) -> Rpop<Option<Vec<Bytes>>, S> {
        self.with(|request| {
            count.write_args(request);
        })
        .retyped()
    }
}

impl<S> Rpop<Option<Vec<Bytes>>, S> {
    /// `count`, since 6.2.0.
    pub fn count(self, count: impl ToInteger) -> Self {
        self.with(|request| {
            count.write_args(request);
        })
    }
}

/// Move the last element of a list to the head of another.
///
/// ```text
/// RPOPLPUSH source destination
/// ```
///
/// Since 1.2.0. Deprecated since 6.2.0: use LMOVE with RIGHT and LEFT. Takes O(1). ACL: @write @list @slow.
/// See [Redis](https://redis.io/docs/latest/commands/rpoplpush/) and [Valkey](https://valkey.io/commands/rpoplpush/).
pub fn rpoplpush(source: impl ToArg, destination: impl ToArg) -> Typed<Option<Bytes>> {
    let mut request = cmd("RPOPLPUSH");
    source.write_args(&mut request);
    destination.write_args(&mut request);
    Typed::new(request)
}

/// Put elements at the tail of a list.
///
/// ```text
/// RPUSH key element [element ...]
/// ```
///
/// Since 1.0.0. Takes O(1). ACL: @write @list @fast.
/// See [Redis](https://redis.io/docs/latest/commands/rpush/) and [Valkey](https://valkey.io/commands/rpush/).
pub fn rpush(key: impl ToArg, elements: impl ToArgs) -> Typed<i64> {
    let mut request = cmd("RPUSH");
    key.write_args(&mut request);
    elements.write_args(&mut request);
    Typed::new(request)
}

/// Put elements at the tail of a list that exists.
///
/// ```text
/// RPUSHX key element [element ...]
/// ```
///
/// Since 2.2.0. Takes O(1). ACL: @write @list @fast.
/// See [Redis](https://redis.io/docs/latest/commands/rpushx/) and [Valkey](https://valkey.io/commands/rpushx/).
pub fn rpushx(key: impl ToArg, elements: impl ToArgs) -> Typed<i64> {
    let mut request = cmd("RPUSHX");
    key.write_args(&mut request);
    elements.write_args(&mut request);
    Typed::new(request)
}

/// Commands of the group list.
impl crate::Client {
    /// Move an element from one end of a list to an end of another, waiting for one.
    ///
    /// `BLMOVE source destination <LEFT | RIGHT> <LEFT | RIGHT> timeout`: see [`blmove()`].
    pub fn blmove(
        &self,
        source: impl ToArg,
        destination: impl ToArg,
        wherefrom: LeftRight,
        whereto: LeftRight,
        timeout: impl ToDouble,
    ) -> Typed<Option<Bytes>, &Self> {
        blmove(source, destination, wherefrom, whereto, timeout).on(self)
    }
    /// Take elements from the first list that has any, waiting for one.
    ///
    /// `BLMPOP timeout numkeys key [key ...] <LEFT | RIGHT> [COUNT count]`: see [`blmpop()`].
    pub fn blmpop(
        &self,
        timeout: impl ToDouble,
        keys: impl ToArgs,
        where_: LeftRight,
    ) -> Blmpop<Option<(Bytes, Vec<Bytes>)>, &Self> {
        blmpop(timeout, keys, where_).on(self)
    }
    /// Take the first element of the first list that has any, waiting for one.
    ///
    /// `BLPOP key [key ...] timeout`: see [`blpop()`].
    pub fn blpop(&self, keys: impl ToArgs, timeout: impl ToDouble) -> Typed<Option<(Bytes, Bytes)>, &Self> {
        blpop(keys, timeout).on(self)
    }
    /// Take the last element of the first list that has any, waiting for one.
    ///
    /// `BRPOP key [key ...] timeout`: see [`brpop()`].
    pub fn brpop(&self, keys: impl ToArgs, timeout: impl ToDouble) -> Typed<Option<(Bytes, Bytes)>, &Self> {
        brpop(keys, timeout).on(self)
    }
    /// Move the last element of a list to the head of another, waiting for one.
    ///
    /// `BRPOPLPUSH source destination timeout`: see [`brpoplpush()`].
    pub fn brpoplpush(
        &self,
        source: impl ToArg,
        destination: impl ToArg,
        timeout: impl ToDouble,
    ) -> Typed<Option<Bytes>, &Self> {
        brpoplpush(source, destination, timeout).on(self)
    }
    /// Tell the element at an index of a list.
    ///
    /// `LINDEX key index`: see [`lindex()`].
    pub fn lindex(&self, key: impl ToArg, index: impl ToInteger) -> Typed<Option<Bytes>, &Self> {
        lindex(key, index).on(self)
    }
    /// Put an element before or after another one in a list.
    ///
    /// `LINSERT key <BEFORE | AFTER> pivot element`: see [`linsert()`].
    pub fn linsert(
        &self,
        key: impl ToArg,
        where_: BeforeAfter,
        pivot: impl ToArg,
        element: impl ToArg,
    ) -> Typed<i64, &Self> {
        linsert(key, where_, pivot, element).on(self)
    }
    /// Count the elements of a list.
    ///
    /// `LLEN key`: see [`llen()`].
    pub fn llen(&self, key: impl ToArg) -> Typed<i64, &Self> {
        llen(key).on(self)
    }
    /// Move an element from one end of a list to an end of another.
    ///
    /// `LMOVE source destination <LEFT | RIGHT> <LEFT | RIGHT>`: see [`lmove()`].
    pub fn lmove(
        &self,
        source: impl ToArg,
        destination: impl ToArg,
        wherefrom: LeftRight,
        whereto: LeftRight,
    ) -> Typed<Option<Bytes>, &Self> {
        lmove(source, destination, wherefrom, whereto).on(self)
    }
    /// Take elements from the first list that has any.
    ///
    /// `LMPOP numkeys key [key ...] <LEFT | RIGHT> [COUNT count]`: see [`lmpop()`].
    pub fn lmpop(&self, keys: impl ToArgs, where_: LeftRight) -> Lmpop<Option<(Bytes, Vec<Bytes>)>, &Self> {
        lmpop(keys, where_).on(self)
    }
    /// Take elements from the head of a list.
    ///
    /// `LPOP key [count]`: see [`lpop()`].
    pub fn lpop(&self, key: impl ToArg) -> Lpop<Option<Bytes>, &Self> {
        lpop(key).on(self)
    }
    /// Find elements of a list.
    ///
    /// `LPOS key element [RANK rank] [COUNT num-matches] [MAXLEN len]`: see [`lpos()`].
    pub fn lpos(&self, key: impl ToArg, element: impl ToArg) -> Lpos<Option<i64>, &Self> {
        lpos(key, element).on(self)
    }
    /// Put elements at the head of a list.
    ///
    /// `LPUSH key element [element ...]`: see [`lpush()`].
    pub fn lpush(&self, key: impl ToArg, elements: impl ToArgs) -> Typed<i64, &Self> {
        lpush(key, elements).on(self)
    }
    /// Put elements at the head of a list that exists.
    ///
    /// `LPUSHX key element [element ...]`: see [`lpushx()`].
    pub fn lpushx(&self, key: impl ToArg, elements: impl ToArgs) -> Typed<i64, &Self> {
        lpushx(key, elements).on(self)
    }
    /// List elements between two indexes.
    ///
    /// `LRANGE key start stop`: see [`lrange()`].
    pub fn lrange(&self, key: impl ToArg, start: impl ToInteger, stop: impl ToInteger) -> Typed<Vec<Bytes>, &Self> {
        lrange(key, start, stop).on(self)
    }
    /// Remove elements that equal a value from a list.
    ///
    /// `LREM key count element`: see [`lrem()`].
    pub fn lrem(&self, key: impl ToArg, count: impl ToInteger, element: impl ToArg) -> Typed<i64, &Self> {
        lrem(key, count, element).on(self)
    }
    /// Replace the element at an index of a list.
    ///
    /// `LSET key index element`: see [`lset()`].
    pub fn lset(&self, key: impl ToArg, index: impl ToInteger, element: impl ToArg) -> Typed<(), &Self> {
        lset(key, index, element).on(self)
    }
    /// Keep only the elements between two indexes.
    ///
    /// `LTRIM key start stop`: see [`ltrim()`].
    pub fn ltrim(&self, key: impl ToArg, start: impl ToInteger, stop: impl ToInteger) -> Typed<(), &Self> {
        ltrim(key, start, stop).on(self)
    }
    /// Take elements from the tail of a list.
    ///
    /// `RPOP key [count]`: see [`rpop()`].
    pub fn rpop(&self, key: impl ToArg) -> Rpop<Option<Bytes>, &Self> {
        rpop(key).on(self)
    }
    /// Move the last element of a list to the head of another.
    ///
    /// `RPOPLPUSH source destination`: see [`rpoplpush()`].
    pub fn rpoplpush(&self, source: impl ToArg, destination: impl ToArg) -> Typed<Option<Bytes>, &Self> {
        rpoplpush(source, destination).on(self)
    }
    /// Put elements at the tail of a list.
    ///
    /// `RPUSH key element [element ...]`: see [`rpush()`].
    pub fn rpush(&self, key: impl ToArg, elements: impl ToArgs) -> Typed<i64, &Self> {
        rpush(key, elements).on(self)
    }
    /// Put elements at the tail of a list that exists.
    ///
    /// `RPUSHX key element [element ...]`: see [`rpushx()`].
    pub fn rpushx(&self, key: impl ToArg, elements: impl ToArgs) -> Typed<i64, &Self> {
        rpushx(key, elements).on(self)
    }
}
