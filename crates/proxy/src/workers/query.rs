//! Queries: what one worker asks all of them, itself included, and what their answers make together.
//!
//! ```text
//!   begin --> posted to the other workers, answered here --> each answer is joined --> the last one: finished
//!                                   |
//!                                   '--> a worker does not answer within QUERY_US_MAX: finished with what is known,
//!                                        unless the reply says that all workers have done something: it waits then
//! ```
//!
//! What is asked, how a worker answers it and how the reply is written belong to the features that ask; `worker` puts
//! them together. This is only the table of the queries that wait.

use crate::ids::{Asker, ClientHandle, Handle};
use crate::limits::QUERY_US_MAX;
use crate::observe::counters::Counters;
use crate::session::Flow;
use crate::slab::Slab;
use crate::users::process_workers::WorkerAddress;
use std::fmt::Debug;
use std::sync::Arc;

/// A closed set of queries.
pub(crate) trait WorkerQuery: Clone + Debug + Send + Sync + 'static {
    /// What one worker answers, and what several have answered.
    type Answer: Clone + Debug + Send + Sync;

    /// Whether the reply may be large and come late: then a client has one such query at a time, so that a pipeline of
    /// them takes no more memory than one.
    fn is_large(&self) -> bool {
        false
    }

    /// Whether the reply says that all workers go by something new: then it comes when they do, however late.
    fn is_promise(&self) -> bool {
        false
    }

    /// Whether a worker with these counters has anything to answer.
    fn concerns(&self, _: &Counters) -> bool {
        true
    }

    /// Whether the workers of all proxies of the process are asked, and not those of this one alone.
    fn is_of_process(&self) -> bool {
        false
    }

    /// The answer of no worker.
    fn no_answer(&self) -> Self::Answer;

    /// Adds what one more worker answers.
    fn join(&self, all: &mut Self::Answer, one: Self::Answer);

    /// Bytes of memory that an answer takes while others are waited for.
    fn bytes_of(answer: &Self::Answer) -> usize;
}

/// A query, or an answer to one, on its way from one worker to another.
#[derive(Clone, Debug)]
pub(crate) enum QueryMessage<Q: WorkerQuery> {
    Ask { from: WorkerAddress, handle: Handle, query: Arc<Q> },
    Answer { handle: Handle, answer: Q::Answer },
}

/// What becomes of a request that all workers may have to be asked about.
#[derive(Debug)]
#[must_use]
pub(crate) enum Step<Q> {
    /// It has been dealt with.
    Done(Flow),
    /// All workers are asked; their answers make the reply.
    Ask(Q),
}

impl<Q> From<Flow> for Step<Q> {
    fn from(flow: Flow) -> Self {
        Self::Done(flow)
    }
}

/// Which request a query is of.
#[derive(Clone, Copy, Debug)]
pub(crate) enum QueryOf {
    /// One that is replied to.
    Asker(Asker),
    /// One of this client, which wants no reply and counts it among what it has asked until all workers have answered.
    Unanswered(ClientHandle),
    /// None.
    Worker,
}

/// A query that waits for workers to answer.
#[derive(Debug)]
struct Pending<Q: WorkerQuery> {
    of: QueryOf,
    query: Arc<Q>,
    awaited: usize,
    asked_us: u64,
    answer: Q::Answer,
    bytes: usize,
}

/// A query that is not waited for any more.
#[derive(Debug)]
pub(crate) struct Finished<Q: WorkerQuery> {
    pub(crate) of: QueryOf,
    pub(crate) query: Arc<Q>,
    pub(crate) answer: Q::Answer,
    /// How many workers have not answered in time.
    pub(crate) missing: usize,
}

/// The queries that this worker has begun.
#[derive(Debug)]
pub(crate) struct Queries<Q: WorkerQuery> {
    pending: Slab<Pending<Q>>,
    held_bytes: usize,
}

impl<Q: WorkerQuery> Default for Queries<Q> {
    fn default() -> Self {
        Self { pending: Slab::default(), held_bytes: 0 }
    }
}

impl<Q: WorkerQuery> Queries<Q> {
    /// A query that so many workers will answer, of which there is at least one.
    pub(crate) fn begin(&mut self, of: QueryOf, query: Arc<Q>, awaited: usize, now_us: u64) -> Handle {
        let answer = query.no_answer();
        self.pending.insert(Pending { of, query, awaited, asked_us: now_us, answer, bytes: 0 })
    }

    /// A worker has answered. `Some`: it was the last. An answer that is too late changes nothing.
    pub(crate) fn handle_answer(&mut self, handle: Handle, answer: Q::Answer) -> Option<Finished<Q>> {
        let pending = self.pending.get_mut(handle)?;
        let bytes = Q::bytes_of(&answer);
        pending.bytes += bytes;
        self.held_bytes += bytes;
        pending.query.join(&mut pending.answer, answer);
        pending.awaited = pending.awaited.saturating_sub(1);
        if pending.awaited == 0 { self.finish(handle.index) } else { None }
    }

    /// Gives up the queries that have waited for too long. Workers that end answer nothing: while they do (`is_ending`), no query waits longer.
    pub(crate) fn take_overdue(&mut self, now_us: u64, is_ending: bool) -> Vec<Finished<Q>> {
        let is_overdue = |pending: &Pending<Q>| {
            let waits = pending.query.is_promise() && !is_ending;
            !waits && now_us.saturating_sub(pending.asked_us) > QUERY_US_MAX
        };
        let overdue = self.pending.iter().filter(|(_, pending)| is_overdue(pending));
        let overdue: Vec<u32> = overdue.map(|(index, _)| index).collect();
        overdue.into_iter().filter_map(|index| self.finish(index)).collect()
    }

    fn finish(&mut self, index: u32) -> Option<Finished<Q>> {
        let Pending { of, query, awaited, answer, bytes, .. } = self.pending.remove(index)?;
        self.held_bytes -= bytes;
        Some(Finished { of, query, answer, missing: awaited })
    }

    /// How many wait for answers.
    pub(crate) fn len(&self) -> usize {
        self.pending.len()
    }

    /// Bytes of the answers that wait for others.
    pub(crate) fn held_bytes(&self) -> usize {
        self.held_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asks for numbers.
    #[derive(Clone, Debug)]
    struct Numbers;

    impl WorkerQuery for Numbers {
        type Answer = Vec<u8>;

        fn no_answer(&self) -> Vec<u8> {
            Vec::new()
        }

        fn join(&self, all: &mut Vec<u8>, one: Vec<u8>) {
            all.extend(one);
        }

        fn bytes_of(answer: &Vec<u8>) -> usize {
            answer.len()
        }
    }

    #[test]
    fn the_last_answer_finishes_a_query() {
        let mut queries = Queries::default();
        let query = queries.begin(QueryOf::Worker, Arc::new(Numbers), 3, 0);
        assert!(queries.handle_answer(query, vec![1]).is_none());
        assert!(queries.handle_answer(query, vec![]).is_none());
        assert_eq!((queries.len(), queries.held_bytes()), (1, 1));
        let finished = queries.handle_answer(query, vec![2, 3]).expect("all have answered");
        assert_eq!((finished.answer, finished.missing), (vec![1, 2, 3], 0));
        assert_eq!((queries.len(), queries.held_bytes()), (0, 0));
    }

    #[test]
    fn an_overdue_query_gives_what_is_known() {
        let mut queries = Queries::default();
        let late = queries.begin(QueryOf::Worker, Arc::new(Numbers), 3, 0);
        let fresh = queries.begin(QueryOf::Worker, Arc::new(Numbers), 2, 1);
        assert!(queries.handle_answer(late, vec![7]).is_none());
        assert!(queries.take_overdue(QUERY_US_MAX, false).is_empty());
        let overdue = queries.take_overdue(QUERY_US_MAX + 1, false);
        assert_eq!(overdue.iter().map(|f| (f.answer.clone(), f.missing)).collect::<Vec<_>>(), [(vec![7], 2)]);
        assert_eq!((queries.len(), queries.held_bytes()), (1, 0));
        // The late answer finds neither the query nor the next one in its place.
        let next = queries.begin(QueryOf::Worker, Arc::new(Numbers), 1, 2);
        assert_eq!(next.index, late.index);
        assert!(queries.handle_answer(late, vec![8]).is_none());
        assert!(queries.handle_answer(next, vec![9]).is_some_and(|finished| finished.answer == [9]));
        assert!(queries.handle_answer(fresh, vec![1]).is_none());
    }
}
