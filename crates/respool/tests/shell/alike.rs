//! Beside redis-cli: the same command line prints the same and ends the same.

use respool_testkit::ClosedPort;

use crate::{at, redis_cli, respool_cli, run, server};

/// Runs both with the same arguments.
#[track_caller]
fn check(port: u16, args: &[&str], input: Option<&[u8]>) {
    check_prepared(port, args, input, || ());
}

/// The same, each after `prepare`.
#[track_caller]
fn check_prepared(port: u16, args: &[&str], input: Option<&[u8]>, mut prepare: impl FnMut()) {
    let port = port.to_string();
    let args = [&["-p", &port], args].concat();
    prepare();
    let theirs = run(&mut redis_cli(&args), input);
    prepare();
    let ours = run(&mut respool_cli(&args), input);
    assert_eq!(ours, theirs, "{args:?}");
}

#[test]
fn replies_are_shown_as_redis_cli_shows_them() {
    let server = server();
    let mut client = server.client().expect("a client");
    for words in
        ["RPUSH list a b c", "HSET hash f 1 g 2", "SADD set x", "ZADD zset 1.5 m 3 n", "SET text one", "XADD s 1-1 f v"]
    {
        client.ask(words).expect("a reply");
    }
    client.command(&[&b"SET"[..], b"bytes", b"a\"b\\\r\n\t\x07\x08\x0c\x01\x7f\xe9\xc3\xa9"]).expect("a reply");
    let script = "return {1,{2,{},{err='x y'}},false,{'a','b'},'\\n'}";
    let nested = "redis.setresp(3); return {map={a=1,b={1,2},c={}}}";
    let long = "local t={} for i=1,12 do t[i]={i} end return t";
    let commands: &[&[&str]] = &[
        &["get", "text"],
        &["get", "bytes"],
        &["get", "nothing"],
        &["nosuch", "command"],
        &["lrange", "list", "0", "-1"],
        &["hgetall", "hash"],
        &["smembers", "set"],
        &["zrange", "zset", "0", "-1", "withscores"],
        &["zscore", "zset", "m"],
        &["xrange", "s", "-", "+"],
        &["keys", "nothing*"],
        &["eval", script, "0"],
        &["eval", long, "0"],
        &["debug", "protocol", "double"],
        &["debug", "protocol", "true"],
        &["debug", "protocol", "null"],
        &["debug", "protocol", "map"],
        &["debug", "protocol", "set"],
        &["debug", "protocol", "verbatim"],
        &["type", "list"],
        &["latency", "doctor"],
        &["info", "cluster"],
        &["LOLWUT", "version", "5", "1", "1", "1"],
        &["cluster", "info"],
        &["memory", "doctor"],
        &["object", "encoding", "list"],
    ];
    for format in [&["--no-raw"][..], &["--raw"], &["--csv"], &["--json"], &[], &["-d", ", ", "-D", ";"]] {
        for protocol in [&[][..], &["-2"], &["-3"]] {
            for command in commands {
                check(server.port(), &[format, protocol, command].concat(), None);
            }
        }
        check(server.port(), &[format, &["-3", "eval", nested, "0"]].concat(), None);
        // With RESP3 redis-cli waits for a reply that comes as a push.
        check(server.port(), &[format, &["-2", "unsubscribe", "a"]].concat(), None);
    }
    // The one difference: redis-cli 7.0 forgets to escape a quote.
    let ours = at(&server, &["--quoted-json", "get", "text"], None);
    assert_eq!(ours.stdout, "\"one\"\n");
    check(server.port(), &["--quoted-json", "lrange", "list", "0", "-1"], None);
}

#[test]
fn command_lines_mean_what_they_mean_to_redis_cli() {
    let server = server();
    let port = server.port();
    for (args, input) in [
        (&["-x", "set", "k"][..], Some(&b"some \0 bytes\n"[..])),
        (&["get", "k"], None),
        (&["-X", "tag", "set", "tag", "v"], Some(b"name")),
        (&["get", "name"], None),
        (&["-r", "3", "incr", "{n}"], None),
        (&["-e", "get"], None),
        (&["-e", "-r", "3", "get"], None),
        (&["get"], None),
        (&["-n", "3", "set", "there", "1"], None),
        (&["-n", "99", "get", "there"], None),
        (&["-u", &format!("redis://127.0.0.1:{port}/3"), "get", "there"], None),
        (&["--quoted-input", "set", "\"a\\x00b\"", "'c d'"], None),
        (&["--quoted-input", "get", "\"a\\x00b\""], None),
        (&["-a", "wrong", "ping"], None),
        (&["-a", "wrong", "--no-auth-warning", "--user", "u", "ping"], None),
        (&[], Some(b"set a 1\nget\n\n\"x\n3 incr a\nget a\n")),
        (&[], Some(b"multi\nincr a\nincr a\nexec\nquit\nget a\n")),
        (&["--no-raw"], Some(b"get a")),
        (&["--scan", "--pattern", "nam*"], None),
        (&["-3", "--no-raw", "--scan", "--pattern", "nam*"], None),
    ] {
        let mut client = server.client().expect("a client");
        // Counters start again for the other program.
        check_prepared(port, args, input, || drop(client.ask("DEL {n} a").expect("a reply")));
    }
}

#[test]
fn a_server_that_is_not_there_is_said_as_redis_cli_says_it() {
    let closed = ClosedPort::take().expect("a port");
    let port = closed.address().port();
    check(port, &["ping"], None);
    // redis-cli goes on with the next line, and what the first one was for is missing.
    let ours = run(&mut respool_cli(&["-p", &port.to_string()]), Some(b"ping\nping\n"));
    assert!(ours.code == Some(1) && ours.stderr.lines().count() == 1, "{ours:?}");
}

#[test]
fn lines_end_with_the_first_that_fails_if_that_is_wanted() {
    let server = server();
    // redis-cli goes on, and ends well.
    let ours = at(&server, &["-e"], Some(b"set a 1\nget\nget a\n"));
    assert!(ours.code == Some(1) && ours.stdout == "OK\n" && ours.stderr.starts_with("ERR wrong"), "{ours:?}");
}

#[test]
fn a_script_from_a_file_is_evaluated() {
    let server = server();
    let directory = respool_testkit::TempDir::new().expect("a directory");
    let path = directory.join("script.lua");
    std::fs::write(&path, "return {KEYS[1],KEYS[2],ARGV[1]}").expect("the file is written");
    check(server.port(), &["--eval", path.to_str().expect("a path"), "a", "b", ",", "c"], None);
}

#[test]
fn passwords_come_from_the_environment_too() {
    let server = server();
    server.client().expect("a client").ask("CONFIG SET requirepass canary").expect("a reply");
    let port = server.port().to_string();
    let ours = run(respool_cli(&["-p", &port, "ping"]).env("REDISCLI_AUTH", "canary"), None);
    assert_eq!((ours.stdout.as_str(), ours.stderr.as_str()), ("PONG\n", ""));
    let refused = run(&mut respool_cli(&["-p", &port, "ping"]), None);
    assert!(refused.stdout.starts_with("NOAUTH"), "{refused:?}");
}
