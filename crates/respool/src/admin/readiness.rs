//! Whether the process can serve, as far as its nodes go: what `/readyz` tells, and what a successor waits for.

use super::metrics::{Reading, Sample};

/// Whether enough nodes are reached, and that in words, with the names of those that are not. Drained nodes do not count.
pub(crate) fn about_nodes(sums: &[Sample], percent: Option<u32>) -> (bool, String) {
    let named = |name: &'static str| sums.iter().filter(move |sample| sample.family.name == name);
    let drained = named("node_drained").filter(|sample| sample.reading == Reading::Gauge(1));
    let drained: Vec<_> = drained.map(|sample| &sample.labels).collect();
    let nodes: Vec<&Sample> = named("node_up").filter(|sample| !drained.contains(&&sample.labels)).collect();
    let missed: Vec<&&Sample> = nodes.iter().filter(|sample| sample.reading == Reading::Gauge(0)).collect();
    let reached = nodes.len() - missed.len();
    let wanted = (nodes.len() * percent.unwrap_or(0) as usize).div_ceil(100);
    let is_ready = reached >= wanted;
    let mut text = if is_ready {
        "ready\n".to_owned()
    } else {
        format!("too few nodes: {reached} of {} are reached, {wanted} are needed\n", nodes.len())
    };
    for missed in missed {
        let label = |name: &str| missed.labels.iter().find(|(label, _)| *label == name).map(|(_, value)| value);
        let of = label("pool").map_or_else(String::new, |pool| format!(" of {pool}"));
        text.push_str(&format!("{}{of} is not reached\n", label("node").map_or("", String::as_str)));
    }
    (is_ready, text)
}
