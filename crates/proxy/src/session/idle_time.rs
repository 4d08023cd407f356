//! For how long a client has been idle: it has sent nothing, has taken nothing of what was written to it, and nothing has kept it waiting.
//!
//! ```text
//!   sends, takes a part of a reply, waits for an element, a node or an operator          nothing of that
//!   [busy] <---------------------------------------------------------------------------------> [idle since]
//! ```
//!
//! What has been written is compared when the timers run, and only where a timeout is set: nothing is noted on the way of a request or of a
//! reply. So a client may be taken for busy for one run of the timers too long, and never for idle too early.

use crate::session::{Pause, Session, SessionFlags};

/// When a client was last seen to be busy.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct IdleTime {
    /// In microseconds of the monotonic clock.
    busy_us: u64,
    /// What had been written to it by then.
    written_bytes: u64,
}

impl Session {
    /// Whether a client has been idle for more than `idle_us`. As in Redis, who subscribes, monitors or follows as a replica is there to
    /// listen, and who waits is not idle.
    pub(crate) fn is_idle(&mut self, now_us: u64, idle_us: u64) -> bool {
        let listens = self.subscriber.as_ref().is_some_and(|subscriber| subscriber.is_subscribed());
        if listens || self.flags.has(SessionFlags::DEDICATED) {
            return false;
        }
        let written_bytes = self.credit.written_bytes();
        let has_taken = written_bytes != self.details.idle.written_bytes;
        if has_taken || !self.down.is_settled() || self.is_kept_waiting() {
            self.details.idle = IdleTime { busy_us: now_us, written_bytes };
        }
        now_us.saturating_sub(self.last_active_us.max(self.details.idle.busy_us)) > idle_us
    }

    /// Whether it is not read for a reason that is not its own. Whether it takes its replies is its own matter.
    fn is_kept_waiting(&self) -> bool {
        let mut reasons = self.pause;
        reasons.remove(Pause::OUTPUT);
        reasons.remove(Pause::CLOSING);
        !reasons.is_none() || self.is_waiting()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::env_with_node;

    #[test]
    fn only_who_neither_sends_nor_takes_nor_waits_is_idle() {
        let mut env = env_with_node();
        let client = env.test_client();
        let session = env.test_session(client);
        let sent_us = session.last_active_us;
        assert!(!session.is_idle(sent_us + 100, 100) && session.is_idle(sent_us + 101, 100));
        session.credit.note_written(1);
        assert!(!session.is_idle(sent_us + 150, 100), "it has taken something since it was looked at");
        assert!(!session.is_idle(sent_us + 250, 100) && session.is_idle(sent_us + 251, 100));
        for reason in Pause::ALL.map(|(reason, _)| reason) {
            let is_its_own = [Pause::OUTPUT, Pause::CLOSING].contains(&reason);
            session.pause.add(reason);
            assert_eq!(session.is_idle(sent_us + 300, 100), is_its_own, "{reason:?}");
            session.pause.remove(reason);
            session.details.idle.busy_us = 0;
        }
        session.pause.add(Pause::HELD);
        assert!(!session.is_idle(sent_us + 900, 100));
        session.pause.remove(Pause::HELD);
        assert!(!session.is_idle(sent_us + 1_000, 100), "its time begins with the end of the pause");
        assert!(session.is_idle(sent_us + 1_001, 100));
        session.flags.add(SessionFlags::DEDICATED);
        assert!(!session.is_idle(sent_us + 9_000, 100), "it listens");
    }
}
