//! Seeded worlds in which the settings change all the time: nodes stand elsewhere, come and go, keys are placed and named in
//! another way; nodes are paused and drained, and rights come and go. After a reload nothing that is asked may reach a place that the
//! settings do not name for it any more, and after an order nothing that it forbids, whatever
//! clients were in the middle of: pipelines, transactions, watched keys, commands that wait, requests that are passed on as they come. A seed that fails fails again:
//! `RESPOOL_WORLD_SEED=n cargo test -p respool-proxy --test places`.

#[path = "support/chance.rs"]
mod chance;
#[path = "places/client.rs"]
mod client;
#[path = "places/node.rs"]
mod node;
#[path = "places/settings.rs"]
mod settings;
mod support;

use chance::Chance;
use client::Client;
use node::{End, Servers};
use respool_connection::{Action, ConnId, Endpoint, Machine, Now, Peer, Service, ServiceAction, WorkerId};
use respool_proxy::{Access, Mail, ProcessBudget, ProcessFacts, Shared, Worker, WorkerSetup};
use settings::{LARGE, Settings};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use support::{NoEngine, settle};

/// What is known of one request that carries a token.
#[derive(Debug)]
struct Asked {
    /// The key as clients call it, and whether it is a list.
    key: String,
    /// The settings in force when it was asked; for a transaction, when EXEC was.
    epoch: usize,
    /// The turn in which that was.
    turn: usize,
    /// EXEC has been asked for it, or it is outside of a transaction.
    is_due: bool,
    /// By a client whose rights come and go.
    is_guests: bool,
    /// Where it has come to last.
    came_to: Option<usize>,
}

struct World {
    worker: Worker<NoEngine>,
    shared: Arc<Shared>,
    chance: Chance,
    now_us: u64,
    turns: usize,
    clients: BTreeMap<u32, Client>,
    /// The client that gives orders.
    operator: ConnId,
    /// What it has ordered and has not been answered, and what holds: nodes by name with the turn of the answer.
    ordered: Option<(String, Option<String>)>,
    all_paused: Option<usize>,
    paused: BTreeMap<String, usize>,
    drained: BTreeMap<String, usize>,
    /// The turn since which the guest may do nothing.
    forbidden: Option<usize>,
    servers: Servers,
    ends: BTreeMap<u32, End>,
    dialling: Vec<(u32, usize)>,
    /// All settings that there have been.
    epochs: Vec<Settings>,
    asked: BTreeMap<u64, Asked>,
    next_token: u64,
    /// Elements that clients have got.
    popped: BTreeSet<u64>,
    seen: Samples,
}

/// How often what was to happen has happened.
#[derive(Debug, Default)]
struct Samples {
    arrived: usize,
    executed: usize,
    touched: usize,
    aborted: usize,
    served: usize,
    asked_again: usize,
    unblocked: usize,
    refused: usize,
    orders: usize,
    /// Large requests that came whole, and settings and orders that were given between the parts of one.
    large: usize,
    amid: usize,
    /// What the guest was told that it may not do.
    forbidden: usize,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut chance = Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let settings = Settings::any(&mut chance);
        let access = Access::default();
        let rules = [b"on".as_slice(), b"nopass", b"~*", b"&*", b"+@all"];
        access.change(|users| users.with_rules(b"guest", &rules).map(|users| (users, ()))).expect("rules");
        let shared = Shared::new(1, 0, ProcessFacts::default(), Arc::new(ProcessBudget::default()));
        let shared = Arc::new(shared.with_access(Arc::new(access)));
        let config = Arc::new(settings.config(seed));
        let setup =
            WorkerSetup { config, shared: Arc::clone(&shared), number: WorkerId::FIRST, engine: None, entropy: seed };
        let mut worker = Worker::new(setup);
        let operator = worker.handle_accept(Peer::default()).expect("there is room");
        Self {
            worker,
            shared,
            chance,
            now_us: 1_000_000,
            turns: 0,
            clients: BTreeMap::new(),
            operator,
            ordered: None,
            all_paused: None,
            paused: BTreeMap::new(),
            drained: BTreeMap::new(),
            forbidden: None,
            servers: Servers::default(),
            ends: BTreeMap::new(),
            dialling: Vec::new(),
            epochs: vec![settings],
            asked: BTreeMap::new(),
            next_token: 0,
            popped: BTreeSet::new(),
            seen: Samples::default(),
        }
    }

    fn epoch(&self) -> usize {
        self.epochs.len() - 1
    }

    fn turn(&mut self, seed: u64, is_calm: bool) {
        self.turns += 1;
        self.now_us += match self.chance.below(30) {
            0 => self.chance.below(100_000) as u64,
            _ => self.chance.below(300) as u64,
        };
        self.worker.begin_turn(Now::of_clocks(self.now_us, self.now_us + 1_700_000_000_000_000));
        self.connect(is_calm);
        self.answer(is_calm);
        if !is_calm && self.chance.one_in(40) {
            let settings = self.epochs[self.epoch()].changed(&mut self.chance);
            let config = Arc::new(settings.config(seed));
            self.epochs.push(settings);
            self.note_amid();
            self.forget_orders_of_nodes_that_have_gone();
            self.worker.handle_mail(Mail::Reload(config));
        }
        self.order(is_calm);
        self.move_clients(is_calm);
        self.worker.end_turn();
        settle(self, |this| &mut this.worker, Self::act, Self::write);
    }

    fn connect(&mut self, is_calm: bool) {
        for (lane, place) in std::mem::take(&mut self.dialling) {
            if !is_calm && self.chance.one_in(3) {
                self.dialling.push((lane, place));
                continue;
            }
            self.ends.insert(lane, self.servers.connect(place));
            self.worker.handle_connected(ConnId::upstream(lane));
        }
    }

    /// Servers answer some of what they have been asked.
    fn answer(&mut self, is_calm: bool) {
        self.servers.pass_time(self.now_us, &mut self.ends);
        for lane in self.ends.keys().copied().collect::<Vec<_>>() {
            for _ in 0..if is_calm { 100 } else { self.chance.below(4) } {
                let Some(reply) = self.ends.get_mut(&lane).and_then(|end| end.to_send.pop_front()) else { break };
                self.feed(ConnId::upstream(lane), &reply);
            }
        }
    }

    fn feed(&mut self, conn: ConnId, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let Some(buffer) = self.worker.read_buffer(conn) else {
                assert!(!conn.is_upstream(), "all replies are small, so nodes are always read");
                return;
            };
            let taken = bytes.len().min(buffer.len());
            buffer[..taken].copy_from_slice(&bytes[..taken]);
            bytes = &bytes[taken..];
            self.worker.handle_read(conn, taken);
        }
    }

    /// Nodes are paused, drained and resumed by name.
    fn order(&mut self, is_calm: bool) {
        if self.ordered.is_some() || !is_calm && !self.chance.one_in(60) {
            return;
        }
        let standing = self.all_paused.is_some() || !(self.paused.is_empty() && self.drained.is_empty());
        let names = self.epochs[self.epoch()].names();
        let name = names[self.chance.below(names.len())].clone();
        if !is_calm && self.chance.one_in(4) {
            return self.change_rights();
        }
        let (verb, name) = match self.chance.below(6) {
            _ if is_calm && !standing => return,
            _ if is_calm => ("RESUME", None),
            0 => ("DRAIN", Some(name)),
            1 => ("PAUSE", None),
            2 | 3 => ("PAUSE", Some(name)),
            4 => ("RESUME", None),
            _ => ("RESUME", Some(name)),
        };
        let mut words = vec!["PROXY", verb];
        words.extend(name.as_deref());
        if verb == "RESUME" {
            // What is asked from now on may be sent. Where all were paused, the others stay so.
            let all_paused = self.all_paused.take().filter(|_| name.is_some());
            for name in names.iter().filter(|_| all_paused.is_some()) {
                self.paused.entry(name.clone()).or_insert(all_paused.unwrap_or_default());
            }
            let is_meant = |known: &String| name.as_ref().is_none_or(|name| name == known);
            self.paused.retain(|known, _| !is_meant(known));
            self.drained.retain(|known, _| !is_meant(known));
        }
        let request = client::request(&words);
        self.ordered = Some((verb.to_owned(), name));
        self.feed(self.operator, &request);
    }

    /// The guest may do nothing from the answer on, or everything from the question on.
    fn change_rights(&mut self) {
        // A transaction that cannot begin would not end either, and behind a WATCH that was refused one runs, as at a server.
        let (verb, rules): (_, &[&str]) = match self.forbidden.take() {
            Some(_) => ("ALLOW", &["+@all"]),
            None => ("FORBID", &["-@all", "+multi", "+exec", "+watch"]),
        };
        self.ordered = Some((verb.to_owned(), None));
        self.feed(self.operator, &client::request(&[&["ACL", "SETUSER", "guest"], rules].concat()));
    }

    /// Something is changed: how many large requests have come in part?
    fn note_amid(&mut self) {
        self.seen.amid += self.clients.values().filter(|client| client.is_amid()).count();
    }

    /// An order was answered: from now on it holds.
    fn note_ordered(&mut self, reply: &[u8]) {
        let (verb, name) = self.ordered.take().expect("it has asked");
        assert_eq!(reply, b"+OK\r\n", "{}", String::from_utf8_lossy(reply));
        self.seen.orders += 1;
        self.note_amid();
        let standing = match verb.as_str() {
            "PAUSE" => &mut self.paused,
            "DRAIN" => &mut self.drained,
            "FORBID" => return self.forbidden = Some(self.turns),
            _ => return,
        };
        match name {
            Some(name) => _ = standing.entry(name).or_insert(self.turns),
            None => _ = self.all_paused.get_or_insert(self.turns),
        }
    }

    /// What is ordered of a node is forgotten when no settings name it any more.
    fn forget_orders_of_nodes_that_have_gone(&mut self) {
        let names = self.epochs[self.epoch()].names();
        self.paused.retain(|name, _| names.contains(name));
        self.drained.retain(|name, _| names.contains(name));
    }

    fn move_clients(&mut self, is_calm: bool) {
        if !is_calm && self.clients.len() < 10 && self.chance.one_in(8) {
            let conn = self.worker.handle_accept(Peer::default()).expect("there is room");
            self.clients.insert(conn.index() as u32, Client::new(self.chance.one_in(3)));
        }
        for index in self.clients.keys().copied().collect::<Vec<_>>() {
            if !is_calm && self.chance.one_in(400) {
                // What waits to be written to it, for the rest of its pipeline, has been given to it: as at a server.
                let mut client = self.clients.remove(&index).expect("it is there");
                let given = self.worker.output(ConnId::client(index)).to_vec();
                client.hear(&given, self);
                self.worker.handle_broken(ConnId::client(index), "gone");
                continue;
            }
            let mut client = self.clients.remove(&index).expect("it is there");
            if !is_calm && client.expected.len() < 20 && self.chance.one_in(3) {
                client.ask(self);
            }
            client.finish(self, is_calm);
            self.clients.insert(index, client);
            self.hand_over(index);
        }
    }

    /// The worker reads what a client has to say, as far as it reads it.
    fn hand_over(&mut self, index: u32) {
        loop {
            let Some(client) = self.clients.get_mut(&index) else { return };
            let Some(next) = client.to_send.front() else { return };
            let conn = ConnId::client(index);
            let Some(buffer) = self.worker.read_buffer(conn) else { return };
            // What is large comes in several turns.
            let part = if next.bytes.len() > LARGE { 1 + self.chance.below(LARGE) } else { usize::MAX };
            let taken = (next.bytes.len() - client.sent).min(buffer.len()).min(part);
            buffer[..taken].copy_from_slice(&next.bytes[client.sent..][..taken]);
            client.sent += taken;
            let is_whole = client.sent == next.bytes.len();
            if is_whole {
                let (epoch, turn) = (self.epochs.len() - 1, self.turns);
                for token in &next.tokens {
                    let asked = self.asked.get_mut(token).expect("it has been noted");
                    (asked.epoch, asked.turn, asked.is_due, asked.is_guests) = (epoch, turn, true, client.is_guest);
                }
                client.to_send.pop_front();
                client.sent = 0;
            }
            self.worker.handle_read(conn, taken);
            if !is_whole {
                return;
            }
        }
    }

    fn act(&mut self, action: Action<ServiceAction<Mail>>) {
        match action {
            Action::Dial { conn, endpoint } => {
                let Endpoint::Embedded { index } = *endpoint else { panic!("nodes are embedded here") };
                self.dialling.push((conn.index() as u32, index));
            }
            Action::Close { conn } if conn.is_upstream() => {
                let lane = conn.index() as u32;
                if let Some(end) = self.ends.remove(&lane) {
                    self.servers.forget(end);
                }
                self.dialling.retain(|(dialling, _)| *dialling != lane);
            }
            Action::Close { conn } => {
                let client = self.clients.remove(&(conn.index() as u32));
                panic!("a client was closed that waits for {:?}", client.map(|client| client.expected));
            }
            Action::Resume { conn } if !conn.is_upstream() => self.hand_over(conn.index() as u32),
            Action::Resume { .. } => {}
            Action::TryWrite { conn } => self.worker.handle_writable(conn),
            Action::Service(ServiceAction::Post { mail, .. }) => self.worker.handle_mail(mail),
            Action::Service(ServiceAction::StopAccepting)
            | Action::Finish { .. }
            | Action::Service(ServiceAction::Exit) => panic!("the worker was not told to end"),
        }
    }

    fn write(&mut self, conn: ConnId) {
        let bytes = self.worker.output(conn).to_vec();
        self.worker.handle_written(conn, bytes.len());
        if conn == self.operator {
            return self.note_ordered(&bytes);
        }
        let index = conn.index() as u32;
        if !conn.is_upstream() {
            let mut client = self.clients.remove(&index).expect("it is there");
            client.hear(&bytes, self);
            self.clients.insert(index, client);
            return;
        }
        let Some(mut end) = self.ends.remove(&index) else { return };
        end.received.extend_from_slice(&bytes);
        while let Some(words) = end.next_request(&self.servers) {
            self.check_place(&end, &words);
            self.servers.serve(&mut end, &words, self.now_us);
            self.servers.wake(&mut self.ends);
        }
        self.ends.insert(index, end);
        self.servers.wake(&mut self.ends);
    }

    /// A request has arrived at a server: was its key there, by the name that it has, under any settings since it was asked?
    fn check_place(&mut self, end: &End, words: &[String]) {
        for token in words.iter().flat_map(|word| client::tokens(word)) {
            let Some(asked) = self.asked.get_mut(&token) else { continue };
            self.seen.arrived += 1;
            let has_moved = asked.came_to.replace(end.place).is_some_and(|before| before != end.place);
            self.seen.asked_again += usize::from(has_moved && words[0] == "BLPOP");
            let is_right = |epoch: usize| {
                let (place, key) = self.epochs[epoch].place(&asked.key);
                place == end.place && words.iter().any(|word| word.starts_with(&key))
            };
            // What a client that has gone does not get any more is put back where it was taken.
            if words[0] == "LPUSH" {
                continue;
            }
            let right = (asked.epoch..self.epochs.len()).rev().find(|epoch| is_right(*epoch));
            let Some(right) = right else {
                panic!(
                    "{words:?}, asked under {:?}, has come to place {} under {:?}",
                    self.epochs[asked.epoch],
                    end.place,
                    self.epochs.last()
                )
            };
            assert!(asked.is_due, "{words:?} has come before EXEC was asked, or before the end of it");
            self.seen.large += usize::from(words.iter().any(|word| word.len() > LARGE));
            assert!(
                !asked.is_guests || words[0] == "WATCH" || self.forbidden.is_none_or(|since| asked.turn <= since),
                "{words:?} was asked in turn {} by a guest who may do nothing since {:?}",
                asked.turn,
                self.forbidden
            );
            let names = self.epochs[right].names_at(end.place);
            for (orders, what) in [(&self.paused, "paused"), (&self.drained, "drained")] {
                let all = self.all_paused.as_ref().filter(|_| what == "paused");
                let since = names.iter().filter_map(|name| orders.get(name)).chain(all).min();
                assert!(
                    since.is_none_or(|since| asked.turn <= *since),
                    "{words:?} was asked in turn {} and has come to {names:?}, {what} since {since:?}, in turn {}",
                    asked.turn,
                    self.turns
                );
            }
        }
    }

    /// A number that stands for one request, or for one element.
    fn token(&mut self, key: &str) -> u64 {
        self.next_token += 1;
        let asked = Asked { key: key.to_owned(), epoch: 0, turn: 0, is_due: false, is_guests: false, came_to: None };
        self.asked.insert(self.next_token, asked);
        self.next_token
    }
}

fn seeds() -> Vec<u64> {
    match std::env::var("RESPOOL_WORLD_SEED").ok().and_then(|seed| seed.parse().ok()) {
        Some(seed) => vec![seed],
        None => {
            let count = std::env::var("RESPOOL_WORLD_SEEDS").ok().and_then(|count| count.parse().ok());
            (1..=count.unwrap_or(12)).collect()
        }
    }
}

/// Lives through one world. In the end the settings stay, orders are taken back, and everything is answered.
fn live(seed: u64) -> World {
    let mut world = World::new(seed);
    for _ in 0..1_500 {
        world.turn(seed, false);
    }
    (0..300).for_each(|_| world.pass(seed, 20_000));
    world
}

#[test]
fn after_a_reload_nothing_reaches_a_place_that_has_gone() {
    let mut total = Samples::default();
    for seed in seeds() {
        let mut world = live(seed);
        // Behind a command that waits without end may stand another.
        for _ in 0..10 {
            world.settle_lists(seed);
            (0..60).for_each(|_| world.pass(seed, 20_000));
        }
        for (index, client) in &world.clients {
            assert!(
                client.expected.is_empty(),
                "seed {seed}: client {index} waits for {:?}, {} to send, {:?}, {:?}",
                client.expected,
                client.to_send.len(),
                world.ordered,
                world.worker.remains()
            );
        }
        for index in std::mem::take(&mut world.clients).into_keys() {
            world.worker.handle_broken(ConnId::client(index), "gone");
        }
        (0..60).for_each(|_| world.pass(seed, 20_000));
        world.worker.handle_broken(world.operator, "gone");
        (0..60).for_each(|_| world.pass(seed, 20_000));
        assert_eq!(world.worker.remains(), [], "seed {seed}");
        assert_eq!(world.shared.ledger.held_bytes(), 0, "seed {seed}");
        let left = world.servers.left();
        let known: BTreeSet<u64> = world.popped.union(&left).copied().collect();
        assert!(world.popped.is_disjoint(&left), "seed {seed}: an element is there twice");
        let lost: Vec<_> = world.servers.pushed.difference(&known).collect();
        assert!(lost.is_empty(), "seed {seed}: elements {lost:?} are lost");
        total.add(&world.seen);
    }
    if std::env::var("RESPOOL_WORLD_SEED").is_ok() {
        // One world has not room for everything.
        return println!("{total:?}");
    }
    assert!(total.executed > 50 && total.touched > 5 && total.served > 20 && total.orders > 20, "{total:?}");
    assert!(total.asked_again > 5 && total.arrived > 2_000, "{total:?}");
    assert!(total.large > 20 && total.amid > 5 && total.forbidden > 20, "{total:?}");
}

impl World {
    /// Time passes in which the settings stay as they are.
    fn pass(&mut self, seed: u64, us: u64) {
        self.now_us += us;
        self.turn(seed, true);
    }

    /// Those who wait in the end wait at the right place: each is given an element there.
    fn settle_lists(&mut self, seed: u64) {
        for index in self.clients.keys().copied().collect::<Vec<_>>() {
            let waits_for = self.clients[&index].waits_for();
            let Some(key) = waits_for else { continue };
            let awaited = self.clients[&index].expected.len();
            let (place, name) = self.epochs[self.epoch()].place(&key);
            // Others may wait for the same list, and have come before.
            for _ in 0..self.clients.len() {
                let token = self.token(&key);
                self.servers.push(place, &name, token);
            }
            self.servers.wake(&mut self.ends);
            (0..5).for_each(|_| self.pass(seed, 1_000));
            let is_served = self.clients[&index].expected.len() < awaited;
            assert!(is_served, "seed {seed}: client {index} waits for {key} at another place");
        }
    }
}

impl Samples {
    fn add(&mut self, other: &Self) {
        self.arrived += other.arrived;
        self.executed += other.executed;
        self.touched += other.touched;
        self.aborted += other.aborted;
        self.served += other.served;
        self.asked_again += other.asked_again;
        self.unblocked += other.unblocked;
        self.refused += other.refused;
        self.orders += other.orders;
        self.large += other.large;
        self.amid += other.amid;
        self.forbidden += other.forbidden;
    }
}
