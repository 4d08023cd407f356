//! Hash tags: which part of a key decides where it lives.
//!
//! A tag lets a user put related keys on one node (`{user:7}:name`, `{user:7}:mail`). Four rules are in use in the
//! field and they disagree, so a successor has to be told which one placed the data that is already there.

use std::fmt;
use std::str::FromStr;

use memchr::{memchr, memrchr};

/// Which part of a key is hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TagRule {
    /// The whole key, always.
    None,
    /// Redis Cluster (and twemproxy's `hash_tag: "{}"`): what stands between the first `{` and the first `}` behind it,
    /// unless that is empty.
    Cluster,
    /// redis-sharding in Standard ML and Haskell: a key that ends with `}` is placed by what follows its last `{`, even
    /// if that is empty.
    LastBrace,
    /// redis-sharding in Perl: a key that ends with `}` is placed by what follows its first `{`, unless that is empty.
    ///
    /// The Perl program asks a regular expression (`{(.+)}$`), which has two corners that are kept here: a newline
    /// behind the final `}` is overlooked, and a tag does not contain newlines, so an earlier `{` is passed over when a
    /// newline follows it.
    FirstBrace,
}

impl TagRule {
    /// All rules, for help texts and completions.
    pub const ALL: [Self; 4] = [Self::None, Self::Cluster, Self::LastBrace, Self::FirstBrace];

    /// The name in settings.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Cluster => "cluster",
            Self::LastBrace => "last-brace",
            Self::FirstBrace => "first-brace",
        }
    }

    /// The bytes of `key` that are hashed: its tag, or all of it.
    #[inline]
    pub fn hashed(self, key: &[u8]) -> &[u8] {
        let tag = match self {
            Self::None => None,
            Self::Cluster => cluster_tag(key),
            Self::LastBrace => last_brace_tag(key),
            Self::FirstBrace => first_brace_tag(key),
        };
        tag.unwrap_or(key)
    }
}

/// Most keys have no tag and are short: for these `memchr`, which chooses its way by the length and by what the processor
/// can, costs three times as many instructions as the search.
#[inline]
fn cluster_tag(key: &[u8]) -> Option<&[u8]> {
    if key.len() <= SHORT_KEY_BYTES && !short_key_has_brace(key) {
        return None;
    }
    tag_in_braces(key)
}

/// Longer keys are left to `memchr`.
const SHORT_KEY_BYTES: usize = 64;

/// Whether `key` contains `{`: looked for in blocks that the compiler compares at once, the last one of which overlaps.
#[inline]
fn short_key_has_brace(key: &[u8]) -> bool {
    match (key.last_chunk::<BLOCK_BYTES>(), key.last_chunk::<WORD_BYTES>()) {
        (Some(last), _) => key.as_chunks::<BLOCK_BYTES>().0.iter().any(has_brace) || has_brace(last),
        (None, Some(last)) => key.first_chunk::<WORD_BYTES>().is_some_and(has_brace) || has_brace(last),
        (None, None) => key.contains(&b'{'),
    }
}

const BLOCK_BYTES: usize = 16;
const WORD_BYTES: usize = 8;

/// Without an early end, so that it is one comparison of all bytes.
#[inline]
fn has_brace<const N: usize>(block: &[u8; N]) -> bool {
    block.iter().fold(false, |found, byte| found | (*byte == b'{'))
}

#[inline(never)]
fn tag_in_braces(key: &[u8]) -> Option<&[u8]> {
    let behind = key.get(memchr(b'{', key)? + 1..)?;
    let tag = behind.get(..memchr(b'}', behind)?)?;
    (!tag.is_empty()).then_some(tag)
}

#[inline(never)]
fn last_brace_tag(key: &[u8]) -> Option<&[u8]> {
    let body = key.strip_suffix(b"}")?;
    body.get(memrchr(b'{', body)? + 1..)
}

#[inline(never)]
fn first_brace_tag(key: &[u8]) -> Option<&[u8]> {
    let body = key.strip_suffix(b"\n").unwrap_or(key).strip_suffix(b"}")?;
    let line = memrchr(b'\n', body).map_or(0, |newline| newline + 1);
    let body = body.get(line..)?;
    let tag = body.get(memchr(b'{', body)? + 1..)?;
    (!tag.is_empty()).then_some(tag)
}

impl fmt::Display for TagRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// No tag rule has this name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownTagRule;

impl FromStr for TagRule {
    type Err = UnknownTagRule;

    fn from_str(name: &str) -> Result<Self, UnknownTagRule> {
        Self::ALL.into_iter().find(|rule| rule.name() == name).ok_or(UnknownTagRule)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_reads_the_same_keys_its_own_way() {
        // (key, cluster, last-brace, first-brace)
        let cases: [(&str, &str, &str, &str); 15] = [
            ("", "", "", ""),
            ("plain", "plain", "plain", "plain"),
            ("{x}b", "x", "{x}b", "{x}b"),
            ("b{x}", "x", "x", "x"),
            ("foo{a}{b}", "a", "b", "a}{b"),
            ("a{}", "a{}", "", "a{}"),
            ("{}", "{}", "", "{}"),
            ("a{}{b}", "a{}{b}", "b", "}{b"),
            ("foo{{bar}}zap", "{bar", "foo{{bar}}zap", "foo{{bar}}zap"),
            ("foo{{bar}}", "{bar", "bar}", "{bar}"),
            ("}", "}", "}", "}"),
            ("a}", "a}", "a}", "a}"),
            ("}{", "}{", "}{", "}{"),
            ("k{t}\n", "t", "k{t}\n", "t"),
            ("a{b\nc{d}", "b\nc{d", "d", "d"),
        ];
        for (key, cluster, last, first) in cases {
            let read = TagRule::ALL.map(|rule| rule.hashed(key.as_bytes()).escape_ascii().to_string());
            let expected = [key, cluster, last, first].map(|tag| tag.as_bytes().escape_ascii().to_string());
            assert_eq!(read, expected, "{key:?}");
        }
    }

    #[test]
    fn a_tag_is_found_wherever_it_is_in_keys_of_any_length() {
        for length in 0..=2 * SHORT_KEY_BYTES {
            let plain = vec![b'z'; length];
            assert_eq!(TagRule::Cluster.hashed(&plain), plain, "{length} bytes");
            for open in 0..length.saturating_sub(2) {
                let mut key = plain.clone();
                (key[open], key[length - 1]) = (b'{', b'}');
                assert_eq!(TagRule::Cluster.hashed(&key), &key[open + 1..length - 1], "{length} bytes, tag at {open}");
            }
        }
    }

    #[test]
    fn names_round_trip() {
        for rule in TagRule::ALL {
            assert_eq!(rule.name().parse(), Ok(rule));
        }
        assert_eq!("".parse::<TagRule>(), Err(UnknownTagRule));
    }
}
