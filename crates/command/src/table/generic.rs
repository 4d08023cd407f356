//! Keys of any type.

use crate::keys::irregular;
use crate::row::row;
use crate::{KeySpec, Lane, RequestPolicy, ResponsePolicy};

rows! {
    /// Keys of any type.
    GenericCommand, Generic;

    /// Copy a key's value to another key.
    Copy = row("COPY", -3, "6.2.0")
        .flags("write denyoom")
        .acl("keyspace")
        .key(1, "RO access")
        .key(2, "OW update")
        .databases(|args, each| {
            let options = args.from(3);
            let is_db = |at: &usize| options.at(*at).eq_ignore_ascii_case(b"DB");
            (0..options.len()).filter(is_db).filter_map(|at| options.get(at + 1)).for_each(each);
        });

    /// Delete keys.
    Del = row("DEL", -2, "1.0.0")
        .flags("write")
        .acl("keyspace")
        .key_range(1, -1, 1, "RM delete")
        .tips(&["request_policy:multi_shard", "response_policy:agg_sum"]);

    /// Serialise the value of a key.
    Dump = row("DUMP", 2, "2.6.0")
        .flags("readonly")
        .acl("keyspace")
        .key(1, "RO access")
        .tips(&["nondeterministic_output"]);

    /// Count how many of the keys exist.
    Exists = row("EXISTS", -2, "1.0.0")
        .flags("readonly fast")
        .acl("keyspace")
        .key_range(1, -1, 1, "RO")
        .tips(&["request_policy:multi_shard", "response_policy:agg_sum"]);

    /// Let a key expire after seconds.
    Expire = row("EXPIRE", -3, "1.0.0").flags("write fast").acl("keyspace").key(1, "RW update");

    /// Let a key expire at a time in seconds.
    Expireat = row("EXPIREAT", -3, "1.2.0").flags("write fast").acl("keyspace").key(1, "RW update");

    /// Tell at which second a key expires.
    Expiretime = row("EXPIRETIME", 2, "7.0.0").flags("readonly fast").acl("keyspace").key(1, "RO access");

    /// List the keys that match a pattern.
    Keys = row("KEYS", 2, "1.0.0")
        .flags("readonly")
        .acl("keyspace dangerous")
        .tips(&["request_policy:all_shards", "nondeterministic_output_order"])
        .policy(RequestPolicy::AllShards, ResponsePolicy::Concat);

    /// Move keys to another server.
    Migrate = row("MIGRATE", -6, "2.6.0")
        .flags("write")
        .acl("keyspace dangerous")
        .key(3, "RW access delete")
        .spec(KeySpec::keyword("KEYS", -2, -1, 0, "RW access delete incomplete"))
        .found_by(irregular::migrate)
        // It has a node connect to whatever host the client names, and hand keys over to it.
        .lane(Lane::Admin)
        .tips(&["nondeterministic_output"]);

    /// Move a key to another database.
    Move = row("MOVE", 3, "1.0.0")
        .flags("write fast")
        .acl("keyspace")
        .key(1, "RW access update")
        .databases(|args, each| args.get(2).into_iter().for_each(each));

    /// Look at how a key is held.
    Object = row("OBJECT", -2, "2.2.3") => {
        /// Tell the encoding of a value.
        ObjectEncoding = row("OBJECT ENCODING", 3, "2.2.3")
            .flags("readonly")
            .acl("keyspace")
            .key(2, "RO")
            .tips(&["nondeterministic_output"]);
        /// Tell how often a key is used, on a logarithmic scale.
        ObjectFreq = row("OBJECT FREQ", 3, "4.0.0")
            .flags("readonly")
            .acl("keyspace")
            .key(2, "RO")
            .tips(&["nondeterministic_output"])
            .primary_only();
        /// List the subcommands.
        ObjectHelp = row("OBJECT HELP", 2, "6.2.0")
            .flags("loading stale")
            .acl("keyspace")
            .policy(RequestPolicy::AnyNode, ResponsePolicy::Single)
            .retry_safe();
        /// Tell for how many seconds a key has not been used.
        ObjectIdletime = row("OBJECT IDLETIME", 3, "2.2.3")
            .flags("readonly")
            .acl("keyspace")
            .key(2, "RO")
            .tips(&["nondeterministic_output"])
            .primary_only();
        /// Tell the number of references to a value.
        ObjectRefcount = row("OBJECT REFCOUNT", 3, "2.2.3")
            .flags("readonly")
            .acl("keyspace")
            .key(2, "RO")
            .tips(&["nondeterministic_output"]);
    };

    /// Drop the expiry of a key.
    Persist = row("PERSIST", 2, "2.2.0").flags("write fast").acl("keyspace").key(1, "RW update");

    /// Let a key expire after milliseconds.
    Pexpire = row("PEXPIRE", -3, "2.6.0").flags("write fast").acl("keyspace").key(1, "RW update");

    /// Let a key expire at a time in milliseconds.
    Pexpireat = row("PEXPIREAT", -3, "2.6.0").flags("write fast").acl("keyspace").key(1, "RW update");

    /// Tell at which millisecond a key expires.
    Pexpiretime = row("PEXPIRETIME", 2, "7.0.0").flags("readonly fast").acl("keyspace").key(1, "RO access");

    /// Tell in how many milliseconds a key expires.
    Pttl = row("PTTL", 2, "2.6.0")
        .flags("readonly fast")
        .acl("keyspace")
        .key(1, "RO access")
        .tips(&["nondeterministic_output"]);

    /// Pick a random key.
    Randomkey = row("RANDOMKEY", 1, "1.0.0")
        .flags("readonly")
        .acl("keyspace")
        .tips(&["request_policy:all_shards", "nondeterministic_output"])
        .policy(RequestPolicy::AllShards, ResponsePolicy::Random);

    /// Rename a key, replacing what had the name.
    Rename = row("RENAME", 3, "1.0.0")
        .flags("write")
        .acl("keyspace")
        .key(1, "RW access delete")
        .key(2, "OW update");

    /// Rename a key unless the new name is taken.
    Renamenx = row("RENAMENX", 3, "1.0.0")
        .flags("write fast")
        .acl("keyspace")
        .key(1, "RW access delete")
        .key(2, "OW insert");

    /// Make a key from a serialised value.
    Restore = row("RESTORE", -4, "2.6.0").flags("write denyoom").acl("keyspace dangerous").key(1, "OW update");

    /// Walk through the keys in steps.
    Scan = row("SCAN", -2, "2.8.0")
        .flags("readonly")
        .acl("keyspace")
        .tips(&["nondeterministic_output", "request_policy:special"])
        .policy(RequestPolicy::Special, ResponsePolicy::Special)
        .primary_only();

    /// Sort the elements of a list, set or sorted set, and perhaps store them.
    Sort = row("SORT", -2, "1.0.0")
        .flags("write denyoom")
        .acl("set sortedset list dangerous")
        .key(1, "RO access")
        .spec(KeySpec::unknown("RO access"))
        .spec(KeySpec::unknown("OW update"))
        .found_by(irregular::sort);

    /// Sort the elements of a list, set or sorted set.
    SortRo = row("SORT_RO", -2, "7.0.0")
        .flags("readonly")
        .acl("set sortedset list dangerous")
        .key(1, "RO access")
        .spec(KeySpec::unknown("RO access"))
        .found_by(irregular::sort_ro);

    /// Mark keys as used, and count those that exist.
    Touch = row("TOUCH", -2, "3.2.1")
        .flags("readonly fast")
        .acl("keyspace")
        .key_range(1, -1, 1, "RO")
        .tips(&["request_policy:multi_shard", "response_policy:agg_sum"]);

    /// Tell in how many seconds a key expires.
    Ttl = row("TTL", 2, "1.0.0")
        .flags("readonly fast")
        .acl("keyspace")
        .key(1, "RO access")
        .tips(&["nondeterministic_output"]);

    /// Tell the type of a key's value.
    Type = row("TYPE", 2, "1.0.0").flags("readonly fast").acl("keyspace").key(1, "RO");

    /// Delete keys and free their memory later.
    Unlink = row("UNLINK", -2, "4.0.0")
        .flags("write fast")
        .acl("keyspace")
        .key_range(1, -1, 1, "RM delete")
        .tips(&["request_policy:multi_shard", "response_policy:agg_sum"]);

    /// Wait until replicas have received this connection's writes.
    Wait = row("WAIT", 3, "3.0.0")
        .flags("noscript")
        .acl("connection")
        .tips(&["request_policy:all_shards", "response_policy:agg_min"])
        // The server counts from the last write of the connection that waits: on a connection that has written nothing it
        // waits for nothing. The implementation of this lane has to see to that.
        .lane(Lane::Blocking);
}
