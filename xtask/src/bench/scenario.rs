//! What is measured: one row of the table is a scenario and a subject.

use std::fmt;
use std::str::FromStr;

use respool_testkit::Transport;

/// Who answers the load generator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subject {
    /// One redis-server, no proxy (also in scenarios with four nodes: that is what a proxy has to stand up to).
    Direct,
    Twemproxy,
    Respool,
    /// Another Respool that the first is compared with, such as that of an earlier version.
    Baseline,
    /// Respool's own server, no node behind it.
    Embedded,
}

impl Subject {
    pub(crate) const ALL: [Subject; 5] =
        [Subject::Direct, Subject::Twemproxy, Subject::Respool, Subject::Baseline, Subject::Embedded];
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Subject::Direct => "direct",
            Subject::Twemproxy => "twemproxy",
            Subject::Respool => "respool",
            Subject::Baseline => "baseline",
            Subject::Embedded => "embedded",
        })
    }
}

impl FromStr for Subject {
    type Err = String;

    fn from_str(text: &str) -> Result<Subject, String> {
        Subject::ALL
            .into_iter()
            .find(|subject| subject.to_string() == text)
            .ok_or_else(|| format!("no subject {text:?}"))
    }
}

/// The command that the load generator repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    Get,
    Set,
    /// Ten keys each.
    Mset,
}

/// Which keys it uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keys {
    One,
    Spread,
}

/// Who runs where on a machine with two cores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cores {
    /// Subject, servers and load generator share core 0.
    One,
    /// The subject that the load generator talks to has core 1, everything else core 0.
    Own,
}

impl fmt::Display for Cores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Cores::One { "one-core" } else { "own-core" })
    }
}

impl FromStr for Cores {
    type Err = String;

    fn from_str(text: &str) -> Result<Cores, String> {
        let named = [Cores::One, Cores::Own].into_iter().find(|cores| cores.to_string() == text);
        named.ok_or_else(|| format!("no cores {text:?}"))
    }
}

/// One kind of load on one arrangement.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Scenario {
    pub(crate) nodes: usize,
    pub(crate) work: Work,
    pub(crate) keys: Keys,
    pub(crate) clients: usize,
    pub(crate) pipeline: usize,
    pub(crate) keep_alive: bool,
    pub(crate) transport: Transport,
    pub(crate) cores: Cores,
    /// The embedded server instead of the proxies.
    pub(crate) is_embedded: bool,
}

/// Fifty clients with one GET each at a time to one key, over TCP, one node, all on one core: what others vary.
pub(crate) const BASE: Scenario = Scenario {
    nodes: 1,
    work: Work::Get,
    keys: Keys::One,
    clients: 50,
    pipeline: 1,
    keep_alive: true,
    transport: Transport::Tcp,
    cores: Cores::One,
    is_embedded: false,
};

impl Scenario {
    pub(crate) fn subjects(&self) -> &'static [Subject] {
        if self.is_embedded {
            return &[Subject::Direct, Subject::Embedded];
        }
        // With half a million keys under way twemproxy takes 8 to 13 GB and answers after seconds.
        if self.keys_under_way() > 100_000 {
            return &[Subject::Direct, Subject::Respool, Subject::Baseline];
        }
        &[Subject::Direct, Subject::Twemproxy, Subject::Respool, Subject::Baseline]
    }

    fn keys_under_way(&self) -> usize {
        self.clients * self.pipeline * if self.work == Work::Mset { 10 } else { 1 }
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let work = match self.work {
            Work::Get => "GET",
            Work::Set => "SET",
            Work::Mset => "MSET",
        };
        let keys = if self.keys == Keys::One { "one-key" } else { "spread" };
        let transport = if self.transport == Transport::Tcp { "tcp" } else { "unix" };
        let Scenario { nodes, clients, pipeline, cores, .. } = self;
        write!(f, "n{nodes} {work} {keys} c{clients} P{pipeline} {transport} {cores}")?;
        if !self.keep_alive {
            f.write_str(" no-keep-alive")?;
        }
        if self.is_embedded {
            f.write_str(" embedded")?;
        }
        Ok(())
    }
}

/// MSETs of ten keys over four nodes.
pub(crate) fn mset(pipeline: usize, cores: Cores) -> Scenario {
    // As many as twemproxy can be compared with.
    let clients = if pipeline == 1000 { 10 } else { BASE.clients };
    Scenario { nodes: 4, keys: Keys::Spread, work: Work::Mset, clients, pipeline, cores, ..BASE }
}

/// The rows that the bars need.
pub(crate) fn quick() -> Vec<Scenario> {
    let mut rows = Vec::new();
    for cores in [Cores::One, Cores::Own] {
        for work in [Work::Get, Work::Set] {
            for pipeline in [1, 10, 100] {
                rows.push(Scenario { work, pipeline, cores, ..BASE });
            }
            for pipeline in [10, 100] {
                rows.push(Scenario { nodes: 4, keys: Keys::Spread, work, pipeline, cores, ..BASE });
            }
            for pipeline in [1, 100] {
                rows.push(Scenario { work, pipeline, cores, is_embedded: true, ..BASE });
            }
        }
        for pipeline in [1, 10, 100, 1000] {
            rows.push(mset(pipeline, cores));
        }
        let (work, keys) = (Work::Set, Keys::Spread);
        rows.push(Scenario { nodes: 4, work, keys, clients: 1, pipeline: 10, cores, ..BASE });
    }
    sort_by_arrangement(rows)
}

/// Five million keys under way at once (MSET c500 P1000) take the servers longer than a request may take.
const KEYS_UNDER_WAY_MAX: usize = 1_000_000;

/// Every row.
pub(crate) fn full() -> Vec<Scenario> {
    let mut rows = quick();
    let mut add = |scenario: Scenario| {
        if !rows.contains(&scenario) {
            rows.push(scenario);
        }
    };
    for cores in [Cores::One, Cores::Own] {
        for work in [Work::Get, Work::Set, Work::Mset] {
            for nodes in [1, 4] {
                for keys in [Keys::One, Keys::Spread] {
                    for clients in [50, 500] {
                        for pipeline in [1, 10, 100, 1000] {
                            let row = Scenario { nodes, work, keys, clients, pipeline, cores, ..BASE };
                            if row.keys_under_way() <= KEYS_UNDER_WAY_MAX {
                                add(row);
                            }
                        }
                    }
                }
            }
            for transport in [Transport::Tcp, Transport::Unix] {
                add(Scenario { work, transport, cores, keep_alive: false, ..BASE });
                for nodes in [1, 4] {
                    for pipeline in [1, 10, 100] {
                        add(Scenario { nodes, work, keys: Keys::Spread, pipeline, transport, cores, ..BASE });
                    }
                }
            }
        }
    }
    sort_by_arrangement(rows)
}

/// Rows that share an arrangement of processes stand together, so that it is set up once.
fn sort_by_arrangement(mut rows: Vec<Scenario>) -> Vec<Scenario> {
    rows.sort_by_key(|row| (row.is_embedded, row.transport == Transport::Unix, row.nodes, row.cores == Cores::Own));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_load_is_among_the_rows() {
        let names: Vec<String> = full().iter().map(Scenario::to_string).collect();
        let mut wanted = Vec::new();
        for cores in ["one-core", "own-core"] {
            for nodes in ["n1", "n4"] {
                for work in ["GET", "SET", "MSET"] {
                    for load in ["c50 P1", "c50 P10", "c50 P100", "c50 P1000", "c500 P1", "c500 P10", "c500 P100"] {
                        wanted.extend(
                            ["one-key", "spread"].map(|keys| format!("{nodes} {work} {keys} {load} tcp {cores}")),
                        );
                    }
                    wanted.push(format!("{nodes} {work} spread c50 P10 unix {cores}"));
                }
            }
            wanted.extend(["tcp", "unix"].map(|over| format!("n1 SET one-key c50 P1 {over} {cores} no-keep-alive")));
        }
        for name in &wanted {
            assert!(names.contains(name), "{name}");
        }
        let mut distinct = names.clone();
        distinct.sort();
        distinct.dedup();
        assert_eq!(distinct.len(), names.len(), "a name stands for one row");
        assert!(quick().iter().all(|row| names.contains(&row.to_string())));
    }

    #[test]
    fn twemproxy_is_spared_what_it_cannot_do() {
        let takes_part = |scenario: Scenario| scenario.subjects().contains(&Subject::Twemproxy);
        assert!(takes_part(mset(1000, Cores::One)));
        assert!(takes_part(Scenario { clients: 500, pipeline: 100, ..BASE }));
        assert!(!takes_part(Scenario { clients: 500, pipeline: 1000, ..BASE }));
        assert!(!takes_part(Scenario { clients: 50, pipeline: 1000, work: Work::Mset, ..BASE }));
    }
}
