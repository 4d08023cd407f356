//! Requests about streams: their templates, and the ids in them.

use respool_testkit::Rng;

/// As the other templates, with slots of their own: `{a}` a key that mostly holds a stream, `{I}` the id of a new entry,
/// `{j}` one that may exist, `{J}` a bound of ids, `{N}` a number of entries, `{G}` a group, `{C}` a consumer, `{k}` milliseconds
/// of idleness that no clock comes near, `{q}` two fields with their values.
pub(super) const TEMPLATES: &str = "
XADD {a} {I} {q}
XADD {a} {I} {q}
XADD {a} {I} {q}
XADD {a} {I} {q} {q}
XADD {a} {I} +3 {m} {v}
XADD {a} {j} +2 {m} {v}
XADD {a} * {q}
XADD {a} (NOMKSTREAM|MAXLEN [~|=|5] {N}|MAXLEN {N}|MINID [~|=] {j}|LIMIT {i}) {I} {q}
XADD {a} [MAXLEN|MINID] ~ [{N}|{j}] LIMIT [0|1|100|150|x] {I} {q}
XADD {a} NOMKSTREAM {I} {q}
XLEN {a}
XRANGE {a} - +
XRANGE {a} {J} {J}
XRANGE {a} {J} {J} COUNT {c}
XRANGE {a} {J} {J} (COUNT {i}|COUNT {r})
XREVRANGE {a} + -
XREVRANGE {a} {J} {J}
XREVRANGE {a} {J} {J} (COUNT {c})
XDEL {a} +3 {j}
XDEL {a} {j}
XTRIM {a} MAXLEN {N}
XTRIM {a} MAXLEN ~ {N}
XTRIM {a} [MAXLEN|MINID] [~|=|{j}] [{N}|{j}] (LIMIT {N})
XTRIM {a} MINID {j}
XTRIM {a} MINID ~ {j}
XTRIM {a} MAXLEN ~ {c} LIMIT [0|1|99|100|101|1000]
XSETID {a} {j}
XSETID {a} {I} (ENTRIESADDED {i}|MAXDELETEDID {j}|ENTRIESADDED {N})
XSETID {a} {I} ENTRIESADDED {N} MAXDELETEDID {j}
XREAD STREAMS {a} {j}
XREAD COUNT {c} STREAMS {a} {a} {j} {j}
XREAD (COUNT {i}|BLOCK 3|NOACK) STREAMS {a} {j}
XREAD (COUNT {c}|BLOCK 3) STREAMS {a} {a} {a} {j} $ {j}
XREAD COUNT {c} STREAMS {a} {a} {j}
XREAD BLOCK [3|x|-1] STREAMS {a} [$|>|0|{j}]
XGROUP CREATE {a} {G} [0|$|{j}] (MKSTREAM|ENTRIESREAD {i})
XGROUP CREATE {a} {G} [0|$|{j}] MKSTREAM
XGROUP CREATE {a} {G} 0 MKSTREAM ENTRIESREAD {c}
XGROUP SETID {a} {G} [0|$|-|+|{j}] (ENTRIESREAD {i})
XGROUP SETID {a} {G} {j}
XGROUP DESTROY {a} {G}
XGROUP CREATECONSUMER {a} {G} {C}
XGROUP DELCONSUMER {a} {G} {C}
XREADGROUP GROUP {G} {C} STREAMS {a} >
XREADGROUP GROUP {G} {C} COUNT {c} STREAMS {a} >
XREADGROUP GROUP {G} {C} COUNT {c} STREAMS {a} >
XREADGROUP GROUP {G} {C} (COUNT {c}|NOACK|BLOCK 3) STREAMS {a} >
XREADGROUP GROUP {G} {C} (COUNT {c}|NOACK) STREAMS {a} [0|{j}]
XREADGROUP GROUP {G} {C} (COUNT {c}|BLOCK 3) STREAMS {a} {a} > [>|0|$]
XREADGROUP (COUNT {c}|BLOCK 3|GROUP {G} {C}) STREAMS {a} >
XACK {a} {G} +4 {j}
XACK {a} {G} {j}
XPENDING {a} {G}
XPENDING {a} {G} - + {c}
XPENDING {a} {G} {J} {J} {i}
XPENDING {a} {G} {J} {J} 100 {C}
XPENDING {a} {G} IDLE {k} {J} {J} 100
XPENDING {a} {G} IDLE {k} - + {c} {C}
XCLAIM {a} {G} {C} {k} +3 {j}
XCLAIM {a} {G} {C} 0 {j} {j} (IDLE {k}|TIME [1|1600000000000|99999999999999|-1|x]|RETRYCOUNT {i}|FORCE|JUSTID|LASTID {j})
XCLAIM {a} {G} {C} {k} {j} {j} {j} (FORCE|JUSTID)
XCLAIM {a} {G} {C} 0 {j} FORCE (JUSTID|IDLE {k}|NOSUCH)
XAUTOCLAIM {a} {G} {C} {k} {J} (COUNT [1|2|5|100|0|-1|x]|JUSTID)
XAUTOCLAIM {a} {G} {C} 0 0
XAUTOCLAIM {a} {G} {C} 0 {j} COUNT [1|2|3] (JUSTID)
XINFO STREAM {a}
XINFO STREAM {a} FULL
XINFO STREAM {a} FULL COUNT {c}
XINFO STREAM {a} [FULL|COUNT] (COUNT {i})
XINFO GROUPS {a}
XINFO GROUPS {a}
XINFO CONSUMERS {a} {G}
TYPE {a}
DEL {a}
UNLINK {a} {a}
RENAME {a} {a}
COPY {a} {a} REPLACE
COPY {a} {a} REPLACE
EXPIRE {a} {d}
OBJECT ENCODING {a}
";

/// Ids at the limits, and invalid ones.
const IDS: &[&str] = &[
    "0",
    "0-0",
    "0-1",
    "-",
    "+",
    "$",
    ">",
    "*",
    "",
    "x",
    "1-",
    "-1",
    "1-x",
    "1--1",
    "1--01",
    "+1-1",
    " 1-1",
    "01-1",
    "18446744073709551615-18446744073709551615",
    "18446744073709551615",
    "18446744073709551616-0",
    "9223372036854775808-1",
    "5-18446744073709551615",
    "(1-1",
];

/// The generated ids.
#[derive(Default)]
pub(super) struct Ids {
    /// The last one, as a number: there are four to a millisecond.
    last: u64,
    /// The number of requests left that use one stream and one group, so that many entries are pending.
    pub(super) focus: usize,
}

fn text(number: u64) -> Vec<u8> {
    format!("{}-{}", number / 4, number % 4).into_bytes()
}

impl Ids {
    /// The text for a slot of these templates; `None` for an unknown slot.
    pub(super) fn slot(&mut self, rng: &mut Rng, slot: &str) -> Option<Vec<u8>> {
        let pick = |rng: &mut Rng, words: &[&str]| rng.pick(words).as_bytes().to_vec();
        Some(match slot {
            "I" => self.new_id(rng),
            "j" => self.old_id(rng),
            "J" => match rng.below(6) {
                0 => b"-".to_vec(),
                1 => b"+".to_vec(),
                2 => [b"(".to_vec(), self.old_id(rng)].concat(),
                _ => self.old_id(rng),
            },
            "N" => pick(rng, &["0", "1", "2", "5", "20", "50", "99", "100", "101", "150", "200", "-1"]),
            "G" if self.focus > 0 => b"g0".to_vec(),
            "C" if self.focus > 0 => pick(rng, &["c0", "c1"]),
            "G" => pick(rng, &["g0", "g0", "g1", "g2", "7"]),
            "C" => pick(rng, &["c0", "c1", "c2", "12"]),
            "k" => pick(rng, &["0", "50000000", "100000000", "-1", "9223372036854775807", "x"]),
            _ => return None,
        })
    }

    /// The id of a new entry, greater than all before.
    fn new_id(&mut self, rng: &mut Rng) -> Vec<u8> {
        self.last += 1 + rng.below(3) as u64;
        match rng.below(20) {
            0 => format!("{}-*", self.last / 4).into_bytes(),
            1 => (self.last / 4).to_string().into_bytes(),
            _ => text(self.last),
        }
    }

    /// An id that may exist, generated lately or long ago.
    fn old_id(&mut self, rng: &mut Rng) -> Vec<u8> {
        let back = match rng.below(4) {
            0 => rng.below(400) as u64,
            1 => self.last,
            _ => rng.below(40) as u64,
        };
        let number = self.last.saturating_sub(back);
        match rng.below(30) {
            0 => rng.pick(IDS).as_bytes().to_vec(),
            1 => (number / 4).to_string().into_bytes(),
            _ => text(number),
        }
    }
}
