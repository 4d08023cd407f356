//! Messages that come while the worker has more to read, or come one upon the other, leave in one write, in order; one that comes alone is
//! not held by a worker with time.

use crate::bench::Bench;
use crate::support::{NoEngine, config};
use respool_connection::flush::FLUSH_LIMITS;
use respool_connection::{ConnId, FlushPolicy, Machine, Wait};
use respool_proxy::Config;
use respool_proxy::limits::PUSH_OUTBOX_BYTES;

/// Two clients that subscribe to the same channel, and the connection over which its node sends.
fn subscribers() -> (Bench<NoEngine>, [ConnId; 2], ConnId) {
    let mut bench = Bench::proxy(Config { flush: FlushPolicy::Immediate, ..config(1, 1) });
    let clients = [bench.accept(), bench.accept()];
    let lane = bench.subscribe(clients[0], "c");
    bench.ask(clients[1], &["SUBSCRIBE", "c"]);
    bench.heard(clients[1]);
    (bench, clients, lane)
}

fn message(first: char, text: &str) -> String {
    format!("{first}3\r\n$7\r\nmessage\r\n$1\r\nc\r\n${}\r\n{text}\r\n", text.len())
}

/// The node publishes in a turn for which the loop has not slept.
fn come_at_once(bench: &mut Bench<NoEngine>, lane: ConnId, text: &str) {
    bench.worker.handle_waited(0);
    bench.send(lane, message('>', text).as_bytes());
}

/// The loop looks once more, and nothing is there.
fn look_in_vain(bench: &mut Bench<NoEngine>) {
    assert!(bench.worker.next_wakeup_us().is_some_and(|at| at <= bench.now_us()), "it does not sleep on messages");
    assert!(matches!(bench.worker.wait(), Wait::Anything));
    bench.worker.handle_waited(0);
    bench.turn(|_| {});
}

#[test]
fn successive_messages_leave_in_one_write_and_in_order() {
    let (mut bench, clients, lane) = subscribers();
    assert!(bench.worker.measures_waits(), "the loop says whether it slept");
    for text in ["one", "two", "three"] {
        come_at_once(&mut bench, lane, text);
        assert_eq!(clients.map(|client| bench.heard(client)), ["", ""], "{text} waits for what is read next");
    }
    bench.order.clear();
    look_in_vain(&mut bench);
    let all = ["one", "two", "three"].map(|text| message('*', text)).concat();
    assert_eq!(clients.map(|client| bench.heard(client)), [all.clone(), all]);
    assert_eq!(bench.order.len(), 2, "one write for each");
    look_again(&mut bench, clients);
}

/// Nothing is written twice.
fn look_again(bench: &mut Bench<NoEngine>, clients: [ConnId; 2]) {
    bench.turn(|_| {});
    assert_eq!(clients.map(|client| bench.heard(client)), ["", ""]);
}

#[test]
fn after_sleep_a_message_is_written_in_the_turn_it_comes() {
    let (mut bench, clients, lane) = subscribers();
    bench.worker.handle_waited(300);
    bench.send(lane, message('>', "m").as_bytes());
    assert_eq!(clients.map(|client| bench.heard(client)), [message('*', "m"), message('*', "m")]);
}

#[test]
fn no_message_is_held_for_longer_than_a_millisecond() {
    let (mut bench, clients, lane) = subscribers();
    let began_us = bench.now_us();
    let mut sent = String::new();
    for number in 0.. {
        assert!(bench.now_us() < began_us + 2_000, "something is always there to be read");
        let text = number.to_string();
        come_at_once(&mut bench, lane, &text);
        sent += &message('*', &text);
        let heard = bench.heard(clients[0]);
        if !heard.is_empty() {
            assert_eq!(heard, sent);
            break;
        }
    }
    assert!(bench.now_us() >= began_us + 1_000);
}

#[test]
fn a_reply_takes_the_messages_before_it_along() {
    let (mut bench, clients, lane) = subscribers();
    come_at_once(&mut bench, lane, "m");
    bench.worker.handle_waited(0);
    bench.ask(clients[0], &["GET", "a"]);
    let heard = bench.heard(clients[0]);
    let reply = heard.strip_prefix(&message('*', "m")).expect("the message comes first");
    assert!(reply.starts_with("-ERR Can't execute 'get'"), "{reply}");
    assert_eq!(bench.heard(clients[1]), "");
    look_in_vain(&mut bench);
    assert_eq!(clients.map(|client| bench.heard(client)), [String::new(), message('*', "m")]);
}

/// What waits for a client that does not read is not written with the others, and is not lost when it reads on.
#[test]
fn a_client_that_does_not_read_holds_up_no_other() {
    let (mut bench, clients, lane) = subscribers();
    let [stalled, other] = clients;
    bench.read_on(stalled, 0);
    let text = "x".repeat(3_000);
    let mut sent = String::new();
    for _ in 0..2 * PUSH_OUTBOX_BYTES / text.len() {
        come_at_once(&mut bench, lane, &text);
        sent += &message('*', &text);
    }
    look_in_vain(&mut bench);
    assert_eq!(bench.heard(other).len(), sent.len());
    assert_eq!(bench.heard(stalled), "");
    bench.read_on(stalled, usize::MAX);
    (0..4).for_each(|_| bench.turn(|_| {}));
    assert_eq!(bench.heard(stalled).len(), sent.len(), "all of them come, from the outbox and from behind it");
}

#[test]
fn a_client_that_leaves_takes_its_place_in_the_gathering_along() {
    let (mut bench, [leaver, other], lane) = subscribers();
    come_at_once(&mut bench, lane, "m");
    bench.turn(|worker| worker.handle_broken(leaver, "connection reset by peer"));
    let newcomer = bench.accept();
    assert_eq!(
        bench.answer(newcomer, &["CLIENT", "GETNAME"]),
        "$-1\r\n",
        "it hears nothing of what was meant for another"
    );
    assert_eq!(bench.heard(other), message('*', "m"));
}

/// The node publishes so often that further messages are expected while one is held. Nothing is held at the end.
fn come_often(bench: &mut Bench<NoEngine>, clients: [ConnId; 2], lane: ConnId) {
    for _ in 0..300 {
        bench.worker.handle_waited(10);
        bench.send(lane, message('>', "m").as_bytes());
    }
    bench.wait(1_000);
    bench.worker.handle_waited(1_000);
    bench.turn(|_| {});
    assert!(clients.map(|client| bench.heard(client)).iter().all(|heard| !heard.is_empty()));
}

/// What the clients have heard before and behind a turn in which nothing comes, and what the loop waits for between the two.
fn look(bench: &mut Bench<NoEngine>, clients: [ConnId; 2]) -> ([String; 2], Wait, [String; 2]) {
    let before = clients.map(|client| bench.heard(client));
    let wait = bench.worker.wait();
    bench.worker.handle_waited(0);
    bench.turn(|_| {});
    (before, wait, clients.map(|client| bench.heard(client)))
}

#[test]
fn where_messages_come_often_the_core_is_yielded_once() {
    let (mut bench, clients, lane) = subscribers();
    come_often(&mut bench, clients, lane);
    bench.worker.handle_waited(300);
    bench.send(lane, message('>', "one").as_bytes());
    let (before, wait, behind) = look(&mut bench, clients);
    assert!(matches!(wait, Wait::Yielding { .. }), "{wait:?}");
    assert_eq!((before, behind), ([String::new(), String::new()], ["one", "one"].map(|text| message('*', text))));
}

#[test]
fn where_messages_come_often_they_wait_for_replies_that_are_due() {
    let (mut bench, clients, lane) = subscribers();
    let other = bench.accept();
    bench.ask(other, &["GET", "a"]);
    let node = bench.connect()[0];
    bench.send(node, b"$-1\r\n");
    assert_eq!(bench.heard(other), "$-1\r\n");
    come_often(&mut bench, clients, lane);
    bench.ask(other, &["GET", "a"]);
    assert!(bench.heard(node).contains("GET"), "it is asked");
    for text in ["one", "two"] {
        bench.worker.handle_waited(60);
        bench.send(lane, message('>', text).as_bytes());
        let (before, wait, behind) = look(&mut bench, clients);
        assert!(matches!(wait, Wait::Yielding { .. }), "{wait:?}");
        assert_eq!([before, behind].concat(), [""; 4]);
        assert!(matches!(bench.worker.wait(), Wait::Nodes { .. }), "messages come with replies");
    }
    bench.order.clear();
    bench.worker.handle_waited(60);
    bench.send(node, b"$-1\r\n");
    let (before, wait, behind) = look(&mut bench, clients);
    assert!(matches!(wait, Wait::Yielding { .. }), "{wait:?}");
    let all = ["one", "two"].map(|text| message('*', text)).concat();
    assert_eq!((before, behind), ([String::new(), String::new()], [all.clone(), all]));
    assert_eq!(bench.order.iter().filter(|conn| clients.contains(conn)).count(), 2, "one write for each");
}

#[test]
fn a_lone_message_after_a_busy_time_leaves_in_its_turn() {
    let (mut bench, clients, lane) = subscribers();
    come_often(&mut bench, clients, lane);
    bench.wait(50_000);
    bench.worker.handle_waited(50_000);
    bench.send(lane, message('>', "m").as_bytes());
    assert_eq!(clients.map(|client| bench.heard(client)), [message('*', "m"), message('*', "m")]);
}

#[test]
fn messages_do_not_lengthen_what_nodes_are_waited_for() {
    let (mut bench, clients, lane) = subscribers();
    let other = bench.accept();
    bench.ask(other, &["GET", "a"]);
    let node = bench.connect()[0];
    bench.send(node, b"$-1\r\n");
    bench.heard(other);
    come_often(&mut bench, clients, lane);
    (0..FLUSH_LIMITS.senders_min).for_each(|_| bench.ask(other, &["SET", "a", "b"]));
    assert!(bench.heard(node).contains("SET"));
    bench.worker.handle_waited(1);
    bench.turn(|_| {});
    let Wait::Nodes { until_us: due_us } = bench.worker.wait() else { panic!("{:?}", bench.worker.wait()) };
    bench.wait(900);
    bench.worker.handle_waited(900);
    bench.send(lane, message('>', "one").as_bytes());
    let mut heard = String::new();
    for _ in 0..5 {
        if let Wait::Nodes { until_us } = bench.worker.wait() {
            assert!(until_us <= due_us, "clients are not read until {until_us}, and were to be from {due_us} on");
        }
        bench.worker.handle_waited(0);
        bench.turn(|_| {});
        heard += &bench.heard(clients[0]);
        bench.wait(100);
    }
    assert_eq!(heard, message('*', "one"));
}
