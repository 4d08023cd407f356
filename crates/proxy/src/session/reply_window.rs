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

use crate::limits::{
    CLIENT_OUTSTANDING_MAX, FIRST_REPLY_BYTES, REPLIES_FALL_DIVISOR, TAKES_AHEAD_US, TAKES_BYTES_PER_S_MIN, WINDOW_MIN,
};
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

    /// Bytes that have been written to it, and of replies that it did not want. Wraps around.
    pub(crate) fn written_bytes(&self) -> u64 {
        self.written_bytes
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
///
/// What it takes buys time at [`TAKES_BYTES_PER_S_MIN`], a bounded amount ahead. So it may take in steps, as kernels have it, and one that takes a
/// byte now and then is as slow as one that takes nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Taking {
    /// Until when what it has taken lasts: before the present or behind it.
    paid_until_us: u64,
    /// What had been written when it was looked at last.
    seen_bytes: u64,
    /// Since when it has not taken all that waited for it then, and what will have been written once it has.
    all_us: u64,
    all_bytes: u64,
    /// The look at which its connection was last tried although nothing said that there was room.
    tried_at_look: u64,
}

impl Taking {
    /// A write was cut short, `written` bytes of this client have been written in all, and `waiting` are left.
    fn note(&mut self, now_us: u64, written: u64, waiting: usize) {
        let taken = written.wrapping_sub(std::mem::replace(&mut self.seen_bytes, written));
        if self.all_bytes.wrapping_sub(written) as i64 <= 0 {
            // It had taken everything, or what there was when this was noted last. What the kernel took of the rest says nothing.
            self.paid_until_us = self.paid_until_us.max(now_us);
            (self.all_us, self.all_bytes) = (now_us, written.wrapping_add(waiting as u64));
            return;
        }
        let bought_us = taken.saturating_mul(1_000_000) / TAKES_BYTES_PER_S_MIN;
        self.paid_until_us = self.paid_until_us.saturating_add(bought_us).min(now_us + TAKES_AHEAD_US);
    }

    /// Whether it has taken too little for so long, or not all that waited for it then for so long.
    pub(crate) fn is_slow(&self, now_us: u64, nothing_us: u64, all_us: u64) -> bool {
        now_us.saturating_sub(self.paid_until_us) >= nothing_us || now_us.saturating_sub(self.all_us) >= all_us
    }

    /// Whether its connection was tried at the look before this one. If not, it has to be now.
    pub(crate) fn was_tried_before(&mut self, look: u64) -> bool {
        std::mem::replace(&mut self.tried_at_look, look) + 1 == look
    }
}

impl Session {
    /// A write to the client was cut short.
    pub(crate) fn note_full(&mut self, now_us: u64) {
        self.details.taking.note(now_us, self.credit.written_bytes, self.down.output().len());
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
    const NOTHING_US: u64 = 1_500_000;

    /// Whether a client to which a write is cut short every so often, having taken so much, is ever slow within a minute.
    fn is_slow(step_us: u64, bytes: u64) -> bool {
        let (begin_us, mut taking) = (5_000_000, Taking::default());
        taking.note(begin_us, 700_000, 100 << 20);
        let steps = 1..=60_000_000 / step_us;
        steps.into_iter().any(|step| {
            let now_us = begin_us + step * step_us;
            let is_slow = taking.is_slow(now_us, NOTHING_US, u64::MAX);
            taking.note(now_us, 700_000 + step * bytes, 100 << 20);
            is_slow
        })
    }

    #[test]
    fn who_takes_in_steps_is_not_slow_and_who_takes_a_byte_is() {
        assert!(!is_slow(1_310_000, 131_000), "100 kB/s over the loopback device");
        assert!(!is_slow(660_000, 66_000), "the same over a unix socket");
        assert!(!is_slow(10_000, 700));
        assert!(is_slow(500_000, 1) && is_slow(1_000, 1), "however steadily");
        assert!(is_slow(10_000, 600), "below the least rate");
        assert!(is_slow(3_600_000, 4 << 20), "what was taken before does not last for ever");
    }

    #[test]
    fn who_is_owed_much_has_to_take_it_within_a_time() {
        let (mut taking, all_us) = (Taking::default(), 30_000_000);
        taking.note(0, 700_000, 4 << 20);
        for second in 1..30 {
            taking.note(second * 1_000_000, 700_000 + second * 100_000, 4 << 20);
            assert!(!taking.is_slow(second * 1_000_000, NOTHING_US, all_us), "{second}");
        }
        assert!(taking.is_slow(30_000_000, NOTHING_US, all_us), "of 4 MB it has taken 3");
        taking.note(30_000_000, 700_000 + (4 << 20), 4 << 20);
        assert!(!taking.is_slow(30_000_000, NOTHING_US, all_us), "it has taken what waited then");
    }

    #[test]
    fn who_takes_nothing_is_slow_once_its_time_is_over() {
        let mut taking = Taking::default();
        taking.note(5, 700_000, 10_000);
        assert!(!taking.is_slow(4 + NOTHING_US, NOTHING_US, u64::MAX));
        assert!(
            taking.is_slow(5 + NOTHING_US, NOTHING_US, u64::MAX),
            "what the kernel took at first counts for nothing"
        );
        // A write that is tried in vain changes nothing.
        taking.note(5 + NOTHING_US, 700_000, 10_000);
        assert!(taking.is_slow(5 + NOTHING_US, NOTHING_US, u64::MAX));
        assert!(!taking.was_tried_before(8) && taking.was_tried_before(9) && !taking.was_tried_before(11));
    }

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
