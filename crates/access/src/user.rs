//! One user: whether it may log in, with what, and what it may do then.

use std::fmt;

use crate::c_string::is_word;
use crate::limits::{PASSWORDS_MAX, RULE_BYTES_MAX, SELECTORS_MAX};
use crate::password::PasswordHash;
use crate::rule::RuleError;
use crate::selector::Selector;

/// What is said about checking serialised values of this user. It is kept and told; Respool checks all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sanitize {
    Unsaid,
    Yes,
    No,
}

/// A user. Changing it makes another value; snapshots share what did not change.
#[derive(Clone)]
pub struct User {
    name: Box<[u8]>,
    /// The snapshot that it was made in: a later user of the same name is another one.
    pub(crate) born: u64,
    pub(crate) is_enabled: bool,
    pub(crate) needs_no_password: bool,
    pub(crate) sanitize: Sanitize,
    pub(crate) passwords: Vec<PasswordHash>,
    /// The user's own permissions.
    pub(crate) root: Selector,
    /// Further ones, each by itself.
    pub(crate) selectors: Vec<Selector>,
    is_all_channels_by_default: bool,
}

impl User {
    /// A user that may not log in and may do nothing. Whether channels are allowed unless a rule says otherwise is a setting.
    pub fn new(name: &[u8], is_all_channels_by_default: bool) -> Self {
        Self {
            name: name.into(),
            born: 0,
            is_enabled: false,
            needs_no_password: false,
            sanitize: Sanitize::Unsaid,
            passwords: Vec::new(),
            root: Selector::new(is_all_channels_by_default),
            selectors: Vec::new(),
            is_all_channels_by_default,
        }
    }

    /// The user of clients that do not authenticate: it needs no password and may do everything.
    pub fn all_powerful(name: &[u8]) -> Self {
        let mut user = Self::new(name, true);
        user.is_enabled = true;
        user.needs_no_password = true;
        user.root.set_commands(true);
        user.root.set_keys(true);
        user.root.set_channels(true);
        user
    }

    /// The same user, made in that snapshot.
    pub(crate) fn born_in(self, epoch: u64) -> Self {
        Self { born: epoch, ..self }
    }

    /// Its name.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// Whether they are the same user, be it with other rules: neither was removed before the other was made.
    pub fn is_same(&self, other: &Self) -> bool {
        self.name == other.name && self.born == other.born
    }

    /// Whether both may log in with the same, and may do the same then.
    pub(crate) fn is_as(&self, other: &Self) -> bool {
        self.name == other.name
            && (self.is_enabled, self.needs_no_password) == (other.is_enabled, other.needs_no_password)
            && (self.sanitize, &self.passwords) == (other.sanitize, &other.passwords)
            && (&self.root, &self.selectors) == (&other.root, &other.selectors)
    }

    /// Whether it may log in.
    pub fn is_enabled(&self) -> bool {
        self.is_enabled
    }

    /// Whether any password, and none, will do.
    pub fn needs_no_password(&self) -> bool {
        self.needs_no_password
    }

    /// Whether there is nothing that it may not do, so that its requests need no check.
    pub fn is_all_powerful(&self) -> bool {
        self.root.is_all_powerful() || self.selectors.iter().any(Selector::is_all_powerful)
    }

    /// Whether this is one of its passwords. Costs the same whether it is or not.
    pub(crate) fn admits(&self, password: &PasswordHash) -> bool {
        let is_known = password.is_among(&self.passwords);
        self.is_enabled && (self.needs_no_password || is_known)
    }

    /// The same user with further rules, each as one argument of `ACL SETUSER`. An error leaves nothing changed.
    ///
    /// # Errors
    /// The first rule that is none, and why.
    pub fn apply<'a>(&self, rules: impl Iterator<Item = &'a [u8]>) -> Result<Self, (&'a [u8], RuleError)> {
        let mut user = self.clone();
        let mut last: &[u8] = b"";
        for rule in rules {
            user.apply_one(rule).map_err(|error| (rule, error))?;
            last = rule;
        }
        if user.held_bytes() > RULE_BYTES_MAX {
            return Err((last, RuleError::TooMany));
        }
        Ok(user)
    }

    /// Bytes of the patterns and arguments that it keeps.
    fn held_bytes(&self) -> usize {
        std::iter::once(&self.root).chain(&self.selectors).map(Selector::held_bytes).sum()
    }

    /// The same user; rules that begin anew allow all channels, or none.
    pub(crate) fn with_channels_by_default(self, is_all: bool) -> Self {
        Self { is_all_channels_by_default: is_all, ..self }
    }

    /// Applies one rule. An error leaves the user as it was.
    pub(crate) fn apply_one(&mut self, rule: &[u8]) -> Result<(), RuleError> {
        let is = |word: &str| is_word(rule, word);
        if rule.is_empty() {
        } else if is("on") {
            self.is_enabled = true;
        } else if is("off") {
            self.is_enabled = false;
        } else if is("skip-sanitize-payload") {
            self.sanitize = Sanitize::No;
        } else if is("sanitize-payload") {
            self.sanitize = Sanitize::Yes;
        } else if is("nopass") {
            self.needs_no_password = true;
            self.passwords.clear();
        } else if is("resetpass") {
            self.reset_passwords();
        } else if is("clearselectors") {
            self.selectors.clear();
        } else if is("reset") {
            self.reset();
        } else {
            return self.apply_value(rule);
        }
        Ok(())
    }

    fn apply_value(&mut self, rule: &[u8]) -> Result<(), RuleError> {
        match rule {
            [b'>', password @ ..] => self.add_password(PasswordHash::of(password)),
            [b'#', hash @ ..] => self.add_password(PasswordHash::parse(hash).ok_or(RuleError::BadHash)?),
            [b'<', password @ ..] => self.remove_password(PasswordHash::of(password)),
            [b'!', hash @ ..] => self.remove_password(PasswordHash::parse(hash).ok_or(RuleError::BadHash)?),
            [b'(', rules @ .., b')'] => {
                let selector = Selector::parse(rules, self.is_all_channels_by_default)?;
                if self.selectors.len() + 1 >= SELECTORS_MAX {
                    return Err(RuleError::TooMany);
                }
                self.selectors.push(selector);
                Ok(())
            }
            _ => self.root.apply(rule),
        }
    }

    fn add_password(&mut self, hash: PasswordHash) -> Result<(), RuleError> {
        if !self.passwords.contains(&hash) {
            if self.passwords.len() >= PASSWORDS_MAX {
                return Err(RuleError::TooMany);
            }
            self.passwords.push(hash);
        }
        self.needs_no_password = false;
        Ok(())
    }

    fn remove_password(&mut self, hash: PasswordHash) -> Result<(), RuleError> {
        let at = self.passwords.iter().position(|known| *known == hash).ok_or(RuleError::NoSuchPassword)?;
        self.passwords.remove(at);
        Ok(())
    }

    pub(crate) fn reset_passwords(&mut self) {
        self.needs_no_password = false;
        self.passwords.clear();
    }

    pub(crate) fn reset(&mut self) {
        let name = std::mem::take(&mut self.name);
        let fresh = Self::new(&name, self.is_all_channels_by_default);
        *self = Self { sanitize: Sanitize::Yes, born: self.born, ..fresh };
    }

    /// The words for what it is apart from its permissions, in Redis' order.
    pub(crate) fn flags(&self) -> impl Iterator<Item = &'static str> {
        let sanitize = match self.sanitize {
            Sanitize::Unsaid => None,
            Sanitize::Yes => Some("sanitize-payload"),
            Sanitize::No => Some("skip-sanitize-payload"),
        };
        [Some(if self.is_enabled { "on" } else { "off" }), self.needs_no_password.then_some("nopass"), sanitize]
            .into_iter()
            .flatten()
    }

    /// The rules that make this user from nothing, as Redis prints them: a line of the ACL file without `user` and the name.
    /// It has the hashes of the passwords.
    pub fn rules(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for flag in self.flags() {
            out.extend_from_slice(flag.as_bytes());
            out.push(b' ');
        }
        for password in &self.passwords {
            out.push(b'#');
            password.write(&mut out);
            out.push(b' ');
        }
        self.root.write(&mut out);
        for selector in &self.selectors {
            out.extend_from_slice(b" (");
            selector.write(&mut out);
            out.push(b')');
        }
        out
    }
}

impl fmt::Debug for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Neither passwords nor their hashes.
        write!(f, "User({})", self.name.escape_ascii())
    }
}
