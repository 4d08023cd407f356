//! Inline requests: a line of words, quoted as a person types them.
//!
//! The grammar is that of Redis' configuration lines. Words are separated by white space. Double quotes take the escapes
//! `\n \r \t \b \a \xHH`, and `\` before anything else stands for that byte; single quotes take `\'` only. A quote may open in
//! the middle of a word, and must close before white space or the end.

use crate::Span;
use crate::spans::Spans;

/// A quote was not closed, or was closed in the middle of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unbalanced;

/// Splits a line into words. Their bytes go to `text`, where `spans` lie; both are emptied first. A line as long as the
/// limits allow never fills more than 32 bits of `text`, because no word is longer than what it is made of.
pub(crate) fn split(line: &[u8], text: &mut Vec<u8>, spans: &mut Spans) -> Result<(), Unbalanced> {
    text.clear();
    spans.clear();
    let mut rest = line.trim_start_with(is_space);
    while !rest.is_empty() {
        let start = text.len();
        rest = word(rest, text)?;
        spans.push(Span { start: start as u32, end: text.len() as u32 });
        rest = rest.trim_start_with(is_space);
    }
    Ok(())
}

/// Moves one word from the start of `line` to `text` and returns what follows it.
fn word<'a>(line: &'a [u8], text: &mut Vec<u8>) -> Result<&'a [u8], Unbalanced> {
    let end = line.iter().position(|byte| matches!(byte, b' ' | b'\n' | b'\r' | b'\t' | b'"' | b'\'' | 0));
    let (plain, rest) = line.split_at(end.unwrap_or(line.len()));
    text.extend_from_slice(plain);
    match rest {
        [b'"', quoted @ ..] => double_quoted(quoted, text),
        [b'\'', quoted @ ..] => single_quoted(quoted, text),
        _ => Ok(rest),
    }
}

fn double_quoted<'a>(quoted: &'a [u8], text: &mut Vec<u8>) -> Result<&'a [u8], Unbalanced> {
    let mut rest = quoted;
    loop {
        let (byte, tail) = match *rest {
            [] => return Err(Unbalanced),
            [b'"', ref tail @ ..] => return after_quote(tail),
            [b'\\', b'x', high, low, ref tail @ ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                (hex(high) << 4 | hex(low), tail)
            }
            [b'\\', escaped, ref tail @ ..] => (unescaped(escaped), tail),
            [byte, ref tail @ ..] => (byte, tail),
        };
        text.push(byte);
        rest = tail;
    }
}

fn single_quoted<'a>(quoted: &'a [u8], text: &mut Vec<u8>) -> Result<&'a [u8], Unbalanced> {
    let mut rest = quoted;
    loop {
        let (byte, tail) = match *rest {
            [] => return Err(Unbalanced),
            [b'\'', ref tail @ ..] => return after_quote(tail),
            [b'\\', b'\'', ref tail @ ..] => (b'\'', tail),
            [byte, ref tail @ ..] => (byte, tail),
        };
        text.push(byte);
        rest = tail;
    }
}

/// What follows a closing quote must be white space or nothing.
fn after_quote(rest: &[u8]) -> Result<&[u8], Unbalanced> {
    match rest.first() {
        Some(&byte) if !is_space(byte) => Err(Unbalanced),
        _ => Ok(rest),
    }
}

const fn unescaped(byte: u8) -> u8 {
    match byte {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 8,
        b'a' => 7,
        other => other,
    }
}

/// The value of a hexadecimal digit.
const fn hex(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        _ => digit.wrapping_sub(b'A').wrapping_add(10),
    }
}

/// White space as C's `isspace` has it; between words it is skipped, though only some of it ends an unquoted word.
const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

/// Leading bytes that a test accepts, cut off.
trait TrimStart {
    fn trim_start_with(&self, accepts: impl Fn(u8) -> bool) -> &Self;
}

impl TrimStart for [u8] {
    fn trim_start_with(&self, accepts: impl Fn(u8) -> bool) -> &Self {
        let mut rest = self;
        while let [first, tail @ ..] = rest
            && accepts(*first)
        {
            rest = tail;
        }
        rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Args;

    #[track_caller]
    fn check(line: &[u8], expected: Option<&[&[u8]]>) {
        let (mut text, mut spans) = (b"old".to_vec(), Spans::default());
        let words = split(line, &mut text, &mut spans).ok().map(|()| Args::new(&text, spans.as_slice()));
        let words: Option<Vec<&[u8]>> = words.map(|words| words.iter().collect());
        assert_eq!(words.as_deref(), expected, "{}", line.escape_ascii());
    }

    #[test]
    fn words_are_split_at_white_space() {
        check(b"", Some(&[]));
        check(b" \t\x0b\x0c\r ", Some(&[]));
        check(b"PING", Some(&[b"PING"]));
        check(b"  SET\t key \r value ", Some(&[b"SET", b"key", b"value"]));
        check(b"a\x0bb \x0bc", Some(&[b"a\x0bb", b"c"]));
        check(b"x", Some(&[b"x"]));
        check(b"\xff\\n", Some(&[b"\xff\\n"]));
    }

    #[test]
    fn quotes_and_escapes_are_those_of_redis() {
        check(br#"ECHO "a b""#, Some(&[b"ECHO", b"a b"]));
        check(br#"ECHO "\x41\x4""#, Some(&[b"ECHO", b"Ax4"]));
        check(br#""\xfF\x00\xg1\x""#, Some(&[b"\xff\x00xg1x"]));
        check(br#""\n\r\t\b\a\q\\\"""#, Some(&[b"\n\r\t\x08\x07q\\\""]));
        check(br"'\n\'\x41'", Some(&[br"\n'\x41"]));
        check(br#"'' "" x"#, Some(&[b"", b"", b"x"]));
        check(br#"ab"c d" e'f g'"#, Some(&[b"abc d", b"ef g"]));
        check(b"\"a\"\x0bb", Some(&[b"a", b"b"]));
    }

    #[test]
    fn quotes_must_be_balanced() {
        for line in
            [r#"SET a "b"#, r#"""#, "'", r#""a"b"#, "'a'b", r#""a""b""#, r#""a\"#, r#""a\""#, r"'a\'", r#"'a"'"#]
        {
            let is_fine = line == r#"'a"'"#;
            check(line.as_bytes(), is_fine.then_some(&[b"a\""]));
        }
    }
}
