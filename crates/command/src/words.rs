//! Lines of redis.conf and first lines of scripts as words, and words as redis.conf quotes them. Bytes are bytes: a password need not be text.

/// The words of a line: separated by blanks, quoted by `"` with escapes or by `'` without. `None`: a quote is not closed, or
/// something other than a blank stands behind the closing one.
#[must_use]
pub fn split(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let line = until_nul(line);
    let mut words = Vec::new();
    let mut at = 0;
    loop {
        while line.get(at).is_some_and(|byte| is_blank(*byte)) {
            at += 1;
        }
        if line.get(at).is_none() {
            return Some(words);
        }
        let mut word = Vec::new();
        at = take_word(line, at, &mut word)?;
        words.push(word);
    }
}

/// Reads one word from `at` on. Result: the place behind it.
fn take_word(line: &[u8], mut at: usize, word: &mut Vec<u8>) -> Option<usize> {
    loop {
        match line.get(at) {
            None | Some(b' ' | b'\n' | b'\r' | b'\t') => return Some(at),
            Some(quote @ (b'"' | b'\'')) => return take_quoted(line, at + 1, *quote, word),
            Some(byte) => word.push(*byte),
        }
        at += 1;
    }
}

/// Reads up to the closing quote, which ends the word. Result: the place behind it.
fn take_quoted(line: &[u8], mut at: usize, quote: u8, word: &mut Vec<u8>) -> Option<usize> {
    loop {
        let rest = line.get(at..)?;
        match rest {
            [b'\\', b'x', high, low, ..] if quote == b'"' && high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                word.push(hex(*high) << 4 | hex(*low));
                at += 4;
            }
            [b'\\', byte, ..] if quote == b'"' => {
                word.push(match byte {
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
            [byte, behind @ ..] if *byte == quote => {
                let is_closed = behind.first().is_none_or(|byte| is_blank(*byte));
                return is_closed.then_some(at + 1);
            }
            [] => return None,
            [byte, ..] => {
                word.push(*byte);
                at += 1;
            }
        }
    }
}

/// As much of a text as C reads of it: what stands before the first NUL.
#[must_use]
pub fn until_nul(text: &[u8]) -> &[u8] {
    text.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// What C's `isspace` knows.
fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

fn hex(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        _ => digit - b'A' + 10,
    }
}

/// The word in double quotes, so that [`split`] reads it again.
#[must_use]
pub fn quoted(word: &[u8]) -> Vec<u8> {
    let mut out = vec![b'"'];
    for byte in word {
        match byte {
            b'\\' | b'"' => out.extend_from_slice(&[b'\\', *byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            7 => out.extend_from_slice(b"\\a"),
            8 => out.extend_from_slice(b"\\b"),
            0x20..0x7f => out.push(*byte),
            other => out.extend_from_slice(format!("\\x{other:02x}").as_bytes()),
        }
    }
    out.push(b'"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Option<Vec<String>> {
        let lossy = |word: Vec<u8>| String::from_utf8_lossy(&word).into_owned();
        Some(split(line.as_bytes())?.into_iter().map(lossy).collect())
    }

    #[test]
    fn words_are_read_as_redis_reads_them() {
        for (line, expected) in [
            ("", &[][..]),
            ("   \t ", &[]),
            ("port 6379", &["port", "6379"]),
            ("save \"\"", &["save", ""]),
            ("logfile ''", &["logfile", ""]),
            (r#"a "b c" 'd "e"' "#, &["a", "b c", "d \"e\""]),
            (r#"a "\x41\n\"\\\q""#, &["a", "A\n\"\\q"]),
            (r"a 'it\'s' 'a\b'", &["a", "it's", "a\\b"]),
            (r#"a b"c d""#, &["a", "bc d"]),
            ("a#b # c", &["a#b", "#", "c"]),
        ] {
            assert_eq!(words(line).unwrap_or_else(|| panic!("{line}")), expected, "{line}");
        }
        for line in ["a \"b", "a 'b", "a \"b\"c", "a 'b'c", "a \"b\\", "a \"\\\""] {
            assert_eq!(words(line), None, "{line}");
        }
    }

    #[test]
    fn what_is_quoted_is_read_as_it_was() {
        let mut seed = 7_u64;
        for round in 0..2_000 {
            let mut word = Vec::new();
            for _ in 0..round % 12 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                word.push((seed >> 56) as u8);
            }
            let line = [b"name ".as_slice(), &quoted(&word)].concat();
            assert_eq!(split(&line), Some(vec![b"name".to_vec(), word]), "{}", line.escape_ascii());
        }
    }

    #[test]
    fn no_line_makes_it_panic_or_grow() {
        let alphabet = b"a \"'\\x4\t\0\xff";
        let mut seed = 1_u64;
        for _ in 0..20_000 {
            let mut line = Vec::new();
            for _ in 0..(seed % 17) {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                line.push(alphabet[(seed >> 33) as usize % alphabet.len()]);
            }
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            if let Some(words) = split(&line) {
                assert!(words.iter().map(Vec::len).sum::<usize>() <= line.len(), "{}", line.escape_ascii());
            }
        }
    }

    fn shown(text: &str) -> Option<Vec<String>> {
        Some(split(text.as_bytes())?.iter().map(|word| word.escape_ascii().to_string()).collect())
    }

    #[test]
    fn words_are_split_as_the_c_library_of_redis_splits_them() {
        let words = |list: &[&str]| Some(list.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        assert_eq!(shown(""), words(&[]));
        assert_eq!(shown("  a\tb  c "), words(&["a", "b", "c"]));
        assert_eq!(shown(r#""a b" 'c d'"#), words(&["a b", "c d"]));
        assert_eq!(shown(r#"a"b c" d"#), words(&["ab c", "d"]));
        assert_eq!(shown(r#""\x41\n\q" '\''"#), words(&["A\\nq", "\\'"]));
        assert_eq!(shown(r#""" x"#), words(&["", "x"]));
        assert_eq!(shown("a \"b\"\0c d"), words(&["a", "b"]), "a NUL ends the line");
        for broken in [r#""a"#, "'a", r#""a"b"#, "'a'b"] {
            assert_eq!(shown(broken), None, "{broken}");
        }
    }
}
