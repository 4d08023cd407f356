//! The keys found in generated requests, compared with `COMMAND GETKEYSANDFLAGS`.

use std::collections::BTreeMap;

use respool_command::resolve;
use respool_testkit::{Client, Rng};
use respool_wire::{ArgsBuf, Protocol};

use crate::differences::Differences;
use crate::{answer, ask_all, redis, request, requests, scale, shared_rows, shown, touched};

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

/// Compares, and keeps what differs without being listed.
struct Comparison {
    client: Client,
    /// A connection to another server, which executes what differs.
    judge: Client,
    differences: Differences,
    unlisted: BTreeMap<String, Vec<String>>,
}

impl Comparison {
    fn compare(&mut self, inner: &[ArgsBuf]) {
        for subcommand in ["GETKEYS", "GETKEYSANDFLAGS"] {
            let asked: Vec<_> = inner.iter().map(|inner| about(subcommand, inner)).collect();
            let theirs = ask_all(&mut self.client, &asked);
            let ours = asked.iter().map(|asked| answer(asked, Protocol::Resp2));
            for (inner, (ours, theirs)) in
                inner.iter().zip(ours.zip(theirs)).filter(|(_, (ours, theirs))| ours != theirs)
            {
                let name = if self.is_refused(inner) { "* refused".to_owned() } else { name_of_difference(inner) };
                if !self.differences.has(&name) {
                    let shown = format!("{:?}\n ours  {}\n Redis {}", inner.as_args(), shown(&ours), shown(&theirs));
                    self.unlisted.entry(name).or_default().push(shown);
                }
            }
        }
    }

    /// Whether a server refuses to execute the request. It is asked within a transaction, where nothing blocks.
    fn is_refused(&mut self, inner: &ArgsBuf) -> bool {
        let replies = ask_all(&mut self.judge, &[request(["MULTI"]), inner.clone(), request(["EXEC"])]);
        replies[2].starts_with(b"-") || replies[2].starts_with(b"*1\r\n-")
    }
}

#[test]
fn keys_are_found_where_redis_finds_them() {
    let (Some(server), Some(other)) = (redis(), redis()) else { return };
    let client = server.client().expect("the server accepts");
    let mut judge = other.client().expect("the server accepts");
    touched::fill(&mut judge);
    let mut comparison = Comparison { client, judge, differences: Differences::of("keys"), unlisted: BTreeMap::new() };
    let mut rng = Rng::new(2);
    let mut count = 0;
    for row in shared_rows() {
        let made: Vec<_> = (0..ROUNDS * scale()).map(|_| requests::any(row, &mut rng)).collect();
        comparison.compare(&made);
        count += made.len();
    }
    for shape in 0..requests::shapes() {
        let made = (0..NEAR_ROUNDS * scale()).map(|_| requests::near(shape, &mut rng));
        let made: Vec<_> = made.filter(|made| made.as_args().len() > 1).collect();
        comparison.compare(&made);
        count += made.len();
    }
    for (name, examples) in &comparison.unlisted {
        eprintln!("{name}: {} differ, such as\n{}", examples.len(), examples[..examples.len().min(4)].join("\n"));
    }
    assert!(comparison.unlisted.is_empty(), "of {count} requests, some differ: {:?}", comparison.unlisted.keys());
    eprintln!("{count} requests were compared");
    comparison.differences.assert_all_needed();
}
