//! Requests for a server that is none of the nodes: what `migrate` has the program around the proxy send, and what it is told of that.

use crate::ids::Handle;
use crate::mail::Mail;
use respool_connection::WorkerId;
use respool_wire::SecretArgs;
use std::fmt;
use std::sync::Arc;

/// Where keys are taken to, and how.
pub struct TransferTarget {
    /// The server's name or address, as the client wrote it.
    pub host: Vec<u8>,
    /// Its port, as the client wrote it.
    pub port: Vec<u8>,
    /// The database there, which the server may not have.
    pub database: i64,
    /// For how long nothing may move on the connection, in milliseconds.
    pub timeout_ms: u64,
    /// AUTH in words, to be sent first.
    pub auth: Option<SecretArgs>,
}

impl fmt::Debug for TransferTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port, database, timeout_ms, auth } = self;
        write!(f, "{}:{}", host.escape_ascii(), port.escape_ascii())?;
        write!(f, "/{database} within {timeout_ms} ms, auth: {}", auth.is_some())
    }
}

/// Requests for a server. Each has a reply of one line.
pub struct Transfer {
    /// The worker that is told what has come of it.
    pub worker: WorkerId,
    /// The server.
    pub target: Arc<TransferTarget>,
    /// The requests as they are sent, one behind the other.
    pub requests: Vec<u8>,
    /// Where each of them ends.
    pub ends: Vec<usize>,
    /// The worker waits for the end: it is what the hook returns. Otherwise that comes by mail, and the worker goes on.
    pub is_waited_for: bool,
    pub(crate) ticket: Handle,
}

impl fmt::Debug for Transfer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} requests of {} bytes for {:?}", self.ends.len(), self.requests.len(), self.target)
    }
}

impl Transfer {
    /// The mail that says what has come of it.
    pub fn end(&self, outcome: TransferOutcome) -> TransferEnd {
        TransferEnd { ticket: self.ticket, outcome }
    }
}

/// What has come of a transfer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TransferOutcome {
    /// For each request whose reply has come, in order: whether the server has done it.
    pub acknowledged: Vec<bool>,
    /// The first error of the server, without its dash.
    pub refusal: Option<Vec<u8>>,
    /// Why there are no more replies. `None`: all have come.
    pub failure: Option<TransferFailure>,
}

impl From<TransferFailure> for TransferOutcome {
    fn from(failure: TransferFailure) -> Self {
        Self { failure: Some(failure), ..Self::default() }
    }
}

/// Why the replies to a transfer have not all come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferFailure {
    /// There is no connection.
    Connecting,
    /// It was lost, or its time was over, before all was sent.
    Writing,
    /// The same behind that, or what came was no reply.
    Reading,
    /// The server has refused AUTH or SELECT, as `refusal` says. Nothing else was sent.
    Refused,
}

/// Mail: a transfer is over.
#[derive(Clone, Debug)]
pub struct TransferEnd {
    pub(crate) ticket: Handle,
    pub(crate) outcome: TransferOutcome,
}

impl From<TransferEnd> for Mail {
    fn from(end: TransferEnd) -> Self {
        Self::of_feature(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use respool_wire::ArgsBuf;

    #[test]
    fn what_is_shown_of_a_transfer_has_no_password() {
        let auth: ArgsBuf = ["AUTH", "canary"].iter().collect();
        let target = TransferTarget {
            host: b"h".to_vec(),
            port: b"1".to_vec(),
            database: 2,
            timeout_ms: 3,
            auth: Some(auth.as_args().into()),
        };
        assert_eq!(format!("{target:?}"), "h:1/2 within 3 ms, auth: true");
    }
}
