//! Clients that follow several nodes: when they are disconnected, what nodes hear of them, and what waits for them.

use crate::bench::{Bench, request, requests};
use crate::support::config;
use respool_connection::{ConnId, Machine, Service};
use respool_proxy::{Config, Mail};
use respool_route::{Node, NodePlace, Pool, Routes, Scheme, Topology};
use std::sync::Arc;

/// An empty snapshot as a node announces and sends it.
const SNAPSHOT: &[u8] = b"$18\r\nREDIS0010\xff12345678";
/// The merged one of such nodes.
const MERGED: &str = "$18\r\nREDIS0010\u{fffd}\0\0\0\0\0\0\0\0";

type Bed = Bench<crate::support::NoEngine>;

/// A client that has asked three nodes, and they are connected.
fn asking(bench: &mut Bed, words: &[&str]) -> (ConnId, Vec<ConnId>) {
    let client = bench.accept();
    bench.ask(client, words);
    let nodes = bench.connect();
    assert_eq!(nodes.len(), 3);
    (client, nodes)
}

/// A client that follows three nodes by PSYNC and has their snapshot.
fn following(bench: &mut Bed) -> (ConnId, Vec<ConnId>) {
    let (client, nodes) = asking(bench, &["PSYNC", "0123", "77"]);
    for node in &nodes {
        assert_eq!(requests(&bench.heard(*node)), ["PSYNC ? -1"]);
        bench.send(*node, b"+FULLRESYNC x 500\r\n");
    }
    let greeting = bench.heard(client);
    assert!(greeting.starts_with("+FULLRESYNC ") && greeting.ends_with(" 0\r\n"), "{greeting}");
    nodes.iter().for_each(|node| bench.send(*node, SNAPSHOT));
    assert_eq!(bench.heard(client), MERGED);
    bench.send(nodes[0], &request(&["SELECT", "0"]));
    bench.send(nodes[1], &request(&["SELECT", "0"]));
    bench.send(nodes[2], &request(&["SELECT", "0"]));
    assert_eq!(bench.heard(client), "");
    (client, nodes)
}

#[test]
fn a_follower_has_the_commands_of_all_nodes() {
    let mut bench = Bench::proxy(config(3, 1));
    let (client, nodes) = following(&mut bench);
    bench.send(nodes[2], &request(&["SET", "c", "1"]));
    bench.send(nodes[0], &request(&["SET", "a", "1"]));
    assert_eq!(requests(&bench.heard(client)), ["SELECT 0", "SET c 1", "SET a 1"]);
    // Its acknowledgement is each node's, of what came from it.
    bench.ask(client, &["REPLCONF", "ACK", "77"]);
    let heard: Vec<_> = nodes.iter().map(|node| requests(&bench.heard(*node)).concat()).collect();
    assert_eq!(heard, ["REPLCONF ACK 550", "REPLCONF ACK 523", "REPLCONF ACK 550"]);
    assert_eq!(bench.heard(client), "", "a replica is sent no replies");
    // Nodes hear of it while it says nothing.
    bench.wait(1_100_000);
    bench.turn(|_| ());
    assert_eq!(requests(&bench.heard(nodes[1])), ["REPLCONF ACK 523"]);
}

#[test]
fn the_end_of_one_node_disconnects_its_follower() {
    let mut bench = Bench::proxy(config(3, 1));
    let (client, nodes) = following(&mut bench);
    bench.send(nodes[0], b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$5\r\n12");
    bench.cut(nodes[1]);
    assert!(bench.closed.contains(&client) && nodes.iter().all(|node| !bench.nodes.contains(node)));
    assert_eq!(bench.worker.remains(), []);
}

#[test]
fn other_nodes_disconnect_a_follower() {
    let mut bench = Bench::proxy(config(3, 1));
    let (client, nodes) = following(&mut bench);
    bench.turn(|worker| worker.handle_mail(Mail::Reload(Arc::new(config(4, 1)))));
    assert!(bench.closed.contains(&client) && nodes.iter().all(|node| bench.closed.contains(node)));
    assert_eq!(bench.worker.remains(), []);
}

#[test]
fn a_replica_that_gets_keys_of_its_own_disconnects_a_follower() {
    let base = config(4, 1);
    let names: Vec<Node> = (0..3).map(|number| Node::new(format!("node-{number}"))).collect();
    let topology = Arc::new(Topology::new(Scheme::default(), names).expect("three nodes"));
    let replicas = vec![vec![NodePlace::new(3)].into(), vec![].into(), vec![].into()];
    let pool = Pool { replicas: replicas.into(), ..Pool::plain("main", Arc::clone(&topology)) };
    let with_replica = Config { routes: Arc::new(Routes::plain(pool)), topology, ..base };
    let mut bench = Bench::proxy(with_replica.clone());
    let (client, nodes) = following(&mut bench);
    bench.turn(|worker| worker.handle_mail(Mail::Reload(Arc::new(with_replica))));
    assert!(!bench.closed.contains(&client), "the same nodes have keys");
    bench.turn(|worker| worker.handle_mail(Mail::Reload(Arc::new(config(4, 1)))));
    assert!(bench.closed.contains(&client) && nodes.iter().all(|node| bench.closed.contains(node)));
    assert_eq!(bench.worker.remains(), []);
}

#[test]
fn acknowledgements_do_not_pile_up_at_a_node_that_does_not_read() {
    let mut bench = Bench::proxy(config(3, 1));
    let (client, nodes) = following(&mut bench);
    bench.read_on(nodes[1], 0);
    for position in 0..1_000 {
        bench.send(client, &request(&["REPLCONF", "ACK", &position.to_string()]).repeat(10));
    }
    bench.read_on(nodes[1], usize::MAX);
    let heard = bench.heard(nodes[1]);
    assert!((100..8_000).contains(&heard.len()), "{} bytes", heard.len());
    assert_eq!(requests(&bench.heard(nodes[0])).len(), 10_000, "a node that reads is told");
}

#[test]
fn a_node_that_refuses_is_heard_by_a_follower_of_all() {
    let mut bench = Bench::proxy(config(3, 1));
    let (client, nodes) = asking(&mut bench, &["SYNC"]);
    bench.send(nodes[0], b"\n");
    bench.send(nodes[1], b"-NOMASTERLINK Can't SYNC\r\n");
    assert_eq!(bench.heard(client), "-NOMASTERLINK Can't SYNC\r\n");
    assert!(nodes.iter().all(|node| bench.closed.contains(node)));
    assert_eq!(bench.answer(client, &["ECHO", "on"]), "$2\r\non\r\n");
    bench.ask(client, &["QUIT"]);
    // Once it has been told that all have agreed there is no place for an error.
    let (client, nodes) = asking(&mut bench, &["SYNC"]);
    nodes.iter().for_each(|node| bench.send(*node, b"\n"));
    assert!(bench.heard(client).trim_start_matches('\n').is_empty());
    bench.send(nodes[2], b"-ERR later\r\n");
    assert!(bench.closed.contains(&client) && nodes.iter().all(|node| bench.closed.contains(node)));
    assert_eq!(bench.worker.remains(), []);
}

#[test]
fn nodes_wait_for_a_follower_that_does_not_read() {
    let mut bench = Bench::proxy(config(3, 1));
    let (client, nodes) = following(&mut bench);
    bench.read_on(client, 0);
    let set = request(&["SET", "a", &"x".repeat(10_000)]);
    let mut sent = 0;
    while bench.is_read(nodes[0]) {
        bench.send(nodes[0], &set);
        sent += 1;
        assert!(sent < 1_000, "it is read however much waits");
    }
    assert!(nodes.iter().all(|node| !bench.is_read(*node)));
    // That is not the nodes' silence.
    for _ in 0..10 {
        bench.pass(70_000_000);
    }
    assert!(!bench.closed.contains(&client));
    bench.read_on(client, usize::MAX);
    assert!(nodes.iter().all(|node| bench.is_read(*node)));
    assert_eq!(requests(&bench.heard(client)).len(), 1 + sent);
}

#[test]
fn silence_amid_a_command_disconnects_a_follower() {
    let mut bench = Bench::proxy(config(3, 1));
    let (client, nodes) = following(&mut bench);
    bench.pass(100_000_000);
    assert!(!bench.closed.contains(&client), "between commands a node may say nothing");
    bench.send(nodes[0], b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$5\r\n12");
    bench.pass(50_000_000);
    assert!(!bench.closed.contains(&client));
    bench.pass(20_000_000);
    assert!(bench.closed.contains(&client));
    assert_eq!(bench.worker.remains(), []);
}

#[test]
fn a_flush_of_some_nodes_disconnects_a_follower() {
    let mut bench = Bench::proxy(config(3, 1));
    let (client, nodes) = following(&mut bench);
    nodes.iter().for_each(|node| bench.send(*node, &request(&["FLUSHALL"])));
    assert_eq!(requests(&bench.heard(client)), ["SELECT 0", "FLUSHALL"]);
    bench.send(nodes[0], &request(&["FLUSHALL"]));
    bench.pass(6_000_000);
    assert!(bench.closed.contains(&client));
    assert_eq!(bench.worker.remains(), []);
}

#[test]
fn a_follower_that_leaves_leaves_nothing_behind() {
    for bytes in [&b""[..], b"\n", SNAPSHOT, &SNAPSHOT[..10]] {
        let mut bench = Bench::proxy(config(3, 1));
        let (client, nodes) = asking(&mut bench, &["SYNC"]);
        nodes.iter().for_each(|node| bench.send(*node, bytes));
        bench.turn(|worker| worker.handle_hung_up(client));
        bench.turn(|worker| worker.handle_ended(client));
        assert!(bench.closed.contains(&client) && nodes.iter().all(|node| bench.closed.contains(node)));
        assert_eq!(bench.worker.remains(), []);
    }
}

#[test]
fn reset_forgets_what_a_follower_has_said() {
    let mut bench = Bench::proxy(config(3, 1));
    let client = bench.accept();
    assert_eq!(bench.answer(client, &["REPLCONF", "rdb-only", "1", "capa", "eof"]), "+OK\r\n");
    assert_eq!(bench.answer(client, &["RESET"]), "+RESET\r\n");
    assert!(!bench.answer(client, &["PROXY", "SHOW", "PINS"]).contains("replconf"));
    bench.ask(client, &["QUIT"]);
    assert_eq!(bench.worker.remains(), []);
    assert!(bench.dialling.is_empty(), "no node has to hear of it");
}
