//! What the process holds, against what it may hold.

use crate::ids::ClientNumber;
use crate::lifecycle::eviction_vote::EvictionVote;
use crate::limits::{GIVE_BACK_DIVISOR, GIVE_BACK_INTERVAL_US};
use crate::nodes::retry_budget::Governor;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// What a process counts as one: clients, bytes, dials.
#[derive(Debug, Default)]
pub struct ProcessBudget {
    last_client: AtomicU64,
    clients: AtomicUsize,
    held_bytes: AtomicUsize,
    /// What was held when free memory was given back last, and when that was.
    given_back_at: AtomicUsize,
    given_back_us: AtomicU64,
    dedicated: AtomicUsize,
    /// How large the largest clients are that may be disconnected, and those that have said NO-EVICT.
    pub(crate) auction: EvictionVote,
    pub(crate) spared: EvictionVote,
    /// How large the largest clients are whose connections are full.
    pub(crate) full: EvictionVote,
    /// Another process takes over, or has done so: it would not hear of what is changed here.
    has_successor: AtomicBool,
    /// How often nodes that could not be connected to are tried again.
    pub(crate) governor: Governor,
}

impl ProcessBudget {
    /// Another process takes over what is known here of users and orders, or does so no more. From then on clients may change
    /// nothing of it: what is read afterwards is all there is.
    pub fn note_successor(&self, has_successor: bool) {
        self.has_successor.store(has_successor, Ordering::SeqCst);
    }

    /// Whether another process would not hear of a change. Asked under the lock of what is changed.
    pub(crate) fn has_successor(&self) -> bool {
        self.has_successor.load(Ordering::SeqCst)
    }

    /// A number that no other client of this process has had.
    pub(crate) fn next_client_number(&self) -> ClientNumber {
        ClientNumber::new(self.last_client.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Counts a client in, unless there are `max` already.
    pub(crate) fn admit(&self, max: usize) -> bool {
        if self.clients.fetch_add(1, Ordering::Relaxed) < max {
            return true;
        }
        self.clients.fetch_sub(1, Ordering::Relaxed);
        false
    }

    /// A worker has so many connections that serve one client for good.
    pub(crate) fn account_dedicated(&self, before: usize, after: usize) {
        self.dedicated.fetch_add(after.wrapping_sub(before), Ordering::Relaxed);
    }

    /// Whether some client may be shown what nodes are asked.
    #[inline]
    pub(crate) fn is_watched(&self) -> bool {
        self.dedicated.load(Ordering::Relaxed) > 0
    }

    /// Counts a client out.
    pub(crate) fn leave(&self) {
        self.clients.fetch_sub(1, Ordering::Relaxed);
    }

    /// Clients of the whole process.
    pub fn clients(&self) -> usize {
        self.clients.load(Ordering::Relaxed)
    }

    /// A worker holds so many bytes more or fewer.
    pub(crate) fn account(&self, before: usize, after: usize) {
        self.held_bytes.fetch_add(after.wrapping_sub(before), Ordering::Relaxed);
    }

    /// Whether free memory is to go back to the system now, by the one worker that is told so: too much is held, or much is and a share
    /// of the budget has come or gone since it last did. That was not just now, as a worker's clients wait meanwhile.
    pub(crate) fn takes_step(&self, budget: usize, now_us: u64) -> bool {
        let (held, last) = (self.held_bytes(), self.given_back_at.load(Ordering::Relaxed));
        let has_moved = held.max(last) > budget / 2 && held.abs_diff(last) > budget / GIVE_BACK_DIVISOR;
        let again = |last_us: u64| (now_us.saturating_sub(last_us) >= GIVE_BACK_INTERVAL_US).then_some(now_us);
        let is_taken = (held > budget || has_moved)
            && self.given_back_us.fetch_update(Ordering::Relaxed, Ordering::Relaxed, again).is_ok();
        if is_taken {
            self.given_back_at.store(held, Ordering::Relaxed);
        }
        is_taken
    }

    /// With more than this a step up is taken.
    pub(crate) fn next_step(&self, budget: usize) -> usize {
        (self.given_back_at.load(Ordering::Relaxed) + budget / GIVE_BACK_DIVISOR).max(budget / 2)
    }

    /// Bytes held by all workers.
    pub fn held_bytes(&self) -> usize {
        self.held_bytes.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::{GIVE_BACK_INTERVAL_US, ProcessBudget};

    #[test]
    fn a_place_that_a_client_leaves_is_given_to_the_next() {
        let budget = ProcessBudget::default();
        assert!(budget.admit(2) && budget.admit(2));
        assert!(!budget.admit(2));
        assert_eq!(budget.clients(), 2, "a client that was refused does not count");
        budget.leave();
        assert!(budget.admit(2));
    }

    /// What becomes of looks with so much held of 800 at these times.
    fn assert_steps(looks: &[(u64, usize, bool)]) {
        let budget = ProcessBudget::default();
        for &(at_us, held, is_step) in looks {
            budget.account(budget.held_bytes(), held);
            assert_eq!(budget.takes_step(800, at_us), is_step, "{held} at {at_us}");
            assert!(!budget.takes_step(800, at_us), "one worker is told");
        }
    }

    #[test]
    fn memory_is_given_back_at_each_step_while_much_is_held() {
        let at = |number: u64| number * GIVE_BACK_INTERVAL_US;
        let steps = [(400, false), (401, true), (501, false), (502, true), (402, false), (401, true), (300, true)];
        let looks: Vec<_> = (1..).zip(steps).map(|(number, (held, is_step))| (at(number), held, is_step)).collect();
        assert_steps(&looks);
        assert_steps(&[(at(1), 401, true), (at(2), 300, true), (at(3), 100, false)]);
    }

    #[test]
    fn memory_is_given_back_only_so_often_whatever_the_churn() {
        let (first, next) = (GIVE_BACK_INTERVAL_US, 2 * GIVE_BACK_INTERVAL_US);
        assert_steps(&[(first, 500, true), (first + 1, 300, false), (next - 1, 700, false), (next, 700, true)]);
        // Nor while there is too little at all looks of all workers.
        assert_steps(&[(first, 801, true), (first + 1, 801, false), (next - 1, 999, false), (next, 999, true)]);
        // Clocks of workers are read one after the other.
        assert_steps(&[(next, 500, true), (first, 700, false)]);
    }

    #[test]
    fn a_step_that_could_not_be_taken_yet_is_still_to_come() {
        let budget = ProcessBudget::default();
        budget.account(0, 500);
        assert_eq!(budget.next_step(800), 400);
        assert!(budget.takes_step(800, GIVE_BACK_INTERVAL_US));
        budget.account(500, 650);
        assert!(!budget.takes_step(800, GIVE_BACK_INTERVAL_US + 1));
        assert_eq!(budget.next_step(800), 600, "it is looked at again in the next turn");
    }

    #[test]
    fn an_account_is_the_sum_of_what_workers_hold_now() {
        let budget = ProcessBudget::default();
        budget.account(0, 100);
        budget.account(0, 30);
        budget.account(100, 20);
        assert_eq!(budget.held_bytes(), 50);
        budget.account_dedicated(0, 2);
        budget.account_dedicated(2, 1);
        assert!(budget.is_watched());
        budget.account_dedicated(1, 0);
        assert!(!budget.is_watched());
    }
}
