//! Strings.

use crate::keys::irregular;
use crate::row::row;
use crate::shape;
use crate::{RequestPolicy, ResponsePolicy};

rows! {
    /// Strings.
    StringCommand, String;

    /// Add bytes to the end of a string; a missing key starts empty.
    Append = row("APPEND", 3, "2.0.0").flags("write denyoom fast").acl("string").key(1, "RW insert");

    /// Subtract one from an integer.
    Decr = row("DECR", 2, "1.0.0").flags("write denyoom fast").acl("string").key(1, "RW access update");

    /// Subtract from an integer.
    Decrby = row("DECRBY", 3, "1.0.0").flags("write denyoom fast").acl("string").key(1, "RW access update");

    /// Delete a key if it holds a certain string.
    Delex = row("DELEX", -2, "8.4.0").flags("write fast").acl("string").key(1, "RW access delete");

    /// Delete a key if it holds a certain string (Valkey).
    Delifeq = row("DELIFEQ", 3, "9.0.0").flags("write fast").acl("string").key(1, "RW access delete");

    /// Tell a hash of a string, with which others can be compared.
    Digest = row("DIGEST", 2, "8.4.0").flags("readonly fast").acl("string").key(1, "RO access");

    /// Tell the value of a string.
    Get = row("GET", 2, "1.0.0").flags("readonly fast").acl("string").key(1, "RO access");

    /// Tell the value of a string and delete the key.
    Getdel = row("GETDEL", 2, "6.2.0").flags("write fast").acl("string").key(1, "RW access delete");

    /// Tell the value of a string and set or drop its expiry.
    Getex = row("GETEX", -2, "6.2.0").flags("write fast").acl("string").key(1, "RW access update");

    /// Tell a part of a string.
    Getrange = row("GETRANGE", 4, "2.4.0").flags("readonly").acl("string").key(1, "RO access");

    /// Replace a string and tell the value it had.
    Getset = row("GETSET", 3, "1.0.0")
        .flags("write denyoom fast")
        .acl("string")
        .key(1, "RW access update")
        .deprecated("6.2.0", "SET with GET");

    /// Add one to an integer.
    Incr = row("INCR", 2, "1.0.0").flags("write denyoom fast").acl("string").key(1, "RW access update");

    /// Add to an integer.
    Incrby = row("INCRBY", 3, "1.0.0").flags("write denyoom fast").acl("string").key(1, "RW access update");

    /// Add to a number.
    Incrbyfloat = row("INCRBYFLOAT", 3, "2.6.0")
        .flags("write denyoom fast")
        .acl("string")
        .key(1, "RW access update");

    /// Find the longest common subsequence of two strings.
    Lcs = row("LCS", -3, "7.0.0").replies(&shape::MAP).flags("readonly").acl("string").key_range(1, 2, 1, "RO access");

    /// Tell the values of several strings.
    Mget = row("MGET", -2, "1.0.0")
        .flags("readonly fast")
        .acl("string")
        .key_range(1, -1, 1, "RO access")
        .tips(&["request_policy:multi_shard"])
        .policy(RequestPolicy::SplitByKey, ResponsePolicy::KeyOrder);

    /// Set several strings.
    Mset = row("MSET", -3, "1.0.1")
        .flags("write denyoom")
        .acl("string")
        .key_range(1, -1, 2, "OW update")
        .tips(&["request_policy:multi_shard", "response_policy:all_succeeded"]);

    /// Set several strings that expire together, if all of the keys exist or none does.
    Msetex = row("MSETEX", -4, "8.4.0")
        .flags("write denyoom")
        .acl("string")
        .counted_pairs(1, "OW update")
        .tips(&["request_policy:multi_shard", "response_policy:all_succeeded"])
        // Not split as the tip says: conditions hold for all keys, and a part that was set cannot be taken back.
        .policy(RequestPolicy::OneShard, ResponsePolicy::Single);

    /// Set several strings if none of the keys exists.
    Msetnx = row("MSETNX", -3, "1.0.1")
        .flags("write denyoom")
        .acl("string")
        .key_range(1, -1, 2, "OW insert")
        .tips(&["request_policy:multi_shard", "response_policy:agg_min"])
        // Not split as the tip says: all keys or none, and a part that was set cannot be taken back.
        .policy(RequestPolicy::OneShard, ResponsePolicy::Single);

    /// Set a string that expires after milliseconds.
    Psetex = row("PSETEX", 4, "2.6.0").flags("write denyoom").acl("string").key(1, "OW update");

    /// Set a string, whatever the key held.
    Set = row("SET", -3, "1.0.0")
        .flags("write denyoom")
        .acl("string")
        .key(1, "RW access update variable_flags")
        .used_by(irregular::set);

    /// Set a string that expires after seconds.
    Setex = row("SETEX", 4, "2.0.0").flags("write denyoom").acl("string").key(1, "OW update");

    /// Set a string if the key does not exist.
    Setnx = row("SETNX", 3, "1.0.0").flags("write denyoom fast").acl("string").key(1, "OW insert");

    /// Overwrite a part of a string.
    Setrange = row("SETRANGE", 4, "2.2.0").flags("write denyoom").acl("string").key(1, "RW update");

    /// Tell the length of a string.
    Strlen = row("STRLEN", 2, "2.2.0").flags("readonly fast").acl("string").key(1, "RO");

    /// Tell a part of a string.
    Substr = row("SUBSTR", 4, "1.0.0")
        .flags("readonly")
        .acl("string")
        .key(1, "RO access")
        .deprecated("2.0.0", "GETRANGE");
}
