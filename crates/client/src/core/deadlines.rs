//! Wakes callers whose time is over.
//!
//! A thread that looks now and then, and not a timer for each call: a call costs a comparison. Nothing runs while nothing waits.

use super::{Core, Waiter, Wakes};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::Duration;

/// How often it is looked while calls are made, in microseconds, if none gives up earlier.
const LOOK_US: u64 = 250_000;

/// What makes the thread look.
#[derive(Debug, Default)]
pub(super) struct Keeper {
    orders: Mutex<Orders>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Orders {
    is_running: bool,
    is_due: bool,
    is_over: bool,
}

impl Keeper {
    fn end(&self) {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner).is_over = true;
        self.changed.notify_one();
    }

    /// Waits until it is time to look. Whether there is still something to look at.
    fn wait(&self, limit: Option<Duration>) -> bool {
        let orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
        let is_idle = |orders: &mut Orders| !orders.is_due && !orders.is_over;
        let mut orders = match limit {
            None => self.changed.wait_while(orders, is_idle).unwrap_or_else(PoisonError::into_inner),
            Some(limit) => {
                self.changed.wait_timeout_while(orders, limit, is_idle).unwrap_or_else(PoisonError::into_inner).0
            }
        };
        orders.is_due = false;
        !orders.is_over
    }
}

impl Core {
    /// A call gives up sooner than it would be looked.
    pub(super) fn keep_deadlines(self: &Arc<Self>) {
        #[cfg(test)]
        if super::simulated::keep_deadlines() {
            return;
        }
        let mut orders = self.keeper.orders.lock().unwrap_or_else(PoisonError::into_inner);
        orders.is_due = true;
        if std::mem::replace(&mut orders.is_running, true) {
            self.keeper.changed.notify_one();
            return;
        }
        let (core, keeper) = (Arc::downgrade(self), Arc::clone(&self.keeper));
        let spawned = std::thread::Builder::new().name("respool-time".to_owned()).spawn(move || run(&core, &keeper));
        orders.is_running = spawned.is_ok();
        drop(orders);
        if spawned.is_err() {
            // The next call asks again.
            self.lock().keeper_us = u64::MAX;
        }
    }

    /// Wakes what is late. Returns how long nothing else will be.
    pub(super) fn wake_late(&self) -> Option<Duration> {
        let now_us = self.now_us();
        let mut wakes = Wakes::default();
        let mut late: Vec<Waiter> = Vec::new();
        let mut guard = self.lock();
        let state = &mut *guard;
        let next_us = state.slots.take_late(now_us, &mut late);
        let mut next_us = next_us.min(state.take_late_outside(now_us, &mut late));
        let requests = state.counts.requests;
        let is_busy = requests != state.looked_at;
        state.looked_at = requests;
        if is_busy {
            next_us = next_us.min(now_us + LOOK_US);
        }
        state.keeper_us = next_us;
        drop(guard);
        late.into_iter().for_each(|waiter| wakes.push(waiter));
        wakes.run();
        (next_us < u64::MAX).then(|| Duration::from_micros(next_us.saturating_sub(now_us)))
    }
}

fn run(core: &Weak<Core>, keeper: &Keeper) {
    loop {
        let Some(limit) = core.upgrade().map(|core| core.wake_late()) else { return };
        if !keeper.wait(limit) {
            return;
        }
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        self.keeper.end();
        let state = self.lock();
        if let Some(link) = &state.link {
            link.shut();
        }
        #[cfg(feature = "tokio")]
        let waker = state.driver.waker();
        drop(state);
        #[cfg(feature = "tokio")]
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}
