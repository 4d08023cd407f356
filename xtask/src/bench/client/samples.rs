//! What was measured: for each scenario and client one sample a round.

use std::collections::BTreeMap;
use std::io;

use serde_json::{Value, json};

/// The figures of one run, by name.
pub(crate) type Sample = BTreeMap<String, f64>;

#[derive(Debug, Default)]
pub(crate) struct Samples {
    all: BTreeMap<(String, String), Vec<Sample>>,
    /// How each scenario was measured.
    conditions: BTreeMap<String, Conditions>,
    pub(crate) failures: Vec<String>,
    /// What was found of clients that are missing.
    pub(crate) notes: Vec<String>,
}

/// How a scenario was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Conditions {
    pub(crate) rounds: u64,
    pub(crate) seconds: f64,
    /// The load of the machine at the end, the measurement's own included.
    pub(crate) load: f64,
}

impl Samples {
    pub(crate) fn note_conditions(&mut self, scenario: &str, conditions: Conditions) {
        self.conditions.insert(scenario.to_owned(), conditions);
    }

    pub(crate) fn conditions(&self, scenario: &str) -> Option<Conditions> {
        self.conditions.get(scenario).copied()
    }

    /// Takes scenarios from what an earlier run has written instead of what there is of them.
    pub(crate) fn take_from(&mut self, results: &Value, is_wanted: impl Fn(&str) -> bool) -> io::Result<()> {
        let unfit = |what: &str| io::Error::other(format!("results without {what}"));
        let samples = results["samples"].as_array().ok_or_else(|| unfit("samples"))?;
        let word = |of: &Value, name: &str| of[name].as_str().map(str::to_owned).ok_or_else(|| unfit(name));
        for of in samples {
            let (scenario, peer) = (word(of, "scenario")?, word(of, "client")?);
            if is_wanted(&scenario) {
                // Runs before scenarios had conditions of their own did all in one go.
                let own = [&results["conditions"][&scenario], results].into_iter().find(|own| own["rounds"].is_u64());
                let figure = |name: &str| own.and_then(|own| own[name].as_f64());
                let rounds: Vec<Sample> = serde_json::from_value(of["rounds"].clone())?;
                let conditions = Conditions {
                    rounds: figure("rounds").ok_or_else(|| unfit("rounds"))? as u64,
                    seconds: figure("seconds").ok_or_else(|| unfit("seconds"))?,
                    load: figure("load").unwrap_or(f64::NAN),
                };
                self.note_conditions(&scenario, conditions);
                self.all.insert((scenario, peer), rounds);
            }
        }
        Ok(())
    }

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

    pub(crate) fn json_of_conditions(&self) -> Value {
        let each = self.conditions.iter().map(|(scenario, conditions)| {
            let Conditions { rounds, seconds, load } = conditions;
            (scenario.clone(), json!({ "rounds": rounds, "seconds": seconds, "load": load }))
        });
        Value::Object(each.collect())
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

    #[test]
    fn what_was_written_is_taken_up_again() {
        let mut earlier = Samples::default();
        for (scenario, rounds) in [("closed", 2), ("open", 3)] {
            let sample = Sample::from([("ops_s".to_owned(), 1.0)]);
            (0..rounds).for_each(|_| earlier.add(scenario, "one", sample.clone()));
            earlier.note_conditions(scenario, Conditions { rounds, seconds: 0.5, load: 1.5 });
        }
        let written = json!({ "samples": earlier.json(), "conditions": earlier.json_of_conditions() });
        let mut samples = Samples::default();
        samples.take_from(&written, |scenario| scenario == "open").unwrap();
        assert_eq!(samples.conditions("open"), Some(Conditions { rounds: 3, seconds: 0.5, load: 1.5 }));
        assert_eq!(samples.median("open", "one", "ops_s"), Some(1.0));
        assert_eq!((samples.scenarios().count(), samples.conditions("closed")), (1, None));
        let of_old = json!({ "samples": earlier.json(), "rounds": 2, "seconds": 0.8 });
        samples.take_from(&of_old, |_| true).unwrap();
        assert_eq!(samples.conditions("closed").map(|of| (of.rounds, of.seconds)), Some((2, 0.8)));
        assert!(samples.take_from(&json!({}), |_| true).is_err());
    }
}
