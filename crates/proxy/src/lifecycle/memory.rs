//! When the process holds more bytes than it may: first no new client is accepted and nothing more is read, which is enough
//! for clients that take their replies; then the largest client of all workers is disconnected, and the next largest.
//!
//! Workers agree on who is largest without asking each other: in every interval each bids the bytes of its largest client,
//! and in the next one the highest bidder disconnects it.

/// What one worker knows of the pressure.
#[derive(Debug, Default)]
pub(crate) struct MemoryPressure {
    /// Since when too much has been held; 0 if it is not.
    pub(crate) since_us: u64,
    /// The last bid: interval and bytes.
    pub(crate) last: Option<(u64, usize)>,
}
