//! Requests of a crowd wait for each other for a moment; no others do.

use crate::bench::{Bench, request};
use crate::support::{NoEngine, config};
use respool_connection::{Awaits, ConnId, Machine};

const GATHER_US: u64 = 200;

/// A proxy that gathers, its clients, and the one connection to the node.
fn crowd_of(clients: usize, gather_us: u64) -> (Bench<NoEngine>, Vec<ConnId>, ConnId) {
    // An even seed: what waits for replies may wait at all.
    let mut bench = Bench::proxy(respool_proxy::Config { gather_us, ..config(1, 2) });
    let clients: Vec<_> = (0..clients).map(|_| bench.accept()).collect();
    bench.ask(clients[0], &["GET", "a"]);
    let node = bench.connect()[0];
    answer_all(&mut bench, node);
    bench.heard(clients[0]);
    (bench, clients, node)
}

/// Every client asks once, one after the other, and is answered as soon as the node is asked.
fn go_round(bench: &mut Bench<NoEngine>, clients: &[ConnId], node: ConnId) {
    for client in clients {
        bench.ask(*client, &["GET", "a"]);
        answer_all(bench, node);
    }
    bench.wait(GATHER_US);
    bench.turn(|_| {});
    answer_all(bench, node);
    for client in clients {
        assert_eq!(bench.heard(*client), "$-1\r\n");
    }
}

/// The node answers what it was asked. Returns how much that was.
fn answer_all(bench: &mut Bench<NoEngine>, node: ConnId) -> usize {
    let asked = crate::bench::requests(&bench.heard(node)).len();
    if asked > 0 {
        bench.send(node, &b"$-1\r\n".repeat(asked));
    }
    asked
}

#[test]
fn requests_of_many_clients_leave_together_and_within_their_time() {
    let (mut bench, clients, node) = crowd_of(500, GATHER_US);
    for _ in 0..3 {
        go_round(&mut bench, &clients, node);
    }
    // 500 clients every 10 ms: ten of them in 200 us.
    bench.ask(clients[0], &["GET", "a"]);
    let waits = bench.worker.awaits();
    assert!(matches!(waits, Awaits::Crowd { .. }), "the first waits for others: {waits:?}");
    for client in &clients[1..5] {
        bench.ask(*client, &["GET", "a"]);
        assert_eq!(bench.heard(node), "", "they wait for each other");
        assert_eq!(bench.worker.awaits(), waits, "and not longer for every one more");
    }
    bench.wait(GATHER_US);
    bench.turn(|_| {});
    assert_eq!(crate::bench::requests(&bench.heard(node)).len(), 5);
    assert!(!matches!(bench.worker.awaits(), Awaits::Crowd { .. }));
    bench.send(node, &b"$-1\r\n".repeat(5));
    // Enough of them need not wait for their time.
    for client in &clients[5..20] {
        bench.ask(*client, &["GET", "a"]);
        assert_eq!(bench.heard(node), "");
    }
    bench.turn(|worker| {
        for client in &clients[20..22] {
            let bytes = request(&["GET", "a"]);
            worker.read_buffer(*client).expect("it is read")[..bytes.len()].copy_from_slice(&bytes);
            worker.handle_read(*client, bytes.len());
        }
    });
    assert_eq!(crate::bench::requests(&bench.heard(node)).len(), 17);
}

#[test]
fn who_asks_again_at_once_waits_for_no_crowd() {
    let (mut bench, clients, node) = crowd_of(500, GATHER_US);
    for _ in 0..3 {
        go_round(&mut bench, &clients, node);
    }
    let busy = clients[0];
    bench.ask(busy, &["GET", "a"]);
    bench.wait(GATHER_US);
    bench.turn(|_| {});
    assert_eq!(answer_all(&mut bench, node), 1);
    bench.ask(busy, &["GET", "a"]);
    assert_eq!(answer_all(&mut bench, node), 1, "it asked a moment ago");
    // And it takes along who waits already.
    bench.ask(clients[1], &["GET", "a"]);
    assert_eq!(answer_all(&mut bench, node), 0);
    bench.ask(busy, &["GET", "a"]);
    assert_eq!(answer_all(&mut bench, node), 2);
}

#[test]
fn few_clients_are_not_made_to_wait_and_nobody_is_where_it_is_switched_off() {
    for (count, gather_us) in [(20, GATHER_US), (500, 0)] {
        let (mut bench, clients, node) = crowd_of(count, gather_us);
        for _ in 0..3 {
            for client in &clients {
                bench.ask(*client, &["GET", "a"]);
                assert!(!matches!(bench.worker.awaits(), Awaits::Crowd { .. }));
                assert_eq!(answer_all(&mut bench, node), 1, "{count} clients, {gather_us} us");
            }
        }
    }
}
