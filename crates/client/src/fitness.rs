//! What may be sent on a connection that others use, and what may be sent twice.

use crate::Command;
use respool_command::{Lane, Row, lookup};
use respool_wire::{ArgsBuf, Head, RequestDecoder, RequestLimits, Step, Strictness};

/// Why a request cannot be sent on a connection that others use.
#[inline]
pub(crate) fn unfit(command: &Command) -> Option<&'static str> {
    let row = lookup(command.name())?;
    if row.is_plain { None } else { unfit_row(row, command) }
}

fn unfit_row(row: &'static Row, command: &Command) -> Option<&'static str> {
    let row = row_of(row, command);
    let name = row.full_name();
    match lane(row, command) {
        Lane::Pinned => Some("needs a connection of its own: use a transaction"),
        Lane::Blocking => Some("waits on the server and would make all other callers wait"),
        Lane::Push if !name.ends_with("publish") => Some("changes what is pushed on a connection that others use"),
        Lane::Dedicated => Some("takes a connection for good"),
        Lane::Local if row.usage().changes_connection() => Some("changes the state of a connection that others use"),
        _ => None,
    }
}

/// The row of the subcommand, if the row is a container.
fn row_of(row: &'static Row, command: &Command) -> &'static Row {
    row.subcommand(command.words().1).unwrap_or(row)
}

/// The lane, as the arguments decide it.
fn lane(row: &'static Row, command: &Command) -> Lane {
    let mut bytes = Head::request(command.arguments()).as_bytes().to_vec();
    for (text, kept) in command.parts() {
        bytes.extend_from_slice(text);
        bytes.extend_from_slice(kept.map_or(&[][..], |value| value));
    }
    let limits = RequestLimits::authenticated(Strictness::Lenient);
    match RequestDecoder::new().decode(&bytes, &limits) {
        Ok(Step::Request(request)) => row.lane(request.args),
        _ => row.lane(ArgsBuf::default().as_args()),
    }
}

/// Whether a request may be executed twice.
pub(crate) fn is_retry_safe(command: &Command) -> bool {
    command.is_idempotent() || lookup(command.name()).is_some_and(|row| row_of(row, command).is_retry_safe)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cmd;

    #[test]
    fn what_would_harm_others_is_refused() {
        for request in
            ["BLPOP k 0", "XREAD BLOCK 0 STREAMS s $", "MULTI", "WATCH k", "SUBSCRIBE c", "MONITOR", "SELECT 1"]
                .into_iter()
                .chain([
                    "AUTH p",
                    "HELLO 3",
                    "CLIENT REPLY OFF",
                    "CLIENT SETNAME n",
                    "client tracking on",
                    "QUIT",
                    "RESET",
                ])
        {
            let mut words = request.split(' ');
            let command = cmd(words.next().unwrap()).arg(words.collect::<Vec<_>>());
            assert!(unfit(&command).is_some(), "{request}");
        }
        for request in ["GET k", "XREAD STREAMS s 0", "PUBLISH c m", "CLIENT ID", "PING", "INFO", "EVAL s 0", "NEW.ONE"]
        {
            let mut words = request.split(' ');
            let command = cmd(words.next().unwrap()).arg(words.collect::<Vec<_>>());
            assert_eq!(unfit(&command), None, "{request}");
        }
    }

    #[test]
    fn only_what_does_no_harm_is_sent_twice() {
        for (request, is_safe) in [("GET", true), ("INCR", false), ("NEW.ONE", false), ("MGET", true), ("RPUSH", false)]
        {
            assert_eq!(is_retry_safe(&cmd(request).arg("k")), is_safe, "{request}");
        }
        assert!(is_retry_safe(&cmd("INCR").arg("k").idempotent()));
    }
}
