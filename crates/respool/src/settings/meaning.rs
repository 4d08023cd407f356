//! What the settings mean: one small plain struct per component, checked one by one and against each other.
//!
//! Knows no source: whatever said a value, it is read by its row here. The only thing it may need from outside is a
//! secret's file, which the caller reads for it.

use std::fmt::Display;
use std::io;
use std::path::Path;
use std::time::Duration;

use respool_route::{Node, Placement, PlacementError, Scheme};

use super::address::{Address, NodeAddress, NodeText};
use super::fault::{Fault, Faults};
use super::placement;
use super::row::{Row, Scope, Secret, Value};
use super::said::{Origin, PoolSaid, Said};
use super::table::{LogFormat, LogLevel, Setting};

/// What a process is to do.
#[derive(Debug, Clone, PartialEq)]
pub struct Process {
    /// Worker threads; `None` is one per processor.
    pub workers: Option<usize>,
    /// Most clients at a time, over all instances.
    pub clients_max: usize,
    /// Budget for all buffers together.
    pub buffer_bytes_max: u64,
    /// Most attempts to connect to nodes per second.
    pub connects_per_second_max: u32,
    /// How long owed replies may take after a request to stop.
    pub drain_timeout: Duration,
    /// Logs.
    pub log: LogSettings,
    /// The HTTP side.
    pub admin: AdminSettings,
    /// One per pool, at least one.
    pub instances: Vec<Instance>,
}

impl Process {
    /// These settings, with everything taken from `new` that a reload can change. Pools are told apart by name.
    #[must_use]
    pub fn with_live_part_of(&self, new: &Self) -> Self {
        let instances = self.instances.iter().map(|old| match new.instances.iter().find(|new| new.name == old.name) {
            Some(new) => old.with_live_part_of(new),
            None => old.clone(),
        });
        Self {
            clients_max: new.clients_max,
            buffer_bytes_max: new.buffer_bytes_max,
            connects_per_second_max: new.connects_per_second_max,
            drain_timeout: new.drain_timeout,
            log: LogSettings { level: new.log.level, ..self.log.clone() },
            instances: instances.collect(),
            ..self.clone()
        }
    }
}

/// One pool: its doors, and what stands behind them.
#[derive(Debug, Clone, PartialEq)]
pub struct Instance {
    /// Its name; `main` if it has none and is alone.
    pub name: String,
    /// Its doors and sockets.
    pub net: NetSettings,
    /// Its nodes and rules.
    pub proxy: ProxySettings,
    /// The engine of an embedded server or node.
    pub engine: EngineSettings,
}

impl Instance {
    fn with_live_part_of(&self, new: &Self) -> Self {
        let (timeouts, budgets) = (new.proxy.timeouts.clone(), new.proxy.budgets.clone());
        Self { proxy: ProxySettings { timeouts, budgets, ..self.proxy.clone() }, ..self.clone() }
    }

    /// Whether it is an embedded server, that is, has no node.
    #[must_use]
    pub fn is_embedded(&self) -> bool {
        self.proxy.nodes.is_empty()
    }
}

/// Listeners and the sockets of clients and nodes.
#[derive(Debug, Clone, PartialEq)]
pub struct NetSettings {
    /// Where to listen; at least one.
    pub listen: Vec<Address>,
    /// Permissions of unix sockets.
    pub unix_mode: u32,
    /// Backlog of every listener.
    pub backlog: u32,
    /// First keepalive probe after this long without traffic; `None` is off.
    pub keepalive: Option<Duration>,
    /// TCP_USER_TIMEOUT; `None` is the kernel's own.
    pub user_timeout: Option<Duration>,
}

/// Nodes, placement, limits and budgets.
#[derive(Debug, Clone, PartialEq)]
pub struct ProxySettings {
    /// The nodes in the order said; none is an embedded server.
    pub nodes: Vec<NodeSettings>,
    /// The rule that chooses a key's node, and the part of the key that it looks at.
    pub placement: Scheme,
    /// Position in `nodes` of the one that answers commands without a key; 0 if there is none.
    pub default_node: usize,
    /// Time allowed for things.
    pub timeouts: Timeouts,
    /// Bytes allowed for things.
    pub budgets: Budgets,
    /// Limits of one request.
    pub requests: RequestSettings,
}

/// One node.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeSettings {
    /// Unique in its instance: as given, or its address.
    pub name: String,
    /// What it is.
    pub address: NodeAddress,
    /// Its share of the keys relative to the others.
    pub weight: u32,
    /// How to authenticate; `None` does not.
    pub credentials: Option<Credentials>,
}

/// How to authenticate at a node.
#[derive(Debug, Clone, PartialEq)]
pub struct Credentials {
    /// ACL user; `None` sends AUTH with a password alone.
    pub username: Option<String>,
    /// The password.
    pub password: Secret,
}

/// Time allowed; `None` is without bound.
#[derive(Debug, Clone, PartialEq)]
pub struct Timeouts {
    /// To connect to a node, authentication included.
    pub connect: Duration,
    /// From sending a request to its reply.
    pub request: Option<Duration>,
    /// For a node that owes replies to say nothing.
    pub node_silence: Option<Duration>,
    /// For a client to say nothing.
    pub client_idle: Option<Duration>,
    /// Pause before the first reconnect.
    pub reconnect_min: Duration,
    /// Longest pause between reconnects.
    pub reconnect_max: Duration,
}

/// Bytes allowed.
#[derive(Debug, Clone, PartialEq)]
pub struct Budgets {
    /// Requests of one client not yet passed on: over it the client is not read.
    pub client_input: u64,
    /// Replies one client has not taken: over it the client is not read.
    pub client_output_soft: u64,
    /// Replies one client has not taken: over it the client is disconnected.
    pub client_output_hard: u64,
    /// Requests waiting for one node, per worker.
    pub node_queue: u64,
}

/// Limits of one request.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestSettings {
    /// Most elements.
    pub elements_max: usize,
    /// Largest request, in bytes.
    pub request_bytes_max: usize,
    /// Largest bulk string, in bytes.
    pub bulk_bytes_max: usize,
    /// Longest inline request, in bytes.
    pub inline_bytes_max: usize,
}

/// The embedded engine.
#[derive(Debug, Clone, PartialEq)]
pub struct EngineSettings {
    /// Number of databases.
    pub databases: u32,
}

/// Logs.
#[derive(Debug, Clone, PartialEq)]
pub struct LogSettings {
    /// How much.
    pub level: LogLevel,
    /// How it looks.
    pub format: LogFormat,
}

/// The HTTP side.
#[derive(Debug, Clone, PartialEq)]
pub struct AdminSettings {
    /// Where /metrics, /healthz and /readyz are served; `None` is nowhere.
    pub listen: Option<Address>,
}

/// What was understood: the process, and every value for whoever wants to show it.
#[derive(Debug, Clone)]
pub struct Understood {
    /// The settings of the components.
    pub process: Process,
    /// The values of each instance, in the order of `process.instances`, each in the order of the table.
    pub values: Vec<Vec<Value>>,
    /// What is allowed and probably not meant, for a log line.
    pub warnings: Vec<String>,
}

impl Understood {
    /// The settings that differ, each with the place of its instance in `new`; those of the whole process stand first,
    /// with place 0. Pools are told apart by name; one that is not in both is no change of settings.
    #[must_use]
    pub fn changes_to(&self, new: &Self) -> Vec<(Setting, usize)> {
        let differing = |scope: Scope, old: &[Value], number: usize| {
            let differs = |setting: &&Setting| {
                setting.row().scope == scope && old[**setting as usize] != new.values[number][**setting as usize]
            };
            Setting::ALL.iter().filter(differs).map(|setting| (*setting, number)).collect::<Vec<_>>()
        };
        let mut changes = differing(Scope::Process, &self.values[0], 0);
        for (old, values) in self.process.instances.iter().zip(&self.values) {
            let number = new.process.instances.iter().position(|new| new.name == old.name);
            changes.extend(number.into_iter().flat_map(|number| differing(Scope::Pool, values, number)));
        }
        changes
    }

    /// Whether the same pools are there, by name and in the same order.
    #[must_use]
    pub fn has_pools_of(&self, other: &Self) -> bool {
        self.process.instances.iter().map(|pool| &pool.name).eq(other.process.instances.iter().map(|pool| &pool.name))
    }
}

/// Reads a file with a secret.
pub type ReadSecret<'a> = &'a dyn Fn(&Path) -> io::Result<String>;

/// Understands what was said.
///
/// # Errors
/// Everything that is wrong, not only the first thing.
pub fn resolve(said: &Said, read_secret: ReadSecret<'_>) -> Result<Understood, Faults> {
    let mut judge = Judge { said, read_secret, faults: Vec::new(), warnings: Vec::new() };
    let pools: Vec<Option<&PoolSaid>> = match said.pools.is_empty() {
        true => vec![None],
        false => said.pools.iter().map(Some).collect(),
    };
    let values: Vec<Vec<Value>> = pools.iter().map(|pool| judge.values(*pool)).collect();
    if judge.faults.is_empty() {
        let names = judge.pool_names(&pools);
        let named = names.into_iter().zip(&values).zip(&pools);
        let instances: Vec<Instance> =
            named.map(|((name, values), pool)| judge.instance(name, values, *pool)).collect();
        judge.listeners_differ(&instances);
        if judge.faults.is_empty() {
            let process = process(&values[0], instances);
            let warnings = judge.warnings;
            return Ok(Understood { process, values, warnings });
        }
    }
    // A fault of a value that holds for all pools is found once per pool.
    let mut faults: Vec<Fault> = Vec::new();
    for fault in judge.faults {
        if !faults.contains(&fault) {
            faults.push(fault);
        }
    }
    Err(Faults { file: said.file.clone(), faults })
}

fn process(values: &[Value], instances: Vec<Instance>) -> Process {
    let of = Values(values);
    Process {
        workers: of.count(Setting::Workers).map(saturating),
        clients_max: saturating(of.count(Setting::MaxClients).unwrap_or(u64::MAX)),
        buffer_bytes_max: of.bytes(Setting::ProcessBytes),
        connects_per_second_max: saturating(of.count(Setting::ReconnectRate).unwrap_or(u64::MAX)),
        drain_timeout: of.duration(Setting::DrainTimeout).unwrap_or_default(),
        log: LogSettings {
            level: LogLevel::ALL[of.word(Setting::Log)],
            format: LogFormat::ALL[of.word(Setting::LogFormat)],
        },
        admin: AdminSettings { listen: of.tcp(Setting::Metrics) },
        instances,
    }
}

/// The values of one instance, by the type their row promises.
///
/// A value of another type cannot stand there, because the row itself made it; the tests of this file ask for every one.
struct Values<'a>(&'a [Value]);

impl Values<'_> {
    fn of(&self, setting: Setting) -> &Value {
        &self.0[setting as usize]
    }

    fn count(&self, setting: Setting) -> Option<u64> {
        match self.of(setting) {
            Value::Count(count) => Some(*count),
            Value::Absent => None,
            other => mismatch(setting, other),
        }
    }

    fn bytes(&self, setting: Setting) -> u64 {
        match self.of(setting) {
            Value::Bytes(bytes) => *bytes,
            other => mismatch(setting, other),
        }
    }

    fn duration(&self, setting: Setting) -> Option<Duration> {
        match self.of(setting) {
            Value::Duration(time) => Some(*time),
            Value::Absent => None,
            other => mismatch(setting, other),
        }
    }

    fn mode(&self, setting: Setting) -> u32 {
        match self.of(setting) {
            Value::Mode(mode) => *mode,
            other => mismatch(setting, other),
        }
    }

    fn word(&self, setting: Setting) -> usize {
        match self.of(setting) {
            Value::Word(at, _) => *at,
            other => mismatch(setting, other),
        }
    }

    fn text(&self, setting: Setting) -> Option<&str> {
        match self.of(setting) {
            Value::Text(text) => Some(text),
            Value::Absent => None,
            other => mismatch(setting, other),
        }
    }

    fn secret(&self, setting: Setting) -> Option<Secret> {
        match self.of(setting) {
            Value::Secret(secret) => Some(secret.clone()),
            Value::Absent => None,
            other => mismatch(setting, other),
        }
    }

    fn tcp(&self, setting: Setting) -> Option<Address> {
        match self.of(setting) {
            Value::Tcp(address) => Some(address.clone()),
            Value::Absent => None,
            other => mismatch(setting, other),
        }
    }

    fn listeners(&self, setting: Setting) -> &[Address] {
        match self.of(setting) {
            Value::Listeners(all) => all,
            other => mismatch(setting, other),
        }
    }

    fn nodes(&self, setting: Setting) -> &[NodeText] {
        match self.of(setting) {
            Value::Nodes(all) => all,
            other => mismatch(setting, other),
        }
    }
}

fn mismatch(setting: Setting, value: &Value) -> ! {
    panic!("the row of {setting:?} does not promise {value:?}")
}

/// Bounds of the table keep every count below what its target holds; a 32-bit machine gets its maximum.
fn saturating<T: TryFrom<u64> + Bound>(count: u64) -> T {
    T::try_from(count).unwrap_or(T::MAX)
}

trait Bound {
    const MAX: Self;
}

impl Bound for u32 {
    const MAX: Self = Self::MAX;
}

impl Bound for usize {
    const MAX: Self = Self::MAX;
}

struct Judge<'a> {
    said: &'a Said,
    read_secret: ReadSecret<'a>,
    faults: Vec<Fault>,
    warnings: Vec<String>,
}

impl Judge<'_> {
    /// Reads every setting of one pool.
    fn values(&mut self, pool: Option<&PoolSaid>) -> Vec<Value> {
        Setting::ALL.iter().map(|setting| self.value(*setting, pool)).collect()
    }

    fn value(&mut self, setting: Setting, pool: Option<&PoolSaid>) -> Value {
        let row = setting.row();
        let Some(statement) = self.said.about(setting, pool) else {
            return default_of(row);
        };
        let texts: Vec<&str> = statement.texts.iter().map(|text| text.text.as_str()).collect();
        match row.parse(&texts) {
            Ok(value) => value,
            Err(refusal) => {
                let text = statement.texts.get(refusal.text);
                let origin = text.map_or(&statement.origin, |text| &text.origin).clone();
                let said = match text {
                    _ if row.is_secret() => "what was said".to_owned(),
                    Some(text) => format!("{:.200?}", text.text),
                    None => "nothing".to_owned(),
                };
                self.faults.push(Fault::new(origin, format!("{} cannot be {said}", row.name)).hint(refusal.reason));
                default_of(row)
            }
        }
    }

    fn pool_names(&mut self, pools: &[Option<&PoolSaid>]) -> Vec<String> {
        let unnamed = |number: usize| if pools.len() == 1 { "main".to_owned() } else { format!("pool-{}", number + 1) };
        let name = |(number, pool): (usize, &Option<&PoolSaid>)| {
            pool.and_then(|pool| pool.name.clone()).unwrap_or_else(|| unnamed(number))
        };
        let names: Vec<String> = pools.iter().enumerate().map(name).collect();
        for (number, name) in names.iter().enumerate() {
            if names[..number].contains(name) {
                self.faults.push(Fault::new(Origin::Default, format!("two pools have the name {name}")));
            }
        }
        names
    }

    fn instance(&mut self, name: String, values: &[Value], pool: Option<&PoolSaid>) -> Instance {
        let of = Values(values);
        let net = NetSettings {
            listen: of.listeners(Setting::Listen).to_vec(),
            unix_mode: of.mode(Setting::UnixMode),
            backlog: saturating(of.count(Setting::Backlog).unwrap_or(u64::MAX)),
            keepalive: of.duration(Setting::Keepalive),
            user_timeout: of.duration(Setting::TcpUserTimeout),
        };
        if net.listen.is_empty() {
            self.blame(Setting::Listen, pool, "nothing to listen on", "give at least one address");
        }
        let proxy = self.proxy(&of, pool);
        let exposed = net.listen.iter().find(|address| !address.is_local());
        if let Some(address) = exposed {
            self.warnings.push(format!("pool {name}: everybody who reaches {address} may send commands"));
        }
        let engine = EngineSettings { databases: saturating(of.count(Setting::Databases).unwrap_or(1)) };
        Instance { name, net, proxy, engine }
    }

    fn proxy(&mut self, of: &Values<'_>, pool: Option<&PoolSaid>) -> ProxySettings {
        let credentials = self.credentials(of, pool);
        let nodes = named_nodes(of.nodes(Setting::Nodes), credentials.as_ref());
        let placement = placement::scheme(of.word(Setting::Placement), of.word(Setting::HashTag));
        self.nodes_fit(&nodes, placement, pool);
        ProxySettings {
            default_node: self.default_node(of, &nodes, pool),
            nodes,
            placement,
            timeouts: self.timeouts(of, pool),
            budgets: self.budgets(of, pool),
            requests: RequestSettings {
                elements_max: saturating(of.count(Setting::RequestElementsMax).unwrap_or(u64::MAX)),
                request_bytes_max: saturating(of.bytes(Setting::RequestBytesMax)),
                bulk_bytes_max: saturating(of.bytes(Setting::BulkBytesMax)),
                inline_bytes_max: saturating(of.bytes(Setting::InlineBytesMax)),
            },
        }
    }

    /// Whether the placement can tell the nodes apart; without nodes there is nothing to place.
    fn nodes_fit(&mut self, nodes: &[NodeSettings], scheme: Scheme, pool: Option<&PoolSaid>) {
        for (number, node) in nodes.iter().enumerate() {
            if nodes[..number].iter().any(|other| other.name == node.name) {
                let hint = "give one of them another with name=NAME behind its address";
                self.blame(Setting::Nodes, pool, &format!("two nodes have the name {}", node.name), hint);
            }
        }
        let route: Vec<Node> = nodes.iter().map(|node| Node::new(&*node.name).with_weight(node.weight)).collect();
        match Placement::new(scheme, &route) {
            // Reported above, for every placement, because logs and metrics tell nodes apart by name as well.
            Ok(_) | Err(PlacementError::NoNodes | PlacementError::SameName { .. }) => {}
            Err(error) => {
                let message = format!("placement {scheme} does not fit these nodes");
                self.blame(Setting::Nodes, pool, &message, error);
            }
        }
    }

    fn default_node(&mut self, of: &Values<'_>, nodes: &[NodeSettings], pool: Option<&PoolSaid>) -> usize {
        let Some(wanted) = of.text(Setting::DefaultNode) else { return 0 };
        let position = nodes.iter().position(|node| node.name == wanted || node.address.to_string() == wanted);
        position.unwrap_or_else(|| {
            let names: Vec<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
            let hint = format!("the nodes are {}", if names.is_empty() { "none".to_owned() } else { names.join(", ") });
            self.blame(Setting::DefaultNode, pool, &format!("there is no node {wanted:.200?}"), hint);
            0
        })
    }

    fn credentials(&mut self, of: &Values<'_>, pool: Option<&PoolSaid>) -> Option<Credentials> {
        let username = of.text(Setting::NodeUsername).map(str::to_owned);
        let password = match (of.secret(Setting::NodePassword), of.text(Setting::NodePasswordFile)) {
            (Some(_), Some(_)) => {
                let hint = "say one of node_password and node_password_file";
                self.blame(Setting::NodePasswordFile, pool, "the password for the nodes is said twice", hint);
                None
            }
            (password, None) => password,
            (None, Some(path)) => self.secret_of(Setting::NodePasswordFile, path, pool),
        };
        if username.is_some() && password.is_none() && self.faults.is_empty() {
            self.blame(Setting::NodeUsername, pool, "a user without a password", "set node_password_file");
        }
        password.map(|password| Credentials { username, password })
    }

    fn secret_of(&mut self, setting: Setting, path: &str, pool: Option<&PoolSaid>) -> Option<Secret> {
        let first_line = |text: String| text.lines().next().filter(|line| !line.is_empty()).map(str::to_owned);
        match (self.read_secret)(Path::new(path)).map(first_line) {
            Ok(Some(line)) => return Some(Secret::new(line)),
            Ok(None) => self.blame(setting, pool, &format!("{path} is empty"), "the first line is the password"),
            Err(error) => self.blame(setting, pool, &format!("{path} cannot be read"), error),
        }
        None
    }

    fn timeouts(&mut self, of: &Values<'_>, pool: Option<&PoolSaid>) -> Timeouts {
        let timeouts = Timeouts {
            connect: of.duration(Setting::ConnectTimeout).unwrap_or(Duration::MAX),
            request: of.duration(Setting::RequestTimeout),
            node_silence: of.duration(Setting::NodeSilenceTimeout),
            client_idle: of.duration(Setting::ClientIdleTimeout),
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

    fn budgets(&mut self, of: &Values<'_>, pool: Option<&PoolSaid>) -> Budgets {
        let budgets = Budgets {
            client_input: of.bytes(Setting::ClientInputBytes),
            client_output_soft: of.bytes(Setting::ClientOutputSoftBytes),
            client_output_hard: of.bytes(Setting::ClientOutputHardBytes),
            node_queue: of.bytes(Setting::NodeQueueBytes),
        };
        if budgets.client_output_soft > budgets.client_output_hard {
            let message = "client_output_soft_bytes is more than client_output_hard_bytes";
            self.blame(Setting::ClientOutputSoftBytes, pool, message, "make it less");
        }
        budgets
    }

    fn listeners_differ(&mut self, instances: &[Instance]) {
        let mut seen: Vec<(&Address, &str)> = Vec::new();
        for (instance, address) in instances.iter().flat_map(|i| i.net.listen.iter().map(move |address| (i, address))) {
            if address.port() == Some(0) {
                continue;
            }
            if let Some((_, other)) = seen.iter().find(|(taken, _)| *taken == address) {
                let message = format!("{address} is listened on twice, by pools {other} and {}", instance.name);
                let fault = Fault::new(Origin::Default, message);
                self.faults.push(fault.hint("give every pool its own listen addresses"));
            }
            seen.push((address, &instance.name));
        }
    }

    /// Adds a fault at the place where a setting was said.
    fn blame(&mut self, setting: Setting, pool: Option<&PoolSaid>, message: &str, hint: impl Display) {
        let origin = self.said.about(setting, pool).map_or(Origin::Default, |statement| statement.origin.clone());
        self.faults.push(Fault::new(origin, message.to_owned()).hint(hint.to_string()));
    }
}

fn default_of(row: &Row) -> Value {
    if row.default.is_empty() {
        return if row.is_list() { row.parse(&[]).unwrap_or(Value::Absent) } else { Value::Absent };
    }
    row.parse(&[row.default]).expect("a test reads every default in the table")
}

fn named_nodes(nodes: &[NodeText], credentials: Option<&Credentials>) -> Vec<NodeSettings> {
    let mut engines = 0;
    let mut named = Vec::with_capacity(nodes.len());
    for node in nodes {
        let plain = match &node.address {
            NodeAddress::Embedded => {
                engines += 1;
                format!("embedded-{engines}")
            }
            NodeAddress::Remote(address) => address.to_string(),
        };
        let credentials = matches!(node.address, NodeAddress::Remote(_)).then(|| credentials.cloned()).flatten();
        named.push(NodeSettings {
            name: node.name.clone().unwrap_or(plain),
            address: node.address.clone(),
            weight: node.weight,
            credentials,
        });
    }
    named
}

#[cfg(test)]
mod tests {
    use respool_route::Rule;

    use super::*;
    use crate::settings::file;
    use crate::settings::row::{Kind, Reload};
    use crate::settings::unit;

    fn no_files(_: &Path) -> io::Result<String> {
        Err(io::Error::new(io::ErrorKind::NotFound, "no such file"))
    }

    fn understood(text: &str) -> Result<Understood, String> {
        let mut said = Said::default();
        let faults = file::hear(&mut said, "r.toml", text.to_owned());
        assert_eq!(faults, [], "{text}");
        resolve(&said, &no_files).map_err(|faults| faults.to_string())
    }

    #[test]
    fn saying_nothing_is_an_embedded_server_with_the_documented_defaults() {
        let process = understood("").unwrap().process;
        let [instance] = &process.instances[..] else { panic!("one instance") };
        assert!(instance.is_embedded());
        assert_eq!(instance.name, "main");
        assert_eq!(instance.net.listen, [Address::Tcp { host: "127.0.0.1".to_owned(), port: 6379 }]);
        assert_eq!((instance.net.unix_mode, instance.net.backlog), (0o600, 511));
        assert_eq!(instance.proxy.requests.bulk_bytes_max, 512 << 20);
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
    fn a_password_comes_from_a_file_and_is_not_shown() {
        let mut said = Said::default();
        let text = "nodes = [\"a:1\", \"embedded:\"]\nnode_username = \"u\"\nnode_password_file = \"/p\"\n";
        file::hear(&mut said, "r.toml", text.to_owned());
        let process = resolve(&said, &|_| Ok("canary\nmore\n".to_owned())).unwrap().process;
        let nodes = &process.instances[0].proxy.nodes;
        let credentials = nodes[0].credentials.as_ref().unwrap();
        assert_eq!((credentials.username.as_deref(), credentials.password.reveal()), (Some("u"), "canary"));
        assert_eq!(nodes[1].credentials, None, "an engine in this process asks nobody's password");
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
            Kind::Text | Kind::Secret | Kind::Path => "first".to_owned(),
        };
        let old = understood("").unwrap();
        for setting in Setting::ALL {
            let row = setting.row();
            // Their meaning depends on another setting; all three are parts of the nodes, which is not live.
            if matches!(row.kind, Kind::Text | Kind::Secret | Kind::Path) {
                assert_eq!(row.reload, Reload::Restart, "{}", row.name);
                continue;
            }
            let new = understood(&format!("{} = {:?}", row.name, other(row))).unwrap();
            assert_eq!(old.changes_to(&new), [(*setting, 0)], "{}", row.name);
            assert_ne!(old.process, new.process, "{} means something", row.name);
            let is_taken = old.process.with_live_part_of(&new.process) == new.process;
            assert_eq!(is_taken, row.reload == Reload::Live, "{}", row.name);
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
    fn doors_open_to_everybody_are_warned_about() {
        assert_eq!(understood("listen = [\"127.0.0.1:1\", \"/s\"]").unwrap().warnings.len(), 0);
        assert_eq!(understood("listen = \":1\"").unwrap().warnings.len(), 1);
    }
}
