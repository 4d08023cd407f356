//! What clients were told, what nodes have executed, and whether the two agree.
//!
//! Each request has a number of its own that stands in its arguments (`t17;`, or at the end of a range that no value reaches), so each
//! execution is known to be that of one request of one client.

use super::client::shard_of;
use super::orders::Hold;
use super::settings::{LARGE, SHARDS, Settings, name_of};
use respool_route::cluster::slot_of;
use respool_sim::{ConnectionId, Execution, Fault, Harm, HarmTerms, HarmWindows, NodeIndex};
use respool_wire::{Args, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Ranges that are read end at this and the number of the request.
pub(super) const RANGE_END: u64 = 1_000_000;

/// A connection is given up when its node has been silent for so long, and some time to spare.
const SILENCE_US: u64 = 2_500_000;

/// The longest way of a request to a node, with what may keep it up.
const UNDER_WAY_US: u64 = 60_000;

/// What has become of a request, as its client was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Once,
    Never,
    /// Its client was told that it is in doubt, or has gone.
    Unknown,
}

/// A request with a number.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) seat: usize,
    pub(super) at_us: u64,
    /// The settings that held then.
    pub(super) epoch: usize,
    pub(super) database: u32,
    /// For each shard that it concerns, what its node is to execute for it: all words but those that may differ.
    pub(super) parts: BTreeMap<usize, Vec<Vec<String>>>,
    /// By shard.
    pub(super) fates: BTreeMap<usize, Fate>,
    /// Its client was told that its connection was lost.
    pub(super) is_lost: bool,
    /// Whether it may follow a redirect, as a transaction does.
    pub(super) may_move: bool,
}

/// Something that may cost acknowledged writes.
#[derive(Debug)]
struct Peril {
    /// `None`: all nodes that have had the slots.
    node: Option<NodeIndex>,
    slots: BTreeSet<u16>,
    from_us: u64,
    to_us: u64,
}

/// How often what was to happen has happened.
#[derive(Debug, Default)]
pub(super) struct Samples {
    /// By the kind of request: replies that are no errors, and those that are.
    pub(super) classes: BTreeMap<&'static str, (u64, u64)>,
    /// By the words that errors have in common.
    pub(super) errors: BTreeMap<&'static str, u64>,
    /// Faults of nodes that had keys then.
    pub(super) faults: BTreeMap<&'static str, u64>,
    pub(super) reloads: u64,
    /// Transactions that were undone by a change of what they watched.
    pub(super) undone: u64,
    /// Elements that waiters got, and those that were popped for clients that never got them.
    pub(super) served: u64,
    pub(super) orphaned: u64,
    /// Elements that were put back.
    pub(super) returned: u64,
    /// Acknowledged writes that are not there any more, which a fault excuses; and those that a fault would excuse.
    pub(super) lost: u64,
    pub(super) endangered: u64,
    /// Writes that were executed although their client was not told.
    pub(super) done_in_doubt: u64,
    /// Those of them whose connection was lost: the others were late.
    pub(super) done_when_lost: u64,
    /// Errors of connections that had been half open for a while when they were used at last.
    pub(super) by_half_open: u64,
    /// Replies about slots without a fault, and all.
    pub(super) unexcused: u64,
    pub(super) all: u64,
    pub(super) executions: u64,
    pub(super) vanished: u64,
    pub(super) longest_us: u64,
    /// Orders that were answered, and large requests that a node has executed.
    pub(super) orders: u64,
    pub(super) large: u64,
}

impl Samples {
    pub(super) fn add(&mut self, other: &Self) {
        for (class, (answered, failed)) in &other.classes {
            let sum = self.classes.entry(class).or_default();
            *sum = (sum.0 + answered, sum.1 + failed);
        }
        other.errors.iter().for_each(|(error, count)| *self.errors.entry(error).or_default() += count);
        other.faults.iter().for_each(|(fault, count)| *self.faults.entry(fault).or_default() += count);
        self.reloads += other.reloads;
        self.undone += other.undone;
        self.served += other.served;
        self.orphaned += other.orphaned;
        self.returned += other.returned;
        self.lost += other.lost;
        self.endangered += other.endangered;
        self.done_in_doubt += other.done_in_doubt;
        self.done_when_lost += other.done_when_lost;
        self.by_half_open += other.by_half_open;
        self.unexcused += other.unexcused;
        self.all += other.all;
        self.executions += other.executions;
        self.vanished += other.vanished;
        self.orders += other.orders;
        self.large += other.large;
        self.longest_us = self.longest_us.max(other.longest_us);
    }

    pub(super) fn error(&self, words: &str) -> u64 {
        self.errors.get(words).copied().unwrap_or(0)
    }
}

/// The settings were changed before anything was sent.
const CHANGED: &str = "-ERR the nodes were changed meanwhile; try again";

/// The kinds of errors that clients may get here, by words of theirs, and what they say of their requests.
const ERRORS: [(&str, Fate); 13] = [
    ("may or may not have been executed", Fate::Unknown),
    ("the command was not sent", Fate::Never),
    ("the transaction was not executed", Fate::Never),
    (CHANGED, Fate::Never),
    ("-MOVED ", Fate::Never),
    ("-ASK ", Fate::Never),
    ("-TRYAGAIN ", Fate::Never),
    ("-CLUSTERDOWN ", Fate::Never),
    ("-LOADING ", Fate::Never),
    ("-READONLY ", Fate::Never),
    ("-NOSCRIPT ", Fate::Never),
    ("-EXECABORT ", Fate::Never),
    ("-UNBLOCKED ", Fate::Never),
];

/// What an error says. `None`: no client may get it.
pub(super) fn judge(error: &str) -> Option<(&'static str, Fate)> {
    ERRORS
        .iter()
        .copied()
        .find(|(words, _)| if words.starts_with('-') { error.starts_with(words) } else { error.contains(words) })
}

/// The numbers of requests in a word.
pub(super) fn numbers(word: &[u8]) -> impl Iterator<Item = u64> {
    let text = String::from_utf8_lossy(word).into_owned();
    let found: Vec<u64> = text.split([';', '}']).filter_map(|part| part.strip_prefix('t')?.parse().ok()).collect();
    found.into_iter()
}

fn numbers_of(args: Args<'_>) -> BTreeSet<u64> {
    let mut all: BTreeSet<u64> = args.iter().flat_map(numbers).collect();
    if matches!(args.name(), b"GETRANGE" | b"LRANGE") {
        let end = args.get(3).and_then(|word| std::str::from_utf8(word).ok()?.parse::<u64>().ok());
        all.extend(end.and_then(|end| end.checked_sub(RANGE_END)));
    }
    all
}

pub(super) struct Books {
    pub(super) context: String,
    pub(super) windows: HarmWindows,
    perils: Vec<Peril>,
    /// When the world has said that writes to which slots may be lost.
    admitted: Vec<(u64, BTreeSet<u16>)>,
    /// Slots that were told to move.
    pub(super) moved: BTreeSet<u16>,
    /// And to which nodes.
    targets: BTreeSet<(NodeIndex, u16)>,
    pub(super) asked: BTreeMap<u64, Asked>,
    next_number: u64,
    executions: Vec<Execution>,
    /// By the number of their request, in order.
    of_request: BTreeMap<u64, Vec<usize>>,
    /// By element: what took it, and who got it.
    pops: BTreeMap<u64, Vec<usize>>,
    got: BTreeMap<u64, Vec<usize>>,
    returns: BTreeMap<u64, u64>,
    /// Hash tags of keys that a node has changed that did not have them.
    pub(super) foreign: BTreeSet<String>,
    /// Over which connections requests for keys of a hash tag were sent, and when.
    sent: BTreeMap<String, Vec<(u64, ConnectionId)>>,
    /// Connections that are half open: nothing comes over them any more, from whenever they are used next.
    half_open: BTreeSet<ConnectionId>,
    /// When workers were given other settings.
    reloads_us: Vec<u64>,
    /// Servers may say that keys are elsewhere.
    is_cluster: bool,
    /// When which nodes were held back.
    pub(super) holds: Vec<Hold>,
    pub(super) seen: Samples,
}

impl Books {
    pub(super) fn new(context: String, terms: HarmTerms, is_cluster: bool) -> Self {
        Self {
            context,
            windows: HarmWindows::new(terms),
            perils: Vec::new(),
            admitted: Vec::new(),
            moved: BTreeSet::new(),
            targets: BTreeSet::new(),
            asked: BTreeMap::new(),
            next_number: 0,
            executions: Vec::new(),
            of_request: BTreeMap::new(),
            pops: BTreeMap::new(),
            got: BTreeMap::new(),
            returns: BTreeMap::new(),
            foreign: BTreeSet::new(),
            sent: BTreeMap::new(),
            half_open: BTreeSet::new(),
            reloads_us: Vec::new(),
            is_cluster,
            holds: Vec::new(),
            seen: Samples::default(),
        }
    }

    /// A slot is told to move to a node.
    pub(super) fn note_move(&mut self, slot: u16, to: NodeIndex) {
        self.moved.insert(slot);
        self.targets.insert((to, slot));
    }

    /// The slots that were told to move to a node: requests that follow them wait for it.
    pub(super) fn moved_to(&self, node: NodeIndex) -> impl Iterator<Item = u16> {
        self.targets.range((node, 0)..=(node, u16::MAX)).map(|(_, slot)| *slot)
    }

    /// A worker is given other settings.
    pub(super) fn note_reload(&mut self, now_us: u64) {
        self.reloads_us.push(now_us);
    }

    /// Whether an error of this kind may come now at all to a request that was asked then, whatever faults there are.
    pub(super) fn may_say(&self, words: &str, since_us: u64) -> bool {
        match words {
            "-MOVED " | "-ASK " | "-TRYAGAIN " | "-CLUSTERDOWN " => self.is_cluster,
            CHANGED => self.reloads_us.iter().any(|reload_us| *reload_us >= since_us),
            _ => true,
        }
    }

    /// Whether a key has been written to since then.
    pub(super) fn was_written(&self, database: u32, key: &str, since_us: u64) -> bool {
        let is_write = |execution: &&Execution| {
            let args = execution.args.as_args();
            let is_it = execution.database == database && args.get(1) == Some(key.as_bytes());
            is_it && !execution.is_refused && args.name().eq_ignore_ascii_case(b"SET")
        };
        self.executions.iter().rev().take_while(|execution| execution.at_us >= since_us).any(|one| is_write(&one))
    }

    /// The same, or a server that is another shard's since, or a slot that is elsewhere.
    pub(super) fn was_touched(&self, database: u32, key: &str, since_us: u64) -> bool {
        self.was_written(database, key, since_us)
            || self.reloads_us.iter().any(|reload_us| *reload_us >= since_us)
            || self.moved.contains(&slot_of(key.as_bytes()))
    }

    pub(super) fn number(&mut self, asked: Asked) -> u64 {
        self.next_number += 1;
        self.asked.insert(self.next_number, asked);
        self.next_number
    }

    pub(super) fn next_number(&self) -> u64 {
        self.next_number + 1
    }

    /// A request goes to a node of a shard.
    pub(super) fn note_sent(&mut self, request: Args<'_>, shard: usize, connection: ConnectionId, now_us: u64) {
        let words: BTreeSet<String> = request.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect();
        let mut tags: Vec<&str> = words.iter().filter_map(|word| tag_of(word)).collect();
        let name = name_of(shard);
        if tags.is_empty() {
            tags.push(&name);
        }
        for tag in tags {
            self.sent.entry(tag.to_owned()).or_default().push((now_us, connection));
        }
    }

    /// Whether something without keys has gone to a shard of these lately over a connection that is half open: what is behind it waits for it,
    /// as a transaction does until it is known that the node takes MULTI.
    pub(super) fn was_half_open_before(&self, slots: &BTreeSet<u16>, from_us: u64) -> bool {
        let names: BTreeSet<String> = slots.iter().map(|slot| name_of(shard_of(*slot))).collect();
        self.was_half_open(names.iter(), from_us.saturating_sub(SILENCE_US))
    }

    /// These connections are half open.
    pub(super) fn note_half_open(&mut self, connections: impl Iterator<Item = ConnectionId>) {
        self.half_open.extend(connections);
    }

    /// Whether a request for keys of one of these hash tags has gone since then over a connection that is half open.
    pub(super) fn was_half_open<'a>(&self, mut tags: impl Iterator<Item = &'a String>, from_us: u64) -> bool {
        tags.any(|tag| {
            let sent = self.sent.get(tag).into_iter().flatten().rev().take_while(|(at_us, _)| *at_us >= from_us);
            sent.into_iter().any(|(_, connection)| self.half_open.contains(connection))
        })
    }

    /// A fault of a node. `slots`: those that it serves.
    pub(super) fn note_fault(&mut self, now_us: u64, fault: Fault, lag_us: u64, slots: &BTreeSet<u16>) {
        self.windows.note(now_us, fault, |_| slots.clone());
        let (node, from_us, to_us) = match fault {
            Fault::Crash(node, for_us) | Fault::Unreachable(node, for_us) | Fault::Isolated(node, for_us) => {
                (Some(node), now_us.saturating_sub(lag_us), now_us + for_us)
            }
            Fault::RestartEmpty(_) => (None, 0, now_us),
            _ => return,
        };
        self.perils.push(Peril { node, slots: slots.clone(), from_us, to_us });
    }

    pub(super) fn note_lost(&mut self, now_us: u64, slots: &BTreeSet<u16>) {
        self.admitted.push((now_us, slots.clone()));
    }

    /// Whether a fault excuses that what was executed is not there any more.
    fn is_in_peril(&self, execution: &Execution, slot: u16) -> bool {
        let Execution { node, at_us, is_owner, .. } = *execution;
        let is_admitted = self.admitted.iter().any(|(lost_us, slots)| at_us <= *lost_us && slots.contains(&slot));
        let is_struck = |peril: &Peril| {
            peril.slots.contains(&slot)
                && peril.node.is_none_or(|struck| struck == node)
                && (peril.from_us..=peril.to_us).contains(&at_us)
        };
        !is_owner || is_admitted && (self.moved.contains(&slot) || self.perils.iter().any(is_struck))
    }

    /// Nodes have been asked. `epochs`: the settings so far, and the number of those that hold at each seat.
    pub(super) fn note_executions(&mut self, journal: Vec<Execution>, epochs: &[Settings], at_seats: &[usize]) {
        for execution in journal {
            self.seen.executions += 1;
            self.seen.large += u64::from(execution.args.as_args().iter().any(|word| word.len() > LARGE));
            let place = self.executions.len();
            let args = execution.args.as_args();
            let name = args.name().to_ascii_uppercase();
            if !execution.is_owner && !execution.is_refused {
                let key = args.get(if name.starts_with(b"EVAL") { 3 } else { 1 }).map(String::from_utf8_lossy);
                self.foreign.extend(key.as_deref().and_then(tag_of).map(str::to_owned));
            }
            if matches!(&name[..], b"BLPOP" | b"LPOP") {
                if !execution.is_refused {
                    for number in elements(&execution.reply) {
                        self.pops.entry(number).or_default().push(place);
                    }
                }
            } else {
                for number in numbers_of(args) {
                    self.check_execution(number, &execution, epochs, at_seats);
                    if name == b"LPUSH" {
                        *self.returns.entry(number).or_default() += 1;
                    } else {
                        self.of_request.entry(number).or_default().push(place);
                    }
                }
            }
            self.executions.push(execution);
        }
    }

    /// A node has been asked for something: was it asked for there, and so?
    fn check_execution(&self, number: u64, execution: &Execution, epochs: &[Settings], at_seats: &[usize]) {
        let context = &self.context;
        let Some(asked) = self.asked.get(&number) else { panic!("{context}: no client has asked {execution:?}") };
        assert_eq!(execution.database, asked.database, "{context}: {execution:?} of {asked:?}");
        let words: Vec<String> =
            execution.args.as_args().iter().map(|w| String::from_utf8_lossy(w).into_owned()).collect();
        let is_back = words[0] == "LPUSH";
        let is_part = |wanted: &Vec<String>| wanted[..] == words[..] || is_script(wanted, &words);
        let mut shards =
            asked.parts.iter().filter(|(_, parts)| is_back || parts.iter().any(is_part)).map(|(shard, _)| *shard);
        let Some(shard) = shards.next() else { panic!("{context}: {words:?} is not what was asked: {asked:?}") };
        let is_held = |hold: &Hold| {
            let resumed_us = hold.resumed_us.unwrap_or(u64::MAX);
            hold.shard == shard && hold.answered_us < asked.at_us && execution.at_us < resumed_us
        };
        // What goes back may be on its way when the order is answered.
        let is_under_way = |hold: &Hold| execution.at_us < hold.answered_us + UNDER_WAY_US;
        let hold = self.holds.iter().find(|hold| is_held(hold)).filter(|hold| !is_back || !is_under_way(hold));
        assert!(hold.is_none(), "{context}: {words:?} was executed while its node was held: {hold:?}, {asked:?}");
        let held = asked.epoch..=at_seats[asked.seat];
        // What goes back goes to where the settings say by then, whenever the element was asked for; it may be on its way when they change.
        let last = at_seats.iter().min().map_or(0, |epoch| epoch.saturating_sub(1));
        let held = if is_back { last..=epochs.len() - 1 } else { held };
        let is_right = held.clone().any(|epoch| epochs[epoch].0[shard] == execution.node);
        let is_named = || asked.may_move && self.is_named(number, execution.node);
        assert!(
            is_right || is_named(),
            "{context}: {words:?} has come to {} under {held:?} of {epochs:?}: {asked:?}",
            execution.node
        );
    }

    /// Whether a node has sent the request on to another one.
    fn is_named(&self, number: u64, node: NodeIndex) -> bool {
        let suffix = format!(":{}\r\n", 7_000 + node);
        let refused = self.of_request.get(&number).into_iter().flatten().map(|place| &self.executions[*place]);
        refused.filter(|refused| refused.is_refused).any(|refused| refused.reply.ends_with(suffix.as_bytes()))
    }

    /// The executions of a request that were not refused.
    fn done(&self, number: u64) -> Vec<&Execution> {
        let of = self.of_request.get(&number).into_iter().flatten().map(|place| &self.executions[*place]);
        of.filter(|execution| !execution.is_refused).collect()
    }

    /// A request was answered. `reply`: what its client got, if that is the reply of one execution.
    pub(super) fn tell(&mut self, number: u64, fates: BTreeMap<usize, Fate>, reply: Option<&[u8]>) {
        let context = &self.context;
        if let Some(reply) = reply {
            let of = self.of_request.get(&number).into_iter().flatten().map(|place| &self.executions[*place]);
            let is_refusal = reply.starts_with(b"-");
            // One of several parts.
            let text = String::from_utf8_lossy(reply);
            let words =
                text.split(" (1 of 2 nodes failed)").next().unwrap_or_default().split(" (2 of 2 nodes failed)").next();
            let wanted = if is_refusal {
                format!("{}\r\n", words.unwrap_or_default().trim_end()).into_bytes()
            } else {
                reply.to_vec()
            };
            let is_it =
                of.filter(|execution| execution.is_refused == is_refusal).any(|execution| execution.reply == wanted);
            assert!(
                is_it,
                "{context}: {text:?} was told for {:?}, of which is known {:?}",
                self.asked[&number],
                self.done(number)
            );
        }
        let asked = self.asked.get_mut(&number).expect("it was asked");
        asked.fates = fates;
    }

    /// A client has got an element.
    pub(super) fn note_got(&mut self, element: u64, client: usize) {
        assert!(self.pops.contains_key(&element), "{}: {element} was given and not popped", self.context);
        self.seen.served += 1;
        self.got.entry(element).or_default().push(client);
    }

    /// Whether errors about these slots are excused between two times.
    pub(super) fn had(&self, harms: &[Harm], slots: &BTreeSet<u16>, from_us: u64, to_us: u64) -> bool {
        let slots: Vec<u16> = slots.iter().copied().collect();
        self.windows.had(harms, &slots, from_us, to_us)
    }

    /// Requests whose clients have got everything, or have gone: executed as they were told?
    pub(super) fn check_counts(&mut self) {
        let (mut in_doubt, mut when_lost) = (0, 0);
        for (number, asked) in &self.asked {
            let done = self.done(*number);
            for (shard, parts) in &asked.parts {
                for wanted in parts.iter().filter(|wanted| !is_read(wanted)) {
                    let is_it = |execution: &&&Execution| {
                        let words: Vec<_> = execution.args.as_args().iter().map(String::from_utf8_lossy).collect();
                        wanted.iter().eq(words.iter())
                            || is_script(wanted, &words.iter().map(|w| w.to_string()).collect::<Vec<_>>())
                    };
                    let count = done.iter().filter(is_it).count();
                    let fate = asked.fates.get(shard).copied().unwrap_or(Fate::Unknown);
                    let is_true = match fate {
                        Fate::Once => count == 1,
                        Fate::Never => count == 0,
                        Fate::Unknown => count <= 1,
                    };
                    in_doubt += u64::from(fate == Fate::Unknown && count == 1);
                    when_lost += u64::from(fate == Fate::Unknown && count == 1 && asked.is_lost);
                    assert!(
                        is_true,
                        "{}: told as {fate:?} and executed {count} times: {number} {asked:?} {done:?}",
                        self.context
                    );
                }
            }
        }
        self.seen.done_in_doubt += in_doubt;
        self.seen.done_when_lost += when_lost;
    }

    /// Compares a list with what its clients were told of what they have appended.
    pub(super) fn check_log(&mut self, key: &str, shard: usize, appended: &[u64], found: &[u64]) {
        let slot = slot_of(key.as_bytes());
        let told_once = |number: &&u64| self.asked[*number].fates.get(&shard) == Some(&Fate::Once);
        let certain: Vec<u64> = found.iter().filter(told_once).copied().collect();
        assert!(certain.is_sorted(), "{}: {key} is out of order: {found:?}", self.context);
        let known: BTreeSet<u64> = appended.iter().copied().collect();
        assert!(
            found.iter().all(|number| known.contains(number)),
            "{}: {key} has others' elements: {found:?}",
            self.context
        );
        for number in appended {
            let count = found.iter().filter(|found| *found == number).count();
            let done = self.done(*number);
            let is_endangered = done.iter().any(|execution| self.is_in_peril(execution, slot));
            let is_done = !done.is_empty();
            let is_true = count == usize::from(is_done) || count == 0 && is_endangered;
            assert!(
                is_true,
                "{}: {number} is in {key} {count} times: {done:?}, {:?}",
                self.context, self.asked[number]
            );
            if told_once(&number) {
                self.seen.endangered += u64::from(is_endangered);
                self.seen.lost += u64::from(count == 0);
            }
        }
    }

    /// What has become of the elements of a queue. `left`: those that are still there.
    pub(super) fn check_queue(&mut self, key: &str, pushed: &[u64], left: &[u64]) {
        let slot = slot_of(key.as_bytes());
        for element in pushed {
            let done = self.done(*element);
            let pops: Vec<&Execution> =
                self.pops.get(element).into_iter().flatten().map(|place| &self.executions[*place]).collect();
            let endangered = |execution: &&Execution| self.is_in_peril(execution, slot);
            let is_endangered = done.iter().any(&endangered) || pops.iter().any(&endangered);
            let got = self.got.get(element).map_or(0, Vec::len);
            let returned = self.returns.get(element).copied().unwrap_or(0) as usize;
            let is_left = left.iter().filter(|left| *left == element).count();
            let about = format!(
                "{}: {element} of {key}: {done:?}, {pops:?}, got {got}, put back {returned}, left {is_left}",
                self.context
            );
            assert!(got <= 1 || is_endangered, "two have got the same element: {about}");
            assert!(got + returned <= pops.len(), "{about}");
            if is_endangered {
                continue;
            }
            assert_eq!(done.len() + returned, pops.len() + is_left, "an element is lost or doubled: {about}");
            let orphaned = pops.len() - got - returned;
            // A client that leaves is no excuse: what was popped for it goes back.
            let is_excused =
                |pop: &&&Execution| self.had(&[Harm::Fails], &BTreeSet::from([slot]), pop.at_us, pop.at_us + 3_000_000);
            let excused = pops.iter().filter(is_excused).count();
            assert!(orphaned <= excused, "an element was taken and reached no client: {about}");
            self.seen.orphaned += orphaned as u64;
            self.seen.returned += returned as u64;
        }
    }

    pub(super) fn note_error(&mut self, words: &'static str) {
        *self.seen.errors.entry(words).or_default() += 1;
    }

    pub(super) fn note_class(&mut self, class: &'static str, is_error: bool) {
        let counts = self.seen.classes.entry(class).or_default();
        if is_error { counts.1 += 1 } else { counts.0 += 1 }
    }
}

/// The elements of a list in a reply to a pop.
pub(super) fn elements(reply: &[u8]) -> Vec<u64> {
    match Value::parse(reply) {
        Ok(Value::Array(parts)) => parts.iter().skip(1).flat_map(words_of).collect(),
        Ok(other) => words_of(&other),
        Err(_) => Vec::new(),
    }
}

fn words_of(value: &Value) -> Vec<u64> {
    if let Value::Bulk(word) = value { numbers(word).collect() } else { Vec::new() }
}

/// The hash tag of a key, with its braces.
pub(super) fn tag_of(key: &str) -> Option<&str> {
    key.find('}').map(|end| &key[..=end])
}

fn is_read(words: &[String]) -> bool {
    matches!(words[0].as_str(), "GETRANGE" | "LRANGE" | "MGET")
}

/// A script may be sent as its text or as its hash.
fn is_script(wanted: &[String], words: &[String]) -> bool {
    let is_script = |words: &[String]| words[0].starts_with("EVAL");
    is_script(wanted) && is_script(words) && wanted[2..] == words[2..]
}

/// Of a request for several shards, what an error says of each: it names the node that it is about.
pub(super) fn fates_of(shards: impl Iterator<Item = usize>, error: &str, fate: Fate) -> BTreeMap<usize, Fate> {
    let shards: Vec<usize> = shards.collect();
    let is_one = shards.len() == 1;
    let named = (0..SHARDS).find(|shard| error.contains(&format!("node {} ", name_of(*shard))));
    let of = |shard: usize| if is_one || named == Some(shard) { fate } else { Fate::Unknown };
    shards.into_iter().map(|shard| (shard, of(shard))).collect()
}
