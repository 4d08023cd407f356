//! Where channels are under routes.

use crate::config::Config;
use crate::ids::{NodeId, NodeRange};
use respool_connection::push::frame::Kind;
use respool_connection::push::scope::scope;
use respool_route::{Led, Routes};

/// One way of a channel, or pattern, to a pool.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ChannelRoute {
    /// The first route that leads so.
    pub(crate) route: u16,
    pub(crate) pool: u16,
    /// The name at the nodes.
    pub(crate) name: Vec<u8>,
}

impl ChannelRoute {
    /// The nodes that it ends at.
    pub(crate) fn nodes(&self, routes: &Routes, kind: Kind) -> NodeRange {
        let pool = &routes.pools()[usize::from(self.pool)];
        if is_everywhere(kind, &self.name) {
            return NodeId::of_pool(pool);
        }
        NodeRange::one(NodeId::at(pool.place(pool.topology.place(&self.name))))
    }

    pub(crate) fn of(routes: &Routes, led: Led) -> Self {
        Self { route: led.route, pool: routes.route(led.route).pool as u16, name: led.name }
    }

    pub(crate) fn told(&self) -> Vec<u8> {
        [&scope(&[&self.pool.to_be_bytes()]), &*self.name].concat()
    }
}

/// A user's name as routes know it.
pub(crate) fn user_text(user: &[u8]) -> &str {
    std::str::from_utf8(user).unwrap_or("\u{fffd}")
}

/// Whether a pattern is meant for what nodes say of their own keys: then it goes to all pools as it is.
pub(crate) fn is_about_keys(pattern: &[u8]) -> bool {
    pattern.starts_with(b"__key")
}

/// A channel that a request names, for showing where it is.
#[derive(Debug)]
pub(crate) struct ChannelPlace {
    pub(crate) name: Box<[u8]>,
    pub(crate) way: ChannelRoute,
    pub(crate) nodes: Vec<NodeId>,
}

/// Whether routes say where channels are.
pub(crate) fn is_routed(config: &Config) -> bool {
    !config.nodes.is_empty() && !config.routes.keep_channels()
}

/// Whether a channel is every node's business: a pattern, or one by which each node speaks of its own keys.
pub(crate) fn is_everywhere(kind: Kind, name: &[u8]) -> bool {
    match kind {
        Kind::Pattern => true,
        Kind::Channel => name.starts_with(b"__keyspace@") || name.starts_with(b"__keyevent@"),
        Kind::Shard => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_by_which_nodes_speak_of_their_keys_are_everywhere() {
        for name in [&b"__keyspace@0__:k"[..], b"__keyevent@3__:del"] {
            assert!(is_everywhere(Kind::Channel, name));
            assert!(!is_everywhere(Kind::Shard, name), "a channel of a shard has its slot");
        }
        assert!(!is_everywhere(Kind::Channel, b"news"));
        assert!(!is_everywhere(Kind::Channel, b"x__keyspace@0__:k"));
        assert!(is_everywhere(Kind::Pattern, b"news"));
    }

    #[test]
    fn a_channel_of_the_same_name_in_two_pools_is_two_to_nodes() {
        let told = |pool| ChannelRoute { route: 0, pool, name: b"news".to_vec() }.told();
        assert_ne!(told(0), told(1));
        assert_eq!(respool_connection::push::scope::behind(&told(1)), b"news");
    }
}
