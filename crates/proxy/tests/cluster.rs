//! Clients of a proxy in front of a seeded world of servers with replicas (`respool-sim`), in virtual time: servers crash, cannot be reached, are
//! cut off with clients that still write to them, stall, slow down and come back empty; replicas that lag take over, and the settings follow
//! as an operator or a Sentinel has them follow; meanwhile nodes are paused, and some requests are passed on as they come. Whatever happens, a client is told what was done: each reply is that of its own request,
//! what is acknowledged is there unless a fault excuses it, what was not sent was not executed, nothing is done twice or elsewhere, and
//! no client waits for ever. The loop sleeps until the worker wants to be woken, so what is forgotten stays undone. A seed that fails fails
//! again: `RESPOOL_WORLD_SEED=n cargo test -p respool-proxy --test cluster`, and `RESPOOL_WORLD_SEEDS=n` runs so many.
//!
//! The proxy has no Redis Cluster behind it: each shard is one server of the settings. Members of a cluster may be named there; then what
//! they say of slots that are elsewhere is passed on, which is tested too.

#[path = "cluster/books.rs"]
mod books;
#[path = "cluster/client.rs"]
mod client;
#[path = "cluster/faults.rs"]
mod faults;
#[path = "cluster/orders.rs"]
mod orders;
#[path = "cluster/seat.rs"]
mod seat;
#[path = "cluster/settings.rs"]
mod settings;
mod support;

use books::{Books, Samples, numbers};
use client::{Client, Commons, Scene, shard_of};
use faults::Faults;
use orders::Orders;
use respool_proxy::{Mail, ProcessBudget, ProcessFacts, Shared};
use respool_route::cluster::slot_of;
use respool_sim::{ConnectionId, Delivery, HarmTerms, NodeIndex, World, WorldTerms};
use respool_testkit::Rng;
use respool_wire::Value;
use seat::{Event, Order, Seat};
use settings::{SHARDS, Settings, endpoint_of};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use support::NoEngine;

const MS: u64 = 1_000;
const SECOND: u64 = 1_000_000;
const CLIENTS: usize = 10;
/// A request is answered within this, whatever happens, once those before it are: longer than a deadline, a dial and a pause together.
const PATIENCE_US: u64 = 3 * SECOND;
/// For so long there are faults.
const TROUBLED_US: u64 = 12 * SECOND;

struct Run {
    seed: u64,
    is_cluster: bool,
    link_us: u64,
    world: World,
    shared: Arc<Shared>,
    seats: Vec<Seat>,
    rng: Rng,
    /// Connections to nodes: whose they are, and which node's.
    lanes: BTreeMap<ConnectionId, (usize, u32, NodeIndex)>,
    clients: BTreeMap<(usize, u32), Client>,
    next_client: usize,
    commons: Commons,
    books: Books,
    /// All settings that there have been.
    epochs: Vec<Settings>,
    /// Mail under way, by seat: when it comes, and the number of the settings in it.
    mail: Vec<VecDeque<(u64, Mail, Option<usize>)>>,
    operator_us: u64,
    orders: Orders,
    faults: Faults,
    are_asking: bool,
    tags: u64,
}

/// Which of the worlds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Servers,
    Cluster,
}

impl Run {
    fn new(seed: u64, kind: Kind, workers: usize) -> Self {
        let terms = WorldTerms {
            is_cluster: kind == Kind::Cluster,
            primaries: SHARDS,
            replicas: 2,
            // Near ones and those at some distance.
            link_us: [300, 2_000, 8_000][seed as usize % 3],
            ..WorldTerms::default()
        };
        let mut world = World::new(terms, seed);
        world.keep_journal();
        let shared = Shared::new(workers, 0, ProcessFacts::default(), Arc::new(ProcessBudget::default()));
        let shared = Arc::new(shared);
        let first = Settings(std::array::from_fn(|shard| shard));
        let seats = (0..workers).map(|number| Seat::new(number, first.config(&world, seed), &shared, seed)).collect();
        let harm = HarmTerms { felt_us: SECOND, settled_us: SECOND, half_open_us: 2 * SECOND };
        Self {
            seed,
            is_cluster: kind == Kind::Cluster,
            link_us: terms.link_us,
            operator_us: world.now_us(),
            world,
            shared,
            seats,
            rng: Rng::part(seed, 1),
            lanes: BTreeMap::new(),
            clients: BTreeMap::new(),
            next_client: 0,
            commons: Commons::new(),
            books: Books::new(format!("seed {seed}, {kind:?}"), harm, kind == Kind::Cluster),
            epochs: vec![first],
            mail: (0..workers).map(|_| VecDeque::new()).collect(),
            orders: Orders::new(seed),
            faults: Faults::new(seed, terms),
            are_asking: true,
            tags: 0,
        }
    }

    fn now(&self) -> u64 {
        self.world.now_us()
    }

    /// The node that has most of a shard. Its first slot never moves by itself.
    fn primary(&self, shard: usize) -> NodeIndex {
        let first = (0..16_384).find(|slot| shard_of(*slot) == shard).expect("each has some");
        self.world.owner(first)
    }

    /// The slots for which clients' requests go to a node, or for which it is waited for.
    fn slots_of(&self, node: NodeIndex) -> BTreeSet<u16> {
        let is_served = |shard: usize| {
            self.primary(shard) == node || self.seats.iter().any(|seat| self.epochs[seat.epoch].0[shard] == node)
        };
        let shards: Vec<bool> = (0..SHARDS).map(is_served).collect();
        let all = (0..16_384).filter(|slot| shards[shard_of(*slot)]);
        all.chain(self.books.moved_to(node)).collect()
    }

    fn accept(&mut self) {
        let seat = self.next_client % self.seats.len();
        let now_us = self.now();
        let index = self.seats[seat].accept(now_us);
        let (number, is_cluster) = (self.next_client, self.is_cluster);
        self.next_client += 1;
        let mut scene = Scene {
            books: &mut self.books,
            commons: &mut self.commons,
            rng: &mut self.rng,
            now_us,
            link_us: self.link_us,
            epoch: self.seats[seat].epoch,
        };
        let client = Client::new(number, seat, is_cluster, &mut scene);
        self.clients.insert((seat, index), client);
    }

    fn move_clients(&mut self) {
        let now_us = self.now();
        while self.are_asking && self.clients.len() < CLIENTS {
            self.accept();
        }
        for place in self.clients.keys().copied().collect::<Vec<_>>() {
            let client = self.clients.get_mut(&place).expect("listed");
            if client.next_us > now_us {
                continue;
            }
            if client.is_stranded || self.faults.are_on() && self.rng.once_in(600) {
                self.dismiss(place);
                continue;
            }
            let mut scene = Scene {
                books: &mut self.books,
                commons: &mut self.commons,
                rng: &mut self.rng,
                now_us,
                link_us: self.link_us,
                epoch: self.seats[place.0].epoch,
            };
            let said = if self.are_asking { client.ask(&mut scene) } else { client.rest(now_us) };
            if !said.is_empty() {
                self.seats[place.0].hear_client(place.1, &said);
            }
        }
    }

    /// A client vanishes.
    fn dismiss(&mut self, place: (usize, u32)) {
        let client = self.clients.remove(&place).expect("it is there");
        client.leave(&mut self.books);
        self.seats[place.0].push(Event::Gone { client: place.1 });
    }

    /// Those who look after the settings see a failover, and have all workers follow it.
    fn operate(&mut self) {
        let now_us = self.now();
        if self.operator_us > now_us {
            return;
        }
        self.operator_us = now_us + 100 * MS;
        let wanted = Settings(std::array::from_fn(|shard| self.primary(shard)));
        if self.epochs.last() == Some(&wanted) {
            return;
        }
        let config = Arc::new(wanted.config(&self.world, self.seed));
        self.epochs.push(wanted);
        self.books.seen.reloads += 1;
        let at_us = now_us + self.rng.between(10_000, 400_000) as u64;
        for seat in 0..self.seats.len() {
            let at_us = at_us + self.rng.below(5_000) as u64;
            self.post(seat, at_us, Mail::Reload(Arc::clone(&config)), Some(self.epochs.len() - 1));
        }
    }

    /// Mail does not overtake other mail.
    fn post(&mut self, seat: usize, at_us: u64, mail: Mail, epoch: Option<usize>) {
        let behind_us = self.mail[seat].back().map_or(0, |(at_us, ..)| *at_us);
        self.mail[seat].push_back((at_us.max(behind_us), mail, epoch));
    }

    fn bring_mail(&mut self) {
        let now_us = self.now();
        for (seat, mail) in self.seats.iter_mut().zip(&mut self.mail) {
            while mail.front().is_some_and(|(at_us, ..)| *at_us <= now_us) {
                let (_, mail, epoch) = mail.pop_front().expect("it is there");
                if let Some(epoch) = epoch {
                    seat.epoch = epoch;
                    self.books.note_reload(now_us);
                }
                seat.push(Event::Mail(mail));
            }
        }
    }

    /// Goes on to the next thing that happens, but not beyond this time.
    fn step(&mut self, until_us: u64) {
        let now_us = self.now();
        let seats = self.seats.iter().map(|seat| seat.next_us(now_us));
        let mail = self.mail.iter().filter_map(|mail| mail.front().map(|(at_us, ..)| *at_us));
        let clients = self.clients.values().map(|client| client.next_us);
        let others = [self.operator_us, self.orders.next_us(), self.faults.next_us(), until_us];
        let next_us = seats.chain(mail).chain(clients).chain(others).min().unwrap_or(until_us);
        let mut delivery = self.world.poll(next_us.max(now_us + 5));
        let at_seats: Vec<usize> = self.seats.iter().map(|seat| seat.epoch).collect();
        self.books.note_executions(self.world.take_journal(), &self.epochs, &at_seats);
        while let Some(delivered) = delivery {
            self.deliver(delivered);
            // What has come at the same time.
            delivery = self.world.poll(self.world.now_us());
            self.books.note_executions(self.world.take_journal(), &self.epochs, &at_seats);
        }
        self.strike();
        self.operate();
        self.order();
        self.bring_mail();
        self.move_clients();
        let now_us = self.now();
        for seat in 0..self.seats.len() {
            if self.seats[seat].next_us(now_us) <= now_us {
                let orders = self.seats[seat].turn(now_us);
                orders.into_iter().for_each(|order| self.obey(seat, order));
            }
        }
        let longest = self.clients.values().max_by_key(|client| client.waited_us(now_us));
        if let Some(client) = longest.filter(|client| client.waited_us(now_us) > PATIENCE_US) {
            panic!("{}: no reply at {now_us}: {}", self.books.context, client.first_pending());
        }
    }

    fn deliver(&mut self, delivery: Delivery) {
        let now_us = self.now();
        match delivery {
            Delivery::Connected { connection } => {
                let Some((seat, lane, _)) = self.lanes.get(&connection).copied() else { return };
                self.seats[seat].push(Event::Connected { lane });
            }
            Delivery::Reply { connection, replies, .. } => {
                let Some((seat, lane, _)) = self.lanes.get(&connection).copied() else { return };
                self.seats[seat].hear_node(lane, &replies.concat());
            }
            Delivery::Refused { connection, tag } => {
                let Some((seat, lane, _)) = self.lanes.remove(&connection) else { return };
                if tag == 0 { self.seats[seat].push(Event::Refused { lane }) } else { self.seats[seat].end_lane(lane) }
            }
            Delivery::Ended { connection } => {
                let Some((seat, lane, _)) = self.lanes.remove(&connection) else { return };
                self.seats[seat].end_lane(lane);
            }
            Delivery::Lost { slots } => {
                let slots: BTreeSet<u16> = slots.into_iter().collect();
                self.books.note_lost(now_us, &slots);
                self.clients.values_mut().for_each(|client| client.note_lost(&slots));
            }
        }
    }

    fn obey(&mut self, seat: usize, order: Order) {
        let now_us = self.now();
        match order {
            Order::Dial { lane, endpoint } => {
                let node = (0..SHARDS * 3).find(|node| endpoint_of(&self.world, *node) == *endpoint);
                let node = node.expect("an address of the settings");
                let address = self.world.address(node);
                let connection = self.world.dial(&address);
                self.lanes.insert(connection, (seat, lane, node));
                self.seats[seat].note_dialled(lane, connection);
            }
            Order::Close { connection, at_once } => {
                self.lanes.remove(&connection);
                if at_once { self.world.close(connection) } else { self.world.hang_up(connection) }
            }
            Order::Send { connection, request } => {
                self.tags += 1;
                // A replica of a shard is so many servers behind its first primary.
                let shard = self.lanes.get(&connection).map_or(0, |(_, _, node)| node % SHARDS);
                self.books.note_sent(request.as_args(), shard, connection, now_us);
                self.world.send(connection, self.tags, vec![request]);
            }
            Order::Tell { client, bytes } if self.orders.is((seat, client)) => self.note_ordered(&bytes),
            Order::Tell { client, bytes } => {
                let Some(told) = self.clients.get_mut(&(seat, client)) else { return };
                let mut scene = Scene {
                    books: &mut self.books,
                    commons: &mut self.commons,
                    rng: &mut self.rng,
                    now_us,
                    link_us: self.link_us,
                    epoch: self.seats[seat].epoch,
                };
                let said = told.hear(&bytes, &mut scene);
                if !said.is_empty() {
                    self.seats[seat].hear_client(client, &said);
                }
            }
            Order::Post { worker, mail } => {
                let at_us = now_us + self.rng.below(300) as u64;
                self.post(worker, at_us, mail, None);
            }
        }
    }

    fn run(&mut self, for_us: u64) {
        let end_us = self.now() + for_us;
        while self.now() < end_us {
            self.step(end_us);
        }
    }

    /// Faults, then none; in the end everything is answered, and compared.
    fn live(mut self) -> Samples {
        self.run(TROUBLED_US);
        self.faults.stop();
        // Until the last fault is over and followed.
        self.run(7 * SECOND);
        let failed = |run: &Self| {
            let seen = &run.books.seen;
            seen.classes.values().map(|(_, failed)| failed).sum::<u64>() - seen.by_half_open
        };
        let before = failed(&self);
        self.run(2 * SECOND);
        let is_same = self.is_cluster || failed(&self) == before;
        assert!(is_same, "{}: errors without a fault: {:?}", self.books.context, self.books.seen);
        self.are_asking = false;
        self.run(PATIENCE_US + 2 * SECOND);
        let waiting: Vec<String> =
            self.clients.values().filter(|client| !client.is_idle()).map(Client::first_pending).collect();
        assert!(waiting.is_empty(), "{}: {waiting:?}", self.books.context);
        self.compare();
        self.leave();
        self.books.seen
    }

    /// What is there, with what clients were told.
    fn compare(&mut self) {
        self.books.check_counts();
        for ((database, tag), appended) in std::mem::take(&mut self.commons.logs) {
            let key = format!("{tag}log");
            let found = self.list(database, &key);
            self.books.check_log(&key, shard_of(slot_of(key.as_bytes())), &appended, &found);
        }
        for ((database, shard), pushed) in std::mem::take(&mut self.commons.pushed) {
            let key = format!("{}q", self.commons.queues[shard]);
            let left = self.list(database, &key);
            self.books.check_queue(&key, &pushed, &left);
        }
    }

    /// A list, at the nodes that have its slot.
    fn list(&mut self, database: u32, key: &str) -> Vec<u64> {
        let slot = slot_of(key.as_bytes());
        let nodes: Vec<NodeIndex> = (0..SHARDS * 3).filter(|node| self.world.is_at(slot, *node)).collect();
        let mut all = Vec::new();
        for node in nodes {
            let Value::Array(values) = self.world.look(node, database, &[b"LRANGE", key.as_bytes(), b"0", b"-1"])
            else {
                continue;
            };
            all.extend(values.iter().flat_map(|value| match value {
                Value::Bulk(word) => numbers(word).collect(),
                _ => Vec::new(),
            }));
        }
        all
    }

    /// All clients leave, and nothing is held for any of them.
    fn leave(&mut self) {
        for place in self.clients.keys().copied().collect::<Vec<_>>() {
            self.dismiss(place);
        }
        if let Some((seat, client)) = self.orders.place() {
            self.seats[seat].push(Event::Gone { client });
        }
        self.run(3 * SECOND);
        for seat in &self.seats {
            assert_eq!(seat.worker.remains(), [], "{}", self.books.context);
        }
        assert_eq!(self.shared.ledger.held_bytes(), 0, "{}", self.books.context);
        assert_eq!(self.shared.ledger.clients(), 0, "{}", self.books.context);
    }
}

fn seeds(usual: u64) -> Vec<u64> {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    match number("RESPOOL_WORLD_SEED") {
        Some(seed) => vec![seed],
        None => (1..=number("RESPOOL_WORLD_SEEDS").unwrap_or(usual)).collect(),
    }
}

/// Several worlds, and what happened in all of them; `None` of a single one, which has not room for everything.
fn live(usual: u64, kind: Kind) -> Option<(u64, Samples)> {
    let mut total = Samples::default();
    let seeds = seeds(usual);
    for &seed in &seeds {
        let workers = if seed.is_multiple_of(2) { 3 } else { 1 };
        total.add(&Run::new(seed, kind, workers).live());
    }
    println!("{kind:?}, {} worlds: {total:#?}", seeds.len());
    (seeds.len() as u64 >= usual).then_some((seeds.len() as u64, total))
}

/// Each kind of request is answered, and fails only now and then. Those of queues and registers are rarer.
fn check_classes(total: &Samples, worlds: u64, percent_min: u64) {
    for (class, (answered, failed)) in &total.classes {
        let enough = if matches!(*class, "BLPOP" | "WATCH") { 100 } else { 500 };
        assert!(*answered > worlds * enough, "{class}: {answered} answered in {worlds} worlds");
        assert!(answered * 100 > (answered + failed) * percent_min, "{class}: {answered} answered, {failed} failed");
    }
    assert_eq!(total.classes.len(), 12, "{:?}", total.classes.keys());
}

#[test]
fn clients_of_servers_that_fail_over_are_told_the_truth() {
    let Some((worlds, total)) = live(6, Kind::Servers) else { return };
    check_classes(&total, worlds, 90);
    assert!(total.unexcused * 2 > total.all, "a fault excuses most of what happens: {total:?}");
    let faults: u64 = total.faults.values().sum();
    assert!(faults > 5 * worlds && total.faults.len() >= 8, "{:?}", total.faults);
    assert!(total.reloads * 2 > worlds, "servers have to fail over: {}", total.reloads);
    for words in ["may or may not have been executed", "the command was not sent"] {
        assert!(total.error(words) > 10 * worlds, "{words}: {}", total.error(words));
    }
    assert!(
        total.done_in_doubt > 10 * worlds,
        "what was in doubt has to be done now and then: {}",
        total.done_in_doubt
    );
    assert!(total.served > 100 * worlds && total.undone > worlds, "{} served, {} undone", total.served, total.undone);
    assert!(total.orders > 4 * worlds, "{} orders", total.orders);
    assert!(total.large > 100 * worlds, "{} large requests", total.large);
    assert!(total.lost > 0, "no failover has cost a write that was acknowledged");
    assert!(total.orphaned * 50 <= total.served, "{} popped for no client, {} served", total.orphaned, total.served);
}

#[test]
fn what_members_of_a_cluster_say_is_passed_on() {
    let Some((worlds, total)) = live(3, Kind::Cluster) else { return };
    check_classes(&total, worlds, 70);
    for words in ["-MOVED ", "-ASK "] {
        assert!(total.error(words) > 5 * worlds, "{words}: {}", total.error(words));
    }
    let migrated = total.faults.get("migrate").copied().unwrap_or_default();
    assert!(migrated > 5 * worlds, "{:?}", total.faults);
}

#[test]
fn a_quiet_world_has_no_errors() {
    for seed in [1, 2, 3] {
        let mut run = Run::new(seed, Kind::Servers, seed as usize);
        run.faults.stop();
        run.run(2 * SECOND);
        // The first script of a process may be unknown to a node, see `client.rs`.
        let failed: u64 =
            run.books.seen.errors.iter().filter(|(words, _)| **words != "-NOSCRIPT ").map(|(_, n)| n).sum();
        assert_eq!(failed, 0, "seed {seed}: {:?}", run.books.seen);
        assert!(run.books.seen.all > 1_000, "{:?}", run.books.seen);
    }
}
