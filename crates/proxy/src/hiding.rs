//! `CONFIG GET` of what holds secrets, for those who may steer nodes: they are told what is set, and not to what.
//!
//! A node's passwords are between it and the proxy, and of the proxy's own only the hash is kept. So `requirepass` is that
//! of the proxy, as `CONFIG SET` is, and every value that is not empty is shown as [`HIDDEN`].

use crate::clients::Clients;
use crate::session::{Asker, Flow, ReplyMode};
use crate::tasks::{Loss, Progress, Task, Tasks};
use crate::worker::Worker;
use respool_command::{Command, Execute, Millis, Outcome, Row, ServerCommand, SessionView, is_secret_setting};
use respool_wire::{ArgsBuf, Encoder, Request, elements, encode_request};

/// What stands in the place of a secret. It is no hash and no password of anybody's.
const HIDDEN: &[u8] = b"(hidden)";

/// A `CONFIG GET` on its way.
#[derive(Debug)]
pub(crate) struct Hiding {
    asker: Asker,
    /// Whether clients need a password here; `None`: it is a node's own that is asked for.
    has_password: Option<bool>,
}

impl Hiding {
    pub(crate) fn feed(&mut self, reply: &[u8], clients: &mut Clients) -> Progress {
        clients.feed(self.asker.session, self.asker.seq, &hidden(reply, self.has_password), true);
        Progress::Through
    }

    pub(crate) fn fail(&mut self, error: &[u8], clients: &mut Clients) -> Progress {
        clients.fail(self.asker.session, self.asker.seq, error);
        Progress::Through
    }
}

/// The content of a bulk string.
fn content(bulk: &[u8]) -> Option<&[u8]> {
    let head = bulk.strip_prefix(b"$")?.iter().position(|byte| *byte == b'\n')? + 2;
    bulk.get(head..)?.strip_suffix(b"\r\n")
}

/// The reply to a `CONFIG GET` without secrets. What is no list of names and values stays as it is.
fn hidden(reply: &[u8], has_password: Option<bool>) -> Vec<u8> {
    let (Some(mut fields), Some(head)) = (elements(reply), reply.iter().position(|byte| *byte == b'\n')) else {
        return reply.to_vec();
    };
    let mut out = reply.get(..=head).unwrap_or_default().to_vec();
    while let Some(name) = fields.next() {
        out.extend_from_slice(name);
        let Some(value) = fields.next() else { break };
        let secret = content(name).filter(|name| is_secret_setting(name));
        let own = secret.filter(|name| name.eq_ignore_ascii_case(b"requirepass")).and(has_password);
        let is_set = own.unwrap_or_else(|| content(value).is_none_or(|value| !value.is_empty()));
        match secret {
            None => out.extend_from_slice(value),
            Some(_) => respool_wire::request_bulk(&mut out, if is_set { HIDDEN } else { b"" }),
        }
    }
    out
}

impl<E: Execute> Worker<E> {
    /// `CONFIG GET` of the admin plane, which reaches a secret. `None`: it is about something else.
    pub(crate) fn show_settings(&mut self, index: u32, row: &'static Row, request: &Request<'_>) -> Option<Flow> {
        if row.command != Command::Server(ServerCommand::ConfigGet) {
            return None;
        }
        let has_password = Some(!self.users.default_user().needs_no_password());
        let session = self.clients.sessions.at(index)?;
        if let Some(engine) = &mut self.engine {
            let now = Millis(self.now.unix_us / 1000);
            let mut view =
                SessionView { database: session.database, now, client_id: session.id, ..SessionView::default() };
            let mut reply = Vec::new();
            let mut encoder = Encoder::new(&mut reply, session.protocol);
            let _: Outcome = engine.execute(row, request.args, &mut view, &mut encoder);
            self.answer(index, |out| out.raw(&hidden(&reply, has_password)));
            return Some(Flow::Next);
        }
        if session.reply_mode != ReplyMode::On {
            return None;
        }
        let (node, args) = match self.home(index, row, request) {
            Ok(home) => home,
            Err(words) => return Some(self.refuse(index, &words)),
        };
        self.show_settings_of(index, node, args, has_password)
    }

    /// One node shows settings, and nothing secret of them. `None`: no reply is wanted.
    pub(crate) fn show_settings_of(
        &mut self,
        index: u32,
        node: usize,
        args: ArgsBuf,
        has_password: Option<bool>,
    ) -> Option<Flow> {
        let handle = self.clients.sessions.handle(index)?;
        let session = self.clients.sessions.at_mut(index).filter(|session| session.reply_mode == ReplyMode::On)?;
        let (class, asker) = (session.class, Asker { session: handle, seq: session.down.expect() });
        let task = self.tasks.begin(Task::Hide(Hiding { asker, has_password }));
        let Self { lanes, clients, config, now, tasks, .. } = self;
        let lane = lanes.lane(config, node, class);
        let write = |out: &mut Vec<u8>| encode_request(out, args.as_args().iter());
        let sent = lanes.send(lane, Tasks::owner(task, 0), config, *now, &mut clients.pool, write);
        self.is_busy = true;
        if let Err(error) = sent {
            self.counters.node_errors.add(1);
            tasks.fail(task, 0, Loss::Unsent, &error, clients);
        }
        Some(self.keep_pace_of_all(index, Some(lane)))
    }
}

#[cfg(test)]
mod tests {
    use super::hidden;

    fn shown(reply: &str, has_password: bool) -> String {
        String::from_utf8(hidden(reply.as_bytes(), Some(has_password))).expect("it is text")
    }

    #[test]
    fn secrets_are_hidden_in_both_dialects_and_nothing_else_is() {
        for head in ["*6", "%3"] {
            let reply = format!(
                "{head}\r\n$10\r\nmaxclients\r\n$2\r\n10\r\n$10\r\nmasterauth\r\n$6\r\ncanary\r\n$11\r\nrequirepass\r\n$6\r\ncanary\r\n"
            );
            let open = format!(
                "{head}\r\n$10\r\nmaxclients\r\n$2\r\n10\r\n$10\r\nmasterauth\r\n$8\r\n(hidden)\r\n$11\r\nrequirepass\r\n$0\r\n\r\n"
            );
            assert_eq!(shown(&reply, false), open);
            assert!(shown(&reply, true).ends_with("$11\r\nrequirepass\r\n$8\r\n(hidden)\r\n"));
        }
        assert_eq!(shown("*2\r\n$10\r\nmasterauth\r\n$0\r\n\r\n", true), "*2\r\n$10\r\nmasterauth\r\n$0\r\n\r\n");
        for whole in ["*0\r\n", "-ERR no\r\n", "*-1\r\n"] {
            assert_eq!(shown(whole, true), whole);
        }
    }
}
