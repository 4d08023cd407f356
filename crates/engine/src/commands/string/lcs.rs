//! `LCS`: the longest common subsequence of two strings, its length, or where it lies in both.

use respool_command::text;

use super::super::{Answer, Call, Fault};
use crate::limits::STRING_BYTES_MAX;
use crate::number::integer;
use crate::store::listpack::Element;

const NOT_STRINGS: &str = "ERR The specified keys must contain string values";
const LENGTH_AND_INDEX: &str = "ERR If you want both the length and indexes, please just use IDX.";
const TOO_MUCH_MEMORY: &str = "ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len";

/// Options of `LCS`.
#[derive(Default)]
struct Options {
    only_length: bool,
    with_index: bool,
    with_lengths: bool,
    shortest: usize,
}

/// A stretch that both strings have: first and last offset in each.
struct Stretch {
    a: (usize, usize),
    b: (usize, usize),
}

impl Stretch {
    fn len(&self) -> usize {
        self.a.1 - self.a.0 + 1
    }
}

pub(super) fn lcs(call: &mut Call<'_, '_>) -> Answer {
    let (first, second) = (call.keyspace.read(call.at, call.arg(1)), call.keyspace.read(call.at, call.arg(2)));
    // The second look-up may have removed an expired key, so the first is repeated.
    let first = first.and_then(|_| call.keyspace.peek(call.at, call.arg(1)));
    let is_string = |found: Option<_>| found.is_none_or(|found| call.keyspace.kind(found).is_string());
    if !is_string(first) || !is_string(second) {
        return Err(NOT_STRINGS.into());
    }
    let text =
        |found: Option<_>| found.and_then(|found| call.keyspace.text(found)).map_or_else(Vec::new, Element::to_vec);
    let (a, b) = (text(first), text(second));
    let options = options(call)?;
    let rows = Lengths::new(&a, &b)?;
    if options.only_length {
        return call.reply_count(rows.at(a.len(), b.len()) as usize);
    }
    let (common, stretches) = walk_back(&a, &b, &rows);
    if !options.with_index {
        call.reply.bulk(&common);
        return Ok(());
    }
    let shown: Vec<_> = stretches.iter().filter(|stretch| stretch.len() >= options.shortest).collect();
    call.reply.map(2);
    call.reply.bulk(b"matches");
    call.reply.array(shown.len());
    for stretch in shown {
        call.reply.array(if options.with_lengths { 3 } else { 2 });
        for (start, end) in [stretch.a, stretch.b] {
            call.reply.array(2);
            call.reply_count(start)?;
            call.reply_count(end)?;
        }
        if options.with_lengths {
            call.reply_count(stretch.len())?;
        }
    }
    call.reply.bulk(b"len");
    call.reply_count(common.len())
}

fn options(call: &Call<'_, '_>) -> Result<Options, Fault> {
    let mut options = Options::default();
    let mut index = 3;
    while index < call.args.len() {
        if call.is_word(index, "IDX") {
            options.with_index = true;
        } else if call.is_word(index, "LEN") {
            options.only_length = true;
        } else if call.is_word(index, "WITHMATCHLEN") {
            options.with_lengths = true;
        } else if call.is_word(index, "MINMATCHLEN") && index + 1 < call.args.len() {
            index += 1;
            let shortest = integer::parse(call.arg(index)).ok_or(text::NOT_AN_INTEGER)?;
            options.shortest = usize::try_from(shortest).unwrap_or(0);
        } else {
            return Err(text::SYNTAX.into());
        }
        index += 1;
    }
    if options.only_length && options.with_index {
        return Err(LENGTH_AND_INDEX.into());
    }
    Ok(options)
}

/// For every two prefixes, how long their longest common subsequence is.
struct Lengths {
    cells: Vec<u32>,
    width: usize,
}

impl Lengths {
    fn new(a: &[u8], b: &[u8]) -> Result<Self, Fault> {
        let width = b.len() + 1;
        let cells = (a.len() + 1).checked_mul(width).filter(|cells| *cells <= STRING_BYTES_MAX / size_of::<u32>());
        let mut rows = Self { cells: vec![0; cells.ok_or(TOO_MUCH_MEMORY)?], width };
        for (i, x) in a.iter().enumerate() {
            for (j, y) in b.iter().enumerate() {
                let best = if x == y { rows.at(i, j) + 1 } else { rows.at(i, j + 1).max(rows.at(i + 1, j)) };
                rows.cells[(i + 1) * width + j + 1] = best;
            }
        }
        Ok(rows)
    }

    fn at(&self, i: usize, j: usize) -> u32 {
        self.cells[i * self.width + j]
    }
}

/// The subsequence, and its stretches from the last to the first.
fn walk_back(a: &[u8], b: &[u8], rows: &Lengths) -> (Vec<u8>, Vec<Stretch>) {
    let (mut i, mut j) = (a.len(), b.len());
    let mut common = Vec::new();
    let mut stretches: Vec<Stretch> = Vec::new();
    while i > 0 && j > 0 {
        if a[i - 1] == b[j - 1] {
            common.push(a[i - 1]);
            match stretches.last_mut() {
                Some(last) if last.a.0 == i && last.b.0 == j => (last.a.0, last.b.0) = (i - 1, j - 1),
                _ => stretches.push(Stretch { a: (i - 1, i - 1), b: (j - 1, j - 1) }),
            }
            (i, j) = (i - 1, j - 1);
        } else if rows.at(i - 1, j) > rows.at(i, j - 1) {
            i -= 1;
        } else {
            j -= 1;
        }
    }
    common.reverse();
    (common, stretches)
}
