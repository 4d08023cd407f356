//! The groups of a stream by name, with the sum of the bytes that they hold: every change of one goes through here.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};

use super::group::Group;

/// See the module documentation.
#[derive(Clone, Default)]
pub(crate) struct Groups {
    by_name: BTreeMap<Box<[u8]>, Group>,
    /// Bytes that all groups and their names hold from the allocator.
    bytes: usize,
}

/// A group that is changed. What it holds is counted when the change ends.
pub(crate) struct GroupMut<'g> {
    group: &'g mut Group,
    bytes: &'g mut usize,
    before: usize,
}

impl<'g> GroupMut<'g> {
    fn new(group: &'g mut Group, bytes: &'g mut usize) -> Self {
        let before = group.memory_bytes();
        Self { group, bytes, before }
    }
}

impl Deref for GroupMut<'_> {
    type Target = Group;

    fn deref(&self) -> &Group {
        self.group
    }
}

impl DerefMut for GroupMut<'_> {
    fn deref_mut(&mut self) -> &mut Group {
        self.group
    }
}

impl Drop for GroupMut<'_> {
    fn drop(&mut self) {
        *self.bytes = *self.bytes + self.group.memory_bytes() - self.before;
    }
}

/// The bytes of a group and its name.
fn bytes_of(name: &[u8], group: &Group) -> usize {
    name.len() + group.memory_bytes()
}

impl Groups {
    pub(crate) fn len(&self) -> usize {
        self.by_name.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    pub(crate) fn get(&self, name: &[u8]) -> Option<&Group> {
        self.by_name.get(name)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], &Group)> {
        self.by_name.iter().map(|(name, group)| (&**name, group))
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &Group> {
        self.by_name.values()
    }

    /// A group, to be changed.
    pub(crate) fn get_mut(&mut self, name: &[u8]) -> Option<GroupMut<'_>> {
        Some(GroupMut::new(self.by_name.get_mut(name)?, &mut self.bytes))
    }

    /// Changes all groups, in the order of their names.
    pub(crate) fn edit_all(&mut self, mut edit: impl FnMut(&mut Group)) {
        for group in self.by_name.values_mut() {
            edit(&mut GroupMut::new(group, &mut self.bytes));
        }
    }

    /// Adds a group; whether there was none of that name.
    pub(crate) fn insert(&mut self, name: Box<[u8]>, group: Group) -> bool {
        self.bytes += bytes_of(&name, &group);
        let name_bytes = name.len();
        let old = self.by_name.insert(name, group);
        if let Some(old) = &old {
            self.bytes -= name_bytes + old.memory_bytes();
        }
        old.is_none()
    }

    /// Removes a group; whether there was one.
    pub(crate) fn remove(&mut self, name: &[u8]) -> bool {
        let removed = self.by_name.remove(name);
        if let Some(group) = &removed {
            self.bytes -= bytes_of(name, group);
        }
        removed.is_some()
    }

    /// Frees about `budget` parts of the groups of a deleted stream; returns how many.
    pub(super) fn drain(&mut self, budget: usize) -> usize {
        let mut freed = 0;
        while freed < budget
            && let Some(mut last) = self.by_name.last_entry()
        {
            let mut group = GroupMut::new(last.get_mut(), &mut self.bytes);
            freed += group.drain(budget - freed);
            let is_drained = group.is_drained();
            drop(group);
            if !is_drained {
                break;
            }
            let (name, group) = last.remove_entry();
            self.bytes -= bytes_of(&name, &group);
            freed += 1;
        }
        freed
    }

    /// Bytes held from the allocator.
    pub(super) fn memory_bytes(&self) -> usize {
        self.bytes + self.node_bytes()
    }

    fn node_bytes(&self) -> usize {
        // Leaves of the ordered map are about half full.
        self.by_name.len() * 2 * size_of::<(Box<[u8]>, Group)>()
    }

    /// As [`Groups::memory_bytes`], counted anew.
    #[cfg(debug_assertions)]
    pub(super) fn walked_bytes(&self) -> usize {
        self.iter().map(|(name, group)| name.len() + group.walked_bytes()).sum::<usize>() + self.node_bytes()
    }
}
