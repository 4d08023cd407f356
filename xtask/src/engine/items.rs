//! Bytes that are resident per item: each kind of item fills fresh servers.

use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use respool_testkit::{Client, RedisServer, proc_stats, request};

use super::{Options, Pair, Row};

/// Requests that are under way at once.
const BATCH: usize = 500;
/// Items that come and go before the memory is looked at.
const WARM_UP: usize = 1_000;
/// Both servers free and count memory behind their replies.
const REPLY_LIMIT: Duration = Duration::from_secs(60);
/// What is occupied has settled when it has stayed the same for so long: longer than the embedded server's allocator keeps what is free.
const SETTLED_AFTER: Duration = Duration::from_secs(4);
/// It is what it is then, though it still changes: redis-server gives back over ten seconds.
const SETTLE_LIMIT: Duration = Duration::from_secs(15);

/// One kind of item.
struct Kind {
    name: &'static str,
    items: usize,
    /// The request that adds an item.
    request: fn(usize) -> Vec<u8>,
    /// What the embedded server may take at most; otherwise as much as redis-server.
    bytes_max: Option<f64>,
}

const MILLION: usize = 1_000_000;

const KINDS: [Kind; 8] = [
    Kind {
        name: "string, key of 11, value of 8",
        items: MILLION,
        request: |n| request(&["SET", &name(n), &value(n)]),
        bytes_max: Some(42.0),
    },
    Kind {
        name: "the same with a TTL",
        items: MILLION,
        request: |n| request(&["SET", &name(n), &value(n), "EX", &(10_000 + n % 1_000).to_string()]),
        bytes_max: Some(60.0),
    },
    Kind {
        name: "field of a hash",
        items: MILLION,
        request: |n| request(&["HSET", "h", &name(n), &value(n)]),
        bytes_max: Some(35.0),
    },
    Kind {
        name: "member of a sorted set",
        items: MILLION,
        request: |n| request(&["ZADD", "z", &scattered(n).to_string(), &name(n)]),
        bytes_max: Some(50.0),
    },
    Kind {
        name: "member of a set",
        items: MILLION,
        request: |n| request(&["SADD", "s", &name(n)]),
        bytes_max: Some(26.0),
    },
    Kind {
        name: "element of a list",
        items: MILLION,
        request: |n| request(&["RPUSH", "l", &name(n)]),
        bytes_max: None,
    },
    Kind {
        name: "entry of a stream, five fields",
        items: MILLION,
        request: |n| {
            let sensor = n.to_string();
            request(&[
                "XADD",
                "x",
                "*",
                "sensor",
                &sensor,
                "state",
                "ok",
                "at",
                "1700000000",
                "room",
                "kitchen",
                "unit",
                "C",
            ])
        },
        bytes_max: None,
    },
    Kind {
        name: "small hash of ten fields",
        items: MILLION / 10,
        request: |n| {
            let mut words = vec!["HSET".to_owned(), name(n)];
            words.extend((0..10).flat_map(|field| [format!("f{field}"), "value".to_owned()]));
            request(&words)
        },
        bytes_max: None,
    },
];

/// Eleven bytes.
fn name(number: usize) -> String {
    format!("key:{number:07}")
}

/// Eight bytes that are no number.
fn value(number: usize) -> String {
    format!("v{number:07}")
}

/// Every number below a million once, in no order.
fn scattered(number: usize) -> usize {
    number * 7_919 % MILLION
}

pub(super) fn measure(options: &Options, respool: &Path, add: &mut dyn FnMut(Row)) -> io::Result<()> {
    for kind in KINDS.iter().filter(|kind| options.matches(kind.name)) {
        let pair = Pair::start(respool)?;
        let before = [fill_up(&pair.redis, kind)?, fill_up(&pair.embedded, kind)?];
        let [redis, embedded] = [(&pair.redis, before[0]), (&pair.embedded, before[1])]
            .map(|(server, before)| bytes_each(server, before, kind.items));
        let (redis, embedded) = (redis?, embedded?);
        let ratio_max = kind.bytes_max.map_or(1.0, |bytes| bytes / redis);
        add(Row { name: kind.name.into(), unit: "bytes", redis, embedded, ratio_max });
    }
    Ok(())
}

/// Makes all items of a kind, and says what the process occupied before.
fn fill_up(server: &RedisServer, kind: &Kind) -> io::Result<u64> {
    let mut client = Client::connect(&server.tcp())?;
    client.set_timeout(REPLY_LIMIT)?;
    // What the first requests make the process set up is not the cost of an item, nor is the code that they run for the first time.
    fill(&mut client, 0..WARM_UP, kind.request)?;
    client.command(&["FLUSHALL"])?;
    let before = proc_stats::resident_bytes(server.pid())?;
    fill(&mut client, 0..kind.items, kind.request)?;
    Ok(before)
}

fn bytes_each(server: &RedisServer, before: u64, items: usize) -> io::Result<f64> {
    let after = settled_bytes(server)?;
    Ok(after.saturating_sub(before) as f64 / items as f64)
}

/// What a process occupies once its allocator has given back what was freed: whether that was before or after the last request is a
/// matter of chance, and a tenth of the bytes of an item.
fn settled_bytes(server: &RedisServer) -> io::Result<u64> {
    let begin = Instant::now();
    let (mut bytes, mut since) = (proc_stats::resident_bytes(server.pid())?, begin);
    while since.elapsed() < SETTLED_AFTER && begin.elapsed() < SETTLE_LIMIT {
        thread::sleep(Duration::from_millis(100));
        let now = proc_stats::resident_bytes(server.pid())?;
        if now != bytes {
            (bytes, since) = (now, Instant::now());
        }
    }
    Ok(bytes)
}

/// Sends the requests for these numbers; none may fail.
pub(super) fn fill(
    client: &mut Client,
    numbers: std::ops::Range<usize>,
    request: impl Fn(usize) -> Vec<u8>,
) -> io::Result<()> {
    let mut first = numbers.start;
    while first < numbers.end {
        let batch = first..numbers.end.min(first + BATCH);
        client.send(&batch.clone().flat_map(&request).collect::<Vec<u8>>())?;
        for reply in client.replies(batch.len())? {
            if reply.starts_with(b"-") {
                return Err(io::Error::other(String::from_utf8_lossy(&reply).into_owned()));
            }
        }
        first = batch.end;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_as_long_as_they_say() {
        for number in [0, 999_999] {
            assert_eq!((name(number).len(), value(number).len()), (11, 8));
        }
        let mut all: Vec<usize> = (0..MILLION).map(scattered).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), MILLION);
    }
}
