//! What servers show of themselves that may hold secrets: `CONFIG GET`, and the arguments of modules in `MODULE LIST`.
//!
//! Every client may ask. A client that may not steer nodes is shown the settings that are known to be harmless, and of all
//! others that they exist; one that may is shown everything but passwords. A node's passwords are between it and the proxy,
//! and of the proxy's own only the hash is kept. So `requirepass` is that of the proxy, as `CONFIG SET` is, and every value that
//! is not shown is hidden by the same words.

use crate::commands::redacted_reply::RedactedConfigGet;
use crate::env::Env;
use crate::ids::{ClientId, NodeId};
use crate::reply::progress::ReplyMode;
use crate::session::Flow;
use respool_command::{Command, Execute, Outcome, Row, ServerCommand, SessionView, VisibleSettings, shows_secrets};
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
                SessionView { database: session.database, now, client_id: session.id.get(), ..SessionView::default() };
            let mut reply = Vec::new();
            let mut encoder = Encoder::new(&mut reply, session.protocol);
            let _: Outcome = engine.execute(row, request.args, &mut view, &mut encoder);
            return Some(self.answer(index, |out| out.raw(&terms.redact(&reply))));
        }
        if session.reply_mode != ReplyMode::On {
            return None;
        }
        let target = match self.target(index, row, request.args) {
            Ok(target) => target,
            Err(error) => return Some(self.refuse(index, error)),
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
        let session = self.clients.sessions.at(index).filter(|session| session.reply_mode == ReplyMode::On)?;
        let class = session.class;
        let asker = self.clients.expect(index)?;
        let task = self.tasks.begin(RedactedConfigGet { asker, terms });
        let lane = self.lanes.lane(&self.config, node, class);
        self.send_for_task(task, 0, lane, |out| encode_request(out, args.as_args().iter()));
        Some(self.keep_pace_of_all(index, Some(lane), args.as_args()))
    }
}
