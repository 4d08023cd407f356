//! The life of a request: from a client's bytes to a node, to the engine, or to an answer made here.
//!
//! Session state comes before anything else, so no kind of node bypasses it.

use crate::commands::config_get::shows_secrets;
use crate::engine_changes::EngineChanges;
use crate::env::Env;
use crate::error_text;
use crate::limits::{CLIENT_OUTSTANDING_MAX, LOGGED_REQUEST_BYTES};
use crate::pool::LaneKey;
use crate::pool::table::LaneId;
use crate::read_tracker::ReadTracker;
use crate::request::fast_path::Plain;
use crate::session::id::ClientId;
use crate::session::{Asker, Flow, Pause, ReplyMode};
use crate::worker::Worker;
use respool_command::{Execute, Flags, Lane, Outcome, Row, SessionView, resolve};
use respool_connection::Input;
use respool_wire::{Args, Encoder, Protocol, Request, RequestBounds, RequestDecoder, RequestError, Step};

/// How a run of requests ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Halt {
    /// All bytes were used, up to an unfinished request.
    Drained,
    /// The client must not be read for now; what is left is for later.
    Paused,
    /// What is left is ignored.
    Stopped,
}

impl<E: Execute> Worker<E> {
    /// Reads the requests in bytes that stand alone; what is left of them is kept for later.
    pub(crate) fn read_fresh(&mut self, index: ClientId, decoder: &mut RequestDecoder, bytes: &[u8]) {
        let (used, halt) = self.read_requests(index, decoder, bytes);
        if halt == Halt::Paused {
            self.env.clients.note_halted(index);
        }
        let rest = bytes.get(used..).unwrap_or_default();
        let Some(session) = self.env.clients.sessions.at_mut(index) else {
            *decoder = RequestDecoder::new();
            return;
        };
        match halt {
            Halt::Stopped => *decoder = RequestDecoder::new(),
            Halt::Drained | Halt::Paused if rest.is_empty() => {}
            Halt::Drained | Halt::Paused => {
                session.input = Some(Box::new(Input::begin(std::mem::take(decoder), rest)));
                self.env.clients.list(index);
                self.env.look_at_size(&mut self.subscriptions, index, halt);
            }
        }
    }

    /// Reads the requests in a client's own input buffer.
    pub(crate) fn read_input(&mut self, index: ClientId) {
        let Some(session) = self.env.clients.sessions.at_mut(index) else { return };
        let is_passing = session.large.as_ref().is_some_and(|large| large.sending.is_some());
        let Some(mut input) = session.input.take() else { return };
        if is_passing {
            match self.env.pass_on_pieces(index, input) {
                Some(rest) => input = rest,
                None => return,
            }
        }
        let (decoder, bytes) = input.split();
        let (used, halt) = self.read_requests(index, decoder, bytes);
        if halt == Halt::Paused {
            self.env.clients.note_halted(index);
        }
        input.consume(used);
        if self.env.has_read_secret {
            input.wipe_consumed();
        }
        let Some(session) = self.env.clients.sessions.at_mut(index) else { return };
        if halt != Halt::Stopped && !input.is_empty() {
            session.input = Some(input);
            self.env.clients.list(index);
            self.env.look_at_size(&mut self.subscriptions, index, halt);
        }
    }

    fn read_requests(&mut self, index: ClientId, decoder: &mut RequestDecoder, bytes: &[u8]) -> (usize, Halt) {
        let mut used = 0;
        let mut plain = 0;
        // What a client may send before it has said who it is; it may say so in the midst of these bytes.
        let mut unauthenticated = self.env.unauthenticated_limits(index);
        let mut bounds = RequestBounds::from(unauthenticated.as_ref().unwrap_or(&self.env.config.request_limits));
        // Among so many bytes may be a request that the engine's log of large ones has.
        let is_large = bytes.len() > LOGGED_REQUEST_BYTES && self.env.engine.is_some();
        let mut way = if is_large { Plain::Neither } else { self.env.plain_way(index) };
        let halt = loop {
            let Some(rest) = bytes.get(used..).filter(|r| !r.is_empty()) else { break Halt::Drained };
            match decoder.decode_within(rest, &bounds) {
                Ok(Step::Request(request)) => {
                    if let Some(flow) = self.do_plain(way, index, &request) {
                        used += request.consumed;
                        plain += 1;
                        match flow {
                            Flow::Next => continue,
                            _ => break Halt::Paused,
                        }
                    }
                    let consumed = request.consumed;
                    let flow = self.handle_request(index, &request);
                    self.tell_ended();
                    match flow {
                        Flow::Next => {
                            used += consumed;
                            if unauthenticated.is_some() {
                                unauthenticated = self.env.unauthenticated_limits(index);
                            }
                            // Any request that is not plain may have changed the limits.
                            bounds = RequestBounds::from(
                                unauthenticated.as_ref().unwrap_or(&self.env.config.request_limits),
                            );
                            way = if is_large { Plain::Neither } else { self.env.plain_way(index) };
                        }
                        Flow::Pause => {
                            used += consumed;
                            break Halt::Paused;
                        }
                        Flow::Again => {
                            self.env.note_put_back(index);
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
                    self.env.refuse_protocol(index, &error);
                    used = bytes.len();
                    break Halt::Stopped;
                }
            }
        };
        self.env.is_busy |= plain > 0;
        self.env.counters.requests.add(plain);
        (used, halt)
    }

    #[inline(never)]
    fn handle_request(&mut self, index: ClientId, request: &Request<'_>) -> Flow {
        self.env.counters.requests.add(1);
        let args = request.args;
        let row = match resolve(args) {
            Ok(row) => row,
            Err(unknown) => match self.learnings.learnt_row(&mut self.env, index, unknown, request) {
                Ok(row) => row,
                Err(flow) => return flow,
            },
        };
        if !row.accepts(args.len()) {
            return self.env.refuse_arity(index, row, request);
        }
        let Some(session) = self.env.clients.sessions.at_mut(index) else { return Flow::Stop };
        session.last_row = Some(row);
        if self.env.slices.script.is_some()
            && let Some(flow) = self.env.refuse_beside_script(index, row, request)
        {
            return flow;
        }
        let Some(session) = self.env.clients.sessions.at_mut(index) else { return Flow::Stop };
        if !session.flags.is_none()
            && let Some(flow) = self.handle_special(index, row, request)
        {
            return flow;
        }
        self.run(index, row, request)
    }

    /// Does what a request asks, whatever state the session is in.
    #[inline]
    pub(crate) fn run(&mut self, index: ClientId, row: &'static Row, request: &Request<'_>) -> Flow {
        match self.env.times_from() {
            None => self.run_untimed(index, row, request),
            Some(begun_us) => self.run_timed(index, row, request, begun_us),
        }
    }

    /// As [`Worker::run`], without a look at the time.
    #[inline]
    pub(crate) fn run_untimed(&mut self, index: ClientId, row: &'static Row, request: &Request<'_>) -> Flow {
        let args = request.args;
        match row.lane(args) {
            Lane::Shared if self.env.engine.is_some() => self.execute(index, row, request),
            Lane::Shared => self.forward(index, row, request),
            Lane::Local => {
                let flow = self.answer_locally(index, row, args);
                self.env.keep_room(index, flow)
            }
            Lane::Pinned => self.transaction_command(index, row, request),
            Lane::Admin => self.run_admin(index, row, request),
            Lane::Script => self.run_with_script(index, row, request),
            Lane::Push => self.handle_pubsub(index, row, request),
            Lane::Blocking => self.block(index, row, request),
            Lane::Dedicated => self.dedicated.handle_request(&mut self.env, index, row, request),
        }
    }

    /// A command that steers nodes, which the settings may not let clients do. An engine without nodes is its own server.
    #[cold]
    fn run_admin(&mut self, index: ClientId, row: &'static Row, request: &Request<'_>) -> Flow {
        if self.env.refuses_to_steer(row) {
            return self.env.refuse(index, error_text::admin_refused(row.name).as_bytes());
        }
        let own = self.own_config(index, row, request.args);
        if let Some(flow) = own.or_else(|| self.own_debug(index, row, request)) {
            return flow;
        }
        if let Some(step) = self.env.set_user_setting(index, row, request.args) {
            return self.take_client_step(index, step);
        }
        if let Some(flow) = self.env.show_settings(index, row, request) {
            return flow;
        }
        self.pass_on(index, row, request)
    }

    /// A request about parameters. `None`: it is about something else, or there are none here.
    #[cold]
    fn own_config(&mut self, index: ClientId, row: &'static Row, args: Args<'_>) -> Option<Flow> {
        let step = self.env.own_config(index, row, args)?;
        self.review_events();
        Some(self.take_client_step(index, step))
    }

    /// A request that brings or names a script.
    #[cold]
    fn run_with_script(&mut self, index: ClientId, row: &'static Row, request: &Request<'_>) -> Flow {
        if self.env.engine.is_none() {
            if let Some(flow) = self.env.run_script_at_nodes(index, row, request) {
                return flow;
            }
        } else if row.runs_scripts {
            return self.blocking.run_in_engine(&mut self.env, &mut self.subscriptions, index, row, request);
        }
        self.pass_on(index, row, request)
    }

    /// A request that may wait. What the client sends behind it is not read before it is answered.
    #[cold]
    fn block(&mut self, index: ClientId, row: &'static Row, request: &Request<'_>) -> Flow {
        if self.env.engine.is_none() {
            return self.blocking.block_at_node(&mut self.env, index, row, request);
        }
        let flow = self.blocking.park(&mut self.env, &mut self.subscriptions, index, row, request);
        self.subscriptions.tell_changes(&mut self.env);
        flow
    }

    /// The engine or the nodes answer.
    pub(crate) fn pass_on(&mut self, index: ClientId, row: &'static Row, request: &Request<'_>) -> Flow {
        if self.env.engine.is_some() {
            return self.execute(index, row, request);
        }
        self.forward(index, row, request)
    }

    /// The engine in this process answers at once.
    #[inline]
    fn execute(&mut self, index: ClientId, row: &'static Row, request: &Request<'_>) -> Flow {
        if self.env.is_own_log(row)
            && let Some(flow) = self.env.own_logs(index, row, request.args)
        {
            return flow;
        }
        if self.env.is_own_info(row) {
            if let Some(flow) = self.own_config(index, row, request.args) {
                return flow;
            }
            return self.answer_locally(index, row, request.args);
        }
        if !self.blocking.parking.is_empty() && (row.flags.has(Flags::WRITE) || self.blocking.parking.is_told) {
            return self.blocking.execute_watched(&mut self.env, &mut self.subscriptions, index, row, request);
        }
        let now = self.env.engine_now();
        let Some(engine) = &mut self.env.engine else { return Flow::Stop };
        let Some(session) = self.env.clients.sessions.at_mut(index) else { return Flow::Stop };
        let is_in_transaction = session.is_amid_exec_reply();
        let (database, client_id) = (session.database, session.id);
        let mut view = SessionView { database, now, client_id, is_in_transaction, ..SessionView::default() };
        let protocol = session.protocol;
        if session.reply_mode != ReplyMode::On {
            let mut unwanted = Vec::new();
            let _: Outcome = engine.execute(row, request.args, &mut view, &mut Encoder::new(&mut unwanted, protocol));
            session.reply_mode.pass();
            self.blocking.serve_after(&mut self.env, &mut self.subscriptions, index);
            return Flow::Next;
        }
        self.env.clients.answer(index, |out| {
            // What may wait does not come here, so nothing is ever parked.
            let _: Outcome = engine.execute(row, request.args, &mut view, &mut Encoder::new(out, protocol));
        });
        self.blocking.serve_after(&mut self.env, &mut self.subscriptions, index);
        self.env.keep_room(index, Flow::Next)
    }
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
            let speaker = self.lanes.speaker_of(session.class);
            let Some(class) = self.class_of(LaneKey { database, protocol, speaker }) else { return false };
            self.put_into_class(reads, index, class);
        }
        let Some(session) = self.clients.sessions.at_mut(index) else { return false };
        session.database = database;
        session.protocol = protocol;
        true
    }
}

impl<E: Execute> Env<E> {
    /// The client's bytes are no requests: it is told, once what it asked before is answered, and disconnected.
    pub(crate) fn refuse_protocol(&mut self, index: ClientId, error: &RequestError) {
        self.counters.protocol_errors.add(1);
        if matches!(error, RequestError::CrossProtocol) {
            // A browser was made to talk to us. Nothing of what came with it is answered.
            self.close_client(index);
            return;
        }
        let words = format!("ERR Protocol error: {error}");
        self.answer(index, |reply| reply.error(words.as_bytes()));
        self.stop_client(index);
    }

    /// Nothing more is read of a client; it is closed once its replies are written.
    pub(crate) fn stop_client(&mut self, index: ClientId) {
        if let Some(session) = self.clients.sessions.at_mut(index) {
            session.pause.add(Pause::CLOSING);
            self.clients.list(index);
        }
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
                session.pause.add(Pause::OUTPUT);
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
    pub(crate) fn keep_pace(&mut self, index: ClientId, lane: LaneId) -> Flow {
        let Some(session) = self.clients.sessions.at(index) else { return Flow::Stop };
        let has_much = self.lanes[lane].up.queued_bytes() > self.config.budgets.queue_soft();
        if has_much || session.has_asked_much() {
            return self.throttle(index, lane);
        }
        Flow::Next
    }

    /// The same for a request that several nodes answer, of whose lanes `fullest` is the one with most in its queue.
    pub(crate) fn keep_pace_of_all(&mut self, index: ClientId, fullest: Option<LaneId>) -> Flow {
        fullest.map_or(Flow::Next, |lane| self.keep_pace(index, lane))
    }

    /// The same for a request that waits for no node in particular.
    pub(crate) fn keep_outstanding(&mut self, index: ClientId) -> Flow {
        let Some(session) = self.clients.sessions.at_mut(index) else { return Flow::Stop };
        if session.down.unsettled() <= CLIENT_OUTSTANDING_MAX {
            return Flow::Next;
        }
        session.pause.add(Pause::OUTSTANDING);
        self.counters.pauses.add(1);
        Flow::Pause
    }

    /// The client has asked for more than is being answered: it is not read for a while.
    #[cold]
    pub(crate) fn throttle(&mut self, index: ClientId, lane: LaneId) -> Flow {
        let soft = self.config.budgets.client_output_soft;
        let has_much = self.lanes[lane].up.queued_bytes() > self.config.budgets.queue_soft();
        let Some(session) = self.clients.sessions.at_mut(index) else { return Flow::Stop };
        session.credit.review(&session.down, soft);
        if session.has_asked_much() {
            session.pause.add(Pause::OUTSTANDING);
        } else if has_much {
            session.pause.add(Pause::LANE);
            self.lanes[lane].throttled.push(index);
        } else {
            return Flow::Next;
        }
        self.counters.pauses.add(1);
        Flow::Pause
    }

    /// A client that was owed as many replies as it may be is read again once it is owed half of that.
    pub(crate) fn let_ask_again(&mut self, index: ClientId) {
        let soft = self.config.budgets.client_output_soft;
        let Some(session) = self.clients.sessions.at_mut(index).filter(|s| s.pause.has(Pause::OUTSTANDING)) else {
            return;
        };
        session.credit.review(&session.down, soft);
        if session.down.unsettled() <= session.credit.window() / 2 {
            self.clients.unpause(index, Pause::OUTSTANDING);
        }
    }

    /// Answers the request that is being read, in its place, unless the client wants no reply.
    #[inline]
    pub(crate) fn answer(&mut self, index: ClientId, write: impl FnOnce(&mut Encoder<'_>)) {
        let Some(session) = self.clients.sessions.at_mut(index) else { return };
        self.counters.requests_local.add(1);
        let protocol = session.protocol;
        if session.reply_mode == ReplyMode::On {
            self.clients.answer(index, |out| write(&mut Encoder::new(out, protocol)));
        } else {
            session.reply_mode.pass();
        }
    }

    /// Takes the place of a reply that does not come from one node alone. `None` within: no reply is wanted.
    pub(crate) fn expect_reply(&mut self, index: ClientId) -> Option<Option<Asker>> {
        let session = self.clients.sessions.handle(index)?;
        let this = self.clients.sessions.at_mut(index)?;
        if this.reply_mode == ReplyMode::On {
            return Some(Some(Asker { session, seq: this.down.expect() }));
        }
        this.reply_mode.pass();
        Some(None)
    }

    /// Answers with an error.
    pub(crate) fn refuse(&mut self, index: ClientId, words: &[u8]) -> Flow {
        self.answer(index, |reply| reply.error(words));
        Flow::Next
    }

    /// Changes what the client's connection is, at once if nothing is outstanding and else once that is so.
    /// `None`: not yet; the request is to be read again then.
    pub(crate) fn settle_before(&mut self, index: ClientId) -> Option<()> {
        let session = self.clients.sessions.at_mut(index)?;
        if session.down.is_settled() {
            return Some(());
        }
        session.pause.add(Pause::BARRIER);
        session.details.runs_ahead = true;
        self.clients.list(index);
        None
    }
}
