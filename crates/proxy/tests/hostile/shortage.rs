//! Too little memory while replies come that had been asked for before: what is held stays near its bound, who reads gets everything, and no
//! one else is told that a node is late.

use crate::NoEngine;
use crate::bench::{Bench, request};
use crate::limits::{TAKES_AHEAD_US, TAKES_NOTHING_US};
use crate::support::config;
use respool_connection::ConnId;
use respool_proxy::{Budgets, Config, Timeouts};

const VALUE: usize = 200_000;
/// What each client asks for.
const ASKED: usize = 8;
const BOUND: usize = 4 << 20;

/// Clients that have asked for more than is allowed, over one connection to their node, and what the node has to say to that.
struct Crowd {
    bench: Bench<NoEngine>,
    clients: Vec<ConnId>,
    node: ConnId,
    left: Vec<u8>,
    /// Bytes that each has been given.
    got: Vec<usize>,
    most_held: usize,
}

impl Crowd {
    /// As many clients; none takes anything yet.
    fn new(clients: usize, response_us: u64) -> Self {
        let plain = config(1, 1);
        let timeouts = Timeouts { response_us, ..plain.timeouts };
        let budgets =
            Budgets { process: BOUND, client_output_soft: 1 << 20, client_output_hard: 64 << 20, ..plain.budgets };
        let (mut bench, first, node) = Bench::connected(Config { timeouts, budgets, ..plain });
        let mut clients: Vec<_> = (1..clients).map(|_| bench.accept()).collect();
        clients.push(first);
        let reply = [format!("${VALUE}\r\n").as_bytes(), &vec![b'v'; VALUE], b"\r\n"].concat();
        for client in &clients {
            bench.read_on(*client, 0);
            bench.send(*client, &request(&["GET", "large"]).repeat(ASKED));
        }
        let left = reply.repeat(ASKED * clients.len());
        assert!(left.len() > 3 * BOUND);
        let got = vec![0; clients.len()];
        Self { bench, clients, node, left, got, most_held: 0 }
    }

    fn all() -> usize {
        ASKED * (VALUE + format!("${VALUE}\r\n\r\n").len())
    }

    /// The node says as much as one read takes, if it is read; some clients take so much; time passes.
    fn step(&mut self, taking: &[usize], bytes: usize, us: u64) {
        let piece = self.left.len().min(64 << 10);
        let rest = self.bench.offer(self.node, &self.left[..piece]).len();
        self.left.drain(..piece - rest);
        self.most_held = self.most_held.max(self.bench.shared.ledger.held_bytes());
        for taker in taking.iter().filter(|_| bytes > 0) {
            self.bench.read_on(self.clients[*taker], bytes);
            self.got[*taker] += self.bench.heard(self.clients[*taker]).len();
        }
        self.bench.wait(us);
    }

    fn is_gone(&self, client: usize) -> bool {
        self.bench.closed.contains(&self.clients[client])
    }

    fn gone(&self) -> usize {
        (0..self.clients.len()).filter(|client| self.is_gone(*client)).count()
    }

    /// No more than the bound, one read for each look, and what is collected of one reply.
    fn assert_bounded(&self) {
        assert!(self.most_held < BOUND + BOUND / 8 + VALUE, "{} bytes were held of {BOUND}", self.most_held);
    }
}

#[test]
fn a_client_that_takes_nothing_goes_one_that_reads_gets_all() {
    let mut crowd = Crowd::new(12, TAKES_NOTHING_US);
    for _ in 0..12_000 {
        crowd.step(&[3, 7], 150_000, 1_000);
    }
    crowd.assert_bounded();
    assert!(crowd.left.is_empty(), "the node has said everything");
    assert_eq!([crowd.got[3], crowd.got[7]], [Crowd::all(); 2], "who reads has everything");
    assert!(!crowd.is_gone(3) && !crowd.is_gone(7));
    let fits = BOUND / Crowd::all();
    assert!((10 - fits..10).contains(&crowd.gone()), "{} have gone, {fits} fit", crowd.gone());
    assert!(crowd.bench.shared.ledger.held_bytes() <= BOUND);
}

#[test]
fn no_client_is_disconnected_while_all_read() {
    let mut crowd = Crowd::new(12, 10_000_000);
    let all: Vec<usize> = (0..12).collect();
    for turn in 0..6_000 {
        // Each has its turn, as processes that share a processor, and together they take less than the node sends.
        crowd.step(&all[turn % 12..][..1], 30_000, 1_000);
    }
    assert!(crowd.left.is_empty());
    assert_eq!(crowd.got, [Crowd::all(); 12]);
    assert_eq!(crowd.gone(), 0);
    crowd.assert_bounded();
    assert!(crowd.most_held > BOUND, "{} bytes are no shortage", crowd.most_held);
}

#[test]
fn what_waits_at_a_node_that_is_left_unread_is_not_late() {
    // Longer than a client may take nothing; and all that is said does not take so long.
    let (response_us, turn_us) = (TAKES_NOTHING_US * 14 / 10, 200);
    let mut crowd = Crowd::new(12, response_us);
    let other = crowd.bench.accept();
    crowd.bench.ask(other, &["GET", "small"]);
    crowd.left.extend_from_slice(b"$1\r\ns\r\n");
    let begin_us = crowd.bench.now_us();
    let mut unread = 0;
    while !crowd.left.is_empty() {
        let before = crowd.left.len();
        crowd.step(&[], 0, turn_us);
        unread += u64::from(crowd.left.len() == before);
    }
    let passed_us = crowd.bench.now_us() - begin_us;
    assert!(passed_us > response_us && passed_us - unread * turn_us < response_us, "{passed_us}, {unread} turns");
    assert_eq!(crowd.bench.heard(other), "$1\r\ns\r\n", "it is answered, and not told that the node is late");
    crowd.assert_bounded();
}

/// The crowd until the node has said everything, in which each client takes so many bytes every so often, without a word of the kernel. Returns
/// for how long nodes were left unread, and for how long it took.
fn trickle(crowd: &mut Crowd, bytes: usize, step_us: u64) -> (u64, u64) {
    let (look_us, mut unread_us, mut passed_us) = (10_000, 0, 0);
    while !crowd.left.is_empty() && passed_us < 200_000_000 {
        let before = crowd.left.len();
        if passed_us % step_us == 0 {
            crowd.clients.clone().into_iter().for_each(|client| crowd.bench.take_unsaid(client, bytes));
        }
        crowd.step(&[], 0, look_us);
        passed_us += look_us;
        unread_us += u64::from(crowd.left.len() == before) * look_us;
    }
    (0..crowd.clients.len()).for_each(|client| crowd.got[client] += crowd.bench.heard(crowd.clients[client]).len());
    (unread_us, passed_us)
}

#[test]
fn a_client_that_takes_a_byte_now_and_then_goes_as_well() {
    let mut crowd = Crowd::new(12, 10_000_000);
    let (unread_us, _) = trickle(&mut crowd, 1, 250_000);
    assert!(crowd.left.is_empty(), "{} bytes are left", crowd.left.len());
    let fits = BOUND / Crowd::all();
    assert!((12 - fits..=12).contains(&crowd.gone()), "{} have gone, {fits} fit", crowd.gone());
    assert!((TAKES_NOTHING_US / 2..4 * TAKES_NOTHING_US).contains(&unread_us), "{unread_us}");
    crowd.assert_bounded();
}

/// 100 kB/s as the loopback device shows it, of which the kernel says nothing before a third of its buffer is free.
#[test]
fn a_slow_reader_stays_without_a_writable_event() {
    let mut crowd = Crowd::new(12, 10_000_000);
    let (_, passed_us) = trickle(&mut crowd, 131_000, 1_310_000);
    assert!(crowd.left.is_empty(), "{} bytes are left", crowd.left.len());
    assert_eq!(crowd.gone(), 0, "all take 100 kB/s");
    assert!(passed_us > 2 * TAKES_NOTHING_US, "{passed_us} are too few to tell");
    assert!(!crowd.bench.tried.is_empty());
    crowd.assert_bounded();
}

/// One that has taken much and then takes nothing more.
#[test]
fn what_was_read_before_keeps_no_client_for_long() {
    let mut crowd = Crowd::new(12, 10_000_000);
    for _ in 0..200 {
        crowd.step(&[], 0, 10_000);
        crowd.clients.clone().into_iter().for_each(|client| crowd.bench.take_unsaid(client, 2_000));
    }
    assert_eq!(crowd.gone(), 0, "200 kB/s");
    let begin_us = crowd.bench.now_us();
    while crowd.gone() == 0 {
        crowd.step(&[], 0, 10_000);
        let passed_us = crowd.bench.now_us() - begin_us;
        assert!(passed_us < TAKES_NOTHING_US + TAKES_AHEAD_US + 100_000, "{passed_us}");
    }
}

#[test]
fn a_node_is_read_while_what_is_held_waits_for_it() {
    let plain = config(1, 1);
    let budgets = Budgets { process: 60_000, ..plain.budgets };
    let (mut bench, client, node) = Bench::connected(Config { budgets, ..plain });
    bench.ask(client, &["GET", "late"]);
    bench.send(client, &request(&["ECHO", "e"]).repeat(20_000));
    assert!(bench.shared.ledger.held_bytes() > 60_000, "{}", bench.shared.ledger.held_bytes());
    bench.wait(1_000);
    assert!(bench.is_read(node), "nothing leaves before the node has answered");
    bench.send(node, b"$4\r\nlate\r\n");
    assert!(bench.heard(client).starts_with("$4\r\nlate\r\n$1\r\ne\r\n"));
    assert!(bench.closed.is_empty());
}

/// What messages take is given back behind the turn, not when a subscriber is disconnected: all are as large and as slow as each other, and
/// one is enough.
#[test]
fn no_more_slow_subscribers_go_than_suffices() {
    let (plain, rounds, count) = (config(1, 1), 2, 10);
    let budget = rounds * count * VALUE - VALUE / 2;
    let budgets = Budgets { process: budget, ..plain.budgets };
    let mut bench = Bench::proxy(Config { budgets, ..plain });
    let clients: Vec<_> = (0..count).map(|_| bench.accept()).collect();
    let channels: Vec<String> = (0..count).map(|n| format!("channel-{n}")).collect();
    for (client, channel) in clients.iter().zip(&channels) {
        bench.ask(*client, &["SUBSCRIBE", channel]);
    }
    bench.connect();
    let (node, _) = bench.who_heard(&format!("subscribe {}", channels.join(" "))).expect("a node is told");
    for channel in &channels {
        bench.send(node, format!(">3\r\n$9\r\nsubscribe\r\n${}\r\n{channel}\r\n:1\r\n", channel.len()).as_bytes());
    }
    let mut left = Vec::new();
    for (client, channel) in clients.iter().zip(&channels) {
        assert!(bench.heard(*client).ends_with(&format!("{channel}\r\n:1\r\n")));
        bench.read_on(*client, 0);
        left.extend_from_slice(
            format!(">3\r\n$7\r\nmessage\r\n${}\r\n{channel}\r\n${VALUE}\r\n", channel.len()).as_bytes(),
        );
        left.resize(left.len() + VALUE, b'm');
        left.extend_from_slice(b"\r\n");
    }
    let mut left = left.repeat(rounds);
    let mut most_held = 0;
    for turn in 0..4_000 {
        let piece = left.len().min(64 << 10);
        let rest = bench.offer(node, &left[..piece]).len();
        left.drain(..piece - rest);
        most_held = most_held.max(bench.shared.ledger.held_bytes());
        // All have stopped taking anything between two looks.
        bench.wait(if turn < 100 { 5 } else { 1_000 });
    }
    assert!(left.is_empty() && most_held > budget, "{} bytes are left, {most_held} were held", left.len());
    assert_eq!(clients.iter().filter(|client| bench.closed.contains(client)).count(), 1);
    assert!(bench.shared.ledger.held_bytes() <= budget);
}
