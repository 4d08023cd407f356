//! What was published before a client gives a channel up reaches it before it hears that it has.

use crate::NoEngine;
use crate::bench::{Bench, request, requests};
use crate::support::config;
use respool_connection::{ConnId, Machine};
use respool_proxy::Config;
use respool_route::{Reads, Rewrite, Route, Routes, When};
use std::sync::Arc;

/// What a node says when it has done something about a channel, in RESP3.
fn done(verb: &str, channel: &str) -> String {
    format!(">3\r\n${}\r\n{verb}\r\n${}\r\n{channel}\r\n:1\r\n", verb.len(), channel.len())
}

fn message(channel: &str, text: &str) -> String {
    format!(">3\r\n$7\r\nmessage\r\n${}\r\n{channel}\r\n${}\r\n{text}\r\n", channel.len(), text.len())
}

/// The same as clients of RESP2 see it.
fn plain(push: &str) -> String {
    push.replacen('>', "*", 1)
}

/// Clients that subscribe to `channel`, and the connection on which their node tells of it.
fn subscribed(bench: &mut Bench<NoEngine>, clients: usize, channel: &str) -> (Vec<ConnId>, ConnId) {
    let clients: Vec<ConnId> = (0..clients).map(|_| bench.accept()).collect();
    clients.iter().for_each(|client| bench.ask(*client, &["SUBSCRIBE", channel]));
    bench.connect();
    let (lane, _) = bench.who_heard(&format!("subscribe {channel}")).expect("a node is told");
    bench.send(lane, done("subscribe", channel).as_bytes());
    for client in &clients {
        assert_eq!(bench.heard(*client), plain(&done("subscribe", channel)));
    }
    (clients, lane)
}

fn given_up(channel: &str) -> String {
    format!("*3\r\n$11\r\nunsubscribe\r\n${}\r\n{channel}\r\n:0\r\n", channel.len())
}

#[test]
fn the_last_message_comes_before_the_farewell() {
    let mut bench = Bench::proxy(config(1, 1));
    let (clients, lane) = subscribed(&mut bench, 1, "news");
    bench.ask(clients[0], &["UNSUBSCRIBE", "news"]);
    assert_eq!(requests(&bench.heard(lane)), ["unsubscribe news"], "its acknowledgement is what is waited for");
    assert_eq!(bench.heard(clients[0]), "");
    bench.send(lane, message("news", "last").as_bytes());
    assert_eq!(bench.heard(clients[0]), plain(&message("news", "last")));
    bench.send(lane, done("unsubscribe", "news").as_bytes());
    assert_eq!(bench.heard(clients[0]), given_up("news"));
    bench.send(lane, message("news", "late").as_bytes());
    assert_eq!(bench.heard(clients[0]), "", "nothing comes behind it");
}

#[test]
fn a_channel_that_others_keep_is_given_up_behind_its_messages() {
    let mut bench = Bench::proxy(config(1, 1));
    let (clients, lane) = subscribed(&mut bench, 2, "news");
    // Several at once, and one that it does not have, cost one round trip.
    bench.ask(clients[1], &["SUBSCRIBE", "other"]);
    bench.heard(lane);
    bench.send(lane, done("subscribe", "other").as_bytes());
    bench.heard(clients[1]);
    let many =
        [request(&["UNSUBSCRIBE", "news"]), request(&["UNSUBSCRIBE", "nothing"]), request(&["UNSUBSCRIBE", "news"])];
    bench.send(clients[1], &many.concat());
    assert_eq!(requests(&bench.heard(lane)), ["PING"]);
    bench.send(lane, message("news", "last").as_bytes());
    assert_eq!([bench.heard(clients[0]), bench.heard(clients[1])], [(); 2].map(|()| plain(&message("news", "last"))));
    bench.send(lane, b"+PONG\r\n");
    assert_eq!(bench.heard(clients[1]).matches("unsubscribe").count(), 3);
    bench.send(lane, message("news", "later").as_bytes());
    assert_eq!(bench.heard(clients[0]), plain(&message("news", "later")));
    assert_eq!(bench.heard(clients[1]), "");
    // What needs no word of a node is answered at once.
    assert_eq!(
        bench.answer(clients[1], &["UNSUBSCRIBE", "nothing"]),
        "*3\r\n$11\r\nunsubscribe\r\n$7\r\nnothing\r\n:1\r\n"
    );
    assert_eq!(bench.heard(lane), "");
}

#[test]
fn a_leaving_client_hears_what_was_published_before() {
    for (word, farewell) in [("RESET", "+RESET\r\n"), ("QUIT", "+OK\r\n")] {
        let mut bench = Bench::proxy(config(2, 1));
        let (clients, lane) = subscribed(&mut bench, 2, "news");
        bench.ask(clients[0], &[word]);
        assert_eq!(bench.heard(clients[0]), "", "{word}");
        assert_eq!(requests(&bench.heard(lane)), ["PING"]);
        bench.send(lane, message("news", "last").as_bytes());
        assert_eq!(bench.heard(clients[0]), plain(&message("news", "last")), "{word}");
        bench.send(lane, b"+PONG\r\n");
        assert_eq!(bench.heard(clients[0]), farewell);
        bench.send(lane, message("news", "late").as_bytes());
        assert_eq!(bench.heard(clients[0]), "", "{word}");
        // Without subscriptions there is nothing to wait for.
        let other = bench.accept();
        assert_eq!(bench.answer(other, &[word]), farewell);
    }
}

#[test]
fn every_node_of_a_pattern_has_its_say() {
    let mut bench = Bench::proxy(config(2, 1));
    let clients = [bench.accept(), bench.accept()];
    clients.iter().for_each(|client| bench.ask(*client, &["PSUBSCRIBE", "n*"]));
    let lanes = bench.connect();
    assert_eq!(lanes.len(), 2);
    for lane in &lanes {
        bench.heard(*lane);
        bench.send(*lane, done("psubscribe", "n*").as_bytes());
    }
    clients.iter().for_each(|client| drop(bench.heard(*client)));
    bench.ask(clients[0], &["PUNSUBSCRIBE"]);
    bench.send(lanes[0], b"+PONG\r\n");
    assert_eq!(bench.heard(clients[0]), "");
    bench.send(lanes[1], b">4\r\n$8\r\npmessage\r\n$2\r\nn*\r\n$4\r\nnews\r\n$1\r\nm\r\n+PONG\r\n");
    let heard = bench.heard(clients[0]);
    assert!(
        heard.starts_with("*4\r\n$8\r\npmessage\r\n") && heard.ends_with("punsubscribe\r\n$2\r\nn*\r\n:0\r\n"),
        "{heard}"
    );
}

#[test]
fn a_farewell_does_not_wait_for_a_node_that_is_gone_or_silent() {
    for is_silent in [false, true] {
        let mut bench = Bench::proxy(config(1, 1));
        let (clients, lane) = subscribed(&mut bench, 3, "news");
        bench.ask(clients[0], &["UNSUBSCRIBE", "news"]);
        bench.ask(clients[1], &["QUIT"]);
        if is_silent {
            for _ in 0..60 {
                bench.wait(10_000);
                bench.turn(|_| ());
            }
        } else {
            bench.turn(|worker| worker.handle_broken(lane, "reset"));
        }
        assert_eq!([bench.heard(clients[0]), bench.heard(clients[1])], [given_up("news"), "+OK\r\n".to_owned()]);
        // Nor does it ask one that is not there.
        if !is_silent {
            assert_eq!(bench.answer(clients[2], &["UNSUBSCRIBE"]), given_up("news"));
        }
    }
}

/// The client that gives a channel up calls it otherwise than the node does.
#[test]
fn the_last_message_has_the_name_that_its_client_uses() {
    let mut config: Config = config(1, 1);
    let route = Route {
        name: "all".into(),
        when: When::default(),
        pool: 0,
        rewrite: Rewrite { strip: 0, add: b"t1:".as_slice().into() },
        reads: Reads::Primary,
        dead_node: None,
        pool_mode: None,
    };
    config.routes = Arc::new(Routes::new(config.routes.pools().to_vec(), vec![route]).unwrap());
    for others in [0, 1] {
        let mut bench = Bench::proxy(config.clone());
        let clients: Vec<ConnId> = (0..=others).map(|_| bench.accept()).collect();
        clients.iter().for_each(|client| bench.ask(*client, &["SUBSCRIBE", "news"]));
        bench.connect();
        let (lane, _) = bench.who_heard("subscribe t1:news").expect("a node is told");
        bench.send(lane, done("subscribe", "t1:news").as_bytes());
        clients.iter().for_each(|client| drop(bench.heard(*client)));
        bench.ask(clients[0], &["UNSUBSCRIBE", "news"]);
        let word = if others == 0 { "unsubscribe t1:news" } else { "PING" };
        assert_eq!(requests(&bench.heard(lane)), [word]);
        bench.send(lane, message("t1:news", "last").as_bytes());
        assert_eq!(bench.heard(clients[0]), plain(&message("news", "last")));
        let reply = if others == 0 { done("unsubscribe", "t1:news") } else { "+PONG\r\n".to_owned() };
        bench.send(lane, reply.as_bytes());
        assert_eq!(bench.heard(clients[0]), given_up("news"));
    }
}

#[test]
fn a_client_that_vanishes_amid_its_farewell_leaves_nothing() {
    let mut bench = Bench::proxy(config(1, 1));
    let (clients, lane) = subscribed(&mut bench, 2, "news");
    bench.ask(clients[0], &["UNSUBSCRIBE", "news"]);
    bench.ask(clients[1], &["RESET"]);
    for client in clients {
        bench.turn(|worker| worker.handle_broken(client, "gone"));
    }
    bench.send(lane, message("news", "last").as_bytes());
    bench.turn(|worker| worker.handle_broken(lane, "reset"));
    bench.turn(|_| ());
    assert_eq!(bench.worker.remains(), []);
}

#[test]
fn a_message_never_comes_within_the_reply_to_a_transaction() {
    let mut bench = Bench::proxy(config(1, 1));
    let client = bench.accept();
    bench.ask(client, &["HELLO", "3"]);
    bench.heard(client);
    bench.ask(client, &["SUBSCRIBE", "news"]);
    bench.connect();
    let (lane, _) = bench.who_heard("subscribe news").expect("a node is told");
    bench.send(lane, done("subscribe", "news").as_bytes());
    assert_eq!(bench.heard(client), done("subscribe", "news"));
    // Commands that the proxy executes itself take several turns.
    bench.ask(client, &["MULTI"]);
    (0..200).for_each(|_| bench.ask(client, &["CLIENT", "GETNAME"]));
    bench.heard(client);
    bench.ask(client, &["EXEC"]);
    let mut reply = bench.heard(client);
    assert!(reply.starts_with("*200\r\n_\r\n") && reply.matches('_').count() < 200, "the rest comes in later turns");
    bench.send(lane, message("news", "first").as_bytes());
    for _ in 0..10 {
        bench.turn(|_| ());
        reply.push_str(&bench.heard(client));
    }
    assert_eq!(reply, format!("*200\r\n{}{}", "_\r\n".repeat(200), message("news", "first")));
    // A command that waits for a node: the message that it publishes may come before its reply.
    let transaction = [&["MULTI"][..], &["CLIENT", "GETNAME"], &["PUBLISH", "news", "second"], &["EXEC"]];
    transaction.iter().for_each(|words| bench.ask(client, words));
    bench.connect();
    let mut reply = bench.heard(client);
    let (node, _) = bench.who_heard("PUBLISH news second").expect("it is published");
    bench.send(lane, message("news", "second").as_bytes());
    reply.push_str(&bench.heard(client));
    bench.send(node, b":1\r\n");
    reply.push_str(&bench.heard(client));
    let queued = "+QUEUED\r\n".repeat(2);
    assert_eq!(reply, format!("+OK\r\n{queued}*2\r\n_\r\n:1\r\n{}", message("news", "second")));
}
