//! Bytes that wait to be written, in two forms: one buffer that everything is copied into, or segments, of which none is moved to grow
//! and large values are not copied.

use crate::buffer::occupied_bytes;
use crate::limits::{POOLED_BUFFER_BYTES_MAX, SEGMENT_BYTES_MIN, SEGMENTS_KEPT};
use crate::{BufferPool, Output};
use std::borrow::Cow;
use std::collections::VecDeque;

/// Where a connection's requests wait. [`Output`] is one buffer; [`Segments`] keeps large values where they are.
pub trait Outbox: Default {
    /// How many bytes wait.
    fn len(&self) -> usize;

    /// Whether nothing waits.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Memory that is held.
    fn held_bytes(&self) -> usize;

    /// The first bytes that wait: empty only if none do.
    fn front(&self) -> &[u8];

    /// The bytes that wait, from the one with the number `position` on.
    fn tail(&self, position: usize) -> Cow<'_, [u8]>;

    /// The buffer to append to. Only ever append: what is in it already waits to be written.
    fn appender(&mut self, pool: &mut BufferPool) -> &mut Vec<u8>;

    /// The first `bytes` waiting bytes were written.
    fn advance(&mut self, bytes: usize, pool: &mut BufferPool);

    /// Forgets everything that waits.
    fn clear(&mut self, pool: &mut BufferPool);

    /// Takes the memory of what waits if that is one buffer to keep, and of it nothing was written before. Otherwise gives an empty one.
    fn take_whole(&mut self) -> Vec<u8> {
        Vec::new()
    }

    /// Takes `buffer`, which is empty, for what is appended next, unless there is one.
    fn use_buffer(&mut self, buffer: &mut Vec<u8>) {
        let _ = buffer;
    }
}

impl Outbox for Output {
    #[inline(always)]
    fn len(&self) -> usize {
        Self::len(self)
    }

    #[inline(always)]
    fn is_empty(&self) -> bool {
        Self::is_empty(self)
    }

    fn held_bytes(&self) -> usize {
        Self::held_bytes(self)
    }

    #[inline(always)]
    fn front(&self) -> &[u8] {
        self.as_slice()
    }

    fn tail(&self, position: usize) -> Cow<'_, [u8]> {
        Cow::Borrowed(self.as_slice().get(position..).unwrap_or_default())
    }

    #[inline(always)]
    fn appender(&mut self, pool: &mut BufferPool) -> &mut Vec<u8> {
        Self::appender(self, pool)
    }

    #[inline(always)]
    fn advance(&mut self, bytes: usize, pool: &mut BufferPool) {
        Self::advance(self, bytes, pool);
    }

    fn clear(&mut self, pool: &mut BufferPool) {
        Self::clear(self, pool);
    }

    #[inline(always)]
    fn take_whole(&mut self) -> Vec<u8> {
        Self::take_whole(self)
    }

    #[inline(always)]
    fn use_buffer(&mut self, buffer: &mut Vec<u8>) {
        Self::use_buffer(self, buffer);
    }
}

/// Segments of which all are copied.
pub type Copied = Segments<&'static [u8]>;

/// Bytes that wait to be written, in order. `S` is a value that is kept instead of copied: `Arc<[u8]>`, `bytes::Bytes`, `&'static [u8]`.
///
/// What is copied is appended to a buffer of a size that the pool keeps, and to the next one when that is nearly full: a long queue is
/// not moved to larger memory again and again, and the memory of its first bytes serves its last ones.
#[derive(Debug)]
pub struct Segments<S> {
    closed: VecDeque<Segment<S>>,
    /// Bytes of `closed` less `written`, which may be more.
    before_open: isize,
    /// Memory of `closed`.
    closed_held: usize,
    /// What is appended to. It comes behind `closed`.
    open: Vec<u8>,
    /// How much of the first segment has been written already.
    written: usize,
}

#[derive(Debug)]
enum Segment<S> {
    Copied(Vec<u8>),
    Kept(S),
}

impl<S: AsRef<[u8]>> Segment<S> {
    fn as_slice(&self) -> &[u8] {
        match self {
            Self::Copied(bytes) => bytes,
            Self::Kept(value) => value.as_ref(),
        }
    }

    fn held_bytes(&self) -> usize {
        match self {
            Self::Copied(bytes) => occupied_bytes(bytes),
            Self::Kept(value) => value.as_ref().len(),
        }
    }
}

impl<S> Default for Segments<S> {
    fn default() -> Self {
        Self { closed: VecDeque::new(), before_open: 0, closed_held: 0, open: Vec::new(), written: 0 }
    }
}

impl<S: AsRef<[u8]>> Segments<S> {
    /// Appends a value without copying it, unless it is so small that a segment costs more.
    pub fn keep(&mut self, value: S, pool: &mut BufferPool) {
        if value.as_ref().len() < SEGMENT_BYTES_MIN {
            self.appender(pool).extend_from_slice(value.as_ref());
            return;
        }
        if !self.open.is_empty() {
            let open = std::mem::take(&mut self.open);
            self.close(Segment::Copied(open));
        }
        self.close(Segment::Kept(value));
    }

    fn close(&mut self, segment: Segment<S>) {
        self.before_open += segment.as_slice().len() as isize;
        self.closed_held += segment.held_bytes();
        self.closed.push_back(segment);
    }

    /// The buffer has no room for another small request: begins the next one.
    #[cold]
    fn begin_buffer(&mut self, pool: &mut BufferPool) {
        let full = std::mem::replace(&mut self.open, pool.take());
        self.open.reserve_exact(POOLED_BUFFER_BYTES_MAX);
        self.close(Segment::Copied(full));
    }

    /// Gives back the buffers of segments that have been written.
    #[cold]
    fn release_written(&mut self, pool: &mut BufferPool) {
        while let Some(first) = self.closed.front()
            && self.written >= first.as_slice().len()
        {
            self.written -= first.as_slice().len();
            self.release_first(pool);
        }
        if self.closed.is_empty() {
            self.closed.shrink_to(SEGMENTS_KEPT);
        }
    }

    #[cold]
    fn release_all(&mut self, pool: &mut BufferPool) {
        while !self.closed.is_empty() {
            self.release_first(pool);
        }
        self.closed.shrink_to(SEGMENTS_KEPT);
    }

    fn release_first(&mut self, pool: &mut BufferPool) {
        if let Some(segment) = self.closed.pop_front() {
            self.closed_held -= segment.held_bytes();
            if let Segment::Copied(buffer) = segment {
                pool.put(buffer);
            }
        }
    }

    /// The bytes that wait, in order. None of the slices is empty.
    pub fn slices(&self) -> impl Iterator<Item = &[u8]> {
        let all = self.closed.iter().map(Segment::as_slice).chain([&*self.open]);
        let of_first = self.written;
        let rest = all.enumerate().map(move |(place, bytes)| if place == 0 { &bytes[of_first..] } else { bytes });
        rest.filter(|bytes| !bytes.is_empty())
    }
}

impl<S: AsRef<[u8]>> Outbox for Segments<S> {
    #[inline]
    fn len(&self) -> usize {
        self.open.len().wrapping_add_signed(self.before_open)
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.open.is_empty() && self.closed.is_empty()
    }

    fn held_bytes(&self) -> usize {
        self.closed_held + self.closed.capacity() * size_of::<Segment<S>>() + occupied_bytes(&self.open)
    }

    #[inline]
    fn front(&self) -> &[u8] {
        let first = self.closed.front().map_or(&*self.open, Segment::as_slice);
        &first[self.written..]
    }

    fn tail(&self, position: usize) -> Cow<'_, [u8]> {
        let mut before = position;
        let mut parts = self.slices().filter_map(move |bytes| {
            let skipped = before.min(bytes.len());
            before -= skipped;
            (skipped < bytes.len()).then(|| &bytes[skipped..])
        });
        let first = parts.next().unwrap_or_default();
        match parts.next() {
            None => Cow::Borrowed(first),
            Some(second) => Cow::Owned([first, second].into_iter().chain(parts).flatten().copied().collect()),
        }
    }

    #[inline(always)]
    fn appender(&mut self, pool: &mut BufferPool) -> &mut Vec<u8> {
        if self.open.capacity() == 0 {
            self.open = pool.take();
        } else if self.open.len() >= POOLED_BUFFER_BYTES_MAX - SEGMENT_BYTES_MIN {
            self.begin_buffer(pool);
        }
        &mut self.open
    }

    #[inline]
    fn advance(&mut self, bytes: usize, pool: &mut BufferPool) {
        if bytes >= self.len() {
            return self.clear(pool);
        }
        self.written += bytes;
        self.before_open -= bytes as isize;
        if !self.closed.is_empty() {
            self.release_written(pool);
        }
    }

    #[inline]
    fn clear(&mut self, pool: &mut BufferPool) {
        if !self.closed.is_empty() {
            self.release_all(pool);
        }
        if self.open.capacity() > 0 {
            pool.put(std::mem::take(&mut self.open));
        }
        (self.before_open, self.written) = (0, 0);
    }

    #[inline(always)]
    fn take_whole(&mut self) -> Vec<u8> {
        if self.written > 0 || !self.closed.is_empty() || self.open.capacity() > POOLED_BUFFER_BYTES_MAX {
            return Vec::new();
        }
        std::mem::take(&mut self.open)
    }

    #[inline(always)]
    fn use_buffer(&mut self, buffer: &mut Vec<u8>) {
        if self.open.capacity() == 0 {
            self.open = std::mem::take(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    /// Values of all sizes, appended and kept in turn, and written in steps of all sizes.
    #[test]
    fn bytes_leave_in_order_whatever_is_kept() {
        let mut pool = BufferPool::new();
        let mut segments: Segments<Arc<[u8]>> = Segments::default();
        let (mut expected, mut seen) = (Vec::new(), Vec::new());
        for round in 0..200_usize {
            let value: Vec<u8> = (0..round * 997 % (2 * SEGMENT_BYTES_MIN)).map(|at| (at + round) as u8).collect();
            expected.extend_from_slice(&value);
            match round % 3 {
                0 => segments.appender(&mut pool).extend_from_slice(&value),
                _ => segments.keep(value.into(), &mut pool),
            }
            let step = (round * 7_919 % 20_000).min(segments.len());
            let waiting: Vec<u8> = segments.slices().flatten().copied().collect();
            assert_eq!(waiting.len(), segments.len());
            seen.extend_from_slice(&waiting[..step]);
            segments.advance(step, &mut pool);
        }
        seen.extend(segments.slices().flatten());
        assert_eq!(seen, expected);
        segments.advance(usize::MAX, &mut pool);
        assert!(segments.is_empty() && segments.slices().next().is_none());
        assert_eq!(segments.open.capacity(), 0, "the buffer went back");
    }

    #[test]
    fn a_large_value_is_not_copied_and_is_let_go_when_it_is_written() {
        let mut pool = BufferPool::new();
        let value: Arc<[u8]> = vec![7; SEGMENT_BYTES_MIN].into();
        let mut segments = Segments::default();
        segments.appender(&mut pool).extend_from_slice(b"head");
        segments.keep(Arc::clone(&value), &mut pool);
        segments.appender(&mut pool).extend_from_slice(b"\r\n");
        let places: Vec<*const u8> = segments.slices().map(<[u8]>::as_ptr).collect();
        assert_eq!((places.len(), places[1]), (3, value.as_ptr()));
        assert!(segments.held_bytes() >= SEGMENT_BYTES_MIN);
        segments.advance(4 + SEGMENT_BYTES_MIN - 1, &mut pool);
        assert_eq!((segments.len(), Arc::strong_count(&value)), (3, 2));
        segments.advance(1, &mut pool);
        assert_eq!((segments.len(), Arc::strong_count(&value)), (2, 1));
    }

    #[test]
    fn a_long_queue_lies_in_buffers_that_the_pool_keeps() {
        let mut pool = BufferPool::new();
        let mut segments = Copied::default();
        let mut expected = Vec::new();
        for number in 0..10_000_usize {
            let request = format!("{number:0>200}").repeat(1 + number % 3);
            segments.appender(&mut pool).extend_from_slice(request.as_bytes());
            expected.extend_from_slice(request.as_bytes());
        }
        let (bytes, held) = (expected.len(), segments.held_bytes());
        assert!(held > bytes && held < bytes + bytes / 8 + 2 * POOLED_BUFFER_BYTES_MAX, "{held} for {bytes}");
        let buffers = segments.closed.len();
        assert!(buffers > bytes / POOLED_BUFFER_BYTES_MAX, "{buffers}");
        let mut seen = 0;
        while !segments.is_empty() {
            let front = segments.front().to_vec();
            assert!(!front.is_empty() && front == expected[seen..seen + front.len()]);
            let step = if seen % 3 == 0 { front.len() } else { front.len().div_ceil(2) };
            segments.advance(step, &mut pool);
            seen += step;
        }
        assert_eq!((seen, segments.front()), (bytes, &[][..]));
        assert!(pool.held_bytes() >= buffers * POOLED_BUFFER_BYTES_MAX, "none has outgrown the pool");
    }

    #[test]
    fn the_end_of_a_queue_is_found_wherever_it_begins() {
        let mut pool = BufferPool::new();
        let mut segments = Copied::default();
        let expected: Vec<u8> = (0..4 * POOLED_BUFFER_BYTES_MAX).map(|at| (at / 251) as u8).collect();
        for part in expected.chunks(1_000) {
            segments.appender(&mut pool).extend_from_slice(part);
        }
        segments.advance(70_001, &mut pool);
        let waiting = &expected[70_001..];
        let len = waiting.len();
        for position in [0, 1, 50_000, 51_000, 120_000, len - 1_000, len - 1, len, len + 1, usize::MAX] {
            let tail = segments.tail(position);
            assert!(*tail == *waiting.get(position..).unwrap_or_default(), "from {position}");
        }
        assert!(matches!(segments.tail(len - 1_000), Cow::Borrowed(_)), "one request is not copied");
    }

    #[test]
    fn a_batch_that_is_one_buffer_can_be_kept() {
        let mut pool = BufferPool::new();
        let mut segments = Copied::default();
        segments.appender(&mut pool).extend_from_slice(b"one");
        let batch = segments.take_whole();
        assert_eq!((batch.as_slice(), segments.len()), (&b"one"[..], 0));
        segments.advance(batch.len(), &mut pool);
        let mut spare = Vec::with_capacity(100);
        segments.use_buffer(&mut spare);
        segments.appender(&mut pool).extend_from_slice(b"two");
        assert_eq!((segments.open.capacity(), spare.capacity()), (100, 0));
        segments.advance(1, &mut pool);
        assert_eq!(segments.take_whole(), b"", "a part of it was written before");
        assert_eq!(segments.front(), b"wo");
        segments.appender(&mut pool).extend_from_slice(&[0; POOLED_BUFFER_BYTES_MAX]);
        segments.appender(&mut pool).extend_from_slice(b"three");
        segments.advance(2 + POOLED_BUFFER_BYTES_MAX, &mut pool);
        assert_eq!(segments.front(), b"three");
        assert_eq!(segments.take_whole(), b"three", "it is the only one left");
    }

    #[test]
    fn a_lost_connection_lets_go_of_everything() {
        let mut pool = BufferPool::new();
        let value: Arc<[u8]> = vec![7; SEGMENT_BYTES_MIN].into();
        let mut segments = Segments::default();
        segments.keep(Arc::clone(&value), &mut pool);
        segments.advance(10, &mut pool);
        segments.clear(&mut pool);
        assert!(segments.is_empty() && Arc::strong_count(&value) == 1);
        segments.appender(&mut pool).push(1);
        assert_eq!(segments.slices().collect::<Vec<_>>(), [&[1][..]]);
    }
}
