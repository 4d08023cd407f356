//! What a client tells the program that uses it: how calls have ended, and what has happened to its connections.

use crate::{Outcome, Reply};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Something that has happened beside calls.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A connection was made, after so many attempts that failed in a row.
    Connected {
        /// The address.
        endpoint: &'a str,
        /// Attempts that failed before.
        failures: u32,
    },
    /// An attempt to connect has failed. If another one follows it is told by a thread of its own, so that calls that the observer makes do not keep
    /// that from being made. While it takes its time with one, of those that fail meanwhile the last alone is told.
    NotConnected {
        /// The address.
        endpoint: &'a str,
        /// Why.
        why: &'a str,
    },
    /// A connection was lost.
    Lost {
        /// The address.
        endpoint: &'a str,
        /// How.
        how: &'a str,
        /// Requests that were sent on it and not answered.
        unanswered: usize,
    },
    /// A cached read was looked up.
    #[cfg(feature = "cache")]
    CachedRead {
        /// The name of the request's command.
        command: &'a str,
        /// Whether its reply was kept; otherwise it is asked for, or another call has done so.
        is_hit: bool,
    },
    /// Keys of a cache have changed, as the server tells.
    #[cfg(feature = "cache")]
    Invalidated {
        /// How many; `None` for all: the server says so, or its connection was lost.
        keys: Option<usize>,
    },
    /// The table of a cluster's slots is another from now on, by what its nodes have said or by a redirect.
    SlotsChanged {
        /// Primaries that have slots.
        primaries: usize,
    },
    /// A node of a cluster has sent a request elsewhere, and it goes there.
    Redirected {
        /// The address of the other node.
        to: &'a str,
        /// For this request alone, as the slot is on its way (`ASK`).
        is_asking: bool,
    },
    /// A node of a cluster was asked what that looks like, and has said nothing that can be used. Others are asked.
    NotRefreshed {
        /// The address.
        endpoint: &'a str,
    },
    /// A server has taken something for a blocking request whose caller had left. The reply is here and nowhere else.
    Orphan {
        /// The name of the request's command.
        command: &'a str,
        /// What was taken.
        reply: &'a Reply,
    },
}

/// How a call has ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Done<'a> {
    /// The name of the request's command; of several requests, of the first.
    pub command: &'a str,
    /// How many requests it was.
    pub requests: usize,
    /// From when it was queued first to its reply; on a connection of its own, with the time for which it waited for that.
    pub took: Duration,
    /// Bytes of its requests, as they are sent.
    pub sent_bytes: usize,
    /// Bytes of its replies: of their texts, and of elements as they were sent.
    pub received_bytes: usize,
    /// What became of it.
    pub outcome: Outcome,
    /// Whether it has ended with an error.
    pub is_error: bool,
}

/// A part of the program that is told. It is called where the thing happens, with no lock of the client held: what takes long delays
/// the caller, or the thread that reads for all.
pub trait Observer: Send + Sync + 'static {
    /// A call has ended, on the connection that all callers share or on one of its own. A call that was dropped has not.
    /// Cached reads are told by `Event::CachedRead`.
    fn done(&self, _done: &Done<'_>) {}

    /// Something has happened beside calls.
    fn event(&self, _event: &Event<'_>) {}
}

/// The observer of a client, if it has one.
#[derive(Clone, Default)]
pub(crate) struct Observed(pub(crate) Option<Arc<dyn Observer>>);

impl fmt::Debug for Observed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Some(..)" } else { "None" })
    }
}
