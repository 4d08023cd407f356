//! MONITOR at the engine in this process: what is run is shown to clients that asked for it, a line for each command.
//!
//! ```text
//!   request --> run --> line --> push to each client that monitors --- more than its output may hold: disconnected
//! ```
//!
//! Lines are redis-server's. As there, what only administrators may do is not shown, and neither is what was refused or only queued; the
//! commands of a script follow it. While any client monitors, no request is plain: every one comes by here.

use crate::env::Env;
use crate::limits::MONITOR_LINE_BYTES_MAX;
use crate::session::id::{ClientHandle, ClientId};
use respool_command::{Execute, Flags, Row, is_secret_argument, resolve};
use respool_wire::Args;
use std::io::Write;

/// The clients that monitor an engine.
#[derive(Debug, Default)]
pub(crate) struct Monitors {
    clients: Vec<ClientHandle>,
}

impl Monitors {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.clients.is_empty()
    }

    pub(crate) fn add(&mut self, client: ClientHandle) {
        self.remove(client);
        self.clients.push(client);
    }

    pub(crate) fn remove(&mut self, client: ClientHandle) {
        self.clients.retain(|known| *known != client);
    }
}

impl<E: Execute> Env<E> {
    /// Shows a request that was run to clients that monitor.
    #[inline]
    pub(crate) fn show_to_monitors(&mut self, index: ClientId, row: &'static Row, args: Args<'_>) {
        if !self.command_log.monitors.is_empty() && !row.flags.has(Flags::SKIP_MONITOR) {
            self.show_request(index, row, args);
        }
    }

    /// The same for a request that runs a script: it is shown before its script's commands, of which the engine tells from now on.
    pub(crate) fn show_script(&mut self, index: ClientId, row: &'static Row, args: Args<'_>) {
        let is_watched = !self.command_log.monitors.is_empty();
        if let Some(engine) = &mut self.engine {
            engine.watch_scripts(is_watched);
        }
        if is_watched {
            self.show_request(index, row, args);
        }
    }

    /// Shows what a script has called since this was last done.
    pub(crate) fn show_script_calls(&mut self) {
        if self.command_log.monitors.is_empty() {
            return;
        }
        let calls = self.engine.as_mut().map(Execute::script_lines).unwrap_or_default();
        for (database, args) in calls {
            if let Ok(row) = resolve(args.as_args()) {
                let line = line(self.now.unix_us, &format!("{database} lua"), row, args.as_args());
                self.push_line(&line);
            }
        }
    }

    #[cold]
    fn show_request(&mut self, index: ClientId, row: &'static Row, args: Args<'_>) {
        if row.flags.has(Flags::ADMIN) {
            return;
        }
        let Some(session) = self.clients.sessions.at(index) else { return };
        let peer = &session.details.peer;
        let unix = if peer.is_unix { "unix:" } else { "" };
        let by = format!("{} {unix}{}", session.database, peer.address);
        let line = line(self.now.unix_us, &by, row, args);
        self.push_line(&line);
    }

    /// What is too much for a client disconnects it at the end of the turn; until then it is given no more.
    fn push_line(&mut self, line: &[u8]) {
        let Self { clients, command_log, config, .. } = self;
        command_log.monitors.clients.retain(|client| {
            let Some(session) = clients.sessions.get_mut(*client) else { return false };
            if session.reply_bytes() <= config.budgets.client_output_hard {
                session.down.push(None, &mut clients.pool, |out| out.extend_from_slice(line));
            }
            clients.list(client.index);
            true
        });
    }
}

/// A line as redis-server writes it: time, database and client, and the arguments, with secrets covered.
fn line(unix_us: u64, by: &str, row: &Row, args: Args<'_>) -> Vec<u8> {
    let mut line = Vec::new();
    // A Vec takes all that is written into it.
    let _ = write!(line, "+{}.{:06} [{by}]", unix_us / 1_000_000, unix_us % 1_000_000);
    for place in 0..args.len() {
        if line.len() > MONITOR_LINE_BYTES_MAX {
            let _ = write!(line, " ... ({} more arguments)", args.len() - place);
            break;
        }
        line.extend_from_slice(b" \"");
        if is_secret_argument(row, args, place) {
            line.extend_from_slice(b"(redacted)");
        } else {
            quote(args.at(place), &mut line);
        }
        line.push(b'"');
    }
    line.extend_from_slice(b"\r\n");
    line
}

/// Writes an argument as Redis quotes it; of a very long one the beginning.
fn quote(arg: &[u8], line: &mut Vec<u8>) {
    let shown = &arg[..arg.len().min(MONITOR_LINE_BYTES_MAX)];
    for &byte in shown {
        match byte {
            b'\\' | b'"' => line.extend_from_slice(&[b'\\', byte]),
            b'\n' => line.extend_from_slice(b"\\n"),
            b'\r' => line.extend_from_slice(b"\\r"),
            b'\t' => line.extend_from_slice(b"\\t"),
            7 => line.extend_from_slice(b"\\a"),
            8 => line.extend_from_slice(b"\\b"),
            b' '..=b'~' => line.push(byte),
            _ => _ = write!(line, "\\x{byte:02x}"),
        }
    }
    if shown.len() < arg.len() {
        let _ = write!(line, "... ({} more bytes)", arg.len() - shown.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use respool_wire::ArgsBuf;

    fn shown(args: &[&[u8]]) -> String {
        let args: ArgsBuf = args.iter().collect();
        let row = resolve(args.as_args()).expect("a known command");
        String::from_utf8_lossy(&line(5_000_001, "3 1.2.3.4:5", row, args.as_args())).into_owned()
    }

    #[test]
    fn lines_are_redis_servers_and_cover_secrets() {
        assert_eq!(
            shown(&[b"SET", b"k", b"\0\xff\"\\\r\n\t\x07\x08 x"]),
            "+5.000001 [3 1.2.3.4:5] \"SET\" \"k\" \"\\x00\\xff\\\"\\\\\\r\\n\\t\\a\\b x\"\r\n"
        );
        assert_eq!(
            shown(&[b"HELLO", b"3", b"AUTH", b"u", b"canary"]),
            "+5.000001 [3 1.2.3.4:5] \"HELLO\" \"3\" \"AUTH\" \"(redacted)\" \"(redacted)\"\r\n"
        );
        assert_eq!(shown(&[b"AUTH", b"canary"]), "+5.000001 [3 1.2.3.4:5] \"AUTH\" \"(redacted)\"\r\n");
    }

    #[test]
    fn a_line_is_bounded_whatever_the_request_holds() {
        let long = vec![0; 2 * MONITOR_LINE_BYTES_MAX];
        let line = shown(&[b"MSET", b"a", &long, b"b", &long]);
        assert!(line.len() < 5 * MONITOR_LINE_BYTES_MAX);
        assert!(
            line.ends_with("... (1048576 more bytes)\" ... (2 more arguments)\r\n"),
            "{}",
            &line[line.len() - 90..]
        );
    }
}
