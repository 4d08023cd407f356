//! What transactions ask of the engine in this process: watched keys, and room for what they add.

use crate::blocking::queue::Blocking;
use crate::env::Env;
use crate::ids::{ClientId, ClientNumber};
use crate::interfaces::engine_changes::EngineChanges;
use crate::session::{Flow, Pause, SessionFlags};
use crate::transaction::local_watch::LocalWatch;
use respool_command::{Command, Execute, Flags, Row, TransactionsCommand, text as texts};
use respool_wire::Args;

impl Blocking {
    /// WATCH, for the engine in this process.
    pub(crate) fn watch_engine(
        &mut self,
        env: &mut Env<impl Execute>,
        changes: &mut impl EngineChanges,
        index: ClientId,
        args: Args<'_>,
    ) -> Flow {
        let now = env.engine_now();
        let Env { engine: Some(engine), clients, .. } = &mut *env else { return Flow::Stop };
        let Some(session) = clients.sessions.at_mut(index) else { return Flow::Stop };
        let held_bytes = engine.watch(session.id.get(), session.database, now, args.from(1));
        session.flags.add(SessionFlags::PINNED);
        session.pins_mut().local_watch = Some(LocalWatch { held_bytes });
        self.collect_expired(env, changes);
        env.confirm(index);
        changes.tell_changes(env);
        env.keep_memory(index)
    }

    /// The engine has looked at keys for no request, and may have removed expired ones.
    pub(super) fn collect_expired(&mut self, env: &mut Env<impl Execute>, changes: &mut impl EngineChanges) {
        if self.parking.is_told {
            changes.collect_changes(env, self.parking.wanted(), None);
        }
    }

    /// Has the engine make room for a transaction; whether there is some.
    fn make_engine_room(&mut self, env: &mut Env<impl Execute>, changes: &mut impl EngineChanges) -> bool {
        let has_room = env.make_engine_room();
        self.collect_expired(env, changes);
        has_room
    }

    /// A session's transaction is to run, and it watches something here, which ends. Whether it must not run.
    fn has_watched_in_vain(
        &mut self,
        env: &mut Env<impl Execute>,
        changes: &mut impl EngineChanges,
        id: ClientNumber,
    ) -> bool {
        let now = env.engine_now();
        let Some(engine) = &mut env.engine else { return false };
        let is_dirty = engine.is_dirty(id.get(), now);
        engine.unwatch(id.get());
        self.collect_expired(env, changes);
        is_dirty
    }

    /// Checks memory before a request is queued. `Some`: the engine has no room for it, as Redis checks before it queues any command. A command
    /// that no transaction may have is refused for that reason first, and UNWATCH gives room back. Clients hear of what has made
    /// room.
    pub(crate) fn refuse_to_queue(
        &mut self,
        env: &mut Env<impl Execute>,
        changes: &mut impl EngineChanges,
        index: ClientId,
        row: &Row,
    ) -> Option<Flow> {
        let needs_room =
            !row.flags.has(Flags::NO_MULTI) && row.command != Command::Transactions(TransactionsCommand::Unwatch);
        if env.engine.is_none() || !needs_room {
            return None;
        }
        let has_room = self.make_engine_room(env, changes);
        changes.tell_changes(env);
        if has_room {
            return None;
        }
        env.clients.spoil_transaction(index);
        Some(env.refuse(index, texts::OOM))
    }

    /// EXEC of a session that is queueing. `Some`: it goes no further, for reasons that the engine knows.
    pub(crate) fn refuse_exec(
        &mut self,
        env: &mut Env<impl Execute>,
        changes: &mut impl EngineChanges,
        index: ClientId,
    ) -> Option<Flow> {
        env.engine.as_ref()?;
        // Keys that make room may be watched ones.
        let has_room = self.make_engine_room(env, changes);
        let flow = if !has_room && env.clients.queued_adds_data(index) {
            env.clients.discard_queued(index);
            env.leave_watches(index);
            env.refuse(index, texts::EXECABORT_OOM)
        } else {
            let id = env.clients.take_local_watch(index)?;
            if !self.has_watched_in_vain(env, changes, id) {
                return None;
            }
            env.clients.discard_queued(index);
            env.answer(index, |reply| reply.null_array())
        };
        changes.tell_changes(env);
        Some(flow)
    }
}

impl<E: Execute> Env<E> {
    /// What a client watches is in no outbox: it is read on only as long as the process has room for it.
    fn keep_memory(&mut self, index: ClientId) -> Flow {
        let Some(session) = self.clients.sessions.at_mut(index) else { return Flow::Stop };
        session.account(&self.shared.ledger);
        if self.shared.ledger.held_bytes() <= self.config.budgets.process {
            return Flow::Next;
        }
        session.pause.add(Pause::PRESSURE);
        self.is_busy = true;
        Flow::Pause
    }
}
