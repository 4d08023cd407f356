//! The modes that a flag asks for.

use std::io::Write;
use std::process::Stdio;
use std::thread;

use respool_testkit::{PATIENCE, proc_stats, wait_until};

use crate::{at, redis_cli, respool_cli, run, server};

/// Requests of the mass insertion.
const REQUESTS: u64 = 1_000_000;

/// What the program may have in memory meanwhile; the requests are more than twice as much.
const RESIDENT_BYTES_MAX: u64 = 48 << 20;

#[test]
fn a_million_requests_are_sent_in_bounded_memory() {
    let server = server();
    let port = server.port().to_string();
    let mut child =
        respool_cli(&["-p", &port, "--pipe"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut input = child.stdin.take().expect("a pipe");
    let writer = thread::spawn(move || {
        let value = "v".repeat(80);
        for first in (0..REQUESTS).step_by(1000) {
            let mut batch = String::new();
            for number in first..first + 1000 {
                batch.push_str(&format!("SET {number} {value}\r\n"));
            }
            input.write_all(batch.as_bytes()).expect("it is read");
        }
        // The pipe stays open, so that the process is there to be looked at.
        input
    });
    let input = writer.join().expect("all requests are written");
    let mut client = server.client().expect("a client");
    wait_until("all requests to be executed", PATIENCE, || Ok(client.ask("DBSIZE")? == format!(":{REQUESTS}\r\n")))
        .expect("they are");
    let peak = proc_stats::peak_resident_bytes(child.id()).expect("a figure");
    assert!(peak < RESIDENT_BYTES_MAX, "{peak} bytes");
    drop(input);
    let output = child.wait_with_output().expect("it ends");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.ends_with(&format!("errors: 0, replies: {REQUESTS}\n")), "{text}");
}

#[test]
fn mass_insertion_counts_errors_as_redis_cli_does() {
    let server = server();
    let port = server.port().to_string();
    for input in [
        &b"SET a 1\r\nGET\r\n*2\r\n$3\r\nGET\r\n$1\r\na\r\nLRANGE a 0 1\r\n"[..],
        b"",
        b"PING",
        b"CONFIG SET maxmemory 0\r\nMGET a b c\r\n",
    ] {
        let theirs = run(&mut redis_cli(&["-p", &port, "--pipe"]), Some(input));
        let ours = run(&mut respool_cli(&["-p", &port, "--pipe"]), Some(input));
        assert_eq!(ours, theirs, "{}", input.escape_ascii());
    }
}

#[test]
fn input_that_ends_within_a_request_is_told_with_what_was_done() {
    let server = server();
    for (input, errors, replies) in [
        (&b"SET a 1\r\nGET\r\n*3\r\n$3\r\nSET\r\n$1\r\nb\r\n$10\r\nhalf"[..], 1, 2),
        (b"*2\r\n$3\r\nGE", 0, 0),
        (b"*1\r\n$4\r\nPING\r\n*", 0, 1),
    ] {
        let run = at(&server, &["--pipe", "--pipe-timeout", "60"], Some(input));
        let told = (run.code, run.stdout.as_str());
        assert_eq!(told, (Some(1), &*format!("errors: {errors}, replies: {replies}\n")), "{run:?}");
        let words = format!("ends in the middle of a request, which was not executed; {replies} whole requests");
        assert!(run.stderr.contains(&words), "{run:?}");
    }
    assert_eq!(server.client().expect("a client").ask("EXISTS b").expect("a reply"), ":0\r\n");
}

#[test]
fn a_server_that_ends_is_no_success_of_mass_insertion() {
    let server = server();
    let run = at(&server, &["--pipe"], Some(b"SET a 1\r\nSHUTDOWN NOSAVE\r\n"));
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.stderr.contains("Server closed the connection"), "{run:?}");
}

#[test]
fn keys_are_named_by_pattern_type_and_count() {
    let server = server();
    let mut client = server.client().expect("a client");
    for number in 0..50 {
        client.ask(&format!("SET text:{number} v")).expect("a reply");
        client.ask(&format!("HSET hash:{number} f v")).expect("a reply");
    }
    let names = |args: &[&str]| {
        let run = at(&server, &[&["--scan"], args].concat(), None);
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
        run.stdout.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(names(&[]).len(), 100);
    assert_eq!(names(&["--pattern", "text:1?"]).len(), 10);
    let hashes = names(&["--type", "hash", "--count", "7"]);
    assert!(hashes.len() == 50 && hashes.iter().all(|name| name.starts_with("hash:")), "{hashes:?}");
}

#[test]
fn the_largest_keys_are_those_that_redis_cli_finds() {
    let server = server();
    let mut client = server.client().expect("a client");
    for words in
        ["RPUSH list a b c", "HSET hash f 1 g 2", "SADD set x y", "ZADD zset 1 m", "SET text 12345", "XADD s * f v"]
    {
        client.ask(words).expect("a reply");
    }
    let port = server.port().to_string();
    let lines = |run: crate::Run| {
        let mut lines: Vec<String> = run.stdout.lines().map(str::to_owned).collect();
        // redis-cli's order of types is that of a table of its own.
        lines.sort();
        lines
    };
    for mode in ["--bigkeys", "--memkeys"] {
        let theirs = lines(run(&mut redis_cli(&["-p", &port, mode]), None));
        assert_eq!(lines(at(&server, &[mode], None)), theirs, "{mode}");
    }
    let refused = at(&server, &["--hotkeys"], None);
    assert!(refused.code == Some(1) && refused.stderr.contains("LFU"), "{refused:?}");
    client.ask("CONFIG SET maxmemory-policy allkeys-lfu").expect("a reply");
    client.ask("SET hot v").expect("a reply");
    let hot = at(&server, &["--hotkeys"], None);
    assert!(hot.stdout.contains("hot key found with counter: ") && hot.code == Some(0), "{hot:?}");
}

#[test]
fn figures_of_the_server_are_printed_line_by_line() {
    let server = server();
    server.client().expect("a client").ask("SET key v").expect("a reply");
    let run = at(&server, &["--stat", "-r", "2", "-i", "0.01"], None);
    let lines: Vec<&str> = run.stdout.lines().collect();
    assert_eq!(lines.len(), 4, "{run:?}");
    assert!(lines[1].starts_with("keys       mem      clients") && lines[2].starts_with("1          "), "{run:?}");
}

#[test]
fn round_trips_are_measured() {
    let server = server();
    let figures = |args: &[&str]| at(&server, &[args, &["-i", "0.05"]].concat(), None).stdout;
    let words = figures(&["--latency"]).split(' ').map(str::to_owned).collect::<Vec<_>>();
    assert!(words.len() == 4 && words.iter().all(|word| word.trim().parse::<f64>().is_ok()), "{words:?}");
    assert_eq!(figures(&["--latency-history", "-r", "2", "--csv"]).lines().count(), 2);
    let spectrum = figures(&["--latency-dist", "-r", "1"]);
    assert!(spectrum.contains("milliseconds") && spectrum.lines().count() == 9, "{spectrum}");
    let own = run(&mut respool_cli(&["--intrinsic-latency", "0"]), None);
    assert!(own.stdout.contains("total runs"), "{own:?}");
}

#[test]
fn what_others_ask_and_publish_is_shown_as_it_comes() {
    let server = server();
    let port = server.port().to_string();
    for (args, said, shown) in [
        (&["monitor"][..], "SET watched 1", "\"SET\" \"watched\" \"1\""),
        (&["--monitor"], "SET watched 2", "\"SET\" \"watched\" \"2\""),
        (&["subscribe", "news"], "PUBLISH news hello", "hello"),
        (&["-3", "psubscribe", "n*", "m*"], "PUBLISH news hello", "hello"),
    ] {
        let mut command = respool_cli(&[&["-p", &port], args].concat());
        let process = respool_testkit::Process::spawn("cli", &mut command).expect("it starts");
        let mut client = server.client().expect("a client");
        wait_until(shown, PATIENCE, || {
            client.ask(said)?;
            Ok(process.output().iter().any(|line| line.contains(shown)))
        })
        .expect("it is shown");
    }
}
