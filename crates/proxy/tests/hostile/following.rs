//! Clients with connections of their own for good: what a node says late, and what becomes of them when they close their side.

use crate::bench::{Bench, requests};
use crate::support::config;
use respool_connection::Machine;

/// A replica takes an error to REPLCONF for a server that does not know it, and goes on.
#[test]
fn a_late_reply_to_replconf_is_not_taken_for_the_snapshot() {
    let mut bench = Bench::proxy(config(1, 1));
    let client = bench.accept();
    bench.ask(client, &["REPLCONF", "listening-port", "7000"]);
    let node = bench.connect()[0];
    assert_eq!(requests(&bench.heard(node)), ["REPLCONF listening-port 7000"]);
    for _ in 0..8 {
        bench.wait(100_000);
        bench.turn(|_| ());
    }
    assert!(bench.heard(client).contains("did not answer within"));
    bench.ask(client, &["PSYNC", "?", "-1"]);
    if !bench.closed.contains(&node) {
        bench.send(node, b"+OK\r\n");
    }
    let told = bench.heard(client);
    assert!(told.starts_with("-ERR") && told.matches("\r\n").count() == 1, "{told:?}");
}

#[test]
fn a_client_that_closes_behind_monitor_gets_its_answers() {
    let mut bench = Bench::proxy(config(1, 1));
    let client = bench.accept();
    bench.ask(client, &["MONITOR"]);
    bench.turn(|worker| worker.handle_hung_up(client));
    assert!(!bench.is_read(client), "its nodes have not agreed");
    let node = bench.connect()[0];
    assert_eq!(requests(&bench.heard(node)), ["MONITOR"]);
    bench.send(node, b"+OK\r\n");
    bench.ask(client, &["ECHO", "behind"]);
    bench.turn(|worker| worker.handle_ended(client));
    assert_eq!(bench.heard(client), "+OK\r\n$6\r\nbehind\r\n");
    assert!(bench.closed.contains(&client) && bench.closed.contains(&node));
    assert_eq!(bench.worker.remains(), []);
}

#[test]
fn who_closes_its_side_behind_replconf_is_answered() {
    let mut bench = Bench::proxy(config(1, 1));
    let client = bench.accept();
    bench.ask(client, &["REPLCONF", "listening-port", "7000"]);
    bench.turn(|worker| {
        worker.handle_hung_up(client);
        worker.handle_ended(client);
    });
    let node = *bench.connect().first().expect("it is still asked");
    bench.send(node, b"+OK\r\n");
    assert_eq!((bench.heard(client).as_str(), bench.closed.contains(&client)), ("+OK\r\n", true));
    assert!(bench.closed.contains(&node), "what the node was told of it is no other client's");
    assert_eq!(bench.worker.remains(), []);
}

#[test]
fn a_replica_half_closed_before_its_node_agrees_ends() {
    let mut bench = Bench::proxy(config(1, 1));
    let client = bench.accept();
    bench.ask(client, &["PSYNC", "?", "-1"]);
    bench.turn(|worker| worker.handle_hung_up(client));
    // Its node may agree before its end is seen, as long as there is something to be read of it.
    let node = bench.connect().first().copied();
    node.into_iter().for_each(|node| bench.send(node, b"+FULLRESYNC x 0\r\n"));
    bench.turn(|worker| {
        if worker.read_buffer(client).is_some() {
            worker.handle_ended(client);
        }
    });
    assert!(bench.closed.contains(&client) && node.is_none_or(|node| bench.closed.contains(&node)));
    assert_eq!(bench.worker.remains(), []);
}
