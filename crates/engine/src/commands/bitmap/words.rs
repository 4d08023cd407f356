//! Bits of long strings, eight bytes at a time: a string of 512 MB is looked through in one request, and all others wait.

/// Bytes that are looked at before it is asked whether one of them matters.
const STRIDE: usize = 64;

/// How many bits are set.
pub(super) fn count_ones(bytes: &[u8]) -> usize {
    let (words, rest) = bytes.as_chunks::<8>();
    let of_words: usize = words.iter().map(|word| u64::from_ne_bytes(*word).count_ones() as usize).sum();
    of_words + rest.iter().map(|byte| byte.count_ones() as usize).sum::<usize>()
}

/// Where the first byte is that is not `dull`.
pub(super) fn find_other(bytes: &[u8], dull: u8) -> Option<usize> {
    let (strides, _) = bytes.as_chunks::<STRIDE>();
    let is_dull = |stride: &[u8; STRIDE]| stride.iter().fold(0, |seen, byte| seen | (byte ^ dull)) == 0;
    let skipped = strides.iter().take_while(|stride| is_dull(stride)).count() * STRIDE;
    let left = bytes.get(skipped..).unwrap_or_default();
    left.iter().position(|&byte| byte != dull).map(|at| skipped + at)
}

/// Makes a string longer by zeros. One that is made from nothing is not written to: the system has zeros at hand.
pub(in crate::commands) fn grow(bytes: &mut Vec<u8>, len: usize) {
    if bytes.capacity() == 0 {
        *bytes = vec![0; len];
    } else if bytes.len() < len {
        bytes.resize(len, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_say_what_bytes_say() {
        for len in [0, 1, 7, 8, 9, 63, 64, 65, 200] {
            for at in 0..len {
                for (dull, other) in [(0, 4), (0xff, 0xfe)] {
                    let mut bytes = vec![dull; len];
                    assert_eq!(find_other(&bytes, dull), None);
                    bytes[at] = other;
                    assert_eq!(find_other(&bytes, dull), Some(at));
                    let expected: usize = bytes.iter().map(|byte| byte.count_ones() as usize).sum();
                    assert_eq!(count_ones(&bytes), expected);
                }
            }
        }
        for len in [0, 3, 9] {
            let mut bytes = vec![1; 4];
            grow(&mut bytes, len);
            assert_eq!(bytes.len(), len.max(4));
            let mut bytes = Vec::new();
            grow(&mut bytes, len);
            assert_eq!(bytes, vec![0; len]);
        }
    }
}
