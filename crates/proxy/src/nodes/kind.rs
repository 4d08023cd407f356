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

use crate::env::Env;
use crate::hooks::Event;
use crate::nodes::health_state::FailureEvidence;
use crate::nodes::id::NodeId;
use crate::pool::key_id::LaneKeyId;
use crate::pool::table::LaneId;
use crate::pool::{LaneEnd, LaneUse};
use crate::workers::shared::Shared;
use respool_command::Execute;
use respool_connection::{DialFailure, Endpoint, Fault, Server};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The beginning of a node's error to any request while a long script runs.
const BUSY: &[u8] = b"-BUSY ";

/// How a node differs from what the settings say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodeMismatch {
    /// It belongs to a Redis Cluster.
    ClusterMember,
    /// It is a replica, and the settings have it as a primary.
    Replica,
    /// It is a Sentinel.
    Sentinel,
}

impl NodeMismatch {
    fn of(server: &Server, is_meant_as_replica: bool) -> Option<Self> {
        match (&*server.mode, &*server.role) {
            ("sentinel", _) => Some(Self::Sentinel),
            ("cluster", _) => Some(Self::ClusterMember),
            (_, "replica") if !is_meant_as_replica => Some(Self::Replica),
            _ => None,
        }
    }

    /// What an error reply shows of its node.
    fn of_error(error: &[u8], is_meant_as_replica: bool) -> Option<Self> {
        if error.starts_with(b"-MOVED ") {
            Some(Self::ClusterMember)
        } else {
            (error.starts_with(b"-READONLY ") && !is_meant_as_replica).then_some(Self::Replica)
        }
    }

    /// The name for the console and metrics.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ClusterMember => "cluster member",
            Self::Replica => "replica",
            Self::Sentinel => "sentinel",
        }
    }

    /// The text for the log: the consequence, and how to correct the settings.
    fn advice(self) -> &'static str {
        match self {
            Self::ClusterMember => {
                "a member of a Redis Cluster, which answers MOVED for the keys of other members: \
                 name in `nodes` servers with cluster-enabled no"
            }
            Self::Replica => {
                "a replica, which refuses writes with READONLY: name its primary in `nodes`, or say \
                 `replica_of=NAME` behind its address"
            }
            Self::Sentinel => {
                "a Sentinel, which holds no keys: name in `nodes` the primary that it watches \
                 (SENTINEL GET-PRIMARY-ADDR-BY-NAME, or GET-MASTER-ADDR-BY-NAME)"
            }
        }
    }
}

/// What is known of one node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NodeKind {
    /// What its handshake has given.
    pub(crate) server: Server,
    /// How it differs from the settings.
    pub(crate) misfit: Option<NodeMismatch>,
    /// It has been reached since it was configured, and that has been logged.
    is_told: bool,
}

impl NodeKind {
    /// Its program, version, mode and role, as far as known.
    pub(crate) fn words(&self) -> String {
        let Server { program, version, mode, role } = &self.server;
        let words = [program, version, mode, role].into_iter().filter(|word| !word.is_empty());
        words.cloned().collect::<Vec<_>>().join(" ")
    }
}

/// What is known of all nodes, by name.
#[derive(Debug, Default)]
pub(crate) struct NodeKinds {
    kinds: Mutex<BTreeMap<String, NodeKind>>,
    /// Counts changes of misfits: while it stays the same, a worker need not report the same misfit again.
    changes: AtomicU64,
}

impl NodeKinds {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, NodeKind>> {
        self.kinds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known of a node.
    pub(crate) fn of(&self, name: &str) -> NodeKind {
        self.lock().get(name).cloned().unwrap_or_default()
    }

    /// Other nodes are configured: forgets nodes that were removed, and nodes whose address has changed.
    pub(crate) fn keep(&self, is_known: impl Fn(&str) -> bool) {
        self.lock().retain(|name, _| is_known(name));
        self.changes.fetch_add(1, Ordering::Relaxed);
    }

    /// Stores the misfit of a node, or that it has none. Returns a misfit that was not known before.
    fn take_misfit(&self, name: &str, misfit: Option<NodeMismatch>) -> Option<NodeMismatch> {
        let mut kinds = self.lock();
        let before = std::mem::replace(&mut kinds.entry(name.to_owned()).or_default().misfit, misfit);
        if before != misfit {
            self.changes.fetch_add(1, Ordering::Relaxed);
        }
        misfit.filter(|misfit| before != Some(*misfit))
    }
}

impl<E: Execute> Env<E> {
    /// A shared connection to a node is ready: stores what its handshake has given, and logs the first one.
    pub(crate) fn note_kind(&mut self, lane: LaneId) {
        let is_first = self.is_asking(lane);
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
        let misfit = NodeMismatch::of(&kind.server, self.is_meant_as_replica(node));
        self.take_misfit(node, misfit);
        // Readiness is checked by another thread, from the figures.
        self.note_figures();
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
        this.up.begin_anew(&mut self.clients.pool);
        this.is_blocked = false;
        self.lanes.end_dial(lane);
        self.lanes.want_dial(lane, self.now);
        true
    }

    /// Whether a lane is the one on which its node is identified.
    pub(crate) fn is_asking(&self, lane: LaneId) -> bool {
        let this = &self.lanes[lane];
        let is_elsewhere = !matches!(this.endpoint.as_deref(), Some(Endpoint::Embedded { .. }));
        let is_of_worker = self.lanes.asks && this.class == LaneKeyId::PLAIN && self.lanes.is_for_all(lane);
        is_of_worker && is_elsewhere && self.lanes.is_at_its_node(lane)
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
        let Some(misfit) = NodeMismatch::of_error(bytes, self.is_meant_as_replica(node)) else { return };
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

    /// Whether the settings have a node as a replica.
    fn is_meant_as_replica(&self, node: NodeId) -> bool {
        !self.config.routes.pools().iter().any(|pool| node.is_in(pool))
    }
}

impl Shared {
    /// See [`NodeKinds::keep`].
    pub(crate) fn keep_kinds(&self, is_known: impl Fn(&str) -> bool) {
        self.kinds.keep(is_known);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(mode: &str, role: &str) -> Server {
        Server { mode: mode.to_owned(), role: role.to_owned(), ..Server::default() }
    }

    #[test]
    fn a_node_that_is_not_what_it_is_taken_for_is_known() {
        for (mode, role, as_primary, as_replica) in [
            ("standalone", "master", None, None),
            ("", "", None, None),
            ("standalone", "replica", Some(NodeMismatch::Replica), None),
            ("cluster", "master", Some(NodeMismatch::ClusterMember), Some(NodeMismatch::ClusterMember)),
            ("cluster", "replica", Some(NodeMismatch::ClusterMember), Some(NodeMismatch::ClusterMember)),
            ("sentinel", "", Some(NodeMismatch::Sentinel), Some(NodeMismatch::Sentinel)),
        ] {
            let misfit = |is_meant_as_replica| NodeMismatch::of(&server(mode, role), is_meant_as_replica);
            assert_eq!((misfit(false), misfit(true)), (as_primary, as_replica), "{mode} {role}");
        }
        assert_eq!(NodeMismatch::of_error(b"-MOVED 1 a:1\r\n", true), Some(NodeMismatch::ClusterMember));
        assert_eq!(NodeMismatch::of_error(b"-READONLY You can't\r\n", false), Some(NodeMismatch::Replica));
        assert_eq!(NodeMismatch::of_error(b"-READONLY You can't\r\n", true), None);
        assert_eq!(NodeMismatch::of_error(b"-ERR no\r\n", false), None);
    }

    #[test]
    fn a_misfit_is_news_once() {
        let kinds = NodeKinds::default();
        assert_eq!(kinds.take_misfit("a", Some(NodeMismatch::Replica)), Some(NodeMismatch::Replica));
        assert_eq!(kinds.take_misfit("a", Some(NodeMismatch::Replica)), None);
        assert_eq!(kinds.take_misfit("b", Some(NodeMismatch::Replica)), Some(NodeMismatch::Replica));
        assert_eq!(kinds.take_misfit("a", None), None);
        assert_eq!(kinds.of("a").misfit, None);
        assert_eq!(kinds.take_misfit("a", Some(NodeMismatch::Sentinel)), Some(NodeMismatch::Sentinel));
        kinds.keep(|name| name == "b");
        assert_eq!(kinds.of("a"), NodeKind::default());
        assert_eq!(kinds.of("b").misfit, Some(NodeMismatch::Replica));
        assert_eq!(kinds.changes.load(Ordering::Relaxed), 5, "a worker is to say what it has seen if that may be news");
    }
}
