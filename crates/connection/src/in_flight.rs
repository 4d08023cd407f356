//! What was written to a node and not yet answered, kept so that a reply that took long can be told apart by its request.
//!
//! A batch's bytes are kept as they were written: the outbox's buffer is set aside instead of going back to the pool, so
//! nothing is copied and a request costs nothing; a batch costs a place in a queue. Batches that are large, or were
//! not written at once, are not kept: their requests are answered all the same, and not known.

use crate::buffer::occupied_bytes;
use crate::limits::RECORDED_BATCHES_MAX;
use crate::{BufferPool, Outbox};
use std::collections::VecDeque;

/// The unanswered batches of one connection, in step with its tickets.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    batches: VecDeque<Recorded>,
    /// Where the last batch was that is answered now.
    spare: Vec<u8>,
}

/// One batch.
#[derive(Debug)]
struct Recorded {
    /// Its requests; empty if they are not known.
    bytes: Vec<u8>,
    requests: usize,
    queued_us: u64,
}

/// A request that a node has not answered yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InFlight<'a> {
    /// The requests that were written together with it; empty if they are not known.
    pub batch: &'a [u8],
    /// Which of them it is, from 0.
    pub number: usize,
    /// When the first of them was queued.
    pub queued_us: u64,
    /// When they were written.
    pub written_us: u64,
}

impl Recorder {
    /// A batch of `requests` has been written, and all of `output` with it if `is_whole`.
    pub(crate) fn record(&mut self, output: &mut impl Outbox, requests: usize, queued_us: u64, is_whole: bool) {
        let has_room = self.batches.len() < RECORDED_BATCHES_MAX;
        let bytes = if is_whole && has_room { output.take_whole() } else { Vec::new() };
        self.batches.push_back(Recorded { bytes, requests, queued_us });
    }

    /// The last reply to the oldest batch has come. Its memory serves the next batch.
    #[inline]
    pub(crate) fn end_batch(&mut self) {
        if let Some(batch) = self.batches.pop_front()
            && batch.bytes.capacity() > 0
        {
            self.spare = batch.bytes;
            self.spare.clear();
        }
    }

    /// A buffer for the next batch, if one lies ready.
    #[inline]
    pub(crate) fn lend(&mut self, output: &mut impl Outbox) {
        if self.spare.capacity() > 0 {
            output.use_buffer(&mut self.spare);
        }
    }

    /// Memory that is held.
    pub(crate) fn held_bytes(&self) -> usize {
        let batches = self.batches.iter().map(|batch| occupied_bytes(&batch.bytes)).sum::<usize>();
        batches + self.batches.capacity() * size_of::<Recorded>() + occupied_bytes(&self.spare)
    }

    /// When the oldest batch was queued.
    #[inline]
    pub(crate) fn queued_us(&self) -> Option<u64> {
        self.batches.front().map(|batch| batch.queued_us)
    }

    /// The request that is to be answered next, in a batch of which `outstanding` are not answered.
    pub(crate) fn front(&self, outstanding: usize, written_us: u64) -> Option<InFlight<'_>> {
        let batch = self.batches.front()?;
        let number = batch.requests.saturating_sub(outstanding);
        Some(InFlight { batch: &batch.bytes, number, queued_us: batch.queued_us, written_us })
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self, pool: &mut BufferPool) {
        self.batches.drain(..).filter(|batch| batch.bytes.capacity() > 0).for_each(|batch| pool.put(batch.bytes));
        self.spare = Vec::new();
    }
}
