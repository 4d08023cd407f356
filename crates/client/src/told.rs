//! What is told of a call on a connection of its own: a span, and to the observer how it has ended.

use crate::events::Done;
use crate::parts::Kind;
use crate::trace::Trace;
use crate::{Command, Config, Error, Outcome};
use std::time::{Duration, Instant};

/// The span of a call, and when it began.
#[derive(Debug, Default)]
pub(crate) struct Told {
    trace: Trace,
    /// If there is an observer.
    began: Option<Instant>,
}

impl Told {
    /// The call is polled first, or again.
    pub(crate) fn begin(&mut self, config: &Config, commands: &[Command], kind: Kind) {
        self.trace.begin(config, commands, kind);
        if config.observer.0.is_some() {
            self.began.get_or_insert_with(Instant::now);
        }
    }

    /// The call is over. `received_bytes` are those of its replies.
    pub(crate) fn end(&mut self, config: &Config, commands: &[Command], received_bytes: usize, error: Option<&Error>) {
        let is_placed = config.cluster.is_empty() && config.sentinels.is_none();
        if let Some(address) = error.and_then(Error::address).filter(|_| !is_placed && self.trace.is_heard()) {
            self.trace.place_by(address);
        }
        self.trace.end(error);
        if let Some(began) = self.began.take() {
            config.tell_done(commands, began.elapsed(), received_bytes, error);
        }
    }
}

impl Config {
    /// Tells the observer how a call has ended. No lock may be held.
    #[cold]
    pub(crate) fn tell_done(&self, commands: &[Command], took: Duration, received_bytes: usize, error: Option<&Error>) {
        let Some(observer) = &self.observer.0 else { return };
        let name = commands.first().map_or(&b""[..], Command::name);
        observer.done(&Done {
            command: &String::from_utf8_lossy(name),
            requests: commands.len(),
            took,
            received_bytes,
            sent_bytes: commands.iter().map(Command::sent_bytes).sum(),
            outcome: error.map_or(Outcome::Replied, Error::outcome),
            is_error: error.is_some(),
        });
    }
}
