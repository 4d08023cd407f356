//! The texts of errors that clients match on, each exactly once and byte for byte as Redis 7.0 writes it.
//!
//! A text begins with its code (`ERR`, `WRONGTYPE`, ...) and has neither the leading `-` nor the line's end: the encoder adds
//! those. Texts that repeat what a peer sent are functions that append to a buffer. They cut the peer's bytes as Redis
//! does, at a length and at the first NUL; the encoder turns line breaks within an error into spaces.

use respool_wire::Args;

use crate::words::until_nul;
use crate::{Command, Row, TransactionsCommand};

/// A client that monitors, or follows as a replica, asks for data.
pub const REPLICA_AND_KEYSPACE: &str = "ERR Replica can't interact with the keyspace";
/// `MONITOR` within a transaction.
pub const MONITOR_DENIED: &str = "ERR MONITOR isn't allowed for DENY BLOCKING client";
/// The key holds another type than the command is for.
pub const WRONGTYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";
/// Options that do not fit together, or none of the command's.
pub const SYNTAX: &str = "ERR syntax error";
/// An argument should be an integer.
pub const NOT_AN_INTEGER: &str = "ERR value is not an integer or out of range";
/// An argument should be a floating point number.
pub const NOT_A_FLOAT: &str = "ERR value is not a valid float";
/// An argument should be a positive integer.
pub const NOT_POSITIVE: &str = "ERR value is out of range, must be positive";
/// The key must exist and does not.
pub const NO_SUCH_KEY: &str = "ERR no such key";
/// An index lies outside the list.
pub const INDEX_OUT_OF_RANGE: &str = "ERR index out of range";
/// An offset lies outside what a string may have.
pub const OFFSET_OUT_OF_RANGE: &str = "ERR offset is out of range";
/// A string would grow past the limit.
pub const STRING_TOO_LONG: &str = "ERR string exceeds maximum allowed size (proto-max-bulk-len)";
/// A sum leaves the range of integers.
pub const OVERFLOW: &str = "ERR increment or decrement would overflow";
/// The argument of `DECRBY` has no negative.
pub const DECREMENT_OVERFLOW: &str = "ERR decrement would overflow";
/// A sum of floating point numbers is none.
pub const INCREMENT_NOT_FINITE: &str = "ERR increment would produce NaN or Infinity";
/// The field of a hash should hold an integer.
pub const HASH_VALUE_NOT_AN_INTEGER: &str = "ERR hash value is not an integer";
/// The field of a hash should hold a floating point number.
pub const HASH_VALUE_NOT_A_FLOAT: &str = "ERR hash value is not a float";
/// A score would become no number.
pub const SCORE_NOT_A_NUMBER: &str = "ERR resulting score is not a number (NaN)";
/// The ends of a range of scores.
pub const MIN_OR_MAX_NOT_A_FLOAT: &str = "ERR min or max is not a float";
/// The ends of a lexicographical range.
pub const MIN_OR_MAX_NOT_A_RANGE_ITEM: &str = "ERR min or max not valid string range item";
/// A cursor of `SCAN` and its kin.
pub const INVALID_CURSOR: &str = "ERR invalid cursor";
/// Both keys, or both databases, are the same.
pub const SAME_OBJECT: &str = "ERR source and destination objects are the same";
/// There is no database of this number.
pub const DB_OUT_OF_RANGE: &str = "ERR DB index is out of range";
/// A timeout in milliseconds.
pub const TIMEOUT_NOT_AN_INTEGER: &str = "ERR timeout is not an integer or out of range";
/// A blocking command's timeout.
pub const TIMEOUT_NOT_A_FLOAT: &str = "ERR timeout is not a float or out of range";
/// A blocking command's timeout.
pub const TIMEOUT_NEGATIVE: &str = "ERR timeout is negative";
/// The offset of a bit.
pub const BIT_OFFSET: &str = "ERR bit offset is not an integer or out of range";
/// The value of a bit.
pub const BIT_VALUE: &str = "ERR bit is not an integer or out of range";
/// The names of connections are printable and have no space.
pub const INVALID_CLIENT_NAME: &str = "ERR Client names cannot contain spaces, newlines or special characters.";
/// `CLIENT KILL` found no client.
pub const NO_SUCH_CLIENT: &str = "ERR No such client";

/// The connection is not authenticated.
pub const NOAUTH: &str = "NOAUTH Authentication required.";
/// `HELLO` that does not authenticate where that is needed.
pub const NOAUTH_HELLO: &str = "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO \
     AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same \
     time";
/// The user or password is wrong.
pub const WRONGPASS: &str = "WRONGPASS invalid username-password pair or user is disabled.";
/// `AUTH` with a password where none is asked for.
pub const NO_PASSWORD_CONFIGURED: &str = "ERR AUTH <password> called without any password configured for the default \
     user. Are you sure your configuration is correct?";
/// `HELLO` with a version that is neither 2 nor 3.
pub const NOPROTO: &str = "NOPROTO unsupported protocol version";
/// `HELLO` with a version that is no integer.
pub const PROTOCOL_NOT_AN_INTEGER: &str = "ERR Protocol version is not an integer or out of range";

/// `EXEC` outside a transaction.
pub const EXEC_WITHOUT_MULTI: &str = "ERR EXEC without MULTI";
/// `DISCARD` outside a transaction.
pub const DISCARD_WITHOUT_MULTI: &str = "ERR DISCARD without MULTI";
/// `MULTI` inside a transaction.
pub const NESTED_MULTI: &str = "ERR MULTI calls can not be nested";
/// `WATCH` inside a transaction.
pub const WATCH_INSIDE_MULTI: &str = "ERR WATCH inside MULTI is not allowed";
/// A command of the transaction was refused when it was queued.
pub const EXECABORT: &str = "EXECABORT Transaction discarded because of previous errors.";

const EXEC_REFUSED: &[u8] = b"EXECABORT Transaction discarded because of: ";

/// EXEC itself was refused, for the reason that `refusal` tells, an error line with or without its dash and line end.
pub fn exec_refused(refusal: &[u8], out: &mut Vec<u8>) {
    let reason = refusal.strip_prefix(b"-").unwrap_or(refusal);
    out.extend_from_slice(EXEC_REFUSED);
    out.extend_from_slice(reason.strip_suffix(b"\r\n").unwrap_or(reason));
}

/// Whether a reply refuses one of MULTI, EXEC, DISCARD and WATCH before it is run.
pub fn is_refusal(reply: &[u8]) -> bool {
    let starts_with = |text: &[u8]| reply.strip_prefix(b"-").is_some_and(|line| line.starts_with(text));
    starts_with(b"NOAUTH ") || starts_with(b"NOPERM ") || starts_with(EXEC_REFUSED)
}

/// Whether a reply to EXEC says that the transaction was thrown away.
pub fn is_exec_abort(reply: &[u8]) -> bool {
    reply.starts_with(b"-EXECABORT")
}

/// A script calls a command that its user may not run.
pub const SCRIPT_COMMAND_DENIED: &str = "ERR The user executing the script can't run this command or subcommand";
/// A script names a key that its user may not access so.
pub const SCRIPT_KEY_DENIED: &str =
    "ERR The user executing the script can't access at least one of the keys mentioned in the command arguments";
/// A script names a channel that its user may not access.
pub const SCRIPT_CHANNEL_DENIED: &str =
    "ERR The user executing the script can't publish to the channel mentioned in the command";
/// A script takes long.
pub const BUSY_SCRIPT: &str = "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.";
/// A function takes long.
pub const BUSY_FUNCTION: &str =
    "BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE.";
/// Another client ended the waiting.
pub const UNBLOCKED: &str = "UNBLOCKED client unblocked via CLIENT UNBLOCK";

/// The command may be in no transaction.
pub const NOT_IN_TRANSACTION: &str = "ERR Command not allowed inside a transaction";

/// Keys that must share a slot do not.
pub const CROSSSLOT: &str = "CROSSSLOT Keys in request don't hash to the same slot";
/// No node serves the slot.
pub const CLUSTERDOWN: &str = "CLUSTERDOWN Hash slot not served";
/// A write was sent to a replica.
pub const READONLY: &str = "READONLY You can't write against a read only replica.";
/// The data set is still being loaded.
pub const LOADING: &str = "LOADING Redis is loading the dataset in memory";
/// Memory is above its limit.
pub const OOM: &str = "OOM command not allowed when used memory > 'maxmemory'.";
/// A transaction that adds data, and for which there is no room.
pub const EXECABORT_OOM: &str =
    "EXECABORT Transaction discarded because of: OOM command not allowed when used memory > 'maxmemory'.";
/// There is no script of this hash.
pub const NOSCRIPT: &str = "NOSCRIPT No matching script. Please use EVAL.";
/// A serialised value that is damaged or from a newer server.
pub const BAD_DUMP: &str = "ERR DUMP payload version or checksum are wrong";
/// `RESTORE` onto a key that exists.
pub const BUSYKEY: &str = "BUSYKEY Target key name already exists.";

/// `COMMAND GETKEYS` of a command that does not exist.
pub const INVALID_COMMAND: &str = "ERR Invalid command specified";
/// `COMMAND GETKEYS` of a command without keys.
pub const NO_KEY_ARGUMENTS: &str = "ERR The command has no key arguments";
/// `COMMAND GETKEYS` of a request with too few or too many arguments.
pub const INVALID_ARGUMENT_COUNT: &str = "ERR Invalid number of arguments specified for command";
/// `COMMAND GETKEYS` of a request that does not say where its keys are.
pub const INVALID_ARGUMENTS: &str = "ERR Invalid arguments specified for command";
/// `COMMAND INFO` or `COMMAND DOCS` with more names than Respool answers at once. Not a text of Redis.
pub const TOO_MANY_NAMES: &str = "ERR too many command names in one request";

/// `CLIENT TRACKING` with a prefix and without `BCAST`.
pub const TRACKING_PREFIX_WITHOUT_BCAST: &str = "ERR PREFIX option requires BCAST mode to be enabled";
/// `CLIENT TRACKING` with `BCAST` and a word that is about reading.
pub const TRACKING_OPT_WITH_BCAST: &str = "ERR OPTIN and OPTOUT are not compatible with BCAST";
/// `CLIENT TRACKING` with both words about reading.
pub const TRACKING_BOTH_OPTS: &str = "ERR You can't specify both OPTIN mode and OPTOUT mode";
/// `CLIENT TRACKING` that redirects to two clients.
pub const TRACKING_REDIRECT_TWICE: &str = "ERR A client can only redirect to a single other client";
/// `CLIENT TRACKING` that redirects to a client that does not exist.
pub const TRACKING_REDIRECT_UNKNOWN: &str = "ERR The client ID you want redirect to does not exist";
/// `CLIENT TRACKING` that turns `BCAST` on or off.
pub const TRACKING_SWITCHES_BCAST: &str = "ERR You can't switch BCAST mode on/off before disabling tracking for this \
     client, and then re-enabling it with a different mode.";
/// `CLIENT TRACKING` that turns `OPTIN` into `OPTOUT` or back.
pub const TRACKING_SWITCHES_OPT: &str = "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this \
     client, and then re-enabling it with a different mode.";
/// `CLIENT CACHING` of a client that has no use for it.
pub const CACHING_WITHOUT_OPT: &str = "ERR CLIENT CACHING can be called only when the client is in tracking mode with \
     OPTIN or OPTOUT mode enabled";
/// `CLIENT CACHING YES` of a client in `OPTOUT` mode.
pub const CACHING_YES_WITHOUT_OPTIN: &str =
    "ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.";
/// `CLIENT CACHING NO` of a client in `OPTIN` mode.
pub const CACHING_NO_WITHOUT_OPTOUT: &str =
    "ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.";

/// `ERR Prefix 'ab' overlaps with an existing prefix 'a'. ...`; `which` is `an existing` or `another provided`.
pub fn overlapping_prefix(prefix: &[u8], which: &str, other: &[u8]) -> Vec<u8> {
    let (prefix, other) = (echoed(prefix, ECHOED_BYTES_MAX), echoed(other, ECHOED_BYTES_MAX));
    let mut words = b"ERR Prefix '".to_vec();
    words.extend_from_slice(prefix);
    words.extend_from_slice(b"' overlaps with ");
    words.extend_from_slice(which.as_bytes());
    words.extend_from_slice(b" prefix '");
    words.extend_from_slice(other);
    words.extend_from_slice(b"'. Prefixes for a single client must not overlap.");
    words
}

/// As many bytes of a peer's name, and of its arguments together, as an error repeats.
const ECHOED_BYTES_MAX: usize = 128;

/// `ERR unknown command 'x', with args beginning with: 'a' 'b' `: the request has no row.
pub fn unknown_command(args: Args<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"ERR unknown command '");
    out.extend_from_slice(echoed(args.name(), ECHOED_BYTES_MAX));
    out.extend_from_slice(b"', with args beginning with: ");
    let start = out.len();
    for argument in args.from(1).iter() {
        let written = out.len() - start;
        if written >= ECHOED_BYTES_MAX {
            break;
        }
        out.push(b'\'');
        out.extend_from_slice(echoed(argument, ECHOED_BYTES_MAX - written));
        out.extend_from_slice(b"' ");
    }
}

/// `ERR unknown subcommand 'x'. Try CLIENT HELP.`: the container has no such subcommand.
pub fn unknown_subcommand(args: Args<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"ERR unknown subcommand '");
    out.extend_from_slice(echoed(args.get(1).unwrap_or_default(), ECHOED_BYTES_MAX));
    out.extend_from_slice(b"'. Try ");
    out.extend(args.name().iter().map(u8::to_ascii_uppercase));
    out.extend_from_slice(b" HELP.");
}

/// `ERR unknown subcommand or wrong number of arguments for 'x'. Try CLIENT HELP.`: the subcommand's own words for more
/// arguments than it takes.
pub fn subcommand_syntax(args: Args<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"ERR unknown subcommand or wrong number of arguments for '");
    out.extend_from_slice(echoed(args.get(1).unwrap_or_default(), ECHOED_BYTES_MAX));
    out.extend_from_slice(b"'. Try ");
    out.extend(args.name().iter().map(u8::to_ascii_uppercase));
    out.extend_from_slice(b" HELP.");
}

/// `ERR wrong number of arguments for 'client|id' command`. An `EXEC` that is refused ends its transaction and says so,
/// even where there is none.
pub fn wrong_arity(row: &Row, out: &mut Vec<u8>) {
    let is_exec = row.command == Command::Transactions(TransactionsCommand::Exec);
    out.extend_from_slice(if is_exec { EXEC_REFUSED } else { b"ERR " });
    out.extend_from_slice(b"wrong number of arguments for '");
    out.extend_from_slice(row.full_name().as_bytes());
    out.extend_from_slice(b"' command");
}

/// `ERR Can't execute 'get': only (P|S)SUBSCRIBE / ...`: the connection has subscriptions and speaks RESP2. An `EXEC` that
/// is refused ends its transaction and says so.
pub fn not_while_subscribed(row: &Row, out: &mut Vec<u8>) {
    let is_exec = row.command == Command::Transactions(TransactionsCommand::Exec);
    out.extend_from_slice(if is_exec { EXEC_REFUSED } else { b"ERR " });
    out.extend_from_slice(b"Can't execute '");
    out.extend_from_slice(row.full_name().as_bytes());
    out.extend_from_slice(
        b"': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context",
    );
}

/// `ERR unknown subcommand or wrong number of arguments for 'CHANNELS'. Try PUBSUB HELP.`: the subcommand does not take
/// these arguments.
pub fn wrong_subcommand_arguments(row: &Row, args: Args<'_>, out: &mut Vec<u8>) {
    let container = row.name.split(' ').next().unwrap_or_default();
    out.extend_from_slice(b"ERR unknown subcommand or wrong number of arguments for '");
    out.extend_from_slice(echoed(args.get(1).unwrap_or_default(), ECHOED_BYTES_MAX));
    out.extend_from_slice(b"'. Try ");
    out.extend_from_slice(container.as_bytes());
    out.extend_from_slice(b" HELP.");
}

/// `ERR invalid expire time in 'set' command`.
pub fn invalid_expire_time(row: &Row, out: &mut Vec<u8>) {
    out.extend_from_slice(b"ERR invalid expire time in '");
    out.extend_from_slice(row.full_name().as_bytes());
    out.extend_from_slice(b"' command");
}

/// `ERR at least 1 input key is needed for 'zunion' command`.
pub fn no_input_key(row: &Row, out: &mut Vec<u8>) {
    out.extend_from_slice(b"ERR at least 1 input key is needed for '");
    out.extend_from_slice(row.full_name().as_bytes());
    out.extend_from_slice(b"' command");
}

/// The part of a peer's bytes that an error repeats.
fn echoed(bytes: &[u8], len_max: usize) -> &[u8] {
    let bytes = until_nul(bytes);
    bytes.get(..len_max).unwrap_or(bytes)
}

#[cfg(test)]
mod tests {
    use respool_wire::ArgsBuf;

    use crate::{UnknownCommand, resolve, text};

    fn refused(request: &[&[u8]]) -> String {
        let args: ArgsBuf = request.iter().collect();
        let mut out = Vec::new();
        resolve(args.as_args()).expect_err("no row describes it").write_text(args.as_args(), &mut out);
        String::from_utf8(out).expect("the test sends ASCII")
    }

    #[test]
    fn unknown_commands_repeat_the_request_as_far_as_redis_does() {
        assert_eq!(refused(&[b"foo"]), "ERR unknown command 'foo', with args beginning with: ");
        assert_eq!(
            refused(&[b"FoO", b"a", b"it's"]),
            "ERR unknown command 'FoO', with args beginning with: 'a' 'it's' "
        );
        assert_eq!(refused(&[b"", b"a"]), "ERR unknown command '', with args beginning with: 'a' ");
        assert_eq!(refused(&[b"fo\0o", b"a\0b", b"c"]), "ERR unknown command 'fo', with args beginning with: 'a' 'c' ");
        let (x, y, z) = ("x".repeat(200), "y".repeat(100), "z".repeat(100));
        assert_eq!(
            refused(&[x.as_bytes(), y.as_bytes(), z.as_bytes(), b"w"]),
            format!("ERR unknown command '{}', with args beginning with: '{y}' '{}' ", &x[..128], &z[..25])
        );
    }

    #[test]
    fn unknown_subcommands_point_to_help() {
        assert_eq!(refused(&[b"cliEnt", b"foo", b"x"]), "ERR unknown subcommand 'foo'. Try CLIENT HELP.");
        assert_eq!(refused(&[b"COMMAND", b"a\0b"]), "ERR unknown subcommand 'a'. Try COMMAND HELP.");
    }

    #[test]
    fn arity_errors_name_the_subcommand() {
        let args: ArgsBuf = ["client", "id", "x"].into_iter().collect();
        let row = resolve(args.as_args()).map_err(|_: UnknownCommand| ()).expect("CLIENT ID has a row");
        assert!(!row.accepts(3));
        let mut out = Vec::new();
        text::wrong_arity(row, &mut out);
        assert_eq!(out, b"ERR wrong number of arguments for 'client|id' command");
    }
}
