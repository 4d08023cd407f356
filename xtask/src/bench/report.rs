//! What is printed and kept of a run: rows, bars and the machine they were measured on.

use std::fs;

use serde_json::{Value, json};

use super::bars::Bar;
use super::row::Row;

pub(crate) fn print_heading() {
    println!(
        "{:<52} {:<9} {:>9} {:>9} {:>9} {:>9} {:>10} {:>9} {:>8} {:>9}",
        "scenario",
        "subject",
        "req/s",
        "p50 ms",
        "p99 ms",
        "proxy us",
        "servers us",
        "cmd/read",
        "peak MB",
        "calls/req"
    );
}

pub(crate) fn print_row(row: &Row) {
    let optional =
        |value: Option<f64>, digits: usize| value.map_or("-".to_owned(), |value| format!("{value:.digits$}"));
    println!(
        "{:<52} {:<9} {:>9.0} {:>9.3} {:>9.3} {:>9} {:>10} {:>9} {:>8.1} {:>9}",
        row.scenario.to_string(),
        row.subject.to_string(),
        row.median(|sample| sample.requests_per_second),
        row.median(|sample| sample.p50_ms),
        row.median(|sample| sample.p99_ms),
        optional(row.median_of(|sample| sample.proxy_us), 3),
        optional(row.median_of(|sample| sample.nodes_us), 3),
        optional(row.median_of(|sample| sample.commands_per_read), 2),
        row.median(|sample| sample.peak_resident_bytes as f64) / 1e6,
        optional(row.syscalls, 3),
    );
}

pub(crate) fn print_bars(bars: &[Bar]) {
    println!("\n{:<72} | {:>16} | {:>12} | ", "bar", "wanted", "reached");
    for bar in bars {
        println!("{bar}");
    }
}

/// The machine that the numbers depend on.
pub(crate) fn machine() -> Value {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let processors = read("/proc/cpuinfo");
    let model = processors.lines().find_map(|line| line.strip_prefix("model name")?.split(": ").nth(1));
    json!({
        "processor": model,
        "cores": processors.lines().filter(|line| line.starts_with("processor")).count(),
        "kernel": read("/proc/sys/kernel/osrelease").trim(),
    })
}
