//! Clients that pipeline transactions: what is answered to them before EXEC says nothing of what their nodes still have to do.

use crate::NoEngine;
use crate::bench::{Bench, request, requests};
use crate::support::config;
use respool_connection::ConnId;
use respool_proxy::{Budgets, Config, LaneLimits, PoolMode, limits};

const SOFT: usize = 256 << 10;
const HARD: usize = 4 << 20;

fn in_mode(mode: PoolMode) -> Bench<NoEngine> {
    let base = config(1, 1);
    let budgets = Budgets { client_output_soft: SOFT, client_output_hard: HARD, ..base.budgets };
    Bench::proxy(Config { budgets, lanes: LaneLimits { mode, ..LaneLimits::default() }, ..base })
}

/// A client, and the connection to the node on which its first transaction was answered.
fn with_client(bench: &mut Bench<NoEngine>) -> (ConnId, ConnId) {
    let client = bench.accept();
    bench.ask(client, &["GET", "warm"]);
    let node = bench.connect()[0];
    bench.heard(node);
    bench.send(node, b"$-1\r\n");
    bench.send(client, &block(&["GET", "warm"]));
    bench.take_multi(node);
    bench.heard(node);
    bench.send(node, b"+OK\r\n+QUEUED\r\n*1\r\n$-1\r\n");
    assert!(bench.heard(client).ends_with("*1\r\n$-1\r\n"));
    (client, node)
}

fn block(words: &[&str]) -> Vec<u8> {
    [request(&["MULTI"]), request(words), request(&["EXEC"])].concat()
}

/// A node that answers what it has been asked, with this reply to each EXEC, as far as it is read.
struct Node {
    conn: ConnId,
    reply: Vec<u8>,
    unread: Vec<u8>,
    transactions: usize,
}

impl Node {
    fn new(conn: ConnId, element: &[u8]) -> Self {
        Self { conn, reply: [b"*1\r\n", element].concat(), unread: Vec::new(), transactions: 0 }
    }

    /// Returns whether anything has been asked or read.
    fn answer(&mut self, bench: &mut Bench<NoEngine>) -> bool {
        let asked = requests(&bench.heard(self.conn));
        for words in &asked {
            match words.as_str() {
                "MULTI" => self.unread.extend_from_slice(b"+OK\r\n"),
                "EXEC" => {
                    self.transactions += 1;
                    self.unread.extend_from_slice(&self.reply);
                }
                _ => self.unread.extend_from_slice(b"+QUEUED\r\n"),
            }
        }
        // As the loop does it: one read in a turn.
        let now = &self.unread[..self.unread.len().min(limits::READ_BYTES)];
        let taken = now.len() - bench.offer(self.conn, now).len();
        self.unread.drain(..taken);
        !asked.is_empty() || taken > 0
    }
}

fn value(bytes: usize) -> Vec<u8> {
    [format!("${bytes}\r\n").as_bytes(), &vec![b'v'; bytes], b"\r\n"].concat()
}

/// A client sends all that it has to say, as far as it is read.
fn send_on(bench: &mut Bench<NoEngine>, client: ConnId, rest: &mut Vec<u8>) {
    let left = bench.offer(client, rest).len();
    rest.drain(..rest.len() - left);
}

#[test]
fn transactions_of_one_client_leave_the_nodes_queue_to_others() {
    const BLOCKS: usize = 300;
    let mut bench = in_mode(PoolMode::Multiplex);
    let (client, conn) = with_client(&mut bench);
    let other = bench.accept();
    bench.read_on(conn, 0);
    let mut rest = block(&["SET", "k", &"v".repeat(10_000)]).repeat(BLOCKS);
    for _ in 0..100 {
        send_on(&mut bench, client, &mut rest);
    }
    bench.ask(other, &["MULTI"]);
    bench.ask(other, &["SET", "other", "1"]);
    bench.ask(other, &["EXEC"]);
    assert_eq!(bench.heard(other), "+OK\r\n+QUEUED\r\n", "there is room for it");
    bench.read_on(conn, usize::MAX);
    let mut node = Node::new(conn, b"+OK\r\n");
    while node.answer(&mut bench) || !rest.is_empty() {
        send_on(&mut bench, client, &mut rest);
    }
    assert_eq!(node.transactions, BLOCKS + 1);
    assert_eq!(bench.heard(other), "*1\r\n+OK\r\n");
    assert_eq!(bench.heard(client), "+OK\r\n+QUEUED\r\n*1\r\n+OK\r\n".repeat(BLOCKS));
}

#[test]
fn transactions_with_large_replies_are_left_at_the_node() {
    for mode in [PoolMode::Multiplex, PoolMode::Session] {
        for bytes in [20_000, 100_000] {
            let blocks = 3 * HARD / bytes;
            let mut bench = in_mode(mode);
            let (client, conn) = with_client(&mut bench);
            // It has been given small ones, so it may have many outstanding.
            let mut node = Node::new(conn, b"$-1\r\n");
            for _ in 0..8 {
                bench.send(client, &block(&["GET", "k"]).repeat(300));
                while node.answer(&mut bench) {}
            }
            bench.heard(client);
            bench.read_on(client, 0);
            let mut node = Node::new(conn, &value(bytes));
            let mut rest = block(&["GET", "k"]).repeat(blocks);
            for _ in 0..200 {
                send_on(&mut bench, client, &mut rest);
                node.answer(&mut bench);
            }
            assert!(bench.shared.ledger.held_bytes() < HARD + SOFT, "{mode:?}: {}", bench.shared.ledger.held_bytes());
            bench.read_on(client, usize::MAX);
            let mut nodes = vec![node];
            let mut gets_on = true;
            while gets_on || !rest.is_empty() {
                send_on(&mut bench, client, &mut rest);
                nodes.extend(bench.connect().into_iter().map(|conn| Node::new(conn, &value(bytes))));
                gets_on = nodes.iter_mut().fold(false, |any, node| any | node.answer(&mut bench));
            }
            let heard = bench.heard(client);
            let transaction = 14 + 4 + value(bytes).len();
            assert!(!heard.contains("-ERR"), "{mode:?}, {bytes}");
            assert!(!bench.closed.contains(&client), "{mode:?}: it is not cut off");
            assert_eq!(heard.len(), blocks * transaction, "{mode:?}, {bytes} bytes");
        }
    }
}

#[test]
fn transactions_without_replies_are_bounded_in_number() {
    let mut bench = in_mode(PoolMode::Multiplex);
    let (client, conn) = with_client(&mut bench);
    let mut rest = [request(&["CLIENT", "REPLY", "OFF"]), block(&["GET", "k"]).repeat(3_000)].concat();
    for _ in 0..100 {
        send_on(&mut bench, client, &mut rest);
    }
    let asked = requests(&bench.heard(conn)).len();
    assert!(asked <= 3 * 64, "{asked} requests at once");
    let mut node = Node::new(conn, b"$-1\r\n");
    node.unread = b"+OK\r\n+QUEUED\r\n*1\r\n$-1\r\n".repeat(asked / 3);
    while node.answer(&mut bench) || !rest.is_empty() {
        send_on(&mut bench, client, &mut rest);
    }
    assert_eq!(node.transactions + asked / 3, 3_000);
}

#[test]
fn what_is_left_of_a_reply_to_exec_is_accounted_for() {
    let mut bench = in_mode(PoolMode::Multiplex);
    let (client, conn) = with_client(&mut bench);
    let own = request(&["CLIENT", "ID"]).repeat(10 * limits::OWN_PER_TURN_MAX);
    let large = value(1 << 20);
    bench.send(client, &[request(&["MULTI"]), own, request(&["GET", "k"]), request(&["EXEC"])].concat());
    assert_eq!(requests(&bench.heard(conn)), ["MULTI", "GET k", "EXEC"]);
    bench.send(conn, &[b"+OK\r\n+QUEUED\r\n*1\r\n", &large[..]].concat());
    let held = bench.shared.ledger.held_bytes();
    assert!(held > large.len(), "the element waits for those before it: {held}");
    let mut heard = bench.heard(client);
    while !heard.ends_with("v\r\n") {
        bench.turn(|_| {});
        heard += &bench.heard(client);
    }
    let held = bench.shared.ledger.held_bytes();
    assert!(held < large.len() / 4, "nothing is left of it: {held}");
}
