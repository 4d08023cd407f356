//! Orders whose reply waits: until no request is outstanding (`PROXY PAUSE WAIT`, `PROXY SUSPEND`), or until connections
//! marked for closing are closed (`PROXY WAIT_CLOSE`).
//!
//! ```text
//!   order --> every worker carries it out and publishes what is left of it --> all have answered
//!                                                                                 |
//!         each run of the timers: every worker publishes anew, the asker's worker adds up
//!                                                                                 |
//!                        nothing left: +OK      timeout: names what is left    asker left: dropped
//! ```
//!
//! While no operator waits, workers publish nothing.

use crate::admin::AdminState;
use crate::admin::query::{AdminAnswer, AdminQuery, Order};
use crate::env::Env;
use crate::error_text;
use crate::ids::Asker;
use crate::limits::SETTLING_MAX;
use crate::pool::{Lane, LaneUse};
use crate::session::PauseReasons;
use crate::workers::quiescence::{Until, WorkerOutstanding};
use respool_command::Execute;
use std::sync::atomic::Ordering;

/// One waiting reply.
#[derive(Debug)]
pub(super) struct Wait {
    asker: Asker,
    until: Until,
    nodes: Vec<String>,
    /// The deadline: the reply is then an error that names what is left.
    over_us: u64,
}

impl AdminState {
    /// Replies, or begins to wait for what an order's reply waits for. `missing`: so many workers have not answered.
    pub(crate) fn reply_to_admin_query(
        &mut self,
        env: &mut Env<impl Execute>,
        asker: Asker,
        query: &AdminQuery,
        answer: AdminAnswer,
        missing: usize,
    ) {
        match query {
            // The worker carries it out before it reads a client again, and not before.
            AdminQuery::Order(_) if missing > 0 => {
                env.clients.fail(asker.session, asker.seq, &error_text::WORKER_BUSY.into());
            }
            // Its sums would leave out what that worker has.
            AdminQuery::Show(show, _) if missing > 0 && show.is_joined() => {
                env.clients.fail(asker.session, asker.seq, &error_text::WORKER_SILENT.into());
            }
            AdminQuery::Order(order @ Order { until: Some(until), .. }) => {
                self.begin_settling(env, asker, order, *until);
            }
            _ => env.clients.reply(asker, |reply| query.reply(answer, reply)),
        }
    }

    /// All workers have carried an order out: its reply waits for the condition.
    pub(super) fn begin_settling(&mut self, env: &mut Env<impl Execute>, asker: Asker, order: &Order, until: Until) {
        if self.waits.len() >= SETTLING_MAX {
            return env.clients.fail(asker.session, asker.seq, &error_text::TOO_MANY_WAIT.into());
        }
        // Connections that are replaced answer what they owe first, and other limits bound that.
        let over_us = match until {
            Until::Closed => u64::MAX,
            Until::Answered | Until::Flushed => env.now.mono_us.saturating_add(env.config.timeouts.drain_us),
        };
        env.shared.settling.waits.fetch_add(1, Ordering::SeqCst);
        self.waits.push(Wait { asker, until, nodes: order.nodes().to_vec(), over_us });
        self.end_settled(env);
    }

    /// Publishes what this worker has left.
    pub(super) fn note_unsettled(&self, env: &Env<impl Execute>) {
        let mut unsettled = WorkerOutstanding::default();
        for lane in env.lanes.all.iter().filter(|lane| !lane.is_retired) {
            let Some(node) = env.lanes.nodes.get(lane.node) else { continue };
            let is_to_close = lane.is_stale || node.is_removed || lane.purpose == LaneUse::Leaving;
            let left = unsettled.nodes.entry(node.name.clone()).or_default();
            left.requests += owed(lane);
            left.closing += usize::from(is_to_close || lane.purpose == LaneUse::Successor);
        }
        let is_left = |session: &&crate::session::Session| {
            let listens = session.subscriber.as_ref().is_some_and(|subscriber| subscriber.is_subscribed());
            let is_suspended = session.pause.has(PauseReasons::SUSPENDED) || self.suspends(session);
            // Half of a large request is none, and nothing is outstanding before it.
            let is_amid_request = session.large.as_ref().is_some_and(|large| large.sending.is_some());
            is_suspended && !listens && !is_amid_request && !session.is_waiting() && !session.is_owed_nothing()
        };
        unsettled.clients = env.clients.sessions.iter().filter(|(_, session)| is_left(session)).count();
        env.shared.settling.publish(env.number, unsettled);
    }

    /// Publishes what is left and ends the waits that have settled. Returns whether any reply waits, in any worker.
    pub(crate) fn mind_settling(&mut self, env: &mut Env<impl Execute>) -> bool {
        self.suspend_clients(env);
        if env.shared.settling.waits.load(Ordering::SeqCst) == 0 {
            return false;
        }
        self.note_unsettled(env);
        self.end_settled(env);
        true
    }

    fn end_settled(&mut self, env: &mut Env<impl Execute>) {
        let mut waits = std::mem::take(&mut self.waits);
        waits.retain(|wait| !env.has_settled(wait));
        self.waits = waits;
    }

    /// The worker is about to end: waiting replies become errors.
    pub(crate) fn end_waits(&mut self, env: &mut Env<impl Execute>) {
        if !self.waits.is_empty() {
            self.end_settled(env);
        }
    }
}

impl<E: Execute> Env<E> {
    fn has_settled(&mut self, wait: &Wait) -> bool {
        let Asker { session, seq, .. } = wait.asker;
        let leaves = self.clients.sessions.get(session).is_none_or(|session| session.details.has_hung_up);
        let left = self.shared.settling.left(wait.until, &wait.nodes);
        let is_ending = self.drain_until_us.is_some();
        if leaves || is_ending {
            // The wait ends with an error. A half-closed client is closed once it is owed nothing.
            let error = if is_ending { error_text::DRAINING } else { error_text::WAITS_NO_MORE };
            self.clients.fail(session, seq, &error.into());
        } else if left.is_empty() {
            self.clients.feed(session, seq, respool_wire::replies::OK, true);
        } else if self.now.mono_us >= wait.over_us {
            self.clients.fail(session, seq, &error_text::not_settled(&left));
        } else {
            return false;
        }
        self.shared.settling.waits.fetch_sub(1, Ordering::SeqCst);
        true
    }
}

/// Requests on a lane without a reply. A health PING does not count, nor do blocking requests and subscriptions, nor what is no request
/// before its last byte.
fn owed(lane: &Lane) -> usize {
    let waits = matches!(lane.purpose, LaneUse::Push | LaneUse::Listen | LaneUse::Dedicated | LaneUse::Blocking);
    if waits || lane.is_waiting || lane.sending.is_some() {
        0
    } else {
        lane.unanswered().saturating_sub(usize::from(lane.probed_us > 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::query::NodeAction;
    use crate::testing::env_with_node;

    fn order(until: Until) -> AdminQuery {
        AdminQuery::Order(Order { what: NodeAction::WaitClose, nodes: Vec::new(), until: Some(until) })
    }

    #[test]
    fn an_order_with_nothing_outstanding_is_answered_at_once() {
        let mut env = env_with_node();
        let client = env.test_client();
        let asker = env.test_asker(client);
        let mut admin = AdminState::default();
        admin.note_unsettled(&env);
        admin.reply_to_admin_query(&mut env, asker, &order(Until::Closed), AdminAnswer::default(), 0);
        assert_eq!((env.take_output(client).as_str(), admin.waits()), ("+OK\r\n", 0));
        assert_eq!(env.shared.settling.waits.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn an_order_that_a_worker_has_not_carried_out_fails() {
        let mut env = env_with_node();
        let client = env.test_client();
        let asker = env.test_asker(client);
        let mut admin = AdminState::default();
        admin.reply_to_admin_query(&mut env, asker, &order(Until::Closed), AdminAnswer::default(), 1);
        assert!(env.take_output(client).starts_with('-'));
        assert_eq!(admin.waits(), 0);
    }
}
