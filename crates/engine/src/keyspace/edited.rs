//! The outcome of an edit: what its caller wants to know, whether anything has changed, and the event that this is.

use super::events::Event;

/// What an edit of a value says, and whether it has changed anything: one that has not is none to those who want to know.
pub(crate) struct Edited<R> {
    pub(super) said: R,
    pub(super) is_change: bool,
    /// What a change is called, unless the command tells of it itself.
    pub(super) event: Option<Event>,
}

impl<R> Edited<R> {
    /// What the edit says.
    pub(crate) fn said(self) -> R {
        self.said
    }

    /// The event that this is, if anything has changed.
    pub(crate) fn event(&self) -> Option<Event> {
        self.event.filter(|_| self.is_change)
    }

    /// A change is this event.
    pub(crate) fn named(self, event: Event) -> Self {
        Self { event: Some(event), ..self }
    }

    /// The value has changed.
    pub(crate) fn change(said: R) -> Self {
        Self { said, is_change: true, event: None }
    }

    /// The value has changed if `is_change` says so.
    pub(crate) fn when(is_change: bool, said: R) -> Self {
        Self { said, is_change, event: None }
    }
}

impl<R, E> Edited<Result<R, E>> {
    /// The value has changed unless `edit` fails.
    pub(crate) fn attempt(edit: impl FnOnce() -> Result<R, E>) -> Self {
        let said = edit();
        Self { is_change: said.is_ok(), said, event: None }
    }
}

impl Edited<usize> {
    /// So many elements have come or gone.
    pub(crate) fn count(count: usize) -> Self {
        Self { said: count, is_change: count > 0, event: None }
    }
}
