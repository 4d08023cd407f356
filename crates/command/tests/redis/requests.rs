//! Generated requests: any words for any row, and near-sensible ones for the commands whose keys are hard to find.

use respool_command::Row;
use respool_testkit::Rng;
use respool_wire::ArgsBuf;

use crate::words;

const KEYS: &[&str] = &["k1", "k2", "k3", "k4", "string", "list", "hash", "set", "zset", "geo", "stream"];
const NUMBERS: &[&str] =
    &["0", "1", "1", "2", "2", "3", "-1", "10", "0-0", "$", ">", "1.5", "x", "", "01", "+1", "99999999999999999999"];
/// Option words, and what Redis takes for one.
#[rustfmt::skip]
const OPTIONS: &[&str] = &[
    "STORE", "store", "STORE\0x", "STOREDIST", "BY", "GET", "get", "LIMIT", "COUNT", "STREAMS", "streams", "BLOCK",
    "GROUP", "NOACK", "KEYS", "keys", "AUTH", "AUTH2", "COPY", "REPLACE", "ASC", "ALPHA", "SET", "INCRBY",
    "OVERFLOW", "WRAP", "u8", "WEIGHTS", "km", "MATCH", "NX", "EX", "ANY", "WITHDIST", "*", "#", "w_*",
];

/// Members and fields of the data that tests make, and words that many commands need to be valid.
const COMMON: &[&str] =
    &["a", "f", "g", "m", "1-1", "LEFT", "RIGHT", "MIN", "MAX", "AND", "BEFORE", "-", "+", "[a", "(1"];

fn word(rng: &mut Rng) -> &'static str {
    let words: &[&str] = match rng.below(10) {
        0..4 => KEYS,
        4..6 => NUMBERS,
        6..8 => COMMON,
        _ => OPTIONS,
    };
    words[rng.below(words.len())]
}

/// A request of this row with any words, mostly with a number of arguments that it accepts.
pub(crate) fn any(row: &Row, rng: &mut Rng) -> ArgsBuf {
    let mut request: Vec<Vec<u8>> = words(row).collect();
    let needed = usize::from(row.arity.unsigned_abs());
    let len = match rng.below(4) {
        0 => rng.between(1, needed + 8),
        _ if row.arity > 0 => needed,
        _ => rng.between(needed, needed + 6),
    };
    while request.len() < len.max(2) {
        request.push(word(rng).into());
    }
    if row.name == "MIGRATE" {
        // A port without a listener, so that nothing waits for it.
        for (at, fixed) in [(1, "127.0.0.1"), (2, "1"), (5, "10")] {
            request.get_mut(at).into_iter().for_each(|word| *word = fixed.into());
        }
    }
    request.into_iter().collect()
}

/// An option with arguments, each to be picked from its words.
type Option = &'static [&'static [&'static str]];

/// What may follow a command's fixed arguments.
struct Shape {
    command: &'static str,
    fixed: &'static [&'static [&'static str]],
    options: &'static [Option],
    /// What closes the request, if anything.
    end: &'static [&'static str],
    /// What may follow the end.
    tail: &'static [&'static str],
}

const DESTINATIONS: &[&str] = &["d1", "d2", "STORE", "store", "STOREDIST", "GET", "LIMIT", "COUNT", "BY"];
const GEO_OPTIONS: &[Option] = &[
    &[&["STORE", "store"], DESTINATIONS],
    &[&["STOREDIST"], DESTINATIONS],
    &[&["COUNT"], &["1", "9", "STORE"]],
    &[&["ASC"]],
    &[&["ANY"]],
];
const NAMES: &[&str] = &["g", "c", "STREAMS", "streams", "COUNT", "GROUP", "NOACK"];

const TAIL: &[&str] = &["k1", "k2", "d1", "list", "zset", "geo", "0", "1", "2", "x", "", "KEYS"];
const STREAM_TAIL: &[&str] = &["stream", "stream", "k1", "STREAMS", "0", ">", ">"];

const SHAPES: &[Shape] = &[
    Shape {
        command: "SORT",
        fixed: &[&["list", "set", "nokey"]],
        options: &[
            &[&["STORE", "store", "STORE\0x"], DESTINATIONS],
            &[&["LIMIT"], &["0", "STORE"], &["5", "STORE"]],
            &[&["GET"], &["#", "w_*", "STORE"]],
            &[&["BY"], &["nosort", "w_*", "STORE"]],
            &[&["ALPHA"]],
            &[&["DESC"]],
        ],
        end: &[],
        tail: TAIL,
    },
    Shape {
        command: "SORT_RO",
        fixed: &[&["list", "set", "nokey"]],
        options: &[&[&["STORE"], &["d1"]], &[&["GET"], &["#", "w_*"]], &[&["BY"], &["nosort", "w_*"]], &[&["ALPHA"]]],
        end: &[],
        tail: TAIL,
    },
    Shape {
        command: "GEORADIUS",
        fixed: &[&["geo", "nokey"], &["0"], &["0"], &["9000"], &["km"]],
        options: GEO_OPTIONS,
        end: &[],
        tail: TAIL,
    },
    Shape {
        command: "GEORADIUSBYMEMBER",
        fixed: &[&["geo"], &["m"], &["9000"], &["km"]],
        options: GEO_OPTIONS,
        end: &[],
        tail: TAIL,
    },
    Shape {
        command: "MIGRATE",
        fixed: &[&["127.0.0.1"], &["1"], &["", "", "k1"], &["0"], &["10"]],
        options: &[
            &[&["COPY"]],
            &[&["REPLACE"]],
            &[&["AUTH"], &["p", "KEYS"]],
            &[&["AUTH2"], &["u", "KEYS"], &["p", "keys"]],
        ],
        end: &["KEYS", "keys", "k2"],
        tail: TAIL,
    },
    Shape {
        command: "XREAD",
        fixed: &[],
        options: &[&[&["COUNT"], &["1", "STREAMS"]], &[&["BLOCK"], &["1", "STREAMS"]], &[&["NOACK"]]],
        end: &["STREAMS", "streams"],
        tail: STREAM_TAIL,
    },
    Shape {
        command: "XREADGROUP",
        fixed: &[&["GROUP"], NAMES, NAMES],
        options: &[&[&["COUNT"], &["1", "STREAMS"]], &[&["NOACK"]], &[&["BLOCK"], &["1"]]],
        end: &["STREAMS"],
        tail: STREAM_TAIL,
    },
    Shape {
        command: "XREADGROUP",
        fixed: &[],
        options: &[&[&["GROUP"], NAMES, NAMES], &[&["COUNT"], &["1", "STREAMS"]], &[&["NOACK"]], &[&["BLOCK"], &["1"]]],
        end: &["STREAMS", "streams"],
        tail: STREAM_TAIL,
    },
    Shape {
        command: "SET",
        fixed: &[&["string"], &["v", "GET"]],
        options: &[&[&["GET", "get", "GET\0"]], &[&["EX"], &["10", "GET"]], &[&["NX"]], &[&["KEEPTTL"]]],
        end: &[],
        tail: TAIL,
    },
    Shape {
        command: "BITFIELD",
        fixed: &[&["string", "nokey"]],
        options: &[
            &[&["GET"], &["u8", "SET"], &["0"]],
            &[&["SET"], &["u8"], &["0"], &["1"]],
            &[&["INCRBY"], &["u8"], &["0"], &["1", "GET"]],
            &[&["OVERFLOW"], &["WRAP", "SET"]],
        ],
        end: &[],
        tail: TAIL,
    },
    Shape { command: "PFMERGE", fixed: &[&["d1"]], options: &[], end: &["d2"], tail: TAIL },
    Shape {
        command: "EVAL",
        fixed: &[&["for i = 1, #KEYS do redis.call('INCR', KEYS[i]) end"], &["0", "1", "2", "3", "x", "-1"]],
        options: &[],
        end: &["d1"],
        tail: TAIL,
    },
    Shape {
        command: "ZUNIONSTORE",
        fixed: &[&["d1"], &["0", "1", "2", "3", "x"]],
        options: &[],
        end: &["zset"],
        tail: TAIL,
    },
    Shape {
        command: "LMOVE",
        fixed: &[&["list", "nokey"], &["d1", "list"], &["LEFT", "RIGHT"], &["LEFT", "RIGHT"]],
        options: &[],
        end: &[],
        tail: &[],
    },
    Shape {
        command: "BLMOVE",
        fixed: &[&["list", "nokey"], &["d1", "list"], &["LEFT", "RIGHT"], &["LEFT", "RIGHT"], &["0.01"]],
        options: &[],
        end: &[],
        tail: &[],
    },
    Shape {
        command: "BLMPOP",
        fixed: &[&["0.01"], &["1", "2"], &["list", "nokey"], &["LEFT", "list"]],
        options: &[],
        end: &["LEFT"],
        tail: TAIL,
    },
    Shape {
        command: "BZMPOP",
        fixed: &[&["0.01"], &["1", "2"], &["zset", "nokey"], &["MIN", "zset"]],
        options: &[],
        end: &["MIN"],
        tail: TAIL,
    },
    Shape {
        command: "ZMPOP",
        fixed: &[&["1", "2"], &["zset", "nokey"], &["MAX", "zset"]],
        options: &[],
        end: &["MAX"],
        tail: TAIL,
    },
    Shape { command: "SMOVE", fixed: &[&["set"], &["d1", "set"], &["1", "9"]], options: &[], end: &[], tail: &[] },
    Shape {
        command: "LMPOP",
        fixed: &[&["0", "1", "2"], &["list"], &["LEFT", "list"]],
        options: &[],
        end: &["LEFT", "RIGHT"],
        tail: TAIL,
    },
];

/// The commands of [`near`], each as often as it needs to be asked about.
pub(crate) fn shapes() -> usize {
    SHAPES.len()
}

/// A request of one of the hard commands, close to what a user or an attacker would send.
pub(crate) fn near(shape: usize, rng: &mut Rng) -> ArgsBuf {
    let shape = &SHAPES[shape];
    let mut request: Vec<&str> = vec![shape.command];
    request.extend(shape.fixed.iter().map(|words| *rng.pick(words)));
    if !shape.options.is_empty() {
        for _ in 0..rng.below(4) {
            let option = rng.pick(shape.options);
            request.extend(option.iter().map(|words| *rng.pick(words)));
        }
    }
    if !shape.end.is_empty() && !rng.once_in(8) {
        request.push(*rng.pick(shape.end));
        for _ in 0..rng.below(5) {
            request.push(*rng.pick(shape.tail));
        }
    }
    request.into_iter().collect()
}
