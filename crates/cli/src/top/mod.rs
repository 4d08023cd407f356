//! `respool top`: a live view of a running Respool, from the tables of its console.
//!
//! It asks what any client may ask, over the port that is there anyway, as the user that it is given: PROXY SHOW, PROXY SLOWLOG
//! GET and INFO. So it needs no other door and sees no more than that user may. Owns the loop, the keys and the terminal; what is on
//! the screen is a function of the figures ([`view`]).

mod figures;
mod view;

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use clap::{Arg, ArgMatches, Command, value_parser};
use ratatui::crossterm::event::{Event, KeyCode, KeyEventKind, KeyModifiers, poll, read};
use respool_wire::{Part, ReplyKind, part};

use crate::options::{Options, Surroundings};
use crate::session::{Failure, Session};
use figures::{Figures, Table};
use view::{Look, Panel, draw};

/// The tables of one look, and how each is asked for.
const TABLES: [(&[&str], Panel); 6] = [
    (&["PROXY", "SHOW", "NODES"], Panel::Nodes),
    (&["PROXY", "SHOW", "POOLS"], Panel::Pools),
    (&["PROXY", "SHOW", "LATENCY"], Panel::Latency),
    (&["PROXY", "SHOW", "PINS"], Panel::Leases),
    (&["PROXY", "SHOW", "HOTKEYS"], Panel::HotKeys),
    (&["PROXY", "SLOWLOG", "GET", "20"], Panel::Slow),
];

/// The grammar of `respool top`: the servers' flags of `respool cli`.
#[must_use]
pub fn grammar() -> Command {
    Command::new("top")
        .about("Watch a running Respool: requests, latencies, nodes, pools, leases, hot keys, slow requests")
        .long_about(
            "Shows a running Respool on the terminal, again and again, from the tables of its console (PROXY SHOW). It takes the \
             flags of `respool cli` that say where the server is and who you are. q ends it.",
        )
        .disable_help_flag(true)
        .args(crate::grammar::server_args())
        .arg(
            Arg::new("every")
                .short('i')
                .long("interval")
                .value_name("SECONDS")
                .value_parser(value_parser!(f64))
                .default_value("1")
                .help("Time between two looks"),
        )
}

/// Shows the server until the user wants no more.
///
/// # Errors
/// What a command line means that makes no sense, and what keeps the first look from being taken.
pub fn run(
    matches: &ArgMatches,
    surroundings: Surroundings,
    read: impl Fn(&std::path::Path) -> io::Result<Vec<u8>>,
    ask: impl FnOnce() -> io::Result<zeroize::Zeroizing<String>>,
) -> Result<(), String> {
    if !surroundings.is_output_terminal {
        return Err("respool top needs a terminal; PROXY SHOW says the same to programs".to_owned());
    }
    let target = Options::target(matches, true, surroundings.password, &read, ask)?;
    let seconds = matches.get_one::<f64>("every").copied().unwrap_or(1.0);
    let interval =
        Duration::try_from_secs_f64(seconds).map_err(|_| format!("-i: {seconds} is no number of seconds"))?;
    let interval = interval.max(Duration::from_millis(100));
    let mut session = Session::new(target, Arc::new(AtomicBool::new(false)));
    let first = look(&mut session).map_err(|failure| failure.to_string())?;
    let mut terminal = ratatui::try_init().map_err(|error| format!("the terminal cannot be used: {error}"))?;
    let done = watch(&mut terminal, &mut session, first, interval);
    ratatui::restore();
    done.map_err(|error| format!("the terminal cannot be used: {error}"))
}

/// Looks and draws, until a key ends it.
fn watch(
    terminal: &mut ratatui::DefaultTerminal,
    session: &mut Session,
    first: Figures,
    interval: Duration,
) -> io::Result<()> {
    let mut screen = Look::new(crate::session::place_of(&session.target().endpoint));
    screen.take(first, interval);
    let mut taken = Instant::now();
    loop {
        terminal.draw(|frame| draw(frame, &screen))?;
        let left = interval.saturating_sub(taken.elapsed());
        if poll(left)? {
            match read()? {
                Event::Key(key) if key.kind == KeyEventKind::Press => match key.code {
                    KeyCode::Char('q') | KeyCode::Esc => return Ok(()),
                    KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return Ok(()),
                    KeyCode::Char('p') => screen.is_paused = !screen.is_paused,
                    _ => {}
                },
                _ => {}
            }
            continue;
        }
        if !screen.is_paused {
            match look(session) {
                Ok(figures) => screen.take(figures, taken.elapsed()),
                Err(failure) => screen.fail(&failure.to_string()),
            }
        }
        taken = Instant::now();
    }
}

/// Takes one look at the server.
fn look(session: &mut Session) -> Result<Figures, Failure> {
    session.connect()?;
    if let Some(warning) = session.take_warnings().pop() {
        session.hang_up();
        return Err(Failure::Lost(warning));
    }
    let mut figures = Figures::default();
    for (request, panel) in TABLES {
        let reply = session.ask(request)?;
        if let Some(Part::Leaf(ReplyKind::Error, text)) = part(&reply) {
            return Err(Failure::Lost(format!("{}: {}", request.join(" "), String::from_utf8_lossy(text))));
        }
        figures.tables.push((panel, Table::of(&reply)));
    }
    for request in [["INFO", "PROXY"], ["INFO", "STATS"]] {
        let reply = session.ask(&request)?;
        if let Some(Part::Leaf(ReplyKind::Bulk | ReplyKind::Verbatim, text)) = part(&reply) {
            figures.add_info(&String::from_utf8_lossy(text));
        }
    }
    Ok(figures)
}
