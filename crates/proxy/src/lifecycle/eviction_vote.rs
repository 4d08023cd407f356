//! Which worker disconnects a client when memory is short.

use std::sync::atomic::{AtomicU64, Ordering};

/// The highest bid of an interval: its number in the upper bits, kibibytes in the lower.
#[derive(Debug, Default)]
pub(crate) struct EvictionVote {
    /// One for even intervals, one for odd ones, so that the last one's stands while the next is made.
    bids: [AtomicU64; 2],
}

pub(crate) const SIZE_BITS: u32 = 40;

impl EvictionVote {
    /// Bids in an interval.
    pub(crate) fn bid(&self, interval: u64, bytes: usize) {
        self.bids[interval as usize % 2].fetch_max(pack(interval, bytes), Ordering::Relaxed);
    }

    /// Whether a bid was the highest of an interval.
    pub(crate) fn is_highest(&self, interval: u64, bytes: usize) -> bool {
        self.bids[interval as usize % 2].load(Ordering::Relaxed) == pack(interval, bytes)
    }

    /// The highest bid of an interval and of the one before, in bytes, less what is no whole kibibyte.
    pub(crate) fn highest(&self, interval: u64) -> usize {
        let bids = self.bids.each_ref().map(|bid| bid.load(Ordering::Relaxed));
        let counts = |bid: &u64| interval.wrapping_sub(bid >> SIZE_BITS) <= 1;
        let kib = bids.into_iter().filter(counts).map(|bid| bid & ((1 << SIZE_BITS) - 1)).max();
        kib.unwrap_or(0) as usize * 1024
    }
}

fn pack(interval: u64, bytes: usize) -> u64 {
    let size = (bytes as u64 / 1024).min((1 << SIZE_BITS) - 1);
    (interval << SIZE_BITS) | size
}

#[cfg(test)]
mod tests {
    use super::EvictionVote;

    #[test]
    fn the_highest_bid_of_an_interval_wins_and_old_ones_lapse() {
        let auction = EvictionVote::default();
        auction.bid(7, 5_000_000);
        auction.bid(7, 9_000_000);
        auction.bid(7, 1_000);
        assert!(auction.is_highest(7, 9_000_000));
        assert!(!auction.is_highest(7, 5_000_000));
        auction.bid(8, 1_000);
        assert!(auction.is_highest(7, 9_000_000), "the next interval has a place of its own");
        auction.bid(9, 2_000);
        assert!(auction.is_highest(9, 2_000), "a later interval's small bid beats an earlier one's large bid");
        assert!(!auction.is_highest(7, 9_000_000));
    }
}
