//! What the request decoder makes of the bytes that clients send, well-formed and not: a table of inputs, each fed whole,
//! cut at every byte, and in pieces of every size. The lenient column was read from redis-server 7.0.15.

use respool_wire::{RequestDecoder, RequestError, RequestLimits, Step, Strictness};

/// What a decoder did with an input: requests as words, empty requests as `None`; and how it stood at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    requests: Vec<Option<Vec<Vec<u8>>>>,
    end: End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// All input was consumed.
    Idle,
    /// The rest of the input is the start of a request.
    Waits,
    Fails(RequestError),
}

/// Feeds `input` in the pieces that `cuts` gives (ends of pieces, ascending), as a connection would.
fn feed(input: &[u8], cuts: impl Iterator<Item = usize>, limits: &RequestLimits) -> Seen {
    let mut decoder = RequestDecoder::new();
    let mut requests = Vec::new();
    let mut start = 0;
    for end in cuts.chain([input.len()]) {
        loop {
            let held = &input[start..end];
            match decoder.decode(held, limits) {
                Ok(Step::Incomplete) => break,
                Ok(Step::Empty { consumed }) => {
                    requests.push(None);
                    start += consumed;
                }
                Ok(Step::Request(request)) => {
                    if let Some(raw) = request.raw {
                        let mut encoded = Vec::new();
                        respool_wire::encode_request(&mut encoded, request.args.iter());
                        assert_eq!(raw, encoded, "raw bytes are the canonical form");
                        assert_eq!(raw, &held[..request.consumed]);
                    }
                    requests.push(Some(request.args.iter().map(<[u8]>::to_vec).collect()));
                    start += request.consumed;
                }
                Err(error) => return Seen { requests, end: End::Fails(error) },
            }
        }
    }
    let end = if start == input.len() { End::Idle } else { End::Waits };
    assert_eq!(decoder.is_idle(), end == End::Idle);
    Seen { requests, end }
}

/// Feeds `input` in every way that this file knows and wants the same answer each time.
#[track_caller]
fn check(input: &[u8], limits: &RequestLimits, requests: &[Option<&[&[u8]]>], end: End) {
    let requests =
        requests.iter().map(|words| words.map(|words| words.iter().map(|word| word.to_vec()).collect())).collect();
    let expected = Seen { requests, end };
    let shown = input[..input.len().min(200)].escape_ascii();
    assert_eq!(feed(input, [].into_iter(), limits), expected, "{shown} whole");
    if input.len() > 1_000 {
        for size in [1, 7, 1_000, 16_384] {
            assert_eq!(feed(input, (0..input.len()).step_by(size), limits), expected, "{shown} in pieces of {size}");
        }
        return;
    }
    for cut in 0..input.len() {
        assert_eq!(feed(input, [cut].into_iter(), limits), expected, "{shown} cut at {cut}");
    }
    for size in 1..input.len() {
        assert_eq!(feed(input, (0..input.len()).step_by(size), limits), expected, "{shown} in pieces of {size}");
    }
}

const STRICT: RequestLimits = RequestLimits::authenticated(Strictness::Strict);
const LENIENT: RequestLimits = RequestLimits::authenticated(Strictness::Lenient);

/// The same answer in both modes.
#[track_caller]
fn both(input: &[u8], requests: &[Option<&[&[u8]]>], end: End) {
    check(input, &STRICT, requests, end);
    check(input, &LENIENT, requests, end);
}

#[test]
fn requests_are_cut_into_their_arguments() {
    both(b"*1\r\n$4\r\nPING\r\n", &[Some(&[b"PING"])], End::Idle);
    both(b"*2\r\n$3\r\nGET\r\n$16\r\n0123456789abcdef\r\n", &[Some(&[b"GET", b"0123456789abcdef"])], End::Idle);
    both(b"*3\r\n$3\r\nSET\r\n$0\r\n\r\n$4\r\n\r\n\0*\r\n", &[Some(&[b"SET", b"", b"\r\n\0*"])], End::Idle);
    both(b"*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nECHO\r\n", &[Some(&[b"PING"]), Some(&[b"ECHO"])], End::Idle);
    both(b"*1\r\n$1\r\nx\r\n*1\r\n$0\r\n\r\n", &[Some(&[b"x"]), Some(&[b""])], End::Idle);
    both(b"*2\r\n$4\r\nPING\r\n", &[], End::Waits);
    both(b"", &[], End::Idle);
}

#[test]
fn long_requests_are_cut_as_short_ones() {
    for (count, length) in [(7, 3), (8, 3), (9, 3), (100, 9), (101, 10), (1, 99), (2, 100), (3, 123_456)] {
        let word = vec![b'w'; length];
        let words = vec![word.as_slice(); count];
        let mut input = Vec::new();
        respool_wire::encode_request(&mut input, words.iter().copied());
        respool_wire::encode_request(&mut input, words.iter().copied());
        both(&input, &[Some(&words), Some(&words)], End::Idle);
    }
}
