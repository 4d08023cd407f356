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
