//! How many replies a client may be owed at once: as many as fit what it may leave unread, by the size of those it got.
//!
//! Replies have to be read from a shared connection as they come, or those behind them are held up (head-of-line blocking). So the
//! replies of a client that pipelines requests and does not read would be buffered, or block all other clients. How large
//! a reply will be is not known when its request leaves; what is known is how large the client's replies have been.
//!
//! ```text
//!                 half the window used, replies small:        larger replies than expected:
//!                 the expected size falls, by 16 at most      it is what they are, at once
//!   [first expectation] ---------------------------> [expectation] <----------------.
//!                                                         |                         |
//!                                window = client_output_soft_bytes / expectation ---'
//! ```
//!
//! Requests whose replies are short by their row (`+OK`, a number) do not wait for the window; those among them that are not do. A client that
//! begins with a long pipeline of writes is asked for all of it at once.
//!
//! The first expectation is high. A client that pipelines small requests pays a few round trips for that once; one that
//! never has more outstanding than the first window notices nothing. Nothing of it is computed per request: the window is
//! one comparison, and replies are looked at when a client has used it up, or is written much at once.

use crate::limits::{CLIENT_OUTSTANDING_MAX, FIRST_REPLY_BYTES, REPLIES_FALL_DIVISOR, WINDOW_MIN};
use crate::session::Session;
use respool_command::Flags;
use respool_connection::Downstream;
use respool_wire::Args;

/// How many replies one client may be owed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Credit {
    /// Replies; with more outstanding it is not read.
    window: u32,
    /// Bytes that its next replies are expected to have, each.
    expected: u32,
    /// Replies it had been given when they were looked at last, as the ring counts them.
    seen_replies: u32,
    /// Bytes that had been written to it, or waited to be.
    seen_bytes: u64,
    written_bytes: u64,
    /// Replies that it did not want.
    swallowed: u32,
}

impl Credit {
    /// For a client that has been given nothing, and may leave `budget` bytes unread.
    pub(crate) fn new(budget: usize) -> Self {
        let mut credit = Self {
            window: 0,
            expected: FIRST_REPLY_BYTES,
            seen_replies: 0,
            seen_bytes: 0,
            written_bytes: 0,
            swallowed: 0,
        };
        credit.open(budget);
        credit
    }

    /// Replies that the client may be owed.
    #[inline(always)]
    pub(crate) fn window(&self) -> usize {
        self.window as usize
    }

    /// Bytes were written to the client.
    #[inline(always)]
    pub(crate) fn note_written(&mut self, bytes: usize) {
        self.written_bytes = self.written_bytes.wrapping_add(bytes as u64);
    }

    /// A reply that the client did not want has come.
    pub(crate) fn note_swallowed(&mut self, bytes: usize) {
        self.swallowed = self.swallowed.wrapping_add(1);
        self.note_written(bytes);
    }

    /// The client is read no more: what has been read of it is asked for, however much it is.
    pub(crate) fn lift(&mut self) {
        self.window = CLIENT_OUTSTANDING_MAX as u32;
    }

    /// Looks at the replies that the client was given since it was looked at last.
    #[cold]
    pub(crate) fn review(&mut self, down: &Downstream, budget: usize) {
        let all = down.handed_out().wrapping_add(self.swallowed);
        let replies = all.wrapping_sub(self.seen_replies);
        let given = self.written_bytes.wrapping_add(down.output().len() as u64);
        if replies == 0 {
            // None is complete, or they were made here.
            return;
        }
        let size = u32::try_from(given.wrapping_sub(self.seen_bytes) / u64::from(replies)).unwrap_or(u32::MAX);
        if size > self.expected {
            self.expected = size;
        } else if replies >= self.window / 2 {
            self.expected = size.max(self.expected / REPLIES_FALL_DIVISOR);
        } else {
            // Few small ones prove nothing.
            self.open(budget);
            return;
        }
        (self.seen_replies, self.seen_bytes) = (all, given);
        self.open(budget);
    }

    fn open(&mut self, budget: usize) {
        let replies = budget / self.expected.max(1) as usize;
        self.window = replies.clamp(WINDOW_MIN, CLIENT_OUTSTANDING_MAX) as u32;
    }
}

/// How a client takes what waits for it, once its connection has been full.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Taking {
    /// When it last took some and left the rest.
    some_us: u64,
    /// Since when it has not taken all that waited for it then, and what will have been written once it has.
    all_us: u64,
    all_bytes: u64,
}

impl Taking {
    /// Whether it has taken nothing for so long, or not all that waited for it then for so long.
    pub(crate) fn is_slow(&self, now_us: u64, nothing_us: u64, all_us: u64) -> bool {
        now_us - self.some_us >= nothing_us || now_us - self.all_us >= all_us
    }
}

impl Session {
    /// A write to the client was cut short.
    pub(crate) fn note_full(&mut self, now_us: u64) {
        let (taking, written) = (&mut self.details.taking, self.credit.written_bytes);
        taking.some_us = now_us;
        if taking.all_bytes.wrapping_sub(written) as i64 <= 0 {
            (taking.all_us, taking.all_bytes) = (now_us, written.wrapping_add(self.down.output().len() as u64));
        }
    }

    /// Whether a client has asked for as much as it may be owed. Writes to which it wants no replies are only bounded in
    /// number: what they are answered with is small and not kept, and what is not read here before a drain is not done.
    pub(crate) fn has_asked_much(&self) -> bool {
        let is_write = self.last_row.is_some_and(|row| row.flags.has(Flags::WRITE));
        let owed = if is_write { self.down.outstanding() } else { self.down.unsettled() };
        owed > self.credit.window() || self.down.unsettled() > CLIENT_OUTSTANDING_MAX
    }

    /// The same where the request that it has asked last is at hand: one whose reply is a few bytes, however much is stored, waits only
    /// for the number of them. What its other requests are owed is compared before each of those.
    pub(crate) fn has_asked_much_by(&self, args: Args<'_>) -> bool {
        let is_short = || self.last_row.is_some_and(|row| row.has_short_reply(args));
        self.has_asked_much() && (self.down.unsettled() > CLIENT_OUTSTANDING_MAX || !is_short())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use respool_connection::BufferPool;

    const BUDGET: usize = 1 << 20;

    /// A client that is given replies and takes them.
    struct Reader {
        down: Downstream,
        pool: BufferPool,
        credit: Credit,
    }

    impl Reader {
        fn new() -> Self {
            Self { down: Downstream::new(), pool: BufferPool::new(), credit: Credit::new(BUDGET) }
        }

        fn get(&mut self, replies: usize, bytes: usize) {
            let reply = vec![b'x'; bytes];
            for _ in 0..replies {
                let seq = self.down.expect();
                self.down.feed(seq, &reply, true, &mut self.pool);
                self.credit.note_written(bytes);
                self.down.advance(bytes, &mut self.pool);
            }
            self.credit.review(&self.down, BUDGET);
        }
    }

    #[test]
    fn a_window_opens_by_as_much_as_has_been_used_of_it() {
        let mut reader = Reader::new();
        let first = reader.credit.window();
        assert!(first * FIRST_REPLY_BYTES as usize <= BUDGET);
        reader.get(first / 2 - 1, 5);
        assert_eq!(reader.credit.window(), first, "few replies prove nothing");
        let mut rounds = 0;
        while reader.credit.window() < CLIENT_OUTSTANDING_MAX {
            let before = reader.credit.window();
            reader.get(before, 5);
            assert!(reader.credit.window() <= before * REPLIES_FALL_DIVISOR as usize);
            rounds += 1;
        }
        assert!(rounds <= 8, "{rounds}");
    }

    #[test]
    fn a_window_closes_as_soon_as_replies_are_large() {
        let mut reader = Reader::new();
        while reader.credit.window() < CLIENT_OUTSTANDING_MAX {
            reader.get(reader.credit.window(), 5);
        }
        reader.get(1, 100_000);
        assert_eq!(reader.credit.window(), BUDGET / 100_000);
        reader.get(1, 10 << 20);
        assert_eq!(reader.credit.window(), WINDOW_MIN);
        reader.get(WINDOW_MIN, 5);
        assert!(reader.credit.window() < 32, "one round of small ones does not open it");
    }
}
