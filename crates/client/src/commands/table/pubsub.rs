//! Commands of the group pubsub.

// Written by `cargo xtask codegen` from the command table. Not to be edited.
#![allow(unused_imports, reason = "each group needs some of them")]
#![allow(clippy::type_complexity, clippy::too_many_arguments, reason = "replies and requests are what they are")]

use super::*;
use crate::commands::{Pairs, ToArg, ToDouble, ToInteger, Typed, builder};
use crate::{Reply, ToArgs, cmd};
use bytes::Bytes;
use std::collections::HashMap;

/// Send a message to a channel.
///
/// ```text
/// PUBLISH channel message
/// ```
///
/// Since 2.0.0. Takes O(N+M). ACL: @pubsub @fast.
/// See [Redis](https://redis.io/docs/latest/commands/publish/) and [Valkey](https://valkey.io/commands/publish/).
pub fn publish(channel: impl ToArg, message: impl ToArg) -> Typed<i64> {
    let mut request = cmd("PUBLISH");
    channel.write_args(&mut request);
    message.write_args(&mut request);
    Typed::new(request)
}

/// List the channels that have subscribers.
///
/// ```text
/// PUBSUB CHANNELS [pattern]
/// ```
///
/// Since 2.8.0. Takes O(N). ACL: @pubsub @slow.
/// See [Redis](https://redis.io/docs/latest/commands/pubsub-channels/) and [Valkey](https://valkey.io/commands/pubsub-channels/).
pub fn pubsub_channels() -> PubsubChannels {
    let request = cmd("PUBSUB CHANNELS");
    let place = request.place();
    PubsubChannels::new(request, place)
}

builder! {
    /// A request of [`pubsub_channels()`] and its options.
    PubsubChannels, Vec<Bytes>
}

impl<T, S> PubsubChannels<T, S> {
    /// `pattern`.
    pub fn pattern(self, pattern: impl ToArg) -> Self {
        self.with(|request| {
            pattern.write_args(request);
        })
    }
}

/// Count the patterns that are subscribed to.
///
/// ```text
/// PUBSUB NUMPAT
/// ```
///
/// Since 2.8.0. Takes O(1). ACL: @pubsub @slow.
/// See [Redis](https://redis.io/docs/latest/commands/pubsub-numpat/) and [Valkey](https://valkey.io/commands/pubsub-numpat/).
pub fn pubsub_numpat() -> Typed<i64> {
    let request = cmd("PUBSUB NUMPAT");
    Typed::new(request)
}

/// Count the subscribers of channels.
///
/// ```text
/// PUBSUB NUMSUB [channel [channel ...]]
/// ```
///
/// Since 2.8.0. Takes O(N). ACL: @pubsub @slow.
/// See [Redis](https://redis.io/docs/latest/commands/pubsub-numsub/) and [Valkey](https://valkey.io/commands/pubsub-numsub/).
pub fn pubsub_numsub() -> PubsubNumsub {
    let request = cmd("PUBSUB NUMSUB");
    let place = request.place();
    PubsubNumsub::new(request, place)
}

builder! {
    /// A request of [`pubsub_numsub()`] and its options.
    PubsubNumsub, Pairs<Bytes, i64>
}

impl<T, S> PubsubNumsub<T, S> {
    /// `channel [channel ...]`.
    pub fn channel(self, channels: impl ToArgs) -> Self {
        self.with(|request| {
            channels.write_args(request);
        })
    }
}

/// List the sharded channels that have subscribers.
///
/// ```text
/// PUBSUB SHARDCHANNELS [pattern]
/// ```
///
/// Since 7.0.0. Takes O(N). ACL: @pubsub @slow.
/// See [Redis](https://redis.io/docs/latest/commands/pubsub-shardchannels/) and [Valkey](https://valkey.io/commands/pubsub-shardchannels/).
pub fn pubsub_shardchannels() -> PubsubShardchannels {
    let request = cmd("PUBSUB SHARDCHANNELS");
    let place = request.place();
    PubsubShardchannels::new(request, place)
}

builder! {
    /// A request of [`pubsub_shardchannels()`] and its options.
    PubsubShardchannels, Vec<Bytes>
}

impl<T, S> PubsubShardchannels<T, S> {
    /// `pattern`.
    pub fn pattern(self, pattern: impl ToArg) -> Self {
        self.with(|request| {
            pattern.write_args(request);
        })
    }
}

/// Count the subscribers of sharded channels.
///
/// ```text
/// PUBSUB SHARDNUMSUB [shardchannel [shardchannel ...]]
/// ```
///
/// Since 7.0.0. Takes O(N). ACL: @pubsub @slow.
/// See [Redis](https://redis.io/docs/latest/commands/pubsub-shardnumsub/) and [Valkey](https://valkey.io/commands/pubsub-shardnumsub/).
pub fn pubsub_shardnumsub() -> PubsubShardnumsub {
    let request = cmd("PUBSUB SHARDNUMSUB");
    let place = request.place();
    PubsubShardnumsub::new(request, place)
}

builder! {
    /// A request of [`pubsub_shardnumsub()`] and its options.
    PubsubShardnumsub, Pairs<Bytes, i64>
}

impl<T, S> PubsubShardnumsub<T, S> {
    /// `shardchannel [shardchannel ...]`.
    pub fn shardchannel(self, shardchannels: impl ToArgs) -> Self {
        self.with(|request| {
            shardchannels.write_args(request);
        })
    }
}

/// Send a message to a sharded channel.
///
/// ```text
/// SPUBLISH shardchannel message
/// ```
///
/// Since 7.0.0. Takes O(N). ACL: @pubsub @fast.
/// See [Redis](https://redis.io/docs/latest/commands/spublish/) and [Valkey](https://valkey.io/commands/spublish/).
pub fn spublish(shardchannel: impl ToArg, message: impl ToArg) -> Typed<i64> {
    let mut request = cmd("SPUBLISH");
    shardchannel.write_args(&mut request);
    message.write_args(&mut request);
    Typed::new(request)
}

/// Commands of the group pubsub.
impl crate::Client {
    /// Send a message to a channel.
    ///
    /// `PUBLISH channel message`: see [`publish()`].
    pub fn publish(&self, channel: impl ToArg, message: impl ToArg) -> Typed<i64, &Self> {
        publish(channel, message).on(self)
    }
    /// List the channels that have subscribers.
    ///
    /// `PUBSUB CHANNELS [pattern]`: see [`pubsub_channels()`].
    pub fn pubsub_channels(&self) -> PubsubChannels<Vec<Bytes>, &Self> {
        pubsub_channels().on(self)
    }
    /// Count the patterns that are subscribed to.
    ///
    /// `PUBSUB NUMPAT`: see [`pubsub_numpat()`].
    pub fn pubsub_numpat(&self) -> Typed<i64, &Self> {
        pubsub_numpat().on(self)
    }
    /// Count the subscribers of channels.
    ///
    /// `PUBSUB NUMSUB [channel [channel ...]]`: see [`pubsub_numsub()`].
    pub fn pubsub_numsub(&self) -> PubsubNumsub<Pairs<Bytes, i64>, &Self> {
        pubsub_numsub().on(self)
    }
    /// List the sharded channels that have subscribers.
    ///
    /// `PUBSUB SHARDCHANNELS [pattern]`: see [`pubsub_shardchannels()`].
    pub fn pubsub_shardchannels(&self) -> PubsubShardchannels<Vec<Bytes>, &Self> {
        pubsub_shardchannels().on(self)
    }
    /// Count the subscribers of sharded channels.
    ///
    /// `PUBSUB SHARDNUMSUB [shardchannel [shardchannel ...]]`: see [`pubsub_shardnumsub()`].
    pub fn pubsub_shardnumsub(&self) -> PubsubShardnumsub<Pairs<Bytes, i64>, &Self> {
        pubsub_shardnumsub().on(self)
    }
    /// Send a message to a sharded channel.
    ///
    /// `SPUBLISH shardchannel message`: see [`spublish()`].
    pub fn spublish(&self, shardchannel: impl ToArg, message: impl ToArg) -> Typed<i64, &Self> {
        spublish(shardchannel, message).on(self)
    }
}
