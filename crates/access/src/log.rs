//! The log of denials that `ACL LOG` shows: the latest, alike ones counted together.

use std::collections::VecDeque;

use respool_wire::Encoder;

use crate::limits::{LOG_COMPARED_MAX, LOG_ENTRIES_MAX, LOG_OBJECT_BYTES_MAX};

/// Alike denials are counted together if the last was at most so long ago.
const ALIKE_MS: u64 = 60_000;

/// What was denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A command.
    Command,
    /// A key.
    Key,
    /// A channel.
    Channel,
    /// To authenticate.
    Auth,
}

impl Reason {
    fn name(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::Key => "key",
            Self::Channel => "channel",
            Self::Auth => "auth",
        }
    }
}

/// Where it was denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// To a request by itself.
    TopLevel,
    /// To a request within a transaction.
    Multi,
    /// To a command that a script has called.
    Lua,
}

impl Place {
    fn name(self) -> &'static str {
        match self {
            Self::TopLevel => "toplevel",
            Self::Multi => "multi",
            Self::Lua => "lua",
        }
    }
}

/// One denial.
#[derive(Clone, Copy, Debug)]
pub struct Denied<'a> {
    /// What was denied.
    pub reason: Reason,
    /// Where.
    pub place: Place,
    /// The command's name, the key or the channel; for [`Reason::Auth`] the command as it was sent.
    pub object: &'a [u8],
    /// The user; for [`Reason::Auth`] the name that was given.
    pub user: &'a [u8],
    /// The client's line of `CLIENT LIST`.
    pub client: &'a str,
    /// When, in milliseconds of the Unix clock.
    pub unix_ms: u64,
}

#[derive(Clone, Debug)]
struct Entry {
    count: u64,
    reason: Reason,
    place: Place,
    object: Box<[u8]>,
    user: Box<[u8]>,
    client: Box<str>,
    unix_ms: u64,
}

/// The latest denials, the newest first.
#[derive(Clone, Debug)]
pub struct DenialLog {
    entries: VecDeque<Entry>,
    entries_max: usize,
}

impl Default for DenialLog {
    fn default() -> Self {
        Self { entries: VecDeque::new(), entries_max: LOG_ENTRIES_MAX }
    }
}

impl DenialLog {
    /// Keeps at most so many entries from now on.
    pub fn set_entries_max(&mut self, entries_max: usize) {
        self.entries_max = entries_max;
        self.entries.truncate(entries_max);
    }

    /// Adds a denial, or counts it with one that is alike.
    pub fn add(&mut self, denied: Denied<'_>) {
        let cut = |bytes: &[u8]| Box::from(bytes.get(..LOG_OBJECT_BYTES_MAX).unwrap_or(bytes));
        let (object, user): (Box<[u8]>, Box<[u8]>) = (cut(denied.object), cut(denied.user));
        let is_alike = |entry: &Entry| {
            entry.reason == denied.reason
                && entry.place == denied.place
                && entry.unix_ms.abs_diff(denied.unix_ms) <= ALIKE_MS
                && entry.object == object
                && entry.user == user
        };
        let alike = self.entries.iter().take(LOG_COMPARED_MAX).position(is_alike);
        let count = alike.and_then(|at| self.entries.remove(at)).map_or(1, |entry| entry.count + 1);
        let (reason, place, client) = (denied.reason, denied.place, denied.client.into());
        self.entries.push_front(Entry { count, reason, place, object, user, client, unix_ms: denied.unix_ms });
        self.entries.truncate(self.entries_max);
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.entries.clear();
    }

    /// Answers with the newest `count` entries.
    pub fn write(&self, count: usize, unix_ms: u64, reply: &mut Encoder<'_>) {
        let count = count.min(self.entries.len());
        reply.array(count);
        for entry in self.entries.iter().take(count) {
            reply.map(7);
            reply.bulk(b"count");
            reply.integer(i64::try_from(entry.count).unwrap_or(i64::MAX));
            for (name, value) in [
                ("reason", entry.reason.name().as_bytes()),
                ("context", entry.place.name().as_bytes()),
                ("object", &entry.object),
                ("username", &entry.user),
            ] {
                reply.bulk(name.as_bytes());
                reply.bulk(value);
            }
            reply.bulk(b"age-seconds");
            reply.double(unix_ms.saturating_sub(entry.unix_ms) as f64 / 1000.0);
            reply.bulk(b"client-info");
            reply.bulk(entry.client.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn denied(object: &'static str, unix_ms: u64) -> Denied<'static> {
        let (reason, place, user) = (Reason::Key, Place::TopLevel, &b"u"[..]);
        Denied { reason, place, object: object.as_bytes(), user, client: "id=1", unix_ms }
    }

    #[test]
    fn alike_denials_are_one_entry_and_old_ones_go() {
        let mut log = DenialLog::default();
        log.add(denied("a", 0));
        log.add(denied("b", 1));
        log.add(denied("a", 60_000));
        assert_eq!(
            log.entries.iter().map(|entry| (entry.count, &*entry.object)).collect::<Vec<_>>(),
            [(2, &b"a"[..]), (1, &b"b"[..])]
        );
        log.add(denied("a", 120_001));
        assert_eq!(log.entries.len(), 3, "too long ago to be alike");
        for n in 0..1_000 {
            log.add(Denied { user: format!("u{n}").as_bytes(), ..denied("x", 0) });
        }
        assert_eq!(log.entries.len(), LOG_ENTRIES_MAX);
        log.set_entries_max(1);
        assert_eq!(log.entries.len(), 1);
    }
}
