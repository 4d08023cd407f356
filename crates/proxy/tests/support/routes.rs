//! Settings with routes that several tests share.

use super::support::config;
use respool_proxy::Config;
use respool_route::{Node, NodePlace, Pool, PoolMode, Reads, Rewrite, Route, Routes, Scheme, Topology, When};
use std::sync::Arc;

/// Two nodes, and a route to the second in pool mode `session`: clients share connections to the first only.
pub(crate) fn with_an_own_connection() -> Config {
    let mut config = config(2, 1);
    let topology = |name: &str| Arc::new(Topology::new(Scheme::default(), vec![Node::new(name)]).unwrap());
    let pools = vec![
        Pool::plain("main", topology("node-0")),
        Pool { first: NodePlace::new(1), ..Pool::plain("other", topology("node-1")) },
    ];
    let route = Route {
        name: "own".into(),
        when: When { prefix: b"own:".as_slice().into(), ..When::default() },
        pool: 1,
        rewrite: Rewrite::default(),
        reads: Reads::Primary,
        dead_node: None,
        pool_mode: Some(PoolMode::Session),
    };
    config.topology = Arc::clone(&pools[0].topology);
    config.routes = Arc::new(Routes::new(pools, vec![route]).unwrap());
    config
}
