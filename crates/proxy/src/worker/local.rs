//! Requests about the session itself, which are answered here: which feature does so.

use crate::auth::unmet_states::WantedState;
use crate::error_text;
use crate::session::Flow;
use crate::session::id::ClientId;
use crate::worker::Worker;
use respool_command::{ClusterCommand, Command, ConnectionCommand, Execute, Row, ServerCommand};
use respool_wire::{Args, Protocol, Request};

impl<E: Execute> Worker<E> {
    /// Answers a request of the local lane. The arity has been checked.
    pub(crate) fn answer_locally(&mut self, index: ClientId, row: &'static Row, args: Args<'_>) -> Flow {
        match row.command {
            // A client that monitors nodes sees this, too, as at a server.
            Command::Connection(ConnectionCommand::Ping | ConnectionCommand::Echo)
            | Command::Server(ServerCommand::Time)
                if self.env.shared.ledger.is_watched() && self.env.is_to_be_seen(index) =>
            {
                self.pass_on(index, row, &Request::made(args))
            }
            Command::Connection(command) => self.answer_connection(index, command, row, args),
            Command::Proxy(command) => self.handle_console(index, command, row, args),
            Command::Cluster(ClusterCommand::Asking | ClusterCommand::Readonly | ClusterCommand::Readwrite) => {
                self.env.refuse(index, b"ERR This instance has cluster support disabled")
            }
            Command::Server(ServerCommand::Time) => {
                let unix_us = self.env.now.unix_us;
                self.env.answer(index, |reply| {
                    reply.array(2);
                    reply.bulk((unix_us / 1_000_000).to_string().as_bytes());
                    reply.bulk((unix_us % 1_000_000).to_string().as_bytes());
                });
                Flow::Next
            }
            Command::Pubsub(command) => self.handle_pubsub_query(index, command, row, args),
            Command::Server(command) if row.name.split(' ').next() == Some("ACL") => {
                let step = self.env.acl(index, command, args);
                self.take_client_step(index, step)
            }
            Command::Server(ServerCommand::Info) => self.env.info(index, row, args),
            Command::Server(_) if row.name.split(' ').next() == Some("COMMAND") => {
                if self.env.engine.is_none() && self.env.config.topology.is_single() {
                    // The only node knows best what it can do.
                    return self.pass_on(index, row, &Request::made(args));
                }
                let learnt = self.env.learnt_rows();
                self.env.answer(index, |reply| {
                    respool_command::introspect::answer(row, args, &learnt, reply);
                });
                Flow::Next
            }
            _ => self.env.refuse_unsupported(index, row, "it has no answer here"),
        }
    }

    fn answer_connection(
        &mut self,
        index: ClientId,
        command: ConnectionCommand,
        row: &'static Row,
        args: Args<'_>,
    ) -> Flow {
        use ConnectionCommand as C;
        match command {
            C::Ping => match self.env.ping(index, row, args) {
                Some(flow) => flow,
                None => self.pass_on(index, row, &Request::made(args)),
            },
            C::Echo => {
                self.env.answer(index, |reply| reply.bulk(args.at(1)));
                Flow::Next
            }
            C::Quit => {
                if let Some(flow) = self.subscriptions.hear_out(&mut self.env, index) {
                    return flow;
                }
                self.env.answer(index, |reply| reply.raw(respool_wire::replies::OK));
                self.env.stop_client(index);
                Flow::Stop
            }
            C::Auth => self.env.auth(&mut self.subscriptions, index, args),
            C::Hello => self.env.hello(&mut self.subscriptions, index, args),
            C::Reset => self.reset(index),
            C::Select => self.env.select(&mut self.subscriptions, index, args),
            C::ClientTracking => self.handle_tracking(index, args),
            _ => {
                let step = self.env.client_command(index, command, row, args);
                self.take_client_step(index, step)
            }
        }
    }

    fn reset(&mut self, index: ClientId) -> Flow {
        if let Some(flow) = self.subscriptions.hear_out(&mut self.env, index) {
            return flow;
        }
        if self.env.settle_before(index).is_none() {
            return Flow::Again;
        }
        self.leave_states(index);
        self.env.forget_user(&mut self.subscriptions, index);
        self.env.note_met(index, &[WantedState::Database, WantedState::User, WantedState::Dialect]);
        // Only for a user with its own name at the nodes may there be no room.
        let is_plain = self.env.reclass(&mut self.subscriptions, index, 0, Protocol::Resp2);
        if let Some(session) = self.env.clients.sessions.at_mut(index) {
            session.reply_mode = Default::default();
            session.details.name = Box::default();
            session.details.is_no_evict = false;
        }
        if !is_plain {
            self.env.note_unmet(index, WantedState::Database);
            self.env.note_unmet(index, WantedState::Dialect);
            return self.env.refuse(index, error_text::TOO_MANY_CLASSES);
        }
        self.env.answer(index, |reply| reply.raw(respool_wire::replies::RESET));
        Flow::Next
    }

    /// RESET: the session is as it was when it came. A client's own lanes are left as its mode says, with its next request.
    pub(crate) fn leave_states(&mut self, index: ClientId) {
        self.env.leave_transaction(index);
        self.dedicated.leave(&mut self.env, index);
        self.subscriptions.reset_subscriptions(&mut self.env, index);
    }
}
