//! The closed sets in which a row says where a request goes and how its replies are joined.

/// The group under which a command is documented.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Group {
    /// Bit operations on strings.
    Bitmap,
    /// Redis Cluster.
    Cluster,
    /// The connection and its state.
    Connection,
    /// Keys of any type.
    Generic,
    /// Geospatial indexes.
    Geo,
    /// Hashes.
    Hash,
    /// HyperLogLogs.
    Hyperloglog,
    /// Lists.
    List,
    /// The console of the proxy: ours alone.
    Proxy,
    /// Publish and subscribe.
    Pubsub,
    /// Scripts and functions.
    Scripting,
    /// The server itself.
    Server,
    /// Sets.
    Set,
    /// Sorted sets.
    SortedSet,
    /// Streams.
    Stream,
    /// Strings.
    String,
    /// Transactions.
    Transactions,
}

impl Group {
    /// The group's name as `COMMAND DOCS` writes it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bitmap => "bitmap",
            Self::Cluster => "cluster",
            Self::Connection => "connection",
            Self::Generic => "generic",
            Self::Geo => "geo",
            Self::Hash => "hash",
            Self::Hyperloglog => "hyperloglog",
            Self::List => "list",
            Self::Proxy => "proxy",
            Self::Pubsub => "pubsub",
            Self::Scripting => "scripting",
            Self::Server => "server",
            Self::Set => "set",
            Self::SortedSet => "sorted-set",
            Self::Stream => "stream",
            Self::String => "string",
            Self::Transactions => "transactions",
        }
    }
}

/// What kind of upstream connection a request needs. See ARCHITECTURE.md for the lanes themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lane {
    /// Any: the request leaves no state on its connection and does not wait, so it shares one with all others.
    Shared,
    /// Enters, needs or leaves a transaction's state: `WATCH`, `MULTI`, `EXEC`, `DISCARD`, `UNWATCH`.
    Pinned,
    /// May wait on the server, and would make all requests behind it wait.
    Blocking,
    /// Changes subscriptions, or publishes to subscribers.
    Push,
    /// About the session or Respool itself: never goes upstream.
    Local,
    /// Any, but it is for operators: it steers a server or shows what only its administrators should see.
    Admin,
    /// Any, but it is about scripts, which a node may have forgotten, or may be busy with.
    Script,
    /// Turns its connection into something else, for good or in a way that cannot be taken back: `MONITOR`, `SYNC`.
    Dedicated,
}

impl Lane {
    /// Its name in documentation and on the console.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Shared => "shared",
            Self::Pinned => "pinned",
            Self::Blocking => "blocking",
            Self::Push => "push",
            Self::Local => "local",
            Self::Admin => "admin",
            Self::Script => "script",
            Self::Dedicated => "dedicated",
        }
    }
}

/// To which nodes a request goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RequestPolicy {
    /// The node of its keys, which must be one node; the default node if it has no key.
    OneShard,
    /// May be split into one request per node, each with that node's keys.
    SplitByKey,
    /// Every shard once: all data is asked, replicas are not.
    AllShards,
    /// Every node, replicas included.
    AllNodes,
    /// Any one node: the answer does not depend on which.
    AnyNode,
    /// Has rules of its own: `SCAN`.
    Special,
}

/// How the replies of several nodes become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResponsePolicy {
    /// There is one reply, and it is passed on.
    Single,
    /// Elements of arrays go back to the order of the request's keys.
    KeyOrder,
    /// Integers are added.
    Sum,
    /// The least integer.
    Min,
    /// The greatest integer.
    Max,
    /// Integers, or arrays of integers element by element: 1 if all are 1.
    And,
    /// Integers, or arrays of integers element by element: 1 if any is 1.
    Or,
    /// The first reply if no reply is an error, else the first error.
    AllSucceeded,
    /// The first reply that is no error, else the first error.
    OneSucceeded,
    /// Arrays are put one behind the other; the order of nodes means nothing.
    Concat,
    /// One of the replies that are no null, picked at random: `RANDOMKEY`.
    Random,
    /// Entries of logs, the newest first and no more of them than were asked for: `SLOWLOG GET`.
    Newest,
    /// Maps of figures are merged: sums, but for ratios, of which the greatest counts: `MEMORY STATS`.
    Figures,
    /// Texts, each under the number of its node: `LATENCY DOCTOR`.
    Texts,
    /// The first node's that is busy, or else the first node's: `FUNCTION STATS`.
    Busiest,
    /// What the proxy knows itself, and behind it what nodes have in sum: `INFO`.
    Sections,
    /// Has rules of its own: `SCAN`.
    Special,
}

impl RequestPolicy {
    /// What a `request_policy` tip says.
    pub(crate) const fn of_tip(tip: &[u8]) -> Option<Self> {
        match tip {
            b"request_policy:multi_shard" => Some(Self::SplitByKey),
            b"request_policy:all_shards" => Some(Self::AllShards),
            b"request_policy:all_nodes" => Some(Self::AllNodes),
            b"request_policy:special" => Some(Self::Special),
            _ => None,
        }
    }
}

impl ResponsePolicy {
    /// What a `response_policy` tip says.
    pub(crate) const fn of_tip(tip: &[u8]) -> Option<Self> {
        match tip {
            b"response_policy:agg_sum" => Some(Self::Sum),
            b"response_policy:agg_min" => Some(Self::Min),
            b"response_policy:agg_max" => Some(Self::Max),
            b"response_policy:agg_logical_and" => Some(Self::And),
            b"response_policy:agg_logical_or" => Some(Self::Or),
            b"response_policy:all_succeeded" => Some(Self::AllSucceeded),
            b"response_policy:one_succeeded" => Some(Self::OneSucceeded),
            b"response_policy:special" => Some(Self::Special),
            _ => None,
        }
    }
}
