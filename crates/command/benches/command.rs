//! What it costs to find a row and its keys: nanoseconds, or instructions where nanoseconds are too noisy.
//!
//! `cargo bench -p respool-command` times every case. For instructions, run one case a given number of times under callgrind,
//! and divide the difference between two numbers of times:
//!
//! ```text
//! valgrind --tool=callgrind --callgrind-out-file=/dev/null target/release/deps/command-* count lookup_get 1000000
//! ```

use std::hint::black_box;

use respool_command::{KeyPositions, lookup, resolve, top_level};
use respool_wire::ArgsBuf;

/// A case: sets itself up, and gives what is then run a number of times.
type Case = (&'static str, fn() -> Run);
type Run = Box<dyn FnMut(usize)>;

const CASES: &[Case] = &[
    ("lookup_get", || names(&["get"])),
    ("lookup_set_capitals", || names(&["SET"])),
    ("lookup_zrangebyscore", || names(&["ZRANGEBYSCORE"])),
    ("lookup_georadiusbymember_ro", || names(&["georadiusbymember_ro"])),
    ("lookup_unknown", || names(&["JSON.GET"])),
    ("lookup_each", || names(&top_level().map(|row| row.name).collect::<Vec<_>>())),
    ("resolve_get", || resolves(&["GET", "k"])),
    ("resolve_client_id", || resolves(&["CLIENT", "ID"])),
    ("resolve_cluster_slots", || resolves(&["CLUSTER", "SLOTS"])),
    ("first_get", || first(&["GET", "k"])),
    ("first_eval", || first(&["EVAL", "script", "1", "k"])),
    ("first_xreadgroup", || first(&["XREADGROUP", "GROUP", "g", "c", "COUNT", "10", "STREAMS", "s", ">"])),
    ("positions_get", || positions(&["GET", "k"])),
    ("positions_mget_10", || positions(&["MGET", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10"])),
    ("positions_sort", || positions(&["SORT", "l", "LIMIT", "0", "10", "ALPHA", "STORE", "d"])),
];

/// Looks names up one after the other; each of `times` is one look-up.
fn names(names: &[&str]) -> Run {
    let names: Vec<Vec<u8>> = names.iter().map(|name| name.as_bytes().to_vec()).collect();
    Box::new(move |times| {
        for name in names.iter().cycle().take(times) {
            black_box(lookup(black_box(name)));
        }
    })
}

fn request(words: &[&str]) -> ArgsBuf {
    words.iter().collect()
}

fn resolves(words: &[&str]) -> Run {
    let request = request(words);
    Box::new(move |times| {
        for _ in 0..times {
            let _ = black_box(resolve(black_box(request.as_args())));
        }
    })
}

fn first(words: &[&str]) -> Run {
    let request = request(words);
    let row = resolve(request.as_args()).expect("a known command");
    Box::new(move |times| {
        for _ in 0..times {
            black_box(black_box(row).keys.first(black_box(request.as_args())));
        }
    })
}

fn positions(words: &[&str]) -> Run {
    let request = request(words);
    let row = resolve(request.as_args()).expect("a known command");
    let mut found = KeyPositions::new();
    Box::new(move |times| {
        for _ in 0..times {
            let _ = black_box(black_box(row).keys.positions(black_box(request.as_args()), &mut found));
        }
    })
}

#[divan::bench(args = CASES.iter().map(|(name, _)| name))]
fn case(bencher: divan::Bencher, name: &str) {
    let mut run = find(name).expect("divan was given the names of this table")();
    bencher.counter(divan::counter::ItemsCount::new(1_000usize)).bench_local(|| run(1_000));
}

fn find(name: &str) -> Option<fn() -> Run> {
    CASES.iter().find(|(known, _)| *known == name).map(|(_, set_up)| *set_up)
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["count", name, times] => {
            let set_up = find(name).unwrap_or_else(|| panic!("no case {name}"));
            set_up()(times.parse().expect("a number of times"));
        }
        _ => divan::main(),
    }
}
