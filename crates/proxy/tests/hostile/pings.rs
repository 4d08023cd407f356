//! PING where there is one node: PONG is the node's word, or not older than a moment.

use crate::NoEngine;
use crate::bench::Bench;
use crate::support::config;
use respool_connection::{ConnId, DialFailure, Machine};
use respool_proxy::Config;
use respool_route::{Node, NodePlace, Pool, PoolMode, Route, Routes, Scheme, Topology, When};
use std::sync::Arc;

/// Longer than a node's word is good for.
const LONG_US: u64 = 200_000;

const BUSY: &str = "-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.\r\n";

/// A proxy, a client, and the connection to the only node.
fn served(config: Config) -> (Bench<NoEngine>, ConnId, ConnId) {
    let mut bench = Bench::proxy(config);
    let client = bench.accept();
    bench.ask(client, &["PING"]);
    assert_eq!(bench.heard(client), "", "nothing is known of the node yet");
    let node = bench.connect()[0];
    assert!(bench.who_heard("PING").is_some(), "it is asked itself");
    bench.send(node, b"+PONG\r\n");
    assert_eq!(bench.heard(client), "+PONG\r\n");
    (bench, client, node)
}

#[test]
fn a_lone_client_has_the_nodes_pong_at_once() {
    let (mut bench, client, node) = served(config(1, 1));
    assert_eq!(bench.answer(client, &["PING"]), "+PONG\r\n", "the node was heard of a moment ago");
    assert!(bench.who_heard("PING").is_none());
    for _ in 0..3 {
        bench.wait(LONG_US);
        bench.ask(client, &["PING", "word"]);
        assert!(bench.who_heard("PING word").is_some(), "in the same turn");
        bench.send(node, b"$4\r\nword\r\n");
        assert_eq!(bench.heard(client), "$4\r\nword\r\n");
    }
}

#[test]
fn a_node_that_does_not_answer_says_no_pong() {
    let (mut bench, client, node) = served(config(1, 1));
    let other = bench.accept();
    bench.ask(other, &["EVAL", "while true do end", "0"]);
    bench.wait(LONG_US);
    bench.ask(client, &["PING"]);
    for _ in 0..3 {
        bench.wait(LONG_US);
        bench.turn(|_| ());
    }
    let told = bench.heard(client);
    assert!(told.starts_with("-ERR node node-0 did not answer"), "{told}");
    bench.send(node, b"$-1\r\n");
    assert_eq!(bench.answer(client, &["PING"]), "+PONG\r\n", "it answers again");
}

#[test]
fn a_node_that_has_just_said_that_it_is_busy_is_asked() {
    let (mut bench, client, node) = served(config(1, 1));
    // The script may be of another worker, or of a client that is not connected to Respool.
    bench.ask(client, &["GET", "k"]);
    bench.wait(2_000);
    bench.turn(|_| ());
    assert!(bench.who_heard("GET k").is_some());
    bench.send(node, BUSY.as_bytes());
    assert_eq!(bench.heard(client), BUSY);
    bench.ask(client, &["PING"]);
    assert!(bench.who_heard("PING").is_some(), "it would say the same again");
    bench.send(node, BUSY.as_bytes());
    assert_eq!(bench.heard(client), BUSY);
    bench.wait(LONG_US);
    bench.ask(client, &["GET", "k"]);
    bench.send(node, b"$-1\r\n");
    bench.heard(client);
    assert_eq!(bench.answer(client, &["PING"]), "+PONG\r\n", "it has answered since");
}

#[test]
fn a_subscriber_hears_the_nodes_pong() {
    let (mut bench, client, node) = served(config(1, 1));
    let lane = bench.subscribe(client, "ch");
    for (words, pong) in
        [(&["PING"][..], "*2\r\n$4\r\npong\r\n$0\r\n\r\n"), (&["PING", "word"], "*2\r\n$4\r\npong\r\n$4\r\nword\r\n")]
    {
        bench.wait(LONG_US);
        bench.ask(client, words);
        assert!(bench.who_heard("PING").is_some(), "it is the node that is asked");
        // The PING delays no message.
        bench.send(lane, b">3\r\n$7\r\nmessage\r\n$2\r\nch\r\n$1\r\nm\r\n");
        assert_eq!(bench.heard(client), "*3\r\n$7\r\nmessage\r\n$2\r\nch\r\n$1\r\nm\r\n");
        bench.send(node, b"+PONG\r\n");
        assert_eq!(bench.heard(client), pong);
        assert_eq!(bench.answer(client, words), pong, "it was heard of a moment ago");
    }
    bench.wait(LONG_US);
    bench.ask(client, &["PING"]);
    bench.send(node, BUSY.as_bytes());
    assert_eq!(bench.heard(client), BUSY);
    bench.wait(2_000_000);
    bench.cut(node);
    bench.ask(client, &["PING"]);
    for _ in 0..20 {
        bench.refuse_dials();
        bench.wait(50_000);
        bench.turn(|_| ());
    }
    let told = bench.heard(client);
    assert!(told.starts_with("-ERR node node-0"), "{told}");
}

/// The text would be kept for as long as the node does not reply.
#[test]
fn a_subscribers_long_text_does_not_wait_for_the_node() {
    let (mut bench, client, node) = served(config(1, 1));
    bench.subscribe(client, "ch");
    bench.wait(LONG_US);
    let pong = |text: &str| format!("*2\r\n$4\r\npong\r\n${}\r\n{text}\r\n", text.len());
    let (short, long) = ("s".repeat(64), "l".repeat(65));
    assert_eq!(bench.answer(client, &["PING", &long]), pong(&long));
    assert!(bench.who_heard("PING").is_none());
    bench.ask(client, &["PING", &short]);
    assert_eq!(bench.answer(client, &["PING", &long]), "", "what was asked before comes first");
    bench.send(node, b"+PONG\r\n");
    assert_eq!(bench.heard(client), [pong(&short), pong(&long)].concat());
}

#[test]
fn a_node_that_is_down_says_no_pong() {
    let (mut bench, client, node) = served(config(1, 1));
    bench.wait(2_000_000);
    bench.cut(node);
    for dialled in bench.dialling.clone() {
        bench.fail_dial(dialled, DialFailure::Refused("connection refused".to_owned()));
    }
    let told = bench.answer(client, &["PING"]);
    assert!(told.starts_with("-ERR node node-0 is not available"), "{told}");
}

#[test]
fn whether_several_nodes_are_there_is_no_question_to_a_ping() {
    let mut bench = Bench::proxy(config(2, 1));
    let client = bench.accept();
    assert_eq!(bench.answer(client, &["PING"]), "+PONG\r\n");
    assert!(bench.dialling.is_empty());
}

#[test]
fn a_client_whose_routes_lead_to_one_node_hears_of_that() {
    let base = config(2, 1);
    let of = |name: &str| Arc::new(Topology::new(Scheme::default(), vec![Node::new(name)]).unwrap());
    let main = of("node-0");
    let pools = vec![
        Pool::plain("main", Arc::clone(&main)),
        Pool { first: NodePlace::new(1), ..Pool::plain("other", of("node-1")) },
    ];
    let route = |prefix: &[u8], databases: &[u32]| Route {
        name: "x".into(),
        when: When { databases: databases.into(), prefix: prefix.into(), ..When::default() },
        pool: 1,
        rewrite: Default::default(),
        reads: Default::default(),
        dead_node: None,
        pool_mode: None,
    };
    for (prefix, databases, node) in
        [(&b""[..], &[0][..], Some(1)), (b"", &[5], Some(0)), (b"x:", &[0], None), (b"", &[], Some(1))]
    {
        let routes = Arc::new(Routes::new(pools.clone(), vec![route(prefix, databases)]).unwrap());
        let mut bench = Bench::proxy(Config { routes, topology: Arc::clone(&main), ..base.clone() });
        let client = bench.accept();
        bench.ask(client, &["PING"]);
        bench.connect();
        let asked = bench.who_heard("PING").map(|(conn, _)| bench.node_of(conn));
        assert_eq!(asked, node, "{prefix:?} {databases:?}");
        assert_eq!(bench.heard(client).is_empty(), node.is_some());
    }
}

#[test]
fn a_ping_takes_the_connection_that_its_client_has_to_itself() {
    let lanes = respool_proxy::LaneLimits { mode: PoolMode::Session, ..respool_proxy::LaneLimits::default() };
    let mut bench = Bench::proxy(Config { lanes, ..config(1, 1) });
    let client = bench.accept();
    bench.ask(client, &["GET", "key"]);
    let own = bench.connect()[0];
    bench.heard(own);
    bench.send(own, b"$-1\r\n");
    assert_eq!(bench.heard(client), "$-1\r\n");
    bench.wait(LONG_US);
    bench.ask(client, &["PING"]);
    assert_eq!(bench.who_heard("PING").map(|(conn, _)| conn), Some(own));
    bench.turn(|worker| worker.handle_broken(own, "reset"));
    assert!(bench.heard(client).starts_with("-ERR node node-0 broke the connection"));
}

#[test]
fn an_operators_pause_is_no_reason_to_say_no_pong() {
    let (mut bench, client, _) = served(config(1, 1));
    let operator = bench.accept();
    for order in [&["PROXY", "PAUSE"][..], &["PROXY", "PAUSE", "node-0"]] {
        assert_eq!(bench.answer(operator, order), "+OK\r\n");
        bench.wait(LONG_US);
        assert_eq!(bench.answer(client, &["PING"]), "+PONG\r\n", "{order:?}");
        assert_eq!(bench.answer(operator, &["PROXY", "RESUME"]), "+OK\r\n");
    }
}
