//! The settings: one row each. Flags, environment variables, TOML keys, `respool check`, the man page, the shell
//! completions, `docs/settings.md` and CONFIG names are all read from here and nowhere else.
//!
//! To add a setting, add its row, and a field in the struct of [`config`](super::config) that needs it.

use std::time::Duration;

use respool_connection::flush::FLUSH_LIMITS;

use super::choices::{
    self, AdminCommands, ChannelsByDefault, CrossSlot, DashboardReaders, FlushMode, LogFormat, LogLevel, NodeTlsVerify,
    Switch, TlsAuthClients, TlsIdentity,
};
use super::placement;
use super::row::{Group, Kind, Reload, Row, Scope};

macro_rules! rows {
    ($($(#[doc = $doc:literal])+ $variant:ident { $($field:ident: $value:expr),+ $(,)? })+) => {
        /// A setting; its number is its row's place in [`ROWS`].
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Setting { $($(#[doc = $doc])+ $variant,)+ }

        impl Setting {
            /// All of them, in the order of [`ROWS`].
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];
        }

        /// The table, in the order in which settings are documented.
        pub static ROWS: &[Row] = &[$(Row { doc: first_line(&[$($doc),+]), $($field: $value,)+ ..BLANK },)+];
    };
}

/// What most rows have in common.
const BLANK: Row = Row {
    name: "",
    alias: None,
    redis: None,
    group: Group::Process,
    scope: Scope::Pool,
    reload: Reload::Restart,
    kind: Kind::Text,
    absent: None,
    default: "",
    doc: "",
    more: "",
};

const fn first_line(lines: &[&'static str]) -> &'static str {
    lines[0].trim_ascii()
}

const fn count(min: u64, max: u64) -> Kind {
    Kind::Count { min, max }
}

const fn bytes(min: u64, max: u64) -> Kind {
    Kind::Bytes { min, max }
}

const fn millis(min: u64, max: u64) -> Kind {
    Kind::Duration { min: Duration::from_millis(min), max: Duration::from_millis(max) }
}

const KB: u64 = 1 << 10;
const MB: u64 = 1 << 20;
const GB: u64 = 1 << 30;
const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

rows! {
    /// Addresses to accept clients on.
    Listen {
        name: "listen", group: Group::Listening, kind: Kind::Listeners, default: "127.0.0.1:6379",
        more: "May be given several times. `:6379` is every interface, IPv4 and IPv6; port 0 lets the system choose one, \
               which the banner shows. A unix socket's stale file is removed, a living server's is not. `tls:HOST:PORT` \
               speaks TLS, with the settings below or with words behind the address: `cert=FILE`, `key=FILE`, `ca=FILE`, `crl=FILE`, \
               `clients=WORD`, `identity=WORD`.",
    }
    /// Permissions of the unix sockets listened on.
    UnixMode {
        name: "unix_mode", redis: Some("unixsocketperm"), group: Group::Listening, kind: Kind::Mode, default: "0600",
        more: "Set before the socket can be reached under its name, so that there is no moment with wider ones.",
    }
    /// Connections the kernel keeps waiting for an accept.
    Backlog {
        name: "backlog", redis: Some("tcp-backlog"), group: Group::Listening, kind: count(1, 65_535), default: "511",
        more: "The kernel's own bound (net.core.somaxconn) holds as well.",
    }
    /// Most clients connected at a time.
    MaxClients {
        name: "max_clients", redis: Some("maxclients"), group: Group::Listening, scope: Scope::Process,
        reload: Reload::Live, kind: count(1, 10_000_000), default: "10000",
        more: "One more is answered with Redis' error and closed. Where the system allows too few open files, fewer are accepted, \
               and the log says how many.",
    }
    /// TCP keepalive: the first probe after this long without traffic, for clients and nodes.
    Keepalive {
        name: "keepalive", redis: Some("tcp-keepalive"), group: Group::Listening, reload: Reload::Live,
        // Linux takes at most 32,767 seconds.
        kind: millis(1_000, 9 * HOUR), absent: Some("off"), default: "1m",
        more: "A reload changes it for connections that come afterwards.",
    }
    /// How long sent bytes may stay unacknowledged before a TCP connection counts as dead.
    TcpUserTimeout {
        name: "tcp_user_timeout", group: Group::Listening, reload: Reload::Live,
        kind: millis(100, DAY), absent: Some("off"), default: "5s",
        more: "Linux alone would retry for about 15 minutes. A client that does not read although its replies fill its window \
               is there as long as its kernel says so; where Respool cannot ask its own kernel for that (netlink, Linux), \
               such a client is disconnected after this time, too. A reload changes it for clients that come afterwards.",
    }
    /// Nodes behind this pool; none makes it an embedded server.
    Nodes {
        name: "nodes", alias: Some("node"), group: Group::Nodes, reload: Reload::Live, kind: Kind::Nodes,
        more: "A node is an address, or `embedded:` for an engine in this process, optionally followed by `name=NAME`, \
               `weight=N`, `replica_of=NAME`, `username=NAME` and `password_file=FILE`, separated by spaces. Order counts for placements that number their nodes; \
               replicas have no keys of their own. `--node A --node B` and `--nodes A,B` say the same. `tls:HOST:PORT` is \
               dialled with TLS, with the settings below or with words behind the address: `server_name=NAME`, `ca=FILE`, \
               `cert=FILE`, `key=FILE`, `verify=on|off`.",
    }
    /// Rule that chooses a key's node.
    Placement {
        name: "placement", group: Group::Nodes, reload: Reload::Live, kind: Kind::Word(placement::rules), default: "slots",
        more: "Changing it, the order of the nodes or their number moves keys: nothing copies them.",
    }
    /// Which part of a key decides its node.
    HashTag {
        name: "hash_tag", group: Group::Nodes, reload: Reload::Live, kind: Kind::Word(placement::tags), default: "auto",
        more: "`auto` is cluster for slots, rendezvous and jump, last-brace for crc32, and none for the others.",
    }
    /// Node that answers commands without a key, by its name or address.
    DefaultNode {
        name: "default_node", group: Group::Nodes, reload: Reload::Live, kind: Kind::Text, absent: Some("first"), default: "first",
    }
    /// What becomes of requests to a node that is down.
    DeadNode {
        name: "dead_node", group: Group::Nodes, reload: Reload::Live, kind: Kind::Word(choices::dead_nodes),
        default: "error",
        more: "`next` is for caches: what the next node is told meanwhile stays there, and is old or missing when the node \
               is back.",
    }
    /// What becomes of requests that can be split, if their keys are on several nodes or engines.
    CrossSlot {
        name: "cross_slot", group: Group::Nodes, reload: Reload::Live, kind: Kind::Word(CrossSlot::choices),
        default: "split",
        more: "They are `MGET`, `MSET`, `DEL`, `UNLINK`, `EXISTS` and `TOUCH`. With `refuse` nothing that a client asks for is half done or half seen, and a program that is to run on a Redis Cluster \
               learns of its mistakes. Other commands over several keys need all of them on one node whatever is said here. Keys with \
               the same hash tag are on one node.",
    }
    /// User to authenticate as at the nodes.
    NodeUsername { name: "node_username", group: Group::Nodes, reload: Reload::Live, kind: Kind::Text }
    /// Password to authenticate with at the nodes.
    NodePassword {
        name: "node_password", group: Group::Nodes, reload: Reload::Live, kind: Kind::Secret,
        more: "Other users of the machine can read flags; prefer `node_password_file` or the environment.",
    }
    /// File whose first line is the password for the nodes.
    NodePasswordFile { name: "node_password_file", group: Group::Nodes, reload: Reload::Live, kind: Kind::Path }
    /// File with the certificate chain that TLS listeners show, in PEM.
    TlsCertFile {
        name: "tls_cert_file", redis: Some("tls-cert-file"), group: Group::Tls, reload: Reload::Live, kind: Kind::Path,
        more: "A reload reads all files anew; what they hold then is shown to new connections, and open \
               connections stay. If something is wrong with them, everything stays as it was.",
    }
    /// File with the private key of that certificate, in PEM.
    TlsKeyFile {
        name: "tls_key_file", redis: Some("tls-key-file"), group: Group::Tls, reload: Reload::Live, kind: Kind::Path,
    }
    /// File with the authorities that clients' certificates are checked against, in PEM.
    TlsClientCaFile {
        name: "tls_client_ca_file", redis: Some("tls-ca-cert-file"), group: Group::Tls, reload: Reload::Live,
        kind: Kind::Path,
    }
    /// File with the lists of revoked certificates of clients and their authorities, in PEM.
    TlsClientCrlFile {
        name: "tls_client_crl_file", group: Group::Tls, reload: Reload::Live, kind: Kind::Path,
        more: "With it, an authority without a list vouches for no certificate, and so does one whose list has run out.",
    }
    /// Whether clients of TLS listeners show a certificate.
    TlsAuthClients {
        name: "tls_auth_clients", redis: Some("tls-auth-clients"), group: Group::Tls, reload: Reload::Live,
        kind: Kind::Word(TlsAuthClients::choices), default: "off",
    }
    /// Which name of a client's certificate says which user it is.
    TlsIdentity {
        name: "tls_identity", group: Group::Tls, reload: Reload::Live, kind: Kind::Word(TlsIdentity::choices),
        default: "off",
        more: "A certificate in which such a name is empty or has control characters is refused.",
    }
    /// Users of names in certificates: NAME=USER, separated by spaces.
    TlsUsers {
        name: "tls_users", group: Group::Tls, reload: Reload::Live, kind: Kind::Text,
        more: "Without it, a name is its user's; with it, a name that is not there is no user's. Compared byte by byte.",
    }
    /// How long a client's TLS handshake may take.
    TlsHandshakeTimeout {
        name: "tls_handshake_timeout", group: Group::Tls, reload: Reload::Live, kind: millis(10, 5 * MINUTE),
        default: "5s",
    }
    /// File with the authorities that the certificates of TLS nodes are checked against, in PEM.
    NodeTlsCaFile {
        name: "node_tls_ca_file", group: Group::Tls, reload: Reload::Live, kind: Kind::Path,
        more: "Without it, those that the system trusts.",
    }
    /// File with the certificate chain that TLS nodes are shown, in PEM.
    NodeTlsCertFile { name: "node_tls_cert_file", group: Group::Tls, reload: Reload::Live, kind: Kind::Path }
    /// File with the private key of that certificate, in PEM.
    NodeTlsKeyFile { name: "node_tls_key_file", group: Group::Tls, reload: Reload::Live, kind: Kind::Path }
    /// Whether the certificates of TLS nodes are checked.
    NodeTlsVerify {
        name: "node_tls_verify", group: Group::Tls, reload: Reload::Live, kind: Kind::Word(NodeTlsVerify::choices),
        default: "on",
    }
    /// How long connecting to a node may take, authentication included.
    ConnectTimeout {
        name: "connect_timeout", group: Group::Timeouts, reload: Reload::Live, kind: millis(1, 5 * MINUTE), default: "1s",
        more: "It begins when the connection does. A worker makes 32 at a time to one node; requests that wait for a further one do so \
               for `request_timeout` at most.",
    }
    /// How long a node may take to answer a request, from the moment it was sent.
    RequestTimeout {
        name: "request_timeout", group: Group::Timeouts, reload: Reload::Live, kind: millis(1, HOUR), absent: Some("off"), default: "5s",
        more: "A late request is answered with an error and only that request: its reply is swallowed when it comes. Time in which the process was not scheduled, or stood still, is not counted as the node's. What has been read of a client and finds no room at its node for so long (`node_queue_bytes`) is refused as `overloaded`, and so is what had been read behind it and finds none: nothing of it has been sent.",
    }
    /// How long a node that owes replies may say nothing before its connection is replaced.
    NodeSilenceTimeout {
        name: "node_silence_timeout", group: Group::Timeouts, reload: Reload::Live, kind: millis(10, HOUR),
        absent: Some("off"), default: "10s",
        more: "`off`: a node that is there may be silent for as long as it likes. One that has vanished is still found by \
               `node_tcp_user_timeout`, one that is idle and does not answer by `health_interval`.",
    }
    /// How long a node may acknowledge nothing that it is sent before the TCP connection counts as dead.
    NodeTcpUserTimeout {
        name: "node_tcp_user_timeout", group: Group::Timeouts, reload: Reload::Live,
        kind: millis(100, DAY), absent: Some("off"), default: "900ms",
        more: "With it the kernel asks a silent peer once a second, so a node that has vanished is found within two. A node \
               that does not read (it runs a script, it is stopped) acknowledges nothing but says that its window is full, \
               and keeps its connections. Longer for links that are sometimes away for a moment. `off`: as for clients.",
    }
    /// How often the names of nodes are looked up again while connections to them stand.
    DnsInterval {
        name: "dns_interval", group: Group::Timeouts, reload: Reload::Live, kind: millis(10, DAY),
        absent: Some("off"), default: "15s",
        more: "Every dial asks for the name anew, whatever this says. An address that is missing from two answers running is left as \
               soon as a connection to where the name leads is ready, with all that clients have there: watched keys count as \
               changed, `BLPOP` is asked again, `MONITOR` ends, as with a reload that names another address. Errors and empty \
               answers change nothing, nor does an address that comes and goes among others. The TTL of an answer is not known \
               here; a resolver that caches answers gives them again until then. Each worker asks for each name. `off`: \
               connections stay where they were made.",
    }
    /// An idle node that has said nothing for so long is sent a PING.
    HealthInterval {
        name: "health_interval", group: Group::Timeouts, reload: Reload::Live, kind: millis(10, HOUR),
        absent: Some("off"), default: "250ms",
    }
    /// A node that does not answer a PING for so long is suspect: routes that can go elsewhere do.
    HealthTimeout {
        name: "health_timeout", group: Group::Timeouts, reload: Reload::Live, kind: millis(10, HOUR), default: "1s",
        more: "Its connection stays: one slow command is no reason to fail all other requests.",
    }
    /// How long a node that comes back is sent little at first and then ever more.
    SlowStart {
        name: "slow_start", group: Group::Timeouts, reload: Reload::Live, kind: millis(1, HOUR), absent: Some("off"),
        default: "1s",
        more: "What it is not sent yet waits and counts as waiting for the node: nothing is refused for it.",
    }
    /// How long a client may neither send nor read anything before it is disconnected.
    ClientIdleTimeout {
        name: "client_idle_timeout", redis: Some("timeout"), group: Group::Timeouts, reload: Reload::Live,
        kind: millis(1_000, 365 * DAY), absent: Some("off"), default: "off",
        more: "As in Redis, a client that waits or is held back is not idle, nor is one that subscribes, monitors or follows as a replica.",
    }
    /// Pause after a failed attempt to connect to a node.
    ReconnectMin {
        name: "reconnect_min", group: Group::Timeouts, reload: Reload::Live, kind: millis(1, HOUR), default: "50ms",
        more: "It doubles with every failure up to `reconnect_max`; each pause is jittered. A connection that is lost is made again \
               without one. A database or a user that a node refuses has pauses of its own.",
    }
    /// Longest pause between two attempts to reconnect to a node.
    ReconnectMax {
        name: "reconnect_max", group: Group::Timeouts, reload: Reload::Live, kind: millis(1, HOUR), default: "2s",
    }
    /// Most attempts per second to connect to one node that failed last time, in the whole process.
    ReconnectRate {
        name: "reconnect_rate", group: Group::Timeouts, scope: Scope::Process, reload: Reload::Live,
        kind: count(1, 1_000_000), default: "100",
        more: "The first connections to a node, and those in place of lost ones, are not limited by a rate.",
    }
    /// How long clients are still accepted and served after SIGTERM, while /readyz fails already.
    DrainDelay {
        name: "drain_delay", group: Group::Timeouts, scope: Scope::Process, reload: Reload::Live,
        kind: millis(0, HOUR), default: "0s",
        more: "As long as a load balancer needs to notice that the process is not ready. A second SIGTERM ends it. \
               `drain_timeout` begins behind it.",
    }
    /// How long replies still owed may take after SIGTERM before clients are cut off.
    DrainTimeout {
        name: "drain_timeout", redis: Some("shutdown-timeout"), group: Group::Timeouts, scope: Scope::Process,
        reload: Reload::Live, kind: millis(0, HOUR), default: "10s",
    }
    /// How long `PROXY PAUSE` holds a request back before it is answered with an error.
    PauseTimeout {
        name: "pause_timeout", group: Group::Timeouts, reload: Reload::Live, kind: millis(1, DAY), absent: Some("off"),
        default: "off",
        more: "The error says that the request was not sent; a transaction ends with EXECABORT. What the client had sent behind it \
               by then for nodes that are paused is refused at once; requests for other nodes are executed. `off` holds requests \
               until `PROXY RESUME`. It does not hold for clients that `PROXY SUSPEND` suspends: they are not read.",
    }
    /// Replies one client has not taken yet; over it that client is not read.
    ClientOutputSoftBytes {
        name: "client_output_soft_bytes", group: Group::Budgets, reload: Reload::Live, kind: bytes(4 * KB, 64 * GB),
        default: "1mb",
        more: "It is also asked no more of nodes than will fit, by the size of its replies so far, and connections that bring \
               it more than fits, or one large reply, become its own and are read as fast as it reads.",
    }
    /// Replies that one client has not taken yet; over it nothing more is read for that client.
    ClientOutputHardBytes {
        name: "client_output_hard_bytes", group: Group::Budgets, reload: Reload::Live, kind: bytes(4 * KB, 64 * GB),
        default: "256mb",
        more: "So much is read for it if other clients wait for replies behind its own on the same connection. It is \
               disconnected where what comes for it cannot be left at the nodes: replies that are converted or proved, and all \
               when `private_connections_max` is used up. A reply that has to be joined and does not fit is an error.",
    }
    /// Requests waiting for one node, per worker; over it they are refused.
    NodeQueueBytes {
        name: "node_queue_bytes", group: Group::Budgets, reload: Reload::Live, kind: bytes(64 * KB, 64 * GB),
        default: "32mb",
        more: "Over a quarter of it the clients that send to the node are not read, and what has been read of them waits; only what has begun \
               and cannot wait is refused.",
    }
    /// One request; over it, it is passed on as it comes instead of being collected, if its key is known.
    LargeRequestBytes {
        name: "large_request_bytes", group: Group::Budgets, reload: Reload::Live, kind: bytes(16 * KB, 4 * GB),
        default: "1mb",
        more: "For commands whose only key comes first, on a connection of the client's own. See [limits](limits.md).",
    }
    /// All buffers of the process together; over it no client is accepted or read.
    ProcessBytes {
        name: "process_bytes", group: Group::Budgets, scope: Scope::Process, reload: Reload::Live,
        kind: bytes(MB, 1024 * GB), default: "1gb",
        more: "The data of embedded nodes does not count. If that is not enough, clients that take nothing are disconnected, the largest first; \
               clients that said CLIENT NO-EVICT ON are spared while another holds a sixteenth as much, and for two seconds more. What a client subscribes to counts as held \
               by it.",
    }
    /// Most elements of a request.
    RequestElementsMax {
        name: "request_elements_max", group: Group::Requests, reload: Reload::Live,
        kind: count(16, 16 * MB), default: "1048576",
    }
    /// Largest request, from its first byte to its last.
    RequestBytesMax {
        name: "request_bytes_max", redis: Some("client-query-buffer-limit"), group: Group::Requests, reload: Reload::Live,
        kind: bytes(MB, 4 * GB - 1), default: "1gb",
        more: "What has come of a request is held until the rest comes, and little behind it is read: this is the budget of \
               a client's input.",
    }
    /// Largest bulk string of a request or reply.
    BulkBytesMax {
        name: "bulk_bytes_max", redis: Some("proto-max-bulk-len"), group: Group::Requests, reload: Reload::Live,
        kind: bytes(MB, 2 * GB), default: "512mb",
    }
    /// Longest inline request.
    InlineBytesMax {
        name: "inline_bytes_max", group: Group::Requests, reload: Reload::Live,
        kind: bytes(KB, 16 * MB), default: "64kb",
    }
    /// Commands that steer the nodes: CONFIG SET, DEBUG, SHUTDOWN, REPLICAOF, MODULE LOAD and their like.
    AdminCommands {
        name: "admin_commands", group: Group::Requests, reload: Reload::Live,
        kind: Kind::Word(AdminCommands::choices), default: "refuse",
        more: "What only looks at something harmless is never refused. CONFIG GET shows the settings that are known to be \
               harmless, and of all others the names; where commands that steer are allowed, everything but passwords.",
    }
    /// For how long a client has a connection to a node to itself.
    PoolMode {
        name: "pool_mode", group: Group::Pooling, reload: Reload::Live, kind: Kind::Word(choices::pool_modes), default: "multiplex",
        more: "What cannot share a connection has one of its own in every mode. A route (pool_mode) or a user (pool_mode) may \
               say otherwise, the route first. docs/pooling-modes.md tells what each mode does and costs.",
    }
    /// Commands of one transaction that wait for EXEC, in bytes.
    TransactionBytesMax {
        name: "transaction_bytes_max", group: Group::Pooling, reload: Reload::Live, kind: bytes(KB, 4 * GB),
        default: "64mb",
        more: "A transaction goes to its node in one piece, at EXEC; until then it is held here. A command too many is \
               refused, and so is the EXEC.",
    }
    /// Most commands of one transaction.
    TransactionCommandsMax {
        name: "transaction_commands_max", group: Group::Pooling, reload: Reload::Live, kind: count(1, 10_000_000),
        default: "100000",
    }
    /// Most connections to one node that clients have to themselves, per worker.
    PrivateConnectionsMax {
        name: "private_connections_max", group: Group::Pooling, reload: Reload::Live, kind: count(1, 65_536),
        default: "256",
        more: "A client that watches keys has one until EXEC, DISCARD or UNWATCH. Beyond the limit WATCH is refused.",
    }
    /// Clean private connections to one node that are kept for the next client, per worker.
    PrivateConnectionsWarm {
        name: "private_connections_warm", group: Group::Pooling, reload: Reload::Live, kind: count(0, 65_536),
        default: "16",
        more: "Counted for each database and protocol by itself.",
    }
    /// Most connections to one node of clients in pool mode `session`, or tracking with NOLOOP, per worker.
    SessionConnectionsMax {
        name: "session_connections_max", group: Group::Pooling, reload: Reload::Live, kind: count(1, 65_536),
        default: "1000",
        more: "A request that would need one more is answered with an error.",
    }
    /// Most connections to one node on which commands wait (BLPOP and its kin), per worker.
    BlockingConnectionsMax {
        name: "blocking_connections_max", group: Group::Pooling, reload: Reload::Live, kind: count(1, 65_536),
        default: "64",
        more: "A client that waits has one to itself. Clients beyond that stand in a queue, where they are still \
               served if what they wait for is there.",
    }
    /// Most commands that wait, per worker, with a connection or in the queue.
    BlockedCommandsMax {
        name: "blocked_commands_max", group: Group::Pooling, reload: Reload::Live, kind: count(1, 10_000_000),
        default: "20000",
        more: "One more is answered with an error.",
    }
    /// Messages one subscriber has not taken yet; over it the subscriber is slow.
    SubscriberOutputBytes {
        name: "subscriber_output_bytes", group: Group::Pooling, reload: Reload::Live, kind: bytes(4 * KB, 64 * GB),
        default: "32mb",
        more: "Counted for each subscriber by itself, although a message that many wait for is held once.",
    }
    /// What becomes of a slow subscriber.
    SlowSubscribers {
        name: "slow_subscribers", group: Group::Pooling, reload: Reload::Live,
        kind: Kind::Word(choices::slow_subscribers), default: "disconnect",
    }
    /// Keys that each worker remembers for clients that track them.
    TrackingTableMaxKeys {
        name: "tracking_table_max_keys", redis: Some("tracking-table-max-keys"), group: Group::Pooling,
        reload: Reload::Live, kind: count(0, 1_000_000_000), default: "1000000",
        more: "For one more, some other is told of as if it had changed. 0 means as many as fit into 512 MB, and into a quarter of process_bytes for all workers, which bounds them in any \
               case. `CONFIG SET` overrules it until the process ends.",
    }
    /// When requests are written to shared connections.
    Flush {
        name: "flush", group: Group::Pooling, reload: Reload::Live, kind: Kind::Word(FlushMode::choices), default: "adaptive",
        more: "Either way requests are written with the next replies on their connection while many are outstanding, if the node is \
               less than 300 us away. `adaptive` delays a request for those of other clients by `flush_delay_max` at most, by a \
               sixteenth of the time since its client's last request, and by half of the time that requests wait at the node. It \
               does so only where two more requests are expected within that time, so never for fewer than 32 clients of a worker \
               and hardly at half load. Then nodes are woken less often and read larger batches (docs/performance.md).",
    }
    /// How long `flush = adaptive` may delay a request.
    FlushDelayMax {
        name: "flush_delay_max", group: Group::Pooling, reload: Reload::Live,
        kind: Kind::Duration { min: Duration::from_micros(1), max: Duration::from_micros(FLUSH_LIMITS.delay_us_max) },
        default: "100us",
    }
    /// What PUBLISH answers.
    PublishReceivers {
        name: "publish_receivers", group: Group::Pooling, reload: Reload::Live,
        kind: Kind::Word(choices::publish_receivers), default: "clients",
        more: "Counting clients asks every worker that has subscribers, once for each message that is published.",
    }
    /// How long a request may take before the proxy's slow log keeps it.
    SlowLogThreshold {
        name: "slow_log_threshold", group: Group::Seeing, reload: Reload::Live,
        kind: Kind::Duration { min: Duration::from_micros(1), max: Duration::from_secs(3600) }, absent: Some("off"),
        default: "10ms",
        more: "Counted from the moment the request was queued for its node, or from the reply before it on the same \
               connection. `PROXY SLOWLOG` shows the time in the queue, at the node and in all.",
    }
    /// Slow requests that each worker remembers.
    SlowLogEntries {
        name: "slow_log_entries", group: Group::Seeing, reload: Reload::Live, kind: count(1, 100_000), default: "128",
    }
    /// One read from a node in so many is a sample for latencies of commands, hot keys and big keys.
    SampleEvery {
        name: "sample_every", group: Group::Seeing, reload: Reload::Live, kind: count(1, 1_000_000),
        absent: Some("off"), default: "64",
    }
    /// One batch of requests in so many has its replies proved by an echo before they leave.
    IntegrityCheck {
        name: "integrity_check", group: Group::Seeing, reload: Reload::Live,
        kind: count(1, 1_000_000), absent: Some("off"), default: "off",
        more: "For nodes, or anything between them and the proxy, that may leave out a reply or send one too many. `1` \
               checks every batch. See [operations](operations.md#integrity-mode).",
    }
    /// In a batch that is checked, requests behind each of which an echo goes; otherwise one at its end.
    IntegrityRun {
        name: "integrity_run", group: Group::Seeing, reload: Reload::Live,
        kind: count(1, 10_000), absent: Some("off"), default: "off",
        more: "With `1` every reply stands between two echoes.",
    }
    /// Replies that one connection to a node holds until they are proved; a larger one is an error.
    IntegrityBytes {
        name: "integrity_bytes", group: Group::Seeing, reload: Reload::Live,
        kind: bytes(64 * KB, 4 * GB), default: "32mb",
    }
    /// Password of the default user; without one every client may do everything.
    Requirepass {
        name: "requirepass", redis: Some("requirepass"), group: Group::Users, scope: Scope::Process,
        reload: Reload::Live, kind: Kind::Secret,
        more: "More users, and what each may do, stand in `[users.NAME]` tables or in an ACL file; see \
               [users](routing-and-users.md). Other users of the machine can read flags; prefer `requirepass_file` or the \
               environment.",
    }
    /// File whose first line is the password of the default user.
    RequirepassFile {
        name: "requirepass_file", group: Group::Users, scope: Scope::Process, reload: Reload::Live, kind: Kind::Path,
    }
    /// File of users in the format of Redis' ACL files.
    Aclfile {
        name: "aclfile", redis: Some("aclfile"), group: Group::Users, scope: Scope::Process, kind: Kind::Path,
        more: "Read at the start and by ACL LOAD, written by ACL SAVE. A user's rules stand there or in a table, not in \
               both.",
    }
    /// Channels that a new user may use unless a rule says otherwise.
    AclPubsubDefault {
        name: "acl_pubsub_default", redis: Some("acl-pubsub-default"), group: Group::Users, scope: Scope::Process,
        reload: Reload::Live, kind: Kind::Word(ChannelsByDefault::choices), default: "resetchannels",
    }
    /// Most entries of the log of denials that ACL LOG shows.
    AcllogMaxLen {
        name: "acllog_max_len", redis: Some("acllog-max-len"), group: Group::Users, scope: Scope::Process,
        reload: Reload::Live, kind: count(0, 1_000_000), default: "128",
    }
    /// Whether only clients of this machine are accepted while the default user needs no password.
    ProtectedMode {
        name: "protected_mode", redis: Some("protected-mode"), group: Group::Users, scope: Scope::Process,
        reload: Reload::Live, kind: Kind::Word(Switch::choices), default: "yes",
    }
    /// How long a client may take to say who it is, where that is asked.
    AuthTimeout {
        name: "auth_timeout", group: Group::Users, scope: Scope::Process, reload: Reload::Live, kind: millis(100, HOUR),
        absent: Some("off"), default: "10s",
        more: "Before that it may send ten arguments of 16 KB at a time, and leave 17 KB of replies unread.",
    }
    /// Whether users that may not do everything may run scripts on nodes.
    ScriptTrust {
        name: "script_trust", group: Group::Users, scope: Scope::Process, reload: Reload::Live,
        kind: Kind::Word(Switch::choices), default: "no",
        more: "A script runs with the rights of the proxy's own user at the node: what it does with keys and commands \
               inside is not checked.",
    }
    /// Number of databases of an embedded server.
    Databases {
        name: "databases", redis: Some("databases"), group: Group::Embedded, kind: count(1, 65_536), default: "16",
    }
    /// Engines of an embedded server, each with a thread of its own if there are several.
    EngineThreads {
        name: "engine_threads", group: Group::Embedded, kind: count(1, 64), default: "1",
        more: "Several share the keys by `placement`, as nodes do: a request whose keys are in different engines is split where its \
               replies can be joined, and else refused with `CROSSSLOT`. Keys with the same hash tag are in one engine. Clients are \
               served by `workers` besides. It pays where one engine needs more than one processor.",
    }
    /// What an embedded server may hold; above it `maxmemory_policy` decides what happens.
    Maxmemory {
        name: "maxmemory", redis: Some("maxmemory"), group: Group::Embedded, kind: bytes(MB, 1024 * GB), absent: Some("off"),
        default: "off",
        more: "For each node `embedded:` by itself; engines of one server (`engine_threads`) have equal parts of it. Replies on their way are \
               not in it.",
    }
    /// Which keys of an embedded server go when there is no room.
    MaxmemoryPolicy {
        name: "maxmemory_policy", redis: Some("maxmemory-policy"), group: Group::Embedded,
        kind: Kind::Word(choices::eviction_policies), default: "noeviction",
        more: "A request makes room for about half a millisecond before it runs. One that comes while more is used than when this time \
               was last up frees all that was added since, however long that takes. It is refused only when no key may go.",
    }
    /// Keys of each database that are looked at for one that is evicted.
    MaxmemorySamples {
        name: "maxmemory_samples", redis: Some("maxmemory-samples"), group: Group::Embedded, kind: count(1, 64), default: "5",
        more: "The more, the nearer the policy is followed, and the longer it takes.",
    }
    /// Events of keys that an embedded server publishes, as letters of their classes.
    NotifyKeyspaceEvents {
        name: "notify_keyspace_events", redis: Some("notify-keyspace-events"), group: Group::Embedded, reload: Reload::Live,
        kind: Kind::Events, absent: Some("off"), default: "off",
        more: "`K` publishes to `__keyspace@<database>__:<key>`, `E` to `__keyevent@<database>__:<event>`; one of them is needed. `g` \
               keys of any type, `$` strings, `l` lists, `s` sets, `h` hashes, `z` sorted sets, `t` streams, `x` keys that expire, \
               `e` keys that are evicted, `d` types of modules, `A` all of these; `m` reads of keys that are not there, `n` new keys.",
    }
    /// How long a script of an embedded server may hold others up before they are told `BUSY`.
    BusyReplyThreshold {
        name: "busy_reply_threshold", alias: Some("lua-time-limit"), redis: Some("busy-reply-threshold"), group: Group::Embedded,
        kind: millis(1, HOUR), default: "5s",
        more: "From then on `SCRIPT KILL` and `FUNCTION KILL` stop it, unless it has written. The name in Redis before 7.0 was \
               `lua-time-limit`.",
    }
    /// Worker threads, each with its own loop.
    Workers {
        name: "workers", scope: Scope::Process, kind: count(1, 1024), absent: Some("auto"), default: "auto",
        more: "`auto` is one per processor this process may use.",
    }
    /// What is logged.
    Log {
        name: "log", redis: Some("loglevel"), scope: Scope::Process, reload: Reload::Live,
        kind: Kind::Word(LogLevel::choices), default: "info",
        more: "Logs go to standard error.",
    }
    /// How the log looks.
    LogFormat { name: "log_format", scope: Scope::Process, kind: Kind::Word(LogFormat::choices), default: "text" }
    /// Unix socket by which a new process takes over the listeners of this one.
    TakeoverSocket {
        name: "takeover_socket", scope: Scope::Process, kind: Kind::Path,
        more: "`respool serve --take-over PATH` then replaces this process without losing a connection or a reply. Only its \
               own user can connect to it.",
    }
    /// Address of the HTTP server with /metrics, /healthz, /readyz and the dashboard.
    Metrics { name: "metrics", scope: Scope::Process, kind: Kind::Tcp, absent: Some("off"), default: "off" }
    /// Who may read the dashboard and its JSON API, which `metrics` serves at / and /api.
    Dashboard {
        name: "dashboard", scope: Scope::Process, reload: Reload::Live, kind: Kind::Word(DashboardReaders::choices),
        default: "off",
        more: "It shows names of keys, addresses and names of clients, and slow requests with their arguments. Without `metrics` \
               there is none.",
    }
    /// File whose first line is the token that orders to the dashboard need.
    DashboardTokenFile {
        name: "dashboard_token_file", scope: Scope::Process, reload: Reload::Live, kind: Kind::Path,
        more: "16 to 256 visible characters. Without one the dashboard is read-only. With the token other machines may read as \
               well. The file is read again by a reload.",
    }
    /// Host names by which browsers may ask for the dashboard, separated by spaces.
    DashboardHosts {
        name: "dashboard_hosts", scope: Scope::Process, reload: Reload::Live, kind: Kind::Text,
        more: "Addresses, `localhost` and the host of `metrics` need not be named. Any other name is refused, because any site can \
               have a name lead to this address.",
    }
    /// Share of nodes, in percent and rounded up, that must be in use for the process to be ready.
    ReadyNodes {
        name: "ready_nodes", scope: Scope::Process, reload: Reload::Live,
        kind: count(0, 100), absent: Some("off"), default: "1",
        more: "`1` is one node of up to a hundred, `100` is all. /readyz answers 503 until then and names those that are \
               missing; a process that takes over from another does so only then. `off` or 0: listeners are enough.",
    }
    /// Address of a statsd server that is sent metrics under rmux's names, over UDP.
    Statsd { name: "statsd", scope: Scope::Process, kind: Kind::Tcp, absent: Some("off"), default: "off" }
    /// What those names begin with.
    StatsdPrefix {
        name: "statsd_prefix", scope: Scope::Process, kind: Kind::Text,
        more: "Without one it is rmux's own: `rmux.HOST.`, with the dots of the host's name as dashes.",
    }
    /// How often they are sent.
    StatsdInterval { name: "statsd_interval", scope: Scope::Process, kind: millis(100, 3_600_000), default: "10s" }
}

impl Setting {
    /// The setting's row.
    #[must_use]
    pub fn row(self) -> &'static Row {
        &ROWS[self as usize]
    }

    /// The setting of that name, which is its TOML key.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|setting| setting.row().name == name)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::settings::row::Value;

    #[test]
    fn every_default_is_a_value_of_its_row_as_it_is_shown() {
        for row in ROWS.iter().filter(|row| !row.default.is_empty()) {
            let value = row.parse(&[row.default]).unwrap_or_else(|why| panic!("{}: {}", row.name, why.reason));
            assert_eq!(value.show(row), row.default, "{}", row.name);
        }
    }

    #[test]
    fn every_way_to_name_a_setting_is_unique() {
        let mut seen = BTreeSet::new();
        for row in ROWS {
            let flags = std::iter::once(row.flag()).chain(row.alias.map(str::to_owned));
            for flag in flags {
                assert!(seen.insert(format!("--{flag}")), "--{flag} twice");
            }
            assert!(seen.insert(row.env()), "{} twice", row.env());
            assert!(seen.insert(format!("CONFIG {}", row.config())), "CONFIG {} twice", row.config());
            assert!(row.name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{}", row.name);
        }
    }

    #[test]
    fn rows_stand_under_their_headings_and_are_documented() {
        assert!(ROWS.is_sorted_by_key(|row| row.group), "the rows of a heading stand together");
        for row in ROWS {
            assert!(row.doc.ends_with('.') && row.doc.len() <= 100, "{}: {}", row.name, row.doc);
            assert!(row.more.is_empty() || row.more.ends_with('.'), "{}", row.name);
        }
    }

    #[test]
    fn bounds_hold_at_both_ends() {
        for (name, inside, outside) in [
            ("backlog", ["1", "65535"], ["0", "65536"]),
            ("connect_timeout", ["1ms", "5m"], ["0ms", "301s"]),
            ("bulk_bytes_max", ["1mb", "2gb"], ["1048575", "2049mb"]),
        ] {
            let row = Setting::named(name).unwrap().row();
            for text in inside {
                assert!(row.parse(&[text]).is_ok(), "{name} {text}");
            }
            for text in outside {
                let why = row.parse(&[text]).unwrap_err().reason;
                assert_eq!(why, format!("allowed are {}", row.bounds()), "{name} {text}");
            }
        }
    }

    #[test]
    fn the_word_for_no_value_is_understood_only_where_there_is_one() {
        assert_eq!(Setting::Workers.row().parse(&["auto"]), Ok(Value::Absent));
        assert!(Setting::Backlog.row().parse(&["auto"]).is_err());
    }
}
