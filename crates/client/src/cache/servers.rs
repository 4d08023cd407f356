//! Which cache a key is read by: each server tells of changes of its own keys, on a connection of its own.

use super::{CacheStats, Caching, Shared};
use crate::cluster::Caches as ClusterCaches;
use crate::shards::Shards;
use crate::topology::Topology;
use crate::{Config, Reply};
use bytes::Bytes;
use respool_route::cluster::slot_of;
use std::sync::Arc;

/// The caches of a client's servers.
#[derive(Clone, Debug)]
pub(super) enum Servers {
    One(Arc<Shared>),
    /// Of servers among which a rule spreads keys, in their order.
    Spread(Arc<Shards>, Arc<[Arc<Shared>]>),
    Cluster(Arc<ClusterCaches>),
}

/// Where a key is read.
pub(super) enum Place {
    /// By the cache of its server.
    Cache(Arc<Shared>),
    /// As if there were no cache: none of the cluster's nodes is known for it, or it cannot be reached.
    Plain,
}

impl Servers {
    pub(super) fn of(topology: &Topology, caching: Caching) -> Self {
        let cache = |config: &Config, caching: Caching| {
            let cache = Shared::new(config.clone(), caching, None);
            config.caches.add(&cache);
            cache
        };
        match topology {
            Topology::Single(node) => Self::One(cache(&node.core.config, caching)),
            Topology::Shards(shards) => {
                let nodes = shards.nodes();
                let caching = caching.clone().bytes(caching.share(nodes.len()));
                let caches = nodes.iter().map(|node| cache(&node.core.config, caching.clone())).collect();
                Self::Spread(Arc::clone(shards), caches)
            }
            Topology::Cluster(cluster) => Self::Cluster(ClusterCaches::new(cluster, caching)),
        }
    }

    /// The settings of the client.
    pub(super) fn config(&self) -> &Config {
        match self {
            Self::One(cache) => &cache.config,
            Self::Spread(shards, _) => &shards.config,
            Self::Cluster(caches) => caches.cluster().config(),
        }
    }

    pub(super) fn place(&self, key: &[u8]) -> Place {
        match self {
            Self::One(cache) => Place::Cache(Arc::clone(cache)),
            Self::Spread(shards, caches) => Place::Cache(Arc::clone(&caches[shards.place_of(key)])),
            Self::Cluster(caches) => caches.of(key).map_or(Place::Plain, Place::Cache),
        }
    }

    /// The slot of a key, in a cluster.
    pub(super) fn slot(&self, key: &Bytes) -> Option<u16> {
        matches!(self, Self::Cluster(_)).then(|| slot_of(key))
    }

    /// Whether the server that has answered so has not served the key, so that the request is for another.
    pub(super) fn is_redirected(cache: &Shared, reply: &Reply) -> bool {
        match (&cache.membership, reply) {
            (Some(membership), Reply::Error(error)) => membership.redirect(error).is_some(),
            _ => false,
        }
    }

    /// Those that there are.
    pub(super) fn each(&self) -> Vec<Arc<Shared>> {
        match self {
            Self::One(cache) => vec![Arc::clone(cache)],
            Self::Spread(_, caches) => caches.to_vec(),
            Self::Cluster(caches) => caches.each(),
        }
    }

    pub(super) fn stats(&self) -> CacheStats {
        match self {
            Self::One(cache) => cache.stats(),
            Self::Spread(_, caches) => {
                caches.iter().fold(CacheStats::default(), |stats, cache| stats.with(&cache.stats()))
            }
            Self::Cluster(caches) => caches.stats(),
        }
    }
}
