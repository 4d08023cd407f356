//! The few lines of RESP that the test peers need, written apart from the codec under test on purpose.

use std::io;

/// Replies nested deeper than this are refused.
const DEPTH_MAX: usize = 1_100;

/// The length of the first whole reply in `bytes` (RESP2 or RESP3, attributes counted to the reply they precede), or
/// `None` if it is not complete yet. Fails on bytes that can be no reply.
pub fn reply_length(bytes: &[u8]) -> io::Result<Option<usize>> {
    let mut at = 0;
    // Values still to be passed on each level of nesting.
    let mut open = vec![1_usize];
    while let Some(level) = open.last_mut() {
        if *level == 0 {
            open.pop();
            continue;
        }
        *level -= 1;
        let Some(line_length) = bytes[at..].windows(2).position(|pair| pair == b"\r\n") else { return Ok(None) };
        let line = &bytes[at..at + line_length];
        let Some((&kind, rest)) = line.split_first() else { return Err(invalid(line)) };
        at += line_length + 2;
        let children = match kind {
            b'+' | b'-' | b':' | b'_' | b',' | b'#' | b'(' => 0,
            b'$' | b'!' | b'=' => {
                if let Some(length) = count(line, rest)? {
                    at += length + 2;
                    if at > bytes.len() {
                        return Ok(None);
                    }
                }
                0
            }
            b'*' | b'~' | b'>' => count(line, rest)?.unwrap_or(0),
            b'%' => 2 * count(line, rest)?.unwrap_or(0),
            // An attribute comes before the value that it belongs to: that value is still to come on this level.
            b'|' => {
                *open.last_mut().expect("the level was just used") += 1;
                2 * count(line, rest)?.unwrap_or(0)
            }
            _ => return Err(invalid(line)),
        };
        if children > 0 {
            open.push(children);
        }
        if open.len() > DEPTH_MAX {
            return Err(invalid(line));
        }
    }
    Ok(Some(at))
}

/// The elements of a whole array, set, map or push, each as the bytes it came in; of any other reply, the reply itself.
pub fn elements(reply: &[u8]) -> Vec<&[u8]> {
    if !matches!(reply.first(), Some(b'*' | b'~' | b'%' | b'>')) {
        return vec![reply];
    }
    let head = reply.iter().position(|&byte| byte == b'\n').map_or(reply.len(), |at| at + 1);
    let mut rest = &reply[head..];
    let mut elements = Vec::new();
    while let Ok(Some(length)) = reply_length(rest) {
        let (element, after) = rest.split_at(length);
        elements.push(element);
        rest = after;
    }
    elements
}

/// A request as an array of bulk strings.
pub fn request<A: AsRef<[u8]>>(arguments: &[A]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", arguments.len()).into_bytes();
    for argument in arguments {
        let argument = argument.as_ref();
        bytes.extend_from_slice(format!("${}\r\n", argument.len()).as_bytes());
        bytes.extend_from_slice(argument);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

/// The number after the type byte: a length or count, `None` for the null forms.
fn count(line: &[u8], digits: &[u8]) -> io::Result<Option<usize>> {
    let number: i64 =
        std::str::from_utf8(digits).ok().and_then(|text| text.parse().ok()).ok_or_else(|| invalid(line))?;
    match number {
        -1 => Ok(None),
        0..=0x2000_0000 => Ok(Some(number as usize)),
        _ => Err(invalid(line)),
    }
}

fn invalid(line: &[u8]) -> io::Error {
    let shown = String::from_utf8_lossy(&line[..line.len().min(80)]);
    io::Error::new(io::ErrorKind::InvalidData, format!("not a reply: {shown:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_reply_ends_where_it_should() {
        for reply in [
            "+OK\r\n",
            "-ERR no\r\n",
            ":-1\r\n",
            "$-1\r\n",
            "$0\r\n\r\n",
            "$4\r\na\r\nb\r\n",
            "*-1\r\n",
            "*0\r\n",
            "*2\r\n$1\r\na\r\n*1\r\n:1\r\n",
            "_\r\n",
            "#t\r\n",
            ",1.5\r\n",
            "(123\r\n",
            "=7\r\ntxt:abc\r\n",
            "!3\r\nERR\r\n",
            "%1\r\n+k\r\n~2\r\n:1\r\n:2\r\n",
            ">2\r\n+message\r\n$1\r\nx\r\n",
            "|1\r\n+ttl\r\n:1\r\n+value\r\n",
            "*2\r\n|1\r\n+ttl\r\n:1\r\n+a\r\n+b\r\n",
        ] {
            let bytes = reply.as_bytes();
            for end in 0..bytes.len() {
                assert_eq!(reply_length(&bytes[..end]).unwrap(), None, "{reply:?} cut at {end}");
            }
            let followed = [bytes, b"+next\r\n"].concat();
            assert_eq!(reply_length(&followed).unwrap(), Some(bytes.len()), "{reply:?}");
        }
    }

    #[test]
    fn elements_are_taken_apart_one_level_deep() {
        let reply = b"*3\r\n$1\r\na\r\n*1\r\n:1\r\n$-1\r\n";
        assert_eq!(elements(reply), [&b"$1\r\na\r\n"[..], b"*1\r\n:1\r\n", b"$-1\r\n"]);
        assert_eq!(elements(b"*0\r\n"), Vec::<&[u8]>::new());
        assert_eq!(elements(b"+OK\r\n"), [b"+OK\r\n"]);
    }

    #[test]
    fn what_is_no_reply_is_refused() {
        for bytes in ["HTTP/1.1 200 OK\r\n", "\r\n", "$x\r\n", "$-2\r\n", "*99999999999999999999\r\n"] {
            assert!(reply_length(bytes.as_bytes()).is_err(), "{bytes:?}");
        }
    }
}
