//! A node whose host name resolves to another address: as soon as a connection to the new address is ready, the former address
//! is left as a reload leaves it.
//!
//! ```text
//!   [settled] -- answers without the address of connections --> [on trial]: all stay in use, successors are dialled
//!       ^                                                          |   |   |
//!       |   a connection to another address is ready:              |   |   '-- none can be made: retried with backoff
//!       +-- connections to the former address move as in a reload -'   |
//!       '-- a connection to the former address is ready: no change ----'
//! ```
//!
//! A name server may be wrong, and the new server not be up yet, so no connection is closed before one is ready. Then the
//! former address is most likely a demoted primary: no request that is read afterwards may be sent there. The node is another
//! server of the same name from then on, as if the settings had named the new address (see `pool::replace`): watched keys
//! count as changed, blocked requests are sent again, and so on. A connection whose address is still among the answers stays,
//! whatever becomes of others.
//!
//! Dials that were under way when the name moved may have resolved it before. Such a dial is made again when it has reached an
//! address at which no other connection stands that is known to be right, before a request is sent on it.

use crate::config::Config;
use crate::env::Env;
use crate::hooks::Event;
use crate::ids::{ClientHandle, LaneId, NodeId};
use crate::pool::{Lane, LaneUse, Lanes};
use respool_command::Execute;
use respool_connection::Phase;

/// Whether a lane shows that its node is up at an address to which its name resolves.
fn proves(lane: &Lane, node: NodeId) -> bool {
    let is_used = !lane.is_retired && lane.purpose != LaneUse::Leaving;
    lane.node == node && is_used && !lane.is_elsewhere && lane.up.is_ready() && lane.at.is_some()
}

/// Whether a lane is connected to the former address of its node.
fn is_left(lane: &Lane, node: NodeId) -> bool {
    lane.node == node && !lane.is_retired && lane.is_elsewhere
}

impl<E: Execute> Env<E> {
    /// The name of a lane's node no longer resolves to the address that the lane is connected to. What follows is decided when all
    /// such lanes are known, which is at the end of the turn.
    pub(crate) fn note_moved(&mut self, lane: LaneId, addresses: &str) {
        let Some(this) = self.lanes.all.get(lane).filter(|lane| !lane.is_retired) else { return };
        let node = this.node;
        if !self.config.has_node(node) || !self.lanes.is_at_its_node(lane) {
            return;
        }
        self.lanes[lane].is_elsewhere = true;
        let now_us = self.now.mono_us;
        let is_news = self.lanes.nodes[node].leads_away_us.is_none();
        self.lanes.nodes[node].leads_away_us.get_or_insert(now_us);
        if is_news {
            self.lanes.nodes[node].renamed_us = now_us;
        }
        if is_news {
            let (node, to) = (self.lanes.nodes[node].name.clone(), addresses.to_owned());
            self.shared.hooks.tell(&Event::NodeMoved { node, worker: self.number, to });
        }
        // The timers run at the end of this turn.
        self.cron_at_us = self.cron_at_us.min(self.now.mono_us);
        self.is_busy = true;
    }

    /// Gives up a connection on which nothing but a handshake was sent, and dials again. What is queued stays queued.
    pub(crate) fn dial_anew(&mut self, lane: LaneId) {
        self.close_upstream(lane);
        self.redial(lane);
    }

    /// The same where nothing is left to be closed.
    pub(crate) fn redial(&mut self, lane: LaneId) {
        let this = &mut self.lanes[lane];
        this.up.begin_anew(&mut self.clients.pool);
        this.is_blocked = false;
        (this.at, this.is_elsewhere) = (None, false);
        self.lanes.end_dial(lane);
        self.lanes.want_dial(lane, self.now);
        self.is_busy = true;
    }

    /// Whether a node is up at another address than the one that it has left; if its name leads to another one and it is not,
    /// that one is dialled.
    pub(crate) fn has_followed(&mut self, node: NodeId) -> bool {
        if self.lanes.nodes[node].leads_away_us.is_none() || self.drain_until_us.is_some() {
            return false;
        }
        let is_up = self.lanes.all.iter().any(|lane| proves(lane, node));
        if !is_up {
            self.lanes.try_address(node);
        }
        is_up
    }

    /// A node is up at another address. Returns the clients that it sends invalidations on connections of their own to the
    /// former one; `None`: no connection is left there.
    pub(crate) fn begin_leaving_address(&mut self, node: NodeId) -> Option<Vec<ClientHandle>> {
        let known = &mut self.lanes.nodes[node];
        (known.leads_away_us, known.renamed_us) = (None, self.now.mono_us);
        for lane in self.lanes.all.ids() {
            let this = &self.lanes[lane];
            let is_shaking = matches!(this.up.phase(), Phase::Shaking(_));
            if is_left(this, node) && is_shaking {
                self.dial_anew(lane);
            }
        }
        if self.engine.is_some() || !self.lanes.all.iter().any(|lane| is_left(lane, node)) {
            return None;
        }
        let is_told = |lane: &&Lane| lane.purpose == LaneUse::Listen || lane.up.identity().tracking.is_some();
        let left = self.lanes.all.iter().filter(|lane| is_left(lane, node));
        let mut told: Vec<ClientHandle> = left.clone().filter(is_told).filter_map(|lane| lane.lease.reader()).collect();
        told.sort_unstable();
        told.dedup();
        let connections = left.count();
        let name = self.lanes.nodes[node].name.clone();
        self.shared.hooks.tell(&Event::AddressLeft { node: name, worker: self.number, connections });
        self.lanes.nodes[node].health.forget_refusals(|key| key.node_user == 0);
        Some(told)
    }
}

impl Lanes {
    /// Has the shared lanes to former addresses of a node replaced as soon as successors are ready.
    pub(crate) fn try_address(&mut self, node: NodeId) {
        for lane in self.all.iter_mut().filter(|lane| lane.node == node && !lane.is_retired) {
            if lane.purpose == LaneUse::Shared && lane.is_elsewhere && lane.up.is_ready() && !lane.is_stale {
                (lane.is_stale, lane.renew_at_us) = (true, 0);
            }
        }
    }

    /// A dial has reached an address. Returns whether its name may have been resolved before the node's name was found to lead
    /// elsewhere; then it is resolved again before anything is sent. While the former address is in use, so is a
    /// connection to it that is made late.
    pub(crate) fn is_outdated(&mut self, lane: LaneId) -> bool {
        let this = &self[lane];
        let node = this.node;
        let known = &self.nodes[node];
        let is_before = this.dial_began_us < known.renamed_us;
        if !is_before || this.at.is_none() || known.is_removed || !self.is_at_its_node(lane) {
            return false;
        }
        let is_there = |other: &&Lane| other.at == this.at;
        let mut others = self.all.iter().filter(is_there);
        if others.clone().any(|other| proves(other, node)) {
            return false;
        }
        let is_former = |other: &Lane| other.node == node && !other.is_retired && other.is_elsewhere;
        let is_in_use = known.leads_away_us.is_some() && others.any(is_former);
        self[lane].is_elsewhere = is_in_use;
        !is_in_use
    }

    /// A lane is ready. This ends the trial of another address, if one is under way. `Some`: the node's former address is left.
    pub(crate) fn node_left_by(&mut self, config: &Config, lane: LaneId) -> Option<NodeId> {
        let this = &self[lane];
        let is_gone = !config.has_node(this.node);
        if is_gone || self.nodes[this.node].leads_away_us.is_none() || this.is_elsewhere {
            return None;
        }
        let (node, at, began_us) = (this.node, this.at.clone(), this.dial_began_us);
        let is_former = |other: &Lane| other.node == node && other.is_elsewhere && at.is_some() && other.at == at;
        if self.all.iter().any(is_former) {
            if began_us < self.nodes[node].renamed_us {
                // Its name was resolved before.
                self[lane].is_elsewhere = true;
                return None;
            }
            // The name resolves to the former address again.
            let is_back = |other: &&mut Lane| is_former(other);
            self.all.iter_mut().filter(is_back).for_each(|other| other.is_elsewhere = false);
        }
        Some(node)
    }

    /// The push lane to the former address of a node.
    pub(crate) fn former_push_lane(&self, node: NodeId) -> Option<LaneId> {
        self.all.position(|lane| lane.purpose == LaneUse::Push && is_left(lane, node))
    }
}
