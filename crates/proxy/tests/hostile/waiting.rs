//! Clients that end, or whose worker does, while a request of theirs waits at a node: what was taken for it just then.

use crate::NoEngine;
use crate::bench::{Bench, request, requests};
use crate::support::config;
use respool_connection::{ConnId, Machine};
use respool_proxy::Mail;

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
        (&["BZPOPMIN", "q", "0"], "*3\r\n$1\r\nq\r\n$1\r\nx\r\n$1\r\n2\r\n", "ZADD q 2 x"),
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
