//! The reply scanner: where does one reply end?
//!
//! That is all a forwarder has to know, so no tree is built and no byte is kept: everything between two calls is in the
//! scanner's few words, and the pieces of a reply may lie anywhere. What it accepts is well-formed to the last byte (lines
//! hold no lone CR or LF, lengths are canonical, strings end in CR LF, numbers are numbers), so it can be passed on unchanged.
//!
//! ```text
//!            + - , # _ (                       any byte of the line
//!   Type ----------------> Line --------- CR ---> LineEnd -- LF ---+
//!    ^  \   $ ! = : * % ~ > |                                      |
//!    |   +---------------> Number ------- CR ---> NumberEnd -- LF -+--> one element done, or
//!    |                                                             |    an aggregate opens
//!    |                       +-- Format (=) ---+   $ ! =           |
//!    |                       |                 v                   v
//!    |                       +-------------> Body --> BodyEnd --> done: close full aggregates;
//!    +---------------------------------------------------------- still inside? next element
//! ```

use crate::limits::ReplyLimits;
use crate::number::{NumberLine, number_line, short_head};
use crate::scalar::{Line, Number};
use crate::{Protocol, ReplyError};

/// What a reply is, whatever attribute stands before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReplyKind {
    /// `+`, a simple string.
    Simple,
    /// `-`, an error.
    Error,
    /// `:`, an integer.
    Integer,
    /// `$`, a bulk string.
    Bulk,
    /// `$-1`, the null of RESP2.
    NullBulk,
    /// `*-1`, the null array of RESP2.
    NullArray,
    /// `_`, the null of RESP3.
    Null,
    /// `*`, an array.
    Array,
    /// `%`, a map.
    Map,
    /// `~`, a set.
    Set,
    /// `>`, a push: no reply to anything.
    Push,
    /// `,`, a double.
    Double,
    /// `#`, a boolean.
    Boolean,
    /// `!`, an error of any bytes.
    BlobError,
    /// `=`, a string with a format.
    Verbatim,
    /// `(`, an integer of any size.
    BigNumber,
}

impl ReplyKind {
    /// Whether it is one of the two errors.
    pub const fn is_error(self) -> bool {
        matches!(self, Self::Error | Self::BlobError)
    }

    /// Whether it is one of the three nulls.
    pub const fn is_null(self) -> bool {
        matches!(self, Self::Null | Self::NullBulk | Self::NullArray)
    }

    /// Whether it has elements.
    pub const fn is_aggregate(self) -> bool {
        matches!(self, Self::Array | Self::Map | Self::Set | Self::Push)
    }
}

/// What [`ReplyScanner::scan`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scan {
    /// The reply ends in this input.
    Complete {
        /// Bytes that it takes from the start of this input.
        consumed: usize,
        /// What it is.
        kind: ReplyKind,
    },
    /// All of this input belongs to the reply, and more has to come.
    Partial,
}

/// Where in a reply the scanner is. See the drawing at the head of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Type,
    Number(Number),
    NumberEnd(Number),
    Line {
        line: Line,
        bytes: usize,
    },
    LineEnd,
    Format {
        at: u8,
        body: usize,
    },
    Body {
        left: usize,
    },
    BodyCr,
    BodyLf,
    Failed(ReplyError),
}

/// The open aggregates, innermost apart. No heap until five lie in each other.
#[derive(Clone, Debug, Default)]
struct Levels {
    depth: usize,
    inner: Level,
    few: [Level; 3],
    many: Vec<Level>,
}

/// An open aggregate.
#[derive(Clone, Copy, Debug, Default)]
struct Level {
    /// Elements still to come.
    left: u64,
    /// Whether it is an attribute, whose end is not the end of an element.
    is_attribute: bool,
}

impl Levels {
    fn open(&mut self, level: Level) {
        if let Some(outer) = self.depth.checked_sub(1) {
            match self.few.get_mut(outer) {
                Some(place) => *place = self.inner,
                None => self.many.push(self.inner),
            }
        }
        self.inner = level;
        self.depth += 1;
    }

    fn close(&mut self) {
        self.depth = self.depth.saturating_sub(1);
        if let Some(outer) = self.depth.checked_sub(1) {
            self.inner = match self.few.get(outer) {
                Some(level) => *level,
                None => self.many.pop().unwrap_or_default(),
            };
        }
    }
}

/// Finds the ends of the replies of one connection, one after another.
///
/// After an error it gives that error for ever: the connection is at no known boundary any more.
#[derive(Clone, Debug, Default)]
pub struct ReplyScanner {
    state: State,
    /// Whether the reply in progress has begun.
    is_midway: bool,
    /// Kind of the reply in progress, once its type byte was seen.
    kind: Option<ReplyKind>,
    /// Whether the last thing read was an attribute, which needs something to belong to.
    is_attributed: bool,
    /// Only what RESP2 has is accepted; see [`Self::expect`].
    is_resp2: bool,
    levels: Levels,
}

impl ReplyScanner {
    /// A scanner between two replies.
    pub fn new() -> Self {
        Self::default()
    }

    /// Which dialect is spoken on the connection from the next reply on; RESP3 until this is called. In RESP2, what only
    /// RESP3 has is refused: a client of RESP2 that it was passed on to could not tell where the reply ends. A push is told
    /// of all the same, so that it can be taken for what it is.
    pub fn expect(&mut self, protocol: Protocol) {
        self.is_resp2 = protocol == Protocol::Resp2;
    }

    /// Whether the scanner is between two replies.
    pub fn is_idle(&self) -> bool {
        !self.is_midway
    }

    /// Bytes that are still to come of the string that is arriving, as far as its head has said; 0 if none is.
    pub fn announced(&self) -> usize {
        match self.state {
            State::Body { left } => left,
            _ => 0,
        }
    }

    /// Looks for the end of the reply in progress in the next bytes of the connection, each of which is given once:
    /// after [`Scan::Partial`] those behind this input, after [`Scan::Complete`] those behind the reply.
    #[inline]
    pub fn scan(&mut self, input: &[u8], limits: &ReplyLimits) -> Result<Scan, ReplyError> {
        if self.is_idle()
            && let Some((consumed, kind)) = short_reply(input, limits)
        {
            return Ok(Scan::Complete { consumed, kind });
        }
        self.resume(input, limits)
    }

    /// [`Self::scan`] from wherever the last call stopped.
    fn resume(&mut self, input: &[u8], limits: &ReplyLimits) -> Result<Scan, ReplyError> {
        if self.is_idle()
            && let Some((consumed, kind)) = short_array(input, limits)
        {
            return Ok(Scan::Complete { consumed, kind });
        }
        self.is_midway |= !input.is_empty();
        match self.run(input, limits) {
            Ok(Some(rest)) => {
                self.is_midway = false;
                let kind = self.kind.take().unwrap_or(ReplyKind::Null);
                Ok(Scan::Complete { consumed: input.len() - rest, kind })
            }
            Ok(None) => Ok(Scan::Partial),
            Err(error) => {
                self.state = State::Failed(error);
                Err(error)
            }
        }
    }

    /// Consumes input until the reply ends (how much is left then) or the input does (`None`).
    fn run(&mut self, input: &[u8], limits: &ReplyLimits) -> Result<Option<usize>, ReplyError> {
        let mut rest = input;
        loop {
            let is_element_done = match self.state {
                State::Type => {
                    // For the reply as a whole it was tried by `scan`.
                    let short = if self.levels.depth > 0 { short_reply(rest, limits) } else { None };
                    if let Some((consumed, _)) = short {
                        rest = rest.get(consumed..).unwrap_or_default();
                        self.is_attributed = false;
                        true
                    } else {
                        let Some((&byte, tail)) = rest.split_first() else { return Ok(None) };
                        rest = tail;
                        self.begin(byte, &mut rest, limits)?
                    }
                }
                State::Number(number) => self.number(number, &mut rest)?,
                State::NumberEnd(number) => match rest.split_first() {
                    None => return Ok(None),
                    Some((b'\n', tail)) => {
                        rest = tail;
                        self.number_done(number, limits)?
                    }
                    Some(_) => return Err(number.error()),
                },
                State::Line { line, bytes } => {
                    self.line(line, bytes, &mut rest, limits)?;
                    false
                }
                State::LineEnd => match rest.split_first() {
                    None => return Ok(None),
                    Some((b'\n', tail)) => {
                        rest = tail;
                        true
                    }
                    Some(_) => return Err(ReplyError::BareNewline),
                },
                State::Format { at, body } => {
                    let Some((&byte, tail)) = rest.split_first() else { return Ok(None) };
                    rest = tail;
                    self.state = match at {
                        0..=2 => State::Format { at: at + 1, body },
                        _ if byte == b':' => State::Body { left: body },
                        _ => return Err(ReplyError::InvalidVerbatim),
                    };
                    false
                }
                State::Body { left } => match rest.get(left..) {
                    None => {
                        self.state = State::Body { left: left - rest.len() };
                        return Ok(None);
                    }
                    Some(tail) => {
                        rest = tail;
                        self.state = State::BodyCr;
                        false
                    }
                },
                State::BodyCr => match rest.split_first() {
                    None => return Ok(None),
                    Some((b'\r', tail)) => {
                        rest = tail;
                        self.state = State::BodyLf;
                        false
                    }
                    Some(_) => return Err(ReplyError::UnterminatedBulk),
                },
                State::BodyLf => match rest.split_first() {
                    None => return Ok(None),
                    Some((b'\n', tail)) => {
                        rest = tail;
                        true
                    }
                    Some(_) => return Err(ReplyError::UnterminatedBulk),
                },
                State::Failed(error) => return Err(error),
            };
            if is_element_done {
                self.state = State::Type;
                if self.element_done() {
                    return Ok(Some(rest.len()));
                }
            } else if rest.is_empty() {
                return Ok(None);
            }
        }
    }

    /// Begins an element with its type byte; says whether it is done already.
    fn begin(&mut self, byte: u8, rest: &mut &[u8], limits: &ReplyLimits) -> Result<bool, ReplyError> {
        if self.is_resp2 && self.is_foreign(byte) {
            return Err(ReplyError::OtherDialect(byte));
        }
        if let Some((line, kind)) = Line::of(byte) {
            self.is(kind);
            self.state = State::Line { line, bytes: 0 };
            return Ok(false);
        }
        if !matches!(byte, b'$' | b'*' | b':' | b'%' | b'~' | b'>' | b'!' | b'=' | b'|') {
            return Err(match byte {
                b';' | b'.' => ReplyError::Streamed(byte),
                _ => ReplyError::UnknownType(byte),
            });
        }
        if byte == b'>' && self.levels.depth > 0 {
            return Err(ReplyError::NestedPush);
        }
        if byte == b'|' && self.is_attributed {
            return Err(ReplyError::ChainedAttribute);
        }
        // Almost every head is whole.
        if let NumberLine::Whole { value, width } = number_line(rest) {
            *rest = rest.get(width..).unwrap_or_default();
            return self.length_done(byte, value, limits);
        }
        self.state = State::Number(Number::new(byte));
        Ok(false)
    }

    /// Whether an element of this type is RESP3's alone, and no push.
    fn is_foreign(&self, byte: u8) -> bool {
        match byte {
            b'%' | b'~' | b'|' | b',' | b'#' | b'_' | b'(' | b'!' | b'=' => true,
            b'>' => self.levels.depth > 0,
            _ => false,
        }
    }

    /// Reads digits as far as the input or the number goes.
    fn number(&mut self, mut number: Number, rest: &mut &[u8]) -> Result<bool, ReplyError> {
        while let Some((&byte, tail)) = rest.split_first() {
            *rest = tail;
            if byte == b'\r' {
                if !number.is_whole() {
                    return Err(number.error());
                }
                self.state = State::NumberEnd(number);
                return Ok(false);
            }
            number = number.after(byte)?;
        }
        self.state = State::Number(number);
        Ok(false)
    }

    /// A number and its CR LF were read byte by byte.
    fn number_done(&mut self, number: Number, limits: &ReplyLimits) -> Result<bool, ReplyError> {
        self.length_done(number.of, number.value(), limits)
    }

    /// Acts on the number behind the type byte `of`; says whether the element is done.
    fn length_done(&mut self, of: u8, value: i64, limits: &ReplyLimits) -> Result<bool, ReplyError> {
        let kind = match of {
            b':' => ReplyKind::Integer,
            b'$' if value == -1 => ReplyKind::NullBulk,
            b'*' if value == -1 => ReplyKind::NullArray,
            _ => return self.open(of, u64::try_from(value).map_err(|_| ReplyError::InvalidLength)?, limits),
        };
        self.is(kind);
        Ok(true)
    }

    /// Opens a string or an aggregate; says whether the element is done.
    fn open(&mut self, of: u8, length: u64, limits: &ReplyLimits) -> Result<bool, ReplyError> {
        let (kind, each) = match of {
            b'$' | b'!' | b'=' => return self.open_string(of, length, limits),
            b'|' => (None, 2),
            b'%' => (Some(ReplyKind::Map), 2),
            b'~' => (Some(ReplyKind::Set), 1),
            b'>' => (Some(ReplyKind::Push), 1),
            _ => (Some(ReplyKind::Array), 1),
        };
        if length > limits.elements_max as u64 {
            return Err(ReplyError::TooManyElements);
        }
        if self.levels.depth >= limits.depth_max {
            return Err(ReplyError::TooDeep);
        }
        match kind {
            Some(kind) => self.is(kind),
            None => self.is_attributed = true,
        }
        self.state = State::Type;
        if length == 0 {
            return Ok(kind.is_some());
        }
        // Inside of an attribute its first key is no longer "behind an attribute".
        self.is_attributed = false;
        self.levels.open(Level { left: length.saturating_mul(each), is_attribute: kind.is_none() });
        Ok(false)
    }

    fn open_string(&mut self, of: u8, length: u64, limits: &ReplyLimits) -> Result<bool, ReplyError> {
        let body = usize::try_from(length).unwrap_or(usize::MAX);
        if body > limits.bulk_bytes_max {
            return Err(ReplyError::BulkTooLong);
        }
        let (kind, state) = match of {
            b'$' => (ReplyKind::Bulk, State::Body { left: body }),
            b'!' => (ReplyKind::BlobError, State::Body { left: body }),
            _ => {
                let body = body.checked_sub(4).ok_or(ReplyError::InvalidVerbatim)?;
                (ReplyKind::Verbatim, State::Format { at: 0, body })
            }
        };
        self.is(kind);
        self.state = state;
        Ok(false)
    }

    /// Reads a line as far as the input or the line goes.
    fn line(&mut self, mut line: Line, bytes: usize, rest: &mut &[u8], limits: &ReplyLimits) -> Result<(), ReplyError> {
        let end = rest.iter().position(|&byte| matches!(byte, b'\r' | b'\n'));
        let (text, tail) = rest.split_at(end.unwrap_or(rest.len()));
        let allowed = limits.line_bytes_max.saturating_sub(bytes);
        if line != Line::Text {
            for &byte in text.iter().take(allowed) {
                line = line.after(byte).ok_or(ReplyError::InvalidScalar)?;
            }
        }
        if text.len() > allowed {
            return Err(ReplyError::LineTooLong);
        }
        let bytes = bytes + text.len();
        self.state = match tail {
            [] => State::Line { line, bytes },
            [b'\r', ..] if line.is_whole() => State::LineEnd,
            [b'\r', ..] => return Err(ReplyError::InvalidScalar),
            _ => return Err(ReplyError::BareNewline),
        };
        *rest = tail.get(1..).unwrap_or_default();
        Ok(())
    }

    /// Notes the kind of an element, which matters for the outermost.
    fn is(&mut self, kind: ReplyKind) {
        self.is_attributed = false;
        if self.levels.depth == 0 {
            self.kind = Some(kind);
        }
    }

    /// Counts a whole element and closes the aggregates that it fills; says whether the reply is done.
    fn element_done(&mut self) -> bool {
        loop {
            if self.levels.depth == 0 {
                return true;
            }
            self.levels.inner.left = self.levels.inner.left.saturating_sub(1);
            if self.levels.inner.left > 0 {
                return false;
            }
            let is_attribute = self.levels.inner.is_attribute;
            self.levels.close();
            if is_attribute {
                self.is_attributed = true;
                return false;
            }
        }
    }
}

/// Finds the end of a reply that is whole and one of those that are sent all day: its length and kind. `None` says nothing.
#[inline(always)]
pub(crate) fn short_reply(input: &[u8], limits: &ReplyLimits) -> Option<(usize, ReplyKind)> {
    if let Some((body, width)) = short_head(b'$', input) {
        let end = width + body;
        let is_whole = body <= limits.bulk_bytes_max && input.get(end..end + 2) == Some(b"\r\n");
        return is_whole.then_some((end + 2, ReplyKind::Bulk));
    }
    if let Some((_, width)) = short_head(b':', input) {
        return Some((width, ReplyKind::Integer));
    }
    match *input {
        [b'+', b'O', b'K', b'\r', b'\n', ..] => Some((5, ReplyKind::Simple)),
        [b':', b'0'..=b'9', b'\r', b'\n', ..] => Some((4, ReplyKind::Integer)),
        [b'$', b'-', b'1', b'\r', b'\n', ..] => Some((5, ReplyKind::NullBulk)),
        _ => None,
    }
}

/// Elements of the longest array that [`short_array`] looks at: a message that came by a pattern has four.
const SHORT_ELEMENTS: usize = 4;

/// The same for an array or push of a few such replies, as messages of channels are: a third of the instructions of the states
/// (`message` in `benches/wire.rs`). Where it says nothing the heads of those few are read again.
fn short_array(input: &[u8], limits: &ReplyLimits) -> Option<(usize, ReplyKind)> {
    let (kind, head) = match input.first()? {
        b'*' => (ReplyKind::Array, short_head(b'*', input)?),
        b'>' => (ReplyKind::Push, short_head(b'>', input)?),
        _ => return None,
    };
    let (elements, mut end) = head;
    if !(1..=SHORT_ELEMENTS).contains(&elements) || elements > limits.elements_max || limits.depth_max == 0 {
        return None;
    }
    for _ in 0..elements {
        end += short_reply(input.get(end..)?, limits)?.0;
    }
    Some((end, kind))
}
