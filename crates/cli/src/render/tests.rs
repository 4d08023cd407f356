//! What each format writes, as redis-cli 7.0 was seen to write it.

use super::*;

#[track_caller]
fn check(reply: &str, [terminal, raw, csv, json]: [&str; 4]) {
    for (format, expected) in
        [(Format::Terminal, terminal), (Format::raw(), raw), (Format::Csv, csv), (Format::Json, json)]
    {
        let mut out = Vec::new();
        render(reply.as_bytes(), &format, false, &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), expected, "{reply:?} as {format:?}");
    }
}

#[test]
fn leaves_are_written_in_each_format() {
    check("+OK\r\n", ["OK\n", "OK\n", "\"OK\"\n", "\"OK\"\n"]);
    check("-ERR x\r\n", ["(error) ERR x\n", "ERR x\n\n", "ERROR,\"ERR x\"\n", "error:\"ERR x\"\n"]);
    check(":7\r\n", ["(integer) 7\n", "7\n", "7\n", "7\n"]);
    check("$3\r\na\"b\r\n", ["\"a\\\"b\"\n", "a\"b\n", "\"a\\\"b\"\n", "\"a\\\"b\"\n"]);
    for null in ["$-1\r\n", "*-1\r\n", "_\r\n"] {
        check(null, ["(nil)\n", "\n", "NULL\n", "null\n"]);
    }
    check(",3.141\r\n", ["(double) 3.141\n", "3.141\n", "3.141\n", "3.141\n"]);
    check("#t\r\n", ["(true)\n", "(true)\n", "true\n", "true\n"]);
    check("#f\r\n", ["(false)\n", "(false)\n", "false\n", "false\n"]);
    check(
        "(12345678901234567890\r\n",
        [
            "(big number) 12345678901234567890\n",
            "12345678901234567890\n",
            "12345678901234567890\n",
            "12345678901234567890\n",
        ],
    );
    check("=7\r\ntxt:a\nb\r\n", ["a\nb\n", "a\nb\n", "\"a\\nb\"\n", "\"a\\nb\"\n"]);
}

#[test]
fn aggregates_are_written_in_each_format() {
    check("*0\r\n", ["(empty array)\n", "\n", "\n", "[]\n"]);
    check("%0\r\n", ["(empty hash)\n", "\n", "\n", "{}\n"]);
    check("~0\r\n", ["(empty set)\n", "\n", "\n", "[]\n"]);
    check(
        "*3\r\n:1\r\n*3\r\n:2\r\n*0\r\n-x y\r\n$-1\r\n",
        [
            "1) (integer) 1\n2) 1) (integer) 2\n   2) (empty array)\n   3) (error) x y\n3) (nil)\n",
            "1\n2\n\nx y\n\n\n",
            "1,2,,ERROR,\"x y\",NULL\n",
            "[1,[2,[],error:\"x y\"],null]\n",
        ],
    );
    check(
        "%2\r\n$1\r\na\r\n:1\r\n:2\r\n*2\r\n:1\r\n:2\r\n",
        [
            "1# \"a\" => (integer) 1\n2# (integer) 2 => \n   1) (integer) 1\n   2) (integer) 2\n",
            "a 1\n2 1\n2\n",
            "\"a\",1,2,1,2\n",
            "{\"a\":1,\"2\":[1,2]}\n",
        ],
    );
    check("~1\r\n:5\r\n", ["1~ (integer) 5\n", "5\n", "5\n", "[5]\n"]);
}

#[test]
fn places_are_as_wide_as_the_last_one() {
    let reply = format!("*1\r\n*10\r\n{}", ":0\r\n".repeat(10));
    let mut out = Vec::new();
    render(reply.as_bytes(), &Format::Terminal, false, &mut out);
    let text = String::from_utf8(out).unwrap();
    assert!(text.starts_with("1)  1) (integer) 0\n    2) (integer) 0\n"), "{text}");
    assert!(text.ends_with("   10) (integer) 0\n"), "{text}");
}

#[test]
fn text_for_people_is_written_as_it_is() {
    for format in [Format::Terminal, Format::raw(), Format::Csv, Format::Json] {
        let mut out = Vec::new();
        render(b"$5\r\na\r\nb\n\r\n", &format, true, &mut out);
        assert_eq!(out, b"a\r\nb\n", "{format:?}");
    }
}

#[test]
fn delimiters_of_the_raw_format_are_the_callers() {
    let format = Format::Raw { between_elements: b", ".to_vec(), behind_replies: b";".to_vec() };
    let mut out = Vec::new();
    render(b"*2\r\n:1\r\n%1\r\n:2\r\n:3\r\n", &format, false, &mut out);
    assert_eq!(out, b"1, 2 3;");
}

#[test]
fn quoted_json_is_ascii_and_valid() {
    let mut out = Vec::new();
    render(b"$6\r\na\"\\\n\x01\xe9\r\n", &Format::QuotedJson, false, &mut out);
    assert_eq!(out, br#""a\\\"\\\\\\n\\x01\\xe9""#.iter().chain(b"\n").copied().collect::<Vec<_>>());
}

#[test]
fn every_byte_that_is_quoted_is_read_back() {
    let all: Vec<u8> = (0..=255).collect();
    let mut quoted = Vec::new();
    quote(&all, &mut quoted);
    assert!(quoted.is_ascii());
    let words = respool_wire::split_words(&quoted).expect("quotes are balanced");
    assert_eq!(words.as_args().iter().collect::<Vec<_>>(), [&all[..]]);
}

#[test]
fn the_deepest_reply_is_written() {
    let deepest = format!("{}:1\r\n", "*1\r\n".repeat(crate::limits::DEPTH_MAX));
    for format in [Format::Terminal, Format::raw(), Format::Csv, Format::Json] {
        let mut out = Vec::new();
        render(deepest.as_bytes(), &format, false, &mut out);
        assert!(out.contains(&b'1'), "{format:?}");
    }
}

#[test]
fn what_commands_a_terminal_is_covered() {
    for (text, expected) in [
        (&b"OK \xc3\xa4\tx\r\ny\n"[..], &b"OK \xc3\xa4\tx\r\ny\n"[..]),
        (b"a\x1b[2Jb\x07", b"a\\x1b[2Jb\\x07"),
        (b"old\rnew", b"old\\x0dnew"),
        (b"\xc2\x9b2J \x9b2J \x7f", b"\\xc2\\x9b2J \\x9b2J \\x7f"),
    ] {
        assert_eq!(covered(text), expected);
    }
}
