//! What the process holds, against what it may hold.

use crate::ids::ClientNumber;
use crate::lifecycle::eviction_vote::EvictionVote;
use crate::limits::GIVE_BACK_DIVISOR;
use crate::nodes::retry_budget::Governor;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// What a process counts as one: clients, bytes, dials.
#[derive(Debug, Default)]
pub struct ProcessBudget {
    last_client: AtomicU64,
    clients: AtomicUsize,
    held_bytes: AtomicUsize,
    /// What was held when free memory was given back last.
    given_back_at: AtomicUsize,
    dedicated: AtomicUsize,
    pub(crate) auction: EvictionVote,
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
        if after >= before {
            self.held_bytes.fetch_add(after - before, Ordering::Relaxed);
        } else {
            self.held_bytes.fetch_sub(before - after, Ordering::Relaxed);
        }
    }

    /// Whether free memory is to go back to the system now, by the one worker that is told so: much is held, and a share of the budget
    /// has come or gone since it last did.
    pub(crate) fn takes_step(&self, budget: usize) -> bool {
        let (held, last) = (self.held_bytes(), self.given_back_at.load(Ordering::Relaxed));
        held.max(last) > budget / 2
            && held.abs_diff(last) > budget / GIVE_BACK_DIVISOR
            && self.given_back_at.compare_exchange(last, held, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Bytes held by all workers.
    pub fn held_bytes(&self) -> usize {
        self.held_bytes.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::ProcessBudget;

    #[test]
    fn a_place_that_a_client_leaves_is_given_to_the_next() {
        let budget = ProcessBudget::default();
        assert!(budget.admit(2) && budget.admit(2));
        assert!(!budget.admit(2));
        assert_eq!(budget.clients(), 2, "a client that was refused does not count");
        budget.leave();
        assert!(budget.admit(2));
    }

    #[test]
    fn memory_is_given_back_at_each_step_up_and_down_while_much_is_held() {
        let (budget, limit) = (ProcessBudget::default(), 800);
        let takes_step_at = |held: usize| {
            budget.account(budget.held_bytes(), held);
            budget.takes_step(limit)
        };
        let steps = [(400, false), (401, true), (501, false), (502, true), (402, false), (401, true), (300, true)];
        for (held, is_step) in steps {
            assert_eq!(takes_step_at(held), is_step, "{held}");
            assert!(!takes_step_at(held), "one worker is told");
        }
        assert!(!takes_step_at(100), "little is held, and was");
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
