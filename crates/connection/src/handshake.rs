//! What is said to a node before a connection is used: a list of steps, each with an answer of its own.
//!
//! ```text
//!   connected -> [AUTH] -> [HELLO 3] -> [CLIENT SETNAME ...] -> [SELECT n] -> [CLIENT TRACKING] -> PING -> ready
//!                   any error reply that does harm -> refused with the node's own words
//! ```
//!
//! The last step is always a PING, which meets whatever the node says unasked on connecting, be it "max number of clients" or
//! "loading", before a client's request could be taken for it. Its answer is like no other, so a reply that a node has left
//! out is noticed before the connection is ready.
//!
//! One connection to each node asks what the node is ([`Step::Describe`]). A node that does not know the question says so and is none
//! the worse for it; one that closes the connection for it is dialled again without it.

use crate::{Credentials, Server};
use respool_wire::{encode_request, replies};
use std::sync::Arc;

/// What stands around an argument or in front of a request, in bytes, at most.
const HEAD_BYTES: usize = 32;

/// One request of a handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// AUTH. A refusal ends the connection.
    Auth(Arc<Credentials>),
    /// HELLO 3. A node that does not know it speaks RESP2: see [`crate::Upstream::is_old`].
    Hello,
    /// Asks what the node is: HELLO 2, which changes nothing in RESP2, and INFO where HELLO is unknown. Left out behind a [`Step::Hello`]
    /// that is accepted, since its answer says the same. No refusal does harm.
    Describe,
    /// INFO, for what it says of the node. No refusal does harm.
    Info,
    /// CLIENT SETNAME. A node without it, or that forbids it, is used all the same.
    SetName(String),
    /// CLIENT SETINFO, which servers have since Redis 7.2. An older one is used all the same.
    SetInfo {
        /// `LIB-NAME` or `LIB-VER`.
        attribute: &'static str,
        /// Its value, without spaces and line ends.
        value: String,
    },
    /// SELECT. A refusal is [`crate::Fault::NoDatabase`].
    Select(u32),
    /// READONLY. A node that is no member of a cluster refuses it, and serves reads anyway.
    ReadOnly,
    /// CLIENT TRACKING, by this whole request. A refusal ends the connection.
    Track(Arc<[u8]>),
    /// PING. A node that answers it with an error that is about nothing but this request counts as there: it is busy with a script
    /// (`BUSY`), takes no writes since it cannot save them (`MISCONF`), or its user may not ask this (`NOPERM`).
    Ping,
}

/// Whether the steps of a handshake wait for each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pacing {
    /// Each step waits for the answer to the one before. A node that loses the reply to a failing AUTH behind other commands (seen in
    /// released servers) is never sent anything as the wrong user.
    #[default]
    Sequential,
    /// The answer to AUTH is waited for, and all other steps leave together: nothing is sent as the wrong user, in two round trips at most.
    BehindAuth,
    /// All steps leave together: one round trip. What is sent behind a refused step is executed without it.
    Pipelined,
}

/// A handshake in progress.
#[derive(Debug)]
pub struct Handshake {
    steps: Vec<Step>,
    pacing: Pacing,
    /// How many steps have been written.
    written: usize,
    /// How many of them have been answered.
    answered: usize,
    /// The node is asked what it is if HELLO 3 does not say it.
    is_description_due: bool,
    /// The node does not know RESP3.
    is_old: bool,
    /// What it says that it is.
    server: Option<Box<Server>>,
}

/// How a handshake goes on after an answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// More answers are due; what is left to say has been written.
    Continues,
    /// The connection may be used.
    Done,
    /// The node refused; its error text without the leading `-` and the line's end.
    Refused(String),
    /// The same, of the database.
    NoDatabase(String),
}

impl Handshake {
    /// Writes the first step, or all of them. A PING is added behind `steps` unless it is their last.
    pub(crate) fn begin(mut steps: Vec<Step>, pacing: Pacing, out: &mut Vec<u8>) -> Self {
        let is_described = steps.contains(&Step::Hello) && steps.contains(&Step::Describe);
        steps.retain(|step| !is_described || *step != Step::Describe);
        if steps.last() != Some(&Step::Ping) {
            steps.push(Step::Ping);
        }
        // So that it is not copied while it is written: what lies here is overwritten when it has been written, and nothing else.
        let later = HEAD_BYTES * 4;
        out.reserve(steps.iter().map(Step::bytes_max).sum::<usize>() + later);
        let mut this = Self {
            steps,
            pacing,
            written: 0,
            answered: 0,
            is_description_due: is_described,
            is_old: false,
            server: None,
        };
        this.say(out);
        this
    }

    /// Whether the node is being asked what it is.
    pub(crate) fn is_asking(&self) -> bool {
        matches!(self.steps.get(self.answered), Some(Step::Describe | Step::Info))
    }

    /// What the node has said that it is.
    pub(crate) fn take_server(&mut self) -> Option<Box<Server>> {
        self.server.take()
    }

    /// Whether the node speaks RESP2 although it was asked for RESP3.
    pub(crate) fn is_old(&self) -> bool {
        self.is_old
    }

    /// Takes the answer to the oldest step that has none, and writes what follows from it.
    pub(crate) fn answer(&mut self, reply: &[u8], out: &mut Vec<u8>) -> Progress {
        let Some(step) = self.steps.get(self.answered) else {
            return Progress::Refused("ERR more was answered than was asked".to_owned());
        };
        let is_accepted = step.is_accepted_by(reply);
        if !is_accepted && !step.may_be_refused(reply) {
            if !is_error(reply) {
                return Progress::Refused(format!("ERR {} was not answered as it should be", step.name()));
            }
            let text = String::from_utf8_lossy(reply.get(1..).unwrap_or_default());
            let words = text.trim_end().to_owned();
            return if matches!(step, Step::Select(_)) {
                Progress::NoDatabase(words)
            } else {
                Progress::Refused(words)
            };
        }
        let next = match step {
            Step::Hello if is_accepted => {
                self.server = Server::of_hello(reply).map(Box::new);
                None
            }
            Step::Hello => {
                // A node from before RESP3, or one whose HELLO is out of reach. The connection is as good as before.
                self.is_old = true;
                std::mem::take(&mut self.is_description_due).then_some(Step::Describe)
            }
            Step::Describe => {
                self.server = Server::of_hello(reply).map(Box::new);
                self.server.is_none().then_some(Step::Info)
            }
            Step::Info => {
                self.server = Server::of_info(reply).map(Box::new);
                None
            }
            _ => None,
        };
        self.answered += 1;
        // It comes next in what is still to be said.
        self.steps.splice(self.written..self.written, next);
        self.say(out);
        if self.answered == self.steps.len() { Progress::Done } else { Progress::Continues }
    }

    /// Writes what may be written before the next answer.
    fn say(&mut self, out: &mut Vec<u8>) {
        let end = match self.pacing {
            Pacing::Sequential => self.steps.len().min(self.answered + 1),
            Pacing::BehindAuth if self.answered == 0 && matches!(self.steps.first(), Some(Step::Auth(_))) => 1,
            Pacing::BehindAuth | Pacing::Pipelined => self.steps.len(),
        };
        self.steps.get(self.written..end).unwrap_or_default().iter().for_each(|step| step.write(out));
        self.written = end;
    }
}

impl Step {
    /// The request's name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Auth(_) => "AUTH",
            Self::Hello | Self::Describe => "HELLO",
            Self::Info => "INFO",
            Self::SetName(_) => "CLIENT SETNAME",
            Self::SetInfo { .. } => "CLIENT SETINFO",
            Self::Select(_) => "SELECT",
            Self::ReadOnly => "READONLY",
            Self::Track(_) => "CLIENT TRACKING",
            Self::Ping => "PING",
        }
    }

    /// Whether the connection is as good as before although the node has answered with this error.
    pub fn may_be_refused(&self, error: &[u8]) -> bool {
        match self {
            // It lives, and has taken everything else. Redis answers PING like a write while it cannot save, and serves reads; other
            // requests tell by themselves what they are refused for.
            Self::Ping => [&b"-BUSY"[..], b"-MISCONF", b"-NOPERM"].iter().any(|start| error.starts_with(start)),
            Self::Hello => is_unknown(error),
            Self::Describe | Self::SetName(_) | Self::SetInfo { .. } => is_error(error) && is_unanswerable(error),
            Self::ReadOnly => error.starts_with(b"-ERR This instance has cluster support disabled"),
            // A node that has answered HELLO has let us in: whatever it says to INFO is about INFO.
            Self::Info => is_error(error),
            Self::Auth(_) | Self::Select(_) | Self::Track(_) => false,
        }
    }

    /// Whether a reply says that the node has done it.
    fn is_accepted_by(&self, reply: &[u8]) -> bool {
        let first = reply.first();
        match self {
            Self::Hello => first == Some(&b'%'),
            Self::Describe => matches!(first, Some(b'*' | b'%')),
            Self::Info => matches!(first, Some(b'$' | b'=')),
            Self::Ping => reply == replies::PONG,
            _ => reply == replies::OK,
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Auth(credentials) => match credentials.username.as_deref() {
                Some(username) => say(out, &["AUTH", username, &credentials.password]),
                None => say(out, &["AUTH", &credentials.password]),
            },
            Self::Hello => say(out, &["HELLO", "3"]),
            Self::Describe => say(out, &["HELLO", "2"]),
            Self::Info => say(out, &["INFO"]),
            Self::SetName(name) => say(out, &["CLIENT", "SETNAME", name]),
            Self::SetInfo { attribute, value } => say(out, &["CLIENT", "SETINFO", attribute, value]),
            Self::Select(database) => say(out, &["SELECT", &database.to_string()]),
            Self::ReadOnly => say(out, &["READONLY"]),
            Self::Track(request) => out.extend_from_slice(request),
            Self::Ping => say(out, &["PING"]),
        }
    }

    /// Bytes of the request, at most.
    fn bytes_max(&self) -> usize {
        // Names and numbers of the protocol are shorter than a head.
        5 * 2 * HEAD_BYTES
            + match self {
                Self::Auth(credentials) => {
                    credentials.username.as_ref().map_or(0, String::len) + credentials.password.len()
                }
                Self::SetName(text) | Self::SetInfo { value: text, .. } => text.len(),
                Self::Track(request) => request.len(),
                _ => 0,
            }
    }
}

fn is_error(reply: &[u8]) -> bool {
    matches!(reply.first(), Some(b'-' | b'!'))
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
    use crate::{ClientInfo, Identity};
    use respool_wire::Protocol;

    fn talk(identity: &Identity, answers: &[&[u8]]) -> (String, Progress) {
        let mut said = Vec::new();
        let mut handshake = Handshake::begin(identity.steps(), identity.pacing, &mut said);
        let mut progress = Progress::Continues;
        for answer in answers {
            assert_eq!(progress, Progress::Continues);
            progress = handshake.answer(answer, &mut said);
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
    fn all_but_auth_leave_together() {
        let credentials = Credentials { username: None, password: "pw".to_owned().into() };
        let identity = Identity {
            database: 9,
            protocol: Protocol::Resp3,
            credentials: Some(Arc::new(credentials)),
            pacing: Pacing::BehindAuth,
            ..Identity::default()
        };
        let names = |said: &str| {
            let names = ["AUTH", "HELLO", "SELECT", "PING"];
            names.into_iter().filter(|name| said.contains(name)).collect::<Vec<_>>()
        };
        let (said, _) = talk(&identity, &[]);
        assert_eq!(names(&said), ["AUTH"]);
        let (said, progress) = talk(&identity, &[b"-WRONGPASS no\r\n"]);
        assert_eq!((names(&said), progress), (vec!["AUTH"], Progress::Refused("WRONGPASS no".to_owned())));
        let (said, progress) = talk(&identity, &[b"+OK\r\n"]);
        assert_eq!((names(&said), progress), (vec!["AUTH", "HELLO", "SELECT", "PING"], Progress::Continues));
        let (_, progress) = talk(&identity, &[b"+OK\r\n", b"%0\r\n", b"+OK\r\n", b"+PONG\r\n"]);
        assert_eq!(progress, Progress::Done);
        // Without a password there is nothing to wait for. A node from before RESP3 is none the worse for it.
        let open = Identity { credentials: None, ..identity };
        let (said, progress) = talk(&open, &[b"-ERR unknown command 'HELLO'\r\n", b"+OK\r\n", b"+PONG\r\n"]);
        assert_eq!((names(&said), progress), (vec!["HELLO", "SELECT", "PING"], Progress::Done));
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
    fn an_error_that_is_about_ping_alone_ends_no_connection() {
        for error in [
            "-MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.\r\n",
            "-NOPERM this user has no permissions to run the 'ping' command\r\n",
        ] {
            assert_eq!(talk(&Identity::default(), &[error.as_bytes()]).1, Progress::Done, "{error}");
            let identity = Identity { database: 9, ..Identity::default() };
            assert_eq!(talk(&identity, &[b"+OK\r\n", error.as_bytes()]).1, Progress::Done, "{error}");
            assert!(matches!(talk(&identity, &[error.as_bytes()]).1, Progress::NoDatabase(_)), "{error}");
        }
        for error in ["-NOAUTH Authentication required.\r\n", "-MASTERDOWN no\r\n", "-LOADING wait\r\n", "-ERR no\r\n"]
        {
            assert!(matches!(talk(&Identity::default(), &[error.as_bytes()]).1, Progress::Refused(_)), "{error}");
        }
    }

    #[test]
    fn a_node_without_hello_is_spoken_to_in_resp2() {
        let identity = Identity { database: 9, protocol: Protocol::Resp3, ..Identity::default() };
        for refusal in ["-ERR unknown command `HELLO`, with args beginning with: `3`\r\n", "-NOPROTO no\r\n"] {
            let mut said = Vec::new();
            let mut handshake = Handshake::begin(identity.steps(), identity.pacing, &mut said);
            assert_eq!(handshake.answer(refusal.as_bytes(), &mut said), Progress::Continues);
            assert_eq!(handshake.answer(b"+OK\r\n", &mut said), Progress::Continues);
            assert_eq!(handshake.answer(b"+PONG\r\n", &mut said), Progress::Done);
            assert!(handshake.is_old());
            assert!(said.ends_with(b"*2\r\n$6\r\nSELECT\r\n$1\r\n9\r\n*1\r\n$4\r\nPING\r\n"));
        }
        let (_, progress) = talk(&identity, &[b"-LOADING wait\r\n"]);
        assert!(matches!(progress, Progress::Refused(_)));
    }

    #[test]
    fn a_node_is_used_whatever_it_says_that_it_is() {
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
            let mut handshake = Handshake::begin(identity.steps(), identity.pacing, &mut said);
            for answer in answers.iter().copied().chain([&b"+OK\r\n"[..]]) {
                assert_eq!(handshake.answer(answer, &mut said), Progress::Continues, "{answers:?}");
            }
            assert_eq!(handshake.answer(b"+PONG\r\n", &mut said), Progress::Done);
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
        let mut handshake = Handshake::begin(modern.steps(), modern.pacing, &mut said);
        handshake.answer(b"%1\r\n$6\r\nserver\r\n$6\r\nvalkey\r\n", &mut said);
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

    fn requests(of: &[&[&str]]) -> String {
        let mut out = Vec::new();
        of.iter().for_each(|words| say(&mut out, words));
        String::from_utf8(out).unwrap()
    }

    fn of_library(pacing: Pacing) -> Identity {
        let client = ClientInfo {
            name: Some("app".to_owned()),
            library: Some("lib".to_owned()),
            version: Some("1.0".to_owned()),
        };
        let credentials = Credentials { username: None, password: "pw".to_owned().into() };
        Identity {
            database: 9,
            protocol: Protocol::Resp3,
            credentials: Some(Arc::new(credentials)),
            client: Some(Arc::new(client)),
            is_readonly: true,
            pacing,
            ..Identity::default()
        }
    }

    #[test]
    fn all_steps_may_leave_together() {
        let identity = of_library(Pacing::Pipelined);
        let mut said = Vec::new();
        let mut handshake = Handshake::begin(identity.steps(), identity.pacing, &mut said);
        let all = requests(&[
            &["AUTH", "pw"],
            &["HELLO", "3"],
            &["CLIENT", "SETNAME", "app"],
            &["CLIENT", "SETINFO", "LIB-NAME", "lib"],
            &["CLIENT", "SETINFO", "LIB-VER", "1.0"],
            &["SELECT", "9"],
            &["READONLY"],
            &["PING"],
        ]);
        assert_eq!(String::from_utf8_lossy(&said), all);
        let old = b"-ERR Unknown subcommand or wrong number of arguments for 'SETINFO'. Try CLIENT HELP.\r\n";
        let no_cluster = b"-ERR This instance has cluster support disabled\r\n";
        for answer in [&b"+OK\r\n"[..], b"%0\r\n", b"+OK\r\n", old, old, b"+OK\r\n", no_cluster] {
            assert_eq!(handshake.answer(answer, &mut said), Progress::Continues);
        }
        assert_eq!(handshake.answer(b"+PONG\r\n", &mut said), Progress::Done);
        assert_eq!(said.len(), all.len(), "nothing is said twice");
    }

    #[test]
    fn what_follows_from_an_answer_is_said_behind_the_others() {
        let identity = Identity { is_asked: true, pacing: Pacing::Pipelined, ..of_library(Pacing::Pipelined) };
        let mut said = Vec::new();
        let mut handshake = Handshake::begin(identity.steps(), identity.pacing, &mut said);
        let unknown = b"-ERR unknown command\r\n";
        let (ok, pong) = (b"+OK\r\n", b"+PONG\r\n");
        said.clear();
        for answer in [&ok[..], unknown, ok, ok, ok, ok, ok, pong] {
            assert_eq!(handshake.answer(answer, &mut said), Progress::Continues);
        }
        assert_eq!(handshake.answer(unknown, &mut said), Progress::Continues);
        assert_eq!(String::from_utf8_lossy(&said), requests(&[&["HELLO", "2"], &["INFO"]]));
        assert_eq!(handshake.answer(b"$19\r\nredis_version:4.0.0\r\n", &mut said), Progress::Done);
        assert!(handshake.is_old());
        assert_eq!(handshake.take_server().map(|server| server.version).as_deref(), Some("4.0.0"));
    }

    #[test]
    fn a_reply_left_out_of_a_pipelined_handshake_is_noticed() {
        let identity = of_library(Pacing::Pipelined);
        let mut answers: Vec<&[u8]> = vec![b"%0\r\n"];
        answers.splice(0..0, [&b"+OK\r\n"[..]]);
        answers.extend([&b"+OK\r\n"[..]; 5]);
        answers.push(b"+PONG\r\n");
        for left_out in 0..answers.len() - 1 {
            let mut rest = answers.clone();
            rest.remove(left_out);
            let mut handshake = Handshake::begin(identity.steps(), identity.pacing, &mut Vec::new());
            let refused = rest.iter().find_map(|answer| match handshake.answer(answer, &mut Vec::new()) {
                Progress::Continues => None,
                progress => Some(progress),
            });
            assert!(matches!(refused, Some(Progress::Refused(_))), "{left_out}: {refused:?}");
        }
    }

    #[test]
    fn only_a_refusal_that_does_harm_ends_the_connection() {
        for words in ["LOADING wait", "NOAUTH first", "ERR max number of clients reached", "ERR internal"] {
            let error = format!("-{words}\r\n").into_bytes();
            for step in of_library(Pacing::Sequential).steps() {
                assert!(!step.may_be_refused(&error), "{} {words}", step.name());
            }
        }
        let forbidden = b"-NOPERM this user has no permissions\r\n";
        let harmless: Vec<_> =
            of_library(Pacing::Sequential).steps().into_iter().filter(|step| step.may_be_refused(forbidden)).collect();
        let names: Vec<_> = harmless.iter().map(Step::name).collect();
        assert_eq!(names, ["HELLO", "CLIENT SETNAME", "CLIENT SETINFO", "CLIENT SETINFO", "PING"]);
    }
}
