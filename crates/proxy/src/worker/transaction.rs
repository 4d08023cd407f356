//! Transactions: what of them is for the engine of this process, for other features, or for the proxy itself.

use crate::auth::unmet_states::WantedState;
use crate::interfaces::engine_changes::EngineChanges;
use crate::session::Flow;
use crate::session::id::ClientId;
use crate::transaction::exec_reply::NextPart;
use crate::transaction::reply_parts::Part;
use crate::worker::Worker;
use respool_command::{Command, ConnectionCommand, Execute, Flags, Row, TransactionsCommand as T, text as texts};
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
        match row.command {
            Command::Connection(ConnectionCommand::Quit | ConnectionCommand::Reset) => None,
            Command::Transactions(T::Multi) => Some(self.env.refuse(index, texts::NESTED_MULTI.as_bytes())),
            Command::Transactions(T::Watch) => Some(self.env.refuse(index, texts::WATCH_INSIDE_MULTI.as_bytes())),
            Command::Transactions(T::Discard) => {
                self.env.discard_queued(index);
                self.env.leave_watches(index);
                self.env.answer(index, |reply| reply.raw(replies::OK));
                Some(Flow::Next)
            }
            Command::Transactions(T::Exec) => {
                let held = self.hold_for_client_pause(index, row, request.args);
                Some(held.unwrap_or_else(|| self.exec(index)))
            }
            _ if row.is_admin(request.args) && !row.flags.has(Flags::NO_MULTI) && self.env.refuses_to_steer(row) => {
                Some(self.env.refuse_unread(index, crate::error_text::admin_refused(row.name).as_bytes()))
            }
            _ if self.lacks_room_to_queue(row) => {
                self.env.spoil_transaction(index);
                Some(self.env.refuse(index, texts::OOM.as_bytes()))
            }
            _ if self.env.refuses_debug(index, row) => {
                Some(self.env.refuse_unread(index, crate::error_text::DEBUG_NOT_ALLOWED.as_bytes()))
            }
            _ => {
                self.env.note_script(row, request.args);
                Some(self.env.queue(index, row, request))
            }
        }
    }

    /// Whether the engine in this process has no room for a request that is to be queued, as Redis checks before it queues any command.
    /// A command that no transaction may have is refused for that reason first, and UNWATCH gives room back. Clients hear of what has made
    /// room.
    fn lacks_room_to_queue(&mut self, row: &Row) -> bool {
        let is_asked = !row.flags.has(Flags::NO_MULTI) && row.command != Command::Transactions(T::Unwatch);
        if self.env.engine.is_none() || !is_asked {
            return false;
        }
        let has_room = self.blocking.make_engine_room(&mut self.env, &mut self.subscriptions);
        self.subscriptions.tell_changes(&mut self.env);
        !has_room
    }

    /// EXEC of a session that is queueing.
    fn exec(&mut self, index: ClientId) -> Flow {
        let refused = self.env.refuse_exec(index).or_else(|| self.refuse_exec_here(index));
        refused.or_else(|| self.env.send_queued(index)).unwrap_or_else(|| self.continue_exec_reply(index))
    }

    /// The same where it is the engine of this process that says so.
    fn refuse_exec_here(&mut self, index: ClientId) -> Option<Flow> {
        self.env.engine.as_ref()?;
        // Keys that make room may be watched ones.
        let has_room = self.blocking.make_engine_room(&mut self.env, &mut self.subscriptions);
        let flow = if !has_room && self.env.queued_adds_data(index) {
            self.env.discard_queued(index);
            self.env.leave_watches(index);
            self.env.refuse(index, texts::EXECABORT_OOM.as_bytes())
        } else {
            let id = self.env.take_local_watch(index)?;
            if !self.blocking.has_watched_in_vain(&mut self.env, &mut self.subscriptions, id) {
                return None;
            }
            self.env.discard_queued(index);
            self.env.answer(index, |reply| reply.null_array());
            Flow::Next
        };
        self.subscriptions.tell_changes(&mut self.env);
        Some(flow)
    }

    /// Goes on with a client's reply to EXEC, as far as that goes.
    pub(crate) fn continue_exec_reply(&mut self, index: ClientId) -> Flow {
        let (mut own, before) = (0, self.env.waiting_bytes(index));
        loop {
            if self.env.has_had_its_part(index, own, before) {
                self.env.end_slice(index);
                return Flow::Pause;
            }
            let part = match self.env.next_part(index) {
                NextPart::Part(part) => part,
                NextPart::None => return Flow::Next,
                NextPart::Gone => return Flow::Stop,
                NextPart::Last => {
                    self.blocking.serve_ready(&mut self.env, &mut self.subscriptions);
                    self.subscriptions.tell_changes(&mut self.env);
                    return Flow::Next;
                }
            };
            own += usize::from(matches!(part, Part::Local(..)));
            match self.do_part(index, &part) {
                Flow::Next => {}
                // A transaction is not interrupted for want of room.
                Flow::Pause if self.env.waits_for_room_alone(index) => {}
                Flow::Pause => return Flow::Pause,
                Flow::Stop => {
                    self.env.leave_exec_reply(index);
                    return Flow::Stop;
                }
                Flow::Again => {
                    self.env.put_part_back(index, part);
                    // The request that is being read is EXEC, and that has been dealt with.
                    return Flow::Pause;
                }
            }
        }
    }

    fn do_part(&mut self, index: ClientId, part: &Part) -> Flow {
        match part {
            Part::Remote(bytes) => self.env.pass_on_part(index, bytes),
            Part::Select(database) => {
                let Some(session) = self.env.clients.sessions.at(index) else { return Flow::Stop };
                let protocol = session.protocol;
                self.env.shared.databases.note(*database);
                if self.env.reclass(&mut self.subscriptions, index, *database, protocol) {
                    self.env.note_met(index, &[WantedState::Database]);
                } else {
                    self.env.note_unmet(index, WantedState::Database);
                }
            }
            Part::Local(row, args) => {
                let unmet = self.env.ask_unmet(index, row, args.as_args());
                return unmet.unwrap_or_else(|| self.run(index, row, &Request::made(args.as_args())));
            }
        }
        Flow::Next
    }
}
