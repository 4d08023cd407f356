//! rmux: its flags and its JSON file.
//!
//! Keys stay where rmux put them: the same nodes in the same order, by rmux' own table. What was a defect is not imitated:
//! a slow node is answered for with an error instead of a closed connection, and timeouts that rmux accepted apply.

use std::collections::HashMap;
use std::path::Path;

use serde_json::Value;

use super::flags::{self, Flag, Given, Takes};
use super::{ReadFile, Translation};
use crate::settings::diagnostic;
use crate::settings::file::POOLS_MAX;
use crate::settings::raw::{FileText, RawPool, Statement, Text};
use crate::settings::{Fault, Origin, Setting, nearest, unit};

const fn value(name: &'static str, doc: &'static str) -> Flag {
    Flag { name, takes: Takes::Value, doc }
}

const fn switch(name: &'static str, doc: &'static str) -> Flag {
    Flag { name, takes: Takes::Switch, doc }
}

const NEVER_APPLIED: &str = "no effect: rmux never applied it; RESPOOL_CLIENT_IDLE_TIMEOUT closes silent clients";
const SHARED: &str = "no effect: all clients share few pipelined connections to each node, so there is no pool to size";
const ALWAYS_TIMED: &str = "no effect: how long nodes take is always among the metrics that are sent";
const NO_PROFILE: &str = "no effect: profile the process from outside, for example with perf";
const NO_SYSLOG: &str = "no effect: logs go to standard error, where the service manager takes them";
const BY_ITSELF: &str = "no effect: connections are watched and replaced without an interval";

/// rmux' flags.
pub(super) static FLAGS: &[Flag] = &[
    value("host", "host to listen on (localhost)"),
    value("port", "port to listen on (6379)"),
    value("socket", "unix socket to listen on instead, open to all users of the machine"),
    value("tcpConnections", "nodes as host:port, separated by spaces (localhost:6380 localhost:6381)"),
    value("unixConnections", "further nodes as paths of unix sockets, separated by spaces"),
    value("maxProcesses", "worker threads; 0 is one per processor"),
    value("remoteTimeout", "time for connecting and for a reply, in ms or with a unit; 0 is 500 ms"),
    value("remoteConnectTimeout", "time for connecting; overrules remoteTimeout"),
    value("remoteReadTimeout", "time for a reply; overrules remoteTimeout"),
    value("remoteWriteTimeout", "no effect: writing is part of the time for a reply"),
    value("remoteReconnectInterval", BY_ITSELF),
    value("remoteDiagnosticCheckInterval", BY_ITSELF),
    value("localTimeout", NEVER_APPLIED),
    value("localReadTimeout", NEVER_APPLIED),
    value("localWriteTimeout", NEVER_APPLIED),
    value("poolSize", SHARED),
    value("config", "JSON file with an array of pools"),
    switch("failover", "keys of a dead node go to the next one, where what is written meanwhile stays"),
    switch("debug", "log more"),
    value("graphite", "statsd server that is sent metrics over UDP, as host:port"),
    switch("timing", ALWAYS_TIMED),
    value("cpuProfile", NO_PROFILE),
    switch("useSyslog", NO_SYSLOG),
];

/// Flags that mean the process; all others describe a pool and may be keys of the JSON file.
const OF_PROCESS: [&str; 6] = ["config", "debug", "graphite", "timing", "cpuProfile", "useSyslog"];

/// Nodes of a pool that names none on the command line.
const DEFAULT_NODES: &str = "localhost:6380 localhost:6381";

/// What 0 means for a timeout towards a node, in milliseconds.
const DEFAULT_TIMEOUT_MS: u64 = 500;

/// Whether only rmux has this flag.
pub(super) fn is_own_flag(arg: &str) -> bool {
    let is_single_dashed = !arg.starts_with("--");
    match flags::name_of(arg) {
        // Others have these too, with two dashes.
        Some("host" | "port" | "config" | "timing" | "debug") => is_single_dashed,
        Some(name) => FLAGS.iter().any(|flag| flag.name == name),
        None => false,
    }
}

/// Understands rmux' command line.
pub(super) fn translate(args: &[String], read_file: ReadFile<'_>) -> Translation {
    let mut out = Translation::default();
    let (given, faults) = flags::read(args, FLAGS);
    out.faults = faults;
    let (of_process, of_pool): (Vec<Given>, Vec<Given>) =
        given.into_iter().partition(|flag| OF_PROCESS.contains(&flag.name));
    let config = of_process.iter().rfind(|flag| flag.name == "config" && !flag.value.is_empty());
    for flag in &of_process {
        match (flag.name, flag.value.as_str()) {
            ("debug", "true") => out.said.top.push(Statement::line(Setting::Log, "debug", flag.origin())),
            ("config" | "debug", _) | (_, "" | "false") => {}
            ("graphite", address) => {
                out.said.top.push(Statement::line(Setting::Statsd, address, flag.origin()));
            }
            _ => note(&mut out.notes, flag.name, &flag.said),
        }
    }
    match config {
        None => {
            let pool = of_pool.into_iter().fold(Pool::of_command_line(), |pool, flag| pool.with_flag(flag, &mut out));
            pool.say(&mut out);
        }
        Some(flag) => {
            out.notes.extend(of_pool.iter().map(|pool| format!("{}: no effect beside -config", pool.said)));
            match read_file(Path::new(&flag.value)) {
                Ok(text) => hear_json(&mut out, &flag.value, text),
                Err(error) => {
                    out.faults.push(Fault::new(flag.origin(), format!("{} cannot be read: {error}", flag.value)));
                }
            }
        }
    }
    out
}

/// Takes a JSON file of pools.
pub fn hear_json(out: &mut Translation, name: &str, text: String) {
    match serde_json::from_str(&text) {
        Ok(Value::Array(pools)) if !pools.is_empty() => {
            if pools.len() > POOLS_MAX {
                return out.faults.push(Fault::new(whole(name), format!("there are more than {POOLS_MAX} pools")));
            }
            for (number, pool) in pools.iter().enumerate() {
                hear_json_pool(out, &format!("{name}, pool {}", number + 1), pool);
            }
        }
        Ok(_) => {
            let fault = Fault::new(whole(name), "an array of pools is needed".to_owned());
            out.faults.push(
                fault.hint(r#"such as [{"host": "localhost", "port": 6379, "tcpConnections": ["localhost:6380"]}]"#),
            );
        }
        Err(error) => {
            let at = byte_at(&text, error.line(), error.column());
            let message = error.to_string();
            let message = message.split(" at line ").next().unwrap_or_default();
            out.faults.push(Fault::new(Origin::File { span: at..at + 1 }, format!("this is not JSON: {message}")));
            out.said.file = Some(FileText { name: name.to_owned(), text });
        }
    }
}

fn whole(name: &str) -> Origin {
    Origin::Flag { said: name.to_owned() }
}

fn byte_at(text: &str, line: usize, column: usize) -> usize {
    let before: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    (before + column.saturating_sub(1)).min(text.len().saturating_sub(1))
}

fn hear_json_pool(out: &mut Translation, place: &str, pool: &Value) {
    let Value::Object(members) = pool else {
        return diagnostic::add(&mut out.faults, || Fault::new(whole(place), "a pool is an object".to_owned()));
    };
    let mut heard = Pool::default();
    for (key, member) in members {
        match json_flag(key, member, place) {
            Ok(Some(flag)) => heard = heard.with_flag(flag, out),
            Ok(None) => {}
            Err(fault) => diagnostic::add(&mut out.faults, || fault),
        }
    }
    if heard.socket.is_none() && heard.port.is_none() {
        let fault = Fault::new(whole(place), "there is nothing to listen on".to_owned());
        return diagnostic::add(&mut out.faults, || fault.hint("port or socket is needed"));
    }
    heard.say(out);
}

/// A member of a pool as the flag of that name; `None` if it says nothing.
fn json_flag(key: &str, member: &Value, place: &str) -> Result<Option<Given>, Fault> {
    let said = format!("{place}: {key}");
    let fault = |message: String| Fault::new(whole(&said), message);
    let names = || FLAGS.iter().map(|flag| flag.name).filter(|name| !OF_PROCESS.contains(name));
    // Go's decoder takes keys in any case.
    let Some(name) = names().find(|name| name.eq_ignore_ascii_case(key)) else {
        let fault = fault(format!("there is no key {key:.200?}"));
        return Err(match nearest(key, names()) {
            Some(near) => fault.hint(format!("the nearest is {near}")),
            None => fault.hint(format!("the keys are {}", names().collect::<Vec<_>>().join(", "))),
        });
    };
    let is_list = matches!(name, "tcpConnections" | "unixConnections");
    let value = match member {
        Value::Null => return Ok(None),
        Value::String(text) if !is_list => text.clone(),
        Value::Number(number) if !is_list => number.to_string(),
        Value::Bool(is) if name == "failover" => is.to_string(),
        Value::Array(items) if is_list => {
            let texts: Option<Vec<&str>> = items.iter().map(Value::as_str).collect();
            texts.ok_or_else(|| fault(format!("{name} is an array of texts")))?.join(" ")
        }
        _ => return Err(fault(format!("{name} cannot be {}", kind_of(member)))),
    };
    Ok(Some(Given { name, value, said }))
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// One of rmux' pools, as said.
#[derive(Debug, Default)]
struct Pool {
    host: Option<Given>,
    port: Option<Given>,
    socket: Option<Given>,
    tcp: Option<Given>,
    unix: Option<Given>,
    workers: Option<Given>,
    timeout: Option<Given>,
    connect: Option<Given>,
    read: Option<Given>,
    failover: Option<Given>,
}

impl Pool {
    fn of_command_line() -> Self {
        let default = |name: &'static str, value: &str| {
            let said = format!("-{name} was not given: {value}");
            Some(Given { name, value: value.to_owned(), said })
        };
        Self {
            host: default("host", "localhost"),
            port: default("port", "6379"),
            tcp: default("tcpConnections", DEFAULT_NODES),
            ..Self::default()
        }
    }

    fn with_flag(mut self, flag: Given, out: &mut Translation) -> Self {
        match flag.name {
            "host" => self.host = Some(flag),
            "port" => self.port = Some(flag),
            "socket" => self.socket = Some(flag).filter(|flag| !flag.value.is_empty()),
            "tcpConnections" => self.tcp = Some(flag),
            "unixConnections" => self.unix = Some(flag),
            "maxProcesses" => self.workers = Some(flag).filter(|flag| flag.value != "0"),
            "remoteTimeout" => self.timeout = Some(flag).filter(is_set),
            "remoteConnectTimeout" => self.connect = Some(flag).filter(is_set),
            "remoteReadTimeout" => self.read = Some(flag).filter(is_set),
            "failover" => self.failover = Some(flag).filter(|flag| flag.value == "true"),
            name => {
                if is_set(&flag) && flag.value != "false" {
                    note(&mut out.notes, name, &flag.said);
                }
            }
        }
        self
    }

    /// Says it in Respool's words.
    fn say(self, out: &mut Translation) {
        let mut pool = RawPool { statements: vec![self.listen()], ..RawPool::default() };
        if let Some(socket) = &self.socket {
            pool.statements.push(Statement::line(Setting::UnixMode, "0666", socket.origin()));
        }
        let nodes = self.nodes();
        if nodes.texts.is_empty() {
            let message = "there is no node: tcpConnections or unixConnections is needed".to_owned();
            diagnostic::add(&mut out.faults, || Fault::new(nodes.origin.clone(), message));
        }
        pool.statements.push(nodes);
        pool.statements.push(Statement::line(Setting::Placement, "rmux", Origin::Default));
        if let Some(failover) = &self.failover {
            pool.statements.push(Statement::line(Setting::DeadNode, "next", failover.origin()));
        }
        let mut time = |setting, of: &Option<Given>| {
            let given = of.as_ref().or(self.timeout.as_ref());
            let text = given.map_or_else(|| format!("{DEFAULT_TIMEOUT_MS}ms"), |flag| with_unit(&flag.value));
            let origin = given.map_or(Origin::Default, Given::origin);
            pool.statements.push(Statement::line(setting, &text, origin));
        };
        time(Setting::ConnectTimeout, &self.connect);
        time(Setting::RequestTimeout, &self.read);
        // rmux knew no other deadline, so the one for silence must not come first.
        let parsed = |text: &str| unit::parse_duration(text).ok();
        let request = self.read.as_ref().or(self.timeout.as_ref()).map(|flag| (flag, with_unit(&flag.value)));
        if let Some((flag, text)) = request.filter(|(_, text)| parsed(text) > parsed(silence_default())) {
            pool.statements.push(Statement::line(Setting::NodeSilenceTimeout, &text, flag.origin()));
        }
        if let Some(workers) = &self.workers {
            // rmux sets the number for the whole process; the last pool that says one wins.
            out.said.top.retain(|statement| statement.setting != Setting::Workers);
            out.said.top.push(Statement::line(Setting::Workers, &workers.value, workers.origin()));
        }
        out.said.pools.push(pool);
    }

    fn listen(&self) -> Statement {
        if let Some(socket) = &self.socket {
            return one(Setting::Listen, format!("unix:{}", socket.value), socket.origin());
        }
        let value = |flag: &Option<Given>| flag.as_ref().map_or("", |flag| flag.value.as_str()).to_owned();
        let (host, port) = (value(&self.host), value(&self.port));
        let address = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
        let origin = self.port.as_ref().or(self.host.as_ref()).map_or(Origin::Default, Given::origin);
        one(Setting::Listen, address, origin)
    }

    /// TCP nodes first, then unix sockets: rmux' order, which its table depends on.
    fn nodes(&self) -> Statement {
        let texts = |flag: &Option<Given>, prefix: &'static str| {
            let words = flag.iter().flat_map(move |flag| {
                let origin = flag.origin();
                let words = flag.value.split(' ').filter(|word| !word.is_empty());
                words.map(move |word| Text { text: format!("{prefix}{word}"), origin: origin.clone() })
            });
            words.collect::<Vec<_>>()
        };
        let mut texts: Vec<Text> = texts(&self.tcp, "").into_iter().chain(texts(&self.unix, "unix:")).collect();
        name_twins(&mut texts);
        let flag = self.tcp.as_ref().or(self.unix.as_ref());
        Statement { setting: Setting::Nodes, texts, origin: flag.map_or(Origin::Default, Given::origin) }
    }
}

/// rmux may have the same server twice in its table; the second one needs a name of its own here.
fn name_twins(nodes: &mut [Text]) {
    let mut times: HashMap<String, usize> = HashMap::new();
    for node in nodes {
        let times = times.entry(node.text.clone()).or_default();
        *times += 1;
        if *times > 1 {
            node.text = format!("{} name={}#{times}", node.text, node.text);
        }
    }
}

fn one(setting: Setting, text: String, origin: Origin) -> Statement {
    Statement { setting, texts: vec![Text { text, origin: origin.clone() }], origin }
}

fn is_set(flag: &Given) -> bool {
    !matches!(flag.value.as_str(), "" | "0" | "0s" | "0ms")
}

fn silence_default() -> &'static str {
    Setting::NodeSilenceTimeout.row().default
}

/// A plain number is milliseconds; earlier versions took Go's durations.
fn with_unit(value: &str) -> String {
    let is_plain = !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit());
    if is_plain { format!("{value}ms") } else { value.to_owned() }
}

fn note(notes: &mut Vec<String>, name: &str, said: &str) {
    let doc = FLAGS.iter().find(|flag| flag.name == name).map_or("", |flag| flag.doc);
    notes.push(format!("{said}: {doc}"));
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::time::Duration;

    use respool_route::Rule;

    use super::*;
    use crate::settings::{Instance, Process, resolve};

    fn translated(args: &[&str], json: &str) -> Translation {
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        translate(&args, &|path| match path.to_str() {
            Some("x.json") => Ok(json.to_owned()),
            _ => Err(io::ErrorKind::NotFound.into()),
        })
    }

    fn process(out: &Translation) -> Process {
        assert_eq!(out.faults, []);
        resolve(&out.said, &|_| unreachable!("no secret is asked for")).unwrap_or_else(|why| panic!("{why}")).process
    }

    fn addresses(instance: &Instance) -> (Vec<String>, Vec<String>) {
        let listen = instance.net.listen.iter().map(ToString::to_string).collect();
        (listen, instance.proxy.nodes.iter().map(|node| node.name.clone()).collect())
    }

    #[test]
    fn without_flags_it_does_as_rmux_does() {
        let process = process(&translated(&[], ""));
        let instance = &process.instances[0];
        let nodes = vec!["localhost:6380".to_owned(), "localhost:6381".to_owned()];
        assert_eq!(addresses(instance), (vec!["localhost:6379".to_owned()], nodes));
        assert_eq!(instance.proxy.placement, Rule::Rmux.into());
        let times = &instance.proxy.timeouts;
        let half_a_second = Duration::from_millis(500);
        assert_eq!((times.connect, times.request), (half_a_second, Some(half_a_second)));
    }

    #[test]
    fn its_flags_mean_what_they_meant() {
        let args = [
            "-socket=/tmp/r.sock",
            "-tcpConnections",
            "10.0.0.1:1  10.0.0.2:2",
            "-unixConnections=/a /b",
            "-maxProcesses=3",
            "--remoteTimeout=200",
            "-remoteReadTimeout",
            "2s",
            "-debug",
            "-poolSize=50",
            "-failover",
        ];
        let out = translated(&args, "");
        let process = process(&out);
        let instance = &process.instances[0];
        let nodes = ["10.0.0.1:1", "10.0.0.2:2", "unix:/a", "unix:/b"].map(str::to_owned).to_vec();
        assert_eq!(addresses(instance), (vec!["unix:/tmp/r.sock".to_owned()], nodes));
        assert_eq!((instance.net.unix_mode, process.workers), (0o666, Some(3)));
        let times = &instance.proxy.timeouts;
        assert_eq!((times.connect, times.request), (Duration::from_millis(200), Some(Duration::from_secs(2))));
        assert_eq!(process.log.level, crate::settings::LogLevel::Debug);
        let noted: Vec<&str> = out.notes.iter().map(|note| note.split(':').next().unwrap()).collect();
        assert_eq!(noted, ["-poolSize=50"]);
    }

    #[test]
    fn a_long_timeout_is_not_cut_short_by_another() {
        let instances = process(&translated(&["-remoteTimeout=60000"], "")).instances;
        assert_eq!(instances[0].proxy.timeouts.request, Some(Duration::from_secs(60)));
        assert_eq!(instances[0].proxy.timeouts.node_silence, Some(Duration::from_secs(60)));
    }

    #[test]
    fn its_file_makes_several_pools() {
        let json = r#"[
            {"host": "", "port": 7000, "tcpConnections": ["a:1", "a:1"], "remoteConnectTimeout": 30, "maxProcesses": 2},
            {"Socket": "/s", "unixConnections": ["/n"], "localTimeout": 9, "poolSize": 0, "failover": false}
        ]"#;
        let out = translated(&["-config", "x.json", "-port", "1"], json);
        let process = process(&out);
        let seen: Vec<_> = process.instances.iter().map(addresses).collect();
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        assert_eq!(seen, [(texts(&[":7000"]), texts(&["a:1", "a:1#2"])), (texts(&["unix:/s"]), texts(&["unix:/n"]))]);
        assert_eq!(process.workers, Some(2));
        assert_eq!(process.instances[0].proxy.timeouts.connect, Duration::from_millis(30));
        assert_eq!(out.notes.len(), 2, "{:?}", out.notes);
        assert!(out.notes[0].starts_with("-port 1: no effect beside -config"));
        assert!(out.notes[1].starts_with("x.json, pool 2: localTimeout: no effect"));
    }

    #[test]
    fn mistakes_are_told_with_their_place() {
        for (json, message) in [
            ("[{\"port\": 1, \"tcpConections\": [\"a:1\"]}]", "there is no key \"tcpConections\""),
            ("[{\"port\": 1, \"debug\": true}]", "there is no key \"debug\""),
            ("[{\"port\": 1, \"tcpConnections\": \"a:1\"}]", "tcpConnections cannot be a text"),
            ("[{\"port\": 1, \"tcpConnections\": [1]}]", "tcpConnections is an array of texts"),
            ("[{\"tcpConnections\": [\"a:1\"]}]", "there is nothing to listen on"),
            ("[{\"port\": 1}]", "there is no node"),
            ("[3]", "a pool is an object"),
            ("[]", "an array of pools is needed"),
            ("{}", "an array of pools is needed"),
            ("[\n{,}]", "this is not JSON"),
            ("", "this is not JSON"),
        ] {
            let out = translated(&["-config=x.json"], json);
            assert!(out.faults.iter().any(|fault| fault.message.contains(message)), "{json}\n{:?}", out.faults);
        }
        let missing = translated(&["-config=y.json"], "");
        assert!(missing.faults[0].message.starts_with("y.json cannot be read"));
        let out = translated(&["-config=x.json"], "[\n  {,}]");
        assert_eq!(out.faults[0].origin, Origin::File { span: 5..6 });
    }
}
