//! Transactions: what of them is for the engine of this process, for other features, or for the proxy itself.

use crate::interfaces::engine_changes::EngineChanges;
use crate::session::id::ClientId;
use crate::session::{Flow, SessionFlags};
use crate::transaction::Queueing;
use crate::transaction::exec_reply::{ExecStep, ExecTurn};
use crate::transaction::reply_parts::Part;
use crate::worker::Worker;
use respool_command::{Command, Execute, Row, TransactionsCommand as T, text as texts};
use respool_wire::{Request, replies};

impl<E: Execute> Worker<E> {
    /// A request of the pinned lane of a session that is not queueing.
    #[cold]
    pub(crate) fn transaction_command(&mut self, index: ClientId, row: &'static Row, request: &Request<'_>) -> Flow {
        match row.command {
            Command::Transactions(T::Multi) => self.env.begin_queueing(index),
            Command::Transactions(T::Exec) => self.env.refuse(index, texts::EXEC_WITHOUT_MULTI.as_bytes()),
            Command::Transactions(T::Discard) => self.env.refuse(index, texts::DISCARD_WITHOUT_MULTI.as_bytes()),
            Command::Transactions(T::Watch) if self.env.engine.is_some() => {
                self.blocking.watch_engine(&mut self.env, &mut self.subscriptions, index, request.args)
            }
            Command::Transactions(T::Watch) => self.env.watch_at_nodes(index, row, request),
            Command::Transactions(T::Unwatch) => {
                self.env.leave_watches(index);
                self.env.answer(index, |reply| reply.raw(replies::OK));
                Flow::Next
            }
            _ => self.env.refuse_unsupported(index, row, "it needs a connection of its own"),
        }
    }

    /// A request of a session that is queueing. `None`: it is not queued but done as any other.
    pub(crate) fn while_queueing(&mut self, index: ClientId, row: &'static Row, request: &Request<'_>) -> Option<Flow> {
        match self.env.while_queueing(index, row, request.args) {
            Queueing::Leaves => None,
            Queueing::Refused(flow) => Some(flow),
            Queueing::Executes => {
                let held = self.hold_for_client_pause(index, row, request.args);
                Some(held.unwrap_or_else(|| self.exec(index)))
            }
            Queueing::Queued => {
                let refused = self.blocking.refuse_to_queue(&mut self.env, &mut self.subscriptions, index, row);
                Some(refused.unwrap_or_else(|| self.env.queue_allowed(index, row, request)))
            }
        }
    }

    /// EXEC of a session that is queueing.
    fn exec(&mut self, index: ClientId) -> Flow {
        let refused = self.env.refuse_exec(index);
        let refused = refused.or_else(|| self.blocking.refuse_exec(&mut self.env, &mut self.subscriptions, index));
        refused.or_else(|| self.env.send_queued(index)).unwrap_or_else(|| self.continue_exec_reply(index))
    }

    /// Goes on with a client's reply to EXEC, as far as that goes. Its own CLIENT NO-TOUCH holds meanwhile, not that of the current client.
    pub(crate) fn continue_exec_reply(&mut self, index: ClientId) -> Flow {
        let session = self.env.clients.sessions.at(index);
        let is_spared = session.is_some_and(|session| session.flags.has(SessionFlags::NO_TOUCH));
        let was_spared = self.env.engine.as_mut().map(|engine| engine.spare_uses(is_spared));
        let flow = self.continue_parts(index);
        if let (Some(engine), Some(was_spared)) = (&mut self.env.engine, was_spared) {
            engine.spare_uses(was_spared);
        }
        flow
    }

    fn continue_parts(&mut self, index: ClientId) -> Flow {
        let mut turn = ExecTurn::begin(&self.env.clients, index);
        loop {
            let part = match turn.next_step(&mut self.env) {
                ExecStep::Part(part) => part,
                ExecStep::Leave(flow) => return flow,
                ExecStep::Complete(flow) => {
                    if self.env.clients.sessions.at(index).is_some_and(|s| s.flags.has(SessionFlags::TRACKING)) {
                        self.subscriptions.end_parts(&mut self.env, index);
                    }
                    self.blocking.serve_ready(&mut self.env, &mut self.subscriptions);
                    self.subscriptions.tell_changes(&mut self.env);
                    return flow;
                }
            };
            let flow = self.do_part(index, &part);
            if let Some(flow) = turn.note_done(&mut self.env, part, flow) {
                return flow;
            }
        }
    }

    fn do_part(&mut self, index: ClientId, part: &Part) -> Flow {
        match part {
            Part::Remote(bytes) => self.env.clients.pass_on_part(index, bytes),
            Part::Select(database) => self.env.select_in_reply(&mut self.subscriptions, index, *database),
            Part::Local(row, args) => {
                let unmet = self.env.ask_unmet(index, row, args.as_args());
                if let Some(flow) = unmet.or_else(|| self.env.refuse_part(index, row, args.as_args())) {
                    return flow;
                }
                if self.env.clients.sessions.at(index).is_some_and(|s| s.flags.has(SessionFlags::TRACKING)) {
                    self.subscriptions.track_part(&mut self.env, index, row, args.as_args());
                }
                return self.run(index, row, &Request::made(args.as_args()));
            }
        }
        Flow::Next
    }
}
