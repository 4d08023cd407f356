//! `respool cli` and `respool top`: the shell and the live view, with the process' own terminal, files, environment and signals.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::ArgMatches;
use respool_cli::{Options, Surroundings, ask_password};
use signal_hook::consts::SIGINT;
use zeroize::Zeroizing;

use super::Ending;
use crate::failure::Failure;
use crate::output;

/// The password, as redis-cli has it.
const PASSWORD_ENV: &str = "REDISCLI_AUTH";

/// Where the history is, if not in the user's folder. An empty value: there is none.
const HISTORY_ENV: &str = "RESPOOL_CLI_HISTORY";

/// The history in the user's folder.
const HISTORY_FILE: &str = ".respool_cli_history";

/// Does what the command line asks.
pub(super) fn run(matches: &ArgMatches) -> Result<(), Ending> {
    let read = |path: &Path| std::fs::read(path);
    let options = Options::of(matches, surroundings(), read, io::stdin(), ask_password);
    let options = options.map_err(Failure::settings)?;
    let stop = Arc::new(AtomicBool::new(false));
    if options.wants_signals() {
        signal_hook::flag::register(SIGINT, Arc::clone(&stop)).map_err(Failure::from)?;
    }
    match respool_cli::run(&options, &mut io::stdout(), stop) {
        Ok(true) => Ok(()),
        Ok(false) => Err(Ending::Told),
        Err(failure) => {
            output::complain(&format!("{failure}\n"));
            Err(Ending::Told)
        }
    }
}

/// Shows the live view.
pub(super) fn watch(matches: &ArgMatches) -> Result<(), Failure> {
    let read = |path: &Path| std::fs::read(path);
    respool_cli::top::run(matches, surroundings(), read, ask_password).map_err(Failure::running)
}

fn surroundings() -> Surroundings {
    Surroundings {
        // As redis-cli: programs that want what a terminal is shown say so.
        is_output_terminal: io::stdout().is_terminal() || std::env::var_os("FAKETTY").is_some(),
        is_input_terminal: io::stdin().is_terminal(),
        password: std::env::var(PASSWORD_ENV).ok().map(Zeroizing::new),
        history: history(),
    }
}

fn history() -> Option<PathBuf> {
    match std::env::var_os(HISTORY_ENV) {
        Some(path) if path.is_empty() => None,
        Some(path) => Some(path.into()),
        None => Some(Path::new(&std::env::var_os("HOME")?).join(HISTORY_FILE)),
    }
}
