//! The engine against a real redis-server 7.0: the same generated requests to both, replies compared byte for byte.
//!
//! The environment variable `RESPOOL_TEST_REDIS=off` leaves these tests out, for machines without a redis-server.
//! `RESPOOL_TEST_REQUESTS` says how many requests each dialect gets (17,000 if unset), `RESPOOL_TEST_SEED` where
//! the script starts. What the two may differ in is listed in `rules.rs`; nothing else is forgiven.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "the engine is told the time that the server lives in"
)]

mod blocking;
mod corners;
mod dumps;
mod events;
mod eviction;
mod generate;
mod rules;
mod subject;
mod watching;

use std::collections::BTreeMap;

use respool_testkit::{Client, RedisServer};
use respool_wire::Protocol;

use generate::Generator;
use rules::Verdict;
use subject::{Request, Subject, number_from, shown};

/// Requests per dialect unless the environment says otherwise.
/// With those that are played through a socket (`behaviour::differential`), fifty thousand in a run of all tests.
const REQUESTS: usize = 17_000;
/// Requests between two flushes of both stores.
const ROUND: usize = 1_500;
/// Differences that are told before the test gives up.
const DIFFERENCES_MAX: usize = 30;

/// A client of a fresh redis-server of the right version, or `None` if these tests are to be left out.
fn redis() -> Option<(RedisServer, Client)> {
    redis_with(&[])
}

/// As [`redis`], with additional settings of the server.
fn redis_with(settings: &[&str]) -> Option<(RedisServer, Client)> {
    if std::env::var("RESPOOL_TEST_REDIS").is_ok_and(|value| value == "off") {
        eprintln!("left out: RESPOOL_TEST_REDIS=off");
        return None;
    }
    let server = RedisServer::start_with(&[&["--enable-debug-command", "yes"], settings].concat()).unwrap_or_else(|error| {
        panic!(
            "no redis-server could be started ({error}); install Debian's redis-server, or set RESPOOL_TEST_REDIS=off"
        )
    });
    let mut client = server.client().expect("the server has just said that it is ready");
    let info = client.ask("INFO server").expect("the server answers");
    assert!(
        info.contains("redis_version:7.0."),
        "the engine answers as redis-server 7.0 does, this is another version"
    );
    // Expired keys are counted until they are asked for; the engine's active cycle rests here as well.
    assert_eq!(client.ask("DEBUG SET-ACTIVE-EXPIRE 0").expect("the server answers"), "+OK\r\n");
    Some((server, client))
}

struct Duel {
    redis: Client,
    subject: Subject,
    generator: Generator,
    history: Vec<Request>,
    /// What was found, by command, so that one mistake does not hide the others.
    differences: BTreeMap<Vec<u8>, String>,
}

impl Duel {
    fn both(&mut self, request: &Request) -> (Vec<u8>, Vec<u8>) {
        let expected = self.redis.command(request).unwrap_or_else(|error| {
            panic!("redis-server left at {}: {error}\n{}", shown(request), self.told());
        });
        (expected, self.subject.command(request))
    }

    fn flush(&mut self) {
        self.history.clear();
        let flush = vec![b"FLUSHALL".to_vec()];
        let (expected, subject) = self.both(&flush);
        assert_eq!(expected, subject);
    }

    /// Sends one request to both. A difference is noted and both stores are emptied.
    fn play(&mut self, request: Request) {
        if request[0].eq_ignore_ascii_case(b"DBSIZE") {
            // Expired keys count until a command meets them; a whole scan meets and removes them all.
            self.compare_scan(&[b"SCAN"], &[]);
        }
        let (expected, subject) = self.both(&request);
        self.history.push(request.clone());
        match rules::compare(&request, &expected, &subject) {
            Verdict::Same => {}
            Verdict::ForgetKeys => {
                for key in request.iter().skip(1) {
                    self.both(&vec![b"DEL".to_vec(), key.clone()]);
                }
            }
            Verdict::Different => {
                let told = format!(
                    "{}\n  redis:  {}\n  engine: {}\n{}",
                    shown(&request),
                    expected.escape_ascii(),
                    subject.escape_ascii(),
                    self.told()
                );
                self.differences.entry(request[0].to_ascii_uppercase()).or_insert(told);
                self.flush();
            }
        }
    }

    /// The last requests that share a key with the last one.
    fn told(&self) -> String {
        let Some(last) = self.history.last() else { return String::new() };
        let is_related = |request: &&Request| request.iter().skip(1).any(|argument| last[1..].contains(argument));
        let related: Vec<_> =
            self.history.iter().rev().skip(1).filter(is_related).take(12).map(|request| shown(request)).collect();
        related.into_iter().rev().map(|line| format!("    after {line}\n")).collect()
    }

    /// Compares types, encodings and cursors' findings of all keys, also once they were serialised and read back.
    fn compare_state(&mut self) {
        self.compare_keys();
        self.compare_digests();
        self.play(vec![b"DEBUG".to_vec(), b"RELOAD".to_vec()]);
        self.compare_keys();
        self.compare_digests();
    }

    /// Compares the signatures of all values, and of the stores as a whole.
    fn compare_digests(&mut self) {
        let mut of_values: Request = vec![b"DEBUG".to_vec(), b"DIGEST-VALUE".to_vec()];
        of_values.extend(generate::keys());
        for request in [of_values, vec![b"DEBUG".to_vec(), b"DIGEST".to_vec()]] {
            // A key may expire between the two; it has for both when they are asked again.
            let is_same = (0..2).any(|_| {
                self.compare_scan(&[b"SCAN"], &[]);
                let (expected, seen) = self.both(&request);
                expected == seen
            });
            assert!(is_same, "{} differs\n{}", shown(&request), self.told());
        }
    }

    fn compare_keys(&mut self) {
        for key in generate::keys() {
            self.play(vec![b"TYPE".to_vec(), key.clone()]);
            self.play(vec![b"OBJECT".to_vec(), b"ENCODING".to_vec(), key.clone()]);
            if key.starts_with(b"a") {
                let words: [&[u8]; 6] = [b"XINFO", b"STREAM", &key, b"FULL", b"COUNT", b"0"];
                self.play(words.map(<[u8]>::to_vec).to_vec());
            }
        }
        for scan in [vec![], vec![b"MATCH".to_vec(), b"[h-l]*".to_vec()], vec![b"TYPE".to_vec(), b"hash".to_vec()]] {
            self.compare_scan(&[b"SCAN"], &scan);
        }
        for (command, key) in [("HSCAN", "h0"), ("HSCAN", "h1"), ("SSCAN", "t0"), ("SSCAN", "t1"), ("ZSCAN", "z0")] {
            for options in [vec![], vec![b"COUNT".to_vec(), b"3".to_vec()], vec![b"MATCH".to_vec(), b"*a*".to_vec()]] {
                self.compare_scan(&[command.as_bytes(), key.as_bytes()], &options);
            }
        }
    }

    fn compare_scan(&mut self, head: &[&[u8]], options: &[Vec<u8>]) {
        let found = |ask: &mut dyn FnMut(&Request) -> Vec<u8>| {
            let (mut cursor, mut found) = (b"0".to_vec(), std::collections::BTreeSet::new());
            let step =
                if head[0].eq_ignore_ascii_case(b"HSCAN") || head[0].eq_ignore_ascii_case(b"ZSCAN") { 2 } else { 1 };
            loop {
                let mut request: Request = head.iter().map(|word| word.to_vec()).collect();
                request.push(cursor);
                request.extend_from_slice(options);
                let reply = ask(&request);
                let Some((next, elements)) = rules::scan_parts(&reply) else { return Err(reply) };
                found.extend(elements.chunks(step).map(<[Vec<u8>]>::concat));
                if next == b"0" {
                    return Ok(found);
                }
                cursor = next;
            }
        };
        // A key may expire between the two scans; it has for both when they are made again.
        for is_last in [false, true] {
            let redis = &mut self.redis;
            let expected = found(&mut |request| redis.command(request).expect("the server answers"));
            let subject = &mut self.subject;
            let seen = found(&mut |request| subject.command(request));
            if expected == seen {
                return;
            }
            assert!(!is_last, "{} {options:?}: {expected:?} {seen:?}", head[0].escape_ascii());
        }
    }
}

fn duel(protocol: Protocol) {
    let Some((_server, mut redis)) = redis() else { return };
    redis.ask(&format!("HELLO {}", protocol.version())).expect("the server answers");
    let seed = number_from("RESPOOL_TEST_SEED", 1);
    let requests = number_from("RESPOOL_TEST_REQUESTS", REQUESTS as u64) as usize;
    let generator = Generator::new(seed.wrapping_add(u64::from(protocol.version()) << 32));
    let differences = BTreeMap::new();
    let mut duel = Duel { redis, subject: Subject::new(protocol), generator, history: Vec::new(), differences };
    for number in 0..requests {
        if number % ROUND == ROUND - 1 {
            duel.compare_state();
            duel.flush();
        }
        let request = duel.generator.request();
        duel.play(request);
        if duel.differences.len() >= DIFFERENCES_MAX {
            break;
        }
    }
    let told: Vec<_> = duel.differences.values().map(String::as_str).collect();
    assert!(told.is_empty(), "seed {seed}, {protocol:?}: {} differences\n{}", told.len(), told.join("\n"));
}

#[test]
fn resp2_replies_are_those_of_redis() {
    duel(Protocol::Resp2);
}

#[test]
fn resp3_replies_are_those_of_redis() {
    duel(Protocol::Resp3);
}
