//! Deadlines of calls, the earliest first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Stale entries that a heap keeps in addition to twice the number of calls.
const STALE_MAX: usize = 64;

/// A heap of deadlines with lazy removal.
///
/// A call that ends, or gets another deadline, leaves its entry behind, so that no entry is searched for. Stale entries are skipped
/// when their time has come, and removed together once they are the greater part.
#[derive(Debug)]
pub(super) struct DeadlineHeap<K>(BinaryHeap<Reverse<(u64, K)>>);

impl<K: Ord> Default for DeadlineHeap<K> {
    fn default() -> Self {
        Self(BinaryHeap::new())
    }
}

impl<K: Ord + Copy> DeadlineHeap<K> {
    /// Adds the deadline of `key`.
    pub(super) fn add(&mut self, at_us: u64, key: K) {
        self.0.push(Reverse((at_us, key)));
    }

    /// Takes an entry whose time is `now_us` or before. It may be stale.
    pub(super) fn take(&mut self, now_us: u64) -> Option<(u64, K)> {
        let Reverse((at_us, _)) = self.0.peek()?;
        if *at_us > now_us {
            return None;
        }
        self.0.pop().map(|Reverse(entry)| entry)
    }

    /// Removes stale entries, if they are the greater part. `count`: how many calls there are; `is_there`: whether an entry is live.
    pub(super) fn tidy(&mut self, count: usize, mut is_there: impl FnMut(u64, K) -> bool) {
        if self.0.len() > 2 * count + STALE_MAX {
            self.0.retain(|Reverse((at_us, key))| is_there(*at_us, *key));
        }
    }

    /// The earliest deadline of a live entry, `u64::MAX` if there is none.
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
    fn stale_entries_are_skipped_and_removed() {
        let mut heap = DeadlineHeap::default();
        for key in 0..1_000_u64 {
            heap.add(key, key);
        }
        assert_eq!(heap.next_us(|_, key| key >= 10), 10);
        assert_eq!((heap.take(9), heap.take(10)), (None, Some((10, 10))));
        heap.tidy(989, |_, _| panic!("no more than a half is gone"));
        heap.tidy(2, |_, key| key >= 998);
        assert_eq!((heap.0.len(), heap.next_us(|_, _| true)), (2, 998));
    }
}
