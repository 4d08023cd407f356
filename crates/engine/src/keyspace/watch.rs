//! Which sessions watch which keys, so that a transaction runs only if nothing of it has changed.
//!
//! The keyspace tells of every change of a key, and of nothing else. A session is told nothing: it asks once, when its
//! transaction is to run. Once a key has changed, it has no watchers: those that it had are stale for good, so a key that is
//! written over and over costs its watchers once.
//!
//! Migrations of keys watch them as well, under numbers of their own. They also have to know of changes that are none for
//! `WATCH`, such as those of a stream's groups: what they have serialised is no longer what there is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use respool_command::MOVERS_FROM;

use super::{At, Keyspace};

/// What keeping a watched key takes beside its bytes, about.
const KEY_COST_BYTES: usize = 128;

/// What one session watches.
#[derive(Default)]
struct Watcher {
    keys: BTreeSet<(usize, Arc<[u8]>)>,
    key_bytes: usize,
    is_stale: bool,
}

/// All sessions that watch something, by the number that each is known by.
#[derive(Default)]
pub(crate) struct Watches {
    watchers: BTreeMap<u64, Watcher>,
    /// By database, the sessions that watch each key.
    keys: BTreeMap<usize, BTreeMap<Arc<[u8]>, BTreeSet<u64>>>,
}

impl Watches {
    /// Whether no session watches a key that has not changed.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// A session watches a key from now on. One that it watches already it watches since then; if one has changed already,
    /// the others do not matter.
    pub(super) fn add(&mut self, session: u64, database: usize, key: &[u8]) {
        let watcher = self.watchers.entry(session).or_default();
        if watcher.is_stale {
            return;
        }
        let keys = self.keys.entry(database).or_default();
        let key = keys.get_key_value(key).map_or_else(|| key.into(), |(key, _)| Arc::clone(key));
        if watcher.keys.insert((database, Arc::clone(&key))) {
            watcher.key_bytes += key.len() + KEY_COST_BYTES;
            keys.entry(key).or_default().insert(session);
        }
    }

    /// A key has changed.
    pub(super) fn spoil(&mut self, database: usize, key: &[u8]) {
        let Some(keys) = self.keys.get_mut(&database) else { return };
        let Some(sessions) = keys.remove(key) else { return };
        if keys.is_empty() {
            self.keys.remove(&database);
        }
        for session in sessions {
            if let Some(watcher) = self.watchers.get_mut(&session) {
                watcher.is_stale = true;
            }
        }
    }

    /// A key has changed in a way that is no change for `WATCH`.
    pub(super) fn spoil_movers(&mut self, database: usize, key: &[u8]) {
        let Some(sessions) = self.keys.get_mut(&database).and_then(|keys| keys.get_mut(key)) else { return };
        let movers = sessions.split_off(&MOVERS_FROM);
        let is_unwatched = sessions.is_empty();
        for mover in movers {
            if let Some(watcher) = self.watchers.get_mut(&mover) {
                watcher.is_stale = true;
            }
        }
        if is_unwatched {
            // It was the last one.
            self.spoil(database, key);
        }
    }

    /// The keys of a database that are watched.
    pub(super) fn keys_of(&self, database: usize) -> Vec<Arc<[u8]>> {
        self.keys.get(&database).map_or_else(Vec::new, |keys| keys.keys().cloned().collect())
    }

    /// What a session watches and where, unless something of it has changed already.
    pub(super) fn of(&self, session: u64) -> Vec<(usize, Arc<[u8]>)> {
        let watcher = self.watchers.get(&session).filter(|watcher| !watcher.is_stale);
        watcher.map_or_else(Vec::new, |watcher| watcher.keys.iter().cloned().collect())
    }

    /// Whether something that a session watches has changed.
    pub(super) fn is_stale(&self, session: u64) -> bool {
        self.watchers.get(&session).is_some_and(|watcher| watcher.is_stale)
    }

    /// A session watches nothing any more.
    pub(super) fn forget(&mut self, session: u64) {
        let Some(watcher) = self.watchers.remove(&session) else { return };
        for (database, key) in &watcher.keys {
            let Some(keys) = self.keys.get_mut(database) else { continue };
            let Some(sessions) = keys.get_mut(key) else { continue };
            sessions.remove(&session);
            if sessions.is_empty() {
                keys.remove(key);
            }
            if keys.is_empty() {
                self.keys.remove(database);
            }
        }
    }

    /// Bytes that are kept of what a session watches, about.
    pub(super) fn held_bytes(&self, session: u64) -> usize {
        self.watchers.get(&session).map_or(0, |watcher| watcher.key_bytes)
    }
}

impl Keyspace {
    /// A session watches a key from now on.
    pub(crate) fn watch(&mut self, at: At, session: u64, key: &[u8]) {
        self.expire_watched(at, key);
        self.watches.add(session, at.database, key);
        self.settle_noting();
    }

    /// Whether something that a session watches has changed, its time having come included.
    pub(crate) fn is_dirty(&mut self, now: i64, session: u64) -> bool {
        for (database, key) in self.watches.of(session) {
            self.expire_watched(At { database, now }, &key);
        }
        self.watches.is_stale(session)
    }

    /// Removes a key whose time has come, also while keys are kept. It is watched as one that is not there, and that it is removed
    /// later must change nothing; one that was there has changed.
    fn expire_watched(&mut self, at: At, key: &[u8]) {
        let keeps_keys = std::mem::take(&mut self.keeps_keys);
        self.peek(at, key);
        self.keeps_keys = keeps_keys;
    }

    /// A session watches nothing any more.
    pub(crate) fn unwatch(&mut self, session: u64) {
        self.watches.forget(session);
        self.settle_noting();
    }

    /// Bytes that are kept of what a session watches.
    pub(crate) fn watched_bytes(&self, session: u64) -> usize {
        self.watches.held_bytes(session)
    }

    /// All keys of a database go: those of them that are watched have changed.
    pub(super) fn spoil_all(&mut self, database: usize) {
        for key in self.watches.keys_of(database) {
            if self.place_of(database, &key).is_some() {
                self.watches.spoil(database, &key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::Script;
    use respool_command::Execute;
    use respool_wire::{Args, ArgsBuf};

    #[test]
    fn those_who_watch_a_key_that_changed_are_stale() {
        let mut watches = Watches::default();
        for (session, database, key) in [(1, 0, b"a"), (1, 0, b"b"), (1, 0, b"a"), (2, 0, b"b"), (3, 1, b"a")] {
            watches.add(session, database, key);
        }
        assert_eq!(watches.held_bytes(1), 2 * watches.held_bytes(2));
        watches.spoil(0, b"a");
        watches.spoil(2, b"a");
        assert_eq!((watches.of(1).len(), watches.of(2).len(), watches.of(3).len()), (0, 1, 1));
        assert!(watches.is_stale(1) && !watches.is_stale(2) && !watches.is_stale(4));
        watches.forget(1);
        watches.forget(2);
        assert!(!watches.is_stale(1) && !watches.is_empty());
        watches.spoil(1, b"a");
        assert!(watches.is_empty(), "a key that changed costs its watchers once");
        assert!(watches.is_stale(3));
    }

    /// A session watches a key, named twice. The bytes that are kept of it.
    fn watch(script: &mut Script, session: u64) -> usize {
        let keys: ArgsBuf = ["k", "k"].into_iter().collect();
        script.engine.watch(session, script.session.database, script.session.now, keys.as_args())
    }

    /// Whether the transaction of a session that watches `k` may not run after others have said `lines`.
    fn is_stopped(script: &mut Script, lines: &[&str]) -> bool {
        watch(script, 1);
        for line in lines {
            match line.strip_prefix('@') {
                Some(millis) => script.session.now.0 += millis.parse::<u64>().expect("milliseconds"),
                None => _ = script.say(line),
            }
        }
        let is_dirty = script.engine.is_dirty(1, script.session.now);
        script.engine.unwatch(1);
        assert!(!script.engine.is_dirty(1, script.session.now), "it watches nothing any more");
        is_dirty
    }

    #[test]
    fn only_a_change_stops_a_transaction() {
        let mut script = Script::new();
        for (lines, expected) in [
            (&["GET k", "DEL k", "EXPIRE k 1", "APPEND other x"][..], false),
            (&["SET k 1"], true),
            (&["SETNX k 2", "GETEX k", "PERSIST k", "INCRBY k x"], false),
            (&["GETEX k PX 100"], true),
            (&["GET k"], false),
            // The key's time comes: first it is still stored, then it was gone before.
            (&["@101"], true),
            (&["GET k", "@1"], false),
            (&["SET k 1", "DEL k"], true),
            (&["SWAPDB 0 1", "FLUSHALL", "FLUSHDB"], false),
        ] {
            assert_eq!(is_stopped(&mut script, lines), expected, "{lines:?}");
        }
    }

    #[test]
    fn who_moves_a_stream_hears_of_its_groups_and_watch_does_not() {
        for (line, is_change) in [
            ("XGROUP CREATE k h 0", true),
            ("XGROUP CREATE k g 0", false),
            ("XGROUP SETID k g 0", true),
            ("XGROUP CREATECONSUMER k g other", true),
            ("XGROUP CREATECONSUMER k g c", false),
            ("XGROUP DELCONSUMER k g c", true),
            ("XGROUP DELCONSUMER k g other", false),
            ("XGROUP DESTROY k g", true),
            ("XGROUP DESTROY k h", false),
            ("XREADGROUP GROUP g c STREAMS k >", true),
            ("XREADGROUP GROUP g c NOACK STREAMS k >", true),
            ("XREADGROUP GROUP g c STREAMS k 0", true),
            ("XREAD STREAMS k 0", false),
            ("XACK k g 1-1", true),
            ("XACK k g 2-1", false),
            ("XCLAIM k g other 0 1-1", true),
            ("XCLAIM k g other 0 2-1", false),
            ("XCLAIM k g other 0 2-1 LASTID 2-1", true),
            ("XAUTOCLAIM k g other 0 0", true),
            ("XAUTOCLAIM k g other 100000 0", false),
            ("XSETID k 9-9", true),
        ] {
            let mut script = Script::new();
            for made in
                ["XADD k 1-1 f v", "XADD k 2-1 f v", "XGROUP CREATE k g 0", "XREADGROUP GROUP g c COUNT 1 STREAMS k >"]
            {
                script.say(made);
            }
            let counted = script.engine.counters().changes;
            assert_eq!(watch(&mut script, MOVERS_FROM | 1), watch(&mut script, MOVERS_FROM | 2));
            assert!(!is_stopped(&mut script, &[line]), "{line}: as in Redis");
            for mover in [1, 2] {
                assert_eq!(script.engine.is_dirty(MOVERS_FROM | mover, script.session.now), is_change, "{line}");
                script.engine.unwatch(MOVERS_FROM | mover);
            }
            assert_eq!(script.engine.counters().changes > counted, is_change, "{line}: it is counted");
        }
    }

    #[test]
    fn a_change_that_movers_alone_hear_leaves_other_watchers() {
        let mut watches = Watches::default();
        for session in [1, MOVERS_FROM, u64::MAX] {
            watches.add(session, 0, b"a");
        }
        watches.add(MOVERS_FROM + 1, 0, b"b");
        watches.spoil_movers(0, b"none");
        watches.spoil_movers(0, b"a");
        watches.spoil_movers(0, b"a");
        let stale = |watches: &Watches| [1, MOVERS_FROM, u64::MAX, MOVERS_FROM + 1].map(|it| watches.is_stale(it));
        assert_eq!(stale(&watches), [false, true, true, false]);
        watches.spoil_movers(0, b"b");
        watches.spoil(0, b"a");
        assert_eq!(stale(&watches), [true; 4]);
        assert!(watches.is_empty());
    }

    #[test]
    fn an_expired_key_that_is_removed_has_not_changed() {
        let mut script = Script::new();
        script.say("SET k 1 PX 5");
        script.session.now.0 += 6;
        assert!(!is_stopped(&mut script, &["GET k", "DEL k"]));
        script.say("SET k 1 PX 5");
        assert!(is_stopped(&mut script, &["@6", "GET k"]));
    }

    #[test]
    fn a_key_that_expires_while_keys_are_kept_stops_a_transaction() {
        let mut script = Script::new();
        script.engine.keep_keys(true);
        script.say("SET k 1 PX 5");
        assert!(is_stopped(&mut script, &["@6"]));
        script.say("SET k 1 PX 5");
        script.session.now.0 += 6;
        watch(&mut script, 1);
        script.engine.keep_keys(false);
        assert_eq!(script.say("GET k"), "$-1");
        assert!(!script.engine.is_dirty(1, script.session.now), "it was not there when it was watched");
    }

    #[test]
    fn emptied_or_exchanged_databases_change_what_they_hold() {
        let mut script = Script::new();
        assert!(!is_stopped(&mut script, &["SWAPDB 0 1", "SWAPDB 2 3", "FLUSHALL"]));
        script.say("SET k 1");
        assert!(!is_stopped(&mut script, &["SWAPDB 2 3", "SWAPDB 0 0"]));
        assert!(is_stopped(&mut script, &["SWAPDB 1 0"]));
        assert!(is_stopped(&mut script, &["SWAPDB 0 1"]));
        assert!(is_stopped(&mut script, &["FLUSHDB"]));
        assert!(!is_stopped(&mut script, &["FLUSHDB", "FLUSHALL"]));
    }

    #[test]
    fn what_is_forgotten_stops_nothing() {
        let mut script = Script::new();
        assert!(watch(&mut script, 1) > 0);
        script.engine.unwatch(1);
        script.say("SET k 1");
        assert!(!script.engine.is_dirty(1, script.session.now));
        assert_eq!(script.engine.watch(1, 99, script.session.now, Args::new(&[], &[])), 0, "no such database");
    }
}
