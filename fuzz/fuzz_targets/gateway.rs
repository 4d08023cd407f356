//! The whole gateway between hostile clients and hostile nodes: one worker of the proxy, fed by a script of who sends
//! which bytes, who vanishes, which dial fails and how much time passes. Nothing may panic; what clients are sent must be
//! RESP for as long as the nodes' bytes are; nodes are sent only whole canonical requests; and once everybody has left,
//! no byte is held.
#![no_main]

use libfuzzer_sys::fuzz_target;
use respool_command::{Execute, Millis, Outcome, Row, SessionView};
use respool_connection::{Action, ConnId, DialFailure, Endpoint, Machine, Now, Peer, WritePolicy};
use respool_proxy::{
    About, AccessRules, Budgets, Config, Ledger, Mail, NodeConfig, Reconnects, Shared, Timeouts, Worker, WorkerSetup,
};
use respool_route::{Node, Pool, Routes, Scheme, Topology};
use respool_wire::{Args, Encoder, ReplyLimits, ReplyScanner, RequestDecoder, RequestLimits, Scan, Step};
use std::collections::BTreeMap;
use std::sync::Arc;

struct NoEngine;

impl Execute for NoEngine {
    fn execute(&mut self, _: &'static Row, _: Args<'_>, _: &mut SessionView, _: &mut Encoder<'_>) -> Outcome {
        unreachable!("a proxy with nodes asks no engine")
    }

    fn tick(&mut self, _: Millis) -> Option<Millis> {
        None
    }
}

const NODES: usize = 3;

fn config() -> Config {
    let names: Vec<String> = (0..NODES).map(|n| format!("node-{n}")).collect();
    let topology =
        Topology::new(Scheme::default(), names.iter().map(Node::new).collect()).expect("nodes can be placed on");
    let topology = Arc::new(topology);
    let node = |name: &String| NodeConfig {
        name: name.clone(),
        endpoint: Arc::new(Endpoint::Embedded { index: 0 }),
        credentials: None,
    };
    Config {
        nodes: names.iter().map(node).collect(),
        routes: Arc::new(Routes::plain(Pool::plain("main", Arc::clone(&topology)))),
        topology,
        request_limits: RequestLimits { bulk_bytes_max: 1 << 20, ..RequestLimits::default() },
        reply_limits: ReplyLimits { bulk_bytes_max: 1 << 20, ..ReplyLimits::default() },
        timeouts: Timeouts {
            connect_us: 30_000,
            response_us: 50_000,
            silence_us: 200_000,
            client_idle_us: 5_000_000,
            drain_us: 100_000,
            probe_idle_us: 20_000,
            probe_patience_us: 40_000,
            slow_start_us: 10_000,
        },
        reconnects: Reconnects { backoff_min_us: 100, backoff_max_us: 10_000, dials_per_second: 100 },
        budgets: Budgets {
            client_output_soft: 2_000,
            client_output_hard: 200_000,
            upstream_queue: 4_000,
            request_whole: 1 << 20,
            process: 1 << 20,
        },
        clients_max: 8,
        databases: 16,
        write_policy: WritePolicy::ReplyClock,
        seeing: Default::default(),
        dials_ahead: false,
        integrity: Default::default(),
        allows_admin: true,
        subscriptions: respool_proxy::SubscriptionTerms::default(),
        lanes: respool_proxy::LaneLimits::default(),
        access: AccessRules::default(),
    }
}

/// A client's end: what it is sent is read as RESP.
#[derive(Default)]
struct ClientEnd {
    scanner: ReplyScanner,
}

/// A node's end: what it is sent is read as requests.
#[derive(Default)]
struct NodeEnd {
    decoder: RequestDecoder,
    received: Vec<u8>,
}

struct World {
    worker: Worker<NoEngine>,
    now_us: u64,
    clients: BTreeMap<u32, ClientEnd>,
    lanes: BTreeMap<u32, NodeEnd>,
    dialing: Vec<u32>,
    is_over: bool,
}

impl World {
    fn deliver(&mut self, conn: ConnId, mut bytes: &[u8]) {
        while !bytes.is_empty() && self.is_open(conn) {
            let Some(buffer) = self.worker.read_buffer(conn) else { return };
            let taken = bytes.len().min(buffer.len());
            buffer[..taken].copy_from_slice(&bytes[..taken]);
            self.worker.handle_read(conn, taken);
            bytes = &bytes[taken..];
            self.act();
        }
    }

    fn is_open(&self, conn: ConnId) -> bool {
        let index = conn.index() as u32;
        if conn.is_upstream() { self.lanes.contains_key(&index) } else { self.clients.contains_key(&index) }
    }

    fn act(&mut self) {
        while let Some(action) = self.worker.poll_action() {
            match action {
                Action::Dial { conn, .. } => self.dialing.push(conn.index() as u32),
                Action::Close { conn } if conn.is_upstream() => {
                    self.lanes.remove(&(conn.index() as u32));
                    self.dialing.retain(|lane| *lane != conn.index() as u32);
                }
                Action::Close { conn } | Action::Finish { conn } => {
                    self.clients.remove(&(conn.index() as u32)).expect("only what is open is closed");
                }
                Action::Exit => self.is_over = true,
                Action::Resume { .. } | Action::StopAccepting => {}
                Action::Post { .. } => unreachable!("there is one worker"),
            }
        }
    }

    /// What the loop does at the end of a turn, until the machine wants nothing more.
    fn settle(&mut self, share: usize) {
        self.worker.end_turn();
        for _ in 0..64 {
            self.act();
            match self.worker.poll_output() {
                Some(conn) => self.write(conn, share),
                None => break,
            }
        }
        // Looking at a client may have closed it.
        self.act();
    }

    fn write(&mut self, conn: ConnId, share: usize) {
        let bytes = self.worker.output(conn).to_vec();
        assert!(!bytes.is_empty(), "only what wants to be written is listed");
        let taken = bytes.len().min(share);
        let index = conn.index() as u32;
        if conn.is_upstream() {
            let end = self.lanes.get_mut(&index).expect("only what is open is written to");
            end.received.extend_from_slice(&bytes[..taken]);
            end.read();
        } else {
            self.clients.get_mut(&index).expect("only what is open is written to").read(&bytes[..taken]);
        }
        self.worker.handle_written(conn, taken);
        if taken < bytes.len() {
            self.worker.handle_writable(conn);
        }
    }

    fn begin(&mut self, passed_us: u64) {
        self.now_us += passed_us;
        self.worker.begin_turn(Now { mono_us: self.now_us, unix_us: self.now_us });
    }

    /// One step of the script.
    fn step(&mut self, verb: u8, who: u8, bytes: &[u8]) {
        self.begin(u64::from(who) * 10);
        let client = self.clients.keys().copied().nth(usize::from(who) % self.clients.len().max(1));
        let lane = self.lanes.keys().copied().nth(usize::from(who) % self.lanes.len().max(1));
        match verb % 16 {
            0..=3 => {
                if let Some(index) = client {
                    self.deliver(ConnId::client(index), bytes);
                }
            }
            4..=7 => {
                if let Some(lane) = lane {
                    self.deliver(ConnId::upstream(lane), bytes);
                }
            }
            8 => {
                if let Ok(conn) = self.worker.handle_accept(Peer::default()) {
                    self.clients.insert(conn.index() as u32, ClientEnd::default());
                }
            }
            9 => {
                if let Some(lane) = self.dialing.pop() {
                    if who.is_multiple_of(4) {
                        self.worker.handle_dial_failed(ConnId::upstream(lane), DialFailure::TimedOut);
                    } else {
                        self.lanes.insert(lane, NodeEnd::default());
                        self.worker.handle_connected(ConnId::upstream(lane));
                    }
                }
            }
            10 => {
                // The handshake as it should be, so that the script gets past it.
                for lane in self.lanes.keys().copied().collect::<Vec<_>>() {
                    self.deliver(ConnId::upstream(lane), if who.is_multiple_of(2) { b"+PONG\r\n" } else { b"+OK\r\n" });
                }
            }
            11 => {
                if let Some(index) = client {
                    self.clients.remove(&index);
                    self.worker.handle_broken(ConnId::client(index), "gone");
                }
            }
            12 => {
                if let Some(index) = client {
                    self.worker.handle_ended(ConnId::client(index));
                }
            }
            13 => {
                if let Some(lane) = lane {
                    if who.is_multiple_of(2) {
                        self.lanes.remove(&lane);
                        self.worker.handle_broken(ConnId::upstream(lane), "reset");
                    } else {
                        self.worker.handle_ended(ConnId::upstream(lane));
                    }
                }
            }
            14 => self.begin(u64::from(who) * 4_000),
            _ => {
                if bytes.len() == 3 {
                    self.worker.handle_mail(Mail::Drain);
                }
            }
        }
        self.settle(if who > 200 { 7 } else { usize::MAX });
    }
}

impl NodeEnd {
    fn read(&mut self) {
        let mut used = 0;
        loop {
            match self.decoder.decode(&self.received[used..], &RequestLimits::default()) {
                Ok(Step::Request(request)) => {
                    assert!(request.raw.is_some(), "a request is canonical");
                    used += request.consumed;
                }
                Ok(Step::Incomplete) => break,
                other => panic!("a node was sent {other:?}"),
            }
        }
        self.received.drain(..used);
    }
}

impl ClientEnd {
    fn read(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            match self.scanner.scan(bytes, &ReplyLimits::default()).expect("a client is sent RESP") {
                Scan::Complete { consumed, .. } => bytes = &bytes[consumed..],
                Scan::Partial => break,
            }
        }
    }
}

fuzz_target!(|script: &[u8]| {
    let shared = Arc::new(Shared::new(1, 0, About::default(), Arc::new(Ledger::default())));
    let setup =
        WorkerSetup { config: Arc::new(config()), shared: Arc::clone(&shared), number: 0, engine: None, entropy: 7 };
    let mut world = World {
        worker: Worker::new(setup),
        now_us: 1_000_000,
        clients: BTreeMap::new(),
        lanes: BTreeMap::new(),
        dialing: Vec::new(),
        is_over: false,
    };
    let mut rest = script;
    while let [verb, who, length, tail @ ..] = rest {
        let (bytes, next) = tail.split_at(tail.len().min(usize::from(*length)));
        rest = next;
        world.step(*verb, *who, bytes);
        if world.is_over {
            return;
        }
    }
    world.begin(1);
    for index in std::mem::take(&mut world.clients).into_keys() {
        world.worker.handle_broken(ConnId::client(index), "gone");
    }
    for lane in std::mem::take(&mut world.lanes).into_keys() {
        world.worker.handle_broken(ConnId::upstream(lane), "gone");
    }
    world.settle(usize::MAX);
    assert_eq!((shared.ledger.clients(), shared.ledger.held_bytes()), (0, 0));
});
