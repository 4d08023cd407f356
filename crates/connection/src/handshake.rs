//! What is said to a node before a connection is used.
//!
//! One step at a time, each waiting for its answer: a node that loses the reply to a failing AUTH behind other commands
//! (seen in released servers) can then not shift every later reply by one. The last step is always a PING, which meets
//! whatever the node says unasked on connecting, be it "max number of clients" or "loading", before a client's request could be taken for it.
//!
//! ```text
//!   connected -> [AUTH] -> [HELLO 3] -> [SELECT n] -> [CLIENT TRACKING] -> PING -> ready
//!                   any error reply -> refused with the node's own words
//! ```
//!
//! One connection to each node asks what the node is: it says HELLO in RESP2, too, and INFO where that is unknown. A node that has
//! neither says so and is none the worse for it; one that closes the connection for such a question is dialled again without it.

use crate::Server;
use respool_wire::{Protocol, encode_request, replies};
use std::fmt;
use std::sync::Arc;
use zeroize::Zeroizing;

/// What a node is told to let us in. Never printed, and overwritten when it is given up.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The user's name; `None` for the password of the default user.
    pub username: Option<String>,
    /// The password.
    pub password: Zeroizing<String>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("username", &self.username).finish_non_exhaustive()
    }
}

/// The session state of a connection to a node. Two requests may share a connection only if they need the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// The selected database.
    pub database: u32,
    /// The dialect.
    pub protocol: Protocol,
    /// Who we are to the node.
    pub credentials: Option<Arc<Credentials>>,
    /// The whole request by which the node is to tell of changed keys, if it is.
    pub tracking: Option<Arc<[u8]>>,
    /// The node is asked what it is.
    pub is_asked: bool,
}

/// What stands around an argument or in front of a request, at most.
const HEAD_BYTES: usize = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Auth,
    Hello,
    /// HELLO in RESP2, which changes nothing: the answer says what the node is.
    Ask,
    /// The same, of a node without HELLO.
    Info,
    Select,
    Track,
    Ping,
}

/// A handshake in progress.
#[derive(Debug)]
pub struct Handshake {
    awaited: Step,
    /// The node does not know RESP3.
    is_old: bool,
    /// What it says that it is.
    server: Option<Box<Server>>,
}

/// How a handshake goes on after an answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// The next step was written.
    Continues,
    /// The connection may be used.
    Done,
    /// The node refused; its error text without the leading `-` and the line's end.
    Refused(String),
    /// The same, of the database.
    NoDatabase(String),
}

impl Handshake {
    /// Writes the first step.
    pub(crate) fn begin(identity: &Identity, out: &mut Vec<u8>) -> Self {
        let first = if identity.credentials.is_some() { Step::Auth } else { Self::after_auth(identity) };
        Self::say(first, identity, out);
        Self { awaited: first, is_old: false, server: None }
    }

    /// Whether the node is being asked what it is.
    pub(crate) fn is_asking(&self) -> bool {
        matches!(self.awaited, Step::Ask | Step::Info)
    }

    /// What the node has said that it is.
    pub(crate) fn take_server(&mut self) -> Option<Box<Server>> {
        self.server.take()
    }

    /// Whether the node speaks RESP2 although it was asked for RESP3.
    pub(crate) fn is_old(&self) -> bool {
        self.is_old
    }

    /// Takes the answer to the step that was written last and writes the next one.
    pub(crate) fn answer(&mut self, identity: &Identity, reply: &[u8], out: &mut Vec<u8>) -> Progress {
        if self.awaited == Step::Ping && reply.starts_with(b"-BUSY") {
            // It runs a script, lives, and has taken everything else. It says so to every request that it cannot serve.
            return Progress::Done;
        }
        if self.awaited == Step::Hello && is_unknown(reply) {
            // A node from before RESP3, or one whose HELLO is out of reach. The connection is as good as before.
            self.is_old = true;
            let next = Self::after_hello(identity);
            self.awaited = next;
            Self::say(next, identity, out);
            return Progress::Continues;
        }
        // A node that has answered HELLO has let us in: whatever it says to INFO is about INFO.
        let is_error = matches!(reply.first(), Some(b'-' | b'!'));
        let first = reply.first().copied().unwrap_or_default();
        let is_taken = match self.awaited {
            Step::Ask => matches!(first, b'*' | b'%') || is_unanswerable(reply),
            Step::Info => is_error || matches!(first, b'$' | b'='),
            _ => false,
        };
        if is_taken {
            self.note_answer(identity, reply, out);
            return Progress::Continues;
        }
        if is_error {
            let text = String::from_utf8_lossy(reply.get(1..).unwrap_or_default());
            let words = text.trim_end().to_owned();
            return if self.awaited == Step::Select { Progress::NoDatabase(words) } else { Progress::Refused(words) };
        }
        let next = match self.awaited {
            Step::Auth if reply == replies::OK => Self::after_auth(identity),
            Step::Hello if reply.first() == Some(&b'%') => {
                self.server = Server::of_hello(reply).map(Box::new);
                Self::after_ask(identity)
            }
            Step::Select if reply == replies::OK => Self::after_select(identity),
            Step::Track if reply == replies::OK => Step::Ping,
            Step::Ping if reply == replies::PONG => return Progress::Done,
            step => return Progress::Refused(format!("ERR {step:?} was not answered as it should be")),
        };
        self.awaited = next;
        Self::say(next, identity, out);
        Progress::Continues
    }

    fn after_auth(identity: &Identity) -> Step {
        if identity.protocol == Protocol::Resp3 { Step::Hello } else { Self::after_hello(identity) }
    }

    /// Takes the answer to a question for what the node is, whatever it is.
    fn note_answer(&mut self, identity: &Identity, reply: &[u8], out: &mut Vec<u8>) {
        let is_hello = self.awaited == Step::Ask;
        let server = if is_hello { Server::of_hello(reply) } else { Server::of_info(reply) };
        let next = if is_hello && server.is_none() { Step::Info } else { Self::after_ask(identity) };
        self.server = server.map(Box::new);
        self.awaited = next;
        Self::say(next, identity, out);
    }

    fn after_hello(identity: &Identity) -> Step {
        if identity.is_asked { Step::Ask } else { Self::after_ask(identity) }
    }

    fn after_ask(identity: &Identity) -> Step {
        if identity.database != 0 { Step::Select } else { Self::after_select(identity) }
    }

    fn after_select(identity: &Identity) -> Step {
        if identity.tracking.is_some() { Step::Track } else { Step::Ping }
    }

    fn say(step: Step, identity: &Identity, out: &mut Vec<u8>) {
        match step {
            Step::Auth => {
                if let Some(credentials) = &identity.credentials {
                    let username = credentials.username.as_deref();
                    let words: Vec<&str> =
                        [Some("AUTH"), username, Some(&credentials.password)].into_iter().flatten().collect();
                    // So that it is not copied while it is written: what lies here is overwritten, and nothing else.
                    out.reserve(words.iter().map(|word| word.len() + HEAD_BYTES).sum::<usize>() + HEAD_BYTES);
                    say(out, &words);
                }
            }
            Step::Hello => say(out, &["HELLO", "3"]),
            Step::Ask => say(out, &["HELLO", "2"]),
            Step::Info => say(out, &["INFO"]),
            Step::Select => say(out, &["SELECT", &identity.database.to_string()]),
            Step::Track => out.extend_from_slice(identity.tracking.as_deref().unwrap_or_default()),
            Step::Ping => say(out, &["PING"]),
        }
    }
}

/// Whether a node refuses HELLO because it does not know it, or not this version of the protocol, or hides it.
fn is_unknown(reply: &[u8]) -> bool {
    [&b"-ERR unknown command"[..], b"-NOPROTO", b"-NOPERM"].iter().any(|start| reply.starts_with(start))
}

/// Whether an error says that a question cannot be answered, and nothing of the connection. `BUSY` is said to most requests while
/// a script runs.
fn is_unanswerable(reply: &[u8]) -> bool {
    let words = String::from_utf8_lossy(reply.get(1..).unwrap_or_default()).to_ascii_lowercase();
    let is_of_connection = words.starts_with("err max number of clients") || words.starts_with("noauth");
    let about_question =
        ["unknown", "unsupported", "not supported", "not allowed", "disabled", "wrong number", "syntax"];
    reply.starts_with(b"-BUSY")
        || is_unknown(reply)
        || words.starts_with("err ") && !is_of_connection && about_question.iter().any(|word| words.contains(word))
}

fn say(out: &mut Vec<u8>, words: &[&str]) {
    encode_request(out, words.iter().map(|w| w.as_bytes()));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn talk(identity: &Identity, answers: &[&[u8]]) -> (String, Progress) {
        let mut said = Vec::new();
        let mut handshake = Handshake::begin(identity, &mut said);
        let mut progress = Progress::Continues;
        for answer in answers {
            assert_eq!(progress, Progress::Continues);
            progress = handshake.answer(identity, answer, &mut said);
        }
        (String::from_utf8(said).unwrap(), progress)
    }

    #[test]
    fn a_plain_connection_is_only_pinged() {
        let (said, progress) = talk(&Identity::default(), &[b"+PONG\r\n"]);
        assert_eq!(said, "*1\r\n$4\r\nPING\r\n");
        assert_eq!(progress, Progress::Done);
    }

    #[test]
    fn every_step_waits_for_the_one_before() {
        let credentials = Credentials { username: Some("ann".to_owned()), password: "pw".to_owned().into() };
        let identity = Identity {
            database: 9,
            protocol: Protocol::Resp3,
            credentials: Some(Arc::new(credentials)),
            ..Identity::default()
        };
        let (said, progress) = talk(&identity, &[b"+OK\r\n", b"%0\r\n", b"+OK\r\n", b"+PONG\r\n"]);
        assert_eq!(progress, Progress::Done);
        assert_eq!(
            said,
            "*3\r\n$4\r\nAUTH\r\n$3\r\nann\r\n$2\r\npw\r\n*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n*2\r\n$6\r\nSELECT\r\n$1\r\n9\r\n*1\r\n$4\r\nPING\r\n"
        );
    }

    #[test]
    fn a_connection_that_tracks_does_so_before_it_is_used() {
        let mut track = Vec::new();
        say(&mut track, &["CLIENT", "TRACKING", "ON", "NOLOOP"]);
        let identity = Identity { database: 9, tracking: Some(track.into()), ..Identity::default() };
        let (said, progress) = talk(&identity, &[b"+OK\r\n", b"+OK\r\n", b"+PONG\r\n"]);
        assert_eq!(progress, Progress::Done);
        assert!(said.ends_with("$8\r\nTRACKING\r\n$2\r\nON\r\n$6\r\nNOLOOP\r\n*1\r\n$4\r\nPING\r\n"), "{said}");
        let (_, progress) = talk(&identity, &[b"+OK\r\n", b"-NOPERM no\r\n"]);
        assert_eq!(progress, Progress::Refused("NOPERM no".to_owned()));
    }

    #[test]
    fn a_refusal_carries_the_nodes_words() {
        let (_, progress) = talk(&Identity::default(), &[b"-LOADING Redis is loading\r\n"]);
        assert_eq!(progress, Progress::Refused("LOADING Redis is loading".to_owned()));
    }

    #[test]
    fn a_node_that_is_busy_with_a_script_may_be_used() {
        let (_, progress) = talk(&Identity::default(), &[b"-BUSY Redis is busy running a script.\r\n"]);
        assert_eq!(progress, Progress::Done);
        let identity = Identity { database: 9, ..Identity::default() };
        let (_, progress) = talk(&identity, &[b"-BUSY Redis is busy running a script.\r\n"]);
        assert!(matches!(progress, Progress::NoDatabase(_)));
    }

    #[test]
    fn a_node_without_hello_is_spoken_to_in_resp2() {
        let identity = Identity { database: 9, protocol: Protocol::Resp3, ..Identity::default() };
        for refusal in ["-ERR unknown command `HELLO`, with args beginning with: `3`\r\n", "-NOPROTO no\r\n"] {
            let mut said = Vec::new();
            let mut handshake = Handshake::begin(&identity, &mut said);
            assert_eq!(handshake.answer(&identity, refusal.as_bytes(), &mut said), Progress::Continues);
            assert_eq!(handshake.answer(&identity, b"+OK\r\n", &mut said), Progress::Continues);
            assert_eq!(handshake.answer(&identity, b"+PONG\r\n", &mut said), Progress::Done);
            assert!(handshake.is_old());
            assert!(said.ends_with(b"*2\r\n$6\r\nSELECT\r\n$1\r\n9\r\n*1\r\n$4\r\nPING\r\n"));
        }
        let (_, progress) = talk(&identity, &[b"-LOADING wait\r\n"]);
        assert!(matches!(progress, Progress::Refused(_)));
    }

    #[test]
    fn a_node_that_is_asked_says_what_it_is_and_is_used_whatever_it_says() {
        let identity = Identity { database: 9, is_asked: true, ..Identity::default() };
        let hello = b"*4\r\n$6\r\nserver\r\n$5\r\nredis\r\n$4\r\nrole\r\n$6\r\nmaster\r\n";
        let info = b"$19\r\nredis_version:4.0.0\r\n";
        let unknown = b"-ERR unknown command 'HELLO'\r\n";
        for (answers, program) in [
            (&[&hello[..]][..], Some("redis")),
            (&[unknown, info], Some("redis")),
            (&[unknown, b"-NOPERM this user has no permissions\r\n"], None),
            (&[unknown, unknown], None),
            (&[b"-NOPROTO no\r\n", b"-ERR unsupported command\r\n"], None),
            (&[b"-BUSY a script runs\r\n", b"-BUSY a script runs\r\n"], None),
            (&[b"*0\r\n", b"$1\r\nx\r\n"], None),
        ] {
            let mut said = Vec::new();
            let mut handshake = Handshake::begin(&identity, &mut said);
            for answer in answers.iter().copied().chain([&b"+OK\r\n"[..]]) {
                assert_eq!(handshake.answer(&identity, answer, &mut said), Progress::Continues, "{answers:?}");
            }
            assert_eq!(handshake.answer(&identity, b"+PONG\r\n", &mut said), Progress::Done);
            assert_eq!(handshake.take_server().map(|server| server.program).as_deref(), program, "{answers:?}");
            assert!(said.ends_with(b"*2\r\n$6\r\nSELECT\r\n$1\r\n9\r\n*1\r\n$4\r\nPING\r\n"));
        }
        for words in ["LOADING wait", "ERR max number of clients reached", "NOAUTH first", "DENIED protected mode"] {
            let (_, progress) = talk(&identity, &[format!("-{words}\r\n").as_bytes()]);
            assert_eq!(progress, Progress::Refused(words.to_owned()));
        }
        // The answer to something else shifts all that follow.
        for answers in [&[&b"+OK\r\n"[..]][..], &[b"-ERR unknown\r\n", hello], &[b"-ERR unknown\r\n", b"+OK\r\n"]] {
            assert!(matches!(talk(&identity, answers).1, Progress::Refused(_)), "{answers:?}");
        }
        let modern = Identity { protocol: Protocol::Resp3, ..identity };
        let mut said = Vec::new();
        let mut handshake = Handshake::begin(&modern, &mut said);
        handshake.answer(&modern, b"%1\r\n$6\r\nserver\r\n$6\r\nvalkey\r\n", &mut said);
        assert_eq!(handshake.take_server().map(|server| server.program).as_deref(), Some("valkey"), "asked once");
    }

    #[test]
    fn an_answer_to_something_else_is_a_refusal() {
        let identity = Identity { database: 9, ..Identity::default() };
        let (_, progress) = talk(&identity, &[b"+PONG\r\n"]);
        assert!(matches!(progress, Progress::Refused(_)));
        let (_, progress) = talk(&identity, &[b"+OK\r\n", b"+OK\r\n"]);
        assert!(matches!(progress, Progress::Refused(_)));
    }

    #[test]
    fn credentials_never_print_their_password() {
        let credentials = Credentials { username: None, password: "hunter2".to_owned().into() };
        assert!(!format!("{credentials:?}").contains("hunter2"));
    }
}
