//! Patterns as `KEYS`, `PSUBSCRIBE` and ACL rules take them: `*`, `?`, `[a-c]`, `[^a]`, and `\` before a byte that stands for
//! itself.
//!
//! Only the last star is ever remembered, because giving an earlier one more bytes cannot help where the last one fails:
//! so time is bounded by the pattern's length times the text's, and no stack is used, whatever pattern a peer sends.

/// Whether all of `text` matches all of `pattern`, byte by byte.
pub fn matches(pattern: &[u8], text: &[u8]) -> bool {
    search(pattern, text, Case::Kept)
}

/// As [`matches()`], with small ASCII letters and capitals being the same.
pub fn matches_in_any_case(pattern: &[u8], text: &[u8]) -> bool {
    search(pattern, text, Case::Ignored)
}

/// What of a pattern is left to match behind the beginning of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest<'a> {
    /// No text that begins so matches.
    Nothing,
    /// The rest of a text that begins so has to match this.
    Pattern(&'a [u8]),
    /// A star stands within the beginning, so there is no one pattern for the rest.
    Anything,
}

/// What has to match behind `beginning` for the whole to match `pattern`.
pub fn rest_behind<'a>(pattern: &'a [u8], beginning: &[u8]) -> Rest<'a> {
    let mut at = 0;
    for byte in beginning {
        if pattern.get(at) == Some(&b'*') {
            return Rest::Anything;
        }
        match match_one(pattern, at, *byte, Case::Kept) {
            Some(next) => at = next,
            None => return Rest::Nothing,
        }
    }
    Rest::Pattern(pattern.get(at..).unwrap_or_default())
}

/// The pattern that this text alone matches.
pub fn escape(text: &[u8]) -> Vec<u8> {
    let mut pattern = Vec::with_capacity(text.len());
    for byte in text {
        if matches!(byte, b'*' | b'?' | b'[' | b'\\') {
            pattern.push(b'\\');
        }
        pattern.push(*byte);
    }
    pattern
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Case {
    Kept,
    Ignored,
}

impl Case {
    fn fold(self, byte: u8) -> u8 {
        match self {
            Self::Kept => byte,
            Self::Ignored => byte.to_ascii_lowercase(),
        }
    }

    fn is_same(self, a: u8, b: u8) -> bool {
        self.fold(a) == self.fold(b)
    }
}

fn search(pattern: &[u8], text: &[u8], case: Case) -> bool {
    if text.is_empty() {
        // As in Redis: an empty text matches the empty pattern alone, not even a star.
        return pattern.is_empty();
    }
    let (mut at, mut read) = (0, 0);
    let mut star = None;
    loop {
        if pattern.get(at) == Some(&b'*') {
            while pattern.get(at) == Some(&b'*') {
                at += 1;
            }
            if at == pattern.len() {
                return true;
            }
            star = Some((at, read));
            continue;
        }
        let Some(&byte) = text.get(read) else {
            return at == pattern.len();
        };
        if let Some(next) = match_one(pattern, at, byte, case) {
            at = next;
            read += 1;
            continue;
        }
        // Give the last star one byte more.
        let Some((behind, from)) = star else { return false };
        star = Some((behind, from + 1));
        (at, read) = (behind, from + 1);
        if read >= text.len() {
            return false;
        }
    }
}

/// Where the pattern goes on if its piece at `at`, which is no star, matches `byte`.
fn match_one(pattern: &[u8], at: usize, byte: u8, case: Case) -> Option<usize> {
    match pattern.get(at..)? {
        [] => None,
        [b'?', ..] => Some(at + 1),
        [b'[', ..] => match_class(pattern, at + 1, byte, case),
        [b'\\', literal, ..] => case.is_same(*literal, byte).then_some(at + 2),
        [literal, ..] => case.is_same(*literal, byte).then_some(at + 1),
    }
}

fn match_class(pattern: &[u8], mut at: usize, byte: u8, case: Case) -> Option<usize> {
    let is_negated = pattern.get(at) == Some(&b'^');
    at += usize::from(is_negated);
    let mut is_inside = false;
    loop {
        match pattern.get(at..).unwrap_or_default() {
            // As in Redis, an escaped byte is compared as it is even where case is ignored.
            [b'\\', escaped, ..] => {
                is_inside |= *escaped == byte;
                at += 2;
            }
            [b']', ..] => {
                at += 1;
                break;
            }
            // A class that is not closed ends with the pattern.
            [] => break,
            [first, b'-', last, ..] => {
                let (low, high) = (case.fold(*first.min(last)), case.fold(*first.max(last)));
                is_inside |= (low..=high).contains(&case.fold(byte));
                at += 3;
            }
            [single, ..] => {
                is_inside |= case.is_same(*single, byte);
                at += 1;
            }
        }
    }
    (is_inside != is_negated).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_mean_what_redis_means() {
        let cases: &[(&str, &str, bool)] = &[
            ("*", "abc", true),
            ("*", "", false),
            ("", "", true),
            ("", "a", false),
            ("a*c", "abc", true),
            ("a*c", "ac", true),
            ("a**c", "abbc", true),
            ("a*c", "abcd", false),
            ("*b*d*", "abcde", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("h[ae]llo", "hallo", true),
            ("h[ae]llo", "hillo", false),
            ("h[^e]llo", "hello", false),
            ("h[^e]llo", "hallo", true),
            ("[a-c]", "b", true),
            ("[c-a]", "b", true),
            ("[a-]", "-", false),
            ("[a-]", "_", true),
            ("[abc", "b", true),
            ("[", "[", false),
            ("[\\]]", "]", true),
            ("\\*", "*", true),
            ("\\*", "a", false),
            ("a\\", "a\\", true),
            ("*aab", "aaaab", true),
            ("abc*", "abc", true),
            ("ABC", "abc", false),
        ];
        for &(pattern, text, expected) in cases {
            assert_eq!(matches(pattern.as_bytes(), text.as_bytes()), expected, "{pattern} on {text}");
        }
        assert!(matches_in_any_case(b"C?I*[M-P]T|id", b"client|ID"));
        assert!(!matches_in_any_case(b"client?", b"client"));
    }

    #[test]
    fn many_stars_are_no_attack() {
        let pattern = [b"a*".repeat(64), b"b".to_vec()].concat();
        assert!(!matches(&pattern, &vec![b'a'; 1 << 20]));
    }

    #[test]
    fn what_is_left_of_a_pattern_behind_a_beginning() {
        for (pattern, beginning, rest) in [
            ("news:*", "news:", Rest::Pattern(b"*".as_slice())),
            ("news:*", "n", Rest::Pattern(b"ews:*")),
            ("news:*", "old:", Rest::Nothing),
            ("n*", "news:", Rest::Anything),
            ("?e[v-x]s:a", "news:", Rest::Pattern(b"a")),
            ("\\*a", "*", Rest::Pattern(b"a")),
            ("ab", "abc", Rest::Nothing),
            ("ab", "", Rest::Pattern(b"ab")),
            ("", "", Rest::Pattern(b"")),
        ] {
            assert_eq!(rest_behind(pattern.as_bytes(), beginning.as_bytes()), rest, "{pattern} {beginning}");
        }
    }

    #[test]
    fn an_escaped_text_matches_itself_alone() {
        for text in ["a*", "[a]", "\\", "a?b", "plain"] {
            let pattern = escape(text.as_bytes());
            assert!(matches(&pattern, text.as_bytes()), "{text}");
            assert!(!matches(&pattern, [text.as_bytes(), b"x"].concat().as_slice()), "{text}");
        }
        assert!(!matches(&escape(b"a*"), b"ab"));
    }
}
