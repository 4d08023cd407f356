//! The arguments of one request, borrowed from the bytes that carried them.
//!
//! [`Args`] is what every later stage sees: routing, local answers and execution. It never owns bytes, so a request
//! costs no allocation on its way. [`ArgsBuf`] is its owning twin, for requests that are made rather than read.

use std::fmt;
use std::ops::Index;

/// Where one argument lies in the bytes of its request: a half-open range of offsets.
///
/// Offsets are 32 bits wide, which holds because the limits refuse a request of 4 GiB or more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Offset of the first byte.
    pub start: u32,
    /// Offset behind the last byte.
    pub end: u32,
}

/// The arguments of one request, the command's name first. Cheap to copy.
#[derive(Clone, Copy)]
pub struct Args<'a> {
    bytes: &'a [u8],
    spans: &'a [Span],
}

impl<'a> Args<'a> {
    /// Views `spans` of `bytes` as arguments. Every span must lie within `bytes`.
    #[inline]
    pub fn new(bytes: &'a [u8], spans: &'a [Span]) -> Self {
        debug_assert!(spans.iter().all(|s| s.start <= s.end && s.end as usize <= bytes.len()));
        Self { bytes, spans }
    }

    /// How many arguments there are, the command's name included.
    #[inline]
    pub fn len(self) -> usize {
        self.spans.len()
    }

    /// Whether there is no argument at all, not even a name.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.spans.is_empty()
    }

    /// The argument at `index`, or `None` past the end.
    #[inline]
    pub fn get(self, index: usize) -> Option<&'a [u8]> {
        let span = self.spans.get(index)?;
        self.bytes.get(span.start as usize..span.end as usize)
    }

    /// The argument at `index`. Panics past the end, as slices do: use it after the arity was checked.
    #[inline]
    pub fn at(self, index: usize) -> &'a [u8] {
        let span = self.spans[index];
        &self.bytes[span.start as usize..span.end as usize]
    }

    /// Where the argument at `index` ends in the bytes of its request. Panics past the end.
    #[inline]
    pub(crate) fn end_of(self, index: usize) -> usize {
        self.spans[index].end as usize
    }

    /// The command's name as it was sent, or an empty slice if there is none.
    #[inline]
    pub fn name(self) -> &'a [u8] {
        self.get(0).unwrap_or_default()
    }

    /// The arguments from `index` on; empty if there are fewer.
    #[inline]
    pub fn from(self, index: usize) -> Self {
        Self { bytes: self.bytes, spans: self.spans.get(index..).unwrap_or_default() }
    }

    /// The first `count` arguments; all of them if there are fewer.
    #[inline]
    pub fn first(self, count: usize) -> Self {
        Self { bytes: self.bytes, spans: self.spans.get(..count).unwrap_or(self.spans) }
    }

    /// All arguments in order.
    #[inline]
    pub fn iter(self) -> impl DoubleEndedIterator<Item = &'a [u8]> + ExactSizeIterator + Clone {
        self.spans.iter().map(move |s| &self.bytes[s.start as usize..s.end as usize])
    }
}

impl Index<usize> for Args<'_> {
    type Output = [u8];

    fn index(&self, index: usize) -> &[u8] {
        self.at(index)
    }
}

impl fmt::Debug for Args<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().map(|a| a.escape_ascii().to_string())).finish()
    }
}

/// Splits a line into words as an inline request is split: quotes and escapes are those of Redis. `None` if a quote is not closed, or
/// is closed in the middle of a word.
///
/// ```
/// # use respool_wire::split_words;
/// let words = split_words(br#"SET "a key" '\x41' "\x41""#).unwrap();
/// assert_eq!(words.as_args().iter().collect::<Vec<_>>(), [&b"SET"[..], b"a key", br"\x41", b"A"]);
/// assert!(split_words(b"GET \"a").is_none());
/// ```
pub fn split_words(line: &[u8]) -> Option<ArgsBuf> {
    let (mut bytes, mut spans) = (Vec::new(), crate::spans::Spans::default());
    crate::inline::split(line, &mut bytes, &mut spans).ok()?;
    Some(ArgsBuf { bytes, spans: spans.as_slice().to_vec() })
}

/// Arguments that own their bytes: for tests, for requests that Respool makes itself, and for calls in process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArgsBuf {
    bytes: Vec<u8>,
    spans: Vec<Span>,
}

impl ArgsBuf {
    /// No arguments yet.
    pub const fn new() -> Self {
        Self { bytes: Vec::new(), spans: Vec::new() }
    }

    /// Adds one argument at the end. Panics when the arguments together reach 4 GiB.
    pub fn push(&mut self, argument: &[u8]) -> &mut Self {
        let start = u32::try_from(self.bytes.len()).expect("a request made in process stays under 4 GiB");
        self.bytes.extend_from_slice(argument);
        let end = u32::try_from(self.bytes.len()).expect("a request made in process stays under 4 GiB");
        self.spans.push(Span { start, end });
        self
    }

    /// Forgets all arguments and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.spans.clear();
    }

    /// Bytes that it has room for without more memory, arguments and their places together.
    pub fn capacity(&self) -> usize {
        self.bytes.capacity() + self.spans.capacity() * size_of::<Span>()
    }

    /// No arguments yet, and room for so many of so many bytes in all: nothing of them is copied while they come.
    pub fn with_room(arguments: usize, bytes: usize) -> Self {
        Self { bytes: Vec::with_capacity(bytes), spans: Vec::with_capacity(arguments) }
    }

    /// Forgets all arguments and overwrites them.
    pub fn wipe(&mut self) {
        crate::wipe(&mut self.bytes);
        self.bytes.clear();
        self.spans.clear();
    }

    /// Borrows the arguments.
    pub fn as_args(&self) -> Args<'_> {
        Args::new(&self.bytes, &self.spans)
    }
}

impl From<Args<'_>> for ArgsBuf {
    /// A copy, which has room for nothing else.
    fn from(args: Args<'_>) -> Self {
        let mut made = Self::with_room(args.len(), args.iter().map(<[u8]>::len).sum());
        args.iter().for_each(|argument| _ = made.push(argument));
        made
    }
}

/// A copy of arguments that may be secret: it is overwritten when it is dropped.
#[derive(Debug)]
pub struct SecretArgs(ArgsBuf);

impl SecretArgs {
    /// Borrows the arguments.
    pub fn as_args(&self) -> Args<'_> {
        self.0.as_args()
    }
}

impl From<Args<'_>> for SecretArgs {
    fn from(args: Args<'_>) -> Self {
        Self(args.into())
    }
}

impl Drop for SecretArgs {
    fn drop(&mut self) {
        self.0.wipe();
    }
}

impl<A: AsRef<[u8]>> FromIterator<A> for ArgsBuf {
    fn from_iter<I: IntoIterator<Item = A>>(arguments: I) -> Self {
        let mut made = Self::new();
        for argument in arguments {
            made.push(argument.as_ref());
        }
        made
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_of_borrowed_arguments_is_exact() {
        let words: ArgsBuf = ["GET", "", "a long name of a key"].iter().collect();
        let copy = ArgsBuf::from(words.as_args().from(1));
        assert!(copy.as_args().iter().eq(words.as_args().from(1).iter()));
        assert_eq!(copy.capacity(), 20 + 2 * size_of::<Span>());
        let secret = SecretArgs::from(words.as_args());
        assert!(secret.as_args().iter().eq(words.as_args().iter()));
    }

    #[test]
    fn arguments_come_back_as_they_were_pushed() {
        let made: ArgsBuf = ["SET", "", "v\r\n"].into_iter().collect();
        let args = made.as_args();
        assert_eq!(args.len(), 3);
        assert_eq!(args.name(), b"SET");
        assert_eq!(&args[1], b"");
        assert_eq!(args.get(2), Some(&b"v\r\n"[..]));
        assert_eq!(args.get(3), None);
        assert_eq!(args.from(1).iter().collect::<Vec<_>>(), [&b""[..], b"v\r\n"]);
        assert!(args.from(9).is_empty());
        assert_eq!(args.first(2).iter().collect::<Vec<_>>(), [&b"SET"[..], b""]);
        assert_eq!(args.first(9).len(), 3);
    }
}
