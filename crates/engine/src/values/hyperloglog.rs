//! HyperLogLogs: strings that count distinct elements in about 12 KB at most, in Redis's layout.
//!
//! ```text
//! 0..4    "HYLL"
//! 4       0: dense, 1: sparse
//! 5..8    unused
//! 8..16   the cached count, little-endian; the highest bit marks it as stale
//! 16..    registers: six bits each (dense), or runs of them (sparse)
//!
//! a run   00xxxxxx           x + 1 registers are zero
//!         01xxxxxx yyyyyyyy  xy + 1 registers are zero
//!         1vvvvvxx           x + 1 registers are v + 1
//! ```
//!
//! The estimate is Ertl's ("New cardinality estimation algorithms for HyperLogLog sketches", 2017). This module is independent
//! of keys.

/// Registers of every HyperLogLog.
pub(crate) const REGISTERS: usize = 1 << INDEX_BITS;
/// Bits of a hash that choose the register.
const INDEX_BITS: u32 = 14;
/// Bits of a hash whose trailing zeros are counted.
const RANK_BITS: u32 = 64 - INDEX_BITS;
const REGISTER_BITS: usize = 6;
const REGISTER_MAX: u8 = (1 << REGISTER_BITS) - 1;

const MAGIC: &[u8] = b"HYLL";
const DENSE: u8 = 0;
const SPARSE: u8 = 1;
const ENCODING_AT: usize = 4;
const COUNT_AT: usize = 8;
const HEADER_BYTES: usize = 16;
const DENSE_BYTES: usize = HEADER_BYTES + (REGISTERS * REGISTER_BITS).div_ceil(8);
/// Set in the last byte of the cached count while it is stale.
const IS_STALE: u8 = 0x80;

/// The largest value and the longest run of a sparse run with a value.
const RUN_VALUE_MAX: u8 = 32;
const RUN_LENGTH_MAX: usize = 4;
/// The longest run of zeros that takes one byte.
const ZEROS_SHORT_MAX: usize = 64;
/// Runs that are examined after a change, to merge adjacent ones.
const JOINED_RUNS: usize = 5;

/// The seed of the hash of elements.
const SEED: u64 = 0xadc8_3b19;
/// 1 / (2 ln 2).
const ALPHA: f64 = 0.721_347_520_444_481_7;

/// The runs do not cover all registers: the string was not written by these commands.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Corrupted;

/// The registers of a sparse run.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Run {
    value: u8,
    len: usize,
    bytes: usize,
}

impl Run {
    /// Decodes the first run of `bytes`, which are not empty.
    fn read(bytes: &[u8]) -> Self {
        let low = usize::from(bytes[0] & 0x3f);
        match bytes[0] >> 6 {
            0 => Self { value: 0, len: low + 1, bytes: 1 },
            1 => {
                let rest = bytes.get(1).copied().unwrap_or(0);
                Self { value: 0, len: (low << 8 | usize::from(rest)) + 1, bytes: 2 }
            }
            _ => Self { value: (bytes[0] >> 2 & 0x1f) + 1, len: usize::from(bytes[0] & 3) + 1, bytes: 1 },
        }
    }

    /// Encodes a run of at least one register in the fewest bytes; a run with a value is at most four long.
    fn write(value: u8, len: usize, out: &mut Vec<u8>) {
        if value > 0 {
            out.push(0x80 | (value - 1) << 2 | (len - 1) as u8);
        } else if len <= ZEROS_SHORT_MAX {
            out.push((len - 1) as u8);
        } else {
            out.extend_from_slice(&[0x40 | ((len - 1) >> 8) as u8, (len - 1) as u8]);
        }
    }

    fn is_value(byte: u8) -> bool {
        byte & 0x80 != 0
    }
}

/// The runs of a sparse HyperLogLog. The end of a last run whose second byte is missing lies outside of the bytes.
fn runs(bytes: &[u8]) -> impl Iterator<Item = Run> + '_ {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let run = rest.first().map(|_| Run::read(rest))?;
        rest = rest.get(run.bytes..).unwrap_or_default();
        Some(run)
    })
}

/// MurmurHash2, 64 bits.
fn hash(bytes: &[u8]) -> u64 {
    const FACTOR: u64 = 0xc6a4_a793_5bd1_e995;
    const SHIFT: u32 = 47;
    let mut hash = SEED ^ (bytes.len() as u64).wrapping_mul(FACTOR);
    let mut words = bytes.chunks_exact(8);
    for word in &mut words {
        let mut wide = [0; 8];
        wide.copy_from_slice(word);
        let mut mixed = u64::from_le_bytes(wide).wrapping_mul(FACTOR);
        mixed ^= mixed >> SHIFT;
        hash = (hash ^ mixed.wrapping_mul(FACTOR)).wrapping_mul(FACTOR);
    }
    let tail = words.remainder();
    if !tail.is_empty() {
        let mut wide = [0; 8];
        wide[..tail.len()].copy_from_slice(tail);
        hash = (hash ^ u64::from_le_bytes(wide)).wrapping_mul(FACTOR);
    }
    hash = (hash ^ hash >> SHIFT).wrapping_mul(FACTOR);
    hash ^ hash >> SHIFT
}

/// The register of an element, and the least value of the register that covers it.
fn register_of(element: &[u8]) -> (usize, u8) {
    let hash = hash(element);
    let rank = (hash >> INDEX_BITS | 1 << RANK_BITS).trailing_zeros() + 1;
    (hash as usize & (REGISTERS - 1), rank as u8)
}

/// The six bits of register `index`, which may lie in two bytes.
fn dense_get(registers: &[u8], index: usize) -> u8 {
    let (byte, bit) = (index * REGISTER_BITS / 8, index * REGISTER_BITS % 8);
    let next = registers.get(byte + 1).copied().unwrap_or(0);
    (u16::from_le_bytes([registers[byte], next]) >> bit) as u8 & REGISTER_MAX
}

fn dense_put(registers: &mut [u8], index: usize, value: u8) {
    let (byte, bit) = (index * REGISTER_BITS / 8, index * REGISTER_BITS % 8);
    let next = registers.get(byte + 1).copied().unwrap_or(0);
    let old = u16::from_le_bytes([registers[byte], next]);
    let new = (old & !(u16::from(REGISTER_MAX) << bit) | u16::from(value) << bit).to_le_bytes();
    registers[byte] = new[0];
    if let Some(next) = registers.get_mut(byte + 1) {
        *next = new[1];
    }
}

/// Raises a register; whether it was lower.
fn dense_raise(registers: &mut [u8], index: usize, value: u8) -> bool {
    let is_raised = value > dense_get(registers, index);
    if is_raised {
        dense_put(registers, index, value);
    }
    is_raised
}

/// Whether `text` has the header and size of a HyperLogLog. Runs are only checked when they are used.
pub(crate) fn is_valid(text: &[u8]) -> bool {
    let has_header = text.len() >= HEADER_BYTES && text.starts_with(MAGIC);
    has_header && (text[ENCODING_AT] == SPARSE || (text[ENCODING_AT] == DENSE && text.len() == DENSE_BYTES))
}

/// Whether a valid HyperLogLog is dense.
pub(crate) fn is_dense(text: &[u8]) -> bool {
    text[ENCODING_AT] == DENSE
}

/// An empty HyperLogLog, whose cached count of zero is valid.
pub(crate) fn new() -> Vec<u8> {
    let mut text = vec![0; HEADER_BYTES];
    text[..MAGIC.len()].copy_from_slice(MAGIC);
    text[ENCODING_AT] = SPARSE;
    Run::write(0, REGISTERS, &mut text);
    text
}

/// The cached count, if it is valid.
pub(crate) fn kept_count(text: &[u8]) -> Option<u64> {
    let mut count = [0; 8];
    count.copy_from_slice(&text[COUNT_AT..HEADER_BYTES]);
    (count[7] & IS_STALE == 0).then(|| u64::from_le_bytes(count))
}

/// Caches a count.
pub(crate) fn keep_count(text: &mut [u8], count: u64) {
    text[COUNT_AT..HEADER_BYTES].copy_from_slice(&count.to_le_bytes());
}

/// Marks the cached count as stale.
pub(crate) fn forget_count(text: &mut [u8]) {
    text[HEADER_BYTES - 1] |= IS_STALE;
}

/// Adds an element; whether that has changed a register.
pub(crate) fn add(text: &mut Vec<u8>, element: &[u8], sparse_bytes_max: usize) -> Result<bool, Corrupted> {
    let (index, value) = register_of(element);
    raise(text, index, value, sparse_bytes_max)
}

/// Raises a register to at least `value`; whether it was lower.
pub(crate) fn raise(text: &mut Vec<u8>, index: usize, value: u8, sparse_bytes_max: usize) -> Result<bool, Corrupted> {
    if is_dense(text) {
        return Ok(dense_raise(&mut text[HEADER_BYTES..], index, value));
    }
    match raise_run(text, index, value, sparse_bytes_max)? {
        Some(is_raised) => Ok(is_raised),
        None => {
            make_dense(text)?;
            Ok(dense_raise(&mut text[HEADER_BYTES..], index, value))
        }
    }
}

/// As [`raise`] for sparse registers; `None` if they can no longer be sparse.
fn raise_run(text: &mut Vec<u8>, index: usize, value: u8, bytes_max: usize) -> Result<Option<bool>, Corrupted> {
    if value > RUN_VALUE_MAX {
        return Ok(None);
    }
    // The run that covers the register, the one before it, and the first register that it covers.
    let (mut at, mut before, mut first) = (HEADER_BYTES, None, 0);
    let run = loop {
        let run = text.get(at..).filter(|rest| !rest.is_empty()).map(Run::read).ok_or(Corrupted)?;
        if index < first + run.len {
            break run;
        }
        before = Some(at);
        at += run.bytes;
        first += run.len;
    };
    if run.value >= value {
        return Ok(Some(false));
    }
    let mut split = Vec::with_capacity(5);
    let (left, right) = (index - first, first + run.len - 1 - index);
    if left > 0 {
        Run::write(run.value, left, &mut split);
    }
    Run::write(value, 1, &mut split);
    if right > 0 {
        Run::write(run.value, right, &mut split);
    }
    let end = (at + run.bytes).min(text.len());
    if split.len() > run.bytes && text.len() + split.len() - run.bytes > bytes_max {
        return Ok(None);
    }
    text.splice(at..end, split);
    join_runs(text, before.unwrap_or(HEADER_BYTES));
    forget_count(text);
    Ok(Some(true))
}

/// Merges adjacent runs of one value, as far as a change at `at` can have created some.
fn join_runs(text: &mut Vec<u8>, mut at: usize) {
    let mut left = JOINED_RUNS;
    while at < text.len() && left > 0 {
        left -= 1;
        let run = Run::read(&text[at..]);
        if run.value > 0 && text.get(at + 1).copied().is_some_and(Run::is_value) {
            let next = Run::read(&text[at + 1..]);
            if next.value == run.value && run.len + next.len <= RUN_LENGTH_MAX {
                let mut joined = Vec::with_capacity(1);
                Run::write(run.value, run.len + next.len, &mut joined);
                text.splice(at..at + 2, joined);
                // The merged run may merge with the next one as well.
                continue;
            }
        }
        at += run.bytes;
    }
}

/// Converts sparse registers to dense ones.
pub(crate) fn make_dense(text: &mut Vec<u8>) -> Result<(), Corrupted> {
    if is_dense(text) {
        return Ok(());
    }
    let mut dense = vec![0; DENSE_BYTES];
    let (header, registers) = dense.split_at_mut(HEADER_BYTES);
    each_run(text, |first, run| (first..first + run.len).for_each(|index| dense_put(registers, index, run.value)))?;
    header.copy_from_slice(&text[..HEADER_BYTES]);
    header[ENCODING_AT] = DENSE;
    *text = dense;
    Ok(())
}

/// Calls `see` for each run with a value and its first register; fails unless the runs cover all registers.
fn each_run(text: &[u8], mut see: impl FnMut(usize, Run)) -> Result<(), Corrupted> {
    let mut first = 0;
    for run in runs(&text[HEADER_BYTES..]) {
        if first + run.len > REGISTERS {
            return Err(Corrupted);
        }
        if run.value > 0 {
            see(first, run);
        }
        first += run.len;
    }
    if first == REGISTERS { Ok(()) } else { Err(Corrupted) }
}

/// All registers, one byte each, for unions.
pub(crate) struct Registers(Vec<u8>);

impl Registers {
    /// All registers are zero.
    pub(crate) fn new() -> Self {
        Self(vec![0; REGISTERS])
    }

    /// Raises every register to that of a HyperLogLog.
    pub(crate) fn merge(&mut self, text: &[u8]) -> Result<(), Corrupted> {
        if is_dense(text) {
            let registers = &text[HEADER_BYTES..];
            self.0.iter_mut().enumerate().for_each(|(index, own)| *own = (*own).max(dense_get(registers, index)));
            return Ok(());
        }
        each_run(text, |first, run| {
            self.0[first..first + run.len].iter_mut().for_each(|own| *own = (*own).max(run.value));
        })
    }

    /// The registers that are not zero.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, u8)> + '_ {
        self.0.iter().copied().enumerate().filter(|(_, value)| *value > 0)
    }

    /// The estimated number of distinct elements.
    pub(crate) fn count(&self) -> u64 {
        let mut histogram = Histogram::default();
        self.0.iter().for_each(|value| histogram.add(*value, 1));
        histogram.estimate()
    }
}

/// The estimated number of distinct elements of a HyperLogLog.
pub(crate) fn count(text: &[u8]) -> Result<u64, Corrupted> {
    let mut histogram = Histogram::default();
    if is_dense(text) {
        (0..REGISTERS).for_each(|index| histogram.add(dense_get(&text[HEADER_BYTES..], index), 1));
    } else {
        let mut zeros = REGISTERS;
        each_run(text, |_, run| {
            histogram.add(run.value, run.len);
            zeros -= run.len;
        })?;
        histogram.add(0, zeros);
    }
    Ok(histogram.estimate())
}

/// The number of registers for each value.
struct Histogram([usize; REGISTER_MAX as usize + 1]);

impl Default for Histogram {
    fn default() -> Self {
        Self([0; REGISTER_MAX as usize + 1])
    }
}

impl Histogram {
    fn add(&mut self, value: u8, count: usize) {
        self.0[usize::from(value)] += count;
    }

    fn estimate(&self) -> u64 {
        let registers = REGISTERS as f64;
        let of = |value: u32| self.0[value as usize] as f64;
        let mut sum = registers * tau((registers - of(RANK_BITS + 1)) / registers);
        for value in (1..=RANK_BITS).rev() {
            sum = (sum + of(value)) * 0.5;
        }
        sum += registers * sigma(of(0) / registers);
        let estimate = (ALPHA * registers * registers / sum).round();
        // Registers have values that no hash yields: x86-64 converts infinity to this number.
        if estimate.is_infinite() { 1 << 63 } else { estimate as u64 }
    }
}

/// The contribution of saturated registers; a series that is summed until it converges.
fn tau(mut x: f64) -> f64 {
    if x == 0.0 || x == 1.0 {
        return 0.0;
    }
    let (mut factor, mut sum) = (1.0, 1.0 - x);
    loop {
        let before = sum;
        x = x.sqrt();
        factor *= 0.5;
        sum -= (1.0 - x) * (1.0 - x) * factor;
        if sum == before {
            return sum / 3.0;
        }
    }
}

/// The contribution of registers that are zero; a series that is summed until it converges.
fn sigma(mut x: f64) -> f64 {
    if x == 1.0 {
        return f64::INFINITY;
    }
    let (mut factor, mut sum) = (1.0, x);
    loop {
        let before = sum;
        x *= x;
        sum += x * factor;
        factor += factor;
        if sum == before {
            return sum;
        }
    }
}

/// The value of every register of a dense HyperLogLog.
pub(crate) fn dense_registers(text: &[u8]) -> impl ExactSizeIterator<Item = u8> + '_ {
    (0..REGISTERS).map(|index| dense_get(&text[HEADER_BYTES..], index))
}

/// Sparse runs in the format of `PFDEBUG DECODE`; at most as many as there are registers, since a string may have any length.
pub(crate) fn describe(text: &[u8]) -> String {
    let describe = |run: Run| match run {
        Run { value: 0, len, bytes: 1 } => format!("z:{len}"),
        Run { value: 0, len, .. } => format!("Z:{len}"),
        Run { value, len, .. } => format!("v:{value},{len}"),
    };
    runs(&text[HEADER_BYTES..]).take(REGISTERS).map(describe).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::random::Random;

    const NO_LIMIT: usize = usize::MAX;

    #[test]
    fn sparse_and_dense_registers_say_the_same() {
        let mut random = Random::new(3);
        let (mut sparse, mut dense) = (new(), new());
        make_dense(&mut dense).expect("it is sound");
        for round in 0..4_000 {
            let index = random.below(REGISTERS as u64) as usize & if round % 3 == 0 { 63 } else { usize::MAX };
            let value = 1 + random.below(6) as u8;
            assert_eq!(raise(&mut sparse, index, value, NO_LIMIT), raise(&mut dense, index, value, NO_LIMIT));
            if round % 500 == 0 {
                assert_eq!(count(&sparse), count(&dense));
            }
        }
        assert!(!is_dense(&sparse), "nothing has made it dense");
        let mut registers = Registers::new();
        registers.merge(&sparse).expect("it is sound");
        assert_eq!(count(&dense), Ok(registers.count()));
        forget_count(&mut dense);
        make_dense(&mut sparse).expect("it is sound");
        assert_eq!(sparse, dense);
    }

    #[test]
    fn the_count_is_near_the_truth() {
        let mut text = new();
        for number in 0..200_000_u32 {
            add(&mut text, &number.to_le_bytes(), 3_000).expect("it is sound");
        }
        let told = count(&text).expect("it is sound") as f64;
        assert!((told / 200_000.0 - 1.0).abs() < 0.03, "{told}");
        assert!(is_dense(&text));
    }

    #[test]
    fn registers_that_do_not_add_up_are_refused() {
        for runs in [&[][..], &[0x00], &[0x7f, 0xff, 0x00], &[0x7f], &[0x7f, 0xff, 0x80], &[0x40]] {
            let mut text = new();
            text.truncate(HEADER_BYTES);
            text.extend_from_slice(runs);
            assert!(is_valid(&text));
            assert_eq!(count(&text), Err(Corrupted), "{runs:x?}");
            assert_eq!(Registers::new().merge(&text), Err(Corrupted), "{runs:x?}");
            assert_eq!(make_dense(&mut text.clone()), Err(Corrupted), "{runs:x?}");
            assert_eq!(raise(&mut text.clone(), 5, 60, NO_LIMIT), Err(Corrupted), "{runs:x?}");
            for index in [0, 1, 300, REGISTERS - 1] {
                _ = raise(&mut text.clone(), index, 2, NO_LIMIT);
            }
        }
    }
}
