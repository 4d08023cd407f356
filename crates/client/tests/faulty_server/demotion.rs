//! A server that becomes a replica while its address leads to another from then on, as where a failover moves a name.

use crate::peer::{Peer, config, on_both_faces, server};
use respool_client::{Client, cmd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Serves a connection. One that was made before the move refuses writes since it.
fn serve(mut peer: Peer, has_moved: &AtomicBool) {
    let is_old = !has_moved.load(Ordering::SeqCst);
    while let Some(request) = peer.request() {
        let reply = match &*request[0] {
            "GET" => &b"$1\r\nv\r\n"[..],
            "CLIENT" => b":7\r\n",
            _ if is_old && has_moved.load(Ordering::SeqCst) => {
                b"-READONLY You can't write against a read only replica.\r\n"
            }
            "BLPOP" => b"*2\r\n$1\r\nk\r\n$1\r\nv\r\n",
            _ => b"+OK\r\n",
        };
        peer.send(reply);
    }
}

fn moving() -> (String, Arc<AtomicBool>) {
    let has_moved = Arc::new(AtomicBool::new(false));
    let moved = Arc::clone(&has_moved);
    (server(move |peer| serve(peer, &moved)), has_moved)
}

fn is_refused(result: &Result<(), String>) -> bool {
    matches!(result, Err(error) if error.contains("READONLY"))
}

/// A call of the client, by a thread.
type Calls = fn(&Client) -> Result<(), String>;

fn set(client: &Client) -> Result<(), String> {
    client.call::<()>(cmd("SET").key("k").arg("v")).wait().map_err(|error| error.to_string())
}

fn set_in_a_batch(client: &Client) -> Result<(), String> {
    let mut replies = client.batch([cmd("SET").key("k").arg("v"), cmd("GET").key("k")]).wait().unwrap();
    replies.remove(0).map(drop).map_err(|error| error.to_string())
}

fn pop(client: &Client) -> Result<(), String> {
    client.call::<()>(cmd("BLPOP").key("k").arg(0)).wait().map_err(|error| error.to_string())
}

#[test]
fn a_write_behind_a_refused_one_goes_to_the_new_server() {
    let (address, has_moved) = moving();
    for url in [format!("redis://{address}"), format!("redis+shards://{address}?rule=jump")] {
        for call in [set as Calls, set_in_a_batch, pop] {
            has_moved.store(false, Ordering::SeqCst);
            let client = Client::with_config(config(&url));
            call(&client).unwrap();
            has_moved.store(true, Ordering::SeqCst);
            let refused = call(&client);
            assert!(is_refused(&refused), "{refused:?}");
            call(&client).unwrap();
        }
    }
}

#[test]
fn a_replica_is_not_dialled_for_each_write_that_goes_astray() {
    let address = server(|mut peer| {
        while let Some(request) = peer.request() {
            if request[0] == "GET" {
                peer.echo(&request);
            } else {
                peer.send(b"-READONLY You can't write against a read only replica.\r\n");
            }
        }
    });
    on_both_faces(|get| {
        let client = Client::with_config(config(&address));
        let began = Instant::now();
        while began.elapsed() < Duration::from_millis(1_500) {
            let refused = set(&client);
            assert!(is_refused(&refused), "{refused:?}");
            assert_eq!(get(&client, "v").unwrap(), "v");
        }
        let most = 2 + began.elapsed().as_secs();
        assert!((2..=most).contains(&client.stats().connections), "{:?}", client.stats());
    });
}
