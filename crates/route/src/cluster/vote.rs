//! One map from the reports of several nodes, which may differ: one may be cut off, another may not have heard yet.
//!
//! For each slot, the claim with the highest epoch holds, as it does among the nodes. Replies without epochs, or equal ones, are counted:
//! most nodes hold, and the node that was asked first if they are equally many. What no report covers stays as it is known.

use std::collections::HashMap;
use std::sync::Arc;

use super::map::{Shard, ShardIndex, SlotMap};
use super::report::{Claim, Member, Report};
use crate::SLOTS;

/// A claim on a slot: the number of the primary, and the epoch.
type Claimed = Option<(u32, u64)>;

/// The map that the reports amount to, with what is known in place of what they leave out.
pub(super) fn vote(reports: &[Report], known: Option<&SlotMap>) -> SlotMap {
    let mut primaries = Primaries::default();
    let tables: Vec<Box<[Claimed]>> = reports.iter().map(|report| table(report, &mut primaries)).collect();
    let winners: Vec<Option<u32>> = (0..usize::from(SLOTS)).map(|slot| winner(&tables, slot)).collect();
    let mut is_primary = vec![false; primaries.claims.len()];
    for winner in winners.iter().flatten() {
        is_primary[*winner as usize] = true;
    }
    let mut shards: Vec<Arc<Shard>> = Vec::new();
    for claim in &primaries.claims {
        let is_led = |member: &&Member| primaries.number_of(member).is_none_or(|number| !is_primary[number as usize]);
        let replicas = claim.replicas.iter().filter(is_led).cloned().collect();
        shards.push(Arc::new(Shard { primary: claim.primary.clone(), replicas }));
    }
    // Shards that only the known map has come behind; those that have changed their place keep it.
    let mut places = Vec::new();
    for shard in known.map_or(&[][..], SlotMap::shards) {
        places.push(primaries.number_of(&shard.primary).map_or(shards.len(), |number| number as usize));
        if places.last() == Some(&shards.len()) {
            shards.push(Arc::clone(shard));
        }
    }
    let as_known = |slot| Some(places[known?.index_of(slot).map(ShardIndex::get)?]);
    SlotMap::build(shards, |slot| winners[usize::from(slot)].map(|winner| winner as usize).or_else(|| as_known(slot)))
}

/// All primaries of the reports, each once, with the first claim of the highest epoch.
#[derive(Default)]
struct Primaries<'r> {
    claims: Vec<&'r Claim>,
    by_id: HashMap<&'r str, u32>,
    by_address: HashMap<String, u32>,
}

impl<'r> Primaries<'r> {
    fn number_of(&self, member: &Member) -> Option<u32> {
        match &*member.id {
            "" => self.by_address.get(&member.address.to_string()).copied(),
            id => self.by_id.get(id).copied(),
        }
    }

    fn number(&mut self, claim: &'r Claim) -> u32 {
        if let Some(number) = self.number_of(&claim.primary) {
            let earlier = &mut self.claims[number as usize];
            if claim.epoch > earlier.epoch {
                *earlier = claim;
            }
            return number;
        }
        let number = self.claims.len() as u32;
        self.claims.push(claim);
        if !claim.primary.id.is_empty() {
            self.by_id.insert(&claim.primary.id, number);
        }
        self.by_address.entry(claim.primary.address.to_string()).or_insert(number);
        number
    }
}

/// The owner of each slot by one report. Of claims that overlap, the highest epoch holds, else the first.
fn table<'r>(report: &'r Report, primaries: &mut Primaries<'r>) -> Box<[Claimed]> {
    let mut table: Box<[Claimed]> = vec![None; usize::from(SLOTS)].into();
    for claim in &report.claims {
        let number = primaries.number(claim);
        for range in &claim.ranges {
            for entry in &mut table[usize::from(*range.start())..=usize::from(*range.end())] {
                if entry.is_none_or(|(_, epoch)| claim.epoch > epoch) {
                    *entry = Some((number, claim.epoch));
                }
            }
        }
    }
    table
}

fn winner(tables: &[Box<[Claimed]>], slot: usize) -> Option<u32> {
    let claims = || tables.iter().filter_map(|table| table[slot]);
    let mut best: Option<(u32, (u64, usize))> = None;
    for (number, _) in claims() {
        let own = || claims().filter(|(other, _)| *other == number);
        let weight = (own().map(|(_, epoch)| epoch).max().unwrap_or(0), own().count());
        if best.is_none_or(|(_, best)| weight > best) {
            best = Some((number, weight));
        }
    }
    best.map(|(number, _)| number)
}

#[cfg(test)]
mod tests {
    use super::super::{Address, Health};
    use super::*;

    fn member(id: &str) -> Member {
        let address = Address::new(&format!("host-{id}"), 7000).unwrap();
        Member { id: id.into(), address, health: Health::Online, zone: Box::default() }
    }

    /// `a 3 0-9 a1` claims slots 0 to 9 for `a` in epoch 3, with replica `a1`.
    fn report(claims: &[&str]) -> Report {
        let claim = |text: &&str| {
            let words: Vec<_> = text.split(' ').collect();
            let (first, last) = words[2].split_once('-').unwrap();
            Claim {
                primary: member(words[0]),
                replicas: words[3..].iter().map(|id| member(id)).collect(),
                ranges: vec![first.parse().unwrap()..=last.parse().unwrap()],
                epoch: words[1].parse().unwrap(),
            }
        };
        Report { claims: claims.iter().map(claim).collect(), marks: Vec::new() }
    }

    fn owners(map: &SlotMap, slots: &[u16]) -> Vec<String> {
        slots.iter().map(|slot| map.shard_of(*slot).map_or("-".into(), |shard| shard.primary.id.to_string())).collect()
    }

    #[test]
    fn the_higher_epoch_holds_against_any_number() {
        let old = report(&["a 1 0-16383 b"]);
        let new = report(&["b 2 0-16383 a"]);
        let map = vote(&[old.clone(), old, new], None);
        assert_eq!(owners(&map, &[0, 16_383]), ["b", "b"]);
        assert_eq!(map.shards()[0].replicas.len(), 1);
        let overlapping = report(&["a 1 0-100", "b 3 50-60", "c 2 55-16383"]);
        assert_eq!(owners(&vote(&[overlapping], None), &[49, 50, 60, 61, 101]), ["a", "b", "b", "c", "c"]);
    }

    #[test]
    fn without_epochs_most_nodes_hold_and_then_the_first() {
        let (old, new) = (report(&["a 0 0-16383 b"]), report(&["b 0 0-16383 a"]));
        let vote = |reports: &[&Report]| {
            let reports: Vec<Report> = reports.iter().map(|report| (*report).clone()).collect();
            owners(&vote(&reports, None), &[7])
        };
        assert_eq!(vote(&[&old, &new, &new]), ["b"]);
        assert_eq!(vote(&[&old, &new, &old]), ["a"]);
        assert_eq!(vote(&[&old, &new]), ["a"]);
        assert_eq!(vote(&[&new, &old]), ["b"]);
    }

    #[test]
    fn what_no_report_covers_stays_as_it_is_known() {
        let known = vote(&[report(&["a 1 0-99 a1", "b 1 100-16383"])], None);
        let partial = report(&["b 1 200-300", "c 9 0-49"]);
        let map = vote(&[partial], Some(&known));
        assert_eq!(owners(&map, &[0, 49, 50, 99, 100, 200, 16_383]), ["c", "c", "a", "a", "b", "b", "b"]);
        assert!(map.is_complete());
        assert_eq!(map.shards().len(), 3);
        assert_eq!(vote(&[], Some(&known)), known);
    }

    #[test]
    fn a_member_with_a_new_address_is_the_same_member() {
        let known = vote(&[report(&["a 1 0-99", "b 1 100-16383"])], None);
        let mut moved = report(&["a 1 0-50"]);
        moved.claims[0].primary.address = Address::new("elsewhere", 1).unwrap();
        let map = vote(&[moved], Some(&known));
        assert_eq!(map.shard_of(99).unwrap().primary.address.host(), "elsewhere", "for all its slots");
    }

    #[test]
    fn the_order_of_claims_and_replicas_does_not_matter() {
        let one = vote(&[report(&["a 0 0-99 a1 a2", "b 0 100-16383"])], None);
        let two = vote(&[report(&["b 0 100-16383", "a 0 0-99 a2 a1"])], None);
        assert_eq!(one, two);
    }
}
