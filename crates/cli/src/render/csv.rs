//! Values separated by commas. CSV knows no nesting: all leaves of a reply are one line.

use respool_wire::{Part, ReplyKind, part};

use super::{quote, said};

/// Appends a reply.
pub(super) fn write(reply: &[u8], out: &mut Vec<u8>) {
    match part(reply) {
        Some(Part::Leaf(kind, text)) => match kind {
            ReplyKind::NullBulk | ReplyKind::NullArray | ReplyKind::Null => out.extend_from_slice(b"NULL"),
            ReplyKind::Boolean => out.extend_from_slice(if text == b"t" { b"true" } else { b"false" }),
            ReplyKind::Integer | ReplyKind::Double | ReplyKind::BigNumber => out.extend_from_slice(text),
            ReplyKind::Error | ReplyKind::BlobError => {
                out.extend_from_slice(b"ERROR,");
                quote(text, out);
            }
            _ => quote(said(kind, text), out),
        },
        Some(Part::Aggregate(walk)) => {
            for (place, element) in walk.enumerate() {
                if place > 0 {
                    out.push(b',');
                }
                write(element, out);
            }
        }
        None => {}
    }
}
