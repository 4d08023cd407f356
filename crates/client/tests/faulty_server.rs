//! Against a server that is written here: byte by byte, in pieces, silent, closing in the middle, pushing in between, refusing.

#[path = "faulty_server/beginners.rs"]
mod beginners;
#[path = "faulty_server/cut.rs"]
mod cut;
#[path = "faulty_server/demotion.rs"]
mod demotion;
#[path = "faulty_server/far.rs"]
mod far;
#[path = "faulty_server/floods.rs"]
mod floods;
#[path = "faulty_server/observers.rs"]
mod observers;
mod peer;

use peer::{Peer, config, on_both_faces, server};
use respool_client::{Client, ErrorKind, Outcome, Overload, Reply, Script, cmd};
use respool_testkit::{ClosedPort, Rng};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

fn client(address: &str) -> Client {
    Client::with_config(config(address))
}

#[test]
fn replies_may_come_byte_by_byte_with_pushes_between() {
    let address = server(|mut peer| {
        while let Some(request) = peer.request() {
            peer.send(b">2\r\n$7\r\nmessage\r\n:1\r\n");
            let word = &request[1];
            for byte in format!("${}\r\n{word}\r\n", word.len()).as_bytes() {
                peer.send(&[*byte]);
            }
            peer.send(b">1\r\n+pong\r\n");
        }
    });
    on_both_faces(|get| {
        let client = client(&address);
        for word in ["one", "two", "", "four"] {
            assert_eq!(get(&client, word).unwrap(), word);
        }
    });
}

#[test]
fn a_connection_closed_within_a_reply_brings_no_wrong_reply() {
    let address = server(|mut peer| {
        for _ in 0..3 {
            let Some(request) = peer.request() else { return };
            peer.echo(&request);
        }
        peer.request();
        peer.send(b"$10\r\nhal");
    });
    on_both_faces(|get| {
        // GET changes nothing, so it is sent again.
        let client = client(&address);
        for word in 0..20 {
            assert_eq!(get(&client, &word.to_string()).unwrap(), word.to_string());
        }
        assert!(client.stats().connections >= 6);
    });
}

#[test]
fn what_changes_something_is_not_sent_twice() {
    let (seen, requests): (Sender<String>, Receiver<String>) = channel();
    let seen = std::sync::Mutex::new(seen);
    let address = server(move |mut peer| {
        let Some(request) = peer.request() else { return };
        seen.lock().unwrap().send(request[0].clone()).unwrap();
        if request[0] == "GET" {
            peer.echo(&request);
        }
    });
    let client = client(&address);
    let error = client.call::<i64>(cmd("INCR").key("k")).wait().unwrap_err();
    assert_eq!((error.outcome(), error.command()), (Outcome::MaybeExecuted, "INCR"));
    assert!(matches!(error.kind(), ErrorKind::Lost(_)), "{error:?}");
    assert_eq!(client.call::<String>(cmd("GET").key("k")).wait().unwrap(), "k");
    assert_eq!(requests.try_iter().collect::<Vec<_>>(), ["INCR", "GET"]);
}

#[test]
fn a_silent_server_costs_a_call_its_time_and_no_more() {
    let address = server(|mut peer| {
        // The connection is there before a call has little time.
        let Some(warm) = peer.request() else { return };
        peer.echo(&warm);
        let first = peer.request();
        let second = peer.request();
        for request in [first, second].into_iter().flatten() {
            peer.echo(&request);
        }
        while let Some(request) = peer.request() {
            peer.echo(&request);
        }
    });
    // Far longer than it takes to send it.
    let limit = Duration::from_millis(700);
    let client = client(&address);
    assert_eq!(client.call::<String>(cmd("GET").arg("warm")).wait().unwrap(), "warm");
    let error = client.call::<String>(cmd("GET").arg("late")).deadline(limit).wait().unwrap_err();
    assert!(error.is_timeout() && error.outcome() == Outcome::MaybeExecuted, "{error:?}");
    assert_eq!(client.stats().in_flight, 1);
    assert_eq!(client.call::<String>(cmd("GET").arg("next")).wait().unwrap(), "next");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let client = self::client(&address);
    runtime.block_on(async {
        assert_eq!(client.call::<String>(cmd("GET").arg("warm")).await.unwrap(), "warm");
        let error = client.call::<String>(cmd("GET").arg("late")).deadline(limit).await.unwrap_err();
        assert!(error.is_timeout() && error.outcome() == Outcome::MaybeExecuted, "{error:?}");
        assert_eq!(client.call::<String>(cmd("GET").arg("next")).await.unwrap(), "next");
    });
    assert_eq!((client.stats().in_flight, client.stats().callers), (0, 0));
}

#[test]
fn a_refused_handshake_is_told_at_once_and_in_the_servers_words() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for socket in listener.incoming() {
            let mut peer = Peer { socket: socket.unwrap(), input: Vec::new() };
            peer.request();
            peer.send(b"-WRONGPASS invalid username-password pair\r\n");
        }
    });
    on_both_faces(|get| {
        let client = Client::with_config(config(&address).credentials(None, "wrong"));
        for _ in 0..2 {
            let error = get(&client, "k").unwrap_err();
            assert_eq!(error.outcome(), Outcome::NotSent);
            assert!(matches!(error.kind(), ErrorKind::Refused(words) if words.contains("WRONGPASS")), "{error:?}");
        }
    });
}

#[test]
fn a_server_that_is_not_there_is_told_when_the_time_is_over() {
    let closed = ClosedPort::take().unwrap();
    let address = closed.address().to_string();
    on_both_faces(|get| {
        let client = Client::with_config(config(&address).deadline(Some(Duration::from_secs(1))));
        let error = get(&client, "k").unwrap_err();
        assert_eq!(error.outcome(), Outcome::NotSent);
        assert!(matches!(error.kind(), ErrorKind::Lost(_)), "{error:?}");
        let client = Client::with_config(config(&address).deadline(None));
        assert!(matches!(get(&client, "k").unwrap_err().kind(), ErrorKind::Lost(_)));
    });
}

#[test]
fn a_server_that_writes_and_does_not_read_is_not_waited_for() {
    // 16 MiB each way, more than the kernel holds: the server does not read before its replies have been read.
    let size = 16 << 20;
    let address = server(move |mut peer| {
        peer.request();
        peer.send(format!("${size}\r\n").as_bytes());
        peer.send(&vec![b'r'; size]);
        peer.send(b"\r\n");
        peer.request();
        peer.send(b"+OK\r\n");
    });
    let value = bytes::Bytes::from(vec![b'w'; size]);
    let requests = || [cmd("GET").key("k"), cmd("SET").key("k").arg(&value)];
    let check = |replies: Vec<Result<Reply, _>>| {
        assert!(matches!(&replies[0], Ok(Reply::Bulk(bytes)) if bytes.len() == size && bytes[size - 1] == b'r'));
        assert!(matches!(&replies[1], Ok(Reply::Status(_))));
    };
    check(client(&address).batch(requests()).deadline(Duration::from_secs(60)).wait().unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let client = client(&address);
    check(runtime.block_on(async { client.batch(requests()).deadline(Duration::from_secs(60)).await }).unwrap());
}

#[test]
fn a_reply_too_many_ends_the_connection_and_is_no_reply() {
    let address = server(|mut peer| {
        while let Some(request) = peer.request() {
            let word = &request[1];
            peer.send(format!("${}\r\n{word}\r\n+unasked\r\n", word.len()).as_bytes());
        }
    });
    on_both_faces(|get| {
        let client = client(&address);
        for word in 0..10 {
            assert_eq!(get(&client, &word.to_string()).unwrap(), word.to_string());
        }
    });
}

#[test]
fn only_so_many_requests_wait() {
    let address = server(|mut peer| {
        if let Some(first) = peer.request() {
            peer.echo(&first);
        }
        while peer.request().is_some() {}
    });
    let config = config(&address).limits(3, 1 << 20).deadline(Some(Duration::from_millis(500)));
    for (overload, expected) in [(Overload::Fail, true), (Overload::Wait, false)] {
        let client = Client::with_config(config.clone().overload(overload));
        client.call::<()>(cmd("GET").key("k")).deadline(Duration::from_secs(20)).wait().unwrap();
        for _ in 0..3 {
            let error = client.call::<()>(cmd("GET").key("k")).deadline(Duration::from_millis(500)).wait().unwrap_err();
            assert!(error.is_timeout(), "{error:?}");
        }
        let error = client.call::<()>(cmd("GET").key("k")).wait().unwrap_err();
        assert_eq!(error.outcome(), Outcome::NotSent);
        assert_eq!(matches!(error.kind(), ErrorKind::Overloaded), expected, "{error:?}");
        assert_eq!(client.stats().in_flight, 3);
    }
}

#[test]
fn scripts_and_scans_end_at_deadlines_of_their_own() {
    let address = server(|mut peer| {
        while let Some(request) = peer.request() {
            if request[0] == "EVALSHA" {
                peer.send(b"-NOSCRIPT No matching script. Please use EVAL.\r\n");
            }
        }
    });
    let client = Client::with_config(config(&address).deadline(None));
    let (script, limit) = (Script::new("return 1"), Duration::from_millis(100));
    // The whole script, which is sent behind its digest, has the rest of the time.
    let error = client.script(&script).deadline(limit).wait::<i64>().unwrap_err();
    assert!(error.is_timeout() && error.command() == "EVAL", "{error:?}");
    let error = client.scan_keys().deadline(limit).next().unwrap().unwrap_err();
    assert!(error.is_timeout(), "{error:?}");
}

#[test]
fn only_so_many_bytes_wait_to_be_written() {
    const VALUE: usize = 64 << 10;
    let bound = 10 * VALUE;
    let (end, held) = channel::<()>();
    let held = std::sync::Mutex::new(held);
    let address = server(move |mut peer| {
        let first = peer.request();
        peer.echo(&first.expect("a request"));
        // Nothing more is read: the kernel takes what its buffers hold.
        let _ = held.lock().unwrap().recv();
    });
    let config = config(&address).limits(100_000, bound).large(None).deadline(Some(Duration::from_millis(500)));
    for (overload, expected) in [(Overload::Fail, true), (Overload::Wait, false)] {
        let client = Client::with_config(config.clone().overload(overload));
        client.call::<()>(cmd("GET").key("k")).deadline(Duration::from_secs(20)).wait().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let errors: Vec<_> = runtime.block_on(async {
            let set =
                |client: Client| async move { client.call::<()>(cmd("SET").key("k").arg(vec![b'v'; VALUE])).await };
            let calls: Vec<_> = (0..1_000).map(|_| tokio::spawn(set(client.clone()))).collect();
            let mut errors = Vec::new();
            for call in calls {
                errors.push(call.await.unwrap().unwrap_err());
            }
            errors
        });
        let refused = errors.iter().filter(|error| error.outcome() == Outcome::NotSent).count();
        let overloaded = errors.iter().filter(|error| matches!(error.kind(), ErrorKind::Overloaded)).count();
        // 64 MB were asked for: more than a kernel takes of a connection.
        assert!(refused > 100, "{refused}");
        assert_eq!(overloaded, if expected { refused } else { 0 });
    }
    drop(end);
}

#[test]
fn a_task_that_is_not_polled_stops_no_other() {
    use std::future::Future;
    use std::task::Context;
    let address = server(|mut peer| {
        while let Some(request) = peer.request() {
            peer.echo(&request);
        }
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let client = client(&address);
    runtime.block_on(async {
        let get = |word: &str| client.call::<String>(cmd("GET").arg(word)).deadline(Duration::from_secs(20));
        assert_eq!(get("first").await.unwrap(), "first");
        // It waits, is registered to be woken by the socket, and is not looked at again.
        let mut idle = Box::pin(get("idle"));
        let mut cx = Context::from_waker(std::task::Waker::noop());
        assert!(idle.as_mut().poll(&mut cx).is_pending());
        let mut idle_too = Box::pin(get("idle too"));
        assert!(idle_too.as_mut().poll(&mut cx).is_pending());
        for word in ["a", "b", "c"] {
            assert_eq!(get(word).await.unwrap(), word);
        }
        assert_eq!(idle.await.unwrap(), "idle");
        assert_eq!(idle_too.await.unwrap(), "idle too");
    });
}

#[test]
fn a_call_outside_of_a_runtime_is_served_as_well() {
    use std::task::{Context, Poll, Wake, Waker};
    struct Unpark(thread::Thread);
    impl Wake for Unpark {
        fn wake(self: std::sync::Arc<Self>) {
            self.0.unpark();
        }
    }
    let address = server(|mut peer| {
        while let Some(request) = peer.request() {
            peer.echo(&request);
        }
    });
    let client = client(&address);
    let waker = Waker::from(std::sync::Arc::new(Unpark(thread::current())));
    for word in ["a", "b", "c"] {
        let mut call = std::pin::pin!(client.call::<String>(cmd("GET").arg(word)));
        loop {
            match call.as_mut().poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(reply) => break assert_eq!(reply.unwrap(), word),
                Poll::Pending => thread::park(),
            }
        }
    }
}

#[test]
fn a_runtime_that_ends_takes_no_connection_with_it() {
    let address = server(|mut peer| {
        while let Some(request) = peer.request() {
            peer.echo(&request);
        }
    });
    let client = client(&address);
    for round in 0..5 {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        for task in 0..50 {
            let client = client.clone();
            runtime.spawn(async move {
                loop {
                    let word = format!("{round}:{task}");
                    assert_eq!(client.call::<String>(cmd("GET").arg(&word)).await.unwrap(), word);
                }
            });
        }
        let word = format!("thread {round}");
        for _ in 0..50 {
            assert_eq!(client.call::<String>(cmd("GET").arg(&word)).wait().unwrap(), word);
        }
        runtime.shutdown_background();
        for _ in 0..10 {
            assert_eq!(client.call::<String>(cmd("GET").arg(&word)).wait().unwrap(), word);
        }
    }
    assert_eq!(client.stats().connections, 1);
}

#[test]
fn no_time_at_all_is_a_time() {
    let address = server(|mut peer| {
        if let Some(request) = peer.request() {
            peer.echo(&request);
        }
        // Those that have no time are answered with the one behind them.
        let late = [peer.request(), peer.request(), peer.request()];
        for request in late.into_iter().flatten() {
            peer.echo(&request);
        }
        while let Some(request) = peer.request() {
            peer.echo(&request);
        }
    });
    let client = client(&address);
    client.call::<()>(cmd("GET").arg("first")).wait().unwrap();
    for limit in [Duration::ZERO, Duration::from_nanos(1)] {
        let error = client.call::<String>(cmd("GET").arg("late")).deadline(limit).wait().unwrap_err();
        assert!(error.is_timeout(), "{error:?}");
    }
    for limit in [Duration::from_secs(20), Duration::MAX] {
        assert_eq!(client.call::<String>(cmd("GET").arg("next")).deadline(limit).wait().unwrap(), "next");
    }
    assert_eq!(client.stats().connections, 1);
}

#[test]
fn a_time_longer_than_can_be_counted_is_without_end() {
    let address = server(|mut peer| {
        while let Some(request) = peer.request() {
            peer.echo(&request);
        }
    });
    for limit in [Duration::MAX, Duration::from_secs(u64::MAX), Duration::from_micros(u64::MAX - 1_000_000_000)] {
        on_both_faces(|get| {
            let client = Client::with_config(config(&address).connect_limit(limit).deadline(Some(limit)));
            for word in ["one", "two"] {
                assert_eq!(get(&client, word).unwrap(), word);
            }
        });
    }
}

#[test]
fn a_call_that_is_late_before_it_is_sent_is_not_sent() {
    use std::future::Future;
    let address = server(|mut peer| {
        while let Some(request) = peer.request() {
            peer.echo(&request);
        }
    });
    let client = client(&address);
    let limit = Duration::from_millis(1);
    let mut call = std::pin::pin!(client.call::<String>(cmd("GET").arg("late")).deadline(limit));
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    let made = std::time::Instant::now();
    assert!(call.as_mut().poll(&mut cx).is_pending());
    while client.stats().connections == 0 || made.elapsed() < 2 * limit {
        thread::yield_now();
    }
    let std::task::Poll::Ready(result) = call.as_mut().poll(&mut cx) else { panic!("it waits") };
    let error = result.unwrap_err();
    assert!(error.is_timeout() && error.outcome() == Outcome::NotSent, "{error:?}");
    assert_eq!((client.stats().requests, client.stats().callers), (0, 0));
}

#[test]
fn a_call_that_found_room_is_not_woken_for_room_again() {
    use std::future::Future;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, Mutex};
    use std::task::{Context, Wake, Waker};
    #[derive(Default)]
    struct Count(AtomicUsize);
    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let (answer, answers) = channel::<()>();
    let answers = Mutex::new(answers);
    let address = server(move |mut peer| {
        while let Some(request) = peer.request() {
            if answers.lock().unwrap().recv().is_err() {
                return;
            }
            peer.echo(&request);
        }
    });
    let client = Client::with_config(config(&address).limits(1, 1 << 20));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let get = |word: &str| Box::pin(client.call::<String>(cmd("GET").arg(word)).deadline(Duration::from_secs(20)));
        let answer = || answer.send(()).unwrap();
        answer();
        get("connects").await.unwrap();
        let (mut first, mut waits, mut takes) = (get("first"), get("waits"), get("takes"));
        let count = Arc::new(Count::default());
        let counting = Waker::from(Arc::clone(&count));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(first.as_mut().poll(&mut cx).is_pending());
        assert!(waits.as_mut().poll(&mut Context::from_waker(&counting)).is_pending());
        assert!(takes.as_mut().poll(&mut cx).is_pending());
        answer();
        first.await.unwrap();
        assert_eq!(count.0.load(Ordering::SeqCst), 1);
        // Another is polled first and takes the room.
        assert!(takes.as_mut().poll(&mut cx).is_pending());
        assert!(waits.as_mut().poll(&mut Context::from_waker(&counting)).is_pending());
        answer();
        takes.await.unwrap();
        assert_eq!(count.0.load(Ordering::SeqCst), 2);
        answer();
        assert_eq!(waits.await.unwrap(), "waits");
    });
}

#[test]
fn a_late_number_of_a_connection_lets_its_request_go() {
    let (release, releases) = channel::<()>();
    let (release, releases) = (std::sync::Mutex::new(release), std::sync::Mutex::new(releases));
    let address = server(move |mut peer| {
        while let Some(request) = peer.request() {
            match (&*request[0], &*request[1]) {
                ("CLIENT", "ID") => {
                    // Longer than the call has time.
                    thread::sleep(Duration::from_millis(300));
                    peer.send(b":7\r\n");
                }
                ("CLIENT", "UNBLOCK") => {
                    assert_eq!(request[2], "7");
                    release.lock().unwrap().send(()).unwrap();
                    peer.send(b":1\r\n");
                }
                (_, "warm") => _ = peer.send(b"_\r\n"),
                _ => {
                    releases.lock().unwrap().recv().unwrap();
                    peer.send(b"_\r\n");
                }
            }
        }
    });
    let client = Client::with_config(config(&address).release_limit(Duration::from_secs(20)));
    // The connection is there before a call has little time.
    client.call::<Option<String>>(cmd("BLPOP").key("warm").arg(0)).wait().unwrap();
    let pop = || client.call::<Option<String>>(cmd("BLPOP").key("list").arg(0)).deadline(Duration::from_millis(100));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for error in [pop().wait().unwrap_err(), runtime.block_on(async { pop().await }).unwrap_err()] {
        assert!(error.is_timeout() && error.outcome() == Outcome::Replied, "{error:?}");
    }
    assert_eq!((client.stats().lanes, client.stats().lanes_free), (1, 1));
}

#[test]
fn a_request_that_ends_connections_is_sent_three_times() {
    let address = server(|mut peer| _ = peer.request());
    on_both_faces(|get| {
        let client = client(&address);
        let error = get(&client, "k").unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Lost(_)), "{error:?}");
        assert_eq!((error.outcome(), client.stats().requests), (Outcome::MaybeExecuted, 3));
    });
}

#[test]
fn what_was_sent_once_stays_maybe_executed() {
    on_both_faces(|get| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        thread::spawn(move || {
            let mut peer = Peer { socket: listener.accept().unwrap().0, input: Vec::new() };
            // Nothing is there any more when the connection ends.
            drop(listener);
            while let Some(request) = peer.request() {
                match &*request[0] {
                    "HELLO" => peer.send(b"%1\r\n$6\r\nserver\r\n$5\r\nredis\r\n"),
                    "PING" => peer.send(b"+PONG\r\n"),
                    "GET" => return,
                    _ => peer.send(b"+OK\r\n"),
                };
            }
        });
        let client = Client::with_config(config(&address).deadline(None));
        let error = get(&client, "k").unwrap_err();
        assert_eq!((error.outcome(), client.stats().requests), (Outcome::MaybeExecuted, 1), "{error:?}");
    });
}

#[test]
fn a_transaction_without_its_multi_is_maybe_executed() {
    for (multi, outcome) in [("-NOPERM no multi", Outcome::MaybeExecuted), ("+OK", Outcome::Replied)] {
        let address = server(move |mut peer| {
            while let Some(request) = peer.request() {
                let answer = match &*request[0] {
                    "MULTI" => multi,
                    "EXEC" => "-ERR refused",
                    _ => "+OK",
                };
                peer.send(format!("{answer}\r\n").as_bytes());
            }
        });
        let client = client(&address);
        let error = client.transaction([cmd("SET").key("k").arg("v")]).wait().unwrap_err();
        assert_eq!(error.outcome(), outcome, "{error:?}");
    }
}

#[test]
fn a_runtime_that_stands_still_stops_no_other() {
    let address = server(|mut peer| {
        while let Some(request) = peer.request() {
            peer.echo(&request);
        }
    });
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    async fn get(client: &Client, word: &str) {
        let call = client.call::<String>(cmd("GET").arg(word)).deadline(Duration::from_secs(20));
        assert_eq!(call.await.unwrap(), word);
    }
    let one = async |client: &Client| get(client, "alone").await;
    let two = async |client: &Client| _ = tokio::join!(get(client, "a"), get(client, "b"));
    for (is_first_many, is_second_many) in [(false, false), (false, true), (true, false), (true, true)] {
        let (client, idle, other) = (client(&address), runtime(), runtime());
        for (runtime, is_many) in [(&idle, is_first_many), (&other, is_second_many), (&other, is_first_many)] {
            runtime.block_on(async { if is_many { two(&client).await } else { one(&client).await } });
        }
        // A task of the runtime that stands still waits meanwhile.
        use std::future::Future;
        let mut idles = Box::pin(get(&client, "idle"));
        let waits =
            idle.block_on(std::future::poll_fn(|cx| std::task::Poll::Ready(idles.as_mut().poll(cx).is_pending())));
        other.block_on(two(&client));
        other.block_on(one(&client));
        if waits {
            idle.block_on(idles);
        }
        assert_eq!(client.stats().connections, 1);
    }
}

/// The server notes what it executes, and ends every connection somewhere: before or behind a request, or in the middle of a reply. What
/// was not sent was not executed, what was answered was, and nothing was executed twice.
#[test]
fn outcomes_agree_with_what_the_server_has_executed() {
    use std::collections::HashMap;
    use std::sync::{Arc, Mutex};
    let executed: Arc<Mutex<HashMap<String, usize>>> = Arc::default();
    let notes = Arc::clone(&executed);
    let rng = Mutex::new(Rng::new(7));
    let address = server(move |mut peer| {
        let lasts = rng.lock().unwrap().below(60);
        let cut = rng.lock().unwrap().below(12);
        for _ in 0..lasts {
            let Some(request) = peer.request() else { return };
            *notes.lock().unwrap().entry(request[1].clone()).or_default() += 1;
            peer.echo(&request);
        }
        let Some(request) = peer.request() else { return };
        if cut > 0 {
            *notes.lock().unwrap().entry(request[1].clone()).or_default() += 1;
            let word = &request[1];
            let reply = format!("${}\r\n{word}\r\n", word.len());
            peer.send(&reply.as_bytes()[..cut.min(reply.len() - 1)]);
        }
    });
    let config = config(&address).deadline(Some(Duration::from_secs(30)));
    let client = Client::with_config(config);
    let outcomes: Mutex<Vec<(String, Outcome)>> = Mutex::default();
    let note = |id: String, result: Result<String, respool_client::Error>| {
        let outcome = match result {
            Ok(reply) => {
                assert_eq!(reply, id, "the reply to another request");
                Outcome::Replied
            }
            Err(error) => error.outcome(),
        };
        outcomes.lock().unwrap().push((id, outcome));
    };
    thread::scope(|scope| {
        for caller in 0..4 {
            let (client, note) = (&client, &note);
            scope.spawn(move || {
                for round in 0..200 {
                    let id = format!("thread:{caller}:{round}");
                    note(id.clone(), client.call(cmd("INCR").arg(&id)).wait());
                }
            });
        }
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let tasks: Vec<_> = (0..16)
            .map(|caller| {
                let client = client.clone();
                runtime.spawn(async move {
                    let mut results = Vec::new();
                    for round in 0..50 {
                        let id = format!("task:{caller}:{round}");
                        // A short time now and then: given up before it was sent, or later.
                        let limit = if round % 5 == 0 { Duration::from_micros(300) } else { Duration::from_secs(30) };
                        results.push((id.clone(), client.call(cmd("INCR").arg(&id)).deadline(limit).await));
                    }
                    results
                })
            })
            .collect();
        for task in tasks {
            runtime.block_on(task).unwrap().into_iter().for_each(|(id, result)| note(id, result));
        }
    });
    client.close();
    let executed = executed.lock().unwrap();
    let outcomes = outcomes.lock().unwrap();
    assert_eq!(outcomes.len(), 4 * 200 + 16 * 50);
    for (id, outcome) in &*outcomes {
        let times = executed.get(id).copied().unwrap_or(0);
        let is_right = match outcome {
            Outcome::NotSent => times == 0,
            Outcome::MaybeExecuted => times <= 1,
            Outcome::Replied => times == 1,
        };
        assert!(is_right, "{id}: {outcome:?}, executed {times} times");
    }
    assert!(outcomes.iter().any(|(_, outcome)| *outcome == Outcome::MaybeExecuted));
    assert_eq!(client.stats().callers, 0);
}

#[test]
fn a_closed_client_ends_what_waits() {
    let address = server(|mut peer| while peer.request().is_some() {});
    let client = client(&address);
    let other = client.clone();
    let waiting = thread::spawn(move || other.call::<()>(cmd("GET").key("k")).wait().unwrap_err());
    while client.stats().in_flight == 0 {
        thread::yield_now();
    }
    client.close();
    assert!(matches!(waiting.join().unwrap().kind(), ErrorKind::Closed));
    let error = client.call::<()>(cmd("GET").key("k")).wait().unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Closed) && error.outcome() == Outcome::NotSent);
}

#[test]
fn a_handshake_that_trickles_ends_within_one_limit() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for socket in listener.incoming() {
            let mut peer = Peer { socket: socket.unwrap(), input: Vec::new() };
            thread::spawn(move || {
                peer.request();
                peer.send(b"%1\r\n$6\r\nserver\r\n$1000000\r\n");
                while peer.send(b"x") {
                    thread::sleep(Duration::from_millis(5));
                }
            });
        }
    });
    on_both_faces(|get| {
        let terms = config(&address).connect_limit(Duration::from_millis(100)).deadline(None);
        let error = get(&Client::with_config(terms), "k").unwrap_err();
        assert_eq!(error.outcome(), Outcome::NotSent);
        assert!(matches!(error.kind(), ErrorKind::Lost(how) if how.contains("in time")), "{error:?}");
    });
}

#[test]
fn a_runtime_that_watches_no_sockets_is_served_by_a_thread() {
    let address = server(|mut peer| {
        while let Some(request) = peer.request() {
            peer.echo(&request);
        }
    });
    let client = client(&address);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        for word in ["one", "two"] {
            assert_eq!(client.call::<String>(cmd("GET").arg(word)).await.unwrap(), word);
        }
        let tasks = ["three", "four", "five"].map(|word| {
            let client = client.clone();
            tokio::spawn(async move { (client.call::<String>(cmd("GET").arg(word)).await.unwrap(), word) })
        });
        for task in tasks {
            let (found, word) = task.await.unwrap();
            assert_eq!(found, word);
        }
    });
}

/// Until then replies may be those of the requests before.
#[test]
fn a_reply_too_many_between_calls_is_noticed_soon() {
    let (ask, asked) = channel::<()>();
    let (tell, told) = channel::<()>();
    let gate = std::sync::Mutex::new(Some((asked, tell)));
    let address = server(move |mut peer| {
        let mut gate = gate.lock().unwrap().take();
        while let Some(request) = peer.request() {
            peer.echo(&request);
            if let Some((asked, tell)) = gate.take() {
                asked.recv().unwrap();
                peer.send(b"$1\r\n?\r\n");
                tell.send(()).unwrap();
            }
        }
    });
    let client = client(&address);
    let get = |word: &str| client.call::<String>(cmd("GET").arg(word)).wait().unwrap();
    assert_eq!(get("first"), "first");
    ask.send(()).unwrap();
    told.recv().unwrap();
    let mut wrong = 0;
    for round in 0..200 {
        let word = round.to_string();
        wrong += u32::from(get(&word) != word);
    }
    assert!(wrong <= 32, "{wrong}");
    assert_eq!(client.stats().connections, 2);
}
