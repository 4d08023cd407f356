//! Which member has a slot: an immutable table that requests are routed by without a lock.
//!
//! A change makes a new map. Two maps are equal if every slot has the same members under both, however they came about.

use std::sync::Arc;

use super::address::Address;
use super::report::{Health, Member};
use crate::SLOTS;
use crate::limits::CLUSTER_MEMBERS_MAX;

/// A primary and its replicas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shard {
    /// The member that has the slots.
    pub primary: Member,
    /// Those that copy it, in the order of their addresses.
    pub replicas: Box<[Member]>,
}

/// The number of a shard in one map. It means nothing in another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShardIndex(u16);

impl ShardIndex {
    /// The number as an index into lists that run parallel to [`SlotMap::shards`].
    pub const fn get(self) -> usize {
        self.0 as usize
    }
}

/// What answers requests that only read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadFrom<'z> {
    /// The primary.
    #[default]
    Primary,
    /// A replica that is up, else the primary.
    Replica,
    /// A member in this availability zone, replicas first, else as [`ReadFrom::Replica`].
    Zone(&'z str),
}

/// For each slot its shard, if it has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotMap {
    /// [`NO_SHARD`] where no member is known.
    table: Box<[u16]>,
    /// In the order of their first slots. Each has one at least.
    shards: Box<[Arc<Shard>]>,
    covered: usize,
}

const NO_SHARD: u16 = u16::MAX;

impl SlotMap {
    /// Numbers the shards that `owner` names for slots, by their place in `shards`; the others are dropped.
    pub(super) fn build(mut shards: Vec<Arc<Shard>>, owner: impl Fn(u16) -> Option<usize>) -> Self {
        let mut numbers = vec![NO_SHARD; shards.len()];
        let mut order = Vec::new();
        let mut table = vec![NO_SHARD; usize::from(SLOTS)].into_boxed_slice();
        for (slot, entry) in (0..SLOTS).zip(&mut table) {
            let Some(place) = owner(slot) else { continue };
            if numbers[place] == NO_SHARD {
                numbers[place] = order.len() as u16;
                order.push(place);
            }
            *entry = numbers[place];
        }
        let covered = table.iter().filter(|shard| **shard != NO_SHARD).count();
        for shard in &mut shards {
            if !shard.replicas.is_sorted_by_key(|replica| &replica.address) {
                Arc::make_mut(shard).replicas.sort_by(|left, right| left.address.cmp(&right.address));
            }
        }
        let shards = order.into_iter().map(|place| Arc::clone(&shards[place])).collect();
        Self { table, shards, covered }
    }

    /// The number of the shard that has `slot`. Panics beyond the last slot.
    #[inline]
    pub fn index_of(&self, slot: u16) -> Option<ShardIndex> {
        let shard = self.table[usize::from(slot)];
        (shard != NO_SHARD).then_some(ShardIndex(shard))
    }

    /// The shard that has `slot`. Panics beyond the last slot.
    #[inline]
    pub fn shard_of(&self, slot: u16) -> Option<&Arc<Shard>> {
        self.shards.get(usize::from(self.table[usize::from(slot)]))
    }

    /// All shards that have slots, in the order of their first ones.
    pub fn shards(&self) -> &[Arc<Shard>] {
        &self.shards
    }

    /// How many slots have a shard.
    pub fn covered(&self) -> usize {
        self.covered
    }

    /// Whether every slot has a shard.
    pub fn is_complete(&self) -> bool {
        self.covered == usize::from(SLOTS)
    }

    /// All members, the primary of each shard before its replicas.
    pub fn members(&self) -> impl Iterator<Item = &Member> {
        self.shards.iter().flat_map(|shard| std::iter::once(&shard.primary).chain(&shard.replicas))
    }

    /// The shard that a member belongs to.
    pub(super) fn shard_with(&self, address: &Address) -> Option<usize> {
        let has = |shard: &Arc<Shard>| shard.members().any(|member| member.address == *address);
        // A member that is now a primary may still be listed as another one's replica.
        let is_led = |shard: &Arc<Shard>| shard.primary.address == *address;
        self.shards.iter().position(is_led).or_else(|| self.shards.iter().position(has))
    }

    /// The map in which `slot` is at `to`, as a node has said with `MOVED`; `None` if it was there already.
    ///
    /// A replica has no slots. If the node names one, it has become a primary, and has all slots of its shard: they change with one redirect, not
    /// with one for each. Any other member gets this slot alone.
    pub fn moved(&self, slot: u16, to: &Address) -> Option<Self> {
        if self.shard_of(slot).is_some_and(|shard| shard.primary.address == *to) {
            return None;
        }
        let mut shards = self.shards.to_vec();
        let place = match self.shard_with(to) {
            Some(place) => {
                if shards[place].primary.address != *to {
                    shards[place] = Arc::new(shards[place].promoted(to));
                }
                place
            }
            None if shards.len() >= CLUSTER_MEMBERS_MAX => return None,
            None => {
                let primary =
                    Member { id: Box::default(), address: to.clone(), health: Health::Online, zone: Box::default() };
                shards.push(Arc::new(Shard { primary, replicas: Box::default() }));
                shards.len() - 1
            }
        };
        let owner = |other: u16| match other {
            _ if other == slot => Some(place),
            _ => self.index_of(other).map(ShardIndex::get),
        };
        Some(Self::build(shards, owner))
    }

    /// The member that answers a request for `slot` that only reads. `chance`, a random number, spreads requests over members that are equally
    /// good; `is_usable` says which the client can reach.
    pub fn reader_of(
        &self,
        slot: u16,
        from: ReadFrom<'_>,
        chance: u64,
        is_usable: impl Fn(&Member) -> bool,
    ) -> Option<&Member> {
        let shard = self.shard_of(slot)?;
        let is_fit = |member: &&Member| member.health == Health::Online && is_usable(member);
        let any = |is_wanted: &dyn Fn(&Member) -> bool| {
            let fit = || shard.replicas.iter().filter(is_fit).filter(|member| is_wanted(member));
            let count = fit().count() as u64;
            (count > 0).then(|| fit().nth((chance % count) as usize)).flatten()
        };
        let found = match from {
            ReadFrom::Primary => None,
            ReadFrom::Replica => any(&|_| true),
            ReadFrom::Zone(zone) => any(&|member| *member.zone == *zone)
                .or_else(|| Some(&shard.primary).filter(is_fit).filter(|primary| *primary.zone == *zone))
                .or_else(|| any(&|_| true)),
        };
        Some(found.unwrap_or(&shard.primary))
    }
}

impl Shard {
    /// The primary, then the replicas.
    pub fn members(&self) -> impl Iterator<Item = &Member> {
        std::iter::once(&self.primary).chain(&self.replicas)
    }

    /// The shard after one of its replicas has become the primary. The former one may be down.
    fn promoted(&self, to: &Address) -> Self {
        let mut this = self.clone();
        if let Some(replica) = this.replicas.iter_mut().find(|replica| replica.address == *to) {
            std::mem::swap(&mut this.primary, replica);
            this.primary.health = Health::Online;
            replica.health = Health::Suspected;
        }
        this
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(id: &str, zone: &str) -> Member {
        let port = id.bytes().fold(0, |sum: u16, byte| sum * 16 + u16::from(byte % 16)) + 1;
        Member { id: id.into(), address: Address::new(id, port).unwrap(), health: Health::Online, zone: zone.into() }
    }

    /// Two shards, `a` with `a1`, `a2` up to slot 99, and `b` with the rest but the last slot.
    fn map() -> SlotMap {
        let shard = |id: &str, replicas: &[&str]| {
            let replicas = replicas.iter().map(|id| member(id, if id.ends_with('1') { "z1" } else { "z2" })).collect();
            Arc::new(Shard { primary: member(id, "z1"), replicas })
        };
        SlotMap::build(vec![shard("b", &[]), shard("a", &["a2", "a1"]), shard("c", &[])], |slot| match slot {
            ..=99 => Some(1),
            100..=16_382 => Some(0),
            _ => None,
        })
    }

    fn primary(map: &SlotMap, slot: u16) -> &str {
        map.shard_of(slot).map_or("", |shard| shard.primary.address.host())
    }

    #[test]
    fn shards_are_in_the_order_of_their_slots() {
        let map = map();
        let ids: Vec<_> = map.members().map(|member| &*member.id).collect();
        assert_eq!(ids, ["a", "a1", "a2", "b"], "one without slots is dropped");
        assert_eq!((primary(&map, 99), primary(&map, 100), primary(&map, 16_383)), ("a", "b", ""));
        assert_eq!((map.covered(), map.is_complete()), (16_383, false));
    }

    #[test]
    fn a_redirect_to_a_primary_moves_one_slot() {
        let map = map();
        let b = member("b", "").address;
        assert_eq!(map.moved(100, &b), None);
        let moved = map.moved(5, &b).unwrap();
        assert_eq!((primary(&moved, 4), primary(&moved, 5), primary(&moved, 6)), ("a", "b", "a"));
        assert_eq!(moved.moved(5, &member("a", "").address).unwrap(), map, "and back");
        let complete = map.moved(16_383, &b).unwrap();
        assert!(complete.is_complete());
    }

    #[test]
    fn a_redirect_to_a_replica_promotes_it_for_its_whole_shard() {
        let promoted = map().moved(5, &member("a2", "").address).unwrap();
        assert_eq!((primary(&promoted, 0), primary(&promoted, 99), primary(&promoted, 100)), ("a2", "a2", "b"));
        let shard = promoted.shard_of(0).unwrap();
        let former = shard.replicas.iter().find(|replica| &*replica.id == "a").unwrap();
        assert_eq!(former.health, Health::Suspected, "it is not read from until a report says that it is up");
        let elsewhere = map().moved(200, &member("a2", "").address).unwrap();
        assert_eq!((primary(&elsewhere, 0), primary(&elsewhere, 200), primary(&elsewhere, 201)), ("a2", "a2", "b"));
    }

    #[test]
    fn a_redirect_to_an_unknown_member_adds_it() {
        let moved = map().moved(5, &member("new", "").address).unwrap();
        assert_eq!((primary(&moved, 5), primary(&moved, 6), moved.shards().len()), ("new", "a", 3));
    }

    #[test]
    fn redirects_do_not_grow_a_map_without_bound() {
        let shard = |at: usize| {
            let primary = Member { address: Address::new("a", at as u16 + 1).unwrap(), ..member("x", "") };
            Arc::new(Shard { primary, replicas: Box::default() })
        };
        let shards = (0..CLUSTER_MEMBERS_MAX).map(shard).collect();
        let map = SlotMap::build(shards, |slot| Some(usize::from(slot) % CLUSTER_MEMBERS_MAX));
        assert_eq!(map.moved(5, &Address::new("b", 1).unwrap()), None);
        assert!(map.moved(5, &Address::new("a", 1).unwrap()).is_some(), "to one that is known");
        assert_eq!(map.shards().len(), CLUSTER_MEMBERS_MAX);
    }

    #[test]
    fn reads_go_to_the_member_that_is_asked_for() {
        let map = map();
        let reader = |from, chance, down: &str| {
            let is_usable = |member: &Member| !down.split(' ').any(|id| id == &*member.id);
            map.reader_of(5, from, chance, is_usable).map(|member| member.id.to_string()).unwrap()
        };
        assert_eq!(reader(ReadFrom::Primary, 1, "a"), "a", "there is no other choice");
        assert_eq!([0, 1, 2].map(|chance| reader(ReadFrom::Replica, chance, "")), ["a1", "a2", "a1"]);
        assert_eq!(reader(ReadFrom::Replica, 0, "a1"), "a2");
        assert_eq!(reader(ReadFrom::Replica, 0, "a1 a2"), "a");
        assert_eq!(reader(ReadFrom::Zone("z2"), 7, ""), "a2");
        assert_eq!(reader(ReadFrom::Zone("z1"), 7, ""), "a1");
        assert_eq!(reader(ReadFrom::Zone("z1"), 7, "a1"), "a", "the primary is in the zone");
        assert_eq!(reader(ReadFrom::Zone("z9"), 1, ""), "a2");
        assert_eq!(map.reader_of(16_383, ReadFrom::Replica, 0, |_| true), None);
    }
}
