//! The way of a request: which feature deals with it.
//!
//! Everything that a client sends comes through `read_requests`. Plain requests leave it by [`crate::request::fast_path`]; the
//! others are first for the states that their session is in, and then for the feature of their lane.

use crate::command_log::TimedRun;
use crate::command_log::verbs::is_own_log;
use crate::commands::info::asks_for_proxy;
use crate::env::Env;
use crate::error_text;
use crate::interfaces::engine_changes::EngineChanges;
use crate::nodes::id::NodeId;
use crate::request::dispatch::{HandleRequests, read_requests};
use crate::request::fast_path::Plain;
use crate::request::forward::is_own_info;
use crate::session::id::ClientId;
use crate::session::{Flow, SessionFlags};
use crate::transaction::reply_parts::Departure;
use crate::worker::Worker;
use respool_command::{Execute, Lane, Row, resolve};
use respool_route::plan_at_once;
use respool_wire::{Args, Request, RequestDecoder};

impl<E: Execute> HandleRequests for Worker<E> {
    type Engine = E;

    #[inline(always)]
    fn env(&mut self) -> &mut Env<E> {
        &mut self.env
    }

    #[inline(always)]
    fn do_plain(&mut self, way: Plain, index: ClientId, request: &Request<'_>) -> Option<Flow> {
        match way {
            Plain::Neither => None,
            Plain::Nodes => self.env.forward_plain(index, request),
            Plain::Engine => self.blocking.execute_plain(&mut self.env, &mut self.subscriptions, index, request),
        }
    }

    #[inline(always)]
    fn handle_request(&mut self, index: ClientId, request: &Request<'_>) -> Flow {
        let flow = self.take_request(index, request);
        self.tell_ended();
        flow
    }
}

impl<E: Execute> Worker<E> {
    /// Reads the requests in bytes that stand alone; what is left of them is kept for later.
    pub(crate) fn read_fresh(&mut self, index: ClientId, decoder: &mut RequestDecoder, bytes: &[u8]) {
        let (used, halt) = read_requests(self, index, decoder, bytes);
        self.env.keep_rest(&mut self.subscriptions, index, decoder, bytes.get(used..).unwrap_or_default(), halt);
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
        let (used, halt) = read_requests(self, index, decoder, bytes);
        self.env.keep_input(&mut self.subscriptions, index, input, used, halt);
    }

    #[inline(never)]
    fn take_request(&mut self, index: ClientId, request: &Request<'_>) -> Flow {
        self.env.counters.requests.add(1);
        let args = request.args;
        let position = self.env.answer_position(index);
        let row = match resolve(args) {
            Ok(row) => row,
            Err(unknown) => match self.learnings.learnt_row(&mut self.env, index, unknown, request) {
                Ok(row) => row,
                Err(flow) => {
                    self.env.command_log.count_refused(&self.env.clients, index, None, position);
                    return flow;
                }
            },
        };
        if !row.accepts(args.len()) {
            let flow = self.env.refuse_arity(index, row, request);
            self.env.command_log.count_refused(&self.env.clients, index, Some(row), position);
            return flow;
        }
        let Some(session) = self.env.clients.sessions.at_mut(index) else { return Flow::Stop };
        session.last_row = Some(row);
        if self.env.slices.script.is_some()
            && let Some(flow) = self.env.refuse_beside_script(index, row, request)
        {
            self.env.command_log.count_refused(&self.env.clients, index, Some(row), position);
            return flow;
        }
        let Some(session) = self.env.clients.sessions.at_mut(index) else { return Flow::Stop };
        let flags = session.flags;
        if flags.has(SessionFlags::NO_TOUCH) {
            return self.run_without_trace(index, row, request, flags);
        }
        if !flags.is_none() {
            return self.run_in_state(index, row, request, flags);
        }
        self.run(index, row, request)
    }

    /// A request of a session in a rare state: one of them deals with it, or it goes on as any other.
    fn run_in_state(&mut self, index: ClientId, row: &'static Row, request: &Request<'_>, flags: SessionFlags) -> Flow {
        let position = self.env.answer_position(index);
        match self.handle_special(index, row, request) {
            Some(flow) => {
                let was_queueing = flags.has(SessionFlags::QUEUEING);
                if self.env.command_log.count_special(&self.env.clients, index, row, position, was_queueing) {
                    self.env.show_to_monitors(index, row, request.args);
                }
                flow
            }
            None => self.run(index, row, request),
        }
    }

    /// A request of a session that said `CLIENT NO-TOUCH`. What of a block of EXEC runs later sees to it itself.
    #[cold]
    fn run_without_trace(
        &mut self,
        index: ClientId,
        row: &'static Row,
        request: &Request<'_>,
        flags: SessionFlags,
    ) -> Flow {
        self.env.engine.iter_mut().for_each(|engine| _ = engine.spare_uses(true));
        let flow = self.run_in_state(index, row, request, flags);
        self.env.engine.iter_mut().for_each(|engine| _ = engine.spare_uses(false));
        flow
    }

    /// Does what a request asks, whatever state the session is in.
    #[inline]
    pub(crate) fn run(&mut self, index: ClientId, row: &'static Row, request: &Request<'_>) -> Flow {
        match self.env.times_from() {
            None => self.run_without_clock(index, row, request),
            Some(begun_us) => self.run_timed(index, row, request, begun_us),
        }
    }

    /// As [`Worker::run`] for nodes, or for an engine without a clock, whose calls are counted.
    #[inline]
    fn run_without_clock(&mut self, index: ClientId, row: &'static Row, request: &Request<'_>) -> Flow {
        if self.env.engine.is_none() {
            return self.run_untimed(index, row, request);
        }
        let position = self.env.answer_position(index);
        let flow = self.run_untimed(index, row, request);
        // A script that is late counts once it has ended.
        if flow != Flow::Again && !(row.runs_scripts && self.env.waits_for_script(index)) {
            self.env.command_log.count_call(&self.env.clients, index, row, position, None);
            if !row.runs_scripts {
                self.env.show_to_monitors(index, row, request.args);
            }
        }
        flow
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
        self.blocking.review_events(&mut self.env, &mut self.subscriptions);
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
        if is_own_log(row)
            && let Some(flow) = self.env.own_logs(index, row, request.args)
        {
            return flow;
        }
        if is_own_info(row, &self.env.shared) {
            if let Some(flow) = self.own_config(index, row, request.args) {
                return flow;
            }
            return self.answer_locally(index, row, request.args);
        }
        self.blocking.execute(&mut self.env, &mut self.subscriptions, index, row, request)
    }

    /// Asks the states that a session is in about one of its requests. `None`: it goes on as any other.
    #[cold]
    pub(crate) fn handle_special(&mut self, index: ClientId, row: &'static Row, request: &Request<'_>) -> Option<Flow> {
        if self.env.clients.is_amid_names(index) {
            return None;
        }
        for state in SessionFlags::ORDER {
            // Looked at anew each time: the owner that was asked before may have ended a state.
            if self.env.clients.sessions.at(index)?.flags.has(state)
                && let Some(flow) = self.ask(state, index, row, request)
            {
                return Some(flow);
            }
        }
        None
    }

    /// One arm for each state whose owner deals with requests.
    pub(crate) fn ask(
        &mut self,
        state: SessionFlags,
        index: ClientId,
        row: &'static Row,
        request: &Request<'_>,
    ) -> Option<Flow> {
        match state {
            SessionFlags::HOOKED => self.env.ask_hooks(index, row, request.args),
            SessionFlags::TRACKING => {
                let flow = self.subscriptions.settle_noloop(&mut self.env, index);
                if flow.is_none() {
                    self.subscriptions.track_request(&mut self.env, index, row, request.args);
                }
                flow
            }
            SessionFlags::HELD => self
                .hold_for_client_pause(index, row, request.args)
                .or_else(|| self.env.hold_for_operator(index, row, request.args)),
            SessionFlags::SUBSCRIBED => self.env.ask_subscribed(index, row, request.args),
            SessionFlags::UNAUTHENTICATED => self.env.ask_stranger(index, row),
            SessionFlags::UNMET => self.env.ask_unmet(index, row, request.args),
            SessionFlags::RESTRICTED => self.env.ask_restricted(index, row, request.args),
            SessionFlags::LIMITED => self.env.ask_limited(index, request),
            // Subscriptions have an order of their own, see `pubsub::pending`.
            SessionFlags::OVERTAKEN if row.lane(request.args) == Lane::Push => None,
            SessionFlags::OVERTAKEN => self.env.settle_reload(index),
            SessionFlags::UNSETTLED => self.env.settle_mode(index),
            SessionFlags::SCRIPTING => {
                self.env.leave_scripts_before(index, row, request.args);
                None
            }
            SessionFlags::DEDICATED => self.dedicated.handle_any_request(&mut self.env, index, row, request),
            SessionFlags::QUEUEING => self.while_queueing(index, row, request),
            SessionFlags::LARGE => self.env.order_large(index, row, row.lane(request.args)),
            _ => None,
        }
    }

    /// The nodes that have the keys answer.
    #[inline]
    pub(crate) fn forward(&mut self, index: ClientId, row: &'static Row, request: &Request<'_>) -> Flow {
        if is_own_info(row, &self.env.shared) {
            if let Some(flow) = self.own_config(index, row, request.args) {
                return flow;
            }
            return match asks_for_proxy(request.args) {
                true => self.answer_locally(index, row, request.args),
                false => self.env.info_of_nodes(index, row, request),
            };
        }
        if self.env.config.routes.are_plain()
            && let Some(node) = plan_at_once(row, request.args, &self.env.config.topology)
        {
            return self.env.forward_to(index, NodeId::of(node), request);
        }
        self.env.forward_planned(index, row, request)
    }

    /// Goes on with the script that the engine has left, if there is one, and with the EXEC that it is part of.
    #[cold]
    pub(crate) fn go_on_with_script(&mut self) {
        let was_late = self.env.slices.script.is_some();
        let client = self.blocking.go_on_with_script(&mut self.env, &mut self.subscriptions);
        if was_late && self.env.slices.script.is_none() && self.env.config.trusts_clients {
            self.env.catch_up_with_parameters();
            self.blocking.review_events(&mut self.env, &mut self.subscriptions);
            // Changes of all engines have waited.
            self.settle_holding();
        }
        let Some(client) = client else { return };
        if !self.env.clients.goes_on_with_exec(client) {
            return;
        }
        let departure = self.env.clients.departure_of(client.index);
        // A transaction is not interrupted: a client that may not be read does not keep the rest of its own.
        let _: Flow = self.continue_exec_reply(client.index);
        match departure.filter(|_| self.env.slices.script.is_none()) {
            Some(Departure::Gone) => self.env.drop_client(client.index),
            Some(Departure::Closing) => self.env.close_client(client.index),
            None => self.env.clients.list(client.index),
        }
    }

    /// Runs a request and notes what it took.
    pub(crate) fn run_timed(
        &mut self,
        index: ClientId,
        row: &'static Row,
        request: &Request<'_>,
        begun_us: u64,
    ) -> Flow {
        let before = self.env.clients.waiting_bytes_of(index);
        let position = self.env.answer_position(index);
        let flow = self.run_untimed(index, row, request);
        self.env.note_run(index, row, request.args, TimedRun { begun_us, before, position, flow });
        flow
    }
}
