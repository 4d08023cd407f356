//! Large requests that are passed on as they come, and end before they are whole: nothing is executed, and what never was a
//! request has no reply.

use crate::NoEngine;
use crate::bench::{Bench, request};
use crate::support::config;
use respool_connection::{ConnId, Machine, Service};
use respool_proxy::{Budgets, Config, Mail};

/// A client that has been answered once and has then sent half of a large request, and the connection that has that half.
fn half() -> (Bench<NoEngine>, ConnId, ConnId) {
    let base = config(1, 1);
    let budgets = Budgets { request_whole: 1_000, ..base.budgets };
    let mut bench = Bench::proxy(Config { budgets, ..base });
    let client = bench.accept();
    let whole = request(&["SET", "key", &"v".repeat(100_000)]);
    bench.send(client, &whole[..50_000]);
    let own = bench.connect()[0];
    assert_eq!(bench.shared.counters[0].requests_in_pieces.value(), 1);
    assert_eq!(bench.heard(own).len(), 50_000);
    (bench, client, own)
}

#[test]
fn half_a_request_does_not_hold_up_the_end_and_has_no_reply() {
    let (mut bench, client, own) = half();
    bench.turn(|worker| worker.handle_mail(Mail::Drain));
    assert_eq!(bench.heard(client), "", "no request, no reply");
    assert!(bench.closed.contains(&client) && bench.closed.contains(&own), "nothing that it has asked is still owed");
}

#[test]
fn half_a_request_of_a_client_that_closes_its_side_has_no_reply() {
    let (mut bench, client, own) = half();
    bench.turn(|worker| worker.handle_ended(client));
    assert_eq!(bench.heard(client), "");
    assert!(bench.closed.contains(&client) && bench.closed.contains(&own));
}

#[test]
fn a_large_request_is_late_only_once_its_node_has_it() {
    let (mut bench, client, own) = half();
    let rest = request(&["SET", "key", &"v".repeat(100_000)]).split_off(50_000);
    bench.read_on(own, 0);
    bench.send(client, &rest);
    // Each pause is shorter than the timeout, and all of them are longer.
    for _ in 0..3 {
        bench.wait(300_000);
        bench.read_on(own, 10_000);
        assert_eq!(bench.heard(client), "");
    }
    bench.wait(300_000);
    bench.read_on(own, usize::MAX);
    assert_eq!(bench.heard(own).len(), rest.len());
    bench.wait(300_000);
    bench.turn(|_| ());
    assert_eq!(bench.heard(client), "", "it has had the request for 300 ms");
    bench.wait(300_000);
    bench.turn(|_| ());
    assert!(bench.heard(client).contains("did not answer within 500 ms"));
}

#[test]
fn a_node_that_takes_no_more_of_a_large_request_is_late() {
    let (mut bench, client, own) = half();
    bench.read_on(own, 0);
    bench.send(client, &request(&["SET", "key", &"v".repeat(100_000)])[50_000..]);
    bench.wait(600_000);
    bench.turn(|_| ());
    assert!(bench.heard(client).contains("did not answer within 500 ms"));
}

#[test]
fn bytes_amid_a_large_request_that_are_none_are_told_of_once() {
    let (mut bench, client, own) = half();
    bench.send(client, &[&b"v".repeat(50_100)[..], b"xx"].concat());
    let heard = bench.heard(client);
    assert_eq!(heard, "-ERR Protocol error: bulk string not followed by CRLF\r\n");
    assert!(bench.closed.contains(&client) && bench.closed.contains(&own));
}

#[test]
fn half_a_request_that_is_being_answered_ends_its_client() {
    let (mut bench, client, own) = half();
    let begun = [b"$1000000\r\n".as_slice(), &[b'v'; 200_000]].concat();
    bench.send(own, &begun);
    bench.heard(client);
    bench.turn(|worker| worker.handle_mail(Mail::Drain));
    assert_eq!(bench.heard(client), "", "nothing stands behind the beginning of a reply");
    assert!(bench.closed.contains(&client) && bench.closed.contains(&own));
}
