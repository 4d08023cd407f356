//! INFO of a server that keeps its data itself: the sections and lines of redis-server beyond those that a proxy has as well.
//!
//! A figure of replicas, of which there are none, is the one that redis-server shows without them; the engine has more of that kind. What is
//! not known is left out. `tests/behaviour/info.rs` compares the names with those of redis-server.

use crate::env::Env;
use crate::hooks::{ConfigAnswer, ConfigVerb, ProcessUsage};
use crate::observe::calls::CallCounts;
use crate::observe::histogram::{Histogram, quantile_us};
use crate::observe::rates::Rates;
use crate::observe::terms::Terms;
use crate::workers::shared::Shared;
use respool_command::{Execute, asks_for_section, human_bytes, names_section};
use respool_connection::Now;
use respool_wire::{Args, ArgsBuf};
use std::cell::OnceCell;
use std::fmt::Write;

/// The parameter that says which percentiles are shown.
const PERCENTILES: &str = "latency-tracking-info-percentiles";

/// Sections about the process, whatever its engines are. To what workers count of calls and errors theirs are added.
const OF_PROCESS: [&str; 6] = ["Server", "Memory", "CPU", "Stats", "Commandstats", "Errorstats"];

/// A section: its name, whether a request that names none asks for it, and what writes its lines.
type Section<'e> = (&'static str, bool, &'e dyn Fn(&mut String));

/// A server that keeps its data itself, as its worker can tell of it.
struct ServerInfo<'e> {
    shared: &'e Shared,
    calls: &'e CallCounts,
    /// How long calls took, by their commands.
    latencies: &'e dyn Fn() -> Vec<(&'static str, &'e Histogram)>,
    rates: &'e Rates,
    terms: &'e Terms,
    now: Now,
    /// Whether the engine is in this worker, and not in threads of its own.
    has_engine: bool,
}

impl<E: Execute> Env<E> {
    /// The sections of a server that are asked for.
    pub(crate) fn server_sections(&self, args: Args<'_>) -> String {
        let Self { shared, command_log, rates, now, .. } = self;
        let (terms, has_engine) = (&self.config.seeing, self.engine.is_some());
        let calls = &*command_log.calls();
        let latencies = &|| command_log.latencies.histograms(None);
        ServerInfo { shared, calls, latencies, rates, terms, now: *now, has_engine }.sections(args)
    }
}

impl ServerInfo<'_> {
    /// The sections that are asked for.
    fn sections(&self, args: Args<'_>) -> String {
        // Asking takes a few reads of files: it is done once, and only for the sections that show it.
        let asked = OnceCell::new();
        let usage = || asked.get_or_init(|| self.shared.hooks.usage());
        let sections: [Section<'_>; 9] = [
            ("Server", true, &|out| self.write_server(out)),
            ("Clients", true, &|out| out.push_str("cluster_connections:0\r\n")),
            ("Memory", true, &|out| self.write_memory(out, usage())),
            ("Stats", true, &|out| self.write_stats(out)),
            ("Replication", true, &|out| self.write_replication(out)),
            ("CPU", true, &|out| write_cpu(out, usage())),
            ("Commandstats", false, &|out| self.calls.write_commands(out)),
            ("Errorstats", true, &|out| self.calls.write_errors(out)),
            ("Latencystats", false, &|out| self.write_latencies(out)),
        ];
        // The rest of a server with several engines is told by them.
        let is_told_here = |name| self.has_engine || OF_PROCESS.contains(&name);
        let mut text = String::new();
        for (name, is_default, write) in sections.into_iter().filter(|(name, ..)| is_told_here(*name)) {
            if if is_default { asks_for_section(args, name) } else { names_section(args, name) } {
                let gap = if text.is_empty() { "" } else { "\r\n" };
                let _ = write!(text, "{gap}# {name}\r\n");
                write(&mut text);
            }
        }
        text
    }

    /// The value of a parameter of the server; empty if there are none.
    fn parameter(&self, name: &str) -> String {
        let names: ArgsBuf = [name].iter().collect();
        match self.shared.hooks.configure(ConfigVerb::Get(names.as_args())) {
            Ok(ConfigAnswer::Shown(shown)) => {
                shown.into_iter().next().map(|(_, value)| String::from_utf8_lossy(&value).into_owned())
            }
            _ => None,
        }
        .unwrap_or_default()
    }

    fn write_server(&self, out: &mut String) {
        let hz = self.parameter("hz");
        let _ = write!(
            out,
            "redis_git_sha1:00000000\r\nredis_git_dirty:0\r\nmonotonic_clock:POSIX clock_gettime\r\n\
             multiplexing_api:epoll\r\nprocess_supervised:no\r\nhz:{hz}\r\nconfigured_hz:{hz}\r\nlru_clock:{}\r\n\
             executable:{}\r\nio_threads_active:0\r\n",
            (self.now.unix_us / 1_000_000) & 0x00ff_ffff,
            self.shared.about.executable,
        );
    }

    fn write_memory(&self, out: &mut String, usage: &ProcessUsage) {
        let maxmemory = self.parameter("maxmemory").parse().unwrap_or(0);
        let _ = write!(
            out,
            "used_memory_rss:{rss}\r\nused_memory_rss_human:{}\r\ntotal_system_memory:{system}\r\n\
             total_system_memory_human:{}\r\nmaxmemory:{maxmemory}\r\nmaxmemory_human:{}\r\n\
             mem_not_counted_for_evict:0\r\nmem_replication_backlog:0\r\nmem_total_replication_buffers:0\r\n\
             mem_clients_slaves:0\r\nmem_clients_normal:{}\r\nmem_cluster_links:0\r\nmem_aof_buffer:0\r\n\
             active_defrag_running:0\r\nmem_allocator:{}\r\n",
            human_bytes(usage.resident_bytes),
            human_bytes(usage.system_bytes),
            human_bytes(maxmemory),
            self.shared.ledger.held_bytes(),
            if usage.allocator.is_empty() { "libc" } else { &usage.allocator },
            rss = usage.resident_bytes,
            system = usage.system_bytes,
        );
    }

    fn write_stats(&self, out: &mut String) {
        let rates = self.rates.per_second(self.shared.traffic());
        let _ = write!(
            out,
            "instantaneous_ops_per_sec:{}\r\ninstantaneous_input_kbps:{:.2}\r\ninstantaneous_output_kbps:{:.2}\r\n\
             total_error_replies:{}\r\nmigrate_cached_sockets:{}\r\n",
            rates.requests,
            rates.bytes_in as f64 / 1024.0,
            rates.bytes_out as f64 / 1024.0,
            self.calls.errors_total(),
            self.shared.hooks.transfer_connections(),
        );
    }

    fn write_replication(&self, out: &mut String) {
        let _ = write!(
            out,
            "role:master\r\nconnected_slaves:0\r\nmaster_failover_state:no-failover\r\nmaster_replid:{}\r\n",
            self.shared.about.run_id,
        );
    }

    /// The percentiles that the parameter names, of each command that was timed.
    fn write_latencies(&self, out: &mut String) {
        let wanted = self.parameter(PERCENTILES);
        let wanted: Vec<f64> = wanted.split(' ').filter_map(|word| word.parse().ok()).collect();
        let wanted = wanted.as_slice();
        if wanted.is_empty() || !self.terms.tracks_latency {
            return;
        }
        for (name, histogram) in (self.latencies)() {
            let counts = histogram.counts();
            let _ = write!(out, "latency_percentiles_usec_{name}:");
            for (place, percentile) in wanted.iter().enumerate() {
                let gap = if place == 0 { "" } else { "," };
                let us = quantile_us(&counts, percentile / 100.0);
                let _ = write!(out, "{gap}p{percentile}={us}.000");
            }
            out.push_str("\r\n");
        }
    }
}

fn write_cpu(out: &mut String, usage: &ProcessUsage) {
    let kinds = [("", usage.process), ("_children", usage.children), ("_main_thread", usage.thread)];
    for (kind, time) in kinds {
        let [system, user] = [time.system_us, time.user_us].map(|us| us as f64 / 1e6);
        let _ = write!(out, "used_cpu_sys{kind}:{system:.6}\r\nused_cpu_user{kind}:{user:.6}\r\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workers::shared::ProcessFacts;

    fn info(calls: &CallCounts, words: &[&str]) -> String {
        let shared = Shared::new(1, 0, ProcessFacts::default(), Default::default());
        let (rates, terms, now) = (Rates::default(), Terms::default(), Now::default());
        let args: ArgsBuf = words.iter().collect();
        let (shared, rates, terms, latencies) = (&shared, &rates, &terms, &Vec::new);
        ServerInfo { shared, calls, latencies, rates, terms, now, has_engine: true }.sections(args.as_args())
    }

    #[test]
    fn figures_of_single_commands_are_shown_only_if_named() {
        let mut calls = CallCounts::default();
        let row = respool_command::lookup(b"GET").expect("a known command");
        calls.end(row, b"-WRONGTYPE no\r\n", None);
        let all = info(&calls, &["INFO"]);
        assert!(all.contains("# Errorstats\r\nerrorstat_WRONGTYPE:count=1\r\n"), "{all}");
        assert!(all.contains("total_error_replies:1\r\n"), "{all}");
        assert!(!all.contains("cmdstat_get"), "{all}");
        let named = info(&calls, &["INFO", "commandstats"]);
        assert!(named.starts_with("# Commandstats\r\ncmdstat_get:calls=1,"), "{named}");
        assert!(!named.contains("# Server"), "{named}");
        assert_eq!(info(&calls, &["INFO", "latencystats"]), "# Latencystats\r\n", "nothing is tracked");
    }
}
