//! Callers of a simulated cluster, and what they know of their keys.
//!
//! A caller has two hash tags, of two shards, that no other caller uses. `x` and `y` hold who wrote them and when, `n` counts, and `log` names every
//! call that has appended to it: it tells in the end how often each was executed.

use crate::core::Ended;
use crate::{Command, Outcome, Reply, cmd};
use respool_route::cluster::slot_of;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

/// What has become of a call that appends, as its caller was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Never,
    Once,
    /// Its caller was not told, or was told that it is in doubt.
    Unknown,
}

/// The keys of one hash tag.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    pub(super) tag: String,
    /// What `x` and `y` are.
    pair: Option<String>,
    counter: i64,
    /// The length of the log.
    length: i64,
    /// What they are is not known any longer: they are not used again.
    pub(super) is_spoilt: bool,
}

impl Keys {
    pub(super) fn new(tag: String) -> Self {
        Self { tag, pair: None, counter: 0, length: 0, is_spoilt: false }
    }

    pub(super) fn key(&self, name: &str) -> String {
        format!("{}{name}", self.tag)
    }
}

/// What one request of a call does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Deed {
    Count,
    /// Appends this number to the log.
    Append(u64),
    /// Writes this into both of the pair.
    WriteBoth(String),
    /// With a number that makes it differ from all others.
    Read(u64),
    ReadBoth,
}

impl Deed {
    pub(super) fn command(&self, keys: &Keys) -> Command {
        let (x, y) = (keys.key("x"), keys.key("y"));
        match self {
            Self::Count => cmd("INCR").key(keys.key("n")),
            Self::Append(number) => cmd("APPEND").key(keys.key("log")).arg(entry(*number)),
            Self::WriteBoth(value) => cmd("MSET").arg([(x, value), (y, value)]),
            // Longer than any value.
            Self::Read(number) => cmd("GETRANGE").key(x).arg(0).arg(1_000_000 + number),
            Self::ReadBoth => cmd("MGET").key([x, y]),
        }
    }

    pub(super) fn writes(&self) -> bool {
        !matches!(self, Self::Read(_) | Self::ReadBoth)
    }

    /// Whether its request is told from all others by its arguments.
    pub(super) fn is_unique(&self) -> bool {
        matches!(self, Self::Append(_) | Self::WriteBoth(_) | Self::Read(_))
    }
}

fn entry(number: u64) -> String {
    format!("{number};")
}

/// What all callers were told.
#[derive(Default)]
pub(super) struct Ledger {
    /// By hash tag, the calls that append, in order.
    fates: BTreeMap<String, Vec<(u64, Fate)>>,
    /// Hash tags of which acknowledged writes may be lost.
    lost: BTreeSet<String>,
    acknowledged: u64,
    pub(super) unknown: u64,
    never: u64,
}

impl std::fmt::Debug for Ledger {
    /// Figures alone.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { acknowledged, unknown, never, lost, .. } = self;
        write!(f, "{acknowledged} acknowledged, {unknown} unknown, {never} never, {} hash tags lost", lost.len())
    }
}

impl Ledger {
    pub(super) fn note_lost(&mut self, keys: &mut Keys) {
        self.lost.insert(keys.tag.clone());
        keys.is_spoilt = true;
    }

    /// Also of keys that are not used any longer.
    pub(super) fn note_lost_slots(&mut self, slots: &BTreeSet<u16>) {
        let is_lost = |tag: &&String| slots.contains(&slot_of(tag.as_bytes()));
        self.lost.extend(self.fates.keys().filter(is_lost).cloned());
    }

    fn note(&mut self, keys: &Keys, deed: &Deed, fate: Fate) {
        match fate {
            Fate::Never => self.never += 1,
            Fate::Once => self.acknowledged += 1,
            Fate::Unknown => self.unknown += 1,
        }
        if let Deed::Append(number) = deed {
            self.fates.entry(keys.tag.clone()).or_default().push((*number, fate));
        }
    }

    /// Compares a log with what its callers were told.
    pub(super) fn check(&self, tag: &str, log: &str, context: &dyn Display) {
        let found: Vec<u64> = log.split_terminator(';').map(|number| number.parse().expect("a number")).collect();
        assert!(found.is_sorted(), "{context}: {tag} is out of order: {log}");
        for (number, fate) in self.fates.get(tag).into_iter().flatten() {
            let count = found.iter().filter(|found| *found == number).count();
            let is_true = match fate {
                Fate::Never => count == 0,
                Fate::Once => count == 1 || count == 0 && self.lost.contains(tag),
                Fate::Unknown => count <= 1,
            };
            assert!(is_true, "{context}: {number} of {tag} was told as {fate:?} and executed {count} times: {log}");
        }
    }

    pub(super) fn tags(&self) -> Vec<String> {
        self.fates.keys().cloned().collect()
    }

    /// A request has ended. Panics if that cannot be. `is_foreign`: a node may have executed it that had lost the slot.
    pub(super) fn take(
        &mut self,
        keys: &mut Keys,
        deed: &Deed,
        ended: &Ended,
        is_foreign: bool,
        context: &dyn Display,
    ) -> Fate {
        let fate = match ended {
            Ended::Reply(Reply::Error(error)) => {
                let is_redirect = ["MOVED", "ASK", "TRYAGAIN", "CLUSTERDOWN", "LOADING", "READONLY", "EXECABORT"]
                    .contains(&error.code());
                assert!(is_redirect, "{context}: {error:?}");
                Fate::Never
            }
            Ended::Reply(_) => Fate::Once,
            Ended::Failed(_, Outcome::NotSent) => Fate::Never,
            Ended::Failed(..) => Fate::Unknown,
        };
        self.note(keys, deed, fate);
        if deed.writes() && (is_foreign || fate == Fate::Unknown) {
            if is_foreign {
                self.lost.insert(keys.tag.clone());
            }
            keys.is_spoilt = true;
        }
        if let (Deed::Read(_), Ended::Reply(reply)) = (deed, ended)
            && fate == Fate::Once
        {
            // No node answers with the value of another caller.
            let is_own = |value: String| assert!(value.starts_with(&keys.tag), "{context}: {value} of {keys:?}");
            value_of(reply, context).into_iter().for_each(is_own);
        }
        if keys.is_spoilt || is_foreign {
            return fate;
        }
        if let Ended::Reply(reply) = ended
            && fate == Fate::Once
        {
            keys.take(deed, reply, context);
        }
        fate
    }
}

impl Keys {
    /// A reply of the node that has the slot.
    fn take(&mut self, deed: &Deed, reply: &Reply, context: &dyn Display) {
        let integer = || match reply {
            Reply::Integer(number) => *number,
            other => panic!("{context}: {other:?}"),
        };
        match deed {
            Deed::Count => {
                self.counter += 1;
                assert_eq!(integer(), self.counter, "{context}: {self:?}");
            }
            Deed::Append(number) => {
                self.length += entry(*number).len() as i64;
                assert_eq!(integer(), self.length, "{context}: {self:?}");
            }
            Deed::WriteBoth(value) => {
                assert!(matches!(reply, Reply::Status(ok) if ok == "OK"), "{context}: {reply:?}");
                self.pair = Some(value.clone());
            }
            Deed::Read(_) => self.check_value(reply, context),
            Deed::ReadBoth => {
                let Reply::Array(elements) = reply else { panic!("{context}: {reply:?}") };
                let pair: Vec<Reply> = elements.clone().collect();
                assert_eq!(pair.len(), 2, "{context}");
                assert_eq!(format!("{:?}", pair[0]), format!("{:?}", pair[1]), "{context}");
                self.check_value(&pair[0], context);
            }
        }
    }

    fn check_value(&self, reply: &Reply, context: &dyn Display) {
        assert_eq!(value_of(reply, context), self.pair, "{context}: {self:?}");
    }
}

fn value_of(reply: &Reply, context: &dyn Display) -> Option<String> {
    match reply {
        Reply::Null => None,
        // A part of what is not there.
        Reply::Bulk(text) if text.is_empty() => None,
        Reply::Bulk(text) => Some(String::from_utf8_lossy(text).into_owned()),
        other => panic!("{context}: {other:?}"),
    }
}
