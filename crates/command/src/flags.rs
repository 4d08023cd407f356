//! Command flags: what Redis calls the flags of a command, with its names.

use crate::bits::bits;

bits! {
    /// The flags of a command. The names are those of `COMMAND`.
    pub struct Flags(u32) {
        /// May change the data set.
        WRITE = "write",
        /// Reads keys and changes none.
        READONLY = "readonly",
        /// Refused while memory is above `maxmemory`.
        DENYOOM = "denyoom",
        /// Administrative.
        ADMIN = "admin",
        /// About pub/sub.
        PUBSUB = "pubsub",
        /// Not allowed in scripts.
        NOSCRIPT = "noscript",
        /// May block the client.
        BLOCKING = "blocking",
        /// Allowed while the data set is being loaded.
        LOADING = "loading",
        /// Allowed on a replica whose data is stale.
        STALE = "stale",
        /// Not shown to `MONITOR`.
        SKIP_MONITOR = "skip_monitor",
        /// Not kept in the slow log.
        SKIP_SLOWLOG = "skip_slowlog",
        /// Allowed on an importing slot without `ASKING`.
        ASKING = "asking",
        /// Constant or logarithmic time.
        FAST = "fast",
        /// Allowed before authentication.
        NO_AUTH = "no_auth",
        /// Has a key specification but may be called with no key at all.
        NO_MANDATORY_KEYS = "no_mandatory_keys",
        /// Refused during an asynchronous load.
        NO_ASYNC_LOADING = "no_async_loading",
        /// Not allowed inside `MULTI`.
        NO_MULTI = "no_multi",
        /// The keys cannot be told from the first/last/step triple. Derived from the key specification.
        MOVABLEKEYS = "movablekeys",
        /// Allowed while a script runs for too long.
        ALLOW_BUSY = "allow_busy",
    }
}
