//! Sets.

use crate::row::row;
use crate::shape;

rows! {
    /// Sets.
    SetCommand, Set;

    /// Add members to a set.
    Sadd = row("SADD", -3, "1.0.0").flags("write denyoom fast").acl("set").key(1, "RW insert");

    /// Count the members of a set.
    Scard = row("SCARD", 2, "1.0.0").flags("readonly fast").acl("set").key(1, "RO");

    /// List the members of a set that other sets lack.
    Sdiff = row("SDIFF", -2, "1.0.0").replies(&shape::SET)
        .flags("readonly")
        .acl("set")
        .key_range(1, -1, 1, "RO access")
        .tips(&["nondeterministic_output_order"]);

    /// Store the members of a set that other sets lack.
    Sdiffstore = row("SDIFFSTORE", -3, "1.0.0")
        .flags("write denyoom")
        .acl("set")
        .key(1, "OW update")
        .key_range(2, -1, 1, "RO access");

    /// List the members that all sets share.
    Sinter = row("SINTER", -2, "1.0.0").replies(&shape::SET)
        .flags("readonly")
        .acl("set")
        .key_range(1, -1, 1, "RO access")
        .tips(&["nondeterministic_output_order"]);

    /// Count the members that all sets share.
    Sintercard = row("SINTERCARD", -3, "7.0.0").flags("readonly").acl("set").counted_keys(1, "RO access");

    /// Store the members that all sets share.
    Sinterstore = row("SINTERSTORE", -3, "1.0.0")
        .flags("write denyoom")
        .acl("set")
        .key(1, "RW update")
        .key_range(2, -1, 1, "RO access");

    /// Tell whether a set has a member.
    Sismember = row("SISMEMBER", 3, "1.0.0").flags("readonly fast").acl("set").key(1, "RO");

    /// List the members of a set.
    Smembers = row("SMEMBERS", 2, "1.0.0").replies(&shape::SET)
        .flags("readonly")
        .acl("set")
        .key(1, "RO access")
        .tips(&["nondeterministic_output_order"]);

    /// Tell which of several members a set has.
    Smismember = row("SMISMEMBER", -3, "6.2.0").flags("readonly fast").acl("set").key(1, "RO access");

    /// Move a member from one set to another.
    Smove = row("SMOVE", 4, "1.0.0")
        .flags("write fast")
        .acl("set")
        .key(1, "RW access delete")
        .key(2, "RW insert");

    /// Take random members from a set.
    Spop = row("SPOP", -2, "1.0.0").replies_by(shape::of_popped_members)
        .flags("write fast")
        .acl("set")
        .key(1, "RW access delete")
        .tips(&["nondeterministic_output"]);

    /// Pick random members of a set.
    Srandmember = row("SRANDMEMBER", -2, "1.0.0")
        .flags("readonly")
        .acl("set")
        .key(1, "RO access")
        .tips(&["nondeterministic_output"]);

    /// Remove members from a set.
    Srem = row("SREM", -3, "1.0.0").flags("write fast").acl("set").key(1, "RW delete");

    /// Walk through a set in steps.
    Sscan = row("SSCAN", -3, "2.8.0")
        .flags("readonly")
        .acl("set")
        .key(1, "RO access")
        .tips(&["nondeterministic_output"]);

    /// List the members of any of the sets.
    Sunion = row("SUNION", -2, "1.0.0").replies(&shape::SET)
        .flags("readonly")
        .acl("set")
        .key_range(1, -1, 1, "RO access")
        .tips(&["nondeterministic_output_order"]);

    /// Store the members of any of the sets.
    Sunionstore = row("SUNIONSTORE", -3, "1.0.0")
        .flags("write denyoom")
        .acl("set")
        .key(1, "OW update")
        .key_range(2, -1, 1, "RO access");
}
