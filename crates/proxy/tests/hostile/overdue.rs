//! Blocking requests that time out before their node could be asked: no client gets nil unless a node was asked.

use crate::NoEngine;
use crate::bench::{Bench, requests};
use crate::support::config;
use respool_connection::ConnId;
use respool_proxy::{Config, LaneLimits};

const TAKEN: &str = "*2\r\n$1\r\nq\r\n$1\r\nx\r\n";

/// Time passes in turns as a loop would make them.
fn pass(bench: &mut Bench<NoEngine>, us: u64) {
    for _ in 0..us.div_ceil(10_000) {
        bench.wait(10_000);
        bench.turn(|_| ());
    }
}

/// All connections to wait on are taken, and another client waits for so long.
fn in_queue(seconds: &str) -> (Bench<NoEngine>, ConnId) {
    let (bench, client, _) = behind_another(seconds);
    (bench, client)
}

/// The same, with the connection that is taken.
fn behind_another(seconds: &str) -> (Bench<NoEngine>, ConnId, ConnId) {
    let lanes = LaneLimits { blocking_max: 1, ..LaneLimits::default() };
    let mut bench = Bench::proxy(Config { lanes, ..config(1, 1) });
    let (first, client) = (bench.accept(), bench.accept());
    bench.ask(first, &["BLPOP", "other", "0"]);
    let lane = bench.connect()[0];
    bench.send(lane, b":7\r\n");
    assert!(requests(&bench.heard(lane)).contains(&"BLPOP other 0".to_owned()));
    bench.ask(client, &["BLPOP", "q", seconds]);
    (bench, client, lane)
}

#[test]
fn what_is_there_comes_late_rather_than_that_there_is_nothing() {
    for (reply, told) in [(TAKEN, TAKEN), ("*-1\r\n", "*-1\r\n")] {
        let mut bench = Bench::proxy(config(1, 1));
        let client = bench.accept();
        bench.ask(client, &["BLPOP", "q", "0.1"]);
        pass(&mut bench, 150_000);
        assert_eq!(bench.heard(client), "", "its node is being dialled");
        let lane = bench.connect()[0];
        bench.send(lane, b":7\r\n");
        assert_eq!(requests(&bench.heard(lane)), ["CLIENT ID", "BLPOP q 0.001"]);
        bench.send(lane, reply.as_bytes());
        assert_eq!(bench.heard(client), told);
    }
}

#[test]
fn who_queues_is_looked_for_once_more_when_its_time_is_over() {
    for (reply, told) in [(format!("*1\r\n{TAKEN}"), TAKEN), ("*1\r\n*-1\r\n".to_owned(), "*-1\r\n")] {
        let (mut bench, client) = in_queue("0.1");
        pass(&mut bench, 150_000);
        assert_eq!(bench.heard(client), "", "the connection on which it is looked for is being dialled");
        let look = bench.connect()[0];
        pass(&mut bench, 10_000);
        assert_eq!(requests(&bench.heard(look)), ["MULTI", "BLPOP q 1", "EXEC"]);
        bench.send(look, format!("+OK\r\n+QUEUED\r\n{reply}").as_bytes());
        assert_eq!(bench.heard(client), told);
        // Once that is known its time is its own again.
        bench.ask(client, &["BLPOP", "q", "0.1"]);
        pass(&mut bench, 10_000);
        bench.send(look, b"+OK\r\n+QUEUED\r\n*1\r\n*-1\r\n");
        pass(&mut bench, 150_000);
        let tries = requests(&bench.heard(look)).iter().filter(|said| *said == "EXEC").count();
        assert!(tries > 1, "it was looked for meanwhile");
        assert!(bench.heard(client).is_empty(), "the last look is not answered");
        bench.send(look, b"+OK\r\n+QUEUED\r\n*1\r\n*-1\r\n");
        assert_eq!(bench.heard(client), "*-1\r\n");
    }
}

#[test]
fn who_could_not_be_asked_for_is_told_so() {
    // The connection comes to be, and never answers.
    let mut bench = Bench::proxy(config(1, 1));
    let client = bench.accept();
    bench.ask(client, &["BLPOP", "q", "0.1"]);
    bench.connect();
    pass(&mut bench, 800_000);
    let told = bench.heard(client);
    assert!(told.starts_with("-ERR node node-0") && told.matches("\r\n").count() == 1, "{told:?}");
    // Nor can it be looked for.
    let (mut bench, client) = in_queue("0.1");
    let dialled = bench.dialling.clone();
    for conn in dialled {
        bench.nodes.push(conn);
        bench.dialling.clear();
        bench.turn(|worker| respool_connection::Machine::handle_connected(worker, conn));
        bench.send(conn, b"+PONG\r\n");
        bench.send(conn, b"-NOPERM no\r\n-NOPERM no\r\n");
    }
    pass(&mut bench, 120_000);
    assert!(bench.heard(client).starts_with("-ERR blocking connections to node node-0 are exhausted"));
    assert_eq!(bench.answer(client, &["ECHO", "x"]), "$1\r\nx\r\n");
}

#[test]
fn a_pause_is_waited_for_however_long_it_takes() {
    let (mut bench, client) = in_queue("0.1");
    let operator = bench.accept();
    assert_eq!(bench.answer(operator, &["PROXY", "PAUSE"]), "+OK\r\n");
    pass(&mut bench, 3_000_000);
    assert_eq!(bench.heard(client), "");
    assert_eq!(bench.answer(operator, &["PROXY", "RESUME"]), "+OK\r\n");
    // Connections that were dialled meanwhile have been given up.
    let mut look = None;
    for _ in 0..30 {
        pass(&mut bench, 10_000);
        bench.connect();
        look = look.or_else(|| bench.who_heard("BLPOP q 1"));
    }
    let (look, _) = look.expect("it is looked for now");
    bench.send(look, format!("+OK\r\n+QUEUED\r\n*1\r\n{TAKEN}").as_bytes());
    assert_eq!(bench.heard(client), TAKEN);
}

/// The time of a request that queues is over in the turn in which the only connection becomes free.
#[test]
fn a_connection_that_is_free_at_the_last_moment_is_used() {
    let (mut bench, client, lane) = behind_another("0.1");
    // It cannot be looked for without a connection to wait on.
    for conn in std::mem::take(&mut bench.dialling) {
        bench.nodes.push(conn);
        bench.turn(|worker| respool_connection::Machine::handle_connected(worker, conn));
        bench.send(conn, b"+PONG\r\n");
        bench.send(conn, b"-NOPERM no\r\n-NOPERM no\r\n");
        bench.heard(conn);
    }
    // The timers have just run for other reasons, and do not in that turn.
    pass(&mut bench, 90_000);
    bench.wait(10_000);
    bench.send(lane, b"*2\r\n$5\r\nother\r\n$1\r\nx\r\n");
    assert_eq!(requests(&bench.heard(lane)), ["BLPOP q 0.001"]);
    bench.send(lane, TAKEN.as_bytes());
    assert_eq!(bench.heard(client), TAKEN);
}
