//! Other nodes are configured while replies are outstanding: nothing overtakes what was asked before.

use crate::bench::{Bench, requests};
use crate::support::config;
use respool_connection::{ConnId, Machine};
use respool_proxy::{Config, LaneLimits, Mail, PoolMode};
use std::sync::Arc;

/// The same servers under other names.
fn renamed(base: Config) -> Config {
    let mut nodes = base.nodes.clone();
    nodes.iter_mut().for_each(|node| node.name = format!("new-{}", node.name));
    Config { nodes, ..base }
}

/// A client's SET is under way when the node gets another name; its GET must not come before. `before` is said first.
fn set_and_get(base: impl Fn() -> Config, before: &[&[&str]]) {
    let mut bench = Bench::proxy(base());
    let client = bench.accept();
    before.iter().for_each(|words| bench.ask(client, words));
    bench.heard(client);
    bench.ask(client, &["SET", "key", "1"]);
    bench.connect();
    let (old, _) = bench.who_heard("SET key 1").expect("it was sent");
    bench.turn(|worker| worker.handle_mail(Mail::Reload(Arc::new(renamed(base())))));
    bench.ask(client, &["GET", "key"]);
    bench.connect();
    let asked = all_asked(&mut bench);
    assert!(!asked.iter().any(|request| request == "GET key"), "it would overtake the SET: {asked:?}");
    bench.send(old, b"+OK\r\n");
    bench.wait(10_000);
    bench.turn(|_| ());
    bench.connect();
    assert!(bench.who_heard("GET key").is_some_and(|(conn, _): (ConnId, _)| conn != old), "now it may");
}

fn all_asked(bench: &mut Bench<crate::NoEngine>) -> Vec<String> {
    bench.nodes.clone().into_iter().flat_map(|node| requests(&bench.heard(node))).collect()
}

#[test]
fn a_request_does_not_overtake_another_that_is_under_way_to_a_node_that_has_another_name_now() {
    set_and_get(|| config(1, 1), &[]);
}

#[test]
fn nor_where_clients_have_connections_of_their_own() {
    let lanes = LaneLimits { mode: PoolMode::Session, ..LaneLimits::default() };
    set_and_get(|| Config { lanes, ..config(1, 1) }, &[]);
}

#[test]
fn nor_where_the_client_wants_no_replies() {
    set_and_get(|| config(1, 1), &[&["CLIENT", "REPLY", "OFF"]]);
}
