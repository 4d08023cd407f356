//! Hashes.

use crate::row::row;
use crate::shape;

rows! {
    /// Hashes.
    HashCommand, Hash;

    /// Delete fields of a hash.
    #[args = "key@0 field+"]
    #[reply = "int"]
    #[complexity = "O(N)"]
    Hdel = row("HDEL", -3, "2.0.0").flags("write fast").acl("hash").key(1, "RW delete");

    /// Tell whether a hash has a field.
    #[args = "key@0 field"]
    #[reply = "flag"]
    #[complexity = "O(1)"]
    Hexists = row("HEXISTS", 3, "2.0.0").flags("readonly fast").acl("hash").key(1, "RO");

    /// Let fields of a hash expire after seconds.
    #[args = "key@0 seconds:int [condition<NX|XX|GT|LT>] FIELDS/fields(numfields:int field+)"]
    #[reply = "[int]"]
    #[complexity = "O(N)"]
    Hexpire = row("HEXPIRE", -6, "7.4.0").flags("write denyoom fast").acl("hash").key(1, "RW update");

    /// Let fields of a hash expire at a Unix time in seconds.
    #[args = "key@0 unix-time-seconds:time [condition<NX|XX|GT|LT>] FIELDS/fields(numfields:int field+)"]
    #[reply = "[int]"]
    #[complexity = "O(N)"]
    Hexpireat = row("HEXPIREAT", -6, "7.4.0").flags("write denyoom fast").acl("hash").key(1, "RW update");

    /// Tell when fields of a hash expire, as Unix times in seconds.
    #[args = "key@0 FIELDS/fields(numfields:int field+)"]
    #[reply = "[int]"]
    #[complexity = "O(N)"]
    Hexpiretime = row("HEXPIRETIME", -5, "7.4.0").flags("readonly fast").acl("hash").key(1, "RO access");

    /// Tell the value of a field.
    #[args = "key@0 field"]
    #[reply = "bulk?"]
    #[complexity = "O(1)"]
    Hget = row("HGET", 3, "2.0.0").flags("readonly fast").acl("hash").key(1, "RO access");

    /// List the fields and values of a hash.
    #[args = "key@0"]
    #[reply = "map<bulk>"]
    #[complexity = "O(N)"]
    Hgetall = row("HGETALL", 2, "2.0.0").replies(&shape::MAP)
        .flags("readonly")
        .acl("hash")
        .key(1, "RO access")
        .tips(&["nondeterministic_output_order"]);

    /// Tell the values of fields and delete them.
    #[args = "key@0 FIELDS/fields(numfields:int field+)"]
    #[reply = "[bulk?]"]
    #[complexity = "O(N)"]
    Hgetdel = row("HGETDEL", -5, "8.0.0").flags("write fast").acl("hash").key(1, "RW access delete");

    /// Tell the values of fields and set or drop their expiry.
    #[args = "\
        key@0 \
        [expiration<EX/seconds:int|PX/milliseconds:int|EXAT/unix-time-seconds:time|PXAT/unix-time-milliseconds:time|\
            PERSIST>] \
        FIELDS/fields(numfields:int field+)"]
    #[reply = "[bulk?]"]
    #[complexity = "O(N)"]
    Hgetex = row("HGETEX", -5, "8.0.0").flags("write fast").acl("hash").key(1, "RW access update");

    /// Add to the integer in a field.
    #[args = "key@0 field increment:int"]
    #[reply = "int"]
    #[complexity = "O(1)"]
    Hincrby = row("HINCRBY", 4, "2.0.0").flags("write denyoom fast").acl("hash").key(1, "RW access update");

    /// Add to the number in a field.
    #[args = "key@0 field increment:double"]
    #[reply = "float"]
    #[complexity = "O(1)"]
    Hincrbyfloat = row("HINCRBYFLOAT", 4, "2.6.0")
        .flags("write denyoom fast")
        .acl("hash")
        .key(1, "RW access update");

    /// List the fields of a hash.
    #[args = "key@0"]
    #[reply = "[bulk]"]
    #[complexity = "O(N)"]
    Hkeys = row("HKEYS", 2, "2.0.0")
        .flags("readonly")
        .acl("hash")
        .key(1, "RO access")
        .tips(&["nondeterministic_output_order"]);

    /// Count the fields of a hash.
    #[args = "key@0"]
    #[reply = "int"]
    #[complexity = "O(1)"]
    Hlen = row("HLEN", 2, "2.0.0").flags("readonly fast").acl("hash").key(1, "RO");

    /// Tell the values of several fields.
    #[args = "key@0 field+"]
    #[reply = "[bulk?]"]
    #[complexity = "O(N)"]
    Hmget = row("HMGET", -3, "2.0.0").flags("readonly fast").acl("hash").key(1, "RO access");

    /// Set several fields of a hash.
    #[args = "key@0 field_value(field value)+"]
    #[reply = "ok"]
    #[complexity = "O(N)"]
    Hmset = row("HMSET", -4, "2.0.0")
        .flags("write denyoom fast")
        .acl("hash")
        .key(1, "RW update")
        .deprecated("4.0.0", "HSET");

    /// Drop the expiry of fields.
    #[args = "key@0 FIELDS/fields(numfields:int field+)"]
    #[reply = "[int]"]
    #[complexity = "O(N)"]
    Hpersist = row("HPERSIST", -5, "7.4.0").flags("write fast").acl("hash").key(1, "RW update");

    /// Let fields of a hash expire after milliseconds.
    #[args = "key@0 milliseconds:int [condition<NX|XX|GT|LT>] FIELDS/fields(numfields:int field+)"]
    #[reply = "[int]"]
    #[complexity = "O(N)"]
    Hpexpire = row("HPEXPIRE", -6, "7.4.0").flags("write denyoom fast").acl("hash").key(1, "RW update");

    /// Let fields of a hash expire at a Unix time in milliseconds.
    #[args = "key@0 unix-time-milliseconds:time [condition<NX|XX|GT|LT>] FIELDS/fields(numfields:int field+)"]
    #[reply = "[int]"]
    #[complexity = "O(N)"]
    Hpexpireat = row("HPEXPIREAT", -6, "7.4.0").flags("write denyoom fast").acl("hash").key(1, "RW update");

    /// Tell when fields of a hash expire, as Unix times in milliseconds.
    #[args = "key@0 FIELDS/fields(numfields:int field+)"]
    #[reply = "[int]"]
    #[complexity = "O(N)"]
    Hpexpiretime = row("HPEXPIRETIME", -5, "7.4.0").flags("readonly fast").acl("hash").key(1, "RO access");

    /// Tell for how many milliseconds fields of a hash live.
    #[args = "key@0 FIELDS/fields(numfields:int field+)"]
    #[reply = "[int]"]
    #[complexity = "O(N)"]
    Hpttl = row("HPTTL", -5, "7.4.0").flags("readonly fast").acl("hash").key(1, "RO access").changes_untold();

    /// Pick random fields of a hash.
    #[args = "key@0 [options(count:int [WITHVALUES])]"]
    #[reply = "bulk?; options -> [bulk]; WITHVALUES -> pairs<bulk>"]
    #[complexity = "O(N)"]
    Hrandfield = row("HRANDFIELD", -2, "6.2.0").replies_by(shape::of_random_fields)
        .flags("readonly")
        .acl("hash")
        .key(1, "RO access")
        .tips(&["nondeterministic_output"]);

    /// Walk through a hash in steps.
    #[args = "key@0 cursor:int [MATCH/pattern:pattern] [COUNT/count:int] [NOVALUES^7.4.0]"]
    #[reply = "(digits flat<bulk>); NOVALUES -> (digits [bulk])"]
    #[complexity = "O(1)"]
    // The cursor means something to the node that gave it alone.
    Hscan = row("HSCAN", -3, "2.8.0")
        .flags("readonly")
        .acl("hash")
        .key(1, "RO access")
        .tips(&["nondeterministic_output"])
        .primary_only();

    /// Set fields of a hash.
    #[args = "key@0 field_value(field value)+"]
    #[reply = "int"]
    #[complexity = "O(1)"]
    Hset = row("HSET", -4, "2.0.0").flags("write denyoom fast").acl("hash").key(1, "RW update");

    /// Set fields of a hash and their expiry.
    #[args = "\
        key@0 [condition<FNX|FXX>] \
        [expiration<EX/seconds:int|PX/milliseconds:int|EXAT/unix-time-seconds:time|PXAT/unix-time-milliseconds:time|\
            KEEPTTL>] \
        FIELDS/fields(numfields:int data(field value)+)"]
    #[reply = "flag"]
    #[complexity = "O(N)"]
    Hsetex = row("HSETEX", -6, "8.0.0").flags("write denyoom fast").acl("hash").key(1, "RW update");

    /// Set a field that the hash does not have yet.
    #[args = "key@0 field value"]
    #[reply = "flag"]
    #[complexity = "O(1)"]
    Hsetnx = row("HSETNX", 4, "2.0.0").flags("write denyoom fast").acl("hash").key(1, "RW insert");

    /// Tell the length of a field's value.
    #[args = "key@0 field"]
    #[reply = "int"]
    #[complexity = "O(1)"]
    Hstrlen = row("HSTRLEN", 3, "3.2.0").flags("readonly fast").acl("hash").key(1, "RO");

    /// Tell for how many seconds fields of a hash live.
    #[args = "key@0 FIELDS/fields(numfields:int field+)"]
    #[reply = "[int]"]
    #[complexity = "O(N)"]
    Httl = row("HTTL", -5, "7.4.0").flags("readonly fast").acl("hash").key(1, "RO access").changes_untold();

    /// List the values of a hash.
    #[args = "key@0"]
    #[reply = "[bulk]"]
    #[complexity = "O(N)"]
    Hvals = row("HVALS", 2, "2.0.0")
        .flags("readonly")
        .acl("hash")
        .key(1, "RO access")
        .tips(&["nondeterministic_output_order"]);
}
