//! An embedded engine's part of what takes its time: requests that it has parked.
//!
//! The engine owns which keys are waited for, and the order in which parked requests are served. Here is what it
//! cannot know: which client a parked request belongs to, its timeout, and when a request or transaction has ended, so that
//! the clients that it made ready are served.

mod execute;

use crate::blocking::queue::Blocking;
use crate::blocking::request::{Target, Wording};
use crate::env::Env;
use crate::error_text;
use crate::ids::{ClientId, ClientNumber, NodeId};
use crate::interfaces::call::Call;
use crate::interfaces::engine_calls::{EngineCall, EngineCalls};
use crate::interfaces::engine_changes::EngineChanges;
use crate::interfaces::release::Release;
use crate::session::{Flow, Session, SessionFlags};
use respool_command::{
    Asked, Command, EventClasses, Execute, Flags, Millis, Outcome, Row, SessionView, WaitId, Wanted,
};
use respool_wire::{Args, Encoder, ReplyKind};

/// While clients pause the engine is asked so often whether they do so still, in microseconds.
const PAUSED_TICK_US: u64 = 100_000;

/// What a request for the engine may concern: those that wait for it or watch, the environment that has it, and the feature that
/// tells of what it changes.
pub(crate) struct EngineSide<'a, E, C> {
    pub(crate) blocking: &'a mut Blocking,
    pub(crate) env: &'a mut Env<E>,
    pub(crate) changes: &'a mut C,
}

impl<E: Execute, C: EngineChanges> EngineSide<'_, E, C> {
    /// A request that may wait, for the engine in this process.
    pub(crate) fn park(&mut self, call: Call<'_>) -> Flow {
        let Call { index, row, request } = call;
        let Some(()) = self.env.clients.settle_before(index) else { return Flow::Again };
        self.make_room_before(index);
        let mut reply = Vec::new();
        let outcome = self.run_engine(index, row, request.args, &mut reply);
        let Some(Outcome::Parked(wait)) = outcome else {
            self.serve_after(index);
            return self.env.answer(index, |out| out.raw(&reply));
        };
        if self.blocking.requests.len() >= self.env.config.lanes.blocked_commands_max {
            self.env.cancel_wait(wait);
            self.env.counters.blocked_refused.add(1);
            return self.env.refuse(index, error_text::TOO_MANY_BLOCKED);
        }
        let asker = if self.env.may_wait(index) { self.env.clients.expect_behind_barrier(index) } else { None };
        let Some(asker) = asker else {
            self.env.cancel_wait(wait);
            return Flow::Stop;
        };
        let words = Wording { args: request.args.iter().collect(), said: None };
        let blocked =
            self.blocking.enter_queue(self.env, index, row, words, NodeId::nth(0).into(), Target::Client { asker });
        if let Some(this) = self.blocking.requests.get_mut(blocked) {
            this.wait = Some(wait);
        }
        self.blocking.parking.waits.insert(wait, blocked);
        self.env.count_awaited_keys();
        if self.env.clients.sessions.at(index).is_some_and(|s| s.details.has_hung_up) {
            self.blocking.release_blocked(self.env, blocked, Release::HalfClosed);
        }
        if self.env.clients.is_leaving(index) { Flow::Stop } else { Flow::Pause }
    }

    /// A request for the engine in this process while clients are told of changes, or while some wait.
    #[cold]
    pub(crate) fn execute_watched(&mut self, call: Call<'_>) -> Flow {
        let Call { index, row, request } = call;
        let flow = if !self.blocking.parking.waits.is_empty() && row.flags.has(Flags::WRITE) {
            self.park(call)
        } else {
            self.make_room_before(index);
            let mut reply = Vec::new();
            // Only what may wait is parked.
            let _: Option<Outcome> = self.run_engine(index, row, request.args, &mut reply);
            self.env.answer(index, |out| out.raw(&reply));
            self.serve_after(index);
            Flow::Next
        };
        self.changes.tell_changes(self.env);
        self.env.keep_room(index, flow)
    }

    /// Runs a request of a session. `None`: one of them is not there.
    fn run_engine(
        &mut self,
        index: ClientId,
        row: &'static Row,
        args: Args<'_>,
        reply: &mut Vec<u8>,
    ) -> Option<Outcome> {
        let by = self.env.clients.sessions.handle(index);
        let session = self.env.clients.sessions.at(index)?;
        let is_in_transaction = session.is_amid_exec_reply();
        let view = SessionView { is_in_transaction, ..self.env.view(session.database, session.id) };
        self.run_engine_as(EngineCall { view, by, row, args }, reply)
    }

    /// A request has been run for a session: the clients that it made ready are served, unless it is part of a transaction.
    pub(crate) fn serve_after(&mut self, index: ClientId) {
        if self.blocking.parking.waits.is_empty() {
            return;
        }
        let session = self.env.clients.sessions.at(index);
        if session.is_some_and(Session::is_amid_exec_reply) {
            return;
        }
        // Blocked clients hear of the change before they are served; the client that made it, behind its reply.
        if !session.is_some_and(|s| s.flags.has(SessionFlags::TRACKING)) {
            self.changes.tell_changes(self.env);
        }
        self.serve_ready();
    }

    /// Serves the parked requests that have become ready.
    #[cold]
    pub(crate) fn serve_ready(&mut self) {
        if self.blocking.parking.waits.is_empty() {
            return;
        }
        let now = self.env.engine_now();
        let mut reply = Vec::new();
        while let Some(wait) = self.env.engine.as_mut().and_then(|engine| engine.poll_ready(now, &mut reply)) {
            let blocked = self.blocking.parking.waits.remove(&wait);
            if let Some((blocked, this)) =
                blocked.and_then(|blocked| Some((blocked, self.blocking.requests.get(blocked)?)))
            {
                let by = if let Target::Client { asker, .. } = this.target { Some(asker.session) } else { None };
                let args = this.said.as_ref().unwrap_or(&this.args);
                if let Some(by) = by {
                    self.env.note_served(by, this.row, args.as_args(), reply.len());
                }
                if self.blocking.parking.is_told {
                    self.changes.collect_changes(self.env, self.blocking.parking.wanted(), by);
                }
                self.blocking.leave_queue(NodeId::nth(0), blocked);
                let kind = if reply.starts_with(b"-") { ReplyKind::Error } else { ReplyKind::Array };
                self.blocking.finish_blocked(self.env, blocked, kind, &reply);
            }
            reply.clear();
        }
    }

    /// The engine does what its own clock asks of it: keys expire.
    #[cold]
    pub(crate) fn tick_engine(&mut self) {
        let now = self.env.engine_now();
        let Some(engine) = &mut self.env.engine else {
            self.env.engine_at_us = 0;
            return;
        };
        // As in Redis, no key expires by itself or makes room while clients pause.
        if self.env.client_pause.is_some() {
            self.env.engine_at_us = self.env.now.mono_us + PAUSED_TICK_US;
            return;
        }
        let begun_us = self.env.shared.hooks.monotonic_us();
        self.env.engine_at_us = match engine.tick(now) {
            Some(Millis(next)) => self.env.now.mono_us + next.saturating_sub(now.0).max(1) * 1000,
            None => 0,
        };
        let ended_us = self.env.shared.hooks.monotonic_us();
        if let Some((begun_us, ended_us)) = begun_us.zip(ended_us) {
            let (seconds, us) = (self.env.now.unix_us / 1_000_000, ended_us.saturating_sub(begun_us));
            self.env.command_log.note_latency(&self.env.config.seeing, "expire-cycle", seconds, us);
        }
        self.serve_ready();
        if self.blocking.parking.is_told {
            self.collect_expired();
            self.changes.tell_changes(self.env);
        }
    }

    /// The engine keeps changes of keys from now on (`is_tracking`), or not, and the events that the settings want.
    pub(crate) fn want_changes(&mut self, is_tracking: bool) {
        let classes = self.env.config.keyspace_events;
        let events = if classes.publishes() { classes } else { EventClasses::NONE };
        let wanted = Wanted { keys: is_tracking, events };
        if self.env.engine.is_some() && wanted != self.blocking.parking.wanted() {
            self.blocking.parking.want(wanted);
            self.changes.collect_changes(self.env, wanted, None);
        }
    }

    /// The settings may want other events.
    pub(crate) fn review_events(&mut self) {
        self.want_changes(self.blocking.parking.wanted().keys);
    }
}

impl<E: Execute, C: EngineChanges> EngineCalls for EngineSide<'_, E, C> {
    type Engine = E;
    type Changes = C;

    fn parts(&mut self) -> (&mut Env<E>, &mut C) {
        (self.env, self.changes)
    }

    fn execute_as(&mut self, call: EngineCall<'_>, reply: &mut Encoder<'_>) -> Option<Outcome> {
        let EngineCall { mut view, by, row, args } = call;
        loop {
            let outcome = self.env.engine.as_mut()?.execute(row, args, &mut view, reply);
            if self.blocking.parking.is_told {
                self.changes.collect_changes(self.env, self.blocking.parking.wanted(), by);
            }
            if row.runs_scripts {
                self.env.show_script_calls();
            }
            if outcome != Outcome::Asks {
                return Some(outcome);
            }
            answer_script(self.env, self.changes);
            view.has_waited = true;
        }
    }

    fn make_room_before(&mut self, index: ClientId) {
        let session = self.env.clients.sessions.at(index);
        if self.blocking.parking.is_told && !session.is_some_and(Session::is_amid_exec_reply) {
            self.env.make_engine_room();
            self.collect_expired();
            self.changes.tell_changes(self.env);
        }
    }

    fn note_run_apart(&mut self, index: Option<ClientId>) {
        if self.blocking.parking.is_empty() {
            return;
        }
        self.changes.tell_changes(self.env);
        match index {
            Some(index) => self.serve_after(index),
            None => self.serve_ready(),
        }
    }

    fn collect_expired(&mut self) {
        if self.blocking.parking.is_told {
            self.changes.collect_changes(self.env, self.blocking.parking.wanted(), None);
        }
    }
}

impl Blocking {
    /// A parked request is finished: the engine forgets it, if it has not been served.
    pub(crate) fn leave_parking(&mut self, env: &mut Env<impl Execute>, wait: WaitId) {
        self.parking.waits.remove(&wait);
        env.cancel_wait(wait);
        env.count_awaited_keys();
    }
}

/// A script calls a command that is not the engine's. Without a reply it gets the error that there is no such command.
#[cold]
fn answer_script(env: &mut Env<impl Execute>, changes: &mut impl EngineChanges) {
    let Some(Asked { row, args, protocol, .. }) = env.engine.as_mut().and_then(Execute::asked) else { return };
    let Command::Pubsub(command) = row.command else { return };
    let mut reply = Vec::new();
    changes.pubsub_for_script(env, command, row, args.as_args(), &mut Encoder::new(&mut reply, protocol));
    if let Some(engine) = &mut env.engine {
        engine.answer_asked(&reply);
    }
}

impl<E: Execute> Env<E> {
    fn cancel_wait(&mut self, wait: WaitId) {
        if let Some(engine) = &mut self.engine {
            engine.cancel(wait);
        }
    }

    fn count_awaited_keys(&mut self) {
        self.counters.keys_waited_for.set(self.awaited_keys() as u64);
    }

    /// How many keys requests wait for in the engine in this process.
    pub(crate) fn awaited_keys(&self) -> usize {
        self.engine.as_ref().map_or(0, Execute::awaited_keys)
    }

    pub(crate) fn view(&self, database: u32, client: ClientNumber) -> SessionView {
        SessionView { database, now: self.engine_now(), client_id: client.get(), ..SessionView::default() }
    }
}
