//! One client's requests reach a node in the order in which it sent them, on whatever connections, replies wanted or not.

use crate::bench::{Bench, request, requests};
use crate::support::config;
use respool_connection::ConnId;
use respool_proxy::{Config, LaneLimits, PoolMode};

type Requests = &'static [&'static [&'static str]];

/// A proxy in this mode.
fn mode(mode: PoolMode, nodes: usize) -> Config {
    Config { lanes: LaneLimits { mode, ..LaneLimits::default() }, ..config(nodes, 1) }
}

/// What nodes answer, in the words of the request.
fn reply_to(request: &str) -> &'static [u8] {
    match request.split(' ').next().unwrap_or_default() {
        "CLIENT" => b":7\r\n",
        "PING" => b"+PONG\r\n",
        "WAIT" => b":0\r\n",
        "BLPOP" => b"*-1\r\n",
        "GET" => b"$-1\r\n",
        "EXEC" => b"*1\r\n$-1\r\n",
        _ => b"+OK\r\n",
    }
}

/// Nodes answer what they are asked, except for requests that begin with `held`, until they are asked no more. Gives all
/// that they were asked, and on which connections what is held was.
fn serve(bench: &mut Bench<crate::NoEngine>, held: &str) -> (Vec<String>, Vec<ConnId>) {
    let (mut asked, mut holding) = (Vec::new(), Vec::new());
    loop {
        // What is gathered leaves with time.
        bench.wait(1_000);
        bench.turn(|_| ());
        let mut is_over = bench.connect().is_empty();
        for node in bench.nodes.clone() {
            let mut is_queueing = false;
            for request in requests(&bench.heard(node)) {
                is_over = false;
                is_queueing &= request != "EXEC";
                match request.starts_with(held) {
                    true => holding.push(node),
                    false if is_queueing => bench.send(node, b"+QUEUED\r\n"),
                    false => bench.send(node, reply_to(&request)),
                }
                is_queueing |= request == "MULTI";
                asked.push(request);
            }
        }
        if is_over {
            return (asked, holding);
        }
    }
}

/// A write whose reply is not wanted has not been answered: nothing of what stands behind it may be asked on another
/// connection.
fn is_kept(config: Config, write: Requests, behind: Requests, must_wait: &str) {
    let mut bench = Bench::proxy(config);
    let client = bench.accept();
    // The connections for what is asked behind may be there already.
    for words in behind {
        bench.ask(client, words);
        serve(&mut bench, "none");
    }
    let pipeline: Vec<u8> = write.iter().chain(behind).flat_map(|words| request(words)).collect();
    bench.send(client, &pipeline);
    let (asked, holding) = serve(&mut bench, "MSET");
    assert!(!holding.is_empty(), "the write is sent: {asked:?}");
    let is_early = asked.iter().any(|asked| asked.starts_with(must_wait));
    assert!(!is_early, "{must_wait} overtakes {write:?}: {asked:?}");
    holding.into_iter().for_each(|node| bench.send(node, b"+OK\r\n"));
    let (asked, _) = serve(&mut bench, "none");
    assert!(asked.iter().any(|asked| asked.starts_with(must_wait)), "{must_wait} comes behind it: {asked:?}");
}

const SKIPPED: Requests = &[&["CLIENT", "REPLY", "SKIP"], &["MSET", "k", "v"]];
const OFF: Requests =
    &[&["CLIENT", "REPLY", "OFF"], &["MSET", "k", "v"], &["MSET", "k", "w"], &["CLIENT", "REPLY", "ON"]];
const SPLIT: Requests = &[&["CLIENT", "REPLY", "SKIP"], &["MSET", "a", "1", "b", "2", "c", "3", "d", "4", "e", "5"]];

#[test]
fn what_changes_connections_waits_for_unanswered_requests() {
    for write in [SKIPPED, OFF] {
        for pool in [PoolMode::Multiplex, PoolMode::Transaction, PoolMode::Session] {
            is_kept(mode(pool, 1), write, &[&["BLPOP", "l", "1"]], "BLPOP");
            is_kept(mode(pool, 1), write, &[&["WAIT", "0", "10"]], "WAIT");
            is_kept(mode(pool, 1), write, &[&["SELECT", "1"], &["GET", "k"], &["SELECT", "0"]], "GET");
            is_kept(mode(pool, 1), write, &[&["HELLO", "3"], &["GET", "k"], &["HELLO", "2"]], "GET");
        }
        for pool in [PoolMode::Multiplex, PoolMode::Transaction] {
            is_kept(mode(pool, 1), write, &[&["WATCH", "k"], &["UNWATCH"]], "WATCH");
        }
        is_kept(mode(PoolMode::Transaction, 1), write, &[&["MULTI"], &["GET", "k"], &["EXEC"]], "EXEC");
    }
}

#[test]
fn all_parts_of_an_unanswered_request_are_waited_for() {
    for pool in [PoolMode::Multiplex, PoolMode::Transaction, PoolMode::Session] {
        is_kept(mode(pool, 2), SPLIT, &[&["BLPOP", "l", "1"]], "BLPOP");
        is_kept(mode(pool, 2), SPLIT, &[&["WAIT", "0", "10"]], "WAIT");
    }
}

#[test]
fn an_unanswered_request_that_never_ends_holds_nothing_up() {
    // The node says nothing until the deadline, or goes: the client is read on then, as if it had been told.
    for is_lost in [false, true] {
        let mut bench = Bench::proxy(config(1, 1));
        let client = bench.accept();
        bench.ask(client, &["GET", "warm"]);
        serve(&mut bench, "none");
        let pipeline: Vec<u8> = SKIPPED.iter().chain(&[&["BLPOP", "l", "1"][..]]).flat_map(|w| request(w)).collect();
        bench.send(client, &pipeline);
        let (_, holding) = serve(&mut bench, "MSET");
        match is_lost {
            true => bench.turn(|worker| respool_connection::Machine::handle_ended(worker, holding[0])),
            false => bench.wait(1_000_000),
        }
        bench.turn(|_| ());
        bench.wait(100_000);
        bench.turn(|_| ());
        let (asked, _) = serve(&mut bench, "none");
        let is_asked = asked.iter().any(|asked| asked.starts_with("BLPOP"));
        // The node may be spared for a moment.
        assert!(is_asked || is_lost && bench.heard(client).contains("-ERR node"), "lost: {is_lost}, {asked:?}");
    }
}

/// The clients in the order of their requests, which is not that of their connections.
const TURNS: [usize; 5] = [3, 1, 4, 0, 2];

#[test]
fn clients_that_a_pause_held_go_in_the_order_they_asked() {
    for is_taken_back in [true, false] {
        let mut bench = Bench::proxy(config(1, 1));
        let operator = bench.accept();
        let clients = TURNS.map(|_| bench.accept());
        bench.ask(clients[0], &["GET", "warm"]);
        let node = bench.connect()[0];
        bench.heard(node);
        bench.send(node, b"$-1\r\n");
        assert_eq!(bench.answer(operator, &["CLIENT", "PAUSE", "100"]), "+OK\r\n");
        TURNS.iter().for_each(|turn| bench.ask(clients[*turn], &["SET", "k", &turn.to_string()]));
        assert_eq!(bench.heard(node), "");
        match is_taken_back {
            true => assert_eq!(bench.answer(operator, &["CLIENT", "UNPAUSE"]), "+OK\r\n"),
            false => bench.wait(150_000),
        }
        bench.turn(|_| ());
        bench.wait(2_000);
        bench.turn(|_| ());
        assert_eq!(requests(&bench.heard(node)), TURNS.map(|turn| format!("SET k {turn}")));
    }
}

#[test]
fn clients_that_wait_for_replies_go_in_the_order_they_asked() {
    let mut bench = Bench::proxy(config(1, 1));
    let clients = TURNS.map(|_| bench.accept());
    bench.ask(clients[0], &["EVAL", "return 0", "0"]);
    let apart = bench.connect()[0];
    bench.heard(apart);
    bench.send(apart, b":0\r\n");
    for turn in TURNS {
        let script = format!("return {turn}");
        bench.send(clients[turn], &[request(&["GET", "k"]), request(&["EVAL", &script, "0"])].concat());
    }
    let shared = bench.connect()[0];
    bench.wait(2_000);
    bench.turn(|_| ());
    assert_eq!(requests(&bench.heard(shared)).len(), TURNS.len());
    bench.send(shared, &b"$-1\r\n".repeat(TURNS.len()));
    bench.wait(2_000);
    bench.turn(|_| ());
    assert_eq!(requests(&bench.heard(apart)), TURNS.map(|turn| format!("EVAL return {turn} 0")));
}

#[test]
fn waiters_that_go_on_together_are_written_in_order() {
    let mut bench = Bench::proxy(config(1, 1));
    let operator = bench.accept();
    let clients = [bench.accept(), bench.accept(), bench.accept()];
    clients.iter().for_each(|client| bench.ask(*client, &["BLPOP", "q", "0"]));
    assert_eq!(bench.answer(operator, &["CLIENT", "PAUSE", "100", "WRITE"]), "+OK\r\n");
    let lanes = bench.connect();
    assert_eq!(lanes.len(), clients.len());
    lanes.iter().for_each(|lane| bench.send(*lane, b":7\r\n"));
    lanes.iter().for_each(|lane| assert_eq!(requests(&bench.heard(*lane)), ["CLIENT ID"]));
    bench.wait(150_000);
    bench.order.clear();
    bench.turn(|_| ());
    lanes.iter().for_each(|lane| assert_eq!(requests(&bench.heard(*lane)), ["BLPOP q 0"]));
    assert_eq!(bench.order, lanes);
}

#[test]
fn blocks_that_are_sent_together_go_in_order() {
    let mut bench = Bench::proxy(config(1, 1));
    let clients = TURNS.map(|_| bench.accept());
    bench.ask(clients[0], &["GET", "warm"]);
    let node = bench.connect()[0];
    bench.send(node, b"$-1\r\n");
    bench.heard(node);
    // Each block begins with a trial of MULTI at the node.
    for turn in TURNS {
        let block = [&["MULTI"][..], &["SET", "k", &turn.to_string()], &["EXEC"]].map(request).concat();
        bench.send(clients[turn], &block);
    }
    bench.wait(2_000);
    bench.turn(|_| ());
    let trials = requests(&bench.heard(node)).len() / 2;
    bench.send(node, &b"+OK\r\n*0\r\n".repeat(trials));
    bench.wait(2_000);
    bench.turn(|_| ());
    let written = requests(&bench.heard(node)).into_iter().filter(|request| request.starts_with("SET"));
    assert_eq!(written.collect::<Vec<_>>(), TURNS.map(|turn| format!("SET k {turn}")));
}
