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

#[test]
fn requests_for_nothing_get_no_reply() {
    for empty in ["*0\r\n", "*-1\r\n", "*-5\r\n", "*-9223372036854775808\r\n", "\r\n", "\n", "  \t \r\n"] {
        both(empty.as_bytes(), &[None], End::Idle);
        let input = format!("{empty}*1\r\n$4\r\nPING\r\n{empty}{empty}PING\r\n");
        both(input.as_bytes(), &[None, Some(&[b"PING"]), None, None, Some(&[b"PING"])], End::Idle);
    }
}

#[test]
fn lengths_that_are_no_lengths_are_refused() {
    use RequestError::*;
    for head in
        ["*01", "* 1", "*+1", "*-0", "*1 ", "*a", "*", "*9223372036854775808", "*2147483648", "*99999999999999999999"]
    {
        both(format!("{head}\r\n").as_bytes(), &[], End::Fails(InvalidMultibulkLength));
    }
    for head in ["$-1", "$+4", "$04", "$ 4", "$4 ", "$", "$536870913", "$9223372036854775808", "$-9223372036854775808"]
    {
        both(format!("*1\r\n{head}\r\n").as_bytes(), &[], End::Fails(InvalidBulkLength));
    }
    both(b"*2\r\n$3\r\nGET\r\n$-1\r\n", &[], End::Fails(InvalidBulkLength));
    check(b"*1048577\r\n", &STRICT, &[], End::Fails(InvalidMultibulkLength));
    check(b"*1048576\r\n", &STRICT, &[], End::Waits);
    check(b"*1048577\r\n", &LENIENT, &[], End::Waits);
    check(b"*2147483647\r\n", &LENIENT, &[], End::Waits);
    both(b"*1\r\n$536870912\r\n", &[], End::Waits);
}

#[test]
fn only_bulk_strings_are_arguments() {
    for byte in [b':', b'*', b'+', b'P', b'\r', b'\n', 0xff] {
        let input = [b"*1\r\n", [byte].as_slice(), b"1\r\n"].concat();
        both(&input, &[], End::Fails(RequestError::ExpectedDollar(byte)));
    }
    both(b"*2\r\n$4\r\nECHO\r\n:1\r\n", &[], End::Fails(RequestError::ExpectedDollar(b':')));
}

#[test]
fn bytes_behind_an_argument_are_checked_in_strict_mode_alone() {
    use RequestError::UnterminatedBulk;
    let ping: Option<&[&[u8]]> = Some(&[b"PING"]);
    check(b"*1\r\n$4\r\nPINGxx*1\r\n$4\r\nPING\r\n", &LENIENT, &[ping, ping], End::Idle);
    for input in [
        "*1\r\n$4\r\nPINGxx",
        "*1\r\n$4\r\nPING\n\r",
        "*1\r\n$4\r\nPING\r\r",
        "*1\r\n$4\r\nPINGS\r\n",
        "*1\r\n$4\r\nPING\n*",
    ] {
        check(input.as_bytes(), &STRICT, &[], End::Fails(UnterminatedBulk));
    }
    check(b"*1\r\n$4\r\nPINGS\r\nPING\r\n", &LENIENT, &[ping, None, ping], End::Idle);
}

#[test]
fn heads_end_in_cr_lf_or_leniently_in_cr_and_any_byte() {
    use RequestError::*;
    let ping: Option<&[&[u8]]> = Some(&[b"PING"]);
    check(b"*1\rx$4\r.PING\r\n", &LENIENT, &[ping], End::Idle);
    check(b"*1\rx", &STRICT, &[], End::Fails(InvalidMultibulkLength));
    check(b"*1\r\n$4\rx", &STRICT, &[], End::Fails(InvalidBulkLength));
    check(b"*1\n$4\nPING\n", &STRICT, &[], End::Fails(InvalidMultibulkLength));
    check(b"*1\n$4\nPING\n", &LENIENT, &[], End::Waits);
    check(b"*1\n$4\nPING\r\n", &LENIENT, &[], End::Fails(InvalidMultibulkLength));
    check(b"*1\r\n$4\nPING\r\n", &LENIENT, &[], End::Fails(InvalidBulkLength));
}

#[test]
fn a_nul_stops_redis_reading_a_line() {
    use RequestError::*;
    check(b"\0PING\r\nPING\r\n", &STRICT, &[], End::Fails(NulInline));
    check(b"PING \0\r\n", &STRICT, &[], End::Fails(NulInline));
    check(b"*\x001\r\n$4\r\nPING\r\n", &STRICT, &[], End::Fails(InvalidMultibulkLength));
    for input in ["\0PING\r\nPING\r\n", "PING \0\r\nPING\r\n", "*\x001\r\n$4\r\nPING\r\n", "*1\r\n$\x004\r\nPING\r\n"] {
        check(input.as_bytes(), &LENIENT, &[], End::Waits);
    }
    let flood = |head: &str| format!("{head}{}", "x\r\n".repeat(30_000)).into_bytes();
    check(&flood("\0"), &LENIENT, &[], End::Fails(TooBigInline));
    check(&flood("*\0"), &LENIENT, &[], End::Fails(TooBigMultibulkCount));
    check(&flood("*1\r\n$\0"), &LENIENT, &[], End::Fails(TooBigBulkCount));
    both(b"*2\r\n$4\r\nECHO\r\n$3\r\n\0\0\0\r\n", &[Some(&[b"ECHO", b"\0\0\0"])], End::Idle);
}

#[test]
fn lines_end_within_their_limit() {
    use RequestError::*;
    let longest = "x".repeat(65_536);
    both(longest.as_bytes(), &[], End::Waits);
    both(format!("{longest}\n").as_bytes(), &[Some(&[longest.as_bytes()])], End::Idle);
    both(format!("{longest}x\n").as_bytes(), &[], End::Fails(TooBigInline));
    both(&[b'x'; 70_000], &[], End::Fails(TooBigInline));
    check(&[b"*".as_slice(), &[b'1'; 70_000]].concat(), &LENIENT, &[], End::Fails(TooBigMultibulkCount));
    check(&[b"*1\r\n$".as_slice(), &[b'1'; 70_000]].concat(), &LENIENT, &[], End::Fails(TooBigBulkCount));
    check(&[b"*".as_slice(), &[b'1'; 70_000]].concat(), &STRICT, &[], End::Fails(InvalidMultibulkLength));
}

#[test]
fn inline_requests_are_split_as_redis_splits_them() {
    both(b"PING\nPING\n", &[Some(&[b"PING"]), Some(&[b"PING"])], End::Idle);
    both(b" SET  k \"a\\x00 b\" 'c d'\r\n", &[Some(&[b"SET", b"k", b"a\0 b", b"c d"])], End::Idle);
    both(b"ECHO \"\\x41\\x4\"\r\n", &[Some(&[b"ECHO", b"Ax4"])], End::Idle);
    both(b"x\r\n\"\"\r\n", &[Some(&[b"x"]), Some(&[b""])], End::Idle);
    both(b"a\rb\r\r\n", &[Some(&[b"a", b"b"])], End::Idle);
    both(b"$4\r\nPING\r\n", &[Some(&[b"$4"]), Some(&[b"PING"])], End::Idle);
    for line in ["SET a \"b\r\n", "SET a 'b\n", "SET \"a\"b\r\n", "\"\n"] {
        both(line.as_bytes(), &[], End::Fails(RequestError::UnbalancedQuotes));
    }
    let words = vec![&b"w"[..]; 5_000];
    both(&[words.join(&b' '), b"\r\n".to_vec()].concat(), &[Some(&words)], End::Idle);
}

#[test]
fn http_is_hung_up_on() {
    let ping: Option<&[&[u8]]> = Some(&[b"PING"]);
    let end = End::Fails(RequestError::CrossProtocol);
    both(b"POST / HTTP/1.1\r\nHost: x\r\n", &[], end);
    both(b"GET / HTTP/1.1\r\nHost: x\r\n\r\nPING\r\n", &[Some(&[b"GET", b"/", b"HTTP/1.1"])], end);
    both(b"PING\r\nhost: x\r\nPING\r\n", &[ping], end);
    both(b"*1\r\n$4\r\npOsT\r\n", &[], end);
    both(b"*2\r\n$5\r\nHOST:\r\n$1\r\nx\r\n", &[], end);
    both(b"*1\r\n$6\r\npost\0x\r\n", &[], end);
    both(b"*1\r\n$5\r\nPOSTX\r\n", &[Some(&[b"POSTX"])], End::Idle);
    both(b"HOST\r\n", &[Some(&[b"HOST"])], End::Idle);
}

#[test]
fn the_unauthenticated_may_send_little() {
    use RequestError::*;
    for strictness in [Strictness::Strict, Strictness::Lenient] {
        let limits = RequestLimits::unauthenticated(strictness);
        check(b"*11\r\n", &limits, &[], End::Fails(UnauthenticatedMultibulkLength));
        check(b"*10\r\n", &limits, &[], End::Waits);
        check(b"*2147483648\r\n", &limits, &[], End::Fails(InvalidMultibulkLength));
        check(b"*1\r\n$16385\r\n", &limits, &[], End::Fails(UnauthenticatedBulkLength));
        check(b"*1\r\n$16384\r\n", &limits, &[], End::Waits);
        check(b"*1\r\n$536870913\r\n", &limits, &[], End::Fails(InvalidBulkLength));
    }
}

#[test]
fn limits_can_be_set() {
    use RequestError::*;
    for strictness in [Strictness::Strict, Strictness::Lenient] {
        let defaults = RequestLimits::authenticated(strictness);
        let limits = RequestLimits {
            elements_max: 3,
            bulk_bytes_max: 5,
            inline_bytes_max: 7,
            request_bytes_max: 30,
            ..defaults
        };
        check(b"*4\r\n", &limits, &[], End::Fails(InvalidMultibulkLength));
        check(b"*1\r\n$6\r\n", &limits, &[], End::Fails(InvalidBulkLength));
        check(b"1234567\n12345678", &limits, &[Some(&[b"1234567"])], End::Fails(TooBigInline));
        // 4 + 9 + 9 + 8 bytes are allowed, 4 + 9 + 9 + 9 are not.
        check(b"*3\r\n$3\r\nabc\r\n$3\r\nabc\r\n$2\r\nab\r\n", &limits, &[Some(&[b"abc", b"abc", b"ab"])], End::Idle);
        check(b"*3\r\n$3\r\nabc\r\n$3\r\nabc\r\n$3\r\nabc\r\n", &limits, &[], End::Fails(TooBigRequest));
    }
}

#[test]
fn errors_are_answered_in_the_words_of_redis() {
    use RequestError::*;
    let texts: [(RequestError, &[u8]); 12] = [
        (InvalidMultibulkLength, b"invalid multibulk length"),
        (UnauthenticatedMultibulkLength, b"unauthenticated multibulk length"),
        (InvalidBulkLength, b"invalid bulk length"),
        (UnauthenticatedBulkLength, b"unauthenticated bulk length"),
        (ExpectedDollar(b':'), b"expected '$', got ':'"),
        (ExpectedDollar(b'\r'), b"expected '$', got ' '"),
        (ExpectedDollar(b'\n'), b"expected '$', got ' '"),
        (ExpectedDollar(0xff), b"expected '$', got '\xff'"),
        (TooBigMultibulkCount, b"too big mbulk count string"),
        (TooBigBulkCount, b"too big bulk count string"),
        (TooBigInline, b"too big inline request"),
        (UnbalancedQuotes, b"unbalanced quotes in request"),
    ];
    for (error, text) in texts {
        let mut reply = Vec::new();
        error.append_reply(&mut reply);
        assert_eq!(reply, [b"-ERR Protocol error: ", text, b"\r\n"].concat(), "{error:?}");
        if text.is_ascii() {
            assert_eq!(error.to_string().as_bytes(), text);
        }
    }
    let mut reply = Vec::new();
    CrossProtocol.append_reply(&mut reply);
    assert!(reply.is_empty() && CrossProtocol.is_silent());
}

#[test]
fn what_is_needed_is_known_once_a_length_is_read() {
    let mut decoder = RequestDecoder::new();
    let input = b"*2\r\n$3\r\nSET\r\n$100000\r\n";
    assert!(matches!(decoder.decode(&input[..6], &STRICT), Ok(Step::Incomplete)));
    assert_eq!(decoder.needed(), None);
    assert!(matches!(decoder.decode(input, &STRICT), Ok(Step::Incomplete)));
    assert_eq!(decoder.needed(), Some(input.len() + 100_000 + 2));
    assert!(!decoder.is_idle());
}
