//! What was measured: for each scenario and client one sample a round.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// The figures of one run, by name.
pub(crate) type Sample = BTreeMap<String, f64>;

#[derive(Debug, Default)]
pub(crate) struct Samples {
    all: BTreeMap<(String, String), Vec<Sample>>,
    pub(crate) failures: Vec<String>,
}

impl Samples {
    pub(crate) fn add(&mut self, scenario: &str, peer: &str, sample: Sample) {
        self.all.entry((scenario.to_owned(), peer.to_owned())).or_default().push(sample);
    }

    pub(crate) fn fail(&mut self, scenario: &str, peer: &str, error: &dyn std::fmt::Display) {
        let failure = format!("{scenario}, {peer}: {error}");
        println!("{failure}");
        self.failures.push(failure);
    }

    /// What all rounds have found, in order of size.
    fn figures(&self, scenario: &str, peer: &str, figure: &str) -> Vec<f64> {
        let samples = self.all.get(&(scenario.to_owned(), peer.to_owned()));
        let mut found: Vec<f64> = samples.into_iter().flatten().filter_map(|s| s.get(figure)).copied().collect();
        found.sort_by(f64::total_cmp);
        found
    }

    pub(crate) fn median(&self, scenario: &str, peer: &str, figure: &str) -> Option<f64> {
        let found = self.figures(scenario, peer, figure);
        found.get(found.len() / 2).copied()
    }

    /// The lowest and the highest.
    pub(crate) fn range(&self, scenario: &str, peer: &str, figure: &str) -> Option<(f64, f64)> {
        let found = self.figures(scenario, peer, figure);
        Some((*found.first()?, *found.last()?))
    }

    /// What was measured.
    pub(crate) fn scenarios(&self) -> impl Iterator<Item = &String> {
        self.all.keys().map(|(scenario, _)| scenario)
    }

    /// The names of a client's figures.
    pub(crate) fn names<'s>(&'s self, scenario: &str, peer: &str) -> impl Iterator<Item = &'s str> {
        let samples = self.all.get(&(scenario.to_owned(), peer.to_owned()));
        samples.and_then(|samples| samples.first()).into_iter().flatten().map(|(name, _)| name.as_str())
    }

    /// The clients that have been measured in a scenario.
    pub(crate) fn peers<'s>(&'s self, scenario: &'s str) -> impl Iterator<Item = &'s str> {
        self.all.keys().filter(move |(of, _)| of == scenario).map(|(_, peer)| peer.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        let all = self
            .all
            .iter()
            .map(|((scenario, peer), rounds)| json!({ "scenario": scenario, "client": peer, "rounds": rounds }));
        all.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_and_range_are_of_all_rounds() {
        let mut samples = Samples::default();
        for figure in [3.0, 1.0, 2.0] {
            samples.add("closed", "one", Sample::from([("ops_s".to_owned(), figure)]));
        }
        assert_eq!(samples.median("closed", "one", "ops_s"), Some(2.0));
        assert_eq!(samples.range("closed", "one", "ops_s"), Some((1.0, 3.0)));
        assert_eq!(samples.median("closed", "other", "ops_s"), None);
        assert_eq!(samples.peers("closed").collect::<Vec<_>>(), ["one"]);
    }
}
