//! Turns of the event loop that begin late: the process was not scheduled, was stopped, or a turn took long. Nodes are not
//! blamed for that.
//!
//! A turn has one time, that of its beginning. What a turn writes, it writes later than that; and what has come meanwhile is read
//! in the turns behind it.
//!
//! ```text
//!   turn at 0 ms                        turn at 400 ms, late       turn at once
//!   |- writes a request ..... stall ....|- reads a reply of before |- reads a reply to that request
//!                                       '- no deadline is checked  '- checks deadlines: the request is as old as the stall's end
//! ```
//!
//! So deadlines are not checked in a turn that begins late, but in the one behind it, which does not wait; and what began in a turn
//! that a stall followed counts as begun at the stall's end. A worker that is always late checks them in every other turn.
//!
//! A stall may be one of the whole machine, and of nodes on it; and a worker that is always late reads in small parts what a
//! node has answered long since. So the stalls while a request was outstanding are no part of its age. They are left out up to a multiple
//! of the age that is due ([`STALLED_AGES_MAX`]), so that requests to a silent node end however late a worker is.

use crate::limits::{STALLED_AGES_MAX, STALLS_MAX};
use std::collections::VecDeque;

/// No turn began between these times, though one was to.
#[derive(Clone, Copy, Debug)]
struct Stall {
    /// The beginning of the turn before it.
    since_us: u64,
    until_us: u64,
    /// How long after the latest time that it was expected at the turn began.
    lost_us: u64,
}

/// What a worker knows of its own lateness.
#[derive(Debug)]
pub(crate) struct LoopLag {
    /// A turn that begins then or later is late.
    late_at_us: u64,
    /// This turn is late, and checks no deadlines.
    is_put_off: bool,
    /// The turn before was.
    was_put_off: bool,
    /// The latest, oldest first.
    stalls: VecDeque<Stall>,
}

impl Default for LoopLag {
    fn default() -> Self {
        Self { late_at_us: u64::MAX, is_put_off: false, was_put_off: false, stalls: VecDeque::new() }
    }
}

impl LoopLag {
    #[inline(always)]
    pub(crate) fn is_late(&self, now_us: u64) -> bool {
        now_us >= self.late_at_us
    }

    /// A turn begins late, behind one that began at `before_us`.
    #[cold]
    pub(crate) fn note(&mut self, before_us: u64, now_us: u64) {
        if self.stalls.len() >= STALLS_MAX {
            self.stalls.pop_front();
        }
        let lost_us = now_us.saturating_sub(self.late_at_us);
        self.stalls.push_back(Stall { since_us: before_us, until_us: now_us, lost_us });
        self.is_put_off = !self.was_put_off;
    }

    /// Nodes have not been read between these times.
    #[cold]
    pub(crate) fn note_unread(&mut self, since_us: u64, now_us: u64) {
        let late_at_us = std::mem::replace(&mut self.late_at_us, since_us);
        self.note(since_us, now_us);
        self.late_at_us = late_at_us;
    }

    /// Whether deadlines are left to the next turn. It is late if it does not begin by `late_at_us`.
    #[inline(always)]
    pub(crate) fn puts_off(&self) -> bool {
        self.is_put_off
    }

    /// They are left to the next turn, which is late from then on.
    #[cold]
    pub(crate) fn put_off(&mut self, late_at_us: u64) {
        self.is_put_off = false;
        self.was_put_off = true;
        self.late_at_us = late_at_us;
    }

    /// Deadlines have been checked. A turn that begins then or later is late.
    pub(crate) fn plan(&mut self, late_at_us: u64) {
        self.was_put_off = false;
        self.late_at_us = late_at_us;
    }

    /// What began then or before is older than `age_us`, leaving out the stalls since then; `None`: nothing is.
    pub(crate) fn due_us(&self, now_us: u64, age_us: u64) -> Option<u64> {
        let mut due_us = now_us.checked_sub(age_us)?;
        let lost_max_us = age_us.saturating_mul(STALLED_AGES_MAX);
        let mut lost_us: u64 = 0;
        let mut began_us = None;
        for stall in self.stalls.iter().rev() {
            if due_us >= stall.until_us {
                break;
            }
            lost_us = lost_us.saturating_add(stall.lost_us).min(lost_max_us);
            due_us = now_us.checked_sub(age_us.saturating_add(lost_us))?;
            // What began with the turn that was followed by this stall is as old as its end.
            began_us = Some(stall.since_us);
        }
        began_us.map_or(Some(due_us), |began_us| began_us.checked_sub(1).map(|before_us| before_us.min(due_us)))
    }

    /// The time at which something that was to be done then could be done.
    pub(crate) fn attended_us(&self, at_us: u64) -> u64 {
        self.stall_at(at_us).map_or(at_us, |stall| stall.until_us)
    }

    /// Whether there was a stall since then.
    pub(crate) fn was_late_since(&self, at_us: u64) -> bool {
        self.stalls.back().is_some_and(|stall| stall.until_us >= at_us)
    }

    fn stall_at(&self, at_us: u64) -> Option<Stall> {
        let place = self.stalls.partition_point(|stall| stall.until_us <= at_us);
        self.stalls.get(place).copied().filter(|stall| stall.since_us <= at_us)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stalled(stalls: &[(u64, u64)]) -> LoopLag {
        let mut lag = LoopLag::default();
        stalls.iter().for_each(|&(since_us, until_us)| lag.note(since_us, until_us));
        lag
    }

    #[test]
    fn what_a_stall_followed_is_as_old_as_its_end() {
        let lag = stalled(&[(1_000, 5_000), (5_000, 7_000), (9_000, 9_500)]);
        assert_eq!(lag.due_us(10_000, 20_000), None);
        assert_eq!(lag.due_us(10_000, 9_500), Some(500), "before all of them");
        assert_eq!(lag.due_us(10_000, 9_000), Some(999), "at the beginning of one");
        assert_eq!(lag.due_us(10_000, 5_001), Some(999), "at the end of one");
        assert_eq!(lag.due_us(10_000, 5_000), Some(4_999), "what began before the second counts from then");
        assert_eq!(lag.due_us(10_000, 3_000), Some(7_000));
        assert_eq!(lag.due_us(10_000, 600), Some(8_999));
        assert_eq!((lag.attended_us(999), lag.attended_us(1_000), lag.attended_us(8_000)), (999, 5_000, 8_000));
    }

    #[test]
    fn stalls_are_no_part_of_an_age() {
        let mut lag = LoopLag::default();
        let mut stall = |since_us, late_at_us, until_us| {
            lag.plan(late_at_us);
            lag.note(since_us, until_us);
        };
        stall(1_000, 1_100, 1_200);
        stall(2_000, 2_100, 4_100);
        stall(5_000, 5_100, 5_400);
        assert_eq!(lag.due_us(6_000, 500), Some(5_500), "nothing was late since then");
        assert_eq!(lag.due_us(6_000, 700), Some(4_999), "began with the turn before the stall");
        assert_eq!(lag.due_us(6_000, 1_000), Some(4_700), "300 lost");
        assert_eq!(lag.due_us(6_000, 1_700), Some(1_999), "began with the turn before the long stall");
        assert_eq!(lag.due_us(6_000, 2_400), Some(1_300), "2,300 lost");
        assert_eq!(lag.due_us(6_000, 2_501), Some(999), "began with the turn before the first stall");
        assert_eq!(lag.due_us(6_000, 3_500), Some(100), "2,400 lost");
    }

    /// A worker of which every turn begins `every_ms` after the one before, and was to begin 25 ms after it.
    fn always_late(every_ms: u64) -> LoopLag {
        let mut lag = LoopLag::default();
        for turn in 1..1_000 {
            lag.plan((turn - 1) * every_ms + 25);
            lag.note((turn - 1) * every_ms, turn * every_ms);
        }
        lag
    }

    #[test]
    fn a_request_ends_although_every_turn_is_late() {
        // 5 of 30 ms are lost: 250 are the rest of ten turns, and the turn that it began with is left out.
        assert_eq!(always_late(30).due_us(999 * 30, 250), Some(989 * 30 - 1));
        // 75 of 100 are lost: ten turns again, which last longer.
        assert_eq!(always_late(100).due_us(999 * 100, 250), Some(989 * 100 - 1));
        // 975 of 1,000 are lost, of which four times the age is left out.
        assert_eq!(always_late(1_000).due_us(999 * 1_000, 250), Some(997 * 1_000 - 1));
    }

    #[test]
    fn deadlines_are_put_off_by_one_turn_at_most() {
        let mut lag = LoopLag::default();
        assert!(!lag.is_late(1 << 60), "nothing is planned");
        lag.plan(10_000);
        assert!(!lag.is_late(9_999) && lag.is_late(10_000));
        lag.note(1_000, 10_000);
        assert!(lag.puts_off());
        lag.put_off(12_000);
        assert!(!lag.is_late(10_001) && lag.is_late(12_000));
        lag.note(10_000, 12_000);
        assert!(!lag.puts_off(), "they are checked now, late as it is");
        lag.plan(14_000);
        lag.note(12_000, 15_000);
        assert!(lag.puts_off());
    }

    #[test]
    fn stalls_are_remembered_up_to_a_bound() {
        let lag = stalled(&(0..2 * STALLS_MAX as u64).map(|n| (n * 10, n * 10 + 5)).collect::<Vec<_>>());
        assert_eq!(lag.stalls.len(), STALLS_MAX);
    }
}
