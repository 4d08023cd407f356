//! Connections to nodes that fail, are refused, are lost or wait for their turn: what that is evidence of, and who is told.

use crate::NoEngine;
use crate::bench::{Bench, request, requests};
use crate::support::config;
use respool_connection::{ConnId, DialFailure, Endpoint, Machine, Service};
use respool_proxy::{Config, LaneLimits, Mail, PoolMode};
use respool_route::{DeadNode, Node, NodePlace, Pool, Reads, Route, Routes, Scheme, Topology, When};
use std::sync::Arc;

/// Two nodes; the other takes what is for one that is out.
fn with_stand_in() -> Config {
    let base = config(2, 1);
    let pool = Pool { dead_node: DeadNode::Next, ..Pool::plain("main", Arc::clone(&base.topology)) };
    Config { routes: Arc::new(Routes::plain(pool)), ..base }
}

/// A bench whose node 0 has the key, a client, and the shared connection that its requests take.
fn served(config: Config) -> (Bench<NoEngine>, ConnId, ConnId, String) {
    let mut bench = Bench::proxy(config);
    let client = bench.accept();
    for number in 0.. {
        let key = format!("k{number}");
        bench.ask(client, &["GET", &key]);
        bench.connect();
        let (conn, _) = bench.who_heard(&format!("GET {key}")).expect("it is asked");
        bench.send(conn, b"+OK\r\n");
        assert_eq!(bench.heard(client), "+OK\r\n");
        if bench.node_of(conn) == 0 {
            return (bench, client, conn, key);
        }
    }
    unreachable!("some key is on node 0")
}

/// Whether node 0 gets a write of the key, over this connection.
fn gets_writes(bench: &mut Bench<NoEngine>, client: ConnId, conn: ConnId, key: &str) {
    bench.ask(client, &["SET", key, "v"]);
    let heard = bench.who_heard(&format!("SET {key} v")).expect("it is sent");
    assert_eq!(heard.0, conn, "it goes to the node that has the key");
    bench.send(conn, b"+OK\r\n");
    assert_eq!(bench.heard(client), "+OK\r\n");
}

#[test]
fn a_private_dial_that_fails_diverts_nothing() {
    let refused = || DialFailure::Refused("connection refused".to_owned());
    for (number, failure) in [DialFailure::TimedOut, refused()].into_iter().enumerate() {
        for words in [&["WATCH", "KEY"][..], &["BLPOP", "KEY", "0"], &["SELECT", "20"]] {
            let (mut bench, client, conn, key) = served(with_stand_in());
            let words: Vec<&str> = words.iter().map(|word| if *word == "KEY" { &*key } else { word }).collect();
            let other = bench.accept();
            bench.ask(other, &words);
            let dialled = bench.dialling.clone();
            assert_eq!(dialled.len(), 1, "{words:?} needs a connection");
            // It is not asked meanwhile, so only that its connection is there speaks for it.
            bench.fail_dial(dialled[0], failure.clone());
            if words[0] == "WATCH" {
                assert!(bench.heard(other).starts_with("-ERR node node-0 is not available"), "{number} {words:?}");
            }
            gets_writes(&mut bench, client, conn, &key);
            assert_eq!(bench.shared.sum(|c| c.nodes_ejected.value()), 0);
        }
    }
}

#[test]
fn a_node_that_is_full_keeps_its_requests() {
    let (mut bench, client, conn, key) = served(with_stand_in());
    for _ in 0..5 {
        let other = bench.accept();
        bench.ask(other, &["WATCH", &key]);
        for dialled in std::mem::take(&mut bench.dialling) {
            bench.turn(|worker| worker.handle_connected(dialled));
            bench.send(dialled, b"-ERR max number of clients reached\r\n");
        }
        assert!(bench.heard(other).contains("max number of clients reached"));
        gets_writes(&mut bench, client, conn, &key);
    }
    assert!(bench.shared.sum(|c| c.dials.value()) < 6, "it is not asked for more at once");
    bench.wait(60_000);
    let other = bench.accept();
    bench.ask(other, &["WATCH", &key]);
    bench.connect();
    let (watched, _) = bench.who_heard(&format!("WATCH {key}")).expect("it is tried again");
    bench.send(watched, b"+OK\r\n");
    assert_eq!(bench.heard(other), "+OK\r\n");
}

/// A node that cannot save answers PING like a write, and its user may be one who may not ask it.
#[test]
fn a_node_that_refuses_ping_alone_keeps_its_requests() {
    let misconf =
        "-MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.\r\n";
    let forbidden = "-NOPERM this user has no permissions to run the 'ping' command\r\n";
    for error in [misconf, forbidden] {
        let config = with_stand_in();
        let place = config.topology.place(b"k").get();
        let mut bench = Bench::proxy(config);
        // The first connection that is shared, one that a client has to itself, and another one that is shared.
        for words in [&["GET", "k"][..], &["WATCH", "k"], &["HELLO", "3"]] {
            let client = bench.accept();
            bench.ask(client, words);
            bench.heard(client);
            bench.ask(client, &["GET", "k"]);
            for dialled in std::mem::take(&mut bench.dialling) {
                bench.nodes.push(dialled);
                bench.turn(|worker| worker.handle_connected(dialled));
                if requests(&bench.heard(dialled)) == ["HELLO 3"] {
                    bench.send(dialled, b"%0\r\n");
                }
                bench.send(dialled, error.as_bytes());
                bench.take_multi(dialled);
            }
            let told = bench.heard(client);
            assert_eq!(told, "", "{words:?}: {error}");
            let (asked, _) =
                bench.who_heard(if words[0] == "WATCH" { "WATCH k" } else { "GET k" }).expect("it is asked");
            assert_eq!(bench.node_of(asked), place, "{words:?}");
        }
        assert_eq!(bench.shared.sum(|c| c.nodes_ejected.value()), 0);
    }
}

/// A node, and a replica of it that is read from.
fn with_replica() -> Config {
    let base = config(2, 1);
    let topology = Arc::new(Topology::new(Scheme::default(), vec![Node::new("node-0")]).unwrap());
    let pool =
        Pool { replicas: vec![vec![NodePlace::new(1)].into()].into(), ..Pool::plain("main", Arc::clone(&topology)) };
    let route = Route {
        name: "all".into(),
        when: When::default(),
        pool: 0,
        rewrite: Default::default(),
        reads: Reads::Replica,
        dead_node: None,
        pool_mode: None,
    };
    let routes = Arc::new(Routes::new(vec![pool], vec![route]).unwrap());
    Config { routes, topology, ..base }
}

#[test]
fn a_replica_that_is_full_keeps_the_reads_of_its_lane() {
    let mut bench = Bench::proxy(with_replica());
    let client = bench.accept();
    let full = |bench: &mut Bench<NoEngine>| {
        for dialled in std::mem::take(&mut bench.dialling) {
            bench.turn(|worker| worker.handle_connected(dialled));
            bench.send(dialled, b"-ERR max number of clients reached\r\n");
        }
    };
    // Nothing is ready there: other nodes may as well be asked.
    bench.ask(client, &["GET", "key"]);
    full(&mut bench);
    assert!(bench.heard(client).contains("max number of clients"));
    bench.ask(client, &["GET", "key"]);
    bench.connect();
    let (conn, _) = bench.who_heard("GET key").expect("it is asked");
    assert_eq!(bench.node_of(conn), 0);
    bench.send(conn, b"+OK\r\n");
    bench.wait(60_000);
    let third = bench.accept();
    bench.ask(third, &["GET", "key"]);
    bench.connect();
    let asked = bench.who_heard("GET key").map(|(conn, _)| bench.node_of(conn));
    assert_eq!(asked, Some(0), "until a connection is there");
}

#[test]
fn a_replica_keeps_its_reads_though_one_connection_fails() {
    let mut bench = Bench::proxy(with_replica());
    let (client, other) = (bench.accept(), bench.accept());
    bench.ask(client, &["GET", "key"]);
    let replica = bench.connect()[0];
    assert_eq!(bench.node_of(replica), 1);
    bench.heard(replica);
    bench.send(replica, b"+OK\r\n");
    // Another dialect is another connection.
    bench.ask(other, &["HELLO", "3"]);
    bench.ask(other, &["GET", "key"]);
    let dialled = bench.dialling.clone();
    assert_eq!(dialled.iter().map(|conn| bench.node_of(*conn)).collect::<Vec<_>>(), [1]);
    bench.fail_dial(dialled[0], DialFailure::TimedOut);
    bench.heard(client);
    bench.ask(client, &["GET", "key"]);
    assert_eq!(bench.who_heard("GET key").map(|(conn, _)| conn), Some(replica));
}

#[test]
fn a_node_that_moved_in_vain_is_not_served_by_its_old_place() {
    let mut bench = Bench::proxy(config(1, 1));
    let client = bench.accept();
    bench.ask(client, &["SET", "key", "1"]);
    let old = bench.connect()[0];
    bench.heard(old);
    bench.send(old, b"+OK\r\n");
    assert_eq!(bench.heard(client), "+OK\r\n");
    let mut moved = config(1, 1);
    moved.nodes[0].endpoint = Arc::new(Endpoint::Embedded { index: 7 });
    bench.turn(|worker| worker.handle_mail(Mail::Reload(Arc::new(moved))));
    for words in [&["SET", "key", "2"][..], &["WATCH", "key"], &["BLPOP", "key", "0"], &["PING"]] {
        let other = bench.accept();
        bench.ask(other, words);
        // Nothing answers there, so it is told so once the time to connect is over.
        for _ in 0..8 {
            bench.wait(50_000);
            bench.turn(|_| ());
        }
        let told = bench.heard(other);
        assert!(
            told.starts_with("-ERR node node-0 is not available: could not be reached in time"),
            "{words:?}: {told}"
        );
        assert_eq!(bench.heard(old), "", "{words:?}: where the node was it is not any more");
    }
}

#[test]
fn a_node_that_is_out_is_tried_again_without_being_asked() {
    let (mut bench, client, conn, key) = served(with_stand_in());
    bench.wait(2_000_000);
    bench.cut(conn);
    assert_eq!(bench.dialling.len(), 1, "a lost connection is made again at once");
    for round in 0..20 {
        let dialled: Vec<ConnId> = bench.dialling.clone();
        assert_eq!(dialled.len(), 1, "round {round}");
        bench.fail_dial(dialled[0], DialFailure::Refused("connection refused".to_owned()));
        assert!(bench.dialling.is_empty(), "not without a pause");
        bench.ask(client, &["SET", &key, "v"]);
        let (other, _) = bench.who_heard(&format!("SET {key} v")).expect("the other takes it");
        assert_ne!(bench.node_of(other), 0);
        bench.send(other, b"+OK\r\n");
        assert_eq!(bench.heard(client), "+OK\r\n");
        // The longest pause, and a look at the timers.
        for _ in 0..20 {
            bench.wait(5_000);
            bench.turn(|_| ());
        }
    }
    let back = bench.connect()[0];
    gets_writes(&mut bench, client, back, &key);
}

#[test]
fn a_connection_that_ends_at_once_is_made_again_after_a_pause() {
    let (mut bench, client, conn, key) = served(with_stand_in());
    let mut conn = conn;
    for _ in 0..20 {
        bench.cut(conn);
        assert!(bench.dialling.is_empty());
        bench.ask(client, &["SET", &key, "v"]);
        for _ in 0..10 {
            bench.wait(5_000);
            bench.turn(|_| ());
        }
        conn = bench.connect()[0];
        let heard = bench.who_heard(&format!("SET {key} v"));
        assert_eq!(heard.map(|(heard, _)| heard), Some(conn), "the node that let us in a moment ago is there");
        bench.send(conn, b"+OK\r\n");
        assert_eq!(bench.heard(client), "+OK\r\n");
    }
}

#[test]
fn a_cut_connection_costs_nothing_but_what_was_on_it() {
    let (mut bench, client, conn, key) = served(with_stand_in());
    bench.wait(2_000_000);
    bench.ask(client, &["GET", &key]);
    assert!(bench.who_heard(&format!("GET {key}")).is_some());
    bench.cut(conn);
    assert!(bench.heard(client).contains("may or may not have been executed"));
    // It waits for the new connection, and for no pause.
    bench.ask(client, &["GET", &key]);
    assert_eq!(bench.heard(client), "");
    let again = bench.connect();
    assert_eq!(again.len(), 1);
    assert_eq!(bench.who_heard(&format!("GET {key}")).map(|(conn, _)| conn), Some(again[0]));
    bench.send(again[0], b"+OK\r\n");
    assert_eq!(bench.heard(client), "+OK\r\n");
    assert_eq!(bench.shared.sum(|c| c.nodes_ejected.value()), 0);
}

#[test]
fn a_turn_that_does_not_come_is_no_evidence() {
    const CLIENTS: usize = 100;
    let lanes = LaneLimits { mode: PoolMode::Session, ..LaneLimits::default() };
    let mut bench = Bench::proxy(Config { lanes, ..with_stand_in() });
    let clients: Vec<ConnId> = (0..CLIENTS).map(|_| bench.accept()).collect();
    for client in &clients {
        bench.ask(*client, &["GET", "key"]);
    }
    let at_once = bench.dialling.len();
    assert!((2..CLIENTS / 2).contains(&at_once), "{at_once}");
    // The node takes its time, and no longer than it may: those behind wait for more than that.
    let mut served = Vec::new();
    for _ in 0..10 {
        bench.wait(90_000);
        served.extend(bench.connect());
    }
    assert_eq!(served.len(), CLIENTS);
    for client in clients {
        assert_eq!(bench.heard(client), "", "none is refused");
    }
    let mut conns = bench.nodes.clone();
    conns.retain(|conn| requests(&bench.heard(*conn)) == ["GET key"]);
    assert_eq!(conns.len(), CLIENTS);
    assert_eq!(bench.shared.sum(|c| c.nodes_ejected.value() + c.dial_failures.value()), 0);
}

#[test]
fn lanes_are_dialled_in_the_order_in_which_they_were_wanted() {
    let lanes = LaneLimits { mode: PoolMode::Session, ..LaneLimits::default() };
    let mut bench = Bench::proxy(Config { lanes, ..config(1, 1) });
    let mut asked = Vec::new();
    for number in 0..200 {
        let client = bench.accept();
        bench.ask(client, &["GET", &number.to_string()]);
        asked.push(number.to_string());
    }
    let mut heard = Vec::new();
    while let Some(first) = bench.dialling.first().copied() {
        bench.connect_these(&[first]);
        heard.extend(requests(&bench.heard(first)).into_iter().map(|request| request.replace("GET ", "")));
    }
    assert_eq!(heard, asked);
}

#[test]
fn who_waits_too_long_for_a_turn_is_told_so() {
    let lanes = LaneLimits { mode: PoolMode::Session, ..LaneLimits::default() };
    let mut base = config(1, 1);
    base.timeouts.connect_us = 10_000_000;
    let mut bench = Bench::proxy(Config { lanes, ..base });
    let clients: Vec<ConnId> = (0..100).map(|_| bench.accept()).collect();
    for client in &clients {
        bench.ask(*client, &["GET", "key"]);
    }
    let under_way = bench.dialling.len();
    for _ in 0..10 {
        bench.wait(60_000);
        bench.turn(|_| ());
    }
    let told = clients.iter().filter(|client| bench.heard(**client).contains("could not be dialled in time")).count();
    assert_eq!(told, 100 - under_way);
    assert_eq!(bench.connect().len(), under_way);
    assert_eq!(bench.shared.sum(|c| c.nodes_ejected.value()), 0, "that is not the node's fault");
}

#[test]
fn a_database_that_is_refused_has_a_pause_of_its_own() {
    let mut bench = Bench::proxy(config(1, 1));
    let (plain, other) = (bench.accept(), bench.accept());
    bench.ask(plain, &["GET", "key"]);
    let shared = bench.connect()[0];
    bench.heard(shared);
    let mut dials = 0;
    for _ in 0..1_000 {
        bench.ask(other, &["SELECT", "20"]);
        for dialled in std::mem::take(&mut bench.dialling) {
            dials += 1;
            bench.turn(|worker| worker.handle_connected(dialled));
            bench.heard(dialled);
            bench.send(dialled, b"-NOPERM no database for you\r\n");
        }
        assert_eq!(bench.heard(other), "-NOPERM no database for you\r\n", "the node's own words");
        bench.wait(1_000);
    }
    // A second, with pauses of up to 50 ms.
    assert!((10..50).contains(&dials), "{dials}");
    // Others are not kept waiting.
    let watcher = bench.accept();
    bench.ask(watcher, &["WATCH", "key"]);
    assert_eq!(bench.connect().len(), 1);
    bench.send(plain, &request(&["GET", "key"]));
    assert!(bench.who_heard("WATCH key").is_some());
}
