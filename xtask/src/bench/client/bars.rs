//! What this project's client is to reach, beside what it has.

use std::fmt;

use super::OURS;
use super::samples::Samples;

/// The clients in Rust that it is compared with for its use of the processor: they have the same runtime.
const IN_RUST: [&str; 5] = ["redis", "redis-rc", "fred", "rustis", "valkey-glide"];

/// Of the callers of a cluster, those of the shard whose primary is killed.
const CALLERS_OF_KILLED: u32 = 126 / 3;

/// Something to reach.
#[derive(Debug)]
pub(crate) struct Bar {
    pub(crate) what: String,
    pub(crate) wanted: String,
    pub(crate) reached: String,
    pub(crate) is_reached: bool,
}

impl fmt::Display for Bar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = if self.is_reached { "" } else { " SHORT" };
        write!(f, "{:<58} | {:>22} | {:>28}{mark}", self.what, self.wanted, self.reached)
    }
}

#[derive(Clone, Copy)]
enum Order {
    AtMost,
    AtLeast,
}

/// The bars that can be judged by what was measured.
pub(crate) fn bars(samples: &Samples) -> Vec<Bar> {
    let mut bars = Vec::new();
    let mut add = |scenario: &str, peer: &str, figure: &str, what: &str, order: Order, limit: Option<f64>| {
        let (Some(limit), Some(median)) = (limit, samples.median(scenario, peer, figure)) else { return };
        let (low, high) = samples.range(scenario, peer, figure).unwrap_or((median, median));
        let (sign, is_reached) = match order {
            Order::AtMost => ("<=", median <= limit),
            Order::AtLeast => (">=", median >= limit),
        };
        bars.push(Bar {
            what: format!("{peer}: {what}"),
            wanted: format!("{sign} {}", short(limit)),
            reached: format!("{} ({} to {})", short(median), short(low), short(high)),
            is_reached,
        });
    };
    for peer in OURS {
        add("serial", peer, "to_raw", "one GET to a raw socket's, p50", Order::AtMost, Some(1.05));
        add("serial", peer, "set_to_raw", "one SET to a raw socket's GET, p50", Order::AtMost, Some(1.05));
        add("serial", peer, "after_to_before", "that after 1,000 callers to that before", Order::AtMost, Some(1.05));
        add("serial", peer, "allocations", "allocations of a GET", Order::AtMost, Some(1.0));
        add("serial", peer, "set_allocations", "allocations of a SET", Order::AtMost, Some(0.0));
    }
    // A pair takes 14 us in one process and 60 in the next, by how deep the processor sleeps: each has its own beside it.
    let quickest = best(samples, "serial", "to_raw", &[], f64::min);
    for peer in OURS {
        add("serial", peer, "to_raw", "one GET to a raw socket's, to the best other's", Order::AtMost, quickest);
    }
    let ours = OURS[0];
    for (scenario, batch) in [("closed-128", 24.0), ("closed-1000", 100.0)] {
        let fastest = best(samples, scenario, "ops_s", &[], f64::max);
        add(scenario, ours, "ops_s", &format!("ops/s to the best other, {scenario}"), Order::AtLeast, fastest);
        let leanest = best(samples, scenario, "cpu_us", &IN_RUST, f64::min).map(|cpu_us| cpu_us * 0.8);
        let what = format!("CPU us/op to 0.8 of the best in Rust, {scenario}");
        add(scenario, ours, "cpu_us", &what, Order::AtMost, leanest);
        let what = format!("commands per server read, {scenario}");
        add(scenario, ours, "commands_per_read", &what, Order::AtLeast, Some(batch));
    }
    for scenario in ["batch-10", "batch-100"] {
        let fastest = best(samples, scenario, "ops_s", &[], f64::max);
        add(scenario, ours, "ops_s", &format!("requests/s to the best other, {scenario}"), Order::AtLeast, fastest);
    }
    for scenario in ["open", "open-half"] {
        for figure in ["p99_us", "p999_us"] {
            let quickest = best(samples, scenario, figure, &[], f64::min);
            add(
                scenario,
                ours,
                figure,
                &format!("{scenario} loop, {figure} to the best other"),
                Order::AtMost,
                quickest,
            );
        }
    }
    let twice = samples.median("big", ours, "alone_p99_us").map(|alone| alone * 2.0);
    add("big", ours, "p99_us", "small GETs beside 8 MiB, p99 us to twice that alone", Order::AtMost, twice);
    for peer in OURS {
        for scenario in ["cancel", "restart", "restart-1000"] {
            for figure in ["wrong", "untrue", "repeated", "taken"] {
                add(scenario, peer, figure, &format!("{scenario}: {figure}"), Order::AtMost, Some(0.0));
            }
        }
        for scenario in ["cluster-kill", "cluster-move"] {
            let what = format!("{scenario}: other shards during to before");
            add(scenario, peer, "others_to_before", &what, Order::AtLeast, Some(0.95));
            for figure in ["wrong", "untrue", "repeated"] {
                add(scenario, peer, figure, &format!("{scenario}: {figure}"), Order::AtMost, Some(0.0));
            }
        }
        // One request of each caller was under way at the primary that is killed. What it had not copied is lost, whatever a client does.
        let callers = Some(f64::from(CALLERS_OF_KILLED));
        add("cluster-kill", peer, "maybe", "cluster-kill: in doubt, to callers of the shard", Order::AtMost, callers);
        add("cluster-kill", peer, "lost", "cluster-kill: acknowledged, not there after", Order::AtMost, Some(0.0));
        for figure in ["maybe", "not_sent", "unread", "lost"] {
            add("cluster-move", peer, figure, &format!("cluster-move: {figure}"), Order::AtMost, Some(0.0));
        }
        for scenario in
            ["serial", "closed-8", "closed-128", "closed-1000", "closed-10000", "open", "open-half", "open-60k", "big"]
        {
            add(scenario, peer, "wrong", &format!("{scenario}: wrong values"), Order::AtMost, Some(0.0));
        }
    }
    bars
}

/// The best median of the other clients, or of those that are named.
fn best(samples: &Samples, scenario: &str, figure: &str, of: &[&str], better: fn(f64, f64) -> f64) -> Option<f64> {
    let others = samples.peers(scenario).filter(|peer| !OURS.contains(peer) && (of.is_empty() || of.contains(peer)));
    others.filter_map(|peer| samples.median(scenario, peer, figure)).reduce(better)
}

/// Three digits or so.
pub(crate) fn short(figure: f64) -> String {
    match figure.abs() {
        0.0 => "0".to_owned(),
        size if size >= 100.0 => format!("{figure:.0}"),
        size if size >= 10.0 => format!("{figure:.1}"),
        _ => format!("{figure:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::Sample;
    use super::*;

    #[test]
    fn a_bar_compares_with_the_best_other_client() {
        let mut samples = Samples::default();
        for (peer, cpu_us) in [("respool", 0.8), ("redis", 2.0), ("rustis", 0.9), ("rueidis", 0.1)] {
            samples.add("closed-128", peer, Sample::from([("cpu_us".to_owned(), cpu_us)]));
        }
        let bars = bars(&samples);
        let [bar] = &bars[..] else { panic!("{bars:?}") };
        assert_eq!((bar.wanted.as_str(), bar.is_reached), ("<= 0.720", false));
    }
}
