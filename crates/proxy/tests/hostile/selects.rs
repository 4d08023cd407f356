//! `SELECT`, `AUTH` and `HELLO` that cannot be done: what follows never runs in another database, as another user or in
//! another dialect than was asked for.

use crate::NoEngine;
use crate::bench::{Bench, request, requests, users};
use crate::support::config;
use respool_connection::{ConnId, Credentials, DialFailure, Machine, Service};
use respool_proxy::{Config, LaneLimits, Mail, PoolMode, UserLimits, limits};
use respool_route::{NodePlace, Pool, Reads, Rewrite, Route, Routes, When};
use std::sync::Arc;

const NO_DATABASE: &str = "-ERR no database is selected since the last SELECT could not be done: SELECT again, RESET or \
     reconnect; the command was not sent\r\n";
const OUT_OF_RANGE: &str = "-ERR DB index is out of range\r\n";

/// A proxy that does not know of itself how many databases its nodes have.
fn unknowing(nodes: usize) -> Bench<NoEngine> {
    Bench::proxy(Config { databases: 1, ..config(nodes, 1) })
}

/// All dials succeed, and nodes answer so when they are told to select a database.
fn connect_and(bench: &mut Bench<NoEngine>, select: &str) -> Vec<usize> {
    let dialled = std::mem::take(&mut bench.dialling);
    for conn in &dialled {
        bench.nodes.push(*conn);
        bench.turn(|worker| worker.handle_connected(*conn));
        bench.heard(*conn);
        bench.send(*conn, select.as_bytes());
        if select == "+OK\r\n" {
            bench.heard(*conn);
            bench.send(*conn, b"+PONG\r\n");
        }
    }
    dialled.into_iter().map(|conn| bench.node_of(conn)).collect()
}

/// A pipeline, and all that it is answered at once.
fn pipeline(bench: &mut Bench<NoEngine>, client: ConnId, words: &[&[&str]]) -> String {
    let all: Vec<u8> = words.iter().flat_map(|words| request(words)).collect();
    bench.send(client, &all);
    bench.heard(client)
}

fn all_asked(bench: &mut Bench<NoEngine>) -> Vec<String> {
    bench.nodes.clone().into_iter().flat_map(|node| requests(&bench.heard(node))).collect()
}

#[test]
fn a_database_that_is_known_is_no_question_to_a_node() {
    let mut bench = unknowing(2);
    let (first, second) = (bench.accept(), bench.accept());
    bench.ask(first, &["SELECT", "3"]);
    connect_and(&mut bench, "+OK\r\n");
    assert_eq!(bench.heard(first), "+OK\r\n");
    let conn = bench.nodes[0];
    bench.turn(|worker| worker.handle_broken(conn, "reset"));
    bench.refuse_dials();
    // Three is known, and so is what lies below; in whatever dialect.
    for number in ["3", "2"] {
        assert_eq!(bench.answer(second, &["SELECT", number]), "+OK\r\n");
    }
    assert!(bench.answer(second, &["HELLO", "3"]).starts_with('%'));
    assert_eq!(bench.answer(second, &["SELECT", "1"]), "+OK\r\n");
    assert!(bench.dialling.is_empty(), "no node was asked");
}

#[test]
fn another_node_is_asked_for_a_database_when_one_is_down() {
    let mut bench = unknowing(3);
    let client = bench.accept();
    bench.ask(client, &["SELECT", "3"]);
    assert_eq!(bench.node_of(bench.dialling[0]), 0);
    bench.refuse_dials();
    // The next one is there and can say nothing.
    assert_eq!(connect_and(&mut bench, "-LOADING Redis is loading the dataset in memory\r\n"), [1]);
    assert_eq!(connect_and(&mut bench, "+OK\r\n"), [2]);
    assert_eq!(bench.heard(client), "+OK\r\n");
}

#[test]
fn nothing_runs_behind_a_select_that_could_not_be_done() {
    let mut bench = unknowing(1);
    let (client, other) = (bench.accept(), bench.accept());
    bench.ask(other, &["GET", "k"]);
    let node = bench.connect()[0];
    bench.send(node, b"$-1\r\n");
    bench.heard(node);
    let block: &[&[&str]] =
        &[&["SELECT", "3"], &["SET", "k", "v"], &["MULTI"], &["SET", "k", "v"], &["EXEC"], &["PING"]];
    pipeline(&mut bench, client, block);
    bench.refuse_dials();
    let heard = bench.heard(client);
    let lines: Vec<&str> = heard.split_inclusive("\r\n").collect();
    assert!(lines[0].starts_with("-ERR node node-0 is not available"), "{heard}");
    let aborted = "-EXECABORT Transaction discarded because of previous errors.\r\n";
    assert_eq!(lines[1..], [NO_DATABASE, "+OK\r\n", NO_DATABASE, aborted, "+PONG\r\n"], "{heard}");
    for words in
        [&["WATCH", "k"][..], &["DBSIZE"], &["EVAL", "return 1", "0"], &["BLPOP", "k", "0"], &["PUBLISH", "c", "m"]]
    {
        assert_eq!(bench.answer(client, words), NO_DATABASE, "{words:?}");
    }
    // A refusal that any server would give does not help.
    assert_eq!(bench.answer(client, &["SELECT", "-1"]), OUT_OF_RANGE);
    assert_eq!(bench.answer(client, &["GET", "k"]), NO_DATABASE);
    assert!(all_asked(&mut bench).is_empty(), "the node has heard of nothing");
    // The one that it is in will do, too.
    assert_eq!(bench.answer(client, &["SELECT", "0"]), "+OK\r\n");
    bench.ask(client, &["SET", "k", "v"]);
    assert_eq!(all_asked(&mut bench), ["SET k v"]);
}

#[test]
fn a_large_request_does_not_slip_past_a_refused_select() {
    let mut bench = unknowing(1);
    let client = bench.accept();
    bench.ask(client, &["SELECT", "3"]);
    bench.refuse_dials();
    bench.heard(client);
    let value = "x".repeat(2 << 20);
    bench.wait(1_000_000);
    for part in request(&["SET", "k", &value]).chunks(100_000) {
        bench.send(client, part);
    }
    assert_eq!(bench.heard(client), NO_DATABASE);
}

#[test]
fn a_database_that_is_not_there_leaves_a_client_where_it_was() {
    let mut bench = unknowing(2);
    let client = bench.accept();
    bench.ask(client, &["SELECT", "99"]);
    connect_and(&mut bench, OUT_OF_RANGE);
    assert_eq!(bench.heard(client), OUT_OF_RANGE);
    assert!(bench.dialling.is_empty(), "one node's word is enough");
    bench.ask(client, &["SET", "k", "v"]);
    bench.connect();
    let (_, greeting) = bench.who_heard("SET k v").expect("it is sent, as by a server");
    assert_eq!(greeting, "PING");
}

#[test]
fn who_wants_no_replies_gets_none_to_a_select_that_waits() {
    for (word, behind) in [("OFF", ""), ("SKIP", "+PONG\r\n")] {
        let mut bench = unknowing(1);
        let client = bench.accept();
        pipeline(&mut bench, client, &[&["CLIENT", "REPLY", word], &["SELECT", "3"], &["PING"]]);
        connect_and(&mut bench, "+OK\r\n");
        assert_eq!(bench.heard(client), behind, "{word}");
    }
}

#[test]
fn the_nodes_that_routes_lead_to_are_asked_for_a_database() {
    let mut config = Config { databases: 1, ..config(2, 1) };
    let names = ["node-0", "node-1"];
    let pool = |first: usize| {
        let node = respool_route::Node::new(names[first]);
        let topology = respool_route::Topology::new(respool_route::Scheme::default(), vec![node]).expect("one node");
        Pool { first: NodePlace::new(first), ..Pool::plain(["main", "other"][first], Arc::new(topology)) }
    };
    let route = Route {
        name: "third".into(),
        when: When { databases: [3].into(), ..When::default() },
        pool: 1,
        rewrite: Rewrite::default(),
        reads: Reads::Primary,
        dead_node: None,
        pool_mode: None,
    };
    let (main, other) = (pool(0), pool(1));
    config.topology = Arc::clone(&main.topology);
    config.routes = Arc::new(Routes::new(vec![main, other], vec![route]).expect("they fit"));
    let mut bench = Bench::proxy(config);
    let client = bench.accept();
    bench.ask(client, &["SELECT", "3"]);
    assert_eq!(connect_and(&mut bench, "+OK\r\n"), [1]);
    assert_eq!(bench.heard(client), "+OK\r\n");
}

#[test]
fn a_lost_transaction_that_selects_leaves_no_database() {
    let mut bench = unknowing(1);
    let client = bench.accept();
    let block: &[&[&str]] = &[&["MULTI"], &["SELECT", "3"], &["SET", "k", "v"], &["EXEC"], &["SET", "k", "zero"]];
    pipeline(&mut bench, client, block);
    bench.refuse_dials();
    let heard = bench.heard(client);
    assert!(heard.ends_with(NO_DATABASE) && heard.contains("-ERR node node-0 is not available"), "{heard}");
    assert_eq!(bench.answer(client, &["RESET"]), "+RESET\r\n");
    assert!(bench.answer(client, &["GET", "k"]).contains("node node-0 is not available"), "it is served again");
}

#[test]
fn a_transaction_refused_here_that_selects_leaves_no_database() {
    let mut bench = unknowing(2);
    let client = bench.accept();
    // Keys of two nodes, which a server would not mind.
    let keys: Vec<String> = (0..20).map(|number| format!("k{number}")).collect();
    bench.ask(client, &["MULTI"]);
    keys.iter().for_each(|key| bench.ask(client, &["GET", key]));
    bench.ask(client, &["SELECT", "3"]);
    assert!(bench.heard(client).contains("-CROSSSLOT"));
    assert!(bench.answer(client, &["EXEC"]).starts_with("-EXECABORT"));
    assert_eq!(bench.answer(client, &["SET", "k", "v"]), NO_DATABASE);
    // Nor would one that may be steered mind that.
    let admin = Config { allows_admin: false, ..config(1, 1) };
    let mut other = Bench::proxy(admin);
    let steers = other.accept();
    let block: &[&[&str]] = &[&["MULTI"], &["SELECT", "3"], &["CONFIG", "SET", "maxmemory", "1gb"], &["EXEC"]];
    assert!(pipeline(&mut other, steers, block).contains("-EXECABORT"));
    assert_eq!(other.answer(steers, &["SET", "k", "v"]), NO_DATABASE);
    // What a server refuses leaves the database alone, as there.
    let block: &[&[&str]] = &[&["SELECT", "0"], &["MULTI"], &["SELECT", "3"], &["GET"], &["EXEC"]];
    pipeline(&mut bench, client, block);
    bench.connect();
    bench.ask(client, &["SET", "k", "v"]);
    bench.connect();
    assert!(bench.who_heard("SET k v").is_some());
}

/// As many clients as there can be kinds of connections, each in a database of its own; the first is in number 0.
fn crowded() -> (Bench<NoEngine>, Vec<ConnId>) {
    let mut bench = Bench::proxy(Config { databases: 1_000, ..config(1, 1) });
    let clients: Vec<ConnId> = (0..limits::CLASSES_MAX).map(|_| bench.accept()).collect();
    for (number, client) in clients.iter().enumerate() {
        assert_eq!(bench.answer(*client, &["SELECT", &number.to_string()]), "+OK\r\n");
    }
    (bench, clients)
}

#[test]
fn without_room_for_a_database_nothing_runs_in_another() {
    let (mut bench, clients) = crowded();
    let refusal = "-ERR too many databases and protocols are in use at once; try again later\r\n";
    let heard = pipeline(&mut bench, clients[0], &[&["SELECT", "999"], &["SET", "k", "v"]]);
    assert_eq!(heard, [refusal, NO_DATABASE].concat());
    assert!(bench.dialling.is_empty());
    // Another gives its place up.
    assert_eq!(bench.answer(clients[7], &["RESET"]), "+RESET\r\n");
    assert_eq!(bench.answer(clients[0], &["SELECT", "999"]), "+OK\r\n");
}

#[test]
fn where_there_is_no_room_for_a_dialect_nothing_runs_in_another() {
    let (mut bench, clients) = crowded();
    let heard = pipeline(&mut bench, clients[5], &[&["HELLO", "3"], &["HGETALL", "h"], &["PING"]]);
    let words = "-ERR the protocol of the last HELLO could not be had: HELLO again, RESET or reconnect; the command was \
         not sent\r\n";
    let refusal = "-ERR too many databases and protocols are in use at once; try again later\r\n";
    assert_eq!(heard, [refusal, words, words].concat());
    assert!(bench.answer(clients[5], &["HELLO"]).starts_with('*'), "it may look");
    assert_eq!(bench.answer(clients[5], &["HGETALL", "h"]), words);
    assert!(bench.answer(clients[5], &["HELLO", "2"]).starts_with('*'));
    bench.ask(clients[5], &["HGETALL", "h"]);
    assert_eq!(bench.dialling.len(), 1, "now it is asked");
}

#[test]
fn a_refused_login_runs_nothing_as_another_user() {
    let limits = UserLimits { connections: Some(1), ..UserLimits::default() };
    let mut bench = Bench::of_many(config(1, 1), 1, users(&[("ann", limits)]));
    let (first, second) = (bench.accept(), bench.accept());
    assert_eq!(bench.answer(first, &["AUTH", "ann", "secret"]), "+OK\r\n");
    let no_user = "-NOAUTH Authentication required: the last AUTH could not be done; authenticate again, RESET or reconnect; \
         the command was not sent\r\n";
    let refusal = "-ERR max number of clients of this user reached\r\n";
    let heard = pipeline(&mut bench, second, &[&["AUTH", "ann", "secret"], &["SET", "k", "v"], &["MULTI"], &["EXEC"]]);
    assert_eq!(heard, [refusal, no_user, no_user, no_user].concat());
    // A wrong password is what a server refuses, too, and helps no client.
    assert!(bench.answer(second, &["AUTH", "ann", "wrong"]).starts_with("-WRONGPASS"));
    assert_eq!(bench.answer(second, &["GET", "k"]), no_user);
    bench.turn(|worker| worker.handle_broken(first, "reset"));
    assert_eq!(bench.answer(second, &["AUTH", "ann", "secret"]), "+OK\r\n");
    bench.ask(second, &["GET", "k"]);
    assert_eq!(bench.dialling.len(), 1);
}

/// What a node executes of a transaction is sent before its client is another user: it must not run as the user before.
#[test]
fn nothing_runs_behind_auth_in_multi_as_the_user_before() {
    let midway = "-ERR AUTH as another user and HELLO 2 cannot come before requests of a transaction that a node executes; \
         the transaction was not executed\r\n";
    for (before, within, refused_then) in [
        (&["CLIENT", "ID"][..], &["AUTH", "ann", "secret"][..], "-NOAUTH "),
        (&["CLIENT", "ID"], &["AUTH", "ann", "wrong"], "-NOAUTH "),
        (&["CLIENT", "ID"], &["HELLO", "3", "AUTH", "ann", "secret"], "-NOAUTH "),
        (&["AUTH", "ann", "secret"], &["AUTH", "default", "any"], "-NOAUTH "),
        (&["HELLO", "3"], &["HELLO", "2"], "-ERR the protocol of the last HELLO could not be had"),
    ] {
        for mode in PoolMode::ALL.map(|(mode, _)| mode) {
            let lanes = LaneLimits { mode, ..LaneLimits::default() };
            let plain = config(1, 1);
            let mut bench = Bench::of_many(Config { lanes, ..plain }, 1, users(&[("ann", UserLimits::default())]));
            let client = bench.accept();
            bench.answer(client, before);
            let block: &[&[&str]] =
                &[&["MULTI"], &["GET", "a"], within, &["SET", "k", "v"], &["EXEC"], &["SET", "k", "w"]];
            let heard = pipeline(&mut bench, client, block);
            let told = heard.rsplit_once("+QUEUED\r\n").map_or("", |(_, told)| told);
            let behind = told.strip_prefix(midway).unwrap_or_else(|| panic!("{within:?} {mode:?}: {heard}"));
            assert!(behind.starts_with(refused_then), "{within:?} {mode:?}: {behind}");
            connect_and(&mut bench, "+OK\r\n");
            assert_eq!(all_asked(&mut bench), [""; 0], "{within:?} {mode:?}");
        }
    }
}

/// Two clients wait for the same database. While they do, one of them gets another name at the nodes, and all kinds of
/// connections are taken.
#[test]
fn a_select_that_comes_too_late_is_refused_at_once() {
    let mut bench =
        Bench::of_many(Config { databases: 1_000, ..config(1, 1) }, 1, users(&[("ann", UserLimits::default())]));
    let others: Vec<ConnId> = (1..limits::CLASSES_MAX - 2).map(|_| bench.accept()).collect();
    for (number, client) in others.iter().enumerate() {
        assert_eq!(bench.answer(*client, &["SELECT", &(number + 1).to_string()]), "+OK\r\n");
    }
    let (first, ann) = (bench.accept(), bench.accept());
    assert_eq!(bench.answer(ann, &["AUTH", "ann", "secret"]), "+OK\r\n");
    bench.ask(first, &["SELECT", "2000"]);
    pipeline(&mut bench, ann, &[&["SELECT", "2000"], &["SET", "k", "v"], &["ECHO", "x"]]);
    let credentials = Credentials { username: Some("ann".to_owned()), password: "there".to_owned().into() };
    let limits = UserLimits { node_credentials: Some(credentials.into()), ..UserLimits::default() };
    bench.shared.access.set_limits([(b"ann".as_slice().into(), limits)].into_iter());
    let config = Config { databases: 1_000, ..config(1, 1) };
    bench.turn(|worker| worker.handle_mail(Mail::Reload(Arc::new(config))));
    // Another client takes the last one.
    let last = bench.accept();
    bench.ask(last, &["SELECT", "900"]);
    let conns = std::mem::take(&mut bench.dialling);
    for conn in conns {
        bench.turn(|worker| worker.handle_connected(conn));
        bench.send(conn, b"+OK\r\n");
        bench.send(conn, b"+PONG\r\n");
    }
    assert_eq!(bench.heard(first), "+OK\r\n");
    let refusal = "-ERR too many databases and protocols are in use at once; try again later\r\n";
    assert_eq!(bench.heard(ann), [refusal, NO_DATABASE, "$1\r\nx\r\n"].concat());
}

#[test]
fn a_select_ends_when_its_client_or_all_nodes_are_gone() {
    let mut bench = unknowing(2);
    let (leaving, staying) = (bench.accept(), bench.accept());
    bench.ask(leaving, &["SELECT", "3"]);
    bench.ask(staying, &["SELECT", "4"]);
    bench.turn(|worker| worker.handle_broken(leaving, "reset"));
    for _ in 0..3 {
        for conn in std::mem::take(&mut bench.dialling) {
            bench.turn(|worker| worker.handle_dial_failed(conn, DialFailure::TimedOut));
        }
    }
    assert!(bench.heard(staying).contains("could not be reached in time"));
    assert_eq!(bench.answer(staying, &["GET", "k"]), NO_DATABASE);
}

/// In one turn its transaction, which selects a database, is answered, and the client breaks off.
#[test]
fn a_database_that_a_client_leaves_selected_is_no_others() {
    let lanes = LaneLimits { mode: PoolMode::Session, ..LaneLimits::default() };
    let mut bench = Bench::proxy(Config { lanes, databases: 16, ..config(1, 1) });
    let client = bench.accept();
    bench.ask(client, &["GET", "key"]);
    let node = bench.connect()[0];
    bench.heard(node);
    bench.send(node, b"$-1\r\n");
    for words in [&["MULTI"][..], &["SELECT", "5"], &["SET", "key", "1"], &["EXEC"]] {
        bench.ask(client, words);
    }
    bench.connect();
    assert!(bench.take_multi(node));
    assert_eq!(requests(&bench.heard(node)), ["MULTI", "SELECT 5", "SET key 1", "EXEC"]);
    let replies = b"+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n+OK\r\n+OK\r\n";
    bench.turn(|worker| {
        worker.read_buffer(node).expect("it is read")[..replies.len()].copy_from_slice(replies);
        worker.handle_read(node, replies.len());
        worker.handle_broken(client, "reset");
    });
    let other = bench.accept();
    bench.ask(other, &["SET", "key", "2"]);
    assert_ne!(requests(&bench.heard(node)), ["SET key 2"], "this would write to database 5");
    let made = bench.connect();
    assert!(made.iter().any(|conn| requests(&bench.heard(*conn)) == ["SET key 2"]));
}
