//! Whether a user may make a request, and if not, what stands against it.

use respool_command::{Categories, Command, Flags, KeyPositions, KeysError, PubsubCommand, Row};
use respool_wire::Args;
use std::collections::BTreeSet;

use crate::log::Reason;
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

impl Denial {
    /// What was denied, for `ACL LOG`: the kind of it, and its name.
    pub fn described<'a>(self, row: &'a Row, args: Args<'a>) -> (Reason, &'a [u8]) {
        let argument = |at: u32| args.get(at as usize).unwrap_or_default();
        match self {
            Self::Command => (Reason::Command, row.full_name().as_bytes()),
            Self::Key(at) => (Reason::Key, argument(at)),
            Self::Channel(at) => (Reason::Channel, argument(at)),
        }
    }
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

    /// Whether it might run a command that has no row yet, as a subcommand of `container` or on its own: if not, no node need
    /// be asked for it.
    pub fn may_run_unknown(&self, container: Option<&Row>) -> bool {
        self.all_selectors().any(|selector| match container {
            Some(container) => selector.commands.has(container),
            None => selector.commands.has_future(),
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
        let kept: BTreeSet<&[u8]> =
            self.all_selectors().flat_map(|selector| &selector.channels).map(|channel| &**channel).collect();
        before.all_selectors().any(|selector| {
            selector.is_all_channels || !selector.channels.iter().all(|channel| kept.contains(&**channel))
        })
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
            let found = keys.result.get_or_insert_with(|| row.keys.positions(args, keys.positions)).is_ok();
            if !found {
                // Which keys it means cannot be told here. A node may read a count less strictly (`01`, `+1`) and execute it.
                return Err(Denial::Key(1));
            }
            for found in keys.positions.iter().filter(|found| found.access.is_key()) {
                let key = args.get(found.index as usize).unwrap_or_default();
                let needed = Rights::needed(found.access);
                if !self.keys.iter().any(|pattern| pattern.allows(key, needed)) {
                    return Err(Denial::Key(found.index));
                }
            }
        }
        if self.is_all_channels {
            return Ok(());
        }
        if row.command == Command::Learnt && is_about_channels(row) {
            // Which of its arguments are channels only the node knows.
            return Err(Denial::Channel(1));
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
        if self.is_all_commands || needs_no_auth(row) {
            return true;
        }
        if row.command == Command::Learnt {
            return self.allows_learnt(row);
        }
        if self.commands.has(row) {
            return true;
        }
        let Some(allowed) = self.first_arguments.get(row.full_name()) else { return false };
        args.get(1).is_some_and(|first| allowed.iter().any(|known| known.eq_ignore_ascii_case(first)))
    }

    /// A command that only nodes know has no bit of its own: a subcommand is judged as its container is, everything else as
    /// what is still to come. Categories that were taken away are taken from it, too.
    fn allows_learnt(&self, row: &Row) -> bool {
        let is_allowed = match row.container() {
            Some(container) => self.commands.has(container),
            None => self.commands.has(row),
        };
        is_allowed && !row.categories.has_any(self.denied)
    }

    fn allows_channel(&self, channel: &[u8], is_pattern: bool) -> bool {
        self.is_all_channels
            || self.channels.iter().any(|allowed| match is_pattern {
                true => **allowed == *channel,
                false => respool_command::glob::matches(allowed, channel),
            })
    }
}

/// Whether every client may run it, authenticated or not: AUTH and what goes with it. What a node says of its own commands does not
/// count.
pub fn needs_no_auth(row: &Row) -> bool {
    row.flags.has(Flags::NO_AUTH) && row.command != Command::Learnt
}

/// Whether a command that nodes describe is about channels.
fn is_about_channels(row: &Row) -> bool {
    row.flags.has(Flags::PUBSUB) || row.categories.has(Categories::PUBSUB)
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
        assert_eq!(check(&app, hidden), Err(Denial::Key(1)), "its keys are not known here");
        assert_eq!(check(&user(&["+@all", "~*"]), hidden), Ok(()));
        let careful = user(&["+@all", "-@dangerous", "~*"]);
        assert_eq!(check(&careful, dangerous), Err(Denial::Command));
        assert_eq!(check(&careful, plain), Ok(()));
        assert_eq!(check(&user(&["+@all", "-@dangerous", "+@dangerous", "~*"]), dangerous), Ok(()));
        assert_eq!(check(&user(&["-@dangerous", "+@all", "~*"]), dangerous), Ok(()));
        assert_eq!(check(&user(&["+@read", "~*"]), plain), Err(Denial::Command), "it was not allowed");
    }

    #[test]
    fn a_learnt_subcommand_is_judged_as_its_container_is() {
        let trace = learnt("SCRIPT TRACE", &["noscript"], &["@slow"], 0);
        let check = |rules: &[&str]| {
            let args: ArgsBuf = ["SCRIPT", "TRACE", "x"].into_iter().collect();
            user(rules).check(trace, args.as_args(), &mut KeyPositions::new())
        };
        assert_eq!(check(&["+@all", "~*"]), Ok(()));
        assert_eq!(check(&["+@all", "-script", "~*"]), Err(Denial::Command));
        assert_eq!(check(&["+@all", "-script", "+script", "~*"]), Ok(()));
        assert_eq!(check(&["+@all", "-script|flush", "~*"]), Ok(()), "one of the others was taken away");
        assert_eq!(check(&["+@all", "-@scripting", "~*"]), Err(Denial::Command), "the others are of that category");
        assert_eq!(check(&["+script", "~*"]), Ok(()));
        assert_eq!(check(&["+script|exists", "~*"]), Err(Denial::Command));
        let args: ArgsBuf = ["FT.A", "k"].into_iter().collect();
        let other = learnt("FT.A", &["readonly"], &["@read"], 1);
        let no_scripts = user(&["+@all", "-script", "~*"]);
        assert_eq!(no_scripts.check(other, args.as_args(), &mut KeyPositions::new()), Ok(()));
        let script = respool_command::lookup(b"SCRIPT");
        assert!(!no_scripts.may_run_unknown(script) && no_scripts.may_run_unknown(None));
        assert!(!user(&["+@read"]).may_run_unknown(None) && user(&["+@read", "(+@all)"]).may_run_unknown(None));
    }

    #[test]
    fn channels_that_only_a_node_knows_are_denied() {
        let publish = learnt("X.PUBLISH", &["pubsub", "fast"], &["@pubsub"], 0);
        let args: ArgsBuf = ["X.PUBLISH", "c", "m"].into_iter().collect();
        let check = |rules: &[&str]| user(rules).check(publish, args.as_args(), &mut KeyPositions::new());
        assert_eq!(check(&["+@all", "~*", "&c"]), Err(Denial::Channel(1)));
        assert_eq!(check(&["+@all", "~*", "&*"]), Ok(()));
    }

    #[test]
    fn keys_that_cannot_be_told_are_denied() {
        let app = user(&["+@all", "~app:*"]);
        for request in [
            "ZUNION 01 secret",
            "ZUNION +1 secret",
            "ZUNION x secret",
            "ZUNION 0 secret",
            "ZUNION 2 app:a",
            "LMPOP 01 secret LEFT",
            "XREAD COUNT 1 secret 0",
            "MIGRATE h 1 k 0 10 KEYS secret",
        ] {
            assert_eq!(verdict(&app, request), Err(Denial::Key(1)), "{request}");
        }
        assert_eq!(verdict(&app, "ZUNION 1 app:a"), Ok(()));
        assert_eq!(verdict(&user(&["+@all", "~*"]), "ZUNION 01 secret"), Ok(()), "it may have any key");
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
