//! The file of results: written after every row, and what a run that was broken off goes on from.
//!
//! A file belongs to one set of conditions (binary, machine, rounds ...). Numbers of others are not added to it, because
//! rows of one file are compared with each other.

use std::path::{Path, PathBuf};
use std::{fmt, io};

use serde_json::{Map, Value, json};

use super::bars::{self, Bar};
use super::extras::Extras;
use super::row::Row;
use super::scenario::Scenario;

/// What was measured so far, and where it is kept.
pub(crate) struct Results {
    path: PathBuf,
    conditions: Conditions,
    /// Where the binary is from, in words.
    pub(crate) build: String,
    pub(crate) rows: Vec<Row>,
    pub(crate) extras: Extras,
    failures: Vec<Failure>,
    /// Whether everything that the last run was to measure was tried.
    pub(crate) is_complete: bool,
}

/// What has to be the same for all rows of a file, by name.
pub(crate) type Conditions = Map<String, Value>;

/// What could not be measured, and why.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Failure {
    /// The row, or the extra measurement.
    pub(crate) name: String,
    /// Who failed, if it was one of several.
    pub(crate) subject: Option<String>,
    pub(crate) error: String,
}

impl Results {
    pub(crate) fn new(path: PathBuf, conditions: Conditions) -> Results {
        let (rows, extras, failures) = (Vec::new(), Extras::default(), Vec::new());
        Results { path, conditions, build: String::new(), rows, extras, failures, is_complete: false }
    }

    /// Reads a file of the same conditions, so that more can be added to it.
    pub(crate) fn resume(path: PathBuf, conditions: Conditions, scenarios: &[Scenario]) -> io::Result<Results> {
        let refuse = |why: String| io::Error::other(format!("cannot go on with {}: {why}", path.display()));
        let json = read(&path).map_err(|error| refuse(error.to_string()))?;
        for (name, now) in &conditions {
            let then = &json["conditions"][name];
            if then != now {
                return Err(refuse(format!("its {name} is {then}, and now it is {now}")));
            }
        }
        let mut results = Results::new(path.clone(), conditions);
        for row in json["rows"].as_array().into_iter().flatten() {
            let known = Row::from_json(row, scenarios);
            results.rows.push(known.ok_or_else(|| refuse(format!("this version has no row {}", row["scenario"])))?);
        }
        results.extras =
            Extras::from_json(&json["extras"]).ok_or_else(|| refuse("its extras are unreadable".into()))?;
        results.failures = json["failures"].as_array().into_iter().flatten().filter_map(Failure::from_json).collect();
        Ok(results)
    }

    /// Whether a run that was broken off left this file: it should not be lost by accident.
    pub(crate) fn is_broken_off(path: &Path) -> bool {
        read(path).is_ok_and(|json| json["is_complete"] == false)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// What could not be measured of the last runs.
    pub(crate) fn failures(&self) -> &[Failure] {
        &self.failures
    }

    pub(crate) fn fail(&mut self, failure: Failure) {
        self.failures.push(failure);
    }

    /// Drops what is known of a row, or says that a measurement is tried again.
    pub(crate) fn forget(&mut self, name: &str) {
        self.rows.retain(|row| row.scenario.to_string() != name);
        self.failures.retain(|failure| failure.name != name);
    }

    pub(crate) fn bars(&self) -> Vec<Bar> {
        bars::judge(&self.rows, &self.extras)
    }

    /// Puts all of it into the file at once: a reader sees the old or the new content.
    pub(crate) fn save(&self) -> io::Result<()> {
        let text = serde_json::to_string_pretty(&self.to_json())? + "\n";
        if let Some(directory) = self.path.parent() {
            std::fs::create_dir_all(directory)?;
        }
        let mut unfinished = self.path.clone().into_os_string();
        unfinished.push(".unfinished");
        std::fs::write(&unfinished, text)?;
        std::fs::rename(&unfinished, &self.path)
    }

    fn to_json(&self) -> Value {
        json!({
            "conditions": self.conditions,
            "respool": self.build,
            "is_complete": self.is_complete,
            "rows": self.rows.iter().map(Row::to_json).collect::<Vec<_>>(),
            "extras": self.extras.to_json(),
            "failures": self.failures.iter().map(Failure::to_json).collect::<Vec<_>>(),
            "bars": self.bars().iter().map(Bar::to_json).collect::<Vec<_>>(),
        })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let subject = self.subject.as_ref().map_or(String::new(), |subject| format!(" {subject}"));
        let error = self.error.lines().filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" / ");
        write!(f, "{}{subject}: NOT MEASURED: {error}", self.name)
    }
}

impl Failure {
    fn to_json(&self) -> Value {
        json!({ "row": self.name, "subject": self.subject, "error": self.error })
    }

    fn from_json(json: &Value) -> Option<Failure> {
        Some(Failure {
            name: json["row"].as_str()?.to_owned(),
            subject: json["subject"].as_str().map(str::to_owned),
            error: json["error"].as_str()?.to_owned(),
        })
    }
}

fn read(path: &Path) -> io::Result<Value> {
    Ok(serde_json::from_str(&std::fs::read_to_string(path)?)?)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use respool_testkit::TempDir;

    use super::super::load::Sample;
    use super::super::scenario::{BASE, Cores, Subject};
    use super::*;

    fn conditions(rounds: u64) -> Conditions {
        let json = json!({ "binary": "abc", "rounds": rounds, "machine": { "cores": 2 } });
        json.as_object().cloned().unwrap()
    }

    fn row() -> Row {
        let sample = Sample {
            requests_per_second: 1e5,
            p50_ms: 0.5,
            p99_ms: 1.0,
            proxy_us: None,
            nodes_us: Some(2.5),
            commands_per_read: Some(1.0),
            peak_resident_bytes: 1,
        };
        Row { samples: vec![sample], measured_at_unix_s: 77, ..Row::new(BASE, Subject::Direct, 10) }
    }

    #[test]
    fn a_run_goes_on_where_it_was_broken_off() {
        let directory = TempDir::new().unwrap();
        let path = directory.join("deep/results.json");
        let mut results = Results::new(path.clone(), conditions(5));
        results.rows.push(row());
        results.extras.lone_client.push((Cores::One, Subject::Direct, Duration::from_micros(9)));
        let failure = Failure { name: "n4 GET".into(), subject: Some("respool".into()), error: "it ended".into() };
        results.fail(failure.clone());
        results.save().unwrap();
        assert!(Results::is_broken_off(&path));

        let mut again = Results::resume(path.clone(), conditions(5), &[BASE]).unwrap();
        assert_eq!(again.rows, [row()], "with the time at which it was measured");
        assert_eq!(again.extras, results.extras);
        assert_eq!(again.failures(), [failure]);
        again.forget("n4 GET");
        assert_eq!(again.failures(), []);
        again.forget(&BASE.to_string());
        assert_eq!(again.rows, []);
        again.is_complete = true;
        again.save().unwrap();
        assert!(!Results::is_broken_off(&path));
        let names: Vec<_> =
            std::fs::read_dir(path.parent().unwrap()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(names, ["results.json"], "nothing unfinished is left");
    }

    #[test]
    fn numbers_of_other_conditions_are_not_added() {
        let directory = TempDir::new().unwrap();
        let path = directory.join("results.json");
        let mut results = Results::new(path.clone(), conditions(5));
        results.rows.push(row());
        results.save().unwrap();
        let refusal = |conditions, scenarios: &[Scenario]| {
            Results::resume(path.clone(), conditions, scenarios).err().unwrap().to_string()
        };
        let other_rounds = refusal(conditions(3), &[BASE]);
        assert!(other_rounds.ends_with("its rounds is 5, and now it is 3"), "{other_rounds}");
        let unknown_row = refusal(conditions(5), &[]);
        assert!(unknown_row.contains("no row \"n1 GET"), "{unknown_row}");
        std::fs::write(&path, "{ \"rows\": [").unwrap();
        assert!(refusal(conditions(5), &[BASE]).contains("EOF"));
        // What earlier versions wrote has no conditions.
        std::fs::write(&path, "{ \"rows\": [] }").unwrap();
        assert!(refusal(conditions(5), &[BASE]).contains("its binary is null"));
    }
}
