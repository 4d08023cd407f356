//! The order of queued blocking requests by the keys that they take elements from.
//!
//! Requests in the queue of a node are tried there from time to time, a few at a time. An element that has been added since
//! the last try belongs to the request that has waited longest, so only the first for a key is tried: a later one would
//! take the element first.
//!
//! ```text
//!   queue for a node:   1: BLPOP a     2: BLPOP b     3: BLPOP a     4: BLPOP a c
//!   first:              for a          for b          --             for c: tried with all its keys
//! ```
//!
//! A request with several keys is tried as soon as it is first for one of them, or it could wait for ever behind one that
//! waits for another key. Requests that take nothing (`XREAD`), or that read for a group, are always tried, and so are
//! those with more than `TAKEN_KEYS_MAX` keys.

use crate::blocking::request::{BlockedRequest, Taken};
use crate::limits::TAKEN_KEYS_MAX;
use respool_command::{KeyAccess, KeyPositions, Row};
use respool_wire::Args;
use std::collections::{BTreeMap, BTreeSet};

/// About the bytes that the entries of these keys take.
pub(crate) fn bytes_of(takes: &[Taken]) -> usize {
    takes.iter().map(|(_, key)| key.len() + 256).sum()
}

/// The keys that a request takes elements from.
pub(crate) fn taken_by(row: &Row, args: Args<'_>, database: u32) -> Vec<Taken> {
    let mut keys = KeyPositions::new();
    // A request whose keys cannot be found is refused by its node, and takes nothing.
    let _ = row.keys.positions(args, &mut keys);
    if keys.iter().len() > TAKEN_KEYS_MAX {
        return Vec::new();
    }
    let taken = keys.iter().filter(|key| key.access.has(KeyAccess::DELETE));
    taken.filter_map(|key| Some((database, args.get(key.index as usize)?.into()))).collect()
}

/// The queued requests of one node by the keys that they take from. Requests are identified by their turns.
#[derive(Debug, Default)]
pub(crate) struct Takers {
    by_key: BTreeMap<Taken, BTreeSet<u64>>,
    /// The requests that are tried, with the number of keys for which each is the first.
    first: BTreeMap<u64, usize>,
}

impl Takers {
    /// Adds a request, which may have an earlier turn than others in the queue.
    pub(crate) fn enter(&mut self, blocked: &BlockedRequest) {
        if blocked.takes.is_empty() {
            self.first.insert(blocked.turn, 0);
        }
        for key in &blocked.takes {
            let queue = self.by_key.entry(key.clone()).or_default();
            let before = queue.first().copied();
            if !queue.insert(blocked.turn) || before.is_some_and(|before| before < blocked.turn) {
                continue;
            }
            *self.first.entry(blocked.turn).or_default() += 1;
            if let Some(before) = before
                && let Some(count) = self.first.get_mut(&before)
            {
                *count -= 1;
                if *count == 0 {
                    self.first.remove(&before);
                }
            }
        }
    }

    /// Removes a request. Returns the requests that have become the first for a key.
    pub(crate) fn leave(&mut self, blocked: &BlockedRequest) -> Vec<u64> {
        self.first.remove(&blocked.turn);
        let mut next = Vec::new();
        for key in &blocked.takes {
            let Some(queue) = self.by_key.get_mut(key) else { continue };
            let was_first = queue.first() == Some(&blocked.turn);
            if !queue.remove(&blocked.turn) {
                continue;
            }
            match queue.first().copied() {
                None => _ = self.by_key.remove(key),
                Some(first) if was_first => {
                    let count = self.first.entry(first).or_default();
                    *count += 1;
                    next.extend((*count == 1).then_some(first));
                }
                Some(_) => {}
            }
        }
        next
    }

    /// Whether a request is the first for one of its keys, or takes nothing.
    pub(crate) fn is_first(&self, blocked: &BlockedRequest) -> bool {
        self.first.contains_key(&blocked.turn)
    }

    /// The requests that are first for the keys of `blocked` in its place.
    pub(crate) fn before(&self, blocked: &BlockedRequest) -> BTreeSet<u64> {
        let first = blocked.takes.iter().filter_map(|key| self.by_key.get(key)?.first().copied());
        first.filter(|first| *first < blocked.turn).collect()
    }

    /// The requests that are tried, from a turn on and then from the beginning.
    pub(crate) fn circle(&self, from: u64) -> impl Iterator<Item = u64> + '_ {
        self.first.range(from..).chain(self.first.range(..from)).map(|(turn, _)| *turn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocking::request::blocked;

    /// Whether a request is the first for one of its keys, or takes nothing: found by comparing it with all others.
    fn is_first(all: &[BlockedRequest], this: &BlockedRequest) -> bool {
        let is_before = |other: &BlockedRequest, key: &Taken| other.turn < this.turn && other.takes.contains(key);
        this.takes.is_empty() || this.takes.iter().any(|key| !all.iter().any(|other| is_before(other, key)))
    }

    #[test]
    fn requests_first_for_a_key_are_the_ones_looked_for() {
        let (mut takers, mut all) = (Takers::default(), Vec::<BlockedRequest>::new());
        let mut chance = 1_u64;
        let mut below = |bound: u64| {
            chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (chance >> 33) % bound
        };
        for _ in 0..3_000 {
            let turn = 1 + below(40);
            let known = all.iter().position(|blocked| blocked.turn == turn);
            if let Some(known) = known {
                let gone = all.remove(known);
                let before: Vec<u64> = all.iter().filter(|this| takers.is_first(this)).map(|this| this.turn).collect();
                let mut next = takers.leave(&gone);
                next.sort_unstable();
                let is_new = |this: &&BlockedRequest| is_first(&all, this) && !before.contains(&this.turn);
                let mut expected: Vec<u64> = all.iter().filter(is_new).map(|this| this.turn).collect();
                expected.sort_unstable();
                assert_eq!(next, expected, "those that it was before");
                assert_eq!(takers.leave(&gone), [], "it leaves once");
            } else {
                // No key, or several, of which one may be named twice.
                let keys = (0..below(4)).map(|_| format!("k{}", below(6))).collect::<Vec<_>>();
                let words: Vec<&str> = std::iter::once("BLPOP").chain(keys.iter().map(String::as_str)).collect();
                let mut this = blocked(&[&words[..], &["0"]].concat(), 0);
                this.takes = taken_by(this.row, this.args.as_args(), 0);
                (this.turn, _) = (turn, assert_eq!(this.takes.len(), keys.len()));
                takers.enter(&this);
                all.push(this);
            }
            for this in &all {
                assert_eq!(takers.is_first(this), is_first(&all, this), "{}", this.turn);
            }
            let mut circle: Vec<u64> = takers.circle(turn).collect();
            circle.sort_unstable();
            assert!(circle.iter().all(|turn| all.iter().any(|this| this.turn == *turn && is_first(&all, this))));
        }
        all.iter().for_each(|this| drop(takers.leave(this)));
        assert!(takers.by_key.is_empty() && takers.first.is_empty());
    }

    #[test]
    fn what_is_only_read_or_written_to_is_not_taken() {
        for (words, taken) in [
            (&["BLMOVE", "from", "to", "LEFT", "LEFT", "0"][..], &["from"][..]),
            (&["BRPOPLPUSH", "from", "to", "0"], &["from"]),
            (&["BLMPOP", "0", "2", "a", "b", "LEFT"], &["a", "b"]),
            (&["BZPOPMIN", "a", "b", "0"], &["a", "b"]),
            (&["BZMPOP", "0", "1", "a", "MIN"], &["a"]),
            (&["XREAD", "BLOCK", "0", "STREAMS", "s", "0"], &[]),
            (&["XREADGROUP", "GROUP", "g", "c", "BLOCK", "0", "STREAMS", "s", ">"], &[]),
            (&["BLMPOP", "0", "x", "a", "LEFT"], &[]),
        ] {
            let this = blocked(words, 0);
            let keys = taken_by(this.row, this.args.as_args(), 0);
            let keys: Vec<String> = keys.iter().map(|(_, key)| String::from_utf8_lossy(key).into_owned()).collect();
            assert_eq!(keys, taken, "{words:?}");
        }
    }
}
