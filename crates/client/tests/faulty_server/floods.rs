//! Connections of subscriptions and caches on which something comes without a pause: what waits beside it ends in time all the same.

use crate::peer::{config, on_both_faces, server};
use respool_client::{Client, Error, Overflow};
use std::time::{Duration, Instant};

/// A server that sends this over and over, on connections that are asked for `command`, and says nothing else on them.
fn flood(command: &'static str, push: &'static [u8]) -> String {
    server(move |mut peer| {
        while let Some(request) = peer.request() {
            if request.iter().any(|word| word == command) {
                let many = push.repeat(4_000);
                while peer.send(&many) {}
                return;
            }
            peer.echo(&request);
        }
    })
}

/// In a runtime, in which nothing else wakes the task.
fn ends_in_time<T>(call: impl Future<Output = Result<T, Error>>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let began = Instant::now();
    let ended = runtime.block_on(async { tokio::time::timeout(Duration::from_secs(20), call).await });
    let error = ended.expect("it ends").err().expect("nothing has come for it");
    assert!(error.is_timeout(), "{error} after {:?}", began.elapsed());
}

const LIMIT: Duration = Duration::from_millis(300);

#[test]
fn a_subscription_that_is_not_confirmed_ends_beside_a_flood() {
    let address = flood("SUBSCRIBE", b">3\r\n$7\r\nmessage\r\n$5\r\nother\r\n$1\r\nv\r\n");
    let client = Client::with_config(config(&address));
    on_both_faces(|get| assert_eq!(get(&client, "k").unwrap(), "k"));
    ends_in_time(client.subscribe("channel").buffer(10, 1_000, Overflow::DropOldest).deadline(LIMIT));
}

#[cfg(feature = "cache")]
#[test]
fn a_cached_read_ends_beside_a_flood_of_changes() {
    let address = flood("PTTL", b">2\r\n$10\r\ninvalidate\r\n*1\r\n$5\r\nother\r\n");
    let client = Client::with_config(config(&address));
    let cache = client.cache(respool_client::Caching::new()).unwrap();
    ends_in_time(cache.call::<String>(respool_client::commands::get("k")).deadline(LIMIT));
}
