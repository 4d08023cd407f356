//! What routing costs: nanoseconds, or instructions where nanoseconds are too noisy.
//!
//! `cargo bench -p respool-route` times every case. For instructions, run one case a given number of times under callgrind,
//! and divide the difference between two numbers of times:
//!
//! ```text
//! valgrind --tool=callgrind --callgrind-out-file=/dev/null target/release/deps/route-* count plan_get_1 1000000
//! ```

use std::hint::black_box;

use respool_command::{Row, resolve};
use respool_route::{Gather, Node, Placement, Plan, Scheme, Scratch, Topology, plan};
use respool_wire::{ArgsBuf, ReplyKind, Request};

/// A case: sets itself up, and gives what is then run a number of times.
type Case = (&'static str, fn() -> Run);
type Run = Box<dyn FnMut(usize)>;

const CASES: &[Case] = &[
    ("place_rmux_16", || place("rmux", 4, 16)),
    ("place_rmux_2013_16", || place("rmux-2013", 4, 16)),
    ("place_crc32_16", || place("crc32", 4, 16)),
    ("place_slots_16", || place("slots", 4, 16)),
    ("place_slots_32", || place("slots", 4, 32)),
    ("place_slots_untagged_32", || place("slots+none", 4, 32)),
    ("place_slots_64", || place("slots", 4, 64)),
    ("place_ketama_16", || place("ketama", 4, 16)),
    ("place_ketama_16_of_100", || place("ketama", 100, 16)),
    ("place_ketama_md5_16", || place("ketama:md5", 4, 16)),
    ("place_rendezvous_16", || place("rendezvous", 4, 16)),
    ("place_rendezvous_16_of_100", || place("rendezvous", 100, 16)),
    ("place_jump_16", || place("jump", 4, 16)),
    ("place_jump_16_of_100", || place("jump", 100, 16)),
    ("plan_get_1", || plans(&["GET", "0123456789abcdef"], 1)),
    ("plan_get_4", || plans(&["GET", "0123456789abcdef"], 4)),
    ("plan_ping_4", || plans(&["PING"], 4)),
    ("plan_mset_10_1", || plans(&mset(), 1)),
    ("plan_mset_10_4", || plans(&mset(), 4)),
    ("plan_mget_10_together_4", || plans(&mget("{tag}"), 4)),
    ("split_mset_10_4", split_mset),
    ("gather_mset_4", || gather(&mset(), b"+OK\r\n", ReplyKind::Simple)),
    ("gather_del_4", || gather(&del(), b":2\r\n", ReplyKind::Integer)),
    ("gather_mget_10_4", gather_mget),
];

fn nodes(count: usize) -> Vec<Node> {
    (0..count).map(|node| Node::new(format!("127.0.0.1:{}", 7_000 + node))).collect()
}

/// Places keys of one length, each different from the last.
fn place(scheme: &str, count: usize, bytes: usize) -> Run {
    let scheme: Scheme = scheme.parse().expect("a known scheme");
    let placement = Placement::new(scheme, &nodes(count)).expect("a list that fits");
    let mut key = vec![b'k'; bytes];
    Box::new(move |times| {
        for at in 0..times {
            key[bytes - 1] = b'0' + (at & 63) as u8;
            black_box(placement.place(black_box(&key)));
        }
    })
}

fn request(words: &[impl AsRef<[u8]>]) -> (ArgsBuf, &'static Row) {
    let request: ArgsBuf = words.iter().collect();
    let row = resolve(request.as_args()).expect("a known command");
    (request, row)
}

fn mset() -> Vec<String> {
    let pairs = (0..10).flat_map(|key| [format!("key:{key:012}"), "xxx".to_owned()]);
    std::iter::once("MSET".to_owned()).chain(pairs).collect()
}

fn mget(tag: &str) -> Vec<String> {
    std::iter::once("MGET".to_owned()).chain((0..10).map(|key| format!("{tag}key:{key:012}"))).collect()
}

fn del() -> Vec<String> {
    std::iter::once("DEL".to_owned()).chain((0..10).map(|key| format!("key:{key:012}"))).collect()
}

fn topology(count: usize) -> Topology {
    Topology::new(Scheme::default(), nodes(count)).expect("a list that fits")
}

fn plans(words: &[impl AsRef<[u8]>], count: usize) -> Run {
    let (request, row) = request(words);
    let topology = topology(count);
    let mut scratch = Scratch::new();
    Box::new(move |times| {
        let args = request.as_args();
        for _ in 0..times {
            let plan = plan(black_box(row), args, &topology, black_box(&mut scratch));
            assert!(black_box(plan).is_ok());
        }
    })
}

/// Plans, and encodes every part.
fn split_mset() -> Run {
    let (request, row) = request(&mset());
    let topology = topology(4);
    let mut scratch = Scratch::new();
    let mut out = Vec::new();
    Box::new(move |times| {
        for _ in 0..times {
            assert_eq!(plan(row, black_box(request.as_args()), &topology, &mut scratch), Ok(Plan::Split));
            out.clear();
            scratch.parts().for_each(|part| part.encode(&Request::made(request.as_args()), &mut out));
            black_box(&out);
        }
    })
}

/// Joins the same reply of each part.
fn gather(words: &[String], reply: &'static [u8], kind: ReplyKind) -> Run {
    joins(words, kind, |_| reply.to_vec())
}

fn gather_mget() -> Run {
    joins(&mget(""), ReplyKind::Array, |keys| format!("*{keys}\r\n{}", "$3\r\nxxx\r\n".repeat(keys)).into_bytes())
}

/// Joins what `reply` says to a number of keys.
fn joins(words: &[String], kind: ReplyKind, reply: impl Fn(usize) -> Vec<u8>) -> Run {
    let (request, row) = request(words);
    let mut scratch = Scratch::new();
    assert_eq!(plan(row, request.as_args(), &topology(4), &mut scratch), Ok(Plan::Split));
    let replies: Vec<_> = scratch.parts().map(|part| reply(part.keys.len())).collect();
    let (mut gather, mut out) = (Gather::new(), Vec::new());
    Box::new(move |times| {
        for _ in 0..times {
            gather.begin_split(row, &scratch);
            for (part, reply) in replies.iter().enumerate() {
                gather.accept(part, kind, black_box(reply));
            }
            out.clear();
            gather.finish(&mut out);
            black_box(&out);
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
