//! The beginning of a node's snapshot (RDB): its version, its fields and its libraries of functions.
//!
//! ```text
//!   REDIS0010 | FA key value ... | F5 library ... | FE db, FB sizes, keys ... | FF checksum (8 bytes)
//!    header         fields           functions              body                     end
//! ```
//!
//! What stands before the body is of the node, and a merged snapshot has it once. The body is not parsed. Fields are held
//! until they are complete, libraries never.

use super::fault::Fault;
use crate::limits::SNAPSHOT_FIELD_BYTES_MAX;

/// Bytes of the header.
pub(super) const HEADER_BYTES: usize = 9;
/// Bytes of the end: its opcode and the checksum.
pub(super) const END_BYTES: u64 = 9;
/// The opcode of the end.
pub(super) const END: u8 = 0xff;

const AUX: u8 = 0xfa;
const MODULE_AUX: u8 = 0xf7;
const FUNCTION: u8 = 0xf5;
/// Libraries as release candidates of Redis 7.0 wrote them; no release reads them.
const FUNCTION_OF_CANDIDATES: u8 = 0xf6;

/// Versions before this one end without a checksum; the first to have `FA` is 7.
const VERSION_MIN: u32 = 5;

/// The version in a header of [`HEADER_BYTES`].
pub(super) fn version(header: &[u8]) -> Result<u32, Fault> {
    let digits = header.strip_prefix(b"REDIS").ok_or(Fault::Malformed)?;
    let version = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok());
    version.filter(|version| *version >= VERSION_MIN).ok_or(Fault::Malformed)
}

/// A string, or the integer that stands for one.
#[derive(Debug, PartialEq, Eq)]
enum Text<'a> {
    Bytes(&'a [u8]),
    Integer(i64),
    Compressed,
}

/// What stands between header and body, as it arrives.
#[derive(Debug, Default)]
pub(super) struct Prefix {
    /// Bytes of a library that have not come yet.
    skip: u64,
    /// The database that the node's stream begins in.
    pub(super) database: Option<u64>,
}

impl Prefix {
    /// Gives how many of `bytes` belong to the prefix, and whether it ends there. The rest is to be given again.
    pub(super) fn advance(&mut self, bytes: &[u8]) -> Result<(usize, bool), Fault> {
        let mut at = 0;
        loop {
            let rest = bytes.get(at..).unwrap_or_default();
            if self.skip > 0 {
                let count = rest.len().min(usize::try_from(self.skip).unwrap_or(usize::MAX));
                self.skip -= count as u64;
                at += count;
                if self.skip > 0 {
                    return Ok((at, false));
                }
                continue;
            }
            let Some((opcode, behind)) = rest.split_first() else { return Ok((at, false)) };
            match *opcode {
                AUX => {
                    let Some(count) = self.field(behind)? else {
                        return match behind.len() > SNAPSHOT_FIELD_BYTES_MAX {
                            true => Err(Fault::Malformed),
                            false => Ok((at, false)),
                        };
                    };
                    at += 1 + count;
                }
                FUNCTION => {
                    let Some((head, length)) = string_head(behind)? else { return Ok((at, false)) };
                    at += 1 + head;
                    self.skip = length;
                }
                MODULE_AUX => return Err(Fault::ModuleData),
                FUNCTION_OF_CANDIDATES => return Err(Fault::Malformed),
                _ => return Ok((at, true)),
            }
        }
    }

    /// The length of a field, a name and a value.
    fn field(&mut self, bytes: &[u8]) -> Result<Option<usize>, Fault> {
        let Some((name, count)) = text(bytes)? else { return Ok(None) };
        let Some((value, more)) = text(bytes.get(count..).unwrap_or_default())? else { return Ok(None) };
        if name == Text::Bytes(b"repl-stream-db") {
            self.database = match value {
                Text::Integer(value) => u64::try_from(value).ok(),
                Text::Bytes(digits) => std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok()),
                Text::Compressed => None,
            };
        }
        Ok(Some(count + more))
    }
}

/// How a string begins: the bytes before its content, and the bytes of that.
fn string_head(bytes: &[u8]) -> Result<Option<(usize, u64)>, Fault> {
    let Some(first) = bytes.first() else { return Ok(None) };
    if first >> 6 != 3 {
        return length(bytes);
    }
    match first & 0x3f {
        kind @ 0..=2 => Ok(Some((1, 1 << kind))),
        3 => {
            let Some((head, compressed)) = length(bytes.get(1..).unwrap_or_default())? else { return Ok(None) };
            let more = length(bytes.get(1 + head..).unwrap_or_default())?;
            Ok(more.map(|(more, _)| (1 + head + more, compressed)))
        }
        _ => Err(Fault::Malformed),
    }
}

/// A length, and how many bytes it takes.
fn length(bytes: &[u8]) -> Result<Option<(usize, u64)>, Fault> {
    let number = |count: usize| {
        let digits = bytes.get(1..=count)?;
        Some((1 + count, digits.iter().fold(0, |sum: u64, digit| sum << 8 | u64::from(*digit))))
    };
    let Some(first) = bytes.first() else { return Ok(None) };
    match (first >> 6, first) {
        (0, _) => Ok(Some((1, u64::from(*first)))),
        (1, _) => Ok(bytes.get(1).map(|second| (2, u64::from(first & 0x3f) << 8 | u64::from(*second)))),
        (_, 0x80) => Ok(number(4)),
        (_, 0x81) => Ok(number(8)),
        _ => Err(Fault::Malformed),
    }
}

/// A whole string, and how many bytes it takes.
fn text(bytes: &[u8]) -> Result<Option<(Text<'_>, usize)>, Fault> {
    let Some((head, length)) = string_head(bytes)? else { return Ok(None) };
    let end = usize::try_from(length).ok().and_then(|length| head.checked_add(length)).ok_or(Fault::Malformed)?;
    let Some(content) = bytes.get(head..end) else { return Ok(None) };
    let text = match bytes.first().map(|first| (first >> 6, first & 0x3f)) {
        Some((3, 3)) => Text::Compressed,
        Some((3, _)) => {
            let sign = content.last().is_some_and(|top| top & 0x80 != 0);
            let start = if sign { -1 } else { 0 };
            Text::Integer(content.iter().rev().fold(start, |sum: i64, byte| sum << 8 | i64::from(*byte)))
        }
        _ => Text::Bytes(content),
    };
    Ok(Some((text, end)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a prefix makes of bytes that come one by one.
    fn feed(bytes: &[u8]) -> (Result<usize, Fault>, Option<u64>) {
        let (mut prefix, mut at) = (Prefix::default(), 0);
        for end in 1..=bytes.len() {
            match prefix.advance(&bytes[at..end]) {
                Err(fault) => return (Err(fault), None),
                Ok((count, true)) => return (Ok(at + count), prefix.database),
                Ok((count, false)) => at += count,
            }
        }
        (Ok(at), prefix.database)
    }

    #[test]
    fn a_prefix_ends_before_the_first_database() {
        let library = [&[FUNCTION, 0x41, 0x00][..], &[b'x'; 256]].concat();
        let fields = b"\xfa\x09redis-ver\x067.0.15\xfa\x09redis-bit\xc0\x40\xfa\x0erepl-stream-db\xc0\x03";
        for body in [&b"\xfe\x00\xfb\x01\x00\x00\x01k\x01v\xff"[..], b"\xff\0\0\0\0\0\0\0\0"] {
            let bytes = [&fields[..], &library, body].concat();
            assert_eq!(feed(&bytes), (Ok(fields.len() + library.len()), Some(3)));
        }
    }

    #[test]
    fn lengths_and_strings_of_every_encoding_are_found() {
        for (bytes, expected) in [
            (&b"\x03abc"[..], Text::Bytes(b"abc")),
            (b"\x40\x03abc", Text::Bytes(b"abc")),
            (b"\x80\0\0\0\x03abc", Text::Bytes(b"abc")),
            (b"\x81\0\0\0\0\0\0\0\x03abc", Text::Bytes(b"abc")),
            (b"\xc0\xff", Text::Integer(-1)),
            (b"\xc1\x00\x01", Text::Integer(256)),
            (b"\xc2\x01\x00\x00\x00", Text::Integer(1)),
            (b"\xc3\x02\x05ab", Text::Compressed),
        ] {
            assert_eq!(text(bytes), Ok(Some((expected, bytes.len()))));
            for end in 0..bytes.len() {
                assert_eq!(text(&bytes[..end]), Ok(None), "{bytes:?} up to {end}");
            }
        }
        assert_eq!(text(b"\xc7"), Err(Fault::Malformed));
        assert_eq!(text(b"\x82\0\0"), Err(Fault::Malformed));
        assert_eq!(text(b"\x81\xff\xff\xff\xff\xff\xff\xff\xff"), Err(Fault::Malformed));
    }

    #[test]
    fn module_data_and_endless_fields_are_refused() {
        assert_eq!(feed(b"\xf7\x01").0, Err(Fault::ModuleData));
        assert_eq!(feed(b"\xf6\x01").0, Err(Fault::Malformed));
        let endless = [&b"\xfa\x80\x7f\xff\xff\xff"[..], &[b'x'; SNAPSHOT_FIELD_BYTES_MAX]].concat();
        assert_eq!(Prefix::default().advance(&endless).unwrap_err(), Fault::Malformed);
        assert_eq!((version(b"REDIS0010"), version(b"REDIS0003")), (Ok(10), Err(Fault::Malformed)));
        assert_eq!(version(b"RESPO0010"), Err(Fault::Malformed));
    }
}
