//! Hashes.

use crate::row::row;
use crate::shape;

rows! {
    /// Hashes.
    HashCommand, Hash;

    /// Delete fields of a hash.
    Hdel = row("HDEL", -3, "2.0.0").flags("write fast").acl("hash").key(1, "RW delete");

    /// Tell whether a hash has a field.
    Hexists = row("HEXISTS", 3, "2.0.0").flags("readonly fast").acl("hash").key(1, "RO");

    /// Let fields of a hash expire after seconds.
    Hexpire = row("HEXPIRE", -6, "7.4.0").flags("write denyoom fast").acl("hash").key(1, "RW update");

    /// Let fields of a hash expire at a Unix time in seconds.
    Hexpireat = row("HEXPIREAT", -6, "7.4.0").flags("write denyoom fast").acl("hash").key(1, "RW update");

    /// Tell when fields of a hash expire, as Unix times in seconds.
    Hexpiretime = row("HEXPIRETIME", -5, "7.4.0").flags("readonly fast").acl("hash").key(1, "RO access");

    /// Tell the value of a field.
    Hget = row("HGET", 3, "2.0.0").flags("readonly fast").acl("hash").key(1, "RO access");

    /// List the fields and values of a hash.
    Hgetall = row("HGETALL", 2, "2.0.0").replies(&shape::MAP)
        .flags("readonly")
        .acl("hash")
        .key(1, "RO access")
        .tips(&["nondeterministic_output_order"]);

    /// Tell the values of fields and delete them.
    Hgetdel = row("HGETDEL", -5, "8.0.0").flags("write fast").acl("hash").key(1, "RW access delete");

    /// Tell the values of fields and set or drop their expiry.
    Hgetex = row("HGETEX", -5, "8.0.0").flags("write fast").acl("hash").key(1, "RW access update");

    /// Add to the integer in a field.
    Hincrby = row("HINCRBY", 4, "2.0.0").flags("write denyoom fast").acl("hash").key(1, "RW access update");

    /// Add to the number in a field.
    Hincrbyfloat = row("HINCRBYFLOAT", 4, "2.6.0")
        .flags("write denyoom fast")
        .acl("hash")
        .key(1, "RW access update");

    /// List the fields of a hash.
    Hkeys = row("HKEYS", 2, "2.0.0")
        .flags("readonly")
        .acl("hash")
        .key(1, "RO access")
        .tips(&["nondeterministic_output_order"]);

    /// Count the fields of a hash.
    Hlen = row("HLEN", 2, "2.0.0").flags("readonly fast").acl("hash").key(1, "RO");

    /// Tell the values of several fields.
    Hmget = row("HMGET", -3, "2.0.0").flags("readonly fast").acl("hash").key(1, "RO access");

    /// Set several fields of a hash.
    Hmset = row("HMSET", -4, "2.0.0")
        .flags("write denyoom fast")
        .acl("hash")
        .key(1, "RW update")
        .deprecated("4.0.0", "HSET");

    /// Drop the expiry of fields.
    Hpersist = row("HPERSIST", -5, "7.4.0").flags("write fast").acl("hash").key(1, "RW update");

    /// Let fields of a hash expire after milliseconds.
    Hpexpire = row("HPEXPIRE", -6, "7.4.0").flags("write denyoom fast").acl("hash").key(1, "RW update");

    /// Let fields of a hash expire at a Unix time in milliseconds.
    Hpexpireat = row("HPEXPIREAT", -6, "7.4.0").flags("write denyoom fast").acl("hash").key(1, "RW update");

    /// Tell when fields of a hash expire, as Unix times in milliseconds.
    Hpexpiretime = row("HPEXPIRETIME", -5, "7.4.0").flags("readonly fast").acl("hash").key(1, "RO access");

    /// Tell for how many milliseconds fields of a hash live.
    Hpttl = row("HPTTL", -5, "7.4.0").flags("readonly fast").acl("hash").key(1, "RO access");

    /// Pick random fields of a hash.
    Hrandfield = row("HRANDFIELD", -2, "6.2.0").replies_by(shape::of_random_fields)
        .flags("readonly")
        .acl("hash")
        .key(1, "RO access")
        .tips(&["nondeterministic_output"]);

    /// Walk through a hash in steps.
    Hscan = row("HSCAN", -3, "2.8.0")
        .flags("readonly")
        .acl("hash")
        .key(1, "RO access")
        .tips(&["nondeterministic_output"]);

    /// Set fields of a hash.
    Hset = row("HSET", -4, "2.0.0").flags("write denyoom fast").acl("hash").key(1, "RW update");

    /// Set fields of a hash and their expiry.
    Hsetex = row("HSETEX", -6, "8.0.0").flags("write denyoom fast").acl("hash").key(1, "RW update");

    /// Set a field that the hash does not have yet.
    Hsetnx = row("HSETNX", 4, "2.0.0").flags("write denyoom fast").acl("hash").key(1, "RW insert");

    /// Tell the length of a field's value.
    Hstrlen = row("HSTRLEN", 3, "3.2.0").flags("readonly fast").acl("hash").key(1, "RO");

    /// Tell for how many seconds fields of a hash live.
    Httl = row("HTTL", -5, "7.4.0").flags("readonly fast").acl("hash").key(1, "RO access");

    /// List the values of a hash.
    Hvals = row("HVALS", 2, "2.0.0")
        .flags("readonly")
        .acl("hash")
        .key(1, "RO access")
        .tips(&["nondeterministic_output_order"]);
}
