//! Many clients that begin at the same time, as those of many processes: what they dial, and how they come back when they are turned away.

use crate::peer::{Peer, config};
use respool_client::{Client, cmd};
use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

/// Clients that share nothing, as those of so many processes, each with callers that begin together.
const BEGINNERS: usize = 25;

/// Threads of each, and as many tasks.
const CALLERS: usize = 4;

/// Lets clients begin at the same time. All of their calls succeed.
fn begin_at_once(clients: &[Client]) {
    let barrier = std::sync::Barrier::new(clients.len() * (CALLERS + 1));
    thread::scope(|scope| {
        for (client, barrier) in clients.iter().map(|client| (client, &barrier)) {
            for caller in 0..CALLERS {
                scope.spawn(move || {
                    let word = caller.to_string();
                    barrier.wait();
                    assert_eq!(client.call::<String>(cmd("GET").arg(&word)).wait().unwrap(), word);
                });
            }
            scope.spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                barrier.wait();
                runtime.block_on(async {
                    let call = |caller: usize| {
                        let (client, word) = (client.clone(), format!("task {caller}"));
                        async move { assert_eq!(client.call::<String>(cmd("GET").arg(&word)).await.unwrap(), word) }
                    };
                    let tasks: Vec<_> = (0..CALLERS).map(|caller| tokio::spawn(call(caller))).collect();
                    for task in tasks {
                        task.await.unwrap();
                    }
                });
            });
        }
    });
}

#[test]
fn clients_that_begin_at_once_dial_once_each() {
    // Handshakes are answered one after the other, the next connection not before the last one is served.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let accepted = std::sync::Arc::new(AtomicUsize::new(0));
    let counted = std::sync::Arc::clone(&accepted);
    thread::spawn(move || {
        for socket in listener.incoming() {
            counted.fetch_add(1, Ordering::SeqCst);
            let mut peer = Peer { socket: socket.unwrap(), input: Vec::new() };
            peer.shake_hands();
            thread::spawn(move || {
                while let Some(request) = peer.request() {
                    peer.echo(&request);
                }
            });
        }
    });
    let clients: Vec<Client> = (0..BEGINNERS).map(|_| Client::with_config(config(&address))).collect();
    begin_at_once(&clients);
    assert_eq!(accepted.load(Ordering::SeqCst), BEGINNERS);
    let stats: Vec<_> = clients.iter().map(Client::stats).collect();
    assert!(stats.iter().all(|stats| stats.connections == 1 && stats.callers == 0), "{stats:?}");
}

#[test]
fn clients_that_are_turned_away_at_once_come_back_slowly() {
    const REFUSED_FOR: Duration = Duration::from_millis(500);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let refused = std::sync::Arc::new(AtomicUsize::new(0));
    let counted = std::sync::Arc::clone(&refused);
    let (ended, ends) = channel();
    thread::spawn(move || {
        let mut first: Option<std::time::Instant> = None;
        let mut has_ended = false;
        for socket in listener.incoming() {
            let mut peer = Peer { socket: socket.unwrap(), input: Vec::new() };
            let began = *first.get_or_insert_with(std::time::Instant::now);
            if began.elapsed() < REFUSED_FOR {
                counted.fetch_add(1, Ordering::SeqCst);
                thread::spawn(move || {
                    peer.request();
                    peer.send(b"-ERR max number of clients reached\r\n")
                });
                continue;
            }
            if !std::mem::replace(&mut has_ended, true) {
                ended.send(began.elapsed()).unwrap();
            }
            thread::spawn(move || {
                peer.shake_hands();
                while let Some(request) = peer.request() {
                    peer.echo(&request);
                }
            });
        }
    });
    let terms = respool_client::ReconnectTerms {
        backoff_min_us: 1_000,
        backoff_max_us: 2_000,
        dials_per_second: 20,
        dials_burst: 3,
    };
    let terms = config(&address).reconnect(terms).deadline(Some(Duration::from_secs(60)));
    let clients: Vec<Client> = (0..BEGINNERS).map(|_| Client::with_config(terms.clone())).collect();
    begin_at_once(&clients);
    // With pauses of a millisecond alone it would be twenty times as many.
    let each = 3 + (20.0 * ends.recv().unwrap().as_secs_f64()).ceil() as usize;
    let refused = refused.load(Ordering::SeqCst);
    assert!((BEGINNERS..=BEGINNERS * each).contains(&refused), "{refused}, {each} allowed for each");
    assert!(clients.iter().all(|client| client.stats().connections == 1));
}
