//! What two equal servers may say differently, and why. Whatever is not listed here has to be the same byte for byte.
//!
//! The list is read by the script that sends every command of the table ([`Subset::Table`](crate::Subset)), by the
//! comparison, and by `cargo xtask differential --list` prints it.

/// How much alike two replies have to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Likeness {
    /// The same bytes.
    Same,
    /// The same elements at every depth, in any order.
    Unordered,
    /// The same types in the same places; aggregates of the same length.
    Alike,
    /// Both of one type, or both errors.
    Kind,
    /// The request is not sent at all.
    NotSent,
}

impl Likeness {
    /// How much alike a reply has to be that has one part of each.
    pub fn of_both(self, other: Self) -> Self {
        match (self.min(other), self.max(other)) {
            // Parts that are alike in another order are not alike.
            (Self::Unordered, Self::Alike) => Self::Kind,
            (_, least) => least,
        }
    }
}

/// One entry of the list.
#[derive(Debug)]
pub struct Difference {
    /// The rows it is about: full names in capitals, `,` between them, `*` for all that begin so.
    pub commands: &'static str,
    /// How much alike the replies still have to be.
    pub likeness: Likeness,
    /// Why no more can be asked.
    pub reason: &'static str,
}

const fn difference(commands: &'static str, likeness: Likeness, reason: &'static str) -> Difference {
    Difference { commands, likeness, reason }
}

/// What differs between any two servers, whatever is between them and the client.
pub const DIFFERENCES: &[Difference] = &[
    difference(
        "KEYS,SMEMBERS,SINTER,SUNION,SDIFF,HGETALL,HKEYS,HVALS,SCAN,SSCAN,HSCAN,ZSCAN,SPOP,SORT,SORT_RO,CONFIG GET,\
         FUNCTION LIST,COMMAND,COMMAND LIST,COMMAND INFO,COMMAND DOCS,MODULE LIST",
        Likeness::Unordered,
        "the order hangs on a hash seed of the server's own; scans ask for everything at once",
    ),
    difference("ACL CAT", Likeness::Kind, "the table here has commands of later servers too"),
    difference(
        "RANDOMKEY,SRANDMEMBER,HRANDFIELD,ZRANDMEMBER",
        Likeness::Kind,
        "picked at random; what is picked may be missing on one side and not on the other",
    ),
    difference("DUMP,FUNCTION DUMP", Likeness::Kind, "serialised in an order that hangs on a hash seed"),
    difference(
        "TTL,PTTL,EXPIRETIME,PEXPIRETIME,TIME,LASTSAVE,OBJECT IDLETIME,XPENDING,XINFO CONSUMERS,XINFO STREAM,XAUTOCLAIM",
        Likeness::Alike,
        "counted by the server's clock",
    ),
    difference(
        "OBJECT FREQ,OBJECT REFCOUNT,MEMORY USAGE",
        Likeness::Alike,
        "how a value is held hangs on how its bytes arrived",
    ),
    difference(
        "INFO,SLOWLOG GET,SLOWLOG LEN,LATENCY LATEST,LATENCY HISTORY,LATENCY DOCTOR,LATENCY GRAPH,LATENCY RESET,\
         LATENCY HISTOGRAM,MEMORY STATS,MEMORY DOCTOR,MEMORY MALLOC-STATS,ROLE,CLIENT LIST,CLIENT INFO,LOLWUT",
        Likeness::Kind,
        "describes the one server, its load and its clients",
    ),
    difference(
        "HELLO,CLIENT ID",
        Likeness::Alike,
        "numbers of connections are given out by the server that accepts them",
    ),
    difference(
        "ACL GENPASS,ACL LOG,ACL LIST,ACL GETUSER",
        Likeness::Kind,
        "random, or in an order and with times of the server's own",
    ),
    difference("SHUTDOWN,QUIT", Likeness::NotSent, "ends the connection or the server"),
    difference("CLIENT REPLY", Likeness::NotSent, "has no reply; played by several clients in lock step"),
    difference("CLIENT PAUSE", Likeness::NotSent, "stops the comparison for as long; tested by itself"),
    difference(
        "MONITOR,SYNC,PSYNC,REPLCONF,SCRIPT DEBUG",
        Likeness::NotSent,
        "turns the connection into something that does not answer requests",
    ),
    difference(
        "SUBSCRIBE,PSUBSCRIBE,SSUBSCRIBE,UNSUBSCRIBE,PUNSUBSCRIBE,SUNSUBSCRIBE",
        Likeness::NotSent,
        "answered by any number of pushes; played by several clients in lock step",
    ),
    difference(
        "BLPOP,BRPOP,BLMOVE,BRPOPLPUSH,BLMPOP,BZPOPMIN,BZPOPMAX,BZMPOP,WAIT",
        Likeness::NotSent,
        "wait, and would stop the comparison for as long; played by several clients in lock step",
    ),
    difference("BGSAVE,BGREWRITEAOF", Likeness::NotSent, "the reply hangs on whether the last fork has ended"),
    difference(
        "CLIENT SETINFO,CLIENT NO-TOUCH",
        Likeness::NotSent,
        "newer than the redis-server that is compared with, and answered here whatever the node is",
    ),
    difference("DEBUG,PFDEBUG,PFSELFTEST", Likeness::NotSent, "meant to break, or to take seconds"),
    difference(
        "CLIENT HELP,COMMAND HELP,ACL HELP,PUBSUB HELP",
        Likeness::NotSent,
        "help is in the words of the server that answers",
    ),
    difference(
        "WATCH",
        Likeness::NotSent,
        "keys that are watched in one database or protocol do not go with a transaction in another, which is refused; \
         played by several clients in lock step",
    ),
    difference(
        "MODULE LOAD,MODULE LOADEX,MODULE UNLOAD",
        Likeness::NotSent,
        "a server that may not do it refuses it when it is queued in a transaction, the proxy when that is executed",
    ),
    difference("PROXY *", Likeness::NotSent, "the proxy's own console"),
    difference(
        "MULTI",
        Likeness::NotSent,
        "not by itself: only with a few requests and an EXEC or DISCARD behind it, none of them HELLO, as the proxy executes no \
         transaction that returns to RESP2 or becomes another user's before a node's requests",
    ),
];

/// What the embedded server may say differently besides, compared with a redis-server.
pub const EMBEDDED_DIFFERENCES: &[Difference] = &[
    difference(
        "CONFIG SET,CONFIG REWRITE,CONFIG RESETSTAT",
        Likeness::NotSent,
        "changes the settings or figures that the comparison itself relies on; parameters have tests of their own",
    ),
    difference(
        "LASTSAVE,SAVE,BGSAVE,BGREWRITEAOF",
        Likeness::NotSent,
        "about a server's files, which an engine does not have, and says so",
    ),
    difference(
        "COMMAND,COMMAND COUNT,COMMAND INFO,COMMAND LIST,COMMAND DOCS",
        Likeness::Kind,
        "the table here has commands of later servers, its own words on what each is for, and no notes on keys",
    ),
    difference(
        "SORT,SORT_RO",
        Likeness::Unordered,
        "the order hangs on a hash seed where weights are equal; and redis-server refuses to sort numbers once it has met one \
         out of range anywhere, which is not held against the engine",
    ),
    difference(
        "OBJECT HELP,XGROUP HELP,XINFO HELP,SCRIPT HELP,FUNCTION HELP,LATENCY HELP,MEMORY HELP,MODULE HELP,CONFIG HELP,\
         SLOWLOG HELP",
        Likeness::NotSent,
        "help is in the words of the server that answers",
    ),
];

/// Whether an error says that what was asked is not in one of several engines, or that a transaction selected a database which was refused for that.
pub(crate) fn is_refused_by_engines(reply: &[u8]) -> bool {
    let holds = |part: &[u8]| reply.windows(part.len()).any(|window| window == part);
    reply.starts_with(b"-CROSSSLOT ")
        || reply.starts_with(b"-ERR '") && holds(b" over several nodes")
        || reply.starts_with(b"-ERR no database is selected since the last SELECT could not be done")
}

fn listed(list: &'static [Difference], name: &str) -> Option<&'static Difference> {
    let is_meant = |listed: &str| match listed.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => listed == name,
    };
    list.iter().find(|one| one.commands.split(',').any(|listed| is_meant(listed.trim())))
}

/// What is listed of a row, if anything is.
pub fn difference_of(name: &str) -> Option<&'static Difference> {
    listed(DIFFERENCES, name)
}

/// What is listed of a row for the embedded server alone.
pub fn embedded_difference_of(name: &str) -> Option<&'static Difference> {
    listed(EMBEDDED_DIFFERENCES, name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_names_rows_that_exist_each_once() {
        for list in [DIFFERENCES, EMBEDDED_DIFFERENCES] {
            let mut seen = std::collections::HashSet::new();
            for name in list.iter().flat_map(|one| one.commands.split(',')).map(str::trim) {
                let start = name.trim_end_matches('*');
                assert!(
                    respool_command::all().any(|row| row.name == name || start != name && row.name.starts_with(start)),
                    "{name}"
                );
                assert!(seen.insert(name), "{name} is listed twice");
            }
        }
    }
}
