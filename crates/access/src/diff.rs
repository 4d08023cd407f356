//! What has become of users since they were last written down, for a process that takes them over.
//!
//! A request `user NAME RULE ...` for each user that is new or another one now, and `without NAME` for each that is gone, as
//! clients send requests: a rule is an argument, whatever bytes it has. The rules make the user anew and exactly
//! ([`crate::exact`]). Users of which nothing is said are whatever they are there.

use std::sync::Arc;

use respool_wire::{RequestDecoder, RequestLimits, Step, encode_request};

use crate::c_string::has_space;
use crate::user::User;
use crate::users::{ChangeError, Users};

const USER: &[u8] = b"user";
const WITHOUT: &[u8] = b"without";

/// Those of `now` that `saved` does not have so, and the names of those that `now` does not have.
fn changes<'a>(saved: &'a Users, now: &'a Users) -> (Vec<&'a Arc<User>>, Vec<&'a [u8]>) {
    let is_as_saved =
        |user: &Arc<User>| saved.user(user.name()).is_some_and(|saved| Arc::ptr_eq(saved, user) || saved.is_as(user));
    let changed = now.iter().filter(|user| !is_as_saved(user)).collect();
    (changed, saved.iter().map(|user| user.name()).filter(|name| now.user(name).is_none()).collect())
}

/// What makes users that are as `saved` into those that are as `now`; empty if nothing does.
pub fn between(saved: &Users, now: &Users) -> Vec<u8> {
    let (changed, gone) = changes(saved, now);
    let mut text = Vec::new();
    for user in changed {
        let rules = user.exact_rules();
        let words = [USER, user.name()].into_iter().chain(rules.iter().map(Vec::as_slice));
        encode_request(&mut text, words.collect::<Vec<_>>().into_iter());
    }
    gone.into_iter().for_each(|name| encode_request(&mut text, [WITHOUT, name].into_iter()));
    text
}

/// These users with what [`between`] has found.
///
/// # Errors
/// What is wrong with the text, without its rules: they may be secrets.
pub fn applied(users: &Users, mut text: &[u8]) -> Result<Users, String> {
    let (mut changed, mut gone) = (Vec::new(), Vec::new());
    let (mut decoder, limits) = (RequestDecoder::new(), RequestLimits::default());
    while !text.is_empty() {
        // What does not begin with a count is another version's.
        let step = decoder.decode(text, &limits).ok().filter(|_| text.starts_with(b"*"));
        let Some(Step::Request(request)) = step else {
            return Err("they are not told as this version tells them".to_owned());
        };
        let args = request.args;
        match args.len() {
            2.. if args.name() == USER && !has_space(args.at(1)) => {
                changed.push(Arc::new(told(users, args.at(1), args.from(2).iter())?));
            }
            2 if args.name() == WITHOUT => gone.push(args.at(1).to_vec()),
            _ => return Err("something is told that is no user".to_owned()),
        }
        text = &text[request.consumed..];
    }
    let next = users.with_changes(changed.into_iter(), gone.iter().map(Vec::as_slice));
    next.map_err(|error| match error {
        ChangeError::Default => "the default user cannot be removed".to_owned(),
        _ => "there are more than there can be".to_owned(),
    })
}

/// The user of this name that the rules make.
fn told<'a>(users: &Users, name: &[u8], rules: impl Iterator<Item = &'a [u8]>) -> Result<User, String> {
    let user = User::new(name, users.has_channels_by_default()).apply(rules);
    user.map_err(|(_, error)| format!("rules of user {}: {error}", name.escape_ascii()))
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
    let (changed, gone) = changes(before, after);
    let is_alike = |one: Option<&Arc<User>>, other: Option<&Arc<User>>| match (one, other) {
        (Some(one), Some(other)) => one.is_as(other),
        (one, other) => one.is_none() && other.is_none(),
    };
    let is_overruled = |name: &&[u8]| {
        let now = now.user(name);
        !is_alike(now, before.user(name)) && !is_alike(now, after.user(name))
    };
    let names: Vec<&[u8]> = changed.iter().map(|user| user.name()).chain(gone.iter().copied()).collect();
    let shown = |name: &&[u8]| String::from_utf8_lossy(name).into_owned();
    let users = now.with_changes(changed.into_iter().cloned(), gone.into_iter());
    let users = users.map_err(|_| "there are more users than there can be".to_owned())?;
    let users = users.with_channels_by_default(after.has_channels_by_default());
    Ok(Followed {
        users: users.following(now),
        changed: names.iter().map(shown).collect(),
        overruled: names.iter().filter(|name| is_overruled(name)).map(shown).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file;

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
    fn settings_change_only_users_that_they_describe_otherwise() {
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
    fn every_user_goes_over_as_it_is() {
        let all: [&[&[u8]]; 9] = [
            &[b"(&c) +get)"],
            &[b"(~a +get &c))"],
            &[br#"("~a\"" +get)"#],
            &[br#"("~a\x29" +get)"#, b"~b)", b"(+set ~'c')"],
            &[b"%RW~*", b"~a"],
            &[b"+get|a b", b"+set| ", b"(+get|c)", b"~x)"],
            // Only of these commands that have no row of their own tell that it was @dangerous that was taken away.
            &[b"+@all", b"-@dangerous", b"+info", b"+config|get"],
            &[b"+@all", b"-get", b"+get"],
            &[b"on", b">x", b"skip-sanitize-payload", b"+@read", b"-@dangerous", b"+set|\xff", b"%R~\xfe", b"&\xfd"],
        ];
        for rules in all {
            let users = Users::new().with_rules(b"a", rules).expect("the rules are valid");
            let then = applied(&Users::new(), &between(&Users::new(), &users));
            let then = then.unwrap_or_else(|why| panic!("{}: {why}", rules.concat().escape_ascii()));
            let [before, after] = [&users, &then].map(|users| users.user(b"a").expect("it is there"));
            assert!(before.is_as(after), "{}", rules.concat().escape_ascii());
        }
    }

    #[test]
    fn noise_changes_nothing() {
        let request = |words: &[&[u8]]| {
            let mut text = Vec::new();
            encode_request(&mut text, words.iter().copied());
            text
        };
        let cut = request(&[b"user", b"a", b"on"]);
        let noise = [
            b"noise\r\n".to_vec(),
            b"user a on nopass\n".to_vec(),
            request(&[b"noise", b"a"]),
            request(&[b"user"]),
            request(&[b"user", b"a b"]),
            request(&[b"user", b"a", b"+nosuchcommand"]),
            request(&[b"user", b"a", b"(+get"]),
            request(&[b"without", b"default"]),
            cut[..cut.len() - 1].to_vec(),
        ];
        for noise in noise {
            assert!(applied(&Users::new(), &noise).is_err(), "{}", noise.escape_ascii());
        }
    }
}
