//! The texts of the errors that the proxy makes, each once. What names or causes a text repeats cannot end its line.
//!
//! Texts about a node say which, what happened, and whether the command may have run. Texts that the engine has as well are in
//! `respool_command::text`.

use crate::error_reply::ErrorReply;
use respool_access::Denial;
use respool_command::{Row, text as texts};
use std::fmt::Display;

/// Errors with names, numbers and causes in them. Control characters of those become spaces.
macro_rules! errors {
    ($($(#[$about:meta])* $name:ident($($part:ident: $type:ty),*) $words:literal;)*) => {$(
        $(#[$about])*
        pub(crate) fn $name($($part: $type),*) -> ErrorReply {
            verbatim(&format!($words))
        }
    )*};
}

errors! {
    /// The request never left.
    not_sent(node: &str, cause: &dyn Display) "ERR node {node} is not available: {cause}; the command was not sent";
    /// The request left, or a part of it, and no reply will come.
    broken_off(node: &str, cause: &dyn Display) "ERR node {node} {cause}; the command may or may not have been executed";
    /// A reply that has to be kept whole does not fit what may be held for its client.
    reply_too_large(max: usize) "ERR the reply is larger than client_output_hard_bytes ({max} bytes) allows";
    /// An operator has drained the node.
    drained(node: &str) "ERR node {node} is not available: it was drained by an operator; the command was not sent";
    /// The node is not configured any more.
    gone(node: &str) "ERR node {node} is not configured any more; the command was not sent";
    /// Too much waits for the node already.
    queue_full(node: &str) "ERR node {node} is overloaded: too many bytes wait for it; the command was not sent";
    /// Too many clients have connections to the node to themselves already.
    too_many_private(node: &str) "ERR node {node} is overloaded: too many connections to it are pinned; the command was not sent";
    /// Too many clients in pool mode `session` have connections to the node already.
    too_many_own(node: &str) "ERR node {node} is overloaded: too many clients have connections to it to themselves; the command was not sent";
    /// The command needs something that a pooled connection does not have yet.
    unsupported(name: &str, because: &str) "ERR {name} is not supported here: {because}";
    /// The command steers nodes, and the proxy is told not to let clients do that.
    admin_refused(name: &str) "NOPERM {name} steers the nodes, which this proxy does not let clients do (admin_commands = refuse)";
    /// The streams of several nodes cannot be made one.
    cannot_merge(why: &str) "ERR the nodes cannot be followed as one: {why}";
    /// All blocking connections are in use, and this request cannot be sent later.
    no_blocking_connection(node: &str) "ERR blocking connections to node {node} are exhausted (blocking_connections_max); the command was not sent";
    /// A transaction with more commands than the settings allow.
    transaction_too_long(max: usize) "ERR transaction too long: more than {max} commands";
    /// A transaction with more bytes than the settings allow.
    transaction_too_large(max: usize) "ERR transaction too large: its commands have more than {max} bytes";
    /// A command of a transaction that only all nodes together can answer.
    block_on_all_nodes(name: &str) "ERR '{name}' over several nodes cannot be part of a transaction";
    /// `ACL LOAD` of a file that cannot be read. As Redis words it.
    acl_file_not_read(path: &str, why: &dyn Display) "ERR Error loading ACLs, opening file '{path}': {why}";
    /// `ACL GENPASS` where nothing is random.
    no_password(why: &dyn Display) "ERR no password can be made: {why}";
    /// `PROXY NODE` with a command whose place is not one node.
    not_for_one_node(name: &str) "ERR {name} is not for a single node: send it without PROXY NODE";
    /// The node is too old to tell of changed keys.
    no_tracking(node: &str) "ERR node {node} knows no RESP3, in which changed keys are told of";
    /// The reply to an order that has not settled in time. `left` names what is left.
    not_settled(left: &str) "ERR the order holds, but not everything has settled within drain_timeout: {left}";
    /// A request that was held back, in the words of [`paused_for_long`].
    paused(words: &str) "ERR {words}; the command was not sent";
    /// INFO of a paused node without a remembered reply.
    info_of_paused(node: &str) "ERR node {node} is paused, and nothing is known of it from before; the command was not sent";
    /// No node can say whether it has a database.
    no_node_for_database(database: u32) "ERR no node can say whether it has database {database}";
    /// A client subscribes to more patterns than one may.
    too_many_patterns(max: usize) "ERR too many patterns: one client may subscribe to {max} at a time";
    /// `PROXY SHOW` of something that is not shown.
    nothing_to_show(names: &str) "ERR there is nothing of that name to show; there is {names}";
    /// The user may not run a command, as Redis words it.
    denied_command(full_name: &str) "NOPERM this user has no permissions to run the '{full_name}' command";
    /// A node knows a command, and as many were learnt as may be.
    learnt_enough(full_name: &str) "ERR the command '{full_name}' is not supported: too many commands were learnt from the nodes";
}

/// The request left and no reply has come in time.
pub(crate) fn timed_out(node: &str, response_us: u64) -> ErrorReply {
    let after = response_us / 1000;
    verbatim(&format!(
        "ERR node {node} did not answer within {after} ms; the command may or may not have been executed"
    ))
}

/// The reply failed the integrity check.
pub(crate) fn unproved(node: &str, error: &ErrorReply) -> ErrorReply {
    broken_off(node, &format_args!("failed the integrity check ({})", String::from_utf8_lossy(error.words())))
}

/// The reply is larger than what may be held until the integrity check has passed.
pub(crate) fn too_large_to_prove(node: &str) -> ErrorReply {
    broken_off(node, &"sent a reply that is too large for the integrity check")
}

/// The server that keys were to be moved to has replied an error. As Redis says it.
pub(crate) fn refused_by_target(words: &[u8]) -> ErrorReply {
    ErrorReply::new([b"ERR Target instance replied with error: ", words].concat())
}

/// MIGRATE cannot connect to its target. The text of Redis.
pub(crate) const NO_TARGET: &str = "IOERR error or timeout connecting to the client";
/// The keys have not all been sent. As Redis says it.
pub(crate) const TARGET_NOT_WRITTEN: &str = "IOERR error or timeout writing to target instance";
/// They have not all been acknowledged. As Redis says it.
pub(crate) const TARGET_NOT_READ: &str = "IOERR error or timeout reading to target instance";
/// Keys were changed while they were moved, for as long as the timeout is.
pub(crate) const KEYS_CHANGE_TOO_OFTEN: &str =
    "IOERR keys were changed again and again while they were sent to target instance; they stay here";
/// A transaction moves a key that another client is moving.
pub(crate) const KEY_ON_ITS_WAY: &str = "IOERR a key is on its way to a target instance for another client; try again";
/// As many requests move keys as may.
pub(crate) const TOO_MANY_MIGRATIONS: &str = "IOERR too many MIGRATE commands are under way; try again";

/// Other nodes were configured while a client waited for their word.
pub(crate) const NODES_CHANGED: &str = "ERR the nodes were changed meanwhile; try again";

/// Other nodes were configured while a request waited that cannot be asked again as it was: what it waits for depends on when
/// the node reads it. The first words are those by which Redis lets clients go when a node's role has changed; libraries take
/// them as a reason to try again.
pub(crate) const UNBLOCKED_BY_CHANGE: &str =
    "UNBLOCKED force unblock from blocking operation, the nodes were changed; try again";

/// Users or orders are changed in a process whose clients another one takes over: it would not hear of the change.
pub(crate) const HANDED_OVER: &str =
    "ERR another process takes over from this one and would not hear of this; connect again and repeat it";

/// Users or orders are changed while the process ends.
pub(crate) const WORKERS_ENDED: &str =
    "ERR the process ends, and not all of its workers have answered; connect again and repeat it";

/// The user's clients have as many connections to themselves as they may.
pub(crate) const TOO_MANY_LENT: &str =
    "ERR this user has as many connections to itself as it may (private_connections); the command was not sent";

/// More clients want connections to themselves than there are numbers.
pub(crate) const TOO_MANY_OWNERS: &str =
    "ERR too many clients have connections to themselves; the command was not sent";

/// An error in the words of a node, of the program around the proxy or of a name. Control characters become spaces.
pub(crate) fn verbatim(words: &str) -> ErrorReply {
    ErrorReply::new(words.replace(|c: char| c.is_ascii_control(), " "))
}

/// All that a node executes of a transaction is sent before its client is another user.
pub(crate) const CHANGED_MIDWAY: &str = "ERR AUTH as another user and HELLO 2 cannot come before requests of a transaction that \
     a node executes; the transaction was not executed";

/// The private connection on which keys were watched is gone.
pub(crate) const PIN_LOST: &str =
    "ERR the connection on which keys were watched is lost; the transaction was not executed";

/// A replica of all nodes would be given a key twice.
pub(crate) const KEYS_ON_SEVERAL_NODES: &str =
    "with dead_node = next a key may be on several nodes, and a replica can have it once; ask the nodes themselves";

/// A replica of all nodes wants a part of their snapshots.
pub(crate) const NO_FILTERED_SNAPSHOT: &str = "ERR REPLCONF rdb-filter-only is not supported here: snapshots of several nodes are joined whole; ask a node itself";

/// REPLCONF has an option that is not known. As Redis says it.
pub(crate) fn unknown_replconf(option: &[u8]) -> ErrorReply {
    verbatim(&format!("ERR Unrecognized REPLCONF option: {}", option.escape_ascii()))
}

/// The connection on which REPLCONF of this replica was sent to a node is lost.
pub(crate) const REPLICA_LOST: &str =
    "ERR the connection on which REPLCONF was sent to the node is lost; reconnect and retry";

/// A node has answered a transaction in a way that does not fit what it was sent.
pub(crate) const EXEC_IN_DOUBT: &str =
    "ERR the node's answer does not fit the transaction; it may or may not have been executed";

/// A node answers MULTI as no node should, or does not end an empty transaction.
pub(crate) const MULTI_IN_DOUBT: &str =
    "ERR the node's answers to MULTI and EXEC do not fit; the transaction was not executed";

/// What went wrong before a transaction was sent; none of it has been.
pub(crate) fn not_executed(cause: &ErrorReply) -> ErrorReply {
    let words = String::from_utf8_lossy(cause.words());
    let cause = words.split("; the command may or may not").next().unwrap_or_default();
    verbatim(&format!("{cause}; the transaction was not executed"))
}

/// A node answers a request that waits as no node should.
pub(crate) const BLOCKED_IN_DOUBT: &str =
    "ERR the node's answer does not fit the command; it may or may not have been executed";

/// Too many requests wait already.
pub(crate) const TOO_MANY_BLOCKED: &str = "ERR too many clients wait already; the command was not sent";

/// The time of a request is over, and its node could not be asked for it.
pub(crate) fn not_asked(node: &str) -> ErrorReply {
    not_sent(node, &"it could not be asked in time")
}

/// The watched keys are on another node, or in another database, than the transaction runs.
pub(crate) const WATCHED_ELSEWHERE: &str = "CROSSSLOT Watched keys and the transaction's keys are on different nodes, or in \
     different databases or protocols; the transaction was not executed";

/// A client subscribes to more than a client may.
pub(crate) const TOO_MANY_SUBSCRIPTIONS: &str = "ERR too many subscriptions of one connection";

/// Under routes, a client has subscribed as so many users and in so many databases that it would be slow to find out what
/// it means.
pub(crate) const TOO_MANY_SCOPES: &str =
    "ERR too many users and databases of one connection with subscriptions; unsubscribe first";

/// `SHUTDOWN ABORT` while the server does not end.
pub(crate) const NO_SHUTDOWN: &str = "ERR No shutdown in progress.";

/// `SHUTDOWN SAVE` of a server that writes no snapshots.
pub(crate) const SHUTDOWN_CANNOT_SAVE: &str = "ERR Errors trying to SHUTDOWN: this server writes no snapshots; SHUTDOWN NOSAVE ends it, and what it holds is lost";

/// `SLOWLOG GET` or `COMMANDLOG GET` of so many entries.
pub(crate) const LOG_COUNT: &str = "ERR count should be greater than or equal to -1";

/// `COMMANDLOG` about a log that there is not.
pub(crate) const LOG_TYPE: &str = "ERR type should be one of the following: slow, large-request, large-reply";

/// `CLIENT IMPORT-SOURCE` of a server that imports nothing.
pub(crate) const NO_IMPORT_MODE: &str = "ERR Server is not in import mode";

/// Errors that repeat a word that a client has sent, between what stands before and behind it.
macro_rules! about_words {
    ($($(#[$about:meta])* $name:ident: $before:literal, $behind:literal;)*) => {$(
        $(#[$about])*
        pub(crate) fn $name(word: &[u8]) -> ErrorReply {
            ErrorReply::new([$before.as_bytes(), word, $behind.as_bytes()].concat())
        }
    )*};
}

about_words! {
    /// `LATENCY GRAPH` of an event that has not happened.
    no_latency_samples: "ERR No samples available for event '", "'";
    /// `CLIENT LIST TYPE` and `CLIENT KILL TYPE` of a kind of clients that there is not.
    unknown_client_type: "ERR Unknown client type '", "'";
    /// `CLIENT KILL USER` and `CLIENT LIST USER` of a user that there is not.
    no_such_user: "ERR No such user '", "'";
    /// `CLIENT KILL FLAGS` and `CLIENT LIST FLAGS` with a letter that stands for nothing.
    unknown_flags: "ERR Unknown flags found in the provided filter: ", "";
    /// `CLIENT SETINFO` of something else than a library's name and version.
    unknown_attribute: "ERR Unrecognized option '", "'";
    /// `HELLO` with an option that there is not.
    unknown_hello_option: "ERR Syntax error in HELLO option '", "'";
    /// `ACL` with a subcommand that there is not.
    unknown_acl_subcommand: "ERR unknown subcommand or wrong number of arguments for '", "'. Try ACL HELP.";
    /// `CONFIG SET` of what every server has for itself, where there are several.
    set_of_one: "ERR CONFIG SET failed (possibly related to argument '",
        "') - each node has a value of its own, and there are several: name the node (PROXY NODE)";
    /// `CONFIG SET` of a setting of ours beside others. Those may be the nodes'.
    set_alone: "ERR CONFIG SET failed (possibly related to argument '",
        "') - it is a setting of the proxy and has to be set alone";
    /// `PROXY NODE` of a node that there is not.
    no_node: "ERR there is no node '", "'; PROXY SHOW NODES names them";
    /// An order about a node or pool that there is not.
    no_node_or_pool: "ERR there is no node or pool '", "'; PROXY SHOW NODES names them";
    /// `CLIENT SETINFO` of a name or version that none may have.
    unprintable: "ERR ", " cannot contain spaces, newlines or special characters.";
}

/// `ACL LOAD` of a file with something wrong in it.
pub(crate) fn acl_not_loaded(why: &str) -> ErrorReply {
    ErrorReply::new(format!("ERR {why}"))
}

/// `PROXY KILL` without a number.
pub(crate) const CLIENT_NUMBER: &str = "ERR a client's number is needed, as PROXY SHOW CLIENTS shows it";

/// An order to a process in which nothing carries it out.
pub(crate) const NO_ORDERS: &str = "ERR this process takes no such orders";

/// `CLIENT UNBLOCK` for another reason than those that there are.
pub(crate) const UNBLOCK_REASON: &str = "ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR";

/// `CLIENT PAUSE` in another mode than those that there are.
pub(crate) const PAUSE_MODE: &str = "ERR CLIENT PAUSE mode must be WRITE or ALL";

/// `CLIENT LIST ID` of no number.
pub(crate) const INVALID_CLIENT_ID: &str = "ERR Invalid client ID";

/// `CLIENT KILL ID` of a number that no client has.
pub(crate) const CLIENT_ID_NOT_POSITIVE: &str = "ERR client-id should be greater than 0";

/// `CLIENT KILL MAXAGE` of no time.
pub(crate) const MAXAGE_NOT_POSITIVE: &str = "ERR maxage should be greater than 0";

/// `CLIENT KILL MAXAGE` of no number.
pub(crate) const MAXAGE_NOT_AN_INTEGER: &str = "ERR maxage is not an integer or out of range";

/// Bytes that are no requests. As Redis words it.
pub(crate) fn malformed(error: &dyn Display) -> ErrorReply {
    ErrorReply::new(format!("ERR Protocol error: {error}"))
}

/// Parameters of a process that has none.
pub(crate) const NO_PARAMETERS: &str = "ERR there are no parameters here";

/// `SELECT` of a number that is no C `int`. As Redis words it.
pub(crate) const DATABASE_OUT_OF_RANGE: &str =
    "ERR value is out of range, value must between -2147483648 and 2147483647";

/// `READONLY` and its kin. As Redis words it.
pub(crate) const NO_CLUSTER: &str = "ERR This instance has cluster support disabled";

/// `CONFIG SET acl-pubsub-default`. As Redis words it.
pub(crate) const ACL_PUBSUB_DEFAULT: &str = "ERR CONFIG SET failed (possibly related to argument 'acl-pubsub-default') - argument(s) must \
     be one of the following: allchannels, resetchannels";

/// `CONFIG SET acllog-max-len`. As Redis words it.
pub(crate) const ACLLOG_MAX_LEN: &str = "ERR CONFIG SET failed (possibly related to argument 'acllog-max-len') - argument couldn't be \
     parsed into an integer";

/// `DEBUG` of a server whose file does not allow it.
pub(crate) const DEBUG_NOT_ALLOWED: &str = "ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", \
     you can run it from a local connection, otherwise you need to set this option in the configuration file, and then restart the \
     server.";

/// `EVAL` within MULTI of a client that debugs.
pub(crate) const NO_DEBUGGING_IN_MULTI: &str =
    "ERR a script cannot be debugged within MULTI; SCRIPT DEBUG NO ends debugging";

/// `DEBUG` about all keys where engines share them.
pub(crate) const DEBUG_OF_ONE_ENGINE: &str =
    "ERR this subcommand of DEBUG is about the keys of one engine, and this server has several (engine_threads)";

/// `DEBUG CLOCK` with other words than there are.
pub(crate) const DEBUG_CLOCK: &str =
    "ERR DEBUG CLOCK takes ADVANCE milliseconds, SET unix-time-milliseconds, FREEZE or RUN";

/// `DEBUG CLOCK` in a transaction, for which time stands still.
pub(crate) const DEBUG_CLOCK_IN_EXEC: &str = "ERR the clock cannot be moved within a transaction";

/// `SHUTDOWN` of one server among several pools.
pub(crate) const SHUTDOWN_OTHER_POOLS: &str =
    "ERR Errors trying to SHUTDOWN: several pools share this process, and all would end with it";

/// A client tracks more prefixes than a client may.
pub(crate) const TOO_MANY_PREFIXES: &str = "ERR too many prefixes of one connection";

/// A node's password, as CONFIG SET of the proxy's own sets no node's.
pub(crate) const PASSWORD_OF_NODE: &str =
    "ERR the password of a node is not set through the proxy, which would be locked out of it";

/// A prefix of keys to be told of is longer than it may be.
pub(crate) const LONG_PREFIX: &str = "ERR a prefix of keys to be told of is too long";

/// Nodes named in the error at most.
pub(crate) const LEFT_NODES_MAX: usize = 10;

/// The client that gave the order has closed its side.
pub(crate) const WAITS_NO_MORE: &str = "ERR the order holds, but is not waited for any more";

/// More than `SETTLING_MAX` replies wait.
pub(crate) const TOO_MANY_WAIT: &str = "ERR the order holds, but too many clients wait for orders already";

/// A worker has not carried out the order in time.
pub(crate) const WORKER_BUSY: &str = "ERR a worker is busy and has not carried out the order yet; try again later";

/// A worker has not told its part of a table in time.
pub(crate) const WORKER_SILENT: &str = "ERR a worker is busy and has not answered; try again later";

/// What the user may do has changed since a large request began, in a way that its beginning does not decide.
pub(crate) const RIGHTS_ON_THE_WAY: &str =
    "NOPERM the rights of the user have changed since the request began; the command was not sent";

/// The key of a large request has another place by now than the node that has its beginning.
pub(crate) const MOVED_ON_THE_WAY: &str =
    "ERR the settings have another place for the key since the request began; the command was not sent";

/// Why a held request is refused. `None`: all nodes are paused.
pub(crate) fn paused_for_long(node: Option<&str>) -> String {
    let node = node.map_or_else(String::new, |name| format!(" to node {name}"));
    let words = format!("requests{node} are paused by an operator, for longer than pause_timeout");
    words.replace(|c: char| c.is_control(), " ")
}

/// The same for EXEC.
pub(crate) fn exec_paused(words: &str) -> ErrorReply {
    aborted(&verbatim(&format!("{words}; nothing of it was sent")))
}

/// Beyond any sane number of databases in use at once.
pub(crate) const TOO_MANY_CLASSES: &str = "ERR too many databases and protocols are in use at once; try again later";

/// What a client gets whose `SELECT` could not be done, for everything that a database matters to.
pub(crate) const NO_DATABASE: &str = "ERR no database is selected since the last SELECT could not be done: SELECT again, RESET \
     or reconnect; the command was not sent";
/// The reply to a client that could not become the user that it named.
pub(crate) const NO_USER: &str = "NOAUTH Authentication required: the last AUTH could not be done; authenticate again, RESET \
     or reconnect; the command was not sent";
/// What a client gets that could not be given the protocol that it named.
pub(crate) const NO_DIALECT: &str = "ERR the protocol of the last HELLO could not be had: HELLO again, RESET or reconnect; the \
     command was not sent";

/// A transaction under routes has requests that lead to different pools.
pub(crate) const BLOCK_IN_TWO_POOLS: &str =
    "ERR a transaction stays in one pool, and routes lead this command to another";
/// A transaction under routes wants another database, in which other routes may hold.
pub(crate) const SELECT_UNDER_ROUTES: &str = "ERR SELECT inside MULTI is not supported under routes";
/// What a client gets that connects beyond a limit.
pub(crate) const TOO_MANY_CLIENTS: &str = "ERR max number of clients reached";
/// The reply to a client that connects or subscribes while the memory budget of the process is used up.
pub(crate) const OUT_OF_MEMORY: &str = "ERR memory budget exceeded, try again later";
/// The reply to a client that the program around the proxy refuses.
pub(crate) const NOT_ADMITTED: &str = "ERR connection refused by policy";

/// What a client gets that connects while the process drains.
pub(crate) const DRAINING: &str = "ERR the server is shutting down";

/// What a client gets from elsewhere while the default user needs no password.
pub(crate) const PROTECTED: &str = "DENIED Respool is running in protected mode: the default user needs no password, so \
     only clients of this machine are accepted. Set a password (requirepass, an ACL file or a [users.default] table), or \
     turn protected_mode off if no other machine can reach this address.";
/// The reply to a client whose user has reached its limit of connections.
pub(crate) const TOO_MANY_OF_USER: &str = "ERR max number of clients of this user reached";
/// The reply to a client whose user has its own credentials at nodes, while as many such users as are allowed are connected.
pub(crate) const TOO_MANY_NODE_USERS: &str =
    "ERR too many users with their own node credentials are connected, try again later";
/// `SORT ... BY` that would read keys that the user may not read. As Redis words it.
pub(crate) const SORT_BY_DENIED: &str = "ERR BY option of SORT denied due to insufficient ACL permissions.";
/// `SORT ... GET` that would.
pub(crate) const SORT_GET_DENIED: &str = "ERR GET option of SORT denied due to insufficient ACL permissions.";
/// A script of a user that may not do everything.
pub(crate) const SCRIPT_UNTRUSTED: &str = "NOPERM scripts run on the node with the rights of the proxy's own user there, \
     which may be more than this user's; the setting script_trust allows them";
/// `ACL LOAD` or `ACL SAVE` without a file. As Redis words it.
pub(crate) const NO_ACL_FILE: &str = "ERR This Redis instance is not configured to use an ACL file. You may want to specify \
     users via the ACL SETUSER command and then issue a CONFIG REWRITE (assuming you have a Redis configuration file \
     set) in order to store users in the Redis configuration.";
/// `ACL SAVE` failed. As Redis words it.
pub(crate) const ACL_FILE_NOT_SAVED: &str =
    "ERR There was an error trying to save the ACLs. Please check the server logs for more information";

/// The nodes could not be asked whether they know a command that the table does not have.
pub(crate) fn not_learnt(full_name: &str, error: &ErrorReply) -> ErrorReply {
    let error = String::from_utf8_lossy(error.words());
    verbatim(&format!(
        "TRYAGAIN the nodes could not be asked whether they have the command '{full_name}', which was not executed: {error}"
    ))
}

/// EXEC itself was refused, for this reason. Nothing of its transaction has run.
pub(crate) fn aborted(refusal: &ErrorReply) -> ErrorReply {
    ErrorReply::of(|words| texts::exec_refused(refusal.words(), words))
}

/// What the user may not do, as Redis words it.
pub(crate) fn denied(row: &Row, denial: Denial) -> ErrorReply {
    ErrorReply::new(match denial {
        Denial::Command => return denied_command(row.full_name()),
        Denial::Key(_) => "NOPERM this user has no permissions to access one of the keys used as arguments",
        Denial::Channel(_) => "NOPERM this user has no permissions to access one of the channels used as arguments",
    })
}

/// The same for a request of a transaction that was queued when the user might.
pub(crate) fn denied_in_transaction(denial: Denial) -> ErrorReply {
    let why = match denial {
        Denial::Command => "no permission to execute the command or subcommand",
        Denial::Key(_) => "no permission to touch the specified keys",
        Denial::Channel(_) => "no permission to access one of the channels used as arguments to the command",
    };
    ErrorReply::new(format!(
        "NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. This command is no longer \
         allowed for the following reason: {why}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_cannot_break_the_line() {
        let error = not_sent("n\r\n+OK", &"a\r\nb");
        let line = error.as_bytes();
        assert_eq!(line.iter().filter(|b| **b == b'\n').count(), 1);
        assert!(line.starts_with(b"-ERR node n  +OK is not available: a  b;") && line.ends_with(b"\r\n"));
    }
}
