//! INFO: what the proxy knows of itself, in sections.

use crate::commands::connection::COMPATIBLE_VERSION;
use crate::config::Config;
use crate::env::Env;
use crate::ids::ClientId;
use crate::nodes::stats::stats_of_all;
use crate::observe::counters::Counters;
use crate::pool::Lanes;
use crate::session::Flow;
use crate::workers::shared::Shared;
use respool_command::{Execute, Millis, Outcome, Row, SessionView, asks_for_section};
use respool_connection::{Now, WorkerId};
use respool_wire::{Args, Encoder, Protocol, Value};
use std::fmt::Write;
use std::sync::atomic::Ordering;

/// A section: its name, and what writes its lines.
type Section<'e> = (&'static str, fn(&ProxyInfo<'e>, &mut String));

/// The proxy, as one of its workers can tell of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProxyInfo<'e> {
    config: &'e Config,
    shared: &'e Shared,
    lanes: &'e Lanes,
    /// Of this worker, whose number is `number`.
    counters: &'e Counters,
    number: WorkerId,
    now: Now,
    /// The commands that were run, of a server that counts them.
    commands: Option<u64>,
}

impl<E: Execute> Env<E> {
    /// Answers with the sections asked for; all of them if none is named. What only an engine knows comes from it.
    pub(crate) fn info(&mut self, index: ClientId, row: &'static Row, args: Args<'_>) -> Flow {
        let mut text = self.process_sections(args);
        let now = self.engine_now();
        if let Some(of_engine) = self.engine.as_mut().and_then(|engine| engine_sections(engine, now, row, args)) {
            join_engine(&mut text, &of_engine);
        }
        self.answer(index, |reply| reply.verbatim("txt", text.as_bytes()))
    }

    /// The sections that are asked for, of the proxy and of the server that it is, without what engines know.
    pub(crate) fn process_sections(&self, args: Args<'_>) -> String {
        let mut text = self.proxy_info().sections(args);
        if self.is_server() {
            join_sections(&mut text, &self.server_sections(args));
        }
        text
    }

    pub(crate) fn proxy_info(&self) -> ProxyInfo<'_> {
        let Self { config, shared, lanes, counters, number, now, .. } = self;
        let commands = self.is_server().then(|| self.command_log.calls().calls_total());
        ProxyInfo { config, shared, lanes, counters, number: *number, now: *now, commands }
    }
}

/// The sections that an engine has, in its own words.
fn engine_sections(engine: &mut impl Execute, now: Millis, row: &'static Row, args: Args<'_>) -> Option<String> {
    let mut reply = Vec::new();
    let mut view = SessionView { database: 0, now, client_id: 0, ..SessionView::default() };
    let _: Outcome = engine.execute(row, args, &mut view, &mut Encoder::new(&mut reply, Protocol::Resp2));
    match Value::parse(&reply) {
        Ok(Value::Bulk(text)) => Some(String::from_utf8_lossy(&text).into_owned()),
        _ => None,
    }
}

impl<'e> ProxyInfo<'e> {
    const SECTIONS: [Section<'e>; 6] = [
        ("Server", Self::info_server),
        ("Clients", Self::info_clients),
        ("Memory", Self::info_memory),
        ("Stats", Self::info_stats),
        ("Proxy", Self::info_proxy),
        ("Nodes", Self::info_nodes),
    ];

    /// The proxy's own sections that are asked for.
    pub(crate) fn sections(&self, args: Args<'_>) -> String {
        let mut text = String::new();
        for (name, write) in Self::SECTIONS {
            if asks_for_section(args, name) {
                if !text.is_empty() {
                    text.push_str("\r\n");
                }
                let _ = write!(text, "# {name}\r\n");
                write(self, &mut text);
            }
        }
        text
    }

    fn info_server(&self, out: &mut String) {
        let about = &self.shared.about;
        let up_s = self.now.mono_us.saturating_sub(self.shared.started_us) / 1_000_000;
        let _ = write!(
            out,
            "redis_version:{COMPATIBLE_VERSION}\r\nredis_mode:standalone\r\nrespool_version:{}\r\nos:{}\r\n\
             arch_bits:{}\r\nprocess_id:{}\r\nrun_id:{}\r\ntcp_port:{}\r\nserver_time_usec:{}\r\n\
             uptime_in_seconds:{up_s}\r\nuptime_in_days:{}\r\nconfig_file:{}\r\n",
            about.version,
            about.os,
            usize::BITS,
            about.process_id,
            about.run_id,
            about.tcp_port.load(Ordering::Relaxed),
            self.now.unix_us,
            up_s / 86_400,
            about.config_file,
        );
    }

    fn info_clients(&self, out: &mut String) {
        let _ = write!(
            out,
            "connected_clients:{}\r\nmaxclients:{}\r\nblocked_clients:{}\r\ntracking_clients:{}\r\n",
            self.shared.ledger.clients(),
            self.config.clients_max,
            // Where a waiting client is counted on, the node has to know of it.
            self.shared
                .sum(|c| c.blocked_clients.value())
                .saturating_sub(self.shared.sum(|c| c.blocked_dialling.value())),
            self.shared.sum(|c| c.tracking_clients.value())
        );
    }

    /// What stands in the place of a single node's own stats.
    pub(crate) fn clients_section(&self) -> String {
        let mut text = "# Clients\r\n".to_owned();
        self.info_clients(&mut text);
        text.push_str("# Stats\r\n");
        self.info_tracking(&mut text);
        text
    }

    /// Whether INFO asks for what a single node would tell of our connections instead of our clients.
    pub(crate) fn asks_for_clients(&self, args: Args<'_>) -> bool {
        let asks_for = |section| asks_for_section(args, section);
        self.config.topology.node_count() == 1 && (asks_for("Clients") || asks_for("Stats"))
    }

    fn info_tracking(&self, out: &mut String) {
        let _ = write!(
            out,
            "tracking_total_keys:{}\r\ntracking_total_items:{}\r\ntracking_total_prefixes:{}\r\n",
            self.shared.sum(|c| c.tracked_keys.value()),
            self.shared.sum(|c| c.tracked_items.value()),
            self.shared.sum(|c| c.tracked_prefixes.value()),
        );
    }

    fn info_memory(&self, out: &mut String) {
        let _ = write!(out, "held_bytes:{}\r\n", self.shared.ledger.held_bytes());
    }

    fn info_stats(&self, out: &mut String) {
        let shared = self.shared;
        let _ = write!(
            out,
            "total_connections_received:{}\r\ntotal_commands_processed:{}\r\ntotal_net_input_bytes:{}\r\n\
             total_net_output_bytes:{}\r\nrejected_connections:{}\r\nevicted_clients:{}\r\ntotal_reads_processed:{}\r\n\
             total_writes_processed:{}\r\npubsub_channels:{}\r\npubsub_patterns:{}\r\npubsubshard_channels:{}\r\n",
            shared.statistic(|c| c.clients_accepted.value()),
            // What is refused was not run; calls within scripts were.
            self.commands.unwrap_or_else(|| shared.statistic(|c| c.requests.value())),
            shared.statistic(|c| c.client_bytes_in.value()),
            shared.statistic(|c| c.client_bytes_out.value()),
            shared.statistic(|c| c.clients_refused.value()),
            shared.statistic(|c| c.clients_cut_off_for_memory.value()),
            shared.statistic(|c| c.client_reads.value()),
            shared.statistic(|c| c.client_writes.value()),
            shared.sum(|c| c.pubsub_channels.value()),
            shared.sum(|c| c.pubsub_patterns.value()),
            shared.sum(|c| c.pubsub_shard_channels.value()),
        );
        self.info_tracking(out);
    }

    /// Every counter, summed over the workers.
    fn info_proxy(&self, out: &mut String) {
        let _ = write!(out, "workers:{}\r\nnodes:{}\r\n", self.shared.counters.len(), self.config.nodes.len());
        for (place, (name, _, _, value)) in self.counters.each().enumerate() {
            let others = self.shared.workers().filter(|(worker, _)| *worker != self.number);
            let sum = others.filter_map(|(_, c)| c.each().nth(place)).fold(value, |sum, (_, _, _, v)| sum + v);
            let _ = write!(out, "{name}:{sum}\r\n");
        }
        // One figure of the whole process, not of a worker.
        self.info_memory(out);
    }

    /// Every node, with the connections of all workers to it.
    fn info_nodes(&self, out: &mut String) {
        for (number, (node, stats)) in
            self.config.nodes.iter().zip(stats_of_all(self.config, self.lanes, self.shared, self.number)).enumerate()
        {
            let _ = write!(
                out,
                "node{number}:name={},address={},state={},connections={},outstanding={},queued_bytes={},\
                 round_trip_us={}\r\n",
                node.name,
                node.endpoint,
                stats.state(),
                stats.connections,
                stats.outstanding,
                stats.queued_bytes,
                stats.round_trip_us,
            );
        }
    }
}

/// Adds the sections of the engine, and what follows from stats of both.
fn join_engine(text: &mut String, of_engine: &str) {
    join_sections(text, of_engine);
    if let Some(lines) = fragmentation(text) {
        join_sections(text, &lines);
    }
}

/// What the process takes of the system beside what the engine counts. `None`: one of them is not asked for, or not known.
fn fragmentation(text: &str) -> Option<String> {
    let figure =
        |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).and_then(|figure| figure.parse().ok());
    let (resident, used): (i64, i64) = (figure("used_memory_rss:")?, figure("used_memory:")?);
    let ratio = if used > 0 { resident as f64 / used as f64 } else { 0.0 };
    let bytes = resident - used;
    Some(format!("# Memory\r\nmem_fragmentation_ratio:{ratio:.2}\r\nmem_fragmentation_bytes:{bytes}\r\n"))
}

/// Puts the sections of `more` behind those of `text`, the lines of a section that is there already behind its own.
fn join_sections(text: &mut String, more: &str) {
    for section in more.split("\r\n\r\n").map(str::trim_end).filter(|section| !section.is_empty()) {
        let (head, lines) = section.split_once("\r\n").unwrap_or((section, ""));
        let begin = text.find(&format!("{head}\r\n"));
        if let Some(begin) = begin {
            let end = text[begin..].find("\r\n\r\n").map_or(text.len(), |end| begin + end + 2);
            text.insert_str(end, &format!("{lines}\r\n"));
        } else {
            let gap = if text.is_empty() { "" } else { "\r\n" };
            text.push_str(&format!("{gap}{section}\r\n"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workers::shared::ProcessFacts;
    use respool_wire::ArgsBuf;
    use std::sync::Arc;

    #[test]
    fn counters_are_summed_over_the_workers_each_once() {
        let shared = Shared::new(3, 0, ProcessFacts::default(), Arc::default());
        for (worker, counters) in shared.counters.iter().enumerate() {
            counters.requests.add(10_u64.pow(worker as u32));
        }
        let (config, now) = (crate::testing::config(), Now { mono_us: 3_000_000, ..Now::default() });
        let lanes = Lanes::new(&config, 1);
        let info = |words: &[&str], commands| {
            let args: ArgsBuf = words.iter().collect();
            let counters = &shared.counters[1];
            let info = ProxyInfo {
                config: &config,
                shared: &shared,
                lanes: &lanes,
                counters,
                number: WorkerId::new(1),
                now,
                commands,
            };
            info.sections(args.as_args())
        };
        let text = info(&["INFO", "proxy"], None);
        assert!(text.starts_with("# Proxy\r\nworkers:3\r\nnodes:1\r\n"), "{text}");
        assert!(text.contains("\r\nrequests:111\r\n"), "{text}");
        assert!(info(&["INFO", "stats"], None).contains("total_commands_processed:111\r\n"));
        assert!(
            info(&["INFO", "stats"], Some(7)).contains("total_commands_processed:7\r\n"),
            "those that a server ran"
        );
        assert!(info(&["INFO", "server"], None).contains("uptime_in_seconds:3\r\n"));
        assert_eq!(info(&["INFO", "nonesuch"], None), "");
    }

    #[test]
    fn lines_of_two_sections_of_one_name_are_joined() {
        let engine = "# Memory\r\nb:2\r\n\r\n# Store\r\nc:3\r\n\r\n# Keyspace\r\n";
        for (text, joined) in [
            ("", "# Memory\r\nb:2\r\n\r\n# Store\r\nc:3\r\n\r\n# Keyspace\r\n"),
            (
                "# Memory\r\na:1\r\n\r\n# Stats\r\nd:4\r\n",
                "# Memory\r\na:1\r\nb:2\r\n\r\n# Stats\r\nd:4\r\n\r\n# Store\r\nc:3\r\n\r\n# Keyspace\r\n",
            ),
        ] {
            let mut text = text.to_owned();
            join_sections(&mut text, engine);
            assert_eq!(text, joined);
        }
    }
}
