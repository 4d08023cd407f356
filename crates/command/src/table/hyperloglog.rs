//! HyperLogLogs.

use crate::row::row;

rows! {
    /// HyperLogLogs.
    HyperloglogCommand, Hyperloglog;

    /// Add elements to a HyperLogLog.
    #[args = "key@0 [element+]"]
    #[reply = "flag"]
    #[complexity = "O(1)"]
    Pfadd = row("PFADD", -2, "2.8.9").flags("write denyoom fast").acl("hyperloglog").key(1, "RW insert");

    /// Estimate how many different elements HyperLogLogs have seen.
    #[args = "key@0+"]
    #[reply = "int"]
    #[complexity = "O(1)"]
    Pfcount = row("PFCOUNT", -2, "2.8.9").flags("readonly").acl("hyperloglog").key_range(1, -1, 1, "RW access");

    /// Look into a HyperLogLog.
    #[args = "subcommand key@0"]
    #[reply = "any"]
    Pfdebug = row("PFDEBUG", 3, "2.8.9")
        .flags("write denyoom admin")
        .acl("hyperloglog")
        .key(2, "RW access")
        .internal();

    /// Merge HyperLogLogs into one.
    #[args = "destkey@0 sourcekey@1+"]
    #[reply = "ok"]
    #[complexity = "O(N)"]
    Pfmerge = row("PFMERGE", -2, "2.8.9")
        .flags("write denyoom")
        .acl("hyperloglog")
        .key(1, "RW access insert")
        .key_range(2, -1, 1, "RO access");

    /// Test the HyperLogLog code.
    #[reply = "ok"]
    Pfselftest = row("PFSELFTEST", 1, "2.8.9").flags("admin").acl("hyperloglog").internal();
}
