//! The ids of classes of lanes, and what is kept for each of them.
//!
//! A class is the state that users of a lane share ([`crate::pool::key_id::LaneKey`]), under a number. Only what is kept for each class makes
//! an id, when there is one class more. A number that is free is another class's later.

use crate::auth::quota::UserQuota;
use crate::nodes::id::{NodeId, PerNode};
use crate::session::id::ClientHandle;
use respool_wire::Protocol;
use std::fmt::{Display, Formatter};
use std::ops::{Index, IndexMut};
use std::sync::Arc;

/// The number of a class of lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct LaneKeyId(u16);

impl LaneKeyId {
    /// The first, in which every client begins.
    pub(crate) const PLAIN: Self = Self(0);

    /// Where it stands among what is kept for each class.
    #[inline(always)]
    pub(super) const fn place(self) -> usize {
        self.0 as usize
    }
}

impl Display for LaneKeyId {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        Display::fmt(&self.0, f)
    }
}

/// A class that is in use for as long as this is kept: its number is not another class's meanwhile.
#[derive(Clone, Debug)]
pub(crate) struct LaneKeyUse {
    class: LaneKeyId,
    _held: Arc<()>,
}

impl LaneKeyUse {
    pub(super) fn new(class: LaneKeyId, held: &Arc<()>) -> Self {
        Self { class, _held: Arc::clone(held) }
    }

    #[cfg(test)]
    pub(crate) fn of_plain() -> Self {
        Self { class: LaneKeyId::PLAIN, _held: Arc::default() }
    }

    pub(crate) fn id(&self) -> LaneKeyId {
        self.class
    }
}

/// Something for each class.
#[derive(Debug)]
pub(crate) struct PerKey<T>(Vec<T>);

impl<T> Default for PerKey<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> PerKey<T> {
    /// For the first class.
    pub(super) fn new(of_first: T) -> Self {
        Self(vec![of_first])
    }

    /// For one class more. `None`: there are no more numbers.
    pub(super) fn push(&mut self, of: T) -> Option<LaneKeyId> {
        let id = LaneKeyId(u16::try_from(self.0.len()).ok()?);
        self.0.push(of);
        Some(id)
    }

    /// For as many classes as `other` has.
    pub(super) fn resize_as<U>(&mut self, other: &PerKey<U>)
    where
        T: Default,
    {
        self.0.resize_with(other.0.len(), T::default);
    }

    /// What there is for a class; made, with that for all classes before it, if there is nothing.
    pub(crate) fn get_or_default(&mut self, class: LaneKeyId) -> &mut T
    where
        T: Default,
    {
        if self.0.len() <= class.place() {
            self.0.resize_with(class.place() + 1, T::default);
        }
        &mut self.0[class.place()]
    }

    pub(crate) fn get(&self, class: LaneKeyId) -> Option<&T> {
        self.0.get(class.place())
    }

    pub(crate) fn get_mut(&mut self, class: LaneKeyId) -> Option<&mut T> {
        self.0.get_mut(class.place())
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = LaneKeyId> + use<T> {
        (0..self.0.len()).map(|place| LaneKeyId(place as u16))
    }

    pub(crate) fn iter(&self) -> std::slice::Iter<'_, T> {
        self.0.iter()
    }

    pub(super) fn iter_mut(&mut self) -> std::slice::IterMut<'_, T> {
        self.0.iter_mut()
    }

    /// All with their classes.
    pub(super) fn entries(&self) -> impl Iterator<Item = (LaneKeyId, &T)> {
        self.ids().zip(&self.0)
    }

    /// All with their classes.
    pub(super) fn into_entries(self) -> impl Iterator<Item = (LaneKeyId, T)> {
        self.ids().zip(self.0)
    }

    /// The first class of which `is_fit` holds.
    pub(super) fn position(&self, is_fit: impl FnMut(&T) -> bool) -> Option<LaneKeyId> {
        self.0.iter().position(is_fit).map(|place| LaneKeyId(place as u16))
    }
}

impl<T> Index<LaneKeyId> for PerKey<T> {
    type Output = T;

    #[inline(always)]
    fn index(&self, class: LaneKeyId) -> &T {
        &self.0[class.place()]
    }
}

impl<T> IndexMut<LaneKeyId> for PerKey<T> {
    #[inline(always)]
    fn index_mut(&mut self, class: LaneKeyId) -> &mut T {
        &mut self.0[class.place()]
    }
}

/// The session state that a lane's users share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LaneKey {
    pub(crate) database: u32,
    pub(crate) protocol: Protocol,
    /// The node user: 0 for the credentials that each node is configured with, else one of the speakers, counted from 1.
    pub(crate) speaker: u16,
}

/// Whose a class of lanes is.
#[derive(Debug)]
pub(crate) enum KeyOwner {
    /// Shared by all clients with the same database, dialect and name at the nodes.
    Shared,
    /// The same, for scripts beside this class, see [`crate::scripts::lanes`].
    Scripts { beside: LaneKeyId },
    /// One client's.
    Client(Box<Owner>),
    /// The number is free.
    Free,
}

/// A client with lanes of its own.
#[derive(Debug)]
pub(crate) struct Owner {
    pub(crate) session: ClientHandle,
    /// The class that it would be in if it shared.
    pub(crate) base: LaneKeyId,
    /// The nodes to which it has its own; `None`: all.
    pub(crate) nodes: Option<Vec<NodeId>>,
    /// Its user's bounds.
    pub(crate) allowance: Option<Arc<UserQuota>>,
    /// If nodes tell it of changed keys: by node, the request that has them do so; `None` where that is not known yet.
    pub(crate) tracking: Option<PerNode<Option<Arc<[u8]>>>>,
}

impl Owner {
    pub(crate) fn has(&self, node: NodeId) -> bool {
        self.nodes.as_ref().is_none_or(|nodes| nodes.contains(&node))
    }
}
