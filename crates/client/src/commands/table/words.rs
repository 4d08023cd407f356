//! Words that arguments are one of.

// Written by `cargo xtask codegen` from the command table. Not to be edited.

use crate::commands::words;

words! {
    /// `ASC` or `DESC`.
    Order {
        /// `ASC`.
        Asc = b"ASC",
        /// `DESC`.
        Desc = b"DESC",
    }
}

words! {
    /// `ASYNC` or `SYNC`.
    Async {
        /// `ASYNC`.
        Async = b"ASYNC",
        /// `SYNC`.
        Sync = b"SYNC",
    }
}

words! {
    /// `BEFORE` or `AFTER`.
    BeforeAfter {
        /// `BEFORE`.
        Before = b"BEFORE",
        /// `AFTER`.
        After = b"AFTER",
    }
}

words! {
    /// `BYSCORE` or `BYLEX`.
    Sortby {
        /// `BYSCORE`.
        Byscore = b"BYSCORE",
        /// `BYLEX`.
        Bylex = b"BYLEX",
    }
}

words! {
    /// `BYTE` or `BIT`.
    IndexUnit {
        /// `BYTE`.
        Byte = b"BYTE",
        /// `BIT`.
        Bit = b"BIT",
    }
}

words! {
    /// `=` or `~`.
    Operator {
        /// `=`.
        Equal = b"=",
        /// `~`.
        Approximately = b"~",
    }
}

words! {
    /// `FLUSH` or `APPEND` or `REPLACE`.
    Policy {
        /// `FLUSH`.
        Flush = b"FLUSH",
        /// `APPEND`.
        Append = b"APPEND",
        /// `REPLACE`.
        Replace = b"REPLACE",
    }
}

words! {
    /// `FNX` or `FXX`.
    FnxFxx {
        /// `FNX`.
        Fnx = b"FNX",
        /// `FXX`.
        Fxx = b"FXX",
    }
}

words! {
    /// `FORCE` or `TAKEOVER`.
    Options {
        /// `FORCE`.
        Force = b"FORCE",
        /// `TAKEOVER`.
        Takeover = b"TAKEOVER",
    }
}

words! {
    /// `GT` or `LT`.
    Comparison {
        /// `GT`.
        Gt = b"GT",
        /// `LT`.
        Lt = b"LT",
    }
}

words! {
    /// `HARD` or `SOFT`.
    HardSoft {
        /// `HARD`.
        Hard = b"HARD",
        /// `SOFT`.
        Soft = b"SOFT",
    }
}

words! {
    /// `KEEPREF` or `DELREF` or `ACKED`.
    KeeprefDelrefAcked {
        /// `KEEPREF`.
        Keepref = b"KEEPREF",
        /// `DELREF`.
        Delref = b"DELREF",
        /// `ACKED`.
        Acked = b"ACKED",
    }
}

words! {
    /// `LEFT` or `RIGHT`.
    LeftRight {
        /// `LEFT`.
        Left = b"LEFT",
        /// `RIGHT`.
        Right = b"RIGHT",
    }
}

words! {
    /// `M` or `KM` or `FT` or `MI`.
    Unit {
        /// `M`.
        M = b"M",
        /// `KM`.
        Km = b"KM",
        /// `FT`.
        Ft = b"FT",
        /// `MI`.
        Mi = b"MI",
    }
}

words! {
    /// `MAXLEN` or `MINID`.
    Strategy {
        /// `MAXLEN`.
        Maxlen = b"MAXLEN",
        /// `MINID`.
        Minid = b"MINID",
    }
}

words! {
    /// `MIN` or `MAX`.
    MinMax {
        /// `MIN`.
        Min = b"MIN",
        /// `MAX`.
        Max = b"MAX",
    }
}

words! {
    /// `NORMAL` or `MASTER` or `REPLICA` or `PUBSUB`.
    NormalMasterReplicaPubsub {
        /// `NORMAL`.
        Normal = b"NORMAL",
        /// `MASTER`.
        Master = b"MASTER",
        /// `REPLICA`.
        Replica = b"REPLICA",
        /// `PUBSUB`.
        Pubsub = b"PUBSUB",
    }
}

words! {
    /// `NORMAL` or `MASTER` or `SLAVE` or `REPLICA` or `PUBSUB`.
    NormalMasterSlavePubsub {
        /// `NORMAL`.
        Normal = b"NORMAL",
        /// `MASTER`.
        Master = b"MASTER",
        /// `SLAVE`.
        Slave = b"SLAVE",
        /// `REPLICA`.
        Replica = b"REPLICA",
        /// `PUBSUB`.
        Pubsub = b"PUBSUB",
    }
}

words! {
    /// `NOSAVE` or `SAVE`.
    NosaveSave {
        /// `NOSAVE`.
        Nosave = b"NOSAVE",
        /// `SAVE`.
        Save = b"SAVE",
    }
}

words! {
    /// `NX` or `XX`.
    NxXx {
        /// `NX`.
        Nx = b"NX",
        /// `XX`.
        Xx = b"XX",
    }
}

words! {
    /// `NX` or `XX` or `GT` or `LT`.
    NxXxGtLt {
        /// `NX`.
        Nx = b"NX",
        /// `XX`.
        Xx = b"XX",
        /// `GT`.
        Gt = b"GT",
        /// `LT`.
        Lt = b"LT",
    }
}

words! {
    /// `ON` or `OFF`.
    OnOff {
        /// `ON`.
        On = b"ON",
        /// `OFF`.
        Off = b"OFF",
    }
}

words! {
    /// `ON` or `OFF` or `SKIP`.
    OnOffSkip {
        /// `ON`.
        On = b"ON",
        /// `OFF`.
        Off = b"OFF",
        /// `SKIP`.
        Skip = b"SKIP",
    }
}

words! {
    /// `SUM` or `MIN` or `MAX`.
    Aggregate {
        /// `SUM`.
        Sum = b"SUM",
        /// `MIN`.
        Min = b"MIN",
        /// `MAX`.
        Max = b"MAX",
    }
}

words! {
    /// `TIMEOUT` or `ERROR`.
    TimeoutError {
        /// `TIMEOUT`.
        Timeout = b"TIMEOUT",
        /// `ERROR`.
        Error = b"ERROR",
    }
}

words! {
    /// `WRAP` or `SAT` or `FAIL`.
    WrapSatFail {
        /// `WRAP`.
        Wrap = b"WRAP",
        /// `SAT`.
        Sat = b"SAT",
        /// `FAIL`.
        Fail = b"FAIL",
    }
}

words! {
    /// `WRITE` or `ALL`.
    WriteAll {
        /// `WRITE`.
        Write = b"WRITE",
        /// `ALL`.
        All = b"ALL",
    }
}

words! {
    /// `YES` or `NO`.
    YesNo {
        /// `YES`.
        Yes = b"YES",
        /// `NO`.
        No = b"NO",
    }
}

words! {
    /// `YES` or `SYNC` or `NO`.
    YesSyncNo {
        /// `YES`.
        Yes = b"YES",
        /// `SYNC`.
        Sync = b"SYNC",
        /// `NO`.
        No = b"NO",
    }
}
