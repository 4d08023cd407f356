//! Another thread looks at the engine of a worker: what a program does that tests other programs, whose server is in its process.
//!
//! ```text
//!   another thread: Visit --Mail--> [ turn ] --> [ a turn that began later: what time has made due is done ] --> visit
//! ```
//!
//! So a visit sees the time as it was set before it was sent, and no trace of what is over by then: keys have expired, and
//! clients that have waited long enough are answered. A visit that its worker does not live to see is dropped with its closure, from which
//! the other thread learns it.

use crate::ids::Asker;
use crate::mail::Mail;
use respool_command::{Execute, Millis};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// A visit on its way to one worker.
pub struct Visit(Mutex<Option<Purpose>>);

type Look = Box<dyn FnOnce(Visited<'_>) + Send>;

/// What it is for.
pub(crate) enum Purpose {
    /// To look at the engine.
    Look(Look),
    /// To answer a client, whose request has moved the clock, that it was moved.
    Answer(Asker),
    /// To close all connections of clients; then it is told how many they were.
    CloseClients(Box<dyn FnOnce(usize) + Send>),
}

/// What is seen.
pub struct Visited<'a> {
    /// The engine, if the worker has one. What is changed in it serves blocked requests, and is told to clients that track it.
    pub engine: Option<&'a mut dyn Execute>,
    /// The time by which keys expire.
    pub now: Millis,
}

impl Visit {
    /// Has `look` called on the worker's thread. It must not wait.
    pub fn new(look: impl FnOnce(Visited<'_>) + Send + 'static) -> Arc<Self> {
        Self::of(Purpose::Look(Box::new(look)))
    }

    /// Has the worker close the connections of all its clients, and calls `done` with their number.
    pub fn closing_clients(done: impl FnOnce(usize) + Send + 'static) -> Arc<Self> {
        Self::of(Purpose::CloseClients(Box::new(done)))
    }

    pub(crate) fn answering(asker: Asker) -> Arc<Self> {
        Self::of(Purpose::Answer(asker))
    }

    fn of(purpose: Purpose) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Some(purpose))))
    }

    /// What it is for, if it has not been received before.
    pub(crate) fn receive(&self) -> Option<Purpose> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl From<Arc<Visit>> for Mail {
    fn from(visit: Arc<Visit>) -> Self {
        Self::of_feature(visit)
    }
}

impl fmt::Debug for Visit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Visit").finish_non_exhaustive()
    }
}

impl fmt::Debug for Visited<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Visited").field("now", &self.now).finish_non_exhaustive()
    }
}

/// The visits that a worker expects, each with the turn in which its letter came.
#[derive(Debug, Default)]
pub(crate) struct Visits(Vec<(Arc<Visit>, u64)>);

impl Visits {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A letter has come in this turn.
    pub(crate) fn expect(&mut self, visit: Arc<Visit>, turn: u64) {
        self.0.push((visit, turn));
    }

    /// Those whose letters came in a turn before this one, in their order.
    pub(crate) fn take_ready(&mut self, turn: u64) -> Vec<Arc<Visit>> {
        self.0.extract_if(.., |(_, came)| *came != turn).map(|(visit, _)| visit).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_visit_is_received_once_and_in_a_later_turn() {
        let (said, heard) = std::sync::mpsc::channel();
        let mut visits = Visits::default();
        for (name, turn) in [("first", 7), ("second", 7), ("third", 6)] {
            let said = said.clone();
            visits.expect(Visit::new(move |_| said.send(name).expect("the receiver is open")), turn);
        }
        assert_eq!(visits.take_ready(7).len(), 1, "the third came in another turn");
        let ready = visits.take_ready(8);
        assert_eq!((ready.len(), visits.is_empty()), (2, true));
        for visit in ready {
            let Some(Purpose::Look(look)) = visit.receive() else { panic!("it is to look") };
            look(Visited { engine: None, now: Millis(1) });
            assert!(visit.receive().is_none());
        }
        assert_eq!([heard.recv(), heard.recv()], [Ok("first"), Ok("second")]);
    }
}
