//! INFO of nodes that are paused or reply late: their last replies, with their age.

use crate::NoEngine;
use crate::bench::{Bench, requests, users};
use crate::support::config;
use respool_connection::{ConnId, Credentials, Machine, Service};
use respool_proxy::limits::{INFO_KEPT_BYTES_MAX, INFO_PATIENCE_US, INFO_SECTIONS_BYTES_MAX};
use respool_proxy::{Config, Mail, UserLimits};
use std::sync::Arc;

const TOLD: &str = "# Server\r\nredis_version:7\r\n\r\n# Clients\r\nconnected_clients:9\r\n";

fn bulk(text: &str) -> Vec<u8> {
    format!("${}\r\n{text}\r\n", text.len()).into_bytes()
}

/// A proxy with one node that has replied to INFO once.
fn told(config: Config) -> (Bench<NoEngine>, ConnId, ConnId) {
    let mut bench = Bench::proxy(config);
    let client = bench.accept();
    bench.ask(client, &["INFO"]);
    let node = bench.connect()[0];
    assert_eq!(requests(&bench.heard(node)), ["INFO"]);
    bench.send(node, &bulk(TOLD));
    let said = bench.heard(client);
    assert!(said.contains("redis_version:7\r\n") && said.contains("connected_clients:1\r\n"), "{said}");
    assert!(!said.contains("Last_known"), "it is of now: {said}");
    (bench, client, node)
}

#[test]
fn a_paused_node_is_not_asked_for_info() {
    let (mut bench, client, node) = told(config(1, 1));
    assert_eq!(bench.answer(client, &["PROXY", "PAUSE"]), "+OK\r\n");
    bench.wait(7_000_000);
    let said = bench.answer(client, &["INFO"]);
    assert!(said.contains("redis_version:7\r\n") && said.contains("connected_clients:1\r\n"), "{said}");
    assert!(said.ends_with("# Last_known\r\nnode0:name=node-0,age_seconds=7\r\n\r\n"), "{said}");
    // Of other sections no reply is remembered.
    let said = bench.answer(client, &["INFO", "replication"]);
    assert!(said.starts_with("-ERR node node-0 is paused, and nothing is known of it"), "{said}");
    let said = bench.answer(client, &["INFO", "clients"]);
    assert!(said.contains("connected_clients:1\r\n") && said.contains("age_seconds=unknown"), "{said}");
    assert_eq!(requests(&bench.heard(node)), Vec::<String>::new());
    assert_eq!(bench.answer(client, &["PROXY", "RESUME"]), "+OK\r\n");
    bench.ask(client, &["INFO"]);
    assert_eq!(requests(&bench.heard(node)), ["INFO"]);
}

#[test]
fn what_a_late_node_said_before_is_told_with_its_age() {
    let (mut bench, client, node) = told(config(1, 1));
    bench.wait(3_000_000);
    bench.ask(client, &["INFO"]);
    bench.wait(INFO_PATIENCE_US / 2);
    bench.turn(|_| ());
    assert_eq!(bench.heard(client), "");
    assert!(bench.worker.next_wakeup_us().is_some(), "it is not waited for without end");
    bench.wait(INFO_PATIENCE_US);
    bench.turn(|_| ());
    let said = bench.heard(client);
    assert!(said.ends_with("node0:name=node-0,age_seconds=3\r\n\r\n"), "{said}");
    // While the late reply is outstanding, no other INFO is sent.
    bench.heard(node);
    let said = bench.answer(client, &["INFO"]);
    assert!(said.contains("age_seconds=3"), "{said}");
    assert_eq!(requests(&bench.heard(node)), Vec::<String>::new());
    // The late reply is remembered, and reaches no client.
    bench.send(node, &bulk("# Server\r\nredis_version:8\r\n"));
    assert_eq!(bench.heard(client), "");
    bench.ask(client, &["INFO"]);
    assert_eq!(requests(&bench.heard(node)), ["INFO"]);
    bench.wait(2 * INFO_PATIENCE_US);
    bench.turn(|_| ());
    assert!(bench.heard(client).contains("redis_version:8\r\n"));
    // The end of the connection counts as the late reply: the next INFO is sent on another connection.
    bench.cut(node);
    bench.connect();
    bench.ask(client, &["INFO"]);
    assert!(bench.who_heard("INFO").is_some());
}

#[test]
fn a_node_of_which_nothing_is_known_is_waited_for() {
    let mut bench = Bench::proxy(config(1, 1));
    let client = bench.accept();
    bench.ask(client, &["INFO"]);
    let node = bench.connect()[0];
    bench.wait(3 * INFO_PATIENCE_US);
    bench.turn(|_| ());
    assert_eq!(bench.heard(client), "");
    bench.send(node, &bulk(TOLD));
    assert!(bench.heard(client).contains("redis_version:7\r\n"));
}

#[test]
fn what_a_server_said_is_not_told_of_the_one_in_its_place() {
    let (mut bench, client, _) = told(config(1, 1));
    assert_eq!(bench.answer(client, &["PROXY", "PAUSE", "node-0"]), "+OK\r\n");
    let mut moved = config(1, 1);
    moved.nodes[0].endpoint = Arc::new(respool_connection::Endpoint::Embedded { index: 7 });
    bench.turn(|worker| worker.handle_mail(Mail::Reload(Arc::new(moved))));
    let said = bench.answer(client, &["INFO"]);
    assert!(said.contains("age_seconds=unknown") && !said.contains("redis_version:7\r\n"), "{said}");
}

#[test]
fn of_several_nodes_those_that_answer_are_told_of_as_they_are() {
    let mut bench = Bench::proxy(config(2, 1));
    let client = bench.accept();
    let keys = |keys: u64| bulk(&format!("# Keyspace\r\ndb0:keys={keys},expires=0,avg_ttl=0\r\n"));
    bench.ask(client, &["INFO", "keyspace"]);
    let nodes = bench.connect();
    bench.send(nodes[0], &keys(1));
    bench.send(nodes[1], &keys(2));
    assert!(bench.heard(client).contains("db0:keys=3,"));
    bench.ask(client, &["INFO", "keyspace"]);
    bench.send(nodes[0], &keys(5));
    bench.wait(2 * INFO_PATIENCE_US);
    bench.turn(|_| ());
    let said = bench.heard(client);
    assert!(said.contains("db0:keys=7,") && said.matches("age_seconds=").count() == 1, "{said}");
    // INFO of the proxy's own sections alone does not wait for nodes.
    let said = bench.answer(client, &["INFO", "proxy", "nodes"]);
    assert!(said.contains("# Proxy\r\n") && said.contains("# Nodes\r\n"), "{said}");
}

#[test]
fn long_lists_of_sections_and_empty_answers_are_not_remembered() {
    let (mut bench, client, node) = told(config(1, 1));
    let long = "x".repeat(INFO_SECTIONS_BYTES_MAX);
    for sections in [&long[..], "nosuchsection"] {
        bench.ask(client, &["INFO", sections]);
        assert_eq!(requests(&bench.heard(node)).len(), 1);
        bench.send(node, &bulk(if sections == long { TOLD } else { "" }));
        bench.heard(client);
    }
    // Neither for the same sections nor for an INFO without sections.
    assert_eq!(bench.answer(client, &["PROXY", "PAUSE"]), "+OK\r\n");
    for sections in [&long[..], "nosuchsection"] {
        let said = bench.answer(client, &["INFO", sections]);
        assert!(said.starts_with("-ERR node node-0 is paused, and nothing is known of it"), "{said}");
    }
    assert!(bench.answer(client, &["INFO"]).contains("redis_version:7\r\n"));
}

#[test]
fn what_a_node_tells_one_user_is_not_told_to_others() {
    let credentials = Credentials { username: Some("ann".to_owned()), password: "at-the-node".to_owned().into() };
    let limits = UserLimits { node_credentials: Some(credentials.into()), ..UserLimits::default() };
    let mut bench = Bench::of_many(config(1, 1), 1, users(&[("ann", limits)]));
    let (plain, ann) = (bench.accept(), bench.accept());
    assert_eq!(bench.answer(ann, &["AUTH", "ann", "secret"]), "+OK\r\n");
    bench.ask(ann, &["INFO"]);
    bench.connect();
    let (node, _) = bench.who_heard("INFO").expect("it is asked");
    bench.send(node, &bulk(TOLD));
    assert!(bench.heard(ann).contains("redis_version:7\r\n"));
    assert_eq!(bench.answer(plain, &["PROXY", "PAUSE"]), "+OK\r\n");
    let said = bench.answer(plain, &["INFO"]);
    assert!(said.contains("age_seconds=unknown") && !said.contains("redis_version:7\r\n"), "{said}");
}

fn keys(keys: u64) -> Vec<u8> {
    bulk(&format!("# Keyspace\r\ndb0:keys={keys},expires=0,avg_ttl=0\r\n"))
}

/// A proxy whose nodes have replied to INFO keyspace: one key at the first, two at the second, and so on. `silent` replied
/// with an error.
fn counted(nodes: usize, silent: Option<usize>) -> (Bench<NoEngine>, ConnId, Vec<ConnId>) {
    let mut bench = Bench::proxy(config(nodes, 1));
    let client = bench.accept();
    bench.ask(client, &["INFO", "keyspace"]);
    let conns = bench.connect();
    for (number, conn) in conns.iter().enumerate() {
        match silent {
            Some(silent) if silent == number => bench.send(*conn, b"-ERR not now\r\n"),
            _ => bench.send(*conn, &keys(1 + number as u64)),
        }
    }
    assert!(bench.heard(client).contains("db0:keys="));
    (bench, client, conns)
}

#[test]
fn nodes_that_are_paused_and_nodes_that_are_late_are_all_named() {
    let (mut bench, client, nodes) = counted(3, None);
    assert_eq!(bench.answer(client, &["PROXY", "PAUSE", "node-0"]), "+OK\r\n");
    bench.ask(client, &["INFO", "keyspace"]);
    bench.send(nodes[2], &keys(10));
    bench.wait(2 * INFO_PATIENCE_US);
    bench.turn(|_| ());
    let said = bench.heard(client);
    let told = "# Last_known\r\nnode0:name=node-0,age_seconds=0\r\nnode1:name=node-1,age_seconds=0\r\n\r\n";
    assert!(said.contains("db0:keys=13,") && said.ends_with(told), "{said}");
}

#[test]
fn a_node_that_is_slow_and_unknown_has_no_other_waited_for() {
    let (mut bench, client, nodes) = counted(2, Some(1));
    bench.ask(client, &["INFO", "keyspace"]);
    bench.wait(2 * INFO_PATIENCE_US);
    bench.turn(|_| ());
    assert_eq!(bench.heard(client), "");
    bench.send(nodes[1], &keys(5));
    let said = bench.heard(client);
    let told = "# Last_known\r\nnode0:name=node-0,age_seconds=0\r\n\r\n";
    assert!(said.contains("db0:keys=6,") && said.ends_with(told), "{said}");
    // The late reply of the other node belongs to no later request.
    bench.send(nodes[0], &keys(7));
    assert_eq!(bench.heard(client), "");
    bench.ask(client, &["INFO", "keyspace"]);
    bench.send(nodes[0], &keys(8));
    bench.send(nodes[1], &keys(9));
    let said = bench.heard(client);
    assert!(said.contains("db0:keys=17,") && !said.contains("Last_known"), "{said}");
}

#[test]
fn a_late_reply_that_is_too_long_to_be_remembered_is_not_kept() {
    let (mut bench, client, node) = told(config(1, 1));
    bench.ask(client, &["INFO"]);
    bench.wait(2 * INFO_PATIENCE_US);
    bench.turn(|_| ());
    assert!(bench.heard(client).contains("age_seconds=0"));
    bench.ask(client, &["GET", "k"]);
    bench.heard(node);
    let long = bulk(&"x".repeat(20 * INFO_KEPT_BYTES_MAX));
    let mut most = 0;
    for part in [&long[..], b"$1\r\nv\r\n"].concat().chunks(16_000) {
        bench.send(node, part);
        most = most.max(bench.shared.ledger.held_bytes());
    }
    assert!(most < 4 * INFO_KEPT_BYTES_MAX, "{most}");
    assert_eq!(bench.heard(client), "$1\r\nv\r\n");
    bench.ask(client, &["INFO"]);
    assert_eq!(requests(&bench.heard(node)), ["INFO"], "it is asked again");
    bench.send(node, &bulk(TOLD));
    assert!(bench.heard(client).contains("redis_version:7\r\n"));
}

#[test]
fn a_node_is_named_as_it_was_asked_whatever_is_configured_since() {
    let (mut bench, client, nodes) = counted(2, None);
    bench.ask(client, &["INFO", "keyspace"]);
    bench.send(nodes[1], &keys(5));
    let mut other = config(2, 1);
    other.nodes.swap(0, 1);
    bench.turn(|worker| worker.handle_mail(Mail::Reload(Arc::new(other))));
    bench.wait(2 * INFO_PATIENCE_US);
    bench.turn(|_| ());
    let said = bench.heard(client);
    assert!(said.contains("db0:keys=6,") && said.contains("node0:name=node-0,"), "{said}");
}
