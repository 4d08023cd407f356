//! Bytes between double quotes, printable whatever they are.

use std::io::Write;

/// Appends `bytes` as redis-cli quotes them, which [`respool_wire::split_words`] reads back.
pub fn quote(bytes: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for &byte in bytes {
        match byte {
            b'\\' | b'"' => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            7 => out.extend_from_slice(b"\\a"),
            8 => out.extend_from_slice(b"\\b"),
            b' '..=b'~' => out.push(byte),
            // Writing to memory does not fail.
            _ => drop(write!(out, "\\x{byte:02x}")),
        }
    }
    out.push(b'"');
}
