//! Requests that an operator holds back: which they are, and how long they wait (`pause_timeout`).
//!
//! A request that is held stays unread in its client's input, with all that is behind it. When its time is over it is answered
//! with an error, and so is what its client had sent behind it by then for nodes that are paused: nothing of it has been sent.
//! Requests between them for other nodes are done. What the client sends afterwards has its own time.

use crate::session::{Flow, Pause};
use crate::text;
use crate::worker::Worker;
use respool_command::{Command, Execute, Lane, Row, TransactionsCommand};
use respool_wire::Args;

/// For how long an operator has held a client's requests back, in microseconds of the monotonic clock; 0: not at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HeldTime {
    since_us: u64,
    /// When that was too long.
    over_us: u64,
}

impl HeldTime {
    /// Whether a request that is held waits no longer. Its client sent something last at a time.
    fn is_over(&mut self, now_us: u64, sent_us: u64, patience_us: u64) -> bool {
        if self.over_us > 0 && sent_us > self.over_us {
            *self = Self::default();
        }
        if self.since_us == 0 {
            self.since_us = now_us.max(1);
        }
        let is_over = patience_us > 0 && now_us.saturating_sub(self.since_us) >= patience_us;
        if is_over && self.over_us == 0 {
            self.over_us = now_us;
        }
        is_over
    }

    /// A request is not held: the next that is has its own time, unless it had been sent when another was refused.
    fn pass(&mut self) {
        if self.over_us == 0 {
            *self = Self::default();
        }
    }

    /// Whether a request that has been held so long waits no longer.
    fn is_due(self, now_us: u64, patience_us: u64) -> bool {
        self.since_us > 0 && now_us.saturating_sub(self.since_us) >= patience_us
    }
}

/// What becomes of a request for nodes of which one is paused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    /// It waits.
    Waits,
    /// It has waited for long enough: this is said of it.
    Refused(String),
}

impl<E: Execute> Worker<E> {
    /// Holds a request back if it would go to a node that is paused: it is read again then.
    pub(crate) fn hold_for_operator(&mut self, index: u32, row: &'static Row, args: Args<'_>) -> Option<Flow> {
        let is_sent = match row.command {
            // What is queued is sent with EXEC, see `hold_block`. Without MULTI the others are answered here.
            Command::Transactions(command) => command == TransactionsCommand::Watch,
            // It goes to the nodes that are not paused.
            _ => row.lane(args) != Lane::Local && !self.is_own_info(row),
        };
        if !is_sent {
            return None;
        }
        let nodes = if self.is_all_paused { Vec::new() } else { self.nodes_of(index, row, args) };
        match self.hold_for_nodes(index, &nodes)? {
            Held::Waits => Some(Flow::Again),
            Held::Refused(words) if row.command == Command::Transactions(TransactionsCommand::Watch) => {
                let refused =
                    self.refuse_watch(index, format!("-ERR {words}; the command was not sent\r\n").as_bytes());
                // One that waits for replies before it is read and refused again.
                self.counters.holds_expired.add(u64::from(refused != Flow::Again));
                Some(refused)
            }
            Held::Refused(words) => {
                self.counters.holds_expired.add(1);
                Some(self.refuse_unread(index, format!("ERR {words}; the command was not sent").as_bytes()))
            }
        }
    }

    /// Holds back what would go to these nodes if one of them is paused.
    pub(crate) fn hold_for_nodes(&mut self, index: u32, nodes: &[usize]) -> Option<Held> {
        let is_paused = |node: &&usize| self.lanes.nodes.get(**node).is_some_and(|node| node.is_paused);
        let paused = nodes.iter().find(is_paused).map(|node| self.lanes.nodes[*node].name.clone());
        let (now_us, patience_us) = (self.now.mono_us, self.config.timeouts.pause_us);
        let session = self.clients.sessions.at_mut(index)?;
        if !self.is_all_paused && paused.is_none() {
            session.cold.held.pass();
            return None;
        }
        let sent_us = session.last_active_us;
        if session.cold.held.is_over(now_us, sent_us, patience_us) {
            return Some(Held::Refused(text::paused_for_long(paused.as_deref())));
        }
        self.mark_held(index);
        self.is_busy |= patience_us > 0;
        self.counters.pauses.add(1);
        Some(Held::Waits)
    }

    /// Lets those go on whose requests an operator has held for too long: each is refused when it is read again. Returns whether
    /// any is held.
    pub(crate) fn check_held(&mut self) -> bool {
        let patience_us = self.config.timeouts.pause_us;
        if patience_us == 0 || !self.is_holding() {
            return false;
        }
        let mut is_any = false;
        let mut due = Vec::new();
        for (index, session) in self.clients.sessions.iter().filter(|(_, session)| session.pause.has(Pause::HELD)) {
            is_any = true;
            if session.cold.held.is_due(self.now.mono_us, patience_us) {
                due.push(index);
            }
        }
        self.unmark_held(due.len());
        due.into_iter().for_each(|index| self.clients.unpause(index, Pause::HELD));
        is_any
    }
}

#[cfg(test)]
mod tests {
    use super::HeldTime;

    #[test]
    fn what_was_sent_by_then_is_refused_and_what_comes_later_waits() {
        let mut held = HeldTime::default();
        assert!(!held.is_over(100, 90, 50) && !held.is_over(149, 120, 50));
        assert!(!held.is_due(149, 50) && held.is_due(150, 50));
        assert!(held.is_over(150, 120, 50) && held.is_over(151, 120, 50));
        assert!(!held.is_over(160, 160, 50), "it was sent after the refusal");
        assert!(!held.is_over(200, 160, 50) && held.is_over(210, 160, 50));
    }

    #[test]
    fn a_request_that_is_not_held_ends_no_refusal() {
        let mut held = HeldTime::default();
        assert!(!held.is_over(100, 90, 50));
        held.pass();
        assert!(!held.is_over(149, 90, 50) && !held.is_over(198, 90, 50) && held.is_over(199, 90, 50));
        held.pass();
        assert!(held.is_over(199, 90, 50), "it had been sent by then");
        held.pass();
        assert!(!held.is_over(300, 250, 50), "it was sent after the refusal");
    }

    #[test]
    fn without_a_bound_a_request_waits_as_long_as_it_is_held() {
        let mut held = HeldTime::default();
        assert!(!held.is_over(1, 1, 0) && !held.is_over(u64::MAX, 1, 0));
    }
}
