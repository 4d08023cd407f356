//! Real redis-servers that make a cluster: primaries with their slots, and replicas.

use std::collections::BTreeSet;
use std::io;
use std::ops::Range;

use crate::{Client, PATIENCE, RedisServer, wait_until};

/// A cluster of redis-servers. Node 0 to `primaries - 1` begin as primaries with equal parts of the slots; the others are replicas of
/// one each.
#[derive(Debug)]
pub struct RedisCluster {
    /// The nodes.
    pub nodes: Vec<RedisServer>,
}

impl RedisCluster {
    /// Starts one, with `replicas` for each primary. `settings` are those of every node. It is up when this returns.
    pub fn start(primaries: usize, replicas: usize, settings: &[&str]) -> io::Result<RedisCluster> {
        let mut all = vec!["--cluster-enabled", "yes", "--repl-diskless-sync-delay", "0"];
        all.extend(["--repl-ping-replica-period", "1"]);
        all.extend(settings);
        let nodes: io::Result<Vec<_>> =
            (0..primaries * (1 + replicas)).map(|_| RedisServer::start_with(&all)).collect();
        let this = RedisCluster { nodes: nodes? };
        for number in 0..primaries {
            let (first, last) = (number * 16_384 / primaries, (number + 1) * 16_384 / primaries - 1);
            this.ok(number, &format!("CLUSTER ADDSLOTSRANGE {first} {last}"))?;
            this.ok(number, &format!("CLUSTER SET-CONFIG-EPOCH {}", number + 1))?;
        }
        for number in 1..this.nodes.len() {
            this.ok(number, &format!("CLUSTER MEET 127.0.0.1 {}", this.nodes[0].port()))?;
        }
        let known = format!("cluster_known_nodes:{}\r", this.nodes.len());
        this.await_all("CLUSTER INFO", |text| text.contains(&known) && text.contains("cluster_state:ok"))?;
        for number in primaries..this.nodes.len() {
            let primary = this.text(number % primaries, "CLUSTER MYID")?;
            this.ok(number, &format!("CLUSTER REPLICATE {primary}"))?;
        }
        if replicas > 0 {
            this.await_all("INFO replication", |text| {
                text.contains("role:master") || text.contains("master_link_status:up")
            })?;
            // A replica is listed when its primary has sent it something, and the nodes have told each other.
            let ports: Vec<String> = this.nodes.iter().map(|node| format!(":{}\r", node.port())).collect();
            this.await_all("CLUSTER SLOTS", |text| ports.iter().all(|port| text.contains(port)))?;
        }
        Ok(this)
    }

    /// What a node answers.
    pub fn ask(&self, number: usize, words: &str) -> io::Result<Vec<u8>> {
        let words: Vec<&str> = words.split(' ').collect();
        Client::connect(&self.nodes[number].tcp())?.command(&words)
    }

    /// Asks a node for what it must answer with `+OK`.
    pub fn ok(&self, number: usize, words: &str) -> io::Result<()> {
        ok(&mut Client::connect(&self.nodes[number].tcp())?, words)
    }

    /// The text that a node answers with.
    pub fn text(&self, number: usize, words: &str) -> io::Result<String> {
        let answer = String::from_utf8_lossy(&self.ask(number, words)?).into_owned();
        let body = answer.split_once("\r\n").map(|(_, body)| body.trim_end_matches("\r\n").to_owned());
        Ok(body.filter(|_| answer.starts_with('$')).unwrap_or(answer))
    }

    /// Waits until all nodes that run answer like this.
    pub fn await_all(&self, words: &str, is_so: impl Fn(&str) -> bool) -> io::Result<()> {
        for number in 0..self.nodes.len() {
            self.await_one(number, words, &is_so)?;
        }
        Ok(())
    }

    /// Waits until a node answers like this.
    pub fn await_one(&self, number: usize, words: &str, is_so: impl Fn(&str) -> bool) -> io::Result<()> {
        let what = format!("node {number} answers {words} as wanted");
        wait_until(&what, PATIENCE, || Ok(is_so(&format!("{}\r", self.text(number, words)?))))
    }

    /// Moves a slot with its keys from one primary to another, as `redis-cli --cluster reshard` does. `between` is called when the slot is
    /// on its way, before any key is.
    pub fn move_slot(&self, slot: u16, from: usize, to: usize, between: impl FnOnce()) -> io::Result<()> {
        self.carrier(from, to)?.carry(slot, between)?;
        self.await_agreement()
    }

    /// Moves slots one after the other from one primary to another, and waits at the end until all nodes agree on them.
    pub fn move_slots(&self, slots: Range<u16>, from: usize, to: usize) -> io::Result<()> {
        let mut carrier = self.carrier(from, to)?;
        slots.into_iter().try_for_each(|slot| carrier.carry(slot, || {}))?;
        self.await_agreement()
    }

    fn carrier(&self, from: usize, to: usize) -> io::Result<Carrier> {
        Ok(Carrier {
            ids: (self.text(from, "CLUSTER MYID")?, self.text(to, "CLUSTER MYID")?),
            from: Client::connect(&self.nodes[from].tcp())?,
            to: Client::connect(&self.nodes[to].tcp())?,
            port: self.nodes[to].port(),
        })
    }

    /// Waits until all nodes that run name the same owners of slots, with the same epochs and with no epoch twice. Before that, word of an
    /// earlier owner may still take a slot from the next.
    fn await_agreement(&self) -> io::Result<()> {
        wait_until("the nodes agree", PATIENCE, || {
            let mut views = Vec::new();
            for number in 0..self.nodes.len() {
                views.push(owners(&self.text(number, "CLUSTER NODES")?));
            }
            let epochs: BTreeSet<_> = views[0].iter().map(|(epoch, ..)| epoch).collect();
            Ok(epochs.len() == views[0].len() && views.iter().all(|view| *view == views[0]))
        })
    }

    /// The addresses of some nodes, as a client is told them.
    pub fn seeds(&self, numbers: &[usize]) -> String {
        let address = |number: &usize| format!("127.0.0.1:{}", self.nodes[*number].port());
        numbers.iter().map(address).collect::<Vec<_>>().join(",")
    }
}

/// What moves slots between two primaries, with one connection to each, so that it takes little from nodes and processors.
struct Carrier {
    ids: (String, String),
    from: Client,
    to: Client,
    port: u16,
}

impl Carrier {
    fn carry(&mut self, slot: u16, between: impl FnOnce()) -> io::Result<()> {
        let Self { ids: (from_id, to_id), from, to, port } = self;
        ok(to, &format!("CLUSTER SETSLOT {slot} IMPORTING {from_id}"))?;
        ok(from, &format!("CLUSTER SETSLOT {slot} MIGRATING {to_id}"))?;
        between();
        loop {
            let keys = from.ask(&format!("CLUSTER GETKEYSINSLOT {slot} 1"))?;
            let Some(key) = keys.split("\r\n").nth(2) else { break };
            // A key that was deleted meanwhile is not there any longer.
            let moved = from.command(&["MIGRATE", "127.0.0.1", &port.to_string(), key, "0", "5000"])?;
            if !moved.starts_with(b"+") {
                return Err(io::Error::other(format!("MIGRATE {key}: {}", moved.escape_ascii())));
            }
        }
        ok(to, &format!("CLUSTER SETSLOT {slot} NODE {to_id}"))?;
        ok(from, &format!("CLUSTER SETSLOT {slot} NODE {to_id}"))
    }
}

/// Asks for what must be answered with `+OK`.
fn ok(client: &mut Client, words: &str) -> io::Result<()> {
    let answer = client.ask(words)?;
    let is_ok = answer == "+OK\r\n";
    is_ok.then_some(()).ok_or_else(|| io::Error::other(format!("{words}: {}", answer.escape_debug())))
}

/// Epoch, name and slots of each node that has slots, by what a node says of the cluster. Slots that are on their way are not shown.
fn owners(nodes: &str) -> BTreeSet<(String, String, Vec<String>)> {
    let owner = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let slots: Vec<String> =
            words.iter().skip(8).filter(|slots| !slots.starts_with('[')).map(ToString::to_string).collect();
        (!slots.is_empty()).then(|| (words[6].to_owned(), words[0].to_owned(), slots))
    };
    nodes.lines().filter_map(owner).collect()
}
