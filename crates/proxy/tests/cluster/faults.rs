//! Which faults happen when.

use super::Run;
use respool_route::cluster::slot_of;
use respool_sim::{Fault, NodeIndex, WorldTerms};
use respool_testkit::Rng;

/// Beyond the longest lag of replicas: writes that follow each other closely reach them a microsecond apart.
const LAG_MARGIN_US: u64 = 1_000;

pub(super) struct Faults {
    rng: Rng,
    terms: WorldTerms,
    next_us: u64,
    /// Connections of this node end so often again, soon: requests are under way each time.
    again: Option<(NodeIndex, usize)>,
    /// How many there have been.
    count: usize,
    seed: u64,
}

impl Faults {
    pub(super) fn new(seed: u64, terms: WorldTerms) -> Self {
        Self { rng: Rng::part(seed, 2), terms, next_us: 2_000_000, again: None, count: 0, seed }
    }

    pub(super) fn stop(&mut self) {
        self.next_us = u64::MAX;
    }

    pub(super) fn are_on(&self) -> bool {
        self.next_us != u64::MAX
    }

    pub(super) fn next_us(&self) -> u64 {
        self.next_us
    }
}

fn name_of(fault: Fault) -> &'static str {
    match fault {
        Fault::Crash(..) => "crash",
        Fault::Unreachable(..) => "unreachable",
        Fault::Isolated(..) => "isolated",
        Fault::Disconnect(_) => "disconnect",
        Fault::HalfOpen(_) => "half open",
        Fault::Slow(..) => "slow",
        Fault::Stalled(..) => "stalled",
        Fault::Stale(..) => "stale",
        Fault::RestartEmpty(_) => "restart empty",
        Fault::Migrate(..) => "migrate",
        Fault::Leave(_) => "leave",
    }
}

impl Run {
    /// Something goes wrong, if it is time.
    pub(super) fn strike(&mut self) {
        let now_us = self.now();
        if self.faults.next_us > now_us {
            return;
        }
        let fault = self.next_fault();
        if let Some(fault) = fault {
            self.inject(fault);
        }
    }

    /// All kinds come up, and worlds begin with different ones.
    fn next_fault(&mut self) -> Option<Fault> {
        let (now_us, is_cluster) = (self.now(), self.is_cluster);
        let faults = &mut self.faults;
        if let Some((node, times)) = faults.again.take() {
            faults.again = (times > 1).then_some((node, times - 1));
            faults.next_us = now_us + faults.rng.between(15_000, 90_000) as u64;
            return Some(Fault::Disconnect(node));
        }
        let most_us = if is_cluster { 600_000 } else { 2_400_000 };
        faults.next_us = now_us + faults.rng.between(most_us / 4, most_us) as u64;
        faults.count += 1;
        if is_cluster && !faults.count.is_multiple_of(3) {
            return self.next_move();
        }
        let longest_us = if faults.rng.once_in(2) { 1_500_000 } else { 4_500_000 };
        let for_us = faults.rng.between(50_000, longest_us) as u64;
        let slow_us = faults.rng.between(1_000, 30_000) as u64;
        let kind = (faults.seed as usize * 7 + faults.count * 5) % 12;
        let shard = faults.rng.below(super::SHARDS);
        // Replicas are struck now and then.
        let replica = faults.rng.once_in(6).then(|| faults.rng.below(super::SHARDS * 3));
        let node = replica.unwrap_or_else(|| self.primary(shard));
        let faults = &mut self.faults;
        if matches!(kind, 4 | 7) || kind == 10 && is_cluster {
            faults.again = Some((node, 8));
            faults.next_us = now_us + 20_000;
        }
        Some(match kind {
            0 | 1 => Fault::Crash(node, for_us),
            2 => Fault::Unreachable(node, for_us),
            3 => Fault::Isolated(node, for_us),
            4 | 7 => Fault::Disconnect(node),
            5 => Fault::HalfOpen(node),
            6 => Fault::Slow(node, slow_us, for_us),
            8 => Fault::Stalled(node, for_us),
            9 => Fault::RestartEmpty(self.primary(shard)),
            10 if !is_cluster => Fault::Leave(node),
            10 => Fault::Disconnect(node),
            _ => Fault::Stale(node, for_us),
        })
    }

    /// A slot moves that is in use: of a client's own keys, or now and then of a queue, whose clients are told so from then on.
    fn next_move(&mut self) -> Option<Fault> {
        let mut slots: Vec<u16> = self.clients.values().flat_map(super::Client::slots).collect();
        if self.faults.rng.once_in(20) {
            slots = vec![slot_of(self.faults.rng.pick(&self.commons.queues).as_bytes())];
        }
        let slot = *slots.get(self.faults.rng.below(slots.len().max(1)))?;
        let shard = self.faults.rng.below(super::SHARDS);
        Some(Fault::Migrate(slot, self.primary(shard)))
    }

    pub(super) fn inject(&mut self, fault: Fault) {
        let now_us = self.now();
        let node = match fault {
            Fault::Migrate(slot, to) => {
                let from = self.world.owner(slot);
                if from == to || !self.world.is_primary(from) || !self.world.is_primary(to) {
                    return;
                }
                self.books.note_move(slot, to);
                from
            }
            Fault::Crash(node, _)
            | Fault::Unreachable(node, _)
            | Fault::Isolated(node, _)
            | Fault::Disconnect(node)
            | Fault::HalfOpen(node)
            | Fault::Slow(node, ..)
            | Fault::Stalled(node, _)
            | Fault::Stale(node, _)
            | Fault::RestartEmpty(node)
            | Fault::Leave(node) => node,
        };
        let slots = self.slots_of(node);
        if !slots.is_empty() {
            *self.books.seen.faults.entry(name_of(fault)).or_default() += 1;
        }
        if let Fault::HalfOpen(node) = fault {
            let own = self.lanes.iter().filter(|(_, (_, _, of))| *of == node);
            self.books.note_half_open(own.map(|(connection, _)| *connection));
        }
        let lag_us = self.faults.terms.lag_us + LAG_MARGIN_US;
        // Shown where a test fails.
        println!("{}: at {now_us}: {fault:?}, slots: {}", self.books.context, slots.len());
        self.books.note_fault(now_us, fault, lag_us, &slots);
        self.world.inject(fault);
    }
}
