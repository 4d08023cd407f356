//! All users: an immutable snapshot. A change makes the next one.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::c_string::has_space;
use crate::limits::USERS_MAX;
use crate::password::PasswordHash;
use crate::rule::{RuleError, joined};
use crate::user::User;
use respool_command::words::until_nul;

/// The name of the user that every client is at first.
pub const DEFAULT_USER: &[u8] = DEFAULT_USER_TEXT.as_bytes();

/// The same as text.
pub const DEFAULT_USER_TEXT: &str = "default";

/// Why users were not changed. [`ChangeError::write_text`] gives Redis' text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeError {
    /// A name with a blank or a NUL.
    Name,
    /// A selector that is not closed, as it begins.
    Unclosed(Vec<u8>),
    /// A rule that is none, and why.
    Rule(Vec<u8>, RuleError),
    /// The default user cannot be removed.
    Default,
    /// There are as many users as there may be.
    TooMany,
}

impl ChangeError {
    /// Appends the text of the error reply, without the leading `-` and the line's end.
    pub fn write_text(&self, out: &mut Vec<u8>) {
        match self {
            Self::Name => out.extend_from_slice(b"ERR Usernames can't contain spaces or null characters"),
            Self::Unclosed(rule) => {
                out.extend_from_slice(b"ERR Unmatched parenthesis in acl selector starting at '");
                out.extend_from_slice(until_nul(rule));
                out.extend_from_slice(b"'.");
            }
            Self::Rule(rule, error) => {
                out.extend_from_slice(b"ERR Error in ACL SETUSER modifier '");
                out.extend_from_slice(until_nul(rule));
                out.extend_from_slice(b"': ");
                out.extend_from_slice(error.to_string().as_bytes());
            }
            Self::Default => out.extend_from_slice(b"ERR The 'default' user cannot be removed"),
            Self::TooMany => out.extend_from_slice(b"ERR there are as many users as there can be"),
        }
    }
}

/// A snapshot of all users.
#[derive(Clone, Debug)]
pub struct Users {
    by_name: BTreeMap<Box<[u8]>, Arc<User>>,
    default: Arc<User>,
    epoch: u64,
    is_all_channels_by_default: bool,
}

impl Default for Users {
    fn default() -> Self {
        Self::new()
    }
}

impl Users {
    /// The default user alone, which needs no password and may do everything.
    pub fn new() -> Self {
        Self::of(BTreeMap::new(), false)
    }

    /// A snapshot of these users. The default user is added if it is not among them.
    pub(crate) fn of(mut by_name: BTreeMap<Box<[u8]>, Arc<User>>, is_all_channels_by_default: bool) -> Self {
        let default = by_name.entry(DEFAULT_USER.into()).or_insert_with(|| Arc::new(User::all_powerful(DEFAULT_USER)));
        Self { default: Arc::clone(default), by_name, epoch: 0, is_all_channels_by_default }
    }

    /// The same users; new ones may use all channels unless a rule says otherwise, or none (Redis' `acl-pubsub-default`).
    #[must_use]
    pub fn with_channels_by_default(&self, is_all: bool) -> Self {
        Self { is_all_channels_by_default: is_all, ..self.clone() }
    }

    /// Whether new users may use all channels.
    pub fn has_channels_by_default(&self) -> bool {
        self.is_all_channels_by_default
    }

    /// The number of this snapshot: a later one has a larger one.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The same users as the snapshot that follows `before`. A user that was there by the same name is the same user still.
    #[must_use]
    pub fn following(self, before: &Self) -> Self {
        let epoch = before.epoch + 1;
        let users = self.by_name.into_iter().map(|(name, user)| {
            let born = before.by_name.get(&name).map_or(epoch, |known| known.born);
            (name, Arc::new(User::clone(&user).born_in(born)))
        });
        Self { epoch, ..Self::of(users.collect(), self.is_all_channels_by_default) }
    }

    /// The same users under a number that is larger than that of `before`.
    #[must_use]
    pub fn renumbered(self, before: &Self) -> Self {
        Self { epoch: self.epoch.max(before.epoch + 1), ..self }
    }

    /// The user that every client is at first.
    pub fn default_user(&self) -> &Arc<User> {
        &self.default
    }

    /// Whether clients need not authenticate.
    pub fn admits_unauthenticated(&self) -> bool {
        self.default.is_enabled() && self.default.needs_no_password()
    }

    /// The user of that name.
    pub fn user(&self, name: &[u8]) -> Option<&Arc<User>> {
        self.by_name.get(name)
    }

    /// All users, by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<User>> {
        self.by_name.values()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Never: there is always the default user.
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// The user, if this is its password and it may log in. The check takes as long for a user that does not exist.
    pub fn authenticate(&self, name: &[u8], password: &[u8]) -> Option<&Arc<User>> {
        let hash = PasswordHash::of(password);
        match self.by_name.get(name) {
            Some(user) => user.admits(&hash).then_some(user),
            None => {
                // The default user stands in; whatever comes of it is not used.
                let _ = self.default.admits(&hash);
                None
            }
        }
    }

    /// A user with further rules, as `ACL SETUSER` takes them; made if there is none. An error leaves everything unchanged.
    ///
    /// # Errors
    /// What is wrong, with the rule that is to blame.
    pub fn with_rules(&self, name: &[u8], rules: &[&[u8]]) -> Result<Self, ChangeError> {
        if has_space(name) {
            return Err(ChangeError::Name);
        }
        let rules = joined(rules.iter().copied()).map_err(|at| ChangeError::Unclosed(rules[at].to_vec()))?;
        let before = match self.by_name.get(name) {
            Some(user) => User::clone(user),
            None if self.by_name.len() >= USERS_MAX => return Err(ChangeError::TooMany),
            None => User::new(name, self.is_all_channels_by_default).born_in(self.epoch + 1),
        };
        let after = before
            .with_channels_by_default(self.is_all_channels_by_default)
            .apply(rules.iter().map(|rule| rule.as_slice()))
            .map_err(|(rule, error)| ChangeError::Rule(rule.to_vec(), error))?;
        Ok(self.with_user(after))
    }

    /// Without these users; the second is how many of them there were.
    ///
    /// # Errors
    /// The default user is among them.
    pub fn without<'a>(&self, names: impl Iterator<Item = &'a [u8]> + Clone) -> Result<(Self, usize), ChangeError> {
        if names.clone().any(|name| until_nul(name) == DEFAULT_USER) {
            return Err(ChangeError::Default);
        }
        let mut by_name = self.by_name.clone();
        let removed = names.filter(|name| by_name.remove(*name).is_some()).count();
        Ok((Self { by_name, epoch: self.epoch + 1, ..self.clone() }, removed))
    }

    /// The default user with this password alone, or with none (Redis' `requirepass`).
    #[must_use]
    pub fn with_default_password(&self, password: Option<&[u8]>) -> Self {
        let mut user = User::clone(&self.default);
        user.reset_passwords();
        match password {
            Some(password) => user.passwords.push(PasswordHash::of(password)),
            None => user.needs_no_password = true,
        }
        self.with_user(user)
    }

    /// With these users in the places of those of the same names, and without those others.
    ///
    /// # Errors
    /// The default user is among the others, or there would be too many.
    pub(crate) fn with_changes<'a>(
        &self,
        changed: impl Iterator<Item = Arc<User>>,
        mut gone: impl Iterator<Item = &'a [u8]>,
    ) -> Result<Self, ChangeError> {
        let mut by_name = self.by_name.clone();
        by_name.extend(changed.map(|user| (user.name().into(), user)));
        if gone.any(|name| {
            by_name.remove(name);
            until_nul(name) == DEFAULT_USER
        }) {
            return Err(ChangeError::Default);
        }
        if by_name.len() > USERS_MAX {
            return Err(ChangeError::TooMany);
        }
        Ok(Self { epoch: self.epoch + 1, ..Self::of(by_name, self.is_all_channels_by_default) })
    }

    fn with_user(&self, user: User) -> Self {
        let mut next = self.clone();
        let user = Arc::new(user);
        if user.name() == DEFAULT_USER {
            next.default = Arc::clone(&user);
        }
        next.by_name.insert(user.name().into(), user);
        next.epoch += 1;
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_right_password_of_an_enabled_user_logs_in() {
        let users = Users::new()
            .with_rules(b"on", &[b"on", b">secret"])
            .and_then(|users| users.with_rules(b"off", &[b">secret"]))
            .and_then(|users| users.with_rules(b"any", &[b"on", b"nopass"]))
            .expect("the rules are valid");
        for (name, password, is_accepted) in [
            ("on", "secret", true),
            ("on", "other", false),
            ("on", "", false),
            ("off", "secret", false),
            ("any", "", true),
            ("missing", "secret", false),
            ("default", "x", true),
        ] {
            assert_eq!(
                users.authenticate(name.as_bytes(), password.as_bytes()).is_some(),
                is_accepted,
                "{name} {password}"
            );
        }
    }

    #[test]
    fn a_wrong_rule_changes_nothing_and_snapshots_do_not_change() {
        let before = Users::new().with_rules(b"a", &[b"on", b">one"]).expect("the rules are valid");
        let error = before.with_rules(b"a", &[b"off", b">two", b"+nothing"]).expect_err("there is no such command");
        assert_eq!(error, ChangeError::Rule(b"+nothing".to_vec(), RuleError::Unknown));
        assert!(before.authenticate(b"a", b"one").is_some() && before.authenticate(b"a", b"two").is_none());
        let after = before.with_rules(b"a", &[b"off"]).expect("the rule is valid");
        assert!(before.authenticate(b"a", b"one").is_some() && after.authenticate(b"a", b"one").is_none());
        assert!(after.epoch() > before.epoch());
    }

    #[test]
    fn a_user_that_is_made_again_is_another() {
        let first = Users::new().with_rules(b"a", &[]).expect("the name is valid");
        let changed = first.with_rules(b"a", &[b"reset", b"on"]).expect("the rules are valid");
        let (gone, removed) = changed.without([&b"a"[..], b"b"].into_iter()).expect("it is not the default user");
        let again = gone.with_rules(b"a", &[]).expect("the name is valid");
        let of = |users: &Users| User::clone(users.user(b"a").expect("it is there"));
        assert_eq!(removed, 1);
        assert!(of(&first).is_same(&of(&changed)) && !of(&first).is_same(&of(&again)));
        let loaded = crate::file::users(b"user a on\nuser b on\n", "f", false).expect("the file is right");
        assert!(of(&loaded.following(&again)).is_same(&of(&again)));
    }

    #[test]
    fn the_password_of_the_default_user_is_a_setting() {
        let users = Users::new();
        assert!(users.admits_unauthenticated());
        let closed = users.with_default_password(Some(b"secret"));
        assert!(!closed.admits_unauthenticated() && closed.authenticate(b"default", b"secret").is_some());
        assert!(closed.default_user().is_all_powerful(), "only who it is has to be said");
        assert!(closed.with_default_password(None).admits_unauthenticated());
        assert!(!users.with_rules(b"default", &[b"off"]).expect("the rule is valid").admits_unauthenticated());
    }
}
