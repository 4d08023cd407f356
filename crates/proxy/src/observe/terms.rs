//! What the settings say of what is looked at. It stands apart from those who look, because the configuration names it.

/// What is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// A request is slow if its reply takes longer, in microseconds; `u64::MAX`: none is.
    pub slow_us: u64,
    /// Slow requests that each worker remembers.
    pub slow_entries: usize,
    /// One read from a node in so many is looked at for latencies and keys; 0: none is.
    pub sample_every: u32,
}

impl Default for Terms {
    fn default() -> Self {
        Self { slow_us: u64::MAX, slow_entries: 0, sample_every: 0 }
    }
}

impl Terms {
    /// Whether the requests that replies belong to are needed.
    pub(crate) fn is_anything_seen(&self) -> bool {
        self.slow_us != u64::MAX || self.sample_every > 0
    }
}
