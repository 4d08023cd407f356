//! Streams.

use crate::keys::irregular;
use crate::row::row;
use crate::shape;
use crate::{KeySpec, Lane, RequestPolicy, ResponsePolicy};

rows! {
    /// Streams.
    StreamCommand, Stream;

    /// Mark entries as processed by a group.
    Xack = row("XACK", -4, "5.0.0").flags("write fast").acl("stream").key(1, "RW update");

    /// Mark entries as processed by a group and delete them.
    Xackdel = row("XACKDEL", -6, "8.2.0").flags("write fast").acl("stream").key(1, "RW update delete");

    /// Append an entry to a stream.
    Xadd = row("XADD", -5, "5.0.0")
        .flags("write denyoom fast")
        .acl("stream")
        .key(1, "RW update")
        .tips(&["nondeterministic_output"]);

    /// Take over entries that were pending for too long.
    Xautoclaim = row("XAUTOCLAIM", -6, "6.2.0")
        .flags("write fast")
        .acl("stream")
        .key(1, "RW delete")
        .tips(&["nondeterministic_output"]);

    /// Take over pending entries by their ids.
    Xclaim = row("XCLAIM", -6, "5.0.0")
        .flags("write fast")
        .acl("stream")
        .key(1, "RW update")
        .tips(&["nondeterministic_output"]);

    /// Delete entries of a stream.
    Xdel = row("XDEL", -3, "5.0.0").flags("write fast").acl("stream").key(1, "RW delete");

    /// Delete entries of a stream, with or without what groups have of them.
    Xdelex = row("XDELEX", -5, "8.2.0").flags("write fast").acl("stream").key(1, "RW delete");

    /// Manage the groups of a stream.
    Xgroup = row("XGROUP", -2, "5.0.0") => {
        /// Make a group.
        XgroupCreate = row("XGROUP CREATE", -5, "5.0.0")
            .flags("write denyoom")
            .acl("stream")
            .key(2, "RW insert");
        /// Make a consumer in a group.
        XgroupCreateconsumer = row("XGROUP CREATECONSUMER", 5, "6.2.0")
            .flags("write denyoom")
            .acl("stream")
            .key(2, "RW insert");
        /// Remove a consumer from a group.
        XgroupDelconsumer = row("XGROUP DELCONSUMER", 5, "5.0.0")
            .flags("write")
            .acl("stream")
            .key(2, "RW delete");
        /// Remove a group.
        XgroupDestroy = row("XGROUP DESTROY", 4, "5.0.0").flags("write").acl("stream").key(2, "RW delete");
        /// List the subcommands.
        XgroupHelp = row("XGROUP HELP", 2, "5.0.0")
            .flags("loading stale")
            .acl("stream")
            .policy(RequestPolicy::AnyNode, ResponsePolicy::Single)
            .retry_safe();
        /// Set from where a group goes on.
        XgroupSetid = row("XGROUP SETID", -5, "5.0.0").flags("write").acl("stream").key(2, "RW update");
    };

    /// Look into streams and their groups.
    Xinfo = row("XINFO", -2, "5.0.0") => {
        /// List the consumers of a group.
        XinfoConsumers = row("XINFO CONSUMERS", 4, "5.0.0").replies(&shape::MAPS)
            .flags("readonly")
            .acl("stream")
            .key(2, "RO access")
            .tips(&["nondeterministic_output"]);
        /// List the groups of a stream.
        XinfoGroups = row("XINFO GROUPS", 3, "5.0.0").replies(&shape::MAPS).flags("readonly").acl("stream").key(2, "RO access");
        /// List the subcommands.
        XinfoHelp = row("XINFO HELP", 2, "5.0.0")
            .flags("loading stale")
            .acl("stream")
            .policy(RequestPolicy::AnyNode, ResponsePolicy::Single)
            .retry_safe();
        /// Describe a stream.
        XinfoStream = row("XINFO STREAM", -3, "5.0.0").replies(&shape::STREAM).flags("readonly").acl("stream").key(2, "RO access");
    };

    /// Count the entries of a stream.
    Xlen = row("XLEN", 2, "5.0.0").flags("readonly fast").acl("stream").key(1, "RO");

    /// Show what a group has not acknowledged.
    Xpending = row("XPENDING", -3, "5.0.0")
        .flags("readonly")
        .acl("stream")
        .key(1, "RO access")
        .tips(&["nondeterministic_output"]);

    /// List entries between two ids.
    Xrange = row("XRANGE", -4, "5.0.0").flags("readonly").acl("stream").key(1, "RO access");

    /// Read new entries of streams, perhaps waiting for some.
    Xread = row("XREAD", -4, "5.0.0").replies(&shape::STREAMS)
        .names_keys()
        .flags("readonly blocking")
        .acl("stream")
        .spec(KeySpec::keyword("STREAMS", 1, -1, 2, "RO access"))
        .found_by(irregular::streams)
        .lane_of(Lane::Blocking, irregular::streams_lane);

    /// Read entries of streams as a consumer of a group, perhaps waiting for some.
    Xreadgroup = row("XREADGROUP", -7, "5.0.0").replies(&shape::STREAMS)
        .names_keys()
        .flags("write blocking")
        .acl("stream")
        .spec(KeySpec::keyword("STREAMS", 4, -1, 2, "RO access"))
        .found_by(irregular::streams)
        .lane_of(Lane::Blocking, irregular::streams_lane);

    /// List entries between two ids, newest first.
    Xrevrange = row("XREVRANGE", -4, "5.0.0").flags("readonly").acl("stream").key(1, "RO access");

    /// Set the last id of a stream.
    Xsetid = row("XSETID", -3, "5.0.0").flags("write denyoom fast").acl("stream").key(1, "RW update");

    /// Remove old entries of a stream.
    Xtrim = row("XTRIM", -4, "5.0.0")
        .flags("write")
        .acl("stream")
        .key(1, "RW delete")
        .tips(&["nondeterministic_output"]);
}
