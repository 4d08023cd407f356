//! Requests that an engine in this process has parked, and what it keeps of changes.

use crate::ids::Handle;
use respool_command::{EventClasses, WaitId, Wanted};
use std::collections::BTreeMap;

/// Requests that an embedded engine has parked.
#[derive(Debug, Default)]
pub(crate) struct Parking {
    pub(crate) waits: BTreeMap<WaitId, Handle>,
    /// What the engine keeps of changes.
    pub(crate) wanted: Wanted,
    /// Clients are told of changes, by invalidations or by events.
    pub(crate) is_told: bool,
}

impl Parking {
    /// Whether a request may be plain: it serves no parked request, and no client is told what it changes.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.waits.is_empty() && !self.is_told
    }

    /// What the engine keeps of changes.
    pub(crate) fn wanted(&self) -> Wanted {
        self.wanted
    }

    /// Whether events are published, of which reads have some as well.
    pub(crate) fn publishes_events(&self) -> bool {
        self.wanted.events != EventClasses::NONE
    }

    /// From now on the engine keeps this.
    pub(crate) fn want(&mut self, wanted: Wanted) {
        self.wanted = wanted;
        self.is_told = wanted != Wanted::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_plain_while_none_is_parked_or_told() {
        let mut parking = Parking::default();
        assert!(parking.is_empty() && !parking.publishes_events());
        parking.want(Wanted { keys: true, ..Wanted::default() });
        assert!(!parking.is_empty() && !parking.publishes_events(), "invalidations are no events");
        parking.want(Wanted { events: EventClasses::ALL, ..Wanted::default() });
        assert!(!parking.is_empty() && parking.publishes_events());
        parking.want(Wanted::default());
        assert!(parking.is_empty());
        parking.waits.insert(WaitId(1), Handle { index: 0, generation: 0 });
        assert!(!parking.is_empty(), "any write may serve it");
    }
}
