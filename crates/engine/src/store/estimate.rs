//! Sums over many things by looking at a few of them, so that a number that is only shown delays no request.

/// Things that are looked at.
const SAMPLES: usize = 16;

/// About the sum of `bytes_of` over `0..len`: exact for few, from evenly spaced samples for many.
pub(crate) fn sum(len: usize, bytes_of: impl Fn(usize) -> usize) -> usize {
    if len <= SAMPLES {
        return (0..len).map(bytes_of).sum();
    }
    let sampled: usize = (0..SAMPLES).map(|sample| bytes_of(sample * len / SAMPLES)).sum();
    (sampled as u128 * len as u128 / SAMPLES as u128) as usize
}

#[cfg(test)]
mod tests {
    #[test]
    fn equal_things_are_summed_exactly() {
        for len in [0, 1, 16, 17, 1_000_003] {
            assert_eq!(super::sum(len, |_| 24), 24 * len);
        }
        assert_eq!(super::sum(10, |index| index), 45);
    }
}
