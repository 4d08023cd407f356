//! Any text as settings: a TOML file, rmux' JSON file or command line, redis-sharding's command line, the environment.
//!
//! Nothing panics, whatever is wrong can be shown, and what was understood can be written down and understood again.
#![no_main]

use std::io;
use std::path::Path;

use libfuzzer_sys::fuzz_target;
use respool::frontend::{Program, Translation, rmux};
use respool::settings::config::Resolved;
use respool::settings::row::Value;
use respool::settings::{Faults, RawSettings, Setting, file, resolve};

fuzz_target!(|input: (u8, &str)| {
    let (kind, text) = input;
    let Translation { said, faults, .. } = hear(kind, text);
    if !faults.is_empty() {
        let shown = Faults { file: said.file.clone(), faults }.to_string();
        assert!(shown.starts_with("error: "), "{shown}");
    }
    match resolve(&said, &no_secret) {
        Ok(understood) => read_again(&said, &understood),
        Err(faults) => assert!(faults.to_string().starts_with("error: ")),
    }
});

fn hear(kind: u8, text: &str) -> Translation {
    let mut heard = Translation::default();
    let args = || text.split('\0').map(str::to_owned).collect::<Vec<String>>();
    match kind % 5 {
        0 => heard.faults = file::hear(&mut heard.said, "fuzz.toml", text.to_owned()),
        1 => rmux::hear_json(&mut heard, "fuzz.json", text.to_owned()),
        2 => heard = Program::Rmux.translate(&args(), &no_secret),
        3 => heard = Program::RedisSharding.translate(&args(), &no_secret),
        _ => {
            let pairs = args().into_iter().filter_map(|arg| {
                let (name, value) = arg.split_once('=')?;
                Some((format!("RESPOOL_{name}"), value.to_owned()))
            });
            heard.said.hear_env(pairs);
        }
    }
    heard
}

fn no_secret(_: &Path) -> io::Result<String> {
    Err(io::ErrorKind::NotFound.into())
}

/// What was understood, written as flags, means the same.
fn read_again(said: &RawSettings, understood: &Resolved) {
    let [values] = &understood.values[..] else { return };
    let statements = said.top.iter().chain(said.pools.iter().flat_map(|pool| &pool.statements));
    let mut texts = statements.flat_map(|statement| &statement.texts);
    // A comma in a socket's path can only be said in a list of TOML's.
    if texts.any(|text| text.text.contains(',')) {
        return;
    }
    let mut again = RawSettings::default();
    for (setting, value) in Setting::ALL.iter().zip(values) {
        match (setting.row().is_secret(), value) {
            (true, Value::Absent) => {}
            (true, _) => return,
            (false, value) => again.hear_flag(*setting, &[value.show(setting.row())]),
        }
    }
    let again = resolve(&again, &no_secret).unwrap_or_else(|faults| panic!("{faults}"));
    let differing = understood.changes_to(&again);
    assert!(differing.is_empty(), "{differing:?}");
}
