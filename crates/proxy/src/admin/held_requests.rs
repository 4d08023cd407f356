//! Requests that `PROXY PAUSE` holds back: which ones, and for how long (`pause_timeout`).
//!
//! A held request stays unread in its client's input, with everything behind it. After `pause_timeout` it is refused with
//! an error, and so are requests for paused nodes that its client had sent behind it by then: none of them has reached a
//! node. Requests between them for other nodes are executed. Requests that the client sends after the refusal have a
//! timeout of their own.

use crate::env::Env;
use crate::error_text;
use crate::nodes::id::NodeId;
use crate::session::id::ClientId;
use crate::session::{Flow, Pause};
use respool_command::{Command, Execute, Lane, Row, TransactionsCommand};
use respool_wire::Args;

/// Since when requests of a client are held, and when they timed out, in microseconds of the monotonic clock; 0: not at
/// all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HeldTime {
    since_us: u64,
    /// When the timeout was found to be over.
    over_us: u64,
}

impl HeldTime {
    /// Whether a held request has timed out. `sent_us`: when its client sent something last.
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

    /// A request is not held: the timeout of the next one that is starts anew, unless that one had been sent before another
    /// was refused.
    fn pass(&mut self) {
        if self.over_us == 0 {
            *self = Self::default();
        }
    }

    /// Whether the timeout is over.
    fn is_due(self, now_us: u64, patience_us: u64) -> bool {
        self.since_us > 0 && now_us.saturating_sub(self.since_us) >= patience_us
    }
}

/// The result for a request one of whose nodes is paused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    /// It stays unread until the pause ends or its timeout is over.
    Waits,
    /// Its timeout is over: the text of the error.
    Refused(String),
}

impl<E: Execute> Env<E> {
    /// Holds a request back if one of its nodes is paused: it is read again when the pause ends.
    pub(crate) fn hold_for_operator(&mut self, index: ClientId, row: &'static Row, args: Args<'_>) -> Option<Flow> {
        let is_sent = match row.command {
            // Queued commands are sent with EXEC, see `hold_exec`. Without MULTI the others are answered here.
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
                // A WATCH that has to wait for earlier replies is read again later and refused then.
                self.counters.holds_expired.add(u64::from(refused != Flow::Again));
                Some(refused)
            }
            Held::Refused(words) => {
                self.counters.holds_expired.add(1);
                Some(self.refuse_unread(index, format!("ERR {words}; the command was not sent").as_bytes()))
            }
        }
    }
}

impl<E: Execute> Env<E> {
    /// Holds back a request for these nodes if one of them is paused.
    pub(crate) fn hold_for_nodes(&mut self, index: ClientId, nodes: &[NodeId]) -> Option<Held> {
        let is_paused = |node: &&NodeId| self.lanes.nodes.get(**node).is_some_and(|node| node.is_paused);
        let paused = nodes.iter().find(is_paused).map(|node| self.lanes.nodes[*node].name.clone());
        let (now_us, patience_us) = (self.now.mono_us, self.config.timeouts.pause_us);
        let session = self.clients.sessions.at_mut(index)?;
        if !self.is_all_paused && paused.is_none() {
            session.details.held.pass();
            return None;
        }
        let sent_us = session.last_active_us;
        if session.details.held.is_over(now_us, sent_us, patience_us) {
            return Some(Held::Refused(error_text::paused_for_long(paused.as_deref())));
        }
        self.mark_held(index);
        self.is_busy |= patience_us > 0;
        self.counters.pauses.add(1);
        Some(Held::Waits)
    }

    /// Reads on clients whose held requests have timed out: each is refused when it is read again. Returns whether any
    /// client is held.
    pub(crate) fn check_held(&mut self) -> bool {
        let patience_us = self.config.timeouts.pause_us;
        if patience_us == 0 || !self.is_holding() {
            return false;
        }
        let mut is_any = false;
        let mut due = Vec::new();
        for (index, session) in self.clients.sessions.iter().filter(|(_, session)| session.pause.has(Pause::HELD)) {
            is_any = true;
            if session.details.held.is_due(self.now.mono_us, patience_us) {
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
