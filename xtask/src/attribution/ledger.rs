//! What clients were told of every write, and what the nodes' own logs say of it.
//!
//! A write is known by its value, which is written once: the client, the number of the request and a number within it. In
//! the end every one that a client was told of has to be in the log of the node of its key, in its database, once; one that was
//! refused must not be there; one whose outcome the client does not know may be there once. What was written to one key has to
//! be there in the order in which its client asked, and elements of queues go to one client each. Requests of a transaction are there
//! together or not at all, and while a node's requests are held nothing of a client is there.
//!
//! What a write is answered with is compared as well: counters and queues that clients share are made again from the log, so that each
//! number that a client was told is that of its own request. What was read from a key has to have been written to that key.

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{SystemTime, UNIX_EPOCH};

use super::layout::PHASE;
use super::log::Executed;
use super::stops::Stops;

/// Complaints that are described.
const DESCRIBED_MAX: usize = 12;

/// Seconds in which a write of unknown outcome may still be executed: the server may be stopped for the length of a fault
/// with requests of a closed connection unread, and times of executions are known to the second. Where the proxy stood still meanwhile,
/// what it had not read comes so much later.
const LATE_SECONDS_MAX: u64 = 2;

/// Written to the server that a node has left, when nothing more may come to it, and to the same when the node is there again.
pub(super) const LEFT: &str = "the-node-has-left";
pub(super) const BACK: &str = "the-node-is-back";

/// The same, when requests for a node are held back by an order and none is outstanding, and when they go on.
pub(super) const HELD: &str = "the-node-is-held";
pub(super) const GOES_ON: &str = "the-node-goes-on";

/// Writes of a transaction have numbers from here on: two that differ in the last bit belong together.
pub(super) const BLOCK: u16 = 200;
/// The number of an increment within its request.
pub(super) const INCREMENT: u16 = 150;
/// An increment says whose it is: the phase and the client, in so many bits, and the request, in so many.
const CLIENT_BITS: u32 = 14;
const SEQ_BITS: u32 = 22;

/// A write: client, number of the request, number within it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Id {
    pub(super) client: u64,
    pub(super) seq: u64,
    pub(super) part: u16,
}

impl Id {
    /// The beginning of a value: `seq:cCLIENT:wPART:`.
    pub(super) fn mark(self) -> String {
        format!("{}:c{}:w{}:", self.seq, self.client, self.part)
    }

    /// What it adds to a counter, which no other write adds. A counter holds 2^26 of the largest.
    pub(super) fn increment(self) -> u64 {
        let (phase, number) = (self.client / PHASE, self.client % PHASE);
        assert!(number < 1 << CLIENT_BITS && self.seq < 1 << SEQ_BITS, "the run is too large for its increments");
        (phase << CLIENT_BITS | number) << SEQ_BITS | self.seq
    }

    /// The write that has added so much.
    fn of_increment(digits: &[u8]) -> Option<Id> {
        let increment: u64 = std::str::from_utf8(digits).ok()?.parse().ok()?;
        let (client, seq) = (increment >> SEQ_BITS, increment & ((1 << SEQ_BITS) - 1));
        let client = (client >> CLIENT_BITS) * PHASE + (client & ((1 << CLIENT_BITS) - 1));
        Some(Id { client, seq, part: INCREMENT })
    }

    /// The other write of its transaction.
    fn sibling(self) -> Option<Id> {
        (self.part >= BLOCK).then_some(Id { part: self.part ^ 1, ..self })
    }

    /// The write that a value belongs to.
    pub(super) fn of(value: &[u8]) -> Option<Id> {
        let mut parts = value.splitn(4, |&byte| byte == b':');
        let mut number = |letter: &str| {
            let part = std::str::from_utf8(parts.next()?).ok()?;
            part.strip_prefix(letter)?.parse::<u64>().ok()
        };
        let (seq, client, part) = (number("")?, number("c")?, number("w")?);
        Some(Id { client, seq, part: u16::try_from(part).ok()? })
    }
}

/// What a client knows of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// It was told that it is done.
    Done,
    /// It was told that it is not done: refused, taken back, or a transaction that did not come about.
    NotDone,
    /// It was told that this cannot be known, or did not wait.
    Unknown,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Write {
    pub(super) id: Id,
    /// The node that its key is on.
    pub(super) node: u8,
    pub(super) database: u8,
    pub(super) fate: Fate,
    /// The number of the client's connection that it was sent on.
    pub(super) connection: u32,
    /// When the client got the reply or gave up: seconds of the wall clock.
    pub(super) second: u64,
}

/// A value that was read: of which write, from which key, and by when.
#[derive(Debug, Clone, Copy)]
pub(super) struct Read {
    pub(super) id: Id,
    key: u64,
    second: u64,
}

/// What all clients were told.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    pub(super) writes: Vec<Write>,
    /// The number of the client's present connection.
    pub(super) connection: u32,
    /// What clients were told that a counter or a queue has come to by this write.
    pub(super) totals: Vec<(Id, u64)>,
    /// Values that clients have read from keys that they share.
    pub(super) reads: Vec<Read>,
    /// Elements that were given to clients.
    pub(super) popped: Vec<Id>,
    /// Pops whose outcome is unknown.
    pub(super) popped_perhaps: u64,
}

impl Ledger {
    /// Notes the outcome of a write, as the client knows it.
    pub(super) fn note(&mut self, id: Id, node: u8, database: u8, fate: Fate) {
        self.writes.push(Write { id, node, database, fate, connection: self.connection, second: second() });
    }

    /// Notes that the value of a write was read from a key.
    pub(super) fn note_read(&mut self, id: Id, key: &str) {
        self.reads.push(Read { id, key: digest(key.as_bytes()), second: second() });
    }

    pub(super) fn add(&mut self, other: Ledger) {
        self.writes.extend(other.writes);
        self.totals.extend(other.totals);
        self.reads.extend(other.reads);
        self.popped.extend(other.popped);
        self.popped_perhaps += other.popped_perhaps;
    }
}

/// The log of one server.
pub(super) struct ServerLog {
    pub(super) node: usize,
    pub(super) executed: Vec<Executed>,
}

/// What the comparison came to.
#[derive(Debug, Default)]
pub(super) struct Audit {
    pub(super) writes: usize,
    pub(super) unknown: usize,
    pub(super) unknown_done: usize,
    pub(super) totals: usize,
    pub(super) reads: usize,
    pub(super) blocks: usize,
    /// How often requests were held back while the log was looked at.
    pub(super) holds: usize,
    /// Writes of unknown outcome that were done meanwhile, shortly after they were sent.
    pub(super) late_in_holds: usize,
    pub(super) pops: usize,
    pub(super) complaints: usize,
    pub(super) described: Vec<String>,
}

impl Audit {
    fn complain(&mut self, what: impl FnOnce() -> String) {
        self.complaints += 1;
        if self.described.len() < DESCRIBED_MAX {
            self.described.push(what());
        }
    }
}

/// Now, in seconds of the wall clock.
fn second() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Keys are compared by this: a run has many.
fn digest(key: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}

/// Keys that all clients share, by their names.
pub(super) fn counter_key(tag: &str, number: usize) -> String {
    format!("{{{tag}}}:counter:{number}")
}

pub(super) fn queue_key(tag: &str, number: usize) -> String {
    format!("{{{tag}}}:queue:{number}")
}

fn is_queue(key: &[u8]) -> bool {
    std::str::from_utf8(key).is_ok_and(|key| key.contains(":queue:"))
}

/// Where and how often one write was found.
#[derive(Default)]
struct Found {
    times: u32,
    node: usize,
    database: u32,
    key: u64,
    second: u64,
    /// The transaction in which it was, and its place in the log.
    block: u32,
    place: usize,
    /// What its counter or queue had come to.
    total: Option<u64>,
}

/// What all servers have done.
#[derive(Default)]
struct Done {
    writes: HashMap<Id, Found>,
    /// How often each element was popped, less how often it was put back: the proxy does that for a client that has gone.
    popped: HashMap<Id, i64>,
}

/// Counters and queues of one server, as its log makes them again.
#[derive(Default)]
struct Shared {
    counters: HashMap<Vec<u8>, u64>,
    queues: HashMap<Vec<u8>, VecDeque<Option<Id>>>,
}

impl Shared {
    /// What a write has made of its counter or queue.
    fn total(&mut self, name: &[u8], key: &[u8], id: Id) -> Option<u64> {
        match name {
            b"INCRBY" => {
                let total = self.counters.entry(key.to_vec()).or_default();
                *total += id.increment();
                Some(*total)
            }
            b"RPUSH" if is_queue(key) => {
                let queue = self.queues.entry(key.to_vec()).or_default();
                queue.push_back(Some(id));
                Some(queue.len() as u64)
            }
            _ => None,
        }
    }

    /// Elements that go at the front of a queue, or come back to it: `true` for the former.
    fn take(&mut self, name: &[u8], words: &[Vec<u8>]) -> Vec<(Option<Id>, bool)> {
        let Some(key) = words.get(1).filter(|key| is_queue(key)) else { return Vec::new() };
        let queue = self.queues.entry(key.clone()).or_default();
        match name {
            b"LPOP" => vec![(queue.pop_front().flatten(), true)],
            b"LPUSH" => {
                let elements: Vec<_> = words[2..].iter().map(|element| Id::of(element)).collect();
                elements.iter().for_each(|id| queue.push_front(*id));
                elements.into_iter().map(|id| (id, false)).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// The writes of one request in a log, with their keys.
fn writes_of<'w>(name: &[u8], words: &'w [Vec<u8>]) -> Vec<(&'w [u8], Id)> {
    let of_values = |pairs: &'w [Vec<u8>]| {
        let pairs = pairs.chunks_exact(2).map(|pair| (&*pair[0], Id::of(&pair[1])));
        pairs.filter_map(|(key, id)| Some((key, id?))).collect()
    };
    match name {
        b"SET" | b"RPUSH" if words.len() > 2 => of_values(&words[1..3]),
        b"MSET" => of_values(&words[1..]),
        b"INCRBY" if words.len() > 2 => Id::of_increment(&words[2]).map(|id| (&*words[1], id)).into_iter().collect(),
        _ => Vec::new(),
    }
}

/// Compares what clients were told with what the servers did.
pub(super) fn audit(ledger: &Ledger, logs: &[ServerLog], stops: &Stops) -> Audit {
    let (mut audit, mut done) = (Audit::default(), Done::default());
    logs.iter().for_each(|log| read_log(log, ledger, stops, &mut done, &mut audit));
    let mut known = HashSet::with_capacity(ledger.writes.len());
    for write in &ledger.writes {
        known.insert(write.id);
        compare(write, done.writes.get(&write.id), &mut audit);
    }
    for (id, found) in &done.writes {
        if !known.contains(id) {
            audit.complain(|| format!("{id:?} was done and no client wrote it"));
        }
        check_block(*id, found, &done, &mut audit);
    }
    check_totals(ledger, &done, &mut audit);
    check_reads(ledger, &done, &mut audit);
    check_pops(ledger, &done, &mut audit);
    audit
}

/// Goes through the log of one server: what is known of it as it goes is that it is the node, and that nothing is held back.
fn read_log(log: &ServerLog, ledger: &Ledger, stops: &Stops, done: &mut Done, audit: &mut Audit) {
    // The last request of each client that wrote to each key of this server.
    let mut last: HashMap<(Vec<u8>, u64), u64> = HashMap::new();
    let (mut has_left, mut is_held) = (false, false);
    let mut shared = Shared::default();
    for (place, one) in log.executed.iter().enumerate() {
        let (words, node) = (&one.words, log.node);
        match words.get(1).map_or("", |key| std::str::from_utf8(key).unwrap_or_default()) {
            LEFT => has_left = true,
            BACK => has_left = false,
            HELD => (is_held, audit.holds) = (true, audit.holds + 1),
            GOES_ON => is_held = false,
            _ => {}
        }
        let name = words[0].to_ascii_uppercase();
        for (id, is_taken) in shared.take(&name, words) {
            if is_held {
                audit.complain(|| format!("a queue changed at node {node} while its requests were held"));
            }
            match id {
                Some(id) => *done.popped.entry(id).or_default() += if is_taken { 1 } else { -1 },
                None => audit.complain(|| format!("a queue at node {node} had an element of no client, or none")),
            }
        }
        for (key, id) in writes_of(&name, words) {
            let total = shared.total(&name, key, id);
            let found = done.writes.entry(id).or_default();
            let (key_digest, second) = (digest(key), one.second);
            let times = found.times + 1;
            *found =
                Found { times, node, database: one.database, key: key_digest, second, block: one.block, place, total };
            let before = last.entry((key.to_vec(), id.client)).or_default();
            if has_left {
                audit.complain(|| format!("{id:?} was done by a server that had not been node {node} for long"));
            }
            if is_held {
                // A server may execute requests of a closed connection when it continues.
                if is_late_at_most(ledger, id, second, stops) {
                    audit.late_in_holds += 1;
                } else {
                    audit.complain(|| {
                        let told = of(ledger, id.client, id.seq).map(|write| (write.fate, write.second));
                        format!("{id:?} ({told:?} for its client) was done by node {node} in second {second} while its requests were held")
                    });
                }
            }
            if id.seq < *before && !is_late_at_most(ledger, id, second, stops) {
                audit.complain(|| {
                    let told = |seq: u64| of(ledger, id.client, seq).map(|write| (write.fate, write.connection));
                    format!(
                        "client {}: request {} ({:?} for its client) on {} at node {node} ran behind request {before} ({:?})",
                        id.client,
                        id.seq,
                        told(id.seq),
                        shown(key),
                        told(*before)
                    )
                });
            }
            *before = id.seq.max(*before);
        }
    }
}

/// Compares what a client was told of a write with what was found of it.
fn compare(write: &Write, place: Option<&Found>, audit: &mut Audit) {
    let times = place.map_or(0, |place| place.times);
    let is_right = match write.fate {
        Fate::Done => times == 1,
        Fate::NotDone => times == 0,
        Fate::Unknown => times <= 1,
    };
    audit.writes += 1;
    audit.unknown += usize::from(write.fate == Fate::Unknown);
    audit.unknown_done += usize::from(write.fate == Fate::Unknown && times == 1);
    if !is_right {
        audit.complain(|| format!("{:?}: {:?} for its client, and done {times} times", write.id, write.fate));
    }
    if let Some(place) = place
        && (place.node != usize::from(write.node) || place.database != u32::from(write.database))
    {
        audit.complain(|| {
            let Write { id, node, database, .. } = write;
            format!("{id:?} for node {node}, database {database} was done by node {}, {}", place.node, place.database)
        });
    }
}

/// A write of a transaction has the other one beside it, in the same transaction.
fn check_block(id: Id, found: &Found, done: &Done, audit: &mut Audit) {
    let Some(sibling) = id.sibling() else { return };
    audit.blocks += usize::from(id.part < sibling.part);
    let beside = done.writes.get(&sibling).filter(|other| {
        (other.node, other.block, other.database) == (found.node, found.block, found.database)
            && other.place.abs_diff(found.place) == 1
    });
    if found.block == 0 || beside.is_none() {
        audit.complain(|| format!("{id:?} was done by node {} without the other write of its transaction", found.node));
    }
}

/// What a client was told that its write has come to is what it came to.
fn check_totals(ledger: &Ledger, done: &Done, audit: &mut Audit) {
    audit.totals += ledger.totals.len();
    for (id, told) in &ledger.totals {
        let total = done.writes.get(id).and_then(|found| found.total);
        if total != Some(*told) {
            audit.complain(|| format!("{id:?} was answered with {told} and had come to {total:?}"));
        }
    }
}

/// What was read from a key was written to that key, and before.
fn check_reads(ledger: &Ledger, done: &Done, audit: &mut Audit) {
    audit.reads += ledger.reads.len();
    for read in &ledger.reads {
        let is_right = |found: &&Found| found.key == read.key && found.second <= read.second;
        if done.writes.get(&read.id).filter(is_right).is_none() {
            audit.complain(|| format!("{:?} was read from a key to which it had not been written by then", read.id));
        }
    }
}

/// The first write of a request.
fn of(ledger: &Ledger, client: u64, seq: u64) -> Option<&Write> {
    ledger.writes.iter().find(|write| (write.id.client, write.id.seq) == (client, seq))
}

/// Whether a write that was executed behind a later one of its client has an unknown outcome and was executed within the
/// time permitted: a server may execute requests of a closed connection when it continues.
fn is_late_at_most(ledger: &Ledger, id: Id, second: u64, stops: &Stops) -> bool {
    let latest = |write: &Write| write.second + LATE_SECONDS_MAX + stops.seconds(write.second, second);
    let is_unknown = |write: &Write| write.fate == Fate::Unknown && second <= latest(write);
    of(ledger, id.client, id.seq).is_some_and(is_unknown)
}

/// Every element that a client was given was popped, once and for it, and none is popped without a client.
fn check_pops(ledger: &Ledger, done: &Done, audit: &mut Audit) {
    let mut given: HashMap<Id, i64> = HashMap::new();
    ledger.popped.iter().for_each(|id| *given.entry(*id).or_default() += 1);
    audit.pops += given.len();
    for (id, times) in &given {
        let popped = done.popped.get(id).copied().unwrap_or_default();
        if popped != *times || *times > 1 {
            audit.complain(|| format!("{id:?} was given to {times} clients and popped {popped} times"));
        }
    }
    let lost: Vec<_> = done.popped.iter().filter(|(id, times)| **times > 0 && !given.contains_key(id)).collect();
    if lost.len() as u64 > ledger.popped_perhaps {
        audit.complain(|| {
            format!(
                "{} elements were popped for no client, {} perhaps: {:?}",
                lost.len(),
                ledger.popped_perhaps,
                lost[0]
            )
        });
    }
}

fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(seq: u64) -> Id {
        Id { client: 7, seq, part: 1 }
    }

    fn told(of: &[(u64, Fate)]) -> Ledger {
        let mut ledger = Ledger::default();
        of.iter().for_each(|&(seq, fate)| ledger.note(id(seq), 0, 0, fate));
        ledger
    }

    fn log(database: u32, requests: &[&[&str]]) -> ServerLog {
        let one = |words: &&[&str]| Executed {
            database,
            block: 0,
            second: 0,
            words: words.iter().map(|word| word.as_bytes().to_vec()).collect(),
        };
        ServerLog { node: 0, executed: requests.iter().map(one).collect() }
    }

    fn complaints(ledger: &Ledger, database: u32, requests: &[&[&str]]) -> usize {
        audit(ledger, &[log(database, requests)], &Stops::default()).complaints
    }

    #[test]
    fn a_value_names_its_write() {
        assert_eq!(Id::of(format!("{}filling", id(3).mark()).as_bytes()), Some(id(3)));
        assert_eq!(Id::of(b"3:c7:k1:"), None);
    }

    #[test]
    fn lost_doubled_foreign_and_misplaced_writes_are_found() {
        let (one, two) = (id(1).mark(), id(2).mark());
        let set = |value| ["SET", "k", value];
        let both = told(&[(1, Fate::Done), (2, Fate::Done)]);
        assert_eq!(complaints(&both, 0, &[&set(&one), &set(&two)]), 0);
        assert_eq!(complaints(&both, 0, &[&set(&one)]), 1, "lost");
        assert_eq!(complaints(&both, 0, &[&set(&one), &set(&two), &set(&two)]), 1, "doubled");
        assert_eq!(complaints(&both, 0, &[&set(&two), &set(&one)]), 1, "in another order");
        assert_eq!(complaints(&both, 1, &[&set(&one), &set(&two)]), 2, "in another database");
        assert_eq!(complaints(&told(&[(1, Fate::Done)]), 0, &[&set(&one), &set(&two)]), 1, "a write of no client");
        assert_eq!(complaints(&told(&[(1, Fate::NotDone)]), 0, &[&set(&one)]), 1, "refused and done");
        let perhaps = told(&[(1, Fate::Unknown)]);
        assert_eq!(complaints(&perhaps, 0, &[]), 0);
        assert_eq!(complaints(&perhaps, 0, &[&set(&one)]), 0);
        assert_eq!(complaints(&perhaps, 0, &[&set(&one), &set(&one)]), 1, "unknown is no licence to do it twice");
        let (left, back): (&[&str], &[&str]) = (&["SET", LEFT, "1"], &["SET", BACK, "1"]);
        assert_eq!(complaints(&both, 0, &[&set(&one), left, &set(&two)]), 1, "the server was not the node any more");
        assert_eq!(complaints(&both, 0, &[&set(&one), left, back, &set(&two)]), 0);
        let in_second = |told: &[(u64, Fate)], second: u64, stops: &Stops| {
            let mut ledger = self::told(told);
            ledger.writes.iter_mut().for_each(|write| write.second = 10);
            let mut log = log(0, &[&set(&two), &set(&one)]);
            log.executed.iter_mut().for_each(|one| one.second = second);
            audit(&ledger, &[log], stops).complaints
        };
        let late = [(1, Fate::Unknown), (2, Fate::Done)];
        let never = Stops::default();
        let at = |second| in_second(&late, second, &never);
        assert_eq!((at(12), at(13)), (0, 1), "late, and later than it may be");
        let in_order = [(1, Fate::Done), (2, Fate::Done)];
        assert_eq!(in_second(&in_order, 10, &never), 1, "what was told to be done is in order");
        let begin = std::time::Instant::now();
        let stops = Stops::of(begin, begin + std::time::Duration::from_millis(1_900), 13);
        let at = |second| in_second(&late, second, &stops);
        assert_eq!((at(14), at(15)), (0, 1), "the proxy stood still for two seconds of the wall clock");
        assert_eq!(in_second(&in_order, 14, &stops), 1, "a stop changes no order");
        let elsewhere = ServerLog { node: 1, ..log(0, &[&set(&one)]) };
        assert_eq!(audit(&told(&[(1, Fate::Done)]), &[elsewhere], &Stops::default()).complaints, 1, "on another node");
    }

    #[test]
    fn an_increment_names_its_write() {
        for client in [0, 7, 199, PHASE, 3 * PHASE + 4_095] {
            let id = Id { client, seq: 4_000_000, part: INCREMENT };
            assert_eq!(Id::of_increment(id.increment().to_string().as_bytes()), Some(id));
        }
    }

    #[test]
    fn counters_are_made_again_and_compared_with_each_answer() {
        let counter = counter_key("t", 0);
        let [one, two] = [1, 2].map(|seq| Id { part: INCREMENT, ..id(seq) });
        let [by_one, by_two] = [one, two].map(|id| id.increment().to_string());
        let incr = |by: &'_ String| vec!["INCRBY".to_owned(), counter.clone(), by.clone()];
        let done = [incr(&by_one), incr(&by_two)];
        let done: Vec<Vec<&str>> = done.iter().map(|words| words.iter().map(String::as_str).collect()).collect();
        let done: Vec<&[&str]> = done.iter().map(Vec::as_slice).collect();
        let counted = |totals: &[(Id, u64)]| {
            let mut ledger = Ledger { totals: totals.to_vec(), ..Ledger::default() };
            [one, two].into_iter().for_each(|id| ledger.note(id, 0, 0, Fate::Done));
            ledger
        };
        let (first, both) = (one.increment(), one.increment() + two.increment());
        assert_eq!(complaints(&counted(&[(one, first), (two, both)]), 0, &done), 0);
        assert_eq!(complaints(&counted(&[(one, both), (two, first)]), 0, &done), 2, "each was told the other's");
        assert_eq!(complaints(&counted(&[(one, first)]), 0, &done[..1]), 1, "one is lost");
        assert_eq!(complaints(&counted(&[]), 0, &[done[0], done[0], done[1]]), 1, "one is done twice");
    }

    #[test]
    fn queues_are_made_again_and_compared_with_each_answer() {
        let (queue, one, two) = (queue_key("t", 0), id(1).mark(), id(2).mark());
        let (first, second): (&[&str], &[&str]) = (&["RPUSH", &queue, &one], &["RPUSH", &queue, &two]);
        let (pop, back): (&[&str], &[&str]) = (&["LPOP", &queue], &["LPUSH", &queue, &one]);
        let pushed = |popped: &[u64], perhaps: u64| Ledger {
            popped: popped.iter().map(|seq| id(*seq)).collect(),
            popped_perhaps: perhaps,
            totals: vec![(id(1), 1), (id(2), 2)],
            ..told(&[(1, Fate::Done), (2, Fate::Done)])
        };
        assert_eq!(complaints(&pushed(&[1], 0), 0, &[first, second, pop]), 0);
        assert_eq!(complaints(&pushed(&[2], 1), 0, &[first, second, pop]), 1, "another one's element");
        assert_eq!(complaints(&pushed(&[], 0), 0, &[first, second, pop]), 1, "an element that no client got");
        assert_eq!(complaints(&pushed(&[], 1), 0, &[first, second, pop]), 0, "one that left may have got it");
        assert_eq!(complaints(&pushed(&[1, 1], 0), 0, &[first, second, pop]), 1, "one for two");
        assert_eq!(complaints(&pushed(&[], 0), 0, &[first, second, pop, back]), 0, "it was put back");
        assert_eq!(complaints(&pushed(&[1, 2], 0), 0, &[first, second, pop, back, pop, pop]), 0);
        assert_eq!(complaints(&pushed(&[1], 0), 0, &[first, pop, second]), 1, "the second was the only one");
        assert_eq!(complaints(&pushed(&[1], 0), 0, &[first, second, pop, pop, pop]), 2, "there was no third");
    }

    #[test]
    fn both_writes_of_a_transaction_are_done_together() {
        let [one, two] = [BLOCK, BLOCK + 1].map(|part| Id { part, ..id(1) });
        let mut ledger = Ledger::default();
        [one, two].into_iter().for_each(|id| ledger.note(id, 0, 0, Fate::Unknown));
        let set = |id: Id, block: u32| Executed {
            database: 0,
            block,
            second: 0,
            words: ["SET".to_owned(), "k".to_owned(), id.mark()].map(String::into_bytes).to_vec(),
        };
        let other = |block| Executed { block, words: vec![b"DEL".to_vec(), b"x".to_vec()], ..set(one, 0) };
        let complaints =
            |executed: Vec<Executed>| audit(&ledger, &[ServerLog { node: 0, executed }], &Stops::default()).complaints;
        assert_eq!(complaints(vec![]), 0);
        assert_eq!(complaints(vec![set(one, 3), set(two, 3)]), 0);
        assert_eq!(complaints(vec![set(one, 3)]), 1, "half of it");
        assert_eq!(complaints(vec![set(one, 0), set(two, 0)]), 2, "in no transaction");
        assert_eq!(complaints(vec![set(one, 3), set(two, 4)]), 2, "in two");
        assert_eq!(complaints(vec![set(one, 3), other(3), set(two, 3)]), 2, "something came between");
    }

    #[test]
    fn nothing_is_done_while_requests_are_held() {
        let (held, goes_on): (&[&str], &[&str]) = (&["SET", HELD, "1"], &["SET", GOES_ON, "1"]);
        let (mark, queue) = (id(1).mark(), queue_key("t", 0));
        let set: &[&str] = &["SET", "k", &mark];
        let told = told(&[(1, Fate::Done)]);
        assert_eq!(complaints(&told, 0, &[set, held, goes_on]), 0);
        assert_eq!(complaints(&told, 0, &[held, goes_on, set]), 0);
        assert_eq!(complaints(&told, 0, &[held, set, goes_on]), 1);
        assert_eq!(
            complaints(&self::told(&[(1, Fate::NotDone)]), 0, &[held, set, goes_on]),
            2,
            "not at all, and not then"
        );
        assert_eq!(
            complaints(&self::told(&[(1, Fate::Unknown)]), 0, &[held, set, goes_on]),
            0,
            "its connection was closed"
        );
        let push: &[&str] = &["RPUSH", &queue, &mark];
        let popped = Ledger { popped: vec![id(1)], ..self::told(&[(1, Fate::Done)]) };
        assert_eq!(complaints(&popped, 0, &[push, held, &["LPOP", &queue], goes_on]), 1);
    }

    #[test]
    fn a_read_value_was_written_to_its_key() {
        let mut ledger = told(&[(1, Fate::Done)]);
        ledger.note_read(id(1), "k");
        let mark = id(1).mark();
        assert_eq!(complaints(&ledger, 0, &[&["SET", "k", &mark]]), 0);
        assert_eq!(complaints(&ledger, 0, &[&["SET", "other", &mark]]), 1, "to another key");
        ledger.note_read(id(2), "k");
        assert_eq!(complaints(&ledger, 0, &[&["SET", "k", &mark]]), 1, "of no write");
        ledger.reads[0].second = 3;
        let mut late = log(0, &[&["SET", "k", &mark]]);
        late.executed[0].second = 4;
        ledger.reads.truncate(1);
        assert_eq!(audit(&ledger, &[late], &Stops::default()).complaints, 1, "later");
    }
}
