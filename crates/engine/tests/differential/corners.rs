//! Requests that the generated ones hardly meet: which of two faults is told, and members in no order of their own.

use respool_testkit::Rng;
use respool_wire::Protocol;

use super::{Request, Subject, number_from, redis, shown};

/// Sorted sets whose scores differ, unless the environment says otherwise.
const SETS: usize = 300;
/// Members of one of them at most: few enough for the compact encoding, where Redis's answer does not depend on chance.
const MEMBERS_MAX: usize = 12;

fn request(line: &str) -> Request {
    line.split(' ').map(|word| word.replace("\\s", " ").into_bytes()).collect()
}

#[test]
fn the_first_of_two_faults_is_told() {
    let Some((_server, mut redis)) = redis() else { return };
    let mut subject = Subject::new(Protocol::Resp2);
    for line in ["SET s x", "RPUSH l a", "ZADD z 1 a"] {
        assert_eq!(redis.command(&request(line)).expect("the server answers"), subject.command(&request(line)));
    }
    for line in [
        "BITPOS s 0 0 1\\s x",
        "BITPOS s 0 x 1\\s x",
        "BITPOS s 0 0 1\\s BIT",
        "BITPOS s 0 0 1 BITS",
        "BITPOS s 2 x",
        "BITPOS l 0 0 1\\s x",
        "BITPOS none 0 0 x x",
        "BITCOUNT s 0 1\\s x",
        "BITCOUNT s -1 -2 x",
        "BITCOUNT s x",
        "BLMPOP 1e400 2 l l RIGHT COUNT 0",
        "BLMPOP -1 0 l RIGHT",
        "BLMPOP x 1 l UP",
        "BLMPOP x 1 l LEFT COUNT 1 COUNT 1",
        "BLMPOP x 1 s LEFT",
        "BLMPOP -1 1 l LEFT",
        "BZMPOP inf 2 z z MAX COUNT -1",
        "BZMPOP -1 0 z MAX",
        "BZMPOP x 1 z UP",
        "BZMPOP -1 1 s MIN",
        "BLMOVE l l LEFT UP -1",
        "BLMOVE l s LEFT LEFT -1",
        "BRPOPLPUSH s l x",
        "BLPOP s -1",
        "BZPOPMIN s x",
        "ZINTER 3 s z none AGGREGATE avg",
        "ZINTER 3 none z s AGGREGATE avg",
        "ZUNIONSTORE d 2 z s WEIGHTS 1 x",
    ] {
        let expected = redis.command(&request(line)).expect("the server answers");
        let said = subject.command(&request(line));
        assert_eq!(expected.escape_ascii().to_string(), said.escape_ascii().to_string(), "{line}");
    }
}

#[test]
fn lexical_ranges_of_mixed_scores_are_those_of_redis() {
    let Some((_server, mut redis)) = redis() else { return };
    let mut subject = Subject::new(Protocol::Resp2);
    let mut rng = Rng::new(number_from("RESPOOL_TEST_SEED", 1));
    let bounds = ["-", "+", "[a", "(a", "[c", "(c", "[e", "(g", "[", "(z"];
    let mut both = |request: &Request| {
        let expected = redis.command(request).expect("the server answers");
        let said = subject.command(request);
        assert_eq!(expected.escape_ascii().to_string(), said.escape_ascii().to_string(), "{}", shown(request));
    };
    for _ in 0..number_from("RESPOOL_TEST_REQUESTS", SETS as u64) {
        both(&request("DEL z d"));
        for _ in 0..rng.between(1, MEMBERS_MAX) {
            let member = char::from(b'a' + rng.below(8) as u8);
            both(&request(&format!("ZADD z {} {member}", rng.below(4))));
        }
        for _ in 0..4 {
            let (min, max) = (*rng.pick(&bounds), *rng.pick(&bounds));
            let (offset, count) = (rng.below(3), rng.below(5) as i64 - 1);
            for line in [
                format!("ZRANGEBYLEX z {min} {max}"),
                format!("ZREVRANGEBYLEX z {min} {max}"),
                format!("ZRANGEBYLEX z {min} {max} LIMIT {offset} {count}"),
                format!("ZRANGE z {min} {max} BYLEX REV LIMIT {offset} {count}"),
                format!("ZLEXCOUNT z {min} {max}"),
                format!("ZRANGESTORE d z {min} {max} BYLEX"),
                format!("ZRANGESTORE d z {min} {max} BYLEX REV"),
                "ZRANGE d 0 -1 WITHSCORES".to_owned(),
            ] {
                both(&request(&line));
            }
        }
        both(&request(&format!("ZREMRANGEBYLEX z {} {}", rng.pick(&bounds), rng.pick(&bounds))));
        both(&request("ZRANGE z 0 -1 WITHSCORES"));
    }
}

#[test]
fn streams_are_trimmed_by_listpacks_of_the_size_that_is_set() {
    let Some((_server, mut redis)) = redis() else { return };
    let mut subject = Subject::new(Protocol::Resp2);
    let mut both = |line: &str| {
        let expected = redis.command(&request(line)).expect("the server answers");
        let said = subject.command(&request(line));
        assert_eq!(expected.escape_ascii().to_string(), said.escape_ascii().to_string(), "{line}");
    };
    for (entries, bytes) in
        [(10, 4_096), (2, 4_096), (1, 4_096), (3, 0), (0, 4_096), (100, 40), (1_000, 20_000), (0, 0)]
    {
        both(&format!("CONFIG SET stream-node-max-entries {entries} stream-node-max-bytes {bytes}"));
        both("DEL stream");
        for number in 1..=250 {
            both(&format!("XADD stream {number}-1 field value"));
        }
        both("DUMP stream");
        for trimming in ["XADD stream MAXLEN ~ 155 LIMIT 30 251-1 field value", "XTRIM stream MAXLEN ~ 100 LIMIT 2"] {
            both(trimming);
            both("XLEN stream");
        }
        both("XADD stream MINID ~ 120-1 300-1 other field");
        both("XTRIM stream MAXLEN ~ 1");
        both("XINFO STREAM stream");
        both("XTRIM stream MAXLEN 0");
    }
    both("CONFIG GET stream-node-max-bytes");
    both("CONFIG GET stream-node-max-entries");
}
