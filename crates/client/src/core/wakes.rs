//! What is done once the lock is free: waking and dropping what is not ours, which may call back into the client.

use super::slots::{Ended, Waiter};
use super::{Core, Link};
use std::sync::Arc;

/// Things to wake, to drop and to begin. There is one for each time the lock is taken, so what most have none of lies apart.
#[derive(Debug, Default)]
pub(crate) struct Wakes {
    first: Waiter,
    others: Vec<Waiter>,
    /// The driver's.
    #[cfg(feature = "tokio")]
    pub(crate) driver: Option<std::task::Waker>,
    rare: Option<Box<Rare>>,
}

/// What is seldom there.
#[derive(Debug, Default)]
pub(crate) struct Rare {
    /// Dials the server.
    pub(crate) dial: bool,
    /// Starts the thread that reads for tasks of no runtime.
    pub(crate) serve: bool,
    /// What looks after deadlines is to look again.
    pub(crate) keeper: bool,
    trash: Vec<(Waiter, Option<Ended>)>,
    pub(crate) link: Option<Arc<Link>>,
    /// A connection was lost: how, and with how many requests that were not answered.
    pub(crate) lost: Option<(Arc<str>, usize)>,
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
    #[inline]
    pub(crate) fn trash(&mut self, waiter: Waiter, ended: Option<Ended>) {
        if !matches!((&waiter, &ended), (Waiter::None, None)) {
            self.rare().trash.push((waiter, ended));
        }
    }

    /// As [`Self::trash`].
    #[inline]
    pub(crate) fn push_trash(&mut self, waiter: Waiter) {
        self.trash(waiter, None);
    }

    pub(crate) fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    /// How many are woken.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        usize::from(!matches!(self.first, Waiter::None)) + self.others.len()
    }

    /// Does it. The lock must be free.
    #[inline]
    pub(crate) fn run_on(&mut self, core: &Arc<Core>) {
        if !self.is_quiet() {
            self.run_all(core);
        }
    }

    fn run_all(&mut self, core: &Arc<Core>) {
        if let Some(rare) = &mut self.rare {
            rare.begin(core);
        }
        self.wake();
    }

    /// The memory for many, when all of them have been woken.
    pub(crate) fn into_room(self) -> Vec<Waiter> {
        self.others
    }

    /// Whether there is nothing to do, as behind most uses of the lock.
    #[inline]
    pub(crate) fn is_quiet(&self) -> bool {
        #[cfg(feature = "tokio")]
        let is_driven = self.driver.is_some();
        #[cfg(not(feature = "tokio"))]
        let is_driven = false;
        matches!(self.first, Waiter::None) && self.others.is_empty() && self.rare.is_none() && !is_driven
    }

    /// As [`Self::run_on`], for wakes that dial nothing.
    pub(crate) fn run(mut self) {
        self.wake();
    }

    fn wake(&mut self) {
        if !matches!(self.first, Waiter::None) {
            std::mem::take(&mut self.first).wake();
        }
        if !self.others.is_empty() {
            self.others.drain(..).for_each(Waiter::wake);
        }
        #[cfg(feature = "tokio")]
        if let Some(driver) = self.driver.take() {
            driver.wake();
        }
        #[cfg(feature = "tokio")]
        if let Some(rare) = &mut self.rare {
            rare.driver.run();
        }
        self.rare = None;
    }
}

impl Rare {
    #[cold]
    fn begin(&mut self, core: &Arc<Core>) {
        if self.dial {
            Core::begin_dial(core);
        }
        if self.keeper {
            core.keep_deadlines();
        }
        if self.serve {
            core.serve_by_thread();
        }
        if let Some((how, unanswered)) = self.lost.take()
            && let Some(endpoint) = core.config.told_endpoint()
        {
            core.config.tell(&crate::Event::Lost { endpoint: &endpoint, how: &how, unanswered });
        }
    }
}
