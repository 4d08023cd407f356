//! Every row, as `COMMAND INFO`, `COMMAND DOCS`, `COMMAND LIST` and `COMMAND COUNT` tell it, in both dialects.

use std::collections::BTreeSet;

use respool_command::{all, listed};
use respool_testkit::Client;
use respool_wire::{Protocol, Value};

use crate::differences::Differences;
use crate::{answer, is_later, redis, request, shared_rows, shown};

/// Switches the connection to `protocol`.
fn speak(client: &mut Client, protocol: Protocol) {
    let reply =
        client.command(&["HELLO", if protocol == Protocol::Resp2 { "2" } else { "3" }]).expect("HELLO is answered");
    assert!(!reply.starts_with(b"-"), "{}", shown(&reply));
}

fn text(value: &Value) -> String {
    match value {
        Value::Simple(bytes) | Value::Bulk(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        other => panic!("{other:?} is no text"),
    }
}

/// Sorts subcommands by name, takes out those of later servers, and takes the free-text notes out of key
/// specifications: nothing else may differ.
fn comparable(row: Value, has_notes: &mut bool) -> Value {
    let Value::Array(mut fields) = row else { return row };
    assert_eq!(fields.len(), 10, "{fields:?}");
    let (Value::Array(specs) | Value::Set(specs)) = &mut fields[8] else {
        panic!("{fields:?} have no key specifications")
    };
    for spec in specs {
        let before = format!("{spec:?}").len();
        match spec {
            Value::Map(pairs) => pairs.retain(|(name, _)| text(name) != "notes"),
            Value::Array(flat) if text(&flat[0]) == "notes" => drop(flat.drain(..2)),
            _ => {}
        }
        *has_notes |= before != format!("{spec:?}").len();
    }
    if let Value::Array(subcommands) = &mut fields[9] {
        let name = |row: &Value| match row {
            Value::Array(fields) => text(&fields[0]),
            other => panic!("{other:?} is no row"),
        };
        subcommands.retain(|row| !is_later(&name(row)));
        *subcommands = std::mem::take(subcommands).into_iter().map(|row| comparable(row, has_notes)).collect();
        subcommands.sort_by_key(name);
    }
    Value::Array(fields)
}

#[test]
fn every_row_is_what_redis_says_it_is() {
    let Some(server) = redis() else { return };
    let mut client = server.client().expect("the server accepts");
    let notes = Differences::of("notes");
    for protocol in [Protocol::Resp2, Protocol::Resp3] {
        speak(&mut client, protocol);
        for row in all().filter(|row| !row.is_ours() && !row.is_later()) {
            let asked = request(["COMMAND", "INFO", row.full_name()]);
            let ours = Value::parse(&answer(&asked, protocol)).expect("our reply is whole");
            let reply = client.command(&["COMMAND", "INFO", row.full_name()]).expect("the server answers");
            let theirs = Value::parse(&reply).expect("its reply is whole");
            let (Value::Array(mut ours), Value::Array(mut theirs)) = (ours, theirs) else {
                panic!("{row:?}: no array")
            };
            let mut has_notes = false;
            let ours = comparable(ours.remove(0), &mut has_notes);
            assert!(!has_notes, "{row:?}: notes of ours would need a comparison");
            let theirs = comparable(theirs.remove(0), &mut has_notes);
            assert!(!has_notes || notes.has("*"), "{row:?} has notes");
            assert!(ours == theirs, "{row:?}\n ours  {ours:?}\n Redis {theirs:?}");
        }
    }
    notes.assert_all_needed();
}

#[test]
fn there_are_as_many_rows_as_redis_has() {
    let Some(server) = redis() else { return };
    let mut client = server.client().expect("the server accepts");
    let names = |reply: &[u8]| match Value::parse(reply).expect("the reply is whole") {
        Value::Array(names) => names.iter().map(text).collect::<BTreeSet<_>>(),
        other => panic!("{other:?} is no list"),
    };
    for filter in
        [&[][..], &["FILTERBY", "ACLCAT", "HASH"], &["FILTERBY", "PATTERN", "*T?"], &["FILTERBY", "MODULE", "x"]]
    {
        let asked: Vec<&str> = ["COMMAND", "LIST"].iter().chain(filter).copied().collect();
        let theirs = names(&client.command(&asked).expect("the server answers"));
        let ours = names(&answer(&request(&asked), Protocol::Resp2));
        for name in ours.symmetric_difference(&theirs) {
            assert!(is_later(name), "{asked:?}: {name} is missing on one side");
        }
    }
    let count = client.ask("COMMAND COUNT").expect("the server answers");
    assert_eq!(count, format!(":{}\r\n", listed().filter(|row| !row.is_later()).count()));
    let count = format!(":{}\r\n", listed().count());
    assert_eq!(answer(&request(["command", "count"]), Protocol::Resp3), count.as_bytes());
}

#[test]
fn small_replies_are_the_same_bytes() {
    let Some(server) = redis() else { return };
    let mut client = server.client().expect("the server accepts");
    for protocol in [Protocol::Resp2, Protocol::Resp3] {
        speak(&mut client, protocol);
        for asked in [
            &[
                "COMMAND",
                "INFO",
                "get",
                "nope",
                "client|id",
                "GET",
                "client id",
                "client|nope",
                "get|x",
                "get|",
                "|get",
                "",
            ][..],
            &["COMMAND", "INFO", "mset", "bitop", "xreadgroup", "georadius", "zunionstore", "ssubscribe"],
            &["COMMAND", "DOCS", "nope"],
            &["COMMAND", "LIST", "FILTERBY", "ACLCAT", "nope"],
            &["COMMAND", "LIST", "FILTERBY", "ACLCAT", "@hash"],
            &["COMMAND", "LIST", "FILTERBY", "MODULE", "x"],
            &["COMMAND", "LIST", "FILTERBY", "PATTERN", "XL?N"],
            &["COMMAND", "LIST", "FILTERBY", "PATTERN"],
            &["COMMAND", "LIST", "FILTERBY", "PATTERN", "x", "y"],
            &["COMMAND", "LIST", "FILTERBY", "NOPE", "x"],
            &["COMMAND", "LIST", "nope"],
        ] {
            let reply = client.command(asked).expect("the server answers");
            assert_eq!(shown(&answer(&request(asked), protocol)), shown(&reply), "{asked:?}");
        }
    }
}

/// Arguments without those that only later servers have.
fn earlier(arguments: &Value) -> Value {
    let Value::Array(arguments) = arguments else { panic!("{arguments:?} are no arguments") };
    let mut kept = Vec::new();
    for argument in arguments {
        let Value::Map(fields) = argument else { panic!("{argument:?} is no argument") };
        let is_since = |(name, value): &(Value, Value)| text(name) == "since" && is_later_version(&text(value));
        if fields.iter().any(is_since) {
            continue;
        }
        let fields = fields.iter().map(|(name, value)| {
            let value = if text(name) == "arguments" { earlier(value) } else { value.clone() };
            (name.clone(), value)
        });
        kept.push(Value::Map(fields.collect()));
    }
    Value::Array(kept)
}

fn is_later_version(version: &str) -> bool {
    let mut numbers = version.split('.').map(|number| number.parse::<u32>().expect("a version"));
    (numbers.next(), numbers.next()) > (Some(7), Some(0))
}

/// What `COMMAND DOCS` tells of every row, by name, without what is prose.
fn documented(reply: &Value, into: &mut Vec<(String, Vec<(String, Value)>)>) {
    let Value::Map(rows) = reply else { panic!("{reply:?} is no map") };
    for (name, fields) in rows {
        let Value::Map(fields) = fields else { panic!("{fields:?} is no map") };
        let mut facts = Vec::new();
        for (field, value) in fields {
            let field_name = text(field);
            match field_name.as_str() {
                "subcommands" => documented(value, into),
                "summary" | "replaced_by" | "history" | "complexity" => {}
                "arguments" => facts.push((field_name.clone(), earlier(value))),
                field => facts.push((field.to_owned(), value.clone())),
            }
        }
        into.push((text(name), facts));
    }
    into.sort_by(|a, b| a.0.cmp(&b.0));
}

#[test]
fn every_row_is_documented_with_the_facts_that_redis_gives() {
    let Some(server) = redis() else { return };
    let mut client = server.client().expect("the server accepts");
    speak(&mut client, Protocol::Resp3);
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    documented(
        &Value::parse(&client.command(&["COMMAND", "DOCS"]).expect("it answers")).expect("it is whole"),
        &mut theirs,
    );
    documented(&Value::parse(&answer(&request(["COMMAND", "DOCS"]), Protocol::Resp3)).expect("it is whole"), &mut ours);
    ours.retain(|(name, _)| !is_later(name));
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert_eq!(ours, theirs);
    }
    assert_eq!(ours.len(), theirs.len());
}

#[test]
fn complexities_begin_as_those_of_redis() {
    let Some(server) = redis() else { return };
    let mut client = server.client().expect("the server accepts");
    speak(&mut client, Protocol::Resp3);
    for row in shared_rows() {
        let reply = client.command(&["COMMAND", "DOCS", row.full_name()]).expect("it answers");
        let Ok(Value::Map(rows)) = Value::parse(&reply) else { panic!("{row:?}: no map") };
        let Value::Map(fields) = &rows[0].1 else { panic!("{row:?}: no fields") };
        let theirs = fields.iter().find(|(name, _)| text(name) == "complexity").map(|(_, value)| text(value));
        // Theirs goes on in prose: what the letters stand for.
        let theirs = theirs.filter(|theirs| theirs.starts_with("O(")).unwrap_or_default();
        let ours = row.usage().complexity;
        assert!(theirs.starts_with(ours) && ours.is_empty() == theirs.is_empty(), "{row:?}: {ours}, {theirs}");
    }
}
