//! The prompt: editing with history, completion and hints, and the words that are the shell's own.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};

use respool_connection::Endpoint;
use respool_wire::split_words;
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::{FileHistory, History};
use rustyline::validate::Validator;
use rustyline::{CompletionType, Config, Context, Editor, Helper};
use zeroize::Zeroizing;

use crate::arrivals::Arrivals;
use crate::console::{Console, complain};
use crate::history::is_kept;
use crate::limits::HISTORY_LINES_MAX;
use crate::once::{ends, repeat, take_times};
use crate::session::{Failure, place_of};
use crate::syntax;

/// What is offered while a line is typed.
struct Offers {
    shows_hints: bool,
}

impl Completer for Offers {
    type Candidate = String;

    fn complete(&self, line: &str, pos: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<String>)> {
        Ok(syntax::complete(&line[..pos]))
    }
}

impl Hinter for Offers {
    type Hint = Shown;

    fn hint(&self, line: &str, pos: usize, _: &Context<'_>) -> Option<Shown> {
        (self.shows_hints && pos == line.len()).then(|| syntax::hint(line)).flatten().map(Shown)
    }
}

/// A hint to be read: no key makes it part of the line.
struct Shown(String);

impl rustyline::hint::Hint for Shown {
    fn display(&self) -> &str {
        &self.0
    }

    fn completion(&self) -> Option<&str> {
        None
    }
}

impl Highlighter for Offers {
    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        Cow::Owned(format!("\x1b[90m{hint}\x1b[0m"))
    }
}

impl Validator for Offers {}
impl Helper for Offers {}

type Lines = Editor<Offers, FileHistory>;

/// Reads lines and executes them until the user wants no more.
pub(crate) fn run(console: &mut Console<'_>) -> Result<bool, Failure> {
    console.is_shell = true;
    let mut editor = editor().map_err(|error| Failure::Output(io::Error::other(error)))?;
    let history = console.options.history.clone();
    if let Some(path) = &history {
        // There is none before the first line.
        let _ = editor.load_history(path);
    }
    if let Err(failure) = console.connect() {
        eprintln!("{failure}");
    }
    // A terminal that cannot do it shows pushes between two lines.
    let arrivals = editor.create_external_printer().ok().and_then(|printer| Arrivals::start(printer).ok());
    loop {
        for push in console.session.poll_pushes() {
            if console.options.shows_pushes {
                console.show(&push, false)?;
            }
        }
        let prompt = prompt(console);
        let mut read = || editor.readline(&prompt);
        let line = match &arrivals {
            Some(arrivals) => arrivals.during(&mut console.session, console.options, read),
            None => read(),
        };
        let line = match line {
            Ok(line) => line,
            // Ctrl-C gives up the line that is typed; Ctrl-D and a terminal that is gone end the shell.
            Err(ReadlineError::Interrupted) => continue,
            Err(ReadlineError::Eof) => break,
            Err(error) => return Err(Failure::Output(io::Error::other(error))),
        };
        let line = Zeroizing::new(line);
        if is_kept(&line) {
            keep(&mut editor, &line, history.as_deref());
        }
        if !execute(console, &mut editor, &line)? {
            break;
        }
        // What ended one command does not end the shell.
        console.session.take_stop();
    }
    Ok(true)
}

fn editor() -> rustyline::Result<Lines> {
    let config = Config::builder()
        .max_history_size(HISTORY_LINES_MAX)?
        .history_ignore_dups(true)?
        .auto_add_history(false)
        .completion_type(CompletionType::List)
        .build();
    let mut editor = Editor::with_config(config)?;
    editor.set_helper(Some(Offers { shows_hints: true }));
    Ok(editor)
}

fn keep(editor: &mut Lines, line: &str, path: Option<&std::path::Path>) {
    let is_new = editor.history_mut().add(line).unwrap_or(false);
    if let Some(path) = path.filter(|_| is_new) {
        // A history that cannot be written is no reason to stop.
        let _ = editor.append_history(path);
    }
}

fn prompt(console: &Console<'_>) -> String {
    let target = console.session.target();
    if !console.session.is_connected() {
        return if console.session.is_state_lost() { "not connected(TX lost)> " } else { "not connected> " }.to_owned();
    }
    let place = match &target.endpoint {
        Endpoint::Unix { path } => format!("redis {path}"),
        endpoint => place_of(endpoint),
    };
    let database = if target.database == 0 { String::new() } else { format!("[{}]", target.database) };
    let queueing = if console.is_queueing() { "(TX)" } else { "" };
    format!("{place}{database}{queueing}> ")
}

/// Whether the shell goes on.
fn execute(console: &mut Console<'_>, editor: &mut Lines, line: &str) -> Result<bool, Failure> {
    let Some(words) = split_words(line.as_bytes()) else {
        writeln!(console.out, "Invalid argument(s)")?;
        return Ok(true);
    };
    let mut words: Vec<Vec<u8>> = words.as_args().iter().map(<[u8]>::to_vec).collect();
    if words.is_empty() {
        return Ok(true);
    }
    if ends(&words) {
        return Ok(false);
    }
    if own(console, editor, &words)? {
        return Ok(true);
    }
    let times = take_times(&mut words);
    match repeat(console, &words, Some(times)) {
        Ok(_) => {}
        Err(Failure::Output(error)) => return Err(Failure::Output(error)),
        Err(Failure::Interrupted) => writeln!(console.out)?,
        Err(failure) => complain(&format!("{failure}\n")),
    }
    Ok(true)
}

/// Does what is the shell's own; whether the line was.
fn own(console: &mut Console<'_>, editor: &mut Lines, words: &[Vec<u8>]) -> Result<bool, Failure> {
    let text: Vec<String> = words.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    match (text[0].to_ascii_lowercase().as_str(), &text[1..]) {
        ("help" | "?", topic) => {
            let topic: Vec<&str> = topic.iter().map(String::as_str).collect();
            writeln!(console.out, "{}", syntax::help(&topic).trim_end())?;
        }
        ("clear", []) => {
            // The cursor home, and everything below it gone.
            write!(console.out, "\x1b[H\x1b[2J")?;
            console.out.flush()?;
        }
        ("connect", [host, port]) => match port.parse() {
            Ok(port) => {
                let mut endpoint = console.session.target().endpoint.clone();
                match &mut endpoint {
                    Endpoint::Tcp { host: old, port: old_port } | Endpoint::Tls { host: old, port: old_port, .. } => {
                        (*old, *old_port) = (host.clone(), port);
                    }
                    other => *other = Endpoint::Tcp { host: host.clone(), port },
                }
                console.session.go_to(endpoint);
                console.forget();
                if let Err(failure) = console.connect() {
                    eprintln!("{failure}");
                }
            }
            Err(_) => writeln!(console.out, "Invalid argument(s)")?,
        },
        (":set", [what]) if what == "hints" || what == "nohints" => {
            if let Some(offers) = editor.helper_mut() {
                offers.shows_hints = what == "hints";
            }
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// Asks for a password on the terminal, where it is not shown.
///
/// # Errors
/// There is no terminal, or it ends.
pub fn ask_password() -> io::Result<Zeroizing<String>> {
    let mut terminal = File::options().read(true).write(true).open("/dev/tty")?;
    let usual = tcgetattr(&terminal)?;
    let mut silent = usual.clone();
    silent.local_modes.remove(LocalModes::ECHO);
    silent.local_modes.insert(LocalModes::ICANON | LocalModes::ECHONL);
    terminal.write_all(b"Please input password: ")?;
    tcsetattr(&terminal, OptionalActions::Flush, &silent)?;
    let mut line = Zeroizing::new(String::new());
    let read = BufReader::new(&terminal).read_line(&mut line);
    tcsetattr(&terminal, OptionalActions::Flush, &usual)?;
    read?;
    Ok(Zeroizing::new(line.trim_end_matches(['\r', '\n']).to_owned()))
}
