//! The store that a history is compared with: registers, counters and lists, by number.

use std::collections::{BTreeMap, VecDeque};

/// One thing that happens to one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// `GET`.
    Get {
        /// Which key.
        key: u32,
    },
    /// `SET`.
    Set {
        /// Which key.
        key: u32,
        /// To what.
        value: u64,
    },
    /// `SET ... GET`: it gives what was there.
    Swap {
        /// Which key.
        key: u32,
        /// To what.
        value: u64,
    },
    /// A transaction under `WATCH` that replaces what was read before. One that has no result says nothing about the key.
    CompareAndSet {
        /// Which key.
        key: u32,
        /// What was read.
        expected: Option<u64>,
        /// What takes its place.
        value: u64,
    },
    /// `INCR`.
    Increment {
        /// Which key.
        key: u32,
    },
    /// `RPUSH` of one element.
    Push {
        /// Which key.
        key: u32,
        /// The element.
        value: u64,
    },
    /// `LPOP`, or `BLPOP` when it ends: with nothing only while the list is empty.
    Pop {
        /// Which key.
        key: u32,
    },
    /// The same where the element may be put back, as by a pooler whose client has gone meanwhile.
    Take {
        /// Which key.
        key: u32,
        /// A number that no other has.
        ticket: u64,
    },
    /// The element that was taken with this number, if one was, is the first again.
    PutBack {
        /// Which key.
        key: u32,
        /// The number.
        ticket: u64,
    },
}

/// What a client was told of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// `OK`.
    Done,
    /// A value, or that there is none.
    Value(Option<u64>),
    /// A number.
    Count(u64),
    /// Whether the transaction was executed.
    Swapped(bool),
    /// Whatever it was, the client does not know it.
    Any,
}

impl Action {
    /// The key that it is about.
    pub fn key(&self) -> u32 {
        match self {
            Action::Get { key }
            | Action::Set { key, .. }
            | Action::Swap { key, .. }
            | Action::CompareAndSet { key, .. }
            | Action::Increment { key }
            | Action::Push { key, .. }
            | Action::Pop { key }
            | Action::Take { key, .. }
            | Action::PutBack { key, .. } => *key,
        }
    }
}

/// What a key holds.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Held {
    Register(u64),
    Counter(u64),
    List(VecDeque<u64>),
}

/// All keys, and elements that were taken and may come back.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Store(BTreeMap<u32, Held>, BTreeMap<u64, u64>);

impl Store {
    /// Does it. `false`: the answer would not have been this one, and nothing may be said of the store any more.
    pub(super) fn apply(&mut self, action: &Action, answer: &Answer) -> bool {
        let held = self.0.get_mut(&action.key());
        let is = |right: Answer| *answer == Answer::Any || *answer == right;
        match *action {
            Action::Get { .. } => match held {
                None => is(Answer::Value(None)),
                Some(Held::Register(value)) => is(Answer::Value(Some(*value))),
                Some(Held::Counter(value)) => is(Answer::Value(Some(*value))),
                Some(Held::List(_)) => false,
            },
            Action::Set { key, value } => {
                self.0.insert(key, Held::Register(value));
                is(Answer::Done)
            }
            Action::Swap { key, value } => {
                let before = self.0.insert(key, Held::Register(value));
                match before {
                    None => is(Answer::Value(None)),
                    Some(Held::Register(before)) => is(Answer::Value(Some(before))),
                    Some(_) => false,
                }
            }
            Action::CompareAndSet { key, expected, value } => {
                let found = match held {
                    Some(Held::Register(value)) => Some(*value),
                    _ => None,
                };
                match answer {
                    Answer::Swapped(false) => true,
                    Answer::Swapped(true) if found != expected => false,
                    Answer::Swapped(true) => {
                        self.0.insert(key, Held::Register(value));
                        true
                    }
                    Answer::Any => {
                        if found == expected {
                            self.0.insert(key, Held::Register(value));
                        }
                        true
                    }
                    _ => false,
                }
            }
            Action::Increment { key } => {
                let count = match held {
                    None => 1,
                    Some(Held::Counter(count)) => *count + 1,
                    Some(_) => return false,
                };
                self.0.insert(key, Held::Counter(count));
                is(Answer::Count(count))
            }
            Action::Push { key, value } => {
                let list = self.0.entry(key).or_insert_with(|| Held::List(VecDeque::new()));
                let Held::List(list) = list else { return false };
                list.push_back(value);
                is(Answer::Count(list.len() as u64))
            }
            Action::Pop { key } => is(Answer::Value(self.pop(key))),
            Action::Take { key, ticket } => {
                if let Some(element) = self.pop(key) {
                    self.1.insert(ticket, element);
                }
                true
            }
            Action::PutBack { key, ticket } => {
                // Without an element it says nothing that was not so without it.
                let Some(element) = self.1.remove(&ticket) else { return false };
                let list = self.0.entry(key).or_insert_with(|| Held::List(VecDeque::new()));
                let Held::List(list) = list else { return false };
                list.push_front(element);
                true
            }
        }
    }

    fn pop(&mut self, key: u32) -> Option<u64> {
        let Some(Held::List(list)) = self.0.get_mut(&key) else { return None };
        let element = list.pop_front();
        if list.is_empty() {
            self.0.remove(&key);
        }
        element
    }
}
