//! Streams: entries in the order of their ids, and groups of consumers that read them.
//!
//! A stream without entries continues to exist. Its [`Figures`] cover deleted entries as well; the lag of a group is computed
//! from them.

mod by_id;
pub(crate) mod group;
mod groups;
pub(crate) mod id;
pub(crate) mod log;
mod radix;
mod references;

use respool_wire::Args;

pub(crate) use group::{Group, READ_UNKNOWN};
pub(crate) use groups::Groups;
pub(crate) use id::Id;
pub(crate) use log::{Entry, Log, NodeLimits};
pub(crate) use references::{Deletion, References};

/// The metadata of a stream, deleted entries included.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Figures {
    /// The number of entries.
    pub(crate) len: usize,
    /// The id of the first entry; zero if the stream is empty.
    pub(crate) first_id: Id,
    /// The last generated id.
    pub(crate) last_id: Id,
    /// The greatest deleted id, trimmed ones excluded.
    pub(crate) max_deleted_id: Id,
    /// The number of entries ever added.
    pub(crate) entries_added: i64,
}

impl Figures {
    /// Whether an entry after an id was deleted that a group has not read yet.
    pub(crate) fn has_gap_behind(&self, id: Id) -> bool {
        let is_gap_gone = self.len == 0 || self.max_deleted_id == Id::MIN || self.first_id > self.max_deleted_id;
        !is_gap_gone && id <= self.max_deleted_id
    }

    /// The number of entries added up to an id, if it can be computed.
    pub(crate) fn added_up_to(&self, id: Id) -> Option<i64> {
        if self.entries_added == 0 {
            return Some(0);
        }
        if id == self.last_id || (self.len == 0 && id < self.last_id) {
            return Some(self.entries_added);
        }
        let has_gap = self.max_deleted_id != Id::MIN && self.max_deleted_id >= self.first_id;
        if id > self.last_id || has_gap || id > self.first_id {
            return None;
        }
        let before_first = self.entries_added.wrapping_sub(self.len as i64);
        Some(if id == self.first_id { before_first.wrapping_add(1) } else { before_first })
    }

    /// The lag of a group, if it can be computed.
    pub(crate) fn lag(&self, group: &Group) -> Option<i64> {
        if self.entries_added == 0 {
            return Some(0);
        }
        if group.entries_read != READ_UNKNOWN && !self.has_gap_behind(group.last_id) {
            return Some(self.entries_added.wrapping_sub(group.entries_read));
        }
        Some(self.entries_added.wrapping_sub(self.added_up_to(group.last_id)?))
    }

    /// Advances a group to the entry of an id.
    pub(crate) fn advance(&self, group: &mut Group, id: Id) {
        if id <= group.last_id {
            return;
        }
        if group.entries_read != READ_UNKNOWN && !self.has_gap_behind(id) {
            group.entries_read = group.entries_read.wrapping_add(1);
        } else if self.entries_added != 0 {
            group.entries_read = self.added_up_to(id).unwrap_or(READ_UNKNOWN);
        }
        group.last_id = id;
    }
}

/// The strategy of trimming.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Trim {
    /// `MAXLEN`: keeps this many entries.
    ToLength(usize),
    /// `MINID`: removes the entries before an id.
    Before(Id),
}

/// The options of trimming.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Trimming {
    pub(crate) what: Trim,
    /// `~`: removes whole listpacks only.
    pub(crate) is_approximate: bool,
    /// The greatest number of entries to remove; zero is no limit.
    pub(crate) limit: usize,
}

/// See the module documentation.
#[derive(Clone)]
pub(crate) struct Stream {
    pub(crate) log: Log,
    pub(crate) figures: Figures,
    pub(crate) groups: Groups,
}

impl Stream {
    /// An empty stream.
    pub(crate) fn new() -> Self {
        Self { log: Log::new(), figures: Figures::default(), groups: Groups::default() }
    }

    /// The number of entries.
    pub(crate) fn len(&self) -> usize {
        self.figures.len
    }

    /// Adds an entry. Its id has to be greater than the last one.
    pub(crate) fn append(&mut self, id: Id, pairs: Args<'_>, limits: NodeLimits) {
        self.log.append(id, pairs, limits);
        let figures = &mut self.figures;
        figures.len += 1;
        figures.entries_added = figures.entries_added.wrapping_add(1);
        figures.last_id = id;
        if figures.len == 1 {
            figures.first_id = id;
        }
    }

    /// Deletes entries; returns how many existed.
    pub(crate) fn delete(&mut self, ids: &[Id]) -> usize {
        let (mut deleted, mut is_first_gone) = (0, false);
        let figures = &mut self.figures;
        // Ids in order are looked for in one walk.
        for ids in ids.chunk_by(|id, next| id < next) {
            self.log.delete(ids, |id| {
                deleted += 1;
                figures.len -= 1;
                is_first_gone |= id == figures.first_id;
                figures.max_deleted_id = figures.max_deleted_id.max(id);
            });
        }
        if deleted > 0 && (is_first_gone || self.figures.len == 0) {
            self.figures.first_id = self.log.first_id().unwrap_or(Id::MIN);
        }
        deleted
    }

    /// Removes entries from the front; returns how many.
    pub(crate) fn trim(&mut self, trimming: Trimming) -> usize {
        let before = self.figures.len;
        let mut left = before;
        let fits = |left: usize| matches!(trimming.what, Trim::ToLength(max) if left <= max);
        while !fits(left) {
            let removed = self.log.remove_first_node(|entries, last| {
                let entries = entries as usize;
                let is_allowed = trimming.limit == 0 || before - left + entries <= trimming.limit;
                is_allowed
                    && match trimming.what {
                        Trim::ToLength(max) => left.saturating_sub(entries) >= max,
                        Trim::Before(id) => last() < id,
                    }
            });
            match removed {
                Some(entries) => left -= entries as usize,
                None => break,
            }
        }
        // A limit comes with approximate trimming alone.
        if !trimming.is_approximate && !fits(left) {
            left -= self.log.delete_from_first_node(|id, marked| match trimming.what {
                Trim::ToLength(max) => left - marked > max,
                Trim::Before(least) => id < least,
            });
        }
        if left < before {
            self.figures.len = left;
            self.figures.first_id = self.log.first_id().unwrap_or(Id::MIN);
        }
        before - left
    }

    /// Bytes held from the allocator.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.log.memory_bytes() + self.groups.memory_bytes()
    }

    /// As [`Stream::memory_bytes`], counted anew.
    #[cfg(debug_assertions)]
    pub(crate) fn walked_bytes(&self) -> usize {
        self.log.walked_bytes() + self.groups.walked_bytes()
    }

    /// Frees about `budget` parts of a deleted stream; returns how many.
    pub(crate) fn drain(&mut self, budget: usize) -> usize {
        let freed = self.log.drain(budget);
        freed + self.groups.drain(budget.saturating_sub(freed))
    }

    /// Whether all parts are freed.
    pub(crate) fn is_drained(&self) -> bool {
        self.log.nodes() == 0 && self.groups.is_empty()
    }
}
