//! A reply as a server writes it, for what joins several.

use crate::{Elements, Reply};
use respool_wire::ReplyKind;

fn line(out: &mut Vec<u8>, mark: u8, text: &[u8]) {
    out.push(mark);
    out.extend_from_slice(text);
    out.extend_from_slice(b"\r\n");
}

fn string(out: &mut Vec<u8>, mark: u8, text: &[u8]) {
    line(out, mark, text.len().to_string().as_bytes());
    out.extend_from_slice(text);
    out.extend_from_slice(b"\r\n");
}

fn aggregate(out: &mut Vec<u8>, mark: u8, count: u64, elements: &Elements) {
    line(out, mark, count.to_string().as_bytes());
    for element in elements.clone() {
        write(&element, out);
    }
}

/// Appends it. Returns its kind.
pub(super) fn write(reply: &Reply, out: &mut Vec<u8>) -> ReplyKind {
    match reply {
        Reply::Null => line(out, b'_', b""),
        Reply::Integer(number) => line(out, b':', number.to_string().as_bytes()),
        Reply::Boolean(is_true) => line(out, b'#', if *is_true { b"t" } else { b"f" }),
        Reply::Double(number) => line(out, b',', number.to_string().as_bytes()),
        Reply::Status(text) => line(out, b'+', text),
        Reply::BigNumber(digits) => line(out, b'(', digits),
        Reply::Bulk(text) => string(out, b'$', text),
        Reply::Error(error) => string(out, b'!', error.text().as_bytes()),
        Reply::Array(elements) => aggregate(out, b'*', elements.declared(), elements),
        Reply::Set(elements) => aggregate(out, b'~', elements.declared(), elements),
        Reply::Map(elements) => aggregate(out, b'%', elements.declared() / 2, elements),
    }
    match reply {
        Reply::Null => ReplyKind::Null,
        Reply::Integer(_) => ReplyKind::Integer,
        Reply::Boolean(_) => ReplyKind::Boolean,
        Reply::Double(_) => ReplyKind::Double,
        Reply::Status(_) => ReplyKind::Simple,
        Reply::BigNumber(_) => ReplyKind::BigNumber,
        Reply::Bulk(_) => ReplyKind::Bulk,
        Reply::Error(_) => ReplyKind::BlobError,
        Reply::Array(_) => ReplyKind::Array,
        Reply::Set(_) => ReplyKind::Set,
        Reply::Map(_) => ReplyKind::Map,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_written_as_it_was_read() {
        for bytes in [
            &b"_\r\n"[..],
            b":-7\r\n",
            b"#t\r\n",
            b",1.5\r\n",
            b"+OK\r\n",
            b"(123456789012345678901234567890\r\n",
            b"$3\r\na\r\n\r\n",
            b"!7\r\nERR bad\r\n",
            b"*3\r\n:1\r\n*1\r\n$1\r\na\r\n_\r\n",
            b"%1\r\n$1\r\na\r\n~1\r\n:1\r\n",
        ] {
            let mut out = Vec::new();
            write(&Reply::copied(bytes).unwrap(), &mut out);
            assert_eq!(out, bytes);
        }
    }
}
