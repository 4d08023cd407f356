//! What one node says about its cluster: the reply to `CLUSTER SLOTS`, `CLUSTER SHARDS` or `CLUSTER NODES`, understood.
//!
//! A reply of the wrong shape or of hostile size is refused as a whole. A member that cannot be reached as it is written (a host that is none,
//! port 0) is left out, and with a primary its slots: the rest of the report still counts.

use std::collections::HashMap;
use std::fmt;
use std::ops::RangeInclusive;

use respool_wire::Value;

use super::address::Address;
use super::nodes_text;
use crate::SLOTS;
use crate::limits::{CLUSTER_MEMBERS_MAX, CLUSTER_RANGES_MAX, MEMBER_ID_BYTES_MAX, ZONE_BYTES_MAX};

/// A node of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// What the cluster knows it by. Empty if the node that was asked is older than ids in its reply.
    pub id: Box<str>,
    /// Where it is.
    pub address: Address,
    /// How it is, as far as the node that was asked knows.
    pub health: Health,
    /// Its availability zone; empty if it is not known.
    pub zone: Box<str>,
}

impl Member {
    /// Whether both are the same node: by their ids, or by their addresses if one of them has none.
    pub fn is_same(&self, other: &Self) -> bool {
        if self.id.is_empty() || other.id.is_empty() { self.address == other.address } else { self.id == other.id }
    }
}

/// How a member is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Health {
    /// Nothing is wrong, or nothing is known.
    #[default]
    Online,
    /// The node that was asked cannot reach it; others may.
    Suspected,
    /// It is down.
    Failed,
    /// It reads its data.
    Loading,
}

/// A primary, its replicas and its slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The member that has the slots.
    pub primary: Member,
    /// Those that copy it.
    pub replicas: Vec<Member>,
    /// The slots, both ends included.
    pub ranges: Vec<RangeInclusive<u16>>,
    /// The configuration epoch of the claim: of two claims the higher one holds. 0 if the reply does not say.
    pub epoch: u64,
}

/// A slot on its way, which only the two members concerned tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The slot.
    pub slot: u16,
    /// Which way.
    pub transfer: Transfer,
    /// The id of the other member.
    pub member: Box<str>,
}

/// Which way a slot is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transfer {
    /// From the node that was asked to the other member.
    Migrating,
    /// To the node that was asked.
    Importing,
}

/// Which port is dialled where a reply has both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ports {
    /// The one without TLS.
    #[default]
    Plain,
    /// The one with TLS.
    Tls,
}

/// What one node says about its cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The owners of slots.
    pub claims: Vec<Claim>,
    /// Slots on their way. Only `CLUSTER NODES` tells them.
    pub marks: Vec<Mark>,
}

/// Why a reply is no report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportError {
    /// It is of another shape; what was missed.
    Shape(&'static str),
    /// It names more than a cluster has.
    TooLarge,
    /// No member has a slot: the node has not joined a cluster, or has forgotten it.
    Empty,
}

impl fmt::Display for ReportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shape(missed) => write!(f, "the reply is not about a cluster: no {missed}"),
            Self::TooLarge => f.write_str("the reply names more than a cluster has"),
            Self::Empty => f.write_str("no member has a slot"),
        }
    }
}

impl std::error::Error for ReportError {}

impl Report {
    /// Understands the reply to `CLUSTER SLOTS`. `asked` is the node that gave it, as it was dialled: what it leaves out of its own address is taken
    /// from there.
    pub fn from_slots(reply: &Value, asked: &Address) -> Result<Self, ReportError> {
        let mut builder = Builder::default();
        // Ranges of one primary stand apart, and may be thousands.
        let mut claims: HashMap<(Box<str>, Address), usize> = HashMap::new();
        for entry in list(reply).ok_or(ReportError::Shape("list of ranges"))? {
            let [first, last, members @ ..] = list(entry).ok_or(ReportError::Shape("range"))? else {
                return Err(ReportError::Shape("range"));
            };
            let range = builder.range(first, last)?;
            let [primary, replicas @ ..] = members else { continue };
            let Some(primary) = member_of_slots(primary, asked)? else { continue };
            let key = (primary.id.clone(), primary.address.clone());
            if let Some(at) = claims.get(&key) {
                builder.report.claims[*at].ranges.push(range);
                continue;
            }
            builder.members(members.len())?;
            let replicas = replicas.iter().filter_map(|replica| member_of_slots(replica, asked).transpose());
            let replicas = replicas.collect::<Result<_, _>>()?;
            claims.insert(key, builder.report.claims.len());
            builder.report.claims.push(Claim { primary, replicas, ranges: vec![range], epoch: 0 });
        }
        builder.finish()
    }

    /// Understands the reply to `CLUSTER SHARDS`, in RESP2 or RESP3. Of a shard that names two primaries, as it may during a failover, the one that
    /// is online has the slots.
    pub fn from_shards(reply: &Value, asked: &Address, ports: Ports) -> Result<Self, ReportError> {
        let mut builder = Builder::default();
        for shard in list(reply).ok_or(ReportError::Shape("list of shards"))? {
            let slots = field(shard, b"slots").and_then(list).ok_or(ReportError::Shape("slots"))?;
            let nodes = field(shard, b"nodes").and_then(list).ok_or(ReportError::Shape("nodes"))?;
            let mut ranges = Vec::new();
            let (pairs, []) = slots.as_chunks() else { return Err(ReportError::Shape("range")) };
            for [first, last] in pairs {
                ranges.push(builder.range(first, last)?);
            }
            builder.members(nodes.len())?;
            let mut primary: Option<Member> = None;
            let mut replicas = Vec::new();
            for node in nodes {
                let (member, is_primary) = match member_of_shards(node, asked, ports)? {
                    Some(found) => found,
                    None => continue,
                };
                if !is_primary {
                    replicas.push(member);
                } else if primary.as_ref().is_none_or(|earlier| earlier.health != Health::Online) {
                    primary = Some(member);
                }
            }
            if let (Some(primary), false) = (primary, ranges.is_empty()) {
                builder.report.claims.push(Claim { primary, replicas, ranges, epoch: 0 });
            }
        }
        builder.finish()
    }

    /// Understands the reply to `CLUSTER NODES`. It is the only one with epochs and with slots on their way.
    pub fn from_nodes(reply: &Value, asked: &Address, ports: Ports) -> Result<Self, ReportError> {
        let text = text(reply).ok_or(ReportError::Shape("text"))?;
        nodes_text::parse(text, asked, ports)?.finish()
    }
}

/// A report that is being read, within the bounds.
#[derive(Default)]
pub(super) struct Builder {
    pub(super) report: Report,
    ranges: usize,
    members: usize,
}

impl Builder {
    fn range(&mut self, first: &Value, last: &Value) -> Result<RangeInclusive<u16>, ReportError> {
        let (first, last) = (slot(first)?, slot(last)?);
        self.checked_range(first, last)
    }

    pub(super) fn checked_range(&mut self, first: u16, last: u16) -> Result<RangeInclusive<u16>, ReportError> {
        if first > last || last >= SLOTS {
            return Err(ReportError::Shape("range"));
        }
        self.ranges += 1;
        if self.ranges > CLUSTER_RANGES_MAX { Err(ReportError::TooLarge) } else { Ok(first..=last) }
    }

    pub(super) fn members(&mut self, count: usize) -> Result<(), ReportError> {
        self.members = self.members.saturating_add(count);
        if self.members > CLUSTER_MEMBERS_MAX { Err(ReportError::TooLarge) } else { Ok(()) }
    }

    pub(super) fn finish(self) -> Result<Report, ReportError> {
        if self.report.claims.is_empty() { Err(ReportError::Empty) } else { Ok(self.report) }
    }
}

/// A member as `CLUSTER SLOTS` has it: host, port, from Redis 4 on the id, from Redis 7 on more about its network. `None`: it cannot be
/// reached.
fn member_of_slots(entry: &Value, asked: &Address) -> Result<Option<Member>, ReportError> {
    let [host, port, rest @ ..] = list(entry).ok_or(ReportError::Shape("member"))? else {
        return Err(ReportError::Shape("member"));
    };
    let port = integer(port).ok_or(ReportError::Shape("port"))?;
    let (id, network) = (rest.first().and_then(text), rest.get(1));
    let network = |name: &[u8]| network.and_then(|network| field(network, name)).and_then(text);
    let mut host = word(text(host));
    if host == Some("?") {
        // The name is asked for and not known, but the address may be.
        host = word(network(b"ip")).or(host);
    }
    let address = u16::try_from(port).ok().and_then(|port| Address::beside(host, port, asked));
    Ok(address.map(|address| Member {
        id: id_of(id),
        address,
        health: Health::Online,
        zone: zone_of(network(b"availability-zone")),
    }))
}

/// A member as `CLUSTER SHARDS` has it, and whether it is a primary.
fn member_of_shards(entry: &Value, asked: &Address, ports: Ports) -> Result<Option<(Member, bool)>, ReportError> {
    let words = |name: &[u8]| field(entry, name).and_then(text);
    let role = words(b"role").ok_or(ReportError::Shape("role"))?;
    let port_called = |name: &[u8]| field(entry, name).and_then(integer).and_then(|port| u16::try_from(port).ok());
    let (plain, tls) = (port_called(b"port"), port_called(b"tls-port"));
    let port = match ports {
        Ports::Plain => plain.or(tls),
        Ports::Tls => tls.or(plain),
    };
    // What is preferred, which may be null; older nodes have the IP address alone.
    let host = match field(entry, b"endpoint") {
        Some(endpoint) => match word(text(endpoint)) {
            Some("?") => word(words(b"ip")).or(Some("?")),
            host => host,
        },
        None => word(words(b"ip")),
    };
    let Some(address) = port.and_then(|port| Address::beside(host, port, asked)) else { return Ok(None) };
    let health = match words(b"health") {
        Some(b"fail" | b"failed") => Health::Failed,
        Some(b"loading") => Health::Loading,
        _ => Health::Online,
    };
    let zone = zone_of(words(b"availability-zone"));
    let member = Member { id: id_of(words(b"id")), address, health, zone };
    Ok(Some((member, matches!(role, b"master" | b"primary"))))
}

/// An id in its usual letters; what is none counts as not known.
pub(super) fn id_of(id: Option<&[u8]>) -> Box<str> {
    label(id, MEMBER_ID_BYTES_MAX)
}

pub(super) fn zone_of(zone: Option<&[u8]>) -> Box<str> {
    label(zone, ZONE_BYTES_MAX)
}

fn label(text: Option<&[u8]>, bytes_max: usize) -> Box<str> {
    let is_fit = |text: &&[u8]| text.len() <= bytes_max && text.iter().all(u8::is_ascii_graphic);
    word(text.filter(is_fit)).unwrap_or_default().into()
}

fn word(text: Option<&[u8]>) -> Option<&str> {
    // What is no text is no host either: it is kept as one that no address takes.
    text.map(|text| std::str::from_utf8(text).unwrap_or("\u{fffd}"))
}

fn slot(value: &Value) -> Result<u16, ReportError> {
    let slot = integer(value).and_then(|slot| u16::try_from(slot).ok());
    slot.filter(|slot| *slot < SLOTS).ok_or(ReportError::Shape("slot"))
}

fn list(value: &Value) -> Option<&[Value]> {
    match value {
        Value::Array(values) | Value::Set(values) => Some(values),
        _ => None,
    }
}

fn text(value: &Value) -> Option<&[u8]> {
    match value {
        Value::Bulk(text) | Value::Simple(text) | Value::Verbatim { text, .. } => Some(text),
        _ => None,
    }
}

fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::Integer(number) => Some(*number),
        _ => std::str::from_utf8(text(value)?).ok()?.parse().ok(),
    }
}

/// The value of a field of a map, or of the list of fields and values that stands for one in RESP2.
fn field<'v>(map: &'v Value, name: &[u8]) -> Option<&'v Value> {
    match map {
        Value::Map(pairs) => pairs.iter().find(|(key, _)| text(key) == Some(name)).map(|(_, value)| value),
        Value::Array(flat) => {
            let (pairs, _) = flat.as_chunks();
            pairs.iter().find(|[key, _]| text(key) == Some(name)).map(|[_, value]| value)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked() -> Address {
        Address::new("seed.example", 7000).unwrap()
    }

    fn value(parts: &str) -> Value {
        Value::parse(parts.replace('\n', "\r\n").as_bytes()).unwrap()
    }

    fn slots(parts: &str) -> Result<Report, ReportError> {
        Report::from_slots(&value(parts), &asked())
    }

    fn summary(report: &Report) -> Vec<String> {
        let claim = |claim: &Claim| {
            let name = |member: &Member| format!("{}@{}/{:?}{}", member.id, member.address, member.health, member.zone);
            let replicas: Vec<_> = claim.replicas.iter().map(name).collect();
            format!("{} {:?} {:?}", name(&claim.primary), claim.ranges, replicas)
        };
        report.claims.iter().map(claim).collect()
    }

    #[test]
    fn slots_are_understood_from_every_version() {
        // Redis 3 has neither ids nor more; Redis 7 has a list about the network.
        let old =
            "*2\n*4\n:0\n:99\n*2\n$9\n127.0.0.1\n:7001\n*2\n$9\n127.0.0.1\n:7002\n*3\n:100\n:16383\n*2\n$0\n\n:7003\n";
        assert_eq!(
            summary(&slots(old).unwrap()),
            [
                r#"@127.0.0.1:7001/Online [0..=99] ["@127.0.0.1:7002/Online"]"#,
                "@seed.example:7003/Online [100..=16383] []"
            ]
        );
        let new = "*2\n\
            *3\n:0\n:1\n*4\n$-1\n:7001\n$1\na\n*2\n$17\navailability-zone\n$2\nz1\n\
            *4\n:5\n:5\n*4\n$-1\n:7001\n$1\na\n*0\n*4\n$1\n?\n:7002\n$1\nb\n*2\n$2\nip\n$2\n::\n";
        let report = slots(new).unwrap();
        assert_eq!(
            summary(&report),
            ["a@seed.example:7001/Onlinez1 [0..=1, 5..=5] []"],
            "one primary has one claim, whose members are those of its first range"
        );
        let unknown_name = "*1\n*3\n:0\n:1\n*4\n$1\n?\n:7002\n$1\nb\n*2\n$2\nip\n$3\n::1\n";
        assert_eq!(summary(&slots(unknown_name).unwrap()), ["b@[::1]:7002/Online [0..=1] []"]);
    }

    #[test]
    fn shards_are_understood_in_both_protocols() {
        let node = |head: &str, id: &str, port: &str, role: &str, health: &str| {
            format!(
                "{head}\n$2\nid\n$1\n{id}\n$8\ntls-port\n:1{port}\n$4\nport\n:{port}\n$8\nendpoint\n$4\n::ff\n$4\nrole\n${}\n{role}\n\
                $6\nhealth\n${}\n{health}\n",
                role.len(),
                health.len()
            )
        };
        for (map2, map6) in [("*4", "*12"), ("%2", "%6")] {
            let nodes = node(map6, "a", "7001", "master", "failed")
                + &node(map6, "b", "7002", "master", "online")
                + &node(map6, "c", "7003", "replica", "loading");
            let reply = value(&format!("*1\n{map2}\n$5\nslots\n*4\n:0\n:1\n:3\n:16383\n$5\nnodes\n*3\n{nodes}"));
            let report = Report::from_shards(&reply, &asked(), Ports::Tls).unwrap();
            let expected = r#"b@[::ff]:17002/Online [0..=1, 3..=16383] ["c@[::ff]:17003/Loading"]"#;
            assert_eq!(summary(&report), [expected]);
            let report = Report::from_shards(&reply, &asked(), Ports::Plain).unwrap();
            assert!(summary(&report)[0].starts_with("b@[::ff]:7002"), "{report:?}");
        }
    }

    #[test]
    fn a_member_that_cannot_be_reached_is_left_out() {
        let reply =
            "*2\n*4\n:0\n:1\n*3\n$1\na\n:7001\n$1\na\n*3\n$1\na\n:0\n$1\nb\n*3\n:2\n:3\n*3\n$3\na b\n:7001\n$1\nc\n";
        assert_eq!(summary(&slots(reply).unwrap()), ["a@a:7001/Online [0..=1] []"]);
    }

    #[test]
    fn a_reply_of_another_shape_is_no_report() {
        for reply in [
            "+OK\n",
            "-ERR This instance has cluster support disabled\n",
            "*1\n:1\n",
            "*1\n*1\n:1\n",
            "*1\n*3\n:1\n:0\n*2\n$1\na\n:1\n",
            "*1\n*3\n:0\n:16384\n*2\n$1\na\n:1\n",
            "*1\n*3\n:-1\n:5\n*2\n$1\na\n:1\n",
            "*1\n*3\n:0\n:5\n*1\n$1\na\n",
            "*1\n*3\n:0\n:5\n$1\na\n",
        ] {
            assert!(matches!(slots(reply), Err(ReportError::Shape(_))), "{reply:?}");
            assert!(Report::from_shards(&value(reply), &asked(), Ports::Plain).is_err(), "{reply:?}");
        }
        assert_eq!(slots("*0\n"), Err(ReportError::Empty));
        assert_eq!(slots("*1\n*2\n:0\n:5\n"), Err(ReportError::Empty));
    }

    #[test]
    fn a_reply_of_hostile_size_is_refused() {
        let range = "*3\n:0\n:5\n*3\n$1\na\n:1\n$1\na\n";
        let many = format!("*{}\n{}", CLUSTER_RANGES_MAX + 1, range.repeat(CLUSTER_RANGES_MAX + 1));
        assert_eq!(slots(&many), Err(ReportError::TooLarge));
        let members = "*2\n$1\na\n:1\n".repeat(CLUSTER_MEMBERS_MAX + 1);
        let many = format!("*1\n*{}\n:0\n:5\n{members}", CLUSTER_MEMBERS_MAX + 3);
        assert_eq!(slots(&many), Err(ReportError::TooLarge));
        let many = format!("*1\n%2\n$5\nslots\n*0\n$5\nnodes\n*{}\n{members}", CLUSTER_MEMBERS_MAX + 1);
        assert_eq!(Report::from_shards(&value(&many), &asked(), Ports::Plain), Err(ReportError::TooLarge));
    }
}
