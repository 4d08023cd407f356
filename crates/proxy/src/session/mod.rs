//! One client: its virtual connection state and its two ends.
//!
//! What a client does to "its connection" (SELECT, HELLO, CLIENT SETNAME, CLIENT REPLY) is kept here and never reaches a
//! shared connection to a node.

pub(crate) mod disconnect_log;
pub(crate) mod forced_disconnect;
mod half_close;
pub(crate) mod held_time;
pub(crate) mod large_request;
mod leaving;
pub(crate) mod marks;
pub(crate) mod refused_state;
pub(crate) mod reply_window;
pub(crate) mod selecting;
mod states;
pub(crate) mod table;

use crate::ids::{ClientHandle, ClientNumber, LaneKeyId};
use crate::reply::large::Large;
use crate::reply::owner::Owner;
use crate::reply::progress::ReplyMode;
use crate::session::held_time::HeldTime;
use crate::session::marks::{DedicatedRole, Pins, SessionSubscriber, UnmetStates};
use crate::session::reply_window::{Credit, Taking};
use crate::users::quota::UserQuota;
use crate::workers::budget::ProcessBudget;
use crate::workers::learnt::LearningBudget;
use respool_access::User;
use respool_command::Row;
use respool_connection::{Downstream, Input, Peer};
use respool_wire::Protocol;
use std::sync::Arc;

/// Why a client is not being read. Several reasons may hold at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PauseReasons(u16);

impl PauseReasons {
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
    /// Requests are held back: a client has paused all clients, or an operator a node.
    pub(crate) const HELD: Self = Self(64);
    /// A node is being asked for the command.
    pub(crate) const LEARNING: Self = Self(128);
    /// Its user has asked for as much as it may for now.
    pub(crate) const RATE: Self = Self(256);

    /// It has had its part of this turn, and what it has asked for goes on in the next.
    pub(crate) const SLICE: Self = Self(512);

    /// A SCRIPT KILL or FUNCTION KILL of it is outstanding, or a change of all engines.
    pub(crate) const ORDER: Self = Self(1024);
    /// `PROXY SUSPEND` applies to it.
    pub(crate) const SUSPENDED: Self = Self(2048);

    /// Each with its name on the console.
    pub(crate) const ALL: [(Self, &'static str); 12] = [
        (Self::OUTPUT, "output"),
        (Self::OUTSTANDING, "outstanding"),
        (Self::BARRIER, "barrier"),
        (Self::LANE, "node"),
        (Self::PRESSURE, "memory"),
        (Self::CLOSING, "closing"),
        (Self::HELD, "operator"),
        (Self::LEARNING, "learning"),
        (Self::RATE, "rate"),
        (Self::SLICE, "turn"),
        (Self::ORDER, "order"),
        (Self::SUSPENDED, "suspended"),
    ];
}

/// The rare states of a session. While it is in none of them a request costs one test; in any, `request::filters` is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SessionFlags(u32);

impl SessionFlags {
    /// It has to authenticate before it may do anything else.
    pub(crate) const UNAUTHENTICATED: Self = Self(1);
    /// Its user may not do everything.
    pub(crate) const RESTRICTED: Self = Self(2);
    /// Its user may not ask for more than so much in a time.
    pub(crate) const LIMITED: Self = Self(4);
    /// It speaks RESP2 and has subscriptions, so it may do little else.
    pub(crate) const SUBSCRIBED: Self = Self(8);
    /// Its requests are queued until EXEC.
    pub(crate) const QUEUEING: Self = Self(16);
    /// It holds private connections for a while: it watches keys.
    pub(crate) const PINNED: Self = Self(32);
    /// It has connections of its own for good: it monitors, or follows a node as a replica does.
    pub(crate) const DEDICATED: Self = Self(64);
    /// Another pool mode may hold for it than before.
    pub(crate) const UNSETTLED: Self = Self(4096);
    /// Nodes have changed while replies to it were outstanding.
    pub(crate) const OVERTAKEN: Self = Self(8192);
    /// Its requests do not all go where the topology says.
    pub(crate) const ROUTED: Self = Self(128);
    /// It is told of changes to what it has read.
    pub(crate) const TRACKING: Self = Self(256);
    /// Requests may have to wait: all clients are paused (`CLIENT PAUSE`), or nodes (`PROXY PAUSE`).
    pub(crate) const HELD: Self = Self(512);

    /// It has fetched large replies and has a connection of its own for them.
    pub(crate) const LARGE: Self = Self(1024);
    /// The program around the proxy wants to be asked about requests.
    pub(crate) const HOOKED: Self = Self(2048);
    /// It was refused another database, user or dialect for reasons of ours.
    pub(crate) const UNMET: Self = Self(16384);
    /// Its requests go over the connections for scripts.
    pub(crate) const SCRIPTING: Self = Self(32768);
    /// Its requests leave no trace in how recently keys were used: `CLIENT NO-TOUCH`.
    pub(crate) const NO_TOUCH: Self = Self(65536);

    /// Its next script has a debugger.
    pub(crate) const DEBUGS: Self = Self(131_072);
    /// That script runs where the keys of all clients are.
    pub(crate) const DEBUGS_ALL_KEYS: Self = Self(262_144);

    /// Which states are asked about a request, in this order: authentication, quota and rights; then what
    /// remembers the request, what the session's state makes of it, and where it goes. The first five may refuse it, and
    /// nothing that stands behind them hears of what was refused.
    pub(crate) const ORDER: [Self; 18] = [
        Self::UNAUTHENTICATED,
        Self::LIMITED,
        Self::UNMET,
        Self::RESTRICTED,
        Self::HOOKED,
        Self::TRACKING,
        Self::SUBSCRIBED,
        Self::DEDICATED,
        Self::OVERTAKEN,
        Self::UNSETTLED,
        Self::SCRIPTING,
        Self::LARGE,
        Self::QUEUEING,
        Self::PINNED,
        Self::HELD,
        Self::DEBUGS,
        Self::ROUTED,
        Self::NO_TOUCH,
    ];
}

/// What sets of bits have in common.
macro_rules! bit_sets {
    ($($set:ty),+) => {
        $(impl $set {
            #[inline]
            pub(crate) const fn is_none(self) -> bool {
                self.0 == 0
            }

            #[inline]
            pub(crate) const fn has(self, one: Self) -> bool {
                self.0 & one.0 != 0
            }

            pub(crate) fn add(&mut self, one: Self) {
                self.0 |= one.0;
            }

            pub(crate) fn remove(&mut self, one: Self) {
                self.0 &= !one.0;
            }
        })+
    };
}

bit_sets!(PauseReasons, SessionFlags);

/// What is looked at rarely, kept out of the way of what every request touches.
#[derive(Debug, Default)]
pub(crate) struct SessionDetails {
    pub(crate) peer: Peer,
    pub(crate) name: Box<str>,
    pub(crate) lib_name: Box<str>,
    pub(crate) lib_version: Box<str>,
    pub(crate) connected_us: u64,
    pub(crate) is_no_evict: bool,
    /// Its user; `None` is the default user, or none yet.
    pub(crate) user: Option<Arc<User>>,
    /// What its user may ask for, if that is bounded. It counts among that user's connections.
    pub(crate) allowance: Option<Arc<UserQuota>>,
    /// So much of what waits to be written was asked for before it was this user, and is not charged to it.
    pub(crate) charged_ahead: usize,
    /// Number of its last request that was charged to its user's quota, among all requests of the worker.
    pub(crate) charged_at: u64,
    /// Its next request was charged before it was put back.
    pub(crate) is_charged: bool,
    /// The same for the hook of the program: number of the last request that it allowed.
    pub(crate) passed_at: u64,
    /// The hook allowed the next request before that was put back.
    pub(crate) has_passed: bool,
    /// Connected and unauthenticated since (`auth_timeout`).
    pub(crate) unauthenticated_since_us: u64,
    /// Budget of COMMAND INFO queries that nodes are sent on its behalf, about commands that no row describes.
    pub(crate) learner: LearningBudget,
    /// Bytes that waited for it once the embedded server had made one large reply, until it has taken them: what can be
    /// stored can be read, however little of it may pile up.
    pub(crate) owed_at_once: usize,
    /// How it reads its replies.
    pub(crate) taking: Taking,
    /// It has closed its side: it waits for nothing any more.
    pub(crate) has_hung_up: bool,
    /// All that it has sent has been read, as far as it may be now.
    pub(crate) has_ended: bool,
    /// It has closed both, or its connection was reset: nothing reaches it any more.
    pub(crate) has_gone: bool,
    /// It has asked for what changes its connection before it was answered what it had asked before: it does not wait for
    /// replies.
    pub(crate) runs_ahead: bool,
    /// The number of the last halt of its reading, counted over all clients of the worker.
    pub(crate) halted: u64,
    /// Since when what has been read of it waits for room at a node; 0: it does not.
    pub(crate) roomless_us: u64,
    /// A PUBLISH of it may be outstanding. Cleared lazily, see `has_messages_under_way`.
    pub(crate) has_published: bool,
    /// The state of the timeout of its held requests.
    pub(crate) held: HeldTime,
    /// When it was last seen not to be idle, where idle clients are disconnected.
    idle: held_time::IdleTime,
    /// When it last sent a script behind something else without waiting for the reply to that; 0: never.
    pub(crate) scripts_ahead_us: u64,
    /// A request of it was answered that it has timed out, and may still be executed.
    pub(crate) has_late: bool,
    /// What it was refused, and a server would not have refused it.
    pub(crate) unmet: UnmetStates,
}

#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: ClientNumber,
    pub(crate) down: Downstream,
    /// How many replies it may be owed.
    pub(crate) credit: Credit,
    /// The unfinished request, if one is.
    pub(crate) input: Option<Box<Input>>,
    /// Database and protocol as a place in the worker's table of classes.
    pub(crate) class: LaneKeyId,
    pub(crate) protocol: Protocol,
    pub(crate) database: u32,
    pub(crate) reply_mode: ReplyMode,
    pub(crate) flags: SessionFlags,
    pub(crate) pause: PauseReasons,
    /// It is in the list of those to be written.
    pub(crate) is_listed: bool,
    /// It is in the list of those to go on reading.
    pub(crate) is_resuming: bool,
    /// The last write was cut short; the loop says when there is room.
    pub(crate) is_blocked: bool,
    /// Since when replies have waited for the rest of the client's pipeline; 0 if none do.
    pub(crate) held_since_us: u64,
    /// It is in the list of those whose replies may be waiting so.
    pub(crate) is_unflushed: bool,
    pub(crate) last_active_us: u64,
    pub(crate) pace: respool_connection::flush::ClientPace,
    pub(crate) last_row: Option<&'static Row>,
    /// Bytes of parts of its replies, the others of which have not come.
    pub(crate) gathered_bytes: usize,
    /// Bytes that the worker's account has of it.
    pub(crate) accounted: usize,
    /// What it holds beyond the shared lanes.
    pub(crate) pins: Option<Box<Pins>>,
    /// A connection of its own, for large replies.
    pub(crate) large: Option<Box<Large>>,
    /// What it subscribes to, if it ever did.
    pub(crate) subscriber: Option<Box<dyn SessionSubscriber>>,
    pub(crate) details: Box<SessionDetails>,
}

impl Session {
    /// A client that has just come and may leave `budget` bytes unread.
    pub(crate) fn new(id: ClientNumber, peer: Peer, now_us: u64, budget: usize) -> Self {
        let details = SessionDetails { peer, connected_us: now_us, ..SessionDetails::default() };
        Self {
            id,
            down: Downstream::new(),
            credit: Credit::new(budget),
            input: None,
            class: LaneKeyId::PLAIN,
            protocol: Protocol::Resp2,
            database: 0,
            reply_mode: ReplyMode::On,
            flags: SessionFlags::default(),
            pause: PauseReasons::default(),
            is_listed: false,
            is_resuming: false,
            is_blocked: false,
            held_since_us: 0,
            is_unflushed: false,
            last_active_us: now_us,
            pace: respool_connection::flush::ClientPace::default(),
            last_row: None,
            gathered_bytes: 0,
            accounted: 0,
            pins: None,
            large: None,
            subscriber: None,
            details: Box::new(details),
        }
    }

    /// Whose the reply to the request is that goes to one node: it takes the next place if the client wants it.
    #[inline]
    pub(crate) fn expect_from_node(&mut self, client: ClientHandle) -> Owner {
        let ClientHandle { index, generation } = client;
        if self.reply_mode == ReplyMode::On {
            return Owner::Client { index, generation, seq: self.down.expect() };
        }
        self.reply_mode.pass();
        Owner::Unanswered { index, generation }
    }

    /// Bytes of replies that wait to be written, or for what comes before them or belongs to them.
    #[inline]
    pub(crate) fn reply_bytes(&self) -> usize {
        self.down.waiting_bytes() + self.gathered_bytes
    }

    /// Its reading has ended for now. If it waits for room at a node it does so since its reading came to the request that it waits with.
    pub(crate) fn note_room_wait(&mut self, is_paused: bool, is_another: bool, now_us: u64) {
        let waits = is_paused && self.pause.has(PauseReasons::LANE) && self.input.is_some();
        let since_us = &mut self.details.roomless_us;
        if !waits {
            *since_us = 0;
        } else if is_another || *since_us == 0 {
            *since_us = now_us.max(1);
        }
    }

    /// Whether what has been read of it waits for room at a node since then, or for longer.
    pub(crate) fn has_no_room_since(&self, due_us: Option<u64>) -> bool {
        let since_us = self.details.roomless_us;
        since_us > 0 && due_us.is_some_and(|due_us| since_us <= due_us)
    }

    /// Whether it has been answered an EXEC in part.
    pub(crate) fn is_amid_exec_reply(&self) -> bool {
        self.flags.has(SessionFlags::QUEUEING) && self.pins.as_ref().is_some_and(|pins| pins.is_replying())
    }

    /// Whether closing or suspension is the only reason not to read it, and it is in the middle of a reply to EXEC, which
    /// is completed first.
    pub(crate) fn is_to_end_exec_reply(&self) -> bool {
        let mut others = self.pause;
        others.remove(PauseReasons::SUSPENDED);
        let is_only_suspended = others.is_none() && !self.pause.is_none();
        (others == PauseReasons::CLOSING || is_only_suspended) && self.is_amid_exec_reply()
    }

    /// Whether it has been given everything that it is owed, and what it wants no reply to has been done.
    pub(crate) fn is_owed_nothing(&self) -> bool {
        self.down.is_drained() && self.down.is_settled() && !self.is_amid_exec_reply()
    }

    /// Memory held for it.
    #[inline]
    pub(crate) fn held_bytes(&self) -> usize {
        self.down.held_bytes()
            + self.gathered_bytes
            + self.input.as_ref().map_or(0, |i| i.held_bytes())
            + self.pins.as_ref().map_or(0, |p| p.held_bytes())
            + self.large.as_ref().map_or(0, |l| l.held_bytes())
    }

    /// What it is disconnected for where memory is short. Messages and names of channels count for each subscriber that has them, as in
    /// Redis, although they are held once.
    pub(crate) fn eviction_bytes(&self) -> usize {
        let of = |subscriber: &dyn SessionSubscriber| subscriber.backlog_bytes() + subscriber.named_bytes();
        self.held_bytes() + self.subscriber.as_deref().map_or(0, of)
    }

    /// Whether it has connections that serve it alone, and what for.
    pub(crate) fn dedicated(&self) -> Option<DedicatedRole> {
        Some(self.pins.as_ref()?.dedicated?.role)
    }

    /// Whether the client follows a node.
    pub(crate) fn is_replica(&self) -> bool {
        self.dedicated() == Some(DedicatedRole::Follows)
    }

    /// Updates the process's account of the bytes held for it. All workers share the account, so it is not written to if
    /// nothing has changed.
    #[inline]
    pub(crate) fn account(&mut self, ledger: &ProcessBudget) {
        let held = self.held_bytes();
        if held != self.accounted {
            ledger.account(std::mem::replace(&mut self.accounted, held), held);
        }
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

#[cfg(test)]
mod tests {
    use super::PauseReasons;

    #[test]
    fn a_reason_that_goes_leaves_the_others() {
        let all = [
            PauseReasons::OUTPUT,
            PauseReasons::OUTSTANDING,
            PauseReasons::BARRIER,
            PauseReasons::LANE,
            PauseReasons::PRESSURE,
            PauseReasons::CLOSING,
            PauseReasons::HELD,
            PauseReasons::LEARNING,
            PauseReasons::RATE,
            PauseReasons::SLICE,
            PauseReasons::ORDER,
        ];
        for gone in all {
            let mut pause = PauseReasons::default();
            all.into_iter().for_each(|reason| pause.add(reason));
            pause.remove(gone);
            assert!(all.into_iter().all(|reason| pause.has(reason) == (reason != gone)), "{gone:?}");
        }
    }
}
