//! Whether messages that are queued for subscribers are written at the end of the turn, or a moment later with more.
//!
//! A write to a subscriber wakes it, which costs both ends several times what a message does. A worker that has more to read when a
//! turn ends would write to the same subscribers again right after. So it reads first, and writes when nothing is left to read.
//!
//! Where messages come one upon the other, what is left to read is not all that is on its way: those that publish, and the node that
//! passes messages on, share the machine with the worker. It gives up the core before it looks, and while replies of near nodes are
//! due it waits for those, as it does for the rest of a pipeline: a message leaves a node with the reply to its PUBLISH.
//!
//! ```text
//!   messages come seldom:
//!     the loop slept before this turn ------------------------------------> written at the end of the turn
//!     it had something to read at once, and has read it --> held, look again: nothing there --> written
//!
//!   often:
//!     held --> let others run, look again: nothing there --> replies are due: wait for nodes
//!      ^              |                             |                       |
//!      '-- something -'<----------------------------|-----------------------'
//!                                                   '------ none is --> written
//!
//!   1 ms since the first, whatever comes --> written
//! ```

use super::event_rate::EventRate;
use super::limits::FLUSH_LIMITS;
use crate::machine::Wait;

/// What is known of the turns in which messages come. One for each worker.
#[derive(Clone, Copy, Debug)]
pub struct MessageGathering {
    /// Since when the first message that waits is held; 0 while none is.
    since_us: u64,
    /// How long the loop waited before the turn that begins next, if that was measured.
    waited_us: Option<u64>,
    /// What the loop is asked to do before the next turn, and was before this one.
    next: Look,
    last: Look,
    /// The loop has not slept before this turn, or only for nodes.
    had_input: bool,
    /// How often connections had been read when the turn began.
    reads_before: u64,
    /// How often messages come.
    messages: EventRate,
}

/// What the loop does before a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    /// It waits: nothing is held.
    None,
    /// It looks for more to read.
    AtOnce,
    /// It does so after others have run.
    Yielding,
    /// It waits for nodes whose replies are due, until then at most.
    Nodes { until_us: u64 },
}

impl Default for MessageGathering {
    fn default() -> Self {
        Self::NONE
    }
}

impl MessageGathering {
    /// No message has come.
    pub const NONE: Self = Self {
        since_us: 0,
        waited_us: None,
        next: Look::None,
        last: Look::None,
        had_input: false,
        reads_before: 0,
        messages: EventRate::NONE,
    };

    /// The loop has waited for so long before the turn that begins next.
    pub fn note_waited(&mut self, waited_us: u64) {
        self.waited_us = Some(waited_us);
    }

    /// Whether the loop has said how long it waited. If it has not and nothing is held, a turn need not begin here: there are no
    /// subscribers.
    #[inline]
    pub fn is_measured(&self) -> bool {
        self.waited_us.is_some()
    }

    /// A turn begins. Connections have been read `reads` times in all, and `messages` have come.
    pub fn begin_turn(&mut self, now_us: u64, reads: u64, messages: u64) {
        let waited_us = self.waited_us.take();
        self.last = std::mem::replace(&mut self.next, Look::None);
        self.had_input = waited_us.is_some_and(|waited_us| waited_us < FLUSH_LIMITS.at_once_us)
            || matches!(self.last, Look::Yielding | Look::Nodes { .. });
        self.reads_before = reads;
        self.messages.note(now_us, messages);
    }

    /// Everything else of a turn has been written, and connections have been read `reads` times. Whether messages are held until the
    /// next one; `replies_due_us` says until when near nodes are waited for that are about to reply, if they are.
    pub fn holds(&mut self, now_us: u64, reads: u64, replies_due_us: impl FnOnce() -> Option<u64>) -> bool {
        let since_us = if self.since_us == 0 { now_us } else { self.since_us };
        let has_read = reads != self.reads_before;
        self.next = if now_us - since_us >= FLUSH_LIMITS.replies_us_max {
            Look::None
        } else if !self.messages.expects(FLUSH_LIMITS.messages_min, FLUSH_LIMITS.replies_us_max) {
            if self.had_input && has_read { Look::AtOnce } else { Look::None }
        } else if has_read || self.last != Look::Yielding {
            Look::Yielding
        } else {
            let due_us = replies_due_us().filter(|due_us| *due_us > now_us);
            due_us.map_or(Look::None, |due_us| Look::Nodes {
                until_us: due_us.min(since_us + FLUSH_LIMITS.replies_us_max),
            })
        };
        let is_held = self.next != Look::None;
        self.since_us = if is_held { since_us } else { 0 };
        is_held
    }

    /// What the loop waits for while messages are held.
    #[inline]
    pub fn wait(&self) -> Wait {
        match self.next {
            Look::None | Look::AtOnce => Wait::Anything,
            Look::Yielding => Wait::Yielding { until_us: 0 },
            Look::Nodes { until_us } => Wait::Nodes { until_us },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOLD_US: u64 = FLUSH_LIMITS.replies_us_max;

    /// A worker's loop, turn by turn.
    struct Turns {
        gathering: MessageGathering,
        now_us: u64,
        reads: u64,
        messages: u64,
        /// How long near nodes may take for replies that are due, if any are.
        replies_us: Option<u64>,
    }

    impl Turns {
        fn new() -> Self {
            Self { gathering: MessageGathering::NONE, now_us: 1, reads: 0, messages: 0, replies_us: None }
        }

        /// The loop waits for so long, if that is measured, and reads so many connections, of which each has a message. What it does
        /// before the next turn, if anything is held until then.
        fn turn(&mut self, waited_us: Option<u64>, read: u64) -> Option<Wait> {
            if let Some(waited_us) = waited_us {
                self.gathering.note_waited(waited_us);
                self.now_us += waited_us;
            }
            if self.gathering.is_measured() {
                self.gathering.begin_turn(self.now_us, self.reads, self.messages);
            }
            self.reads += read;
            self.messages += read;
            let replies_due_us = || Some(self.now_us + self.replies_us?);
            let is_held = self.gathering.holds(self.now_us, self.reads, replies_due_us);
            is_held.then(|| self.gathering.wait())
        }

        /// Messages come every 50 us, for long enough for that to be known.
        fn often() -> Self {
            let mut turns = Self::new();
            for _ in 0..2 * FLUSH_LIMITS.window_us / 50 {
                turns.turn(Some(50), 1);
            }
            // Nothing is left to read.
            while turns.turn(Some(1), 0).is_some() {}
            turns
        }
    }

    const ANYTHING: Option<Wait> = Some(Wait::Anything);
    const YIELDING: Option<Wait> = Some(Wait::Yielding { until_us: 0 });

    #[test]
    fn nothing_is_held_by_a_worker_that_slept() {
        let mut turns = Turns::new();
        assert_eq!(turns.turn(Some(FLUSH_LIMITS.at_once_us), 1), None);
        assert_eq!(turns.turn(Some(5_000), 9), None);
        assert_eq!(turns.turn(None, 9), None, "of a loop that does not tell nothing is known");
    }

    #[test]
    fn messages_are_held_until_there_is_nothing_to_read() {
        let mut turns = Turns::new();
        assert_eq!(turns.turn(Some(0), 1), ANYTHING);
        assert_eq!(turns.turn(Some(1), 1), ANYTHING);
        assert_eq!(turns.turn(Some(1), 0), None, "a look has found nothing");
        assert_eq!(turns.turn(Some(900), 1), None, "the loop slept");
    }

    #[test]
    fn messages_are_held_for_a_bounded_time() {
        let mut turns = Turns::new();
        for _ in 0..2 {
            assert_eq!(turns.turn(Some(0), 1), ANYTHING);
            turns.now_us += HOLD_US - 1;
            assert_eq!(turns.turn(Some(0), 1), ANYTHING);
            assert_eq!(turns.turn(Some(1), 1), None);
        }
        let mut turns = Turns::often();
        turns.replies_us = Some(2 * HOLD_US);
        let began_us = turns.now_us;
        while turns.turn(Some(7), 1).is_some() {
            assert!(turns.now_us < began_us + HOLD_US + 7);
        }
        assert!(turns.now_us >= began_us + HOLD_US);
    }

    #[test]
    fn where_messages_come_often_others_run_before_they_are_written() {
        let mut turns = Turns::often();
        assert_eq!(turns.turn(Some(300), 1), YIELDING, "although the loop slept");
        assert_eq!(turns.turn(Some(200), 1), YIELDING, "they have sent something");
        assert_eq!(turns.turn(Some(0), 0), None, "once is enough");
        assert_eq!(turns.turn(Some(30), 1), YIELDING);
    }

    #[test]
    fn replies_that_are_due_bring_messages_along() {
        let mut turns = Turns::often();
        turns.replies_us = Some(2 * HOLD_US);
        assert_eq!(turns.turn(Some(300), 1), YIELDING);
        let until_us = turns.now_us + HOLD_US;
        assert_eq!(turns.turn(Some(0), 0), Some(Wait::Nodes { until_us }));
        assert_eq!(turns.turn(Some(60), 1), YIELDING, "they have come");
        assert_eq!(turns.turn(Some(0), 0), Some(Wait::Nodes { until_us }), "the time counts from the first message");
        assert_eq!(turns.turn(Some(HOLD_US), 0), None, "the node does not answer");
    }

    #[test]
    fn messages_wait_no_longer_than_replies_are_due() {
        for (replies_us, is_waited_for) in [(100, true), (1, true), (0, false)] {
            let mut turns = Turns::often();
            turns.replies_us = Some(replies_us);
            assert_eq!(turns.turn(Some(300), 1), YIELDING);
            let until_us = turns.now_us + replies_us;
            assert_eq!(turns.turn(Some(0), 0), is_waited_for.then_some(Wait::Nodes { until_us }));
        }
    }

    #[test]
    fn a_message_that_comes_alone_after_a_busy_time_leaves_at_once() {
        let mut turns = Turns::often();
        turns.replies_us = Some(2 * HOLD_US);
        assert_eq!(turns.turn(Some(100_000), 1), None);
        for _ in 0..10 {
            // Fewer than would share a write.
            assert_eq!(turns.turn(Some(HOLD_US / FLUSH_LIMITS.messages_min + 1), 1), None);
        }
    }
}
