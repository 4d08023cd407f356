//! Keys of any type.

use crate::keys::irregular;
use crate::row::row;
use crate::{KeySpec, Lane, RequestPolicy, ResponsePolicy};

rows! {
    /// Keys of any type.
    GenericCommand, Generic;

    /// Copy a key's value to another key.
    #[args = "source@0 destination@1 [DB/destination-db:int] [REPLACE]"]
    #[reply = "flag"]
    #[complexity = "O(N)"]
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
    #[args = "key@0+"]
    #[reply = "int"]
    #[complexity = "O(N)"]
    Del = row("DEL", -2, "1.0.0")
        .flags("write")
        .acl("keyspace")
        .key_range(1, -1, 1, "RM delete")
        .tips(&["request_policy:multi_shard", "response_policy:agg_sum"]);

    /// Serialise the value of a key.
    #[args = "key@0"]
    #[reply = "bulk?"]
    #[complexity = "O(1)"]
    Dump = row("DUMP", 2, "2.6.0")
        .flags("readonly")
        .acl("keyspace")
        .key(1, "RO access")
        .tips(&["nondeterministic_output"]);

    /// Count how many of the keys exist.
    #[args = "key@0+"]
    #[reply = "int"]
    #[complexity = "O(N)"]
    Exists = row("EXISTS", -2, "1.0.0")
        .flags("readonly fast")
        .acl("keyspace")
        .key_range(1, -1, 1, "RO")
        .tips(&["request_policy:multi_shard", "response_policy:agg_sum"]);

    /// Let a key expire after seconds.
    #[args = "key@0 seconds:int [condition<NX|XX|GT|LT>^7.0.0]"]
    #[reply = "flag"]
    #[complexity = "O(1)"]
    Expire = row("EXPIRE", -3, "1.0.0").flags("write fast").acl("keyspace").key(1, "RW update");

    /// Let a key expire at a time in seconds.
    #[args = "key@0 unix-time-seconds:time [condition<NX|XX|GT|LT>^7.0.0]"]
    #[reply = "flag"]
    #[complexity = "O(1)"]
    Expireat = row("EXPIREAT", -3, "1.2.0").flags("write fast").acl("keyspace").key(1, "RW update");

    /// Tell at which second a key expires.
    #[args = "key@0"]
    #[reply = "int"]
    #[complexity = "O(1)"]
    Expiretime = row("EXPIRETIME", 2, "7.0.0").flags("readonly fast").acl("keyspace").key(1, "RO access");

    /// List the keys that match a pattern.
    #[args = "pattern:pattern"]
    #[reply = "[bulk]"]
    #[complexity = "O(N)"]
    Keys = row("KEYS", 2, "1.0.0")
        .flags("readonly")
        .acl("keyspace dangerous")
        .tips(&["request_policy:all_shards", "nondeterministic_output_order"])
        .policy(RequestPolicy::AllShards, ResponsePolicy::Concat);

    /// Move keys to another server.
    #[args = "\
        host port:int key_or_empty_string<key@0|empty_string=''> destination-db:int timeout:int [COPY^3.0.0] \
        [REPLACE^3.0.0] [authentication<[AUTH/password^4.0.7]|[AUTH2/username_password(username password)^6.0.0]>] \
        [KEYS/key@1+^3.0.6]"]
    #[reply = "simple"]
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
    #[args = "key@0 db:int"]
    #[reply = "flag"]
    #[complexity = "O(1)"]
    Move = row("MOVE", 3, "1.0.0")
        .flags("write fast")
        .acl("keyspace")
        .key(1, "RW access update")
        .databases(|args, each| args.get(2).into_iter().for_each(each));

    /// Look at how a key is held.
    Object = row("OBJECT", -2, "2.2.3") => {
        /// Tell the encoding of a value.
        #[args = "key@0"]
        #[reply = "bulk?"]
        #[complexity = "O(1)"]
        ObjectEncoding = row("OBJECT ENCODING", 3, "2.2.3")
            .flags("readonly")
            .acl("keyspace")
            .key(2, "RO")
            .tips(&["nondeterministic_output"]);
        /// Tell how often a key is used, on a logarithmic scale.
        #[args = "key@0"]
        #[reply = "int?"]
        #[complexity = "O(1)"]
        ObjectFreq = row("OBJECT FREQ", 3, "4.0.0")
            .flags("readonly")
            .acl("keyspace")
            .key(2, "RO")
            .tips(&["nondeterministic_output"])
            .primary_only();
        /// List the subcommands.
        #[reply = "[simple]"]
        #[complexity = "O(1)"]
        ObjectHelp = row("OBJECT HELP", 2, "6.2.0")
            .flags("loading stale")
            .acl("keyspace")
            .policy(RequestPolicy::AnyNode, ResponsePolicy::Single)
            .retry_safe();
        /// Tell for how many seconds a key has not been used.
        #[args = "key@0"]
        #[reply = "int?"]
        #[complexity = "O(1)"]
        ObjectIdletime = row("OBJECT IDLETIME", 3, "2.2.3")
            .flags("readonly")
            .acl("keyspace")
            .key(2, "RO")
            .tips(&["nondeterministic_output"])
            .primary_only();
        /// Tell the number of references to a value.
        #[args = "key@0"]
        #[reply = "int?"]
        #[complexity = "O(1)"]
        ObjectRefcount = row("OBJECT REFCOUNT", 3, "2.2.3")
            .flags("readonly")
            .acl("keyspace")
            .key(2, "RO")
            .tips(&["nondeterministic_output"]);
    };

    /// Drop the expiry of a key.
    #[args = "key@0"]
    #[reply = "flag"]
    #[complexity = "O(1)"]
    Persist = row("PERSIST", 2, "2.2.0").flags("write fast").acl("keyspace").key(1, "RW update");

    /// Let a key expire after milliseconds.
    #[args = "key@0 milliseconds:int [condition<NX|XX|GT|LT>^7.0.0]"]
    #[reply = "flag"]
    #[complexity = "O(1)"]
    Pexpire = row("PEXPIRE", -3, "2.6.0").flags("write fast").acl("keyspace").key(1, "RW update");

    /// Let a key expire at a time in milliseconds.
    #[args = "key@0 unix-time-milliseconds:time [condition<NX|XX|GT|LT>^7.0.0]"]
    #[reply = "flag"]
    #[complexity = "O(1)"]
    Pexpireat = row("PEXPIREAT", -3, "2.6.0").flags("write fast").acl("keyspace").key(1, "RW update");

    /// Tell at which millisecond a key expires.
    #[args = "key@0"]
    #[reply = "int"]
    #[complexity = "O(1)"]
    Pexpiretime = row("PEXPIRETIME", 2, "7.0.0").flags("readonly fast").acl("keyspace").key(1, "RO access");

    /// Tell in how many milliseconds a key expires.
    #[args = "key@0"]
    #[reply = "int"]
    #[complexity = "O(1)"]
    Pttl = row("PTTL", 2, "2.6.0")
        .flags("readonly fast")
        .acl("keyspace")
        .key(1, "RO access")
        .tips(&["nondeterministic_output"]);

    /// Pick a random key.
    #[reply = "bulk?"]
    #[complexity = "O(1)"]
    Randomkey = row("RANDOMKEY", 1, "1.0.0")
        .flags("readonly")
        .acl("keyspace")
        .tips(&["request_policy:all_shards", "nondeterministic_output"])
        .policy(RequestPolicy::AllShards, ResponsePolicy::Random);

    /// Rename a key, replacing what had the name.
    #[args = "key@0 newkey@1"]
    #[reply = "ok"]
    #[complexity = "O(1)"]
    Rename = row("RENAME", 3, "1.0.0")
        .flags("write")
        .acl("keyspace")
        .key(1, "RW access delete")
        .key(2, "OW update");

    /// Rename a key unless the new name is taken.
    #[args = "key@0 newkey@1"]
    #[reply = "flag"]
    #[complexity = "O(1)"]
    Renamenx = row("RENAMENX", 3, "1.0.0")
        .flags("write fast")
        .acl("keyspace")
        .key(1, "RW access delete")
        .key(2, "OW insert");

    /// Make a key from a serialised value.
    #[args = "\
        key@0 ttl:int serialized-value [REPLACE^3.0.0] [ABSTTL^5.0.0] [IDLETIME/seconds:int^5.0.0] \
        [FREQ/frequency:int^5.0.0]"]
    #[reply = "ok"]
    #[complexity = "O(1)"]
    Restore = row("RESTORE", -4, "2.6.0").flags("write denyoom").acl("keyspace dangerous").key(1, "OW update");

    /// Walk through the keys in steps.
    #[args = "cursor:int [MATCH/pattern:pattern] [COUNT/count:int] [TYPE/type^6.0.0]"]
    #[reply = "(digits [bulk])"]
    #[complexity = "O(1)"]
    Scan = row("SCAN", -2, "2.8.0")
        .flags("readonly")
        .acl("keyspace")
        .tips(&["nondeterministic_output", "request_policy:special"])
        .policy(RequestPolicy::Special, ResponsePolicy::Special)
        .primary_only();

    /// Sort the elements of a list, set or sorted set, and perhaps store them.
    #[args = "\
        key@0 [BY/pattern:pattern@1] [LIMIT/offset_count(offset:int count:int)] [GET/pattern:pattern@1++] \
        [order<ASC|DESC>] [sorting=ALPHA] [STORE/destination@2]"]
    #[reply = "[bulk?]; STORE -> int"]
    #[complexity = "O(N+M*log(M))"]
    Sort = row("SORT", -2, "1.0.0")
        .flags("write denyoom")
        .acl("set sortedset list dangerous")
        .key(1, "RO access")
        .spec(KeySpec::unknown("RO access"))
        .spec(KeySpec::unknown("OW update"))
        .found_by(irregular::sort);

    /// Sort the elements of a list, set or sorted set.
    #[args = "\
        key@0 [BY/pattern:pattern@1] [LIMIT/offset_count(offset:int count:int)] [GET/pattern:pattern@1++] \
        [order<ASC|DESC>] [sorting=ALPHA]"]
    #[reply = "[bulk?]"]
    #[complexity = "O(N+M*log(M))"]
    SortRo = row("SORT_RO", -2, "7.0.0")
        .flags("readonly")
        .acl("set sortedset list dangerous")
        .key(1, "RO access")
        .spec(KeySpec::unknown("RO access"))
        .found_by(irregular::sort_ro);

    /// Mark keys as used, and count those that exist.
    #[args = "key@0+"]
    #[reply = "int"]
    #[complexity = "O(N)"]
    Touch = row("TOUCH", -2, "3.2.1")
        .flags("readonly fast")
        .acl("keyspace")
        .key_range(1, -1, 1, "RO")
        .tips(&["request_policy:multi_shard", "response_policy:agg_sum"]);

    /// Tell in how many seconds a key expires.
    #[args = "key@0"]
    #[reply = "int"]
    #[complexity = "O(1)"]
    Ttl = row("TTL", 2, "1.0.0")
        .flags("readonly fast")
        .acl("keyspace")
        .key(1, "RO access")
        .tips(&["nondeterministic_output"]);

    /// Tell the type of a key's value.
    #[args = "key@0"]
    #[reply = "simple"]
    #[complexity = "O(1)"]
    Type = row("TYPE", 2, "1.0.0").flags("readonly fast").acl("keyspace").key(1, "RO");

    /// Delete keys and free their memory later.
    #[args = "key@0+"]
    #[reply = "int"]
    #[complexity = "O(1)"]
    Unlink = row("UNLINK", -2, "4.0.0")
        .flags("write fast")
        .acl("keyspace")
        .key_range(1, -1, 1, "RM delete")
        .tips(&["request_policy:multi_shard", "response_policy:agg_sum"]);

    /// Wait until replicas have received this connection's writes.
    #[args = "numreplicas:int timeout:int"]
    #[reply = "int"]
    #[complexity = "O(1)"]
    Wait = row("WAIT", 3, "3.0.0")
        .flags("noscript")
        .acl("connection")
        .tips(&["request_policy:all_shards", "response_policy:agg_min"])
        // The server counts from the last write of the connection that waits: on a connection that has written nothing it
        // waits for nothing. The implementation of this lane has to see to that.
        .lane(Lane::Blocking);
}
