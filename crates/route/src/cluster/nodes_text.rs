//! The text of `CLUSTER NODES`: one line for each member that the node knows.
//!
//! ```text
//!   id host:port@bus[,name[,key=value]...] flags primary ping pong epoch link slot...
//!   slot = 5 | 5-9 | [5->-id] | [5-<-id]
//! ```
//!
//! The host is an IP address (IPv6 without brackets), and the name behind the comma is the one that the operator announces. Which of
//! both clients prefer is not told here, so the address counts, and the name where there is none.

use super::address::Address;
use super::report::{Builder, Claim, Health, Mark, Member, Ports, ReportError, Transfer, id_of, zone_of};
use crate::SLOTS;
use crate::limits::{CLUSTER_NODES_BYTES_MAX, CLUSTER_RANGES_MAX};

/// Reads all of it.
pub(super) fn parse(text: &[u8], asked: &Address, ports: Ports) -> Result<Builder, ReportError> {
    if text.len() > CLUSTER_NODES_BYTES_MAX {
        return Err(ReportError::TooLarge);
    }
    let text = std::str::from_utf8(text).map_err(|_| ReportError::Shape("text"))?;
    let mut builder = Builder::default();
    let mut replicas = Vec::new();
    for line in text.split('\n').map(|line| line.trim_end_matches('\r')).filter(|line| !line.is_empty()) {
        builder.members(1)?;
        read_line(line, asked, ports, &mut builder, &mut replicas)?;
    }
    // A replica may stand before its primary.
    replicas.sort_by(|(left, _), (right, _)| left.cmp(right));
    for claim in &mut builder.report.claims {
        let first = replicas.partition_point(|(primary, _)| **primary < *claim.primary.id);
        let own = replicas[first..].iter().take_while(|(primary, _)| *primary == claim.primary.id);
        claim.replicas.extend(own.map(|(_, replica)| replica.clone()));
    }
    Ok(builder)
}

fn read_line(
    line: &str,
    asked: &Address,
    ports: Ports,
    builder: &mut Builder,
    replicas: &mut Vec<(Box<str>, Member)>,
) -> Result<(), ReportError> {
    let mut words = line.split(' ');
    let mut next = |missed| words.next().ok_or(ReportError::Shape(missed));
    let (id, place, flags, primary) = (next("id")?, next("address")?, next("flags")?, next("primary")?);
    let (_ping, _pong) = (next("ping")?, next("pong")?);
    let epoch = next("epoch")?.parse().map_err(|_| ReportError::Shape("epoch"))?;
    let _link = next("link")?;
    let has = |wanted: &str| flags.split(',').any(|flag| flag == wanted);
    // Neither has a role yet, or can be reached.
    if has("handshake") || has("noaddr") {
        return Ok(());
    }
    let health = match () {
        () if has("fail") => Health::Failed,
        () if has("fail?") => Health::Suspected,
        () => Health::Online,
    };
    let member = member(id, place, health, asked, ports)?;
    if !has("master") {
        if let Some(replica) = member {
            replicas.push((id_of(Some(primary.as_bytes())), replica));
        }
        return Ok(());
    }
    let mut ranges = Vec::new();
    for word in words.filter(|word| !word.is_empty()) {
        match word.strip_prefix('[') {
            Some(mark) => push_mark(mark, builder)?,
            None => {
                let (first, last) = word.split_once('-').unwrap_or((word, word));
                ranges.push(builder.checked_range(slot(first)?, slot(last)?)?);
            }
        }
    }
    if let (Some(primary), false) = (member, ranges.is_empty()) {
        builder.report.claims.push(Claim { primary, replicas: Vec::new(), ranges, epoch });
    }
    Ok(())
}

fn push_mark(mark: &str, builder: &mut Builder) -> Result<(), ReportError> {
    let missed = ReportError::Shape("mark");
    let mark = mark.strip_suffix(']').ok_or(missed)?;
    let split = |arrow| mark.split_once(arrow);
    let (at, member, transfer) = match (split("->-"), split("-<-")) {
        (Some((at, member)), _) => (at, member, Transfer::Migrating),
        (None, Some((at, member))) => (at, member, Transfer::Importing),
        (None, None) => return Err(missed),
    };
    if builder.report.marks.len() >= CLUSTER_RANGES_MAX {
        return Err(ReportError::TooLarge);
    }
    let mark = Mark { slot: slot(at)?, transfer, member: id_of(Some(member.as_bytes())) };
    builder.report.marks.push(mark);
    Ok(())
}

/// `None`: it cannot be reached.
fn member(id: &str, place: &str, health: Health, asked: &Address, ports: Ports) -> Result<Option<Member>, ReportError> {
    let mut parts = place.split(',');
    let place = parts.next().unwrap_or_default();
    let name = parts.next().unwrap_or_default();
    let extra = |wanted: &str| parts.clone().filter_map(|part| part.split_once('=')).find(|(key, _)| *key == wanted);
    // Before Redis 4 there is no port of the bus.
    let place = place.split_once('@').map_or(place, |(place, _bus)| place);
    let (host, port) = place.rsplit_once(':').ok_or(ReportError::Shape("address"))?;
    let port: u16 = port.parse().map_err(|_| ReportError::Shape("port"))?;
    let named = |key| extra(key).and_then(|(_, port)| port.parse().ok()).filter(|port| *port != 0);
    // The line has the port that fits the connection on which it was asked for; Valkey tells the other as well.
    let port = match ports {
        Ports::Plain => named("tcp-port").unwrap_or(port),
        Ports::Tls => named("tls-port").unwrap_or(port),
    };
    let host = if host.is_empty() && !name.contains('=') { name } else { host };
    let zone = zone_of(extra("availability-zone").map(|(_, zone)| zone.as_bytes()));
    let address = Address::beside(Some(host), port, asked);
    Ok(address.map(|address| Member { id: id_of(Some(id.as_bytes())), address, health, zone }))
}

fn slot(text: &str) -> Result<u16, ReportError> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let slot = is_number.then(|| text.parse().ok()).flatten();
    slot.filter(|slot| *slot < SLOTS).ok_or(ReportError::Shape("slot"))
}

#[cfg(test)]
mod tests {
    use super::super::Report;
    use super::*;
    use respool_wire::Value;

    fn report(text: &str) -> Result<Report, ReportError> {
        let asked = Address::new("seed.example", 7000).unwrap();
        Report::from_nodes(&Value::Bulk(text.into()), &asked, Ports::Plain)
    }

    #[test]
    fn every_kind_of_line_is_understood() {
        let text = "\
            b 10.0.0.2:7002@17002 slave a 0 1 3 connected\n\
            a ::1:7001@17001,name.example,shard-id=5 myself,master - 0 0 3 connected 0-99 101 [7->-c] [102-<-c]\n\
            c :7003@17003,c.example,tls-port=8003 master,fail? - 0 0 9 disconnected 102-16383\n\
            d 10.0.0.4:0@0 master,fail,noaddr - 0 0 0 disconnected\n\
            e :0@0 handshake - 0 0 0 connected\n\
            f 10.0.0.6:7006 master - 0 0 0 connected\n\
            g 10.0.0.7:0@17007 slave a 0 1 3 connected\r\n\
            h :7008@17008 slave,fail c 0 1 3 connected\n";
        let report = report(text).unwrap();
        let [a, c] = &report.claims[..] else { panic!("{report:?}") };
        assert_eq!((a.primary.address.to_string().as_str(), a.epoch), ("[::1]:7001", 3));
        assert_eq!(a.ranges, [0..=99, 101..=101]);
        assert_eq!(a.replicas.iter().map(|replica| &*replica.id).collect::<Vec<_>>(), ["b"], "g has no port");
        assert_eq!((c.primary.address.to_string().as_str(), c.epoch), ("c.example:7003", 9));
        assert_eq!((c.primary.health, c.replicas[0].health), (Health::Suspected, Health::Failed));
        assert_eq!(c.replicas[0].address.to_string(), "seed.example:7008");
        let marks: Vec<_> = report.marks.iter().map(|mark| (mark.slot, mark.transfer, &*mark.member)).collect();
        assert_eq!(marks, [(7, Transfer::Migrating, "c"), (102, Transfer::Importing, "c")]);
    }

    #[test]
    fn lines_of_another_shape_are_no_report() {
        for text in [
            "a",
            "a 1:1@1 master - 0 0",
            "a 1:1@1 master - 0 0 x connected 1",
            "a 1@1 master - 0 0 1 connected 1",
            "a 1:99999@1 master - 0 0 1 connected 1",
            "a 1:1@1 master - 0 0 1 connected 5-1",
            "a 1:1@1 master - 0 0 1 connected 16384",
            "a 1:1@1 master - 0 0 1 connected 1-2-3",
            "a 1:1@1 master - 0 0 1 connected [1->-b",
            "a 1:1@1 master - 0 0 1 connected [1-b]",
            "a 1:1@1 master - 0 0 1 connected +1",
        ] {
            assert!(matches!(report(text), Err(ReportError::Shape(_))), "{text:?}");
        }
        assert_eq!(report(""), Err(ReportError::Empty));
        assert_eq!(report("a 1:1@1 myself,master - 0 0 0 connected"), Err(ReportError::Empty));
        assert_eq!(report(&"x".repeat(CLUSTER_NODES_BYTES_MAX + 1)), Err(ReportError::TooLarge));
    }
}
