//! Joining replies that must be understood as a whole: logs, figures, texts.
//!
//! None of them is on a hot path: they are looked at by people and by monitoring, and are parsed into trees.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use respool_wire::{Encoder, Protocol, ReplyKind, Value, elements};

use crate::gather::info;
use crate::scan::ScanStep;

/// How whole replies become one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Merge {
    /// One that is no null; the number is chance.
    Random(u64),
    /// Entries of logs: the newest so many, each with the name of its node, if the parts have names.
    Newest { most: usize, nodes: Vec<String> },
    /// Maps of figures.
    Figures,
    /// Texts, each under its node's number.
    Texts,
    /// The first whose second element is no null.
    Busiest,
    /// INFO: sections of the proxy, joined before those of the nodes, and a section behind them.
    Sections { own: String, behind: String },
    /// One node's step of a walk.
    Scan(ScanStep),
}

impl Merge {
    /// Whether it makes sense of some replies although others failed.
    pub(crate) fn forgives(&self) -> bool {
        matches!(self, Self::Sections { .. })
    }

    /// Whether there is a reply although all nodes failed.
    pub(crate) fn has_own(&self) -> bool {
        matches!(self, Self::Sections { own, .. } if !own.is_empty())
    }

    /// Writes what `replies` come to, in their dialect. `false`: they are not what was expected.
    pub(crate) fn write(&self, replies: &[&[u8]], out: &mut Encoder<'_>) -> bool {
        match self {
            Self::Random(chance) => random(*chance, replies, out),
            Self::Newest { most, nodes } => newest(*most, nodes, replies, out),
            Self::Figures => figures(replies, out),
            Self::Texts => texts(replies, out),
            Self::Busiest => busiest(replies, out),
            Self::Sections { own, behind } => info::write(own, replies, behind, out),
            Self::Scan(step) => replies.first().is_some_and(|reply| step.write(reply, out)),
        }
    }
}

fn is_null(reply: &[u8]) -> bool {
    matches!(reply, b"$-1\r\n" | b"*-1\r\n" | b"_\r\n")
}

fn random(chance: u64, replies: &[&[u8]], out: &mut Encoder<'_>) -> bool {
    let full: Vec<&[u8]> = replies.iter().copied().filter(|reply| !is_null(reply)).collect();
    let picked = match full.len() {
        0 => replies.first().copied(),
        count => full.get((chance % count as u64) as usize).copied(),
    };
    picked.map(|reply| out.raw(reply)).is_some()
}

/// Entries are arrays whose second element is a time.
fn newest(most: usize, nodes: &[String], replies: &[&[u8]], out: &mut Encoder<'_>) -> bool {
    let mut entries: Vec<(i64, usize, &[u8])> = Vec::new();
    for (part, reply) in replies.iter().enumerate() {
        let Some(walk) = elements(reply) else { return false };
        for entry in walk {
            let time = elements(entry).and_then(|mut parts| parts.nth(1)).map(Value::parse);
            let Some(Ok(Value::Integer(time))) = time else { return false };
            entries.push((time, part, entry));
        }
    }
    // Stable, so that entries of one second keep their order within a node.
    entries.sort_by_key(|(time, ..)| std::cmp::Reverse(*time));
    entries.truncate(most);
    out.array(entries.len());
    for (_, part, entry) in entries {
        match nodes.get(part) {
            Some(node) => entry_of(node, entry, out),
            None => out.raw(entry),
        }
    }
    true
}

/// Where in an entry of a slow log the name of the client is; servers before 4.0 tell none.
const CLIENT_NAME: usize = 5;

/// An entry with the name of its node behind that of the client, in which no server allows a space.
fn entry_of(node: &str, entry: &[u8], out: &mut Encoder<'_>) {
    let Some(parts) = elements(entry) else { return out.raw(entry) };
    out.array(parts.clone().count());
    for (place, part) in parts.enumerate() {
        match Value::parse(part) {
            Ok(Value::Bulk(client)) if place == CLIENT_NAME => {
                let space: &[u8] = if client.is_empty() { b"" } else { b" " };
                out.bulk(&[&client, space, b"node=", node.as_bytes()].concat());
            }
            _ => out.raw(part),
        }
    }
}

fn texts(replies: &[&[u8]], out: &mut Encoder<'_>) -> bool {
    let mut whole = Vec::new();
    let mut kind = ReplyKind::Bulk;
    for (number, reply) in replies.iter().enumerate() {
        let text = match Value::parse(reply) {
            Ok(Value::Bulk(text)) => text,
            Ok(Value::Verbatim { text, .. }) => {
                kind = ReplyKind::Verbatim;
                text
            }
            _ => return false,
        };
        whole.extend_from_slice(format!("# node{number}\n").as_bytes());
        whole.extend_from_slice(text.trim_ascii_end());
        whole.extend_from_slice(b"\n\n");
    }
    if kind == ReplyKind::Verbatim {
        out.verbatim_bytes(*b"txt", &whole)
    } else {
        out.bulk(&whole)
    }
    true
}

fn busiest(replies: &[&[u8]], out: &mut Encoder<'_>) -> bool {
    let is_busy = |reply: &&&[u8]| elements(reply).and_then(|mut parts| parts.nth(1)).is_some_and(|it| !is_null(it));
    let reply = replies.iter().find(is_busy).or(replies.first());
    reply.map(|reply| out.raw(reply)).is_some()
}

fn figures(replies: &[&[u8]], out: &mut Encoder<'_>) -> bool {
    let is_resp3 = replies.iter().any(|reply| reply.starts_with(b"%"));
    let mut whole: Option<Value> = None;
    for reply in replies {
        let Ok(value) = Value::parse(reply) else { return false };
        whole = Some(match whole {
            None => value,
            Some(so_far) => merged(so_far, value, b""),
        });
    }
    let Some(whole) = whole else { return false };
    let mut text = Vec::new();
    whole.encode(&mut Encoder::new(&mut text, if is_resp3 { Protocol::Resp3 } else { Protocol::Resp2 }));
    out.raw(&text);
    true
}

/// Two figures, or two maps of them, called `name`.
fn merged(one: Value, other: Value, name: &[u8]) -> Value {
    let is_ratio = [&b"per-key"[..], b"percentage", b"ratio"].iter().any(|word| name.ends_with(word));
    match (one, other) {
        (Value::Integer(one), Value::Integer(other)) if is_ratio => Value::Integer(one.max(other)),
        (Value::Integer(one), Value::Integer(other)) => Value::Integer(one.saturating_add(other)),
        (Value::Double(one), Value::Double(other)) => Value::Double(one.max(other)),
        (Value::Bulk(one), Value::Bulk(other)) => {
            let number = |text: &[u8]| std::str::from_utf8(text).ok().and_then(|text| text.parse::<f64>().ok());
            match (number(&one), number(&other)) {
                (Some(a), Some(b)) if b > a => Value::Bulk(other),
                _ => Value::Bulk(one),
            }
        }
        (Value::Map(one), Value::Map(other)) => Value::Map(merged_pairs(one, other)),
        (Value::Array(one), Value::Array(other)) if is_flat_map(&one) && is_flat_map(&other) => {
            let pairs = merged_pairs(paired(one), paired(other));
            Value::Array(pairs.into_iter().flat_map(|(key, value)| [key, value]).collect())
        }
        (one, _) => one,
    }
}

/// Names or numbers, each before what it names.
fn is_flat_map(values: &[Value]) -> bool {
    values.len().is_multiple_of(2)
        && values.iter().step_by(2).all(|key| matches!(key, Value::Bulk(_) | Value::Simple(_) | Value::Integer(_)))
}

fn paired(values: Vec<Value>) -> Vec<(Value, Value)> {
    let mut values = values.into_iter();
    let mut pairs = Vec::new();
    while let (Some(key), Some(value)) = (values.next(), values.next()) {
        pairs.push((key, value));
    }
    pairs
}

fn merged_pairs(one: Vec<(Value, Value)>, other: Vec<(Value, Value)>) -> Vec<(Value, Value)> {
    let is_histogram = |pairs: &[(Value, Value)]| {
        !pairs.is_empty() && pairs.iter().all(|pair| matches!(pair, (Value::Integer(_), Value::Integer(_))))
    };
    if is_histogram(&one) && is_histogram(&other) {
        return merged_histograms(&one, &other);
    }
    let mut whole = one;
    let mut places: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
    for (place, (key, _)) in whole.iter().enumerate() {
        places.entry(encoded(key)).or_insert(place);
    }
    for (key, value) in other {
        match places.entry(encoded(&key)) {
            Entry::Occupied(place) => {
                let (key, known) = &mut whole[*place.get()];
                let name = match key {
                    Value::Bulk(name) | Value::Simple(name) => name.clone(),
                    _ => Vec::new(),
                };
                *known = merged(std::mem::replace(known, Value::Null), value, &name);
            }
            Entry::Vacant(place) => {
                place.insert(whole.len());
                whole.push((key, value));
            }
        }
    }
    whole
}

/// A name as bytes, for finding it again.
fn encoded(key: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    key.encode(&mut Encoder::new(&mut bytes, Protocol::Resp3));
    bytes
}

/// Buckets with how many samples are at or below each. One that a side does not tell has as many as the one before it.
fn merged_histograms(one: &[(Value, Value)], other: &[(Value, Value)]) -> Vec<(Value, Value)> {
    let buckets = |pairs: &[(Value, Value)]| -> Vec<(i64, i64)> {
        let numbers = |(key, value): &(Value, Value)| match (key, value) {
            (Value::Integer(key), Value::Integer(value)) => Some((*key, *value)),
            _ => None,
        };
        pairs.iter().filter_map(numbers).collect()
    };
    let (one, other) = (buckets(one), buckets(other));
    // One walk over both, since their number is not bounded.
    let mut bounds: Vec<(i64, bool, i64)> = one.iter().map(|(at, count)| (*at, true, *count)).collect();
    bounds.extend(other.iter().map(|(at, count)| (*at, false, *count)));
    bounds.sort_unstable();
    let (mut of_one, mut of_other) = (None, None);
    let mut whole: Vec<(Value, Value)> = Vec::new();
    for (bound, is_of_one, count) in bounds {
        let below = if is_of_one { &mut of_one } else { &mut of_other };
        *below = Some(below.map_or(count, |so_far: i64| so_far.max(count)));
        let sum = of_one.unwrap_or(0).saturating_add(of_other.unwrap_or(0));
        match whole.last_mut() {
            Some((Value::Integer(last), value)) if *last == bound => *value = Value::Integer(sum),
            _ => whole.push((Value::Integer(bound), Value::Integer(sum))),
        }
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(merge: &Merge, replies: &[&str], expected: &str) {
        let replies: Vec<&[u8]> = replies.iter().map(|reply| reply.as_bytes()).collect();
        let mut out = Vec::new();
        assert!(merge.write(&replies, &mut Encoder::new(&mut out, Protocol::Resp3)));
        assert_eq!(String::from_utf8_lossy(&out), expected);
    }

    #[test]
    fn a_random_key_comes_from_a_node_that_has_some() {
        check(&Merge::Random(7), &["$-1\r\n", "$1\r\na\r\n", "$-1\r\n"], "$1\r\na\r\n");
        check(&Merge::Random(1), &["$1\r\na\r\n", "$1\r\nb\r\n"], "$1\r\nb\r\n");
        check(&Merge::Random(1), &["_\r\n", "_\r\n"], "_\r\n");
    }

    #[test]
    fn logs_are_joined_by_time() {
        let log = |times: &[i64]| {
            let entries: String = times.iter().map(|time| format!("*2\r\n:0\r\n:{time}\r\n")).collect();
            format!("*{}\r\n{entries}", times.len())
        };
        let newest = |most| Merge::Newest { most, nodes: Vec::new() };
        check(&newest(3), &[&log(&[50, 10]), &log(&[40, 30])], &log(&[50, 40, 30]));
        check(&newest(9), &[&log(&[]), &log(&[])], "*0\r\n");
    }

    #[test]
    fn entries_of_logs_name_their_nodes() {
        let entry = |time: i64, name: &str| {
            let words = "*1\r\n$4\r\nPING\r\n$3\r\na:1\r\n";
            format!("*6\r\n:7\r\n:{time}\r\n:9\r\n{words}${}\r\n{name}\r\n", name.len())
        };
        let merge = Merge::Newest { most: 3, nodes: vec!["ann".to_owned(), "bob:1".to_owned()] };
        let of_ann = format!("*2\r\n{}{}", entry(50, ""), entry(10, ""));
        // A server that tells no names of clients.
        let of_bob = format!("*2\r\n{}*2\r\n:0\r\n:30\r\n", entry(40, "app"));
        let expected = format!("*3\r\n{}{}*2\r\n:0\r\n:30\r\n", entry(50, "node=ann"), entry(40, "app node=bob:1"));
        check(&merge, &[&of_ann, &of_bob], &expected);
    }

    #[test]
    fn figures_are_added_and_ratios_are_not() {
        check(
            &Merge::Figures,
            &[
                "%3\r\n$5\r\ntotal\r\n:5\r\n$18\r\nkeys.bytes-per-key\r\n:7\r\n$5\r\nratio\r\n,1.5\r\n",
                "%3\r\n$5\r\ntotal\r\n:6\r\n$5\r\nratio\r\n,2.5\r\n$4\r\ndb.1\r\n%1\r\n+a\r\n:1\r\n",
            ],
            "%4\r\n$5\r\ntotal\r\n:11\r\n$18\r\nkeys.bytes-per-key\r\n:7\r\n$5\r\nratio\r\n,2.5\r\n$4\r\ndb.1\r\n%1\r\n+a\r\n:1\r\n",
        );
        check(
            &Merge::Figures,
            &["*4\r\n$1\r\na\r\n:5\r\n$7\r\nper-key\r\n:3\r\n", "*4\r\n$1\r\na\r\n:5\r\n$7\r\nper-key\r\n:4\r\n"],
            "*4\r\n$1\r\na\r\n:10\r\n$7\r\nper-key\r\n:4\r\n",
        );
    }

    #[test]
    fn histograms_are_joined_bucket_by_bucket() {
        check(
            &Merge::Figures,
            &["*4\r\n:1\r\n:10\r\n:4\r\n:12\r\n", "*4\r\n:2\r\n:5\r\n:4\r\n:6\r\n"],
            "*6\r\n:1\r\n:10\r\n:2\r\n:15\r\n:4\r\n:18\r\n",
        );
    }

    #[test]
    fn joining_takes_time_in_proportion_to_what_is_read() {
        // With the square of the number of names this would take minutes.
        let buckets = |from: usize| {
            let pairs: String = (0..50_000).map(|at| format!(":{}\r\n:{at}\r\n", 2 * at + from)).collect();
            format!("%1\r\n+h\r\n%50000\r\n{pairs}")
        };
        let (one, other) = (buckets(0), buckets(1));
        let mut out = Vec::new();
        let replies = [one.as_bytes(), other.as_bytes()];
        assert!(Merge::Figures.write(&replies, &mut Encoder::new(&mut out, Protocol::Resp3)));
        assert!(out.starts_with(b"%1\r\n+h\r\n%100000\r\n:0\r\n:0\r\n:1\r\n:0\r\n:2\r\n:1\r\n:3\r\n:2\r\n"));
        let names = |of: &str| {
            let pairs: String = (0..50_000).map(|at| format!("+{of}{at}\r\n:1\r\n")).collect();
            format!("%50000\r\n{pairs}")
        };
        out.clear();
        let (one, other) = (names("a"), names("b"));
        let replies = [one.as_bytes(), other.as_bytes()];
        assert!(Merge::Figures.write(&replies, &mut Encoder::new(&mut out, Protocol::Resp3)));
        assert!(out.starts_with(b"%100000\r\n"));
        let sections: String = (0..50_000).map(|at| format!("# {at}\r\n")).collect();
        let info = format!("${}\r\n{sections}\r\n", sections.len());
        let replies = [info.as_bytes(), b"$0\r\n\r\n"];
        assert!(
            Merge::Sections { own: String::new(), behind: String::new() }
                .write(&replies, &mut Encoder::new(&mut out, Protocol::Resp3))
        );
        let parts = |of: &str| {
            let parts: Vec<String> = (0..100_000).map(|at| format!("{of}{at}=1")).collect();
            let info = format!("# Commandstats\r\nc:{}\r\n", parts.join(","));
            format!("${}\r\n{info}\r\n", info.len())
        };
        out.clear();
        let (one, other) = (parts("a"), parts("b"));
        let replies = [one.as_bytes(), other.as_bytes()];
        assert!(
            Merge::Sections { own: String::new(), behind: String::new() }
                .write(&replies, &mut Encoder::new(&mut out, Protocol::Resp3))
        );
        assert!(out.ends_with(b",b99999=1\r\n\r\n"));
    }

    #[test]
    fn texts_stand_under_their_nodes() {
        check(&Merge::Texts, &["$3\r\nfoo\r\n", "$4\r\nbar\n\r\n"], "$26\r\n# node0\nfoo\n\n# node1\nbar\n\n\r\n");
        check(&Merge::Texts, &["=7\r\ntxt:foo\r\n"], "=17\r\ntxt:# node0\nfoo\n\n\r\n");
    }

    #[test]
    fn a_busy_node_is_shown_before_an_idle_one() {
        let idle = "*4\r\n$1\r\nr\r\n$-1\r\n$1\r\ne\r\n*0\r\n";
        let busy = "*4\r\n$1\r\nr\r\n*1\r\n:1\r\n$1\r\ne\r\n*0\r\n";
        check(&Merge::Busiest, &[idle, busy], busy);
        check(&Merge::Busiest, &[idle, idle], idle);
    }
}
