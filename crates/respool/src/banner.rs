//! What a person sees when the program starts: what runs, where to connect, what stands behind.

use std::fmt::Write as _;

use crate::settings::choices::DashboardReaders;
use crate::settings::tls::PREFIX;
use crate::settings::{Address, Instance, NodeAddress, Process};

/// The line that scripts wait for; it ends the banner.
pub const READY: &str = "Ready to accept connections";

/// Most nodes that are shown by name.
const NODES_SHOWN_MAX: usize = 8;

/// The banner, without [`READY`]. `bound` holds the addresses really listened on, per instance; `metrics` that of the
/// HTTP server.
#[must_use]
pub fn render(process: &Process, workers: usize, bound: &[Vec<Address>], metrics: Option<&Address>) -> String {
    let mut out = String::new();
    // An engine belongs to one thread, whatever was said.
    let workers = if process.instances.iter().all(Instance::is_embedded) { 1 } else { workers };
    let pid = std::process::id();
    let _ = writeln!(out, "respool {}, {}, pid {pid}", env!("CARGO_PKG_VERSION"), counted(workers, "worker"));
    for (instance, bound) in process.instances.iter().zip(bound) {
        let _ = writeln!(out, "  pool {}: {}", instance.name, describe(instance));
        for (spec, address) in instance.net.listen.iter().zip(bound) {
            let (prefix, flag) = if spec.tls.is_some() { (PREFIX, " --tls") } else { ("", "") };
            let _ = writeln!(out, "    listening on {prefix}{address}, connect with: {}{flag}", redis_cli(address));
        }
    }
    if let Some(address) = metrics {
        let _ = writeln!(out, "  metrics at http://{}/metrics", reachable(address));
        if process.admin.dashboard.readers != DashboardReaders::Off {
            let _ = writeln!(out, "  dashboard at http://{}/", reachable(address));
        }
    }
    out
}

/// What an instance is, in half a sentence.
#[must_use]
pub fn describe(instance: &Instance) -> String {
    let nodes = &instance.proxy.nodes;
    let databases = instance.engine.databases;
    match &nodes[..] {
        engines if instance.has_engine_threads() => format!(
            "embedded server with {} by {} and {}",
            counted(engines.len(), "engine"),
            instance.proxy.placement,
            counted(databases as usize, "database"),
        ),
        [] => format!("embedded server with {}", counted(databases as usize, "database")),
        [node] => format!("proxy in front of {}", node.name),
        _ => {
            let engines = nodes.iter().filter(|node| node.address == NodeAddress::Embedded).count();
            let mut names: Vec<&str> = nodes.iter().take(NODES_SHOWN_MAX).map(|node| node.name.as_str()).collect();
            if nodes.len() > NODES_SHOWN_MAX {
                names.push("...");
            }
            let kind = if engines == nodes.len() { "embedded node" } else { "node" };
            let placement = instance.proxy.placement;
            format!("proxy in front of {} by {placement}: {}", counted(nodes.len(), kind), names.join(", "))
        }
    }
}

/// The command that connects to an address.
#[must_use]
pub fn redis_cli(address: &Address) -> String {
    match address {
        Address::Any { port } => format!("redis-cli -p {port}"),
        Address::Tcp { host, port } if ["127.0.0.1", "localhost", "0.0.0.0", "::"].contains(&host.as_str()) => {
            format!("redis-cli -p {port}")
        }
        Address::Tcp { host, port } => format!("redis-cli -h {host} -p {port}"),
        Address::Unix { path } => format!("redis-cli -s {}", path.display()),
    }
}

fn reachable(address: &Address) -> String {
    match address {
        Address::Any { port } => format!("localhost:{port}"),
        Address::Tcp { host, port } if host == "0.0.0.0" || host == "::" => format!("localhost:{port}"),
        other => other.to_string(),
    }
}

/// `1 node`, `2 nodes`.
fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{RawSettings, Setting, resolve};

    fn process(flags: &[(Setting, &str)]) -> Process {
        let mut said = RawSettings::default();
        for (setting, value) in flags {
            said.hear_flag(*setting, &[(*value).to_owned()]);
        }
        resolve(&said, &|_| Ok("canary".to_owned())).unwrap().process
    }

    #[test]
    fn it_says_where_to_connect() {
        for (listen, command) in [
            ("127.0.0.1:7", "redis-cli -p 7"),
            ("tls:127.0.0.1:7 cert=/c key=/k", "redis-cli -p 7 --tls"),
            (":7", "redis-cli -p 7"),
            ("0.0.0.0:7", "redis-cli -p 7"),
            ("10.0.0.1:7", "redis-cli -h 10.0.0.1 -p 7"),
            ("[::1]:7", "redis-cli -h ::1 -p 7"),
            ("/run/r.sock", "redis-cli -s /run/r.sock"),
        ] {
            let process = process(&[(Setting::Listen, listen)]);
            let shown = render(&process, 2, &[vec![process.instances[0].net.listen[0].address.clone()]], None);
            assert!(shown.contains(&format!("connect with: {command}\n")), "{shown}");
        }
    }

    #[test]
    fn it_says_how_many_workers_there_are() {
        for (nodes, workers) in [("", "1 worker,"), ("embedded:", "2 workers,"), ("a:1", "2 workers,")] {
            let shown = render(&process(&[(Setting::Nodes, nodes)]), 2, &[vec![]], None);
            assert!(shown.contains(workers), "{nodes:?}: {shown}");
        }
    }

    #[test]
    fn it_says_what_stands_behind() {
        for (nodes, text) in [
            ("", "embedded server with 16 databases"),
            ("a:1", "proxy in front of a:1"),
            ("a:1,b:2", "proxy in front of 2 nodes by slots: a:1, b:2"),
            ("embedded:,embedded:", "proxy in front of 2 embedded nodes by slots: embedded-1, embedded-2"),
        ] {
            assert_eq!(describe(&process(&[(Setting::Nodes, nodes)]).instances[0]), text);
        }
    }

    #[test]
    fn it_says_how_many_engines_share_the_keys() {
        let process = process(&[(Setting::EngineThreads, "4")]);
        assert_eq!(describe(&process.instances[0]), "embedded server with 4 engines by slots and 16 databases");
    }

    #[test]
    fn it_says_no_secret() {
        let process = process(&[(Setting::Nodes, "a:1"), (Setting::NodePasswordFile, "/p")]);
        assert!(process.instances[0].proxy.nodes[0].credentials.is_some());
        assert!(!render(&process, 1, &[vec![]], None).contains("canary"));
    }
}
