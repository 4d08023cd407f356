//! What `DEBUG` has switched, and what it needs of the host.

use crate::snapshot::Snapshot;

/// Waits for so many microseconds.
pub(crate) type Sleep = Box<dyn FnMut(u64) + Send>;

/// The switches of `DEBUG`, all off.
#[derive(Default)]
pub(crate) struct Debugging {
    /// Keys expire only when they are asked for: `SET-ACTIVE-EXPIRE 0`.
    pub(crate) expires_on_access_only: bool,
    /// Nothing happens outside of requests: `PAUSE-CRON 1`.
    pub(crate) is_paused: bool,
    /// Checksums of payloads are not looked at: `SET-SKIP-CHECKSUM-VALIDATION 1`.
    pub(crate) skips_checksums: bool,
    /// Scripts may use `DEBUG` itself: `SET-DISABLE-DENY-SCRIPTS 1`.
    pub(crate) is_open_to_scripts: bool,
    /// What `RELOAD` has serialised last.
    pub(crate) snapshot: Option<(Snapshot, Vec<u8>)>,
    /// How the host waits; without it there is no `SLEEP`.
    pub(crate) sleep: Option<Sleep>,
}

impl Debugging {
    /// Whether keys may go that nothing asks for.
    pub(crate) fn may_sweep(&self) -> bool {
        !self.expires_on_access_only && !self.is_paused
    }
}
