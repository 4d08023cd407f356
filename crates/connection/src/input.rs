//! The unfinished request of one client.
//!
//! Requests are decoded straight from the worker's shared read buffer. Only when one is incomplete at the end of it do its
//! bytes move here, together with the decoder's progress, and further bytes are read in behind them. A client between two
//! requests therefore costs one empty pointer.

use crate::buffer::occupied_bytes;
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
        size_of::<Self>() + occupied_bytes(&self.bytes) + self.decoder.held_bytes()
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

    /// Room for the next read: as much as has arrived already, within bounds, so that growing stays linear. Of an argument that ends within that
    /// there is no more room than it needs.
    pub fn room(&mut self) -> &mut [u8] {
        if self.start > 0 {
            self.bytes.copy_within(self.start..self.filled, 0);
            self.filled -= self.start;
            self.start = 0;
        }
        let wanted = self.wanted();
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

    /// How long the buffer has to be for the next read.
    fn wanted(&self) -> usize {
        let (filled, len) = (self.filled, self.bytes.len());
        let room = filled.clamp(ROOM_BYTES_MIN, ROOM_BYTES_MAX);
        match self.decoder.needed() {
            // What is there suffices, for the argument that is arriving.
            Some(end) if filled < len && end <= len => len,
            Some(end) if end >= filled + ROOM_BYTES_MIN => end.min(filled + room),
            // Behind it come more, of unknown length.
            _ => filled + (room / 4).max(ROOM_BYTES_MIN),
        }
    }

    /// `bytes` bytes were read into [`Self::room`].
    pub fn fill(&mut self, bytes: usize) {
        self.filled = (self.filled + bytes).min(self.bytes.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use respool_wire::{RequestLimits, Step};

    /// Has a request arrive as reads give it, and returns what is held when all but its last byte is there.
    fn held_of(request: &[u8]) -> usize {
        let limits = RequestLimits::default();
        let mut input = Input::begin(RequestDecoder::new(), &request[..100]);
        let mut at = 100;
        loop {
            let (decoder, bytes) = input.split();
            assert!(matches!(decoder.decode(bytes, &limits), Ok(Step::Incomplete)));
            if at == request.len() - 1 {
                return input.held_bytes();
            }
            let room = input.room();
            let read = room.len().min(request.len() - 1 - at).min(40_000);
            room[..read].copy_from_slice(&request[at..at + read]);
            input.fill(read);
            at += read;
        }
    }

    #[test]
    fn a_large_argument_takes_no_more_memory_than_it_has_bytes() {
        for bytes in [100_000, 307_200, 1 << 20, 3_000_000, 40_000_000] {
            let mut request = format!("*2\r\n$3\r\nGET\r\n${bytes}\r\n").into_bytes();
            request.resize(request.len() + bytes + 2, b'v');
            let held = held_of(&request);
            assert!((bytes..bytes + bytes / 50 + 2_000).contains(&held), "{held} of {bytes}");
        }
    }

    #[test]
    fn many_small_arguments_are_copied_seldom() {
        let mut request = b"*100001\r\n$4\r\nMGET\r\n".to_vec();
        (0..100_000).for_each(|_| request.extend_from_slice(b"$3\r\nkey\r\n"));
        let mut input = Input::begin(RequestDecoder::new(), &request[..100]);
        let (mut at, mut moves, mut capacity) = (100, 0, 0);
        while at < request.len() - 1 {
            let (decoder, bytes) = input.split();
            assert!(matches!(decoder.decode(bytes, &RequestLimits::default()), Ok(Step::Incomplete)));
            let room = input.room();
            let read = room.len().min(request.len() - 1 - at).min(5_000);
            room[..read].copy_from_slice(&request[at..at + read]);
            input.fill(read);
            at += read;
            moves += usize::from(std::mem::replace(&mut capacity, input.capacity()) != input.capacity());
            assert!(input.held_bytes() <= at * 3 / 2 + ROOM_BYTES_MIN + 2_000_000, "{} of {at}", input.held_bytes());
        }
        assert!(moves <= 12, "{moves}");
    }
}
