//! Databases, dialects and names at nodes: clients that share a connection share all three, whatever becomes of the others.

use crate::bench::{Bench, request, requests, users};
use crate::support::config;
use respool_connection::{Credentials, Machine};
use respool_proxy::{Config, PoolMode, Timeouts, UserLimits, limits};

#[test]
fn leftover_work_of_a_gone_client_does_not_reach_the_next_one() {
    let limits = UserLimits { pool_mode: Some(PoolMode::Session), ..UserLimits::default() };
    let mut bench = Bench::of_many(config(1, 1), 1, users(&[("alone", limits)]));
    let leaving = bench.accept();
    assert_eq!(bench.answer(leaving, &["AUTH", "alone", "secret"]), "+OK\r\n");
    bench.ask(leaving, &["EVAL", "return 1", "0"]);
    let own = bench.connect()[0];
    bench.send(own, b":1\r\n");
    bench.ask(leaving, &["EVALSHA", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db", "0"]);
    // The node does not know the script, and in the same turn the client is gone.
    bench.turn(|worker| {
        let reply = b"-NOSCRIPT No matching script.\r\n";
        worker.read_buffer(own).expect("it is read")[..reply.len()].copy_from_slice(reply);
        worker.handle_read(own, reply.len());
        worker.handle_broken(leaving, "reset");
    });
    bench.connect();
    let coming = bench.accept();
    bench.ask(coming, &["SELECT", "1"]);
    bench.connect();
    assert_eq!(bench.heard(coming), "+OK\r\n");
    bench.send(coming, &request(&["GET", "key"]));
    bench.connect();
    let (_, greeting) = bench.who_heard("GET key").expect("it is asked");
    assert!(greeting.contains("SELECT 1"), "the key was asked for in another database: {greeting:?}");
}

#[test]
fn databases_that_are_asked_for_once_do_not_cost_others_theirs() {
    let mut bench = Bench::proxy(Config { databases: 1, ..config(1, 1) });
    let (curious, other) = (bench.accept(), bench.accept());
    for database in 1..200 {
        // So that the dial is not put off.
        bench.wait(10_000);
        bench.ask(curious, &["SELECT", &database.to_string()]);
        for conn in std::mem::take(&mut bench.dialling) {
            bench.turn(|worker| worker.handle_connected(conn));
            // Nodes have 16 of them.
            bench.send(conn, if database < 16 { b"+OK\r\n+PONG\r\n" } else { b"-ERR DB index is out of range\r\n" });
        }
        let reply = if database < 16 { "+OK\r\n" } else { "-ERR DB index is out of range\r\n" };
        assert_eq!(bench.heard(curious), reply, "SELECT {database}");
    }
    assert!(bench.answer(other, &["HELLO", "3"]).starts_with('%'));
    bench.ask(other, &["SELECT", "7"]);
    assert_eq!(bench.heard(other), "+OK\r\n");
    bench.ask(other, &["GET", "key"]);
    bench.connect();
    let (node, greeting) = bench.who_heard("GET key").expect("it is asked");
    assert!(greeting.contains("HELLO 3SELECT 7"), "{greeting}");
    bench.send(node, b"$5\r\nvalue\r\n");
    assert_eq!(bench.heard(other), "$5\r\nvalue\r\n");
}

/// Users who have connections of their own to nodes, under their own names and with this password there.
fn node_users(names: &[&'static str], connections: Option<usize>) -> std::sync::Arc<respool_proxy::Access> {
    let of = |name: &&'static str| {
        let credentials = Credentials { username: Some((*name).to_owned()), password: "at-the-node".to_owned().into() };
        let limits = UserLimits { node_credentials: Some(credentials.into()), connections, ..UserLimits::default() };
        (*name, limits)
    };
    users(&names.iter().map(of).collect::<Vec<_>>())
}

#[test]
fn a_user_refused_at_login_is_not_that_user_at_nodes() {
    let mut bench = Bench::of_many(config(1, 1), 1, node_users(&["ann"], Some(1)));
    let (first, second) = (bench.accept(), bench.accept());
    assert_eq!(bench.answer(first, &["AUTH", "ann", "secret"]), "+OK\r\n");
    let refusal = bench.answer(second, &["AUTH", "ann", "secret"]);
    assert_eq!(refusal, "-ERR max number of clients of this user reached\r\n");
    assert!(bench.answer(second, &["GET", "key"]).starts_with("-NOAUTH"), "it asked to be another user");
    assert_eq!(bench.answer(second, &["RESET"]), "+RESET\r\n");
    assert_eq!(bench.answer(second, &["ACL", "WHOAMI"]), "$7\r\ndefault\r\n");
    bench.ask(second, &["GET", "key"]);
    bench.connect();
    let (_, greeting) = bench.who_heard("GET key").expect("it is asked");
    assert_eq!(greeting, "PING", "it is the proxy's own name that counts");
}

#[test]
fn a_node_that_does_not_know_one_user_is_there_for_the_others() {
    let mut bench = Bench::of_many(config(1, 1), 1, node_users(&["ann"], None));
    let (plain, ann) = (bench.accept(), bench.accept());
    assert_eq!(bench.answer(ann, &["AUTH", "ann", "secret"]), "+OK\r\n");
    bench.ask(ann, &["GET", "hers"]);
    let conn = bench.dialling.pop().expect("she has a connection of her own");
    bench.turn(|worker| worker.handle_connected(conn));
    bench.send(conn, b"-WRONGPASS invalid username-password pair or user is disabled.\r\n");
    assert!(bench.heard(ann).contains("WRONGPASS"));
    bench.ask(plain, &["GET", "mine"]);
    bench.connect();
    assert!(bench.who_heard("GET mine").is_some(), "{}", bench.heard(plain));
}

#[test]
fn a_block_whose_client_has_gone_runs_in_that_clients_database() {
    let base = config(1, 1);
    let timeouts = Timeouts { response_us: 3_600_000_000, silence_us: 3_600_000_000, ..base.timeouts };
    let mut bench = Bench::proxy(Config { databases: 1, timeouts, ..base });
    let (leaving, curious) = (bench.accept(), bench.accept());
    bench.ask(leaving, &["SELECT", "1"]);
    let there = bench.connect()[0];
    assert_eq!(bench.heard(leaving), "+OK\r\n");
    for words in [&["MULTI"][..], &["SET", "k", "v"], &["EXEC"]] {
        bench.ask(leaving, words);
    }
    bench.wait(2_000);
    bench.turn(|_| ());
    assert_eq!(requests(&bench.heard(there)), ["MULTI", "EXEC"], "it is tried");
    // As many databases as there are class numbers; no client is in them any more.
    for database in 2..limits::CLASSES_MAX {
        bench.wait(10_000);
        bench.ask(curious, &["SELECT", &database.to_string()]);
        bench.connect();
        assert_eq!(bench.heard(curious), "+OK\r\n", "SELECT {database}");
    }
    // The node accepts MULTI, the client disconnects and another client needs a class number, in one turn.
    let (reply, select) = (b"+OK\r\n*0\r\n", request(&["SELECT", &limits::CLASSES_MAX.to_string()]));
    bench.turn(|worker| {
        for (conn, bytes) in [(there, &reply[..]), (curious, &select)] {
            worker.read_buffer(conn).expect("it is read")[..bytes.len()].copy_from_slice(bytes);
            worker.handle_read(conn, bytes.len());
            if conn == there {
                worker.handle_broken(leaving, "gone");
            }
        }
    });
    bench.connect();
    assert_eq!(bench.heard(curious), "+OK\r\n");
    let (_, greeting) = bench.who_heard("SET k v").expect("it is sent");
    assert!(greeting.contains("SELECT 1") && !greeting.contains("SELECT 6"), "{greeting:?}");
}
