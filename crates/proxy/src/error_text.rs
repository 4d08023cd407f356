//! What clients are told when a node fails them. Each says which node, what happened and whether the command may have run.

use respool_access::Denial;
use respool_command::Row;
use std::fmt::Display;

/// An error about a node, as a whole RESP error. Control characters of names and causes cannot end the line.
fn error(words: String) -> Vec<u8> {
    verbatim(&format!("ERR {words}"))
}

/// The request never left.
pub(crate) fn not_sent(node: &str, cause: &dyn Display) -> Vec<u8> {
    error(format!("node {node} is not available: {cause}; the command was not sent"))
}

/// The request left, or a part of it, and no reply will come.
pub(crate) fn broken_off(node: &str, cause: &dyn Display) -> Vec<u8> {
    error(format!("node {node} {cause}; the command may or may not have been executed"))
}

/// The request left and no reply has come in time.
pub(crate) fn timed_out(node: &str, response_us: u64) -> Vec<u8> {
    let after = response_us / 1000;
    error(format!("node {node} did not answer within {after} ms; the command may or may not have been executed"))
}

/// The node answered, and could not prove whose its answer is.
pub(crate) fn unproved(node: &str, error: &[u8]) -> Vec<u8> {
    let cause = String::from_utf8_lossy(words(error)).into_owned();
    broken_off(node, &format!("could not prove its reply ({cause})"))
}

/// A reply that has to be kept whole does not fit what may be held for its client.
pub(crate) fn reply_too_large(max: usize) -> Vec<u8> {
    error(format!("the reply is larger than client_output_hard_bytes ({max} bytes) allows"))
}

/// The node's answer is larger than what is held until it is proved.
pub(crate) fn too_large_to_prove(node: &str) -> Vec<u8> {
    broken_off(node, &"sent a reply that is too large to be proved")
}

/// An operator has drained the node.
pub(crate) fn drained(node: &str) -> Vec<u8> {
    error(format!("node {node} is not available: it was drained by an operator; the command was not sent"))
}

/// Other nodes were configured while a client waited for their word.
pub(crate) fn nodes_changed() -> Vec<u8> {
    error("the nodes were changed meanwhile; try again".to_owned())
}

/// Other nodes were configured while a request waited that cannot be asked again as it was: what it waits for depends on when
/// the node reads it. The first words are those by which Redis lets clients go when a node's role has changed; libraries take
/// them as a reason to try again.
pub(crate) fn unblocked_by_change() -> Vec<u8> {
    verbatim("UNBLOCKED force unblock from blocking operation, the nodes were changed; try again")
}

/// Users or orders are changed in a process whose clients another one takes over: it would not hear of the change.
pub(crate) const HANDED_OVER: &str =
    "ERR another process takes over from this one and would not hear of this; connect again and repeat it";

/// The node is not configured any more.
pub(crate) fn gone(node: &str) -> Vec<u8> {
    error(format!("node {node} is not configured any more; the command was not sent"))
}

/// Too much waits for the node already.
pub(crate) fn queue_full(node: &str) -> Vec<u8> {
    error(format!("node {node} is overloaded: too many bytes wait for it; the command was not sent"))
}

/// Too many clients have connections to the node to themselves already.
pub(crate) fn too_many_private(node: &str) -> Vec<u8> {
    error(format!("node {node} is overloaded: too many connections to it are pinned; the command was not sent"))
}

/// Too many clients in pool mode `session` have connections to the node already.
pub(crate) fn too_many_own(node: &str) -> Vec<u8> {
    error(format!(
        "node {node} is overloaded: too many clients have connections to it to themselves; the command was not sent"
    ))
}

/// The user's clients have as many connections to themselves as they may.
pub(crate) fn too_many_of_user() -> Vec<u8> {
    error(
        "this user has as many connections to itself as it may (private_connections); the command was not sent"
            .to_owned(),
    )
}

/// More clients want connections to themselves than there are numbers.
pub(crate) const TOO_MANY_OWNERS: &str =
    "ERR too many clients have connections to themselves; the command was not sent";

/// The command needs something that a pooled connection does not have yet.
pub(crate) fn unsupported(name: &str, because: &str) -> Vec<u8> {
    error(format!("{name} is not supported here: {because}"))
}

/// The command steers nodes, and the proxy is told not to let clients do that.
pub(crate) fn admin_refused(name: &str) -> String {
    format!("NOPERM {name} steers the nodes, which this proxy does not let clients do (admin_commands = refuse)")
}

/// A node's own error text, passed on as an error.
pub(crate) fn verbatim(words: &str) -> Vec<u8> {
    let mut line = Vec::with_capacity(words.len() + 3);
    line.push(b'-');
    line.extend(words.bytes().map(|b| if b.is_ascii_control() { b' ' } else { b }));
    line.extend_from_slice(b"\r\n");
    line
}

/// The private connection on which keys were watched is gone.
pub(crate) fn pin_lost() -> Vec<u8> {
    error("the connection on which keys were watched is lost; the transaction was not executed".to_owned())
}

/// A replica of all nodes would be given a key twice.
pub(crate) const KEYS_ON_SEVERAL_NODES: &str =
    "with dead_node = next a key may be on several nodes, and a replica can have it once; ask the nodes themselves";

/// A replica of all nodes wants a part of their snapshots.
pub(crate) const NO_FILTERED_SNAPSHOT: &str = "ERR REPLCONF rdb-filter-only is not supported here: snapshots of several nodes are joined whole; ask a node itself";

/// REPLCONF has an option that is not known. As Redis says it.
pub(crate) fn unknown_replconf(option: &[u8]) -> String {
    format!("ERR Unrecognized REPLCONF option: {}", option.escape_ascii())
}

/// The streams of several nodes cannot be made one.
pub(crate) fn cannot_merge(why: &str) -> Vec<u8> {
    error(format!("the nodes cannot be followed as one: {why}"))
}

/// The connection on which a node was told of a replica is gone.
pub(crate) fn replica_lost() -> Vec<u8> {
    error("the connection on which the node was told of this replica is lost; begin anew".to_owned())
}

/// A node has answered a transaction in a way that does not fit what it was sent.
pub(crate) fn exec_in_doubt() -> Vec<u8> {
    error("the node's answer does not fit the transaction; it may or may not have been executed".to_owned())
}

/// A node answers MULTI as no node should, or does not end an empty transaction.
pub(crate) fn multi_in_doubt() -> Vec<u8> {
    error("the node's answers to MULTI and EXEC do not fit; the transaction was not executed".to_owned())
}

/// What went wrong before a transaction was sent; none of it has been.
pub(crate) fn not_executed(cause: &[u8]) -> Vec<u8> {
    let words = String::from_utf8_lossy(words(cause)).into_owned();
    let cause = words.split("; the command may or may not").next().unwrap_or_default();
    verbatim(&format!("{cause}; the transaction was not executed"))
}

/// A node answers a request that waits as no node should.
pub(crate) fn blocked_in_doubt() -> Vec<u8> {
    error("the node's answer does not fit the command; it may or may not have been executed".to_owned())
}

/// Too many requests wait already.
pub(crate) fn too_many_blocked() -> Vec<u8> {
    error("too many clients wait already; the command was not sent".to_owned())
}

/// All connections on which requests may wait are taken, and this one cannot be sent later.
pub(crate) fn no_blocking_connection(node: &str) -> Vec<u8> {
    error(format!("all connections to node {node} on which commands may wait are taken; the command was not sent"))
}

/// The time of a request is over, and its node could not be asked for it.
pub(crate) fn not_asked(node: &str) -> Vec<u8> {
    not_sent(node, &"it could not be asked in time")
}

/// A transaction with more commands than the settings allow.
pub(crate) fn transaction_too_long(max: usize) -> String {
    format!("ERR transaction too long: more than {max} commands")
}

/// A transaction with more bytes than the settings allow.
pub(crate) fn transaction_too_large(max: usize) -> String {
    format!("ERR transaction too large: its commands have more than {max} bytes")
}

/// A command of a transaction that only all nodes together can answer.
pub(crate) fn block_on_all_nodes(name: &str) -> String {
    format!("ERR '{name}' over several nodes cannot be part of a transaction")
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

/// `LATENCY GRAPH` of an event that has not happened.
pub(crate) fn no_latency_samples(event: &[u8]) -> Vec<u8> {
    [b"ERR No samples available for event '", event, b"'"].concat()
}

/// `DEBUG` of a server whose file does not allow it.
pub(crate) const DEBUG_NOT_ALLOWED: &str = "ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", \
     you can run it from a local connection, otherwise you need to set this option in the configuration file, and then restart the \
     server.";

/// `DEBUG` about all keys where engines share them.
pub(crate) const DEBUG_OF_ONE_ENGINE: &str =
    "ERR this subcommand of DEBUG is about the keys of one engine, and this server has several (engine_threads)";

/// `SHUTDOWN` of one server among several pools.
pub(crate) const SHUTDOWN_OTHER_POOLS: &str =
    "ERR Errors trying to SHUTDOWN: several pools share this process, and all would end with it";

/// What follows a setting of ours that was named beside others. Those may be the nodes'.
pub(crate) const SET_ALONE: &str = "') - it is a setting of the proxy and has to be set alone";

/// A client tracks more prefixes than a client may.
pub(crate) const TOO_MANY_PREFIXES: &str = "ERR too many prefixes of one connection";

/// The node is too old to tell of changed keys.
pub(crate) fn no_tracking(node: &str) -> Vec<u8> {
    error(format!("node {node} knows no RESP3, in which changed keys are told of"))
}

/// A whole error without what the encoder adds.
pub(crate) fn words(error: &[u8]) -> &[u8] {
    error.strip_prefix(b"-").and_then(|e| e.strip_suffix(b"\r\n")).unwrap_or(error)
}

/// Nodes named in the error at most.
pub(crate) const LEFT_NODES_MAX: usize = 10;

/// The reply to an order that has not settled in time. `left` names what is left.
pub(crate) fn not_settled(left: &str) -> Vec<u8> {
    error(format!("the order holds, but not everything has settled within drain_timeout: {left}"))
}

/// The client that gave the order has closed its side.
pub(crate) const WAITS_NO_MORE: &[u8] = b"-ERR the order holds, but is not waited for any more\r\n";

/// More than `SETTLING_MAX` replies wait.
pub(crate) const TOO_MANY_WAIT: &[u8] = b"-ERR the order holds, but too many clients wait for orders already\r\n";

/// A worker has not carried out the order in time.
pub(crate) const WORKER_BUSY: &[u8] =
    b"-ERR a worker is busy and has not carried out the order yet; try again later\r\n";

/// Why a held request is refused. `None`: all nodes are paused.
pub(crate) fn paused_for_long(node: Option<&str>) -> String {
    let node = node.map_or_else(String::new, |name| format!(" to node {name}"));
    let words = format!("requests{node} are paused by an operator, for longer than pause_timeout");
    words.replace(|c: char| c.is_control(), " ")
}

/// INFO of a paused node without a remembered reply.
pub(crate) fn info_of_paused(node: &str) -> Vec<u8> {
    error(format!("node {node} is paused, and nothing is known of it from before; the command was not sent"))
}

/// Beyond any sane number of databases in use at once.
pub(crate) const TOO_MANY_CLASSES: &[u8] = b"ERR too many databases and protocols are in use at once; try again later";

/// No node can say whether it has a database.
pub(crate) fn no_node_for_database(database: u32) -> Vec<u8> {
    error(format!("no node can say whether it has database {database}"))
}

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
pub(crate) const BLOCK_IN_TWO_POOLS: &[u8] =
    b"ERR a transaction stays in one pool, and routes lead this command to another";
/// A client subscribes to more patterns than one may.
pub(crate) fn too_many_patterns() -> String {
    format!("ERR too many patterns: one client may subscribe to {} at a time", crate::limits::PATTERNS_PER_CLIENT_MAX)
}

/// A transaction under routes wants another database, in which other routes may hold.
pub(crate) const SELECT_UNDER_ROUTES: &[u8] = b"ERR SELECT inside MULTI is not supported under routes";
/// What a client gets that connects beyond a limit.
pub(crate) const TOO_MANY_CLIENTS: &[u8] = b"-ERR max number of clients reached\r\n";
/// What a client gets that connects while the process holds as many bytes as it may.
pub(crate) const OUT_OF_MEMORY: &[u8] = b"-ERR the proxy holds as many bytes as it may; try again later\r\n";
/// The reply to a client that the program around the proxy refuses.
pub(crate) const NOT_ADMITTED: &[u8] = b"-ERR connection refused by policy\r\n";

/// `CONFIG SET` of what every server has for itself, where there are several: what follows the setting's name.
pub(crate) const SET_OF_ONE: &str =
    "') - each node has a value of its own, and there are several: name the node (PROXY NODE)";

/// A node has answered what may hold secrets in another form than is known.
pub(crate) const NOT_SHOWN: &[u8] = b"-ERR what the node has answered is not shown: its form is not known\r\n";

/// What a client gets that connects while the process drains.
pub(crate) const DRAINING: &[u8] = b"-ERR the server is shutting down\r\n";

/// What a client gets from elsewhere while the default user needs no password.
pub(crate) const PROTECTED: &[u8] = b"-DENIED Respool is running in protected mode: the default user needs no password, so \
     only clients of this machine are accepted. Set a password (requirepass, an ACL file or a [users.default] table), or \
     turn protected_mode off if no other machine can reach this address.\r\n";
/// What a client gets whose user has all its connections.
pub(crate) const TOO_MANY_OF_USER: &str = "ERR max number of clients of this user reached";
/// What a client gets whose user would be one too many with connections to nodes of its own.
pub(crate) const TOO_MANY_SPEAKERS: &str =
    "ERR too many users with connections of their own to nodes are connected; try again later";
/// The same on connecting.
pub(crate) const TOO_MANY_SPEAKERS_COME: &[u8] =
    b"-ERR too many users with connections of their own to nodes are connected; try again later\r\n";
/// What a client gets on connecting whose user would be one too many.
pub(crate) const TOO_MANY_OF_DEFAULT: &[u8] = b"-ERR max number of clients of this user reached\r\n";
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
pub(crate) fn not_learnt(full_name: &str, error: &[u8]) -> Vec<u8> {
    let error = String::from_utf8_lossy(error).replace(|c: char| c.is_control(), " ");
    format!("TRYAGAIN the nodes could not be asked whether they have the command '{full_name}', which was not executed: {error}")
        .into_bytes()
}

/// A node knows a command, and as many were learnt as may be.
pub(crate) fn learnt_enough(full_name: &str) -> Vec<u8> {
    format!("ERR the command '{full_name}' is not supported: too many commands were learnt from the nodes").into_bytes()
}

/// The user may not run a command, as Redis words it; without the leading `-` and the line's end.
pub(crate) fn denied_command(full_name: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"NOPERM this user has no permissions to run the '");
    out.extend_from_slice(full_name.as_bytes());
    out.extend_from_slice(b"' command");
}

/// What the user may not do, as Redis words it; without the leading `-` and the line's end.
pub(crate) fn denied(row: &Row, denial: Denial, out: &mut Vec<u8>) {
    match denial {
        Denial::Command => denied_command(row.full_name(), out),
        Denial::Key(_) => {
            out.extend_from_slice(b"NOPERM this user has no permissions to access one of the keys used as arguments")
        }
        Denial::Channel(_) => out
            .extend_from_slice(b"NOPERM this user has no permissions to access one of the channels used as arguments"),
    }
}

/// The same for a request of a transaction that was queued when the user might.
pub(crate) fn denied_in_transaction(denial: Denial) -> String {
    let why = match denial {
        Denial::Command => "no permission to execute the command or subcommand",
        Denial::Key(_) => "no permission to touch the specified keys",
        Denial::Channel(_) => "no permission to access one of the channels used as arguments to the command",
    };
    format!(
        "NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. This command is no longer \
         allowed for the following reason: {why}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_cannot_break_the_line() {
        let line = not_sent("n\r\n+OK", &"a\r\nb");
        assert_eq!(line.iter().filter(|b| **b == b'\n').count(), 1);
        assert!(line.starts_with(b"-ERR node n  +OK is not available: a  b;") && line.ends_with(b"\r\n"));
    }
}
