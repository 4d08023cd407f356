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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_that_were_accepted_outlive_those_on_trial() {
        let named =
            |user: &str| Arc::new(Credentials { username: Some(user.to_owned()), password: "p".to_owned().into() });
        let [first, second] = ["first", "second"].map(named);
        let mut entry = Entry::default();
        entry.keep_former(Some(&first));
        entry.since_us = Some(1);
        entry.keep_former(Some(&second));
        let former = entry.former.expect("they are kept").expect("there were some");
        assert!(Arc::ptr_eq(&former, &first), "those on trial were never accepted");
    }
}
