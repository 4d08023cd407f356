//! The encoder: replies in either dialect, and requests.
//!
//! Callers say what they mean (a map, a double, a null) and the encoder says it in the client's dialect. No argument can
//! break the framing: whatever goes into a line loses its newlines first.

use crate::Protocol;
use crate::double::DoubleText;
use crate::number::Digits;

/// Appends replies to a buffer in one dialect.
#[derive(Debug)]
pub struct Encoder<'a> {
    out: &'a mut Vec<u8>,
    protocol: Protocol,
}

impl<'a> Encoder<'a> {
    /// An encoder that appends to `out`.
    #[inline]
    pub fn new(out: &'a mut Vec<u8>, protocol: Protocol) -> Self {
        Self { out, protocol }
    }

    /// The dialect.
    #[inline]
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// A simple string. Newlines become spaces.
    pub fn simple(&mut self, text: &str) {
        self.simple_bytes(text.as_bytes());
    }

    /// A simple string that may not be UTF-8. Newlines become spaces.
    pub fn simple_bytes(&mut self, text: &[u8]) {
        self.line(b'+', text);
    }

    /// An error, its code first (`ERR ...`). Newlines at the end are dropped, others become spaces, as in Redis.
    pub fn error(&mut self, text: &[u8]) {
        self.line(b'-', text.without_end());
    }

    /// An error of any bytes, its code first. As [`Self::error`] in RESP2.
    pub fn blob_error(&mut self, text: &[u8]) {
        if self.is_resp2() { self.error(text) } else { self.string(b'!', text) }
    }

    /// An integer.
    #[inline]
    pub fn integer(&mut self, value: i64) {
        match usize::try_from(value) {
            Ok(value) => self.head(b':', value),
            Err(_) => head_of(self.out, b':', &Digits::signed(value)),
        }
    }

    /// A bulk string.
    #[inline]
    pub fn bulk(&mut self, bytes: &[u8]) {
        self.string(b'$', bytes);
    }

    /// The null: `$-1` in RESP2.
    #[inline]
    pub fn null(&mut self) {
        self.raw(if self.is_resp2() { crate::replies::NULL_BULK } else { crate::replies::NULL });
    }

    /// The null where an array was asked for: `*-1` in RESP2.
    #[inline]
    pub fn null_array(&mut self) {
        self.raw(if self.is_resp2() { crate::replies::NULL_ARRAY } else { crate::replies::NULL });
    }

    /// The head of an array; `elements` replies have to follow.
    #[inline]
    pub fn array(&mut self, elements: usize) {
        self.head(b'*', elements);
    }

    /// The head of a map; `pairs` times a key and a value have to follow. An array of both in RESP2.
    #[inline]
    pub fn map(&mut self, pairs: usize) {
        if self.is_resp2() { self.head(b'*', pairs.saturating_mul(2)) } else { self.head(b'%', pairs) }
    }

    /// The head of a set; `elements` replies have to follow. An array in RESP2.
    #[inline]
    pub fn set(&mut self, elements: usize) {
        self.head(if self.is_resp2() { b'*' } else { b'~' }, elements);
    }

    /// The head of a push; `elements` replies have to follow. An array in RESP2.
    #[inline]
    pub fn push(&mut self, elements: usize) {
        self.head(if self.is_resp2() { b'*' } else { b'>' }, elements);
    }

    /// A double as Redis 7.0 prints it, with 17 digits at most. A bulk string in RESP2.
    pub fn double(&mut self, value: f64) {
        let text = DoubleText::new(value);
        if self.is_resp2() { self.bulk(text.as_bytes()) } else { self.line(b',', text.as_bytes()) }
    }

    /// A boolean. `:1` or `:0` in RESP2.
    pub fn boolean(&mut self, value: bool) {
        self.raw(match (self.protocol, value) {
            (Protocol::Resp2, true) => b":1\r\n",
            (Protocol::Resp2, false) => b":0\r\n",
            (Protocol::Resp3, true) => b"#t\r\n",
            (Protocol::Resp3, false) => b"#f\r\n",
        });
    }

    /// An integer of any size, by its digits. A bulk string in RESP2.
    pub fn big_number(&mut self, digits: &[u8]) {
        if self.is_resp2() { self.bulk(digits) } else { self.line(b'(', digits) }
    }

    /// A string with a format of three letters (`txt`, `mkd`), which is cut or filled with spaces. A bulk string in RESP2.
    pub fn verbatim(&mut self, format: &str, bytes: &[u8]) {
        let mut letters = *b"   ";
        for (place, letter) in letters.iter_mut().zip(format.bytes()) {
            *place = letter;
        }
        self.verbatim_bytes(letters, bytes);
    }

    /// [`Self::verbatim`] with a format of exactly three bytes.
    pub fn verbatim_bytes(&mut self, format: [u8; 3], bytes: &[u8]) {
        if self.is_resp2() {
            return self.bulk(bytes);
        }
        self.head(b'=', bytes.len() + 4);
        self.raw(&format);
        self.raw(b":");
        self.raw(bytes);
        self.raw(b"\r\n");
    }

    /// Bytes that are RESP already: whole replies, or the rest of one.
    #[inline]
    pub fn raw(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// How many bytes the buffer holds: a place for [`Self::array_at`] and [`Self::truncate`].
    #[inline]
    pub fn position(&self) -> usize {
        self.out.len()
    }

    /// Puts the head of an array before all that was written since `position`, for callers that count while they write. Moves those
    /// bytes; an aggregate whose size is known begins with its head.
    pub fn array_at(&mut self, position: usize, elements: usize) {
        self.before(position, |encoder| encoder.array(elements));
    }

    /// As [`Self::array_at`] for a map.
    pub fn map_at(&mut self, position: usize, pairs: usize) {
        self.before(position, |encoder| encoder.map(pairs));
    }

    /// As [`Self::array_at`] for a set.
    pub fn set_at(&mut self, position: usize, elements: usize) {
        self.before(position, |encoder| encoder.set(elements));
    }

    /// Takes back all that was written since `position`.
    pub fn truncate(&mut self, position: usize) {
        self.out.truncate(position);
    }

    /// Moves what `write` writes before all that was written since `position`.
    fn before(&mut self, position: usize, write: impl FnOnce(&mut Self)) {
        let end = self.out.len();
        write(self);
        let head = self.out.len().saturating_sub(end);
        if let Some(moved) = self.out.get_mut(position..) {
            moved.rotate_right(head.min(moved.len()));
        }
    }

    #[inline]
    fn is_resp2(&self) -> bool {
        self.protocol == Protocol::Resp2
    }

    #[inline]
    fn head(&mut self, of: u8, count: usize) {
        head(self.out, of, count);
    }

    #[inline]
    fn string(&mut self, of: u8, bytes: &[u8]) {
        string(self.out, of, bytes);
    }

    fn line(&mut self, of: u8, text: &[u8]) {
        self.out.reserve(text.len() + 3);
        self.out.push(of);
        if text.iter().any(|byte| matches!(byte, b'\r' | b'\n')) {
            self.out.extend(text.iter().map(|&byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { byte }));
        } else {
            self.out.extend_from_slice(text);
        }
        self.out.extend_from_slice(b"\r\n");
    }
}

/// Appends a request in the canonical form, which the decoder gives back as [`raw`](crate::Request::raw).
pub fn encode_request<'a>(out: &mut Vec<u8>, args: impl ExactSizeIterator<Item = &'a [u8]>) {
    request_head(out, args.len());
    for arg in args {
        request_bulk(out, arg);
    }
}

/// Appends the head of a request; `elements` times [`request_bulk`] has to follow.
#[inline]
pub fn request_head(out: &mut Vec<u8>, elements: usize) {
    head(out, b'*', elements);
}

/// Appends one argument of a request.
#[inline]
pub fn request_bulk(out: &mut Vec<u8>, arg: &[u8]) {
    string(out, b'$', arg);
}

/// The head of a request or of one of its arguments, for a request that is not written into a `Vec`.
#[derive(Clone, Copy, Debug)]
pub struct Head {
    text: [u8; HEAD_BYTES_MAX],
    length: usize,
}

impl Head {
    /// The head of a request of so many elements, its name among them.
    #[inline]
    pub fn request(elements: usize) -> Self {
        Self::of(b'*', elements)
    }

    /// The head of an argument of so many bytes; they follow, and CR LF.
    #[inline]
    pub fn argument(length: usize) -> Self {
        Self::of(b'$', length)
    }

    #[inline]
    fn of(of: u8, count: usize) -> Self {
        let mut text = [0; HEAD_BYTES_MAX];
        // The digits of most are known without a division.
        if count < 10 {
            text[..4].copy_from_slice(&[of, b'0' + count as u8, b'\r', b'\n']);
            return Self { text, length: 4 };
        }
        if count < 100 {
            text[..5].copy_from_slice(&[of, b'0' + (count / 10) as u8, b'0' + (count % 10) as u8, b'\r', b'\n']);
            return Self { text, length: 5 };
        }
        Self::long(of, count)
    }

    fn long(of: u8, count: usize) -> Self {
        let mut text = [0; HEAD_BYTES_MAX];
        text[0] = of;
        let digits = Digits::unsigned(count as u64);
        let end = 1 + digits.as_bytes().len();
        text[1..end].copy_from_slice(digits.as_bytes());
        text[end..end + 2].copy_from_slice(b"\r\n");
        Self { text, length: end + 2 }
    }

    /// As it is written.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.text[..self.length]
    }
}

#[inline]
fn string(out: &mut Vec<u8>, of: u8, bytes: &[u8]) {
    out.reserve(bytes.len() + HEAD_BYTES_MAX + 2);
    head(out, of, bytes.len());
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

/// Bytes that the longest head takes: type, digits, CR LF.
const HEAD_BYTES_MAX: usize = 1 + crate::number::DIGITS_MAX + 2;

#[inline]
fn head(out: &mut Vec<u8>, of: u8, count: usize) {
    match count {
        0..10 => out.extend_from_slice(&[of, b'0' + count as u8, b'\r', b'\n']),
        10..100 => out.extend_from_slice(&[of, b'0' + (count / 10) as u8, b'0' + (count % 10) as u8, b'\r', b'\n']),
        _ => head_of(out, of, &Digits::unsigned(count as u64)),
    }
}

#[inline]
fn head_of(out: &mut Vec<u8>, of: u8, digits: &Digits) {
    out.reserve(HEAD_BYTES_MAX);
    out.push(of);
    out.extend_from_slice(digits.as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// Newlines at the end, cut off.
trait WithoutEnd {
    fn without_end(&self) -> &Self;
}

impl WithoutEnd for [u8] {
    fn without_end(&self) -> &Self {
        let mut text = self;
        while let [head @ .., b'\r' | b'\n'] = text {
            text = head;
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ReplyLimits, ReplyScanner, Scan};

    /// What `write` writes in RESP2 and RESP3.
    #[track_caller]
    fn check(write: impl Fn(&mut Encoder<'_>), resp2: &str, resp3: &str) {
        for (protocol, expected) in [(Protocol::Resp2, resp2), (Protocol::Resp3, resp3)] {
            let mut out = Vec::new();
            write(&mut Encoder::new(&mut out, protocol));
            assert_eq!(String::from_utf8_lossy(&out), expected, "{protocol:?}");
        }
    }

    #[test]
    fn every_type_is_written_in_either_dialect() {
        check(|e| e.simple("OK"), "+OK\r\n", "+OK\r\n");
        check(|e| e.error(b"ERR no"), "-ERR no\r\n", "-ERR no\r\n");
        check(|e| e.blob_error(b"ERR\nno"), "-ERR no\r\n", "!6\r\nERR\nno\r\n");
        check(|e| e.integer(0), ":0\r\n", ":0\r\n");
        check(|e| e.integer(i64::MIN), ":-9223372036854775808\r\n", ":-9223372036854775808\r\n");
        check(|e| e.bulk(b""), "$0\r\n\r\n", "$0\r\n\r\n");
        check(|e| e.bulk(b"0123456789"), "$10\r\n0123456789\r\n", "$10\r\n0123456789\r\n");
        check(|e| e.null(), "$-1\r\n", "_\r\n");
        check(|e| e.null_array(), "*-1\r\n", "_\r\n");
        check(|e| e.array(100), "*100\r\n", "*100\r\n");
        check(|e| e.map(5), "*10\r\n", "%5\r\n");
        check(|e| e.set(5), "*5\r\n", "~5\r\n");
        check(|e| e.push(3), "*3\r\n", ">3\r\n");
        check(|e| e.double(1.5), "$3\r\n1.5\r\n", ",1.5\r\n");
        check(|e| e.double(f64::INFINITY), "$3\r\ninf\r\n", ",inf\r\n");
        check(|e| e.boolean(true), ":1\r\n", "#t\r\n");
        check(|e| e.boolean(false), ":0\r\n", "#f\r\n");
        check(|e| e.big_number(b"-12"), "$3\r\n-12\r\n", "(-12\r\n");
        check(|e| e.verbatim("txt", b"a\r\n"), "$3\r\na\r\n\r\n", "=7\r\ntxt:a\r\n\r\n");
        check(|e| e.verbatim("m", b""), "$0\r\n\r\n", "=4\r\nm  :\r\n");
        check(|e| e.verbatim("markdown", b"x"), "$1\r\nx\r\n", "=5\r\nmar:x\r\n");
        check(|e| e.raw(b":1\r\n"), ":1\r\n", ":1\r\n");
    }

    #[test]
    fn newlines_never_get_out_of_a_line() {
        for text in ["a\r\nb", "\r", "\n", "\r\n+OK\r\n", "a\n\n"] {
            type Write = fn(&mut Encoder<'_>, &str);
            let writes: [Write; 4] = [
                |e, text| e.simple(text),
                |e, text| e.error(text.as_bytes()),
                |e, text| e.blob_error(text.as_bytes()),
                |e, text| e.verbatim(text, text.as_bytes()),
            ];
            for (write, protocol) in writes.iter().flat_map(|w| [(w, Protocol::Resp2), (w, Protocol::Resp3)]) {
                let mut out = Vec::new();
                write(&mut Encoder::new(&mut out, protocol), text);
                let scan = ReplyScanner::new().scan(&out, &ReplyLimits::default());
                assert!(
                    matches!(scan, Ok(Scan::Complete { consumed, .. }) if consumed == out.len()),
                    "{text:?} {scan:?}"
                );
            }
        }
        check(|e| e.error(b"ERR a\r\nb\r\n"), "-ERR a  b\r\n", "-ERR a  b\r\n");
        check(|e| e.simple("a\nb\n"), "+a b \r\n", "+a b \r\n");
    }

    #[test]
    fn an_array_can_be_counted_while_it_is_written() {
        let mut out = b"before".to_vec();
        let mut encoder = Encoder::new(&mut out, Protocol::Resp2);
        let start = encoder.position();
        encoder.integer(1);
        encoder.bulk(b"x");
        encoder.array_at(start, 2);
        let end = encoder.position();
        encoder.array(99);
        encoder.truncate(end);
        encoder.set_at(end, 0);
        encoder.map_at(start, 7);
        assert_eq!(out, b"before*14\r\n*2\r\n:1\r\n$1\r\nx\r\n*0\r\n");
    }

    #[test]
    fn requests_are_written_in_the_canonical_form() {
        let mut out = Vec::new();
        encode_request(&mut out, [&b"SET"[..], b"key", b""].into_iter());
        request_head(&mut out, 12);
        request_bulk(&mut out, b"0123456789\r");
        assert_eq!(out, b"*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$0\r\n\r\n*12\r\n$11\r\n0123456789\r\r\n");
        assert_eq!(Head::request(3).as_bytes(), b"*3\r\n");
        assert_eq!(Head::argument(usize::MAX).as_bytes(), format!("${}\r\n", usize::MAX).as_bytes());
    }
}
