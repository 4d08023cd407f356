//! In which order changes of all engines are made: one at a time, whichever worker their clients belong to.
//!
//! Workers reach an engine over different connections, so two changes sent at the same time could come to the engines in different
//! orders, after which they would differ for good: `SWAPDB 0 1` and `SWAPDB 1 2`, two versions of a library.

use crate::ids::Handle;
use respool_connection::WorkerId;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The changes that are under way. The first has its turn, the others wait for theirs.
#[derive(Debug, Default)]
pub(crate) struct Turns(Mutex<VecDeque<(WorkerId, Handle)>>);

impl Turns {
    /// A worker's change goes behind all others. Result: whether it has its turn already.
    pub(crate) fn queue(&self, worker: WorkerId, task: Handle) -> bool {
        let mut changes = self.changes();
        changes.push_back((worker, task));
        changes.len() == 1
    }

    /// The change whose turn it was is through. Result: the one whose turn it is now.
    pub(crate) fn end(&self) -> Option<(WorkerId, Handle)> {
        let mut changes = self.changes();
        changes.pop_front();
        changes.front().copied()
    }

    fn changes(&self) -> MutexGuard<'_, VecDeque<(WorkerId, Handle)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slab::Slab;

    #[test]
    fn one_change_at_a_time_in_the_order_of_arrival() {
        let mut slab = Slab::default();
        let tasks: Vec<Handle> = (0..3).map(|number| slab.insert(number)).collect();
        let (first, second) = (WorkerId::new(0), WorkerId::new(1));
        let turns = Turns::default();
        assert!(turns.queue(second, tasks[0]));
        assert!(!turns.queue(first, tasks[1]));
        assert!(!turns.queue(second, tasks[2]));
        assert_eq!(turns.end(), Some((first, tasks[1])));
        assert_eq!(turns.end(), Some((second, tasks[2])));
        assert_eq!(turns.end(), None);
        assert!(turns.queue(first, tasks[0]), "it waits for none that are through");
    }
}
