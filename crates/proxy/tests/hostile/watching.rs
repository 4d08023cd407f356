//! Clients that watch keys: what they read meanwhile, and what becomes of a watching that fails.

use crate::NoEngine;
use crate::bench::{Bench, request, requests};
use crate::routes::with_an_own_connection;
use crate::support::config;
use respool_connection::{ConnId, Endpoint};
use respool_proxy::{Config, NodeConfig};
use respool_route::{DeadNode, NodePlace, Pool, Reads, Rewrite, Route, Routes, When};
use std::sync::Arc;

/// `nodes` of one pool, and behind them a replica of the first, by a route that reads from replicas.
pub(crate) fn with_replica(nodes: usize, reads: Reads, dead_node: DeadNode) -> Config {
    let mut config = config(nodes, 1);
    let endpoint = Arc::new(Endpoint::Embedded { index: nodes });
    config.nodes.push(NodeConfig { name: "replica".to_owned(), endpoint, credentials: None });
    let replicas =
        (0..nodes).map(|node| if node == 0 { [NodePlace::new(nodes)].into() } else { Box::default() }).collect();
    let pool = Pool { replicas, dead_node, ..Pool::plain("main", Arc::clone(&config.topology)) };
    let route = Route {
        name: "all".into(),
        when: When::default(),
        pool: 0,
        rewrite: Rewrite::default(),
        reads,
        dead_node: None,
        pool_mode: None,
    };
    config.routes = Arc::new(Routes::new(vec![pool], vec![route]).expect("they fit"));
    config
}

/// A key that the node with this number has.
fn key_of(config: &Config, node: usize) -> String {
    let key =
        (0..100).map(|number| format!("k{number}")).find(|key| config.topology.place(key.as_bytes()).get() == node);
    key.expect("a hundred keys reach every node")
}

/// Dials succeed, and whatever nodes are asked, by `words`, they answer with `reply`. Gives the nodes that were.
fn reply_to(bench: &mut Bench<NoEngine>, words: &str, reply: &[u8]) -> Vec<usize> {
    bench.connect();
    let asked: Vec<ConnId> = bench.nodes.clone();
    let asked: Vec<ConnId> =
        asked.into_iter().filter(|conn| requests(&bench.heard(*conn)).iter().any(|said| said == words)).collect();
    asked.iter().for_each(|conn| bench.send(*conn, reply));
    asked.into_iter().map(|conn| bench.node_of(conn)).collect()
}

#[test]
fn who_watches_reads_from_the_node_that_watches() {
    let config = with_replica(1, Reads::Replica, DeadNode::Error);
    let mut bench = Bench::proxy(config);
    let client = bench.accept();
    bench.ask(client, &["GET", "k"]);
    assert_eq!(reply_to(&mut bench, "GET k", b"$3\r\nold\r\n"), [1], "a replica answers");
    bench.ask(client, &["WATCH", "k"]);
    assert_eq!(reply_to(&mut bench, "WATCH k", b"+OK\r\n"), [0]);
    for words in ["GET k", "MGET k other", "EVAL_RO return 1 k"] {
        bench.ask(client, &words.split(' ').collect::<Vec<_>>());
        assert_eq!(reply_to(&mut bench, words, b"$3\r\nnew\r\n"), [0], "{words}");
    }
    bench.ask(client, &["UNWATCH"]);
    bench.ask(client, &["GET", "k"]);
    assert_eq!(reply_to(&mut bench, "GET k", b"$3\r\nold\r\n"), [1], "it watches nothing any more");
}

#[test]
fn who_watches_is_not_answered_by_a_stand_in() {
    for dead_node in [DeadNode::Next, DeadNode::Replica] {
        let config = with_replica(2, Reads::Primary, dead_node);
        let (here, there) = (key_of(&config, 0), key_of(&config, 1));
        let mut bench = Bench::proxy(config);
        let client = bench.accept();
        bench.ask(client, &["WATCH", &there]);
        assert_eq!(reply_to(&mut bench, &format!("WATCH {there}"), b"+OK\r\n"), [1]);
        bench.ask(client, &["GET", &here]);
        bench.refuse_dials();
        bench.heard(client);
        // The node is out of use now, and others would get another's answer.
        bench.ask(client, &["GET", &here]);
        assert!(bench.heard(client).contains("node node-0 is not available"));
        let other = bench.accept();
        bench.ask(other, &["GET", &here]);
        let stand_in = reply_to(&mut bench, &format!("GET {here}"), b"$3\r\nold\r\n");
        assert!(!stand_in.contains(&0) && stand_in.len() == 1, "{stand_in:?}");
    }
}

/// Two nodes, of which the first cannot be reached, and a client of the second. Gives a key of each, too.
fn half_alive() -> (Bench<NoEngine>, ConnId, [String; 2]) {
    let config = config(2, 1);
    let keys = [key_of(&config, 0), key_of(&config, 1)];
    let mut bench = Bench::proxy(config);
    let client = bench.accept();
    bench.ask(client, &["GET", &keys[1]]);
    assert_eq!(reply_to(&mut bench, &format!("GET {}", keys[1]), b"$-1\r\n"), [1]);
    bench.heard(client);
    (bench, client, keys)
}

/// What a client is answered to a transaction that its node takes.
fn transaction(bench: &mut Bench<NoEngine>, client: ConnId, key: &str) -> String {
    [&["MULTI"][..], &["SET", key, "v"], &["EXEC"]].iter().for_each(|words| bench.ask(client, words));
    bench.connect();
    for node in bench.nodes.clone() {
        bench.take_multi(node);
        if requests(&bench.heard(node)).ends_with(&["EXEC".to_owned()]) {
            bench.send(node, b"+OK\r\n+QUEUED\r\n*1\r\n+OK\r\n");
        }
    }
    bench.heard(client)
}

const EXECUTED: &str = "+OK\r\n+QUEUED\r\n*1\r\n+OK\r\n";
const UNWATCHED: &str = "+OK\r\n+QUEUED\r\n-ERR the connection on which keys were watched is lost; the transaction was not \
     executed\r\n";

/// A client that has read the error does not think that it watches; from a pool it may be another client's by then.
#[test]
fn a_watch_that_failed_does_not_spoil_the_next_transaction() {
    let (mut bench, client, [dead, living]) = half_alive();
    // Once it has to be dialled, and once that is not even tried.
    for _ in 0..2 {
        bench.ask(client, &["WATCH", &dead]);
        bench.refuse_dials();
        assert!(bench.heard(client).starts_with("-ERR node node-0"));
        assert_eq!(transaction(&mut bench, client, &living), EXECUTED);
    }
    // The node itself refuses.
    bench.ask(client, &["WATCH", &living]);
    assert_eq!(reply_to(&mut bench, &format!("WATCH {living}"), b"-NOPERM no\r\n"), [1]);
    assert_eq!(bench.heard(client), "-NOPERM no\r\n");
    assert_eq!(transaction(&mut bench, client, &living), EXECUTED);
}

#[test]
fn a_watch_that_failed_unseen_lets_no_transaction_run() {
    for is_down in [false, true] {
        let (mut bench, client, [dead, living]) = half_alive();
        if is_down {
            bench.ask(client, &["GET", &dead]);
            bench.refuse_dials();
            bench.heard(client);
        }
        // As libraries pipeline it: what is read behind the WATCH is what is computed from.
        let both = [request(&["WATCH", &dead]), request(&["GET", &living])].concat();
        bench.send(client, &both);
        bench.refuse_dials();
        reply_to(&mut bench, &format!("GET {living}"), b"$1\r\nv\r\n");
        let heard = bench.heard(client);
        assert!(heard.starts_with("-ERR node node-0") && heard.ends_with("$1\r\nv\r\n"), "{heard}");
        assert_eq!(transaction(&mut bench, client, &living), UNWATCHED);
        assert_eq!(transaction(&mut bench, client, &living), EXECUTED, "it has been told");
    }
}

#[test]
fn a_watch_that_fails_does_not_hide_an_earlier_one() {
    let (mut bench, client, [dead, living]) = half_alive();
    bench.ask(client, &["WATCH", &living]);
    assert_eq!(reply_to(&mut bench, &format!("WATCH {living}"), b"+OK\r\n"), [1]);
    bench.ask(client, &["WATCH", &dead]);
    bench.refuse_dials();
    bench.heard(client);
    assert_eq!(transaction(&mut bench, client, &living), UNWATCHED);
}

/// A client has its own connection to one node, by a route, and watches a key of another node on a private one.
#[test]
fn a_watch_in_one_database_runs_no_transaction_in_another() {
    for words in [&["SELECT", "3"][..], &["HELLO", "3"]] {
        let mut bench = Bench::proxy(with_an_own_connection());
        let client = bench.accept();
        bench.ask(client, &["GET", "own:k"]);
        assert_eq!(reply_to(&mut bench, "GET own:k", b"$-1\r\n"), [1]);
        bench.ask(client, &["WATCH", "k"]);
        assert_eq!(reply_to(&mut bench, "WATCH k", b"+OK\r\n"), [0]);
        bench.ask(client, words);
        bench.connect();
        bench.heard(client);
        for words in [&["MULTI"][..], &["SET", "k", "v"], &["EXEC"]] {
            bench.ask(client, words);
        }
        bench.connect();
        assert_eq!(bench.who_heard("SET k v"), None, "it is another database, or another dialect: {words:?}");
        assert!(bench.heard(client).contains("-CROSSSLOT Watched keys"), "{words:?}");
    }
}
