//! The engine against a naive model, with time passing and the active cycle running between requests: what grows and
//! shrinks, is renamed, copied, moved, expired, stored into itself, refused for want of memory. Both have to agree after
//! every request. Debug builds also stop where a record is used that was freed.
//!
//! The hash seed is another in each run: what depends on which names meet in a table is met by many short runs.
//! `RESPOOL_TEST_OPERATIONS` says how many requests there are in all (some hundred thousand if unset), `RESPOOL_TEST_SEED`
//! where the runs start.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "the run by hand says how far it is")]

mod hashes;
mod script;
mod store;
mod streams;

use respool_command::{Execute, Millis, SessionView, resolve};
use respool_engine::{Engine, EngineConfig};
use respool_testkit::Rng;
use respool_wire::{ArgsBuf, Encoder, Protocol};

use script::{Names, Script, Step};
use store::{DATABASES, Model};

/// Requests in all unless the environment says otherwise.
const OPERATIONS: u64 = 360_000;
/// Steps of one run.
const STEPS: u64 = 2_000;
/// How many names runs have, by turns.
const NAMES: [Names; 5] = [
    Names { keys: 6, members: 20 },
    Names { keys: 14, members: 40 },
    Names { keys: 12, members: 140 },
    Names { keys: 30, members: 900 },
    Names { keys: 400, members: 60 },
];
/// Bytes that every eighth run may hold, which refuses now and then what needs more.
const FEW_BYTES: u64 = 600_000;

fn number_from(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{variable}={text}")))
}

/// Steps between two comparisons of the sum of what is held with a walk over all of it.
const STEPS_PER_WALK: u64 = 20;

/// An engine and a session of it.
struct Subject {
    engine: Engine,
    session: SessionView,
}

impl Subject {
    fn say(&mut self, words: &[&str]) -> Vec<u8> {
        let args: ArgsBuf = words.iter().collect();
        let mut reply = Vec::new();
        let row = resolve(args.as_args()).expect("the script uses commands that exist");
        _ = self.engine.execute(row, args.as_args(), &mut self.session, &mut Encoder::new(&mut reply, Protocol::Resp2));
        reply
    }

    /// What is held is what a walk over every key finds.
    fn check_bytes(&self, seed: u64, step: u64) {
        #[cfg(debug_assertions)]
        assert_eq!(self.engine.used_bytes(), self.engine.walked_bytes(), "seed {seed}, step {step}");
        assert!(self.engine.used_bytes() <= self.engine.memory_bytes(), "seed {seed}, step {step}");
    }

    /// Lets the engine finish what it does at its own pace.
    fn rest(&mut self) {
        let now = self.session.now;
        let mut turns = 0;
        while self.engine.tick(now) <= Some(Millis(now.0 + 1)) {
            turns += 1;
            assert!(turns < 1_000, "the engine comes to rest");
        }
    }
}

/// One run of `steps`; how many requests it had.
fn play(seed: u64, steps: u64) -> u64 {
    let mut rng = Rng::new(seed);
    let names = NAMES[seed as usize % NAMES.len()];
    let memory_bytes_max = seed.is_multiple_of(8).then_some(FEW_BYTES);
    let config = EngineConfig { databases: DATABASES, memory_bytes_max, ..EngineConfig::default() };
    let mut model = Model::new(1_700_000_000_000);
    let mut subject =
        Subject { engine: Engine::new(config, [rng.next_u64(), rng.next_u64()]), session: SessionView::default() };
    let mut script = Script::default();
    let mut requests = 0;
    for number in 0..steps {
        subject.session.now = Millis(model.now);
        match script.step(names, DATABASES, &mut |bound| rng.below(bound)) {
            Step::Pass(millis) => model.now += millis,
            Step::Tick => _ = subject.engine.tick(subject.session.now),
            Step::Select(database) => (model.selected, subject.session.database) = (database, database as u32),
            Step::Say(words) => {
                requests += 1;
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                let reply = subject.say(&words);
                if let Err(told) = model.agrees(&words, &reply) {
                    panic!("seed {seed}, step {number}: {words:?}\n{told}\n{}", reply.escape_ascii());
                }
            }
        }
        if number % STEPS_PER_WALK == 0 {
            subject.check_bytes(seed, number);
        }
    }
    subject.check_bytes(seed, steps);
    // Time ends for every key that has a deadline, by the active cycle alone.
    model.now += 1_000;
    subject.session.now = Millis(model.now);
    subject.rest();
    model.expire();
    for (database, keys) in model.sizes().into_iter().enumerate() {
        let size = subject.engine.keyspace_size(database);
        assert_eq!((size.keys, size.expires), (keys, 0), "seed {seed}, database {database}");
        // What is not referenced is given back.
        subject.session.database = database as u32;
        subject.say(&["FLUSHDB"]);
    }
    subject.rest();
    assert_eq!(subject.engine.used_bytes(), 0, "seed {seed}: an empty store uses nothing");
    let bytes = subject.engine.memory_bytes();
    assert!(bytes < 4 << 20, "seed {seed}: {bytes} bytes are held by an empty store");
    requests
}

#[test]
fn the_engine_equals_the_model() {
    let (mut left, first) = (number_from("RESPOOL_TEST_OPERATIONS", OPERATIONS), number_from("RESPOOL_TEST_SEED", 1));
    for seed in first.. {
        left = left.saturating_sub(play(seed, STEPS));
        if left == 0 {
            break;
        }
        if seed % 4_000 == 0 {
            eprintln!("seed {seed}: {left} requests are left");
        }
    }
}
