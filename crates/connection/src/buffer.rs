//! Outboxes, and the pool that lends them memory.
//!
//! A connection with nothing to write holds no buffer at all: it borrows one from its worker's pool with the first byte and
//! gives it back with the last. Ten thousand idle clients therefore cost no buffers.

use respool_wire::wipe;

use crate::limits::{ALLOCATION_BYTES, FRESH_BUFFER_BYTES, POOLED_BUFFER_BYTES_MAX, POOLED_BUFFERS_MAX};

/// Memory that a buffer occupies. A large one takes its pages one after the other as they are written to: what it has room
/// for beyond its bytes costs nothing yet.
#[inline]
pub fn occupied_bytes(buffer: &Vec<u8>) -> usize {
    match buffer.capacity() {
        0 => 0,
        small if small <= POOLED_BUFFER_BYTES_MAX => small + ALLOCATION_BYTES,
        _ => buffer.len() + ALLOCATION_BYTES,
    }
}

/// Empty buffers of one worker, ready for reuse.
#[derive(Debug, Default)]
pub struct BufferPool {
    free: Vec<Vec<u8>>,
}

impl BufferPool {
    /// A pool with nothing in it.
    pub const fn new() -> Self {
        Self { free: Vec::new() }
    }

    /// An empty buffer with some capacity.
    #[inline]
    pub fn take(&mut self) -> Vec<u8> {
        self.free.pop().unwrap_or_else(|| Vec::with_capacity(FRESH_BUFFER_BYTES))
    }

    /// Gives a buffer back. Its bytes are forgotten; a very large one goes to the allocator instead.
    #[inline]
    pub fn put(&mut self, mut buffer: Vec<u8>) {
        if buffer.capacity() <= POOLED_BUFFER_BYTES_MAX && self.free.len() < POOLED_BUFFERS_MAX {
            buffer.clear();
            self.free.push(buffer);
        }
    }

    /// Memory that lies unused.
    pub fn held_bytes(&self) -> usize {
        self.free.iter().map(occupied_bytes).sum()
    }

    /// Gives up half of what lies unused. Called when a worker has been quiet for a while, or has more than it should.
    pub fn shrink(&mut self) {
        self.free.truncate(self.free.len() / 2);
        self.free.shrink_to(POOLED_BUFFERS_MAX / 4);
    }

    /// Gives up all that lies unused.
    pub fn empty(&mut self) {
        self.free = Vec::new();
    }
}

/// Bytes that wait to be written, in order.
#[derive(Debug, Default)]
pub struct Output {
    buffer: Vec<u8>,
    /// How much of `buffer` has been written already.
    written: usize,
}

impl Output {
    /// An outbox with nothing in it.
    pub const fn new() -> Self {
        Self { buffer: Vec::new(), written: 0 }
    }

    /// How many bytes wait.
    #[inline]
    pub fn len(&self) -> usize {
        self.buffer.len() - self.written
    }

    /// Memory that is held.
    #[inline]
    pub fn held_bytes(&self) -> usize {
        occupied_bytes(&self.buffer)
    }

    /// Whether nothing waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.buffer.len() == self.written
    }

    /// The bytes that wait.
    #[inline]
    pub fn as_slice(&self) -> &[u8] {
        &self.buffer[self.written..]
    }

    /// The buffer to append to. Only ever append: what is in it already waits to be written.
    #[inline]
    pub fn appender(&mut self, pool: &mut BufferPool) -> &mut Vec<u8> {
        if self.buffer.capacity() == 0 {
            self.buffer = pool.take();
        }
        &mut self.buffer
    }

    /// Appends `bytes`.
    #[inline]
    pub fn extend(&mut self, bytes: &[u8], pool: &mut BufferPool) {
        self.appender(pool).extend_from_slice(bytes);
    }

    /// The first `bytes` waiting bytes were written. The buffer goes back to the pool with the last of them.
    #[inline]
    pub fn advance(&mut self, bytes: usize, pool: &mut BufferPool) {
        self.written = (self.written + bytes).min(self.buffer.len());
        if self.is_empty() {
            self.clear(pool);
        } else if self.written >= POOLED_BUFFER_BYTES_MAX && self.written * 2 >= self.buffer.len() {
            // The bytes moved are no more than those written since the last move, so writing stays linear.
            self.buffer.drain(..self.written);
            self.written = 0;
        }
    }

    /// As [`Self::advance`], for bytes that are secret: nothing of them is left in the buffer that goes back.
    pub(crate) fn advance_wiping(&mut self, bytes: usize, pool: &mut BufferPool) {
        self.written = (self.written + bytes).min(self.buffer.len());
        if self.is_empty() {
            self.wipe(pool);
        }
    }

    /// As [`Self::clear`], for bytes that are secret.
    pub(crate) fn wipe(&mut self, pool: &mut BufferPool) {
        // What has been written lies in front of what has not.
        wipe(&mut self.buffer);
        self.clear(pool);
    }

    /// Takes the buffer if nothing of it was written before and it is of a size to keep: it counts as written then.
    pub(crate) fn take_whole(&mut self) -> Vec<u8> {
        if self.written > 0 || self.buffer.capacity() > POOLED_BUFFER_BYTES_MAX {
            return Vec::new();
        }
        std::mem::take(&mut self.buffer)
    }

    /// Takes `buffer`, which is empty, for what is appended next, unless there is one.
    pub(crate) fn use_buffer(&mut self, buffer: &mut Vec<u8>) {
        if self.buffer.capacity() == 0 {
            self.buffer = std::mem::take(buffer);
        }
    }

    /// Forgets everything that waits and gives the buffer back.
    #[inline]
    pub fn clear(&mut self, pool: &mut BufferPool) {
        self.written = 0;
        if self.buffer.capacity() > 0 {
            pool.put(std::mem::take(&mut self.buffer));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_leave_in_order_and_the_buffer_goes_back() {
        let mut pool = BufferPool::new();
        let mut output = Output::new();
        output.extend(b"abc", &mut pool);
        output.extend(b"def", &mut pool);
        output.advance(2, &mut pool);
        assert_eq!(output.as_slice(), b"cdef");
        output.advance(4, &mut pool);
        assert!(output.is_empty());
        assert_eq!(pool.free.len(), 1);
        assert_eq!(output.buffer.capacity(), 0);
    }

    #[test]
    fn secrets_leave_as_they_are_and_the_buffer_goes_back_empty() {
        let mut pool = BufferPool::new();
        let mut output = Output::new();
        output.extend(b"secret", &mut pool);
        output.advance_wiping(2, &mut pool);
        assert_eq!(output.as_slice(), b"cret");
        output.advance_wiping(4, &mut pool);
        assert!(output.is_empty() && pool.free.len() == 1);
        output.extend(b"secret", &mut pool);
        output.wipe(&mut pool);
        assert!(output.is_empty() && pool.free.len() == 1);
    }

    #[test]
    fn a_long_outbox_is_compacted_without_losing_a_byte() {
        let mut pool = BufferPool::new();
        let mut output = Output::new();
        let sent: Vec<u8> = (0..300_000u32).map(|i| i as u8).collect();
        output.extend(&sent, &mut pool);
        let mut seen = Vec::new();
        while !output.is_empty() {
            let step = output.len().min(7_777);
            seen.extend_from_slice(&output.as_slice()[..step]);
            output.advance(step, &mut pool);
        }
        assert_eq!(seen, sent);
        assert!(pool.free.is_empty(), "a buffer this large is not kept");
    }
}
