//! What a user of the respool program sees, with real and with misbehaving nodes behind it.
//!
//! Each test starts its own processes on ports and sockets of their own.

#![forbid(unsafe_code)]

mod admin_plane;
mod blocking;
mod client_limits;
mod dedicated;
mod differential;
mod embedded_commands;
mod ending;
mod engine_scripts;
mod engine_threads;
mod everywhere;
mod eviction;
mod half_close;
mod hazards;
mod hostile_clients;
mod info;
mod keyspace_events;
mod large;
mod learning;
mod memory;
mod merged_replication;
mod migrate;
mod misbehaving_nodes;
mod monitor;
mod named_memory;
mod order;
mod pausing;
mod pooling;
mod pubsub;
mod reachable;
mod scatter;
mod script_debugger;
mod scripts;
mod session;
mod tracking;
mod tracking_embedded;
mod transactions;
mod trouble;
mod users;

use std::io;
use std::path::Path;

use respool_testkit::{Address, Client, PATIENCE, RedisServer, Respool, wait_until};

/// A proxy with one worker, so that all clients of a test share its lanes.
fn proxy(nodes: &[Address], arguments: &[&str]) -> io::Result<Respool> {
    let mut all = vec!["--workers", "1"];
    all.extend(arguments);
    Respool::start(Path::new(env!("CARGO_BIN_EXE_respool")), nodes, &all)
}

fn redis_servers(count: usize) -> io::Result<Vec<RedisServer>> {
    (0..count).map(|_| RedisServer::start()).collect()
}

fn addresses(servers: &[RedisServer]) -> Vec<Address> {
    servers.iter().map(RedisServer::tcp).collect()
}

/// A proxy in front of four redis-servers, and for each of them a key that it holds.
struct Four {
    servers: Vec<RedisServer>,
    proxy: Respool,
    keys: Vec<String>,
}

impl Four {
    fn start(arguments: &[&str]) -> io::Result<Four> {
        let servers = redis_servers(4)?;
        let proxy = proxy(&addresses(&servers), arguments)?;
        let mut client = proxy.client()?;
        let mut keys = vec![None; servers.len()];
        for number in 0..1_000 {
            let key = format!("key{number}");
            client.command(&["SET", &key, &value_of(&key)])?;
            for (server, slot) in servers.iter().zip(&mut keys) {
                if slot.is_none() && server.client()?.command(&["EXISTS", &key])? == b":1\r\n" {
                    *slot = Some(key.clone());
                }
            }
            client.command(&["DEL", &key])?;
            if keys.iter().all(Option::is_some) {
                break;
            }
        }
        let keys: Vec<String> = keys.into_iter().map(|key| key.expect("a thousand keys reach every node")).collect();
        for key in &keys {
            client.command(&["SET", key, &value_of(key)])?;
        }
        Ok(Four { servers, proxy, keys })
    }
}

fn value_of(key: &str) -> String {
    format!("value-of-{key}")
}

fn bulk(text: &str) -> Vec<u8> {
    format!("${}\r\n{text}\r\n", text.len()).into_bytes()
}

#[track_caller]
fn assert_error(reply: &[u8], what: &str) {
    let text = String::from_utf8_lossy(reply);
    assert!(reply.starts_with(b"-"), "{what}: expected an error, got {text:?}");
    assert_eq!(text.matches("\r\n").count(), 1, "{what}: one line, got {text:?}");
}

/// Waits until `client` gets `expected` for the request; whatever comes before has to be an error.
fn wait_for_reply(client: &mut Client, arguments: &[&str], expected: &[u8]) -> io::Result<()> {
    wait_until(&format!("{arguments:?} is answered"), PATIENCE, || {
        let reply = client.command(arguments)?;
        if reply != expected {
            assert_error(&reply, &format!("{arguments:?}"));
        }
        Ok(reply == expected)
    })
}
