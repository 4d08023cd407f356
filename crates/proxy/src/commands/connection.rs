//! Requests about the session itself: answered here, whatever nodes there are.

use crate::env::Env;
use crate::error_text;
use crate::ids::{ClientId, ClientNumber};
use crate::integer::integer;
use crate::interfaces::read_tracker::ReadTracker;
use crate::pool::Node;
use crate::reply::progress::ReplyMode;
use crate::session::marks::WantedState;
use crate::session::{Flow, SessionFlags};
use respool_command::{Execute, Row, text as texts};
use respool_wire::{Args, Encoder, Protocol, replies};
use std::sync::Arc;

/// The version that clients are told, because they choose features by it: the one whose commands and texts we answer with.
pub(crate) const COMPATIBLE_VERSION: &str = "7.0.15";

impl<E: Execute> Env<E> {
    pub(crate) fn hello(&mut self, reads: &mut impl ReadTracker, index: ClientId, args: Args<'_>) -> Flow {
        let Some(session) = self.clients.sessions.at(index) else { return Flow::Stop };
        let (id, database, before) = (session.id, session.database, session.protocol);
        let mut protocol = before;
        if let Some(said) = args.get(1) {
            let Some(version) = integer(said) else {
                return self.refuse(index, texts::PROTOCOL_NOT_AN_INTEGER);
            };
            let Some(asked) = Protocol::from_version(version) else {
                return self.refuse(index, texts::NOPROTO);
            };
            protocol = asked;
        }
        if (protocol != before || !self.allowances.is_empty()) && self.clients.settle_before(index).is_none() {
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
                        self.clients.note_unmet(index, WantedState::Dialect);
                    }
                    return self.refuse(index, why.text());
                }
                options = options.from(3);
            } else if option.eq_ignore_ascii_case(b"SETNAME") && options.len() >= 2 {
                let name = match crate::commands::client::checked_name(options.at(1)) {
                    Ok(name) => name,
                    Err(words) => return self.refuse(index, words),
                };
                if let Some(session) = self.clients.sessions.at_mut(index) {
                    session.details.name = name.into();
                }
                options = options.from(2);
            } else {
                return self.refuse(index, error_text::unknown_hello_option(option));
            }
        }
        let Some(session) = self.clients.sessions.at(index) else { return Flow::Stop };
        if session.flags.has(SessionFlags::UNAUTHENTICATED) {
            return self.refuse(index, texts::NOAUTH_HELLO);
        }
        if protocol != before {
            if !self.reclass(reads, index, database, protocol) {
                self.clients.note_unmet(index, WantedState::Dialect);
                return self.refuse(index, error_text::TOO_MANY_CLASSES);
            }
            self.clients.review_subscribed(index);
        }
        if args.len() > 1 {
            self.clients.note_met(index, &[WantedState::Dialect]);
        }
        self.answer(index, |reply| greet(reply, id, protocol))
    }

    /// Whether PING, ECHO and TIME are forwarded, so that clients which MONITOR nodes see them. Not while a node is down, drained or paused:
    /// whether the proxy answers must not depend on such a node.
    #[cold]
    pub(crate) fn is_monitored(&self, index: ClientId) -> bool {
        let is_at_hand = |node: &Node| node.is_removed || !(node.is_unhealthy() || node.is_paused);
        self.engine.is_none()
            && !self.is_all_paused
            && self.lanes.nodes.iter().all(is_at_hand)
            && self.clients.sessions.at(index).is_some_and(|session| session.dedicated().is_none())
    }

    pub(crate) fn refuse_unsupported(&mut self, index: ClientId, row: &Row, because: &str) -> Flow {
        self.refuse(index, error_text::unsupported(row.name, because))
    }

    /// TIME.
    pub(crate) fn time(&mut self, index: ClientId) -> Flow {
        let unix_us = self.now.unix_us;
        self.answer(index, |reply| {
            reply.array(2);
            reply.bulk((unix_us / 1_000_000).to_string().as_bytes());
            reply.bulk((unix_us % 1_000_000).to_string().as_bytes());
        })
    }

    /// COMMAND.
    pub(crate) fn introspect(&mut self, index: ClientId, row: &'static Row, args: Args<'_>) -> Flow {
        let (learnt, renames) = (self.learnt_rows(), Arc::clone(&self.shared.renames));
        self.answer(index, |reply| {
            respool_command::introspect::answer(row, args, &learnt, &renames, reply);
        })
    }

    /// QUIT.
    pub(crate) fn quit(&mut self, index: ClientId) -> Flow {
        self.confirm(index);
        self.clients.stop_client(index);
        Flow::Stop
    }

    /// RESET, of what is no feature's own.
    pub(crate) fn reset_session(&mut self, reads: &mut impl ReadTracker, index: ClientId) -> Flow {
        self.forget_user(reads, index);
        self.clients.note_met(index, &[WantedState::Database, WantedState::User, WantedState::Dialect]);
        // Only for a user with its own name at the nodes may there be no room.
        let is_plain = self.reclass(reads, index, 0, Protocol::Resp2);
        if let Some(session) = self.clients.sessions.at_mut(index) {
            if session.reply_mode == ReplyMode::Off {
                // As in Redis, the reply to RESET itself is left out behind CLIENT REPLY SKIP.
                session.reply_mode = ReplyMode::On;
            }
            session.details.name = Box::default();
            session.details.is_no_evict = false;
            session.flags.remove(SessionFlags::NO_TOUCH);
        }
        if !is_plain {
            self.clients.note_unmet(index, WantedState::Database);
            self.clients.note_unmet(index, WantedState::Dialect);
            return self.refuse(index, error_text::TOO_MANY_CLASSES);
        }
        self.answer(index, |reply| reply.raw(replies::RESET))
    }
}

/// The reply to HELLO.
fn greet(reply: &mut Encoder<'_>, id: ClientNumber, protocol: Protocol) {
    reply.map(7);
    for (name, value) in [("server", "redis"), ("version", COMPATIBLE_VERSION)] {
        reply.bulk(name.as_bytes());
        reply.bulk(value.as_bytes());
    }
    reply.bulk(b"proto");
    reply.integer(i64::from(protocol.version()));
    reply.bulk(b"id");
    reply.integer(id.get() as i64);
    for (name, value) in [("mode", "standalone"), ("role", "master")] {
        reply.bulk(name.as_bytes());
        reply.bulk(value.as_bytes());
    }
    reply.bulk(b"modules");
    reply.array(0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{EchoEngine, Untracked, env_with_engine, request};

    fn hello(env: &mut Env<EchoEngine>, client: ClientId, said: &str) -> String {
        let flow = request(said, |_, args| env.hello(&mut Untracked, client, args));
        assert_eq!(flow, Flow::Next, "{said}");
        env.take_output(client)
    }

    #[test]
    fn hello_changes_the_dialect_and_the_name_or_says_what_is_wrong() {
        let mut env = env_with_engine();
        let client = env.test_client();
        assert!(hello(&mut env, client, "HELLO").starts_with("*14\r\n$6\r\nserver"));
        assert!(hello(&mut env, client, "HELLO 3 SETNAME me").starts_with("%7\r\n"));
        let session = env.test_session(client);
        assert_eq!((session.protocol, &*session.details.name), (Protocol::Resp3, "me"));
        for said in ["HELLO 4", "HELLO x", "HELLO 2 NOSUCH", "HELLO 2 SETNAME"] {
            assert!(hello(&mut env, client, said).starts_with('-'), "{said}");
            assert_eq!(env.test_session(client).protocol, Protocol::Resp3, "{said}");
        }
    }

    #[test]
    fn another_dialect_waits_for_what_is_owed_in_this_one() {
        let mut env = env_with_engine();
        let client = env.test_client();
        env.test_asker(client);
        assert_eq!(request("HELLO 3", |_, args| env.hello(&mut Untracked, client, args)), Flow::Again);
        assert!(hello(&mut env, client, "HELLO 2").is_empty(), "it is the same, and its reply has its place");
        assert_eq!(env.test_session(client).protocol, Protocol::Resp2);
    }

    #[test]
    fn a_session_that_is_reset_is_as_it_was_when_it_came() {
        let mut env = env_with_engine();
        let client = env.test_client();
        hello(&mut env, client, "HELLO 3 SETNAME me");
        env.reset_session(&mut Untracked, client);
        assert_eq!(env.take_output(client), "+RESET\r\n");
        let session = env.test_session(client);
        assert_eq!((session.protocol, session.database, &*session.details.name), (Protocol::Resp2, 0, ""));
    }

    #[test]
    fn reset_is_answered_unless_its_own_reply_is_to_be_skipped() {
        let mut env = env_with_engine();
        let client = env.test_client();
        for (mode, said) in [(ReplyMode::SkipNext, ""), (ReplyMode::Off, "+RESET\r\n"), (ReplyMode::On, "+RESET\r\n")] {
            env.test_session(client).reply_mode = mode;
            env.reset_session(&mut Untracked, client);
            assert_eq!(env.take_output(client), said, "{mode:?}");
            assert_eq!(env.test_session(client).reply_mode, ReplyMode::On, "{mode:?}");
        }
    }
}
