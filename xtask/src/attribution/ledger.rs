//! What clients were told of every write, and what the nodes' own logs say of it.
//!
//! A write is known by its value, which is written once: the client, the number of the request and a number within it. In
//! the end every one that a client was told of has to be in the log of the node of its key, in its database, once; one that was
//! refused must not be there; one whose outcome the client does not know may be there once. What was written to one key has to
//! be there in the order in which its client asked, and elements of queues go to one client each.

use std::collections::HashMap;
use std::time::{SystemTime, UNIX_EPOCH};

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

/// What all clients were told.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    pub(super) writes: Vec<Write>,
    /// The number of the client's present connection.
    pub(super) connection: u32,
    /// Numbers that clients were given by counters that they share: counter, number.
    pub(super) counted: Vec<(usize, u64)>,
    /// Counts whose outcome is unknown, by counter.
    pub(super) counted_perhaps: HashMap<usize, u64>,
    /// Elements that were given to clients.
    pub(super) popped: Vec<Id>,
    /// Pops whose outcome is unknown.
    pub(super) popped_perhaps: u64,
}

impl Ledger {
    /// Notes the outcome of a write, as the client knows it.
    pub(super) fn note(&mut self, id: Id, node: u8, database: u8, fate: Fate) {
        let second = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        self.writes.push(Write { id, node, database, fate, connection: self.connection, second });
    }

    pub(super) fn add(&mut self, other: Ledger) {
        self.writes.extend(other.writes);
        self.counted.extend(other.counted);
        for (counter, count) in other.counted_perhaps {
            *self.counted_perhaps.entry(counter).or_default() += count;
        }
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
    pub(super) counts: usize,
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

/// Keys that all clients share, by their names.
pub(super) fn counter_key(tag: &str, number: usize) -> String {
    format!("{{{tag}}}:counter:{number}")
}

pub(super) fn queue_key(tag: &str, number: usize) -> String {
    format!("{{{tag}}}:queue:{number}")
}

fn shared_number(key: &[u8], kind: &str) -> Option<usize> {
    std::str::from_utf8(key).ok()?.split_once(kind)?.1.parse().ok()
}

/// Where and how often one write was found.
#[derive(Default)]
struct Found {
    times: u32,
    node: usize,
    database: u32,
}

/// Compares what clients were told with what the servers did.
pub(super) fn audit(ledger: &Ledger, logs: &[ServerLog], stops: &Stops) -> Audit {
    let mut audit = Audit::default();
    let mut found: HashMap<Id, Found> = HashMap::new();
    let mut counters: HashMap<usize, u64> = HashMap::new();
    let mut pops = 0_u64;
    let mut put_back = 0_u64;
    for log in logs {
        // The last request of each client that wrote to each key of this server.
        let mut last: HashMap<(Vec<u8>, u64), u64> = HashMap::new();
        // Whether the node has moved to another server.
        let mut has_left = false;
        for one in &log.executed {
            let words = &one.words;
            if let Some(key) = words.get(1).filter(|key| **key == *LEFT.as_bytes() || **key == *BACK.as_bytes()) {
                has_left = *key == LEFT.as_bytes();
            }
            let name = words[0].to_ascii_uppercase();
            let pairs: &[&[Vec<u8>]] = match &*name {
                b"SET" | b"RPUSH" if words.len() > 2 => &[&words[1..3]],
                b"MSET" => &words[1..].chunks(2).collect::<Vec<_>>(),
                b"INCR" | b"INCRBY" => {
                    if let Some(counter) = words.get(1).and_then(|key| shared_number(key, ":counter:")) {
                        *counters.entry(counter).or_default() += 1;
                    }
                    continue;
                }
                // The proxy puts back at the front what was popped for a client that has gone; clients push at the end.
                b"LPOP" | b"LPUSH" => {
                    let is_queue = words.get(1).is_some_and(|key| shared_number(key, ":queue:").is_some());
                    *(if *name == *b"LPOP" { &mut pops } else { &mut put_back }) += u64::from(is_queue);
                    continue;
                }
                _ => continue,
            };
            for pair in pairs {
                let [key, value] = pair else { continue };
                let Some(id) = Id::of(value) else { continue };
                let place = found.entry(id).or_default();
                (place.times, place.node, place.database) = (place.times + 1, log.node, one.database);
                let before = last.entry((key.clone(), id.client)).or_default();
                if has_left {
                    audit.complain(|| {
                        format!("{id:?} was done by a server that had not been node {} for long", log.node)
                    });
                }
                if id.seq < *before && !is_late_at_most(ledger, id, one.second, stops) {
                    audit.complain(|| {
                        let told = |seq: u64| of(ledger, id.client, seq).map(|write| (write.fate, write.connection));
                        format!(
                            "client {}: request {} ({:?} for its client) on {} at node {} ran behind request {before} ({:?})",
                            id.client,
                            id.seq,
                            told(id.seq),
                            shown(key),
                            log.node,
                            told(*before)
                        )
                    });
                }
                *before = id.seq.max(*before);
            }
        }
    }
    let mut known = std::collections::HashSet::with_capacity(ledger.writes.len());
    for write in &ledger.writes {
        known.insert(write.id);
        let place = found.get(&write.id);
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
                format!(
                    "{id:?} for node {node}, database {database} was done by node {}, {}",
                    place.node, place.database
                )
            });
        }
    }
    for id in found.keys().filter(|id| !known.contains(id)) {
        audit.complain(|| format!("{id:?} was done and no client wrote it"));
    }
    count(ledger, &counters, &mut audit);
    pop(ledger, &found, pops.saturating_sub(put_back), &mut audit);
    audit
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

/// No number is given twice, and none that the counter never had.
fn count(ledger: &Ledger, counters: &HashMap<usize, u64>, audit: &mut Audit) {
    let mut told: HashMap<usize, Vec<u64>> = HashMap::new();
    for &(counter, number) in &ledger.counted {
        told.entry(counter).or_default().push(number);
    }
    for (counter, mut numbers) in told {
        audit.counts += numbers.len();
        numbers.sort_unstable();
        for pair in numbers.windows(2).filter(|pair| pair[0] == pair[1]) {
            audit.complain(|| format!("counter {counter} gave {} to two clients", pair[0]));
        }
        let (done, given) = (counters.get(&counter).copied().unwrap_or_default(), numbers.len() as u64);
        let perhaps = ledger.counted_perhaps.get(&counter).copied().unwrap_or_default();
        let highest = numbers.last().copied().unwrap_or_default();
        if !(given..=given + perhaps).contains(&done) || highest > done {
            audit.complain(|| {
                format!(
                    "counter {counter}: {given} counts and perhaps {perhaps} more, up to {highest}; done {done} times"
                )
            });
        }
    }
}

/// Every element that a client was given was pushed, is given once, and none is popped without a client.
fn pop(ledger: &Ledger, found: &HashMap<Id, Found>, pops: u64, audit: &mut Audit) {
    let mut given: HashMap<Id, u32> = HashMap::new();
    ledger.popped.iter().for_each(|id| *given.entry(*id).or_default() += 1);
    audit.pops += given.len();
    for (id, times) in &given {
        if *times > 1 {
            audit.complain(|| format!("{id:?} was given to {times} clients"));
        }
        if !found.contains_key(id) {
            audit.complain(|| format!("{id:?} was given to a client and never pushed"));
        }
    }
    let told = ledger.popped.len() as u64;
    if !(told..=told + ledger.popped_perhaps).contains(&pops) {
        audit.complain(|| format!("{pops} elements were popped, {told} given, {} perhaps", ledger.popped_perhaps));
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
    fn counters_and_queues_are_checked_one_by_one() {
        let (counter, queue) = (counter_key("t", 0), queue_key("t", 0));
        let incr: &[&str] = &["INCR", &counter];
        let counted = |numbers: &[u64], perhaps| Ledger {
            counted: numbers.iter().map(|&number| (0, number)).collect(),
            counted_perhaps: HashMap::from([(0, perhaps)]),
            ..Ledger::default()
        };
        assert_eq!(complaints(&counted(&[1, 2], 0), 0, &[incr, incr]), 0);
        assert_eq!(complaints(&counted(&[1, 1], 0), 0, &[incr, incr]), 1, "one number for two");
        assert_eq!(complaints(&counted(&[1], 0), 0, &[incr, incr]), 1, "one too many");
        assert_eq!(complaints(&counted(&[1], 1), 0, &[incr, incr]), 0);
        assert_eq!(complaints(&counted(&[1, 3], 0), 0, &[incr, incr]), 1, "a number that it never had");
        let one = id(1).mark();
        let push: &[&str] = &["RPUSH", &queue, &one];
        let pop: &[&str] = &["LPOP", &queue];
        let pushed = |popped: &[Id]| Ledger { popped: popped.to_vec(), ..told(&[(1, Fate::Done)]) };
        assert_eq!(complaints(&pushed(&[id(1)]), 0, &[push, pop]), 0);
        assert_eq!(complaints(&pushed(&[]), 0, &[push, pop]), 1, "an element that no client got");
        assert!(complaints(&pushed(&[id(1), id(1)]), 0, &[push, pop]) > 0, "one for two");
        assert!(complaints(&pushed(&[id(2)]), 0, &[push, pop]) > 0, "one that was never pushed");
    }
}
