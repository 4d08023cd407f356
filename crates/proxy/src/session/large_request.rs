//! Large requests: passed on as they come, on a connection of their client's own, instead of being collected first.
//!
//! ```text
//!                command and key known, a large argument begins,
//!                nothing outstanding, a connection to be had
//!   [collecting] ---------------------------------------------> [passing] -- last byte --> an ordinary request
//!        |                                                        |    |                   that waits for its reply
//!        '-- else: collected up to the limits, then as any        |    '- the node has answered, or is gone: the rest
//!                                                                 |       of the request is read and thrown away
//!                                                                 '- the client is gone, or its bytes are no request:
//!                                                                    the connection ends, nothing is executed, and what
//!                                                                    never was a request is not answered either
//! ```
//!
//! Rights and target are decided before the first byte leaves, so only commands whose one key comes first, and
//! about which nothing behind it changes anything, are passed on like this. The client is read as fast as the node takes
//! it: what waits is bounded by [`PIECES_QUEUE_BYTES`]. The deadline of the reply counts from the last byte. A node
//! executes nothing before it has that, so orders and other settings hold up to it: a pause holds the rest back, and where the place of
//! the request is another one by then, or its node takes nothing more, it is given up.

use crate::env::Env;
use crate::error_reply::ErrorReply;
use crate::error_text;
use crate::ids::{ClientId, LaneId, NodeId};
use crate::interfaces::read_tracker::ReadTracker;
use crate::limits::{PIECES_QUEUE_BYTES, STALLED_REQUEST_US};
use crate::pool::LaneEnd;
use crate::reply::owner::Owner;
use crate::reply::progress::ReplyMode;
use crate::request::client_pause::may_change;
use crate::request::held_requests::Held;
use crate::request::streamed_request::{StreamedHead, StreamedRequest};
use crate::session::disconnect_log::DisconnectReason;
use crate::session::{PauseReasons, Session, SessionFlags};
use respool_command::{Execute, Lane as Kind, RequestPolicy, Row};
use respool_connection::Input;
use respool_wire::{Args, ArgsBuf, Begun, RequestError, Strictness, request_bulk, request_head};

/// The states in which a session's large requests are passed on in pieces.
const FIT: [SessionFlags; 5] = [
    SessionFlags::RESTRICTED,
    SessionFlags::LIMITED,
    SessionFlags::LARGE,
    SessionFlags::ROUTED,
    SessionFlags::TRACKING,
];

impl<E: Execute> Env<E> {
    /// A client's request is arriving and is large: begins to pass it on, if that can be done.
    #[cold]
    pub(crate) fn begin_pieces(&mut self, reads: &mut impl ReadTracker, index: ClientId) {
        let Some(mut input) = self.clients.sessions.at_mut(index).and_then(|session| session.input.take()) else {
            return;
        };
        let head = self.try_pieces(reads, index, &input);
        let Some(session) = self.clients.sessions.at_mut(index) else { return };
        if let (Some(head), Some(large)) = (head, session.large.as_deref_mut()) {
            large.sending = Some(Box::new(head));
            input.consume(input.len());
            input.decoder = Default::default();
        }
        session.input = Some(input);
        self.brake(index);
    }

    /// Queues the beginning of a large request on a connection. `None`: the request is collected, or the next read tries again.
    fn try_pieces(&mut self, reads: &mut impl ReadTracker, index: ClientId, input: &Input) -> Option<StreamedHead> {
        let bytes = input.bytes();
        let begun = input.decoder.begun(bytes, self.config.budgets.request_whole)?;
        let row = self.piecewise_row(index, &begun)?;
        self.clients.settle_before(index)?;
        let target = self.target(index, row, begun.args).ok()?;
        let lane = self.own_lane(index, target.node)?;
        let mut tail = begun.tail.clone();
        let arriving = bytes.get(begun.at..)?;
        let (_, is_end) = tail.take(arriving, &self.config.request_limits).ok()?;
        debug_assert!(!is_end, "the decoder would have found it");
        if !self.admits_pieces(index, bytes.len()) {
            return None;
        }
        self.note_target(&target, row);
        let head = head_of(target.args(begun.args), &begun);
        let until_key =
            |args: Args<'_>| -> ArgsBuf { args.iter().take(row.keys.single().map_or(0, |key| key + 1)).collect() };
        let (said, sent) = (until_key(begun.args), target.renamed.as_ref().map(|args| until_key(args.as_args())));
        if self.clients.sessions.at(index)?.flags.has(SessionFlags::TRACKING) {
            reads.track_request(self, index, row, begun.args);
        }
        let now = self.now;
        let client = self.clients.sessions.handle(index)?;
        let session = self.clients.sessions.at_mut(index)?;
        session.last_row = Some(row);
        let seq = session.down.expect();
        let owner = Owner::Client { index, generation: client.generation, seq };
        let this = &mut self.lanes[lane];
        this.up.send(owner, now.mono_us, &mut self.clients.pool, |out| {
            out.extend_from_slice(&head);
            out.extend_from_slice(arriving);
        });
        if let Some(dues) = this.beside.as_mut().and_then(|beside| beside.dues.as_mut()) {
            dues.note_shape(row.shape(begun.args));
        }
        this.sending = Some(Box::new(StreamedRequest { client, seq, seen_bytes: 0, moved_us: now.mono_us }));
        self.lanes.list(lane);
        self.is_busy = true;
        self.counters.requests.add(1);
        self.counters.requests_in_pieces.add(1);
        Some(StreamedHead { tail, row, said, sent })
    }

    /// The connection of a client's own to a node. Nothing of the client's is outstanding.
    fn own_lane(&mut self, index: ClientId, node: NodeId) -> Option<LaneId> {
        let now_us = self.now.mono_us;
        let client = self.clients.sessions.handle(index)?;
        let session = self.clients.sessions.at_mut(index)?;
        session.flags.add(SessionFlags::LARGE);
        session.large.get_or_insert_default().begin_sending_to(node, now_us);
        // Half a request ends its connection. Where others are owed something on one that they shared, it answers them.
        self.leave_to_others(client, node);
        let lane = self.large_lane(index, node).ok()??;
        self.lanes.admit(lane, &self.config, self.now).ok()?;
        Some(lane)
    }

    /// More of a large request has come, or may be read. Gives the input back if the request has ended in it.
    #[cold]
    pub(crate) fn pass_on_pieces(&mut self, index: ClientId, mut input: Box<Input>) -> Option<Box<Input>> {
        let limits = self.config.request_limits;
        let now_us = self.now.mono_us;
        if !self.may_pass_on(index) {
            if self.clients.is_leaving(index) {
                input.wipe();
                return None;
            }
            self.clients.note_halted(index);
            self.clients.sessions.at_mut(index)?.input = Some(input);
            self.clients.list(index);
            return None;
        }
        let session = self.clients.sessions.at_mut(index)?;
        let large = session.large.as_deref_mut()?;
        let tail = &mut large.sending.as_mut()?.tail;
        let taken = tail.take(input.bytes(), &limits);
        let is_owed = !session.down.is_settled();
        // It may have been sent long ago, and held.
        session.last_active_us = now_us;
        let lane = large.sending_lane().and_then(|lane| self.lanes.find(lane));
        let (used, is_end) = match taken {
            Ok(taken) => taken,
            Err(error) => {
                self.refuse_rest(index, lane, error);
                return None;
            }
        };
        if session.flags.has(SessionFlags::LIMITED)
            && let Some(allowance) = &session.details.allowance
        {
            allowance.charge(now_us, used);
            if !allowance.has_room(now_us) && !is_end {
                session.pause.add(PauseReasons::RATE);
                self.is_busy = true;
            }
        }
        match lane {
            Some(lane) if is_owed => {
                let (now, bytes) = (self.now, input.bytes().get(..used).unwrap_or_default());
                self.lanes[lane].up.tell(now.mono_us, &mut self.clients.pool, |out| out.extend_from_slice(bytes));
                self.lanes.list(lane);
            }
            // It was answered before it was whole, so what the node has of it is of no use any more.
            Some(lane) => self.close_lane(lane),
            None => {}
        }
        input.consume(used);
        if is_end {
            self.end_pieces(index);
            return Some(input);
        }
        if let Some(session) = self.clients.sessions.at_mut(index) {
            session.input = Some(input);
        }
        self.brake(index);
        None
    }

    /// The rest of a large request is none: what the node has of it must not become one.
    fn refuse_rest(&mut self, index: ClientId, lane: Option<LaneId>, error: RequestError) {
        if let Some(session) = self.clients.sessions.at_mut(index)
            && let Some(large) = session.large.as_deref_mut()
        {
            large.sending = None;
        }
        if let Some(lane) = lane {
            self.end_sending(lane);
        }
        self.refuse_protocol(index, &error);
    }

    /// Ends a connection over which half a request has been passed on. That was never a request, so there is no reply to it.
    fn end_sending(&mut self, lane: LaneId) {
        if let Some(StreamedRequest { client, seq, .. }) = self.lanes[lane].sending.as_deref().copied() {
            self.clients.replace(client, seq, &[]);
        }
        self.close_lane(lane);
    }

    /// A client has closed its side. If it was in the middle of a large request the node will never see the end of it.
    #[cold]
    pub(crate) fn abandon_pieces(&mut self, index: ClientId) {
        let Some(session) = self.clients.sessions.at_mut(index) else { return };
        let Some(large) = session.large.as_deref_mut() else { return };
        if large.sending.take().is_some()
            && let Some(lane) = large.sending_lane().and_then(|lane| self.lanes.find(lane))
        {
            self.end_sending(lane);
        }
    }

    /// Looks after a lane over which a request is being passed on.
    pub(crate) fn check_sender(&mut self, lane: LaneId) {
        let now_us = self.now.mono_us;
        let silence_due_us = self.lag.due_us(now_us, self.config.timeouts.silence_us);
        let this = &mut self.lanes[lane];
        let queued = this.up.queued_bytes();
        let is_answered = this.up.tickets().is_empty();
        let Some(sender) = this.sending.as_deref_mut() else { return };
        if queued != sender.seen_bytes || queued == 0 {
            (sender.seen_bytes, sender.moved_us) = (queued, now_us);
        }
        let sender = *sender;
        if is_answered {
            return self.close_lane(lane);
        }
        let client = self.clients.sessions.get(sender.client);
        if client.is_none_or(|session| session.pause.has(PauseReasons::CLOSING)) {
            // It has hung up while it was held: the rest is not read any more.
            return self.end_sending(lane);
        }
        if silence_due_us.is_some_and(|due_us| sender.moved_us <= due_us) {
            self.close_upstream(lane);
            return self.end_lane(lane, LaneEnd::Silent);
        }
        let has_stalled = self.clients.sessions.get_mut(sender.client).is_some_and(|session| {
            // What it has sent while it was held is still to be passed on.
            let is_read = session.pause.is_none() && !session.is_resuming;
            is_read && now_us.saturating_sub(session.last_active_us) > STALLED_REQUEST_US
        });
        if has_stalled {
            self.cut_off(sender.client.index, DisconnectReason::Stalled);
        }
    }

    /// The row of a request that may be passed on before it is whole: all that decides about it is known.
    fn piecewise_row(&self, index: ClientId, begun: &Begun<'_>) -> Option<&'static Row> {
        let session = self.clients.sessions.at(index)?;
        let is_fit = {
            let mut rest = session.flags;
            FIT.iter().for_each(|state| rest.remove(*state));
            rest.is_none() && session.reply_mode == ReplyMode::On
        };
        let is_canonical = self.config.request_limits.strictness == Strictness::Strict;
        if !is_fit || self.engine.is_some() || !is_canonical {
            return None;
        }
        let row = self.shared.renames.resolve(begun.args).ok()?;
        let has_key = row.keys.single().is_some_and(|key| key < begun.args.len());
        let goes_to_one = row.lane(begun.args) == Kind::Shared && row.request_policy == RequestPolicy::OneShard;
        if !has_key || !goes_to_one || !row.accepts(begun.total) {
            return None;
        }
        let is_restricted = session.flags.has(SessionFlags::RESTRICTED);
        let is_permitted = || !row.keys.depend_on_options() && self.denial_of(index, row, begun.args).is_none();
        (!is_restricted || is_permitted()).then_some(row)
    }

    /// Whether the user may send so many bytes now. If not, its client is read later.
    fn admits_pieces(&mut self, index: ClientId, bytes: usize) -> bool {
        let now_us = self.now.mono_us;
        let Some(session) = self.clients.sessions.at_mut(index) else { return false };
        let Some(allowance) = session.details.allowance.as_ref().filter(|_| session.flags.has(SessionFlags::LIMITED))
        else {
            return true;
        };
        let is_admitted = allowance.admits(now_us, bytes);
        if !is_admitted {
            session.pause.add(PauseReasons::RATE);
            self.counters.throttled.add(1);
            self.is_busy = true;
        }
        is_admitted
    }

    /// All of a large request has come.
    fn end_pieces(&mut self, index: ClientId) {
        let now_us = self.now.mono_us;
        let Some(large) = self.clients.sessions.at_mut(index).and_then(|session| session.large.as_deref_mut()) else {
            return;
        };
        large.sending = None;
        if let Some(node) = large.sending_to {
            large.touch(node, now_us);
        }
        if let Some(lane) = large.sending_lane().and_then(|lane| self.lanes.find(lane)) {
            let this = &mut self.lanes[lane];
            this.sending = None;
            this.up.restart_deadline(now_us);
        }
    }

    /// A client whose request waits to be written is not read on before most of that has been.
    fn brake(&mut self, index: ClientId) {
        let Some(session) = self.clients.sessions.at_mut(index) else { return };
        let Some(large) = session.large.as_deref().filter(|large| large.sending.is_some()) else { return };
        let Some(lane) = large.sending_lane().and_then(|lane| self.lanes.find(lane)) else { return };
        let this = &mut self.lanes[lane];
        if this.up.queued_bytes() > PIECES_QUEUE_BYTES && !session.pause.has(PauseReasons::LANE) {
            session.pause.add(PauseReasons::LANE);
            this.throttled.push(index);
            self.counters.pauses.add(1);
        }
        self.clients.list(index);
    }
}

/// Orders and other settings.
impl<E: Execute> Env<E> {
    /// Whether more of a client's large request may leave now. If not, it is read on when the pause ends.
    pub(crate) fn may_pass_on(&mut self, index: ClientId) -> bool {
        let Some(session) = self.clients.sessions.at(index).filter(|s| s.flags.has(SessionFlags::HELD)) else {
            return true;
        };
        let Some(large) = session.large.as_deref() else { return true };
        let lane = large.sending_lane().and_then(|lane| self.lanes.find(lane));
        let (Some(head), Some(lane)) = (large.sending.as_deref(), lane) else { return true };
        let node = self.lanes[lane].node;
        if self.client_pause.is_some_and(|hold| hold.holds(head.row)) {
            self.wait_for_pause(index);
            return false;
        }
        match self.hold_for_nodes(index, &[node]) {
            None => true,
            Some(Held::Waits) => false,
            Some(Held::Refused(words)) => {
                self.counters.holds_expired.add(1);
                self.give_up_streamed(index, &error_text::paused(&words));
                true
            }
        }
    }

    /// Gives up the requests of which a node has the beginning that has nothing more to do with them: a node is drained, users have
    /// other rights, or (`has_moved`) other nodes or routes are configured.
    pub(crate) fn review_streamed(&mut self, has_moved: bool) {
        let is_amid = |session: &Session| session.large.as_ref().is_some_and(|l| l.sending.is_some());
        for index in self.clients.sessions.places(is_amid) {
            if let Some(error) = self.why_given_up(index, has_moved) {
                self.give_up_streamed(index, &error);
            }
        }
    }

    fn why_given_up(&mut self, index: ClientId, has_moved: bool) -> Option<ErrorReply> {
        let session = self.clients.sessions.at(index)?;
        let large = session.large.as_deref()?;
        let (head, lane) = (large.sending.as_deref()?, self.lanes.find(large.sending_lane()?)?);
        let node = self.lanes[lane].node;
        let known = &self.lanes.nodes[node];
        if !self.config.has_node(node) {
            return Some(error_text::gone(&known.name));
        }
        if known.is_drained {
            return Some(error_text::drained(&known.name));
        }
        let row = head.row;
        if session.flags.has(SessionFlags::RESTRICTED) {
            // What an option decides is not kept.
            let is_known = !row.keys.depend_on_options();
            let denial = self.denial_of(index, row, head.said.as_args());
            if denial.is_some() || !is_known {
                return denial.or_else(|| Some(error_text::RIGHTS_ON_THE_WAY.into()));
            }
        }
        if !has_moved || !may_change(row) {
            return None;
        }
        let (said, sent) = (head.said.clone(), head.sent.clone());
        match self.target(index, row, said.as_args()) {
            Ok(target) => {
                // A node that stands in for another may do so no more.
                let is_there = [target.node, NodeId::at(target.place.node)].contains(&node);
                let sent = sent.as_ref().unwrap_or(&said);
                let is_named = sent.as_args().iter().zip(target.args(said.as_args()).iter()).all(|(a, b)| a == b);
                (!(is_there && is_named)).then(|| error_text::MOVED_ON_THE_WAY.into())
            }
            Err(error) => Some(error),
        }
    }

    /// Ends a connection that has half of a request, and tells the client. What comes of the rest is thrown away.
    fn give_up_streamed(&mut self, index: ClientId, error: &ErrorReply) {
        let Some(session) = self.clients.sessions.at(index) else { return };
        let is_owed = !session.down.is_settled();
        let lane = session.large.as_deref().and_then(|large| self.lanes.find(large.sending_lane()?));
        let Some(lane) = lane else { return };
        if let Some(StreamedRequest { client, seq, .. }) =
            self.lanes[lane].sending.as_deref().copied().filter(|_| is_owed)
        {
            self.clients.fail(client, seq, error);
        }
        self.close_lane(lane);
    }
}

/// The head of a request, given one that has only those arguments that are known.
fn head_of(known: Args<'_>, begun: &Begun<'_>) -> Vec<u8> {
    let mut head = Vec::new();
    request_head(&mut head, begun.total);
    known.iter().for_each(|arg| request_bulk(&mut head, arg));
    head.extend_from_slice(format!("${}\r\n", begun.body).as_bytes());
    head
}
