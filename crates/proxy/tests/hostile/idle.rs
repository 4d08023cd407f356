//! A timeout for idle clients: who reads, waits or is held back is not idle, however long it has sent nothing.

use crate::NoEngine;
use crate::bench::{Bench, request};
use crate::support::config;
use respool_connection::ConnId;
use respool_proxy::{Budgets, Config, Timeouts};

/// Timers run once a second where nothing is outstanding.
const IDLE_US: u64 = 10_000_000;

fn bench() -> (Bench<NoEngine>, ConnId, ConnId) {
    let base = config(1, 1);
    let budgets = Budgets { client_output_soft: 1 << 20, ..base.budgets };
    let timeouts =
        Timeouts { client_idle_us: IDLE_US, response_us: 60_000_000, silence_us: 60_000_000, ..base.timeouts };
    Bench::connected(Config { budgets, timeouts, ..base })
}

/// Time passes in which the timers run as often as they do.
fn pass(bench: &mut Bench<NoEngine>, us: u64) {
    for _ in 0..us / 100_000 {
        bench.wait(100_000);
        bench.turn(|_| {});
    }
}

#[test]
fn a_client_that_reads_slowly_gets_its_whole_reply() {
    let (mut bench, client, node) = bench();
    bench.read_on(client, 0);
    bench.ask(client, &["GET", "large"]);
    let value = [b"$900000\r\n", &vec![b'v'; 900_000][..], b"\r\n"].concat();
    assert!(bench.offer(node, &value).is_empty(), "the node has said all");
    let mut heard = 0;
    while heard < value.len() {
        pass(&mut bench, IDLE_US / 2);
        assert!(bench.closed.is_empty(), "{heard} bytes are read");
        bench.read_on(client, 50_000);
        heard += bench.heard(client).len();
    }
    pass(&mut bench, IDLE_US / 2);
    assert!(bench.closed.is_empty(), "it has just read the end");
    pass(&mut bench, IDLE_US / 2 + 2_000_000);
    assert_eq!(bench.closed, [client]);
}

#[test]
fn a_client_that_takes_nothing_at_all_is_idle() {
    let (mut bench, client, node) = bench();
    bench.read_on(client, 0);
    bench.ask(client, &["GET", "k"]);
    bench.send(node, b"$1\r\nv\r\n");
    pass(&mut bench, IDLE_US + 2_000_000);
    assert_eq!(bench.closed, [client]);
}

#[test]
fn a_client_that_was_served_late_has_its_time_to_go_on() {
    let (mut bench, client, _) = bench();
    bench.ask(client, &["BLPOP", "q", "0"]);
    let waiting = bench.connect()[0];
    bench.send(waiting, b":7\r\n");
    pass(&mut bench, 5 * IDLE_US);
    bench.send(waiting, b"*2\r\n$1\r\nq\r\n$1\r\ne\r\n");
    assert_eq!(bench.heard(client), "*2\r\n$1\r\nq\r\n$1\r\ne\r\n");
    pass(&mut bench, IDLE_US / 2);
    assert!(!bench.closed.contains(&client), "it works on the element");
    pass(&mut bench, IDLE_US / 2 + 2_000_000);
    assert!(bench.closed.contains(&client));
}

#[test]
fn a_client_that_is_held_back_is_answered_in_the_end() {
    for (pause, resume) in [
        (&["CLIENT", "PAUSE", "600000", "WRITE"][..], &["CLIENT", "UNPAUSE"][..]),
        (&["PROXY", "PAUSE"], &["PROXY", "RESUME"]),
        (&["PROXY", "SUSPEND"], &["PROXY", "RESUME"]),
    ] {
        let (mut bench, client, _) = bench();
        let operator = bench.accept();
        bench.ask(operator, pause);
        assert!(bench.heard(operator).starts_with("+OK"), "{pause:?}");
        let set = request(&["SET", "k", "v"]);
        let unsent = bench.offer(client, &set).to_vec();
        for _ in 0..10 {
            pass(&mut bench, IDLE_US / 2);
            bench.ask(operator, &["CLIENT", "GETNAME"]);
        }
        assert!(!bench.closed.contains(&client), "{pause:?}");
        bench.heard(operator);
        bench.ask(operator, resume);
        bench.turn(|_| {});
        if !unsent.is_empty() {
            bench.send(client, &unsent);
        }
        bench.connect();
        let (asked, _) = bench.who_heard("SET k v").expect("it goes on");
        bench.send(asked, b"+OK\r\n");
        assert_eq!(bench.heard(client), "+OK\r\n", "{pause:?}");
    }
}
