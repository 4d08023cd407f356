//! What messages carry, and what can be told of a stream of them: how late each is, and which are missing or out of order.
//!
//! Channels are numbers, and a channel's *class* is its number modulo a hundred. All channels of a class are subscribed on the same
//! connection, and each publishing connection numbers its messages of each class from 0. A server delivers what one connection
//! publishes to another connection in order, so a subscriber finds every gap with a counter for each publisher and class,
//! however many channels there are.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::ops::Range;

/// Classes of channels.
pub(super) const CLASSES: u64 = 100;
/// The class of a channel: its last two digits. What is no number has class 0.
pub(super) fn class_of(channel: &[u8]) -> u64 {
    const { assert!(CLASSES == 100, "two digits are a class") };
    let digit = |byte: u8| u64::from(byte.wrapping_sub(b'0'));
    if channel.is_empty() || channel.len() > 19 || channel.iter().any(|&byte| digit(byte) > 9) {
        return 0;
    }
    channel.iter().rev().take(2).rev().fold(0, |class, &byte| class * 10 + digit(byte))
}

/// Bytes of a message's head: process, connection, number and time in hexadecimal.
pub(super) const HEAD_BYTES: usize = 8 + 4 + 16 + 16;
/// Publishing connections that a subscriber tells apart. Messages of others count, and nothing else is said of them.
const PUBLISHERS_MAX: usize = 100_000;
/// Gaps in the streams of one connection that are known at a time.
const GAPS_MAX: usize = 100_000;

/// Who publishes: a process and one of its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Publisher {
    /// A number that the process has drawn.
    pub(super) process: u32,
    /// The connection within it.
    pub(super) connection: u16,
}

/// One message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Message {
    /// Who sent it.
    pub(super) publisher: Publisher,
    /// How many of its class this publisher has sent before.
    pub(super) number: u64,
    /// When it was due, on the machine's monotonic clock.
    pub(super) due_ns: u64,
}

/// What a payload is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Payload {
    /// A message.
    Message(Message),
    /// A publisher has sent all of this class; `number` is how many they were.
    End(Message),
    /// A process has sent everything: the ancestor's marker.
    Exit,
    /// Something else.
    Foreign,
}

/// The ancestor's end marker, which is published on channel 0.
pub(super) const EXIT: &[u8] = b"exit";

impl Message {
    /// Appends it, filled up to `size` bytes.
    pub(super) fn write(&self, out: &mut Vec<u8>, size: usize) {
        let start = out.len();
        out.extend_from_slice(&hex::<8>(self.publisher.process.into()));
        out.extend_from_slice(&hex::<4>(self.publisher.connection.into()));
        out.extend_from_slice(&hex::<16>(self.number));
        out.extend_from_slice(&hex::<16>(self.due_ns));
        out.resize(out.len().max(start + size), b'.');
    }

    /// Appends the marker that says that all of a class was sent.
    pub(super) fn write_end(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"end:");
        self.write(out, HEAD_BYTES);
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let head: &[u8; HEAD_BYTES] = bytes.first_chunk()?;
        let (process, rest) = head.split_first_chunk::<8>()?;
        let (connection, rest) = rest.split_first_chunk::<4>()?;
        let [number, due_ns] = [rest.first_chunk::<16>()?, rest.last_chunk::<16>()?];
        let publisher = Publisher { process: unhex(process)? as u32, connection: unhex(connection)? as u16 };
        Some(Self { publisher, number: unhex(number)?, due_ns: unhex(due_ns)? })
    }
}

impl Payload {
    /// Reads what was published.
    pub(super) fn read(bytes: &[u8]) -> Self {
        if bytes == EXIT {
            return Self::Exit;
        }
        match bytes.strip_prefix(b"end:") {
            Some(rest) => Message::read(rest).map_or(Self::Foreign, Self::End),
            None => Message::read(bytes).map_or(Self::Foreign, Self::Message),
        }
    }
}

/// The lower digits of a number.
fn hex<const DIGITS: usize>(number: u64) -> [u8; DIGITS] {
    std::array::from_fn(|place| b"0123456789abcdef"[(number >> ((DIGITS - 1 - place) * 4) & 0xf) as usize])
}

/// The number that digits of either case write.
fn unhex<const DIGITS: usize>(digits: &[u8; DIGITS]) -> Option<u64> {
    let (mut number, mut odd) = (0, 0);
    for &digit in digits {
        let value = DIGIT_VALUES[usize::from(digit)];
        odd |= value;
        number = number << 4 | u64::from(value);
    }
    (odd < 16).then_some(number)
}

/// The value of each byte as a digit; more than fifteen for those that are none.
const DIGIT_VALUES: [u8; 256] = {
    let mut values = [0xf0; 256];
    let mut value = 0;
    while value < 16 {
        let digit = b"0123456789abcdef"[value as usize];
        values[digit as usize] = value;
        values[digit.to_ascii_uppercase() as usize] = value;
        value += 1;
    }
    values
};

/// A publisher and a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key(u64);

impl Key {
    fn of(publisher: Publisher, class: u64) -> Self {
        Self(u64::from(publisher.process) << 32 | u64::from(publisher.connection) << 8 | class & 0xff)
    }
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0);
    }
}

/// Spreads [`Key`]s: every message looks one up, and no peer gains by choosing them.
#[derive(Clone, Copy, Debug, Default)]
struct KeyHash(u64);

impl Hasher for KeyHash {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(self.0 ^ u64::from(byte)));
    }

    fn write_u64(&mut self, number: u64) {
        let product = u128::from(number) * 0x9e37_79b9_7f4a_7c15;
        self.0 = (product >> 64) as u64 ^ product as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// What has come of one publisher's messages of a class.
#[derive(Clone, Copy, Debug)]
struct Stream {
    /// The number that was expected first. Messages before it were sent before this connection could hear them.
    first: u64,
    /// The number that comes next.
    next: u64,
}

/// What one subscribing connection knows of the streams of publishers.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// They stay when they have ended: what comes behind its end is late, or comes twice.
    streams: HashMap<Key, Stream, BuildHasherDefault<KeyHash>>,
    /// Numbers that were skipped and have not come since: by the first of them, the one behind the last of them.
    gaps: BTreeMap<(Key, u64), u64>,
    /// Messages that were skipped and have not come since.
    pub(super) missing: u64,
    /// Messages that came after one that was sent later.
    pub(super) reordered: u64,
    /// Messages that had come before.
    pub(super) duplicates: u64,
}

impl Ledger {
    /// A message has come. `is_complete`: this connection was subscribed before the publisher began.
    pub(super) fn note(&mut self, message: &Message, class: u64, is_complete: bool) {
        let key = Key::of(message.publisher, class);
        let number = message.number;
        let Some(stream) = self.stream(key, if is_complete { 0 } else { number }) else { return };
        let Stream { first, next } = *stream;
        if number >= next {
            stream.next = number.saturating_add(1);
            if number > next {
                self.skip(key, next..number);
            }
        } else if number < first || self.fill(key, number) {
            self.reordered += 1;
        } else {
            self.duplicates += 1;
        }
    }

    /// A publisher has sent so many of a class: those at the end that have not come are missing.
    pub(super) fn note_end(&mut self, end: &Message, class: u64, is_complete: bool) {
        let key = Key::of(end.publisher, class);
        let Some(stream) = self.stream(key, if is_complete { 0 } else { end.number }) else { return };
        let next = stream.next;
        stream.next = next.max(end.number);
        self.skip(key, next..end.number);
    }

    /// The stream, which begins with `first` if nothing has come of it; nothing where there are too many.
    fn stream(&mut self, key: Key, first: u64) -> Option<&mut Stream> {
        let has_room = self.streams.len() < PUBLISHERS_MAX * CLASSES as usize;
        match self.streams.entry(key) {
            Entry::Occupied(known) => Some(known.into_mut()),
            Entry::Vacant(place) => has_room.then(|| place.insert(Stream { first, next: first })),
        }
    }

    /// These numbers have not come.
    fn skip(&mut self, key: Key, gap: Range<u64>) {
        self.missing = self.missing.saturating_add(gap.end.saturating_sub(gap.start));
        self.remember(key, gap);
    }

    /// Where there are too many gaps already, what comes late of this one counts as having come twice, and stays missing.
    fn remember(&mut self, key: Key, gap: Range<u64>) {
        if !gap.is_empty() && self.gaps.len() < GAPS_MAX {
            self.gaps.insert((key, gap.start), gap.end);
        }
    }

    /// A number has come late. Says whether it was missing.
    fn fill(&mut self, key: Key, number: u64) -> bool {
        let before = self.gaps.range((key, 0)..=(key, number)).next_back();
        let Some((&(_, start), &end)) = before.filter(|(_, end)| number < **end) else { return false };
        self.gaps.remove(&(key, start));
        self.remember(key, start..number);
        self.remember(key, number + 1..end);
        self.missing = self.missing.saturating_sub(1);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(connection: u16, number: u64) -> Message {
        Message { publisher: Publisher { process: 0xdead_beef, connection }, number, due_ns: 1234 }
    }

    #[test]
    fn payloads_are_read_as_they_were_written() {
        let mut bytes = Vec::new();
        message(7, 42).write(&mut bytes, 64);
        assert_eq!((bytes.len(), Payload::read(&bytes)), (64, Payload::Message(message(7, 42))));
        bytes.clear();
        message(7, 42).write_end(&mut bytes);
        assert_eq!(Payload::read(&bytes), Payload::End(message(7, 42)));
        assert_eq!(Payload::read(b"exit"), Payload::Exit);
        assert_eq!(Payload::read(b"update"), Payload::Foreign);
        assert_eq!(Payload::read(b""), Payload::Foreign);
    }

    #[test]
    fn a_class_is_the_last_two_digits_of_a_number() {
        for channel in [0, 7, 10, 99, 100, 12_345, u64::from(u32::MAX)] {
            assert_eq!(class_of(channel.to_string().as_bytes()), channel % CLASSES, "{channel}");
        }
        for channel in ["", "x", "1x", "-17", "99999999999999999917"] {
            assert_eq!(class_of(channel.as_bytes()), 0, "{channel}");
        }
    }

    #[test]
    fn digits_are_read_in_either_case_and_nothing_else_is() {
        assert_eq!(unhex(b"00fFAa09"), Some(0xff_aa09));
        for number in [0, 1, 0xdead_beef, u64::MAX] {
            assert_eq!(unhex(&hex::<16>(number)), Some(number));
        }
        for odd in [b"000g", b"00 0", b"+001", b"00\x800"] {
            assert_eq!(unhex(odd), None, "{odd:?}");
        }
    }

    #[test]
    fn gaps_are_missing_until_they_are_filled_late() {
        let mut ledger = Ledger::default();
        for number in [0, 1, 4, 2] {
            ledger.note(&message(0, number), 3, true);
        }
        assert_eq!((ledger.missing, ledger.reordered), (1, 1), "3 is missing, 2 came late");
        ledger.note_end(&message(0, 7), 3, true);
        assert_eq!(ledger.missing, 3, "so are 5 and 6");
    }

    #[test]
    fn a_message_that_comes_twice_hides_no_loss() {
        let mut ledger = Ledger::default();
        for number in [0, 1, 3, 3, 0, 1] {
            ledger.note(&message(0, number), 3, true);
        }
        assert_eq!((ledger.missing, ledger.reordered, ledger.duplicates), (1, 0, 3), "2 has not come");
    }

    #[test]
    fn what_comes_behind_its_end_is_not_missing() {
        let mut ledger = Ledger::default();
        ledger.note(&message(0, 0), 3, true);
        ledger.note_end(&message(0, 3), 3, true);
        assert_eq!(ledger.missing, 2);
        ledger.note(&message(0, 2), 3, true);
        assert_eq!(ledger.missing, 1);
        ledger.note_end(&message(0, 3), 3, true);
        assert_eq!((ledger.missing, ledger.reordered, ledger.duplicates), (1, 1, 0), "an end that comes twice");
        ledger.note(&message(0, 2), 3, true);
        assert_eq!((ledger.missing, ledger.reordered, ledger.duplicates), (1, 1, 1));
    }

    #[test]
    fn a_gap_is_filled_in_any_order_and_once() {
        let mut ledger = Ledger::default();
        for number in [0, 6, 3, 1, 5, 3, 4, 2, 2] {
            ledger.note(&message(0, number), 3, true);
            ledger.note(&message(1, number), 3, true);
        }
        assert_eq!((ledger.missing, ledger.reordered, ledger.duplicates), (0, 10, 4));
        assert!(ledger.gaps.is_empty());
    }

    #[test]
    fn a_gap_that_is_not_remembered_stays_missing() {
        let mut ledger = Ledger::default();
        (0..GAPS_MAX as u64 + 1).for_each(|number| ledger.note(&message(0, number * 2 + 1), 3, true));
        assert_eq!((ledger.missing, ledger.gaps.len()), (GAPS_MAX as u64 + 1, GAPS_MAX));
        ledger.note(&message(0, GAPS_MAX as u64 * 2), 3, true);
        assert_eq!((ledger.missing, ledger.duplicates), (GAPS_MAX as u64 + 1, 1));
    }

    #[test]
    fn no_number_of_a_foreign_payload_is_too_large() {
        let mut ledger = Ledger::default();
        for number in [u64::MAX, u64::MAX, u64::MAX - 1, 0] {
            ledger.note(&message(0, number), 3, true);
            ledger.note_end(&message(1, number), 3, true);
            ledger.note(&message(2, number), 3, false);
        }
        assert!(ledger.missing > 0);
    }

    #[test]
    fn streams_of_publishers_and_classes_are_apart() {
        let mut ledger = Ledger::default();
        for (connection, class) in [(0, 0), (1, 0), (0, 1)] {
            ledger.note(&message(connection, 0), class, true);
            ledger.note_end(&message(connection, 1), class, true);
        }
        assert_eq!((ledger.missing, ledger.reordered), (0, 0));
        ledger.note_end(&message(9, 5), 0, true);
        assert_eq!(ledger.missing, 5, "nothing came of a publisher that had sent five");
    }

    #[test]
    fn what_was_sent_before_the_subscription_is_not_missing() {
        let mut ledger = Ledger::default();
        ledger.note(&message(0, 100), 0, false);
        ledger.note(&message(0, 102), 0, false);
        assert_eq!(ledger.missing, 1);
        ledger.note_end(&message(1, 5), 0, false);
        ledger.note(&message(0, 99), 0, false);
        assert_eq!((ledger.missing, ledger.reordered, ledger.duplicates), (1, 1, 0), "99 was not missing");
    }
}
