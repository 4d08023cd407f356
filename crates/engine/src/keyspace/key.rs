//! The record of a key: header, deadline if it has one, the key's bytes, and the value or where it is.
//!
//! ```text
//! 0      kind of value, bit 7: has a deadline
//! 1..4   access clock in seconds, 24 bits
//! 4      bytes of the key; 255: the next four bytes tell
//! [..12] deadline in milliseconds (8), place in the database's list of keys with deadlines (4)
//! ..     the key
//! ..     Integer: 8 bytes. Short, Raw: length (1) and bytes. Long: handle (4). Object: its number (4).
//! ```

use crate::store::listpack::Element;
use crate::store::pool::{Handle, Pool};

/// Strings up to this many bytes lie in the key's record.
pub(crate) const INLINE_BYTES_MAX: usize = 255;
/// Strings up to this many bytes are what Redis calls `embstr`, unless they were edited.
pub(crate) const EMBEDDED_BYTES_MAX: usize = 44;

const HAS_DEADLINE: u8 = 0x80;
const KEY_LENGTH_AT: usize = 4;
const KEY_LENGTH_LONG: u8 = 255;
const DEADLINE_BYTES: usize = 12;

/// What becomes of a key's deadline when its value is replaced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Expiry {
    Keep,
    Never,
    At(i64),
}

/// What a key holds, and how.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// A string that is an integer.
    Integer = 0,
    /// A short string, in the record, as it was set.
    Short = 1,
    /// A string in the record that Redis would call `raw`.
    Raw = 2,
    /// A string in a record of its own.
    Long = 3,
    List = 4,
    Hash = 5,
    Set = 6,
    SortedSet = 7,
    Stream = 8,
}

impl Kind {
    #[inline]
    fn of(byte: u8) -> Self {
        match byte & !HAS_DEADLINE {
            0 => Self::Integer,
            1 => Self::Short,
            2 => Self::Raw,
            3 => Self::Long,
            4 => Self::List,
            5 => Self::Hash,
            6 => Self::Set,
            7 => Self::SortedSet,
            _ => Self::Stream,
        }
    }

    /// Redis's name for the type.
    pub(crate) fn type_name(self) -> &'static str {
        match self {
            Self::Integer | Self::Short | Self::Raw | Self::Long => "string",
            Self::List => "list",
            Self::Hash => "hash",
            Self::Set => "set",
            Self::SortedSet => "zset",
            Self::Stream => "stream",
        }
    }

    /// Whether it is a string, however kept.
    #[inline]
    pub(crate) fn is_string(self) -> bool {
        matches!(self, Self::Integer | Self::Short | Self::Raw | Self::Long)
    }
}

/// The value that a record names.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Value<'a> {
    Integer(i64),
    Short(&'a [u8]),
    Raw(&'a [u8]),
    Long(Handle),
    /// The number of an object, of the kind that is given.
    Object(Kind, u32),
}

impl Value<'_> {
    fn kind(self) -> Kind {
        match self {
            Self::Integer(_) => Kind::Integer,
            Self::Short(_) => Kind::Short,
            Self::Raw(_) => Kind::Raw,
            Self::Long(_) => Kind::Long,
            Self::Object(kind, _) => kind,
        }
    }

    fn bytes(self) -> usize {
        match self {
            Self::Integer(_) => 8,
            Self::Short(bytes) | Self::Raw(bytes) => 1 + bytes.len(),
            Self::Long(_) | Self::Object(..) => 4,
        }
    }
}

/// When a key goes, and where that is written down.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Deadline {
    /// Milliseconds since the Unix epoch.
    pub(crate) at: i64,
    /// Index in the database's list.
    pub(crate) listed: u32,
}

/// A key's record, read.
#[derive(Clone, Copy)]
pub(crate) struct KeyRecord<'a> {
    bytes: &'a [u8],
}

#[inline]
fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(word)
}

#[inline]
fn i64_at(bytes: &[u8], at: usize) -> i64 {
    let mut wide = [0; 8];
    wide.copy_from_slice(&bytes[at..at + 8]);
    i64::from_le_bytes(wide)
}

impl<'a> KeyRecord<'a> {
    /// Reads the bytes of a record.
    #[inline]
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    #[inline]
    pub(crate) fn kind(self) -> Kind {
        Kind::of(self.bytes[0])
    }

    /// Where the header ends and the deadline, or the key, begins; and the key's length.
    #[inline(always)]
    fn header(self) -> (usize, usize) {
        match self.bytes[KEY_LENGTH_AT] {
            KEY_LENGTH_LONG => self.long_header(),
            len => (KEY_LENGTH_AT + 1, usize::from(len)),
        }
    }

    #[cold]
    #[inline(never)]
    fn long_header(self) -> (usize, usize) {
        (KEY_LENGTH_AT + 5, u32_at(self.bytes, KEY_LENGTH_AT + 1) as usize)
    }

    /// Whether the key goes some day.
    #[inline]
    fn has_deadline(self) -> bool {
        self.bytes[0] & HAS_DEADLINE != 0
    }

    #[inline(always)]
    fn key_extent(self) -> (usize, usize) {
        let (at, len) = self.header();
        let at = if self.has_deadline() { at + DEADLINE_BYTES } else { at };
        (at, at + len)
    }

    /// The key's bytes.
    #[inline]
    pub(crate) fn key(self) -> &'a [u8] {
        let (at, end) = self.key_extent();
        &self.bytes[at..end]
    }

    /// When the key goes, if ever.
    #[inline]
    pub(crate) fn deadline(self) -> Option<Deadline> {
        if !self.has_deadline() {
            return None;
        }
        let at = self.header().0;
        Some(Deadline { at: i64_at(self.bytes, at), listed: u32_at(self.bytes, at + 8) })
    }

    /// Whether the key, or something that it holds, may have a deadline: all but a string without one. One test for what is rare.
    #[inline]
    pub(crate) fn may_be_due(self) -> bool {
        self.bytes[0] > Kind::Long as u8
    }

    /// Whether the key holds a hash.
    #[inline]
    pub(crate) fn is_hash(self) -> bool {
        self.bytes[0] & !HAS_DEADLINE == Kind::Hash as u8
    }

    /// Whether the key's time has come.
    #[inline]
    pub(crate) fn is_due(self, now: i64) -> bool {
        self.has_deadline() && self.deadline().is_some_and(|deadline| now > deadline.at)
    }

    /// What the key holds.
    #[inline]
    pub(crate) fn value(self) -> Value<'a> {
        let at = self.key_extent().1;
        let inline = || {
            let len = usize::from(self.bytes[at]);
            &self.bytes[at + 1..at + 1 + len]
        };
        match self.kind() {
            Kind::Integer => Value::Integer(i64_at(self.bytes, at)),
            Kind::Short => Value::Short(inline()),
            Kind::Raw => Value::Raw(inline()),
            Kind::Long => {
                Value::Long(Handle::from_u32(u32_at(self.bytes, at)).expect("a long string has a record of its own"))
            }
            kind => Value::Object(kind, u32_at(self.bytes, at)),
        }
    }

    /// When the key was last used, in seconds modulo 2^24.
    #[inline]
    pub(crate) fn clock(self) -> u32 {
        u32_at(self.bytes, 0) >> 8
    }
}

/// The text of a string value.
#[inline]
pub(crate) fn text_of<'a>(pool: &'a Pool, value: Value<'a>) -> Option<Element<'a>> {
    match value {
        Value::Integer(value) => Some(Element::Integer(value)),
        Value::Short(bytes) | Value::Raw(bytes) => Some(Element::Bytes(bytes)),
        Value::Long(handle) => Some(Element::Bytes(pool.get(handle))),
        Value::Object(..) => None,
    }
}

/// Everything that a record holds, to be written.
#[derive(Clone, Copy)]
pub(crate) struct KeyDraft<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) value: Value<'a>,
    pub(crate) deadline: Option<Deadline>,
    pub(crate) clock: u32,
}

impl KeyDraft<'_> {
    /// How many bytes the record takes.
    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        let header = if self.key.len() < usize::from(KEY_LENGTH_LONG) { KEY_LENGTH_AT + 1 } else { KEY_LENGTH_AT + 5 };
        let deadline = if self.deadline.is_some() { DEADLINE_BYTES } else { 0 };
        header + deadline + self.key.len() + self.value.bytes()
    }

    /// Writes the record.
    #[inline]
    pub(crate) fn write(&self, out: &mut [u8]) {
        let flags = self.value.kind() as u8 | if self.deadline.is_some() { HAS_DEADLINE } else { 0 };
        out[..4].copy_from_slice(&(self.clock << 8 | u32::from(flags)).to_le_bytes());
        let mut at = KEY_LENGTH_AT + 1;
        if self.key.len() < usize::from(KEY_LENGTH_LONG) {
            out[KEY_LENGTH_AT] = self.key.len() as u8;
        } else {
            out[KEY_LENGTH_AT] = KEY_LENGTH_LONG;
            // Requests are limited to less than 4 GiB, and keys come in requests.
            out[at..at + 4].copy_from_slice(&(self.key.len() as u32).to_le_bytes());
            at += 4;
        }
        if let Some(deadline) = self.deadline {
            out[at..at + 8].copy_from_slice(&deadline.at.to_le_bytes());
            out[at + 8..at + 12].copy_from_slice(&deadline.listed.to_le_bytes());
            at += DEADLINE_BYTES;
        }
        out[at..at + self.key.len()].copy_from_slice(self.key);
        at += self.key.len();
        match self.value {
            Value::Integer(value) => out[at..at + 8].copy_from_slice(&value.to_le_bytes()),
            Value::Short(bytes) | Value::Raw(bytes) => {
                out[at] = bytes.len() as u8;
                out[at + 1..at + 1 + bytes.len()].copy_from_slice(bytes);
            }
            Value::Long(handle) => out[at..at + 4].copy_from_slice(&handle.to_u32().to_le_bytes()),
            Value::Object(_, number) => out[at..at + 4].copy_from_slice(&number.to_le_bytes()),
        }
    }
}

/// The access clock at a time: seconds modulo 2^24.
#[inline]
pub(crate) fn clock_of(now: i64) -> u32 {
    (now / 1000) as u32 & 0xff_ffff
}

/// Notes that the key is used now.
#[inline]
pub(crate) fn set_clock(record: &mut [u8], clock: u32) {
    let word = u32_at(record, 0) & 0xff | clock << 8;
    record[..4].copy_from_slice(&word.to_le_bytes());
}

/// The string of a record, or where it lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Located<'a> {
    Integer(i64),
    Inline(&'a [u8]),
    Long(Handle),
    /// The value is no string.
    Object,
}

impl<'a> KeyRecord<'a> {
    /// The string, or where it lies.
    #[inline]
    pub(crate) fn locate(self) -> Located<'a> {
        let at = self.key_extent().1;
        match self.kind() {
            Kind::Short | Kind::Raw => Located::Inline(&self.bytes[at + 1..at + 1 + usize::from(self.bytes[at])]),
            Kind::Integer => Located::Integer(i64_at(self.bytes, at)),
            Kind::Long => Handle::from_u32(u32_at(self.bytes, at)).map_or(Located::Object, Located::Long),
            _ => Located::Object,
        }
    }

    /// Whether the record is that of `key`.
    #[inline]
    pub(crate) fn is_of(self, key: &[u8]) -> bool {
        let (at, end) = self.key_extent();
        self.bytes.get(at..end) == Some(key)
    }
}

/// Writes another inline value over the one in `record`, which keeps its slot; whether that could be done. It cannot if the
/// record has a deadline, names something outside, or needs a slot of another size.
#[inline]
pub(crate) fn overwrite(record: &mut [u8], value: Value<'_>, clock: u32) -> bool {
    let old = KeyRecord::new(record);
    let at = old.key_extent().1;
    let is_plain = !old.has_deadline() && matches!(old.kind(), Kind::Integer | Kind::Short | Kind::Raw);
    if !is_plain || Pool::slot_bytes(at + value.bytes()) != record.len() {
        return false;
    }
    match value {
        Value::Integer(value) => record[at..at + 8].copy_from_slice(&value.to_le_bytes()),
        Value::Short(bytes) | Value::Raw(bytes) => {
            record[at] = bytes.len() as u8;
            record[at + 1..at + 1 + bytes.len()].copy_from_slice(bytes);
        }
        Value::Long(_) | Value::Object(..) => return false,
    }
    record[..4].copy_from_slice(&(clock << 8 | u32::from(value.kind() as u8)).to_le_bytes());
    true
}

/// Changes the deadline of a record that has one.
pub(crate) fn set_deadline(record: &mut [u8], deadline: Deadline) {
    let at = KeyRecord::new(record).header().0;
    record[at..at + 8].copy_from_slice(&deadline.at.to_le_bytes());
    record[at + 8..at + 12].copy_from_slice(&deadline.listed.to_le_bytes());
}

/// Changes the integer of a record that holds one.
pub(crate) fn set_integer(record: &mut [u8], value: i64) {
    let at = KeyRecord::new(record).key_extent().1;
    record[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let handle = Handle::from_u32(77).expect("not zero");
        let values = [
            Value::Integer(i64::MIN),
            Value::Short(b"short"),
            Value::Raw(&[3; INLINE_BYTES_MAX]),
            Value::Long(handle),
            Value::Object(Kind::SortedSet, 12),
        ];
        let keys: [&[u8]; 4] = [b"", b"key", &[b'k'; 254], &[b'k'; 255]];
        for (value, key) in values.into_iter().flat_map(|value| keys.map(|key| (value, key))) {
            for deadline in [None, Some(Deadline { at: i64::MAX, listed: 9 })] {
                let draft = KeyDraft { key, value, deadline, clock: 0xab_cdef };
                let mut bytes = vec![0; draft.bytes()];
                draft.write(&mut bytes);
                let record = KeyRecord::new(&bytes);
                assert_eq!((record.key(), record.value(), record.deadline()), (key, value, deadline));
                assert_eq!(record.clock(), 0xab_cdef);
                set_clock(&mut bytes, 5);
                assert_eq!((KeyRecord::new(&bytes).clock(), KeyRecord::new(&bytes).value()), (5, value));
            }
        }
    }
}
