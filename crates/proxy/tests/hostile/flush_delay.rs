//! When requests leave: with `flush = adaptive`, those of many clients wait for each other for a moment; no others do.

use crate::bench::{Bench, request};
use crate::routes::with_an_own_connection;
use crate::support::{NoEngine, config};
use respool_connection::{ConnId, FlushPolicy, Machine, Service, Wait};
use respool_proxy::{Budgets, Config, Mail};
use std::sync::Arc;

const DELAY_US: u64 = 100;
const ADAPTIVE: FlushPolicy = FlushPolicy::Adaptive { delay_us_max: DELAY_US };

/// A proxy whose loop never waits, its clients, and the one connection to the node.
fn proxy_with(clients: usize, flush: FlushPolicy) -> (Bench<NoEngine>, Vec<ConnId>, ConnId) {
    let mut bench = Bench::proxy(respool_proxy::Config { flush, ..config(1, 2) });
    let clients: Vec<_> = (0..clients).map(|_| bench.accept()).collect();
    bench.ask(clients[0], &["GET", "a"]);
    let node = bench.connect()[0];
    answer_all(&mut bench, node);
    bench.heard(clients[0]);
    (bench, clients, node)
}

/// Every client asks once, one after the other, and is answered as soon as the node is asked.
fn go_round(bench: &mut Bench<NoEngine>, clients: &[ConnId], node: ConnId) {
    for client in clients {
        bench.ask(*client, &["GET", "a"]);
        answer_all(bench, node);
    }
    bench.wait(DELAY_US);
    bench.turn(|_| {});
    answer_all(bench, node);
    for client in clients {
        assert_eq!(bench.heard(*client), "$-1\r\n");
    }
}

/// Requests that are outstanding at a node that is busy: fewer than are waited for with its replies.
const QUEUED: usize = 14;

/// Enough rounds for the worker to know how often requests come and that they wait at the node, which has answered them all by then.
fn go_until_busy(bench: &mut Bench<NoEngine>, clients: &[ConnId], node: ConnId) {
    (0..6).for_each(|_| go_round(bench, clients, node));
    let mut queued = 0;
    // Not so many that the node would be taken for a far one.
    let clients = &clients[..60];
    for client in clients {
        bench.ask(*client, &["GET", "a"]);
        bench.turn(|_| {});
        queued += crate::bench::requests(&bench.heard(node)).len();
        if queued > QUEUED {
            bench.send(node, b"$-1\r\n");
            queued -= 1;
        }
    }
    while queued > 0 {
        bench.wait(20);
        bench.turn(|_| {});
        queued += crate::bench::requests(&bench.heard(node)).len();
        bench.send(node, b"$-1\r\n");
        queued -= 1;
    }
    for client in clients {
        assert_eq!(bench.heard(*client), "$-1\r\n");
    }
}

/// The node answers what it was asked. Returns how much that was.
fn answer_all(bench: &mut Bench<NoEngine>, node: ConnId) -> usize {
    let asked = crate::bench::requests(&bench.heard(node)).len();
    if asked > 0 {
        bench.send(node, &b"$-1\r\n".repeat(asked));
    }
    asked
}

#[test]
fn requests_of_many_clients_leave_together_and_in_time() {
    let (mut bench, clients, node) = proxy_with(500, ADAPTIVE);
    go_until_busy(&mut bench, &clients, node);
    // 500 clients every 10 ms: five of them in 100 us.
    bench.ask(clients[0], &["GET", "a"]);
    let waits = bench.worker.wait();
    assert!(matches!(waits, Wait::Yielding { .. }), "the first waits for others: {waits:?}");
    for client in &clients[1..5] {
        bench.ask(*client, &["GET", "a"]);
        assert_eq!(bench.heard(node), "", "they wait for each other");
        assert_eq!(bench.worker.wait(), waits, "and not longer for every one more");
    }
    bench.wait(DELAY_US);
    bench.turn(|_| {});
    assert_eq!(crate::bench::requests(&bench.heard(node)).len(), 5);
    assert!(!matches!(bench.worker.wait(), Wait::Yielding { .. }));
    bench.send(node, &b"$-1\r\n".repeat(5));
    // Enough of them need not wait for their time.
    for client in &clients[5..10] {
        bench.ask(*client, &["GET", "a"]);
        assert_eq!(bench.heard(node), "");
    }
    bench.turn(|worker| {
        for client in &clients[10..22] {
            let bytes = request(&["GET", "a"]);
            worker.read_buffer(*client).expect("it is read")[..bytes.len()].copy_from_slice(&bytes);
            worker.handle_read(*client, bytes.len());
        }
    });
    assert_eq!(crate::bench::requests(&bench.heard(node)).len(), 17);
}

#[test]
fn a_client_that_sends_again_at_once_is_not_delayed() {
    let (mut bench, clients, node) = proxy_with(500, ADAPTIVE);
    go_until_busy(&mut bench, &clients, node);
    let busy = clients[0];
    bench.ask(busy, &["GET", "a"]);
    bench.wait(DELAY_US);
    bench.turn(|_| {});
    assert_eq!(answer_all(&mut bench, node), 1);
    bench.ask(busy, &["GET", "a"]);
    assert_eq!(answer_all(&mut bench, node), 1, "it asked a moment ago");
    // And it takes along who waits already.
    bench.ask(clients[1], &["GET", "a"]);
    assert_eq!(answer_all(&mut bench, node), 0);
    bench.ask(busy, &["GET", "a"]);
    assert_eq!(answer_all(&mut bench, node), 2);
}

#[test]
fn few_clients_are_not_delayed_nor_any_by_immediate() {
    for (count, flush) in [(20, ADAPTIVE), (500, FlushPolicy::Immediate)] {
        let (mut bench, clients, node) = proxy_with(count, flush);
        for _ in 0..3_000 / count {
            for client in &clients {
                bench.ask(*client, &["GET", "a"]);
                assert!(!matches!(bench.worker.wait(), Wait::Yielding { .. }));
                assert_eq!(answer_all(&mut bench, node), 1, "{count} clients, {flush:?}");
            }
        }
    }
}

#[test]
fn what_is_delayed_leaves_once_others_have_run() {
    let (mut bench, clients, node) = proxy_with(500, ADAPTIVE);
    go_until_busy(&mut bench, &clients, node);
    bench.ask(clients[0], &["GET", "a"]);
    assert_eq!(bench.heard(node), "", "it waits for others");
    bench.worker.flush_held();
    bench.turn(|_| {});
    assert_eq!(answer_all(&mut bench, node), 1, "those that share the core have had it");
    bench.ask(clients[1], &["GET", "a"]);
    assert_eq!(bench.heard(node), "", "the next waits again");
}

#[test]
fn nothing_is_delayed_for_a_node_that_answers_at_once() {
    let (mut bench, clients, node) = proxy_with(500, ADAPTIVE);
    for _ in 0..6 {
        for client in &clients {
            bench.ask(*client, &["GET", "a"]);
            assert_eq!(answer_all(&mut bench, node), 1);
        }
    }
}

#[test]
fn a_reload_changes_the_policy_of_connections_that_stand() {
    let (mut bench, clients, node) = proxy_with(500, FlushPolicy::Immediate);
    let config = respool_proxy::Config { flush: ADAPTIVE, ..config(1, 2) };
    bench.turn(|worker| worker.handle_mail(Mail::Reload(Arc::new(config))));
    go_until_busy(&mut bench, &clients, node);
    bench.ask(clients[0], &["GET", "a"]);
    assert_eq!(bench.heard(node), "", "it waits for others");
}

#[test]
fn a_reload_writes_what_the_policy_before_it_delayed() {
    let (mut bench, clients, node) = proxy_with(500, ADAPTIVE);
    go_until_busy(&mut bench, &clients, node);
    bench.ask(clients[0], &["GET", "a"]);
    assert_eq!(bench.heard(node), "", "it waits for others");
    let config = respool_proxy::Config { flush: FlushPolicy::Immediate, ..config(1, 2) };
    bench.turn(|worker| worker.handle_mail(Mail::Reload(Arc::new(config))));
    assert_eq!(answer_all(&mut bench, node), 1, "it is written in the turn of the reload");
    assert!(!matches!(bench.worker.wait(), Wait::Yielding { .. }));
    assert_eq!(bench.heard(clients[0]), "$-1\r\n");
}

#[test]
fn delayed_requests_are_answered_before_a_drain_ends() {
    let (mut bench, clients, node) = proxy_with(500, ADAPTIVE);
    go_until_busy(&mut bench, &clients, node);
    bench.ask(clients[0], &["GET", "a"]);
    bench.ask(clients[1], &["GET", "a"]);
    assert_eq!(bench.heard(node), "", "they wait for others");
    let began_us = bench.now_us();
    bench.turn(|worker| {
        worker.handle_ended(clients[1]);
        worker.handle_mail(Mail::Drain);
    });
    assert!(!bench.has_ended, "two clients are owed replies");
    let due_us = bench.worker.next_wakeup_us().expect("a turn is due");
    assert!(due_us <= began_us + DELAY_US, "the loop wakes up for what it holds");
    bench.wait(due_us.saturating_sub(bench.now_us()));
    bench.turn(|_| {});
    assert_eq!(answer_all(&mut bench, node), 2);
    for client in &clients[..2] {
        assert_eq!(bench.heard(*client), "$-1\r\n");
    }
    bench.pass(1_000_000);
    assert!(bench.has_ended);
}

/// A pipeline over two nodes, the first of which has answered.
fn half_answered(flush: FlushPolicy) -> (Bench<NoEngine>, ConnId, Vec<ConnId>) {
    let mut bench = Bench::proxy(respool_proxy::Config { flush, ..config(2, 1) });
    let client = bench.accept();
    let keys = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let pipeline: Vec<u8> = keys.iter().flat_map(|key| request(&["GET", key])).collect();
    bench.send(client, &pipeline);
    bench.connect();
    let mut nodes = bench.nodes.clone();
    assert_eq!(nodes.len(), 2, "the keys are on both nodes");
    // The connections show that they are prompt. The node of the first key is put first.
    for node in bench.nodes.clone() {
        let asked = crate::bench::requests(&bench.heard(node));
        if !asked.iter().any(|request| request == "GET a") {
            nodes.retain(|other| *other != node);
            nodes.push(node);
        }
        bench.send(node, &b"$-1\r\n".repeat(asked.len()));
    }
    bench.wait(2_000);
    bench.turn(|_| {});
    assert_eq!(bench.heard(client), "$-1\r\n".repeat(keys.len()));
    bench.send(client, &pipeline);
    assert!(answer_all(&mut bench, nodes[0]) > 0);
    assert_eq!(bench.heard(client), "", "the first replies wait for those of the other node");
    (bench, client, nodes)
}

#[test]
fn held_replies_of_a_client_that_closed_its_side_leave_in_time() {
    for flush in [FlushPolicy::Immediate, ADAPTIVE] {
        let (mut bench, client, nodes) = half_answered(flush);
        bench.turn(|worker| worker.handle_ended(client));
        let early = bench.heard(client);
        let due_us = bench.worker.next_wakeup_us().expect("a turn is due");
        assert!(due_us <= bench.now_us() + 1_000, "{flush:?}: the loop wakes up for what it holds");
        bench.wait(due_us.saturating_sub(bench.now_us()));
        bench.pass(2_000);
        let in_time = early + &bench.heard(client);
        assert!(
            in_time.starts_with("$-1\r\n"),
            "{flush:?}: what is there is not held for a node that is late: {in_time:?}"
        );
        assert!(answer_all(&mut bench, nodes[1]) > 0);
        assert_eq!(in_time + &bench.heard(client), "$-1\r\n".repeat(8), "{flush:?}");
        assert!(bench.closed.contains(&client), "{flush:?}: it is owed nothing");
    }
}

/// A client that leaves its replies unread is not read on. Once it takes them, the request that it had sent behind goes to its node, and
/// the node's queue is full with it, so that the client waits again: nothing else happens in that turn, and the loop sleeps.
#[test]
fn a_request_that_goes_on_behind_a_write_leaves_with_it() {
    let base = config(1, 1);
    let budgets = Budgets { client_output_soft: 64 * 1024, upstream_queue: 4_000, ..base.budgets };
    let (mut bench, client, node) = Bench::connected(Config { budgets, flush: FlushPolicy::EachTurn, ..base });
    bench.read_on(client, 0);
    let echoes = request(&["ECHO", &"e".repeat(9_000)]).repeat(8);
    bench.send(client, &[echoes, request(&["SET", "key", &"v".repeat(5_000)])].concat());
    assert_eq!(bench.heard(node), "", "too much is unread");
    bench.read_on(client, usize::MAX);
    assert!(
        bench.heard(node).starts_with("*3\r\n$3\r\nSET\r\n"),
        "it leaves in the turn in which the replies are taken"
    );
}

#[test]
fn held_replies_keep_their_bound_beside_prompt_nodes() {
    let mut bench = Bench::proxy(Config { flush: FlushPolicy::Immediate, ..with_an_own_connection() });
    let (client, other) = (bench.accept(), bench.accept());
    bench.ask(other, &["GET", "a"]);
    let shared = bench.connect()[0];
    answer_all(&mut bench, shared);
    bench.ask(client, &["GET", "own:b"]);
    let own = bench.connect()[0];
    answer_all(&mut bench, own);
    assert_eq!(bench.heard(client), "$-1\r\n");
    // The first reply comes over a shared connection, and the second one is owed on the client's own.
    bench.send(client, &[request(&["GET", "a"]), request(&["GET", "own:b"])].concat());
    assert!(bench.heard(own).contains("GET"));
    bench.ask(other, &["GET", "a"]);
    bench.ask(other, &["GET", "a"]);
    let mut waited_us = 0;
    let mut heard = String::new();
    // At the end of each turn a prompt reply is due.
    while heard.is_empty() && waited_us < 3_000 {
        bench.ask(other, &["GET", "a"]);
        bench.send(shared, b"$-1\r\n");
        bench.wait(50);
        waited_us += 70;
        heard = bench.heard(client);
    }
    assert_eq!(heard, "$-1\r\n");
    assert!(waited_us <= 1_500, "{waited_us} us");
}

/// How many requests the node is sent in some turns in which nothing comes.
fn asked(bench: &mut Bench<NoEngine>, node: ConnId) -> usize {
    let mut heard = String::new();
    for _ in 0..8 {
        bench.turn(|_| {});
        heard += &bench.heard(node);
    }
    crate::bench::requests(&heard).len()
}

#[test]
fn a_pipeline_waits_for_replies_only_of_many_senders() {
    let (mut bench, clients, node) = proxy_with(20, FlushPolicy::Immediate);
    let pipeline = request(&["GET", "a"]).repeat(8);
    let senders = clients.iter().position(|client| {
        bench.send(*client, &pipeline);
        asked(&mut bench, node) == 0
    });
    // How many have sent what is outstanding is an estimate by the writes before.
    assert!(senders.is_some_and(|senders| (12..=16).contains(&senders)), "{senders:?}");
    bench.send(node, b"$-1\r\n");
    assert_eq!(asked(&mut bench, node), 8, "what is held leaves with the next replies");
}

#[test]
fn the_parts_of_a_request_wait_as_one() {
    let (mut bench, clients, node) = proxy_with(20, FlushPolicy::Immediate);
    let keys: Vec<_> = (0..20).map(|key| format!("k{key}")).collect();
    let parts: Vec<_> = std::iter::once("MGET").chain(keys.iter().map(String::as_str)).collect();
    for client in &clients[..16] {
        bench.ask(*client, &parts);
        assert_ne!(asked(&mut bench, node), 0);
    }
}
