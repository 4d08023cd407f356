//! How often nodes that could not be connected to are tried again, all workers of the process together.
//!
//! Each worker has its own pause after a failure, but there may be many workers, and many processes. The first connections to a
//! node, and those in place of lost ones, are none of its business: they are bounded in number, see `pool::dial_queue`.

use crate::limits::{GOVERNED_NODES_MAX, REDIAL_BURST};
use respool_connection::DialRate;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// The attempts at each node that is being tried again.
#[derive(Debug, Default)]
pub(crate) struct Governor {
    rates: Mutex<BTreeMap<String, DialRate>>,
}

impl Governor {
    /// Whether a node that could not be connected to may be tried again now. `Err`: not before this time.
    pub(crate) fn may_redial(&self, node: &str, now_us: u64, per_second: u64) -> Result<(), u64> {
        let mut rates = self.rates.lock().unwrap_or_else(PoisonError::into_inner);
        if rates.len() >= GOVERNED_NODES_MAX {
            rates.retain(|_, rate| !rate.is_paid(now_us));
        }
        let mut rate = rates.get(node).copied().unwrap_or_default();
        rate.take(now_us, per_second, REDIAL_BURST)?;
        if rates.contains_key(node) || rates.len() < GOVERNED_NODES_MAX {
            rates.insert(node.to_owned(), rate);
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
        assert!(governor.rates.lock().unwrap().len() <= GOVERNED_NODES_MAX);
    }
}
