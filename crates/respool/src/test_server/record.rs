//! The requests that a test server has seen of its clients.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use respool_connection::Peer;
use respool_wire::Args;

/// Requests that are kept.
const COMMANDS_KEPT: usize = 1_024;

/// Bytes of them that are kept.
const BYTES_KEPT: usize = 16 << 20;

/// A request of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenCommand {
    /// The address of the client, as in `CLIENT LIST`.
    pub client: String,
    /// The command and its arguments. Those that say a password are among them.
    pub args: Vec<Vec<u8>>,
}

impl SeenCommand {
    /// Whether it is this command, whatever its arguments.
    #[must_use]
    pub fn is(&self, command: &str) -> bool {
        self.args.first().is_some_and(|name| name.eq_ignore_ascii_case(command.as_bytes()))
    }

    fn held_bytes(&self) -> usize {
        self.client.len() + self.args.iter().map(|arg| arg.len() + size_of::<Vec<u8>>()).sum::<usize>()
    }
}

impl fmt::Display for SeenCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<String> = self.args.iter().map(|arg| arg.escape_ascii().to_string()).collect();
        f.write_str(&words.join(" "))
    }
}

#[derive(Debug, Default)]
pub(super) struct Record(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    total: u64,
    held_bytes: usize,
    last: VecDeque<SeenCommand>,
}

impl Record {
    pub(super) fn add(&self, peer: &Peer, args: Args<'_>) {
        let command = SeenCommand { client: peer.address.clone(), args: args.iter().map(<[u8]>::to_vec).collect() };
        let mut seen = self.seen();
        seen.total += 1;
        seen.held_bytes += command.held_bytes();
        seen.last.push_back(command);
        while seen.last.len() > COMMANDS_KEPT || seen.held_bytes > BYTES_KEPT {
            let Some(oldest) = seen.last.pop_front() else { return };
            seen.held_bytes -= oldest.held_bytes();
        }
    }

    pub(super) fn total(&self) -> u64 {
        self.seen().total
    }

    pub(super) fn last(&self, count: usize) -> Vec<SeenCommand> {
        let seen = self.seen();
        seen.last.iter().skip(seen.last.len().saturating_sub(count)).cloned().collect()
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use respool_wire::ArgsBuf;

    fn add(record: &Record, words: &[&[u8]]) {
        let args: ArgsBuf = words.iter().collect();
        record.add(&Peer::default(), args.as_args());
    }

    #[test]
    fn what_is_kept_is_bounded_and_the_newest() {
        let record = Record::default();
        for number in 0..COMMANDS_KEPT + 7 {
            add(&record, &[b"ECHO", number.to_string().as_bytes()]);
        }
        assert_eq!(record.total(), COMMANDS_KEPT as u64 + 7);
        let last = record.last(usize::MAX);
        assert_eq!((last.len(), last[0].to_string()), (COMMANDS_KEPT, "ECHO 7".to_owned()));
        add(&record, &[b"SET", b"k", &vec![0; BYTES_KEPT]]);
        assert_eq!(record.last(9), [], "one that is too large is counted, and nothing else");
        add(&record, &[b"get", b"\r"]);
        let last = record.last(9);
        assert!(last.len() == 1 && last[0].is("GET") && last[0].to_string() == "get \\r", "{last:?}");
    }
}
