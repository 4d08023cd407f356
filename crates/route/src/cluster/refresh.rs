//! When the cluster is asked for its map, and which map holds: one round at a time, for all callers together.
//!
//! ```text
//!                 a trigger, or the period is over         the round is over
//!   [at rest] ------------------------------------> [round] ----------------> [at rest]
//!       ^           not before the pace allows                                    |
//!       '-------------------------------------------------------------------------'
//! ```
//!
//! It asks nothing itself: the driver polls it, asks the nodes that it names, and brings the answers. Callers read the map that it gave last
//! and never wait for it. `MOVED` changes the map at once; a round that began earlier does not take that back.
//!
//! Addresses of members come from the cluster, and the seeds from the settings. Seeds are never forgotten: they are asked when all members
//! that are known fail.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::address::Address;
use super::map::SlotMap;
use super::report::Report;
use super::round::{Progress, Round};
use crate::limits::REFRESH_ASKED_MAX;

/// How often, how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RefreshTerms {
    /// A round begins at most this often, in microseconds.
    pub pace_us: u64,
    /// Without any trigger a round begins after this time, in microseconds; 0 for never.
    pub period_us: u64,
    /// A node that has not answered after this time has failed, in microseconds.
    pub answer_limit_us: u64,
    /// While a node has not answered after this time, another one is asked, in microseconds.
    pub hedge_us: u64,
    /// A round that has a report does not wait for others beyond this time, in microseconds.
    pub patience_us: u64,
    /// The longest time between rounds that fail, in microseconds.
    pub backoff_max_us: u64,
}

impl Default for RefreshTerms {
    /// A round a second at most and one a minute at least.
    fn default() -> Self {
        Self {
            pace_us: 1_000_000,
            period_us: 60_000_000,
            answer_limit_us: 1_000_000,
            hedge_us: 100_000,
            patience_us: 500_000,
            backoff_max_us: 10_000_000,
        }
    }
}

/// Why the map may be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// Requests go on meanwhile: a redirect was followed. The round waits a little, so that the clients of a cluster that has changed do
    /// not all ask at once.
    Redirected,
    /// Requests wait: a member cannot be reached, does not serve its slots, or is a replica by now, or no member is known for a slot.
    Stuck,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RefreshStep {
    /// This node is asked; [`Refresh::on_answer`] follows with the same number.
    Ask {
        /// The number of the question.
        number: u64,
        /// The node.
        address: Address,
    },
    /// Nothing before this time, in microseconds, unless something happens.
    Wait(u64),
}

/// When the cluster is asked, and which map holds.
#[derive(Debug)]
pub struct Refresh {
    terms: RefreshTerms,
    seeds: Box<[Address]>,
    map: Option<Arc<SlotMap>>,
    round: Option<Round>,
    /// When the next round begins.
    next_us: u64,
    began_us: Option<u64>,
    /// A random number, drawn when that round began.
    drawn: u64,
    failures: u32,
    /// The node that is likely to know best: the one that `MOVED` has named last.
    hint: Option<Address>,
    /// Those that failed in the last round.
    failed: Vec<Address>,
    /// The map is what one node has said, and no other one was asked.
    is_unconfirmed: bool,
    /// What `MOVED` has said, and when.
    moved: BTreeMap<u16, (Address, u64)>,
    /// Primaries that have become replicas because `MOVED` named another member of their shard, and when.
    demoted: BTreeMap<Address, u64>,
    numbers: u64,
}

impl Refresh {
    /// A machine that begins its first round at once. Panics without seeds.
    pub fn new(terms: RefreshTerms, seeds: impl IntoIterator<Item = Address>) -> Self {
        let seeds: Box<[Address]> = seeds.into_iter().collect();
        assert!(!seeds.is_empty(), "a cluster has at least one seed");
        Self {
            terms,
            seeds,
            map: None,
            round: None,
            next_us: 0,
            began_us: None,
            drawn: 0,
            failures: 0,
            hint: None,
            failed: Vec::new(),
            is_unconfirmed: false,
            moved: BTreeMap::new(),
            demoted: BTreeMap::new(),
            numbers: 0,
        }
    }

    /// The map that holds; `None` before the first report.
    pub fn map(&self) -> Option<&Arc<SlotMap>> {
        self.map.as_ref()
    }

    /// Rounds that have failed since the last one that has not.
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// Whether a round is under way.
    pub fn is_asking(&self) -> bool {
        self.round.is_some()
    }

    /// The map may be wrong. A round under way is not repeated for that: it began before, but what it misses shows again.
    pub fn on_trigger(&mut self, trigger: Trigger, now_us: u64, chance: u64) {
        if self.round.is_some() {
            return;
        }
        let pause_us = match trigger {
            Trigger::Redirected => chance % (self.terms.pace_us / 4 + 1),
            Trigger::Stuck => 0,
        };
        let wanted_us = now_us.saturating_add(pause_us).max(self.allowed_us(chance));
        self.next_us = self.next_us.min(wanted_us);
    }

    /// The map is relied on beyond what redirects show: a round begins at the latest so long after the one before began, in microseconds, but not
    /// before the pace allows. That holds for the next round. Whether it begins sooner by that.
    ///
    /// It is due up to a tenth earlier, so that clients that asked together, as after a failover, do not keep step. How much earlier is drawn once
    /// for each round: of what each call draws the earliest would hold, and that is the same for all.
    pub fn on_reliance(&mut self, age_us: u64, now_us: u64, chance: u64) -> bool {
        if self.round.is_some() {
            return false;
        }
        let age_us = age_us - self.drawn % (age_us / 10 + 1);
        let due_us = self.began_us.map_or(now_us, |began_us| began_us.saturating_add(age_us).max(now_us));
        let wanted_us = due_us.max(self.allowed_us(chance));
        let is_sooner = wanted_us < self.next_us;
        self.next_us = self.next_us.min(wanted_us);
        is_sooner
    }

    /// When a round may begin: not before the pace allows, and after rounds that have failed not before a pause that doubles.
    fn allowed_us(&self, chance: u64) -> u64 {
        let Some(began_us) = self.began_us else { return 0 };
        let RefreshTerms { pace_us, backoff_max_us, .. } = self.terms;
        let doubled_us = pace_us.saturating_mul(1 << self.failures.min(20));
        let gap_us = doubled_us.min(backoff_max_us.max(pace_us));
        // From the second failure on clients do not keep step.
        let jitter_us = if self.failures == 0 { 0 } else { chance % (gap_us / 4 + 1) };
        began_us.saturating_add(gap_us).saturating_add(jitter_us)
    }

    /// A node has said that `slot` is at `to`. Gives the map in which it is, if that is news.
    pub fn on_moved(&mut self, slot: u16, to: &Address, now_us: u64, chance: u64) -> Option<Arc<SlotMap>> {
        let map = self.map.clone()?;
        if map.shard_of(slot).is_some_and(|shard| shard.primary.address == *to) {
            return None;
        }
        self.on_trigger(Trigger::Redirected, now_us, chance);
        // Two nodes that each say it is at the other do not change the map with every request.
        let is_recent = |changed_us: &u64| now_us < changed_us.saturating_add(self.terms.pace_us);
        if self.moved.get(&slot).is_some_and(|(_, moved_us)| is_recent(moved_us))
            || self.demoted.get(to).is_some_and(is_recent)
        {
            return None;
        }
        let moved = Arc::new(map.moved(slot, to)?);
        let former =
            map.shard_with(to).map(|place| &map.shards()[place].primary.address).filter(|former| *former != to);
        if let Some(former) = former {
            self.demoted.insert(former.clone(), now_us);
        }
        self.hint = Some(to.clone());
        self.moved.insert(slot, (to.clone(), now_us));
        self.map = Some(Arc::clone(&moved));
        Some(moved)
    }

    /// What is to be done now. To be called again after each step, after each answer and trigger, and at the time to wait for.
    pub fn poll(&mut self, now_us: u64, chance: u64) -> Polled {
        let mut map = None;
        loop {
            let Some(round) = &mut self.round else {
                if now_us < self.next_us {
                    return Polled { step: RefreshStep::Wait(self.next_us), map };
                }
                self.begin(now_us, chance);
                continue;
            };
            match round.poll(&self.terms, now_us) {
                Progress::Wait(until_us) => return Polled { step: RefreshStep::Wait(until_us), map },
                Progress::Over => map = self.finish(now_us, chance).or(map),
                Progress::Ask(address) => {
                    self.numbers += 1;
                    round.note_asked(self.numbers, address.clone(), now_us);
                    return Polled { step: RefreshStep::Ask { number: self.numbers, address }, map };
                }
            }
        }
    }

    fn begin(&mut self, now_us: u64, chance: u64) {
        let mut members: Vec<Address> =
            self.map.iter().flat_map(|map| map.members()).map(|member| member.address.clone()).collect();
        let first = if members.is_empty() { 0 } else { (chance % members.len() as u64) as usize };
        members.rotate_left(first);
        let seeds =
            (0..self.seeds.len()).map(|at| &self.seeds[(at + chance as usize % self.seeds.len()) % self.seeds.len()]);
        // Those that have failed are asked behind the seeds, which may be all that is left.
        let has_failed = |address: &Address| self.failed.contains(address);
        let (last, members): (Vec<Address>, Vec<Address>) = members.into_iter().partition(|member| has_failed(member));
        let hint = self.hint.take().filter(|hint| !has_failed(hint));
        // Of a large cluster, only some members are asked before the seeds.
        let members = members.into_iter().take(REFRESH_ASKED_MAX / 2);
        let candidates = hint.into_iter().chain(members).chain(seeds.cloned()).chain(last);
        self.round = Some(Round::new(candidates, &self.seeds, now_us));
        (self.began_us, self.drawn) = (Some(now_us), chance);
        self.next_us = u64::MAX;
    }

    /// A node has answered the question of this number, or has failed (`None`). Gives the map if it has changed.
    ///
    /// The first report that there is holds at once, since callers have nothing else, and another node is asked a little later. Further changes have
    /// to be agreed on.
    pub fn on_answer(&mut self, number: u64, report: Option<Report>) -> Option<Arc<SlotMap>> {
        let round = self.round.as_mut()?;
        round.on_answer(number, report, self.map.as_deref());
        if self.map.is_some() {
            return None;
        }
        self.map = round.outcome(None).map(Arc::new);
        self.is_unconfirmed = self.map.is_some();
        self.map.clone()
    }

    /// The round is over. Gives the map if it has changed.
    fn finish(&mut self, now_us: u64, chance: u64) -> Option<Arc<SlotMap>> {
        let round = self.round.take()?;
        self.failed = round.failed().to_vec();
        let Some(mut found) = round.outcome(self.map.as_deref()) else {
            self.failures = self.failures.saturating_add(1);
            self.next_us = self.allowed_us(chance).max(now_us);
            return None;
        };
        self.failures = 0;
        let RefreshTerms { pace_us, period_us, .. } = self.terms;
        if std::mem::take(&mut self.is_unconfirmed) {
            self.next_us = now_us.saturating_add(pace_us).saturating_add(chance % (pace_us + 1));
        } else if period_us > 0 {
            // A tenth earlier or later, so that clients do not keep step.
            let period_us = period_us.max(pace_us);
            self.next_us =
                now_us.saturating_add(period_us - period_us / 10).saturating_add(chance % (period_us / 5 + 1));
        }
        // What was said while the nodes were asked is newer than what they may have answered.
        self.moved.retain(|_, (_, moved_us)| *moved_us >= round.began_us());
        self.demoted.retain(|_, demoted_us| *demoted_us >= round.began_us());
        for (slot, (to, _)) in &self.moved {
            if let Some(moved) = found.moved(*slot, to) {
                found = moved;
            }
        }
        if self.map.as_deref() == Some(&found) {
            return None;
        }
        self.map = Some(Arc::new(found));
        self.map.clone()
    }
}

/// What is to be done, and the map if it has changed.
#[derive(Debug)]
pub struct Polled {
    /// What is to be done.
    pub step: RefreshStep,
    /// The map, if it has changed.
    pub map: Option<Arc<SlotMap>>,
}

#[cfg(test)]
mod tests {
    use super::super::{Claim, Health, Member};
    use super::*;

    const SECOND: u64 = 1_000_000;

    fn at(host: &str) -> Address {
        Address::new(host, 7000).unwrap()
    }

    fn member(id: &str) -> Member {
        Member { id: id.into(), address: at(id), health: Health::Online, zone: Box::default() }
    }

    /// `["a a1", "b"]`: the slots in equal parts for `a`, of which `a1` is a replica, and `b`.
    fn report(shards: &[&str]) -> Report {
        let size = 16_384 / shards.len() as u16;
        let claim = |(at, shard): (u16, &&str)| {
            let mut members = shard.split(' ').map(member);
            let first = at * size;
            let last = if usize::from(at) + 1 == shards.len() { 16_383 } else { first + size - 1 };
            let primary = members.next().unwrap();
            Claim { primary, replicas: members.collect(), ranges: vec![first..=last], epoch: 0 }
        };
        Report { claims: (0..).zip(shards).map(claim).collect(), marks: Vec::new() }
    }

    fn ask(refresh: &mut Refresh, now_us: u64) -> (u64, String) {
        match refresh.poll(now_us, 0).step {
            RefreshStep::Ask { number, address } => (number, address.host().to_owned()),
            step => panic!("{step:?}"),
        }
    }

    fn wait(refresh: &mut Refresh, now_us: u64) -> u64 {
        match refresh.poll(now_us, 0).step {
            RefreshStep::Wait(until_us) => until_us,
            step => panic!("{step:?}"),
        }
    }

    fn primary(refresh: &Refresh, slot: u16) -> String {
        refresh.map().unwrap().shard_of(slot).unwrap().primary.address.host().to_owned()
    }

    /// Knows three shards at one second, and has been told so by two nodes.
    fn settled() -> Refresh {
        let mut refresh = Refresh::new(RefreshTerms::default(), [at("seed")]);
        for now_us in [0, SECOND] {
            let (number, _) = ask(&mut refresh, now_us);
            refresh.on_answer(number, Some(report(&["a a1", "b", "c"])));
            wait(&mut refresh, now_us);
        }
        refresh
    }

    #[test]
    fn the_first_report_holds_at_once_and_is_confirmed() {
        let mut refresh = Refresh::new(RefreshTerms::default(), [at("seed")]);
        let (number, host) = ask(&mut refresh, 0);
        assert_eq!(host, "seed");
        assert!(refresh.on_answer(number, Some(report(&["a", "b"]))).is_some());
        assert_eq!(wait(&mut refresh, 10), SECOND + 10);
        assert_eq!(ask(&mut refresh, SECOND + 10).1, "a");
    }

    #[test]
    fn a_report_of_what_is_known_ends_the_round() {
        let mut refresh = settled();
        let next_us = wait(&mut refresh, SECOND);
        assert_eq!(next_us, SECOND + 54 * SECOND);
        let (number, _) = ask(&mut refresh, next_us);
        assert_eq!(refresh.on_answer(number, Some(report(&["a a1", "b", "c"]))), None);
        assert!(wait(&mut refresh, next_us) > next_us);
        assert!(!refresh.is_asking());
    }

    #[test]
    fn one_node_that_lags_behind_is_outvoted() {
        let mut refresh = settled();
        refresh.on_trigger(Trigger::Stuck, 5 * SECOND, 0);
        let (number, _) = ask(&mut refresh, 5 * SECOND);
        assert_eq!(refresh.on_answer(number, Some(report(&["x", "b", "c"]))), None, "one is not enough");
        let others = [ask(&mut refresh, 5 * SECOND), ask(&mut refresh, 5 * SECOND)];
        for (number, _) in others {
            assert_eq!(refresh.on_answer(number, Some(report(&["a1 a", "b", "c"]))), None);
        }
        let polled = refresh.poll(5 * SECOND, 0);
        assert!(polled.map.is_some());
        assert_eq!(primary(&refresh, 0), "a1");
    }

    #[test]
    fn a_node_that_does_not_answer_holds_nothing_up() {
        let mut refresh = settled();
        refresh.on_trigger(Trigger::Stuck, 5 * SECOND, 0);
        let mut now_us = 5 * SECOND;
        let (_, silent) = ask(&mut refresh, now_us);
        now_us = wait(&mut refresh, now_us);
        assert_eq!(now_us, 5 * SECOND + 100_000);
        let (number, other) = ask(&mut refresh, now_us);
        assert_ne!(silent, other);
        refresh.on_answer(number, Some(report(&["a1 a", "b", "c"])));
        ask(&mut refresh, now_us);
        assert_eq!(wait(&mut refresh, now_us), 5 * SECOND + 200_000);
        let polled = refresh.poll(5 * SECOND + 500_000, 0);
        assert!(polled.map.is_some(), "what there is counts when patience ends");
        assert_eq!(primary(&refresh, 0), "a1");
    }

    #[test]
    fn seeds_are_asked_when_all_members_are_gone() {
        let mut refresh = settled();
        refresh.on_trigger(Trigger::Stuck, 5 * SECOND, 0);
        let mut asked = Vec::new();
        while let RefreshStep::Ask { number, address } = refresh.poll(5 * SECOND, 0).step {
            asked.push(address.host().to_owned());
            let report = (address == at("seed")).then(|| report(&["new", "newer"]));
            refresh.on_answer(number, report);
        }
        assert_eq!(asked, ["a", "a1", "b", "c", "seed"]);
        assert_eq!(primary(&refresh, 0), "new", "a cluster that was made anew, which a seed knows");
    }

    #[test]
    fn another_cluster_at_a_members_address_is_not_followed() {
        let mut refresh = settled();
        refresh.on_trigger(Trigger::Stuck, 5 * SECOND, 0);
        while let RefreshStep::Ask { number, address } = refresh.poll(5 * SECOND, 0).step {
            refresh.on_answer(number, (address == at("b")).then(|| report(&["b9", "c9"])));
        }
        assert_eq!((primary(&refresh, 0), refresh.failures()), ("a".to_owned(), 1));
    }

    #[test]
    fn rounds_keep_the_pace_whatever_happens() {
        let mut refresh = settled();
        let mut began = vec![SECOND];
        let mut chance = 1_u64;
        for now_us in (2 * SECOND..30 * SECOND).step_by(1_000) {
            chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let was_asking = refresh.is_asking();
            match chance >> 62 {
                0 => refresh.on_trigger(Trigger::Stuck, now_us, chance),
                1 => {
                    let to = at(["a", "b", "nowhere"][(chance >> 40) as usize % 3]);
                    refresh.on_moved((chance >> 20) as u16 % 16_384, &to, now_us, chance);
                }
                _ => {}
            }
            while let RefreshStep::Ask { number, .. } = refresh.poll(now_us, chance).step {
                let answer = (chance >> 33 & 1 == 0).then(|| report(&["a a1", "b", "c"]));
                refresh.on_answer(number, answer);
            }
            if !was_asking && refresh.began_us != began.last().copied() {
                began.extend(refresh.began_us);
            }
        }
        assert!(began.windows(2).all(|pair| pair[1] - pair[0] >= SECOND), "{began:?}");
        assert!(began.len() > 10, "{began:?}");
    }

    #[test]
    fn a_map_that_is_relied_on_is_renewed_within_its_period() {
        let mut refresh = Refresh::new(RefreshTerms::default(), [at("seed")]);
        let mut now_us = 0;
        let known = report(&["a", "b"]);
        // The first round, and the one that confirms it.
        for _ in 0..2 {
            let (number, _) = ask(&mut refresh, now_us);
            assert!(!refresh.on_reliance(0, now_us, 0), "one is under way");
            refresh.on_answer(number, Some(known.clone()));
            now_us = wait(&mut refresh, now_us).max(now_us);
        }
        let began_us = refresh.began_us.unwrap();
        now_us = began_us + SECOND / 2;
        assert!(refresh.on_reliance(5 * SECOND, now_us, 0));
        assert_eq!(wait(&mut refresh, now_us), began_us + 5 * SECOND);
        assert!(!refresh.on_reliance(7 * SECOND, now_us, 0), "what is due sooner stays so");
        // No sooner than the pace allows, and at once if it is overdue.
        assert!(refresh.on_reliance(1, now_us, 0));
        assert_eq!(wait(&mut refresh, now_us), began_us + SECOND);
        let (number, _) = ask(&mut refresh, began_us + SECOND);
        refresh.on_answer(number, Some(known));
        let period_us = wait(&mut refresh, began_us + SECOND);
        assert!(period_us > began_us + 50 * SECOND, "it holds for one round");
        assert!(refresh.on_reliance(5 * SECOND, began_us + 20 * SECOND, 0));
        assert_eq!(wait(&mut refresh, began_us + 19 * SECOND), began_us + 20 * SECOND);
    }

    #[test]
    fn clients_that_rely_on_a_map_do_not_keep_step() {
        let due_us = |chance: u64| {
            let mut refresh = settled();
            refresh.on_trigger(Trigger::Stuck, 5 * SECOND, chance);
            let RefreshStep::Ask { number, .. } = refresh.poll(5 * SECOND, chance).step else { panic!("it is asked") };
            refresh.on_answer(number, Some(report(&["a a1", "b", "c"])));
            wait(&mut refresh, 5 * SECOND);
            // However often it is said, and whatever is drawn then.
            (0..100).for_each(|draw| _ = refresh.on_reliance(5 * SECOND, 6 * SECOND, draw * 100_003));
            wait(&mut refresh, 6 * SECOND)
        };
        let due: std::collections::BTreeSet<u64> = (0..10).map(|client| due_us(client * 50_000)).collect();
        assert!(due.len() == 10 && due.iter().all(|due_us| (9_500_000..=10 * SECOND).contains(due_us)), "{due:?}");
    }

    #[test]
    fn rounds_that_fail_are_further_and_further_apart() {
        let mut refresh = Refresh::new(RefreshTerms::default(), [at("seed"), at("other")]);
        let (mut now_us, mut gaps) = (0, Vec::new());
        for _ in 0..8 {
            let began_us = now_us;
            loop {
                match refresh.poll(now_us, 0).step {
                    RefreshStep::Ask { number, .. } => drop(refresh.on_answer(number, None)),
                    RefreshStep::Wait(until_us) => {
                        now_us = until_us;
                        break;
                    }
                }
            }
            gaps.push((now_us - began_us) / SECOND);
        }
        assert_eq!(gaps, [2, 4, 8, 10, 10, 10, 10, 10]);
        refresh.on_trigger(Trigger::Stuck, now_us - 1, 0);
        assert_eq!(wait(&mut refresh, now_us - 1), now_us, "callers do not hurry it");
    }

    #[test]
    fn a_redirect_is_not_taken_back_by_an_earlier_round() {
        let mut refresh = settled();
        refresh.on_trigger(Trigger::Stuck, 5 * SECOND, 0);
        let (number, _) = ask(&mut refresh, 5 * SECOND);
        assert!(refresh.on_moved(3, &at("c"), 5 * SECOND + 1, 0).is_some());
        assert_eq!(refresh.on_moved(3, &at("c"), 5 * SECOND + 2, 0), None, "no news");
        assert_eq!(refresh.on_moved(3, &at("b"), 5 * SECOND + 3, 0), None, "too soon for another place");
        refresh.on_answer(number, Some(report(&["a a1", "b", "c"])));
        while let RefreshStep::Ask { number, .. } = refresh.poll(5 * SECOND + 10, 0).step {
            refresh.on_answer(number, Some(report(&["a a1", "b", "c"])));
        }
        assert_eq!((primary(&refresh, 2), primary(&refresh, 3)), ("a".to_owned(), "c".to_owned()));
        refresh.on_trigger(Trigger::Stuck, 9 * SECOND, 0);
        while let RefreshStep::Ask { number, address } = refresh.poll(9 * SECOND, 0).step {
            assert!(address == at("c") || refresh.is_asking());
            refresh.on_answer(number, Some(report(&["a a1", "b", "c"])));
        }
        assert_eq!(primary(&refresh, 3), "a", "a later round knows better");
    }

    #[test]
    fn nodes_that_disagree_do_not_turn_a_shard_with_each_request() {
        let mut refresh = settled();
        let now_us = 5 * SECOND;
        assert!(refresh.on_moved(3, &at("a1"), now_us, u64::MAX).is_some());
        for slot in 4..100 {
            assert_eq!(refresh.on_moved(slot, &at("a"), now_us + 1, u64::MAX), None, "the former primary");
            assert_eq!(refresh.on_moved(slot, &at("a1"), now_us + 1, u64::MAX), None, "known for the whole shard");
        }
        assert_eq!(primary(&refresh, 50), "a1");
        assert!(refresh.on_moved(4, &at("a"), now_us + 2 * SECOND, u64::MAX).is_some(), "but later it may be news");
    }

    #[test]
    fn an_answer_that_comes_too_late_does_not_count() {
        let mut refresh = Refresh::new(RefreshTerms::default(), [at("seed")]);
        let (number, _) = ask(&mut refresh, 0);
        assert_eq!(wait(&mut refresh, 0), SECOND);
        let next_us = wait(&mut refresh, SECOND);
        assert_eq!((refresh.failures(), next_us), (1, 2 * SECOND));
        assert_eq!(refresh.on_answer(number, Some(report(&["a"]))), None);
        assert!(refresh.map().is_none());
    }
}
