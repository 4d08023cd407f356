//! What a request of a few bytes may cost at most, beside another that does as much: no loop within a loop.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "what a request takes is measured")]

use std::time::{Duration, Instant};

use respool_command::{Execute, Millis, SessionView, resolve};
use respool_engine::{Engine, EngineConfig};
use respool_wire::{ArgsBuf, Encoder, Protocol};

struct Costs {
    engine: Engine,
    now: Millis,
}

impl Costs {
    fn new() -> Self {
        Self { engine: Engine::new(EngineConfig::default(), [1, 2]), now: Millis(1_700_000_000_000) }
    }

    /// The reply to a request, its line ends as spaces.
    fn say(&mut self, line: &str) -> String {
        let args: ArgsBuf = line.split(' ').collect();
        let row = resolve(args.as_args()).expect("it has a row");
        let mut session = SessionView { now: self.now, ..SessionView::default() };
        let mut out = Vec::new();
        _ = self.engine.execute(row, args.as_args(), &mut session, &mut Encoder::new(&mut out, Protocol::Resp2));
        String::from_utf8_lossy(&out).replace("\r\n", " ").trim_end().to_owned()
    }

    /// The same of one that changes nothing, and how long it takes.
    fn time(&mut self, line: &str) -> (Duration, String) {
        let once = |_| {
            let begun = Instant::now();
            let said = self.say(line);
            (begun.elapsed(), said)
        };
        quickest((0..5).map(once))
    }
}

/// The quickest of several measurements: what else runs meanwhile makes none quicker.
fn quickest<T>(times: impl Iterator<Item = (Duration, T)>) -> (Duration, T) {
    times.min_by_key(|(time, _)| *time).expect("it was measured")
}

/// How often each of several words is in a reply.
fn counts<'r>(reply: &'r str, words: impl Iterator<Item = String> + 'r) -> impl Iterator<Item = usize> + 'r {
    words.map(move |word| reply.matches(&format!(" {word} ")).count())
}

#[test]
fn a_set_that_is_named_again_is_not_asked_for_its_members() {
    let mut costs = Costs::new();
    for number in 0..20_000 {
        costs.say(&format!("SADD set m{number}"));
        costs.say(&format!("ZADD scores {number} m{number}"));
    }
    for (command, counted, key) in
        [("SINTER", "", "set"), ("SINTERCARD", "200 ", "set"), ("ZINTERCARD", "200 ", "scores")]
    {
        let once = if counted.is_empty() { String::new() } else { "1 ".to_owned() };
        let (least, alone) = costs.time(&format!("{command} {once}{key}"));
        let (spent, again) = costs.time(&format!("{command} {counted}{}", vec![key; 200].join(" ")));
        assert_eq!(alone, again, "{command}");
        // Asking 199 times for each member took 100 times as long.
        assert!(spent < least * 8, "{command}: {spent:?} where {least:?} are needed");
    }
}

#[test]
fn elements_are_drawn_without_a_walk_to_each() {
    let mut costs = Costs::new();
    costs.say("HSET one f v");
    let (least, _) = costs.time("HRANDFIELD one -20000");
    for number in 0..512 {
        costs.say(&format!("HSET fields f{number} v"));
    }
    assert_eq!(costs.say("OBJECT ENCODING fields"), "$8 listpack");
    let (spent, drawn) = costs.time("HRANDFIELD fields -20000");
    assert!(drawn.starts_with("*20000 "));
    assert!(counts(&drawn, (0..512).map(|number| format!("f{number}"))).all(|count| (5..100).contains(&count)));
    assert!(spent < least * 20, "{spent:?} of 512 fields, {least:?} of one");
    costs.say("CONFIG SET zset-max-listpack-entries 4096");
    for number in 0..2_000 {
        costs.say(&format!("ZADD members {number} m{number}"));
    }
    assert_eq!(costs.say("OBJECT ENCODING members"), "$8 listpack");
    let (spent, drawn) = costs.time("ZRANDMEMBER members -20000");
    assert!(drawn.starts_with("*20000 "));
    assert!(counts(&drawn, (0..2_000).map(|number| format!("m{number}"))).all(|count| count < 50));
    assert!(spent < least * 20, "{spent:?} of 2,000 members, {least:?} of one field");
}

#[test]
fn fields_are_drawn_beside_many_that_have_expired() {
    let mut costs = Costs::new();
    costs.say("HSET one f v");
    let (least, _) = costs.time("HRANDFIELD one -20000");
    for number in 0..4_000 {
        costs.say(&format!("HSET passing f{number} v"));
    }
    costs.say("HSET passing left v too v");
    for number in 0..4_000 {
        costs.say(&format!("HPEXPIRE passing 5 FIELDS 1 f{number}"));
    }
    costs.now.0 += 6;
    let (spent, drawn) = costs.time("HRANDFIELD passing -20000");
    let (left, too) = (drawn.matches("left").count(), drawn.matches("too").count());
    assert!(left + too == 20_000 && left.abs_diff(too) < 2_000, "{left} {too}");
    assert!(spent < least * 20, "{spent:?} beside expired fields, {least:?} of one");
}

#[test]
fn entries_are_trimmed_with_their_references_in_one_walk() {
    let measure = |_| {
        let mut costs = Costs::new();
        costs.say("CONFIG SET stream-node-max-entries 0");
        costs.say("CONFIG SET stream-node-max-bytes 0");
        costs.say("XGROUP CREATE log readers 0 MKSTREAM");
        let begun = Instant::now();
        for number in 1..=20_000 {
            costs.say(&format!("XADD log {number}-1 f v"));
        }
        let filled = begun.elapsed();
        costs.say("XREADGROUP GROUP readers r COUNT 10 STREAMS log >");
        let begun = Instant::now();
        assert_eq!(costs.say("XTRIM log MAXLEN 1 DELREF"), ":19999");
        let spent = begun.elapsed();
        assert_eq!(costs.say("XPENDING log readers"), "*4 :0 $-1 $-1 *-1");
        assert_eq!(costs.say("XRANGE log - +"), "*1 *2 $7 20000-1 *2 $1 f $1 v");
        (spent, filled)
    };
    let (spent, filled) = quickest((0..3).map(measure));
    assert!(spent < filled, "{spent:?} for trimming, {filled:?} for filling");
}

#[cfg(feature = "scripting")]
#[test]
fn a_long_script_is_called_by_its_name_as_fast_as_a_short_one() {
    let mut costs = Costs::new();
    let mut time = |script: &str| {
        let loaded = costs.say(&format!("SCRIPT LOAD {script}"));
        let hash = loaded.split(' ').next_back().expect("a hash").to_owned();
        let hundred = |_| {
            let begun = Instant::now();
            for _ in 0..100 {
                assert_eq!(costs.say(&format!("EVALSHA {hash} 0")), "$-1");
            }
            (begun.elapsed(), ())
        };
        quickest((0..5).map(hundred)).0
    };
    let short = time("local\tx='';");
    let long = time(&format!("local\tx='{}';", "y".repeat(8_000_000)));
    assert!(long < short * 5, "{long:?} for a script of 8 MB, {short:?} for one of five bytes");
}
