//! The canonical form: rules that make the same user again, as Redis 7.0 finds and prints them.
//!
//! A set of commands is told as everything or nothing, then as categories while one fits best, then as single commands.
//! The order of the single ones means nothing: Redis gives them in the order of a hash table that is seeded at every start.

use respool_command::{Categories, top_level};

use crate::commands::CommandSet;
use crate::selector::Selector;

impl Selector {
    /// Keys, channels and commands, separated by single blanks.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        if self.is_all_keys {
            out.extend_from_slice(b"~* ");
        }
        for key in &self.keys {
            key.write(out);
            out.push(b' ');
        }
        if self.is_all_channels {
            out.extend_from_slice(b"&* ");
        } else {
            out.extend_from_slice(b"resetchannels ");
        }
        for channel in &self.channels {
            out.push(b'&');
            out.extend_from_slice(channel);
            out.push(b' ');
        }
        self.write_commands(out);
    }

    /// The rules about commands.
    pub(crate) fn write_commands(&self, out: &mut Vec<u8>) {
        let is_additive = !self.commands.has_future();
        let mut told = if is_additive { CommandSet::NONE } else { CommandSet::ALL };
        out.extend_from_slice(if is_additive { b"-@all" } else { b"+@all" });
        for (category, name) in self.categories(is_additive) {
            out.extend_from_slice(if is_additive { b" +@" } else { b" -@" });
            out.extend_from_slice(name.as_bytes());
            told.change_category(category, is_additive);
        }
        for row in top_level() {
            for row in std::iter::once(row).chain(row.subcommands) {
                let is_allowed = self.commands.has(row);
                if is_allowed != told.has(row) {
                    out.extend_from_slice(if is_allowed { b" +" } else { b" -" });
                    out.extend_from_slice(row.full_name().as_bytes());
                    told.change(row, is_allowed);
                }
            }
            if !self.commands.has(row) {
                for argument in self.first_arguments.get(row.full_name()).into_iter().flatten() {
                    out.extend_from_slice(b" +");
                    out.extend_from_slice(row.full_name().as_bytes());
                    out.push(b'|');
                    out.extend_from_slice(argument);
                }
            }
        }
        debug_assert!(told == self.commands, "the rules told make another set of commands");
    }

    /// The categories that say most of the set, in the order in which they fit: each time the one that has the fewest
    /// commands that would be wrong, and of those the one with the most that are right.
    pub(crate) fn categories(&self, is_additive: bool) -> Vec<(Categories, &'static str)> {
        let mut left = self.commands;
        let mut chosen: Vec<(Categories, &'static str)> = Vec::new();
        loop {
            let unused = Categories::ALL.iter().enumerate().filter(|(_, category)| !chosen.contains(category));
            let fits = unused.filter_map(|(place, category)| {
                let (inside, outside) = left.count(place);
                let (right, wrong) = if is_additive { (inside, outside) } else { (outside, inside) };
                (right > wrong).then_some((wrong, std::cmp::Reverse(right), category))
            });
            // The first of equals, as the list goes.
            let Some((_, _, best)) = fits.min_by_key(|(wrong, right, _)| (*wrong, *right)) else { return chosen };
            left.change_category(best.0, !is_additive);
            chosen.push(*best);
        }
    }
}
