//! A node's host name leads to another address while clients go on: what clients have for themselves is left as by a reload.

use crate::bench::{Bench, request, requests};
use crate::support::config;
use respool_connection::{ConnId, Endpoint, Machine, Service};
use respool_proxy::{Config, LaneLimits, PoolMode};
use std::sync::Arc;

type World = Bench<crate::NoEngine>;

const OLD: &str = "10.0.0.1:6379";
const NEW: &str = "10.0.0.2:6379";

/// The only node is a host name.
fn named(mode: PoolMode) -> Config {
    let base = config(1, 1);
    let endpoint = Arc::new(Endpoint::Tcp { host: "node.example".to_owned(), port: 6379 });
    let mut nodes = base.nodes.clone();
    nodes.iter_mut().for_each(|node| node.endpoint = Arc::clone(&endpoint));
    Config { nodes, lanes: LaneLimits { mode, ..LaneLimits::default() }, ..base }
}

fn named_in(mode: PoolMode) -> World {
    Bench::proxy(named(mode))
}

/// All dials of the name succeed at this address, and those of addresses there.
fn arrive(bench: &mut World, at: &str) -> Vec<ConnId> {
    for conn in bench.dialling.clone() {
        let endpoint = bench.dialled_to(conn);
        let at = if endpoint == "node.example:6379" { at } else { &endpoint };
        bench.turn(|worker| worker.handle_address(conn, at));
    }
    bench.connect()
}

/// The name leads elsewhere than to these connections.
fn leave(bench: &mut World, conns: &[ConnId]) {
    bench.turn(|worker| conns.iter().for_each(|conn| worker.handle_moved(*conn, NEW)));
}

/// The name leads elsewhere than to these connections, and there is a server. Gives the connections to it.
fn move_from(bench: &mut World, conns: &[ConnId]) -> Vec<ConnId> {
    leave(bench, conns);
    for _ in 0..100 {
        if bench.dialling.is_empty() {
            bench.wait(10_000);
            bench.turn(|_| ());
        }
    }
    assert!(!bench.dialling.is_empty(), "the new address is tried");
    arrive(bench, NEW)
}

/// Time passes in which everything that is asked for a connection gets one at this address.
fn pass(bench: &mut World, at: &str) {
    for _ in 0..5 {
        bench.wait(20_000);
        bench.turn(|_| ());
        arrive(bench, at);
        for conn in bench.nodes.clone() {
            bench.take_multi(conn);
        }
    }
}

/// Which of these connections heard something, and what.
fn asked(bench: &mut World, conns: &[ConnId]) -> Vec<String> {
    conns.iter().flat_map(|conn| requests(&bench.heard(*conn))).filter(|request| request != "PING").collect()
}

fn others(bench: &World, than: &[ConnId]) -> Vec<ConnId> {
    // A place is used again once its connection is closed.
    let is_other = |conn: &ConnId| !than.contains(conn) || bench.closed.contains(conn);
    bench.nodes.iter().copied().filter(is_other).collect()
}

/// A client of this mode watches a key at the old address and queues a block.
fn watch(mode: PoolMode) -> (World, ConnId, Vec<ConnId>) {
    let mut bench = named_in(mode);
    let client = bench.accept();
    bench.ask(client, &["GET", "key"]);
    let mut old = arrive(&mut bench, OLD);
    bench.send(old[0], b"$-1\r\n");
    bench.ask(client, &["WATCH", "key"]);
    old.extend(arrive(&mut bench, OLD));
    let pin = *old.last().expect("they are watched somewhere");
    let heard = requests(&bench.heard(pin));
    if heard.contains(&"MULTI".to_owned()) {
        bench.send(pin, b"+OK\r\n*0\r\n");
    }
    assert_eq!(heard.last().map(String::as_str), Some("WATCH key"), "{mode:?}: {heard:?}");
    bench.send(pin, b"+OK\r\n");
    for words in [&["MULTI"][..], &["SET", "key", "1"]] {
        bench.ask(client, words);
    }
    let told = bench.heard(client);
    assert!(told.ends_with("+OK\r\n+OK\r\n+QUEUED\r\n"), "{mode:?}: {told:?}");
    (bench, client, old)
}

#[test]
fn keys_watched_where_a_name_led_count_as_changed() {
    for mode in PoolMode::ALL.map(|(mode, _)| mode) {
        let (mut bench, client, old) = watch(mode);
        move_from(&mut bench, &old);
        bench.ask(client, &["EXEC"]);
        pass(&mut bench, NEW);
        assert_eq!(bench.heard(client), "*-1\r\n", "{mode:?}");
        let all = bench.nodes.clone();
        assert!(!asked(&mut bench, &all).contains(&"SET key 1".to_owned()), "{mode:?}");
    }
}

#[test]
fn they_are_watched_on_until_the_new_address_answers() {
    for mode in PoolMode::ALL.map(|(mode, _)| mode) {
        let (mut bench, client, old) = watch(mode);
        leave(&mut bench, &old);
        for _ in 0..3 {
            bench.wait(500_000);
            bench.turn(|_| ());
            bench.refuse_dials();
        }
        bench.ask(client, &["EXEC"]);
        assert!(asked(&mut bench, &old).contains(&"SET key 1".to_owned()), "{mode:?}");
    }
}

#[test]
fn nothing_is_left_where_the_name_leads_back() {
    for mode in PoolMode::ALL.map(|(mode, _)| mode) {
        let (mut bench, client, old) = watch(mode);
        leave(&mut bench, &old);
        bench.wait(10_000);
        bench.turn(|_| ());
        arrive(&mut bench, OLD);
        pass(&mut bench, OLD);
        bench.ask(client, &["EXEC"]);
        assert!(asked(&mut bench, &old).contains(&"SET key 1".to_owned()), "{mode:?}");
    }
}

#[test]
fn a_dial_resolved_before_is_no_sign_that_the_name_leads_back() {
    let (mut bench, client, old) = watch(PoolMode::Multiplex);
    let late = bench.accept();
    bench.ask(late, &["WATCH", "other"]);
    let dialled = bench.dialling.clone();
    assert_eq!(dialled.len(), 1);
    leave(&mut bench, &old);
    bench.turn(|worker| worker.handle_address(dialled[0], OLD));
    bench.connect_these(&dialled);
    assert!(asked(&mut bench, &dialled).contains(&"WATCH other".to_owned()));
    bench.send(dialled[0], b"+OK\r\n");
    pass(&mut bench, NEW);
    for client in [client, late] {
        bench.heard(client);
        bench.ask(client, &["MULTI"]);
        bench.heard(client);
        bench.ask(client, &["EXEC"]);
        assert_eq!(bench.heard(client), "*-1\r\n");
    }
}

#[test]
fn what_leads_to_an_address_that_stays_is_kept() {
    for mode in PoolMode::ALL.map(|(mode, _)| mode) {
        let (mut bench, client, old) = watch(mode);
        // Another client's connection leads to the second address.
        let other = bench.accept();
        bench.ask(other, &["WATCH", "other"]);
        let at_other = arrive(&mut bench, NEW);
        bench.send(at_other[0], b"+OK\r\n");
        leave(&mut bench, &at_other);
        pass(&mut bench, OLD);
        bench.ask(client, &["EXEC"]);
        assert!(asked(&mut bench, &old).contains(&"SET key 1".to_owned()), "{mode:?}");
        bench.ask(other, &["MULTI"]);
        bench.ask(other, &["EXEC"]);
        assert!(bench.heard(other).ends_with("*-1\r\n"), "{mode:?}: its address has gone");
    }
}

#[test]
fn nothing_is_written_where_a_name_led() {
    for mode in PoolMode::ALL.map(|(mode, _)| mode) {
        let mut bench = named_in(mode);
        let clients = [bench.accept(), bench.accept()];
        clients.iter().for_each(|client| bench.ask(*client, &["GET", "key"]));
        let old = arrive(&mut bench, OLD);
        let replies = if old.len() > 1 { &b"$-1\r\n"[..] } else { b"$-1\r\n$-1\r\n" };
        old.iter().for_each(|conn| bench.send(*conn, replies));
        // One more is under way when the name moves.
        bench.ask(clients[0], &["SET", "key", "1"]);
        move_from(&mut bench, &old);
        assert!(asked(&mut bench, &old).contains(&"SET key 1".to_owned()), "{mode:?}");
        for client in clients {
            bench.ask(client, &["SET", "key", "2"]);
        }
        pass(&mut bench, NEW);
        let left: Vec<ConnId> = old.iter().copied().filter(|conn| !bench.closed.contains(conn)).collect();
        assert_eq!(asked(&mut bench, &left), [] as [&str; 0], "{mode:?}");
        let new = others(&bench, &old);
        // Who is owed a reply waits for it, and on a shared connection all others do.
        let expected = usize::from(mode == PoolMode::Session);
        let is_second = |one: &&String| *one == "SET key 2";
        assert_eq!(asked(&mut bench, &new).iter().filter(is_second).count(), expected, "{mode:?}");
        for conn in &left {
            bench.send(*conn, b"+OK\r\n");
        }
        pass(&mut bench, NEW);
        let all = bench.nodes.clone();
        assert_eq!(asked(&mut bench, &all).iter().filter(is_second).count(), 2 - expected, "{mode:?}");
        assert!(old.iter().all(|conn| bench.closed.contains(conn)), "{mode:?}");
    }
}

#[test]
fn what_waits_where_a_name_led_is_asked_again() {
    for mode in PoolMode::ALL.map(|(mode, _)| mode) {
        let mut bench = named_in(mode);
        let client = bench.accept();
        bench.ask(client, &["GET", "key"]);
        let mut old = arrive(&mut bench, OLD);
        bench.send(old[0], b"$-1\r\n");
        bench.heard(client);
        bench.heard(old[0]);
        bench.ask(client, &["BLPOP", "key", "0"]);
        old.extend(arrive(&mut bench, OLD));
        let waits = *old.last().expect("it waits somewhere");
        assert!(requests(&bench.heard(waits)).contains(&"CLIENT ID".to_owned()));
        bench.send(waits, b":7\r\n");
        let heard = asked(&mut bench, &old);
        assert!(heard.iter().all(|one| one == "BLPOP key 0"), "{mode:?}: {heard:?}");
        move_from(&mut bench, &old);
        arrive(&mut bench, NEW);
        let told = bench
            .nodes
            .clone()
            .into_iter()
            .find(|conn| requests(&bench.heard(*conn)).contains(&"CLIENT UNBLOCK 7".to_owned()));
        bench.send(told.expect("it is asked back where it waits"), b":1\r\n");
        bench.send(waits, b"*-1\r\n");
        let mut again = None;
        for _ in 0..3 {
            pass(&mut bench, NEW);
            for conn in others(&bench, &old) {
                let heard = requests(&bench.heard(conn));
                if heard.contains(&"CLIENT ID".to_owned()) {
                    bench.send(conn, b":8\r\n");
                }
                if heard.contains(&"EXEC".to_owned()) {
                    // Meanwhile it is tried.
                    bench.send(conn, b"+OK\r\n+QUEUED\r\n*1\r\n*-1\r\n");
                }
                let heard = [heard, requests(&bench.heard(conn))].concat();
                again = again.or_else(|| heard.contains(&"BLPOP key 0".to_owned()).then_some(conn));
            }
        }
        bench.send(again.expect("it is asked again"), b"*2\r\n$3\r\nkey\r\n$1\r\nx\r\n");
        assert_eq!(bench.heard(client), "*2\r\n$3\r\nkey\r\n$1\r\nx\r\n", "{mode:?}");
    }
}

#[test]
fn it_is_asked_back_where_it_waits_and_nowhere_else() {
    let mut bench = named_in(PoolMode::Multiplex);
    let client = bench.accept();
    bench.ask(client, &["BLPOP", "key", "0"]);
    // No other connection leads to the old address.
    let waits = arrive(&mut bench, OLD);
    bench.send(waits[0], b":7\r\n");
    bench.heard(waits[0]);
    leave(&mut bench, &waits);
    bench.wait(10_000);
    bench.turn(|_| ());
    let new = arrive(&mut bench, NEW);
    bench.turn(|_| ());
    // A number is a connection's at one server: at the new one it may be another client's.
    assert!(!asked(&mut bench, &new).contains(&"CLIENT UNBLOCK 7".to_owned()));
    let back = bench.dialling.clone();
    assert_eq!(back.iter().map(|conn| bench.dialled_to(*conn)).collect::<Vec<_>>(), [OLD]);
    arrive(&mut bench, OLD);
    assert!(asked(&mut bench, &back).contains(&"CLIENT UNBLOCK 7".to_owned()));
}

#[test]
fn who_watches_a_node_whose_name_moves_is_disconnected() {
    let mut bench = named_in(PoolMode::Multiplex);
    let client = bench.accept();
    bench.ask(client, &["MONITOR"]);
    let old = arrive(&mut bench, OLD);
    bench.send(old[0], b"+OK\r\n");
    assert_eq!(bench.heard(client), "+OK\r\n");
    move_from(&mut bench, &old);
    assert!(bench.closed.contains(&client) && bench.closed.contains(&old[0]));
}

#[test]
fn a_block_and_a_pause_go_to_where_the_name_leads() {
    for mode in PoolMode::ALL.map(|(mode, _)| mode) {
        let mut bench = named_in(mode);
        let [operator, client] = [bench.accept(), bench.accept()];
        bench.ask(client, &["GET", "key"]);
        let old = arrive(&mut bench, OLD);
        bench.send(old[0], b"$-1\r\n");
        for words in [&["MULTI"][..], &["SET", "key", "1"]] {
            bench.ask(client, words);
        }
        bench.heard(client);
        assert_eq!(bench.answer(operator, &["PROXY", "PAUSE", "node-0"]), "+OK\r\n");
        bench.ask(client, &["EXEC"]);
        move_from(&mut bench, &old);
        pass(&mut bench, NEW);
        let new = others(&bench, &old);
        assert!(!asked(&mut bench, &new).contains(&"SET key 1".to_owned()), "{mode:?}: the pause holds");
        assert_eq!(bench.answer(operator, &["PROXY", "RESUME", "node-0"]), "+OK\r\n");
        pass(&mut bench, NEW);
        let new = others(&bench, &old);
        assert!(asked(&mut bench, &new).contains(&"SET key 1".to_owned()), "{mode:?}");
        assert!(!asked(&mut bench, &old).contains(&"SET key 1".to_owned()), "{mode:?}");
    }
}

#[test]
fn scripts_go_to_where_the_name_leads() {
    let mut bench = named_in(PoolMode::Multiplex);
    let client = bench.accept();
    let eval = ["EVAL", "return 1", "1", "key"];
    bench.ask(client, &eval);
    let old = arrive(&mut bench, OLD);
    let runs = old.iter().copied().find(|conn| requests(&bench.heard(*conn)).contains(&eval.join(" ")));
    let runs = runs.expect("it is sent");
    move_from(&mut bench, &old);
    let other = bench.accept();
    bench.ask(other, &eval);
    pass(&mut bench, NEW);
    assert_eq!(asked(&mut bench, &old), [] as [&str; 0]);
    bench.send(runs, b":1\r\n");
    assert_eq!(bench.heard(client), ":1\r\n");
    pass(&mut bench, NEW);
    let all = bench.nodes.clone();
    assert!(!all.contains(&runs) && asked(&mut bench, &all).contains(&eval.join(" ")));
}

#[test]
fn what_clients_listen_to_is_told_where_the_name_leads() {
    let mut bench = named_in(PoolMode::Multiplex);
    let client = bench.accept();
    bench.ask(client, &["SUBSCRIBE", "news"]);
    let old = arrive(&mut bench, OLD);
    let push = old.iter().copied().find(|conn| requests(&bench.heard(*conn)).contains(&"subscribe news".to_owned()));
    let push = push.expect("it is told");
    bench.send(push, b">3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n");
    bench.heard(client);
    leave(&mut bench, &old);
    bench.wait(10_000);
    bench.turn(|_| ());
    arrive(&mut bench, NEW);
    pass(&mut bench, NEW);
    assert!(bench.closed.contains(&push));
    let new = others(&bench, &old);
    // Its place is used again.
    let all: Vec<ConnId> = new.into_iter().chain([push]).collect();
    assert!(asked(&mut bench, &all).contains(&"subscribe news".to_owned()));
    assert!(!bench.closed.contains(&client));
}

#[test]
fn who_tracks_without_its_own_changes_forgets_what_it_has_read() {
    let mut bench = named_in(PoolMode::Multiplex);
    let client = bench.accept();
    bench.ask(client, &["HELLO", "3"]);
    bench.heard(client);
    bench.ask(client, &["CLIENT", "TRACKING", "ON", "NOLOOP"]);
    let old = arrive(&mut bench, OLD);
    for conn in &old {
        if bench.heard(*conn).contains("ID") {
            bench.send(*conn, b":7\r\n");
        }
    }
    bench.ask(client, &["GET", "key"]);
    let reads = old.iter().copied().find(|conn| requests(&bench.heard(*conn)).contains(&"GET key".to_owned()));
    bench.send(reads.expect("it is read"), b"$1\r\n1\r\n");
    bench.heard(client);
    move_from(&mut bench, &old);
    pass(&mut bench, NEW);
    assert!(bench.heard(client).contains("invalidate"), "what it has stored may have changed");
    bench.ask(client, &["GET", "key"]);
    pass(&mut bench, NEW);
    assert!(!asked(&mut bench, &old).contains(&"GET key".to_owned()));
}

#[test]
fn a_large_reply_is_read_out_and_the_next_goes_elsewhere() {
    let mut bench = named_in(PoolMode::Multiplex);
    let client = bench.accept();
    bench.ask(client, &["GET", "large"]);
    let old = arrive(&mut bench, OLD);
    bench.heard(old[0]);
    let large = [b"$2000000\r\n".as_slice(), &[b'v'; 2_000_000], b"\r\n"].concat();
    let (mut first, mut rest) = large.split_at(1_000_000);
    for _ in 0..100 {
        first = bench.offer(old[0], first);
    }
    bench.ask(client, &["SET", "key", "2"]);
    move_from(&mut bench, &old);
    for _ in 0..100 {
        rest = bench.offer(old[0], rest);
    }
    assert!(rest.is_empty());
    let told = bench.heard(client).len();
    assert!(told >= large.len(), "{told}");
    bench.ask(client, &["SET", "key", "3"]);
    pass(&mut bench, NEW);
    assert!(!asked(&mut bench, &old).contains(&"SET key 3".to_owned()));
    let new = others(&bench, &old);
    assert!(!new.is_empty());
}

#[test]
fn a_name_that_moves_in_a_drain_or_a_reload_loses_nothing() {
    for is_drained in [false, true] {
        let mut bench = named_in(PoolMode::Multiplex);
        let client = bench.accept();
        bench.ask(client, &["SET", "key", "1"]);
        let old = arrive(&mut bench, OLD);
        assert_eq!(asked(&mut bench, &old), ["SET key 1"]);
        leave(&mut bench, &old);
        if is_drained {
            bench.turn(|worker| worker.handle_mail(respool_proxy::Mail::Drain));
        } else {
            let same = Arc::new(named(PoolMode::Transaction));
            bench.turn(|worker| worker.handle_mail(respool_proxy::Mail::Reload(same)));
        }
        pass(&mut bench, NEW);
        bench.send(old[0], b"+OK\r\n");
        assert_eq!(bench.heard(client), "+OK\r\n");
        if !is_drained {
            bench.send(client, &request(&["SET", "key", "2"]));
            pass(&mut bench, NEW);
            let new = others(&bench, &old);
            assert!(asked(&mut bench, &new).contains(&"SET key 2".to_owned()));
        }
    }
}

#[test]
fn a_name_that_moves_for_ever_leaves_nothing_behind() {
    let mut bench = named_in(PoolMode::Multiplex);
    let client = bench.accept();
    bench.ask(client, &["GET", "key"]);
    let mut conns = arrive(&mut bench, "10.0.1.0:6379");
    bench.send(conns[0], b"$-1\r\n");
    for round in 1..100 {
        let at = format!("10.0.1.{round}:6379");
        leave(&mut bench, &conns);
        bench.wait(10_000);
        bench.turn(|_| ());
        arrive(&mut bench, &at);
        pass(&mut bench, &at);
        conns = bench.nodes.clone();
        assert!(conns.len() <= 2, "{round}: {}", conns.len());
    }
}

#[test]
fn a_node_moved_by_name_and_reload_is_where_the_reload_says() {
    for mode in PoolMode::ALL.map(|(mode, _)| mode) {
        let mut bench = named_in(mode);
        let clients = [bench.accept(), bench.accept()];
        bench.ask(clients[0], &["GET", "key"]);
        let old = arrive(&mut bench, OLD);
        bench.send(old[0], b"$-1\r\n");
        leave(&mut bench, &old);
        bench.wait(10_000);
        bench.turn(|_| ());
        // A connection by the former name is made late.
        bench.ask(clients[1], &["WATCH", "key"]);
        let late = bench.dialling.clone();
        let endpoint = Arc::new(Endpoint::Tcp { host: "other.example".to_owned(), port: 6379 });
        let mut config = named(mode);
        config.nodes.iter_mut().for_each(|node| node.endpoint = Arc::clone(&endpoint));
        bench.turn(|worker| worker.handle_mail(respool_proxy::Mail::Reload(Arc::new(config))));
        for conn in late.iter().filter(|conn| bench.dialling.contains(conn)).copied().collect::<Vec<_>>() {
            bench.turn(|worker| worker.handle_address(conn, NEW));
            bench.connect_these(&[conn]);
        }
        leave(&mut bench, &old);
        bench.ask(clients[0], &["SET", "key", "1"]);
        pass(&mut bench, "10.0.0.3:6379");
        let asked: Vec<ConnId> = bench.nodes.clone();
        let asked = asked.into_iter().filter(|conn| requests(&bench.heard(*conn)).contains(&"SET key 1".to_owned()));
        let asked: Vec<String> = asked.collect::<Vec<_>>().into_iter().map(|conn| bench.dialled_to(conn)).collect();
        assert_eq!(asked, ["other.example:6379"], "{mode:?}");
    }
}

#[test]
fn what_waits_is_asked_back_at_each_address_that_is_left() {
    let mut bench = named_in(PoolMode::Multiplex);
    let mut waits = Vec::new();
    for (number, at) in [(7, OLD), (8, "10.0.0.3:6379")] {
        let client = bench.accept();
        bench.ask(client, &["BLPOP", "key", "0"]);
        let lane = arrive(&mut bench, at)[0];
        bench.send(lane, format!(":{number}\r\n").as_bytes());
        assert!(requests(&bench.heard(lane)).contains(&"BLPOP key 0".to_owned()));
        waits.push((number, at));
    }
    let old = bench.nodes.clone();
    leave(&mut bench, &old);
    bench.wait(10_000);
    bench.turn(|_| ());
    arrive(&mut bench, NEW);
    bench.turn(|_| ());
    for (number, at) in waits {
        let back = bench.dialling.iter().copied().find(|conn| bench.dialled_to(*conn) == at);
        let back = back.expect("what is left to be said to an address is said there");
        bench.connect_these(&[back]);
        assert_eq!(asked(&mut bench, &[back]), [format!("CLIENT UNBLOCK {number}")], "{at}");
    }
}

#[test]
fn what_was_read_where_a_name_led_is_forgotten_by_all_who_track() {
    let mut bench = named_in(PoolMode::Multiplex);
    let client = bench.accept();
    bench.ask(client, &["HELLO", "3"]);
    bench.heard(client);
    bench.ask(client, &["CLIENT", "TRACKING", "ON"]);
    // The node tells of changes where the name leads already, and it is read where it led before.
    let push = arrive(&mut bench, NEW);
    let told = push.iter().copied().find(|conn| bench.heard(*conn).contains("TRACKING"));
    bench.send(told.expect("changes are asked for"), b"+OK\r\n");
    bench.ask(client, &["GET", "key"]);
    let old = arrive(&mut bench, OLD);
    let reads = old.iter().copied().find(|conn| requests(&bench.heard(*conn)).contains(&"GET key".to_owned()));
    bench.send(reads.expect("it is read"), b"$1\r\n1\r\n");
    bench.heard(client);
    leave(&mut bench, &old);
    pass(&mut bench, NEW);
    assert!(bench.heard(client).contains("invalidate"), "it may be another value there");
}

/// A dial is under way to where the name led: it reaches that address as far as this says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reaches {
    /// When the address has been left.
    Late,
    /// While the address is still in use, since the new one does not answer yet.
    OnTrial,
    /// Before the name moves.
    Early,
}

/// What a client sends that has a connection dialled beside the first one, and what the node hears of it.
type Dialled = (&'static [&'static [&'static str]], &'static str);

/// All that connections are dialled for, in a mode in which it is.
const DIALLED: &[(PoolMode, Dialled)] = &[
    (PoolMode::Multiplex, (&[&["HELLO", "3"], &["SET", "key", "1"]], "SET key 1")),
    (PoolMode::Multiplex, (&[&["EVAL", "return 1", "1", "key"]], "EVAL return 1 1 key")),
    (PoolMode::Multiplex, (&[&["WATCH", "key"]], "WATCH key")),
    (PoolMode::Multiplex, (&[&["BLPOP", "key", "0"]], "CLIENT ID")),
    (PoolMode::Multiplex, (&[&["MONITOR"]], "MONITOR")),
    (PoolMode::Multiplex, (&[&["REPLCONF", "capa", "eof"]], "REPLCONF capa eof")),
    (PoolMode::Multiplex, (&[&["SUBSCRIBE", "news"]], "subscribe news")),
    (PoolMode::Multiplex, (&[&["HELLO", "3"], &["CLIENT", "TRACKING", "ON", "NOLOOP"]], "CLIENT ID")),
    (PoolMode::Transaction, (&[&["MULTI"], &["SET", "key", "1"], &["EXEC"]], "SET key 1")),
    (PoolMode::Session, (&[&["SET", "key", "1"]], "SET key 1")),
];

#[test]
fn a_late_dial_serves_nothing_where_a_name_led() {
    for reaches in [Reaches::Late, Reaches::OnTrial, Reaches::Early] {
        for (mode, (asks, heard)) in DIALLED {
            let mut bench = named_in(*mode);
            let first = bench.accept();
            bench.ask(first, &["GET", "key"]);
            let mut old = arrive(&mut bench, OLD);
            bench.send(old[0], b"$-1\r\n");
            let client = bench.accept();
            asks.iter().for_each(|words| bench.ask(client, words));
            let late = bench.dialling.clone();
            assert!(!late.is_empty(), "{mode:?} {heard}");
            let reach = |bench: &mut World| {
                late.iter().for_each(|conn| {
                    bench.turn(|worker| {
                        worker.handle_address(*conn, OLD);
                        worker.handle_connected(*conn);
                    });
                });
            };
            if reaches == Reaches::Early {
                reach(&mut bench);
                old.extend(&late);
            }
            bench.dialling.clear();
            leave(&mut bench, &old);
            if reaches == Reaches::OnTrial {
                reach(&mut bench);
            }
            bench.wait(10_000);
            bench.turn(|_| ());
            assert!(!bench.dialling.is_empty(), "the new address is tried: {mode:?} {heard}");
            arrive(&mut bench, NEW);
            if reaches == Reaches::Late {
                reach(&mut bench);
            }
            for conn in &late {
                assert!(bench.closed.contains(conn), "{reaches:?} {mode:?} {heard}");
                let told = requests(&bench.heard(*conn));
                assert!(!told.contains(&(*heard).to_owned()), "{reaches:?} {mode:?}: {told:?}");
            }
            // The name is resolved again, and what waited goes there.
            let again = arrive(&mut bench, NEW);
            assert!(late.iter().all(|conn| again.contains(conn)), "{reaches:?} {mode:?} {heard}");
            let asked = asked(&mut bench, &again);
            assert!(asked.contains(&(*heard).to_owned()), "{reaches:?} {mode:?}: {asked:?}");
        }
    }
}

#[test]
fn an_address_that_a_name_resolves_to_anew_is_used() {
    let mut bench = named_in(PoolMode::Multiplex);
    let client = bench.accept();
    bench.ask(client, &["GET", "key"]);
    let old = arrive(&mut bench, OLD);
    bench.send(old[0], b"$-1\r\n");
    bench.ask(client, &["WATCH", "key"]);
    let late = std::mem::take(&mut bench.dialling);
    leave(&mut bench, &old);
    bench.wait(10_000);
    bench.turn(|_| ());
    arrive(&mut bench, NEW);
    bench.turn(|worker| {
        worker.handle_address(late[0], OLD);
        worker.handle_connected(late[0]);
    });
    assert_eq!(bench.dialling, late);
    // It is asked for twice and no more: what a name resolves to now is believed.
    assert_eq!(arrive(&mut bench, OLD), late);
    assert_eq!(asked(&mut bench, &late), ["WATCH key"]);
    assert!(bench.dialling.is_empty());
}
