//! Replication streams of several nodes as one: which source is passed on, and when.
//!
//! ```text
//!   [Opening] ---- every snapshot announced, ----> [Snapshot of source n] ---- behind the last ----> [Streaming]
//!                  every prefix but the first taken                                                   (or [Done])
//! ```
//!
//! The merged snapshot is the first source's, with the keys of the others behind its own. Then commands are passed as they
//! arrive, whole, those of a transaction together. A command that concerns all keys (`FLUSHALL`, `SWAPDB`, `FUNCTION LOAD`
//! ...) was sent to every node: the merged stream has it once, when each source has come to it. Otherwise the keys that
//! other nodes have been given since would be lost.

use std::mem::take;

use super::fault::Fault;
use super::snapshot::{END, END_BYTES, HEADER_BYTES};
use super::source::{Next, Opening, Source, Stage as SourceStage};
use respool_wire::encode_request;

/// What has been passed so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Opening,
    /// The keys of this source are due.
    Snapshot(usize),
    Streaming,
    /// The follower wanted no more than the snapshot.
    Done,
}

/// What a step has come to.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The streams go on: the next bytes of a node are merged like those before.
    Going,
    /// A node refuses with this line.
    Refused(Vec<u8>),
    /// The follower has all it has asked for.
    Done,
}

/// How the follower asks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// It asks with PSYNC: it is told an id, and acknowledges.
    pub has_offsets: bool,
    /// It wants the snapshot alone.
    pub is_snapshot_only: bool,
}

/// Streams of several nodes on their way to one follower.
#[derive(Debug)]
pub struct Merge {
    sources: Vec<Source>,
    terms: Terms,
    stage: Stage,
    /// The answer to PSYNC, until it has been passed.
    greeting: Vec<u8>,
    /// The source whose command or transaction has been passed in part.
    current: Option<usize>,
    /// The source that is asked first for a command.
    first: usize,
    /// The database that the merged stream has selected.
    database: Option<u64>,
    /// Bytes of the merged stream.
    position: u64,
    /// The follower has been asked how far it is, and has not said since.
    is_asked: bool,
    /// Since when a command that concerns all keys waits for the sources that have not come to theirs.
    apart_us: Option<u64>,
}

impl Merge {
    /// `id` names the merged stream; no other stream may have it.
    pub fn new(sources: usize, terms: Terms, id: &str, now_us: u64) -> Self {
        let greeting = if terms.has_offsets { format!("+FULLRESYNC {id} 0\r\n").into_bytes() } else { Vec::new() };
        Self {
            sources: (0..sources).map(|_| Source::new(terms.has_offsets, now_us)).collect(),
            terms,
            stage: Stage::Opening,
            greeting,
            current: None,
            first: 0,
            database: None,
            position: 0,
            is_asked: false,
            apart_us: None,
        }
    }

    /// Bytes held.
    pub fn held_bytes(&self) -> usize {
        self.sources.iter().map(|source| size_of::<Source>() + source.held_bytes()).sum()
    }

    /// Whether every node has agreed.
    pub fn is_agreed(&self) -> bool {
        self.sources.iter().all(|source| source.has_agreed)
    }

    /// Whether the connection of a source is to be read.
    pub fn is_hungry(&self, source: usize) -> bool {
        self.sources.get(source).is_some_and(Source::is_hungry)
    }

    /// How far the follower has acknowledged what each node has sent; only nodes that were asked with PSYNC want to know.
    pub fn confirmed(&self, source: usize) -> Option<u64> {
        let source = self.sources.get(source)?;
        (self.terms.has_offsets && source.stage > SourceStage::Announcing).then_some(source.confirmed)
    }

    /// The follower has everything up to here.
    pub fn confirm(&mut self, position: u64) {
        self.is_asked = false;
        self.sources.iter_mut().for_each(|source| source.confirm(position));
    }

    /// Bytes have come from a node.
    pub fn push(&mut self, source: usize, bytes: &[u8], now_us: u64) {
        if let Some(source) = self.sources.get_mut(source) {
            source.push(bytes, now_us);
        }
    }

    /// Whether something that is due has been silent since before `silent_us`, or a command that concerns all keys waits since
    /// before `apart_us` for a node that has sent nothing since then. One that is still sending may be on its way there: behind a
    /// long snapshot it sends what was written meanwhile. It has until `silent_us`.
    pub fn check(&self, silent_us: Option<u64>, apart_us: Option<u64>) -> Result<(), Fault> {
        let is_before = |source: &Source, due_us: Option<u64>| due_us.is_some_and(|due_us| source.since_us <= due_us);
        let is_due = |at: usize, source: &Source| match self.stage {
            Stage::Opening => !source.is_open(at == 0),
            Stage::Snapshot(current) => at == current,
            Stage::Streaming => self.current == Some(at),
            Stage::Done => false,
        };
        let mut sources = self.sources.iter().enumerate();
        if sources.any(|(at, source)| is_due(at, source) && is_before(source, silent_us)) {
            return Err(Fault::Silent);
        }
        let is_apart =
            |due_us: Option<u64>| due_us.zip(self.apart_us).is_some_and(|(due_us, since_us)| since_us <= due_us);
        let mut late = self.sources.iter().filter(|source| source.for_all.is_none());
        match is_apart(silent_us) || is_apart(apart_us) && late.any(|source| is_before(source, apart_us)) {
            true => Err(Fault::Unmatched),
            false => Ok(()),
        }
    }

    /// The sources were not read until now, so that nothing of them is late.
    pub fn restart_time(&mut self, now_us: u64) {
        self.sources.iter_mut().for_each(|source| source.since_us = now_us);
        self.apart_us = self.apart_us.map(|_| now_us);
    }

    /// Takes what may be taken while the follower has been told nothing.
    pub fn open(&mut self) -> Result<Outcome, Fault> {
        for (at, source) in self.sources.iter_mut().enumerate() {
            if let Opening::Refused(line) = source.open(at == 0)? {
                return Ok(Outcome::Refused(line));
            }
        }
        Ok(Outcome::Going)
    }

    /// Passes on what may be passed on now, until about `room` bytes are in `out`.
    pub fn pass(&mut self, room: usize, out: &mut Vec<u8>, now_us: u64) -> Result<Outcome, Fault> {
        out.append(&mut self.greeting);
        loop {
            let stage = self.stage;
            match stage {
                Stage::Opening => {
                    if let Some(outcome) = self.pass_opening(out, now_us)? {
                        return Ok(outcome);
                    }
                }
                Stage::Snapshot(at) => self.pass_snapshot(at, room, out, now_us)?,
                Stage::Streaming => {
                    let before = out.len();
                    self.pass_commands(room, out, now_us)?;
                    self.position += (out.len() - before) as u64;
                    let merged = self.position;
                    self.sources.iter_mut().for_each(|source| source.note(merged));
                }
                Stage::Done => return Ok(Outcome::Done),
            }
            if self.stage == stage || out.len() >= room {
                return Ok(Outcome::Going);
            }
        }
    }

    /// `None`: every snapshot is announced, and the merged one has begun.
    fn pass_opening(&mut self, out: &mut Vec<u8>, now_us: u64) -> Result<Option<Outcome>, Fault> {
        let (mut are_open, mut bytes) = (true, HEADER_BYTES as u64 + END_BYTES);
        for (at, source) in self.sources.iter_mut().enumerate() {
            match source.open(at == 0)? {
                Opening::Refused(line) => return Ok(Some(Outcome::Refused(line))),
                // One sign of life is enough of all that are not ready.
                Opening::Alive if are_open => out.push(b'\n'),
                Opening::Alive | Opening::Waiting => {}
            }
            are_open &= source.is_open(at == 0);
            bytes = bytes.saturating_add(source.snapshot_left.saturating_sub(END_BYTES));
        }
        if !are_open {
            return Ok(Some(Outcome::Going));
        }
        // A newer version reads what an older one has written.
        let version = self.sources.iter().map(|source| source.version).max().unwrap_or_default();
        out.extend_from_slice(format!("${bytes}\r\nREDIS{version:04}").as_bytes());
        self.stage = Stage::Snapshot(0);
        // What was ready before the others was not read meanwhile.
        self.restart_time(now_us);
        Ok(None)
    }

    fn pass_snapshot(&mut self, at: usize, room: usize, out: &mut Vec<u8>, now_us: u64) -> Result<(), Fault> {
        let count = self.sources.len();
        let Some(source) = self.sources.get_mut(at) else { return Ok(()) };
        if source.stage == SourceStage::Prefix {
            out.append(&mut source.pass_prefix()?);
        }
        if source.stage != SourceStage::Body || !source.pass_body(room.saturating_sub(out.len()), out)? {
            return Ok(());
        }
        if let Some(next) = self.sources.get_mut(at + 1) {
            next.since_us = now_us;
        }
        self.stage = Stage::Snapshot(at + 1);
        if at + 1 == count {
            out.push(END);
            // A checksum of zeros is not checked.
            out.extend_from_slice(&[0; END_BYTES as usize - 1]);
            self.stage = if self.terms.is_snapshot_only { Stage::Done } else { Stage::Streaming };
        }
        Ok(())
    }

    fn pass_commands(&mut self, room: usize, out: &mut Vec<u8>, now_us: u64) -> Result<(), Fault> {
        while out.len() < room {
            let (at, is_pinned) = match self.current {
                Some(at) => (at, true),
                None => (self.first, false),
            };
            let has_moved = self.pass_of(at, room, out, now_us)?;
            if is_pinned && !has_moved {
                return Ok(());
            }
            if has_moved {
                continue;
            }
            // Nothing of this one: the others in turn, until none has anything.
            let count = self.sources.len();
            let other = (1..count).map(|step| (at + step) % count);
            let mut found = None;
            for other in other {
                if self.pass_of(other, room, out, now_us)? {
                    found = Some(other);
                    break;
                }
            }
            match found {
                Some(other) => self.first = other,
                None => return Ok(()),
            }
        }
        Ok(())
    }

    /// Passes one command of a source, or what has come of it. `false`: there is nothing to be passed.
    fn pass_of(&mut self, at: usize, room: usize, out: &mut Vec<u8>, now_us: u64) -> Result<bool, Fault> {
        let Some(source) = self.sources.get_mut(at) else { return Ok(false) };
        if !source.is_between() {
            let before = source.rest().len();
            let is_whole = source.pass_command(room.saturating_sub(out.len()), out)?;
            let has_moved = source.rest().len() < before;
            if is_whole {
                self.end_command(at);
            }
            return Ok(has_moved || is_whole);
        }
        let next = source.next()?;
        match next {
            Next::Nothing => return Ok(false),
            Next::Part => {
                source.wants_whole = true;
                return Ok(false);
            }
            Next::Select(database) => {
                source.take_command(source.whole_bytes());
                source.select(database);
            }
            // One for the follower is enough.
            Next::Ping if at > 0 => source.take_command(source.whole_bytes()),
            Next::Ping => self.pass_whole(at, out),
            Next::GetAck => {
                source.take_command(source.whole_bytes());
                if self.terms.has_offsets && !std::mem::replace(&mut self.is_asked, true) {
                    encode_request(out, [&b"REPLCONF"[..], b"GETACK", b"*"].into_iter());
                }
            }
            Next::Multi => {
                self.select_for(at, out);
                self.pass_whole(at, out);
                self.sources[at].is_in_transaction = true;
                self.sources[at].since_us = now_us;
                self.current = Some(at);
            }
            Next::Exec => {
                self.pass_whole(at, out);
                self.sources[at].is_in_transaction = false;
                self.current = None;
            }
            Next::ForAll if source.is_in_transaction => return Err(Fault::Unmatched),
            Next::ForAll => {
                source.for_all = Some(source.whole_bytes());
                self.apart_us.get_or_insert(now_us);
                return self.pass_for_all(at, out);
            }
            Next::Keys { header, arguments } => {
                self.select_for(at, out);
                let source = &mut self.sources[at];
                out.extend_from_slice(source.rest().get(..header).unwrap_or_default());
                source.take_command(header);
                source.begin(arguments);
                source.since_us = now_us;
                self.current = Some(at);
            }
        }
        Ok(true)
    }

    /// A command of a source has been passed whole.
    fn end_command(&mut self, at: usize) {
        if !self.sources[at].is_in_transaction {
            self.current = None;
        }
    }

    fn pass_whole(&mut self, at: usize, out: &mut Vec<u8>) {
        let source = &mut self.sources[at];
        let count = source.whole_bytes();
        out.extend_from_slice(source.rest().get(..count).unwrap_or_default());
        source.take_command(count);
    }

    /// Selects the database in which the next command of a source is.
    fn select_for(&mut self, at: usize, out: &mut Vec<u8>) {
        let database = self.sources[at].database();
        if self.database.replace(database) != Some(database) {
            encode_request(out, [&b"SELECT"[..], database.to_string().as_bytes()].into_iter());
        }
    }

    /// Passes a command that concerns all keys once all sources have come to it.
    fn pass_for_all(&mut self, at: usize, out: &mut Vec<u8>) -> Result<bool, Fault> {
        let one = self.sources[at].command_for_all();
        let mut waiting = self.sources.iter().filter_map(Source::command_for_all);
        if waiting.any(|other| Some(other) != one) {
            return Err(Fault::Unmatched);
        }
        if self.sources.iter().any(|source| source.for_all.is_none()) {
            return Ok(false);
        }
        self.select_for(at, out);
        out.extend_from_slice(self.sources[at].command_for_all().map_or(&[], |(bytes, _)| bytes));
        for source in &mut self.sources {
            let count = take(&mut source.for_all).unwrap_or_default();
            source.take_command(count);
        }
        self.apart_us = None;
        Ok(true)
    }
}
