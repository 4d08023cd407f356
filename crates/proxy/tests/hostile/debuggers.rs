//! Scripts with debuggers, and what their clients say in one write.

use crate::bench::{Bench, request};
use crate::support::config;
use respool_command::{Execute, Millis, Outcome, Row, SessionView};
use respool_proxy::Config;
use respool_proxy::hooks::Hooks;
use respool_wire::{Args, Encoder};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

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

/// Copying all keys and dropping the copies takes a while by its clock.
#[derive(Debug, Default)]
struct Slow {
    clock_us: Arc<AtomicU64>,
    copy_us: Arc<AtomicU64>,
    drop_us: Arc<AtomicU64>,
    is_copy: bool,
}

impl Execute for Slow {
    fn execute(&mut self, _: &'static Row, args: Args<'_>, _: &mut SessionView, reply: &mut Encoder<'_>) -> Outcome {
        reply.simple("told");
        if args.is_empty() || args.name() == b"c" { Outcome::Done } else { Outcome::Stopped }
    }

    fn copy_for_debugging(&self, _: Millis) -> Result<Self, &'static str> {
        let us = self.copy_us.load(Ordering::Relaxed);
        self.clock_us.fetch_add(us, Ordering::Relaxed);
        let (clock_us, drop_us) = (Arc::clone(&self.clock_us), Arc::clone(&self.drop_us));
        match us % 2 {
            0 => Ok(Self { clock_us, copy_us: Arc::default(), drop_us, is_copy: true }),
            _ => Err("a key cannot be copied"),
        }
    }

    fn tick(&mut self, _: Millis) -> Option<Millis> {
        None
    }
}

impl Drop for Slow {
    fn drop(&mut self) {
        if self.is_copy {
            self.clock_us.fetch_add(self.drop_us.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }
}

/// Others are served for twenty times as long as copies have held them up, whatever came of those and however their clients left.
#[test]
fn copies_for_debuggers_have_pauses_between_them() {
    // How long a copy takes and how long dropping it, and whether its client leaves while its script is stopped. An odd time: it fails.
    let cases = [(60_000, 0, false), (60_001, 0, false), (20_000, 40_000, false), (20_000, 40_000, true)];
    let early_or_not = cases.into_iter().flat_map(|case| [(case, true), (case, false)]);
    for ((copy_us, drop_us, leaves), is_early) in early_or_not {
        let (engine, fails) = (Slow::default(), copy_us % 2 == 1);
        let clock_us = Arc::clone(&engine.clock_us);
        engine.copy_us.store(copy_us, Ordering::Relaxed);
        engine.drop_us.store(drop_us, Ordering::Relaxed);
        let of_hook = Arc::clone(&clock_us);
        let hooks = Hooks::default().with_clock(move || of_hook.load(Ordering::Relaxed));
        let settings = Config { trusts_clients: true, ..config(1, 1) };
        let mut bench = Bench::server_with(settings, engine, Arc::default(), hooks);
        let [client, other] = [(); 2].map(|()| bench.accept());
        for client in [client, other] {
            assert_eq!(bench.answer(client, &["SCRIPT", "DEBUG", "YES"]), "+OK\r\n");
        }
        // The clock of the hook stands still but for copies.
        let begun_us = bench.now_us() + 1_000;
        clock_us.store(begun_us, Ordering::Relaxed);
        let told = bench.answer(client, &["EVAL", "s", "0"]);
        match fails {
            false => assert_eq!(told, "+told\r\n"),
            true => assert_eq!(told, "-ERR can't run EVAL in debugging mode: a key cannot be copied\r\n"),
        }
        if leaves {
            bench.cut(client);
            (0..3).for_each(|_| bench.turn(|_| ()));
        } else if !fails {
            assert_eq!(bench.answer(client, &["c"]), "+told\r\n");
        }
        let took_us = copy_us + drop_us;
        assert_eq!(clock_us.load(Ordering::Relaxed), begun_us + took_us);
        // Fifty milliseconds need no pause.
        let free_us = begun_us + copy_us + 20 * took_us - 20 * 50_000;
        bench.stall(free_us - u64::from(is_early) - bench.now_us() - 10);
        let told = bench.answer(other, &["EVAL", "s", "0"]);
        assert_eq!(told == "+told\r\n", !is_early && !fails, "{copy_us} {drop_us}: {told}");
        assert_eq!(told.contains("the keys have just been copied"), is_early, "{copy_us} {drop_us}: {told}");
    }
}
