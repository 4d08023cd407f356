//! All keys as they were when `DEBUG RELOAD` serialised them, kept while they are small.

use crate::limits;

/// One key of a snapshot.
pub(crate) struct Saved {
    pub(crate) database: usize,
    pub(crate) key: Vec<u8>,
    pub(crate) deadline: Option<i64>,
    pub(crate) payload: Vec<u8>,
}

/// All keys as they were, serialised.
#[derive(Default)]
pub(crate) struct Snapshot {
    pub(crate) keys: Vec<Saved>,
    bytes: usize,
}

impl Snapshot {
    /// Keeps a key; whether there was room for it.
    pub(crate) fn keep(&mut self, saved: Saved) -> bool {
        self.bytes += saved.key.len() + saved.payload.len() + size_of::<Saved>();
        let has_room = self.bytes <= limits::SNAPSHOT_BYTES_KEPT;
        if has_room {
            self.keys.push(saved);
        }
        has_room
    }
}
