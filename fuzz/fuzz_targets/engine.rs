//! The embedded engine and a naive model, told the same by a script that the fuzzer writes. Both have to agree after every
//! request, and no record may be used that was freed: debug assertions are on here, and look.
//!
//! The first bytes are the hash seed and say how many names there are; the rest is choices. Where they end, so does the run.
#![no_main]

#[path = "../../crates/engine/tests/model/hashes.rs"]
mod hashes;
#[path = "../../crates/engine/tests/model/script.rs"]
mod script;
#[path = "../../crates/engine/tests/model/store.rs"]
mod store;
#[path = "../../crates/engine/tests/model/streams.rs"]
mod streams;

use std::cell::Cell;

use libfuzzer_sys::fuzz_target;
use respool_command::{Execute, Millis, SessionView, resolve};
use respool_engine::{Engine, EngineConfig};
use respool_wire::{ArgsBuf, Encoder, Protocol};
use script::{Names, Script, Step};
use store::{DATABASES, Model};

fuzz_target!(|input: &[u8]| {
    let Some((seed, choices)) = input.split_first_chunk::<8>() else { return };
    let Some((sizes, choices)) = choices.split_first_chunk::<2>() else { return };
    let seed = u64::from_le_bytes(*seed);
    let names = Names { keys: 1 + usize::from(sizes[0]), members: 1 + usize::from(sizes[1]) * 4 };
    let mut bytes = choices.iter();
    let is_over = Cell::new(false);
    // Two bytes a choice: a burst may be longer than 256.
    let mut draw = |bound: usize| {
        let (Some(low), Some(high)) = (bytes.next(), bytes.next()) else {
            is_over.set(true);
            return 0;
        };
        usize::from(u16::from_le_bytes([*low, *high])) % bound
    };
    let mut model = Model::new(1_700_000_000_000);
    let config = EngineConfig { databases: DATABASES, ..EngineConfig::default() };
    let mut engine = Engine::new(config, [seed, seed.rotate_left(17) ^ 0x9e37_79b9_7f4a_7c15]);
    let mut session = SessionView::default();
    let mut script = Script::default();
    let mut reply = Vec::new();
    loop {
        session.now = Millis(model.now);
        let step = script.step(names, DATABASES, &mut draw);
        match step {
            Step::Pass(millis) => model.now += millis,
            Step::Tick => _ = engine.tick(session.now),
            Step::Select(database) => (model.selected, session.database) = (database, database as u32),
            Step::Say(words) => {
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                let args: ArgsBuf = words.iter().collect();
                let row = resolve(args.as_args()).expect("the script uses commands that exist");
                reply.clear();
                _ = engine.execute(row, args.as_args(), &mut session, &mut Encoder::new(&mut reply, Protocol::Resp2));
                if let Err(told) = model.agrees(&words, &reply) {
                    panic!("{words:?}\n{told}\n{}", reply.escape_ascii());
                }
            }
        }
        if is_over.get() {
            break;
        }
    }
    model.expire();
    for (database, keys) in model.sizes().into_iter().enumerate() {
        // Expired keys that no request has met are still there.
        assert!(engine.keyspace_size(database).keys >= keys, "keys of database {database} are lost");
    }
});
