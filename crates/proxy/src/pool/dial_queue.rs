//! Which lane is dialled next.
//!
//! ```text
//!              a request wants it          its turn                    the node's PONG
//!   [idle] ----------------------> [waits] ---------> [dialled] ------------------------> [ready]
//!      ^                              |                   |  connect_timeout counts here
//!      |  node out or full; its       |                   |
//!      '--requests' time is over -----'----- failed ------'
//! ```
//!
//! Lanes wait per node, first in first out. A node that is well is dialled by as many at a time as its listen queue takes, at
//! whatever rate it answers. One that could not be connected to last time is tried by one lane at a time, after a pause and with
//! the process's leave, and so is a class that it refused. Waiting for a turn is no evidence against a node, whatever comes of
//! it.

use crate::config::{Config, Reconnects};
use crate::env::Env;
use crate::error_reply::ErrorReply;
use crate::error_text;
use crate::ids::{LaneId, NodeId, PerNode};
use crate::limits::{CLASSES_MAX, DIALS_AT_ONCE_MAX};
use crate::pool::dial_turns::DialDecision;
use crate::pool::key_id::LaneKey;
use crate::pool::{DialRefusal, Lane, LaneEnd, LaneUse, Lanes, Node};
use crate::workers::budget::ProcessBudget;
use respool_command::Execute;
use respool_connection::node_health::{Failure, Terms};
use respool_connection::{Action, Now, Phase};

impl Lanes {
    /// Sees to it that a lane that is not ready becomes so. `Err`: there is no hope for now.
    #[cold]
    pub(crate) fn prepare(&mut self, lane: LaneId, config: &Config, now: Now) -> Result<(), ErrorReply> {
        let this = &self.all[lane];
        let node = &self.nodes[this.node];
        if this.up.queued_bytes() > config.budgets.upstream_queue {
            return Err(error_text::queue_full(&node.name));
        }
        if !matches!(this.up.phase(), Phase::Idle) || this.wants_dial {
            return Ok(());
        }
        if node.is_removed {
            return Err(error_text::gone(&node.name));
        }
        if node.is_drained {
            return Err(error_text::drained(&node.name));
        }
        if let Some(refusal) = node.health.refuses(self.state_of(this.class), now.mono_us) {
            return Err(error_text::not_sent(&node.name, &refusal.why));
        }
        if matches!(this.purpose, LaneUse::Own | LaneUse::Listen) {
            self.admit_own(lane, config)?;
        }
        self.want_dial(lane, now);
        Ok(())
    }

    /// An idle lane waits for its turn to be dialled, whatever becomes of its node.
    pub(crate) fn want_dial(&mut self, lane: LaneId, now: Now) {
        let handle = self.handle(lane);
        let this = &mut self.all[lane];
        this.wants_dial = true;
        this.waits_since_us = now.mono_us;
        self.dialling.enter(this.node, handle);
    }

    /// The next lane whose dial may begin now, or that has no hope.
    pub(crate) fn next_turn(&mut self, config: &Config, ledger: &ProcessBudget, now: Now) -> Option<DialDecision> {
        let turn = self.dialling.queues.ids().find_map(|node| self.next_turn_of(node, config, ledger, now));
        self.dialling.has_news = turn.is_some();
        turn
    }

    fn next_turn_of(
        &mut self,
        node: NodeId,
        config: &Config,
        ledger: &ProcessBudget,
        now: Now,
    ) -> Option<DialDecision> {
        let mut at = 0;
        // Thousands may wait for one class: it is looked at once.
        let mut not_now: Vec<LaneKey> = Vec::new();
        while let Some(handle) = self.dialling.queues[node].waiting.get(at).copied() {
            let lane = self.find(handle).filter(|lane| self.all[*lane].wants_dial && self.all[*lane].node == node);
            let Some(lane) = lane else {
                self.take_out(node, at);
                continue;
            };
            let class = self.state_of(self.all[lane].class);
            let this = &self.nodes[node];
            if let Some(refusal) = this.health.refuses(class, now.mono_us) {
                let (why, words) = (refusal.why.to_owned(), refusal.words.map(str::to_owned));
                self.take_out(node, at);
                return Some(DialDecision::Refused(lane, DialRefusal { why, words }));
            }
            if !self.has_place_for(node, now) {
                return None;
            }
            if not_now.contains(&class) {
                at += 1;
                continue;
            }
            if self.is_class_tried(node, class) {
                not_now.push(class);
                at += 1;
                continue;
            }
            if this.health.is_on_trial()
                && let Err(again_us) =
                    ledger.governor.may_redial(&this.name, now.mono_us, config.reconnects.redials_per_second)
            {
                self.dialling.at(node).look_us = again_us;
                return None;
            }
            self.take_out(node, at);
            self.dialling.at(node).in_flight += 1;
            self.take_credentials(lane);
            let endpoint = std::sync::Arc::clone(&self.nodes[node].told.endpoint);
            let this = &mut self.all[lane];
            this.wants_dial = false;
            this.is_dialled = true;
            this.dial_began_us = now.mono_us;
            (this.at, this.is_elsewhere) = (None, false);
            this.endpoint = Some(endpoint);
            this.up.begin_dial();
            return Some(DialDecision::Dial(lane));
        }
        None
    }

    fn take_out(&mut self, node: NodeId, at: usize) {
        if self.dialling.queues[node].waiting.remove(at).is_some() {
            self.dialling.waiting -= 1;
        }
    }

    /// Whether one more dial of a node may be under way.
    fn has_place_for(&self, node: NodeId, now: Now) -> bool {
        let (queue, health) = (&self.dialling.queues[node], &self.nodes[node].health);
        let most = if health.is_tried_singly() { 1 } else { DIALS_AT_ONCE_MAX };
        queue.in_flight < most && now.mono_us >= queue.look_us.max(health.retry_us())
    }

    /// Whether a class that a node has refused is being tried again.
    fn is_class_tried(&self, node: NodeId, class: LaneKey) -> bool {
        let is_its = |lane: &Lane| lane.is_dialled && lane.node == node && self.state_of(lane.class) == class;
        self.nodes[node].health.is_key_on_trial(class) && self.all.iter().any(is_its)
    }

    /// A lane has ended or is ready: it is not dialled any more and does not wait for that.
    pub(crate) fn end_dial(&mut self, lane: LaneId) {
        let handle = self.handle(lane);
        let this = &mut self.all[lane];
        let node = this.node;
        if std::mem::take(&mut this.wants_dial) {
            self.dialling.leave(node, handle);
        }
        if std::mem::take(&mut self.all[lane].is_dialled) {
            let queue = self.dialling.at(node);
            queue.in_flight = queue.in_flight.saturating_sub(1);
            self.dialling.has_news = self.dialling.waiting > 0;
        }
    }

    /// Something has failed with a lane that has been reset. Returns whether its node is out from now on.
    pub(crate) fn note_failure(
        &mut self,
        lane: LaneId,
        failure: Failure<'_>,
        reconnects: Reconnects,
        now: Now,
    ) -> bool {
        let this = &self.all[lane];
        // Where its node was before, another server is.
        if !self.is_at_its_node(lane) {
            return false;
        }
        let (node, class) = (this.node, self.state_of(this.class));
        let is_vouched_for = failure.is_vouched_for || self.is_vouched_for(lane, failure.began_us);
        let Reconnects { backoff_min_us, backoff_max_us, .. } = reconnects;
        let (now_us, chance) = (now.mono_us, self.next_chance());
        let terms = Terms { now_us, backoff_min_us, backoff_max_us, keys_max: CLASSES_MAX, chance };
        self.nodes[node].health.note_failure(Failure { is_vouched_for, ..failure }, class, terms)
    }

    /// Whether a lane leads to where its node is configured to be now.
    pub(crate) fn is_at_its_node(&self, lane: LaneId) -> bool {
        let this = &self.all[lane];
        this.endpoint.as_ref() == Some(&self.nodes[this.node].told.endpoint)
    }

    /// Whether other lanes say that a lane's node is there: a shared one is watched for silence, so that it is ready says
    /// enough; on any other, something must have been heard since.
    fn is_vouched_for(&self, lane: LaneId, since_us: u64) -> bool {
        let node = self.all[lane].node;
        let is_failure_of_dial = self.all[lane].ready_us == 0;
        let vouches = |other: LaneId| {
            let this = &self.all[other];
            let is_watched = matches!(this.purpose, LaneUse::Shared | LaneUse::Push);
            other != lane
                && this.node == node
                && !this.is_retired
                && this.up.is_ready()
                && self.is_at_its_node(other)
                && (is_watched && is_failure_of_dial || this.up.last_heard_us() > since_us)
        };
        self.all.ids().any(vouches)
    }

    /// Whether a node has no room for connections and this worker has none that all share. It is not out: what must be asked
    /// there is refused. But what another may as well be asked is not.
    pub(crate) fn is_shut(&self, node: NodeId) -> bool {
        let is_ready = |lane: &LaneId| {
            let this = &self.all[*lane];
            this.node == node && this.up.is_ready()
        };
        self.nodes[node].health.is_full() && !self.shared.iter().any(is_ready)
    }

    /// When something was heard of each node last, on any of its lanes.
    pub(crate) fn heard_us(&self) -> PerNode<u64> {
        let mut heard = PerNode::new(self.nodes.iter().map(|_| 0));
        for (place, lane) in self.all.entries() {
            if !lane.is_retired && lane.up.is_ready() && self.is_at_its_node(place) {
                let heard = &mut heard[lane.node];
                *heard = lane.up.last_heard_us().max(*heard);
            }
        }
        heard
    }
}

impl<E: Execute> Env<E> {
    /// Dials what has its turn.
    pub(crate) fn take_dialling_turns(&mut self) {
        while let Some(turn) = self.lanes.next_turn(&self.config, &self.shared.ledger, self.now) {
            match turn {
                DialDecision::Dial(lane) => {
                    self.counters.dials.add(1);
                    if let Some(endpoint) = self.lanes[lane].endpoint.clone() {
                        self.actions.push_back(Action::Dial { conn: lane.conn(), endpoint });
                    }
                }
                DialDecision::Refused(lane, hopeless) => self.end_lane(lane, LaneEnd::DialRefusal(hopeless)),
            }
        }
    }
}

impl Node {
    /// Whether a node takes no new connection for now, and a request that needs one is refused instead of waiting.
    pub(crate) fn takes_no_dial(&self, class: LaneKey, now: Now) -> bool {
        self.is_removed || self.is_drained || self.health.refuses(class, now.mono_us).is_some()
    }
}
