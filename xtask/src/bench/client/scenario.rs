//! What is measured, and which figures of it are shown.

/// A scenario of the programs, with its settings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    /// What stands above its table.
    pub(crate) title: &'static str,
    /// Its name in the programs.
    pub(crate) program: &'static str,
    pub(crate) tasks: u32,
    /// How long it lasts, as a multiple of the usual.
    pub(crate) length: f64,
    /// How often the server is ended and started again meanwhile.
    pub(crate) restarts: u32,
    /// Requests of each batch.
    pub(crate) batch: u32,
    /// What is done to the cluster that it runs on; `None`: it runs on one server.
    pub(crate) harm: Option<Harm>,
    /// One round is enough: what happens is counted and not timed, or it is timed at other sizes in several.
    pub(crate) is_once: bool,
    /// How often requests are due; of open loops.
    pub(crate) rate: Rate,
    /// By a unix socket.
    pub(crate) is_unix: bool,
    /// Clients whose callers are threads are left out: there are more callers than a machine has threads, or a server takes clients.
    pub(crate) is_without_threads: bool,
    pub(crate) columns: &'static [Column],
}

/// What is done to a cluster at a third of the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Harm {
    /// The primary of the first slots is killed.
    Kill,
    /// Its first 1,000 slots move to another primary.
    Move,
}

/// How often requests are due.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Rate {
    /// A part of what the slowest client has done with 128 callers, or what the command line says.
    OfSlowest(f64),
    /// So many a second.
    Fixed(f64),
}

/// A figure of a scenario: its name in the report, what it is called, digits behind the point.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column(pub(crate) &'static str, pub(crate) &'static str, pub(crate) usize);

const CLOSED: &[Column] = &[
    Column("ops_s", "ops/s", 0),
    Column("p50_us", "p50 us", 0),
    Column("p99_us", "p99 us", 0),
    Column("cpu_us", "client CPU us/op", 2),
    Column("server_cpu_us", "server CPU us/op", 2),
    Column("commands_per_read", "commands per server read", 1),
    Column("allocations", "allocations/op", 2),
    Column("errors", "errors", 0),
    Column("wrong", "wrong values", 0),
];

const BATCH: &[Column] = &[
    Column("ops_s", "requests/s", 0),
    Column("p50_us", "batch p50 us", 0),
    Column("p99_us", "batch p99 us", 0),
    Column("cpu_us", "client CPU us/request", 2),
    Column("server_cpu_us", "server CPU us/request", 2),
    Column("allocations", "allocations/request", 2),
    Column("errors", "errors", 0),
    Column("wrong", "wrong values", 0),
];

const COUNTED: &[Column] = &[
    Column("acknowledged", "acknowledged", 0),
    Column("not_sent", "said: not sent", 0),
    Column("maybe", "said: may be executed", 0),
    Column("cancelled", "given up", 0),
    Column("untrue", "executed though not sent", 0),
    Column("repeated", "executed twice", 0),
    Column("wrong", "wrong replies", 0),
    Column("taken", "places left taken", 0),
];

const USUAL: Scenario = Scenario {
    name: "",
    title: "",
    program: "closed",
    tasks: 128,
    length: 1.0,
    restarts: 0,
    batch: 10,
    harm: None,
    is_once: false,
    rate: Rate::OfSlowest(0.25),
    is_unix: false,
    is_without_threads: false,
    columns: CLOSED,
};

const SERIAL: &[Column] = &[
    Column("raw_p50_us", "raw p50 us", 1),
    Column("p50_us", "GET p50 us", 1),
    Column("to_raw", "GET to raw", 3),
    Column("set_to_raw", "SET to raw", 3),
    Column("p99_us", "GET p99 us", 1),
    Column("cpu_us", "CPU us/GET", 2),
    Column("raw_cpu_us", "raw CPU us", 2),
    Column("allocations", "allocations/GET", 2),
    Column("set_allocations", "allocations/SET", 2),
    Column("after_to_raw", "GET to raw, after", 3),
    Column("after_to_before", "after to before", 3),
];

const OPEN: &[Column] = &[
    Column("rate", "due a second", 0),
    Column("ops_s", "ops/s", 0),
    Column("done_to_due", "done to due", 3),
    Column("p50_us", "p50 us", 0),
    Column("p99_us", "p99 us", 0),
    Column("p999_us", "p99.9 us", 0),
    Column("late_p99_us", "handed out late, p99 us", 0),
    Column("cpu_us", "client CPU us/op", 2),
    Column("overrun", "not kept up", 0),
    Column("errors", "errors", 0),
    Column("wrong", "wrong values", 0),
];

const fn open(name: &'static str, title: &'static str, rate: Rate, is_once: bool) -> Scenario {
    Scenario { name, title, program: "open", rate, is_once, columns: OPEN, ..USUAL }
}

const CLUSTER: &[Column] = &[
    Column("ops_s", "ops/s before", 0),
    Column("others_to_before", "other shards during to before", 3),
    Column("control_to_before", "sockets without a client, during to before", 3),
    Column("others_to_control", "other shards to sockets", 3),
    Column("others_worst", "their worst half second to before", 3),
    Column("harm_s", "what is done takes, s", 1),
    Column("gap_ms", "shard without a reply, ms", 0),
    Column("moved", "MOVED replies", 0),
    Column("not_sent", "said: not sent", 0),
    Column("maybe", "said: may be executed", 0),
    Column("unread", "failed GETs", 0),
    Column("lost", "acknowledged, not there after", 0),
    Column("untrue", "executed though not sent", 0),
    Column("repeated", "executed twice", 0),
    Column("wrong", "wrong replies", 0),
];

pub(crate) const ALL: [Scenario; 20] = [
    Scenario {
        name: "serial",
        title: "One caller, beside a raw socket in the same process; and again after two seconds of 1,000 callers",
        program: "serial",
        tasks: 1,
        columns: SERIAL,
        ..USUAL
    },
    Scenario {
        name: "serial-unix",
        title: "As above, by a unix socket",
        program: "serial",
        tasks: 1,
        is_unix: true,
        is_once: true,
        columns: SERIAL,
        ..USUAL
    },
    Scenario { name: "closed-8", title: "8 callers, half SET and half GET", tasks: 8, ..USUAL },
    Scenario { name: "closed-128", title: "128 callers, half SET and half GET", ..USUAL },
    Scenario { name: "closed-1000", title: "1,000 callers, half SET and half GET", tasks: 1000, ..USUAL },
    Scenario {
        name: "closed-10000",
        title: "10,000 callers, half SET and half GET; of tasks alone",
        tasks: 10_000,
        is_without_threads: true,
        ..USUAL
    },
    Scenario {
        name: "closed-128-unix",
        title: "128 callers, half SET and half GET, by a unix socket",
        is_unix: true,
        is_once: true,
        ..USUAL
    },
    Scenario {
        name: "batch-10",
        title: "128 callers, batches of 10 SET and of 10 GET",
        program: "batch",
        columns: BATCH,
        ..USUAL
    },
    Scenario {
        name: "batch-100",
        title: "128 callers, batches of 100 SET and of 100 GET",
        program: "batch",
        batch: 100,
        columns: BATCH,
        ..USUAL
    },
    open(
        "open",
        "Requests at random times, a quarter of what the slowest client has done with 128 callers, timed from when they were due",
        Rate::OfSlowest(0.25),
        false,
    ),
    open("open-half", "As above, half of it", Rate::OfSlowest(0.5), false),
    open("open-5k", "As above, 5,000 a second", Rate::Fixed(5e3), true),
    open("open-20k", "As above, 20,000 a second", Rate::Fixed(20e3), true),
    open(
        "open-60k",
        "As above, 60,000 a second; who does not hold that has done less than was due",
        Rate::Fixed(60e3),
        true,
    ),
    Scenario {
        name: "big",
        title: "100 callers of small GETs, alone and beside a GET of 8 MiB every 50 ms",
        program: "big",
        tasks: 100,
        length: 2.0,
        columns: &[
            Column("alone_p50_us", "alone p50 us", 0),
            Column("alone_p99_us", "alone p99 us", 0),
            Column("p50_us", "beside p50 us", 0),
            Column("p99_us", "beside p99 us", 0),
            Column("big_p50_us", "8 MiB p50 us", 0),
            Column("big_ops", "8 MiB GETs", 0),
            Column("errors", "errors", 0),
            Column("wrong", "wrong values", 0),
        ],
        ..USUAL
    },
    Scenario {
        name: "cancel",
        title: "128 callers that give up three calls of ten at a random time",
        program: "cancel",
        is_once: true,
        columns: COUNTED,
        ..USUAL
    },
    Scenario {
        name: "restart",
        title: "128 callers while the server is killed and started again and again; it keeps what it has executed",
        program: "restart",
        restarts: 20,
        is_once: true,
        columns: COUNTED,
        ..USUAL
    },
    Scenario {
        name: "restart-1000",
        title: "1,000 callers while the server is killed and started again and again, of tasks alone; it keeps what it has executed",
        program: "restart",
        tasks: 1_000,
        restarts: 20,
        is_once: true,
        is_without_threads: true,
        columns: COUNTED,
        ..USUAL
    },
    Scenario {
        name: "cluster-kill",
        title: "Three primaries and three replicas, 126 callers that pause 5 ms: the primary of a third of them is killed",
        program: "cluster",
        tasks: 126,
        length: 4.0,
        harm: Some(Harm::Kill),
        is_once: true,
        columns: CLUSTER,
        ..USUAL
    },
    Scenario {
        name: "cluster-move",
        title: "Three primaries and three replicas, 126 callers that pause 5 ms: the slots of a third of them move, and others, 1,000 in all",
        program: "cluster",
        tasks: 126,
        length: 4.0,
        harm: Some(Harm::Move),
        is_once: true,
        columns: CLUSTER,
        ..USUAL
    },
];
