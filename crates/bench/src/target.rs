//! Where requests go: one server, or the nodes of a cluster.

use std::sync::Arc;

use respool_connection::{ClientInfo, Credentials, Endpoint, Identity, Pacing};
use respool_net::tls::TlsClients;
use respool_route::{SLOTS, slot};
use respool_wire::Protocol;

/// Where requests go, and how.
#[derive(Clone, Debug)]
pub struct Target {
    /// As results call it.
    pub name: String,
    /// The servers. Connections are spread evenly over them.
    pub nodes: Vec<Node>,
    /// What connections are told before the first request.
    pub identity: Identity,
    /// What TLS is dialled with.
    pub tls: Arc<TlsClients>,
    /// Processes whose processor time and memory is part of the result.
    pub pids: Vec<u32>,
}

/// One server.
#[derive(Clone, Debug)]
pub struct Node {
    /// Where it is.
    pub endpoint: Arc<Endpoint>,
    /// What replaces `{tag}` in keys that are to go there; empty where there is no cluster.
    pub tags: Arc<[[u8; 5]]>,
}

/// What a connection is told.
#[derive(Clone, Debug, Default)]
pub struct Session {
    /// The user; needs a password.
    pub username: Option<String>,
    /// The password.
    pub password: Option<String>,
    /// The database.
    pub database: u32,
    /// RESP3 instead of RESP2.
    pub is_resp3: bool,
    /// CLIENT TRACKING ON.
    pub is_tracked: bool,
}

impl Session {
    /// The same as a handshake.
    pub fn identity(&self) -> Identity {
        let credentials = self.password.as_ref().map(|password| {
            Arc::new(Credentials { username: self.username.clone(), password: password.clone().into() })
        });
        Identity {
            database: self.database,
            protocol: if self.is_resp3 { Protocol::Resp3 } else { Protocol::Resp2 },
            credentials,
            tracking: self.is_tracked.then(|| crate::template::request(&[b"CLIENT", b"TRACKING", b"ON"]).into()),
            client: None::<Arc<ClientInfo>>,
            pacing: Pacing::Pipelined,
            ..Identity::default()
        }
    }
}

impl Target {
    /// One server.
    pub fn one(name: impl Into<String>, endpoint: Endpoint, identity: Identity) -> Self {
        let nodes = vec![Node { endpoint: Arc::new(endpoint), tags: Arc::new([]) }];
        Self { name: name.into(), nodes, identity, tls: Arc::default(), pids: Vec::new() }
    }
}

/// For every slot a tag of three letters in braces whose hash it is.
pub fn tags() -> Vec<[u8; 5]> {
    const LETTERS: &[u8] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    let mut tags = vec![None; usize::from(SLOTS)];
    for a in LETTERS {
        for b in LETTERS {
            for c in LETTERS {
                tags[usize::from(slot(&[*a, *b, *c]))].get_or_insert([b'{', *a, *b, *c, b'}']);
            }
        }
    }
    tags.into_iter().map(|tag| tag.expect("238,328 words of three letters have every hash of 16,384")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_slot_has_a_tag_of_its_own() {
        for (number, tag) in tags().iter().enumerate() {
            assert_eq!(usize::from(slot(&tag[1..4])), number);
        }
    }
}
