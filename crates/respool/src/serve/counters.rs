//! The proxy's counters as samples for `/metrics`.

use std::sync::{Arc, OnceLock};

use respool_proxy::observe::counters::{Counters, Kind};
use respool_proxy::{Measured, NodeReach, ProcessBudget, Shared};

use crate::admin::{Family, Histogram, Labels, Reading, Sample};

/// One family per counter, in the counters' own order.
fn families() -> &'static [Family] {
    static FAMILIES: OnceLock<Vec<Family>> = OnceLock::new();
    FAMILIES.get_or_init(|| {
        let counters = Counters::default();
        counters.each().map(|(name, help, _, _)| Family { name, help }).collect()
    })
}

/// Reads the counters of every worker of one proxy. Those of several proxies are told apart by a label.
pub(super) fn source(shared: Arc<Shared>, name: &str, is_one_of_several: bool) -> impl Fn() -> Vec<Sample> + use<> {
    let labels = if is_one_of_several { vec![("pool", name.to_owned())] } else { Vec::new() };
    move || {
        let of_worker = |counters: &Arc<Counters>| {
            let figures = families().iter().zip(counters.each());
            let samples = figures.map(|(family, (_, _, kind, value))| {
                let reading = match kind {
                    Kind::Total => Reading::Counter(value),
                    Kind::Gauge => Reading::Gauge(i64::try_from(value).unwrap_or(i64::MAX)),
                };
                Sample { family, labels: labels.clone(), reading }
            });
            samples.collect::<Vec<_>>()
        };
        let durations = shared.measured().into_iter().map(|measured| durations(&measured, &labels));
        let nodes = shared.nodes().into_iter().flat_map(|node| reach(&node, &labels));
        shared.counters.iter().flat_map(of_worker).chain(durations).chain(nodes).collect()
    }
}

static HELD: Family = Family { name: "held_bytes", help: "Bytes held for clients and nodes now." };

/// The bytes held by the process: one figure for all workers and instances.
pub(super) fn held(ledger: Arc<ProcessBudget>) -> impl Fn() -> Vec<Sample> {
    move || {
        let bytes = i64::try_from(ledger.held_bytes()).unwrap_or(i64::MAX);
        vec![Sample { family: &HELD, labels: Vec::new(), reading: Reading::Gauge(bytes) }]
    }
}

static NODE_UP: Family =
    Family { name: "node_up", help: "Whether some worker is connected to a node, or it refuses the proxy alone." };
static NODE_UNFIT: Family = Family {
    name: "node_unfit",
    help: "Whether a node is a Redis Cluster's member, a Sentinel, or a replica where a primary is meant.",
};
static NODE_DRAINED: Family =
    Family { name: "node_drained", help: "Whether an operator lets nothing be sent to a node." };
static NODE_CONNECTIONS: Family = Family { name: "node_connections", help: "Connections to a node." };

fn reach(node: &NodeReach, labels: &Labels) -> [Sample; 4] {
    let mut labels = labels.clone();
    labels.push(("node", node.name.clone()));
    let connections = i64::try_from(node.connections).unwrap_or(i64::MAX);
    let gauge = |family, is_so: bool| Sample { family, labels: labels.clone(), reading: Reading::Gauge(is_so.into()) };
    let (up, unfit) = (gauge(&NODE_UP, node.is_there), gauge(&NODE_UNFIT, node.misfit.is_some()));
    let drained = gauge(&NODE_DRAINED, node.is_drained);
    [up, unfit, drained, Sample { family: &NODE_CONNECTIONS, labels, reading: Reading::Gauge(connections) }]
}

static ROUND_TRIPS: Family =
    Family { name: "node_round_trip_seconds", help: "From writing a batch of requests to a node to its last reply." };
static COMMANDS: Family =
    Family { name: "command_seconds", help: "From writing a request to a node to its reply, in a sample of requests." };

/// Bounds of the ranges that are shown, as powers of two in microseconds: 64 us to 17 s.
const BOUNDS: std::ops::RangeInclusive<u32> = 6..=24;

fn durations(measured: &Measured, labels: &Labels) -> Sample {
    let is_node = measured.kind == "node";
    let mut labels = labels.clone();
    labels.push((measured.kind, measured.name.clone()));
    let (mut below, mut buckets) = (0, Vec::new());
    for bound in BOUNDS {
        let bound_us = (1_u64 << bound) - 1;
        let up_to = measured.histogram.up_to(bound_us);
        buckets.push(((bound_us + 1) as f64 / 1e6, up_to - below));
        below = up_to;
    }
    buckets.push((f64::INFINITY, measured.histogram.count().saturating_sub(below)));
    let histogram = Histogram { sum: measured.histogram.sum_us() as f64 / 1e6, buckets };
    Sample { family: if is_node { &ROUND_TRIPS } else { &COMMANDS }, labels, reading: Reading::Histogram(histogram) }
}
