//! Orders whose reply waits until requests or connections have settled, and suspended clients.

use crate::NoEngine;
use crate::bench::{Bench, request, requests};
use crate::support::config;
use respool_connection::{ConnId, Endpoint, Machine, Service};
use respool_proxy::{Config, Mail, Timeouts};
use std::sync::Arc;

/// A proxy with an outstanding GET. Returns the operator, the client and the connection to the node.
fn asking(config: Config) -> (Bench<NoEngine>, ConnId, ConnId, ConnId) {
    let mut bench = Bench::proxy(config);
    let (operator, client) = (bench.accept(), bench.accept());
    bench.ask(client, &["GET", "key"]);
    let node = bench.connect()[0];
    assert_eq!(requests(&bench.heard(node)), ["GET key"]);
    (bench, operator, client, node)
}

#[test]
fn a_pause_that_is_waited_for_is_answered_when_nodes_have() {
    for words in [&["PROXY", "PAUSE", "WAIT"][..], &["PROXY", "PAUSE", "wait", "node-0"]] {
        let (mut bench, operator, client, node) = asking(config(1, 1));
        bench.ask(operator, words);
        bench.ask(client, &["SET", "key", "1"]);
        bench.pass(300_000);
        assert_eq!(bench.heard(operator), "");
        bench.send(node, b"$-1\r\n");
        bench.pass(200_000);
        assert_eq!(bench.heard(operator), "+OK\r\n", "{words:?}");
        assert_eq!(bench.heard(client), "$-1\r\n");
        assert_eq!(requests(&bench.heard(node)), Vec::<String>::new());
    }
}

/// The requests without a reply that are shown for the node, the same for its pool and in INFO.
fn shown_outstanding(bench: &mut Bench<NoEngine>, operator: ConnId) -> String {
    let mut shown = |table: &str| {
        bench.ask(operator, &["PROXY", "SHOW", table]);
        let table = bench.heard(operator);
        let behind = table.split("$11\r\noutstanding\r\n").nth(1).expect("the column is there");
        behind.split("\r\n").next().unwrap_or_default().to_owned()
    };
    let (node, pool) = (shown("NODES"), shown("POOLS"));
    bench.ask(operator, &["INFO", "nodes"]);
    let info = bench.heard(operator);
    assert!(pool == node && info.contains(&format!(",outstanding={},", &node[1..])), "{node} {pool} {info}");
    node
}

#[test]
fn what_waits_for_a_dial_is_shown_for_a_drained_node() {
    for other_address in [false, true] {
        let mut bench = Bench::proxy(config(1, 1));
        let (operator, client) = (bench.accept(), bench.accept());
        bench.ask(client, &["SET", "key", "1"]);
        if other_address {
            let mut moved = config(1, 1);
            moved.nodes[0].endpoint = Arc::new(Endpoint::Unix { path: "/elsewhere".into() });
            bench.turn(|worker| worker.handle_mail(Mail::Reload(Arc::new(moved))));
        }
        bench.ask(operator, &["PROXY", "DRAIN", "node-0"]);
        assert_eq!(bench.heard(operator), "+OK\r\n");
        assert_eq!(shown_outstanding(&mut bench, operator), ":1", "it will be done by the node: {other_address}");
        let node = bench.connect()[0];
        assert_eq!(requests(&bench.heard(node)), ["SET key 1"]);
        assert_eq!(shown_outstanding(&mut bench, operator), ":1");
        bench.send(node, b"+OK\r\n");
        bench.turn(|_| ());
        assert_eq!(bench.heard(client), "+OK\r\n");
        assert_eq!(shown_outstanding(&mut bench, operator), ":0");
    }
}

#[test]
fn what_has_timed_out_is_waited_for_and_named_in_the_end() {
    let plain = config(1, 1);
    let timeouts = Timeouts { silence_us: 60_000_000, ..plain.timeouts };
    let (mut bench, operator, client, node) = asking(Config { timeouts, ..plain });
    bench.ask(operator, &["PROXY", "PAUSE", "WAIT"]);
    bench.pass(900_000);
    assert!(bench.heard(client).starts_with("-ERR"), "its time is over, and the node may still execute it");
    assert_eq!(bench.heard(operator), "");
    bench.pass(300_000);
    let said = bench.heard(operator);
    assert!(said.starts_with("-ERR the order holds, but not everything has settled within drain_timeout"), "{said}");
    assert!(said.ends_with(": node-0 has not answered 1 requests\r\n"), "{said}");
    // The order holds, and may be given again.
    bench.ask(operator, &["PROXY", "PAUSE", "WAIT"]);
    bench.send(node, b"$-1\r\n");
    bench.pass(200_000);
    assert_eq!(bench.heard(operator), "+OK\r\n");
}

#[test]
fn a_worker_that_does_not_answer_is_not_taken_for_settled() {
    for words in [&["PAUSE", "WAIT"][..], &["PAUSE"], &["DRAIN", "node-0"], &["RESUME"], &["RECONNECT"]] {
        let mut bench = Bench::of_many(config(1, 1), 2, Arc::default());
        let operator = bench.accept();
        bench.ask(operator, &[&["PROXY"], words].concat());
        bench.pass(4_000_000);
        assert_eq!(bench.heard(operator), "", "{words:?}");
        bench.pass(4_000_000);
        let said = bench.heard(operator);
        assert!(said.starts_with("-ERR a worker is busy and has not carried out the order yet"), "{words:?}: {said}");
    }
}

#[test]
fn a_table_of_sums_is_not_shown_without_a_worker() {
    for (table, is_sum) in [("NODES", true), ("POOLS", true), ("CLIENTS", false)] {
        let mut bench = Bench::of_many(config(1, 1), 2, Arc::default());
        let operator = bench.accept();
        bench.ask(operator, &["PROXY", "SHOW", table]);
        bench.pass(8_000_000);
        let said = bench.heard(operator);
        assert_eq!(said.starts_with("-ERR a worker is busy and has not answered"), is_sum, "{table}: {said}");
        assert_eq!(said.starts_with('*'), !is_sum, "{table}: {said}");
    }
}

#[test]
fn orders_without_replies_wait_for_workers_that_stand_still() {
    let mut bench = Bench::of_many(config(1, 1), 2, Arc::default());
    let operator = bench.accept();
    let requests = [request(&["CLIENT", "REPLY", "OFF"]), request(&["PROXY", "RESUME"]).repeat(120_000)].concat();
    let mut rest = bench.offer(operator, &requests);
    bench.pass(1_000_000);
    rest = bench.offer(operator, rest);
    // Another worker stands still.
    let posted = bench.posted.len();
    assert!((90_000..=100_001).contains(&posted), "{posted}");
    bench.pass(6_000_000);
    rest = bench.offer(operator, rest);
    assert_eq!((bench.posted.len(), rest.len()), (120_000, 0), "those before are given up, and it is read on");
}

#[test]
fn connections_that_are_replaced_are_waited_for() {
    let (mut bench, operator, client, node) = asking(config(1, 1));
    bench.ask(operator, &["PROXY", "WAIT_CLOSE"]);
    bench.pass(120_000);
    assert_eq!(bench.heard(operator), "+OK\r\n", "nothing is to be closed");
    assert_eq!(bench.answer(operator, &["PROXY", "RECONNECT"]), ":1\r\n");
    bench.ask(operator, &["PROXY", "WAIT_CLOSE", "node-0"]);
    bench.pass(100_000);
    let new = bench.connect()[0];
    bench.pass(120_000);
    assert_eq!(bench.heard(operator), "", "the old one owes a reply");
    bench.send(node, b"$-1\r\n");
    bench.pass(300_000);
    assert_eq!((bench.heard(operator), bench.heard(client)), ("+OK\r\n".to_owned(), "$-1\r\n".to_owned()));
    assert_eq!(bench.nodes, [new]);
}

#[test]
fn a_server_that_a_reload_has_left_is_waited_for() {
    let (mut bench, operator, _, node) = asking(config(1, 1));
    let mut moved = config(1, 1);
    moved.nodes[0].endpoint = Arc::new(respool_connection::Endpoint::Embedded { index: 7 });
    bench.turn(|worker| worker.handle_mail(Mail::Reload(Arc::new(moved))));
    bench.ask(operator, &["PROXY", "WAIT_CLOSE", "node-0"]);
    bench.pass(300_000);
    assert_eq!(bench.heard(operator), "");
    bench.send(node, b"$-1\r\n");
    bench.pass(300_000);
    assert_eq!(bench.heard(operator), "+OK\r\n");
}

#[test]
fn an_operator_that_leaves_waits_for_nothing() {
    let (mut bench, operator, client, node) = asking(config(1, 1));
    let (other, third) = (bench.accept(), bench.accept());
    assert_eq!(bench.answer(operator, &["PROXY", "RECONNECT"]), ":1\r\n");
    for asker in [operator, other] {
        bench.ask(asker, &["PROXY", "WAIT_CLOSE"]);
    }
    bench.turn(|worker| worker.handle_hung_up(operator));
    bench.turn(|worker| worker.handle_ended(operator));
    bench.turn(|worker| worker.handle_broken(other, "it was reset"));
    bench.pass(300_000);
    assert!(bench.closed.contains(&operator), "it is closed although its reply would never have come");
    assert_eq!(bench.figure(third, "clients"), 2);
    // A new client may get the place of one that has left, and does not get the reply to its order.
    let next = bench.accept();
    bench.connect();
    bench.send(node, b"$-1\r\n");
    bench.pass(300_000);
    assert_eq!((bench.heard(next), bench.heard(client)), (String::new(), "$-1\r\n".to_owned()));
}

#[test]
fn who_waits_is_told_when_the_process_ends() {
    let (mut bench, operator, _, _) = asking(config(1, 1));
    bench.ask(operator, &["PROXY", "PAUSE", "WAIT"]);
    bench.turn(|worker| worker.handle_mail(Mail::Drain));
    assert_eq!(bench.heard(operator), "-ERR the server is shutting down\r\n");
}

#[test]
fn a_suspension_is_answered_once_flushed_and_reads_no_client() {
    let (mut bench, operator, client, node) = asking(config(1, 1));
    bench.ask(operator, &["PROXY", "SUSPEND"]);
    assert!(!bench.is_read(client) && bench.is_read(operator));
    bench.pass(200_000);
    assert_eq!(bench.heard(operator), "");
    bench.send(node, b"$-1\r\n");
    bench.pass(200_000);
    assert_eq!((bench.heard(operator), bench.heard(client)), ("+OK\r\n".to_owned(), "$-1\r\n".to_owned()));
    let shown = bench.answer(operator, &["PROXY", "SHOW", "CLIENTS"]);
    assert!(shown.contains("suspended"), "{shown}");
    // A client that connects later is read, and its requests to nodes are held back.
    let late = bench.accept();
    assert_eq!(bench.answer(late, &["PING"]), "+PONG\r\n");
    bench.ask(late, &["GET", "late"]);
    assert_eq!((bench.heard(late), requests(&bench.heard(node))), (String::new(), Vec::new()));
    // A reload does not change that.
    bench.turn(|worker| worker.handle_mail(Mail::Reload(Arc::new(config(1, 1)))));
    assert!(!bench.is_read(client));
    assert_eq!(requests(&bench.heard(node)), Vec::<String>::new());
    assert_eq!(bench.answer(operator, &["PROXY", "RESUME"]), "+OK\r\n");
    assert!(bench.is_read(client));
    bench.ask(client, &["GET", "key"]);
    assert_eq!(requests(&bench.heard(node)), ["GET late", "GET key"]);
}

#[test]
fn a_suspension_names_a_client_that_does_not_read() {
    let (mut bench, operator, client, node) = asking(config(1, 1));
    bench.read_on(client, 3);
    bench.send(node, b"$-1\r\n");
    bench.ask(operator, &["PROXY", "SUSPEND"]);
    bench.pass(1_100_000);
    let said = bench.heard(operator);
    assert!(said.ends_with(": 1 clients have not been given all that they are owed\r\n"), "{said}");
}

#[test]
fn a_suspended_client_that_leaves_takes_its_requests_along() {
    let (mut bench, operator, client, node) = asking(config(1, 1));
    bench.send(node, b"$-1\r\n");
    bench.ask(operator, &["PROXY", "SUSPEND"]);
    bench.pass(200_000);
    assert_eq!(bench.heard(operator), "+OK\r\n");
    assert_eq!(bench.figure(operator, "clients"), 2);
    bench.turn(|worker| worker.handle_hung_up(client));
    bench.turn(|_| ());
    assert_eq!(bench.figure(operator, "clients"), 1);
    assert_eq!(bench.answer(operator, &["PROXY", "RESUME"]), "+OK\r\n");
    assert_eq!(requests(&bench.heard(node)), Vec::<String>::new());
}

#[test]
fn a_drain_ends_clients_that_are_suspended() {
    let (mut bench, operator, client, node) = asking(config(1, 1));
    bench.send(node, b"$-1\r\n");
    bench.ask(operator, &["PROXY", "SUSPEND"]);
    let late = bench.accept();
    bench.send(late, &request(&["INCR", "key"]));
    bench.pass(200_000);
    bench.turn(|worker| worker.handle_mail(Mail::Drain));
    bench.pass(200_000);
    assert!([operator, client, late].iter().all(|conn| bench.closed.contains(conn)));
    assert!(bench.has_ended);
    assert_eq!(requests(&bench.heard(node)), Vec::<String>::new());
}

/// In the turn in which the replies to a trial of MULTI arrive, with the transaction that waits for it, the timers run as well.
#[test]
fn a_pause_that_is_waited_for_waits_for_what_replies_lead_to() {
    let (mut bench, operator, client, node) = asking(config(1, 1));
    bench.send(node, b"$-1\r\n");
    for words in [&["MULTI"][..], &["SET", "key", "1"], &["EXEC"]] {
        bench.ask(client, words);
    }
    assert_eq!(requests(&bench.heard(node)), ["MULTI", "EXEC"]);
    bench.ask(operator, &["PROXY", "PAUSE", "WAIT"]);
    bench.wait(200_000);
    bench.send(node, b"+OK\r\n*0\r\n");
    assert_eq!(requests(&bench.heard(node)), ["MULTI", "SET key 1", "EXEC"]);
    bench.pass(100_000);
    assert_eq!(bench.heard(operator), "", "the transaction has not been answered");
    bench.send(node, b"+OK\r\n+QUEUED\r\n*1\r\n+OK\r\n");
    bench.pass(200_000);
    assert_eq!(bench.heard(operator), "+OK\r\n");
}
