//! The ACL file, in Redis' format: a line `user NAME RULE ...` for each user, and nothing else but empty lines.
//!
//! A file with an error is not taken at all. Its text is given and taken as bytes: the caller opens the file.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::c_string::has_space;
use crate::exact::quoted;
use crate::limits::USERS_MAX;
use crate::rule::{RuleError, joined};
use crate::user::User;
use crate::users::Users;
use respool_command::words::{split, until_nul};

/// The text of the file that makes these users again.
pub fn text(users: &Users) -> Vec<u8> {
    let mut text = Vec::new();
    for user in users.iter() {
        text.extend_from_slice(&line(user));
        text.push(b'\n');
    }
    text
}

/// The text of a file that makes exactly these users. A line is the one of [`text`] where that makes its user again, as Redis' own does
/// mostly; otherwise its rules are those of [`crate::exact`], which Redis reads as well. Rules are separated by blanks, so that one with a
/// blank cannot be told.
///
/// # Errors
/// Which user has rules that the format cannot express.
pub fn savable_text(users: &Users) -> Result<Vec<u8>, String> {
    let read = |line: &[u8], name: &[u8]| Some(User::clone(self::users(line, "", false).ok()?.user(name)?));
    let exact = |user: &User| [b"user ", user.name(), b" ", &*user.exact_rules().join(&b' ')].concat();
    written(users, "an ACL file", read, exact)
}

/// The `user` lines of a configuration file that make exactly these users. Its words are split with quotes, and its bytes are UTF-8.
///
/// # Errors
/// Which user has rules that the format cannot express.
pub fn directives(users: &Users) -> Result<Vec<u8>, String> {
    let read = |line: &[u8], _: &[u8]| {
        let words = split(line).filter(|words| words.iter().all(|word| std::str::from_utf8(word).is_ok()))?;
        let [keyword, name, rules @ ..] = words.as_slice() else { return None };
        let rules = joined(rules.iter().map(Vec::as_slice)).ok().filter(|_| keyword == b"user")?;
        User::new(name, false).apply(rules.iter().map(|rule| rule.as_slice())).ok()
    };
    let exact = |user: &User| {
        let rules: Vec<Vec<u8>> = user.exact_rules().iter().map(|rule| quoted(rule)).collect();
        [b"user ", &*quoted(user.name()), b" ", &*rules.join(&b' ')].concat()
    };
    written(users, "a configuration file", read, exact)
}

/// A line for each user that `read` makes that user of: the short one, or the exact one.
fn written(
    users: &Users,
    format: &str,
    read: impl Fn(&[u8], &[u8]) -> Option<User>,
    exact: impl Fn(&User) -> Vec<u8>,
) -> Result<Vec<u8>, String> {
    let mut text = Vec::new();
    for user in users.iter() {
        let makes_it = |line: &Vec<u8>| read(line, user.name()).is_some_and(|made| made.is_as(user));
        let short = Some(line(user)).filter(makes_it);
        let Some(line) = short.or_else(|| Some(exact(user)).filter(makes_it)) else {
            let name = shown(user.name()).replace(|c: char| c.is_control(), " ");
            return Err(format!("ERR the rules of user '{name}' cannot be written in the format of {format}"));
        };
        text.extend_from_slice(&line);
        text.push(b'\n');
    }
    Ok(text)
}

/// One line of the file, which `ACL LIST` shows as well.
pub(crate) fn line(user: &User) -> Vec<u8> {
    [b"user ", user.name(), b" ", &user.rules()].concat()
}

/// The users of a file. `file` is its name in messages; `is_all_channels_by_default` holds for users that say nothing of channels.
/// The default user is all-powerful if the file has no line for it.
///
/// # Errors
/// Everything that is wrong, as one text that names the lines, as Redis words it.
pub fn users(text: &[u8], file: &str, is_all_channels_by_default: bool) -> Result<Users, String> {
    let mut by_name: BTreeMap<Box<[u8]>, Arc<User>> = BTreeMap::new();
    let mut errors = String::new();
    for (number, line) in text.split(|byte| *byte == b'\n').enumerate() {
        let line = trimmed(line, b" \t\r\n");
        if line.is_empty() {
            continue;
        }
        let made = named(line, is_all_channels_by_default, &by_name).map(|(mut user, rules)| {
            let faults = apply_all(&mut user, &rules);
            // A user with faults is known all the same: a second one of its name is one more.
            by_name.insert(user.name().into(), Arc::new(user));
            faults
        });
        let faults = made.unwrap_or_else(|fault| vec![fault]);
        faults.iter().for_each(|fault| errors.push_str(&fault.worded(file, number + 1)));
    }
    if !errors.is_empty() {
        errors.push_str("WARNING: ACL errors detected, no change to the previously active ACL rules was performed");
        return Err(errors);
    }
    Ok(Users::of(by_name, is_all_channels_by_default))
}

/// What can be wrong with a line. Rules are repeated only where they cannot be secrets.
enum Fault {
    NoUser,
    Name(String),
    Duplicate(String),
    Unclosed,
    UnknownCommand(String),
    Rule(RuleError),
    TooMany,
}

impl Fault {
    fn worded(&self, file: &str, line: usize) -> String {
        match self {
            Self::NoUser => format!("{file}:{line} should start with user keyword followed by the username. "),
            Self::Name(name) => format!("'{file}:{line}: username '{name}' contains invalid characters. "),
            Self::Duplicate(name) => format!("WARNING: Duplicate user '{name}' found on line {line}. "),
            Self::Unclosed => format!("{file}:{line}: Unmatched parenthesis in selector definition."),
            Self::UnknownCommand(rule) => {
                let error = RuleError::Unknown;
                format!("{file}:{line}: Error in applying operation '{rule}': {error}. ")
            }
            Self::Rule(error) => format!("{file}:{line}: {error}. "),
            Self::TooMany => format!("{file}:{line}: there are more users than there can be. "),
        }
    }
}

/// A line's user, which has no rules yet, and its rules.
fn named<'a>(
    line: &'a [u8],
    is_all_channels: bool,
    known: &BTreeMap<Box<[u8]>, Arc<User>>,
) -> Result<(User, Vec<&'a [u8]>), Fault> {
    let words: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
    let [b"user", name, rules @ ..] = words.as_slice() else { return Err(Fault::NoUser) };
    if has_space(name) {
        return Err(Fault::Name(shown(name)));
    }
    if known.contains_key(*name) {
        return Err(Fault::Duplicate(shown(name)));
    }
    if known.len() >= USERS_MAX {
        return Err(Fault::TooMany);
    }
    Ok((User::new(name, is_all_channels), rules.to_vec()))
}

fn apply_all(user: &mut User, rules: &[&[u8]]) -> Vec<Fault> {
    let Ok(rules) = joined(rules.iter().copied()) else { return vec![Fault::Unclosed] };
    let mut faults = Vec::new();
    let mut has_other = false;
    for rule in rules {
        let rule = trimmed(&rule, b"\t\r\n");
        match user.apply_one(rule) {
            Ok(()) => {}
            Err(RuleError::Unknown) => faults.push(Fault::UnknownCommand(shown(rule))),
            // One tells of the others: what follows may only be wrong because of it.
            Err(error) if !has_other => {
                has_other = true;
                faults.push(Fault::Rule(error));
            }
            Err(_) => {}
        }
    }
    faults
}

fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(until_nul(bytes)).into_owned()
}

fn trimmed<'a>(mut bytes: &'a [u8], blanks: &[u8]) -> &'a [u8] {
    while let [first, rest @ ..] = bytes
        && blanks.contains(first)
    {
        bytes = rest;
    }
    while let [rest @ .., last] = bytes
        && blanks.contains(last)
    {
        bytes = rest;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let users = Users::new()
            .with_rules(b"a", &[b"on", b">one", b">two", b"~k*", b"%R~r", b"&c", b"+@read", b"-get", b"(~x +set)"])
            .and_then(|users| users.with_rules(b"b", &[b"nopass", b"allkeys", b"+@all", b"-@dangerous", b"+keys"]))
            .expect("the rules are valid");
        let written = text(&users);
        let again = super::users(&written, "f", false).expect("the file is our own");
        assert_eq!(text(&again), written);
        assert!(again.authenticate(b"a", b"two").is_some() && again.authenticate(b"b", b"any").is_none());
    }

    /// A user of these rules, and the one that the text of each format makes.
    fn written_and_read(rules: &[&[u8]]) -> [Result<bool, String>; 2] {
        let users = Users::new().with_rules(b"a", rules).expect("the rules are valid");
        let user = users.user(b"a").expect("it was made");
        let saved = savable_text(&users).map(|text| {
            let again = super::users(&text, "f", false).expect("it is our own");
            again.user(b"a").is_some_and(|again| again.is_as(user))
        });
        let configured = directives(&users).map(|text| {
            let text = String::from_utf8(text).expect("it is text");
            let line = text.lines().find(|line| line.starts_with("user a ")).expect("there is a line for each");
            let words = split(line.as_bytes()).expect("quotes are closed");
            let rules: Vec<&[u8]> = words[2..].iter().map(Vec::as_slice).collect();
            let again = Users::new().with_rules(b"a", &rules).expect("it is our own");
            again.user(b"a").is_some_and(|again| again.is_as(user))
        });
        [saved, configured]
    }

    #[test]
    fn what_is_written_gives_the_same_rights() {
        let rules: [&[&[u8]]; 9] = [
            &[b"(&c) +get)"],
            &[b"(~a +get &c))"],
            &[br#"("~a\"" +get)"#],
            &[br#"("~a\x29" +get)"#],
            &[b"~a)", b"(+get ~b)", b"&c)"],
            &[b"~a\"b", b"&'c'", b"~\\"],
            &[b"%RW~*", b"~a"],
            &[b"+@all", b"-@dangerous", b"+info"],
            &[b"(+get|) ~a)", b"+set|)"],
        ];
        for rules in rules {
            assert_eq!(written_and_read(rules), [Ok(true), Ok(true)], "{}", rules.join(&b' ').escape_ascii());
        }
        let plain =
            Users::new().with_rules(b"a", &[b"on", b"~a:*", b"+@read", b"(+set ~b)"]).expect("the rules are valid");
        assert_eq!(
            (savable_text(&plain), directives(&plain)),
            (Ok(text(&plain)), Ok(text(&plain))),
            "as Redis writes them"
        );
    }

    #[test]
    fn what_cannot_be_written_is_refused() {
        let [file, configuration] = written_and_read(&[b"+get|a b"]);
        let error = file.expect_err("a rule ends at a blank");
        assert!(
            error.starts_with("ERR the rules of user 'a' cannot be written in the format of an ACL file"),
            "{error}"
        );
        assert_eq!(configuration, Ok(true));
        let [file, configuration] = written_and_read(&[b"~\xff"]);
        assert_eq!(file, Ok(true));
        assert!(configuration.is_err(), "what is read is text in UTF-8");
    }

    #[test]
    fn a_file_with_an_error_says_where_and_is_not_taken() {
        let text = b"user default on nopass ~* +@all\n\nuser a +nothing >x <y\nhello\nuser a on\nuser b (~a\n";
        let error = users(text, "users.acl", false).expect_err("four lines are wrong");
        for part in [
            "users.acl:3: Error in applying operation '+nothing': Unknown command or category name in ACL. ",
            "users.acl:3: The password you are trying to remove from the user does not exist. ",
            "users.acl:4 should start with user keyword followed by the username. ",
            "users.acl:6: Unmatched parenthesis in selector definition.",
            "WARNING: ACL errors detected, no change to the previously active ACL rules was performed",
        ] {
            assert!(error.contains(part), "{error}");
        }
    }
}
