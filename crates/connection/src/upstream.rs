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

use crate::buffer::occupied_bytes;
use crate::handshake::Progress;
use crate::in_flight::{InFlight, Recorder};
use crate::limits::{
    CUT_THROUGH_BYTES, FILLING_BATCH_MIN, FILLING_US_MAX, HELD_AGE_US_MAX, HELD_BYTES_MAX, HELD_ROUND_TRIP_US_MAX,
    PATIENT_OUTSTANDING_MAX, POOLED_BUFFER_BYTES_MAX,
};
use crate::slow_start::Ramp;
use crate::{BufferPool, Credentials, Handshake, Identity, Output, Owner, Server, Ticket, Tickets};
use respool_wire::{Protocol, ReplyError, ReplyKind, ReplyLimits, ReplyScanner, Scan};
use std::fmt;
use std::sync::Arc;

/// Where a connection to a node is in its life.
#[derive(Debug, Default)]
pub enum Phase {
    /// There is no connection, and none is wanted.
    #[default]
    Idle,
    /// A dial is under way; requests wait in the outbox.
    Dialing,
    /// The node is being told who we are and what we want; requests wait in the outbox.
    Shaking(Handshake),
    /// Requests flow.
    Ready,
}

/// When bytes for a node are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WritePolicy {
    /// At the end of every turn.
    EachTurn,
    /// While replies are outstanding on a fast link, with the next replies: what comes meanwhile shares one write. With
    /// nothing outstanding, at once. Bounded by bytes, age and round trip (see `limits`).
    #[default]
    ReplyClock,
}

/// Why a connection to a node has to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Its bytes are not RESP, or exceed a limit.
    Malformed(ReplyError),
    /// It sent a reply that nobody is owed.
    Unsolicited,
    /// Its replies are not those to its requests.
    OutOfStep,
    /// It refused the handshake; its words.
    Refused(String),
    /// It refused to select the database; its words.
    NoDatabase(String),
}

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

/// Bytes of one reply and whose they are.
#[derive(Debug)]
pub struct Delivery<'a> {
    /// Who is owed the reply.
    pub owner: Owner,
    /// The reply, or a piece of it.
    pub bytes: &'a [u8],
    /// The reply's kind if `bytes` ends it; `None` if more of it is to come.
    pub end: Option<ReplyKind>,
}

/// Whether the replies of a connection are waited for before clients are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// No reply is outstanding.
    NothingOwed,
    /// Replies are due before then, on the monotonic clock.
    Until(u64),
    /// Replies are outstanding and may take their time.
    None,
}

/// What became of the bytes received while the connection was not yet ready.
#[derive(Debug, PartialEq, Eq)]
pub enum Shake {
    /// More answers are awaited.
    Continues,
    /// The connection is ready now; requests may be written.
    Ready,
}

/// One connection to a node, shared by many clients.
#[derive(Debug)]
pub struct Upstream {
    identity: Identity,
    phase: Phase,
    policy: WritePolicy,
    tickets: Tickets,
    output: Output,
    /// What the handshake wants written. Requests wait in `output` until it is through. It is overwritten behind itself,
    /// since passwords are among it.
    greeting: Output,
    scanner: ReplyScanner,
    /// The beginning of a reply that has not fully arrived.
    partial: Vec<u8>,
    /// The bytes in `partial` have been delivered and are to be forgotten.
    is_partial_spent: bool,
    /// The node speaks RESP2 although it was asked for RESP3: its replies come whole, so that they can be converted.
    is_old: bool,
    /// The beginning of the reply in progress has been delivered already.
    is_streaming: bool,
    streamed_bytes: usize,
    /// Replies came since the last write.
    has_reply_come: bool,
    /// When the outbox last went from empty to not empty.
    held_since_us: u64,
    /// Smoothed round trip, in microseconds.
    round_trip_us: u64,
    /// The shortest round trip of late, in microseconds: what the link takes, without the node's own queue.
    link_us: u64,
    last_heard_us: u64,
    /// Requests per write of late, in sixteenths.
    usual_batch: usize,
    /// Requests that are not answered, if anybody wants to know them.
    recorder: Option<Box<Recorder>>,
    /// When the last reply came.
    last_reply_us: u64,
    /// The round trip of the last batch that was answered, until somebody takes it; 0 if there is none.
    sample_us: u64,
    /// The node was away until a moment ago.
    ramp: Option<Box<Ramp>>,
    /// Pushes are delivered, instead of being dropped.
    is_hearing: bool,
    /// What the node has said that it is.
    server: Option<Box<Server>>,
}

impl Upstream {
    /// A connection that does not exist yet.
    pub fn new(identity: Identity, policy: WritePolicy) -> Self {
        Self {
            identity,
            phase: Phase::Idle,
            policy,
            tickets: Tickets::new(),
            output: Output::new(),
            greeting: Output::new(),
            scanner: ReplyScanner::default(),
            partial: Vec::new(),
            is_partial_spent: false,
            is_old: false,
            is_streaming: false,
            streamed_bytes: 0,
            has_reply_come: false,
            held_since_us: 0,
            round_trip_us: 0,
            link_us: 0,
            last_heard_us: 0,
            usual_batch: 0,
            recorder: None,
            last_reply_us: 0,
            sample_us: 0,
            ramp: None,
            is_hearing: false,
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
        self.scanner = ReplyScanner::default();
        self.forget_partial();
    }

    /// Whole pushes are delivered from now on, to nobody, with their kind.
    pub fn hear(&mut self) {
        self.is_hearing = true;
    }

    /// The session state that everybody on this connection shares.
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

    /// Who is owed what.
    #[inline]
    pub fn tickets(&self) -> &Tickets {
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

    /// Requests that wait to be written, as they will be.
    pub fn queued(&self) -> &[u8] {
        self.output.as_slice()
    }

    /// Whether the node speaks RESP2 although it was asked for RESP3.
    pub fn is_old(&self) -> bool {
        self.is_old
    }

    /// Whether what comes next begins a reply.
    pub fn is_between_replies(&self) -> bool {
        self.scanner.is_idle()
    }

    /// Bytes held of a reply that has not fully arrived.
    pub fn partial_bytes(&self) -> usize {
        self.partial.len()
    }

    /// Memory that is held for a reply that has not fully arrived, or of which nothing was passed on before its end.
    #[inline]
    pub fn partial_held_bytes(&self) -> usize {
        if self.partial.is_empty() { 0 } else { occupied_bytes(&self.partial) }
    }

    /// Smoothed round trip of requests, in microseconds; 0 before the first sample.
    pub fn round_trip_us(&self) -> u64 {
        self.round_trip_us
    }

    /// The shortest round trip of late, in microseconds; 0 before the first sample.
    pub fn link_us(&self) -> u64 {
        self.link_us
    }

    /// Bytes that have been delivered of the reply in progress; 0 if none of it has been.
    pub fn streamed_bytes(&self) -> usize {
        self.streamed_bytes
    }

    /// The least length of the reply in progress, in bytes, including what its header announces; 0 if no part of it was delivered.
    pub fn announced_bytes(&self) -> usize {
        if self.is_streaming { self.streamed_bytes.saturating_add(self.scanner.announced()) } else { 0 }
    }

    /// Sets when queued requests are written.
    pub fn set_policy(&mut self, policy: WritePolicy) {
        self.policy = policy;
    }

    /// When the node was last heard of, on the monotonic clock.
    pub fn last_heard_us(&self) -> u64 {
        self.last_heard_us
    }

    /// Queues one request: `write` appends exactly its bytes, whose one reply `owner` is owed.
    #[inline]
    pub fn send(&mut self, owner: Owner, now_us: u64, pool: &mut BufferPool, write: impl FnOnce(&mut Vec<u8>)) {
        if self.output.is_empty() {
            self.held_since_us = now_us;
        }
        write(self.output.appender(pool));
        self.tickets.push(owner);
    }

    /// Queues a request of our own behind a batch of others. Its reply is nobody's, and it does not count in what batches
    /// usually are.
    pub fn seal(&mut self, now_us: u64, pool: &mut BufferPool, write: impl FnOnce(&mut Vec<u8>)) {
        self.send(Owner::Nobody, now_us, pool, write);
        self.usual_batch = self.usual_batch.saturating_sub(1);
    }

    /// Queues what is answered by no reply of its own: by pushes, as on a connection that [`Self::next_frame`] is read from,
    /// or with the request that it goes on with.
    pub fn tell(&mut self, now_us: u64, pool: &mut BufferPool, write: impl FnOnce(&mut Vec<u8>)) {
        if self.output.is_empty() {
            self.held_since_us = now_us;
        }
        write(self.output.appender(pool));
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
        self.scanner.expect(self.identity.protocol);
        self.phase = Phase::Shaking(Handshake::begin(&self.identity, self.greeting.appender(pool)));
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
            match self.scanner.scan(input, limits).map_err(Fault::Malformed)? {
                Scan::Partial => {
                    let first = self.partial.first().or(input.first());
                    if self.is_ready() && first != Some(&b'>') {
                        return Err(Fault::Unsolicited);
                    }
                    self.partial.extend_from_slice(input);
                    break;
                }
                Scan::Complete { consumed, kind } => {
                    let (end, rest) = input.split_at(consumed);
                    input = rest;
                    if kind == ReplyKind::Push && self.identity.protocol == Protocol::Resp3 {
                        // After CLIENT TRACKING ON a node may send invalidations before the answer to the next step.
                        self.forget_partial();
                        continue;
                    }
                    let Phase::Shaking(handshake) = &mut self.phase else { return Err(Fault::Unsolicited) };
                    self.partial.extend_from_slice(end);
                    let progress = handshake.answer(&self.identity, &self.partial, self.greeting.appender(pool));
                    self.partial.clear();
                    match progress {
                        Progress::Continues => {}
                        Progress::Refused(words) => return Err(Fault::Refused(words)),
                        Progress::NoDatabase(words) => return Err(Fault::NoDatabase(words)),
                        Progress::Done => {
                            self.is_old = handshake.is_old();
                            self.server = handshake.take_server();
                            if self.is_old {
                                self.scanner.expect(Protocol::Resp2);
                            }
                            self.phase = Phase::Ready;
                        }
                    }
                }
            }
        }
        if self.is_ready() {
            self.greeting.wipe(pool);
            self.held_since_us = now_us;
            return Ok(Shake::Ready);
        }
        Ok(Shake::Continues)
    }

    /// Cuts the next reply off `input`. `Ok(None)` when `input` is used up; call again until then. A large reply comes in
    /// several deliveries, all to the same owner.
    #[inline(always)]
    pub fn next_reply<'a, 'i: 'a>(
        &'a mut self,
        input: &mut &'i [u8],
        limits: &ReplyLimits,
        now_us: u64,
    ) -> Result<Option<Delivery<'a>>, Fault> {
        if self.is_partial_spent {
            self.forget_partial();
        }
        loop {
            if input.is_empty() {
                return Ok(None);
            }
            match self.scanner.scan(input, limits).map_err(Fault::Malformed)? {
                Scan::Complete { consumed, kind } => {
                    let (bytes, rest) = input.split_at(consumed);
                    *input = rest;
                    if kind == ReplyKind::Push {
                        if self.is_hearing {
                            return Ok(Some(self.finish_push(bytes)));
                        }
                        self.take_push()?;
                        continue;
                    }
                    let (ticket, sample) = self.tickets.pop().ok_or(Fault::Unsolicited)?;
                    if let Some(written_us) = sample {
                        self.note_round_trip(now_us.saturating_sub(written_us));
                        if let Some(recorder) = &mut self.recorder {
                            recorder.end_batch();
                        }
                    }
                    self.has_reply_come = true;
                    return Ok(Some(self.finish(ticket, bytes, kind)));
                }
                Scan::Partial => {
                    let bytes = std::mem::take(input);
                    return self.keep_partial(bytes);
                }
            }
        }
    }

    /// Cuts the next reply or push off `input`, whole and whoever's it is: for a connection on which nothing was asked by
    /// [`Self::send`] because it exists to be pushed to. `Ok(None)` when `input` is used up; call again until then.
    pub fn next_frame<'a, 'i: 'a>(
        &'a mut self,
        input: &mut &'i [u8],
        limits: &ReplyLimits,
    ) -> Result<Option<(ReplyKind, &'a [u8])>, Fault> {
        if self.is_partial_spent {
            self.forget_partial();
        }
        if input.is_empty() {
            return Ok(None);
        }
        match self.scanner.scan(input, limits).map_err(Fault::Malformed)? {
            Scan::Complete { consumed, kind } => {
                let (bytes, rest) = input.split_at(consumed);
                *input = rest;
                if self.partial.is_empty() {
                    return Ok(Some((kind, bytes)));
                }
                self.partial.extend_from_slice(bytes);
                self.is_partial_spent = true;
                Ok(Some((kind, &self.partial)))
            }
            Scan::Partial => {
                self.partial.extend_from_slice(std::mem::take(input));
                Ok(None)
            }
        }
    }

    /// The node is asked to tell of changed keys from the next handshake on, by this whole request.
    pub fn set_tracking(&mut self, tracking: Option<std::sync::Arc<[u8]>>) {
        self.identity.tracking = tracking;
    }

    /// The dialect that the connection asks for in its next handshake, and that is spoken on it from its next reply on.
    pub fn set_protocol(&mut self, protocol: Protocol) {
        self.identity.protocol = protocol;
        self.scanner.expect(protocol);
    }

    #[inline]
    fn finish<'a>(&'a mut self, ticket: Ticket, bytes: &'a [u8], kind: ReplyKind) -> Delivery<'a> {
        self.is_streaming = false;
        self.streamed_bytes = 0;
        if self.partial.is_empty() {
            return Delivery { owner: ticket.owner, bytes, end: Some(kind) };
        }
        self.partial.extend_from_slice(bytes);
        self.is_partial_spent = true;
        Delivery { owner: ticket.owner, bytes: &self.partial, end: Some(kind) }
    }

    /// `bytes` belong to a reply that has not ended. They are kept, or passed on if the reply is large and of a client.
    fn keep_partial<'a>(&'a mut self, bytes: &'a [u8]) -> Result<Option<Delivery<'a>>, Fault> {
        let first = self.partial.first().or(bytes.first());
        let is_push = !self.is_streaming && matches!(first, Some(b'>' | b'|'));
        if is_push && self.identity.protocol == Protocol::Resp2 && !self.is_hearing {
            // It is refused when it is whole, and need not be kept until then.
            return Err(Fault::Unsolicited);
        }
        let ticket = if is_push { None } else { Some(self.tickets.front().ok_or(Fault::Unsolicited)?) };
        let owner = match ticket.map(|t| t.owner) {
            Some(owner @ (Owner::Client { .. } | Owner::Unanswered { .. } | Owner::Nobody)) => owner,
            _ => {
                self.partial.extend_from_slice(bytes);
                return Ok(None);
            }
        };
        if self.is_streaming {
            self.streamed_bytes += bytes.len();
            return Ok(Some(Delivery { owner, bytes, end: None }));
        }
        self.partial.extend_from_slice(bytes);
        if self.partial.len() <= CUT_THROUGH_BYTES || self.is_old {
            return Ok(None);
        }
        self.is_streaming = true;
        self.streamed_bytes = self.partial.len();
        self.is_partial_spent = true;
        Ok(Some(Delivery { owner, bytes: &self.partial, end: None }))
    }

    /// A whole push came. Nobody on a shared lane has asked for any, but a node that speaks RESP3 may send one.
    fn take_push(&mut self) -> Result<(), Fault> {
        self.forget_partial();
        if self.identity.protocol == Protocol::Resp3 { Ok(()) } else { Err(Fault::Unsolicited) }
    }

    #[cold]
    fn finish_push<'a>(&'a mut self, bytes: &'a [u8]) -> Delivery<'a> {
        let mut whole = bytes;
        if !self.partial.is_empty() {
            self.partial.extend_from_slice(bytes);
            self.is_partial_spent = true;
            whole = &self.partial;
        }
        Delivery { owner: Owner::Nobody, bytes: whole, end: Some(ReplyKind::Push) }
    }

    fn forget_partial(&mut self) {
        self.is_partial_spent = false;
        self.partial.clear();
        if self.partial.capacity() > POOLED_BUFFER_BYTES_MAX {
            self.partial = Vec::new();
        }
    }

    /// Exponential smoothing with a weight of one eighth, as TCP does.
    fn note_round_trip(&mut self, sample_us: u64) {
        self.sample_us = sample_us.max(1);
        self.round_trip_us = match self.round_trip_us {
            0 => sample_us,
            smoothed => (smoothed * 7 + sample_us) / 8,
        };
        // Falls at once and rises slowly, so that a busy node does not look like a long link.
        self.link_us = match self.link_us {
            0 => sample_us.max(1),
            shortest => sample_us.clamp(1, shortest + shortest / 64 + 1),
        };
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

    /// The request that is to be answered next.
    pub fn in_flight(&self) -> Option<InFlight<'_>> {
        self.recorder.as_ref()?.front(self.tickets.oldest_batch(), self.tickets.oldest_us()?)
    }

    /// The round trip of the last batch that was answered, once.
    #[inline]
    pub fn take_sample_us(&mut self) -> u64 {
        std::mem::take(&mut self.sample_us)
    }

    /// Whether bytes are to be written at the end of this turn.
    #[inline]
    pub fn wants_write(&self, now_us: u64) -> bool {
        match self.phase {
            Phase::Idle | Phase::Dialing => false,
            Phase::Shaking(_) => !self.greeting.is_empty(),
            Phase::Ready => !self.output.is_empty() && !self.is_held(now_us) && !self.is_curbed(),
        }
    }

    /// The node was away: for `length_us` it is sent only so much, and ever more.
    pub fn begin_slowly(&mut self, now_us: u64, length_us: u64) {
        self.ramp = Some(Box::new(Ramp::begin(now_us, length_us)));
    }

    /// Whether it is sent only so much. Then [`Self::go_on_slowly`] is to be called before it is asked what is to be written.
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

    /// Whether what waits must go on waiting, because the node was away.
    fn is_curbed(&self) -> bool {
        self.ramp.as_ref().is_some_and(|ramp| ramp.allowed() == 0)
    }

    /// Whether waiting bytes may wait longer at all, for whatever reason there is: the node is near, and they are few.
    #[inline]
    fn may_hold(&self) -> bool {
        self.policy == WritePolicy::ReplyClock
            && self.output.len() < HELD_BYTES_MAX
            && self.link_us < HELD_ROUND_TRIP_US_MAX
    }

    /// Requests that wait to be written.
    #[inline]
    fn batch(&self) -> usize {
        self.tickets.len() - self.tickets.outstanding()
    }

    /// Whether waiting bytes are better written with the next replies.
    fn is_held(&self, now_us: u64) -> bool {
        self.may_hold()
            && self.tickets.outstanding() > self.tickets.expired()
            && !self.has_reply_come
            && now_us.saturating_sub(self.held_since_us) < HELD_AGE_US_MAX
    }

    /// Whether fewer requests wait than are usually written at once.
    #[inline]
    pub fn is_batch_small(&self) -> bool {
        self.usual_batch >= FILLING_BATCH_MIN * 16 && self.batch() * 16 < self.usual_batch
    }

    /// Whether what waits is little and has not waited long: if clients are about to send more, it is better written
    /// together.
    #[inline]
    pub fn is_filling(&self, now_us: u64) -> bool {
        self.is_batch_small()
            && self.may_hold()
            && self.is_ready()
            && now_us.saturating_sub(self.held_since_us) < FILLING_US_MAX.min(self.round_trip_us / 2)
    }

    /// Since when what waits has been waiting.
    pub fn held_since_us(&self) -> u64 {
        self.held_since_us
    }

    /// Whether what waits may wait for the requests of others: they are not `enough` yet.
    #[inline]
    pub fn may_gather(&self, enough: usize) -> bool {
        self.may_hold() && self.is_ready() && self.batch() < enough && self.link_us > 0
    }

    /// Whether waiting for this connection's next bytes alone is worth it.
    pub fn patience(&self, now_us: u64) -> Patience {
        match self.phase {
            Phase::Ready => {}
            Phase::Idle => return Patience::NothingOwed,
            Phase::Dialing | Phase::Shaking(_) => return Patience::None,
        }
        let Some(since_us) = self.tickets.oldest_us() else { return Patience::NothingOwed };
        let until_us = since_us + HELD_AGE_US_MAX;
        let is_prompt = self.policy == WritePolicy::ReplyClock
            && self.link_us > 0
            && self.link_us < HELD_ROUND_TRIP_US_MAX
            && self.tickets.outstanding() <= PATIENT_OUTSTANDING_MAX
            && now_us < until_us;
        if is_prompt { Patience::Until(until_us) } else { Patience::None }
    }

    /// When held bytes have to be looked at again, if nothing happens before.
    pub fn held_until_us(&self) -> u64 {
        let held_until_us = self.held_since_us + HELD_AGE_US_MAX;
        self.ramp.as_ref().map_or(held_until_us, |ramp| held_until_us.max(ramp.again_us()))
    }

    /// The bytes to write.
    #[inline]
    pub fn output(&self) -> &[u8] {
        match (&self.ramp, self.is_ready()) {
            (None, true) => self.output.as_slice(),
            (Some(ramp), true) => &self.output.as_slice()[..self.output.len().min(ramp.allowed())],
            (_, false) => self.greeting.as_slice(),
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
            self.has_reply_come = false;
            let queued_us = std::mem::replace(&mut self.held_since_us, now_us);
            let batch = self.batch();
            if batch > 0 {
                if let Some(recorder) = &mut self.recorder {
                    let is_whole = bytes == self.output.len();
                    recorder.record(&mut self.output, batch, queued_us, is_whole);
                }
                // A weight of one sixteenth.
                self.usual_batch = self.usual_batch - self.usual_batch / 16 + batch;
            }
            self.tickets.mark_sent(now_us);
        }
        self.output.advance(bytes, pool);
        if let Some(recorder) = &mut self.recorder {
            recorder.lend(&mut self.output);
        }
    }

    /// Turns every request written at or before `written_us` into a tombstone and gives their owners to `each`, which says
    /// whose the late reply is then.
    pub fn expire(&mut self, written_us: u64, each: impl FnMut(Owner) -> Owner) {
        self.tickets.expire(written_us, self.is_streaming, each);
    }

    /// Turns those requests written at or before `written_us` into tombstones whose owner `is_due`, and gives their owners to
    /// `each`, which returns the owner that the late reply has then.
    pub fn expire_where(&mut self, written_us: u64, is_due: impl Fn(Owner) -> bool, each: impl FnMut(Owner) -> Owner) {
        self.tickets.expire_where(written_us, self.is_streaming, is_due, each);
    }

    /// Drops the bytes held of the reply that is arriving and turns its ticket into a tombstone: the rest is discarded. Returns
    /// the ticket's owner.
    pub fn abandon_partial(&mut self) -> Option<Owner> {
        self.partial = Vec::new();
        self.is_partial_spent = false;
        self.is_streaming = true;
        self.tickets.abandon_front()
    }

    /// The connection is gone or must go. Everything that was owed comes out, each with whether it may have been sent;
    /// afterwards the lane is idle and as good as new.
    pub fn reset(&mut self, pool: &mut BufferPool) -> impl Iterator<Item = (Owner, bool)> + use<> {
        self.phase = Phase::Idle;
        self.output.clear(pool);
        self.greeting.wipe(pool);
        self.scanner = ReplyScanner::default();
        self.forget_partial();
        self.is_streaming = false;
        self.streamed_bytes = 0;
        self.is_old = false;
        self.has_reply_come = false;
        self.round_trip_us = 0;
        self.link_us = 0;
        self.usual_batch = 0;
        self.sample_us = 0;
        if let Some(recorder) = &mut self.recorder {
            recorder.clear(pool);
        }
        self.ramp = None;
        self.tickets.drain()
    }
}
