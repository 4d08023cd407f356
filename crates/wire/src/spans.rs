//! The list of spans that a decoder fills: the first few in place, more on the heap.

use crate::Span;

/// Spans that need no heap. Eight cover every command that is sent all day but the multi-key ones.
const FEW: usize = 8;

/// Spans whose memory an idle list keeps for the next request: 512 bytes.
const KEPT: usize = 64;

/// A list of spans. Grows with what is pushed and nothing else.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spans {
    count: usize,
    few: [Span; FEW],
    many: Vec<Span>,
}

impl Spans {
    /// Forgets all spans and keeps the memory.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.count = 0;
    }

    /// Memory beyond the few that lie in place.
    pub(crate) fn held_bytes(&self) -> usize {
        self.many.capacity() * size_of::<Span>()
    }

    /// Gives back memory that only an unusual request needs. The list must be done with.
    pub(crate) fn trim(&mut self) {
        self.clear();
        if self.many.capacity() > KEPT {
            self.many = Vec::new();
        }
    }

    /// Adds a span at the end.
    #[inline(always)]
    pub(crate) fn push(&mut self, span: Span) {
        match self.few.get_mut(self.count) {
            Some(place) => *place = span,
            None => self.push_many(span),
        }
        self.count += 1;
    }

    /// The first `count` inline places, if there are as many. Spans written there take effect with [`Self::keep_first`].
    #[inline(always)]
    pub(crate) fn places(&mut self, count: usize) -> Option<&mut [Span]> {
        self.few.get_mut(..count)
    }

    /// Makes the list the spans in the first `count` inline places.
    #[inline(always)]
    pub(crate) fn keep_first(&mut self, count: usize) {
        debug_assert!(count <= FEW);
        self.count = count;
    }

    /// All spans in order.
    #[inline]
    pub(crate) fn as_slice(&self) -> &[Span] {
        match self.few.get(..self.count) {
            Some(few) => few,
            None => &self.many,
        }
    }

    /// Bytes that the list has on the heap.
    #[cfg(test)]
    pub(crate) fn heap_bytes(&self) -> usize {
        self.many.capacity() * size_of::<Span>()
    }

    #[inline]
    fn push_many(&mut self, span: Span) {
        if self.count == FEW {
            self.many.clear();
            self.many.extend_from_slice(&self.few);
        }
        self.many.push(span);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_come_back_in_order_on_both_sides_of_the_heap() {
        let mut spans = Spans::default();
        for _ in 0..2 {
            for total in [0, 1, FEW - 1, FEW, FEW + 1, 1_000] {
                spans.clear();
                let pushed: Vec<Span> = (0..total as u32).map(|n| Span { start: n, end: 2 * n }).collect();
                pushed.iter().for_each(|&span| spans.push(span));
                assert_eq!(spans.as_slice(), pushed);
            }
            spans.trim();
            assert_eq!(spans.many.capacity(), 0);
            assert!(spans.as_slice().is_empty());
        }
    }
}
