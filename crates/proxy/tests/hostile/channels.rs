//! Channels while nodes and routes change under those who subscribe and publish.

use crate::NoEngine;
use crate::bench::{Bench, request, requests, users};
use crate::support::config;
use respool_connection::{ConnId, Machine, Service};
use respool_proxy::{Config, Mail, UserLimits, limits};
use respool_route::{Node, Pool, Reads, Rewrite, Route, Routes, Scheme, Topology, When};
use std::sync::Arc;

/// The same nodes in another order, each with the keys that it had.
fn turned_round() -> [Config; 2] {
    [["node-0", "node-1"], ["node-1", "node-0"]].map(|names| {
        let mut config = config(2, 1);
        let topology = Topology::new("rendezvous".parse::<Scheme>().unwrap(), names.map(Node::new).into());
        config.topology = Arc::new(topology.unwrap());
        config.routes = Arc::new(Routes::plain(Pool::plain("main", Arc::clone(&config.topology))));
        config.nodes.sort_by_key(|node| names.iter().position(|name| *name == node.name));
        config
    })
}

/// The node connection that was told to subscribe; it does so.
fn acknowledge(bench: &mut Bench<NoEngine>, channel: &str) {
    let words = format!("subscribe {channel}");
    let (lane, _) = bench.who_heard(&words).expect("a node is told");
    let reply = format!(">3\r\n$9\r\nsubscribe\r\n${}\r\n{channel}\r\n:1\r\n", channel.len());
    bench.send(lane, reply.as_bytes());
}

#[test]
fn receivers_are_counted_although_nodes_have_other_places_now() {
    let [before, after] = turned_round();
    for channel in ["a", "b", "c", "d"] {
        let mut bench = Bench::proxy(before.clone());
        let subscribers: Vec<ConnId> = (0..3).map(|_| bench.accept()).collect();
        for subscriber in &subscribers {
            bench.ask(*subscriber, &["SUBSCRIBE", channel]);
        }
        bench.connect();
        acknowledge(&mut bench, channel);
        let publisher = bench.accept();
        bench.ask(publisher, &["PUBLISH", channel, "hello"]);
        bench.connect();
        let (asked, _) = bench.who_heard(&format!("PUBLISH {channel} hello")).expect("a node is asked");
        let config = Arc::new(after.clone());
        bench.turn(|worker| worker.handle_mail(Mail::Reload(config)));
        bench.connect();
        acknowledge(&mut bench, channel);
        assert!(requests(&bench.heard(publisher)).is_empty());
        bench.send(asked, b":1\r\n");
        assert_eq!(bench.heard(publisher), ":3\r\n", "{channel}: three clients behind one connection");
    }
}

/// Under routes a client may have subscribed as several users. Each of them costs a look for every channel that it names.
#[test]
fn no_client_subscribes_as_any_number_of_users() {
    let mut config = config(1, 1);
    let route = Route {
        name: "all".into(),
        when: When { prefix: b"c".as_slice().into(), ..When::default() },
        pool: 0,
        rewrite: Rewrite { strip: 0, add: b"x:".as_slice().into() },
        reads: Reads::Primary,
        dead_node: None,
        pool_mode: None,
    };
    config.routes = Arc::new(Routes::new(config.routes.pools().to_vec(), vec![route]).unwrap());
    let names: Vec<String> = (0..=limits::SCOPES_PER_CLIENT_MAX).map(|number| format!("user-{number}")).collect();
    let all: Vec<_> = names.iter().map(|name| (name.as_str(), UserLimits::default())).collect();
    let mut bench = Bench::of_many(config, 1, users(&all));
    let client = bench.accept();
    bench.ask(client, &["HELLO", "3"]);
    let (last, others) = names.split_last().unwrap();
    for name in others {
        bench.ask(client, &["AUTH", name, "secret"]);
        bench.ask(client, &["SUBSCRIBE", &format!("c{name}")]);
        bench.connect();
        acknowledge(&mut bench, &format!("x:c{name}"));
        assert!(bench.heard(client).ends_with(&format!("\r\nc{name}\r\n:{}\r\n", name_number(name) + 1)));
    }
    bench.ask(client, &["AUTH", last, "secret"]);
    let refusal = bench.answer(client, &["SUBSCRIBE", "one-more"]);
    assert!(
        refusal
            .ends_with("-ERR too many users and databases of one connection with subscriptions; unsubscribe first\r\n")
    );
    // Who has given all up may begin again.
    bench.ask(client, &["UNSUBSCRIBE"]);
    bench.heard(client);
    bench.ask(client, &["SUBSCRIBE", "c-again"]);
    assert!(!bench.heard(client).contains("-ERR"));
}

fn name_number(name: &str) -> usize {
    name.trim_start_matches("user-").parse().unwrap()
}

/// A node that comes back is told of channels as fast as it takes them. A client that subscribes meanwhile to one of them, because
/// another does already, is told so behind the node's word about that one.
#[test]
fn a_returned_node_has_a_subscription_before_it_is_acknowledged() {
    let mut roomy = config(1, 1);
    roomy.budgets.client_output_soft = 64 << 20;
    roomy.budgets.client_output_hard = 256 << 20;
    let mut bench = Bench::proxy(roomy);
    let names: Vec<String> = (0..900).map(|number| format!("{number:0>2000}")).collect();
    let mut words = vec!["SUBSCRIBE"];
    words.extend(names.iter().map(String::as_str));
    let [first, second] = [bench.accept(), bench.accept()];
    bench.ask(first, &words);
    let mut lane = bench.connect()[0];
    let acknowledge_told = |bench: &mut Bench<NoEngine>, lane: ConnId| -> Vec<String> {
        let said = requests(&bench.heard(lane));
        let told: Vec<String> = said.iter().flat_map(|request| request.split(' ').skip(1)).map(str::to_owned).collect();
        let reply = |name: &String| format!(">3\r\n$9\r\nsubscribe\r\n${}\r\n{name}\r\n:1\r\n", name.len());
        bench.send(lane, told.iter().map(reply).collect::<String>().as_bytes());
        told
    };
    while !acknowledge_told(&mut bench, lane).is_empty() {}
    assert_eq!(bench.heard(first).matches("subscribe").count(), names.len());
    bench.cut(lane);
    bench.wait(300_000);
    bench.turn(|_| ());
    lane = bench.connect()[0];
    // At once: there is more than is told in one turn.
    let all: Vec<u8> = names.iter().flat_map(|name| request(&["SUBSCRIBE", name])).collect();
    bench.send(second, &all);
    let mut known = Vec::new();
    loop {
        let told = acknowledge_told(&mut bench, lane);
        known.extend(told.iter().cloned());
        let heard = bench.heard(second);
        let acknowledged = names.iter().filter(|name| heard.contains(name.as_str()));
        acknowledged.for_each(|name| assert!(known.contains(name), "the node has not been told of {name}"));
        if told.is_empty() {
            break;
        }
    }
    assert_eq!(known.len(), names.len());
}

/// A RESP3 client whose subscriptions and messages use different connections to the only node.
fn node_user() -> (Bench<NoEngine>, ConnId) {
    let mut bench = Bench::proxy(config(1, 1));
    let client = bench.accept();
    bench.ask(client, &["HELLO", "3"]);
    bench.ask(client, &["PUBLISH", "other", "m"]);
    let lane = bench.connect()[0];
    bench.send(lane, b":0\r\n");
    bench.ask(client, &["SUBSCRIBE", "other"]);
    bench.connect();
    acknowledge(&mut bench, "other");
    bench.heard(client);
    (bench, client)
}

#[test]
fn a_message_and_a_subscription_do_not_overtake_each_other() {
    for block in [false, true] {
        let (mut bench, client) = node_user();
        let all = |words: [&[&str]; 2]| {
            let [first, second] = words.map(request);
            let (begin, end) = (request(&["MULTI"]), request(&["EXEC"]));
            if block { [begin, first, second, end].concat() } else { [first, second].concat() }
        };
        // A message published before a subscription is not received.
        bench.send(client, &all([&["PUBLISH", "a", "m"], &["SUBSCRIBE", "a"]]));
        let (lane, _) = bench.who_heard("PUBLISH a m").expect("it is sent");
        assert!(bench.who_heard("subscribe a").is_none(), "it would be counted, and get the message");
        bench.send(lane, b":0\r\n");
        bench.turn(|_| ());
        acknowledge(&mut bench, "a");
        // A message published after a subscription is received.
        bench.send(client, &all([&["SUBSCRIBE", "b"], &["PUBLISH", "b", "m"]]));
        assert!(bench.nodes.clone().into_iter().any(|node| {
            let said = requests(&bench.heard(node));
            assert!(!said.contains(&"PUBLISH b m".to_owned()), "it would be missed");
            let is_told = said.contains(&"subscribe b".to_owned());
            if is_told {
                bench.send(node, b">3\r\n$9\r\nsubscribe\r\n$1\r\nb\r\n:1\r\n");
            }
            is_told
        }));
        let (lane, _) = bench.who_heard("PUBLISH b m").expect("it is sent then");
        bench.send(lane, b":1\r\n");
        bench.turn(|_| ());
        // So is a message published before its end.
        bench.send(client, &all([&["PUBLISH", "b", "m"], &["UNSUBSCRIBE", "b"]]));
        let (lane, _) = bench.who_heard("PUBLISH b m").expect("it is sent");
        assert!(bench.who_heard("unsubscribe b").is_none(), "it would be missed");
        bench.send(lane, b":1\r\n");
        bench.turn(|_| ());
        assert!(bench.who_heard("unsubscribe b").is_some());
        bench.turn(|worker| worker.handle_broken(client, "gone"));
    }
}
