//! Subscriptions: streams of messages, which go on when the connection is made anew.
//!
//! All subscriptions of a client share a connection of their own, in either dialect. In a cluster it is to any node, and those to sharded
//! channels have one to each node. A thread reads it while there are any: a task that
//! does not take its messages stops no other. What is not taken waits in the subscription, up to its bounds.

mod hub;
mod mailbox;
mod moving;
mod pump;

pub(crate) use hub::{Hub, Kind};
pub(crate) use mailbox::{Bounds, Mailbox};
pub use mailbox::{Message, Notice, Overflow};
pub(crate) use moving::Moving;

use crate::cluster::Shared;
use crate::core::Waiter;
use crate::limits::{SUBSCRIPTION_BYTES, SUBSCRIPTION_MESSAGES};
use crate::shards::Shards;
use crate::{Command, Error, ErrorKind, Outcome, ToArgs};
use bytes::Bytes;
use futures_core::Stream;
use mailbox::Taken;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// Where subscriptions of a kind are.
#[derive(Clone)]
pub(crate) enum Home {
    /// On one connection.
    Hub(Arc<Hub>),
    /// At the nodes of a cluster that have their slots.
    Slots(Arc<Shared>),
    /// At the servers that have keys of their names.
    Shards(Arc<Shards>),
}

impl Home {
    fn add(&self, kind: Kind, names: &[Bytes], bounds: Bounds, until: Instant) -> Arc<Mailbox> {
        match self {
            Self::Hub(hub) => hub.add(kind, names, bounds, until),
            Self::Slots(cluster) => cluster.add_channels(names, bounds, until),
            Self::Shards(shards) => shards.add_channels(kind, names, bounds, until),
        }
    }

    fn remove(&self, kind: Kind, names: &[Bytes], mailbox: &Arc<Mailbox>) {
        match self {
            Self::Hub(hub) => hub.remove(kind, names, mailbox),
            Self::Slots(cluster) => cluster.remove_channels(names, mailbox),
            Self::Shards(shards) => shards.remove_channels(kind, names, mailbox),
        }
    }

    /// Why a subscription fails whose time is over.
    fn why_late(&self) -> Error {
        match self {
            Self::Hub(hub) => hub.why_late(),
            Self::Slots(_) | Self::Shards(_) => {
                Error::new(ErrorKind::Timeout(None), Outcome::MaybeExecuted).of(b"SUBSCRIBE")
            }
        }
    }
}

/// Begins a subscription, made by [`Client::subscribe`](crate::Client::subscribe) and its neighbours. It is over when the server has
/// confirmed all of its channels, so that no message is missed that is published after that.
#[must_use = "nothing is subscribed to before it is awaited"]
pub struct Subscribe {
    home: Home,
    kind: Kind,
    names: Vec<Bytes>,
    bounds: Bounds,
    limit: Option<Duration>,
    until: Option<Instant>,
    subscription: Option<Subscription>,
}

impl Subscribe {
    pub(crate) fn new(home: Home, kind: Kind, names: impl ToArgs, limit: Option<Duration>) -> Self {
        let mut command = Command::empty();
        names.write_args(&mut command);
        let bounds =
            Bounds { messages: SUBSCRIPTION_MESSAGES, bytes: SUBSCRIPTION_BYTES, overflow: Overflow::DropOldest };
        Self { home, kind, names: command.all_arguments(), bounds, limit, until: None, subscription: None }
    }

    /// How many messages, and how many bytes of them, may wait to be taken, and what happens to more.
    /// [`SUBSCRIPTION_MESSAGES`] and [`SUBSCRIPTION_BYTES`] unless set.
    pub fn buffer(mut self, messages: usize, bytes: usize, overflow: Overflow) -> Self {
        self.bounds = Bounds { messages: messages.max(1), bytes, overflow };
        self
    }

    /// How long it may take until the server has confirmed it. While a connection is being made a task is told when that attempt is
    /// over, which takes [`Config::connect_limit`](crate::Config::connect_limit) at most; a thread is told at once.
    pub fn deadline(mut self, limit: Duration) -> Self {
        self.limit = Some(limit);
        self
    }

    fn begin(&mut self) -> Result<&Arc<Mailbox>, Error> {
        if self.names.is_empty() && self.subscription.is_none() {
            let why = "there is nothing to subscribe to";
            return Err(Error::new(ErrorKind::Unfit(why), Outcome::NotSent).of(self.kind.subscribe()));
        }
        let Self { home, kind, names, bounds, limit, until, subscription } = self;
        let subscription = subscription.get_or_insert_with(|| {
            let limit = limit.unwrap_or(Duration::from_secs(1 << 30));
            let until = *until.insert(Instant::now() + limit.min(Duration::from_secs(1 << 30)));
            let mailbox = home.add(*kind, names, *bounds, until);
            Subscription { home: home.clone(), kind: *kind, names: std::mem::take(names), mailbox }
        });
        Ok(&subscription.mailbox)
    }

    fn check(&mut self, waiter: impl FnOnce() -> Waiter) -> Option<Result<Subscription, Error>> {
        let confirmed = match self.begin() {
            Ok(mailbox) => mailbox.confirmed_or_wait(waiter)?,
            Err(error) => Err(error),
        };
        let subscription = self.subscription.take();
        let closed = || Error::new(ErrorKind::Closed, Outcome::NotSent);
        Some(confirmed.and_then(|()| subscription.ok_or_else(closed)))
    }

    /// Waits in this thread.
    pub fn wait(mut self) -> Result<Subscription, Error> {
        loop {
            if let Some(result) = self.check(|| Waiter::Thread(crate::core::current())) {
                return result;
            }
            // What ends late ones may be about to connect, for as long as that may take.
            let left = self.until.map_or(Duration::ZERO, |until| until.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return Err(self.home.why_late());
            }
            std::thread::park_timeout(left);
        }
    }
}

impl Future for Subscribe {
    type Output = Result<Subscription, Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        this.check(|| Waiter::Task(cx.waker().clone())).map_or(Poll::Pending, Poll::Ready)
    }
}

/// Messages of channels, patterns or sharded channels: a [`Stream`] for tasks, and an [`Iterator`] for threads.
///
/// It goes on when the connection is lost, and says so by [`Notice::Gap`]. It ends when the client is closed, when the server does not
/// let it subscribe again, or as [`Overflow::End`] says. Dropping it unsubscribes what no other subscription of the client is to.
///
/// Several subscriptions to the same channel of one client get each message once each. The server sends it once. A subscription to a
/// channel and one to a pattern that it fits are sent it twice, as the server does.
pub struct Subscription {
    home: Home,
    kind: Kind,
    names: Vec<Bytes>,
    mailbox: Arc<Mailbox>,
}

impl Subscription {
    fn poll_taken(&self, cx: &mut Context<'_>) -> Poll<Option<Notice>> {
        match self.mailbox.take_or_wait(|| Waiter::Task(cx.waker().clone())) {
            Taken::Notice(notice) => Poll::Ready(Some(notice)),
            Taken::Ended => Poll::Ready(None),
            Taken::Nothing => Poll::Pending,
        }
    }

    /// What comes next; `None` when the subscription has ended. Nothing is lost if it is dropped before it is over.
    pub fn recv(&mut self) -> impl Future<Output = Option<Notice>> + Send + '_ {
        std::future::poll_fn(|cx| self.poll_taken(cx))
    }

    /// What comes next within this time, in this thread. `Ok(None)` when the subscription has ended.
    ///
    /// # Errors
    ///
    /// Nothing has come: the kind is [`ErrorKind::Timeout`].
    pub fn recv_timeout(&mut self, limit: Duration) -> Result<Option<Notice>, Error> {
        let until = Instant::now().checked_add(limit);
        loop {
            match self.mailbox.take_or_wait(|| Waiter::Thread(crate::core::current())) {
                Taken::Notice(notice) => return Ok(Some(notice)),
                Taken::Ended => return Ok(None),
                Taken::Nothing => {}
            }
            match until.map(|until| until.saturating_duration_since(Instant::now())) {
                Some(left) if left.is_zero() => return Err(Error::new(ErrorKind::Timeout(None), Outcome::NotSent)),
                Some(left) => std::thread::park_timeout(left),
                None => std::thread::park(),
            }
        }
    }
}

impl Stream for Subscription {
    type Item = Notice;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Notice>> {
        self.poll_taken(cx)
    }
}

/// Waits in this thread for what comes next.
impl Iterator for Subscription {
    type Item = Notice;

    fn next(&mut self) -> Option<Notice> {
        self.recv_timeout(Duration::MAX).ok().flatten()
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription").finish_non_exhaustive()
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.home.remove(self.kind, &self.names, &self.mailbox);
    }
}
