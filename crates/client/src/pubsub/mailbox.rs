//! What has come for one subscription and was not taken: bounded, with a policy for what does not fit.

use crate::core::Waiter;
use crate::{Error, Outcome};
use bytes::Bytes;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A message of a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Message {
    /// The channel that it was published to.
    pub channel: Bytes,
    /// The pattern that the channel fits, if the subscription is one of patterns.
    pub pattern: Option<Bytes>,
    /// What was published.
    pub payload: Bytes,
}

/// What a subscription gives, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// A message.
    Message(Message),
    /// The connection was lost, and all channels of the subscription are subscribed to again. Messages that were published since the
    /// last one before it are missing. What is read from the server from now on is as new as the messages that follow.
    Gap,
    /// So many messages were dropped here, because they were not taken in time. A gap among them counts as one.
    Lagged(u64),
}

/// What happens to a message that does not fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Overflow {
    /// The oldest messages make room for it. [`Notice::Lagged`] says how many.
    #[default]
    DropOldest,
    /// The subscription ends, behind what has come so far and [`Notice::Lagged`].
    End,
}

/// How much may wait for one subscription, and what happens beyond that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) messages: usize,
    pub(crate) bytes: usize,
    pub(crate) overflow: Overflow,
}

#[derive(Debug)]
pub(crate) struct Mailbox {
    state: Mutex<State>,
    bounds: Bounds,
}

#[derive(Debug, Default)]
struct State {
    queue: VecDeque<Notice>,
    bytes: usize,
    /// Dropped in front of what is in the queue.
    lagged: u64,
    /// Dropped behind it, when the subscription ends for that.
    lagged_last: u64,
    waiter: Waiter,
    /// Topics that the server has not confirmed.
    unconfirmed: usize,
    /// All of them were confirmed once: its caller has a subscription.
    was_confirmed: bool,
    is_gap_due: bool,
    is_ended: bool,
    refusal: Option<Error>,
}

/// What a look into a mailbox gives.
#[derive(Debug)]
pub(crate) enum Taken {
    Notice(Notice),
    Ended,
    Nothing,
}

fn size(message: &Message) -> usize {
    message.channel.len() + message.payload.len()
}

impl Mailbox {
    pub(crate) fn new(bounds: Bounds) -> Self {
        Self { state: Mutex::default(), bounds }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A message has come. Returns what waits for it.
    pub(super) fn put(&self, message: Message) -> Waiter {
        let mut state = self.lock();
        if state.is_ended {
            return Waiter::None;
        }
        let Bounds { messages, bytes, overflow } = self.bounds;
        let more = size(&message);
        let is_over = |state: &State| state.queue.len() >= messages || state.bytes + more > bytes;
        if is_over(&state) && overflow == Overflow::End {
            state.lagged_last += 1;
            state.is_ended = true;
            return std::mem::take(&mut state.waiter);
        }
        if more > bytes {
            // No room is enough for it: what waits stays.
            match state.queue.back_mut() {
                Some(Notice::Lagged(dropped)) => *dropped += 1,
                Some(_) => state.queue.push_back(Notice::Lagged(1)),
                None => state.lagged += 1,
            }
            return std::mem::take(&mut state.waiter);
        }
        while is_over(&state) {
            match state.queue.pop_front() {
                Some(Notice::Message(old)) => {
                    state.bytes -= size(&old);
                    state.lagged += 1;
                }
                // In front of messages that are dropped, these are told by the number of them.
                Some(Notice::Lagged(dropped)) => state.lagged += dropped,
                Some(Notice::Gap) => state.lagged += 1,
                None => {
                    state.lagged += 1;
                    return std::mem::take(&mut state.waiter);
                }
            }
        }
        state.bytes += more;
        state.queue.push_back(Notice::Message(message));
        std::mem::take(&mut state.waiter)
    }

    /// Takes what has come first.
    fn take(state: &mut State) -> Taken {
        let mut lagged = std::mem::take(&mut state.lagged);
        if lagged > 0 {
            if let Some(Notice::Lagged(behind)) = state.queue.front() {
                lagged += behind;
                state.queue.pop_front();
            }
            return Taken::Notice(Notice::Lagged(lagged));
        }
        if let Some(notice) = state.queue.pop_front() {
            if let Notice::Message(message) = &notice {
                state.bytes -= size(message);
            }
            return Taken::Notice(notice);
        }
        match std::mem::take(&mut state.lagged_last) {
            0 if state.is_ended => Taken::Ended,
            0 => Taken::Nothing,
            lagged => Taken::Notice(Notice::Lagged(lagged)),
        }
    }

    /// Takes what has come first, or waits by `waiter`.
    pub(crate) fn take_or_wait(&self, waiter: impl FnOnce() -> Waiter) -> Taken {
        let mut state = self.lock();
        let taken = Self::take(&mut state);
        if matches!(taken, Taken::Nothing) {
            let old = std::mem::replace(&mut state.waiter, waiter());
            drop(state);
            drop(old);
        }
        taken
    }

    /// Whether everything was confirmed; otherwise waits by `waiter`.
    pub(crate) fn confirmed_or_wait(&self, waiter: impl FnOnce() -> Waiter) -> Option<Result<(), Error>> {
        let mut state = self.lock();
        if let Some(error) = state.refusal.take() {
            return Some(Err(error));
        }
        if state.was_confirmed {
            return Some(Ok(()));
        }
        if state.is_ended {
            return Some(Err(Error::new(crate::ErrorKind::Closed, Outcome::NotSent)));
        }
        let old = std::mem::replace(&mut state.waiter, waiter());
        drop(state);
        drop(old);
        None
    }

    /// Adds `topics` subscriptions that wait for the confirmation of the server.
    pub(crate) fn expect(&self, topics: usize) {
        let mut state = self.lock();
        state.unconfirmed += topics;
        state.was_confirmed = state.unconfirmed == 0;
    }

    /// The server has confirmed a topic.
    pub(super) fn confirm(&self) -> Waiter {
        let mut state = self.lock();
        state.unconfirmed = state.unconfirmed.saturating_sub(1);
        if state.unconfirmed > 0 {
            return Waiter::None;
        }
        state.was_confirmed = true;
        if std::mem::take(&mut state.is_gap_due) && state.queue.back() != Some(&Notice::Gap) {
            state.queue.push_back(Notice::Gap);
        }
        std::mem::take(&mut state.waiter)
    }

    /// Topics that were confirmed are not any longer: messages may be missing until they are again.
    pub(super) fn lose(&self, topics: usize) {
        let mut state = self.lock();
        state.is_gap_due = true;
        state.unconfirmed += topics;
    }

    /// The subscription is over.
    pub(crate) fn end(&self, refusal: Option<Error>) -> Waiter {
        let mut state = self.lock();
        state.is_ended = true;
        state.refusal = refusal;
        std::mem::take(&mut state.waiter)
    }

    /// Whether nothing more comes for its caller.
    pub(super) fn is_ended(&self) -> bool {
        self.lock().is_ended
    }

    /// Whether its caller has had a subscription.
    pub(super) fn was_confirmed(&self) -> bool {
        self.lock().was_confirmed
    }

    /// Whether its caller still waits for a confirmation.
    pub(super) fn is_pending(&self) -> bool {
        let state = self.lock();
        !state.was_confirmed && !state.is_ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &'static str) -> Message {
        Message { channel: Bytes::from_static(b"c"), pattern: None, payload: Bytes::from_static(text.as_bytes()) }
    }

    fn taken(mailbox: &Mailbox) -> Vec<Notice> {
        let take = || match mailbox.take_or_wait(|| Waiter::None) {
            Taken::Notice(notice) => Some(notice),
            _ => None,
        };
        std::iter::from_fn(take).collect()
    }

    #[test]
    fn the_oldest_messages_make_room_and_are_counted() {
        let mailbox = Mailbox::new(Bounds { messages: 2, bytes: 100, overflow: Overflow::DropOldest });
        for text in ["1", "2", "3", "4"] {
            mailbox.put(message(text));
        }
        let expected = [Notice::Lagged(2), Notice::Message(message("3")), Notice::Message(message("4"))];
        assert_eq!(taken(&mailbox), expected);
    }

    #[test]
    fn bytes_are_bounded_and_what_never_fits_is_counted() {
        let mailbox = Mailbox::new(Bounds { messages: 100, bytes: 10, overflow: Overflow::DropOldest });
        mailbox.put(message("12345"));
        mailbox.put(message("6789"));
        assert_eq!(taken(&mailbox), [Notice::Lagged(1), Notice::Message(message("6789"))]);
        mailbox.put(message("1234567890"));
        assert_eq!(taken(&mailbox), [Notice::Lagged(1)]);
        assert_eq!(mailbox.lock().bytes, 0);
    }

    #[test]
    fn what_never_fits_takes_nothing_with_it() {
        let mailbox = Mailbox::new(Bounds { messages: 3, bytes: 10, overflow: Overflow::DropOldest });
        let (fits, never) = (["1", "2", "3", "4"].map(message), message("1234567890"));
        let put = |message: &Message| drop(mailbox.put(message.clone()));
        let told = |at: usize| Notice::Message(fits[at].clone());
        [&fits[0], &fits[1], &never, &never].into_iter().for_each(put);
        assert_eq!(taken(&mailbox), [told(0), told(1), Notice::Lagged(2)]);
        // They count when what stands behind them makes room as well.
        [&fits[0], &never, &fits[1], &never, &fits[2], &fits[3]].into_iter().for_each(put);
        assert_eq!(taken(&mailbox), [Notice::Lagged(4), told(2), told(3)]);
        // However many there are, little is kept.
        fits.iter().flat_map(|message| [message, &never]).cycle().take(1_000).for_each(put);
        assert!(mailbox.lock().queue.len() <= 4);
    }

    #[test]
    fn a_subscription_may_end_instead() {
        let mailbox = Mailbox::new(Bounds { messages: 1, bytes: 100, overflow: Overflow::End });
        mailbox.put(message("1"));
        mailbox.put(message("2"));
        mailbox.put(message("3"));
        assert_eq!(taken(&mailbox), [Notice::Message(message("1")), Notice::Lagged(1)]);
        assert!(matches!(mailbox.take_or_wait(|| Waiter::None), Taken::Ended));
    }

    #[test]
    fn a_gap_is_told_once_everything_is_confirmed_again() {
        let mailbox = Mailbox::new(Bounds { messages: 9, bytes: 100, overflow: Overflow::End });
        mailbox.expect(2);
        assert!(mailbox.confirmed_or_wait(|| Waiter::None).is_none());
        mailbox.confirm();
        mailbox.confirm();
        assert!(mailbox.confirmed_or_wait(|| Waiter::None).unwrap().is_ok());
        assert_eq!(taken(&mailbox), []);
        mailbox.lose(2);
        mailbox.confirm();
        mailbox.put(message("1"));
        assert_eq!(taken(&mailbox), [Notice::Message(message("1"))]);
        mailbox.confirm();
        assert_eq!(taken(&mailbox), [Notice::Gap]);
    }
}
