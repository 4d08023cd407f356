//! The settings of one epoch: which servers the nodes are, which keys each has, and by which names.

use super::chance::Chance;
use super::support::config;
use respool_connection::{Credentials, Endpoint};
use respool_proxy::{Budgets, Config, LaneLimits, NodeConfig, PoolMode};
use respool_route::{Node, NodePlace, Pool, Reads, Rewrite, Route, Routes, Scheme, Topology, When};
use std::sync::Arc;

/// Bytes of an argument with which a request is large, and passed on as it comes.
pub(super) const LARGE: usize = 1_000;

/// Servers that nodes may be.
pub(super) const PLACES: usize = 6;

/// Keys of this prefix go by a route of their own, where there is one.
const ROUTED: &str = "r";

/// What the settings say.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    /// Names and places of the nodes of the first pool.
    nodes: Vec<(String, usize)>,
    /// The node of the routed keys, and what is put in front of their names, if they have a route.
    routed: Option<((String, usize), String)>,
    password: Option<String>,
    mode: PoolMode,
}

impl Settings {
    pub(super) fn any(chance: &mut Chance) -> Self {
        let nodes = (0..3).map(|number| (format!("n{number}"), number)).collect();
        Self { nodes, routed: None, password: None, mode: PoolMode::ALL[chance.below(3)].0 }
    }

    /// Something about them is different.
    pub(super) fn changed(&self, chance: &mut Chance) -> Self {
        let mut new = self.clone();
        match chance.below(10) {
            // A node stands elsewhere.
            0..=3 => {
                let place = new.free_place(chance);
                let number = chance.below(new.nodes.len());
                new.nodes[number].1 = place;
            }
            // One goes, or comes; keys are placed anew.
            4 if new.nodes.len() > 1 => {
                new.nodes.remove(chance.below(new.nodes.len()));
            }
            4 | 5 => {
                let place = new.free_place(chance);
                let name = (0..).map(|number| format!("n{number}")).find(|name| !new.names().contains(name));
                new.nodes.push((name.expect("numbers do not end"), place));
                new.nodes.truncate(4);
            }
            6 => new.password = Some(format!("p{}", chance.below(3))),
            7 | 8 => {
                let place = new.free_place(chance);
                let add = ["", "x:", "y:"][chance.below(3)].to_owned();
                let node = (format!("o{}", chance.below(2)), place);
                new.routed = if chance.one_in(3) { None } else { Some((node, add)) };
            }
            // Other things, which nothing has to move for.
            _ => new.mode = PoolMode::ALL[chance.below(3)].0,
        }
        new
    }

    fn free_place(&self, chance: &mut Chance) -> usize {
        loop {
            let place = chance.below(PLACES);
            if !self.all().any(|(_, taken)| *taken == place) {
                return place;
            }
        }
    }

    fn all(&self) -> impl Iterator<Item = &(String, usize)> {
        self.nodes.iter().chain(self.routed.iter().map(|(node, _)| node))
    }

    /// The names of all nodes.
    pub(super) fn names(&self) -> Vec<String> {
        self.all().map(|(name, _)| name.clone()).collect()
    }

    /// What the node at a place is called.
    pub(super) fn names_at(&self, place: usize) -> Vec<String> {
        self.all().filter(|(_, at)| *at == place).map(|(name, _)| name.clone()).collect()
    }

    fn topology(&self) -> Topology {
        let nodes = self.nodes.iter().map(|(name, _)| Node::new(name)).collect();
        Topology::new(Scheme::default(), nodes).expect("there are few")
    }

    /// Where a key is, and what it is called there.
    pub(super) fn place(&self, key: &str) -> (usize, String) {
        match &self.routed {
            Some(((_, place), add)) if key.starts_with(ROUTED) => (*place, format!("{add}{key}")),
            _ => (self.nodes[self.topology().place(key.as_bytes()).get()].1, key.to_owned()),
        }
    }

    pub(super) fn config(&self, seed: u64) -> Config {
        let credentials = self
            .password
            .as_ref()
            .map(|password| Arc::new(Credentials { username: None, password: password.clone().into() }));
        let node = |(name, place): &(String, usize)| NodeConfig {
            name: name.clone(),
            endpoint: Arc::new(Endpoint::Embedded { index: *place }),
            credentials: credentials.clone(),
        };
        let topology = Arc::new(self.topology());
        let main = Pool::plain("main", Arc::clone(&topology));
        let routes = match &self.routed {
            None => Routes::plain(main),
            Some(((name, _), add)) => {
                let other = Topology::new(Scheme::default(), vec![Node::new(name)]).expect("one is enough");
                let other = Pool { first: NodePlace::new(self.nodes.len()), ..Pool::plain("other", Arc::new(other)) };
                let route = Route {
                    name: "routed".into(),
                    when: When { prefix: ROUTED.as_bytes().into(), ..When::default() },
                    pool: 1,
                    rewrite: Rewrite { strip: 0, add: add.as_bytes().into() },
                    reads: Reads::default(),
                    dead_node: None,
                    pool_mode: None,
                };
                Routes::new(vec![main, other], vec![route]).expect("they fit")
            }
        };
        let plain = config(1, seed);
        Config {
            nodes: self.all().map(node).collect(),
            topology,
            routes: Arc::new(routes),
            lanes: LaneLimits { mode: self.mode, blocking_max: 3, ..LaneLimits::default() },
            budgets: Budgets { request_whole: LARGE, ..plain.budgets },
            ..plain
        }
    }
}
