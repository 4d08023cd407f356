//! What tests around one worker have in common: its settings, its loop, and an engine without data.

use respool_command::{EventClasses, Execute, Millis, Outcome, Row, SessionView};
use respool_connection::{Action, ConnId, Endpoint, FlushPolicy, Machine, ServiceAction};
use respool_proxy::{Budgets, Config, LaneLimits, Mail, NodeConfig, Reconnects, SubscriptionTerms, Timeouts, Worker};
use respool_route::{Node, Pool, Routes, Scheme, Topology};
use respool_wire::{Args, Encoder, ReplyLimits, RequestLimits};
use std::sync::Arc;

/// No data here.
#[derive(Debug)]
pub(crate) struct NoEngine;

impl Execute for NoEngine {
    fn execute(&mut self, _: &'static Row, _: Args<'_>, _: &mut SessionView, _: &mut Encoder<'_>) -> Outcome {
        unreachable!("a proxy with nodes asks no engine")
    }

    fn tick(&mut self, _: Millis) -> Option<Millis> {
        None
    }
}

/// Rounds after which a worker is taken for one that never has enough.
const ROUNDS_MAX: usize = 10_000;

/// The end of a turn, as the loop does it: does what the worker wants until it wants no more. The loop sleeps then, so nothing may be
/// left to be written.
pub(crate) fn settle<T, E: Execute>(
    this: &mut T,
    worker: impl Fn(&mut T) -> &mut Worker<E>,
    mut act: impl FnMut(&mut T, Action<ServiceAction<Mail>>),
    mut write: impl FnMut(&mut T, ConnId),
) {
    for _ in 0..ROUNDS_MAX {
        while let Some(action) = worker(this).poll_action() {
            act(this, action);
        }
        while let Some(conn) = worker(this).poll_output() {
            write(this, conn);
        }
        // Looking for output may have produced something to do.
        match worker(this).poll_action() {
            Some(action) => act(this, action),
            None => {
                assert_eq!(worker(this).poll_output(), None, "it has something to write, and the loop sleeps");
                return;
            }
        }
    }
    panic!("a turn ends");
}

/// Nodes by slots, short times and small budgets: what is rare elsewhere happens all the time.
pub(crate) fn config(nodes: usize, seed: u64) -> Config {
    let names: Vec<String> = (0..nodes).map(|n| format!("node-{n}")).collect();
    let topology = Arc::new(Topology::new(Scheme::default(), names.iter().map(Node::new).collect()).unwrap());
    let node = |(number, name): (usize, &String)| NodeConfig {
        name: name.clone(),
        endpoint: Arc::new(Endpoint::Embedded { index: number }),
        credentials: None,
    };
    Config {
        access: respool_proxy::AccessRules::default(),
        nodes: names.iter().enumerate().map(node).collect(),
        routes: Arc::new(Routes::plain(Pool::plain("main", Arc::clone(&topology)))),
        topology,
        request_limits: RequestLimits::default(),
        reply_limits: ReplyLimits::default(),
        timeouts: Timeouts {
            connect_us: 300_000,
            response_us: 500_000,
            silence_us: 2_000_000,
            client_idle_us: 0,
            drain_us: 1_000_000,
            pause_us: 0,
            probe_idle_us: 0,
            probe_patience_us: 0,
            slow_start_us: 0,
        },
        reconnects: Reconnects { backoff_min_us: 1_000, backoff_max_us: 50_000, redials_per_second: 1_000 },
        budgets: Budgets {
            client_output_soft: 64 * 1024,
            client_output_hard: 4 << 20,
            clients: usize::MAX,
            soft_limits: Default::default(),
            upstream_queue: 1 << 20,
            request_whole: 1 << 20,
            process: 256 << 20,
        },
        clients_max: 1_000,
        databases: 16,
        keyspace_events: EventClasses::NONE,
        flush: match (seed % 2, seed % 3) {
            (0, 0) => FlushPolicy::Immediate,
            (0, many) => FlushPolicy::Adaptive { delay_us_max: many * 100 },
            _ => FlushPolicy::EachTurn,
        },
        seeing: Default::default(),
        dials_ahead: false,
        integrity: Default::default(),
        allows_admin: true,
        is_server: false,
        trusts_clients: false,
        subscriptions: SubscriptionTerms::default(),
        lanes: LaneLimits::default(),
    }
}
