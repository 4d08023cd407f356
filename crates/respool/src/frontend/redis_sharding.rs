//! redis-sharding, in Standard ML, Haskell or Perl: its flags.
//!
//! Keys stay where it put them: CRC-32 modulo the number of nodes in the order given, with the hash tags of the version
//! that is replaced. Deadlines towards nodes, which it did not have, are Respool's own.

use super::Translation;
use super::flags::{self, Flag, Given, Takes};
use crate::settings::raw::Statement;
use crate::settings::{Fault, Origin, Setting};

const fn value(name: &'static str, doc: &'static str) -> Flag {
    Flag { name, takes: Takes::Value, doc }
}

/// redis-sharding's flags.
pub(super) static FLAGS: &[Flag] = &[
    value("nodes", "nodes as ip:port, separated by commas; needed"),
    value("host", "host to listen on (0.0.0.0)"),
    value("port", "port to listen on (6379)"),
    value("timeout", "seconds after which a silent client is disconnected (300); 0 is never"),
    value("N", "worker threads (1)"),
    value("SO_REUSEPORT", "no effect: workers always share the port that way"),
    value("minheap", "no effect: it was Poly/ML's"),
    value("maxheap", "no effect: it was Poly/ML's"),
];

/// Whether only redis-sharding has this flag.
pub(super) fn is_own_flag(arg: &str) -> bool {
    matches!(flags::name_of(arg), Some("nodes" | "N" | "SO_REUSEPORT"))
}

/// From which brace a hash tag is read in a key that ends with one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tags {
    /// The last: Standard ML and Haskell.
    Last,
    /// The first: Perl.
    First,
}

/// Understands redis-sharding's command line.
pub(super) fn translate(args: &[String], tags: Tags) -> Translation {
    let mut out = Translation::default();
    let args = without_runtime_flags(args, &mut out.notes);
    let (given, faults) = flags::read(&args, FLAGS);
    out.faults = faults;
    let last = |name: &str| given.iter().rfind(|flag| flag.name == name);
    let said = &mut out.said.top;

    let text = |name: &str, default: &str| last(name).map_or_else(|| default.to_owned(), |flag| flag.value.clone());
    let listen = format!("{}:{}", text("host", "0.0.0.0"), text("port", "6379"));
    let listen_origin = last("port").or(last("host")).map_or(Origin::Default, Given::origin);
    said.push(Statement::line(Setting::Listen, &listen, listen_origin));

    match last("nodes").filter(|flag| !flag.value.is_empty()) {
        Some(flag) => said.push(Statement::line(Setting::Nodes, &flag.value, flag.origin())),
        None => {
            let fault = Fault::new(Origin::Default, "--nodes is needed".to_owned());
            out.faults.push(fault.hint("such as --nodes=10.0.0.1:6379,10.0.0.2:6379"));
        }
    }
    said.push(Statement::line(Setting::Placement, "crc32", Origin::Default));
    let tag = if tags == Tags::Last { "last-brace" } else { "first-brace" };
    said.push(Statement::line(Setting::HashTag, tag, Origin::Default));

    let (idle, idle_origin) = match last("timeout") {
        Some(flag) if flag.value == "0" => ("off".to_owned(), flag.origin()),
        Some(flag) => (format!("{}s", flag.value), flag.origin()),
        None => ("300s".to_owned(), Origin::Default),
    };
    said.push(Statement::line(Setting::ClientIdleTimeout, &idle, idle_origin));

    let workers = last("N").filter(|flag| flag.value != "0");
    let workers_origin = workers.map_or(Origin::Default, Given::origin);
    let workers = workers.map_or("1", |flag| flag.value.as_str());
    said.push(Statement::line(Setting::Workers, workers, workers_origin));

    let without_effect = given.iter().filter(|flag| matches!(flag.name, "SO_REUSEPORT" | "minheap" | "maxheap"));
    for flag in without_effect {
        let doc = FLAGS.iter().find(|known| known.name == flag.name).map_or("", |known| known.doc);
        out.notes.push(format!("{}: {doc}", flag.said));
    }
    out
}

/// Takes out what was meant for the run-time system that the replaced program was built with: `@MLton ... --` in front,
/// `+RTS ... -RTS` anywhere, to the end if it is not closed.
fn without_runtime_flags(args: &[String], notes: &mut Vec<String>) -> Vec<String> {
    let mut own = Vec::new();
    let mut closed_by: Option<&str> = None;
    for (at, arg) in args.iter().enumerate() {
        match (closed_by, arg.as_str()) {
            (Some(end), arg) if arg == end => closed_by = None,
            (Some(_), _) => {}
            (None, "@MLton") if at == 0 => closed_by = Some("--"),
            (None, "+RTS") => closed_by = Some("-RTS"),
            (None, _) => {
                own.push(arg.clone());
                continue;
            }
        }
        if arg == "@MLton" || arg == "+RTS" {
            notes.push(format!("{arg} ...: no effect: there is no such run-time system here"));
        }
    }
    own
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use respool_route::{Rule, Scheme, TagRule};

    use super::*;
    use crate::settings::{Instance, Process, resolve};

    fn translated(line: &str, tags: Tags) -> Translation {
        let args: Vec<String> = line.split_terminator(' ').map(str::to_owned).collect();
        translate(&args, tags)
    }

    fn process(out: &Translation) -> Process {
        assert_eq!(out.faults, []);
        resolve(&out.said, &|_| unreachable!("no secret is asked for")).unwrap_or_else(|why| panic!("{why}")).process
    }

    fn nodes(instance: &Instance) -> Vec<String> {
        instance.proxy.nodes.iter().map(|node| node.name.clone()).collect()
    }

    #[test]
    fn its_defaults_are_kept() {
        let process = process(&translated("--nodes=10.0.0.1:1,10.0.0.2:2", Tags::Last));
        let instance = &process.instances[0];
        assert_eq!(instance.net.listen[0].to_string(), "0.0.0.0:6379");
        assert_eq!(nodes(instance), ["10.0.0.1:1", "10.0.0.2:2"]);
        assert_eq!(instance.proxy.placement, Scheme { rule: Rule::Crc32, tag: TagRule::LastBrace });
        assert_eq!(instance.proxy.timeouts.client_idle, Some(Duration::from_secs(300)));
        assert_eq!(process.workers, Some(1));
    }

    #[test]
    fn its_flags_mean_what_they_meant() {
        let line = "@MLton fixed-heap 20M -- --host=127.0.0.1 --port=7 --nodes=a:1 --timeout=0 --N=4 --SO_REUSEPORT=1";
        let out = translated(line, Tags::First);
        let process = process(&out);
        let instance = &process.instances[0];
        assert_eq!(instance.net.listen[0].to_string(), "127.0.0.1:7");
        assert_eq!(instance.proxy.placement.tag, TagRule::FirstBrace);
        assert_eq!((instance.proxy.timeouts.client_idle, process.workers), (None, Some(4)));
        assert_eq!(out.notes.len(), 2, "{:?}", out.notes);
    }

    #[test]
    fn flags_of_a_run_time_system_are_passed_over() {
        for line in ["--nodes=a:1 +RTS -N1 -H20M -qa", "+RTS -N1 -RTS --nodes=a:1", "--minheap 20M --nodes=a:1"] {
            let out = translated(line, Tags::Last);
            assert_eq!(nodes(&process(&out).instances[0]), ["a:1"], "{line}");
            assert_eq!(out.notes.len(), 1, "{line}");
        }
    }

    #[test]
    fn mistakes_are_told() {
        for (line, message) in
            [("", "--nodes is needed"), ("--nodes=", "--nodes is needed"), ("--nods=a:1", "there is no flag \"nods\"")]
        {
            let out = translated(line, Tags::Last);
            assert!(out.faults.iter().any(|fault| fault.message.contains(message)), "{line}\n{:?}", out.faults);
        }
        let out = translated("--nodes=a:1 --timeout=5m", Tags::Last);
        let faults = resolve(&out.said, &|_| unreachable!("no secret is asked for")).unwrap_err().to_string();
        assert!(faults.contains("--timeout=5m"), "{faults}");
    }
}
