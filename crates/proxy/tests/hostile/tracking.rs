//! Clients that are told of changed keys: their replies, and what is remembered for them.

use crate::NoEngine;
use crate::bench::{Bench, request, requests};
use crate::support::config;
use respool_connection::{ConnId, Machine};
use respool_proxy::Config;
use respool_proxy::limits::STRUCK_OUT_PER_TURN_MAX;

/// Keys that a client has read.
const READ: usize = 100_000;

#[test]
fn tracking_begins_without_a_reply_where_none_is_wanted() {
    for silence in ["SKIP", "OFF"] {
        for options in [&[][..], &["REDIRECT", "99"], &["NOLOOP"]] {
            let mut bench = Bench::proxy(config(1, 1));
            let client = bench.accept();
            assert!(bench.answer(client, &["HELLO", "3"]).starts_with('%'));
            assert_eq!(bench.answer(client, &["CLIENT", "REPLY", silence]), "");
            let mut said = request(&[&["CLIENT", "TRACKING", "ON"], options].concat());
            if silence == "OFF" {
                said.extend(request(&["CLIENT", "REPLY", "ON"]));
            }
            said.extend(request(&["ECHO", "next"]));
            bench.send(client, &said);
            for lane in bench.connect() {
                if requests(&bench.heard(lane)) == ["CLIENT TRACKING ON BCAST"] {
                    bench.send(lane, b"+OK\r\n");
                }
            }
            // Where it cannot be had, an error is as little wanted.
            let on = if silence == "OFF" { "+OK\r\n" } else { "" };
            assert_eq!(bench.heard(client), format!("{on}$4\r\nnext\r\n"), "{silence} {options:?}");
        }
    }
}

#[test]
fn a_failed_subscription_is_told_where_replies_are_wanted() {
    for (is_wanted, error) in [(true, "-ERR node node-0 is not available"), (false, "+OK\r\n")] {
        let mut bench = Bench::proxy(config(1, 1));
        let client = bench.accept();
        if !is_wanted {
            assert_eq!(bench.answer(client, &["CLIENT", "REPLY", "OFF"]), "");
        }
        bench.ask(client, &["SUBSCRIBE", "channel"]);
        bench.refuse_dials();
        bench.turn(|_| ());
        bench.ask(client, &["CLIENT", "REPLY", "ON"]);
        let heard = bench.heard(client);
        assert!(heard.starts_with(error) && heard.ends_with("+OK\r\n"), "{heard}");
    }
}

/// How a client comes to forget all that it has read.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Leaves,
    Off,
    Flush,
}

/// A RESP3 client that tracks, and the connection over which its node sends invalidations.
fn tracking(bench: &mut Bench<NoEngine>) -> (ConnId, ConnId) {
    let client = bench.accept();
    assert!(bench.answer(client, &["HELLO", "3"]).starts_with('%'));
    bench.ask(client, &["CLIENT", "TRACKING", "ON"]);
    let push = bench.connect()[0];
    bench.heard(push);
    bench.send(push, b"+OK\r\n");
    assert_eq!(bench.heard(client), "+OK\r\n");
    (client, push)
}

/// A push of a node: this key has changed.
fn invalid(key: &str) -> String {
    format!(">2\r\n$10\r\ninvalidate\r\n*1\r\n${}\r\n{key}\r\n", key.len())
}

/// A tracking client whose request waits at its node, with the connections for invalidations, for its reads, and for what waits.
fn waiting(bench: &mut Bench<NoEngine>, words: &[&str]) -> (ConnId, [ConnId; 3]) {
    let (client, push) = tracking(bench);
    bench.ask(client, &["GET", "k"]);
    let lane = bench.connect()[0];
    bench.send(lane, b"$1\r\n1\r\n");
    bench.heard(client);
    bench.ask(client, words);
    let blocking = bench.connect()[0];
    assert_eq!(requests(&bench.heard(blocking)), ["CLIENT ID"]);
    bench.send(blocking, b":7\r\n");
    assert_eq!(requests(&bench.heard(blocking)), [words.join(" ")]);
    assert_eq!(bench.heard(client), "");
    (client, [push, lane, blocking])
}

#[test]
fn who_waits_is_told_at_once_of_what_it_has_read_before() {
    for words in [
        &["BLPOP", "q", "0"][..],
        &["BLMOVE", "q", "r", "LEFT", "LEFT", "0"],
        &["XREAD", "BLOCK", "0", "STREAMS", "s", "$"],
    ] {
        let mut bench = Bench::proxy(config(1, 1));
        let (client, [push, _, blocking]) = waiting(&mut bench, words);
        bench.send(push, invalid("k").as_bytes());
        assert_eq!(bench.heard(client), invalid("k"), "{words:?}");
        bench.send(push, b">2\r\n$10\r\ninvalidate\r\n_\r\n");
        assert_eq!(bench.heard(client), ">2\r\n$10\r\ninvalidate\r\n_\r\n", "{words:?}");
        bench.send(blocking, b"_\r\n");
        // What it waited for and reads may have been read before everything changed.
        let again = if words[0] == "XREAD" { ">2\r\n$10\r\ninvalidate\r\n_\r\n" } else { "" };
        assert_eq!(bench.heard(client), format!("_\r\n{again}"), "{words:?}");
        bench.ask(client, &["GET", "k"]);
        bench.send(push, invalid("k").as_bytes());
        assert_eq!(bench.heard(client), "", "a reading that is under way is not overtaken");
    }
}

#[test]
fn who_waits_for_what_it_reads_is_told_again_behind_the_reply() {
    let mut bench = Bench::proxy(config(1, 1));
    let (client, [push, lane, blocking]) = waiting(&mut bench, &["XREAD", "BLOCK", "0", "STREAMS", "s", "t", "0", "$"]);
    for _ in 0..3 {
        bench.send(push, invalid("s").as_bytes());
    }
    assert_eq!(bench.heard(client), invalid("s"), "it has read it once");
    let entries = "%1\r\n$1\r\ns\r\n*0\r\n";
    bench.send(blocking, entries.as_bytes());
    assert_eq!(bench.heard(client), [entries, &invalid("s")].concat(), "and what it was given may be older");
    bench.send(push, invalid("t").as_bytes());
    assert_eq!(bench.heard(client), invalid("t"), "once");
    bench.ask(client, &["GET", "s"]);
    bench.send(lane, b"_\r\n");
    bench.send(push, invalid("s").as_bytes());
    assert_eq!(bench.heard(client), format!("_\r\n{}", invalid("s")));
}

/// It is told of every change, and none is kept for it while it waits.
#[test]
fn who_waits_and_hears_of_all_keys_is_kept_nothing_for() {
    let mut bench = Bench::proxy(config(1, 1));
    let client = bench.accept();
    bench.answer(client, &["HELLO", "3"]);
    bench.ask(client, &["CLIENT", "TRACKING", "ON", "BCAST"]);
    let push = bench.connect()[0];
    bench.heard(push);
    bench.send(push, b"+OK\r\n");
    bench.heard(client);
    bench.ask(client, &["XREAD", "BLOCK", "0", "STREAMS", "s", "$"]);
    let blocking = bench.connect()[0];
    bench.send(blocking, b":7\r\n");
    for _ in 0..1_000 {
        bench.send(push, invalid("s").as_bytes());
        assert_eq!(bench.heard(client), invalid("s"));
    }
    bench.send(blocking, b"_\r\n");
    assert_eq!(bench.heard(client), format!("_\r\n{}", invalid("s")), "once");
}

/// A client reads `READ` keys with ten requests.
fn read_very_many(bench: &mut Bench<NoEngine>, client: ConnId, lane: ConnId) {
    for part in 0..10 {
        let keys: Vec<String> = (0..READ / 10).map(|number| format!("key-{part}-{number}")).collect();
        let mut words = vec!["EXISTS"];
        words.extend(keys.iter().map(String::as_str));
        bench.ask(client, &words);
        bench.send(lane, b":0\r\n");
    }
}

#[test]
fn what_a_client_has_read_is_forgotten_in_slices() {
    for end in [End::Leaves, End::Off, End::Flush] {
        let mut bench = Bench::proxy(config(1, 1));
        let (client, push) = tracking(&mut bench);
        bench.ask(client, &["GET", "first"]);
        let lane = bench.connect()[0];
        bench.send(lane, b"$-1\r\n");
        read_very_many(&mut bench, client, lane);
        bench.heard(client);
        let left = |bench: &Bench<NoEngine>| {
            bench.worker.remains().into_iter().find(|(what, _)| *what == "subscribers").map_or(0, |(_, count)| count)
        };
        let mut before = left(&bench);
        assert!(before > READ, "{before}");
        let other = bench.accept();
        match end {
            End::Leaves => bench.turn(|worker| worker.handle_broken(client, "gone")),
            End::Off => assert_eq!(bench.answer(client, &["CLIENT", "TRACKING", "OFF"]), "+OK\r\n"),
            End::Flush => {
                bench.send(push, b">2\r\n$10\r\ninvalidate\r\n_\r\n");
                assert_eq!(bench.heard(client), ">2\r\n$10\r\ninvalidate\r\n_\r\n");
                // What it reads again is another matter than what it has read before.
                bench.ask(client, &["GET", "key-0-0"]);
                bench.send(lane, b"$-1\r\n");
                bench.heard(client);
            }
        }
        for _ in 0..READ / STRUCK_OUT_PER_TURN_MAX + 5 {
            let now = left(&bench);
            assert!(before.saturating_sub(now) <= 3 * STRUCK_OUT_PER_TURN_MAX, "{end:?}: {before} {now}");
            before = now;
            assert_eq!(bench.answer(other, &["ECHO", "x"]), "$1\r\nx\r\n", "others are served");
            bench.turn(|_| ());
        }
        assert!(before < 10, "{end:?}: {before}");
        bench.send(push, b">2\r\n$10\r\ninvalidate\r\n*1\r\n$7\r\nkey-0-0\r\n");
        let told = if end == End::Flush { ">2\r\n$10\r\ninvalidate\r\n*1\r\n$7\r\nkey-0-0\r\n" } else { "" };
        assert_eq!(bench.heard(client), told, "{end:?}");
        bench.send(push, b">2\r\n$10\r\ninvalidate\r\n*1\r\n$7\r\nkey-0-1\r\n");
        assert_eq!(bench.heard(client), "", "{end:?}: it has been told");
    }
}

/// A tracking client, an operator, and the connection that carries their requests to the node.
fn tracker(config: Config) -> (Bench<NoEngine>, [ConnId; 3]) {
    let mut bench = Bench::proxy(config);
    let (client, _) = tracking(&mut bench);
    let operator = bench.accept();
    bench.ask(operator, &["HELLO", "3"]);
    bench.ask(operator, &["EXISTS", "none"]);
    let lane = bench.connect()[0];
    bench.send(lane, b":0\r\n");
    bench.heard(client);
    bench.heard(operator);
    (bench, [client, operator, lane])
}

/// The operator sets the bound of the table, at the node as well.
fn bound(bench: &mut Bench<NoEngine>, [_, operator, lane]: [ConnId; 3], keys_max: &str) {
    bench.heard(lane);
    bench.ask(operator, &["CONFIG", "SET", "tracking-table-max-keys", keys_max]);
    assert_eq!(requests(&bench.heard(lane)), [format!("CONFIG SET tracking-table-max-keys {keys_max}")]);
    bench.send(lane, b"+OK\r\n");
    assert_eq!(bench.heard(operator), "+OK\r\n");
}

#[test]
fn who_has_read_keys_beyond_the_bound_is_told_of_them() {
    let mut config = config(1, 1);
    config.subscriptions.tracked_keys_max = 3;
    let (mut bench, all) = tracker(config);
    let [client, _, lane] = all;
    let told = |heard: &str| heard.matches("invalidate").count();
    let mut heard = String::new();
    for key in ["a", "b", "c", "d", "e"] {
        bench.ask(client, &["GET", key]);
        bench.send(lane, b"$-1\r\n");
        heard.push_str(&bench.heard(client));
        assert_eq!(told(&heard), heard.matches("$-1\r\n").count().saturating_sub(3), "{heard}");
    }
    bound(&mut bench, all, "1");
    // Keys are forgotten at the end of a turn.
    bench.turn(|_| ());
    heard.push_str(&bench.heard(client));
    let names: Vec<&str> =
        ["a", "b", "c", "d", "e"].into_iter().filter(|key| heard.contains(&format!("$1\r\n{key}\r\n"))).collect();
    assert_eq!((told(&heard), names.len()), (4, 4), "all but one, each once: {heard}");
}

#[test]
fn a_bound_lowered_by_many_keys_is_reached_in_slices() {
    let (mut bench, all) = tracker(config(1, 1));
    let [client, operator, lane] = all;
    bound(&mut bench, all, "0");
    read_very_many(&mut bench, client, lane);
    assert_eq!(bench.heard(client), ":0\r\n".repeat(10));
    bound(&mut bench, all, "1");
    // The request took two turns.
    let mut told = bench.heard(client).matches("invalidate").count();
    assert!(told <= 2 * STRUCK_OUT_PER_TURN_MAX, "{told}");
    for _ in 0..READ / STRUCK_OUT_PER_TURN_MAX {
        bench.turn(|_| ());
        let now = bench.heard(client).matches("invalidate").count();
        assert!(now <= 2 * STRUCK_OUT_PER_TURN_MAX, "{now}");
        told += now;
        assert_eq!(bench.answer(operator, &["ECHO", "x"]), "$1\r\nx\r\n", "others are served");
    }
    assert_eq!(told, READ - 1);
}

#[test]
fn what_a_refused_transaction_would_have_read_is_not_tracked() {
    let (mut bench, [client, _, lane]) = tracker(config(1, 1));
    let push = bench.nodes[0];
    let changes = |bench: &mut Bench<NoEngine>, key: &str| {
        bench.send(push, format!(">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\n{key}\r\n").as_bytes());
        bench.heard(client)
    };
    let queue = |bench: &mut Bench<NoEngine>, key: &str| {
        assert_eq!(bench.answer(client, &["MULTI"]), "+OK\r\n");
        assert_eq!(bench.answer(client, &["GET", key]), "+QUEUED\r\n");
    };
    queue(&mut bench, "a");
    assert!(bench.answer(client, &["GET"]).starts_with("-ERR wrong number"));
    assert!(bench.answer(client, &["EXEC"]).starts_with("-EXECABORT "));
    assert_eq!(changes(&mut bench, "a"), "", "it has read nothing");
    queue(&mut bench, "b");
    assert!(bench.answer(client, &["EXEC", "now"]).starts_with("-EXECABORT "));
    queue(&mut bench, "c");
    bench.heard(lane);
    bench.ask(client, &["EXEC"]);
    bench.take_multi(lane);
    bench.send(lane, b"+OK\r\n+QUEUED\r\n*1\r\n$1\r\nv\r\n");
    assert!(bench.heard(client).ends_with("*1\r\n$1\r\nv\r\n"));
    assert_eq!(changes(&mut bench, "b"), "", "of the transaction before, which did not run");
    assert_eq!(changes(&mut bench, "c"), ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nc\r\n");
}

#[test]
fn a_refused_config_set_has_no_key_forgotten() {
    let mut bench = Bench::proxy(config(1, 1));
    let (client, _) = tracking(&mut bench);
    bench.ask(client, &["MGET", "a", "b", "c"]);
    let lane = bench.connect()[0];
    bench.send(lane, b"*3\r\n_\r\n_\r\n_\r\n");
    bench.heard(client);
    let other = bench.accept();
    let told = bench.answer(other, &["CONFIG", "SET", "tracking-table-max-keys", "1", "requirepass", "x"]);
    assert!(told.starts_with("-ERR "), "{told}");
    bench.turn(|_| ());
    assert_eq!(bench.heard(client), "");
    for (reply, told) in [("-ERR CONFIG SET failed\r\n", 0), ("+OK\r\n", 2)] {
        bench.ask(other, &["CONFIG", "SET", "tracking-table-max-keys", "1"]);
        bench.connect();
        bench.turn(|_| ());
        assert_eq!(bench.heard(client), "", "the node has not said yet whether it takes it");
        let (node, _) = bench.who_heard("CONFIG SET tracking-table-max-keys 1").expect("the node is asked");
        bench.send(node, reply.as_bytes());
        bench.turn(|_| ());
        assert_eq!(bench.heard(other), reply);
        assert_eq!(bench.heard(client).matches("invalidate").count(), told, "{reply}");
    }
}
