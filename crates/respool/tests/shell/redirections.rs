//! A cluster's redirections.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use respool_testkit::{Act, Address, FakeBackend};

use crate::{respool_cli, run};

fn port_of(backend: &FakeBackend) -> u16 {
    match backend.address() {
        Address::Tcp(address) => address.port(),
        other => panic!("{other:?}"),
    }
}

/// A node that sends every GET elsewhere with these words, and the node that it sends them to.
fn pair(words: &'static str) -> (FakeBackend, FakeBackend) {
    let there = FakeBackend::start(|_| Act::Usual).expect("a node");
    let port = Arc::new(AtomicU16::new(port_of(&there)));
    let here = FakeBackend::start(move |request| match request.command().as_str() {
        "GET" => Act::Bytes(format!("-{words} 7 127.0.0.1:{}\r\n", port.load(Ordering::SeqCst)).into_bytes()),
        _ => Act::Usual,
    });
    (here.expect("a node"), there)
}

#[test]
fn moved_and_ask_are_followed_where_that_is_wanted() {
    for (words, expected) in [("MOVED", vec!["GET"]), ("ASK", vec!["ASKING", "GET"])] {
        let (here, there) = pair(words);
        let port = port_of(&here).to_string();
        let followed = run(&mut respool_cli(&["-p", &port, "-c", "get", "key"]), None);
        assert_eq!(followed.code, Some(0), "{followed:?}");
        assert!(!followed.stdout.contains(words), "{followed:?}");
        let asked: Vec<String> = there.received().iter().map(|request| request.command()).collect();
        assert_eq!(asked, expected, "{words}");
        let told = run(&mut respool_cli(&["-p", &port, "get", "key"]), None);
        assert!(told.stdout.starts_with(words), "{told:?}");
    }
}

#[test]
fn a_circle_of_redirections_ends() {
    let port = Arc::new(AtomicU16::new(0));
    let own = Arc::clone(&port);
    let node = FakeBackend::start(move |_| {
        Act::Bytes(format!("-MOVED 7 127.0.0.1:{}\r\n", own.load(Ordering::SeqCst)).into_bytes())
    })
    .expect("a node");
    port.store(port_of(&node), Ordering::SeqCst);
    let text = port_of(&node).to_string();
    let ended = run(&mut respool_cli(&["-p", &text, "-c", "get", "key"]), None);
    assert!(ended.stdout.starts_with("MOVED 7 "), "{ended:?}");
    assert!(node.connections() < 20);
}
