//! Scripts go over connections of their own: what is asked beside them is not held up, and each client's requests stay in order.

use crate::NoEngine;
use crate::bench::{Bench, request, requests, users};
use crate::chance::Chance;
use crate::routes::with_an_own_connection;
use crate::support::config;
use respool_connection::{ConnId, Machine};
use respool_proxy::{Config, LaneLimits, PoolMode, Timeouts, UserLimits, limits};
use respool_route::{Route, Routes, When};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

const SHA: &str = "e0e1f9fabfc9d4800c877a703b823ac0578ff8db";

/// A proxy, with its shared connection to the only node.
fn warm(lanes: LaneLimits) -> (Bench<NoEngine>, ConnId) {
    let config = config(1, 1);
    // Scripts may take their time.
    let timeouts = Timeouts { response_us: 3_600_000_000, silence_us: 3_600_000_000, ..config.timeouts };
    let mut bench = Bench::proxy(Config { lanes, timeouts, ..config });
    let client = bench.accept();
    bench.ask(client, &["GET", "warm"]);
    let shared = bench.connect()[0];
    assert_eq!(said(&mut bench, shared), ["GET warm"]);
    bench.send(shared, b"$-1\r\n");
    (bench, shared)
}

/// What a node has been asked on a connection, everything that waited to be written included.
fn said(bench: &mut Bench<NoEngine>, node: ConnId) -> Vec<String> {
    bench.wait(2_000);
    bench.turn(|_| ());
    requests(&bench.heard(node))
}

fn pipeline(bench: &mut Bench<NoEngine>, client: ConnId, of: &[&[&str]]) {
    let bytes: Vec<u8> = of.iter().flat_map(|words| request(words)).collect();
    bench.send(client, &bytes);
}

/// The only node forgets its scripts with the block, and so does what would bring them back.
#[test]
fn a_flush_in_a_transaction_over_one_node_is_one() {
    let (mut bench, shared) = warm(LaneLimits::default());
    let client = bench.accept();
    bench.ask(client, &["SCRIPT", "LOAD", "return 1"]);
    assert_eq!(said(&mut bench, shared), ["SCRIPT LOAD return 1"]);
    bench.send(shared, format!("$40\r\n{SHA}\r\n").as_bytes());
    for words in [&["MULTI"][..], &["SCRIPT", "FLUSH"], &["EXEC"]] {
        bench.ask(client, words);
    }
    assert!(bench.take_multi(shared));
    assert_eq!(said(&mut bench, shared), ["MULTI", "SCRIPT FLUSH", "EXEC"]);
    bench.send(shared, b"+OK\r\n+QUEUED\r\n*1\r\n+OK\r\n");
    assert!(bench.heard(client).ends_with("*1\r\n+OK\r\n"));
    bench.ask(client, &["EVALSHA", SHA, "0"]);
    let apart = bench.connect()[0];
    assert_eq!(said(&mut bench, apart), [format!("EVALSHA {SHA} 0")]);
    bench.send(apart, b"-NOSCRIPT No matching script. Please use EVAL.\r\n");
    assert_eq!(said(&mut bench, apart), [""; 0], "it is not brought back");
    assert_eq!(bench.heard(client), "-NOSCRIPT No matching script. Please use EVAL.\r\n");
}

const EVAL: &[&str] = &["EVAL", "return 1", "0"];

#[test]
fn what_others_ask_is_not_behind_a_script() {
    let scripts: [&[&str]; 4] = [EVAL, &["EVALSHA", SHA, "0"], &["FCALL", "f", "0"], &["FCALL_RO", "f", "0"]];
    for script in scripts {
        let (mut bench, shared) = warm(LaneLimits::default());
        let (runner, other) = (bench.accept(), bench.accept());
        bench.ask(runner, script);
        let apart = bench.connect();
        assert_eq!(apart.len(), 1, "{script:?} has another connection");
        assert_eq!(said(&mut bench, apart[0]), [script.join(" ")]);
        bench.ask(other, &["GET", "k"]);
        assert_eq!(said(&mut bench, shared), ["GET k"]);
        bench.send(shared, b"-BUSY Redis is busy running a script.\r\n");
        assert_eq!(bench.heard(other), "-BUSY Redis is busy running a script.\r\n");
        // The client itself waits for its script, as it would on its connection to a server.
        bench.ask(runner, &["GET", "mine"]);
        assert_eq!(said(&mut bench, apart[0]), ["GET mine"]);
        bench.send(apart[0], b":1\r\n$1\r\nm\r\n");
        assert_eq!(bench.heard(runner), ":1\r\n$1\r\nm\r\n");
        bench.ask(runner, &["GET", "again"]);
        assert_eq!(said(&mut bench, shared), ["GET again"], "on the shared one, once nothing is owed");
    }
}

#[test]
fn a_pipeline_with_scripts_waits_once_and_no_more() {
    let (mut bench, shared) = warm(LaneLimits::default());
    let client = bench.accept();
    let mixed: [&[&str]; 4] = [&["GET", "a"], EVAL, &["GET", "b"], EVAL];
    pipeline(&mut bench, client, &mixed);
    assert_eq!(said(&mut bench, shared), ["GET a"]);
    assert!(bench.dialling.is_empty(), "not before that is answered");
    bench.send(shared, b"$1\r\na\r\n");
    let apart = bench.connect()[0];
    assert_eq!(said(&mut bench, apart), ["EVAL return 1 0", "GET b", "EVAL return 1 0"], "all at once");
    bench.send(apart, b":1\r\n$1\r\nb\r\n:2\r\n");
    assert_eq!(bench.heard(client), "$1\r\na\r\n:1\r\n$1\r\nb\r\n:2\r\n");
    for _ in 0..3 {
        pipeline(&mut bench, client, &mixed);
        assert_eq!(said(&mut bench, apart).len(), 4, "without waiting");
        bench.send(apart, b"$1\r\na\r\n:1\r\n$1\r\nb\r\n:2\r\n");
        bench.heard(client);
    }
    bench.wait(limits::SCRIPTS_MIXED_US);
    bench.ask(client, &["GET", "c"]);
    assert_eq!(said(&mut bench, shared), ["GET c"], "a minute without a script among others");
}

#[test]
fn nothing_overtakes_timed_out_requests_around_script_lanes() {
    let config = config(1, 1);
    let timeouts = Timeouts { response_us: 500_000, silence_us: 3_600_000_000, ..config.timeouts };
    let mut bench = Bench::proxy(Config { timeouts, ..config });
    let (client, other) = (bench.accept(), bench.accept());
    bench.ask(client, &["SET", "k", "1"]);
    let shared = bench.connect()[0];
    assert_eq!(said(&mut bench, shared), ["SET k 1"]);
    bench.wait(600_000);
    bench.turn(|_| ());
    let late = bench.heard(client);
    assert!(late.contains("did not answer within 500 ms"), "{late}");
    pipeline(&mut bench, client, &[EVAL, &["SET", "k", "2"]]);
    assert_eq!(said(&mut bench, shared), ["EVAL return 1 0", "SET k 2"], "behind the write that may still be done");
    bench.ask(other, EVAL);
    let apart = bench.connect()[0];
    assert_eq!(said(&mut bench, apart), ["EVAL return 1 0"], "one that has nothing there goes where scripts go");
    bench.send(apart, b":1\r\n");
    assert_eq!(bench.heard(other), ":1\r\n");
    bench.send(shared, b"+OK\r\n:1\r\n+OK\r\n");
    assert_eq!(bench.heard(client), ":1\r\n+OK\r\n");
    // And back.
    bench.ask(client, EVAL);
    assert_eq!(said(&mut bench, apart), ["EVAL return 1 0"], "all before has been done");
    bench.wait(600_000);
    bench.turn(|_| ());
    let late = bench.heard(client);
    assert!(late.contains("did not answer within 500 ms"), "{late}");
    bench.ask(client, &["SET", "k", "3"]);
    assert_eq!(said(&mut bench, apart), ["SET k 3"], "behind the script that may still run");
    bench.send(apart, b":1\r\n+OK\r\n");
    bench.ask(client, &["GET", "k"]);
    assert_eq!(said(&mut bench, shared), ["GET k"]);
}

#[test]
fn nothing_overtakes_what_timed_out_on_a_leaving_connection() {
    let config = config(1, 1);
    let timeouts = Timeouts { response_us: 500_000, silence_us: 3_600_000_000, ..config.timeouts };
    let mut bench = Bench::proxy(Config { timeouts, ..config });
    let (client, other, operator) = (bench.accept(), bench.accept(), bench.accept());
    bench.ask(other, EVAL);
    let apart = bench.connect()[0];
    assert_eq!(said(&mut bench, apart), ["EVAL return 1 0"]);
    bench.send(apart, b":1\r\n");
    // First a plain request times out, then a script.
    let (write, read): (&[&str], &[&str]) = (&["SET", "k", "1"], &["GET", "k"]);
    for (late, next) in [(write, EVAL), (EVAL, read)] {
        bench.ask(client, late);
        bench.connect();
        bench.wait(2_000);
        bench.turn(|_| ());
        let (before, _) = bench.who_heard(&late.join(" ")).expect("it is asked");
        bench.wait(600_000);
        bench.turn(|_| ());
        let told = bench.heard(client);
        assert!(told.contains("did not answer within 500 ms"), "{told}");
        assert!(bench.answer(operator, &["PROXY", "RECONNECT", "node-0"]).starts_with(':'));
        bench.wait(50_000);
        bench.turn(|_| ());
        assert!(!bench.connect().is_empty(), "others take the places of those that are there");
        bench.wait(50_000);
        bench.turn(|_| ());
        bench.ask(client, next);
        bench.connect();
        bench.wait(2_000);
        bench.turn(|_| ());
        assert_eq!(bench.who_heard(&next.join(" ")), None, "{late:?} may still be executed");
        bench.send(before, b"$1\r\n1\r\n");
        bench.wait(50_000);
        bench.turn(|_| ());
        let (node, _) = bench.who_heard(&next.join(" ")).expect("now it may go");
        bench.send(node, b"$1\r\n2\r\n");
        assert_eq!(bench.heard(client), "$1\r\n2\r\n");
    }
}

#[test]
fn scripts_behind_one_that_runs_long_are_told_so() {
    let (mut bench, shared) = warm(LaneLimits::default());
    let (runner, mixed, second, third) = (bench.accept(), bench.accept(), bench.accept(), bench.accept());
    pipeline(&mut bench, mixed, &[&["GET", "a"], EVAL]);
    said(&mut bench, shared);
    bench.send(shared, b"$1\r\na\r\n");
    let first_way = bench.connect()[0];
    said(&mut bench, first_way);
    bench.send(first_way, b":1\r\n");
    bench.ask(runner, EVAL);
    bench.ask(second, EVAL);
    assert_eq!(said(&mut bench, first_way).len(), 2, "most scripts take little time");
    bench.wait(limits::SCRIPT_AHEAD_US);
    bench.ask(third, EVAL);
    let second_way = bench.connect();
    assert_eq!(second_way.len(), 1);
    assert_eq!(said(&mut bench, second_way[0]), ["EVAL return 1 0"]);
    bench.send(second_way[0], b"-BUSY\r\n");
    assert_eq!(bench.heard(third), "-BUSY\r\n");
    bench.ask(mixed, &["GET", "b"]);
    assert_eq!(said(&mut bench, shared), ["GET b"], "a client that sends both is not behind it either");
    bench.send(first_way, b":1\r\n:2\r\n");
    assert_eq!((bench.heard(runner), bench.heard(second)), (":1\r\n".to_owned(), ":2\r\n".to_owned()));
    bench.ask(third, EVAL);
    assert_eq!(said(&mut bench, first_way), ["EVAL return 1 0"]);
}

#[test]
fn a_transaction_with_a_script_goes_where_scripts_go() {
    let (mut bench, shared) = warm(LaneLimits::default());
    let client = bench.accept();
    for round in 0..2 {
        pipeline(&mut bench, client, &[&["MULTI"], EVAL, &["EXEC"]]);
        if round == 0 {
            bench.connect();
        }
        let apart = *bench.nodes.last().expect("it is connected");
        assert_ne!(apart, shared);
        assert_eq!(said(&mut bench, apart), ["MULTI", "EVAL return 1 0", "EXEC"]);
        bench.send(apart, b"+OK\r\n+QUEUED\r\n*1\r\n:1\r\n");
        assert_eq!(bench.heard(client), "+OK\r\n+QUEUED\r\n*1\r\n:1\r\n");
    }
    pipeline(&mut bench, client, &[&["MULTI"], &["GET", "k"], &["EXEC"]]);
    assert!(bench.take_multi(shared));
    assert_eq!(said(&mut bench, shared), ["MULTI", "GET k", "EXEC"]);
}

#[test]
fn watched_keys_hold_although_scripts_run_elsewhere() {
    let (mut bench, shared) = warm(LaneLimits::default());
    let client = bench.accept();
    bench.ask(client, &["WATCH", "k"]);
    let private = bench.connect()[0];
    assert_eq!(said(&mut bench, private), ["WATCH k"]);
    bench.send(private, b"+OK\r\n");
    pipeline(&mut bench, client, &[EVAL, &["MULTI"], &["SET", "k", "v"], &["EXEC"]]);
    let apart = bench.connect()[0];
    assert_eq!(said(&mut bench, apart), ["EVAL return 1 0"]);
    assert_eq!(said(&mut bench, private), [""; 0], "not before the script");
    bench.send(apart, b":1\r\n");
    assert_eq!(said(&mut bench, private), ["MULTI", "SET k v", "EXEC"]);
    bench.send(private, b"+OK\r\n+QUEUED\r\n*1\r\n+OK\r\n");
    assert!(bench.heard(client).ends_with(":1\r\n+OK\r\n+QUEUED\r\n*1\r\n+OK\r\n"));
    assert_eq!(said(&mut bench, shared), [""; 0]);
}

#[test]
fn the_order_to_stop_a_script_needs_no_spare_connection() {
    let (mut bench, shared) = warm(LaneLimits { private_max: 1, ..LaneLimits::default() });
    let (watcher, other) = (bench.accept(), bench.accept());
    bench.ask(watcher, &["WATCH", "k"]);
    let private = bench.connect()[0];
    bench.send(private, b"+OK\r\n");
    for order in [["SCRIPT", "KILL"], ["FUNCTION", "KILL"]] {
        bench.ask(other, &order);
        assert_eq!(said(&mut bench, shared), [order.join(" ")]);
        bench.send(shared, b"+OK\r\n");
        assert_eq!(bench.heard(other), "+OK\r\n");
    }
}

#[test]
fn orders_to_stop_take_one_connection_at_a_time() {
    for before in [&["PING"][..], &["CLIENT", "REPLY", "OFF"]] {
        let (mut bench, shared) = warm(LaneLimits::default());
        let (client, other) = (bench.accept(), bench.accept());
        bench.ask(client, before);
        bench.heard(client);
        pipeline(&mut bench, client, &[&["SCRIPT", "KILL"], &["FUNCTION", "KILL"], &["SCRIPT", "KILL"], &["GET", "k"]]);
        for order in ["SCRIPT KILL", "FUNCTION KILL", "SCRIPT KILL"] {
            assert!(bench.dialling.len() <= 1, "{} connections for one client", bench.dialling.len());
            bench.connect();
            assert_eq!(said(&mut bench, shared), [""; 0], "what is behind an order waits for it");
            let (node, _) = bench.who_heard(order).expect("it goes past the script");
            bench.send(node, b"-NOTBUSY No scripts in execution right now.\r\n");
        }
        assert_eq!(said(&mut bench, shared), ["GET k"]);
        // An order of one client does not wait for that of another.
        bench.ask(client, &["SCRIPT", "KILL"]);
        bench.ask(other, &["SCRIPT", "KILL"]);
        assert_eq!(bench.dialling.len(), 1, "one is warm, one is new");
    }
}

#[test]
fn orders_to_stop_count_among_the_connections_of_a_user() {
    let limits = UserLimits { private_connections: Some(1), ..UserLimits::default() };
    let mut bench = Bench::of_many(config(1, 1), 1, users(&[("ann", limits)]));
    let (client, other) = (bench.accept(), bench.accept());
    for conn in [client, other] {
        assert_eq!(bench.answer(conn, &["AUTH", "ann", "secret"]), "+OK\r\n");
    }
    bench.ask(client, &["GET", "k"]);
    let shared = bench.connect()[0];
    bench.send(shared, b"$-1\r\n");
    bench.heard(shared);
    bench.ask(client, &["WATCH", "k"]);
    let private = bench.connect()[0];
    bench.send(private, b"+OK\r\n");
    bench.ask(other, &["SCRIPT", "KILL"]);
    assert_eq!(said(&mut bench, shared), ["SCRIPT KILL"], "the user has as many as it may");
    bench.send(shared, b"+OK\r\n");
    assert_eq!(bench.heard(other), "+OK\r\n");
}

#[test]
fn a_client_with_own_connections_needs_none_for_scripts() {
    let mut bench =
        Bench::proxy(Config { lanes: LaneLimits { mode: PoolMode::Session, ..LaneLimits::default() }, ..config(1, 1) });
    let client = bench.accept();
    pipeline(&mut bench, client, &[&["GET", "k"], EVAL, &["GET", "k"]]);
    let own = bench.connect();
    assert_eq!(own.len(), 1);
    assert_eq!(said(&mut bench, own[0]), ["GET k", "EVAL return 1 0", "GET k"]);
}

#[test]
fn scripts_in_many_databases_do_not_cost_others_theirs() {
    let mut bench = Bench::proxy(Config { databases: 1_000, ..config(1, 1) });
    let curious = bench.accept();
    for database in 1..300 {
        bench.wait(10_000);
        bench.ask(curious, &["SELECT", &database.to_string()]);
        bench.connect();
        assert_eq!(bench.heard(curious), "+OK\r\n", "SELECT {database}");
        bench.ask(curious, EVAL);
        let (node, greeting) = match bench.connect().first() {
            Some(_) => bench.who_heard("EVAL return 1 0").expect("it is asked"),
            None => panic!("a script in database {database} has a connection of its own"),
        };
        assert!(greeting.contains(&format!("SELECT {database}")), "{greeting:?}");
        bench.send(node, b":1\r\n");
        assert_eq!(bench.heard(curious), ":1\r\n");
    }
    assert!(bench.nodes.len() <= 3 * limits::CLASSES_MAX, "{}", bench.nodes.len());
}

#[test]
fn a_client_that_shares_with_some_nodes_runs_its_scripts_apart() {
    let mut bench = Bench::proxy(with_an_own_connection());
    let client = bench.accept();
    let mut ask = |words: &[&str]| {
        bench.ask(client, words);
        bench.connect();
        bench.wait(2_000);
        bench.turn(|_| ());
        let (node, _) = bench.who_heard(&words.join(" ")).expect("it is asked");
        bench.send(node, b":1\r\n");
        assert_eq!(bench.heard(client), ":1\r\n");
        (node, bench.node_of(node))
    };
    let own = ask(&["GET", "own:k"]);
    let shared = ask(&["GET", "k"]);
    assert_eq!((own.1, shared.1), (1, 0));
    let script = ask(&["EVAL", "return 1", "1", "k"]);
    assert!(script.0 != shared.0 && script.1 == 0, "apart from what is shared");
    assert_eq!(ask(&["EVAL", "return 1", "1", "own:k"]), own, "on its own connection");
    assert_eq!(ask(&["GET", "k"]), shared);
    assert_eq!(ask(&["GET", "own:k"]), own);
    assert_eq!(ask(&["EVAL", "return 1", "1", "k"]), script);
    bench.ask(client, &["SELECT", "3"]);
    bench.connect();
    assert_eq!(bench.heard(client), "+OK\r\n");
    bench.ask(client, &["EVAL", "return 1", "1", "k"]);
    bench.connect();
    bench.wait(2_000);
    bench.turn(|_| ());
    let (node, greeting) = bench.who_heard("EVAL return 1 1 k").expect("it is asked");
    assert!(greeting.contains("SELECT 3") && ![shared.0, script.0].contains(&node), "{greeting:?}");
}

/// What a node says to FUNCTION LIST that has one function, which does not write.
fn functions(name: &str) -> Vec<u8> {
    let bulk = |text: &str| format!("${}\r\n{text}\r\n", text.len());
    let function = ["name", name, "flags"].map(bulk).concat() + "*1\r\n+no-writes\r\n";
    format!("*1\r\n*2\r\n{}*1\r\n*4\r\n{function}", bulk("functions")).into_bytes()
}

#[test]
fn a_pause_of_writes_asks_the_node_whether_a_function_writes() {
    let (mut bench, shared) = warm(LaneLimits::default());
    let (operator, client, other) = (bench.accept(), bench.accept(), bench.accept());
    assert_eq!(bench.answer(operator, &["CLIENT", "PAUSE", "60000", "WRITE"]), "+OK\r\n");
    bench.ask(client, &["FCALL", "reads", "0"]);
    bench.ask(other, &["FCALL", "writes", "0"]);
    assert_eq!(said(&mut bench, shared), ["FUNCTION LIST"], "once, for all that ask");
    bench.send(shared, &functions("reads"));
    let apart = bench.connect()[0];
    assert_eq!(said(&mut bench, apart), ["FCALL_RO reads 0"], "which the node would refuse if it wrote after all");
    bench.send(apart, b":1\r\n");
    assert_eq!(bench.heard(client), ":1\r\n");
    assert_eq!(bench.answer(operator, &["CLIENT", "UNPAUSE"]), "+OK\r\n");
    assert_eq!(said(&mut bench, apart), ["FCALL writes 0"]);
    bench.send(apart, b":2\r\n");
    assert_eq!((bench.heard(other), bench.heard(client)), (":2\r\n".to_owned(), String::new()));
    assert_eq!(said(&mut bench, shared), [""; 0]);
}

#[test]
fn a_function_of_which_its_node_says_nothing_waits_like_a_write() {
    for reply in ["-NOPERM no\r\n", "*0\r\n", ":1\r\n", ""] {
        let (mut bench, shared) = warm(LaneLimits::default());
        let (operator, client) = (bench.accept(), bench.accept());
        assert_eq!(bench.answer(operator, &["CLIENT", "PAUSE", "60000", "WRITE"]), "+OK\r\n");
        bench.ask(client, &["FCALL", "reads", "0"]);
        assert_eq!(said(&mut bench, shared), ["FUNCTION LIST"]);
        match reply {
            "" => bench.cut(shared),
            _ => bench.send(shared, reply.as_bytes()),
        }
        bench.wait(1_000_000);
        bench.turn(|_| ());
        bench.connect();
        assert_eq!(bench.who_heard("FCALL reads 0"), None, "{reply:?}");
        assert_eq!(bench.answer(operator, &["CLIENT", "UNPAUSE"]), "+OK\r\n");
        bench.connect();
        bench.wait(2_000);
        bench.turn(|_| ());
        assert!(bench.who_heard("FCALL reads 0").is_some(), "{reply:?}");
    }
}

#[test]
fn a_list_of_functions_is_heard_though_its_asker_has_left() {
    let (mut bench, shared) = warm(LaneLimits::default());
    let (operator, asker, other) = (bench.accept(), bench.accept(), bench.accept());
    assert_eq!(bench.answer(operator, &["CLIENT", "PAUSE", "60000", "WRITE"]), "+OK\r\n");
    bench.ask(asker, &["FCALL", "reads", "0"]);
    bench.ask(other, &["FCALL", "reads", "0"]);
    assert_eq!(said(&mut bench, shared), ["FUNCTION LIST"]);
    bench.turn(|worker| worker.handle_broken(asker, "gone"));
    // More than is read of a reply before its size is checked.
    let code = "c".repeat(200_000);
    let list = String::from_utf8(functions("reads")).unwrap();
    let list = list.replacen("*2\r\n", &format!("*4\r\n$12\r\nlibrary_code\r\n${}\r\n{code}\r\n", code.len()), 1);
    for part in list.as_bytes().chunks(50_000) {
        bench.send(shared, part);
    }
    let apart = bench.connect();
    assert_eq!(apart.len(), 1, "it goes on");
    assert_eq!(said(&mut bench, apart[0]), ["FCALL_RO reads 0"]);
}

/// One request of a client that a node has not answered.
struct Owed {
    client: usize,
    number: usize,
}

/// Clients that send scripts and other requests in pipelines, and a node that answers its connections in any order.
struct Mixed {
    bench: Bench<NoEngine>,
    chance: Chance,
    clients: Vec<ConnId>,
    /// What each client has sent and the proxy has not read.
    unread: Vec<Vec<u8>>,
    /// How many requests each client has sent, how many of them the node has seen, and what it has been answered.
    sent: Vec<usize>,
    seen: Vec<usize>,
    answered: Vec<String>,
    /// What each connection owes.
    owed: BTreeMap<u32, VecDeque<Owed>>,
}

impl Mixed {
    fn send(&mut self, client: usize) {
        let mut bytes = std::mem::take(&mut self.unread[client]);
        for _ in 0..=self.chance.below(6) {
            let name = format!("{client}:{}", self.sent[client]);
            let words: [&[&str]; 4] =
                [&["GET", &name], &["EVAL", "return 1", "1", &name], &["FCALL", "f", "1", &name], &["SET", &name, "v"]];
            bytes.extend_from_slice(&request(words[self.chance.below(words.len())]));
            self.sent[client] += 1;
        }
        self.unread[client] = bytes;
    }

    /// The node has got what has been written. No request of a client may come before an earlier one, or while an earlier
    /// one is unanswered on another connection.
    fn look(&mut self) {
        for (client, unread) in self.clients.iter().zip(&mut self.unread) {
            *unread = self.bench.offer(*client, unread).to_vec();
        }
        self.bench.connect();
        self.bench.wait(2_000);
        self.bench.turn(|_| ());
        for node in self.bench.nodes.clone() {
            for asked in requests(&self.bench.heard(node)) {
                let name = asked.split(' ').find(|word| word.contains(':')).expect("each names its client");
                let (client, number) = name.split_once(':').expect("and its number");
                let (client, number): (usize, usize) = (client.parse().unwrap(), number.parse().unwrap());
                assert_eq!(self.seen[client], number, "in the order in which they were sent");
                self.seen[client] += 1;
                let elsewhere = self.owed.iter().filter(|(conn, _)| **conn != node.to_bits());
                let overtaken = elsewhere.flat_map(|(_, owed)| owed).any(|owed| owed.client == client);
                assert!(!overtaken, "{asked} while others of its client are owed elsewhere");
                self.owed.entry(node.to_bits()).or_default().push_back(Owed { client, number });
            }
        }
    }

    fn answer(&mut self) {
        let busy: Vec<u32> = self.owed.iter().filter(|(_, owed)| !owed.is_empty()).map(|(conn, _)| *conn).collect();
        let Some(conn) = busy.get(self.chance.below(busy.len())).copied() else { return };
        let owed = self.owed.get_mut(&conn).and_then(VecDeque::pop_front).expect("it owes something");
        let node = self.bench.nodes.iter().copied().find(|node| node.to_bits() == conn).expect("it is open");
        self.bench.send(node, format!("+{}:{}\r\n", owed.client, owed.number).as_bytes());
    }

    fn hear(&mut self) {
        for (client, conn) in self.clients.clone().into_iter().enumerate() {
            let heard = self.bench.heard(conn);
            self.answered[client].push_str(&heard);
        }
    }
}

#[test]
fn requests_and_replies_of_each_client_stay_in_order() {
    for seed in 1..40 {
        let (bench, _) = warm(LaneLimits::default());
        let mut mixed = Mixed {
            bench,
            chance: Chance(seed),
            clients: Vec::new(),
            unread: vec![Vec::new(); 4],
            sent: vec![0; 4],
            seen: vec![0; 4],
            answered: vec![String::new(); 4],
            owed: BTreeMap::new(),
        };
        mixed.clients = (0..4).map(|_| mixed.bench.accept()).collect();
        for _ in 0..400 {
            let client = mixed.chance.below(4);
            match mixed.chance.below(5) {
                0 => mixed.send(client),
                1 if mixed.chance.one_in(10) => mixed.bench.wait(limits::SCRIPT_AHEAD_US),
                _ => mixed.answer(),
            }
            mixed.look();
        }
        while mixed.owed.values().any(|owed| !owed.is_empty()) {
            mixed.answer();
            mixed.look();
        }
        mixed.hear();
        for client in 0..4 {
            let all: String = (0..mixed.sent[client]).map(|number| format!("+{client}:{number}\r\n")).collect();
            assert_eq!(mixed.answered[client], all, "seed {seed}, client {client}");
        }
    }
}

/// Scripts that run where routes do not lead a user are not its own.
#[test]
fn the_order_to_stop_goes_where_routes_lead_its_user() {
    let base = with_an_own_connection();
    let route = base.routes.route(0).clone();
    let when = When { users: ["ann".into()].into(), ..When::default() };
    let anns = Route { name: "anns".into(), when, pool: 0, pool_mode: None, ..route.clone() };
    let routes = Arc::new(Routes::new(base.routes.pools().to_vec(), vec![anns, route]).unwrap());
    let access = users(&[("ann", UserLimits::default())]);
    let mut bench = Bench::of_many(Config { routes, ..base }, 1, access);
    for (user, nodes) in [("ann", &[0][..]), ("default", &[0, 1])] {
        let client = bench.accept();
        if user == "ann" {
            assert_eq!(bench.answer(client, &["AUTH", "ann", "secret"]), "+OK\r\n");
        }
        for order in ["SCRIPT", "FUNCTION"] {
            bench.ask(client, &[order, "KILL"]);
            bench.connect();
            let mut asked = Vec::new();
            for node in bench.nodes.clone() {
                if requests(&bench.heard(node)).contains(&format!("{order} KILL")) {
                    asked.push(bench.node_of(node));
                    bench.send(node, b"-NOTBUSY No scripts in execution right now.\r\n");
                }
            }
            asked.sort_unstable();
            assert_eq!(asked, nodes, "{user} {order}");
            assert!(bench.heard(client).starts_with("-NOTBUSY "), "{user} {order}");
        }
    }
}
