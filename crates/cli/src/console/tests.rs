//! What a console sends and shows, at nodes that do what the tests say.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use respool_testkit::{Act, Address, FakeBackend};

use super::*;
use crate::grammar;
use crate::options::Surroundings;

fn port_of(node: &FakeBackend) -> u16 {
    match node.address() {
        Address::Tcp(address) => address.port(),
        other => panic!("{other:?}"),
    }
}

/// What `respool cli` is with these flags, on a terminal, at this node.
fn options(node: &FakeBackend, flags: &str) -> Options {
    let line = format!("cli -p {} {flags}", port_of(node));
    let matches = grammar().try_get_matches_from(line.split_ascii_whitespace()).unwrap();
    let surroundings =
        Surroundings { is_output_terminal: true, is_input_terminal: true, password: None, history: None };
    let read = |_: &Path| Err(std::io::ErrorKind::NotFound.into());
    Options::of(&matches, surroundings, read, &b""[..], || Err(std::io::ErrorKind::NotFound.into())).unwrap()
}

/// A console, and what it does with lines.
struct Typed<'a> {
    console: Console<'a>,
}

impl<'a> Typed<'a> {
    fn at(options: &'a Options, out: &'a mut Vec<u8>) -> Self {
        let session = Session::new(options.target.clone(), Arc::new(AtomicBool::new(false)));
        let mut console = Console::new(session, options, out);
        console.is_shell = true;
        Self { console }
    }

    fn enter(&mut self, line: &str) -> Result<bool, Failure> {
        let words: Vec<Vec<u8>> = line.split(' ').map(|word| word.as_bytes().to_vec()).collect();
        self.console.execute(&words)
    }

    #[track_caller]
    fn is_refused(&mut self, line: &str) {
        match self.enter(line) {
            Err(Failure::Lost(words)) => assert_eq!(words, STATE_LOST, "{line}"),
            other => panic!("{line}: {other:?}"),
        }
    }
}

fn commands(node: &FakeBackend) -> Vec<String> {
    node.received().iter().map(respool_testkit::Received::command).collect()
}

/// A node that says of GET that the key is at the other one.
fn moved() -> (FakeBackend, FakeBackend) {
    let there = FakeBackend::start(|_| Act::Usual).unwrap();
    let port = port_of(&there);
    let here = FakeBackend::start(move |request| match request.command().as_str() {
        "GET" => Act::Bytes(format!("-MOVED 7 127.0.0.1:{port}\r\n").into_bytes()),
        _ => Act::Usual,
    });
    (here.unwrap(), there)
}

#[test]
fn nothing_of_a_transaction_is_redirected() {
    for opening in ["MULTI", "WATCH k"] {
        let (here, there) = moved();
        let (options, mut out) = (options(&here, "-c"), Vec::new());
        let mut typed = Typed::at(&options, &mut out);
        typed.enter(opening).unwrap();
        assert!(typed.enter("GET k").unwrap());
        assert_eq!(there.connections(), 0, "{opening}");
        let end = if opening == "MULTI" { "EXEC" } else { "UNWATCH" };
        typed.enter(end).unwrap();
        // Behind it redirections are followed again.
        assert!(!typed.enter("GET k").unwrap());
        assert_eq!(commands(&there), ["GET"], "{opening}");
        assert!(String::from_utf8_lossy(&out).contains("(error) MOVED 7 "), "{opening}");
    }
}

#[test]
fn keys_watched_at_another_node_are_known_to_be_watched() {
    let there = FakeBackend::start(|_| Act::Usual).unwrap();
    let port = port_of(&there);
    let here = FakeBackend::start(move |_| Act::Bytes(format!("-MOVED 7 127.0.0.1:{port}\r\n").into_bytes())).unwrap();
    let (options, mut out) = (options(&here, "-c"), Vec::new());
    let mut typed = Typed::at(&options, &mut out);
    typed.enter("WATCH k").unwrap();
    typed.console.session.hang_up();
    typed.is_refused("SET k 1");
    assert_eq!(commands(&there), ["WATCH"]);
}

#[test]
fn a_write_in_a_transaction_dials_no_other_connection() {
    let node = FakeBackend::start(|_| Act::Usual).unwrap();
    let (options, mut out) = (options(&node, ""), Vec::new());
    let mut typed = Typed::at(&options, &mut out);
    typed.enter("MULTI").unwrap();
    typed.console.session.hang_up();
    // As where the connection ends between the look at it and the write.
    assert!(typed.console.session.send(&["SET", "k", "1"]).is_err());
    assert_eq!((commands(&node), node.connections()), (vec!["MULTI".to_owned()], 1));
}

#[test]
fn what_follows_a_lost_transaction_is_refused_to_its_end() {
    for (opening, end) in [("MULTI", "EXEC"), ("MULTI", "DISCARD"), ("WATCH k", "EXEC"), ("WATCH k", "UNWATCH")] {
        let node = FakeBackend::start(|_| Act::Usual).unwrap();
        let (options, mut out) = (options(&node, ""), Vec::new());
        let mut typed = Typed::at(&options, &mut out);
        typed.enter(opening).unwrap();
        typed.console.session.hang_up();
        for line in ["SET a 1", "MULTI", "SET b 1", "nosuch", end] {
            typed.is_refused(line);
        }
        typed.enter("SET c 1").unwrap();
        let keys: Vec<Vec<u8>> = node.received().iter().skip(1).map(|request| request.key().to_vec()).collect();
        assert_eq!(keys, [b"c"], "{opening}");
    }
}

#[test]
fn an_end_that_is_none_leaves_keys_watched() {
    let node = FakeBackend::start(|request| match request.command().as_str() {
        "EXEC" | "DISCARD" => Act::Bytes(b"-ERR without MULTI\r\n".to_vec()),
        _ => Act::Usual,
    });
    let node = node.unwrap();
    let (options, mut out) = (options(&node, ""), Vec::new());
    let mut typed = Typed::at(&options, &mut out);
    for line in ["WATCH k", "DISCARD", "EXEC"] {
        typed.enter(line).unwrap();
    }
    typed.console.session.hang_up();
    typed.is_refused("MULTI");
}

#[test]
fn a_queued_unwatch_does_not_end_the_transaction() {
    let node = FakeBackend::start(|_| Act::Usual).unwrap();
    let (options, mut out) = (options(&node, ""), Vec::new());
    let mut typed = Typed::at(&options, &mut out);
    typed.enter("MULTI").unwrap();
    typed.enter("UNWATCH").unwrap();
    assert!(typed.console.is_queueing());
    typed.console.session.hang_up();
    typed.is_refused("UNWATCH");
    typed.is_refused("SET k 1");
}

#[test]
fn what_a_server_says_does_not_command_the_terminal() {
    let node = FakeBackend::start(|request| match request.command().as_str() {
        "GET" => Act::Bytes(b"-ERR \x1b[2J\r\n".to_vec()),
        "INFO" => Act::Bytes(b"$5\r\na\x1bb\r\n\r\n".to_vec()),
        _ => Act::Bytes(b"+O\x1bK\r\n".to_vec()),
    });
    let node = node.unwrap();
    let (options, mut out) = (options(&node, ""), Vec::new());
    let mut typed = Typed::at(&options, &mut out);
    for line in ["GET k", "INFO", "SET k 1"] {
        typed.enter(line).unwrap();
    }
    let shown = String::from_utf8_lossy(&out);
    assert!(!shown.contains('\x1b') && shown.contains("(error) ERR \\x1b[2J\n"), "{shown:?}");
}

#[test]
fn what_keeps_replies_away_is_not_sent() {
    let node = FakeBackend::start(|_| Act::Usual).unwrap();
    let (options, mut out) = (options(&node, ""), Vec::new());
    let mut typed = Typed::at(&options, &mut out);
    for (line, is_error) in [("client reply off", true), ("CLIENT REPLY SKIP", true), ("client reply on", false)] {
        assert_eq!(typed.enter(line).unwrap(), is_error, "{line}");
    }
    assert_eq!(node.received().len(), 1);
}
