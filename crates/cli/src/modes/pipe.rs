//! Mass insertion: requests of standard input are sent as they are, and their replies counted.
//!
//! Both directions go on at once, and neither is kept: standard input is read while little of it waits to be written, and replies are
//! looked at as they come. Behind the last request an ECHO of random letters is sent; its reply says that all others have come. So the
//! number of requests need not be known.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use respool_wire::{Part, ReplyKind, ReplyLimits, ReplyScanner, Scan, part};

use crate::console::Console;
use crate::limits::{DEPTH_MAX, PIPE_BYTES_MAX, READ_BYTES, WAIT_MAX};
use crate::link::Link;
use crate::session::Failure;

/// Letters of the mark.
const MARK_BYTES: usize = 20;

/// What the replies were.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counted {
    replies: u64,
    errors: u64,
}

/// Tells requests apart in what is sent, and keeps nothing of them.
#[derive(Default)]
struct Requests {
    place: Place,
    scanner: ReplyScanner,
    /// Those that were sent as a whole and have a reply.
    complete: u64,
}

/// Where what was sent ends.
#[derive(Clone, Copy, Default)]
enum Place {
    #[default]
    Between,
    /// In a line of words. `has_words`: it is not blank so far.
    Inline { has_words: bool },
    /// In an array, of which so many bytes were sent.
    Array { bytes: usize },
    /// What was sent is not understood here. The server says what it makes of it.
    Unknown,
}

/// The shortest array that is a request: `*1`, `$0` and nothing. Shorter ones have no reply.
const ARRAY_BYTES_MIN: usize = 10;

impl Requests {
    fn take(&mut self, mut bytes: &[u8]) {
        while let Some(first) = bytes.first() {
            let used = match self.place {
                Place::Between => {
                    self.place = match first {
                        b'*' => Place::Array { bytes: 0 },
                        _ => Place::Inline { has_words: false },
                    };
                    0
                }
                Place::Inline { has_words } => {
                    let end = bytes.iter().position(|byte| *byte == b'\n');
                    let has_words =
                        has_words | bytes[..end.unwrap_or(bytes.len())].iter().any(|byte| !byte.is_ascii_whitespace());
                    self.place = if end.is_some() { Place::Between } else { Place::Inline { has_words } };
                    self.complete += u64::from(end.is_some() && has_words);
                    end.map_or(bytes.len(), |end| end + 1)
                }
                Place::Array { bytes: before } => match self.scanner.scan(bytes, &ReplyLimits::DEFAULT) {
                    Ok(Scan::Complete { consumed, .. }) => {
                        self.place = Place::Between;
                        self.complete += u64::from(before + consumed >= ARRAY_BYTES_MIN);
                        consumed
                    }
                    Ok(Scan::Partial) => {
                        self.place = Place::Array { bytes: before + bytes.len() };
                        bytes.len()
                    }
                    Err(_) => {
                        self.place = Place::Unknown;
                        bytes.len()
                    }
                },
                Place::Unknown => return,
            };
            bytes = &bytes[used..];
        }
    }

    /// Whether the rest of a request is missing. A line of words ends where the input does.
    fn is_truncated(&self) -> bool {
        matches!(self.place, Place::Array { .. })
    }
}

/// Tells replies apart in what is received, and keeps none but the one that is coming in.
struct Replies {
    scanner: ReplyScanner,
    input: Vec<u8>,
    scanned: usize,
    mark: Vec<u8>,
    counted: Counted,
    is_over: bool,
}

impl Replies {
    fn new(mark: &[u8]) -> Self {
        Self {
            scanner: ReplyScanner::new(),
            input: Vec::new(),
            scanned: 0,
            mark: mark.to_vec(),
            counted: Counted::default(),
            is_over: false,
        }
    }

    /// Takes in what was received. Errors of the server are given to `complain`.
    fn take(&mut self, bytes: &[u8], mut complain: impl FnMut(&[u8])) -> Result<(), String> {
        let limits = ReplyLimits { depth_max: DEPTH_MAX, ..ReplyLimits::DEFAULT };
        self.input.extend_from_slice(bytes);
        let mut start = 0;
        loop {
            match self.scanner.scan(&self.input[self.scanned..], &limits) {
                Ok(Scan::Complete { consumed, kind }) => {
                    let end = self.scanned + consumed;
                    let reply = &self.input[start..end];
                    let is_mark = kind == ReplyKind::Bulk
                        && matches!(part(reply), Some(Part::Leaf(_, text)) if text == self.mark);
                    (start, self.scanned) = (end, end);
                    if is_mark {
                        self.is_over = true;
                        break;
                    }
                    if kind == ReplyKind::Push {
                        continue;
                    }
                    self.counted.replies += 1;
                    if kind.is_error() {
                        self.counted.errors += 1;
                        if let Some(Part::Leaf(_, text)) = part(reply) {
                            complain(text);
                        }
                    }
                }
                Ok(Scan::Partial) => {
                    self.scanned = self.input.len();
                    break;
                }
                Err(error) => return Err(error.to_string()),
            }
        }
        self.input.drain(..start);
        self.scanned -= start;
        Ok(())
    }
}

/// Sends standard input and counts the replies. Whether none was an error.
pub(crate) fn run(console: &mut Console<'_>, timeout: Option<Duration>) -> Result<bool, Failure> {
    console.connect()?;
    let input = io::stdin();
    let mark = mark();
    let counted = match console.session.link_mut() {
        Some(link) => transfer(link, &mut input.lock(), &mark, timeout, |text| {
            eprintln!("{}", String::from_utf8_lossy(text));
        }),
        None => return Err(Failure::Lost("not connected".to_owned())),
    };
    let (counted, fault) = counted;
    if fault.is_none() {
        writeln!(console.out, "All data transferred. Waiting for the last reply...")?;
        writeln!(console.out, "Last reply received from server.")?;
    }
    writeln!(console.out, "errors: {}, replies: {}", counted.errors, counted.replies)?;
    console.out.flush()?;
    match fault {
        Some(words) => Err(Failure::Lost(words)),
        None => Ok(counted.errors == 0),
    }
}

/// Both directions at once, until the mark has come back.
fn transfer(
    link: &mut Link,
    input: &mut (impl Read + AsFd),
    mark: &[u8],
    timeout: Option<Duration>,
    mut complain: impl FnMut(&[u8]),
) -> (Counted, Option<String>) {
    let mut replies = Replies::new(mark);
    let mut requests = Requests::default();
    let mut output: Vec<u8> = Vec::with_capacity(PIPE_BYTES_MAX);
    let mut written = 0;
    let mut is_ended = false;
    let mut buffer = vec![0; READ_BYTES];
    let mut last = Instant::now();
    let ended = |replies: Replies, words: String| (replies.counted, Some(words));
    while !replies.is_over {
        // From the server first: one that waits to be read does not read.
        match link.read(&mut buffer) {
            Ok(Some(0)) => return ended(replies, "Server closed the connection".to_owned()),
            Ok(Some(count)) => {
                last = Instant::now();
                if let Err(words) = replies.take(&buffer[..count], &mut complain) {
                    return ended(replies, format!("Protocol error, {words}"));
                }
                continue;
            }
            Ok(None) => {}
            Err(error) => return ended(replies, words_of(&error)),
        }
        let mut is_flushed = true;
        if written < output.len() {
            match link.write(&output[written..]) {
                Ok(count) => written += count.unwrap_or(0),
                Err(error) => return ended(replies, words_of(&error)),
            }
        } else {
            match link.flush() {
                Ok(flushed) => is_flushed = flushed,
                Err(error) => return ended(replies, words_of(&error)),
            }
        }
        if written == output.len() {
            output.clear();
            written = 0;
        }
        let is_writing = written < output.len() || !is_flushed;
        if is_ended && requests.is_truncated() && !is_writing && replies.counted.replies >= requests.complete {
            return ended(replies, truncated(&requests));
        }
        let wants_input = !is_ended && output.len() < PIPE_BYTES_MAX - READ_BYTES;
        let waited = link.wait(is_writing, wants_input.then(|| input.as_fd()), WAIT_MAX);
        match waited {
            Ok(ready) if wants_input && ready.is_input => match input.read(&mut buffer) {
                Ok(0) => {
                    is_ended = true;
                    last = Instant::now();
                    // A mark would become part of the request that is cut off.
                    if !requests.is_truncated() {
                        // A CR LF of its own: what came before may end in the middle of an inline request.
                        output.extend_from_slice(b"\r\n");
                        respool_wire::encode_request(&mut output, [&b"ECHO"[..], mark].into_iter());
                    }
                }
                Ok(count) => {
                    requests.take(&buffer[..count]);
                    output.extend_from_slice(&buffer[..count]);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return ended(replies, format!("standard input: {error}")),
            },
            Ok(_) => {}
            Err(error) => return ended(replies, error.to_string()),
        }
        if is_ended && timeout.is_some_and(|timeout| last.elapsed() > timeout) {
            let silence = format!("No replies for {} seconds: exiting.", timeout.unwrap_or_default().as_secs());
            let words = if requests.is_truncated() { format!("{}. {silence}", truncated(&requests)) } else { silence };
            return ended(replies, words);
        }
    }
    (replies.counted, None)
}

/// What is said of input whose last request is not whole.
fn truncated(requests: &Requests) -> String {
    format!(
        "standard input ends in the middle of a request, which was not executed; {} whole requests were sent before it",
        requests.complete
    )
}

/// What is said of a connection that has failed. A server that ends before it has read everything resets the connection, or refuses
/// what is written.
fn words_of(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => "Server closed the connection".to_owned(),
        _ => error.to_string(),
    }
}

/// Letters that no reply has by chance.
fn mark() -> Vec<u8> {
    let mut mark = Vec::with_capacity(MARK_BYTES);
    while mark.len() < MARK_BYTES {
        let chance = RandomState::new().build_hasher().finish();
        mark.extend(format!("{chance:016x}").into_bytes());
    }
    mark.truncate(MARK_BYTES);
    mark
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_counted_however_they_are_cut() {
        let received = b"+OK\r\n$3\r\nabc\r\n-ERR x\r\n*2\r\n$4\r\nmark\r\n:1\r\n>1\r\n+p\r\n_\r\n$4\r\nmark\r\n";
        for size in 1..received.len() {
            let mut replies = Replies::new(b"mark");
            let mut errors = Vec::new();
            for chunk in received.chunks(size) {
                assert!(!replies.is_over);
                replies.take(chunk, |text| errors.push(text.to_vec())).unwrap();
            }
            assert!(replies.is_over && errors == [b"ERR x".to_vec()], "{size}");
            assert_eq!(replies.counted, Counted { replies: 5, errors: 1 }, "{size}");
        }
    }

    #[test]
    fn requests_are_told_apart_however_they_are_cut() {
        let sent = b"SET a 1\r\n\r\n*2\r\n$3\r\nGET\r\n$1\r\na\r\n*0\r\n*-1\r\nPING\n*1\r\n$4\r\nPI\n*\r\n";
        for size in 1..sent.len() {
            let mut requests = Requests::default();
            sent.chunks(size).for_each(|chunk| requests.take(chunk));
            assert_eq!((requests.complete, requests.is_truncated()), (4, false), "{size}");
        }
        let ends: Vec<usize> = (0..sent.len())
            .filter(|end| {
                let mut requests = Requests::default();
                requests.take(&sent[..*end]);
                requests.is_truncated()
            })
            .collect();
        let text = |end: &usize| sent[..*end].escape_ascii().to_string();
        assert!(ends.iter().all(|end| text(end).contains('*')) && ends.len() > 30, "{ends:?}");
        let mut strange = Requests::default();
        strange.take(b"*1\r\n:x\r\n*");
        assert!(!strange.is_truncated(), "the server says what is wrong with it");
    }

    #[test]
    fn no_reply_is_kept() {
        let mut replies = Replies::new(b"mark");
        for _ in 0..10_000 {
            replies.take(&b"+OK\r\n".repeat(100), |_| ()).unwrap();
        }
        assert_eq!(replies.counted.replies, 1_000_000);
        assert!(replies.input.capacity() < 4 * READ_BYTES, "{}", replies.input.capacity());
    }

    #[test]
    fn what_is_no_reply_is_an_error() {
        assert!(Replies::new(b"mark").take(b"HTTP/1.1 400\r\n", |_| ()).is_err());
    }

    #[test]
    fn a_server_that_ends_is_told_of_in_the_same_words() {
        for kind in [io::ErrorKind::ConnectionReset, io::ErrorKind::BrokenPipe] {
            assert_eq!(words_of(&kind.into()), "Server closed the connection");
        }
        assert_eq!(words_of(&io::ErrorKind::TimedOut.into()), io::Error::from(io::ErrorKind::TimedOut).to_string());
    }

    #[test]
    fn marks_differ() {
        assert_ne!(mark(), mark());
        assert_eq!(mark().len(), MARK_BYTES);
    }
}
