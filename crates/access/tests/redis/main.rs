//! The ACL language and its verdicts, compared with a real redis-server 7.0: generated rules give the same errors and make
//! the same users, and generated requests get the same verdicts.
//!
//! The environment variable `RESPOOL_TEST_REDIS=off` leaves these tests out, for machines without a redis-server;
//! `RESPOOL_TEST_SCALE` is how many times as much as usual is generated.

mod files;
mod requests;
mod rules;
mod verdicts;

use std::collections::BTreeSet;

use respool_access::{Users, answer};
use respool_command::{Row, all, lookup_full};
use respool_testkit::{RedisServer, ask_all, reference_server, test_scale as scale};
use respool_wire::{ArgsBuf, Encoder, Protocol, Value};

fn redis() -> Option<RedisServer> {
    reference_server(&[])
}

/// Whether Redis 7.0 has the command: it is neither our own nor newer.
fn is_of_redis(row: &Row) -> bool {
    !row.is_later() && !row.is_ours()
}

fn rows_of_redis() -> Vec<&'static Row> {
    all().filter(|row| is_of_redis(row)).collect()
}

fn request<A: AsRef<[u8]>>(arguments: impl IntoIterator<Item = A>) -> ArgsBuf {
    arguments.into_iter().collect()
}

fn reply(write: impl FnOnce(&mut Encoder<'_>)) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut Encoder::new(&mut out, Protocol::Resp2));
    out
}

/// What `ACL SETUSER` answers, and the users afterwards.
fn set_user(users: &Users, name: &[u8], rules: &[&[u8]]) -> (Vec<u8>, Users) {
    match users.with_rules(name, rules) {
        Ok(next) => (respool_wire::replies::OK.to_vec(), next),
        Err(error) => {
            let mut words = Vec::new();
            error.write_text(&mut words);
            (reply(|out| out.error(&words)), users.clone())
        }
    }
}

/// A reply as text in which rules that Redis tells in the order of a hash table with a random seed are in order: the single
/// commands behind `+@all` or `-@all` and the categories.
fn in_order(reply: &[u8]) -> String {
    shown(&Value::parse(reply).unwrap_or_else(|_| panic!("no reply: {}", reply.escape_ascii())))
}

fn shown(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("[{}]", items.iter().map(shown).collect::<Vec<_>>().join(", ")),
        Value::Bulk(text) => sorted(&text.escape_ascii().to_string()),
        other => format!("{other:?}"),
    }
}

fn sorted(text: &str) -> String {
    let mut told: Vec<String> = Vec::new();
    let mut single = BTreeSet::new();
    let close = |told: &mut Vec<String>, single: &mut BTreeSet<String>| {
        told.extend(std::mem::take(single));
    };
    for word in text.split(' ') {
        let command = word.trim_end_matches(')');
        // No rule of another command tells of one that Redis does not know.
        if lookup_full(command.get(1..).unwrap_or_default().as_bytes()).is_some_and(|row| !is_of_redis(row)) {
            continue;
        }
        let is_single = (command.starts_with('+') || command.starts_with('-')) && !command[1..].starts_with('@');
        if is_single {
            single.insert(command.to_owned());
        } else {
            close(&mut told, &mut single);
            told.push(command.to_owned());
        }
        if word.ends_with(')') {
            close(&mut told, &mut single);
            told.push(")".to_owned());
        }
    }
    close(&mut told, &mut single);
    told.join(" ")
}

fn list_of(users: &Users) -> Vec<u8> {
    reply(|out| answer::list(users, out))
}
