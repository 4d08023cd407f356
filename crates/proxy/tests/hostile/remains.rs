//! Nothing is kept for a client that has been told that there is nothing to wait for.

use crate::bench::Bench;
use crate::support::config;
use respool_connection::{Machine, Service};
use respool_proxy::{Config, Mail};
use std::sync::Arc;

/// As many nodes, all of which have other names.
fn renamed(nodes: usize) -> Config {
    let base = config(nodes, 1);
    let mut names = base.nodes.clone();
    names.iter_mut().for_each(|node| node.name = format!("new-{}", node.name));
    Config { nodes: names, ..base }
}

#[test]
fn who_waits_is_in_no_queue_of_a_node_that_has_gone() {
    let mut bench = Bench::proxy(config(1, 1));
    let client = bench.accept();
    bench.ask(client, &["BLPOP", "key", "0"]);
    bench.turn(|worker| worker.handle_mail(Mail::Reload(Arc::new(renamed(1)))));
    // It stands in the queue of the other node now.
    assert_eq!(bench.heard(client), "");
    bench.turn(|worker| worker.handle_broken(client, "gone"));
    for node in bench.connect() {
        bench.send(node, b":7\r\n");
    }
    assert_eq!(bench.worker.remains(), []);
}

#[test]
fn broken_connections_with_waiters_are_not_remembered() {
    let mut bench = Bench::proxy(config(1, 1));
    let client = bench.accept();
    bench.ask(client, &["BLPOP", "key", "0"]);
    bench.connect();
    let (node, _) = bench.who_heard("CLIENT ID").expect("a connection to wait on is dialled");
    bench.send(node, b":7\r\n");
    bench.turn(|worker| worker.handle_broken(node, "reset"));
    let heard = bench.heard(client);
    assert!(heard.starts_with("-ERR node node-0 broke the connection"), "{heard:?}");
    bench.turn(|worker| worker.handle_broken(client, "gone"));
    assert_eq!(bench.worker.remains(), []);
}

#[test]
fn channels_that_went_with_their_node_are_not_counted() {
    let mut bench = Bench::proxy(config(1, 1));
    let client = bench.accept();
    bench.ask(client, &["SSUBSCRIBE", "channel"]);
    let node = bench.connect()[0];
    assert!(bench.who_heard("ssubscribe channel").is_some());
    bench.turn(|worker| worker.handle_broken(client, "gone"));
    bench.turn(|worker| worker.handle_broken(node, "reset"));
    assert_eq!(bench.worker.remains(), []);
    assert_eq!(bench.shared.ledger.held_bytes(), 0);
}
