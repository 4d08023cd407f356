//! What the wire format costs: nanoseconds, or instructions where nanoseconds are too noisy.
//!
//! `cargo bench -p respool-wire` times every case. For instructions, run one case a given number of times under callgrind, and
//! divide the difference between two numbers of times:
//!
//! ```text
//! valgrind --tool=callgrind --callgrind-out-file=/dev/null target/release/deps/wire-* count request_get 1000000
//! ```

use std::hint::black_box;

use respool_wire::{
    Encoder, Protocol, ReplyKind, ReplyLimits, ReplyScanner, RequestDecoder, RequestLimits, Scan, Step, Value,
    elements, encode_request, part, to_resp2,
};

const GET: &[u8] = b"*2\r\n$3\r\nGET\r\n$16\r\n0123456789abcdef\r\n";
const SET: &[u8] = b"*3\r\n$3\r\nSET\r\n$16\r\n0123456789abcdef\r\n$3\r\nxxx\r\n";

/// A case: set up once, then run this often.
type Case = (&'static str, fn(usize));

const CASES: &[Case] = &[
    ("request_get", |times| requests(GET, times)),
    ("request_set", |times| requests(SET, times)),
    ("request_mset_10", |times| requests(&mset(), times)),
    ("request_inline", |times| requests(b"SET key:000000000001 xxx\r\n", times)),
    ("request_bulk_10k", |times| requests(&request(&[b"SET", b"k", &[b'v'; 10_000]]), times)),
    ("reply_bulk", |times| replies(b"$3\r\nxxx\r\n", times)),
    ("reply_ok", |times| replies(b"+OK\r\n", times)),
    ("reply_integer", |times| replies(b":1\r\n", times)),
    ("reply_integer_long", |times| replies(b":1234567890\r\n", times)),
    ("reply_error", |times| replies(b"-MOVED 3999 127.0.0.1:6381\r\n", times)),
    ("reply_bulk_1k", |times| replies(&reply_bulk(1_024), times)),
    ("reply_array_10", |times| replies(&reply_array(10), times)),
    ("reply_array_1000", |times| replies(&reply_array(1_000), times)),
    ("reply_5mb_whole", |times| chunked(5_000_000, times)),
    ("reply_5mb_in_2k", |times| chunked(2_048, times)),
    ("reply_array_5mb_whole", |times| chunked_array(usize::MAX, times)),
    ("reply_array_5mb_in_2k", |times| chunked_array(2_048, times)),
    ("request_5mb_in_2k", chunked_request),
    ("message", |times| messages(&message(), times)),
    ("message_elements", |times| {
        on(&message(), times, |reply| elements(reply).map(|all| all.filter_map(part).count()));
    }),
    ("elements_10", |times| on(&reply_array(10), times, |reply| elements(reply).map(Iterator::count))),
    ("value_array_10", |times| on(&reply_array(10), times, Value::parse)),
    ("to_resp2_array_10", |times| {
        let mut out = Vec::new();
        on(&reply_array(10), times, |reply| {
            out.clear();
            to_resp2(reply, &mut out)
        });
    }),
    ("encode_bulk", |times| encoded(times, |out| Encoder::new(out, Protocol::Resp2).bulk(black_box(b"xxx")))),
    ("encode_bulk_16", |times| encoded(times, |out| Encoder::new(out, Protocol::Resp2).bulk(black_box(&GET[..16])))),
    ("encode_integer", |times| encoded(times, |out| Encoder::new(out, Protocol::Resp2).integer(black_box(12_345)))),
    ("encode_double", |times| encoded(times, |out| Encoder::new(out, Protocol::Resp3).double(black_box(3.3)))),
    ("encode_request_get", |times| {
        encoded(times, |out| encode_request(out, black_box([&b"GET"[..], b"0123456789abcdef"]).into_iter()));
    }),
];

fn on<T>(reply: &[u8], times: usize, mut run: impl FnMut(&[u8]) -> T) {
    for _ in 0..times {
        black_box(run(black_box(reply)));
    }
}

/// Decodes one request again and again.
fn requests(input: &[u8], times: usize) {
    let limits = black_box(RequestLimits::default());
    let mut decoder = RequestDecoder::new();
    for _ in 0..times {
        match decoder.decode(black_box(input), &limits) {
            Ok(Step::Request(request)) => assert!(request.consumed == input.len() && !request.args.name().is_empty()),
            other => panic!("{other:?}"),
        }
    }
}

/// Scans one reply again and again.
fn replies(input: &[u8], times: usize) {
    let limits = black_box(ReplyLimits::default());
    let mut scanner = ReplyScanner::new();
    for _ in 0..times {
        match scanner.scan(black_box(input), &limits) {
            Ok(Scan::Complete { consumed, kind }) => assert!(consumed == input.len() && kind != ReplyKind::Push),
            other => panic!("{other:?}"),
        }
    }
}

/// Scans one push again and again. What stands behind it is there, as in a buffer with many.
fn messages(input: &[u8], times: usize) {
    let limits = black_box(ReplyLimits::default());
    let mut scanner = ReplyScanner::new();
    let two = [input, input].concat();
    for _ in 0..times {
        match scanner.scan(black_box(&two), &limits) {
            Ok(Scan::Complete { consumed, kind }) => assert!(consumed == input.len() && kind == ReplyKind::Push),
            other => panic!("{other:?}"),
        }
    }
}

/// Scans a string of 5 MB that comes in pieces.
fn chunked(size: usize, times: usize) {
    in_pieces(&reply_bulk(5_000_000), size, times);
}

/// Scans an array of 5 MB that comes in pieces.
fn chunked_array(size: usize, times: usize) {
    in_pieces(&reply_array(5_000_000 / 22), size, times);
}

fn in_pieces(reply: &[u8], size: usize, times: usize) {
    let limits = ReplyLimits::default();
    let mut scanner = ReplyScanner::new();
    for _ in 0..times {
        let mut last = Ok(Scan::Partial);
        for piece in reply.chunks(size) {
            last = scanner.scan(black_box(piece), &limits);
        }
        assert!(matches!(last, Ok(Scan::Complete { .. })));
    }
}

/// Decodes a request of 5 MB in many arguments, of which 2 KB more are there every time.
fn chunked_request(times: usize) {
    let words = vec![&b"0123456789abcdef"[..]; 5_000_000 / 22];
    let input = request(&words);
    let limits = RequestLimits::default();
    let mut decoder = RequestDecoder::new();
    for _ in 0..times {
        let mut requests = 0;
        for end in (0..input.len()).step_by(2_048).chain([input.len()]) {
            let step = decoder.decode(black_box(&input[..end]), &limits);
            requests += usize::from(matches!(step, Ok(Step::Request(_))));
        }
        assert_eq!(requests, 1);
    }
}

fn encoded(times: usize, mut write: impl FnMut(&mut Vec<u8>)) {
    let mut out = Vec::with_capacity(64 << 10);
    for _ in 0..times {
        if out.len() > 32 << 10 {
            out.clear();
        }
        write(&mut out);
    }
    black_box(out);
}

fn request(words: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    encode_request(&mut out, words.iter().copied());
    out
}

fn mset() -> Vec<u8> {
    let mut words = vec![&b"MSET"[..]];
    words.extend([&b"0123456789abcdef"[..], b"xxx"].repeat(10));
    request(&words)
}

/// A message of a channel.
fn message() -> Vec<u8> {
    let mut out = Vec::new();
    let mut encoder = Encoder::new(&mut out, Protocol::Resp3);
    encoder.push(3);
    [&b"message"[..], b"123456", &[b'x'; 64]].into_iter().for_each(|word| encoder.bulk(word));
    out
}

fn reply_bulk(bytes: usize) -> Vec<u8> {
    let mut out = Vec::new();
    Encoder::new(&mut out, Protocol::Resp2).bulk(&vec![b'x'; bytes]);
    out
}

fn reply_array(count: usize) -> Vec<u8> {
    let mut out = Vec::new();
    let mut encoder = Encoder::new(&mut out, Protocol::Resp2);
    encoder.array(count);
    for _ in 0..count {
        encoder.bulk(b"0123456789abcdef");
    }
    out
}

#[divan::bench(args = CASES.iter().map(|(name, _)| name))]
fn case(bencher: divan::Bencher, name: &str) {
    let run = find(name).expect("divan was given the names of this table");
    let batch = if name.contains("5mb") { 1 } else { 1_000 };
    bencher.counter(divan::counter::ItemsCount::new(batch)).bench_local(|| run(batch));
}

fn find(name: &str) -> Option<fn(usize)> {
    CASES.iter().find(|(known, _)| *known == name).map(|(_, run)| *run)
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["count", name, times] => {
            let run = find(name).unwrap_or_else(|| panic!("no case {name}"));
            run(times.parse().expect("a number of times"));
        }
        _ => divan::main(),
    }
}
