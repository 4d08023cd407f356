//! One client: its virtual connection state and its two ends.
//!
//! What a client does to "its connection" (SELECT, HELLO, CLIENT SETNAME, CLIENT REPLY) is kept here and never reaches a
//! shared connection to a node.

use crate::slab::Handle;
use respool_command::Row;
use respool_connection::{Downstream, Input, Peer};
use respool_wire::Protocol;

/// Whether replies are wanted (`CLIENT REPLY`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ReplyMode {
    #[default]
    On,
    /// None is, until `CLIENT REPLY ON`.
    Off,
    /// `CLIENT REPLY SKIP` was just read: the next request's reply is not wanted.
    SkipNext,
}

impl ReplyMode {
    /// A reply that was not wanted has been left out.
    pub(crate) fn pass(&mut self) {
        if *self == Self::SkipNext {
            *self = Self::On;
        }
    }
}

/// Why a client is not being read. Several reasons may hold at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pause(u8);

impl Pause {
    /// Too many bytes of replies wait to be written.
    pub(crate) const OUTPUT: Self = Self(1);
    /// Too many replies are outstanding.
    pub(crate) const OUTSTANDING: Self = Self(2);
    /// A request changes what the connection is, and waits until everything before it has been answered.
    pub(crate) const BARRIER: Self = Self(4);
    /// A node has too much to do.
    pub(crate) const LANE: Self = Self(8);
    /// The process holds too many bytes.
    pub(crate) const PRESSURE: Self = Self(16);
    /// The client will be closed once its replies are written: nothing more is read of it.
    pub(crate) const CLOSING: Self = Self(32);

    #[inline]
    pub(crate) fn is_none(self) -> bool {
        self.0 == 0
    }

    #[inline]
    pub(crate) fn has(self, reason: Self) -> bool {
        self.0 & reason.0 != 0
    }

    pub(crate) fn add(&mut self, reason: Self) {
        self.0 |= reason.0;
    }

    pub(crate) fn remove(&mut self, reason: Self) {
        self.0 &= !reason.0;
    }
}

/// What is looked at only when somebody asks, kept out of the way of what every request touches.
#[derive(Debug, Default)]
pub(crate) struct Cold {
    pub(crate) peer: Peer,
    pub(crate) name: Box<str>,
    pub(crate) lib_name: Box<str>,
    pub(crate) lib_version: Box<str>,
    pub(crate) connected_us: u64,
    pub(crate) is_no_evict: bool,
}

#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: u64,
    pub(crate) down: Downstream,
    /// The unfinished request, if one is.
    pub(crate) input: Option<Box<Input>>,
    /// Database and protocol as a place in the worker's table of classes.
    pub(crate) class: u16,
    pub(crate) protocol: Protocol,
    pub(crate) database: u32,
    pub(crate) reply_mode: ReplyMode,
    pub(crate) pause: Pause,
    /// It is in the list of those to be written.
    pub(crate) is_listed: bool,
    /// It is in the list of those to go on reading.
    pub(crate) is_resuming: bool,
    /// The last write was cut short; the loop says when there is room.
    pub(crate) is_blocked: bool,
    /// Since when replies have waited for the rest of the client's pipeline; 0 if none do.
    pub(crate) held_since_us: u64,
    /// It is in the list of those whose replies may be waiting so.
    pub(crate) is_in_held: bool,
    pub(crate) last_active_us: u64,
    pub(crate) last_row: Option<&'static Row>,
    /// Bytes that the worker's account has of it.
    pub(crate) accounted: usize,
    pub(crate) cold: Box<Cold>,
}

impl Session {
    pub(crate) fn new(id: u64, peer: Peer, now_us: u64) -> Self {
        let cold = Cold { peer, connected_us: now_us, ..Cold::default() };
        Self {
            id,
            down: Downstream::new(),
            input: None,
            class: 0,
            protocol: Protocol::Resp2,
            database: 0,
            reply_mode: ReplyMode::On,
            pause: Pause::default(),
            is_listed: false,
            is_resuming: false,
            is_blocked: false,
            held_since_us: 0,
            is_in_held: false,
            last_active_us: now_us,
            last_row: None,
            accounted: 0,
            cold: Box::new(cold),
        }
    }

    /// Bytes held for it.
    pub(crate) fn held_bytes(&self) -> usize {
        self.down.waiting_bytes() + self.input.as_ref().map_or(0, |i| i.capacity())
    }
}

/// How the reading of a client's requests goes on after one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    /// With the next request.
    Next,
    /// Not now: the request was dealt with, but the client must not be read further for the time being.
    Pause,
    /// Not now, and the request has to be read again then.
    Again,
    /// Not at all: what else the client sent is ignored.
    Stop,
}

/// Who asked, for answers that take their time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asker {
    pub(crate) session: Handle,
    pub(crate) seq: respool_connection::Seq,
}
