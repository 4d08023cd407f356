//! Metrics: counters of all workers, summed and written as OpenMetrics text when they are asked for.
//!
//! Every worker counts in its own memory without a lock. A [`Source`] hands over what the workers counted; samples of the
//! same family with the same labels are added up here, at the scrape.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

/// A metric: what is counted, whatever the labels.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Family {
    /// Its name, without `respool_` in front and without `_total` behind; a unit (`_bytes`, `_seconds`) comes last.
    pub name: &'static str,
    /// One sentence.
    pub help: &'static str,
}

/// Names and values of labels, sorted by name so that equal ones are equal.
pub type Labels = Vec<(&'static str, String)>;

/// One reading of one metric by one worker.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// What was counted.
    pub family: &'static Family,
    /// Of what; empty for the whole process.
    pub labels: Labels,
    /// How many.
    pub reading: Reading,
}

/// What a counter showed.
#[derive(Debug, Clone, PartialEq)]
pub enum Reading {
    /// Only grows.
    Counter(u64),
    /// Goes up and down.
    Gauge(i64),
    /// How often each range of values occurred.
    Histogram(Histogram),
}

/// A histogram: the number of values up to each bound (and above the bound before it), with their sum.
#[derive(Debug, Clone, PartialEq)]
pub struct Histogram {
    /// Sum of all values.
    pub sum: f64,
    /// Upper bounds, ascending, each with the number of values in its range; the last bound is infinite.
    pub buckets: Vec<(f64, u64)>,
}

/// Something that counts.
pub trait Source: Send + Sync {
    /// What was counted so far, by every worker. Called from the HTTP thread.
    fn snapshot(&self) -> Vec<Sample>;
}

impl<F: Fn() -> Vec<Sample> + Send + Sync> Source for F {
    fn snapshot(&self) -> Vec<Sample> {
        self()
    }
}

/// Everything that is measured in this process; clones are the same.
#[derive(Clone, Default)]
pub struct Metrics {
    sources: Arc<Mutex<Vec<Arc<dyn Source>>>>,
}

impl Metrics {
    /// Adds a source.
    pub fn observe(&self, source: impl Source + 'static) {
        self.sources.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::new(source));
    }

    /// What all sources counted, added up, by family and labels.
    #[must_use]
    pub fn sums(&self) -> Vec<Sample> {
        let sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut sums: BTreeMap<(&'static Family, Labels), Reading> = BTreeMap::new();
        for mut sample in sources.iter().flat_map(|source| source.snapshot()) {
            sample.labels.sort();
            match sums.entry((sample.family, sample.labels)) {
                Entry::Vacant(entry) => drop(entry.insert(sample.reading)),
                Entry::Occupied(mut entry) => entry.get_mut().add(sample.reading),
            }
        }
        sums.into_iter().map(|((family, labels), reading)| Sample { family, labels, reading }).collect()
    }

    /// OpenMetrics text.
    ///
    /// # Errors
    /// A sample that cannot be written, such as a family without a reading.
    pub fn openmetrics(&self) -> Result<String, fmt::Error> {
        let mut registry = Registry::with_prefix("respool");
        registry.register_collector(Box::new(self.clone()));
        let mut out = String::new();
        text::encode(&mut out, &registry)?;
        Ok(out)
    }
}

/// The content type of [`Metrics::openmetrics`].
pub const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl Reading {
    fn add(&mut self, other: Self) {
        match (self, other) {
            (Self::Counter(sum), Self::Counter(more)) => *sum = sum.wrapping_add(more),
            (Self::Gauge(sum), Self::Gauge(more)) => *sum = sum.wrapping_add(more),
            (Self::Histogram(sum), Self::Histogram(more)) => sum.add(&more),
            (_, other) => debug_assert!(false, "{other:?} is of another kind than its family"),
        }
    }

    fn kind(&self) -> MetricType {
        match self {
            Self::Counter(_) => MetricType::Counter,
            Self::Gauge(_) => MetricType::Gauge,
            Self::Histogram(_) => MetricType::Histogram,
        }
    }

    fn encode(&self, encoder: &mut MetricEncoder<'_>) -> fmt::Result {
        match self {
            Self::Counter(count) => encoder.encode_counter::<NoLabelSet, _, u64>(count, None),
            Self::Gauge(value) => encoder.encode_gauge(value),
            Self::Histogram(histogram) => {
                let count = histogram.buckets.iter().map(|(_, count)| count).sum();
                encoder.encode_histogram::<NoLabelSet>(histogram.sum, count, &histogram.buckets, None)
            }
        }
    }
}

impl Histogram {
    /// Adds the counts of a histogram with the same bounds.
    fn add(&mut self, more: &Self) {
        debug_assert!(self.buckets.iter().map(|b| b.0).eq(more.buckets.iter().map(|b| b.0)), "bounds are a family's");
        self.sum += more.sum;
        for ((_, sum), (_, more)) in self.buckets.iter_mut().zip(&more.buckets) {
            *sum = sum.wrapping_add(*more);
        }
    }
}

impl Collector for Metrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for samples in self.sums().chunk_by(|a, b| a.family == b.family) {
            let Family { name, help } = samples[0].family;
            let mut family = encoder.encode_descriptor(name, help, None, samples[0].reading.kind())?;
            for sample in samples {
                match &sample.labels[..] {
                    [] => sample.reading.encode(&mut family)?,
                    _ => sample.reading.encode(&mut family.encode_family(&sample.labels)?)?,
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static REQUESTS: Family = Family { name: "requests", help: "Requests that clients sent." };
    static CLIENTS: Family = Family { name: "clients", help: "Clients connected." };
    static LATENCY: Family = Family { name: "latency_seconds", help: "Time to the reply." };

    fn sample(family: &'static Family, node: &str, reading: Reading) -> Sample {
        let labels = if node.is_empty() { vec![] } else { vec![("node", node.to_owned()), ("kind", "x".to_owned())] };
        Sample { family, labels, reading }
    }

    #[test]
    fn what_the_workers_counted_is_added_up() {
        let metrics = Metrics::default();
        let worker = |requests: u64, clients: i64| {
            let histogram = Histogram { sum: 0.5, buckets: vec![(0.1, requests), (f64::INFINITY, 1)] };
            move || {
                vec![
                    sample(&REQUESTS, "a", Reading::Counter(requests)),
                    sample(&CLIENTS, "", Reading::Gauge(clients)),
                    sample(&LATENCY, "", Reading::Histogram(histogram.clone())),
                ]
            }
        };
        metrics.observe(worker(2, 5));
        metrics.observe(worker(40, -1));
        metrics.observe(|| vec![sample(&REQUESTS, "b", Reading::Counter(1))]);
        let expected = "\
# HELP respool_clients Clients connected.
# TYPE respool_clients gauge
respool_clients 4
# HELP respool_latency_seconds Time to the reply.
# TYPE respool_latency_seconds histogram
respool_latency_seconds_sum 1.0
respool_latency_seconds_count 44
respool_latency_seconds_bucket{le=\"0.1\"} 42
respool_latency_seconds_bucket{le=\"+Inf\"} 44
# HELP respool_requests Requests that clients sent.
# TYPE respool_requests counter
respool_requests_total{kind=\"x\",node=\"a\"} 42
respool_requests_total{kind=\"x\",node=\"b\"} 1
# EOF
";
        assert_eq!(metrics.openmetrics().unwrap(), expected);
    }

    #[test]
    fn a_label_cannot_break_out_of_its_quotes() {
        let metrics = Metrics::default();
        metrics.observe(|| vec![sample(&REQUESTS, "a\"} 1\nevil 1", Reading::Counter(1))]);
        let text = metrics.openmetrics().unwrap();
        assert!(!text.lines().any(|line| line.starts_with("evil")), "{text}");
    }
}
