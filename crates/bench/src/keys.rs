//! Which keys requests name: one, all equally often, few often and many rarely, or one after the other.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rand_distr::{Distribution, Zipf};

/// How keys are chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Spread {
    /// All equally often.
    Uniform,
    /// The key in place `n` of all `1 / n^exponent` times as often as the first. Neighbours in number are not neighbours in place.
    Zipf {
        /// 0: all equally often; about 1: as words of a language.
        exponent: f64,
    },
    /// One after the other, and from the beginning again.
    Sequence,
}

/// A source of numbers of keys.
#[derive(Debug)]
pub struct Keys {
    count: u64,
    chance: SmallRng,
    choice: Choice,
}

#[derive(Debug)]
enum Choice {
    Uniform,
    Zipf { law: Zipf<f64>, step: u64 },
    Sequence { next: u64, stride: u64 },
}

impl Keys {
    /// Numbers from 0 to `count - 1`. Part `part` of `parts` of a run has its own: together, sequences name every key.
    pub fn new(spread: Spread, count: u64, seed: u64, part: u64, parts: u64) -> Self {
        let count = count.max(1);
        let choice = match spread {
            Spread::Uniform => Choice::Uniform,
            Spread::Sequence => Choice::Sequence { next: part % count, stride: parts.max(1) },
            Spread::Zipf { exponent } => match Zipf::new(count as f64, exponent) {
                Ok(law) => Choice::Zipf { law, step: step_for(count) },
                Err(_) => Choice::Uniform,
            },
        };
        Self { count, chance: SmallRng::seed_from_u64(seed ^ part.wrapping_mul(0x9E37_79B9_7F4A_7C15)), choice }
    }

    /// The next number.
    #[inline]
    pub fn next_key(&mut self) -> u64 {
        match &mut self.choice {
            // The upper half of a product: no division, and a bias of less than one in ten million.
            Choice::Uniform => ((u128::from(self.chance.next_u64()) * u128::from(self.count)) >> 64) as u64,
            Choice::Zipf { law, step } => {
                let place = law.sample(&mut self.chance) as u64 - 1;
                (u128::from(place) * u128::from(*step) % u128::from(self.count)) as u64
            }
            Choice::Sequence { next, stride } => {
                let key = *next % self.count;
                *next = (key + *stride) % self.count.max(1);
                key
            }
        }
    }

    /// A number from 0 to `bound - 1` that names no key.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.chance.next_u64()) * u128::from(bound)) >> 64) as u64
    }
}

/// A step that visits all of `count` places before it comes to the first again.
fn step_for(count: u64) -> u64 {
    let mut step = (count as f64 * 0.618_033_988_749_895) as u64 | 1;
    while greatest_common_divisor(step, count) != 1 {
        step += 2;
    }
    step
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(spread: Spread, keys: u64, draws: usize) -> Vec<usize> {
        let mut source = Keys::new(spread, keys, 1, 0, 1);
        let mut counts = vec![0; keys as usize];
        (0..draws).for_each(|_| counts[source.next_key() as usize] += 1);
        counts
    }

    #[test]
    fn uniform_keys_are_about_equally_frequent() {
        let counts = counts(Spread::Uniform, 10, 100_000);
        assert!(counts.iter().all(|&count| (9_500..10_500).contains(&count)), "{counts:?}");
    }

    #[test]
    fn zipf_keys_follow_their_law() {
        let mut counts = counts(Spread::Zipf { exponent: 1.0 }, 1000, 1_000_000);
        counts.sort_unstable_by(|a, b| b.cmp(a));
        // The harmonic number of 1000 is 7.485.
        for (place, count) in counts.iter().take(5).enumerate() {
            let expected = 1_000_000.0 / 7.485 / (place + 1) as f64;
            assert!((*count as f64 / expected - 1.0).abs() < 0.05, "{place}: {count} instead of {expected}");
        }
    }

    #[test]
    fn sequences_of_all_parts_name_every_key_once() {
        let mut seen = vec![0; 12];
        for part in 0..3 {
            let mut keys = Keys::new(Spread::Sequence, 12, 1, part, 3);
            (0..4).for_each(|_| seen[keys.next_key() as usize] += 1);
        }
        assert_eq!(seen, [1; 12]);
    }

    #[test]
    fn parts_of_a_run_draw_different_keys() {
        let draw = |part| {
            let mut keys = Keys::new(Spread::Uniform, KEYS, 5, part, 2);
            (0..8).map(|_| keys.next_key()).collect::<Vec<_>>()
        };
        const KEYS: u64 = 1_000_000;
        assert_eq!(draw(0), draw(0));
        assert_ne!(draw(0), draw(1));
    }
}
