//! The keys found in generated requests, compared with `COMMAND GETKEYSANDFLAGS`.

use std::collections::BTreeMap;

use respool_command::{all, resolve};
use respool_testkit::Rng;
use respool_wire::{ArgsBuf, Protocol};

use crate::differences::Differences;
use crate::{answer, ask_all, redis, request, requests, shown, touched};

/// Requests per row and per hard command.
const ROUNDS: usize = 150;
const NEAR_ROUNDS: usize = 3_000;

fn about(subcommand: &str, inner: &ArgsBuf) -> ArgsBuf {
    request([b"COMMAND", subcommand.as_bytes()].into_iter().chain(inner.as_args().iter()))
}

/// The command, and what is odd about a request that is executed although its keys are said to be elsewhere.
fn name_of_difference(inner: &ArgsBuf) -> String {
    let args = inner.as_args();
    let row = resolve(args).expect("requests that no row describes are answered alike");
    let count = |words: &[&[u8]]| {
        let is_one = |argument: &[u8]| words.iter().any(|word| argument.eq_ignore_ascii_case(word));
        args.iter().filter(|argument| is_one(argument)).count()
    };
    let oddity = match () {
        _ if args.len() == 2 => "destination alone",
        _ if count(&[b"STORE", b"STOREDIST", b"STORE\0x"]) > 1 => "repeated STORE",
        _ if count(&[b"STREAMS"]) > 1 => "repeated STREAMS",
        _ if args.iter().next_back().is_some_and(|last| last.eq_ignore_ascii_case(b"KEYS")) => "KEYS last",
        _ => "other",
    };
    format!("{} {oddity}", row.name)
}

/// Whether the server refuses to execute the request. It is asked within a transaction, where nothing blocks.
fn are_refused(requests: &[&ArgsBuf]) -> Vec<bool> {
    let Some(server) = redis() else { return Vec::new() };
    let mut client = server.client().expect("the server accepts");
    touched::fill(&mut client);
    let asked: Vec<_> =
        requests.iter().flat_map(|inner| [request(["MULTI"]), (*inner).clone(), request(["EXEC"])]).collect();
    let replies = ask_all(&mut client, &asked);
    replies.chunks(3).map(|replies| replies[2].starts_with(b"-") || replies[2].starts_with(b"*1\r\n-")).collect()
}

#[test]
fn keys_are_found_where_redis_finds_them() {
    let Some(server) = redis() else { return };
    let mut client = server.client().expect("the server accepts");
    let mut rng = Rng::new(2);
    let mut inner = Vec::new();
    for row in all().filter(|row| row.since < "7.1") {
        inner.extend((0..ROUNDS).map(|_| requests::any(row, &mut rng)));
    }
    for shape in 0..requests::shapes() {
        inner.extend((0..NEAR_ROUNDS).map(|_| requests::near(shape, &mut rng)).filter(|made| made.as_args().len() > 1));
    }
    let mut different = Vec::new();
    for subcommand in ["GETKEYS", "GETKEYSANDFLAGS"] {
        let asked: Vec<_> = inner.iter().map(|inner| about(subcommand, inner)).collect();
        for ((inner, asked), theirs) in inner.iter().zip(&asked).zip(ask_all(&mut client, &asked)) {
            let ours = answer(asked, Protocol::Resp2);
            if ours != theirs {
                different.push((inner, ours, theirs));
            }
        }
    }
    let differences = Differences::of("keys");
    let mut unlisted = BTreeMap::new();
    let refused = are_refused(&different.iter().map(|(inner, ..)| *inner).collect::<Vec<_>>());
    for ((inner, ours, theirs), is_refused) in different.iter().zip(refused) {
        let name = if is_refused { "* refused".to_owned() } else { name_of_difference(inner) };
        if !differences.has(&name) {
            let shown = format!("{:?}\n ours  {}\n Redis {}", inner.as_args(), shown(ours), shown(theirs));
            unlisted.entry(name).or_insert_with(Vec::new).push(shown);
        }
    }
    for (name, examples) in &unlisted {
        eprintln!("{name}: {} differ, such as\n{}", examples.len(), examples[..examples.len().min(4)].join("\n"));
    }
    assert!(
        unlisted.is_empty(),
        "of {} requests, {} are unlisted differences: {:?}",
        inner.len(),
        different.len(),
        unlisted.keys()
    );
    differences.assert_all_needed();
}
