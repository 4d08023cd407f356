//! The workers of all proxies (pools) of a process. A worker reaches those of its own by its loop; what concerns the whole process, such as
//! users, it tells the others by their mailboxes, which the program around them has put in here.

use crate::mail::Mail;
use respool_connection::WorkerId;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Puts mail into the box of a worker and wakes it. `false`: the worker has ended.
pub type PostMail = Box<dyn Fn(Mail) -> bool + Send + Sync>;

/// A proxy of the process by the order in which they were added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PoolNumber(usize);

/// A worker of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WorkerAddress {
    pub(crate) pool: PoolNumber,
    pub(crate) worker: WorkerId,
}

/// The mailboxes of all workers of a process.
#[derive(Default)]
pub struct ProcessWorkers {
    /// By proxy. They are all added before a worker runs.
    pools: Mutex<Vec<Arc<[PostMail]>>>,
}

impl ProcessWorkers {
    /// The mailboxes of one proxy more, by worker.
    pub(crate) fn add(&self, workers: impl Iterator<Item = PostMail>) -> PoolNumber {
        let mut pools = self.pools.lock().unwrap_or_else(PoisonError::into_inner);
        pools.push(workers.collect());
        PoolNumber(pools.len() - 1)
    }

    /// The workers of the other proxies.
    pub(crate) fn outside(&self, pool: PoolNumber) -> Vec<WorkerAddress> {
        let pools = self.pools.lock().unwrap_or_else(PoisonError::into_inner);
        let numbered = pools.iter().enumerate().map(|(number, workers)| (PoolNumber(number), workers));
        let others = numbered.filter(|(number, _)| *number != pool);
        let workers = others.flat_map(|(pool, workers)| (0..workers.len()).map(move |worker| (pool, worker)));
        workers.map(|(pool, worker)| WorkerAddress { pool, worker: WorkerId::new(worker) }).collect()
    }

    /// Mail for a worker. `false`: it has ended.
    pub(crate) fn post(&self, to: WorkerAddress, mail: Mail) -> bool {
        let pools = self.pools.lock().unwrap_or_else(PoisonError::into_inner);
        let workers = pools.get(to.pool.0).map(Arc::clone);
        drop(pools);
        workers.is_some_and(|workers| workers.get(to.worker.get()).is_some_and(|post| post(mail)))
    }
}

impl fmt::Debug for ProcessWorkers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pools = self.pools.lock().unwrap_or_else(PoisonError::into_inner);
        f.debug_list().entries(pools.iter().map(|workers| workers.len())).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mail_reaches_the_worker_that_it_is_for() {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let box_of = |name: &'static str, is_there: bool| -> PostMail {
            let seen = Arc::clone(&seen);
            Box::new(move |_| {
                seen.lock().expect("no test fails holding it").push(name);
                is_there
            })
        };
        let workers = ProcessWorkers::default();
        let first = workers.add([box_of("a0", true), box_of("a1", false)].into_iter());
        let second = workers.add([box_of("b0", true)].into_iter());
        assert_eq!((workers.outside(first).len(), workers.outside(second).len()), (1, 2));
        let answers: Vec<bool> =
            workers.outside(second).into_iter().map(|worker| workers.post(worker, Mail::Orders)).collect();
        assert_eq!(answers, [true, false], "the second has ended");
        assert_eq!(*seen.lock().expect("no test fails holding it"), ["a0", "a1"]);
        let unknown = WorkerAddress { pool: PoolNumber(7), worker: WorkerId::FIRST };
        assert!(!workers.post(unknown, Mail::Orders));
    }
}
