//! RESP3 replies for RESP2 clients.
//!
//! The wire types are changed as Redis 7.0 writes the same reply to a RESP2 client. What it cannot know: some commands choose
//! another *shape* by dialect (`ZRANGE ... WITHSCORES` nests pairs in RESP3 and does not in RESP2), and a RESP3 null may have
//! been a null array. Where those must be right, the node is asked in RESP2.

use crate::token::{Token, check_complete, skip, token};
use crate::{Encoder, Protocol, ReplyError, ReplyKind};

/// Appends one complete reply, converted to RESP2. On an error nothing is appended.
///
/// Maps become arrays of keys and values in turn; sets and pushes arrays; `_` becomes `$-1`; booleans `:1` and `:0`; doubles, big
/// numbers and verbatim strings bulk strings of their text; blob errors error lines without newlines; attributes vanish.
///
/// ```
/// # use respool_wire::to_resp2;
/// let mut out = Vec::new();
/// to_resp2(b"%1\r\n$1\r\na\r\n,1.5\r\n", &mut out).unwrap();
/// assert_eq!(out, b"*2\r\n$1\r\na\r\n$3\r\n1.5\r\n");
/// ```
pub fn to_resp2(reply: &[u8], out: &mut Vec<u8>) -> Result<(), ReplyError> {
    check_complete(reply)?;
    let mut encoder = Encoder::new(out, Protocol::Resp2);
    let mut rest = reply;
    while !rest.is_empty() {
        let (token, tail) = token(rest)?;
        rest = match token {
            Token::Attribute { elements } => skip(tail, elements)?,
            Token::Open { elements, .. } => {
                encoder.array(usize::try_from(elements).unwrap_or(usize::MAX));
                tail
            }
            Token::Leaf { kind, text, raw } => {
                leaf(&mut encoder, kind, text, raw);
                tail
            }
        };
    }
    Ok(())
}

/// Appends one complete RESP2 reply as RESP3 has it where nothing is known of its shape: nulls become `_`, everything else is
/// left as it is. On an error nothing is appended.
pub fn to_resp3(reply: &[u8], out: &mut Vec<u8>) -> Result<(), ReplyError> {
    check_complete(reply)?;
    let mut encoder = Encoder::new(out, Protocol::Resp3);
    let mut rest = reply;
    while !rest.is_empty() {
        let (token, tail) = token(rest)?;
        match token {
            Token::Leaf { kind: ReplyKind::NullBulk | ReplyKind::NullArray, .. } => encoder.null(),
            // A head or a leaf as it was written.
            _ => encoder.raw(rest.get(..rest.len() - tail.len()).unwrap_or_default()),
        }
        rest = tail;
    }
    Ok(())
}

fn leaf(encoder: &mut Encoder<'_>, kind: ReplyKind, text: &[u8], raw: &[u8]) {
    match kind {
        ReplyKind::Null => encoder.null(),
        ReplyKind::Boolean => encoder.boolean(text == b"t"),
        ReplyKind::Double | ReplyKind::BigNumber => encoder.bulk(text),
        ReplyKind::Verbatim => encoder.bulk(text.get(4..).unwrap_or_default()),
        ReplyKind::BlobError => encoder.error(text),
        _ => encoder.raw(raw),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(resp3: &str, resp2: &str) {
        let mut out = b"before".to_vec();
        assert_eq!(to_resp2(resp3.as_bytes(), &mut out), Ok(()), "{resp3:?}");
        assert_eq!(String::from_utf8_lossy(&out), format!("before{resp2}"));
    }

    #[test]
    fn types_that_resp2_lacks_are_replaced() {
        check("_\r\n", "$-1\r\n");
        check("#t\r\n", ":1\r\n");
        check("#f\r\n", ":0\r\n");
        check(",3.2999999999999998\r\n", "$18\r\n3.2999999999999998\r\n");
        check(",-inf\r\n", "$4\r\n-inf\r\n");
        check("(12345678901234567890\r\n", "$20\r\n12345678901234567890\r\n");
        check("=7\r\ntxt:a\nb\r\n", "$3\r\na\nb\r\n");
        check("!8\r\nERR a\r\nb\r\n", "-ERR a  b\r\n");
        check(
            "%2\r\n+a\r\n%1\r\n+x\r\n_\r\n+b\r\n~2\r\n:1\r\n:2\r\n",
            "*4\r\n+a\r\n*2\r\n+x\r\n$-1\r\n+b\r\n*2\r\n:1\r\n:2\r\n",
        );
        check(">2\r\n+message\r\n#t\r\n", "*2\r\n+message\r\n:1\r\n");
        check("|1\r\n+ttl\r\n%1\r\n+a\r\n+b\r\n*1\r\n|0\r\n:1\r\n", "*1\r\n:1\r\n");
    }

    #[test]
    fn nulls_are_all_that_is_certain_without_a_shape() {
        for (resp2, resp3) in [
            ("$-1\r\n", "_\r\n"),
            ("*-1\r\n", "_\r\n"),
            ("*3\r\n$-1\r\n*1\r\n*-1\r\n$3\r\n$-1\r\n", "*3\r\n_\r\n*1\r\n_\r\n$3\r\n$-1\r\n"),
            ("*0\r\n", "*0\r\n"),
            ("-ERR x\r\n", "-ERR x\r\n"),
        ] {
            let mut out = Vec::new();
            assert_eq!(to_resp3(resp2.as_bytes(), &mut out), Ok(()));
            assert_eq!(String::from_utf8_lossy(&out), resp3);
        }
        assert!(to_resp3(b"*1\r\n", &mut Vec::new()).is_err());
    }

    #[test]
    fn types_that_resp2_has_are_left_alone() {
        for reply in
            ["+OK\r\n", "-ERR x\r\n", ":-5\r\n", "$3\r\na\r\n\r\n", "$-1\r\n", "*-1\r\n", "*0\r\n", "*1\r\n*0\r\n"]
        {
            check(reply, reply);
        }
    }

    #[test]
    fn nothing_is_appended_for_what_is_no_reply() {
        for reply in ["", "*2\r\n_\r\n", "_\r\n_\r\n", "?", "*1\r\n,x\r\n"] {
            let mut out = Vec::new();
            assert!(to_resp2(reply.as_bytes(), &mut out).is_err(), "{reply:?}");
            assert!(out.is_empty());
        }
    }
}
