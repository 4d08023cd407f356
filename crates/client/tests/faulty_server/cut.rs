//! Batches whose connection is lost in between.

use crate::peer::{config, on_both_faces, server};
use respool_client::{Client, Outcome, cmd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[test]
fn a_batch_that_is_cut_says_what_had_come() {
    on_both_faces(|get| {
        let connections = Arc::new(AtomicUsize::new(0));
        let made = Arc::clone(&connections);
        let address = server(move |mut peer| {
            let is_first = made.fetch_add(1, Ordering::SeqCst) == 0;
            let mut requests = 0;
            while let Some(request) = peer.request() {
                requests += 1;
                match (is_first, requests) {
                    (true, 4) => return,
                    (true, 2) => peer.send(b"-ERR no\r\n"),
                    _ => peer.echo(&request),
                };
            }
        });
        let client = Client::with_config(config(&address));
        let error = client.batch((1..=10).map(|number| cmd("APPEND").key(number).arg("v"))).wait().unwrap_err();
        assert_eq!(error.outcome(), Outcome::MaybeExecuted, "{error}");
        let is_ok: Vec<bool> = error.replies().iter().map(Result::is_ok).collect();
        assert_eq!(is_ok, [true, false, true]);
        assert_eq!(get(&client, "k").unwrap(), "k");
    });
}

#[test]
fn a_transaction_that_is_cut_has_no_replies() {
    let address = server(|mut peer| {
        while let Some(request) = peer.request() {
            match &*request[0] {
                "GET" => peer.echo(&request),
                "EXEC" => return,
                "MULTI" => peer.send(b"+OK\r\n"),
                _ => peer.send(b"+QUEUED\r\n"),
            };
        }
    });
    let client = Client::with_config(config(&address));
    let error = client.transaction([cmd("APPEND").key("k").arg("v")]).wait().unwrap_err();
    assert_eq!((error.outcome(), error.replies().len()), (Outcome::MaybeExecuted, 0));
}
