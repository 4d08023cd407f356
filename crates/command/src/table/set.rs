//! Sets.

use crate::row::row;
use crate::shape;

rows! {
    /// Sets.
    SetCommand, Set;

    /// Add members to a set.
    #[args = "key@0 member+"]
    #[reply = "int"]
    #[complexity = "O(1)"]
    Sadd = row("SADD", -3, "1.0.0").flags("write denyoom fast").acl("set").key(1, "RW insert");

    /// Count the members of a set.
    #[args = "key@0"]
    #[reply = "int"]
    #[complexity = "O(1)"]
    Scard = row("SCARD", 2, "1.0.0").flags("readonly fast").acl("set").key(1, "RO");

    /// List the members of a set that other sets lack.
    #[args = "key@0+"]
    #[reply = "{bulk}"]
    #[complexity = "O(N)"]
    Sdiff = row("SDIFF", -2, "1.0.0").replies(&shape::SET)
        .flags("readonly")
        .acl("set")
        .key_range(1, -1, 1, "RO access")
        .tips(&["nondeterministic_output_order"]);

    /// Store the members of a set that other sets lack.
    #[args = "destination@0 key@1+"]
    #[reply = "int"]
    #[complexity = "O(N)"]
    Sdiffstore = row("SDIFFSTORE", -3, "1.0.0")
        .flags("write denyoom")
        .acl("set")
        .key(1, "OW update")
        .key_range(2, -1, 1, "RO access");

    /// List the members that all sets share.
    #[args = "key@0+"]
    #[reply = "{bulk}"]
    #[complexity = "O(N*M)"]
    Sinter = row("SINTER", -2, "1.0.0").replies(&shape::SET)
        .flags("readonly")
        .acl("set")
        .key_range(1, -1, 1, "RO access")
        .tips(&["nondeterministic_output_order"]);

    /// Count the members that all sets share.
    #[args = "numkeys:int key@0+ [LIMIT/limit:int]"]
    #[reply = "int"]
    #[complexity = "O(N*M)"]
    Sintercard = row("SINTERCARD", -3, "7.0.0").flags("readonly").acl("set").counted_keys(1, "RO access");

    /// Store the members that all sets share.
    #[args = "destination@0 key@1+"]
    #[reply = "int"]
    #[complexity = "O(N*M)"]
    Sinterstore = row("SINTERSTORE", -3, "1.0.0")
        .flags("write denyoom")
        .acl("set")
        .key(1, "RW update")
        .key_range(2, -1, 1, "RO access");

    /// Tell whether a set has a member.
    #[args = "key@0 member"]
    #[reply = "flag"]
    #[complexity = "O(1)"]
    Sismember = row("SISMEMBER", 3, "1.0.0").flags("readonly fast").acl("set").key(1, "RO");

    /// List the members of a set.
    #[args = "key@0"]
    #[reply = "{bulk}"]
    #[complexity = "O(N)"]
    Smembers = row("SMEMBERS", 2, "1.0.0").replies(&shape::SET)
        .flags("readonly")
        .acl("set")
        .key(1, "RO access")
        .tips(&["nondeterministic_output_order"]);

    /// Tell which of several members a set has.
    #[args = "key@0 member+"]
    #[reply = "[flag]"]
    #[complexity = "O(N)"]
    Smismember = row("SMISMEMBER", -3, "6.2.0").flags("readonly fast").acl("set").key(1, "RO access");

    /// Move a member from one set to another.
    #[args = "source@0 destination@1 member"]
    #[reply = "flag"]
    #[complexity = "O(1)"]
    Smove = row("SMOVE", 4, "1.0.0")
        .flags("write fast")
        .acl("set")
        .key(1, "RW access delete")
        .key(2, "RW insert");

    /// Take random members from a set.
    #[args = "key@0 [count:int^3.2.0]"]
    #[reply = "bulk?; count -> {bulk}"]
    Spop = row("SPOP", -2, "1.0.0").replies_by(shape::of_popped_members)
        .flags("write fast")
        .acl("set")
        .key(1, "RW access delete")
        .tips(&["nondeterministic_output"]);

    /// Pick random members of a set.
    #[args = "key@0 [count:int^2.6.0]"]
    #[reply = "bulk?; count -> [bulk]"]
    Srandmember = row("SRANDMEMBER", -2, "1.0.0")
        .flags("readonly")
        .acl("set")
        .key(1, "RO access")
        .tips(&["nondeterministic_output"]);

    /// Remove members from a set.
    #[args = "key@0 member+"]
    #[reply = "int"]
    #[complexity = "O(N)"]
    Srem = row("SREM", -3, "1.0.0").flags("write fast").acl("set").key(1, "RW delete");

    /// Walk through a set in steps.
    #[args = "key@0 cursor:int [MATCH/pattern:pattern] [COUNT/count:int]"]
    #[reply = "(digits [bulk])"]
    #[complexity = "O(1)"]
    // The cursor means something to the node that gave it alone.
    Sscan = row("SSCAN", -3, "2.8.0")
        .flags("readonly")
        .acl("set")
        .key(1, "RO access")
        .tips(&["nondeterministic_output"])
        .primary_only();

    /// List the members of any of the sets.
    #[args = "key@0+"]
    #[reply = "{bulk}"]
    #[complexity = "O(N)"]
    Sunion = row("SUNION", -2, "1.0.0").replies(&shape::SET)
        .flags("readonly")
        .acl("set")
        .key_range(1, -1, 1, "RO access")
        .tips(&["nondeterministic_output_order"]);

    /// Store the members of any of the sets.
    #[args = "destination@0 key@1+"]
    #[reply = "int"]
    #[complexity = "O(N)"]
    Sunionstore = row("SUNIONSTORE", -3, "1.0.0")
        .flags("write denyoom")
        .acl("set")
        .key(1, "OW update")
        .key_range(2, -1, 1, "RO access");
}
