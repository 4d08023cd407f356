//! Other nodes in the pool that channels live in: every node is told anew what it has to send.
//!
//! A subscription is never given up for it; what is published while connections are made anew reaches nobody through the
//! nodes that changed, as when a node returns.

use super::{Book, Kind, Subscriptions};
use crate::lanes::Ending;
use crate::text;
use crate::worker::Worker;
use respool_command::Execute;
use respool_connection::{Action, ConnId, Phase};

impl<E: Execute> Worker<E> {
    /// Ends all push lanes, because channels will be elsewhere. Whoever waits for a node's word is told to try again.
    pub(crate) fn end_push_lanes(&mut self) {
        for node in 0..self.subscriptions.lanes.len() {
            let Some(push_lane) = self.subscriptions.lanes[node] else { continue };
            let lane = push_lane.lane;
            let conn = ConnId::upstream(lane as u32);
            let is_open = !matches!(self.lanes.all[lane].up.phase(), Phase::Idle);
            if is_open {
                self.actions.push_back(Action::Close { conn });
            }
            self.end_lane(lane, Ending::GivenUp);
            self.subscriptions.lanes[node] = None;
            self.lanes.retire(lane);
            if !self.actions.iter().any(|action| matches!(action, Action::Close { conn: closed } if *closed == conn)) {
                self.lanes.release(lane);
            }
        }
        for node in 0..self.subscriptions.books.len() {
            let this = &mut self.subscriptions;
            this.books[node].lose(&mut this.registries);
            for wait in this.books[node].take_waits() {
                this.fail(wait, &text::nodes_changed(), &mut self.clients, &self.config);
            }
        }
    }

    /// Tells the nodes that there are now what they have to send.
    pub(crate) fn begin_push_lanes(&mut self) {
        let nodes = super::nodes_listened_to(&self.config);
        let this = &mut self.subscriptions;
        this.books = (0..nodes).map(|_| Book::default()).collect();
        this.lanes = (0..nodes).map(|_| None).collect();
        this.note_all(&self.config);
        for node in 0..nodes {
            if self.is_push_lane_wanted(node) {
                // A node that is down is dialled again when its pause is over, by those who ask.
                let _ = self.prepare_push_lane(node);
            }
        }
    }
}

impl Subscriptions {
    /// Has every channel noted that anybody subscribes to.
    fn note_all(&mut self, config: &crate::config::Config) {
        for kind in Kind::ALL {
            let active: Vec<u32> = self.registries[kind as usize].active_from(0).collect();
            active.into_iter().for_each(|id| self.note(config, kind, id));
        }
    }
}
