//! Replies that end anywhere: a connection that is closed behind any byte of a reply gives no caller a part of it.

#[allow(dead_code, reason = "shared with tests that use more of it")]
mod peer;

use peer::{config, server};
use respool_client::{Client, Error, ErrorKind, Outcome, Reply, cmd};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// One of each kind, some within others. A number that is cut is a number still, and so are a line and an error.
const REPLIES: [&[u8]; 9] = [
    b":1234567\r\n",
    b"+all of it\r\n",
    b"-ERR all of it\r\n",
    b"$10\r\n12345\r\n890\r\n",
    b"*3\r\n:12\r\n*2\r\n$3\r\nabc\r\n_\r\n+end\r\n",
    b"%2\r\n+one\r\n:1\r\n+two\r\n*1\r\n$0\r\n\r\n",
    b"~2\r\n,3.25\r\n#t\r\n",
    b"(12345678901234567890\r\n",
    b"=8\r\ntxt:abcd\r\n",
];

/// How often each key was asked for.
type Asked = Arc<Mutex<HashMap<String, usize>>>;

/// A server whose keys say which reply they get, and how many bytes of it the first time.
fn cutting(asked: &Asked) -> String {
    let asked = Arc::clone(asked);
    server(move |mut peer| {
        while let Some(request) = peer.request() {
            let mut numbers = request[1].split(':').map(|number| number.parse::<usize>().unwrap());
            let (reply, bytes) = (REPLIES[numbers.next().unwrap()], numbers.next().unwrap());
            let count = {
                let mut asked = asked.lock().unwrap();
                let count = asked.entry(request[1].clone()).or_default();
                *count += 1;
                *count
            };
            let sent = if count == 1 { bytes } else { reply.len() };
            if !peer.send(&reply[..sent]) || sent < reply.len() {
                break;
            }
        }
    })
}

/// Asks for each reply, cut behind each of its bytes, by this function.
fn ask_for_all(ask: &dyn Fn(&Client, &str, &str) -> Result<Reply, Error>) {
    let asked = Asked::default();
    let client = Client::with_config(config(&cutting(&asked)).deadline(Some(Duration::from_secs(60))));
    for (number, reply) in REPLIES.iter().enumerate() {
        let whole = ask(&client, "GET", &format!("{number}:{}:0", reply.len())).unwrap();
        for bytes in 0..=reply.len() {
            let about = format!("{bytes} bytes of {}", reply.escape_ascii());
            let count = |key: &str| asked.lock().unwrap()[key];
            let key = format!("{number}:{bytes}:1");
            match ask(&client, "INCR", &key) {
                Ok(found) => assert_eq!((bytes, &found), (reply.len(), &whole), "{about}"),
                Err(error) => {
                    assert!(bytes < reply.len() && matches!(error.kind(), ErrorKind::Lost(_)), "{about}: {error}");
                    assert_eq!(error.outcome(), Outcome::MaybeExecuted, "{about}");
                }
            }
            assert_eq!(count(&key), 1, "{about}");
            // What only reads is asked again, and then has all of it.
            let key = format!("{number}:{bytes}:2");
            assert_eq!(ask(&client, "GET", &key).unwrap(), whole, "{about}");
            assert_eq!(count(&key), 1 + usize::from(bytes < reply.len()), "{about}");
        }
    }
}

#[test]
fn no_part_of_a_reply_is_taken_for_one() {
    ask_for_all(&|client, name, key| client.call(cmd(name).key(key)).wait());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    ask_for_all(&|client, name, key| runtime.block_on(client.call(cmd(name).key(key))));
}
