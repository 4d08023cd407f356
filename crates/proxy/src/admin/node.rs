//! `PROXY NODE`: a question to one node that is named, past routes and placement.
//!
//! `INFO`, `SLOWLOG`, `LATENCY`, `MEMORY` and their like are about one server; asked of the proxy they are joined, or go to
//! the node that happens to answer. What would change a connection, or keys of which another node may be in charge, is not
//! sent: it goes the usual way or not at all.

use crate::auth::secret_args::shows_secrets;
use crate::env::Env;
use crate::session::id::ClientId;
use crate::session::{Flow, SessionFlags};
use respool_command::{Execute, Flags, Lane, Row, resolve};
use respool_wire::{Args, encode_request};

impl<E: Execute> Env<E> {
    /// `PROXY NODE name command [argument ...]`.
    pub(crate) fn ask_node(&mut self, index: ClientId, args: Args<'_>) -> Flow {
        let (name, request) = (args.at(0), args.from(1));
        let Some(node) = self.config.find_node(|node| node.name.as_bytes() == name) else {
            let words = [b"ERR there is no node '", name, b"'; PROXY SHOW NODES names them"].concat();
            return self.refuse(index, &words);
        };
        let row = match resolve(request) {
            Ok(row) => row,
            Err(unknown) => {
                let mut words = Vec::new();
                unknown.write_text(request, &mut words);
                return self.refuse(index, &words);
            }
        };
        if let Err(words) = self.may_ask_node(index, row, request) {
            return self.refuse(index, words.as_bytes());
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
}

impl<E: Execute> Env<E> {
    fn may_ask_node(&self, index: ClientId, row: &'static Row, request: Args<'_>) -> Result<(), String> {
        if !row.accepts(request.len()) {
            return Err(format!("ERR wrong number of arguments for '{}' command", row.full_name()));
        }
        if row.is_admin(request) && self.refuses_to_steer(row) {
            return Err(crate::error_text::admin_refused(row.name));
        }
        if let Some(denial) = self.verdict_text(index, row, request) {
            return Err(denial);
        }
        if let Some(session) = self.clients.sessions.at(index).filter(|session| session.flags.has(SessionFlags::HOOKED))
        {
            self.shared.hooks.allows(&session.details.peer, row, request)?;
        }
        let is_about_server = matches!(row.lane(request), Lane::Shared | Lane::Admin);
        if !is_about_server || row.flags.has(Flags::WRITE) {
            return Err(format!("ERR {} is not for a single node: send it without PROXY NODE", row.name));
        }
        Ok(())
    }
}
