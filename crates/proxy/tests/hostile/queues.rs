//! What waits for a node lies in several buffers: it leaves in order, all of it in the turn in which the node takes it, and what does not fit
//! when there is room again. What may not wait there yet waits with its client.

use crate::NoEngine;
use crate::bench::{Bench, request, requests};
use crate::support::config;
use respool_connection::{ConnId, Machine};
use respool_proxy::Config;

/// Several buffers' worth.
const SETS: usize = 1_500;

fn sets() -> String {
    let set = |number: usize| request(&["SET", "key", &format!("{number:0>100}")]);
    (0..SETS).flat_map(set).map(char::from).collect()
}

#[test]
fn a_node_that_takes_everything_gets_it_in_one_turn() {
    let (mut bench, client, node) = Bench::connected(config(1, 1));
    let sets = sets();
    bench.send(client, sets.as_bytes());
    assert!(bench.heard(node) == sets, "all, in order");
    bench.send(node, "+OK\r\n".repeat(SETS).as_bytes());
    assert_eq!(bench.heard(client).len(), 5 * SETS);
}

#[test]
fn a_node_that_takes_a_part_gets_the_rest_when_it_has_room() {
    let (mut bench, client, node) = Bench::connected(config(1, 1));
    let sets = sets();
    for room in [0, 1, 65_000, 100_000] {
        bench.read_on(node, room);
        bench.send(client, sets.as_bytes());
        let mut heard = bench.heard(node);
        assert!(sets.starts_with(&heard) && heard.len() <= room, "{} bytes", heard.len());
        bench.turn(|_| ());
        assert_eq!(bench.heard(node), "", "its socket is full");
        bench.read_on(node, 60_000);
        heard.push_str(&bench.heard(node));
        assert_eq!(heard.len(), room + 60_000);
        bench.read_on(node, usize::MAX);
        heard.push_str(&bench.heard(node));
        assert!(heard == sets, "all, in order");
        bench.send(node, "+OK\r\n".repeat(SETS).as_bytes());
        assert_eq!(bench.heard(client).len(), 5 * SETS);
    }
}

#[test]
fn requests_for_a_node_that_is_not_there_leave_when_it_is() {
    let mut bench = Bench::proxy(config(1, 1));
    let client = bench.accept();
    let sets = sets();
    bench.send(client, sets.as_bytes());
    let node = bench.connect()[0];
    assert!(bench.heard(node) == sets, "all, in order");
}

/// Clients that each send one of these requests in the same turn, more in all than may wait for a node. Gives what they are answered.
fn burst(config: Config, whole: &[u8]) -> Vec<String> {
    let mut bench = Bench::proxy(config);
    let clients: Vec<ConnId> = (0..100).map(|_| bench.accept()).collect();
    for (client, key) in clients.iter().zip(0..) {
        bench.ask(*client, &["GET", &format!("warm{key}")]);
    }
    bench.connect();
    let mut nodes: Vec<Server> = bench.nodes.iter().map(|conn| Server { conn: *conn, queued: None }).collect();
    nodes.iter_mut().for_each(|node| while node.answer(&mut bench) {});
    clients.iter().for_each(|client| drop(bench.heard(*client)));
    bench.turn(|worker| {
        for client in &clients {
            let mut rest = whole;
            while !rest.is_empty() {
                let buffer = worker.read_buffer(*client).expect("it is read until its request is whole");
                let taken = rest.len().min(buffer.len());
                buffer[..taken].copy_from_slice(&rest[..taken]);
                worker.handle_read(*client, taken);
                rest = &rest[taken..];
            }
        }
    });
    // Scripts have connections of their own.
    nodes.extend(bench.connect().into_iter().map(|conn| Server { conn, queued: None }));
    while nodes.iter_mut().fold(false, |any, node| any | node.answer(&mut bench)) {}
    // Each is read again once there is room for what it brings.
    let pauses = bench.shared.counters[0].pauses.value();
    assert!(pauses <= 3 * clients.len() as u64, "{pauses} pauses of {} clients", clients.len());
    clients.iter().map(|client| bench.heard(*client)).collect()
}

/// A node that does what it is asked.
struct Server {
    conn: ConnId,
    /// Requests since MULTI.
    queued: Option<usize>,
}

impl Server {
    fn answer(&mut self, bench: &mut Bench<NoEngine>) -> bool {
        let asked = requests(&bench.heard(self.conn));
        let mut replies = String::new();
        for words in &asked {
            let name = words.split(' ').next().unwrap_or_default();
            let reply = match name {
                "MULTI" => "+OK",
                "EXEC" if self.queued == Some(0) => "*0",
                "EXEC" => "*1\r\n+OK",
                _ if self.queued.is_some() => "+QUEUED",
                "GET" => "$-1",
                "PUBLISH" | "EVALSHA" => ":1",
                _ => "+OK",
            };
            self.queued = match name {
                "MULTI" => Some(0),
                "EXEC" => None,
                _ => self.queued.map(|queued| queued + 1),
            };
            replies.push_str(reply);
            replies.push_str("\r\n");
        }
        bench.send(self.conn, replies.as_bytes());
        !asked.is_empty()
    }
}

#[test]
fn many_that_ask_at_once_wait_for_a_node_that_is_well() {
    let large = "v".repeat(50_000);
    let alone = [
        (&["SET", "k", &large][..], "+OK\r\n"),
        (&["MSET", "a", &large, "b", &large], "+OK\r\n"),
        (&["PUBLISH", "c", &large], ":1\r\n"),
        (&["EVALSHA", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db", "1", "k", &large], ":1\r\n"),
    ];
    for (words, reply) in alone {
        let answers = burst(config(2, 1), &request(words));
        assert!(answers.iter().all(|answer| answer == reply), "{}: {answers:?}", words[0]);
    }
    let block = [request(&["MULTI"]), request(&["SET", "k", &large]), request(&["EXEC"])].concat();
    let answers = burst(config(2, 1), &block);
    assert!(answers.iter().all(|answer| answer == "+OK\r\n+QUEUED\r\n*1\r\n+OK\r\n"), "{answers:?}");
}

/// A node that takes nothing, whose queue is full of what another client has asked, and a client that has been connected.
struct Full {
    bench: Bench<NoEngine>,
    filler: ConnId,
    client: ConnId,
    node: ConnId,
    /// What the filler has asked.
    sets: Vec<u8>,
}

const FULL: &str = "-ERR node node-0 is overloaded: too many bytes wait for it; the command was not sent\r\n";

impl Full {
    fn new() -> Self {
        let (mut bench, filler, node) = Bench::connected(config(1, 1));
        let client = bench.accept();
        bench.ask(client, &["GET", "key"]);
        bench.heard(node);
        bench.send(node, b"$-1\r\n");
        bench.heard(client);
        bench.read_on(node, 0);
        let large = "v".repeat(50_000);
        let sets = request(&["SET", "filled", &large]).repeat(6);
        bench.send(filler, &sets);
        Self { bench, filler, client, node, sets }
    }

    /// So much time passes, in which the node takes a byte now and then: it is not silent.
    fn pass(&mut self, us: u64) {
        for _ in 0..10 {
            self.bench.read_on(self.node, 1);
            self.bench.wait(us / 10);
            self.bench.turn(|_| ());
        }
    }

    /// The node takes and does everything. Gives what it has been asked.
    fn go_on(&mut self) -> Vec<String> {
        self.bench.read_on(self.node, usize::MAX);
        let (mut all, mut heard) = (Vec::new(), String::new());
        for _ in 0..20 {
            heard.push_str(&self.bench.heard(self.node));
            let asked = requests(&heard);
            let whole: usize = asked.iter().map(|words| request(&words.split(' ').collect::<Vec<_>>()).len()).sum();
            heard.drain(..whole);
            let replies = asked.iter().map(|words| match words.split(' ').next() {
                Some("GET") => "$-1\r\n",
                Some("MULTI") => "+OK\r\n",
                Some("EXEC") => "*1\r\n+OK\r\n",
                _ => "+OK\r\n",
            });
            let replies: String = replies.collect();
            self.bench.send(self.node, replies.as_bytes());
            all.extend(asked.into_iter().map(|words| words.chars().take(20).collect()));
        }
        all
    }
}

#[test]
fn what_finds_no_room_within_the_timeout_is_refused() {
    let large = "v".repeat(50_000);
    for (words, replies) in [
        (&[&["SET", "k", &large][..]][..], &[FULL][..]),
        (&[&["PING"], &["SET", "k", &large], &["ECHO", "a"]], &["+PONG\r\n", FULL, "$1\r\na\r\n"]),
        // What has been read behind it has waited as long.
        (&[&["SET", "k", "1"], &["GET", "k"]], &[FULL, FULL]),
        (&[&["MSET", "k", "1", "l", "2"]], &[FULL]),
        (&[&["CLIENT", "REPLY", "SKIP"], &["SET", "k", "1"], &["ECHO", "b"]], &["$1\r\nb\r\n"]),
        (&[&["CLIENT", "REPLY", "OFF"], &["SET", "k", "1"], &["CLIENT", "REPLY", "ON"]], &["+OK\r\n"]),
        (
            &[&["MULTI"], &["SET", "k", &large], &["EXEC"], &["EXEC"], &["GET", "k"]],
            &["+OK\r\n", "+QUEUED\r\n", FULL, "-ERR EXEC without MULTI\r\n", FULL],
        ),
    ] {
        let mut full = Full::new();
        let asked: Vec<u8> = words.iter().flat_map(|words| request(words)).collect();
        let client = full.client;
        full.bench.send(client, &asked);
        full.pass(450_000);
        let before = full.bench.heard(client);
        assert!(!before.contains("overloaded"), "its time is not over: {before}");
        full.pass(100_000);
        let heard = before + &full.bench.heard(client);
        assert_eq!(heard, replies.concat(), "{words:?}");
        let done = full.go_on();
        assert!(done.iter().all(|words| words.starts_with("SET filled")), "{words:?}: {done:?}");
        // It was sent, and was late.
        let told = full.bench.heard(full.filler);
        assert_eq!(told.matches("did not answer within 500 ms").count(), 6, "{told}");
        full.bench.ask(client, &["SET", "later", "1"]);
        assert_eq!(full.go_on(), ["SET later 1"], "{words:?}");
        assert_eq!(full.bench.heard(client), "+OK\r\n", "{words:?}: the next reply is to the next request");
    }
}

#[test]
fn who_waited_for_room_before_has_its_time_once_more() {
    let mut full = Full::new();
    let client = full.client;
    full.bench.ask(client, &["SET", "k", "1"]);
    full.pass(300_000);
    let done = full.go_on();
    assert_eq!(done.last().map(|words| &**words), Some("SET k 1"), "{done:?}");
    assert_eq!(full.bench.heard(client), "+OK\r\n");
    full.bench.heard(full.filler);
    full.bench.pass(300_000);
    full.bench.read_on(full.node, 0);
    let sets = full.sets.clone();
    full.bench.send(full.filler, &sets);
    full.bench.ask(client, &["SET", "k", "2"]);
    full.pass(400_000);
    assert_eq!(full.bench.heard(client), "", "it has not waited for so long");
    full.pass(200_000);
    assert_eq!(full.bench.heard(client), FULL);
}
