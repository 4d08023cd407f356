//! What can go wrong with a call, and whether its request was executed.

use crate::Reply;
use bytes::Bytes;
use respool_route::cluster::{Address, Redirect as Asked};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// No byte of it was given to the kernel: it was not executed and will not be.
    NotSent,
    /// It was sent, at least in part, and no reply came: it was executed, or will be, or not.
    MaybeExecuted,
    /// The server has replied to it.
    Replied,
}

/// An error of a call.
#[derive(Clone)]
pub struct Error(Box<Inner>);

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    outcome: Outcome,
    command: String,
    address: Option<String>,
    slot: Option<u16>,
    replies: Vec<Result<Reply, ServerError>>,
}

/// Where the node of a cluster sends a request that it did not execute.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Redirect {
    /// The slot of its keys.
    pub slot: u16,
    /// The address of the node that has it.
    pub address: String,
    /// The slot is on its way there (`ASK`); otherwise it is there (`MOVED`).
    pub is_ask: bool,
}

/// What went wrong.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The server answered with an error.
    Server(ServerError),
    /// The reply is not of the type that was asked for.
    Decode(DecodeError),
    /// The call's time was over; what it waited behind, if it waited for its reply.
    Timeout(Option<Waited>),
    /// The connection was lost, or could not be made; how.
    Lost(Arc<str>),
    /// The server refused the handshake; its words.
    Refused(Arc<str>),
    /// More requests or bytes wait than may, and the client does not wait for room.
    Overloaded,
    /// The client was closed.
    Closed,
    /// The request cannot be sent on a connection that others use; why.
    Unfit(&'static str),
    /// A transaction was not executed because a watched key had changed.
    Conflict,
    /// The keys are in several slots of a cluster, and the request cannot be split.
    CrossSlot,
    /// The address or a setting cannot be used; why.
    Config(Arc<str>),
}

/// What a request that was sent waited behind when its time was over: which of its server, its connection and its caller was slow.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Waited {
    /// Requests in front of it on its connection without a reply, those of callers that had left among them.
    pub in_front: usize,
    /// The first of them, which all others waited for.
    pub first: Option<Box<RequestAhead>>,
    /// Bytes on its connection that no write had begun with.
    pub unwritten_bytes: usize,
    /// Whether there was a sign of the server since it was queued: something has come, or more was taken of what had not fitted into the
    /// kernel.
    pub has_heard: bool,
}

/// A request that others waited for: the one that its server answers next.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestAhead {
    /// The name of its command, as its caller has written it; the first word, and empty if that is longer than thirty bytes or so.
    pub command: String,
    /// Its key, if its command has one key, right behind the name, and that is short. It may be another caller's, so it is no part of how an
    /// error is printed.
    pub key: Option<Bytes>,
    /// Bytes of its arguments as they are sent.
    pub argument_bytes: usize,
    /// Bytes that had come of its reply.
    pub reply_bytes: usize,
    /// How long ago it was queued.
    pub age: Duration,
}

impl fmt::Debug for RequestAhead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RequestAhead({self})")
    }
}

impl fmt::Display for RequestAhead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { command, argument_bytes, reply_bytes, age, .. } = self;
        let command = if command.is_empty() { "a request" } else { command };
        write!(f, "{command} of {argument_bytes} bytes, queued {} ms before", age.as_millis())?;
        if *reply_bytes > 0 {
            write!(f, ", of whose reply {reply_bytes} bytes had come")?;
        }
        Ok(())
    }
}

impl fmt::Display for Waited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { in_front, first, unwritten_bytes, has_heard } = self;
        match in_front {
            0 => f.write_str("first on its connection")?,
            1 => f.write_str("behind 1 request")?,
            _ => write!(f, "behind {in_front} requests")?,
        }
        if let Some(first) = first {
            write!(f, " (first {first})")?;
        }
        if *unwritten_bytes > 0 {
            write!(f, ", {unwritten_bytes} bytes not written")?;
        }
        f.write_str(if *has_heard { ", with a sign of the server since" } else { ", with no sign of the server since" })
    }
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, outcome: Outcome) -> Self {
        Self(Box::new(Inner { kind, outcome, command: String::new(), address: None, slot: None, replies: Vec::new() }))
    }

    pub(crate) fn config(text: impl Into<Arc<str>>) -> Self {
        Self::new(ErrorKind::Config(text.into()), Outcome::NotSent)
    }

    /// The error of one of several requests, as that of all.
    #[must_use]
    pub(crate) fn of_several(mut self, is_any_sent: bool) -> Self {
        if is_any_sent && self.0.outcome == Outcome::NotSent {
            self.0.outcome = Outcome::MaybeExecuted;
        }
        self
    }

    /// The name of the request's command.
    #[must_use]
    pub(crate) fn of(mut self, command: &[u8]) -> Self {
        if self.0.command.is_empty() {
            self.0.command = String::from_utf8_lossy(command).into_owned();
        }
        self
    }

    /// Where its request was sent, or was to be.
    #[must_use]
    pub(crate) fn at(mut self, address: Option<String>, slot: Option<u16>) -> Self {
        self.0.address = self.0.address.or(address);
        self.0.slot = self.0.slot.or(slot);
        self
    }

    /// What had come of several requests before this.
    #[must_use]
    pub(crate) fn behind(mut self, replies: Vec<Result<Reply, ServerError>>) -> Self {
        self.0.replies = replies;
        self
    }

    /// What the server had answered to the first requests of a [`Batch`](crate::Batch) whose connection was lost then: these were executed, and
    /// [`Self::outcome`] speaks of those behind them. Empty for other calls, and for a batch whose time was over.
    pub fn replies(&self) -> &[Result<Reply, ServerError>] {
        &self.0.replies
    }

    /// What went wrong.
    pub fn kind(&self) -> &ErrorKind {
        &self.0.kind
    }

    /// Whether the request was executed.
    pub fn outcome(&self) -> Outcome {
        self.0.outcome
    }

    /// The name of the request's command; empty if it is an error of no request.
    pub fn command(&self) -> &str {
        &self.0.command
    }

    /// The server to which the request was sent last, or was to be sent, as `host:port` or the path of a socket. Not known of several at once, and
    /// where nothing had been chosen.
    ///
    /// Behind sentinels it is the server that the client is connected to when the call fails, which after a failover may be another than the
    /// request was sent to. While there is no connection it is no address: `master NAME of sentinels`, or `replica NAME of sentinels`.
    pub fn address(&self) -> Option<&str> {
        self.0.address.as_deref()
    }

    /// The slot of the request's keys, if it is one of a cluster.
    pub fn slot(&self) -> Option<u16> {
        self.0.slot
    }

    /// Where the server sends the request, if its error is `MOVED` or `ASK`.
    pub fn redirect(&self) -> Option<Redirect> {
        let error = self.server()?;
        // A node may leave out its own host.
        let host = self.address().and_then(|address| address.rsplit_once(':')).map_or("", |(host, _)| host);
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let asked = Address::new(host, 1).or_else(|| Address::new("localhost", 1))?;
        let (slot, to, is_ask) = match Asked::parse(error.bytes(), &asked)? {
            Asked::Moved { slot, to } => (slot, to, false),
            Asked::Ask { slot, to } => (slot, to, true),
            _ => return None,
        };
        Some(Redirect { slot, address: to.to_string(), is_ask })
    }

    /// The server's error, if it is one.
    pub fn server(&self) -> Option<&ServerError> {
        match &self.0.kind {
            ErrorKind::Server(error) => Some(error),
            ErrorKind::Decode(error) => error.server(),
            _ => None,
        }
    }

    /// What the request waited behind, if its time was over while it waited for its reply.
    pub fn waited(&self) -> Option<&Waited> {
        match &self.0.kind {
            ErrorKind::Timeout(waited) => waited.as_ref(),
            _ => None,
        }
    }

    /// Whether the call's time was over.
    pub fn is_timeout(&self) -> bool {
        matches!(self.0.kind, ErrorKind::Timeout(_))
    }
}

impl std::error::Error for Error {}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { kind, outcome, command, address, slot, replies } = &*self.0;
        let mut shown = f.debug_struct("Error");
        shown.field("kind", kind).field("outcome", outcome).field("command", command);
        shown.field("address", address).field("slot", slot).field("replies", &replies.len()).finish()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.0.command.is_empty() {
            f.write_str(&self.0.command)?;
            if let Some(address) = &self.0.address {
                write!(f, " at {address}")?;
            }
            f.write_str(": ")?;
        }
        match &self.0.kind {
            ErrorKind::Server(error) => write!(f, "{error}")?,
            ErrorKind::Decode(error) => write!(f, "{error}")?,
            ErrorKind::Timeout(None) => f.write_str("no reply in time")?,
            ErrorKind::Timeout(Some(waited)) => write!(f, "no reply in time: {waited}")?,
            ErrorKind::Lost(how) => write!(f, "connection lost: {how}")?,
            ErrorKind::Refused(words) => write!(f, "handshake refused: {words}")?,
            ErrorKind::Overloaded => f.write_str("too much waits for this connection already")?,
            ErrorKind::Closed => f.write_str("the client is closed")?,
            ErrorKind::Unfit(why) => f.write_str(why)?,
            ErrorKind::Conflict => f.write_str("a watched key has changed")?,
            ErrorKind::CrossSlot => {
                f.write_str(
                    "the keys are in several slots or on several servers: give them one hash tag, as {tag}key",
                )?;
            }
            ErrorKind::Config(why) => f.write_str(why)?,
        }
        match self.0.outcome {
            Outcome::NotSent if !matches!(self.0.kind, ErrorKind::Config(_)) => f.write_str(" (not sent)"),
            Outcome::MaybeExecuted => f.write_str(" (may have been executed)"),
            _ => Ok(()),
        }
    }
}

/// An error that a server has answered with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerError(Bytes);

impl ServerError {
    pub(crate) fn new(text: Bytes) -> Self {
        Self(text)
    }

    pub(crate) fn bytes(&self) -> &Bytes {
        &self.0
    }

    /// Its first word, as `ERR`, `WRONGTYPE`, `MOVED`.
    pub fn code(&self) -> &str {
        let end = self.0.iter().position(|&byte| byte == b' ').unwrap_or(self.0.len());
        std::str::from_utf8(&self.0[..end]).unwrap_or_default()
    }

    /// All of it, the code included.
    pub fn text(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.0)
    }
}

impl std::error::Error for ServerError {}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

/// Why a reply is not of the type that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeError {
    /// It is of another kind.
    Wrong {
        /// What was asked for.
        expected: &'static str,
        /// What came.
        found: &'static str,
    },
    /// It is of the right kind, and not this.
    Invalid(&'static str),
    /// An element of it is an error.
    Server(ServerError),
    /// It has no field of this name.
    Missing(&'static str),
    /// The field of this name is not what was asked for.
    Field(&'static str, Box<DecodeError>),
    /// What `serde` says of it.
    Message(String),
}

impl DecodeError {
    /// What the server has answered in the place of an element, if it is that.
    pub fn server(&self) -> Option<&ServerError> {
        match self {
            Self::Server(error) => Some(error),
            Self::Field(_, error) => error.server(),
            _ => None,
        }
    }

    /// `reply` is not what was `expected`. For implementations of [`FromReply`](crate::FromReply).
    pub fn wrong(expected: &'static str, reply: &Reply) -> Self {
        Self::Wrong { expected, found: reply.kind() }
    }
}

impl std::error::Error for DecodeError {}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wrong { expected, found } => write!(f, "the reply is not {expected}: it is of kind {found}"),
            Self::Invalid(what) => write!(f, "the reply is not {what}"),
            Self::Server(error) => write!(f, "an element of the reply is an error: {error}"),
            Self::Missing(name) => write!(f, "the reply has no field \"{name}\""),
            Self::Field(name, error) => write!(f, "field \"{name}\": {error}"),
            Self::Message(text) => f.write_str(text),
        }
    }
}
