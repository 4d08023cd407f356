//! Sorted sets.

use crate::row::row;
use crate::shape;
use crate::Lane;

rows! {
    /// Sorted sets.
    SortedSetCommand, SortedSet;

    /// Take members with the least or greatest scores from the first sorted set that has any, waiting for one.
    #[args = "timeout:double numkeys:int key@0+ where<MIN|MAX> [COUNT/count:int]"]
    #[reply = "(bulk [(bulk double)])?"]
    #[complexity = "O(K) + O(M*log(N))"]
    Bzmpop = row("BZMPOP", -5, "7.0.0").replies(&shape::KEY_AND_ALL_SCORED)
        .names_keys()
        .flags("write blocking")
        .acl("sortedset")
        .counted_keys(2, "RW access delete")
        .lane(Lane::Blocking);

    /// Take the member with the greatest score from the first sorted set that has any, waiting for one.
    #[args = "key@0+ timeout:double"]
    #[reply = "(bulk bulk double)?"]
    #[complexity = "O(log(N))"]
    Bzpopmax = row("BZPOPMAX", -3, "5.0.0").replies(&shape::KEY_AND_SCORED)
        .names_keys()
        .flags("write noscript blocking fast")
        .acl("sortedset")
        .key_range(1, -2, 1, "RW access delete")
        .lane(Lane::Blocking);

    /// Take the member with the least score from the first sorted set that has any, waiting for one.
    #[args = "key@0+ timeout:double"]
    #[reply = "(bulk bulk double)?"]
    #[complexity = "O(log(N))"]
    Bzpopmin = row("BZPOPMIN", -3, "5.0.0").replies(&shape::KEY_AND_SCORED)
        .names_keys()
        .flags("write noscript blocking fast")
        .acl("sortedset")
        .key_range(1, -2, 1, "RW access delete")
        .lane(Lane::Blocking);

    /// Add members to a sorted set or change their scores.
    #[args = "\
        key@0 [condition<NX|XX>^3.0.2] [comparison<GT|LT>^6.2.0] [change=CH^3.0.2] [increment=INCR^3.0.2] \
        score_member(score:double member)+"]
    #[reply = "int; INCR -> double?"]
    #[complexity = "O(log(N))"]
    Zadd = row("ZADD", -4, "1.2.0").replies_by(shape::of_added).flags("write denyoom fast").acl("sortedset").key(1, "RW update");

    /// Count the members of a sorted set.
    #[args = "key@0"]
    #[reply = "int"]
    #[complexity = "O(1)"]
    Zcard = row("ZCARD", 2, "1.2.0").flags("readonly fast").acl("sortedset").key(1, "RO");

    /// Count the members with scores in a range.
    #[args = "key@0 min:double max:double"]
    #[reply = "int"]
    #[complexity = "O(log(N))"]
    Zcount = row("ZCOUNT", 4, "2.0.0").flags("readonly fast").acl("sortedset").key(1, "RO access");

    /// List the members of a sorted set that others lack.
    #[args = "numkeys:int key@0+ [WITHSCORES]"]
    #[reply = "[bulk]; WITHSCORES -> pairs<double>"]
    #[complexity = "O(L + (N-K)log(N))"]
    Zdiff = row("ZDIFF", -3, "6.2.0").replies_by(shape::of_combination).flags("readonly").acl("sortedset").counted_keys(1, "RO access");

    /// Store the members of a sorted set that others lack.
    #[args = "destination@0 numkeys:int key@1+"]
    #[reply = "int"]
    #[complexity = "O(L + (N-K)log(N))"]
    Zdiffstore = row("ZDIFFSTORE", -4, "6.2.0")
        .flags("write denyoom")
        .acl("sortedset")
        .key(1, "OW update")
        .counted_keys(2, "RO access");

    /// Add to a member's score.
    #[args = "key@0 increment:int member"]
    #[reply = "double"]
    #[complexity = "O(log(N))"]
    Zincrby = row("ZINCRBY", 4, "1.2.0").replies(&shape::DOUBLE).flags("write denyoom fast").acl("sortedset").key(1, "RW access update");

    /// List the members that all sorted sets share.
    #[args = "numkeys:int key@0+ [WEIGHTS/weight:int+] [AGGREGATE/aggregate<SUM|MIN|MAX>] [WITHSCORES]"]
    #[reply = "[bulk]; WITHSCORES -> pairs<double>"]
    #[complexity = "O(N*K)+O(M*log(M))"]
    Zinter = row("ZINTER", -3, "6.2.0").replies_by(shape::of_combination).flags("readonly").acl("sortedset").counted_keys(1, "RO access");

    /// Count the members that all sorted sets share.
    #[args = "numkeys:int key@0+ [LIMIT/limit:int]"]
    #[reply = "int"]
    #[complexity = "O(N*K)"]
    Zintercard = row("ZINTERCARD", -3, "7.0.0").flags("readonly").acl("sortedset").counted_keys(1, "RO access");

    /// Store the members that all sorted sets share.
    #[args = "destination@0 numkeys:int key@1+ [WEIGHTS/weight:int+] [AGGREGATE/aggregate<SUM|MIN|MAX>]"]
    #[reply = "int"]
    #[complexity = "O(N*K)+O(M*log(M))"]
    Zinterstore = row("ZINTERSTORE", -4, "2.0.0")
        .flags("write denyoom")
        .acl("sortedset")
        .key(1, "OW update")
        .counted_keys(2, "RO access");

    /// Count the members in a lexicographical range.
    #[args = "key@0 min max"]
    #[reply = "int"]
    #[complexity = "O(log(N))"]
    Zlexcount = row("ZLEXCOUNT", 4, "2.8.9").flags("readonly fast").acl("sortedset").key(1, "RO access");

    /// Take members with the least or greatest scores from the first sorted set that has any.
    #[args = "numkeys:int key@0+ where<MIN|MAX> [COUNT/count:int]"]
    #[reply = "(bulk [(bulk double)])?"]
    #[complexity = "O(K) + O(M*log(N))"]
    Zmpop = row("ZMPOP", -4, "7.0.0").replies(&shape::KEY_AND_ALL_SCORED)
        .names_keys().flags("write").acl("sortedset").counted_keys(1, "RW access delete");

    /// Tell the scores of several members.
    #[args = "key@0 member+"]
    #[reply = "[double?]"]
    #[complexity = "O(N)"]
    Zmscore = row("ZMSCORE", -3, "6.2.0").replies(&shape::DOUBLES).flags("readonly fast").acl("sortedset").key(1, "RO access");

    /// Take the members with the greatest scores.
    #[args = "key@0 [count:int]"]
    #[reply = "flat<double>; count -> pairs<double>"]
    #[complexity = "O(log(N)*M)"]
    Zpopmax = row("ZPOPMAX", -2, "5.0.0").replies_by(shape::of_popped).flags("write fast").acl("sortedset").key(1, "RW access delete");

    /// Take the members with the least scores.
    #[args = "key@0 [count:int]"]
    #[reply = "flat<double>; count -> pairs<double>"]
    #[complexity = "O(log(N)*M)"]
    Zpopmin = row("ZPOPMIN", -2, "5.0.0").replies_by(shape::of_popped).flags("write fast").acl("sortedset").key(1, "RW access delete");

    /// Pick random members of a sorted set.
    #[args = "key@0 [options(count:int [WITHSCORES])]"]
    #[reply = "bulk?; options -> [bulk]; WITHSCORES -> pairs<double>"]
    #[complexity = "O(N)"]
    Zrandmember = row("ZRANDMEMBER", -2, "6.2.0").replies_by(shape::of_random_members)
        .flags("readonly")
        .acl("sortedset")
        .key(1, "RO access")
        .tips(&["nondeterministic_output"]);

    /// List members in a range of ranks, scores or names.
    #[args = "\
        key@0 start stop [sortby<BYSCORE|BYLEX>^6.2.0] [REV^6.2.0] [LIMIT/offset_count(offset:int count:int)^6.2.0] \
        [WITHSCORES]"]
    #[reply = "[bulk]; WITHSCORES -> pairs<double>"]
    #[complexity = "O(log(N)+M)"]
    Zrange = row("ZRANGE", -4, "1.2.0").replies_by(shape::of_range).flags("readonly").acl("sortedset").key(1, "RO access");

    /// List members in a lexicographical range.
    #[args = "key@0 min max [LIMIT/offset_count(offset:int count:int)]"]
    #[reply = "[bulk]"]
    #[complexity = "O(log(N)+M)"]
    Zrangebylex = row("ZRANGEBYLEX", -4, "2.8.9")
        .flags("readonly")
        .acl("sortedset")
        .key(1, "RO access")
        .deprecated("6.2.0", "ZRANGE with BYLEX");

    /// List members with scores in a range.
    #[args = "key@0 min:double max:double [WITHSCORES^2.0.0] [LIMIT/offset_count(offset:int count:int)]"]
    #[reply = "[bulk]; WITHSCORES -> pairs<double>"]
    #[complexity = "O(log(N)+M)"]
    Zrangebyscore = row("ZRANGEBYSCORE", -4, "1.0.5").replies_by(shape::of_range)
        .flags("readonly")
        .acl("sortedset")
        .key(1, "RO access")
        .deprecated("6.2.0", "ZRANGE with BYSCORE");

    /// Store members in a range of ranks, scores or names.
    #[args = "dst@0 src@1 min max [sortby<BYSCORE|BYLEX>] [REV] [LIMIT/offset_count(offset:int count:int)]"]
    #[reply = "int"]
    #[complexity = "O(log(N)+M)"]
    Zrangestore = row("ZRANGESTORE", -5, "6.2.0")
        .flags("write denyoom")
        .acl("sortedset")
        .key(1, "OW update")
        .key(2, "RO access");

    /// Tell a member's rank from the least score.
    #[args = "key@0 member"]
    #[reply = "int?"]
    #[complexity = "O(log(N))"]
    Zrank = row("ZRANK", 3, "2.0.0").flags("readonly fast").acl("sortedset").key(1, "RO access");

    /// Remove members from a sorted set.
    #[args = "key@0 member+"]
    #[reply = "int"]
    #[complexity = "O(M*log(N))"]
    Zrem = row("ZREM", -3, "1.2.0").flags("write fast").acl("sortedset").key(1, "RW delete");

    /// Remove members in a lexicographical range.
    #[args = "key@0 min max"]
    #[reply = "int"]
    #[complexity = "O(log(N)+M)"]
    Zremrangebylex = row("ZREMRANGEBYLEX", 4, "2.8.9").flags("write").acl("sortedset").key(1, "RW delete");

    /// Remove members in a range of ranks.
    #[args = "key@0 start:int stop:int"]
    #[reply = "int"]
    #[complexity = "O(log(N)+M)"]
    Zremrangebyrank = row("ZREMRANGEBYRANK", 4, "2.0.0").flags("write").acl("sortedset").key(1, "RW delete");

    /// Remove members with scores in a range.
    #[args = "key@0 min:double max:double"]
    #[reply = "int"]
    #[complexity = "O(log(N)+M)"]
    Zremrangebyscore = row("ZREMRANGEBYSCORE", 4, "1.2.0").flags("write").acl("sortedset").key(1, "RW delete");

    /// List members in a range of ranks, greatest score first.
    #[args = "key@0 start:int stop:int [WITHSCORES]"]
    #[reply = "[bulk]; WITHSCORES -> pairs<double>"]
    #[complexity = "O(log(N)+M)"]
    Zrevrange = row("ZREVRANGE", -4, "1.2.0").replies_by(shape::of_range)
        .flags("readonly")
        .acl("sortedset")
        .key(1, "RO access")
        .deprecated("6.2.0", "ZRANGE with REV");

    /// List members in a lexicographical range, last name first.
    #[args = "key@0 max min [LIMIT/offset_count(offset:int count:int)]"]
    #[reply = "[bulk]"]
    #[complexity = "O(log(N)+M)"]
    Zrevrangebylex = row("ZREVRANGEBYLEX", -4, "2.8.9")
        .flags("readonly")
        .acl("sortedset")
        .key(1, "RO access")
        .deprecated("6.2.0", "ZRANGE with REV and BYLEX");

    /// List members with scores in a range, greatest first.
    #[args = "key@0 max:double min:double [WITHSCORES] [LIMIT/offset_count(offset:int count:int)]"]
    #[reply = "[bulk]; WITHSCORES -> pairs<double>"]
    #[complexity = "O(log(N)+M)"]
    Zrevrangebyscore = row("ZREVRANGEBYSCORE", -4, "2.2.0").replies_by(shape::of_range)
        .flags("readonly")
        .acl("sortedset")
        .key(1, "RO access")
        .deprecated("6.2.0", "ZRANGE with REV and BYSCORE");

    /// Tell a member's rank from the greatest score.
    #[args = "key@0 member"]
    #[reply = "int?"]
    #[complexity = "O(log(N))"]
    Zrevrank = row("ZREVRANK", 3, "2.0.0").flags("readonly fast").acl("sortedset").key(1, "RO access");

    /// Walk through a sorted set in steps.
    #[args = "key@0 cursor:int [MATCH/pattern:pattern] [COUNT/count:int]"]
    #[reply = "(digits flat<float>)"]
    #[complexity = "O(1)"]
    // The cursor means something to the node that gave it alone.
    Zscan = row("ZSCAN", -3, "2.8.0")
        .flags("readonly")
        .acl("sortedset")
        .key(1, "RO access")
        .tips(&["nondeterministic_output"])
        .primary_only();

    /// Tell a member's score.
    #[args = "key@0 member"]
    #[reply = "double?"]
    #[complexity = "O(1)"]
    Zscore = row("ZSCORE", 3, "1.2.0").replies(&shape::DOUBLE).flags("readonly fast").acl("sortedset").key(1, "RO access");

    /// List the members of any of the sorted sets.
    #[args = "numkeys:int key@0+ [WEIGHTS/weight:int+] [AGGREGATE/aggregate<SUM|MIN|MAX>] [WITHSCORES]"]
    #[reply = "[bulk]; WITHSCORES -> pairs<double>"]
    #[complexity = "O(N)+O(M*log(M))"]
    Zunion = row("ZUNION", -3, "6.2.0").replies_by(shape::of_combination).flags("readonly").acl("sortedset").counted_keys(1, "RO access");

    /// Store the members of any of the sorted sets.
    #[args = "destination@0 numkeys:int key@1+ [WEIGHTS/weight:int+] [AGGREGATE/aggregate<SUM|MIN|MAX>]"]
    #[reply = "int"]
    #[complexity = "O(N)+O(M log(M))"]
    Zunionstore = row("ZUNIONSTORE", -4, "2.0.0")
        .flags("write denyoom")
        .acl("sortedset")
        .key(1, "OW update")
        .counted_keys(2, "RO access");
}
