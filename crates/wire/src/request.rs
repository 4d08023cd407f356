//! The request decoder: what clients send, cut into arguments.
//!
//! ```text
//!            '*'                     number CRLF                  '$' number CRLF
//!   Start ---------> Start (head) ---------------> Arguments(at head) <--------> Arguments(in body)
//!     |                    \  number <= 0: Empty            body CRLF: one argument less; none left: Request
//!     | other byte
//!     +-------------> Inline  -- LF --> Request, or Empty for a blank line
//! ```
//!
//! The decoder is handed the bytes of the request in progress from their first on, and remembers how far it has come: the
//! arguments found, the body awaited, the part of a line that holds no end. So nothing is looked at twice but the at most 22
//! bytes of an unfinished head. It owns no bytes of a multibulk request; the words of an inline request, which may have
//! escapes, are copied.

use crate::limits::{RequestLimits, Strictness};
use crate::number::{NumberLine, number, number_line, short_line};
use crate::spans::Spans;
use crate::{Args, RequestError, Span, inline};

/// Bytes of inline text whose memory an idle decoder keeps for the next request.
const TEXT_KEPT: usize = 256;

/// What [`RequestDecoder::decode`] found at the start of its input.
#[derive(Clone, Copy, Debug)]
pub enum Step<'a> {
    /// A request.
    Request(Request<'a>),
    /// A request for nothing (`*0`, `*-1`, a blank line), which gets no reply.
    Empty {
        /// Bytes that it took from the start of the input.
        consumed: usize,
    },
    /// No whole request yet: call again with more bytes behind the same ones.
    Incomplete,
}

/// One request, borrowed from the input and the decoder.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The command's name and its arguments; at least the name, which may be empty.
    pub args: Args<'a>,
    /// Bytes that the request took from the start of the input.
    pub consumed: usize,
    /// The request as it came, if that is exactly how [`encode_request`](crate::encode_request) writes `args`. `None` for an
    /// inline request, and for whatever only the lenient mode lets pass.
    pub raw: Option<&'a [u8]>,
}

/// Where in a request the decoder is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// Between two requests.
    #[default]
    Idle,
    /// In the head of a multibulk request or in an inline request.
    Line,
    /// At the head of an argument.
    Head,
    /// In the body of an argument.
    Body,
}

/// What was found, before it is borrowed for the caller.
enum Found {
    Multibulk { consumed: usize },
    Inline { consumed: usize },
    Empty { consumed: usize },
    Incomplete,
}

/// A head that [`RequestDecoder::head`] has read.
enum Head {
    Whole { value: i64, width: usize },
    Incomplete,
    Invalid,
}

/// Decodes the requests of one connection, one at a time.
///
/// After an error the connection cannot be used any further: where the next request would start is unknown.
#[derive(Clone, Debug, Default)]
pub struct RequestDecoder {
    phase: Phase,
    /// Whether only the lenient mode would let these bytes pass.
    is_odd: bool,
    /// Arguments that are not complete yet.
    remaining: usize,
    /// Offset of the argument's head ([`Phase::Head`]) or of its body ([`Phase::Body`]).
    at: usize,
    /// Length of the body awaited.
    body: usize,
    /// Bytes of the unfinished line that are known to hold no end.
    searched: usize,
    spans: Spans,
    text: Vec<u8>,
}

impl RequestDecoder {
    /// A decoder between two requests.
    pub fn new() -> Self {
        Self::default()
    }

    /// Finds the request at the start of `input`.
    ///
    /// While the answer is [`Step::Incomplete`], the next call's input must start with the same bytes. After any other
    /// answer it starts `consumed` bytes later. Called with no input between two requests, the decoder gives back the
    /// memory that an unusual request has left behind.
    #[inline]
    pub fn decode<'a>(&'a mut self, input: &'a [u8], limits: &RequestLimits) -> Result<Step<'a>, RequestError> {
        let found = match self.phase {
            Phase::Idle | Phase::Line => match input.first() {
                Some(b'*') => self.multibulk(input, limits)?,
                Some(_) => self.inline(input, limits)?,
                None => self.nothing(),
            },
            Phase::Head | Phase::Body => self.arguments(input, limits)?,
        };
        let (bytes, consumed, raw) = match found {
            Found::Incomplete => return Ok(Step::Incomplete),
            Found::Empty { consumed } => return Ok(Step::Empty { consumed }),
            Found::Multibulk { consumed } => (input, consumed, if self.is_odd { None } else { input.get(..consumed) }),
            Found::Inline { consumed } => (self.text.as_slice(), consumed, None),
        };
        let args = Args::new(bytes, self.spans.as_slice());
        if is_cross_protocol(args.name()) {
            return Err(RequestError::CrossProtocol);
        }
        Ok(Step::Request(Request { args, consumed, raw }))
    }

    /// How long the input must be before it can hold the whole request, as far as is known: the end of the argument in
    /// progress. `None` if nothing is known. A hint within the limits, no reason to allocate before bytes arrive.
    pub fn needed(&self) -> Option<usize> {
        (self.phase == Phase::Body).then(|| self.at.saturating_add(self.body).saturating_add(2))
    }

    /// Whether the decoder is between two requests.
    pub fn is_idle(&self) -> bool {
        self.phase == Phase::Idle
    }

    /// No input: nothing to do but to let go of memory.
    #[cold]
    fn nothing(&mut self) -> Found {
        self.spans.trim();
        if self.text.capacity() > TEXT_KEPT {
            self.text = Vec::new();
        }
        Found::Incomplete
    }

    /// Reads the head of a multibulk request, then its arguments.
    #[inline]
    fn multibulk(&mut self, input: &[u8], limits: &RequestLimits) -> Result<Found, RequestError> {
        self.is_odd = false;
        let (value, width) = match short_line(input.get(1..).unwrap_or_default()) {
            Some((value, width)) => (value as i64, width + 1),
            None => match self.head(input, limits, RequestError::TooBigMultibulkCount)? {
                Head::Whole { value, width } => (value, width),
                Head::Invalid => return Err(RequestError::InvalidMultibulkLength),
                Head::Incomplete => {
                    self.phase = Phase::Line;
                    return Ok(Found::Incomplete);
                }
            },
        };
        if value <= 0 {
            self.reset();
            return Ok(Found::Empty { consumed: width });
        }
        self.remaining = usize::try_from(value).unwrap_or(usize::MAX);
        if self.remaining > limits.elements_max.min(limits.unauth_elements_max) {
            return Err(if self.remaining > limits.elements_max {
                RequestError::InvalidMultibulkLength
            } else {
                RequestError::UnauthenticatedMultibulkLength
            });
        }
        self.spans.clear();
        self.searched = 0;
        self.phase = Phase::Head;
        self.at = width;
        self.arguments(input, limits)
    }

    /// Reads arguments from where the last call stopped.
    #[inline]
    fn arguments(&mut self, input: &[u8], limits: &RequestLimits) -> Result<Found, RequestError> {
        let mut at = self.at;
        let mut remaining = self.remaining;
        let mut is_in_body = self.phase == Phase::Body;
        while remaining > 0 {
            if !is_in_body {
                match self.bulk_head(input, at, limits)? {
                    Some((body, width)) => {
                        self.body = body;
                        self.searched = 0;
                        at += width;
                    }
                    None => return Ok(self.stop(Phase::Head, at, remaining)),
                }
            }
            let end = at + self.body;
            match input.get(end..end + 2) {
                Some(b"\r\n") => {}
                Some(_) if limits.strictness == Strictness::Lenient => self.is_odd = true,
                Some(_) => return Err(RequestError::UnterminatedBulk),
                None => return Ok(self.stop(Phase::Body, at, remaining)),
            }
            self.spans.push(Span { start: at as u32, end: end as u32 });
            at = end + 2;
            remaining -= 1;
            is_in_body = false;
        }
        self.phase = Phase::Idle;
        Ok(Found::Multibulk { consumed: at })
    }

    /// Reads the head of an argument at offset `at`: the body's length, within the limits, and the head's width.
    #[inline(always)]
    fn bulk_head(
        &mut self,
        input: &[u8],
        at: usize,
        limits: &RequestLimits,
    ) -> Result<Option<(usize, usize)>, RequestError> {
        let rest = input.get(at..).unwrap_or_default();
        let (body, width) = match rest {
            [b'$', tail @ ..] if let Some((body, width)) = short_line(tail) => (body, width + 1),
            _ => match self.long_bulk_head(rest, limits)? {
                Some(head) => head,
                None => return Ok(None),
            },
        };
        let is_too_long = body > limits.bulk_bytes_max.min(limits.unauth_bulk_bytes_max);
        if is_too_long || at + width + 2 > limits.request_bytes_in_force().saturating_sub(body) {
            return Err(if body > limits.bulk_bytes_max {
                RequestError::InvalidBulkLength
            } else if is_too_long {
                RequestError::UnauthenticatedBulkLength
            } else {
                RequestError::TooBigRequest
            });
        }
        Ok(Some((body, width)))
    }

    /// [`Self::bulk_head`] for a head of three digits and more, an unfinished or a wrong one.
    #[inline(never)]
    fn long_bulk_head(&mut self, rest: &[u8], limits: &RequestLimits) -> Result<Option<(usize, usize)>, RequestError> {
        match *rest {
            [] => return Ok(None),
            [b'$', ..] => {}
            [other, ..] if limits.strictness == Strictness::Strict => return Err(RequestError::ExpectedDollar(other)),
            _ => {}
        }
        match self.head(rest, limits, RequestError::TooBigBulkCount)? {
            Head::Incomplete => Ok(None),
            Head::Whole { .. } | Head::Invalid if rest.first() != Some(&b'$') => {
                Err(RequestError::ExpectedDollar(rest.first().copied().unwrap_or_default()))
            }
            Head::Whole { value, width } => {
                let body = usize::try_from(value).map_err(|_| RequestError::InvalidBulkLength)?;
                Ok(Some((body, width)))
            }
            Head::Invalid => Err(RequestError::InvalidBulkLength),
        }
    }

    /// Reads a type byte, a number and the line's end.
    #[inline(never)]
    fn head(&mut self, line: &[u8], limits: &RequestLimits, too_big: RequestError) -> Result<Head, RequestError> {
        match limits.strictness {
            Strictness::Strict => Ok(match number_line(line.get(1..).unwrap_or_default()) {
                NumberLine::Whole { value, width } => Head::Whole { value, width: width + 1 },
                NumberLine::Incomplete => Head::Incomplete,
                NumberLine::Invalid => Head::Invalid,
            }),
            Strictness::Lenient => self.lenient_head(line, limits, too_big),
        }
    }

    /// As Redis reads a head: search the CR, stop at a NUL, want one more byte whatever it is, then judge.
    fn lenient_head(
        &mut self,
        line: &[u8],
        limits: &RequestLimits,
        too_big: RequestError,
    ) -> Result<Head, RequestError> {
        let found = self.search(line, b'\r');
        self.searched = found;
        if found > limits.inline_bytes_max || (line.len() > limits.inline_bytes_max && line.get(found) != Some(&b'\r'))
        {
            return Err(too_big);
        }
        let (Some(b'\r'), Some(skipped)) = (line.get(found), line.get(found + 1)) else {
            return Ok(Head::Incomplete);
        };
        self.is_odd |= *skipped != b'\n';
        Ok(match number(line.get(1..found).unwrap_or_default()) {
            Some(value) => Head::Whole { value, width: found + 2 },
            None => Head::Invalid,
        })
    }

    /// Reads an inline request.
    #[inline(never)]
    fn inline(&mut self, input: &[u8], limits: &RequestLimits) -> Result<Found, RequestError> {
        let found = self.search(input, b'\n');
        let stopper = input.get(found).copied();
        if found > limits.inline_bytes_max {
            return Err(RequestError::TooBigInline);
        }
        if stopper != Some(b'\n') {
            if stopper == Some(0) && limits.strictness == Strictness::Strict {
                return Err(RequestError::NulInline);
            }
            if input.len() > limits.inline_bytes_max {
                return Err(RequestError::TooBigInline);
            }
            self.phase = Phase::Line;
            self.searched = found;
            return Ok(Found::Incomplete);
        }
        let line = input.get(..found).unwrap_or_default();
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        inline::split(line, &mut self.text, &mut self.spans).map_err(|_| RequestError::UnbalancedQuotes)?;
        self.reset();
        let consumed = found + 1;
        Ok(if self.spans.as_slice().is_empty() { Found::Empty { consumed } } else { Found::Inline { consumed } })
    }

    /// Offset of the first `end` or NUL, searched from where the last search stopped; the line's length if there is none.
    fn search(&self, line: &[u8], end: u8) -> usize {
        let unseen = line.get(self.searched..).unwrap_or_default();
        match unseen.iter().position(|&byte| byte == end || byte == 0) {
            Some(offset) => self.searched + offset,
            None => line.len(),
        }
    }

    /// Remembers where arguments go on.
    #[inline]
    fn stop(&mut self, phase: Phase, at: usize, remaining: usize) -> Found {
        self.phase = phase;
        self.at = at;
        self.remaining = remaining;
        Found::Incomplete
    }

    /// Back between two requests.
    #[inline]
    fn reset(&mut self) {
        self.phase = Phase::Idle;
        self.searched = 0;
    }
}

/// Whether a command's name is a word of HTTP: `POST` or `Host:` in any case, as far as a NUL.
#[inline]
fn is_cross_protocol(name: &[u8]) -> bool {
    matches!(name, [b'p' | b'P' | b'h' | b'H', ..]) && is_http_word(name)
}

#[inline(never)]
fn is_http_word(name: &[u8]) -> bool {
    let word = name.split(|&byte| byte == 0).next().unwrap_or_default();
    word.eq_ignore_ascii_case(b"post") || word.eq_ignore_ascii_case(b"host:")
}
