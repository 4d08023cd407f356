//! Nodes that owe replies and are silent, with `node_silence_timeout` off.

use crate::NoEngine;
use crate::bench::{Bench, request, requests};
use crate::support::config;
use respool_connection::ConnId;
use respool_proxy::{Config, IntegrityTerms, Timeouts};

const SECOND_US: u64 = 1_000_000;

/// Settings without a timeout for silence, and with this request timeout.
fn patient(response_us: u64) -> Config {
    let timeouts = Timeouts { silence_us: u64::MAX, response_us, ..config(1, 1).timeouts };
    Config { timeouts, ..config(1, 1) }
}

/// A proxy with an outstanding GET. Returns the client and the connection to the node.
fn unanswered(response_us: u64) -> (Bench<NoEngine>, ConnId, ConnId) {
    let mut bench = Bench::proxy(patient(response_us));
    let client = bench.accept();
    bench.ask(client, &["GET", "key"]);
    let node = bench.connect()[0];
    assert_eq!(requests(&bench.heard(node)), ["GET key"]);
    (bench, client, node)
}

/// Lets seconds pass, one per turn.
fn pass(bench: &mut Bench<NoEngine>, seconds: u64) {
    for _ in 0..seconds {
        bench.wait(SECOND_US);
        bench.turn(|_| ());
    }
}

#[test]
fn a_node_may_be_silent_for_as_long_as_it_likes() {
    let (mut bench, client, node) = unanswered(u64::MAX);
    pass(&mut bench, 3_600);
    assert!(bench.closed.is_empty());
    bench.ask(client, &["GET", "other"]);
    assert_eq!(requests(&bench.heard(node)), ["GET other"]);
    bench.send(node, b"$1\r\na\r\n$1\r\nb\r\n");
    assert_eq!(bench.heard(client), "$1\r\na\r\n$1\r\nb\r\n");
}

#[test]
fn requests_are_late_and_the_connection_stays_in_step() {
    let (mut bench, client, node) = unanswered(SECOND_US);
    pass(&mut bench, 60);
    assert!(bench.heard(client).starts_with("-ERR node node-0 did not answer"));
    bench.ask(client, &["GET", "other"]);
    bench.send(node, b"$1\r\na\r\n$1\r\nb\r\n");
    assert_eq!(bench.heard(client), "$1\r\nb\r\n", "the late reply is discarded");
    assert!(bench.closed.is_empty());
    // The kernel reports the end of the connection (`node_tcp_user_timeout`).
    bench.ask(client, &["GET", "third"]);
    bench.cut(node);
    assert!(bench.heard(client).starts_with("-ERR node node-0 "));
    bench.ask(client, &["GET", "fourth"]);
    let node = bench.connect()[0];
    assert_eq!(requests(&bench.heard(node)), ["GET fourth"]);
}

#[test]
fn a_connection_that_leaves_is_not_waited_for_without_end() {
    let (mut bench, client, node) = unanswered(SECOND_US);
    pass(&mut bench, 3);
    bench.heard(client);
    assert_eq!(bench.answer(client, &["PROXY", "RECONNECT"]), ":1\r\n");
    pass(&mut bench, 1);
    let new = bench.connect()[0];
    bench.ask(client, &["GET", "other"]);
    assert!(requests(&bench.heard(new)).is_empty(), "the first request may still be executed");
    pass(&mut bench, 1);
    assert!(bench.heard(client).starts_with("-ERR node node-0 did not answer") || bench.heard(client).is_empty());
    pass(&mut bench, 15);
    assert!(bench.closed.contains(&node), "its replies have been given up");
    bench.heard(client);
    bench.heard(new);
    bench.ask(client, &["GET", "third"]);
    assert_eq!(requests(&bench.heard(new)), ["GET third"]);
}

#[test]
fn a_slow_reply_is_passed_on_once_where_replies_are_proved() {
    let integrity = IntegrityTerms { every: 1, run: 0, held_bytes: 1 << 20 };
    let mut bench = Bench::proxy(Config { integrity, ..config(1, 1) });
    let client = bench.accept();
    bench.send(client, &[request(&["GET", "whole"]), request(&["GET", "slow"]), request(&["GET", "last"])].concat());
    let node = bench.connect()[0];
    bench.send(node, b"$1\r\nw\r\n$200000\r\n");
    for _ in 0..3 {
        bench.send(node, &[b's'; 60_000]);
    }
    bench.wait(600_000);
    bench.turn(|_| ());
    let told = bench.heard(client);
    assert_eq!(told.matches("did not answer").count(), 1, "the second is arriving, and the third behind it");
    bench.cut(node);
    assert_eq!(bench.heard(client).matches("-ERR node").count(), 2);
    bench.ask(client, &["GET", "next"]);
    let node = bench.connect()[0];
    let asked = bench.heard(node);
    let seal = &asked[asked.find("$24\r\nrespool:").expect("replies are proved")..];
    bench.send(node, format!("$1\r\nn\r\n{seal}").as_bytes());
    assert_eq!(bench.heard(client), "$1\r\nn\r\n");
}

#[test]
fn who_waits_for_a_connection_is_told_that_its_node_is_silent() {
    let mut bench = Bench::proxy(config(1, 1));
    let client = bench.accept();
    bench.ask(client, &["BLPOP", "q", "0"]);
    let silent = bench.connect()[0];
    assert_eq!(requests(&bench.heard(silent)), ["CLIENT ID"]);
    for _ in 0..12 {
        bench.wait(SECOND_US / 4);
        bench.turn(|_| ());
        bench.connect();
    }
    assert!(bench.closed.contains(&silent), "no request waits there yet, so its node owes a reply");
    let told = bench.heard(client);
    assert!(told.starts_with("-ERR node node-0 did not answer within 500 ms"), "{told:?}");
    assert_eq!(bench.worker.remains(), [("clients", 1)], "nothing is owed");
}
