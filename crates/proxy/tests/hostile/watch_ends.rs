//! A connection on which keys have been watched, and every way in which that ends: the transactions of the client that has
//! the connection next fail for no key of another's.

use crate::NoEngine;
use crate::bench::{Bench, request};
use crate::chance::Chance;
use crate::support::config;
use respool_connection::{ConnId, Endpoint, Machine, Service};
use respool_proxy::{Config, LaneLimits, Mail};
use respool_route::PoolMode;
use respool_wire::{RequestDecoder, RequestLimits, Step};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a server knows of one of its connections.
#[derive(Default)]
struct Connection {
    /// What has come of requests and is not whole.
    input: Vec<u8>,
    database: String,
    /// The keys that are watched, each with its database and the round in which that began.
    watched: Vec<(String, String, usize)>,
    is_dirty: bool,
    /// Since MULTI: the requests, and whether one was refused.
    queued: Option<(Vec<Vec<String>>, bool)>,
}

/// A worker in front of a server that knows about transactions.
struct Scene {
    bench: Bench<NoEngine>,
    connections: BTreeMap<u32, Connection>,
    /// The keys that have been watched in an earlier round are of no interest any more.
    round: usize,
    /// Keys tell which watching they belong to.
    has_epochs: bool,
    /// Replies are kept.
    is_late: bool,
    kept: Vec<(ConnId, Vec<u8>)>,
    settings: Config,
    /// The client whose watching ends, and another one.
    client: ConnId,
    other: ConnId,
}

impl Scene {
    fn new(mode: PoolMode, is_noloop: bool) -> Self {
        let plain = config(1, 1);
        let settings = Config { lanes: LaneLimits { mode, ..plain.lanes }, ..plain };
        let mut bench = Bench::proxy(settings.clone());
        let (client, other) = (bench.accept(), bench.accept());
        let (connections, kept) = (BTreeMap::new(), Vec::new());
        let mut scene =
            Self { bench, connections, round: 1, has_epochs: false, is_late: false, kept, settings, client, other };
        if is_noloop {
            scene.ask("HELLO 3");
            assert!(scene.ask("CLIENT TRACKING ON NOLOOP").ends_with("+OK\r\n"));
        }
        scene
    }

    /// The server answers all that it is asked, as far as it is not late.
    fn serve(&mut self) {
        for _ in 0..12 {
            // What is done with one may end the dial of another.
            while let Some(conn) = self.bench.dialling.pop() {
                self.bench.nodes.push(conn);
                // Another connection may have had its place.
                self.bench.heard(conn);
                self.connections.insert(conn.to_bits(), Connection { database: "0".to_owned(), ..Default::default() });
                self.bench.turn(|worker| worker.handle_connected(conn));
            }
            for conn in self.bench.nodes.clone() {
                if !self.bench.nodes.contains(&conn) {
                    continue;
                }
                let heard = self.bench.heard(conn);
                let replies = self.answer(conn.to_bits(), heard.as_bytes());
                match self.is_late {
                    true => self.kept.push((conn, replies)),
                    false => self.bench.send(conn, &replies),
                }
            }
        }
    }

    fn answer(&mut self, conn: u32, heard: &[u8]) -> Vec<u8> {
        let mut input = std::mem::take(&mut self.connections.get_mut(&conn).expect("it is connected").input);
        input.extend_from_slice(heard);
        let (mut used, mut replies) = (0, String::new());
        while let Ok(Step::Request(request)) = RequestDecoder::new().decode(&input[used..], &RequestLimits::default()) {
            let words: Vec<_> = request.args.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect();
            used += request.consumed;
            replies.push_str(&self.execute(conn, &words.iter().map(String::as_str).collect::<Vec<_>>()));
            replies.push_str("\r\n");
        }
        input.drain(..used);
        self.connections.get_mut(&conn).expect("it is connected").input = input;
        replies.into_bytes()
    }

    /// A connection is used for keys of one watching: nothing of another is watched there.
    fn look_for_others(&self, conn: u32, words: &[&str]) {
        let Some(of) = self.connections[&conn].watched.iter().map(|(key, ..)| epoch_of(key)).next() else { return };
        let is_trial =
            words[0] == "EXEC" && self.connections[&conn].queued.as_ref().is_some_and(|(all, _)| all.is_empty());
        assert!(!is_trial, "the watching of {of} is ended by a trial");
        let named = words.get(1).filter(|_| matches!(words[0], "WATCH" | "SET")).map(|key| epoch_of(key));
        assert!(named.is_none_or(|named| named == of), "{words:?} where keys of {of} are watched");
    }

    fn execute(&mut self, conn: u32, words: &[&str]) -> String {
        if self.has_epochs {
            self.look_for_others(conn, words);
        }
        let round = self.round;
        let this = self.connections.get_mut(&conn).expect("it is connected");
        if matches!(words[0], "WATCH" | "MULTI") {
            let left: Vec<_> = this.watched.iter().filter(|(.., since)| *since != round).collect();
            assert!(left.is_empty(), "{words:?} where {left:?} are still watched");
        }
        let queues = !matches!(words[0], "MULTI" | "EXEC" | "DISCARD" | "WATCH");
        if let Some((queued, is_spoilt)) = this.queued.as_mut().filter(|_| queues) {
            if words.contains(&"oom") {
                *is_spoilt = true;
                return "-OOM command not allowed".to_owned();
            }
            queued.push(words.iter().map(|word| (*word).to_owned()).collect());
            return "+QUEUED".to_owned();
        }
        match words[0] {
            "PING" => "+PONG".to_owned(),
            "HELLO" => "%0".to_owned(),
            "GET" => "$-1".to_owned(),
            "CLIENT" if words[1] == "ID" => ":7".to_owned(),
            "SELECT" => {
                this.database = words[1].to_owned();
                "+OK".to_owned()
            }
            "WATCH" => {
                let database = this.database.clone();
                this.watched.extend(words[1..].iter().map(|key| ((*key).to_owned(), database.clone(), round)));
                "+OK".to_owned()
            }
            "MULTI" if this.queued.is_some() => "-ERR MULTI calls can not be nested".to_owned(),
            "MULTI" => {
                this.queued = Some((Vec::new(), false));
                "+OK".to_owned()
            }
            "EXEC" | "DISCARD" | "UNWATCH" => {
                let (queued, is_dirty) = (this.queued.take(), std::mem::take(&mut this.is_dirty));
                this.watched.clear();
                match (words[0], queued) {
                    ("UNWATCH", _) | ("DISCARD", Some(_)) => "+OK".to_owned(),
                    ("EXEC", Some((_, true))) => {
                        "-EXECABORT Transaction discarded because of previous errors.".to_owned()
                    }
                    ("EXEC", Some(_)) if is_dirty => "*-1".to_owned(),
                    ("EXEC", Some((queued, _))) => {
                        let replies: Vec<String> = queued.iter().map(|words| self.execute_words(conn, words)).collect();
                        format!("*{}\r\n{}", replies.len(), replies.join("\r\n")).trim_end().to_owned()
                    }
                    _ => format!("-ERR {} without MULTI", words[0]),
                }
            }
            "SWAPDB" | "FLUSHALL" => {
                self.touch(|_, _| true);
                "+OK".to_owned()
            }
            "SET" => {
                let database = this.database.clone();
                self.touch(|key, at| key == words[1] && at == database);
                "+OK".to_owned()
            }
            _ => "+OK".to_owned(),
        }
    }

    fn execute_words(&mut self, conn: u32, words: &[String]) -> String {
        self.execute(conn, &words.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// Keys are changed: their names, and their databases.
    fn touch(&mut self, are_meant: impl Fn(&str, &str) -> bool) {
        for this in self.connections.values_mut() {
            this.is_dirty |= this.watched.iter().any(|(key, database, _)| are_meant(key, database));
        }
    }

    fn asks(&mut self, client: ConnId, words: &str) -> String {
        let request = request(&words.split(' ').collect::<Vec<_>>());
        if !self.bench.offer(client, &request).is_empty() {
            // It was not read in this turn, and so none of it was.
            self.serve();
            assert!(self.bench.offer(client, &request).is_empty(), "{words}: the client is not read");
        }
        self.serve();
        self.heard(client)
    }

    /// What a client has been told, but that all its keys may have changed.
    fn heard(&mut self, client: ConnId) -> String {
        self.bench.heard(client).replace(">2\r\n$10\r\ninvalidate\r\n_\r\n", "")
    }

    fn ask(&mut self, words: &str) -> String {
        self.asks(self.client, words)
    }

    fn watch(&mut self) {
        assert_eq!(self.ask("WATCH k l"), "+OK\r\n");
    }

    fn queue(&mut self) {
        assert_eq!(self.ask("MULTI"), "+OK\r\n");
        assert_eq!(self.ask("SET k 1"), "+QUEUED\r\n");
    }

    /// Another client changes what is watched.
    fn conflict(&mut self) {
        assert_eq!(self.asks(self.other, "SET k other"), "+OK\r\n");
    }

    fn leave(&mut self) {
        let client = self.client;
        self.bench.turn(|worker| worker.handle_broken(client, "gone"));
        self.bench.closed.push(client);
        self.serve();
    }

    /// The server is so late that nothing is waited for any more; then it says what it has to say.
    fn be_late(&mut self, words: &str) -> String {
        self.is_late = true;
        self.ask(words);
        let told = (0..6).map(|_| {
            self.bench.pass(100_000);
            self.heard(self.client)
        });
        let told = told.collect();
        self.catch_up();
        told
    }

    fn catch_up(&mut self) {
        self.serve();
        self.is_late = false;
        for (conn, replies) in std::mem::take(&mut self.kept) {
            if self.bench.nodes.contains(&conn) {
                self.bench.send(conn, &replies);
            }
        }
        self.serve();
    }

    fn reload(&mut self, settings: Config) {
        self.bench.turn(|worker| worker.handle_mail(Mail::Reload(Arc::new(settings))));
        self.serve();
    }

    fn is_nil(told: &str) -> bool {
        matches!(told, "*-1\r\n" | "_\r\n")
    }

    /// Whatever was watched is changed, and clients have transactions: on connections to themselves, and on others.
    fn prove(&mut self, what: &str) {
        self.round += 1;
        self.bench.pass(100_000);
        self.serve();
        self.conflict();
        assert_eq!(self.asks(self.other, "SET l other"), "+OK\r\n");
        self.heard(self.client);
        let mut clients: Vec<ConnId> = (0..4).map(|_| self.bench.accept()).collect();
        if !self.bench.closed.contains(&self.client) {
            clients.push(self.client);
        }
        for round in 0..2 {
            for (client, number) in clients.iter().zip(0..) {
                if (number + round) % 2 == 0 {
                    assert_eq!(self.asks(*client, &format!("WATCH own{number}")), "+OK\r\n", "{what}: {number}");
                }
            }
            self.conflict();
            for (client, number) in clients.clone().into_iter().zip(0..) {
                assert_eq!(self.asks(client, "MULTI"), "+OK\r\n", "{what}: {number}");
                assert_eq!(self.asks(client, &format!("SET own{number} 1")), "+QUEUED\r\n", "{what}: {number}");
                assert_eq!(self.asks(client, "EXEC"), "*1\r\n+OK\r\n", "{what}: client {number} in round {round}");
            }
            self.round += 1;
        }
    }
}

/// The watching that a key belongs to.
fn epoch_of(key: &str) -> &str {
    key.split(':').next().unwrap_or_default()
}

/// A way in which a watching ends.
type Ending = (&'static str, fn(&mut Scene));

const ENDINGS: &[Ending] = &[
    ("EXEC", |scene| {
        scene.watch();
        scene.queue();
        assert_eq!(scene.ask("EXEC"), "*1\r\n+OK\r\n");
    }),
    ("EXEC that finds a change", |scene| {
        scene.watch();
        scene.conflict();
        scene.queue();
        assert!(Scene::is_nil(&scene.ask("EXEC")));
    }),
    ("EXEC of a block with a mistake", |scene| {
        scene.watch();
        scene.queue();
        assert!(scene.ask("GET").starts_with("-ERR wrong number"));
        assert!(scene.ask("EXEC").starts_with("-EXECABORT"));
    }),
    ("EXEC of a block that the server refuses", |scene| {
        scene.watch();
        scene.queue();
        scene.ask("SET k oom");
        assert!(scene.ask("EXEC").starts_with("-EXECABORT"));
    }),
    ("EXEC of what the proxy does itself", |scene| {
        scene.watch();
        assert_eq!(scene.ask("MULTI"), "+OK\r\n");
        scene.ask("CLIENT ID");
        assert!(scene.ask("EXEC").starts_with("*1\r\n:"));
    }),
    ("DISCARD", |scene| {
        scene.watch();
        scene.queue();
        assert_eq!(scene.ask("DISCARD"), "+OK\r\n");
    }),
    ("UNWATCH", |scene| {
        scene.watch();
        assert_eq!(scene.ask("UNWATCH"), "+OK\r\n");
    }),
    ("UNWATCH and WATCH at once", |scene| {
        scene.watch();
        let client = scene.client;
        scene.bench.send(client, &[request(&["UNWATCH"]), request(&["WATCH", "m"]), request(&["UNWATCH"])].concat());
        scene.serve();
        assert_eq!(scene.heard(client), "+OK\r\n+OK\r\n+OK\r\n");
    }),
    ("RESET", |scene| {
        scene.watch();
        assert!(scene.ask("RESET").ends_with("+RESET\r\n"));
    }),
    ("RESET amid a block", |scene| {
        scene.watch();
        scene.queue();
        assert!(scene.ask("RESET").ends_with("+RESET\r\n"));
    }),
    ("QUIT amid a block", |scene| {
        scene.watch();
        scene.queue();
        assert!(scene.ask("QUIT").ends_with("+OK\r\n"));
    }),
    ("the client leaves", |scene| {
        scene.watch();
        scene.leave();
    }),
    ("the client leaves amid a block", |scene| {
        scene.watch();
        scene.queue();
        scene.leave();
    }),
    ("the client leaves while WATCH is on its way", |scene| {
        scene.is_late = true;
        scene.ask("WATCH k");
        scene.leave();
        scene.catch_up();
    }),
    ("the client leaves while WATCH waits for a connection", |scene| {
        let client = scene.client;
        scene.bench.ask(client, &["WATCH", "k"]);
        scene.leave();
    }),
    ("the client leaves while a second WATCH is on its way", |scene| {
        scene.watch();
        scene.is_late = true;
        scene.ask("WATCH m");
        scene.leave();
        scene.catch_up();
    }),
    ("the client leaves while EXEC is on its way", |scene| {
        scene.watch();
        scene.queue();
        scene.is_late = true;
        scene.ask("EXEC");
        scene.leave();
        scene.catch_up();
    }),
    ("the client leaves while UNWATCH is on its way", |scene| {
        scene.watch();
        scene.is_late = true;
        scene.ask("UNWATCH");
        scene.leave();
        scene.catch_up();
    }),
    ("the client closes its side", |scene| {
        scene.watch();
        let client = scene.client;
        scene.bench.turn(|worker| worker.handle_hung_up(client));
        scene.bench.closed.push(client);
        scene.serve();
    }),
    ("the client is killed", |scene| {
        scene.watch();
        scene.queue();
        let other = scene.other;
        assert_eq!(scene.asks(other, "CLIENT KILL TYPE normal SKIPME yes"), ":1\r\n");
    }),
    ("WATCH is late", |scene| {
        scene.watch();
        scene.ask("UNWATCH");
        let told = scene.be_late("WATCH k");
        assert!(told.contains("did not answer"), "{told:?}");
        scene.ask("UNWATCH");
    }),
    ("a second WATCH is late, and MULTI and EXEC follow", |scene| {
        scene.watch();
        assert!(scene.be_late("WATCH m").contains("did not answer"));
        scene.queue();
        assert!(!scene.ask("EXEC").starts_with('*'));
    }),
    ("EXEC is late", |scene| {
        scene.watch();
        scene.queue();
        assert!(scene.be_late("EXEC").contains("did not answer"));
    }),
    ("UNWATCH is late", |scene| {
        scene.watch();
        scene.be_late("UNWATCH");
    }),
    ("the node is drained", |scene| {
        scene.watch();
        let other = scene.other;
        scene.asks(other, "PROXY DRAIN node-0");
        scene.asks(other, "PROXY RESUME node-0");
        scene.queue();
        assert!(Scene::is_nil(&scene.ask("EXEC")));
    }),
    ("the node is drained amid a block", |scene| {
        scene.watch();
        scene.queue();
        let other = scene.other;
        scene.asks(other, "PROXY DRAIN node-0");
        assert!(Scene::is_nil(&scene.ask("EXEC")));
        scene.asks(other, "PROXY RESUME node-0");
    }),
    ("EXEC waits for a pause, and the client leaves", |scene| {
        scene.watch();
        scene.queue();
        let other = scene.other;
        scene.asks(other, "PROXY PAUSE");
        assert_eq!(scene.ask("EXEC"), "");
        scene.leave();
        scene.asks(other, "PROXY RESUME");
    }),
    ("EXEC waits for a pause", |scene| {
        scene.watch();
        scene.queue();
        let other = scene.other;
        scene.asks(other, "PROXY PAUSE");
        assert_eq!(scene.ask("EXEC"), "");
        scene.asks(other, "PROXY RESUME");
        assert_eq!(scene.heard(scene.client), "*1\r\n+OK\r\n");
    }),
    ("DISCARD during a pause", |scene| {
        scene.watch();
        scene.queue();
        let other = scene.other;
        scene.asks(other, "PROXY PAUSE");
        assert_eq!(scene.ask("DISCARD"), "+OK\r\n");
        scene.asks(other, "PROXY RESUME");
    }),
    ("EXEC waits for CLIENT PAUSE", |scene| {
        scene.watch();
        scene.queue();
        let other = scene.other;
        scene.asks(other, "CLIENT PAUSE 60000 WRITE");
        assert_eq!(scene.ask("EXEC"), "");
        scene.asks(other, "CLIENT UNPAUSE");
        assert_eq!(scene.heard(scene.client), "*1\r\n+OK\r\n");
    }),
    ("the settings are read again", |scene| {
        scene.watch();
        let settings = scene.settings.clone();
        scene.reload(settings);
        scene.queue();
        assert_eq!(scene.ask("EXEC"), "*1\r\n+OK\r\n", "nothing was changed");
    }),
    ("the node moves", |scene| {
        scene.watch();
        let mut settings = scene.settings.clone();
        settings.nodes[0].endpoint = Arc::new(Endpoint::Embedded { index: 1 });
        scene.reload(settings);
        scene.queue();
        assert!(Scene::is_nil(&scene.ask("EXEC")));
    }),
    ("the node moves while a second WATCH is on its way", |scene| {
        scene.watch();
        scene.is_late = true;
        scene.ask("WATCH m");
        let mut settings = scene.settings.clone();
        settings.nodes[0].endpoint = Arc::new(Endpoint::Embedded { index: 1 });
        scene.reload(settings);
        scene.catch_up();
        scene.heard(scene.client);
        scene.queue();
        assert!(!scene.ask("EXEC").contains("+OK"));
    }),
    ("another pool mode holds", |scene| {
        scene.watch();
        let mode = match scene.settings.lanes.mode {
            PoolMode::Session => PoolMode::Multiplex,
            _ => PoolMode::Session,
        };
        let settings = Config { lanes: LaneLimits { mode, ..scene.settings.lanes }, ..scene.settings.clone() };
        scene.reload(settings);
        scene.queue();
        assert_eq!(scene.ask("EXEC"), "*1\r\n+OK\r\n", "nothing was changed");
        scene.ask("GET k");
    }),
    ("FLUSHALL", |scene| {
        scene.watch();
        let other = scene.other;
        assert_eq!(scene.asks(other, "FLUSHALL"), "+OK\r\n");
        scene.queue();
        assert!(Scene::is_nil(&scene.ask("EXEC")));
    }),
    ("SWAPDB, and DISCARD", |scene| {
        scene.watch();
        let other = scene.other;
        assert_eq!(scene.asks(other, "SWAPDB 0 1"), "+OK\r\n");
        scene.queue();
        assert_eq!(scene.ask("DISCARD"), "+OK\r\n");
    }),
    ("another database", |scene| {
        scene.watch();
        assert_eq!(scene.ask("SELECT 3"), "+OK\r\n");
        scene.queue();
        assert!(!scene.ask("EXEC").contains("+OK"));
    }),
    ("SELECT in the block", |scene| {
        scene.watch();
        scene.queue();
        assert_eq!(scene.ask("SELECT 2"), "+QUEUED\r\n");
        assert_eq!(scene.ask("EXEC"), "*2\r\n+OK\r\n+OK\r\n");
    }),
    ("another dialect", |scene| {
        scene.watch();
        scene.ask("HELLO 3");
        scene.queue();
        scene.ask("EXEC");
        scene.ask("HELLO 2");
    }),
    ("tracking begins and ends", |scene| {
        scene.watch();
        scene.ask("CLIENT TRACKING ON NOLOOP BCAST");
        // Its connection is replaced once nothing is owed on it.
        scene.bench.pass(1_000_000);
        scene.serve();
        scene.ask("WATCH m");
        scene.ask("CLIENT TRACKING OFF");
        scene.queue();
        scene.ask("EXEC");
    }),
    ("connections are replaced", |scene| {
        scene.watch();
        let other = scene.other;
        scene.asks(other, "PROXY RECONNECT");
        scene.queue();
        assert_eq!(scene.ask("EXEC"), "*1\r\n+OK\r\n", "nothing was changed");
    }),
    ("a large request comes between", |scene| {
        scene.watch();
        let client = scene.client;
        let large = request(&["SET", "large", &"v".repeat(2 << 20)]);
        let mut rest = &large[..];
        for _ in 0..200 {
            rest = &rest[rest.len() - scene.bench.offer(client, rest).len()..];
            scene.serve();
        }
        assert_eq!(scene.heard(client), "+OK\r\n");
        scene.ask("UNWATCH");
    }),
    ("the client leaves amid a large request", |scene| {
        scene.watch();
        let client = scene.client;
        let large = request(&["SET", "large", &"v".repeat(2 << 20)]);
        scene.bench.offer(client, &large[..500_000]);
        scene.serve();
        scene.leave();
    }),
    ("the connection breaks", |scene| {
        scene.watch();
        for conn in scene.bench.nodes.clone() {
            scene.bench.cut(conn);
        }
        scene.serve();
        scene.queue();
        assert!(!scene.ask("EXEC").contains("+OK"));
    }),
];

#[test]
fn what_one_client_watched_fails_no_transaction_of_another() {
    for mode in [PoolMode::Multiplex, PoolMode::Transaction, PoolMode::Session] {
        for is_noloop in [false, true] {
            for (what, end) in ENDINGS {
                let what = format!("{what}, {mode:?}{}", if is_noloop { ", NOLOOP" } else { "" });
                let mut scene = Scene::new(mode, is_noloop);
                end(&mut scene);
                scene.prove(&what);
            }
        }
    }
}

/// A client of a crowd.
struct Client {
    conn: ConnId,
    /// Its watchings, one after the other, have these names.
    epoch: String,
    queues: bool,
}

impl Client {
    fn new(bench: &mut Bench<NoEngine>, epoch: usize) -> Self {
        Self { conn: bench.accept(), epoch: format!("e{epoch}"), queues: false }
    }

    /// What it asks next, and whether its watching ends with that.
    fn next(&mut self, chance: &mut Chance) -> (String, bool) {
        let epoch = &self.epoch;
        let (words, ends, queues) = match chance.below(16) {
            0..4 if !self.queues => (format!("WATCH {epoch}:{}", chance.below(3)), false, false),
            4..7 if !self.queues => ("MULTI".to_owned(), false, true),
            7 => ("UNWATCH".to_owned(), !self.queues, self.queues),
            8 if self.queues => ("DISCARD".to_owned(), true, false),
            9 => ("RESET".to_owned(), true, false),
            10 if !self.queues => (format!("SELECT {}", chance.below(2)), false, false),
            11 if !self.queues => (format!("GET {epoch}:0"), false, false),
            12 if self.queues => (format!("SET {epoch}:0 oom"), false, true),
            0..4 if self.queues => (format!("SET {epoch}:{} v", chance.below(3)), false, true),
            // Without anything queued it would be taken for a trial.
            _ if self.queues => (format!("SET {epoch}:9 v"), false, true),
            _ => (format!("GET {epoch}:1"), false, false),
        };
        self.queues = queues;
        (words, ends)
    }
}

/// Many clients watch and end it in all ways at once, while their node is late, moves, is drained or paused.
fn crowd(seed: u64) {
    let mode = [PoolMode::Multiplex, PoolMode::Transaction, PoolMode::Session][seed as usize % 3];
    let (mut scene, mut chance) = (Scene::new(mode, false), Chance(seed));
    scene.has_epochs = true;
    let mut epochs = 0;
    let mut next_epoch = || {
        epochs += 1;
        epochs
    };
    let mut clients: Vec<Client> = (0..6).map(|_| Client::new(&mut scene.bench, next_epoch())).collect();
    let operator = scene.other;
    let mut moved = 0;
    for _ in 0..600 {
        let at = chance.below(6);
        match chance.below(40) {
            0 => {
                let conn = clients[at].conn;
                scene.bench.turn(|worker| worker.handle_broken(conn, "gone"));
                clients[at] = Client::new(&mut scene.bench, next_epoch());
            }
            1 => scene.is_late = true,
            2..5 => scene.catch_up(),
            5 => scene.bench.pass(100_000),
            6 if chance.below(4) == 0 => {
                moved += 1;
                let mut settings = scene.settings.clone();
                settings.nodes[0].endpoint = Arc::new(Endpoint::Embedded { index: moved % 2 });
                scene.reload(settings);
            }
            7 => _ = scene.asks(operator, "PROXY PAUSE"),
            8 => _ = scene.asks(operator, "PROXY DRAIN node-0"),
            9..12 => _ = scene.asks(operator, "PROXY RESUME"),
            12 => _ = scene.asks(operator, "PROXY RECONNECT"),
            13 => {
                let words = ["CLIENT TRACKING ON NOLOOP", "CLIENT TRACKING OFF"][chance.below(2)];
                let conn = clients[at].conn;
                if !clients[at].queues {
                    scene.bench.ask(conn, &["HELLO", "3"]);
                    scene.bench.ask(conn, &words.split(' ').collect::<Vec<_>>());
                }
            }
            _ => {
                // A part of a pipeline, of which the client knows no reply.
                for _ in 0..1 + chance.below(3) {
                    let (words, ends) = match clients[at].queues && chance.below(4) == 0 {
                        true => (format!("SET {}:8 v|EXEC", clients[at].epoch), true),
                        false => clients[at].next(&mut chance),
                    };
                    let asked: Vec<u8> =
                        words.split('|').flat_map(|words| request(&words.split(' ').collect::<Vec<_>>())).collect();
                    if !scene.bench.offer(clients[at].conn, &asked).is_empty() {
                        // It is not read for now: what it asks next is about something else.
                        let conn = clients[at].conn;
                        scene.bench.turn(|worker| worker.handle_broken(conn, "gone"));
                        clients[at] = Client::new(&mut scene.bench, next_epoch());
                        break;
                    }
                    if ends {
                        clients[at].queues = false;
                        clients[at].epoch = format!("e{}", next_epoch());
                    }
                }
                if chance.below(3) > 0 {
                    scene.serve();
                }
            }
        }
    }
    scene.catch_up();
}

#[test]
fn transactions_of_many_clients_fail_for_keys_of_their_own() {
    let seeds = std::env::var("RESPOOL_WORLD_SEEDS").ok().and_then(|seeds| seeds.parse().ok());
    (1..seeds.unwrap_or(60)).for_each(crowd);
}
