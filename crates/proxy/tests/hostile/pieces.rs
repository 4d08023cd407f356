//! Large requests that are passed on as they come, and end before they are whole: nothing is executed, and what never was a
//! request has no reply.

use crate::NoEngine;
use crate::bench::{Bench, request, users};
use crate::support::config;
use respool_connection::{ConnId, Endpoint, Machine, Service};
use respool_proxy::hooks::Hooks;
use respool_proxy::{Budgets, Config, Mail, UserLimits};
use respool_route::{Node, Pool, Routes, Scheme, Topology};
use std::sync::Arc;

fn settings(nodes: usize) -> Config {
    let base = config(nodes, 1);
    let budgets = Budgets { request_whole: 1_000, ..base.budgets };
    Config { budgets, ..base }
}

/// A client that has sent half of a large request, and the connection that has that half.
fn half() -> (Bench<NoEngine>, ConnId, ConnId) {
    half_with(settings(1))
}

fn half_with(config: Config) -> (Bench<NoEngine>, ConnId, ConnId) {
    let mut bench = Bench::proxy(config);
    let client = bench.accept();
    let whole = request(&["SET", "key", &"v".repeat(100_000)]);
    bench.send(client, &whole[..50_000]);
    let own = bench.connect()[0];
    assert_eq!(bench.shared.counters[0].requests_in_pieces.value(), 1);
    assert_eq!(bench.heard(own).len(), 50_000);
    (bench, client, own)
}

#[test]
fn half_a_request_does_not_hold_up_the_end_and_has_no_reply() {
    let (mut bench, client, own) = half();
    bench.turn(|worker| worker.handle_mail(Mail::Drain));
    assert_eq!(bench.heard(client), "", "no request, no reply");
    assert!(bench.closed.contains(&client) && bench.closed.contains(&own), "nothing that it has asked is still owed");
}

#[test]
fn half_a_request_of_a_client_that_closes_its_side_has_no_reply() {
    let (mut bench, client, own) = half();
    bench.turn(|worker| worker.handle_ended(client));
    assert_eq!(bench.heard(client), "");
    assert!(bench.closed.contains(&client) && bench.closed.contains(&own));
}

#[test]
fn a_large_request_is_late_only_once_its_node_has_it() {
    let (mut bench, client, own) = half();
    let rest = request(&["SET", "key", &"v".repeat(100_000)]).split_off(50_000);
    bench.read_on(own, 0);
    bench.send(client, &rest);
    // Each pause is shorter than the timeout, and all of them are longer.
    for _ in 0..3 {
        bench.wait(300_000);
        bench.read_on(own, 10_000);
        assert_eq!(bench.heard(client), "");
    }
    bench.wait(300_000);
    bench.read_on(own, usize::MAX);
    assert_eq!(bench.heard(own).len(), rest.len());
    bench.wait(300_000);
    bench.turn(|_| ());
    assert_eq!(bench.heard(client), "", "it has had the request for 300 ms");
    bench.wait(300_000);
    bench.turn(|_| ());
    assert!(bench.heard(client).contains("did not answer within 500 ms"));
}

#[test]
fn a_node_that_takes_no_more_of_a_large_request_is_late() {
    let (mut bench, client, own) = half();
    bench.read_on(own, 0);
    bench.send(client, &request(&["SET", "key", &"v".repeat(100_000)])[50_000..]);
    bench.wait(600_000);
    bench.turn(|_| ());
    assert!(bench.heard(client).contains("did not answer within 500 ms"));
}

#[test]
fn bytes_amid_a_large_request_that_are_none_are_told_of_once() {
    let (mut bench, client, own) = half();
    bench.send(client, &[&b"v".repeat(50_100)[..], b"xx"].concat());
    let heard = bench.heard(client);
    assert_eq!(heard, "-ERR Protocol error: bulk string not followed by CRLF\r\n");
    assert!(bench.closed.contains(&client) && bench.closed.contains(&own));
}

#[test]
fn half_a_request_that_is_being_answered_ends_its_client() {
    let (mut bench, client, own) = half();
    let begun = [b"$1000000\r\n".as_slice(), &[b'v'; 200_000]].concat();
    bench.send(own, &begun);
    bench.heard(client);
    bench.turn(|worker| worker.handle_mail(Mail::Drain));
    assert_eq!(bench.heard(client), "", "nothing stands behind the beginning of a reply");
    assert!(bench.closed.contains(&client) && bench.closed.contains(&own));
}

/// The second half of the request.
fn rest() -> Vec<u8> {
    request(&["SET", "key", &"v".repeat(100_000)]).split_off(50_000)
}

/// The rest comes, and of the request nothing more has come to the node that had its beginning: it is not executed there.
fn assert_given_up(bench: &mut Bench<NoEngine>, client: ConnId, own: ConnId, error: &str) {
    assert_eq!(bench.heard(client), format!("-ERR {error}; the command was not sent\r\n"));
    bench.send(client, &[&rest()[..], &request(&["ECHO", "behind"])].concat());
    assert_eq!(bench.heard(client), "$6\r\nbehind\r\n", "the rest is thrown away, and what is behind it is answered");
    assert_eq!(bench.heard(own), "");
    assert!(bench.closed.contains(&own) && !bench.closed.contains(&client));
}

#[test]
fn a_large_request_whose_node_has_gone_is_not_executed_there() {
    let (mut bench, client, own) = half();
    // Another server by the same name.
    let mut other = settings(1);
    other.nodes[0].endpoint = Arc::new(Endpoint::Embedded { index: 7 });
    bench.turn(|worker| worker.handle_mail(Mail::Reload(Arc::new(other))));
    assert_given_up(&mut bench, client, own, "node node-0 is not configured any more");
}

#[test]
fn a_large_request_whose_key_has_moved_is_not_executed() {
    let turned = |names: [&str; 2]| {
        let mut config = settings(2);
        config.topology = Arc::new(Topology::new(Scheme::default(), names.map(Node::new).into()).unwrap());
        config.routes = Arc::new(Routes::plain(Pool::plain("main", Arc::clone(&config.topology))));
        config.nodes.sort_by_key(|node| names.iter().position(|name| *name == node.name));
        config
    };
    let (mut bench, client, own) = half_with(turned(["node-0", "node-1"]));
    bench.turn(|worker| worker.handle_mail(Mail::Reload(Arc::new(turned(["node-0", "node-1"])))));
    assert_eq!(bench.heard(client), "", "nothing has changed for it");
    bench.turn(|worker| worker.handle_mail(Mail::Reload(Arc::new(turned(["node-1", "node-0"])))));
    assert_given_up(&mut bench, client, own, "the settings have another place for the key since the request began");
}

#[test]
fn a_large_request_for_a_node_that_is_drained_is_not_executed() {
    let (mut bench, client, own) = half();
    let operator = bench.accept();
    assert_eq!(bench.answer(operator, &["PROXY", "DRAIN", "node-0"]), "+OK\r\n");
    assert_given_up(&mut bench, client, own, "node node-0 is not available: it was drained by an operator");
}

#[test]
fn the_end_of_a_large_request_waits_while_its_node_is_paused() {
    let resume: [(&[&str], &[&str]); 5] = [
        (&["PROXY", "PAUSE", "node-0"], &["PROXY", "RESUME", "node-0"]),
        (&["PROXY", "PAUSE"], &["PROXY", "RESUME"]),
        (&["PROXY", "PAUSE", "WAIT", "node-0"], &["PROXY", "RESUME"]),
        (&["CLIENT", "PAUSE", "1000", "WRITE"], &["CLIENT", "UNPAUSE"]),
        (&["CLIENT", "PAUSE", "1000"], &["CLIENT", "UNPAUSE"]),
    ];
    for (pause, resume) in resume {
        let (mut bench, client, own) = half();
        let operator = bench.accept();
        assert_eq!(bench.answer(operator, pause), "+OK\r\n", "half of a request is not waited for: {pause:?}");
        bench.send(client, &rest());
        bench.wait(100_000);
        bench.turn(|_| ());
        assert_eq!((bench.heard(own), bench.heard(client)), (String::new(), String::new()), "{pause:?}");
        assert_eq!(bench.answer(operator, resume), "+OK\r\n");
        assert_eq!(bench.heard(own).len(), rest().len(), "{pause:?}");
        bench.send(own, b"+OK\r\n");
        assert_eq!(bench.heard(client), "+OK\r\n");
    }
}

#[test]
fn a_failover_by_pause_and_reload_executes_no_half_of_a_request() {
    let (mut bench, client, own) = half();
    let operator = bench.accept();
    assert_eq!(bench.answer(operator, &["PROXY", "PAUSE", "WAIT", "node-0"]), "+OK\r\n");
    bench.send(client, &rest());
    let mut other = settings(1);
    other.nodes[0].endpoint = Arc::new(Endpoint::Embedded { index: 7 });
    bench.turn(|worker| worker.handle_mail(Mail::Reload(Arc::new(other))));
    assert_eq!(bench.answer(operator, &["PROXY", "RESUME"]), "+OK\r\n");
    assert_eq!(bench.heard(client), "-ERR node node-0 is not configured any more; the command was not sent\r\n");
    assert_eq!(bench.heard(own), "");
    assert!(bench.closed.contains(&own));
}

#[test]
fn a_large_request_is_refused_behind_a_pause_that_lasts() {
    let base = settings(1);
    let timeouts = respool_proxy::Timeouts { pause_us: 200_000, ..base.timeouts };
    let (mut bench, client, own) = half_with(Config { timeouts, ..base });
    let operator = bench.accept();
    assert_eq!(bench.answer(operator, &["PROXY", "PAUSE", "node-0"]), "+OK\r\n");
    bench.send(client, &rest());
    bench.wait(250_000);
    bench.turn(|_| ());
    let refused = "-ERR requests to node node-0 are paused by an operator, for longer than pause_timeout; the command was not sent\r\n";
    assert_eq!((bench.heard(client).as_str(), bench.heard(own).as_str()), (refused, ""));
    assert!(bench.closed.contains(&own));
    bench.send(client, &request(&["ECHO", "behind"]));
    assert_eq!(bench.heard(client), "$6\r\nbehind\r\n");
}

/// Each order holds as long as it is not taken back, whatever others come and end meanwhile.
#[test]
fn a_large_request_waits_for_the_end_of_all_orders() {
    let pause_all: &[&str] = &["PROXY", "PAUSE", "WAIT", "node-0"];
    for first in [None, Some(pause_all), Some(&["CLIENT", "PAUSE", "300", "WRITE"][..])] {
        let (mut bench, client, own) = half();
        let operator = bench.accept();
        for words in first.into_iter().chain([&["PROXY", "SUSPEND"][..]]) {
            assert_eq!(bench.answer(operator, words), "+OK\r\n", "half of a request is not waited for: {first:?}");
        }
        let rest = rest();
        let left = bench.offer(client, &rest);
        for _ in 0..5 {
            bench.wait(100_000);
            bench.turn(|_| ());
        }
        assert_eq!((bench.heard(own), bench.heard(client)), (String::new(), String::new()), "{first:?}");
        assert_eq!(bench.answer(operator, &["PROXY", "RESUME"]), "+OK\r\n");
        bench.send(client, left);
        assert_eq!(bench.heard(own).len(), rest.len(), "{first:?}");
        bench.send(own, b"+OK\r\n");
        assert_eq!(bench.heard(client), "+OK\r\n");
    }
}

/// It has sent all of it in time.
#[test]
fn a_client_that_was_held_for_long_has_not_stalled() {
    for pause in [&["CLIENT", "PAUSE", "40000", "WRITE"][..], &["PROXY", "PAUSE"]] {
        let (mut bench, client, own) = half();
        let operator = bench.accept();
        assert_eq!(bench.answer(operator, pause), "+OK\r\n");
        bench.send(client, &rest());
        for _ in 0..399 {
            bench.wait(100_000);
            bench.turn(|_| ());
        }
        assert_eq!(bench.heard(own), "", "{pause:?}");
        if pause[0] == "PROXY" {
            assert_eq!(bench.answer(operator, &["PROXY", "RESUME"]), "+OK\r\n");
        }
        bench.wait(150_000);
        bench.turn(|_| ());
        assert_eq!(bench.heard(own).len(), rest().len(), "{pause:?}");
        bench.send(own, b"+OK\r\n");
        assert_eq!(bench.heard(client), "+OK\r\n");
    }
}

#[test]
fn rights_that_are_taken_hold_for_a_large_request() {
    for (rules, text) in
        [(&["-set"][..], "NOPERM"), (&["resetkeys", "~other"], "NOPERM"), (&["-get"], "NOPERM"), (&["+get"], "")]
    {
        let users = users(&[("bob", UserLimits::default())]);
        let mut bench = Bench::<NoEngine>::with_users_and_hooks(settings(1), users, Hooks::default());
        let client = bench.accept();
        assert_eq!(bench.answer(client, &["AUTH", "bob", "secret"]), "+OK\r\n");
        bench.send(client, &request(&["SET", "key", &"v".repeat(100_000)])[..50_000]);
        let own = bench.connect()[0];
        assert_eq!(bench.heard(own).len(), 50_000);
        let operator = bench.accept();
        assert_eq!(bench.answer(operator, &[&["ACL", "SETUSER", "bob"][..], rules].concat()), "+OK\r\n");
        bench.send(client, &rest());
        let (error, sent) = (bench.heard(client), bench.heard(own).len());
        assert!(error.starts_with(&format!("-{text}")) || text.is_empty() && error.is_empty(), "{rules:?}: {error}");
        assert_eq!(sent, if text.is_empty() { rest().len() } else { 0 }, "{rules:?}");
        assert_eq!(bench.closed.contains(&own), !text.is_empty());
    }
}

#[test]
fn what_stands_before_a_large_argument_is_not_kept() {
    let mut bench = Bench::<NoEngine>::proxy(settings(1));
    let client = bench.accept();
    let elements = "e".repeat(900);
    let small: Vec<&str> = ["RPUSH", "key"].into_iter().chain(std::iter::repeat_n(&*elements, 500)).collect();
    let large = "v".repeat(100_000);
    let whole = request(&[&small[..], &[&*large]].concat());
    let rest = bench.offer(client, &whole[..whole.len() - 50_000]);
    let own = bench.connect()[0];
    // What is on its way to the node by then is more than waits for it of one request.
    bench.send(client, rest);
    assert_eq!(bench.heard(own).len(), whole.len() - 50_000);
    // The client's buffer has had room for it, and keeps that for a while.
    assert!(bench.shared.ledger.held_bytes() < 600_000, "{} bytes", bench.shared.ledger.held_bytes());
    bench.send(client, &whole[whole.len() - 50_000..]);
    assert_eq!(bench.heard(own).len(), 50_000);
}

#[test]
fn a_client_that_leaves_amid_a_held_request_executes_nothing() {
    for hangs_up in [true, false] {
        let (mut bench, client, own) = half();
        let operator = bench.accept();
        assert_eq!(bench.answer(operator, &["PROXY", "PAUSE"]), "+OK\r\n");
        bench.send(client, &rest());
        bench.turn(|worker| match hangs_up {
            true => worker.handle_hung_up(client),
            false => worker.handle_broken(client, "gone"),
        });
        bench.wait(100_000);
        bench.turn(|_| ());
        assert_eq!(bench.answer(operator, &["PROXY", "RESUME"]), "+OK\r\n");
        bench.wait(100_000);
        bench.turn(|_| ());
        assert_eq!(bench.heard(own), "", "hangs up: {hangs_up}");
        assert!(bench.closed.contains(&own), "hangs up: {hangs_up}");
    }
}
