//! The load without sockets: a test is the loop, and says what comes and when it is looked at.

use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use respool_connection::Endpoint;

use super::*;
use crate::arrivals::Spacing;
use crate::keys::Spread;
use crate::plan::Pace;
use crate::target::Session;
use crate::values::Sizes;
use crate::work::{Shape, Test};

const CONN: ConnId = ConnId::upstream(0);
const STALL_NS: u64 = STALL.as_nanos() as u64;

fn plan() -> Plan {
    Plan { connections: 1, requests: Some(64), ..Plan::default() }
}

/// Thread `number` of a run of GETs.
fn load(plan: Plan, shared: &Arc<Shared>, number: usize) -> (Load, Receiver<Ended>) {
    let shape =
        Shape { keys: Some(10), spread: Spread::Sequence, sizes: Sizes::one(3), is_verified: false, is_tagged: false };
    let work = Work::of_test(Test::named("get").unwrap(), &shape);
    let endpoint = Endpoint::Tcp { host: "server".to_owned(), port: 6379 };
    let target = Target::one("server", endpoint, Session::default().identity());
    let (report, ended) = channel();
    let load = Load::new(Arc::new(plan), Arc::new(work), Arc::new(target), Arc::clone(shared), number, report);
    (load, ended)
}

/// A run whose only connection is there.
fn begun(plan: Plan) -> (Load, Receiver<Ended>) {
    let shared = Arc::new(Shared::new(&plan));
    let (mut load, ended) = load(plan, &shared, 0);
    load.begin_turn(Now::default());
    load.look();
    assert!(matches!(load.poll_action(), Some(Action::Dial { .. })));
    connect(&mut load);
    load.look();
    assert!(load.has_begun);
    (load, ended)
}

fn connect(load: &mut Load) {
    load.handle_connected(CONN);
    if !load.connections[0].upstream.is_ready() {
        write(load, usize::MAX);
        read(load, b"+PONG\r\n");
    }
    assert!(load.connections[0].upstream.is_ready());
}

/// Writes so many bytes of what waits.
fn write(load: &mut Load, most: usize) {
    assert_eq!(load.poll_output(), Some(CONN));
    let bytes = load.output(CONN).len().min(most);
    load.handle_written(CONN, bytes);
}

fn read(load: &mut Load, bytes: &[u8]) {
    load.buffer[..bytes.len()].copy_from_slice(bytes);
    load.handle_read(CONN, bytes.len());
}

fn look_at(load: &mut Load, at_ns: u64) {
    load.turn_ns = at_ns;
    load.look();
}

#[test]
fn latency_of_a_batch_counts_from_its_first_byte() {
    let (mut load, _ended) = begun(Plan { pipeline: 16, ..plan() });
    write(&mut load, 100);
    let written_ns = monotonic_ns();
    while monotonic_ns() < written_ns + 5_000_000 {}
    load.handle_writable(CONN);
    write(&mut load, usize::MAX);
    read(&mut load, &b"$-1\r\n".repeat(16));
    let shortest_ms = load.asking.tally.all().min_ms();
    assert!(shortest_ms >= 4.9, "the socket took the rest 5 ms later: {shortest_ms} ms");
    write(&mut load, 100);
    assert!(load.connections[0].written_ns >= Some(written_ns + 5_000_000), "the next batch has a time of its own");
}

#[test]
fn a_server_that_is_gone_for_good_ends_the_run() {
    let (mut load, ended) = begun(Plan { goes_on: true, ..plan() });
    let began_ns = load.heard_ns;
    for at_ns in [began_ns + 1_000_000_000, began_ns + STALL_NS] {
        load.handle_broken(CONN, "reset");
        look_at(&mut load, at_ns);
        look_at(&mut load, at_ns);
        assert!(ended.try_recv().is_err(), "it may come back");
    }
    look_at(&mut load, began_ns + STALL_NS + 1);
    assert_eq!(ended.try_recv().unwrap().unwrap_err(), "nothing was answered for 60s");
}

#[test]
fn a_thread_without_connections_waits_for_the_others() {
    let plan = Plan { threads: 2, ..plan() };
    let shared = Arc::new(Shared::new(&plan));
    let (mut load, ended) = load(plan, &shared, 1);
    shared.note_ready();
    load.begin_turn(Now::default());
    load.look();
    let began_ns = load.heard_ns;
    look_at(&mut load, began_ns + STALL_NS * 10);
    assert!(load.has_begun && ended.try_recv().is_err());
}

#[test]
fn a_gap_between_requests_is_no_stall() {
    let gap = STALL * 2;
    let pace = Pace::Open { rate: 1.0 / gap.as_secs_f64(), spacing: Spacing::Even };
    let (mut load, ended) = begun(Plan { pace, ..plan() });
    let due_ns = load.heard_ns + (gap + Duration::from_secs(1)).as_nanos() as u64;
    look_at(&mut load, due_ns);
    load.send_due(due_ns);
    assert_eq!(load.asking.outstanding(), 1);
    look_at(&mut load, due_ns + STALL_NS);
    assert!(ended.try_recv().is_err(), "the server had no more to answer before");
    look_at(&mut load, due_ns + STALL_NS + 1);
    assert_eq!(ended.try_recv().unwrap().unwrap_err(), "nothing was answered for 60s");
}

#[test]
fn what_came_while_the_thread_was_stopped_is_heard() {
    let (mut load, ended) = begun(plan());
    write(&mut load, usize::MAX);
    load.turn_ns = load.heard_ns + STALL_NS + 1;
    read(&mut load, b"$-1\r\n");
    load.end_turn();
    assert!(ended.try_recv().is_err());
}

#[test]
fn what_is_due_while_a_connection_is_down_is_not_sent() {
    let pace = Pace::Open { rate: 1000.0, spacing: Spacing::Even };
    let (mut load, ended) = begun(Plan { pace, goes_on: true, ..plan() });
    let began_ns = load.heard_ns;
    load.handle_broken(CONN, "reset");
    load.send_due(began_ns + 3_500_000);
    let tally = &load.asking.tally;
    assert_eq!((tally.sent, tally.wrongs.unsent, tally.wrongs.lost_connections), (0, 3, 1));
    assert!(ended.try_recv().is_err());
}
