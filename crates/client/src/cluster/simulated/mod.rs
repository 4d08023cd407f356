//! The whole cluster client, from the plan of a call to the join of its replies, in a simulated world with faults.
//!
//! What is checked for each seed: every reply belongs to its request, values carry who has written them and when; what is told of a call is true
//! (a log names all calls that were executed, and each that was written is known); requests of one slot keep their order; no acknowledged write is lost unless the world says so; an error reaches a caller only if its slot
//! had a fault, and one that was not sent only if its time was over; calls for slots without fault take no longer for the faults of others; every
//! call ends by its deadline, and nothing of it is left.
//!
//! Calls of one request go directly to their node, or by units, as they come.
//!
//! `RESPOOL_WORLD_SEED` repeats one seed, `RESPOOL_WORLD_SEEDS` runs others: so many, or `FIRST..END`. Each test prints how many requests it has
//! written.

mod callers;
mod flushes;
mod links;
mod stalls;

use super::direct::Place;
use super::environment::Exchange;
use super::keeper::report_of;
use super::{Cluster, Reads, Routed};
use crate::core::Ended;
use crate::limits::{CLUSTER_SILENCE, REPEATS_MAX};
use crate::parts::Kind;
use crate::{Command, Config, Error, Outcome, Reply, cmd};
use callers::{Deed, Fate, Keys, Ledger};
use links::{KERNEL_LIMIT, Links, Simulation};
use respool_route::cluster::{Address, RefreshTerms, slot_of};
use respool_sim::{Fault, Harm, HarmTerms, HarmWindows, World, WorldTerms};
use respool_testkit::Rng;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Display, Formatter};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

const MS: u64 = 1_000;
const SECOND: u64 = 1_000_000;
const DEADLINE: u64 = 5 * SECOND;
/// Some redirects on links of half a millisecond.
const PROMPT: u64 = 50 * MS;
/// The longest pause of a call, by which it may end before its deadline.
const PAUSE: u64 = 500 * MS;
const PRIMARIES: usize = 4;
const CALLERS: usize = 8;
/// Half of the time with any faults.
const HALF: u64 = 20 * SECOND;

/// Whether something was woken.
#[derive(Debug)]
struct Flag(AtomicBool);

impl Flag {
    fn new() -> Arc<Self> {
        Arc::new(Self(AtomicBool::new(true)))
    }

    fn take(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }
}

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// How the requests of a call hang together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// Each for itself.
    Each,
    /// A transaction.
    Whole,
    /// One request for keys of both hash tags.
    Split,
}

/// By which of the client's ways a call goes.
enum Way {
    /// At one node, as long as nothing special happens. It is sent again and redirected by the other way.
    Direct(Place, Command, Simulation),
    Routed(Routed),
    /// Between the two.
    Turning,
}

impl Way {
    fn poll(&mut self, cluster: &Arc<Cluster>, until_us: u64, cx: &mut Context<'_>) -> Poll<Result<Vec<Ended>, Error>> {
        if let Self::Direct(_, _, exchange) = self {
            let result = std::task::ready!(exchange.poll(cx));
            if result.is_ok() && exchange.is_plain() {
                return Poll::Ready(Ok(exchange.take_ended()));
            }
            if let Self::Direct(place, command, exchange) = std::mem::replace(self, Self::Turning) {
                let routed = place.resume(cluster, &command, Some(until_us), Box::new(exchange), result);
                *self = Self::Routed(routed);
            }
        }
        let Self::Routed(routed) = self else { unreachable!("a call goes one way or the other") };
        routed.poll(cx)
    }
}

struct Call {
    what: What,
    /// What is done to which of its caller's keys.
    deeds: Vec<(usize, Deed)>,
    slots: Vec<u16>,
    way: Way,
    woken: Arc<Flag>,
    began_us: u64,
    /// How often requests for its first key had gone unanswered before.
    unanswered: u64,
    /// When its caller leaves, if it does.
    leaves_us: u64,
}

struct Caller {
    keys: [Keys; 2],
    call: Option<Call>,
    next_us: u64,
}

/// A node is asked what the cluster looks like.
struct Question {
    number: u64,
    asked: Address,
    exchange: Box<dyn Exchange>,
    woken: Arc<Flag>,
}

#[derive(Default, Debug)]
struct Figures {
    calls: u64,
    failed: u64,
    left: u64,
    direct: u64,
    questions: u64,
    /// What was written to connections, what was sent again included.
    requests: u64,
}

impl Figures {
    fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.failed += other.failed;
        self.left += other.left;
        self.direct += other.direct;
        self.questions += other.questions;
        self.requests += other.requests;
    }
}

/// What a test has done with all its seeds.
struct Total {
    test: &'static str,
    seeds: Range<u64>,
    figures: Figures,
}

impl Total {
    fn new(test: &'static str) -> Self {
        Self { test, seeds: seeds(), figures: Figures::default() }
    }

    /// A test may demand of many seeds what one may lack.
    fn is_of_many(&self) -> bool {
        self.seeds.end - self.seeds.start >= SEEDS
    }
}

impl Drop for Total {
    fn drop(&mut self) {
        println!("{}: seeds {:?}: {:?}", self.test, self.seeds, self.figures);
    }
}

/// A client of a world, and its callers.
struct Run {
    links: Links,
    cluster: Arc<Cluster>,
    reads: Reads,
    rng: Rng,
    callers: Vec<Caller>,
    questions: Vec<Question>,
    names: u64,
    numbers: u64,
    windows: HarmWindows,
    ledger: Ledger,
    figures: Figures,
    seed: u64,
}

/// What a complaint names.
struct About<'a> {
    seed: u64,
    now_us: u64,
    began_us: u64,
    what: What,
    deeds: &'a [(usize, Deed)],
    ended: &'a Result<Vec<Ended>, Error>,
}

impl Display for About<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let Self { seed, now_us, began_us, what, deeds, ended } = self;
        write!(f, "seed {seed}: {what:?} from {began_us} us to {now_us} us: {deeds:?}: {ended:?}")
    }
}

impl Run {
    fn new(seed: u64, reads: Reads) -> Self {
        Self::within(WorldTerms::default(), seed, reads)
    }

    fn within(terms: WorldTerms, seed: u64, reads: Reads) -> Self {
        let world = World::new(WorldTerms { primaries: PRIMARIES, ..terms }, seed);
        let seeds = vec![world.address(0), world.address(1)];
        let mut config = Config::from_url("redis+cluster://seed:1").expect("an address").reads(reads);
        config.cluster = seeds;
        let links = Links::new(world, seed);
        let cluster = Cluster::within(Box::new(links.environment()), config);
        let mut this = Self {
            links,
            cluster,
            reads,
            rng: Rng::part(seed, 1),
            callers: Vec::new(),
            questions: Vec::new(),
            names: 0,
            numbers: 0,
            windows: HarmWindows::new(HarmTerms { half_open_us: KERNEL_LIMIT, ..HarmTerms::default() }),
            ledger: Ledger::default(),
            figures: Figures::default(),
            seed,
        };
        for number in 0..CALLERS {
            let keys = [this.fresh_keys(number), this.fresh_keys(number + 1)];
            this.callers.push(Caller { keys, call: None, next_us: 0 });
        }
        this
    }

    /// Keys that were not used yet, of one of the shards that there are in the beginning.
    fn fresh_keys(&mut self, shard: usize) -> Keys {
        loop {
            self.names += 1;
            let tag = format!("{{k{}}}", self.names);
            if usize::from(slot_of(tag.as_bytes())) * PRIMARIES / 16_384 == shard % PRIMARIES {
                return Keys::new(tag);
            }
        }
    }

    fn now(&self) -> u64 {
        self.links.world.now_us()
    }

    fn begin(&mut self, number: usize) {
        for at in 0..2 {
            if self.callers[number].keys[at].is_spoilt {
                self.callers[number].keys[at] = self.fresh_keys(number + at);
            }
        }
        self.numbers += 1;
        let (id, first) = (self.numbers, self.rng.below(2));
        let keys = &self.callers[number].keys;
        let value = |at: usize| Deed::WriteBoth(format!("{}:{id}", keys[at].tag));
        let mut deed = |at: usize, place: u64| match self.rng.below(6) {
            0 | 1 => Deed::Append(id * 10 + place),
            2 => Deed::Count,
            3 => Deed::WriteBoth(format!("{}:{id}:{place}", keys[at].tag)),
            4 => Deed::Read(id * 10 + place),
            _ => Deed::ReadBoth,
        };
        let pairs = |at: usize| ["x", "y"].map(|name| (keys[at].key(name), format!("{}:{id}", keys[at].tag)));
        let (what, deeds, commands): (What, Vec<(usize, Deed)>, Vec<Command>) = match id % 8 {
            0 => {
                let set = pairs(first).map(|(key, value)| cmd("SET").key(key).arg(value));
                let commands = std::iter::once(cmd("MULTI")).chain(set).chain([cmd("EXEC")]).collect();
                (What::Whole, vec![(first, value(first))], commands)
            }
            1 => {
                let commands = vec![cmd("MGET").key([keys[0].key("x"), keys[1].key("x")])];
                (What::Split, vec![(0, Deed::Read(0)), (1, Deed::Read(0))], commands)
            }
            2 => {
                let commands = vec![cmd("MSET").arg([pairs(0), pairs(1)].concat())];
                (What::Split, vec![(0, value(0)), (1, value(1))], commands)
            }
            3 => {
                let deeds: Vec<_> = (0..2 + id % 5).map(|place| ((first + place as usize) % 2, place)).collect();
                let deeds: Vec<_> = deeds.into_iter().map(|(at, place)| (at, deed(at, place))).collect();
                let commands = deeds.iter().map(|(at, deed)| deed.command(&keys[*at])).collect();
                (What::Each, deeds, commands)
            }
            _ => {
                let deed = deed(first, 0);
                let commands = vec![deed.command(&keys[first])];
                (What::Each, vec![(first, deed)], commands)
            }
        };
        let slots = deeds.iter().map(|(at, _)| slot_of(keys[*at].tag.as_bytes())).collect();
        let kind = if what == What::Whole { Kind::Whole } else { Kind::Each };
        let place = Place::of(&self.cluster, kind, &commands).filter(|_| id % 3 != 0);
        let way = match place {
            Some(place) => {
                let environment = self.links.environment();
                let exchange = environment.begin(&place.node, place.is_replica, &commands, CLUSTER_SILENCE);
                self.figures.direct += 1;
                Way::Direct(place, commands[0].clone(), exchange)
            }
            None => Way::Routed(Routed::new(&self.cluster, &commands, kind, Some(Duration::from_micros(DEADLINE)))),
        };
        let began_us = self.now();
        let unanswered = self.links.unanswered(&self.callers[number].keys[deeds[0].0].tag);
        let leaves_us = if id % 40 == 7 { began_us + self.rng.below(3_000) as u64 } else { u64::MAX };
        let call = Call { what, deeds, slots, way, woken: Flag::new(), began_us, unanswered, leaves_us };
        self.callers[number].call = Some(call);
        self.figures.calls += 1;
    }

    /// Calls that were woken, begin or leave. Returns when the next one does.
    fn drive_callers(&mut self, may_begin: bool) -> u64 {
        let mut next_us = u64::MAX;
        for number in 0..self.callers.len() {
            let now_us = self.now();
            let caller = &mut self.callers[number];
            if caller.call.is_none() {
                if !may_begin || now_us < caller.next_us {
                    next_us = next_us.min(if may_begin { caller.next_us } else { u64::MAX });
                    continue;
                }
                self.begin(number);
            }
            let caller = &mut self.callers[number];
            let Some(call) = &mut caller.call else { continue };
            assert!(
                now_us <= call.began_us + DEADLINE + MS,
                "seed {}: a call does not end: {:?}",
                self.seed,
                call.deeds
            );
            if call.woken.take() {
                let waker = Waker::from(Arc::clone(&call.woken));
                if let Poll::Ready(result) =
                    call.way.poll(&self.cluster, call.began_us + DEADLINE, &mut Context::from_waker(&waker))
                {
                    self.finish(number, result);
                    next_us = now_us;
                    continue;
                }
            }
            if now_us >= call.leaves_us {
                self.leave(number);
                next_us = now_us;
                continue;
            }
            next_us = next_us.min(call.leaves_us).min(call.began_us + DEADLINE + MS + 1);
        }
        next_us
    }

    fn leave(&mut self, number: usize) {
        let Some(call) = self.callers[number].call.take() else { return };
        self.figures.left += 1;
        let left = Err(Error::new(crate::ErrorKind::Timeout(None), Outcome::MaybeExecuted));
        self.take(number, &call, &left);
    }

    /// What each deed has come to.
    fn ended(call: &Call, result: &Result<Vec<Ended>, Error>) -> Vec<Ended> {
        let ended = match result {
            Err(error) => return vec![Ended::Failed(error.kind().clone(), error.outcome()); call.deeds.len()],
            Ok(ended) => ended,
        };
        let elements = |reply: &Reply| match reply {
            Reply::Array(elements) => Some(elements.clone().collect::<Vec<Reply>>()),
            _ => None,
        };
        let is_write = call.deeds[0].1.writes();
        match (call.what, ended.last()) {
            (What::Whole, Some(Ended::Reply(reply))) => {
                let done = || elements(reply).filter(|done| done.len() == 2);
                vec![Ended::Reply(done().map_or_else(|| reply.clone(), |mut done| done.swap_remove(0)))]
            }
            (What::Split, Some(Ended::Reply(reply))) if !is_write && elements(reply).is_some() => {
                elements(reply).into_iter().flatten().map(Ended::Reply).collect()
            }
            (What::Split, Some(Ended::Reply(Reply::Error(_)))) if is_write => {
                // It tells of one part, and not of the other.
                vec![Ended::Failed(crate::ErrorKind::Timeout(None), Outcome::MaybeExecuted); 2]
            }
            (What::Split | What::Whole, Some(other)) => vec![other.clone(); call.deeds.len()],
            (What::Each, _) => ended.clone(),
            (_, None) => Vec::new(),
        }
    }

    /// Writes down what a call has come to. Returns the worst of it.
    fn take(&mut self, number: usize, call: &Call, result: &Result<Vec<Ended>, Error>) -> Vec<Fate> {
        let ended = Self::ended(call, result);
        let about = About {
            seed: self.seed,
            now_us: self.now(),
            began_us: call.began_us,
            what: call.what,
            deeds: &call.deeds,
            ended: result,
        };
        assert_eq!(ended.len(), call.deeds.len(), "{about}");
        let mut fates = Vec::new();
        for ((at, deed), ended) in call.deeds.iter().zip(&ended) {
            let keys = &mut self.callers[number].keys[*at];
            let is_foreign = self.links.foreign.contains(&(keys.tag.clone(), !deed.writes()));
            fates.push(self.ledger.take(keys, deed, ended, is_foreign, &about));
        }
        for keys in &self.callers[number].keys {
            self.links.foreign.remove(&(keys.tag.clone(), true));
            self.links.foreign.remove(&(keys.tag.clone(), false));
        }
        fates
    }

    /// What was told not to be sent was on no connection, but for those on which it was refused. Requests of one slot that change something were executed
    /// in their order, whatever was sent again.
    fn check_sent(&self, number: usize, call: &Call, result: &Result<Vec<Ended>, Error>) {
        let ended = Self::ended(call, result);
        let keys = &self.callers[number].keys;
        let is_told = |deed: &Deed| match call.what {
            What::Each => deed.is_unique(),
            What::Split => matches!(deed, Deed::WriteBoth(_)),
            What::Whole => false,
        };
        let mut last: BTreeMap<usize, u64> = BTreeMap::new();
        for ((at, deed), ended) in call.deeds.iter().zip(&ended).filter(|((_, deed), _)| is_told(deed)) {
            let trace = self.links.trace(&deed.command(&keys[*at]));
            let about = || format!("seed {}: {deed:?} of {:?}: {trace:?}: {result:?}", self.seed, call.deeds);
            match ended {
                Ended::Failed(_, Outcome::NotSent) => assert_eq!(trace.sent, 0, "told not to be sent: {}", about()),
                Ended::Reply(reply) if !matches!(reply, Reply::Error(_)) => {
                    assert!(trace.executed.is_some(), "answered and not executed: {}", about());
                    if deed.writes() {
                        let before = last.insert(*at, trace.executed.unwrap_or_default());
                        assert!(before < trace.executed, "overtaken by what follows it: {}", about());
                    }
                }
                _ => {}
            }
        }
    }

    fn finish(&mut self, number: usize, result: Result<Vec<Ended>, Error>) {
        let call = self.callers[number].call.take().expect("a call that has ended");
        self.check_sent(number, &call, &result);
        let fates = self.take(number, &call, &result);
        let now_us = self.now();
        let took_us = now_us - call.began_us;
        let is_several =
            call.deeds.len() > 1 || !matches!(call.deeds[0].1, Deed::Count | Deed::Append(_) | Deed::Read(_));
        let had = |harms: &[Harm]| self.windows.had(harms, &call.slots, call.began_us, now_us);
        let about = || format!("seed {}: {took_us} us at {now_us}: {:?}: {result:?}", self.seed, call.deeds);
        let may_be_late = had(&[Harm::Fails, Harm::Delays]) || is_several && had(&[Harm::DelaysSeveral]);
        assert!(may_be_late || took_us <= PROMPT, "late without a fault: {}", about());
        self.callers[number].next_us = now_us + 1 + self.rng.below(20_000) as u64;
        if fates.iter().all(|fate| *fate == Fate::Once) {
            return;
        }
        self.figures.failed += 1;
        let is_batch = call.what == What::Each && call.deeds.len() > 1;
        assert!(had(&[Harm::Fails]) || is_batch && had(&[Harm::DelaysSeveral]), "failed without a fault: {}", about());
        // What would have been mended by waiting is waited for.
        let is_over = took_us + PAUSE + MS >= DEADLINE;
        let is_alone = call.deeds.len() == 1;
        assert!(!is_alone || fates[0] != Fate::Never || is_over, "given up too soon: {}", about());
        // A read is asked again where it was lost with its connection, and elsewhere where its node was silent.
        let tag = &self.callers[number].keys[call.deeds[0].0].tag;
        let was_repeated = self.links.unanswered(tag) - call.unanswered > u64::from(REPEATS_MAX);
        assert!(!is_alone || call.deeds[0].1.writes() || is_over || was_repeated, "not asked again: {}", about());
    }

    /// What the keeper and its questions have to do. Returns when they have again.
    fn drive_keeper(&mut self) -> u64 {
        loop {
            let now_us = self.now();
            let turn = {
                let mut state = self.cluster.lock();
                self.cluster.turn(&mut state, now_us)
            };
            turn.news.tell(self.cluster.shared());
            let Some((number, asked)) = turn.question else { return turn.until_us };
            let node = self.cluster.node_at(&asked);
            let limit = Duration::from_micros(RefreshTerms::default().answer_limit_us);
            let exchange = self.cluster.environment.exchange(&node, false, vec![cmd("CLUSTER SLOTS")], limit);
            self.questions.push(Question { number, asked, exchange, woken: Flag::new() });
            self.figures.questions += 1;
        }
    }

    fn drive_questions(&mut self) -> bool {
        let mut is_any = false;
        let mut at = 0;
        while let Some(question) = self.questions.get_mut(at) {
            let waker = Waker::from(Arc::clone(&question.woken));
            if !question.woken.take() {
                at += 1;
                continue;
            }
            is_any = true;
            let Poll::Ready(result) = question.exchange.poll(&mut Context::from_waker(&waker)) else { continue };
            let mut question = self.questions.swap_remove(at);
            let ended = result.ok().and_then(|()| question.exchange.take_ended().pop());
            self.cluster.take_report(question.number, ended.and_then(|ended| report_of(ended, &question.asked)));
        }
        is_any
    }

    fn note_lost(&mut self) {
        let slots: BTreeSet<u16> = std::mem::take(&mut self.links.lost).into_iter().collect();
        if slots.is_empty() {
            return;
        }
        for caller in &mut self.callers {
            for keys in caller.keys.iter_mut().filter(|keys| slots.contains(&slot_of(keys.tag.as_bytes()))) {
                self.ledger.note_lost(keys);
            }
        }
        self.ledger.note_lost_slots(&slots);
    }

    fn inject(&mut self, fault: Fault) {
        let now_us = self.now();
        // What a replica answers is late or lost with it.
        let slots_of = |node: usize| {
            let world = &self.links.world;
            // One whose slots have been taken over meanwhile will be the replica of that one.
            let partner = if self.reads == Reads::Primary { node } else { (node + PRIMARIES) % (2 * PRIMARIES) };
            let is_hit = |slot: &u16| world.is_at(*slot, node) || world.is_at(*slot, partner);
            (0..16_384).filter(is_hit).collect::<BTreeSet<u16>>()
        };
        self.windows.note(now_us, fault, slots_of);
        self.links.inject(fault);
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
            let fault_us = faults.first_key_value().map_or(u64::MAX, |(at, _)| at.0);
            self.step(end_us.min(fault_us), true);
        }
    }

    fn step(&mut self, until_us: u64, may_begin: bool) {
        self.step_beside(None, until_us, may_begin);
    }

    /// As [`Self::step`], while another call is under way.
    fn step_beside(&mut self, other: Option<&Flag>, until_us: u64, may_begin: bool) {
        let mut next_us = self.drive_callers(may_begin).min(self.drive_keeper());
        if self.drive_questions() {
            next_us = self.now();
        }
        next_us = next_us.min(self.links.drive());
        let is_woken = self
            .callers
            .iter()
            .filter_map(|caller| caller.call.as_ref())
            .map(|call| &*call.woken)
            .chain(other)
            .any(|woken| woken.0.load(Ordering::Relaxed))
            || self.questions.iter().any(|question| question.woken.0.load(Ordering::Relaxed));
        if is_woken || next_us <= self.now() {
            return;
        }
        self.links.pass(next_us.min(until_us));
        self.note_lost();
    }

    /// All calls end, and what was told of them is compared with what has happened.
    fn end(mut self) -> (Ledger, Figures) {
        let limit_us = self.now() + DEADLINE + SECOND;
        while self.callers.iter().any(|caller| caller.call.is_some()) {
            assert!(self.now() < limit_us, "seed {}: calls do not end", self.seed);
            self.step(limit_us, false);
        }
        // What is on its way arrives, and what has failed is mended.
        let limit_us = self.now() + 20 * SECOND;
        while self.now() < limit_us {
            self.step(limit_us, false);
        }
        self.questions.clear();
        assert_eq!(self.links.under_way(), 0, "seed {}", self.seed);
        assert!(self.cluster.lock().pauses.is_empty(), "seed {}", self.seed);
        for tag in self.ledger.tags() {
            let log = self.links.world.value(format!("{tag}log").as_bytes()).unwrap_or_default();
            self.ledger.check(&tag, &String::from_utf8_lossy(&log), &self.seed);
        }
        self.figures.requests = self.links.written();
        (self.ledger, self.figures)
    }
}

/// Seeds of a test, unless the environment says otherwise.
const SEEDS: u64 = 10;

fn seeds() -> Range<u64> {
    let text = |name| std::env::var(name).ok();
    let number = |text: &str| text.parse::<u64>().expect("a seed is a number");
    if let Some(seed) = text("RESPOOL_WORLD_SEED") {
        return number(&seed)..number(&seed) + 1;
    }
    match text("RESPOOL_WORLD_SEEDS") {
        None => 0..SEEDS,
        Some(seeds) => match seeds.split_once("..") {
            Some((first, end)) => number(first)..number(end),
            None => 0..number(&seeds),
        },
    }
}

fn any_faults(run: &Run, rng: &mut Rng) -> Vec<(u64, Fault)> {
    (0..20)
        .map(|turn| {
            let node = rng.below(2 * PRIMARIES);
            let for_us = rng.between(100_000, 6_000_000) as u64;
            let fault = match rng.below(10) {
                0 => Fault::Crash(node, for_us),
                1 => Fault::Unreachable(node, for_us),
                2 => Fault::Isolated(node, for_us),
                3 => Fault::HalfOpen(node),
                4 => Fault::Slow(node, rng.between(1_000, 300_000) as u64, for_us),
                5 => Fault::Stale(node, for_us),
                6 => Fault::RestartEmpty(node % PRIMARIES),
                7 | 8 => Fault::Disconnect(node),
                _ => {
                    let caller = &run.callers[rng.below(run.callers.len())];
                    Fault::Migrate(slot_of(caller.keys[rng.below(2)].tag.as_bytes()), node)
                }
            };
            (turn * 2 * SECOND + SECOND, fault)
        })
        .collect()
}

#[test]
fn a_client_of_a_quiet_cluster_has_no_errors() {
    let mut total = Total::new("a_client_of_a_quiet_cluster_has_no_errors");
    for seed in total.seeds.clone() {
        let mut run = Run::new(seed, Reads::Primary);
        run.run(5 * SECOND, &[]);
        let (ledger, figures) = run.end();
        assert_eq!((figures.failed, ledger.unknown > 0), (0, figures.left > 0), "seed {seed}: {figures:?}");
        assert!(figures.calls > 2_000 && figures.direct > 500, "seed {seed}: {figures:?}");
        total.figures.add(&figures);
    }
}

#[test]
fn a_client_follows_a_thousand_slots_under_load() {
    let mut total = Total::new("a_client_follows_a_thousand_slots_under_load");
    for seed in total.seeds.clone() {
        let mut run = Run::new(seed, Reads::Primary);
        let slots =
            (0..1_000).map(|step| (step * 10 * MS, Fault::Migrate((step * 16) as u16 + 3, (step % 4) as usize)));
        // The slots that are in use move as well, which few of the others are.
        let used = (0..2 * CALLERS as u64).map(|step| {
            let slot = slot_of(run.callers[step as usize / 2].keys[step as usize % 2].tag.as_bytes());
            (step * 600 * MS, Fault::Migrate(slot, (run.links.world.owner(slot) + 1) % PRIMARIES))
        });
        let faults: Vec<_> = slots.chain(used).collect();
        run.run(12 * SECOND, &faults);
        let (_, figures) = run.end();
        assert!(figures.calls > 5_000, "seed {seed}: {figures:?}");
        total.figures.add(&figures);
    }
}

#[test]
fn a_batch_keeps_the_order_of_a_slot_that_is_on_its_way() {
    let mut total = Total::new("a_batch_keeps_the_order_of_a_slot_that_is_on_its_way");
    for seed in total.seeds.clone() {
        // Most calls find some keys of their slot here and others there.
        let terms = WorldTerms { key_us: 60 * MS, hold_us: 5 * MS, ..WorldTerms::default() };
        let mut run = Run::within(terms, seed, Reads::Primary);
        let used = (0..150).map(|step| {
            let of = step % (2 * CALLERS);
            let slot = slot_of(run.callers[of / 2].keys[of % 2].tag.as_bytes());
            let to = run.links.world.owner(slot) + 1 + step / (2 * CALLERS);
            (step as u64 * 50 * MS, Fault::Migrate(slot, to % PRIMARIES))
        });
        let faults: Vec<_> = used.collect();
        run.run(10 * SECOND, &faults);
        let (_, figures) = run.end();
        total.figures.add(&figures);
    }
    // What was overtaken is told so, and not sent behind what has overtaken it.
    let figures = &total.figures;
    assert!(figures.failed > 0 || !total.is_of_many(), "nothing was overtaken: {figures:?}");
}

#[test]
fn a_client_of_a_dead_primary_keeps_the_other_shards() {
    let mut total = Total::new("a_client_of_a_dead_primary_keeps_the_other_shards");
    for seed in total.seeds.clone() {
        let mut run = Run::new(seed, Reads::Primary);
        run.run(12 * SECOND, &[(2 * SECOND, Fault::Crash((seed % 4) as usize, 60 * SECOND))]);
        let at_end = run.figures.failed;
        run.run(2 * SECOND, &[]);
        assert_eq!(run.figures.failed, at_end, "seed {seed}: its slots are served again");
        let (_, figures) = run.end();
        assert!(figures.questions < 60, "seed {seed}: {figures:?}");
        total.figures.add(&figures);
    }
}

#[test]
fn a_client_goes_on_where_nodes_leave_while_calls_are_at_them() {
    let mut total = Total::new("a_client_goes_on_where_nodes_leave_while_calls_are_at_them");
    for seed in total.seeds.clone() {
        let mut run = Run::new(seed, Reads::PreferReplicas);
        let (primary, other) = ((seed % 4) as usize, (seed + 1) as usize % 4);
        let replica = run.links.world.replica_of(other).expect("each has one");
        run.run(12 * SECOND, &[(2 * SECOND, Fault::Leave(primary)), (4 * SECOND, Fault::Leave(replica))]);
        let failed = run.figures.failed;
        run.run(3 * SECOND, &[]);
        assert_eq!(run.figures.failed, failed, "seed {seed}: its slots are served by the others");
        let (_, figures) = run.end();
        assert!(figures.questions < 60, "seed {seed}: {figures:?}");
        total.figures.add(&figures);
    }
}

#[test]
fn a_client_sends_nothing_twice_that_was_in_doubt() {
    let mut total = Total::new("a_client_sends_nothing_twice_that_was_in_doubt");
    for seed in total.seeds.clone() {
        let mut run = Run::new(seed, Reads::Primary);
        let faults: Vec<_> = (1..40).map(|turn| (turn * 250 * MS, Fault::Disconnect((turn % 4) as usize))).collect();
        run.run(12 * SECOND, &faults);
        let (_, figures) = run.end();
        total.figures.add(&figures);
    }
    let figures = &total.figures;
    assert!(figures.failed > 0 || !total.is_of_many(), "no connection ended within a call: {figures:?}");
}

#[test]
fn a_client_tells_the_truth_whatever_happens() {
    let mut total = Total::new("a_client_tells_the_truth_whatever_happens");
    for seed in total.seeds.clone() {
        let mut run = Run::new(seed, Reads::PreferReplicas);
        let mut faults = any_faults(&run, &mut Rng::part(seed, 2));
        let later = faults.split_off(faults.len() / 2);
        run.cluster.policy.set(Reads::Primary);
        run.run(HALF, &faults);
        run.cluster.policy.set(Reads::PreferReplicas);
        let later: Vec<_> = later.into_iter().map(|(at_us, fault)| (at_us - HALF, fault)).collect();
        run.run(HALF + 12 * SECOND, &later);
        let failed = run.figures.failed;
        // All faults are over: there is no reason for an error any more.
        run.run(5 * SECOND, &[]);
        assert_eq!(run.figures.failed, failed, "seed {seed}: {:?}", run.figures);
        let (ledger, figures) = run.end();
        total.figures.add(&figures);
        if !total.is_of_many() {
            println!("seed {seed}: {figures:?}, {ledger:?}");
        }
    }
}
