//! Requests between the loss of a connection and the end of the next dial, where another node stands in for one that is gone.

use crate::NoEngine;
use crate::bench::{Bench, requests};
use crate::support::config;
use respool_connection::ConnId;
use respool_proxy::Config;
use respool_route::{DeadNode, Pool, Routes};
use std::sync::Arc;

fn two_nodes(dead_node: DeadNode) -> Config {
    let config = config(2, 1);
    let pool = Pool { dead_node, ..Pool::plain("main", Arc::clone(&config.topology)) };
    Config { routes: Arc::new(Routes::new(vec![pool], Vec::new()).expect("they fit")), ..config }
}

/// A key that the node with this number has.
fn key_of(node: usize) -> String {
    let topology = config(2, 1).topology;
    let mut keys = (0..100).map(|number| format!("k{number}"));
    keys.find(|key| topology.place(key.as_bytes()).get() == node).expect("a hundred keys reach every node")
}

/// Both nodes have been asked by a client, and the connection to the first is lost.
struct Losing {
    bench: Bench<NoEngine>,
    client: ConnId,
    other: ConnId,
    keys: [String; 2],
}

impl Losing {
    fn new(dead_node: DeadNode) -> Self {
        let mut bench = Bench::proxy(two_nodes(dead_node));
        let client = bench.accept();
        let keys = [key_of(0), key_of(1)];
        let nodes = keys.clone().map(|key| {
            bench.ask(client, &["GET", &key]);
            let node = bench.connect()[0];
            bench.heard(node);
            bench.send(node, b"$-1\r\n");
            node
        });
        bench.heard(client);
        // One that has just been made is not made again without a pause.
        bench.wait(5_000_000);
        bench.turn(|_| ());
        bench.cut(nodes[0]);
        assert_eq!(bench.dialling.len(), 1, "it is dialled again at once");
        Self { bench, client, other: nodes[1], keys }
    }

    /// What the node that is there has been asked.
    fn asked(&mut self) -> Vec<String> {
        requests(&self.bench.heard(self.other))
    }
}

#[test]
fn requests_wait_for_a_node_that_may_be_there() {
    for dead_node in [DeadNode::Error, DeadNode::Next] {
        let Losing { mut bench, client, other, keys: [key, _] } = Losing::new(dead_node);
        bench.ask(client, &["SET", &key, "1"]);
        bench.ask(client, &["GET", &key]);
        assert_eq!((bench.heard(client), bench.heard(other)), (String::new(), String::new()), "nothing is known yet");
        let node = bench.connect()[0];
        assert_eq!(requests(&bench.heard(node)), [format!("SET {key} 1"), format!("GET {key}")]);
        bench.send(node, b"+OK\r\n$1\r\n1\r\n");
        assert_eq!(bench.heard(client), "+OK\r\n$1\r\n1\r\n", "{dead_node:?}");
    }
}

#[test]
fn requests_that_waited_in_vain_go_to_the_node_that_stands_in() {
    let mut losing = Losing::new(DeadNode::Next);
    let [key, of_other] = losing.keys.clone();
    let client = losing.client;
    losing.bench.ask(client, &["SET", &key, "1"]);
    losing.bench.ask(client, &["GET", &of_other]);
    losing.bench.ask(client, &["MGET", &key, &of_other]);
    losing.bench.ask(client, &["GET", &key]);
    assert_eq!(losing.asked(), [format!("GET {of_other}"), format!("MGET {of_other}")]);
    losing.bench.refuse_dials();
    losing.bench.ask(client, &["INCR", &key]);
    let asked = losing.asked();
    assert_eq!(asked, [format!("SET {key} 1"), format!("MGET {key}"), format!("GET {key}"), format!("INCR {key}")]);
    let replies = b"$1\r\na\r\n*1\r\n$1\r\nb\r\n+OK\r\n*1\r\n$1\r\nc\r\n$1\r\nd\r\n:2\r\n";
    losing.bench.send(losing.other, replies);
    let due = "+OK\r\n$1\r\na\r\n*2\r\n$1\r\nc\r\n$1\r\nb\r\n$1\r\nd\r\n:2\r\n";
    assert_eq!(losing.bench.heard(client), due);
}

#[test]
fn what_is_asked_of_a_node_itself_goes_to_no_other() {
    let mut losing = Losing::new(DeadNode::Next);
    let [key, _] = losing.keys.clone();
    let (client, watcher) = (losing.client, losing.bench.accept());
    let of_other = losing.keys[1].clone();
    losing.bench.ask(watcher, &["WATCH", &of_other]);
    let watching: Vec<ConnId> = losing.bench.dialling.iter().copied().skip(1).collect();
    losing.bench.connect_these(&watching);
    watching.iter().for_each(|conn| losing.bench.send(*conn, b"+OK\r\n"));
    assert_eq!(losing.bench.heard(watcher), "+OK\r\n");
    losing.bench.ask(watcher, &["GET", &key]);
    losing.bench.ask(client, &["DBSIZE"]);
    losing.bench.ask(client, &["PROXY", "NODE", "node-0", "DBSIZE"]);
    assert_eq!(losing.asked(), ["DBSIZE"]);
    losing.bench.refuse_dials();
    assert!(losing.asked().is_empty());
    losing.bench.send(losing.other, b":1\r\n");
    let told = losing.bench.heard(client);
    assert_eq!(told.matches("-ERR node node-0 is not available").count(), 2, "{told}");
    let told = losing.bench.heard(watcher);
    assert!(told.starts_with("-ERR node node-0 is not available"), "{told}");
}

#[test]
fn without_a_node_that_stands_in_requests_that_waited_are_refused() {
    let mut losing = Losing::new(DeadNode::Error);
    let (client, key) = (losing.client, losing.keys[0].clone());
    losing.bench.ask(client, &["SET", &key, "1"]);
    losing.bench.refuse_dials();
    let told = losing.bench.heard(client);
    assert!(told.starts_with("-ERR node node-0 is not available") && told.ends_with("was not sent\r\n"), "{told}");
    assert!(losing.asked().is_empty());
}
