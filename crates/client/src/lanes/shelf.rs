//! The connections that are free, and the callers that wait for one.
//!
//! ```text
//!   free --taken by a caller--> leased --given back clean--> free --not used for a while--> closed
//!                                  '--in doubt about its state--> closed
//! ```
//!
//! Callers are served in the order in which they have come. One thread closes what was not used for a while and wakes callers whose
//! time is over; it ends when there is neither.

use crate::core::{Core, Waiter};
use crate::limits::LANES_IDLE;
use crate::{Config, ErrorKind, Overload};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// The connections of one client beside the shared one.
#[derive(Debug)]
pub(crate) struct Shelf {
    config: Config,
    state: Mutex<State>,
    /// Tells the thread that something has changed.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    free: Vec<(Arc<Core>, Instant)>,
    /// All that are free or leased.
    open: Vec<Weak<Core>>,
    queue: VecDeque<Queued>,
    /// Counts the callers that have queued.
    numbers: u64,
    has_thread: bool,
    is_closed: bool,
}

#[derive(Debug)]
struct Queued {
    number: u64,
    until: Option<Instant>,
    waiter: Waiter,
}

/// A caller that wants a connection, and its place in the queue.
#[derive(Debug)]
pub(crate) struct Wanting {
    shelf: Arc<Shelf>,
    number: Option<u64>,
    until: Option<Instant>,
}

/// A connection that one caller has to itself. It is closed when it is given up, unless it was found to be clean.
#[derive(Debug)]
pub(crate) struct Lease {
    pub(crate) core: Arc<Core>,
    shelf: Arc<Shelf>,
    pub(crate) is_clean: bool,
}

impl Shelf {
    pub(crate) fn new(config: Config) -> Arc<Self> {
        Arc::new(Self { config, state: Mutex::default(), changed: Condvar::new() })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends all connections, of callers as well, for good.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        let (free, open) = (std::mem::take(&mut state.free), std::mem::take(&mut state.open));
        let waiters: Vec<Waiter> = state.queue.iter_mut().map(|queued| std::mem::take(&mut queued.waiter)).collect();
        drop(state);
        self.changed.notify_one();
        open.iter().filter_map(Weak::upgrade).for_each(|core| core.close());
        waiters.into_iter().for_each(Waiter::wake);
        drop(free);
    }

    /// How many connections there are, and how many of them are free.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let state = self.lock();
        (state.open.len(), state.free.len())
    }

    /// Lets the thread look again, which is begun if there is none.
    fn note_change(self: &Arc<Self>, state: &mut State) {
        if std::mem::replace(&mut state.has_thread, true) {
            self.changed.notify_one();
            return;
        }
        let shelf = Arc::clone(self);
        let spawned = std::thread::Builder::new().name("respool-lanes".to_owned()).spawn(move || shelf.look_after());
        // Without it free connections stay open until the next one is given back.
        state.has_thread = spawned.is_ok();
    }

    /// The life of the thread.
    fn look_after(&self) {
        let mut state = self.lock();
        loop {
            let now = Instant::now();
            let mut next: Option<Instant> = None;
            let mut note = |at: Instant| next = Some(next.map_or(at, |next| next.min(at)));
            let mut late = Vec::new();
            for queued in &mut state.queue {
                match (queued.until, &queued.waiter) {
                    // It was woken, and leaves by itself.
                    (Some(until), Waiter::None) if until <= now => {}
                    (Some(until), _) if until <= now => late.push(std::mem::take(&mut queued.waiter)),
                    (Some(until), _) => note(until),
                    (None, _) => {}
                }
            }
            let mut old = Vec::new();
            state.free.retain(|(core, since)| {
                let until = *since + LANES_IDLE;
                let is_old = until <= now;
                if is_old {
                    old.push(Arc::clone(core))
                } else {
                    note(until)
                }
                !is_old
            });
            state.open.retain(|open| !old.iter().any(|core| std::ptr::eq(open.as_ptr(), Arc::as_ptr(core))));
            if !late.is_empty() || !old.is_empty() {
                drop(state);
                late.into_iter().for_each(Waiter::wake);
                drop(old);
                state = self.lock();
                continue;
            }
            let Some(next) = next.filter(|_| !state.is_closed) else {
                state.has_thread = false;
                return;
            };
            let left = next.saturating_duration_since(now);
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl State {
    /// The caller that is first may look again.
    fn wake_first(&mut self) -> Waiter {
        self.queue.front_mut().map_or(Waiter::None, |first| std::mem::take(&mut first.waiter))
    }
}

impl Wanting {
    pub(crate) fn new(shelf: &Arc<Shelf>, limit: Option<Duration>) -> Self {
        Self {
            shelf: Arc::clone(shelf),
            number: None,
            until: limit.and_then(|limit| Instant::now().checked_add(limit)),
        }
    }

    /// Takes a connection, or waits to be woken by `waiter`.
    fn take(&mut self, waiter: impl FnOnce() -> Waiter) -> Option<Result<Lease, ErrorKind>> {
        let shelf = Arc::clone(&self.shelf);
        let mut state = shelf.lock();
        let place = self.number.and_then(|number| state.queue.iter().position(|queued| queued.number == number));
        let lane = match place {
            _ if state.is_closed => Some(Err(ErrorKind::Closed)),
            None if !state.queue.is_empty() => None,
            Some(place) if place > 0 => None,
            _ => match state.free.pop() {
                Some((core, _)) => Some(Ok(core)),
                None if state.open.len() < shelf.config.lanes_max => {
                    let core = Core::new(shelf.config.clone());
                    state.open.push(Arc::downgrade(&core));
                    Some(Ok(core))
                }
                None => None,
            },
        };
        let is_late = self.until.is_some_and(|until| Instant::now() >= until);
        let lane = match lane {
            None if is_late || shelf.config.overload == Overload::Fail => Some(Err(ErrorKind::Overloaded)),
            lane => lane,
        };
        let Some(lane) = lane else {
            let old = match place {
                Some(place) => std::mem::replace(&mut state.queue[place].waiter, waiter()),
                None => {
                    state.numbers += 1;
                    let number = state.numbers;
                    self.number = Some(number);
                    state.queue.push_back(Queued { number, until: self.until, waiter: waiter() });
                    if self.until.is_some() {
                        shelf.note_change(&mut state);
                    }
                    Waiter::None
                }
            };
            drop(state);
            drop(old);
            return None;
        };
        let (old, next) = self.leave(&mut state);
        drop(state);
        drop(old);
        next.wake();
        Some(lane.map(|core| Lease { core, shelf: Arc::clone(&shelf), is_clean: false }))
    }

    /// Leaves the queue. Returns what waited there, and the caller that is first from now on and may find something.
    fn leave(&mut self, state: &mut State) -> (Waiter, Waiter) {
        let number = self.number.take();
        let place = number.and_then(|number| state.queue.iter().position(|queued| queued.number == number));
        let old = place.and_then(|place| state.queue.remove(place)).map_or(Waiter::None, |queued| queued.waiter);
        let has_room = !state.free.is_empty() || state.open.len() < self.shelf.config.lanes_max;
        (old, if has_room { state.wake_first() } else { Waiter::None })
    }

    /// Takes a connection in a task.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Lease, ErrorKind>> {
        self.take(|| Waiter::Task(cx.waker().clone())).map_or(Poll::Pending, Poll::Ready)
    }

    /// Takes a connection in this thread.
    pub(crate) fn wait(&mut self) -> Result<Lease, ErrorKind> {
        loop {
            if let Some(lane) = self.take(|| Waiter::Thread(crate::core::current())) {
                return lane;
            }
            match self.until {
                Some(until) => std::thread::park_timeout(until.saturating_duration_since(Instant::now())),
                None => std::thread::park(),
            }
        }
    }
}

impl Drop for Wanting {
    fn drop(&mut self) {
        if self.number.is_some() {
            let shelf = Arc::clone(&self.shelf);
            let mut state = shelf.lock();
            let (old, next) = self.leave(&mut state);
            drop(state);
            drop(old);
            next.wake();
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if !self.is_clean {
            self.core.close();
        }
        let mut state = self.shelf.lock();
        let mut closed = None;
        if self.is_clean && !state.is_closed {
            state.free.push((Arc::clone(&self.core), Instant::now()));
            self.shelf.note_change(&mut state);
        } else {
            let core = Arc::as_ptr(&self.core);
            state.open.retain(|open| !std::ptr::eq(open.as_ptr(), core));
            closed = Some(Arc::clone(&self.core));
        }
        let next = state.wake_first();
        drop(state);
        drop(closed);
        next.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_caller_that_was_woken_keeps_no_thread_busy() {
        let shelf = Shelf::new(Config::from_url("localhost").unwrap());
        let mut state = shelf.lock();
        state.has_thread = true;
        state.queue.push_back(Queued { number: 1, until: Some(Instant::now()), waiter: Waiter::None });
        drop(state);
        let (ended, ends) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            shelf.look_after();
            ended.send(shelf.lock().has_thread)
        });
        assert_eq!(ends.recv_timeout(Duration::from_secs(20)), Ok(false));
    }
}
