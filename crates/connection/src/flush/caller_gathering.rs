//! When callers write that share a connection and have no loop that would write for them at the end of a turn: each at once, or the last
//! of those that are about to send.
//!
//! A caller whose reply has come is about to send again, and those that one read has woken come one after the other. A caller that is alone
//! never waits. Where it is not, its request is left to whatever lets every caller run that can, and writes then: no time is waited for.

use super::limits::FLUSH_LIMITS;

/// What is queued on a connection when a caller has added to it.
#[derive(Clone, Copy, Debug)]
pub struct CallerQueue {
    /// Requests that the caller has added.
    pub added: usize,
    /// Requests on the connection whose callers wait for replies, those of this caller among them.
    pub waiting: usize,
    /// Bytes that no write has begun with.
    pub bytes: usize,
}

/// The callers of one connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallerGathering {
    /// Callers that were woken by the last read and have not sent since.
    returning: usize,
    /// Callers that have queued requests since the last write.
    gathered: usize,
}

impl CallerGathering {
    /// A read has woken so many callers.
    #[inline]
    pub fn note_woken(&mut self, callers: usize) {
        self.returning = callers;
    }

    /// What is queued is written now.
    #[inline]
    pub fn note_write(&mut self) {
        self.gathered = 0;
    }

    /// Every caller that could run has run: those that have not sent by now are not waited for.
    #[inline]
    pub fn give_up(&mut self) {
        self.returning = 0;
    }

    /// A caller has queued requests. Whether they are written at once, with what is queued beside them; otherwise others are about to send.
    #[inline]
    pub fn is_write_due(&mut self, queue: CallerQueue) -> bool {
        let is_alone = queue.waiting == queue.added && self.returning <= 1;
        self.returning = self.returning.saturating_sub(1);
        self.gathered += 1;
        is_alone || self.is_half() || queue.bytes >= FLUSH_LIMITS.bytes_max
    }

    /// Whether half of those that one read has woken have sent: the server begins with these while the others are on their way, so that neither
    /// waits for the other.
    #[inline]
    fn is_half(self) -> bool {
        let enough = FLUSH_LIMITS.wave_callers_min;
        self.gathered >= enough && self.returning >= enough && self.gathered >= self.returning
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: usize = 100;

    fn queue(waiting: usize) -> CallerQueue {
        CallerQueue { added: 1, waiting, bytes: SMALL }
    }

    /// Behind which of so many callers that one read has woken something is written.
    fn due(callers: usize) -> Vec<usize> {
        let mut gathering = CallerGathering::default();
        gathering.note_woken(callers);
        let mut due = Vec::new();
        for caller in 1..=callers {
            if gathering.is_write_due(queue(caller)) {
                gathering.note_write();
                due.push(caller);
            }
        }
        due
    }

    #[test]
    fn a_caller_that_is_alone_writes_at_once() {
        let mut gathering = CallerGathering::default();
        for _ in 0..3 {
            assert!(gathering.is_write_due(queue(1)));
            gathering.note_write();
            gathering.note_woken(1);
        }
        // A batch of one caller, too.
        assert!(gathering.is_write_due(CallerQueue { added: 10, waiting: 10, bytes: SMALL }));
    }

    #[test]
    fn a_caller_beside_others_waits_for_them() {
        let mut gathering = CallerGathering::default();
        assert!(!gathering.is_write_due(queue(2)), "another waits for its reply");
        gathering.note_woken(3);
        assert!(!gathering.is_write_due(queue(1)), "two others were woken with it");
        assert!(!gathering.is_write_due(queue(2)));
        // The third does not come.
        gathering.give_up();
        gathering.note_write();
        assert_eq!(gathering, CallerGathering::default());
        assert!(gathering.is_write_due(queue(1)));
    }

    #[test]
    fn half_of_many_callers_is_written_while_the_others_come() {
        let least = FLUSH_LIMITS.wave_callers_min;
        assert_eq!(due(128), [64]);
        // As long as both halves are worth a write: half, and then half of the rest.
        assert_eq!(due(2 * least), [least]);
        assert_eq!(due(1_000), [500, 750, 875, 938]);
        assert_eq!(due(2 * least - 1), [0; 0]);
        assert_eq!(due(2), [0; 0]);
    }

    #[test]
    fn many_bytes_are_written_at_once() {
        let mut gathering = CallerGathering::default();
        gathering.note_woken(10);
        let of = |bytes| CallerQueue { added: 1, waiting: 5, bytes };
        assert!(!gathering.is_write_due(of(FLUSH_LIMITS.bytes_max - 1)));
        assert!(gathering.is_write_due(of(FLUSH_LIMITS.bytes_max)));
    }
}
