//! What the settings mean: one small plain struct per component. They are made by [`resolve`](super::resolve()).

use std::path::PathBuf;
use std::time::Duration;

use respool_command::EventClasses;
use respool_connection::FlushPolicy;
use respool_engine::EvictionPolicy;
use respool_proxy::observe::terms::LargeTerms;
use respool_proxy::{PublishReceivers, SlowSubscribers};
use respool_route::{DeadNode, PoolMode, Route, Scheme};

use super::address::{Address, ListenSpec, NodeAddress};
use super::choices::{DashboardReaders, LogFormat, LogLevel};
use super::row::{Scope, Secret, Value};
use super::table::Setting;
use super::tls::{NodeTls, TlsSettings};
use super::users::UsersSettings;

/// What a process is to do.
#[derive(Debug, Clone, PartialEq)]
pub struct Process {
    /// Worker threads; `None` is one per processor.
    pub workers: Option<usize>,
    /// Most clients at a time, over all instances.
    pub clients_max: usize,
    /// Budget for all buffers together.
    pub buffer_bytes_max: u64,
    /// Most attempts per second to connect to a node that could not be connected to.
    pub redials_per_second_max: u32,
    /// Time between SIGTERM and the drain, in which clients are accepted and served and `/readyz` fails.
    pub drain_delay: Duration,
    /// How long owed replies may take after a request to stop.
    pub drain_timeout: Duration,
    /// Logs.
    pub log: LogSettings,
    /// Where another process can ask for the listeners.
    pub takeover_socket: Option<PathBuf>,
    /// The HTTP side.
    pub admin: AdminSettings,
    /// Users and their rights.
    pub users: UsersSettings,
    /// One per pool, at least one.
    pub instances: Vec<Instance>,
}

impl Process {
    /// These settings, with everything taken from `new` that a reload can change. Pools are told apart by name.
    #[must_use]
    pub fn with_live_part_of(&self, new: &Self) -> Self {
        let instances = self.instances.iter().map(|old| match new.instances.iter().find(|new| new.name == old.name) {
            Some(new) => old.with_live_part_of(new),
            None => old.clone(),
        });
        Self {
            clients_max: new.clients_max,
            buffer_bytes_max: new.buffer_bytes_max,
            redials_per_second_max: new.redials_per_second_max,
            drain_delay: new.drain_delay,
            drain_timeout: new.drain_timeout,
            log: LogSettings { level: new.log.level, ..self.log.clone() },
            users: UsersSettings { file: self.users.file.clone(), ..new.users.clone() },
            admin: AdminSettings {
                ready_percent: new.admin.ready_percent,
                dashboard: new.admin.dashboard.clone(),
                ..self.admin.clone()
            },
            instances: instances.collect(),
            ..self.clone()
        }
    }
}

/// One pool: its listeners, and its nodes or engine.
#[derive(Debug, Clone, PartialEq)]
pub struct Instance {
    /// Its name; `main` if it has none and is alone.
    pub name: String,
    /// Its listeners and sockets.
    pub net: NetSettings,
    /// What holds for its TLS.
    pub tls: TlsSettings,
    /// Its nodes and rules.
    pub proxy: ProxySettings,
    /// The engine of an embedded server or node.
    pub engine: EngineSettings,
}

impl Instance {
    fn with_live_part_of(&self, new: &Self) -> Self {
        let timeouts = new.proxy.timeouts.clone();
        // No setting says these, so none can be what a reload brings back.
        let soft_limits = self.proxy.budgets.soft_limits;
        let budgets = Budgets { soft_limits, ..new.proxy.budgets.clone() };
        let SeeingSettings { latency_ms, tracks_latency, large_requests, large_replies, .. } = self.proxy.seeing;
        let seeing =
            SeeingSettings { latency_ms, tracks_latency, large_requests, large_replies, ..new.proxy.seeing.clone() };
        let pooling = new.proxy.pooling.clone();
        let nodes = if self.takes_nodes_of(new) { &new.proxy } else { &self.proxy };
        let proxy = ProxySettings {
            timeouts,
            budgets,
            pooling,
            allows_admin: new.proxy.allows_admin,
            nodes: nodes.nodes.clone(),
            placement: nodes.placement,
            default_node: nodes.default_node,
            dead_node: nodes.dead_node,
            splits: new.proxy.splits,
            seeing,
            integrity: new.proxy.integrity.clone(),
            requests: new.proxy.requests.clone(),
            routing: nodes.routing.clone(),
        };
        let net = NetSettings {
            keepalive: new.net.keepalive,
            user_timeout: new.net.user_timeout,
            node_timeout: new.net.node_timeout,
            names_interval: new.net.names_interval,
            ..self.net.clone()
        };
        let engine = EngineSettings { keyspace_events: new.engine.keyspace_events, ..self.engine.clone() };
        Self { net, proxy, engine, tls: new.tls.clone(), ..self.clone() }
    }

    /// Whether a reload can take over the nodes of `new`: engines in this process neither come nor go, because they hold
    /// data and are threads that run already. Those of one server know which keys are theirs from the start.
    #[must_use]
    pub fn takes_nodes_of(&self, new: &Self) -> bool {
        let engines = |of: &Self| {
            let embedded = of.nodes().filter(|node| node.address == NodeAddress::Embedded);
            embedded.map(|node| node.name.clone()).collect::<Vec<_>>()
        };
        let is_placed_alike = self.engine.threads == 1 || self.proxy.placement == new.proxy.placement;
        self.is_embedded() == new.is_embedded() && engines(self) == engines(new) && is_placed_alike
    }

    /// All its nodes in the order in which the proxy lists them: those of its own that have keys, those of the pools that
    /// routes lead to, then replicas in the same order.
    pub fn nodes(&self) -> impl Iterator<Item = &NodeSettings> {
        let all = || self.proxy.nodes.iter().chain(self.proxy.routing.pools.iter().flat_map(|pool| &pool.nodes));
        let primaries = all().filter(|node| node.replica_of.is_none());
        primaries.chain(all().filter(|node| node.replica_of.is_some()))
    }

    /// Whether it is an embedded server with one engine in its only worker, that is, has no node.
    #[must_use]
    pub fn is_embedded(&self) -> bool {
        self.proxy.nodes.is_empty()
    }

    /// Whether its engines are the nodes of a server: they share its keys, and each has a thread of its own.
    #[must_use]
    pub fn has_engine_threads(&self) -> bool {
        self.engine.threads > 1
    }

    /// Whether it is an embedded server, with one engine or several.
    #[must_use]
    pub fn is_server(&self) -> bool {
        self.is_embedded() || self.has_engine_threads()
    }
}

/// Listeners and the sockets of clients and nodes.
#[derive(Debug, Clone, PartialEq)]
pub struct NetSettings {
    /// Where to listen; at least one.
    pub listen: Vec<ListenSpec>,
    /// Permissions of unix sockets.
    pub unix_mode: u32,
    /// Backlog of every listener.
    pub backlog: u32,
    /// First keepalive probe after this long without traffic; `None` is off.
    pub keepalive: Option<Duration>,
    /// TCP_USER_TIMEOUT of clients; `None` is the kernel's own.
    pub user_timeout: Option<Duration>,
    /// Interval at which the names of connected nodes are resolved again; `None`: only at dials.
    pub names_interval: Option<Duration>,
    /// TCP_USER_TIMEOUT of nodes, with the kernel's probes once a second; `None` is as for clients.
    pub node_timeout: Option<Duration>,
}

/// Nodes, placement, limits and budgets.
#[derive(Debug, Clone, PartialEq)]
pub struct ProxySettings {
    /// The nodes in the order said; none is an embedded server.
    pub nodes: Vec<NodeSettings>,
    /// The rule that chooses a key's node, and the part of the key that it looks at.
    pub placement: Scheme,
    /// Position in `nodes` of the one that answers commands without a key; 0 if there is none.
    pub default_node: usize,
    /// What becomes of requests to a node that is down.
    pub dead_node: DeadNode,
    /// Whether requests are split whose keys are on several nodes, where they can be.
    pub splits: bool,
    /// What is looked at.
    pub seeing: SeeingSettings,
    /// Which replies have to be proved.
    pub integrity: IntegritySettings,
    /// Routes, and the pools that they lead to.
    pub routing: RoutingSettings,
    /// Time allowed for things.
    pub timeouts: Timeouts,
    /// Bytes allowed for things.
    pub budgets: Budgets,
    /// Limits of one request.
    pub requests: RequestSettings,
    /// What clients may hold beyond the shared connections.
    pub pooling: Pooling,
    /// Whether commands that steer the nodes are sent to them.
    pub allows_admin: bool,
}

/// The pools and routes of one instance.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RoutingSettings {
    /// The pools with names; those of the routes count from 1, because 0 is the instance's own nodes.
    pub pools: Vec<PoolSettings>,
    /// The routes in the order said, one for each prefix.
    pub routes: Vec<Route>,
}

/// A pool that routes lead to.
#[derive(Debug, Clone, PartialEq)]
pub struct PoolSettings {
    /// Its name.
    pub name: String,
    /// Its nodes, replicas among them.
    pub nodes: Vec<NodeSettings>,
    /// How keys are placed on those that are no replicas.
    pub placement: Scheme,
    /// Which of those answers commands without a key.
    pub default_node: usize,
    /// What becomes of requests to a node that is down.
    pub dead_node: DeadNode,
    /// Whether requests are split whose keys are on several nodes, where they can be.
    pub splits: bool,
}

/// One node.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeSettings {
    /// Unique in its instance: as given, or its address.
    pub name: String,
    /// What it is.
    pub address: NodeAddress,
    /// Its share of the keys relative to the others.
    pub weight: u32,
    /// The node of the same pool whose replica it is. A replica has no keys of its own.
    pub replica_of: Option<String>,
    /// How to authenticate; `None` does not.
    pub credentials: Option<Credentials>,
    /// What its own words say about TLS; `None` does not speak it.
    pub tls: Option<NodeTls>,
}

/// How to authenticate at a node.
#[derive(Debug, Clone, PartialEq)]
pub struct Credentials {
    /// ACL user; `None` sends AUTH with a password alone.
    pub username: Option<String>,
    /// The password.
    pub password: Secret,
}

/// Time allowed; `None` is without bound.
#[derive(Debug, Clone, PartialEq)]
pub struct Timeouts {
    /// To connect to a node, authentication included.
    pub connect: Duration,
    /// From sending a request to its reply.
    pub request: Option<Duration>,
    /// For a node that owes replies to say nothing.
    pub node_silence: Option<Duration>,
    /// For a client to say nothing.
    pub client_idle: Option<Duration>,
    /// For an idle node to say nothing before it is asked whether it is there; `None` never asks.
    pub probe_idle: Option<Duration>,
    /// For it to answer.
    pub probe_patience: Duration,
    /// For a node that comes back to be sent only so much; `None` sends everything at once.
    pub slow_start: Option<Duration>,
    /// How long `PROXY PAUSE` holds a request; `None`: until the pause ends.
    pub pause: Option<Duration>,
    /// Pause before the first reconnect.
    pub reconnect_min: Duration,
    /// Longest pause between reconnects.
    pub reconnect_max: Duration,
}

/// Bytes allowed.
#[derive(Debug, Clone, PartialEq)]
pub struct Budgets {
    /// Replies one client has not taken: over it the client is not read.
    pub client_output_soft: u64,
    /// Replies one client has not taken: over it the client is disconnected.
    pub client_output_hard: u64,
    /// The same of an embedded server for some seconds, of clients that subscribe to nothing and of those that do: bytes, 0 for no
    /// bound, and seconds.
    pub soft_limits: [(u64, u64); 2],
    /// Requests waiting for one node, per worker.
    pub node_queue: u64,
    /// One request: over it, it is passed on in pieces.
    pub request_whole: u64,
}

/// What clients may hold beyond the shared connections.
#[derive(Debug, Clone, PartialEq)]
pub struct Pooling {
    /// For how long a client has a connection to itself.
    pub mode: PoolMode,
    /// Bytes of one transaction's commands.
    pub transaction_bytes_max: u64,
    /// Commands of one transaction.
    pub transaction_commands_max: usize,
    /// Private connections per node and worker.
    pub private_max: usize,
    /// Clean ones that are kept.
    pub private_warm_max: usize,
    /// Connections of clients in pool mode `session`, per node and worker.
    pub session_max: usize,
    /// Messages one subscriber has not taken, in bytes: over it the subscriber is slow.
    pub subscriber_output: u64,
    /// Tracked keys of each worker; 0: no bound.
    pub tracked_keys_max: usize,
    /// What becomes of a slow one.
    pub slow_subscribers: SlowSubscribers,
    /// When requests are written to shared connections.
    pub flush: FlushPolicy,
    /// What PUBLISH answers.
    pub publish_receivers: PublishReceivers,
    /// Connections on which commands wait, per node and worker.
    pub blocking_max: usize,
    /// Commands that wait, per worker.
    pub blocked_commands_max: usize,
}

/// What is looked at and remembered.
#[derive(Debug, Clone, PartialEq)]
pub struct SeeingSettings {
    /// Requests that take longer are kept; `None`: none is.
    pub slow_log_threshold: Option<Duration>,
    /// So many of them, per worker.
    pub slow_log_entries: usize,
    /// One read from a node in so many is a sample; `None`: none is.
    pub sample_every: Option<u32>,
    /// What takes at least so many milliseconds is a sample of an engine's latency monitor; 0: nothing is. A parameter sets it.
    pub latency_ms: u64,
    /// Whether an engine keeps histograms of what commands take. A parameter sets it.
    pub tracks_latency: bool,
    /// What the engine's logs of large requests and of large replies have. Parameters set it.
    pub large_requests: LargeTerms,
    /// The same of replies.
    pub large_replies: LargeTerms,
}

/// Which replies have to be proved before they leave.
#[derive(Debug, Clone, PartialEq)]
pub struct IntegritySettings {
    /// Those of one batch in so many; `None`: none.
    pub every: Option<u32>,
    /// By an echo behind so many requests each; `None`: by one at the batch's end.
    pub run: Option<u32>,
    /// Bytes of them that one connection holds.
    pub held_bytes: u64,
}

/// Limits of one request.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestSettings {
    /// Most elements.
    pub elements_max: usize,
    /// Largest request, in bytes.
    pub request_bytes_max: usize,
    /// Largest bulk string, in bytes.
    pub bulk_bytes_max: usize,
    /// Longest inline request, in bytes.
    pub inline_bytes_max: usize,
}

/// What the buffers of all clients of an embedded server may take together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientMemory {
    /// So many bytes; 0: there is no bound.
    Bytes(u64),
    /// A part of what keys may take, in hundredths.
    Percent(u8),
}

/// The embedded engine.
#[derive(Debug, Clone, PartialEq)]
pub struct EngineSettings {
    /// Engines that share the keys; one is in the worker itself.
    pub threads: usize,
    /// Number of databases.
    pub databases: u32,
    /// What it may hold.
    pub memory_bytes_max: Option<u64>,
    /// What its clients' buffers may take.
    pub client_memory: ClientMemory,
    /// Which keys go when there is no room.
    pub eviction: EvictionPolicy,
    /// Keys that are looked at for one that goes.
    pub eviction_samples: usize,
    /// After what time others are told that a script runs.
    pub busy_reply_threshold: Duration,
    /// The keyspace events that are published.
    pub keyspace_events: EventClasses,
}

impl EngineSettings {
    /// What each of the engines may hold of so many bytes for all of them.
    #[must_use]
    pub fn share_of(&self, bytes: u64) -> u64 {
        bytes.div_ceil(self.threads.max(1) as u64)
    }
}

/// Logs.
#[derive(Debug, Clone, PartialEq)]
pub struct LogSettings {
    /// How much.
    pub level: LogLevel,
    /// How it looks.
    pub format: LogFormat,
}

/// The HTTP side.
#[derive(Debug, Clone, PartialEq)]
pub struct AdminSettings {
    /// Where /metrics, /healthz, /readyz and the dashboard are served; `None` is nowhere.
    pub listen: Option<Address>,
    /// So many nodes in a hundred must be reached for the process to be ready; `None`: none need be.
    pub ready_percent: Option<u32>,
    /// Access to the dashboard, and to orders there.
    pub dashboard: DashboardSettings,
    /// The receiver of metrics.
    pub statsd: StatsdSettings,
}

/// The page of operators and its API.
#[derive(Debug, Clone, PartialEq)]
pub struct DashboardSettings {
    /// Access for reading.
    pub readers: DashboardReaders,
    /// What orders need; `None`: there are none.
    pub token: Option<Secret>,
    /// Names by which browsers may ask for it.
    pub hosts: Vec<String>,
}

/// A statsd server.
#[derive(Debug, Clone, PartialEq)]
pub struct StatsdSettings {
    /// Where it is; `None` is nowhere.
    pub address: Option<Address>,
    /// What names begin with; `None`: as rmux' do.
    pub prefix: Option<String>,
    /// How often it is sent something.
    pub interval: Duration,
}

/// What was understood: the process, and every value for display.
#[derive(Debug, Clone)]
pub struct Resolved {
    /// The settings of the components.
    pub process: Process,
    /// The values of each instance, in the order of `process.instances`, each in the order of the table.
    pub values: Vec<Vec<Value>>,
    /// What is allowed and probably not meant, for a log line.
    pub warnings: Vec<String>,
}

impl Resolved {
    /// The settings that differ, each with the place of its instance in `new`; those of the whole process stand first,
    /// with place 0. Pools are told apart by name; one that is not in both is no change of settings.
    #[must_use]
    pub fn changes_to(&self, new: &Self) -> Vec<(Setting, usize)> {
        let differing = |scope: Scope, old: &[Value], number: usize| {
            let differs = |setting: &&Setting| {
                setting.row().scope == scope && old[**setting as usize] != new.values[number][**setting as usize]
            };
            Setting::ALL.iter().filter(differs).map(|setting| (*setting, number)).collect::<Vec<_>>()
        };
        let mut changes = differing(Scope::Process, &self.values[0], 0);
        for (old, values) in self.process.instances.iter().zip(&self.values) {
            let number = new.process.instances.iter().position(|new| new.name == old.name);
            changes.extend(number.into_iter().flat_map(|number| differing(Scope::Pool, values, number)));
        }
        changes
    }

    /// Whether the same pools are there, by name and in the same order.
    #[must_use]
    pub fn has_pools_of(&self, other: &Self) -> bool {
        self.process.instances.iter().map(|pool| &pool.name).eq(other.process.instances.iter().map(|pool| &pool.name))
    }
}
