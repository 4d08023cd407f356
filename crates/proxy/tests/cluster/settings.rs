//! The settings of one epoch: which server has the keys of each shard.

use crate::support::config;
use respool_connection::Endpoint;
use respool_proxy::{Budgets, Config, LaneLimits, NodeConfig, PoolMode};
use respool_sim::{NodeIndex, World};
use std::sync::Arc;

pub(super) const SHARDS: usize = 3;

/// Bytes of an argument with which a request is large, and passed on as it comes.
pub(super) const LARGE: usize = 300;

/// The servers of all shards, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Settings(pub(super) [NodeIndex; SHARDS]);

pub(super) fn endpoint_of(world: &World, node: NodeIndex) -> Endpoint {
    let address = world.address(node);
    Endpoint::Tcp { host: address.host().to_owned(), port: address.port() }
}

/// The name of a shard's node.
pub(super) fn name_of(shard: usize) -> String {
    format!("node-{shard}")
}

impl Settings {
    /// Of the world with this seed.
    pub(super) fn config(&self, world: &World, seed: u64) -> Config {
        let node = |(shard, node): (usize, &NodeIndex)| NodeConfig {
            name: name_of(shard),
            endpoint: Arc::new(endpoint_of(world, *node)),
            credentials: None,
        };
        let mode = PoolMode::ALL[seed as usize % 3].0;
        let plain = config(SHARDS, seed);
        Config {
            budgets: Budgets { request_whole: LARGE, ..plain.budgets },
            nodes: self.0.iter().enumerate().map(node).collect(),
            lanes: LaneLimits { mode, blocking_max: 3, ..LaneLimits::default() },
            ..plain
        }
    }
}
