//! What has become of users since they were last written down, for a process that takes them over.
//!
//! A line `user NAME RULE ...`, as in the ACL file, for each user that is new or another one now, and `without NAME` for
//! each that is gone. Users of which there is no line are whatever they are there.

use crate::file;
use crate::users::{ChangeError, Users};
use std::sync::Arc;

const WITHOUT: &[u8] = b"without ";

/// What makes users that are as `saved` into those that are as `now`; empty if nothing does.
pub fn between(saved: &Users, now: &Users) -> Vec<u8> {
    let mut text = Vec::new();
    for user in now.iter() {
        let line = file::line(user);
        let is_as_saved =
            saved.user(user.name()).is_some_and(|saved| Arc::ptr_eq(saved, user) || file::line(saved) == line);
        if !is_as_saved {
            text.extend_from_slice(&line);
            text.push(b'\n');
        }
    }
    for gone in saved.iter().filter(|user| now.user(user.name()).is_none()) {
        text.extend_from_slice(&[WITHOUT, gone.name(), b"\n"].concat());
    }
    text
}

/// These users with what [`between`] has found.
///
/// # Errors
/// What is wrong with the text, without its rules: they may be secrets.
pub fn applied(users: &Users, text: &[u8]) -> Result<Users, String> {
    let lines = || text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let (gone, changed): (Vec<&[u8]>, Vec<&[u8]>) = lines().partition(|line| line.starts_with(WITHOUT));
    let made = file::users(&changed.join(&b'\n'), "users", users.has_channels_by_default())?;
    let mut next = users.clone();
    for line in changed {
        let name = line.split(|byte| *byte == b' ').nth(1).unwrap_or_default();
        if let Some(user) = made.user(name) {
            next = next.with_user(user.as_ref().clone());
        }
    }
    let gone = gone.iter().filter_map(|line| line.strip_prefix(WITHOUT));
    match next.without(gone) {
        Ok((next, _)) => Ok(next),
        Err(ChangeError::Default) => Err("the default user cannot be removed".to_owned()),
        Err(_) => Err("users cannot be removed".to_owned()),
    }
}

/// Users after their settings have changed.
#[derive(Debug)]
pub struct Followed {
    /// The users from now on.
    pub users: Users,
    /// Those that the settings describe otherwise than before, by name.
    pub changed: Vec<String>,
    /// Those of them that were not as the settings had made them.
    pub overruled: Vec<String>,
}

/// The users that are `now`, after settings that made `before` make `after`: only those change of which the settings say
/// something else.
///
/// # Errors
/// There would be too many.
pub fn followed(now: &Users, before: &Users, after: &Users) -> Result<Followed, String> {
    let text = between(before, after);
    let name = |line: &[u8]| line.split(|byte| *byte == b' ').nth(1).map(<[u8]>::to_vec);
    let names: Vec<Vec<u8>> = text.split(|byte| *byte == b'\n').filter_map(name).collect();
    let line = |users: &Users, name: &[u8]| users.user(name).map(|user| file::line(user));
    let is_overruled = |name: &&Vec<u8>| line(now, name) != line(before, name) && line(now, name) != line(after, name);
    let shown = |name: &Vec<u8>| String::from_utf8_lossy(name).into_owned();
    let users = applied(now, &text)?.with_channels_by_default(after.has_channels_by_default());
    Ok(Followed {
        users: users.following(now),
        changed: names.iter().map(shown).collect(),
        overruled: names.iter().filter(is_overruled).map(shown).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::user::User;

    fn users(text: &str) -> Users {
        file::users(text.as_bytes(), "test", false).expect("they are right")
    }

    #[test]
    fn what_has_changed_goes_over_and_nothing_else() {
        let saved = users("user default on nopass ~* &* +@all\nuser a on >x ~a:* +get\nuser b on >y +@all ~*\n");
        assert!(between(&saved, &saved.clone()).is_empty());
        let now = saved.with_rules(b"c", &[b"on", b">z", b"(+get ~c:*)"]).expect("a user");
        let now = now.with_rules(b"a", &[b"+set"]).expect("a rule");
        let (now, _) = now.without([&b"b"[..]].into_iter()).expect("it may go");
        let text = between(&saved, &now);
        // There, the settings say something else of one user, and know another.
        let there = users("user default off\nuser b on nopass\nuser d on nopass\n");
        let then = applied(&there, &text).expect("it fits");
        for name in [&b"a"[..], b"c"] {
            assert_eq!(then.user(name).map(|user| file::line(user)), now.user(name).map(|user| file::line(user)));
        }
        assert!(then.user(b"b").is_none() && then.user(b"d").is_some());
        assert_eq!(then.default_user().rules(), there.default_user().rules());
        assert!(then.authenticate(b"c", b"z").is_some() && then.authenticate(b"a", b"x").is_some());
    }

    #[test]
    fn settings_change_only_the_users_that_they_say_something_else_of() {
        let before = users("user a on nopass ~a:*\nuser b on nopass ~b:*\nuser c on nopass\nuser d on nopass\n");
        let after = users("user a on nopass ~A:*\nuser b on nopass ~b:*\nuser d on nopass ~d:*\nuser e off\n");
        let now = before.with_rules(b"b", &[b"~more:*"]).and_then(|now| now.with_rules(b"d", &[b"off"]));
        let now = now.and_then(|now| now.with_rules(b"f", &[b"on"])).expect("they are right").following(&before);
        let then = followed(&now, &before, &after).expect("they fit");
        let line = |users: &Users, name: &str| users.user(name.as_bytes()).map(|user| file::line(user));
        for (name, as_in) in [("a", &after), ("b", &now), ("c", &after), ("d", &after), ("e", &after), ("f", &now)] {
            assert_eq!(line(&then.users, name), line(as_in, name), "{name}");
        }
        assert_eq!(
            (then.changed, then.overruled),
            (["a", "d", "e", "c"].map(String::from).to_vec(), vec!["d".to_owned()])
        );
        // A user that was changed keeps its name.
        let of = |users: &Users| User::clone(users.user(b"a").expect("it is there"));
        assert!(of(&then.users).is_same(&of(&now)) && then.users.epoch() > now.epoch());
        let same = followed(&now, &before, &before).expect("they fit");
        assert!(same.changed.is_empty() && between(&now, &same.users).is_empty());
    }

    #[test]
    fn noise_changes_nothing() {
        for noise in [&b"noise"[..], b"user a +nosuchcommand", b"without default", b"user a (+get"] {
            assert!(applied(&Users::new(), noise).is_err(), "{noise:?}");
        }
    }
}
