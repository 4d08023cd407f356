//! What transactions ask of the engine in this process: watched keys, and room for what they add.

use crate::env::Env;
use crate::error_text;
use crate::ids::{ClientId, ClientNumber};
use crate::interfaces::engine_calls::EngineCalls;
use crate::interfaces::engine_changes::EngineChanges;
use crate::session::{Flow, PauseReasons, SessionFlags};
use respool_command::{Command, Execute, Flags, Row, ScriptingCommand as S, TransactionsCommand, text as texts};
use respool_wire::Args;

/// WATCH, for the engine in this process.
pub(crate) fn watch_engine(side: &mut impl EngineCalls, index: ClientId, args: Args<'_>) -> Flow {
    let env = side.env();
    let now = env.engine_now();
    let Env { engine: Some(engine), clients, .. } = env else { return Flow::Stop };
    let Some(session) = clients.sessions.at_mut(index) else { return Flow::Stop };
    let held_bytes = engine.watch(session.id.get(), session.database, now, args.from(1));
    session.flags.add(SessionFlags::PINNED);
    session.pins_mut().local_watch = Some(held_bytes);
    side.collect_expired();
    let (env, changes) = side.parts();
    env.confirm(index);
    changes.tell_changes(env);
    env.keep_memory(index)
}

/// Has the engine make room for a transaction; whether there is some.
fn make_engine_room(side: &mut impl EngineCalls) -> bool {
    let has_room = side.env().make_engine_room();
    side.collect_expired();
    has_room
}

/// A session's transaction is to run. `None`: it watches nothing here. Otherwise its watching ends, and it must not run if that is true.
fn has_watched_in_vain(side: &mut impl EngineCalls, index: ClientId) -> Option<bool> {
    let env = side.env();
    let id = env.clients.take_local_watch(index)?;
    let now = env.engine_now();
    let engine = env.engine.as_mut()?;
    let is_dirty = engine.is_dirty(id.get(), now);
    engine.unwatch(id.get());
    side.collect_expired();
    Some(is_dirty)
}

/// Checks memory before a request is queued. `Some`: the engine has no room for it, as Redis checks before it queues any command. A command
/// that no transaction may have is refused for that reason first, and UNWATCH gives room back. Clients hear of what has made
/// room. A script that its client wants to debug is refused too: it would run as any other, among the real keys.
pub(crate) fn refuse_to_queue(side: &mut impl EngineCalls, index: ClientId, row: &Row) -> Option<Flow> {
    let env = side.env();
    let is_script = matches!(row.command, Command::Scripting(S::Eval | S::EvalRo | S::Evalsha | S::EvalshaRo));
    if is_script && env.clients.sessions.at(index)?.flags.has(SessionFlags::DEBUGS) {
        return Some(env.refuse_unread(index, error_text::NO_DEBUGGING_IN_MULTI));
    }
    let needs_room =
        !row.flags.has(Flags::NO_MULTI) && row.command != Command::Transactions(TransactionsCommand::Unwatch);
    if side.env().engine.is_none() || !needs_room {
        return None;
    }
    let has_room = make_engine_room(side);
    let (env, changes) = side.parts();
    changes.tell_changes(env);
    if has_room {
        return None;
    }
    env.clients.spoil_transaction(index);
    Some(env.refuse(index, texts::OOM))
}

/// EXEC of a session that is queueing. `Some`: it goes no further, for reasons that the engine knows.
pub(crate) fn refuse_exec(side: &mut impl EngineCalls, index: ClientId) -> Option<Flow> {
    side.env().engine.as_ref()?;
    // Keys that make room may be watched ones.
    let has_room = make_engine_room(side);
    let is_full = !has_room && side.env().clients.queued_adds_data(index);
    if !is_full && !has_watched_in_vain(side, index)? {
        return None;
    }
    let (env, changes) = side.parts();
    env.clients.discard_queued(index);
    let flow = if is_full {
        env.leave_watches(index);
        env.refuse(index, texts::EXECABORT_OOM)
    } else {
        env.answer(index, |reply| reply.null_array())
    };
    changes.tell_changes(env);
    Some(flow)
}

impl<E: Execute> Env<E> {
    /// A session watches nothing here any more.
    pub(super) fn leave_local_watch(&mut self, id: ClientNumber) {
        self.engine.iter_mut().for_each(|engine| engine.unwatch(id.get()));
    }

    /// What a client watches is in no outbox: it is read on only as long as the process has room for it.
    fn keep_memory(&mut self, index: ClientId) -> Flow {
        let Some(session) = self.clients.sessions.at_mut(index) else { return Flow::Stop };
        session.account(&self.shared.ledger);
        if self.shared.ledger.held_bytes() <= self.config.budgets.process {
            return Flow::Next;
        }
        session.pause.add(PauseReasons::PRESSURE);
        self.is_busy = true;
        Flow::Pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocking::engine::EngineSide;
    use crate::blocking::queue::Blocking;
    use crate::testing::{EchoEngine, env_with_engine, request};
    use crate::tracking::Subscriptions;

    /// What is asked of an engine in such a state.
    fn ask<R>(
        engine: EchoEngine,
        ask: impl FnOnce(&mut EngineSide<'_, EchoEngine, Subscriptions>, ClientId) -> R,
    ) -> (R, String) {
        let mut env = env_with_engine();
        env.engine = Some(engine);
        let client = env.test_client();
        let (mut blocking, mut changes) = (Blocking::default(), Subscriptions::new(&env.config, 1));
        let mut side = EngineSide { blocking: &mut blocking, env: &mut env, changes: &mut changes };
        let result = ask(&mut side, client);
        (result, env.take_output(client))
    }

    fn full() -> EchoEngine {
        EchoEngine { is_full: true, ..EchoEngine::default() }
    }

    #[test]
    fn an_engine_without_room_queues_only_what_gives_room_back() {
        let queue =
            |engine, said: &str| ask(engine, |side, client| request(said, |row, _| refuse_to_queue(side, client, row)));
        assert_eq!(queue(EchoEngine::default(), "SET k v"), (None, String::new()));
        assert_eq!(queue(full(), "UNWATCH"), (None, String::new()));
        let (refused, reply) = queue(full(), "SET k v");
        assert!(refused.is_some() && reply.starts_with("-OOM "), "{reply}");
    }

    #[test]
    fn a_transaction_does_not_run_once_what_it_watches_has_changed() {
        for (is_dirty, reply) in [(false, "+OK\r\n"), (true, "+OK\r\n*-1\r\n")] {
            let (refused, given) = ask(EchoEngine { is_dirty, ..EchoEngine::default() }, |side, client| {
                request("WATCH k", |_, args| watch_engine(side, client, args));
                refuse_exec(side, client)
            });
            assert_eq!((refused.is_some(), given.as_str()), (is_dirty, reply));
        }
    }
}
