//! Executing what was asked for, and showing what came: for the prompt, for lines of standard input, and for one command.

use std::io::{IsTerminal, Write, stderr};
use std::sync::Arc;

use respool_command::{
    Command, ConnectionCommand, PubsubCommand, ReplyForm, Row, ServerCommand, TransactionsCommand, resolve,
};
use respool_connection::Credentials;
use respool_wire::{ArgsBuf, Protocol};
use zeroize::Zeroizing;

use crate::options::Options;
use crate::render::{Format, covered, is_error, render};
use crate::session::{Failure, STATE_LOST, Session};

/// What follows a command besides its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stream {
    /// Nothing.
    No,
    /// One frame for each of so many names.
    Frames(usize),
    /// So many frames, then whatever comes.
    Messages(usize),
    /// Whatever comes, behind the reply.
    Monitored,
}

/// A session, and where its replies are shown.
pub(crate) struct Console<'a> {
    pub(crate) session: Session,
    pub(crate) options: &'a Options,
    pub(crate) out: &'a mut dyn Write,
    /// Requests are being queued.
    is_queueing: bool,
    /// Commands are typed one after the other.
    pub(crate) is_shell: bool,
}

impl<'a> Console<'a> {
    pub(crate) fn new(session: Session, options: &'a Options, out: &'a mut dyn Write) -> Self {
        Self { session, options, out, is_queueing: false, is_shell: false }
    }

    /// Whether requests are being queued.
    pub(crate) fn is_queueing(&self) -> bool {
        self.is_queueing
    }

    /// There is no transaction and no watched key, or none any more that the user counts on.
    pub(crate) fn forget(&mut self) {
        self.is_queueing = false;
        self.session.set_bound(false);
    }

    /// Connects if there is no connection, and shows what the handshake met.
    pub(crate) fn connect(&mut self) -> Result<(), Failure> {
        let connected = self.session.connect();
        self.session.take_warnings().iter().for_each(|warning| complain(&format!("{warning}\n")));
        connected
    }

    /// Executes one command and shows its reply. Whether it was an error.
    pub(crate) fn execute(&mut self, words: &[Vec<u8>]) -> Result<bool, Failure> {
        let args: ArgsBuf = words.iter().collect();
        let row = resolve(args.as_args()).ok();
        if row.is_some_and(|row| silences(row, &args)) {
            self.show(NO_SILENCE, false)?;
            return Ok(true);
        }
        if self.session.is_state_lost() {
            self.refuse(row)?;
        }
        if let Err(failure) = self.connect() {
            if !self.session.is_state_lost() {
                // A redirection may have led to a server that is gone.
                self.session.go_home();
            }
            return Err(failure);
        }
        let ends = row.is_some_and(|row| self.ends_state(row, false));
        let sent = self.converse(words, row, &args);
        if matches!(sent, Err(Failure::Lost(_) | Failure::Interrupted)) {
            self.session.hang_up();
            let is_farewell = row.is_some_and(|row| {
                let ends = [Command::Server(ServerCommand::Shutdown), Command::Connection(ConnectionCommand::Quit)];
                ends.contains(&row.command)
            });
            if ends || is_farewell {
                self.forget();
            }
            if is_farewell {
                return Ok(false);
            }
        }
        sent
    }

    /// Refuses a command whose transaction or watched keys were lost with their connection: what follows was typed for the old one, and
    /// may have been typed long before. What would have ended the transaction ends this.
    fn refuse(&mut self, row: Option<&'static Row>) -> Result<(), Failure> {
        use TransactionsCommand as T;
        let is_reset = row.is_some_and(|row| row.command == Command::Connection(ConnectionCommand::Reset));
        let is_end = row.is_some_and(|row| match row.command {
            Command::Transactions(T::Exec | T::Discard) => true,
            Command::Transactions(T::Unwatch) => !self.is_queueing,
            _ => is_reset,
        });
        if is_end {
            self.forget();
        }
        // RESET is as good at another connection.
        if is_reset { Ok(()) } else { Err(Failure::Lost(STATE_LOST.to_owned())) }
    }

    /// Whether a command leaves neither a transaction nor watched keys.
    fn ends_state(&self, row: &Row, is_error: bool) -> bool {
        use TransactionsCommand as T;
        match row.command {
            // One that is refused ends the transaction, too.
            Command::Transactions(T::Exec) => self.is_queueing,
            Command::Transactions(T::Discard) => self.is_queueing && !is_error,
            // Within a transaction it is queued like any other.
            Command::Transactions(T::Unwatch) => !self.is_queueing && !is_error,
            _ => false,
        }
    }

    fn converse(&mut self, words: &[Vec<u8>], row: Option<&'static Row>, args: &ArgsBuf) -> Result<bool, Failure> {
        let is_text = row.is_some_and(shows_text);
        let stream = row.filter(|_| !self.is_queueing).map_or(Stream::No, |row| stream_of(row, words.len()));
        if let Stream::Frames(count) | Stream::Messages(count) = stream {
            return self.subscribe(words, count, matches!(stream, Stream::Messages(_)));
        }
        let is_told = self.options.is_output_terminal && self.options.format == Format::Terminal;
        let out = &mut *self.out;
        let reply = self.session.ask_redirected(words, |slot, place| {
            if is_told {
                let words = format!("-> Redirected to slot [{slot}] located at {place}\n");
                let _ = out.write_all(&covered(words.as_bytes()));
            }
        })?;
        self.session.take_warnings().iter().for_each(|warning| complain(&format!("{warning}\n")));
        self.show_pushes()?;
        let is_error = is_error(&reply);
        if is_error && self.options.has_exit_code && !self.is_shell {
            // It is why the program ends, and no result.
            let mut text = Vec::new();
            render(&reply, &Format::Raw { between_elements: Vec::new(), behind_replies: Vec::new() }, false, &mut text);
            complain(&String::from_utf8_lossy(&text));
            return Ok(true);
        }
        self.show(&reply, is_text)?;
        if let Some(row) = row {
            self.note(row, args, is_error);
        }
        if stream == Stream::Monitored && !is_error {
            self.show_all()?;
        }
        Ok(is_error)
    }

    /// Sends what subscribes or unsubscribes, and shows what follows.
    fn subscribe(&mut self, words: &[Vec<u8>], count: usize, is_endless: bool) -> Result<bool, Failure> {
        if is_endless && self.options.format == Format::Terminal {
            writeln!(self.out, "Reading messages... (press Ctrl-C to quit)")?;
            self.out.flush()?;
        }
        self.session.send(words)?;
        for _ in 0..count {
            let frame = self.session.frame(None)?;
            self.show(&frame, false)?;
            if is_error(&frame) {
                return Ok(true);
            }
        }
        if is_endless {
            self.show_all()?;
        }
        Ok(false)
    }

    /// Shows whatever comes, until the connection ends.
    fn show_all(&mut self) -> Result<(), Failure> {
        loop {
            let frame = self.session.frame(None)?;
            self.show(&frame, false)?;
        }
    }

    /// Shows pushes that came beside replies.
    pub(crate) fn show_pushes(&mut self) -> Result<(), Failure> {
        for push in self.session.take_pushes() {
            if self.options.shows_pushes {
                self.show(&push, false)?;
            }
        }
        Ok(())
    }

    /// Shows a complete reply.
    pub(crate) fn show(&mut self, reply: &[u8], is_text: bool) -> Result<(), Failure> {
        self.out.write_all(&rendered(reply, self.options, is_text))?;
        self.out.flush()?;
        Ok(())
    }

    /// Remembers what a command has changed about the connection, for the prompt and for the next connection.
    fn note(&mut self, row: &Row, args: &ArgsBuf, is_error: bool) {
        use {ConnectionCommand as C, TransactionsCommand as T};
        let args = args.as_args();
        let word = |place: usize| String::from_utf8_lossy(args.get(place).unwrap_or_default()).into_owned();
        if self.ends_state(row, is_error) {
            self.forget();
        } else if !is_error && matches!(row.command, Command::Transactions(T::Multi | T::Watch)) {
            self.session.set_bound(true);
        }
        if is_error {
            return;
        }
        let is_queued = self.is_queueing;
        let target = self.session.target_mut();
        match row.command {
            Command::Transactions(T::Multi) => self.is_queueing = true,
            Command::Connection(C::Select) if !is_queued => {
                target.database = word(1).parse().unwrap_or(target.database);
            }
            Command::Connection(C::Auth) if !is_queued => {
                let username = (args.len() > 2).then(|| word(1));
                let password = Zeroizing::new(word(args.len() - 1));
                target.credentials = Some(Arc::new(Credentials { username, password }));
            }
            Command::Connection(C::Hello) if args.len() > 1 => {
                target.protocol = if word(1) == "3" { Some(Protocol::Resp3) } else { Some(Protocol::Resp2) };
            }
            Command::Connection(C::Reset) => {
                (target.database, target.protocol) = (0, None);
                self.forget();
            }
            _ => {}
        }
    }
}

/// A complete reply as it is shown.
pub(crate) fn rendered(reply: &[u8], options: &Options, is_text: bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(reply.len());
    render(reply, &options.format, is_text, &mut out);
    // The raw format is asked for where the bytes themselves are wanted.
    if options.is_output_terminal && (is_text || options.format == Format::Terminal) {
        out = covered(&out).into_owned();
    }
    out
}

/// Shown instead of sending what keeps replies away.
const NO_SILENCE: &[u8] =
    b"-ERR the shell does not send CLIENT REPLY OFF or SKIP, since it could not tell which command a reply is for\r\n";

/// Whether a request asks for no replies. It has none itself, unless it is refused.
fn silences(row: &Row, args: &ArgsBuf) -> bool {
    let mode = args.as_args().get(2).unwrap_or_default();
    row.command == Command::Connection(ConnectionCommand::ClientReply)
        && [&b"off"[..], b"skip"].iter().any(|silent| mode.eq_ignore_ascii_case(silent))
}

/// Says what may hold words of the server.
pub(crate) fn complain(words: &str) {
    match stderr().is_terminal() {
        true => eprint!("{}", String::from_utf8_lossy(&covered(words.as_bytes()))),
        false => eprint!("{words}"),
    }
}

/// Whether the table says that a row's reply is text for people.
fn shows_text(row: &Row) -> bool {
    let form = row.usage().returns().map(|returns| returns.usual().form);
    matches!(form, Some(ReplyForm::Text))
}

fn stream_of(row: &Row, words: usize) -> Stream {
    use PubsubCommand as P;
    let form = row.usage().returns().map(|returns| returns.usual().form);
    let names = words.saturating_sub(1).max(1);
    match row.command {
        Command::Pubsub(P::Subscribe | P::Psubscribe | P::Ssubscribe) => Stream::Messages(names),
        Command::Server(ServerCommand::Monitor) => Stream::Monitored,
        _ if matches!(form, Some(ReplyForm::Push)) => Stream::Frames(names),
        _ => Stream::No,
    }
}

#[cfg(test)]
mod tests;
