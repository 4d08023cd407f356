//! Commands of the group bitmap.

// Written by `cargo xtask codegen` from the command table. Not to be edited.
#![allow(unused_imports, reason = "each group needs some of them")]
#![allow(clippy::type_complexity, clippy::too_many_arguments, reason = "replies and requests are what they are")]

use super::*;
use crate::commands::{Pairs, ToArg, ToDouble, ToInteger, Typed, builder};
use crate::{Reply, ToArgs, cmd};
use bytes::Bytes;
use std::collections::HashMap;

/// Count the bits that are set in a string or a part of it.
///
/// ```text
/// BITCOUNT key [start end [BYTE | BIT]]
/// ```
///
/// Since 2.6.0. Takes O(N). ACL: @read @bitmap @slow.
/// See [Redis](https://redis.io/docs/latest/commands/bitcount/) and [Valkey](https://valkey.io/commands/bitcount/).
pub fn bitcount(key: impl ToArg) -> Bitcount {
    let mut request = cmd("BITCOUNT");
    key.write_args(&mut request);
    let place = request.place();
    Bitcount::new(request, place)
}

builder! {
    /// A request of [`bitcount()`] and its options.
    Bitcount, i64
}

impl<T, S> Bitcount<T, S> {
    /// `start end [BYTE | BIT]`.
    pub fn index(self, start: impl ToInteger, end: impl ToInteger) -> Self {
        self.with(|request| {
            start.write_args(request);
            end.write_args(request);
        })
    }
    /// `BYTE`.
    pub fn byte(self) -> Self {
        self.with(|request| {
            request.push(b"BYTE");
        })
    }
    /// `BIT`.
    pub fn bit(self) -> Self {
        self.with(|request| {
            request.push(b"BIT");
        })
    }
}

/// Read, set and increment integers of any width within a string.
///
/// ```text
/// BITFIELD key [GET encoding offset | [OVERFLOW WRAP | SAT | FAIL] <SET encoding offset value | INCRBY encoding offset increment> [GET encoding offset | [OVERFLOW WRAP | SAT | FAIL] <SET encoding offset value | INCRBY encoding offset increment> ...]]
/// ```
///
/// Since 3.2.0. Takes O(1). ACL: @write @bitmap @slow.
/// See [Redis](https://redis.io/docs/latest/commands/bitfield/) and [Valkey](https://valkey.io/commands/bitfield/).
pub fn bitfield(key: impl ToArg) -> Bitfield {
    let mut request = cmd("BITFIELD");
    key.write_args(&mut request);
    let place = request.place();
    Bitfield::new(request, place)
}

builder! {
    /// A request of [`bitfield()`] and its options.
    Bitfield, Vec<Option<i64>>
}

impl<T, S> Bitfield<T, S> {
    /// `GET encoding offset`.
    pub fn get(self, encoding: impl ToArg, offset: impl ToInteger) -> Self {
        self.with(|request| {
            request.push(b"GET");
            encoding.write_args(request);
            offset.write_args(request);
        })
    }
    /// `OVERFLOW WRAP | SAT | FAIL`.
    pub fn overflow(self, wrap_sat_fail: WrapSatFail) -> Self {
        self.with(|request| {
            request.push(b"OVERFLOW");
            wrap_sat_fail.write_args(request);
        })
    }
    /// `SET encoding offset value`.
    pub fn set(self, encoding: impl ToArg, offset: impl ToInteger, value: impl ToInteger) -> Self {
        self.with(|request| {
            request.push(b"SET");
            encoding.write_args(request);
            offset.write_args(request);
            value.write_args(request);
        })
    }
    /// `INCRBY encoding offset increment`.
    pub fn incrby(self, encoding: impl ToArg, offset: impl ToInteger, increment: impl ToInteger) -> Self {
        self.with(|request| {
            request.push(b"INCRBY");
            encoding.write_args(request);
            offset.write_args(request);
            increment.write_args(request);
        })
    }
}

/// Read integers of any width within a string.
///
/// ```text
/// BITFIELD_RO key [GET encoding offset [GET encoding offset ...]]
/// ```
///
/// Since 6.0.0. Takes O(1). ACL: @read @bitmap @fast.
/// See [Redis](https://redis.io/docs/latest/commands/bitfield_ro/) and [Valkey](https://valkey.io/commands/bitfield_ro/).
pub fn bitfield_ro(key: impl ToArg) -> BitfieldRo {
    let mut request = cmd("BITFIELD_RO");
    key.write_args(&mut request);
    let place = request.place();
    BitfieldRo::new(request, place)
}

builder! {
    /// A request of [`bitfield_ro()`] and its options.
    BitfieldRo, Vec<i64>
}

impl<T, S> BitfieldRo<T, S> {
    /// `GET encoding offset [GET encoding offset ...]`.
    pub fn get(self, encoding: impl ToArg, offset: impl ToInteger) -> Self {
        self.with(|request| {
            request.push(b"GET");
            encoding.write_args(request);
            offset.write_args(request);
        })
    }
}

/// Combine strings bit by bit and store the result.
///
/// ```text
/// BITOP operation destkey key [key ...]
/// ```
///
/// Since 2.6.0. Takes O(N). ACL: @write @bitmap @slow.
/// See [Redis](https://redis.io/docs/latest/commands/bitop/) and [Valkey](https://valkey.io/commands/bitop/).
pub fn bitop(operation: impl ToArg, destkey: impl ToArg, keys: impl ToArgs) -> Typed<i64> {
    let mut request = cmd("BITOP");
    operation.write_args(&mut request);
    destkey.write_args(&mut request);
    keys.write_args(&mut request);
    Typed::new(request)
}

/// Find the first bit that is set, or clear, in a string.
///
/// ```text
/// BITPOS key bit [start [end [BYTE | BIT]]]
/// ```
///
/// Since 2.8.7. Takes O(N). ACL: @read @bitmap @slow.
/// See [Redis](https://redis.io/docs/latest/commands/bitpos/) and [Valkey](https://valkey.io/commands/bitpos/).
pub fn bitpos(key: impl ToArg, bit: impl ToInteger) -> Bitpos {
    let mut request = cmd("BITPOS");
    key.write_args(&mut request);
    bit.write_args(&mut request);
    let place = request.place();
    Bitpos::new(request, place)
}

builder! {
    /// A request of [`bitpos()`] and its options.
    Bitpos, i64
}

impl<T, S> Bitpos<T, S> {
    /// `start`.
    pub fn start(self, start: impl ToInteger) -> Self {
        self.with(|request| {
            start.write_args(request);
        })
    }
    /// `end`.
    pub fn end(self, end: impl ToInteger) -> Self {
        self.with(|request| {
            end.write_args(request);
        })
    }
    /// `BYTE`.
    pub fn byte(self) -> Self {
        self.with(|request| {
            request.push(b"BYTE");
        })
    }
    /// `BIT`.
    pub fn bit(self) -> Self {
        self.with(|request| {
            request.push(b"BIT");
        })
    }
}

/// Tell one bit of a string.
///
/// ```text
/// GETBIT key offset
/// ```
///
/// Since 2.2.0. Takes O(1). ACL: @read @bitmap @fast.
/// See [Redis](https://redis.io/docs/latest/commands/getbit/) and [Valkey](https://valkey.io/commands/getbit/).
pub fn getbit(key: impl ToArg, offset: impl ToInteger) -> Typed<bool> {
    let mut request = cmd("GETBIT");
    key.write_args(&mut request);
    offset.write_args(&mut request);
    Typed::new(request)
}

/// Set or clear one bit of a string.
///
/// ```text
/// SETBIT key offset value
/// ```
///
/// Since 2.2.0. Takes O(1). ACL: @write @bitmap @slow.
/// See [Redis](https://redis.io/docs/latest/commands/setbit/) and [Valkey](https://valkey.io/commands/setbit/).
pub fn setbit(key: impl ToArg, offset: impl ToInteger, value: impl ToInteger) -> Typed<bool> {
    let mut request = cmd("SETBIT");
    key.write_args(&mut request);
    offset.write_args(&mut request);
    value.write_args(&mut request);
    Typed::new(request)
}

/// Commands of the group bitmap.
impl crate::Client {
    /// Count the bits that are set in a string or a part of it.
    ///
    /// `BITCOUNT key [start end [BYTE | BIT]]`: see [`bitcount()`].
    pub fn bitcount(&self, key: impl ToArg) -> Bitcount<i64, &Self> {
        bitcount(key).on(self)
    }
    /// Read, set and increment integers of any width within a string.
    ///
    /// `BITFIELD key [GET encoding offset | [OVERFLOW WRAP | SAT | FAIL] <SET encoding offset value | INCRBY encoding offset increment> [GET encoding offset | [OVERFLOW WRAP | SAT | FAIL] <SET encoding offset value | INCRBY encoding offset increment> ...]]`: see [`bitfield()`].
    pub fn bitfield(&self, key: impl ToArg) -> Bitfield<Vec<Option<i64>>, &Self> {
        bitfield(key).on(self)
    }
    /// Read integers of any width within a string.
    ///
    /// `BITFIELD_RO key [GET encoding offset [GET encoding offset ...]]`: see [`bitfield_ro()`].
    pub fn bitfield_ro(&self, key: impl ToArg) -> BitfieldRo<Vec<i64>, &Self> {
        bitfield_ro(key).on(self)
    }
    /// Combine strings bit by bit and store the result.
    ///
    /// `BITOP operation destkey key [key ...]`: see [`bitop()`].
    pub fn bitop(&self, operation: impl ToArg, destkey: impl ToArg, keys: impl ToArgs) -> Typed<i64, &Self> {
        bitop(operation, destkey, keys).on(self)
    }
    /// Find the first bit that is set, or clear, in a string.
    ///
    /// `BITPOS key bit [start [end [BYTE | BIT]]]`: see [`bitpos()`].
    pub fn bitpos(&self, key: impl ToArg, bit: impl ToInteger) -> Bitpos<i64, &Self> {
        bitpos(key, bit).on(self)
    }
    /// Tell one bit of a string.
    ///
    /// `GETBIT key offset`: see [`getbit()`].
    pub fn getbit(&self, key: impl ToArg, offset: impl ToInteger) -> Typed<bool, &Self> {
        getbit(key, offset).on(self)
    }
    /// Set or clear one bit of a string.
    ///
    /// `SETBIT key offset value`: see [`setbit()`].
    pub fn setbit(&self, key: impl ToArg, offset: impl ToInteger, value: impl ToInteger) -> Typed<bool, &Self> {
        setbit(key, offset, value).on(self)
    }
}
