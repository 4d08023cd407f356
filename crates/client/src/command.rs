//! A request before it is sent: its arguments, encoded by the caller.
//!
//! A short request lies in the command itself, so that it costs no allocation; a large value that is [`Bytes`] is kept and not
//! copied.

use crate::ToArgs;
use crate::core::START_BYTES;
use crate::limits::{INLINE_BYTES, KEPT_BYTES_MIN};
use bytes::Bytes;
use respool_wire::Head;
use std::fmt;

/// A request. Made by [`cmd`], sent by [`Client::call`](crate::Client::call).
#[derive(Clone)]
pub struct Command {
    text: Text,
    arguments: usize,
    /// Values that are not copied, each with the place in `text` that it stands at.
    kept: Vec<(usize, Bytes)>,
    /// Where the first key stands in `text`, if it was marked.
    key: Option<(usize, usize)>,
    may_repeat: bool,
    /// Its caller says that it names no keys.
    is_keyless: bool,
}

/// A request by its name. A name of two words is two arguments.
///
/// ```
/// use respool_client::cmd;
///
/// let set = cmd("SET").key("greeting").arg("hello").arg("EX").arg(60);
/// assert_eq!(set.arguments(), 5);
/// assert_eq!(cmd("CONFIG GET").arg("maxmemory").arguments(), 3);
/// ```
#[inline]
pub fn cmd(name: &str) -> Command {
    // Of a name that is written in the program this is known when it is compiled.
    if name.as_bytes().contains(&b' ') { Command::of_words(name) } else { Command::of_word(name) }
}

impl Command {
    /// Arguments without a name.
    #[inline]
    pub(crate) fn empty() -> Self {
        let text = Text::Inline { bytes: [0; INLINE_BYTES], length: 0 };
        Self { text, arguments: 0, kept: Vec::new(), key: None, may_repeat: false, is_keyless: false }
    }

    #[inline]
    fn of_word(name: &str) -> Self {
        let mut command = Self::empty();
        command.push(name.as_bytes());
        command
    }

    fn of_words(names: &str) -> Self {
        let mut command = Self::empty();
        names.split(' ').for_each(|word| command.push(word.as_bytes()));
        command
    }

    /// All arguments, copied.
    pub(crate) fn all_arguments(&self) -> Vec<Bytes> {
        let mut bytes = Vec::new();
        for (text, kept) in self.parts() {
            bytes.extend_from_slice(text);
            bytes.extend_from_slice(kept.map_or(&[][..], |value| value));
        }
        let bytes = Bytes::from(bytes);
        let mut rest = &bytes[..];
        let mut all = Vec::with_capacity(self.arguments);
        while !rest.is_empty() {
            let (argument, behind) = first_argument(rest);
            all.push(bytes.slice_ref(argument));
            rest = behind;
        }
        all
    }

    /// The request as it is sent.
    #[cfg(feature = "cache")]
    pub(crate) fn encoded(&self) -> Bytes {
        let mut bytes = Head::request(self.arguments).as_bytes().to_vec();
        for (text, kept) in self.parts() {
            bytes.extend_from_slice(text);
            bytes.extend_from_slice(kept.map_or(&[][..], |value| value));
        }
        bytes.into()
    }

    /// Whether it lies in the command itself, so that it is not large.
    #[inline]
    pub(crate) fn is_short(&self) -> bool {
        self.kept.is_empty() && matches!(self.text, Text::Inline { .. })
    }

    /// Bytes of the request as it is sent.
    pub(crate) fn sent_bytes(&self) -> usize {
        let parts = self.parts().map(|(text, kept)| text.len() + kept.map_or(0, Bytes::len));
        Head::request(self.arguments).as_bytes().len() + parts.sum::<usize>()
    }

    /// Bytes of its arguments as they are sent.
    #[inline]
    pub(crate) fn argument_bytes(&self) -> usize {
        let kept = if self.kept.is_empty() { 0 } else { self.kept.iter().map(|(_, value)| value.len()).sum() };
        self.text.as_slice().len() + kept
    }

    /// How its arguments begin as they are sent, without values that are kept; behind a shorter request are zeros.
    #[inline]
    pub(crate) fn start(&self) -> &[u8; START_BYTES] {
        let text = match &self.text {
            Text::Inline { bytes, .. } => &bytes[..],
            // It was too long to lie in place, and does not become shorter.
            Text::Heap(bytes) => bytes,
        };
        text.first_chunk().unwrap_or(&[0; START_BYTES])
    }

    /// Adds what `value` stands for: one argument, several or none.
    #[must_use]
    #[inline]
    pub fn arg(mut self, value: impl ToArgs) -> Self {
        value.write_args(&mut self);
        self
    }

    /// As [`Self::arg`], for keys. Marked keys say where a request goes whose command is not known.
    #[must_use]
    #[inline]
    pub fn key(mut self, key: impl ToArgs) -> Self {
        let start = self.text.as_slice().len();
        key.write_args(&mut self);
        if self.key.is_none() && self.text.as_slice().len() > start {
            self.key = Some((start, self.text.as_slice().len()));
        }
        self
    }

    /// The request may be executed twice: it is sent again when it is not known whether it was executed.
    #[must_use]
    pub fn idempotent(mut self) -> Self {
        self.may_repeat = true;
        self
    }

    /// The request names no keys, as its caller says: of a command that is not in the [command table](crate::commands) nothing else
    /// does, and [`Client::each_shard`](crate::Client::each_shard) takes no request that may name some.
    #[must_use]
    pub fn keyless(mut self) -> Self {
        self.is_keyless = true;
        self
    }

    /// Whether it names no keys, as its caller says.
    pub fn is_keyless(&self) -> bool {
        self.is_keyless
    }

    /// Adds one argument.
    #[inline]
    pub fn push(&mut self, argument: &[u8]) {
        self.arguments += 1;
        if !self.text.append_short(argument) {
            self.text.append(&[Head::argument(argument.len()).as_bytes(), argument, b"\r\n"]);
        }
    }

    /// Adds one argument, which is kept and not copied if it is large.
    pub fn push_bytes(&mut self, argument: &Bytes) {
        if argument.len() < KEPT_BYTES_MIN {
            return self.push(argument);
        }
        self.arguments += 1;
        self.text.append(&[Head::argument(argument.len()).as_bytes()]);
        self.kept.push((self.text.as_slice().len(), argument.clone()));
        self.text.append(&[b"\r\n"]);
    }

    /// Adds one argument as it prints.
    pub fn push_display(&mut self, argument: impl fmt::Display) {
        let mut printed = Printed { bytes: [0; PRINTED_BYTES], length: 0 };
        match fmt::write(&mut printed, format_args!("{argument}")) {
            Ok(()) => self.push(&printed.bytes[..printed.length]),
            Err(_) => self.push(argument.to_string().as_bytes()),
        }
    }

    /// Adds the number of what `add` adds, and behind it that: arguments in groups of `width`.
    pub(crate) fn push_counted(&mut self, width: usize, add: impl FnOnce(&mut Self)) {
        let (place, before) = (self.place(), self.arguments);
        add(self);
        let (end, count) = (self.place(), self.arguments - before);
        self.push_display(count / width);
        self.move_back(place, end);
    }

    /// Where what is added next will stand, until something is moved.
    pub(crate) fn place(&self) -> usize {
        self.text.as_slice().len()
    }

    /// Moves what was added since `end` to `place`, in front of what stands there.
    pub(crate) fn move_back(&mut self, place: usize, end: usize) {
        let text = self.text.as_mut_slice();
        let added = text.len() - end;
        if added == 0 || place == end {
            return;
        }
        text[place..].rotate_right(added);
        let moved = |at: usize| match at {
            _ if at < place => at,
            _ if at < end => at + added,
            _ => at - (end - place),
        };
        self.kept.iter_mut().for_each(|(at, _)| *at = moved(*at));
        self.kept.sort_by_key(|(at, _)| *at);
        self.key = self.key.map(|(start, stop)| (moved(start), moved(start) + stop - start));
    }

    /// How many arguments there are, the name among them.
    pub fn arguments(&self) -> usize {
        self.arguments
    }

    /// Whether it may be executed twice, as its caller says.
    pub fn is_idempotent(&self) -> bool {
        self.may_repeat
    }

    /// The request's name, for errors and for finding its row.
    pub(crate) fn name(&self) -> &[u8] {
        first_argument(self.text.as_slice()).0
    }

    /// The words by which the request's row is found: its name, and the argument behind it.
    pub(crate) fn words(&self) -> (&[u8], &[u8]) {
        let (name, rest) = first_argument(self.text.as_slice());
        let start = self.text.as_slice().len() - rest.len();
        let value = rest.iter().position(|&byte| byte == b'\n').map_or(start, |end| start + end + 1);
        let is_kept = self.kept.first().is_some_and(|(place, _)| *place == value);
        let second = if self.arguments > 1 && !is_kept { first_argument(rest).0 } else { b"" };
        (name, second)
    }

    /// The whole request behind its head, if nothing of it is kept.
    #[inline]
    pub(crate) fn copied(&self) -> Option<&[u8]> {
        self.kept.is_empty().then(|| self.text.as_slice())
    }

    /// The first key that was marked.
    pub(crate) fn marked_key(&self) -> Option<Bytes> {
        let (start, _) = self.key?;
        let text = &self.text.as_slice()[start..];
        let value = start + text.iter().position(|&byte| byte == b'\n')? + 1;
        let kept = self.kept.iter().find(|(place, _)| *place == value);
        Some(kept.map_or_else(|| Bytes::copy_from_slice(first_argument(text).0), |(_, key)| key.clone()))
    }

    /// Another request of the same caller, as it is sent: a part of this one.
    pub(crate) fn with_encoded(&self, request: &[u8]) -> Option<Self> {
        let end = request.iter().position(|&byte| byte == b'\n')? + 1;
        let arguments = std::str::from_utf8(request.get(1..end.checked_sub(2)?)?).ok()?.parse().ok()?;
        let mut part = Self { arguments, may_repeat: self.may_repeat, ..Self::empty() };
        part.text.append(&[&request[end..]]);
        Some(part)
    }

    /// The request in order: parts to copy, and values to keep.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (&[u8], Option<&Bytes>)> {
        let text = self.text.as_slice();
        let starts = std::iter::once(0).chain(self.kept.iter().map(|(place, _)| *place));
        let ends = self.kept.iter().map(|(place, value)| (*place, Some(value))).chain([(text.len(), None)]);
        starts.zip(ends).map(|(start, (end, value))| (&text[start..end], value))
    }
}

/// The first argument of an encoded list of arguments, and what follows it. Nothing for one that does not stand in the text.
#[inline]
fn first_argument(text: &[u8]) -> (&[u8], &[u8]) {
    let (mut length, mut at) = (0_usize, 1);
    loop {
        match text.get(at) {
            Some(digit @ b'0'..=b'9') => length = length.wrapping_mul(10).wrapping_add(usize::from(digit - b'0')),
            Some(b'\r') => break,
            _ => return (b"", b""),
        }
        at += 1;
    }
    let rest = text.get(at + 2..).unwrap_or_default();
    let (argument, rest) = rest.split_at_checked(length).unwrap_or((b"", b""));
    (argument, rest.get(2..).unwrap_or_default())
}

impl fmt::Debug for Command {
    /// Name and size alone: arguments may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = String::from_utf8_lossy(self.name());
        f.debug_struct("Command").field("name", &name).field("arguments", &self.arguments).finish_non_exhaustive()
    }
}

/// Bytes that lie in place while they are few.
#[derive(Clone)]
enum Text {
    Inline { bytes: [u8; INLINE_BYTES], length: usize },
    Heap(Vec<u8>),
}

impl Text {
    #[inline]
    fn as_slice(&self) -> &[u8] {
        match self {
            Self::Inline { bytes, length } => &bytes[..*length],
            Self::Heap(bytes) => bytes,
        }
    }

    fn as_mut_slice(&mut self) -> &mut [u8] {
        match self {
            Self::Inline { bytes, length } => &mut bytes[..*length],
            Self::Heap(bytes) => bytes,
        }
    }

    /// Appends an argument with its head and its end, if it is short and there is room for it in place. Whether it has.
    #[inline]
    fn append_short(&mut self, argument: &[u8]) -> bool {
        let Self::Inline { bytes, length } = self else { return false };
        let free = &mut bytes[*length..];
        let count = argument.len();
        // Pieces of a known size, so that each is one store.
        let (head, rest) = match count {
            0..10 => {
                let Some((head, rest)) = free.split_first_chunk_mut() else { return false };
                *head = [b'$', b'0' + count as u8, b'\r', b'\n'];
                (head.len(), rest)
            }
            10..100 => {
                let Some((head, rest)) = free.split_first_chunk_mut() else { return false };
                *head = [b'$', b'0' + (count / 10) as u8, b'0' + (count % 10) as u8, b'\r', b'\n'];
                (head.len(), rest)
            }
            _ => return false,
        };
        let Some((place, rest)) = rest.split_at_mut_checked(count) else { return false };
        let Some(end) = rest.first_chunk_mut() else { return false };
        place.copy_from_slice(argument);
        *end = *b"\r\n";
        *length += head + count + end.len();
        true
    }

    fn append(&mut self, parts: &[&[u8]]) {
        let more: usize = parts.iter().map(|part| part.len()).sum();
        if let Self::Inline { bytes, length } = self {
            if *length + more <= INLINE_BYTES {
                for part in parts {
                    bytes[*length..*length + part.len()].copy_from_slice(part);
                    *length += part.len();
                }
                return;
            }
            let mut heap = Vec::with_capacity((*length + more).max(2 * INLINE_BYTES));
            heap.extend_from_slice(&bytes[..*length]);
            *self = Self::Heap(heap);
        }
        if let Self::Heap(heap) = self {
            parts.iter().for_each(|part| heap.extend_from_slice(part));
        }
    }
}

/// Bytes that the longest printed number takes.
const PRINTED_BYTES: usize = 64;

/// A printed value on the stack.
struct Printed {
    bytes: [u8; PRINTED_BYTES],
    length: usize,
}

impl fmt::Write for Printed {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let place = self.bytes.get_mut(self.length..self.length + text.len()).ok_or(fmt::Error)?;
        place.copy_from_slice(text.as_bytes());
        self.length += text.len();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(command: &Command) -> Vec<u8> {
        let mut out = Head::request(command.arguments()).as_bytes().to_vec();
        for (text, kept) in command.parts() {
            out.extend_from_slice(text);
            out.extend_from_slice(kept.map_or(&[][..], |value| value));
        }
        out
    }

    #[test]
    fn a_request_is_encoded_whatever_its_size() {
        for size in (0..2 * INLINE_BYTES).chain([KEPT_BYTES_MIN - 1, KEPT_BYTES_MIN, 3 * KEPT_BYTES_MIN]) {
            let value = Bytes::from(vec![b'v'; size]);
            let command = cmd("SET").key("k").arg(&value).arg("EX").arg(10);
            let mut expected = Vec::new();
            respool_wire::encode_request(&mut expected, [&b"SET"[..], b"k", &value, b"EX", b"10"].into_iter());
            assert_eq!(encoded(&command), expected);
            assert_eq!(command.words(), (&b"SET"[..], &b"k"[..]));
        }
    }

    #[test]
    fn what_is_added_later_may_stand_earlier() {
        for size in [1, INLINE_BYTES, KEPT_BYTES_MIN] {
            let (first, last) = (Bytes::from(vec![b'f'; size]), Bytes::from(vec![b'l'; 2 * size]));
            let mut command = cmd("X").key("k").arg(&first);
            let place = command.place();
            command.push_bytes(&last);
            for option in [&b"A"[..], &first] {
                let end = command.place();
                command.push_bytes(&Bytes::copy_from_slice(option));
                command.move_back(if option == b"A" { place } else { place + 7 }, end);
            }
            let mut expected = Vec::new();
            respool_wire::encode_request(&mut expected, [&b"X"[..], b"k", &first, b"A", &first, &last].into_iter());
            assert_eq!(encoded(&command), expected, "{size}");
        }
    }

    #[test]
    fn arguments_are_counted_in_front_of_them() {
        let mut command = cmd("MSETEX");
        command.push_counted(2, |command| [("a", 1), ("b", 2)].write_args(command));
        let mut expected = Vec::new();
        respool_wire::encode_request(&mut expected, [&b"MSETEX"[..], b"2", b"a", b"1", b"b", b"2"].into_iter());
        assert_eq!(encoded(&command), expected);
    }

    #[test]
    fn the_words_of_a_kept_argument_are_not_looked_for() {
        let command = cmd("X").arg(Bytes::from(vec![0; KEPT_BYTES_MIN])).arg("y");
        assert_eq!(command.words(), (&b"X"[..], &b""[..]));
    }

    #[test]
    fn a_marked_key_is_found_wherever_it_lies() {
        for size in [0, 1, INLINE_BYTES, KEPT_BYTES_MIN] {
            let key = Bytes::from(vec![b'k'; size]);
            let command = cmd("NEW").arg("x").key(&key).key("other").arg(&key);
            assert_eq!(command.marked_key(), Some(key));
            let part = command.with_encoded(&encoded(&command)).unwrap();
            assert_eq!(encoded(&part), encoded(&command));
        }
        assert_eq!(cmd("NEW").arg("x").marked_key(), None);
    }

    #[test]
    fn arguments_are_not_printed() {
        let shown = format!("{:?}", cmd("AUTH").arg("secret"));
        assert!(shown.contains("AUTH") && !shown.contains("secret"), "{shown}");
    }
}
