//! From what the settings mean to what each component is told.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use respool_connection::{Credentials, Endpoint, FlushPolicy};
use respool_net::TransportOptions;
use respool_proxy::observe::terms::Terms;
use respool_proxy::{
    AccessRules, Budgets, Config, IntegrityTerms, LaneLimits, NodeConfig, Reconnects, SoftLimit, SoftLimits,
    SubscriptionTerms, Timeouts,
};
use respool_route::{Node, NodeIndex, NodePlace, PlacementError, Pool, Routes, RoutesError, Scheme, Topology};
use respool_wire::{ReplyLimits, RequestLimits, Strictness};

use crate::settings::config::{ClientMemory, PoolSettings, SeeingSettings};
use crate::settings::{Address, EngineSettings, Instance, NodeAddress, NodeSettings, Process};

/// The configuration of an instance's proxy. `clients_max` replaces the setting, see [`super::files`].
pub(super) fn proxy(process: &Process, instance: &Instance, clients_max: usize) -> Result<Config, Unfit> {
    let settings = &instance.proxy;
    let routes = match settings.nodes.is_empty() {
        true => Routes::plain(Pool::plain(OWN_POOL, Arc::new(only_here()?))),
        false => routes(instance)?,
    };
    let mut engines = 0..;
    let nodes = instance.nodes().map(|node| node_config(node, &mut engines)).collect();
    let strictness = if instance.is_server() { Strictness::Lenient } else { Strictness::Strict };
    let request_limits = RequestLimits {
        elements_max: settings.requests.elements_max,
        bulk_bytes_max: settings.requests.bulk_bytes_max,
        inline_bytes_max: settings.requests.inline_bytes_max,
        request_bytes_max: settings.requests.request_bytes_max,
        ..RequestLimits::authenticated(strictness)
    };
    let timeouts = &settings.timeouts;
    Ok(Config {
        nodes,
        topology: Arc::clone(&routes.pools()[0].topology),
        routes: Arc::new(routes),
        request_limits,
        reply_limits: ReplyLimits::default(),
        timeouts: if instance.has_engine_threads() {
            Timeouts { client_idle_us: timeouts.client_idle.map_or(0, micros), ..without_limits(process) }
        } else {
            Timeouts {
                connect_us: micros(timeouts.connect),
                response_us: timeouts.request.map_or(u64::MAX, micros),
                silence_us: timeouts.node_silence.map_or(u64::MAX, micros),
                client_idle_us: timeouts.client_idle.map_or(0, micros),
                probe_idle_us: timeouts.probe_idle.map_or(0, micros),
                probe_patience_us: micros(timeouts.probe_patience),
                slow_start_us: timeouts.slow_start.map_or(0, micros),
                drain_us: micros(process.drain_timeout),
                pause_us: timeouts.pause.map_or(0, micros),
            }
        },
        reconnects: Reconnects {
            backoff_min_us: micros(timeouts.reconnect_min),
            backoff_max_us: micros(timeouts.reconnect_max),
            redials_per_second: u64::from(process.redials_per_second_max),
        },
        budgets: Budgets {
            client_output_soft: saturating(settings.budgets.client_output_soft),
            client_output_hard: saturating(settings.budgets.client_output_hard),
            clients: if instance.is_server() { client_bytes(&instance.engine) } else { usize::MAX },
            soft_limits: if instance.is_server() {
                soft_limits(settings.budgets.soft_limits)
            } else {
                Default::default()
            },
            upstream_queue: saturating(settings.budgets.node_queue),
            request_whole: saturating(settings.budgets.request_whole),
            process: saturating(process.buffer_bytes_max),
        },
        lanes: LaneLimits {
            mode: settings.pooling.mode,
            transaction_bytes_max: saturating(settings.pooling.transaction_bytes_max),
            transaction_commands_max: settings.pooling.transaction_commands_max,
            private_max: settings.pooling.private_max,
            private_warm_max: settings.pooling.private_warm_max,
            session_max: settings.pooling.session_max,
            blocking_max: settings.pooling.blocking_max,
            blocked_commands_max: settings.pooling.blocked_commands_max,
        },
        clients_max,
        databases: instance.engine.databases,
        keyspace_events: instance.engine.keyspace_events,
        flush: settings.pooling.flush,
        seeing: terms(&settings.seeing),
        dials_ahead: true,
        integrity: IntegrityTerms {
            every: settings.integrity.every.unwrap_or(0),
            run: settings.integrity.run.unwrap_or(0),
            held_bytes: saturating(settings.integrity.held_bytes),
        },
        allows_admin: settings.allows_admin || instance.has_engine_threads(),
        is_server: instance.has_engine_threads(),
        trusts_clients: false,
        subscriptions: SubscriptionTerms {
            output_bytes: saturating(settings.pooling.subscriber_output),
            tracked_keys_max: settings.pooling.tracked_keys_max,
            slow: settings.pooling.slow_subscribers,
            receivers: settings.pooling.publish_receivers,
        },
        access: super::access::rules(&process.users),
    })
}

fn terms(seeing: &SeeingSettings) -> Terms {
    Terms {
        slow_us: seeing.slow_log_threshold.map_or(u64::MAX, micros),
        slow_entries: seeing.slow_log_entries,
        sample_every: seeing.sample_every.unwrap_or(0),
        latency_ms: seeing.latency_ms,
        tracks_latency: seeing.tracks_latency,
        large_requests: seeing.large_requests,
        large_replies: seeing.large_replies,
    }
}

/// Times where nothing but this process may take long: what is asked of an engine is waited for, as by the clients of a server.
fn without_limits(process: &Process) -> Timeouts {
    Timeouts {
        connect_us: u64::MAX,
        response_us: u64::MAX,
        silence_us: u64::MAX,
        client_idle_us: 0,
        probe_idle_us: 0,
        probe_patience_us: 0,
        slow_start_us: 0,
        drain_us: micros(process.drain_timeout),
        pause_us: 0,
    }
}

/// What the engine behind an embedded node is told. Its only clients are the workers of this process, whose own limits
/// have been applied before.
pub(super) fn embedded_node(process: &Process, instance: &Instance) -> Config {
    let engine = &instance.engine;
    let topology = Arc::new(only_here().expect("one unweighted node can be placed on by any rule"));
    Config {
        nodes: Vec::new(),
        routes: Arc::new(Routes::plain(Pool::plain(OWN_POOL, Arc::clone(&topology)))),
        topology,
        request_limits: of_any_size(),
        reply_limits: ReplyLimits::default(),
        timeouts: without_limits(process),
        reconnects: Reconnects { backoff_min_us: 1, backoff_max_us: 1, redials_per_second: 1 },
        budgets: Budgets {
            client_output_soft: saturating(process.buffer_bytes_max),
            client_output_hard: usize::MAX,
            clients: usize::MAX,
            soft_limits: SoftLimits::default(),
            upstream_queue: usize::MAX,
            request_whole: usize::MAX,
            process: usize::MAX,
        },
        // A worker has seen to its transactions and to blocked requests.
        lanes: LaneLimits {
            transaction_bytes_max: usize::MAX,
            transaction_commands_max: usize::MAX,
            blocked_commands_max: usize::MAX,
            ..LaneLimits::default()
        },
        clients_max: usize::MAX,
        databases: engine.databases,
        keyspace_events: engine.keyspace_events,
        flush: FlushPolicy::EachTurn,
        seeing: if instance.has_engine_threads() { terms(&instance.proxy.seeing) } else { Terms::default() },
        dials_ahead: false,
        integrity: IntegrityTerms::default(),
        // The rights of the asker were checked before.
        allows_admin: true,
        is_server: false,
        trusts_clients: engine.threads > 1,
        subscriptions: SubscriptionTerms::default(),
        access: AccessRules::default(),
    }
}

/// What a worker has let pass is not refused at the engine: that would end a connection which clients share.
fn of_any_size() -> RequestLimits {
    RequestLimits {
        elements_max: usize::MAX,
        bulk_bytes_max: usize::MAX,
        inline_bytes_max: usize::MAX,
        request_bytes_max: usize::MAX,
        ..RequestLimits::authenticated(Strictness::Strict)
    }
}

/// What the pool is called that an instance's own nodes make.
const OWN_POOL: &str = "main";

/// The pools of an instance over the list of all its nodes, and the routes to them.
fn routes(instance: &Instance) -> Result<Routes, Unfit> {
    let settings = &instance.proxy;
    let own = PoolSettings {
        name: OWN_POOL.to_owned(),
        nodes: settings.nodes.clone(),
        placement: settings.placement,
        default_node: settings.default_node,
        dead_node: settings.dead_node,
        splits: settings.splits,
    };
    let places: HashMap<&str, NodePlace> =
        instance.nodes().enumerate().map(|(place, node)| (node.name.as_str(), NodePlace::new(place))).collect();
    let mut first = 0;
    let mut pools = Vec::new();
    for pool in std::iter::once(&own).chain(&settings.routing.pools) {
        let primaries = || pool.nodes.iter().filter(|node| node.replica_of.is_none());
        let nodes: Vec<Node> = primaries().map(|node| Node::new(&*node.name).with_weight(node.weight)).collect();
        let count = nodes.len();
        let topology = Topology::new(pool.placement, nodes)?.with_default_node(NodeIndex::new(pool.default_node));
        let topology = topology.with_splits(pool.splits);
        let replicas_of = |primary: &NodeSettings| {
            let is_its = |node: &&NodeSettings| node.replica_of.as_ref() == Some(&primary.name);
            pool.nodes.iter().filter(is_its).filter_map(|node| places.get(node.name.as_str()).copied()).collect()
        };
        pools.push(Pool {
            name: pool.name.as_str().into(),
            topology: Arc::new(topology),
            first: NodePlace::new(first),
            replicas: primaries().map(replicas_of).collect(),
            dead_node: pool.dead_node,
        });
        first += count;
    }
    Ok(Routes::new(pools, settings.routing.routes.clone())?)
}

/// Why settings that were understood cannot be served.
#[derive(Debug)]
pub(super) enum Unfit {
    Placement(PlacementError),
    Routes(RoutesError),
}

impl std::fmt::Display for Unfit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Placement(error) => error.fmt(f),
            Self::Routes(error) => error.fmt(f),
        }
    }
}

impl From<PlacementError> for Unfit {
    fn from(error: PlacementError) -> Self {
        Self::Placement(error)
    }
}

impl From<RoutesError> for Unfit {
    fn from(error: RoutesError) -> Self {
        Self::Routes(error)
    }
}

/// The topology of a server without nodes: everything is here.
fn only_here() -> Result<Topology, PlacementError> {
    Topology::new(Scheme::default(), vec![Node::new("embedded")])
}

fn node_config(node: &NodeSettings, engines: &mut impl Iterator<Item = usize>) -> NodeConfig {
    let endpoint = match (&node.address, &node.tls) {
        (NodeAddress::Remote(Address::Tcp { host, port }), Some(tls)) => Endpoint::Tls {
            host: host.clone(),
            port: *port,
            server_name: tls.server_name.as_ref().unwrap_or(host).clone(),
            profile: super::tls::profile(tls),
        },
        (NodeAddress::Remote(address), _) => endpoint(address),
        (NodeAddress::Embedded, _) => Endpoint::Embedded { index: engines.next().unwrap_or_default() },
    };
    let credentials = node.credentials.as_ref().map(|credentials| {
        let password = credentials.password.reveal().to_owned().into();
        Arc::new(Credentials { username: credentials.username.clone(), password })
    });
    NodeConfig { name: node.name.clone(), endpoint: Arc::new(endpoint), credentials }
}

/// The options of clients' connections and of those to nodes. A node that vanishes is missed sooner than a client: the
/// kernel asks once a second whether a silent one is there.
pub(super) fn transports(instance: &Instance) -> (TransportOptions, TransportOptions) {
    let (keepalive, user_timeout) = (instance.net.keepalive, instance.net.user_timeout);
    let names_interval = instance.net.names_interval;
    let of_clients = TransportOptions { keepalive, user_timeout, names_interval };
    let of_nodes = match instance.net.node_timeout {
        Some(timeout) => {
            let (keepalive, user_timeout) = (Some(Duration::from_secs(1)), Some(timeout));
            TransportOptions { keepalive, user_timeout, names_interval }
        }
        None => of_clients,
    };
    (of_clients, of_nodes)
}

/// Where an address is.
pub(super) fn endpoint(address: &Address) -> Endpoint {
    match address {
        Address::Any { port } => Endpoint::Tcp { host: String::new(), port: *port },
        Address::Tcp { host, port } => Endpoint::Tcp { host: host.clone(), port: *port },
        Address::Unix { path } => Endpoint::Unix { path: path.display().to_string() },
    }
}

/// The address with the port that was found, if any free one was asked for.
pub(super) fn with_port(address: &Address, found: Option<u16>) -> Address {
    match (address, found) {
        (Address::Any { .. }, Some(port)) => Address::Any { port },
        (Address::Tcp { host, .. }, Some(port)) => Address::Tcp { host: host.clone(), port },
        _ => address.clone(),
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// Soft limits as the worker has them.
fn soft_limits([normal, subscriber]: [(u64, u64); 2]) -> SoftLimits {
    let limit = |(bytes, seconds): (u64, u64)| match bytes {
        0 => SoftLimit::default(),
        _ => SoftLimit { bytes: saturating(bytes), us: seconds.saturating_mul(1_000_000) },
    };
    SoftLimits { normal: limit(normal), subscriber: limit(subscriber) }
}

/// What the buffers of all clients may take, as in redis-server at least 128 KB.
fn client_bytes(engine: &EngineSettings) -> usize {
    let bytes = match engine.client_memory {
        ClientMemory::Bytes(bytes) => bytes,
        ClientMemory::Percent(percent) => engine.memory_bytes_max.unwrap_or(0) / 100 * u64::from(percent),
    };
    if bytes == 0 { usize::MAX } else { saturating(bytes.max(128 << 10)) }
}

fn saturating(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
