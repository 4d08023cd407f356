//! Connections to other servers that are kept for the next transfer.

use std::net::TcpStream;
use std::time::{Duration, Instant};

use respool_proxy::TransferTarget;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use zeroize::Zeroizing;

/// Connections that are kept, as in Redis.
const KEPT_MAX: usize = 64;

/// For how long one is kept that is not used, as in Redis.
const KEPT_FOR: Duration = Duration::from_secs(10);

/// A connection to another server.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) stream: TcpStream,
    /// The database that is selected there, if that is known.
    pub(super) database: Option<i64>,
    /// All that has come was a reply.
    pub(super) is_in_step: bool,
}

impl Connection {
    pub(super) fn new(stream: TcpStream) -> Self {
        Self { stream, database: None, is_in_step: true }
    }

    /// Whether something has come without a request, or the other side has closed.
    fn is_stale(&self) -> bool {
        let mut files = [PollFd::new(&self.stream, PollFlags::IN)];
        !matches!(poll(&mut files, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })), Ok(0))
    }
}

/// The server that a connection leads to, and the password that was said there: a request without it does not get that connection.
#[derive(PartialEq, Eq)]
pub(super) struct TargetName {
    host: Vec<u8>,
    port: Vec<u8>,
    auth: Option<Zeroizing<Vec<u8>>>,
}

impl TargetName {
    pub(super) fn of(target: &TransferTarget) -> Self {
        let auth = target.auth.as_ref().map(|auth| {
            let words = auth.as_args();
            let mut all = Zeroizing::new(Vec::with_capacity(words.iter().map(|word| word.len() + 8).sum()));
            for word in words.iter() {
                all.extend_from_slice(&(word.len() as u64).to_le_bytes());
                all.extend_from_slice(word);
            }
            all
        });
        Self { host: target.host.clone(), port: target.port.clone(), auth }
    }
}

struct Kept {
    name: TargetName,
    connection: Connection,
    since: Instant,
}

/// The connections, longest unused first.
#[derive(Default)]
pub(super) struct Connections(Vec<Kept>);

impl Connections {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The connection to a target that was used last.
    pub(super) fn take(&mut self, name: &TargetName) -> Option<Connection> {
        while let Some(place) = self.0.iter().rposition(|kept| kept.name == *name) {
            let kept = self.0.remove(place);
            if !kept.connection.is_stale() {
                return Some(kept.connection);
            }
        }
        None
    }

    pub(super) fn keep(&mut self, name: TargetName, connection: Connection, now: Instant) {
        if self.0.len() >= KEPT_MAX {
            self.0.remove(0);
        }
        self.0.push(Kept { name, connection, since: now });
    }

    /// Closes those that have not been used for long. The time until the next one has to be; `None`: none is left.
    pub(super) fn close_unused(&mut self, now: Instant) -> Option<Duration> {
        self.0.retain(|kept| now.saturating_duration_since(kept.since) < KEPT_FOR);
        let first = self.0.first()?;
        Some(KEPT_FOR.saturating_sub(now.saturating_duration_since(first.since)).max(Duration::from_millis(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::TcpListener;

    fn name(host: &str) -> TargetName {
        TargetName { host: host.into(), port: b"1".to_vec(), auth: None }
    }

    /// A connection, and its other side.
    fn pair(listener: &TcpListener) -> (Connection, TcpStream) {
        let stream = TcpStream::connect(listener.local_addr().expect("it is bound")).expect("it listens");
        let (other, _) = listener.accept().expect("one has come");
        (Connection::new(stream), other)
    }

    fn listener() -> TcpListener {
        TcpListener::bind(("127.0.0.1", 0)).expect("a port is free")
    }

    #[test]
    fn a_connection_is_kept_for_its_time_and_its_target() {
        let listener = listener();
        let mut all = Connections::default();
        let now = Instant::now();
        let (connection, _other) = pair(&listener);
        all.keep(name("a"), connection, now);
        assert!(all.take(&name("b")).is_none());
        assert_eq!(all.close_unused(now + Duration::from_secs(4)), Some(Duration::from_secs(6)));
        let connection = all.take(&name("a")).expect("it is kept");
        assert!(all.take(&name("a")).is_none(), "one transfer has it");
        all.keep(name("a"), connection, now);
        assert_eq!(all.close_unused(now + KEPT_FOR), None);
        assert_eq!(all.len(), 0);
    }

    #[test]
    fn what_has_been_closed_or_says_something_is_not_used() {
        let listener = listener();
        let mut all = Connections::default();
        let now = Instant::now();
        let (closed, other) = pair(&listener);
        drop(other);
        let (talks, mut other) = pair(&listener);
        other.write_all(b"+OK\r\n").expect("it is open");
        all.keep(name("a"), closed, now);
        all.keep(name("a"), talks, now);
        // Both have been said by now: this side of the loopback device has what the other one has done.
        assert!(all.take(&name("a")).is_none());
        assert_eq!(all.len(), 0);
    }

    #[test]
    fn the_longest_unused_gives_its_place() {
        let listener = listener();
        let mut all = Connections::default();
        let now = Instant::now();
        let mut others = Vec::new();
        for number in 0..=KEPT_MAX {
            let (connection, other) = pair(&listener);
            others.push(other);
            all.keep(name(&number.to_string()), connection, now);
        }
        assert_eq!(all.len(), KEPT_MAX);
        assert!(all.take(&name("0")).is_none() && all.take(&name("1")).is_some());
    }

    #[test]
    fn who_says_no_password_gets_no_connection_of_one_who_did() {
        let target = |auth: Option<&[&str]>| TransferTarget {
            host: b"h".to_vec(),
            port: b"1".to_vec(),
            database: 0,
            timeout_ms: 1,
            auth: auth.map(|words| words.iter().collect::<respool_wire::ArgsBuf>().as_args().into()),
        };
        let names = [None, Some(&["AUTH", "a"][..]), Some(&["AUTH", "b"][..]), Some(&["AUTH", "a", ""][..])];
        let names = names.map(|auth| TargetName::of(&target(auth)));
        for (place, one) in names.iter().enumerate() {
            assert_eq!(names.iter().position(|other| other == one), Some(place));
        }
    }
}
