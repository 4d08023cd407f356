//! What is kept of a request until it is answered, to be told to callers whose time is over behind it.
//!
//! How it begins is copied as it is, in one piece of a known size, to where its caller waits: what it says is found out when a caller is told of it, which is
//! seldom. It is put aside when its caller leaves, and forgotten when the reply comes that no caller wants.

use crate::{Command, RequestAhead};
use bytes::Bytes;
use respool_command::lookup;
use std::time::Duration;

/// How much of a request is kept: a name and a short key.
pub(crate) const START_BYTES: usize = 32;

/// What is kept of one request.
#[derive(Clone, Debug, Default)]
pub(super) struct Note {
    /// How its arguments begin, as they are sent.
    start: [u8; START_BYTES],
    /// Bytes of its arguments as they are sent.
    bytes: usize,
    /// When it was queued, on the clock of the connection.
    at_us: u64,
}

impl Note {
    #[inline]
    pub(super) fn set(&mut self, command: &Command, now_us: u64) {
        (self.start, self.bytes, self.at_us) = (*command.start(), command.argument_bytes(), now_us);
    }

    /// What is told of it.
    #[cold]
    pub(super) fn ahead(&self, now_us: u64, reply_bytes: usize) -> RequestAhead {
        let mut words = Words(&self.start);
        let name = words.next().unwrap_or_default();
        let has_key_first = lookup(name).is_some_and(|row| row.keys.single() == Some(1));
        RequestAhead {
            command: String::from_utf8_lossy(name).into_owned(),
            key: words.next().filter(|_| has_key_first).map(Bytes::copy_from_slice),
            argument_bytes: self.bytes,
            reply_bytes,
            age: Duration::from_micros(now_us.saturating_sub(self.at_us)),
        }
    }
}

/// The arguments at the beginning of a request that are there as a whole.
struct Words<'t>(&'t [u8]);

impl<'t> Iterator for Words<'t> {
    type Item = &'t [u8];

    fn next(&mut self) -> Option<&'t [u8]> {
        let text = self.0.strip_prefix(b"$")?;
        let end = text.iter().position(|&byte| byte == b'\r')?;
        let length: usize = std::str::from_utf8(&text[..end]).ok()?.parse().ok()?;
        let (word, rest) = text.get(end + 2..)?.split_at_checked(length)?;
        self.0 = rest.strip_prefix(b"\r\n").unwrap_or_default();
        Some(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cmd;

    fn noted(command: &Command) -> Note {
        let mut note = Note::default();
        note.set(command, 7);
        note
    }

    #[test]
    fn a_request_says_its_name_and_a_key_that_fits() {
        let of = |command: &Command| {
            let RequestAhead { command, key, argument_bytes, .. } = noted(command).ahead(9, 0);
            (command, key.map(|key| String::from_utf8(key.to_vec()).unwrap()), argument_bytes)
        };
        let told = |name: &str, key: Option<&str>, bytes| (name.to_owned(), key.map(str::to_owned), bytes);
        assert_eq!(of(&cmd("GET").key("k")), told("GET", Some("k"), 16));
        assert_eq!(of(&cmd("hgetall").key("user:123456")), told("hgetall", Some("user:123456"), 31));
        assert_eq!(of(&cmd("SET").key("k").arg(vec![b'v'; 1_000])), told("SET", Some("k"), 16 + 7 + 1_002));
        // Longer than what is kept, no key, and not known to be one.
        assert_eq!(of(&cmd("GET").key("k".repeat(100))), told("GET", None, 9 + 6 + 102));
        assert_eq!(of(&cmd("PING")), told("PING", None, 10));
        assert_eq!(of(&cmd("CONFIG GET").arg("secret")).1, None);
        assert_eq!(of(&cmd("EVAL").arg("secret").arg(0)).1, None);
        assert_eq!(of(&cmd("NEW.ONE").arg("secret")), told("NEW.ONE", None, 13 + 12));
        let value = Bytes::from(vec![b'v'; 1 << 20]);
        assert_eq!(of(&cmd("SET").key("k").arg(value)), told("SET", Some("k"), 16 + 10 + (1 << 20) + 2));
        assert_eq!(noted(&cmd("PING")).ahead(9, 5).age, Duration::from_micros(2));
    }
}
