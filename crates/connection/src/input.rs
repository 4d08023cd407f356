//! The unfinished request of one client.
//!
//! Requests are decoded straight from the worker's shared read buffer. Only when one is incomplete at the end of it do its
//! bytes move here, together with the decoder's progress, and further bytes are read in behind them. A client between two
//! requests therefore costs one empty pointer.

use crate::limits::ALLOCATION_BYTES;
use respool_wire::{RequestDecoder, wipe};

/// The bytes received of an unfinished request (and whatever came behind it), and how far they have been looked at.
#[derive(Debug, Default)]
pub struct Input {
    /// Progress within the request that begins at `start`.
    pub decoder: RequestDecoder,
    bytes: Vec<u8>,
    start: usize,
    filled: usize,
}

/// How much room a read is offered at least, in bytes.
const ROOM_BYTES_MIN: usize = 16 * 1024;
/// How much room a read is offered at most, in bytes: a large request grows by what has arrived, not by what was declared.
const ROOM_BYTES_MAX: usize = 1024 * 1024;

impl Input {
    /// Takes over `bytes`, of which `decoder` has looked at a part.
    pub fn begin(decoder: RequestDecoder, bytes: &[u8]) -> Self {
        Self { decoder, bytes: bytes.to_vec(), start: 0, filled: bytes.len() }
    }

    /// The bytes that wait to be decoded, from the first byte of the unfinished request on.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[self.start..self.filled]
    }

    /// The decoder and the bytes it has to look at, side by side.
    pub fn split(&mut self) -> (&mut RequestDecoder, &[u8]) {
        (&mut self.decoder, &self.bytes[self.start..self.filled])
    }

    /// How many bytes wait.
    pub fn len(&self) -> usize {
        self.filled - self.start
    }

    /// Whether none does.
    pub fn is_empty(&self) -> bool {
        self.filled == self.start
    }

    /// Room for bytes that wait and others.
    pub fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// Memory held, in bytes.
    pub fn held_bytes(&self) -> usize {
        size_of::<Self>() + self.bytes.capacity() + self.decoder.held_bytes() + ALLOCATION_BYTES
    }

    /// The first `bytes` waiting bytes have become requests.
    pub fn consume(&mut self, bytes: usize) {
        self.start = (self.start + bytes).min(self.filled);
    }

    /// Overwrites what has become of requests, in here and in the decoder. What waits stays.
    pub fn wipe_consumed(&mut self) {
        wipe(&mut self.bytes[..self.start]);
        wipe(&mut self.bytes[self.filled..]);
        self.decoder.wipe();
    }

    /// Overwrites everything: it is not read on.
    pub fn wipe(&mut self) {
        self.consume(self.len());
        self.wipe_consumed();
    }

    /// Room for the next read: as much as has arrived already, within bounds, so that growing stays linear.
    pub fn room(&mut self) -> &mut [u8] {
        if self.start > 0 {
            self.bytes.copy_within(self.start..self.filled, 0);
            self.filled -= self.start;
            self.start = 0;
        }
        let room = self.filled.clamp(ROOM_BYTES_MIN, ROOM_BYTES_MAX);
        let wanted = self.filled + room;
        if self.bytes.len() < wanted && self.filled <= ROOM_BYTES_MIN {
            // As small as a request with a password: the bytes move, and nothing stays where they were.
            let mut bytes = vec![0; wanted];
            bytes[..self.filled].copy_from_slice(&self.bytes[..self.filled]);
            wipe(&mut std::mem::replace(&mut self.bytes, bytes)[..self.filled]);
        } else if self.bytes.len() < wanted {
            self.bytes.resize(wanted, 0);
        }
        &mut self.bytes[self.filled..]
    }

    /// `bytes` bytes were read into [`Self::room`].
    pub fn fill(&mut self, bytes: usize) {
        self.filled = (self.filled + bytes).min(self.bytes.len());
    }
}
