//! A node whose entry into service is being tried.

use respool_connection::Credentials;
use std::sync::Arc;

/// Whether a node has accepted the configured credentials and address.
#[derive(Clone, Debug, Default)]
pub(crate) struct Entry {
    /// Since when they are on trial; `None`: they have been accepted.
    pub(crate) since_us: Option<u64>,
    /// When the credentials were configured.
    pub(crate) told_us: u64,
    /// The refusal of the credentials has been logged.
    pub(crate) is_told: bool,
    /// The credentials before those on trial, unless the node has refused them.
    pub(crate) former: Option<Option<Arc<Credentials>>>,
}

impl Entry {
    /// The credentials of a node are replaced by others. If they were on trial themselves, the former ones stay.
    pub(crate) fn keep_former(&mut self, credentials: Option<&Arc<Credentials>>) {
        if self.since_us.is_none() {
            self.former = Some(credentials.cloned());
        }
    }
}
