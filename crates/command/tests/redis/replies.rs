//! What rows say of their replies, compared with replies of a real server to an example of each, in both dialects.

use std::collections::BTreeSet;

use respool_command::{Argument, ArgumentKind, Arguments, Lane, Repeat, Row, resolve};
use respool_testkit::{Client, RedisServer, reference_server};
use respool_wire::{ArgsBuf, Protocol, Value};

use crate::{request, shared_rows, shown};

const EXAMPLES: &str = include_str!("../data/examples.txt");

/// Rows without an example, and why.
const WITHOUT: &[(&str, &str)] = &[
    ("ACL LOAD", "needs a file of users"),
    ("ACL SAVE", "needs a file of users"),
    ("BGREWRITEAOF", "is refused while a snapshot is written"),
    ("CLIENT CACHING", "needs tracking, which the dialect decides"),
    ("CLIENT TRACKING", "RESP2 refuses it without a connection for messages"),
    ("CLUSTER FAILOVER", "needs a replica"),
    ("CLUSTER FORGET", "needs a second node"),
    ("CLUSTER REPLICATE", "needs a second node"),
    ("CLUSTER SET-CONFIG-EPOCH", "a node accepts it once"),
    ("CONFIG REWRITE", "needs a file of settings"),
    ("FAILOVER", "needs a replica"),
    ("FUNCTION KILL", "needs a function that runs"),
    ("HELLO", "says which dialect it is, and switches it"),
    ("MODULE LOAD", "needs a module"),
    ("MODULE LOADEX", "needs a module"),
    ("MODULE UNLOAD", "needs a module"),
    ("MONITOR", "never ends"),
    ("PFDEBUG", "replies as each of its subcommands has it"),
    ("PFSELFTEST", "takes seconds"),
    ("PSYNC", "is no reply"),
    ("QUIT", "closes the connection"),
    ("SCRIPT KILL", "needs a script that runs"),
    ("SHUTDOWN", "ends the server"),
    ("SYNC", "is no reply"),
];

/// Cases and nulls that no example can show, as the test names them.
const UNSEEN: &[&str] = &["CLIENT KILL ip:port", "HSCAN NOVALUES", "EXEC null"];

/// What examples have shown.
#[derive(Default)]
struct Seen {
    rows: BTreeSet<&'static str>,
    facts: BTreeSet<String>,
    wrong: Vec<String>,
}

#[test]
fn replies_are_what_the_rows_say_in_both_dialects() {
    let Some(server) = reference_server(&["--enable-debug-command", "yes"]) else { return };
    let cluster = RedisServer::start_with(&["--cluster-enabled", "yes"]).expect("a node starts");
    let (examples, of_a_cluster) = EXAMPLES.split_once("\n[cluster]\n").expect("the list has two parts");
    let mut seen = Seen::default();
    for protocol in [Protocol::Resp2, Protocol::Resp3] {
        for (server, examples) in [(&server, examples), (&cluster, of_a_cluster)] {
            let mut client = server.client().expect("the server accepts");
            let hello = client.command(&["HELLO", if protocol == Protocol::Resp2 { "2" } else { "3" }]);
            assert!(hello.expect("HELLO is answered").starts_with(if protocol == Protocol::Resp2 {
                b"*"
            } else {
                b"%"
            }));
            check(&mut client, examples, protocol, &mut seen);
        }
    }
    assert!(seen.wrong.is_empty(), "{}", seen.wrong.join("\n"));
    assert_complete(&seen);
}

fn check(client: &mut Client, examples: &str, protocol: Protocol, seen: &mut Seen) {
    let mut last = Vec::new();
    for line in examples.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let words: Vec<Vec<u8>> = line
            .split(' ')
            .map(|word| match word {
                "$LAST" => last.clone(),
                "\"\"" => Vec::new(),
                word => word.replace("\\n", "\n").replace("\\s", " ").into_bytes(),
            })
            .collect();
        let sent = request(&words);
        let row = resolve(sent.as_args()).unwrap_or_else(|_| panic!("{line} is no command"));
        let names = row.name.split(' ').count();
        let reply = client.command(&words).expect("the server answers");
        let value = Value::parse(&reply).expect("the reply is whole");
        let Some(given) = given(row, &words[names..]) else {
            seen.wrong.push(format!("{line}: its row has other arguments"));
            continue;
        };
        let returns = row.usage().returns().unwrap_or_else(|| panic!("{row:?} has no reply"));
        let declared = returns.with(&given);
        if !declared.fits(&value, protocol) {
            seen.wrong.push(format!("{line}: {declared:?} in {protocol:?} was {}", shown(&reply)));
        }
        // What Respool answers itself, and messages, are never converted.
        let is_forwarded = !matches!(row.lane(sent.as_args()), Lane::Local | Lane::Push);
        if is_forwarded && !declared.fits(&converted(row, &sent, &reply, protocol), other(protocol)) {
            seen.wrong.push(format!("{line}: {declared:?} is not what {protocol:?} is converted to"));
        }
        last = last_text(&value).unwrap_or(last);
        seen.rows.insert(row.name);
        let is_null = matches!(value, Value::Null | Value::NullBulk | Value::NullArray);
        let case = returns.cases().filter_map(|(names, _)| names.filter(|name| given.contains(name)).last()).last();
        let case = case.unwrap_or_default();
        seen.facts.insert(format!("{} {case}{}", row.name, if is_null { "null" } else { "" }));
        seen.facts.extend(given.iter().map(|name| format!("{} {name}", row.name)));
    }
}

/// The reply as a client of the other dialect is given it.
fn converted(row: &Row, sent: &ArgsBuf, reply: &[u8], protocol: Protocol) -> Value {
    let (shape, mut out) = (row.shape(sent.as_args()), Vec::new());
    let outcome = match protocol {
        Protocol::Resp2 => shape.to_resp3(reply, &mut out),
        Protocol::Resp3 => shape.to_resp2(reply, &mut out),
    };
    outcome.expect("the reply is whole");
    Value::parse(&out).expect("it still is")
}

fn other(protocol: Protocol) -> Protocol {
    if protocol == Protocol::Resp2 { Protocol::Resp3 } else { Protocol::Resp2 }
}

/// Every row, and every case of its reply, as itself and as the null that it may be, must have been seen.
fn assert_complete(seen: &Seen) {
    let mut missing = Vec::new();
    for row in shared_rows() {
        let Some(returns) = row.usage().returns() else { continue };
        let is_excused = WITHOUT.iter().any(|(name, _)| *name == row.name);
        assert!(!(is_excused && seen.rows.contains(row.name)), "{row:?} has an example and is said to have none");
        if is_excused {
            continue;
        }
        let usual = returns.usual();
        let mut facts = vec![format!("{} ", row.name)];
        facts.extend(usual.is_nullable.then(|| format!("{} null", row.name)));
        for (names, reply) in returns.cases() {
            let names: Vec<_> = names.collect();
            facts.extend(names.iter().map(|name| format!("{} {name}", row.name)));
            let null = |name: &&str| format!("{} {name}null", row.name);
            let is_missed = reply.is_nullable && !names.iter().map(null).any(|fact| seen.facts.contains(&fact));
            missing.extend(is_missed.then(|| format!("{} {names:?} null", row.name)));
        }
        missing.extend(facts.into_iter().filter(|fact| !seen.facts.contains(fact)));
    }
    assert_eq!(missing, UNSEEN, "without an example");
}

fn last_text(value: &Value) -> Option<Vec<u8>> {
    match value {
        Value::Bulk(text) | Value::Simple(text) => Some(text.clone()),
        Value::Integer(number) => Some(number.to_string().into_bytes()),
        Value::Array(values) | Value::Set(values) => values.last().and_then(last_text),
        _ => None,
    }
}

/// The tokens and names of the arguments that the words of a request are. `None`: the row has other arguments.
fn given(row: &Row, words: &[Vec<u8>]) -> Option<Vec<&'static str>> {
    let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
    let arguments: Vec<_> = row.usage().arguments().collect();
    if arguments.is_empty() && row.arity < 0 {
        // Redis does not describe the arguments of a few.
        return Some(Vec::new());
    }
    let ends = sequence(&arguments, &words).into_iter().filter(|(used, _)| *used == words.len());
    // A string may be anything, also what is a token elsewhere.
    let tokens =
        |given: &[&str]| given.iter().filter(|name| name.starts_with(|sign: char| !sign.is_lowercase())).count();
    ends.map(|(_, given)| given).max_by_key(|given| tokens(given))
}

/// How many words may be read, and the arguments that they are.
type Ends = Vec<(usize, Vec<&'static str>)>;

/// Reads arguments one behind the other; those that may be left out in any order.
fn sequence(arguments: &[Argument], words: &[&[u8]]) -> Ends {
    let Some((first, rest)) = arguments.split_first() else { return vec![(0, Vec::new())] };
    let mut ends = Vec::new();
    if first.is_optional {
        ends.extend(sequence(rest, words));
    }
    ends.extend(then(repeated(first, words), |used| sequence(rest, &words[used..])));
    ends
}

/// What may follow what was read.
fn then(ends: Ends, next: impl Fn(usize) -> Ends) -> Ends {
    let mut out: Ends = Vec::new();
    for (used, given) in ends {
        for (more, names) in next(used) {
            let all = given.iter().chain(&names).copied().collect();
            if !out.iter().any(|(end, given)| *end == used + more && *given == all) {
                out.push((used + more, all));
            }
        }
    }
    out
}

fn repeated(argument: &Argument, words: &[&[u8]]) -> Ends {
    let with_token = |words: &[&[u8]]| match argument.token {
        None => value(argument, words),
        Some(token) => match words.split_first() {
            Some((word, rest)) if word.eq_ignore_ascii_case(token.as_bytes()) => {
                let ends = value(argument, rest);
                ends.into_iter().map(|(used, given)| (used + 1, [&[token], &given[..]].concat())).collect()
            }
            _ => Vec::new(),
        },
    };
    let once = with_token(words);
    let again = |used: usize| -> Ends {
        match argument.repeat {
            Repeat::Once => vec![(0, Vec::new())],
            _ if used == 0 || used >= words.len() => vec![(0, Vec::new())],
            Repeat::Many => {
                let next = Argument { token: None, ..*argument };
                let mut ends = repeated(&next, &words[used..]);
                ends.push((0, Vec::new()));
                ends
            }
            Repeat::ManyWithToken => {
                let mut ends = repeated(argument, &words[used..]);
                ends.push((0, Vec::new()));
                ends
            }
        }
    };
    then(once, again)
}

fn value(argument: &Argument, words: &[&[u8]]) -> Ends {
    // An argument is called by its token, if it has one.
    let name: &[&str] = if argument.token.is_some() { &[] } else { &[argument.name] };
    let named = |ends: Ends| ends.into_iter().map(|(used, given)| (used, [name, &given[..]].concat())).collect();
    let one = |is_it: bool| if is_it { vec![(1, name.to_vec())] } else { Vec::new() };
    let is =
        |test: fn(&str) -> bool| one(words.first().and_then(|word| std::str::from_utf8(word).ok()).is_some_and(test));
    match argument.kind {
        ArgumentKind::Token => vec![(0, Vec::new())],
        ArgumentKind::String | ArgumentKind::Key | ArgumentKind::Pattern => one(!words.is_empty()),
        ArgumentKind::Integer | ArgumentKind::UnixTime => is(|word| word.parse::<i64>().is_ok()),
        ArgumentKind::Double => is(|word| word.parse::<f64>().is_ok()),
        ArgumentKind::Block(parts) => named(sequence(&parts.collect::<Vec<_>>(), words)),
        ArgumentKind::OneOf(parts) => named(one_of(parts, words)),
    }
}

fn one_of(parts: Arguments, words: &[&[u8]]) -> Ends {
    parts.flat_map(|part| repeated(&part, words)).collect()
}
