//! What servers show of themselves that may hold secrets: `CONFIG GET`, and the arguments of modules in `MODULE LIST`.
//!
//! Every client may ask. A client that may not steer nodes is shown the settings that are known to be harmless, and of all
//! others that they exist; one that may is shown everything but passwords. A node's passwords are between it and the proxy,
//! and of the proxy's own only the hash is kept. So `requirepass` is that of the proxy, as `CONFIG SET` is, and every value that
//! is not shown is hidden by the same words.

use crate::auth::secret_args::shows_secrets;
use crate::commands::redaction::{RedactedConfigGet, VisibleSettings, hidden};
use crate::env::Env;
use crate::internal_request::{InternalRequest, InternalRequests};
use crate::nodes::id::NodeId;
use crate::reply::progress::{LostReply, ReplyMode};
use crate::session::Flow;
use crate::session::id::{Asker, ClientId};
use respool_command::{Command, Execute, Outcome, Row, ServerCommand, SessionView};
use respool_wire::{ArgsBuf, Encoder, Request, encode_request};

impl<E: Execute> Env<E> {
    /// What a client is shown of the settings of one node, or of the one that answers for all.
    pub(crate) fn terms_of_hiding(&self, row: &Row, is_nodes_own: bool) -> VisibleSettings {
        VisibleSettings {
            has_password: (!is_nodes_own).then(|| !self.users.default_user().needs_no_password()),
            is_admin: self.config.allows_admin || self.engine.is_some(),
            are_modules: row.command == Command::Server(ServerCommand::ModuleList),
        }
    }

    /// A request for what may hold secrets. `None`: it is about something else.
    pub(crate) fn show_settings(&mut self, index: ClientId, row: &'static Row, request: &Request<'_>) -> Option<Flow> {
        if !shows_secrets(row) {
            return None;
        }
        let terms = self.terms_of_hiding(row, false);
        let session = self.clients.sessions.at(index)?;
        let now = self.engine_now();
        if let Some(engine) = &mut self.engine {
            let mut view =
                SessionView { database: session.database, now, client_id: session.id, ..SessionView::default() };
            let mut reply = Vec::new();
            let mut encoder = Encoder::new(&mut reply, session.protocol);
            let _: Outcome = engine.execute(row, request.args, &mut view, &mut encoder);
            self.answer(index, |out| out.raw(&hidden(&reply, terms)));
            return Some(Flow::Next);
        }
        if session.reply_mode != ReplyMode::On {
            return None;
        }
        let target = match self.target(index, row, request.args) {
            Ok(target) => target,
            Err(words) => return Some(self.refuse(index, &words)),
        };
        self.note_target(&target, row);
        self.show_settings_of(index, target.node, target.args(request.args).iter().collect(), terms)
    }

    /// One node shows settings, and nothing secret of them. `None`: no reply is wanted.
    pub(crate) fn show_settings_of(
        &mut self,
        index: ClientId,
        node: NodeId,
        args: ArgsBuf,
        terms: VisibleSettings,
    ) -> Option<Flow> {
        let handle = self.clients.sessions.handle(index)?;
        let session = self.clients.sessions.at_mut(index).filter(|session| session.reply_mode == ReplyMode::On)?;
        let (class, asker) = (session.class, Asker { session: handle, seq: session.down.expect() });
        let task = self.tasks.begin(InternalRequest::Hide(RedactedConfigGet { asker, terms }));
        let Self { lanes, clients, config, now, tasks, .. } = self;
        let lane = lanes.lane(config, node, class);
        let write = |out: &mut Vec<u8>| encode_request(out, args.as_args().iter());
        let sent = lanes.send(lane, InternalRequests::owner(task, 0), config, *now, &mut clients.pool, write);
        self.is_busy = true;
        if let Err(error) = sent {
            self.counters.node_errors.add(1);
            tasks.fail(task, 0, LostReply::Unsent, &error, clients);
        }
        Some(self.keep_pace_of_all(index, Some(lane)))
    }
}

#[cfg(test)]
mod tests {
    use super::{VisibleSettings, hidden};
    use respool_wire::{ReplyLimits, ReplyScanner, Scan};

    fn shown(reply: &str, has_password: bool, is_admin: bool, are_modules: bool) -> String {
        let terms = VisibleSettings { has_password: Some(has_password), is_admin, are_modules };
        String::from_utf8(hidden(reply.as_bytes(), terms)).expect("it is text")
    }

    fn settings(head: &str, values: [&str; 4]) -> String {
        let names = ["maxclients", "masterauth", "later-setting", "requirepass"];
        let bulk = |text: &str| format!("${}\r\n{text}\r\n", text.len());
        let pairs: String = names.iter().zip(values).map(|(name, value)| bulk(name) + &bulk(value)).collect();
        format!("{head}\r\n{pairs}")
    }

    #[test]
    fn secrets_are_hidden_in_both_dialects_and_nothing_else_is() {
        for head in ["*8", "%4"] {
            let reply = settings(head, ["10", "canary", "later", "canary"]);
            assert_eq!(shown(&reply, false, true, false), settings(head, ["10", "(hidden)", "later", ""]));
            assert_eq!(shown(&reply, true, true, false), settings(head, ["10", "(hidden)", "later", "(hidden)"]));
        }
        assert_eq!(
            shown("*2\r\n$10\r\nmasterauth\r\n$0\r\n\r\n", true, true, false),
            "*2\r\n$10\r\nmasterauth\r\n$0\r\n\r\n"
        );
        for whole in ["*0\r\n", "-ERR no\r\n", "*-1\r\n", "_\r\n"] {
            assert_eq!(shown(whole, true, false, false), whole);
        }
    }

    #[test]
    fn a_client_that_steers_nothing_is_shown_what_is_harmless() {
        for head in ["*8", "%4"] {
            let reply = settings(head, ["10", "", "later", "canary"]);
            assert_eq!(shown(&reply, true, false, false), settings(head, ["10", "(hidden)", "(hidden)", "(hidden)"]));
        }
        // A name, or a whole reply, that is not as it should be shows nothing.
        let odd = shown("*2\r\n+primaryauth\r\n$6\r\ncanary\r\n", true, false, false);
        assert_eq!(odd, "*2\r\n+primaryauth\r\n$8\r\n(hidden)\r\n");
        for odd in ["$6\r\ncanary\r\n", "+canary\r\n", "*1\r\n$6\r\ncanary\r\n", "=10\r\ntxt:canary\r\n"] {
            let reply = shown(odd, true, false, false);
            assert!(reply.starts_with("-ERR ") && !reply.contains("canary"), "{odd}: {reply}");
        }
    }

    #[test]
    fn what_is_shown_is_one_reply_whatever_the_node_says() {
        let attribute = "|1\r\n$3\r\nttl\r\n:3\r\n";
        let module = "*2\r\n$4\r\nname\r\n$2\r\nft\r\n";
        let settings = format!("{attribute}{}", settings("%4", ["10", "a", "b", "c"]));
        let modules = [format!("{attribute}*1\r\n{module}"), format!("*1\r\n{attribute}{module}")];
        for (reply, are_modules) in [(&settings, false), (&modules[0], true), (&modules[1], true)] {
            for is_admin in [false, true] {
                let reply = shown(reply, true, is_admin, are_modules);
                let scanned = ReplyScanner::new().scan(reply.as_bytes(), &ReplyLimits::default());
                let is_one = matches!(scanned, Ok(Scan::Complete { consumed, .. }) if consumed == reply.len());
                assert!(is_one, "{reply:?}");
            }
        }
    }

    #[test]
    fn what_modules_were_loaded_with_is_not_shown() {
        let module = "$4\r\nname\r\n$2\r\nft\r\n$3\r\nver\r\n:1\r\n$4\r\nargs\r\n";
        for (outer, inner) in [("*1", "*6"), ("*1", "%3")] {
            let reply = format!("{outer}\r\n{inner}\r\n{module}*2\r\n$8\r\nPASSWORD\r\n$6\r\ncanary\r\n");
            assert_eq!(shown(&reply, true, false, true), format!("{outer}\r\n{inner}\r\n{module}*0\r\n"));
            assert_eq!(shown(&reply, true, true, true), reply);
        }
        assert_eq!(shown("*0\r\n", true, false, true), "*0\r\n");
        assert!(shown("*1\r\n$6\r\ncanary\r\n", true, false, true).starts_with("-ERR "));
    }
}
