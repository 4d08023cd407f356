//! Converts the compact encodings of older servers (ziplist, zipmap) to listpacks.
//!
//! ```text
//! ziplist   bytes (4), offset of the last entry (4), entries (2), entries ..., 0xff
//! entry     bytes of the entry before: one byte below 254, or 254 and four bytes; then
//!           00xxxxxx, 01xxxxxx x, 10...... xxxx   a text of x bytes, which follows
//!           0xc0, 0xd0, 0xe0, 0xf0, 0xfe          an integer of 2, 4, 8, 3, 1 bytes, which follows
//!           0xf1 to 0xfd                          an integer from 0 to 12
//! zipmap    entries (1, or 254 and more for many), then pairs: length, field, length, unused bytes (1), value, unused; 0xff
//! ```

use crate::store::listpack::Listpack;

const END: u8 = 0xff;
const ZIPLIST_HEADER_BYTES: usize = 10;
/// A length from this byte on takes four more bytes.
const LONG: u8 = 254;

fn u32_at(bytes: &[u8], at: usize) -> Option<usize> {
    let word = bytes.get(at..at + 4)?;
    Some(u32::from_le_bytes([word[0], word[1], word[2], word[3]]) as usize)
}

/// Converts a ziplist; `None` if it is invalid.
pub(super) fn ziplist(bytes: &[u8]) -> Option<Listpack> {
    let last = bytes.len().checked_sub(1).filter(|last| *last >= ZIPLIST_HEADER_BYTES)?;
    let (total, tail) = (u32_at(bytes, 0)?, u32_at(bytes, 4)?);
    if total != bytes.len() || tail > last || bytes[last] != END {
        return None;
    }
    let entries = &bytes[..last];
    let mut pack = Listpack::new();
    let (mut at, mut before, mut count, mut last_entry) = (ZIPLIST_HEADER_BYTES, 0, 0_usize, ZIPLIST_HEADER_BYTES);
    while at < last {
        let (told_before, lead_at) = match entries[at] {
            LONG => (u32_at(entries, at + 1)?, at + 5),
            END => return None,
            len => (usize::from(len), at + 1),
        };
        if told_before != before {
            return None;
        }
        let end = ziplist_entry(entries, lead_at, &mut pack)?;
        (last_entry, before, at) = (at, end - at, end);
        count += 1;
    }
    let told = usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let is_counted = told == usize::from(u16::MAX) || told == count;
    (is_counted && (count == 0 || tail == last_entry)).then_some(pack)
}

/// Appends the entry whose encoding byte is at `at` to `pack` and returns where it ends.
fn ziplist_entry(entries: &[u8], at: usize, pack: &mut Listpack) -> Option<usize> {
    let lead = *entries.get(at)?;
    let byte = |at: usize| entries.get(at).copied().map(usize::from);
    let text = match lead >> 6 {
        0 => Some((at + 1, usize::from(lead & 0x3f))),
        1 => Some((at + 2, usize::from(lead & 0x3f) << 8 | byte(at + 1)?)),
        2 => Some((at + 5, byte(at + 1)? << 24 | byte(at + 2)? << 16 | byte(at + 3)? << 8 | byte(at + 4)?)),
        _ => None,
    };
    if let Some((start, len)) = text {
        let end = start.checked_add(len)?;
        pack.push(entries.get(start..end)?);
        return Some(end);
    }
    let width = match lead {
        0xc0 => 2,
        0xd0 => 4,
        0xe0 => 8,
        0xf0 => 3,
        0xfe => 1,
        0xf1..=0xfd => {
            pack.insert_integer(None, i64::from(lead & 0x0f) - 1);
            return Some(at + 1);
        }
        _ => return None,
    };
    let value = entries.get(at + 1..at + 1 + width)?;
    let mut wide = [if value[width - 1] & 0x80 != 0 { 0xff } else { 0 }; 8];
    wide[..width].copy_from_slice(value);
    pack.insert_integer(None, i64::from_le_bytes(wide));
    Some(at + 1 + width)
}

/// Converts the fields and values of a zipmap; `None` if it is invalid.
pub(super) fn zipmap(bytes: &[u8]) -> Option<Listpack> {
    let last = bytes.len().checked_sub(1).filter(|last| *last >= 1)?;
    if bytes[last] != END {
        return None;
    }
    let entries = &bytes[..last];
    let mut pack = Listpack::new();
    let (mut at, mut count) = (1, 0_usize);
    while at < last {
        let (start, len) = zipmap_length(entries, at)?;
        pack.push(entries.get(start..start.checked_add(len)?)?);
        let (start, len) = zipmap_length(entries, start + len)?;
        let unused = usize::from(*entries.get(start)?);
        let end = (start + 1).checked_add(len)?;
        pack.push(entries.get(start + 1..end)?);
        at = end + unused;
        count += 1;
    }
    let told = bytes[0];
    (at == last && (told >= LONG || usize::from(told) == count)).then_some(pack)
}

/// Reads the length at `at`; returns where the bytes begin, and the length. One that would fit into a byte was written by no server.
fn zipmap_length(entries: &[u8], at: usize) -> Option<(usize, usize)> {
    match *entries.get(at)? {
        LONG => Some((at + 5, u32_at(entries, at + 1).filter(|len| *len >= usize::from(LONG))?)),
        END => None,
        len => Some((at + 1, usize::from(len))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::listpack::Element;

    fn texts(pack: &Listpack) -> Vec<Vec<u8>> {
        pack.iter().map(Element::to_vec).collect()
    }

    #[test]
    fn ziplists_are_read_or_refused() {
        let list =
            b"\x1f\0\0\0\x1b\0\0\0\x06\0\0\x03abc\x05\xf3\x02\xfe\x80\x03\xc0\x10\x27\x04\xf0\0\0\x80\x05\x00\xff";
        let mut list = list.to_vec();
        list[0] = list.len() as u8;
        list[4] = list.len() as u8 - 3;
        let pack = ziplist(&list).expect("it is sound");
        assert_eq!(texts(&pack), [&b"abc"[..], b"2", b"-128", b"10000", b"-8388608", b""]);
        for at in 0..list.len() {
            for bit in 0..8 {
                let mut broken = list.clone();
                broken[at] ^= 1 << bit;
                _ = ziplist(&broken);
            }
            assert!(ziplist(&list[..at]).is_none());
        }
    }

    #[test]
    fn zipmaps_are_read_or_refused() {
        let map = b"\x02\x03foo\x03\0bar\x05hello\x05\x02world..\xff";
        assert_eq!(texts(&zipmap(map).expect("it is sound")), [&b"foo"[..], b"bar", b"hello", b"world"]);
        assert!(zipmap(b"\x01\xfe\x03\0\0\0foo\x03\0bar\xff").is_none(), "a length of five bytes for three");
        let long = [&b"\x01\x01f\xfe\xfe\0\0\0\0"[..], &[b'x'; 254], b"\xff"].concat();
        assert_eq!(texts(&zipmap(&long).expect("it is sound"))[1].len(), 254);
        for at in 0..map.len() {
            for bit in 0..8 {
                let mut broken = map.to_vec();
                broken[at] ^= 1 << bit;
                _ = zipmap(&broken);
            }
            assert!(zipmap(&map[..at]).is_none());
        }
    }
}
