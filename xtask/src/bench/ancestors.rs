//! `cargo xtask bench ancestors`: the tables that the programs published whose place Respool takes, measured again.
//!
//! What each table says is a list of rows; a row is a command line of `respool bench` that asks all targets in turn. docs/bench.md says
//! what of the programs themselves was looked for and where; twemproxy stands beside Respool where a proxy of then would.

use std::io;
use std::time::Duration;

use clap::Args;
use respool_testkit::{Address, Nutcracker, RedisServer, Respool, TempDir, Transport};
use serde_json::{Value, json};

use super::load::{command_line, output};
use super::row::median;
use super::{report, unix_s};
use crate::binary::Binary;
use crate::{Outcome, command};

/// Measure the tables of rmux, redis-sharding and ruby-redis again (about four minutes).
#[derive(Args)]
pub(crate) struct Options {
    /// Only tables whose name contains this; may be given several times
    #[arg(long, value_name = "TEXT")]
    table: Vec<String>,
    /// Rounds
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    /// Seconds that one measurement lasts where connections are kept
    #[arg(long, default_value = "0.4", value_parser = super::seconds)]
    seconds: Duration,
    #[command(flatten)]
    binary: Binary,
}

/// Who is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    /// One redis-server over TCP.
    Direct,
    /// The same over its unix socket.
    DirectUnix,
    /// Respool with one redis-server behind it, over its unix socket.
    Pooled,
    /// Respool with four redis-servers behind it, keys spread as redis-sharding does.
    Sharded,
    /// twemproxy with the same four.
    Twemproxy,
    /// The embedded server.
    Embedded,
}

impl Who {
    fn name(self) -> &'static str {
        match self {
            Self::Direct => "redis-server",
            Self::DirectUnix => "redis-server, unix socket",
            Self::Pooled => "Respool, unix socket",
            Self::Sharded => "Respool, four nodes",
            Self::Twemproxy => "twemproxy, four nodes",
            Self::Embedded => "Respool's server",
        }
    }
}

struct Table {
    name: &'static str,
    /// Others are compared with the first.
    targets: &'static [Who],
    /// What is beside each row's own flags.
    rows: Vec<Row>,
}

struct Row {
    name: String,
    flags: Vec<String>,
    /// So many requests; otherwise for a time.
    requests: Option<u32>,
}

/// Nodes of redis-sharding's table.
const NODES: usize = 4;
/// Requests of rows in which each has a connection of its own: more would use up the ports of loopback.
const UNKEPT_REQUESTS: u32 = 5_000;
/// The tests of rmux' table.
const RMUX_TESTS: [&str; 8] = ["ping_mbulk", "set", "get", "incr", "spop", "mset", "lrange_100", "lrange_600"];
const SERVER_TESTS: [&str; 6] = ["ping_inline", "ping_mbulk", "mset", "set", "get", "incr"];

fn tables() -> Vec<Table> {
    let row = |name: String, flags: &str, requests| {
        let flags = flags.split_whitespace().map(str::to_owned).collect();
        Row { name, flags, requests }
    };
    let rmux = |is_kept: bool| {
        let of = |test: &&str| match is_kept {
            true => row((*test).to_owned(), &format!("-c 50 -t {test}"), None),
            false => row((*test).to_owned(), &format!("-c 50 -k 0 -t {test}"), Some(UNKEPT_REQUESTS)),
        };
        RMUX_TESTS.iter().map(of).collect()
    };
    let shards = [("one key", ""), ("100,000 keys", "-r 100000")].into_iter().flat_map(|(keys, random)| {
        [1, 10, 100, 1000].into_iter().flat_map(move |pipeline| {
            ["set", "get", "mset"].into_iter().map(move |test| {
                (format!("{test}, P{pipeline}, {keys}"), format!("-c 10 -P {pipeline} {random} -t {test}"))
            })
        })
    });
    let clients = SERVER_TESTS.iter().map(|test| row((*test).to_owned(), &format!("-c 1000 -d 8000 -t {test}"), None));
    vec![
        Table {
            name: "rmux, a connection for each request",
            targets: &[Who::Direct, Who::DirectUnix, Who::Pooled],
            rows: rmux(false),
        },
        Table {
            name: "rmux, connections are kept",
            targets: &[Who::Direct, Who::DirectUnix, Who::Pooled],
            rows: rmux(true),
        },
        Table {
            name: "redis-sharding",
            targets: &[Who::Direct, Who::Twemproxy, Who::Sharded],
            rows: shards.map(|(name, flags)| row(name, &flags, None)).collect(),
        },
        Table {
            name: "ruby-redis, the server, 1,000 clients and 8,000 bytes",
            targets: &[Who::Direct, Who::Embedded],
            rows: clients.collect(),
        },
    ]
}

/// Everything that is asked.
struct Servers {
    nodes: Vec<RedisServer>,
    pooled: Respool,
    sharded: Respool,
    twemproxy: Nutcracker,
    embedded: Respool,
}

impl Servers {
    fn start(options: &Options) -> io::Result<Servers> {
        let respool = options.binary.locate("dist")?;
        let nodes = (0..NODES).map(|_| RedisServer::start()).collect::<io::Result<Vec<_>>>()?;
        let over_tcp: Vec<Address> = nodes.iter().map(RedisServer::tcp).collect();
        let start = |nodes: &[Address], own: &[&str]| {
            let own = [&["--workers", "1"], own].concat();
            Respool::start(&respool, nodes, &options.binary.arguments(&own))
        };
        Ok(Servers {
            pooled: start(&[nodes[0].unix()], &[])?,
            sharded: start(&over_tcp, &["--placement", "crc32"])?,
            twemproxy: Nutcracker::start(Transport::Tcp, &over_tcp)?,
            embedded: start(&[], &[])?,
            nodes,
        })
    }

    fn address(&self, who: Who) -> Address {
        match who {
            Who::Direct => self.nodes[0].tcp(),
            Who::DirectUnix => self.nodes[0].unix(),
            Who::Pooled => self.pooled.unix(),
            Who::Sharded => self.sharded.tcp(),
            Who::Twemproxy => self.twemproxy.address().clone(),
            Who::Embedded => self.embedded.tcp(),
        }
    }
}

pub(crate) fn run(options: &Options) -> Outcome {
    let is_wanted =
        |table: &Table| options.table.is_empty() || options.table.iter().any(|part| table.name.contains(part));
    let tables: Vec<Table> = tables().into_iter().filter(is_wanted).collect();
    if tables.is_empty() {
        return Err("no table has such a name".into());
    }
    let generator = options.binary.locate("dist")?;
    let servers = Servers::start(options)?;
    let directory = TempDir::new()?;
    let file = directory.join("results.json");
    let (mut count, mut measured) = (0, Vec::new());
    for table in &tables {
        let mut rows = Vec::new();
        println!("\n### {}\n", table.name);
        println!("| | {} |", table.targets.iter().map(|who| who.name()).collect::<Vec<_>>().join(" | "));
        println!("|{}", "---|".repeat(table.targets.len() + 1));
        for row in &table.rows {
            // Its address is not asked: the targets are.
            let mut words: Vec<String> = command_line(&generator, 1, &servers.address(Who::Direct));
            words.truncate(words.len() - 4);
            for who in table.targets {
                let address = match servers.address(*who) {
                    Address::Tcp(address) => address.to_string(),
                    Address::Unix(path) => path.display().to_string(),
                };
                words.extend(["--target".to_owned(), format!("{}={address}", who.name().replace(',', ""))]);
            }
            words.extend(row.flags.iter().cloned());
            words.extend(["--rounds".to_owned(), options.rounds.to_string()]);
            words.extend(match row.requests {
                Some(requests) => ["-n".to_owned(), requests.to_string()],
                None => ["--duration".to_owned(), format!("{}ms", options.seconds.as_millis())],
            });
            words.extend(["--json".to_owned(), file.display().to_string()]);
            output(&words)?;
            let document: Value = serde_json::from_str(&std::fs::read_to_string(&file)?)?;
            println!("| {} | {} |", row.name, cells(&document, table.targets).join(" | "));
            let rates = table.targets.iter().map(|who| json!({ "target": who.name(), "rps": rates(&document, *who) }));
            rows.push(json!({ "row": row.name, "flags": row.flags.join(" "), "rounds": rates.collect::<Vec<_>>() }));
            count += 1;
        }
        measured.push(json!({ "table": table.name, "rows": rows }));
    }
    let raw = command::root().join(format!("bench-results/{}-ancestors.json", unix_s()));
    let conditions = json!({
        "machine": report::machine(),
        "binary": options.binary.origin("dist"),
        "rounds": options.rounds,
        "seconds": options.seconds.as_secs_f64(),
        "tables": measured,
    });
    std::fs::write(&raw, format!("{conditions:#}\n"))?;
    Ok(format!("{count} rows, {}", raw.display()))
}

/// Requests a second that a target answered in each round.
fn rates(document: &Value, who: Who) -> Vec<f64> {
    let name = who.name().replace(',', "");
    let of_target = |result: &&Value| result["target"] == name.as_str();
    // A test may have other work in front of it, as filling in a list: the last is what was wanted.
    let result = document["results"].as_array().into_iter().flatten().rfind(of_target);
    let rounds = result.and_then(|result| result["rounds"].as_array());
    rounds.into_iter().flatten().filter_map(|round| round["rps"].as_f64()).collect()
}

/// Requests a second of each target, medians of rounds, and for all but the first what they are to its.
fn cells(document: &Value, targets: &[Who]) -> Vec<String> {
    let rates: Vec<f64> = targets.iter().map(|who| median(rates(document, *who)).unwrap_or(f64::NAN)).collect();
    let cell = |(place, rate): (usize, &f64)| match place {
        0 => format!("{rate:.0}"),
        _ => format!("{rate:.0} ({:.2})", rate / rates[0]),
    };
    rates.iter().enumerate().map(cell).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_has_the_median_and_its_ratio_to_the_first_target() {
        let result = |target: &str, rates: [f64; 3]| serde_json::json!({ "target": target, "rounds": rates.map(|rps| serde_json::json!({ "rps": rps })) });
        let document = serde_json::json!({
            "results": [result("redis-server", [100.0, 300.0, 200.0]), result("Respool's server", [300.0, 1.0, 900.0])]
        });
        assert_eq!(cells(&document, &[Who::Direct, Who::Embedded]), ["200", "300 (1.50)"]);
    }
}
