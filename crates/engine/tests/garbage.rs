//! Whatever the arguments are, a request gets exactly one whole reply and nothing panics.

use respool_command::{Execute, Lane, Millis, Outcome, Row, SessionView, WaitId, all};
use respool_engine::{Engine, EngineConfig};
use respool_testkit::{Rng, reply_length};
use respool_wire::{ArgsBuf, Encoder, Protocol};

/// Requests per command and dialect.
const REQUESTS: usize = 400;
/// Arguments behind those that the arity asks for.
const MORE_MAX: usize = 6;

/// Words that mean something to some command, numbers at every edge, and bytes that are neither.
const WORDS: &[&[u8]] = &[
    b"",
    b"a",
    b"b",
    b"s",
    b"h",
    b"l",
    b"t",
    b"z",
    b"e",
    b"c",
    b"*",
    b"**",
    b"[",
    b"[^",
    b"\\",
    b"(",
    b"(1",
    b"[a",
    b"+",
    b"-",
    b"#",
    b"#1",
    b"s*->a",
    b"0",
    b"1",
    b"-1",
    b"2",
    b"3",
    b"-3",
    b"7",
    b"100",
    b"127",
    b"-128",
    b"65536",
    b"-2147483648",
    b"4294967296",
    b"9223372036854775807",
    b"-9223372036854775808",
    b"-9223372036854775807",
    b"18446744073709551615",
    b"1.5",
    b"-0",
    b"inf",
    b"-inf",
    b"nan",
    b"1e308",
    b"1e-320",
    b"0x1p-1074",
    b"\xff\xfe",
    b"\0",
    b"a\r\nb",
    b"u8",
    b"i64",
    b"u63",
    b"i1",
    b"FIELDS",
    b"IDS",
    b"FNX",
    b"IFEQ",
    b"ACKED",
    b"DELREF",
    b"NX",
    b"XX",
    b"GT",
    b"LT",
    b"CH",
    b"INCR",
    b"GET",
    b"SET",
    b"INCRBY",
    b"OVERFLOW",
    b"SAT",
    b"FAIL",
    b"EX",
    b"PX",
    b"EXAT",
    b"PXAT",
    b"KEEPTTL",
    b"PERSIST",
    b"LIMIT",
    b"COUNT",
    b"MATCH",
    b"TYPE",
    b"WITHSCORES",
    b"WITHVALUES",
    b"WEIGHTS",
    b"AGGREGATE",
    b"MIN",
    b"MAX",
    b"SUM",
    b"BYSCORE",
    b"BYLEX",
    b"REV",
    b"LEFT",
    b"RIGHT",
    b"BEFORE",
    b"AFTER",
    b"RANK",
    b"MAXLEN",
    b"BY",
    b"STORE",
    b"ALPHA",
    b"DESC",
    b"IDX",
    b"LEN",
    b"MINMATCHLEN",
    b"WITHMATCHLEN",
    b"AND",
    b"NOT",
    b"BIT",
    b"BYTE",
    b"REPLACE",
    b"DB",
    b"ASYNC",
    b"ABSTTL",
    b"IDLETIME",
    b"FREQ",
    b"\0\x05hello\x0a\0cr\xdfve4 \x0a",
    b"y",
    b"g",
    b"m",
    b"km",
    b"ASC",
    b"ANY",
    b"FROMMEMBER",
    b"FROMLONLAT",
    b"BYRADIUS",
    b"BYBOX",
    b"STOREDIST",
    b"WITHCOORD",
    b"GETREG",
    b"TODENSE",
    b"DECODE",
    b"HYLL\x01\0\0\0\0\0\0\0\0\0\0\x80\x7f",
    b"GET #",
    b"1-1",
    b"1-*",
    b"2-18446744073709551615",
    b"18446744073709551615-18446744073709551615",
    b"(1-1",
    b"$",
    b">",
    b"~",
    b"=",
    b"MINID",
    b"NOMKSTREAM",
    b"MKSTREAM",
    b"ENTRIESREAD",
    b"ENTRIESADDED",
    b"MAXDELETEDID",
    b"GROUP",
    b"BLOCK",
    b"NOACK",
    b"STREAMS",
    b"STREAMS",
    b"FORCE",
    b"JUSTID",
    b"IDLE",
    b"TIME",
    b"RETRYCOUNT",
    b"LASTID",
    b"FULL",
];

/// Requests whose words have to fit each other; `#` is any word, and of words with bars one is taken.
const SHAPES: &[&str] = &[
    "HEXPIRE|HPEXPIRE|HEXPIREAT|HPEXPIREAT h # FIELDS # #",
    "HEXPIRE|HPEXPIRE|HEXPIREAT|HPEXPIREAT h # # FIELDS 1|2 a b",
    "HPEXPIRE h 0|1|2 NX|XX|GT|LT FIELDS 2 a|b a|b",
    "HTTL|HPTTL|HEXPIRETIME|HPEXPIRETIME|HPERSIST|HGETDEL h FIELDS # #",
    "HGETEX h # # FIELDS # a b",
    "HGETEX h EX|PX|EXAT|PXAT # FIELDS 1 a",
    "HSETEX h # # FIELDS # a # b #",
    "HSETEX h EX|PX|EXAT|PXAT # FIELDS 1 a #",
    "HSETEX h FNX|FXX PX|PXAT 1|3 FIELDS 2 # # # #",
    "HSCAN h # COUNT #",
    "HRANDFIELD h # WITHVALUES",
    "MSETEX # s # k # # #",
    "DELEX s|h # #",
    "SET s # IFEQ|IFNE # # #",
    "XDELEX e # IDS # 1-1 #",
    "XACKDEL e g # IDS # # 2-1",
    "XTRIM e MAXLEN|MINID ~|= # LIMIT # KEEPREF|DELREF|ACKED",
    "XADD e # MAXLEN ~|= # KEEPREF|DELREF|ACKED * a #",
];

/// A request of one of the shapes.
fn shaped(rng: &mut Rng) -> Vec<Vec<u8>> {
    let shape = *rng.pick(SHAPES);
    let mut word = |word: &str| match word {
        "#" => rng.pick(WORDS).to_vec(),
        word => rng.pick(&word.split('|').collect::<Vec<_>>()).as_bytes().to_vec(),
    };
    shape.split(' ').map(&mut word).collect()
}

/// What a parked request waits for comes, or it is ended: it gets one reply.
fn serve(engine: &mut Engine, session: &mut SessionView, wait: WaitId, rng: &mut Rng) {
    for line in ["RPUSH l x", "ZADD z 1 x", "XADD e * f v", "RPUSH a x", "DEL e"] {
        if rng.once_in(2) {
            let args: ArgsBuf = line.split(' ').collect();
            let row = respool_command::resolve(args.as_args()).expect("it exists");
            let mut reply = Vec::new();
            assert_eq!(
                engine.execute(row, args.as_args(), session, &mut Encoder::new(&mut reply, Protocol::Resp2)),
                Outcome::Done
            );
        }
    }
    let mut reply = Vec::new();
    if let Some(served) = engine.poll_ready(session.now, &mut reply) {
        assert_eq!((served, reply_length(&reply).ok().flatten()), (wait, Some(reply.len())));
        assert_eq!(engine.poll_ready(session.now, &mut reply), None);
    }
    engine.cancel(wait);
    assert_eq!(engine.awaited_keys(), 0);
}

/// A request of a row with any words, as many as it accepts.
fn any(row: &Row, rng: &mut Rng) -> Vec<Vec<u8>> {
    let words = row.name.split(' ').map(str::as_bytes).map(<[u8]>::to_vec);
    let mut request: Vec<Vec<u8>> = words.collect();
    let needed = usize::from(row.arity.unsigned_abs());
    let wanted = if row.arity < 0 { needed + rng.below(MORE_MAX) } else { needed };
    while request.len() < wanted {
        request.push(rng.pick(WORDS).to_vec());
    }
    request
}

fn play(protocol: Protocol) {
    let mut rng = Rng::new(protocol.version().into());
    let mut engine = Engine::new(EngineConfig::default(), [3, 4]);
    let mut session = SessionView { now: Millis(1_700_000_000_000), ..SessionView::default() };
    let mut reply = Vec::new();
    let rows = all().filter(|row| !row.is_container()).map(Some);
    for row in rows.chain(std::iter::repeat_n(None, SHAPES.len())) {
        for number in 0..REQUESTS {
            let request = if let Some(row) = row { any(row, &mut rng) } else { shaped(&mut rng) };
            // Keys of every type come back after commands that empty the store.
            if number % 20 == 0 {
                for line in [
                    "SET s 12",
                    "HSET h a 1 b 2",
                    "RPUSH l a b 3 4",
                    "SADD t a 1 2",
                    "ZADD z 1 a 2 b 2 c",
                    "PFADD y a b",
                    "GEOADD g 1 2 a 100 -50 b",
                    "DEL e",
                    "XADD e 1-1 a 1",
                    "XADD e 2-1 b 2 c 3",
                    "XADD e 3-1 a 4",
                    "XDEL e 2-1",
                    "XGROUP CREATE e g 0",
                    "XGROUP CREATE e a 0",
                    "XREADGROUP GROUP g c COUNT 1 STREAMS e >",
                ] {
                    let filling: ArgsBuf = line.split(' ').collect();
                    let row = respool_command::resolve(filling.as_args()).expect("it exists");
                    _ = engine.execute(
                        row,
                        filling.as_args(),
                        &mut session,
                        &mut Encoder::new(&mut Vec::new(), protocol),
                    );
                }
            }
            session.now.0 += rng.below(3) as u64;
            let args: ArgsBuf = request.iter().collect();
            let row = respool_command::resolve(args.as_args()).expect("it exists");
            reply.clear();
            let outcome = engine.execute(row, args.as_args(), &mut session, &mut Encoder::new(&mut reply, protocol));
            let told = || format!("{:?} answers {}", args.as_args(), reply.escape_ascii());
            if let Outcome::Parked(wait) = outcome {
                assert!(row.lane(args.as_args()) == Lane::Blocking, "{}", told());
                assert!(reply.is_empty(), "{}", told());
                serve(&mut engine, &mut session, wait, &mut rng);
                continue;
            }
            assert_eq!(reply_length(&reply).ok().flatten(), Some(reply.len()), "{}", told());
            assert!(row.lane(args.as_args()) != Lane::Dedicated || reply.starts_with(b"-"), "{}", told());
        }
        _ = engine.tick(session.now);
    }
}

#[test]
fn every_request_gets_one_reply_in_resp2() {
    play(Protocol::Resp2);
}

#[test]
fn every_request_gets_one_reply_in_resp3() {
    play(Protocol::Resp3);
}
