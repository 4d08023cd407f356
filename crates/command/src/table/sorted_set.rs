//! Sorted sets.

use crate::row::row;
use crate::shape;
use crate::Lane;

rows! {
    /// Sorted sets.
    SortedSetCommand, SortedSet;

    /// Take members with the least or greatest scores from the first sorted set that has any, waiting for one.
    Bzmpop = row("BZMPOP", -5, "7.0.0").replies(&shape::KEY_AND_ALL_SCORED)
        .names_keys()
        .flags("write blocking")
        .acl("sortedset")
        .counted_keys(2, "RW access delete")
        .lane(Lane::Blocking);

    /// Take the member with the greatest score from the first sorted set that has any, waiting for one.
    Bzpopmax = row("BZPOPMAX", -3, "5.0.0").replies(&shape::KEY_AND_SCORED)
        .names_keys()
        .flags("write noscript blocking fast")
        .acl("sortedset")
        .key_range(1, -2, 1, "RW access delete")
        .lane(Lane::Blocking);

    /// Take the member with the least score from the first sorted set that has any, waiting for one.
    Bzpopmin = row("BZPOPMIN", -3, "5.0.0").replies(&shape::KEY_AND_SCORED)
        .names_keys()
        .flags("write noscript blocking fast")
        .acl("sortedset")
        .key_range(1, -2, 1, "RW access delete")
        .lane(Lane::Blocking);

    /// Add members to a sorted set or change their scores.
    Zadd = row("ZADD", -4, "1.2.0").replies_by(shape::of_added).flags("write denyoom fast").acl("sortedset").key(1, "RW update");

    /// Count the members of a sorted set.
    Zcard = row("ZCARD", 2, "1.2.0").flags("readonly fast").acl("sortedset").key(1, "RO");

    /// Count the members with scores in a range.
    Zcount = row("ZCOUNT", 4, "2.0.0").flags("readonly fast").acl("sortedset").key(1, "RO access");

    /// List the members of a sorted set that others lack.
    Zdiff = row("ZDIFF", -3, "6.2.0").replies_by(shape::of_combination).flags("readonly").acl("sortedset").counted_keys(1, "RO access");

    /// Store the members of a sorted set that others lack.
    Zdiffstore = row("ZDIFFSTORE", -4, "6.2.0")
        .flags("write denyoom")
        .acl("sortedset")
        .key(1, "OW update")
        .counted_keys(2, "RO access");

    /// Add to a member's score.
    Zincrby = row("ZINCRBY", 4, "1.2.0").replies(&shape::DOUBLE).flags("write denyoom fast").acl("sortedset").key(1, "RW access update");

    /// List the members that all sorted sets share.
    Zinter = row("ZINTER", -3, "6.2.0").replies_by(shape::of_combination).flags("readonly").acl("sortedset").counted_keys(1, "RO access");

    /// Count the members that all sorted sets share.
    Zintercard = row("ZINTERCARD", -3, "7.0.0").flags("readonly").acl("sortedset").counted_keys(1, "RO access");

    /// Store the members that all sorted sets share.
    Zinterstore = row("ZINTERSTORE", -4, "2.0.0")
        .flags("write denyoom")
        .acl("sortedset")
        .key(1, "OW update")
        .counted_keys(2, "RO access");

    /// Count the members in a lexicographical range.
    Zlexcount = row("ZLEXCOUNT", 4, "2.8.9").flags("readonly fast").acl("sortedset").key(1, "RO access");

    /// Take members with the least or greatest scores from the first sorted set that has any.
    Zmpop = row("ZMPOP", -4, "7.0.0").replies(&shape::KEY_AND_ALL_SCORED)
        .names_keys().flags("write").acl("sortedset").counted_keys(1, "RW access delete");

    /// Tell the scores of several members.
    Zmscore = row("ZMSCORE", -3, "6.2.0").replies(&shape::DOUBLES).flags("readonly fast").acl("sortedset").key(1, "RO access");

    /// Take the members with the greatest scores.
    Zpopmax = row("ZPOPMAX", -2, "5.0.0").replies_by(shape::of_popped).flags("write fast").acl("sortedset").key(1, "RW access delete");

    /// Take the members with the least scores.
    Zpopmin = row("ZPOPMIN", -2, "5.0.0").replies_by(shape::of_popped).flags("write fast").acl("sortedset").key(1, "RW access delete");

    /// Pick random members of a sorted set.
    Zrandmember = row("ZRANDMEMBER", -2, "6.2.0").replies_by(shape::of_random_members)
        .flags("readonly")
        .acl("sortedset")
        .key(1, "RO access")
        .tips(&["nondeterministic_output"]);

    /// List members in a range of ranks, scores or names.
    Zrange = row("ZRANGE", -4, "1.2.0").replies_by(shape::of_range).flags("readonly").acl("sortedset").key(1, "RO access");

    /// List members in a lexicographical range.
    Zrangebylex = row("ZRANGEBYLEX", -4, "2.8.9")
        .flags("readonly")
        .acl("sortedset")
        .key(1, "RO access")
        .deprecated("6.2.0", "ZRANGE with BYLEX");

    /// List members with scores in a range.
    Zrangebyscore = row("ZRANGEBYSCORE", -4, "1.0.5").replies_by(shape::of_range)
        .flags("readonly")
        .acl("sortedset")
        .key(1, "RO access")
        .deprecated("6.2.0", "ZRANGE with BYSCORE");

    /// Store members in a range of ranks, scores or names.
    Zrangestore = row("ZRANGESTORE", -5, "6.2.0")
        .flags("write denyoom")
        .acl("sortedset")
        .key(1, "OW update")
        .key(2, "RO access");

    /// Tell a member's rank from the least score.
    Zrank = row("ZRANK", 3, "2.0.0").flags("readonly fast").acl("sortedset").key(1, "RO access");

    /// Remove members from a sorted set.
    Zrem = row("ZREM", -3, "1.2.0").flags("write fast").acl("sortedset").key(1, "RW delete");

    /// Remove members in a lexicographical range.
    Zremrangebylex = row("ZREMRANGEBYLEX", 4, "2.8.9").flags("write").acl("sortedset").key(1, "RW delete");

    /// Remove members in a range of ranks.
    Zremrangebyrank = row("ZREMRANGEBYRANK", 4, "2.0.0").flags("write").acl("sortedset").key(1, "RW delete");

    /// Remove members with scores in a range.
    Zremrangebyscore = row("ZREMRANGEBYSCORE", 4, "1.2.0").flags("write").acl("sortedset").key(1, "RW delete");

    /// List members in a range of ranks, greatest score first.
    Zrevrange = row("ZREVRANGE", -4, "1.2.0").replies_by(shape::of_range)
        .flags("readonly")
        .acl("sortedset")
        .key(1, "RO access")
        .deprecated("6.2.0", "ZRANGE with REV");

    /// List members in a lexicographical range, last name first.
    Zrevrangebylex = row("ZREVRANGEBYLEX", -4, "2.8.9")
        .flags("readonly")
        .acl("sortedset")
        .key(1, "RO access")
        .deprecated("6.2.0", "ZRANGE with REV and BYLEX");

    /// List members with scores in a range, greatest first.
    Zrevrangebyscore = row("ZREVRANGEBYSCORE", -4, "2.2.0").replies_by(shape::of_range)
        .flags("readonly")
        .acl("sortedset")
        .key(1, "RO access")
        .deprecated("6.2.0", "ZRANGE with REV and BYSCORE");

    /// Tell a member's rank from the greatest score.
    Zrevrank = row("ZREVRANK", 3, "2.0.0").flags("readonly fast").acl("sortedset").key(1, "RO access");

    /// Walk through a sorted set in steps.
    Zscan = row("ZSCAN", -3, "2.8.0")
        .flags("readonly")
        .acl("sortedset")
        .key(1, "RO access")
        .tips(&["nondeterministic_output"]);

    /// Tell a member's score.
    Zscore = row("ZSCORE", 3, "1.2.0").replies(&shape::DOUBLE).flags("readonly fast").acl("sortedset").key(1, "RO access");

    /// List the members of any of the sorted sets.
    Zunion = row("ZUNION", -3, "6.2.0").replies_by(shape::of_combination).flags("readonly").acl("sortedset").counted_keys(1, "RO access");

    /// Store the members of any of the sorted sets.
    Zunionstore = row("ZUNIONSTORE", -4, "2.0.0")
        .flags("write denyoom")
        .acl("sortedset")
        .key(1, "OW update")
        .counted_keys(2, "RO access");
}
