//! A client of the world: what it asks, what it waits for, and what its replies say about its requests.

use super::Chance;
use respool_testkit::linear::{Action, Answer, Operation, talk};
use respool_wire::{ReplyLimits, ReplyScanner, Scan, encode_request};
use std::collections::{BTreeSet, VecDeque};

/// Keys of one group, by kind: two registers, two counters, two lists.
const KEYS: u32 = 6;
/// Groups of keys, each on one node.
pub(crate) const GROUPS: u32 = 3;

/// Bytes of an argument with which a request is large.
pub(crate) const LARGE: usize = 40;

/// What the next reply belongs to.
enum Expected {
    /// The request with this number.
    Reply(usize),
    /// `OK` or `QUEUED`, or an error that is told again at the end.
    Step,
    /// The result of the transaction with this number.
    Result(usize),
    /// The answer to `WATCH`.
    Watched,
    /// What is read under it: the request's number, its key and what shall take its place.
    Read(usize, u32, u64),
}

pub(crate) struct Client {
    pub(crate) number: u32,
    pub(crate) to_send: Vec<u8>,
    pub(crate) received: Vec<u8>,
    scanner: ReplyScanner,
    expected: VecDeque<Expected>,
    pub(crate) is_reading: bool,
    pub(crate) may_read: bool,
    /// It waits for a reply before it asks again.
    is_alone: bool,
    /// The WATCH of its swap has failed, so the client must not send the transaction, as at a server.
    is_unwatched: bool,
}

/// What all clients have asked, and when.
#[derive(Default)]
pub(crate) struct Record {
    pub(crate) history: Vec<Operation>,
    /// Requests that did not happen, as their clients were told.
    pub(crate) refused: Vec<usize>,
    pub(crate) time: u64,
    next_value: u64,
    /// Part of every key's name: old keys are left alone.
    pub(crate) epoch: u32,
    pub(crate) answered: usize,
    pub(crate) unknown: usize,
    pub(crate) conflicts: usize,
    pub(crate) swaps: usize,
    pub(crate) elements: usize,
    /// Requests that are large, how many of them were answered, and what guests were told that they may not do.
    are_large: BTreeSet<usize>,
    pub(crate) large: usize,
    pub(crate) forbidden: usize,
}

impl Record {
    fn tick(&mut self) -> u64 {
        self.time += 1;
        self.time
    }

    fn value(&mut self) -> u64 {
        self.next_value += 1;
        self.next_value
    }

    fn begin(&mut self, client: u32, actions: Vec<Action>) -> usize {
        let called = self.tick();
        self.history.push(Operation { client, called, ended: None, actions });
        self.history.len() - 1
    }

    fn end(&mut self, request: usize, answers: Vec<Answer>) {
        let at = self.tick();
        self.answered += 1;
        self.history[request].ended = Some((at, answers));
    }

    /// The history without what did not happen. A pop of unknown outcome may have been put back: its client has gone.
    pub(crate) fn happened(&self) -> Vec<Operation> {
        let refused: std::collections::BTreeSet<usize> = self.refused.iter().copied().collect();
        let mut happened = Vec::new();
        for (place, operation) in self.history.iter().enumerate().filter(|(place, _)| !refused.contains(place)) {
            let ticket = place as u64;
            match (&operation.ended, &operation.actions[..]) {
                (None, &[Action::Pop { key }]) => {
                    for action in [Action::Take { key, ticket }, Action::PutBack { key, ticket }] {
                        happened.push(Operation { actions: vec![action], ..operation.clone() });
                    }
                }
                _ => happened.push(operation.clone()),
            }
        }
        happened
    }

    fn key(&self, group: u32, kind: u32, chance: &mut Chance) -> u32 {
        (self.epoch * GROUPS + group) * KEYS + kind * 2 + chance.below(2) as u32
    }
}

/// The name of a key: those of a group are on one node.
pub(crate) fn name(key: u32) -> String {
    format!("{{{}}}:{}", key / KEYS, key % KEYS)
}

/// A value, which is large now and then.
fn text(value: u64, request: usize, record: &mut Record, chance: &mut Chance) -> String {
    if !chance.one_in(4) {
        return value.to_string();
    }
    record.are_large.insert(request);
    format!("{value:0width$}", width = LARGE + 1 + chance.below(6 * LARGE))
}

pub(crate) fn request(words: &[&str]) -> Vec<u8> {
    let mut out = Vec::new();
    encode_request(&mut out, words.iter().map(|word| word.as_bytes()));
    out
}

const REGISTER: u32 = 0;
const COUNTER: u32 = 1;
const LIST: u32 = 2;

impl Client {
    pub(crate) fn new(number: u32, is_guest: bool) -> Client {
        let mut this = Client {
            number,
            to_send: Vec::new(),
            received: Vec::new(),
            scanner: ReplyScanner::default(),
            expected: VecDeque::new(),
            is_reading: true,
            may_read: true,
            is_alone: false,
            is_unwatched: false,
        };
        if is_guest {
            this.say(&["AUTH", "guest", "any"]);
            this.expected.push_back(Expected::Step);
        }
        this
    }

    pub(crate) fn waits(&self) -> bool {
        !self.expected.is_empty()
    }

    pub(crate) fn may_ask(&self) -> bool {
        !self.is_alone && self.expected.len() < 6
    }

    fn say(&mut self, words: &[&str]) {
        encode_request(&mut self.to_send, words.iter().map(|word| word.as_bytes()));
    }

    /// The same of one key, perhaps by a script.
    fn say_or_run(&mut self, words: &[&str], chance: &mut Chance) {
        match words {
            [name, key, rest @ ..] if chance.one_in(3) => self.say(&[&["EVAL", name, "1", key], rest].concat()),
            _ => self.say(words),
        }
    }

    /// Asks for something.
    pub(crate) fn ask(&mut self, record: &mut Record, chance: &mut Chance) {
        let group = chance.below(GROUPS as usize) as u32;
        let (register, counter) = (record.key(group, REGISTER, chance), record.key(group, COUNTER, chance));
        let list = record.key(group, LIST, chance);
        match chance.below(12) {
            0 | 1 => {
                let request = record.begin(self.number, vec![Action::Get { key: register }]);
                self.say_or_run(&["GET", &name(register)], chance);
                self.expected.push_back(Expected::Reply(request));
            }
            2 => {
                let value = record.value();
                let request = record.begin(self.number, vec![Action::Set { key: register, value }]);
                self.say_or_run(&["SET", &name(register), &text(value, request, record, chance)], chance);
                self.expected.push_back(Expected::Reply(request));
            }
            3 => {
                let value = record.value();
                let request = record.begin(self.number, vec![Action::Swap { key: register, value }]);
                self.say_or_run(&["SET", &name(register), &text(value, request, record, chance), "GET"], chance);
                self.expected.push_back(Expected::Reply(request));
            }
            4 | 5 => {
                let request = record.begin(self.number, vec![Action::Increment { key: counter }]);
                self.say_or_run(&["INCR", &name(counter)], chance);
                self.expected.push_back(Expected::Reply(request));
            }
            6 => {
                let value = record.value();
                let request = record.begin(self.number, vec![Action::Push { key: list, value }]);
                self.say_or_run(&["RPUSH", &name(list), &text(value, request, record, chance)], chance);
                self.expected.push_back(Expected::Reply(request));
            }
            7 => {
                let request = record.begin(self.number, vec![Action::Pop { key: list }]);
                self.say(&["BLPOP", &name(list), "0.01"]);
                self.expected.push_back(Expected::Reply(request));
            }
            8 | 9 => {
                let value = record.value();
                let actions = vec![
                    Action::Swap { key: register, value },
                    Action::Increment { key: counter },
                    Action::Push { key: list, value },
                ];
                let request = record.begin(self.number, actions);
                self.say(&["MULTI"]);
                self.say_or_run(&["SET", &name(register), &value.to_string(), "GET"], chance);
                self.say_or_run(&["INCR", &name(counter)], chance);
                self.say_or_run(&["RPUSH", &name(list), &value.to_string()], chance);
                self.say(&["EXEC"]);
                (0..4).for_each(|_| self.expected.push_back(Expected::Step));
                self.expected.push_back(Expected::Result(request));
            }
            _ => {
                self.say(&["WATCH", &name(register)]);
                self.say_or_run(&["GET", &name(register)], chance);
                let request = record.begin(self.number, vec![Action::Get { key: register }]);
                self.expected.push_back(Expected::Watched);
                self.expected.push_back(Expected::Read(request, register, record.value()));
                self.is_alone = true;
            }
        }
    }

    /// Takes all whole replies that have come.
    pub(crate) fn take(&mut self, record: &mut Record) {
        loop {
            let (limits, mut scanner) = (ReplyLimits::default(), std::mem::take(&mut self.scanner));
            // Only whole replies are looked at, from their beginning.
            let Ok(Scan::Complete { consumed, .. }) = scanner.scan(&self.received, &limits) else { return };
            let reply: Vec<u8> = self.received.drain(..consumed).collect();
            let expected = self.expected.pop_front();
            let text = String::from_utf8_lossy(&reply).into_owned();
            let Some(expected) = expected else { panic!("client {} got {text:?} without having asked", self.number) };
            self.learn(expected, &text, record);
        }
    }

    fn learn(&mut self, expected: Expected, reply: &str, record: &mut Record) {
        match expected {
            Expected::Step => {
                let is_step = matches!(reply, "+OK\r\n" | "+QUEUED\r\n");
                assert!(is_step || is_trouble(reply), "client {} got {reply:?} within a transaction", self.number);
            }
            Expected::Watched => {
                self.is_unwatched = reply != "+OK\r\n";
                assert!(!self.is_unwatched || is_trouble(reply), "WATCH got {reply:?}");
            }
            Expected::Reply(request) => self.conclude(request, reply, record),
            Expected::Result(request) if reply == "*-1\r\n" => {
                assert!(is_swap(record, request), "a transaction without watched keys has a result: {reply:?}");
                record.conflicts += 1;
                self.is_alone = false;
                record.end(request, vec![Answer::Swapped(false)]);
            }
            Expected::Result(request) => {
                // Another transaction may have been asked for before the keys were watched.
                self.is_alone &= !is_swap(record, request);
                self.conclude(request, reply, record);
            }
            Expected::Read(request, key, value) => {
                self.conclude(request, reply, record);
                let read = record.history[request].ended.as_ref().filter(|_| !self.is_unwatched);
                let Some((_, answers)) = read else {
                    self.say(&["UNWATCH"]);
                    self.expected.push_back(Expected::Step);
                    self.is_alone = false;
                    return;
                };
                let [Answer::Value(expected)] = answers[..] else { panic!("GET got {answers:?}") };
                let request = record.begin(self.number, vec![Action::CompareAndSet { key, expected, value }]);
                self.say(&["MULTI"]);
                self.say(&["SET", &name(key), &value.to_string()]);
                self.say(&["EXEC"]);
                (0..2).for_each(|_| self.expected.push_back(Expected::Step));
                self.expected.push_back(Expected::Result(request));
            }
        }
    }

    fn conclude(&mut self, request: usize, reply: &str, record: &mut Record) {
        if reply.starts_with('-') {
            assert!(is_trouble(reply), "client {} got {reply:?}", self.number);
            record.forbidden += usize::from(reply.starts_with("-NOPERM "));
            match reply.contains("may or may not") || reply.contains("does not fit") {
                true => record.unknown += 1,
                false => record.refused.push(request),
            }
            return;
        }
        let actions = record.history[request].actions.clone();
        let mut rest = reply;
        if actions.len() > 1 || matches!(actions[..], [Action::CompareAndSet { .. }]) {
            let head = format!("*{}\r\n", actions.len());
            rest = reply.strip_prefix(&head).unwrap_or_else(|| panic!("a transaction got {reply:?}"));
        }
        let mut answers = Vec::new();
        for action in &actions {
            let (answer, behind) =
                talk::answer(action, &name(action.key()), rest).unwrap_or_else(|| panic!("{action:?} got {reply:?}"));
            record.swaps += usize::from(answer == Answer::Swapped(true));
            record.elements += usize::from(matches!((action, &answer), (Action::Pop { .. }, Answer::Value(Some(_)))));
            answers.push(answer);
            rest = behind;
        }
        assert!(rest.is_empty(), "{actions:?} got {reply:?}");
        record.large += usize::from(record.are_large.contains(&request));
        record.end(request, answers);
    }
}

fn is_swap(record: &Record, request: usize) -> bool {
    matches!(record.history[request].actions[..], [Action::CompareAndSet { .. }])
}

/// An error that a node in trouble explains.
fn is_trouble(reply: &str) -> bool {
    let known = [
        "-ERR node ",
        "-ERR the connection on which keys were watched is lost;",
        "-ERR the node's answer does not fit",
        "-ERR the nodes were changed meanwhile; try again",
        "-NOPERM ",
        "-EXECABORT Transaction discarded because of previous errors.",
        "-ERR all connections to node ",
        // Those to a former address are still let go, and the two that there may be are busy for as long as a request may wait.
        "-ERR blocking connections to node ",
        // Other settings held between WATCH and EXEC, which is not executed then.
        "-CROSSSLOT Watched keys and the transaction's keys are on different nodes",
    ];
    known.iter().any(|beginning| reply.starts_with(beginning))
}
