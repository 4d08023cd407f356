//! A seeded world of subscribers: two workers, two nodes that die and come back, clients in both dialects that subscribe, give
//! up, publish, read slowly or vanish. Checked in each client's stream, in order: every acknowledgement is the one for the
//! request whose turn it is and shows the right count; no message comes before its channel was acknowledged or after it was
//! given up; the messages of a channel come in order and once. When all is calm again, every client gets what it subscribes
//! to, and nodes know of nothing else. Meanwhile routes come, change and go: channels move between pools and get other names
//! there, and those who subscribe notice nothing but what they miss on the way. A seed that fails fails again: `RESPOOL_WORLD_SEED=n`.

use respool_connection::{Action, ConnId, DialFailure, Endpoint, Machine, Now, Peer, Service, ServiceAction, WorkerId};
use respool_proxy::{Config, Mail, ProcessBudget, ProcessFacts, Shared, Worker, WorkerSetup};
use respool_route::{Node, NodePlace, Pool, Reads, Rewrite, Route, Routes, Scheme, Topology, When};
use respool_wire::{
    Encoder, Protocol, ReplyLimits, ReplyScanner, RequestDecoder, RequestLimits, Scan, Step, Value, elements,
    encode_request,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

#[path = "support/chance.rs"]
mod chance;
mod support;

use chance::Chance;
use support::{NoEngine, config, settle};

/// A subscription as clients and nodes name it: the command without its ending, and the channel.
type Name = (&'static str, String);

#[derive(Debug)]
enum Asked {
    Change { word: &'static str, kind: &'static str, names: Vec<String>, is_begin: bool },
    Publish,
    Get,
}

struct Client {
    worker: usize,
    protocol: Protocol,
    to_send: Vec<u8>,
    received: Vec<u8>,
    scanner: ReplyScanner,
    scanned: usize,
    asked: VecDeque<Asked>,
    /// What it subscribes to as its stream says.
    has: BTreeSet<Name>,
    /// The last message by subscription, channel and node.
    last: BTreeMap<(Name, String, usize), u64>,
    may_read: bool,
    is_reading: bool,
}

/// A node's end of a connection.
struct End {
    node: usize,
    decoder: RequestDecoder,
    received: Vec<u8>,
    to_send: VecDeque<Vec<u8>>,
    protocol: Protocol,
    has: BTreeSet<Name>,
}

struct World {
    workers: Vec<Worker<NoEngine>>,
    seed: u64,
    /// Which of [`routed`] holds.
    routes: usize,
    topology: Topology,
    shared: Arc<Shared>,
    chance: Chance,
    now_us: u64,
    clients: BTreeMap<(usize, u32), Client>,
    ends: BTreeMap<(usize, u32), End>,
    dialing: Vec<(usize, u32, usize)>,
    is_up: [bool; NODES],
    /// Whether the node knows RESP3.
    is_modern: [bool; NODES],
    mail: VecDeque<(usize, Mail)>,
    published: u64,
    /// The node of each message that was published.
    published_at: Vec<usize>,
    delivered: usize,
    acknowledged: usize,
    refused: usize,
    cut_off: usize,
}

const NODES: usize = 2;
const WORKERS: usize = 2;
const CHANNELS: [&str; 6] = ["a", "ab", "b", "news", "news.2", "__keyspace@0__:a"];
const PATTERNS: [&str; 3] = ["a*", "news*", "*"];

/// One route by a prefix: to this node's pool, so many bytes taken off, this put in front.
type Said = (&'static str, usize, usize, &'static str);

/// What may be said of routes: nothing, with both nodes in one pool; otherwise each is a pool of its own.
const ROUTES: [&[Said]; 4] =
    [&[], &[("n", 1, 1, "x:")], &[("news", 1, 0, ""), ("a", 0, 0, "y:")], &[("a", 1, 0, "y:"), ("news.", 0, 5, "z:")]];

fn routed(seed: u64, number: usize) -> Config {
    let mut config = config(NODES, seed);
    if number == 0 {
        return config;
    }
    let pool = |first: usize| {
        let topology = Topology::new(Scheme::default(), vec![Node::new(&config.nodes[first].name)]).unwrap();
        Pool { first: NodePlace::new(first), ..Pool::plain(["main", "other"][first], Arc::new(topology)) }
    };
    let pools = vec![pool(0), pool(1)];
    let route = |(prefix, pool, strip, add): &Said| Route {
        name: (*prefix).into(),
        when: When { prefix: prefix.as_bytes().into(), ..When::default() },
        pool: *pool,
        rewrite: Rewrite { strip: *strip, add: add.as_bytes().into() },
        reads: Reads::Primary,
        dead_node: None,
        pool_mode: None,
    };
    config.topology = Arc::clone(&pools[0].topology);
    config.routes = Arc::new(Routes::new(pools, ROUTES[number].iter().map(route).collect()).unwrap());
    config
}

impl World {
    /// Where a channel lives, and its name there.
    fn place(&self, channel: &str) -> (usize, String) {
        if self.routes == 0 {
            return (self.topology.place(channel.as_bytes()).get(), channel.to_owned());
        }
        match ROUTES[self.routes].iter().find(|(prefix, ..)| channel.starts_with(prefix)) {
            Some((_, node, strip, add)) => (*node, format!("{add}{}", &channel[*strip..])),
            None => (0, channel.to_owned()),
        }
    }

    /// What a node has to be told because a client subscribes to this.
    fn wanted_of(&self, node: usize, (kind, name): &Name) -> Vec<Name> {
        if name.starts_with("__") || *kind == "p" && self.routes == 0 {
            return vec![(kind, name.clone())];
        }
        if *kind != "p" {
            let (at, name) = self.place(name);
            return if at == node { vec![(kind, name)] } else { Vec::new() };
        }
        let mut all = if node == 0 { vec![(*kind, name.clone())] } else { Vec::new() };
        let begin = name.trim_end_matches('*');
        for (prefix, at, strip, add) in ROUTES[self.routes] {
            if *at == node && (prefix.starts_with(begin) || begin.starts_with(prefix)) {
                all.push((kind, format!("{add}{}*", begin.get(*strip..).unwrap_or_default())));
            }
        }
        all
    }

    /// Other routes hold in all workers.
    fn take_routes(&mut self, number: usize) {
        self.routes = number;
        let config = Arc::new(routed(self.seed, number));
        for worker in &mut self.workers {
            worker.handle_mail(Mail::Reload(Arc::clone(&config)));
        }
    }

    fn new(seed: u64) -> Self {
        let config = Arc::new(config(NODES, seed));
        let shared = Arc::new(Shared::new(WORKERS, 0, ProcessFacts::default(), Arc::new(ProcessBudget::default())));
        let worker = |place| {
            let (config, shared) = (Arc::clone(&config), Arc::clone(&shared));
            let number = WorkerId::new(place);
            Worker::new(WorkerSetup { config, shared, number, engine: None, entropy: seed })
        };
        Self {
            workers: (0..WORKERS).map(worker).collect(),
            seed,
            routes: 0,
            topology: (*config.topology).clone(),
            shared,
            chance: Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
            now_us: 1_000_000,
            clients: BTreeMap::new(),
            ends: BTreeMap::new(),
            dialing: Vec::new(),
            is_up: [true; NODES],
            is_modern: [true, seed.is_multiple_of(3)],
            mail: VecDeque::new(),
            published: 0,
            published_at: Vec::new(),
            delivered: 0,
            acknowledged: 0,
            refused: 0,
            cut_off: 0,
        }
    }

    fn turn(&mut self, is_calm: bool) {
        self.now_us += match self.chance.below(80) {
            0 if !is_calm => self.chance.below(300_000) as u64,
            _ => self.chance.below(300) as u64,
        };
        if self.chance.one_in(2) {
            // The loops had something to read at once: messages may wait for more.
            self.workers.iter_mut().for_each(|worker| worker.handle_waited(0));
        }
        let now = Now::of_clocks(self.now_us, self.now_us + 1_700_000_000_000_000);
        self.workers.iter_mut().for_each(|worker| worker.begin_turn(now));
        for _ in 0..self.mail.len() {
            let Some((to, mail)) = self.mail.pop_front() else { break };
            self.workers[to].handle_mail(mail);
        }
        if !is_calm && self.chance.one_in(100) {
            let number = self.chance.below(ROUTES.len());
            self.take_routes(number);
        }
        self.answer_dials(is_calm);
        self.move_nodes(is_calm);
        self.move_clients(is_calm);
        for worker in 0..WORKERS {
            self.workers[worker].end_turn();
            self.settle(worker);
        }
    }

    fn answer_dials(&mut self, is_calm: bool) {
        for (worker, lane, node) in std::mem::take(&mut self.dialing) {
            let conn = ConnId::upstream(lane);
            if !is_calm && self.chance.one_in(3) {
                self.dialing.push((worker, lane, node));
            } else if self.is_up[node] {
                let end = End {
                    node,
                    decoder: RequestDecoder::new(),
                    received: Vec::new(),
                    to_send: VecDeque::new(),
                    protocol: Protocol::Resp2,
                    has: BTreeSet::new(),
                };
                self.ends.insert((worker, lane), end);
                self.workers[worker].handle_connected(conn);
            } else {
                self.workers[worker].handle_dial_failed(conn, DialFailure::Refused("connection refused".to_owned()));
            }
        }
    }

    fn move_nodes(&mut self, is_calm: bool) {
        for key in self.ends.keys().copied().collect::<Vec<_>>() {
            if !is_calm && self.chance.one_in(900) {
                self.break_end(key);
                continue;
            }
            if !is_calm && self.chance.one_in(3) {
                continue;
            }
            for _ in 0..self.chance.below(5) + usize::from(is_calm) * 1_000 {
                let Some(end) = self.ends.get_mut(&key) else { break };
                let Some(mut bytes) = end.to_send.pop_front() else { break };
                if !is_calm && bytes.len() > 1 && self.chance.one_in(4) {
                    let rest = bytes.split_off(self.chance.below(bytes.len() - 1) + 1);
                    end.to_send.push_front(rest);
                }
                self.give(key.0, ConnId::upstream(key.1), &bytes);
            }
        }
        if self.chance.one_in(4) {
            self.publish_at_node();
        }
        for node in 0..NODES {
            if is_calm {
                self.is_up[node] = true;
            } else if self.chance.one_in(if self.is_up[node] { 400 } else { 40 }) {
                self.is_up[node] = !self.is_up[node];
                let lost: Vec<_> = self.ends.iter().filter(|(_, end)| end.node == node).map(|(key, _)| *key).collect();
                if !self.is_up[node] {
                    lost.into_iter().for_each(|key| self.break_end(key));
                }
            }
        }
    }

    /// A client that does not go through the proxy publishes, where the channel lives.
    fn publish_at_node(&mut self) {
        let channel = CHANNELS[self.chance.below(CHANNELS.len())];
        // Nodes speak of their own keys themselves.
        let (node, name) = match channel.starts_with("__") {
            true => (self.chance.below(NODES), channel.to_owned()),
            false => self.place(channel),
        };
        let kind = if self.chance.one_in(3) { "s" } else { "" };
        self.publish(node, kind, &name);
    }

    /// A node passes a message on. Returns to how many.
    fn publish(&mut self, node: usize, kind: &'static str, channel: &str) -> usize {
        self.published += 1;
        self.published_at.push(node);
        let payload = self.published.to_string();
        let mut count = 0;
        for end in self.ends.values_mut().filter(|end| end.node == node) {
            let patterns = end.has.iter().filter(|(k, p)| kind.is_empty() && *k == "p" && matches(p, channel));
            let by_pattern: Vec<Vec<&str>> = patterns.map(|(_, p)| vec!["pmessage", p, channel, &payload]).collect();
            let is_meant = end.has.contains(&(kind, channel.to_owned()));
            let word = if kind == "s" { "smessage" } else { "message" };
            let direct = is_meant.then(|| vec![word, channel, &payload]);
            for words in direct.into_iter().chain(by_pattern) {
                let mut out = Vec::new();
                let mut push = Encoder::new(&mut out, end.protocol);
                push.push(words.len());
                words.iter().for_each(|word| push.bulk(word.as_bytes()));
                end.to_send.push_back(out);
                count += 1;
            }
        }
        count
    }

    fn break_end(&mut self, key: (usize, u32)) {
        self.ends.remove(&key);
        let conn = ConnId::upstream(key.1);
        if self.chance.one_in(2) {
            self.workers[key.0].handle_broken(conn, "connection reset by peer");
        } else {
            self.workers[key.0].handle_ended(conn);
        }
    }

    fn give(&mut self, worker: usize, conn: ConnId, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let Some(buffer) = self.workers[worker].read_buffer(conn) else { return };
            let taken = bytes.len().min(buffer.len());
            buffer[..taken].copy_from_slice(&bytes[..taken]);
            bytes = &bytes[taken..];
            self.workers[worker].handle_read(conn, taken);
            if !self.ends.contains_key(&(worker, conn.index() as u32)) {
                return;
            }
        }
    }

    fn move_clients(&mut self, is_calm: bool) {
        if !is_calm && self.clients.len() < 14 && self.chance.one_in(8) {
            let worker = self.chance.below(WORKERS);
            let conn = self.workers[worker].handle_accept(Peer::default()).expect("there is room");
            let protocol = if self.chance.one_in(2) { Protocol::Resp2 } else { Protocol::Resp3 };
            let mut client = Client {
                worker,
                protocol,
                to_send: Vec::new(),
                received: Vec::new(),
                scanner: ReplyScanner::default(),
                scanned: 0,
                asked: VecDeque::new(),
                has: BTreeSet::new(),
                last: BTreeMap::new(),
                may_read: true,
                is_reading: true,
            };
            if protocol == Protocol::Resp3 {
                say(&mut client.to_send, &["HELLO", "3"]);
                client.asked.push_back(Asked::Get);
            }
            self.clients.insert((worker, conn.index() as u32), client);
        }
        for key in self.clients.keys().copied().collect::<Vec<_>>() {
            let conn = ConnId::client(key.1);
            if !is_calm && self.chance.one_in(400) {
                self.clients.remove(&key);
                self.workers[key.0].handle_broken(conn, "connection reset by peer");
                continue;
            }
            let client = self.clients.get_mut(&key).expect("it is there");
            client.is_reading = is_calm || !self.chance.one_in(4);
            if client.is_reading {
                self.workers[key.0].handle_writable(conn);
            }
            if !is_calm && client.asked.len() < 12 && self.chance.one_in(2) {
                ask(client, &mut self.chance);
            }
            let share = if is_calm { usize::MAX } else { self.chance.below(120) };
            while !client.to_send.is_empty() && client.may_read {
                let Some(buffer) = self.workers[key.0].read_buffer(conn) else {
                    client.may_read = false;
                    break;
                };
                let taken = client.to_send.len().min(buffer.len()).min(share);
                if taken == 0 {
                    break;
                }
                buffer[..taken].copy_from_slice(&client.to_send[..taken]);
                client.to_send.drain(..taken);
                self.workers[key.0].handle_read(conn, taken);
                if share != usize::MAX {
                    break;
                }
            }
        }
    }

    fn settle(&mut self, worker: usize) {
        settle(
            self,
            |this| &mut this.workers[worker],
            |this, action| this.act(worker, action),
            |this, conn| this.write(worker, conn),
        );
    }

    fn act(&mut self, worker: usize, action: Action<ServiceAction<Mail>>) {
        match action {
            Action::Dial { conn, endpoint } => {
                let Endpoint::Embedded { index } = *endpoint else { panic!("nodes are embedded here") };
                self.dialing.push((worker, conn.index() as u32, index));
            }
            Action::Close { conn } if conn.is_upstream() => {
                self.ends.remove(&(worker, conn.index() as u32));
                self.dialing.retain(|(w, lane, _)| (*w, *lane) != (worker, conn.index() as u32));
            }
            Action::Close { conn } => {
                self.cut_off += usize::from(self.clients.remove(&(worker, conn.index() as u32)).is_some());
            }
            Action::Resume { conn } => {
                if let Some(client) = self.clients.get_mut(&(worker, conn.index() as u32)) {
                    client.may_read = true;
                }
            }
            Action::TryWrite { conn } => self.workers[worker].handle_writable(conn),
            Action::Service(ServiceAction::Post { worker, mail }) => self.mail.push_back((worker.get(), mail)),
            Action::Service(ServiceAction::StopAccepting)
            | Action::Finish { .. }
            | Action::Service(ServiceAction::Exit) => {
                panic!("{action:?} was not to be expected")
            }
        }
    }

    fn write(&mut self, worker: usize, conn: ConnId) {
        let bytes = self.workers[worker].output(conn).to_vec();
        let key = (worker, conn.index() as u32);
        let taken = if self.chance.one_in(4) { self.chance.below(bytes.len()) } else { bytes.len() };
        if conn.is_upstream() {
            let Some(end) = self.ends.get_mut(&key) else { return };
            end.received.extend_from_slice(&bytes[..taken]);
            self.serve(key);
            self.workers[worker].handle_written(conn, taken);
            if taken < bytes.len() {
                self.workers[worker].handle_writable(conn);
            }
            return;
        }
        let Some(client) = self.clients.get_mut(&key) else { return };
        let taken = if client.is_reading { taken } else { 0 };
        client.received.extend_from_slice(&bytes[..taken]);
        self.workers[worker].handle_written(conn, taken);
        self.check(key);
        if taken > 0 && taken < bytes.len() {
            self.workers[worker].handle_writable(conn);
        }
    }

    /// A node reads requests.
    fn serve(&mut self, key: (usize, u32)) {
        loop {
            let Some(end) = self.ends.get_mut(&key) else { return };
            let received = std::mem::take(&mut end.received);
            let request = match received.is_empty() {
                true => None,
                false => {
                    match end.decoder.decode(&received, &RequestLimits::default()).expect("requests are canonical") {
                        Step::Request(request) => {
                            let words: Vec<String> =
                                request.args.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect();
                            Some((words, request.consumed))
                        }
                        Step::Incomplete | Step::Empty { .. } => None,
                    }
                }
            };
            let Some((words, consumed)) = request else {
                end.received = received;
                return;
            };
            end.received = received[consumed..].to_vec();
            self.execute(key, &words);
        }
    }

    fn execute(&mut self, key: (usize, u32), words: &[String]) {
        let Some(end) = self.ends.get_mut(&key) else { return };
        let mut out = Vec::new();
        let mut reply = Encoder::new(&mut out, end.protocol);
        let word = words[0].to_ascii_lowercase();
        let change = ["", "p", "s"].into_iter().find_map(|kind| match word.strip_prefix(kind)? {
            "subscribe" => Some((kind, true)),
            "unsubscribe" => Some((kind, false)),
            _ => None,
        });
        match (change, word.as_str()) {
            (Some((kind, is_begin)), _) => {
                for name in &words[1..] {
                    let entry = (kind, name.clone());
                    let was_news = if is_begin { end.has.insert(entry) } else { end.has.remove(&entry) };
                    assert!(was_news, "a node is told of changes alone: {words:?}");
                    let mut reply = Encoder::new(&mut out, end.protocol);
                    reply.push(3);
                    reply.bulk(word.as_bytes());
                    reply.bulk(name.as_bytes());
                    reply.integer(end.has.len() as i64);
                }
            }
            (_, "hello") if !self.is_modern[end.node] => reply.error(b"ERR unknown command 'HELLO'"),
            (_, "hello") => {
                end.protocol = Protocol::Resp3;
                let mut reply = Encoder::new(&mut out, end.protocol);
                reply.map(0);
            }
            (_, "ping") if end.protocol == Protocol::Resp2 && !end.has.is_empty() => {
                reply.array(2);
                reply.bulk(b"pong");
                reply.bulk(b"");
            }
            (_, "ping") => reply.simple("PONG"),
            (_, "get") => reply.bulk(words[1].as_bytes()),
            (_, "publish" | "spublish") => {
                let node = end.node;
                let kind = if word == "spublish" { "s" } else { "" };
                let count = self.publish(node, kind, &words[1]);
                let Some(end) = self.ends.get_mut(&key) else { return };
                end.to_send.push_back(format!(":{count}\r\n").into_bytes());
                return;
            }
            _ => panic!("a node got {words:?}"),
        }
        end.to_send.push_back(out);
    }

    /// Goes through what a client has received, in order.
    fn check(&mut self, key: (usize, u32)) {
        loop {
            let Some(client) = self.clients.get_mut(&key) else { return };
            let rest = &client.received[client.scanned..];
            if rest.is_empty() {
                return;
            }
            match client.scanner.scan(rest, &ReplyLimits::default()).expect("clients get RESP") {
                Scan::Partial => {
                    client.scanned = client.received.len();
                    return;
                }
                Scan::Complete { consumed, .. } => {
                    let end = client.scanned + consumed;
                    let reply: Vec<u8> = client.received.drain(..end).collect();
                    client.scanned = 0;
                    self.take(key, &reply);
                }
            }
        }
    }

    fn take(&mut self, key: (usize, u32), reply: &[u8]) {
        let client = self.clients.get_mut(&key).expect("it was there");
        let shown = String::from_utf8_lossy(reply).into_owned();
        let words: Vec<String> = match elements(reply) {
            Some(parts) => parts.map(text).collect(),
            None => Vec::new(),
        };
        if let [word, rest @ ..] = &words[..]
            && let Some(kind) = word.strip_suffix("message").filter(|_| words.len() > 2)
        {
            let kind = ["", "p", "s"].into_iter().find(|k| *k == kind).expect("a kind of message");
            let name = (kind, rest[0].clone());
            assert!(client.has.contains(&name), "a message of what is not subscribed: {shown}");
            let (channel, payload) =
                (rest[rest.len() - 2].clone(), rest[rest.len() - 1].parse::<u64>().expect("a number"));
            // Each node speaks in its own order, and a channel may have been at another meanwhile.
            let node = self.published_at[payload as usize - 1];
            let before = client.last.insert((name, channel, node), payload);
            assert!(before.is_none_or(|before| before < payload), "{before:?} came before {shown}");
            self.delivered += 1;
            return;
        }
        let Some(asked) = client.asked.front_mut() else { panic!("{shown} was not asked for") };
        match asked {
            Asked::Change { .. } if is_refusal(reply) => self.refused += 1,
            Asked::Change { word, kind, names, is_begin } => {
                assert_eq!(words.first().map(String::as_str), Some(*word), "{shown}");
                let name = names.remove(0);
                assert_eq!(words[1], name, "{shown}");
                let entry = (*kind, name);
                if *is_begin {
                    client.has.insert(entry)
                } else {
                    client.has.remove(&entry)
                };
                let is_counted = |(k, _): &&Name| (*k == "s") == (*kind == "s");
                assert_eq!(words[2], client.has.iter().filter(is_counted).count().to_string(), "{shown}");
                let first = if client.protocol == Protocol::Resp3 { b'>' } else { b'*' };
                assert_eq!(reply[0], first);
                self.acknowledged += 1;
                if !names.is_empty() {
                    return;
                }
            }
            Asked::Publish => {
                let is_refused = is_refusal(reply) || reply.starts_with(b"-ERR Can't execute");
                assert!(is_refused || reply.starts_with(b":"), "{shown}");
            }
            Asked::Get => {}
        }
        client.asked.pop_front();
    }
}

/// A node is not there, or is another one now.
fn is_refusal(reply: &[u8]) -> bool {
    reply.starts_with(b"-ERR node ") || reply.starts_with(b"-ERR the nodes were changed")
}

fn say(out: &mut Vec<u8>, words: &[&str]) {
    encode_request(out, words.iter().map(|word| word.as_bytes()));
}

fn text(part: &[u8]) -> String {
    match Value::parse(part).expect("a whole reply") {
        Value::Bulk(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Value::Integer(number) => number.to_string(),
        other => format!("{other:?}"),
    }
}

/// Patterns here end with their only star.
fn matches(pattern: &str, channel: &str) -> bool {
    channel.starts_with(pattern.trim_end_matches('*'))
}

fn ask(client: &mut Client, chance: &mut Chance) {
    let out = &mut client.to_send;
    let (kind, words, all) = match chance.below(4) {
        0 => ("p", ["psubscribe", "punsubscribe"], &PATTERNS[..]),
        1 => ("s", ["ssubscribe", "sunsubscribe"], &CHANNELS[..5]),
        _ => ("", ["subscribe", "unsubscribe"], &CHANNELS[..]),
    };
    match chance.below(10) {
        0 => {
            say(out, &[["PUBLISH", "SPUBLISH"][chance.below(2)], CHANNELS[chance.below(5)], "0"]);
            client.asked.push_back(Asked::Publish);
        }
        1 => {
            say(out, &["GET", "x"]);
            client.asked.push_back(Asked::Get);
        }
        choice => {
            let is_begin = choice < 7;
            let word = words[usize::from(!is_begin)];
            let names: Vec<String> = (0..=chance.below(3)).map(|_| all[chance.below(all.len())].to_owned()).collect();
            let mut request = vec![word];
            request.extend(names.iter().map(String::as_str));
            say(out, &request);
            client.asked.push_back(Asked::Change { word, kind, names, is_begin });
        }
    }
}

fn seeds() -> Vec<u64> {
    match std::env::var("RESPOOL_WORLD_SEED").ok().and_then(|seed| seed.parse().ok()) {
        Some(seed) => vec![seed],
        None => (1..=8).collect(),
    }
}

fn live(seed: u64) -> World {
    let mut world = World::new(seed);
    (0..2_500).for_each(|_| world.turn(false));
    calm(&mut world);
    world
}

fn calm(world: &mut World) {
    for _ in 0..80 {
        world.now_us += 20_000;
        world.turn(true);
    }
}

#[test]
fn subscribers_get_what_they_subscribe_to_and_nothing_else() {
    let (mut delivered, mut acknowledged, mut refused) = (0, 0, 0);
    for seed in seeds() {
        let mut world = live(seed);
        for client in world.clients.values() {
            assert!(client.asked.is_empty(), "seed {seed}: {:?} waits for {:?}", client.worker, client.asked);
        }
        // Each node knows of what clients subscribe to and belongs to it, once per worker.
        for worker in 0..WORKERS {
            for node in 0..NODES {
                let own = world.clients.values().filter(|c| c.worker == worker);
                let wanted: BTreeSet<Name> =
                    own.flat_map(|c| &c.has).flat_map(|name| world.wanted_of(node, name)).collect();
                let ends = world.ends.iter().filter(|(key, end)| key.0 == worker && end.node == node);
                let known: BTreeSet<Name> = ends.flat_map(|(_, end)| end.has.clone()).collect();
                assert_eq!(known, wanted, "seed {seed}: worker {worker}, node {node}");
            }
        }
        world.turn_quietly();
        // One more message of each channel reaches each subscriber once.
        for kind in ["", "s"] {
            for channel in &CHANNELS[..5] {
                let (node, name) = world.place(channel);
                let before = world.delivered;
                world.publish(node, kind, &name);
                world.turn_quietly();
                let matching = |c: &Client| {
                    let patterns = c.has.iter().filter(|(k, p)| kind.is_empty() && *k == "p" && matches(p, channel));
                    patterns.count() + usize::from(c.has.contains(&(kind, (*channel).to_owned())))
                };
                let wanted: usize = world.clients.values().map(matching).sum();
                assert_eq!(world.delivered - before, wanted, "seed {seed}: {kind} {channel}, routes {}", world.routes);
            }
        }
        delivered += world.delivered;
        acknowledged += world.acknowledged;
        refused += world.refused;
    }
    assert!(delivered > 5_000 && acknowledged > 5_000 && refused > 100, "{delivered} {acknowledged} {refused}");
}

impl World {
    /// A turn in which nodes give all they have, clients read, and nothing new is done.
    fn turn_quietly(&mut self) {
        for _ in 0..6 {
            self.now_us += 100;
            let now = Now::of_clocks(self.now_us, self.now_us + 1_700_000_000_000_000);
            self.workers.iter_mut().for_each(|worker| worker.begin_turn(now));
            for key in self.ends.keys().copied().collect::<Vec<_>>() {
                while let Some(bytes) = self.ends.get_mut(&key).and_then(|end| end.to_send.pop_front()) {
                    self.give(key.0, ConnId::upstream(key.1), &bytes);
                }
            }
            for (key, client) in &mut self.clients {
                client.is_reading = true;
                self.workers[key.0].handle_writable(ConnId::client(key.1));
            }
            for worker in 0..WORKERS {
                self.workers[worker].end_turn();
                self.settle(worker);
            }
        }
    }
}

#[test]
fn nothing_is_left_of_subscribers_who_have_left() {
    for seed in seeds().into_iter().take(3) {
        let mut world = live(seed);
        for (worker, index) in world.clients.keys().copied().collect::<Vec<_>>() {
            world.workers[worker].handle_broken(ConnId::client(index), "gone");
        }
        world.clients.clear();
        calm(&mut world);
        for end in world.ends.values() {
            assert!(end.has.is_empty(), "seed {seed}: {:?}", end.has);
        }
        assert_eq!(world.shared.ledger.held_bytes(), 0, "seed {seed}");
        assert_eq!(world.shared.sum(|c| c.subscriptions.value()), 0, "seed {seed}");
    }
}
