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

use crate::env::Env;
use crate::hooks::Event;
use crate::nodes::id::NodeId;
use crate::pool::table::LaneId;
use crate::pool::{Lane, LaneUse};
use crate::session::id::ClientHandle;
use crate::worker::Worker;
use respool_command::Execute;
use respool_connection::Phase;

/// Whether a lane shows that its node is up at an address to which its name resolves.
fn proves(lane: &Lane, node: NodeId) -> bool {
    let is_used = !lane.is_retired && lane.purpose != LaneUse::Leaving;
    lane.node == node && is_used && !lane.is_elsewhere && lane.up.is_ready() && lane.at.is_some()
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

    /// Has the shared lanes to former addresses of a node replaced as soon as successors are ready.
    fn try_address(&mut self, node: NodeId) {
        for lane in self.lanes.all.iter_mut().filter(|lane| lane.node == node && !lane.is_retired) {
            if lane.purpose == LaneUse::Shared && lane.is_elsewhere && lane.up.is_ready() && !lane.is_stale {
                (lane.is_stale, lane.renew_at_us) = (true, 0);
            }
        }
    }

    /// A dial has reached an address. Returns whether its name may have been resolved before the node's name was found to lead
    /// elsewhere; then it is resolved again before anything is sent. While the former address is in use, so is a
    /// connection to it that is made late.
    pub(crate) fn is_outdated(&mut self, lane: LaneId) -> bool {
        let this = &self.lanes[lane];
        let node = this.node;
        let known = &self.lanes.nodes[node];
        let is_before = this.dial_began_us < known.renamed_us;
        if !is_before || this.at.is_none() || known.is_gone || !self.lanes.is_at_its_node(lane) {
            return false;
        }
        let is_there = |other: &&Lane| other.at == this.at;
        let mut others = self.lanes.all.iter().filter(is_there);
        if others.clone().any(|other| proves(other, node)) {
            return false;
        }
        let is_former = |other: &Lane| other.node == node && !other.is_retired && other.is_elsewhere;
        let is_in_use = known.leads_away_us.is_some() && others.any(is_former);
        self.lanes[lane].is_elsewhere = is_in_use;
        !is_in_use
    }

    /// Gives up a connection on which nothing but a handshake was sent, and dials again. What is queued stays queued.
    pub(crate) fn dial_anew(&mut self, lane: LaneId) {
        self.close_upstream(lane);
        let this = &mut self.lanes[lane];
        this.up.begin_anew(&mut self.clients.pool);
        this.is_blocked = false;
        (this.at, this.is_elsewhere) = (None, false);
        self.lanes.end_dial(lane);
        self.lanes.want_dial(lane, self.now);
        self.is_busy = true;
    }
}

impl<E: Execute> Worker<E> {
    /// Leaves the former addresses of nodes that are up at another one, and dials the others.
    pub(crate) fn follow_names(&mut self) {
        for node in self.env.config.node_ids() {
            if self.env.lanes.nodes[node].leads_away_us.is_none() || self.env.drain_until_us.is_some() {
                continue;
            }
            if self.env.lanes.all.iter().any(|lane| proves(lane, node)) {
                self.leave_address(node);
            } else {
                self.env.try_address(node);
            }
        }
    }

    /// A lane is ready. This ends the trial of another address, if one is under way.
    pub(crate) fn note_address(&mut self, lane: LaneId) {
        let this = &self.env.lanes[lane];
        let is_gone = !self.env.config.has_node(this.node);
        if is_gone || self.env.lanes.nodes[this.node].leads_away_us.is_none() || this.is_elsewhere {
            return;
        }
        let (node, at, began_us) = (this.node, this.at.clone(), this.dial_began_us);
        let is_former = |other: &Lane| other.node == node && other.is_elsewhere && at.is_some() && other.at == at;
        if self.env.lanes.all.iter().any(is_former) {
            if began_us < self.env.lanes.nodes[node].renamed_us {
                // Its name was resolved before.
                self.env.lanes[lane].is_elsewhere = true;
                return;
            }
            // The name resolves to the former address again.
            let is_back = |other: &&mut Lane| is_former(other);
            self.env.lanes.all.iter_mut().filter(is_back).for_each(|other| other.is_elsewhere = false);
        }
        self.leave_address(node);
    }

    /// A node is up at another address: lanes to the former one are left, as by a reload.
    fn leave_address(&mut self, node: NodeId) {
        let known = &mut self.env.lanes.nodes[node];
        (known.leads_away_us, known.renamed_us) = (None, self.env.now.mono_us);
        for lane in self.env.lanes.all.ids() {
            let this = &self.env.lanes[lane];
            if this.node == node
                && !this.is_retired
                && this.is_elsewhere
                && matches!(this.up.phase(), Phase::Shaking(_))
            {
                self.env.dial_anew(lane);
            }
        }
        let is_left = |lane: &Lane| lane.node == node && !lane.is_retired && lane.is_elsewhere;
        if self.env.engine.is_some() || !self.env.lanes.all.iter().any(is_left) {
            return;
        }
        // Clients that the node sends invalidations on connections of their own.
        let is_told = |lane: &&Lane| lane.purpose == LaneUse::Listen || lane.up.identity().tracking.is_some();
        let told =
            self.env.lanes.all.iter().filter(|lane| is_left(lane)).filter(is_told).filter_map(|lane| lane.reader);
        let mut told: Vec<ClientHandle> = told.collect();
        told.sort_unstable();
        told.dedup();
        let connections = self.env.lanes.all.iter().filter(|lane| is_left(lane)).count();
        let name = self.env.lanes.nodes[node].name.clone();
        self.env.shared.hooks.tell(&Event::AddressLeft { node: name, worker: self.env.number, connections });
        self.env.lanes.nodes[node].health.forget_refusals();
        self.move_nodes(Some(node), false, false);
        let is_push = |lane: &Lane| lane.purpose == LaneUse::Push && is_left(lane);
        if let Some(lane) = self.env.lanes.all.position(is_push) {
            // It is dialled again at once, and the node is told everything.
            self.env.close_lane(lane);
            self.tell_ended();
            self.env.dial_again(lane);
        }
        // What was read where the name led may be other values now, wherever the node tells of changes from.
        let Self { env: Env { config, clients, .. }, subscriptions, .. } = self;
        subscriptions.invalidate_node(config, node, clients);
        for client in told {
            if self.env.clients.sessions.get(client).is_some() && self.env.has_noloop_lanes(client.index) {
                self.subscriptions.restart_noloop(&mut self.env, client.index);
            }
        }
        self.blocking.recall_blocked(&mut self.env, false);
        self.env.is_busy = true;
    }
}
