//! Whether a user may make a request, and if not, what stands against it.

use respool_command::{Command, Flags, KeyPositions, KeysError, PubsubCommand, Row};
use respool_wire::Args;

use crate::pattern::Rights;
use crate::selector::Selector;
use crate::user::User;

/// What of a request is not allowed. The larger one is told if several selectors refuse for different reasons: the later an
/// argument, the nearer was the selector to allowing it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Denial {
    /// The command or subcommand itself.
    Command,
    /// The key at this place among the arguments.
    Key(u32),
    /// The channel at this place among the arguments.
    Channel(u32),
}

/// The channels of a request.
struct Channels {
    /// Whether all arguments behind the name are, or the first alone.
    are_all: bool,
    /// They are patterns, which are compared with the allowed ones as they are written.
    are_patterns: bool,
}

/// The keys of a request, looked for when the first selector needs them.
struct FoundKeys<'a> {
    positions: &'a mut KeyPositions,
    result: Option<Result<(), KeysError>>,
}

impl User {
    /// Whether it may make a request. `positions` is room for the keys, whose arity has been checked.
    ///
    /// # Errors
    /// What is not allowed.
    pub fn check(&self, row: &'static Row, args: Args<'_>, positions: &mut KeyPositions) -> Result<(), Denial> {
        let mut keys = FoundKeys { positions, result: None };
        let mut worst = Denial::Command;
        for selector in self.all_selectors() {
            match selector.check(row, args, &mut keys) {
                Ok(()) => return Ok(()),
                Err(denial) => worst = worst.max(denial),
            }
        }
        Err(worst)
    }

    /// Whether some selector that allows the request allows to read every key as well: what `SORT` needs for `BY` and `GET`,
    /// which read keys that no argument names.
    pub fn may_read_every_key(&self, row: &'static Row, args: Args<'_>, positions: &mut KeyPositions) -> bool {
        let mut keys = FoundKeys { positions, result: None };
        self.all_selectors().any(|selector| {
            let reads_all =
                selector.is_all_keys || selector.keys.iter().any(|pattern| pattern.allows_all(Rights::READ));
            reads_all && selector.check(row, args, &mut keys).is_ok()
        })
    }

    /// Whether it may receive the messages of a channel; a pattern has to be allowed as it is written.
    pub fn may_subscribe(&self, channel: &[u8], is_pattern: bool) -> bool {
        self.all_selectors().any(|selector| selector.allows_channel(channel, is_pattern))
    }

    /// Whether subscriptions that `before` could make may have to end now that the user is this.
    pub fn may_have_lost_channels(&self, before: &Self) -> bool {
        if self.all_selectors().any(|selector| selector.is_all_channels) {
            return false;
        }
        let is_kept = |channel: &[u8]| {
            self.all_selectors().any(|selector| selector.channels.iter().any(|kept| **kept == *channel))
        };
        before
            .all_selectors()
            .any(|selector| selector.is_all_channels || !selector.channels.iter().all(|channel| is_kept(channel)))
    }

    fn all_selectors(&self) -> impl Iterator<Item = &Selector> {
        std::iter::once(&self.root).chain(&self.selectors)
    }
}

impl Selector {
    fn check(&self, row: &'static Row, args: Args<'_>, keys: &mut FoundKeys<'_>) -> Result<(), Denial> {
        if !self.allows_command(row, args) {
            return Err(Denial::Command);
        }
        if !self.is_all_keys && row.keys.specs().iter().any(|spec| spec.access.is_key()) {
            // A request that says wrongly where its keys are has none: nobody executes it.
            let found = keys.result.get_or_insert_with(|| row.keys.positions(args, keys.positions)).is_ok();
            if !found && row.command == Command::Learnt {
                // A node executes it, and knows its keys; here nobody does.
                return Err(Denial::Key(1));
            }
            if found {
                for found in keys.positions.iter().filter(|found| found.access.is_key()) {
                    let key = args.get(found.index as usize).unwrap_or_default();
                    let needed = Rights::needed(found.access);
                    if !self.keys.iter().any(|pattern| pattern.allows(key, needed)) {
                        return Err(Denial::Key(found.index));
                    }
                }
            }
        }
        if self.is_all_channels {
            return Ok(());
        }
        let Some(Channels { are_all, are_patterns }) = channels(row) else { return Ok(()) };
        let count = if are_all { args.len() } else { args.len().min(2) };
        for at in 1..count {
            if !self.allows_channel(args.get(at).unwrap_or_default(), are_patterns) {
                return Err(Denial::Channel(at as u32));
            }
        }
        Ok(())
    }

    fn allows_command(&self, row: &'static Row, args: Args<'_>) -> bool {
        if self.is_all_commands || is_for_everybody(row) {
            return true;
        }
        if self.commands.has(row) {
            return row.command != Command::Learnt || !row.categories.has_any(self.denied);
        }
        let Some(allowed) = self.first_arguments.get(row.full_name()) else { return false };
        args.get(1).is_some_and(|first| allowed.iter().any(|known| known.eq_ignore_ascii_case(first)))
    }

    fn allows_channel(&self, channel: &[u8], is_pattern: bool) -> bool {
        self.is_all_channels
            || self.channels.iter().any(|allowed| match is_pattern {
                true => **allowed == *channel,
                false => respool_command::glob::matches(allowed, channel),
            })
    }
}

/// Whether everybody may run it, logged in or not: AUTH and what goes with it. What a node says of its own commands does not
/// count.
pub fn is_for_everybody(row: &Row) -> bool {
    row.flags.has(Flags::NO_AUTH) && row.command != Command::Learnt
}

/// Which arguments are channels that need a right: those published to and subscribed to. Giving one up needs none.
fn channels(row: &Row) -> Option<Channels> {
    let Command::Pubsub(command) = row.command else { return None };
    match command {
        PubsubCommand::Publish | PubsubCommand::Spublish => Some(Channels { are_all: false, are_patterns: false }),
        PubsubCommand::Subscribe | PubsubCommand::Ssubscribe => Some(Channels { are_all: true, are_patterns: false }),
        PubsubCommand::Psubscribe => Some(Channels { are_all: true, are_patterns: true }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use respool_command::{all, resolve};
    use respool_wire::{ArgsBuf, Value};

    use super::*;
    use crate::Users;

    fn user(rules: &[&str]) -> User {
        let rules: Vec<&[u8]> = rules.iter().map(|rule| rule.as_bytes()).collect();
        let users = Users::new().with_rules(b"u", &rules).expect("the rules are valid");
        User::clone(users.user(b"u").expect("it was made"))
    }

    fn verdict(user: &User, request: &str) -> Result<(), Denial> {
        let args: ArgsBuf = request.split(' ').collect();
        let row = resolve(args.as_args()).expect("the test names what exists");
        user.check(row, args.as_args(), &mut KeyPositions::new())
    }

    #[test]
    fn a_fresh_user_may_authenticate_and_leave() {
        let fresh = user(&[]);
        let allowed: Vec<&str> =
            all().filter(|row| verdict(&fresh, row.name) != Err(Denial::Command)).map(|row| row.name).collect();
        assert_eq!(allowed, ["AUTH", "HELLO", "QUIT", "RESET"]);
    }

    /// A command that a node knows and the table does not.
    fn learnt(name: &str, flags: &[&str], categories: &[&str], first_key: i64) -> &'static Row {
        let words = |words: &[&str]| Value::Array(words.iter().map(|word| Value::Simple((*word).into())).collect());
        let numbers = [-2, first_key, first_key, first_key].map(Value::Integer);
        let [arity, first, last, step] = numbers;
        let described =
            Value::Array(vec![Value::Bulk(name.into()), arity, words(flags), first, last, step, words(categories)]);
        respool_command::learn(name, &described).expect("it is described")
    }

    #[test]
    fn what_nodes_alone_know_is_judged_by_what_they_say_of_it() {
        let check = |user: &User, row: &'static Row| {
            let args: ArgsBuf = [row.name, "app:1", "x"].into_iter().collect();
            user.check(row, args.as_args(), &mut KeyPositions::new())
        };
        let plain = learnt("FT.A", &["readonly"], &["@read"], 1);
        let hidden = learnt("FT.B", &["readonly", "movablekeys"], &["@read"], 0);
        let dangerous = learnt("FT.C", &["admin"], &["@admin", "@dangerous"], 0);
        let app = user(&["+@all", "~app:*"]);
        assert_eq!(check(&app, plain), Ok(()));
        assert_eq!(check(&app, hidden), Err(Denial::Key(1)), "nobody here knows its keys");
        assert_eq!(check(&user(&["+@all", "~*"]), hidden), Ok(()));
        let careful = user(&["+@all", "-@dangerous", "~*"]);
        assert_eq!(check(&careful, dangerous), Err(Denial::Command));
        assert_eq!(check(&careful, plain), Ok(()));
        assert_eq!(check(&user(&["+@all", "-@dangerous", "+@dangerous", "~*"]), dangerous), Ok(()));
        assert_eq!(check(&user(&["-@dangerous", "+@all", "~*"]), dangerous), Ok(()));
        assert_eq!(check(&user(&["+@read", "~*"]), plain), Err(Denial::Command), "nobody has allowed it");
    }

    #[test]
    fn keys_and_channels_are_denied_by_default() {
        let able = user(&["+@all"]);
        assert_eq!(verdict(&able, "GET k"), Err(Denial::Key(1)));
        assert_eq!(verdict(&able, "PUBLISH c m"), Err(Denial::Channel(1)));
        assert_eq!(verdict(&able, "SUBSCRIBE c"), Err(Denial::Channel(1)));
        assert_eq!(verdict(&able, "UNSUBSCRIBE c"), Ok(()));
        assert_eq!(verdict(&able, "PING"), Ok(()));
        assert!(!able.may_subscribe(b"c", false));
    }

    #[test]
    fn selectors_allow_one_by_one_and_the_nearest_refusal_is_told() {
        let both = user(&["+get", "~a*", "(+set ~b*)", "(+mset %R~* %W~c*)"]);
        assert_eq!(verdict(&both, "GET a"), Ok(()));
        assert_eq!(verdict(&both, "SET b 1"), Ok(()));
        assert_eq!(verdict(&both, "SET a 1"), Err(Denial::Key(1)), "the rights of selectors do not add up");
        assert_eq!(verdict(&both, "MSET c 1 d 2"), Err(Denial::Key(3)));
        assert_eq!(verdict(&both, "DEL a"), Err(Denial::Command));
    }

    #[test]
    fn patterns_of_sort_need_the_right_to_read_every_key() {
        let args: ArgsBuf = ["SORT", "l", "BY", "w_*"].into_iter().collect();
        let row = resolve(args.as_args()).expect("SORT has a row");
        for (rules, may) in [
            (&["+sort", "~*"][..], true),
            (&["+sort", "~l"], false),
            (&["+sort", "%R~*"], true),
            (&["+sort", "%W~*"], false),
            (&["+get", "~*"], false),
            (&["+sort", "~l", "(+get ~*)"], false),
        ] {
            assert_eq!(user(rules).may_read_every_key(row, args.as_args(), &mut KeyPositions::new()), may, "{rules:?}");
        }
    }

    #[test]
    fn channels_are_lost_only_if_some_are_missing() {
        let lost = |before: &[&str], after: &[&str]| user(after).may_have_lost_channels(&user(before));
        assert!(lost(&["&*"], &["&a*"]) && lost(&["&a", "&b"], &["&a"]) && lost(&["(&a)"], &["&b"]));
        assert!(
            !lost(&["&a"], &["&a", "&b"]) && !lost(&["&a"], &["&*"]) && !lost(&["&a"], &["(&a)"]) && !lost(&[], &[])
        );
    }

    #[test]
    fn a_pattern_full_of_stars_is_no_attack() {
        let stars = user(&["+get", &format!("~{}b", "a*".repeat(64))]);
        let args: ArgsBuf = [b"GET".to_vec(), vec![b'a'; 1 << 20]].into_iter().collect();
        let row = resolve(args.as_args()).expect("GET has a row");
        assert_eq!(stars.check(row, args.as_args(), &mut KeyPositions::new()), Err(Denial::Key(1)));
    }
}
