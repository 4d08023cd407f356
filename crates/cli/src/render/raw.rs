//! The format for programs: what the leaves say, one below the other.

use respool_wire::{Part, ReplyKind, part};

use super::said;

/// Appends a reply; `between` stands between its elements.
pub(super) fn write(reply: &[u8], between: &[u8], out: &mut Vec<u8>) {
    match part(reply) {
        Some(Part::Leaf(kind, text)) => match kind {
            ReplyKind::NullBulk | ReplyKind::NullArray | ReplyKind::Null => {}
            ReplyKind::Boolean => out.extend_from_slice(if text == b"t" { b"(true)" } else { b"(false)" }),
            ReplyKind::Error | ReplyKind::BlobError => {
                out.extend_from_slice(text);
                out.push(b'\n');
            }
            _ => out.extend_from_slice(said(kind, text)),
        },
        Some(Part::Aggregate(mut walk)) => {
            let is_map = walk.kind() == ReplyKind::Map;
            let mut is_first = true;
            while let Some(element) = walk.next() {
                if !std::mem::take(&mut is_first) {
                    out.extend_from_slice(between);
                }
                write(element, between, out);
                if is_map && let Some(value) = walk.next() {
                    out.push(b' ');
                    write(value, between, out);
                }
            }
        }
        None => {}
    }
}
