//! One node's replication stream: what it answers, its snapshot, and its commands, as far as they have arrived.
//!
//! ```text
//!   [Agreeing] -- +FULLRESYNC --> [Announcing] -- $length --> [Header] --> [Prefix] --> [Body] --> [Commands]
//!       '-- SYNC has no such answer ---^
//! ```
//!
//! A source holds bytes that nothing has asked for yet, up to a window; its connection is not read beyond that.

use std::collections::VecDeque;

use super::fault::Fault;
use super::snapshot::{END, END_BYTES, HEADER_BYTES, Prefix, version};
use crate::limits::{
    AGREEMENT_BYTES_MAX, MERGED_CHECKPOINTS_MAX, MERGED_COMMAND_BYTES_MAX, MERGED_LINE_BYTES_MAX,
    MERGED_NAME_BYTES_MAX, MERGED_WINDOW_BYTES,
};
use respool_command::{
    Command, ConnectionCommand as C, Flags, ServerCommand as S, TransactionsCommand as T, lookup, resolve,
};
use respool_wire::{RequestDecoder, RequestLimits, Step};

/// How far a source has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    /// The answer to PSYNC is due.
    Agreeing,
    /// The length of the snapshot is due.
    Announcing,
    Header,
    /// What stands before the keys.
    Prefix,
    Body,
    Commands,
}

/// What the next command of a source is to the merged stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// It has not arrived.
    Nothing,
    /// It has arrived in part, and only the whole of it says what it is.
    Part,
    /// It selects this database for what follows.
    Select(u64),
    Ping,
    /// The node wants to know how far its replica is.
    GetAck,
    Multi,
    Exec,
    /// It concerns all keys, or what all nodes have alike.
    ForAll,
    /// It is about keys of its node; its header has so many bytes, and so many arguments follow.
    Keys {
        header: usize,
        arguments: u64,
    },
}

/// What a source has to say before its snapshot.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Opening {
    /// Nothing new, or not all of it.
    Waiting,
    /// It is still making its snapshot.
    Alive,
    /// It refuses with this line.
    Refused(Vec<u8>),
}

/// Bytes that have arrived and have not been taken.
#[derive(Debug, Default)]
struct Held {
    bytes: Vec<u8>,
    at: usize,
}

impl Held {
    fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..std::mem::take(&mut self.at));
        self.bytes.extend_from_slice(bytes);
    }

    fn rest(&self) -> &[u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    fn advance(&mut self, count: usize) {
        self.at += count;
        if self.at >= self.bytes.len() {
            self.at = 0;
            self.bytes.clear();
            if self.bytes.capacity() > MERGED_WINDOW_BYTES {
                self.bytes = Vec::new();
            }
        }
    }
}

#[derive(Debug)]
pub(super) struct Source {
    pub(super) stage: Stage,
    /// It has said that it makes a snapshot.
    pub(super) has_agreed: bool,
    held: Held,
    /// Bytes of the snapshot that have not been taken.
    pub(super) snapshot_left: u64,
    pub(super) version: u32,
    prefix: Prefix,
    /// The database in which its next command is.
    database: Option<u64>,
    /// Arguments of the current command that have not begun, and bytes of the current argument that have not been passed.
    arguments_left: u64,
    argument_bytes_left: u64,
    pub(super) is_in_transaction: bool,
    /// Its next command concerns all keys, has so many bytes and waits for those of the others.
    pub(super) for_all: Option<usize>,
    /// Its next command is held until it is complete.
    pub(super) wants_whole: bool,
    /// Its position in the node's stream; what of it the follower has acknowledged; and positions with those of the merged
    /// stream at which they were reached.
    position: u64,
    pub(super) confirmed: u64,
    checkpoints: VecDeque<(u64, u64)>,
    /// Since when what is due has not come.
    pub(super) since_us: u64,
}

impl Source {
    pub(super) fn new(has_offsets: bool, now_us: u64) -> Self {
        Self {
            stage: if has_offsets { Stage::Agreeing } else { Stage::Announcing },
            has_agreed: false,
            held: Held::default(),
            snapshot_left: 0,
            version: 0,
            prefix: Prefix::default(),
            database: None,
            arguments_left: 0,
            argument_bytes_left: 0,
            is_in_transaction: false,
            for_all: None,
            wants_whole: false,
            position: 0,
            confirmed: 0,
            checkpoints: VecDeque::new(),
            since_us: now_us,
        }
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.held.bytes.capacity() + self.checkpoints.capacity() * size_of::<(u64, u64)>()
    }

    pub(super) fn push(&mut self, bytes: &[u8], now_us: u64) {
        self.since_us = now_us;
        self.held.push(bytes);
    }

    pub(super) fn rest(&self) -> &[u8] {
        self.held.rest()
    }

    fn advance(&mut self, count: usize) {
        self.held.advance(count);
    }

    /// Whether more is to be read. What has to be compared whole is read beyond the window.
    pub(super) fn is_hungry(&self) -> bool {
        let room = if self.wants_whole { MERGED_COMMAND_BYTES_MAX } else { MERGED_WINDOW_BYTES };
        self.rest().len() < room
    }

    /// Whether all that is due before the keys has been taken, as the source at this place has to.
    pub(super) fn is_open(&self, is_first: bool) -> bool {
        self.stage == Stage::Body || (is_first && self.stage == Stage::Prefix)
    }

    /// Takes what stands before the keys. That of the first source is left for the merged snapshot.
    pub(super) fn open(&mut self, is_first: bool) -> Result<Opening, Fault> {
        let mut is_alive = false;
        while !self.is_open(is_first) {
            match self.stage {
                Stage::Agreeing | Stage::Announcing => match self.rest().first() {
                    None => break,
                    Some(b'\n') => {
                        (self.has_agreed, is_alive) = (true, true);
                        self.advance(1);
                    }
                    Some(_) => match self.line()? {
                        None => break,
                        Some(line) if line.starts_with(b"-") => return Ok(Opening::Refused(line)),
                        Some(line) => self.take_line(&line)?,
                    },
                },
                Stage::Header => {
                    let Some(header) = self.rest().get(..HEADER_BYTES) else { break };
                    self.version = version(header)?;
                    self.advance(HEADER_BYTES);
                    self.take_of_snapshot(HEADER_BYTES as u64)?;
                    self.stage = Stage::Prefix;
                }
                Stage::Prefix => {
                    self.pass_prefix()?;
                    if self.stage == Stage::Prefix {
                        break;
                    }
                }
                Stage::Body | Stage::Commands => break,
            }
        }
        Ok(if is_alive { Opening::Alive } else { Opening::Waiting })
    }

    /// A line with its end.
    fn line(&mut self) -> Result<Option<Vec<u8>>, Fault> {
        let Some(end) = self.rest().windows(2).position(|pair| pair == b"\r\n") else {
            return if self.rest().len() > AGREEMENT_BYTES_MAX { Err(Fault::Malformed) } else { Ok(None) };
        };
        let line = self.rest().get(..end + 2).unwrap_or_default().to_vec();
        self.advance(line.len());
        Ok(Some(line))
    }

    fn take_line(&mut self, line: &[u8]) -> Result<(), Fault> {
        let line = line.trim_ascii_end();
        if self.stage == Stage::Agreeing {
            let offset = line.strip_prefix(b"+FULLRESYNC ").and_then(|rest| rest.rsplit(|byte| *byte == b' ').next());
            self.position = offset.and_then(number).ok_or(Fault::Malformed)?;
            (self.confirmed, self.stage) = (self.position, Stage::Announcing);
        } else {
            self.snapshot_left = line.strip_prefix(b"$").and_then(number).ok_or(Fault::Malformed)?;
            self.stage = Stage::Header;
        }
        self.has_agreed = true;
        Ok(())
    }

    fn take_of_snapshot(&mut self, count: u64) -> Result<(), Fault> {
        let left = self.snapshot_left.checked_sub(count).filter(|left| *left >= END_BYTES);
        self.snapshot_left = left.ok_or(Fault::Malformed)?;
        Ok(())
    }

    /// What has come of the prefix.
    pub(super) fn pass_prefix(&mut self) -> Result<Vec<u8>, Fault> {
        let (count, is_end) = self.prefix.advance(self.held.rest())?;
        let passed = self.rest().get(..count).unwrap_or_default().to_vec();
        self.advance(count);
        self.take_of_snapshot(count as u64)?;
        if is_end {
            self.stage = Stage::Body;
            self.database = self.prefix.database;
        }
        Ok(passed)
    }

    /// Passes what has come of the keys, at most `room` bytes. `true`: the snapshot has ended.
    pub(super) fn pass_body(&mut self, room: usize, out: &mut Vec<u8>) -> Result<bool, Fault> {
        let body = usize::try_from(self.snapshot_left - END_BYTES).unwrap_or(usize::MAX);
        let passed = self.rest().get(..body.min(room).min(self.rest().len())).unwrap_or_default();
        let count = passed.len();
        out.extend_from_slice(passed);
        self.advance(count);
        self.snapshot_left -= count as u64;
        let end = END_BYTES as usize;
        if count < body || self.rest().len() < end {
            return Ok(false);
        }
        if self.rest().first() != Some(&END) {
            return Err(Fault::Malformed);
        }
        self.advance(end);
        (self.snapshot_left, self.stage) = (0, Stage::Commands);
        Ok(true)
    }

    /// Whether no command has been passed in part.
    pub(super) fn is_between(&self) -> bool {
        self.arguments_left == 0 && self.argument_bytes_left == 0
    }

    /// What the next command is.
    pub(super) fn next(&self) -> Result<Next, Fault> {
        let rest = self.rest();
        if self.for_all.is_some() {
            return Ok(Next::Nothing);
        }
        let Some((arguments, header)) = self::header(rest, b'*')? else { return Ok(Next::Nothing) };
        if arguments == 0 {
            return Err(Fault::Malformed);
        }
        let behind = rest.get(header..).unwrap_or_default();
        let Some((length, line)) = self::header(behind, b'$')? else { return Ok(Next::Nothing) };
        let plain = Next::Keys { header, arguments };
        let Some(end) = usize::try_from(length).ok().filter(|length| *length <= MERGED_NAME_BYTES_MAX) else {
            return Ok(plain);
        };
        let Some(name) = behind.get(line..line + end) else { return Ok(Next::Nothing) };
        let Some(row) = lookup(name) else { return Ok(plain) };
        let is_for_keys = row.subcommands.is_empty() && !(row.flags.has(Flags::WRITE) && row.keys.is_none());
        let is_simple = match row.command {
            Command::Connection(C::Select | C::Ping) | Command::Server(S::Replconf) => false,
            Command::Transactions(T::Multi | T::Exec) => false,
            _ => is_for_keys,
        };
        if is_simple {
            return Ok(plain);
        }
        self.whole(plain)
    }

    /// The same of a command whose arguments decide.
    fn whole(&self, plain: Next) -> Result<Next, Fault> {
        let mut decoder = RequestDecoder::new();
        let request = match decoder.decode(self.rest(), &RequestLimits::default()) {
            Ok(Step::Request(request)) if request.consumed <= MERGED_COMMAND_BYTES_MAX => request,
            Ok(Step::Incomplete) if self.rest().len() < MERGED_COMMAND_BYTES_MAX => return Ok(Next::Part),
            Ok(Step::Request(_) | Step::Incomplete) => return Err(Fault::TooLong),
            Ok(Step::Empty { .. }) | Err(_) => return Err(Fault::Malformed),
        };
        let Ok(row) = resolve(request.args) else { return Ok(plain) };
        Ok(match row.command {
            Command::Connection(C::Select) => {
                Next::Select(request.args.get(1).and_then(number).ok_or(Fault::Malformed)?)
            }
            Command::Connection(C::Ping) => Next::Ping,
            Command::Server(S::Replconf) => Next::GetAck,
            Command::Transactions(T::Multi) => Next::Multi,
            Command::Transactions(T::Exec) => Next::Exec,
            _ if row.flags.has(Flags::WRITE) && row.keys.is_none() => Next::ForAll,
            _ => plain,
        })
    }

    /// The length of the next command, which has arrived whole.
    pub(super) fn whole_bytes(&self) -> usize {
        match RequestDecoder::new().decode(self.rest(), &RequestLimits::default()) {
            Ok(Step::Request(request)) => request.consumed,
            _ => 0,
        }
    }

    /// The next command, which concerns all keys, and the database in which it is.
    pub(super) fn command_for_all(&self) -> Option<(&[u8], u64)> {
        self.for_all.map(|count| (self.rest().get(..count).unwrap_or_default(), self.database()))
    }

    pub(super) fn select(&mut self, database: u64) {
        self.database = Some(database);
    }

    /// The database of the next command. A stream that does not say begins in the first.
    pub(super) fn database(&self) -> u64 {
        self.database.unwrap_or(0)
    }

    /// Takes a command, or a part of one.
    pub(super) fn take_command(&mut self, count: usize) {
        self.advance(count);
        self.position += count as u64;
        (self.wants_whole, self.for_all) = (false, None);
    }

    /// The next command's header has been passed, and so many arguments follow.
    pub(super) fn begin(&mut self, arguments: u64) {
        self.arguments_left = arguments;
    }

    /// Passes what has come of the current command, at most about `room` bytes. `true`: all of it.
    pub(super) fn pass_command(&mut self, room: usize, out: &mut Vec<u8>) -> Result<bool, Fault> {
        let (mut at, rest) = (0, self.held.rest());
        let is_whole = loop {
            if self.argument_bytes_left > 0 {
                let left = usize::try_from(self.argument_bytes_left).unwrap_or(usize::MAX);
                let count = left.min(rest.len() - at).min(room.saturating_sub(at));
                self.argument_bytes_left -= count as u64;
                at += count;
                if self.argument_bytes_left > 0 {
                    break false;
                }
            }
            if self.arguments_left == 0 {
                break true;
            }
            let Some((length, line)) = self::header(rest.get(at..).unwrap_or_default(), b'$')? else { break false };
            at += line;
            self.arguments_left -= 1;
            self.argument_bytes_left = length.checked_add(2).ok_or(Fault::Malformed)?;
        };
        out.extend_from_slice(rest.get(..at).unwrap_or_default());
        self.take_command(at);
        Ok(is_whole)
    }

    /// The merged stream is at `merged` now that it has all that was taken here.
    pub(super) fn note(&mut self, merged: u64) {
        let is_full = self.checkpoints.len() >= MERGED_CHECKPOINTS_MAX;
        let last = self.checkpoints.back().map_or(self.confirmed, |(_, position)| *position);
        match self.checkpoints.back_mut() {
            _ if last == self.position => {}
            Some(last) if is_full => *last = (merged, self.position),
            _ => self.checkpoints.push_back((merged, self.position)),
        }
    }

    /// The follower has everything up to `merged`.
    pub(super) fn confirm(&mut self, merged: u64) {
        while let Some((_, position)) = self.checkpoints.front().copied().filter(|(at, _)| *at <= merged) {
            self.confirmed = position;
            self.checkpoints.pop_front();
        }
    }
}

/// A decimal number.
fn number(digits: &[u8]) -> Option<u64> {
    std::str::from_utf8(digits).ok().filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))?.parse().ok()
}

/// A line that counts, such as `*3` or `$5`: the count, and the line's length with its end.
fn header(bytes: &[u8], kind: u8) -> Result<Option<(u64, usize)>, Fault> {
    let Some((first, rest)) = bytes.split_first() else { return Ok(None) };
    let line = rest.get(..MERGED_LINE_BYTES_MAX.min(rest.len())).unwrap_or_default();
    if *first != kind {
        return Err(Fault::Malformed);
    }
    let Some(end) = line.iter().position(|byte| *byte == b'\n') else {
        return if line.len() == MERGED_LINE_BYTES_MAX { Err(Fault::Malformed) } else { Ok(None) };
    };
    let digits = line.get(..end).and_then(|line| line.strip_suffix(b"\r")).and_then(number);
    Ok(Some((digits.ok_or(Fault::Malformed)?, end + 2)))
}
