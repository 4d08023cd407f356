//! The state of a run that its threads share.

use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex};

use respool_testkit::Address;

use super::faults::Faults;
use super::layout::Layout;
use super::ledger::Ledger;
use super::states::State;
use super::tally::Tally;

/// What all clients and the thread that makes trouble share.
pub(super) struct World {
    pub(super) seed: u64,
    /// Nothing happens to the nodes.
    pub(super) is_calm: bool,
    pub(super) addresses: [Address; 2],
    /// Requests answered or given up so far; the schedule of faults follows it.
    pub(super) requests_done: AtomicU64,
    /// The process is being succeeded, or told to end.
    pub(super) is_leaving: AtomicBool,
    /// The last process has been told to end.
    pub(super) is_ending: AtomicBool,
    /// How often a node was replaced by another server: its keys are other ones then.
    pub(super) moves: AtomicU64,
    pub(super) layout: Arc<Layout>,
    /// States that clients enter.
    pub(super) states: Arc<[State]>,
    pub(super) faults: Faults,
    pub(super) tally: Mutex<Tally>,
    pub(super) ledger: Mutex<Ledger>,
}
