//! What faults may do to calls, and when: a test holds a call that is late or has failed against the faults that its slots had.

use crate::{Fault, NodeIndex};
use std::collections::BTreeSet;

const SECOND: u64 = 1_000_000;

/// How long faults are felt by what is tested.
#[derive(Clone, Copy, Debug)]
pub struct HarmTerms {
    /// The shortest time for which a fault is felt.
    pub felt_us: u64,
    /// How long it is felt behind its end.
    pub settled_us: u64,
    /// After so long a connection that is half open is given up.
    pub half_open_us: u64,
}

impl Default for HarmTerms {
    /// For a client that finds a failover out by itself: the failover, its spread, and a round of questions.
    fn default() -> Self {
        Self { felt_us: 2 * SECOND, settled_us: 5 * SECOND, half_open_us: 0 }
    }
}

/// How long a slot moves.
const MOVE_US: u64 = 10 * SECOND;

/// What a fault may do to calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Harm {
    /// They fail.
    Fails,
    /// They are late.
    Delays,
    /// Those for several keys wait until all are at one place, and those behind them in a batch may be redirected in vain.
    DelaysSeveral,
}

/// When a slot had a fault.
#[derive(Debug)]
struct Window {
    slots: BTreeSet<u16>,
    from_us: u64,
    to_us: u64,
    does: Harm,
}

/// When slots had faults.
#[derive(Debug, Default)]
pub struct HarmWindows {
    terms: HarmTerms,
    windows: Vec<Window>,
}

impl HarmWindows {
    /// None yet.
    pub fn new(terms: HarmTerms) -> Self {
        Self { terms, windows: Vec::new() }
    }

    /// A fault begins. `slots_of`: those for which calls go to a node.
    pub fn note(&mut self, now_us: u64, fault: Fault, slots_of: impl Fn(NodeIndex) -> BTreeSet<u16>) {
        let HarmTerms { felt_us, settled_us, half_open_us } = self.terms;
        let (slots, for_us, does) = match fault {
            Fault::Crash(node, for_us)
            | Fault::Unreachable(node, for_us)
            | Fault::Isolated(node, for_us)
            | Fault::Stalled(node, for_us) => (slots_of(node), for_us, Harm::Fails),
            Fault::HalfOpen(node) => (slots_of(node), half_open_us, Harm::Fails),
            Fault::Disconnect(node) | Fault::RestartEmpty(node) | Fault::Leave(node) => {
                (slots_of(node), 0, Harm::Fails)
            }
            Fault::Slow(node, _, for_us) => (slots_of(node), for_us, Harm::Delays),
            // A lagging node sends calls on, and they arrive.
            Fault::Stale(..) => return,
            Fault::Migrate(slot, _) => (BTreeSet::from([slot]), MOVE_US, Harm::DelaysSeveral),
        };
        self.windows.push(Window { slots, from_us: now_us, to_us: now_us + for_us.max(felt_us) + settled_us, does });
    }

    /// Whether one of these slots had a fault that does one of these things, at some time of a call.
    pub fn had(&self, harms: &[Harm], slots: &[u16], began_us: u64, ended_us: u64) -> bool {
        self.windows.iter().any(|window| {
            harms.contains(&window.does)
                && slots.iter().any(|slot| window.slots.contains(slot))
                && window.from_us <= ended_us
                && began_us <= window.to_us
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_excused_by_faults_of_its_own_slots_and_time_alone() {
        let mut windows = HarmWindows::new(HarmTerms { half_open_us: 30 * SECOND, ..HarmTerms::default() });
        let slots_of = |node: NodeIndex| BTreeSet::from([node as u16]);
        windows.note(100 * SECOND, Fault::Crash(7, 3 * SECOND), slots_of);
        windows.note(100 * SECOND, Fault::Stale(8, 3 * SECOND), slots_of);
        windows.note(100 * SECOND, Fault::HalfOpen(9), slots_of);
        let fails = |slot, began_s, ended_s| windows.had(&[Harm::Fails], &[slot], began_s * SECOND, ended_s * SECOND);
        assert!(fails(7, 90, 100) && fails(7, 108, 200));
        assert!(!fails(7, 90, 99) && !fails(7, 109, 200), "before and after");
        assert!(!fails(8, 90, 200), "a node that lags fails nothing");
        assert!(fails(9, 134, 200) && !fails(10, 90, 200));
        assert!(!windows.had(&[Harm::Delays, Harm::DelaysSeveral], &[7, 9], 0, u64::MAX));
    }
}
