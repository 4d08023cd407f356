//! Identification of nodes: program, version, mode and role, and whether mode and role fit the settings.
//!
//! Worker 0, which dials all nodes at the start, identifies a node in the handshake of its first shared connection (see
//! `connection::Handshake`). The role may change without a new connection, so the errors MOVED and READONLY count as well,
//! where a read from a node begins with one as a whole reply. A script can return such errors itself, so those on
//! connections for scripts do not count. All of it is for the log, the console and metrics: the routing of requests does
//! not depend on it.
//!
//! ```text
//!   [unknown] -- HELLO, INFO --> [known]          -- READONLY, MOVED --> [unfit]: logged once
//!       '------- HELLO, INFO: a replica, a cluster's member, a Sentinel ---^ |
//!   [known] <------- the handshake of another connection says otherwise -----'
//! ```

use crate::config::Config;
use crate::env::Env;
use crate::hooks::Event;
use crate::ids::{LaneId, LaneKeyId, NodeId};
use crate::nodes::kinds::{NodeKind, NodeMismatch};
use crate::nodes::stats::note_stats;
use crate::pool::{LaneEnd, LaneUse, Lanes};
use respool_command::Execute;
use respool_connection::node_health::FailureEvidence;
use respool_connection::{DialFailure, Endpoint, Fault, Server};
use std::sync::atomic::Ordering;

/// The beginning of a node's error to any request while a long script runs.
const BUSY: &[u8] = b"-BUSY ";

impl<E: Execute> Env<E> {
    /// A shared connection to a node is ready: stores what its handshake has given, and logs the first one.
    pub(crate) fn note_kind(&mut self, lane: LaneId) {
        let is_first = self.lanes.is_asking(lane);
        let this = &mut self.lanes[lane];
        let (node, took_us) = (this.node, self.now.mono_us.saturating_sub(this.dial_began_us));
        let server = this.up.take_server();
        if !is_first {
            return;
        }
        let (name, address) = (&self.lanes.nodes[node].name, &self.lanes.nodes[node].address);
        let kinds = &self.shared.kinds;
        let kind = {
            let mut kinds = kinds.lock();
            let kind = kinds.entry(name.clone()).or_default();
            kind.server = server.map_or_else(Server::default, |server| *server);
            let is_told = std::mem::replace(&mut kind.is_told, true);
            NodeKind { is_told, ..kind.clone() }
        };
        if !kind.is_told {
            let address = match address.is_empty() {
                true => self.lanes.nodes[node].told.endpoint.to_string(),
                false => address.clone(),
            };
            let (node, server) = (name.clone(), kind.words());
            self.shared.hooks.tell(&Event::NodeReached { node, worker: self.number, address, took_us, server });
        }
        let misfit = NodeMismatch::of(&kind.server, self.config.is_meant_as_replica(node));
        self.take_misfit(node, misfit);
        // Readiness is checked by another thread, from the figures.
        note_stats(&self.config, &self.lanes, &self.shared, self.number);
    }

    /// Checks whether a lane has ended because of the identification in its handshake; if so, the node is not identified
    /// any more. Returns whether the lane is dialled anew, with the requests that wait on it.
    pub(crate) fn is_asked_in_vain(&mut self, lane: LaneId, ending: &LaneEnd) -> bool {
        let Some(this) = self.lanes.all.get_mut(lane).filter(|lane| !lane.is_retired && lane.up.is_asking()) else {
            return false;
        };
        let is_about_question = match ending {
            LaneEnd::Lost(_) | LaneEnd::Dial(DialFailure::TimedOut) | LaneEnd::Fault(Fault::Malformed(_)) => true,
            LaneEnd::Fault(Fault::Refused(words)) => {
                words.starts_with("ERR ") && !matches!(FailureEvidence::of_refusal(words, true), FailureEvidence::Room)
            }
            _ => false,
        };
        if is_about_question {
            this.up.ask_no_more();
            self.lanes.nodes[this.node].shuns_questions = true;
        }
        if !matches!(ending, LaneEnd::Lost(_)) || self.drain_until_us.is_some() {
            return false;
        }
        self.redial(lane);
        true
    }

    /// Bytes from a node begin like an error: they are one, or they continue an earlier reply.
    #[cold]
    #[inline(never)]
    pub(crate) fn look_at_error(&mut self, lane: LaneId, bytes: &[u8]) {
        let Some(this) = self.lanes.all.get_mut(lane) else { return };
        if this.purpose == LaneUse::Dedicated || !this.up.is_between_replies() {
            return;
        }
        if bytes.starts_with(BUSY) {
            this.busy_us = self.now.mono_us;
            return;
        }
        let (node, class) = (this.node, this.class);
        // A connection to the former address of a node shows nothing of the node.
        if !self.config.has_node(node) || !self.lanes.is_at_its_node(lane) || self.lanes.is_for_scripts(class) {
            return;
        }
        let Some(misfit) = NodeMismatch::of_error(bytes, self.config.is_meant_as_replica(node)) else { return };
        let changes = self.shared.kinds.changes.load(Ordering::Relaxed);
        if self.lanes.nodes[node].misfit_seen != Some((misfit, changes)) {
            self.take_misfit(node, Some(misfit));
        }
    }

    fn take_misfit(&mut self, node: NodeId, misfit: Option<NodeMismatch>) {
        let name = &self.lanes.nodes[node].name;
        let news = self.shared.kinds.take_misfit(name, misfit);
        // A change by another worker in this moment makes the count differ: the misfit is then reported again.
        let changes = self.shared.kinds.changes.load(Ordering::Relaxed);
        if let Some(misfit) = news {
            let (node, worker) = (name.clone(), self.number);
            self.shared.hooks.tell(&Event::NodeUnfit { node, worker, what: misfit.advice() });
        }
        self.lanes.nodes[node].misfit_seen = misfit.map(|misfit| (misfit, changes));
    }
}

impl Config {
    /// Whether the settings have a node as a replica.
    fn is_meant_as_replica(&self, node: NodeId) -> bool {
        !self.routes.pools().iter().any(|pool| node.is_in(pool))
    }
}

impl Lanes {
    /// Whether a lane is the one on which its node is identified.
    pub(crate) fn is_asking(&self, lane: LaneId) -> bool {
        let this = &self[lane];
        let is_elsewhere = !matches!(this.endpoint.as_deref(), Some(Endpoint::Embedded { .. }));
        let is_of_worker = self.asks && this.class == LaneKeyId::PLAIN && self.is_for_all(lane);
        is_of_worker && is_elsewhere && self.is_at_its_node(lane)
    }
}
