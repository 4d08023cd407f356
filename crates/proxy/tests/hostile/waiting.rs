//! Clients that end, or whose worker does, while a request of theirs waits at a node: what was taken for it just then.

use crate::NoEngine;
use crate::bench::{Bench, request, requests};
use crate::support::config;
use respool_connection::{ConnId, Machine, Service};
use respool_proxy::{Config, LaneLimits, Mail, Timeouts, limits};
use respool_route::{Pool, Reads, Rewrite, Route, Routes, When};
use std::sync::Arc;

/// One node, and a client that waits there with something behind its request.
struct Scene {
    bench: Bench<NoEngine>,
    client: ConnId,
    /// Where it waits.
    lane: ConnId,
    /// What the node has been asked since, and not answered.
    asked: Vec<(ConnId, String)>,
}

const TAKEN: &str = "*2\r\n$1\r\nq\r\n$1\r\nx\r\n";
const NOTHING: &str = "*-1\r\n";
const LONG_US: u64 = 200_000;

impl Scene {
    fn new(words: &[&str]) -> Self {
        let mut bench = Bench::proxy(config(1, 1));
        let client = bench.accept();
        bench.send(client, &[request(words), request(&["SET", "ran", "yes"])].concat());
        let mut scene = Self { bench, client, lane: client, asked: Vec::new() };
        scene.listen();
        scene.answer("CLIENT ID", ":7\r\n");
        scene.lane = scene.asked.iter().find(|(_, asked)| *asked == words.join(" ")).expect("it waits").0;
        scene.asked.clear();
        scene
    }

    /// Time passes, and the node hears what it is asked.
    fn listen(&mut self) {
        for _ in 0..3 {
            self.bench.wait(300);
            self.bench.turn(|_| ());
            self.bench.connect();
            for node in self.bench.nodes.clone() {
                self.asked.extend(requests(&self.bench.heard(node)).into_iter().map(|asked| (node, asked)));
            }
        }
    }

    /// The node answers everything that begins so. Gives how often it was asked.
    fn answer(&mut self, words: &str, reply: &str) -> usize {
        let all = std::mem::take(&mut self.asked);
        let (meant, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|(_, asked)| asked.starts_with(words));
        self.asked = others;
        meant.iter().for_each(|(node, _)| self.bench.send(*node, reply.as_bytes()));
        self.listen();
        meant.len()
    }

    /// What the client waits for comes, or does not.
    fn wakes(&mut self, reply: &str) {
        let lane = self.lane;
        self.bench.send(lane, reply.as_bytes());
        self.listen();
    }

    fn was_asked(&self, words: &str) -> bool {
        self.asked.iter().any(|(_, asked)| asked == words)
    }

    /// All that the client is told, and whether it has been closed.
    fn outcome(&mut self) -> (String, bool) {
        self.listen();
        (self.bench.heard(self.client), self.bench.closed.contains(&self.client))
    }
}

fn hangs_up(scene: &mut Scene) {
    let client = scene.client;
    scene.bench.turn(|worker| worker.handle_hung_up(client));
    scene.listen();
}

#[test]
fn what_is_taken_for_a_client_that_had_waited_is_put_back() {
    for (words, taken, undo) in [
        (&["BLPOP", "q", "0"][..], TAKEN, "LPUSH q x"),
        (&["BRPOP", "q", "0"], TAKEN, "RPUSH q x"),
        (&["BLMPOP", "0", "1", "q", "RIGHT"], "*2\r\n$1\r\nq\r\n*1\r\n$1\r\nx\r\n", "RPUSH q x"),
        (&["BZPOPMIN", "q", "0"], "*3\r\n$1\r\nq\r\n$1\r\nx\r\n$1\r\n2\r\n", "ZADD q NX 2 x"),
    ] {
        let mut scene = Scene::new(words);
        scene.bench.wait(LONG_US);
        hangs_up(&mut scene);
        scene.wakes(taken);
        assert!(scene.was_asked(undo), "{words:?}: {:?}", scene.asked);
        scene.answer("CLIENT UNBLOCK", ":0\r\n");
        assert_eq!(scene.outcome(), (String::new(), true), "{words:?}");
        assert!(!scene.was_asked("SET ran yes"), "{words:?}");
    }
}

/// A client, and another that can let its requests go. Gives the first one's number.
fn two(bench: &mut Bench<NoEngine>) -> (ConnId, ConnId, String) {
    let (client, other) = (bench.accept(), bench.accept());
    let number = bench.answer(client, &["CLIENT", "ID"]);
    (client, other, number.trim_start_matches(':').trim_end().to_owned())
}

#[test]
fn what_is_let_go_while_its_connection_is_dialled_is_not_sent() {
    let mut bench = Bench::proxy(config(1, 1));
    let (client, other, number) = two(&mut bench);
    bench.ask(client, &["BLPOP", "q", "0"]);
    assert!(!bench.dialling.is_empty(), "its node's name is looked up, or it is connected to");
    assert_eq!(bench.answer(other, &["CLIENT", "UNBLOCK", &number, "ERROR"]), ":1\r\n");
    assert_eq!(bench.heard(client), "-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n");
    for node in bench.connect() {
        let asked = requests(&bench.heard(node));
        assert!(!asked.iter().any(|asked| asked.contains("BLPOP")), "{asked:?}");
    }
    assert_eq!(bench.answer(other, &["CLIENT", "UNBLOCK", &number]), ":0\r\n");
}

#[test]
fn what_is_let_go_while_it_is_tried_is_told_what_came() {
    for (reply, told) in [
        ("+OK\r\n+QUEUED\r\n*1\r\n*-1\r\n", "-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n".to_owned()),
        ("+OK\r\n+QUEUED\r\n*1\r\n*2\r\n$1\r\nq\r\n$1\r\nx\r\n", TAKEN.to_owned()),
    ] {
        let usual = config(1, 1);
        let lanes = LaneLimits { blocking_max: 1, ..usual.lanes };
        let mut bench = Bench::proxy(Config { lanes, ..usual });
        let first = bench.accept();
        bench.ask(first, &["BLPOP", "other", "0"]);
        let lane = bench.connect()[0];
        bench.heard(lane);
        bench.send(lane, b":7\r\n");
        let (client, other, number) = two(&mut bench);
        bench.ask(client, &["BLPOP", "q", "0"]);
        let mut tried = None;
        for _ in 0..20 {
            bench.wait(20_000);
            bench.turn(|_| ());
            bench.connect();
            tried = tried.or_else(|| bench.who_heard("MULTI").map(|(conn, _)| conn));
        }
        let tried = tried.expect("it is tried without waiting");
        assert_eq!(bench.answer(other, &["CLIENT", "UNBLOCK", &number, "ERROR"]), ":1\r\n");
        assert_eq!(bench.heard(client), "", "the node may have taken something for it");
        bench.send(tried, reply.as_bytes());
        assert_eq!(bench.heard(client), told);
    }
}

#[test]
fn what_has_been_moved_is_told_and_nothing_runs_behind_it() {
    let mut scene = Scene::new(&["BLMOVE", "q", "to", "LEFT", "LEFT", "0"]);
    scene.bench.wait(LONG_US);
    hangs_up(&mut scene);
    scene.wakes("$1\r\nx\r\n");
    scene.answer("CLIENT UNBLOCK", ":0\r\n");
    assert_eq!(scene.outcome(), ("$1\r\nx\r\n".to_owned(), true));
    assert!(!scene.was_asked("SET ran yes"));
}

#[test]
fn what_the_node_has_at_once_is_the_clients() {
    let mut scene = Scene::new(&["BLPOP", "q", "0"]);
    hangs_up(&mut scene);
    scene.wakes(TAKEN);
    assert!(scene.was_asked("SET ran yes"), "as if it had not had to wait: {:?}", scene.asked);
    scene.answer("CLIENT UNBLOCK", ":0\r\n");
    scene.answer("SET", "+OK\r\n");
    assert_eq!(scene.outcome(), (format!("{TAKEN}+OK\r\n"), false));
    assert!(!scene.was_asked("LPUSH q x"));
}

#[test]
fn nothing_runs_behind_a_request_that_was_let_go() {
    for waited_us in [0, LONG_US] {
        let mut scene = Scene::new(&["BLPOP", "q", "0"]);
        scene.bench.wait(waited_us);
        hangs_up(&mut scene);
        assert!(scene.answer("CLIENT UNBLOCK 7", ":1\r\n") > 0);
        scene.wakes(NOTHING);
        assert_eq!(scene.outcome(), (String::new(), true));
        assert!(!scene.was_asked("SET ran yes"));
    }
}

#[test]
fn nothing_runs_behind_one_whose_connection_broke() {
    let mut scene = Scene::new(&["BLPOP", "q", "0"]);
    hangs_up(&mut scene);
    let lane = scene.lane;
    scene.bench.turn(|worker| worker.handle_broken(lane, "gone"));
    let (heard, is_closed) = scene.outcome();
    assert!(heard.starts_with("-ERR node") && heard.matches("\r\n").count() == 1 && is_closed, "{heard:?}");
    assert!(!scene.was_asked("SET ran yes"));
}

#[test]
fn a_client_that_has_gone_is_dropped_at_once() {
    let mut scene = Scene::new(&["BLPOP", "q", "0"]);
    let client = scene.client;
    scene.bench.turn(|worker| {
        worker.handle_hung_up(client);
        worker.handle_gone(client);
    });
    assert!(scene.bench.closed.contains(&client));
    scene.listen();
    scene.wakes(TAKEN);
    assert!(scene.was_asked("LPUSH q x") && !scene.was_asked("SET ran yes"), "{:?}", scene.asked);
}

#[test]
fn one_that_has_gone_before_does_not_begin_to_wait() {
    let mut bench = Bench::proxy(config(1, 1));
    let client = bench.accept();
    bench.turn(|worker| {
        worker.handle_hung_up(client);
        worker.handle_gone(client);
    });
    bench.send(
        client,
        &[request(&["GET", "k"]), request(&["BLPOP", "q", "0"]), request(&["SET", "ran", "yes"])].concat(),
    );
    let node = bench.connect()[0];
    assert_eq!(requests(&bench.heard(node)), ["GET k"], "what it has sent is done as far as it can be done at once");
    bench.send(node, b"$-1\r\n");
    bench.wait(10_000);
    bench.turn(|_| ());
    assert!(bench.closed.contains(&client) && bench.dialling.is_empty());
    assert!(requests(&bench.heard(node)).is_empty());
}

#[test]
fn a_drain_closes_who_waits_without_a_word() {
    for reply in [NOTHING, TAKEN] {
        let mut scene = Scene::new(&["BLPOP", "q", "0"]);
        scene.bench.turn(|worker| worker.handle_mail(Mail::Drain));
        scene.listen();
        assert_eq!(scene.answer("CLIENT UNBLOCK 7", ":1\r\n"), 1);
        scene.wakes(reply);
        // What was taken for it in the last moment it gets.
        let expected = if reply == TAKEN { TAKEN } else { "" };
        scene.bench.wait(100_000);
        assert_eq!(scene.outcome(), (expected.to_owned(), true));
        assert!(!scene.was_asked("SET ran yes") && !scene.was_asked("LPUSH q x"), "{:?}", scene.asked);
    }
}

/// A client has gone, and what was taken for it is on the way back. Gives the shared connection.
fn puts_back(scene: &mut Scene) -> ConnId {
    let client = scene.client;
    scene.bench.turn(|worker| worker.handle_broken(client, "gone"));
    scene.listen();
    scene.wakes(TAKEN);
    scene.answer("CLIENT UNBLOCK", ":0\r\n");
    scene.asked.iter().find(|(_, asked)| asked == "LPUSH q x").expect("it is to go back").0
}

/// How often what was taken has been put back, and lost.
fn returned(scene: &Scene) -> (u64, u64) {
    let counters = &scene.bench.shared.counters[0];
    (counters.elements_put_back.value(), counters.elements_lost.value())
}

fn pass(scene: &mut Scene, us: u64) {
    for _ in 0..us / 50_000 {
        scene.bench.wait(50_000);
        scene.bench.turn(|_| ());
    }
    scene.listen();
}

#[test]
fn what_cannot_go_back_just_now_is_tried_again() {
    for refusal in ["-LOADING it is loading\r\n", "-OOM no\r\n", "-READONLY You can't write\r\n", "-BUSY running\r\n"] {
        let mut scene = Scene::new(&["BLPOP", "q", "0"]);
        puts_back(&mut scene);
        for _ in 0..3 {
            assert_eq!(scene.answer("LPUSH", refusal), 1, "{refusal}");
            pass(&mut scene, 200_000);
        }
        assert_eq!((scene.answer("LPUSH", ":1\r\n"), returned(&scene)), (1, (1, 0)));
        pass(&mut scene, 200_000);
        assert_eq!((scene.asked.len(), scene.bench.worker.remains()), (0, Vec::new()));
    }
}

#[test]
fn what_waits_to_go_back_outlasts_its_node() {
    let mut scene = Scene::new(&["BLPOP", "q", "0"]);
    let client = scene.client;
    // The client goes, and the shared connection with it; what is taken comes when there is none.
    scene.bench.turn(|worker| worker.handle_broken(client, "gone"));
    scene.listen();
    let shared = scene.asked.iter().find(|(_, asked)| asked.starts_with("CLIENT UNBLOCK")).expect("it is asked").0;
    let lane = scene.lane;
    scene.bench.turn(|worker| {
        let buffer = worker.read_buffer(lane).expect("it is read");
        buffer[..TAKEN.len()].copy_from_slice(TAKEN.as_bytes());
        worker.handle_read(lane, TAKEN.len());
        worker.handle_broken(shared, "gone");
    });
    scene.asked.clear();
    for _ in 0..5 {
        // It cannot be had for a while.
        for conn in std::mem::take(&mut scene.bench.dialling) {
            let failure = respool_connection::DialFailure::Refused("refused".to_owned());
            scene.bench.turn(|worker| worker.handle_dial_failed(conn, failure));
        }
        scene.bench.wait(200_000);
        scene.bench.turn(|_| ());
    }
    assert_eq!(returned(&scene), (0, 0));
    for _ in 0..5 {
        pass(&mut scene, 100_000);
    }
    assert_eq!((scene.answer("LPUSH q x", ":1\r\n"), returned(&scene)), (1, (1, 0)));
}

#[test]
fn what_was_sent_back_and_not_answered_is_not_sent_again() {
    let mut scene = Scene::new(&["BLPOP", "q", "0"]);
    let shared = puts_back(&mut scene);
    scene.asked.clear();
    scene.bench.turn(|worker| worker.handle_broken(shared, "gone"));
    pass(&mut scene, 500_000);
    assert_eq!((scene.answer("LPUSH", ":1\r\n"), returned(&scene)), (0, (0, 1)));
}

#[test]
fn putting_back_to_a_key_of_another_type_is_given_up() {
    let mut scene = Scene::new(&["BLPOP", "q", "0"]);
    puts_back(&mut scene);
    scene.answer("LPUSH", "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n");
    assert_eq!(returned(&scene), (0, 1));
    let mut scene = Scene::new(&["BLPOP", "q", "0"]);
    puts_back(&mut scene);
    let mut tries = 0;
    while returned(&scene) == (0, 0) {
        tries += scene.answer("LPUSH", "-LOADING it is loading\r\n");
        pass(&mut scene, 200_000);
        assert!(tries < 1_000, "it ends some time");
    }
    assert!(tries > 200, "{tries}");
    assert_eq!((returned(&scene), scene.bench.worker.remains()), ((0, 1), Vec::new()));
}

#[test]
fn nothing_goes_back_to_a_node_that_is_paused() {
    let mut scene = Scene::new(&["BLPOP", "q", "0"]);
    let (client, operator) = (scene.client, scene.bench.accept());
    scene.bench.turn(|worker| worker.handle_broken(client, "gone"));
    assert_eq!(scene.bench.answer(operator, &["PROXY", "PAUSE"]), "+OK\r\n");
    scene.listen();
    scene.wakes(TAKEN);
    scene.answer("CLIENT UNBLOCK", ":0\r\n");
    pass(&mut scene, 90_000_000);
    assert!(!scene.was_asked("LPUSH q x"), "{:?}", scene.asked);
    assert_eq!(scene.bench.answer(operator, &["PROXY", "RESUME"]), "+OK\r\n");
    pass(&mut scene, 150_000);
    // The pause has taken longer than all tries may take, and counts for none of that.
    assert_eq!(scene.answer("LPUSH q x", "-READONLY You can't write against a read only replica.\r\n"), 1);
    pass(&mut scene, 150_000);
    assert_eq!((scene.answer("LPUSH q x", ":1\r\n"), returned(&scene)), (1, (1, 0)));
}

#[test]
fn a_drain_waits_for_what_goes_back() {
    for answer in [":1\r\n", "-LOADING it is loading\r\n"] {
        let mut scene = Scene::new(&["BLPOP", "q", "0"]);
        puts_back(&mut scene);
        scene.bench.turn(|worker| worker.handle_mail(Mail::Drain));
        pass(&mut scene, 200_000);
        assert!(!scene.bench.has_ended);
        scene.answer("LPUSH", answer);
        pass(&mut scene, 200_000);
        assert_eq!(scene.bench.has_ended, answer == ":1\r\n");
        pass(&mut scene, 1_000_000);
        assert!(scene.bench.has_ended, "its time is over");
        assert_eq!(returned(&scene), if answer == ":1\r\n" { (1, 0) } else { (0, 1) });
    }
}

#[test]
fn what_comes_behind_is_read_ahead_within_a_bound() {
    let mut scene = Scene::new(&["BLPOP", "q", "0"]);
    let client = scene.client;
    let behind = request(&["SET", "k", &"x".repeat(60_000)]);
    for _ in 0..1_000 {
        scene.bench.send(client, &behind);
    }
    scene.bench.turn(|worker| assert!(worker.read_buffer(client).is_none(), "it has sent 60 MB"));
    let held = scene.bench.shared.ledger.held_bytes();
    assert!((4 << 20..9 << 20).contains(&held), "what is read is in the account: {held}");
    scene.bench.turn(|worker| worker.handle_broken(client, "gone"));
    assert!(scene.bench.shared.ledger.held_bytes() < 100_000);
}

/// WAIT asks every node, so what the last of them says may come when the client has long gone and another has its place.
#[test]
fn what_is_let_go_late_ends_no_client_that_came_later() {
    let mut bench = Bench::proxy(config(2, 1));
    let client = bench.accept();
    bench.ask(client, &["WAIT", "1", "0"]);
    let lanes = bench.connect();
    assert_eq!(lanes.len(), 2);
    for reply in [":7\r\n", ":0\r\n"] {
        lanes.iter().for_each(|lane| bench.send(*lane, reply.as_bytes()));
    }
    bench.turn(|worker| worker.handle_broken(client, "gone"));
    bench.connect();
    let other = bench.accept();
    assert_eq!(other, client, "it has the place of the one that has gone");
    // It waits behind a SELECT, with something that has not been looked at.
    bench.send(other, &[request(&["SELECT", "5"]), request(&["GET", "k"])].concat());
    lanes.iter().for_each(|lane| bench.send(*lane, b":0\r\n"));
    bench.connect();
    let (node, _) = bench.who_heard("GET k").expect("what it has sent is read on");
    bench.send(node, b"$1\r\nv\r\n");
    assert_eq!(bench.heard(other), "+OK\r\n$1\r\nv\r\n");
    assert!(!bench.closed.contains(&other));
}

/// A node that runs something slow answers nothing for a while, and has not read what a client waits for that has gone.
#[test]
fn a_busy_node_is_asked_once_to_let_a_request_go() {
    let base = config(1, 1);
    let timeouts = Timeouts { response_us: 10_000_000, silence_us: 20_000_000, ..base.timeouts };
    let mut bench = Bench::proxy(Config { timeouts, ..base });
    let client = bench.accept();
    bench.ask(client, &["BLPOP", "q", "0"]);
    let lane = bench.connect()[0];
    bench.send(lane, b":7\r\n");
    assert_eq!(requests(&bench.heard(lane)), ["CLIENT ID", "BLPOP q 0"]);
    bench.cut(client);
    let mut asked = Vec::new();
    for _ in 0..500 {
        bench.wait(10_000);
        bench.turn(|_| ());
        bench.connect();
        for node in bench.nodes.clone() {
            asked.extend(requests(&bench.heard(node)).into_iter().map(|asked| (node, asked)));
        }
    }
    assert!(!bench.closed.contains(&lane), "what it would take for the client would be lost");
    let [(other, unblock)] = &asked[..] else { panic!("{asked:?}") };
    assert_eq!(unblock, "CLIENT UNBLOCK 7");
    bench.send(*other, b":0\r\n");
    bench.send(lane, TAKEN.as_bytes());
    bench.turn(|_| ());
    assert!(bench.nodes.clone().iter().any(|node| bench.heard(*node).contains("PUSH")), "it is put back");
}

/// An element of some size, as it comes for a request that waits.
fn large_element(key: &str) -> Vec<u8> {
    let head = format!("*2\r\n${}\r\n{key}\r\n$900000\r\n", key.len());
    [head.as_bytes(), &vec![b'e'; 900_000][..], b"\r\n"].concat()
}

/// It comes over a slow link: longer than a reply may take, and never silent for so long.
fn send_slowly(
    bench: &mut Bench<NoEngine>,
    node: ConnId,
    bytes: &[u8],
    mut between: impl FnMut(&mut Bench<NoEngine>, usize),
) {
    for (number, piece) in bytes.chunks(20_000).enumerate() {
        bench.send(node, piece);
        bench.pass(100_000);
        between(bench, number);
    }
}

/// A client that waits at a node, another one, and the first one's number.
fn waits_with(words: &[&str]) -> (Bench<NoEngine>, ConnId, ConnId, ConnId, String) {
    let mut bench = Bench::proxy(config(1, 1));
    let (client, other, number) = two(&mut bench);
    bench.ask(client, words);
    let waiting = bench.connect()[0];
    bench.send(waiting, b":7\r\n");
    assert_eq!(requests(&bench.heard(waiting)), ["CLIENT ID", &words.join(" ")]);
    (bench, client, other, waiting, number)
}

#[test]
fn an_element_that_is_coming_is_not_given_up_for_its_time() {
    let (mut bench, client, _, waiting, _) = waits_with(&["BLPOP", "q", "1"]);
    bench.pass(900_000);
    let element = large_element("q");
    send_slowly(&mut bench, waiting, &element, |_, _| {});
    assert!(bench.heard(client) == String::from_utf8_lossy(&element));
    assert!(!bench.closed.contains(&client));
}

#[test]
fn an_element_that_is_coming_is_given_to_who_is_let_go() {
    let (mut bench, client, other, waiting, number) = waits_with(&["BLPOP", "q", "0"]);
    let element = large_element("q");
    send_slowly(&mut bench, waiting, &element, |bench, piece| {
        if piece == 1 {
            bench.ask(other, &["CLIENT", "UNBLOCK", &number]);
        }
        let asked: Vec<ConnId> = bench.connect();
        let nodes: Vec<ConnId> = asked.into_iter().chain(bench.nodes.clone()).collect();
        for node in nodes {
            let heard = requests(&bench.heard(node));
            heard.iter().filter(|words| words.starts_with("CLIENT UNBLOCK")).for_each(|_| bench.send(node, b":0\r\n"));
        }
    });
    assert!(bench.heard(client).starts_with("*2\r\n$1\r\nq\r\n$900000"));
    assert!(!bench.closed.contains(&waiting));
}

#[test]
fn an_element_that_is_coming_for_a_tried_request_is_not_late() {
    let lanes = LaneLimits { blocking_max: 1, ..LaneLimits::default() };
    let mut bench = Bench::proxy(Config { lanes, ..config(1, 1) });
    let (first, second) = (bench.accept(), bench.accept());
    bench.ask(first, &["BLPOP", "q1", "0"]);
    let waiting = bench.connect()[0];
    bench.send(waiting, b":7\r\n");
    bench.ask(second, &["BLPOP", "q2", "0"]);
    let looking = bench.connect()[0];
    bench.pass(100_000);
    assert!(bench.heard(looking).contains("BLPOP"), "it is tried");
    let element = large_element("q2");
    send_slowly(&mut bench, looking, &[b"+OK\r\n+QUEUED\r\n*1\r\n", &element[..]].concat(), |_, _| {});
    let heard = bench.heard(second);
    assert!(heard == String::from_utf8_lossy(&element), "{}", heard.get(..200).unwrap_or(&heard));
}

#[test]
fn a_large_element_is_left_at_the_node_until_its_client_reads() {
    const BYTES: usize = 12 << 20;
    let (mut bench, client, _, waiting, _) = waits_with(&["BLPOP", "q", "0"]);
    bench.read_on(client, 0);
    bench.pass(60_000_000);
    let element = [format!("*2\r\n$1\r\nq\r\n${BYTES}\r\n").as_bytes(), &vec![b'e'; BYTES][..], b"\r\n"].concat();
    let mut left: &[u8] = &element;
    for _ in 0..100 {
        // As the loop does it: one read in a turn.
        let now = &left[..left.len().min(limits::READ_BYTES)];
        left = &left[now.len() - bench.offer(waiting, now).len()..];
    }
    let held = bench.shared.ledger.held_bytes();
    assert!(held < 1 << 20 && left.len() > BYTES / 2, "{held} bytes are held, {} left at the node", left.len());
    bench.pass(5_000_000);
    bench.read_on(client, usize::MAX);
    while !left.is_empty() {
        let now = &left[..left.len().min(limits::READ_BYTES)];
        let taken = now.len() - bench.offer(waiting, now).len();
        assert!(taken > 0, "it is read on");
        left = &left[taken..];
    }
    assert!(bench.heard(client) == String::from_utf8_lossy(&element), "it is whole");
    bench.pass(200_000);
    assert!(bench.closed.contains(&waiting), "the connection has answered all that it owed");
    // What comes next waits as ever.
    bench.ask(client, &["BLPOP", "q", "0"]);
    let waiting = bench.connect()[0];
    bench.send(waiting, b":8\r\n");
    assert_eq!(requests(&bench.heard(waiting)), ["CLIENT ID", "BLPOP q 0"]);
    bench.send(waiting, TAKEN.as_bytes());
    assert_eq!(bench.heard(client), TAKEN);
}

#[test]
fn a_client_that_leaves_amid_a_large_element_takes_none_along() {
    let (mut bench, client, other, waiting, _) = waits_with(&["BLPOP", "q", "0"]);
    let element = large_element("q");
    bench.send(waiting, &element[..300_000]);
    bench.turn(|worker| worker.handle_broken(client, "gone"));
    bench.send(waiting, &element[300_000..]);
    bench.pass(200_000);
    assert_eq!(bench.heard(other), "");
    assert!(bench.closed.contains(&waiting));
    bench.turn(|worker| worker.handle_broken(other, "gone"));
    assert_eq!(bench.worker.remains(), []);
}

#[test]
fn who_waits_on_its_own_connection_takes_none_of_those_for_all() {
    let lanes = LaneLimits { blocking_max: 1, ..LaneLimits::default() };
    let mut bench = Bench::proxy(Config { lanes, ..config(1, 1) });
    let (client, other) = (bench.accept(), bench.accept());
    for words in [&["HELLO", "3"][..], &["CLIENT", "TRACKING", "ON", "NOLOOP"], &["BLPOP", "q", "0"]] {
        bench.ask(client, words);
        for node in bench.connect() {
            bench.send(node, b":7\r\n");
        }
    }
    assert!(bench.who_heard("BLPOP q 0").is_some(), "it waits");
    bench.heard(other);
    bench.ask(other, &["XREAD", "BLOCK", "0", "STREAMS", "s", "$"]);
    assert_eq!((bench.heard(other).as_str(), bench.connect().len()), ("", 1), "one is made for it");
}

/// Keys are called otherwise at their node behind a reload, and it is the same node.
#[test]
fn who_is_asked_back_to_its_own_connection_waits_on_there() {
    let renamed = |add: &str| {
        let base = config(1, 1);
        let route = Route {
            name: "all".into(),
            when: When::default(),
            pool: 0,
            rewrite: Rewrite { add: add.as_bytes().into(), ..Rewrite::default() },
            reads: Reads::Primary,
            dead_node: None,
            pool_mode: None,
        };
        let pools = vec![Pool::plain("main", Arc::clone(&base.topology))];
        Config { routes: Arc::new(Routes::new(pools, vec![route]).unwrap()), ..base }
    };
    let mut bench = Bench::proxy(renamed("p1:"));
    let client = bench.accept();
    for words in
        [&["HELLO", "3"][..], &["CLIENT", "TRACKING", "ON", "NOLOOP"], &["BLMOVE", "a", "b", "LEFT", "RIGHT", "0"]]
    {
        bench.ask(client, words);
        for node in bench.connect() {
            bench.send(node, b":7\r\n");
        }
    }
    let (own, _) = bench.who_heard("BLMOVE p1:a p1:b LEFT RIGHT 0").expect("it waits");
    bench.heard(client);
    bench.turn(|worker| worker.handle_mail(Mail::Reload(Arc::new(renamed("p2:")))));
    bench.pass(10_000);
    bench.connect();
    let (shared, _) = bench.who_heard("CLIENT UNBLOCK 7").expect("it is asked back");
    bench.send(shared, b":1\r\n");
    bench.send(own, b"_\r\n");
    bench.pass(10_000);
    for node in bench.connect() {
        bench.send(node, b":8\r\n");
    }
    // It waits on, and is told that other keys are behind the names that it knows.
    assert_eq!(bench.heard(client), ">2\r\n$10\r\ninvalidate\r\n_\r\n");
    let (own, _) = bench.who_heard("BLMOVE p2:a p2:b LEFT RIGHT 0").expect("by the new names");
    bench.send(own, b"$1\r\nx\r\n");
    assert_eq!(bench.heard(client), "$1\r\nx\r\n");
    assert!(!bench.closed.contains(&own));
}

/// What becomes of a request whose client does not take its reply as it comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// The client has gone.
    Gone,
    /// It was to wait no longer, but is there.
    LetGo,
    /// It wants no reply.
    Unwanted,
}

/// A node answers a request that waits with so many bytes of an element. Gives the most bytes that were held meanwhile, the elements that
/// were lost, and what the client is told then and to an ECHO.
fn held_of(words: &[&str], bytes: usize, ending: Ending) -> (usize, u64, String) {
    let mut bench = Bench::proxy(config(1, 1));
    let (client, other, number) = two(&mut bench);
    if ending == Ending::Unwanted {
        bench.ask(client, &["CLIENT", "REPLY", "OFF"]);
    }
    bench.ask(client, words);
    let waiting = bench.connect()[0];
    bench.send(waiting, b":7\r\n");
    assert_eq!(requests(&bench.heard(waiting)), ["CLIENT ID", &words.join(" ")]);
    bench.pass(LONG_US);
    match ending {
        Ending::Gone => bench.turn(|worker| worker.handle_broken(client, "gone")),
        Ending::LetGo => bench.ask(other, &["CLIENT", "UNBLOCK", &number]),
        Ending::Unwanted => {}
    }
    let before = bench.shared.ledger.held_bytes();
    let element = [format!("*2\r\n$1\r\nq\r\n${bytes}\r\n").as_bytes(), &vec![b'e'; bytes][..], b"\r\n"].concat();
    let mut held = 0;
    for piece in element.chunks(limits::READ_BYTES) {
        if bench.nodes.contains(&waiting) {
            bench.offer(waiting, piece);
        }
        held = held.max(bench.shared.ledger.held_bytes().saturating_sub(before));
    }
    let mut told = bench.heard(client);
    for words in [&["CLIENT", "REPLY", "ON"][..], &["ECHO", "a"]] {
        told.push_str(&bench.answer(client, words));
    }
    (held, bench.figure(other, "elements_lost"), told)
}

#[test]
fn what_comes_for_a_client_that_has_gone_is_bounded() {
    let fits = limits::RETURNS_BYTES_MAX / 2;
    let (held, lost, _) = held_of(&["BLPOP", "q", "0"], fits, Ending::Gone);
    assert!(held > fits && lost == 0, "it is put back: {held} bytes, {lost} lost");
    let (held, lost, _) = held_of(&["BLPOP", "q", "0"], 2 * limits::RETURNS_BYTES_MAX, Ending::Gone);
    assert!(held < limits::RETURNS_BYTES_MAX + (1 << 20) && lost == 1, "{held} bytes, {lost} lost");
    // Nothing undoes that, and no client reads it.
    let (held, lost, _) = held_of(&["XREAD", "BLOCK", "0", "STREAMS", "q", "0"], 8 << 20, Ending::Gone);
    assert!(held < 1 << 20 && lost == 0, "{held} bytes, {lost} lost");
}

#[test]
fn what_comes_for_one_that_is_let_go_is_bounded_as_any_reply() {
    let (held, lost, told) = held_of(&["BLPOP", "q", "0"], 3 << 20, Ending::LetGo);
    assert!(told.starts_with("*2\r\n$1\r\nq\r\n$3145728\r\n") && told.ends_with("+OK\r\n$1\r\na\r\n"));
    assert_eq!((lost, held > 3 << 20), (0, true));
    let (held, lost, told) = held_of(&["BLPOP", "q", "0"], 9 << 20, Ending::LetGo);
    assert!(told.starts_with("-ERR the reply is larger than client_output_hard_bytes"), "{told}");
    assert!(told.ends_with(" allows\r\n+OK\r\n$1\r\na\r\n"), "{told}");
    assert!(held < 5 << 20 && lost == 1, "{held} bytes, {lost} lost");
    let (held, lost, told) = held_of(&["BLPOP", "q", "0"], 9 << 20, Ending::Unwanted);
    assert_eq!((told.as_str(), lost), ("+OK\r\n$1\r\na\r\n", 0));
    assert!(held < 1 << 20, "{held} bytes");
}

#[test]
fn elements_for_clients_that_have_gone_share_a_bound() {
    let mut bench = Bench::proxy(config(1, 1));
    let other = bench.accept();
    let clients: Vec<ConnId> = (0..3).map(|_| bench.accept()).collect();
    let mut lanes = Vec::new();
    for client in &clients {
        bench.ask(*client, &["BLPOP", "q", "0"]);
        let waiting = bench.connect()[0];
        bench.send(waiting, b":7\r\n");
        lanes.push(waiting);
    }
    bench.pass(LONG_US);
    clients.iter().for_each(|client| bench.turn(|worker| worker.handle_broken(*client, "gone")));
    let bytes = limits::RETURNS_BYTES_MAX / 2;
    let element = [format!("*2\r\n$1\r\nq\r\n${bytes}\r\n").as_bytes(), &vec![b'e'; bytes][..], b"\r\n"].concat();
    let (begin, end) = element.split_at(bytes - 1_000);
    for (lane, piece) in begin.chunks(limits::READ_BYTES).flat_map(|piece| lanes.iter().map(move |lane| (*lane, piece)))
    {
        if bench.nodes.contains(&lane) {
            bench.offer(lane, piece);
        }
    }
    let left: Vec<ConnId> = lanes.into_iter().filter(|lane| bench.nodes.contains(lane)).collect();
    assert_eq!((left.len(), bench.figure(other, "elements_lost")), (2, 1));
    let held = bench.shared.ledger.held_bytes();
    assert!(held < limits::RETURNS_BYTES_MAX + (4 << 20), "{held} bytes are held");
    left.iter().for_each(|lane| bench.send(*lane, end));
    // As is usual, more is counted of the second than its bytes: there is no room for it beside the first.
    assert_eq!(bench.figure(other, "elements_lost"), 2);
}

#[test]
fn what_is_counted_by_wait_needs_no_ping_of_its_node() {
    let mut bench = Bench::proxy(config(1, 1));
    let client = bench.accept();
    bench.ask(client, &["WAIT", "1", "500"]);
    let node = bench.connect()[0];
    bench.send(node, b":7\r\n");
    // The first tells the node up to where its client has written.
    assert_eq!(requests(&bench.heard(node)), ["CLIENT ID", "WAIT 0 0", "WAIT 1 500"]);
    bench.send(node, b":0\r\n");
    assert_eq!(bench.heard(client), "");
    bench.send(node, b":1\r\n");
    assert_eq!(bench.heard(client), ":1\r\n");
}
