//! JSON. Errors, which JSON does not know, are written as redis-cli writes them: `error:` and a string.

use std::io::Write;

use respool_wire::{Part, ReplyKind, part};

use super::{quote, said};

/// Appends a reply. `is_quoted`: strings are ASCII, written as in the format for people.
pub(super) fn write(reply: &[u8], is_quoted: bool, out: &mut Vec<u8>) {
    match part(reply) {
        Some(Part::Leaf(kind, text)) => match kind {
            ReplyKind::NullBulk | ReplyKind::NullArray | ReplyKind::Null => out.extend_from_slice(b"null"),
            ReplyKind::Boolean => out.extend_from_slice(if text == b"t" { b"true" } else { b"false" }),
            ReplyKind::Integer | ReplyKind::Double | ReplyKind::BigNumber => out.extend_from_slice(text),
            ReplyKind::Error | ReplyKind::BlobError => {
                out.extend_from_slice(b"error:");
                string(text, is_quoted, out);
            }
            _ => string(said(kind, text), is_quoted, out),
        },
        Some(Part::Aggregate(walk)) if walk.kind() == ReplyKind::Map => {
            out.push(b'{');
            for (place, element) in walk.enumerate() {
                match place {
                    0 => {}
                    _ if place % 2 == 0 => out.push(b','),
                    _ => out.push(b':'),
                }
                if place % 2 == 0 { key(element, is_quoted, out) } else { write(element, is_quoted, out) }
            }
            out.push(b'}');
        }
        Some(Part::Aggregate(walk)) => {
            out.push(b'[');
            for (place, element) in walk.enumerate() {
                if place > 0 {
                    out.push(b',');
                }
                write(element, is_quoted, out);
            }
            out.push(b']');
        }
        None => {}
    }
}

/// A key of a map has to be a string: the JSON text of what is none becomes one.
fn key(element: &[u8], is_quoted: bool, out: &mut Vec<u8>) {
    let mut text = Vec::new();
    write(element, is_quoted, &mut text);
    if text.first() == Some(&b'"') {
        return out.extend_from_slice(&text);
    }
    string(&text, false, out);
}

fn string(bytes: &[u8], is_quoted: bool, out: &mut Vec<u8>) {
    if is_quoted {
        let mut quoted = Vec::with_capacity(bytes.len() + 2);
        quote(bytes, &mut quoted);
        return escape(&quoted[1..quoted.len() - 1], out);
    }
    escape(bytes, out);
}

fn escape(bytes: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for &byte in bytes {
        match byte {
            b'\\' | b'"' => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            8 => out.extend_from_slice(b"\\b"),
            12 => out.extend_from_slice(b"\\f"),
            // Writing to memory does not fail.
            0..=0x1f => drop(write!(out, "\\u{byte:04x}")),
            _ => out.push(byte),
        }
    }
    out.push(b'"');
}
