//! Eviction beside redis-server: a cache for a trace whose keys are used as unevenly as in life, with room for the same number of
//! keys in both stores. The engine must not miss more often.

use respool_command::{Execute, Millis, SessionView, resolve};
use respool_engine::{Engine, EngineConfig, EvictionPolicy};
use respool_testkit::Rng;
use respool_wire::{ArgsBuf, Encoder, Protocol};

use super::redis_with;
use super::subject::now;

/// Keys of the trace, and requests for them.
const KEYS: usize = 20_000;
const REQUESTS: usize = 60_000;
/// Requests that are sent together; those that miss are filled in behind them.
const BATCH: usize = 100;
/// Bytes of a value, and how many bytes the server has for keys.
const VALUE: usize = 200;
const ROOM: usize = 1_500_000;
/// By how much the hit rate may be lower, in hundredths: that of the server varies by about half of it.
const TOLERANCE: f64 = 1.0;

/// The numbers of keys in the order of their use: the key of rank `r` is used as often as `1 / r`.
fn trace() -> Vec<usize> {
    let mut sums: Vec<f64> = Vec::with_capacity(KEYS);
    for rank in 1..=KEYS {
        sums.push(sums.last().copied().unwrap_or(0.0) + 1.0 / rank as f64);
    }
    let (mut rng, total) = (Rng::new(42), sums[KEYS - 1]);
    let mut draw = || rng.below(1 << 30) as f64 / f64::from(1 << 30) * total;
    (0..REQUESTS)
        .map(|_| {
            {
                let drawn = draw();
                sums.partition_point(|sum| *sum < drawn)
            }
            .min(KEYS - 1)
        })
        .collect()
}

fn words(request: &str, key: usize) -> Vec<Vec<u8>> {
    let mut words = vec![request.as_bytes().to_vec(), format!("key:{key}").into_bytes()];
    if request == "SET" {
        words.push(vec![b'x'; VALUE]);
    }
    words
}

/// A store that answers requests for keys.
trait Cache {
    fn ask(&mut self, now: Millis, requests: &[Vec<Vec<u8>>]) -> Vec<Vec<u8>>;

    /// The share of the trace that is found, in hundredths. `time` gives the time of each batch: the server lives in its own, the
    /// engine in that of the server.
    fn hits(&mut self, trace: &[usize], mut time: impl FnMut(usize) -> Millis) -> f64 {
        let mut hits = 0;
        for (number, batch) in trace.chunks(BATCH).enumerate() {
            let now = time(number);
            let replies = self.ask(now, &batch.iter().map(|key| words("GET", *key)).collect::<Vec<_>>());
            let missed = batch.iter().zip(&replies).filter(|(_, reply)| *reply == b"$-1\r\n").map(|(key, _)| *key);
            let missed: Vec<_> = missed.map(|key| words("SET", key)).collect();
            hits += batch.len() - missed.len();
            assert!(self.ask(now, &missed).iter().all(|reply| reply == b"+OK\r\n"));
        }
        hits as f64 * 100.0 / trace.len() as f64
    }

    fn keys(&mut self) -> usize {
        let reply = self.ask(now(), &[vec![b"DBSIZE".to_vec()]]).remove(0);
        let digits = reply.strip_prefix(b":").and_then(|digits| digits.strip_suffix(b"\r\n")).expect("a number");
        String::from_utf8_lossy(digits).parse().expect("a number")
    }
}

impl Cache for respool_testkit::Client {
    fn ask(&mut self, _: Millis, requests: &[Vec<Vec<u8>>]) -> Vec<Vec<u8>> {
        let mut out = Vec::new();
        for request in requests {
            respool_wire::encode_request(&mut out, request.iter().map(Vec::as_slice).collect::<Vec<_>>().into_iter());
        }
        self.send(&out).expect("the server reads");
        self.replies(requests.len()).expect("the server answers")
    }
}

impl Cache for Engine {
    fn ask(&mut self, now: Millis, requests: &[Vec<Vec<u8>>]) -> Vec<Vec<u8>> {
        let mut session = SessionView { now, ..SessionView::default() };
        let mut one = |request: &Vec<Vec<u8>>| {
            let args: ArgsBuf = request.iter().collect();
            let row = resolve(args.as_args()).expect("it exists");
            let mut out = Vec::new();
            _ = self.execute(row, args.as_args(), &mut session, &mut Encoder::new(&mut out, Protocol::Resp2));
            out
        };
        requests.iter().map(&mut one).collect()
    }
}

#[test]
fn the_engine_finds_as_much_as_redis_in_the_same_room() {
    let trace = trace();
    for policy in [EvictionPolicy::AllkeysLru, EvictionPolicy::AllkeysLfu, EvictionPolicy::AllkeysRandom] {
        let name = EvictionPolicy::ALL.into_iter().find(|(other, _)| *other == policy).expect("it is one of them").1;
        let Some((_server, mut redis)) = redis_with(&["--maxmemory-policy", name]) else { return };
        let empty = redis.figure("memory", "used_memory").expect("it says so") as usize;
        redis.ask(&format!("CONFIG SET maxmemory {}", empty + ROOM)).expect("it takes that");
        let mut times = Vec::new();
        let expected = redis.hits(&trace, |_| {
            times.push(now());
            times[times.len() - 1]
        });
        let keys = redis.keys();
        // As many keys have room here.
        let engine = |memory_bytes_max| {
            Engine::new(EngineConfig { memory_bytes_max, eviction: policy, ..EngineConfig::default() }, [5, 6])
        };
        let mut full = engine(None);
        full.ask(now(), &(0..keys).map(|key| words("SET", key)).collect::<Vec<_>>());
        let mut room = full.used_bytes();
        let (hits, held) = loop {
            let mut engine = engine(Some(room as u64));
            let (hits, held) = (engine.hits(&trace, |batch| times[batch]), engine.keys());
            if held <= keys {
                break (hits, held);
            }
            room = room * keys / held - 1_000;
        };
        assert!(held * 100 > keys * 90, "{name}: {held} keys are kept where the server keeps {keys}");
        assert!(
            hits > expected - TOLERANCE,
            "{name}: {hits:.2} % are found, by the server {expected:.2} %, of {keys} keys"
        );
        eprintln!("{name}: {hits:.2} % with {held} keys, redis-server {expected:.2} % with {keys}");
    }
}
