//! Finds a connection on which nothing comes any more though nothing has closed it: a middlebox has forgotten it, or a cable is out.
//!
//! There is no timer for it. A call whose time is over without its reply knows since when it has waited, and whether anything has come
//! for any call meanwhile, or was taken by a server that takes a large request. What such calls have found one after the other adds up to how long the connection has been silent with a request on it.
//!
//! A connection that is replaced is lost like any other: its requests end with it, and what its socket still holds is not read.

use super::{Core, SlotId, State, Wakes};
use crate::Waited;

/// The connection as it was when a request was queued.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Asked {
    at_us: u64,
    epoch: u64,
    /// How often there had been a sign of the server.
    heard: u64,
}

impl State {
    /// A request is queued now.
    #[inline]
    pub(crate) fn asked(&self) -> Asked {
        Asked { at_us: self.last_used_us, epoch: self.epoch, heard: self.heard() }
    }

    /// How often there was a sign of the server.
    #[inline]
    fn heard(&self) -> u64 {
        self.counts.reads - self.vain_reads + self.confirmed
    }

    /// The kernel was full of what is written, and has taken more: the server has confirmed some of it. It may take a large request for
    /// longer than it may be silent.
    pub(super) fn note_confirmed(&mut self) {
        self.confirmed += 1;
    }

    /// What the request at `id`, whose time is over, waits behind.
    #[cold]
    pub(crate) fn waited(&self, id: SlotId, asked: Asked) -> Waited {
        // Not there: it was answered, and others of its caller behind it were not.
        let in_front = self.upstream.tickets().iter().position(|other| *other == id).unwrap_or(0);
        let has_heard = (asked.epoch, asked.heard) != (self.epoch, self.heard());
        Waited { in_front, unwritten_bytes: self.upstream.queued_bytes(), has_heard }
    }

    /// The time of a call is over that waits for its reply. The connection is lost if it has been silent for too long.
    pub(crate) fn note_unanswered(&mut self, core: &Core, asked: Asked, wakes: &mut Wakes) {
        let Some(limit) = core.config.silence else { return };
        let is_same = |other: Asked| (other.epoch, other.heard) == (self.epoch, self.heard());
        if self.link.is_none() || !is_same(asked) {
            return;
        }
        let known = self.silent.filter(|known| is_same(*known) && known.at_us < asked.at_us);
        let since = known.unwrap_or(asked);
        self.silent = Some(since);
        let now_us = core.now_us();
        if u128::from(now_us.saturating_sub(since.at_us)) >= limit.as_micros() {
            self.lose_link(&"the server is silent", now_us, wakes);
            self.open_lobby(wakes);
        }
    }
}
