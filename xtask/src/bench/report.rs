//! What is printed and kept of a run: rows, bars and the machine they were measured on.

use std::fs;

use serde_json::{Value, json};

use super::bars::Bar;
use super::load::Sample;
use super::scenario::{Scenario, Subject};

/// All measurements of one subject in one scenario.
pub(crate) struct Row {
    pub(crate) scenario: Scenario,
    pub(crate) subject: Subject,
    pub(crate) requests: usize,
    pub(crate) samples: Vec<Sample>,
    pub(crate) syscalls: Option<f64>,
}

impl Row {
    pub(crate) fn new(scenario: Scenario, subject: Subject, requests: usize) -> Row {
        Row { scenario, subject, requests, samples: Vec::new(), syscalls: None }
    }

    /// The median over the rounds of one measured value.
    pub(crate) fn median(&self, value: impl Fn(&Sample) -> f64) -> f64 {
        median(self.samples.iter().map(value).collect()).unwrap_or(f64::NAN)
    }

    /// The same for a value that not every subject has.
    pub(crate) fn median_of(&self, value: impl Fn(&Sample) -> Option<f64>) -> Option<f64> {
        median(self.samples.iter().filter_map(value).collect())
    }

    pub(crate) fn to_json(&self) -> Value {
        let all = |value: &dyn Fn(&Sample) -> Option<f64>| self.samples.iter().map(value).collect::<Vec<_>>();
        json!({
            "scenario": self.scenario.to_string(),
            "subject": self.subject.to_string(),
            "requests_per_run": self.requests,
            "median": {
                "requests_per_second": self.median(|sample| sample.requests_per_second),
                "p50_ms": self.median(|sample| sample.p50_ms),
                "p99_ms": self.median(|sample| sample.p99_ms),
                "proxy_us_per_request": self.median_of(|sample| sample.proxy_us),
                "servers_us_per_request": self.median_of(|sample| sample.nodes_us),
                "commands_per_server_read": self.median_of(|sample| sample.commands_per_read),
                "peak_resident_bytes": self.median(|sample| sample.peak_resident_bytes as f64),
            },
            "syscalls_per_request": self.syscalls,
            "runs": {
                "requests_per_second": all(&|sample| Some(sample.requests_per_second)),
                "p50_ms": all(&|sample| Some(sample.p50_ms)),
                "p99_ms": all(&|sample| Some(sample.p99_ms)),
                "proxy_us_per_request": all(&|sample| sample.proxy_us),
                "servers_us_per_request": all(&|sample| sample.nodes_us),
                "commands_per_server_read": all(&|sample| sample.commands_per_read),
                "peak_resident_bytes": all(&|sample| Some(sample.peak_resident_bytes as f64)),
            },
        })
    }
}

/// The middle value, or the mean of the two middle ones.
pub(crate) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    let lower = values[(values.len() - 1) / 2];
    Some(f64::midpoint(lower, upper))
}

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

/// What the numbers depend on.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median(vec![]), None);
        assert_eq!(median(vec![3.0]), Some(3.0));
        assert_eq!(median(vec![3.0, 1.0]), Some(2.0));
        assert_eq!(median(vec![9.0, 1.0, 2.0]), Some(2.0));
    }
}
