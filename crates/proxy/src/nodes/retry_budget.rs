//! How often nodes that could not be connected to are tried again, all workers of the process together.
//!
//! Each worker has its own pause after a failure, but there may be many workers, and many processes. The first connections to a
//! node, and those in place of lost ones, are none of its business: they are bounded in number, see `pool::dial_queue`.

use crate::limits::{GOVERNED_NODES_MAX, REDIAL_BURST};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// For each node that is being tried again, when all attempts have been paid for, as a leaky bucket counts it.
#[derive(Debug, Default)]
pub(crate) struct Governor {
    paid_us: Mutex<BTreeMap<String, u64>>,
}

impl Governor {
    /// Whether a node that could not be connected to may be tried again now. `Err`: not before this time.
    pub(crate) fn may_redial(&self, node: &str, now_us: u64, per_second: u64) -> Result<(), u64> {
        let step_us = 1_000_000 / per_second.max(1);
        let mut paid_us = self.paid_us.lock().unwrap_or_else(PoisonError::into_inner);
        if paid_us.len() >= GOVERNED_NODES_MAX {
            paid_us.retain(|_, paid_us| *paid_us > now_us);
        }
        let next_us = paid_us.get(node).map_or(now_us, |paid_us| now_us.max(*paid_us)) + step_us;
        let burst_us = now_us + step_us * REDIAL_BURST;
        if next_us > burst_us {
            return Err(now_us + (next_us - burst_us));
        }
        if paid_us.contains_key(node) || paid_us.len() < GOVERNED_NODES_MAX {
            paid_us.insert(node.to_owned(), next_us);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_node_has_a_burst_and_then_a_rate() {
        let governor = Governor::default();
        // A process that has just begun.
        let start_us = 1;
        for node in ["a", "b"] {
            let granted = (0..1_000).filter(|_| governor.may_redial(node, start_us, 10).is_ok()).count() as u64;
            assert_eq!(granted, REDIAL_BURST, "{node}");
            let later = (1..=100).filter(|i| governor.may_redial(node, start_us + i * 20_000, 10).is_ok()).count();
            assert_eq!(later, 20, "{node}: two seconds at ten a second");
        }
        let again_us = governor.may_redial("a", start_us + 2_000_000, 10).expect_err("it has just been tried");
        assert!(governor.may_redial("a", again_us, 10).is_ok());
    }

    #[test]
    fn nodes_that_are_governed_are_bounded() {
        let governor = Governor::default();
        for number in 0..10 * GOVERNED_NODES_MAX {
            let _ = governor.may_redial(&format!("n{number}"), 1 + number as u64, 1_000_000);
        }
        assert!(governor.paid_us.lock().unwrap().len() <= GOVERNED_NODES_MAX);
    }
}
