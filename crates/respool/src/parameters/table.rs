//! All parameters of redis-server 7.0 and some of Valkey, and what each does here. The only list of them. Long because it is one.

use super::live;
use super::row::{Effect, HIDDEN, IMMUTABLE, Kind, LISTENING, MULTI, PROCESS, PROTECTED, Parameter, SENSITIVE};

const INT_MAX: i64 = i32::MAX as i64;
const INT_MIN: i64 = i32::MIN as i64;
const UINT_MAX: i64 = u32::MAX as i64;
const LONG_MAX: u64 = i64::MAX as u64;
const MB: u64 = 1 << 20;

const fn row(name: &'static str, kind: Kind, default: &'static str, effect: Effect) -> Parameter {
    Parameter { name, alias: None, kind, default, flags: 0, effect }
}

impl Parameter {
    const fn formerly(mut self, alias: &'static str) -> Self {
        self.alias = Some(alias);
        self
    }

    /// What Valkey calls it.
    const fn also(mut self, alias: &'static str) -> Self {
        self.alias = Some(alias);
        self
    }

    const fn flags(mut self, flags: u8) -> Self {
        self.flags = flags;
        self
    }
}

/// A heading of the page and the parameters under it.
pub struct Section {
    /// The heading.
    pub title: &'static str,
    /// The parameters, in the order of the page.
    pub parameters: &'static [Parameter],
}

/// All parameters.
pub static SECTIONS: &[Section] = &[
    Section {
        title: "Listening",
        parameters: &[
            row("bind", Kind::Bind, "* -::*", Effect::Start).flags(LISTENING | MULTI),
            row("port", Kind::Number { min: 0, max: 65535 }, "6379", Effect::Start).flags(LISTENING),
            row("unixsocket", Kind::Text, "", Effect::Start).flags(IMMUTABLE),
            row("unixsocketperm", Kind::Octal, "0", Effect::Start).flags(IMMUTABLE),
            row("tcp-backlog", Kind::Number { min: 0, max: INT_MAX }, "511", Effect::Start).flags(IMMUTABLE),
            row("tcp-keepalive", Kind::Number { min: 0, max: INT_MAX }, "300", Effect::Setting(live::TCP_KEEPALIVE)),
            row("protected-mode", Kind::Switch, "yes", Effect::Setting(live::PROTECTED_MODE)).flags(PROCESS),
            row("timeout", Kind::Number { min: 0, max: INT_MAX }, "0", Effect::Setting(live::TIMEOUT)),
            row("maxclients", Kind::Number { min: 1, max: UINT_MAX }, "10000", Effect::Setting(live::MAXCLIENTS))
                .flags(PROCESS),
            row("bind-source-addr", Kind::Text, "", Effect::Only(&[""], "this server connects to no other")),
            row(
                "socket-mark-id",
                Kind::Number { min: 0, max: UINT_MAX },
                "0",
                Effect::Only(&["0"], "sockets are not marked"),
            )
            .flags(IMMUTABLE),
        ],
    },
    Section {
        title: "TLS",
        parameters: &[
            row("tls-port", Kind::Number { min: 0, max: 65535 }, "0", Effect::Start).flags(LISTENING),
            row("tls-cert-file", Kind::Text, "", Effect::Start).flags(LISTENING),
            row("tls-key-file", Kind::Text, "", Effect::Start).flags(LISTENING),
            row("tls-ca-cert-file", Kind::Text, "", Effect::Start).flags(LISTENING),
            row("tls-auth-clients", Kind::Word(&["no", "yes", "optional"]), "yes", Effect::Start).flags(LISTENING),
            row("tls-key-file-pass", Kind::Text, "", Effect::Only(&[""], "the key file must not be encrypted"))
                .flags(SENSITIVE),
            row("tls-ca-cert-dir", Kind::Text, "", Effect::Only(&[""], "name the authorities with tls-ca-cert-file")),
            row("tls-protocols", Kind::Text, "", Effect::Only(&["", "TLSv1.2 TLSv1.3"], "TLS 1.2 and 1.3 are spoken")),
            row("tls-ciphers", Kind::Text, "", Effect::Only(&[""], "the cipher suites are those of rustls")),
            row("tls-ciphersuites", Kind::Text, "", Effect::Only(&[""], "the cipher suites are those of rustls")),
            row("tls-dh-params-file", Kind::Text, "", Effect::Without("key exchange by elliptic curves needs none")),
            row("tls-prefer-server-ciphers", Kind::Switch, "no", Effect::Without("rustls chooses")),
            row("tls-session-caching", Kind::Switch, "yes", Effect::Without("rustls keeps sessions by itself")),
            row(
                "tls-session-cache-size",
                Kind::Number { min: 0, max: INT_MAX },
                "20480",
                Effect::Without("rustls keeps sessions by itself"),
            ),
            row(
                "tls-session-cache-timeout",
                Kind::Number { min: 0, max: INT_MAX },
                "300",
                Effect::Without("rustls keeps sessions by itself"),
            ),
            row("tls-client-cert-file", Kind::Text, "", Effect::Without("this server connects to no other")),
            row("tls-client-key-file", Kind::Text, "", Effect::Without("this server connects to no other")),
            row("tls-client-key-file-pass", Kind::Text, "", Effect::Without("this server connects to no other"))
                .flags(SENSITIVE),
            row("tls-cluster", Kind::Switch, "no", Effect::Without("this server connects to no other")),
            row("tls-replication", Kind::Switch, "no", Effect::Without("this server connects to no other")),
        ],
    },
    Section {
        title: "Users",
        parameters: &[
            row("requirepass", Kind::Text, "", Effect::Users).flags(SENSITIVE),
            row("aclfile", Kind::Text, "", Effect::Start).flags(IMMUTABLE),
            row("acl-pubsub-default", Kind::Word(&["allchannels", "resetchannels"]), "resetchannels", Effect::Users),
            row(
                "acllog-max-len",
                Kind::Number { min: 0, max: i64::MAX },
                "128",
                Effect::SettingOfUsers(live::ACLLOG_LEN),
            ),
            row("enable-protected-configs", Kind::Word(&["no", "yes", "local"]), "no", Effect::Start).flags(IMMUTABLE),
            row("enable-debug-command", Kind::Word(&["no", "yes", "local"]), "no", Effect::Start).flags(IMMUTABLE),
            row(
                "enable-module-command",
                Kind::Word(&["no", "yes", "local"]),
                "no",
                Effect::Without("there are no modules"),
            )
            .flags(IMMUTABLE),
        ],
    },
    Section {
        title: "Limits of clients",
        parameters: &[
            row(
                "client-output-buffer-limit",
                Kind::OutputLimits,
                "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60",
                Effect::Setting(live::OUTPUT_LIMITS),
            )
            .flags(MULTI),
            row(
                "client-query-buffer-limit",
                Kind::Memory { min: MB, max: LONG_MAX },
                "1073741824",
                Effect::Setting(live::REQUEST_BYTES),
            ),
            row(
                "proto-max-bulk-len",
                Kind::Memory { min: MB, max: LONG_MAX },
                "536870912",
                Effect::Setting(live::BULK_BYTES),
            ),
            row("maxmemory-clients", Kind::MemoryOrPercent, "0", Effect::Setting(live::MAXMEMORY_CLIENTS)),
            row(
                "tracking-table-max-keys",
                Kind::Number { min: 0, max: i64::MAX },
                "1000000",
                Effect::Setting(live::TRACKED_KEYS),
            ),
        ],
    },
    Section {
        title: "Memory and encodings",
        parameters: &[
            row("maxmemory", Kind::Memory { min: 0, max: u64::MAX }, "0", Effect::SettingAndEngine(live::MAXMEMORY)),
            row(
                "maxmemory-policy",
                Kind::Word(&[
                    "volatile-lru",
                    "volatile-lfu",
                    "volatile-random",
                    "volatile-ttl",
                    "allkeys-lru",
                    "allkeys-lfu",
                    "allkeys-random",
                    "noeviction",
                ]),
                "noeviction",
                Effect::SettingAndEngine(live::MAXMEMORY_POLICY),
            ),
            row(
                "maxmemory-samples",
                Kind::Number { min: 1, max: INT_MAX },
                "5",
                Effect::SettingAndEngine(live::MAXMEMORY_SAMPLES),
            ),
            row("maxmemory-eviction-tenacity", Kind::Number { min: 0, max: 100 }, "10", Effect::Engine),
            row("lfu-log-factor", Kind::Number { min: 0, max: INT_MAX }, "10", Effect::Engine),
            row("lfu-decay-time", Kind::Number { min: 0, max: INT_MAX }, "1", Effect::Engine),
            row("hash-max-listpack-entries", Kind::Number { min: 0, max: i64::MAX }, "512", Effect::Engine)
                .formerly("hash-max-ziplist-entries"),
            row("hash-max-listpack-value", Kind::Memory { min: 0, max: LONG_MAX }, "64", Effect::Engine)
                .formerly("hash-max-ziplist-value"),
            row("set-max-intset-entries", Kind::Number { min: 0, max: i64::MAX }, "512", Effect::Engine),
            row(
                "set-max-listpack-entries",
                Kind::Number { min: 0, max: i64::MAX },
                "128",
                Effect::Without("sets of texts are hash tables, as in Redis 7.0"),
            )
            .flags(HIDDEN),
            row(
                "set-max-listpack-value",
                Kind::Memory { min: 0, max: LONG_MAX },
                "64",
                Effect::Without("sets of texts are hash tables, as in Redis 7.0"),
            )
            .flags(HIDDEN),
            row("zset-max-listpack-entries", Kind::Number { min: 0, max: i64::MAX }, "128", Effect::Engine)
                .formerly("zset-max-ziplist-entries"),
            row("zset-max-listpack-value", Kind::Memory { min: 0, max: LONG_MAX }, "64", Effect::Engine)
                .formerly("zset-max-ziplist-value"),
            row("hll-sparse-max-bytes", Kind::Memory { min: 0, max: LONG_MAX }, "3000", Effect::Engine),
            row("stream-node-max-bytes", Kind::Memory { min: 0, max: LONG_MAX }, "4096", Effect::Engine),
            row("stream-node-max-entries", Kind::Number { min: 0, max: i64::MAX }, "100", Effect::Engine),
            row(
                "list-max-listpack-size",
                Kind::Number { min: INT_MIN, max: INT_MAX },
                "-2",
                Effect::Without("a node of a list has up to 8 KB"),
            )
            .formerly("list-max-ziplist-size"),
            row(
                "list-compress-depth",
                Kind::Number { min: 0, max: INT_MAX },
                "0",
                Effect::Without("lists are not compressed"),
            ),
            row("activerehashing", Kind::Switch, "yes", Effect::Without("tables grow in steps of their own")),
            row("activedefrag", Kind::Switch, "no", Effect::Only(&["no"], "values lie in tables that need none")),
            row(
                "active-defrag-cycle-min",
                Kind::Number { min: 1, max: 99 },
                "1",
                Effect::Without("there is no active defragmentation"),
            ),
            row(
                "active-defrag-cycle-max",
                Kind::Number { min: 1, max: 99 },
                "25",
                Effect::Without("there is no active defragmentation"),
            ),
            row(
                "active-defrag-threshold-lower",
                Kind::Number { min: 0, max: 1000 },
                "10",
                Effect::Without("there is no active defragmentation"),
            ),
            row(
                "active-defrag-threshold-upper",
                Kind::Number { min: 0, max: 1000 },
                "100",
                Effect::Without("there is no active defragmentation"),
            ),
            row(
                "active-defrag-max-scan-fields",
                Kind::Number { min: 1, max: i64::MAX },
                "1000",
                Effect::Without("there is no active defragmentation"),
            ),
            row(
                "active-defrag-ignore-bytes",
                Kind::Memory { min: 1, max: LONG_MAX },
                "104857600",
                Effect::Without("there is no active defragmentation"),
            ),
            row("jemalloc-bg-thread", Kind::Switch, "yes", Effect::Without("the allocator is set up at the start")),
            row(
                "lazyfree-lazy-eviction",
                Kind::Switch,
                "no",
                Effect::Without("large values are always freed little by little"),
            ),
            row(
                "lazyfree-lazy-expire",
                Kind::Switch,
                "no",
                Effect::Without("large values are always freed little by little"),
            ),
            row(
                "lazyfree-lazy-server-del",
                Kind::Switch,
                "no",
                Effect::Without("large values are always freed little by little"),
            ),
            row(
                "lazyfree-lazy-user-del",
                Kind::Switch,
                "no",
                Effect::Without("large values are always freed little by little"),
            ),
            row(
                "lazyfree-lazy-user-flush",
                Kind::Switch,
                "no",
                Effect::Without("large values are always freed little by little"),
            ),
            row("hz", Kind::Number { min: 0, max: INT_MAX }, "10", Effect::Without("timers have periods of their own")),
            row("dynamic-hz", Kind::Switch, "yes", Effect::Without("timers have periods of their own")),
            row(
                "active-expire-effort",
                Kind::Number { min: 1, max: 10 },
                "1",
                Effect::Without("keys expire as soon as their time has come"),
            ),
            row("cross-slot", Kind::Word(&["split", "refuse"]), "split", Effect::Setting(live::CROSS_SLOT))
                .flags(HIDDEN),
            row("databases", Kind::Number { min: 1, max: INT_MAX }, "16", Effect::Start).flags(IMMUTABLE),
        ],
    },
    Section {
        title: "Scripts and what is seen",
        parameters: &[
            row(
                "busy-reply-threshold",
                Kind::Number { min: 0, max: i64::MAX },
                "5000",
                Effect::SettingAndEngine(live::BUSY),
            )
            .formerly("lua-time-limit"),
            row(
                "lua-enable-deprecated-api",
                Kind::Switch,
                "no",
                Effect::Only(&["no"], "scripts have no deprecated functions"),
            )
            .flags(IMMUTABLE | HIDDEN),
            row(
                "slowlog-log-slower-than",
                Kind::Number { min: -1, max: i64::MAX },
                "10000",
                Effect::Setting(live::SLOWLOG_THRESHOLD),
            )
            .also("commandlog-execution-slower-than"),
            row("slowlog-max-len", Kind::Number { min: 0, max: i64::MAX }, "128", Effect::Setting(live::SLOWLOG_LEN))
                .also("commandlog-slow-execution-max-len"),
            row(
                "commandlog-request-larger-than",
                Kind::Number { min: -1, max: i64::MAX },
                "1048576",
                Effect::Setting(live::LARGE_REQUEST_BYTES),
            ),
            row(
                "commandlog-large-request-max-len",
                Kind::Number { min: 0, max: i64::MAX },
                "128",
                Effect::Setting(live::LARGE_REQUEST_LEN),
            ),
            row(
                "commandlog-reply-larger-than",
                Kind::Number { min: -1, max: i64::MAX },
                "1048576",
                Effect::Setting(live::LARGE_REPLY_BYTES),
            ),
            row(
                "commandlog-large-reply-max-len",
                Kind::Number { min: 0, max: i64::MAX },
                "128",
                Effect::Setting(live::LARGE_REPLY_LEN),
            ),
            row(
                "latency-monitor-threshold",
                Kind::Number { min: 0, max: i64::MAX },
                "0",
                Effect::Setting(live::LATENCY_THRESHOLD),
            ),
            row("latency-tracking", Kind::Switch, "yes", Effect::Setting(live::LATENCY_TRACKING)),
            row("latency-tracking-info-percentiles", Kind::Percentiles, "50 99 99.9", Effect::Kept).flags(MULTI),
            row("notify-keyspace-events", Kind::Events, "", Effect::Setting(live::EVENTS)),
        ],
    },
    Section {
        title: "The process",
        parameters: &[
            row("daemonize", Kind::Switch, "no", Effect::Start).flags(IMMUTABLE),
            row("supervised", Kind::Word(&["upstart", "systemd", "auto", "no"]), "no", Effect::Start).flags(IMMUTABLE),
            row("pidfile", Kind::Text, "", Effect::Start).flags(IMMUTABLE),
            row("logfile", Kind::Text, "", Effect::Start).flags(IMMUTABLE),
            row(
                "loglevel",
                Kind::Word(&["debug", "verbose", "notice", "warning"]),
                "notice",
                Effect::Setting(live::LOGLEVEL),
            )
            .flags(PROCESS),
            row(
                "syslog-enabled",
                Kind::Switch,
                "no",
                Effect::Only(&["no"], "nothing is written to syslog: use logfile"),
            )
            .flags(IMMUTABLE),
            row("syslog-ident", Kind::Text, "redis", Effect::Without("nothing is written to syslog")).flags(IMMUTABLE),
            row(
                "syslog-facility",
                Kind::Word(&["user", "local0", "local1", "local2", "local3", "local4", "local5", "local6", "local7"]),
                "local0",
                Effect::Without("nothing is written to syslog"),
            )
            .flags(IMMUTABLE),
            row("always-show-logo", Kind::Switch, "no", Effect::Start).flags(IMMUTABLE),
            row("set-proc-title", Kind::Switch, "yes", Effect::Without("the title of the process is not changed"))
                .flags(IMMUTABLE),
            row(
                "proc-title-template",
                Kind::Text,
                "{title} {listen-addr} {server-mode}",
                Effect::Without("the title of the process is not changed"),
            ),
            row("dir", Kind::Directory, "", Effect::Start).flags(PROTECTED | PROCESS),
            row(
                "shutdown-on-sigint",
                Kind::Words(&["default", "save", "nosave", "now", "force"]),
                "default",
                Effect::Without("there is nothing to save"),
            )
            .flags(MULTI),
            row(
                "shutdown-on-sigterm",
                Kind::Words(&["default", "save", "nosave", "now", "force"]),
                "default",
                Effect::Without("there is nothing to save"),
            )
            .flags(MULTI),
            row(
                "shutdown-timeout",
                Kind::Number { min: 0, max: INT_MAX },
                "10",
                Effect::Setting(live::SHUTDOWN_TIMEOUT),
            )
            .flags(PROCESS),
            row(
                "min-io-threads-avoid-copy-reply",
                Kind::Number { min: 0, max: INT_MAX },
                "7",
                Effect::Without("a value is copied into the client's buffer of replies, whatever its size"),
            ),
            row(
                "min-string-size-avoid-copy-reply",
                Kind::Number { min: 0, max: INT_MAX },
                "16384",
                Effect::Without("a value is copied into the client's buffer of replies, whatever its size"),
            ),
            row(
                "min-string-size-avoid-copy-reply-threaded",
                Kind::Number { min: 0, max: INT_MAX },
                "65536",
                Effect::Without("a value is copied into the client's buffer of replies, whatever its size"),
            ),
            row(
                "io-threads",
                Kind::Number { min: 1, max: 128 },
                "1",
                Effect::Without("an engine belongs to one thread, which does its own input and output"),
            )
            .flags(IMMUTABLE),
            row(
                "io-threads-do-reads",
                Kind::Switch,
                "no",
                Effect::Without("an engine belongs to one thread, which does its own input and output"),
            )
            .flags(IMMUTABLE),
            row(
                "server_cpulist",
                Kind::Text,
                "",
                Effect::Only(&[""], "threads are not bound to processors: use taskset"),
            )
            .flags(IMMUTABLE),
            row("bio_cpulist", Kind::Text, "", Effect::Only(&[""], "threads are not bound to processors: use taskset"))
                .flags(IMMUTABLE),
            row(
                "aof_rewrite_cpulist",
                Kind::Text,
                "",
                Effect::Only(&[""], "threads are not bound to processors: use taskset"),
            )
            .flags(IMMUTABLE),
            row(
                "bgsave_cpulist",
                Kind::Text,
                "",
                Effect::Only(&[""], "threads are not bound to processors: use taskset"),
            )
            .flags(IMMUTABLE),
            row("oom-score-adj", Kind::Word(&["no", "yes", "relative", "absolute"]), "no", Effect::Kept).flags(PROCESS),
            row("oom-score-adj-values", Kind::OomValues, "0 200 800", Effect::Kept).flags(MULTI | PROCESS),
            row("disable-thp", Kind::Switch, "yes", Effect::Without("no process is forked, so large pages do no harm"))
                .flags(IMMUTABLE),
            row("crash-log-enabled", Kind::Switch, "yes", Effect::Without("a panic is told in the log")),
            row("crash-memcheck-enabled", Kind::Switch, "yes", Effect::Without("a panic is told in the log")),
            row("use-exit-on-panic", Kind::Switch, "no", Effect::Without("a panic is told in the log")).flags(HIDDEN),
            row(
                "watchdog-period",
                Kind::Number { min: 0, max: INT_MAX },
                "0",
                Effect::Without("stalls of a worker are counted (INFO proxy)"),
            )
            .flags(HIDDEN),
            row("ignore-warnings", Kind::Text, "", Effect::Without("the system is not checked")),
        ],
    },
    Section {
        title: "Snapshots and the append-only file",
        parameters: &[
            row(
                "save",
                Kind::Save,
                "3600 1 300 100 60 10000",
                Effect::Without("nothing is written to disk: what the server holds is lost when it ends"),
            )
            .flags(MULTI),
            row(
                "dbfilename",
                Kind::FileName { may_be_empty: true },
                "dump.rdb",
                Effect::Without(
                    "nothing is written to disk; the server does not start where such a file would have to be loaded",
                ),
            )
            .flags(PROTECTED),
            row(
                "rdbcompression",
                Kind::Switch,
                "yes",
                Effect::Without("nothing is written to disk: what the server holds is lost when it ends"),
            ),
            row(
                "stop-writes-on-bgsave-error",
                Kind::Switch,
                "yes",
                Effect::Without("nothing is written to disk: what the server holds is lost when it ends"),
            ),
            row(
                "rdb-save-incremental-fsync",
                Kind::Switch,
                "yes",
                Effect::Without("nothing is written to disk: what the server holds is lost when it ends"),
            ),
            row(
                "rdb-del-sync-files",
                Kind::Switch,
                "no",
                Effect::Without("nothing is written to disk: what the server holds is lost when it ends"),
            ),
            row(
                "rdbchecksum",
                Kind::Switch,
                "yes",
                Effect::Without("nothing is written to disk: what the server holds is lost when it ends"),
            )
            .flags(IMMUTABLE),
            row(
                "rdb-key-save-delay",
                Kind::Number { min: INT_MIN, max: INT_MAX },
                "0",
                Effect::Without("nothing is written to disk: what the server holds is lost when it ends"),
            )
            .flags(HIDDEN),
            row(
                "key-load-delay",
                Kind::Number { min: INT_MIN, max: INT_MAX },
                "0",
                Effect::Without("nothing is written to disk: what the server holds is lost when it ends"),
            )
            .flags(HIDDEN),
            row(
                "loading-process-events-interval-bytes",
                Kind::Number { min: 1024, max: INT_MAX },
                "2097152",
                Effect::Without("nothing is written to disk: what the server holds is lost when it ends"),
            )
            .flags(HIDDEN),
            row(
                "sanitize-dump-payload",
                Kind::Word(&["no", "yes", "clients"]),
                "no",
                Effect::Without("payloads are always checked"),
            ),
            row(
                "appendonly",
                Kind::Switch,
                "no",
                Effect::Only(
                    &["no"],
                    "there is no append-only file: nothing is written to disk: what the server holds is lost when it ends",
                ),
            ),
            row(
                "appendfilename",
                Kind::FileName { may_be_empty: false },
                "appendonly.aof",
                Effect::Without("nothing is written to disk: what the server holds is lost when it ends"),
            )
            .flags(IMMUTABLE),
            row(
                "appenddirname",
                Kind::FileName { may_be_empty: false },
                "appendonlydir",
                Effect::Without("the server does not start where such files would have to be loaded"),
            )
            .flags(IMMUTABLE),
            row(
                "appendfsync",
                Kind::Word(&["everysec", "always", "no"]),
                "everysec",
                Effect::Without("nothing is written to disk: what the server holds is lost when it ends"),
            ),
            row(
                "auto-aof-rewrite-percentage",
                Kind::Number { min: 0, max: INT_MAX },
                "100",
                Effect::Without("nothing is written to disk: what the server holds is lost when it ends"),
            ),
            row(
                "auto-aof-rewrite-min-size",
                Kind::Memory { min: 0, max: LONG_MAX },
                "67108864",
                Effect::Without("nothing is written to disk: what the server holds is lost when it ends"),
            ),
            row(
                "no-appendfsync-on-rewrite",
                Kind::Switch,
                "no",
                Effect::Without("nothing is written to disk: what the server holds is lost when it ends"),
            ),
            row(
                "aof-rewrite-incremental-fsync",
                Kind::Switch,
                "yes",
                Effect::Without("nothing is written to disk: what the server holds is lost when it ends"),
            ),
            row(
                "aof-load-truncated",
                Kind::Switch,
                "yes",
                Effect::Without("nothing is written to disk: what the server holds is lost when it ends"),
            ),
            row(
                "aof-use-rdb-preamble",
                Kind::Switch,
                "yes",
                Effect::Without("nothing is written to disk: what the server holds is lost when it ends"),
            ),
            row(
                "aof-timestamp-enabled",
                Kind::Switch,
                "no",
                Effect::Without("nothing is written to disk: what the server holds is lost when it ends"),
            ),
            row(
                "aof-disable-auto-gc",
                Kind::Switch,
                "no",
                Effect::Without("nothing is written to disk: what the server holds is lost when it ends"),
            ),
        ],
    },
    Section {
        title: "Replication",
        parameters: &[
            row("replicaof", Kind::ReplicaOf, "", Effect::Only(&[""], "there is no replication"))
                .formerly("slaveof")
                .flags(IMMUTABLE | MULTI),
            row("masterauth", Kind::Text, "", Effect::Without("there is no replication")).flags(SENSITIVE),
            row("masteruser", Kind::Text, "", Effect::Without("there is no replication")).flags(SENSITIVE),
            row(
                "min-replicas-to-write",
                Kind::Number { min: 0, max: INT_MAX },
                "0",
                Effect::Only(&["0"], "there is no replication, so writes would be refused for good"),
            )
            .formerly("min-slaves-to-write"),
            row(
                "min-replicas-max-lag",
                Kind::Number { min: 0, max: INT_MAX },
                "10",
                Effect::Without("there is no replication"),
            )
            .formerly("min-slaves-max-lag"),
            row("replica-lazy-flush", Kind::Switch, "no", Effect::Without("there is no replication"))
                .formerly("slave-lazy-flush"),
            row("replica-serve-stale-data", Kind::Switch, "yes", Effect::Without("there is no replication"))
                .formerly("slave-serve-stale-data"),
            row("replica-read-only", Kind::Switch, "yes", Effect::Without("there is no replication"))
                .formerly("slave-read-only"),
            row("replica-ignore-maxmemory", Kind::Switch, "yes", Effect::Without("there is no replication"))
                .formerly("slave-ignore-maxmemory"),
            row("repl-disable-tcp-nodelay", Kind::Switch, "no", Effect::Without("there is no replication")),
            row("repl-diskless-sync", Kind::Switch, "yes", Effect::Without("there is no replication")),
            row("replica-announced", Kind::Switch, "yes", Effect::Without("there is no replication")),
            row("replica-ignore-disk-write-errors", Kind::Switch, "no", Effect::Without("there is no replication")),
            row(
                "repl-diskless-load",
                Kind::Word(&["disabled", "on-empty-db", "swapdb"]),
                "disabled",
                Effect::Without("there is no replication"),
            ),
            row(
                "repl-diskless-sync-delay",
                Kind::Number { min: 0, max: INT_MAX },
                "5",
                Effect::Without("there is no replication"),
            ),
            row(
                "repl-diskless-sync-max-replicas",
                Kind::Number { min: 0, max: INT_MAX },
                "0",
                Effect::Without("there is no replication"),
            ),
            row(
                "repl-timeout",
                Kind::Number { min: 1, max: INT_MAX },
                "60",
                Effect::Without("there is no replication"),
            ),
            row(
                "repl-ping-replica-period",
                Kind::Number { min: 1, max: INT_MAX },
                "10",
                Effect::Without("there is no replication"),
            )
            .formerly("repl-ping-slave-period"),
            row(
                "repl-backlog-size",
                Kind::Memory { min: 1, max: LONG_MAX },
                "1048576",
                Effect::Without("there is no replication"),
            ),
            row(
                "repl-backlog-ttl",
                Kind::Number { min: 0, max: i64::MAX },
                "3600",
                Effect::Without("there is no replication"),
            ),
            row(
                "replica-priority",
                Kind::Number { min: 0, max: INT_MAX },
                "100",
                Effect::Without("there is no replication"),
            )
            .formerly("slave-priority"),
            row("replica-announce-ip", Kind::Text, "", Effect::Without("there is no replication"))
                .formerly("slave-announce-ip"),
            row(
                "replica-announce-port",
                Kind::Number { min: 0, max: 65535 },
                "0",
                Effect::Without("there is no replication"),
            )
            .formerly("slave-announce-port"),
            row(
                "propagation-error-behavior",
                Kind::Word(&["ignore", "panic", "panic-on-replicas"]),
                "ignore",
                Effect::Without("there is no replication"),
            ),
        ],
    },
    Section {
        title: "Cluster",
        parameters: &[
            row("cluster-enabled", Kind::Switch, "no", Effect::Only(&["no"], "this server is no member of a cluster"))
                .flags(IMMUTABLE),
            row(
                "cluster-config-file",
                Kind::Text,
                "nodes.conf",
                Effect::Without("this server is no member of a cluster"),
            )
            .flags(IMMUTABLE),
            row(
                "cluster-port",
                Kind::Number { min: 0, max: 65535 },
                "0",
                Effect::Without("this server is no member of a cluster"),
            )
            .flags(IMMUTABLE),
            row(
                "cluster-require-full-coverage",
                Kind::Switch,
                "yes",
                Effect::Without("this server is no member of a cluster"),
            ),
            row(
                "cluster-allow-reads-when-down",
                Kind::Switch,
                "no",
                Effect::Without("this server is no member of a cluster"),
            ),
            row(
                "cluster-allow-pubsubshard-when-down",
                Kind::Switch,
                "yes",
                Effect::Without("this server is no member of a cluster"),
            ),
            row(
                "cluster-allow-replica-migration",
                Kind::Switch,
                "yes",
                Effect::Without("this server is no member of a cluster"),
            ),
            row(
                "cluster-replica-no-failover",
                Kind::Switch,
                "no",
                Effect::Without("this server is no member of a cluster"),
            )
            .formerly("cluster-slave-no-failover"),
            row(
                "cluster-replica-validity-factor",
                Kind::Number { min: 0, max: INT_MAX },
                "10",
                Effect::Without("this server is no member of a cluster"),
            )
            .formerly("cluster-slave-validity-factor"),
            row(
                "cluster-migration-barrier",
                Kind::Number { min: 0, max: INT_MAX },
                "1",
                Effect::Without("this server is no member of a cluster"),
            ),
            row(
                "cluster-node-timeout",
                Kind::Number { min: 0, max: i64::MAX },
                "15000",
                Effect::Without("this server is no member of a cluster"),
            ),
            row(
                "cluster-link-sendbuf-limit",
                Kind::Memory { min: 0, max: u64::MAX },
                "0",
                Effect::Without("this server is no member of a cluster"),
            ),
            row("cluster-announce-ip", Kind::Text, "", Effect::Without("this server is no member of a cluster")),
            row("cluster-announce-hostname", Kind::Text, "", Effect::Without("this server is no member of a cluster")),
            row(
                "cluster-announce-port",
                Kind::Number { min: 0, max: 65535 },
                "0",
                Effect::Without("this server is no member of a cluster"),
            ),
            row(
                "cluster-announce-bus-port",
                Kind::Number { min: 0, max: 65535 },
                "0",
                Effect::Without("this server is no member of a cluster"),
            ),
            row(
                "cluster-announce-tls-port",
                Kind::Number { min: 0, max: 65535 },
                "0",
                Effect::Without("this server is no member of a cluster"),
            ),
            row(
                "cluster-preferred-endpoint-type",
                Kind::Word(&["ip", "hostname", "unknown-endpoint"]),
                "ip",
                Effect::Without("this server is no member of a cluster"),
            ),
        ],
    },
];

/// All parameters, section by section.
pub fn all() -> impl Iterator<Item = &'static Parameter> + Clone {
    SECTIONS.iter().flat_map(|section| section.parameters)
}
