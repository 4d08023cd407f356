//! A seeded world around one worker: clients that pipeline in arbitrary chunks, stop reading or vanish; nodes that answer
//! late and in pieces, die and come back, or send what was not asked for. Whatever happens, every reply that a client gets
//! must be the one to the request whose turn it is, or an error that says that a node failed. Nothing here knows a socket
//! or a clock, so a seed that fails fails again: `RESPOOL_WORLD_SEED=n cargo test -p respool-proxy --test world`.
//!
//! Long because clients, nodes and what is expected of them make one world.

use respool_connection::{Action, ConnId, DialFailure, Endpoint, Machine, Now, Peer, Service, ServiceAction, WorkerId};
use respool_proxy::limits::LARGE_REPLY_BYTES;
use respool_proxy::{
    Budgets, Config, LaneLimits, Mail, PoolMode, ProcessBudget, ProcessFacts, Shared, Worker, WorkerSetup,
};
use respool_wire::{
    Encoder, Protocol, ReplyLimits, ReplyScanner, RequestDecoder, RequestLimits, Scan, Step, encode_request,
};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

#[path = "world/blocking.rs"]
mod blocking;
#[path = "support/chance.rs"]
mod chance;
#[path = "world/ends.rs"]
mod ends;
#[path = "world/expected.rs"]
mod expected;
#[path = "world/fairness.rs"]
mod fairness;
#[path = "world/integrity.rs"]
mod integrity;
#[path = "world/reloads.rs"]
mod reloads;
mod support;
#[path = "world/transactions.rs"]
mod transactions;

use chance::Chance;
use ends::{all_leave, none_is_blocked};
use expected::Expected;
use support::{NoEngine, config, settle};

/// The pool mode of the world with this seed.
fn mode_of(seed: u64) -> PoolMode {
    PoolMode::ALL[seed as usize / 2 % 3].0
}

struct Client {
    name: usize,
    to_send: Vec<u8>,
    received: Vec<u8>,
    scanner: ReplyScanner,
    scanned: usize,
    expected: VecDeque<Expected>,
    /// What the next transaction is answered if it is known that nothing is watched, since its WATCH has failed.
    unwatched: Option<Vec<u8>>,
    /// A transaction that selects a database has failed: until a SELECT succeeds nothing is done for the client.
    is_stranded: bool,
    asked: usize,
    is_reading: bool,
    may_read: bool,
    has_ended: bool,
}

/// A node's end of one lane.
#[derive(Default)]
struct NodeEnd {
    node: usize,
    decoder: RequestDecoder,
    received: Vec<u8>,
    to_send: VecDeque<Vec<u8>>,
    protocol: Protocol,
    database: u32,
    /// A reply has been sent in part.
    is_mid_reply: bool,
    state: transactions::State,
    /// Its number, as CLIENT ID tells.
    id: u64,
    /// The worker does not read it for the time being.
    is_unread: bool,
    /// Clients have connections to themselves.
    is_session: bool,
    misdeeds: integrity::Misdeeds,
    /// What the worker has read of it.
    said: ReplyScanner,
}

impl NodeEnd {
    fn note_said(&mut self, mut bytes: &[u8]) {
        while let Ok(Scan::Complete { consumed, .. }) = self.said.scan(bytes, &ReplyLimits::default()) {
            bytes = &bytes[consumed..];
        }
    }
}

/// How the nodes of a world are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// They are late, and die now and then.
    Rough,
    /// They also send what was not asked for.
    Rogue,
    /// Their connections break at every moment, and clients do little but transactions.
    Deadly,
    /// They are called otherwise, stand elsewhere, or clients have them in other ways, every few moments.
    Restless,
}

struct World {
    fate: Fate,
    parked: blocking::Parked,
    next_id: u64,
    worker: Worker<NoEngine>,
    shared: Arc<Shared>,
    chance: Chance,
    now_us: u64,
    clients: BTreeMap<u32, Client>,
    lanes: BTreeMap<u32, NodeEnd>,
    dialing: Vec<(u32, usize)>,
    is_node_up: Vec<bool>,
    next_name: usize,
    answered: usize,
    failed: usize,
    closed: usize,
    rogues: usize,
    /// Requests that other settings came between.
    overtaken: usize,
    reloads: usize,
    seed: u64,
}

const NODES: usize = 3;

fn big(key: &[u8]) -> bool {
    key.last().is_some_and(|b| *b == b'9')
}

/// What a node's GET gives: a value that names its key, now and then a large one, and now and then one that takes a connection
/// out of sharing.
fn value_of(key: &[u8]) -> Vec<u8> {
    let mut value = [b"value of ", key].concat();
    if key.ends_with(b"19") || key.ends_with(b"69") {
        value.resize(LARGE_REPLY_BYTES + 100_000, b'.');
    } else if big(key) {
        value.resize(70_000, b'.');
    }
    value
}

/// What a client sets a key to: a value that names its key and its own length.
fn value_to_set(key: &[u8], filling: usize) -> Vec<u8> {
    [format!("{filling} of ").as_bytes(), key, &b"-".repeat(filling)].concat()
}

fn first_config(seed: u64) -> Config {
    let base = config(NODES, seed);
    Config {
        budgets: Budgets { request_whole: 2_000, ..base.budgets },
        integrity: integrity::terms(seed),
        lanes: LaneLimits { mode: mode_of(seed), blocking_max: 2, ..LaneLimits::default() },
        ..base
    }
}

impl World {
    fn new(seed: u64, fate: Fate) -> Self {
        let config = first_config(seed);
        let shared = Arc::new(Shared::new(1, 0, ProcessFacts::default(), Arc::new(ProcessBudget::default())));
        let setup = WorkerSetup {
            config: Arc::new(config),
            shared: Arc::clone(&shared),
            number: WorkerId::FIRST,
            engine: None,
            entropy: seed,
        };
        Self {
            fate,
            parked: blocking::Parked::default(),
            next_id: 0,
            worker: Worker::new(setup),
            shared,
            chance: Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
            now_us: 1_000_000,
            clients: BTreeMap::new(),
            lanes: BTreeMap::new(),
            dialing: Vec::new(),
            is_node_up: vec![true; NODES],
            next_name: 0,
            answered: 0,
            failed: 0,
            closed: 0,
            rogues: 0,
            overtaken: 0,
            reloads: 0,
            seed,
        }
    }

    fn turn(&mut self, is_calm: bool) {
        self.now_us += match self.chance.below(80) {
            0 => self.chance.below(300_000) as u64,
            _ => self.chance.below(300) as u64,
        };
        self.worker.begin_turn(Now::of_clocks(self.now_us, self.now_us + 1_700_000_000_000_000));
        if self.fate == Fate::Restless && !is_calm && self.chance.one_in(60) {
            self.reload();
        }
        self.answer_dials(is_calm);
        self.move_nodes(is_calm);
        self.move_clients(is_calm);
        self.worker.end_turn();
        self.settle();
    }

    fn answer_dials(&mut self, is_calm: bool) {
        for (lane, node) in std::mem::take(&mut self.dialing) {
            if !is_calm && self.chance.one_in(3) {
                self.dialing.push((lane, node));
            } else if self.is_node_up[node] {
                self.next_id += 1;
                let misdeeds = integrity::Misdeeds::of(self.seed, self.fate == Fate::Rogue && !is_calm);
                let is_session = self.fate == Fate::Restless || mode_of(self.seed) == PoolMode::Session;
                self.lanes.insert(lane, NodeEnd { node, id: self.next_id, misdeeds, is_session, ..NodeEnd::default() });
                self.worker.handle_connected(ConnId::upstream(lane));
            } else {
                let failure = DialFailure::Refused("connection refused".to_owned());
                self.worker.handle_dial_failed(ConnId::upstream(lane), failure);
            }
        }
    }

    fn move_nodes(&mut self, is_calm: bool) {
        self.parked.pass_time(self.now_us, is_calm, &mut self.chance);
        self.wake();
        let lanes: Vec<u32> = self.lanes.keys().copied().collect();
        for lane in lanes {
            if !is_calm && self.chance.one_in(if self.fate == Fate::Deadly { 40 } else { 800 }) {
                self.break_lane(lane);
                continue;
            }
            if self.worker.read_buffer(ConnId::upstream(lane)).is_none() {
                // Its client does not read.
                continue;
            }
            let Some(end) = self.lanes.get_mut(&lane) else { continue };
            // Amid a reply whatever comes is a part of it.
            let is_between = !end.is_mid_reply && end.said.is_idle();
            if self.fate == Fate::Rogue && !is_calm && is_between && self.chance.one_in(200) {
                // Bytes that are no RESP at any time; a reply too many where none is owed.
                let is_idle = end.received.is_empty() && end.to_send.is_empty() && !self.parked.has(end.id);
                let rogue: &[u8] = if is_idle { b"+ROGUE\r\n" } else { b"\x16\x03\x01HTTP" };
                if end.is_unread || self.worker.read_buffer(ConnId::upstream(lane)).is_none() {
                    continue;
                }
                self.rogues += 1;
                self.deliver_to_worker(ConnId::upstream(lane), rogue);
                assert!(!self.keeps_lane(lane), "a connection in doubt is given up");
                continue;
            }
            // A node that is slow for a while says nothing at all.
            if !is_calm && self.chance.one_in(3) {
                continue;
            }
            for _ in 0..self.chance.below(4) + usize::from(is_calm) * 100 {
                let is_unread = self.worker.read_buffer(ConnId::upstream(lane)).is_none();
                let Some(end) = self.lanes.get_mut(&lane) else { break };
                end.is_unread |= is_unread;
                if end.is_unread {
                    break;
                }
                let Some(mut bytes) = end.to_send.pop_front() else { break };
                end.is_mid_reply = !is_calm && bytes.len() > 1 && self.chance.one_in(3);
                if end.is_mid_reply {
                    let rest = bytes.split_off(self.chance.below(bytes.len() - 1) + 1);
                    end.to_send.push_front(rest);
                }
                self.deliver_to_worker(ConnId::upstream(lane), &bytes);
            }
        }
        for node in 0..NODES {
            if is_calm {
                self.is_node_up[node] = true;
            } else if self.chance.one_in(if self.is_node_up[node] { 1_000 } else { 40 }) {
                self.is_node_up[node] = !self.is_node_up[node];
                let dead: Vec<u32> = self.lanes.iter().filter(|(_, end)| end.node == node).map(|(l, _)| *l).collect();
                if !self.is_node_up[node] {
                    dead.into_iter().for_each(|lane| self.break_lane(lane));
                }
            }
        }
    }

    /// Who waits no longer gets a reply, and is served on.
    fn wake(&mut self) {
        while let Some((id, reply)) = self.parked.woken.pop() {
            let Some(end) = self.lanes.values_mut().find(|end| end.id == id) else { continue };
            end.to_send.push_back(reply);
            serve(end, &mut self.parked, self.now_us, &mut self.chance);
        }
    }

    /// Does what the worker wants now; whether the lane is still there afterwards.
    fn keeps_lane(&mut self, lane: u32) -> bool {
        while let Some(action) = self.worker.poll_action() {
            self.act(action);
        }
        self.lanes.contains_key(&lane)
    }

    fn break_lane(&mut self, lane: u32) {
        self.forget_lane(lane);
        if self.chance.one_in(2) {
            self.worker.handle_broken(ConnId::upstream(lane), "connection reset by peer");
        } else {
            self.worker.handle_ended(ConnId::upstream(lane));
        }
    }

    /// Reads as the loop would: into the buffer that the worker offers, as often as it takes.
    fn deliver_to_worker(&mut self, conn: ConnId, mut bytes: &[u8]) {
        let mut has_read = false;
        while !bytes.is_empty() {
            let Some(buffer) = self.worker.read_buffer(conn) else {
                // It is read on when the worker says so, if it has not given the node up.
                if let Some(end) = self.lanes.get_mut(&(conn.index() as u32)).filter(|_| conn.is_upstream()) {
                    end.is_unread = true;
                    end.is_mid_reply |= has_read;
                    end.to_send.push_front(bytes.to_vec());
                }
                return;
            };
            let taken = bytes.len().min(buffer.len());
            buffer[..taken].copy_from_slice(&bytes[..taken]);
            let given = &bytes[..taken];
            bytes = &bytes[taken..];
            has_read = true;
            if let Some(end) = self.lanes.get_mut(&(conn.index() as u32)).filter(|_| conn.is_upstream()) {
                end.note_said(given);
            }
            self.worker.handle_read(conn, taken);
            if conn.is_upstream() && !self.lanes.contains_key(&(conn.index() as u32)) {
                return;
            }
        }
    }

    fn move_clients(&mut self, is_calm: bool) {
        if !is_calm && self.clients.len() < 12 && self.chance.one_in(10) {
            let conn = self.worker.handle_accept(Peer::default()).expect("there is room");
            let client = Client {
                name: self.next_name,
                to_send: Vec::new(),
                received: Vec::new(),
                scanner: ReplyScanner::default(),
                scanned: 0,
                expected: VecDeque::new(),
                unwatched: None,
                is_stranded: false,
                asked: 0,
                is_reading: true,
                may_read: true,
                has_ended: false,
            };
            self.next_name += 1;
            assert!(self.clients.insert(conn.index() as u32, client).is_none(), "a place is given once");
        }
        let indexes: Vec<u32> = self.clients.keys().copied().collect();
        for index in indexes {
            if !is_calm && self.chance.one_in(300) {
                self.clients.remove(&index);
                self.worker.handle_broken(ConnId::client(index), "connection reset by peer");
                continue;
            }
            if !is_calm && self.chance.one_in(300) {
                // It closes its side: what it has asked is still answered.
                let client = self.clients.get_mut(&index).expect("it was there");
                client.to_send.clear();
                client.has_ended = true;
                self.worker.handle_ended(ConnId::client(index));
            }
            let Some(client) = self.clients.get_mut(&index) else { continue };
            client.is_reading = is_calm || !self.chance.one_in(4);
            if client.is_reading {
                self.worker.handle_writable(ConnId::client(index));
            }
            if !is_calm && !client.has_ended && client.expected.len() < 60 && self.chance.one_in(2) {
                ask(client, &mut self.chance, self.fate);
            }
            let share = if is_calm { usize::MAX } else { self.chance.below(200) };
            let client = self.clients.get_mut(&index).expect("it was there");
            let conn = ConnId::client(index);
            while !client.to_send.is_empty() && client.may_read {
                let Some(buffer) = self.worker.read_buffer(conn) else {
                    client.may_read = false;
                    break;
                };
                let taken = client.to_send.len().min(buffer.len()).min(share);
                if taken == 0 {
                    break;
                }
                buffer[..taken].copy_from_slice(&client.to_send[..taken]);
                client.to_send.drain(..taken);
                self.worker.handle_read(conn, taken);
                if share != usize::MAX {
                    break;
                }
            }
        }
    }

    fn settle(&mut self) {
        settle(self, |this| &mut this.worker, Self::act, Self::write);
    }

    fn act(&mut self, action: Action<ServiceAction<Mail>>) {
        match action {
            Action::Dial { conn, endpoint } => {
                let Endpoint::Embedded { index } = *endpoint else { panic!("nodes are embedded here") };
                self.dialing.push((conn.index() as u32, index));
            }
            Action::Close { conn } if conn.is_upstream() => {
                self.forget_lane(conn.index() as u32);
                self.dialing.retain(|(lane, _)| *lane != conn.index() as u32);
            }
            Action::Close { conn } => {
                // Only a reply that broke off, or too many unread ones, may cost a client its connection.
                let client = self.clients.remove(&(conn.index() as u32));
                assert!(client.is_some(), "only what is open is closed");
                self.closed += 1;
            }
            Action::Resume { conn } if conn.is_upstream() => {
                if let Some(end) = self.lanes.get_mut(&(conn.index() as u32)) {
                    end.is_unread = false;
                }
            }
            Action::Resume { conn } => {
                if let Some(client) = self.clients.get_mut(&(conn.index() as u32)) {
                    client.may_read = true;
                }
            }
            Action::TryWrite { conn } => self.worker.handle_writable(conn),
            // A worker alone writes to itself at most.
            Action::Service(ServiceAction::Post { worker: WorkerId::FIRST, mail }) => self.worker.handle_mail(mail),
            Action::Service(_) | Action::Finish { .. } => {
                panic!("{action:?} was not to be expected")
            }
        }
    }

    fn forget_lane(&mut self, lane: u32) {
        if let Some(end) = self.lanes.remove(&lane) {
            self.parked.forget(end.id);
        }
    }

    fn write(&mut self, conn: ConnId) {
        let bytes = self.worker.output(conn).to_vec();
        assert!(!bytes.is_empty(), "only what wants to be written is listed");
        let index = conn.index() as u32;
        let taken = if self.chance.one_in(4) { self.chance.below(bytes.len()) } else { bytes.len() };
        if conn.is_upstream() {
            let Some(end) = self.lanes.get_mut(&index) else { return };
            end.received.extend_from_slice(&bytes[..taken]);
            serve(end, &mut self.parked, self.now_us, &mut self.chance);
            self.wake();
            self.worker.handle_written(conn, taken);
            if taken < bytes.len() {
                self.worker.handle_writable(conn);
            }
            return;
        }
        let Some(client) = self.clients.get_mut(&index) else { return };
        let taken = if client.is_reading { taken } else { 0 };
        client.received.extend_from_slice(&bytes[..taken]);
        self.worker.handle_written(conn, taken);
        self.check(index);
        if taken > 0 && taken < bytes.len() {
            self.worker.handle_writable(conn);
        }
    }

    /// Compares what a client has received with what it waits for.
    fn check(&mut self, index: u32) {
        let Some(client) = self.clients.get_mut(&index) else { return };
        loop {
            let rest = &client.received[client.scanned..];
            if rest.is_empty() {
                break;
            }
            match client.scanner.scan(rest, &ReplyLimits::default()).expect("clients get RESP") {
                Scan::Partial => {
                    client.scanned = client.received.len();
                    break;
                }
                Scan::Complete { consumed, .. } => {
                    let end = client.scanned + consumed;
                    let reply: Vec<u8> = client.received.drain(..end).collect();
                    client.scanned = 0;
                    let expected = client.expected.pop_front();
                    let expected = expected.map(|expected| expected.heed_watch(&reply, &mut client.unwatched));
                    let shown = || String::from_utf8_lossy(&reply[..reply.len().min(200)]).into_owned();
                    match expected {
                        Some(Expected::Reply(right) | Expected::Watched(right, false)) if right == reply => {
                            // All else that is answered so is refused to one that is stranded.
                            client.is_stranded &= reply != b"+OK\r\n";
                            self.answered += 1;
                        }
                        Some(Expected::Own(right)) if right == reply => self.answered += 1,
                        Some(Expected::Selects(right) | Expected::Watched(right, true)) if right == reply => {
                            client.is_stranded = false;
                            self.answered += 1;
                        }
                        Some(Expected::Reply(_) | Expected::Watched(_, false)) if is_about_a_node(&reply) => {
                            // Whether a server would have spoilt the block for it, and not selected its database, is not known.
                            client.is_stranded |= reply.starts_with(b"-TRYAGAIN the nodes could not be asked");
                            self.failed += 1;
                        }
                        Some(Expected::Selects(_) | Expected::Watched(_, true)) if is_about_a_node(&reply) => {
                            client.is_stranded = true;
                            self.failed += 1;
                        }
                        Some(_) if client.is_stranded && is_about_the_database(&reply) => self.failed += 1,
                        Some(expected) if self.fate == Fate::Restless && reloads::may_be(&expected, &reply) => {
                            let may_select = matches!(expected, Expected::Selects(_) | Expected::Watched(_, true));
                            client.is_stranded |= may_select && reply != b"*-1\r\n";
                            self.overtaken += 1;
                        }
                        Some(expected) => {
                            let right = expected.right();
                            panic!(
                                "client {} got {:?} where {:?} is right",
                                client.name,
                                shown(),
                                String::from_utf8_lossy(&right[..right.len().min(200)])
                            )
                        }
                        None => panic!("client {} got {:?}, which it did not ask for", client.name, shown()),
                    }
                }
            }
        }
    }
}

fn is_about_a_node(reply: &[u8]) -> bool {
    reply.starts_with(b"-ERR node ")
        || reply.starts_with(b"-TRYAGAIN the nodes could not be asked ")
        // A node that sends what it must not while a database is selected for the first time.
        || reply == b"-ERR SELECT was not answered as it should be\r\n"
        || reply.starts_with(b"-ERR the connection on which keys were watched is lost;")
}

fn is_about_the_database(reply: &[u8]) -> bool {
    reply.starts_with(b"-ERR no database is selected since the last SELECT could not be done")
        || reply == b"-EXECABORT Transaction discarded because of previous errors.\r\n"
}

/// Has a client ask for something; what it must get is known from what it asks.
fn ask(client: &mut Client, chance: &mut Chance, fate: Fate) {
    client.asked += 1;
    let key = format!("{}:{}", client.name, client.asked);
    let say = |out: &mut Vec<u8>, words: &[&str]| encode_request(out, words.iter().map(|w| w.as_bytes()));
    let bulk = |bytes: &[u8]| [format!("${}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat();
    if chance.one_in(4) || fate == Fate::Deadly && !chance.one_in(4) {
        return transactions::ask(client, &key, chance);
    }
    if chance.one_in(12) {
        return blocking::ask(client, &key, chance);
    }
    let out = &mut client.to_send;
    let expected = match chance.below(13) {
        0..=5 => {
            say(out, &["GET", &key]);
            Expected::Reply(bulk(&value_of(key.as_bytes())))
        }
        6 => {
            say(out, &["PING", &key]);
            Expected::Own(bulk(key.as_bytes()))
        }
        7 => {
            say(out, &["NOSUCH", &key]);
            let text = format!("-ERR unknown command 'NOSUCH', with args beginning with: '{key}' \r\n");
            // Only a node knows, and it may be away.
            Expected::Reply(text.into_bytes())
        }
        8 | 9 => {
            let keys: Vec<String> = (0..4).map(|n| format!("{key}.{n}")).collect();
            let mut words = vec!["MGET"];
            words.extend(keys.iter().map(String::as_str));
            say(out, &words);
            let values = keys.iter().map(|key| bulk(&value_of(key.as_bytes())));
            Expected::Reply([b"*4\r\n".to_vec(), values.collect::<Vec<_>>().concat()].concat())
        }
        12 => {
            // Larger than what is collected: most of them are passed on in pieces.
            let value = value_to_set(key.as_bytes(), chance.below(6_000));
            encode_request(out, [&b"SET"[..], key.as_bytes(), &value, b"EX", b"10"].into_iter());
            Expected::Reply(b"+OK\r\n".to_vec())
        }
        10 => {
            say(out, &["DEL", &key, &format!("{key}.x"), &format!("{key}.y")]);
            Expected::Reply(b":3\r\n".to_vec())
        }
        _ => {
            say(out, &["SELECT", ["0", "1", "2"][chance.below(3)]]);
            Expected::Reply(b"+OK\r\n".to_vec())
        }
    };
    client.expected.push_back(expected);
}

/// A node reads requests and has its replies ready.
fn serve(end: &mut NodeEnd, parked: &mut blocking::Parked, now_us: u64, chance: &mut Chance) {
    let mut used = 0;
    let limits = RequestLimits::default();
    loop {
        let rest = &end.received[used..];
        if rest.is_empty() || parked.has(end.id) {
            break;
        }
        match end.decoder.decode(rest, &limits).expect("the proxy sends canonical requests") {
            Step::Incomplete => break,
            Step::Empty { .. } => panic!("the proxy never sends an empty request"),
            Step::Request(request) => {
                used += request.consumed;
                let args = request.args;
                let mut out = Vec::new();
                if end.state.take(args, &mut out, chance, end.is_session) {
                    end.to_send.push_back(out);
                    continue;
                }
                if let Some(reply) = parked.take(end.id, args, now_us, chance) {
                    end.to_send.push_back(reply);
                    continue;
                }
                if parked.has(end.id) {
                    break;
                }
                let mut reply = Encoder::new(&mut out, end.protocol);
                match args.name() {
                    b"PING" => reply.simple("PONG"),
                    b"GET" => reply.bulk(&value_of(args.at(1))),
                    b"MGET" => {
                        reply.array(args.len() - 1);
                        args.from(1).iter().for_each(|key| reply.bulk(&value_of(key)));
                    }
                    b"ECHO" => {
                        end.misdeeds.note_echo();
                        reply.bulk(args.at(1));
                    }
                    b"SET" => {
                        let value = String::from_utf8_lossy(args.at(2)).into_owned();
                        let filling = value.split(' ').next().and_then(|filling| filling.parse().ok()).unwrap_or(0);
                        assert!(args.at(2) == value_to_set(args.at(1), filling), "{value:?} is no value of its key");
                        assert_eq!((args.len(), args.at(3), args.at(4)), (5, &b"EX"[..], &b"10"[..]));
                        reply.simple("OK");
                    }
                    b"DEL" => reply.integer(args.len() as i64 - 1),
                    // What a client called NOSUCH is asked about, now and then.
                    b"COMMAND" => {
                        assert_eq!((args.at(1), args.at(2)), (&b"INFO"[..], &b"nosuch"[..]));
                        reply.array(1);
                        reply.null_array();
                    }
                    b"SELECT" => {
                        end.database = String::from_utf8_lossy(args.at(1)).parse().unwrap();
                        reply.simple("OK");
                    }
                    other => panic!("a shared lane got {}", String::from_utf8_lossy(other)),
                }
                let is_behind = !end.is_mid_reply || end.to_send.len() > 1;
                end.misdeeds.commit(&mut end.to_send, out, is_behind, chance);
            }
        }
    }
    end.received.drain(..used);
}

fn live(seed: u64, fate: Fate) -> World {
    let mut world = World::new(seed, fate);
    for _ in 0..2_000 {
        world.turn(false);
    }
    // Long enough for a client that has to wait for each of its replies in turn.
    for _ in 0..200 {
        world.now_us += 20_000;
        world.turn(true);
    }
    world
}

fn seeds() -> Vec<u64> {
    match std::env::var("RESPOOL_WORLD_SEED").ok().and_then(|seed| seed.parse().ok()) {
        Some(seed) => vec![seed],
        None => {
            let count = std::env::var("RESPOOL_WORLD_SEEDS").ok().and_then(|count| count.parse().ok());
            (1..=count.unwrap_or(8)).collect()
        }
    }
}

#[test]
fn every_reply_goes_to_its_request_whatever_happens() {
    let (mut answered, mut failed, mut served, mut taken_back, mut passed, mut claimed) = (0, 0, 0, 0, 0, 0);
    for seed in seeds() {
        let world = live(seed, Fate::Rough);
        none_is_blocked(&world, seed);
        answered += world.answered;
        failed += world.failed;
        passed += world.shared.counters[0].requests_in_pieces.value();
        claimed += world.shared.counters[0].lanes_claimed.value();
        served += world.parked.served;
        taken_back += world.parked.taken_back;
    }
    assert!(answered > 3 * failed && failed > 0, "{answered} answered, {failed} failed: too kind or too cruel a world");
    assert!(passed > 50, "{passed} requests were passed on in pieces");
    assert!(claimed > 10, "{claimed} connections were taken out of sharing");
    assert!(served > 0 && taken_back > 0, "{served} served, {taken_back} taken back: no client waited");
}

#[test]
fn a_node_that_sends_too_much_is_cut_off_and_shifts_no_reply() {
    let (mut rogues, mut faults) = (0, 0);
    for seed in seeds() {
        let world = live(seed, Fate::Rogue);
        none_is_blocked(&world, seed);
        rogues += world.rogues;
        faults += world.shared.counters[0].integrity_faults.value();
    }
    // Not every seed's world has its replies proved.
    let is_any_proved = seeds().iter().any(|seed| integrity::terms(*seed).every == 1);
    assert!(rogues > 0 && (faults > 0 || !is_any_proved), "{rogues} rogues, {faults} lanes out of step");
}

#[test]
fn a_transaction_ends_at_whatever_moment_its_node_dies() {
    let (mut answered, mut failed) = (0, 0);
    for seed in seeds() {
        let mut world = live(seed, Fate::Deadly);
        none_is_blocked(&world, seed);
        answered += world.answered;
        failed += world.failed;
        all_leave(&mut world, seed);
    }
    assert!(answered > failed && failed > answered / 100, "{answered} answered, {failed} failed");
}

#[test]
fn nothing_is_held_once_all_have_left() {
    for seed in seeds() {
        let mut world = live(seed, Fate::Rough);
        all_leave(&mut world, seed);
    }
}

#[test]
fn replies_find_their_requests_while_settings_change() {
    let (mut answered, mut failed, mut overtaken, mut reloads) = (0, 0, 0, 0);
    for seed in seeds() {
        let mut world = live(seed, Fate::Restless);
        none_is_blocked(&world, seed);
        answered += world.answered;
        failed += world.failed;
        overtaken += world.overtaken;
        reloads += world.reloads;
        all_leave(&mut world, seed);
    }
    assert!(
        answered > 3 * failed && answered > 20 * overtaken,
        "{answered} answered, {failed} failed, {overtaken} overtaken"
    );
    assert!(reloads > 10, "{reloads} reloads");
}

#[test]
fn a_place_is_not_reused_before_the_loop_has_closed_it() {
    let mut world = World::new(1, Fate::Rough);
    world.worker.begin_turn(Now::of_clocks(1, 1));
    let leaving = world.worker.handle_accept(Peer::default()).unwrap();
    world.worker.handle_ended(leaving);
    world.worker.end_turn();
    assert!(world.worker.poll_action().is_none());
    assert!(world.worker.poll_output().is_none(), "looking for output closes it");
    let coming = world.worker.handle_accept(Peer::default()).unwrap();
    assert_ne!(coming, leaving, "the order to close the one would close the other");
    assert!(matches!(world.worker.poll_action(), Some(Action::Close { conn }) if conn == leaving));
    let next = world.worker.handle_accept(Peer::default()).unwrap();
    assert_eq!(next, leaving, "now the place is free");
}
