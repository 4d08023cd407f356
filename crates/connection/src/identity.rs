//! The session state of a connection to a node, and the handshake that brings it about.

use crate::{Pacing, Step};
use respool_wire::Protocol;
use std::fmt;
use std::sync::Arc;
use zeroize::Zeroizing;

/// What a node is told to let us in. Never printed, and overwritten when it is given up.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The user's name; `None` for the password of the default user.
    pub username: Option<String>,
    /// The password.
    pub password: Zeroizing<String>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("username", &self.username).finish_non_exhaustive()
    }
}

/// What a client shows of itself in `CLIENT LIST` of the node. Names are without spaces and line ends, or the node refuses them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientInfo {
    /// The connection's name.
    pub name: Option<String>,
    /// The client library's name.
    pub library: Option<String>,
    /// The client library's version.
    pub version: Option<String>,
}

/// The session state of a connection to a node. Two requests may share a connection only if they need the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// The selected database.
    pub database: u32,
    /// The dialect.
    pub protocol: Protocol,
    /// The credentials at the node.
    pub credentials: Option<Arc<Credentials>>,
    /// The whole request by which the node is to tell of changed keys, if it is.
    pub tracking: Option<Arc<[u8]>>,
    /// The node is asked what it is.
    pub is_asked: bool,
    /// What the node shows of the client, if anything.
    pub client: Option<Arc<ClientInfo>>,
    /// The node may be a replica in a cluster, and serves reads nevertheless.
    pub is_readonly: bool,
    /// Whether the steps of the handshake wait for each other.
    pub pacing: Pacing,
}

impl Identity {
    /// The handshake after which a connection has this state.
    pub fn steps(&self) -> Vec<Step> {
        let client = self.client.as_deref();
        let info =
            |attribute: &'static str, value: Option<&String>| Some(Step::SetInfo { attribute, value: value?.clone() });
        let steps = [
            self.credentials.clone().map(Step::Auth),
            (self.protocol == Protocol::Resp3).then_some(Step::Hello),
            self.is_asked.then_some(Step::Describe),
            client.and_then(|client| client.name.clone()).map(Step::SetName),
            client.and_then(|client| info("LIB-NAME", client.library.as_ref())),
            client.and_then(|client| info("LIB-VER", client.version.as_ref())),
            (self.database != 0).then_some(Step::Select(self.database)),
            self.is_readonly.then_some(Step::ReadOnly),
            self.tracking.clone().map(Step::Track),
            Some(Step::Ping),
        ];
        steps.into_iter().flatten().collect()
    }
}
