//! Other credentials for a node, or another address of its name: connections that stand are used until the node has let new ones in.
//!
//! ```text
//!   [settled] -- reload: other credentials --> [on trial]: shared lanes are used on, successors are dialled
//!       ^                                         |   |
//!       |   a connection with the new ones is     |   '-- it is refused: told once, tried again after pauses
//!       '-- ready: what was let in before goes ---'
//! ```
//!
//! Whether credentials are right only the node knows. If they are not, a worker whose connections had all been closed would fail
//! every request until the next reload; so nothing is closed for them before. Each lane is entered with the new ones when it
//! is dialled the next time, for whatever reason. Clients that have a name of their own at the nodes are not concerned.
//!
//! The same holds where a node's name leads to another address: a name server may be wrong, and the new place not be there yet. New
//! connections go there; the old ones, whoever speaks on them, go when one of the new ones is ready.

use crate::health::is_about_user;
use crate::hooks::Event;
use crate::lanes::{Ending, Lane, Lanes, Purpose};
use crate::worker::Worker;
use respool_command::Execute;
use respool_connection::{Fault, Now, Phase};

/// Whether a node has let the credentials in that are configured.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Entry {
    /// Since when they are on trial; `None`: they are not.
    since_us: Option<u64>,
    /// When they became the node's.
    told_us: u64,
    /// It was told that they are refused.
    is_told: bool,
    /// The node is at another address: connections that were made before go, whoever speaks on them.
    has_moved: bool,
}

impl Lanes {
    /// A node has other credentials from now on.
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
                // One that is not connected has nothing to lose, and may be in the middle of a handshake.
                Purpose::Shared if !this.up.is_ready() => self.leave(lane),
                Purpose::Shared => (this.is_stale, this.renew_at_us) = (true, 0),
                Purpose::Successor => this.purpose = Purpose::Leaving,
                _ => {}
            }
        }
        self.nodes[node].health.forget_refusals();
        let (since_us, told_us) = (Some(now.mono_us), now.mono_us);
        self.nodes[node].entry = Entry { since_us, told_us, is_told: false, ..self.nodes[node].entry };
    }

    /// A node's name leads to another address from now on. Whether that is news.
    fn go_where_it_is(&mut self, node: usize, now: Now) -> bool {
        let before = std::mem::replace(&mut self.nodes[node].entry.has_moved, true);
        if before {
            return false;
        }
        self.nodes[node].entry.since_us = Some(now.mono_us);
        for lane in self.all.iter_mut().filter(|lane| lane.node == node && !lane.is_retired) {
            if lane.purpose == Purpose::Shared && lane.up.is_ready() {
                (lane.is_stale, lane.renew_at_us) = (true, 0);
            }
        }
        true
    }

    /// Whether a node's new credentials are on trial and nothing that is under way would tell.
    fn is_entry_untried(&self, node: usize) -> bool {
        let is_tried = |lane: &u32| {
            let this = &self.all[*lane as usize];
            let is_under_way = this.is_stale || this.wants_dial || !matches!(this.up.phase(), Phase::Idle);
            this.node == node && self.speaker_of(this.class) == 0 && is_under_way
        };
        self.nodes[node].entry.since_us.is_some() && !self.shared.iter().any(is_tried)
    }
}

impl<E: Execute> Worker<E> {
    /// Where credentials are on trial, there is a connection that tries them, whatever else clients need.
    pub(crate) fn try_entries(&mut self) {
        for node in 0..self.config.nodes.len() {
            if self.lanes.is_entry_untried(node) {
                let lane = self.lanes.lane(&self.config, node, 0);
                // After a pause.
                let _ = self.lanes.prepare(lane, &self.config, self.now);
            }
        }
    }

    /// A lane is ready: if it was let in with new credentials, what was let in before is not needed any more.
    pub(crate) fn note_entry(&mut self, lane: usize) {
        let this = &self.lanes.all[lane];
        let node = this.node;
        let Entry { since_us: Some(since_us), has_moved, .. } = self.lanes.nodes[node].entry else { return };
        let is_concerned = |lanes: &Lanes, lane: usize| has_moved || lanes.speaker_of(lanes.all[lane].class) == 0;
        if this.dial_began_us < since_us || !is_concerned(&self.lanes, lane) {
            return;
        }
        let entry = &mut self.lanes.nodes[node].entry;
        *entry = Entry { told_us: entry.told_us, ..Entry::default() };
        let mut push_lane = None;
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
                Purpose::Push if this.up.is_ready() => push_lane = Some(lane),
                _ => {}
            }
        }
        if let Some(lane) = push_lane {
            // It is dialled again at once, and the node is told everything.
            self.close_lane(lane);
            self.dial_again(lane);
        }
        self.is_busy = true;
    }

    /// The name of the node to which a lane leads does not lead to where the lane was made any more.
    pub(crate) fn note_moved(&mut self, lane: usize, addresses: &str) {
        let Some(this) = self.lanes.all.get(lane).filter(|lane| !lane.is_retired && lane.up.is_ready()) else { return };
        let node = this.node;
        if node < self.config.nodes.len()
            && self.lanes.is_at_its_node(lane)
            && self.lanes.go_where_it_is(node, self.now)
        {
            let (node, to) = (self.lanes.nodes[node].name.clone(), addresses.to_owned());
            self.shared.hooks.tell(&Event::NodeMoved { node, worker: self.number, to });
            self.try_entries();
            self.is_busy = true;
        }
    }

    /// Whether a refusal is about credentials that are not the node's any more. It says nothing of those that are.
    pub(crate) fn is_refusal_outdated(&self, lane: usize, words: &str) -> bool {
        let this = &self.lanes.all[lane];
        let is_before = this.dial_began_us < self.lanes.nodes[this.node].entry.told_us;
        is_before && self.lanes.speaker_of(this.class) == 0 && is_about_user(words)
    }

    /// Whether the failure of a dial is about what is on trial, and a connection that was made before is there. Then the node is.
    pub(crate) fn is_trial_alone_failed(&self, lane: usize, words: Option<&str>) -> bool {
        let node = self.lanes.all[lane].node;
        let entry = &self.lanes.nodes[node].entry;
        let is_about_trial = entry.has_moved || entry.since_us.is_some() && words.is_some_and(is_about_user);
        let is_ready = |other: &Lane| other.node == node && !other.is_retired && other.up.is_ready();
        is_about_trial && self.lanes.all.iter().any(is_ready)
    }

    /// A connection to a node could not be made, and the node is not out for that.
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
