//! What a connection is to the client that has it to itself: how fast it is read, and against whose limits it counts.
//!
//! ```text
//!                 within, read_by                    leave_unread
//!   [no client's] ---------------> [read on] <----------------------> [left unread]
//!       ^                              |              take_unread           |
//!       '------- Lease::default -------'------------------------------------'
//! ```
//!
//! The value knows no connection and no node. Which clients are given a lease, and what becomes of the connection behind it, is
//! decided in [`crate::pool::lending`]; when a client has enough to read, in [`crate::pool::read_pacing`].

use crate::config::Budgets;
use crate::error_text;
use crate::ids::ClientHandle;
use crate::users::quota::{QuotaGuard, UserQuota};

/// What one client, or none, has of a connection. Of a connection that all share it is as it begins.
#[derive(Debug, Default)]
pub(crate) struct Lease {
    /// The client whose reading decides how fast the connection is read.
    reader: Option<ClientHandle>,
    /// It counts among those that a user may have to itself.
    counted: Option<QuotaGuard>,
    is_unread: bool,
    has_others: bool,
    flowed_us: u64,
}

impl Lease {
    /// For a client whose user may have such limits. `Err`: the user has as many connections as it may, as the client is told.
    pub(crate) fn within(quota: Option<&UserQuota>) -> Result<Self, &'static str> {
        let counted = quota.map(|quota| quota.lend().ok_or(error_text::TOO_MANY_LENT)).transpose()?;
        Ok(Self { counted, ..Self::default() })
    }

    /// The same, read as fast as this client reads; `None`: always.
    pub(crate) fn read_by(self, reader: Option<ClientHandle>) -> Self {
        Self { reader, ..self }
    }

    /// The client whose reading decides how fast the connection is read.
    #[inline(always)]
    pub(crate) fn reader(&self) -> Option<ClientHandle> {
        self.reader
    }

    /// Another client's reading decides from now on, or none's.
    pub(crate) fn set_reader(&mut self, reader: Option<ClientHandle>) {
        self.reader = reader;
    }

    /// The user may have another in its place, although the connection still answers what it owes.
    pub(crate) fn count_no_more(&mut self) {
        self.counted = None;
    }

    /// Whether it is not read, because its reader does not read.
    #[inline(always)]
    pub(crate) fn is_unread(&self) -> bool {
        self.is_unread
    }

    /// It is not read until its reader has read more. Returns whether it was read before.
    pub(crate) fn leave_unread(&mut self) -> bool {
        !std::mem::replace(&mut self.is_unread, true)
    }

    /// It is read again. Returns whether it was not.
    pub(crate) fn take_unread(&mut self) -> bool {
        std::mem::take(&mut self.is_unread)
    }

    /// Whether others wait on it behind its reader's replies: it was taken out of sharing.
    pub(crate) fn has_others(&self) -> bool {
        self.has_others
    }

    pub(crate) fn set_has_others(&mut self, has_others: bool) {
        self.has_others = has_others;
    }

    /// How much may be unread by its reader before it is left alone. Where others wait it is read on for longer.
    pub(crate) fn enough(&self, budgets: &Budgets) -> usize {
        if self.has_others { budgets.client_output_hard } else { budgets.client_output_soft }
    }

    /// It was left unread for its reader's sake, brought a part of a large reply, or took one of what waited for it.
    pub(crate) fn note_flow(&mut self, now_us: u64) {
        self.flowed_us = now_us;
    }

    /// Whether something has flowed since then, so that replies could not come before.
    pub(crate) fn has_flowed_since(&self, at_us: u64) -> bool {
        self.flowed_us > at_us
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slab::Slab;
    use crate::testing::config;
    use crate::users::quota::UserLimits;

    fn reader() -> ClientHandle {
        Slab::default().insert(())
    }

    #[test]
    fn a_user_has_no_more_leases_than_its_limit() {
        let quota = UserQuota::with(UserLimits { private_connections: Some(1), ..UserLimits::default() }, None);
        let mut first = Lease::within(Some(&quota)).expect("it is the first").read_by(Some(reader()));
        assert_eq!(Lease::within(Some(&quota)).err(), Some(error_text::TOO_MANY_LENT));
        first.count_no_more();
        assert!(Lease::within(Some(&quota)).is_ok(), "it only answers what it owes");
        assert_eq!(first.reader(), Some(reader()), "and is read for its client meanwhile");
        assert!(Lease::within(None).is_ok(), "a user without limits has as many as there are");
    }

    #[test]
    fn the_end_of_a_lease_returns_its_quota_and_reads_on() {
        let quota = UserQuota::with(UserLimits { private_connections: Some(1), ..UserLimits::default() }, None);
        let mut lease = Lease::within(Some(&quota)).expect("it is the first").read_by(Some(reader()));
        assert!(lease.leave_unread() && !lease.leave_unread(), "it is left alone once");
        assert!(lease.take_unread() && !lease.take_unread(), "and read again once");
        lease.leave_unread();
        lease = Lease::default();
        assert!(lease.reader().is_none() && !lease.is_unread() && Lease::within(Some(&quota)).is_ok());
    }

    #[test]
    fn a_connection_on_which_others_wait_is_read_for_longer() {
        let budgets = Budgets { client_output_soft: 1, client_output_hard: 2, ..config().budgets };
        let mut lease = Lease::default();
        assert_eq!(lease.enough(&budgets), 1);
        lease.set_has_others(true);
        assert_eq!((lease.has_others(), lease.enough(&budgets)), (true, 2));
    }

    #[test]
    fn what_flows_counts_from_when_it_flowed() {
        let mut lease = Lease::default();
        lease.note_flow(5);
        assert!(lease.has_flowed_since(4) && !lease.has_flowed_since(5));
    }
}
