//! Streams.

use crate::keys::irregular;
use crate::row::row;
use crate::shape;
use crate::{KeySpec, Lane, RequestPolicy, ResponsePolicy};

rows! {
    /// Streams.
    StreamCommand, Stream;

    /// Mark entries as processed by a group.
    #[args = "key@0 group id+"]
    #[reply = "int"]
    #[complexity = "O(1)"]
    Xack = row("XACK", -4, "5.0.0").flags("write fast").acl("stream").key(1, "RW update");

    /// Mark entries as processed by a group and delete them.
    #[args = "key@0 group [condition<KEEPREF|DELREF|ACKED>] IDS/ids(numids:int id+)"]
    #[reply = "[int]"]
    #[complexity = "O(N)"]
    Xackdel = row("XACKDEL", -6, "8.2.0").flags("write fast").acl("stream").key(1, "RW update delete");

    /// Append an entry to a stream.
    #[args = "\
        key@0 [NOMKSTREAM^6.2.0] [trim(strategy<MAXLEN|MINID^6.2.0> [operator<equal='='|approximately='~'>] \
        threshold [LIMIT/count:int^6.2.0])] id_or_auto<auto_id='*'|id> field_value(field value)+"]
    #[reply = "bulk; NOMKSTREAM -> bulk?"]
    #[complexity = "O(1)"]
    Xadd = row("XADD", -5, "5.0.0")
        .flags("write denyoom fast")
        .acl("stream")
        .key(1, "RW update")
        .tips(&["nondeterministic_output"]);

    /// Take over entries that were pending for too long.
    #[args = "key@0 group consumer min-idle-time start [COUNT/count:int] [JUSTID]"]
    #[reply = "(bulk [(bulk flat<bulk>)] [bulk]); JUSTID -> (bulk [bulk] [bulk])"]
    #[complexity = "O(1)"]
    Xautoclaim = row("XAUTOCLAIM", -6, "6.2.0")
        .flags("write fast")
        .acl("stream")
        .key(1, "RW delete")
        .tips(&["nondeterministic_output"]);

    /// Take over pending entries by their ids.
    #[args = "\
        key@0 group consumer min-idle-time id+ [IDLE/ms:int] [TIME/unix-time-milliseconds:time] \
        [RETRYCOUNT/count:int] [FORCE] [JUSTID] [LASTID/id]"]
    #[reply = "[(bulk flat<bulk>)]; JUSTID -> [bulk]"]
    #[complexity = "O(log N)"]
    Xclaim = row("XCLAIM", -6, "5.0.0")
        .flags("write fast")
        .acl("stream")
        .key(1, "RW update")
        .tips(&["nondeterministic_output"]);

    /// Delete entries of a stream.
    #[args = "key@0 id+"]
    #[reply = "int"]
    #[complexity = "O(1)"]
    Xdel = row("XDEL", -3, "5.0.0").flags("write fast").acl("stream").key(1, "RW delete");

    /// Delete entries of a stream, with or without what groups have of them.
    #[args = "key@0 [condition<KEEPREF|DELREF|ACKED>] IDS/ids(numids:int id+)"]
    #[reply = "[int]"]
    #[complexity = "O(N)"]
    Xdelex = row("XDELEX", -5, "8.2.0").flags("write fast").acl("stream").key(1, "RW delete");

    /// Manage the groups of a stream.
    Xgroup = row("XGROUP", -2, "5.0.0") => {
        /// Make a group.
        #[args = "key@0 groupname id<id|new_id='$'> [MKSTREAM] [ENTRIESREAD/entries_read:int]"]
        #[reply = "ok"]
        #[complexity = "O(1)"]
        XgroupCreate = row("XGROUP CREATE", -5, "5.0.0")
            .flags("write denyoom")
            .acl("stream")
            .key(2, "RW insert");
        /// Make a consumer in a group.
        #[args = "key@0 groupname consumername"]
        #[reply = "flag"]
        #[complexity = "O(1)"]
        XgroupCreateconsumer = row("XGROUP CREATECONSUMER", 5, "6.2.0")
            .flags("write denyoom")
            .acl("stream")
            .key(2, "RW insert");
        /// Remove a consumer from a group.
        #[args = "key@0 groupname consumername"]
        #[reply = "int"]
        #[complexity = "O(1)"]
        XgroupDelconsumer = row("XGROUP DELCONSUMER", 5, "5.0.0")
            .flags("write")
            .acl("stream")
            .key(2, "RW delete");
        /// Remove a group.
        #[args = "key@0 groupname"]
        #[reply = "flag"]
        #[complexity = "O(N)"]
        XgroupDestroy = row("XGROUP DESTROY", 4, "5.0.0").flags("write").acl("stream").key(2, "RW delete");
        /// List the subcommands.
        #[reply = "[simple]"]
        #[complexity = "O(1)"]
        XgroupHelp = row("XGROUP HELP", 2, "5.0.0")
            .flags("loading stale")
            .acl("stream")
            .policy(RequestPolicy::AnyNode, ResponsePolicy::Single)
            .retry_safe();
        /// Set from where a group goes on.
        #[args = "key@0 groupname id<id|new_id='$'> [ENTRIESREAD/entries_read:int]"]
        #[reply = "ok"]
        #[complexity = "O(1)"]
        XgroupSetid = row("XGROUP SETID", -5, "5.0.0").flags("write").acl("stream").key(2, "RW update");
    };

    /// Look into streams and their groups.
    Xinfo = row("XINFO", -2, "5.0.0") => {
        /// List the consumers of a group.
        #[args = "key@0 groupname"]
        #[reply = "[map<any>]"]
        #[complexity = "O(1)"]
        XinfoConsumers = row("XINFO CONSUMERS", 4, "5.0.0").replies(&shape::MAPS)
            .flags("readonly")
            .acl("stream")
            .key(2, "RO access")
            .tips(&["nondeterministic_output"])
            .changes_untold();
        /// List the groups of a stream.
        #[args = "key@0"]
        #[reply = "[map<any>]"]
        #[complexity = "O(1)"]
        XinfoGroups = row("XINFO GROUPS", 3, "5.0.0").replies(&shape::MAPS)
            .flags("readonly")
            .acl("stream")
            .key(2, "RO access")
            .changes_untold();
        /// List the subcommands.
        #[reply = "[simple]"]
        #[complexity = "O(1)"]
        XinfoHelp = row("XINFO HELP", 2, "5.0.0")
            .flags("loading stale")
            .acl("stream")
            .policy(RequestPolicy::AnyNode, ResponsePolicy::Single)
            .retry_safe();
        /// Describe a stream.
        #[args = "key@0 [FULL/full([COUNT/count:int])]"]
        #[reply = "map<any>"]
        #[complexity = "O(1)"]
        XinfoStream = row("XINFO STREAM", -3, "5.0.0").replies(&shape::STREAM)
            .flags("readonly")
            .acl("stream")
            .key(2, "RO access")
            .changes_untold();
    };

    /// Count the entries of a stream.
    #[args = "key@0"]
    #[reply = "int"]
    #[complexity = "O(1)"]
    Xlen = row("XLEN", 2, "5.0.0").flags("readonly fast").acl("stream").key(1, "RO");

    /// Show what a group has not acknowledged.
    #[args = "key@0 group [filters([IDLE/min-idle-time:int^6.2.0] start end count:int [consumer])]"]
    #[reply = "(int bulk? bulk? [(bulk digits)]?); filters -> [(bulk bulk int int)]"]
    #[complexity = "O(N)"]
    Xpending = row("XPENDING", -3, "5.0.0")
        .flags("readonly")
        .acl("stream")
        .key(1, "RO access")
        .tips(&["nondeterministic_output"])
        .changes_untold();

    /// List entries between two ids.
    #[args = "key@0 start end [COUNT/count:int]"]
    #[reply = "[(bulk flat<bulk>)]"]
    #[complexity = "O(N)"]
    Xrange = row("XRANGE", -4, "5.0.0").flags("readonly").acl("stream").key(1, "RO access");

    /// Read new entries of streams, perhaps waiting for some.
    #[args = "[COUNT/count:int] [BLOCK/milliseconds:int] STREAMS/streams(key@0+ id+)"]
    #[reply = "entries<[(bulk flat<bulk>)]>?"]
    Xread = row("XREAD", -4, "5.0.0").replies(&shape::STREAMS)
        .names_keys()
        .flags("readonly blocking")
        .acl("stream")
        .spec(KeySpec::keyword("STREAMS", 1, -1, 2, "RO access"))
        .found_by(irregular::streams)
        .lane_of(Lane::Blocking, irregular::streams_lane);

    /// Read entries of streams as a consumer of a group, perhaps waiting for some.
    #[args = "\
        GROUP/group_consumer(group consumer) [COUNT/count:int] [BLOCK/milliseconds:int] [NOACK] \
        STREAMS/streams(key@0+ id+)"]
    #[reply = "entries<[(bulk flat<bulk>?)]>?"]
    Xreadgroup = row("XREADGROUP", -7, "5.0.0").replies(&shape::STREAMS)
        .names_keys()
        .flags("write blocking")
        .acl("stream")
        .spec(KeySpec::keyword("STREAMS", 4, -1, 2, "RO access"))
        .found_by(irregular::streams)
        .lane_of(Lane::Blocking, irregular::streams_lane);

    /// List entries between two ids, newest first.
    #[args = "key@0 end start [COUNT/count:int]"]
    #[reply = "[(bulk flat<bulk>)]"]
    #[complexity = "O(N)"]
    Xrevrange = row("XREVRANGE", -4, "5.0.0").flags("readonly").acl("stream").key(1, "RO access");

    /// Set the last id of a stream.
    #[args = "key@0 last-id [ENTRIESADDED/entries_added:int^7.0.0] [MAXDELETEDID/max_deleted_entry_id^7.0.0]"]
    #[reply = "ok"]
    #[complexity = "O(1)"]
    Xsetid = row("XSETID", -3, "5.0.0").flags("write denyoom fast").acl("stream").key(1, "RW update");

    /// Remove old entries of a stream.
    #[args = "\
        key@0 trim(strategy<MAXLEN|MINID^6.2.0> [operator<equal='='|approximately='~'>] threshold \
        [LIMIT/count:int^6.2.0])"]
    #[reply = "int"]
    #[complexity = "O(N)"]
    Xtrim = row("XTRIM", -4, "5.0.0")
        .flags("write")
        .acl("stream")
        .key(1, "RW delete")
        .tips(&["nondeterministic_output"]);
}
