//! The texts of scripts by their hashes.

use std::collections::{BTreeMap, VecDeque};

use sha1::{Digest, Sha1};

use crate::limits::{SCRIPT_CACHE_BYTES_MAX, SCRIPT_COMPILED_BYTES_MAX, SCRIPT_COST_BYTES};
use crate::script::shebang::ScriptFlags;

/// The hash that names a script.
pub(super) type Hash = [u8; 20];

/// Scripts by their hashes, the oldest forgotten first. What they are compiled to is forgotten for itself: it can be made again of their
/// texts.
#[derive(Default)]
pub(super) struct Cache {
    by_hash: BTreeMap<Hash, Cached>,
    in_order: VecDeque<Hash>,
    bytes: usize,
    /// Those that the interpreter knows, in the order in which they were compiled.
    compiled: BTreeMap<u64, Hash>,
    compiled_bytes: usize,
    /// How many have been compiled.
    compilations: u64,
}

struct Cached {
    text: Box<[u8]>,
    flags: ScriptFlags,
    /// `None`: the interpreter that there is now does not know it.
    compiled: Option<Compiled>,
}

struct Compiled {
    /// Its place in the order.
    number: u64,
    /// What it takes in the interpreter.
    bytes: usize,
}

impl Cache {
    pub(super) fn flags(&self, hash: &Hash) -> Option<ScriptFlags> {
        self.by_hash.get(hash).map(|cached| cached.flags)
    }

    /// The flags of a script that the interpreter knows.
    pub(super) fn compiled_flags(&self, hash: &Hash) -> Option<ScriptFlags> {
        self.by_hash.get(hash).filter(|cached| cached.compiled.is_some()).map(|cached| cached.flags)
    }

    /// There is another interpreter, which knows no script.
    pub(super) fn forget_compiled(&mut self) {
        self.by_hash.values_mut().for_each(|cached| cached.compiled = None);
        self.compiled.clear();
        self.compiled_bytes = 0;
    }

    pub(super) fn text(&self, hash: &Hash) -> Option<&[u8]> {
        self.by_hash.get(hash).map(|cached| &*cached.text)
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn len(&self) -> usize {
        self.by_hash.len()
    }

    /// Bytes that they take in the interpreter.
    pub(super) fn compiled_bytes(&self) -> usize {
        self.compiled_bytes
    }

    /// Keeps a script that takes so many bytes in the interpreter; gives the hashes of those that have to go there for it.
    pub(super) fn insert(&mut self, hash: Hash, text: &[u8], flags: ScriptFlags, compiled_bytes: usize) -> Vec<Hash> {
        self.forget_compiled_of(&hash);
        self.compilations += 1;
        let compiled = Some(Compiled { number: self.compilations, bytes: compiled_bytes });
        self.compiled.insert(self.compilations, hash);
        self.compiled_bytes += compiled_bytes;
        if self.by_hash.insert(hash, Cached { text: text.into(), flags, compiled }).is_none() {
            self.in_order.push_back(hash);
            self.bytes += text.len() + SCRIPT_COST_BYTES;
        }
        let mut gone = self.forget_texts();
        // Whatever it takes, the last one stays.
        while self.compiled_bytes > SCRIPT_COMPILED_BYTES_MAX && self.compiled.len() > 1 {
            gone.extend(self.forget_oldest_compiled());
        }
        gone
    }

    /// Forgets the oldest scripts, but for the last, until the texts fit; gives the hashes of those that the interpreter knows.
    fn forget_texts(&mut self) -> Vec<Hash> {
        let mut gone = Vec::new();
        while self.bytes > SCRIPT_CACHE_BYTES_MAX && self.in_order.len() > 1 {
            let Some(oldest) = self.in_order.pop_front() else { break };
            gone.extend(self.forget_compiled_of(&oldest).then_some(oldest));
            if let Some(cached) = self.by_hash.remove(&oldest) {
                self.bytes -= cached.text.len() + SCRIPT_COST_BYTES;
            }
        }
        gone
    }

    /// Forgets what the oldest scripts are compiled to, until that was so many bytes; gives their hashes.
    pub(super) fn make_room(&mut self, bytes: usize) -> Vec<Hash> {
        let left = self.compiled_bytes.saturating_sub(bytes);
        let mut gone = Vec::new();
        while self.compiled_bytes > left {
            let Some(oldest) = self.forget_oldest_compiled() else { break };
            gone.push(oldest);
        }
        gone
    }

    fn forget_oldest_compiled(&mut self) -> Option<Hash> {
        let (_, &oldest) = self.compiled.first_key_value()?;
        self.forget_compiled_of(&oldest).then_some(oldest)
    }

    /// The interpreter knows this script no more; whether it did.
    fn forget_compiled_of(&mut self, hash: &Hash) -> bool {
        let Some(compiled) = self.by_hash.get_mut(hash).and_then(|cached| cached.compiled.take()) else { return false };
        self.compiled.remove(&compiled.number);
        self.compiled_bytes -= compiled.bytes;
        true
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

/// The hash of a text.
pub(super) fn hash_of(text: &[u8]) -> Hash {
    Sha1::digest(text).into()
}

/// A hash as it is written.
pub(super) fn written(hash: &Hash) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |value: u8| char::from(DIGITS[usize::from(value)]);
    hash.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// Forty hexadecimal digits in any case.
pub(super) fn parsed(text: &[u8]) -> Option<Hash> {
    let mut hash = Hash::default();
    if text.len() != 2 * hash.len() {
        return None;
    }
    for (byte, digits) in hash.iter_mut().zip(text.chunks_exact(2)) {
        let value = |digit: u8| char::from(digit).to_digit(16);
        *byte = u8::try_from(value(digits[0])? * 16 + value(digits[1])?).ok()?;
    }
    Some(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_read_in_any_case() {
        let hash = hash_of(b"return 1");
        assert_eq!(written(&hash), "e0e1f9fabfc9d4800c877a703b823ac0578ff8db");
        assert_eq!(parsed(b"E0E1F9FABFC9D4800C877A703B823AC0578FF8DB"), Some(hash));
        for odd in [&b""[..], b"+0e1f9fabfc9d4800c877a703b823ac0578ff8db", b"e0e1"] {
            assert_eq!(parsed(odd), None);
        }
    }

    #[test]
    fn the_oldest_scripts_are_forgotten_first() {
        let mut cache = Cache::default();
        let text = vec![b' '; SCRIPT_CACHE_BYTES_MAX / 4];
        let gone: Vec<Vec<Hash>> =
            (0..5).map(|number| cache.insert([number; 20], &text, ScriptFlags::default(), 1)).collect();
        assert_eq!(gone.concat(), [[0; 20], [1; 20]]);
        assert!(cache.bytes <= SCRIPT_CACHE_BYTES_MAX && cache.len() == 3);
        assert_eq!(cache.compiled_bytes, 3);
    }

    #[test]
    fn scripts_are_forgotten_for_what_they_compile_to() {
        let mut cache = Cache::default();
        let mut insert = |number: u8, compiled: usize| {
            let gone = cache.insert([number; 20], b"", ScriptFlags::default(), compiled);
            (gone.iter().map(|hash| hash[0]).collect::<Vec<_>>(), cache.compiled_bytes)
        };
        let third = SCRIPT_COMPILED_BYTES_MAX / 3;
        for number in 0..3 {
            assert_eq!(insert(number, third), (vec![], third * (usize::from(number) + 1)));
        }
        assert_eq!(insert(3, third), (vec![0], third * 3));
        // Whatever it takes, the last one stays.
        assert_eq!(insert(4, SCRIPT_COMPILED_BYTES_MAX * 2), (vec![1, 2, 3], SCRIPT_COMPILED_BYTES_MAX * 2));
        // Their texts are there, to be compiled again.
        assert!((0..5).all(|number| cache.text(&[number; 20]).is_some()));
        assert_eq!((cache.compiled_flags(&[3; 20]), cache.compiled_flags(&[4; 20]).is_some()), (None, true));
        // The oldest of all is the last that was compiled, by another interpreter as well.
        assert_eq!(cache.insert([0; 20], b"", ScriptFlags::default(), SCRIPT_COMPILED_BYTES_MAX), [[4; 20]]);
        cache.forget_compiled();
        assert_eq!((cache.compiled_bytes, cache.compiled_flags(&[0; 20])), (0, None));
        assert!(cache.insert([1; 20], b"", ScriptFlags::default(), 5).is_empty());
        assert_eq!(cache.insert([0; 20], b"", ScriptFlags::default(), SCRIPT_COMPILED_BYTES_MAX), [[1; 20]]);
        assert!(cache.compiled_flags(&[0; 20]).is_some());
    }

    #[test]
    fn the_oldest_compiled_scripts_make_room() {
        let mut cache = Cache::default();
        for number in 0..5 {
            cache.insert([number; 20], b"", ScriptFlags::default(), 10);
        }
        assert_eq!(cache.make_room(11), [[0; 20], [1; 20]]);
        assert_eq!((cache.compiled_bytes(), cache.len()), (30, 5));
        assert_eq!(cache.make_room(usize::MAX).len(), 3);
        assert!(cache.make_room(1).is_empty() && cache.compiled.is_empty());
        assert_eq!((cache.compiled_bytes(), cache.bytes()), (0, 5 * SCRIPT_COST_BYTES));
    }
}
