//! The whole gateway between hostile clients and hostile nodes: one worker of the proxy, fed by a script of who sends
//! which bytes, who vanishes, which dial fails and how much time passes. Nothing may panic; what clients are sent must be
//! RESP for as long as the nodes' bytes are; nodes are sent only whole canonical requests; and once all clients have left,
//! no byte is held.
//!
//! The first byte of a script says how the gateway is set up (pool mode, proved replies, routes, users, old nodes); the rest
//! is steps. Bytes may be anything; so that scripts get far, clients can also say what is in [`SAID`], and nodes can answer
//! what they were asked, as they should or with what they should not.
#![no_main]

use libfuzzer_sys::fuzz_target;
use respool_command::{EventClasses, Execute, Millis, Outcome, Row, SessionView};
use respool_connection::{
    Action, ConnId, Credentials, DialFailure, Endpoint, FlushPolicy, Machine, Now, Peer, Service, ServiceAction,
    WorkerId,
};
use respool_proxy::limits::RETURN_US_MAX;
use respool_proxy::{
    Access, AccessRules, Budgets, Config, IntegrityTerms, LaneLimits, Mail, NodeConfig, PoolMode, ProcessBudget,
    ProcessFacts, Reconnects, Shared, Timeouts, UserLimits, Worker, WorkerSetup,
};
use respool_route::{DeadNode, Node, NodePlace, Pool, Reads, Rewrite, Route, Routes, Scheme, Topology, When};
use respool_wire::{Args, Encoder, ReplyError, ReplyLimits, ReplyScanner, RequestDecoder, RequestLimits, Scan, Step};
use std::collections::{BTreeMap, VecDeque};
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

/// What clients say by the number of its line. Keys are few, so that clients meet.
const SAID: [&str; 64] = [
    "GET a",
    "SET a 1",
    "MGET a b c d",
    "MSET a 1 b 2 c 3",
    "DEL a b c",
    "INCR x:n",
    "LRANGE l 0 -1",
    "GET x:b",
    "MULTI",
    "EXEC",
    "DISCARD",
    "WATCH a",
    "WATCH a b",
    "UNWATCH",
    "BLPOP l 0",
    "BLPOP l 0.01",
    "BLMOVE l m LEFT RIGHT 0",
    "XREAD BLOCK 0 STREAMS s $",
    "WAIT 1 10",
    "SELECT 1",
    "SELECT 7",
    "SELECT 0",
    "HELLO 3",
    "HELLO 2",
    "AUTH ann secret",
    "AUTH bob secret",
    "AUTH ann wrong",
    "RESET",
    "QUIT",
    "SUBSCRIBE c d",
    "PSUBSCRIBE c*",
    "UNSUBSCRIBE",
    "PUBLISH c m",
    "SSUBSCRIBE s",
    "CLIENT TRACKING ON",
    "CLIENT TRACKING ON BCAST",
    "CLIENT TRACKING OFF",
    "CLIENT REPLY OFF",
    "CLIENT REPLY ON",
    "CLIENT REPLY SKIP",
    "CLIENT PAUSE 20 WRITE",
    "CLIENT UNPAUSE",
    "CLIENT LIST",
    "CLIENT KILL TYPE normal",
    "CLIENT UNBLOCK 1 ERROR",
    "MONITOR",
    "REPLCONF listening-port 1",
    "PSYNC ? -1",
    "EVAL s 1 a",
    "EVALSHA a0f1490a20d0211c997b44bc357e1972deab8ae3 1 a",
    "SCRIPT KILL",
    "SCAN 0",
    "KEYS *",
    "INFO",
    "CONFIG GET *",
    "FT.SEARCH i q",
    "PROXY PAUSE node-1",
    "PROXY RESUME",
    "PROXY RECONNECT",
    "PROXY DRAIN node-2",
    "PROXY SHOW CLIENTS",
    "PROXY EXPLAIN MGET a b",
    "PROXY NODE node-0 CONFIG GET requirepass",
    "ACL SETUSER ann -get",
];

/// Users with a rate and few rights, and with a name and connections of their own at the nodes.
fn users() -> Arc<Access> {
    let access = Access::default();
    let rules: [(&[u8], &[&[u8]]); 2] = [
        (b"ann", &[b"on", b">secret", b"~a*", b"&*", b"+@all", b"-@dangerous"]),
        (b"bob", &[b"on", b">secret", b"~*", b"&*", b"+@all"]),
    ];
    for (name, rules) in rules {
        access.change(|users| users.with_rules(name, rules).map(|users| (users, ()))).expect("they are rules");
    }
    let credentials = Credentials { username: Some("bob".to_owned()), password: "there".to_owned().into() };
    let limits = [
        (
            b"ann".as_slice().into(),
            UserLimits { connections: Some(2), requests_per_second: Some(20), ..UserLimits::default() },
        ),
        (
            b"bob".as_slice().into(),
            UserLimits {
                bytes_per_second: Some(2_000),
                private_connections: Some(1),
                pool_mode: Some(PoolMode::Session),
                node_credentials: Some(Arc::new(credentials)),
                ..UserLimits::default()
            },
        ),
    ];
    access.set_limits(limits.into_iter());
    Arc::new(access)
}

/// Two nodes for everything, and one for keys that begin with `x:`, which are called otherwise there.
fn routes(names: &[String]) -> (Arc<Topology>, Routes) {
    let of = |names: &[String]| {
        let topology = Topology::new(Scheme::default(), names.iter().map(Node::new).collect());
        Arc::new(topology.expect("nodes can be placed on"))
    };
    let (most, rest) = names.split_at(names.len() - 1);
    let (main, other) = (of(most), of(rest));
    let pools = vec![
        Pool::plain("main", Arc::clone(&main)),
        Pool { first: NodePlace::new(most.len()), ..Pool::plain("other", other) },
    ];
    let route = Route {
        name: "x".into(),
        when: When { prefix: b"x:".as_slice().into(), ..When::default() },
        pool: 1,
        rewrite: Rewrite { strip: 2, add: b"y:".as_slice().into() },
        reads: Reads::default(),
        dead_node: Some(DeadNode::Next),
        pool_mode: Some(PoolMode::Session),
    };
    (main, Routes::new(pools, vec![route]).expect("they fit"))
}

fn config(shape: u8) -> Config {
    let mut names: Vec<String> = (0..NODES).map(|n| format!("node-{n}")).collect();
    if shape & 128 != 0 {
        // Other places, and one less.
        names.reverse();
        names.pop();
    }
    let (topology, routes) = match shape & 4 {
        0 => {
            let topology = Topology::new(Scheme::default(), names.iter().map(Node::new).collect());
            let topology = Arc::new(topology.expect("nodes can be placed on"));
            (Arc::clone(&topology), Routes::plain(Pool::plain("main", topology)))
        }
        _ => routes(&names),
    };
    let integrity = match shape & 24 {
        8 => IntegrityTerms { every: 1, run: 1, held_bytes: 10_000 },
        16 => IntegrityTerms { every: 2, run: 0, held_bytes: 500 },
        _ => IntegrityTerms::default(),
    };
    let node = |name: &String| NodeConfig {
        name: name.clone(),
        endpoint: Arc::new(Endpoint::Embedded { index: 0 }),
        credentials: None,
    };
    Config {
        keyspace_events: EventClasses::NONE,
        nodes: names.iter().map(node).collect(),
        routes: Arc::new(routes),
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
            pause_us: if shape & 32 != 0 { 60_000 } else { 0 },
            slow_start_us: 10_000,
        },
        reconnects: Reconnects { backoff_min_us: 100, backoff_max_us: 10_000, redials_per_second: 100 },
        budgets: Budgets {
            client_output_soft: 2_000,
            client_output_hard: 200_000,
            clients: usize::MAX,
            soft_limits: Default::default(),
            upstream_queue: 4_000,
            // Most requests are small; some are passed on in pieces.
            request_whole: if shape & 32 != 0 { 100 } else { 1 << 20 },
            process: 1 << 20,
        },
        clients_max: 8,
        databases: 16,
        seeing: Default::default(),
        dials_ahead: false,
        integrity,
        flush: if shape & 32 != 0 { FlushPolicy::Adaptive { delay_us_max: 200 } } else { FlushPolicy::Immediate },
        allows_admin: true,
        is_server: shape & 36 == 32,
        trusts_clients: shape & 44 == 40,
        subscriptions: respool_proxy::SubscriptionTerms::default(),
        lanes: LaneLimits {
            mode: PoolMode::ALL[usize::from(shape & 3) % 3].0,
            transaction_bytes_max: 1_000,
            transaction_commands_max: 20,
            private_max: 3,
            private_warm_max: 1,
            session_max: 4,
            blocking_max: 2,
            blocked_commands_max: 5,
        },
        access: AccessRules::default(),
    }
}

/// A client's end: what it is sent is read as RESP.
#[derive(Default)]
struct ClientEnd {
    scanner: ReplyScanner,
    /// It has asked to follow a node, whose bytes it then gets as they are; or to subscribe inside of a transaction, which
    /// in RESP3 is answered by a push inside of the reply to EXEC, as Redis does.
    is_raw: bool,
    may_be_pushed_into: bool,
}

/// A node's end: what it is sent is read as requests.
#[derive(Default)]
struct NodeEnd {
    decoder: RequestDecoder,
    received: Vec<u8>,
    /// What it owes.
    owed: VecDeque<Vec<u8>>,
    /// Requests since MULTI, if there was one.
    queued: Option<usize>,
}

struct World {
    worker: Worker<NoEngine>,
    now_us: u64,
    clients: BTreeMap<u32, ClientEnd>,
    lanes: BTreeMap<u32, NodeEnd>,
    dialing: Vec<u32>,
    is_over: bool,
    /// Nodes do not know RESP3.
    are_old: bool,
    shape: u8,
}

impl World {
    fn deliver(&mut self, conn: ConnId, mut bytes: &[u8]) {
        if let Some(client) = self.clients.get_mut(&(conn.index() as u32)).filter(|_| !conn.is_upstream()) {
            client.is_raw |= has_word(bytes, b"sync");
            client.may_be_pushed_into |= has_word(bytes, b"subscribe");
        }
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
                Action::Service(ServiceAction::Exit) => self.is_over = true,
                Action::TryWrite { conn } => self.worker.handle_writable(conn),
                Action::Resume { .. } | Action::Service(ServiceAction::StopAccepting) => {}
                // There is one worker, so it can only be its own.
                Action::Service(ServiceAction::Post { mail, .. }) => self.worker.handle_mail(mail),
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
            end.read(self.are_old);
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
        self.worker.begin_turn(Now::of_clocks(self.now_us, self.now_us));
    }

    /// A node answers so many of the requests that it has been sent.
    fn answer(&mut self, lane: u32, count: usize) {
        for _ in 0..count {
            let Some(reply) = self.lanes.get_mut(&lane).and_then(|end| end.owed.pop_front()) else { return };
            self.deliver(ConnId::upstream(lane), &reply);
        }
    }

    /// One step of the script.
    fn step(&mut self, verb: u8, who: u8, bytes: &[u8]) {
        self.begin(u64::from(who) * 10);
        let client = self.clients.keys().copied().nth(usize::from(who) % self.clients.len().max(1));
        let lane = self.lanes.keys().copied().nth(usize::from(who) % self.lanes.len().max(1));
        match verb % 24 {
            16..=18 => {
                if let Some(index) = client {
                    let mut said = Vec::new();
                    for line in bytes {
                        let line = SAID[usize::from(*line) % SAID.len()];
                        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
                        respool_wire::encode_request(&mut said, words.into_iter());
                    }
                    self.deliver(ConnId::client(index), &said);
                }
            }
            19 | 20 => {
                for lane in self.lanes.keys().copied().collect::<Vec<_>>() {
                    self.answer(lane, usize::from(who % 16) + 1);
                }
            }
            21 => {
                if let Some(lane) = lane {
                    // What it should not say where it should say something else.
                    const WRONG: [&[u8]; 8] = [
                        b"-NOSCRIPT no",
                        b"-MOVED 1 node-1",
                        b"-LOADING wait",
                        b"+QUEUED",
                        b"*-1",
                        b":7",
                        b"_",
                        b">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\na",
                    ];
                    let end = self.lanes.get_mut(&lane).expect("it was there");
                    if let Some(first) = end.owed.front_mut() {
                        *first = [WRONG[usize::from(who) % 8], b"\r\n"].concat();
                    }
                    self.answer(lane, 1);
                }
            }
            22 => {
                // A large value, at once or to be read over many turns.
                if let Some(lane) = lane {
                    let length = 1 << (10 + usize::from(who) % 12).min(20);
                    let end = self.lanes.get_mut(&lane).expect("it was there");
                    if let Some(first) = end.owed.front_mut() {
                        *first = [format!("${length}\r\n").as_bytes(), &vec![b'v'; length], b"\r\n"].concat();
                    }
                    self.answer(lane, 1);
                }
            }
            23 => {
                self.shape ^= if who.is_multiple_of(2) { 128 } else { who & 63 };
                self.worker.handle_mail(Mail::Reload(Arc::new(config(self.shape))));
            }
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

impl World {
    /// Every client leaves, nodes end what they have begun or not, and time passes until nothing that was asked is awaited any
    /// more: no client may be remembered then.
    fn end(&mut self) {
        self.begin(1);
        for index in std::mem::take(&mut self.clients).into_keys() {
            self.worker.handle_broken(ConnId::client(index), "gone");
        }
        self.settle(usize::MAX);
        if self.shape.is_multiple_of(2) {
            self.lose_nodes();
        }
        // Longer than anything is waited for, and long enough for whatever begins only then.
        for _ in 0..24 {
            self.begin(250_000);
            for lane in self.lanes.keys().copied().collect::<Vec<_>>() {
                self.answer(lane, usize::MAX);
            }
            self.refuse_dials();
            self.settle(usize::MAX);
        }
        self.lose_nodes();
        // What was popped for a client that has left is tried to be put back for longer.
        self.begin(RETURN_US_MAX);
        for _ in 0..5 {
            self.begin(100_000);
            self.refuse_dials();
            self.settle(usize::MAX);
        }
    }

    fn lose_nodes(&mut self) {
        for lane in std::mem::take(&mut self.lanes).into_keys() {
            self.worker.handle_broken(ConnId::upstream(lane), "gone");
        }
        self.settle(usize::MAX);
    }

    fn refuse_dials(&mut self) {
        for lane in std::mem::take(&mut self.dialing) {
            self.worker.handle_dial_failed(ConnId::upstream(lane), DialFailure::TimedOut);
        }
    }
}

impl NodeEnd {
    fn read(&mut self, is_old: bool) {
        let mut used = 0;
        loop {
            match self.decoder.decode(&self.received[used..], &RequestLimits::default()) {
                Ok(Step::Request(request)) => {
                    assert!(request.raw.is_some(), "a request is canonical");
                    used += request.consumed;
                    let reply = reply_to(request.args, &mut self.queued, is_old);
                    self.owed.extend(reply);
                }
                Ok(Step::Incomplete) => break,
                other => panic!("a node was sent {other:?}"),
            }
        }
        self.received.drain(..used);
    }
}

/// What a node answers: enough to be taken for an answer.
fn reply_to(args: Args<'_>, queued: &mut Option<usize>, is_old: bool) -> Option<Vec<u8>> {
    let name = String::from_utf8_lossy(args.name()).to_ascii_uppercase();
    let bulk = |bytes: &[u8]| [format!("${}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat();
    let reply = match (name.as_str(), queued.as_mut()) {
        ("EXEC", Some(count)) => {
            let replies = format!("*{count}\r\n{}", "+OK\r\n".repeat(*count));
            *queued = None;
            replies.into_bytes()
        }
        ("DISCARD", Some(_)) => {
            *queued = None;
            b"+OK\r\n".to_vec()
        }
        (_, Some(count)) => {
            *count += 1;
            b"+QUEUED\r\n".to_vec()
        }
        ("MULTI", None) => {
            *queued = Some(0);
            b"+OK\r\n".to_vec()
        }
        ("HELLO", None) if is_old => b"-ERR unknown command 'HELLO'\r\n".to_vec(),
        ("HELLO", None) => b"%0\r\n".to_vec(),
        ("PING", None) => b"+PONG\r\n".to_vec(),
        ("ECHO", None) => bulk(args.at(1)),
        ("GET", None) => bulk(args.at(1)),
        ("MGET", None) => {
            [format!("*{}\r\n", args.len() - 1).into_bytes(), b"$1\r\nv\r\n".repeat(args.len() - 1)].concat()
        }
        ("DEL" | "INCR" | "LPUSH" | "PUBLISH" | "RPUSH" | "WAIT", None) => b":1\r\n".to_vec(),
        ("CLIENT", None) => b":1\r\n".to_vec(),
        ("BLPOP", None) => [b"*2\r\n".to_vec(), bulk(args.at(1)), bulk(b"v")].concat(),
        ("SCAN", None) => b"*2\r\n$1\r\n0\r\n*1\r\n$1\r\nk\r\n".to_vec(),
        ("KEYS" | "LRANGE" | "CONFIG", None) => b"*2\r\n$1\r\na\r\n$1\r\nb\r\n".to_vec(),
        ("INFO", None) => bulk(b"# Server\r\nredis_version:7.0.15\r\n"),
        ("COMMAND", None) => b"*1\r\n*-1\r\n".to_vec(),
        ("MONITOR", None) => b"+OK\r\n+1.0 [0 a:1] \"get\" \"a\"\r\n".to_vec(),
        ("SUBSCRIBE" | "PSUBSCRIBE" | "SSUBSCRIBE", None) => {
            let channel = |name: &[u8]| {
                [b"*3\r\n".to_vec(), bulk(&args.name().to_ascii_lowercase()), bulk(name), b":1\r\n".to_vec()].concat()
            };
            args.from(1).iter().map(channel).collect::<Vec<_>>().concat()
        }
        _ => b"+OK\r\n".to_vec(),
    };
    Some(reply)
}

fn has_word(bytes: &[u8], word: &[u8]) -> bool {
    bytes.windows(word.len()).any(|bytes| bytes.eq_ignore_ascii_case(word))
}

impl ClientEnd {
    fn read(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() && !self.is_raw {
            match self.scanner.scan(bytes, &ReplyLimits::default()) {
                Ok(Scan::Complete { consumed, .. }) => bytes = &bytes[consumed..],
                Ok(Scan::Partial) => break,
                Err(ReplyError::NestedPush) if self.may_be_pushed_into => self.is_raw = true,
                Err(error) => panic!("a client is sent what is no RESP: {error}"),
            }
        }
    }
}

fuzz_target!(|script: &[u8]| {
    let [shape, script @ ..] = script else { return };
    let shared = Shared::new(1, 0, ProcessFacts::default(), Arc::new(ProcessBudget::default())).with_access(users());
    let shared = Arc::new(shared);
    let setup = WorkerSetup {
        config: Arc::new(config(*shape & 127)),
        shared: Arc::clone(&shared),
        number: WorkerId::FIRST,
        engine: None,
        entropy: 7,
    };
    let mut world = World {
        worker: Worker::new(setup),
        now_us: 1_000_000,
        clients: BTreeMap::new(),
        lanes: BTreeMap::new(),
        dialing: Vec::new(),
        is_over: false,
        are_old: shape & 64 != 0,
        shape: *shape & 127,
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
    world.end();
    // The last replies to INFO stay, within their bound.
    let accounted = (shared.ledger.clients(), shared.ledger.held_bytes());
    assert_eq!(accounted, (0, shared.info_cache_bytes()), "still accounted");
    assert_eq!(world.worker.remains(), [], "not forgotten");
});
