//! LZF, the compression of strings in dumps: literal runs and back references of up to 8 KB.
//!
//! ```text
//! 000xxxxx            x + 1 literal bytes follow
//! lllyyyyy yyyyyyyy   l + 2 bytes from y + 1 bytes before (l from 1 to 6)
//! 111yyyyy llllllll yyyyyyyy   l + 9 bytes from y + 1 bytes before
//! ```
//!
//! The search for references is not part of the format, but determines the output: it is that of liblzf's fast variant, so that
//! dumps equal those of redis-server.

/// Bits of an index of the hash table, which maps three bytes to their last position.
const TABLE_BITS: u32 = 16;
const LITERALS_MAX: usize = 32;
const DISTANCE_MAX: usize = 1 << 13;
const MATCH_MAX: usize = (1 << 8) + (1 << 3);
/// If a match may be longer than this, as many bytes are compared one by one, and the match may then reach the end.
const UNCHECKED_MATCH: usize = 16;

fn slot(input: &[u8], at: usize) -> usize {
    let three = u32::from(input[at]) << 16 | u32::from(input[at + 1]) << 8 | u32::from(input[at + 2]);
    ((three >> (24 - TABLE_BITS)).wrapping_sub(three.wrapping_mul(5)) & ((1 << TABLE_BITS) - 1)) as usize
}

/// The length of the match between `from` and `at`, as liblzf computes it.
fn match_len(input: &[u8], from: usize, at: usize) -> usize {
    let is_same = |offset: usize| input[from + offset] == input[at + offset];
    let max = (input.len() - at - 2).min(MATCH_MAX);
    let mut len = 2;
    if max > UNCHECKED_MATCH {
        for _ in 0..UNCHECKED_MATCH {
            len += 1;
            if !is_same(len) {
                return len;
            }
        }
    }
    loop {
        len += 1;
        if len >= max || !is_same(len) {
            return len;
        }
    }
}

/// The output; the literal run that has no head yet begins at `run`.
struct Output {
    bytes: Vec<u8>,
    run: usize,
    max: usize,
}

impl Output {
    fn literals(&self) -> usize {
        self.bytes.len() - self.run
    }

    /// Writes the head of the literal run; an empty run has no head.
    fn end_run(&mut self) {
        match self.literals() {
            0 => _ = self.bytes.pop(),
            len => self.bytes[self.run - 1] = (len - 1) as u8,
        }
    }

    fn start_run(&mut self) {
        self.bytes.push(0);
        self.run = self.bytes.len();
    }

    fn literal(&mut self, byte: u8) {
        self.bytes.push(byte);
        if self.literals() == LITERALS_MAX {
            self.end_run();
            self.start_run();
        }
    }
}

/// Compresses several texts with one hash table.
pub(super) struct Compressor {
    /// The last position of three bytes, counted from the first byte of the first text.
    seen: Vec<u32>,
    /// The position of this text.
    base: u32,
}

impl Compressor {
    /// An empty compressor; the first text allocates the table.
    pub(super) fn new() -> Self {
        Self { seen: Vec::new(), base: 0 }
    }

    /// The compressed bytes, if they are at most `max`.
    pub(super) fn compress(&mut self, input: &[u8], max: usize) -> Option<Vec<u8>> {
        let len = u32::try_from(input.len()).ok().filter(|len| *len > 0 && max > 0)?;
        if self.seen.is_empty() || self.base.checked_add(len).is_none() {
            (self.seen, self.base) = (vec![0; 1 << TABLE_BITS], 0);
        }
        let compressed = compress(&mut self.seen, self.base, input, max);
        self.base += len;
        compressed
    }
}

fn compress(seen: &mut [u32], base: u32, input: &[u8], max: usize) -> Option<Vec<u8>> {
    let mut output = Output { bytes: Vec::with_capacity(max), run: 0, max };
    output.start_run();
    let end = input.len().saturating_sub(2);
    let mut at = 0;
    while at < end {
        let slot_at = slot(input, at);
        // A position in an earlier text becomes zero, which is never referred to.
        let from = seen[slot_at].saturating_sub(base) as usize;
        seen[slot_at] = base + at as u32;
        let is_match = from > 0 && from < at && at - from <= DISTANCE_MAX && input[from..from + 3] == input[at..at + 3];
        if !is_match {
            if output.bytes.len() >= output.max {
                return None;
            }
            output.literal(input[at]);
            at += 1;
            continue;
        }
        if output.bytes.len() - usize::from(output.literals() == 0) + 4 >= output.max {
            return None;
        }
        output.end_run();
        let (distance, len) = (at - from - 1, match_len(input, from, at));
        let tail = len - 2;
        if tail < 7 {
            output.bytes.push((distance >> 8) as u8 | (tail as u8) << 5);
        } else {
            output.bytes.extend_from_slice(&[(distance >> 8) as u8 | 7 << 5, (tail - 7) as u8]);
        }
        output.bytes.push(distance as u8);
        output.start_run();
        at += len;
        if at >= end {
            break;
        }
        // Only the last two of the skipped positions enter the table.
        for skipped in [at - 2, at - 1] {
            seen[slot(input, skipped)] = base + skipped as u32;
        }
    }
    if output.bytes.len() + 3 > output.max {
        return None;
    }
    input[at..].iter().for_each(|byte| output.literal(*byte));
    output.end_run();
    Some(output.bytes)
}

/// Decompresses to exactly `len` bytes; `None` if the input does not. Never allocates for more than `len`.
pub(super) fn decompress(input: &[u8], len: usize) -> Option<Vec<u8>> {
    // A reference of three bytes stands for `MATCH_MAX` at most.
    if len / MATCH_MAX > input.len() {
        return None;
    }
    let mut output = Vec::with_capacity(len.min(input.len() * 4));
    let mut rest = input;
    while let Some((&head, behind)) = rest.split_first() {
        rest = behind;
        if head < 1 << 5 {
            let literals = rest.get(..usize::from(head) + 1)?;
            output.extend_from_slice(literals);
            rest = &rest[literals.len()..];
        } else {
            let mut count = usize::from(head >> 5);
            if count == 7 {
                count += usize::from(*rest.first()?);
                rest = &rest[1..];
            }
            let distance = (usize::from(head & 0x1f) << 8 | usize::from(*rest.first()?)) + 1;
            rest = &rest[1..];
            let from = output.len().checked_sub(distance)?;
            if output.len() + count + 2 > len {
                return None;
            }
            // Source and destination may overlap.
            for index in from..from + count + 2 {
                output.push(output[index]);
            }
        }
        if output.len() > len {
            return None;
        }
    }
    (output.len() == len).then_some(output)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::random::Random;

    #[test]
    fn what_was_compressed_comes_back() {
        let mut random = Random::new(6);
        let (mut smaller, mut compressor) = (0, Compressor::new());
        for round in 0..2_000_u64 {
            let len = random.below(1 + round * 4) as usize;
            let letters = 1 + random.below(6);
            let mut text: Vec<u8> = (0..len).map(|_| random.below(letters) as u8).collect();
            if len > 0 && random.below(3) == 0 {
                let copied = text[random.below(len as u64) as usize..].to_vec();
                text.extend(copied);
            }
            let Some(packed) = compressor.compress(&text, text.len().saturating_sub(4)) else { continue };
            assert!(packed.len() <= text.len() - 4);
            smaller += 1;
            assert_eq!(decompress(&packed, text.len()), Some(text.clone()), "round {round}");
            assert_eq!(decompress(&packed, text.len() + 1), None);
            assert_eq!(decompress(&packed, text.len() - 1), None);
            let mut broken = packed.clone();
            broken[random.below(packed.len() as u64) as usize] ^= 1 << random.below(8);
            _ = decompress(&broken, text.len());
            _ = decompress(&packed[..packed.len() / 2], text.len());
        }
        assert!(smaller > 1_000, "{smaller} texts were compressed");
    }

    #[test]
    fn a_promise_of_gigabytes_takes_no_memory() {
        assert_eq!(decompress(&[0, b'a'], usize::MAX), None);
        assert_eq!(decompress(&[0, b'a'], 1 << 40), None);
    }
}
