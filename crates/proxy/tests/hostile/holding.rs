//! Memory that a request makes the proxy hold until it is answered is in a budget, however small the request is.

use crate::bench::{Bench, request};
use crate::support::config;
use respool_connection::{ConnId, DialFailure, Machine};
use respool_proxy::{Budgets, Config, IntegrityTerms, LaneLimits, PoolMode, Timeouts};

/// Settings under which a client may ask for much before it has been answered anything.
fn generous(nodes: usize) -> Config {
    let config = config(nodes, 1);
    let budgets = Budgets { client_output_soft: 8 << 20, client_output_hard: 10 << 20, ..config.budgets };
    Config { budgets, ..config }
}

#[test]
fn an_evalsha_does_not_copy_its_script_and_is_accounted() {
    let mut bench = Bench::proxy(generous(1));
    let client = bench.accept();
    let script = format!("return 1 --{}", "x".repeat(900_000));
    bench.ask(client, &["EVAL", &script, "0"]);
    let node = bench.connect()[0];
    bench.send(node, b":1\r\n");
    // The hash of the script, as a client would have computed it.
    let hash = sha1_of(script.as_bytes());
    let held = bench.shared.ledger.held_bytes();
    bench.send(client, &request(&["EVALSHA", &hash, "0", "argument"]).repeat(200));
    let kept = bench.shared.ledger.held_bytes() - held;
    assert!((200 * 40..200 * 1_000).contains(&kept), "{kept} bytes for 200 requests");
    bench.send(node, b":1\r\n".repeat(200).as_slice());
    assert_eq!(bench.heard(client), ":1\r\n".repeat(201));
    assert_eq!(bench.shared.ledger.held_bytes(), held);
}

fn sha1_of(script: &[u8]) -> String {
    use sha1::{Digest, Sha1};
    Sha1::digest(script).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A key of each of two nodes.
fn keys_of_two_nodes(bench: &mut Bench<crate::NoEngine>, client: ConnId) -> (String, String) {
    let mut keys = (0..100).map(|number| format!("key:{number}"));
    let mut node_of = |key: &str| {
        let explained = bench.answer(client, &["PROXY", "EXPLAIN", "GET", key]);
        explained.split("\r\n").filter(|line| line.starts_with("node-")).last().unwrap_or_default().to_owned()
    };
    let first = keys.next().expect("there are many");
    let of_first = node_of(&first);
    let second = keys.find(|key| node_of(key) != of_first).expect("one of a hundred is elsewhere");
    (first, second)
}

#[test]
fn parts_of_a_reply_count_for_the_client_that_waits_for_it() {
    let mut bench = Bench::proxy(generous(2));
    let (client, bystander) = (bench.accept(), bench.accept());
    let (first, second) = keys_of_two_nodes(&mut bench, client);
    let pipeline = request(&["MGET", &first, &second]).repeat(100);
    bench.send(client, &pipeline);
    // One of the nodes answers, and with much; the other says nothing.
    let node = bench.connect()[0];
    let part = [b"*1\r\n$300000\r\n".as_slice(), &vec![b'v'; 300_000], b"\r\n"].concat();
    bench.send(node, &part);
    assert!(bench.shared.ledger.held_bytes() >= 300_000, "{}", bench.shared.ledger.held_bytes());
    for _ in 0..27 {
        bench.send(node, &part);
    }
    bench.turn(|worker| assert!(worker.read_buffer(client).is_none(), "it is not read on"));
    for _ in 0..10 {
        bench.send(node, &part);
    }
    let held = bench.shared.ledger.held_bytes();
    assert!((9 << 20..11 << 20).contains(&held), "{held} bytes are held for a client that may have 10 MB");
    assert!(bench.closed.is_empty(), "those that do not fit are errors");
    bench.turn(|worker| worker.handle_broken(client, "gone"));
    bench.send(node, &part);
    assert!(bench.shared.ledger.held_bytes() < 100_000, "{}", bench.shared.ledger.held_bytes());
    assert_eq!(bench.answer(bystander, &["PING"]), "+PONG\r\n");
}

#[test]
fn a_joined_reply_that_is_too_large_is_an_error_and_not_the_end() {
    let mut bench = Bench::proxy(config(2, 1));
    let (client, bystander) = (bench.accept(), bench.accept());
    let (first, second) = keys_of_two_nodes(&mut bench, client);
    bench.ask(client, &["MGET", &first, &second]);
    let node = bench.connect();
    bench.ask(bystander, &["GET", &first]);
    bench.ask(bystander, &["GET", &second]);
    // One part is more than the client may leave unread, and so are two together.
    for bytes in [[5 << 20, 10], [3 << 20, 3 << 20]] {
        for (node, bytes) in node.iter().zip(bytes) {
            let part = [format!("*1\r\n${bytes}\r\n").as_bytes(), &vec![b'v'; bytes], b"\r\n"].concat();
            bench.send(*node, &part);
        }
        let told = bench.heard(client);
        assert!(told.starts_with("-ERR the reply is larger than client_output_hard_bytes"), "{:?}", &told[..60]);
        assert!(bench.shared.ledger.held_bytes() < 100_000, "{}", bench.shared.ledger.held_bytes());
        for node in &node {
            bench.send(*node, b"$1\r\nb\r\n");
        }
        assert_eq!(bench.heard(bystander), "$1\r\nb\r\n".repeat(2), "the connections are in step");
        bench.ask(client, &["MGET", &first, &second]);
        bench.ask(bystander, &["GET", &first]);
        bench.ask(bystander, &["GET", &second]);
    }
    assert!(bench.closed.is_empty());
}

#[test]
fn what_has_to_be_read_as_a_whole_and_does_not_fit_is_not_kept() {
    // Nodes without RESP3 behind a client with it, with and without proofs; and a client that has gone.
    for every in [0, 1] {
        let integrity = IntegrityTerms { every, run: 0, held_bytes: 1 << 20 };
        let mut bench = Bench::proxy(Config { integrity, ..config(1, 1) });
        let (client, bystander) = (bench.accept(), bench.accept());
        for conn in [client, bystander] {
            assert!(bench.answer(conn, &["HELLO", "3"]).starts_with('%'));
        }
        bench.ask(client, &["GET", "large"]);
        bench.ask(bystander, &["HGETALL", "h"]);
        let node = bench.connect_old();
        let mark = |bench: &mut Bench<crate::NoEngine>| {
            let heard = bench.heard(node);
            heard.find("$24\r\nrespool:").map_or_else(String::new, |at| heard[at..].to_owned())
        };
        let seal = mark(&mut bench);
        assert_eq!(seal.is_empty(), every == 0);
        bench.send(node, b"$40000000\r\n");
        for _ in 0..400 {
            bench.send(node, &[b'v'; 100_000]);
        }
        let held = bench.shared.ledger.held_bytes();
        assert!(held < 6 << 20, "{held} bytes are held");
        bench.send(node, format!("\r\n*2\r\n+a\r\n+b\r\n{seal}").as_bytes());
        let told = bench.heard(client);
        assert!(told.starts_with("-ERR the reply is larger than client_output_hard_bytes"), "{:.80}", told);
        assert_eq!(bench.heard(bystander), "%1\r\n+a\r\n+b\r\n", "the connection is in step");
        assert!(bench.closed.is_empty());
    }
    for every in [0, 1] {
        let integrity = IntegrityTerms { every, run: 0, held_bytes: 1 << 20 };
        let mut bench = Bench::proxy(Config { integrity, ..config(2, 1) });
        let client = bench.accept();
        let (first, second) = keys_of_two_nodes(&mut bench, client);
        bench.ask(client, &["MGET", &first, &second]);
        let node = bench.connect()[0];
        bench.turn(|worker| worker.handle_broken(client, "gone"));
        bench.send(node, b"*1\r\n$40000000\r\n");
        for _ in 0..400 {
            bench.send(node, &[b'v'; 100_000]);
        }
        let held = bench.shared.ledger.held_bytes();
        assert!(held < 2 << 20, "{held} bytes are held for no client");
        assert!(bench.closed.is_empty());
    }
}

#[test]
fn what_has_been_gathered_is_given_back_with_the_reply() {
    let mut bench = Bench::proxy(config(2, 1));
    let client = bench.accept();
    let (first, second) = keys_of_two_nodes(&mut bench, client);
    bench.ask(client, &["MGET", &first, &second]);
    let nodes = bench.connect();
    let part = [b"*1\r\n$100000\r\n".as_slice(), &vec![b'v'; 100_000], b"\r\n"].concat();
    bench.send(nodes[0], &part);
    assert!(bench.shared.ledger.held_bytes() >= 100_000);
    bench.send(nodes[1], &part);
    assert!(bench.heard(client).starts_with("*2\r\n$100000\r\nv"));
    assert_eq!(bench.shared.ledger.held_bytes(), 0);
    assert_eq!(bench.answer(client, &["PING"]), "+PONG\r\n", "it is read on");
}

#[test]
fn what_a_client_waits_for_is_counted_as_long_as_it_waits() {
    let mut bench = Bench::proxy(config(1, 1));
    let client = bench.accept();
    let key = "k".repeat(1_000);
    let mut words = vec!["BLPOP"];
    words.extend(std::iter::repeat_n(key.as_str(), 50));
    words.push("0");
    bench.ask(client, &words);
    let held = bench.shared.ledger.held_bytes();
    assert!(held > 50_000, "{held}");
    let node = bench.connect()[0];
    bench.send(node, b":7\r\n");
    bench.send(node, b"*-1\r\n");
    assert_eq!(bench.heard(client), "*-1\r\n");
    assert_eq!(bench.shared.ledger.held_bytes(), 0);
}

#[test]
fn a_command_is_asked_for_again_soon_if_its_node_did_not_answer() {
    let mut bench = Bench::proxy(config(1, 1));
    let client = bench.accept();
    bench.ask(client, &["GET", "key"]);
    let node = bench.connect()[0];
    bench.send(node, b"$-1\r\n");
    bench.heard(client);
    bench.ask(client, &["FT.SEARCH", "index", "*"]);
    bench.turn(|worker| worker.handle_broken(node, "reset"));
    assert!(bench.heard(client).starts_with("-TRYAGAIN "), "it may well be known");
    bench.wait(1_500_000);
    bench.ask(client, &["FT.SEARCH", "index", "*"]);
    bench.connect();
    assert!(bench.who_heard("COMMAND INFO ft.search").is_some());
}

#[test]
fn queued_requests_count_until_they_are_written_or_given_up() {
    let value = "v".repeat(200_000);
    let modes = [(PoolMode::Multiplex, 0), (PoolMode::Session, 0), (PoolMode::Transaction, 2)];
    for ((mode, more), is_reached) in modes.into_iter().flat_map(|mode| [(mode, true), (mode, false)]) {
        let plain = config(1, 1);
        let lanes = LaneLimits { mode, ..plain.lanes };
        let mut bench = Bench::proxy(Config { lanes, ..plain });
        let client = bench.accept();
        let held = bench.shared.ledger.held_bytes();
        if more > 0 {
            bench.ask(client, &["MULTI"]);
        }
        bench.ask(client, &["SET", "key", &value]);
        if more > 0 {
            bench.ask(client, &["EXEC"]);
        }
        let counted = bench.shared.ledger.held_bytes() - held;
        assert!(counted >= value.len(), "{mode:?}: {counted} bytes");
        if is_reached {
            let node = bench.connect()[0];
            let counted = bench.shared.ledger.held_bytes() - held;
            assert!(more > 0 || counted < 1_000, "{mode:?}: {counted} bytes are still counted");
            bench.send(node, if more > 0 { b"+OK\r\n+QUEUED\r\n*1\r\n+OK\r\n" } else { b"+OK\r\n" });
        } else {
            let node = bench.dialling[0];
            bench.turn(|worker| worker.handle_dial_failed(node, DialFailure::TimedOut));
        }
        let heard = bench.heard(client);
        assert_eq!(heard.contains("-ERR"), !is_reached, "{mode:?}: {heard}");
        assert!(bench.shared.ledger.held_bytes() <= held, "{mode:?}: {}", bench.shared.ledger.held_bytes());
    }
}

#[test]
fn the_client_with_the_largest_queue_goes_first() {
    let plain = config(1, 1);
    let lanes = LaneLimits { mode: PoolMode::Session, ..plain.lanes };
    let budgets = Budgets { process: 300_000, ..plain.budgets };
    let timeouts = Timeouts { connect_us: 60_000_000, ..plain.timeouts };
    let mut bench = Bench::proxy(Config { lanes, budgets, timeouts, ..plain });
    let (small, large) = (bench.accept(), bench.accept());
    bench.ask(small, &["SET", "key", &"v".repeat(50_000)]);
    bench.ask(large, &["SET", "key", &"v".repeat(400_000)]);
    for _ in 0..10 {
        bench.wait(100_000);
        bench.turn(|_| {});
    }
    assert!(bench.closed.contains(&large), "it holds more than all others");
    assert!(!bench.closed.contains(&small));
}

#[test]
fn a_subscriber_that_does_not_read_goes_before_smaller_clients() {
    let plain = config(1, 1);
    let mut bench = Bench::proxy(Config { budgets: Budgets { process: 800_000, ..plain.budgets }, ..plain });
    let (stalled, other) = (bench.accept(), bench.accept());
    let lane = bench.subscribe(stalled, "c");
    bench.read_on(stalled, 0);
    // A request that is not whole.
    bench.send(other, format!("*2\r\n$3\r\nGET\r\n$200000\r\n{}", "k".repeat(150_000)).as_bytes());
    let message = format!(">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$50000\r\n{}\r\n", "m".repeat(50_000));
    for _ in 0..30 {
        if bench.closed.contains(&stalled) {
            break;
        }
        bench.send(lane, message.as_bytes());
        bench.wait(100_000);
        bench.turn(|_| {});
    }
    assert!(!bench.closed.contains(&other), "it holds 150 KB");
    assert!(bench.closed.contains(&stalled), "more waits for it");
}
