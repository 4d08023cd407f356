//! Shared connections on which nothing comes: which are replaced, and which are only slow.

mod peer;

use peer::{config, on_both_faces, server};
use respool_client::{Client, Outcome, cmd};
use std::io::Read;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
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
        let limit = Duration::from_millis(100);
        let client = Client::with_config(config(&address).deadline(Some(limit)).silence(Some(4 * limit)));
        assert_eq!(get(&client, "warm").unwrap(), "warm");
        let mut late = 0;
        for call in 0..200 {
            match get(&client, &call.to_string()) {
                Ok(reply) => assert_eq!(reply, call.to_string()),
                Err(error) => {
                    assert!(error.is_timeout() && error.outcome() != Outcome::Replied, "{error:?}");
                    late += usize::from(error.outcome() == Outcome::MaybeExecuted);
                    continue;
                }
            }
        }
        assert!((4..20).contains(&late), "{late} were late");
        assert_eq!((client.stats().connections, client.stats().in_flight), (2, 0));
    });
}

#[test]
fn a_server_that_answers_slowly_is_not_taken_for_silent() {
    on_both_faces(|get| {
        let address = server(|mut peer| {
            let mut is_first = true;
            while let Some(request) = peer.request() {
                // A byte now and then, for longer than the silence that is let pass.
                for _ in 0..if is_first { 60 } else { 0 } {
                    if !peer.send(b">1\r\n+pong\r\n") {
                        return;
                    }
                    thread::sleep(Duration::from_millis(25));
                }
                is_first = false;
                peer.echo(&request);
            }
        });
        let limit = Duration::from_millis(100);
        let client = Client::with_config(config(&address).deadline(Some(limit)).silence(Some(4 * limit)));
        let replied = (0..200).map(|call: i32| (call, get(&client, &call.to_string())));
        let replied = replied.filter(|(call, reply)| reply.as_ref().is_ok_and(|reply| *reply == call.to_string()));
        assert!(replied.count() > 100);
        assert_eq!(client.stats().connections, 1);
    });
}

#[test]
fn a_server_that_takes_a_request_slowly_is_not_taken_for_silent() {
    let address = server(|mut peer| {
        let mut buffer = [0; 64 << 10];
        let mut taken = 0;
        // 32 MiB are more than the kernel holds. They take longer than the silence that is let pass.
        while taken < VALUE {
            thread::sleep(Duration::from_millis(15));
            match peer.socket.read(&mut buffer) {
                Ok(0) | Err(_) => return,
                Ok(bytes) => {
                    peer.input.extend_from_slice(&buffer[..bytes]);
                    taken += bytes;
                }
            }
        }
        while let Some(request) = peer.request() {
            if request[0] == "SET" {
                peer.send(b"+OK\r\n")
            } else {
                peer.echo(&request)
            };
        }
    });
    let (limit, silence) = (Duration::from_millis(20), Duration::from_secs(3));
    let config = config(&address).large(None).silence(Some(silence));
    let client = Client::with_config(config);
    let is_set = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let value = bytes::Bytes::from(vec![b'v'; VALUE]);
            let set = client.call::<()>(cmd("SET").key("k").arg(value)).deadline(Duration::from_secs(60)).wait();
            is_set.store(true, Ordering::Relaxed);
            set.unwrap();
        });
        let mut late = 0;
        while !is_set.load(Ordering::Relaxed) {
            let reply = client.call::<String>(cmd("GET").key("other")).deadline(limit).wait();
            late += usize::from(reply.is_err_and(|error| error.outcome() == Outcome::MaybeExecuted));
        }
        assert!(late > 30, "{late} were late: no call has waited for as long as the silence that is let pass");
    });
    assert_eq!(client.stats().connections, 1);
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
            let behind = ["first on its connection", "behind 1 request,", "behind 2 requests,", "behind 3 requests,"];
            assert!(error.to_string().contains(behind[in_front]), "{error}");
        }
    });
    let closed = respool_testkit::ClosedPort::take().unwrap();
    let client = Client::with_config(config(&closed.address().to_string()).deadline(Some(Duration::from_millis(50))));
    assert_eq!(client.call::<()>(cmd("GET").key("k")).wait().unwrap_err().waited(), None);
}

/// Bytes of a value that is taken slowly.
const VALUE: usize = 32 << 20;
