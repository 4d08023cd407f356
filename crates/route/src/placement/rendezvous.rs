//! Rendezvous hashing (Thaler and Ravishankar): every node bids for a key, the highest bid wins.
//!
//! A node's bid depends on the key, its own name and its own weight alone. So whatever happens to the list, a key moves
//! only from a node that left (or became lighter) or to one that came (or became heavier), the order of the list does
//! not matter, and weights are exact. It costs one multiplication-mix a node, which is cheap up to some dozens of nodes;
//! beyond that ketama is.
//!
//! The bid: `u` is the splitmix64 finaliser of XXH3(key) xor XXH3(name), both 64 bits without seed, taken as a fraction
//! in (0, 1); the node of weight `w` bids `-w / ln(u)`. With equal weights the largest `u` wins and no logarithm is
//! needed. The logarithm is computed by additions, multiplications and divisions alone, so that every machine agrees to
//! the last bit where libraries do not.

use xxhash_rust::xxh3::xxh3_64;

use crate::node::{Node, NodeIndex};

#[derive(Clone, Debug)]
pub(super) struct Rendezvous {
    /// XXH3 of each node's name.
    seeds: Box<[u64]>,
    /// The weights, or nothing if all are equal.
    weights: Option<Box<[f64]>>,
}

impl Rendezvous {
    pub(super) fn new(nodes: &[Node]) -> Self {
        let seeds = nodes.iter().map(|node| xxh3_64(node.name.as_bytes())).collect();
        let is_even = nodes.windows(2).all(|pair| pair[0].weight == pair[1].weight);
        let weights = (!is_even).then(|| nodes.iter().map(|node| f64::from(node.weight)).collect());
        Self { seeds, weights }
    }

    #[inline]
    pub(super) fn place(&self, hashed: &[u8]) -> NodeIndex {
        let hash = xxh3_64(hashed);
        let draws = self.seeds.iter().map(|seed| mix(hash ^ seed) >> 11);
        match &self.weights {
            None => first_of_largest(draws),
            Some(weights) => first_of_largest(draws.zip(weights).map(|(draw, weight)| bid(draw, *weight))),
        }
    }
}

#[inline]
fn first_of_largest<T: PartialOrd>(bids: impl Iterator<Item = T>) -> NodeIndex {
    let mut bids = bids.enumerate();
    let Some((mut winner, mut highest)) = bids.next() else { return NodeIndex::FIRST };
    for (index, bid) in bids {
        if bid > highest {
            (winner, highest) = (index, bid);
        }
    }
    NodeIndex::new(winner)
}

/// The finaliser of splitmix64: every bit of the input changes about half of the output.
#[inline]
fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// What a node of this weight bids when it drew a number of 53 bits.
#[inline]
fn bid(draw: u64, weight: f64) -> f64 {
    // The half keeps the fraction away from zero; it is lost to rounding for large draws, hence the bound below one.
    let fraction = ((draw as f64 + 0.5) / (1u64 << 53) as f64).min(1.0 - f64::EPSILON / 2.0);
    -weight / ln(fraction)
}

/// The natural logarithm of a positive, normal number by IEEE basic operations alone, within some units of the last
/// place: `x = m * 2^e` with `m` in [sqrt(1/2), sqrt(2)), and the series of `2 * artanh((m - 1) / (m + 1))`.
fn ln(x: f64) -> f64 {
    const LN_2: f64 = std::f64::consts::LN_2;
    let bits = x.to_bits();
    let mut exponent = ((bits >> 52) & 0x7ff) as i32 - 1023;
    let mut mantissa = f64::from_bits((bits & ((1 << 52) - 1)) | (1023 << 52));
    if mantissa > std::f64::consts::SQRT_2 {
        mantissa /= 2.0;
        exponent += 1;
    }
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let square = s * s;
    // |s| < 0.1716, so the first term left out is below 2^-56 of the sum.
    let mut sum = 0.0;
    for odd in (1..=21).rev().step_by(2) {
        sum = sum * square + 1.0 / f64::from(odd);
    }
    f64::from(exponent) * LN_2 + 2.0 * s * sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_logarithm_agrees_with_the_library() {
        let mut x = 1.0 - f64::EPSILON / 2.0;
        while x > 1e-17 {
            let (ours, theirs) = (ln(x), x.ln());
            assert!(((ours - theirs) / theirs).abs() < 1e-14, "ln({x}): {ours} and {theirs}");
            x *= 0.99;
        }
    }

    #[test]
    fn extreme_draws_give_finite_bids_in_order() {
        let bids = [0, 1, 1 << 52, (1 << 53) - 2, (1 << 53) - 1].map(|draw| bid(draw, 1.0));
        assert!(bids.iter().all(|bid| bid.is_finite() && *bid > 0.0), "{bids:?}");
        assert!(bids.is_sorted(), "{bids:?}");
    }
}
