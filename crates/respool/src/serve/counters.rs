//! The proxy's counters as samples for `/metrics`.

use std::sync::{Arc, OnceLock};

use respool_proxy::Shared;
use respool_proxy::observe::{Counters, Kind};

use crate::admin::{Family, Reading, Sample};

/// One family per counter, in the counters' own order.
fn families() -> &'static [Family] {
    static FAMILIES: OnceLock<Vec<Family>> = OnceLock::new();
    FAMILIES.get_or_init(|| {
        let counters = Counters::default();
        counters.each().map(|(name, help, _, _)| Family { name, help }).collect()
    })
}

/// Reads the counters of every worker of one proxy. Those of several proxies are told apart by a label.
pub(super) fn source(shared: Arc<Shared>, name: &str, is_one_of_several: bool) -> impl Fn() -> Vec<Sample> + use<> {
    let labels = if is_one_of_several { vec![("pool", name.to_owned())] } else { Vec::new() };
    move || {
        let of_worker = |counters: &Arc<Counters>| {
            let figures = families().iter().zip(counters.each());
            let samples = figures.map(|(family, (_, _, kind, value))| {
                let reading = match kind {
                    Kind::Total => Reading::Counter(value),
                    Kind::Gauge => Reading::Gauge(i64::try_from(value).unwrap_or(i64::MAX)),
                };
                Sample { family, labels: labels.clone(), reading }
            });
            samples.collect::<Vec<_>>()
        };
        shared.counters.iter().flat_map(of_worker).collect()
    }
}
