//! Shared connections on which nothing comes: which are replaced, and which are only slow.

mod peer;

use peer::{config, on_both_faces, server};
use respool_client::{Client, Outcome, cmd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

#[test]
fn a_connection_that_stays_silent_is_replaced() {
    on_both_faces(|get| {
        let connections = std::sync::Arc::new(AtomicUsize::new(0));
        let made = std::sync::Arc::clone(&connections);
        let address = server(move |mut peer| {
            let is_first = made.fetch_add(1, Ordering::Relaxed) == 0;
            let mut requests = Vec::new();
            while let Some(request) = peer.request() {
                if is_first && request[1] != "warm" {
                    // Answered when it is too late, on a connection that is there no longer.
                    requests.push(request);
                } else {
                    peer.echo(&request);
                }
            }
            for request in requests {
                peer.echo(&request);
            }
        });
        let limit = Duration::from_millis(250);
        let client = Client::with_config(config(&address).deadline(Some(limit)).silence(Some(4 * limit)));
        assert_eq!(get(&client, "warm").unwrap(), "warm");
        let (mut late, mut replied) = (0, 0);
        for call in 0..200 {
            match get(&client, &call.to_string()) {
                Ok(reply) => {
                    assert_eq!(reply, call.to_string());
                    replied += 1;
                }
                Err(error) => {
                    assert!(error.is_timeout() && error.outcome() != Outcome::Replied, "{error:?}");
                    late += usize::from(error.outcome() == Outcome::MaybeExecuted);
                    continue;
                }
            }
        }
        // A machine that is busy may make calls late that the second connection answers, but none is given the reply to another.
        assert!(late >= 4, "{late} were late");
        assert!(client.stats().connections >= 2 && replied > 0, "{:?}, {replied} replied", client.stats());
    });
}

#[test]
fn a_call_that_is_late_says_what_it_waited_behind() {
    on_both_faces(|get| {
        let address = server(|mut peer| {
            while let Some(request) = peer.request() {
                match &*request[1] {
                    "push" => peer.send(b">1\r\n+pong\r\n"),
                    "warm" => peer.echo(&request),
                    _ => true,
                };
            }
        });
        let client = Client::with_config(config(&address).deadline(Some(Duration::from_secs(1))));
        get(&client, "warm").unwrap();
        for in_front in 0..4 {
            let error = get(&client, if in_front == 3 { "push" } else { "nothing" }).unwrap_err();
            let waited = error.waited().unwrap();
            assert_eq!((waited.in_front, waited.unwritten_bytes, waited.has_heard), (in_front, 0, in_front == 3));
            let behind =
                ["first on its connection,", "behind 1 request (", "behind 2 requests (", "behind 3 requests ("];
            assert!(error.to_string().contains(behind[in_front]), "{error}");
            // Its caller has left: it was late as well.
            assert_eq!(waited.first.is_some(), in_front > 0);
            if let Some(first) = &waited.first {
                assert_eq!((&*first.command, first.key.as_deref()), ("GET", Some(&b"nothing"[..])));
                assert_eq!((first.argument_bytes, first.reply_bytes), (22, 0));
                let limit = Duration::from_secs(1) * in_front as u32;
                assert!((limit..60 * limit).contains(&first.age), "{first:?}");
                let shown = error.to_string();
                assert!(shown.contains("(first GET of 22 bytes, queued ") && !shown.contains("nothing"), "{shown}");
                assert!(!format!("{error:?}").contains("nothing"), "{error:?}");
            }
        }
    });
    // A caller that waits still, for a reply of which a part has come.
    let address = server(|mut peer| {
        while let Some(request) = peer.request() {
            match &*request[1] {
                "large" => peer.send(&[&b"$2000000\r\n"[..], &[b'v'; 1_000_000]].concat()),
                "warm" => peer.echo(&request),
                _ => true,
            };
        }
    });
    let client = Client::with_config(config(&address).deadline(None).large(None));
    client.call::<String>(cmd("GET").arg("warm")).wait().unwrap();
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| client.call::<String>(cmd("HGETALL").key("large")).wait());
        respool_testkit::wait_until("it is sent", Duration::from_secs(60), || Ok(client.stats().in_flight == 1))
            .unwrap();
        let late = client.call::<String>(cmd("GET").key("k")).deadline(Duration::from_secs(1)).wait().unwrap_err();
        let first = late.waited().unwrap().first.as_deref().unwrap();
        assert_eq!((&*first.command, first.key.as_deref()), ("HGETALL", Some(&b"large"[..])));
        assert_eq!(first.reply_bytes, 1_000_010);
        client.close();
        assert!(matches!(waits.join().unwrap().unwrap_err().kind(), respool_client::ErrorKind::Closed));
    });
    let closed = respool_testkit::ClosedPort::take().unwrap();
    let client = Client::with_config(config(&closed.address().to_string()).deadline(Some(Duration::from_millis(50))));
    assert_eq!(client.call::<()>(cmd("GET").key("k")).wait().unwrap_err().waited(), None);
}
