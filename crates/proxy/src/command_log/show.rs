//! MONITOR at the engine in this process: what is run is shown to clients that asked for it, a line for each command.
//!
//! ```text
//!   request --> run --> line --> push to each client that monitors --- more than its output may hold: disconnected
//! ```
//!
//! Lines are redis-server's. As there, what only administrators may do is not shown, and neither is what was refused or only queued; the
//! commands of a script follow it. While any client monitors, no request is plain: every one comes by here.

use crate::command_log::log::CommandLog;
use crate::command_log::monitors::line;
use crate::config::Config;
use crate::env::Env;
use crate::ids::ClientId;
use crate::limits::MONITOR_OUTPUT_BYTES_MAX;
use crate::reply::progress::ReplyMode;
use crate::session::disconnect_log::{DisconnectReason, PendingDisconnect};
use crate::session::table::Clients;
use respool_command::{Execute, Flags, Row, resolve};
use respool_connection::Now;
use respool_wire::Args;

/// When a line is written, and how much of them a client may leave unread.
#[derive(Clone, Copy, Debug)]
struct LineTerms {
    unix_us: u64,
    output_hard: usize,
}

impl LineTerms {
    fn of(config: &Config, now: Now) -> Self {
        Self { unix_us: now.unix_us, output_hard: config.budgets.client_output_hard }
    }
}

impl<E: Execute> Env<E> {
    /// Shows a request that was run to clients that monitor.
    #[inline]
    pub(crate) fn show_to_monitors(&mut self, index: ClientId, row: &'static Row, args: Args<'_>) {
        if !self.command_log.monitors.is_empty() && !row.flags.has(Flags::SKIP_MONITOR) {
            let terms = LineTerms::of(&self.config, self.now);
            self.command_log.show_request(&mut self.clients, terms, index, row, args);
        }
    }

    /// The same for a request that runs a script: it is shown before its script's commands, of which the engine tells from now on.
    pub(crate) fn show_script(&mut self, index: ClientId, row: &'static Row, args: Args<'_>) {
        let is_watched = !self.command_log.monitors.is_empty();
        if let Some(engine) = &mut self.engine {
            engine.watch_scripts(is_watched);
        }
        if is_watched {
            let terms = LineTerms::of(&self.config, self.now);
            self.command_log.show_request(&mut self.clients, terms, index, row, args);
        }
    }

    /// Shows what a script has called since this was last done.
    pub(crate) fn show_script_calls(&mut self) {
        if self.command_log.monitors.is_empty() {
            // The last client that monitored may have left since the script began: nothing more is kept for it.
            if let Some(engine) = &mut self.engine {
                engine.watch_scripts(false);
            }
            return;
        }
        let calls = self.engine.as_mut().map(Execute::script_lines).unwrap_or_default();
        let terms = LineTerms::of(&self.config, self.now);
        for (database, args) in calls {
            if let Ok(row) = resolve(args.as_args()) {
                let line = line(terms.unix_us, &format!("{database} lua"), row, args.as_args());
                self.command_log.push_line(&mut self.clients, terms, &line);
            }
        }
    }
}

impl CommandLog {
    #[cold]
    fn show_request(&mut self, to: &mut Clients, terms: LineTerms, index: ClientId, row: &'static Row, args: Args<'_>) {
        if row.flags.has(Flags::ADMIN) {
            return;
        }
        let Some(session) = to.sessions.at(index) else { return };
        let peer = &session.details.peer;
        let unix = if peer.is_unix { "unix:" } else { "" };
        let by = format!("{} {unix}{}", session.database, peer.address);
        let line = line(terms.unix_us, &by, row, args);
        self.push_line(to, terms, &line);
    }

    /// What is too much for a client disconnects it at the end of the turn; until then it is given no more.
    fn push_line(&mut self, to: &mut Clients, terms: LineTerms, line: &[u8]) {
        let hard = terms.output_hard;
        self.monitors.retain(|client| {
            let Some(session) = to.sessions.get_mut(client) else { return false };
            // As redis-server writes nothing at all to a client that wants no replies.
            if session.reply_mode == ReplyMode::Off {
                return true;
            }
            let bytes = session.reply_bytes();
            if hard == usize::MAX && bytes > MONITOR_OUTPUT_BYTES_MAX {
                // No look at the client would find that this is too much.
                to.doomed.push(PendingDisconnect { client, why: DisconnectReason::Monitor, bytes });
                return false;
            }
            if bytes <= hard {
                session.down.push(None, &mut to.pool, |out| out.extend_from_slice(line));
            }
            to.list(client.index);
            true
        });
    }
}
