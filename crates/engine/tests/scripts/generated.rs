//! Generated scripts: calls of all groups, conversions of all types, errors in all places.
//!
//! `RESPOOL_TEST_SCRIPTS` says how many each dialect gets, `RESPOOL_TEST_SEED` where they start. Nothing is
//! forgiven.

use respool_testkit::test_scale;
use respool_wire::Protocol;

use super::phrases::Phrases;
use super::subject::{Request, number_from, shown};
use super::{both, words};

/// Scripts of each dialect, unless the environment says otherwise.
const SCRIPTS: u64 = 1_500;
/// Scripts between two flushes of both stores.
const ROUND: u64 = 500;
const DIFFERENCES_MAX: usize = 12;

#[test]
fn generated_scripts_answer_as_in_redis() {
    for protocol in [Protocol::Resp2, Protocol::Resp3] {
        let Some((_server, mut redis, mut subject)) = both(protocol) else { return };
        let seed = number_from("RESPOOL_TEST_SEED", 1);
        let mut phrases = Phrases::new(seed.wrapping_add(u64::from(protocol.version()) << 32));
        let mut differences: Vec<String> = Vec::new();
        let mut history: Vec<Request> = Vec::new();
        for number in 0..number_from("RESPOOL_TEST_SCRIPTS", SCRIPTS * test_scale() as u64) {
            let flush = number % ROUND == 0;
            let requests = match flush {
                true => vec![words(&["FLUSHALL"])],
                false => vec![phrases.request(), words(&["EVAL", &phrases.script(), "2", "k1", "k2", "a1", "a2"])],
            };
            for request in requests {
                let expected = redis.command(&request).unwrap_or_else(|error| {
                    let before: Vec<String> = history.iter().rev().take(5).map(|request| shown(request)).collect();
                    panic!("redis-server left at {}: {error}\n{}", script(&request), before.join("\n"))
                });
                let said = subject.command(&request);
                if expected != said {
                    let (expected, said) = (super::shown(&expected), super::shown(&said));
                    differences.push(format!("{}\n  redis   {expected}\n  respool {said}", script(&request)));
                    // What differs in the stores would differ again.
                    assert_eq!(redis.command(&words(&["FLUSHALL"])).ok(), Some(subject.command(&words(&["FLUSHALL"]))));
                }
                history.push(request);
            }
            if differences.len() >= DIFFERENCES_MAX {
                break;
            }
        }
        let told = differences.join("\n");
        assert!(differences.is_empty(), "seed {seed}, {protocol:?}: {} differences\n{told}", differences.len());
    }
}

/// A request as readers see it, its script whole.
fn script(request: &Request) -> String {
    match request.get(1) {
        Some(text) if request[0] == b"EVAL" => text.escape_ascii().to_string(),
        _ => shown(request),
    }
}
