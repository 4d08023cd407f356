//! From what was said to what it means: every value is read by its row, then checked against the others.
//!
//! Knows no source: whatever said a value, it is judged in the same way, and blamed at its place. The only thing needed from
//! outside is a secret's file, which the caller reads.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use respool_connection::FlushPolicy;
use respool_engine::EvictionPolicy;
use respool_proxy::observe::terms::LargeTerms;
use respool_proxy::{PublishReceivers, SlowSubscribers};
use respool_route::{DeadNode, PoolMode};

use super::address::{Address, ListenSpec};
use super::choices::{
    AdminCommands, CrossSlot, FlushMode, LogFormat, LogLevel, NodeTlsVerify, Switch, TlsAuthClients, TlsIdentity,
};
use super::config::{
    AdminSettings, Budgets, ClientMemory, EngineSettings, Instance, IntegritySettings, LogSettings, NetSettings,
    Pooling, Process, ProxySettings, RequestSettings, Resolved, SeeingSettings, Timeouts,
};
use super::diagnostic::{Fault, Faults};
use super::placement;
use super::raw::{Origin, RawPool, RawSettings};
use super::resolver::{ReadSecret, Resolver};
use super::row::Value;
use super::table::Setting;
use super::tls::{self, ListenTls, NodeTls, PREFIX, Pair, TlsSettings};
use super::users::UsersSettings;
use super::values::{Values, saturating};

/// Understands what was said.
///
/// # Errors
/// Everything that is wrong, not only the first thing.
pub fn resolve(said: &RawSettings, read_secret: ReadSecret<'_>) -> Result<Resolved, Faults> {
    let mut resolver = Resolver { said, read_secret, faults: Vec::new(), warnings: Vec::new() };
    let pools: Vec<Option<&RawPool>> = match said.pools.is_empty() {
        true => vec![None],
        false => said.pools.iter().map(Some).collect(),
    };
    let values: Vec<Vec<Value>> = pools.iter().map(|pool| resolver.values(*pool)).collect();
    if resolver.faults.is_empty() {
        let names = resolver.pool_names(&pools);
        let named = names.into_iter().zip(&values).zip(&pools);
        let instances: Vec<Instance> =
            named.map(|((name, values), pool)| resolver.instance(name, values, *pool)).collect();
        resolver.listeners_differ(&instances);
        let users = resolver.users(&values[0]);
        let admin = resolver.admin(&values[0]);
        if resolver.faults.is_empty() {
            let process = process(&values[0], instances, users, admin);
            let warnings = resolver.warnings;
            return Ok(Resolved { process, values, warnings });
        }
    }
    Err(Faults { file: said.file.clone(), faults: resolver.faults })
}

fn process(values: &[Value], instances: Vec<Instance>, users: UsersSettings, admin: AdminSettings) -> Process {
    let of = Values(values);
    Process {
        workers: of.count(Setting::Workers).map(saturating),
        clients_max: saturating(of.count(Setting::MaxClients).unwrap_or(u64::MAX)),
        buffer_bytes_max: of.bytes(Setting::ProcessBytes),
        redials_per_second_max: saturating(of.count(Setting::ReconnectRate).unwrap_or(u64::MAX)),
        drain_delay: of.duration(Setting::DrainDelay).unwrap_or_default(),
        drain_timeout: of.duration(Setting::DrainTimeout).unwrap_or_default(),
        log: LogSettings {
            level: LogLevel::ALL[of.word(Setting::Log)],
            format: LogFormat::ALL[of.word(Setting::LogFormat)],
        },
        takeover_socket: of.text(Setting::TakeoverSocket).map(Into::into),
        admin,
        users,
        instances,
    }
}

impl Resolver<'_> {
    fn pool_names(&mut self, pools: &[Option<&RawPool>]) -> Vec<String> {
        let unnamed = |number: usize| if pools.len() == 1 { "main".to_owned() } else { format!("pool-{}", number + 1) };
        let name = |(number, pool): (usize, &Option<&RawPool>)| {
            pool.and_then(|pool| pool.name.clone()).unwrap_or_else(|| unnamed(number))
        };
        let names: Vec<String> = pools.iter().enumerate().map(name).collect();
        let mut seen = HashSet::new();
        for name in names.iter().filter(|name| !seen.insert(*name)) {
            self.fault(Fault::new(Origin::Default, format!("two pools have the name {name}")));
        }
        names
    }

    fn instance(&mut self, name: String, values: &[Value], pool: Option<&RawPool>) -> Instance {
        let of = Values(values);
        let net = NetSettings {
            listen: of.listeners(Setting::Listen).to_vec(),
            unix_mode: of.mode(Setting::UnixMode),
            backlog: saturating(of.count(Setting::Backlog).unwrap_or(u64::MAX)),
            keepalive: of.duration(Setting::Keepalive),
            user_timeout: of.duration(Setting::TcpUserTimeout),
            node_timeout: of.duration(Setting::NodeTcpUserTimeout),
            names_interval: of.duration(Setting::DnsInterval),
        };
        if net.listen.is_empty() {
            self.blame(Setting::Listen, pool, "nothing to listen on", "give at least one address");
        }
        let proxy = self.proxy(values, pool);
        let tls = self.tls(&of, pool);
        self.tls_is_whole(&tls, &net, &proxy, pool);
        // A client with a certificate is known to an authority.
        let is_open = |spec: &&ListenSpec| {
            let clients = spec.tls.as_ref().and_then(|words| words.or(&tls.listen).clients);
            !spec.address.is_local() && clients != Some(TlsAuthClients::Required)
        };
        if let Some(spec) = net.listen.iter().find(is_open)
            && self.admits_unauthenticated(&of)
        {
            self.warnings.push(format!("pool {name}: every client that reaches {} may send commands", spec.address));
        }
        let engine = EngineSettings {
            threads: engine_threads(&of),
            databases: saturating(of.count(Setting::Databases).unwrap_or(1)),
            memory_bytes_max: of.bytes_if_any(Setting::Maxmemory),
            // A parameter alone says otherwise.
            client_memory: ClientMemory::Bytes(0),
            eviction: EvictionPolicy::ALL[of.word(Setting::MaxmemoryPolicy)].0,
            eviction_samples: of.count(Setting::MaxmemorySamples).unwrap_or(1) as usize,
            busy_reply_threshold: of.duration(Setting::BusyReplyThreshold).unwrap_or_default(),
            keyspace_events: of.events(Setting::NotifyKeyspaceEvents),
        };
        Instance { name, net, tls, proxy, engine }
    }

    fn tls(&mut self, of: &Values<'_>, pool: Option<&RawPool>) -> TlsSettings {
        let path = |setting| of.text(setting).map(Into::into);
        let users = match of.text(Setting::TlsUsers).map(tls::users).transpose() {
            Ok(users) => users,
            Err(why) => {
                self.blame(Setting::TlsUsers, pool, &why, "write NAME=USER, separated by spaces");
                None
            }
        };
        TlsSettings {
            listen: ListenTls {
                own: Pair { cert: path(Setting::TlsCertFile), key: path(Setting::TlsKeyFile) },
                ca: path(Setting::TlsClientCaFile),
                crl: path(Setting::TlsClientCrlFile),
                clients: Some(TlsAuthClients::ALL[of.word(Setting::TlsAuthClients)]),
                identity: Some(TlsIdentity::ALL[of.word(Setting::TlsIdentity)]),
            },
            nodes: NodeTls {
                server_name: None,
                ca: path(Setting::NodeTlsCaFile),
                own: Pair { cert: path(Setting::NodeTlsCertFile), key: path(Setting::NodeTlsKeyFile) },
                verify: Some(NodeTlsVerify::ALL[of.word(Setting::NodeTlsVerify)]),
            },
            users,
            handshake_timeout: of.duration(Setting::TlsHandshakeTimeout).unwrap_or(Duration::MAX),
        }
    }

    /// Whether every listener and node that uses TLS has what it needs.
    fn tls_is_whole(&mut self, tls: &TlsSettings, net: &NetSettings, proxy: &ProxySettings, pool: Option<&RawPool>) {
        for spec in &net.listen {
            if let Some(fault) = spec.tls.as_ref().and_then(|words| words.or(&tls.listen).fault()) {
                self.blame(Setting::Listen, pool, &format!("{PREFIX}{} cannot be opened", spec.address), fault);
            }
        }
        let of_routes = proxy.routing.pools.iter().flat_map(|pool| &pool.nodes);
        for node in proxy.nodes.iter().chain(of_routes) {
            if let Some(fault) = node.tls.as_ref().and_then(|words| words.or(&tls.nodes).fault()) {
                self.blame(Setting::Nodes, pool, &format!("node {} cannot be dialled", node.name), fault);
            }
        }
    }

    /// Whether the settings keep out no client that reaches the process.
    fn admits_unauthenticated(&self, of: &Values<'_>) -> bool {
        let is_protected = Switch::ALL[of.word(Setting::ProtectedMode)] == Switch::Yes;
        let has_password = of.secret(Setting::Requirepass).is_some() || of.text(Setting::RequirepassFile).is_some();
        let has_users =
            of.text(Setting::Aclfile).is_some() || self.said.users.iter().any(|user| user.name == "default");
        !is_protected && !has_password && !has_users
    }

    fn proxy(&mut self, values: &[Value], pool: Option<&RawPool>) -> ProxySettings {
        let of = &Values(values);
        let credentials = self.credentials(of, pool);
        let nodes = match engine_threads(of) {
            1 => self.nodes(of, credentials.as_ref(), pool),
            threads => self.engines(of, threads, pool),
        };
        let placement = placement::scheme(of.word(Setting::Placement), of.word(Setting::HashTag));
        self.nodes_fit(&nodes, placement, pool);
        ProxySettings {
            default_node: self.default_node(of, &nodes, pool),
            dead_node: DeadNode::ALL[of.word(Setting::DeadNode)].0,
            splits: splits(of),
            routing: self.routing(values, &nodes, pool),
            seeing: SeeingSettings {
                slow_log_threshold: of.duration(Setting::SlowLogThreshold),
                slow_log_entries: saturating(of.count(Setting::SlowLogEntries).unwrap_or(u64::MAX)),
                sample_every: of.count(Setting::SampleEvery).map(saturating),
                latency_ms: 0,
                tracks_latency: true,
                large_requests: LargeTerms::default(),
                large_replies: LargeTerms::default(),
            },
            integrity: IntegritySettings {
                every: of.count(Setting::IntegrityCheck).map(saturating),
                run: of.count(Setting::IntegrityRun).map(saturating),
                held_bytes: of.bytes(Setting::IntegrityBytes),
            },
            nodes,
            placement,
            timeouts: self.timeouts(of, pool),
            budgets: self.budgets(of, pool),
            allows_admin: AdminCommands::ALL[of.word(Setting::AdminCommands)] == AdminCommands::Allow,
            requests: RequestSettings {
                elements_max: saturating(of.count(Setting::RequestElementsMax).unwrap_or(u64::MAX)),
                request_bytes_max: saturating(of.bytes(Setting::RequestBytesMax)),
                bulk_bytes_max: saturating(of.bytes(Setting::BulkBytesMax)),
                inline_bytes_max: saturating(of.bytes(Setting::InlineBytesMax)),
            },
            pooling: pooling(of),
        }
    }

    fn timeouts(&mut self, of: &Values<'_>, pool: Option<&RawPool>) -> Timeouts {
        let timeouts = Timeouts {
            connect: of.duration(Setting::ConnectTimeout).unwrap_or(Duration::MAX),
            request: of.duration(Setting::RequestTimeout),
            node_silence: of.duration(Setting::NodeSilenceTimeout),
            client_idle: of.duration(Setting::ClientIdleTimeout),
            probe_idle: of.duration(Setting::HealthInterval),
            probe_patience: of.duration(Setting::HealthTimeout).unwrap_or_default(),
            slow_start: of.duration(Setting::SlowStart),
            pause: of.duration(Setting::PauseTimeout),
            reconnect_min: of.duration(Setting::ReconnectMin).unwrap_or_default(),
            reconnect_max: of.duration(Setting::ReconnectMax).unwrap_or_default(),
        };
        if timeouts.reconnect_min > timeouts.reconnect_max {
            self.blame(Setting::ReconnectMin, pool, "reconnect_min is longer than reconnect_max", "make it shorter");
        }
        if timeouts.request.zip(timeouts.node_silence).is_some_and(|(request, silence)| silence < request) {
            let message = "node_silence_timeout is shorter than request_timeout, which then could never be reached";
            self.blame(Setting::RequestTimeout, pool, message, "make node_silence_timeout longer");
        }
        timeouts
    }

    fn budgets(&mut self, of: &Values<'_>, pool: Option<&RawPool>) -> Budgets {
        let budgets = Budgets {
            client_output_soft: of.bytes(Setting::ClientOutputSoftBytes),
            client_output_hard: of.bytes(Setting::ClientOutputHardBytes),
            // A parameter alone says otherwise; these are redis-server's.
            soft_limits: [(0, 0), (8 << 20, 60)],
            node_queue: of.bytes(Setting::NodeQueueBytes),
            request_whole: of.bytes(Setting::LargeRequestBytes),
        };
        if budgets.client_output_soft > budgets.client_output_hard {
            let message = "client_output_soft_bytes is more than client_output_hard_bytes";
            self.blame(Setting::ClientOutputSoftBytes, pool, message, "make it less");
        }
        budgets
    }

    fn listeners_differ(&mut self, instances: &[Instance]) {
        let mut seen: HashMap<&Address, &str> = HashMap::new();
        for instance in instances {
            let addresses = instance.net.listen.iter().map(|spec| &spec.address);
            for address in addresses.filter(|address| address.port() != Some(0)) {
                if let Some(other) = seen.insert(address, &instance.name) {
                    let message = format!("{address} is listened on twice, by pools {other} and {}", instance.name);
                    let fault = Fault::new(Origin::Default, message);
                    self.fault(fault.hint("give every pool its own listen addresses"));
                }
            }
        }
    }
}

fn flush(of: &Values<'_>) -> FlushPolicy {
    let delay_us_max = of.duration(Setting::FlushDelayMax).map_or(0, |delay| delay.as_micros() as u64);
    match FlushMode::ALL[of.word(Setting::Flush)] {
        FlushMode::Immediate => FlushPolicy::Immediate,
        FlushMode::Adaptive => FlushPolicy::Adaptive { delay_us_max },
    }
}

/// Whether requests are split whose keys are on several nodes.
pub(super) fn splits(of: &Values<'_>) -> bool {
    CrossSlot::ALL[of.word(Setting::CrossSlot)] == CrossSlot::Split
}

/// Engines of an embedded server.
fn engine_threads(of: &Values<'_>) -> usize {
    saturating(of.count(Setting::EngineThreads).unwrap_or(1))
}

fn pooling(of: &Values<'_>) -> Pooling {
    let count = |setting: Setting| saturating(of.count(setting).unwrap_or(u64::MAX));
    Pooling {
        mode: PoolMode::ALL[of.word(Setting::PoolMode)].0,
        transaction_bytes_max: of.bytes(Setting::TransactionBytesMax),
        transaction_commands_max: count(Setting::TransactionCommandsMax),
        private_max: count(Setting::PrivateConnectionsMax),
        private_warm_max: count(Setting::PrivateConnectionsWarm),
        session_max: count(Setting::SessionConnectionsMax),
        subscriber_output: of.bytes(Setting::SubscriberOutputBytes),
        tracked_keys_max: count(Setting::TrackingTableMaxKeys),
        slow_subscribers: SlowSubscribers::ALL[of.word(Setting::SlowSubscribers)].0,
        flush: flush(of),
        publish_receivers: PublishReceivers::ALL[of.word(Setting::PublishReceivers)].0,
        blocking_max: count(Setting::BlockingConnectionsMax),
        blocked_commands_max: count(Setting::BlockedCommandsMax),
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::path::Path;

    use respool_route::Rule;
    use respool_wire::{RequestLimits, Strictness};

    use super::*;
    use crate::settings::diagnostic;
    use crate::settings::file;
    use crate::settings::row::{Group, Kind, Reload, Row};
    use crate::settings::unit;

    fn no_files(_: &Path) -> io::Result<String> {
        Err(io::Error::new(io::ErrorKind::NotFound, "no such file"))
    }

    fn understood(text: &str) -> Result<Resolved, String> {
        let mut said = RawSettings::default();
        let faults = file::hear(&mut said, "r.toml", text.to_owned());
        assert_eq!(faults, [], "{text}");
        resolve(&said, &no_files).map_err(|faults| faults.to_string())
    }

    #[test]
    fn without_settings_it_is_an_embedded_server_with_defaults() {
        let process = understood("").unwrap().process;
        let [instance] = &process.instances[..] else { panic!("one instance") };
        assert!(instance.is_embedded());
        assert_eq!(instance.name, "main");
        let address = Address::Tcp { host: "127.0.0.1".to_owned(), port: 6379 };
        assert_eq!(instance.net.listen, [ListenSpec { address, tls: None }]);
        assert_eq!((instance.net.unix_mode, instance.net.backlog), (0o600, 511));
        let requests = &instance.proxy.requests;
        let wire = RequestLimits::authenticated(Strictness::Strict);
        assert_eq!(
            (requests.elements_max, requests.request_bytes_max, requests.bulk_bytes_max, requests.inline_bytes_max),
            (wire.elements_max, wire.request_bytes_max, wire.bulk_bytes_max, wire.inline_bytes_max),
        );
        assert_eq!(instance.proxy.timeouts.client_idle, None);
        assert_eq!((process.workers, process.clients_max), (None, 10_000));
        assert_eq!(process.log, LogSettings { level: LogLevel::Info, format: LogFormat::Text });
    }

    #[test]
    fn nodes_get_unique_names() {
        let text = "nodes = [\"a:1\", \"embedded:\", \"embedded:\", \"b:2 name=x\"]";
        let process = understood(text).unwrap().process;
        let names: Vec<&str> = process.instances[0].proxy.nodes.iter().map(|node| node.name.as_str()).collect();
        assert_eq!(names, ["a:1", "embedded-1", "embedded-2", "x"]);
        let shown = understood("nodes = [\"a:1\", \"a:1\"]").unwrap_err();
        assert!(shown.contains("two nodes have the name a:1") && shown.contains("r.toml:1:1"), "{shown}");
    }

    #[test]
    fn engines_in_threads_are_the_nodes_of_a_server() {
        let process = understood("engine_threads = 3\nmaxmemory = \"10mb\"").unwrap().process;
        let instance = &process.instances[0];
        let names: Vec<&str> = instance.nodes().map(|node| node.name.as_str()).collect();
        assert_eq!(names, ["engine-1", "engine-2", "engine-3"]);
        assert!(instance.is_server() && !instance.is_embedded());
        let bytes = instance.engine.memory_bytes_max.map(|bytes| instance.engine.share_of(bytes) * 3);
        assert!(bytes.is_some_and(|bytes| (10 << 20..(10 << 20) + 3).contains(&bytes)), "{bytes:?}");
        assert!(understood("").unwrap().process.instances[0].nodes().next().is_none(), "one engine is no node");
        for (beside, message) in [
            ("nodes = \"a:1\"", "a server without nodes"),
            ("dead_node = \"next\"", "dead_node cannot be next"),
            ("[pools.p]\nnodes = \"b:1\"\n[[routes]]\nto = \"p\"", "a server without routes"),
        ] {
            let shown = understood(&format!("engine_threads = 2\n{beside}\n")).unwrap_err();
            assert!(shown.contains(message), "{beside}: {shown}");
        }
    }

    #[test]
    fn a_reload_leaves_the_keys_of_engines_where_they_are() {
        let [old, new] = ["slots", "crc32"]
            .map(|placement| understood(&format!("engine_threads = 2\nplacement = \"{placement}\"")).unwrap().process);
        let kept = old.with_live_part_of(&new);
        assert_eq!(kept.instances[0].proxy.placement, old.instances[0].proxy.placement);
    }

    #[test]
    fn pools_inherit_what_stands_above_them() {
        let text = "placement = \"crc32\"\nbacklog = 9\n[[pool]]\nname = \"a\"\nlisten = \":1\"\nnodes = \"h:1\"\n\
                    [[pool]]\nlisten = \":2\"\nplacement = \"jump\"\n";
        let instances = understood(text).unwrap().process.instances;
        let seen: Vec<_> = instances.iter().map(|i| (i.name.as_str(), i.proxy.placement, i.net.backlog)).collect();
        assert_eq!(seen, [("a", Rule::Crc32.into(), 9), ("pool-2", Rule::Jump.into(), 9)]);
    }

    #[test]
    fn what_does_not_fit_together_is_told_where_it_was_said() {
        for (text, message, place) in [
            ("nodes = \"a:1 weight=2\"", "placement slots does not fit these nodes", "r.toml:1:1"),
            ("reconnect_min = \"3s\"", "reconnect_min is longer than reconnect_max", "r.toml:1:1"),
            ("request_timeout = \"11s\"", "node_silence_timeout is shorter", "r.toml:1:1"),
            ("client_output_soft_bytes = \"1gb\"", "client_output_soft_bytes is more than", "r.toml:1:1"),
            ("hash_tag = \"{}\"", "hash_tag cannot be \"{}\"", "r.toml:1:12"),
            ("default_node = \"b\"\nnodes = \"a:1\"", "there is no node \"b\"", "r.toml:1:1"),
            ("listen = []", "nothing to listen on", "r.toml:1:1"),
            ("listen = \"tls::1\"", "tls::1 cannot be opened", "r.toml:1:1"),
            ("listen = \"tls::1 cert=/c key=/k clients=required\"", "tls::1 cannot be opened", "r.toml:1:1"),
            ("listen = \"tls::1 cert=/c key=/k identity=cn\"", "tls::1 cannot be opened", "r.toml:1:1"),
            ("nodes = \"tls:h:1 cert=/c\"", "node h:1 cannot be dialled", "r.toml:1:1"),
            ("tls_users = \"alice\"", "\"alice\" is not NAME=USER", "r.toml:1:1"),
            ("node_username = \"u\"", "a user without a password", "r.toml:1:1"),
            ("node_password_file = \"/x\"", "/x cannot be read", "r.toml:1:1"),
            ("node_password_file = \"/x\"\nnode_password = \"p\"", "is said twice", "r.toml:1:1"),
            ("backlog = 1\nconnect_timeout = \"5\"", "connect_timeout cannot be \"5\"", "r.toml:2:19"),
            ("nodes = [\"a:1\", \"b\"]", "nodes cannot be \"b\"", "r.toml:1:17"),
        ] {
            let shown = understood(text).unwrap_err();
            assert!(shown.contains(message) && shown.contains(place), "{text}\n{shown}");
        }
        let shown = understood("[[pool]]\n[[pool]]\n").unwrap_err();
        assert!(shown.contains("127.0.0.1:6379 is listened on twice, by pools pool-1 and pool-2"), "{shown}");
    }

    #[test]
    fn a_fault_that_holds_for_every_pool_is_told_once() {
        let shown = understood("backlog = 0\n[[pool]]\nlisten=\":1\"\n[[pool]]\nlisten=\":2\"\n").unwrap_err();
        assert_eq!(shown.matches("error:").count(), 1, "{shown}");
    }

    #[test]
    fn one_file_full_of_mistakes_does_not_flood_the_reader() {
        let keys: String = (0..1000).map(|number| format!("key_{number} = 1\n")).collect();
        let mut said = RawSettings::default();
        let faults = file::hear(&mut said, "r.toml", keys);
        assert_eq!(faults.len(), diagnostic::FAULTS_MAX);
        assert!(Faults { file: said.file, faults }.to_string().ends_with("There may be more.\n"));

        let pools: String = (0..100).map(|number| format!("[[pool]]\nbacklog = {}\n", number * 1_000_000)).collect();
        let shown = understood(&pools).unwrap_err();
        assert_eq!(shown.matches("error:").count(), diagnostic::FAULTS_MAX);

        let nodes: Vec<String> = (0..1001).map(|number| format!("\"h{number}:1\"")).collect();
        let shown = understood(&format!("nodes = [{}]", nodes.join(","))).unwrap_err();
        assert!(shown.contains("nodes cannot be \"h1000:1\"") && shown.contains("there are at most 1000"), "{shown}");
    }

    #[test]
    fn a_password_comes_from_a_file_and_is_not_shown() {
        let mut said = RawSettings::default();
        let text = "nodes = [\"a:1\", \"embedded:\"]\nnode_username = \"u\"\nnode_password_file = \"/p\"\n";
        file::hear(&mut said, "r.toml", text.to_owned());
        let process = resolve(&said, &|_| Ok("canary\nmore\n".to_owned())).unwrap().process;
        let nodes = &process.instances[0].proxy.nodes;
        let credentials = nodes[0].credentials.as_ref().unwrap();
        assert_eq!((credentials.username.as_deref(), credentials.password.reveal()), (Some("u"), "canary"));
        assert_eq!(nodes[1].credentials, None, "an engine in this process has no password");
        assert!(!format!("{process:?}").contains("canary"));
    }

    #[test]
    fn a_reload_changes_exactly_what_the_table_calls_live() {
        // A value that is not the default, for every row that has bounds or words to take one from.
        let other = |row: &Row| match row.kind {
            Kind::Count { max, .. } => max.to_string(),
            Kind::Bytes { min, .. } if row.name == "client_output_soft_bytes" => min.to_string(),
            Kind::Bytes { max, .. } => max.to_string(),
            Kind::Duration { min, .. } if ["reconnect_min", "request_timeout"].contains(&row.name) => {
                unit::duration(min)
            }
            Kind::Duration { max, .. } => unit::duration(max),
            Kind::Mode => "0666".to_owned(),
            Kind::Word(choices) => {
                choices().iter().rfind(|choice| choice.name != row.default).unwrap().name.to_string()
            }
            Kind::Tcp | Kind::Listeners => "h:7".to_owned(),
            Kind::Nodes => "h:7".to_owned(),
            Kind::Events => "KEA".to_owned(),
            Kind::Text | Kind::Secret | Kind::Path => "first".to_owned(),
        };
        for setting in Setting::ALL {
            let row = setting.row();
            // The bound of a delay means something where there is one.
            let base = if row.name == "flush_delay_max" { "flush = \"adaptive\"\n" } else { "" };
            let old = understood(base).unwrap();
            // Their meaning depends on another setting; all are parts of the nodes, which have a test of their own.
            let is_of_tls = row.group == Group::Tls;
            if matches!(row.kind, Kind::Text | Kind::Secret | Kind::Path) && !is_of_tls || row.name == "nodes" {
                continue;
            }
            let value = if *setting == Setting::TlsUsers { "name=user".to_owned() } else { other(row) };
            let new = understood(&format!("{base}{} = {value:?}", row.name)).unwrap();
            assert_eq!(old.changes_to(&new), [(*setting, 0)], "{}", row.name);
            assert_ne!(old.process, new.process, "{} means something", row.name);
            let is_taken = old.process.with_live_part_of(&new.process) == new.process;
            assert_eq!(is_taken, row.reload == Reload::Live, "{}", row.name);
        }
    }

    #[test]
    fn a_reload_takes_nodes_but_neither_makes_nor_ends_an_engine() {
        let takes = |old: &str, new: &str| {
            let (old, new) = (understood(old).unwrap().process, understood(new).unwrap().process);
            old.with_live_part_of(&new) == new
        };
        let of = |nodes: &str| format!("nodes = {nodes:?}");
        assert!(takes(&of("a:1,b:1"), &of("b:1,c:1 name=a:1")));
        assert!(takes(&of("a:1"), "nodes = \"a:1\"\nnode_username = \"u\"\nnode_password = \"p\""));
        assert!(takes(&of("a:1"), "nodes = \"a:1\"\n[pools.p]\nnodes = \"b:1\"\n[[routes]]\nto = \"p\"\n"));
        assert!(takes(&of("a:1,embedded:"), &of("embedded:,b:1")));
        for (old, new) in
            [("", "a:1"), ("a:1", ""), ("a:1", "a:1,embedded:"), ("embedded: name=x,embedded:", "embedded:")]
        {
            assert!(!takes(&of(old), &of(new)), "{old} {new}");
        }
    }

    #[test]
    fn a_reload_knows_what_changed() {
        let old = understood("backlog = 1\nlog = \"info\"").unwrap();
        let new = understood("backlog = 2\nlog = \"debug\"").unwrap();
        assert_eq!(old.changes_to(&new), [(Setting::Log, 0), (Setting::Backlog, 0)]);
        assert_eq!(old.changes_to(&old), []);

        let pools = |log, backlog| {
            format!(
                "log = \"{log}\"\n[[pool]]\nname = \"a\"\n[[pool]]\nname = \"b\"\nlisten = \":1\"\nbacklog = {backlog}"
            )
        };
        let old = understood(&pools("info", 1)).unwrap();
        assert_eq!(old.changes_to(&understood(&pools("warn", 2)).unwrap()), [(Setting::Log, 0), (Setting::Backlog, 1)]);
        let moved = understood("[[pool]]\nname = \"b\"\nlisten = \":1\"\nbacklog = 3").unwrap();
        assert_eq!(old.changes_to(&moved), [(Setting::Backlog, 0)]);
        assert!(!old.has_pools_of(&moved) && old.has_pools_of(&old));
    }

    #[test]
    fn a_node_may_have_credentials_of_its_own() {
        let text = "node_username = \"all\"\nnode_password = \"canary\"\n\
                    nodes = [\"a:1\", \"b:1 username=other\", \"c:1 password_file=/p\", \"d:1 username=x password_file=/p\"]";
        let mut said = RawSettings::default();
        assert_eq!(file::hear(&mut said, "r.toml", text.to_owned()), []);
        let process = resolve(&said, &|_| Ok("own\n".to_owned())).expect("all of it is right").process;
        let told = process.instances[0].proxy.nodes.iter().map(|node| {
            let credentials = node.credentials.as_ref().expect("it has some");
            (credentials.username.as_deref().unwrap_or_default(), credentials.password.reveal())
        });
        assert!(told.eq([("all", "canary"), ("other", "canary"), ("all", "own"), ("x", "own")]));
        assert!(understood("nodes = \"a:1 username=x\"").unwrap_err().contains("a user without a password"));
    }

    #[test]
    fn listeners_open_to_all_are_warned_about() {
        assert_eq!(understood("listen = [\"127.0.0.1:1\", \"/s\"]").unwrap().warnings.len(), 0);
        assert_eq!(understood("listen = \":1\"").unwrap().warnings.len(), 0, "protected mode refuses them");
        let open = "listen = \":1\"\nprotected_mode = \"no\"\n";
        assert_eq!(understood(open).unwrap().warnings.len(), 1);
        assert_eq!(understood(&format!("{open}requirepass = \"x\"\n")).unwrap().warnings.len(), 0);
        let with = |clients: &str| {
            format!("protected_mode = \"no\"\nlisten = \"tls::1 cert=/c key=/k ca=/a clients={clients}\"")
        };
        assert_eq!(understood(&with("optional")).unwrap().warnings.len(), 1);
        assert_eq!(understood(&with("required")).unwrap().warnings.len(), 0);
    }
}
