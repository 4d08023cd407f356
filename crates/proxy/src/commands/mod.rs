//! Commands that the proxy answers or changes itself, and that belong to no feature with a folder of its own.
//!
//! Here it is decided what becomes of each request of the local lane; what is more than its session's own goes on to the feature that
//! [`LocalStep`] names.

pub(crate) mod client;
mod command_log;
pub(crate) mod config_get;
pub(crate) mod connection;
pub(crate) mod info;
pub(crate) mod node_info;
pub(crate) mod ping;
pub(crate) mod redacted_reply;
pub(crate) mod select;
pub(crate) mod subscriber_ping;

use crate::env::Env;
use crate::error_text;
use crate::ids::ClientId;
use crate::interfaces::client_query::ClientStep;
use crate::interfaces::read_tracker::ReadTracker;
use crate::session::Flow;
use respool_command::{
    ClusterCommand, Command, ConnectionCommand, Execute, ProxyCommand, PubsubCommand, Row, ServerCommand,
};
use respool_wire::Args;

/// What becomes of a request of the local lane.
#[derive(Debug)]
pub(crate) enum LocalStep {
    /// It has been answered, or is.
    Done(Flow),
    /// The engine or the nodes answer.
    PassOn,
    /// It may concern the clients of all workers.
    Clients(ClientStep),
    /// The console answers.
    Console(ProxyCommand),
    /// It is about channels.
    Channels(PubsubCommand),
    /// CLIENT TRACKING.
    Tracking,
    /// RESET: every feature gives up what the client has there.
    Reset,
}

impl<E: Execute> Env<E> {
    /// Answers a request of the local lane. The arity has been checked.
    pub(crate) fn answer_locally(
        &mut self,
        reads: &mut impl ReadTracker,
        index: ClientId,
        row: &'static Row,
        args: Args<'_>,
    ) -> LocalStep {
        let is_of = |group: &str| row.name.split(' ').next() == Some(group);
        LocalStep::Done(match row.command {
            // A client that monitors nodes sees this, too, as at a server.
            Command::Connection(ConnectionCommand::Ping | ConnectionCommand::Echo)
            | Command::Server(ServerCommand::Time)
                if self.shared.ledger.is_watched() && self.is_monitored(index) =>
            {
                return LocalStep::PassOn;
            }
            Command::Connection(command) => return self.answer_connection(reads, index, command, row, args),
            Command::Proxy(command) => return LocalStep::Console(command),
            Command::Cluster(ClusterCommand::Asking | ClusterCommand::Readonly | ClusterCommand::Readwrite) => {
                self.refuse(index, error_text::NO_CLUSTER)
            }
            Command::Server(ServerCommand::Time) => self.time(index),
            Command::Pubsub(command) => return LocalStep::Channels(command),
            Command::Server(command) if is_of("ACL") => return LocalStep::Clients(self.acl(index, command, args)),
            Command::Server(ServerCommand::Info) => self.info(index, row, args),
            // The only node knows best what it can do. While an operator holds requests to it back, it is not asked.
            Command::Server(_)
                if is_of("COMMAND")
                    && self.engine.is_none()
                    && self.config.topology.is_single()
                    && !self.is_held_at(self.config.default_node(), row) =>
            {
                return LocalStep::PassOn;
            }
            Command::Server(_) if is_of("COMMAND") => self.introspect(index, row, args),
            _ => self.refuse_unsupported(index, row, "it has no answer here"),
        })
    }

    fn answer_connection(
        &mut self,
        reads: &mut impl ReadTracker,
        index: ClientId,
        command: ConnectionCommand,
        row: &'static Row,
        args: Args<'_>,
    ) -> LocalStep {
        use ConnectionCommand as C;
        LocalStep::Done(match command {
            C::Ping => match self.ping(index, row, args) {
                Some(flow) => flow,
                None => return LocalStep::PassOn,
            },
            C::Echo => self.answer(index, |reply| reply.bulk(args.at(1))),
            C::Quit => reads.hear_out(self, index).unwrap_or_else(|| self.quit(index)),
            C::Auth => self.auth(reads, index, args),
            C::Hello => self.hello(reads, index, args),
            C::Reset => return LocalStep::Reset,
            C::Select => self.select(reads, index, args),
            C::ClientTracking => return LocalStep::Tracking,
            _ => return LocalStep::Clients(self.client_command(index, command, row, args)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{EchoEngine, Untracked, env_with_engine, env_with_node, request};

    fn ask(env: &mut Env<EchoEngine>, client: ClientId, said: &str) -> LocalStep {
        request(said, |row, args| env.answer_locally(&mut Untracked, client, row, args))
    }

    #[test]
    fn local_requests_are_answered_or_named_for_their_feature() {
        let mut env = env_with_engine();
        let client = env.test_client();
        for (said, answer) in [
            ("ECHO hi", "$2\r\nhi\r\n"),
            ("PING", "+PONG\r\n"),
            ("SELECT 3", "+OK\r\n"),
            ("READONLY", "-ERR This instance has cluster support disabled\r\n"),
        ] {
            assert!(matches!(ask(&mut env, client, said), LocalStep::Done(Flow::Next)), "{said}");
            assert_eq!(env.take_output(client), answer, "{said}");
        }
        assert!(matches!(ask(&mut env, client, "PROXY HELP"), LocalStep::Console(ProxyCommand::ProxyHelp)));
        assert!(matches!(ask(&mut env, client, "PUBSUB NUMPAT"), LocalStep::Channels(PubsubCommand::PubsubNumpat)));
        assert!(matches!(ask(&mut env, client, "CLIENT TRACKING ON"), LocalStep::Tracking));
        assert!(matches!(ask(&mut env, client, "RESET"), LocalStep::Reset));
        assert!(matches!(ask(&mut env, client, "CLIENT LIST"), LocalStep::Clients(ClientStep::Ask(_))));
        assert_eq!(env.take_output(client), "", "features answer");
    }

    #[test]
    fn the_only_node_knows_its_commands_and_several_do_not() {
        let mut env = env_with_node();
        let client = env.test_client();
        assert!(matches!(ask(&mut env, client, "COMMAND COUNT"), LocalStep::PassOn));
        let mut env = env_with_engine();
        let client = env.test_client();
        assert!(matches!(ask(&mut env, client, "COMMAND COUNT"), LocalStep::Done(Flow::Next)));
        assert!(env.take_output(client).starts_with(':'));
    }

    #[test]
    fn quit_is_the_last_request_of_a_client() {
        let mut env = env_with_node();
        let client = env.test_client();
        assert!(matches!(ask(&mut env, client, "QUIT"), LocalStep::Done(Flow::Stop)));
        assert_eq!(env.take_output(client), "+OK\r\n");
        assert!(env.clients.is_leaving(client));
    }
}
