//! The measurements of one subject in one scenario, and their medians.

use serde_json::{Value, json};

use super::load::Sample;
use super::scenario::{Scenario, Subject};

/// All measurements of one subject in one scenario.
#[derive(Debug, PartialEq)]
pub(crate) struct Row {
    pub(crate) scenario: Scenario,
    pub(crate) subject: Subject,
    pub(crate) requests: usize,
    pub(crate) samples: Vec<Sample>,
    pub(crate) syscalls: Option<f64>,
    /// When the last run ended, in seconds since 1970.
    pub(crate) measured_at_unix_s: u64,
}

impl Row {
    pub(crate) fn new(scenario: Scenario, subject: Subject, requests: usize) -> Row {
        Row { scenario, subject, requests, samples: Vec::new(), syscalls: None, measured_at_unix_s: 0 }
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
            "measured_at_unix_s": self.measured_at_unix_s,
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

impl Row {
    /// A row as a file has it, of one of these scenarios.
    pub(crate) fn from_json(json: &Value, scenarios: &[Scenario]) -> Option<Row> {
        let name = json["scenario"].as_str()?;
        let runs = &json["runs"];
        let column = |name: &str| runs[name].as_array().map(Vec::as_slice);
        let speeds = column("requests_per_second")?;
        let value = |name: &str, run: usize| column(name)?.get(run)?.as_f64();
        let sample = |run: usize| {
            Some(Sample {
                requests_per_second: value("requests_per_second", run)?,
                p50_ms: value("p50_ms", run)?,
                p99_ms: value("p99_ms", run)?,
                proxy_us: value("proxy_us_per_request", run),
                nodes_us: value("servers_us_per_request", run),
                commands_per_read: value("commands_per_server_read", run),
                peak_resident_bytes: value("peak_resident_bytes", run)? as u64,
            })
        };
        Some(Row {
            scenario: scenarios.iter().find(|scenario| scenario.to_string() == name)?.clone(),
            subject: json["subject"].as_str()?.parse().ok()?,
            requests: json["requests_per_run"].as_u64()? as usize,
            samples: (0..speeds.len()).map(sample).collect::<Option<_>>()?,
            syscalls: json["syscalls_per_request"].as_f64(),
            measured_at_unix_s: json["measured_at_unix_s"].as_u64()?,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::scenario::BASE;

    #[test]
    fn a_row_comes_back_from_the_file() {
        let sample = |requests_per_second| Sample {
            requests_per_second,
            p50_ms: 0.25,
            p99_ms: 1.5,
            proxy_us: Some(6.5),
            nodes_us: None,
            commands_per_read: Some(12.0),
            peak_resident_bytes: 14_000_000,
        };
        let row = Row {
            samples: vec![sample(1e6), sample(2e6)],
            syscalls: Some(0.5),
            measured_at_unix_s: 1_800_000_000,
            ..Row::new(BASE, Subject::Respool, 40_000)
        };
        let json: Value = serde_json::from_str(&row.to_json().to_string()).unwrap();
        assert_eq!(Row::from_json(&json, &[Scenario { pipeline: 10, ..BASE }, BASE]).as_ref(), Some(&row));
        assert_eq!(Row::from_json(&json, &[]), None);
    }

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median(vec![]), None);
        assert_eq!(median(vec![3.0]), Some(3.0));
        assert_eq!(median(vec![3.0, 1.0]), Some(2.0));
        assert_eq!(median(vec![9.0, 1.0, 2.0]), Some(2.0));
    }
}
