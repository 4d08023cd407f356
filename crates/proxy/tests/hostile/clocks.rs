//! The wall clock is set while clients are served: only clients that ask for the time notice. And the clock of an engine.

use crate::bench::{Bench, request, users};
use crate::support::config;
use respool_command::{Execute, Millis, Outcome, Row, SessionView};
use respool_connection::ConnId;
use respool_proxy::UserLimits;
use respool_wire::{Args, Encoder};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const HOUR_US: i64 = 3_600_000_000;

/// Answers everything that nodes have been asked, as often as it takes.
fn serve(bench: &mut Bench<crate::NoEngine>) {
    for _ in 0..4 {
        bench.connect();
        for node in bench.nodes.clone() {
            let heard = bench.heard(node);
            let replies = heard.matches("GET\r\n").count();
            let reply = if heard.contains("COMMAND") { b"*1\r\n*-1\r\n".to_vec() } else { b"+OK\r\n".repeat(replies) };
            let watches = b"+OK\r\n".repeat(heard.matches("WATCH\r\n").count());
            bench.send(node, &[reply, watches].concat());
        }
        bench.wait(100_000);
        bench.turn(|_| ());
    }
}

/// What a client is answered once all nodes have answered what they were asked.
fn ask(bench: &mut Bench<crate::NoEngine>, client: ConnId, words: &[&str]) -> String {
    bench.ask(client, words);
    serve(bench);
    bench.heard(client)
}

#[test]
fn a_step_of_the_wall_clock_stops_no_client() {
    let limits = UserLimits {
        requests_per_second: Some(50),
        bytes_per_second: Some(100_000),
        private_connections: Some(100),
        ..UserLimits::default()
    };
    for steps in [[-HOUR_US, HOUR_US], [HOUR_US, -HOUR_US], [-HOUR_US, -HOUR_US]] {
        let mut bench = Bench::of_many(config(1, 1), 1, users(&[("bob", limits.clone())]));
        let (plain, bob) = (bench.accept(), bench.accept());
        assert_eq!(bench.answer(bob, &["AUTH", "bob", "secret"]), "+OK\r\n");
        for (number, by_us) in [0].into_iter().chain(steps).enumerate() {
            bench.set_wall_clock(by_us);
            assert_eq!(ask(&mut bench, plain, &["GET", "key"]), "+OK\r\n");
            for _ in 0..20 {
                assert_eq!(ask(&mut bench, bob, &["GET", "key"]), "+OK\r\n", "step {number} of {steps:?}");
            }
            // Its connection has to be dialled.
            let watcher = bench.accept();
            assert_eq!(ask(&mut bench, watcher, &["WATCH", "key"]), "+OK\r\n", "step {number} of {steps:?}");
            // An unknown name is asked for at the node.
            let name = format!("FT.{number}");
            bench.send(plain, &request(&[&name]));
            assert!(bench.who_heard(&format!("COMMAND INFO ft.{number}")).is_some(), "step {number} of {steps:?}");
            for node in bench.nodes.clone() {
                bench.send(node, b"*1\r\n*-1\r\n");
            }
            serve(&mut bench);
            assert!(bench.heard(plain).starts_with("-ERR unknown command"));
            // All connections are lost, and made anew.
            for node in bench.nodes.clone() {
                bench.cut(node);
            }
            serve(&mut bench);
        }
    }
}

/// An engine whose clock goes on once a second, unless a request wants more.
#[derive(Debug, Default)]
struct Seldom {
    is_wanted: bool,
    ticks: Arc<AtomicUsize>,
}

impl Execute for Seldom {
    fn execute(&mut self, _: &'static Row, _: Args<'_>, _: &mut SessionView, reply: &mut Encoder<'_>) -> Outcome {
        self.is_wanted = true;
        reply.simple("OK");
        Outcome::Done
    }

    fn tick(&mut self, now: Millis) -> Option<Millis> {
        self.is_wanted = false;
        self.ticks.fetch_add(1, Ordering::Relaxed);
        Some(Millis(now.0 + 1_000))
    }

    fn sooner_tick(&self, now: Millis) -> Option<Millis> {
        self.is_wanted.then_some(Millis(now.0 + 100))
    }
}

#[test]
fn the_clock_of_an_engine_goes_on_when_a_request_wants_it() {
    let engine = Seldom::default();
    let ticks = Arc::clone(&engine.ticks);
    let mut bench = Bench::server(config(1, 1), engine);
    let client = bench.accept();
    bench.pass(2_000_000);
    for wanted in [false, true, true] {
        let before = ticks.load(Ordering::Relaxed);
        if wanted {
            assert_eq!(bench.answer(client, &["SET", "k", "v", "PX", "30"]), "+OK\r\n");
        }
        bench.pass(200_000);
        let passed = ticks.load(Ordering::Relaxed) - before;
        assert_eq!(passed, usize::from(wanted), "within 200 ms");
        // The next second has its own.
        bench.pass(200_000);
    }
}
