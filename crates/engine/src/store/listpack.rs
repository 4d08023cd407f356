//! The compact small encoding: a run of strings and integers in one allocation, readable from both ends.
//!
//! The layout is Redis's listpack (six bytes of header, entries of encoding, data and backward length, an end byte), so
//! that what is dumped later needs no translation. Positions are offsets of entries; every change voids the ones behind it.

use crate::number::integer::{self, IntegerText};

/// Total bytes (four) and entries (two).
const HEADER_BYTES: usize = 6;
/// The byte behind the last entry.
const END: u8 = 0xff;
/// The entry count that means "walk and see".
const COUNT_UNKNOWN: u16 = u16::MAX;
/// Bytes of an empty listpack.
const EMPTY_BYTES: usize = HEADER_BYTES + 1;

/// Up to this size a listpack has no slack.
const EXACT_BYTES_MAX: usize = 512;

/// One entry, seen from outside: text, or an integer whose text is only written when it is wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Element<'a> {
    Bytes(&'a [u8]),
    Integer(i64),
}

impl<'a> Element<'a> {
    /// Whether this is the text `bytes`.
    #[inline]
    pub(crate) fn is(self, bytes: &[u8]) -> bool {
        match self {
            Self::Bytes(own) => own == bytes,
            Self::Integer(value) => integer::parse(bytes) == Some(value),
        }
    }

    /// Calls `read` with the text.
    #[inline]
    pub(crate) fn read<T>(self, read: impl FnOnce(&[u8]) -> T) -> T {
        match self {
            Self::Bytes(bytes) => read(bytes),
            Self::Integer(value) => read(IntegerText::new(value).as_bytes()),
        }
    }

    /// The text, owned.
    pub(crate) fn to_vec(self) -> Vec<u8> {
        self.read(<[u8]>::to_vec)
    }

    /// Bytes of the text.
    pub(crate) fn len(self) -> usize {
        self.read(<[u8]>::len)
    }
}

/// The first bytes of an entry, before its text if it has one.
struct Head {
    bytes: [u8; 9],
    len: u8,
}

impl Head {
    fn new(lead: u8, rest: &[u8]) -> Self {
        let mut bytes = [0; 9];
        bytes[0] = lead;
        bytes[1..=rest.len()].copy_from_slice(rest);
        Self { bytes, len: 1 + rest.len() as u8 }
    }

    fn integer(value: i64) -> Self {
        let le = value.to_le_bytes();
        match value {
            0..=127 => Self::new(value as u8, &[]),
            -4096..=4095 => Self::new(0xc0 | (value >> 8) as u8 & 0x1f, &le[..1]),
            -32_768..=32_767 => Self::new(0xf1, &le[..2]),
            -8_388_608..=8_388_607 => Self::new(0xf2, &le[..3]),
            -2_147_483_648..=2_147_483_647 => Self::new(0xf3, &le[..4]),
            _ => Self::new(0xf4, &le),
        }
    }

    fn text(len: usize) -> Self {
        match len {
            0..=63 => Self::new(0x80 | len as u8, &[]),
            64..=4095 => Self::new(0xe0 | (len >> 8) as u8, &[len as u8]),
            _ => Self::new(0xf0, &(len as u32).to_le_bytes()),
        }
    }

    fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

/// How many bytes the backward length takes for an entry of `len` bytes.
fn back_bytes(len: usize) -> usize {
    match len {
        0..=127 => 1,
        128..=16_382 => 2,
        16_383..=2_097_150 => 3,
        2_097_151..=268_435_454 => 4,
        _ => 5,
    }
}

/// A run of elements. See the module's text.
#[derive(Clone)]
pub(crate) struct Listpack {
    bytes: Vec<u8>,
}

impl Listpack {
    /// No elements yet.
    pub(crate) fn new() -> Self {
        let mut bytes = Vec::with_capacity(EMPTY_BYTES);
        bytes.extend_from_slice(&[EMPTY_BYTES as u8, 0, 0, 0, 0, 0, END]);
        Self { bytes }
    }

    /// The encoding.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Validates a serialised listpack in all its parts.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let last = bytes.len().checked_sub(1).filter(|last| *last >= HEADER_BYTES)?;
        let total = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize;
        if total != bytes.len() || bytes[last] != END {
            return None;
        }
        let pack = Self { bytes: bytes.to_vec() };
        let (mut at, mut count) = (HEADER_BYTES, 0);
        while at < last {
            // The encoding byte determines how many bytes hold the length; they are checked before they are read.
            let needed = match bytes[at] {
                0..=0xef => 2,
                0xf0 => 5,
                0xf1..=0xf4 => 1,
                _ => return None,
            };
            if at + needed > last {
                return None;
            }
            let end = pack.extent(at).1;
            let back = back_bytes(end - at);
            let mut expected = [0; 5];
            write_back(&mut expected[..back], end - at);
            if end + back > last || bytes[end..end + back] != expected[..back] {
                return None;
            }
            at = end + back;
            count += 1;
        }
        let told = u16::from_le_bytes([bytes[4], bytes[5]]);
        (at == last && (told == COUNT_UNKNOWN || usize::from(told) == count)).then_some(pack)
    }

    /// Bytes of the encoding.
    pub(crate) fn byte_len(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes held from the allocator.
    #[inline]
    pub(crate) fn memory_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    /// How many elements there are.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        let count = u16::from_le_bytes([self.bytes[4], self.bytes[5]]);
        if count == COUNT_UNKNOWN { self.positions().count() } else { usize::from(count) }
    }

    /// Whether there is no element.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.len() == EMPTY_BYTES
    }

    /// Offsets of lead, text and end of the entry at `at`, backward length not included.
    #[inline]
    fn extent(&self, at: usize) -> (usize, usize) {
        let lead = self.bytes[at];
        let (head, text) = match lead {
            0..=0x7f => (1, 0),
            0x80..=0xbf => (1, usize::from(lead & 0x3f)),
            0xc0..=0xdf => (2, 0),
            0xe0..=0xef => (2, usize::from(lead & 0x0f) << 8 | usize::from(self.bytes[at + 1])),
            0xf0 => {
                let b = &self.bytes;
                (5, u32::from_le_bytes([b[at + 1], b[at + 2], b[at + 3], b[at + 4]]) as usize)
            }
            0xf1 => (3, 0),
            0xf2 => (4, 0),
            0xf3 => (5, 0),
            _ => (9, 0),
        };
        (at + head, at + head + text)
    }

    /// The element at a position that [`Listpack::first`] and its kin gave.
    #[inline]
    pub(crate) fn get(&self, at: usize) -> Element<'_> {
        let lead = self.bytes[at];
        let (text, end) = self.extent(at);
        let signed = |bytes: &[u8]| {
            let mut wide = [if bytes.last().is_some_and(|&b| b & 0x80 != 0) { 0xff } else { 0 }; 8];
            wide[..bytes.len()].copy_from_slice(bytes);
            i64::from_le_bytes(wide)
        };
        match lead {
            0..=0x7f => Element::Integer(i64::from(lead)),
            0x80..=0xbf | 0xe0..=0xf0 => Element::Bytes(&self.bytes[text..end]),
            0xc0..=0xdf => {
                let raw = i64::from(lead & 0x1f) << 8 | i64::from(self.bytes[at + 1]);
                Element::Integer(if raw >= 1 << 12 { raw - (1 << 13) } else { raw })
            }
            _ => Element::Integer(signed(&self.bytes[at + 1..text])),
        }
    }

    /// Position of the first element.
    #[inline]
    pub(crate) fn first(&self) -> Option<usize> {
        (!self.is_empty()).then_some(HEADER_BYTES)
    }

    /// Position of the last element.
    pub(crate) fn last(&self) -> Option<usize> {
        self.previous(self.bytes.len() - 1)
    }

    /// Where the entry at `at` ends, backward length included.
    #[inline]
    fn behind(&self, at: usize) -> usize {
        let end = self.extent(at).1;
        end + back_bytes(end - at)
    }

    /// Position of the element after the one at `at`.
    #[inline]
    pub(crate) fn next(&self, at: usize) -> Option<usize> {
        let next = self.behind(at);
        (self.bytes[next] != END).then_some(next)
    }

    /// Position of the element before the one at `at`.
    pub(crate) fn previous(&self, at: usize) -> Option<usize> {
        if at <= HEADER_BYTES {
            return None;
        }
        let (mut len, mut shift, mut read) = (0, 0, at - 1);
        loop {
            let byte = self.bytes[read];
            len |= usize::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                break;
            }
            shift += 7;
            read -= 1;
        }
        Some(read - len)
    }

    /// Position of element `index`, counted from the nearer end.
    pub(crate) fn seek(&self, index: usize) -> Option<usize> {
        let len = self.len();
        if index >= len {
            return None;
        }
        if index <= len / 2 {
            return self.positions().nth(index);
        }
        let mut at = self.last()?;
        for _ in index + 1..len {
            at = self.previous(at)?;
        }
        Some(at)
    }

    /// Positions of all elements in order.
    pub(crate) fn positions(&self) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(self.first(), |&at| self.next(at))
    }

    /// All elements in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Element<'_>> + '_ {
        self.positions().map(|at| self.get(at))
    }

    /// All elements two by two: fields with values, members with scores.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (Element<'_>, Element<'_>)> + '_ {
        let mut next = self.first();
        std::iter::from_fn(move || {
            let first = next?;
            let second = self.next(first)?;
            next = self.next(second);
            Some((self.get(first), self.get(second)))
        })
    }

    /// Position of the first of every `step` elements that is the text `bytes`.
    pub(crate) fn find(&self, bytes: &[u8], step: usize) -> Option<usize> {
        let number = integer::parse(bytes);
        let (mut at, mut left) = (HEADER_BYTES, 0);
        while self.bytes[at] != END {
            let (text, end) = self.extent(at);
            if left > 0 {
                left -= 1;
            } else {
                let is_text = matches!(self.bytes[at], 0x80..=0xbf | 0xe0..=0xf0);
                let is_it = if is_text {
                    self.bytes[text..end] == *bytes
                } else {
                    number.is_some_and(|number| self.get(at) == Element::Integer(number))
                };
                if is_it {
                    return Some(at);
                }
                left = step - 1;
            }
            at = end + back_bytes(end - at);
        }
        None
    }

    /// Adds text before the entry at `at`, or at the end for `None`; text that is an integer is kept as one.
    pub(crate) fn insert(&mut self, at: Option<usize>, bytes: &[u8]) {
        match integer::parse(bytes) {
            Some(value) => self.insert_integer(at, value),
            None => self.insert_bytes(at, bytes),
        }
    }

    /// Adds bytes that are kept as they are, even if they spell an integer.
    pub(crate) fn insert_bytes(&mut self, at: Option<usize>, bytes: &[u8]) {
        let at = at.unwrap_or(self.bytes.len() - 1);
        self.splice(at, at, &Head::text(bytes.len()), bytes);
        self.count_by(1);
    }

    /// Adds an integer.
    pub(crate) fn insert_integer(&mut self, at: Option<usize>, value: i64) {
        let at = at.unwrap_or(self.bytes.len() - 1);
        self.splice(at, at, &Head::integer(value), &[]);
        self.count_by(1);
    }

    /// Adds an element as it came out of another listpack.
    pub(crate) fn insert_element(&mut self, at: Option<usize>, element: Element<'_>) {
        match element {
            Element::Bytes(bytes) => self.insert_bytes(at, bytes),
            Element::Integer(value) => self.insert_integer(at, value),
        }
    }

    /// Adds text at the end.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.insert(None, bytes);
    }

    /// Appends the elements that `write` adds. Reserves `room` bytes, in steps of at least `step`.
    pub(crate) fn append<T>(&mut self, room: usize, step: usize, write: impl FnOnce(&mut Appender<'_>) -> T) -> T {
        if self.bytes.capacity() - self.bytes.len() < room {
            self.bytes.reserve_exact(room.max(step));
        }
        self.bytes.pop();
        let mut appender = Appender { bytes: &mut self.bytes, count: 0 };
        let said = write(&mut appender);
        let count = appender.count;
        self.bytes.push(END);
        self.count_by(count);
        self.set_total();
        said
    }

    /// The integer at a position; zero if the element is a text.
    #[inline]
    pub(crate) fn integer(&self, at: usize) -> i64 {
        match self.get(at) {
            Element::Integer(value) => value,
            Element::Bytes(_) => 0,
        }
    }

    /// Whether the element at a position is the text `bytes`, and the position behind it.
    #[inline]
    pub(crate) fn is_at(&self, at: usize, bytes: &[u8]) -> (bool, usize) {
        let (text, end) = self.extent(at);
        let is_it = match self.bytes[at] {
            0x80..=0xbf | 0xe0..=0xf0 => self.bytes[text..end] == *bytes,
            _ => self.get(at).is(bytes),
        };
        (is_it, end + back_bytes(end - at))
    }

    /// Position of the element `count` elements after the one at `at`, or the end.
    #[inline]
    pub(crate) fn skip(&self, at: usize, count: usize) -> usize {
        (0..count).fold(at, |at, _| self.behind(at))
    }

    /// Whether there is an element at a position, and not the end.
    #[inline]
    pub(crate) fn has(&self, at: usize) -> bool {
        self.bytes[at] != END
    }

    /// Replaces the element at `at` by an integer.
    pub(crate) fn replace_integer(&mut self, at: usize, value: i64) {
        let end = self.behind(at);
        self.splice(at, end, &Head::integer(value), &[]);
    }

    /// Puts other text in the place of the element at `at`.
    pub(crate) fn replace(&mut self, at: usize, bytes: &[u8]) {
        let end = self.behind(at);
        match integer::parse(bytes) {
            Some(value) => self.splice(at, end, &Head::integer(value), &[]),
            None => self.splice(at, end, &Head::text(bytes.len()), bytes),
        }
    }

    /// Takes `count` elements out from the one at `at` on; fewer if there are fewer.
    pub(crate) fn remove(&mut self, at: usize, count: usize) {
        let (mut end, mut removed) = (at, 0);
        while removed < count && self.bytes[end] != END {
            end = self.behind(end);
            removed += 1;
        }
        self.bytes.drain(at..end);
        self.count_by(-(removed as isize));
        self.set_total();
        self.give_back();
    }

    /// Splits at the element at `at`, which becomes the first of the returned listpack.
    pub(crate) fn split_off(&mut self, at: usize) -> Self {
        let mut tail = Self::new();
        let mut moved = 0;
        let mut next = Some(at);
        while let Some(position) = next {
            next = self.next(position);
            moved += 1;
        }
        let end = self.bytes.len() - 1;
        tail.bytes.truncate(HEADER_BYTES);
        tail.bytes.extend_from_slice(&self.bytes[at..=end]);
        tail.count_by(moved);
        tail.set_total();
        self.bytes.truncate(at);
        self.bytes.push(END);
        self.count_by(-moved);
        self.set_total();
        tail
    }

    /// Gives unused memory back if it is much.
    fn give_back(&mut self) {
        if self.bytes.len() * 2 < self.bytes.capacity() {
            self.shrink();
        }
    }

    /// Gives unused memory back.
    pub(crate) fn shrink(&mut self) {
        self.bytes.shrink_to_fit();
    }

    fn splice(&mut self, at: usize, end: usize, head: &Head, text: &[u8]) {
        let entry = usize::from(head.len) + text.len();
        let back = back_bytes(entry);
        let (old, new) = (end - at, entry + back);
        let len = self.bytes.len();
        if new > old {
            let more = new - old;
            if self.bytes.capacity() - len < more {
                // A small one fits exactly, as there may be many; a large one grows by an eighth and is copied seldom.
                self.bytes.reserve_exact(if len < EXACT_BYTES_MAX { more } else { more.max(len / 8) });
            }
            self.bytes.resize(len + more, 0);
            self.bytes.copy_within(end..len, at + new);
        } else if new < old {
            self.bytes.copy_within(end..len, at + new);
            self.bytes.truncate(len - (old - new));
            self.give_back();
        }
        let out = &mut self.bytes[at..at + new];
        let (head_out, rest) = out.split_at_mut(usize::from(head.len));
        head_out.copy_from_slice(head.as_bytes());
        rest[..text.len()].copy_from_slice(text);
        write_back(&mut rest[text.len()..], entry);
        self.set_total();
    }

    fn count_by(&mut self, change: isize) {
        let count = u16::from_le_bytes([self.bytes[4], self.bytes[5]]);
        let count = if count == COUNT_UNKNOWN && change < 0 {
            // Walk once: the count may be small enough again.
            u16::try_from(self.positions().count()).unwrap_or(COUNT_UNKNOWN)
        } else if count == COUNT_UNKNOWN {
            count
        } else {
            u16::try_from(count as isize + change).unwrap_or(COUNT_UNKNOWN)
        };
        self.bytes[4..6].copy_from_slice(&count.to_le_bytes());
    }

    fn set_total(&mut self) {
        let total = u32::try_from(self.bytes.len()).unwrap_or(u32::MAX);
        self.bytes[..4].copy_from_slice(&total.to_le_bytes());
    }
}

/// Appends elements to a listpack; see [`Listpack::append`].
pub(crate) struct Appender<'a> {
    bytes: &'a mut Vec<u8>,
    count: isize,
}

/// A text of at most this many bytes takes two bytes beside its own.
const SHORT_BYTES_MAX: usize = 63;
/// Bytes that an element may take beside its text.
pub(crate) const ELEMENT_BYTES: usize = 10;

impl Appender<'_> {
    /// Adds a text; a text that is an integer is stored as one.
    #[inline]
    pub(crate) fn push(&mut self, text: &[u8]) {
        // Most texts do not begin with a digit; the rest of them is not parsed.
        let is_number_like = matches!(text.first(), Some(b'0'..=b'9' | b'-'));
        match is_number_like.then(|| integer::parse(text)).flatten() {
            Some(value) => self.push_integer(value),
            None => self.push_text(text),
        }
    }

    /// Adds an integer.
    #[inline]
    pub(crate) fn push_integer(&mut self, value: i64) {
        self.count += 1;
        if let 0..=127 = value {
            return self.bytes.extend_from_slice(&[value as u8, 1]);
        }
        let head = Head::integer(value);
        self.bytes.extend_from_slice(head.as_bytes());
        self.bytes.push(head.len);
    }

    #[inline]
    fn push_text(&mut self, text: &[u8]) {
        self.count += 1;
        if text.len() <= SHORT_BYTES_MAX {
            self.bytes.push(0x80 | text.len() as u8);
            self.bytes.extend_from_slice(text);
            return self.bytes.push(1 + text.len() as u8);
        }
        let head = Head::text(text.len());
        let entry = usize::from(head.len) + text.len();
        self.bytes.extend_from_slice(head.as_bytes());
        self.bytes.extend_from_slice(text);
        let at = self.bytes.len();
        self.bytes.resize(at + back_bytes(entry), 0);
        write_back(&mut self.bytes[at..], entry);
    }
}

/// Writes the backward length of an entry of `len` bytes, most significant part first.
fn write_back(out: &mut [u8], len: usize) {
    let last = out.len() - 1;
    for (index, byte) in out.iter_mut().enumerate() {
        let part = (len >> (7 * (last - index))) as u8 & 0x7f;
        *byte = if index == 0 { part } else { part | 0x80 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::random::Random;

    #[test]
    fn the_layout_is_the_public_one() {
        let mut pack = Listpack::new();
        for text in ["hello", "1", "-1", "300000", "9223372036854775807"] {
            pack.push(text.as_bytes());
        }
        let expected: &[u8] = &[
            33, 0, 0, 0, 5, 0, 0x85, b'h', b'e', b'l', b'l', b'o', 6, 1, 1, 0xdf, 0xff, 2, 0xf2, 0xe0, 0x93, 0x04, 4,
            0xf4, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 9, 0xff,
        ];
        assert_eq!(&pack.bytes[6..], &expected[6..]);
        assert_eq!(pack.bytes.len(), expected.len());
    }

    fn texts(pack: &Listpack) -> Vec<Vec<u8>> {
        pack.iter().map(Element::to_vec).collect()
    }

    fn texts_backwards(pack: &Listpack) -> Vec<Vec<u8>> {
        let mut found: Vec<_> =
            std::iter::successors(pack.last(), |&at| pack.previous(at)).map(|at| pack.get(at).to_vec()).collect();
        found.reverse();
        found
    }

    #[test]
    fn a_short_element_in_the_place_of_a_long_one_gives_memory_back() {
        let mut pack = Listpack::new();
        pack.push(&vec![b'x'; 1 << 20]);
        pack.replace(pack.seek(0).unwrap(), b"short");
        assert!(pack.memory_bytes() < 100, "{} bytes", pack.memory_bytes());
        assert_eq!(texts(&pack), [b"short"]);
    }

    #[test]
    fn it_does_what_a_vector_does() {
        let mut random = Random::new(11);
        let (mut pack, mut model) = (Listpack::new(), Vec::<Vec<u8>>::new());
        for _ in 0..4_000 {
            let text = match random.below(5) {
                0 => vec![b'x'; random.below(5_000) as usize],
                1 => vec![b'y'; random.below(70) as usize],
                2 => (random.bits() as i64).to_string().into_bytes(),
                3 => (random.below(20_000) as i64 - 10_000).to_string().into_bytes(),
                _ => ((random.bits() >> (random.below(60) + 1)) as i64).to_string().into_bytes(),
            };
            let at = random.below(model.len() as u64 + 1) as usize;
            match random.below(if model.len() > 60 { 4 } else { 8 }) {
                0 if at < model.len() => {
                    let count = 1 + random.below(20) as usize;
                    pack.remove(pack.seek(at).unwrap(), count);
                    model.drain(at..(at + count).min(model.len()));
                }
                1 if at < model.len() => {
                    pack.replace(pack.seek(at).unwrap(), &text);
                    model[at] = text;
                }
                2 if at < model.len() => {
                    let tail = pack.split_off(pack.seek(at).unwrap());
                    assert_eq!(texts(&tail), model.split_off(at));
                    assert_eq!(tail.len(), texts(&tail).len());
                }
                _ => {
                    pack.insert(pack.seek(at), &text);
                    model.insert(at, text);
                }
            }
            assert_eq!(pack.len(), model.len());
        }
        assert_eq!(texts(&pack), model);
        assert_eq!(texts_backwards(&pack), model);
        for text in &model {
            assert_eq!(pack.find(text, 1), pack.seek(model.iter().position(|other| other == text).unwrap()));
        }
    }
}
