//! The clients that monitor an engine, and the lines that they are shown: redis-server's.

use crate::ids::ClientHandle;
use crate::limits::MONITOR_LINE_BYTES_MAX;
use respool_command::{Row, is_secret_argument};
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
        self.retain(|known| known != client);
    }

    pub(super) fn retain(&mut self, mut is_there: impl FnMut(ClientHandle) -> bool) {
        self.clients.retain(|client| is_there(*client));
    }
}

/// A line as redis-server writes it: time, database and client, and the arguments, with secrets covered.
pub(super) fn line(unix_us: u64, by: &str, row: &Row, args: Args<'_>) -> Vec<u8> {
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
    use respool_command::resolve;
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
