//! Large values in a seeded world with a strict loop: the kernel tells of readiness once, a socket holds so many bytes and no more, one turn
//! reads so many bytes of clients, and what the worker does not read stays where it is until the worker says so. Nodes stop, slow down,
//! die and break off in the midst of a request, operators pause and drain them, and settings change. Every few moments all of that ends, and
//! then nothing may be left waiting: no client unread, no request half sent, no reply half read. A seed that fails fails again:
//! `RESPOOL_LARGE_SEED=n cargo test -p respool-proxy --test large`.

use respool_connection::{
    Action, ConnId, DialFailure, Endpoint, Machine, Now, Peer, Role, Service, ServiceAction, WorkerId,
};
use respool_proxy::limits::PIECES_QUEUE_BYTES;
use respool_proxy::{
    Access, Budgets, Config, IntegrityTerms, LaneLimits, Mail, PoolMode, ProcessBudget, ProcessFacts, Shared,
    UserLimits, Worker, WorkerSetup,
};
use respool_wire::encode_request;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

#[path = "support/chance.rs"]
mod chance;
#[path = "large/peers.rs"]
mod peers;
#[path = "large/socket.rs"]
mod socket;
mod support;

use chance::Chance;
use peers::{Client, NodeEnd};
use socket::{Socket, Stage};
use support::{NoEngine, config, settle};

const NODES: usize = 3;
const CLIENTS: usize = 8;
/// Turns of trouble, and turns without a byte after which nothing will come any more: longer than any deadline.
const ROUNDS: usize = 6;
const TROUBLED_TURNS: usize = 250;
const SILENT_TURNS_MAX: usize = 600;
const CALM_TURN_US: u64 = 10_000;
/// Bytes and requests that all clients of one user together may ask for in a second: some have to wait, and not for long.
const LIMITED: (u64, u64) = (2_000_000, 300);
/// What a client may have asked for and not sent, in bytes.
const UNSENT_BYTES_MAX: usize = 300_000;

struct World {
    seed: u64,
    worker: Worker<NoEngine>,
    shared: Arc<Shared>,
    chance: Chance,
    now_us: u64,
    sockets: BTreeMap<u32, Socket>,
    clients: BTreeMap<u32, Client>,
    nodes: BTreeMap<u32, NodeEnd>,
    operator: ConnId,
    /// Whether each server is up, until when it does nothing, and how many bytes it takes and gives in a turn.
    is_up: [bool; NODES],
    stalled_until_us: [u64; NODES],
    pace: [usize; NODES],
    /// Another server stands in the place of each.
    is_turned: bool,
    /// As in the loop: nodes to read again, clients that were ready when the turn had read enough, and clients to read again.
    listed_nodes: Vec<u32>,
    deferred: VecDeque<u32>,
    again: VecDeque<u32>,
    client_bytes: usize,
    /// Bytes that a turn reads of clients before it reads no more of them, and that a kernel holds.
    turn_bytes: usize,
    kernel_bytes: usize,
    /// Bytes that peers have sent and taken.
    moved: usize,
    names: usize,
    answered: usize,
    failed: usize,
    closed: usize,
}

fn settings(seed: u64, is_turned: bool, chance: &mut Chance) -> Config {
    let base = config(NODES, seed);
    let mut nodes = base.nodes.clone();
    if is_turned {
        // The same names, and other servers.
        let endpoints: Vec<_> = nodes.iter().map(|node| Arc::clone(&node.endpoint)).collect();
        nodes
            .iter_mut()
            .zip(endpoints.iter().cycle().skip(1))
            .for_each(|(node, endpoint)| node.endpoint = Arc::clone(endpoint));
    }
    let soft = [20_000, 64 * 1024, 1 << 20][chance.below(3)];
    // Some have too little memory for all that is asked for: then nothing is read, and the largest client goes.
    let process = if seed.is_multiple_of(4) { 2 << 20 } else { 256 << 20 };
    let upstream_queue = [200_000, 1 << 20, 64 << 20][chance.below(3)];
    Config {
        nodes,
        budgets: Budgets { request_whole: 2_000, client_output_soft: soft, process, upstream_queue, ..base.budgets },
        integrity: IntegrityTerms { every: chance.below(2) as u32, run: 2, held_bytes: 8 << 20 },
        lanes: LaneLimits { mode: PoolMode::ALL[chance.below(3)].0, ..LaneLimits::default() },
        ..base
    }
}

/// The users: the default one, and one that may ask for little.
fn access(limits: UserLimits) -> Access {
    let (access, name) = (Access::default(), peers::LIMITED.as_bytes());
    let rules: [&[u8]; 5] = [b"on", b">secret", b"~*", b"&*", b"+@all"];
    let made = access.change(|users| users.with_rules(name, &rules).map(|users| (users, ())));
    made.expect("the rules are right");
    access.set_limits([(name.into(), limits)].into_iter());
    access
}

impl World {
    fn new(seed: u64) -> Self {
        let mut chance = Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let config = settings(seed, false, &mut chance);
        let (bytes, requests) = LIMITED;
        let limits =
            UserLimits { bytes_per_second: Some(bytes), requests_per_second: Some(requests), ..UserLimits::default() };
        let mut shared = Shared::new(1, 0, ProcessFacts::default(), Arc::new(ProcessBudget::default()));
        shared.access = Arc::new(access(limits));
        let shared = Arc::new(shared);
        let mut worker = Worker::new(WorkerSetup {
            config: Arc::new(config),
            shared: Arc::clone(&shared),
            number: WorkerId::FIRST,
            engine: None,
            entropy: seed,
        });
        worker.begin_turn(Now::of_clocks(1_000_000, 1_700_000_000_000_000));
        let operator = worker.handle_accept(Peer::default()).expect("there is room");
        worker.end_turn();
        let turn_bytes = [500, 5_000, 32 * 1024][chance.below(3)];
        let kernel_bytes = [10_000, 40_000, 200_000][chance.below(3)];
        Self {
            seed,
            worker,
            shared,
            chance,
            now_us: 1_000_000,
            sockets: BTreeMap::from([(operator.to_bits(), Socket::new(Stage::Open, 1 << 20))]),
            clients: BTreeMap::new(),
            nodes: BTreeMap::new(),
            operator,
            is_up: [true; NODES],
            stalled_until_us: [0; NODES],
            pace: [usize::MAX; NODES],
            is_turned: false,
            listed_nodes: Vec::new(),
            deferred: VecDeque::new(),
            again: VecDeque::new(),
            client_bytes: 0,
            turn_bytes,
            kernel_bytes,
            moved: 0,
            names: 0,
            answered: 0,
            failed: 0,
            closed: 0,
        }
    }

    // Trouble.

    fn trouble(&mut self) {
        let node = self.chance.below(NODES);
        match self.chance.below(220) {
            0..=2 => self.stalled_until_us[node] = self.now_us + self.chance.below(3_000_000) as u64,
            3..=6 => self.pace[node] = [50, 2_000, 50_000, usize::MAX][self.chance.below(4)],
            7 => {
                self.is_up[node] = !self.is_up[node];
                if !self.is_up[node] {
                    self.cut(|end| end.node == node);
                }
            }
            8 => self.cut(|_| true),
            9..=10 => self.reload(),
            11 => self.order(&["PROXY", "RECONNECT"]),
            12 => self.order(&["PROXY", "DRAIN", &format!("node-{node}")]),
            13..=14 => self.order(&["PROXY", "RESUME", &format!("node-{node}")]),
            15 => self.order(&["PROXY", "PAUSE"]),
            16..=17 => self.order(&["PROXY", "RESUME"]),
            18 => {
                let what = ["ALL", "WRITE"][self.chance.below(2)];
                self.order(&["CLIENT", "PAUSE", "40", what]);
            }
            _ => {}
        }
        let names: Vec<u32> = self.clients.keys().copied().collect();
        for name in names {
            let Some(client) = self.clients.get_mut(&name) else { continue };
            match self.chance.below(300) {
                0 => {
                    // It vanishes, with whatever was asked.
                    self.clients.remove(&name);
                    self.sockets.remove(&name);
                    self.worker.handle_broken(ConnId::from_bits(name), "connection reset by peer");
                }
                1 if client.is_idle() || self.chance.one_in(2) => client.is_leaving = true,
                2..=6 => client.pace = [0, 100, 5_000, usize::MAX, usize::MAX][self.chance.below(5)],
                7..=40 if !client.is_leaving && client.to_send.len() < UNSENT_BYTES_MAX => client.ask(&mut self.chance),
                _ => {}
            }
        }
        // While too much memory is held no client is accepted.
        if self.clients.len() < CLIENTS
            && let Ok(conn) = self.worker.handle_accept(Peer::default())
        {
            self.names += 1;
            self.sockets.insert(conn.to_bits(), Socket::new(Stage::Open, self.kernel_bytes));
            let mut client = Client::new(self.names);
            if self.chance.one_in(2) {
                client.become_limited();
            }
            self.clients.insert(conn.to_bits(), client);
        }
    }

    fn cut(&mut self, is_cut: impl Fn(&NodeEnd) -> bool) {
        let cut: Vec<u32> = self.nodes.iter().filter(|(_, end)| is_cut(end)).map(|(conn, _)| *conn).collect();
        for conn in cut {
            self.nodes.remove(&conn);
            self.sockets.remove(&conn);
            self.worker.handle_broken(ConnId::from_bits(conn), "connection reset by peer");
        }
    }

    fn reload(&mut self) {
        self.is_turned ^= self.chance.one_in(2);
        let config = settings(self.seed, self.is_turned, &mut self.chance);
        self.worker.handle_mail(Mail::Reload(Arc::new(config)));
    }

    /// An operator says something. What it is answered does not matter here.
    fn order(&mut self, words: &[&str]) {
        let mut out = Vec::new();
        encode_request(&mut out, words.iter().map(|word| word.as_bytes()));
        if let Some(socket) = self.sockets.get_mut(&self.operator.to_bits()) {
            assert_eq!(socket.send(&out), out.len(), "an operator is read");
        }
    }

    // Peers.

    fn move_peers(&mut self, is_calm: bool) {
        for (conn, end) in &mut self.nodes {
            let Some(socket) = self.sockets.get_mut(conn) else { continue };
            if self.now_us < self.stalled_until_us[end.node] || socket.has_ended {
                continue;
            }
            let pace = self.pace[end.node];
            let bytes = socket.receive(pace);
            end.receive(&bytes, is_calm, &mut self.chance);
            let sent = socket.send(end.to_send.first(pace));
            end.to_send.drop_first(sent);
            self.moved += bytes.len() + sent;
            if end.is_done && end.to_send.len() == 0 {
                socket.end();
            }
        }
        for (conn, client) in &mut self.clients {
            let Some(socket) = self.sockets.get_mut(conn) else { continue };
            let pace = if is_calm { usize::MAX } else { client.pace };
            let bytes = socket.receive(pace);
            client.receive(&bytes);
            self.moved += bytes.len();
            if !socket.has_ended {
                let most = if is_calm { usize::MAX } else { self.chance.below(2 * self.kernel_bytes) };
                let sent = socket.send(client.to_send.first(most));
                client.to_send.drop_first(sent);
                self.moved += sent;
                if client.is_leaving && client.to_send.len() == 0 {
                    socket.end();
                }
            }
        }
        if let Some(socket) = self.sockets.get_mut(&self.operator.to_bits()) {
            socket.receive(usize::MAX);
        }
    }

    // The loop.

    fn turn(&mut self, is_calm: bool) {
        self.now_us += match (is_calm, self.chance.below(60)) {
            (true, _) => CALM_TURN_US,
            (false, 0) => self.chance.below(300_000) as u64,
            (false, _) => self.chance.below(300) as u64,
        };
        self.worker.begin_turn(Now::of_clocks(self.now_us, self.now_us + 1_700_000_000_000_000));
        if !is_calm {
            self.trouble();
        }
        self.move_peers(is_calm);
        self.read_all(is_calm);
        self.worker.end_turn();
        settle(self, |this| &mut this.worker, Self::act, Self::write);
    }

    /// What the loop does with what a wait has told, in its order.
    fn read_all(&mut self, is_calm: bool) {
        let listed_nodes = std::mem::take(&mut self.listed_nodes);
        let listed_again = self.again.len();
        self.client_bytes = 0;
        let all: Vec<u32> = self.sockets.keys().copied().collect();
        let (nodes, clients): (Vec<u32>, Vec<u32>) =
            all.into_iter().partition(|conn| ConnId::from_bits(*conn).role() == Role::Node);
        for conn in nodes {
            if self.sockets.get(&conn).is_some_and(|socket| socket.stage == Stage::Dialling) {
                self.answer_dial(conn, is_calm);
            } else {
                self.take_edge(conn);
            }
        }
        listed_nodes.into_iter().for_each(|conn| self.read_listed(conn));
        while self.has_room()
            && let Some(conn) = self.deferred.pop_front()
        {
            self.read_listed(conn);
        }
        clients.into_iter().for_each(|conn| self.take_edge(conn));
        for nth in 0..listed_again {
            if nth > 0 && !self.has_room() {
                break;
            }
            let Some(conn) = self.again.pop_front() else { break };
            self.read_listed(conn);
        }
    }

    fn has_room(&self) -> bool {
        self.client_bytes < self.turn_bytes
    }

    fn answer_dial(&mut self, conn: u32, is_calm: bool) {
        let Some(node) = self.nodes.get(&conn).map(|end| end.node) else { return };
        if !is_calm && self.chance.one_in(2) {
            return;
        }
        if !self.is_up[node] {
            self.sockets.remove(&conn);
            self.nodes.remove(&conn);
            let failure = DialFailure::Refused("connection refused".to_owned());
            return self.worker.handle_dial_failed(ConnId::from_bits(conn), failure);
        }
        self.sockets.insert(conn, Socket::new(Stage::Open, self.kernel_bytes));
        self.worker.handle_connected(ConnId::from_bits(conn));
        self.list_again(conn);
    }

    fn take_edge(&mut self, conn: u32) {
        let Some(socket) = self.sockets.get_mut(&conn) else { return };
        let (is_read, is_write) = socket.take_edges();
        socket.is_readable |= is_read;
        let has_ended = socket.has_ended && !std::mem::replace(&mut socket.is_ending, socket.has_ended);
        if is_write && !std::mem::replace(&mut socket.is_writable, true) {
            self.worker.handle_writable(ConnId::from_bits(conn));
        }
        if has_ended {
            if ConnId::from_bits(conn).role() == Role::Client {
                self.worker.handle_hung_up(ConnId::from_bits(conn));
            }
            self.read(conn);
            self.list_again(conn);
        } else if is_read {
            self.read_or_defer(conn);
        }
    }

    fn read_or_defer(&mut self, conn: u32) {
        if ConnId::from_bits(conn).role() == Role::Node || self.has_room() {
            return self.read(conn);
        }
        let Some(socket) = self.sockets.get_mut(&conn) else { return };
        if !std::mem::replace(&mut socket.is_listed, true) {
            self.deferred.push_back(conn);
        }
    }

    fn read_listed(&mut self, conn: u32) {
        if let Some(socket) = self.sockets.get_mut(&conn) {
            socket.is_listed = false;
            self.read(conn);
        }
    }

    fn list_again(&mut self, conn: u32) {
        let Some(socket) = self.sockets.get_mut(&conn) else { return };
        socket.is_readable = true;
        if !std::mem::replace(&mut socket.is_listed, true) {
            match ConnId::from_bits(conn).role() {
                Role::Node => self.listed_nodes.push(conn),
                Role::Client => self.again.push_back(conn),
            }
        }
    }

    fn read(&mut self, conn: u32) {
        let id = ConnId::from_bits(conn);
        let Some(socket) = self.sockets.get_mut(&conn) else { return };
        if !socket.is_readable {
            return;
        }
        let Some(buffer) = self.worker.read_buffer(id) else { return };
        let room = buffer.len();
        match socket.read(buffer) {
            None => socket.is_readable = false,
            Some(0) => {
                socket.is_readable = false;
                if !std::mem::replace(&mut socket.has_told_end, true) {
                    self.worker.handle_ended(id);
                }
            }
            Some(bytes) => {
                socket.is_readable = bytes == room || socket.is_ending;
                let is_again = socket.is_readable;
                if id.role() == Role::Client {
                    self.client_bytes += bytes;
                }
                self.worker.handle_read(id, bytes);
                if is_again {
                    self.list_again(conn);
                }
            }
        }
    }

    fn write(&mut self, conn: ConnId) {
        let Some(socket) = self.sockets.get_mut(&conn.to_bits()) else { return };
        if !socket.is_writable {
            return;
        }
        let written = socket.write(self.worker.output(conn));
        self.worker.handle_written(conn, written);
    }

    fn act(&mut self, action: Action<ServiceAction<Mail>>) {
        match action {
            Action::Dial { conn, endpoint } => {
                let Endpoint::Embedded { index } = *endpoint else { panic!("nodes are embedded here") };
                self.sockets.insert(conn.to_bits(), Socket::new(Stage::Dialling, self.kernel_bytes));
                self.nodes.insert(conn.to_bits(), NodeEnd::new(index));
            }
            Action::Close { conn } | Action::Finish { conn } => {
                self.sockets.remove(&conn.to_bits());
                self.nodes.remove(&conn.to_bits());
                self.forget_client(conn.to_bits());
            }
            Action::Resume { conn } => {
                if self.sockets.get(&conn.to_bits()).is_some_and(|socket| socket.is_readable) {
                    self.list_again(conn.to_bits());
                }
            }
            Action::TryWrite { conn } => {
                if let Some(socket) = self.sockets.get_mut(&conn.to_bits()).filter(|socket| !socket.is_writable) {
                    socket.is_writable = true;
                    self.worker.handle_writable(conn);
                }
            }
            Action::Service(ServiceAction::Post { mail, .. }) => self.worker.handle_mail(mail),
            Action::Service(action) => panic!("{action:?} was not to be expected"),
        }
    }

    fn forget_client(&mut self, conn: u32) {
        let Some(client) = self.clients.remove(&conn) else { return };
        self.answered += client.answered;
        self.failed += client.errors.len();
        self.closed += usize::from(!client.is_idle());
    }

    /// Everything is well again. Then nothing may be left waiting.
    fn calm_down(&mut self) {
        self.is_up = [true; NODES];
        self.stalled_until_us = [0; NODES];
        self.pace = [usize::MAX; NODES];
        self.order(&["PROXY", "RESUME"]);
        (0..NODES).for_each(|node| self.order(&["PROXY", "RESUME", &format!("node-{node}")]));
        let (mut turns, mut silent, mut moved) = (0, 0, self.moved);
        while silent < SILENT_TURNS_MAX && (turns < 8 || self.clients.values().any(|client| !client.is_idle())) {
            self.turn(true);
            turns += 1;
            silent = if self.moved == moved { silent + 1 } else { 0 };
            moved = self.moved;
        }
        let waiting: Vec<String> = self
            .clients
            .iter()
            .filter(|(_, client)| !client.is_idle())
            .map(|(conn, client)| self.told(*conn, client))
            .collect();
        if !waiting.is_empty() {
            self.order(&["PROXY", "SHOW", "CLIENTS"]);
            let shown: Vec<String> = self
                .nodes
                .iter()
                .map(|(conn, end)| format!("{} at node {}", self.socket_told(*conn), end.node))
                .collect();
            panic!("seed {}: {}\n{}", self.seed, waiting.join("\n"), shown.join("\n"));
        }
    }

    fn told(&self, conn: u32, client: &Client) -> String {
        format!("{}; {}", client.shown(), self.socket_told(conn))
    }

    fn socket_told(&self, conn: u32) -> String {
        let Some(socket) = self.sockets.get(&conn) else { return "no socket".to_owned() };
        format!(
            "{:?}: {:?}, {} unread, {} untaken, readable {}, writable {}, listed {}",
            ConnId::from_bits(conn),
            socket.stage,
            socket.unread(),
            socket.untaken(),
            socket.is_readable,
            socket.is_writable,
            socket.is_listed
        )
    }
}

fn seeds() -> Vec<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    match number("RESPOOL_LARGE_SEED") {
        Some(seed) => vec![seed],
        None => (number("RESPOOL_LARGE_FIRST").unwrap_or(1)..)
            .take(number("RESPOOL_LARGE_SEEDS").unwrap_or(8) as usize)
            .collect(),
    }
}

#[test]
fn nothing_waits_for_ever_for_a_large_value() {
    let (mut answered, mut failed, mut closed, mut pieces, mut pauses, mut throttled) = (0, 0, 0, 0, 0, 0);
    let seeds = seeds();
    for &seed in &seeds {
        let mut world = World::new(seed);
        for _ in 0..ROUNDS {
            (0..TROUBLED_TURNS).for_each(|_| world.turn(false));
            world.calm_down();
        }
        world.clients.keys().copied().collect::<Vec<_>>().into_iter().for_each(|conn| world.forget_client(conn));
        answered += world.answered;
        failed += world.failed;
        closed += world.closed;
        pieces += world.shared.counters[0].requests_in_pieces.value();
        pauses += world.shared.counters[0].pauses.value();
        throttled += world.shared.counters[0].throttled.value();
    }
    println!(
        "{answered} answered, {failed} failed, {closed} closed, {pieces} in pieces, {pauses} pauses, {throttled} throttled"
    );
    assert!(answered > failed && failed > 0, "{answered} answered, {failed} failed: too kind or too cruel a world");
    let each = seeds.len() as u64;
    assert!(pieces > 20 * each && pauses > 10 * each, "{pieces} requests were passed on in pieces, {pauses} pauses");
    assert!(throttled > 0, "no client had to wait because its user had asked for too much");
    const { assert!(PIECES_QUEUE_BYTES < 300_000, "some requests are more than may wait for a node") };
}
