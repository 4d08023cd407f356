//! Requests that may wait whose time is over before their node has been asked: it was being dialled, or all connections were taken.
//!
//! ```text
//!   [queued] -- time over, node asked before ----------------------------------> nothing
//!       '------ time over, not asked --> [late] -- asked, there is nothing -----> nothing
//!                                           | '--- asked, there is something ---> that
//!                                           '----- cannot be asked -------------> an error: it was not sent
//! ```
//!
//! A server looks before it says that there is nothing, however late it comes to it. So it is here: "nothing" says that the node
//! had nothing at some time after the request came. What cannot be asked any more, or not within `request_timeout`, ends with an
//! error, from which its client learns that its queue may be full. WAIT answers with what is known, and `XREAD $` misses
//! nothing that was there before it was read: both may end unasked.

use crate::blocking::queue::Blocking;
use crate::blocking::request::{BlockedRequest, State, begins_at_arrival, is_wait};
use crate::env::Env;
use crate::error_text;
use crate::ids::{Handle, LaneHandle, LaneId, LaneKeyId, NodeId};
use crate::interfaces::release::Release;
use crate::nodes::multi::Multi;
use respool_command::Execute;
use respool_connection::Now;

/// What is left of its time to a request that is sent when it has none, in microseconds: the least that nodes know.
const LATE_US: u64 = 1_000;

impl BlockedRequest {
    /// Whether its time is over.
    pub(crate) fn is_overdue(&self, now_us: u64) -> bool {
        self.deadline_us.is_some_and(|at| at <= now_us)
    }

    /// Whether it may be answered that nothing came without asking its node once more.
    pub(crate) fn may_end_unasked(&self) -> bool {
        self.is_looked || is_wait(self.row) || begins_at_arrival(self.row, self.args.as_args())
    }

    /// It is sent now. Where its time is over its node has some from now on.
    pub(crate) fn begin_late(&mut self, now: Now) {
        if self.is_overdue(now.mono_us) {
            self.deadline_us = Some(now.mono_us + LATE_US);
            self.client_deadline_us = Some(now.client_us + LATE_US);
        }
    }
}

impl Blocking {
    /// A node had nothing for a request that queues: why it waits no longer, if it does not.
    pub(crate) fn release_of_looked(&mut self, env: &mut Env<impl Execute>, blocked: Handle) -> Option<Release> {
        let now_us = env.now.mono_us;
        let this = self.requests.get_mut(blocked)?;
        this.is_looked = true;
        this.release.or_else(|| this.is_overdue(now_us).then_some(Release::Timeout))
    }

    /// The time of a request that queues is over, and its node has not been asked: it is asked as soon as that can be done.
    #[cold]
    pub(crate) fn ask_late(&mut self, env: &mut Env<impl Execute>, blocked: Handle) {
        let (now_us, patience_us) = (env.now.mono_us, env.config.timeouts.response_us);
        let Some(this) = self.requests.get(blocked) else { return };
        let (node, class, row) = (this.node, this.class.id(), this.row);
        // A stall of the event loop is no time in which it could have been asked.
        let over_us = env.lag.attended_us(this.deadline_us.unwrap_or(now_us));
        let until_us = over_us.saturating_add(patience_us);
        if env.is_held_at(node, row) {
            // It is asked once the pause is over, like any other.
            return self.put_off(blocked, now_us + patience_us);
        }
        if now_us < until_us {
            self.try_behind_others(env, blocked);
        }
        let is_tried = self.requests.get(blocked).is_none_or(|this| this.state != State::Queued);
        if is_tried || now_us < until_us && self.may_be_asked_yet(env, node, class) {
            self.begin_trying(now_us);
            return self.put_off(blocked, until_us);
        }
        let name = &env.lanes.nodes[node].name;
        let error =
            if now_us < until_us { error_text::no_blocking_connection(name) } else { error_text::not_asked(name) };
        self.leave_queue(node, blocked);
        self.fail_blocked(env, blocked, error);
    }

    /// Whether a connection on which a queued request can be asked is about to be there.
    fn may_be_asked_yet(&mut self, env: &mut Env<impl Execute>, node: NodeId, class: LaneKeyId) -> bool {
        if self.has_one_coming(node) {
            return true;
        }
        let lanes = &env.lanes;
        let is_of_use = |lane: LaneId| !matches!(lanes[lane].multi, Multi::Refused(_));
        let mut looks = self.at(node).looks.iter().filter(|look| look.class == class);
        looks.any(|look| lanes.find(look.lane).is_some_and(is_of_use))
    }
}

impl<E: Execute> Env<E> {
    /// Whether the reply to what waits on a connection has begun to come, and some of it has come since then: what has been taken at the
    /// node is lost with the connection. Where nodes are left unread it may have begun.
    pub(crate) fn is_answering(&self, lane: LaneHandle, due_us: Option<u64>) -> bool {
        let Some(this) = self.lanes.find(lane).map(|place| &self.lanes[place]) else { return false };
        let is_heard = due_us.is_none_or(|due_us| this.up.last_heard_us() > due_us);
        this.is_left || this.up.arrived_bytes() > 0 && is_heard
    }

    /// Whether a request's time was over by then, and its node has it and has not answered. Its time there began when it was
    /// really sent.
    pub(crate) fn is_given_up(&self, blocked: &BlockedRequest, due_us: Option<u64>) -> bool {
        let (Some(deadline_us), Some(due_us)) = (blocked.deadline_us, due_us) else { return false };
        if blocked.client_deadline_us.is_some_and(|at| at > self.now.client_us) {
            // An embedded node goes by a clock that is moved, and has no reason to answer yet.
            return false;
        }
        let State::Sent(lane) = blocked.state else { return deadline_us <= due_us };
        if self.is_answering(lane, Some(due_us)) {
            return false;
        }
        let sent_us = self.lanes.find(lane).and_then(|lane| self.lanes[lane].up.tickets().oldest_us());
        let stalled_us = sent_us.map_or(0, |sent_us| self.lag.attended_us(sent_us) - sent_us);
        deadline_us.saturating_add(stalled_us) <= due_us
    }
}
