//! Other settings in the seeded world, while replies are outstanding: nodes are called otherwise or stand in another order, some
//! keys are in a pool of their own, and clients have their connections for longer or shorter.

use super::{Expected, NODES, World, first_config};
use respool_connection::{Endpoint, Service};
use respool_proxy::{Config, LaneLimits, Mail, NodeConfig, PoolMode};
use respool_route::{Node, NodePlace, Pool, Reads, Rewrite, Route, Routes, Scheme, Topology, When};
use std::sync::Arc;

impl World {
    /// Other settings hold from now on.
    pub(super) fn reload(&mut self) {
        self.reloads += 1;
        let mut servers: Vec<usize> = (0..NODES).collect();
        if self.chance.one_in(2) {
            servers.rotate_left(1);
        }
        let calls: Vec<usize> = servers.iter().map(|_| self.chance.below(2)).collect();
        let names: Vec<String> =
            servers.iter().zip(calls).map(|(server, call)| format!("node-{server}-{call}")).collect();
        let topology = |names: &[String]| {
            Arc::new(
                Topology::new(Scheme::default(), names.iter().map(Node::new).collect()).expect("they can be placed on"),
            )
        };
        let main = topology(&names[..NODES - 1]);
        let is_routed = self.chance.one_in(2);
        let (topology, routes) = match is_routed {
            false => (topology(&names), Routes::plain(Pool::plain("main", topology(&names)))),
            true => {
                let other =
                    Pool { first: NodePlace::new(NODES - 1), ..Pool::plain("other", topology(&names[NODES - 1..])) };
                let modes = [None, Some(PoolMode::Session), Some(PoolMode::Transaction)];
                // Keys of some clients, as they are named inside of transactions and elsewhere.
                let route = |prefix: &str, pool_mode: Option<PoolMode>| Route {
                    name: prefix.into(),
                    when: When { prefix: prefix.as_bytes().into(), ..When::default() },
                    pool: 1,
                    rewrite: Rewrite::default(),
                    reads: Reads::default(),
                    dead_node: None,
                    pool_mode,
                };
                let mode = modes[self.chance.below(3)];
                let pools = vec![Pool::plain("main", Arc::clone(&main)), other];
                (main, Routes::new(pools, vec![route("1", mode), route("{1", mode)]).expect("they fit"))
            }
        };
        let node = |(name, server): (&String, &usize)| NodeConfig {
            name: name.clone(),
            endpoint: Arc::new(Endpoint::Embedded { index: *server }),
            credentials: None,
        };
        let mode = PoolMode::ALL[self.chance.below(3)].0;
        let config = Config {
            nodes: names.iter().zip(&servers).map(node).collect(),
            topology,
            routes: Arc::new(routes),
            lanes: LaneLimits { mode, blocking_max: 2, ..LaneLimits::default() },
            ..first_config(self.seed)
        };
        self.worker.handle_mail(Mail::Reload(Arc::new(config)));
    }
}

const MOVED: &[u8] =
    b"-ERR the settings have another place for the key since the request began; the command was not sent\r\n";

/// What a client may be told where other settings came between its requests: never another client's reply.
pub(super) fn may_be(expected: &Expected, reply: &[u8]) -> bool {
    let is_of_block = matches!(expected, Expected::Own(right) if right == b"+QUEUED\r\n");
    let said = |words: &[&str]| words.iter().any(|words| reply.starts_with(words.as_bytes()));
    match expected {
        Expected::Own(_) if !is_of_block => false,
        // Keys that were watched elsewhere count as changed.
        Expected::Watched(..) if reply == b"*-1\r\n" => true,
        // Half of a large write had gone to the node that had its key.
        Expected::Reply(right) if right == b"+OK\r\n" && reply == MOVED => true,
        _ => said(&[
            "-ERR the nodes were changed meanwhile; try again",
            "-EXECABORT Transaction discarded because of previous errors.",
            "-CROSSSLOT ",
            "-ERR a transaction stays in one pool",
            "-ERR SELECT inside MULTI is not supported under routes",
        ]),
    }
}
