//! Commands of the group generic.

// Written by `cargo xtask codegen` from the command table. Not to be edited.
#![allow(unused_imports, reason = "each group needs some of them")]
#![allow(clippy::type_complexity, clippy::too_many_arguments, reason = "replies and requests are what they are")]

use super::*;
use crate::commands::{Pairs, ToArg, ToDouble, ToInteger, Typed, builder};
use crate::{Reply, ToArgs, cmd};
use bytes::Bytes;
use std::collections::HashMap;

/// Copy a key's value to another key.
///
/// ```text
/// COPY source destination [DB destination-db] [REPLACE]
/// ```
///
/// Since 6.2.0. Takes O(N). ACL: @keyspace @write @slow.
/// See [Redis](https://redis.io/docs/latest/commands/copy/) and [Valkey](https://valkey.io/commands/copy/).
pub fn copy(source: impl ToArg, destination: impl ToArg) -> Copy {
    let mut request = cmd("COPY");
    source.write_args(&mut request);
    destination.write_args(&mut request);
    let place = request.place();
    Copy::new(request, place)
}

builder! {
    /// A request of [`copy()`] and its options.
    Copy, bool
}

impl<T, S> Copy<T, S> {
    /// `DB destination-db`.
    pub fn db(self, destination_db: impl ToInteger) -> Self {
        self.with(|request| {
            request.push(b"DB");
            destination_db.write_args(request);
        })
    }
    /// `REPLACE`.
    pub fn replace(self) -> Self {
        self.with(|request| {
            request.push(b"REPLACE");
        })
    }
}

/// Delete keys.
///
/// ```text
/// DEL key [key ...]
/// ```
///
/// Since 1.0.0. Takes O(N). ACL: @keyspace @write @slow.
/// See [Redis](https://redis.io/docs/latest/commands/del/) and [Valkey](https://valkey.io/commands/del/).
pub fn del(keys: impl ToArgs) -> Typed<i64> {
    let mut request = cmd("DEL");
    keys.write_args(&mut request);
    Typed::new(request)
}

/// Serialise the value of a key.
///
/// ```text
/// DUMP key
/// ```
///
/// Since 2.6.0. Takes O(1). ACL: @keyspace @read @slow.
/// See [Redis](https://redis.io/docs/latest/commands/dump/) and [Valkey](https://valkey.io/commands/dump/).
pub fn dump(key: impl ToArg) -> Typed<Option<Bytes>> {
    let mut request = cmd("DUMP");
    key.write_args(&mut request);
    Typed::new(request)
}

/// Count how many of the keys exist.
///
/// ```text
/// EXISTS key [key ...]
/// ```
///
/// Since 1.0.0. Takes O(N). ACL: @keyspace @read @fast.
/// See [Redis](https://redis.io/docs/latest/commands/exists/) and [Valkey](https://valkey.io/commands/exists/).
pub fn exists(keys: impl ToArgs) -> Typed<i64> {
    let mut request = cmd("EXISTS");
    keys.write_args(&mut request);
    Typed::new(request)
}

/// Let a key expire after seconds.
///
/// ```text
/// EXPIRE key seconds [NX | XX | GT | LT]
/// ```
///
/// Since 1.0.0. Takes O(1). ACL: @keyspace @write @fast.
/// See [Redis](https://redis.io/docs/latest/commands/expire/) and [Valkey](https://valkey.io/commands/expire/).
pub fn expire(key: impl ToArg, seconds: impl ToInteger) -> Expire {
    let mut request = cmd("EXPIRE");
    key.write_args(&mut request);
    seconds.write_args(&mut request);
    let place = request.place();
    Expire::new(request, place)
}

builder! {
    /// A request of [`expire()`] and its options.
    Expire, bool
}

impl<T, S> Expire<T, S> {
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

/// Let a key expire at a time in seconds.
///
/// ```text
/// EXPIREAT key unix-time-seconds [NX | XX | GT | LT]
/// ```
///
/// Since 1.2.0. Takes O(1). ACL: @keyspace @write @fast.
/// See [Redis](https://redis.io/docs/latest/commands/expireat/) and [Valkey](https://valkey.io/commands/expireat/).
pub fn expireat(key: impl ToArg, unix_time_seconds: impl ToInteger) -> Expireat {
    let mut request = cmd("EXPIREAT");
    key.write_args(&mut request);
    unix_time_seconds.write_args(&mut request);
    let place = request.place();
    Expireat::new(request, place)
}

builder! {
    /// A request of [`expireat()`] and its options.
    Expireat, bool
}

impl<T, S> Expireat<T, S> {
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

/// Tell at which second a key expires.
///
/// ```text
/// EXPIRETIME key
/// ```
///
/// Since 7.0.0. Takes O(1). ACL: @keyspace @read @fast.
/// See [Redis](https://redis.io/docs/latest/commands/expiretime/) and [Valkey](https://valkey.io/commands/expiretime/).
pub fn expiretime(key: impl ToArg) -> Typed<i64> {
    let mut request = cmd("EXPIRETIME");
    key.write_args(&mut request);
    Typed::new(request)
}

/// List the keys that match a pattern.
///
/// ```text
/// KEYS pattern
/// ```
///
/// Since 1.0.0. Takes O(N). ACL: @keyspace @read @slow @dangerous.
/// See [Redis](https://redis.io/docs/latest/commands/keys/) and [Valkey](https://valkey.io/commands/keys/).
pub fn keys(pattern: impl ToArg) -> Typed<Vec<Bytes>> {
    let mut request = cmd("KEYS");
    pattern.write_args(&mut request);
    Typed::new(request)
}

/// Move keys to another server.
///
/// ```text
/// MIGRATE host port <key | ""> destination-db timeout [COPY] [REPLACE] [[AUTH password] | [AUTH2 username password]] [KEYS key [key ...]]
/// ```
///
/// Since 2.6.0. ACL: @keyspace @write @slow @dangerous.
/// See [Redis](https://redis.io/docs/latest/commands/migrate/) and [Valkey](https://valkey.io/commands/migrate/).
pub fn migrate(
    host: impl ToArg,
    port: impl ToInteger,
    key_or_empty_string: impl ToArg,
    destination_db: impl ToInteger,
    timeout: impl ToInteger,
) -> Migrate {
    let mut request = cmd("MIGRATE");
    host.write_args(&mut request);
    port.write_args(&mut request);
    key_or_empty_string.write_args(&mut request);
    destination_db.write_args(&mut request);
    timeout.write_args(&mut request);
    let place = request.place();
    Migrate::new(request, place)
}

builder! {
    /// A request of [`migrate()`] and its options.
    Migrate, String
}

impl<T, S> Migrate<T, S> {
    /// `COPY`, since 3.0.0.
    pub fn copy(self) -> Self {
        self.with(|request| {
            request.push(b"COPY");
        })
    }
    /// `REPLACE`, since 3.0.0.
    pub fn replace(self) -> Self {
        self.with(|request| {
            request.push(b"REPLACE");
        })
    }
    /// `AUTH password`, since 4.0.7.
    pub fn auth(self, password: impl ToArg) -> Self {
        self.with(|request| {
            request.push(b"AUTH");
            password.write_args(request);
        })
    }
    /// `AUTH2 username password`, since 6.0.0.
    pub fn auth2(self, username: impl ToArg, password: impl ToArg) -> Self {
        self.with(|request| {
            request.push(b"AUTH2");
            username.write_args(request);
            password.write_args(request);
        })
    }
    /// `KEYS key [key ...]`, since 3.0.6.
    pub fn keys(self, keys: impl ToArgs) -> Self {
        self.with(|request| {
            request.push(b"KEYS");
            keys.write_args(request);
        })
    }
}

/// Move a key to another database.
///
/// ```text
/// MOVE key db
/// ```
///
/// Since 1.0.0. Takes O(1). ACL: @keyspace @write @fast.
/// See [Redis](https://redis.io/docs/latest/commands/move/) and [Valkey](https://valkey.io/commands/move/).
pub fn move_(key: impl ToArg, db: impl ToInteger) -> Typed<bool> {
    let mut request = cmd("MOVE");
    key.write_args(&mut request);
    db.write_args(&mut request);
    Typed::new(request)
}

/// Tell the encoding of a value.
///
/// ```text
/// OBJECT ENCODING key
/// ```
///
/// Since 2.2.3. Takes O(1). ACL: @keyspace @read @slow.
/// See [Redis](https://redis.io/docs/latest/commands/object-encoding/) and [Valkey](https://valkey.io/commands/object-encoding/).
pub fn object_encoding(key: impl ToArg) -> Typed<Option<Bytes>> {
    let mut request = cmd("OBJECT ENCODING");
    key.write_args(&mut request);
    Typed::new(request)
}

/// Tell how often a key is used, on a logarithmic scale.
///
/// ```text
/// OBJECT FREQ key
/// ```
///
/// Since 4.0.0. Takes O(1). ACL: @keyspace @read @slow.
/// See [Redis](https://redis.io/docs/latest/commands/object-freq/) and [Valkey](https://valkey.io/commands/object-freq/).
pub fn object_freq(key: impl ToArg) -> Typed<Option<i64>> {
    let mut request = cmd("OBJECT FREQ");
    key.write_args(&mut request);
    Typed::new(request)
}

/// Tell for how many seconds a key has not been used.
///
/// ```text
/// OBJECT IDLETIME key
/// ```
///
/// Since 2.2.3. Takes O(1). ACL: @keyspace @read @slow.
/// See [Redis](https://redis.io/docs/latest/commands/object-idletime/) and [Valkey](https://valkey.io/commands/object-idletime/).
pub fn object_idletime(key: impl ToArg) -> Typed<Option<i64>> {
    let mut request = cmd("OBJECT IDLETIME");
    key.write_args(&mut request);
    Typed::new(request)
}

/// Tell the number of references to a value.
///
/// ```text
/// OBJECT REFCOUNT key
/// ```
///
/// Since 2.2.3. Takes O(1). ACL: @keyspace @read @slow.
/// See [Redis](https://redis.io/docs/latest/commands/object-refcount/) and [Valkey](https://valkey.io/commands/object-refcount/).
pub fn object_refcount(key: impl ToArg) -> Typed<Option<i64>> {
    let mut request = cmd("OBJECT REFCOUNT");
    key.write_args(&mut request);
    Typed::new(request)
}

/// Drop the expiry of a key.
///
/// ```text
/// PERSIST key
/// ```
///
/// Since 2.2.0. Takes O(1). ACL: @keyspace @write @fast.
/// See [Redis](https://redis.io/docs/latest/commands/persist/) and [Valkey](https://valkey.io/commands/persist/).
pub fn persist(key: impl ToArg) -> Typed<bool> {
    let mut request = cmd("PERSIST");
    key.write_args(&mut request);
    Typed::new(request)
}

/// Let a key expire after milliseconds.
///
/// ```text
/// PEXPIRE key milliseconds [NX | XX | GT | LT]
/// ```
///
/// Since 2.6.0. Takes O(1). ACL: @keyspace @write @fast.
/// See [Redis](https://redis.io/docs/latest/commands/pexpire/) and [Valkey](https://valkey.io/commands/pexpire/).
pub fn pexpire(key: impl ToArg, milliseconds: impl ToInteger) -> Pexpire {
    let mut request = cmd("PEXPIRE");
    key.write_args(&mut request);
    milliseconds.write_args(&mut request);
    let place = request.place();
    Pexpire::new(request, place)
}

builder! {
    /// A request of [`pexpire()`] and its options.
    Pexpire, bool
}

impl<T, S> Pexpire<T, S> {
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

/// Let a key expire at a time in milliseconds.
///
/// ```text
/// PEXPIREAT key unix-time-milliseconds [NX | XX | GT | LT]
/// ```
///
/// Since 2.6.0. Takes O(1). ACL: @keyspace @write @fast.
/// See [Redis](https://redis.io/docs/latest/commands/pexpireat/) and [Valkey](https://valkey.io/commands/pexpireat/).
pub fn pexpireat(key: impl ToArg, unix_time_milliseconds: impl ToInteger) -> Pexpireat {
    let mut request = cmd("PEXPIREAT");
    key.write_args(&mut request);
    unix_time_milliseconds.write_args(&mut request);
    let place = request.place();
    Pexpireat::new(request, place)
}

builder! {
    /// A request of [`pexpireat()`] and its options.
    Pexpireat, bool
}

impl<T, S> Pexpireat<T, S> {
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

/// Tell at which millisecond a key expires.
///
/// ```text
/// PEXPIRETIME key
/// ```
///
/// Since 7.0.0. Takes O(1). ACL: @keyspace @read @fast.
/// See [Redis](https://redis.io/docs/latest/commands/pexpiretime/) and [Valkey](https://valkey.io/commands/pexpiretime/).
pub fn pexpiretime(key: impl ToArg) -> Typed<i64> {
    let mut request = cmd("PEXPIRETIME");
    key.write_args(&mut request);
    Typed::new(request)
}

/// Tell in how many milliseconds a key expires.
///
/// ```text
/// PTTL key
/// ```
///
/// Since 2.6.0. Takes O(1). ACL: @keyspace @read @fast.
/// See [Redis](https://redis.io/docs/latest/commands/pttl/) and [Valkey](https://valkey.io/commands/pttl/).
pub fn pttl(key: impl ToArg) -> Typed<i64> {
    let mut request = cmd("PTTL");
    key.write_args(&mut request);
    Typed::new(request)
}

/// Pick a random key.
///
/// ```text
/// RANDOMKEY
/// ```
///
/// Since 1.0.0. Takes O(1). ACL: @keyspace @read @slow.
/// See [Redis](https://redis.io/docs/latest/commands/randomkey/) and [Valkey](https://valkey.io/commands/randomkey/).
pub fn randomkey() -> Typed<Option<Bytes>> {
    let request = cmd("RANDOMKEY");
    Typed::new(request)
}

/// Rename a key, replacing what had the name.
///
/// ```text
/// RENAME key newkey
/// ```
///
/// Since 1.0.0. Takes O(1). ACL: @keyspace @write @slow.
/// See [Redis](https://redis.io/docs/latest/commands/rename/) and [Valkey](https://valkey.io/commands/rename/).
pub fn rename(key: impl ToArg, newkey: impl ToArg) -> Typed<()> {
    let mut request = cmd("RENAME");
    key.write_args(&mut request);
    newkey.write_args(&mut request);
    Typed::new(request)
}

/// Rename a key unless the new name is taken.
///
/// ```text
/// RENAMENX key newkey
/// ```
///
/// Since 1.0.0. Takes O(1). ACL: @keyspace @write @fast.
/// See [Redis](https://redis.io/docs/latest/commands/renamenx/) and [Valkey](https://valkey.io/commands/renamenx/).
pub fn renamenx(key: impl ToArg, newkey: impl ToArg) -> Typed<bool> {
    let mut request = cmd("RENAMENX");
    key.write_args(&mut request);
    newkey.write_args(&mut request);
    Typed::new(request)
}

/// Make a key from a serialised value.
///
/// ```text
/// RESTORE key ttl serialized-value [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]
/// ```
///
/// Since 2.6.0. Takes O(1). ACL: @keyspace @write @slow @dangerous.
/// See [Redis](https://redis.io/docs/latest/commands/restore/) and [Valkey](https://valkey.io/commands/restore/).
pub fn restore(key: impl ToArg, ttl: impl ToInteger, serialized_value: impl ToArg) -> Restore {
    let mut request = cmd("RESTORE");
    key.write_args(&mut request);
    ttl.write_args(&mut request);
    serialized_value.write_args(&mut request);
    let place = request.place();
    Restore::new(request, place)
}

builder! {
    /// A request of [`restore()`] and its options.
    Restore, ()
}

impl<T, S> Restore<T, S> {
    /// `REPLACE`, since 3.0.0.
    pub fn replace(self) -> Self {
        self.with(|request| {
            request.push(b"REPLACE");
        })
    }
    /// `ABSTTL`, since 5.0.0.
    pub fn absttl(self) -> Self {
        self.with(|request| {
            request.push(b"ABSTTL");
        })
    }
    /// `IDLETIME seconds`, since 5.0.0.
    pub fn idletime(self, seconds: impl ToInteger) -> Self {
        self.with(|request| {
            request.push(b"IDLETIME");
            seconds.write_args(request);
        })
    }
    /// `FREQ frequency`, since 5.0.0.
    pub fn freq(self, frequency: impl ToInteger) -> Self {
        self.with(|request| {
            request.push(b"FREQ");
            frequency.write_args(request);
        })
    }
}

/// Walk through the keys in steps.
///
/// ```text
/// SCAN cursor [MATCH pattern] [COUNT count] [TYPE type]
/// ```
///
/// Since 2.8.0. Takes O(1). ACL: @keyspace @read @slow.
/// See [Redis](https://redis.io/docs/latest/commands/scan/) and [Valkey](https://valkey.io/commands/scan/).
pub fn scan(cursor: impl ToInteger) -> Scan {
    let mut request = cmd("SCAN");
    cursor.write_args(&mut request);
    let place = request.place();
    Scan::new(request, place)
}

builder! {
    /// A request of [`scan()`] and its options.
    Scan, (u64, Vec<Bytes>)
}

impl<T, S> Scan<T, S> {
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
    /// `TYPE type`, since 6.0.0.
    pub fn type_(self, type_: impl ToArg) -> Self {
        self.with(|request| {
            request.push(b"TYPE");
            type_.write_args(request);
        })
    }
}

/// Sort the elements of a list, set or sorted set, and perhaps store them.
///
/// ```text
/// SORT key [BY pattern] [LIMIT offset count] [GET pattern [GET pattern ...]] [ASC | DESC] [ALPHA] [STORE destination]
/// ```
///
/// Since 1.0.0. Takes O(N+M·log(M)). ACL: @write @set @sortedset @list @slow @dangerous.
/// See [Redis](https://redis.io/docs/latest/commands/sort/) and [Valkey](https://valkey.io/commands/sort/).
pub fn sort(key: impl ToArg) -> Sort {
    let mut request = cmd("SORT");
    key.write_args(&mut request);
    let place = request.place();
    Sort::new(request, place)
}

builder! {
    /// A request of [`sort()`] and its options.
    Sort, Vec<Option<Bytes>>
}

impl<T, S> Sort<T, S> {
    /// `BY pattern`.
    pub fn by(self, pattern: impl ToArg) -> Self {
        self.with(|request| {
            request.push(b"BY");
            pattern.write_args(request);
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
    /// `GET pattern [GET pattern ...]`.
    pub fn get(self, pattern: impl ToArg) -> Self {
        self.with(|request| {
            request.push(b"GET");
            pattern.write_args(request);
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
    /// `ALPHA`.
    pub fn alpha(self) -> Self {
        self.with(|request| {
            request.push(b"ALPHA");
        })
    }
}

impl<S> Sort<Vec<Option<Bytes>>, S> {
    /// `STORE destination`.
    pub fn store(self, destination: impl ToArg) -> Sort<i64, S> {
        self.with(|request| {
            request.push(b"STORE");
            destination.write_args(request);
        })
        .retyped()
    }
}

impl<S> Sort<i64, S> {
    /// `STORE destination`.
    pub fn store(self, destination: impl ToArg) -> Self {
        self.with(|request| {
            request.push(b"STORE");
            destination.write_args(request);
        })
    }
}

/// Sort the elements of a list, set or sorted set.
///
/// ```text
/// SORT_RO key [BY pattern] [LIMIT offset count] [GET pattern [GET pattern ...]] [ASC | DESC] [ALPHA]
/// ```
///
/// Since 7.0.0. Takes O(N+M·log(M)). ACL: @read @set @sortedset @list @slow @dangerous.
/// See [Redis](https://redis.io/docs/latest/commands/sort_ro/) and [Valkey](https://valkey.io/commands/sort_ro/).
pub fn sort_ro(key: impl ToArg) -> SortRo {
    let mut request = cmd("SORT_RO");
    key.write_args(&mut request);
    let place = request.place();
    SortRo::new(request, place)
}

builder! {
    /// A request of [`sort_ro()`] and its options.
    SortRo, Vec<Option<Bytes>>
}

impl<T, S> SortRo<T, S> {
    /// `BY pattern`.
    pub fn by(self, pattern: impl ToArg) -> Self {
        self.with(|request| {
            request.push(b"BY");
            pattern.write_args(request);
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
    /// `GET pattern [GET pattern ...]`.
    pub fn get(self, pattern: impl ToArg) -> Self {
        self.with(|request| {
            request.push(b"GET");
            pattern.write_args(request);
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
    /// `ALPHA`.
    pub fn alpha(self) -> Self {
        self.with(|request| {
            request.push(b"ALPHA");
        })
    }
}

/// Mark keys as used, and count those that exist.
///
/// ```text
/// TOUCH key [key ...]
/// ```
///
/// Since 3.2.1. Takes O(N). ACL: @keyspace @read @fast.
/// See [Redis](https://redis.io/docs/latest/commands/touch/) and [Valkey](https://valkey.io/commands/touch/).
pub fn touch(keys: impl ToArgs) -> Typed<i64> {
    let mut request = cmd("TOUCH");
    keys.write_args(&mut request);
    Typed::new(request)
}

/// Tell in how many seconds a key expires.
///
/// ```text
/// TTL key
/// ```
///
/// Since 1.0.0. Takes O(1). ACL: @keyspace @read @fast.
/// See [Redis](https://redis.io/docs/latest/commands/ttl/) and [Valkey](https://valkey.io/commands/ttl/).
pub fn ttl(key: impl ToArg) -> Typed<i64> {
    let mut request = cmd("TTL");
    key.write_args(&mut request);
    Typed::new(request)
}

/// Tell the type of a key's value.
///
/// ```text
/// TYPE key
/// ```
///
/// Since 1.0.0. Takes O(1). ACL: @keyspace @read @fast.
/// See [Redis](https://redis.io/docs/latest/commands/type/) and [Valkey](https://valkey.io/commands/type/).
pub fn type_(key: impl ToArg) -> Typed<String> {
    let mut request = cmd("TYPE");
    key.write_args(&mut request);
    Typed::new(request)
}

/// Delete keys and free their memory later.
///
/// ```text
/// UNLINK key [key ...]
/// ```
///
/// Since 4.0.0. Takes O(1). ACL: @keyspace @write @fast.
/// See [Redis](https://redis.io/docs/latest/commands/unlink/) and [Valkey](https://valkey.io/commands/unlink/).
pub fn unlink(keys: impl ToArgs) -> Typed<i64> {
    let mut request = cmd("UNLINK");
    keys.write_args(&mut request);
    Typed::new(request)
}

/// Wait until replicas have received this connection's writes.
///
/// ```text
/// WAIT numreplicas timeout
/// ```
///
/// Since 3.0.0. Takes O(1). ACL: @slow @connection.
/// See [Redis](https://redis.io/docs/latest/commands/wait/) and [Valkey](https://valkey.io/commands/wait/).
pub fn wait(numreplicas: impl ToInteger, timeout: impl ToInteger) -> Typed<i64> {
    let mut request = cmd("WAIT");
    numreplicas.write_args(&mut request);
    timeout.write_args(&mut request);
    Typed::new(request)
}

/// Commands of the group generic.
impl crate::Client {
    /// Copy a key's value to another key.
    ///
    /// `COPY source destination [DB destination-db] [REPLACE]`: see [`copy()`].
    pub fn copy(&self, source: impl ToArg, destination: impl ToArg) -> Copy<bool, &Self> {
        copy(source, destination).on(self)
    }
    /// Delete keys.
    ///
    /// `DEL key [key ...]`: see [`del()`].
    pub fn del(&self, keys: impl ToArgs) -> Typed<i64, &Self> {
        del(keys).on(self)
    }
    /// Serialise the value of a key.
    ///
    /// `DUMP key`: see [`dump()`].
    pub fn dump(&self, key: impl ToArg) -> Typed<Option<Bytes>, &Self> {
        dump(key).on(self)
    }
    /// Count how many of the keys exist.
    ///
    /// `EXISTS key [key ...]`: see [`exists()`].
    pub fn exists(&self, keys: impl ToArgs) -> Typed<i64, &Self> {
        exists(keys).on(self)
    }
    /// Let a key expire after seconds.
    ///
    /// `EXPIRE key seconds [NX | XX | GT | LT]`: see [`expire()`].
    pub fn expire(&self, key: impl ToArg, seconds: impl ToInteger) -> Expire<bool, &Self> {
        expire(key, seconds).on(self)
    }
    /// Let a key expire at a time in seconds.
    ///
    /// `EXPIREAT key unix-time-seconds [NX | XX | GT | LT]`: see [`expireat()`].
    pub fn expireat(&self, key: impl ToArg, unix_time_seconds: impl ToInteger) -> Expireat<bool, &Self> {
        expireat(key, unix_time_seconds).on(self)
    }
    /// Tell at which second a key expires.
    ///
    /// `EXPIRETIME key`: see [`expiretime()`].
    pub fn expiretime(&self, key: impl ToArg) -> Typed<i64, &Self> {
        expiretime(key).on(self)
    }
    /// List the keys that match a pattern.
    ///
    /// `KEYS pattern`: see [`keys()`].
    pub fn keys(&self, pattern: impl ToArg) -> Typed<Vec<Bytes>, &Self> {
        keys(pattern).on(self)
    }
    /// Move keys to another server.
    ///
    /// `MIGRATE host port <key | ""> destination-db timeout [COPY] [REPLACE] [[AUTH password] | [AUTH2 username password]] [KEYS key [key ...]]`: see [`migrate()`].
    pub fn migrate(
        &self,
        host: impl ToArg,
        port: impl ToInteger,
        key_or_empty_string: impl ToArg,
        destination_db: impl ToInteger,
        timeout: impl ToInteger,
    ) -> Migrate<String, &Self> {
        migrate(host, port, key_or_empty_string, destination_db, timeout).on(self)
    }
    /// Move a key to another database.
    ///
    /// `MOVE key db`: see [`move_()`].
    pub fn move_(&self, key: impl ToArg, db: impl ToInteger) -> Typed<bool, &Self> {
        move_(key, db).on(self)
    }
    /// Tell the encoding of a value.
    ///
    /// `OBJECT ENCODING key`: see [`object_encoding()`].
    pub fn object_encoding(&self, key: impl ToArg) -> Typed<Option<Bytes>, &Self> {
        object_encoding(key).on(self)
    }
    /// Tell how often a key is used, on a logarithmic scale.
    ///
    /// `OBJECT FREQ key`: see [`object_freq()`].
    pub fn object_freq(&self, key: impl ToArg) -> Typed<Option<i64>, &Self> {
        object_freq(key).on(self)
    }
    /// Tell for how many seconds a key has not been used.
    ///
    /// `OBJECT IDLETIME key`: see [`object_idletime()`].
    pub fn object_idletime(&self, key: impl ToArg) -> Typed<Option<i64>, &Self> {
        object_idletime(key).on(self)
    }
    /// Tell the number of references to a value.
    ///
    /// `OBJECT REFCOUNT key`: see [`object_refcount()`].
    pub fn object_refcount(&self, key: impl ToArg) -> Typed<Option<i64>, &Self> {
        object_refcount(key).on(self)
    }
    /// Drop the expiry of a key.
    ///
    /// `PERSIST key`: see [`persist()`].
    pub fn persist(&self, key: impl ToArg) -> Typed<bool, &Self> {
        persist(key).on(self)
    }
    /// Let a key expire after milliseconds.
    ///
    /// `PEXPIRE key milliseconds [NX | XX | GT | LT]`: see [`pexpire()`].
    pub fn pexpire(&self, key: impl ToArg, milliseconds: impl ToInteger) -> Pexpire<bool, &Self> {
        pexpire(key, milliseconds).on(self)
    }
    /// Let a key expire at a time in milliseconds.
    ///
    /// `PEXPIREAT key unix-time-milliseconds [NX | XX | GT | LT]`: see [`pexpireat()`].
    pub fn pexpireat(&self, key: impl ToArg, unix_time_milliseconds: impl ToInteger) -> Pexpireat<bool, &Self> {
        pexpireat(key, unix_time_milliseconds).on(self)
    }
    /// Tell at which millisecond a key expires.
    ///
    /// `PEXPIRETIME key`: see [`pexpiretime()`].
    pub fn pexpiretime(&self, key: impl ToArg) -> Typed<i64, &Self> {
        pexpiretime(key).on(self)
    }
    /// Tell in how many milliseconds a key expires.
    ///
    /// `PTTL key`: see [`pttl()`].
    pub fn pttl(&self, key: impl ToArg) -> Typed<i64, &Self> {
        pttl(key).on(self)
    }
    /// Pick a random key.
    ///
    /// `RANDOMKEY`: see [`randomkey()`].
    pub fn randomkey(&self) -> Typed<Option<Bytes>, &Self> {
        randomkey().on(self)
    }
    /// Rename a key, replacing what had the name.
    ///
    /// `RENAME key newkey`: see [`rename()`].
    pub fn rename(&self, key: impl ToArg, newkey: impl ToArg) -> Typed<(), &Self> {
        rename(key, newkey).on(self)
    }
    /// Rename a key unless the new name is taken.
    ///
    /// `RENAMENX key newkey`: see [`renamenx()`].
    pub fn renamenx(&self, key: impl ToArg, newkey: impl ToArg) -> Typed<bool, &Self> {
        renamenx(key, newkey).on(self)
    }
    /// Make a key from a serialised value.
    ///
    /// `RESTORE key ttl serialized-value [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]`: see [`restore()`].
    pub fn restore(&self, key: impl ToArg, ttl: impl ToInteger, serialized_value: impl ToArg) -> Restore<(), &Self> {
        restore(key, ttl, serialized_value).on(self)
    }
    /// Walk through the keys in steps.
    ///
    /// `SCAN cursor [MATCH pattern] [COUNT count] [TYPE type]`: see [`scan()`].
    pub fn scan(&self, cursor: impl ToInteger) -> Scan<(u64, Vec<Bytes>), &Self> {
        scan(cursor).on(self)
    }
    /// Sort the elements of a list, set or sorted set, and perhaps store them.
    ///
    /// `SORT key [BY pattern] [LIMIT offset count] [GET pattern [GET pattern ...]] [ASC | DESC] [ALPHA] [STORE destination]`: see [`sort()`].
    pub fn sort(&self, key: impl ToArg) -> Sort<Vec<Option<Bytes>>, &Self> {
        sort(key).on(self)
    }
    /// Sort the elements of a list, set or sorted set.
    ///
    /// `SORT_RO key [BY pattern] [LIMIT offset count] [GET pattern [GET pattern ...]] [ASC | DESC] [ALPHA]`: see [`sort_ro()`].
    pub fn sort_ro(&self, key: impl ToArg) -> SortRo<Vec<Option<Bytes>>, &Self> {
        sort_ro(key).on(self)
    }
    /// Mark keys as used, and count those that exist.
    ///
    /// `TOUCH key [key ...]`: see [`touch()`].
    pub fn touch(&self, keys: impl ToArgs) -> Typed<i64, &Self> {
        touch(keys).on(self)
    }
    /// Tell in how many seconds a key expires.
    ///
    /// `TTL key`: see [`ttl()`].
    pub fn ttl(&self, key: impl ToArg) -> Typed<i64, &Self> {
        ttl(key).on(self)
    }
    /// Tell the type of a key's value.
    ///
    /// `TYPE key`: see [`type_()`].
    pub fn type_(&self, key: impl ToArg) -> Typed<String, &Self> {
        type_(key).on(self)
    }
    /// Delete keys and free their memory later.
    ///
    /// `UNLINK key [key ...]`: see [`unlink()`].
    pub fn unlink(&self, keys: impl ToArgs) -> Typed<i64, &Self> {
        unlink(keys).on(self)
    }
    /// Wait until replicas have received this connection's writes.
    ///
    /// `WAIT numreplicas timeout`: see [`wait()`].
    pub fn wait(&self, numreplicas: impl ToInteger, timeout: impl ToInteger) -> Typed<i64, &Self> {
        wait(numreplicas, timeout).on(self)
    }
}
