//! Replies of several nodes become one, whatever the order in which they arrive.

use proptest::prelude::*;
use respool_command::{RequestPolicy, ResponsePolicy, Row, all, resolve};
use respool_route::{Gather, Node, Plan, Rule, Scratch, Topology, plan};
use respool_wire::{Args, ArgsBuf, Encoder, Protocol, ReplyKind, ReplyLimits, ReplyScanner, Scan};

fn topology(nodes: usize) -> Topology {
    let nodes = (0..nodes).map(|index| Node::new(format!("node-{index}"))).collect();
    Topology::new(Rule::Rendezvous.into(), nodes).expect("a list that fits")
}

fn row(args: Args<'_>) -> &'static Row {
    resolve(args).expect("a known command")
}

fn begin_all(gather: &mut Gather, request: &str, nodes: usize) {
    let request: ArgsBuf = request.split(' ').collect();
    gather.begin_all(row(request.as_args()), request.as_args(), nodes, 5);
}

fn kind(reply: &[u8]) -> ReplyKind {
    match ReplyScanner::new().scan(reply, &ReplyLimits::DEFAULT) {
        Ok(Scan::Complete { consumed, kind }) if consumed == reply.len() => kind,
        scan => panic!("not one complete reply: {} ({scan:?})", reply.escape_ascii()),
    }
}

/// The joint reply when the parts answer in the order of `arrival`.
fn joined<R: AsRef<[u8]>>(gather: &mut Gather, replies: &[R], arrival: &[usize]) -> String {
    for part in arrival {
        assert!(!gather.is_complete());
        let reply = replies[*part].as_ref();
        gather.accept(*part, kind(reply), reply);
    }
    assert!(gather.is_complete());
    let mut out = Vec::new();
    gather.finish(&mut out);
    assert_eq!(gather.held_bytes(), 0);
    kind(&out);
    out.escape_ascii().to_string()
}

fn arrivals(parts: usize) -> Vec<Vec<usize>> {
    let mut orders = vec![vec![]];
    for part in 0..parts {
        orders = orders
            .into_iter()
            .flat_map(|order: Vec<usize>| {
                (0..=order.len()).map(move |at| {
                    let mut longer = order.clone();
                    longer.insert(at, part);
                    longer
                })
            })
            .collect();
    }
    orders
}

/// Joins replies of all nodes to `request`, in every order of arrival.
fn joined_from_all(request: &str, replies: &[&str]) -> String {
    let mut gather = Gather::new();
    let mut all: Vec<_> = arrivals(replies.len())
        .iter()
        .map(|arrival| {
            begin_all(&mut gather, request, replies.len());
            joined(&mut gather, replies, arrival)
        })
        .collect();
    all.dedup();
    assert_eq!(all.len(), 1, "the order of arrival shows: {all:?}");
    all.remove(0)
}

#[test]
fn replies_of_all_nodes_are_joined_by_policy() {
    let cases: [(&str, &[&str], &str); 26] = [
        ("DBSIZE", &[":1\r\n", ":20\r\n", ":300\r\n"], r":321\r\n"),
        ("DBSIZE", &[":-1\r\n", "|1\r\n+k\r\n+v\r\n:+07\r\n"], r":6\r\n"),
        ("DBSIZE", &[":9223372036854775807\r\n", ":1\r\n", ":-1\r\n"], r":9223372036854775807\r\n"),
        ("DBSIZE", &[":9223372036854775807\r\n", ":1\r\n"], r"-ERR the nodes\' replies to \'dbsize\' overflow\r\n"),
        ("WAIT 1 1", &[":2\r\n", ":0\r\n", ":1\r\n"], r":0\r\n"),
        ("WAIT 1 1", &[":2\r\n", ":3\r\n"], r":2\r\n"),
        ("SCRIPT EXISTS a b", &["*2\r\n:1\r\n:0\r\n", "*2\r\n:1\r\n:1\r\n"], r"*2\r\n:1\r\n:0\r\n"),
        ("SCRIPT EXISTS a", &["*1\r\n:1\r\n", "*1\r\n:1\r\n", "*1\r\n:1\r\n"], r"*1\r\n:1\r\n"),
        (
            "SCRIPT EXISTS a",
            &["*1\r\n:1\r\n", "*2\r\n:1\r\n:1\r\n"],
            r"-ERR the nodes\' replies to \'script|exists\' are not alike\r\n",
        ),
        (
            "SCRIPT EXISTS a",
            &["*1\r\n:1\r\n", ":1\r\n"],
            r"-ERR the nodes\' replies to \'script|exists\' are not alike\r\n",
        ),
        ("FLUSHALL", &["+OK\r\n", "+OK\r\n"], r"+OK\r\n"),
        ("FLUSHALL", &["+first\r\n", "+second\r\n", "+third\r\n"], r"+first\r\n"),
        ("SCRIPT LOAD x", &["$2\r\nab\r\n", "$2\r\nab\r\n"], r"$2\r\nab\r\n"),
        ("SCRIPT KILL", &["-NOTBUSY a\r\n", "+OK\r\n", "-NOTBUSY b\r\n"], r"+OK\r\n"),
        ("SCRIPT KILL", &["-NOTBUSY a\r\n", "-NOTBUSY b\r\n"], r"-NOTBUSY a\r\n"),
        (
            "KEYS *",
            &["*1\r\n$1\r\na\r\n", "*0\r\n", "*2\r\n$1\r\nb\r\n$1\r\nc\r\n"],
            r"*3\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n",
        ),
        ("KEYS *", &["*0\r\n", "*0\r\n"], r"*0\r\n"),
        ("KEYS *", &["~1\r\n+a\r\n", "~1\r\n+b\r\n"], r"~2\r\n+a\r\n+b\r\n"),
        ("KEYS *", &["%1\r\n+a\r\n:1\r\n", "%1\r\n+b\r\n:2\r\n"], r"%2\r\n+a\r\n:1\r\n+b\r\n:2\r\n"),
        ("KEYS *", &["*0\r\n", "~0\r\n", "*0\r\n"], r"-ERR the nodes\' replies to \'keys\' are not alike\r\n"),
        // An error wins, the first by part, and says how much may have been done.
        ("DBSIZE", &[":1\r\n", "-LOADING b\r\n", "-OOM c\r\n"], r"-LOADING b (2 of 3 nodes failed)\r\n"),
        ("FLUSHALL", &["-NOAUTH a\r\n", "-NOAUTH b\r\n"], r"-NOAUTH a\r\n"),
        ("KEYS *", &["!8\r\nERR a\r\nb\r\n", "*1\r\n+x\r\n"], r"-ERR a  b (1 of 2 nodes failed)\r\n"),
        // What cannot be joined is an error too.
        (
            "DBSIZE",
            &["+OK\r\n", ":1\r\n"],
            r"-ERR a node gave \'dbsize\' a reply that cannot be joined with others (1 of 2 nodes failed)\r\n",
        ),
        (
            "KEYS *",
            &["*1\r\n+a\r\n", "*-1\r\n"],
            r"-ERR a node gave \'keys\' a reply that cannot be joined with others (1 of 2 nodes failed)\r\n",
        ),
        (
            "SCRIPT EXISTS a",
            &["*1\r\n$1\r\n1\r\n", "-ERR b\r\n"],
            r"-ERR a node gave \'script|exists\' a reply that cannot be joined with others\r\n",
        ),
    ];
    for (request, replies, expected) in cases {
        assert_eq!(joined_from_all(request, replies), expected, "{request} {replies:?}");
    }
}

/// Plans `request` over enough nodes that it is split, and gives what each part is asked for.
fn split(request: &ArgsBuf, topology: &Topology, scratch: &mut Scratch) -> Vec<Vec<String>> {
    let args = request.as_args();
    assert_eq!(plan(row(args), args, topology, scratch), Ok(Plan::Split));
    let key = |index: &u32| String::from_utf8(args.at(*index as usize).to_vec()).expect("a text");
    scratch.parts().map(|part| part.keys.iter().map(key).collect()).collect()
}

/// An array of bulk strings, a null for what is empty.
fn values(values: impl Iterator<Item = String>) -> Vec<u8> {
    let values: Vec<_> = values.collect();
    let mut out = Vec::new();
    let mut reply = Encoder::new(&mut out, Protocol::Resp2);
    reply.array(values.len());
    for value in values {
        if value.is_empty() { reply.null() } else { reply.bulk(value.as_bytes()) }
    }
    out
}

#[test]
fn mget_answers_of_the_wrong_length_are_errors() {
    let topology = topology(4);
    let mut scratch = Scratch::new();
    let request: ArgsBuf = std::iter::once("MGET".to_owned()).chain((0..12).map(|i| format!("k{i}"))).collect();
    let keys = split(&request, &topology, &mut scratch);
    let right: Vec<Vec<u8>> = keys.iter().map(|keys| values(keys.iter().cloned())).collect();
    let count = keys[1].len();
    let wrong = [
        values(keys[1].iter().skip(1).cloned()),
        values(keys[1].iter().cloned().chain(["more".to_owned()])),
        values(std::iter::empty()),
        b"*-1\r\n".to_vec(),
        b"+OK\r\n".to_vec(),
        format!("~{count}\r\n{}", "+x\r\n".repeat(count)).into_bytes(),
    ];
    let mut gather = Gather::new();
    for wrong in wrong {
        let replies: Vec<_> =
            right.iter().enumerate().map(|(at, right)| if at == 1 { &wrong } else { right }).collect();
        for arrival in [vec![0, 1, 2, 3], vec![1, 0, 2, 3], vec![3, 2, 0, 1]] {
            gather.begin_split(row(request.as_args()), &scratch);
            let reply = joined(&mut gather, &replies, &arrival);
            let expected =
                r"-ERR a node gave \'mget\' a reply that cannot be joined with others (1 of 4 nodes failed)\r\n";
            assert_eq!(reply, expected, "{}", wrong.escape_ascii());
        }
    }
}

#[test]
fn a_part_is_heard_once() {
    let mut gather = Gather::new();
    begin_all(&mut gather, "DBSIZE", 2);
    gather.accept(0, ReplyKind::Integer, b":1\r\n");
    gather.accept(0, ReplyKind::Integer, b":10\r\n");
    gather.accept(2, ReplyKind::Integer, b":100\r\n");
    assert!(!gather.is_complete());
    gather.accept(1, ReplyKind::Integer, b":2\r\n");
    let mut out = Vec::new();
    gather.finish(&mut out);
    assert_eq!(out, b":3\r\n");
}

#[test]
fn a_part_without_a_reply_counts_for_nothing() {
    let mut gather = Gather::new();
    let mut out = Vec::new();
    for (reply, joint) in [(":2\r\n", ":2\r\n"), ("-ERR no\r\n", "-ERR no\r\n")] {
        begin_all(&mut gather, "DBSIZE", 3);
        gather.pass_over(0);
        gather.pass_over(0);
        gather.accept(1, kind(reply.as_bytes()), reply.as_bytes());
        assert!(!gather.is_complete());
        gather.pass_over(2);
        gather.accept(2, ReplyKind::Integer, b":100\r\n");
        out.clear();
        gather.finish(&mut out);
        assert_eq!(String::from_utf8_lossy(&out), joint);
    }
}

#[test]
fn only_what_is_needed_is_held() {
    let mut gather = Gather::new();
    let large = format!("*1\r\n$100000\r\n{}\r\n", "x".repeat(100_000));
    let accept = |gather: &mut Gather, part, reply: &str| gather.accept(part, kind(reply.as_bytes()), reply.as_bytes());

    begin_all(&mut gather, "KEYS *", 3);
    accept(&mut gather, 0, &large);
    assert!(gather.held_bytes() >= 100_000);
    accept(&mut gather, 2, "-ERR no\r\n");
    accept(&mut gather, 1, &large);
    assert_eq!(gather.held_bytes(), 0, "nothing is kept once it is clear that the reply is an error");

    begin_all(&mut gather, "DBSIZE", 1_000);
    (0..1_000).for_each(|part| accept(&mut gather, part, ":123456789\r\n"));
    assert!(gather.held_bytes() <= 16, "a sum is one number");

    begin_all(&mut gather, "FLUSHALL", 1_000);
    (0..1_000).rev().for_each(|part| accept(&mut gather, part, "+OK\r\n"));
    assert_eq!(gather.held_bytes(), 5, "one reply stands for all");
}

#[test]
fn every_row_for_several_nodes_says_how_replies_are_joined() {
    use RequestPolicy::{AllNodes, AllShards, SplitByKey};
    let topology = topology(2);
    let mut scratch = Scratch::new();
    for row in all().filter(|row| matches!(row.request_policy, SplitByKey | AllShards | AllNodes)) {
        assert_ne!(row.response_policy, ResponsePolicy::Single, "{row:?}");
        assert!(row.request_policy == SplitByKey || row.response_policy != ResponsePolicy::KeyOrder, "{row:?}");
        let request: ArgsBuf = row.name.split(' ').collect();
        let is_planned = plan(row, request.as_args(), &topology, &mut scratch).is_ok();
        assert_eq!(is_planned, row.response_policy != ResponsePolicy::Special, "{row:?}");
    }
}

/// A shuffled list of the numbers below `parts`.
fn arrival(parts: usize) -> impl Strategy<Value = Vec<usize>> {
    Just((0..parts).collect::<Vec<_>>()).prop_shuffle()
}

fn any_reply() -> impl Strategy<Value = Vec<u8>> {
    let leaf = prop_oneof![
        4 => any::<i64>().prop_map(|number| format!(":{number}\r\n")),
        4 => (0..3i64).prop_map(|number| format!(":{number}\r\n")),
        2 => Just("+OK\r\n".to_owned()),
        2 => "[a-z]{0,3}".prop_map(|text| format!("${}\r\n{text}\r\n", text.len())),
        1 => Just("$-1\r\n".to_owned()),
        1 => Just("_\r\n".to_owned()),
        1 => "[A-Z]{1,3}".prop_map(|text| format!("-{text} no\r\n")),
        1 => "[A-Z]{1,3}".prop_map(|text| format!("!{}\r\n{text}\r\n", text.len())),
    ];
    let leaves = prop::collection::vec(leaf.clone(), 0..4);
    let aggregate = ("[*~>]", leaves).prop_map(|(head, of)| format!("{head}{}\r\n{}", of.len(), of.concat()));
    let numbers = prop::collection::vec(0..2u8, 1..3);
    let numbers = numbers.prop_map(|of| {
        let of: Vec<_> = of.iter().map(|number| format!(":{number}\r\n")).collect();
        format!("*{}\r\n{}", of.len(), of.concat())
    });
    prop_oneof![3 => leaf, 2 => aggregate, 2 => numbers].prop_map(String::into_bytes)
}

proptest! {
    /// The same replies give the same bytes in any two orders of arrival, under every policy, however odd they are.
    #[test]
    fn the_order_of_arrival_never_shows(
        (replies, one, other) in prop::collection::vec(any_reply(), 1..6)
            .prop_flat_map(|replies| { let parts = replies.len(); (Just(replies), arrival(parts), arrival(parts)) }),
    ) {
        let mut gather = Gather::new();
        for request in ["DBSIZE", "WAIT 1 1", "SCRIPT EXISTS a", "FLUSHALL", "SCRIPT KILL", "KEYS *", "RANDOMKEY", "MEMORY STATS", "INFO"] {
            let mut reply = |arrival: &[usize]| {
                begin_all(&mut gather, request, replies.len());
                joined(&mut gather, &replies, arrival)
            };
            prop_assert_eq!(reply(&one), reply(&other), "{}", request);
        }
    }

    /// A split MGET is answered as one node that has all keys would: every value at its place, duplicates included.
    #[test]
    fn a_split_mget_is_answered_as_by_one_node(
        keys in prop::collection::vec("[a-f]{1,2}", 1..30), nodes in 2..6usize, seed in any::<prop::sample::Index>(),
    ) {
        // What the store holds: for some keys nothing, for others something that looks like RESP.
        let value = |key: &str| if key.len() == 1 { String::new() } else { format!("{key}\r\n*1\r\n") };
        let topology = topology(nodes);
        let request: ArgsBuf = std::iter::once("MGET").chain(keys.iter().map(String::as_str)).collect();
        let args = request.as_args();
        let mut scratch = Scratch::new();
        if plan(row(args), args, &topology, &mut scratch) == Ok(Plan::Split) {
            let parts = split(&request, &topology, &mut scratch);
            let replies: Vec<_> = parts.iter().map(|keys| values(keys.iter().map(|key| value(key)))).collect();
            let mut arrival: Vec<_> = (0..parts.len()).collect();
            arrival.rotate_left(seed.index(parts.len()));
            let mut gather = Gather::new();
            gather.begin_split(row(args), &scratch);
            let expected = values(keys.iter().map(|key| value(key))).escape_ascii().to_string();
            prop_assert_eq!(joined(&mut gather, &replies, &arrival), expected);
        }
    }
}
