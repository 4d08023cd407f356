//! The committed list of differences.

use std::cell::RefCell;
use std::collections::BTreeSet;

/// The list, and which of its entries were needed.
pub(crate) struct Differences {
    entries: Vec<(&'static str, &'static str)>,
    needed: RefCell<BTreeSet<(&'static str, &'static str)>>,
}

impl Differences {
    /// The entries of one kind. A line is `kind | what | reason`; lines that begin with `#` are comments.
    pub(crate) fn of(kind: &str) -> Self {
        let entries = include_str!("../data/differences.txt")
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
            .filter_map(|line| {
                let mut fields = line.splitn(3, " | ").map(str::trim);
                let (Some(of), Some(what), Some(reason)) = (fields.next(), fields.next(), fields.next()) else {
                    panic!("a difference is written `kind | what | reason`: {line}");
                };
                assert!(reason.len() >= 20, "a difference needs a reason: {line}");
                (of == kind).then_some((what, reason))
            })
            .collect();
        Self { entries, needed: RefCell::default() }
    }

    /// Whether `what` is listed. Remembers that it was needed.
    pub(crate) fn has(&self, what: &str) -> bool {
        let found = self.entries.iter().find(|(listed, _)| *listed == what);
        self.needed.borrow_mut().extend(found);
        found.is_some()
    }

    /// Panics if an entry was never needed: the list would rot.
    pub(crate) fn assert_all_needed(&self) {
        let unneeded: Vec<_> = self.entries.iter().filter(|entry| !self.needed.borrow().contains(*entry)).collect();
        assert!(unneeded.is_empty(), "listed differences that are none: {unneeded:?}");
    }
}
