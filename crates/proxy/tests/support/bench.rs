//! One worker whose peers are played by hand: what a test lets them send, and what they are sent.

use super::NoEngine;
use super::support::settle;
use respool_command::Execute;
use respool_connection::{Action, ConnId, DialFailure, Endpoint, Machine, Now, Peer, Service, ServiceAction, WorkerId};
use respool_proxy::hooks::Hooks;
use respool_proxy::{Access, Config, Mail, ProcessBudget, ProcessFacts, Shared, UserLimits, Worker, WorkerSetup};
use respool_wire::{RequestDecoder, RequestLimits, Step, encode_request};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A worker, and what its loop would know.
pub(crate) struct Bench<E> {
    pub(crate) worker: Worker<E>,
    pub(crate) shared: Arc<Shared>,
    now_us: u64,
    /// What the wall clock shows is the time since the bench began and this.
    wall_us: u64,
    /// Connections to nodes that are being dialled, and those that are open.
    pub(crate) dialling: Vec<ConnId>,
    pub(crate) nodes: Vec<ConnId>,
    /// What has been written and not been looked at, by connection.
    written: BTreeMap<u32, Vec<u8>>,
    pub(crate) closed: Vec<ConnId>,
    /// The worker wants to end.
    pub(crate) has_ended: bool,
    /// What nodes were told before the first request, by connection.
    greetings: BTreeMap<u32, String>,
    /// Which node each connection was dialled to.
    places: BTreeMap<u32, usize>,
    /// Where each connection was dialled to.
    endpoints: BTreeMap<u32, Arc<Endpoint>>,
    /// Bytes that peers still take, where they do not take all.
    rooms: BTreeMap<u32, usize>,
    /// Connections that were written although nothing had said that there was room.
    pub(crate) tried: Vec<ConnId>,
    /// The connections of all writes, in their order.
    pub(crate) order: Vec<ConnId>,
    /// Mail to other workers.
    pub(crate) posted: Vec<Mail>,
}

impl Bench<NoEngine> {
    /// A proxy.
    pub(crate) fn proxy(config: Config) -> Self {
        Self::of_many(config, 1, Arc::default())
    }

    /// One of several workers of a proxy, with these users. The others never answer.
    pub(crate) fn of_many(config: Config, workers: usize, access: Arc<Access>) -> Self {
        Self::new(config, workers, access, Hooks::default(), None)
    }

    /// A proxy with these users that asks the program around it.
    pub(crate) fn with_users_and_hooks(config: Config, access: Arc<Access>, hooks: Hooks) -> Self {
        Self::new(config, 1, access, hooks, None)
    }

    /// A proxy with a client and the connection to its node, over which a request of the client was answered.
    pub(crate) fn connected(config: Config) -> (Self, ConnId, ConnId) {
        let mut bench = Self::proxy(config);
        let client = bench.accept();
        bench.ask(client, &["GET", "key"]);
        let node = bench.connect()[0];
        assert_eq!(requests(&bench.heard(node)), ["GET key"]);
        bench.send(node, b"$-1\r\n");
        bench.heard(client);
        (bench, client, node)
    }

    /// A proxy that asks the program around it.
    pub(crate) fn with_hooks(config: Config, hooks: Hooks) -> Self {
        Self::new(config, 1, Arc::default(), hooks, None)
    }
}

impl<E: Execute> Bench<E> {
    /// A server with this engine and no nodes.
    pub(crate) fn server(config: Config, engine: E) -> Self {
        Self::server_with(config, engine, Arc::default(), Hooks::default())
    }

    /// The same with these users, that asks the program around it.
    pub(crate) fn server_with(config: Config, engine: E, access: Arc<Access>, hooks: Hooks) -> Self {
        let config = Config { nodes: Vec::new(), ..config };
        Self::new(config, 1, access, hooks, Some(engine))
    }

    fn new(config: Config, workers: usize, access: Arc<Access>, hooks: Hooks, engine: Option<E>) -> Self {
        let shared = Shared::new(workers, 0, ProcessFacts::default(), Arc::new(ProcessBudget::default()));
        let shared = Arc::new(shared.with_access(access).with_hooks(hooks));
        let setup = WorkerSetup {
            config: Arc::new(config),
            shared: Arc::clone(&shared),
            number: WorkerId::FIRST,
            engine,
            entropy: 1,
        };
        Self {
            worker: Worker::new(setup),
            shared,
            now_us: 1_000_000,
            wall_us: 1_700_000_000_000_000,
            dialling: Vec::new(),
            nodes: Vec::new(),
            written: BTreeMap::new(),
            closed: Vec::new(),
            has_ended: false,
            greetings: BTreeMap::new(),
            places: BTreeMap::new(),
            endpoints: BTreeMap::new(),
            rooms: BTreeMap::new(),
            tried: Vec::new(),
            order: Vec::new(),
            posted: Vec::new(),
        }
    }

    /// Time passes before the next turn.
    pub(crate) fn wait(&mut self, us: u64) {
        self.now_us += us;
        self.worker.skip_time();
    }

    /// Time passes before the next turn in which the worker is not scheduled.
    pub(crate) fn stall(&mut self, us: u64) {
        self.now_us += us;
    }

    /// The time of the latest turn.
    pub(crate) fn now_us(&self) -> u64 {
        self.now_us
    }

    /// Lets time pass, in ten turns.
    pub(crate) fn pass(&mut self, us: u64) {
        for _ in 0..10 {
            self.wait(us / 10);
            self.turn(|_| ());
        }
    }

    /// The wall clock is set by so many microseconds, and no other clock.
    pub(crate) fn set_wall_clock(&mut self, by_us: i64) {
        self.wall_us = self.wall_us.checked_add_signed(by_us).expect("it shows a time after 1970");
    }

    /// One turn, in which `events` happen.
    pub(crate) fn turn(&mut self, events: impl FnOnce(&mut Worker<E>)) {
        self.now_us += 10;
        self.worker.begin_turn(Now::of_clocks(self.now_us, self.now_us + self.wall_us));
        events(&mut self.worker);
        self.worker.end_turn();
        settle(
            self,
            |this| &mut this.worker,
            Self::act,
            |this, conn| {
                let bytes = this.worker.output(conn);
                let taken = match this.rooms.get_mut(&conn.to_bits()) {
                    Some(room) => std::mem::replace(room, room.saturating_sub(bytes.len())).min(bytes.len()),
                    None => bytes.len(),
                };
                this.written.entry(conn.to_bits()).or_default().extend_from_slice(&bytes[..taken]);
                this.order.push(conn);
                this.worker.handle_written(conn, taken);
            },
        );
    }

    fn act(&mut self, action: Action<ServiceAction<Mail>>) {
        match action {
            Action::Dial { conn, endpoint } => {
                if let Endpoint::Embedded { index } = &*endpoint {
                    self.places.insert(conn.to_bits(), *index);
                }
                self.endpoints.insert(conn.to_bits(), endpoint);
                self.dialling.push(conn);
            }
            Action::Close { conn } | Action::Finish { conn } => {
                self.nodes.retain(|node| *node != conn);
                self.dialling.retain(|node| *node != conn);
                self.closed.push(conn);
            }
            Action::TryWrite { conn } => {
                self.tried.push(conn);
                self.worker.handle_writable(conn);
            }
            Action::Service(ServiceAction::Exit) => self.has_ended = true,
            Action::Service(ServiceAction::Post { mail, .. }) => self.posted.push(mail),
            _ => {}
        }
    }

    /// A dial comes to nothing.
    pub(crate) fn fail_dial(&mut self, conn: ConnId, failure: DialFailure) {
        self.dialling.retain(|dialled| *dialled != conn);
        self.turn(|worker| worker.handle_dial_failed(conn, failure));
    }

    /// A node's kernel ends a connection.
    pub(crate) fn cut(&mut self, conn: ConnId) {
        self.nodes.retain(|node| *node != conn);
        self.turn(|worker| worker.handle_broken(conn, "connection reset by peer"));
    }

    /// A peer takes so many bytes more and no others; `usize::MAX`: all.
    pub(crate) fn read_on(&mut self, conn: ConnId, bytes: usize) {
        self.rooms.insert(conn.to_bits(), bytes);
        self.turn(|worker| worker.handle_writable(conn));
    }

    /// A peer has taken so many bytes, which is too little for the kernel to say so.
    pub(crate) fn take_unsaid(&mut self, conn: ConnId, bytes: usize) {
        *self.rooms.entry(conn.to_bits()).or_default() += bytes;
    }

    /// Whether the worker wants to read a connection.
    pub(crate) fn is_read(&mut self, conn: ConnId) -> bool {
        let mut is_read = false;
        self.turn(|worker| is_read = worker.read_buffer(conn).is_some());
        is_read
    }

    pub(crate) fn accept(&mut self) -> ConnId {
        let mut accepted = None;
        self.turn(|worker| accepted = worker.handle_accept(Peer::default()).ok());
        let conn = accepted.expect("there is room");
        // Another client may have had the place.
        self.heard(conn);
        conn
    }

    /// A peer sends bytes, as many as are taken in one turn.
    pub(crate) fn send(&mut self, conn: ConnId, bytes: &[u8]) {
        self.offer(conn, bytes);
    }

    /// The same. Gives those that were not taken.
    pub(crate) fn offer<'a>(&mut self, conn: ConnId, mut bytes: &'a [u8]) -> &'a [u8] {
        self.turn(|worker| {
            while !bytes.is_empty() {
                let Some(buffer) = worker.read_buffer(conn) else { return };
                let taken = bytes.len().min(buffer.len());
                buffer[..taken].copy_from_slice(&bytes[..taken]);
                worker.handle_read(conn, taken);
                bytes = &bytes[taken..];
            }
        });
        bytes
    }

    /// A client asks for something.
    pub(crate) fn ask(&mut self, conn: ConnId, words: &[&str]) {
        self.send(conn, &request(words));
    }

    /// What has been written to a peer since it was looked at last.
    pub(crate) fn heard(&mut self, conn: ConnId) -> String {
        String::from_utf8_lossy(&self.written.remove(&conn.to_bits()).unwrap_or_default()).into_owned()
    }

    /// The node that a connection was dialled to.
    pub(crate) fn node_of(&self, conn: ConnId) -> usize {
        self.places[&conn.to_bits()]
    }

    /// The same as a host and a port, or whatever else it is.
    pub(crate) fn dialled_to(&self, conn: ConnId) -> String {
        self.endpoints[&conn.to_bits()].to_string()
    }

    /// All dials that are under way fail.
    pub(crate) fn refuse_dials(&mut self) {
        for conn in std::mem::take(&mut self.dialling) {
            self.turn(|worker| worker.handle_dial_failed(conn, DialFailure::Refused("refused".to_owned())));
        }
    }

    /// What a client asks, and what it is answered at once.
    pub(crate) fn answer(&mut self, conn: ConnId, words: &[&str]) -> String {
        self.ask(conn, words);
        self.heard(conn)
    }

    /// A figure of `INFO proxy`, for a client.
    pub(crate) fn figure(&mut self, client: ConnId, name: &str) -> u64 {
        let info = self.answer(client, &["INFO", "proxy"]);
        let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.and_then(|figure| figure.parse().ok()).expect("there is such a figure")
    }

    /// Subscribes a client to the first channel of all. Returns the new connection over which its node sends messages.
    pub(crate) fn subscribe(&mut self, client: ConnId, channel: &str) -> ConnId {
        self.ask(client, &["SUBSCRIBE", channel]);
        let lane = self.connect()[0];
        self.heard(lane);
        let reply = format!(">3\r\n$9\r\nsubscribe\r\n${}\r\n{channel}\r\n:1\r\n", channel.len());
        self.send(lane, reply.as_bytes());
        self.heard(client);
        lane
    }

    /// The node connection on which these words were heard, with what it was told before the first request. Everything that
    /// nodes have heard is forgotten.
    pub(crate) fn who_heard(&mut self, words: &str) -> Option<(ConnId, String)> {
        let mut found = None;
        for conn in self.nodes.clone() {
            if requests(&self.heard(conn)).iter().any(|request| request == words) {
                found = Some((conn, self.greetings.get(&conn.to_bits()).cloned().unwrap_or_default()));
            }
        }
        found
    }

    /// All dials succeed, and the nodes agree to everything that they are told first, and to MULTI. Gives the new connections.
    pub(crate) fn connect(&mut self) -> Vec<ConnId> {
        let dialled = std::mem::take(&mut self.dialling);
        self.connect_these(&dialled);
        dialled
    }

    /// The same of some of them.
    pub(crate) fn connect_these(&mut self, dialled: &[ConnId]) {
        self.dialling.retain(|dialling| !dialled.contains(dialling));
        for conn in dialled {
            self.nodes.push(*conn);
            self.heard(*conn);
            self.greetings.insert(conn.to_bits(), String::new());
            self.turn(|worker| worker.handle_connected(*conn));
            while self.nodes.contains(conn) {
                let said = self.heard(*conn);
                let Some(word) = said.split("\r\n").nth(2).map(str::to_owned) else { break };
                self.greetings.entry(conn.to_bits()).or_default().push_str(&requests(&said).concat());
                let reply = match word.as_str() {
                    "PING" => "+PONG\r\n",
                    "HELLO" => "%0\r\n",
                    _ => "+OK\r\n",
                };
                self.send(*conn, reply.as_bytes());
                if word == "PING" {
                    break;
                }
            }
            self.take_multi(*conn);
        }
    }

    /// A dial succeeds, and the node does not know RESP3. Gives the connection.
    pub(crate) fn connect_old(&mut self) -> ConnId {
        let conn = self.dialling.remove(0);
        self.nodes.push(conn);
        self.turn(|worker| worker.handle_connected(conn));
        self.heard(conn);
        self.send(conn, b"-ERR unknown command `HELLO`\r\n");
        self.heard(conn);
        self.send(conn, b"+PONG\r\n");
        conn
    }

    /// If a node is first asked whether it takes MULTI, it does. That is not heard of any more.
    pub(crate) fn take_multi(&mut self, conn: ConnId) -> bool {
        let trial = [request(&["MULTI"]), request(&["EXEC"])].concat();
        let Some(written) = self.written.get_mut(&conn.to_bits()) else { return false };
        let is_tried = written.starts_with(&trial);
        if is_tried {
            written.drain(..trial.len());
            self.send(conn, b"+OK\r\n*0\r\n");
        }
        is_tried
    }
}

/// A request as clients send it.
pub(crate) fn request(words: &[&str]) -> Vec<u8> {
    let mut out = Vec::new();
    encode_request(&mut out, words.iter().map(|word| word.as_bytes()));
    out
}

/// Requests as words, for looking at.
pub(crate) fn requests(heard: &str) -> Vec<String> {
    let (mut rest, mut all) = (heard.as_bytes(), Vec::new());
    while let Ok(Step::Request(request)) = RequestDecoder::new().decode(rest, &RequestLimits::default()) {
        let words: Vec<_> = request.args.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect();
        all.push(words.join(" "));
        rest = &rest[request.consumed..];
    }
    all
}

/// Users who may do everything, with the password `secret` and these limits, beside the default one who has neither.
pub(crate) fn users(of: &[(&str, UserLimits)]) -> Arc<Access> {
    let access = Access::default();
    for (name, _) in of {
        let rules: [&[u8]; 5] = [b"on", b">secret", b"~*", b"&*", b"+@all"];
        access.change(|users| users.with_rules(name.as_bytes(), &rules).map(|users| (users, ()))).unwrap();
    }
    access.set_limits(of.iter().map(|(name, limits)| (name.as_bytes().into(), limits.clone())));
    Arc::new(access)
}
