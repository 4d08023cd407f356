//! The conversation with one server: the handshake, requests and their replies in turn, pushes, redirections of a cluster.
//!
//! Nothing that was written is ever written again: where the connection ends with a reply outstanding, the caller is told so.
//! Before a request is written it is looked whether the server has closed the connection meanwhile, as servers do with idle ones.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use respool_connection::{Credentials, Endpoint};
use respool_net::tls::ClientTls;
use respool_wire::{Part, Protocol, ReplyKind, ReplyLimits, ReplyScanner, Scan, encode_request, part};
use zeroize::Zeroize;

use crate::limits::{CONNECT_LIMIT, DEPTH_MAX, READ_BYTES, REDIRECTIONS_MAX, WAIT_MAX};
use crate::link::{Link, Ready};

/// Where a session goes, and as what.
#[derive(Clone, Debug)]
pub struct Target {
    /// The server.
    pub endpoint: Endpoint,
    /// What TLS shows and demands.
    pub tls: Option<Arc<ClientTls>>,
    /// The user and the password.
    pub credentials: Option<Arc<Credentials>>,
    /// The database.
    pub database: u32,
    /// The dialect. Without one nothing is negotiated, and the server speaks RESP2.
    pub protocol: Option<Protocol>,
    /// Redirections of a cluster are followed.
    pub is_cluster: bool,
}

/// Said of what is not sent because it belongs to a transaction that is gone.
pub(crate) const STATE_LOST: &str = "The connection was lost with its transaction or watch; the command was not sent. EXEC or DISCARD gives the transaction up";

/// Why there is no reply.
#[derive(Debug)]
pub enum Failure {
    /// There is no connection.
    Dial(String),
    /// The connection has ended, or what came is no RESP.
    Lost(String),
    /// The user wants it to end.
    Interrupted,
    /// Its time is over.
    Late,
    /// Standard output, or another file.
    Output(io::Error),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dial(words) => f.write_str(words),
            Self::Lost(words) => write!(f, "Error: {words}"),
            Self::Interrupted => f.write_str("interrupted"),
            Self::Late => f.write_str("no reply in time"),
            Self::Output(error) => write!(f, "the output cannot be written: {error}"),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

/// A session.
#[derive(Debug)]
pub struct Session {
    target: Target,
    stop: Arc<AtomicBool>,
    link: Option<Link>,
    scanner: ReplyScanner,
    input: Vec<u8>,
    /// Where the first frame of the input begins.
    start: usize,
    /// How much of the input the scanner has seen.
    scanned: usize,
    pushes: VecDeque<Vec<u8>>,
    /// What the handshake met that does not end it, for the user.
    warnings: Vec<String>,
    /// The server where the session began, for when a redirection leads nowhere.
    home: Endpoint,
    /// The connection has a transaction or watched keys, which another one would not have.
    is_bound: bool,
}

impl Session {
    /// A session that connects when it is first needed. `stop` becomes true when the user wants it to end.
    #[must_use]
    pub fn new(target: Target, stop: Arc<AtomicBool>) -> Self {
        let home = target.endpoint.clone();
        Self {
            target,
            stop,
            link: None,
            scanner: ReplyScanner::new(),
            input: Vec::new(),
            start: 0,
            scanned: 0,
            pushes: VecDeque::new(),
            warnings: Vec::new(),
            home,
            is_bound: false,
        }
    }

    /// Where it goes.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Changes where later connections go, and as what. The one that there is stays.
    pub(crate) fn target_mut(&mut self) -> &mut Target {
        &mut self.target
    }

    /// Whether there is a connection, as far as is known.
    pub fn is_connected(&self) -> bool {
        self.link.is_some()
    }

    /// Whether the connection has a transaction or watched keys. Then no request goes to another one, neither because the first has
    /// ended nor because a node says that the key is elsewhere.
    pub(crate) fn set_bound(&mut self, is_bound: bool) {
        self.is_bound = is_bound;
    }

    /// Whether the transaction or the watched keys went with their connection.
    pub(crate) fn is_state_lost(&self) -> bool {
        self.is_bound && self.link.is_none()
    }

    /// What the handshake had to say since this was last asked.
    pub fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }

    /// Gives up the connection.
    pub fn hang_up(&mut self) {
        self.link = None;
        self.input = Vec::new();
        (self.start, self.scanned) = (0, 0);
        self.scanner = ReplyScanner::new();
        self.pushes.clear();
    }

    /// Connects if there is no connection, unless there was one with a transaction or watched keys.
    pub fn connect(&mut self) -> Result<(), Failure> {
        if self.link.is_some() {
            self.notice_end();
        }
        if self.link.is_some() {
            return Ok(());
        }
        self.hang_up();
        if self.is_bound {
            return Err(Failure::Lost(STATE_LOST.to_owned()));
        }
        let link = Link::dial(&self.target.endpoint, self.target.tls.as_deref());
        self.link = Some(link.map_err(|error| Failure::Dial(self.unreachable(&error)))?);
        self.greet().inspect_err(|_| self.hang_up())
    }

    fn unreachable(&self, error: &io::Error) -> String {
        let words = match error.raw_os_error() {
            // Without the number that the standard library puts behind it.
            Some(number) => error.to_string().replace(&format!(" (os error {number})"), ""),
            None => error.to_string(),
        };
        format!("Could not connect to Redis at {}: {words}", place_of(&self.target.endpoint))
    }

    /// What the server is told first. A refusal of AUTH or SELECT is no reason to give up: the user may see to it.
    fn greet(&mut self) -> Result<(), Failure> {
        if let Some(credentials) = self.target.credentials.clone() {
            let mut request = vec![&b"AUTH"[..]];
            request.extend(credentials.username.as_deref().map(str::as_bytes));
            request.push(credentials.password.as_bytes());
            self.greet_with(&request, "AUTH failed")?;
        }
        if self.target.protocol == Some(Protocol::Resp3) {
            self.greet_with(&[b"HELLO", b"3"], "HELLO 3 failed")?;
        }
        if self.target.database != 0 {
            let database = self.target.database.to_string();
            self.greet_with(&[b"SELECT", database.as_bytes()], &format!("SELECT {database} failed"))?;
        }
        Ok(())
    }

    fn greet_with(&mut self, request: &[&[u8]], what: &str) -> Result<(), Failure> {
        let mut bytes = Vec::new();
        encode_request(&mut bytes, request.iter().copied());
        let written = self.write_all(&bytes);
        bytes.zeroize();
        written?;
        let reply = self.reply(Some(Instant::now() + CONNECT_LIMIT))?;
        if let Some(Part::Leaf(ReplyKind::Error, text)) = part(&reply) {
            self.warnings.push(format!("{what}: {}", String::from_utf8_lossy(text)));
        }
        Ok(())
    }

    /// Asks one thing, following a cluster's redirections if it is to. Each is told to `moved` with the slot and the place.
    pub(crate) fn ask_redirected(
        &mut self,
        request: &[Vec<u8>],
        mut moved: impl FnMut(&str, &str),
    ) -> Result<Vec<u8>, Failure> {
        for _ in 0..REDIRECTIONS_MAX {
            let reply = self.ask(request)?;
            let Some(redirection) = Redirection::of(&reply).filter(|_| self.target.is_cluster && !self.is_bound) else {
                return Ok(reply);
            };
            moved(&redirection.slot, &redirection.place);
            self.follow(&redirection);
            if redirection.is_asking {
                self.connect()?;
                self.ask(&[b"ASKING".to_vec()])?;
            }
        }
        self.ask(request)
    }

    fn follow(&mut self, redirection: &Redirection) {
        let (new_host, new_port) = (&redirection.host, redirection.port);
        match &mut self.target.endpoint {
            Endpoint::Tcp { host, port } | Endpoint::Tls { host, port, .. } => {
                // A node that does not know its own address sends none.
                if !new_host.is_empty() {
                    host.clone_from(new_host);
                }
                *port = new_port;
            }
            other => {
                let host = if new_host.is_empty() { "127.0.0.1" } else { new_host };
                *other = Endpoint::Tcp { host: host.to_owned(), port: new_port };
            }
        }
        self.hang_up();
    }

    /// Back to the server where it began, if a redirection has led away.
    pub(crate) fn go_home(&mut self) {
        if self.target.endpoint != self.home {
            self.target.endpoint = self.home.clone();
            self.hang_up();
        }
    }

    /// From now on another server.
    pub(crate) fn go_to(&mut self, endpoint: Endpoint) {
        self.home = endpoint.clone();
        self.target.endpoint = endpoint;
        self.hang_up();
    }

    /// Asks one thing and waits for the reply, without end.
    pub fn ask(&mut self, request: &[impl AsRef<[u8]>]) -> Result<Vec<u8>, Failure> {
        self.send(request)?;
        self.reply(None)
    }

    /// Asks one thing and waits for the reply, at `until` at the latest. Then the connection has a reply outstanding.
    pub(crate) fn ask_until(&mut self, request: &[impl AsRef<[u8]>], until: Instant) -> Result<Vec<u8>, Failure> {
        self.send(request)?;
        self.reply(Some(until))
    }

    /// What becomes true when the user wants it to end.
    pub(crate) fn stop(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stop)
    }

    /// Writes a request.
    pub(crate) fn send(&mut self, request: &[impl AsRef<[u8]>]) -> Result<(), Failure> {
        self.connect()?;
        let mut bytes = Vec::new();
        encode_request(&mut bytes, request.iter().map(AsRef::as_ref));
        let written = self.write_all(&bytes);
        // It may hold a password.
        bytes.zeroize();
        written
    }

    /// Writes requests. Replies that come meanwhile are taken in, so that a server that waits to be read does not wait for ever.
    pub(crate) fn write_all(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let mut rest = bytes;
        loop {
            let Some(link) = &mut self.link else { return Err(Failure::Lost("not connected".to_owned())) };
            let mut is_blocked = false;
            if !rest.is_empty() {
                match link.write(rest) {
                    Ok(Some(count)) => rest = &rest[count..],
                    Ok(None) => is_blocked = true,
                    Err(error) => return Err(self.lost(&error.to_string())),
                }
            } else {
                match link.flush() {
                    Ok(true) => return Ok(()),
                    Ok(false) => is_blocked = true,
                    Err(error) => return Err(self.lost(&error.to_string())),
                }
            }
            if is_blocked {
                self.wait(true, None, WAIT_MAX)?;
                self.take_in()?;
            }
        }
    }

    /// Waits for the socket, or for `input`.
    pub(crate) fn wait(
        &mut self,
        is_writing: bool,
        input: Option<BorrowedFd<'_>>,
        limit: Duration,
    ) -> Result<Ready, Failure> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(Failure::Interrupted);
        }
        let Some(link) = &self.link else { return Err(Failure::Lost("not connected".to_owned())) };
        link.wait(is_writing, input, limit).map_err(|error| self.lost(&error.to_string()))
    }

    /// Gives the link away for a loop of its own.
    pub(crate) fn link_mut(&mut self) -> Option<&mut Link> {
        self.link.as_mut()
    }

    /// The next reply that is no push, at `until` at the latest.
    pub(crate) fn reply(&mut self, until: Option<Instant>) -> Result<Vec<u8>, Failure> {
        loop {
            let frame = self.frame(until)?;
            // In RESP3 only a subscriber's or watcher's news are pushes; in RESP2 messages are arrays and count as replies.
            if frame.first() == Some(&b'>') {
                self.pushes.push_back(frame);
                continue;
            }
            return Ok(frame);
        }
    }

    /// The pushes that came with replies since this was last asked.
    pub(crate) fn take_pushes(&mut self) -> VecDeque<Vec<u8>> {
        std::mem::take(&mut self.pushes)
    }

    /// The next frame of any kind, at `until` at the latest.
    pub(crate) fn frame(&mut self, until: Option<Instant>) -> Result<Vec<u8>, Failure> {
        loop {
            // A server that never stops sending is not waited for.
            if self.is_stopped() {
                return Err(Failure::Interrupted);
            }
            if let Some(frame) = self.next_frame()? {
                return Ok(frame);
            }
            if self.take_in()? > 0 {
                continue;
            }
            let left = until.map_or(WAIT_MAX, |until| until.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return Err(Failure::Late);
            }
            self.wait(false, None, left)?;
        }
    }

    /// The frame that lies at the start of what was received.
    fn next_frame(&mut self) -> Result<Option<Vec<u8>>, Failure> {
        if self.scanned == self.input.len() {
            return Ok(None);
        }
        let limits = ReplyLimits { depth_max: DEPTH_MAX, ..ReplyLimits::DEFAULT };
        match self.scanner.scan(&self.input[self.scanned..], &limits) {
            Ok(Scan::Complete { consumed, .. }) => {
                let end = self.scanned + consumed;
                let is_all = self.start == 0 && end == self.input.len();
                if is_all {
                    (self.start, self.scanned) = (0, 0);
                    return Ok(Some(std::mem::take(&mut self.input)));
                }
                let frame = self.input[self.start..end].to_vec();
                (self.start, self.scanned) = (end, end);
                Ok(Some(frame))
            }
            Ok(Scan::Partial) => {
                self.scanned = self.input.len();
                Ok(None)
            }
            Err(error) => Err(self.lost(&format!("Protocol error, {error}"))),
        }
    }

    /// Takes in what has come; how many bytes.
    pub(crate) fn take_in(&mut self) -> Result<usize, Failure> {
        let Some(link) = &mut self.link else { return Err(Failure::Lost("not connected".to_owned())) };
        if self.start > 0 {
            self.input.drain(..self.start);
            (self.start, self.scanned) = (0, self.scanned - self.start);
        }
        let start = self.input.len();
        self.input.resize(start + READ_BYTES, 0);
        let read = link.read(&mut self.input[start..]);
        let count = if let Ok(Some(count)) = read { count } else { 0 };
        self.input.truncate(start + count);
        match read {
            Ok(Some(0)) => Err(self.lost("Server closed the connection")),
            Ok(_) => Ok(count),
            Err(error) => Err(self.lost(&error.to_string())),
        }
    }

    /// Notices that the server has closed a connection on which nothing is outstanding.
    fn notice_end(&mut self) {
        if self.take_in().is_err() {
            self.hang_up();
        }
    }

    fn lost(&mut self, words: &str) -> Failure {
        self.hang_up();
        Failure::Lost(words.to_owned())
    }

    /// Pushes that have come by now, without waiting.
    pub(crate) fn poll_pushes(&mut self) -> VecDeque<Vec<u8>> {
        if self.link.is_some() && self.take_in().is_ok() {
            while let Ok(Some(frame)) = self.next_frame() {
                self.pushes.push_back(frame);
            }
        }
        self.take_pushes()
    }

    /// Whether the user wants it to end; asked once, the next thing may go on.
    pub(crate) fn take_stop(&self) -> bool {
        self.stop.swap(false, Ordering::Relaxed)
    }

    /// Whether the user wants it to end.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Sleeps for so long, or until the user wants it to end.
    pub(crate) fn pause(&self, pause: Duration) {
        let until = Instant::now() + pause;
        while !self.is_stopped() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            std::thread::sleep(left.min(WAIT_MAX));
        }
    }
}

/// A server's place as redis-cli names it.
pub(crate) fn place_of(endpoint: &Endpoint) -> String {
    match endpoint {
        Endpoint::Tcp { host, port } | Endpoint::Tls { host, port, .. } => format!("{host}:{port}"),
        Endpoint::Unix { path } => path.clone(),
        other => other.to_string(),
    }
}

/// Where a cluster's node sends a request.
#[derive(Debug, PartialEq, Eq)]
struct Redirection {
    is_asking: bool,
    slot: String,
    place: String,
    host: String,
    port: u16,
}

impl Redirection {
    fn of(reply: &[u8]) -> Option<Self> {
        let Some(Part::Leaf(ReplyKind::Error, text)) = part(reply) else { return None };
        let text = std::str::from_utf8(text).ok()?;
        let mut words = text.split(' ');
        let is_asking = match words.next()? {
            "MOVED" => false,
            "ASK" => true,
            _ => return None,
        };
        let slot = words.next()?.to_owned();
        let place = words.next()?.to_owned();
        // The host of IPv6 has colons of its own.
        let (host, port) = place.rsplit_once(':')?;
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = port.parse().ok()?;
        Some(Self { is_asking, slot, host, port, place })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirections_are_told_from_other_errors() {
        let of = |text: &str| Redirection::of(text.as_bytes()).map(|it| (it.is_asking, it.slot, it.host, it.port));
        assert_eq!(of("-MOVED 7 10.0.0.1:7000\r\n"), Some((false, "7".into(), "10.0.0.1".into(), 7000)));
        assert_eq!(of("-ASK 7 ::1:7000\r\n"), Some((true, "7".into(), "::1".into(), 7000)));
        assert_eq!(of("-MOVED 7 :7000\r\n"), Some((false, "7".into(), String::new(), 7000)));
        for other in ["-ERR MOVED 7 h:1\r\n", "-MOVED\r\n", "-MOVED 7 h:x\r\n", "+MOVED 7 h:1\r\n", "-ASKING 7 h:1\r\n"]
        {
            assert_eq!(of(other), None, "{other}");
        }
    }
}
