//! A client that is about to be closed gets what it has asked for as a whole.

use crate::bench::{Bench, request, requests};
use crate::support::config;
use respool_connection::{ConnId, Machine, Service};
use respool_proxy::Mail;

/// A transaction of which all requests are ours: each waits for the one before, and that for the nodes.
const BLOCK: [&[&str]; 5] = [
    &["MULTI"],
    &["PROXY", "NODE", "node-0", "CONFIG", "GET", "maxmemory"],
    &["CLIENT", "LIST"],
    &["PROXY", "NODE", "node-1", "CONFIG", "GET", "save"],
    &["EXEC"],
];

fn begins(bench: &mut Bench<crate::NoEngine>) -> ConnId {
    let client = bench.accept();
    BLOCK.iter().for_each(|words| bench.ask(client, words));
    bench.connect();
    client
}

/// The nodes answer whatever they are asked, until they are asked no more.
fn answer(bench: &mut Bench<crate::NoEngine>) {
    loop {
        let mut is_asked = !bench.connect().is_empty();
        for node in bench.nodes.clone() {
            for _ in requests(&bench.heard(node)) {
                is_asked = true;
                bench.send(node, b"*2\r\n$7\r\nsetting\r\n$1\r\n1\r\n");
            }
        }
        if !is_asked {
            return;
        }
    }
}

fn is_whole(bench: &mut Bench<crate::NoEngine>, client: ConnId) {
    let heard = bench.heard(client);
    assert!(heard.contains("+QUEUED\r\n*3\r\n"), "{heard:?}");
    assert_eq!(heard.matches("*2\r\n$7\r\nsetting\r\n").count(), 2, "{heard:?}");
    assert_eq!(heard.matches("cmd=client|list").count() + heard.matches("cmd=exec").count(), 1, "{heard:?}");
    assert!(heard.ends_with("$1\r\n1\r\n") && bench.closed.contains(&client), "{heard:?}");
}

#[test]
fn a_drain_does_not_cut_a_transaction_whose_own_parts_wait() {
    let mut bench = Bench::proxy(config(2, 1));
    let client = begins(&mut bench);
    bench.turn(|worker| worker.handle_mail(Mail::Drain));
    answer(&mut bench);
    bench.wait(50_000);
    bench.turn(|_| ());
    is_whole(&mut bench, client);
}

#[test]
fn a_drain_answers_nothing_behind_a_transaction_within_it() {
    const MANY: usize = 30;
    let mut bench = Bench::proxy(config(2, 1));
    let client = bench.accept();
    let part = request(&["PROXY", "NODE", "node-0", "CONFIG", "GET", "maxmemory"]).repeat(MANY);
    let pipeline = [request(&["MULTI"]), part, request(&["EXEC"]), request(&["ECHO", "behind"])].concat();
    bench.send(client, &pipeline);
    bench.turn(|worker| worker.handle_mail(Mail::Drain));
    answer(&mut bench);
    bench.wait(50_000);
    bench.turn(|_| ());
    let heard = bench.heard(client);
    let (_, replies) = heard.split_once(&format!("*{MANY}\r\n")).expect("the transaction is answered");
    let setting = "*2\r\n$7\r\nsetting\r\n$1\r\n1\r\n";
    assert!(replies.starts_with(&setting.repeat(MANY)), "{} of them come first", replies.matches(setting).count());
    assert!(bench.closed.contains(&client));
}

#[test]
fn a_half_closed_client_gets_its_whole_transactions_reply() {
    let mut bench = Bench::proxy(config(2, 1));
    let client = begins(&mut bench);
    bench.turn(|worker| worker.handle_ended(client));
    answer(&mut bench);
    is_whole(&mut bench, client);
}

#[test]
fn nothing_runs_behind_the_part_that_closes_its_client() {
    let mut bench = Bench::proxy(config(2, 1));
    let client = bench.accept();
    let block: [&[&str]; 4] =
        [&["MULTI"], &["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "no"], &["CLIENT", "LIST"], &["EXEC"]];
    block.iter().for_each(|words| bench.ask(client, words));
    let heard = bench.heard(client);
    assert!(heard.ends_with("*2\r\n:1\r\n") && bench.closed.contains(&client), "{heard:?}");
    assert_eq!(bench.worker.remains(), []);
}

/// The loop reads a client only where the worker says so: what a client has sent is looked at before its end is.
#[test]
fn held_requests_run_before_their_clients_end_is_seen() {
    let mut bench = Bench::proxy(config(1, 1));
    let (client, operator) = (bench.accept(), bench.accept());
    assert_eq!(bench.answer(operator, &["PROXY", "PAUSE"]), "+OK\r\n");
    bench.ask(client, &["SET", "k", "v"]);
    let resume = request(&["PROXY", "RESUME"]);
    bench.turn(|worker| {
        let buffer = worker.read_buffer(operator).expect("it is always heard");
        buffer[..resume.len()].copy_from_slice(&resume);
        worker.handle_read(operator, resume.len());
        worker.handle_hung_up(client);
        if worker.read_buffer(client).is_some() {
            worker.handle_ended(client);
        }
    });
    bench.turn(|worker| {
        if worker.read_buffer(client).is_some() {
            worker.handle_ended(client);
        }
    });
    bench.connect();
    let (node, _) = bench.who_heard("SET k v").expect("it was asked before the end");
    bench.send(node, b"+OK\r\n");
    assert_eq!((bench.heard(client).as_str(), bench.closed.contains(&client)), ("+OK\r\n", true));
}
