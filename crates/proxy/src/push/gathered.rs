//! Clients whose outboxes have got messages: whether these are written at the end of the turn, or a moment later with more.
//!
//! A write to a subscriber wakes it, which costs both ends several times what a message does. A worker that has more to read when a
//! turn ends would write to the same subscribers again right after. So it reads first, and writes when nothing is left to read:
//!
//! ```text
//!   the loop slept before this turn -------------------------------------> written at the end of the turn
//!   it had something to read at once, and has read it --> held, look again: nothing there --> written
//!                                                          ^          |---- something -- 1 ms since the first? --> written
//!                                                          '---------------------------- no
//! ```
//!
//! A message is held only while the worker has other work, and it waits for the turn that does this work, however long it is: with an
//! engine, for a long command. A reply to the same client, or 16 KB in its outbox, end that for it.

use crate::session::id::ClientId;
use respool_connection::flush::FLUSH_LIMITS;

/// A wait that took less found its event there: the loop did not sleep.
const AT_ONCE_US: u64 = 10;

/// Clients whose outboxes have got messages since they were written.
#[derive(Debug)]
pub(crate) struct GatheredPushes {
    /// Each once, by a mark in its [`crate::pubsub::subscriber::Subscriber`].
    pub(crate) clients: Vec<ClientId>,
    /// Since when the first of them is held; 0 while none is.
    since_us: u64,
    /// The loop has not slept before this turn.
    had_input: bool,
    /// How long it waited before the turn that begins next, if that was measured.
    waited_us: Option<u64>,
    /// How often connections had been read when the turn began.
    reads_before: u64,
}

impl GatheredPushes {
    pub(crate) fn new() -> Self {
        Self { clients: Vec::new(), since_us: 0, had_input: false, waited_us: None, reads_before: 0 }
    }

    /// Whether messages are held: the loop looks for more to read, and does not sleep.
    #[inline]
    pub(crate) fn is_holding(&self) -> bool {
        !self.clients.is_empty()
    }

    /// The loop has waited for so long before the turn that begins next.
    pub(crate) fn note_waited(&mut self, waited_us: u64) {
        self.waited_us = Some(waited_us);
    }

    /// A turn begins, and connections have been read so many times.
    #[inline]
    pub(crate) fn begin_turn(&mut self, reads: u64) {
        self.had_input = self.waited_us.take().is_some_and(|waited_us| waited_us < AT_ONCE_US);
        self.reads_before = reads;
    }

    /// Whether an outbox of so many bytes may be held back.
    #[inline]
    pub(crate) fn takes(&self, bytes: usize) -> bool {
        bytes < FLUSH_LIMITS.bytes_max
    }

    /// Everything else of a turn has been written, and connections have been read `reads` times. Whether those here are held.
    pub(crate) fn holds(&mut self, now_us: u64, reads: u64) -> bool {
        if !self.had_input || reads == self.reads_before {
            self.since_us = 0;
            return false;
        }
        if self.since_us == 0 {
            self.since_us = now_us;
        }
        let is_held = now_us - self.since_us < FLUSH_LIMITS.replies_us_max;
        if !is_held {
            self.since_us = 0;
        }
        is_held
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What becomes of messages in a turn that begins at this time, after such a wait, and reads so many connections.
    fn turn(gathered: &mut GatheredPushes, reads: &mut u64, at_us: u64, waited_us: Option<u64>, read: u64) -> bool {
        if let Some(waited_us) = waited_us {
            gathered.note_waited(waited_us);
        }
        gathered.begin_turn(*reads);
        *reads += read;
        gathered.holds(at_us, *reads)
    }

    #[test]
    fn nothing_is_held_by_a_worker_that_slept() {
        let (mut gathered, mut reads) = (GatheredPushes::new(), 0);
        assert!(!turn(&mut gathered, &mut reads, 1, Some(AT_ONCE_US), 1));
        assert!(!turn(&mut gathered, &mut reads, 2, Some(5_000), 9));
        assert!(!turn(&mut gathered, &mut reads, 3, None, 9), "of a loop that does not tell nothing is known");
    }

    #[test]
    fn messages_are_held_until_there_is_nothing_to_read() {
        let (mut gathered, mut reads) = (GatheredPushes::new(), 0);
        assert!(turn(&mut gathered, &mut reads, 1, Some(0), 1));
        assert!(turn(&mut gathered, &mut reads, 200, Some(1), 1));
        assert!(!turn(&mut gathered, &mut reads, 300, Some(1), 0), "a look has found nothing");
        assert!(!turn(&mut gathered, &mut reads, 400, Some(900), 1), "the loop slept");
    }

    #[test]
    fn messages_are_held_for_a_bounded_time() {
        let (mut gathered, mut reads) = (GatheredPushes::new(), 0);
        for start_us in [1, 5_000] {
            assert!(turn(&mut gathered, &mut reads, start_us, Some(0), 1));
            assert!(turn(&mut gathered, &mut reads, start_us + FLUSH_LIMITS.replies_us_max - 1, Some(0), 1));
            assert!(!turn(&mut gathered, &mut reads, start_us + FLUSH_LIMITS.replies_us_max, Some(0), 1));
        }
        assert!(gathered.takes(FLUSH_LIMITS.bytes_max - 1) && !gathered.takes(FLUSH_LIMITS.bytes_max));
    }
}
