//! Orders and questions that workers put to each other, and nodes that an operator holds.

use crate::NoEngine;
use crate::bench::{Bench, request, requests, users};
use crate::support::config;
use respool_command::Categories;
use respool_connection::{ConnId, Machine, Service};
use respool_proxy::hooks::Hooks;
use respool_proxy::limits::CLIENT_OUTSTANDING_MAX;
use respool_proxy::{Config, Inquiry, Mail, NodeOrder, UserLimits};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[test]
fn unanswered_queries_of_workers_are_bounded() {
    for words in [&["CLIENT", "KILL", "ID", "99"][..], &["PROXY", "RECONNECT"], &["CLIENT", "UNBLOCK", "99"]] {
        let mut bench = Bench::of_many(config(1, 1), 2, Arc::default());
        let client = bench.accept();
        let many = request(words).repeat(1_000);
        let mut sent = 0;
        while sent < 2 * CLIENT_OUTSTANDING_MAX && is_read(&mut bench, client) {
            bench.send(client, &many);
            sent += 1_000;
        }
        assert!(sent < 2 * CLIENT_OUTSTANDING_MAX, "{words:?}");
    }
}

/// What is asked next of other workers has to find the order carried out.
#[test]
fn an_operator_hears_of_an_order_behind_all_workers() {
    let mut bench = Bench::of_many(config(1, 1), 3, Arc::default());
    for name in ["node-0", "nosuch"] {
        let is_told = Arc::new(AtomicBool::new(false));
        let tells = Arc::clone(&is_told);
        let on_end = Box::new(move || tells.store(true, Ordering::Relaxed));
        let inquiry = Inquiry::order(NodeOrder::Pause, vec![name.to_owned()], String::new(), on_end);
        bench.posted.clear();
        bench.turn(|worker| worker.handle_mail(Arc::clone(&inquiry).into()));
        assert!(!is_told.load(Ordering::Relaxed), "{name}: what others are told has not been posted yet");
        let own = bench.posted.pop().expect("it writes to itself behind all others");
        assert!(matches!(own, Mail::Feature(_)), "{name}: {own:?}");
        let others = if name == "nosuch" { 0 } else { 2 };
        assert_eq!(bench.posted.len(), others, "{name}");
        bench.turn(|worker| worker.handle_mail(own));
        assert!(is_told.load(Ordering::Relaxed), "{name}");
        assert_eq!(bench.posted.len(), others, "{name}: it is not given twice");
        assert_eq!(inquiry.end().decided.map(|decided| decided.is_ok()), Some(others > 0), "{name}");
    }
}

fn is_read(bench: &mut Bench<NoEngine>, client: ConnId) -> bool {
    let mut is_read = false;
    bench.turn(|worker| is_read = worker.read_buffer(client).is_some());
    is_read
}

#[test]
fn a_transaction_waits_while_its_node_is_paused() {
    let mut bench = Bench::proxy(config(1, 1));
    let (operator, client) = (bench.accept(), bench.accept());
    bench.ask(client, &["GET", "key"]);
    let node = bench.connect()[0];
    bench.send(node, b"$-1\r\n");
    for pause in [&["PROXY", "PAUSE", "node-0"][..], &["PROXY", "PAUSE"]] {
        assert_eq!(bench.answer(operator, pause), "+OK\r\n");
        bench.heard(node);
        [&["MULTI"][..], &["SET", "key", "1"], &["EXEC"]].iter().for_each(|words| bench.ask(client, words));
        assert_eq!(requests(&bench.heard(node)), Vec::<String>::new(), "{pause:?}");
        assert_eq!(bench.answer(operator, &["PROXY", "RESUME"]), "+OK\r\n");
        bench.take_multi(node);
        assert_eq!(requests(&bench.heard(node)), ["MULTI", "SET key 1", "EXEC"]);
        bench.heard(client);
        bench.send(node, b"+OK\r\n+QUEUED\r\n*1\r\n+OK\r\n");
        assert_eq!(bench.heard(client), "*1\r\n+OK\r\n");
    }
}

/// Such requests are not sent with EXEC, but by the proxy behind it.
#[test]
fn what_a_transaction_asks_by_the_way_waits_for_paused_nodes() {
    let mut bench = Bench::proxy(config(2, 1));
    let (operator, client) = (bench.accept(), bench.accept());
    let keys = ["a", "b", "c", "d", "e", "f"].map(|key| (key, node_of(&mut bench, operator, key)));
    let of = |name: &str| keys.iter().find(|(_, node)| node == name).expect("six keys are on both nodes").0;
    let (here, paused) = (of("node-0"), of("node-1"));
    for key in [here, paused] {
        bench.ask(client, &["GET", key]);
        for node in bench.connect() {
            bench.heard(node);
            bench.send(node, b"$-1\r\n");
            bench.send(client, &[request(&["MULTI"]), request(&["GET", key]), request(&["EXEC"])].concat());
            bench.take_multi(node);
            bench.send(node, b"+OK\r\n+QUEUED\r\n*1\r\n$-1\r\n");
        }
    }
    assert_eq!(bench.nodes.len(), 2);
    for pause in [&["PROXY", "PAUSE", "node-1"][..], &["PROXY", "PAUSE"]] {
        for queued in [
            &[&["PUBLISH", paused, "m"][..]][..],
            &[&["SET", here, "1"], &["PUBLISH", paused, "m"]],
            &[&["CONFIG", "SET", "maxmemory", "1gb"]],
            &[&["SCRIPT", "FLUSH"]],
        ] {
            assert_eq!(bench.answer(operator, pause), "+OK\r\n");
            bench.nodes.clone().into_iter().for_each(|node| drop(bench.heard(node)));
            bench.heard(client);
            bench.ask(client, &["MULTI"]);
            queued.iter().for_each(|words| bench.ask(client, words));
            bench.ask(client, &["EXEC"]);
            let nodes = bench.nodes.clone();
            let asked: Vec<_> = nodes.iter().flat_map(|node| requests(&bench.heard(*node))).collect();
            assert!(asked.is_empty(), "{pause:?}, {queued:?}: {asked:?}");
            assert_eq!(bench.answer(operator, &["PROXY", "RESUME"]), "+OK\r\n");
            for _ in 0..4 {
                for node in &nodes {
                    for words in requests(&bench.heard(*node)) {
                        let reply = match words.split(' ').next() {
                            Some("EXEC") => "*1\r\n+OK\r\n",
                            Some("PUBLISH") => ":1\r\n",
                            Some("SET") => "+QUEUED\r\n",
                            _ => "+OK\r\n",
                        };
                        bench.send(*node, reply.as_bytes());
                    }
                }
            }
            let heard = bench.heard(client);
            let replies = if queued.len() == 2 { "*2\r\n+OK\r\n:1\r\n" } else { "*1\r\n" };
            assert!(heard.contains(replies) && !heard.contains("-ERR"), "{pause:?}, {queued:?}: {heard}");
        }
    }
}

#[test]
fn a_transaction_that_asks_no_node_does_not_wait_for_any() {
    let mut bench = Bench::proxy(config(2, 1));
    let (operator, client) = (bench.accept(), bench.accept());
    assert_eq!(bench.answer(operator, &["PROXY", "PAUSE"]), "+OK\r\n");
    [&["MULTI"][..], &["CLIENT", "GETNAME"], &["EXEC"]].iter().for_each(|words| bench.ask(client, words));
    assert_eq!(bench.heard(client), "+OK\r\n+QUEUED\r\n*1\r\n$-1\r\n");
}

#[test]
fn a_node_can_be_resumed_alone_when_all_were_paused() {
    let mut bench = Bench::proxy(config(2, 1));
    let (operator, client) = (bench.accept(), bench.accept());
    // One key of each node.
    let keys = ["a", "b", "c", "d", "e", "f"].map(|key| (key, node_of(&mut bench, operator, key)));
    let of = |name: &str| keys.iter().find(|(_, node)| node == name).expect("six keys are on both nodes").0;
    let (first, second) = (of("node-0"), of("node-1"));
    assert_eq!(bench.answer(operator, &["PROXY", "PAUSE"]), "+OK\r\n");
    bench.ask(client, &["GET", first]);
    assert_eq!(bench.connect(), [], "it is held back");
    assert_eq!(bench.answer(operator, &["PROXY", "RESUME", "node-0"]), "+OK\r\n");
    let node = bench.connect()[0];
    assert_eq!(requests(&bench.heard(node)), [format!("GET {first}")]);
    bench.send(node, b"$-1\r\n");
    bench.ask(client, &["GET", second]);
    assert_eq!(bench.connect(), [], "the others stay paused");
    assert_eq!(bench.answer(operator, &["PROXY", "RESUME", "node-1"]), "+OK\r\n");
    assert!(bench.connect().len() == 1 && bench.who_heard(&format!("GET {second}")).is_some());
}

/// The node that has a key.
fn node_of(bench: &mut Bench<NoEngine>, operator: ConnId, key: &str) -> String {
    let explained = bench.answer(operator, &["PROXY", "EXPLAIN", "GET", key]);
    let node = explained.split("\r\n").find(|line| line.starts_with("node-"));
    node.unwrap_or_else(|| panic!("{explained}")).to_owned()
}

#[test]
fn a_request_to_one_node_is_judged_as_one_to_all() {
    let judge = |_: &_, row: &'static respool_command::Row, _: respool_wire::Args<'_>| match row.name {
        "GET" => Err("ERR not that one".to_owned()),
        _ => Ok(()),
    };
    let hooks = Hooks::default().on_request(Categories::named(b"read").expect("it is one"), judge);
    let mut bench = Bench::with_hooks(config(1, 1), hooks);
    let client = bench.accept();
    assert_eq!(bench.answer(client, &["GET", "key"]), "-ERR not that one\r\n");
    assert_eq!(bench.answer(client, &["PROXY", "NODE", "node-0", "GET", "key"]), "-ERR not that one\r\n");
    bench.ask(client, &["PROXY", "NODE", "node-0", "CONFIG", "GET", "masterauth"]);
    let node = bench.connect()[0];
    bench.send(node, b"*2\r\n$10\r\nmasterauth\r\n$6\r\ncanary\r\n");
    assert_eq!(bench.heard(client), "*2\r\n$10\r\nmasterauth\r\n$8\r\n(hidden)\r\n");
}

#[test]
fn a_limit_removed_and_set_again_goes_on_counting() {
    let limits = UserLimits { connections: Some(1), ..UserLimits::default() };
    let access = users(&[("ann", limits.clone())]);
    let mut bench = Bench::of_many(config(1, 1), 1, Arc::clone(&access));
    let client = bench.accept();
    assert_eq!(bench.answer(client, &["AUTH", "ann", "secret"]), "+OK\r\n");
    access.set_limits(std::iter::empty());
    access.set_limits([(b"ann".as_slice().into(), limits)].into_iter());
    bench.turn(|worker| worker.handle_mail(Mail::Reload(Arc::new(config(1, 1)))));
    let other = bench.accept();
    assert!(bench.answer(other, &["AUTH", "ann", "secret"]).starts_with("-ERR max number"), "one is there");
    bench.turn(|worker| worker.handle_broken(client, "gone"));
    assert_eq!(bench.answer(other, &["AUTH", "ann", "secret"]), "+OK\r\n", "and has gone");
}

#[test]
fn who_waits_is_served_although_nodes_have_other_places_now() {
    let mut bench = Bench::proxy(config(2, 1));
    let client = bench.accept();
    bench.ask(client, &["WAIT", "0", "100"]);
    let swapped = config(2, 1);
    let waiting = bench.accept();
    bench.ask(waiting, &["BLPOP", "key", "0"]);
    let nodes = swapped.nodes.iter().rev().cloned().collect();
    let config = Config { nodes, ..swapped };
    bench.turn(|worker| worker.handle_mail(Mail::Reload(Arc::new(config))));
    let dialled = bench.connect();
    for conn in dialled {
        // Each is asked for its number first, and is given it.
        if requests(&bench.heard(conn)) == ["CLIENT ID"] {
            bench.send(conn, b":7\r\n");
        }
    }
    let waits = |bench: &mut Bench<NoEngine>, words: &str| bench.who_heard(words).is_some();
    assert!(waits(&mut bench, "BLPOP key 0"), "its connection has come");
}

#[test]
fn letters_that_cross_leave_all_workers_with_the_same_pause() {
    let mut bench = Bench::of_many(config(1, 1), 2, Arc::default());
    let (operator, client) = (bench.accept(), bench.accept());
    bench.ask(client, &["GET", "k"]);
    let node = bench.connect()[0];
    bench.send(node, b"$-1\r\n");
    bench.heard(node);
    bench.ask(operator, &["CLIENT", "PAUSE", "60000"]);
    bench.ask(operator, &["CLIENT", "UNPAUSE"]);
    let [pause, unpause] = <[Mail; 2]>::try_from(std::mem::take(&mut bench.posted)).expect("one for each order");
    // The letters in the other order.
    bench.turn(|worker| worker.handle_mail(pause.clone()));
    bench.ask(client, &["SET", "k", "1"]);
    assert_eq!(requests(&bench.heard(node)), ["SET k 1"], "the pause has been taken back");
    bench.send(node, b"+OK\r\n");
    bench.ask(operator, &["CLIENT", "PAUSE", "60000", "WRITE"]);
    bench.turn(|worker| worker.handle_mail(unpause));
    bench.ask(client, &["GET", "k"]);
    bench.ask(client, &["SET", "k", "2"]);
    assert_eq!(requests(&bench.heard(node)), ["GET k"], "another pause has begun, of writes alone");
    bench.send(node, b"$1\r\n1\r\n");
    // The stricter pause holds, as at a server.
    bench.ask(operator, &["CLIENT", "PAUSE", "100"]);
    bench.wait(150_000);
    bench.turn(|_| ());
    let other = bench.accept();
    bench.ask(other, &["GET", "k"]);
    assert_eq!(bench.heard(node), "");
    bench.ask(operator, &["CLIENT", "UNPAUSE"]);
    bench.wait(2_000);
    bench.turn(|_| ());
    assert_eq!(requests(&bench.heard(node)), ["SET k 2", "GET k"]);
}

/// A client that takes no reply is not held back by its own queries, so none is put to the workers for it.
#[test]
fn what_only_shows_something_is_not_made_for_who_takes_no_reply() {
    let mut bench = Bench::<NoEngine>::of_many(Config { allows_admin: true, ..config(1, 1) }, 4, Arc::default());
    let client = bench.accept();
    for shows in [&["CLIENT", "LIST"][..], &["PROXY", "SHOW", "CLIENTS"], &["PROXY", "SLOWLOG", "GET"]] {
        bench.ask(client, &["CLIENT", "REPLY", "OFF"]);
        bench.posted.clear();
        bench.ask(client, shows);
        assert_eq!(bench.posted.len(), 0, "{shows:?}");
        bench.ask(client, &["CLIENT", "REPLY", "ON"]);
        bench.ask(client, shows);
        assert_eq!(bench.posted.len(), 3, "{shows:?}");
        bench.wait(10_000_000);
        bench.turn(|_| ());
        bench.turn(|_| ());
        bench.heard(client);
    }
    bench.ask(client, &["CLIENT", "REPLY", "OFF"]);
    bench.posted.clear();
    bench.ask(client, &["PROXY", "SLOWLOG", "RESET"]);
    assert_eq!(bench.posted.len(), 3, "it does something");
}

/// Clients that ask for it when they connect do not fail while a node is moved.
#[test]
fn a_paused_node_is_not_asked_for_its_commands() {
    let mut bench = Bench::proxy(config(1, 1));
    let client = bench.accept();
    for words in [&["PROXY", "PAUSE"][..], &["PROXY", "PAUSE", "node-0"]] {
        assert_eq!(bench.answer(client, words), "+OK\r\n");
        let count = bench.answer(client, &["COMMAND", "COUNT"]);
        assert!(count.starts_with(':'), "{words:?}: {count}");
        assert!(bench.who_heard("COMMAND COUNT").is_none());
        assert_eq!(bench.answer(client, &["PROXY", "RESUME"]), "+OK\r\n");
    }
    bench.ask(client, &["COMMAND", "COUNT"]);
    bench.connect();
    assert!(bench.who_heard("COMMAND COUNT").is_some());
}

#[test]
fn no_password_of_a_node_is_set_by_naming_the_node() {
    let mut bench = Bench::proxy(config(1, 1));
    let client = bench.accept();
    for words in [&["requirepass", "x"][..], &["maxmemory", "1", "RequirePass", "x"]] {
        let told = bench.answer(client, &[&["PROXY", "NODE", "node-0", "CONFIG", "SET"], words].concat());
        assert!(told.starts_with("-ERR the password of a node is not set through the proxy"), "{words:?}: {told}");
    }
    bench.ask(client, &["PROXY", "NODE", "node-0", "CONFIG", "SET", "maxmemory", "1"]);
    bench.connect();
    assert!(bench.who_heard("CONFIG SET maxmemory 1").is_some());
}
