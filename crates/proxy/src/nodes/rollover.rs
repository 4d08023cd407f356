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
//! the new ones at its next dial, whatever the reason for that. Lanes of users with node credentials of their own are not
//! affected.

use crate::hooks::Event;
use crate::nodes::health_checks::is_about_user;
use crate::pool::{Ending, Lane, Lanes, Purpose};
use crate::worker::Worker;
use respool_command::Execute;
use respool_connection::{Fault, Now, Phase};

/// Whether a node has accepted the configured credentials and address.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Entry {
    /// Since when they are on trial; `None`: they have been accepted.
    since_us: Option<u64>,
    /// When the credentials were configured.
    told_us: u64,
    /// The refusal of the credentials has been logged.
    is_told: bool,
}

impl Lanes {
    /// Puts the new credentials of a node on trial.
    pub(crate) fn enter_anew(&mut self, node: usize, now: Now) {
        let credentials = self.nodes[node].told.credentials.clone();
        for lane in 0..self.all.len() {
            let this = &self.all[lane];
            if this.node != node || this.is_retired || self.speaker_of(this.class) != 0 {
                continue;
            }
            let this = &mut self.all[lane];
            this.up.set_credentials(credentials.clone());
            match this.purpose {
                // A lane that is not connected has nothing to lose, and may be in the middle of a handshake.
                Purpose::Shared if !this.up.is_ready() => self.leave(lane),
                Purpose::Shared => (this.is_stale, this.renew_at_us) = (true, 0),
                Purpose::Successor => this.purpose = Purpose::Leaving,
                _ => {}
            }
        }
        self.nodes[node].health.forget_refusals();
        let (since_us, told_us) = (Some(now.mono_us), now.mono_us);
        self.nodes[node].entry = Entry { since_us, told_us, is_told: false };
    }

    /// Whether a node is on trial (its credentials or its address) and no lane is being dialled or replaced that would end the
    /// trial.
    fn is_entry_untried(&self, node: usize) -> bool {
        let is_tried = |lane: &u32| {
            let this = &self.all[*lane as usize];
            let is_under_way = this.is_stale || this.wants_dial || !matches!(this.up.phase(), Phase::Idle);
            this.node == node && self.speaker_of(this.class) == 0 && is_under_way
        };
        let node = &self.nodes[node];
        (node.entry.since_us.is_some() || node.leads_away_us.is_some()) && !self.shared.iter().any(is_tried)
    }
}

impl<E: Execute> Worker<E> {
    /// Dials a lane to each node on trial that has none, whether or not clients need it.
    pub(crate) fn try_entries(&mut self) {
        for node in 0..self.config.nodes.len() {
            if self.lanes.is_entry_untried(node) {
                let lane = self.lanes.lane(&self.config, node, 0);
                // An error means that the backoff is not over: the next run of the timers retries.
                let _ = self.lanes.prepare(lane, &self.config, self.now);
            }
        }
    }

    /// A lane is ready: if it was dialled since the trial began, the trial is over and older connections are replaced.
    pub(crate) fn note_entry(&mut self, lane: usize) {
        let this = &self.lanes.all[lane];
        let node = this.node;
        let Entry { since_us: Some(since_us), .. } = self.lanes.nodes[node].entry else { return };
        let is_concerned = |lanes: &Lanes, lane: usize| lanes.speaker_of(lanes.all[lane].class) == 0;
        if this.dial_began_us < since_us || !is_concerned(&self.lanes, lane) {
            return;
        }
        let entry = &mut self.lanes.nodes[node].entry;
        *entry = Entry { told_us: entry.told_us, ..Entry::default() };
        for lane in 0..self.lanes.all.len() {
            let this = &self.lanes.all[lane];
            let is_before = this.node == node && !this.is_retired && this.dial_began_us < since_us;
            if !is_before || !is_concerned(&self.lanes, lane) {
                continue;
            }
            let this = &mut self.lanes.all[lane];
            match this.purpose {
                Purpose::Own | Purpose::Blocking => this.is_stale = true,
                Purpose::Private if self.lanes.warm.contains(&(lane as u32)) => {
                    self.lanes.warm.retain(|warm| *warm as usize != lane);
                    self.lanes.all[lane].purpose = Purpose::Leaving;
                }
                Purpose::Private => this.is_stale = true,
                // Subscriptions stay on it until its successor is ready.
                Purpose::Push if this.up.is_ready() => (this.is_stale, this.renew_at_us) = (true, 0),
                _ => {}
            }
        }
        self.is_busy = true;
    }

    /// Whether a refusal is about credentials that have been replaced since: it is no evidence against the current ones.
    pub(crate) fn is_refusal_outdated(&self, lane: usize, words: &str) -> bool {
        let this = &self.lanes.all[lane];
        let is_before = this.dial_began_us < self.lanes.nodes[this.node].entry.told_us;
        is_before && self.lanes.speaker_of(this.class) == 0 && is_about_user(words)
    }

    /// Whether a failed dial says something of the trial alone: a connection of before is ready, so the node is up.
    pub(crate) fn is_trial_alone_failed(&self, lane: usize, words: Option<&str>) -> bool {
        let node = self.lanes.all[lane].node;
        let this = &self.lanes.nodes[node];
        let is_about_trial =
            this.leads_away_us.is_some() || this.entry.since_us.is_some() && words.is_some_and(is_about_user);
        let is_ready = |other: &Lane| other.node == node && !other.is_retired && other.up.is_ready();
        is_about_trial && self.lanes.all.iter().any(is_ready)
    }

    /// A dial has failed although the node is in use: logs the first refusal of credentials on trial.
    pub(crate) fn note_entry_refused(&mut self, node: usize, ending: &Ending) {
        let entry = &mut self.lanes.nodes[node].entry;
        let Ending::Fault(Fault::Refused(words)) = ending else { return };
        if entry.since_us.is_none() || std::mem::replace(&mut entry.is_told, true) {
            return;
        }
        let (node, why) = (self.lanes.nodes[node].name.clone(), words.clone());
        self.shared.hooks.tell(&Event::NodeRefuses { node, worker: self.number, why });
    }
}
