//! Requests and their replies on one connection: what fits is written, and what comes is read meanwhile, so that a server which
//! answers before it has read everything is never waited for in vain.
//!
//! A reply is one line. It counts for its request only if that has been sent as a whole by then: what a server says too early is none.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::connections::Connection;

/// Bytes of one reply. Errors of servers are sentences.
const REPLY_BYTES_MAX: usize = 4 * 1024;

/// Bytes that are written at once, as in Redis.
const WRITE_BYTES: usize = 64 * 1024;

/// How often a wait looks whether all is over.
const LOOK: Duration = Duration::from_millis(100);

/// A reply that may come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expected<'r> {
    /// The request has been done.
    Done,
    /// The server's error, without its dash.
    Refused(&'r [u8]),
}

/// The connection is of no use any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Broken {
    /// Not everything had been sent.
    pub(super) is_writing: bool,
    /// Nothing has moved for too long.
    pub(super) is_late: bool,
}

/// How long is waited.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience<'a> {
    /// For how long nothing may move.
    pub(super) limit: Duration,
    /// Nothing is waited for any more.
    pub(super) is_over: &'a AtomicBool,
}

impl Patience<'_> {
    /// When it will be over, from now on.
    pub(super) fn until(&self) -> Instant {
        Instant::now() + self.limit
    }

    /// Waits until one of `wanted` is so. Errors are of the kind `TimedOut` if the time is over.
    pub(super) fn wait(&self, file: &impl AsFd, wanted: PollFlags, until: Instant) -> io::Result<PollFlags> {
        loop {
            if self.is_over.load(Ordering::Relaxed) {
                return Err(io::ErrorKind::TimedOut.into());
            }
            let left = until.saturating_duration_since(Instant::now());
            let slice = left.min(LOOK);
            let mut files = [PollFd::new(file, wanted)];
            let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(slice.subsec_nanos()) };
            match poll(&mut files, Some(&timeout)) {
                Ok(0) if left <= LOOK => return Err(io::ErrorKind::TimedOut.into()),
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return Ok(files[0].revents()),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Sends requests that end at `ends`, and gives each reply to `take`.
pub(super) fn exchange(
    connection: &mut Connection,
    requests: &[u8],
    ends: &[usize],
    patience: &Patience<'_>,
    mut take: impl FnMut(Expected<'_>),
) -> Result<(), Broken> {
    let mut replies = Replies { line: Vec::new(), count: 0 };
    let mut written = 0;
    let mut until = patience.until();
    let mut buffer = [0; 16 * 1024];
    while replies.count < ends.len() {
        let is_writing = written < requests.len();
        let broken = |error: io::Error| Broken { is_writing, is_late: error.kind() == io::ErrorKind::TimedOut };
        let wanted = if is_writing { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
        let ready = patience.wait(&connection.stream, wanted, until).map_err(broken)?;
        if ready.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR) {
            let read = unless_blocked(connection.stream.read(&mut buffer)).map_err(broken)?;
            if read == Some(0) {
                return Err(Broken { is_writing, is_late: false });
            }
            let before = replies.count;
            let bytes = buffer.get(..read.unwrap_or(0)).unwrap_or_default();
            let step = replies.feed(bytes, written, ends, &mut take);
            connection.is_in_step &= step == Step::InOrder;
            if step == Step::Broken {
                return Err(Broken { is_writing, is_late: false });
            }
            if replies.count > before {
                until = patience.until();
            }
        }
        if is_writing && ready.contains(PollFlags::OUT) {
            let rest = requests.get(written..).unwrap_or_default();
            let piece = rest.get(..WRITE_BYTES).unwrap_or(rest);
            let count = unless_blocked(connection.stream.write(piece)).map_err(broken)?;
            if let Some(count) = count.filter(|count| *count > 0) {
                written += count;
                until = patience.until();
            }
        }
    }
    Ok(())
}

fn unless_blocked(moved: io::Result<usize>) -> io::Result<Option<usize>> {
    match moved {
        Ok(count) => Ok(Some(count)),
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(None),
        Err(error) => Err(error),
    }
}

/// What bytes have led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// They were replies, or their beginnings.
    InOrder,
    /// There was more behind the last reply.
    TooMuch,
    /// They are no replies to these requests.
    Broken,
}

/// Replies as they come.
#[derive(Debug)]
struct Replies {
    /// The beginning of the next one.
    line: Vec<u8>,
    /// How many have come.
    count: usize,
}

impl Replies {
    /// Takes what has come while so many bytes of the requests had been `written`.
    fn feed(&mut self, bytes: &[u8], written: usize, ends: &[usize], take: &mut impl FnMut(Expected<'_>)) -> Step {
        let mut rest = bytes;
        while !rest.is_empty() {
            let Some(end) = ends.get(self.count) else { return Step::TooMuch };
            let (piece, behind) = match rest.iter().position(|byte| *byte == b'\n') {
                Some(at) => rest.split_at(at + 1),
                None => (rest, &[][..]),
            };
            rest = behind;
            self.line.extend_from_slice(piece);
            if *end > written || self.line.len() > REPLY_BYTES_MAX {
                return Step::Broken;
            }
            if !self.line.ends_with(b"\n") {
                break;
            }
            let line = self.line.strip_suffix(b"\r\n").unwrap_or(&self.line[..self.line.len() - 1]);
            match line {
                b"+OK" | [b':', ..] => take(Expected::Done),
                [b'-', words @ ..] => take(Expected::Refused(words)),
                _ => return Step::Broken,
            }
            self.count += 1;
            self.line.clear();
        }
        Step::InOrder
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What comes of bytes that arrive in pieces while so much has been written, with two requests of ten bytes.
    fn fed(pieces: &[(&str, usize)]) -> (Vec<String>, Step) {
        let mut replies = Replies { line: Vec::new(), count: 0 };
        let mut taken = Vec::new();
        for (piece, written) in pieces {
            let step = replies.feed(piece.as_bytes(), *written, &[10, 20], &mut |reply| {
                taken.push(match reply {
                    Expected::Done => "done".to_owned(),
                    Expected::Refused(words) => String::from_utf8_lossy(words).into_owned(),
                });
            });
            if step != Step::InOrder {
                return (taken, step);
            }
        }
        (taken, Step::InOrder)
    }

    #[test]
    fn replies_are_lines_however_they_come() {
        let all = "+OK\r\n-BUSYKEY there\r\n";
        let want = (vec!["done".to_owned(), "BUSYKEY there".to_owned()], Step::InOrder);
        for at in 0..all.len() {
            assert_eq!(fed(&[(&all[..at], 20), (&all[at..], 20)]), want, "{at}");
        }
        assert_eq!(fed(&[(":1\r\n", 10), ("+OK\r\n", 20)]).0, ["done", "done"]);
    }

    #[test]
    fn a_reply_to_what_was_not_sent_is_none() {
        assert_eq!(fed(&[("+OK\r\n", 9)]), (vec![], Step::Broken));
        assert_eq!(fed(&[("+OK\r\n+OK\r\n", 19)]), (vec!["done".to_owned()], Step::Broken));
        assert_eq!(fed(&[("+OK\r\n+", 19)]).1, Step::Broken, "nor is its beginning");
    }

    #[test]
    fn what_is_no_reply_breaks_the_connection() {
        for other in ["$-1\r\n", "+QUEUED\r\n", "+PONG\r\n", "\r\n", "HTTP/1.1 200 OK\r\n", "*1\r\n"] {
            assert_eq!(fed(&[(other, 20)]), (vec![], Step::Broken), "{other}");
        }
        assert_eq!(fed(&[(&"-".repeat(REPLY_BYTES_MAX), 20)]).1, Step::InOrder);
        assert_eq!(fed(&[(&"-".repeat(REPLY_BYTES_MAX + 1), 20)]).1, Step::Broken, "a line has an end");
    }

    #[test]
    fn what_comes_behind_the_last_reply_is_seen() {
        assert_eq!(fed(&[("+OK\r\n+OK\r\n+OK\r\n", 20)]).1, Step::TooMuch);
    }
}
