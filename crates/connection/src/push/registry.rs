//! Subscribers by channel, for channels of one kind.
//!
//! A channel has a number as long as it is needed; clients and nodes are told of by numbers, so that the name lies in
//! memory once. The names are found by a keyed hash whose seed is given, so a peer cannot choose names that collide.

use super::id_map::{IdTable, SeededHash};
use super::name::Name;
use super::scope::behind;
use std::hash::Hasher;
use std::hint::black_box;

/// One channel, pattern or sharded channel.
#[derive(Debug)]
struct Channel {
    name: Name,
    hash: u32,
    /// What still needs its number although there is no subscriber: commands that nodes have not acknowledged, replies not made.
    holds: u32,
    subscribers: IdTable<()>,
}

/// All channels of one kind that a worker's clients subscribe to.
#[derive(Debug)]
pub struct Registry {
    seed: u64,
    /// Names stand behind scopes, see [`super::scope`].
    is_scoped: bool,
    channels: Vec<Channel>,
    free: Vec<u32>,
    /// Numbers of channels by the hash of their names; `NO_ID` where there is none.
    index: Vec<u32>,
    /// Channels with a subscriber.
    active: usize,
    /// Bytes of names and records.
    bytes: usize,
}

const NO_ID: u32 = u32::MAX;

/// With more records than this their memory is given back once all of them are free: numbers stay what they are, so none can be moved.
const FREE_MAX: usize = 4096;

impl Registry {
    /// An empty one. `seed` is unknown to those that choose names.
    pub fn new(seed: u64) -> Self {
        let (channels, free, index) = (Vec::new(), Vec::new(), Vec::new());
        Self { seed, is_scoped: false, channels, free, index, active: 0, bytes: 0 }
    }

    /// An empty one that spreads names and numbers in the same way, of names behind scopes or without.
    pub fn emptied(&self, is_scoped: bool) -> Self {
        Self { is_scoped, ..Self::new(self.seed) }
    }

    /// How numbers of this registry are spread over tables.
    #[inline]
    pub fn mix(&self) -> SeededHash {
        SeededHash(self.seed as u32)
    }

    /// Channels with a subscriber.
    pub fn len(&self) -> usize {
        self.active
    }

    /// Whether no channel has a subscriber.
    pub fn is_empty(&self) -> bool {
        self.active == 0
    }

    /// Bytes held for channels, without the tables of their subscribers.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The number of a channel that has one.
    pub fn find(&self, name: &[u8]) -> Option<u32> {
        self.find_hashed(self.hash(name), name)
    }

    /// The same of several, for which memory is waited for together: each search is steps that wait for each other, and the
    /// processor takes the same step of all searches at once.
    pub fn find_all<const N: usize>(&self, names: [&[u8]; N]) -> [Option<u32>; N] {
        let searches = names.map(|name| (self.hash(name), name));
        black_box(searches.map(|(hash, _)| self.index.get(hash as usize & self.index.len().wrapping_sub(1)).copied()));
        searches.map(|(hash, name)| self.find_hashed(hash, name))
    }

    fn find_hashed(&self, hash: u32, name: &[u8]) -> Option<u32> {
        if self.index.is_empty() {
            return None;
        }
        let mut place = hash as usize & (self.index.len() - 1);
        loop {
            let id = self.index[place];
            if id == NO_ID {
                return None;
            }
            let channel = &self.channels[id as usize];
            if channel.hash == hash && channel.name.as_bytes() == name {
                return Some(id);
            }
            place = (place + 1) & (self.index.len() - 1);
        }
    }

    /// The number of a channel; a new one if it has none. It lasts while it is subscribed to or held.
    pub fn intern(&mut self, name: &[u8]) -> u32 {
        if let Some(id) = self.find(name) {
            return id;
        }
        let live = self.channels.len() - self.free.len();
        if (live + 1) * 2 > self.index.len() {
            self.rebuild(((live + 1) * 4).next_power_of_two());
        }
        let channel =
            Channel { name: Name::new(name), hash: self.hash(name), holds: 0, subscribers: IdTable::default() };
        self.bytes += Self::bytes_of(&channel);
        let id = match self.free.pop() {
            Some(id) => {
                self.channels[id as usize] = channel;
                id
            }
            None => {
                self.channels.push(channel);
                (self.channels.len() - 1) as u32
            }
        };
        self.enter(id);
        id
    }

    /// The name of a channel that is subscribed to or held.
    pub fn name(&self, id: u32) -> &[u8] {
        let name = self.full_name(id);
        if self.is_scoped { behind(name) } else { name }
    }

    /// The same with its scope, by which it is found.
    pub fn full_name(&self, id: u32) -> &[u8] {
        self.channels.get(id as usize).map_or(&[], |channel| channel.name.as_bytes())
    }

    /// How many subscribe.
    pub fn count(&self, id: u32) -> usize {
        self.channels.get(id as usize).map_or(0, |channel| channel.subscribers.len())
    }

    /// All subscribers, in no order.
    pub fn subscribers(&self, id: u32) -> impl Iterator<Item = u32> + '_ {
        self.channels.get(id as usize).into_iter().flat_map(|channel| channel.subscribers.ids())
    }

    /// Whether one of them is this.
    pub fn has(&self, id: u32, subscriber: u32) -> bool {
        self.channels.get(id as usize).is_some_and(|channel| channel.subscribers.contains(subscriber, self.mix()))
    }

    /// A subscriber joins. Returns whether it is the channel's first.
    pub fn join(&mut self, id: u32, subscriber: u32) -> bool {
        let mix = self.mix();
        let Some(channel) = self.channels.get_mut(id as usize) else { return false };
        let is_first = channel.subscribers.insert(subscriber, (), mix) && channel.subscribers.len() == 1;
        self.active += usize::from(is_first);
        is_first
    }

    /// A subscriber leaves. Returns whether it was the channel's last; the number is void then unless it is held.
    pub fn leave(&mut self, id: u32, subscriber: u32) -> bool {
        let mix = self.mix();
        let Some(channel) = self.channels.get_mut(id as usize) else { return false };
        let was_last = channel.subscribers.remove(subscriber, mix).is_some() && channel.subscribers.is_empty();
        self.active -= usize::from(was_last);
        if was_last {
            self.forget(id);
        }
        was_last
    }

    /// The number must last until [`Self::release`].
    pub fn retain(&mut self, id: u32) {
        self.channels[id as usize].holds += 1;
    }

    /// Undoes one [`Self::retain`].
    pub fn release(&mut self, id: u32) {
        let channel = &mut self.channels[id as usize];
        debug_assert!(channel.holds > 0, "only what is held is released");
        channel.holds -= 1;
        self.forget(id);
    }

    /// All channels with a subscriber, in the order of their numbers, from `first` on.
    pub fn active_from(&self, first: u32) -> impl Iterator<Item = u32> + '_ {
        let all = self.channels.iter().enumerate().skip(first as usize);
        all.filter(|(_, channel)| !channel.subscribers.is_empty()).map(|(id, _)| id as u32)
    }

    /// Frees a channel's number if it is not needed any more.
    fn forget(&mut self, id: u32) {
        let channel = &self.channels[id as usize];
        if channel.holds > 0 || !channel.subscribers.is_empty() {
            return;
        }
        self.bytes -= Self::bytes_of(channel);
        self.strike(id);
        self.channels[id as usize].name = Name::EMPTY;
        self.free.push(id);
        if self.free.len() == self.channels.len() && self.channels.len() > FREE_MAX {
            (self.channels, self.free, self.index) = (Vec::new(), Vec::new(), Vec::new());
        }
    }

    fn hash(&self, name: &[u8]) -> u32 {
        // SipHash behind a secret prefix: its state is unknown to a peer that chooses the name.
        let mut hasher = std::hash::DefaultHasher::new();
        hasher.write_u64(self.seed);
        hasher.write(name);
        hasher.finish() as u32
    }

    fn bytes_of(channel: &Channel) -> usize {
        size_of::<Channel>() + 2 * size_of::<u32>() + channel.name.heap_bytes()
    }

    fn enter(&mut self, id: u32) {
        let mask = self.index.len() - 1;
        let mut place = self.channels[id as usize].hash as usize & mask;
        while self.index[place] != NO_ID {
            place = (place + 1) & mask;
        }
        self.index[place] = id;
    }

    /// Takes a number out of the index; those behind it move up.
    fn strike(&mut self, id: u32) {
        let mask = self.index.len() - 1;
        let mut hole = self.channels[id as usize].hash as usize & mask;
        while self.index[hole] != id {
            hole = (hole + 1) & mask;
        }
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            let next = self.index[at];
            if next == NO_ID {
                break;
            }
            let home = self.channels[next as usize].hash as usize & mask;
            if at.wrapping_sub(home) & mask >= at.wrapping_sub(hole) & mask {
                self.index[hole] = next;
                hole = at;
            }
        }
        self.index[hole] = NO_ID;
    }

    fn rebuild(&mut self, capacity: usize) {
        let old = std::mem::replace(&mut self.index, vec![NO_ID; capacity]);
        old.into_iter().filter(|id| *id != NO_ID).for_each(|id| self.enter(id));
    }
}

/// Bytes that a pair of client and channel takes: a number on either side, in tables that are about two thirds full.
pub const PAIR_BYTES: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    #[test]
    fn it_equals_a_naive_model() {
        for seed in 1..=4_u64 {
            let mut registry = Registry::new(seed);
            let mut model: BTreeMap<Vec<u8>, BTreeSet<u32>> = BTreeMap::new();
            let mut held: Vec<(u32, Vec<u8>)> = Vec::new();
            let mut chance = seed;
            let mut below = |bound: u64| {
                chance ^= chance << 13;
                chance ^= chance >> 7;
                chance ^= chance << 17;
                (chance >> 11) % bound
            };
            for _ in 0..20_000 {
                let name = format!("channel{}", below(200)).into_bytes();
                let client = below(30) as u32;
                match below(5) {
                    0 | 1 => {
                        let id = registry.intern(&name);
                        let members = model.entry(name.clone()).or_default();
                        let is_new = members.insert(client);
                        assert_eq!(registry.join(id, client), is_new && members.len() == 1);
                    }
                    2 | 3 => {
                        let Some(id) = registry.find(&name) else {
                            assert!(!model.contains_key(&name) || held.iter().all(|(_, n)| *n != name));
                            continue;
                        };
                        let members = model.entry(name.clone()).or_default();
                        let was_last = members.remove(&client) && members.is_empty();
                        assert_eq!(registry.leave(id, client), was_last);
                    }
                    _ if below(2) == 0 => {
                        let id = registry.intern(&name);
                        registry.retain(id);
                        held.push((id, name.clone()));
                    }
                    _ => {
                        if !held.is_empty() {
                            let (id, name) = held.swap_remove(below(held.len() as u64) as usize);
                            assert_eq!(registry.name(id), name, "a number that is held keeps its name");
                            registry.release(id);
                        }
                    }
                }
                model.retain(|_, members| !members.is_empty());
                assert_eq!(registry.len(), model.len());
            }
            for (name, members) in &model {
                let id = registry.find(name).expect("it has subscribers");
                assert_eq!(registry.find_all([name, b"none", name]), [Some(id), None, Some(id)]);
                assert!(registry.subscribers(id).collect::<BTreeSet<_>>().iter().eq(members));
            }
            let active: BTreeSet<&[u8]> = registry.active_from(0).map(|id| registry.name(id)).collect();
            assert!(active.into_iter().eq(model.keys().map(Vec::as_slice)));
            for (name, members) in model {
                let id = registry.find(&name).expect("it has subscribers");
                members.into_iter().for_each(|client| _ = registry.leave(id, client));
            }
            held.into_iter().for_each(|(id, _)| registry.release(id));
            assert_eq!((registry.len(), registry.bytes()), (0, 0));
        }
    }

    /// T-HASH: a peer that finds names that share a place in one process has found nothing for the next.
    #[test]
    fn names_that_collide_for_one_key_do_not_for_another() {
        let place = |registry: &Registry, name: &str| registry.hash(name.as_bytes()) as usize & 1023;
        let known = Registry::new(1);
        let wanted = place(&known, "0");
        let mut names = (0..).map(|number: u32| number.to_string());
        let colliding: Vec<String> = names.by_ref().filter(|name| place(&known, name) == wanted).take(500).collect();
        let other = Registry::new(2);
        let mut places = [0; 1024];
        colliding.iter().for_each(|name| places[place(&other, name)] += 1);
        assert!(places.iter().max() < Some(&8), "five hundred names in a thousand places");
    }

    #[test]
    fn a_channel_costs_less_than_80_bytes() {
        let mut registry = Registry::new(1);
        for number in 0..200_000_u32 {
            let id = registry.intern(format!("c{number}").as_bytes());
            registry.join(id, 7);
        }
        assert!(registry.bytes() < 200_000 * 80, "{}", registry.bytes());
        assert_eq!(registry.len(), 200_000);
        for number in 0..200_000_u32 {
            let id = registry.find(format!("c{number}").as_bytes()).expect("it was entered");
            assert!(registry.leave(id, 7));
        }
        assert_eq!(registry.bytes(), 0);
        assert!(registry.channels.is_empty(), "nothing is kept of a crowd that has left");
    }
}
