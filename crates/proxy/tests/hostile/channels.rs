//! Channels while nodes and routes change under those who subscribe and publish.

use crate::NoEngine;
use crate::bench::{Bench, requests};
use crate::support::config;
use respool_connection::{ConnId, Machine};
use respool_proxy::{Config, Mail};
use respool_route::{Node, Pool, Routes, Scheme, Topology};
use std::sync::Arc;

/// The same nodes in another order, each with the keys that it had.
fn turned_round() -> [Config; 2] {
    [["node-0", "node-1"], ["node-1", "node-0"]].map(|names| {
        let mut config = config(2, 1);
        let topology = Topology::new("rendezvous".parse::<Scheme>().unwrap(), names.map(Node::new).into());
        config.topology = Arc::new(topology.unwrap());
        config.routes = Arc::new(Routes::plain(Pool::plain("main", Arc::clone(&config.topology))));
        config.nodes.sort_by_key(|node| names.iter().position(|name| *name == node.name));
        config
    })
}

/// The node connection that was told to subscribe; it does so.
fn acknowledge(bench: &mut Bench<NoEngine>, channel: &str) {
    let words = format!("subscribe {channel}");
    let (lane, _) = bench.who_heard(&words).expect("a node is told");
    let reply = format!(">3\r\n$9\r\nsubscribe\r\n${}\r\n{channel}\r\n:1\r\n", channel.len());
    bench.send(lane, reply.as_bytes());
}

#[test]
fn receivers_are_counted_although_nodes_have_other_places_now() {
    let [before, after] = turned_round();
    for channel in ["a", "b", "c", "d"] {
        let mut bench = Bench::proxy(before.clone());
        let subscribers: Vec<ConnId> = (0..3).map(|_| bench.accept()).collect();
        for subscriber in &subscribers {
            bench.ask(*subscriber, &["SUBSCRIBE", channel]);
        }
        bench.connect();
        acknowledge(&mut bench, channel);
        let publisher = bench.accept();
        bench.ask(publisher, &["PUBLISH", channel, "hello"]);
        bench.connect();
        let (asked, _) = bench.who_heard(&format!("PUBLISH {channel} hello")).expect("a node is asked");
        let config = Arc::new(after.clone());
        bench.turn(|worker| worker.handle_mail(Mail::Reload(config)));
        bench.connect();
        acknowledge(&mut bench, channel);
        assert!(requests(&bench.heard(publisher)).is_empty());
        bench.send(asked, b":1\r\n");
        assert_eq!(bench.heard(publisher), ":3\r\n", "{channel}: three clients behind one connection");
    }
}
