//! Requests that `PROXY PAUSE` holds back: which ones, and for how long (`pause_timeout`).
//!
//! A held request stays unread in its client's input, with everything behind it. After `pause_timeout` it is refused with
//! an error, and so are requests for paused nodes that its client had sent behind it by then: none of them has reached a
//! node. Requests between them for other nodes are executed. Requests that the client sends after the refusal have a
//! timeout of their own.

use crate::env::Env;
use crate::error_text;
use crate::ids::{ClientId, NodeId};
use crate::interfaces::held_back::WaitsAtNodes;
use crate::request::forward::is_own_info;
use crate::session::held_time::HeldTime;
use crate::session::{Flow, PauseReasons, SessionFlags};
use respool_command::{Command, Execute, Lane, Row, TransactionsCommand};
use respool_wire::Args;

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
            _ => self.asks_nodes(row, args),
        };
        if !is_sent {
            return None;
        }
        let nodes = if self.is_all_paused { Vec::new() } else { self.nodes_of(index, row, args) };
        match self.hold_for_nodes(index, &nodes)? {
            Held::Waits => Some(Flow::Again),
            Held::Refused(words) if row.command == Command::Transactions(TransactionsCommand::Watch) => {
                let refused = self.refuse_watch(index, &error_text::paused(&words));
                // A WATCH that has to wait for earlier replies is read again later and refused then.
                self.counters.holds_expired.add(u64::from(refused != Flow::Again));
                Some(refused)
            }
            Held::Refused(words) => {
                self.counters.holds_expired.add(1);
                Some(self.refuse_unread(index, error_text::paused(&words)))
            }
        }
    }

    /// Whether nodes are asked for a request that is no part of a transaction. INFO goes to those that are not paused.
    pub(crate) fn asks_nodes(&self, row: &Row, args: Args<'_>) -> bool {
        row.lane(args) != Lane::Local && !is_own_info(row, &self.shared)
    }

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
        self.clients.mark_held(index);
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
        for (index, session) in self.clients.sessions.iter().filter(|(_, s)| s.pause.has(PauseReasons::HELD)) {
            is_any = true;
            if session.details.held.is_due(self.now.mono_us, patience_us) {
                due.push(index);
            }
        }
        self.clients.unmark_held(due.len());
        due.into_iter().for_each(|index| self.clients.unpause(index, PauseReasons::HELD));
        is_any
    }

    /// Has sessions know whether requests are held back, and those go on that waited.
    pub(crate) fn settle_holding(&mut self, waits: &mut impl WaitsAtNodes) {
        // A node may be drained since.
        self.review_streamed(false);
        let is_holding = self.is_holding();
        let is_any = is_holding || self.client_pause.is_some();
        self.clients.for_each_session(|flags| {
            if is_any { flags.add(SessionFlags::HELD) } else { flags.remove(SessionFlags::HELD) }
        });
        if !is_holding {
            self.clients.sessions.iter_mut().for_each(|(_, session)| session.details.held = HeldTime::default());
        }
        let indexes = self.clients.sessions.places(|session| session.pause.has(PauseReasons::HELD));
        self.clients.unmark_held(indexes.len());
        // A client that has to wait on finds out when its request is read again.
        indexes.into_iter().for_each(|index| self.clients.unpause(index, PauseReasons::HELD));
        waits.go_on_waiting(self);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{NotedWaits, env_of, env_with_node, roomy_config};

    #[test]
    fn a_request_for_a_paused_node_waits_until_its_timeout() {
        let mut config = roomy_config();
        config.timeouts.pause_us = 100;
        let mut env = env_of(config, None);
        let client = env.test_client();
        let node = [NodeId::nth(0)];
        assert_eq!(env.hold_for_nodes(client, &node), None);
        env.lanes.nodes[node[0]].is_paused = true;
        env.settle_holding(&mut NotedWaits::default());
        assert_eq!(env.hold_for_nodes(client, &node), Some(Held::Waits));
        assert_eq!(env.hold_for_nodes(client, &[]), None, "it is for no node that is paused");
        assert_eq!(env.hold_for_nodes(client, &node), Some(Held::Waits));
        env.now.mono_us += 101;
        assert!(env.check_held(), "a client is held");
        assert!(
            matches!(env.hold_for_nodes(client, &node), Some(Held::Refused(words)) if words.contains("'n'") || words.contains(" n"))
        );
    }

    #[test]
    fn those_that_waited_go_on_when_the_pause_ends() {
        let mut env = env_with_node();
        let client = env.test_client();
        env.is_all_paused = true;
        let mut waits = NotedWaits::default();
        env.settle_holding(&mut waits);
        assert!(env.test_session(client).flags.has(SessionFlags::HELD));
        assert_eq!(env.hold_for_nodes(client, &[]), Some(Held::Waits));
        env.is_all_paused = false;
        env.settle_holding(&mut waits);
        assert!(!env.test_session(client).flags.has(SessionFlags::HELD) && waits.went_on == 2);
        assert_eq!(env.clients.resuming.len(), 1);
    }
}
