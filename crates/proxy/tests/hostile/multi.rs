//! Nodes that refuse MULTI, or do not end a transaction with EXEC: nothing of a block runs outside of one, and no other client's
//! requests become part of it.

use crate::NoEngine;
use crate::bench::{Bench, request, requests};
use crate::support::config;
use respool_connection::{ConnId, Machine};
use respool_proxy::{Config, LaneLimits, PoolMode, limits};

const NOPERM: &str = "-NOPERM this user has no permissions to run the 'multi' command\r\n";
const ABORTED: &str =
    "-EXECABORT Transaction discarded because of: NOPERM this user has no permissions to run the 'multi' command\r\n";

/// A proxy in this mode, and the shared connection to its only node.
fn in_mode(mode: PoolMode) -> (Bench<NoEngine>, ConnId) {
    let lanes = LaneLimits { mode, blocking_max: 1, ..LaneLimits::default() };
    let mut bench = Bench::proxy(Config { lanes, ..config(1, 1) });
    let client = bench.accept();
    if mode == PoolMode::Session {
        bench.ask(client, &["GET", "warm"]);
    }
    bench.ask(client, &["GET", "warm"]);
    let node = bench.connect()[0];
    bench.heard(node);
    bench.send(node, b"$-1\r\n");
    bench.heard(client);
    (bench, node)
}

fn ask_all(bench: &mut Bench<NoEngine>, client: ConnId, words: &[&[&str]]) -> String {
    let all: Vec<u8> = words.iter().flat_map(|words| request(words)).collect();
    bench.send(client, &all);
    bench.heard(client)
}

fn said(bench: &mut Bench<NoEngine>, node: ConnId) -> Vec<String> {
    bench.wait(2_000);
    bench.turn(|_| ());
    requests(&bench.heard(node))
}

const BLOCK: &[&[&str]] = &[&["MULTI"], &["INCR", "n"], &["INCR", "n"], &["EXEC"]];

/// The client's transaction has been sent on this connection, which took MULTI before.
fn with_block(bench: &mut Bench<NoEngine>, node: ConnId) -> ConnId {
    let client = bench.accept();
    ask_all(bench, client, BLOCK);
    assert!(bench.take_multi(node));
    assert_eq!(said(bench, node), ["MULTI", "INCR n", "INCR n", "EXEC"]);
    client
}

#[test]
fn nothing_of_a_transaction_is_sent_where_multi_is_refused() {
    for end in ["-ERR EXEC without MULTI\r\n", "-NOPERM nor that\r\n"] {
        let (mut bench, node) = in_mode(PoolMode::Multiplex);
        let (client, other) = (bench.accept(), bench.accept());
        for _ in 0..2 {
            ask_all(&mut bench, client, &[BLOCK, &[&["GET", "behind"]]].concat());
            assert_eq!(said(&mut bench, node), ["MULTI", "EXEC"], "nor what is behind");
            bench.send(node, format!("{NOPERM}{end}").as_bytes());
            assert_eq!(bench.heard(client), ABORTED);
            bench.ask(other, &["GET", "k"]);
            assert_eq!(said(&mut bench, node), ["GET behind", "GET k"]);
            bench.send(node, b"$6\r\nbehind\r\n$1\r\nk\r\n");
            assert_eq!(bench.heard(client) + &bench.heard(other), "$6\r\nbehind\r\n$1\r\nk\r\n");
        }
    }
}

#[test]
fn the_second_transaction_on_a_connection_takes_one_round_trip() {
    for mode in [PoolMode::Multiplex, PoolMode::Transaction, PoolMode::Session] {
        let (mut bench, shared) = in_mode(mode);
        let client = bench.accept();
        let mut node = shared;
        for round in 0..3 {
            ask_all(&mut bench, client, BLOCK);
            if round == 0 && mode != PoolMode::Multiplex {
                node = bench.connect()[0];
            } else if round == 0 {
                assert!(bench.take_multi(node));
            }
            assert_eq!(said(&mut bench, node), ["MULTI", "INCR n", "INCR n", "EXEC"], "{mode:?}, round {round}");
            bench.send(node, b"+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:1\r\n:2\r\n");
            assert_eq!(bench.heard(client), "*2\r\n:1\r\n:2\r\n");
        }
        assert!(bench.dialling.is_empty(), "{mode:?}");
    }
}

#[test]
fn an_exec_that_ends_no_transaction_costs_the_connection() {
    for refusal in
        ["BUSY Redis is busy running a script", "NOPERM no", "LOADING Redis is loading", "OOM no", "ERR what"]
    {
        let (mut bench, node) = in_mode(PoolMode::Multiplex);
        let client = with_block(&mut bench, node);
        let other = bench.accept();
        bench.ask(other, &["GET", "k"]);
        said(&mut bench, node);
        bench.send(node, format!("+OK\r\n+QUEUED\r\n+QUEUED\r\n-{refusal}\r\n+QUEUED\r\n").as_bytes());
        assert_eq!(bench.heard(client), format!("-EXECABORT Transaction discarded because of: {refusal}\r\n"));
        assert!(bench.heard(other).starts_with("-ERR node node-0 "), "{refusal}");
        assert!(!bench.nodes.contains(&node), "{refusal}");
    }
}

#[test]
fn an_exec_that_ends_its_transaction_costs_nothing() {
    for (replies, heard) in [
        ("+QUEUED\r\n+QUEUED\r\n*2\r\n:1\r\n:2\r\n", "*2\r\n:1\r\n:2\r\n"),
        ("-OOM no\r\n+QUEUED\r\n-EXECABORT Transaction discarded because of previous errors.\r\n", "OOM no"),
        (
            "-READONLY no\r\n-READONLY no\r\n-EXECABORT Transaction discarded because of previous errors.\r\n",
            "READONLY no",
        ),
        ("+QUEUED\r\n+QUEUED\r\n-EXECABORT Transaction discarded because of: BUSY\r\n", "because of: BUSY"),
    ] {
        let (mut bench, node) = in_mode(PoolMode::Multiplex);
        let client = with_block(&mut bench, node);
        bench.send(node, format!("+OK\r\n{replies}").as_bytes());
        assert!(bench.heard(client).contains(heard), "{replies}");
        assert!(bench.nodes.contains(&node), "{replies}");
    }
}

#[test]
fn a_transaction_that_is_too_late_is_still_watched() {
    for (replies, stays) in [("*2\r\n:1\r\n:2\r\n", true), ("-BUSY still\r\n", false)] {
        let (mut bench, node) = in_mode(PoolMode::Multiplex);
        let client = with_block(&mut bench, node);
        bench.wait(600_000);
        bench.turn(|_| ());
        assert!(bench.heard(client).contains("did not answer within 500 ms"));
        let other = bench.accept();
        bench.ask(other, &["GET", "k"]);
        bench.send(node, format!("+OK\r\n+QUEUED\r\n+QUEUED\r\n{replies}").as_bytes());
        assert_eq!(bench.nodes.contains(&node), stays, "{replies}");
        assert_eq!(bench.heard(client), "", "it has its reply");
        if stays {
            bench.send(node, b"$1\r\nv\r\n");
            assert_eq!(bench.heard(other), "$1\r\nv\r\n");
        }
    }
}

#[test]
fn a_trial_that_is_too_late_is_still_watched() {
    for (replies, stays) in [("+OK\r\n*0\r\n", true), ("+OK\r\n-BUSY still\r\n", false)] {
        let (mut bench, node) = in_mode(PoolMode::Multiplex);
        let client = bench.accept();
        ask_all(&mut bench, client, BLOCK);
        bench.wait(600_000);
        bench.turn(|_| ());
        let heard = bench.heard(client);
        assert!(
            heard.contains("did not answer") && heard.ends_with("; the transaction was not executed\r\n"),
            "{heard}"
        );
        said(&mut bench, node);
        bench.send(node, replies.as_bytes());
        assert_eq!(bench.nodes.contains(&node), stays, "{replies}");
        assert_eq!(said(&mut bench, node), Vec::<String>::new(), "and nothing of it is sent afterwards");
    }
}

#[test]
fn a_node_that_stops_taking_multi_is_asked_before_a_block() {
    let (mut bench, node) = in_mode(PoolMode::Multiplex);
    let client = with_block(&mut bench, node);
    bench.send(node, format!("{NOPERM}{NOPERM}{NOPERM}-ERR EXEC without MULTI\r\n").as_bytes());
    assert_eq!(bench.heard(client), ABORTED);
    ask_all(&mut bench, client, BLOCK);
    assert_eq!(said(&mut bench, node), ["MULTI", "EXEC"]);
    // If the requests are done one by one nevertheless, it cannot be told that they are not.
    bench.send(node, b"+OK\r\n*0\r\n");
    assert_eq!(said(&mut bench, node).len(), 4);
    bench.send(node, format!("{NOPERM}:1\r\n:2\r\n-ERR EXEC without MULTI\r\n").as_bytes());
    assert!(bench.heard(client).contains("it may or may not have been executed"));
}

#[test]
fn a_connection_lost_during_a_trial_means_nothing_was_executed() {
    let (mut bench, node) = in_mode(PoolMode::Multiplex);
    let client = bench.accept();
    ask_all(&mut bench, client, &[BLOCK, &[&["CLIENT", "GETNAME"]]].concat());
    bench.turn(|worker| worker.handle_broken(node, "reset"));
    let heard = bench.heard(client);
    assert!(heard.contains("; the transaction was not executed\r\n") && heard.ends_with("$-1\r\n"), "{heard}");
    assert!(!heard.contains("may or may not"), "{heard}");
}

#[test]
fn multi_is_tried_with_watch_and_not_while_keys_are_watched() {
    let (mut bench, _) = in_mode(PoolMode::Multiplex);
    let client = bench.accept();
    bench.ask(client, &["WATCH", "n"]);
    let conn = bench.dialling[0];
    bench.nodes.push(conn);
    bench.turn(|worker| worker.handle_connected(conn));
    std::mem::take(&mut bench.dialling);
    bench.heard(conn);
    bench.send(conn, b"+PONG\r\n");
    assert_eq!(said(&mut bench, conn), ["MULTI", "EXEC", "WATCH n"], "in one round trip");
    bench.send(conn, format!("{NOPERM}-ERR EXEC without MULTI\r\n+OK\r\n").as_bytes());
    assert_eq!(bench.heard(client), "+OK\r\n");
    ask_all(&mut bench, client, BLOCK);
    assert_eq!(bench.heard(client), "", "all is heard");
    assert_eq!(said(&mut bench, conn), ["UNWATCH"], "EXEC would have ended the watching");
}

#[test]
fn a_transaction_that_would_wait_runs_on_its_own_connection() {
    let (mut bench, shared) = in_mode(PoolMode::Multiplex);
    let client = bench.accept();
    ask_all(&mut bench, client, &[&["MULTI"], &["BLPOP", "q", "0"], &["EXEC"]]);
    let own = bench.connect();
    assert_eq!(own.len(), 1);
    assert_eq!(said(&mut bench, shared), Vec::<String>::new());
    assert_eq!(said(&mut bench, own[0]), ["MULTI", "BLPOP q 0", "EXEC"]);
    bench.send(own[0], b"+OK\r\n+QUEUED\r\n*1\r\n*-1\r\n");
    assert_eq!(bench.heard(client), "*1\r\n*-1\r\n");
}

/// One client waits on the only connection for that, and another one queues. Gives the second, and the connection on which
/// it is looked whether there is anything for it.
fn queued(bench: &mut Bench<NoEngine>) -> (ConnId, ConnId) {
    let (first, second) = (bench.accept(), bench.accept());
    bench.ask(first, &["BLPOP", "q1", "0"]);
    let waiting = bench.connect()[0];
    bench.send(waiting, b":7\r\n");
    bench.ask(second, &["BLPOP", "q2", "0"]);
    let looking = std::mem::take(&mut bench.dialling)[0];
    bench.nodes.push(looking);
    bench.turn(|worker| worker.handle_connected(looking));
    bench.heard(looking);
    bench.send(looking, b"+PONG\r\n");
    assert_eq!(said(bench, looking), ["MULTI", "EXEC"]);
    (second, looking)
}

#[test]
fn what_queues_to_wait_is_never_sent_where_multi_is_refused() {
    let (mut bench, shared) = in_mode(PoolMode::Multiplex);
    let (client, looking) = queued(&mut bench);
    bench.send(looking, format!("{NOPERM}-ERR EXEC without MULTI\r\n").as_bytes());
    for _ in 0..10 {
        bench.wait(limits::TRY_US);
        assert_eq!(said(&mut bench, looking), Vec::<String>::new());
    }
    // Its rights may be mended.
    bench.wait(limits::LOOK_AGAIN_US);
    assert_eq!(said(&mut bench, looking), ["MULTI", "EXEC"]);
    bench.send(looking, b"+OK\r\n*0\r\n");
    bench.wait(limits::TRY_US);
    assert_eq!(said(&mut bench, looking), ["MULTI", "BLPOP q2 1", "EXEC"], "and no longer than a second in any case");
    bench.send(looking, b"+OK\r\n+QUEUED\r\n*1\r\n*2\r\n$2\r\nq2\r\n$1\r\nv\r\n");
    assert_eq!(bench.heard(client), "*2\r\n$2\r\nq2\r\n$1\r\nv\r\n");
    assert_eq!(said(&mut bench, shared), Vec::<String>::new(), "nothing of it was on the shared connection");
}

#[test]
fn what_a_node_takes_out_although_it_refuses_multi_is_not_lost() {
    let (mut bench, _) = in_mode(PoolMode::Multiplex);
    let (client, looking) = queued(&mut bench);
    bench.send(looking, b"+OK\r\n*0\r\n");
    bench.wait(limits::TRY_US);
    assert_eq!(said(&mut bench, looking), ["MULTI", "BLPOP q2 1", "EXEC"]);
    bench.send(looking, format!("{NOPERM}*2\r\n$2\r\nq2\r\n$1\r\nv\r\n-ERR EXEC without MULTI\r\n").as_bytes());
    assert_eq!(bench.heard(client), "*2\r\n$2\r\nq2\r\n$1\r\nv\r\n");
}

#[test]
fn the_polling_connection_is_given_back_with_the_queues_end() {
    let (mut bench, _) = in_mode(PoolMode::Multiplex);
    let (client, looking) = queued(&mut bench);
    bench.send(looking, b"+OK\r\n*0\r\n");
    bench.turn(|worker| worker.handle_broken(client, "reset"));
    bench.wait(limits::TRY_US);
    bench.turn(|_| ());
    // Another client has it next.
    let other = bench.accept();
    bench.ask(other, &["WATCH", "k"]);
    assert_eq!(said(&mut bench, looking), ["WATCH k"]);
}

/// It has been asked for as a whole, like any other request that has been read.
#[test]
fn a_transaction_runs_though_its_client_left_during_the_trial() {
    for mode in [PoolMode::Multiplex, PoolMode::Transaction] {
        let (mut bench, _) = in_mode(mode);
        let client = bench.accept();
        ask_all(&mut bench, client, BLOCK);
        bench.turn(|worker| worker.handle_broken(client, "reset by peer"));
        bench.connect();
        let nodes = bench.nodes.clone();
        nodes.into_iter().for_each(|node| _ = bench.take_multi(node));
        let (node, _) = bench.who_heard("INCR n").unwrap_or_else(|| panic!("{mode:?}"));
        bench.send(node, b"+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:1\r\n:2\r\n");
        for remains in bench.worker.remains() {
            assert_ne!(remains.0, "tasks");
        }
        assert_eq!(bench.shared.ledger.held_bytes(), 0);
    }
}

/// What the connection of a block has come to when its client vanishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Vanishes {
    WhileItIsDialled,
    WhileMultiIsTried,
    /// The node has not read it, maybe: what it has not read of a connection that is closed it drops.
    WhenItIsWritten,
}

#[test]
fn a_block_is_executed_though_its_client_has_vanished() {
    let select: &[&[&str]] = &[&["MULTI"], &["INCR", "n"], &["SELECT", "1"], &["EXEC"]];
    for mode in [PoolMode::Multiplex, PoolMode::Transaction, PoolMode::Session] {
        for when in [Vanishes::WhileItIsDialled, Vanishes::WhileMultiIsTried, Vanishes::WhenItIsWritten] {
            for block in [BLOCK, select] {
                let mut bench =
                    Bench::proxy(Config { lanes: LaneLimits { mode, ..LaneLimits::default() }, ..config(1, 1) });
                let client = bench.accept();
                ask_all(&mut bench, client, block);
                let dialled = std::mem::take(&mut bench.dialling);
                if when == Vanishes::WhileItIsDialled {
                    bench.cut(client);
                }
                let mut all = Vec::new();
                for conn in &dialled {
                    bench.nodes.push(*conn);
                    bench.turn(|worker| worker.handle_connected(*conn));
                    bench.heard(*conn);
                    bench.send(*conn, b"+PONG\r\n");
                    all.extend(said(&mut bench, *conn));
                }
                assert_eq!(all, ["MULTI", "EXEC"], "{mode:?} {when:?}");
                if when == Vanishes::WhileMultiIsTried {
                    bench.cut(client);
                }
                let conn = *dialled.last().expect("it has a connection");
                bench.send(conn, b"+OK\r\n*0\r\n");
                let words: Vec<String> = block.iter().map(|words| words.join(" ")).collect();
                assert_eq!(said(&mut bench, conn), words, "{mode:?} {when:?}");
                if when == Vanishes::WhenItIsWritten {
                    bench.cut(client);
                }
                assert!(!bench.closed.contains(&conn), "{mode:?} {when:?}");
                bench.send(conn, b"+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:1\r\n+OK\r\n");
                let back: &[&str] = if block == select { &["SELECT 0"] } else { &[] };
                assert_eq!(said(&mut bench, conn), back, "{mode:?} {when:?}");
            }
        }
    }
}
