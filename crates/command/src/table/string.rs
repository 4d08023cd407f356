//! Strings.

use crate::keys::irregular;
use crate::row::row;
use crate::shape;
use crate::{RequestPolicy, ResponsePolicy};

rows! {
    /// Strings.
    StringCommand, String;

    /// Add bytes to the end of a string; a missing key starts empty.
    #[args = "key@0 value"]
    #[reply = "int"]
    #[complexity = "O(1)"]
    Append = row("APPEND", 3, "2.0.0").flags("write denyoom fast").acl("string").key(1, "RW insert");

    /// Subtract one from an integer.
    #[args = "key@0"]
    #[reply = "int"]
    #[complexity = "O(1)"]
    Decr = row("DECR", 2, "1.0.0").flags("write denyoom fast").acl("string").key(1, "RW access update");

    /// Subtract from an integer.
    #[args = "key@0 decrement:int"]
    #[reply = "int"]
    #[complexity = "O(1)"]
    Decrby = row("DECRBY", 3, "1.0.0").flags("write denyoom fast").acl("string").key(1, "RW access update");

    /// Delete a key if it holds a certain string.
    #[args = "key@0 [condition<IFEQ/ifeq-value|IFNE/ifne-value|IFDEQ/ifdeq-digest|IFDNE/ifdne-digest>]"]
    #[reply = "flag"]
    #[complexity = "O(1)"]
    Delex = row("DELEX", -2, "8.4.0").flags("write fast").acl("string").key(1, "RW access delete");

    /// Delete a key if it holds a certain string (Valkey).
    #[args = "key@0 value"]
    #[reply = "flag"]
    #[complexity = "O(1)"]
    Delifeq = row("DELIFEQ", 3, "9.0.0").flags("write fast").acl("string").key(1, "RW access delete");

    /// Tell a hash of a string, with which others can be compared.
    #[args = "key@0"]
    #[reply = "bulk?"]
    #[complexity = "O(N)"]
    Digest = row("DIGEST", 2, "8.4.0").flags("readonly fast").acl("string").key(1, "RO access");

    /// Tell the value of a string.
    #[args = "key@0"]
    #[reply = "bulk?"]
    #[complexity = "O(1)"]
    Get = row("GET", 2, "1.0.0").flags("readonly fast").acl("string").key(1, "RO access");

    /// Tell the value of a string and delete the key.
    #[args = "key@0"]
    #[reply = "bulk?"]
    #[complexity = "O(1)"]
    Getdel = row("GETDEL", 2, "6.2.0").flags("write fast").acl("string").key(1, "RW access delete");

    /// Tell the value of a string and set or drop its expiry.
    #[args = "\
        key@0 \
        [expiration<EX/seconds:int|PX/milliseconds:int|EXAT/unix-time-seconds:time|PXAT/unix-time-milliseconds:time|\
            PERSIST>]"]
    #[reply = "bulk?"]
    #[complexity = "O(1)"]
    Getex = row("GETEX", -2, "6.2.0").flags("write fast").acl("string").key(1, "RW access update");

    /// Tell a part of a string.
    #[args = "key@0 start:int end:int"]
    #[reply = "bulk"]
    #[complexity = "O(N)"]
    Getrange = row("GETRANGE", 4, "2.4.0").flags("readonly").acl("string").key(1, "RO access");

    /// Replace a string and tell the value it had.
    #[args = "key@0 value"]
    #[reply = "bulk?"]
    #[complexity = "O(1)"]
    Getset = row("GETSET", 3, "1.0.0")
        .flags("write denyoom fast")
        .acl("string")
        .key(1, "RW access update")
        .deprecated("6.2.0", "SET with GET");

    /// Add one to an integer.
    #[args = "key@0"]
    #[reply = "int"]
    #[complexity = "O(1)"]
    Incr = row("INCR", 2, "1.0.0").flags("write denyoom fast").acl("string").key(1, "RW access update");

    /// Add to an integer.
    #[args = "key@0 increment:int"]
    #[reply = "int"]
    #[complexity = "O(1)"]
    Incrby = row("INCRBY", 3, "1.0.0").flags("write denyoom fast").acl("string").key(1, "RW access update");

    /// Add to a number.
    #[args = "key@0 increment:double"]
    #[reply = "float"]
    #[complexity = "O(1)"]
    Incrbyfloat = row("INCRBYFLOAT", 3, "2.6.0")
        .flags("write denyoom fast")
        .acl("string")
        .key(1, "RW access update");

    /// Find the longest common subsequence of two strings.
    #[args = "key1@0 key2@0 [LEN] [IDX] [MINMATCHLEN/len:int] [WITHMATCHLEN]"]
    #[reply = "bulk; LEN -> int; IDX -> map<any>"]
    #[complexity = "O(N*M)"]
    Lcs = row("LCS", -3, "7.0.0").replies(&shape::MAP).flags("readonly").acl("string").key_range(1, 2, 1, "RO access");

    /// Tell the values of several strings.
    #[args = "key@0+"]
    #[reply = "[bulk?]"]
    #[complexity = "O(N)"]
    Mget = row("MGET", -2, "1.0.0")
        .flags("readonly fast")
        .acl("string")
        .key_range(1, -1, 1, "RO access")
        .tips(&["request_policy:multi_shard"])
        .policy(RequestPolicy::SplitByKey, ResponsePolicy::KeyOrder);

    /// Set several strings.
    #[args = "key_value(key@0 value)+"]
    #[reply = "ok"]
    #[complexity = "O(N)"]
    Mset = row("MSET", -3, "1.0.1")
        .flags("write denyoom")
        .acl("string")
        .key_range(1, -1, 2, "OW update")
        .tips(&["request_policy:multi_shard", "response_policy:all_succeeded"]);

    /// Set several strings that expire together, if all of the keys exist or none does.
    #[args = "\
        numkeys:int data(key@0 value)+ [condition<NX|XX>] \
        [expiration<EX/seconds:int|PX/milliseconds:int|EXAT/unix-time-seconds:time|PXAT/unix-time-milliseconds:time|\
            KEEPTTL>]"]
    #[reply = "flag"]
    #[complexity = "O(N)"]
    Msetex = row("MSETEX", -4, "8.4.0")
        .flags("write denyoom")
        .acl("string")
        .counted_pairs(1, "OW update")
        .tips(&["request_policy:multi_shard", "response_policy:all_succeeded"])
        // Not split as the tip says: conditions hold for all keys, and a part that was set cannot be taken back.
        .policy(RequestPolicy::OneShard, ResponsePolicy::Single);

    /// Set several strings if none of the keys exists.
    #[args = "key_value(key@0 value)+"]
    #[reply = "flag"]
    #[complexity = "O(N)"]
    Msetnx = row("MSETNX", -3, "1.0.1")
        .flags("write denyoom")
        .acl("string")
        .key_range(1, -1, 2, "OW insert")
        .tips(&["request_policy:multi_shard", "response_policy:agg_min"])
        // Not split as the tip says: all keys or none, and a part that was set cannot be taken back.
        .policy(RequestPolicy::OneShard, ResponsePolicy::Single);

    /// Set a string that expires after milliseconds.
    #[args = "key@0 milliseconds:int value"]
    #[reply = "ok"]
    #[complexity = "O(1)"]
    Psetex = row("PSETEX", 4, "2.6.0").flags("write denyoom").acl("string").key(1, "OW update");

    /// Set a string, whatever the key held.
    #[args = "\
        key@0 value [condition<NX|XX|IFEQ/comparison-value^8.1.0>^2.6.12] [GET^6.2.0] \
        [expiration<EX/seconds:int^2.6.12|PX/milliseconds:int^2.6.12|EXAT/unix-time-seconds:time^6.2.0|\
            PXAT/unix-time-milliseconds:time^6.2.0|KEEPTTL^6.0.0>]"]
    #[reply = "ok; condition -> ok?; GET -> bulk?"]
    #[complexity = "O(1)"]
    Set = row("SET", -3, "1.0.0")
        .flags("write denyoom")
        .acl("string")
        .key(1, "RW access update variable_flags")
        .used_by(irregular::set);

    /// Set a string that expires after seconds.
    #[args = "key@0 seconds:int value"]
    #[reply = "ok"]
    #[complexity = "O(1)"]
    Setex = row("SETEX", 4, "2.0.0").flags("write denyoom").acl("string").key(1, "OW update");

    /// Set a string if the key does not exist.
    #[args = "key@0 value"]
    #[reply = "flag"]
    #[complexity = "O(1)"]
    Setnx = row("SETNX", 3, "1.0.0").flags("write denyoom fast").acl("string").key(1, "OW insert");

    /// Overwrite a part of a string.
    #[args = "key@0 offset:int value"]
    #[reply = "int"]
    #[complexity = "O(1)"]
    Setrange = row("SETRANGE", 4, "2.2.0").flags("write denyoom").acl("string").key(1, "RW update");

    /// Tell the length of a string.
    #[args = "key@0"]
    #[reply = "int"]
    #[complexity = "O(1)"]
    Strlen = row("STRLEN", 2, "2.2.0").flags("readonly fast").acl("string").key(1, "RO");

    /// Tell a part of a string.
    #[args = "key@0 start:int end:int"]
    #[reply = "bulk"]
    #[complexity = "O(N)"]
    Substr = row("SUBSTR", 4, "1.0.0")
        .flags("readonly")
        .acl("string")
        .key(1, "RO access")
        .deprecated("2.0.0", "GETRANGE");
}
