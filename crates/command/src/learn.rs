//! Rows for commands that the table does not know: newer servers', and modules'. Made of what `COMMAND INFO` says.
//!
//! Rows live for ever, so callers bound how often they learn. What a node says may be wrong, or less than the whole
//! truth; in doubt a row says less: a command whose keys cannot be told goes nowhere where there are several nodes.

use respool_wire::Value;

use crate::keys::{Found, KeysError};
use crate::row::{Draft, row};
use crate::{
    Begin, Categories, Find, Flags, Group, KeyAccess, KeySpec, Lane, RequestPolicy, ResponsePolicy, Row, lookup,
};

/// Makes a row for the command called `name` (`NAME`, or `CONTAINER SUB`) from one element of the reply to `COMMAND INFO`.
/// `None` if it describes no command. The row and its texts are never freed.
pub fn learn(name: &str, described: &Value) -> Option<&'static Row> {
    let Value::Array(parts) = described else { return None };
    let integer = |at: usize| match parts.get(at) {
        Some(Value::Integer(number)) => Some(*number),
        _ => None,
    };
    let arity = i16::try_from(integer(1)?).ok().filter(|arity| *arity != 0)?;
    let words = |at: usize| parts.get(at).map(words_of).unwrap_or_default();
    let named_flags = words(2);
    let flags = union(&named_flags, Flags::named, Flags::NONE, Flags::with);
    let names: Vec<String> = words(6).iter().map(|word| word.trim_start_matches('@').to_owned()).collect();
    let categories = union(&names, Categories::named, Categories::NONE, Categories::with);
    let (flags, categories) = as_the_others(name, flags, categories);
    let triple = (integer(3)?, integer(4)?, integer(5)?);
    let is_movable = named_flags.iter().any(|flag| flag == "movablekeys");
    let (specs, is_hidden) = match parts.get(8) {
        Some(Value::Array(specs) | Value::Set(specs)) if !specs.is_empty() => {
            (specs.iter().map(spec_of).collect(), false)
        }
        // An older server: three numbers, or the word that they do not tell.
        _ => (of_triple(triple, flags), is_movable),
    };
    let draft = row(String::leak(name.to_owned()), arity, "0.0.0").with_flags(flags).with_categories(categories);
    let draft = with_keys(draft, specs, is_hidden);
    let draft = with_policies(draft, &words(7));
    let is_stateful = flags.has(Flags::BLOCKING) || flags.has(Flags::PUBSUB);
    let draft = match (is_stateful, flags.has(Flags::ADMIN)) {
        (true, _) => draft.lane(Lane::Dedicated),
        // An admin command is one whether or not the table knows it.
        (false, true) => draft.lane(Lane::Admin),
        (false, false) => draft,
    };
    Row::learnt(draft, Group::Generic).map(|row| &*Box::leak(Box::new(row)))
}

/// A subcommand is at least what all others of its container are, whatever the node says of it: what steers servers, and the
/// categories by which users are kept from it.
fn as_the_others(name: &str, flags: Flags, categories: Categories) -> (Flags, Categories) {
    let container = name.split_once(' ').and_then(|(container, _)| lookup(container.as_bytes()));
    let others = container.map_or(&[][..], |container| container.subcommands);
    let others: Vec<&Row> = others.iter().filter(|row| row.word() != "HELP").collect();
    let in_common = |a: Categories, b: Categories| a.without(a.without(b));
    let Some(shared) = others.iter().map(|row| row.categories).reduce(in_common) else { return (flags, categories) };
    let is_admin = others.iter().all(|row| row.flags.has(Flags::ADMIN));
    // How fast each is is its own.
    let shared = shared.without(Categories::FAST).without(Categories::SLOW);
    (if is_admin { flags.with(Flags::ADMIN) } else { flags }, categories.with(shared))
}

fn words_of(value: &Value) -> Vec<String> {
    let (Value::Array(values) | Value::Set(values)) = value else { return Vec::new() };
    let text = |value: &Value| match value {
        Value::Simple(text) | Value::Bulk(text) => Some(String::from_utf8_lossy(text).into_owned()),
        _ => None,
    };
    values.iter().filter_map(text).collect()
}

fn union<S>(names: &[String], named: fn(&[u8]) -> Option<S>, none: S, with: fn(S, S) -> S) -> S {
    names.iter().filter_map(|name| named(name.as_bytes())).fold(none, with)
}

/// How keys are used if nothing says it: to write what may write, to read what only reads.
const fn access_of(flags: Flags) -> KeyAccess {
    if flags.has(Flags::READONLY) { KeyAccess::of("RO access") } else { KeyAccess::of("RW access update") }
}

/// First, last and step, as commands were described before there were specifications.
fn of_triple((first, last, step): (i64, i64, i64), flags: Flags) -> Vec<Option<KeySpec>> {
    if first == 0 {
        return Vec::new();
    }
    let found = || {
        let relative = if last < 0 { last } else { last.checked_sub(first)? };
        let begin = Begin::Index(u8::try_from(first).ok()?);
        let find = Find::Range { last: i8::try_from(relative).ok()?, step: u8::try_from(step.max(1)).ok()?, limit: 0 };
        Some(KeySpec { access: access_of(flags), begin, find })
    };
    vec![found()]
}

/// One specification; `None` if it is not one that keys can be found by.
fn spec_of(value: &Value) -> Option<KeySpec> {
    let flags = words_of(&field(value, "flags")?);
    if flags.iter().any(|flag| flag == "incomplete" || flag == "variable_flags") {
        return None;
    }
    let access = union(&flags, KeyAccess::named, KeyAccess::NONE, KeyAccess::with);
    let (begin, find) = (field(value, "begin_search")?, field(value, "find_keys")?);
    let number = |of: &Value, name: &str| match field(&field(of, "spec")?, name) {
        Some(Value::Integer(number)) => Some(number),
        _ => None,
    };
    let kind = |of: &Value| match field(of, "type") {
        Some(Value::Bulk(text) | Value::Simple(text)) => String::from_utf8(text).ok(),
        _ => None,
    };
    let begin = match kind(&begin)?.as_str() {
        "index" => Begin::Index(u8::try_from(number(&begin, "index")?).ok()?),
        _ => return None,
    };
    let find = match kind(&find)?.as_str() {
        "range" => Find::Range {
            last: i8::try_from(number(&find, "lastkey")?).ok()?,
            step: u8::try_from(number(&find, "keystep")?).ok()?,
            limit: u8::try_from(number(&find, "limit")?).ok()?,
        },
        "keynum" => Find::Count {
            count_at: u8::try_from(number(&find, "keynumidx")?).ok()?,
            first: u8::try_from(number(&find, "firstkey")?).ok()?,
            step: u8::try_from(number(&find, "keystep")?).ok()?,
        },
        _ => return None,
    };
    Some(KeySpec { access, begin, find })
}

/// The value of a name, in a map of either dialect.
fn field(map: &Value, name: &str) -> Option<Value> {
    let is_name = |value: &Value| matches!(value, Value::Bulk(text) | Value::Simple(text) if text == name.as_bytes());
    match map {
        Value::Map(pairs) => pairs.iter().find(|(key, _)| is_name(key)).map(|(_, value)| value.clone()),
        Value::Array(flat) => flat.chunks_exact(2).find(|pair| is_name(&pair[0])).map(|pair| pair[1].clone()),
        _ => None,
    }
}

fn with_keys(draft: Draft, specs: Vec<Option<KeySpec>>, is_hidden: bool) -> Draft {
    /// As many as a row has room for.
    const SPECS_MAX: usize = 3;
    let is_told = !is_hidden && specs.len() <= SPECS_MAX && specs.iter().all(Option::is_some);
    if !is_told {
        // There are keys, and it is not known which: where there are several nodes it cannot be sent anywhere.
        return draft
            .spec(KeySpec::unknown("RW access update"))
            .found_by(|_, _: &mut dyn FnMut(Found)| Err(KeysError::Syntax))
            .policy(RequestPolicy::Special, ResponsePolicy::Special);
    }
    specs.into_iter().flatten().fold(draft, Draft::spec)
}

fn with_policies(draft: Draft, tips: &[String]) -> Draft {
    let told = |prefix: &str| tips.iter().find(|tip| tip.starts_with(prefix));
    let request = told("request_policy:").and_then(|tip| RequestPolicy::of_tip(tip.as_bytes()));
    let response = told("response_policy:").and_then(|tip| ResponsePolicy::of_tip(tip.as_bytes()));
    match (request, response) {
        (None, _) => draft,
        // Whatever has rules of its own, or says only half of what is needed, is for one node alone.
        (Some(RequestPolicy::AllNodes | RequestPolicy::AllShards), Some(response)) => {
            draft.policy(request.unwrap_or(RequestPolicy::AllShards), response)
        }
        (Some(RequestPolicy::SplitByKey), _) => draft,
        (Some(_), _) => draft
            .spec(KeySpec::unknown("RW access update"))
            .found_by(|_, _: &mut dyn FnMut(Found)| Err(KeysError::Syntax))
            .policy(RequestPolicy::Special, ResponsePolicy::Special),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use respool_wire::{Args, ArgsBuf, Encoder, Protocol};

    use crate::{KeyPositions, introspect, resolve};

    /// What `COMMAND INFO` says of a command of the table.
    fn described(name: &str, protocol: Protocol) -> Value {
        let request: ArgsBuf = ["COMMAND", "INFO", name].into_iter().collect();
        let mut reply = Vec::new();
        let row = resolve(request.as_args()).expect("COMMAND INFO has a row");
        introspect::answer(
            row,
            request.as_args(),
            &[],
            &crate::Renames::default(),
            &mut Encoder::new(&mut reply, protocol),
        );
        let Ok(Value::Array(mut rows)) = Value::parse(&reply) else { panic!("{name}") };
        rows.remove(0)
    }

    fn keys(row: &Row, args: Args<'_>) -> Vec<u32> {
        let mut positions = KeyPositions::new();
        let _ = row.keys.positions(args, &mut positions);
        positions.iter().map(|key| key.index).collect()
    }

    /// Commands of the table, learnt as if they were not, are what the table says.
    #[test]
    fn a_learnt_row_says_what_the_table_says() {
        for protocol in [Protocol::Resp2, Protocol::Resp3] {
            for (name, request) in [
                ("GET", "GET k"),
                ("MGET", "MGET a b c"),
                ("BITOP", "BITOP AND d a b"),
                ("ZUNIONSTORE", "ZUNIONSTORE d 2 a b"),
                ("EVAL", "EVAL s 2 a b c"),
                ("DBSIZE", "DBSIZE"),
                ("SPUBLISH", "SPUBLISH c m"),
            ] {
                let known = lookup(name.as_bytes()).expect("it has a row");
                let learnt = learn(name, &described(name, protocol)).expect("it is described");
                let args: ArgsBuf = request.split(' ').collect();
                assert_eq!(learnt.command, crate::Command::Learnt);
                assert_eq!(
                    (learnt.arity, learnt.flags, learnt.categories),
                    (known.arity, known.flags, known.categories)
                );
                assert_eq!(keys(learnt, args.as_args()), keys(known, args.as_args()), "{name}");
                assert_eq!(learnt.full_name(), known.full_name());
            }
        }
        let of_dbsize = learn("DBSIZE", &described("DBSIZE", Protocol::Resp2)).expect("it is described");
        assert_eq!(of_dbsize.request_policy, RequestPolicy::AllShards);
        assert_eq!(of_dbsize.response_policy, ResponsePolicy::Sum);
    }

    #[test]
    fn what_steers_servers_is_of_the_admin_plane() {
        let learnt = learn("SHUTDOWN", &described("SHUTDOWN", Protocol::Resp2)).expect("it is described");
        let args: ArgsBuf = ["SHUTDOWN"].into_iter().collect();
        assert!(learnt.is_admin(args.as_args()));
    }

    /// A node that does not say what its new subcommand is opens no way around rules.
    #[test]
    fn a_subcommand_is_at_least_what_the_others_are() {
        let said = |name: &str| {
            let words = |words: &[&str]| Value::Array(words.iter().map(|word| Value::Simple((*word).into())).collect());
            let numbers = [-2, 0, 0, 0].map(Value::Integer);
            let [arity, first, last, step] = numbers;
            let parts = vec![Value::Bulk(name.into()), arity, words(&["fast"]), first, last, step, words(&["@fast"])];
            learn(name, &Value::Array(parts)).expect("it is described")
        };
        let args: ArgsBuf = ["CONFIG", "LATER"].into_iter().collect();
        assert!(said("CONFIG LATER").is_admin(args.as_args()));
        assert!(said("CONFIG LATER").categories.has(Categories::DANGEROUS));
        assert!(said("SCRIPT LATER").categories.has(Categories::SCRIPTING));
        assert!(!said("XINFO LATER").is_admin(args.as_args()));
        assert!(!said("LATER").is_admin(args.as_args()));
    }

    #[test]
    fn what_waits_or_listens_is_kept_from_shared_connections() {
        for name in ["BLPOP", "SUBSCRIBE"] {
            let learnt = learn(name, &described(name, Protocol::Resp2)).expect("it is described");
            let args: ArgsBuf = [name, "k", "0"].into_iter().collect();
            assert_eq!(learnt.lane(args.as_args()), Lane::Dedicated, "{name}");
        }
        let shutdown = learn("SHUTDOWN", &described("SHUTDOWN", Protocol::Resp2)).expect("it is described");
        let args: ArgsBuf = ["SHUTDOWN"].into_iter().collect();
        assert!(shutdown.is_admin(args.as_args()));
    }

    #[test]
    fn keys_that_cannot_be_told_are_not_guessed() {
        for name in ["SORT", "MIGRATE", "XREAD"] {
            let learnt = learn(name, &described(name, Protocol::Resp2)).expect("it is described");
            assert_eq!(learnt.request_policy, RequestPolicy::Special, "{name}");
            assert!(!learnt.keys.is_none());
        }
    }

    #[test]
    fn an_old_server_tells_first_last_and_step_alone() {
        let old = b"*6\r\n$4\r\nmset\r\n:-3\r\n*2\r\n+write\r\n+denyoom\r\n:1\r\n:-1\r\n:2\r\n";
        let learnt = learn("MMSET", &Value::parse(old).unwrap()).expect("it is described");
        let args: ArgsBuf = "MMSET a 1 b 2".split(' ').collect();
        assert_eq!(keys(learnt, args.as_args()), [1, 3]);
        for nothing in
            [&b"$-1\r\n"[..], b"*-1\r\n", b"_\r\n", b"*1\r\n:1\r\n", b"*6\r\n$1\r\na\r\n:0\r\n*0\r\n:0\r\n:0\r\n:0\r\n"]
        {
            assert!(learn("NOTHING", &Value::parse(nothing).unwrap()).is_none());
        }
        assert!(learn(&"LONG".repeat(20), &Value::parse(old).unwrap()).is_none());
    }
}
