//! What tests share that compare with a real redis-server 7.0.
//!
//! The environment variable `RESPOOL_TEST_REDIS=off` leaves such tests out, for machines without a redis-server;
//! `RESPOOL_TEST_SCALE` is how many times as much as usual is generated.

use respool_wire::{ArgsBuf, encode_request};

use crate::{Client, RedisServer};

/// Requests that are sent before their replies are read.
const PIPELINE: usize = 256;

/// A redis-server 7.0 with these arguments, or `None` if comparisons are switched off.
///
/// # Panics
/// If there is no such server.
pub fn reference_server(arguments: &[&str]) -> Option<RedisServer> {
    if std::env::var("RESPOOL_TEST_REDIS").is_ok_and(|value| value == "off") {
        eprintln!("left out: RESPOOL_TEST_REDIS=off");
        return None;
    }
    let server = RedisServer::start_with(arguments).unwrap_or_else(|error| {
        panic!(
            "no redis-server could be started ({error}); install Debian's redis-server, or set RESPOOL_TEST_REDIS=off"
        )
    });
    let info = server.client().and_then(|mut client| client.ask("INFO server")).expect("the server has just started");
    assert!(
        info.contains("\nredis_version:7.0."),
        "these tests compare with redis-server 7.0, this is another version; set RESPOOL_TEST_REDIS=off to leave them out"
    );
    Some(server)
}

/// How many times as much as usual is generated.
///
/// # Panics
/// If the environment variable is no number.
pub fn test_scale() -> usize {
    std::env::var("RESPOOL_TEST_SCALE").map_or(1, |value| value.parse().expect("RESPOOL_TEST_SCALE is a number"))
}

/// Sends all requests, a pipeline at a time, and returns their replies.
///
/// # Panics
/// If the server does not read or answer.
pub fn ask_all(client: &mut Client, requests: &[ArgsBuf]) -> Vec<Vec<u8>> {
    let mut replies = Vec::with_capacity(requests.len());
    for part in requests.chunks(PIPELINE) {
        let mut bytes = Vec::new();
        for request in part {
            encode_request(&mut bytes, request.as_args().iter());
        }
        client.send(&bytes).expect("the server reads");
        replies.extend(client.replies(part.len()).expect("the server answers"));
    }
    replies
}
