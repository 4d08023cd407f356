//! The end of a connection that faces a node: a lane that many clients share.
//!
//! Requests are appended to the outbox together with a ticket for their reply; bytes that come back are cut into replies
//! and each is delivered with the ticket it belongs to. Whatever casts doubt on that order ends the connection.
//!
//! ```text
//!            begin_dial            connected            PONG
//!   [Idle] ------------> [Dialing] --------> [Shaking] ------> [Ready]
//!      ^                     |                   |                |
//!      '---- reset() --------'-------------------'----------------'   (refused, lost, silent, out of step)
//! ```

mod event;
mod flush;
mod receive;
mod reply_reader;
mod write_timing;

pub use event::{Event, Pushes};

use crate::flush::RoundTrip;
use crate::handshake::Progress;
use crate::in_flight::{InFlight, Recorder};
use crate::slow_start::Ramp;
use crate::{
    BufferPool, Credentials, FlushPolicy, Handshake, Identity, Outbox, Output, Segments, Server, Ticket, Tickets,
};
use reply_reader::ReplyReader;
use respool_wire::{Protocol, ReplyError, ReplyKind, ReplyLimits, Scan};
use std::borrow::Cow;
use std::fmt;
use std::io::IoSlice;
use std::sync::Arc;
use write_timing::WriteTiming;

/// Where a connection to a node is in its life.
#[derive(Debug, Default)]
pub enum Phase {
    /// There is no connection, and none is wanted.
    #[default]
    Idle,
    /// A dial is under way; requests wait in the outbox.
    Dialing,
    /// The handshake is under way; requests wait in the outbox.
    Shaking(Handshake),
    /// Requests flow.
    Ready,
}

/// Why a connection to a node has to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Its bytes are not RESP, or exceed a limit.
    Malformed(ReplyError),
    /// It sent a reply that was not asked for.
    Unsolicited,
    /// Its replies are not those to its requests.
    OutOfStep,
    /// It refused the handshake; its words.
    Refused(String),
    /// It refused to select the database; its words.
    NoDatabase(String),
}

impl std::error::Error for Fault {}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed(error) => write!(f, "sent a malformed reply ({error})"),
            Self::Unsolicited => f.write_str("sent a reply that no request was waiting for"),
            Self::OutOfStep => f.write_str("sent replies that are not those to its requests"),
            Self::Refused(words) | Self::NoDatabase(words) => write!(f, "refused the connection ({words})"),
        }
    }
}

/// What became of the bytes received while the connection was not yet ready.
#[derive(Debug, PartialEq, Eq)]
pub enum Shake {
    /// More answers are awaited.
    Continues,
    /// The connection is ready now; requests may be written.
    Ready,
}

/// One connection to a node, shared by many clients. Each request has a ticket `T`, and waits in an outbox `O`.
#[derive(Debug)]
pub struct Upstream<T, O = Output> {
    identity: Identity,
    phase: Phase,
    tickets: Tickets<T>,
    output: O,
    /// What the handshake wants written. Requests wait in `output` until it is through. It is overwritten behind itself,
    /// since passwords are among it.
    greeting: Output,
    reader: ReplyReader,
    timing: WriteTiming,
    round_trip: RoundTrip,
    /// When bytes last came, on the monotonic clock.
    last_heard_us: u64,
    /// When the last reply came.
    last_reply_us: u64,
    /// Requests that are not answered, if they are kept.
    recorder: Option<Box<Recorder>>,
    /// The node was away until a moment ago.
    ramp: Option<Box<Ramp>>,
    /// What the node has said that it is.
    server: Option<Box<Server>>,
}

impl<T: Ticket, O: Outbox> Upstream<T, O> {
    /// A connection that does not exist yet.
    pub fn new(identity: Identity, policy: FlushPolicy) -> Self {
        Self {
            identity,
            phase: Phase::Idle,
            tickets: Tickets::new(),
            output: O::default(),
            greeting: Output::new(),
            reader: ReplyReader::default(),
            timing: WriteTiming { policy, ..WriteTiming::default() },
            round_trip: RoundTrip::default(),
            last_heard_us: 0,
            last_reply_us: 0,
            recorder: None,
            ramp: None,
            server: None,
        }
    }

    /// What the node has said that it is, if it was asked and that has not been taken.
    pub fn take_server(&mut self) -> Option<Box<Server>> {
        self.server.take()
    }

    /// Whether the node is being asked what it is, and nothing else.
    pub fn is_asking(&self) -> bool {
        matches!(&self.phase, Phase::Shaking(handshake) if handshake.is_asking())
    }

    /// Sets the credentials of the next handshake.
    pub fn set_credentials(&mut self, credentials: Option<Arc<Credentials>>) {
        self.identity.credentials = credentials;
    }

    /// The node is not asked what it is when the connection is made again.
    pub fn ask_no_more(&mut self) {
        self.identity.is_asked = false;
    }

    /// Resets a connection that was lost during its handshake, so that it can be dialled again. Queued requests stay queued.
    pub fn begin_anew(&mut self, pool: &mut BufferPool) {
        debug_assert!(!self.is_ready(), "requests may have been sent");
        self.phase = Phase::Idle;
        self.greeting.wipe(pool);
        self.reader.scanner = respool_wire::ReplyScanner::default();
        self.reader.forget_partial();
    }

    /// The session state that all requests on this connection share.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Where the connection is in its life.
    pub fn phase(&self) -> &Phase {
        &self.phase
    }

    /// Whether requests flow.
    #[inline]
    pub fn is_ready(&self) -> bool {
        matches!(self.phase, Phase::Ready)
    }

    /// The replies that are owed.
    #[inline]
    pub fn tickets(&self) -> &Tickets<T> {
        &self.tickets
    }

    /// Bytes of requests that wait to be written.
    #[inline]
    pub fn queued_bytes(&self) -> usize {
        self.output.len()
    }

    /// Memory that is held for requests that wait or are not answered; what has come of a reply is not among it.
    pub fn held_bytes(&self) -> usize {
        let recorded = self.recorder.as_ref().map_or(0, |recorder| recorder.held_bytes());
        self.output.held_bytes() + self.tickets.held_bytes() + recorded
    }

    /// Smoothed round trip of requests, in microseconds; 0 before the first sample.
    pub fn round_trip_us(&self) -> u64 {
        self.round_trip.smoothed_us
    }

    /// The shortest round trip of late, in microseconds; 0 before the first sample.
    pub fn link_us(&self) -> u64 {
        self.round_trip.shortest_us
    }

    /// When queued requests are written.
    pub fn policy(&self) -> FlushPolicy {
        self.timing.policy
    }

    /// Sets when queued requests are written.
    pub fn set_policy(&mut self, policy: FlushPolicy) {
        self.timing.policy = policy;
    }

    /// When the node was last heard of, on the monotonic clock.
    pub fn last_heard_us(&self) -> u64 {
        self.last_heard_us
    }

    /// Queues one request: `write` appends exactly its bytes, whose one reply `ticket` is owed.
    #[inline]
    pub fn send(&mut self, ticket: T, now_us: u64, pool: &mut BufferPool, write: impl FnOnce(&mut Vec<u8>)) {
        self.send_with(ticket, now_us, |output| write(output.appender(pool)));
    }

    /// As [`Self::send`], for a request of which parts are kept instead of copied, see [`Segments::keep`].
    #[inline]
    pub fn send_with(&mut self, ticket: T, now_us: u64, write: impl FnOnce(&mut O)) {
        self.begin_queue(now_us);
        write(&mut self.output);
        let is_alone = self.tickets.last_queued().is_none_or(|before| !ticket.is_of_same_sender(before));
        self.timing.senders += usize::from(is_alone);
        self.tickets.push(ticket);
    }

    /// Queues a request of our own behind a batch of others. Its reply is swallowed, and it does not count in what batches
    /// usually are.
    pub fn seal(&mut self, now_us: u64, pool: &mut BufferPool, write: impl FnOnce(&mut Vec<u8>)) {
        self.begin_queue(now_us);
        write(self.output.appender(pool));
        self.tickets.push(T::tombstone());
        self.timing.own_requests += 1;
    }

    /// Queues what is answered by no reply of its own: by pushes, as with [`Pushes::Only`],
    /// or with the request that it goes on with.
    pub fn tell(&mut self, now_us: u64, pool: &mut BufferPool, write: impl FnOnce(&mut Vec<u8>)) {
        self.begin_queue(now_us);
        write(self.output.appender(pool));
        self.timing.has_rest = true;
    }

    /// Something is queued. What is held waits since then, if it is the first.
    #[inline]
    fn begin_queue(&mut self, now_us: u64) {
        if self.output.is_empty() {
            self.timing.held_since_us = now_us;
        }
    }

    /// The last request was sent in pieces, and is whole now: its reply is waited for from here on.
    pub fn restart_deadline(&mut self, now_us: u64) {
        self.tickets.restart(now_us);
    }

    /// A dial was begun.
    pub fn begin_dial(&mut self) {
        self.phase = Phase::Dialing;
    }

    /// The dial succeeded: the handshake's first step is ready to be written.
    pub fn handle_connected(&mut self, now_us: u64, pool: &mut BufferPool) {
        self.last_heard_us = now_us;
        self.reader.scanner.expect(self.identity.protocol);
        self.phase =
            Phase::Shaking(Handshake::begin(self.identity.steps(), self.identity.pacing, self.greeting.appender(pool)));
    }

    /// The dial succeeded, and nothing is said before the first request: what the node says on connecting meets that. For a
    /// connection that lives for one request, where a handshake would be half of what is measured.
    pub fn handle_connected_bare(&mut self, now_us: u64) {
        self.last_heard_us = now_us;
        self.reader.scanner.expect(self.identity.protocol);
        self.phase = Phase::Ready;
    }

    /// Takes bytes received during the handshake. What is left of `input` behind it would be unsolicited. Pushes are dropped: a
    /// client that is to hear of changes waits until the connection is ready, and relies on nothing before.
    pub fn shake(
        &mut self,
        input: &[u8],
        limits: &ReplyLimits,
        now_us: u64,
        pool: &mut BufferPool,
    ) -> Result<Shake, Fault> {
        self.last_heard_us = now_us;
        let mut input = input;
        while !input.is_empty() {
            match self.reader.scanner.scan(input, limits).map_err(Fault::Malformed)? {
                Scan::Partial => {
                    let first = self.reader.partial.first().or(input.first());
                    if self.is_ready() && first != Some(&b'>') {
                        return Err(Fault::Unsolicited);
                    }
                    self.reader.partial.extend_from_slice(input);
                    break;
                }
                Scan::Complete { consumed, kind } => {
                    let (end, rest) = input.split_at(consumed);
                    input = rest;
                    if kind == ReplyKind::Push && self.identity.protocol == Protocol::Resp3 {
                        // After CLIENT TRACKING ON a node may send invalidations before the answer to the next step.
                        self.reader.forget_partial();
                        continue;
                    }
                    let Phase::Shaking(handshake) = &mut self.phase else { return Err(Fault::Unsolicited) };
                    self.reader.partial.extend_from_slice(end);
                    let progress = handshake.answer(&self.reader.partial, self.greeting.appender(pool));
                    self.reader.partial.clear();
                    match progress {
                        Progress::Continues => {}
                        Progress::Refused(words) => return Err(Fault::Refused(words)),
                        Progress::NoDatabase(words) => return Err(Fault::NoDatabase(words)),
                        Progress::Done => {
                            self.reader.is_old = handshake.is_old();
                            self.server = handshake.take_server();
                            if self.reader.is_old {
                                self.reader.scanner.expect(Protocol::Resp2);
                            }
                            self.phase = Phase::Ready;
                        }
                    }
                }
            }
        }
        if self.is_ready() {
            self.greeting.wipe(pool);
            self.timing.held_since_us = now_us;
            return Ok(Shake::Ready);
        }
        Ok(Shake::Continues)
    }

    /// The node is asked to tell of changed keys from the next handshake on, by this whole request.
    pub fn set_tracking(&mut self, tracking: Option<std::sync::Arc<[u8]>>) {
        self.identity.tracking = tracking;
    }

    /// The dialect that the connection asks for in its next handshake, and that is spoken on it from its next reply on.
    pub fn set_protocol(&mut self, protocol: Protocol) {
        self.identity.protocol = protocol;
        self.reader.scanner.expect(protocol);
    }

    /// Bytes were received.
    #[inline]
    pub fn note_heard(&mut self, now_us: u64) {
        self.last_heard_us = now_us;
        self.last_reply_us = now_us;
    }

    /// Keeps unanswered requests from now on. To be asked for before any is sent.
    pub fn keep_records(&mut self) {
        if self.tickets.is_empty() {
            self.recorder.get_or_insert_default();
        }
    }

    /// Since when the next reply has been waited for, and for nothing else: since its request was queued, or since the reply
    /// before it.
    #[inline]
    pub fn waiting_since_us(&self) -> Option<u64> {
        let queued_us = self.recorder.as_ref()?.queued_us()?;
        Some(queued_us.max(self.last_reply_us))
    }

    /// The request that is answered next.
    pub fn in_flight(&self) -> Option<InFlight<'_>> {
        self.recorder.as_ref()?.front(self.tickets.oldest_batch(), self.tickets.oldest_us()?)
    }

    /// The round trip of the last batch that was answered, once.
    #[inline]
    pub fn take_sample_us(&mut self) -> u64 {
        std::mem::take(&mut self.round_trip.sample_us)
    }

    /// The node was away: for `length_us` it is sent only so much, and ever more.
    pub fn begin_slowly(&mut self, now_us: u64, length_us: u64) {
        self.ramp = Some(Box::new(Ramp::begin(now_us, length_us)));
    }

    /// Whether it is sent only so much. Then [`Self::go_on_slowly`] comes before the output is taken.
    #[inline]
    pub fn is_slow(&self) -> bool {
        self.ramp.is_some()
    }

    /// Time has passed: more may be sent, and in the end everything.
    pub fn go_on_slowly(&mut self, now_us: u64) {
        if let Some(ramp) = &mut self.ramp
            && !ramp.go_on(now_us)
        {
            self.ramp = None;
        }
    }

    /// The first `bytes` bytes of [`Self::output`] were written.
    #[inline]
    pub fn handle_written(&mut self, bytes: usize, now_us: u64, pool: &mut BufferPool) {
        if !self.is_ready() {
            self.greeting.advance_wiping(bytes, pool);
            return;
        }
        if let Some(ramp) = &mut self.ramp {
            ramp.note_written(bytes);
        }
        if bytes > 0 {
            self.timing.has_reply_come = false;
            let queued_us = std::mem::replace(&mut self.timing.held_since_us, now_us);
            let batch = self.batch();
            if batch > 0 {
                if let Some(recorder) = &mut self.recorder {
                    let is_whole = bytes == self.output.len() && !self.timing.has_rest;
                    recorder.record(&mut self.output, batch, queued_us, is_whole);
                }
                self.timing.note_batch(batch);
            }
            self.tickets.mark_sent(now_us);
        }
        self.output.advance(bytes, pool);
        if let Some(recorder) = &mut self.recorder {
            if bytes > 0 {
                self.timing.has_rest = !self.output.is_empty();
            }
            recorder.lend(&mut self.output);
        }
    }

    /// What waits to be written, from the byte with the number `position` on.
    pub fn queued_from(&self, position: usize) -> Cow<'_, [u8]> {
        self.output.tail(position)
    }

    /// The bytes to write first. There may be more when they are written.
    #[inline]
    pub fn output(&self) -> &[u8] {
        match (&self.ramp, self.is_ready()) {
            (None, true) => self.output.front(),
            (Some(ramp), true) => {
                let front = self.output.front();
                &front[..front.len().min(ramp.allowed())]
            }
            (_, false) => self.greeting.as_slice(),
        }
    }

    /// Everything that waits goes to `other`, for the caller to write while others go on queueing: its requests count as sent from here
    /// on. `other`, which is empty, takes what is queued next. Only for a connection that is ready and does not begin slowly.
    #[inline]
    pub fn swap_output(&mut self, other: &mut O, now_us: u64) {
        debug_assert!(self.is_ready() && self.ramp.is_none() && other.is_empty());
        std::mem::swap(&mut self.output, other);
        self.timing.has_reply_come = false;
        self.timing.held_since_us = now_us;
        self.timing.senders = 0;
        self.tickets.mark_sent(now_us);
    }

    /// The connection is gone or must go. Everything that was owed comes out, each with whether it may have been sent;
    /// afterwards the lane is idle and as good as new.
    pub fn reset(&mut self, pool: &mut BufferPool) -> impl Iterator<Item = (T, bool)> + use<T, O> {
        self.phase = Phase::Idle;
        self.output.clear(pool);
        self.greeting.wipe(pool);
        self.reader.reset();
        self.timing = WriteTiming {
            policy: self.timing.policy,
            held_since_us: self.timing.held_since_us,
            ..WriteTiming::default()
        };
        self.round_trip = RoundTrip::default();
        if let Some(recorder) = &mut self.recorder {
            recorder.clear(pool);
        }
        self.ramp = None;
        self.tickets.drain()
    }
}

impl<T: Ticket, S: AsRef<[u8]>> Upstream<T, Segments<S>> {
    /// The bytes to write, for one vectored write.
    pub fn output_slices(&self) -> impl Iterator<Item = IoSlice<'_>> {
        let (greeting, output) = match self.is_ready() {
            true => (&[][..], Some(&self.output)),
            false => (self.greeting.as_slice(), None),
        };
        let mut left = self.ramp.as_ref().filter(|_| self.is_ready()).map_or(usize::MAX, |ramp| ramp.allowed());
        let slices = [greeting].into_iter().chain(output.into_iter().flat_map(Segments::slices));
        slices.filter_map(move |bytes| {
            let bytes = &bytes[..bytes.len().min(left)];
            left -= bytes.len();
            (!bytes.is_empty()).then(|| IoSlice::new(bytes))
        })
    }
}
