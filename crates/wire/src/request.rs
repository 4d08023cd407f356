//! The request decoder: what clients send, cut into arguments.
//!
//! ```text
//!           any byte          '*' number CRLF          '$' number CRLF
//!   Idle ------------> Line ------------------> Head -------------------> Body
//!    ^                   |                        ^                         |
//!    |                   |                        +-- CRLF, more to come ---+
//!    |                   | number <= 0: Empty                               |
//!    |                   | LF: inline Request, or Empty for a blank line    |
//!    +-------------------+<-------------------------- CRLF, the last: ------+
//!                                                     Request
//! ```
//!
//! The decoder is handed the bytes of the request in progress from their first on, and remembers how far it has come: the
//! arguments found, the body awaited, the part of a line that holds no end. So nothing is looked at twice but the at most 22
//! bytes of an unfinished head. It owns no bytes of a multibulk request; the words of an inline request, which may have
//! escapes, are copied.

use crate::limits::{RequestBounds, RequestLimits, Strictness};
use crate::number::{NumberLine, number, number_line, short_head};
use crate::spans::Spans;
use crate::{Args, RequestError, RequestTail, Span, inline, request_bulk};

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

impl<'a> Request<'a> {
    /// A request that did not come in these bytes, nor is to be taken from any.
    pub fn made(args: Args<'a>) -> Self {
        Self { args, consumed: 0, raw: None }
    }

    /// Appends the arguments from `start` to before `end` as [`encode_request`](crate::encode_request) writes them: in one copy
    /// if that is how they came.
    #[inline(always)]
    pub fn copy_arguments(&self, start: usize, end: usize, out: &mut Vec<u8>) {
        match self.raw_arguments(start, end) {
            Some(bytes) => out.extend_from_slice(bytes),
            None => self.encode_arguments(start, end, out),
        }
    }

    /// The bytes of these arguments with their heads, if the request came as it would be written.
    #[inline(always)]
    fn raw_arguments(&self, start: usize, end: usize) -> Option<&'a [u8]> {
        let raw = self.raw?;
        let behind = |count: usize| match count.checked_sub(1) {
            Some(last) => self.args.end_of(last) + LINE_END_BYTES,
            None => 1 + digits(self.args.len()) + LINE_END_BYTES,
        };
        raw.get(behind(start)..behind(end))
    }

    #[inline(never)]
    fn encode_arguments(&self, start: usize, end: usize, out: &mut Vec<u8>) {
        (start..end).for_each(|index| request_bulk(out, self.args.at(index)));
    }
}

/// How many decimal digits a count has.
#[inline]
fn digits(count: usize) -> usize {
    match count {
        0..10 => 1,
        10..100 => 2,
        _ => count.ilog10() as usize + 1,
    }
}

/// Bytes of CR LF.
const LINE_END_BYTES: usize = 2;

/// A request of which a large argument is arriving.
#[derive(Clone, Debug)]
pub struct Begun<'a> {
    /// The arguments before that one.
    pub args: Args<'a>,
    /// How many the request has in all.
    pub total: usize,
    /// The length of the one that is arriving.
    pub body: usize,
    /// Where its body begins, in the input.
    pub at: usize,
    /// The way to the request's end, from there on.
    pub tail: RequestTail,
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

    /// Memory that is held for the request that is not complete yet.
    pub fn held_bytes(&self) -> usize {
        self.spans.held_bytes() + self.text.capacity()
    }

    /// Overwrites what is left of the text of inline requests. Not while a request is in use.
    pub fn wipe(&mut self) {
        crate::wipe_all(&mut self.text);
    }

    /// Finds the request at the start of `input`.
    ///
    /// While the answer is [`Step::Incomplete`], the next call's input must start with the same bytes. After any other
    /// answer it starts `consumed` bytes later. Called with no input between two requests, the decoder gives back the
    /// memory that an unusual request has left behind.
    #[inline]
    pub fn decode<'a>(&'a mut self, input: &'a [u8], limits: &RequestLimits) -> Result<Step<'a>, RequestError> {
        self.decode_within(input, &RequestBounds::from(limits))
    }

    /// [`Self::decode`] with bounds computed in advance.
    #[inline(always)]
    pub fn decode_within<'a>(&'a mut self, input: &'a [u8], bounds: &RequestBounds) -> Result<Step<'a>, RequestError> {
        let is_whole = self.phase == Phase::Idle && self.quick_start(input, bounds);
        let (bytes, consumed, raw) = if is_whole {
            (input, self.at, input.get(..self.at))
        } else {
            match self.advance(input, bounds)? {
                Found::Incomplete => return Ok(Step::Incomplete),
                Found::Empty { consumed } => return Ok(Step::Empty { consumed }),
                Found::Multibulk { consumed } => (input, consumed, input.get(..consumed).filter(|_| !self.is_odd)),
                Found::Inline { consumed } => (self.text.as_slice(), consumed, None),
            }
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

    /// The request in progress, if an argument of at least `body_min` bytes is arriving and all before is canonical: from
    /// there on it may be passed on as it comes. `input` is what was given to [`Self::decode`] last.
    pub fn begun<'a>(&'a self, input: &'a [u8], body_min: usize) -> Option<Begun<'a>> {
        if self.phase != Phase::Body || self.body < body_min || self.is_odd {
            return None;
        }
        let args = Args::new(input, self.spans.as_slice());
        let tail = RequestTail::begin(self.at, self.body, self.remaining.saturating_sub(1));
        Some(Begun { args, total: args.len() + self.remaining, body: self.body, at: self.at, tail })
    }

    /// Whether the decoder is between two requests.
    pub fn is_idle(&self) -> bool {
        self.phase == Phase::Idle
    }

    /// Starts on a request that has a short head and reads its first arguments; says whether those are all. Otherwise the state
    /// is that of a request in progress, or still idle.
    #[inline(always)]
    fn quick_start(&mut self, input: &[u8], bounds: &RequestBounds) -> bool {
        let Some((elements @ 1.., width)) = short_head(b'*', input) else { return false };
        if elements > bounds.elements_max {
            return false;
        }
        let reach = within(input, bounds);
        let mut at = width;
        let mut found = 0;
        let Some(places) = self.spans.places(elements) else {
            return self.quick_start_on_many(elements, width, reach, bounds);
        };
        for place in places {
            let Some(span) = quick_argument(reach, at, bounds) else { break };
            *place = span;
            at = span.end as usize + LINE_END_BYTES;
            found += 1;
        }
        self.spans.keep_first(found);
        self.at = at;
        self.searched = 0;
        if found < elements {
            self.is_odd = false;
            self.remaining = elements - found;
            self.phase = Phase::Head;
        }
        found == elements
    }

    /// [`Self::quick_start`] for a request with more arguments than the span list has inline places.
    #[inline(never)]
    fn quick_start_on_many(&mut self, elements: usize, width: usize, reach: &[u8], bounds: &RequestBounds) -> bool {
        self.is_odd = false;
        self.begin(elements, width);
        self.quick_arguments(reach, bounds)
    }

    /// Reads arguments that are there as a whole and have short heads, until one is not; says whether those are all.
    #[inline(always)]
    fn quick_arguments(&mut self, reach: &[u8], bounds: &RequestBounds) -> bool {
        let mut at = self.at;
        let mut remaining = self.remaining;
        while remaining > 0 {
            let Some(span) = quick_argument(reach, at, bounds) else { break };
            self.spans.push(span);
            at = span.end as usize + LINE_END_BYTES;
            remaining -= 1;
        }
        self.at = at;
        self.remaining = remaining;
        if remaining == 0 {
            self.phase = Phase::Idle;
        }
        remaining == 0
    }

    /// Goes on from wherever the last call stopped, as far as the input allows.
    #[inline(never)]
    fn advance(&mut self, input: &[u8], bounds: &RequestBounds) -> Result<Found, RequestError> {
        match self.phase {
            Phase::Idle | Phase::Line => match input.first() {
                Some(b'*') => self.multibulk(input, bounds),
                Some(_) => self.inline(input, &bounds.limits),
                None => Ok(self.nothing()),
            },
            Phase::Head | Phase::Body => self.arguments(input, bounds),
        }
    }

    /// No input: nothing to do but to let go of memory.
    fn nothing(&mut self) -> Found {
        self.spans.trim();
        if self.text.capacity() > TEXT_KEPT {
            self.text = Vec::new();
        }
        Found::Incomplete
    }

    /// Reads the head of a multibulk request, then its arguments.
    fn multibulk(&mut self, input: &[u8], bounds: &RequestBounds) -> Result<Found, RequestError> {
        let limits = &bounds.limits;
        self.is_odd = false;
        let (value, width) = match self.head(input, limits, RequestError::TooBigMultibulkCount)? {
            Head::Whole { value, width } => (value, width),
            Head::Invalid => return Err(RequestError::InvalidMultibulkLength),
            Head::Incomplete => {
                self.phase = Phase::Line;
                return Ok(Found::Incomplete);
            }
        };
        if value <= 0 {
            self.reset();
            return Ok(Found::Empty { consumed: width });
        }
        let elements = usize::try_from(value).unwrap_or(usize::MAX);
        if elements > limits.elements_max {
            return Err(RequestError::InvalidMultibulkLength);
        }
        if elements > limits.unauth_elements_max {
            return Err(RequestError::UnauthenticatedMultibulkLength);
        }
        self.begin(elements, width);
        self.arguments(input, bounds)
    }

    /// Begins a request of so many arguments behind its head.
    #[inline(always)]
    fn begin(&mut self, elements: usize, width: usize) {
        self.spans.clear();
        self.remaining = elements;
        self.at = width;
        self.searched = 0;
        self.phase = Phase::Head;
    }

    /// Reads arguments from where the last call stopped.
    fn arguments(&mut self, input: &[u8], bounds: &RequestBounds) -> Result<Found, RequestError> {
        let limits = &bounds.limits;
        loop {
            if self.phase == Phase::Head {
                let before = self.at;
                let is_whole = self.quick_arguments(within(input, bounds), bounds);
                if self.at > before {
                    self.searched = 0;
                }
                if is_whole {
                    return Ok(Found::Multibulk { consumed: self.at });
                }
                let Some((body, width)) = self.bulk_head(input.get(self.at..).unwrap_or_default(), limits)? else {
                    return Ok(Found::Incomplete);
                };
                self.at += width;
                self.body = body;
                self.searched = 0;
                self.phase = Phase::Body;
            }
            let end = self.at + self.body;
            match input.get(end..end + 2) {
                Some(b"\r\n") => {}
                Some(_) if limits.strictness == Strictness::Lenient => self.is_odd = true,
                Some(_) => return Err(RequestError::UnterminatedBulk),
                None => return Ok(Found::Incomplete),
            }
            self.spans.push(Span { start: self.at as u32, end: end as u32 });
            self.at = end + 2;
            self.remaining = self.remaining.saturating_sub(1);
            self.phase = Phase::Head;
        }
    }

    /// Reads the head of an argument: the body's length, within the limits, and the head's width.
    fn bulk_head(&mut self, rest: &[u8], limits: &RequestLimits) -> Result<Option<(usize, usize)>, RequestError> {
        let Some((body, width)) = self.any_bulk_head(rest, limits)? else { return Ok(None) };
        if body > limits.bulk_bytes_max {
            return Err(RequestError::InvalidBulkLength);
        }
        if body > limits.unauth_bulk_bytes_max {
            return Err(RequestError::UnauthenticatedBulkLength);
        }
        if self.at + width + 2 > limits.request_bytes_in_force().saturating_sub(body) {
            return Err(RequestError::TooBigRequest);
        }
        Ok(Some((body, width)))
    }

    /// [`Self::bulk_head`] before the limits.
    fn any_bulk_head(&mut self, rest: &[u8], limits: &RequestLimits) -> Result<Option<(usize, usize)>, RequestError> {
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

    /// Back between two requests.
    fn reset(&mut self) {
        self.phase = Phase::Idle;
        self.searched = 0;
    }
}

/// The input up to the longest request that is permitted.
#[inline(always)]
fn within<'a>(input: &'a [u8], bounds: &RequestBounds) -> &'a [u8] {
    input.get(..bounds.request_bytes_max).unwrap_or(input)
}

/// The argument at `at`, if it is complete and its head is short.
#[inline(always)]
fn quick_argument(reach: &[u8], at: usize, bounds: &RequestBounds) -> Option<Span> {
    let rest = reach.get(at..)?;
    let (body, width) = short_head(b'$', rest)?;
    let behind = rest.get(width + body..)?;
    if body > bounds.bulk_bytes_max || behind.first_chunk() != Some(b"\r\n") {
        return None;
    }
    let start = at + width;
    Some(Span { start: start as u32, end: (start + body) as u32 })
}

/// Whether a command's name is a word of HTTP: `POST` or `Host:` in any case, as far as a NUL.
#[inline(always)]
fn is_cross_protocol(name: &[u8]) -> bool {
    // The mask matches `P`, `p`, `H` and `h`, and only `X`, `x` and two signs besides.
    name.first().is_some_and(|first| first & 0xc7 == 0x40) && is_http_word(name)
}

#[inline(never)]
fn is_http_word(name: &[u8]) -> bool {
    let word = name.split(|&byte| byte == 0).next().unwrap_or_default();
    word.eq_ignore_ascii_case(b"post") || word.eq_ignore_ascii_case(b"host:")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: RequestLimits = RequestLimits::authenticated(Strictness::Lenient);

    #[test]
    fn what_is_declared_costs_nothing() {
        for input in ["*2147483647\r\n", "*1048577\r\n$536870912\r\n", "*8\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n"] {
            let mut decoder = RequestDecoder::new();
            assert!(matches!(decoder.decode(input.as_bytes(), &LIMITS), Ok(Step::Incomplete)));
            assert_eq!((decoder.spans.heap_bytes(), decoder.text.capacity()), (0, 0), "{input:?}");
        }
    }

    #[test]
    fn an_idle_decoder_is_small() {
        assert!(size_of::<RequestDecoder>() <= 192, "{}", size_of::<RequestDecoder>());
        let mut decoder = RequestDecoder::new();
        let words = vec![b"word".as_slice(); 10_000];
        let mut multibulk = Vec::new();
        crate::encode_request(&mut multibulk, words.iter().copied());
        let line = [words.join(&b' '), b"\n".to_vec()].concat();
        for input in [multibulk, line] {
            assert!(matches!(decoder.decode(&input, &LIMITS), Ok(Step::Request(_))));
            assert!(decoder.spans.heap_bytes() >= 80_000);
            assert!(matches!(decoder.decode(b"", &LIMITS), Ok(Step::Incomplete)));
            assert_eq!((decoder.spans.heap_bytes(), decoder.text.capacity()), (0, 0));
        }
    }

    #[test]
    fn arguments_are_copied_as_they_would_be_written() {
        for words in [1, 2, 9, 10, 11, 99, 100, 101, 1_000] {
            let words: Vec<_> = (0..words).map(|length| vec![b'x'; length]).collect();
            let mut input = Vec::new();
            crate::encode_request(&mut input, words.iter().map(Vec::as_slice));
            let mut decoder = RequestDecoder::new();
            let Ok(Step::Request(request)) = decoder.decode(&input, &LIMITS) else { panic!("not a request") };
            assert!(request.raw.is_some());
            let made = Request::made(request.args);
            for (start, end) in [(0, 0), (0, 1), (0, words.len()), (1, words.len()), (words.len(), words.len())] {
                let [mut copied, mut written] = [Vec::new(), Vec::new()];
                request.copy_arguments(start, end, &mut copied);
                made.copy_arguments(start, end, &mut written);
                assert_eq!(copied, written, "{start} to {end} of {}", words.len());
            }
        }
    }
}
