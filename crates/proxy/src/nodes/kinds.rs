//! What nodes say of themselves: what each is, what it must not be, and which databases it has.

use respool_connection::Server;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

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
    pub(crate) fn of(server: &Server, is_meant_as_replica: bool) -> Option<Self> {
        match (&*server.mode, &*server.role) {
            ("sentinel", _) => Some(Self::Sentinel),
            ("cluster", _) => Some(Self::ClusterMember),
            (_, "replica") if !is_meant_as_replica => Some(Self::Replica),
            _ => None,
        }
    }

    /// What an error reply shows of its node.
    pub(crate) fn of_error(error: &[u8], is_meant_as_replica: bool) -> Option<Self> {
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
    pub(crate) fn advice(self) -> &'static str {
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
    pub(crate) is_told: bool,
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
    pub(crate) kinds: Mutex<BTreeMap<String, NodeKind>>,
    /// Counts changes of misfits: while it stays the same, a worker need not report the same misfit again.
    pub(crate) changes: AtomicU64,
}

impl NodeKinds {
    pub(crate) fn lock(&self) -> MutexGuard<'_, BTreeMap<String, NodeKind>> {
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
    pub(crate) fn take_misfit(&self, name: &str, misfit: Option<NodeMismatch>) -> Option<NodeMismatch> {
        let mut kinds = self.lock();
        let before = std::mem::replace(&mut kinds.entry(name.to_owned()).or_default().misfit, misfit);
        if before != misfit {
            self.changes.fetch_add(1, Ordering::Relaxed);
        }
        misfit.filter(|misfit| before != Some(*misfit))
    }
}

/// How many databases nodes are known to have, in the whole process. A number that was accepted stays known, even if other
/// nodes are configured: those that lack it say so.
#[derive(Debug, Default)]
pub(crate) struct Databases(AtomicU32);

impl Databases {
    /// A node has this database, and so those below.
    pub(crate) fn note(&self, database: u32) {
        self.0.fetch_max(database.saturating_add(1), Ordering::Relaxed);
    }

    pub(crate) fn has(&self, database: u32) -> bool {
        database < self.0.load(Ordering::Relaxed)
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

    #[test]
    fn a_database_is_known_with_all_below_it_and_stays_so() {
        let databases = Databases::default();
        assert!(!databases.has(0));
        databases.note(3);
        databases.note(1);
        assert!(databases.has(0) && databases.has(3));
        assert!(!databases.has(4));
        databases.note(u32::MAX);
        assert!(!databases.has(u32::MAX), "the highest number has no place above it");
    }
}
