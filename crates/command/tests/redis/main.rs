//! The rows, the keys found in requests and the texts, compared with a real redis-server 7.0.
//!
//! The environment variable `RESPOOL_TEST_REDIS=off` leaves these tests out, for machines without a redis-server. Whatever
//! differs on purpose stands in `tests/data/differences.txt` with its reason; anything else that differs fails.

mod differences;
mod globs;
mod keys;
mod requests;
mod rows;
mod texts;
mod touched;

use differences::Differences;
use respool_command::{Row, all, introspect, resolve};
use respool_testkit::{Client, RedisServer};
use respool_wire::{ArgsBuf, Encoder, Protocol};

/// Requests that are sent before their replies are read.
const PIPELINE: usize = 256;

/// A redis-server 7.0, or `None` if these tests are switched off. Panics if there is no such server.
fn redis() -> Option<RedisServer> {
    redis_with(&[])
}

fn redis_with(arguments: &[&str]) -> Option<RedisServer> {
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

/// Sends all requests, a pipeline at a time, and returns their replies.
fn ask_all(client: &mut Client, requests: &[ArgsBuf]) -> Vec<Vec<u8>> {
    let mut replies = Vec::with_capacity(requests.len());
    for part in requests.chunks(PIPELINE) {
        let mut bytes = Vec::new();
        for request in part {
            respool_wire::encode_request(&mut bytes, request.as_args().iter());
        }
        client.send(&bytes).expect("the server reads");
        replies.extend(client.replies(part.len()).expect("the server answers"));
    }
    replies
}

/// What Respool answers to a request of the `COMMAND` family.
fn answer(request: &ArgsBuf, protocol: Protocol) -> Vec<u8> {
    let args = request.as_args();
    let row = resolve(args).expect("the test asks for what exists");
    assert!(row.accepts(args.len()), "{args:?}");
    let mut reply = Vec::new();
    assert!(introspect::answer(row, args, &[], &mut Encoder::new(&mut reply, protocol)), "{args:?}");
    reply
}

fn request<A: AsRef<[u8]>>(arguments: impl IntoIterator<Item = A>) -> ArgsBuf {
    arguments.into_iter().collect()
}

/// The rows that the server has too.
fn shared_rows() -> impl Iterator<Item = &'static Row> {
    let differences = Differences::of("name");
    all().filter(move |row| !row.is_ours() && !differences.has(row.full_name()))
}

/// How many times as much as usual is generated: the environment variable `RESPOOL_TEST_SCALE`, 1 if it is not set.
fn scale() -> usize {
    std::env::var("RESPOOL_TEST_SCALE").map_or(1, |value| value.parse().expect("RESPOOL_TEST_SCALE is a number"))
}

/// The words that call a row: `CLIENT`, `ID`.
fn words(row: &Row) -> impl Iterator<Item = Vec<u8>> {
    row.name.split(' ').map(|word| word.as_bytes().to_vec())
}

fn shown(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}
