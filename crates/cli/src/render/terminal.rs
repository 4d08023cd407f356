//! The format for people: types in brackets, elements with their places, what is nested moved in.

use std::io::Write;

use respool_wire::{Elements, Part, ReplyKind, part};

use super::{quote, said};

/// Appends a reply, each line of which but the first begins with `prefix`.
pub(super) fn write(reply: &[u8], prefix: &mut Vec<u8>, out: &mut Vec<u8>) {
    match part(reply) {
        Some(Part::Leaf(kind, text)) => {
            leaf(kind, said(kind, text), out);
            out.push(b'\n');
        }
        Some(Part::Aggregate(walk)) => aggregate(walk, prefix, out),
        None => {}
    }
}

fn leaf(kind: ReplyKind, text: &[u8], out: &mut Vec<u8>) {
    let head: &[u8] = match kind {
        ReplyKind::Error | ReplyKind::BlobError => b"(error) ",
        ReplyKind::Integer => b"(integer) ",
        ReplyKind::Double => b"(double) ",
        ReplyKind::BigNumber => b"(big number) ",
        ReplyKind::NullBulk | ReplyKind::NullArray | ReplyKind::Null => return out.extend_from_slice(b"(nil)"),
        ReplyKind::Boolean => return out.extend_from_slice(if text == b"t" { b"(true)" } else { b"(false)" }),
        ReplyKind::Bulk => return quote(text, out),
        _ => b"",
    };
    out.extend_from_slice(head);
    out.extend_from_slice(text);
}

fn aggregate(mut walk: Elements<'_>, prefix: &mut Vec<u8>, out: &mut Vec<u8>) {
    let (kind, declared) = (walk.kind(), walk.declared());
    if declared == 0 {
        let empty: &[u8] = match kind {
            ReplyKind::Map => b"(empty hash)\n",
            ReplyKind::Set => b"(empty set)\n",
            ReplyKind::Push => b"(empty push)\n",
            _ => b"(empty array)\n",
        };
        return out.extend_from_slice(empty);
    }
    let (places, sign) = match kind {
        ReplyKind::Map => (declared / 2, '#'),
        ReplyKind::Set => (declared, '~'),
        _ => (declared, ')'),
    };
    let width = places.to_string().len();
    let outer = prefix.len();
    let mut place = 0_u64;
    while let Some(element) = walk.next() {
        place += 1;
        if place > 1 {
            out.extend_from_slice(&prefix[..outer]);
        }
        // Writing to memory does not fail.
        let _ = write!(out, "{place:width$}{sign} ");
        prefix.resize(outer + width + 2, b' ');
        write(element, prefix, out);
        if kind == ReplyKind::Map
            && let Some(value) = walk.next()
        {
            out.pop();
            out.extend_from_slice(b" => ");
            if matches!(part(value), Some(Part::Aggregate(inner)) if inner.declared() > 0) {
                out.push(b'\n');
                out.extend_from_slice(prefix);
            }
            write(value, prefix, out);
        }
        prefix.truncate(outer);
    }
}
