//! Which requests have large replies, learnt from those that have come.
//!
//! A request is known by its command and its first argument, which mostly is a key. A second, coarser table knows keys by their form,
//! so that a value that is read once is expected as well where others like it were large: `photo:17` tells of `photo:18`.
//!
//! The tables are of fixed size, and what falls on the place of another takes it. They decide nothing but by which connection a request
//! goes, so a wrong guess costs time alone. No lock: two that change a place at once may lose a change.

use crate::limits::{SIZES_FORMS, SIZES_REQUESTS};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// What is known. It takes no memory before the first large reply.
#[derive(Debug, Default)]
pub(crate) struct Sizes(OnceLock<Tables>);

#[derive(Debug)]
struct Tables {
    requests: Table,
    forms: Table,
}

/// A place holds a hash, and in its lowest byte a score.
#[derive(Debug)]
struct Table {
    places: Box<[AtomicU64]>,
    terms: Terms,
}

/// How a score moves: up by what is large, and down by one with each that is small.
#[derive(Clone, Copy, Debug)]
struct Terms {
    step: u64,
    most: u64,
    /// From this score on a reply is expected to be large.
    enough: u64,
}

/// One large reply is enough, and sixteen small ones behind it are.
const OF_REQUESTS: Terms = Terms { step: 16, most: 16, enough: 1 };

/// Two large replies are enough, and then one among nine.
const OF_FORMS: Terms = Terms { step: 9, most: 72, enough: 18 };

const SCORE: u64 = 0xff;

/// What is expected of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    /// Nothing is known.
    Unknown,
    /// Some like it were large, and not enough of them.
    Doubtful,
    /// It is large.
    Large,
}

impl Table {
    fn new(places: usize, terms: Terms) -> Self {
        Self { places: (0..places).map(|_| AtomicU64::new(0)).collect(), terms }
    }

    fn place(&self, hash: u64) -> &AtomicU64 {
        &self.places[(hash >> 32) as usize % self.places.len()]
    }

    fn score(&self, hash: u64) -> u64 {
        let held = self.place(hash).load(Ordering::Relaxed);
        if held & !SCORE == hash & !SCORE { held & SCORE } else { 0 }
    }

    fn note(&self, hash: u64, is_large: bool) {
        let score = self.score(hash);
        let next = match is_large {
            true => (score + self.terms.step).min(self.terms.most),
            false if score == 0 => return,
            false => score - 1,
        };
        let held = if next == 0 { 0 } else { hash & !SCORE | next };
        self.place(hash).store(held, Ordering::Relaxed);
    }
}

impl Sizes {
    /// Whether any reply was large.
    #[inline]
    pub(crate) fn is_awake(&self) -> bool {
        self.0.get().is_some()
    }

    /// What is expected of the reply to a request with these first words.
    pub(crate) fn expected(&self, words: (&[u8], &[u8])) -> Expected {
        let Some(Tables { requests, forms }) = self.0.get() else { return Expected::Unknown };
        let (of_request, of_form) = (requests.score(request_hash(words)), forms.score(form_hash(words)));
        if of_request >= requests.terms.enough || of_form >= forms.terms.enough {
            Expected::Large
        } else if of_form > 0 {
            Expected::Doubtful
        } else {
            Expected::Unknown
        }
    }

    /// A reply to such a request has come.
    #[cold]
    pub(crate) fn note(&self, words: (&[u8], &[u8]), is_large: bool) {
        if !is_large && !self.is_awake() {
            return;
        }
        let tables =
            || Tables { requests: Table::new(SIZES_REQUESTS, OF_REQUESTS), forms: Table::new(SIZES_FORMS, OF_FORMS) };
        let Tables { requests, forms } = self.0.get_or_init(tables);
        requests.note(request_hash(words), is_large);
        forms.note(form_hash(words), is_large);
    }
}

/// FNV-1a with a last step that spreads it over all bits. Two requests that meet share a guess.
#[derive(Clone, Copy)]
struct Hash(u64);

impl Hash {
    fn of_name(name: &[u8]) -> Self {
        name.iter().fold(Self(0xcbf2_9ce4_8422_2325), |hash, byte| hash.add(byte.to_ascii_uppercase())).add(0)
    }

    #[inline]
    fn add(self, byte: u8) -> Self {
        Self((self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
    }

    fn end(self) -> u64 {
        let mixed = (self.0 ^ self.0 >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ mixed >> 29
    }
}

/// Bytes of an argument that are looked at: one that is longer is known by its beginning.
const LOOKED_AT: usize = 256;

fn request_hash((name, argument): (&[u8], &[u8])) -> u64 {
    argument.iter().take(LOOKED_AT).fold(Hash::of_name(name), |hash, byte| hash.add(*byte)).end()
}

/// As [`request_hash`], without what tells one key from others of its form: numbers and identifiers between separators, and the number behind
/// a name (`photo18`).
fn form_hash((name, argument): (&[u8], &[u8])) -> u64 {
    let argument = &argument[..argument.len().min(LOOKED_AT)];
    let mut hash = Hash::of_name(name);
    for word in argument.split_inclusive(|byte| !byte.is_ascii_alphanumeric()) {
        let (text, separator) = word.split_at(word.len() - usize::from(!word[word.len() - 1].is_ascii_alphanumeric()));
        let (kept, is_numbered) = form_of(text);
        hash = kept.iter().fold(hash, |hash, byte| hash.add(*byte));
        hash = if is_numbered { hash.add(1) } else { hash };
        hash = separator.iter().fold(hash, |hash, byte| hash.add(*byte));
    }
    hash.end()
}

/// What a word has in common with others of its form, and whether a number or an identifier follows that. A word that is hexadecimal, or has
/// letters behind its digits, is an identifier as a whole.
fn form_of(word: &[u8]) -> (&[u8], bool) {
    let Some(first) = word.iter().position(u8::is_ascii_digit) else { return (word, false) };
    let is_name = word[first..].iter().all(u8::is_ascii_digit) && !word.iter().all(u8::is_ascii_hexdigit);
    (if is_name { &word[..first] } else { &[] }, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(key: &str) -> (&[u8], &[u8]) {
        (b"GET", key.as_bytes())
    }

    #[test]
    fn a_large_reply_is_expected_again_until_small_ones_come() {
        let sizes = Sizes::default();
        assert_eq!((sizes.is_awake(), sizes.expected(get("page"))), (false, Expected::Unknown));
        sizes.note(get("page"), false);
        assert!(!sizes.is_awake());
        sizes.note(get("page"), true);
        assert_eq!(sizes.expected((b"get", b"page")), Expected::Large);
        assert_eq!(sizes.expected((b"STRLEN", b"page")), Expected::Unknown);
        assert_eq!(sizes.expected(get("other")), Expected::Unknown);
        for _ in 0..16 {
            assert_eq!(sizes.expected(get("page")), Expected::Large);
            sizes.note(get("page"), false);
        }
        assert_ne!(sizes.expected(get("page")), Expected::Large);
    }

    #[test]
    fn keys_of_one_form_are_expected_to_be_alike() {
        let sizes = Sizes::default();
        sizes.note(get("photo:1:full"), true);
        assert_eq!(sizes.expected(get("photo:2:full")), Expected::Doubtful);
        sizes.note(get("photo:3f-9c:full"), true);
        sizes.note(get("photo:a7:full"), true);
        assert_eq!(sizes.expected(get("photo:4:full")), Expected::Large);
        assert_eq!(sizes.expected(get("photo:4:small")), Expected::Unknown);
        for photo in 0..100 {
            sizes.note(get(&format!("photo:{photo}:full")), false);
        }
        assert_eq!(sizes.expected(get("photo:200:full")), Expected::Unknown);
    }

    #[test]
    fn a_name_in_front_of_a_number_is_a_part_of_the_form() {
        let sizes = Sizes::default();
        (1..=3).for_each(|photo| sizes.note(get(&format!("photo{photo}")), true));
        assert_eq!(sizes.expected(get("photo18")), Expected::Large);
        for other in ["user17", "k5", "5", "0b5c61e1fd7d4d3e9c7f", "photo", "photos18", "photo18x"] {
            assert_eq!(sizes.expected(get(other)), Expected::Unknown, "{other}");
        }
        // Identifiers have nothing in common but that they are such.
        for word in ["7", "0b5c61", "x7Kq9", "A7"] {
            assert_eq!(form_of(word.as_bytes()), (&b""[..], true), "{word}");
        }
    }

    #[test]
    fn any_number_of_keys_takes_the_same_memory() {
        let sizes = Sizes::default();
        for key in 0..100_000 {
            sizes.note(get(&format!("{key}")), true);
            sizes.note((format!("C{key}").as_bytes(), b"k"), true);
        }
        let tables = sizes.0.get().unwrap();
        assert_eq!((tables.requests.places.len(), tables.forms.places.len()), (SIZES_REQUESTS, SIZES_FORMS));
        assert_eq!(sizes.expected(get("99999")), Expected::Large);
    }
}
