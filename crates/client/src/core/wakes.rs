//! What is done once the lock is free: waking and dropping what is not ours, which may call back into the client.

use super::slots::{Ended, Waiter};
use super::{Core, Link};
use std::sync::Arc;

/// Things to wake, to drop and to begin.
#[derive(Debug, Default)]
pub(crate) struct Wakes {
    first: Waiter,
    others: Vec<Waiter>,
    dropped: (Waiter, Option<Ended>),
    trash: Vec<(Waiter, Option<Ended>)>,
    pub(crate) link: Option<Arc<Link>>,
    /// A connection was lost: how, and with how many requests that were not answered.
    pub(crate) lost: Option<Box<(Arc<str>, usize)>>,
    /// Dials the server.
    pub(crate) dial: bool,
    /// Starts the thread that reads for tasks of no runtime.
    pub(crate) serve: bool,
    /// What looks after deadlines is to look again.
    pub(crate) keeper: bool,
    #[cfg(feature = "tokio")]
    pub(crate) driver: super::driver::Wakes,
}

impl Wakes {
    /// With memory for many that was used before.
    pub(crate) fn with_room(others: Vec<Waiter>) -> Self {
        Self { others, ..Self::default() }
    }

    #[inline]
    pub(crate) fn push(&mut self, waiter: Waiter) {
        match (&self.first, &waiter) {
            (_, Waiter::None) => {}
            (Waiter::None, _) => self.first = waiter,
            _ => self.others.push(waiter),
        }
    }

    /// To be dropped and not woken.
    pub(crate) fn trash(&mut self, waiter: Waiter, ended: Option<Ended>) {
        match (&self.dropped, &waiter, &ended) {
            (_, Waiter::None, None) => {}
            ((Waiter::None, None), ..) => self.dropped = (waiter, ended),
            _ => self.trash.push((waiter, ended)),
        }
    }

    /// As [`Self::trash`].
    pub(crate) fn push_trash(&mut self, waiter: Waiter) {
        self.trash(waiter, None);
    }

    /// How many are woken.
    pub(crate) fn len(&self) -> usize {
        usize::from(!matches!(self.first, Waiter::None)) + self.others.len()
    }

    /// Does it. The lock must be free. Gives the memory back.
    pub(crate) fn run_on(mut self, core: &Arc<Core>) -> Vec<Waiter> {
        if self.dial {
            Core::begin_dial(core);
        }
        if std::mem::take(&mut self.keeper) {
            core.keep_deadlines();
        }
        if self.serve {
            core.serve_by_thread();
        }
        if let Some(lost) = self.lost.take()
            && let Some(endpoint) = core.config.told_endpoint()
        {
            core.config.tell(&crate::Event::Lost { endpoint: &endpoint, how: &lost.0, unanswered: lost.1 });
        }
        self.wake()
    }

    /// As [`Self::run_on`], for wakes that dial nothing.
    pub(crate) fn run(mut self) {
        self.wake();
    }

    fn wake(&mut self) -> Vec<Waiter> {
        std::mem::take(&mut self.first).wake();
        let mut others = std::mem::take(&mut self.others);
        others.drain(..).for_each(Waiter::wake);
        #[cfg(feature = "tokio")]
        self.driver.run();
        others
    }
}
