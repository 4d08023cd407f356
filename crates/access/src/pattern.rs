//! Patterns of keys, each with what is allowed of the keys it matches.

use respool_command::{KeyAccess, glob};

use crate::c_string;
use crate::rule::RuleError;

/// What is allowed of keys, or needed of one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rights {
    pub(crate) read: bool,
    pub(crate) write: bool,
}

impl Rights {
    pub(crate) const READ: Self = Self { read: true, write: false };
    const ALL: Self = Self { read: true, write: true };

    /// What a command that uses a key so needs of it. It may be nothing: then any pattern that matches will do.
    pub(crate) fn needed(access: KeyAccess) -> Self {
        Self { read: access.needs_read(), write: access.needs_write() }
    }

    fn covers(self, needed: Self) -> bool {
        (self.read || !needed.read) && (self.write || !needed.write)
    }
}

/// One pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyPattern {
    pub(crate) rights: Rights,
    pub(crate) glob: Box<[u8]>,
}

impl KeyPattern {
    /// From `~glob` or `%R~glob`, `%W~glob`, `%RW~glob`.
    pub(crate) fn parse(rule: &[u8]) -> Result<Self, RuleError> {
        let (rights, glob) = match rule {
            [b'~', glob @ ..] => (Rights::ALL, glob),
            [_, said @ ..] => rights(said)?,
            [] => return Err(RuleError::Syntax),
        };
        if c_string::has_space(glob) {
            return Err(RuleError::Syntax);
        }
        Ok(Self { rights, glob: glob.into() })
    }

    /// Whether it gives these rights on a key.
    pub(crate) fn allows(&self, key: &[u8], needed: Rights) -> bool {
        self.rights.covers(needed) && glob::matches(&self.glob, key)
    }

    /// Whether it gives these rights on every key.
    pub(crate) fn allows_all(&self, needed: Rights) -> bool {
        self.rights.covers(needed) && *self.glob == *b"*"
    }

    /// Appends the rule.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.sign());
        out.extend_from_slice(&self.glob);
    }

    /// What the rule begins with.
    pub(crate) fn sign(&self) -> &'static [u8] {
        match (self.rights.read, self.rights.write) {
            (true, false) => b"%R~",
            (false, true) => b"%W~",
            _ => b"~",
        }
    }
}

/// Reads the letters between `%` and `~`, each at most once. The `~` may be missing: then the pattern is empty.
fn rights(said: &[u8]) -> Result<(Rights, &[u8]), RuleError> {
    let mut rights = Rights::default();
    let mut at = 0;
    for byte in said {
        at += 1;
        match byte.to_ascii_uppercase() {
            b'R' if !rights.read => rights.read = true,
            b'W' if !rights.write => rights.write = true,
            b'~' => break,
            _ => return Err(RuleError::Syntax),
        }
    }
    if rights == Rights::default() {
        return Err(RuleError::Syntax);
    }
    Ok((rights, said.get(at..).unwrap_or_default()))
}
