//! HyperLogLogs.

use crate::row::row;

rows! {
    /// HyperLogLogs.
    HyperloglogCommand, Hyperloglog;

    /// Add elements to a HyperLogLog.
    Pfadd = row("PFADD", -2, "2.8.9").flags("write denyoom fast").acl("hyperloglog").key(1, "RW insert");

    /// Estimate how many different elements HyperLogLogs have seen.
    Pfcount = row("PFCOUNT", -2, "2.8.9").flags("readonly").acl("hyperloglog").key_range(1, -1, 1, "RW access");

    /// Look into a HyperLogLog.
    Pfdebug = row("PFDEBUG", 3, "2.8.9")
        .flags("write denyoom admin")
        .acl("hyperloglog")
        .key(2, "RW access")
        .internal();

    /// Merge HyperLogLogs into one.
    Pfmerge = row("PFMERGE", -2, "2.8.9")
        .flags("write denyoom")
        .acl("hyperloglog")
        .key(1, "RW access insert")
        .key_range(2, -1, 1, "RO access");

    /// Test the HyperLogLog code.
    Pfselftest = row("PFSELFTEST", 1, "2.8.9").flags("admin").acl("hyperloglog").internal();
}
