//! Streams of several nodes in every cut and every order: what a follower is given.

use super::fault::Fault;
use super::merge::{Merge, Outcome, Terms};
use crate::limits::{MERGED_COMMAND_BYTES_MAX, MERGED_WINDOW_BYTES};
use respool_wire::{RequestDecoder, RequestLimits, Step, encode_request};

const SYNC: Terms = Terms { has_offsets: false, is_snapshot_only: false };
const PSYNC: Terms = Terms { has_offsets: true, is_snapshot_only: false };
const FIELD: &[u8] = b"\xfa\x09redis-ver\x067.0.15";
const LIBRARY: &[u8] = b"\xf5\x09#!lua l\n1";

fn command(words: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let words: Vec<_> = words.split(' ').collect();
    encode_request(&mut out, words.iter().map(|word| word.as_bytes()));
    out
}

/// A snapshot as a node announces and sends it.
fn snapshot(version: u32, keys: &[u8]) -> Vec<u8> {
    let header = format!("REDIS{version:04}");
    let bytes = [header.as_bytes(), FIELD, LIBRARY, keys, b"\xff12345678"].concat();
    [format!("${}\r\n", bytes.len()).into_bytes(), bytes].concat()
}

/// All commands of a stream as words.
fn words(mut stream: &[u8]) -> Vec<String> {
    let mut all = Vec::new();
    while let Ok(Step::Request(request)) = RequestDecoder::new().decode(stream, &RequestLimits::default()) {
        let words: Vec<_> = request.args.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect();
        all.push(words.join(" "));
        stream = &stream[request.consumed..];
    }
    assert_eq!(stream, b"", "a stream of whole commands");
    all
}

/// A merge whose nodes have sent empty snapshots, and the end of what the follower was given.
fn streaming(sources: usize) -> Merge {
    let mut merge = Merge::new(sources, SYNC, "", 0);
    for source in 0..sources {
        merge.push(source, &snapshot(10, b""), 0);
    }
    assert!(pass(&mut merge).ends_with(b"\xff\0\0\0\0\0\0\0\0"));
    merge
}

fn pass(merge: &mut Merge) -> Vec<u8> {
    let mut out = Vec::new();
    assert_eq!(merge.pass(usize::MAX, &mut out, 0), Ok(Outcome::Going));
    out
}

/// What the follower is given when these sources send these words, one after the other.
fn given(merge: &mut Merge, said: &[(usize, &str)]) -> Vec<String> {
    let mut out = Vec::new();
    for (source, said) in said {
        merge.push(*source, &command(said), 0);
        assert_eq!(merge.pass(usize::MAX, &mut out, 0), Ok(Outcome::Going));
    }
    words(&out)
}

/// Small numbers, the same for a seed.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
}

#[test]
fn snapshots_are_joined_in_every_cut() {
    let bodies: [&[u8]; 3] = [b"\xfe\x00\x00\x01a\x01b", b"", b"\xfe\x01\x00\x01c\x01d"];
    let bytes: Vec<_> = bodies.iter().zip([9, 11, 10]).map(|(body, version)| snapshot(version, body)).collect();
    let expected = [b"REDIS0011", FIELD, LIBRARY, bodies[0], bodies[2], b"\xff\0\0\0\0\0\0\0\0"].concat();
    let expected = [format!("${}\r\n", expected.len()).into_bytes(), expected].concat();
    for seed in 0..200 {
        let (mut chance, mut at) = (Chance(seed), [0; 3]);
        let (mut merge, mut out) = (Merge::new(3, SYNC, "", 0), Vec::new());
        while at.iter().zip(&bytes).any(|(at, bytes)| *at < bytes.len()) {
            let source = chance.below(3);
            let end = bytes[source].len().min(at[source] + 1 + chance.below(12));
            merge.push(source, &bytes[source][at[source]..end], 0);
            at[source] = end;
            let room = out.len() + chance.below(20);
            assert_eq!(merge.pass(room - out.len(), &mut out, 0), Ok(Outcome::Going));
        }
        out.extend(pass(&mut merge));
        assert_eq!(out, expected, "seed {seed}");
    }
}

#[test]
fn streams_keep_order_database_and_transactions() {
    const ALL: usize = 60;
    for seed in 0..300 {
        let mut chance = Chance(seed);
        // What each source sends, and for each of its commands the database and whether it stands in a transaction.
        let mut streams = Vec::new();
        for source in 0..3 {
            let (mut stream, mut database, mut is_open) = (Vec::new(), 9, false);
            for number in 0..ALL {
                if number == 0 || chance.below(4) == 0 {
                    database = chance.below(3);
                    stream.extend(command(&format!("SELECT {database}")));
                }
                match chance.below(8) {
                    0 if !is_open => {
                        stream.extend(command("MULTI"));
                        is_open = true;
                    }
                    1 if is_open => {
                        stream.extend(command("EXEC"));
                        is_open = false;
                    }
                    2 if !is_open => stream.extend(command("PING")),
                    _ => {}
                }
                stream.extend(command(&format!("SET {source}:{number}:{database}:{is_open} {}", "x".repeat(number))));
            }
            if is_open {
                stream.extend(command("EXEC"));
            }
            streams.push(stream);
        }
        let (mut merge, mut out, mut at) = (streaming(3), Vec::new(), [0; 3]);
        while at.iter().zip(&streams).any(|(at, stream)| *at < stream.len()) {
            let source = chance.below(3);
            let end = streams[source].len().min(at[source] + 1 + chance.below(90));
            merge.push(source, &streams[source][at[source]..end], 0);
            at[source] = end;
            let room = chance.below(100);
            assert_eq!(merge.pass(room, &mut out, 0), Ok(Outcome::Going));
        }
        out.extend(pass(&mut merge));
        let (mut next, mut database, mut open) = ([0; 3], "none".to_owned(), None::<Option<String>>);
        for said in words(&out) {
            match said.split(' ').collect::<Vec<_>>()[..] {
                ["SELECT", to] => database = to.to_owned(),
                ["MULTI"] => assert_eq!(open.replace(None), None),
                ["EXEC"] => assert!(open.take().is_some()),
                ["PING"] => assert!(open.is_none()),
                ["SET", key, ..] => {
                    let fields: Vec<_> = key.split(':').collect();
                    let source: usize = fields[0].parse().unwrap();
                    assert_eq!(
                        (fields[1], fields[2]),
                        (next[source].to_string().as_str(), database.as_str()),
                        "{said}"
                    );
                    next[source] += 1;
                    assert_eq!(fields[3], open.is_some().to_string(), "{said}");
                    if let Some(of) = &mut open {
                        assert_eq!(of.get_or_insert_with(|| fields[0].to_owned()), fields[0], "{said}");
                    }
                }
                _ => panic!("{said}"),
            }
        }
        assert_eq!(next, [ALL; 3], "seed {seed}");
    }
}

#[test]
fn a_command_for_all_keys_is_passed_once() {
    let mut merge = streaming(3);
    let seen = given(&mut merge, &[(0, "SELECT 0"), (1, "SELECT 0"), (2, "SELECT 0"), (0, "SET a 1"), (0, "FLUSHALL")]);
    assert_eq!(seen, ["SELECT 0", "SET a 1"]);
    // What a node is given behind it is not deleted by those that come to it later.
    let seen = given(&mut merge, &[(0, "SET a 2"), (1, "SET b 1"), (1, "FLUSHALL"), (2, "SET c 1")]);
    assert_eq!(seen, ["SET b 1", "SET c 1"]);
    assert_eq!(merge.check(None, Some(0)), Err(Fault::Unmatched));
}

/// Behind a long snapshot a node first sends what it was written meanwhile: that it has not come to the command does not say that it
/// never will.
#[test]
fn a_node_that_is_still_sending_may_come_to_it_late() {
    const SECOND: u64 = 1_000_000;
    let mut merge = streaming(2);
    given(&mut merge, &[(0, "SELECT 0"), (1, "SELECT 0"), (0, "FLUSHALL")]);
    let check = |merge: &Merge, second: u64| {
        let due = |seconds: u64| second.checked_sub(seconds).map(|second| second * SECOND);
        merge.check(due(60), due(5))
    };
    for second in 1..50 {
        merge.push(1, &command("SET b 1"), second * SECOND);
        assert_eq!(merge.pass(usize::MAX, &mut Vec::new(), second * SECOND), Ok(Outcome::Going));
        assert_eq!(check(&merge, second), Ok(()), "{second}");
    }
    // What the first node sends behind it does not put off the end.
    merge.push(0, &command("SET a 1"), 53 * SECOND);
    assert_eq!(check(&merge, 53), Ok(()));
    assert_eq!(check(&merge, 54), Err(Fault::Unmatched), "it has been silent for long");
    merge.push(1, &command("SET b 1"), 59 * SECOND);
    assert_eq!((check(&merge, 59), check(&merge, 60)), (Ok(()), Err(Fault::Unmatched)), "nor does it have for ever");
    merge.push(1, &command("FLUSHALL"), 59 * SECOND);
    assert_eq!(words(&pass(&mut merge)).last().map(String::as_str), Some("SET a 1"));
    assert_eq!(check(&merge, 1_000), Ok(()));
}

#[test]
fn a_command_for_all_keys_lets_go_on_what_waits_behind_it() {
    let mut merge = streaming(2);
    let seen = given(&mut merge, &[(0, "SELECT 0"), (1, "SELECT 0"), (0, "FUNCTION LOAD code"), (0, "SET a 2")]);
    assert_eq!(seen, [""; 0]);
    let seen = given(&mut merge, &[(1, "SET b 1"), (1, "FUNCTION LOAD code"), (1, "SET b 2")]);
    assert_eq!(seen, ["SELECT 0", "SET b 1", "FUNCTION LOAD code", "SET a 2", "SET b 2"]);
    assert_eq!(merge.check(Some(0), Some(0)), Ok(()));
}

#[test]
fn commands_for_all_keys_that_differ_are_not_passed() {
    for other in ["FLUSHALL ASYNC", "SWAPDB 0 1"] {
        let mut merge = streaming(2);
        given(&mut merge, &[(0, "SELECT 0"), (1, "SELECT 0"), (0, "FLUSHALL")]);
        merge.push(1, &command(other), 0);
        assert_eq!(merge.pass(usize::MAX, &mut Vec::new(), 0), Err(Fault::Unmatched));
    }
    let mut merge = streaming(2);
    given(&mut merge, &[(0, "SELECT 0"), (1, "SELECT 1"), (0, "FLUSHDB")]);
    merge.push(1, &command("FLUSHDB"), 0);
    assert_eq!(merge.pass(usize::MAX, &mut Vec::new(), 0), Err(Fault::Unmatched), "of two databases");
    let mut merge = streaming(1);
    given(&mut merge, &[(0, "SELECT 0"), (0, "MULTI")]);
    merge.push(0, &command("FLUSHALL"), 0);
    assert_eq!(merge.pass(usize::MAX, &mut Vec::new(), 0), Err(Fault::Unmatched), "in a transaction");
}

#[test]
fn a_large_value_passes_without_being_held() {
    let mut merge = streaming(2);
    given(&mut merge, &[(0, "SELECT 0"), (1, "SELECT 0")]);
    let length = 20 * MERGED_WINDOW_BYTES;
    let large = command(&format!("SET large {}", "x".repeat(length)));
    let mut out = Vec::new();
    for piece in large.chunks(64 * 1024) {
        merge.push(0, piece, 0);
        out.extend(pass(&mut merge));
        // Another node's command waits for its end.
        merge.push(1, &command("SET small 1"), 0);
        assert_eq!(merge.pass(usize::MAX, &mut out, 0), Ok(Outcome::Going));
        assert!(merge.is_hungry(0) && merge.held_bytes() < 2 * MERGED_WINDOW_BYTES);
    }
    let seen = words(&out);
    assert!(seen[1].starts_with("SET large x") && seen[1].len() == "SET large ".len() + length);
    assert!(seen[2..].iter().all(|said| said == "SET small 1") && seen.len() == 2 + large.chunks(64 * 1024).len());
}

#[test]
fn what_waits_for_another_node_is_bounded_by_the_window() {
    let mut merge = streaming(2);
    given(&mut merge, &[(0, "SELECT 0"), (1, "SELECT 0")]);
    merge.push(0, b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$9\r\n123", 0);
    pass(&mut merge);
    while merge.is_hungry(1) {
        merge.push(1, &command("SET b 1"), 0);
        assert_eq!(pass(&mut merge), b"");
    }
    assert!(merge.held_bytes() < 2 * MERGED_WINDOW_BYTES + 1024);
    assert_eq!((merge.check(Some(0), None), merge.check(None, Some(0))), (Err(Fault::Silent), Ok(())));
    merge.push(0, b"456789\r\n", 0);
    pass(&mut merge);
    assert!(merge.is_hungry(1));
}

#[test]
fn a_command_that_is_compared_has_a_limit() {
    let mut merge = streaming(2);
    merge.push(0, b"*4\r\n$8\r\nFUNCTION\r\n$7\r\nRESTORE\r\n$99999999\r\n", 0);
    let mut fault = Ok(Outcome::Going);
    for _ in 0..=MERGED_COMMAND_BYTES_MAX / 65536 {
        assert!(merge.is_hungry(0) || fault.is_err());
        merge.push(0, &[b'x'; 65536], 0);
        fault = merge.pass(usize::MAX, &mut Vec::new(), 0);
    }
    assert_eq!(fault, Err(Fault::TooLong));
}

#[test]
fn acknowledgements_are_those_of_the_follower() {
    let mut merge = Merge::new(2, PSYNC, "0123456789", 0);
    assert_eq!((merge.confirmed(0), merge.is_agreed()), (None, false));
    merge.push(0, b"+FULLRESYNC abc 100\r\n\n", 0);
    merge.push(1, b"\n+FULLRESYNC def 7000\r\n", 0);
    assert!(merge.open() == Ok(Outcome::Going) && merge.is_agreed());
    merge.push(0, &snapshot(10, b""), 0);
    merge.push(1, b"\n", 0);
    let seen = pass(&mut merge);
    assert_eq!(seen, b"+FULLRESYNC 0123456789 0\r\n\n");
    merge.push(1, &snapshot(10, b""), 0);
    pass(&mut merge);
    assert_eq!((merge.confirmed(0), merge.confirmed(1)), (Some(100), Some(7000)));
    // SELECT has 23 bytes, SET 27 here; a GETACK of ours has 37.
    let stream = [command("SELECT 0"), command("SET a 1"), command("REPLCONF GETACK *"), command("PING")].concat();
    merge.push(1, &stream, 0);
    let first = pass(&mut merge);
    assert_eq!(words(&first), ["SELECT 0", "SET a 1", "REPLCONF GETACK *"]);
    merge.push(0, &[command("SELECT 0"), command("SET b 1"), command("REPLCONF GETACK *")].concat(), 0);
    assert_eq!(words(&pass(&mut merge)), ["SET b 1"], "it is asked once");
    merge.confirm(first.len() as u64 - 1);
    assert_eq!((merge.confirmed(0), merge.confirmed(1)), (Some(100), Some(7000)));
    merge.confirm(first.len() as u64);
    assert_eq!((merge.confirmed(0), merge.confirmed(1)), (Some(100), Some(7000 + stream.len() as u64)));
    merge.confirm(first.len() as u64 + 27);
    assert_eq!(merge.confirmed(0), Some(100 + 23 + 27 + 37));
}

#[test]
fn many_positions_wait_in_little_room() {
    let mut merge = Merge::new(1, PSYNC, "x", 0);
    merge.push(0, b"+FULLRESYNC abc 0\r\n", 0);
    merge.push(0, &snapshot(10, b""), 0);
    pass(&mut merge);
    merge.push(0, &command("SELECT 0"), 0);
    let mut position = pass(&mut merge).len() as u64;
    let held = merge.held_bytes();
    for _ in 0..10_000 {
        merge.push(0, &command("SET a 1"), 0);
        position += pass(&mut merge).len() as u64;
    }
    assert!(merge.held_bytes() < held + 1024);
    merge.confirm(position);
    assert_eq!(merge.confirmed(0), Some(position));
}

#[test]
fn what_is_no_replication_stream_is_refused() {
    for bytes in [&b"+CONTINUE\r\n"[..], b"+FULLRESYNC abc -1\r\n", b"$EOF:0123\r\n", b":1\r\n"] {
        let mut merge = Merge::new(1, PSYNC, "x", 0);
        merge.push(0, bytes, 0);
        assert_eq!(merge.open(), Err(Fault::Malformed), "{}", bytes.escape_ascii());
    }
    let mut merge = Merge::new(1, SYNC, "", 0);
    merge.push(0, b"-NOMASTERLINK no\r\n", 0);
    assert_eq!(merge.open(), Ok(Outcome::Refused(b"-NOMASTERLINK no\r\n".to_vec())));
    for bytes in
        [&b"$5\r\nREDIS0010"[..], b"$18\r\nREDIS0010\xfe12345678", b"$17\r\nREDIS0010\xff1234567", b"$20\r\nNOTHING.."]
    {
        let mut merge = Merge::new(1, SYNC, "", 0);
        merge.push(0, bytes, 0);
        let seen = merge.pass(usize::MAX, &mut Vec::new(), 0);
        assert_eq!(seen, Err(Fault::Malformed), "{}", bytes.escape_ascii());
    }
    for bytes in
        [&b"PING\r\n"[..], b"*0\r\n", b"*1\r\n:1\r\n", b"*2\r\n$1\r\na\r\n$-1\r\n", b"*999999999999999999999999999"]
    {
        let mut merge = streaming(1);
        merge.push(0, bytes, 0);
        let seen = merge.pass(usize::MAX, &mut Vec::new(), 0);
        assert_eq!(seen, Err(Fault::Malformed), "{}", bytes.escape_ascii());
    }
}

#[test]
fn a_follower_of_the_snapshot_alone_is_given_no_commands() {
    let mut merge = Merge::new(2, Terms { has_offsets: false, is_snapshot_only: true }, "", 0);
    let mut out = Vec::new();
    for source in 0..2 {
        merge.push(source, &[snapshot(10, b""), command("SELECT 0")].concat(), 0);
    }
    assert_eq!(merge.pass(usize::MAX, &mut out, 0), Ok(Outcome::Done));
    assert!(out.ends_with(b"\xff\0\0\0\0\0\0\0\0"));
}
