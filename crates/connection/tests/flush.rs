//! The flush policy in a simulated worker: one core, one node, clients of a closed and of an open loop, in virtual time.
//!
//! Costs are fixed and of the size that a small machine has. So figures here are no claim about any machine; what is checked is
//! when something is held, for how long, and whether that costs anything.

use respool_connection::flush::{Arrivals, ClientPace, FLUSH_LIMITS, Flush, Held, RepliesDue, WakeOn};
use respool_connection::{BufferPool, Event, FlushPolicy, Identity, Ticket, Upstream, Wait};
use respool_wire::ReplyLimits;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

const IMMEDIATE: FlushPolicy = FlushPolicy::Immediate;
const ADAPTIVE: FlushPolicy = FlushPolicy::Adaptive { delay_us_max: DELAY_US };
const DELAY_US: u64 = 100;

/// What things take, in microseconds: a turn, a read or a write of the worker, a batch at the node, a request there, the way.
const TURN_US: u64 = 5;
const IO_US: u64 = 5;
const NODE_BATCH_US: u64 = 12;
const NODE_REQUEST_US: u64 = 2;
const WAY_US: u64 = 10;
/// What the clients' core takes for a request of a closed loop.
const CLIENT_US: u64 = 4;

/// A small generator (xorshift), so that a run can be repeated.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// The time to the next event of a Poisson process.
    fn gap_us(&mut self, mean_us: f64) -> f64 {
        let share = (self.next() >> 11) as f64 / (1_u64 << 53) as f64;
        -(1.0 - share).ln() * mean_us
    }
}

/// A node that takes whole batches, one after the other.
struct Node {
    batch_us: u64,
    /// Something else has its core for so long after every tenth batch.
    hiccup_us: u64,
    batches: u64,
    written: VecDeque<(u64, usize)>,
    free_us: u64,
    replies: VecDeque<(u64, usize)>,
    /// It answers nothing in this time.
    stops: Option<(u64, u64)>,
}

/// The first batch, if it has come by `now_us`.
fn take_due(batches: &mut VecDeque<(u64, usize)>, now_us: u64) -> Option<(u64, usize)> {
    batches.front().is_some_and(|(come_us, _)| *come_us <= now_us).then(|| batches.pop_front())?
}

impl Node {
    fn new() -> Self {
        let (written, replies) = (VecDeque::new(), VecDeque::new());
        Self { batch_us: NODE_BATCH_US, hiccup_us: 0, batches: 0, written, free_us: 0, replies, stops: None }
    }

    /// Everything that begins before `until_us`; at least the next batch if none is answered.
    fn run(&mut self, until_us: u64) {
        while let Some((come_us, _)) = self.written.front() {
            let mut begin_us = self.free_us.max(*come_us);
            if let Some((stop_us, go_us)) = self.stops
                && (stop_us..go_us).contains(&begin_us)
            {
                begin_us = go_us;
            }
            if begin_us > until_us && !self.replies.is_empty() {
                return;
            }
            let mut requests = 0;
            while let Some((_, some)) = take_due(&mut self.written, begin_us) {
                requests += some;
            }
            self.batches += 1;
            let hiccup_us = if self.batches.is_multiple_of(10) { self.hiccup_us } else { 0 };
            self.free_us = begin_us + hiccup_us + self.batch_us + NODE_REQUEST_US * requests as u64;
            self.replies.push_back((self.free_us + WAY_US, requests));
        }
    }

    fn next_us(&mut self, now_us: u64) -> Option<u64> {
        self.run(now_us);
        self.replies.front().map(|(at_us, _)| *at_us)
    }
}

#[derive(Clone, Copy, Default)]
struct Client {
    pace: ClientPace,
    active_us: u64,
    owed: usize,
}

/// How requests come.
#[derive(Clone, Copy)]
enum Load {
    /// Each client asks again when it is answered.
    Closed,
    /// So many requests a second, whatever is answered.
    Open(u64),
}

/// What a run has shown.
#[derive(Debug, Default, PartialEq)]
struct Outcome {
    /// Of each request, from when it came until its reply was written.
    latencies: Vec<u64>,
    writes: u64,
    turns: u64,
    /// Decisions to hold, by what is waited for, and the longest time that such a one allowed.
    holds: [u64; 4],
    longest_us: [u64; 4],
}

impl Outcome {
    fn percentile(&self, share: f64) -> u64 {
        let mut sorted = self.latencies.clone();
        sorted.sort_unstable();
        sorted[((sorted.len() - 1) as f64 * share) as usize]
    }

    fn delays(&self) -> u64 {
        self.holds[WakeOn::Deadline as usize]
    }

    fn served(&self) -> usize {
        self.latencies.len()
    }

    fn check_bounds(&self) {
        let most = |kind: WakeOn| self.longest_us[kind as usize];
        assert!(most(WakeOn::Replies) <= FLUSH_LIMITS.replies_us_max);
        assert!(most(WakeOn::Clients) <= FLUSH_LIMITS.returning_us_max);
        assert!(most(WakeOn::Deadline) <= DELAY_US);
    }
}

/// A request: the client, and when it came.
#[derive(Debug)]
struct Request(Option<(usize, u64)>);

impl Ticket for Request {
    fn tombstone() -> Self {
        Self(None)
    }

    fn takes_pieces(&self) -> bool {
        false
    }

    fn is_of_same_sender(&self, before: &Self) -> bool {
        self.0.map(|(client, _)| client) == before.0.map(|(client, _)| client)
    }
}

struct World {
    up: Upstream<Request>,
    pool: BufferPool,
    arrivals: Arrivals,
    clients: Vec<Client>,
    /// When requests come, and the clients that send them.
    coming: BinaryHeap<Reverse<(u64, usize)>>,
    node: Node,
    load: Load,
    /// Requests that a client sends at once.
    pipeline: usize,
    clients_free_us: u64,
    chance: Chance,
    next_arrival_us: f64,
    reads: u64,
    outcome: Outcome,
}

impl World {
    fn new(policy: FlushPolicy, clients: usize, load: Load) -> Self {
        let mut up = Upstream::new(Identity::default(), policy);
        up.begin_dial();
        up.handle_connected_bare(0);
        let mut this = Self {
            up,
            pool: BufferPool::new(),
            arrivals: Arrivals::NONE,
            clients: vec![Client::default(); clients],
            coming: BinaryHeap::new(),
            node: Node::new(),
            load,
            pipeline: 1,
            clients_free_us: 0,
            chance: Chance(0x9E37_79B9_7F4A_7C15),
            next_arrival_us: 0.0,
            reads: 0,
            outcome: Outcome::default(),
        };
        match load {
            Load::Closed => (0..clients).for_each(|client| this.coming.push(Reverse((client as u64 * 7, client)))),
            Load::Open(_) => this.arrive(),
        }
        this
    }

    /// The next request of an open loop is known.
    fn arrive(&mut self) {
        if let Load::Open(rate) = self.load {
            self.next_arrival_us += self.chance.gap_us(1e6 / rate as f64);
            let client = self.chance.next() as usize % self.clients.len();
            self.coming.push(Reverse((self.next_arrival_us as u64, client)));
        }
    }

    /// Runs the loop for so long.
    fn run(mut self, length_us: u64) -> Outcome {
        let mut now_us = 0;
        let mut held = Held::default();
        while now_us < length_us {
            self.arrivals.begin_turn(now_us, self.reads, held.is_for_arrivals(), self.clients.len());
            self.outcome.turns += 1;
            let mut at_us = now_us + TURN_US;
            let answered = self.read_node(now_us, &mut at_us);
            self.read_clients(now_us, &mut at_us);
            held = Held::default();
            self.flush(now_us, &mut at_us, &mut held);
            self.write_clients(answered, now_us, &mut at_us);
            let next_us = self.wait(now_us, at_us, &held);
            assert!(next_us > now_us && next_us < u64::MAX, "the loop would wait for ever, or not at all");
            now_us = next_us;
        }
        self.outcome
    }

    fn read_node(&mut self, now_us: u64, at_us: &mut u64) -> Vec<(usize, u64)> {
        self.node.run(now_us);
        let mut answered = Vec::new();
        let mut bytes = Vec::new();
        while let Some((_, requests)) = take_due(&mut self.node.replies, now_us) {
            bytes.extend_from_slice(&b"$1\r\nv\r\n".repeat(requests));
        }
        if !bytes.is_empty() {
            *at_us += IO_US;
        }
        let mut rest = &bytes[..];
        while let Some(event) = self.up.next_event(&mut rest, &ReplyLimits::default(), now_us).expect("no fault") {
            if let Event::Reply { ticket, .. } = event {
                answered.push(ticket.0.expect("a client's"));
            }
        }
        answered
    }

    fn read_clients(&mut self, now_us: u64, at_us: &mut u64) {
        while let Some(Reverse((come_us, client))) = self.coming.peek().copied() {
            if come_us > now_us {
                return;
            }
            self.coming.pop();
            *at_us += IO_US;
            self.reads += 1;
            let this = &mut self.clients[client];
            let gap_us = now_us - std::mem::replace(&mut this.active_us, now_us);
            this.owed += self.pipeline;
            self.arrivals.note_request(&mut this.pace, gap_us, now_us);
            for _ in 0..self.pipeline {
                let write = |out: &mut Vec<u8>| out.extend_from_slice(b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n");
                self.up.send(Request(Some((client, come_us))), now_us, &mut self.pool, write);
            }
            if matches!(self.load, Load::Open(_)) {
                self.arrive();
            }
        }
    }

    fn flush(&mut self, now_us: u64, at_us: &mut u64, held: &mut Held) {
        match self.up.decide_flush(now_us, &self.arrivals) {
            None => {}
            Some(Flush::Hold { until_us, wake_on }) => {
                assert!(until_us > now_us);
                held.note(until_us, wake_on);
                let kind = wake_on as usize;
                self.outcome.holds[kind] += 1;
                let waits_us = until_us - self.up.pending().since_us;
                self.outcome.longest_us[kind] = self.outcome.longest_us[kind].max(waits_us);
            }
            Some(Flush::Now) => {
                *at_us += IO_US;
                let queued = self.up.pending().requests;
                let bytes = self.up.output().len();
                self.up.handle_written(bytes, now_us, &mut self.pool);
                self.node.written.push_back((*at_us + WAY_US, queued));
                self.outcome.writes += 1;
            }
        }
    }

    fn write_clients(&mut self, answered: Vec<(usize, u64)>, now_us: u64, at_us: &mut u64) {
        for replies in answered.chunk_by(|(one, _), (next, _)| one == next) {
            let (client, come_us) = replies[0];
            *at_us += IO_US;
            self.outcome.latencies.extend(replies.iter().map(|_| *at_us - come_us));
            let this = &mut self.clients[client];
            this.owed -= replies.len();
            if this.owed > 0 {
                continue;
            }
            self.arrivals.note_answered(&mut this.pace, now_us);
            if matches!(self.load, Load::Closed) {
                self.clients_free_us = self.clients_free_us.max(*at_us + WAY_US) + CLIENT_US;
                self.coming.push(Reverse((self.clients_free_us + WAY_US, client)));
            }
        }
    }

    /// When the next turn begins. The turn's work was done at `at_us`.
    fn wait(&mut self, now_us: u64, at_us: u64, held: &Held) -> u64 {
        let replies = || match self.up.replies_due(now_us) {
            RepliesDue::Until(until_us) if self.up.shares_writes() => Some(until_us),
            RepliesDue::Until(_) | RepliesDue::None | RepliesDue::Late => None,
        };
        let wait = held.wait(replies);
        let node_us = self.node.next_us(now_us).unwrap_or(u64::MAX);
        let client_us = self.coming.peek().map_or(u64::MAX, |Reverse((come_us, _))| *come_us);
        let next_us = match wait {
            Wait::Anything => node_us.min(client_us).min(held.until_us()),
            // The core is the worker's own: it has it back at once.
            Wait::Nodes { until_us } | Wait::Yielding { until_us } => node_us.min(until_us),
        };
        next_us.max(at_us)
    }
}

/// How long a run takes, in virtual microseconds.
const LENGTH_US: u64 = 300_000;

fn run(policy: FlushPolicy, clients: usize, load: Load) -> Outcome {
    World::new(policy, clients, load).run(LENGTH_US)
}

/// Requests a second that the worker can pass on one by one: two turns, and four reads or writes each.
const CAPACITY: u64 = 1_000_000 / (2 * TURN_US + 4 * IO_US);

#[test]
fn at_half_load_no_request_is_delayed() {
    for clients in [50, 500, 1_000] {
        for tenths in 1..=5 {
            let load = Load::Open(CAPACITY * tenths / 10);
            // However long a delay is allowed, and so however many requests would come within it.
            let most = FlushPolicy::Adaptive { delay_us_max: FLUSH_LIMITS.delay_us_max };
            let (immediate, adaptive) = (run(IMMEDIATE, clients, load), run(most, clients, load));
            assert_eq!(adaptive.delays(), 0, "{clients} clients, {tenths} tenths");
            assert!(adaptive == immediate, "nor is anything else different");
        }
    }
}

#[test]
fn a_lone_client_is_served_as_if_each_turn_wrote() {
    let each_turn = run(FlushPolicy::EachTurn, 1, Load::Closed);
    for policy in [IMMEDIATE, ADAPTIVE] {
        assert!(run(policy, 1, Load::Closed) == each_turn, "{policy:?}");
    }
}

#[test]
fn a_few_clients_lose_nothing_by_waiting_for_replies() {
    for clients in 2..=16 {
        let each_turn = run(FlushPolicy::EachTurn, clients, Load::Closed);
        for policy in [IMMEDIATE, ADAPTIVE] {
            let (served, all) = (run(policy, clients, Load::Closed).served(), each_turn.served());
            assert!(served * 100 >= all * 97, "{clients} clients, {policy:?}: {served} instead of {all}");
        }
    }
}

#[test]
fn pipelines_of_few_clients_do_not_wait_for_replies() {
    for (clients, pipeline) in [(2, 10), (4, 10), (8, 10), (12, 10), (2, 100), (4, 100), (8, 40)] {
        let run = |policy| {
            let mut world = World::new(policy, clients, Load::Closed);
            world.pipeline = pipeline;
            world.run(LENGTH_US)
        };
        let each_turn = run(FlushPolicy::EachTurn);
        for policy in [IMMEDIATE, ADAPTIVE] {
            let outcome = run(policy);
            let (served, all) = (outcome.served(), each_turn.served());
            assert!(served * 100 >= all * 97, "{clients} x {pipeline}, {policy:?}: {served} instead of {all}");
            assert_eq!(outcome.holds[WakeOn::Replies as usize], 0, "{clients} x {pipeline}, {policy:?}");
        }
    }
}

#[test]
fn at_half_load_nothing_waits_for_replies() {
    for clients in [50, 500, 1_000] {
        for tenths in 1..=5 {
            let load = Load::Open(CAPACITY * tenths / 10);
            let (each_turn, immediate) = (run(FlushPolicy::EachTurn, clients, load), run(IMMEDIATE, clients, load));
            for share in [0.5, 0.99] {
                let (least, usual) = (each_turn.percentile(share), immediate.percentile(share));
                assert!(
                    usual <= least,
                    "{clients} clients, {tenths} tenths, {share}: {usual} us instead of {least} us"
                );
            }
        }
    }
}

#[test]
fn a_closed_loop_loses_nothing_by_delays() {
    for clients in [1, 4, 16, 50, 200, 500, 1_000] {
        let (immediate, adaptive) = (run(IMMEDIATE, clients, Load::Closed), run(ADAPTIVE, clients, Load::Closed));
        let (least, served) = (immediate.served() * 97 / 100, adaptive.served());
        assert!(served >= least, "{clients} clients: {served} instead of {}", immediate.served());
    }
}

/// A worker whose requests wait in a node that others keep busy: each batch takes it a millisecond now and then.
fn slow_node(policy: FlushPolicy) -> Outcome {
    let mut world = World::new(policy, 500, Load::Open(CAPACITY / 2));
    world.node.batch_us = 40;
    world.node.hiccup_us = 900;
    world.run(LENGTH_US)
}

#[test]
fn requests_are_delayed_while_they_queue_at_the_node() {
    let (immediate, adaptive) = (slow_node(IMMEDIATE), slow_node(ADAPTIVE));
    assert!(adaptive.delays() > 100, "{}", adaptive.delays());
    assert!(adaptive.writes < immediate.writes, "{} writes, not fewer than {}", adaptive.writes, immediate.writes);
    let (usual, delayed) = (immediate.percentile(0.99), adaptive.percentile(0.99));
    assert!(delayed * 100 <= usual * 105, "the slowest have waited anyway: {delayed} us instead of {usual} us");
}

#[test]
fn no_hold_outlasts_its_bound() {
    let mut kinds = [0; 4];
    for clients in [1, 8, 50, 500] {
        for load in [Load::Closed, Load::Open(CAPACITY / 3), Load::Open(CAPACITY * 2)] {
            for outcome in [run(IMMEDIATE, clients, load), run(ADAPTIVE, clients, load), slow_node(ADAPTIVE)] {
                outcome.check_bounds();
                (0..4).for_each(|kind| kinds[kind] += outcome.holds[kind]);
            }
        }
    }
    assert_eq!(kinds[WakeOn::Anything as usize], 0);
    for kind in [WakeOn::Replies, WakeOn::Clients, WakeOn::Deadline] {
        assert!(kinds[kind as usize] > 0, "{kind:?} was tried: {kinds:?}");
    }
}

#[test]
fn a_stopped_node_is_written_to_and_waited_for_without_spinning() {
    for policy in [IMMEDIATE, ADAPTIVE] {
        let mut world = World::new(policy, 500, Load::Open(CAPACITY / 4));
        world.node.stops = Some((LENGTH_US / 4, LENGTH_US / 2));
        let stopped = world.run(LENGTH_US);
        stopped.check_bounds();
        let steady = run(policy, 500, Load::Open(CAPACITY / 4));
        assert!(stopped.turns <= steady.turns * 11 / 10, "{} turns instead of {}", stopped.turns, steady.turns);
        assert!(stopped.served() + 100 >= steady.served(), "all are answered when it goes on");
        let (longest, stop_us) = (stopped.percentile(1.0), LENGTH_US / 4);
        assert!(longest <= stop_us + stop_us / 10, "{longest} us");
    }
}
