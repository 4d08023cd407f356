//! The nodes of a cluster, as one of them tells.

use std::sync::Arc;

use respool_connection::Endpoint;
use respool_wire::Value;

use crate::ask::ask;
use crate::target::{Node, Target, tags};

impl Target {
    /// Asks the one node of this target which nodes its cluster has, and takes these: the masters, each with tags of the slots that
    /// it serves.
    ///
    /// # Errors
    /// It is no cluster, or not there.
    pub fn find_cluster(&mut self) -> Result<(), String> {
        let seed = Arc::clone(&self.nodes.first().ok_or("a cluster needs a node")?.endpoint);
        let replies = ask(&seed, &self.identity, &self.tls, &[&[b"CLUSTER", b"SLOTS"]])
            .map_err(|why| format!("the nodes of the cluster cannot be asked of {seed}: {why}"))?;
        self.nodes = match replies.first() {
            Some(Value::Array(ranges)) => masters(ranges, &seed),
            Some(Value::Error(words)) => return Err(format!("{seed} says {}", String::from_utf8_lossy(words))),
            _ => Vec::new(),
        };
        if self.nodes.is_empty() { Err(format!("{seed} serves no slots of a cluster")) } else { Ok(()) }
    }
}

/// The masters of `CLUSTER SLOTS`: for each range of slots its first and last slot, and its master's host and port in front of the
/// replicas'.
fn masters(ranges: &[Value], seed: &Endpoint) -> Vec<Node> {
    let all = tags();
    let mut masters: Vec<(String, u16, Vec<[u8; 5]>)> = Vec::new();
    for range in ranges {
        let Value::Array(range) = range else { continue };
        let [Value::Integer(first), Value::Integer(last), Value::Array(master), ..] = &range[..] else { continue };
        let [host, Value::Integer(port), ..] = &master[..] else { continue };
        let host = match host {
            Value::Bulk(host) if !host.is_empty() => String::from_utf8_lossy(host).into_owned(),
            // The node does not know its own name: it is the one that was asked.
            _ => host_of(seed),
        };
        let (Ok(first), Ok(last), Ok(port)) = (usize::try_from(*first), usize::try_from(*last), u16::try_from(*port))
        else {
            continue;
        };
        let tags = all.get(first..=last).unwrap_or_default();
        match masters.iter_mut().find(|master| (&master.0, master.1) == (&host, port)) {
            Some(master) => master.2.extend_from_slice(tags),
            None => masters.push((host, port, tags.to_vec())),
        }
    }
    let node = |(host, port, tags): (String, u16, Vec<[u8; 5]>)| Node {
        endpoint: Arc::new(beside(seed, host, port)),
        tags: tags.into(),
    };
    masters.into_iter().filter(|(.., tags)| !tags.is_empty()).map(node).collect()
}

fn host_of(seed: &Endpoint) -> String {
    match seed {
        Endpoint::Tcp { host, .. } | Endpoint::Tls { host, .. } => host.clone(),
        Endpoint::Unix { .. } | Endpoint::Embedded { .. } => "127.0.0.1".to_owned(),
    }
}

/// Another node that is reached in the same way. Its certificate is for its own host, unless the seed's is for another name than the
/// seed's host.
fn beside(seed: &Endpoint, host: String, port: u16) -> Endpoint {
    match seed {
        Endpoint::Tls { host: seed_host, server_name, profile, .. } => {
            let server_name = if server_name == seed_host { host.clone() } else { server_name.clone() };
            Endpoint::Tls { host, port, server_name, profile: profile.clone() }
        }
        _ => Endpoint::Tcp { host, port },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use respool_route::slot;

    #[test]
    fn a_nodes_certificate_is_for_its_host_unless_a_name_is_given() {
        let name_of = |seed_name: &str| {
            let (host, profile) = ("seed".to_owned(), "bench".to_owned());
            let seed = Endpoint::Tls { host, port: 1, server_name: seed_name.to_owned(), profile };
            match beside(&seed, "other".to_owned(), 2) {
                Endpoint::Tls { host, port: 2, server_name, .. } if host == "other" => server_name,
                node => panic!("{node}"),
            }
        };
        assert_eq!([name_of("seed"), name_of("redis.example")], ["other", "redis.example"]);
    }

    #[test]
    fn masters_have_tags_of_their_slots_alone() {
        let reply = "*3\r\n*3\r\n:0\r\n:5460\r\n*2\r\n$9\r\n127.0.0.1\r\n:7000\r\n\
                     *4\r\n:5461\r\n:5461\r\n*2\r\n$0\r\n\r\n:7001\r\n*2\r\n$9\r\n127.0.0.1\r\n:7009\r\n\
                     *3\r\n:5462\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:7000\r\n";
        let Ok(Value::Array(ranges)) = Value::parse(reply.as_bytes()) else { panic!("it is an array") };
        let nodes = masters(&ranges, &Endpoint::Tcp { host: "seed".to_owned(), port: 1 });
        let names: Vec<String> = nodes.iter().map(|node| node.endpoint.to_string()).collect();
        assert_eq!(names, ["127.0.0.1:7000", "seed:7001"]);
        assert_eq!(nodes.iter().map(|node| node.tags.len()).collect::<Vec<_>>(), [16383, 1]);
        assert_eq!(slot(&nodes[1].tags[0][1..4]), 5461);
    }
}
