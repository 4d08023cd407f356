//! The texts of scripts by their hashes.

use std::collections::{BTreeMap, VecDeque};

use sha1::{Digest, Sha1};

use crate::limits::{SCRIPT_CACHE_BYTES_MAX, SCRIPT_COMPILED_BYTES_MAX, SCRIPT_COST_BYTES};
use crate::script::shebang::ScriptFlags;

/// The hash that names a script.
pub(super) type Hash = [u8; 20];

/// Scripts by their hashes, the oldest forgotten first.
#[derive(Default)]
pub(super) struct Cache {
    by_hash: BTreeMap<Hash, Cached>,
    in_order: VecDeque<Hash>,
    bytes: usize,
    compiled_bytes: usize,
}

struct Cached {
    text: Box<[u8]>,
    flags: ScriptFlags,
    /// What it takes in the interpreter that there is now. `None`: that does not know it.
    compiled_bytes: Option<usize>,
}

impl Cache {
    pub(super) fn flags(&self, hash: &Hash) -> Option<ScriptFlags> {
        self.by_hash.get(hash).map(|cached| cached.flags)
    }

    /// The flags of a script that the interpreter knows.
    pub(super) fn compiled_flags(&self, hash: &Hash) -> Option<ScriptFlags> {
        self.by_hash.get(hash).filter(|cached| cached.compiled_bytes.is_some()).map(|cached| cached.flags)
    }

    /// There is another interpreter, which knows no script.
    pub(super) fn forget_compiled(&mut self) {
        self.by_hash.values_mut().for_each(|cached| cached.compiled_bytes = None);
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

    /// Keeps a script that takes so many bytes in the interpreter; gives the hashes of those that have to go for it.
    pub(super) fn insert(&mut self, hash: Hash, text: &[u8], flags: ScriptFlags, compiled_bytes: usize) -> Vec<Hash> {
        let cached = Cached { text: text.into(), flags, compiled_bytes: Some(compiled_bytes) };
        self.compiled_bytes += compiled_bytes;
        match self.by_hash.insert(hash, cached) {
            Some(before) => self.compiled_bytes -= before.compiled_bytes.unwrap_or(0),
            None => {
                self.in_order.push_back(hash);
                self.bytes += text.len() + SCRIPT_COST_BYTES;
            }
        }
        self.forget(SCRIPT_CACHE_BYTES_MAX, SCRIPT_COMPILED_BYTES_MAX, 1)
    }

    /// Forgets the oldest scripts until what is left takes half as much in the interpreter; gives their hashes.
    pub(super) fn forget_half(&mut self) -> Vec<Hash> {
        self.forget(usize::MAX, self.compiled_bytes / 2, 0)
    }

    /// Forgets the oldest scripts, but for so many, until texts and compiled scripts take no more than this.
    fn forget(&mut self, bytes_max: usize, compiled_bytes_max: usize, kept: usize) -> Vec<Hash> {
        let mut gone = Vec::new();
        while (self.bytes > bytes_max || self.compiled_bytes > compiled_bytes_max) && self.in_order.len() > kept {
            let Some(oldest) = self.in_order.pop_front() else { break };
            if let Some(cached) = self.by_hash.remove(&oldest) {
                self.bytes -= cached.text.len() + SCRIPT_COST_BYTES;
                self.compiled_bytes -= cached.compiled_bytes.unwrap_or(0);
            }
            gone.push(oldest);
        }
        gone
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
        // One that was known to another interpreter counts once.
        cache.forget_compiled();
        assert_eq!((cache.compiled_bytes, cache.compiled_flags(&[4; 20])), (0, None));
        cache.insert([4; 20], b"", ScriptFlags::default(), 5);
        for number in 5..9 {
            cache.insert([number; 20], b"", ScriptFlags::default(), 5);
        }
        assert_eq!(cache.forget_half(), [[4; 20], [5; 20], [6; 20]]);
        assert_eq!((cache.compiled_bytes, cache.len()), (10, 2));
        assert_eq!(cache.forget_half().len(), 1);
        assert_eq!(cache.forget_half().len(), 1);
        assert_eq!((cache.forget_half().len(), cache.compiled_bytes, cache.bytes), (0, 0, 0));
    }
}
