//! The keys that a script reads, for clients that track what they read.
//!
//! A client's script has read what its commands have read, whatever keys its request has named: a key that was named and not read
//! is not remembered, one that was read and not named is.

use std::collections::BTreeSet;

use respool_command::{Flags, KeyPositions, Row};
use respool_wire::Args;

use crate::limits::{SCRIPT_READ_BYTES_KEPT, SCRIPT_READS_KEPT};

/// See the module documentation.
#[derive(Default)]
pub(crate) struct Reads {
    is_wanted: bool,
    /// `None`: there were more than are kept.
    keys: Option<BTreeSet<Box<[u8]>>>,
    /// Bytes of them.
    bytes: usize,
}

impl Reads {
    /// Whether what the next script reads is kept. It may be refused before it begins: then it has read nothing, and not what one has
    /// read whose client has left.
    pub(crate) fn set_wanted(&mut self, is_wanted: bool) {
        self.is_wanted = is_wanted;
        self.begin();
    }

    /// A script begins.
    pub(super) fn begin(&mut self) {
        self.keys = Some(BTreeSet::new());
        self.bytes = 0;
    }

    /// The script runs a command.
    pub(super) fn note(&mut self, row: &Row, args: Args<'_>) {
        if !self.is_wanted || !row.flags.has(Flags::READONLY) {
            return;
        }
        let mut positions = KeyPositions::new();
        if row.keys.positions(args, &mut positions).is_err() {
            return;
        }
        for key in positions.iter().filter_map(|position| args.get(position.index as usize)) {
            let Some(keys) = &mut self.keys else { return };
            // A loop over some keys reads no more than these.
            if keys.contains(key) {
                continue;
            }
            self.bytes += key.len();
            if keys.len() == SCRIPT_READS_KEPT || self.bytes > SCRIPT_READ_BYTES_KEPT {
                self.keys = None;
                return;
            }
            keys.insert(key.into());
        }
    }

    /// What the script has read.
    pub(crate) fn take(&mut self) -> Option<Vec<Box<[u8]>>> {
        self.bytes = 0;
        self.keys.replace(BTreeSet::new()).map(|keys| keys.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::Script;
    use respool_command::Execute;

    fn reads_of(script: &mut Script, source: &str) -> Option<Vec<String>> {
        script.send(&[b"EVAL", source.as_bytes(), b"2", b"a", b"b"]);
        let keys = script.engine.script_reads()?;
        Some(keys.iter().map(|key| String::from_utf8_lossy(key).into_owned()).collect())
    }

    #[test]
    fn keys_that_are_read_are_kept_whether_they_were_named_or_not() {
        let mut script = Script::new();
        script.engine.keep_script_reads(true);
        let mut reads = |source| reads_of(&mut script, source).expect("a few keys");
        assert_eq!(reads("redis.call('set', 'a', 1)"), [""; 0]);
        assert_eq!(reads("redis.call('mget', 'a', 'c')"), ["a", "c"]);
        assert_eq!(reads("redis.call('ping')"), [""; 0], "nothing of the script before");
    }

    #[test]
    fn a_script_that_is_refused_has_not_read_what_another_has() {
        let mut script = Script::new();
        script.engine.keep_script_reads(true);
        script.send(&[b"EVAL", b"redis.call('get', 'secret')", b"0"]);
        // Its client has left: what it has read is not asked for.
        script.engine.keep_script_reads(true);
        assert!(script.send(&[b"EVALSHA", b"x", b"0"]).starts_with(b"-NOSCRIPT"));
        assert_eq!(script.engine.script_reads(), Some(Vec::new()));
    }

    #[test]
    fn a_bounded_number_is_kept_and_none_unless_wanted() {
        let mut script = Script::new();
        let many = format!("for i = 1, {} do redis.call('get', i) end", SCRIPT_READS_KEPT + 1);
        assert_eq!(reads_of(&mut script, &many), Some(Vec::new()), "it was not wanted");
        script.engine.keep_script_reads(true);
        assert_eq!(reads_of(&mut script, &many), None);
        let in_turn = "for i = 1, 99999 do redis.call('get', i % 2 == 0 and 'a' or 'b') end";
        assert_eq!(reads_of(&mut script, in_turn), Some(vec!["a".to_owned(), "b".to_owned()]));
        let large = "local s = string.rep('x', 100000) for i = 1, 100 do redis.call('exists', s .. i) end";
        assert_eq!(reads_of(&mut script, large), None, "few keys, and many bytes");
        assert!(script.engine.script_reads().is_some_and(|keys| keys.is_empty()), "nothing stays");
    }
}
