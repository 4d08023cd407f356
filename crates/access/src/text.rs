//! C strings in what a peer sent: Redis reads most rules up to the first NUL, and so do we.

/// The bytes before the first NUL.
pub(crate) fn before_nul(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// Whether it is the word, in any case, up to the first NUL.
pub(crate) fn is_word(bytes: &[u8], word: &str) -> bool {
    before_nul(bytes).eq_ignore_ascii_case(word.as_bytes())
}

/// What C calls a space.
pub(crate) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

/// Whether it has a byte that would break a line of the ACL file apart.
pub(crate) fn has_space(bytes: &[u8]) -> bool {
    bytes.iter().any(|byte| is_space(*byte) || *byte == 0)
}

/// Splits words at blanks. A word may stand in double quotes, within which `\n`, `\x41` and the like mean a byte, or in single
/// ones, within which only `\'` does. `None`: a quote is not closed, or something stands right behind one.
pub(crate) fn split_quoted(text: &[u8]) -> Option<Vec<Vec<u8>>> {
    let text = before_nul(text);
    let mut words = Vec::new();
    let mut at = 0;
    while let Some(start) = text.get(at..).and_then(|rest| rest.iter().position(|byte| !is_space(*byte))) {
        at += start;
        let mut word = Vec::new();
        loop {
            match text.get(at) {
                None => break,
                Some(b' ' | b'\n' | b'\r' | b'\t') => {
                    at += 1;
                    break;
                }
                Some(quote @ (b'"' | b'\'')) => {
                    at = quoted(text, at + 1, *quote, &mut word)?;
                    break;
                }
                Some(byte) => {
                    word.push(*byte);
                    at += 1;
                }
            }
        }
        words.push(word);
    }
    Some(words)
}

/// Reads what stands between quotes, from behind the first. Where it goes on behind the last.
fn quoted(text: &[u8], mut at: usize, quote: u8, word: &mut Vec<u8>) -> Option<usize> {
    let hex = |byte: &u8| char::from(*byte).to_digit(16).map(|digit| digit as u8);
    loop {
        match text.get(at..)? {
            [b'\\', b'x', high, low, ..] if quote == b'"' && hex(high).is_some() && hex(low).is_some() => {
                word.push(hex(high)? * 16 + hex(low)?);
                at += 4;
            }
            [b'\\', escaped, ..] if quote == b'"' => {
                word.push(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 8,
                    b'a' => 7,
                    other => *other,
                });
                at += 2;
            }
            [b'\\', b'\'', ..] if quote == b'\'' => {
                word.push(b'\'');
                at += 2;
            }
            [end, rest @ ..] if *end == quote => {
                return rest.first().is_none_or(|next| is_space(*next)).then_some(at + 1);
            }
            [byte, ..] => {
                word.push(*byte);
                at += 1;
            }
            [] => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> Option<Vec<String>> {
        let words = split_quoted(text.as_bytes())?;
        Some(words.iter().map(|word| word.escape_ascii().to_string()).collect())
    }

    #[test]
    fn words_are_split_as_the_c_library_of_redis_splits_them() {
        let words = |list: &[&str]| Some(list.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        assert_eq!(split(""), words(&[]));
        assert_eq!(split("  a\tb  c "), words(&["a", "b", "c"]));
        assert_eq!(split(r#""a b" 'c d'"#), words(&["a b", "c d"]));
        assert_eq!(split(r#"a"b c" d"#), words(&["ab c", "d"]));
        assert_eq!(split(r#""\x41\n\q" '\''"#), words(&["A\\nq", "\\'"]));
        assert_eq!(split(r#""" x"#), words(&["", "x"]));
        for broken in [r#""a"#, "'a", r#""a"b"#, "'a'b"] {
            assert_eq!(split(broken), None, "{broken}");
        }
    }
}
