//! What the reply scanner makes of the bytes that nodes send, well-formed and not: a table of inputs, each fed whole, cut
//! at every byte, and in pieces of every size.

use respool_wire::{Protocol, ReplyError, ReplyKind, ReplyLimits, ReplyScanner, Scan};

/// Scans the replies in `input` when it comes in pieces that end at `cuts`, and wants every reply's length and kind.
fn feed(
    input: &[u8],
    cuts: impl Iterator<Item = usize>,
    limits: &ReplyLimits,
) -> (Vec<(usize, ReplyKind)>, Result<bool, ReplyError>) {
    let mut scanner = ReplyScanner::new();
    let mut replies = Vec::new();
    let (mut start, mut length) = (0, 0);
    for end in cuts.chain([input.len()]) {
        while start < end {
            match scanner.scan(&input[start..end], limits) {
                Ok(Scan::Partial) => {
                    length += end - start;
                    start = end;
                }
                Ok(Scan::Complete { consumed, kind }) => {
                    assert!(scanner.is_idle());
                    replies.push((length + consumed, kind));
                    start += consumed;
                    length = 0;
                }
                Err(error) => {
                    assert_eq!(scanner.scan(b"+OK\r\n", limits), Err(error), "there is no way back from an error");
                    return (replies, Err(error));
                }
            }
        }
    }
    assert_eq!(scanner.is_idle(), length == 0);
    (replies, Ok(length == 0))
}

/// Feeds `input` in every way that this file knows and wants the same answer each time.
#[track_caller]
fn check(input: &[u8], replies: &[(usize, ReplyKind)], end: Result<bool, ReplyError>) {
    let limits = ReplyLimits::default();
    let shown = input[..input.len().min(200)].escape_ascii();
    let expected = (replies.to_vec(), end);
    assert_eq!(feed(input, [].into_iter(), &limits), expected, "{shown} whole");
    for cut in 0..input.len() {
        assert_eq!(feed(input, [cut].into_iter(), &limits), expected, "{shown} cut at {cut}");
    }
    for size in 1..input.len() {
        assert_eq!(feed(input, (0..input.len()).step_by(size), &limits), expected, "{shown} in pieces of {size}");
    }
}

/// One whole reply, alone and with another behind it; and never whole without its last byte.
#[track_caller]
fn whole(reply: &str, kind: ReplyKind) {
    check(reply.as_bytes(), &[(reply.len(), kind)], Ok(true));
    check(format!("{reply}+OK\r\n").as_bytes(), &[(reply.len(), kind), (5, ReplyKind::Simple)], Ok(true));
    check(&reply.as_bytes()[..reply.len() - 1], &[], Ok(false));
}

#[test]
fn every_type_of_both_dialects_has_an_end() {
    use ReplyKind::*;
    for reply in ["+\r\n", "+OK\r\n", "+PONG with more\r\n"] {
        whole(reply, Simple);
    }
    whole("-ERR no\r\n", Error);
    for reply in [":0\r\n", ":12\r\n", ":-1\r\n", ":+7\r\n", ":007\r\n", ":9223372036854775807\r\n", ":-0\r\n"] {
        whole(reply, Integer);
    }
    for reply in ["$0\r\n\r\n", "$3\r\nabc\r\n", "$5\r\n\r\n$1\r\r\n", "$12\r\nhello world!\r\n"] {
        whole(reply, Bulk);
    }
    whole(&format!("$100\r\n{}\r\n", "x".repeat(100)), Bulk);
    whole("$-1\r\n", NullBulk);
    whole("*-1\r\n", NullArray);
    whole("_\r\n", Null);
    for reply in ["*0\r\n", "*1\r\n:1\r\n", "*2\r\n*2\r\n$1\r\na\r\n*0\r\n*-1\r\n", "*3\r\n$-1\r\n_\r\n-no\r\n"] {
        whole(reply, Array);
    }
    whole("*11\r\n:1\r\n:2\r\n:3\r\n:4\r\n:5\r\n:6\r\n:7\r\n:8\r\n:9\r\n:0\r\n:1\r\n", Array);
    whole("*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*2\r\n:1\r\n:2\r\n", Array);
    for reply in ["%0\r\n", "%2\r\n+a\r\n:1\r\n+b\r\n%1\r\n+c\r\n*0\r\n"] {
        whole(reply, Map);
    }
    whole("~2\r\n+a\r\n#t\r\n", Set);
    whole(">2\r\n+message\r\n*1\r\n:1\r\n", Push);
    for text in ["0", "1", "-1.5", "+2", "10e3", "1.5E-7", "3e+100", "inf", "-inf", "nan", "-nan"] {
        whole(&format!(",{text}\r\n"), Double);
    }
    whole("#t\r\n", Boolean);
    whole("#f\r\n", Boolean);
    whole("!5\r\nERR\r\n\r\n", BlobError);
    whole("=7\r\ntxt:abc\r\n", Verbatim);
    whole("=4\r\nmkd:\r\n", Verbatim);
    whole("(-3492890328409238509324850943850943825024385\r\n", BigNumber);
    // Redis lets scripts say what they like.
    whole("(123  123\r\n", BigNumber);
    whole("(\r\n", BigNumber);
}

#[test]
fn attributes_belong_to_what_follows() {
    whole("|1\r\n+ttl\r\n:3600\r\n$1\r\na\r\n", ReplyKind::Bulk);
    whole("|0\r\n*0\r\n", ReplyKind::Array);
    whole("*2\r\n|1\r\n+a\r\n*1\r\n:1\r\n:1\r\n:2\r\n", ReplyKind::Array);
    whole("|1\r\n+a\r\n|1\r\n+b\r\n:1\r\n:2\r\n>1\r\n+x\r\n", ReplyKind::Push);
    check(b"|1\r\n+a\r\n+b\r\n|1\r\n+a\r\n+b\r\n+c\r\n", &[], Err(ReplyError::ChainedAttribute));
}

#[test]
fn resp2_has_five_types_and_no_more() {
    let scan = |input: &[u8], piece: usize| {
        let mut scanner = ReplyScanner::new();
        scanner.expect(Protocol::Resp2);
        let mut last = Ok(Scan::Partial);
        for part in input.chunks(piece) {
            last = scanner.scan(part, &ReplyLimits::default());
            if last.is_err() {
                break;
            }
        }
        last
    };
    let foreign = [
        "%1\r\n$1\r\na\r\n:1\r\n",
        "~1\r\n:1\r\n",
        "|1\r\n+a\r\n:1\r\n$1\r\nv\r\n",
        ",1.5\r\n",
        "#t\r\n",
        "_\r\n",
        "(12\r\n",
        "!5\r\nERR x\r\n",
        "=5\r\ntxt:x\r\n",
    ];
    for reply in foreign {
        let byte = reply.as_bytes()[0];
        for inside in ["", "*1\r\n", "*2\r\n:1\r\n", "*2\r\n*1\r\n$4\r\nlong\r\n"] {
            let input = format!("{inside}{reply}");
            for piece in 1..=input.len() {
                let said = scan(input.as_bytes(), piece);
                assert_eq!(said, Err(ReplyError::OtherDialect(byte)), "{input:?} in pieces of {piece}");
            }
        }
    }
    assert_eq!(scan(b"*1\r\n>1\r\n:1\r\n", 1), Err(ReplyError::OtherDialect(b'>')));
    for (reply, kind) in [
        ("+OK\r\n", ReplyKind::Simple),
        ("-ERR x\r\n", ReplyKind::Error),
        ("*3\r\n:1\r\n$-1\r\n*-1\r\n", ReplyKind::Array),
        // For those who have to tell it from a reply.
        (">1\r\n:1\r\n", ReplyKind::Push),
    ] {
        assert_eq!(scan(reply.as_bytes(), reply.len()), Ok(Scan::Complete { consumed: reply.len(), kind }));
    }
}

#[test]
fn what_no_server_sends_is_refused() {
    use ReplyError::*;
    for (input, error) in [
        ("x", UnknownType(b'x')),
        ("\r\n", UnknownType(b'\r')),
        ("HTTP/1.1 400 Bad Request\r\n", UnknownType(b'H')),
        ("\u{16}\u{3}\u{1}", UnknownType(0x16)),
        ("*1\r\n\r\n", UnknownType(b'\r')),
        ("$?\r\n", Streamed(b'$')),
        ("*?\r\n", Streamed(b'*')),
        ("%?\r\n", Streamed(b'%')),
        ("*1\r\n;4\r\n", Streamed(b';')),
        (".\r\n", Streamed(b'.')),
        ("$\r\n", InvalidLength),
        ("$-2\r\n", InvalidLength),
        ("$-1x", InvalidLength),
        ("$-\r\n", InvalidLength),
        ("$-0\r\n", InvalidLength),
        ("$+3\r\n", InvalidLength),
        ("$03\r\n", InvalidLength),
        ("$3\n", InvalidLength),
        ("$3\rx", InvalidLength),
        ("$9223372036854775808\r\n", InvalidLength),
        ("*01\r\n", InvalidLength),
        ("*-2\r\n", InvalidLength),
        ("%-1\r\n", InvalidLength),
        ("~-1\r\n", InvalidLength),
        (">-1\r\n", InvalidLength),
        ("!-1\r\n", InvalidLength),
        ("=-1\r\n", InvalidLength),
        ("|-1\r\n", InvalidLength),
        (":\r\n", InvalidScalar),
        (":-\r\n", InvalidScalar),
        (":1a", InvalidScalar),
        (":+-1", InvalidScalar),
        (":9223372036854775808\r\n", InvalidScalar),
        (":1\n", InvalidScalar),
        (":1\rx", InvalidScalar),
        ("_x", InvalidScalar),
        ("#\r\n", InvalidScalar),
        ("#x", InvalidScalar),
        ("#tt", InvalidScalar),
        (",\r\n", InvalidScalar),
        (",1.\r\n", InvalidScalar),
        (",.5\r\n", InvalidScalar),
        (",1e\r\n", InvalidScalar),
        (",in\r\n", InvalidScalar),
        (",1.5.2\r\n", InvalidScalar),
        (",1e5.0\r\n", InvalidScalar),
        ("+a\nb\r\n", BareNewline),
        ("+a\rb\r\n", BareNewline),
        ("-a\n", BareNewline),
        ("_\n", BareNewline),
        ("$3\r\nabcd\r\n", UnterminatedBulk),
        ("$3\r\nabc\n", UnterminatedBulk),
        ("$3\r\nabc\rx", UnterminatedBulk),
        ("$0\r\nx", UnterminatedBulk),
        ("!1\r\nabc", UnterminatedBulk),
        ("=3\r\ntxt\r\n", InvalidVerbatim),
        ("=5\r\ntext:\r\n", InvalidVerbatim),
        ("*1\r\n>1\r\n", NestedPush),
        ("|1\r\n>1\r\n", NestedPush),
        ("|0\r\n|0\r\n", ChainedAttribute),
        ("$536870913\r\n", BulkTooLong),
        ("$9223372036854775807\r\n", BulkTooLong),
        ("*4294967296\r\n", TooManyElements),
        ("*9223372036854775807\r\n", TooManyElements),
        ("|9223372036854775807\r\n", TooManyElements),
    ] {
        check(input.as_bytes(), &[], Err(error));
        check(format!("+OK\r\n{input}").as_bytes(), &[(5, ReplyKind::Simple)], Err(error));
    }
}

#[test]
fn limits_can_be_set() {
    let limits = ReplyLimits { bulk_bytes_max: 5, elements_max: 3, depth_max: 2, line_bytes_max: 4 };
    for (input, expected) in [
        ("$5\r\n12345\r\n", Ok(true)),
        ("$6\r\n", Err(ReplyError::BulkTooLong)),
        ("+1234\r\n", Ok(true)),
        ("+12345", Err(ReplyError::LineTooLong)),
        (",12345", Err(ReplyError::LineTooLong)),
        (",1e\0\0\0", Err(ReplyError::InvalidScalar)),
        ("%3\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n", Ok(true)),
        ("%4\r\n", Err(ReplyError::TooManyElements)),
        ("*1\r\n*1\r\n:1\r\n", Ok(true)),
        ("*1\r\n*1\r\n*0\r\n", Err(ReplyError::TooDeep)),
        ("*1\r\n*1\r\n|1\r\n", Err(ReplyError::TooDeep)),
        ("*2\r\n*1\r\n:1\r\n*1\r\n*", Ok(false)),
    ] {
        for size in 1..=input.len() {
            let cuts = (0..input.len()).step_by(size);
            assert_eq!(feed(input.as_bytes(), cuts, &limits).1, expected, "{input:?} in pieces of {size}");
        }
    }
}

#[test]
fn nesting_ends_at_its_limit() {
    let deepest = format!("{}*0\r\n", "*1\r\n".repeat(respool_wire::limits::REPLY_DEPTH_MAX - 1));
    assert_eq!(feed(deepest.as_bytes(), [].into_iter(), &ReplyLimits::default()).1, Ok(true));
    for unit in ["*1\r\n", "%1\r\n", "*2\r\n:1\r\n", "|1\r\n"] {
        let bomb = unit.repeat(50_000);
        assert_eq!(
            feed(bomb.as_bytes(), [].into_iter(), &ReplyLimits::default()).1,
            Err(ReplyError::TooDeep),
            "{unit:?}"
        );
    }
    let wide = format!("*1000\r\n{}", "*1\r\n*1\r\n*1\r\n*1\r\n*2\r\n:1\r\n%1\r\n+a\r\n+b\r\n".repeat(1_000));
    let seen = feed(wide.as_bytes(), (0..wide.len()).step_by(7), &ReplyLimits::default());
    assert_eq!(seen, (vec![(wide.len(), ReplyKind::Array)], Ok(true)));
}

#[test]
fn a_long_string_may_come_in_any_pieces() {
    let reply = format!("*2\r\n$5000000\r\n{}\r\n:1\r\n", "x".repeat(5_000_000));
    // Each byte of a line is looked at once, or pieces of one byte would take minutes here.
    let line = format!("+{}\r\n", "x".repeat(1 << 20));
    let seen = feed(line.as_bytes(), 0..line.len(), &ReplyLimits::default());
    assert_eq!(seen, (vec![(line.len(), ReplyKind::Simple)], Ok(true)));
    for size in [2_048, 16_384, 5_000_000] {
        let seen = feed(reply.as_bytes(), (0..reply.len()).step_by(size), &ReplyLimits::default());
        assert_eq!(seen, (vec![(reply.len(), ReplyKind::Array)], Ok(true)), "pieces of {size}");
    }
}

/// A few elements that are all whole are found without the scanner's states. It must not matter.
#[test]
fn messages_end_with_their_last_element() {
    for (head, kind) in [('>', ReplyKind::Push), ('*', ReplyKind::Array)] {
        for words in 1..=6 {
            let elements = ["$7\r\nmessage\r\n", "$5\r\n12345\r\n", ":1\r\n", "$-1\r\n", "+OK\r\n", "*1\r\n:1\r\n"];
            whole(&format!("{head}{words}\r\n{}", elements[..words].concat()), kind);
            let backwards: Vec<&str> = elements[6 - words..].iter().rev().copied().collect();
            whole(&format!("{head}{words}\r\n{}", backwards.concat()), kind);
        }
    }
    check(b"*2\r\n$1\r\na\r\n$1\r\naxx\r\n", &[], Err(ReplyError::UnterminatedBulk));
    let message = b">3\r\n$7\r\nmessage\r\n$1\r\na\r\n$5\r\n12345\r\n+OK\r\n";
    let limits = |limit: fn(&mut ReplyLimits)| {
        let mut limits = ReplyLimits::default();
        limit(&mut limits);
        feed(message, [].into_iter(), &limits).1
    };
    assert_eq!(limits(|limits| limits.elements_max = 2), Err(ReplyError::TooManyElements));
    assert_eq!(limits(|limits| limits.depth_max = 0), Err(ReplyError::TooDeep));
    assert_eq!(limits(|limits| limits.bulk_bytes_max = 6), Err(ReplyError::BulkTooLong));
}
