//! Requests for a node that is down, which the next node of the pool takes (`dead_node = next`).

use crate::NoEngine;
use crate::bench::{Bench, requests};
use crate::support::config;
use respool_connection::ConnId;
use respool_proxy::{Budgets, Config, LaneLimits};
use respool_route::{DeadNode, Pool, Routes};
use std::sync::Arc;

/// Bytes of an argument with which a request is large, and passed on as it comes.
const LARGE: usize = 1_000;

/// Two nodes, each of which takes what the other cannot.
fn with_next() -> Config {
    of_nodes(2)
}

fn of_nodes(nodes: usize) -> Config {
    let plain = config(nodes, 1);
    let mut config = Config { budgets: Budgets { request_whole: LARGE, ..plain.budgets }, ..plain };
    let pool = Pool { dead_node: DeadNode::Next, ..Pool::plain("main", Arc::clone(&config.topology)) };
    config.routes = Arc::new(Routes::plain(pool));
    config
}

/// What nodes are asked, and not answered yet.
struct Scene {
    bench: Bench<NoEngine>,
    client: ConnId,
    /// A key of the first node.
    key: String,
    asked: Vec<(ConnId, String)>,
}

impl Scene {
    /// The first node is down, as the worker knows.
    fn new() -> Self {
        Self::with(with_next())
    }

    fn with(config: Config) -> Self {
        let key = (0..100).map(|number| format!("k{number}"));
        let key = key.into_iter().find(|key| config.topology.place(key.as_bytes()).get() == 0);
        let key = key.expect("a hundred keys reach every node");
        let mut bench = Bench::proxy(config);
        let client = bench.accept();
        bench.ask(client, &["GET", &key]);
        bench.refuse_dials();
        assert!(bench.heard(client).contains("node-0 is not available"));
        Self { bench, client, key, asked: Vec::new() }
    }

    /// Time passes, dials to nodes succeed as far as these are there, and what nodes are asked is noted.
    fn listen(&mut self, is_first_there: bool) {
        for _ in 0..12 {
            self.bench.pass(20_000);
            let dialled = self.bench.dialling.clone();
            let (fails, succeeds): (Vec<_>, Vec<_>) =
                dialled.into_iter().partition(|conn| self.bench.node_of(*conn) == 0 && !is_first_there);
            self.bench.connect_these(&succeeds);
            assert!(self.bench.dialling.len() >= fails.len());
            self.bench.refuse_dials();
            for conn in self.bench.nodes.clone() {
                self.bench.take_multi(conn);
                let heard = requests(&self.bench.heard(conn));
                if heard.first().is_some_and(|words| words == "MULTI") {
                    // A look whether the element is there.
                    assert_eq!(heard.last().map(|words| &**words), Some("EXEC"), "{heard:?}");
                    self.bench.send(conn, b"+OK\r\n+QUEUED\r\n*1\r\n*-1\r\n");
                    continue;
                }
                for words in heard {
                    match &*words {
                        "CLIENT ID" => self.bench.send(conn, b":7\r\n"),
                        "PING" => self.bench.send(conn, b"+PONG\r\n"),
                        _ => self.asked.push((conn, words)),
                    }
                }
            }
        }
    }

    /// The connection on which a node was asked this. It is forgotten then.
    fn was_asked(&mut self, node: usize, words: &str) -> Option<ConnId> {
        let bench = &self.bench;
        let at = self.asked.iter().position(|(conn, asked)| asked == words && bench.node_of(*conn) == node)?;
        Some(self.asked.remove(at).0)
    }
}

#[test]
fn what_waits_for_a_dead_node_waits_where_others_push() {
    let mut scene = Scene::new();
    let (pop, push) = (format!("BLPOP {} 0", scene.key), format!("LPUSH {} x", scene.key));
    let (client, other) = (scene.client, scene.bench.accept());
    scene.bench.ask(client, &["BLPOP", &scene.key.clone(), "0"]);
    scene.bench.ask(other, &["LPUSH", &scene.key.clone(), "x"]);
    scene.listen(false);
    assert!(scene.was_asked(1, &push).is_some(), "{:?}", scene.asked);
    let waits = scene.was_asked(1, &pop).expect("it waits where the element is pushed");
    scene.bench.send(waits, format!("*2\r\n${}\r\n{}\r\n$1\r\nx\r\n", scene.key.len(), scene.key).as_bytes());
    assert!(scene.bench.heard(client).ends_with("$1\r\nx\r\n"));
    let routes = scene.bench.answer(client, &["PROXY", "SHOW", "ROUTES"]);
    assert!(routes.contains("requests\r\n:3\r\n"), "GET, BLPOP and LPUSH: {routes}");
}

#[test]
fn what_waits_at_a_stand_in_goes_home_when_the_node_is_back() {
    let mut scene = Scene::new();
    let (pop, get) = (format!("BLPOP {} 0", scene.key), format!("GET {}", scene.key));
    let (client, other) = (scene.client, scene.bench.accept());
    scene.bench.ask(other, &["GET", &scene.key.clone()]);
    scene.listen(false);
    let shared = scene.was_asked(1, &get).expect("the stand-in is asked");
    scene.bench.send(shared, b"$-1\r\n");
    scene.bench.ask(client, &["BLPOP", &scene.key.clone(), "0"]);
    scene.listen(false);
    let waits = scene.was_asked(1, &pop).expect("the stand-in is asked");
    scene.listen(false);
    assert!(scene.was_asked(1, "CLIENT UNBLOCK 7").is_none(), "its node is still down");
    scene.listen(true);
    let unblock = scene.was_asked(1, "CLIENT UNBLOCK 7").expect("it is let go, once its node is back");
    scene.bench.send(unblock, b":1\r\n");
    scene.bench.send(waits, b"*-1\r\n");
    scene.listen(true);
    let waits = scene.was_asked(0, &pop).expect("it waits where it belongs");
    assert_eq!(scene.bench.heard(client), "", "it knows nothing of all that");
    scene.bench.send(waits, format!("*2\r\n${}\r\n{}\r\n$1\r\nx\r\n", scene.key.len(), scene.key).as_bytes());
    assert!(scene.bench.heard(client).ends_with("$1\r\nx\r\n"));
}

#[test]
fn who_follows_a_stream_is_told_that_others_take_its_connection() {
    let lanes = LaneLimits { blocking_max: 1, ..LaneLimits::default() };
    let mut scene = Scene::with(Config { lanes, ..with_next() });
    let pop = format!("BLPOP {} 0", scene.key);
    let (client, follower) = (scene.client, scene.bench.accept());
    scene.bench.ask(follower, &["GET", &scene.key.clone()]);
    scene.listen(false);
    let shared = scene.was_asked(1, &format!("GET {}", scene.key)).expect("the stand-in is asked");
    scene.bench.send(shared, b"$-1\r\n");
    scene.bench.heard(follower);
    scene.bench.ask(client, &["BLPOP", &scene.key.clone(), "0"]);
    scene.listen(false);
    let waits = scene.was_asked(1, &pop).expect("the stand-in is asked");
    scene.listen(true);
    let unblock = scene.was_asked(1, "CLIENT UNBLOCK 7").expect("it is let go, once its node is back");
    // A connection is dialled for what is added from now on, and BLPOP has come before.
    scene.bench.ask(follower, &["XREAD", "BLOCK", "0", "STREAMS", &scene.key.clone(), "$"]);
    assert_eq!(scene.bench.dialling.len(), 1);
    scene.bench.send(unblock, b":1\r\n");
    scene.bench.send(waits, b"*-1\r\n");
    let told = scene.bench.heard(follower);
    assert!(told.starts_with("-ERR blocking connections to node node-0 are exhausted"), "{told:?}");
    scene.listen(true);
    assert!(scene.was_asked(0, &pop).is_some(), "{:?}", scene.asked);
}

/// What happens between the parts of a large request that a stand-in is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Amid {
    Nothing,
    /// The node itself is back.
    Back,
    /// The stand-in is lost, and there is another one.
    Lost,
}

/// Time passes; what each node is told is noted, and the request is answered where it has come whole.
fn pass_parts(scene: &mut Scene, there: [bool; 3], told: &mut [String; 3], whole: &str) {
    let bench = &mut scene.bench;
    for _ in 0..6 {
        bench.pass(20_000);
        let dialled = bench.dialling.clone();
        let succeeds: Vec<ConnId> = dialled.into_iter().filter(|conn| there[bench.node_of(*conn)]).collect();
        bench.connect_these(&succeeds);
        bench.refuse_dials();
        for conn in bench.nodes.clone() {
            let (node, heard) = (bench.node_of(conn), bench.heard(conn));
            heard.matches("\r\nPING\r\n").for_each(|_| bench.send(conn, b"+PONG\r\n"));
            let before = told[node].matches(whole).count();
            told[node].push_str(&heard);
            if told[node].matches(whole).count() > before {
                bench.send(conn, b"+OK\r\n");
            }
        }
    }
}

#[test]
fn a_large_request_is_whole_at_one_stand_in_or_nowhere() {
    for amid in [Amid::Nothing, Amid::Back, Amid::Lost] {
        let mut scene = Scene::with(of_nodes(3));
        let value = "v".repeat(5 * LARGE);
        let whole =
            format!("*3\r\n$3\r\nSET\r\n${}\r\n{}\r\n${}\r\n{value}\r\n", scene.key.len(), scene.key, value.len());
        let (client, mut told) = (scene.client, [const { String::new() }; 3]);
        let mut there = [false, true, true];
        let parts: Vec<&[u8]> = whole.as_bytes().chunks(2 * LARGE).collect();
        scene.bench.send(client, parts[0]);
        pass_parts(&mut scene, there, &mut told, &whole);
        scene.bench.send(client, parts[1]);
        pass_parts(&mut scene, there, &mut told, &whole);
        let first = told.iter().position(|told| told.contains(&value[..LARGE])).expect("a stand-in has its beginning");
        assert_ne!(first, 0, "its node is down");
        match amid {
            Amid::Nothing => {}
            Amid::Back => there[0] = true,
            Amid::Lost => {
                there[first] = false;
                let lost: Vec<_> =
                    scene.bench.nodes.iter().copied().filter(|conn| scene.bench.node_of(*conn) == first).collect();
                lost.into_iter().for_each(|conn| scene.bench.cut(conn));
            }
        }
        pass_parts(&mut scene, there, &mut told, &whole);
        parts[2..].iter().for_each(|part| scene.bench.send(client, part));
        pass_parts(&mut scene, there, &mut told, &whole);
        let answer = scene.bench.heard(client);
        let done: Vec<usize> = told.iter().map(|told| told.matches(&*whole).count()).collect();
        match amid {
            Amid::Lost => {
                assert!(answer.starts_with("-ERR node "), "{answer:?}");
                assert_eq!(done, [0; 3], "no other node has any of it");
            }
            _ => {
                assert_eq!(answer, "+OK\r\n", "{amid:?}");
                assert_eq!((done.iter().sum::<usize>(), done[first]), (1, 1), "{amid:?}");
            }
        }
        let others = (0..3).filter(|node| *node != first);
        others.for_each(|node| assert!(!told[node].contains("vvv"), "{amid:?}: a part has come to node {node}"));
        // The next request goes where requests of its key go now.
        let get = format!("GET\r\n${}\r\n{}", scene.key.len(), scene.key);
        for _ in 0..2 {
            // The first may be for a node of which it is not known yet that it is not there.
            scene.bench.ask(client, &["GET", &scene.key.clone()]);
            pass_parts(&mut scene, there, &mut told, &whole);
        }
        let asked = told.iter().rposition(|told| told.contains(&get)).expect("it is asked");
        assert!(there[asked], "{amid:?}: {told:?}");
    }
}
