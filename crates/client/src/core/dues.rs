//! When things are due, the earliest first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Entries of things that are gone, which are left where they are beside as many of things that are there.
const GONE_MAX: usize = 64;

/// Times at which something is due.
///
/// What is gone or due at another time leaves its entry behind, so that nothing is searched for when it goes. Such entries are passed over
/// when their time has come, and thrown out together once they are the greater part.
#[derive(Debug)]
pub(super) struct Dues<K>(BinaryHeap<Reverse<(u64, K)>>);

impl<K: Ord> Default for Dues<K> {
    fn default() -> Self {
        Self(BinaryHeap::new())
    }
}

impl<K: Ord + Copy> Dues<K> {
    /// `key` is due at `at_us`.
    pub(super) fn add(&mut self, at_us: u64, key: K) {
        self.0.push(Reverse((at_us, key)));
    }

    /// Takes what is due at `now_us` or before, which may be gone.
    pub(super) fn take(&mut self, now_us: u64) -> Option<(u64, K)> {
        let Reverse((at_us, _)) = self.0.peek()?;
        if *at_us > now_us {
            return None;
        }
        self.0.pop().map(|Reverse(entry)| entry)
    }

    /// Throws out what is gone, if that is the greater part. `count`: how many may be there.
    pub(super) fn tidy(&mut self, count: usize, mut is_there: impl FnMut(u64, K) -> bool) {
        if self.0.len() > 2 * count + GONE_MAX {
            self.0.retain(|Reverse((at_us, key))| is_there(*at_us, *key));
        }
    }

    /// When the next is due of those that are there.
    pub(super) fn next_us(&mut self, mut is_there: impl FnMut(u64, K) -> bool) -> u64 {
        while let Some(Reverse((at_us, key))) = self.0.peek() {
            if is_there(*at_us, *key) {
                return *at_us;
            }
            self.0.pop();
        }
        u64::MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_gone_is_passed_over_and_thrown_out() {
        let mut dues = Dues::default();
        for key in 0..1_000_u64 {
            dues.add(key, key);
        }
        assert_eq!(dues.next_us(|_, key| key >= 10), 10);
        assert_eq!((dues.take(9), dues.take(10)), (None, Some((10, 10))));
        dues.tidy(989, |_, _| panic!("no more than a half is gone"));
        dues.tidy(2, |_, key| key >= 998);
        assert_eq!((dues.0.len(), dues.next_us(|_, _| true)), (2, 998));
    }
}
