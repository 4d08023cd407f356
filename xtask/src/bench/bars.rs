//! The bars: what Respool has to reach, and what it reached in this run.

use std::fmt;

use serde_json::{Value, json};

use super::extras::Extras;
use super::row::Row;
use super::scenario::{BASE, Cores, Keys, Scenario, Subject, Work, mset};

/// One line of the table of bars.
pub(crate) struct Bar {
    name: String,
    wanted: Wanted,
    unit: &'static str,
    /// `None` when a row that it needs was not measured; such bars are not shown.
    reached: Option<f64>,
}

enum Wanted {
    AtMost(f64),
    AtLeast(f64),
}

impl Bar {
    fn is_reached(&self) -> Option<bool> {
        self.reached.map(|reached| match self.wanted {
            Wanted::AtMost(limit) => reached <= limit,
            Wanted::AtLeast(limit) => reached >= limit,
        })
    }

    pub(crate) fn is_short(&self) -> bool {
        self.is_reached() == Some(false)
    }

    pub(crate) fn to_json(&self) -> Value {
        let (limit, sense) = match self.wanted {
            Wanted::AtMost(limit) => (limit, "at most"),
            Wanted::AtLeast(limit) => (limit, "at least"),
        };
        json!({
            "bar": self.name, "sense": sense, "limit": limit, "unit": self.unit, "reached": self.reached,
            "ok": self.is_reached(),
        })
    }
}

impl fmt::Display for Bar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wanted = match self.wanted {
            Wanted::AtMost(limit) => format!("<= {limit} {}", self.unit),
            Wanted::AtLeast(limit) => format!(">= {limit} {}", self.unit),
        };
        let reached = self.reached.map_or("-".to_owned(), |reached| format!("{reached:.3}"));
        let verdict = match self.is_reached() {
            Some(true) => "ok",
            Some(false) => "SHORT",
            None => "",
        };
        write!(f, "{:<72} | {wanted:>16} | {reached:>12} | {verdict}", self.name)
    }
}

/// Compares rows by their medians. Bars none of whose rows were measured are left out.
pub(crate) fn judge(rows: &[Row], extras: &Extras) -> Vec<Bar> {
    let mut bars = Vec::new();
    for cores in [Cores::One, Cores::Own] {
        bars.extend(one_node(rows, cores));
        bars.extend(four_nodes(rows, cores));
        bars.extend(embedded(rows, cores));
    }
    bars.extend(from_extras(extras));
    bars.extend(beside_baseline(rows));
    bars.retain(|bar| bar.reached.is_some());
    bars
}

fn one_node(rows: &[Row], cores: Cores) -> Vec<Bar> {
    let mut bars = Vec::new();
    let limits = if cores == Cores::One { [0.70, 0.25, 0.05] } else { [0.80, 0.50, 0.10] };
    for work in [Work::Get, Work::Set] {
        for (pipeline, limit) in [1, 10, 100].into_iter().zip(limits) {
            let pair = Pair { rows, scenario: Scenario { work, pipeline, cores, ..BASE } };
            bars.push(Bar {
                name: format!("proxy CPU per request, {}", pair.scenario),
                wanted: Wanted::AtMost(limit),
                unit: "x twemproxy",
                reached: pair.ratio(Subject::Respool, Subject::Twemproxy, Row::proxy_us),
            });
        }
    }
    let limit = if cores == Cores::One { 0.40 } else { 0.70 };
    for work in [Work::Get, Work::Set] {
        let pair = Pair { rows, scenario: Scenario { work, cores, ..BASE } };
        bars.push(Bar {
            name: format!("redis-server CPU per request, {}", pair.scenario),
            wanted: Wanted::AtMost(limit),
            unit: "x direct",
            reached: pair.ratio(Subject::Respool, Subject::Direct, Row::nodes_us),
        });
    }
    bars
}

fn four_nodes(rows: &[Row], cores: Cores) -> Vec<Bar> {
    let mut bars = Vec::new();
    let spread = Scenario { nodes: 4, keys: Keys::Spread, cores, ..BASE };
    let throughput = |scenario: Scenario, limit: f64| {
        let pair = Pair { rows, scenario };
        let direct = pair.ratio(Subject::Respool, Subject::Direct, Row::throughput);
        let direct = direct.map_or(String::new(), |ratio| format!(" ({ratio:.2} x direct)"));
        Bar {
            name: format!("throughput, {}{direct}", pair.scenario),
            wanted: Wanted::AtLeast(limit),
            unit: "x twemproxy",
            reached: pair.ratio(Subject::Respool, Subject::Twemproxy, Row::throughput),
        }
    };
    for work in [Work::Get, Work::Set] {
        for (pipeline, limit) in [(10, 1.3), (100, 4.0)] {
            bars.push(throughput(Scenario { work, pipeline, ..spread.clone() }, limit));
        }
    }
    for pipeline in [1, 10, 100, 1000] {
        bars.push(throughput(mset(pipeline, cores), 1.3));
    }
    let scenario = Scenario { work: Work::Set, clients: 1, pipeline: 10, ..spread };
    let row = find(rows, &scenario, Subject::Respool);
    bars.push(Bar {
        name: format!("p50 of a pipeline, {scenario}"),
        wanted: Wanted::AtMost(1.0),
        unit: "ms",
        reached: row.map(|row| row.median(|sample| sample.p50_ms)),
    });
    bars
}

fn embedded(rows: &[Row], cores: Cores) -> Vec<Bar> {
    let mut bars = Vec::new();
    for work in [Work::Get, Work::Set] {
        for pipeline in [1, 100] {
            let scenario = Scenario { work, pipeline, cores, is_embedded: true, ..BASE };
            let own = find(rows, &scenario, Subject::Embedded).and_then(Row::proxy_us);
            let redis = find(rows, &scenario, Subject::Direct).and_then(Row::nodes_us);
            bars.push(Bar {
                name: format!("server CPU per request, {scenario}"),
                wanted: Wanted::AtMost(1.0),
                unit: "x redis-server",
                reached: own.zip(redis).map(|(own, redis)| own / redis),
            });
        }
    }
    bars
}

fn from_extras(extras: &Extras) -> Vec<Bar> {
    let mut bars = Vec::new();
    for cores in [Cores::One, Cores::Own] {
        let time = |wanted: Subject| {
            let mut all = extras.lone_client.iter();
            all.find(|(on, subject, _)| *on == cores && *subject == wanted).map(|(.., time)| time.as_secs_f64())
        };
        bars.push(Bar {
            name: format!("p50 of a lone client, {cores:?} core"),
            wanted: Wanted::AtMost(2.2),
            unit: "x direct",
            reached: time(Subject::Respool).zip(time(Subject::Direct)).map(|(respool, direct)| respool / direct),
        });
    }
    for subject in [Subject::Respool, Subject::Embedded] {
        let idle = extras.idle_client_bytes.iter().find(|(other, _)| *other == subject);
        bars.push(Bar {
            name: format!("memory of an idle client at 10,000, {subject}"),
            wanted: Wanted::AtMost(2048.0),
            unit: "bytes",
            reached: idle.map(|(_, bytes)| *bytes),
        });
    }
    let peak = extras.sharding_peak_bytes.iter().find(|(subject, _)| *subject == Subject::Respool);
    bars.push(Bar {
        name: "peak memory through the redis-sharding table (c10, P1 to P1000)".into(),
        wanted: Wanted::AtMost(20.0),
        unit: "MB",
        reached: peak.map(|(_, bytes)| *bytes as f64 / 1e6),
    });
    bars
}

/// Every row that the baseline has too: not more than three per cent below it.
fn beside_baseline(rows: &[Row]) -> Vec<Bar> {
    let pairs = rows.iter().filter(|row| row.subject == Subject::Respool);
    let pairs = pairs.map(|row| Pair { rows, scenario: row.scenario.clone() });
    pairs
        .map(|pair| {
            let cost = pair.ratio(Subject::Respool, Subject::Baseline, Row::proxy_us);
            let cost = cost.map_or(String::new(), |ratio| format!(" ({ratio:.2} x its CPU)"));
            Bar {
                name: format!("throughput, {}{cost}", pair.scenario),
                wanted: Wanted::AtLeast(0.97),
                unit: "x baseline",
                reached: pair.ratio(Subject::Respool, Subject::Baseline, Row::throughput),
            }
        })
        .collect()
}

/// Two subjects of one scenario.
struct Pair<'a> {
    rows: &'a [Row],
    scenario: Scenario,
}

impl Pair<'_> {
    fn ratio(&self, of: Subject, to: Subject, value: impl Fn(&Row) -> Option<f64>) -> Option<f64> {
        let of = find(self.rows, &self.scenario, of).and_then(&value)?;
        let to = find(self.rows, &self.scenario, to).and_then(&value)?;
        Some(of / to)
    }
}

fn find<'a>(rows: &'a [Row], scenario: &Scenario, subject: Subject) -> Option<&'a Row> {
    rows.iter().find(|row| row.scenario == *scenario && row.subject == subject)
}

impl Row {
    fn proxy_us(&self) -> Option<f64> {
        self.median_of(|sample| sample.proxy_us)
    }

    fn nodes_us(&self) -> Option<f64> {
        self.median_of(|sample| sample.nodes_us)
    }

    fn throughput(&self) -> Option<f64> {
        self.median_of(|sample| Some(sample.requests_per_second))
    }
}
