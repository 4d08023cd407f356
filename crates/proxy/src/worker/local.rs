//! Requests about the session itself, which are answered here: which feature does so.

use crate::session::Flow;
use crate::session::id::ClientId;
use crate::worker::Worker;
use respool_command::{ClusterCommand, Command, ConnectionCommand, Execute, Row, ServerCommand};
use respool_wire::{Args, Request};

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
            Command::Server(ServerCommand::Time) => self.env.time(index),
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
                self.env.introspect(index, row, args)
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
                self.env.quit(index)
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

    /// RESET: the session is as it was when it came. A client's own lanes are left as its mode says, with its next request.
    fn reset(&mut self, index: ClientId) -> Flow {
        if let Some(flow) = self.subscriptions.hear_out(&mut self.env, index) {
            return flow;
        }
        if self.env.clients.settle_before(index).is_none() {
            return Flow::Again;
        }
        self.env.leave_transaction(index);
        self.dedicated.leave(&mut self.env, index);
        self.subscriptions.reset_subscriptions(&mut self.env, index);
        self.env.reset_session(&mut self.subscriptions, index)
    }
}
