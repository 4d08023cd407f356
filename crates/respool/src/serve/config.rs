//! From what the settings mean to what each component is told.

use std::sync::Arc;
use std::time::Duration;

use respool_connection::{Credentials, Endpoint, WritePolicy};
use respool_proxy::{Budgets, Config, NodeConfig, Reconnects, Timeouts};
use respool_route::{Node, NodeIndex, PlacementError, Scheme, Topology};
use respool_wire::{ReplyLimits, RequestLimits, Strictness};

use crate::settings::{Address, EngineSettings, Instance, NodeAddress, NodeSettings, Process};

/// What the proxy of `instance` is told.
pub(super) fn proxy(process: &Process, instance: &Instance) -> Result<Config, PlacementError> {
    let settings = &instance.proxy;
    let topology = match settings.nodes.is_empty() {
        true => only_here()?,
        false => {
            let nodes = settings.nodes.iter().map(|node| Node::new(&*node.name).with_weight(node.weight)).collect();
            Topology::new(settings.placement, nodes)?.with_default_node(NodeIndex::new(settings.default_node))
        }
    };
    let mut engines = 0..;
    let nodes = settings.nodes.iter().map(|node| node_config(node, &mut engines)).collect();
    let strictness = if instance.is_embedded() { Strictness::Lenient } else { Strictness::Strict };
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
        topology: Arc::new(topology),
        request_limits,
        reply_limits: ReplyLimits::default(),
        timeouts: Timeouts {
            connect_us: micros(timeouts.connect),
            response_us: timeouts.request.map_or(u64::MAX, micros),
            silence_us: timeouts.node_silence.map_or(u64::MAX, micros),
            client_idle_us: timeouts.client_idle.map_or(0, micros),
            drain_us: micros(process.drain_timeout),
        },
        reconnects: Reconnects {
            backoff_min_us: micros(timeouts.reconnect_min),
            backoff_max_us: micros(timeouts.reconnect_max),
            dials_per_second: u64::from(process.connects_per_second_max),
        },
        budgets: Budgets {
            client_output_soft: saturating(settings.budgets.client_output_soft),
            client_output_hard: saturating(settings.budgets.client_output_hard),
            upstream_queue: saturating(settings.budgets.node_queue),
            process: saturating(process.buffer_bytes_max),
        },
        clients_max: process.clients_max,
        databases: instance.engine.databases,
        write_policy: WritePolicy::ReplyClock,
    })
}

/// What the engine behind an embedded node is told. Its only clients are the workers of this process, whose own limits
/// have been applied before.
pub(super) fn embedded_node(process: &Process, engine: &EngineSettings) -> Config {
    Config {
        nodes: Vec::new(),
        topology: Arc::new(only_here().expect("one unweighted node can be placed on by any rule")),
        request_limits: RequestLimits::authenticated(Strictness::Strict),
        reply_limits: ReplyLimits::default(),
        timeouts: Timeouts {
            connect_us: u64::MAX,
            response_us: u64::MAX,
            silence_us: u64::MAX,
            client_idle_us: 0,
            drain_us: micros(process.drain_timeout),
        },
        reconnects: Reconnects { backoff_min_us: 1, backoff_max_us: 1, dials_per_second: 1 },
        budgets: Budgets {
            client_output_soft: saturating(process.buffer_bytes_max),
            client_output_hard: usize::MAX,
            upstream_queue: usize::MAX,
            process: usize::MAX,
        },
        clients_max: usize::MAX,
        databases: engine.databases,
        write_policy: WritePolicy::EachTurn,
    }
}

/// The topology of a server without nodes: everything is here.
fn only_here() -> Result<Topology, PlacementError> {
    Topology::new(Scheme::default(), vec![Node::new("embedded")])
}

fn node_config(node: &NodeSettings, engines: &mut impl Iterator<Item = usize>) -> NodeConfig {
    let endpoint = match &node.address {
        NodeAddress::Remote(address) => endpoint(address),
        NodeAddress::Embedded => Endpoint::Embedded { index: engines.next().unwrap_or_default() },
    };
    let credentials = node.credentials.as_ref().map(|credentials| {
        let password = credentials.password.reveal().to_owned();
        Arc::new(Credentials { username: credentials.username.clone(), password })
    });
    NodeConfig { name: node.name.clone(), endpoint: Arc::new(endpoint), credentials }
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

fn saturating(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
