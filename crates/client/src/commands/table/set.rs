//! Commands of the group set.

// Written by `cargo xtask codegen` from the command table. Not to be edited.
#![allow(unused_imports, reason = "each group needs some of them")]
#![allow(clippy::type_complexity, clippy::too_many_arguments, reason = "replies and requests are what they are")]

use super::*;
use crate::commands::{Pairs, ToArg, ToDouble, ToInteger, Typed, builder};
use crate::{Reply, ToArgs, cmd};
use bytes::Bytes;
use std::collections::HashMap;

/// Add members to a set.
///
/// ```text
/// SADD key member [member ...]
/// ```
///
/// Since 1.0.0. Takes O(1). ACL: @write @set @fast.
/// See [Redis](https://redis.io/docs/latest/commands/sadd/) and [Valkey](https://valkey.io/commands/sadd/).
pub fn sadd(key: impl ToArg, members: impl ToArgs) -> Typed<i64> {
    let mut request = cmd("SADD");
    key.write_args(&mut request);
    members.write_args(&mut request);
    Typed::new(request)
}

/// Count the members of a set.
///
/// ```text
/// SCARD key
/// ```
///
/// Since 1.0.0. Takes O(1). ACL: @read @set @fast.
/// See [Redis](https://redis.io/docs/latest/commands/scard/) and [Valkey](https://valkey.io/commands/scard/).
pub fn scard(key: impl ToArg) -> Typed<i64> {
    let mut request = cmd("SCARD");
    key.write_args(&mut request);
    Typed::new(request)
}

/// List the members of a set that other sets lack.
///
/// ```text
/// SDIFF key [key ...]
/// ```
///
/// Since 1.0.0. Takes O(N). ACL: @read @set @slow.
/// See [Redis](https://redis.io/docs/latest/commands/sdiff/) and [Valkey](https://valkey.io/commands/sdiff/).
pub fn sdiff(keys: impl ToArgs) -> Typed<Vec<Bytes>> {
    let mut request = cmd("SDIFF");
    keys.write_args(&mut request);
    Typed::new(request)
}

/// Store the members of a set that other sets lack.
///
/// ```text
/// SDIFFSTORE destination key [key ...]
/// ```
///
/// Since 1.0.0. Takes O(N). ACL: @write @set @slow.
/// See [Redis](https://redis.io/docs/latest/commands/sdiffstore/) and [Valkey](https://valkey.io/commands/sdiffstore/).
pub fn sdiffstore(destination: impl ToArg, keys: impl ToArgs) -> Typed<i64> {
    let mut request = cmd("SDIFFSTORE");
    destination.write_args(&mut request);
    keys.write_args(&mut request);
    Typed::new(request)
}

/// List the members that all sets share.
///
/// ```text
/// SINTER key [key ...]
/// ```
///
/// Since 1.0.0. Takes O(N·M). ACL: @read @set @slow.
/// See [Redis](https://redis.io/docs/latest/commands/sinter/) and [Valkey](https://valkey.io/commands/sinter/).
pub fn sinter(keys: impl ToArgs) -> Typed<Vec<Bytes>> {
    let mut request = cmd("SINTER");
    keys.write_args(&mut request);
    Typed::new(request)
}

/// Count the members that all sets share.
///
/// ```text
/// SINTERCARD numkeys key [key ...] [LIMIT limit]
/// ```
///
/// Since 7.0.0. Takes O(N·M). ACL: @read @set @slow.
/// See [Redis](https://redis.io/docs/latest/commands/sintercard/) and [Valkey](https://valkey.io/commands/sintercard/).
pub fn sintercard(keys: impl ToArgs) -> Sintercard {
    let mut request = cmd("SINTERCARD");
    request.push_counted(1, |request| keys.write_args(request));
    let place = request.place();
    Sintercard::new(request, place)
}

builder! {
    /// A request of [`sintercard()`] and its options.
    Sintercard, i64
}

impl<T, S> Sintercard<T, S> {
    /// `LIMIT limit`.
    pub fn limit(self, limit: impl ToInteger) -> Self {
        self.with(|request| {
            request.push(b"LIMIT");
            limit.write_args(request);
        })
    }
}

/// Store the members that all sets share.
///
/// ```text
/// SINTERSTORE destination key [key ...]
/// ```
///
/// Since 1.0.0. Takes O(N·M). ACL: @write @set @slow.
/// See [Redis](https://redis.io/docs/latest/commands/sinterstore/) and [Valkey](https://valkey.io/commands/sinterstore/).
pub fn sinterstore(destination: impl ToArg, keys: impl ToArgs) -> Typed<i64> {
    let mut request = cmd("SINTERSTORE");
    destination.write_args(&mut request);
    keys.write_args(&mut request);
    Typed::new(request)
}

/// Tell whether a set has a member.
///
/// ```text
/// SISMEMBER key member
/// ```
///
/// Since 1.0.0. Takes O(1). ACL: @read @set @fast.
/// See [Redis](https://redis.io/docs/latest/commands/sismember/) and [Valkey](https://valkey.io/commands/sismember/).
pub fn sismember(key: impl ToArg, member: impl ToArg) -> Typed<bool> {
    let mut request = cmd("SISMEMBER");
    key.write_args(&mut request);
    member.write_args(&mut request);
    Typed::new(request)
}

/// List the members of a set.
///
/// ```text
/// SMEMBERS key
/// ```
///
/// Since 1.0.0. Takes O(N). ACL: @read @set @slow.
/// See [Redis](https://redis.io/docs/latest/commands/smembers/) and [Valkey](https://valkey.io/commands/smembers/).
pub fn smembers(key: impl ToArg) -> Typed<Vec<Bytes>> {
    let mut request = cmd("SMEMBERS");
    key.write_args(&mut request);
    Typed::new(request)
}

/// Tell which of several members a set has.
///
/// ```text
/// SMISMEMBER key member [member ...]
/// ```
///
/// Since 6.2.0. Takes O(N). ACL: @read @set @fast.
/// See [Redis](https://redis.io/docs/latest/commands/smismember/) and [Valkey](https://valkey.io/commands/smismember/).
pub fn smismember(key: impl ToArg, members: impl ToArgs) -> Typed<Vec<bool>> {
    let mut request = cmd("SMISMEMBER");
    key.write_args(&mut request);
    members.write_args(&mut request);
    Typed::new(request)
}

/// Move a member from one set to another.
///
/// ```text
/// SMOVE source destination member
/// ```
///
/// Since 1.0.0. Takes O(1). ACL: @write @set @fast.
/// See [Redis](https://redis.io/docs/latest/commands/smove/) and [Valkey](https://valkey.io/commands/smove/).
pub fn smove(source: impl ToArg, destination: impl ToArg, member: impl ToArg) -> Typed<bool> {
    let mut request = cmd("SMOVE");
    source.write_args(&mut request);
    destination.write_args(&mut request);
    member.write_args(&mut request);
    Typed::new(request)
}

/// Take random members from a set.
///
/// ```text
/// SPOP key [count]
/// ```
///
/// Since 1.0.0. ACL: @write @set @fast.
/// See [Redis](https://redis.io/docs/latest/commands/spop/) and [Valkey](https://valkey.io/commands/spop/).
pub fn spop(key: impl ToArg) -> Spop {
    let mut request = cmd("SPOP");
    key.write_args(&mut request);
    let place = request.place();
    Spop::new(request, place)
}

builder! {
    /// A request of [`spop()`] and its options.
    Spop, Option<Bytes>
}

impl<S> Spop<Option<Bytes>, S> {
    /// `count`, since 3.2.0.
    pub fn count(self, count: impl ToInteger) -> Spop<Vec<Bytes>, S> {
        self.with(|request| {
            count.write_args(request);
        })
        .retyped()
    }
}

impl<S> Spop<Vec<Bytes>, S> {
    /// `count`, since 3.2.0.
    pub fn count(self, count: impl ToInteger) -> Self {
        self.with(|request| {
            count.write_args(request);
        })
    }
}

/// Pick random members of a set.
///
/// ```text
/// SRANDMEMBER key [count]
/// ```
///
/// Since 1.0.0. ACL: @read @set @slow.
/// See [Redis](https://redis.io/docs/latest/commands/srandmember/) and [Valkey](https://valkey.io/commands/srandmember/).
pub fn srandmember(key: impl ToArg) -> Srandmember {
    let mut request = cmd("SRANDMEMBER");
    key.write_args(&mut request);
    let place = request.place();
    Srandmember::new(request, place)
}

builder! {
    /// A request of [`srandmember()`] and its options.
    Srandmember, Option<Bytes>
}

impl<S> Srandmember<Option<Bytes>, S> {
    /// `count`, since 2.6.0.
    pub fn count(self, count: impl ToInteger) -> Srandmember<Vec<Bytes>, S> {
        self.with(|request| {
            count.write_args(request);
        })
        .retyped()
    }
}

impl<S> Srandmember<Vec<Bytes>, S> {
    /// `count`, since 2.6.0.
    pub fn count(self, count: impl ToInteger) -> Self {
        self.with(|request| {
            count.write_args(request);
        })
    }
}

/// Remove members from a set.
///
/// ```text
/// SREM key member [member ...]
/// ```
///
/// Since 1.0.0. Takes O(N). ACL: @write @set @fast.
/// See [Redis](https://redis.io/docs/latest/commands/srem/) and [Valkey](https://valkey.io/commands/srem/).
pub fn srem(key: impl ToArg, members: impl ToArgs) -> Typed<i64> {
    let mut request = cmd("SREM");
    key.write_args(&mut request);
    members.write_args(&mut request);
    Typed::new(request)
}

/// Walk through a set in steps.
///
/// ```text
/// SSCAN key cursor [MATCH pattern] [COUNT count]
/// ```
///
/// Since 2.8.0. Takes O(1). ACL: @read @set @slow.
/// See [Redis](https://redis.io/docs/latest/commands/sscan/) and [Valkey](https://valkey.io/commands/sscan/).
pub fn sscan(key: impl ToArg, cursor: impl ToInteger) -> Sscan {
    let mut request = cmd("SSCAN");
    key.write_args(&mut request);
    cursor.write_args(&mut request);
    let place = request.place();
    Sscan::new(request, place)
}

builder! {
    /// A request of [`sscan()`] and its options.
    Sscan, (u64, Vec<Bytes>)
}

impl<T, S> Sscan<T, S> {
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

/// List the members of any of the sets.
///
/// ```text
/// SUNION key [key ...]
/// ```
///
/// Since 1.0.0. Takes O(N). ACL: @read @set @slow.
/// See [Redis](https://redis.io/docs/latest/commands/sunion/) and [Valkey](https://valkey.io/commands/sunion/).
pub fn sunion(keys: impl ToArgs) -> Typed<Vec<Bytes>> {
    let mut request = cmd("SUNION");
    keys.write_args(&mut request);
    Typed::new(request)
}

/// Store the members of any of the sets.
///
/// ```text
/// SUNIONSTORE destination key [key ...]
/// ```
///
/// Since 1.0.0. Takes O(N). ACL: @write @set @slow.
/// See [Redis](https://redis.io/docs/latest/commands/sunionstore/) and [Valkey](https://valkey.io/commands/sunionstore/).
pub fn sunionstore(destination: impl ToArg, keys: impl ToArgs) -> Typed<i64> {
    let mut request = cmd("SUNIONSTORE");
    destination.write_args(&mut request);
    keys.write_args(&mut request);
    Typed::new(request)
}

/// Commands of the group set.
impl crate::Client {
    /// Add members to a set.
    ///
    /// `SADD key member [member ...]`: see [`sadd()`].
    pub fn sadd(&self, key: impl ToArg, members: impl ToArgs) -> Typed<i64, &Self> {
        sadd(key, members).on(self)
    }
    /// Count the members of a set.
    ///
    /// `SCARD key`: see [`scard()`].
    pub fn scard(&self, key: impl ToArg) -> Typed<i64, &Self> {
        scard(key).on(self)
    }
    /// List the members of a set that other sets lack.
    ///
    /// `SDIFF key [key ...]`: see [`sdiff()`].
    pub fn sdiff(&self, keys: impl ToArgs) -> Typed<Vec<Bytes>, &Self> {
        sdiff(keys).on(self)
    }
    /// Store the members of a set that other sets lack.
    ///
    /// `SDIFFSTORE destination key [key ...]`: see [`sdiffstore()`].
    pub fn sdiffstore(&self, destination: impl ToArg, keys: impl ToArgs) -> Typed<i64, &Self> {
        sdiffstore(destination, keys).on(self)
    }
    /// List the members that all sets share.
    ///
    /// `SINTER key [key ...]`: see [`sinter()`].
    pub fn sinter(&self, keys: impl ToArgs) -> Typed<Vec<Bytes>, &Self> {
        sinter(keys).on(self)
    }
    /// Count the members that all sets share.
    ///
    /// `SINTERCARD numkeys key [key ...] [LIMIT limit]`: see [`sintercard()`].
    pub fn sintercard(&self, keys: impl ToArgs) -> Sintercard<i64, &Self> {
        sintercard(keys).on(self)
    }
    /// Store the members that all sets share.
    ///
    /// `SINTERSTORE destination key [key ...]`: see [`sinterstore()`].
    pub fn sinterstore(&self, destination: impl ToArg, keys: impl ToArgs) -> Typed<i64, &Self> {
        sinterstore(destination, keys).on(self)
    }
    /// Tell whether a set has a member.
    ///
    /// `SISMEMBER key member`: see [`sismember()`].
    pub fn sismember(&self, key: impl ToArg, member: impl ToArg) -> Typed<bool, &Self> {
        sismember(key, member).on(self)
    }
    /// List the members of a set.
    ///
    /// `SMEMBERS key`: see [`smembers()`].
    pub fn smembers(&self, key: impl ToArg) -> Typed<Vec<Bytes>, &Self> {
        smembers(key).on(self)
    }
    /// Tell which of several members a set has.
    ///
    /// `SMISMEMBER key member [member ...]`: see [`smismember()`].
    pub fn smismember(&self, key: impl ToArg, members: impl ToArgs) -> Typed<Vec<bool>, &Self> {
        smismember(key, members).on(self)
    }
    /// Move a member from one set to another.
    ///
    /// `SMOVE source destination member`: see [`smove()`].
    pub fn smove(&self, source: impl ToArg, destination: impl ToArg, member: impl ToArg) -> Typed<bool, &Self> {
        smove(source, destination, member).on(self)
    }
    /// Take random members from a set.
    ///
    /// `SPOP key [count]`: see [`spop()`].
    pub fn spop(&self, key: impl ToArg) -> Spop<Option<Bytes>, &Self> {
        spop(key).on(self)
    }
    /// Pick random members of a set.
    ///
    /// `SRANDMEMBER key [count]`: see [`srandmember()`].
    pub fn srandmember(&self, key: impl ToArg) -> Srandmember<Option<Bytes>, &Self> {
        srandmember(key).on(self)
    }
    /// Remove members from a set.
    ///
    /// `SREM key member [member ...]`: see [`srem()`].
    pub fn srem(&self, key: impl ToArg, members: impl ToArgs) -> Typed<i64, &Self> {
        srem(key, members).on(self)
    }
    /// Walk through a set in steps.
    ///
    /// `SSCAN key cursor [MATCH pattern] [COUNT count]`: see [`sscan()`].
    pub fn sscan(&self, key: impl ToArg, cursor: impl ToInteger) -> Sscan<(u64, Vec<Bytes>), &Self> {
        sscan(key, cursor).on(self)
    }
    /// List the members of any of the sets.
    ///
    /// `SUNION key [key ...]`: see [`sunion()`].
    pub fn sunion(&self, keys: impl ToArgs) -> Typed<Vec<Bytes>, &Self> {
        sunion(keys).on(self)
    }
    /// Store the members of any of the sets.
    ///
    /// `SUNIONSTORE destination key [key ...]`: see [`sunionstore()`].
    pub fn sunionstore(&self, destination: impl ToArg, keys: impl ToArgs) -> Typed<i64, &Self> {
        sunionstore(destination, keys).on(self)
    }
}
