//! Requests about the session itself: answered here, whatever nodes there are.

use crate::env::Env;
use crate::error_text;
use crate::integer::integer;
use crate::pool::Node;
use crate::read_tracker::ReadTracker;
use crate::session::id::ClientId;
use crate::session::refused_state::WantedState;
use crate::session::{Flow, SessionFlags};
use crate::worker::Worker;
use respool_command::{ClusterCommand, Command, ConnectionCommand, Execute, Row, ServerCommand, text as texts};
use respool_wire::{Args, Encoder, Protocol, Request};

/// The version that clients are told, because they choose features by it: the one whose commands and texts we answer with.
pub(crate) const COMPATIBLE_VERSION: &str = "7.0.15";

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
}

impl<E: Execute> Env<E> {
    fn hello(&mut self, reads: &mut impl ReadTracker, index: ClientId, args: Args<'_>) -> Flow {
        let Some(session) = self.clients.sessions.at(index) else { return Flow::Stop };
        let (id, database, before) = (session.id, session.database, session.protocol);
        let mut protocol = before;
        if let Some(said) = args.get(1) {
            let Some(version) = integer(said) else {
                return self.refuse(index, texts::PROTOCOL_NOT_AN_INTEGER.as_bytes());
            };
            let Some(asked) = Protocol::from_version(version) else {
                return self.refuse(index, texts::NOPROTO.as_bytes());
            };
            protocol = asked;
        }
        if (protocol != before || self.has_speakers) && self.settle_before(index).is_none() {
            return Flow::Again;
        }
        if args.len() > 2 {
            self.note_secret();
        }
        // As in Redis, what stands before an option that is wrong has been done.
        let mut options = args.from(2);
        while let Some(option) = options.get(0) {
            if option.eq_ignore_ascii_case(b"AUTH") && options.len() >= 3 {
                if let Err(why) = self.authenticate(reads, index, options.at(1), options.at(2), args.name()) {
                    if why.is_ours() && protocol != before {
                        self.note_unmet(index, WantedState::Dialect);
                    }
                    return self.refuse(index, why.text().as_bytes());
                }
                options = options.from(3);
            } else if option.eq_ignore_ascii_case(b"SETNAME") && options.len() >= 2 {
                let name = match crate::commands::client::checked_name(options.at(1)) {
                    Ok(name) => name,
                    Err(words) => return self.refuse(index, words.as_bytes()),
                };
                if let Some(session) = self.clients.sessions.at_mut(index) {
                    session.details.name = name.into();
                }
                options = options.from(2);
            } else {
                let words = [b"ERR Syntax error in HELLO option '", option, b"'"].concat();
                return self.refuse(index, &words);
            }
        }
        let Some(session) = self.clients.sessions.at(index) else { return Flow::Stop };
        if session.flags.has(SessionFlags::UNAUTHENTICATED) {
            return self.refuse(index, texts::NOAUTH_HELLO.as_bytes());
        }
        if protocol != before {
            if !self.reclass(reads, index, database, protocol) {
                self.note_unmet(index, WantedState::Dialect);
                return self.refuse(index, error_text::TOO_MANY_CLASSES);
            }
            self.review_subscribed(index);
        }
        if args.len() > 1 {
            self.note_met(index, &[WantedState::Dialect]);
        }
        self.answer(index, |reply| greet(reply, id, protocol));
        Flow::Next
    }
}

impl<E: Execute> Env<E> {
    /// Whether requests that could be answered here are forwarded to nodes, because a client monitors what they are asked. Not if one of them
    /// might keep the client waiting: whether we are there is no question to a node that is not.
    #[cold]
    fn is_to_be_seen(&self, index: ClientId) -> bool {
        let is_at_hand = |node: &Node| node.is_gone || !(node.is_out() || node.is_paused);
        self.engine.is_none()
            && !self.is_all_paused
            && self.lanes.nodes.iter().all(is_at_hand)
            && self.clients.sessions.at(index).is_some_and(|session| session.dedicated().is_none())
    }

    pub(crate) fn refuse_unsupported(&mut self, index: ClientId, row: &Row, because: &str) -> Flow {
        let error = error_text::unsupported(row.name, because);
        let words = error.strip_prefix(b"-").and_then(|e| e.strip_suffix(b"\r\n")).unwrap_or_default();
        self.refuse(index, words)
    }
}

/// The reply to HELLO.
fn greet(reply: &mut Encoder<'_>, id: u64, protocol: Protocol) {
    reply.map(7);
    for (name, value) in [("server", "redis"), ("version", COMPATIBLE_VERSION)] {
        reply.bulk(name.as_bytes());
        reply.bulk(value.as_bytes());
    }
    reply.bulk(b"proto");
    reply.integer(i64::from(protocol.version()));
    reply.bulk(b"id");
    reply.integer(id as i64);
    for (name, value) in [("mode", "standalone"), ("role", "master")] {
        reply.bulk(name.as_bytes());
        reply.bulk(value.as_bytes());
    }
    reply.bulk(b"modules");
    reply.array(0);
}
