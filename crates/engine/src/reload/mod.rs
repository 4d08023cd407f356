//! `DEBUG RELOAD` and `DEBUG LOADAOF`: all keys and functions are serialised and read back.

mod keys;

use respool_command::{Execute, SessionView, resolve};
use respool_wire::{Args, ArgsBuf, Encoder, Protocol, Value};

use crate::commands::Fault;
use crate::engine::Engine;
use crate::snapshot::Snapshot;

const UNREADABLE: &str = "ERR Error trying to load the RDB dump";
const BAD_OPTION: &str = "ERR DEBUG RELOAD only supports the MERGE, NOFLUSH and NOSAVE options.";

/// The options of `DEBUG RELOAD`.
#[derive(Default)]
struct Options {
    merges: bool,
    keeps: bool,
    is_unsaved: bool,
}

fn options(args: Args<'_>) -> Result<Options, Fault> {
    let mut options = Options::default();
    for word in args.from(2).iter() {
        let option = match &*word.to_ascii_uppercase() {
            b"MERGE" => &mut options.merges,
            b"NOFLUSH" => &mut options.keeps,
            b"NOSAVE" => &mut options.is_unsaved,
            _ => return Err(BAD_OPTION.into()),
        };
        *option = true;
    }
    Ok(options)
}

/// Runs one of the two.
pub(crate) fn run(
    engine: &mut Engine,
    args: Args<'_>,
    session: &SessionView,
    reply: &mut Encoder<'_>,
) -> Result<(), Fault> {
    let options = options(args)?;
    let now = i64::try_from(session.now.0).unwrap_or(i64::MAX);
    if options.is_unsaved {
        bring_back(engine, &options, session, now)?;
    } else {
        round_trip(engine, &options, session, now)?;
    }
    reply.raw(respool_wire::replies::OK);
    Ok(())
}

/// What is there is serialised and read back.
fn round_trip(engine: &mut Engine, options: &Options, session: &SessionView, now: i64) -> Result<(), Fault> {
    let libraries = dump(engine, session);
    // What was written would meet itself.
    if options.keeps && !options.merges && (engine.keyspace_mut().holds_keys() || has_any(&libraries)) {
        return Err(UNREADABLE.into());
    }
    load(engine, session, &libraries, b"FLUSH")?;
    let snapshot = engine.keyspace_mut().reload(now).map_err(|_| Fault::Text(UNREADABLE))?;
    engine.keyspace_mut().debugging.snapshot = snapshot.map(|snapshot| (snapshot, libraries));
    Ok(())
}

/// What was serialised last is read once more.
fn bring_back(engine: &mut Engine, options: &Options, session: &SessionView, now: i64) -> Result<(), Fault> {
    let Some((snapshot, libraries)) = engine.keyspace_mut().debugging.snapshot.take() else {
        return Err(UNREADABLE.into());
    };
    let answer = bring(engine, options, session, now, (&snapshot, &libraries));
    engine.keyspace_mut().debugging.snapshot = Some((snapshot, libraries));
    answer
}

fn bring(
    engine: &mut Engine,
    options: &Options,
    session: &SessionView,
    now: i64,
    (snapshot, libraries): (&Snapshot, &[u8]),
) -> Result<(), Fault> {
    let conflicts = options.keeps && !options.merges;
    if conflicts && (engine.keyspace_mut().holds_keys() || has_any(&dump(engine, session))) {
        return Err(UNREADABLE.into());
    }
    if !options.keeps {
        engine.keyspace_mut().flush_all();
    }
    load(engine, session, libraries, if options.keeps { b"REPLACE" } else { b"FLUSH" })?;
    engine.keyspace_mut().restore(now, snapshot).map_err(|_| Fault::Text(UNREADABLE))
}

/// The reply of the engine to a request of its own.
fn ask(engine: &mut Engine, session: &SessionView, words: &[&[u8]]) -> Vec<u8> {
    let args: ArgsBuf = words.iter().collect();
    let mut reply = Vec::new();
    if let Ok(row) = resolve(args.as_args()) {
        let mut view = SessionView { now: session.now, ..SessionView::default() };
        let _ = engine.execute(row, args.as_args(), &mut view, &mut Encoder::new(&mut reply, Protocol::Resp2));
    }
    reply
}

/// The functions, serialised. Nothing where there are none to be had.
fn dump(engine: &mut Engine, session: &SessionView) -> Vec<u8> {
    match Value::parse(&ask(engine, session, &[b"FUNCTION", b"DUMP"])) {
        Ok(Value::Bulk(libraries)) => libraries,
        _ => Vec::new(),
    }
}

/// Whether there are functions among what was serialised.
fn has_any(libraries: &[u8]) -> bool {
    // A version of two bytes and a checksum of eight.
    libraries.len() > 10
}

fn load(engine: &mut Engine, session: &SessionView, libraries: &[u8], how: &[u8]) -> Result<(), Fault> {
    if libraries.is_empty() {
        return Ok(());
    }
    let reply = ask(engine, session, &[b"FUNCTION", b"RESTORE", libraries, how]);
    if reply.starts_with(b"+") { Ok(()) } else { Err(UNREADABLE.into()) }
}
