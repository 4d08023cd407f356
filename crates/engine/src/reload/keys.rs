//! `DEBUG RELOAD`: every key is serialised and read back, as if the server had written a snapshot and started from it.
//!
//! The round trip is made key by key and in memory, so that it needs room for one value more, and a value that cannot be read back stays
//! what it was. What was serialised last is kept while it is small, for `DEBUG RELOAD NOSAVE`.

use crate::keyspace::{At, Expiry, Form, Found, Keyspace};
use crate::limits::STRING_BYTES_MAX;
use crate::rdb::{self, Loaded, Reader, Stored, Writer, payload};
use crate::snapshot::{Saved, Snapshot};

/// Which databases and keys could not be read back.
#[derive(Debug)]
pub(crate) struct Unreadable;

impl Keyspace {
    /// Bytes that a value takes when it is serialised, without its type.
    pub(crate) fn serialised_bytes(&self, found: Found) -> usize {
        self.serialised(found).len().saturating_sub(1)
    }

    fn serialised(&self, found: Found) -> Vec<u8> {
        let mut writer = Writer::new();
        let stored = self.object(found).map(Stored::Object).or_else(|| self.text(found).map(Stored::Text));
        if let Some(stored) = stored {
            rdb::write(&mut writer, stored, &self.heap);
        }
        writer.finish()
    }

    /// Serialises every key and reads it back; keys whose time has come, or that of all their fields, are left out. Returns the snapshot
    /// if it is small enough to be kept.
    pub(crate) fn reload(&mut self, now: i64) -> Result<Option<Snapshot>, Unreadable> {
        let mut snapshot = Some(Snapshot::default());
        for database in 0..self.databases.len() {
            let at = At { database, now };
            for key in self.keys_to_replace(database) {
                let Some(found) = self.find_expired_too(database, &key) else { continue };
                if self.has_passed(found, now) {
                    self.remove(database, found);
                    continue;
                }
                let deadline = self.deadline(found);
                let payload = payload::seal(self.serialised(found));
                self.load(at, &key, deadline, &payload)?;
                let saved = Saved { database, key, deadline, payload };
                snapshot = snapshot.and_then(|mut snapshot| snapshot.keep(saved).then_some(snapshot));
            }
        }
        Ok(snapshot)
    }

    /// Gives another keyspace with as many databases all keys whose time has not come.
    #[cfg(feature = "scripting")]
    pub(crate) fn copy_to(&self, other: &mut Self, now: i64) -> Result<(), Unreadable> {
        for database in 0..self.databases.len() {
            for key in self.all_keys(database) {
                let Some(found) = self.find_expired_too(database, &key) else { continue };
                if !self.has_passed(found, now) {
                    let payload = payload::seal(self.serialised(found));
                    other.load(At { database, now }, &key, self.deadline(found), &payload)?;
                }
            }
        }
        Ok(())
    }

    /// Puts the keys of a snapshot where they were, over whatever is there.
    pub(crate) fn restore(&mut self, now: i64, snapshot: &Snapshot) -> Result<(), Unreadable> {
        for Saved { database, key, deadline, payload } in &snapshot.keys {
            if *database < self.databases.len() && deadline.is_none_or(|deadline| deadline >= now) {
                self.load(At { database: *database, now }, key, *deadline, payload)?;
            }
        }
        Ok(())
    }

    /// Gives a key what is serialised. One that cannot be read stays what it was.
    fn load(&mut self, at: At, key: &[u8], deadline: Option<i64>, payload: &[u8]) -> Result<(), Unreadable> {
        let value = payload::open(payload).ok_or(Unreadable)?;
        let loaded = rdb::read(&mut Reader::new(value), &mut self.heap).map_err(|rdb::Broken| Unreadable)?;
        let expiry = deadline.map_or(Expiry::Never, Expiry::At);
        match loaded {
            Loaded::Text(text) if text.len() > STRING_BYTES_MAX => return Err(Unreadable),
            Loaded::Text(text) => self.set_text(at, key, &text, expiry, Form::Smallest),
            Loaded::Object(object) => self.set_object(at, key, object, expiry),
        }
        Ok(())
    }
}
