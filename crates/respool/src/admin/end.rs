//! The end of a thread of this side, to wait for when everything stops.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// How long is waited: the end is not held up by a name server that does not answer, or a scrape that is not read.
const WAIT_MAX: Duration = Duration::from_secs(2);

/// Something that ends by being dropped, and somewhere to wait for that.
#[derive(Debug)]
pub struct End(Receiver<()>);

/// What is dropped at the end.
#[derive(Debug)]
pub(super) struct Token(#[expect(dead_code, reason = "it tells by going")] Sender<()>);

impl End {
    pub(super) fn new() -> (Token, End) {
        let (sender, receiver) = channel();
        (Token(sender), End(receiver))
    }

    /// Waits for it, a moment at most.
    pub fn wait(self) {
        self.has_come_within(WAIT_MAX);
    }

    fn has_come_within(self, limit: Duration) -> bool {
        // Nothing is ever sent.
        self.0.recv_timeout(limit) == Err(RecvTimeoutError::Disconnected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_that_does_not_come_is_not_waited_for_long() {
        let (token, end) = End::new();
        assert!(!end.has_come_within(Duration::from_millis(1)));
        drop(token);
        let (token, end) = End::new();
        let thread = std::thread::spawn(move || drop(token));
        assert!(end.has_come_within(Duration::from_secs(60)));
        thread.join().unwrap();
    }
}
