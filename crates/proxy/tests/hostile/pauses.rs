//! Requests that `PROXY PAUSE` holds back: which ones wait, for how long, and how they are refused.

use crate::NoEngine;
use crate::bench::{Bench, request, requests};
use crate::support::config;
use crate::watching::with_replica;
use respool_connection::{ConnId, Machine, Service};
use respool_proxy::{Config, LaneLimits, Mail, Timeouts};
use respool_route::{DeadNode, Reads};
use std::sync::Arc;

const PAUSE_US: u64 = 2_000_000;

/// Settings with this many nodes and a `pause_timeout` of two seconds.
fn patient(nodes: usize) -> Config {
    let plain = config(nodes, 1);
    Config { timeouts: Timeouts { pause_us: PAUSE_US, ..plain.timeouts }, ..plain }
}

fn paused(config: Config) -> (Bench<NoEngine>, ConnId, ConnId, ConnId) {
    let mut bench = Bench::proxy(config);
    let (operator, client) = (bench.accept(), bench.accept());
    bench.ask(client, &["SET", "key", "0"]);
    let node = bench.connect()[0];
    bench.send(node, b"+OK\r\n");
    bench.heard(node);
    bench.heard(client);
    assert_eq!(bench.answer(operator, &["PROXY", "PAUSE"]), "+OK\r\n");
    (bench, operator, client, node)
}

#[test]
fn what_is_held_for_too_long_is_refused_and_never_sent() {
    let (mut bench, operator, client, node) = paused(patient(1));
    bench.send(client, &[request(&["INCR", "key"]), request(&["PING"]), request(&["GET", "key"])].concat());
    bench.pass(PAUSE_US - 100_000);
    assert_eq!(bench.heard(client), "");
    assert_eq!(bench.figure(operator, "blocked_clients"), 1);
    bench.pass(200_000);
    let refused =
        "-ERR requests are paused by an operator, for longer than pause_timeout; the command was not sent\r\n";
    assert_eq!(bench.heard(client), format!("{refused}+PONG\r\n{refused}"), "the second one was sent with the first");
    assert_eq!(bench.figure(operator, "blocked_clients"), 0);
    assert_eq!(bench.figure(operator, "holds_expired"), 2);
    // A later request has a timeout of its own, and the pause ends before that.
    bench.ask(client, &["INCR", "key"]);
    bench.pass(PAUSE_US - 100_000);
    assert_eq!(bench.heard(client), "");
    assert_eq!(bench.answer(operator, &["PROXY", "RESUME"]), "+OK\r\n");
    assert_eq!(requests(&bench.heard(node)), ["INCR key"]);
    bench.send(node, b":1\r\n");
    assert_eq!(bench.heard(client), ":1\r\n");
    // In a later pause the timeout begins anew.
    assert_eq!(bench.answer(operator, &["PROXY", "PAUSE", "node-0"]), "+OK\r\n");
    bench.ask(client, &["INCR", "key"]);
    bench.pass(PAUSE_US - 100_000);
    assert_eq!(bench.heard(client), "");
    bench.pass(200_000);
    assert!(bench.heard(client).starts_with("-ERR requests to node node-0 are paused by an operator"));
    assert_eq!(requests(&bench.heard(node)), Vec::<String>::new());
}

#[test]
fn a_transaction_that_is_held_for_too_long_is_discarded() {
    let (mut bench, operator, client, node) = paused(patient(1));
    let block = [&["MULTI"][..], &["INCR", "key"], &["EXEC"]].map(request).concat();
    bench.send(client, &block);
    assert_eq!(bench.heard(client), "+OK\r\n+QUEUED\r\n");
    bench.pass(PAUSE_US + 100_000);
    let said = bench.heard(client);
    assert!(said.starts_with("-EXECABORT Transaction discarded because of: requests"), "{said}");
    assert!(said.ends_with("pause_timeout; nothing of it was sent\r\n"), "{said}");
    assert_eq!(bench.answer(operator, &["PROXY", "RESUME"]), "+OK\r\n");
    assert_eq!(bench.answer(client, &["EXEC"]), "-ERR EXEC without MULTI\r\n");
    assert_eq!(requests(&bench.heard(node)), Vec::<String>::new());
}

#[test]
fn behind_a_watch_that_was_refused_unread_no_transaction_runs() {
    let (mut bench, operator, client, node) = paused(patient(1));
    bench.ask(client, &["WATCH", "key"]);
    bench.pass(PAUSE_US - 100_000);
    // The client does not wait for the reply to WATCH.
    bench.send(client, &request(&["MULTI"]));
    bench.pass(200_000);
    let said = bench.heard(client);
    assert!(said.starts_with("-ERR requests are paused") && said.ends_with("+OK\r\n"), "{said}");
    bench.send(client, &[&["INCR", "key"][..], &["EXEC"]].map(request).concat());
    assert_eq!(bench.answer(operator, &["PROXY", "RESUME"]), "+OK\r\n");
    let said = bench.heard(client);
    assert!(said.starts_with("+QUEUED\r\n-ERR the connection on which keys were watched is lost"), "{said}");
    assert_eq!(requests(&bench.heard(node)), Vec::<String>::new());
    // A client that has read the error knows that it watches nothing.
    assert_eq!(bench.answer(operator, &["PROXY", "PAUSE"]), "+OK\r\n");
    bench.ask(client, &["WATCH", "key"]);
    bench.pass(PAUSE_US + 100_000);
    assert!(bench.heard(client).starts_with("-ERR requests are paused"));
    assert_eq!(bench.answer(operator, &["PROXY", "RESUME"]), "+OK\r\n");
    bench.send(client, &[&["MULTI"][..], &["INCR", "key"], &["EXEC"]].map(request).concat());
    bench.take_multi(node);
    assert_eq!(requests(&bench.heard(node)), ["MULTI", "INCR key", "EXEC"]);
}

#[test]
fn a_watch_that_waits_for_replies_and_is_refused_counts_once() {
    let patient = patient(1);
    let timeouts = Timeouts { response_us: 10 * PAUSE_US, silence_us: 10 * PAUSE_US, ..patient.timeouts };
    let (mut bench, operator, client, node) = paused(Config { timeouts, ..patient });
    assert_eq!(bench.answer(operator, &["PROXY", "RESUME"]), "+OK\r\n");
    bench.ask(client, &["GET", "key"]);
    assert_eq!(bench.answer(operator, &["PROXY", "PAUSE"]), "+OK\r\n");
    bench.ask(client, &["WATCH", "key"]);
    bench.pass(PAUSE_US + 100_000);
    assert_eq!(bench.heard(client), "", "what was asked before is answered before");
    bench.send(node, b"$1\r\n0\r\n");
    let said = bench.heard(client);
    assert!(said.starts_with("$1\r\n0\r\n-ERR requests are paused"), "{said}");
    assert_eq!(bench.figure(operator, "holds_expired"), 1);
}

#[test]
fn behind_a_refusal_what_is_for_other_nodes_is_done() {
    let mut bench: Bench<NoEngine> = Bench::proxy(patient(2));
    let (operator, client) = (bench.accept(), bench.accept());
    bench.ask(client, &["INFO", "keyspace"]);
    let nodes = bench.connect();
    nodes.iter().for_each(|node| bench.send(*node, b"$0\r\n\r\n"));
    bench.heard(client);
    // Finds a key of each node.
    let mut keys = [String::new(), String::new()];
    for number in 0..20 {
        let key = format!("k{number}");
        bench.ask(client, &["GET", &key]);
        let place = nodes.iter().position(|node| bench.heard(*node).contains(&key)).expect("a node is asked");
        bench.send(nodes[place], b"$-1\r\n");
        keys[place] = key;
    }
    bench.heard(client);
    assert_eq!(bench.answer(operator, &["PROXY", "PAUSE", "node-0"]), "+OK\r\n");
    bench.send(
        client,
        &[["INCR", &keys[0]], ["INCR", &keys[1]], ["INCR", &keys[0]]].map(|words| request(&words)).concat(),
    );
    bench.pass(PAUSE_US - 100_000);
    assert_eq!(nodes.iter().map(|node| bench.heard(*node)).collect::<String>(), "", "nothing overtakes it so far");
    bench.pass(200_000);
    assert_eq!(requests(&bench.heard(nodes[1])), [format!("INCR {}", keys[1])]);
    bench.send(nodes[1], b":1\r\n");
    let said = bench.heard(client);
    assert!(said.starts_with("-ERR requests to node node-0 are paused"), "{said}");
    assert_eq!((said.matches("-ERR").count(), said.matches(":1\r\n").count()), (2, 1), "{said}");
    assert_eq!(bench.heard(nodes[0]), "");
}

#[test]
fn who_leaves_while_it_is_held_is_gone_and_not_counted() {
    let (mut bench, operator, _, node) = paused(patient(1));
    let clients: Vec<ConnId> = (0..20).map(|_| bench.accept()).collect();
    clients.iter().for_each(|client| bench.ask(*client, &["INCR", "key"]));
    assert_eq!(bench.figure(operator, "blocked_clients"), 20);
    for (number, client) in clients.iter().take(10).enumerate() {
        match number % 2 {
            0 => bench.turn(|worker| worker.handle_hung_up(*client)),
            _ => bench.turn(|worker| worker.handle_broken(*client, "it was reset")),
        }
    }
    assert_eq!(bench.figure(operator, "blocked_clients"), 10);
    assert_eq!(bench.figure(operator, "clients"), 12);
    bench.pass(PAUSE_US + 100_000);
    assert_eq!(bench.figure(operator, "blocked_clients"), 0);
    assert_eq!(bench.answer(operator, &["PROXY", "RESUME"]), "+OK\r\n");
    assert_eq!(requests(&bench.heard(node)), Vec::<String>::new());
}

#[test]
fn a_reload_amid_a_pause_takes_another_time_and_loses_nothing() {
    let (mut bench, operator, client, _) = paused(patient(1));
    bench.ask(client, &["INCR", "key"]);
    bench.pass(PAUSE_US / 2);
    let without = config(1, 1);
    bench.turn(|worker| worker.handle_mail(Mail::Reload(Arc::new(without))));
    bench.pass(10 * PAUSE_US);
    assert_eq!(bench.heard(client), "");
    assert_eq!(bench.answer(operator, &["PROXY", "RESUME"]), "+OK\r\n");
    bench.connect();
    assert!(bench.who_heard("INCR key").is_some());
}

#[test]
fn what_waits_at_a_primary_is_held_with_it_alone() {
    let follow = ["XREAD", "BLOCK", "0", "STREAMS", "s", "$"];
    for (paused, is_held) in [("replica", false), ("node-0", true)] {
        let lanes = LaneLimits { blocking_max: 1, ..LaneLimits::default() };
        let mut bench = Bench::proxy(Config { lanes, ..with_replica(1, Reads::Replica, DeadNode::Error) });
        let operator = bench.accept();
        assert_eq!(bench.answer(operator, &["PROXY", "PAUSE", paused]), "+OK\r\n");
        let explained = bench.answer(operator, &[&["PROXY", "EXPLAIN"][..], &follow].concat());
        assert!(explained.contains("$5\r\nnodes\r\n*1\r\n$6\r\nnode-0\r\n"), "{explained}");
        let clients = [(), ()].map(|()| bench.accept());
        clients.iter().for_each(|client| bench.ask(*client, &follow));
        assert_eq!(bench.dialling.is_empty(), is_held, "{paused} is paused");
        if is_held {
            assert_eq!(bench.answer(operator, &["PROXY", "RESUME"]), "+OK\r\n");
        }
        // There is one connection to wait on.
        let told = clients.map(|client| bench.heard(client));
        assert!(
            told[0].is_empty() && told[1].starts_with("-ERR blocking connections to node node-0 are exhausted"),
            "{told:?}"
        );
        let node = bench.connect()[0];
        bench.send(node, b":7\r\n");
        assert_eq!(bench.node_of(node), 0);
        assert_eq!(requests(&bench.heard(node)), ["CLIENT ID", "XREAD BLOCK 0 STREAMS s $"]);
    }
}
