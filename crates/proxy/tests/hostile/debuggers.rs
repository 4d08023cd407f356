//! Scripts with debuggers, and what their clients say in one write.

use crate::bench::{Bench, request};
use crate::support::config;
use respool_command::{Execute, Millis, Outcome, Row, SessionView};
use respool_proxy::Config;
use respool_proxy::hooks::Hooks;
use respool_wire::{Args, Encoder};
use std::sync::Arc;

/// Has a script that stops behind each command of its debugger, and says what that was.
#[derive(Debug)]
struct Stopped;

impl Execute for Stopped {
    fn execute(&mut self, _: &'static Row, args: Args<'_>, _: &mut SessionView, reply: &mut Encoder<'_>) -> Outcome {
        if !args.is_empty() {
            reply.bulk(args.name());
        }
        Outcome::Stopped
    }

    fn copy_for_debugging(&self, _: Millis) -> Result<Self, &'static str> {
        Ok(Self)
    }

    fn tick(&mut self, _: Millis) -> Option<Millis> {
        None
    }
}

/// A client may have sent as many commands as it likes, each of which takes as long as it may.
#[test]
fn others_have_a_turn_behind_each_command_of_a_debugger() {
    let settings = Config { trusts_clients: true, ..config(1, 1) };
    let mut bench = Bench::server_with(settings, Stopped, Arc::default(), Hooks::default());
    let client = bench.accept();
    assert_eq!(bench.answer(client, &["SCRIPT", "DEBUG", "YES"]), "+OK\r\n");
    let said: Vec<u8> = [&["EVAL", "s", "0"][..], &["a"], &["b"], &["c"]].into_iter().flat_map(request).collect();
    bench.send(client, &said);
    // What waits goes on at the end of a turn.
    for told in ["$4\r\nEVAL\r\n$1\r\na\r\n", "$1\r\nb\r\n", "$1\r\nc\r\n", ""] {
        assert_eq!(bench.heard(client), told);
        bench.turn(|_| ());
    }
}
