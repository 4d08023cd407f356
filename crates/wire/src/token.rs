//! Complete replies, token by token: the base of everything that reads a reply instead of passing it on.

use crate::number::{NumberLine, number_line, short_head};
use crate::reply::short_reply;
use crate::{ReplyError, ReplyKind, ReplyLimits, ReplyScanner, Scan};

/// One step through a reply in the order of its bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Token<'a> {
    /// An aggregate begins: this many elements follow (two for each pair of a map).
    Open { kind: ReplyKind, elements: u64 },
    /// An attribute begins: this many elements follow, which are none of the reply's.
    Attribute { elements: u64 },
    /// An element without elements. `text` is what it says, `raw` how it is written.
    Leaf { kind: ReplyKind, text: &'a [u8], raw: &'a [u8] },
}

/// Wants `reply` to be exactly one well-formed reply.
pub(crate) fn check_complete(reply: &[u8]) -> Result<ReplyKind, ReplyError> {
    match ReplyScanner::new().scan(reply, &ReplyLimits::ACCEPTED)? {
        Scan::Complete { consumed, kind } if consumed == reply.len() => Ok(kind),
        _ => Err(ReplyError::Incomplete),
    }
}

/// The element at the start of `bytes` with whatever attribute it has, and what follows it.
pub(crate) fn split_element(bytes: &[u8]) -> Result<(&[u8], &[u8]), ReplyError> {
    if let Some((length, _)) = short_reply(bytes, &ReplyLimits::ACCEPTED) {
        return bytes.split_at_checked(length).ok_or(ReplyError::Incomplete);
    }
    match ReplyScanner::new().scan(bytes, &ReplyLimits::ACCEPTED)? {
        Scan::Complete { consumed, .. } => bytes.split_at_checked(consumed).ok_or(ReplyError::Incomplete),
        Scan::Partial => Err(ReplyError::Incomplete),
    }
}

/// What follows the first `elements` elements of `bytes`.
pub(crate) fn skip(bytes: &[u8], elements: u64) -> Result<&[u8], ReplyError> {
    let mut rest = bytes;
    for _ in 0..elements {
        rest = split_element(rest)?.1;
    }
    Ok(rest)
}

/// The token at the start of `bytes` and what follows it. Sound for the bytes that [`check_complete`] has accepted; others
/// give an error or tokens without meaning.
#[inline]
pub(crate) fn token(bytes: &[u8]) -> Result<(Token<'_>, &[u8]), ReplyError> {
    // Nearly every token there is.
    if let Some((length, width)) = short_head(b'$', bytes) {
        return leaf(ReplyKind::Bulk, bytes, width, length);
    }
    any_token(bytes)
}

fn any_token(bytes: &[u8]) -> Result<(Token<'_>, &[u8]), ReplyError> {
    let (&of, tail) = bytes.split_first().ok_or(ReplyError::Incomplete)?;
    let line_kind = match of {
        b'+' => Some(ReplyKind::Simple),
        b'-' => Some(ReplyKind::Error),
        b':' => Some(ReplyKind::Integer),
        b'_' => Some(ReplyKind::Null),
        b'#' => Some(ReplyKind::Boolean),
        b',' => Some(ReplyKind::Double),
        b'(' => Some(ReplyKind::BigNumber),
        _ => None,
    };
    if let Some(kind) = line_kind {
        let end = tail.iter().position(|&byte| byte == b'\r').ok_or(ReplyError::Incomplete)?;
        return leaf(kind, bytes, 1, end);
    }
    let NumberLine::Whole { value, width } = number_line(tail) else { return Err(ReplyError::InvalidLength) };
    let Ok(count) = u64::try_from(value) else {
        let kind = if of == b'*' { ReplyKind::NullArray } else { ReplyKind::NullBulk };
        return leaf(kind, bytes, 1, width - 2);
    };
    let (kind, elements) = match of {
        b'$' => return leaf(ReplyKind::Bulk, bytes, 1 + width, value as usize),
        b'!' => return leaf(ReplyKind::BlobError, bytes, 1 + width, value as usize),
        b'=' => return leaf(ReplyKind::Verbatim, bytes, 1 + width, value as usize),
        b'*' => (ReplyKind::Array, count),
        b'~' => (ReplyKind::Set, count),
        b'>' => (ReplyKind::Push, count),
        b'%' => (ReplyKind::Map, count.saturating_mul(2)),
        b'|' => {
            let rest = tail.get(width..).unwrap_or_default();
            return Ok((Token::Attribute { elements: count.saturating_mul(2) }, rest));
        }
        other => return Err(ReplyError::UnknownType(other)),
    };
    Ok((Token::Open { kind, elements }, tail.get(width..).unwrap_or_default()))
}

/// A leaf whose text of `length` bytes starts at `start` and is followed by CR LF.
#[inline]
fn leaf(kind: ReplyKind, bytes: &[u8], start: usize, length: usize) -> Result<(Token<'_>, &[u8]), ReplyError> {
    let end = start.saturating_add(length);
    let text = bytes.get(start..end).ok_or(ReplyError::Incomplete)?;
    let (raw, rest) = bytes.split_at_checked(end.saturating_add(2)).ok_or(ReplyError::Incomplete)?;
    Ok((Token::Leaf { kind, text, raw }, rest))
}
