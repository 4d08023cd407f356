//! Any request: its row is the one with its name, its keys lie within it, and every caller finds the same ones.
#![no_main]

use libfuzzer_sys::fuzz_target;
use respool_command::{KeyPositions, Renames, Row, all, introspect, lookup, resolve};
use respool_wire::{ArgsBuf, Encoder, Protocol, Value};

/// The first two bytes choose a row; the rest are the arguments behind its name, one a line, or the whole request if they
/// choose none.
fn request(input: &[u8]) -> Option<ArgsBuf> {
    let (choice, lines) = input.split_first_chunk()?;
    let row = all().nth(usize::from(u16::from_le_bytes(*choice)) % 400);
    let name = row.into_iter().flat_map(|row| row.name.split(' ')).map(str::as_bytes);
    Some(name.chain(lines.split(|byte| *byte == b'\n')).collect())
}

/// The row of a name, found the slow way.
fn named(name: &[u8]) -> Option<&'static Row> {
    all().find(|row| !row.name.contains(' ') && row.name.as_bytes().eq_ignore_ascii_case(name))
}

fn answer(question: &str, request: &ArgsBuf) -> Value {
    let words = ["COMMAND", question].into_iter().map(str::as_bytes);
    let asked: ArgsBuf = words.chain(request.as_args().iter()).collect();
    let row = resolve(asked.as_args()).expect("COMMAND has rows");
    let mut reply = Vec::new();
    assert!(introspect::answer(row, asked.as_args(), &[], &Renames::default(), &mut Encoder::new(&mut reply, Protocol::Resp3)));
    Value::parse(&reply).expect("one whole reply")
}

fuzz_target!(|input: &[u8]| {
    let Some(request) = request(input) else { return };
    let args = request.as_args();
    assert_eq!(lookup(args.name()).map(|row| row.name), named(args.name()).map(|row| row.name));
    let row = match resolve(args) {
        Ok(row) => row,
        Err(unknown) => {
            let mut text = Vec::new();
            unknown.write_text(args, &mut text);
            assert!(text.starts_with(b"ERR unknown ") && text.len() < 600);
            return;
        }
    };
    let _ = row.lane(args);
    let mut positions = KeyPositions::new();
    let result = row.keys.positions(args, &mut positions);
    assert!(result.is_ok() || positions.is_empty());
    assert!(positions.len() <= args.len());
    assert!(positions.iter().all(|position| position.index > 0 && (position.index as usize) < args.len()));
    assert_eq!(row.keys.first(args), positions.iter().next().map(|position| position.index as usize));
    if let Some(index) = row.keys.single() {
        assert!(positions.iter().all(|position| position.index as usize == index));
        assert!(!row.accepts(args.len()) || positions.len() == 1);
    }
    if row.keys.is_none() {
        assert!(result.is_ok() && positions.is_empty());
    }
    // COMMAND GETKEYS tells of the keys that were found and of no others.
    let keys = positions.iter().filter(|position| position.access.is_key());
    let keys: Vec<Value> = keys.map(|position| Value::Bulk(args[position.index as usize].to_vec())).collect();
    match answer("GETKEYS", &request) {
        Value::Array(told) => assert_eq!(told, keys),
        Value::Error(_) => assert!(keys.is_empty() || !row.accepts(args.len())),
        other => panic!("{other:?}"),
    }
    match answer("GETKEYSANDFLAGS", &request) {
        Value::Array(told) => assert_eq!(told.len(), keys.len()),
        Value::Error(_) => assert!(keys.is_empty() || !row.accepts(args.len())),
        other => panic!("{other:?}"),
    }
});
