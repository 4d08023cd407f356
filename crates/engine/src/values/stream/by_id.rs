//! The listpacks of a stream by the ids of their first entries, side by side: streams grow at the end and are trimmed at the beginning, so
//! hardly anything moves, and no room is left between them as in the leaves of a tree that is filled in order.

use std::collections::VecDeque;

use super::id::Id;

/// Room for fewer is not given back.
const ROOM_KEPT: usize = 64;

/// Values by their ids, in the order of these.
#[derive(Clone)]
pub(super) struct ById<V>(VecDeque<(Id, V)>);

impl<V> ById<V> {
    pub(super) fn new() -> Self {
        Self(VecDeque::new())
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// How many there is room for.
    pub(super) fn capacity(&self) -> usize {
        self.0.capacity()
    }

    /// How many have a lower id.
    pub(super) fn before(&self, id: Id) -> usize {
        self.0.partition_point(|(other, _)| *other < id)
    }

    /// How many have this id or a lower one.
    pub(super) fn up_to(&self, id: Id) -> usize {
        self.0.partition_point(|(other, _)| *other <= id)
    }

    /// The id of the one that so many are before.
    pub(super) fn id_at(&self, place: usize) -> Option<Id> {
        self.0.get(place).map(|(id, _)| *id)
    }

    /// Puts a value in its place. There is none with this id.
    pub(super) fn insert(&mut self, id: Id, value: V) {
        self.0.insert(self.before(id), (id, value));
    }

    /// Takes the value of an id out.
    pub(super) fn remove(&mut self, id: Id) -> Option<V> {
        let place = self.before(id);
        if self.id_at(place) != Some(id) {
            return None;
        }
        let (_, value) = self.0.remove(place)?;
        if self.0.capacity() > ROOM_KEPT && self.len() * 4 < self.0.capacity() {
            self.0.shrink_to(self.len() * 2);
        }
        Some(value)
    }

    /// Takes the first value out.
    pub(super) fn pop_first(&mut self) -> Option<V> {
        self.0.pop_front().map(|(_, value)| value)
    }

    /// The value that so many are before.
    pub(super) fn at_mut(&mut self, place: usize) -> Option<(Id, &mut V)> {
        self.0.get_mut(place).map(|(id, value)| (*id, value))
    }

    /// All from the one on that so many are before.
    pub(super) fn from(&self, place: usize) -> impl DoubleEndedIterator<Item = (Id, &V)> + '_ {
        self.0.range(place.min(self.len())..).map(|(id, value)| (*id, value))
    }

    /// So many of the first.
    pub(super) fn first(&self, count: usize) -> impl DoubleEndedIterator<Item = (Id, &V)> + '_ {
        self.0.range(..count.min(self.len())).map(|(id, value)| (*id, value))
    }

    /// All values.
    pub(super) fn values(&self) -> impl Iterator<Item = &V> + '_ {
        self.0.iter().map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stay_in_the_order_of_their_ids() {
        let id = |ms| Id { ms, seq: 0 };
        let mut values = ById::new();
        for ms in [5, 1, 9, 3, 7] {
            values.insert(id(ms), ms);
        }
        assert_eq!(
            (values.before(id(5)), values.up_to(id(5)), values.before(id(6)), values.up_to(id(99))),
            (2, 3, 3, 5)
        );
        assert_eq!(values.from(0).map(|(_, ms)| *ms).collect::<Vec<_>>(), [1, 3, 5, 7, 9]);
        assert_eq!(values.first(2).rev().map(|(_, ms)| *ms).collect::<Vec<_>>(), [3, 1]);
        assert_eq!((values.from(9).count(), values.first(9).count()), (0, 5));
        assert_eq!((values.remove(id(4)), values.remove(id(5)), values.remove(id(5))), (None, Some(5), None));
        assert_eq!((values.id_at(2), values.id_at(4), values.pop_first()), (Some(id(7)), None, Some(1)));
        assert_eq!(values.values().sum::<u64>(), 19);
        if let Some((at, ms)) = values.at_mut(0) {
            *ms += at.ms;
        }
        assert_eq!(values.values().sum::<u64>(), 22);
    }

    #[test]
    fn room_that_is_not_needed_any_more_is_given_back() {
        let id = |ms| Id { ms, seq: 0 };
        let mut values = ById::new();
        (0..1_000).for_each(|ms| values.insert(id(ms), ()));
        (0..990).for_each(|ms| assert!(values.remove(id(ms)).is_some()));
        assert!(values.capacity() <= ROOM_KEPT, "room for {}", values.capacity());
        assert_eq!(values.len(), 10);
    }
}
