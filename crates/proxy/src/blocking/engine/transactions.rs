//! What transactions ask of the engine in this process: watched keys, and room for what they add.

use crate::blocking::engine::EngineSide;
use crate::env::Env;
use crate::ids::{ClientId, ClientNumber};
use crate::interfaces::engine_changes::EngineChanges;
use crate::session::{Flow, Pause, Session, SessionFlags};
use crate::transaction::local_watch::LocalWatch;
use respool_command::{Command, Execute, Flags, Row, TransactionsCommand, text as texts};
use respool_wire::Args;

impl<E: Execute, C: EngineChanges> EngineSide<'_, E, C> {
    /// WATCH, for the engine in this process.
    pub(crate) fn watch_engine(&mut self, index: ClientId, args: Args<'_>) -> Flow {
        let now = self.env.engine_now();
        let Env { engine: Some(engine), clients, .. } = &mut *self.env else { return Flow::Stop };
        let Some(session) = clients.sessions.at_mut(index) else { return Flow::Stop };
        let held_bytes = engine.watch(session.id.get(), session.database, now, args.from(1));
        session.flags.add(SessionFlags::PINNED);
        session.pins_mut().local_watch = Some(LocalWatch { held_bytes });
        self.collect_expired();
        self.env.confirm(index);
        self.changes.tell_changes(self.env);
        self.env.keep_memory(index)
    }

    /// The engine has looked at keys for no request, and may have removed expired ones.
    pub(super) fn collect_expired(&mut self) {
        if self.blocking.parking.is_told {
            self.changes.collect_changes(self.env, self.blocking.parking.wanted(), None);
        }
    }

    /// Has the engine make room for a transaction; whether there is some.
    fn make_engine_room(&mut self) -> bool {
        let has_room = self.env.make_engine_room();
        self.collect_expired();
        has_room
    }

    /// As in Redis, room is made before a request that is no part of a transaction, and clients hear of it before that has its reply.
    pub(super) fn make_room_before(&mut self, index: ClientId) {
        let session = self.env.clients.sessions.at(index);
        if self.blocking.parking.is_told && !session.is_some_and(Session::is_amid_exec_reply) {
            self.make_engine_room();
            self.changes.tell_changes(self.env);
        }
    }

    /// A session's transaction is to run, and it watches something here, which ends. Whether it must not run.
    fn has_watched_in_vain(&mut self, id: ClientNumber) -> bool {
        let now = self.env.engine_now();
        let Some(engine) = &mut self.env.engine else { return false };
        let is_dirty = engine.is_dirty(id.get(), now);
        engine.unwatch(id.get());
        self.collect_expired();
        is_dirty
    }

    /// Checks memory before a request is queued. `Some`: the engine has no room for it, as Redis checks before it queues any command. A command
    /// that no transaction may have is refused for that reason first, and UNWATCH gives room back. Clients hear of what has made
    /// room.
    pub(crate) fn refuse_to_queue(&mut self, index: ClientId, row: &Row) -> Option<Flow> {
        let needs_room =
            !row.flags.has(Flags::NO_MULTI) && row.command != Command::Transactions(TransactionsCommand::Unwatch);
        if self.env.engine.is_none() || !needs_room {
            return None;
        }
        let has_room = self.make_engine_room();
        self.changes.tell_changes(self.env);
        if has_room {
            return None;
        }
        self.env.clients.spoil_transaction(index);
        Some(self.env.refuse(index, texts::OOM))
    }

    /// EXEC of a session that is queueing. `Some`: it goes no further, for reasons that the engine knows.
    pub(crate) fn refuse_exec(&mut self, index: ClientId) -> Option<Flow> {
        self.env.engine.as_ref()?;
        // Keys that make room may be watched ones.
        let has_room = self.make_engine_room();
        let flow = if !has_room && self.env.clients.queued_adds_data(index) {
            self.env.clients.discard_queued(index);
            self.env.leave_watches(index);
            self.env.refuse(index, texts::EXECABORT_OOM)
        } else {
            let id = self.env.clients.take_local_watch(index)?;
            if !self.has_watched_in_vain(id) {
                return None;
            }
            self.env.clients.discard_queued(index);
            self.env.answer(index, |reply| reply.null_array())
        };
        self.changes.tell_changes(self.env);
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
