//! The rows, the keys found in requests and the texts, compared with a real redis-server 7.0.
//!
//! The environment variable `RESPOOL_TEST_REDIS=off` leaves these tests out, for machines without a redis-server. Whatever
//! differs on purpose stands in `tests/data/differences.txt` with its reason; anything else that differs fails.

mod differences;
mod globs;
mod keys;
mod replies;
mod requests;
mod rows;
mod texts;
mod touched;

use respool_command::{Row, all, introspect, lookup_full, resolve};
use respool_testkit::{RedisServer, ask_all, reference_server, test_scale as scale};
use respool_wire::{ArgsBuf, Encoder, Protocol};

/// A redis-server 7.0, or `None` if these tests are switched off. Panics if there is no such server.
fn redis() -> Option<RedisServer> {
    reference_server(&[])
}

/// What Respool answers to a request of the `COMMAND` family.
fn answer(request: &ArgsBuf, protocol: Protocol) -> Vec<u8> {
    let args = request.as_args();
    let row = resolve(args).expect("the test asks for what exists");
    assert!(row.accepts(args.len()), "{args:?}");
    let mut reply = Vec::new();
    assert!(
        introspect::answer(
            row,
            args,
            &[],
            &respool_command::Renames::default(),
            &mut Encoder::new(&mut reply, protocol)
        ),
        "{args:?}"
    );
    reply
}

fn request<A: AsRef<[u8]>>(arguments: impl IntoIterator<Item = A>) -> ArgsBuf {
    arguments.into_iter().collect()
}

/// Whether only later servers have the row of this name.
fn is_later(name: &str) -> bool {
    lookup_full(name.as_bytes()).is_some_and(Row::is_later)
}

/// The rows that the server has too.
fn shared_rows() -> impl Iterator<Item = &'static Row> {
    all().filter(|row| !row.is_ours() && !row.is_later())
}

/// The words that call a row: `CLIENT`, `ID`.
fn words(row: &Row) -> impl Iterator<Item = Vec<u8>> {
    row.name.split(' ').map(|word| word.as_bytes().to_vec())
}

fn shown(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}
