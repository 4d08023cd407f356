//! Callers of a cluster over the machines of `route`, in a world with faults.
//!
//! What is checked for each seed: a counter that is acknowledged grows by one and never by two, an acknowledged value is read again unless the world
//! says that it may be lost, a transaction is seen whole or not at all, no call outlives its deadline, no error reaches a caller whose slot had no
//! fault, and calls for slots without fault take no longer for the faults of others.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use respool_route::cluster::{
    Address, Attempt, Next, Ports, Redirect, Refresh, RefreshStep, RefreshTerms, Report, Trigger, of_transaction,
    slot_of,
};
use respool_sim::{ConnectionId, Delivery, Fault, Harm, HarmWindows, World, WorldTerms};
use respool_testkit::Rng;
use respool_wire::{ArgsBuf, Value};

const MS: u64 = 1_000;
const SECOND: u64 = 1_000_000;
const DEADLINE: u64 = 5 * SECOND;
/// Some redirects on links of half a millisecond.
const PROMPT: u64 = 50 * MS;
/// After this time without an answer a connection is replaced and the cluster asked.
const SILENCE: u64 = SECOND;

fn request(words: &[&str]) -> ArgsBuf {
    words.iter().map(|word| word.as_bytes()).collect()
}

/// A caller's keys. They share a slot, and no other caller uses them.
#[derive(Debug)]
struct Keys {
    tag: String,
    /// What `x` and `y` may be.
    pair: BTreeSet<Option<u64>>,
    counter: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Increment,
    Write(u64),
    WritePair(u64),
    Read,
    ReadPair,
}

#[derive(Debug)]
struct Call {
    kind: Kind,
    slot: u16,
    began_us: u64,
    attempt: Attempt,
    state: State,
}

#[derive(Clone, Debug)]
enum State {
    /// Goes to where the map says then.
    Wait(u64),
    Sent {
        connection: ConnectionId,
        tag: u64,
        at: Address,
        sent_us: u64,
        is_asking: bool,
    },
}

struct Caller {
    keys: Keys,
    call: Option<Call>,
    next_us: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Failure {
    NotSent,
    MaybeExecuted,
}

#[derive(Default, Debug)]
struct Figures {
    calls: u64,
    failed: u64,
    redirects: u64,
    marked_lost: u64,
    questions: u64,
}

struct Run {
    world: World,
    rng: Rng,
    refresh: Refresh,
    connections: HashMap<Address, ConnectionId>,
    callers: Vec<Caller>,
    questions: HashMap<(ConnectionId, u64), (u64, Address)>,
    tags: u64,
    names: u64,
    windows: HarmWindows,
    figures: Figures,
    seed: u64,
}

impl Run {
    fn new(seed: u64, callers: usize) -> Self {
        let world = World::new(WorldTerms { primaries: 4, ..WorldTerms::default() }, seed);
        let refresh = Refresh::new(RefreshTerms::default(), [world.address(0), world.address(1)]);
        let mut this = Self {
            world,
            rng: Rng::part(seed, 1),
            refresh,
            connections: HashMap::new(),
            callers: Vec::new(),
            questions: HashMap::new(),
            tags: 0,
            names: 0,
            windows: HarmWindows::default(),
            figures: Figures::default(),
            seed,
        };
        for number in 0..callers {
            let keys = this.fresh_keys(number);
            this.callers.push(Caller { keys, call: None, next_us: 0 });
        }
        this
    }

    /// Keys that were not used yet. The callers are dealt to the four shards that there are in the beginning.
    fn fresh_keys(&mut self, number: usize) -> Keys {
        loop {
            self.names += 1;
            let tag = format!("{{k{}}}", self.names);
            if usize::from(slot_of(tag.as_bytes())) / 4_096 == number % 4 {
                return Keys { tag, pair: BTreeSet::from([None]), counter: 0 };
            }
        }
    }

    fn now(&self) -> u64 {
        self.world.now_us()
    }

    fn connection(&mut self, to: &Address) -> ConnectionId {
        if let Some(connection) = self.connections.get(to) {
            return *connection;
        }
        let connection = self.world.connect(to);
        self.connections.insert(to.clone(), connection);
        connection
    }

    fn send(&mut self, to: &Address, requests: Vec<ArgsBuf>) -> (ConnectionId, u64) {
        let connection = self.connection(to);
        self.tags += 1;
        self.world.send(connection, self.tags, requests);
        (connection, self.tags)
    }

    /// Asks the cluster, if it is time. Returns when it will be.
    fn drive_refresh(&mut self) -> u64 {
        loop {
            let chance = self.rng.next_u64();
            match self.refresh.poll(self.now(), chance).step {
                RefreshStep::Wait(until_us) => return until_us,
                RefreshStep::Ask { number, address } => {
                    let form = ["SLOTS", "SHARDS", "NODES"][(self.seed % 3) as usize];
                    let sent = self.send(&address, vec![request(&["CLUSTER", form])]);
                    self.questions.insert(sent, (number, address));
                    self.figures.questions += 1;
                }
            }
        }
    }

    fn begin(&mut self, number: usize) {
        let kind = match self.rng.below(5) {
            0 => Kind::Increment,
            1 => Kind::Write(self.tags),
            2 => Kind::WritePair(self.tags),
            3 => Kind::Read,
            _ => Kind::ReadPair,
        };
        let (slot, began_us) = (slot_of(self.callers[number].keys.tag.as_bytes()), self.now());
        let state = State::Wait(began_us);
        self.callers[number].call = Some(Call { kind, slot, began_us, attempt: Attempt::new(), state });
        self.figures.calls += 1;
    }

    fn requests(&self, number: usize, kind: Kind) -> Vec<ArgsBuf> {
        let tag = &self.callers[number].keys.tag;
        let (x, y, n) = (format!("{tag}x"), format!("{tag}y"), format!("{tag}n"));
        match kind {
            Kind::Increment => vec![request(&["INCR", &n])],
            // Both keys in one request.
            Kind::Write(value) => vec![request(&["MSET", &x, &value.to_string(), &y, &value.to_string()])],
            Kind::WritePair(value) => vec![
                request(&["MULTI"]),
                request(&["SET", &x, &value.to_string()]),
                request(&["SET", &y, &value.to_string()]),
                request(&["EXEC"]),
            ],
            Kind::Read => vec![request(&["GET", &x])],
            Kind::ReadPair => vec![request(&["MGET", &x, &y])],
        }
    }

    /// Sends a call to a member.
    fn send_call(&mut self, number: usize, at: &Address, is_asking: bool) {
        let Some(kind) = self.callers[number].call.as_ref().map(|call| call.kind) else { return };
        let mut requests = self.requests(number, kind);
        if is_asking {
            requests.insert(0, request(&["ASKING"]));
        }
        let (connection, tag) = self.send(at, requests);
        let sent_us = self.now();
        if let Some(call) = &mut self.callers[number].call {
            call.state = State::Sent { connection, tag, at: at.clone(), sent_us, is_asking };
        }
    }

    /// Sends a call to where the map says, or lets it wait.
    fn route(&mut self, number: usize) {
        let Some(slot) = self.callers[number].call.as_ref().map(|call| call.slot) else { return };
        let at = self.refresh.map().and_then(|map| map.shard_of(slot)).map(|shard| shard.primary.address.clone());
        match at {
            Some(at) => self.send_call(number, &at, false),
            None => self.unreachable(number),
        }
    }

    fn unreachable(&mut self, number: usize) {
        let (now_us, chance) = (self.now(), self.rng.next_u64());
        self.refresh.on_trigger(Trigger::Stuck, now_us, chance);
        let Some(call) = &mut self.callers[number].call else { return };
        match call.attempt.on_unreachable(now_us, Some(call.began_us + DEADLINE), chance) {
            Next::Wait(until_us) => call.state = State::Wait(until_us),
            _ => self.fail(number, Failure::NotSent),
        }
    }

    /// What has waited long enough: a pause, a silent node, the deadline. Returns when the next thing will have.
    fn drive_callers(&mut self) -> u64 {
        let mut next_us = u64::MAX;
        for number in 0..self.callers.len() {
            let now_us = self.now();
            let caller = &self.callers[number];
            let Some(call) = &caller.call else {
                if now_us >= caller.next_us && self.refresh.map().is_some() {
                    self.begin(number);
                    self.route(number);
                } else {
                    next_us = next_us.min(caller.next_us.max(now_us + MS));
                }
                continue;
            };
            let deadline_us = call.began_us + DEADLINE;
            let (state, is_read) = (call.state.clone(), matches!(call.kind, Kind::Read | Kind::ReadPair));
            if now_us >= deadline_us {
                let is_sent = matches!(state, State::Sent { .. });
                self.fail(number, if is_sent && !is_read { Failure::MaybeExecuted } else { Failure::NotSent });
                continue;
            }
            match state {
                State::Wait(until_us) if now_us >= until_us => self.route(number),
                State::Wait(until_us) => next_us = next_us.min(until_us),
                State::Sent { connection, at, sent_us, .. } => {
                    if now_us >= sent_us + SILENCE {
                        if self.connections.get(&at) == Some(&connection) {
                            self.connections.remove(&at);
                        }
                        let chance = self.rng.next_u64();
                        self.refresh.on_trigger(Trigger::Stuck, now_us, chance);
                        if is_read {
                            self.unreachable(number);
                        } else {
                            next_us = next_us.min(deadline_us);
                        }
                    } else {
                        next_us = next_us.min(sent_us + SILENCE);
                    }
                }
            }
        }
        next_us
    }

    fn deliver(&mut self, delivery: Delivery) {
        match delivery {
            Delivery::Reply { connection, tag, replies, is_owner, .. } => {
                let replies: Vec<Value> =
                    replies.iter().map(|reply| Value::parse(reply).expect("a node's reply")).collect();
                if let Some((number, address)) = self.questions.remove(&(connection, tag)) {
                    let report = Report::from_slots(&replies[0], &address)
                        .or_else(|_| Report::from_shards(&replies[0], &address, Ports::Plain))
                        .or_else(|_| Report::from_nodes(&replies[0], &address, Ports::Plain));
                    assert!(report.is_ok(), "seed {}: {:?}", self.seed, replies[0]);
                    self.refresh.on_answer(number, report.ok());
                } else if let Some(number) = self.caller_of(connection, Some(tag)).first() {
                    self.on_reply(*number, replies, is_owner);
                }
            }
            Delivery::Refused { connection, tag } => {
                self.forget(connection);
                if let Some((number, _)) = self.questions.remove(&(connection, tag)) {
                    self.refresh.on_answer(number, None);
                }
                for number in self.caller_of(connection, None) {
                    self.unreachable(number);
                }
            }
            Delivery::Ended { connection } => {
                self.forget(connection);
                let questions: Vec<_> = self.questions.keys().filter(|key| key.0 == connection).copied().collect();
                for key in questions {
                    let (number, _) = self.questions.remove(&key).expect("listed");
                    self.refresh.on_answer(number, None);
                }
                for number in self.caller_of(connection, None) {
                    let kind = self.callers[number].call.as_ref().map(|call| call.kind);
                    if matches!(kind, Some(Kind::Read | Kind::ReadPair)) {
                        self.unreachable(number);
                    } else {
                        let (now_us, chance) = (self.now(), self.rng.next_u64());
                        self.refresh.on_trigger(Trigger::Stuck, now_us, chance);
                        self.fail(number, Failure::MaybeExecuted);
                    }
                }
            }
            Delivery::Connected { .. } => unreachable!("none is dialled"),
            Delivery::Lost { slots } => {
                let slots: BTreeSet<u16> = slots.into_iter().collect();
                for number in 0..self.callers.len() {
                    let keys = &self.callers[number].keys;
                    if slots.contains(&slot_of(keys.tag.as_bytes())) {
                        let is_lost = |value: Option<Vec<u8>>| {
                            let value = value.and_then(|text| String::from_utf8_lossy(&text).parse().ok());
                            !keys.pair.contains(&value)
                        };
                        self.figures.marked_lost +=
                            u64::from(is_lost(self.world.value(format!("{}x", keys.tag).as_bytes())));
                        self.retire(number);
                    }
                }
            }
        }
    }

    fn forget(&mut self, connection: ConnectionId) {
        self.connections.retain(|_, known| *known != connection);
    }

    /// Callers whose requests are under way on a connection.
    fn caller_of(&self, of: ConnectionId, wanted: Option<u64>) -> Vec<usize> {
        let is_on = |caller: &Caller| match caller.call.as_ref().map(|call| &call.state) {
            Some(State::Sent { connection, tag, .. }) => {
                *connection == of && wanted.is_none_or(|wanted| wanted == *tag)
            }
            _ => false,
        };
        (0..self.callers.len()).filter(|number| is_on(&self.callers[*number])).collect()
    }

    fn on_reply(&mut self, number: usize, mut replies: Vec<Value>, is_owner: bool) {
        let (now_us, chance) = (self.now(), self.rng.next_u64());
        let Some(call) = &mut self.callers[number].call else { return };
        let State::Sent { at, is_asking, .. } = call.state.clone() else { return };
        if is_asking {
            replies.remove(0);
        }
        let mut errors = replies.iter().map(|reply| match reply {
            Value::Error(error) => Some(&error[..]),
            _ => None,
        });
        let redirect = match call.kind {
            Kind::WritePair(_) => of_transaction(errors, &at),
            _ => errors.next_back().flatten().and_then(|error| Redirect::parse(error, &at)),
        };
        let Some(redirect) = redirect else { return self.succeed(number, &replies, is_owner) };
        self.figures.redirects += 1;
        if let Redirect::Moved { slot, to } = &redirect {
            self.refresh.on_moved(*slot, to, now_us, chance);
        } else if redirect.is_news() {
            self.refresh.on_trigger(Trigger::Stuck, now_us, chance);
        }
        match call.attempt.on_redirect(&redirect, now_us, Some(call.began_us + DEADLINE), chance) {
            Next::Send { to, is_asking } => self.send_call(number, &to, is_asking),
            Next::Wait(until_us) => call.state = State::Wait(until_us),
            Next::GiveUp => self.fail(number, Failure::NotSent),
        }
    }

    fn succeed(&mut self, number: usize, replies: &[Value], is_owner: bool) {
        let call = self.callers[number].call.take().expect("a call that was answered");
        self.check_time(&call);
        self.callers[number].next_us = self.now() + 1 + self.rng.below(20_000) as u64;
        let keys = &mut self.callers[number].keys;
        let context = format!("seed {}: {call:?} {keys:?} {replies:?}", self.seed);
        let value = |reply: &Value| match reply {
            Value::Bulk(text) => Some(String::from_utf8_lossy(text).parse::<u64>().expect("a number")),
            Value::Null => None,
            _ => panic!("{context}"),
        };
        match call.kind {
            Kind::Increment => {
                let Value::Integer(count) = replies[0] else { panic!("{context}") };
                if is_owner {
                    assert_eq!(count as u64, keys.counter + 1, "{context}");
                    keys.counter += 1;
                }
            }
            Kind::Write(written) | Kind::WritePair(written) => {
                let is_done = |reply: &Value| *reply == Value::Simple(b"OK".to_vec());
                assert!(
                    match replies.last() {
                        Some(Value::Array(results)) => results.len() == 2 && results.iter().all(is_done),
                        Some(reply) => is_done(reply),
                        None => false,
                    },
                    "{context}"
                );
                if is_owner {
                    keys.pair = BTreeSet::from([Some(written)]);
                }
            }
            Kind::Read if is_owner => assert!(keys.pair.contains(&value(&replies[0])), "{context}"),
            Kind::ReadPair if is_owner => {
                let Value::Array(pair) = &replies[0] else { panic!("{context}") };
                assert!(keys.pair.contains(&value(&pair[0])), "{context}");
                assert_eq!(pair[0], pair[1], "{context}");
            }
            Kind::Read | Kind::ReadPair => {}
        }
        if !is_owner && !matches!(call.kind, Kind::Read | Kind::ReadPair) {
            self.figures.marked_lost += 1;
            self.retire(number);
        }
    }

    /// The keys are not used again: what they are is not known.
    fn retire(&mut self, number: usize) {
        let keys = self.fresh_keys(number);
        self.callers[number].keys = keys;
        // A call under way is for the former keys: how it ends says nothing.
        if let Some(call) = self.callers[number].call.take() {
            self.check_time(&call);
            self.callers[number].next_us = self.now() + MS;
        }
    }

    fn fail(&mut self, number: usize, failure: Failure) {
        let call = self.callers[number].call.take().expect("a call that has failed");
        self.figures.failed += 1;
        let now_us = self.now();
        let may_fail = self.windows.had(&[Harm::Fails], &[call.slot], call.began_us, now_us);
        assert!(may_fail, "seed {}: {failure:?} without a fault: {call:?} at {now_us}", self.seed);
        self.callers[number].next_us = now_us + MS;
        if failure == Failure::MaybeExecuted {
            self.retire(number);
        }
    }

    fn check_time(&self, call: &Call) {
        let now_us = self.now();
        let took_us = now_us - call.began_us;
        assert!(took_us <= DEADLINE + MS, "seed {}: a call outlived its deadline: {call:?} at {now_us}", self.seed);
        let is_of_several = matches!(call.kind, Kind::Write(_) | Kind::WritePair(_) | Kind::ReadPair);
        let harms = [Harm::Fails, Harm::Delays, Harm::DelaysSeveral];
        let harms = if is_of_several { &harms[..] } else { &harms[..2] };
        let had_fault = self.windows.had(harms, &[call.slot], call.began_us, now_us);
        assert!(had_fault || took_us <= PROMPT, "seed {}: {took_us} us without a fault: {call:?}", self.seed);
    }

    fn inject(&mut self, fault: Fault) {
        let slots_of = |node| (0..16_384).filter(|slot| self.world.is_at(*slot, node)).collect::<BTreeSet<u16>>();
        self.windows.note(self.world.now_us(), fault, slots_of);
        self.world.inject(fault);
    }

    /// Runs for so long, with the faults at their times.
    fn run(&mut self, for_us: u64, faults: &[(u64, Fault)]) {
        let end_us = self.now() + for_us;
        let mut faults: BTreeMap<(u64, usize), Fault> =
            faults.iter().enumerate().map(|(number, (at_us, fault))| ((self.now() + at_us, number), *fault)).collect();
        while self.now() < end_us {
            while let Some(due) = faults.first_entry().filter(|due| due.key().0 <= self.now()) {
                let fault = due.remove();
                self.inject(fault);
            }
            let next_us = self.drive_callers().min(self.drive_refresh());
            let fault_us = faults.first_key_value().map_or(u64::MAX, |(at, _)| at.0);
            let until_us = next_us.min(fault_us).min(end_us).max(self.now() + 1);
            if let Some(delivery) = self.world.poll(until_us) {
                self.deliver(delivery);
            }
        }
    }
}

/// `RESPOOL_WORLD_SEED` repeats one seed, `RESPOOL_WORLD_SEEDS` runs more.
fn seeds() -> std::ops::Range<u64> {
    let number = |name| std::env::var(name).ok().and_then(|text: String| text.parse::<u64>().ok());
    match number("RESPOOL_WORLD_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("RESPOOL_WORLD_SEEDS").unwrap_or(3),
    }
}

#[test]
fn a_thousand_slots_move_under_load_without_an_error() {
    for seed in seeds() {
        let mut run = Run::new(seed, 16);
        let slots =
            (0..1_000).map(|step| (step * 10 * MS, Fault::Migrate((step * 16) as u16 + 3, (step % 4) as usize)));
        // The slots that are in use move as well, which few of the others are.
        let used = (0..16).map(|step| {
            let slot = slot_of(run.callers[step as usize].keys.tag.as_bytes());
            (step * 500 * MS, Fault::Migrate(slot, (run.world.owner(slot) + 1) % 4))
        });
        let faults: Vec<_> = slots.chain(used).collect();
        run.run(12 * SECOND, &faults);
        assert_eq!(run.figures.failed, 0, "seed {seed}");
        assert!(run.figures.redirects > 0 && run.figures.calls > 5_000, "seed {seed}: {:?}", run.figures);
    }
}

#[test]
fn a_dead_primary_slows_no_other_shard_and_is_replaced() {
    for seed in seeds() {
        let mut run = Run::new(seed, 16);
        let node = (seed % 4) as usize;
        run.run(12 * SECOND, &[(2 * SECOND, Fault::Crash(node, 60 * SECOND))]);
        let at_end = run.figures.failed;
        run.run(2 * SECOND, &[]);
        assert_eq!(run.figures.failed, at_end, "seed {seed}: its slots are served again");
        let map = run.refresh.map().expect("a map").clone();
        let primaries: Vec<_> = map.shards().iter().map(|shard| &shard.primary.address).collect();
        assert!(
            !primaries.contains(&&run.world.address(node)),
            "seed {seed}: {node} of {primaries:?} {:?}",
            run.figures
        );
        assert!(run.figures.questions < 60, "seed {seed}: {:?}", run.figures);
    }
}

#[test]
fn what_may_have_been_executed_is_not_sent_again() {
    for seed in seeds() {
        let mut run = Run::new(seed, 16);
        let faults: Vec<_> = (1..40).map(|turn| (turn * 250 * MS, Fault::Disconnect((turn % 4) as usize))).collect();
        run.run(12 * SECOND, &faults);
        assert!(run.figures.failed > 0, "seed {seed}: no connection ended within a call");
    }
}

#[test]
fn whatever_happens_every_call_ends_with_the_truth() {
    let mut lost = 0;
    for seed in seeds() {
        let mut run = Run::new(seed, 16);
        let mut rng = Rng::part(seed, 2);
        let faults: Vec<(u64, Fault)> = (1..20)
            .map(|turn| {
                let node = rng.below(8);
                let for_us = rng.between(100_000, 6_000_000) as u64;
                let fault = match rng.below(10) {
                    0 => Fault::Crash(node, for_us),
                    1 => Fault::Unreachable(node, for_us),
                    2 => Fault::Isolated(node, for_us),
                    3 => Fault::HalfOpen(node),
                    4 => Fault::Slow(node, rng.between(1_000, 300_000) as u64, for_us),
                    5 => Fault::Stale(node, for_us),
                    6 => Fault::RestartEmpty(node % 4),
                    7 | 8 => Fault::Disconnect(node),
                    _ => Fault::Migrate(slot_of(run.callers[rng.below(16)].keys.tag.as_bytes()), node),
                };
                (turn * 2 * SECOND, fault)
            })
            .collect();
        run.run(60 * SECOND, &faults);
        let failed = run.figures.failed;
        // All faults are over: there is no reason for an error any more.
        run.run(5 * SECOND, &[]);
        assert_eq!(run.figures.failed, failed, "seed {seed}: {:?}", run.figures);
        lost += run.figures.marked_lost;
    }
    // With enough seeds some acknowledged writes are lost, or the world is too kind.
    assert!(lost > 0 || seeds().count() < 3);
}
