//! The texts of scripts by their hashes.

use std::collections::{BTreeMap, VecDeque};

use sha1::{Digest, Sha1};

use crate::limits::{SCRIPT_CACHE_BYTES_MAX, SCRIPT_COST_BYTES};
use crate::script::shebang::ScriptFlags;

/// The hash that names a script.
pub(super) type Hash = [u8; 20];

/// Scripts by their hashes, the oldest forgotten first.
#[derive(Default)]
pub(super) struct Cache {
    by_hash: BTreeMap<Hash, Cached>,
    in_order: VecDeque<Hash>,
    bytes: usize,
}

struct Cached {
    text: Box<[u8]>,
    flags: ScriptFlags,
    /// The interpreter that there is now knows it.
    is_compiled: bool,
}

impl Cache {
    pub(super) fn flags(&self, hash: &Hash) -> Option<ScriptFlags> {
        self.by_hash.get(hash).map(|cached| cached.flags)
    }

    /// The flags of a script that the interpreter knows.
    pub(super) fn compiled_flags(&self, hash: &Hash) -> Option<ScriptFlags> {
        self.by_hash.get(hash).filter(|cached| cached.is_compiled).map(|cached| cached.flags)
    }

    /// There is another interpreter, which knows no script.
    pub(super) fn forget_compiled(&mut self) {
        self.by_hash.values_mut().for_each(|cached| cached.is_compiled = false);
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

    /// Keeps a script; gives the hashes of those that have to go for it.
    pub(super) fn insert(&mut self, hash: Hash, text: &[u8], flags: ScriptFlags) -> Vec<Hash> {
        let mut gone = Vec::new();
        if self.by_hash.insert(hash, Cached { text: text.into(), flags, is_compiled: true }).is_some() {
            return gone;
        }
        self.in_order.push_back(hash);
        self.bytes += text.len() + SCRIPT_COST_BYTES;
        while self.bytes > SCRIPT_CACHE_BYTES_MAX && self.in_order.len() > 1 {
            let Some(oldest) = self.in_order.pop_front() else { break };
            let text = self.by_hash.remove(&oldest).map_or(0, |cached| cached.text.len());
            self.bytes -= text + SCRIPT_COST_BYTES;
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
            (0..5).map(|number| cache.insert([number; 20], &text, ScriptFlags::default())).collect();
        assert_eq!(gone.concat(), [[0; 20], [1; 20]]);
        assert!(cache.bytes <= SCRIPT_CACHE_BYTES_MAX && cache.len() == 3);
    }
}
