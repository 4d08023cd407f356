//! Connections of a client to a simulated world: dialled, lost, silent and dialled again as those of `core` are, in the world's time.
//!
//! A request waits outside until there is a connection, then in a queue until it is written, and then for its reply. What is lost says which of
//! the three it was.

use super::super::Shared;
use super::super::environment::{Environment, Exchange};
use crate::core::Ended;
use crate::topology::Node;
use crate::{Command, Error, ErrorKind, Outcome, Reply};
use respool_connection::{DialAdvice, Reconnect, ReconnectTerms};
use respool_route::cluster::Address;
use respool_sim::{ConnectionId, Delivery, Fault, World};
use respool_testkit::Rng;
use respool_wire::ArgsBuf;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// An attempt to connect takes no longer, in microseconds.
const CONNECT_LIMIT: u64 = 1_000_000;
/// The kernel gives a connection up on which it has no answer for so long, in microseconds. A real one does so after a quarter of an hour.
pub(super) const KERNEL_LIMIT: u64 = 10_000_000;

/// What the world and the exchanges share.
#[derive(Debug)]
struct Desk {
    now_us: u64,
    rng: Rng,
    numbers: u64,
    entries: BTreeMap<u64, Entry>,
    /// Those that wait to be taken to their connection.
    orders: VecDeque<u64>,
    /// How often something has come on a connection.
    heard: BTreeMap<LineName, u64>,
    /// Connections that are to end.
    forsaken: Vec<LineName>,
    /// By hash tag, how often requests were written and lost with their connection, or were not answered in time.
    unanswered: HashMap<String, u64>,
}

impl Desk {
    fn note_unanswered(&mut self, hash_tag: &str) {
        *self.unanswered.entry(hash_tag.to_owned()).or_default() += 1;
    }
}

/// An exchange under way.
#[derive(Debug)]
struct Entry {
    line: LineName,
    /// Of its first request.
    hash_tag: String,
    requests: Vec<ArgsBuf>,
    ended: Vec<Option<Ended>>,
    until_us: u64,
    /// It was polled, and is taken to its connection.
    is_begun: bool,
    /// It does not wait outside any longer.
    is_queued: bool,
    /// How often something had come on its connection by then.
    heard: u64,
    /// Why it was not sent.
    failed: Option<Arc<str>>,
    waker: Option<Waker>,
}

impl Entry {
    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

/// A client's connection is known by its node, and by whether it is the one that a replica answers on.
type LineName = (Address, bool);

/// What is around the cluster of a test.
#[derive(Clone, Debug)]
pub(super) struct Simulated(Arc<Mutex<Desk>>);

impl Simulated {
    fn lock(&self) -> MutexGuard<'_, Desk> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Environment for Simulated {
    fn now_us(&self) -> u64 {
        self.lock().now_us
    }

    fn chance(&self) -> u64 {
        self.lock().rng.next_u64()
    }

    fn begin_keeper(&self, _: &Arc<Shared>) -> bool {
        // The test does what it would do.
        true
    }

    fn exchange(
        &self,
        node: &Arc<Node>,
        is_replica: bool,
        commands: Vec<Command>,
        limit: Duration,
    ) -> Box<dyn Exchange> {
        Box::new(self.begin(node, is_replica, &commands, limit))
    }
}

impl Simulated {
    /// As [`Environment::exchange`].
    pub(super) fn begin(
        &self,
        node: &Arc<Node>,
        is_replica: bool,
        commands: &[Command],
        limit: Duration,
    ) -> Simulation {
        let mut desk = self.lock();
        desk.numbers += 1;
        let requests: Vec<ArgsBuf> =
            commands.iter().map(|command| command.all_arguments().into_iter().collect()).collect();
        let entry = Entry {
            line: (node.address(), is_replica),
            hash_tag: what_of(&requests[0]).0,
            ended: vec![None; commands.len()],
            requests,
            until_us: desk.now_us + limit.as_micros() as u64,
            is_begun: false,
            is_queued: false,
            heard: 0,
            failed: None,
            waker: None,
        };
        let number = desk.numbers;
        desk.entries.insert(number, entry);
        Simulation { around: self.clone(), number }
    }
}

/// An exchange in the world.
#[derive(Debug)]
pub(super) struct Simulation {
    around: Simulated,
    number: u64,
}

impl Simulation {
    /// Whether all have ended with replies that are no errors.
    pub(super) fn is_plain(&self) -> bool {
        let is_plain =
            |ended: &Option<Ended>| matches!(ended, Some(Ended::Reply(reply)) if !matches!(reply, Reply::Error(_)));
        self.around.lock().entries[&self.number].ended.iter().all(is_plain)
    }
}

impl Exchange for Simulation {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        let mut desk = self.around.lock();
        let Desk { now_us, entries, orders, .. } = &mut *desk;
        let entry = entries.get_mut(&self.number).expect("it lives as long as this");
        if !std::mem::replace(&mut entry.is_begun, true) {
            orders.push_back(self.number);
        }
        if entry.ended.iter().all(Option::is_some) {
            return Poll::Ready(Ok(()));
        }
        if let Some(why) = &entry.failed {
            return Poll::Ready(Err(Error::new(ErrorKind::Lost(Arc::clone(why)), Outcome::NotSent)));
        }
        if *now_us >= entry.until_us {
            let outcome = if entry.is_queued { Outcome::MaybeExecuted } else { Outcome::NotSent };
            let hash_tag = entry.hash_tag.clone();
            desk.note_unanswered(&hash_tag);
            return Poll::Ready(Err(Error::new(ErrorKind::Timeout(None), outcome)));
        }
        entry.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    fn wait(&mut self) -> Result<(), Error> {
        unreachable!("no thread waits in a simulated world")
    }

    fn is_sent(&self) -> bool {
        self.around.lock().entries[&self.number].is_queued
    }

    fn extend(&mut self, limit: Duration) {
        let mut desk = self.around.lock();
        let until_us = desk.now_us + limit.as_micros() as u64;
        desk.entries.get_mut(&self.number).expect("it lives as long as this").until_us = until_us;
    }

    fn forsake(&mut self) -> bool {
        let mut desk = self.around.lock();
        let Desk { entries, heard, forsaken, .. } = &mut *desk;
        let entry = entries.get_mut(&self.number).expect("it lives as long as this");
        let heard = heard.get(&entry.line).copied().unwrap_or(0);
        let is_unheard = std::mem::replace(&mut entry.heard, heard) == heard;
        if is_unheard && entry.ended.iter().all(Option::is_none) {
            forsaken.push(entry.line.clone());
            return true;
        }
        false
    }

    fn take_ended(&mut self) -> Vec<Ended> {
        let mut desk = self.around.lock();
        let entry = desk.entries.get_mut(&self.number).expect("it lives as long as this");
        std::mem::take(&mut entry.ended).into_iter().flatten().collect()
    }

    fn note_sizes(&self, _: &[Ended]) {}
}

impl Drop for Simulation {
    fn drop(&mut self) {
        // What was queued is sent all the same.
        self.around.lock().entries.remove(&self.number);
    }
}

/// A request that was written: of which exchange, which, and what is known of it.
struct Written {
    number: u64,
    place: usize,
    hash_tag: String,
    only_reads: bool,
    text: String,
}

/// What the world knows of a request that no other has the text of.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Trace {
    /// How often it was written to a connection, and no redirect came back.
    pub(super) sent: usize,
    /// When it was executed last, in the order of all executions.
    pub(super) executed: Option<u64>,
}

/// A connection, or what is done to have one.
struct Line {
    reconnect: Reconnect,
    state: State,
    /// Exchanges that wait for it.
    outside: Vec<u64>,
    /// Requests that are not written yet: of which exchange, and which.
    queue: VecDeque<(u64, usize, ArgsBuf)>,
    /// Those that are written, by their tags.
    written: BTreeMap<u64, Written>,
    /// When the last reply came, or the first request was written behind it.
    heard_us: u64,
    /// Since when the other side is known to be gone, though nothing says so.
    dead_us: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Down,
    /// The handshake has this tag.
    Dialling(ConnectionId, u64, u64),
    Up(ConnectionId),
}

/// All connections of a client.
pub(super) struct Links {
    pub(super) world: World,
    around: Simulated,
    rng: Rng,
    lines: BTreeMap<LineName, Line>,
    names: HashMap<ConnectionId, LineName>,
    tags: u64,
    written: u64,
    /// By their texts, the requests that were written.
    traces: HashMap<String, Trace>,
    /// How often a connection was lost.
    pub(super) losses: u64,
    /// Hash tags of which a node has executed a request that did not have their slot, and whether it only read.
    pub(super) foreign: BTreeSet<(String, bool)>,
    /// What the world says that may be lost.
    pub(super) lost: Vec<u16>,
}

/// The hash tag in a request's arguments, and whether it only reads.
fn what_of(request: &ArgsBuf) -> (String, bool) {
    let text = String::from_utf8_lossy(request.as_args().get(1).unwrap_or_default());
    let hash_tag = text.split_once('}').map_or(String::new(), |(tag, _)| format!("{tag}}}"));
    (hash_tag, matches!(request.as_args().name(), b"GETRANGE" | b"MGET"))
}

fn text_of(request: &ArgsBuf) -> String {
    let words: Vec<_> = request.as_args().iter().map(String::from_utf8_lossy).collect();
    words.join(" ")
}

fn lost(outcome: Outcome) -> Ended {
    Ended::Failed(ErrorKind::Lost("the connection was lost".into()), outcome)
}

impl Links {
    pub(super) fn new(world: World, seed: u64) -> Self {
        let desk = Desk {
            now_us: world.now_us(),
            rng: Rng::part(seed, 3),
            numbers: 0,
            entries: BTreeMap::new(),
            orders: VecDeque::new(),
            heard: BTreeMap::new(),
            forsaken: Vec::new(),
            unanswered: HashMap::new(),
        };
        Self {
            world,
            around: Simulated(Arc::new(Mutex::new(desk))),
            rng: Rng::part(seed, 4),
            lines: BTreeMap::new(),
            names: HashMap::new(),
            tags: 0,
            written: 0,
            traces: HashMap::new(),
            losses: 0,
            foreign: BTreeSet::new(),
            lost: Vec::new(),
        }
    }

    pub(super) fn environment(&self) -> Simulated {
        self.around.clone()
    }

    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.around.lock()
    }

    /// What is known of a request that is told from all others by its arguments.
    pub(super) fn trace(&self, command: &Command) -> Trace {
        let request = command.all_arguments().into_iter().collect();
        self.traces.get(&text_of(&request)).copied().unwrap_or_default()
    }

    /// How often requests with a hash tag were written and lost with their connection, or were not answered in time.
    pub(super) fn unanswered(&self, hash_tag: &str) -> u64 {
        self.desk().unanswered.get(hash_tag).copied().unwrap_or(0)
    }

    /// Requests that were written so far.
    pub(super) fn written(&self) -> u64 {
        self.written
    }

    /// Exchanges that are under way: those of callers that have left are none.
    pub(super) fn under_way(&self) -> usize {
        self.desk().entries.len()
    }

    /// Does what is due. Returns when the next thing is.
    pub(super) fn drive(&mut self) -> u64 {
        let forsaken = std::mem::take(&mut self.desk().forsaken);
        for name in forsaken {
            if let Some(Line { state: State::Up(connection), .. }) = self.lines.get(&name) {
                let connection = *connection;
                self.world.close(connection);
                self.lose(connection);
            }
        }
        loop {
            let next = self.desk().orders.pop_front();
            let Some(number) = next else { break };
            self.take(number);
        }
        let now_us = self.world.now_us();
        let mut next_us = u64::MAX;
        for name in self.lines.keys().cloned().collect::<Vec<_>>() {
            next_us = next_us.min(self.drive_line(&name, now_us));
        }
        let mut desk = self.desk();
        for entry in desk.entries.values_mut().filter(|entry| entry.waker.is_some()) {
            if now_us >= entry.until_us {
                entry.wake();
            } else {
                next_us = next_us.min(entry.until_us);
            }
        }
        next_us
    }

    fn take(&mut self, number: u64) {
        let mut desk = self.around.lock();
        let Desk { entries, heard, .. } = &mut *desk;
        let Some(entry) = entries.get_mut(&number) else { return };
        let new = || Line {
            reconnect: Reconnect::new(ReconnectTerms::default()),
            state: State::Down,
            outside: Vec::new(),
            queue: VecDeque::new(),
            written: BTreeMap::new(),
            heard_us: 0,
            dead_us: None,
        };
        let line = self.lines.entry(entry.line.clone()).or_insert_with(new);
        match line.state {
            State::Up(_) => line.push(number, entry, heard),
            State::Down | State::Dialling(..) => line.outside.push(number),
        }
    }

    fn drive_line(&mut self, name: &LineName, now_us: u64) -> u64 {
        let line = self.lines.get_mut(name).expect("listed");
        match line.state {
            State::Down if line.outside.is_empty() => u64::MAX,
            State::Down => match line.reconnect.poll(now_us) {
                DialAdvice::Wait(until_us) => until_us,
                DialAdvice::Dial | DialAdvice::Nothing => {
                    let connection = self.world.connect(&name.0);
                    self.names.insert(connection, name.clone());
                    self.tags += 1;
                    let greeting = if name.1 { "READONLY" } else { "PING" };
                    self.world.send(connection, self.tags, vec![[greeting].into_iter().collect()]);
                    line.state = State::Dialling(connection, self.tags, now_us + CONNECT_LIMIT);
                    now_us + CONNECT_LIMIT
                }
            },
            State::Dialling(connection, _, until_us) if now_us >= until_us => {
                self.world.close(connection);
                self.lose(connection);
                now_us
            }
            State::Dialling(_, _, until_us) => until_us,
            State::Up(connection) => {
                let heard_us = if line.written.is_empty() { u64::MAX } else { line.heard_us };
                let heard_us = heard_us.min(line.dead_us.unwrap_or(u64::MAX));
                if now_us >= heard_us.saturating_add(KERNEL_LIMIT) {
                    self.world.close(connection);
                    self.lose(connection);
                    return now_us;
                }
                if !line.queue.is_empty() {
                    // A part of it waits for the next write now and then.
                    let count = line.queue.len();
                    let count = if self.rng.once_in(4) { self.rng.below(count + 1) } else { count };
                    let count = line.whole_exchanges(count);
                    for (number, place, request) in line.queue.drain(..count).collect::<Vec<_>>() {
                        self.tags += 1;
                        if line.written.is_empty() {
                            line.heard_us = now_us;
                        }
                        let (hash_tag, only_reads) = what_of(&request);
                        let text = text_of(&request);
                        self.traces.entry(text.clone()).or_default().sent += 1;
                        self.written += 1;
                        line.written.insert(self.tags, Written { number, place, hash_tag, only_reads, text });
                        self.world.send(connection, self.tags, vec![request]);
                    }
                    if !line.queue.is_empty() {
                        return now_us + 1 + self.rng.below(200) as u64;
                    }
                }
                let heard_us = if line.written.is_empty() { u64::MAX } else { line.heard_us };
                heard_us.min(line.dead_us.unwrap_or(u64::MAX)).saturating_add(KERNEL_LIMIT)
            }
        }
    }

    /// Something goes wrong now.
    pub(super) fn inject(&mut self, fault: Fault) {
        if let Fault::HalfOpen(node) = fault {
            let (address, now_us) = (self.world.address(node), self.world.now_us());
            let own = self.lines.iter_mut().filter(|(name, line)| name.0 == address && line.state != State::Down);
            own.for_each(|(_, line)| line.dead_us = Some(now_us));
        }
        self.world.inject(fault);
    }

    /// Lets the world go on until there is something, or until this time.
    pub(super) fn pass(&mut self, until_us: u64) {
        let delivery = self.world.poll(until_us);
        self.desk().now_us = self.world.now_us();
        match delivery {
            None => {}
            Some(Delivery::Reply { connection, tag, replies, is_owner, order }) => {
                self.on_reply(connection, tag, &replies[0], (is_owner, order));
            }
            Some(Delivery::Refused { connection, .. } | Delivery::Ended { connection }) => self.lose(connection),
            Some(Delivery::Lost { slots }) => self.lost.extend(slots),
            Some(Delivery::Connected { .. }) => unreachable!("none is dialled"),
        }
    }

    fn on_reply(&mut self, connection: ConnectionId, tag: u64, reply: &[u8], (is_owner, order): (bool, u64)) {
        let Some(line) = self.names.get(&connection).and_then(|name| self.lines.get_mut(name)) else { return };
        line.heard_us = self.world.now_us();
        let mut desk = self.around.lock();
        if let Some(name) = self.names.get(&connection) {
            *desk.heard.entry(name.clone()).or_default() += 1;
        }
        match line.state {
            State::Dialling(of, handshake, _) if of == connection && handshake == tag => {
                line.state = State::Up(connection);
                line.reconnect.note_ready();
                for number in std::mem::take(&mut line.outside) {
                    let Desk { entries, heard, .. } = &mut *desk;
                    if let Some(entry) = entries.get_mut(&number) {
                        line.push(number, entry, heard);
                    }
                }
            }
            State::Up(of) if of == connection => {
                let Some(written) = line.written.remove(&tag) else { return };
                let Written { number, place, hash_tag, only_reads, text } = written;
                let trace = self.traces.entry(text).or_default();
                if reply.starts_with(b"-") {
                    trace.sent -= 1;
                } else {
                    trace.executed = Some(order);
                }
                if !is_owner {
                    self.foreign.insert((hash_tag, only_reads));
                }
                let Some(entry) = desk.entries.get_mut(&number) else { return };
                entry.ended[place] = Some(Ended::Reply(Reply::copied(reply).expect("a reply")));
                if entry.ended.iter().all(Option::is_some) {
                    entry.wake();
                }
            }
            _ => {}
        }
    }

    /// The connection is gone: what waits for it is told.
    fn lose(&mut self, connection: ConnectionId) {
        let Some(line) = self.names.remove(&connection).and_then(|name| self.lines.get_mut(&name)) else { return };
        (line.state, line.dead_us) = (State::Down, None);
        line.reconnect.note_lost(self.world.now_us(), self.rng.next_u64());
        self.losses += 1;
        let mut desk = self.around.lock();
        for request in line.written.values() {
            desk.note_unanswered(&request.hash_tag);
        }
        let unwritten = std::mem::take(&mut line.queue).into_iter().map(|(of, at, _)| (of, at, Outcome::NotSent));
        let written = std::mem::take(&mut line.written).into_values();
        for (number, place, outcome) in
            written.map(|of| (of.number, of.place, Outcome::MaybeExecuted)).chain(unwritten).collect::<Vec<_>>()
        {
            if let Some(entry) = desk.entries.get_mut(&number) {
                entry.ended[place] = Some(lost(outcome));
                if entry.ended.iter().all(Option::is_some) {
                    entry.wake();
                }
            }
        }
        for number in std::mem::take(&mut line.outside) {
            if let Some(entry) = desk.entries.get_mut(&number) {
                entry.failed = Some("the node cannot be reached".into());
                entry.wake();
            }
        }
    }
}

impl Line {
    fn push(&mut self, number: u64, entry: &mut Entry, heard: &BTreeMap<LineName, u64>) {
        (entry.is_queued, entry.heard) = (true, heard.get(&entry.line).copied().unwrap_or(0));
        let requests = std::mem::take(&mut entry.requests).into_iter().enumerate();
        self.queue.extend(requests.map(|(place, request)| (number, place, request)));
    }

    /// The first `count` requests of the queue, and what was queued together with the last of them: it is written together, as by
    /// [`crate::core`].
    fn whole_exchanges(&self, count: usize) -> usize {
        let Some(last) = count.checked_sub(1) else { return 0 };
        let (number, ..) = self.queue[last];
        count + self.queue.iter().skip(count).take_while(|(of, ..)| *of == number).count()
    }
}
