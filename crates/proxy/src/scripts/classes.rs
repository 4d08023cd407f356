//! Which kinds of connections are for scripts.

use crate::ids::{LaneKeyId, PerKey};

/// How many classes for scripts are beside one class.
const WAYS: usize = 2;

/// Classes for scripts by the class beside which they are.
#[derive(Debug, Default)]
pub(crate) struct ScriptClasses {
    pub(crate) beside: PerKey<[Option<LaneKeyId>; WAYS]>,
}

impl ScriptClasses {
    /// There are none beside a class any more.
    pub(crate) fn forget(&mut self, class: LaneKeyId) {
        self.beside.get_mut(class).into_iter().for_each(|ways| *ways = Default::default());
    }
}
