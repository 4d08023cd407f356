//! What becomes of the references that groups have to entries which are deleted or trimmed: `KEEPREF`, `DELREF` and `ACKED`.
//!
//! A group refers to an entry that is pending in it, and to one that it has not read yet.

use std::collections::BTreeSet;

use super::group::Group;
use super::id::Id;
use super::{Stream, Trim, Trimming};

/// How references are treated.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) enum References {
    /// `KEEPREF`: deleted entries remain pending.
    #[default]
    Keep,
    /// `DELREF`: deleted entries are removed from the pending ones of all groups.
    Delete,
    /// `ACKED`: entries to which a group refers are not deleted.
    Respect,
}

impl References {
    /// The treatment of an option word.
    pub(crate) fn of(word: &[u8]) -> Option<Self> {
        match () {
            () if word.eq_ignore_ascii_case(b"KEEPREF") => Some(Self::Keep),
            () if word.eq_ignore_ascii_case(b"DELREF") => Some(Self::Delete),
            () if word.eq_ignore_ascii_case(b"ACKED") => Some(Self::Respect),
            () => None,
        }
    }
}

/// The result of deleting one entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Deletion {
    Missing,
    Deleted,
    /// A group refers to the entry.
    Kept,
}

impl Stream {
    /// Whether a group refers to an entry. As in Redis, a stream without groups is one whose entries nothing has read.
    pub(crate) fn is_referred_to(&self, id: Id) -> bool {
        self.groups.is_empty() || self.groups.values().any(|group| group.last_id < id || group.get(id).is_some())
    }

    /// Deletes an entry. `DELREF` removes references to an entry that is missing as well; whether it did is returned too.
    pub(crate) fn delete_one(&mut self, id: Id, references: References) -> (Deletion, bool) {
        let is_kept = references == References::Respect && self.is_referred_to(id);
        if is_kept {
            let exists = self.log.get(id).is_some();
            return (if exists { Deletion::Kept } else { Deletion::Missing }, false);
        }
        let mut has_settled = false;
        if references == References::Delete {
            self.groups.edit_all(|group| has_settled |= group.settle(id));
        }
        let is_deleted = self.delete(&[id]) > 0;
        (if is_deleted { Deletion::Deleted } else { Deletion::Missing }, has_settled)
    }

    /// As [`Stream::trim`], with a treatment of references. Entries that are kept do not make others be trimmed in their place.
    pub(crate) fn trim_with(&mut self, trimming: Trimming, references: References) -> usize {
        if references == References::Keep || self.groups.is_empty() {
            return self.trim(trimming);
        }
        let mut ids = self.ids_to_trim(trimming);
        let Some(&last) = ids.last() else { return 0 };
        let pending = |group: &Group| -> Vec<Id> {
            let up_to_last = group.pending_from(Id::MIN, None).map(|(id, _)| id).take_while(|id| *id <= last);
            up_to_last.filter(|id| ids.binary_search(id).is_ok()).collect()
        };
        let pending: Vec<Vec<Id>> = self.groups.values().map(pending).collect();
        if references == References::Delete {
            let mut pending = pending.into_iter();
            self.groups.edit_all(|group| pending.next().into_iter().flatten().for_each(|id| _ = group.settle(id)));
        } else {
            let pending: BTreeSet<Id> = pending.into_iter().flatten().collect();
            let read = self.groups.values().map(|group| group.last_id).min().unwrap_or(Id::MAX);
            ids.retain(|id| *id <= read && !pending.contains(id));
        }
        let deleted = self.figures.max_deleted_id;
        let removed = self.delete(&ids);
        // What is trimmed leaves no gap, unless an entry before it stays.
        if ids.last().is_none_or(|last| *last < self.figures.first_id || self.figures.len == 0) {
            self.figures.max_deleted_id = deleted;
        }
        removed
    }

    /// The ids of the entries that [`Stream::trim`] would remove.
    fn ids_to_trim(&self, trimming: Trimming) -> Vec<Id> {
        let mut ids = Vec::new();
        for node in self.log.node_ids() {
            let left = self.figures.len - ids.len();
            let is_whole = match trimming.what {
                Trim::ToLength(max) => left > max && left - node.ids.len() >= max,
                Trim::Before(least) => node.last < least,
            };
            let is_allowed = trimming.limit == 0 || ids.len() + node.ids.len() <= trimming.limit;
            if is_whole && is_allowed {
                ids.extend(node.ids);
                continue;
            }
            if !trimming.is_approximate {
                match trimming.what {
                    Trim::ToLength(max) => ids.extend(node.ids.into_iter().take(left.saturating_sub(max))),
                    Trim::Before(least) => ids.extend(node.ids.into_iter().take_while(|id| *id < least)),
                }
            }
            break;
        }
        ids
    }
}
