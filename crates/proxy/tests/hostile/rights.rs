//! Requests that are refused: nothing of the proxy, of its nodes or of other clients may show that they were made.

use crate::NoEngine;
use crate::bench::{Bench, request, requests};
use crate::support::config;
use respool_command::Categories;
use respool_connection::{ConnId, Machine};
use respool_proxy::hooks::Hooks;
use respool_proxy::{Access, AclStore, Config, UserLimits};
use respool_route::{Reads, Rewrite, Route, Routes, When};
use std::sync::{Arc, Mutex, Weak};

/// A user with these rules, and one who may do everything.
fn access(rules: &[&str], limits: UserLimits) -> Arc<Access> {
    let access = Access::default();
    let mut all: Vec<&[u8]> = vec![b"on", b">secret"];
    all.extend(rules.iter().map(|rule| rule.as_bytes()));
    access.change(|users| users.with_rules(b"bob", &all).map(|users| (users, ()))).unwrap();
    access.set_limits([(b"bob".as_slice().into(), limits)].into_iter());
    Arc::new(access)
}

/// Everything is sampled, and every request counts under a route.
fn watched(nodes: usize) -> Config {
    let mut config = config(nodes, 1);
    config.seeing.slow_us = 0;
    config.seeing.slow_entries = 100;
    config.seeing.sample_every = 1;
    let route = Route {
        name: "all".into(),
        when: When::default(),
        pool: 0,
        rewrite: Rewrite::default(),
        reads: Reads::Primary,
        dead_node: None,
        pool_mode: None,
    };
    config.routes = Arc::new(Routes::new(config.routes.pools().to_vec(), vec![route]).unwrap());
    config
}

/// A client that tracks what it reads.
fn tracker(bench: &mut Bench<NoEngine>) -> ConnId {
    let client = bench.accept();
    assert!(bench.answer(client, &["HELLO", "3", "AUTH", "bob", "secret"]).starts_with('%'));
    bench.ask(client, &["CLIENT", "TRACKING", "ON", "OPTIN"]);
    bench.connect();
    for lane in bench.nodes.clone() {
        assert_eq!(requests(&bench.heard(lane)), ["CLIENT TRACKING ON BCAST"]);
        bench.send(lane, b"+OK\r\n");
    }
    assert_eq!(bench.heard(client), "+OK\r\n");
    // The connection for its requests is there, too.
    assert_eq!(bench.answer(client, &["CLIENT", "CACHING", "YES"]), "+OK\r\n");
    bench.ask(client, &["GET", "app:first"]);
    bench.connect();
    let (lane, _) = bench.who_heard("GET app:first").expect("the node is asked");
    bench.send(lane, b"$1\r\n1\r\n");
    assert_eq!(bench.heard(client), "$1\r\n1\r\n");
    client
}

/// What a refusal itself is counted under, and the traffic that it is.
const OF_REFUSALS: [&str; 12] = [
    "turns",
    "requests",
    "requests_local",
    "client_bytes_in",
    "client_bytes_out",
    "client_reads",
    "client_writes",
    "held_bytes",
    "denied_commands",
    "denied_keys",
    "denied_channels",
    "throttled",
];

/// Every figure that a refused request must leave as it is.
fn figures(bench: &Bench<NoEngine>) -> Vec<(&'static str, u64)> {
    let all = bench.shared.counters[0].each().map(|(name, _, _, value)| (name, value));
    all.filter(|(name, _)| !OF_REFUSALS.contains(name)).collect()
}

/// What an operator sees of keys, routes, requests and clients' states.
fn shown(bench: &mut Bench<NoEngine>, operator: ConnId) -> Vec<String> {
    let questions = [
        &["PROXY", "SHOW", "ROUTES"][..],
        &["PROXY", "SHOW", "HOTKEYS"],
        &["PROXY", "SHOW", "BIGKEYS"],
        &["PROXY", "SHOW", "LATENCY"],
        &["PROXY", "SHOW", "PINS"],
        &["PROXY", "SLOWLOG"],
        &["PUBSUB", "CHANNELS"],
    ];
    questions.map(|words| bench.answer(operator, words)).into()
}

/// Nothing went to any node.
fn is_quiet(bench: &mut Bench<NoEngine>) -> bool {
    bench.dialling.is_empty() && bench.nodes.clone().into_iter().all(|node| bench.heard(node).is_empty())
}

#[test]
fn what_is_refused_leaves_no_trace() {
    let judge = |_: &_, row: &'static respool_command::Row, _: respool_wire::Args<'_>| match row.name {
        "STRLEN" => Err("ERR not that one".to_owned()),
        _ => Ok(()),
    };
    let hooks = Hooks::default().on_request(Categories::named(b"read").expect("it is one"), judge);
    let rules = [
        "~app:*",
        "&app:*",
        "-@all",
        "+@read",
        "+@write",
        "+@connection",
        "+@pubsub",
        "+@transaction",
        "-ttl",
        "+proxy",
    ];
    let mut bench = Bench::with_users_and_hooks(watched(2), access(&rules, UserLimits::default()), hooks);
    let operator = bench.accept();
    let client = tracker(&mut bench);
    bench.nodes.clone().into_iter().for_each(|node| drop(bench.heard(node)));
    let refused: [(&[&str], &str); 14] = [
        (&["GET", "secret"], "-NOPERM"),
        (&["MGET", "app:a", "secret"], "-NOPERM"),
        (&["TTL", "app:a"], "-NOPERM"),
        (&["ZUNION", "01", "app:a"], "-NOPERM"),
        (&["WATCH", "secret"], "-NOPERM"),
        (&["BLPOP", "secret", "0"], "-NOPERM"),
        (&["SUBSCRIBE", "app:a", "other"], "-NOPERM"),
        (&["PUBLISH", "other", "m"], "-NOPERM"),
        (&["EVAL", "return 1", "0"], "-NOPERM"),
        (&["NOSUCH", "x"], "-NOPERM"),
        (&["SCRIPT", "LATER", "x"], "-NOPERM"),
        (&["GET"], "-ERR wrong number"),
        (&["STRLEN", "app:a"], "-ERR not that one"),
        (&["PROXY", "NODE", "node-0", "GET", "secret"], "-NOPERM"),
    ];
    for (words, error) in refused {
        assert_eq!(bench.answer(client, &["CLIENT", "CACHING", "YES"]), "+OK\r\n");
        let before = (shown(&mut bench, operator), figures(&bench));
        let reply = bench.answer(client, words);
        assert!(reply.starts_with(error), "{words:?}: {reply}");
        let count = figures(&bench);
        assert!(is_quiet(&mut bench), "{words:?} reached a node");
        assert_eq!(before, (shown(&mut bench, operator), count), "{words:?}");
        // As in Redis, CLIENT CACHING was about that request.
        let info = bench.answer(client, &["CLIENT", "TRACKINGINFO"]);
        assert!(!info.contains("caching-yes"), "{words:?}");
    }
    // A transaction is spoilt by the same requests, and leaves as little.
    for (words, _) in refused.into_iter().filter(|(words, _)| words[0] != "PROXY") {
        let before = (shown(&mut bench, operator), figures(&bench));
        assert_eq!(bench.answer(client, &["MULTI"]), "+OK\r\n");
        assert!(bench.answer(client, words).starts_with('-'), "{words:?}");
        assert!(bench.answer(client, &["EXEC"]).starts_with("-EXECABORT"), "{words:?}");
        assert!(is_quiet(&mut bench), "{words:?} reached a node");
        assert_eq!(before, (shown(&mut bench, operator), figures(&bench)), "{words:?}");
    }
}

#[test]
fn what_is_asked_too_early_is_not_remembered_before_its_time() {
    let limits = UserLimits { requests_per_second: Some(20), ..UserLimits::default() };
    let mut bench = Bench::of_many(watched(1), 1, access(&["~*", "&*", "+@all"], limits));
    let client = tracker(&mut bench);
    assert_eq!(bench.answer(client, &["CLIENT", "CACHING", "YES"]), "+OK\r\n");
    // As many as it may ask for at once, and one more that reads.
    let mut many = request(&["PING"]).repeat(40);
    many.extend(request(&["GET", "later"]));
    bench.send(client, &many);
    let before = figures(&bench);
    assert!(is_quiet(&mut bench));
    assert_eq!(bench.shared.counters[0].throttled.value(), 1);
    for _ in 0..5 {
        bench.wait(1_000);
        bench.turn(|_| ());
    }
    assert_eq!(before, figures(&bench), "nothing of it is known to anything");
    let is_sent = (0..100).any(|_| {
        bench.wait(50_000);
        bench.turn(|_| ());
        bench.who_heard("GET later").is_some()
    });
    assert!(is_sent);
    // CLIENT CACHING was about the first PING.
    assert_eq!(bench.shared.counters[0].tracked_keys.value(), 1);
}

#[test]
fn a_client_that_makes_names_up_waits_alone() {
    let mut bench = Bench::proxy(config(1, 1));
    let (liar, other) = (bench.accept(), bench.accept());
    bench.ask(other, &["GET", "k"]);
    let node = bench.connect()[0];
    bench.heard(node);
    bench.send(node, b"$-1\r\n");
    bench.heard(other);
    let names: Vec<u8> = (0..500).flat_map(|number| request(&[&format!("NOSUCH{number}"), "x"])).collect();
    bench.send(liar, &names);
    let (mut asked, mut replies) = (0, String::new());
    let mut told = |bench: &mut Bench<NoEngine>, replies: &mut String| {
        while let said = requests(&bench.heard(node))
            && !said.is_empty()
        {
            asked += said.len();
            said.iter().for_each(|words| assert!(words.starts_with("COMMAND INFO nosuch"), "{words}"));
            bench.send(node, "*1\r\n*-1\r\n".repeat(said.len()).as_bytes());
            replies.push_str(&bench.heard(liar));
        }
        asked
    };
    let at_once = told(&mut bench, &mut replies);
    assert!(at_once < 50, "{at_once} questions at once");
    // Another client's command is asked for at once, and is never called unknown before.
    bench.ask(other, &["FT.SEARCH", "idx", "q"]);
    assert_eq!(requests(&bench.heard(node)), ["COMMAND INFO ft.search"]);
    bench.send(node, b"*1\r\n*6\r\n$9\r\nft.search\r\n:-2\r\n*1\r\n+readonly\r\n:0\r\n:0\r\n:0\r\n");
    assert_eq!(requests(&bench.heard(node)), ["FT.SEARCH idx q"]);
    bench.send(node, b"*0\r\n");
    assert_eq!(bench.heard(other), "*0\r\n");
    // It gets an answer to each in the end, and every one comes from the node.
    for _ in 0..2_000 {
        bench.wait(50_000);
        bench.turn(|_| ());
        told(&mut bench, &mut replies);
    }
    assert_eq!(told(&mut bench, &mut replies), 500);
    assert_eq!(replies.matches("-ERR unknown command 'NOSUCH").count(), 500);
}

#[test]
fn a_command_is_not_called_unknown_by_a_node_that_is_gone() {
    let mut bench = Bench::proxy(config(1, 1));
    let client = bench.accept();
    bench.ask(client, &["FT.SEARCH", "idx", "q"]);
    let node = bench.connect()[0];
    assert_eq!(requests(&bench.heard(node)), ["COMMAND INFO ft.search"]);
    bench.send(node, b"-LOADING Redis is loading the dataset in memory\r\n");
    let reply = bench.heard(client);
    assert!(reply.starts_with("-TRYAGAIN ") && reply.contains("LOADING"), "{reply}");
    bench.ask(client, &["FT.SEARCH", "idx", "q"]);
    assert_eq!(requests(&bench.heard(node)), ["COMMAND INFO ft.search"], "it is asked again");
    bench.turn(|worker| respool_connection::Machine::handle_ended(worker, node));
    let reply = bench.heard(client);
    assert!(reply.starts_with("-TRYAGAIN ") && reply.contains("node-0"), "{reply}");
}

#[test]
fn a_transaction_puts_no_key_where_routes_do_not_lead() {
    let mut config = config(1, 1);
    let route = Route {
        name: "third".into(),
        when: When { databases: [3].into(), ..When::default() },
        pool: 0,
        rewrite: Rewrite { strip: 0, add: b"t:".as_slice().into() },
        reads: Reads::Primary,
        dead_node: None,
        pool_mode: None,
    };
    config.routes = Arc::new(Routes::new(config.routes.pools().to_vec(), vec![route]).unwrap());
    let mut bench = Bench::proxy(config);
    let client = bench.accept();
    for words in [&["MOVE", "k", "3"][..], &["COPY", "k", "j", "DB", "3"], &["SWAPDB", "0", "3"]] {
        let reply = bench.answer(client, words);
        assert!(reply.starts_with("-ERR ") && reply.contains("routes lead"), "{words:?}: {reply}");
        assert_eq!(bench.answer(client, &["MULTI"]), "+OK\r\n");
        assert!(bench.answer(client, words).starts_with("-ERR "), "{words:?}");
        assert!(bench.answer(client, &["EXEC"]).starts_with("-EXECABORT"), "{words:?}");
    }
    assert!(bench.dialling.is_empty(), "no node heard of it");
    bench.ask(client, &["MOVE", "k", "2"]);
    bench.connect();
    assert!(bench.who_heard("MOVE k 2").is_some());
}

/// A file of users. While it is written another worker changes one of them.
#[derive(Debug, Default)]
struct Disk {
    text: Mutex<Vec<u8>>,
    access: Mutex<Weak<Access>>,
}

/// What a worker is given of it.
#[derive(Debug)]
struct AclFile(Arc<Disk>);

impl AclFile {
    fn change_meanwhile(&self, rule: &[u8]) {
        let access = self.0.access.lock().unwrap().upgrade().expect("it is there");
        access.change(|users| users.with_rules(b"late", &[rule]).map(|users| (users, ()))).unwrap();
    }
}

impl AclStore for AclFile {
    fn acl_file(&self) -> Option<&str> {
        Some("users.acl")
    }

    fn read_acl_file(&self) -> Result<Vec<u8>, String> {
        Ok(self.0.text.lock().unwrap().clone())
    }

    fn write_acl_file(&self, text: &[u8]) -> Result<(), String> {
        *self.0.text.lock().unwrap() = text.to_vec();
        self.change_meanwhile(b"on");
        Ok(())
    }

    fn fill_with_chance(&self, _: &mut [u8]) -> Result<(), String> {
        Err("there is none".to_owned())
    }
}

#[test]
fn what_is_changed_while_users_are_saved_is_not_taken_for_saved() {
    let disk = Arc::new(Disk::default());
    let access = Arc::new(Access::new(Default::default(), Box::new(AclFile(Arc::clone(&disk)))));
    *disk.access.lock().unwrap() = Arc::downgrade(&access);
    let mut bench = Bench::of_many(config(1, 1), 1, Arc::clone(&access));
    let client = bench.accept();
    assert_eq!(bench.answer(client, &["ACL", "SETUSER", "early", "on"]), "+OK\r\n");
    assert_eq!(bench.answer(client, &["ACL", "SAVE"]), "+OK\r\n");
    let written = String::from_utf8(disk.text.lock().unwrap().clone()).unwrap();
    assert!(written.contains("user early on") && !written.contains("user late"), "{written}");
    // A process that goes on with them is told of it.
    let unsaved = requests(&String::from_utf8(access.unsaved()).unwrap());
    assert!(unsaved.len() == 1 && unsaved[0].starts_with("user late on "), "{unsaved:?}");
}

#[test]
fn clients_that_ask_for_names_and_leave_hold_up_no_other() {
    let mut bench = Bench::proxy(config(1, 1));
    let first = bench.accept();
    bench.ask(first, &["GET", "k"]);
    let node = bench.connect()[0];
    bench.send(node, b"$-1\r\n");
    for number in 0..3_000 {
        let client = bench.accept();
        bench.ask(client, &[&format!("NOSUCH{number}")]);
        bench.turn(|worker| worker.handle_broken(client, "gone"));
    }
    bench.heard(node);
    // Each of them would have taken a millisecond.
    bench.ask(first, &["FT.SEARCH", "idx", "q"]);
    for _ in 0..4 {
        bench.wait(100_000);
        bench.turn(|_| ());
    }
    let said = requests(&bench.heard(node));
    assert_eq!(said.last().map(String::as_str), Some("COMMAND INFO ft.search"), "{}", said.len());
}

/// What the program around has let pass of a request that was put back holds for that request alone.
#[test]
fn no_request_passes_in_the_place_of_one_that_was_put_back() {
    let judge = |_: &_, row: &'static respool_command::Row, _: respool_wire::Args<'_>| match row.name {
        "FLUSHALL" => Err("ERR not that one".to_owned()),
        _ => Ok(()),
    };
    let [keyspace, read] = [&b"keyspace"[..], b"read"].map(|name| Categories::named(name).expect("it is one"));
    let hooks = Hooks::default().on_request(keyspace.with(read), judge);
    let mut bench =
        Bench::<NoEngine>::with_users_and_hooks(config(1, 1), access(&["~*", "+@all"], UserLimits::default()), hooks);
    let (operator, client) = (bench.accept(), bench.accept());
    assert_eq!(bench.answer(client, &["AUTH", "bob", "secret"]), "+OK\r\n");
    assert_eq!(bench.answer(operator, &["PROXY", "PAUSE"]), "+OK\r\n");
    bench.send(client, &[request(&["GET", "k"]), request(&["FLUSHALL"])].concat());
    assert_eq!(bench.answer(operator, &["ACL", "SETUSER", "bob", "-get"]), "+OK\r\n");
    assert_eq!(bench.answer(operator, &["PROXY", "RESUME"]), "+OK\r\n");
    bench.turn(|_| ());
    let heard = bench.heard(client);
    assert!(heard.starts_with("-NOPERM") && heard.contains("-ERR not that one"), "{heard}");
}
