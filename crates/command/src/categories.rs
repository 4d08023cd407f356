//! ACL categories, with Redis' names.

use crate::Flags;
use crate::bits::bits;

bits! {
    /// The ACL categories of a command. The names are those of `ACL CAT`, in its order.
    pub struct Categories(u32) {
        /// Generic handling of keys, whatever they hold.
        KEYSPACE = "keyspace",
        /// Reads data.
        READ = "read",
        /// Changes data.
        WRITE = "write",
        /// Sets.
        SET = "set",
        /// Sorted sets.
        SORTEDSET = "sortedset",
        /// Lists.
        LIST = "list",
        /// Hashes.
        HASH = "hash",
        /// Strings.
        STRING = "string",
        /// Bitmaps.
        BITMAP = "bitmap",
        /// HyperLogLogs.
        HYPERLOGLOG = "hyperloglog",
        /// Geospatial indexes.
        GEO = "geo",
        /// Streams.
        STREAM = "stream",
        /// Pub/sub.
        PUBSUB = "pubsub",
        /// Administration.
        ADMIN = "admin",
        /// Constant or logarithmic time.
        FAST = "fast",
        /// Everything that is not fast.
        SLOW = "slow",
        /// May block the client.
        BLOCKING = "blocking",
        /// To be given to few: costly, destructive or revealing.
        DANGEROUS = "dangerous",
        /// The connection and its state.
        CONNECTION = "connection",
        /// Transactions.
        TRANSACTION = "transaction",
        /// Scripts and functions.
        SCRIPTING = "scripting",
    }
}

impl Categories {
    /// Adds what follows from a command's flags, by Redis' rules, to what its row says.
    pub(crate) const fn with_implied(self, flags: Flags) -> Self {
        let mut set = self;
        if flags.has(Flags::WRITE) {
            set = set.with(Self::WRITE);
        }
        if flags.has(Flags::READONLY) && !set.has(Self::SCRIPTING) {
            set = set.with(Self::READ);
        }
        if flags.has(Flags::ADMIN) {
            set = set.with(Self::ADMIN).with(Self::DANGEROUS);
        }
        if flags.has(Flags::PUBSUB) {
            set = set.with(Self::PUBSUB);
        }
        if flags.has(Flags::BLOCKING) {
            set = set.with(Self::BLOCKING);
        }
        set.with(if flags.has(Flags::FAST) { Self::FAST } else { Self::SLOW })
    }
}
