//! The event loop has no turn for a while: the process was not scheduled, or was stopped. That is not held against any node.

use crate::bench::{Bench, request, requests};
use crate::support::config;
use respool_connection::Machine;
use respool_proxy::{Budgets, Config, LaneLimits, Timeouts};

/// Longer than a request may take.
const STALL_US: u64 = 700_000;
const LATE: &str = "-ERR node node-0 did not answer within 500 ms; the command may or may not have been executed\r\n";

#[test]
fn what_was_written_before_a_stall_has_its_time_behind_it() {
    let (mut bench, client, node) = Bench::connected(config(1, 1));
    bench.ask(client, &["GET", "key"]);
    bench.stall(STALL_US);
    bench.turn(|_| ());
    assert_eq!(bench.worker.next_wakeup_us().filter(|at_us| *at_us > bench.now_us()), None, "the next turn is at once");
    bench.turn(|_| ());
    bench.wait(400_000);
    bench.turn(|_| ());
    assert_eq!(bench.heard(client), "", "the node has had 400 ms");
    bench.send(node, b"$1\r\nx\r\n");
    assert_eq!(bench.heard(client), "$1\r\nx\r\n");
    bench.ask(client, &["GET", "key"]);
    bench.stall(STALL_US);
    bench.turn(|_| ());
    bench.wait(600_000);
    bench.turn(|_| ());
    assert_eq!(bench.heard(client), LATE, "it has had its time");
}

#[test]
fn what_came_during_a_stall_is_read_before_deadlines_count() {
    let (mut bench, client, node) = Bench::connected(config(1, 1));
    bench.ask(client, &["GET", "key"]);
    bench.wait(100_000);
    bench.turn(|_| ());
    bench.stall(STALL_US);
    // The kernel is asked before its answer is known: what it tells of comes with the next turn.
    bench.turn(|_| ());
    bench.send(node, b"$1\r\nx\r\n");
    assert_eq!(bench.heard(client), "$1\r\nx\r\n");
}

#[test]
fn a_stall_of_the_machine_takes_no_time_from_its_nodes() {
    let (mut bench, client, node) = Bench::connected(config(1, 1));
    bench.ask(client, &["GET", "key"]);
    for _ in 0..4 {
        bench.wait(25_000);
        bench.turn(|_| ());
    }
    bench.stall(STALL_US);
    for _ in 0..12 {
        bench.turn(|_| ());
        assert_eq!(bench.heard(client), "", "the node did not run either, and goes on now");
        bench.wait(25_000);
    }
    bench.send(node, b"$1\r\nx\r\n");
    assert_eq!(bench.heard(client), "$1\r\nx\r\n");
    bench.ask(client, &["GET", "key"]);
    bench.wait(100_000);
    bench.turn(|_| ());
    bench.stall(STALL_US);
    bench.turn(|_| ());
    bench.turn(|_| ());
    bench.wait(450_000);
    bench.turn(|_| ());
    assert_eq!(bench.heard(client), LATE, "it has had its time before the stall and behind it");
}

#[test]
fn many_replies_of_a_stall_are_read_in_several_turns() {
    let budgets = Budgets { client_output_soft: 64 << 20, client_output_hard: 128 << 20, ..config(1, 1).budgets };
    let mut bench = Bench::proxy(Config { budgets, ..config(1, 1) });
    let (client, count, value) = (bench.accept(), 1_000, "x".repeat(300));
    bench.ask(client, &["GET", "key"]);
    let node = bench.connect()[0];
    bench.send(node, b"$-1\r\n");
    bench.heard(client);
    bench.heard(node);
    bench.send(client, &request(&["GET", "key"]).repeat(count));
    assert_eq!(requests(&bench.heard(node)).len(), count);
    bench.wait(100_000);
    bench.turn(|_| ());
    bench.stall(STALL_US);
    let reply = format!("$300\r\n{value}\r\n");
    let mut unread = reply.repeat(count).into_bytes();
    let mut turns = 0;
    while !unread.is_empty() {
        bench.turn(|worker| {
            let buffer = worker.read_buffer(node).expect("it is read");
            let taken = unread.len().min(buffer.len());
            buffer[..taken].copy_from_slice(&unread[..taken]);
            worker.handle_read(node, taken);
            unread.drain(..taken);
        });
        turns += 1;
    }
    assert!(turns > 3, "{turns}");
    let heard = bench.heard(client);
    assert_eq!(heard.matches("did not answer").count(), 0);
    assert_eq!(heard.len(), reply.len() * count);
}

#[test]
fn replies_are_late_although_every_turn_is_and_brings_more() {
    let budgets = Budgets { client_output_soft: 64 << 20, client_output_hard: 128 << 20, ..config(1, 1).budgets };
    let mut bench = Bench::proxy(Config { budgets, ..config(1, 1) });
    let (client, count) = (bench.accept(), 100_000);
    bench.ask(client, &["GET", "key"]);
    let node = bench.connect()[0];
    bench.send(node, b"$-1\r\n");
    bench.heard(client);
    bench.send(client, &request(&["GET", "key"]).repeat(count));
    let count = requests(&bench.heard(node)).len();
    let replies = format!("$600\r\n{}\r\n", "x".repeat(600)).repeat(count).into_bytes();
    let mut unread = &replies[..];
    for stalled_us in (0..=3_500_000).step_by(100_000) {
        bench.stall(100_000);
        bench.turn(|worker| {
            let buffer = worker.read_buffer(node).expect("it is read");
            let taken = unread.len().min(buffer.len());
            buffer[..taken].copy_from_slice(&unread[..taken]);
            worker.handle_read(node, taken);
            unread = &unread[taken..];
        });
        let heard = bench.heard(client);
        if heard.contains(LATE) {
            return assert!((2_300_000..2_700_000).contains(&stalled_us), "after {stalled_us} us");
        }
    }
    panic!("{} bytes of replies were never late", unread.len());
}

#[test]
fn a_worker_that_is_always_late_keeps_deadlines_nevertheless() {
    let (mut bench, client, _) = Bench::connected(config(1, 1));
    bench.ask(client, &["GET", "key"]);
    // Half of each turn is a stall, which does not count.
    for stalled_us in (0..).step_by(100_000).take_while(|us| *us <= 3_500_000) {
        bench.stall(100_000);
        bench.turn(|_| ());
        let heard = bench.heard(client);
        if heard == LATE {
            return assert!((1_400_000..1_700_000).contains(&stalled_us), "{stalled_us}");
        }
        assert_eq!(heard, "");
    }
    panic!("no deadline was kept");
}

#[test]
fn a_silent_node_is_found_however_late_every_turn_is() {
    const PATIENCE_US: u64 = 100_000;
    for late_us in [30_000, 100_000, 1_000_000] {
        let base = config(1, 1);
        let timeouts = Timeouts { probe_idle_us: PATIENCE_US, probe_patience_us: PATIENCE_US, ..base.timeouts };
        let mut bench = Bench::proxy(Config { timeouts, ..base });
        let client = bench.accept();
        bench.ask(client, &["GET", "key"]);
        let node = bench.connect()[0];
        bench.send(node, b"$-1\r\n");
        let is_asked = (0..20).any(|_| {
            bench.stall(late_us);
            bench.turn(|_| ());
            requests(&bench.heard(node)) == ["PING"]
        });
        assert!(is_asked, "{late_us}: whether it is there");
        let asked_us = bench.now_us();
        while bench.shared.counters[0].nodes_suspect.value() == 0 {
            bench.stall(late_us);
            bench.turn(|_| ());
            let age_us = bench.now_us() - asked_us;
            // Five times the patience, the turn in which it was asked, and one that checks nothing.
            assert!(age_us <= 5 * PATIENCE_US + 3 * late_us + 1_000, "{late_us}: {age_us}");
        }
    }
}

#[test]
fn a_subscription_before_a_stall_has_its_time_behind_it() {
    let mut bench = Bench::proxy(config(1, 1));
    let (client, other) = (bench.accept(), bench.accept());
    bench.subscribe(client, "first");
    bench.ask(other, &["SUBSCRIBE", "second"]);
    bench.stall(STALL_US);
    bench.turn(|_| ());
    bench.turn(|_| ());
    bench.wait(300_000);
    bench.turn(|_| ());
    assert_eq!(bench.heard(other), "");
    bench.wait(300_000);
    bench.turn(|_| ());
    assert_eq!(bench.heard(other), LATE);
}

#[test]
fn a_dial_before_a_stall_has_its_time_behind_it() {
    let mut bench = Bench::proxy(config(1, 1));
    let client = bench.accept();
    bench.ask(client, &["GET", "key"]);
    bench.stall(10_000_000);
    bench.turn(|_| ());
    bench.turn(|_| ());
    assert_eq!(bench.heard(client), "");
    let node = bench.connect()[0];
    bench.send(node, b"$1\r\nx\r\n");
    assert_eq!(bench.heard(client), "$1\r\nx\r\n");
}

#[test]
fn a_request_that_waits_at_its_node_has_its_time_behind_a_stall() {
    let mut bench = Bench::proxy(config(1, 1));
    let client = bench.accept();
    bench.ask(client, &["BLPOP", "q", "1"]);
    let lane = bench.connect()[0];
    bench.send(lane, b":7\r\n");
    assert_eq!(requests(&bench.heard(lane)), ["CLIENT ID", "BLPOP q 1"]);
    // It is sent at the end of these.
    bench.stall(STALL_US);
    bench.turn(|_| ());
    bench.turn(|_| ());
    bench.wait(1_100_000);
    bench.turn(|_| ());
    assert!(bench.closed.is_empty(), "its second has just been over");
    bench.send(lane, b"*2\r\n$1\r\nq\r\n$1\r\nx\r\n");
    assert_eq!(bench.heard(client), "*2\r\n$1\r\nq\r\n$1\r\nx\r\n");
}

#[test]
fn what_queues_to_wait_is_asked_behind_a_stall() {
    let lanes = LaneLimits { blocking_max: 1, ..LaneLimits::default() };
    let mut bench = Bench::proxy(Config { lanes, ..config(1, 1) });
    let (first, client) = (bench.accept(), bench.accept());
    bench.ask(first, &["BLPOP", "other", "0"]);
    let lane = bench.connect()[0];
    bench.send(lane, b":7\r\n");
    bench.ask(client, &["BLPOP", "q", "0.1"]);
    bench.stall(STALL_US);
    bench.turn(|_| ());
    bench.turn(|_| ());
    assert_eq!(bench.heard(client), "", "it is looked for once more");
    let look = bench.connect()[0];
    bench.turn(|_| ());
    bench.wait(10_000);
    bench.turn(|_| ());
    assert_eq!(requests(&bench.heard(look)), ["MULTI", "BLPOP q 1", "EXEC"]);
    bench.send(look, b"+OK\r\n+QUEUED\r\n*1\r\n*-1\r\n");
    assert_eq!(bench.heard(client), "*-1\r\n");
}

/// Its request was read in the turn before the stall, and could not be answered earlier.
#[test]
fn a_half_closed_client_gets_its_element_before_a_stall() {
    let mut bench = Bench::proxy(config(1, 1));
    let client = bench.accept();
    bench.ask(client, &["BLPOP", "q", "0"]);
    let lane = bench.connect()[0];
    bench.send(lane, b":7\r\n");
    assert_eq!(requests(&bench.heard(lane)), ["CLIENT ID", "BLPOP q 0"]);
    let element = "*2\r\n$1\r\nq\r\n$1\r\nx\r\n";
    bench.send(lane, element.as_bytes());
    assert_eq!(bench.heard(client), element);
    bench.ask(client, &["BLPOP", "q", "0"]);
    assert_eq!(requests(&bench.heard(lane)), ["BLPOP q 0"]);
    bench.stall(STALL_US);
    bench.turn(|worker| {
        worker.handle_hung_up(client);
        worker.handle_ended(client);
    });
    bench.send(lane, element.as_bytes());
    assert_eq!(bench.heard(client), element);
}

/// Replies that are made here are large and their requests small. A client that takes each reply as soon as it is written could be
/// answered on and on, and others would wait for all of it.
#[test]
fn a_greedy_client_is_answered_in_several_turns() {
    const ASKED: usize = 400;
    let mut bench = Bench::proxy(config(2, 1));
    let (greedy, other) = (bench.accept(), bench.accept());
    bench.order.clear();
    bench.send(greedy, &request(&["COMMAND", "DOCS"]).repeat(ASKED));
    let (mut writes, mut turns) = (Vec::new(), 1);
    loop {
        writes.push(bench.order.drain(..).filter(|conn| *conn == greedy).count());
        if writes.iter().sum::<usize>() >= ASKED {
            break;
        }
        assert!(bench.worker.next_wakeup_us().is_some_and(|at_us| at_us <= bench.now_us()), "the next turn is at once");
        turns += 1;
        assert!(turns <= ASKED, "it is answered to the end");
        assert_eq!(bench.answer(other, &["PING"]), "+PONG\r\n");
    }
    assert!(writes.iter().all(|writes| *writes <= 20), "{writes:?} replies in each turn");
}
