//! One set of permissions: commands, keys and channels that go together. A user has one by itself and perhaps more.

use std::collections::BTreeMap;

use respool_command::{Categories, Row, lookup_full};

use crate::c_string::{has_space, is_word};
use crate::commands::CommandSet;
use crate::limits::{FIRST_ARGUMENTS_MAX, PATTERNS_MAX};
use crate::pattern::{KeyPattern, Rights};
use crate::rule::RuleError;
use respool_command::words::{split, until_nul};

/// First arguments that are allowed of commands that are not allowed as a whole, by the command's name as Redis writes it.
pub(crate) type FirstArguments = BTreeMap<&'static str, Vec<Box<[u8]>>>;

/// What may be done with which keys and channels.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Selector {
    pub(crate) commands: CommandSet,
    /// Categories that were taken away since everything was given: of commands that have no row of their own, those of these
    /// are not allowed either.
    pub(crate) denied: Categories,
    /// Nothing was taken away since everything was given: first arguments and single commands need not be looked at.
    pub(crate) is_all_commands: bool,
    pub(crate) first_arguments: FirstArguments,
    pub(crate) is_all_keys: bool,
    pub(crate) keys: Vec<KeyPattern>,
    pub(crate) is_all_channels: bool,
    pub(crate) channels: Vec<Box<[u8]>>,
}

impl Selector {
    /// Nothing may be done, with any channel or with none.
    pub(crate) fn new(is_all_channels: bool) -> Self {
        Self {
            commands: CommandSet::NONE,
            denied: Categories::NONE,
            is_all_commands: false,
            first_arguments: BTreeMap::new(),
            is_all_keys: false,
            keys: Vec::new(),
            is_all_channels,
            channels: Vec::new(),
        }
    }

    /// From the rules between parentheses.
    pub(crate) fn parse(rules: &[u8], is_all_channels: bool) -> Result<Self, RuleError> {
        let mut selector = Self::new(is_all_channels);
        // As in Redis, quotes that are not closed make a selector that allows nothing.
        for rule in split(rules).unwrap_or_default() {
            selector.apply(&rule)?;
        }
        Ok(selector)
    }

    /// Bytes of the patterns and arguments that it keeps.
    pub(crate) fn held_bytes(&self) -> usize {
        let keys: usize = self.keys.iter().map(|pattern| pattern.glob.len()).sum();
        let channels: usize = self.channels.iter().map(|channel| channel.len()).sum();
        let arguments: usize = self.first_arguments.values().flatten().map(|argument| argument.len()).sum();
        keys + channels + arguments
    }

    /// Whether it allows everything.
    pub(crate) fn is_all_powerful(&self) -> bool {
        self.is_all_commands && self.is_all_keys && self.is_all_channels
    }

    /// Applies one rule. An error leaves it as it was.
    pub(crate) fn apply(&mut self, rule: &[u8]) -> Result<(), RuleError> {
        if is_word(rule, "allkeys") || is_word(rule, "~*") {
            self.set_keys(true);
        } else if is_word(rule, "resetkeys") {
            self.set_keys(false);
        } else if is_word(rule, "allchannels") || is_word(rule, "&*") {
            self.set_channels(true);
        } else if is_word(rule, "resetchannels") {
            self.set_channels(false);
        } else if is_word(rule, "allcommands") || is_word(rule, "+@all") {
            self.set_commands(true);
        } else if is_word(rule, "nocommands") || is_word(rule, "-@all") {
            self.set_commands(false);
        } else {
            return match *rule {
                [b'~' | b'%', ..] => self.add_key(rule),
                [b'&', ref channel @ ..] => self.add_channel(channel),
                [sign @ (b'+' | b'-'), b'@', ref name @ ..] => self.change_category(until_nul(name), sign == b'+'),
                [b'+', ref name @ ..] => self.allow(until_nul(name)),
                [b'-', ref name @ ..] => {
                    let row = lookup_full(until_nul(name)).ok_or(RuleError::Unknown)?;
                    self.change(row, false);
                    Ok(())
                }
                _ => Err(RuleError::Syntax),
            };
        }
        Ok(())
    }

    pub(crate) fn set_keys(&mut self, is_all: bool) {
        self.is_all_keys = is_all;
        self.keys = Vec::new();
    }

    pub(crate) fn set_channels(&mut self, is_all: bool) {
        self.is_all_channels = is_all;
        self.channels = Vec::new();
    }

    pub(crate) fn set_commands(&mut self, is_all: bool) {
        self.commands = if is_all { CommandSet::ALL } else { CommandSet::NONE };
        self.denied = Categories::NONE;
        self.is_all_commands = is_all;
        self.first_arguments.clear();
    }

    fn add_key(&mut self, rule: &[u8]) -> Result<(), RuleError> {
        if self.is_all_keys {
            return Err(RuleError::KeyAfterAll);
        }
        let pattern = KeyPattern::parse(rule)?;
        let is_full = self.keys.len() >= PATTERNS_MAX;
        match self.keys.iter_mut().find(|known| known.glob == pattern.glob) {
            Some(known) => {
                let Rights { read, write } = pattern.rights;
                known.rights = Rights { read: known.rights.read || read, write: known.rights.write || write };
            }
            None if is_full => return Err(RuleError::TooMany),
            None => self.keys.push(pattern),
        }
        Ok(())
    }

    fn add_channel(&mut self, channel: &[u8]) -> Result<(), RuleError> {
        if self.is_all_channels {
            return Err(RuleError::ChannelAfterAll);
        }
        if has_space(channel) {
            return Err(RuleError::Syntax);
        }
        if self.channels.iter().any(|known| **known == *channel) {
            return Ok(());
        }
        if self.channels.len() >= PATTERNS_MAX {
            return Err(RuleError::TooMany);
        }
        self.channels.push(channel.into());
        Ok(())
    }

    fn change_category(&mut self, name: &[u8], is_allowed: bool) -> Result<(), RuleError> {
        let category = Categories::named(name).ok_or(RuleError::Unknown)?;
        crate::commands::of_category(category).for_each(|row| self.change(row, is_allowed));
        self.denied = if is_allowed { self.denied.without(category) } else { self.denied.with(category) };
        Ok(())
    }

    /// Allows a command, a subcommand, or one first argument of a command.
    fn allow(&mut self, name: &[u8]) -> Result<(), RuleError> {
        let Some(bar) = name.iter().rposition(|byte| *byte == b'|') else {
            let row = lookup_full(name).ok_or(RuleError::Unknown)?;
            self.change(row, true);
            return Ok(());
        };
        let (container, argument) = (&name[..bar], &name[bar + 1..]);
        let row = lookup_full(container).ok_or(RuleError::Unknown)?;
        if container.contains(&b'|') {
            return Err(RuleError::FirstArgumentOfSubcommand);
        }
        if argument.is_empty() {
            return Err(RuleError::Syntax);
        }
        if row.is_container() {
            let row = row.subcommand(argument).ok_or(RuleError::Unknown)?;
            self.change(row, true);
            return Ok(());
        }
        let allowed = self.first_arguments.entry(row.full_name()).or_default();
        if allowed.iter().any(|known| known.eq_ignore_ascii_case(argument)) {
            return Ok(());
        }
        if allowed.len() >= FIRST_ARGUMENTS_MAX {
            return Err(RuleError::TooMany);
        }
        allowed.push(argument.into());
        Ok(())
    }

    /// Allows or forbids a command and its subcommands as a whole.
    pub(crate) fn change(&mut self, row: &'static Row, is_allowed: bool) {
        self.commands.change(row, is_allowed);
        self.is_all_commands &= is_allowed;
        self.first_arguments.remove(row.full_name());
    }
}
