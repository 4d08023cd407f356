//! A pause of clients (CLIENT PAUSE), as the engines of a server with several learn of it: its workers hold requests back, and its engines
//! remove no key of their own accord meanwhile.

use std::sync::atomic::{AtomicU64, Ordering};

/// Until when all clients of a server are paused.
#[derive(Debug, Default)]
pub struct ServerPause {
    /// On the clock that clients see, in microseconds; 0: they are not.
    until_us: AtomicU64,
}

impl ServerPause {
    /// A pause has begun, or has another end; `None`: it is over.
    pub(crate) fn set(&self, until_us: Option<u64>) {
        self.until_us.store(until_us.unwrap_or(0), Ordering::Release);
    }

    /// Whether clients are paused at that time.
    #[inline]
    pub(crate) fn holds(&self, now_us: u64) -> bool {
        now_us < self.until_us.load(Ordering::Acquire)
    }
}
