//! Requests that took long: which, whose, and where the time went. A bounded ring, the newest first.

use crate::limits::{SLOW_ARG_BYTES_MAX, SLOW_ARGS_MAX};
use respool_command::{Command, Flags, GenericCommand, Row};
use respool_wire::Args;
use std::collections::VecDeque;

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Slow {
    /// When its reply came, in microseconds since the Unix epoch.
    pub(crate) unix_us: u64,
    /// From being queued to being written.
    pub(crate) queue_us: u64,
    /// From being written to the reply, or from the reply before it, if that came later.
    pub(crate) upstream_us: u64,
    /// From being queued to the reply.
    pub(crate) total_us: u64,
    pub(crate) node: String,
    pub(crate) client: String,
    pub(crate) client_name: String,
    pub(crate) user: String,
    pub(crate) command: String,
}

/// The slow requests of one worker.
#[derive(Debug, Default)]
pub(crate) struct SlowLog {
    entries: VecDeque<Slow>,
}

impl SlowLog {
    pub(crate) fn note(&mut self, slow: Slow, entries_max: usize) {
        self.entries.push_front(slow);
        self.entries.truncate(entries_max);
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = &Slow> {
        self.entries.iter()
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn clear(&mut self) {
        self.entries.clear();
    }
}

/// A request as the log shows it: printable, bounded, and without what might be a secret.
pub(crate) fn shown(row: &Row, args: Args<'_>) -> String {
    let names = if row.name.contains(' ') { 2 } else { 1 };
    // Settings of servers, their users, and what lets them into each other.
    let hides_rest = row.flags.has(Flags::ADMIN) || row.command == Command::Generic(GenericCommand::Migrate);
    if hides_rest && args.len() > names {
        let said: Vec<String> = args.first(names).iter().map(shown_arg).collect();
        return format!("{} (hidden)", said.join(" "));
    }
    let mut said: Vec<String> = args.iter().take(SLOW_ARGS_MAX).map(shown_arg).collect();
    if args.len() > SLOW_ARGS_MAX {
        said.push(format!("... ({} more)", args.len() - SLOW_ARGS_MAX));
    }
    said.join(" ")
}

fn shown_arg(arg: &[u8]) -> String {
    match arg.get(..SLOW_ARG_BYTES_MAX) {
        Some(start) if start.len() < arg.len() => {
            format!("{}... ({} more bytes)", start.escape_ascii(), arg.len() - SLOW_ARG_BYTES_MAX)
        }
        _ => arg.escape_ascii().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use respool_command::resolve;
    use respool_wire::ArgsBuf;

    fn shown_as(request: &[&str]) -> String {
        let args: ArgsBuf = request.iter().collect();
        shown(resolve(args.as_args()).expect("a known command"), args.as_args())
    }

    #[test]
    fn a_request_is_shown_bounded_and_without_secrets() {
        assert_eq!(shown_as(&["GET", "a\r\nb"]), "GET a\\r\\nb");
        assert_eq!(shown_as(&["CONFIG", "SET", "requirepass", "canary"]), "CONFIG SET (hidden)");
        assert!(!shown_as(&["MIGRATE", "h", "1", "k", "0", "1", "AUTH", "canary"]).contains("canary"));
        assert!(!shown_as(&["ACL", "SETUSER", "u", ">canary"]).contains("canary"));
        let long = "x".repeat(1000);
        let many: Vec<&str> = std::iter::once("DEL").chain(std::iter::repeat_n(long.as_str(), 100)).collect();
        let shown = shown_as(&many);
        assert!(shown.len() < 32 * 160 && shown.ends_with("more)"), "{}", shown.len());
    }

    #[test]
    fn the_ring_forgets_the_oldest() {
        let mut log = SlowLog::default();
        let slow = |unix_us| Slow {
            unix_us,
            queue_us: 0,
            upstream_us: 0,
            total_us: 0,
            node: String::new(),
            client: String::new(),
            client_name: String::new(),
            user: String::new(),
            command: String::new(),
        };
        (0..10).for_each(|at| log.note(slow(at), 3));
        assert_eq!(log.entries().map(|entry| entry.unix_us).collect::<Vec<_>>(), [9, 8, 7]);
    }
}
