//! New credentials for a node: established connections stay in use until a new one is ready.
//!
//! ```text
//!   [settled] -- reload: new credentials --> [on trial]: shared lanes stay in use, successors are dialled
//!       ^                                         |   |
//!       |   a connection with the new ones is     |   '-- it is refused: logged once, retried with backoff
//!       '-- ready: older connections are replaced'
//! ```
//!
//! Only the node can tell whether credentials are valid. If they are not, a worker that had closed all its connections
//! would fail every request until the next reload; so no connection is closed for them before. Each lane authenticates with
//! the new ones at its next dial, whatever the reason for that. Once they have been refused, what clients need is dialled with
//! the former ones, as long as the node accepts those, and successors try the new ones. Lanes of users with node credentials
//! of their own are not affected.

use crate::config::Config;
use crate::env::Env;
use crate::hooks::Event;
use crate::ids::{LaneId, LaneKeyId, NodeId};
use crate::limits::RENEW_US;
use crate::nodes::entry::Entry;
use crate::nodes::health_checks::is_about_user;
use crate::pool::{Lane, LaneEnd, LaneUse, Lanes};
use respool_command::Execute;
use respool_connection::{Fault, Now, Phase};

impl Lanes {
    /// Puts the new credentials of a node on trial.
    pub(crate) fn enter_anew(&mut self, node: NodeId, now: Now) {
        let credentials = self.nodes[node].told.credentials.clone();
        for lane in self.all.ids() {
            let this = &self.all[lane];
            if this.node != node || this.is_retired || self.node_user_of(this.class) != 0 {
                continue;
            }
            let this = &mut self.all[lane];
            if !this.up.is_ready() {
                // Unless it has authenticated already.
                this.up.set_credentials(credentials.clone());
            }
            match this.purpose {
                // A lane that is not connected has nothing to lose, and may be in the middle of a handshake.
                LaneUse::Shared if !this.up.is_ready() => self.leave(lane),
                LaneUse::Shared => (this.is_stale, this.renew_at_us) = (true, 0),
                LaneUse::Successor => this.purpose = LaneUse::Leaving,
                _ => {}
            }
        }
        self.nodes[node].health.forget_refusals(|key| key.node_user == 0);
        let (since_us, told_us) = (Some(now.mono_us), now.mono_us);
        let former = self.nodes[node].entry.former.take();
        self.nodes[node].entry = Entry { since_us, told_us, is_told: false, former };
    }

    /// Sets the credentials that a lane is dialled with, which may have changed since it was made.
    pub(crate) fn take_credentials(&mut self, lane: LaneId) {
        let this = &self.all[lane];
        if self.node_user_of(this.class) != 0 {
            return;
        }
        let node = &self.nodes[this.node];
        let former = node.entry.former.as_ref().filter(|_| node.entry.is_told && self.needs_credentials(lane));
        let credentials = former.unwrap_or(&node.told.credentials).clone();
        self.all[lane].up.set_credentials(credentials);
    }

    /// Whether a lane must be accepted by its node: another one only tries the credentials on trial.
    fn needs_credentials(&self, lane: LaneId) -> bool {
        let this = &self.all[lane];
        let is_ready = |other: &Lane| other.node == this.node && !other.is_retired && other.up.is_ready();
        match this.purpose {
            LaneUse::Successor | LaneUse::PushSuccessor => false,
            LaneUse::Shared => this.up.queued_bytes() > 0 || !this.selects.is_empty() || !self.all.iter().any(is_ready),
            _ => true,
        }
    }

    /// Whether a lane was dialled with the credentials that its node has now.
    fn has_credentials(&self, lane: LaneId) -> bool {
        let this = &self.all[lane];
        self.node_user_of(this.class) != 0 || this.up.identity().credentials == self.nodes[this.node].told.credentials
    }

    /// Whether a node is on trial (its credentials or its address) and no lane is being dialled or replaced that would end the
    /// trial.
    fn is_entry_untried(&self, node: NodeId) -> bool {
        let is_tried = |lane: &LaneId| {
            let this = &self.all[*lane];
            let is_under_way = this.is_stale || this.wants_dial || !matches!(this.up.phase(), Phase::Idle);
            this.node == node && self.node_user_of(this.class) == 0 && is_under_way
        };
        let node = &self.nodes[node];
        (node.entry.since_us.is_some() || node.leads_away_us.is_some()) && !self.shared.iter().any(is_tried)
    }

    /// Dials a lane to each node on trial that has none, whether or not clients need it.
    pub(crate) fn try_entries(&mut self, config: &Config, now: Now) {
        for node in config.node_ids() {
            if self.is_entry_untried(node) {
                let lane = self.lane(config, node, LaneKeyId::PLAIN);
                // An error means that the backoff is not over: the next run of the timers retries.
                let _ = self.prepare(lane, config, now);
            }
        }
    }

    /// Whether a refusal is about credentials that have been replaced since: it is no evidence against the current ones.
    pub(crate) fn is_refusal_outdated(&self, lane: LaneId, words: &str) -> bool {
        let this = &self[lane];
        let is_before = this.dial_began_us < self.nodes[this.node].entry.told_us;
        is_before && self.node_user_of(this.class) == 0 && is_about_user(words)
    }

    /// Whether a failed dial says something of the trial alone: a connection of before is ready, so the node is up.
    pub(crate) fn is_trial_alone_failed(&self, lane: LaneId, words: Option<&str>) -> bool {
        let node = self[lane].node;
        let this = &self.nodes[node];
        let is_about_trial =
            this.leads_away_us.is_some() || this.entry.since_us.is_some() && words.is_some_and(is_about_user);
        // Where there are former credentials, those say whether the node is up.
        let has_others = this.entry.former.is_some() && this.leads_away_us.is_none();
        let is_ready = |other: &Lane| other.node == node && !other.is_retired && other.up.is_ready();
        is_about_trial && (has_others || self.all.iter().any(is_ready))
    }
}

impl<E: Execute> Env<E> {
    /// A lane is ready: if it was dialled since the trial began, the trial is over and older connections are replaced.
    pub(crate) fn note_entry(&mut self, lane: LaneId) {
        let this = &self.lanes[lane];
        let node = this.node;
        let since_us = self.lanes.nodes[node].entry.since_us;
        if !self.lanes.has_credentials(lane) {
            let is_shared = matches!(this.purpose, LaneUse::Shared | LaneUse::Push);
            let renew_at_us = since_us.map_or(0, |_| self.now.mono_us + RENEW_US);
            let this = &mut self.lanes[lane];
            if is_shared || since_us.is_none() && matches!(this.purpose, LaneUse::Own | LaneUse::Private) {
                (this.is_stale, this.renew_at_us) = (true, renew_at_us);
            }
            return;
        }
        let is_new = self.lanes.node_user_of(this.class) == 0;
        if since_us.is_none_or(|since_us| this.dial_began_us < since_us) || !is_new {
            return;
        }
        let entry = &mut self.lanes.nodes[node].entry;
        *entry = Entry { told_us: entry.told_us, ..Entry::default() };
        for lane in self.lanes.all.ids() {
            let this = &self.lanes[lane];
            let is_before = since_us.is_some_and(|since_us| this.dial_began_us < since_us);
            let is_ours = this.node == node && !this.is_retired && self.lanes.node_user_of(this.class) == 0;
            if !is_ours || self.lanes.has_credentials(lane) && !is_before {
                continue;
            }
            let this = &mut self.lanes.all[lane];
            match this.purpose {
                LaneUse::Own | LaneUse::Blocking => this.is_stale = true,
                LaneUse::Private if self.lanes.warm.contains(&lane) => {
                    self.lanes.warm.retain(|warm| *warm != lane);
                    self.lanes[lane].purpose = LaneUse::Leaving;
                }
                LaneUse::Private => this.is_stale = true,
                // Subscriptions stay on it until its successor is ready.
                LaneUse::Push if this.up.is_ready() => (this.is_stale, this.renew_at_us) = (true, 0),
                _ => {}
            }
        }
        self.is_busy = true;
    }

    /// A node refuses the credentials on trial on a lane that is needed: the lane is dialled anew with the former ones, with the
    /// requests that wait on it.
    pub(crate) fn falls_back(&mut self, lane: LaneId, ending: &LaneEnd) -> bool {
        let LaneEnd::Fault(Fault::Refused(words)) = ending else { return false };
        let Some(this) = self.lanes.all.get(lane) else { return false };
        let node = this.node;
        let entry = &self.lanes.nodes[node].entry;
        // What was dialled before may have authenticated with other credentials than it is to have now.
        let is_new = !this.is_retired && !this.up.is_ready() && this.dial_began_us >= entry.told_us;
        if !is_new || self.lanes.node_user_of(this.class) != 0 || !is_about_user(words) || entry.since_us.is_none() {
            return false;
        }
        if entry.former.as_ref() == Some(&this.up.identity().credentials) {
            // Those are refused as well.
            self.lanes.nodes[node].entry.former = None;
            return false;
        }
        let may_fall_back = entry.former.is_some() && self.lanes.has_credentials(lane);
        let is_of_use = this.purpose != LaneUse::Leaving && self.drain_until_us.is_none();
        if !may_fall_back || !is_of_use || !self.lanes.needs_credentials(lane) {
            return false;
        }
        self.note_entry_refused(node, ending);
        self.redial(lane);
        true
    }

    /// A dial has failed although the node is in use: logs the first refusal of credentials on trial.
    pub(crate) fn note_entry_refused(&mut self, node: NodeId, ending: &LaneEnd) {
        let entry = &mut self.lanes.nodes[node].entry;
        let LaneEnd::Fault(Fault::Refused(words)) = ending else { return };
        if entry.since_us.is_none() || std::mem::replace(&mut entry.is_told, true) {
            return;
        }
        let (node, why) = (self.lanes.nodes[node].name.clone(), words.clone());
        self.shared.hooks.tell(&Event::NodeRefuses { node, worker: self.number, why });
    }
}
