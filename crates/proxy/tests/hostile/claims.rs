//! Shared connections that bring one client more than it reads become that client's own: no other client loses a reply or its order.

use crate::bench::{Bench, request, requests};
use crate::support::config;
use crate::{NoEngine, limits};
use respool_connection::{ConnId, Machine, Service};
use respool_proxy::{Budgets, Config, Mail};
use std::sync::Arc;

const SOFT: usize = 256 << 10;
const HARD: usize = 4 << 20;

fn bench() -> Bench<NoEngine> {
    let config = config(1, 1);
    let budgets = Budgets { client_output_soft: SOFT, client_output_hard: HARD, ..config.budgets };
    Bench::proxy(Config { budgets, ..config })
}

fn value(bytes: usize) -> Vec<u8> {
    [format!("${bytes}\r\n").as_bytes(), &vec![b'v'; bytes], b"\r\n"].concat()
}

/// Two clients that share a connection, on which each has been answered once.
struct Pair {
    bench: Bench<NoEngine>,
    slow: ConnId,
    other: ConnId,
    shared: ConnId,
}

impl Pair {
    fn new() -> Self {
        let mut bench = bench();
        let (slow, other) = (bench.accept(), bench.accept());
        bench.ask(slow, &["GET", "a"]);
        bench.ask(other, &["GET", "b"]);
        let shared = bench.connect()[0];
        bench.send(shared, b"$1\r\na\r\n$1\r\nb\r\n");
        assert_eq!((bench.heard(slow), bench.heard(other)), ("$1\r\na\r\n".to_owned(), "$1\r\nb\r\n".to_owned()));
        bench.heard(shared);
        bench.read_on(slow, 0);
        Self { bench, slow, other, shared }
    }

    /// Time passes in small steps.
    fn wait(&mut self, us: u64) {
        for _ in 0..us / 10_000 {
            self.bench.wait(10_000);
            self.bench.turn(|_| {});
        }
    }

    /// A node goes on with what it has to say as far as it is read, and the slow client reads all that comes.
    fn read_all(&mut self, mut rest: &[u8]) {
        self.bench.read_on(self.slow, usize::MAX);
        for _ in 0..10_000 {
            rest = self.bench.offer(self.shared, rest);
            if rest.is_empty() {
                return;
            }
        }
        panic!("{} bytes are not read", rest.len());
    }
}

#[test]
fn who_comes_after_a_large_reply_has_another_connection() {
    let mut pair = Pair::new();
    pair.bench.ask(pair.slow, &["GET", "large"]);
    let large = value(3 << 20);
    pair.bench.send(pair.shared, &large[..100_000]);
    pair.bench.ask(pair.other, &["GET", "small"]);
    pair.bench.ask(pair.slow, &["GET", "next"]);
    let another = pair.bench.connect();
    assert_eq!(another.len(), 1, "it is dialled");
    assert_eq!(requests(&pair.bench.heard(another[0])), ["GET small"]);
    assert!(
        requests(&pair.bench.heard(pair.shared)).ends_with(&["GET next".to_owned()]),
        "in order, behind the large one"
    );
    pair.bench.send(another[0], b"$1\r\ns\r\n");
    assert_eq!(pair.bench.heard(pair.other), "$1\r\ns\r\n");
    let rest = [&large[100_000..], b"$1\r\nn\r\n"].concat();
    let left = pair.bench.offer(pair.shared, &rest).to_vec();
    assert!(left.len() > 2 << 20, "it waits at the node: {}", left.len());
    assert!(pair.bench.shared.ledger.held_bytes() < 1 << 20, "{}", pair.bench.shared.ledger.held_bytes());
    pair.read_all(&left);
    assert!(pair.bench.heard(pair.slow) == String::from_utf8_lossy(&[&large[..], b"$1\r\nn\r\n"].concat()));
    assert!(pair.bench.closed.is_empty());
}

#[test]
fn who_waits_behind_a_large_reply_is_answered_and_in_order() {
    let mut pair = Pair::new();
    pair.bench.ask(pair.slow, &["GET", "large"]);
    pair.bench.ask(pair.other, &["SET", "k", "1"]);
    let large = value(3 << 20);
    pair.bench.send(pair.shared, &large[..2 << 20]);
    pair.bench.heard(pair.shared);
    // It must not come before the SET, on whichever connection.
    pair.bench.ask(pair.other, &["GET", "k"]);
    assert!(pair.bench.dialling.is_empty() && pair.bench.heard(pair.shared).is_empty(), "it waits");
    pair.bench.send(pair.shared, &[&large[2 << 20..], b"+OK\r\n"].concat());
    assert_eq!(pair.bench.heard(pair.other), "+OK\r\n", "although the slow one has read nothing");
    let another = pair.bench.connect()[0];
    assert_eq!(requests(&pair.bench.heard(another)), ["GET k"]);
    pair.bench.send(another, b"$1\r\n1\r\n");
    assert_eq!(pair.bench.heard(pair.other), "$1\r\n1\r\n");
    pair.read_all(b"");
    assert_eq!(pair.bench.heard(pair.slow).len(), large.len());
}

#[test]
fn who_waits_behind_a_client_that_does_not_read_is_told_in_time() {
    let mut pair = Pair::new();
    pair.bench.ask(pair.slow, &["GET", "larger than it may leave unread"]);
    pair.bench.ask(pair.other, &["SET", "k", "1"]);
    let large = value(2 * HARD);
    let rest = [&large[..], b"+OK\r\n"].concat();
    let mut left: &[u8] = &rest;
    for _ in 0..400 {
        left = pair.bench.offer(pair.shared, left);
    }
    assert!(!pair.bench.is_read(pair.shared), "the slow one has all that it may leave unread");
    assert!((HARD..HARD + (1 << 20)).contains(&(rest.len() - left.len())), "{}", rest.len() - left.len());
    pair.wait(700_000);
    let told = pair.bench.heard(pair.other);
    assert!(told.starts_with("-ERR node node-0 ") && told.contains("may or may not"), "{told:?}");
    pair.bench.ask(pair.other, &["GET", "k"]);
    let another = pair.bench.connect()[0];
    assert_eq!(requests(&pair.bench.heard(another)), ["GET k"]);
    let left = left.to_vec();
    pair.read_all(&left);
    assert_eq!(pair.bench.heard(pair.slow).len(), large.len());
    assert_eq!(pair.bench.heard(pair.other), "", "what comes late is swallowed");
    assert!(pair.bench.closed.is_empty(), "no client is cut off");
    // The connection goes on as its reader's.
    pair.bench.ask(pair.slow, &["GET", "next"]);
    pair.bench.send(pair.shared, b"$1\r\nn\r\n");
    assert_eq!(pair.bench.heard(pair.slow), "$1\r\nn\r\n");
}

#[test]
fn a_late_transaction_is_followed_beside_a_slow_reader() {
    for (end, stays) in [("*1\r\n+OK\r\n", true), ("-BUSY still\r\n", false)] {
        let mut pair = Pair::new();
        let block = [request(&["MULTI"]), request(&["SET", "k", "1"]), request(&["EXEC"])].concat();
        pair.bench.send(pair.other, &block);
        assert!(pair.bench.take_multi(pair.shared));
        pair.bench.send(pair.shared, b"+OK\r\n+QUEUED\r\n*1\r\n+OK\r\n");
        assert!(pair.bench.heard(pair.other).ends_with("*1\r\n+OK\r\n"));
        pair.bench.ask(pair.slow, &["GET", "larger than it may leave unread"]);
        pair.bench.send(pair.other, &block);
        let rest = [&value(2 * HARD)[..], format!("+OK\r\n+QUEUED\r\n{end}").as_bytes()].concat();
        let mut left: &[u8] = &rest;
        for _ in 0..400 {
            left = pair.bench.offer(pair.shared, left);
        }
        pair.wait(700_000);
        assert!(pair.bench.heard(pair.other).contains("did not answer within 500 ms"));
        let left = left.to_vec();
        pair.read_all(&left);
        assert_eq!(pair.bench.heard(pair.slow).len(), value(2 * HARD).len());
        // Where the transaction is still open the next request would become part of it.
        pair.bench.heard(pair.shared);
        pair.bench.ask(pair.slow, &["GET", "next"]);
        assert_eq!(requests(&pair.bench.heard(pair.shared)) == ["GET next"], stays, "{end}");
        assert_eq!(pair.bench.closed.contains(&pair.shared), !stays, "{end}");
        pair.wait(100_000);
        assert_eq!(pair.bench.heard(pair.other), "", "what comes late is swallowed");
    }
}

#[test]
fn a_client_that_leaves_amid_a_large_reply_takes_none_along() {
    let mut pair = Pair::new();
    pair.bench.ask(pair.slow, &["GET", "large"]);
    pair.bench.ask(pair.other, &["SET", "k", "1"]);
    let large = value(3 << 20);
    pair.bench.send(pair.shared, &large[..100_000]);
    let slow = pair.slow;
    pair.bench.turn(|worker| worker.handle_broken(slow, "gone"));
    pair.bench.send(pair.shared, &[&large[100_000..], b"+OK\r\n"].concat());
    assert_eq!(pair.bench.heard(pair.other), "+OK\r\n");
    pair.wait(300_000);
    assert_eq!(pair.bench.closed, [pair.shared], "no client has it any more");
    let other = pair.other;
    pair.bench.turn(|worker| worker.handle_broken(other, "gone"));
    assert_eq!(pair.bench.worker.remains(), []);
}

#[test]
fn half_a_request_costs_no_other_on_its_connection() {
    for is_broken in [false, true] {
        let mut pair = Pair::new();
        pair.bench.read_on(pair.slow, usize::MAX);
        pair.bench.ask(pair.slow, &["GET", "large"]);
        pair.bench.ask(pair.other, &["SET", "k", "1"]);
        pair.bench.send(pair.shared, &value(3 << 20));
        let whole = request(&["SET", "large", &"v".repeat(2 << 20)]);
        pair.bench.send(pair.slow, &whole[..1 << 20]);
        assert_eq!(pair.bench.shared.counters[0].requests_in_pieces.value(), 1);
        let sending = pair.bench.connect();
        let slow = pair.slow;
        pair.bench.turn(|worker| match is_broken {
            true => worker.handle_broken(slow, "gone"),
            false => worker.handle_ended(slow),
        });
        pair.wait(200_000);
        assert_eq!(pair.bench.heard(pair.other), "", "it is not answered yet");
        pair.bench.send(pair.shared, b"+OK\r\n");
        assert_eq!(pair.bench.heard(pair.other), "+OK\r\n");
        pair.wait(200_000);
        assert!(
            pair.bench.closed.contains(&pair.shared) && sending.iter().all(|conn| pair.bench.closed.contains(conn))
        );
        let other = pair.other;
        pair.bench.turn(|worker| worker.handle_broken(other, "gone"));
        assert_eq!(pair.bench.worker.remains(), []);
    }
}

#[test]
fn replies_that_wait_behind_a_clients_own_are_not_late() {
    let mut pair = Pair::new();
    pair.bench.send(pair.slow, &request(&["GET", "large"]).repeat(3));
    let large = value(2 << 20);
    let all = large.repeat(3);
    let mut left: &[u8] = &all;
    pair.bench.read_on(pair.slow, 100_000);
    while !left.is_empty() {
        let before = left.len();
        left = pair.bench.offer(pair.shared, left);
        pair.wait(200_000);
        pair.bench.read_on(pair.slow, 700_000);
        assert!(left.len() < before || pair.bench.heard(pair.slow).len() > 1, "it gets on");
        assert!(pair.bench.shared.sum(|counters| counters.timeouts.value()) == 0);
    }
    pair.read_all(b"");
    assert!(pair.bench.closed.is_empty());
}

#[test]
fn a_client_that_does_not_read_is_owed_no_more_than_its_limit() {
    let mut pair = Pair::new();
    pair.bench.send(pair.slow, &request(&["GET", "k"]).repeat(1_000));
    let asked = requests(&pair.bench.heard(pair.shared)).len();
    assert!(asked <= limits::WINDOW_MIN.max(SOFT / limits::FIRST_REPLY_BYTES as usize) + 2, "{asked} at once");
    let reply = value(20_000);
    pair.bench.send(pair.shared, &reply.repeat(asked));
    // Another client is served on the same connection.
    pair.bench.ask(pair.other, &["GET", "small"]);
    let heard = requests(&pair.bench.heard(pair.shared));
    let more = heard.iter().filter(|request| *request == "GET k").count();
    assert!((asked + more) * reply.len() <= 2 * SOFT, "{asked} and {more} more");
    pair.bench.send(pair.shared, &[reply.repeat(more), b"$1\r\ns\r\n".to_vec()].concat());
    assert_eq!(pair.bench.heard(pair.other), "$1\r\ns\r\n");
    // Once it reads it is asked for the rest.
    pair.bench.read_on(pair.slow, usize::MAX);
    let mut answered = asked + more;
    while answered < 1_000 {
        let more = requests(&pair.bench.heard(pair.shared)).len();
        assert!(more > 0, "{answered} are answered, and no more is asked for");
        pair.bench.send(pair.shared, &reply.repeat(more));
        answered += more;
    }
    assert_eq!(pair.bench.heard(pair.slow).len(), 1_000 * reply.len());
    assert!(pair.bench.closed.is_empty());
}

#[test]
fn short_replies_are_not_expected_to_be_large() {
    for words in [&["SET", "k", "v"][..], &["SET", "k", "v", "EX", "10"], &["INCR", "n"]] {
        let mut pair = Pair::new();
        pair.bench.send(pair.slow, &request(words).repeat(1_000));
        assert_eq!(requests(&pair.bench.heard(pair.shared)).len(), 1_000, "{words:?}");
    }
    // A value that is given back by a write is as large as any.
    let mut pair = Pair::new();
    pair.bench.send(pair.slow, &request(&["SET", "k", "v", "GET"]).repeat(1_000));
    let first = requests(&pair.bench.heard(pair.shared)).len();
    assert!(first <= limits::WINDOW_MIN.max(SOFT / limits::FIRST_REPLY_BYTES as usize) + 2, "{first} at once");
}

#[test]
fn short_replies_open_the_window_as_others_do() {
    let mut pair = Pair::new();
    pair.bench.read_on(pair.slow, usize::MAX);
    for _ in 0..3 {
        pair.bench.send(pair.slow, &request(&["SET", "k", "v"]).repeat(100));
        pair.bench.send(pair.shared, &b"+OK\r\n".repeat(100));
    }
    assert_eq!(pair.bench.heard(pair.slow).len(), 1_500);
    pair.bench.heard(pair.shared);
    // What is known of its replies is seen by the number of large ones that it may ask for at once.
    pair.bench.send(pair.slow, &request(&["GET", "k"]).repeat(200));
    assert_eq!(requests(&pair.bench.heard(pair.shared)).len(), 200);
}

#[test]
fn short_replies_do_not_let_large_ones_pass() {
    let mut pair = Pair::new();
    let mixed = [request(&["GET", "k"]), request(&["SET", "k", "v"])].concat();
    pair.bench.send(pair.slow, &mixed.repeat(1_000));
    let asked = requests(&pair.bench.heard(pair.shared));
    let large = asked.iter().filter(|request| *request == "GET k").count();
    assert!(large <= limits::WINDOW_MIN.max(SOFT / limits::FIRST_REPLY_BYTES as usize) + 2, "{large} at once");
    // What is asked behind a long row of short ones is compared as well.
    let mut pair = Pair::new();
    let mixed = [request(&["SET", "k", "v"]).repeat(500), request(&["GET", "k"]).repeat(500)].concat();
    pair.bench.send(pair.slow, &mixed);
    let asked = requests(&pair.bench.heard(pair.shared));
    let large = asked.iter().filter(|request| *request == "GET k").count();
    assert!(asked.len() >= 500 && large <= 1, "{large} of {}", asked.len());
}

#[test]
fn replies_that_turn_out_large_are_left_at_the_node() {
    let mut pair = Pair::new();
    // It has been given small ones, so it may have many outstanding.
    pair.bench.read_on(pair.slow, usize::MAX);
    for _ in 0..8 {
        pair.bench.send(pair.slow, &request(&["GET", "k"]).repeat(2_000));
        loop {
            let asked = requests(&pair.bench.heard(pair.shared)).len();
            if asked == 0 {
                break;
            }
            pair.bench.send(pair.shared, &b"$1\r\nk\r\n".repeat(asked));
        }
    }
    pair.bench.heard(pair.slow);
    pair.bench.read_on(pair.slow, 0);
    pair.bench.send(pair.slow, &request(&["GET", "k"]).repeat(2_000));
    let asked = requests(&pair.bench.heard(pair.shared)).len();
    assert!(asked * 30_000 > 2 * HARD, "{asked}");
    let all = value(30_000).repeat(asked);
    let mut left: &[u8] = &all;
    for _ in 0..200 {
        // As the loop does it: one read in a turn.
        let (now, later) = left.split_at(limits::READ_BYTES);
        let taken = now.len() - pair.bench.offer(pair.shared, now).len();
        left = &left[taken..];
        assert!(later.len() > all.len() / 2, "it is read on and on");
    }
    assert!(!pair.bench.is_read(pair.shared) && all.len() - left.len() < HARD, "{} are read", all.len() - left.len());
    pair.bench.ask(pair.other, &["GET", "small"]);
    let another = pair.bench.connect()[0];
    assert_eq!(requests(&pair.bench.heard(another)), ["GET small"]);
    let left = left.to_vec();
    pair.read_all(&left);
    assert!(pair.bench.closed.is_empty(), "it is not cut off");
}

#[test]
fn nothing_is_overtaken_when_a_drain_is_taken_back() {
    let mut pair = Pair::new();
    pair.bench.read_on(pair.slow, usize::MAX);
    pair.bench.ask(pair.slow, &["GET", "large"]);
    pair.read_all(&value(3 << 20));
    pair.bench.ask(pair.slow, &["SET", "k", "1"]);
    assert!(requests(&pair.bench.heard(pair.shared)).contains(&"SET k 1".to_owned()), "on its own connection");
    assert_eq!(pair.bench.answer(pair.other, &["PROXY", "DRAIN", "node-0"]), "+OK\r\n");
    assert_eq!(pair.bench.answer(pair.other, &["PROXY", "RESUME", "node-0"]), "+OK\r\n");
    pair.bench.ask(pair.slow, &["GET", "k"]);
    pair.bench.connect();
    assert!(pair.bench.who_heard("GET k").is_none(), "it would overtake the SET");
    pair.bench.send(pair.shared, b"+OK\r\n");
    pair.wait(10_000);
    pair.bench.connect();
    assert!(pair.bench.who_heard("GET k").is_some_and(|(conn, _)| conn != pair.shared), "now it may");
}

#[test]
fn a_script_that_is_brought_back_is_not_overtaken() {
    const HASH: &str = "e0e1f9fabfc9d4800c877a703b823ac0578ff8db";
    let mut pair = Pair::new();
    pair.bench.read_on(pair.slow, usize::MAX);
    pair.bench.ask(pair.other, &["SCRIPT", "LOAD", "return 1"]);
    pair.bench.send(pair.shared, format!("$40\r\n{HASH}\r\n").as_bytes());
    let run = request(&["EVALSHA", HASH, "1", "k"]);
    pair.bench.send(pair.slow, &[&run[..], &request(&["GET", "large"]), &run].concat());
    // What is asked while a script is owed goes over the same connection, which becomes the client's own.
    pair.shared = pair.bench.connect()[0];
    assert_eq!(requests(&pair.bench.heard(pair.shared)).len(), 3);
    pair.read_all(&[b":1\r\n", &value(3 << 20)[..], b"-NOSCRIPT No matching script.\r\n"].concat());
    assert!(pair.bench.heard(pair.slow).len() > 3 << 20);
    pair.bench.ask(pair.slow, &["GET", "k"]);
    let dialled = pair.bench.connect();
    assert_eq!(requests(&pair.bench.heard(dialled[0])), ["EVAL return 1 1 k"], "it is brought back");
    assert!(requests(&pair.bench.heard(pair.shared)).is_empty(), "GET would overtake the script");
    pair.bench.send(dialled[0], b":1\r\n");
    pair.wait(10_000);
    pair.bench.connect();
    assert!(pair.bench.who_heard("GET k").is_some(), "now it may");
}

/// Until then it had been little enough, so that its client was read as ever.
#[test]
fn a_lowered_limit_reads_on_once_the_client_has_read() {
    let mut pair = Pair::new();
    pair.bench.ask(pair.slow, &["GET", "large"]);
    let large = value(3 << 20);
    pair.bench.send(pair.shared, &large[..100_000]);
    let base = config(1, 1);
    let budgets = Budgets { client_output_soft: 64 << 10, client_output_hard: HARD, ..base.budgets };
    let smaller = Config { budgets, ..base };
    pair.bench.turn(|worker| worker.handle_mail(Mail::Reload(Arc::new(smaller))));
    pair.wait(100_000);
    pair.read_all(&large[100_000..]);
    assert_eq!(pair.bench.heard(pair.slow).len(), large.len());
}
