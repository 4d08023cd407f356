//! Other nodes are configured while replies are outstanding: nothing overtakes what was asked before.

use crate::bench::{Bench, requests, users};
use crate::support::config;
use respool_connection::{ConnId, Credentials, Endpoint, Machine, Service};
use respool_proxy::{Config, LaneLimits, Mail, PoolMode, UserLimits, Worker};
use respool_route::{Node, Pool, Routes, Scheme, Topology};
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
fn nothing_is_overtaken_on_the_way_to_a_renamed_node() {
    set_and_get(|| config(1, 1), &[]);
}

#[test]
fn nor_one_that_is_under_way_to_the_node_that_had_its_key() {
    let base = || config(2, 1);
    let mut bench = Bench::proxy(base());
    let client = bench.accept();
    bench.ask(client, &["SET", "key", "1"]);
    bench.connect();
    let (old, _) = bench.who_heard("SET key 1").expect("it was sent");
    // The same two servers with exchanged places: each has the keys of the other.
    let mut turned = base();
    turned.nodes.reverse();
    let names = turned.nodes.iter().map(|node| Node::new(&node.name)).collect();
    turned.topology = Arc::new(Topology::new(Scheme::default(), names).unwrap());
    turned.routes = Arc::new(Routes::plain(Pool::plain("main", Arc::clone(&turned.topology))));
    bench.turn(|worker| worker.handle_mail(Mail::Reload(Arc::new(turned))));
    bench.ask(client, &["GET", "key"]);
    bench.connect();
    assert!(!all_asked(&mut bench).iter().any(|request| request == "GET key"), "it would overtake the SET");
    bench.send(old, b"+OK\r\n");
    bench.turn(|_| ());
    bench.connect();
    let (new, _) = bench.who_heard("GET key").expect("now it may");
    assert_ne!(bench.node_of(new), bench.node_of(old));
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

#[test]
fn nor_where_nodes_know_the_client_by_another_name_now() {
    let named = |name: Option<&str>| UserLimits {
        node_credentials: name
            .map(|name| Arc::new(Credentials { username: Some(name.to_owned()), password: "there".to_owned().into() })),
        ..UserLimits::default()
    };
    let changes = [(None, Some("one")), (Some("one"), Some("two")), (Some("one"), None)];
    for (mode, (before, after)) in
        [PoolMode::Multiplex, PoolMode::Session].into_iter().flat_map(|m| changes.map(|c| (m, c)))
    {
        let access = users(&[("ann", named(before))]);
        let mut bench = Bench::of_many(in_mode(mode), 1, Arc::clone(&access));
        let client = bench.accept();
        assert_eq!(bench.answer(client, &["AUTH", "ann", "secret"]), "+OK\r\n");
        bench.ask(client, &["SET", "key", "1"]);
        bench.connect();
        let (old, _) = bench.who_heard("SET key 1").expect("it was sent");
        access.set_limits([(b"ann".as_slice().into(), named(after))].into_iter());
        bench.turn(|worker| worker.handle_mail(Mail::Reload(Arc::new(in_mode(mode)))));
        bench.ask(client, &["GET", "key"]);
        bench.connect();
        assert!(bench.who_heard("GET key").is_none(), "it would overtake the SET");
        assert_eq!(bench.heard(client), "", "nothing is lost");
        bench.send(old, b"+OK\r\n");
        assert_eq!(bench.heard(client), "+OK\r\n");
        bench.wait(10_000);
        bench.turn(|_| ());
        bench.connect();
        assert!(bench.who_heard("GET key").is_some_and(|(conn, _)| conn != old), "now it may");
    }
}

/// Pool mode `session` begins or ends.
fn in_mode(mode: PoolMode) -> Config {
    Config { lanes: LaneLimits { mode, ..LaneLimits::default() }, ..config(1, 1) }
}

#[test]
fn a_former_own_connection_is_lent_to_one_client_at_a_time() {
    let mut bench = Bench::proxy(in_mode(PoolMode::Session));
    let [first, second, third] = [bench.accept(), bench.accept(), bench.accept()];
    bench.ask(first, &["WATCH", "key"]);
    let own = bench.connect()[0];
    bench.send(own, b"+OK\r\n");
    bench.ask(first, &["UNWATCH"]);
    // The node acknowledges; in the same turn the client goes, and with it what made the connection its own.
    bench.turn(|worker| {
        let buffer = worker.read_buffer(own).expect("it is read");
        buffer[..5].copy_from_slice(b"+OK\r\n");
        worker.handle_read(own, 5);
        worker.handle_broken(first, "gone");
    });
    bench.turn(|worker| worker.handle_mail(Mail::Reload(Arc::new(in_mode(PoolMode::Transaction)))));
    bench.heard(own);
    bench.ask(second, &["WATCH", "key"]);
    bench.ask(third, &["WATCH", "other"]);
    assert_eq!(requests(&bench.heard(own)), ["WATCH key"]);
    assert_eq!(bench.connect().len(), 1, "the other is given another");
}

#[test]
fn a_large_reply_of_a_renamed_node_is_read_on() {
    let settings = || Config {
        budgets: respool_proxy::Budgets { client_output_soft: 1_000, ..config(1, 1).budgets },
        ..in_mode(PoolMode::Session)
    };
    for is_gone in [false, true] {
        let mut bench = Bench::proxy(settings());
        let client = bench.accept();
        bench.ask(client, &["GET", "key"]);
        let own = bench.connect()[0];
        let large = [b"$200000\r\n".as_slice(), &[b'v'; 200_000], b"\r\n"].concat();
        let mut rest = large.as_slice();
        // It is more than the client may have unread; what it takes leaves only with the next turn.
        bench.turn(|worker| {
            read(worker, own, &mut rest);
            assert!(!rest.is_empty(), "it waits for its reader");
            worker.handle_mail(Mail::Reload(Arc::new(renamed(settings()))));
            if is_gone {
                worker.handle_broken(client, "gone");
            }
        });
        for _ in 0..100 {
            bench.turn(|worker| read(worker, own, &mut rest));
        }
        bench.wait(200_000);
        bench.turn(|_| ());
        assert!(rest.is_empty(), "{} bytes are not read", rest.len());
        assert!(bench.closed.contains(&own), "it has answered what it owed");
    }
}

/// A node's bytes are read for as long as they may be.
fn read(worker: &mut Worker<crate::NoEngine>, node: ConnId, bytes: &mut &[u8]) {
    while !bytes.is_empty()
        && let Some(buffer) = worker.read_buffer(node)
    {
        let taken = bytes.len().min(buffer.len());
        let (now, later) = bytes.split_at(taken);
        buffer[..taken].copy_from_slice(now);
        *bytes = later;
        worker.handle_read(node, taken);
    }
}

/// The only node is another server.
fn moved(base: Config) -> Config {
    let mut nodes = base.nodes.clone();
    nodes.iter_mut().for_each(|node| node.endpoint = Arc::new(Endpoint::Embedded { index: 7 }));
    Config { nodes, ..base }
}

#[test]
fn what_a_half_closed_client_waits_for_is_asked_anew() {
    let mut bench = Bench::proxy(config(1, 1));
    let client = bench.accept();
    bench.ask(client, &["BLPOP", "key", "0"]);
    bench.turn(|worker| worker.handle_ended(client));
    bench.turn(|worker| worker.handle_mail(Mail::Reload(Arc::new(moved(config(1, 1))))));
    let mut asked = Vec::new();
    for node in bench.connect() {
        bench.send(node, b":7\r\n");
        let is_asked = requests(&bench.heard(node)).iter().any(|request| request == "BLPOP key 0");
        asked.extend(is_asked.then(|| bench.node_of(node)));
    }
    assert_eq!(asked, [7]);
}

/// In one turn a waiting pop is served, the order to unblock it is answered, and its connection, which is stale, is closed.
#[test]
fn what_a_pop_has_taken_during_a_reload_is_its_clients() {
    for is_cut in [false, true] {
        let mut bench = Bench::proxy(config(1, 1));
        let client = bench.accept();
        bench.ask(client, &["BLPOP", "key", "0"]);
        let blocking = bench.connect()[0];
        bench.send(blocking, b":7\r\n");
        assert!(requests(&bench.heard(blocking)).contains(&"BLPOP key 0".to_owned()));
        bench.turn(|worker| worker.handle_mail(Mail::Reload(Arc::new(moved(config(1, 1))))));
        bench.connect();
        let (shared, _) = bench.who_heard("CLIENT UNBLOCK 7").expect("its old node is asked to let it go");
        bench.wait(200_000);
        bench.turn(|worker| {
            for (node, reply) in [(shared, &b":0\r\n"[..]), (blocking, b"*2\r\n$3\r\nkey\r\n$1\r\nx\r\n")] {
                worker.read_buffer(node).expect("it is read")[..reply.len()].copy_from_slice(reply);
                worker.handle_read(node, reply.len());
            }
            if is_cut {
                worker.handle_broken(blocking, "reset");
            }
        });
        assert_eq!(bench.heard(client), "*2\r\n$3\r\nkey\r\n$1\r\nx\r\n", "cut: {is_cut}");
    }
}

#[test]
fn what_is_held_back_goes_to_where_the_node_is_then() {
    for mode in PoolMode::ALL.map(|(mode, _)| mode) {
        let mut bench = Bench::proxy(in_mode(mode));
        let (operator, client) = (bench.accept(), bench.accept());
        bench.ask(client, &["GET", "key"]);
        let old = bench.connect()[0];
        bench.send(old, b"$-1\r\n");
        bench.heard(old);
        assert_eq!(bench.answer(operator, &["PROXY", "PAUSE", "node-0"]), "+OK\r\n");
        bench.ask(client, &["SET", "key", "1"]);
        bench.turn(|worker| worker.handle_mail(Mail::Reload(Arc::new(moved(in_mode(mode))))));
        assert_eq!((bench.connect(), bench.heard(old)), (Vec::new(), String::new()), "the pause holds");
        assert_eq!(bench.answer(operator, &["PROXY", "RESUME", "node-0"]), "+OK\r\n");
        bench.connect();
        let (new, _) = bench.who_heard("SET key 1").expect("it is sent");
        assert_eq!(bench.node_of(new), 7);
    }
}

/// A transaction with a key of this node, which has not been seen to take MULTI yet.
fn begin_on(bench: &mut Bench<crate::NoEngine>, client: ConnId, name: &str) -> (ConnId, String) {
    let keys = (0..20).map(|number| format!("k{number}"));
    let mut is_its = |key: &String| bench.answer(client, &["PROXY", "EXPLAIN", "GET", key]).contains(name);
    let key = keys.into_iter().find(&mut is_its).expect("one of twenty is");
    bench.ask(client, &["GET", &key]);
    let node = bench.connect()[0];
    bench.send(node, b"$-1\r\n");
    bench.heard(node);
    for words in [&["MULTI"][..], &["SET", &key, "1"], &["EXEC"]] {
        bench.ask(client, words);
    }
    bench.heard(client);
    bench.wait(2_000);
    bench.turn(|_| ());
    assert_eq!(requests(&bench.heard(node)), ["MULTI", "EXEC"], "it is tried");
    (node, key)
}

#[test]
fn a_block_that_waits_to_be_sent_follows_its_node() {
    for mode in [PoolMode::Multiplex, PoolMode::Session] {
        let mut bench = Bench::proxy(in_mode(mode));
        let client = bench.accept();
        let (old, key) = begin_on(&mut bench, client, "node-0");
        bench.turn(|worker| worker.handle_mail(Mail::Reload(Arc::new(moved(in_mode(mode))))));
        bench.send(old, b"+OK\r\n*0\r\n");
        assert_eq!(bench.heard(old), "", "{mode:?}: it is sent nothing more");
        let new = bench.connect()[0];
        assert_eq!(requests(&bench.heard(new)), ["MULTI".to_owned(), format!("SET {key} 1"), "EXEC".to_owned()]);
        assert_eq!(bench.node_of(new), 7);
        bench.send(new, b"+OK\r\n+QUEUED\r\n*1\r\n+OK\r\n");
        assert_eq!(bench.heard(client), "*1\r\n+OK\r\n");
    }
}

#[test]
fn a_block_that_has_a_connection_to_itself_goes_with_it() {
    let mut bench = Bench::proxy(in_mode(PoolMode::Session));
    let client = bench.accept();
    bench.ask(client, &["GET", "key"]);
    let old = bench.connect()[0];
    bench.send(old, b"$-1\r\n");
    bench.heard(old);
    // A database inside of it has it run where nothing else does.
    for words in [&["MULTI"][..], &["SELECT", "1"], &["SET", "key", "1"], &["EXEC"]] {
        bench.ask(client, words);
    }
    bench.heard(client);
    assert_eq!(requests(&bench.heard(old)), ["MULTI", "EXEC"], "it is tried");
    bench.turn(|worker| worker.handle_mail(Mail::Reload(Arc::new(moved(in_mode(PoolMode::Session))))));
    bench.send(old, b"+OK\r\n*0\r\n");
    assert_eq!((bench.heard(old), bench.connect()), (String::new(), Vec::new()), "it is sent nothing more");
    assert!(bench.heard(client).starts_with("-ERR the nodes were changed meanwhile"));
}

#[test]
fn a_block_whose_node_has_gone_is_sent_nowhere() {
    let mut bench = Bench::proxy(config(2, 1));
    let client = bench.accept();
    let (old, _) = begin_on(&mut bench, client, "node-1");
    bench.turn(|worker| worker.handle_mail(Mail::Reload(Arc::new(config(1, 1)))));
    bench.send(old, b"+OK\r\n*0\r\n");
    assert_eq!((bench.heard(old), bench.connect()), (String::new(), Vec::new()));
    assert!(bench.heard(client).starts_with("-ERR the nodes were changed meanwhile"));
}

#[test]
fn what_an_old_node_lacked_is_looked_for_at_the_new_one() {
    let lanes = LaneLimits { blocking_max: 1, ..LaneLimits::default() };
    let mut bench = Bench::proxy(Config { lanes, ..config(1, 1) });
    let [first, second] = [bench.accept(), bench.accept()];
    bench.ask(first, &["BLPOP", "other", "0"]);
    let blocking = bench.connect()[0];
    assert_eq!(requests(&bench.heard(blocking)), ["CLIENT ID"]);
    bench.send(blocking, b":7\r\n");
    assert_eq!(requests(&bench.heard(blocking)), ["BLPOP other 0"]);
    bench.ask(second, &["BLPOP", "key", "1"]);
    let look = bench.connect()[0];
    for _ in 0..2 {
        bench.wait(4_000);
        bench.turn(|_| ());
    }
    assert!(requests(&bench.heard(look)).contains(&"BLPOP key 1".to_owned()), "it is tried");
    bench.send(look, b"+OK\r\n+QUEUED\r\n*1\r\n*-1\r\n");
    // Its timeout ends while a connection to the new server is being dialled.
    bench.wait(850_000);
    bench.turn(|worker| worker.handle_mail(Mail::Reload(Arc::new(moved(Config { lanes, ..config(1, 1) })))));
    bench.wait(200_000);
    bench.turn(|_| ());
    assert_eq!(bench.heard(second), "", "the new place has not been asked");
    let mut asked = 0;
    for node in bench.connect() {
        bench.send(node, b":7\r\n");
        let heard = requests(&bench.heard(node));
        if heard.iter().any(|request| request.starts_with("BLPOP key")) {
            assert_eq!(bench.node_of(node), 7);
            bench.send(node, b"*2\r\n$3\r\nkey\r\n$1\r\nx\r\n");
            asked += 1;
        }
    }
    assert_eq!((asked, bench.heard(second).as_str()), (1, "*2\r\n$3\r\nkey\r\n$1\r\nx\r\n"));
}

/// Settings with this password for the nodes.
fn entered(base: Config, password: &str) -> Config {
    let mut nodes = base.nodes.clone();
    let credentials = Arc::new(Credentials { username: None, password: password.to_owned().into() });
    nodes.iter_mut().for_each(|node| node.credentials = Some(Arc::clone(&credentials)));
    Config { nodes, ..base }
}

/// Lets the backoff pass unless a dial is under way.
fn await_dial(bench: &mut Bench<crate::NoEngine>) {
    if bench.dialling.is_empty() {
        bench.wait(2_000_000);
        bench.turn(|_| ());
    }
}

/// A client is served on an old connection after the failed dial of a new one.
fn is_served_on(bench: &mut Bench<crate::NoEngine>, client: ConnId, old: ConnId, mode: PoolMode) {
    bench.ask(client, &["GET", "key"]);
    let mut asked = requests(&bench.heard(old));
    assert_eq!(asked.pop().as_deref(), Some("GET key"), "{mode:?}");
    // After a failed dial the node is sent a PING.
    asked.iter().for_each(|_| bench.send(old, b"+PONG\r\n"));
    bench.send(old, b"$1\r\n1\r\n");
    assert_eq!(bench.heard(client), "$1\r\n1\r\n");
}

/// Lets dials succeed for some seconds, while PINGs on the old connection are answered.
fn let_dials_succeed(bench: &mut Bench<crate::NoEngine>, old: ConnId) {
    for _ in 0..5 {
        bench.wait(500_000);
        bench.turn(|_| ());
        bench.connect();
        let pings = requests(&bench.heard(old)).len();
        (0..pings).for_each(|_| bench.send(old, b"+PONG\r\n"));
    }
}

#[test]
fn connections_are_used_until_new_credentials_are_accepted() {
    for mode in PoolMode::ALL.map(|(mode, _)| mode) {
        let reload = |bench: &mut Bench<crate::NoEngine>, password: &str| {
            let config = Arc::new(entered(in_mode(mode), password));
            bench.turn(|worker| worker.handle_mail(Mail::Reload(config)));
        };
        let mut bench = Bench::proxy(entered(in_mode(mode), "one"));
        let client = bench.accept();
        bench.ask(client, &["SET", "key", "1"]);
        let old = bench.connect()[0];
        bench.heard(old);
        // Outstanding requests are answered on the old connection.
        reload(&mut bench, "two");
        bench.send(old, b"+OK\r\n");
        assert_eq!(bench.heard(client), "+OK\r\n", "{mode:?}");
        for _ in 0..3 {
            await_dial(&mut bench);
            let new = bench.dialling.pop().expect("the new ones are tried");
            bench.dialling.clear();
            bench.nodes.push(new);
            bench.turn(|worker| worker.handle_connected(new));
            assert_eq!(requests(&bench.heard(new)), ["AUTH two"]);
            bench.send(new, b"-WRONGPASS invalid username-password pair\r\n");
            is_served_on(&mut bench, client, old, mode);
        }
        assert!(!bench.closed.contains(&old));
        reload(&mut bench, "three");
        let_dials_succeed(&mut bench, old);
        assert!(bench.closed.contains(&old), "{mode:?}: it is not needed any more");
        bench.ask(client, &["GET", "key"]);
        bench.connect();
        let (_, said) = bench.who_heard("GET key").expect("it is sent");
        assert!(said.contains("AUTH three"), "{mode:?}: {said}");
    }
}

#[test]
fn an_unconnected_lane_is_entered_with_the_latest_credentials() {
    let mut bench = Bench::proxy(entered(config(1, 1), "one"));
    let client = bench.accept();
    bench.ask(client, &["GET", "key"]);
    let config = Arc::new(entered(config(1, 1), "two"));
    bench.turn(|worker| worker.handle_mail(Mail::Reload(config)));
    for _ in 0..3 {
        bench.connect();
        bench.wait(10_000);
        bench.turn(|_| ());
    }
    let (_, said) = bench.who_heard("GET key").expect("it is sent");
    assert!(said.contains("AUTH two"), "{said}");
}

#[test]
fn a_node_that_has_moved_is_followed_once_it_is_there() {
    for mode in PoolMode::ALL.map(|(mode, _)| mode) {
        let mut bench = Bench::proxy(in_mode(mode));
        let client = bench.accept();
        bench.ask(client, &["SET", "key", "1"]);
        let old = bench.connect()[0];
        bench.heard(old);
        bench.turn(|worker| worker.handle_moved(old, "10.0.0.2:1"));
        bench.send(old, b"+OK\r\n");
        assert_eq!(bench.heard(client), "+OK\r\n", "{mode:?}: what is owed is answered");
        for _ in 0..3 {
            await_dial(&mut bench);
            assert!(!bench.dialling.is_empty(), "{mode:?}: the new place is tried");
            bench.refuse_dials();
            is_served_on(&mut bench, client, old, mode);
        }
        let_dials_succeed(&mut bench, old);
        assert!(bench.closed.contains(&old), "{mode:?}: it is there");
        bench.ask(client, &["GET", "key"]);
        bench.connect();
        assert!(bench.who_heard("GET key").is_some(), "{mode:?}");
    }
}

#[test]
fn a_refusal_of_credentials_that_were_replaced_says_nothing() {
    let mut bench = Bench::proxy(entered(in_mode(PoolMode::Session), "wrong"));
    let client = bench.accept();
    bench.ask(client, &["GET", "key"]);
    let late = bench.dialling.pop().expect("the client has a connection of its own");
    bench.nodes.push(late);
    bench.turn(|worker| worker.handle_connected(late));
    assert_eq!(requests(&bench.heard(late)), ["AUTH wrong"]);
    bench.wait(10);
    let config = Arc::new(entered(in_mode(PoolMode::Session), "right"));
    bench.turn(|worker| worker.handle_mail(Mail::Reload(config)));
    bench.send(late, b"-WRONGPASS invalid username-password pair\r\n");
    assert_eq!(bench.shared.sum(|c| c.nodes_ejected.value()), 0);
    // The node is dialled without backoff.
    let other = bench.accept();
    bench.ask(other, &["GET", "key"]);
    bench.connect();
    let (_, said) = bench.who_heard("GET key").expect("it is sent");
    assert!(said.contains("AUTH right"), "{said}");
}

/// A client listens to a channel of the only node, over this connection.
fn subscribed() -> (Bench<crate::NoEngine>, ConnId, ConnId) {
    let mut bench = Bench::proxy(entered(config(1, 1), "one"));
    let client = bench.accept();
    bench.ask(client, &["GET", "key"]);
    let shared = bench.connect()[0];
    bench.send(shared, b"$-1\r\n");
    bench.ask(client, &["SUBSCRIBE", "news"]);
    bench.connect();
    let (push, _) = bench.who_heard("subscribe news").expect("the node is told");
    bench.send(push, b">3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n");
    bench.heard(client);
    let config = Arc::new(entered(config(1, 1), "two"));
    bench.turn(|worker| worker.handle_mail(Mail::Reload(config)));
    // The node lets the new ones in.
    while bench.dialling.is_empty() {
        bench.wait(10_000);
        bench.turn(|_| ());
    }
    bench.connect();
    bench.turn(|_| ());
    (bench, client, push)
}

const MESSAGE: &[u8] = b">3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$1\r\nx\r\n";

#[test]
fn messages_come_until_the_renewed_connection_is_ready() {
    let (mut bench, client, push) = subscribed();
    assert!(!bench.closed.contains(&push), "nothing else brings them");
    bench.send(push, MESSAGE);
    assert!(bench.heard(client).contains("message"));
    for _ in 0..3 {
        bench.wait(500_000);
        bench.turn(|_| ());
        bench.connect();
    }
    assert!(bench.closed.contains(&push));
    let (new, greeting) = bench.who_heard("subscribe news").expect("the successor is told");
    assert!(greeting.contains("AUTH") && greeting.contains("two"), "{greeting}");
    bench.send(new, b">3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n");
    bench.send(new, MESSAGE);
    assert!(bench.heard(client).contains("message"));
    bench.cut(new);
    for _ in 0..5 {
        bench.wait(500_000);
        bench.turn(|_| ());
        bench.connect();
    }
    assert!(bench.who_heard("subscribe news").is_some(), "one that is lost is made again");
}

#[test]
fn a_successor_that_is_refused_costs_no_message() {
    let (mut bench, client, push) = subscribed();
    for _ in 0..5 {
        bench.wait(1_100_000);
        bench.turn(|_| ());
        bench.refuse_dials();
        bench.send(push, MESSAGE);
        assert!(bench.heard(client).contains("message"));
    }
    assert!(!bench.closed.contains(&push));
    // Nothing of it is left when the nodes are others.
    let config = Arc::new(renamed(entered(config(1, 1), "two")));
    bench.wait(1_100_000);
    bench.turn(|worker| worker.handle_mail(Mail::Reload(config)));
    bench.connect();
    assert!(bench.who_heard("subscribe news").is_some_and(|(conn, _)| conn != push));
}

/// The node of the only dial is asked for a password. Gives the connection.
fn login(bench: &mut Bench<crate::NoEngine>, password: &str, accepts: bool) -> ConnId {
    for _ in 0..300 {
        if bench.dialling.is_empty() {
            bench.wait(10_000);
            bench.turn(|_| ());
        }
    }
    let conn = bench.dialling.pop().expect("the node is dialled");
    assert!(bench.dialling.is_empty());
    bench.nodes.push(conn);
    bench.heard(conn);
    bench.turn(|worker| worker.handle_connected(conn));
    assert_eq!(requests(&bench.heard(conn)), [format!("AUTH {password}")]);
    match accepts {
        true => {
            bench.send(conn, b"+OK\r\n");
            bench.heard(conn);
            bench.send(conn, b"+PONG\r\n");
        }
        false => bench.send(conn, b"-WRONGPASS invalid username-password pair\r\n"),
    }
    conn
}

#[test]
fn where_no_connection_stands_the_former_credentials_are_used() {
    let mut bench = Bench::proxy(entered(config(1, 1), "one"));
    let client = bench.accept();
    let reload = |bench: &mut Bench<crate::NoEngine>, password: &str| {
        let config = Arc::new(entered(config(1, 1), password));
        bench.turn(|worker| worker.handle_mail(Mail::Reload(config)));
    };
    reload(&mut bench, "two");
    bench.ask(client, &["GET", "key"]);
    login(&mut bench, "two", false);
    let shared = login(&mut bench, "one", true);
    assert_eq!(requests(&bench.heard(shared)), ["GET key"], "nothing is lost");
    bench.send(shared, b"$1\r\n1\r\n");
    assert_eq!(bench.heard(client), "$1\r\n1\r\n");
    assert_eq!(bench.shared.sum(|c| c.nodes_ejected.value()), 0);
    // What one client needs is dialled in the same way.
    bench.ask(client, &["WATCH", "key"]);
    let own = login(&mut bench, "one", true);
    assert!(bench.take_multi(own));
    bench.send(own, b"+OK\r\n");
    assert_eq!(bench.heard(client), "+OK\r\n");
    // The new ones are tried until the node accepts them.
    login(&mut bench, "two", false);
    let new = login(&mut bench, "two", true);
    // It was asked whether it is there.
    requests(&bench.heard(shared)).iter().for_each(|_| bench.send(shared, b"+PONG\r\n"));
    bench.wait(200_000);
    bench.turn(|_| ());
    assert!(!bench.nodes.contains(&shared));
    bench.ask(client, &["GET", "key"]);
    assert!(requests(&bench.heard(new)).contains(&"GET key".to_owned()));
    bench.send(new, b"$1\r\n1\r\n");
    bench.ask(client, &["UNWATCH"]);
    bench.send(own, b"+OK\r\n");
    assert!(!bench.nodes.contains(&own), "it is not kept for others");
    bench.cut(new);
    bench.ask(client, &["GET", "key"]);
    login(&mut bench, "two", true);
}

/// A client has asked after a reload with other credentials, which the node has refused.
fn refuse_new_credentials() -> (Bench<crate::NoEngine>, ConnId) {
    let mut bench = Bench::proxy(entered(config(1, 1), "one"));
    let client = bench.accept();
    let config = Arc::new(entered(config(1, 1), "two"));
    bench.turn(|worker| worker.handle_mail(Mail::Reload(config)));
    bench.ask(client, &["GET", "key"]);
    login(&mut bench, "two", false);
    (bench, client)
}

#[test]
fn former_credentials_that_are_refused_are_not_tried_again() {
    let (mut bench, client) = refuse_new_credentials();
    login(&mut bench, "one", false);
    assert!(bench.heard(client).contains("WRONGPASS"));
    assert_eq!(bench.shared.sum(|c| c.nodes_ejected.value()), 1, "it is out, as it would be without a reload");
    assert!(bench.dialling.is_empty(), "after a pause");
    for _ in 0..3 {
        login(&mut bench, "two", false);
    }
}

#[test]
fn a_refused_successor_is_no_evidence_though_all_is_lost() {
    let (mut bench, client) = refuse_new_credentials();
    let shared = login(&mut bench, "one", true);
    bench.send(shared, b"$-1\r\n");
    while bench.dialling.is_empty() {
        bench.wait(10_000);
        bench.turn(|_| ());
    }
    let successor = bench.dialling.remove(0);
    bench.nodes.push(successor);
    bench.turn(|worker| worker.handle_connected(successor));
    assert_eq!(requests(&bench.heard(successor)), ["AUTH two"]);
    bench.cut(shared);
    bench.send(successor, b"-WRONGPASS invalid username-password pair\r\n");
    assert_eq!(bench.shared.sum(|c| c.nodes_ejected.value()), 0);
    bench.heard(client);
    bench.ask(client, &["GET", "key"]);
    let again = login(&mut bench, "one", true);
    assert_eq!(requests(&bench.heard(again)), ["GET key"]);
}
