//! Patterns, compared through `KEYS` and `COMMAND LIST FILTERBY PATTERN`.

use std::collections::BTreeSet;

use respool_command::glob;
use respool_testkit::Rng;
use respool_wire::Value;

use crate::{ask_all, redis, request, shared_rows, shown};

const PATTERNS: usize = 4_000;

fn pattern(rng: &mut Rng) -> Vec<u8> {
    let pieces: &[&[u8]] = &[
        b"*", b"*", b"?", b"a", b"b", b"C", b"[", b"]", b"[ab]", b"[^a]", b"[a-b]", b"[b-a]", b"[^", b"-", b"\\",
        b"\\*", b"^", b"[A-c]",
    ];
    (0..rng.between(1, 7)).flat_map(|_| rng.pick(pieces).to_vec()).collect()
}

fn names(reply: &[u8]) -> BTreeSet<Vec<u8>> {
    match Value::parse(reply).expect("the reply is whole") {
        Value::Array(names) => names
            .into_iter()
            .map(|name| match name {
                Value::Bulk(name) => name,
                other => panic!("{other:?} is no name"),
            })
            .collect(),
        other => panic!("{other:?} is no list"),
    }
}

#[test]
fn patterns_match_what_they_match_in_redis() {
    let Some(server) = redis() else { return };
    let mut client = server.client().expect("the server accepts");
    let mut rng = Rng::new(1);
    let mut texts = BTreeSet::new();
    while texts.len() < 300 {
        let len = rng.between(1, 6);
        texts.insert((0..len).map(|_| *rng.pick(b"aaabbcC-^]*[\\")).collect::<Vec<u8>>());
    }
    client
        .command(&texts.iter().fold(vec![b"MSET".to_vec()], |mut request, text| {
            request.extend([text.clone(), b"x".to_vec()]);
            request
        }))
        .expect("the server answers");
    let patterns: Vec<Vec<u8>> = (0..PATTERNS).map(|_| pattern(&mut rng)).collect();
    let requests: Vec<_> = patterns.iter().map(|pattern| request([b"KEYS", pattern.as_slice()])).collect();
    for (pattern, reply) in patterns.iter().zip(ask_all(&mut client, &requests)) {
        let ours: BTreeSet<_> = texts.iter().filter(|text| glob::matches(pattern, text)).cloned().collect();
        assert_eq!(ours, names(&reply), "{}", shown(pattern));
    }
    let requests: Vec<_> =
        patterns.iter().map(|pattern| request([&b"COMMAND"[..], b"LIST", b"FILTERBY", b"PATTERN", pattern])).collect();
    for (pattern, reply) in patterns.iter().zip(ask_all(&mut client, &requests)) {
        let ours: BTreeSet<_> = shared_rows()
            .map(|row| row.full_name().as_bytes().to_vec())
            .filter(|name| glob::matches_in_any_case(pattern, name))
            .collect();
        assert_eq!(ours, names(&reply), "{}", shown(pattern));
    }
}
