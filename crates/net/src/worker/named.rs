//! The host name of one connection: whether the answers for it still have the connection's address.

use crate::resolver::Name;
use std::net::IpAddr;
use std::sync::Arc;

/// The host name by which a connection was dialled, and its address.
pub(super) struct Named {
    pub(super) name: Arc<Name>,
    pub(super) ip: IpAddr,
    /// Answers in a row without this address, since the machine was last told of it.
    pub(super) missing: u8,
}

impl Named {
    pub(super) fn new(name: Arc<Name>, ip: IpAddr) -> Self {
        Self { name, ip, missing: 0 }
    }

    /// Counts an answer.
    pub(super) fn hear(&mut self, is_among: bool) {
        self.missing = if is_among { 0 } else { self.missing.saturating_add(1) };
    }

    /// Whether the address has been missing from so many answers.
    pub(super) fn is_gone(&self, enough: u8) -> bool {
        self.missing >= enough
    }
}
