//! The reply or push that is arriving: how far it has been scanned, and what is held of it.

use super::event::Pushes;
use crate::limits::POOLED_BUFFER_BYTES_MAX;
use respool_wire::ReplyScanner;

/// What has come of replies and not been passed on.
#[derive(Debug, Default)]
pub(super) struct ReplyReader {
    pub(super) scanner: ReplyScanner,
    /// The beginning of a reply that has not fully arrived.
    pub(super) partial: Vec<u8>,
    /// The bytes in `partial` have been delivered and are dropped next.
    pub(super) is_partial_spent: bool,
    /// The beginning of the reply in progress has been delivered already.
    pub(super) is_streaming: bool,
    pub(super) streamed_bytes: usize,
    /// The node speaks RESP2 although it was asked for RESP3: its replies come whole, so that they can be converted.
    pub(super) is_old: bool,
    pub(super) pushes: Pushes,
}

impl ReplyReader {
    /// The bytes of what `last` ends.
    #[inline]
    pub(super) fn finish<'a>(&'a mut self, last: &'a [u8]) -> &'a [u8] {
        if self.partial.is_empty() {
            return last;
        }
        self.partial.extend_from_slice(last);
        self.is_partial_spent = true;
        &self.partial
    }

    pub(super) fn forget_partial(&mut self) {
        self.is_partial_spent = false;
        self.partial.clear();
        if self.partial.capacity() > POOLED_BUFFER_BYTES_MAX {
            self.partial = Vec::new();
        }
    }

    /// The connection is gone: what has come of a reply is forgotten.
    pub(super) fn reset(&mut self) {
        self.scanner = ReplyScanner::default();
        self.forget_partial();
        self.is_streaming = false;
        self.streamed_bytes = 0;
        self.is_old = false;
    }
}
