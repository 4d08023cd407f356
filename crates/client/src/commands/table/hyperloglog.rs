//! Commands of the group hyperloglog.

// Written by `cargo xtask codegen` from the command table. Not to be edited.
#![allow(unused_imports, reason = "each group needs some of them")]
#![allow(clippy::type_complexity, clippy::too_many_arguments, reason = "replies and requests are what they are")]

use super::*;
use crate::commands::{Pairs, ToArg, ToDouble, ToInteger, Typed, builder};
use crate::{Reply, ToArgs, cmd};
use bytes::Bytes;
use std::collections::HashMap;

/// Add elements to a HyperLogLog.
///
/// ```text
/// PFADD key [element [element ...]]
/// ```
///
/// Since 2.8.9. Takes O(1). ACL: @write @hyperloglog @fast.
/// See [Redis](https://redis.io/docs/latest/commands/pfadd/) and [Valkey](https://valkey.io/commands/pfadd/).
pub fn pfadd(key: impl ToArg) -> Pfadd {
    let mut request = cmd("PFADD");
    key.write_args(&mut request);
    let place = request.place();
    Pfadd::new(request, place)
}

builder! {
    /// A request of [`pfadd()`] and its options.
    Pfadd, bool
}

impl<T, S> Pfadd<T, S> {
    /// `element [element ...]`.
    pub fn element(self, elements: impl ToArgs) -> Self {
        self.with(|request| {
            elements.write_args(request);
        })
    }
}

/// Estimate how many different elements HyperLogLogs have seen.
///
/// ```text
/// PFCOUNT key [key ...]
/// ```
///
/// Since 2.8.9. Takes O(1). ACL: @read @hyperloglog @slow.
/// See [Redis](https://redis.io/docs/latest/commands/pfcount/) and [Valkey](https://valkey.io/commands/pfcount/).
pub fn pfcount(keys: impl ToArgs) -> Typed<i64> {
    let mut request = cmd("PFCOUNT");
    keys.write_args(&mut request);
    Typed::new(request)
}

/// Merge HyperLogLogs into one.
///
/// ```text
/// PFMERGE destkey sourcekey [sourcekey ...]
/// ```
///
/// Since 2.8.9. Takes O(N). ACL: @write @hyperloglog @slow.
/// See [Redis](https://redis.io/docs/latest/commands/pfmerge/) and [Valkey](https://valkey.io/commands/pfmerge/).
pub fn pfmerge(destkey: impl ToArg, sourcekeys: impl ToArgs) -> Typed<()> {
    let mut request = cmd("PFMERGE");
    destkey.write_args(&mut request);
    sourcekeys.write_args(&mut request);
    Typed::new(request)
}

/// Commands of the group hyperloglog.
impl crate::Client {
    /// Add elements to a HyperLogLog.
    ///
    /// `PFADD key [element [element ...]]`: see [`pfadd()`].
    pub fn pfadd(&self, key: impl ToArg) -> Pfadd<bool, &Self> {
        pfadd(key).on(self)
    }
    /// Estimate how many different elements HyperLogLogs have seen.
    ///
    /// `PFCOUNT key [key ...]`: see [`pfcount()`].
    pub fn pfcount(&self, keys: impl ToArgs) -> Typed<i64, &Self> {
        pfcount(keys).on(self)
    }
    /// Merge HyperLogLogs into one.
    ///
    /// `PFMERGE destkey sourcekey [sourcekey ...]`: see [`pfmerge()`].
    pub fn pfmerge(&self, destkey: impl ToArg, sourcekeys: impl ToArgs) -> Typed<(), &Self> {
        pfmerge(destkey, sourcekeys).on(self)
    }
}
