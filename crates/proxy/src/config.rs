//! What the proxy is told to be. Made by the settings, shared by all workers, replaced as a whole on reload.

use crate::ids::{NodeId, NodeRange};
use crate::limits::LANE_QUEUE_SOFT_DIVISOR;
use crate::users::access::AccessRules;
use respool_command::EventClasses;
use respool_connection::echo_check::IntegrityTerms;
use respool_connection::{Credentials, Endpoint, FlushPolicy};
use respool_route::{PoolMode, Routes, Topology};
use respool_wire::{ReplyLimits, RequestLimits};
use std::sync::Arc;

/// One node behind the proxy.
#[derive(Clone, Debug)]
pub struct NodeConfig {
    /// The name in messages and metrics: what the settings call it, or its address.
    pub name: String,
    /// Where it is.
    pub endpoint: Arc<Endpoint>,
    /// What it is told to let us in.
    pub credentials: Option<Arc<Credentials>>,
}

/// Times, in microseconds.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// From the beginning of a dial to the end of the handshake.
    pub connect_us: u64,
    /// From the writing of a request to its reply.
    pub response_us: u64,
    /// A connection that owes replies and has been silent that long is replaced.
    pub silence_us: u64,
    /// A client that sends nothing for that long is disconnected; 0 means never.
    pub client_idle_us: u64,
    /// A node from which nothing was heard for that long, and of which nothing is awaited, is sent a PING; 0 means never.
    pub probe_idle_us: u64,
    /// A node that has not answered a PING for that long is suspect.
    pub probe_patience_us: u64,
    /// How long a node that comes back is sent only so much; 0 means not at all.
    pub slow_start_us: u64,
    /// How long a drain waits for what is outstanding.
    pub drain_us: u64,
    /// How long an operator's pause holds a request back; 0 means until it ends.
    pub pause_us: u64,
}

/// How often nodes are dialled.
#[derive(Clone, Copy, Debug)]
pub struct Reconnects {
    /// The first pause after a failure, in microseconds. It doubles with each further one.
    pub backoff_min_us: u64,
    /// The longest pause, in microseconds.
    pub backoff_max_us: u64,
    /// How often in a second a node that could not be connected to last time is tried again by the whole process.
    pub redials_per_second: u64,
}

/// Bytes that may be held, each with what happens beyond it.
#[derive(Clone, Copy, Debug)]
pub struct Budgets {
    /// Of one client's unwritten replies: beyond it the client is not read.
    pub client_output_soft: usize,
    /// Of one client's unwritten replies: beyond it the client is disconnected.
    pub client_output_hard: usize,
    /// Of one client's unwritten replies and messages, for a time.
    pub soft_limits: SoftLimits,
    /// Of requests that wait for one node in one worker: beyond it they are refused.
    pub upstream_queue: usize,
    /// Of one request: a larger one is passed on as it comes, if its keys are known.
    pub request_whole: usize,
    /// Of all clients of a worker: beyond it those that hold most are disconnected. `usize::MAX`: there is no such bound.
    pub clients: usize,
    /// Of the whole process: beyond it no client is accepted or read.
    pub process: usize,
}

/// Bytes of unwritten replies and messages that a client may be owed for a time: with more for longer it is disconnected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SoftLimit {
    /// Bytes; `usize::MAX`: there is no such limit.
    pub bytes: usize,
    /// For how long, in microseconds.
    pub us: u64,
}

impl Default for SoftLimit {
    fn default() -> Self {
        Self { bytes: usize::MAX, us: 0 }
    }
}

/// Those of the kinds of clients; there are none by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SoftLimits {
    /// Of clients that subscribe to nothing.
    pub normal: SoftLimit,
    /// Of those that do.
    pub subscriber: SoftLimit,
}

impl SoftLimits {
    /// What exceeds none of them.
    #[inline]
    pub(crate) fn least(&self) -> usize {
        self.normal.bytes.min(self.subscriber.bytes)
    }
}

impl Budgets {
    /// Of requests that wait for one node in one worker: beyond it the client that asks is not read on.
    #[inline]
    pub(crate) const fn queue_soft(&self) -> usize {
        self.upstream_queue / LANE_QUEUE_SOFT_DIVISOR
    }
}

/// What clients may hold beyond the shared connections.
#[derive(Clone, Copy, Debug)]
pub struct LaneLimits {
    /// For how long a client has a connection to itself, where neither its route nor its user says so.
    pub mode: PoolMode,
    /// Bytes of the commands of one transaction that wait for EXEC.
    pub transaction_bytes_max: usize,
    /// Commands of one transaction.
    pub transaction_commands_max: usize,
    /// Private connections of one worker to one node.
    pub private_max: usize,
    /// Those of them, of one database and dialect, that wait ready for the next client.
    pub private_warm_max: usize,
    /// Connections of one worker to one node that clients in pool mode `session` have.
    pub session_max: usize,
    /// Connections of one worker to one node on which requests wait.
    pub blocking_max: usize,
    /// Requests of one worker that wait, with and without a connection.
    pub blocked_commands_max: usize,
}

impl Default for LaneLimits {
    fn default() -> Self {
        Self {
            mode: PoolMode::Multiplex,
            transaction_bytes_max: 64 << 20,
            transaction_commands_max: 100_000,
            private_max: 256,
            private_warm_max: 16,
            session_max: 1_000,
            blocking_max: 64,
            blocked_commands_max: 20_000,
        }
    }
}

/// What becomes of a client that does not keep up with the messages it has subscribed to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SlowSubscribers {
    /// It is disconnected, as by Redis.
    #[default]
    Disconnect,
    /// It loses the messages that have waited longest.
    DropOldest,
}

impl SlowSubscribers {
    /// All of them, with the words of the settings.
    pub const ALL: [(Self, &'static str); 2] = [(Self::Disconnect, "disconnect"), (Self::DropOldest, "drop-oldest")];
}

/// What the number that PUBLISH answers counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PublishReceivers {
    /// Clients; of other proxies at the same nodes, connections.
    #[default]
    Clients,
    /// The node's connections, of which each of our workers has one however many clients it serves.
    Connections,
}

impl PublishReceivers {
    /// All of them, with the words of the settings.
    pub const ALL: [(Self, &'static str); 2] = [(Self::Clients, "clients"), (Self::Connections, "connections")];
}

/// Terms for subscriptions.
#[derive(Clone, Copy, Debug)]
pub struct SubscriptionTerms {
    /// Messages that one client has not taken yet, in bytes; beyond it the client is slow.
    pub output_bytes: usize,
    /// What becomes of a slow one.
    pub slow: SlowSubscribers,
    /// What PUBLISH answers.
    pub receivers: PublishReceivers,
    /// Keys that one worker remembers for the clients that track them. Beyond that, each new key evicts another, which is
    /// invalidated as if it had changed. 0: as many as fit.
    pub tracked_keys_max: usize,
}

impl Default for SubscriptionTerms {
    fn default() -> Self {
        Self {
            output_bytes: 32 << 20,
            slow: SlowSubscribers::default(),
            receivers: PublishReceivers::default(),
            tracked_keys_max: 1_000_000,
        }
    }
}

/// Everything the proxy is told.
#[derive(Clone, Debug)]
pub struct Config {
    /// The nodes: those of the pool without a name in the order that its placement counts them in, then those of the other
    /// pools, then replicas. None: the engine in this process answers.
    pub nodes: Vec<NodeConfig>,
    /// Which node of the pool without a name has which key.
    pub topology: Arc<Topology>,
    /// Which requests go to which pool. Plain: all to the one without a name.
    pub routes: Arc<Routes>,
    /// Limits on what clients send.
    pub request_limits: RequestLimits,
    /// Limits on what nodes send.
    pub reply_limits: ReplyLimits,
    /// Times.
    pub timeouts: Timeouts,
    /// How often nodes are dialled.
    pub reconnects: Reconnects,
    /// Bytes that may be held.
    pub budgets: Budgets,
    /// What clients may hold beyond the shared connections.
    pub lanes: LaneLimits,
    /// Clients of the whole process.
    pub clients_max: usize,
    /// Databases of the embedded engine. Behind the proxy the nodes decide.
    pub databases: u32,
    /// The events of the embedded engine's keys that are published.
    pub keyspace_events: EventClasses,
    /// When requests are written to shared connections.
    pub flush: FlushPolicy,
    /// What is looked at.
    pub seeing: crate::observe::terms::Terms,
    /// Whether nodes are dialled at the start, before any request, and identified (HELLO, INFO).
    pub dials_ahead: bool,
    /// Which replies have to be proved before they leave.
    pub integrity: IntegrityTerms,
    /// Whether commands that steer nodes are sent to them.
    pub allows_admin: bool,
    /// Whether the nodes are nothing but engines of this process that share the keys of one server: the worker then answers for
    /// the server what concerns it as a whole (CONFIG, DEBUG, SHUTDOWN).
    pub is_server: bool,
    /// Whether all clients are workers of this process, which have checked rights already.
    pub trusts_clients: bool,
    /// What holds for subscriptions.
    pub subscriptions: SubscriptionTerms,
    /// What is told about all users at once.
    pub access: AccessRules,
}

impl Config {
    /// Whether a node is among those that are configured.
    pub(crate) fn has_node(&self, node: NodeId) -> bool {
        node.index() < self.nodes.len()
    }

    /// The nodes of the plain topology, in order.
    pub(crate) fn topology_ids(&self) -> NodeRange {
        NodeRange::first(self.topology.node_count())
    }

    /// The node that answers requests without keys.
    pub(crate) fn default_node(&self) -> NodeId {
        NodeId::of(self.topology.default_node())
    }

    /// How many nodes channels are listened to at: those that they live on, and under routes all, since any may be read from.
    pub(crate) fn nodes_listened_to(&self) -> usize {
        match (self.nodes.len(), self.routes.are_plain()) {
            (0, _) => 0,
            // A replica repeats what its primary says.
            (_, true) => self.topology.node_count(),
            (all, false) => all,
        }
    }

    /// All nodes that are configured, in order.
    pub(crate) fn node_ids(&self) -> NodeRange {
        NodeRange::first(self.nodes.len())
    }

    /// What is configured of a node, if it has not gone.
    pub(crate) fn node(&self, node: NodeId) -> Option<&NodeConfig> {
        self.nodes.get(node.index())
    }

    /// The node for which `is_meant` holds.
    pub(crate) fn find_node(&self, is_meant: impl FnMut(&NodeConfig) -> bool) -> Option<NodeId> {
        self.nodes.iter().position(is_meant).map(NodeId::nth)
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::config;

    #[test]
    fn a_replica_is_not_listened_to_beside_its_primary() {
        let mut config = config();
        assert_eq!(config.nodes_listened_to(), 1);
        config.nodes.push(config.nodes[0].clone());
        assert_eq!(config.nodes_listened_to(), 1, "no channel lives on the second");
        config.nodes.clear();
        assert_eq!(config.nodes_listened_to(), 0, "an engine tells by itself");
    }
}
