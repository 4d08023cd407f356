//! Scripts against a real redis-server 7.0: the same scripts to both, in both dialects, replies compared byte for byte.
//!
//! The environment variable `RESPOOL_TEST_REDIS=off` leaves these tests out, for machines without a redis-server.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "the engine is told the time that the server lives in"
)]

mod debugger;
mod functions;
#[allow(dead_code, reason = "the other tests need more of it")]
#[path = "../differential/generate.rs"]
mod generate;
mod generated;
mod hostile;
mod memory;
mod phrases;
#[path = "../differential/subject.rs"]
mod subject;

use respool_testkit::{Client, RedisServer, reference_server};
use respool_wire::Protocol;

use subject::{Request, Subject};

/// What is answered otherwise, and why.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("return pairs(nil)", TAIL_CALL),
    ("return next({},'x')", TAIL_CALL),
    ("return type()", TAIL_CALL),
    ("return setmetatable(1,{})", TAIL_CALL),
    ("return setmetatable({},1)", TAIL_CALL),
    ("return coroutine.resume(1)", TAIL_CALL),
    ("return coroutine.create(1)", TAIL_CALL),
    ("return unpack(nil)", TAIL_CALL),
    ("return table.insert()", TAIL_CALL),
    ("return table.insert(nil,1)", TAIL_CALL),
    ("return table.insert({1},1,2,3)", TAIL_CALL),
    ("return table.insert({}, 'x', 1)", TAIL_CALL),
    ("return os", "scripts have the clock, as in Valkey and in Redis since 7.4"),
];

const TAIL_CALL: &str = "the function is written in Lua here, and a tail call of one leaves no place to tell";

fn both(protocol: Protocol) -> Option<(RedisServer, Client, Subject)> {
    let server = reference_server(&[])?;
    let mut client = server.client().expect("it has just started");
    if protocol == Protocol::Resp3 {
        client.ask("HELLO 3").expect("it speaks RESP3");
    }
    Some((server, client, Subject::new(protocol)))
}

fn words(line: &[&str]) -> Vec<Vec<u8>> {
    line.iter().map(|word| word.as_bytes().to_vec()).collect()
}

fn shown(reply: &[u8]) -> String {
    let start = &reply[..reply.len().min(400)];
    start.escape_ascii().to_string()
}

fn scripts() -> Vec<String> {
    let lines = include_str!("cases.lua").lines().skip(1).filter(|line| !line.is_empty());
    lines.map(|line| if line.starts_with("#!") { line.replace("\\n", "\n") } else { line.to_owned() }).collect()
}

#[test]
fn scripts_answer_as_in_redis() {
    for protocol in [Protocol::Resp2, Protocol::Resp3] {
        let Some((_server, mut redis, mut subject)) = both(protocol) else { return };
        let mut differences = Vec::new();
        for script in scripts() {
            let request = words(&["EVAL", &script, "2", "k1", "k2", "a1", "a2"]);
            let expected =
                redis.command(&request).unwrap_or_else(|error| panic!("redis-server left at {script}: {error}"));
            let said = subject.command(&request);
            let is_excepted = EXCEPTIONS.iter().any(|(start, _)| script.starts_with(start));
            if expected != said && !is_excepted {
                differences.push(format!("{script}\n  redis   {}\n  respool {}", shown(&expected), shown(&said)));
            }
        }
        assert!(differences.is_empty(), "{} in {protocol:?}:\n{}", differences.len(), differences.join("\n"));
    }
}

#[test]
fn bytes_that_are_no_text_are_told_as_in_redis() {
    for protocol in [Protocol::Resp2, Protocol::Resp3] {
        let Some((_server, mut redis, mut subject)) = both(protocol) else { return };
        for request in [
            &[&b"EVAL"[..], b"\xf5\x04\x87y", b"0"][..],
            &[b"SCRIPT", b"LOAD", b"\xbe~9{Z\x94"],
            &[b"EVAL", b"return 'a' \xff", b"0"],
            &[b"EVAL", b"return {loadstring(ARGV[1], ARGV[2])}", b"0", b"\xc3 = 1", b"n\xc3"],
            &[b"EVAL", b"return {loadstring(ARGV[1])}", b"0", b"x \xc3"],
            &[b"FUNCTION", b"LOAD", b"#!lua name=l\nlocal \x80 = 1"],
            &[b"FUNCTION", b"LIST", b"T\xe1\x00\x80\r!"],
            // Well-formed texts with the character that stands for lost bytes.
            &[b"EVAL", b"return 1 \xef\xbf\xbd", b"0"],
            &[b"EVAL", b"\x1bLua\xff", b"0"],
        ] {
            let request: Vec<Vec<u8>> = request.iter().map(|word| word.to_vec()).collect();
            let expected = redis.command(&request).expect("redis-server answers");
            assert_eq!(shown(&subject.command(&request)), shown(&expected), "{request:?}");
        }
    }
}

/// Scripts that are written for Valkey say `server`.
#[test]
fn the_table_has_the_name_that_valkey_gives_it() {
    let mut subject = Subject::new(Protocol::Resp2);
    let mut ask = |line: &[&str]| String::from_utf8_lossy(&subject.command(&words(line))).into_owned();
    let script =
        "server.call('SET', KEYS[1], 'v') return {server == redis, server.sha1hex(''), redis.call('GET', KEYS[1])}";
    assert_eq!(
        ask(&["EVAL", script, "1", "k"]),
        "*3\r\n:1\r\n$40\r\nda39a3ee5e6b4b0d3255bfef95601890afd80709\r\n$1\r\nv\r\n"
    );
    let library = "#!lua name=l\nserver.register_function('f', function() return server.call('PING') end)";
    assert_eq!(ask(&["FUNCTION", "LOAD", library]), "$1\r\nl\r\n");
    assert_eq!(ask(&["FCALL", "f", "0"]), "+PONG\r\n");
    assert!(ask(&["EVAL", "server.call = nil", "0"]).contains("Attempt to modify a readonly table"));
}

#[test]
fn keys_and_arguments_are_told_apart_as_in_redis() {
    for protocol in [Protocol::Resp2, Protocol::Resp3] {
        let Some((_server, mut redis, mut subject)) = both(protocol) else { return };
        let many: Vec<String> = (0..300).map(|number| format!("a{number}")).collect();
        let mut requests: Vec<Vec<Vec<u8>>> = Vec::new();
        let script = "return {#KEYS, #ARGV, KEYS, ARGV}";
        for count in ["-1", "0", "1", "2", "3", "4", "300", "x", "1.5", "9223372036854775808"] {
            for arguments in [0, 1, 3, 99, 101, 300] {
                let line: Vec<&str> = ["EVAL", script, count]
                    .into_iter()
                    .chain(many.iter().take(arguments).map(String::as_str))
                    .collect();
                requests.push(words(&line));
            }
        }
        for line in [
            "EVALSHA x 0",
            "EVALSHA e0e1f9fabfc9d4800c877a703b823ac0578ff8db 0",
            "EVALSHA e0e1f9fabfc9d4800c877a703b823ac0578ff8db x",
            "SCRIPT LOAD return\u{b}1",
            "SCRIPT LOAD x",
            "SCRIPT EXISTS x e0e1f9fabfc9d4800c877a703b823ac0578ff8db",
            "SCRIPT FLUSH X",
            "SCRIPT FLUSH ASYNC",
            "SCRIPT FLUSH SYNC x",
            "SCRIPT KILL",
            "EVALSHA_RO x 0",
        ] {
            requests.push(words(&line.split(' ').collect::<Vec<_>>()));
        }
        for (command, script) in [
            ("EVAL_RO", "return redis.call('set', 'a', 'b')"),
            ("EVAL_RO", "return redis.call('get', 'a')"),
            ("EVAL_RO", "#!lua\nreturn redis.call('get', 'a')"),
            ("EVAL_RO", "#!lua flags=no-writes\nreturn redis.call('set', 'a', 'b')"),
            ("EVAL", "#!lua flags=no-writes\nreturn redis.pcall('set', 'a', 'b')"),
            ("EVAL", "#!lua flags=x\nreturn 1"),
            ("EVAL", "#!lua foo=x\nreturn 1"),
            ("EVAL", "#!python\nreturn 1"),
            ("EVAL", "#!lua"),
            ("EVAL", "#!lua\n\nreturn x"),
            ("EVAL", "return 1"),
        ] {
            requests.push(words(&[command, script, "0"]));
            requests.push(words(&["SCRIPT", "LOAD", script]));
        }
        requests.push(words(&["EVALSHA", "E0E1F9FABFC9D4800C877A703B823AC0578FF8DB", "0"]));
        for request in requests {
            let (expected, said) = (redis.command(&request).expect("the server answers"), subject.command(&request));
            let line: Vec<String> = request.iter().take(5).map(|word| shown(word)).collect();
            assert_eq!(shown(&expected), shown(&said), "{line:?} in {protocol:?}");
        }
    }
}
