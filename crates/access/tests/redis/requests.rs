//! Generated requests of every command, with keys and channels that rules speak of.

use respool_command::Row;
use respool_testkit::Rng;
use respool_wire::ArgsBuf;

#[rustfmt::skip]
const WORDS: &[&str] = &[
    "a", "b", "ab", "key", "key:a", "a:b", "r1", "w1", "", "*", "a*", "0", "1", "2", "-1", "0", "1", "object", "OBJECT",
    "STORE", "GET", "BY", "LIMIT", "COUNT", "STREAMS", "KEYS", "GROUP", "x", "10", ">", "$", "LEFT", "RIGHT", "EX",
];

/// A request of this row with any words, mostly with a number of arguments that it accepts.
pub(crate) fn any(row: &Row, rng: &mut Rng) -> ArgsBuf {
    let mut request: Vec<Vec<u8>> = row.name.split(' ').map(|word| word.as_bytes().to_vec()).collect();
    let needed = usize::from(row.arity.unsigned_abs());
    let len = match rng.below(8) {
        0 => rng.between(1, needed + 4),
        _ if row.arity > 0 => needed,
        _ => rng.between(needed, needed + 5),
    };
    while request.len() < len {
        request.push((*rng.pick(WORDS)).into());
    }
    request.into_iter().collect()
}
