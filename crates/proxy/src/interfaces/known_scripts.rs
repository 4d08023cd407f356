//! Scripts that clients have brought, and which of them a node has been given.

use crate::limits::{SCRIPT_BYTES_MAX, SCRIPTS_BYTES_MAX, SCRIPTS_GIVEN_MAX};
use respool_command::{Command, Row, ScriptingCommand};
use respool_wire::Args;
use sha1::{Digest, Sha1};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// The hash that names a script.
pub(crate) type Hash = [u8; 20];

/// Whether a request is a `SCRIPT FLUSH` that a node executes, and does not refuse for its arguments.
pub(crate) fn flushes_scripts(row: &Row, args: Args<'_>) -> bool {
    let is_mode = |mode: &[u8]| [&b"SYNC"[..], b"ASYNC"].iter().any(|known| mode.eq_ignore_ascii_case(known));
    row.command == Command::Scripting(ScriptingCommand::ScriptFlush)
        && args.len() <= 3
        && args.get(2).is_none_or(is_mode)
}

/// Scripts by their hashes, the oldest forgotten first.
#[derive(Debug, Default)]
pub(crate) struct Scripts {
    pub(crate) by_hash: BTreeMap<Hash, Arc<[u8]>>,
    pub(crate) in_order: VecDeque<Hash>,
    pub(crate) bytes: usize,
    /// How often nodes have been known to forget what connections have given them.
    flushes: u64,
}

/// The scripts that one connection has given its node for transactions, where it is too late to bring one back.
#[derive(Debug, Default)]
pub(crate) struct LoadedScripts {
    hashes: BTreeSet<Hash>,
    flushes: u64,
}

/// A script that a transaction names by its hash.
#[derive(Clone, Debug)]
pub(crate) struct NamedScript {
    pub(crate) hash: Hash,
    pub(crate) script: Arc<[u8]>,
}

impl NamedScript {
    pub(crate) fn hash(&self) -> Hash {
        self.hash
    }
}

impl LoadedScripts {
    /// Whether a script has to be given first; it counts as given then.
    pub(crate) fn lacks(&mut self, named: &NamedScript, scripts: &Scripts) -> bool {
        if self.flushes != scripts.flushes || self.hashes.len() >= SCRIPTS_GIVEN_MAX {
            *self = Self { flushes: scripts.flushes, ..Self::default() };
        }
        self.hashes.insert(named.hash)
    }
}

impl Scripts {
    /// Remembers a script.
    pub(crate) fn note(&mut self, script: &[u8]) {
        if script.len() > SCRIPT_BYTES_MAX {
            return;
        }
        let hash: Hash = Sha1::digest(script).into();
        if self.by_hash.contains_key(&hash) {
            return;
        }
        self.by_hash.insert(hash, script.into());
        self.in_order.push_back(hash);
        self.bytes += Self::cost(script);
        while self.bytes > SCRIPTS_BYTES_MAX {
            let Some(oldest) = self.in_order.pop_front() else { break };
            self.bytes -= self.by_hash.remove(&oldest).map_or(0, |script| Self::cost(&script));
        }
    }

    /// The bytes that remembering a script takes, about.
    pub(crate) fn cost(script: &[u8]) -> usize {
        script.len() + 128
    }

    /// The script of a hash, written as a request does.
    pub(crate) fn find(&self, hash: &[u8]) -> Option<Arc<[u8]>> {
        self.by_hash.get(&parsed(hash)?).cloned()
    }

    /// The script that a request of a transaction names, if it names one that is known.
    pub(crate) fn named(&self, row: &Row, args: Args<'_>) -> Option<NamedScript> {
        use ScriptingCommand as S;
        let is_by_hash = matches!(row.command, Command::Scripting(S::Evalsha | S::EvalshaRo));
        let hash = is_by_hash.then(|| parsed(args.get(1)?)).flatten()?;
        Some(NamedScript { hash, script: self.by_hash.get(&hash)?.clone() })
    }

    /// A node lacks a script that it was given: others may lack theirs.
    pub(crate) fn note_flushed(&mut self) {
        self.flushes += 1;
    }

    pub(crate) fn forget_all(&mut self) {
        *self = Self { flushes: self.flushes + 1, ..Self::default() };
    }
}

/// Forty hexadecimal digits in any case.
fn parsed(text: &[u8]) -> Option<Hash> {
    let text = std::str::from_utf8(text).ok().filter(|text| text.len() == 40 && text.is_ascii())?;
    let mut hash = Hash::default();
    for (at, byte) in hash.iter_mut().enumerate() {
        let digits = text.get(2 * at..2 * at + 2)?;
        if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        *byte = u8::from_str_radix(digits, 16).ok()?;
    }
    Some(hash)
}

#[cfg(test)]
mod tests {
    use super::*;
    use respool_command::resolve;
    use respool_wire::ArgsBuf;

    fn digits(script: &[u8]) -> String {
        Sha1::digest(script).iter().map(|byte| format!("{byte:02X}")).collect()
    }

    #[test]
    fn a_script_is_found_by_its_hash_in_any_case() {
        let mut scripts = Scripts::default();
        scripts.note(b"return 1");
        let hash = digits(b"return 1");
        for written in [hash.clone(), hash.to_ascii_lowercase()] {
            assert_eq!(scripts.find(written.as_bytes()).as_deref(), Some(&b"return 1"[..]));
        }
        for odd in [&hash[..39], "", &format!("+{}", &hash[1..]), &"g".repeat(40), &"\u{e9}".repeat(20)] {
            assert!(scripts.find(odd.as_bytes()).is_none(), "{odd}");
        }
    }

    #[test]
    fn the_oldest_scripts_are_forgotten_for_want_of_room() {
        let mut scripts = Scripts::default();
        let script = |n: usize| [n.to_string().into_bytes(), vec![b' '; SCRIPT_BYTES_MAX - 20]].concat();
        let count = SCRIPTS_BYTES_MAX / Scripts::cost(&script(0)) + 2;
        (0..count).for_each(|n| scripts.note(&script(n)));
        assert!(scripts.bytes <= SCRIPTS_BYTES_MAX);
        assert!(scripts.find(digits(&script(0)).as_bytes()).is_none());
        assert!(scripts.find(digits(&script(count - 1)).as_bytes()).is_some());
        let held: usize = scripts.by_hash.values().map(|script| Scripts::cost(script)).sum();
        assert_eq!(scripts.bytes, held);
        scripts.note(&vec![b'x'; SCRIPT_BYTES_MAX + 1]);
        assert_eq!(scripts.bytes, held, "one that is too large is not remembered");
    }

    #[test]
    fn a_connection_is_given_a_script_once_until_nodes_forget_them() {
        let mut scripts = Scripts::default();
        scripts.note(b"return 1");
        let named = |scripts: &Scripts, request: String| {
            let args: ArgsBuf = request.split(' ').collect();
            scripts.named(resolve(args.as_args()).expect("it has a row"), args.as_args())
        };
        let hash = digits(b"return 1");
        let known = named(&scripts, format!("EVALSHA {hash} 0")).expect("it is known");
        assert!(named(&scripts, format!("EVAL {hash} 0")).is_none(), "that is the script itself");
        let mut given = LoadedScripts::default();
        assert!(given.lacks(&known, &scripts));
        assert!(!given.lacks(&known, &scripts));
        scripts.note_flushed();
        assert!(given.lacks(&known, &scripts));
        scripts.forget_all();
        assert!(given.lacks(&known, &scripts));
    }
}
