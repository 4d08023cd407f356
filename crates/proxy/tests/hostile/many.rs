//! A hundred thousand of everything that a session can have: what one turn does about them is bounded, and others are served
//! between.

use crate::NoEngine;
use crate::bench::{Bench, request, requests, users};
use crate::support::config;
use respool_connection::limits::{PUSH_PATTERN_ORDERS_MAX, PUSH_PATTERN_ORDERS_MIN, PUSH_PATTERN_STEPS_MAX};
use respool_connection::{ConnId, Machine, Service};
use respool_proxy::limits::{NAMES_PER_TURN_MAX, OWN_PER_TURN_MAX, PATTERNS_PER_CLIENT_MAX, STRUCK_OUT_PER_TURN_MAX};
use respool_proxy::{Config, Mail, UserLimits};

const MANY: usize = 60_000;

/// Room for many replies that are not read at once.
fn roomy(nodes: usize) -> Config {
    let mut config = config(nodes, 1);
    config.budgets.client_output_soft = 64 << 20;
    config.budgets.client_output_hard = 256 << 20;
    config.budgets.process = 4 << 30;
    config
}

/// A client that waits for many subscriptions, each asked for by itself, and the connection to the node that is silent.
fn waiting(bench: &mut Bench<NoEngine>) -> (ConnId, ConnId) {
    let client = bench.accept();
    let lane = bench.subscribe(client, "first");
    let many: Vec<u8> = (0..MANY).flat_map(|number| request(&["SUBSCRIBE", &format!("ch{number}")])).collect();
    for piece in many.chunks(1 << 20) {
        bench.send(client, piece);
    }
    (client, lane)
}

/// Turns until the client has all errors: how many it got in the fullest of them.
fn most_in_a_turn(bench: &mut Bench<NoEngine>, client: ConnId) -> usize {
    let other = bench.accept();
    let (mut all, mut most) = (0, 0);
    for _ in 0..1_000 {
        bench.turn(|_| ());
        let failed = bench.heard(client).matches("-ERR node node-0").count();
        (all, most) = (all + failed, most.max(failed));
        assert_eq!(bench.answer(other, &["ECHO", "x"]), "$1\r\nx\r\n", "others are served");
        let failed = bench.heard(client).matches("-ERR node node-0").count();
        (all, most) = (all + failed, most.max(failed));
        if all == MANY {
            return most;
        }
    }
    panic!("{all} of {MANY} were answered");
}

#[test]
fn subscriptions_that_time_out_together_fail_in_slices() {
    let mut bench = Bench::proxy(roomy(1));
    let (client, _) = waiting(&mut bench);
    bench.wait(600_000);
    let most = most_in_a_turn(&mut bench, client);
    assert!(most <= STRUCK_OUT_PER_TURN_MAX, "{most}");
}

#[test]
fn subscriptions_that_rely_on_each_other_fail_once() {
    let mut bench = Bench::proxy(roomy(1));
    let (client, _) = waiting(&mut bench);
    // Each of them named once more, by requests that come behind.
    let mut words = vec!["SUBSCRIBE".to_owned()];
    words.extend((0..1_000).map(|number| format!("ch{number}")));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    (0..20).for_each(|_| bench.ask(client, &words));
    bench.wait(600_000);
    let mut errors = 0;
    for _ in 0..1_000 {
        bench.turn(|_| ());
        errors += bench.heard(client).matches("-ERR node node-0").count();
    }
    assert_eq!(errors, MANY + 20);
    bench.turn(|worker| worker.handle_broken(client, "gone"));
    (0..100).for_each(|_| bench.turn(|_| ()));
}

#[test]
fn a_client_with_many_pending_channels_is_forgotten_in_slices() {
    let mut bench = Bench::proxy(roomy(1));
    let (client, lane) = waiting(&mut bench);
    bench.turn(|worker| worker.handle_broken(client, "gone"));
    let left = |bench: &Bench<NoEngine>| {
        bench.worker.remains().into_iter().find(|(what, _)| *what == "subscribers").map_or(0, |(_, count)| count)
    };
    let mut before = left(&bench);
    assert!(before > MANY, "it is not forgotten at once: {before}");
    let other = bench.accept();
    for _ in 0..1_000 {
        bench.turn(|_| ());
        let now = left(&bench);
        // Each is counted as what waits, as a pair and as a channel.
        assert!(before - now <= 4 * STRUCK_OUT_PER_TURN_MAX, "{before} {now}");
        before = now;
        assert_eq!(bench.answer(other, &["ECHO", "x"]), "$1\r\nx\r\n");
    }
    bench.turn(|worker| worker.handle_broken(lane, "reset"));
    bench.turn(|worker| worker.handle_broken(other, "gone"));
    bench.turn(|_| ());
    assert_eq!(bench.worker.remains(), []);
}

#[test]
fn nodes_are_told_of_patterns_in_slices() {
    let mut bench = Bench::proxy(roomy(1));
    let client = bench.accept();
    let lane = bench.subscribe(client, "first");
    let mut words = vec!["PSUBSCRIBE".to_owned()];
    words.extend((0..PATTERNS_PER_CLIENT_MAX).map(|number| format!("{number}*")));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    bench.ask(client, &words);
    let other = bench.accept();
    let (mut told, mut slices) = (0, 0);
    while told < PATTERNS_PER_CLIENT_MAX {
        let said = requests(&bench.heard(lane));
        let names: Vec<&str> = said.iter().flat_map(|request| request.split(' ').skip(1)).collect();
        // The more the node has, the longer it takes for each.
        let most = PUSH_PATTERN_STEPS_MAX / (told + 1);
        let most = most.clamp(PUSH_PATTERN_ORDERS_MIN, PUSH_PATTERN_ORDERS_MAX);
        assert!((1..=most).contains(&names.len()), "{} of {told}", names.len());
        (told, slices) = (told + names.len(), slices + 1);
        // Meanwhile a channel is told of at once.
        if slices == 2 {
            bench.ask(other, &["SUBSCRIBE", "second"]);
            assert_eq!(requests(&bench.heard(lane)), ["subscribe second"]);
        }
        let mut replies = Vec::new();
        for name in names {
            replies.extend(format!(">3\r\n$10\r\npsubscribe\r\n${}\r\n{name}\r\n:1\r\n", name.len()).into_bytes());
        }
        if slices == 2 {
            replies.extend(b">3\r\n$9\r\nsubscribe\r\n$6\r\nsecond\r\n:1\r\n");
        }
        bench.send(lane, &replies);
    }
    assert!(slices > PATTERNS_PER_CLIENT_MAX / PUSH_PATTERN_ORDERS_MAX, "{slices}");
    assert!(bench.heard(other).contains("second"));
    assert_eq!(bench.heard(client).matches("psubscribe").count(), PATTERNS_PER_CLIENT_MAX);
    assert!(bench.answer(client, &["PSUBSCRIBE", "one-more*"]).starts_with("-ERR too many patterns"));
}

#[test]
fn what_a_transaction_asks_of_the_proxy_is_done_in_slices() {
    let mut bench = Bench::proxy(roomy(1));
    let [client, other] = [bench.accept(), bench.accept()];
    bench.ask(client, &["MULTI"]);
    let many: Vec<u8> = (0..MANY).flat_map(|_| request(&["CLIENT", "ID"])).collect();
    bench.send(client, &many);
    assert_eq!(bench.heard(client).matches("+QUEUED").count(), MANY);
    bench.send(client, &[request(&["EXEC"]), request(&["ECHO", "behind"])].concat());
    let (mut reply, mut turns) = (String::new(), 0);
    while !reply.ends_with("behind\r\n") {
        let said = bench.heard(client);
        // One part where it goes on, and one where the turn began.
        assert!(said.matches(':').count() <= 2 * OWN_PER_TURN_MAX, "{}", said.matches(':').count());
        reply.push_str(&said);
        assert_eq!(bench.answer(other, &["ECHO", "x"]), "$1\r\nx\r\n", "others are served");
        turns += 1;
        assert!(turns <= MANY, "{} bytes", reply.len());
    }
    let id = bench.answer(client, &["CLIENT", "ID"]);
    assert_eq!(reply, format!("*{MANY}\r\n{}$6\r\nbehind\r\n", id.repeat(MANY)));
    // One that leaves meanwhile leaves nothing behind.
    bench.ask(client, &["MULTI"]);
    bench.send(client, &many[..many.len() / 10]);
    bench.ask(client, &["EXEC"]);
    bench.turn(|worker| worker.handle_broken(client, "gone"));
    bench.turn(|worker| worker.handle_broken(other, "gone"));
    bench.turn(|_| ());
    assert_eq!(bench.worker.remains(), []);
}

/// A request with very many names, of which others are served in between. Gives what its client was told.
fn in_slices(bench: &mut Bench<NoEngine>, client: ConnId, lane: ConnId, words: &[&str]) -> String {
    let other = bench.accept();
    let left = |bench: &Bench<NoEngine>| {
        bench.worker.remains().into_iter().find(|(what, _)| *what == "subscribers").map_or(0, |(_, count)| count)
    };
    let (mut before, mut told) = (left(bench), String::new());
    bench.ask(client, words);
    for _ in 0..100 {
        let now = left(bench);
        // A pair, a channel and perhaps what is still to be heard of it; one part where the turn began and one where it ended.
        assert!(now.abs_diff(before) <= 6 * NAMES_PER_TURN_MAX, "{before} {now}");
        before = now;
        assert_eq!(bench.answer(other, &["ECHO", "x"]), "$1\r\nx\r\n", "others are served");
        let mut replies = String::new();
        for said in requests(&bench.heard(lane)) {
            if said == "PING" {
                replies.push_str("+PONG\r\n");
            }
            let mut words = said.split(' ');
            let verb = words.next().unwrap();
            words.for_each(|name| {
                replies.push_str(&format!(">3\r\n${}\r\n{verb}\r\n${}\r\n{name}\r\n:1\r\n", verb.len(), name.len()));
            });
        }
        bench.send(lane, replies.as_bytes());
        told.push_str(&bench.heard(client));
    }
    bench.turn(|worker| worker.handle_broken(other, "gone"));
    told
}

#[test]
fn one_request_with_many_names_is_dealt_with_in_slices() {
    let mut bench = Bench::proxy(roomy(1));
    let client = bench.accept();
    bench.ask(client, &["HELLO", "3"]);
    let lane = bench.subscribe(client, "first");
    let names: Vec<String> = (0..MANY).map(|number| format!("ch{number}")).collect();
    let with =
        |word: &'static str| -> Vec<&str> { std::iter::once(word).chain(names.iter().map(String::as_str)).collect() };
    let told = in_slices(&mut bench, client, lane, &with("SUBSCRIBE"));
    assert_eq!(told.matches("subscribe\r\n").count(), MANY);
    assert!(told.ends_with(&format!("ch{}\r\n:{}\r\n", MANY - 1, MANY + 1)), "in order");
    let told = in_slices(&mut bench, client, lane, &with("UNSUBSCRIBE"));
    assert_eq!(told.matches("unsubscribe\r\n").count(), MANY);
    assert!(told.ends_with(&format!("ch{}\r\n:1\r\n", MANY - 1)), "in order");
    let told = in_slices(&mut bench, client, lane, &with("SUBSCRIBE"));
    assert_eq!(told.matches("subscribe\r\n").count(), MANY);
    let told = in_slices(&mut bench, client, lane, &["UNSUBSCRIBE"]);
    assert_eq!(told.matches("unsubscribe\r\n").count(), MANY + 1);
    assert!(told.ends_with(":0\r\n"), "all of them");
    assert_eq!(bench.answer(client, &["ECHO", "x"]), "$1\r\nx\r\n");
    bench.turn(|worker| worker.handle_broken(client, "gone"));
    bench.turn(|worker| worker.handle_broken(lane, "reset"));
    bench.turn(|_| ());
    assert_eq!(bench.worker.remains(), []);
}

#[test]
fn a_request_with_many_names_fails_once() {
    let mut bench = Bench::proxy(roomy(1));
    let client = bench.accept();
    let names: Vec<String> = (0..MANY).map(|number| format!("ch{number}")).collect();
    let mut words = vec!["SUBSCRIBE"];
    words.extend(names.iter().map(String::as_str));
    bench.send(client, &[request(&words), request(&["ECHO", "behind"])].concat());
    bench.refuse_dials();
    (0..100).for_each(|_| bench.turn(|_| ()));
    let heard = bench.heard(client);
    assert!(heard.starts_with("-ERR node node-0") && heard.matches("-ERR").count() == 1, "{}", &heard[..100]);
    assert!(heard.ends_with("\r\n$6\r\nbehind\r\n"));
    assert_eq!(bench.answer(client, &["PUBSUB", "NUMPAT"]), ":0\r\n");
    bench.turn(|worker| worker.handle_broken(client, "gone"));
    bench.turn(|_| ());
    assert_eq!(bench.worker.remains(), []);
}

/// A client sends one SUBSCRIBE with `MANY` channels.
fn subscribe_to_many(bench: &mut Bench<NoEngine>, client: ConnId, name: impl Fn(usize) -> String) {
    let names: Vec<String> = (0..MANY).map(name).collect();
    let words: Vec<&str> = std::iter::once("SUBSCRIBE").chain(names.iter().map(String::as_str)).collect();
    bench.ask(client, &words);
}

/// A client in the middle of a SUBSCRIBE with very many channels, and the connection to its node, which has acknowledged
/// none of them.
fn amid_names(bench: &mut Bench<NoEngine>) -> (ConnId, ConnId) {
    let client = bench.accept();
    let lane = bench.subscribe(client, "first");
    subscribe_to_many(bench, client, |number| format!("ch{number}"));
    (client, lane)
}

#[test]
fn a_drain_does_not_wait_for_names_that_are_not_read() {
    let mut bench = Bench::proxy(roomy(1));
    let (client, _) = amid_names(&mut bench);
    bench.turn(|worker| worker.handle_mail(Mail::Drain));
    for _ in 0..4 {
        bench.wait(30_000);
        bench.turn(|_| ());
    }
    assert!(bench.has_ended && bench.closed.contains(&client));
    let told = bench.heard(client);
    assert!(told.is_empty() || told == "-ERR the server is shutting down\r\n", "{told:?}");
}

#[test]
fn names_in_slices_are_waited_for_from_the_last_slice() {
    let mut bench = Bench::proxy(roomy(1));
    let (client, lane) = amid_names(&mut bench);
    let mut told = String::new();
    for _ in 0..20 {
        // All turns together take far longer than the request timeout, and no acknowledgement is late.
        bench.wait(300_000);
        bench.turn(|_| ());
        let mut replies = String::new();
        for said in requests(&bench.heard(lane)) {
            said.split(' ').skip(1).for_each(|name| {
                replies.push_str(&format!(">3\r\n$9\r\nsubscribe\r\n${}\r\n{name}\r\n:1\r\n", name.len()));
            });
        }
        bench.send(lane, replies.as_bytes());
        told.push_str(&bench.heard(client));
    }
    assert_eq!((told.matches("-ERR").count(), told.matches("subscribe\r\n").count()), (0, MANY));
}

#[test]
fn a_client_amid_names_ends_when_its_user_loses_channels() {
    let mut bench = Bench::of_many(roomy(1), 1, users(&[("ann", UserLimits::default())]));
    let (operator, client, other) = (bench.accept(), bench.accept(), bench.accept());
    for conn in [client, other] {
        assert_eq!(bench.answer(conn, &["AUTH", "ann", "secret"]), "+OK\r\n");
    }
    bench.ask(other, &["SUBSCRIBE", "early0"]);
    bench.connect();
    let name = |number: usize| format!("{}{number}", if number < MANY / 2 { "early" } else { "late" });
    subscribe_to_many(&mut bench, client, name);
    // All its subscriptions so far are permitted; the remaining names are not checked again.
    assert_eq!(bench.answer(operator, &["ACL", "SETUSER", "ann", "resetchannels", "&early*"]), "+OK\r\n");
    assert!(bench.closed.contains(&client) && !bench.closed.contains(&other));
}
