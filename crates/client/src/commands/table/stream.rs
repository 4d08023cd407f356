//! Commands of the group stream.

// Written by `cargo xtask codegen` from the command table. Not to be edited.
#![allow(unused_imports, reason = "each group needs some of them")]
#![allow(clippy::type_complexity, clippy::too_many_arguments, reason = "replies and requests are what they are")]

use super::*;
use crate::commands::{Pairs, ToArg, ToDouble, ToInteger, Typed, builder};
use crate::{Reply, ToArgs, cmd};
use bytes::Bytes;
use std::collections::HashMap;

/// Mark entries as processed by a group.
///
/// ```text
/// XACK key group id [id ...]
/// ```
///
/// Since 5.0.0. Takes O(1). ACL: @write @stream @fast.
/// See [Redis](https://redis.io/docs/latest/commands/xack/) and [Valkey](https://valkey.io/commands/xack/).
pub fn xack(key: impl ToArg, group: impl ToArg, ids: impl ToArgs) -> Typed<i64> {
    let mut request = cmd("XACK");
    key.write_args(&mut request);
    group.write_args(&mut request);
    ids.write_args(&mut request);
    Typed::new(request)
}

/// Mark entries as processed by a group and delete them.
///
/// ```text
/// XACKDEL key group [KEEPREF | DELREF | ACKED] IDS numids id [id ...]
/// ```
///
/// Since 8.2.0. Takes O(N). ACL: @write @stream @fast.
/// See [Redis](https://redis.io/docs/latest/commands/xackdel/) and [Valkey](https://valkey.io/commands/xackdel/).
pub fn xackdel(key: impl ToArg, group: impl ToArg, ids: impl ToArgs) -> Xackdel {
    let mut request = cmd("XACKDEL");
    key.write_args(&mut request);
    group.write_args(&mut request);
    let place = request.place();
    request.push(b"IDS");
    request.push_counted(1, |request| ids.write_args(request));
    Xackdel::new(request, place)
}

builder! {
    /// A request of [`xackdel()`] and its options.
    Xackdel, Vec<i64>
}

impl<T, S> Xackdel<T, S> {
    /// `KEEPREF`.
    pub fn keepref(self) -> Self {
        self.with(|request| {
            request.push(b"KEEPREF");
        })
    }
    /// `DELREF`.
    pub fn delref(self) -> Self {
        self.with(|request| {
            request.push(b"DELREF");
        })
    }
    /// `ACKED`.
    pub fn acked(self) -> Self {
        self.with(|request| {
            request.push(b"ACKED");
        })
    }
}

/// Append an entry to a stream.
///
/// ```text
/// XADD key [NOMKSTREAM] [<MAXLEN | MINID> [= | ~] threshold [LIMIT count]] <* | id> field value [field value ...]
/// ```
///
/// Since 5.0.0. Takes O(1). ACL: @write @stream @fast.
/// See [Redis](https://redis.io/docs/latest/commands/xadd/) and [Valkey](https://valkey.io/commands/xadd/).
pub fn xadd(key: impl ToArg, id_or_auto: impl ToArg, pairs: impl ToArgs) -> Xadd {
    let mut request = cmd("XADD");
    key.write_args(&mut request);
    let place = request.place();
    id_or_auto.write_args(&mut request);
    pairs.write_args(&mut request);
    Xadd::new(request, place)
}

builder! {
    /// A request of [`xadd()`] and its options.
    Xadd, Bytes
}

impl<T, S> Xadd<T, S> {
    /// `<MAXLEN | MINID> [= | ~] threshold [LIMIT count]`.
    pub fn trim(self, strategy: Strategy, operator: Option<Operator>, threshold: impl ToArg) -> Self {
        self.with(|request| {
            strategy.write_args(request);
            operator.write_args(request);
            threshold.write_args(request);
        })
    }
    /// `LIMIT count`, since 6.2.0.
    pub fn limit(self, count: impl ToInteger) -> Self {
        self.with(|request| {
            request.push(b"LIMIT");
            count.write_args(request);
        })
    }
}

impl<S> Xadd<Bytes, S> {
    /// `NOMKSTREAM`, since 6.2.0.
    pub fn nomkstream(self) -> Xadd<Option<Bytes>, S> {
        self.with(|request| {
            request.push(b"NOMKSTREAM");
        })
        .retyped()
    }
}

impl<S> Xadd<Option<Bytes>, S> {
    /// `NOMKSTREAM`, since 6.2.0.
    pub fn nomkstream(self) -> Self {
        self.with(|request| {
            request.push(b"NOMKSTREAM");
        })
    }
}

/// Take over entries that were pending for too long.
///
/// ```text
/// XAUTOCLAIM key group consumer min-idle-time start [COUNT count] [JUSTID]
/// ```
///
/// Since 6.2.0. Takes O(1). ACL: @write @stream @fast.
/// See [Redis](https://redis.io/docs/latest/commands/xautoclaim/) and [Valkey](https://valkey.io/commands/xautoclaim/).
pub fn xautoclaim(
    key: impl ToArg,
    group: impl ToArg,
    consumer: impl ToArg,
    min_idle_time: impl ToArg,
    start: impl ToArg,
) -> Xautoclaim {
    let mut request = cmd("XAUTOCLAIM");
    key.write_args(&mut request);
    group.write_args(&mut request);
    consumer.write_args(&mut request);
    min_idle_time.write_args(&mut request);
    start.write_args(&mut request);
    let place = request.place();
    Xautoclaim::new(request, place)
}

builder! {
    /// A request of [`xautoclaim()`] and its options.
    Xautoclaim, (Bytes, Vec<(Bytes, Pairs<Bytes, Bytes>)>, Vec<Bytes>)
}

impl<T, S> Xautoclaim<T, S> {
    /// `COUNT count`.
    pub fn count(self, count: impl ToInteger) -> Self {
        self.with(|request| {
            request.push(b"COUNT");
            count.write_args(request);
        })
    }
}

impl<S> Xautoclaim<(Bytes, Vec<(Bytes, Pairs<Bytes, Bytes>)>, Vec<Bytes>), S> {
    /// `JUSTID`.
    pub fn justid(self) -> Xautoclaim<(Bytes, Vec<Bytes>, Vec<Bytes>), S> {
        self.with(|request| {
            request.push(b"JUSTID");
        })
        .retyped()
    }
}

impl<S> Xautoclaim<(Bytes, Vec<Bytes>, Vec<Bytes>), S> {
    /// `JUSTID`.
    pub fn justid(self) -> Self {
        self.with(|request| {
            request.push(b"JUSTID");
        })
    }
}

/// Take over pending entries by their ids.
///
/// ```text
/// XCLAIM key group consumer min-idle-time id [id ...] [IDLE ms] [TIME unix-time-milliseconds] [RETRYCOUNT count] [FORCE] [JUSTID] [LASTID id]
/// ```
///
/// Since 5.0.0. Takes O(log N). ACL: @write @stream @fast.
/// See [Redis](https://redis.io/docs/latest/commands/xclaim/) and [Valkey](https://valkey.io/commands/xclaim/).
pub fn xclaim(
    key: impl ToArg,
    group: impl ToArg,
    consumer: impl ToArg,
    min_idle_time: impl ToArg,
    ids: impl ToArgs,
) -> Xclaim {
    let mut request = cmd("XCLAIM");
    key.write_args(&mut request);
    group.write_args(&mut request);
    consumer.write_args(&mut request);
    min_idle_time.write_args(&mut request);
    ids.write_args(&mut request);
    let place = request.place();
    Xclaim::new(request, place)
}

builder! {
    /// A request of [`xclaim()`] and its options.
    Xclaim, Vec<(Bytes, Pairs<Bytes, Bytes>)>
}

impl<T, S> Xclaim<T, S> {
    /// `IDLE ms`.
    pub fn idle(self, ms: impl ToInteger) -> Self {
        self.with(|request| {
            request.push(b"IDLE");
            ms.write_args(request);
        })
    }
    /// `TIME unix-time-milliseconds`.
    pub fn time(self, unix_time_milliseconds: impl ToInteger) -> Self {
        self.with(|request| {
            request.push(b"TIME");
            unix_time_milliseconds.write_args(request);
        })
    }
    /// `RETRYCOUNT count`.
    pub fn retrycount(self, count: impl ToInteger) -> Self {
        self.with(|request| {
            request.push(b"RETRYCOUNT");
            count.write_args(request);
        })
    }
    /// `FORCE`.
    pub fn force(self) -> Self {
        self.with(|request| {
            request.push(b"FORCE");
        })
    }
    /// `LASTID id`.
    pub fn lastid(self, id: impl ToArg) -> Self {
        self.with(|request| {
            request.push(b"LASTID");
            id.write_args(request);
        })
    }
}

impl<S> Xclaim<Vec<(Bytes, Pairs<Bytes, Bytes>)>, S> {
    /// `JUSTID`.
    pub fn justid(self) -> Xclaim<Vec<Bytes>, S> {
        self.with(|request| {
            request.push(b"JUSTID");
        })
        .retyped()
    }
}

impl<S> Xclaim<Vec<Bytes>, S> {
    /// `JUSTID`.
    pub fn justid(self) -> Self {
        self.with(|request| {
            request.push(b"JUSTID");
        })
    }
}

/// Delete entries of a stream.
///
/// ```text
/// XDEL key id [id ...]
/// ```
///
/// Since 5.0.0. Takes O(1). ACL: @write @stream @fast.
/// See [Redis](https://redis.io/docs/latest/commands/xdel/) and [Valkey](https://valkey.io/commands/xdel/).
pub fn xdel(key: impl ToArg, ids: impl ToArgs) -> Typed<i64> {
    let mut request = cmd("XDEL");
    key.write_args(&mut request);
    ids.write_args(&mut request);
    Typed::new(request)
}

/// Delete entries of a stream, with or without what groups have of them.
///
/// ```text
/// XDELEX key [KEEPREF | DELREF | ACKED] IDS numids id [id ...]
/// ```
///
/// Since 8.2.0. Takes O(N). ACL: @write @stream @fast.
/// See [Redis](https://redis.io/docs/latest/commands/xdelex/) and [Valkey](https://valkey.io/commands/xdelex/).
pub fn xdelex(key: impl ToArg, ids: impl ToArgs) -> Xdelex {
    let mut request = cmd("XDELEX");
    key.write_args(&mut request);
    let place = request.place();
    request.push(b"IDS");
    request.push_counted(1, |request| ids.write_args(request));
    Xdelex::new(request, place)
}

builder! {
    /// A request of [`xdelex()`] and its options.
    Xdelex, Vec<i64>
}

impl<T, S> Xdelex<T, S> {
    /// `KEEPREF`.
    pub fn keepref(self) -> Self {
        self.with(|request| {
            request.push(b"KEEPREF");
        })
    }
    /// `DELREF`.
    pub fn delref(self) -> Self {
        self.with(|request| {
            request.push(b"DELREF");
        })
    }
    /// `ACKED`.
    pub fn acked(self) -> Self {
        self.with(|request| {
            request.push(b"ACKED");
        })
    }
}

/// Make a group.
///
/// ```text
/// XGROUP CREATE key groupname <id | $> [MKSTREAM] [ENTRIESREAD entries_read]
/// ```
///
/// Since 5.0.0. Takes O(1). ACL: @write @stream @slow.
/// See [Redis](https://redis.io/docs/latest/commands/xgroup-create/) and [Valkey](https://valkey.io/commands/xgroup-create/).
pub fn xgroup_create(key: impl ToArg, groupname: impl ToArg, id: impl ToArg) -> XgroupCreate {
    let mut request = cmd("XGROUP CREATE");
    key.write_args(&mut request);
    groupname.write_args(&mut request);
    id.write_args(&mut request);
    let place = request.place();
    XgroupCreate::new(request, place)
}

builder! {
    /// A request of [`xgroup_create()`] and its options.
    XgroupCreate, ()
}

impl<T, S> XgroupCreate<T, S> {
    /// `MKSTREAM`.
    pub fn mkstream(self) -> Self {
        self.with(|request| {
            request.push(b"MKSTREAM");
        })
    }
    /// `ENTRIESREAD entries_read`.
    pub fn entriesread(self, entries_read: impl ToInteger) -> Self {
        self.with(|request| {
            request.push(b"ENTRIESREAD");
            entries_read.write_args(request);
        })
    }
}

/// Make a consumer in a group.
///
/// ```text
/// XGROUP CREATECONSUMER key groupname consumername
/// ```
///
/// Since 6.2.0. Takes O(1). ACL: @write @stream @slow.
/// See [Redis](https://redis.io/docs/latest/commands/xgroup-createconsumer/) and [Valkey](https://valkey.io/commands/xgroup-createconsumer/).
pub fn xgroup_createconsumer(key: impl ToArg, groupname: impl ToArg, consumername: impl ToArg) -> Typed<bool> {
    let mut request = cmd("XGROUP CREATECONSUMER");
    key.write_args(&mut request);
    groupname.write_args(&mut request);
    consumername.write_args(&mut request);
    Typed::new(request)
}

/// Remove a consumer from a group.
///
/// ```text
/// XGROUP DELCONSUMER key groupname consumername
/// ```
///
/// Since 5.0.0. Takes O(1). ACL: @write @stream @slow.
/// See [Redis](https://redis.io/docs/latest/commands/xgroup-delconsumer/) and [Valkey](https://valkey.io/commands/xgroup-delconsumer/).
pub fn xgroup_delconsumer(key: impl ToArg, groupname: impl ToArg, consumername: impl ToArg) -> Typed<i64> {
    let mut request = cmd("XGROUP DELCONSUMER");
    key.write_args(&mut request);
    groupname.write_args(&mut request);
    consumername.write_args(&mut request);
    Typed::new(request)
}

/// Remove a group.
///
/// ```text
/// XGROUP DESTROY key groupname
/// ```
///
/// Since 5.0.0. Takes O(N). ACL: @write @stream @slow.
/// See [Redis](https://redis.io/docs/latest/commands/xgroup-destroy/) and [Valkey](https://valkey.io/commands/xgroup-destroy/).
pub fn xgroup_destroy(key: impl ToArg, groupname: impl ToArg) -> Typed<bool> {
    let mut request = cmd("XGROUP DESTROY");
    key.write_args(&mut request);
    groupname.write_args(&mut request);
    Typed::new(request)
}

/// Set from where a group goes on.
///
/// ```text
/// XGROUP SETID key groupname <id | $> [ENTRIESREAD entries_read]
/// ```
///
/// Since 5.0.0. Takes O(1). ACL: @write @stream @slow.
/// See [Redis](https://redis.io/docs/latest/commands/xgroup-setid/) and [Valkey](https://valkey.io/commands/xgroup-setid/).
pub fn xgroup_setid(key: impl ToArg, groupname: impl ToArg, id: impl ToArg) -> XgroupSetid {
    let mut request = cmd("XGROUP SETID");
    key.write_args(&mut request);
    groupname.write_args(&mut request);
    id.write_args(&mut request);
    let place = request.place();
    XgroupSetid::new(request, place)
}

builder! {
    /// A request of [`xgroup_setid()`] and its options.
    XgroupSetid, ()
}

impl<T, S> XgroupSetid<T, S> {
    /// `ENTRIESREAD entries_read`.
    pub fn entriesread(self, entries_read: impl ToInteger) -> Self {
        self.with(|request| {
            request.push(b"ENTRIESREAD");
            entries_read.write_args(request);
        })
    }
}

/// List the consumers of a group.
///
/// ```text
/// XINFO CONSUMERS key groupname
/// ```
///
/// Since 5.0.0. Takes O(1). ACL: @read @stream @slow.
/// See [Redis](https://redis.io/docs/latest/commands/xinfo-consumers/) and [Valkey](https://valkey.io/commands/xinfo-consumers/).
pub fn xinfo_consumers(key: impl ToArg, groupname: impl ToArg) -> Typed<Vec<HashMap<Bytes, Reply>>> {
    let mut request = cmd("XINFO CONSUMERS");
    key.write_args(&mut request);
    groupname.write_args(&mut request);
    Typed::new(request)
}

/// List the groups of a stream.
///
/// ```text
/// XINFO GROUPS key
/// ```
///
/// Since 5.0.0. Takes O(1). ACL: @read @stream @slow.
/// See [Redis](https://redis.io/docs/latest/commands/xinfo-groups/) and [Valkey](https://valkey.io/commands/xinfo-groups/).
pub fn xinfo_groups(key: impl ToArg) -> Typed<Vec<HashMap<Bytes, Reply>>> {
    let mut request = cmd("XINFO GROUPS");
    key.write_args(&mut request);
    Typed::new(request)
}

/// Describe a stream.
///
/// ```text
/// XINFO STREAM key [FULL [COUNT count]]
/// ```
///
/// Since 5.0.0. Takes O(1). ACL: @read @stream @slow.
/// See [Redis](https://redis.io/docs/latest/commands/xinfo-stream/) and [Valkey](https://valkey.io/commands/xinfo-stream/).
pub fn xinfo_stream(key: impl ToArg) -> XinfoStream {
    let mut request = cmd("XINFO STREAM");
    key.write_args(&mut request);
    let place = request.place();
    XinfoStream::new(request, place)
}

builder! {
    /// A request of [`xinfo_stream()`] and its options.
    XinfoStream, HashMap<Bytes, Reply>
}

impl<T, S> XinfoStream<T, S> {
    /// `FULL [COUNT count]`.
    pub fn full(self) -> Self {
        self.with(|request| {
            request.push(b"FULL");
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

/// Count the entries of a stream.
///
/// ```text
/// XLEN key
/// ```
///
/// Since 5.0.0. Takes O(1). ACL: @read @stream @fast.
/// See [Redis](https://redis.io/docs/latest/commands/xlen/) and [Valkey](https://valkey.io/commands/xlen/).
pub fn xlen(key: impl ToArg) -> Typed<i64> {
    let mut request = cmd("XLEN");
    key.write_args(&mut request);
    Typed::new(request)
}

/// Show what a group has not acknowledged.
///
/// ```text
/// XPENDING key group [[IDLE min-idle-time] start end count [consumer]]
/// ```
///
/// Since 5.0.0. Takes O(N). ACL: @read @stream @slow.
/// See [Redis](https://redis.io/docs/latest/commands/xpending/) and [Valkey](https://valkey.io/commands/xpending/).
pub fn xpending(key: impl ToArg, group: impl ToArg) -> Xpending {
    let mut request = cmd("XPENDING");
    key.write_args(&mut request);
    group.write_args(&mut request);
    let place = request.place();
    Xpending::new(request, place)
}

builder! {
    /// A request of [`xpending()`] and its options.
    Xpending, (i64, Option<Bytes>, Option<Bytes>, Option<Vec<(Bytes, u64)>>)
}

impl<S> Xpending<(i64, Option<Bytes>, Option<Bytes>, Option<Vec<(Bytes, u64)>>), S> {
    /// `[IDLE min-idle-time] start end count [consumer]`.
    pub fn filters(
        self,
        min_idle_time: Option<i64>,
        start: impl ToArg,
        end: impl ToArg,
        count: impl ToInteger,
    ) -> Xpending<Vec<(Bytes, Bytes, i64, i64)>, S> {
        self.with(|request| {
            if let Some(min_idle_time) = min_idle_time {
                request.push(b"IDLE");
                min_idle_time.write_args(request);
            }
            start.write_args(request);
            end.write_args(request);
            count.write_args(request);
        })
        .retyped()
    }
    /// `consumer`.
    pub fn consumer(self, consumer: impl ToArg) -> Xpending<Vec<(Bytes, Bytes, i64, i64)>, S> {
        self.with(|request| {
            consumer.write_args(request);
        })
        .retyped()
    }
}

impl<S> Xpending<Vec<(Bytes, Bytes, i64, i64)>, S> {
    /// `[IDLE min-idle-time] start end count [consumer]`.
    pub fn filters(
        self,
        min_idle_time: Option<i64>,
        start: impl ToArg,
        end: impl ToArg,
        count: impl ToInteger,
    ) -> Self {
        self.with(|request| {
            if let Some(min_idle_time) = min_idle_time {
                request.push(b"IDLE");
                min_idle_time.write_args(request);
            }
            start.write_args(request);
            end.write_args(request);
            count.write_args(request);
        })
    }
    /// `consumer`.
    pub fn consumer(self, consumer: impl ToArg) -> Self {
        self.with(|request| {
            consumer.write_args(request);
        })
    }
}

/// List entries between two ids.
///
/// ```text
/// XRANGE key start end [COUNT count]
/// ```
///
/// Since 5.0.0. Takes O(N). ACL: @read @stream @slow.
/// See [Redis](https://redis.io/docs/latest/commands/xrange/) and [Valkey](https://valkey.io/commands/xrange/).
pub fn xrange(key: impl ToArg, start: impl ToArg, end: impl ToArg) -> Xrange {
    let mut request = cmd("XRANGE");
    key.write_args(&mut request);
    start.write_args(&mut request);
    end.write_args(&mut request);
    let place = request.place();
    Xrange::new(request, place)
}

builder! {
    /// A request of [`xrange()`] and its options.
    Xrange, Vec<(Bytes, Pairs<Bytes, Bytes>)>
}

impl<T, S> Xrange<T, S> {
    /// `COUNT count`.
    pub fn count(self, count: impl ToInteger) -> Self {
        self.with(|request| {
            request.push(b"COUNT");
            count.write_args(request);
        })
    }
}

/// Read new entries of streams, perhaps waiting for some.
///
/// ```text
/// XREAD [COUNT count] [BLOCK milliseconds] STREAMS key [key ...] id [id ...]
/// ```
///
/// Since 5.0.0. ACL: @read @stream @slow @blocking.
/// See [Redis](https://redis.io/docs/latest/commands/xread/) and [Valkey](https://valkey.io/commands/xread/).
pub fn xread(keys: impl ToArgs, ids: impl ToArgs) -> Xread {
    let mut request = cmd("XREAD");
    let place = request.place();
    request.push(b"STREAMS");
    keys.write_args(&mut request);
    ids.write_args(&mut request);
    Xread::new(request, place)
}

builder! {
    /// A request of [`xread()`] and its options.
    Xread, Option<HashMap<Bytes, Vec<(Bytes, Pairs<Bytes, Bytes>)>>>
}

impl<T, S> Xread<T, S> {
    /// `COUNT count`.
    pub fn count(self, count: impl ToInteger) -> Self {
        self.with(|request| {
            request.push(b"COUNT");
            count.write_args(request);
        })
    }
    /// `BLOCK milliseconds`.
    pub fn block(self, milliseconds: impl ToInteger) -> Self {
        self.with(|request| {
            request.push(b"BLOCK");
            milliseconds.write_args(request);
        })
    }
}

/// Read entries of streams as a consumer of a group, perhaps waiting for some.
///
/// ```text
/// XREADGROUP GROUP group consumer [COUNT count] [BLOCK milliseconds] [NOACK] STREAMS key [key ...] id [id ...]
/// ```
///
/// Since 5.0.0. ACL: @write @stream @slow @blocking.
/// See [Redis](https://redis.io/docs/latest/commands/xreadgroup/) and [Valkey](https://valkey.io/commands/xreadgroup/).
pub fn xreadgroup(group: impl ToArg, consumer: impl ToArg, keys: impl ToArgs, ids: impl ToArgs) -> Xreadgroup {
    let mut request = cmd("XREADGROUP");
    request.push(b"GROUP");
    group.write_args(&mut request);
    consumer.write_args(&mut request);
    let place = request.place();
    request.push(b"STREAMS");
    keys.write_args(&mut request);
    ids.write_args(&mut request);
    Xreadgroup::new(request, place)
}

builder! {
    /// A request of [`xreadgroup()`] and its options.
    Xreadgroup, Option<HashMap<Bytes, Vec<(Bytes, Option<Pairs<Bytes, Bytes>>)>>>
}

impl<T, S> Xreadgroup<T, S> {
    /// `COUNT count`.
    pub fn count(self, count: impl ToInteger) -> Self {
        self.with(|request| {
            request.push(b"COUNT");
            count.write_args(request);
        })
    }
    /// `BLOCK milliseconds`.
    pub fn block(self, milliseconds: impl ToInteger) -> Self {
        self.with(|request| {
            request.push(b"BLOCK");
            milliseconds.write_args(request);
        })
    }
    /// `NOACK`.
    pub fn noack(self) -> Self {
        self.with(|request| {
            request.push(b"NOACK");
        })
    }
}

/// List entries between two ids, newest first.
///
/// ```text
/// XREVRANGE key end start [COUNT count]
/// ```
///
/// Since 5.0.0. Takes O(N). ACL: @read @stream @slow.
/// See [Redis](https://redis.io/docs/latest/commands/xrevrange/) and [Valkey](https://valkey.io/commands/xrevrange/).
pub fn xrevrange(key: impl ToArg, end: impl ToArg, start: impl ToArg) -> Xrevrange {
    let mut request = cmd("XREVRANGE");
    key.write_args(&mut request);
    end.write_args(&mut request);
    start.write_args(&mut request);
    let place = request.place();
    Xrevrange::new(request, place)
}

builder! {
    /// A request of [`xrevrange()`] and its options.
    Xrevrange, Vec<(Bytes, Pairs<Bytes, Bytes>)>
}

impl<T, S> Xrevrange<T, S> {
    /// `COUNT count`.
    pub fn count(self, count: impl ToInteger) -> Self {
        self.with(|request| {
            request.push(b"COUNT");
            count.write_args(request);
        })
    }
}

/// Set the last id of a stream.
///
/// ```text
/// XSETID key last-id [ENTRIESADDED entries_added] [MAXDELETEDID max_deleted_entry_id]
/// ```
///
/// Since 5.0.0. Takes O(1). ACL: @write @stream @fast.
/// See [Redis](https://redis.io/docs/latest/commands/xsetid/) and [Valkey](https://valkey.io/commands/xsetid/).
pub fn xsetid(key: impl ToArg, last_id: impl ToArg) -> Xsetid {
    let mut request = cmd("XSETID");
    key.write_args(&mut request);
    last_id.write_args(&mut request);
    let place = request.place();
    Xsetid::new(request, place)
}

builder! {
    /// A request of [`xsetid()`] and its options.
    Xsetid, ()
}

impl<T, S> Xsetid<T, S> {
    /// `ENTRIESADDED entries_added`, since 7.0.0.
    pub fn entriesadded(self, entries_added: impl ToInteger) -> Self {
        self.with(|request| {
            request.push(b"ENTRIESADDED");
            entries_added.write_args(request);
        })
    }
    /// `MAXDELETEDID max_deleted_entry_id`, since 7.0.0.
    pub fn maxdeletedid(self, max_deleted_entry_id: impl ToArg) -> Self {
        self.with(|request| {
            request.push(b"MAXDELETEDID");
            max_deleted_entry_id.write_args(request);
        })
    }
}

/// Remove old entries of a stream.
///
/// ```text
/// XTRIM key <MAXLEN | MINID> [= | ~] threshold [LIMIT count]
/// ```
///
/// Since 5.0.0. Takes O(N). ACL: @write @stream @slow.
/// See [Redis](https://redis.io/docs/latest/commands/xtrim/) and [Valkey](https://valkey.io/commands/xtrim/).
pub fn xtrim(key: impl ToArg, strategy: Strategy, operator: Option<Operator>, threshold: impl ToArg) -> Xtrim {
    let mut request = cmd("XTRIM");
    key.write_args(&mut request);
    strategy.write_args(&mut request);
    operator.write_args(&mut request);
    threshold.write_args(&mut request);
    let place = request.place();
    Xtrim::new(request, place)
}

builder! {
    /// A request of [`xtrim()`] and its options.
    Xtrim, i64
}

impl<T, S> Xtrim<T, S> {
    /// `LIMIT count`, since 6.2.0.
    pub fn limit(self, count: impl ToInteger) -> Self {
        self.with(|request| {
            request.push(b"LIMIT");
            count.write_args(request);
        })
    }
}

/// Commands of the group stream.
impl crate::Client {
    /// Mark entries as processed by a group.
    ///
    /// `XACK key group id [id ...]`: see [`xack()`].
    pub fn xack(&self, key: impl ToArg, group: impl ToArg, ids: impl ToArgs) -> Typed<i64, &Self> {
        xack(key, group, ids).on(self)
    }
    /// Mark entries as processed by a group and delete them.
    ///
    /// `XACKDEL key group [KEEPREF | DELREF | ACKED] IDS numids id [id ...]`: see [`xackdel()`].
    pub fn xackdel(&self, key: impl ToArg, group: impl ToArg, ids: impl ToArgs) -> Xackdel<Vec<i64>, &Self> {
        xackdel(key, group, ids).on(self)
    }
    /// Append an entry to a stream.
    ///
    /// `XADD key [NOMKSTREAM] [<MAXLEN | MINID> [= | ~] threshold [LIMIT count]] <* | id> field value [field value ...]`: see [`xadd()`].
    pub fn xadd(&self, key: impl ToArg, id_or_auto: impl ToArg, pairs: impl ToArgs) -> Xadd<Bytes, &Self> {
        xadd(key, id_or_auto, pairs).on(self)
    }
    /// Take over entries that were pending for too long.
    ///
    /// `XAUTOCLAIM key group consumer min-idle-time start [COUNT count] [JUSTID]`: see [`xautoclaim()`].
    pub fn xautoclaim(
        &self,
        key: impl ToArg,
        group: impl ToArg,
        consumer: impl ToArg,
        min_idle_time: impl ToArg,
        start: impl ToArg,
    ) -> Xautoclaim<(Bytes, Vec<(Bytes, Pairs<Bytes, Bytes>)>, Vec<Bytes>), &Self> {
        xautoclaim(key, group, consumer, min_idle_time, start).on(self)
    }
    /// Take over pending entries by their ids.
    ///
    /// `XCLAIM key group consumer min-idle-time id [id ...] [IDLE ms] [TIME unix-time-milliseconds] [RETRYCOUNT count] [FORCE] [JUSTID] [LASTID id]`: see [`xclaim()`].
    pub fn xclaim(
        &self,
        key: impl ToArg,
        group: impl ToArg,
        consumer: impl ToArg,
        min_idle_time: impl ToArg,
        ids: impl ToArgs,
    ) -> Xclaim<Vec<(Bytes, Pairs<Bytes, Bytes>)>, &Self> {
        xclaim(key, group, consumer, min_idle_time, ids).on(self)
    }
    /// Delete entries of a stream.
    ///
    /// `XDEL key id [id ...]`: see [`xdel()`].
    pub fn xdel(&self, key: impl ToArg, ids: impl ToArgs) -> Typed<i64, &Self> {
        xdel(key, ids).on(self)
    }
    /// Delete entries of a stream, with or without what groups have of them.
    ///
    /// `XDELEX key [KEEPREF | DELREF | ACKED] IDS numids id [id ...]`: see [`xdelex()`].
    pub fn xdelex(&self, key: impl ToArg, ids: impl ToArgs) -> Xdelex<Vec<i64>, &Self> {
        xdelex(key, ids).on(self)
    }
    /// Make a group.
    ///
    /// `XGROUP CREATE key groupname <id | $> [MKSTREAM] [ENTRIESREAD entries_read]`: see [`xgroup_create()`].
    pub fn xgroup_create(&self, key: impl ToArg, groupname: impl ToArg, id: impl ToArg) -> XgroupCreate<(), &Self> {
        xgroup_create(key, groupname, id).on(self)
    }
    /// Make a consumer in a group.
    ///
    /// `XGROUP CREATECONSUMER key groupname consumername`: see [`xgroup_createconsumer()`].
    pub fn xgroup_createconsumer(
        &self,
        key: impl ToArg,
        groupname: impl ToArg,
        consumername: impl ToArg,
    ) -> Typed<bool, &Self> {
        xgroup_createconsumer(key, groupname, consumername).on(self)
    }
    /// Remove a consumer from a group.
    ///
    /// `XGROUP DELCONSUMER key groupname consumername`: see [`xgroup_delconsumer()`].
    pub fn xgroup_delconsumer(
        &self,
        key: impl ToArg,
        groupname: impl ToArg,
        consumername: impl ToArg,
    ) -> Typed<i64, &Self> {
        xgroup_delconsumer(key, groupname, consumername).on(self)
    }
    /// Remove a group.
    ///
    /// `XGROUP DESTROY key groupname`: see [`xgroup_destroy()`].
    pub fn xgroup_destroy(&self, key: impl ToArg, groupname: impl ToArg) -> Typed<bool, &Self> {
        xgroup_destroy(key, groupname).on(self)
    }
    /// Set from where a group goes on.
    ///
    /// `XGROUP SETID key groupname <id | $> [ENTRIESREAD entries_read]`: see [`xgroup_setid()`].
    pub fn xgroup_setid(&self, key: impl ToArg, groupname: impl ToArg, id: impl ToArg) -> XgroupSetid<(), &Self> {
        xgroup_setid(key, groupname, id).on(self)
    }
    /// List the consumers of a group.
    ///
    /// `XINFO CONSUMERS key groupname`: see [`xinfo_consumers()`].
    pub fn xinfo_consumers(&self, key: impl ToArg, groupname: impl ToArg) -> Typed<Vec<HashMap<Bytes, Reply>>, &Self> {
        xinfo_consumers(key, groupname).on(self)
    }
    /// List the groups of a stream.
    ///
    /// `XINFO GROUPS key`: see [`xinfo_groups()`].
    pub fn xinfo_groups(&self, key: impl ToArg) -> Typed<Vec<HashMap<Bytes, Reply>>, &Self> {
        xinfo_groups(key).on(self)
    }
    /// Describe a stream.
    ///
    /// `XINFO STREAM key [FULL [COUNT count]]`: see [`xinfo_stream()`].
    pub fn xinfo_stream(&self, key: impl ToArg) -> XinfoStream<HashMap<Bytes, Reply>, &Self> {
        xinfo_stream(key).on(self)
    }
    /// Count the entries of a stream.
    ///
    /// `XLEN key`: see [`xlen()`].
    pub fn xlen(&self, key: impl ToArg) -> Typed<i64, &Self> {
        xlen(key).on(self)
    }
    /// Show what a group has not acknowledged.
    ///
    /// `XPENDING key group [[IDLE min-idle-time] start end count [consumer]]`: see [`xpending()`].
    pub fn xpending(
        &self,
        key: impl ToArg,
        group: impl ToArg,
    ) -> Xpending<(i64, Option<Bytes>, Option<Bytes>, Option<Vec<(Bytes, u64)>>), &Self> {
        xpending(key, group).on(self)
    }
    /// List entries between two ids.
    ///
    /// `XRANGE key start end [COUNT count]`: see [`xrange()`].
    pub fn xrange(
        &self,
        key: impl ToArg,
        start: impl ToArg,
        end: impl ToArg,
    ) -> Xrange<Vec<(Bytes, Pairs<Bytes, Bytes>)>, &Self> {
        xrange(key, start, end).on(self)
    }
    /// Read new entries of streams, perhaps waiting for some.
    ///
    /// `XREAD [COUNT count] [BLOCK milliseconds] STREAMS key [key ...] id [id ...]`: see [`xread()`].
    pub fn xread(
        &self,
        keys: impl ToArgs,
        ids: impl ToArgs,
    ) -> Xread<Option<HashMap<Bytes, Vec<(Bytes, Pairs<Bytes, Bytes>)>>>, &Self> {
        xread(keys, ids).on(self)
    }
    /// Read entries of streams as a consumer of a group, perhaps waiting for some.
    ///
    /// `XREADGROUP GROUP group consumer [COUNT count] [BLOCK milliseconds] [NOACK] STREAMS key [key ...] id [id ...]`: see [`xreadgroup()`].
    pub fn xreadgroup(
        &self,
        group: impl ToArg,
        consumer: impl ToArg,
        keys: impl ToArgs,
        ids: impl ToArgs,
    ) -> Xreadgroup<Option<HashMap<Bytes, Vec<(Bytes, Option<Pairs<Bytes, Bytes>>)>>>, &Self> {
        xreadgroup(group, consumer, keys, ids).on(self)
    }
    /// List entries between two ids, newest first.
    ///
    /// `XREVRANGE key end start [COUNT count]`: see [`xrevrange()`].
    pub fn xrevrange(
        &self,
        key: impl ToArg,
        end: impl ToArg,
        start: impl ToArg,
    ) -> Xrevrange<Vec<(Bytes, Pairs<Bytes, Bytes>)>, &Self> {
        xrevrange(key, end, start).on(self)
    }
    /// Set the last id of a stream.
    ///
    /// `XSETID key last-id [ENTRIESADDED entries_added] [MAXDELETEDID max_deleted_entry_id]`: see [`xsetid()`].
    pub fn xsetid(&self, key: impl ToArg, last_id: impl ToArg) -> Xsetid<(), &Self> {
        xsetid(key, last_id).on(self)
    }
    /// Remove old entries of a stream.
    ///
    /// `XTRIM key <MAXLEN | MINID> [= | ~] threshold [LIMIT count]`: see [`xtrim()`].
    pub fn xtrim(
        &self,
        key: impl ToArg,
        strategy: Strategy,
        operator: Option<Operator>,
        threshold: impl ToArg,
    ) -> Xtrim<i64, &Self> {
        xtrim(key, strategy, operator, threshold).on(self)
    }
}
