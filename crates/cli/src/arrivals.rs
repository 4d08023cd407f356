//! What a server sends by itself while a line is typed: invalidations and messages of RESP3.
//!
//! ```text
//!   line editor --reads keys--> line            (this thread)
//!   socket --> watch: frames, as text --> a bounded queue --> print: above the line     (two threads)
//! ```
//!
//! The thread that watches has the session for as long as a line is typed, and gives it back at once when the line ends. The
//! one that prints may have to wait for the next line, since the editor takes a text only while it reads, and has nothing else.

use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::Duration;

use rustyline::ExternalPrinter;

use crate::console::rendered;
use crate::limits::{PUSHES_MAX, WAIT_MAX};
use crate::options::Options;
use crate::session::Session;

/// How long a queue that is full is left alone. The socket is not read meanwhile.
const FULL: Duration = Duration::from_millis(10);

/// How often it is tried before a text is given up.
const FULL_TRIES: usize = 100;

/// Shows what comes above the line that is typed.
pub(crate) struct Arrivals {
    texts: SyncSender<String>,
    /// How many texts did not fit since one did.
    unshown: AtomicUsize,
}

impl Arrivals {
    /// `printer` writes above the line.
    pub(crate) fn start(mut printer: impl ExternalPrinter + Send + 'static) -> io::Result<Self> {
        let (texts, shown): (_, Receiver<String>) = sync_channel(PUSHES_MAX);
        thread::Builder::new().name("print".to_owned()).spawn(move || {
            // Ends with the shell, or with its terminal.
            while let Ok(text) = shown.recv()
                && printer.print(text).is_ok()
            {}
        })?;
        Ok(Self { texts, unshown: AtomicUsize::new(0) })
    }

    /// Does `read`, and shows meanwhile what comes.
    pub(crate) fn during<T>(&self, session: &mut Session, options: &Options, read: impl FnOnce() -> T) -> T {
        let Ok((wake, done)) = io::pipe() else { return read() };
        thread::scope(|scope| {
            scope.spawn(|| self.watch(session, options, &wake));
            let line = read();
            drop(done);
            line
        })
    }

    /// Takes in what comes, until `wake` is closed or the connection has ended.
    fn watch(&self, session: &mut Session, options: &Options, wake: &impl AsFd) {
        while session.is_connected() {
            for push in session.poll_pushes() {
                if options.shows_pushes {
                    let bytes = rendered(&push, options, false);
                    self.queue(String::from_utf8_lossy(&bytes).into_owned());
                }
            }
            match session.wait(false, Some(wake.as_fd()), WAIT_MAX) {
                Ok(ready) if !ready.is_input => {}
                _ => return,
            }
        }
    }

    /// A text that does not fit for a second is not shown: the shell's user is not there to read it, and the line ends in time.
    /// The next one that fits says how many were not.
    fn queue(&self, mut text: String) {
        match self.unshown.load(Ordering::Relaxed) {
            0 => {}
            unshown => text.insert_str(0, &format!("({unshown} not shown: the terminal was full)\n")),
        }
        for _ in 0..FULL_TRIES {
            match self.texts.try_send(text) {
                Err(TrySendError::Full(back)) => text = back,
                _ => return self.unshown.store(0, Ordering::Relaxed),
            }
            thread::sleep(FULL);
        }
        self.unshown.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_full_terminal_does_not_show_is_counted() {
        let (texts, shown) = sync_channel(1);
        let arrivals = Arrivals { texts, unshown: AtomicUsize::new(0) };
        ["1", "2", "3"].into_iter().for_each(|text| arrivals.queue(text.to_owned()));
        assert_eq!(shown.recv().as_deref(), Ok("1"));
        arrivals.queue("4".to_owned());
        assert_eq!(shown.recv().as_deref(), Ok("(2 not shown: the terminal was full)\n4"));
        arrivals.queue("5".to_owned());
        assert_eq!(shown.recv().as_deref(), Ok("5"));
    }
}
