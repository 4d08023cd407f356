//! What a session remembers for features: of connections that serve its client for good, and of what the client wanted it to be.

/// A client has connections for good. They are in [`crate::dedicated`], which alone writes this.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DedicatedMark {
    pub(crate) role: DedicatedRole,
    /// Bytes held.
    pub(crate) bytes: usize,
}

/// What such connections make of their client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DedicatedRole {
    /// Nothing yet.
    None,
    /// It is shown what nodes are asked.
    Monitors,
    /// It follows a node.
    Follows,
}

/// What a client wanted its session to be, and what it is not: a user, a database, a dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WantedState {
    Database = 1,
    User = 2,
    Dialect = 4,
}

/// Those of them that a session has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct UnmetStates(pub(crate) u8);

impl UnmetStates {
    pub(crate) fn has(self, wish: WantedState) -> bool {
        self.0 & wish as u8 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::{UnmetStates, WantedState};

    #[test]
    fn a_state_that_is_not_met_says_nothing_of_the_others() {
        let unmet = UnmetStates(WantedState::Database as u8 | WantedState::Dialect as u8);
        let has = [WantedState::Database, WantedState::User, WantedState::Dialect].map(|wanted| unmet.has(wanted));
        assert_eq!(has, [true, false, true]);
        assert!(!UnmetStates::default().has(WantedState::User));
    }
}
