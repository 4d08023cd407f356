//! The outcome of an edit: what its caller wants to know, what has changed, and the event that this is.

use super::events::Event;

/// What an edit has changed of a value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Changed {
    Nothing,
    /// Something that is no change for `WATCH`, as in Redis, though it is a part of what `DUMP` gives.
    Unwatched,
    Value,
}

impl Changed {
    fn value_if(is_change: bool) -> Self {
        if is_change { Self::Value } else { Self::Nothing }
    }
}

/// What an edit of a value says, and what it has changed: one that changed nothing is none to watchers and trackers.
pub(crate) struct Edited<R> {
    pub(super) said: R,
    pub(super) changed: Changed,
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
        self.event.filter(|_| self.changed == Changed::Value)
    }

    /// A change is this event.
    pub(crate) fn named(self, event: Event) -> Self {
        Self { event: Some(event), ..self }
    }

    /// The value has changed.
    pub(crate) fn change(said: R) -> Self {
        Self { said, changed: Changed::Value, event: None }
    }

    /// The value has changed if `is_change` says so.
    pub(crate) fn when(is_change: bool, said: R) -> Self {
        Self { said, changed: Changed::value_if(is_change), event: None }
    }

    /// If `is_change` says so, something has changed that is no change for `WATCH`.
    pub(crate) fn unwatched(is_change: bool, said: R) -> Self {
        Self { said, changed: if is_change { Changed::Unwatched } else { Changed::Nothing }, event: None }
    }
}

impl<R, E> Edited<Result<R, E>> {
    /// The value has changed unless `edit` fails.
    pub(crate) fn attempt(edit: impl FnOnce() -> Result<R, E>) -> Self {
        let said = edit();
        Self { changed: Changed::value_if(said.is_ok()), said, event: None }
    }
}

impl Edited<usize> {
    /// So many elements have come or gone.
    pub(crate) fn count(count: usize) -> Self {
        Self { said: count, changed: Changed::value_if(count > 0), event: None }
    }
}
