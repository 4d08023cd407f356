//! The way of a request: the loop over the requests of a client, what each passes before a feature has it, and what each does to its
//! client, whatever it asks: it is answered, refused, or put off for want of room.
//!
//! ```text
//!   bytes --> plain? --------------------------------------------------> sent, or executed
//!                '-> row, arity --> a state of its session deals with it
//!                                      '-> counted and timed, and the feature of its lane does it
//! ```
//!
//! What deals with a request decides what comes of it; the loop uses its bytes up or does not. It is compiled as one piece with what does
//! plain requests, and may be no more than those need.

use crate::config::Config;
use crate::env::Env;
use crate::error_reply::ErrorReply;
use crate::error_text;
use crate::flush::client::Received;
use crate::ids::{ClientId, LaneId, NodeId};
use crate::interfaces::call::Call;
use crate::interfaces::read_tracker::ReadTracker;
use crate::interfaces::requests::HandleRequests;
use crate::limits::CLIENT_OUTSTANDING_MAX;
use crate::pool::key_id::LaneKey;
use crate::reply::progress::ReplyMode;
use crate::request::fast_path::Plain;
use crate::session::table::Clients;
use crate::session::{Flow, PauseReasons, SessionFlags};
use respool_command::{Execute, Row, shows_secrets};
use respool_connection::Input;
use respool_wire::{Args, Encoder, Protocol, Request, RequestBounds, RequestDecoder, RequestError, Step, replies};

/// How a run of requests ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Halt {
    /// All bytes were used, up to an unfinished request.
    Drained,
    /// The client must not be read for now; what is left is for later.
    Paused,
    /// What is left is ignored.
    Stopped,
}

/// Reads requests from what has just been received: so many bytes, in the read buffer or in the client's own input.
pub(crate) fn read_client(by: &mut impl HandleRequests, index: ClientId, bytes: usize) {
    match by.env().note_received(index, bytes) {
        Received::Fresh => {}
        Received::Input => return read_input(by, index),
        Received::Kept => return,
    }
    // Both are borrowed from the environment for the time of the call, which may change anything else of it.
    let buffer = std::mem::take(&mut by.env().read_buffer);
    let mut decoder = by.env().decoder.take().unwrap_or_default();
    let fresh = buffer.get(..bytes).unwrap_or_default();
    let (used, halt) = read_requests(by, index, &mut decoder, fresh);
    let (env, reads) = by.parts();
    env.keep_rest(reads, index, &mut decoder, fresh.get(used..).unwrap_or_default(), halt);
    env.read_buffer = buffer;
    env.decoder = Some(decoder);
}

/// Reads the requests in a client's own input buffer.
pub(crate) fn read_input(by: &mut impl HandleRequests, index: ClientId) {
    let Some(session) = by.env().clients.sessions.at_mut(index) else { return };
    let is_passing = session.large.as_ref().is_some_and(|large| large.sending.is_some());
    let Some(mut input) = session.input.take() else { return };
    if is_passing {
        match by.env().pass_on_pieces(index, input) {
            Some(rest) => input = rest,
            None => return,
        }
    }
    let (decoder, bytes) = input.split();
    let (used, halt) = read_requests(by, index, decoder, bytes);
    let (env, reads) = by.parts();
    env.keep_input(reads, index, input, used, halt);
}

/// Reads the requests at the beginning of `bytes`. Returns how many bytes were used, and why no more.
fn read_requests<H: HandleRequests>(
    by: &mut H,
    index: ClientId,
    decoder: &mut RequestDecoder,
    bytes: &[u8],
) -> (usize, Halt) {
    let mut used = 0;
    let mut plain = 0;
    // The limits of an unauthenticated client; it may authenticate in the midst of these bytes.
    let mut unauthenticated = by.env().unauthenticated_limits(index);
    let mut bounds = RequestBounds::from(unauthenticated.as_ref().unwrap_or(&by.env().config.request_limits));
    // Among so many bytes may be a request that the engine's log of large ones has.
    let is_large = by.env().may_log_request(bytes.len());
    let mut way = if is_large { Plain::Neither } else { by.env().plain_way(index) };
    let halt = loop {
        let Some(rest) = bytes.get(used..).filter(|r| !r.is_empty()) else { break Halt::Drained };
        match decoder.decode_within(rest, &bounds) {
            Ok(Step::Request(request)) => {
                if let Some(flow) = by.do_plain(way, index, &request) {
                    used += request.consumed;
                    plain += 1;
                    match flow {
                        Flow::Next => continue,
                        _ => break Halt::Paused,
                    }
                }
                let consumed = request.consumed;
                let flow = take_request(by, index, &request);
                by.tell_ended();
                match flow {
                    Flow::Next => {
                        used += consumed;
                        if unauthenticated.is_some() {
                            unauthenticated = by.env().unauthenticated_limits(index);
                        }
                        // Any request that is not plain may have changed the limits.
                        bounds =
                            RequestBounds::from(unauthenticated.as_ref().unwrap_or(&by.env().config.request_limits));
                        way = if is_large { Plain::Neither } else { by.env().plain_way(index) };
                    }
                    Flow::Pause => {
                        used += consumed;
                        break Halt::Paused;
                    }
                    Flow::Again => {
                        by.env().clients.note_put_back(index);
                        break Halt::Paused;
                    }
                    Flow::Stop => {
                        used += consumed;
                        break Halt::Stopped;
                    }
                }
            }
            Ok(Step::Empty { consumed }) => used += consumed,
            Ok(Step::Incomplete) => break Halt::Drained,
            Err(error) => {
                by.env().refuse_protocol(index, &error);
                used = bytes.len();
                break Halt::Stopped;
            }
        }
    };
    by.env().is_busy |= plain > 0;
    by.env().counters.requests.add(plain);
    (used, halt)
}

/// Does a request that is not plain: it is refused at once, a rare state of its session deals with it, or the feature of its lane.
#[inline(never)]
fn take_request<H: HandleRequests>(by: &mut H, index: ClientId, request: &Request<'_>) -> Flow {
    by.env().counters.requests.add(1);
    by.env().take_marks(index);
    if !by.env().debuggers.all.is_empty()
        && let Some(flow) = by.ask_debugger(index, request)
    {
        return flow;
    }
    let position = by.env().answer_position(index);
    let accepted = accept(by, index, request);
    let env = by.env();
    let row = match accepted {
        Ok(row) => row,
        Err((row, flow)) => {
            env.command_log.reject(row, request.args, env.clients.answered(index, position));
            return flow;
        }
    };
    let call = Call { index, row, request };
    let Some(session) = env.clients.sessions.at(index) else { return Flow::Stop };
    let flags = session.flags;
    if flags.is_none() {
        return by.run(call);
    }
    if !flags.has(SessionFlags::NO_TOUCH) {
        return run_in_state(by, call, flags);
    }
    // Of a block of EXEC what runs later sees to that itself.
    by.env().engine.iter_mut().for_each(|engine| _ = engine.spare_uses(true));
    let flow = run_in_state(by, call, flags);
    by.env().engine.iter_mut().for_each(|engine| _ = engine.spare_uses(false));
    flow
}

/// The row of a request. `Err`: it is refused whatever the state of its session, and its client goes on like this.
fn accept<H: HandleRequests>(
    by: &mut H,
    index: ClientId,
    request: &Request<'_>,
) -> Result<&'static Row, (Option<&'static Row>, Flow)> {
    let row = match by.env().shared.renames.resolve(request.args) {
        Ok(row) => row,
        Err(unknown) => by.learnt_row(index, unknown, request).map_err(|flow| (None, flow))?,
    };
    let env = by.env();
    if !row.accepts(request.args.len()) {
        return Err((Some(row), env.refuse_arity(index, row, request)));
    }
    if let Some(session) = env.clients.sessions.at_mut(index) {
        session.last_row = Some(row);
    }
    let is_late = env.slices.script.is_some();
    let refused = if is_late { env.refuse_beside_script(Call { index, row, request }) } else { None };
    refused.map_or(Ok(row), |flow| Err((Some(row), flow)))
}

/// A request of a session in a rare state: one of them deals with it, or it goes on as any other.
fn run_in_state<H: HandleRequests>(by: &mut H, call: Call<'_>, flags: SessionFlags) -> Flow {
    let Call { index, row, request } = call;
    let position = by.env().answer_position(index);
    let Some(flow) = ask_states(by, call) else { return by.run(call) };
    let was_queueing = flags.has(SessionFlags::QUEUEING);
    let env = by.env();
    if std::mem::take(&mut env.command_log.has_noted) {
        return flow;
    }
    let reply = env.clients.answered(index, position);
    if flow != Flow::Again && env.command_log.count_special(row, request.args, reply, was_queueing) {
        env.show_to_monitors(index, row, request.args);
    }
    flow
}

/// Asks the states that a session is in about one of its requests. `None`: it goes on as any other.
#[cold]
fn ask_states<H: HandleRequests>(by: &mut H, call: Call<'_>) -> Option<Flow> {
    if by.env().clients.is_amid_names(call.index) {
        return None;
    }
    for state in SessionFlags::ORDER {
        // Looked at anew each time: the owner that was asked before may have ended a state.
        if by.env().clients.sessions.at(call.index)?.flags.has(state)
            && let Some(flow) = by.ask_state(state, call)
        {
            return Some(flow);
        }
    }
    None
}

impl<E: Execute> Env<E> {
    /// A request has not come as a whole: if it is large it need not be collected.
    fn look_at_size(&mut self, reads: &mut impl ReadTracker, index: ClientId, halt: Halt) {
        let Some(input) = self.clients.sessions.at(index).and_then(|session| session.input.as_ref()) else {
            return;
        };
        if halt == Halt::Drained && input.decoder.needed().is_some_and(|end| end > self.config.budgets.request_whole) {
            self.begin_pieces(reads, index);
        }
    }

    /// Gives a client another database or dialect. `false`: there is no room for another kind of connection.
    pub(crate) fn reclass(
        &mut self,
        reads: &mut impl ReadTracker,
        index: ClientId,
        database: u32,
        protocol: Protocol,
    ) -> bool {
        let Some(session) = self.clients.sessions.at(index) else { return false };
        if self.engine.is_none() {
            let node_user = self.lanes.node_user_of(session.class);
            let Some(class) = self.class_of(LaneKey { database, protocol, node_user }) else { return false };
            self.put_into_class(reads, index, class);
        }
        let Some(session) = self.clients.sessions.at_mut(index) else { return false };
        session.database = database;
        session.protocol = protocol;
        true
    }

    /// The client's bytes are no requests: it is told, once what it asked before is answered, and disconnected.
    pub(crate) fn refuse_protocol(&mut self, index: ClientId, error: &RequestError) {
        self.counters.protocol_errors.add(1);
        if matches!(error, RequestError::CrossProtocol) {
            // A browser was made to talk to us. Nothing of what came with it is answered.
            self.close_client(index);
            return;
        }
        let error = error_text::malformed(error);
        self.command_log.count(|calls| calls.reject(None, error.as_bytes()));
        let _: Flow = self.answer(index, |reply| reply.raw(error.as_bytes()));
        self.clients.stop_client(index);
    }

    /// Whether clients may not steer nodes as this command does. What only shows something shows less instead.
    pub(crate) fn refuses_to_steer(&self, row: &Row) -> bool {
        !shows_secrets(row) && self.refuses_admin()
    }

    /// Whether clients may not steer nodes. Asked once for each request that would.
    pub(crate) fn refuses_admin(&self) -> bool {
        let is_refused = !self.config.allows_admin && self.engine.is_none();
        self.counters.admin_refused.add(u64::from(is_refused));
        is_refused
    }

    /// What is answered at once is in the outbox at once, and requests of a few bytes may have large replies: a client that
    /// has more there than it should is not read on, however many of its requests are at hand.
    #[inline]
    pub(crate) fn keep_room(&mut self, index: ClientId, flow: Flow) -> Flow {
        let soft = self.config.budgets.client_output_soft;
        match self.clients.sessions.at_mut(index) {
            Some(session) if flow == Flow::Next && session.down.waiting_bytes() > soft => {
                session.pause.add(PauseReasons::OUTPUT);
                self.counters.pauses.add(1);
                if self.engine.is_some() && !session.is_amid_exec_reply() {
                    // It was read on because little was waiting, so this is one reply, which the engine bounds.
                    session.details.owed_at_once = session.reply_bytes();
                }
                Flow::Pause
            }
            _ => flow,
        }
    }

    /// Goes on with a client's requests, unless it has asked for more than is being answered.
    #[inline]
    pub(crate) fn keep_pace(&mut self, index: ClientId, lane: LaneId, args: Args<'_>) -> Flow {
        let Some(session) = self.clients.sessions.at(index) else { return Flow::Stop };
        let has_much = self.lanes[lane].up.queued_bytes() > self.config.budgets.queue_soft();
        if has_much || session.has_asked_much() {
            return self.throttle(index, lane, &args);
        }
        Flow::Next
    }

    /// A request waits, to be read again, while as much waits for its connection as should: what has been read of a client and is not
    /// sent costs no more than before, and however many clients ask in one turn, none is refused for it. `None`: it may be sent.
    #[inline]
    pub(crate) fn wait_for_room(&mut self, index: ClientId, lane: LaneId) -> Option<Flow> {
        let is_full = self.lanes[lane].up.queued_bytes() > self.config.budgets.queue_soft();
        if is_full { self.wait_behind(index, lane) } else { None }
    }

    /// The same for the connection to a node that a client's requests go over.
    pub(crate) fn wait_for_room_at(&mut self, index: ClientId, node: NodeId) -> Option<Flow> {
        let class = self.clients.sessions.at(index)?.class;
        let lane = self.lanes.known(node, class)?;
        self.wait_for_room(index, lane)
    }

    /// What has waited for `request_timeout` is refused, and so is what had been read behind it and would have to wait. Whatever is refused has
    /// not been sent, nor any part of it.
    #[cold]
    fn wait_behind(&mut self, index: ClientId, lane: LaneId) -> Option<Flow> {
        // Of a worker that ends no client is read again.
        if self.drain_until_us.is_some() {
            return None;
        }
        if self.clients.sessions.at(index).is_some_and(|session| session.has_no_room_since(room_due_us(self))) {
            self.counters.timeouts.add(1);
            let error = error_text::queue_full(&self.lanes.nodes[self.lanes[lane].node].name);
            return Some(self.refuse(index, error));
        }
        let Some(session) = self.clients.sessions.at_mut(index) else { return Some(Flow::Stop) };
        session.pause.add(PauseReasons::LANE);
        self.lanes[lane].throttled.push(index);
        self.counters.pauses.add(1);
        Some(Flow::Again)
    }

    /// Goes on behind a request that several nodes answer, of whose lanes `fullest` is the one with most in its queue.
    pub(crate) fn keep_pace_of_all(&mut self, index: ClientId, fullest: Option<LaneId>, args: Args<'_>) -> Flow {
        fullest.map_or(Flow::Next, |lane| self.keep_pace(index, lane, args))
    }

    /// The client has asked for more than is being answered: it is not read for a while.
    ///
    /// By reference: what a loop over requests might pass here by value would be kept in registers for each of them.
    #[cold]
    pub(crate) fn throttle(&mut self, index: ClientId, lane: LaneId, args: &Args<'_>) -> Flow {
        let soft = self.config.budgets.client_output_soft;
        let has_much =
            self.drain_until_us.is_none() && self.lanes[lane].up.queued_bytes() > self.config.budgets.queue_soft();
        let Some(session) = self.clients.sessions.at_mut(index) else { return Flow::Stop };
        if session.has_asked_much() {
            // Whatever the size of this reply, or a client of short ones would come here with each request for ever.
            session.credit.review(&session.down, soft);
        }
        if session.has_asked_much_by(*args) {
            session.pause.add(PauseReasons::OUTSTANDING);
        } else if has_much {
            session.pause.add(PauseReasons::LANE);
            self.lanes[lane].throttled.push(index);
        } else {
            return Flow::Next;
        }
        self.counters.pauses.add(1);
        Flow::Pause
    }

    /// Answers the request that is being read, in its place, unless the client wants no reply.
    #[inline]
    pub(crate) fn answer(&mut self, index: ClientId, write: impl FnOnce(&mut Encoder<'_>)) -> Flow {
        let Some(session) = self.clients.sessions.at_mut(index) else { return Flow::Next };
        self.counters.requests_local.add(1);
        let protocol = session.protocol;
        if session.reply_mode == ReplyMode::On {
            self.clients.answer(index, |out| write(&mut Encoder::new(out, protocol)));
        } else {
            session.reply_mode.pass();
            self.command_log.unwanted.clear();
            write(&mut Encoder::new(&mut self.command_log.unwanted, protocol));
        }
        Flow::Next
    }

    /// Answers with OK.
    pub(crate) fn confirm(&mut self, index: ClientId) -> Flow {
        self.answer(index, |reply| reply.raw(replies::OK))
    }

    /// Answers with an error.
    pub(crate) fn refuse(&mut self, index: ClientId, error: impl Into<ErrorReply>) -> Flow {
        let error = error.into();
        self.answer(index, |reply| reply.raw(error.as_bytes()))
    }

    /// A client's slice of this turn is used up.
    #[cold]
    pub(crate) fn end_slice(&mut self, index: ClientId) {
        let Some(client) = self.clients.sessions.handle(index) else { return };
        let Some(session) = self.clients.sessions.at_mut(index) else { return };
        session.pause.add(PauseReasons::SLICE);
        self.slices.clients.push(client);
    }

    /// The turn is over: the clients whose slices were used up continue.
    #[inline]
    pub(crate) fn begin_slices(&mut self) {
        for client in std::mem::take(&mut self.slices.clients) {
            if self.clients.sessions.get(client).is_some() {
                self.clients.unpause(client.index, PauseReasons::SLICE);
            }
        }
    }

    /// Keeps what was not read of bytes that stood alone.
    #[inline(always)]
    pub(crate) fn keep_rest(
        &mut self,
        reads: &mut impl ReadTracker,
        index: ClientId,
        decoder: &mut RequestDecoder,
        rest: &[u8],
        halt: Halt,
    ) {
        if halt == Halt::Paused {
            self.clients.note_halted(index);
        }
        let Some(session) = self.clients.sessions.at_mut(index) else {
            *decoder = RequestDecoder::new();
            return;
        };
        match halt {
            Halt::Stopped => *decoder = RequestDecoder::new(),
            Halt::Drained | Halt::Paused if rest.is_empty() => {}
            Halt::Drained | Halt::Paused => {
                session.input = Some(Box::new(Input::begin(std::mem::take(decoder), rest)));
                session.note_room_wait(halt == Halt::Paused, true, self.now.mono_us);
                self.clients.list(index);
                self.look_at_size(reads, index, halt);
            }
        }
    }

    /// Keeps what was not read of a client's own input.
    #[inline]
    pub(crate) fn keep_input(
        &mut self,
        reads: &mut impl ReadTracker,
        index: ClientId,
        mut input: Box<Input>,
        used: usize,
        halt: Halt,
    ) {
        if halt == Halt::Paused {
            self.clients.note_halted(index);
        }
        input.consume(used);
        if self.has_read_secret {
            input.wipe_consumed();
        }
        let Some(session) = self.clients.sessions.at_mut(index) else { return };
        let is_kept = halt != Halt::Stopped && !input.is_empty();
        session.input = is_kept.then_some(input);
        session.note_room_wait(halt == Halt::Paused, used > 0, self.now.mono_us);
        if is_kept {
            self.clients.list(index);
            self.look_at_size(reads, index, halt);
        }
    }
}

/// What has waited for room since then has waited for too long; `None`: nothing has.
fn room_due_us<E>(env: &Env<E>) -> Option<u64> {
    env.lag.due_us(env.now.mono_us, env.config.timeouts.response_us)
}

/// Has clients read again that have waited for room in a lane for too long: what they wait with is refused then.
pub(crate) fn release_overdue<E>(env: &mut Env<E>, lane: LaneId) {
    let (due_us, sessions) = (room_due_us(env), &env.clients.sessions);
    let is_over = |index: &mut ClientId| sessions.at(*index).is_some_and(|session| session.has_no_room_since(due_us));
    let overdue: Vec<ClientId> = env.lanes[lane].throttled.extract_if(.., is_over).collect();
    overdue.into_iter().for_each(|index| env.clients.unpause(index, PauseReasons::LANE));
}

impl Clients {
    /// Nothing more is read of a client; it is closed once its replies are written.
    pub(crate) fn stop_client(&mut self, index: ClientId) {
        if let Some(session) = self.sessions.at_mut(index) {
            session.pause.add(PauseReasons::CLOSING);
            self.list(index);
        }
    }

    /// A client that was owed as many replies as it may be is read again once it is owed half of that.
    pub(crate) fn let_ask_again(&mut self, config: &Config, index: ClientId) {
        let soft = config.budgets.client_output_soft;
        let Some(session) = self.sessions.at_mut(index).filter(|s| s.pause.has(PauseReasons::OUTSTANDING)) else {
            return;
        };
        session.credit.review(&session.down, soft);
        if session.down.unsettled() <= session.credit.window() / 2 {
            self.unpause(index, PauseReasons::OUTSTANDING);
        }
    }

    /// Changes what the client's connection is, at once if nothing is outstanding and else once that is so.
    /// `None`: replies are outstanding, and the request is read again behind them.
    pub(crate) fn settle_before(&mut self, index: ClientId) -> Option<()> {
        let session = self.sessions.at_mut(index)?;
        if session.down.is_settled() {
            return Some(());
        }
        session.pause.add(PauseReasons::BARRIER);
        session.details.runs_ahead = true;
        self.list(index);
        None
    }

    /// The same for a request that waits for no node in particular.
    pub(crate) fn keep_outstanding(&mut self, index: ClientId) -> Flow {
        let Some(session) = self.sessions.at_mut(index) else { return Flow::Stop };
        if session.down.unsettled() <= CLIENT_OUTSTANDING_MAX {
            return Flow::Next;
        }
        session.pause.add(PauseReasons::OUTSTANDING);
        self.counters.pauses.add(1);
        Flow::Pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Layers, env_with_engine, env_with_node};

    #[test]
    fn requests_of_one_read_are_done_in_order_the_rest_is_kept() {
        let mut layers = Layers::new(env_with_node());
        let client = layers.env.test_client();
        assert_eq!(layers.receive(client, b"PING\r\nGET k\r\nNOSUCH\r\nGET\r\nEC"), {
            "+PING\r\n+GET k\r\n-ERR unknown\r\n-ERR wrong number of arguments for 'get' command\r\n"
        });
        assert!(layers.env.test_session(client).input.is_some(), "the beginning of a request is kept");
        assert_eq!(layers.receive(client, b"HO a\r\n"), "+ECHO a\r\n");
        assert!(layers.env.test_session(client).input.is_none());
    }

    #[test]
    fn what_is_no_request_ends_the_reading() {
        let mut layers = Layers::new(env_with_node());
        let client = layers.env.test_client();
        let output = layers.receive(client, b"PING\r\n*1\r\n:5\r\nPING\r\n");
        assert!(output.starts_with("+PING\r\n-ERR Protocol error"), "{output}");
        assert_eq!(output.matches("\r\n").count(), 2, "nothing behind it is done");
        assert!(layers.env.test_session(client).pause.has(PauseReasons::CLOSING));
    }

    #[test]
    fn what_is_no_request_is_one_error_whether_replies_are_wanted() {
        for mode in [ReplyMode::On, ReplyMode::Off, ReplyMode::SkipNext] {
            let mut layers = Layers::new(env_with_engine());
            let client = layers.env.test_client();
            layers.env.test_session(client).reply_mode = mode;
            layers.receive(client, b"*1\r\n:5\r\n");
            assert_eq!(layers.env.command_log.calls.errors_total(), 1, "{mode:?}");
        }
    }

    #[test]
    fn a_request_that_has_to_wait_is_read_again_with_all_behind_it() {
        let mut layers = Layers::new(env_with_node());
        let client = layers.env.test_client();
        layers.flow = Flow::Again;
        assert_eq!(layers.receive(client, b"GET a\r\nGET b\r\n"), "");
        layers.flow = Flow::Next;
        read_input(&mut layers, client);
        assert_eq!(layers.env.take_output(client), "+GET a\r\n+GET b\r\n");
    }

    #[test]
    fn states_are_asked_in_order_up_to_the_one_that_answers() {
        let mut layers = Layers::new(env_with_node());
        let client = layers.env.test_client();
        let states = [SessionFlags::LARGE, SessionFlags::HOOKED, SessionFlags::HELD];
        states.into_iter().for_each(|state| layers.env.test_session(client).flags.add(state));
        let in_order = |owner| {
            let up_to = SessionFlags::ORDER.iter().position(|state| Some(*state) == owner);
            let asked = &SessionFlags::ORDER[..up_to.map_or(SessionFlags::ORDER.len(), |place| place + 1)];
            asked.iter().copied().filter(|state| states.contains(state)).collect::<Vec<_>>()
        };
        for (owner, answer) in [(None, "+GET k\r\n"), (Some(SessionFlags::HELD), "-ERR state\r\n")] {
            layers.owner = owner;
            assert_eq!(layers.receive(client, b"GET k\r\n"), answer);
            assert_eq!(std::mem::take(&mut layers.asked), in_order(owner));
        }
    }

    #[test]
    fn a_client_that_leaves_its_replies_is_not_read_on() {
        let mut env = env_with_node();
        let client = env.test_client();
        assert_eq!(env.keep_room(client, Flow::Next), Flow::Next);
        let soft = env.config.budgets.client_output_soft;
        env.answer(client, |reply| reply.bulk(&vec![b'x'; soft]));
        assert_eq!(env.keep_room(client, Flow::Next), Flow::Pause);
        assert!(env.test_session(client).pause.has(PauseReasons::OUTPUT));
        assert_eq!(env.keep_room(client, Flow::Stop), Flow::Stop);
    }
}
