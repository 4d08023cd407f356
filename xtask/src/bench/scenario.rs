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
    /// Respool's own server, no node behind it.
    Embedded,
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Subject::Direct => "direct",
            Subject::Twemproxy => "twemproxy",
            Subject::Respool => "respool",
            Subject::Embedded => "embedded",
        })
    }
}

impl FromStr for Subject {
    type Err = String;

    fn from_str(text: &str) -> Result<Subject, String> {
        [Subject::Direct, Subject::Twemproxy, Subject::Respool, Subject::Embedded]
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
        // With half a million requests under way twemproxy takes 13 GB and answers after seconds.
        if self.clients * self.pipeline > 100_000 {
            return &[Subject::Direct, Subject::Respool];
        }
        &[Subject::Direct, Subject::Twemproxy, Subject::Respool]
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
        let cores = if self.cores == Cores::One { "one-core" } else { "own-core" };
        let Scenario { nodes, clients, pipeline, .. } = self;
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
    // Half a million keys under way at once would cost twemproxy 8 GB.
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
                            // For the same reason as in `mset`.
                            if work == Work::Mset && clients * pipeline > 10_000 {
                                continue;
                            }
                            add(Scenario { nodes, work, keys, clients, pipeline, cores, ..BASE });
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
