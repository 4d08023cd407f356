//! Transactions.

use crate::row::row;
use crate::Lane;

rows! {
    /// Transactions.
    TransactionsCommand, Transactions;

    /// Drop the commands of a transaction.
    #[reply = "ok"]
    #[complexity = "O(N)"]
    #[changes = "connection"]
    Discard = row("DISCARD", 1, "2.0.0")
        .flags("noscript loading stale fast allow_busy")
        .acl("transaction")
        .lane(Lane::Pinned);

    /// Run the commands of a transaction.
    #[reply = "[any]?"]
    #[changes = "connection"]
    Exec = row("EXEC", 1, "1.2.0")
        .flags("noscript loading stale skip_slowlog")
        .acl("transaction")
        .lane(Lane::Pinned);

    /// Begin a transaction.
    #[reply = "ok"]
    #[complexity = "O(1)"]
    #[changes = "connection"]
    Multi = row("MULTI", 1, "1.2.0")
        .flags("noscript loading stale fast allow_busy")
        .acl("transaction")
        .lane(Lane::Pinned);

    /// Forget the watched keys.
    #[reply = "ok"]
    #[complexity = "O(1)"]
    #[changes = "connection"]
    Unwatch = row("UNWATCH", 1, "2.2.0")
        .flags("noscript loading stale fast allow_busy")
        .acl("transaction")
        .lane(Lane::Pinned);

    /// Let the next transaction fail if these keys change before it.
    #[args = "key@0+"]
    #[reply = "ok"]
    #[complexity = "O(1)"]
    #[changes = "connection"]
    Watch = row("WATCH", -2, "2.2.0")
        .flags("noscript loading stale fast allow_busy")
        .acl("transaction")
        .key_range(1, -1, 1, "RO")
        .lane(Lane::Pinned);
}
