//! `respool cli`: one command, a prompt, and the modes of redis-cli, for any server that speaks RESP. And `respool top` ([`top`]).
//!
//! Owns the command line ([`grammar()`], [`Options`]), how replies look ([`render`]), what is offered while a line is typed
//! ([`syntax`]), and the one connection ([`Session`]), which is a plain conversation: the client library shares a connection among
//! callers and so refuses what changes it (SELECT, MULTI, SUBSCRIBE, MONITOR), which is what a shell is for. What commands there are
//! is asked of the command table alone.
#![forbid(unsafe_code)]

mod arrivals;
mod console;
mod grammar;
mod history;
pub mod limits;
mod link;
mod modes;
mod once;
mod options;
pub mod render;
mod session;
mod shell;
pub mod syntax;
pub mod top;

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use console::Console;
pub use grammar::grammar;
pub use history::is_kept;
use options::Task;
pub use options::{Options, Surroundings};
pub use session::{Failure, Session, Target};
pub use shell::ask_password;

/// Does what the options ask. `stop` becomes true when the user wants it to end. Whether it went well; what went wrong was shown.
///
/// # Errors
/// What keeps it from going on, other than a reader of its output that wants no more.
pub fn run(options: &Options, out: &mut dyn Write, stop: Arc<AtomicBool>) -> Result<bool, Failure> {
    options.warnings.iter().for_each(|warning| eprintln!("{warning}"));
    let session = Session::new(options.target.clone(), stop);
    let mut console = Console::new(session, options, out);
    let done = match &options.task {
        Task::Shell if options.is_input_terminal => shell::run(&mut console),
        Task::Shell => once::lines(&mut console, &mut io::stdin().lock()),
        Task::Once(words) => once::one(&mut console, words),
        mode => modes::run(&mut console, mode),
    };
    match done {
        Err(Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(true),
        Err(Failure::Interrupted) => Ok(true),
        done => done,
    }
}
