//! What may be sent on a connection that others use, and what may be sent twice.

use crate::Command;
use respool_command::KeyPositions;
use respool_command::{
    Command as TableCommand, ConnectionCommand, GenericCommand, Lane, PubsubCommand, Row, ServerCommand, lookup,
    timeout_us,
};
#[cfg(feature = "cache")]
use respool_command::{Flags, KeyAccess, KeyPosition};
use respool_wire::{Args, ArgsBuf, Head, Request, RequestDecoder, RequestLimits, Step, Strictness};
use std::time::Duration;

/// How a request can be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fitness {
    /// On a connection that others use.
    Shared,
    /// On one of its own: it may wait on the server.
    Blocking,
    /// Not as it is; why.
    Unfit(&'static str),
}

/// Why a request is not sent alone that is about what its connection has written.
const COUNTS_OWN_WRITES: &str = "counts the writes of its own connection: send it behind them in a dedicated batch";

/// How a request can be sent.
#[inline]
pub(crate) fn fitness(command: &Command) -> Fitness {
    match lookup(command.name()) {
        None if counts_own_writes(command) => Fitness::Unfit(COUNTS_OWN_WRITES),
        None => Fitness::Shared,
        Some(row) if row.is_plain => Fitness::Shared,
        Some(row) => fitness_of(row, command),
    }
}

/// Why a request cannot be sent on a connection that others use.
pub(crate) fn unfit(command: &Command) -> Option<&'static str> {
    match fitness(command) {
        Fitness::Shared => None,
        Fitness::Blocking => {
            Some("waits on the server and would make all other callers wait: send it alone, or in a dedicated batch")
        }
        Fitness::Unfit(why) => Some(why),
    }
}

/// Why a request cannot be sent among others on a connection of their own.
pub(crate) fn unfit_dedicated(command: &Command) -> Option<&'static str> {
    match fitness(command) {
        Fitness::Unfit(why) if why == COUNTS_OWN_WRITES => None,
        Fitness::Unfit(why) => Some(why),
        Fitness::Shared | Fitness::Blocking => None,
    }
}

fn fitness_of(row: &'static Row, command: &Command) -> Fitness {
    let row = row_of(row, command);
    match lane(row, command) {
        Lane::Pinned => Fitness::Unfit("needs a connection of its own: use a transaction, or watch"),
        Lane::Blocking if counts_own_writes(command) => Fitness::Unfit(COUNTS_OWN_WRITES),
        Lane::Blocking => Fitness::Blocking,
        Lane::Push if row.usage().changes_connection() => {
            Fitness::Unfit("changes what is pushed on a connection that others use: use a subscription")
        }
        Lane::Dedicated => Fitness::Unfit("takes a connection for good"),
        Lane::Local if row.usage().changes_connection() => {
            Fitness::Unfit("changes the state of a connection that others use")
        }
        _ => Fitness::Shared,
    }
}

/// Whether a request is about what its connection has written, so that it says nothing on another.
fn counts_own_writes(command: &Command) -> bool {
    match lookup(command.name()) {
        Some(row) => row.command == TableCommand::Generic(GenericCommand::Wait),
        // Of servers later than the table: it waits as WAIT does.
        None => command.name().eq_ignore_ascii_case(b"WAITAOF"),
    }
}

/// Whether a request is about the connection that it is sent on, whichever that is: it goes where the requests beside it go.
pub(crate) fn is_of_connection(command: &Command) -> bool {
    let is_ping = |row: &Row| row.command == TableCommand::Connection(ConnectionCommand::Ping);
    lookup(command.name()).is_some_and(is_ping) || counts_own_writes(command)
}

/// Whether a request deletes the keys of each server that it is sent to.
pub(crate) fn deletes_all(command: &Command) -> bool {
    let of_server = lookup(command.name()).and_then(|row| match row.command {
        TableCommand::Server(of_server) => Some(of_server),
        _ => None,
    });
    matches!(of_server, Some(ServerCommand::Flushall | ServerCommand::Flushdb))
}

/// Why a request cannot be sent to each of several servers as it is. What names keys, or may name some that are not seen, would be executed where
/// its keys are not.
pub(crate) fn unfit_for_each(command: &Command) -> Option<&'static str> {
    const NAMES_KEYS: &str = "names keys, which are at one of the servers: call it by itself";
    let Some(row) = lookup(command.name()).map(|row| row_of(row, command)) else {
        let unknown = "is not in the command table and may name keys: say by Command::keyless that it does not";
        return if command.marked_key().is_some() {
            Some(NAMES_KEYS)
        } else {
            (!command.is_keyless()).then_some(unknown)
        };
    };
    if row.command == TableCommand::Pubsub(PubsubCommand::Publish) {
        return Some("would be published at each server: call it by itself");
    }
    with_args(command, |args| {
        let mut positions = KeyPositions::default();
        if row.keys.positions(args, &mut positions).is_err() {
            return Some("says where its keys are in a way that cannot be read");
        }
        let is_slotted = positions.iter().any(|position| !position.access.is_key());
        match positions {
            _ if positions.has_unnamed() => Some("reads keys that it does not name, which are at one of the servers"),
            _ if is_slotted => Some("is for the server that has a slot: call it by itself"),
            _ => (!positions.is_empty()).then_some(NAMES_KEYS),
        }
    })
}

/// How long a request may wait on the server: `None` if it never does, `Some(None)` if without end.
fn blocks_for(command: &Command) -> Option<Option<Duration>> {
    let row = lookup(command.name()).filter(|row| !row.is_plain)?;
    let row = row_of(row, command);
    with_args(command, |args| {
        (row.lane(args) == Lane::Blocking).then(|| timeout_us(row, args).map(Duration::from_micros))
    })
}

/// How long requests may take on a connection of their own: as long as their caller has said, or else as they wait on the server, and what
/// calls usually take beyond that.
pub(crate) fn limit_of(commands: &[Command], explicit: Option<Duration>, usual: Option<Duration>) -> Option<Duration> {
    explicit.or_else(|| {
        let waits = commands.iter().try_fold(Duration::ZERO, |sum, command| match blocks_for(command) {
            None => Some(sum),
            Some(limit) => limit.map(|limit| sum.saturating_add(limit)),
        });
        usual.zip(waits).map(|(usual, waits)| usual.saturating_add(waits))
    })
}

/// The row of the subcommand, if the row is a container.
pub(crate) fn row_of(row: &'static Row, command: &Command) -> &'static Row {
    row.subcommand(command.words().1).unwrap_or(row)
}

/// Whether the first argument is the second word of the command, as in `CONFIG GET`.
#[cfg(feature = "tracing")]
pub(crate) fn has_subcommand(command: &Command) -> bool {
    lookup(command.name()).is_some_and(|row| row.subcommand(command.words().1).is_some())
}

/// The lane, as the arguments decide it.
fn lane(row: &'static Row, command: &Command) -> Lane {
    with_args(command, |args| row.lane(args))
}

/// Looks at the arguments as the table does.
fn with_args<T>(command: &Command, look: impl Fn(Args<'_>) -> T) -> T {
    with_request(command, |request| look(request.args)).unwrap_or_else(|| look(ArgsBuf::default().as_args()))
}

/// Looks at the request as a server does that reads it.
pub(crate) fn with_request<T>(command: &Command, look: impl FnOnce(&Request<'_>) -> T) -> Option<T> {
    let mut bytes = Head::request(command.arguments()).as_bytes().to_vec();
    for (text, kept) in command.parts() {
        bytes.extend_from_slice(text);
        bytes.extend_from_slice(kept.map_or(&[][..], |value| value));
    }
    let limits = RequestLimits::authenticated(Strictness::Lenient);
    match RequestDecoder::new().decode(&bytes, &limits) {
        Ok(Step::Request(request)) => Some(look(&request)),
        _ => None,
    }
}

/// The key of a request whose reply a cache may keep, or why it may not: a server tells of changes of keys, and of nothing else that a
/// reply may depend on.
#[cfg(feature = "cache")]
pub(crate) fn read_key(command: &Command) -> Result<bytes::Bytes, &'static str> {
    let row = lookup(command.name()).map(|row| row_of(row, command));
    let row = row.ok_or("is not known to change nothing: call it without a cache")?;
    if !row.flags.has(Flags::READONLY) || row.runs_scripts || fitness(command) != Fitness::Shared {
        return Err("changes something, waits or runs a script: call it without a cache");
    }
    if row.changes_untold || row.tips.contains(&"nondeterministic_output") {
        return Err("replies differ although the server tells of no change: call it without a cache");
    }
    let keys = keys_of(row, command).filter(|keys| keys.len() == 1);
    let mut keys = keys.ok_or("does not read one key alone: call it without a cache")?;
    Ok(keys.swap_remove(0))
}

/// The keys of a request; `None` if it may have others that cannot be told.
#[cfg(feature = "cache")]
fn keys_of(row: &'static Row, command: &Command) -> Option<Vec<bytes::Bytes>> {
    if row.keys.specs().iter().any(|spec| spec.access.has(KeyAccess::INCOMPLETE)) {
        return None;
    }
    with_args(command, |args| {
        let mut positions = KeyPositions::default();
        row.keys.positions(args, &mut positions).ok()?;
        let is_told = !positions.has_unnamed() && positions.iter().all(|position| position.access.is_key());
        let key = |position: KeyPosition| args.get(position.index as usize).map(bytes::Bytes::copy_from_slice);
        if is_told { positions.iter().map(key).collect() } else { None }
    })
}

/// What a request writes.
#[cfg(feature = "cache")]
pub(crate) enum Written {
    /// Nothing that is known.
    Nothing,
    /// Some of these keys.
    Keys(Vec<bytes::Bytes>),
    /// Perhaps any key.
    All,
}

/// What a request writes.
#[cfg(feature = "cache")]
pub(crate) fn written(command: &Command) -> Written {
    let Some(row) = lookup(command.name()).map(|row| row_of(row, command)) else { return Written::Nothing };
    let is_write = row.flags.has(Flags::WRITE);
    if !is_write && !row.runs_scripts {
        return Written::Nothing;
    }
    match keys_of(row, command) {
        Some(keys) if !keys.is_empty() => Written::Keys(keys),
        _ => Written::All,
    }
}

/// Whether a request may be executed twice.
pub(crate) fn is_retry_safe(command: &Command) -> bool {
    command.is_idempotent() || lookup(command.name()).is_some_and(|row| row_of(row, command).is_retry_safe)
}

/// Whether a request changes nothing for others, as far as the table says: it reads, or waits for what was written.
pub(crate) fn only_reads(command: &Command) -> bool {
    let row = lookup(command.name()).map(|row| row_of(row, command));
    row.is_some_and(|row| row.is_replica_readable) || counts_own_writes(command)
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
    fn what_waits_says_for_how_long() {
        let of = |request: &str| {
            let mut words = request.split(' ');
            let command = cmd(words.next().unwrap()).arg(words.collect::<Vec<_>>());
            (fitness(&command), blocks_for(&command))
        };
        let millis = |count| Some(Some(Duration::from_millis(count)));
        for (request, expected) in [
            ("BLPOP k 0", Some(None)),
            ("BLPOP k 1.5", millis(1_500)),
            ("BLMPOP 2 1 k LEFT", millis(2_000)),
            ("XREAD BLOCK 70 STREAMS s $", millis(70)),
            ("XREADGROUP GROUP BLOCK c BLOCK 0 STREAMS s >", Some(None)),
        ] {
            assert_eq!(of(request), (Fitness::Blocking, expected), "{request}");
        }
        for request in ["GET k", "XREAD STREAMS s 0", "PING"] {
            assert_eq!(of(request), (Fitness::Shared, None), "{request}");
        }
        assert!(matches!(of("WAIT 1 100"), (Fitness::Unfit(_), Some(_))));
        assert_eq!(unfit_dedicated(&cmd("WAIT").arg(1).arg(100)), None);
        let wait_for_file = || cmd("waitaof").arg(1).arg(0).arg(100);
        assert!(unfit(&wait_for_file()).is_some() && unfit_dedicated(&wait_for_file()).is_none());
        assert!(unfit_dedicated(&cmd("MULTI")).is_some());
    }

    #[test]
    fn what_may_write_does_not_only_read() {
        for (request, expected) in [
            ("GET k", true),
            ("mget a b", true),
            ("WAIT 1 100", true),
            ("WAITAOF 1 0 100", true),
            ("SET k v", false),
            ("GETDEL k", false),
            ("EVAL s 0", false),
            ("PUBLISH c m", false),
            ("NEW.ONE k", false),
        ] {
            let mut words = request.split(' ');
            let command = cmd(words.next().unwrap()).arg(words.collect::<Vec<_>>());
            assert_eq!(only_reads(&command), expected, "{request}");
        }
    }

    #[test]
    fn what_may_name_keys_is_not_sent_to_each_server() {
        let of = |request: &str| {
            let mut words = request.split(' ');
            cmd(words.next().unwrap()).arg(words.collect::<Vec<_>>())
        };
        for request in
            ["DBSIZE", "FLUSHALL", "CONFIG GET maxmemory", "SCRIPT LOAD s", "EVAL s 0", "KEYS *", "EXISTS", "PING"]
        {
            assert_eq!(unfit_for_each(&of(request)), None, "{request}");
        }
        for (request, why) in [
            ("SET k v", "names keys"),
            ("EVAL s 1 k", "names keys"),
            ("EVAL s none k", "cannot be read"),
            ("EVAL s 9 k", "cannot be read"),
            ("SPUBLISH c m", "has a slot"),
            ("PUBLISH c m", "would be published"),
            ("NEW.ONE k", "not in the command table"),
        ] {
            let unfit = unfit_for_each(&of(request));
            assert!(unfit.is_some_and(|unfit| unfit.contains(why)), "{request}: {unfit:?}");
        }
        assert_eq!(unfit_for_each(&of("NEW.LIST").keyless()), None);
        assert!(unfit_for_each(&cmd("NEW.ONE").key("k").keyless()).is_some());
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
