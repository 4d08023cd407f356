//! A worker that is told to end waits for what its nodes have not answered, whether a client wants to hear of it or not.

use crate::NoEngine;
use crate::bench::{Bench, request, requests};
use crate::support::config;
use respool_connection::{ConnId, Machine, Service, WorkerId};
use respool_proxy::hooks::{Event, Hooks};
use respool_proxy::{Budgets, Config, LaneLimits, Mail, PoolMode, Timeouts};
use std::sync::{Arc, Mutex};

/// How clients leave requests behind whose replies do not matter to them.
#[derive(Clone, Copy, Debug)]
enum Manner {
    /// CLIENT REPLY OFF, and the client stays.
    Silent,
    /// CLIENT REPLY OFF, and then it closes its side.
    SilentAndEnded,
    /// It goes without having waited for its replies.
    Gone,
}

const MANNERS: [Manner; 3] = [Manner::Silent, Manner::SilentAndEnded, Manner::Gone];

/// A client has left eight writes behind, as many as may be outstanding at first, and the worker is told to end.
fn drains(bench: &mut Bench<NoEngine>, manner: Manner) {
    let client = bench.accept();
    let off = request(&["CLIENT", "REPLY", "OFF"]);
    let writes = request(&["SET", "k", "v"]).repeat(8);
    bench.send(client, &[if matches!(manner, Manner::Gone) { Vec::new() } else { off }, writes].concat());
    match manner {
        Manner::Silent => {}
        Manner::SilentAndEnded => bench.turn(|worker| worker.handle_ended(client)),
        Manner::Gone => bench.turn(|worker| worker.handle_broken(client, "gone")),
    }
    bench.turn(|worker| worker.handle_mail(Mail::Drain));
    pass(bench);
}

/// Some time passes, in which nodes can be dialled.
fn pass(bench: &mut Bench<NoEngine>) {
    for _ in 0..4 {
        bench.wait(30_000);
        bench.turn(|_| ());
        bench.connect();
    }
}

fn in_mode(mode: PoolMode) -> Config {
    let config = config(1, 1);
    // Ten requests may be outstanding.
    let budgets = Budgets { client_output_soft: 1 << 20, ..config.budgets };
    Config { lanes: LaneLimits { mode, ..LaneLimits::default() }, budgets, ..config }
}

/// The node that has been asked eight times, and has not answered.
fn asked(bench: &mut Bench<NoEngine>) -> ConnId {
    let nodes = bench.nodes.clone();
    let found = nodes.into_iter().find(|node| requests(&bench.heard(*node)).len() == 8);
    found.expect("all that was read is sent")
}

#[test]
fn a_drain_waits_for_what_no_client_waits_for() {
    for manner in MANNERS {
        for mode in [PoolMode::Multiplex, PoolMode::Session] {
            if matches!((manner, mode), (Manner::Gone, PoolMode::Session)) {
                // Its own connection goes with it, as at a server.
                continue;
            }
            let mut bench = Bench::proxy(in_mode(mode));
            drains(&mut bench, manner);
            let node = asked(&mut bench);
            bench.send(node, &b"+OK\r\n".repeat(7));
            pass(&mut bench);
            assert!(!bench.has_ended, "{manner:?} {mode:?}: one write has not been answered");
            bench.send(node, b"+OK\r\n");
            pass(&mut bench);
            assert!(bench.has_ended, "{manner:?} {mode:?}");
        }
    }
}

#[test]
fn writes_without_replies_are_read_however_many_there_are() {
    let mut bench = Bench::proxy(config(1, 1));
    let client = bench.accept();
    let [off, write, read] = [&["CLIENT", "REPLY", "OFF"][..], &["SET", "k", "v"], &["GET", "k"]].map(request);
    bench.send(client, &[off, write.repeat(500), read.repeat(500)].concat());
    pass(&mut bench);
    let node = bench.nodes[0];
    let asked = requests(&bench.heard(node));
    let writes = asked.iter().filter(|asked| *asked == "SET k v").count();
    assert_eq!((writes, asked.len()), (500, 501), "what a read is answered with may be large");
}

#[test]
fn a_drain_does_not_wait_for_a_node_that_cannot_be_had() {
    for manner in MANNERS {
        let mut bench = Bench::proxy(config(1, 1));
        let client = bench.accept();
        bench.send(client, &[request(&["CLIENT", "REPLY", "OFF"]), request(&["SET", "k", "v"])].concat());
        if matches!(manner, Manner::Gone) {
            bench.turn(|worker| worker.handle_broken(client, "gone"));
        }
        bench.turn(|worker| worker.handle_mail(Mail::Drain));
        assert!(!bench.has_ended, "it is being dialled");
        // The dial takes longer than it may.
        bench.wait(310_000);
        bench.turn(|_| ());
        bench.wait(30_000);
        bench.turn(|_| ());
        assert!(bench.has_ended, "{manner:?}");
    }
}

#[test]
fn what_the_end_of_a_drain_cuts_off_is_told() {
    for manner in MANNERS {
        let events = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&events);
        let hooks = Hooks::default().on_event(move |event| heard.lock().unwrap().push(event.clone()));
        let mut bench = Bench::with_hooks(in_mode(PoolMode::Multiplex), hooks);
        drains(&mut bench, manner);
        let node = asked(&mut bench);
        bench.send(node, &b"+OK\r\n".repeat(3));
        for _ in 0..20 {
            if !bench.has_ended {
                bench.wait(100_000);
                bench.turn(|_| ());
            }
        }
        assert!(bench.has_ended, "its time is over");
        assert_eq!(
            *events.lock().unwrap(),
            [Event::DrainCutOff { worker: WorkerId::FIRST, requests: 5 }],
            "{manner:?}"
        );
        assert_eq!(bench.shared.counters[0].requests_cut_off.value(), 5);
    }
}

#[test]
fn a_drain_that_has_nothing_to_wait_for_ends_at_once() {
    let mut bench = Bench::proxy(config(1, 1));
    let client = bench.accept();
    bench.ask(client, &["GET", "k"]);
    let node = bench.connect()[0];
    bench.send(node, b"$-1\r\n");
    bench.turn(|worker| worker.handle_mail(Mail::Drain));
    assert!(bench.has_ended && bench.closed.contains(&client));
}

#[test]
fn a_drain_does_not_wait_for_a_ping_that_was_not_answered() {
    let base = config(1, 1);
    let timeouts =
        Timeouts { probe_idle_us: 100_000, probe_patience_us: 100_000, silence_us: 60_000_000, ..base.timeouts };
    let mut bench = Bench::proxy(Config { timeouts, ..base });
    let client = bench.accept();
    bench.ask(client, &["GET", "k"]);
    let node = bench.connect()[0];
    bench.send(node, b"$-1\r\n");
    bench.heard(node);
    bench.wait(150_000);
    bench.turn(|_| ());
    bench.wait(2_000);
    bench.turn(|_| ());
    assert_eq!(requests(&bench.heard(node)), ["PING"]);
    // Longer than the request timeout.
    bench.wait(600_000);
    bench.turn(|_| ());
    bench.turn(|worker| worker.handle_mail(Mail::Drain));
    pass(&mut bench);
    assert!(bench.has_ended);
    assert_eq!(bench.shared.counters[0].requests_cut_off.value(), 0);
}

/// A request that was read as a whole and waits for room in its connection's queue is sent when the worker is told to end.
#[test]
fn a_request_that_waits_for_room_is_answered_before_the_end() {
    let base = config(1, 1);
    let mut bench =
        Bench::<NoEngine>::proxy(Config { budgets: Budgets { upstream_queue: 40_000, ..base.budgets }, ..base });
    let (greedy, modest) = (bench.accept(), bench.accept());
    bench.ask(greedy, &["GET", "warm"]);
    let node = bench.connect()[0];
    bench.heard(node);
    bench.send(node, b"$-1\r\n");
    bench.heard(greedy);
    bench.read_on(node, 0);
    bench.send(greedy, &request(&["SET", "a", &"v".repeat(15_000)]));
    bench.ask(modest, &["SET", "b", "1"]);
    bench.turn(|worker| worker.handle_mail(Mail::Drain));
    bench.read_on(node, usize::MAX);
    pass(&mut bench);
    let asked = requests(&bench.heard(node));
    assert_eq!(asked.last().map(String::as_str), Some("SET b 1"), "{} requests", asked.len());
    bench.send(node, &b"+OK\r\n".repeat(asked.len()));
    assert_eq!(bench.heard(modest), "+OK\r\n");
}
