//! The outcome of an edit: what its caller wants to know, and whether anything has changed.

/// What an edit of a value says, and whether it has changed anything: one that has not is none to those who want to know.
pub(crate) struct Edited<R> {
    pub(super) said: R,
    pub(super) is_change: bool,
}

impl<R> Edited<R> {
    /// What the edit says.
    pub(crate) fn said(self) -> R {
        self.said
    }

    /// The value has changed.
    pub(crate) fn change(said: R) -> Self {
        Self { said, is_change: true }
    }

    /// The value has changed if `is_change` says so.
    pub(crate) fn when(is_change: bool, said: R) -> Self {
        Self { said, is_change }
    }
}

impl<R, E> Edited<Result<R, E>> {
    /// The value has changed unless `edit` fails.
    pub(crate) fn attempt(edit: impl FnOnce() -> Result<R, E>) -> Self {
        let said = edit();
        Self { is_change: said.is_ok(), said }
    }
}

impl Edited<usize> {
    /// So many elements have come or gone.
    pub(crate) fn count(count: usize) -> Self {
        Self { said: count, is_change: count > 0 }
    }
}
