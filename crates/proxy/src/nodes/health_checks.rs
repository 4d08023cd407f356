//! Whether nodes are there: what a worker's lanes say of it, and what it does to find out.
//!
//! What is evidence for and against a node, and what follows, is decided in [`respool_connection::node_health`]. Here is where it comes from: the
//! ends of lanes, what is heard on them, and PINGs. A node that is out or suspect is tried again as soon as its pause is over,
//! whatever its lanes are: by a dial, or by a PING on a lane that is ready and idle.
//!
//! A lane on which nothing is owed and nothing was heard for a while is sent a PING. On a connection whose peer has vanished
//! the kernel then has something that is not acknowledged, and `net` breaks it off in time (its `peer_liveness`); the node fails like
//! any other. A peer whose kernel acknowledges and which does not answer is busy or stopped: its lane stays, since one slow
//! command is no reason to fail all clients, but the node is *suspect* until it answers, and routes that can go elsewhere do.
//! Warm private lanes are sent PINGs as well, so that none is lent whose peer has gone.
//!
//! A PING never goes behind requests: it would only be as late as they are, and where a node has left a reply out, its
//! answer would be taken for theirs. For the same reason an answer that is none to a PING ends the lane at once.

use crate::config::Config;
use crate::env::Env;
use crate::hooks::Event;
use crate::ids::{LaneId, LaneKeyId, NodeId};
use crate::limits::{BROKEN_SILENT_US, LANE_YOUNG_US};
use crate::nodes::probe::Probe;
use crate::pool::{LaneEnd, LaneUse, Lanes};
use crate::reply::task::Tasks;
use respool_command::Execute;
use respool_connection::node_health::{Failure, FailureEvidence};
use respool_connection::{DialFailure, Fault, Now, Phase};
use respool_wire::encode_request;

/// How a lane has ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End<'a> {
    pub(crate) ending: &'a LaneEnd,
    /// The same in words.
    pub(crate) cause: &'a str,
    /// Since when it has owed replies and said nothing, if it has.
    pub(crate) owed_since_us: Option<u64>,
}

/// Whether a node's refusal is about credentials or permissions.
pub(crate) fn is_about_user(words: &str) -> bool {
    ["NOAUTH", "WRONGPASS", "NOPERM", "ERR invalid password", "ERR AUTH ", "ERR Client sent AUTH"]
        .iter()
        .any(|start| words.starts_with(start))
}

impl<E: Execute> Env<E> {
    /// A lane has ended: what that says of its node.
    pub(crate) fn note_end(&mut self, lane: LaneId, end: End<'_>) {
        let now_us = self.now.mono_us;
        let this = &self.lanes[lane];
        if self.lanes.nodes[this.node].is_removed {
            return;
        }
        let was_ready = this.ready_us > 0;
        // A connection that one client used may end for that client's reasons, or because it was not used for long.
        let is_watched = matches!(this.purpose, LaneUse::Shared | LaneUse::Push);
        let class = self.lanes.state_of(this.class);
        let has_broken_silent =
            end.owed_since_us.is_some_and(|since_us| now_us.saturating_sub(since_us) >= BROKEN_SILENT_US);
        let is_young = was_ready && now_us.saturating_sub(this.ready_us) < LANE_YOUNG_US;
        let (blame, began_us, words) = match end.ending {
            LaneEnd::GivenUp | LaneEnd::NotDialled | LaneEnd::DialRefusal(_) => return,
            LaneEnd::Fault(Fault::Refused(words)) if !was_ready && self.lanes.is_refusal_outdated(lane, words) => {
                return;
            }
            LaneEnd::Fault(Fault::Refused(words) | Fault::NoDatabase(words)) if !was_ready => {
                // Where users have node credentials of their own, a refusal of the proxy's is no evidence against theirs.
                let is_ours = self.has_node_users && is_about_user(words);
                let is_plain = class.database == 0 && class.node_user == 0 && !is_ours;
                (FailureEvidence::of_refusal(words, is_plain), this.dial_began_us, Some(words.as_str()))
            }
            LaneEnd::Dial(DialFailure::NoDescriptor) => (FailureEvidence::Room, this.dial_began_us, None),
            _ if !was_ready => (FailureEvidence::Node, this.dial_began_us, None),
            _ if !is_watched => return,
            LaneEnd::Silent => (FailureEvidence::Silence, now_us.saturating_sub(self.config.timeouts.silence_us), None),
            LaneEnd::Lost(Some(_)) if has_broken_silent => {
                (FailureEvidence::Silence, now_us.saturating_sub(BROKEN_SILENT_US), None)
            }
            // The node let it in a moment ago, so it is there; but it is not dialled again without a pause.
            _ if is_young => (FailureEvidence::Node, this.ready_us, None),
            _ => {
                let node = this.node;
                self.lanes.nodes[node].health.note_lost();
                return;
            }
        };
        let node = this.node;
        let is_trial = !was_ready && self.lanes.is_trial_alone_failed(lane, words);
        let is_vouched_for = (is_young || is_trial) && blame == FailureEvidence::Node;
        let failure = Failure { blame, began_us, why: end.cause, words, is_vouched_for };
        if self.lanes.note_failure(lane, failure, self.config.reconnects, self.now) {
            self.counters.nodes_ejected.add(1);
            let (node, why) = (self.lanes.nodes[node].name.clone(), end.cause.to_owned());
            self.shared.hooks.tell(&Event::NodeOut { node, worker: self.number, why });
        } else if !was_ready && !self.lanes.nodes[node].health.is_down() {
            self.note_entry_refused(node, end.ending);
        }
    }

    /// A shared lane is gone against our will: it is dialled again at once, so that its node is known to be there,
    /// or not to be, before a request needs it. After a failure that is left to `mind_nodes`.
    pub(crate) fn dial_again(&mut self, lane: LaneId) {
        let this = &self.lanes[lane];
        let is_of_use = !this.is_retired && !this.is_stale && matches!(this.purpose, LaneUse::Shared | LaneUse::Push);
        if is_of_use && self.drain_until_us.is_none() {
            // Refused if the node is drained, has gone, or is out and was dialled in vain a moment ago.
            let _ = self.lanes.prepare(lane, &self.config, self.now);
        }
    }

    pub(crate) fn tell_back(&mut self, node: NodeId) {
        self.counters.nodes_returned.add(1);
        let node = self.lanes.nodes[node].name.clone();
        self.shared.hooks.tell(&Event::NodeBack { node, worker: self.number });
    }

    /// A node is back: its shared lanes are there before a request needs them.
    pub(crate) fn dial_idle_lanes(&mut self, node: NodeId) {
        for lane in self.lanes.all.ids() {
            if self.lanes[lane].node == node {
                self.dial_again(lane);
            }
        }
    }

    /// Looks after nodes that are out or suspect: what was heard of them heals them, and they are tried again when it is time.
    /// Returns whether there is any.
    pub(crate) fn mind_nodes(&mut self) -> bool {
        if !self.lanes.nodes.iter().any(|node| node.health.is_in_doubt()) {
            return false;
        }
        let heard_us = self.lanes.heard_us();
        let mut is_any = false;
        for (node, heard_us) in heard_us.into_entries() {
            if self.lanes.nodes[node].health.note_heard(heard_us) {
                self.tell_back(node);
                self.dial_idle_lanes(node);
            }
            let this = &self.lanes.nodes[node];
            if this.health.is_in_doubt() && !this.is_drained && !this.is_removed && self.drain_until_us.is_none() {
                is_any = true;
                self.try_again(node);
            }
        }
        is_any
    }

    /// Tries a node that is out or suspect, unless that is under way or too early.
    fn try_again(&mut self, node: NodeId) {
        if self.lanes.dialling.is_tried(node) || self.now.mono_us < self.lanes.nodes[node].health.retry_us() {
            return;
        }
        let shared = |lane: &LaneId| {
            let this = &self.lanes[*lane];
            this.node == node && !this.is_retired && matches!(this.purpose, LaneUse::Shared | LaneUse::Push)
        };
        let all: Vec<LaneId> = self.lanes.all.ids().filter(shared).collect();
        let is_ready = |lane: &&LaneId| {
            let this = &self.lanes[**lane];
            this.purpose == LaneUse::Shared && this.up.is_ready() && self.lanes.is_at_its_node(**lane)
        };
        if let Some(lane) = all.iter().find(is_ready).copied() {
            // One that owes something answers, or is given up in time.
            if self.lanes[lane].is_settled() {
                self.probe(lane);
            }
            return;
        }
        let idle = all.into_iter().filter(|lane| matches!(self.lanes[*lane].up.phase(), Phase::Idle));
        let mut idle = idle.filter(|lane| {
            let class = self.lanes.state_of(self.lanes[*lane].class);
            self.lanes.nodes[node].health.refuses(class, self.now.mono_us).is_none()
        });
        let lane = idle.next().unwrap_or_else(|| self.lanes.lane(&self.config, node, LaneKeyId::PLAIN));
        // Cannot be refused: the pause is over and nothing is queued.
        let _ = self.lanes.prepare(lane, &self.config, self.now);
    }

    /// Sends the PINGs that are due, and looks at those that are out. Returns whether any is.
    pub(crate) fn check_health(&mut self) -> bool {
        let (idle_us, patience_us) = (self.config.timeouts.probe_idle_us, self.config.timeouts.probe_patience_us);
        let now_us = self.now.mono_us;
        let late_us = self.lag.due_us(now_us, patience_us);
        let mut is_any_out = false;
        for lane in self.lanes.all.ids() {
            let this = &self.lanes[lane];
            if this.is_retired || !matches!(this.up.phase(), Phase::Ready) || !self.lanes.is_probed(lane) {
                continue;
            }
            if this.probed_us > 0 {
                is_any_out = true;
                let is_late = !this.is_left && late_us.is_some_and(|late_us| this.probed_us <= late_us);
                if is_late && this.up.last_heard_us() < this.probed_us && this.purpose == LaneUse::Shared {
                    let node = this.node;
                    self.lanes.nodes[node].health.note_unanswered(now_us);
                }
                continue;
            }
            let is_idle = this.up.tickets().outstanding() == 0 && this.up.queued_bytes() == 0;
            let has_been_silent = now_us.saturating_sub(this.up.last_heard_us()) >= idle_us;
            let is_due = idle_us > 0 && has_been_silent || self.lanes.nodes[this.node].health.is_to_be_asked();
            if is_due && is_idle && self.drain_until_us.is_none() {
                self.probe(lane);
                is_any_out = true;
            }
        }
        self.lanes.nodes.iter_mut().for_each(|node| node.health.note_asked());
        let suspects = self.lanes.nodes.iter().filter(|node| node.health.is_suspect()).count();
        self.counters.nodes_suspect.set(suspects as u64);
        is_any_out
    }

    fn probe(&mut self, lane: LaneId) {
        let sent_us = self.now.mono_us;
        let task = self.tasks.begin(Probe { lane, sent_us, is_answered: false, is_late: false });
        let Self { lanes, clients, config, now, .. } = self;
        let ping = |out: &mut Vec<u8>| encode_request(out, [b"PING".as_slice()].into_iter());
        // A lane that is ready and has nothing to do takes it.
        if lanes.send(lane, Tasks::owner(task, 0), config, *now, &mut clients.pool, ping).is_ok() {
            self.lanes[lane].probed_us = sent_us;
            self.counters.probes.add(1);
        } else {
            self.tasks.forget(task);
        }
    }

    /// The answer has come, or none will.
    pub(crate) fn conclude_probe(&mut self, probe: Probe) {
        let Some(lane) = self.lanes.all.get_mut(probe.lane).filter(|lane| lane.probed_us == probe.sent_us) else {
            return;
        };
        lane.probed_us = 0;
        let (node, heard_us) = (lane.node, lane.up.last_heard_us());
        if probe.is_answered
            && self.lanes.is_at_its_node(probe.lane)
            && self.lanes.nodes[node].health.note_heard(heard_us)
        {
            self.tell_back(node);
            self.dial_idle_lanes(node);
        }
    }
}

impl Lanes {
    /// When a node that is out is tried again, or a lane that waits is dialled, if no pause is longer.
    pub(crate) fn next_try_us(&self, now: Now) -> Option<u64> {
        let is_tried = |(node, known): &(NodeId, &crate::pool::Node)| {
            known.health.is_on_trial() && (known.health.is_down() || self.dialling.is_tried(*node))
        };
        let nodes = self.nodes.entries().filter(is_tried);
        nodes.map(|(_, node)| node.health.retry_us()).filter(|at_us| *at_us > now.mono_us).min()
    }

    /// A lane is ready. A node that was down until now, or shortly before, is sent little at first.
    pub(crate) fn begin_slowly(&mut self, config: &Config, now: Now, lane: LaneId, is_back: bool) {
        let now_us = now.mono_us;
        let this = &mut self.all[lane];
        let node = &mut self.nodes[this.node];
        if is_back {
            node.health.spared_until_us = now_us + config.timeouts.slow_start_us;
        }
        let spared_until_us = node.health.spared_until_us;
        if spared_until_us > now_us && this.purpose == LaneUse::Shared {
            this.up.begin_slowly(now_us, spared_until_us - now_us);
        }
    }

    /// When the timers have to be looked at for the next PING, at the latest.
    pub(crate) fn next_probe_us(&self, config: &Config) -> Option<u64> {
        let idle_us = config.timeouts.probe_idle_us;
        let ready = self.all.iter().filter(|lane| {
            !lane.is_retired && lane.purpose == LaneUse::Shared && matches!(lane.up.phase(), Phase::Ready)
        });
        ready.map(|lane| lane.up.last_heard_us() + idle_us).min().filter(|_| idle_us > 0)
    }
}
