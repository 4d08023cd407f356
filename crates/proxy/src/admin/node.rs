//! `PROXY NODE`: a question to one node that is named, past routes and placement.
//!
//! `INFO`, `SLOWLOG`, `LATENCY`, `MEMORY` and their like are about one server; asked of the proxy they are joined, or go to
//! the node that happens to answer. What would change a connection, or keys of which another node may be in charge, is not
//! sent: it goes the usual way or not at all.

use crate::env::Env;
use crate::error_reply::ErrorReply;
use crate::error_text;
use crate::ids::ClientId;
use crate::session::{Flow, SessionFlags};
use respool_command::{
    Command, Execute, Flags, Lane, Row, ServerCommand, is_confidential, resolve, shows_secrets, text as texts,
};
use respool_wire::{Args, encode_request};

impl<E: Execute> Env<E> {
    /// `PROXY NODE name command [argument ...]`.
    pub(crate) fn ask_node(&mut self, index: ClientId, args: Args<'_>) -> Flow {
        let (name, request) = (args.at(0), args.from(1));
        let Some(node) = self.config.find_node(|node| node.name.as_bytes() == name) else {
            return self.refuse(index, error_text::no_node(name));
        };
        let row = match resolve(request) {
            Ok(row) => row,
            Err(unknown) => return self.refuse(index, ErrorReply::of(|words| unknown.write_text(request, words))),
        };
        if is_confidential(row) {
            self.note_secret();
        }
        if let Err(error) = self.may_ask_node(index, row, request) {
            return self.refuse(index, error);
        }
        // Where secrets may be among what is shown, as without PROXY NODE.
        if shows_secrets(row) && row.is_admin(request) {
            let terms = self.terms_of_hiding(row, true);
            if let Some(flow) = self.show_settings_of(index, node, request.iter().collect(), terms) {
                return flow;
            }
        }
        self.send_to(index, node, request, |out| encode_request(out, request.iter()))
    }

    fn may_ask_node(&self, index: ClientId, row: &'static Row, request: Args<'_>) -> Result<(), ErrorReply> {
        if !row.accepts(request.len()) {
            return Err(ErrorReply::of(|words| texts::wrong_arity(row, words)));
        }
        if row.is_admin(request) && self.refuses_to_steer(row) {
            return Err(error_text::admin_refused(row.name));
        }
        if let Some(denial) = self.denial_of(index, row, request) {
            return Err(denial);
        }
        if let Some(session) = self.clients.sessions.at(index).filter(|session| session.flags.has(SessionFlags::HOOKED))
        {
            self.shared.hooks.allows(&session.details.peer, row, request)?;
        }
        let is_about_server = matches!(row.lane(request), Lane::Shared | Lane::Admin);
        if !is_about_server || row.flags.has(Flags::WRITE) {
            return Err(error_text::not_for_one_node(row.name));
        }
        if row.command == Command::Server(ServerCommand::ConfigSet)
            && request.from(2).iter().step_by(2).any(|name| name.eq_ignore_ascii_case(b"requirepass"))
        {
            return Err(error_text::PASSWORD_OF_NODE.into());
        }
        Ok(())
    }
}
