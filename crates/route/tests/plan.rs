//! Requests go where their rows say, whatever the number of nodes.

use proptest::prelude::*;
use respool_command::{Row, all, resolve};
use respool_route::{Node, NodeIndex, Plan, PlanError, Rule, Scratch, Topology, plan};
use respool_wire::{
    Args, ArgsBuf, Encoder, Protocol, Request, RequestDecoder, RequestLimits, Step, Strictness, encode_request,
};

fn topology(nodes: usize) -> Topology {
    let nodes = (0..nodes).map(|index| Node::new(format!("node-{index}"))).collect();
    Topology::new(Rule::Slots.into(), nodes).expect("a list that fits")
}

fn row(args: Args<'_>) -> &'static Row {
    resolve(args).expect("a known command")
}

/// A request written with spaces between the arguments; `0a`, `0b`, `1a` ... stand for keys of that node.
fn request(text: &str, topology: &Topology) -> ArgsBuf {
    text.split(' ').map(|word| key(word, topology).unwrap_or_else(|| word.to_owned())).collect()
}

fn key(word: &str, topology: &Topology) -> Option<String> {
    let [node @ b'0'..=b'3', letter @ b'a'..=b'e'] = *word.as_bytes() else { return None };
    let node = NodeIndex::new(usize::from(node - b'0'));
    (0..).map(|salt| format!("{}{salt}", letter as char)).find(|key| topology.place(key.as_bytes()) == node)
}

/// What a plan says, in words: `one 2`, `all`, or the requests of the parts.
fn planned(text: &str, topology: &Topology, scratch: &mut Scratch) -> String {
    let request = request(text, topology);
    let args = request.as_args();
    match plan(row(args), args, topology, scratch) {
        Ok(Plan::One(node)) => format!("one {}", node.get()),
        Ok(Plan::All) => "all".to_owned(),
        Ok(Plan::Scan(step)) => {
            let mut bytes = Vec::new();
            step.encode(args, &mut bytes);
            decoded(&bytes).as_args().iter().map(word_of).collect::<Vec<_>>().join(" ")
        }
        Ok(Plan::Split) => {
            let words = |bytes: &[u8]| decoded(bytes).as_args().iter().map(word_of).collect::<Vec<_>>().join(" ");
            let parts: Vec<_> = scratch
                .parts()
                .map(|part| {
                    let mut bytes = Vec::new();
                    part.encode(&Request::made(args), &mut bytes);
                    format!("{} {}", part.node.get(), words(&bytes))
                })
                .collect();
            // Back to the words that the test was written in.
            text.split(' ').fold(parts.join(", "), |said, word| match key(word, topology) {
                Some(key) => said.replace(&key, word),
                None => said,
            })
        }
        Err(error) => {
            let mut reply = Vec::new();
            error.write(row(args), args, &mut Encoder::new(&mut reply, Protocol::Resp2));
            String::from_utf8(reply).expect("a text").trim_end().to_owned()
        }
    }
}

fn word_of(argument: &[u8]) -> String {
    argument.escape_ascii().to_string()
}

fn decoded(bytes: &[u8]) -> ArgsBuf {
    let mut decoder = RequestDecoder::default();
    match decoder.decode(bytes, &RequestLimits::authenticated(Strictness::Strict)) {
        Ok(Step::Request(request)) => {
            assert_eq!(request.consumed, bytes.len(), "exactly one request");
            assert!(request.raw.is_some(), "in canonical form");
            request.args.iter().collect()
        }
        _ => panic!("no request: {}", bytes.escape_ascii()),
    }
}

#[test]
fn nothing_is_split_where_that_is_not_wanted() {
    let four = topology(4).with_splits(false);
    assert_ne!(four, topology(4), "other requests are refused");
    let mut scratch = Scratch::new();
    for (request, plan) in [
        ("MGET 1a 1b 1a", "one 1"),
        ("MSET 2a x 2b y", "one 2"),
        ("DEL 3a", "one 3"),
        ("MGET 1a 0a", "CROSSSLOT"),
        ("MSET 0a 1 2a 2", "CROSSSLOT"),
        ("EXISTS 0a 1a", "CROSSSLOT"),
        ("DBSIZE", "all"),
    ] {
        let planned = planned(request, &four, &mut scratch);
        assert!(planned.trim_start_matches('-').starts_with(plan), "{request}: {planned}");
    }
}

#[test]
fn requests_go_where_their_rows_say() {
    let four = topology(4).with_default_node(NodeIndex::new(3));
    let mut scratch = Scratch::new();
    let cases = [
        // One key.
        ("GET 2a", "one 2"),
        ("set 0a value", "one 0"),
        ("OBJECT ENCODING 1a", "one 1"),
        ("DEBUG OBJECT 1a", "one 1"),
        ("DEBUG DIGEST-VALUE 1a 1b", "one 1"),
        // No key: the default node.
        ("PUBLISH channel message", "one 3"),
        ("EVAL return 0", "one 3"),
        // Keys found by counts and words.
        ("EVAL script 2 1a 1b 0a", "one 1"),
        ("ZUNIONSTORE 0a 2 0b 0c", "one 0"),
        ("XREAD COUNT 1 STREAMS 2a 2b 0 0", "one 2"),
        // Several keys on one node: nothing is split.
        ("MGET 1a 1b 1a", "one 1"),
        ("MSET 2a x 2b y", "one 2"),
        ("RENAME 0a 0b", "one 0"),
        // Split by key, in the order of first mention; duplicates stay.
        ("MGET 1a 0a 1b 1a 3a", "1 MGET 1a 1b 1a, 0 MGET 0a, 3 MGET 3a"),
        ("mset 0a 1 2a 2 0b 3", "0 mset 0a 1 0b 3, 2 mset 2a 2"),
        ("DEL 3a 2a", "3 DEL 3a, 2 DEL 2a"),
        ("UNLINK 0a 1a", "0 UNLINK 0a, 1 UNLINK 1a"),
        ("EXISTS 0a 1a 0a", "0 EXISTS 0a 0a, 1 EXISTS 1a"),
        ("TOUCH 0a 1a", "0 TOUCH 0a, 1 TOUCH 1a"),
        // A value is missing: one node refuses all of it.
        ("MSET 0a 1 2a", "one 3"),
        // Requests that no node can execute go to a node that says so.
        ("MGET", "one 3"),
        ("GET", "one 3"),
        ("ZUNIONSTORE 0a many 0b", "one 3"),
        // All nodes.
        ("DBSIZE", "all"),
        ("KEYS *", "all"),
        ("FLUSHALL", "all"),
        ("SCRIPT LOAD script", "all"),
        ("INFO", "all"),
        ("MEMORY STATS", "all"),
        // A walk: one node, with its own cursor, and the options as they came.
        ("SCAN 0 MATCH a* COUNT 5", "SCAN 0 MATCH a* COUNT 5"),
        ("SCAN nonsense", "one 3"),
    ];
    for (request, expected) in cases {
        assert_eq!(planned(request, &four, &mut scratch), expected, "{request}");
    }
}

#[test]
fn what_cannot_be_done_is_refused_by_name() {
    let four = topology(4);
    let mut scratch = Scratch::new();
    let (a, b) = (key("0a", &four).expect("a key"), key("2b", &four).expect("a key"));
    let apart =
        format!("-CROSSSLOT Keys in request don't hash to the same slot: '{a}' and '{b}' are on different nodes");
    for request in [
        "RENAME 0a 2b",
        "MSETNX 0a x 2b y",
        "SINTER 0a 2b",
        "PFCOUNT 0a 2b",
        "BLPOP 0a 2b 1",
        "DEBUG DIGEST-VALUE 0a 2b",
    ] {
        assert_eq!(planned(request, &four, &mut scratch), apart, "{request}");
    }
    let second = key("2b", &four).expect("a key");
    let args: ArgsBuf = ["SINTERSTORE", &a, &a, &second, &second].into_iter().collect();
    let args = args.as_args();
    let refused = plan(row(args), args, &four, &mut scratch);
    assert_eq!(refused, Err(PlanError::CrossSlot { first: 1, second: 3 }));

    let sort = "-ERR 'sort' with a pattern for keys is not supported over several nodes";
    assert_eq!(planned("SORT 0a BY weight_*", &four, &mut scratch), sort);
    assert_eq!(planned("SORT 0a BY nosort", &four, &mut scratch), "one 0");
}

#[test]
fn long_and_unprintable_keys_are_shown_in_short() {
    let four = topology(4);
    let long: Vec<u8> = (0..)
        .map(|salt: u8| [vec![b'l'; 100], vec![salt]].concat())
        .find(|key| four.place(key).get() == 0)
        .expect("a key");
    let odd = (0..)
        .map(|salt: u8| vec![b'\r', b'\n', 0xff, salt % 10])
        .find(|key| four.place(key).get() != 0)
        .expect("a key");
    let request: ArgsBuf = [&b"RENAME"[..], &long, &odd].into_iter().collect();
    let args = request.as_args();
    let mut reply = Vec::new();
    let error = plan(row(args), args, &four, &mut Scratch::new()).expect_err("two nodes");
    error.write(row(args), args, &mut Encoder::new(&mut reply, Protocol::Resp2));
    let reply = String::from_utf8(reply).expect("printable");
    assert!(reply.contains(&format!("'{}...'", "l".repeat(64))), "{reply:?}");
    assert!(reply.contains(r"'\r\n\xff"), "{reply:?}");
}

#[test]
fn one_node_gets_everything() {
    let one = topology(1);
    let mut scratch = Scratch::new();
    for request in ["GET a", "MGET a b c", "RENAME a b", "SCAN 0", "DBSIZE", "INFO", "SORT a BY w_*", "MSET a", "PING"]
    {
        assert_eq!(planned(request, &one, &mut scratch), "one 0", "{request}");
    }
}

#[test]
fn a_scratch_serves_topologies_of_any_size_in_turn() {
    let mut scratch = Scratch::new();
    let request: ArgsBuf = std::iter::once("MGET".to_owned()).chain((0..50).map(|i| format!("k{i}"))).collect();
    let args = request.as_args();
    for nodes in [4, 2, 100, 3, 7, 2] {
        let topology = topology(nodes);
        assert_eq!(plan(row(args), args, &topology, &mut scratch), Ok(Plan::Split));
        let nodes: Vec<_> = scratch.parts().map(|part| part.node).collect();
        let mut once = nodes.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), nodes.len(), "a node has one part");
        assert_eq!(scratch.parts().map(|part| part.keys.len()).sum::<usize>(), 50);
        let together: ArgsBuf = ["MGET", "{t}a", "{t}b"].into_iter().collect();
        let args = together.as_args();
        assert!(matches!(plan(row(args), args, &topology, &mut scratch), Ok(Plan::One(_))));
        assert_eq!(scratch.parts().len(), 0);
    }
}

/// Words that commands read as counts, options, keys and nonsense.
fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "[a-c]{1,2}",
        2 => "-?[0-9]{1,2}",
        1 => Just(String::new()),
        1 => Just("99999999999999999999".to_owned()),
        3 => prop::sample::select(vec!["STREAMS", "KEYS", "STORE", "BY", "GET", "COUNT", "#", "nosort", "GROUP", "*"])
            .prop_map(str::to_owned),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever a client sends under whatever name, there is a plan or a refusal, and a plan names nodes that exist.
    #[test]
    fn every_request_is_planned_or_refused(
        rows in prop::collection::vec((any::<prop::sample::Index>(), prop::collection::vec(word(), 0..9)), 100),
        nodes in 1..5usize,
    ) {
        let topology = topology(nodes);
        let known: Vec<&Row> = all().collect();
        let mut scratch = Scratch::new();
        for (row, words) in rows {
            let row = row.get(&known);
            let request: ArgsBuf = row.name.split(' ').chain(words.iter().map(String::as_str)).collect();
            let args = request.as_args();
            match plan(row, args, &topology, &mut scratch) {
                Ok(Plan::One(node)) => prop_assert!(node.get() < nodes),
                Ok(Plan::All) => prop_assert!(nodes > 1),
                Ok(Plan::Scan(step)) => prop_assert!(nodes > 1 && step.node.get() < nodes),
                Ok(Plan::Split) => {
                    prop_assert!(scratch.parts().len() > 1);
                    for part in scratch.parts() {
                        prop_assert!(part.node.get() < nodes);
                        let mut bytes = Vec::new();
                        part.encode(&Request::made(args), &mut bytes);
                        prop_assert!(row.accepts(decoded(&bytes).as_args().len()));
                    }
                }
                Err(error) => {
                    prop_assert!(nodes > 1);
                    let mut reply = Vec::new();
                    error.write(row, args, &mut Encoder::new(&mut reply, Protocol::Resp2));
                    prop_assert!(reply.starts_with(b"-") && reply.ends_with(b"\r\n"));
                }
            }
        }
    }
}

proptest! {
    /// Every argument of a split request reaches exactly the node that its key belongs to, in order, and nothing else
    /// does.
    #[test]
    fn parts_are_the_request(
        keys in prop::collection::vec("[a-c{}]{0,4}", 1..40), nodes in 2..6usize, has_values: bool,
    ) {
        let topology = topology(nodes);
        let mut request = ArgsBuf::new();
        request.push(if has_values { b"MSET" } else { b"MGET" });
        for (at, key) in keys.iter().enumerate() {
            request.push(key.as_bytes());
            if has_values {
                request.push(format!("value {at}").as_bytes());
            }
        }
        let args = request.as_args();
        let step = if has_values { 2 } else { 1 };
        let owner = |at: usize| topology.place(keys[at].as_bytes());
        let mut scratch = Scratch::new();
        match plan(row(args), args, &topology, &mut scratch).expect("can be split") {
            Plan::One(node) => prop_assert!((0..keys.len()).all(|at| owner(at) == node)),
            Plan::All | Plan::Scan(_) => prop_assert!(false, "no key, no place"),
            Plan::Split => {
                prop_assert!((0..keys.len()).any(|at| owner(at) != owner(0)));
                let mut sent = 0;
                let mut came = Vec::new();
                encode_request(&mut came, args.iter());
                let mut decoder = RequestDecoder::new();
                let limits = RequestLimits::authenticated(Strictness::Strict);
                let Ok(Step::Request(came)) = decoder.decode(&came, &limits) else { panic!("it was encoded") };
                prop_assert!(came.raw.is_some());
                for part in scratch.parts() {
                    let (mut bytes, mut copied) = (Vec::new(), Vec::new());
                    part.encode(&Request::made(args), &mut bytes);
                    part.encode(&came, &mut copied);
                    prop_assert_eq!(&bytes, &copied);
                    let received = decoded(&bytes);
                    let expected: Vec<&[u8]> = (0..keys.len())
                        .filter(|at| owner(*at) == part.node)
                        .flat_map(|at| (0..step).map(move |offset| 1 + at * step + offset))
                        .map(|index| args.at(index))
                        .collect();
                    prop_assert_eq!(received.as_args().from(1).iter().collect::<Vec<_>>(), expected);
                    prop_assert_eq!(received.as_args().name(), args.name());
                    sent += part.keys.len();
                }
                prop_assert_eq!(sent, keys.len());
            }
        }
    }
}

/// Servers tell no keys of DEBUG, and each of several has a state of its own.
#[test]
fn debugging_reaches_the_node_of_its_key_or_all() {
    let (topology, mut scratch) = (topology(4), Scratch::default());
    for (text, expected) in [
        ("DEBUG OBJECT 2a", "one 2"),
        ("DEBUG object 3b", "one 3"),
        ("DEBUG OBJECT", "one 0"),
        ("DEBUG SET-ACTIVE-EXPIRE 0", "all"),
        ("DEBUG JMAP", "all"),
        ("DEBUG SLEEP 0", "one 0"),
        ("DEBUG NOSUCH 2a", "one 0"),
    ] {
        assert_eq!(planned(text, &topology, &mut scratch), expected, "{text}");
    }
}
