//! Commands of the group sorted-set.

// Written by `cargo xtask codegen` from the command table. Not to be edited.
#![allow(unused_imports, reason = "each group needs some of them")]
#![allow(clippy::type_complexity, clippy::too_many_arguments, reason = "replies and requests are what they are")]

use super::*;
use crate::commands::{Pairs, ToArg, ToDouble, ToInteger, Typed, builder};
use crate::{Reply, ToArgs, cmd};
use bytes::Bytes;
use std::collections::HashMap;

/// Take members with the least or greatest scores from the first sorted set that has any, waiting for one.
///
/// ```text
/// BZMPOP timeout numkeys key [key ...] <MIN | MAX> [COUNT count]
/// ```
///
/// Since 7.0.0. Takes O(K) + O(M·log(N)). ACL: @write @sortedset @slow @blocking.
/// See [Redis](https://redis.io/docs/latest/commands/bzmpop/) and [Valkey](https://valkey.io/commands/bzmpop/).
pub fn bzmpop(timeout: impl ToDouble, keys: impl ToArgs, where_: MinMax) -> Bzmpop {
    let mut request = cmd("BZMPOP");
    timeout.write_args(&mut request);
    request.push_counted(1, |request| keys.write_args(request));
    where_.write_args(&mut request);
    let place = request.place();
    Bzmpop::new(request, place)
}

builder! {
    /// A request of [`bzmpop()`] and its options.
    Bzmpop, Option<(Bytes, Vec<(Bytes, f64)>)>
}

impl<T, S> Bzmpop<T, S> {
    /// `COUNT count`.
    pub fn count(self, count: impl ToInteger) -> Self {
        self.with(|request| {
            request.push(b"COUNT");
            count.write_args(request);
        })
    }
}

/// Take the member with the greatest score from the first sorted set that has any, waiting for one.
///
/// ```text
/// BZPOPMAX key [key ...] timeout
/// ```
///
/// Since 5.0.0. Takes O(log(N)). ACL: @write @sortedset @fast @blocking.
/// See [Redis](https://redis.io/docs/latest/commands/bzpopmax/) and [Valkey](https://valkey.io/commands/bzpopmax/).
pub fn bzpopmax(keys: impl ToArgs, timeout: impl ToDouble) -> Typed<Option<(Bytes, Bytes, f64)>> {
    let mut request = cmd("BZPOPMAX");
    keys.write_args(&mut request);
    timeout.write_args(&mut request);
    Typed::new(request)
}

/// Take the member with the least score from the first sorted set that has any, waiting for one.
///
/// ```text
/// BZPOPMIN key [key ...] timeout
/// ```
///
/// Since 5.0.0. Takes O(log(N)). ACL: @write @sortedset @fast @blocking.
/// See [Redis](https://redis.io/docs/latest/commands/bzpopmin/) and [Valkey](https://valkey.io/commands/bzpopmin/).
pub fn bzpopmin(keys: impl ToArgs, timeout: impl ToDouble) -> Typed<Option<(Bytes, Bytes, f64)>> {
    let mut request = cmd("BZPOPMIN");
    keys.write_args(&mut request);
    timeout.write_args(&mut request);
    Typed::new(request)
}

/// Add members to a sorted set or change their scores.
///
/// ```text
/// ZADD key [NX | XX] [GT | LT] [CH] [INCR] score member [score member ...]
/// ```
///
/// Since 1.2.0. Takes O(log(N)). ACL: @write @sortedset @fast.
/// See [Redis](https://redis.io/docs/latest/commands/zadd/) and [Valkey](https://valkey.io/commands/zadd/).
pub fn zadd(key: impl ToArg, pairs: impl ToArgs) -> Zadd {
    let mut request = cmd("ZADD");
    key.write_args(&mut request);
    let place = request.place();
    pairs.write_args(&mut request);
    Zadd::new(request, place)
}

builder! {
    /// A request of [`zadd()`] and its options.
    Zadd, i64
}

impl<T, S> Zadd<T, S> {
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
    /// `CH`, since 3.0.2.
    pub fn ch(self) -> Self {
        self.with(|request| {
            request.push(b"CH");
        })
    }
}

impl<S> Zadd<i64, S> {
    /// `INCR`, since 3.0.2.
    pub fn incr(self) -> Zadd<Option<f64>, S> {
        self.with(|request| {
            request.push(b"INCR");
        })
        .retyped()
    }
}

impl<S> Zadd<Option<f64>, S> {
    /// `INCR`, since 3.0.2.
    pub fn incr(self) -> Self {
        self.with(|request| {
            request.push(b"INCR");
        })
    }
}

/// Count the members of a sorted set.
///
/// ```text
/// ZCARD key
/// ```
///
/// Since 1.2.0. Takes O(1). ACL: @read @sortedset @fast.
/// See [Redis](https://redis.io/docs/latest/commands/zcard/) and [Valkey](https://valkey.io/commands/zcard/).
pub fn zcard(key: impl ToArg) -> Typed<i64> {
    let mut request = cmd("ZCARD");
    key.write_args(&mut request);
    Typed::new(request)
}

/// Count the members with scores in a range.
///
/// ```text
/// ZCOUNT key min max
/// ```
///
/// Since 2.0.0. Takes O(log(N)). ACL: @read @sortedset @fast.
/// See [Redis](https://redis.io/docs/latest/commands/zcount/) and [Valkey](https://valkey.io/commands/zcount/).
pub fn zcount(key: impl ToArg, min: impl ToDouble, max: impl ToDouble) -> Typed<i64> {
    let mut request = cmd("ZCOUNT");
    key.write_args(&mut request);
    min.write_args(&mut request);
    max.write_args(&mut request);
    Typed::new(request)
}

/// List the members of a sorted set that others lack.
///
/// ```text
/// ZDIFF numkeys key [key ...] [WITHSCORES]
/// ```
///
/// Since 6.2.0. Takes O(L + (N-K)log(N)). ACL: @read @sortedset @slow.
/// See [Redis](https://redis.io/docs/latest/commands/zdiff/) and [Valkey](https://valkey.io/commands/zdiff/).
pub fn zdiff(keys: impl ToArgs) -> Zdiff {
    let mut request = cmd("ZDIFF");
    request.push_counted(1, |request| keys.write_args(request));
    let place = request.place();
    Zdiff::new(request, place)
}

builder! {
    /// A request of [`zdiff()`] and its options.
    Zdiff, Vec<Bytes>
}

impl<S> Zdiff<Vec<Bytes>, S> {
    /// `WITHSCORES`.
    pub fn withscores(self) -> Zdiff<Pairs<Bytes, f64>, S> {
        self.with(|request| {
            request.push(b"WITHSCORES");
        })
        .retyped()
    }
}

impl<S> Zdiff<Pairs<Bytes, f64>, S> {
    /// `WITHSCORES`.
    pub fn withscores(self) -> Self {
        self.with(|request| {
            request.push(b"WITHSCORES");
        })
    }
}

/// Store the members of a sorted set that others lack.
///
/// ```text
/// ZDIFFSTORE destination numkeys key [key ...]
/// ```
///
/// Since 6.2.0. Takes O(L + (N-K)log(N)). ACL: @write @sortedset @slow.
/// See [Redis](https://redis.io/docs/latest/commands/zdiffstore/) and [Valkey](https://valkey.io/commands/zdiffstore/).
pub fn zdiffstore(destination: impl ToArg, keys: impl ToArgs) -> Typed<i64> {
    let mut request = cmd("ZDIFFSTORE");
    destination.write_args(&mut request);
    request.push_counted(1, |request| keys.write_args(request));
    Typed::new(request)
}

/// Add to a member's score.
///
/// ```text
/// ZINCRBY key increment member
/// ```
///
/// Since 1.2.0. Takes O(log(N)). ACL: @write @sortedset @fast.
/// See [Redis](https://redis.io/docs/latest/commands/zincrby/) and [Valkey](https://valkey.io/commands/zincrby/).
pub fn zincrby(key: impl ToArg, increment: impl ToDouble, member: impl ToArg) -> Typed<f64> {
    let mut request = cmd("ZINCRBY");
    key.write_args(&mut request);
    increment.write_args(&mut request);
    member.write_args(&mut request);
    Typed::new(request)
}

/// List the members that all sorted sets share.
///
/// ```text
/// ZINTER numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE SUM | MIN | MAX] [WITHSCORES]
/// ```
///
/// Since 6.2.0. Takes O(N·K)+O(M·log(M)). ACL: @read @sortedset @slow.
/// See [Redis](https://redis.io/docs/latest/commands/zinter/) and [Valkey](https://valkey.io/commands/zinter/).
pub fn zinter(keys: impl ToArgs) -> Zinter {
    let mut request = cmd("ZINTER");
    request.push_counted(1, |request| keys.write_args(request));
    let place = request.place();
    Zinter::new(request, place)
}

builder! {
    /// A request of [`zinter()`] and its options.
    Zinter, Vec<Bytes>
}

impl<T, S> Zinter<T, S> {
    /// `WEIGHTS weight [weight ...]`.
    pub fn weights(self, weights: impl ToArgs) -> Self {
        self.with(|request| {
            request.push(b"WEIGHTS");
            weights.write_args(request);
        })
    }
    /// `AGGREGATE SUM | MIN | MAX`.
    pub fn aggregate(self, aggregate: Aggregate) -> Self {
        self.with(|request| {
            request.push(b"AGGREGATE");
            aggregate.write_args(request);
        })
    }
}

impl<S> Zinter<Vec<Bytes>, S> {
    /// `WITHSCORES`.
    pub fn withscores(self) -> Zinter<Pairs<Bytes, f64>, S> {
        self.with(|request| {
            request.push(b"WITHSCORES");
        })
        .retyped()
    }
}

impl<S> Zinter<Pairs<Bytes, f64>, S> {
    /// `WITHSCORES`.
    pub fn withscores(self) -> Self {
        self.with(|request| {
            request.push(b"WITHSCORES");
        })
    }
}

/// Count the members that all sorted sets share.
///
/// ```text
/// ZINTERCARD numkeys key [key ...] [LIMIT limit]
/// ```
///
/// Since 7.0.0. Takes O(N·K). ACL: @read @sortedset @slow.
/// See [Redis](https://redis.io/docs/latest/commands/zintercard/) and [Valkey](https://valkey.io/commands/zintercard/).
pub fn zintercard(keys: impl ToArgs) -> Zintercard {
    let mut request = cmd("ZINTERCARD");
    request.push_counted(1, |request| keys.write_args(request));
    let place = request.place();
    Zintercard::new(request, place)
}

builder! {
    /// A request of [`zintercard()`] and its options.
    Zintercard, i64
}

impl<T, S> Zintercard<T, S> {
    /// `LIMIT limit`.
    pub fn limit(self, limit: impl ToInteger) -> Self {
        self.with(|request| {
            request.push(b"LIMIT");
            limit.write_args(request);
        })
    }
}

/// Store the members that all sorted sets share.
///
/// ```text
/// ZINTERSTORE destination numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE SUM | MIN | MAX]
/// ```
///
/// Since 2.0.0. Takes O(N·K)+O(M·log(M)). ACL: @write @sortedset @slow.
/// See [Redis](https://redis.io/docs/latest/commands/zinterstore/) and [Valkey](https://valkey.io/commands/zinterstore/).
pub fn zinterstore(destination: impl ToArg, keys: impl ToArgs) -> Zinterstore {
    let mut request = cmd("ZINTERSTORE");
    destination.write_args(&mut request);
    request.push_counted(1, |request| keys.write_args(request));
    let place = request.place();
    Zinterstore::new(request, place)
}

builder! {
    /// A request of [`zinterstore()`] and its options.
    Zinterstore, i64
}

impl<T, S> Zinterstore<T, S> {
    /// `WEIGHTS weight [weight ...]`.
    pub fn weights(self, weights: impl ToArgs) -> Self {
        self.with(|request| {
            request.push(b"WEIGHTS");
            weights.write_args(request);
        })
    }
    /// `AGGREGATE SUM | MIN | MAX`.
    pub fn aggregate(self, aggregate: Aggregate) -> Self {
        self.with(|request| {
            request.push(b"AGGREGATE");
            aggregate.write_args(request);
        })
    }
}

/// Count the members in a lexicographical range.
///
/// ```text
/// ZLEXCOUNT key min max
/// ```
///
/// Since 2.8.9. Takes O(log(N)). ACL: @read @sortedset @fast.
/// See [Redis](https://redis.io/docs/latest/commands/zlexcount/) and [Valkey](https://valkey.io/commands/zlexcount/).
pub fn zlexcount(key: impl ToArg, min: impl ToArg, max: impl ToArg) -> Typed<i64> {
    let mut request = cmd("ZLEXCOUNT");
    key.write_args(&mut request);
    min.write_args(&mut request);
    max.write_args(&mut request);
    Typed::new(request)
}

/// Take members with the least or greatest scores from the first sorted set that has any.
///
/// ```text
/// ZMPOP numkeys key [key ...] <MIN | MAX> [COUNT count]
/// ```
///
/// Since 7.0.0. Takes O(K) + O(M·log(N)). ACL: @write @sortedset @slow.
/// See [Redis](https://redis.io/docs/latest/commands/zmpop/) and [Valkey](https://valkey.io/commands/zmpop/).
pub fn zmpop(keys: impl ToArgs, where_: MinMax) -> Zmpop {
    let mut request = cmd("ZMPOP");
    request.push_counted(1, |request| keys.write_args(request));
    where_.write_args(&mut request);
    let place = request.place();
    Zmpop::new(request, place)
}

builder! {
    /// A request of [`zmpop()`] and its options.
    Zmpop, Option<(Bytes, Vec<(Bytes, f64)>)>
}

impl<T, S> Zmpop<T, S> {
    /// `COUNT count`.
    pub fn count(self, count: impl ToInteger) -> Self {
        self.with(|request| {
            request.push(b"COUNT");
            count.write_args(request);
        })
    }
}

/// Tell the scores of several members.
///
/// ```text
/// ZMSCORE key member [member ...]
/// ```
///
/// Since 6.2.0. Takes O(N). ACL: @read @sortedset @fast.
/// See [Redis](https://redis.io/docs/latest/commands/zmscore/) and [Valkey](https://valkey.io/commands/zmscore/).
pub fn zmscore(key: impl ToArg, members: impl ToArgs) -> Typed<Vec<Option<f64>>> {
    let mut request = cmd("ZMSCORE");
    key.write_args(&mut request);
    members.write_args(&mut request);
    Typed::new(request)
}

/// Take the members with the greatest scores.
///
/// ```text
/// ZPOPMAX key [count]
/// ```
///
/// Since 5.0.0. Takes O(log(N)·M). ACL: @write @sortedset @fast.
/// See [Redis](https://redis.io/docs/latest/commands/zpopmax/) and [Valkey](https://valkey.io/commands/zpopmax/).
pub fn zpopmax(key: impl ToArg) -> Zpopmax {
    let mut request = cmd("ZPOPMAX");
    key.write_args(&mut request);
    let place = request.place();
    Zpopmax::new(request, place)
}

builder! {
    /// A request of [`zpopmax()`] and its options.
    Zpopmax, Pairs<Bytes, f64>
}

impl<T, S> Zpopmax<T, S> {
    /// `count`.
    pub fn count(self, count: impl ToInteger) -> Self {
        self.with(|request| {
            count.write_args(request);
        })
    }
}

/// Take the members with the least scores.
///
/// ```text
/// ZPOPMIN key [count]
/// ```
///
/// Since 5.0.0. Takes O(log(N)·M). ACL: @write @sortedset @fast.
/// See [Redis](https://redis.io/docs/latest/commands/zpopmin/) and [Valkey](https://valkey.io/commands/zpopmin/).
pub fn zpopmin(key: impl ToArg) -> Zpopmin {
    let mut request = cmd("ZPOPMIN");
    key.write_args(&mut request);
    let place = request.place();
    Zpopmin::new(request, place)
}

builder! {
    /// A request of [`zpopmin()`] and its options.
    Zpopmin, Pairs<Bytes, f64>
}

impl<T, S> Zpopmin<T, S> {
    /// `count`.
    pub fn count(self, count: impl ToInteger) -> Self {
        self.with(|request| {
            count.write_args(request);
        })
    }
}

/// Pick random members of a sorted set.
///
/// ```text
/// ZRANDMEMBER key [count [WITHSCORES]]
/// ```
///
/// Since 6.2.0. Takes O(N). ACL: @read @sortedset @slow.
/// See [Redis](https://redis.io/docs/latest/commands/zrandmember/) and [Valkey](https://valkey.io/commands/zrandmember/).
pub fn zrandmember(key: impl ToArg) -> Zrandmember {
    let mut request = cmd("ZRANDMEMBER");
    key.write_args(&mut request);
    let place = request.place();
    Zrandmember::new(request, place)
}

builder! {
    /// A request of [`zrandmember()`] and its options.
    Zrandmember, Option<Bytes>
}

impl<S> Zrandmember<Option<Bytes>, S> {
    /// `count`.
    pub fn count(self, count: impl ToInteger) -> Zrandmember<Vec<Bytes>, S> {
        self.with(|request| {
            count.write_args(request);
        })
        .retyped()
    }
    /// `WITHSCORES`.
    pub fn withscores(self) -> Zrandmember<Pairs<Bytes, f64>, S> {
        self.with(|request| {
            request.push(b"WITHSCORES");
        })
        .retyped()
    }
}

impl<S> Zrandmember<Vec<Bytes>, S> {
    /// `count`.
    pub fn count(self, count: impl ToInteger) -> Self {
        self.with(|request| {
            count.write_args(request);
        })
    }
    /// `WITHSCORES`.
    pub fn withscores(self) -> Zrandmember<Pairs<Bytes, f64>, S> {
        self.with(|request| {
            request.push(b"WITHSCORES");
        })
        .retyped()
    }
}

impl<S> Zrandmember<Pairs<Bytes, f64>, S> {
    /// `count`.
    pub fn count(self, count: impl ToInteger) -> Self {
        self.with(|request| {
            count.write_args(request);
        })
    }
    /// `WITHSCORES`.
    pub fn withscores(self) -> Self {
        self.with(|request| {
            request.push(b"WITHSCORES");
        })
    }
}

/// List members in a range of ranks, scores or names.
///
/// ```text
/// ZRANGE key start stop [BYSCORE | BYLEX] [REV] [LIMIT offset count] [WITHSCORES]
/// ```
///
/// Since 1.2.0. Takes O(log(N)+M). ACL: @read @sortedset @slow.
/// See [Redis](https://redis.io/docs/latest/commands/zrange/) and [Valkey](https://valkey.io/commands/zrange/).
pub fn zrange(key: impl ToArg, start: impl ToArg, stop: impl ToArg) -> Zrange {
    let mut request = cmd("ZRANGE");
    key.write_args(&mut request);
    start.write_args(&mut request);
    stop.write_args(&mut request);
    let place = request.place();
    Zrange::new(request, place)
}

builder! {
    /// A request of [`zrange()`] and its options.
    Zrange, Vec<Bytes>
}

impl<T, S> Zrange<T, S> {
    /// `BYSCORE`.
    pub fn byscore(self) -> Self {
        self.with(|request| {
            request.push(b"BYSCORE");
        })
    }
    /// `BYLEX`.
    pub fn bylex(self) -> Self {
        self.with(|request| {
            request.push(b"BYLEX");
        })
    }
    /// `REV`, since 6.2.0.
    pub fn rev(self) -> Self {
        self.with(|request| {
            request.push(b"REV");
        })
    }
    /// `LIMIT offset count`, since 6.2.0.
    pub fn limit(self, offset: impl ToInteger, count: impl ToInteger) -> Self {
        self.with(|request| {
            request.push(b"LIMIT");
            offset.write_args(request);
            count.write_args(request);
        })
    }
}

impl<S> Zrange<Vec<Bytes>, S> {
    /// `WITHSCORES`.
    pub fn withscores(self) -> Zrange<Pairs<Bytes, f64>, S> {
        self.with(|request| {
            request.push(b"WITHSCORES");
        })
        .retyped()
    }
}

impl<S> Zrange<Pairs<Bytes, f64>, S> {
    /// `WITHSCORES`.
    pub fn withscores(self) -> Self {
        self.with(|request| {
            request.push(b"WITHSCORES");
        })
    }
}

/// List members in a lexicographical range.
///
/// ```text
/// ZRANGEBYLEX key min max [LIMIT offset count]
/// ```
///
/// Since 2.8.9. Deprecated since 6.2.0: use ZRANGE with BYLEX. Takes O(log(N)+M). ACL: @read @sortedset @slow.
/// See [Redis](https://redis.io/docs/latest/commands/zrangebylex/) and [Valkey](https://valkey.io/commands/zrangebylex/).
pub fn zrangebylex(key: impl ToArg, min: impl ToArg, max: impl ToArg) -> Zrangebylex {
    let mut request = cmd("ZRANGEBYLEX");
    key.write_args(&mut request);
    min.write_args(&mut request);
    max.write_args(&mut request);
    let place = request.place();
    Zrangebylex::new(request, place)
}

builder! {
    /// A request of [`zrangebylex()`] and its options.
    Zrangebylex, Vec<Bytes>
}

impl<T, S> Zrangebylex<T, S> {
    /// `LIMIT offset count`.
    pub fn limit(self, offset: impl ToInteger, count: impl ToInteger) -> Self {
        self.with(|request| {
            request.push(b"LIMIT");
            offset.write_args(request);
            count.write_args(request);
        })
    }
}

/// List members with scores in a range.
///
/// ```text
/// ZRANGEBYSCORE key min max [WITHSCORES] [LIMIT offset count]
/// ```
///
/// Since 1.0.5. Deprecated since 6.2.0: use ZRANGE with BYSCORE. Takes O(log(N)+M). ACL: @read @sortedset @slow.
/// See [Redis](https://redis.io/docs/latest/commands/zrangebyscore/) and [Valkey](https://valkey.io/commands/zrangebyscore/).
pub fn zrangebyscore(key: impl ToArg, min: impl ToDouble, max: impl ToDouble) -> Zrangebyscore {
    let mut request = cmd("ZRANGEBYSCORE");
    key.write_args(&mut request);
    min.write_args(&mut request);
    max.write_args(&mut request);
    let place = request.place();
    Zrangebyscore::new(request, place)
}

builder! {
    /// A request of [`zrangebyscore()`] and its options.
    Zrangebyscore, Vec<Bytes>
}

impl<T, S> Zrangebyscore<T, S> {
    /// `LIMIT offset count`.
    pub fn limit(self, offset: impl ToInteger, count: impl ToInteger) -> Self {
        self.with(|request| {
            request.push(b"LIMIT");
            offset.write_args(request);
            count.write_args(request);
        })
    }
}

impl<S> Zrangebyscore<Vec<Bytes>, S> {
    /// `WITHSCORES`, since 2.0.0.
    pub fn withscores(self) -> Zrangebyscore<Pairs<Bytes, f64>, S> {
        self.with(|request| {
            request.push(b"WITHSCORES");
        })
        .retyped()
    }
}

impl<S> Zrangebyscore<Pairs<Bytes, f64>, S> {
    /// `WITHSCORES`, since 2.0.0.
    pub fn withscores(self) -> Self {
        self.with(|request| {
            request.push(b"WITHSCORES");
        })
    }
}

/// Store members in a range of ranks, scores or names.
///
/// ```text
/// ZRANGESTORE dst src min max [BYSCORE | BYLEX] [REV] [LIMIT offset count]
/// ```
///
/// Since 6.2.0. Takes O(log(N)+M). ACL: @write @sortedset @slow.
/// See [Redis](https://redis.io/docs/latest/commands/zrangestore/) and [Valkey](https://valkey.io/commands/zrangestore/).
pub fn zrangestore(dst: impl ToArg, src: impl ToArg, min: impl ToArg, max: impl ToArg) -> Zrangestore {
    let mut request = cmd("ZRANGESTORE");
    dst.write_args(&mut request);
    src.write_args(&mut request);
    min.write_args(&mut request);
    max.write_args(&mut request);
    let place = request.place();
    Zrangestore::new(request, place)
}

builder! {
    /// A request of [`zrangestore()`] and its options.
    Zrangestore, i64
}

impl<T, S> Zrangestore<T, S> {
    /// `BYSCORE`.
    pub fn byscore(self) -> Self {
        self.with(|request| {
            request.push(b"BYSCORE");
        })
    }
    /// `BYLEX`.
    pub fn bylex(self) -> Self {
        self.with(|request| {
            request.push(b"BYLEX");
        })
    }
    /// `REV`.
    pub fn rev(self) -> Self {
        self.with(|request| {
            request.push(b"REV");
        })
    }
    /// `LIMIT offset count`.
    pub fn limit(self, offset: impl ToInteger, count: impl ToInteger) -> Self {
        self.with(|request| {
            request.push(b"LIMIT");
            offset.write_args(request);
            count.write_args(request);
        })
    }
}

/// Tell a member's rank from the least score.
///
/// ```text
/// ZRANK key member
/// ```
///
/// Since 2.0.0. Takes O(log(N)). ACL: @read @sortedset @fast.
/// See [Redis](https://redis.io/docs/latest/commands/zrank/) and [Valkey](https://valkey.io/commands/zrank/).
pub fn zrank(key: impl ToArg, member: impl ToArg) -> Typed<Option<i64>> {
    let mut request = cmd("ZRANK");
    key.write_args(&mut request);
    member.write_args(&mut request);
    Typed::new(request)
}

/// Remove members from a sorted set.
///
/// ```text
/// ZREM key member [member ...]
/// ```
///
/// Since 1.2.0. Takes O(M·log(N)). ACL: @write @sortedset @fast.
/// See [Redis](https://redis.io/docs/latest/commands/zrem/) and [Valkey](https://valkey.io/commands/zrem/).
pub fn zrem(key: impl ToArg, members: impl ToArgs) -> Typed<i64> {
    let mut request = cmd("ZREM");
    key.write_args(&mut request);
    members.write_args(&mut request);
    Typed::new(request)
}

/// Remove members in a lexicographical range.
///
/// ```text
/// ZREMRANGEBYLEX key min max
/// ```
///
/// Since 2.8.9. Takes O(log(N)+M). ACL: @write @sortedset @slow.
/// See [Redis](https://redis.io/docs/latest/commands/zremrangebylex/) and [Valkey](https://valkey.io/commands/zremrangebylex/).
pub fn zremrangebylex(key: impl ToArg, min: impl ToArg, max: impl ToArg) -> Typed<i64> {
    let mut request = cmd("ZREMRANGEBYLEX");
    key.write_args(&mut request);
    min.write_args(&mut request);
    max.write_args(&mut request);
    Typed::new(request)
}

/// Remove members in a range of ranks.
///
/// ```text
/// ZREMRANGEBYRANK key start stop
/// ```
///
/// Since 2.0.0. Takes O(log(N)+M). ACL: @write @sortedset @slow.
/// See [Redis](https://redis.io/docs/latest/commands/zremrangebyrank/) and [Valkey](https://valkey.io/commands/zremrangebyrank/).
pub fn zremrangebyrank(key: impl ToArg, start: impl ToInteger, stop: impl ToInteger) -> Typed<i64> {
    let mut request = cmd("ZREMRANGEBYRANK");
    key.write_args(&mut request);
    start.write_args(&mut request);
    stop.write_args(&mut request);
    Typed::new(request)
}

/// Remove members with scores in a range.
///
/// ```text
/// ZREMRANGEBYSCORE key min max
/// ```
///
/// Since 1.2.0. Takes O(log(N)+M). ACL: @write @sortedset @slow.
/// See [Redis](https://redis.io/docs/latest/commands/zremrangebyscore/) and [Valkey](https://valkey.io/commands/zremrangebyscore/).
pub fn zremrangebyscore(key: impl ToArg, min: impl ToDouble, max: impl ToDouble) -> Typed<i64> {
    let mut request = cmd("ZREMRANGEBYSCORE");
    key.write_args(&mut request);
    min.write_args(&mut request);
    max.write_args(&mut request);
    Typed::new(request)
}

/// List members in a range of ranks, greatest score first.
///
/// ```text
/// ZREVRANGE key start stop [WITHSCORES]
/// ```
///
/// Since 1.2.0. Deprecated since 6.2.0: use ZRANGE with REV. Takes O(log(N)+M). ACL: @read @sortedset @slow.
/// See [Redis](https://redis.io/docs/latest/commands/zrevrange/) and [Valkey](https://valkey.io/commands/zrevrange/).
pub fn zrevrange(key: impl ToArg, start: impl ToInteger, stop: impl ToInteger) -> Zrevrange {
    let mut request = cmd("ZREVRANGE");
    key.write_args(&mut request);
    start.write_args(&mut request);
    stop.write_args(&mut request);
    let place = request.place();
    Zrevrange::new(request, place)
}

builder! {
    /// A request of [`zrevrange()`] and its options.
    Zrevrange, Vec<Bytes>
}

impl<S> Zrevrange<Vec<Bytes>, S> {
    /// `WITHSCORES`.
    pub fn withscores(self) -> Zrevrange<Pairs<Bytes, f64>, S> {
        self.with(|request| {
            request.push(b"WITHSCORES");
        })
        .retyped()
    }
}

impl<S> Zrevrange<Pairs<Bytes, f64>, S> {
    /// `WITHSCORES`.
    pub fn withscores(self) -> Self {
        self.with(|request| {
            request.push(b"WITHSCORES");
        })
    }
}

/// List members in a lexicographical range, last name first.
///
/// ```text
/// ZREVRANGEBYLEX key max min [LIMIT offset count]
/// ```
///
/// Since 2.8.9. Deprecated since 6.2.0: use ZRANGE with REV and BYLEX. Takes O(log(N)+M). ACL: @read @sortedset @slow.
/// See [Redis](https://redis.io/docs/latest/commands/zrevrangebylex/) and [Valkey](https://valkey.io/commands/zrevrangebylex/).
pub fn zrevrangebylex(key: impl ToArg, max: impl ToArg, min: impl ToArg) -> Zrevrangebylex {
    let mut request = cmd("ZREVRANGEBYLEX");
    key.write_args(&mut request);
    max.write_args(&mut request);
    min.write_args(&mut request);
    let place = request.place();
    Zrevrangebylex::new(request, place)
}

builder! {
    /// A request of [`zrevrangebylex()`] and its options.
    Zrevrangebylex, Vec<Bytes>
}

impl<T, S> Zrevrangebylex<T, S> {
    /// `LIMIT offset count`.
    pub fn limit(self, offset: impl ToInteger, count: impl ToInteger) -> Self {
        self.with(|request| {
            request.push(b"LIMIT");
            offset.write_args(request);
            count.write_args(request);
        })
    }
}

/// List members with scores in a range, greatest first.
///
/// ```text
/// ZREVRANGEBYSCORE key max min [WITHSCORES] [LIMIT offset count]
/// ```
///
/// Since 2.2.0. Deprecated since 6.2.0: use ZRANGE with REV and BYSCORE. Takes O(log(N)+M). ACL: @read @sortedset @slow.
/// See [Redis](https://redis.io/docs/latest/commands/zrevrangebyscore/) and [Valkey](https://valkey.io/commands/zrevrangebyscore/).
pub fn zrevrangebyscore(key: impl ToArg, max: impl ToDouble, min: impl ToDouble) -> Zrevrangebyscore {
    let mut request = cmd("ZREVRANGEBYSCORE");
    key.write_args(&mut request);
    max.write_args(&mut request);
    min.write_args(&mut request);
    let place = request.place();
    Zrevrangebyscore::new(request, place)
}

builder! {
    /// A request of [`zrevrangebyscore()`] and its options.
    Zrevrangebyscore, Vec<Bytes>
}

impl<T, S> Zrevrangebyscore<T, S> {
    /// `LIMIT offset count`.
    pub fn limit(self, offset: impl ToInteger, count: impl ToInteger) -> Self {
        self.with(|request| {
            request.push(b"LIMIT");
            offset.write_args(request);
            count.write_args(request);
        })
    }
}

impl<S> Zrevrangebyscore<Vec<Bytes>, S> {
    /// `WITHSCORES`.
    pub fn withscores(self) -> Zrevrangebyscore<Pairs<Bytes, f64>, S> {
        self.with(|request| {
            request.push(b"WITHSCORES");
        })
        .retyped()
    }
}

impl<S> Zrevrangebyscore<Pairs<Bytes, f64>, S> {
    /// `WITHSCORES`.
    pub fn withscores(self) -> Self {
        self.with(|request| {
            request.push(b"WITHSCORES");
        })
    }
}

/// Tell a member's rank from the greatest score.
///
/// ```text
/// ZREVRANK key member
/// ```
///
/// Since 2.0.0. Takes O(log(N)). ACL: @read @sortedset @fast.
/// See [Redis](https://redis.io/docs/latest/commands/zrevrank/) and [Valkey](https://valkey.io/commands/zrevrank/).
pub fn zrevrank(key: impl ToArg, member: impl ToArg) -> Typed<Option<i64>> {
    let mut request = cmd("ZREVRANK");
    key.write_args(&mut request);
    member.write_args(&mut request);
    Typed::new(request)
}

/// Walk through a sorted set in steps.
///
/// ```text
/// ZSCAN key cursor [MATCH pattern] [COUNT count]
/// ```
///
/// Since 2.8.0. Takes O(1). ACL: @read @sortedset @slow.
/// See [Redis](https://redis.io/docs/latest/commands/zscan/) and [Valkey](https://valkey.io/commands/zscan/).
pub fn zscan(key: impl ToArg, cursor: impl ToInteger) -> Zscan {
    let mut request = cmd("ZSCAN");
    key.write_args(&mut request);
    cursor.write_args(&mut request);
    let place = request.place();
    Zscan::new(request, place)
}

builder! {
    /// A request of [`zscan()`] and its options.
    Zscan, (u64, Pairs<Bytes, f64>)
}

impl<T, S> Zscan<T, S> {
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

/// Tell a member's score.
///
/// ```text
/// ZSCORE key member
/// ```
///
/// Since 1.2.0. Takes O(1). ACL: @read @sortedset @fast.
/// See [Redis](https://redis.io/docs/latest/commands/zscore/) and [Valkey](https://valkey.io/commands/zscore/).
pub fn zscore(key: impl ToArg, member: impl ToArg) -> Typed<Option<f64>> {
    let mut request = cmd("ZSCORE");
    key.write_args(&mut request);
    member.write_args(&mut request);
    Typed::new(request)
}

/// List the members of any of the sorted sets.
///
/// ```text
/// ZUNION numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE SUM | MIN | MAX] [WITHSCORES]
/// ```
///
/// Since 6.2.0. Takes O(N)+O(M·log(M)). ACL: @read @sortedset @slow.
/// See [Redis](https://redis.io/docs/latest/commands/zunion/) and [Valkey](https://valkey.io/commands/zunion/).
pub fn zunion(keys: impl ToArgs) -> Zunion {
    let mut request = cmd("ZUNION");
    request.push_counted(1, |request| keys.write_args(request));
    let place = request.place();
    Zunion::new(request, place)
}

builder! {
    /// A request of [`zunion()`] and its options.
    Zunion, Vec<Bytes>
}

impl<T, S> Zunion<T, S> {
    /// `WEIGHTS weight [weight ...]`.
    pub fn weights(self, weights: impl ToArgs) -> Self {
        self.with(|request| {
            request.push(b"WEIGHTS");
            weights.write_args(request);
        })
    }
    /// `AGGREGATE SUM | MIN | MAX`.
    pub fn aggregate(self, aggregate: Aggregate) -> Self {
        self.with(|request| {
            request.push(b"AGGREGATE");
            aggregate.write_args(request);
        })
    }
}

impl<S> Zunion<Vec<Bytes>, S> {
    /// `WITHSCORES`.
    pub fn withscores(self) -> Zunion<Pairs<Bytes, f64>, S> {
        self.with(|request| {
            request.push(b"WITHSCORES");
        })
        .retyped()
    }
}

impl<S> Zunion<Pairs<Bytes, f64>, S> {
    /// `WITHSCORES`.
    pub fn withscores(self) -> Self {
        self.with(|request| {
            request.push(b"WITHSCORES");
        })
    }
}

/// Store the members of any of the sorted sets.
///
/// ```text
/// ZUNIONSTORE destination numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE SUM | MIN | MAX]
/// ```
///
/// Since 2.0.0. Takes O(N)+O(M log(M)). ACL: @write @sortedset @slow.
/// See [Redis](https://redis.io/docs/latest/commands/zunionstore/) and [Valkey](https://valkey.io/commands/zunionstore/).
pub fn zunionstore(destination: impl ToArg, keys: impl ToArgs) -> Zunionstore {
    let mut request = cmd("ZUNIONSTORE");
    destination.write_args(&mut request);
    request.push_counted(1, |request| keys.write_args(request));
    let place = request.place();
    Zunionstore::new(request, place)
}

builder! {
    /// A request of [`zunionstore()`] and its options.
    Zunionstore, i64
}

impl<T, S> Zunionstore<T, S> {
    /// `WEIGHTS weight [weight ...]`.
    pub fn weights(self, weights: impl ToArgs) -> Self {
        self.with(|request| {
            request.push(b"WEIGHTS");
            weights.write_args(request);
        })
    }
    /// `AGGREGATE SUM | MIN | MAX`.
    pub fn aggregate(self, aggregate: Aggregate) -> Self {
        self.with(|request| {
            request.push(b"AGGREGATE");
            aggregate.write_args(request);
        })
    }
}

/// Commands of the group sorted-set.
impl crate::Client {
    /// Take members with the least or greatest scores from the first sorted set that has any, waiting for one.
    ///
    /// `BZMPOP timeout numkeys key [key ...] <MIN | MAX> [COUNT count]`: see [`bzmpop()`].
    pub fn bzmpop(
        &self,
        timeout: impl ToDouble,
        keys: impl ToArgs,
        where_: MinMax,
    ) -> Bzmpop<Option<(Bytes, Vec<(Bytes, f64)>)>, &Self> {
        bzmpop(timeout, keys, where_).on(self)
    }
    /// Take the member with the greatest score from the first sorted set that has any, waiting for one.
    ///
    /// `BZPOPMAX key [key ...] timeout`: see [`bzpopmax()`].
    pub fn bzpopmax(&self, keys: impl ToArgs, timeout: impl ToDouble) -> Typed<Option<(Bytes, Bytes, f64)>, &Self> {
        bzpopmax(keys, timeout).on(self)
    }
    /// Take the member with the least score from the first sorted set that has any, waiting for one.
    ///
    /// `BZPOPMIN key [key ...] timeout`: see [`bzpopmin()`].
    pub fn bzpopmin(&self, keys: impl ToArgs, timeout: impl ToDouble) -> Typed<Option<(Bytes, Bytes, f64)>, &Self> {
        bzpopmin(keys, timeout).on(self)
    }
    /// Add members to a sorted set or change their scores.
    ///
    /// `ZADD key [NX | XX] [GT | LT] [CH] [INCR] score member [score member ...]`: see [`zadd()`].
    pub fn zadd(&self, key: impl ToArg, pairs: impl ToArgs) -> Zadd<i64, &Self> {
        zadd(key, pairs).on(self)
    }
    /// Count the members of a sorted set.
    ///
    /// `ZCARD key`: see [`zcard()`].
    pub fn zcard(&self, key: impl ToArg) -> Typed<i64, &Self> {
        zcard(key).on(self)
    }
    /// Count the members with scores in a range.
    ///
    /// `ZCOUNT key min max`: see [`zcount()`].
    pub fn zcount(&self, key: impl ToArg, min: impl ToDouble, max: impl ToDouble) -> Typed<i64, &Self> {
        zcount(key, min, max).on(self)
    }
    /// List the members of a sorted set that others lack.
    ///
    /// `ZDIFF numkeys key [key ...] [WITHSCORES]`: see [`zdiff()`].
    pub fn zdiff(&self, keys: impl ToArgs) -> Zdiff<Vec<Bytes>, &Self> {
        zdiff(keys).on(self)
    }
    /// Store the members of a sorted set that others lack.
    ///
    /// `ZDIFFSTORE destination numkeys key [key ...]`: see [`zdiffstore()`].
    pub fn zdiffstore(&self, destination: impl ToArg, keys: impl ToArgs) -> Typed<i64, &Self> {
        zdiffstore(destination, keys).on(self)
    }
    /// Add to a member's score.
    ///
    /// `ZINCRBY key increment member`: see [`zincrby()`].
    pub fn zincrby(&self, key: impl ToArg, increment: impl ToDouble, member: impl ToArg) -> Typed<f64, &Self> {
        zincrby(key, increment, member).on(self)
    }
    /// List the members that all sorted sets share.
    ///
    /// `ZINTER numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE SUM | MIN | MAX] [WITHSCORES]`: see [`zinter()`].
    pub fn zinter(&self, keys: impl ToArgs) -> Zinter<Vec<Bytes>, &Self> {
        zinter(keys).on(self)
    }
    /// Count the members that all sorted sets share.
    ///
    /// `ZINTERCARD numkeys key [key ...] [LIMIT limit]`: see [`zintercard()`].
    pub fn zintercard(&self, keys: impl ToArgs) -> Zintercard<i64, &Self> {
        zintercard(keys).on(self)
    }
    /// Store the members that all sorted sets share.
    ///
    /// `ZINTERSTORE destination numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE SUM | MIN | MAX]`: see [`zinterstore()`].
    pub fn zinterstore(&self, destination: impl ToArg, keys: impl ToArgs) -> Zinterstore<i64, &Self> {
        zinterstore(destination, keys).on(self)
    }
    /// Count the members in a lexicographical range.
    ///
    /// `ZLEXCOUNT key min max`: see [`zlexcount()`].
    pub fn zlexcount(&self, key: impl ToArg, min: impl ToArg, max: impl ToArg) -> Typed<i64, &Self> {
        zlexcount(key, min, max).on(self)
    }
    /// Take members with the least or greatest scores from the first sorted set that has any.
    ///
    /// `ZMPOP numkeys key [key ...] <MIN | MAX> [COUNT count]`: see [`zmpop()`].
    pub fn zmpop(&self, keys: impl ToArgs, where_: MinMax) -> Zmpop<Option<(Bytes, Vec<(Bytes, f64)>)>, &Self> {
        zmpop(keys, where_).on(self)
    }
    /// Tell the scores of several members.
    ///
    /// `ZMSCORE key member [member ...]`: see [`zmscore()`].
    pub fn zmscore(&self, key: impl ToArg, members: impl ToArgs) -> Typed<Vec<Option<f64>>, &Self> {
        zmscore(key, members).on(self)
    }
    /// Take the members with the greatest scores.
    ///
    /// `ZPOPMAX key [count]`: see [`zpopmax()`].
    pub fn zpopmax(&self, key: impl ToArg) -> Zpopmax<Pairs<Bytes, f64>, &Self> {
        zpopmax(key).on(self)
    }
    /// Take the members with the least scores.
    ///
    /// `ZPOPMIN key [count]`: see [`zpopmin()`].
    pub fn zpopmin(&self, key: impl ToArg) -> Zpopmin<Pairs<Bytes, f64>, &Self> {
        zpopmin(key).on(self)
    }
    /// Pick random members of a sorted set.
    ///
    /// `ZRANDMEMBER key [count [WITHSCORES]]`: see [`zrandmember()`].
    pub fn zrandmember(&self, key: impl ToArg) -> Zrandmember<Option<Bytes>, &Self> {
        zrandmember(key).on(self)
    }
    /// List members in a range of ranks, scores or names.
    ///
    /// `ZRANGE key start stop [BYSCORE | BYLEX] [REV] [LIMIT offset count] [WITHSCORES]`: see [`zrange()`].
    pub fn zrange(&self, key: impl ToArg, start: impl ToArg, stop: impl ToArg) -> Zrange<Vec<Bytes>, &Self> {
        zrange(key, start, stop).on(self)
    }
    /// List members in a lexicographical range.
    ///
    /// `ZRANGEBYLEX key min max [LIMIT offset count]`: see [`zrangebylex()`].
    pub fn zrangebylex(&self, key: impl ToArg, min: impl ToArg, max: impl ToArg) -> Zrangebylex<Vec<Bytes>, &Self> {
        zrangebylex(key, min, max).on(self)
    }
    /// List members with scores in a range.
    ///
    /// `ZRANGEBYSCORE key min max [WITHSCORES] [LIMIT offset count]`: see [`zrangebyscore()`].
    pub fn zrangebyscore(
        &self,
        key: impl ToArg,
        min: impl ToDouble,
        max: impl ToDouble,
    ) -> Zrangebyscore<Vec<Bytes>, &Self> {
        zrangebyscore(key, min, max).on(self)
    }
    /// Store members in a range of ranks, scores or names.
    ///
    /// `ZRANGESTORE dst src min max [BYSCORE | BYLEX] [REV] [LIMIT offset count]`: see [`zrangestore()`].
    pub fn zrangestore(
        &self,
        dst: impl ToArg,
        src: impl ToArg,
        min: impl ToArg,
        max: impl ToArg,
    ) -> Zrangestore<i64, &Self> {
        zrangestore(dst, src, min, max).on(self)
    }
    /// Tell a member's rank from the least score.
    ///
    /// `ZRANK key member`: see [`zrank()`].
    pub fn zrank(&self, key: impl ToArg, member: impl ToArg) -> Typed<Option<i64>, &Self> {
        zrank(key, member).on(self)
    }
    /// Remove members from a sorted set.
    ///
    /// `ZREM key member [member ...]`: see [`zrem()`].
    pub fn zrem(&self, key: impl ToArg, members: impl ToArgs) -> Typed<i64, &Self> {
        zrem(key, members).on(self)
    }
    /// Remove members in a lexicographical range.
    ///
    /// `ZREMRANGEBYLEX key min max`: see [`zremrangebylex()`].
    pub fn zremrangebylex(&self, key: impl ToArg, min: impl ToArg, max: impl ToArg) -> Typed<i64, &Self> {
        zremrangebylex(key, min, max).on(self)
    }
    /// Remove members in a range of ranks.
    ///
    /// `ZREMRANGEBYRANK key start stop`: see [`zremrangebyrank()`].
    pub fn zremrangebyrank(&self, key: impl ToArg, start: impl ToInteger, stop: impl ToInteger) -> Typed<i64, &Self> {
        zremrangebyrank(key, start, stop).on(self)
    }
    /// Remove members with scores in a range.
    ///
    /// `ZREMRANGEBYSCORE key min max`: see [`zremrangebyscore()`].
    pub fn zremrangebyscore(&self, key: impl ToArg, min: impl ToDouble, max: impl ToDouble) -> Typed<i64, &Self> {
        zremrangebyscore(key, min, max).on(self)
    }
    /// List members in a range of ranks, greatest score first.
    ///
    /// `ZREVRANGE key start stop [WITHSCORES]`: see [`zrevrange()`].
    pub fn zrevrange(
        &self,
        key: impl ToArg,
        start: impl ToInteger,
        stop: impl ToInteger,
    ) -> Zrevrange<Vec<Bytes>, &Self> {
        zrevrange(key, start, stop).on(self)
    }
    /// List members in a lexicographical range, last name first.
    ///
    /// `ZREVRANGEBYLEX key max min [LIMIT offset count]`: see [`zrevrangebylex()`].
    pub fn zrevrangebylex(
        &self,
        key: impl ToArg,
        max: impl ToArg,
        min: impl ToArg,
    ) -> Zrevrangebylex<Vec<Bytes>, &Self> {
        zrevrangebylex(key, max, min).on(self)
    }
    /// List members with scores in a range, greatest first.
    ///
    /// `ZREVRANGEBYSCORE key max min [WITHSCORES] [LIMIT offset count]`: see [`zrevrangebyscore()`].
    pub fn zrevrangebyscore(
        &self,
        key: impl ToArg,
        max: impl ToDouble,
        min: impl ToDouble,
    ) -> Zrevrangebyscore<Vec<Bytes>, &Self> {
        zrevrangebyscore(key, max, min).on(self)
    }
    /// Tell a member's rank from the greatest score.
    ///
    /// `ZREVRANK key member`: see [`zrevrank()`].
    pub fn zrevrank(&self, key: impl ToArg, member: impl ToArg) -> Typed<Option<i64>, &Self> {
        zrevrank(key, member).on(self)
    }
    /// Walk through a sorted set in steps.
    ///
    /// `ZSCAN key cursor [MATCH pattern] [COUNT count]`: see [`zscan()`].
    pub fn zscan(&self, key: impl ToArg, cursor: impl ToInteger) -> Zscan<(u64, Pairs<Bytes, f64>), &Self> {
        zscan(key, cursor).on(self)
    }
    /// Tell a member's score.
    ///
    /// `ZSCORE key member`: see [`zscore()`].
    pub fn zscore(&self, key: impl ToArg, member: impl ToArg) -> Typed<Option<f64>, &Self> {
        zscore(key, member).on(self)
    }
    /// List the members of any of the sorted sets.
    ///
    /// `ZUNION numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE SUM | MIN | MAX] [WITHSCORES]`: see [`zunion()`].
    pub fn zunion(&self, keys: impl ToArgs) -> Zunion<Vec<Bytes>, &Self> {
        zunion(keys).on(self)
    }
    /// Store the members of any of the sorted sets.
    ///
    /// `ZUNIONSTORE destination numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE SUM | MIN | MAX]`: see [`zunionstore()`].
    pub fn zunionstore(&self, destination: impl ToArg, keys: impl ToArgs) -> Zunionstore<i64, &Self> {
        zunionstore(destination, keys).on(self)
    }
}
