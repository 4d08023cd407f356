//! The ACL file, in Redis' format: a line `user NAME RULE ...` for each user, and nothing else but empty lines.
//!
//! A file with an error is not taken at all. Its text is given and taken as bytes: the caller opens the file.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::limits::USERS_MAX;
use crate::rule::{RuleError, joined};
use crate::text::{before_nul, has_space};
use crate::user::User;
use crate::users::Users;

/// The text of the file that makes these users again.
pub fn text(users: &Users) -> Vec<u8> {
    let mut text = Vec::new();
    for user in users.iter() {
        text.extend_from_slice(&line(user));
        text.push(b'\n');
    }
    text
}

/// The same text, if it makes these users again. A pattern of a selector that ends with `)` would end the selector, and quotes in
/// one mean something else when they are read again: a file with such a line gives other rights, or is not taken at the next start.
///
/// # Errors
/// Which user has rules that the format cannot express.
pub fn savable_text(users: &Users) -> Result<Vec<u8>, String> {
    let cannot_be_told = |user: &User| {
        let name = shown(user.name()).replace(|c: char| c.is_control(), " ");
        format!(
            "ERR the rules of user '{name}' cannot be written in the format of an ACL file: a pattern of a selector has a quote or ends with ')'"
        )
    };
    for user in users.iter() {
        let again = self::users(&line(user), "", false).map_err(|_| cannot_be_told(user))?;
        if !again.user(user.name()).is_some_and(|again| line(again) == line(user) && again.has_patterns_of(user)) {
            return Err(cannot_be_told(user));
        }
    }
    Ok(text(users))
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
    String::from_utf8_lossy(before_nul(bytes)).into_owned()
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

    #[test]
    fn what_would_give_other_rights_is_not_written() {
        let rules: [&[u8]; 4] = [b"(&c) +get)", b"(~a +get &c))", br#"("~a\"" +get)"#, br#"("~a\x29" +get)"#];
        for rule in rules {
            let users = Users::new().with_rules(b"a", &[rule]).expect("the rule is valid");
            let error = savable_text(&users).expect_err("they cannot be told");
            assert!(error.starts_with("ERR the rules of user 'a' cannot be written"), "{error}");
        }
        let users = Users::new().with_rules(b"a", &[b"~a)", b"(+get ~b)", b"&c)"]).expect("the rules are valid");
        assert_eq!(savable_text(&users), Ok(text(&users)));
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
