//! Finding a row by its name.
//!
//! [`lookup`] runs for every request. A name of at most 24 bytes becomes three words of 8 bytes (overlapping where it is
//! shorter, so that each is one load), in capitals; those and the length are the name exactly. They are hashed into an
//! open table made at compile time. Nothing is allocated, locked or compared byte by byte. Names of less than 8 bytes, which
//! most requests have, are one word, and only that one is made and compared.

use respool_wire::Args;

use crate::{Row, table, text};

/// The row of the command called `name`, in any case. Containers are found, their subcommands are not.
#[inline(always)]
pub fn lookup(name: &[u8]) -> Option<&'static Row> {
    match short_head(name) {
        Some(head) => lookup_short(capitals(head), name.len() as u64),
        None => lookup_any(name),
    }
}

/// The row with a name of this length and head, of less than 8 bytes.
#[inline(always)]
fn lookup_short(head: u64, len: u64) -> Option<&'static Row> {
    let mut at = Name { len, head, middle: 0, tail: 0 }.bucket();
    loop {
        match INDEX[at] {
            Some((ref name, row)) if name.head == head && name.len == len => return Some(row),
            Some(_) => at = (at + 1) % BUCKETS,
            None => return None,
        }
    }
}

#[inline(never)]
fn lookup_any(name: &[u8]) -> Option<&'static Row> {
    let name = Name::of(name)?;
    let mut at = name.bucket();
    loop {
        match INDEX[at] {
            Some(ref entry) if entry.0 == name => return Some(entry.1),
            Some(_) => at = (at + 1) % BUCKETS,
            None => return None,
        }
    }
}

/// The row of a request: the subcommand's if the command has some and one is named. A container that is called with its
/// name alone resolves to itself, so that the check of its arity answers.
#[inline]
pub fn resolve(args: Args<'_>) -> Result<&'static Row, UnknownCommand> {
    let row = lookup(args.name()).ok_or(UnknownCommand::Command)?;
    if row.subcommands.is_empty() {
        return Ok(row);
    }
    match args.get(1) {
        None => Ok(row),
        Some(word) => row.subcommand(word).ok_or(UnknownCommand::Subcommand(row)),
    }
}

/// The row called `name` as Redis writes names, in any case: `get`, `client|id`.
pub fn lookup_full(name: &[u8]) -> Option<&'static Row> {
    let mut words = name.splitn(2, |byte| *byte == b'|');
    let row = lookup(words.next()?)?;
    match words.next() {
        None => Some(row),
        Some(word) => row.subcommand(word),
    }
}

/// A request that no row describes.
#[derive(Clone, Copy, Debug)]
pub enum UnknownCommand {
    /// There is no such command.
    Command,
    /// This container has no such subcommand.
    Subcommand(&'static Row),
}

impl UnknownCommand {
    /// Writes the text of the error reply, without the leading `-` and the line's end.
    pub fn write_text(self, args: Args<'_>, out: &mut Vec<u8>) {
        match self {
            Self::Command => text::unknown_command(args, out),
            Self::Subcommand(_) => text::unknown_subcommand(args, out),
        }
    }
}

/// The longest name that [`lookup`] knows; `GEORADIUSBYMEMBER_RO` has 20 bytes.
const NAME_BYTES_MAX: usize = 24;

/// A power of two, four times the number of commands, so that most look-ups need one probe.
const BUCKETS: usize = 1024;

static INDEX: [Option<(Name, &'static Row)>; BUCKETS] = index();

const fn index() -> [Option<(Name, &'static Row)>; BUCKETS] {
    let mut index = [None; BUCKETS];
    let mut group = 0;
    while group < table::GROUPS.len() {
        let rows = table::GROUPS[group];
        let mut at = 0;
        while at < rows.len() {
            let row = &rows[at];
            let name = match Name::of(row.name.as_bytes()) {
                Some(name) => name,
                None => panic!("a command's name is longer than look-up allows"),
            };
            let mut bucket = name.bucket();
            while index[bucket].is_some() {
                bucket = (bucket + 1) % BUCKETS;
            }
            index[bucket] = Some((name, row));
            at += 1;
        }
        group += 1;
    }
    index
}

/// A name in capitals, as words.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Name {
    len: u64,
    head: u64,
    middle: u64,
    tail: u64,
}

impl Name {
    #[inline(always)]
    const fn of(name: &[u8]) -> Option<Self> {
        let len = name.len();
        let (head, middle, tail) = match len {
            0..8 => match short_head(name) {
                Some(head) => (head, 0, 0),
                None => return None,
            },
            8..=16 => (word8(name, 0), 0, word8(name, len - 8)),
            17..=NAME_BYTES_MAX => (word8(name, 0), word8(name, 8), word8(name, len - 8)),
            _ => return None,
        };
        Some(Self { len: len as u64, head: capitals(head), middle: capitals(middle), tail: capitals(tail) })
    }

    #[inline(always)]
    const fn bucket(&self) -> usize {
        let mixed = (self.head ^ self.len).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ self.tail;
        let mixed = (mixed ^ self.middle.rotate_left(17)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
        (mixed >> 54) as usize % BUCKETS
    }
}

/// The bytes of a name that has less than 8, and at least one, in a word.
#[inline(always)]
const fn short_head(name: &[u8]) -> Option<u64> {
    let len = name.len();
    match len {
        1..4 => Some(name[0] as u64 | (name[len / 2] as u64) << 8 | (name[len - 1] as u64) << 16),
        4..8 => Some(word4(name, 0) | word4(name, len - 4) << 32),
        _ => None,
    }
}

#[inline(always)]
const fn word4(bytes: &[u8], at: usize) -> u64 {
    bytes[at] as u64 | (bytes[at + 1] as u64) << 8 | (bytes[at + 2] as u64) << 16 | (bytes[at + 3] as u64) << 24
}

#[inline(always)]
const fn word8(bytes: &[u8], at: usize) -> u64 {
    word4(bytes, at) | word4(bytes, at + 4) << 32
}

/// Turns `a` to `z` into capitals in all eight bytes at once and leaves every other byte alone.
#[inline(always)]
const fn capitals(word: u64) -> u64 {
    const EACH: u64 = 0x0101_0101_0101_0101;
    let low = word & (EACH * 0x7f);
    let from_a = low + EACH * (0x80 - b'a' as u64);
    let past_z = low + EACH * (0x7f - b'z' as u64);
    let letters = (from_a ^ past_z) & !word & (EACH * 0x80);
    word ^ (letters >> 2)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use respool_wire::ArgsBuf;

    use super::*;
    use crate::Command;

    #[test]
    fn every_name_is_found_in_any_case_and_only_as_a_whole() {
        for row in table::top_level() {
            let name = row.name.as_bytes();
            let mixed: Vec<u8> = name
                .iter()
                .enumerate()
                .map(|(at, byte)| if at % 2 == 0 { byte.to_ascii_lowercase() } else { *byte })
                .collect();
            for spelled in [name.to_vec(), name.to_ascii_lowercase(), mixed] {
                assert_eq!(lookup(&spelled).map(|found| found.name), Some(row.name));
            }
            for at in 0..name.len() {
                let mut other = name.to_vec();
                // The byte that differs from a letter in the bit that differs between small letters and capitals.
                other[at] ^= if name[at].is_ascii_alphabetic() { 0x80 } else { 0x20 };
                assert!(lookup(&other).is_none(), "{} was found", other.escape_ascii());
            }
            assert!(lookup(&[name, b"\0"].concat()).is_none());
            assert!(lookup(&[b" ", name].concat()).is_none());
        }
        assert!(lookup(b"").is_none());
        assert!(lookup(b"GEORADIUSBYMEMBER_RO_AND_MORE").is_none());
        assert!(lookup(b"CLIENT ID").is_none());
    }

    #[test]
    fn most_names_are_found_at_the_first_probe() {
        let (mut probes, mut names) = (0, 0);
        for row in table::top_level() {
            let name = Name::of(row.name.as_bytes()).expect("it is in the index");
            let mut at = name.bucket();
            while INDEX[at].is_some_and(|entry| entry.0 != name) {
                at = (at + 1) % BUCKETS;
                probes += 1;
            }
            probes += 1;
            names += 1;
        }
        assert!(probes * 10 <= names * 13, "{probes} probes for {names} names");
    }

    #[test]
    fn subcommands_resolve_within_their_container() {
        let resolved = |request: &[&str]| {
            let args: ArgsBuf = request.iter().collect();
            resolve(args.as_args()).map(|row| row.name).map_err(|unknown| match unknown {
                UnknownCommand::Command => "",
                UnknownCommand::Subcommand(container) => container.name,
            })
        };
        assert_eq!(resolved(&["client", "id"]), Ok("CLIENT ID"));
        assert_eq!(resolved(&["Client"]), Ok("CLIENT"));
        assert_eq!(resolved(&["command"]), Ok("COMMAND"));
        assert_eq!(resolved(&["get", "id"]), Ok("GET"));
        assert_eq!(resolved(&["client", "client"]), Err("CLIENT"));
        assert_eq!(resolved(&["id"]), Err(""));
        assert_eq!(resolved(&[]), Err(""));
    }

    #[test]
    fn names_and_commands_are_unique() {
        let mut names = HashSet::new();
        let mut commands = HashSet::new();
        let mut ordinals = HashSet::new();
        for row in table::all() {
            assert!(names.insert(row.name), "{} twice", row.name);
            assert!(commands.insert(row.command), "{} shares its command", row.name);
            assert!(ordinals.insert(row.command.ordinal()), "{} shares its number", row.name);
            assert!(!row.doc.is_empty() && row.doc.ends_with('.'), "{} is not documented", row.name);
            for sub in row.subcommands {
                assert!(sub.name.strip_prefix(row.name).is_some_and(|rest| rest.starts_with(' ')), "{}", sub.name);
            }
        }
        assert!(ordinals.len() == Command::COUNT && ordinals.iter().all(|ordinal| *ordinal < Command::COUNT));
    }
}
