//! Eviction seen from without: which keys go, how many, when a request is refused, and what a client is told.

use respool_command::{Change, EventClasses, Execute, Flags, Millis, SessionView, Wanted, resolve};
use respool_engine::{Engine, EngineConfig, EvictionPolicy};
use respool_wire::{ArgsBuf, Encoder, Protocol};

const OOM: &str = "-OOM command not allowed when used memory > 'maxmemory'.\r\n";

/// An engine and a session of it.
struct Cache {
    engine: Engine,
    session: SessionView,
    max: u64,
}

impl Cache {
    fn new(eviction: EvictionPolicy, max: u64) -> Self {
        let config = EngineConfig { memory_bytes_max: Some(max), eviction, ..EngineConfig::default() };
        let session = SessionView { now: Millis(1_700_000_000_000), client_id: 1, ..SessionView::default() };
        Self { engine: Engine::new(config, [1, 2]), session, max }
    }

    fn send(&mut self, words: &[&[u8]]) -> String {
        let args: ArgsBuf = words.iter().collect();
        let row = resolve(args.as_args()).expect("it exists");
        let mut out = Vec::new();
        _ = self.engine.execute(row, args.as_args(), &mut self.session, &mut Encoder::new(&mut out, Protocol::Resp2));
        String::from_utf8_lossy(&out).into_owned()
    }

    fn say(&mut self, line: &str) -> String {
        self.send(&line.split(' ').map(str::as_bytes).collect::<Vec<_>>())
    }

    fn set(&mut self, key: &str, bytes: usize) -> String {
        self.send(&[b"SET", key.as_bytes(), &vec![b'x'; bytes]])
    }

    /// A transaction of requests, as its caller runs it; `None` if there is no room for it.
    fn exec(&mut self, lines: &[String]) -> Option<Vec<String>> {
        let adds = |line: &String| {
            let args: ArgsBuf = line.split(' ').collect();
            resolve(args.as_args()).is_ok_and(|row| row.flags.has(Flags::DENYOOM))
        };
        if !self.engine.make_room(self.session.now) && lines.iter().any(adds) {
            return None;
        }
        self.session.is_in_transaction = true;
        let replies = lines.iter().map(|line| self.say(line)).collect();
        self.session.is_in_transaction = false;
        Some(replies)
    }

    /// Lets time pass until the engine has done what it does at its own pace.
    fn rest(&mut self) {
        let now = self.session.now;
        let mut turns = 0;
        while self.engine.tick(now) <= Some(Millis(now.0 + 1)) {
            turns += 1;
            assert!(turns < 10_000, "the engine comes to rest");
        }
    }

    fn keys(&self) -> usize {
        (0..self.engine.databases()).map(|database| self.engine.keyspace_size(database).keys).sum()
    }

    fn evicted(&self) -> u64 {
        self.engine.counters().evicted_keys
    }

    fn exists(&mut self, keys: impl Iterator<Item = String>) -> usize {
        keys.filter(|key| self.say(&format!("EXISTS {key}")) == ":1\r\n").count()
    }

    fn check(&self) {
        #[cfg(debug_assertions)]
        assert_eq!(self.engine.used_bytes(), self.engine.walked_bytes());
    }

    fn is_within(&self) -> bool {
        self.engine.used_bytes() as u64 <= self.max
    }
}

/// Sets 8,000 keys of 100 bytes, the first 2,000 with deadlines, the nearest first; how many of both are left, and the errors.
fn fill(cache: &mut Cache) -> (usize, usize, Vec<String>) {
    let value = "x".repeat(100);
    let mut errors = Vec::new();
    for number in 0..8_000 {
        cache.session.now.0 += 100;
        let deadline = if number < 2_000 { format!(" PX {}", 10_000_000 + number * 1_000) } else { String::new() };
        let reply = cache.say(&format!("SET key:{number} {value}{deadline}"));
        errors.extend(Some(reply).filter(|reply| reply != "+OK\r\n"));
    }
    let volatile = cache.exists((0..2_000).map(|number| format!("key:{number}")));
    let others = cache.exists((2_000..8_000).map(|number| format!("key:{number}")));
    (volatile, others, errors)
}

#[test]
fn each_policy_removes_the_keys_it_names() {
    for (policy, name) in EvictionPolicy::ALL {
        let mut cache = Cache::new(policy, 400_000);
        let (volatile, others, errors) = fill(&mut cache);
        assert!(volatile + others > 1_500, "{name}: {volatile} and {others} keys are left");
        match policy {
            EvictionPolicy::NoEviction => assert_eq!((volatile, cache.evicted()), (2_000, 0)),
            EvictionPolicy::AllkeysLru => assert!(volatile < 20, "{volatile} of the oldest are left"),
            _ if name.starts_with("volatile") => assert_eq!(volatile, 0, "{name}"),
            _ => {}
        }
        // Keys without a deadline stay, so that there is no room in the end.
        let may_refuse = name.starts_with("volatile") || policy == EvictionPolicy::NoEviction;
        assert_eq!(errors.is_empty(), !may_refuse, "{name}: {errors:?}");
        assert!(errors.iter().all(|error| error == OOM));
        cache.check();
    }
}

#[test]
fn the_nearest_deadline_goes_first() {
    let mut cache = Cache::new(EvictionPolicy::VolatileTtl, 400_000);
    let value = "x".repeat(100);
    for number in 0..4_000 {
        // The later a key is set, the sooner it expires.
        cache.say(&format!("SET key:{number} {value} PX {}", 100_000_000 - number * 10_000));
    }
    let left = cache.exists((0..1_000).map(|number| format!("key:{number}")));
    assert!(left > 990, "{left} of the keys that expire last are left");
}

#[test]
fn keys_in_use_stay() {
    for policy in [EvictionPolicy::AllkeysLru, EvictionPolicy::AllkeysLfu] {
        let mut cache = Cache::new(policy, 400_000);
        for number in 0..20_000 {
            cache.session.now.0 += 10;
            cache.set(&format!("key:{number}"), 100);
            // Written keys are as much in use as those that are read.
            if number % 200 < 100 {
                cache.say(&format!("GET hot:{}", number % 100));
            } else {
                cache.set(&format!("hot:{}", number % 100), 100);
            }
        }
        let left = cache.exists((0..100).map(|number| format!("hot:{number}")));
        assert!(left >= 99, "{policy:?}: {left} of 100 keys that are used are left");
    }
}

#[test]
fn frequencies_rise_with_use_and_fall_with_time() {
    let mut cache = Cache::new(EvictionPolicy::AllkeysLfu, 1 << 30);
    cache.say("SET k 1");
    assert_eq!(cache.say("OBJECT FREQ k"), ":5\r\n");
    for _ in 0..1_000 {
        cache.say("GET k");
    }
    let frequency = |cache: &mut Cache| cache.say("OBJECT FREQ k")[1..].trim().parse::<u32>().expect("a number");
    let risen = frequency(&mut cache);
    assert!((12..30).contains(&risen), "{risen}");
    cache.say("SET k 2");
    assert!(frequency(&mut cache) >= risen, "another value leaves the frequency");
    cache.say("RENAME k other");
    cache.say("RENAME other k");
    let risen = frequency(&mut cache);
    assert!(risen >= 12, "{risen}");
    cache.session.now.0 += 7 * 60_000;
    assert_eq!(frequency(&mut cache), risen - 7);
    cache.session.now.0 += 600 * 60_000;
    assert_eq!(frequency(&mut cache), 0);
    assert!(cache.say("OBJECT IDLETIME k").starts_with("-ERR An LFU maxmemory policy is selected"));
}

#[test]
fn one_large_value_among_small_ones_makes_room_bit_by_bit() {
    let mut cache = Cache::new(EvictionPolicy::AllkeysLru, 12_000_000);
    for number in 0..100_000 {
        cache.set(&format!("key:{number}"), 50);
    }
    let before = cache.evicted();
    cache.session.now.0 += 60_000;
    // It is taken: there is room when it comes.
    assert_eq!(cache.set("large", 10_000_000), "+OK\r\n");
    let mut most = 0;
    while !cache.is_within() {
        let evicted = cache.evicted();
        assert_eq!(cache.set("one", 1), "+OK\r\n");
        most = most.max(cache.evicted() - evicted);
        cache.check();
    }
    assert!(most <= 600, "one request has evicted {most} keys");
    assert!(cache.evicted() > before + 50_000);
    assert_eq!(cache.exists(["large".to_owned()].into_iter()), 1, "it is the one that was used last");
}

#[test]
fn what_requests_add_is_bounded_though_their_slices_are_short() {
    let max = 20_000_000;
    let mut cache = Cache::new(EvictionPolicy::AllkeysLru, max);
    for number in 0..250_000 {
        cache.set(&format!("key:{number}"), 20);
    }
    cache.session.now.0 += 60_000;
    let mut peak = 0;
    for number in 0..30 {
        cache.session.now.0 += 1_000;
        assert_eq!(cache.set(&format!("large:{number}"), 5_000_000), "+OK\r\n");
        peak = peak.max(cache.engine.used_bytes());
    }
    // Each adds as much as a slice frees many times over.
    assert!(peak as u64 <= max + 3 * 5_100_000, "{peak}");
    cache.rest();
    assert!(cache.is_within());
    cache.check();
}

#[test]
fn a_limit_below_one_value_evicts_it_and_goes_on() {
    let mut cache = Cache::new(EvictionPolicy::AllkeysRandom, 1_000_000);
    for number in 0..50 {
        assert_eq!(cache.set(&format!("key:{number}"), 2_000_000), "+OK\r\n");
        assert_eq!(cache.keys(), 1);
    }
    assert_eq!(cache.evicted(), 49);
    cache.rest();
    assert_eq!(cache.keys(), 0, "time makes room as requests do");
}

#[test]
fn a_huge_deleted_value_counts_as_on_its_way() {
    for policy in [EvictionPolicy::NoEviction, EvictionPolicy::AllkeysLru] {
        let mut cache = Cache::new(policy, 8_000_000);
        for start in (0..150_000).step_by(1_000) {
            let members: Vec<String> = (start..start + 1_000).map(|member| format!("member:{member}")).collect();
            cache.say(&format!("SADD huge {}", members.join(" ")));
        }
        let mut kept = 0;
        while cache.evicted() == 0 && cache.set(&format!("key:{kept}"), 1_000) == "+OK\r\n" {
            kept += 1;
            if policy != EvictionPolicy::NoEviction && cache.engine.used_bytes() > 7_900_000 {
                break;
            }
        }
        let before = cache.engine.used_bytes();
        assert_eq!(cache.say("DEL huge"), ":1\r\n");
        assert!(cache.engine.used_bytes() > before - 200_000, "it is freed little by little");
        for number in 0..1_000 {
            assert_eq!(cache.set(&format!("new:{number}"), 1_000), "+OK\r\n", "{policy:?}: {number}");
        }
        assert_eq!(cache.evicted(), 0, "{policy:?}: nothing is evicted while there is something to free");
        assert_eq!(cache.exists((0..kept).map(|number| format!("key:{number}"))), kept);
        cache.check();
    }
}

#[test]
fn a_huge_evicted_value_is_freed_in_slices() {
    let mut cache = Cache::new(EvictionPolicy::VolatileLru, 8_000_000);
    for start in (0..150_000).step_by(1_000) {
        let members: Vec<String> = (start..start + 1_000).map(|member| format!("member:{member}")).collect();
        cache.say(&format!("SADD huge {}", members.join(" ")));
    }
    cache.say("PEXPIRE huge 1000000");
    let (mut freed_at_once, mut number) = (0, 0);
    while cache.evicted() == 0 || !cache.is_within() {
        let before = cache.engine.used_bytes();
        // No other key may go, so that none is refused means that what is on its way counts.
        assert_eq!(cache.set(&format!("key:{number}"), 1_000), "+OK\r\n");
        freed_at_once = freed_at_once.max(before.saturating_sub(cache.engine.used_bytes()));
        number += 1;
    }
    assert_eq!(cache.evicted(), 1);
    assert!(freed_at_once < 400_000, "{freed_at_once}");
    cache.check();
}

#[test]
fn a_transaction_has_room_before_it_begins_and_is_not_cut() {
    let mut cache = Cache::new(EvictionPolicy::AllkeysLru, 2_000_000);
    for number in 0..20_000 {
        cache.set(&format!("key:{number}"), 100);
    }
    let before = cache.evicted();
    let block: Vec<String> = (0..100_000).map(|number| format!("SET block:{number} value")).collect();
    let replies = cache.exec(&block).expect("there is room");
    assert!(replies.iter().all(|reply| reply == "+OK\r\n"));
    assert!(cache.evicted() - before <= 1, "nothing is evicted within");
    assert_eq!(cache.exists((0..100_000).map(|number| format!("block:{number}"))), 100_000);
    // What follows makes room again.
    cache.rest();
    assert!(cache.is_within());
    assert_eq!(cache.set("next", 1), "+OK\r\n");
    cache.check();
}

#[test]
fn a_transaction_without_room_does_not_begin() {
    let mut cache = Cache::new(EvictionPolicy::VolatileLru, 1_000_000);
    while cache.set(&format!("key:{}", cache.keys()), 1_000) == "+OK\r\n" {}
    let before = cache.keys();
    assert!(cache.exec(&["SET a 1".to_owned(), "SET b 2".to_owned()]).is_none());
    assert_eq!(cache.exec(&["DEL key:0".to_owned(), "GET key:1".to_owned()]).map(|replies| replies.len()), Some(2));
    assert_eq!(cache.keys(), before - 1);
}

#[test]
fn keys_of_all_databases_go() {
    for policy in [EvictionPolicy::AllkeysLru, EvictionPolicy::AllkeysLfu, EvictionPolicy::AllkeysRandom] {
        let mut cache = Cache::new(policy, 1_000_000);
        for number in 0..20_000 {
            cache.session.now.0 += 10;
            cache.session.database = number % 16;
            assert_eq!(cache.set(&format!("key:{number}"), 100), "+OK\r\n");
        }
        let sizes: Vec<usize> = (0..16).map(|database| cache.engine.keyspace_size(database).keys).collect();
        let (least, most) = (sizes.iter().min().copied(), sizes.iter().max().copied());
        assert!(least > Some(200) && most < Some(900), "{policy:?}: {sizes:?}");
        cache.check();
    }
}

#[test]
fn the_policy_may_change_while_the_engine_runs() {
    let mut cache = Cache::new(EvictionPolicy::NoEviction, 500_000);
    while cache.set(&format!("key:{}", cache.keys()), 100) == "+OK\r\n" {}
    for (policy, name) in EvictionPolicy::ALL.into_iter().cycle().take(32) {
        cache.engine.set_eviction(policy, 5);
        cache.session.now.0 += 1_000;
        let is_refused = name.starts_with("volatile") || name == "noeviction";
        let replies: Vec<String> = (0..50).map(|number| cache.set(&format!("{name}:{number}"), 100)).collect();
        let refused = replies.iter().filter(|reply| *reply == OOM).count();
        assert!(if is_refused { refused > 40 } else { refused == 0 }, "{name}: {refused} of 50 are refused");
        cache.check();
    }
}

#[test]
fn watched_and_tracked_keys_that_are_evicted_have_changed() {
    let mut cache = Cache::new(EvictionPolicy::AllkeysLru, 500_000);
    cache.say("SET watched 1");
    const WANTED: Wanted = Wanted { keys: true, events: EventClasses::EVICTED };
    cache.engine.changes(WANTED, &mut |_| ());
    let watched: ArgsBuf = ["watched"].into_iter().collect();
    cache.engine.watch(7, 0, cache.session.now, watched.as_args());
    cache.session.now.0 += 10_000;
    let (mut number, mut told, mut events) = (0, Vec::new(), Vec::new());
    while !told.contains(&b"watched".to_vec()) {
        assert!(number < 100_000, "it is the one that was not used for the longest time");
        cache.set(&format!("key:{number}"), 100);
        number += 1;
        cache.session.now.0 += 10;
        let mut changed = Vec::new();
        cache.engine.changes(WANTED, &mut |change| match change {
            Change::Lost(key) => told.push(key.to_vec()),
            Change::Key(key) => changed.push(key.to_vec()),
            Change::Event { event, .. } => events.push(event),
            Change::Everything => panic!("keys are told one by one"),
        });
        assert_eq!(changed, [format!("key:{}", number - 1).into_bytes()], "the client's own change alone");
    }
    assert_eq!(told.len() as u64, cache.evicted());
    assert!(events.len() == told.len() && events.iter().all(|event| *event == "evicted"));
    assert!(cache.engine.is_dirty(7, cache.session.now));
}

#[test]
fn a_key_that_a_request_finds_expired_is_not_its_change() {
    let mut cache = Cache::new(EvictionPolicy::NoEviction, 500_000);
    cache.say("SET soon 1 PX 10");
    cache.engine.changes(Wanted { keys: true, events: EventClasses::EXPIRED }, &mut |_| ());
    cache.session.now.0 += 20;
    cache.say("GET soon");
    let mut told = Vec::new();
    cache.engine.changes(Wanted::default(), &mut |change| told.push(format!("{change:?}")));
    let event = Change::Event { database: 0, key: b"soon", event: "expired" };
    assert_eq!(told, [format!("{:?}", Change::Lost(b"soon")), format!("{event:?}")]);
}

#[test]
fn many_large_values_that_expire_at_once_are_freed_in_turns() {
    let mut cache = Cache::new(EvictionPolicy::NoEviction, 1 << 30);
    for set in 0..200 {
        let members: Vec<String> = (0..1_000).map(|member| format!("member:{member}")).collect();
        cache.say(&format!("SADD set:{set} {}", members.join(" ")));
        cache.say(&format!("PEXPIRE set:{set} 1000"));
    }
    cache.session.now.0 += 5_000;
    let before = cache.engine.used_bytes();
    _ = cache.engine.tick(cache.session.now);
    let freed = before - cache.engine.used_bytes();
    assert!(freed > 0 && freed < 40 * 32 * 1_024, "{freed} bytes in one turn");
    cache.rest();
    // The list of deadlines keeps some places.
    assert!(cache.engine.used_bytes() < 10_000, "{}", cache.engine.used_bytes());
    cache.check();
}

#[cfg(feature = "scripting")]
mod scripts {
    use super::*;

    fn eval(cache: &mut Cache, script: &str) -> String {
        cache.send(&[b"EVAL", script.as_bytes(), b"0"])
    }

    #[test]
    fn a_script_that_writes_much_is_not_cut() {
        let mut cache = Cache::new(EvictionPolicy::AllkeysLru, 4_000_000);
        for number in 0..40_000 {
            cache.set(&format!("key:{number}"), 100);
        }
        let before = cache.evicted();
        let script = "for i = 1, 100000 do redis.call('SET', 'script:' .. i, 'v') end return redis.call('DBSIZE')";
        let reply = eval(&mut cache, script);
        let size: usize = reply[1..].trim().parse().expect("a number");
        assert!(size > 100_000, "{reply}");
        assert!(cache.evicted() - before <= 20_000, "room is made before it begins");
        assert_eq!(cache.exists((1..=100_000).map(|number| format!("script:{number}"))), 100_000);
        cache.rest();
        cache.check();
    }

    #[test]
    fn a_script_without_room_is_refused_its_first_write() {
        let mut cache = Cache::new(EvictionPolicy::VolatileTtl, 2_000_000);
        while cache.set(&format!("key:{}", cache.keys()), 1_000) == "+OK\r\n" {}
        let before = cache.keys();
        assert!(eval(&mut cache, "return redis.call('SET', 'a', '1')").starts_with("-OOM "));
        assert_eq!(eval(&mut cache, "return redis.call('GET', 'nothing')"), "$-1\r\n");
        // One that has written ends what it has begun.
        let script = "redis.call('DEL', 'key:0') redis.call('SET', 'a', '1') return redis.call('SET', 'b', '2')";
        assert_eq!(eval(&mut cache, script), "+OK\r\n");
        assert_eq!(cache.keys(), before + 1);
    }

    #[test]
    fn what_scripts_hold_does_not_evict_everything() {
        let max = 4_000_000;
        let mut cache = Cache::new(EvictionPolicy::AllkeysLru, max);
        for number in 0..20_000 {
            cache.set(&format!("key:{number}"), 100);
        }
        for number in 0..200 {
            eval(&mut cache, &format!("return {number} --{}", "x".repeat(30_000)));
        }
        for number in 0..20_000 {
            assert_eq!(cache.set(&format!("key:{number}"), 100), "+OK\r\n");
        }
        let used = cache.engine.used_bytes() as u64;
        assert!((max / 2 - 10_000..=max).contains(&used), "{used} of {max} bytes");
        assert_eq!(eval(&mut cache, "return redis.call('SET', 'a', '1')"), "+OK\r\n");
    }
}
