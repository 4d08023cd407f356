//! How much of its time a worker's core is in use, as its loop sees it: time that is not spent waiting.
//!
//! A wait for bytes that are held does not count either way. It is the policy's own doing: as idle time it would end the delay
//! that saves the core work, and as work it would keep the delay up when there is nothing left to save.

use super::limits::FLUSH_LIMITS;

/// Windows whose mean is kept.
const WINDOWS: u64 = 8;

/// The use of one worker's core.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CoreLoad {
    /// In thousandths of the time, smoothed.
    busy: u64,
    idle_us: u64,
    held_us: u64,
}

impl CoreLoad {
    /// Nothing is known: an idle core.
    pub(crate) const NONE: Self = Self { busy: 0, idle_us: 0, held_us: 0 };

    /// The loop has waited; `is_held`: for bytes that are held.
    pub(crate) fn note_waited(&mut self, waited_us: u64, is_held: bool) {
        if is_held {
            self.held_us += waited_us;
        } else {
            self.idle_us += waited_us;
        }
    }

    /// A window of so many microseconds is over.
    pub(crate) fn end_window(&mut self, passed_us: u64) {
        let (idle_us, held_us) = (std::mem::take(&mut self.idle_us), std::mem::take(&mut self.held_us));
        let counted_us = passed_us.saturating_sub(held_us);
        if counted_us == 0 {
            return;
        }
        let busy = counted_us.saturating_sub(idle_us) * 1_000 / counted_us;
        // A long window is a worker that was idle for long: what was before it does not count any more.
        let weight = (counted_us / FLUSH_LIMITS.window_us).clamp(1, WINDOWS);
        self.busy = (self.busy * (WINDOWS - weight) + busy * weight) / WINDOWS;
    }

    /// Whether work waits for the core: what is delayed would have waited anyway.
    pub(crate) fn is_busy(&self) -> bool {
        self.busy >= FLUSH_LIMITS.core_busy_min
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW_US: u64 = FLUSH_LIMITS.window_us;

    fn after(windows: usize, idle_us: u64, held_us: u64) -> CoreLoad {
        let mut load = CoreLoad::NONE;
        for _ in 0..windows {
            load.note_waited(idle_us, false);
            load.note_waited(held_us, true);
            load.end_window(WINDOW_US);
        }
        load
    }

    #[test]
    fn a_core_without_waits_is_busy_after_some_windows() {
        assert!(!CoreLoad::NONE.is_busy());
        assert!(!after(2, 0, 0).is_busy(), "a short burst is no load");
        assert!(after(30, 0, 0).is_busy());
        assert!(after(30, WINDOW_US / 10, 0).is_busy());
        assert!(!after(30, WINDOW_US / 2, 0).is_busy());
        assert!(!after(30, WINDOW_US * 3 / 10, 0).is_busy());
    }

    #[test]
    fn waits_for_held_bytes_count_neither_way() {
        assert!(after(30, 0, WINDOW_US / 2).is_busy(), "nothing but work besides");
        assert!(!after(30, WINDOW_US / 4, WINDOW_US / 2).is_busy(), "idle for half of the rest");
        assert!(!after(30, 0, WINDOW_US).is_busy(), "nothing is known of a window that was all held");
    }

    #[test]
    fn a_long_idle_wait_ends_a_busy_time_at_once() {
        let mut load = after(100, 0, 0);
        load.note_waited(1_000_000, false);
        load.end_window(1_000_100);
        assert!(!load.is_busy());
    }

    #[test]
    fn clocks_that_disagree_do_no_harm() {
        let mut load = after(100, 0, 0);
        load.note_waited(u64::from(u32::MAX), false);
        load.note_waited(u64::from(u32::MAX), true);
        load.end_window(1);
        load.end_window(0);
        assert!(load.is_busy(), "nothing was learnt");
    }
}
