//! Secrets: which settings of servers hold some and which every client may read, which arguments are some, and which requests may
//! bring or show some.
//!
//! Names of settings with passwords grow with every server (`masterauth`, later `primaryauth`), so what may be read is what is
//! listed here as harmless; a setting that is not on the list is hidden.

use std::sync::LazyLock;

use respool_wire::Args;

use crate::{Command, ConnectionCommand, GenericCommand, Lane, Row, ServerCommand};

/// Settings of redis-server that say nothing that a client may not know.
const OPEN_SETTINGS: &str = "\
        acl-pubsub-default acllog-max-len active-defrag-cycle-max active-defrag-cycle-min active-defrag-ignore-bytes \
    active-defrag-max-scan-fields active-defrag-threshold-lower active-defrag-threshold-upper active-expire-effort \
    activedefrag activerehashing always-show-logo aof-disable-auto-gc aof-load-truncated \
    aof-rewrite-incremental-fsync aof-timestamp-enabled aof-use-rdb-preamble aof_rewrite_cpulist appenddirname \
    appendfilename appendfsync appendonly auto-aof-rewrite-min-size auto-aof-rewrite-percentage bgsave_cpulist bind \
    bind-source-addr bio_cpulist busy-reply-threshold client-output-buffer-limit client-query-buffer-limit \
    cluster-allow-pubsubshard-when-down cluster-allow-reads-when-down cluster-allow-replica-migration \
    cluster-announce-bus-port cluster-announce-hostname cluster-announce-ip cluster-announce-port \
    cluster-announce-tls-port cluster-config-file cluster-enabled cluster-link-sendbuf-limit \
    cluster-migration-barrier cluster-node-timeout cluster-port cluster-preferred-endpoint-type \
    cluster-replica-no-failover cluster-replica-validity-factor cluster-require-full-coverage \
    cluster-slave-no-failover cluster-slave-validity-factor crash-log-enabled crash-memcheck-enabled daemonize \
    databases dbfilename dir disable-thp dynamic-hz enable-debug-command enable-module-command \
    enable-protected-configs hash-max-listpack-entries hash-max-listpack-value hash-max-ziplist-entries \
    hash-max-ziplist-value hll-sparse-max-bytes hz ignore-warnings io-threads io-threads-do-reads jemalloc-bg-thread \
    latency-monitor-threshold latency-tracking latency-tracking-info-percentiles lazyfree-lazy-eviction \
    lazyfree-lazy-expire lazyfree-lazy-server-del lazyfree-lazy-user-del lazyfree-lazy-user-flush lfu-decay-time \
    lfu-log-factor list-compress-depth list-max-listpack-size list-max-ziplist-size logfile loglevel lua-time-limit \
    maxclients maxmemory maxmemory-clients maxmemory-eviction-tenacity maxmemory-policy maxmemory-samples \
    min-replicas-max-lag min-replicas-to-write min-slaves-max-lag min-slaves-to-write no-appendfsync-on-rewrite \
    notify-keyspace-events oom-score-adj oom-score-adj-values pidfile port proc-title-template \
    propagation-error-behavior protected-mode proto-max-bulk-len rdb-del-sync-files rdb-save-incremental-fsync \
    rdbchecksum rdbcompression repl-backlog-size repl-backlog-ttl repl-disable-tcp-nodelay repl-diskless-load \
    repl-diskless-sync repl-diskless-sync-delay repl-diskless-sync-max-replicas repl-ping-replica-period \
    repl-ping-slave-period repl-timeout replica-announce-ip replica-announce-port replica-announced \
    replica-ignore-disk-write-errors replica-ignore-maxmemory replica-lazy-flush replica-priority replica-read-only \
    replica-serve-stale-data replicaof sanitize-dump-payload save server_cpulist set-max-intset-entries \
    set-max-listpack-entries set-max-listpack-value set-proc-title shutdown-on-sigint shutdown-on-sigterm \
    shutdown-timeout slave-announce-ip slave-announce-port slave-ignore-maxmemory slave-lazy-flush slave-priority \
    slave-read-only slave-serve-stale-data slaveof slowlog-log-slower-than slowlog-max-len socket-mark-id \
    stop-writes-on-bgsave-error stream-node-max-bytes stream-node-max-entries supervised syslog-enabled \
    syslog-facility syslog-ident tcp-backlog tcp-keepalive timeout tls-auth-clients tls-ciphers tls-ciphersuites \
    tls-cluster tls-port tls-prefer-server-ciphers tls-protocols tls-replication tls-session-cache-size \
    tls-session-cache-timeout tls-session-caching tracking-table-max-keys unixsocket unixsocketperm \
    zset-max-listpack-entries zset-max-listpack-value zset-max-ziplist-entries zset-max-ziplist-value";

/// Parts of the names of settings with which servers authenticate each other and their clients.
const SECRET_WORDS: [&str; 6] = ["pass", "auth", "secret", "token", "credential", "user"];

/// Settings of which no two servers should have the same value: where each is found, and where it keeps what it writes.
const OF_ONE_SERVER: &str = "\
        appenddirname appendfilename bind bind-source-addr cluster-announce-bus-port cluster-announce-hostname \
    cluster-announce-ip cluster-announce-port cluster-announce-tls-port cluster-config-file cluster-port dbfilename \
    dir logfile pidfile port replica-announce-ip replica-announce-port replicaof slave-announce-ip \
    slave-announce-port slaveof syslog-ident tls-port unixsocket";

/// Whether a setting, named in any case, is one server's own, so that several are not to be told the same.
pub fn is_of_one_server(name: &[u8]) -> bool {
    OF_ONE_SERVER.split(' ').any(|own| name.eq_ignore_ascii_case(own.as_bytes()))
}

/// Whether every client may read a setting of servers, named in any case.
pub fn is_open_setting(name: &[u8]) -> bool {
    is_among(&OPEN, name, &mut 0)
}

/// The open settings by themselves: a request may name a million.
static OPEN: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let mut open: Vec<&str> = OPEN_SETTINGS.split(' ').collect();
    open.sort_unstable();
    open
});

/// Whether a name in any case is among sorted ones in small letters. `steps` counts the names that it is compared with.
fn is_among(sorted: &[&str], name: &[u8], steps: &mut usize) -> bool {
    let compare = |other: &&str| {
        *steps += 1;
        other.bytes().cmp(name.iter().map(u8::to_ascii_lowercase))
    };
    sorted.binary_search_by(compare).is_ok()
}

/// Whether a setting of servers, named in any case, may hold a secret, which administrators are not shown either.
pub fn is_secret_setting(name: &[u8]) -> bool {
    let name = name.to_ascii_lowercase();
    let has = |word: &str| name.windows(word.len()).any(|part| part == word.as_bytes());
    !is_open_setting(&name) && SECRET_WORDS.into_iter().any(has)
}

/// Whether the argument at `place` may be a secret, which logs and histories do not keep. More are than in Redis, where it cannot
/// be told.
pub fn is_secret_argument(row: &Row, args: Args<'_>, place: usize) -> bool {
    let is_behind = |word: &str, within: usize| {
        (place.saturating_sub(within)..place).any(|at| at > 0 && args.at(at).eq_ignore_ascii_case(word.as_bytes()))
    };
    match row.command {
        Command::Connection(ConnectionCommand::Auth) => place > 0,
        Command::Connection(ConnectionCommand::Hello) => is_behind("AUTH", 2),
        Command::Generic(GenericCommand::Migrate) => is_behind("AUTH", 1) || is_behind("AUTH2", 2),
        Command::Server(ServerCommand::AclSetuser | ServerCommand::AclDeluser | ServerCommand::AclGetuser) => place > 1,
        // Names and values in turn, behind two words.
        Command::Server(ServerCommand::ConfigSet) => {
            place > 2 && place % 2 == 1 && !is_open_setting(args.at(place - 1))
        }
        _ => false,
    }
}

/// Whether a request of this row may bring a password, which is overwritten once the request has been dealt with.
pub fn is_confidential(row: &Row) -> bool {
    use {ConnectionCommand as C, ServerCommand as S};
    matches!(row.command, Command::Connection(C::Auth | C::Hello) | Command::Server(S::AclSetuser | S::ConfigSet))
}

/// Whether the replies to this row may show secrets.
pub fn shows_secrets(row: &Row) -> bool {
    matches!(row.command, Command::Server(ServerCommand::ConfigGet | ServerCommand::ModuleList))
}

/// `CONFIG GET` is passed on as it is if it names nothing but open settings. Otherwise what it shows is looked through.
pub(crate) fn lane_of_config_get(args: Args<'_>) -> Lane {
    let is_open = args.from(2).iter().all(is_open_setting);
    if is_open { Lane::Shared } else { Lane::Admin }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_found_in_few_steps_in_any_case() {
        for name in OPEN_SETTINGS.split(' ') {
            for name in [name.to_owned(), name.to_ascii_uppercase()] {
                let mut steps = 0;
                assert!(is_among(&OPEN, name.as_bytes(), &mut steps) && steps < 12, "{name}: {steps}");
            }
            for other in [format!("{name}-"), format!("-{name}"), name[..name.len() - 1].to_owned()] {
                let is_open = OPEN_SETTINGS.split(' ').any(|open| open == other);
                assert_eq!(is_open_setting(other.as_bytes()), is_open, "{other}");
            }
        }
    }

    #[test]
    fn commands_that_were_not_reviewed_are_not_open() {
        for open in
            ["maxmemory", "MaxMemory", "dir", "tls-auth-clients", "zset-max-ziplist-value", "acl-pubsub-default"]
        {
            assert!(is_open_setting(open.as_bytes()) && !is_secret_setting(open.as_bytes()), "{open}");
        }
        for secret in [
            "requirepass",
            "masterauth",
            "MASTERUSER",
            "primaryauth",
            "primaryuser",
            "tls-key-file-pass",
            "tls-client-key-file-pass",
            "later-token",
            "",
        ] {
            assert!(!is_open_setting(secret.as_bytes()), "{secret}");
            assert!(is_secret_setting(secret.as_bytes()) || secret.is_empty(), "{secret}");
        }
        for later in ["later-setting", "maxmemory*", "*", "tls-key-file", "aclfile"] {
            assert!(!is_open_setting(later.as_bytes()), "{later}");
        }
    }

    #[test]
    fn requests_and_replies_with_secrets_are_known_by_their_rows() {
        for (said, brings, shows) in [
            ("AUTH p", true, false),
            ("HELLO 3 AUTH u p", true, false),
            ("ACL SETUSER u", true, false),
            ("CONFIG SET requirepass p", true, false),
            ("CONFIG GET requirepass", false, true),
            ("MODULE LIST", false, true),
            ("SET k v", false, false),
        ] {
            let args: respool_wire::ArgsBuf = said.split(' ').collect();
            let row = crate::resolve(args.as_args()).expect("a known command");
            assert_eq!((is_confidential(row), shows_secrets(row)), (brings, shows), "{said}");
        }
    }
}
