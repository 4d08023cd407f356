//! What no reply and no request holds fills the process's budget: tracked keys, names of channels, clients that are spared. Others go
//! on to be served.

use crate::NoEngine;
use crate::bench::{Bench, request, requests};
use crate::support::config;
use respool_connection::{ConnId, Machine, Peer, Service};
use respool_proxy::{Budgets, Config};

/// What the process may hold.
const BUDGET: usize = 4 << 20;

/// A name of 50 KB.
fn name(number: usize) -> String {
    format!("{number:050000}")
}

fn bench() -> Bench<NoEngine> {
    let plain = config(1, 1);
    Bench::proxy(Config { budgets: Budgets { process: BUDGET, ..plain.budgets }, ..plain })
}

/// A RESP3 client that tracks.
fn tracking(bench: &mut Bench<NoEngine>, options: &[&str]) -> ConnId {
    let client = bench.accept();
    bench.answer(client, &["HELLO", "3"]);
    bench.ask(client, &[&["CLIENT", "TRACKING", "ON"], options].concat());
    for push in bench.connect() {
        bench.heard(push);
        bench.send(push, b"+OK\r\n");
    }
    assert_eq!(bench.heard(client), "+OK\r\n");
    client
}

/// Whether those who are there are served, and one who comes is accepted.
fn are_served(bench: &mut Bench<NoEngine>, other: ConnId) -> bool {
    let mut is_accepted = false;
    bench.turn(|worker| {
        let accepted = worker.handle_accept(Peer::default());
        is_accepted = accepted.map(|conn| worker.handle_broken(conn, "it goes again")).is_ok();
    });
    is_accepted && bench.answer(other, &["ECHO", "x"]) == "$1\r\nx\r\n"
}

/// Time passes until too much is held no more.
fn relieved(bench: &mut Bench<NoEngine>, other: ConnId) {
    for _ in 0..100 {
        if bench.shared.ledger.held_bytes() <= BUDGET {
            break;
        }
        bench.pass(1_000_000);
    }
    bench.pass(1_000_000);
    bench.heard(other);
    assert!(are_served(bench, other), "{} bytes are held", bench.shared.ledger.held_bytes());
}

#[test]
fn tracked_keys_leave_room_for_all() {
    let mut bench = bench();
    let client = tracking(&mut bench, &[]);
    let other = bench.accept();
    let (mut lane, mut told) = (None, 0);
    for number in 0..400 {
        bench.ask(client, &["GET", &name(number)]);
        let lane = *lane.get_or_insert_with(|| bench.connect()[0]);
        bench.send(lane, b"_\r\n");
        let heard = bench.heard(client);
        assert!(heard.contains("_\r\n"), "{number}: {heard}");
        told += heard.matches("invalidate").count();
        assert!(are_served(&mut bench, other), "{number}");
        assert!(bench.shared.ledger.held_bytes() < BUDGET / 2, "{number}");
    }
    assert!(told > 340, "what is forgotten is told of: {told}");
    assert!(bench.shared.ledger.held_bytes() > BUDGET / 5, "what is remembered counts when it is");
}

/// Nodes do what they are asked to, if it is this verb with names of 50 KB.
fn acknowledge(bench: &mut Bench<NoEngine>, verb: &str) {
    for node in bench.nodes.clone() {
        for said in requests(&bench.heard(node)) {
            let mut words = said.split(' ');
            if words.next().is_some_and(|word| word.eq_ignore_ascii_case(verb)) {
                for name in words {
                    let length = verb.len();
                    bench.send(node, format!(">3\r\n${length}\r\n{verb}\r\n$50000\r\n{name}\r\n:1\r\n").as_bytes());
                }
            }
        }
    }
}

#[test]
fn names_of_channels_leave_room_for_all() {
    let mut bench = bench();
    let (client, other) = (bench.accept(), bench.accept());
    let mut refusals = 0;
    for number in 0..400 {
        bench.ask(client, &["SUBSCRIBE", &name(number)]);
        bench.connect();
        acknowledge(&mut bench, "subscribe");
        refusals += bench.heard(client).matches("-ERR ").count();
        assert!(bench.shared.ledger.held_bytes() < BUDGET + 200_000, "{number}");
    }
    relieved(&mut bench, other);
    assert!(refusals > 300 || bench.closed.contains(&client), "{refusals}");
}

/// Others hold what brings it over the budget; who is subscribed to much is the one that goes.
#[test]
fn who_has_subscribed_to_much_makes_room() {
    let mut bench = bench();
    let (client, other) = (bench.accept(), bench.accept());
    let many: Vec<String> = (0..60).map(name).collect();
    let words: Vec<&str> = std::iter::once("PSUBSCRIBE").chain(many.iter().map(String::as_str)).collect();
    bench.ask(client, &words);
    bench.connect();
    for _ in 0..20 {
        acknowledge(&mut bench, "psubscribe");
        bench.turn(|_| ());
    }
    assert_eq!(bench.heard(client).matches("psubscribe").count(), many.len());
    let half = bench.accept();
    bench.send(half, b"*2\r\n$4\r\nPING\r\n$20000000\r\n");
    for _ in 0..12 {
        bench.send(half, &[b'x'; 100_000]);
    }
    assert!(bench.shared.ledger.held_bytes() > BUDGET, "{}", bench.shared.ledger.held_bytes());
    relieved(&mut bench, other);
    assert!(bench.closed.contains(&client), "{:?}", bench.closed);
}

#[test]
fn prefixes_are_counted_and_bounded() {
    let mut bench = bench();
    let (client, other) = (tracking(&mut bench, &["BCAST", "PREFIX", "a"]), bench.accept());
    for number in 0..400 {
        bench.ask(client, &["CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", &name(number)]);
        let heard = bench.heard(client);
        assert!(heard.starts_with("-ERR ") && heard.len() < 200, "{heard}");
    }
    let short = |number: usize| format!("{number:04000}");
    let before = bench.shared.ledger.held_bytes();
    for number in 0..50 {
        assert_eq!(bench.answer(client, &["CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", &short(number)]), "+OK\r\n");
    }
    let held = bench.shared.ledger.held_bytes() - before;
    assert!(held > 2 * 50 * 4_000, "{held}");
    assert!(are_served(&mut bench, other));
    assert_eq!(bench.answer(client, &["CLIENT", "TRACKING", "OFF"]), "+OK\r\n");
    bench.turn(|_| ());
    assert!(bench.shared.ledger.held_bytes() <= before, "they go with it");
}

/// A client that is spared where memory is short holds so much that no other can make room.
#[test]
fn a_spared_client_goes_if_no_other_can_make_room() {
    for hangs_up in [false, true] {
        let mut bench = bench();
        let (client, other) = (bench.accept(), bench.accept());
        assert_eq!(bench.answer(client, &["CLIENT", "NO-EVICT", "ON"]), "+OK\r\n");
        bench.send(client, b"*2\r\n$4\r\nPING\r\n$40000000\r\n");
        for _ in 0..60 {
            bench.send(client, &[b'x'; 100_000]);
        }
        assert!(bench.shared.ledger.held_bytes() > BUDGET, "{}", bench.shared.ledger.held_bytes());
        if hangs_up {
            bench.turn(|worker| worker.handle_hung_up(client));
        }
        relieved(&mut bench, other);
        assert!(bench.closed.contains(&client));
    }
}

/// One that is spared and holds little stays, whichever client fills the process.
#[test]
fn who_is_spared_stays_while_others_can_make_room() {
    let mut bench = bench();
    let (client, other, greedy) = (bench.accept(), bench.accept(), bench.accept());
    assert_eq!(bench.answer(client, &["CLIENT", "NO-EVICT", "ON"]), "+OK\r\n");
    bench.send(client, &request(&["PING", &"y".repeat(1_000_000)])[..1_000_000]);
    bench.send(greedy, b"*2\r\n$4\r\nPING\r\n$40000000\r\n");
    for _ in 0..60 {
        bench.send(greedy, &[b'x'; 100_000]);
    }
    relieved(&mut bench, other);
    assert!(bench.closed.contains(&greedy) && !bench.closed.contains(&client));
}

/// One that is spared and leaves its replies unread goes as well, once nothing else helps.
#[test]
fn who_is_spared_and_takes_nothing_goes_too() {
    let plain = config(1, 1);
    let budgets =
        Budgets { process: BUDGET, client_output_soft: 1 << 30, client_output_hard: 2 << 30, ..plain.budgets };
    let mut bench = Bench::<NoEngine>::proxy(Config { budgets, ..plain });
    let (client, other) = (bench.accept(), bench.accept());
    assert_eq!(bench.answer(client, &["CLIENT", "NO-EVICT", "ON"]), "+OK\r\n");
    bench.read_on(client, 0);
    bench.send(client, &request(&["ECHO", &"y".repeat(250_000)]).repeat(18));
    assert!(bench.shared.ledger.held_bytes() > BUDGET, "{}", bench.shared.ledger.held_bytes());
    relieved(&mut bench, other);
    assert!(bench.closed.contains(&client));
}
