//! Errors that identify a node as a replica or cluster member, and bytes that only look like them.

use crate::bench::Bench;
use crate::support::config;
use respool_proxy::hooks::{Event, Hooks};
use std::sync::{Arc, Mutex};

const READONLY: &[u8] = b"-READONLY You can't write against a read only replica.\r\n";

#[test]
fn only_an_error_that_is_a_reply_tells_what_a_node_is() {
    let told = Arc::new(Mutex::new(0));
    let counts = Arc::clone(&told);
    let hooks = Hooks::default().on_event(move |event| {
        *counts.lock().unwrap() += usize::from(matches!(event, Event::NodeUnfit { .. }));
    });
    let mut bench = Bench::with_hooks(config(1, 1), hooks);
    let client = bench.accept();
    bench.ask(client, &["GET", "k"]);
    let node = bench.connect()[0];
    // A small value, and a large one whose beginning is passed on before the rest has come.
    for (first, before) in [(true, 1), (false, 1), (false, 100_000)] {
        if !first {
            bench.ask(client, &["GET", "k"]);
        }
        let value = [&vec![b'x'; before][..], READONLY].concat();
        bench.send(node, format!("${}\r\n", value.len()).as_bytes());
        bench.send(node, &value[..before]);
        bench.send(node, READONLY);
        bench.send(node, b"\r\n");
        let heard = bench.heard(client);
        assert!(heard.ends_with("replica.\r\n\r\n"), "{heard}");
        assert_eq!(*told.lock().unwrap(), 0, "it is a part of a value");
    }
    let runner = bench.accept();
    bench.ask(runner, &["EVAL", "return redis.error_reply('MOVED 1 x:1')", "0"]);
    let apart = bench.connect()[0];
    bench.send(apart, b"-MOVED 1 x:1\r\n");
    assert_eq!(bench.heard(runner), "-MOVED 1 x:1\r\n");
    assert_eq!(*told.lock().unwrap(), 0, "a script has said it");
    for _ in 0..2 {
        bench.ask(client, &["SET", "k", "v"]);
        bench.send(node, READONLY);
        assert_eq!(bench.heard(client).as_bytes(), READONLY);
    }
    assert_eq!(*told.lock().unwrap(), 1, "the node has said it itself, and that is news once");
}
