//! A hundred thousand pending requests, keys or clients: the cost is linear, which is compared with that of a tenth of them. Other
//! clients are served in the next turn.

use crate::NoEngine;
use crate::bench::{Bench, request, requests};
use crate::support::config;
use respool_connection::{ConnId, Endpoint, Machine, Service};
use respool_proxy::{Config, Mail};
use respool_route::{Pool, Reads, Rewrite, Route, Routes, When};
use std::sync::Arc;
use std::time::Duration;

const MANY: usize = 100_000;
/// How many times as long ten times as much may take: a hundred times would be quadratic.
const RATIO_MAX: u32 = 30;
/// A shorter time says nothing.
const TIME_MIN: Duration = Duration::from_millis(20);

/// What this thread has had of a processor, where the system says that of a thread.
#[expect(
    clippy::disallowed_methods,
    reason = "a test measures what the machines under test cost; they read nothing themselves"
)]
fn processor_time() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().map(Duration::from_nanos).ok()
}

/// What is done to many takes no more than a linear time.
fn in_linear_time(what: impl Fn(usize)) {
    let times = [MANY / 10, MANY].map(|many| {
        let before = processor_time();
        what(many);
        processor_time().zip(before).map(|(after, before)| after - before)
    });
    if let [Some(of_few), Some(of_many)] = times {
        let limit = RATIO_MAX * of_few.max(TIME_MIN);
        assert!(of_many < limit, "{of_few:?} for {}, {of_many:?} for {MANY}", MANY / 10);
    }
}

#[test]
fn a_time_that_is_not_linear_is_noticed() {
    // Steps that take long enough, however fast the build is.
    let take = |time: Duration| {
        let begun = processor_time();
        while processor_time().zip(begun).is_some_and(|(now, begun)| now - begun < time) {}
    };
    let linear = |many: usize| take(TIME_MIN * many as u32 / MANY as u32);
    in_linear_time(linear);
    let quadratic = |many: usize| take(RATIO_MAX * TIME_MIN * 2 * (many * 10 / MANY).pow(2) as u32 / 100);
    let noticed = std::panic::catch_unwind(|| in_linear_time(quadratic));
    assert!(noticed.is_err() || processor_time().is_none());
}

/// Room for many clients, requests and replies.
fn roomy(nodes: usize) -> Config {
    // An even seed: outboxes are written in each turn.
    let mut config = config(nodes, 2);
    config.budgets.client_output_soft = 8 << 30;
    config.budgets.client_output_hard = 16 << 30;
    config.budgets.upstream_queue = 256 << 20;
    config.budgets.request_whole = 64 << 20;
    config.budgets.process = 32 << 30;
    config.clients_max = 2 * MANY;
    config
}

/// A client with `many` outstanding requests, and the connections to their nodes.
fn pending(bench: &mut Bench<NoEngine>, words: &[&str], many: usize) -> (ConnId, Vec<ConnId>) {
    let client = bench.accept();
    bench.ask(client, words);
    bench.connect();
    let all = request(words).repeat(many - 1);
    let mut rest = &all[..];
    for _ in 0..100 {
        rest = bench.offer(client, rest);
    }
    assert!(rest.is_empty(), "{} bytes are left", rest.len());
    (client, bench.nodes.clone())
}

fn others_are_served(bench: &mut Bench<NoEngine>) {
    let other = bench.accept();
    assert_eq!(bench.answer(other, &["ECHO", "x"]), "$1\r\nx\r\n", "others are served");
    bench.turn(|worker| worker.handle_broken(other, "gone"));
}

fn nothing_remains(bench: &mut Bench<NoEngine>) {
    for lane in bench.nodes.clone() {
        bench.cut(lane);
    }
    bench.turn(|_| ());
    assert_eq!(bench.worker.remains(), []);
    assert_eq!(bench.shared.ledger.held_bytes(), 0);
}

/// Neither clients that track other keys nor routes make a change of many keys dear.
#[test]
fn a_change_of_many_keys_costs_those_who_read_others_nothing() {
    in_linear_time(|many| {
        let base = roomy(1);
        let pool = Pool::plain("main", Arc::clone(&base.topology));
        let route = |name: &str, when: When| Route {
            name: name.into(),
            when,
            pool: 0,
            rewrite: Rewrite::default(),
            reads: Reads::Primary,
            dead_node: None,
            pool_mode: None,
        };
        let routes = vec![
            route("prefix", When { prefix: b"x:".as_slice().into(), ..When::default() }),
            route("database", When { databases: [3].into(), ..When::default() }),
        ];
        let routes = Arc::new(Routes::new(vec![pool], routes).unwrap());
        let mut bench = Bench::proxy(Config { routes, ..base });
        let mut push = None;
        let count = many / 100;
        for number in 0..count {
            let client = bench.accept();
            bench.answer(client, &["HELLO", "3"]);
            let options: &[&str] = if number == 0 { &["BCAST", "PREFIX", "none:"] } else { &[] };
            bench.ask(client, &[&["CLIENT", "TRACKING", "ON"], options].concat());
            if push.is_none() {
                push = bench.connect().first().copied();
                bench.send(push.expect("the node is to tell"), b"+OK\r\n");
            }
        }
        let keys: String = (0..count).map(|number| format!("$10\r\nx:{number:08}\r\n")).collect();
        let told = format!(">2\r\n$10\r\ninvalidate\r\n*{count}\r\n{keys}");
        bench.send(push.expect("it tells"), told.as_bytes());
        others_are_served(&mut bench);
    });
}

#[test]
fn very_many_keys_are_watched_at_once() {
    in_linear_time(|many| {
        let mut bench = Bench::proxy(roomy(3));
        let client = bench.accept();
        let names: Vec<String> = (0..many).map(|number| format!("key:{number}")).collect();
        let mut words = vec!["WATCH"];
        words.extend(names.iter().map(String::as_str));
        bench.ask(client, &words);
        others_are_served(&mut bench);
        let mut watched = 0;
        for lane in bench.connect() {
            for said in requests(&bench.heard(lane)) {
                watched += said.split(' ').skip(1).count();
                assert_eq!(bench.heard(client), "", "not before all nodes watch");
                bench.send(lane, b"+OK\r\n");
            }
        }
        assert_eq!((watched, bench.heard(client).as_str()), (many, "+OK\r\n"));
        bench.turn(|worker| worker.handle_broken(client, "gone"));
        others_are_served(&mut bench);
        nothing_remains(&mut bench);
    });
}

#[test]
fn very_many_requests_end_with_their_connection() {
    in_linear_time(|many| {
        for (nodes, words) in [(1, &["GET", "k"][..]), (2, &["MGET", "a", "b", "c", "d"]), (1, &["EVALSHA", "x", "0"])]
        {
            let mut bench = Bench::proxy(roomy(nodes));
            let (client, lanes) = pending(&mut bench, words, many);
            bench.cut(lanes[0]);
            others_are_served(&mut bench);
            // A split request ends with its last part.
            lanes[1..].iter().for_each(|lane| bench.cut(*lane));
            others_are_served(&mut bench);
            assert_eq!(bench.heard(client).matches("-ERR node node-").count(), many, "{words:?}");
            bench.turn(|worker| worker.handle_broken(client, "gone"));
            nothing_remains(&mut bench);
        }
    });
}

#[test]
fn very_many_requests_are_left_behind_by_their_client() {
    in_linear_time(|many| {
        for (nodes, words) in [(1, &["GET", "k"][..]), (2, &["MGET", "a", "b", "c", "d"])] {
            let mut bench = Bench::proxy(roomy(nodes));
            let (client, lanes) = pending(&mut bench, words, many);
            bench.turn(|worker| worker.handle_broken(client, "gone"));
            others_are_served(&mut bench);
            // Their replies still come, and reach no client that connected later.
            let other = bench.accept();
            for lane in lanes {
                let asked = requests(&bench.heard(lane)).len();
                assert_eq!(asked, many);
                let reply: &[u8] = if nodes == 1 { b"$-1\r\n" } else { b"*2\r\n$-1\r\n$-1\r\n" };
                bench.send(lane, &reply.repeat(asked));
            }
            assert_eq!(bench.answer(other, &["ECHO", "x"]), "$1\r\nx\r\n");
            bench.turn(|worker| worker.handle_broken(other, "gone"));
            nothing_remains(&mut bench);
        }
    });
}

#[test]
fn a_reload_walks_over_the_states_of_very_many_clients() {
    in_linear_time(|many| {
        let mut bench = Bench::proxy(roomy(2));
        let clients: Vec<ConnId> = (0..many).map(|_| bench.accept()).collect();
        bench.turn(|worker| {
            for (number, client) in clients.iter().enumerate() {
                let key = format!("k{number}");
                let bytes = match number % 50 {
                    0 => request(&["BLPOP", &key, "0"]),
                    1 => request(&["WATCH", &key]),
                    2 => request(&["GET", &key]),
                    _ => [request(&["MULTI"]), request(&["SET", &key, "1"])].concat(),
                };
                let buffer = worker.read_buffer(*client).expect("it has asked for nothing before");
                buffer[..bytes.len()].copy_from_slice(&bytes);
                worker.handle_read(*client, bytes.len());
            }
        });
        (0..20).for_each(|_| drop(bench.connect()));
        let mut other = roomy(2);
        other.nodes.iter_mut().for_each(|node| node.endpoint = Arc::new(Endpoint::Embedded { index: 7 }));
        bench.turn(|worker| worker.handle_mail(Mail::Reload(Arc::new(other))));
        others_are_served(&mut bench);
        // Replies of the former servers come first; queued requests go to the present ones.
        for lane in bench.nodes.clone() {
            let asked = requests(&bench.heard(lane)).iter().filter(|words| words.starts_with("GET ")).count();
            bench.send(lane, &b"$-1\r\n".repeat(asked));
        }
        let last = *clients.last().expect("there are many");
        bench.heard(last);
        bench.ask(last, &["EXEC"]);
        for _ in 0..20 {
            bench.wait(10_000);
            bench.turn(|_| ());
            bench.connect();
        }
        let (lane, _) = bench.who_heard(&format!("SET k{} 1", many - 1)).expect("it is sent");
        assert_eq!(bench.node_of(lane), 7);
        for client in clients {
            bench.turn(|worker| worker.handle_broken(client, "gone"));
        }
    });
}

#[test]
fn a_transaction_of_very_many_requests_takes_one_look_at_each() {
    in_linear_time(|many| {
        let mut bench = Bench::proxy(roomy(1));
        let client = bench.accept();
        bench.ask(client, &["MULTI"]);
        bench.send(client, &request(&["SET", "k", "1"]).repeat(many));
        assert_eq!(bench.heard(client), format!("+OK\r\n{}", "+QUEUED\r\n".repeat(many)));
        others_are_served(&mut bench);
        bench.ask(client, &["EXEC"]);
        let lane = bench.connect()[0];
        assert_eq!(requests(&bench.heard(lane)).len(), many + 2);
        let result = format!("*{many}\r\n{}", "+OK\r\n".repeat(many));
        bench.send(lane, format!("+OK\r\n{}{result}", "+QUEUED\r\n".repeat(many)).as_bytes());
        assert_eq!(bench.heard(client), result);
        bench.turn(|worker| worker.handle_broken(client, "gone"));
        nothing_remains(&mut bench);
    });
}
