//! Any text as settings: a TOML file, rmux' JSON file or command line, redis-sharding's command line, the environment, redis.conf.
//!
//! Nothing panics, whatever is wrong can be shown, and what was understood can be written down and understood again.
#![no_main]

use std::ffi::OsString;
use std::io;
use std::path::Path;

use libfuzzer_sys::fuzz_target;
use respool::frontend::redis_server::{Loaded, System};
use respool::frontend::{Program, Translation, rmux};
use respool::parameters::rewrite::rewritten;
use respool::parameters::{Asker, table};
use respool::settings::config::Resolved;
use respool::settings::row::Value;
use respool::settings::{Faults, RawSettings, Setting, file, resolve};

fuzz_target!(|input: (u8, &str)| {
    let (kind, text) = input;
    if kind % 6 == 5 {
        return read_redis_conf(text);
    }
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
    match kind % 6 {
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

/// A system without files.
struct NoFiles;

impl System for NoFiles {
    fn read(&mut self, _: &Path) -> io::Result<Vec<u8>> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn names(&mut self, _: &Path) -> Vec<OsString> {
        Vec::new()
    }

    fn enter(&mut self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn has_address(&mut self, _: &str) -> bool {
        true
    }
}

/// A redis.conf that is understood means the same once `CONFIG REWRITE` has written it, and its values can be set as they are shown.
fn read_redis_conf(text: &str) {
    let mut loaded = match Loaded::load(None, None, text.as_bytes(), &mut NoFiles) {
        Ok(loaded) => loaded,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let written = rewritten(&loaded.parameters, text.as_bytes(), None, "/", false);
    let again = Loaded::load(None, None, &written, &mut NoFiles);
    let shown = || written.escape_ascii().to_string();
    let again = again.unwrap_or_else(|error| panic!("{error}: {}", shown()));
    let asker = Asker { is_local: true, has_other_pools: false };
    for row in table::all().filter(|row| !["dir", "requirepass"].contains(&row.name)) {
        let value = loaded.parameters.value(row.name);
        assert_eq!(again.parameters.value(row.name), value, "{}: {}", row.name, shown());
        let set = loaded.parameters.prepare(&[(row.name.as_bytes(), value.as_bytes())], asker);
        let is_refused = set.is_err_and(|error| !error.contains("immutable") && !error.contains("protected"));
        assert!(!is_refused, "{} cannot be set to {value}", row.name);
    }
    if let Ok(said) = loaded.settings(&mut NoFiles)
        && let Err(faults) = resolve(&said, &no_secret)
    {
        assert!(faults.to_string().starts_with("error: "));
    }
}
