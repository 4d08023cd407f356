//! The rules that make a user again exactly as it is, one by one, as arguments of `ACL SETUSER`.
//!
//! What Redis shows of a user (`ACL LIST`) does not always make it again: it chooses categories anew, shows a pattern of a selector
//! as it is although the selector is split with quotes, and separates rules by blanks that a rule may have. These rules are for
//! where users are written down or handed over.

use respool_command::{Categories, top_level};

use crate::commands::CommandSet;
use crate::selector::Selector;
use crate::user::User;

/// A command without subcommands, to take away and give back.
const ANY_COMMAND: &str = "get";

impl User {
    /// The rules that make exactly this user from one that has none. They have the hashes of its passwords.
    pub(crate) fn exact_rules(&self) -> Vec<Vec<u8>> {
        let mut rules: Vec<Vec<u8>> = self.flags().map(|flag| flag.as_bytes().to_vec()).collect();
        for password in &self.passwords {
            let mut rule = vec![b'#'];
            password.write(&mut rule);
            rules.push(rule);
        }
        rules.extend(self.root.exact_rules());
        for selector in &self.selectors {
            let words: Vec<Vec<u8>> = selector.exact_rules().iter().map(|rule| quoted(rule)).collect();
            rules.push([b"(", &*words.join(&b' '), b")"].concat());
        }
        rules
    }
}

impl Selector {
    fn exact_rules(&self) -> Vec<Vec<u8>> {
        let mut rules = Vec::new();
        let mut say = |rule: &[&[u8]]| rules.push(rule.concat());
        if self.is_all_keys {
            say(&[b"~*"]);
        }
        for key in &self.keys {
            match (key.sign(), &*key.glob) {
                // In short it would be the flag beside which there can be no pattern.
                (b"~", b"*") => say(&[b"%RW~*"]),
                (sign, glob) => say(&[sign, glob]),
            }
        }
        say(&[if self.is_all_channels { b"&*" } else { b"resetchannels" }]);
        self.channels.iter().for_each(|channel| say(&[b"&", channel]));
        self.say_commands(&mut say);
        rules
    }

    fn say_commands(&self, say: &mut impl FnMut(&[&[u8]])) {
        let has_future = self.commands.has_future();
        let mut told = if has_future { CommandSet::ALL } else { CommandSet::NONE };
        say(&[if has_future { b"+@all" } else { b"-@all" }]);
        let mut is_all = has_future;
        // Those that were taken away are taken from commands that have no row of their own, too: no others may be, and they come last.
        let given = if has_future { Vec::new() } else { self.categories(true) };
        let is_denied = |category: Categories| self.denied.has_any(category);
        for (category, name) in given.into_iter().filter(|(category, _)| !is_denied(*category)) {
            say(&[b"+@", name.as_bytes()]);
            told.change_category(category, true);
        }
        for (category, name) in Categories::ALL.iter().filter(|(category, _)| is_denied(*category)) {
            say(&[b"-@", name.as_bytes()]);
            told.change_category(*category, false);
            is_all = false;
        }
        for row in top_level().flat_map(|row| std::iter::once(row).chain(row.subcommands)) {
            let is_allowed = self.commands.has(row);
            if is_allowed != told.has(row) {
                say(&[if is_allowed { b"+" } else { b"-" }, row.full_name().as_bytes()]);
                told.change(row, is_allowed);
                is_all &= is_allowed;
            }
        }
        debug_assert!(told == self.commands, "the rules told make another set of commands");
        if is_all && !self.is_all_commands {
            say(&[b"-", ANY_COMMAND.as_bytes()]);
            say(&[b"+", ANY_COMMAND.as_bytes()]);
        }
        for (command, arguments) in &self.first_arguments {
            arguments.iter().for_each(|argument| say(&[b"+", command.as_bytes(), b"|", argument]));
        }
    }
}

/// A word as it stands where words are split with quotes (a selector, a line of redis.conf). It has no blank then, and no parenthesis at
/// its end, so that it is a word where they are split without, too.
pub(crate) fn quoted(word: &[u8]) -> Vec<u8> {
    let is_plain = |byte: &u8| byte.is_ascii_graphic() && !b"\"'".contains(byte) || !byte.is_ascii();
    if !word.is_empty() && word.last() != Some(&b')') && word.iter().all(is_plain) {
        return word.to_vec();
    }
    let mut out = vec![b'"'];
    for byte in word {
        match byte {
            b'"' | b'\\' | b'\'' | b')' => out.extend_from_slice(format!("\\x{byte:02x}").as_bytes()),
            byte if is_plain(byte) => out.push(*byte),
            byte => out.extend_from_slice(format!("\\x{byte:02x}").as_bytes()),
        }
    }
    out.push(b'"');
    out
}
