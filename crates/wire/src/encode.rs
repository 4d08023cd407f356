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
        self.line(b'+', text.as_bytes());
    }

    /// An error, its code first (`ERR ...`). Newlines at the end are dropped, others become spaces, as in Redis.
    pub fn error(&mut self, text: &[u8]) {
        self.line(b'-', text.trim_ascii_end_newlines());
    }

    /// An integer.
    #[inline]
    pub fn integer(&mut self, value: i64) {
        self.head_of(b':', &Digits::signed(value));
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
    pub fn big_number(&mut self, digits: &str) {
        if self.is_resp2() { self.bulk(digits.as_bytes()) } else { self.line(b'(', digits.as_bytes()) }
    }

    /// A string with a format of three letters (`txt`, `mkd`), which is cut or filled with spaces. A bulk string in RESP2.
    pub fn verbatim(&mut self, format: &str, bytes: &[u8]) {
        if self.is_resp2() {
            return self.bulk(bytes);
        }
        let mut prefix = *b"   :";
        for (place, letter) in prefix.iter_mut().take(3).zip(format.bytes()) {
            *place = letter;
        }
        self.head(b'=', bytes.len() + prefix.len());
        self.raw(&prefix);
        self.raw(bytes);
        self.raw(b"\r\n");
    }

    /// Bytes that are RESP already: whole replies, or the rest of one.
    #[inline]
    pub fn raw(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
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
    fn head_of(&mut self, of: u8, digits: &Digits) {
        head_of(self.out, of, digits);
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
    if count < 10 {
        return out.extend_from_slice(&[of, b'0' + count as u8, b'\r', b'\n']);
    }
    head_of(out, of, &Digits::unsigned(count as u64));
}

#[inline]
fn head_of(out: &mut Vec<u8>, of: u8, digits: &Digits) {
    out.reserve(HEAD_BYTES_MAX);
    out.push(of);
    out.extend_from_slice(digits.as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// Newlines at the end, cut off.
trait TrimNewlines {
    fn trim_ascii_end_newlines(&self) -> &Self;
}

impl TrimNewlines for [u8] {
    fn trim_ascii_end_newlines(&self) -> &Self {
        let mut text = self;
        while let [head @ .., b'\r' | b'\n'] = text {
            text = head;
        }
        text
    }
}
