//! `respool top`: a live view of a running Respool, from the tables that its console and its JSON API show.
//!
//! Either it asks what any client may ask, over the port that is there anyway, as the user that it is given: PROXY SHOW, PROXY
//! SLOWLOG GET and INFO. So it needs no other port and sees no more than that user may. Or, with `--url`, it asks the JSON API
//! that the dashboard is fed by (`api`): no client's port and user is needed, and one answer has all workers' part. Owns the
//! loop, the keys and the terminal; what is on the screen is a function of the figures (`view`).

mod api;
mod figures;
mod view;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread;
use std::time::{Duration, Instant};

use clap::{Arg, ArgMatches, Command, value_parser};
use ratatui::crossterm::event::{Event, KeyCode, KeyEventKind, KeyModifiers, poll, read};
use respool_wire::{Part, ReplyKind, part};
use zeroize::Zeroizing;

use crate::limits::{LOOK_LIMIT, WAIT_MAX};
use crate::options::{Options, Surroundings};
use crate::session::{Failure, Session};
use api::Api;
use figures::{Figures, Table};
use view::{Look, Panel, draw};

/// Rows of each table that the JSON API is asked for: more than a screen shows.
const ROWS: usize = 200;

/// The tables of one look: how the console is asked for each, and what the JSON API calls it.
const TABLES: [(&[&str], Panel, &str); 6] = [
    (&["PROXY", "SHOW", "NODES"], Panel::Nodes, "nodes"),
    (&["PROXY", "SHOW", "POOLS"], Panel::Pools, "pools"),
    (&["PROXY", "SHOW", "LATENCY"], Panel::Latency, "latency"),
    (&["PROXY", "SHOW", "PINS"], Panel::Leases, "pins"),
    (&["PROXY", "SHOW", "HOTKEYS"], Panel::HotKeys, "hotkeys"),
    (&["PROXY", "SLOWLOG", "GET", "20"], Panel::Slow, "slowlog"),
];

/// The grammar of `respool top`: the servers' flags of `respool cli`.
#[must_use]
pub fn grammar() -> Command {
    Command::new("top")
        .about("Watch a running Respool: requests, latencies, nodes, pools, leases, hot keys, slow requests")
        .long_about(
            "Shows a running Respool on the terminal, again and again, from the tables of its console (PROXY SHOW). It takes the \
             flags of `respool cli` that say where the server is and who you are. With --url it asks the JSON API at the \
             address of metrics instead, which the dashboard setting has to allow. q ends it.",
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
        .arg(
            Arg::new("url")
                .long("url")
                .value_name("URL")
                .conflicts_with_all(["host", "port", "socket", "uri", "user", "password", "askpass", "tls"])
                .help("Ask the JSON API there, such as http://127.0.0.1:9100, instead of the console"),
        )
        .arg(
            Arg::new("token-file")
                .long("token-file")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .value_hint(clap::ValueHint::FilePath)
                .requires("url")
                .help("File with the token of dashboard_token_file, for another machine's API"),
        )
}

/// Shows the server until the user wants no more.
///
/// # Errors
/// What a command line means that makes no sense, and what keeps the first look from being taken.
pub fn run(
    matches: &ArgMatches,
    surroundings: Surroundings,
    read: impl Fn(&Path) -> io::Result<Vec<u8>>,
    ask: impl FnOnce() -> io::Result<Zeroizing<String>>,
) -> Result<(), String> {
    if !surroundings.is_output_terminal {
        return Err("respool top needs a terminal; PROXY SHOW says the same to programs".to_owned());
    }
    let seconds = matches.get_one::<f64>("every").copied().unwrap_or(1.0);
    let interval =
        Duration::try_from_secs_f64(seconds).map_err(|_| format!("-i: {seconds} is no number of seconds"))?;
    let interval = interval.max(Duration::from_millis(100));
    let mut source = match matches.get_one::<String>("url") {
        Some(url) => Source::Api(Api::at(url, token(matches, &read)?)?),
        None => {
            let target = Options::target(matches, true, surroundings.password, &read, ask)?;
            Source::Console(Box::new(Session::new(target, Arc::new(AtomicBool::new(false)))))
        }
    };
    let first = source.look().map_err(|failure| failure.to_string())?;
    let place = source.place();
    let looker = Looker::start(source).map_err(|error| format!("no thread: {error}"))?;
    let mut terminal = ratatui::try_init().map_err(|error| format!("the terminal cannot be used: {error}"))?;
    let done = watch(&mut terminal, &looker, place, first, interval);
    ratatui::restore();
    done.map_err(|error| format!("the terminal cannot be used: {error}"))
}

/// The first line of the file that is named, if one is.
fn token(
    matches: &ArgMatches,
    read: impl Fn(&Path) -> io::Result<Vec<u8>>,
) -> Result<Option<Zeroizing<String>>, String> {
    let Some(path) = matches.get_one::<PathBuf>("token-file") else { return Ok(None) };
    let text = read(path).map_err(|error| format!("--token-file {}: {error}", path.display()))?;
    let text = Zeroizing::new(text);
    let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = std::str::from_utf8(line).map_err(|_| "--token-file: the first line is no token".to_owned())?;
    Ok(Some(Zeroizing::new(line.trim().to_owned())))
}

/// Where figures come from.
enum Source {
    Console(Box<Session>),
    Api(Api),
}

impl Source {
    fn look(&mut self) -> Result<Figures, Failure> {
        match self {
            Self::Console(session) => look(session, LOOK_LIMIT),
            Self::Api(api) => api.look(LOOK_LIMIT),
        }
    }

    fn place(&self) -> String {
        match self {
            Self::Console(session) => crate::session::place_of(&session.target().endpoint),
            Self::Api(api) => api.place().to_owned(),
        }
    }

    /// What becomes true when nothing is to be waited for any more. A look of the API ends by itself.
    fn stop(&self) -> Arc<AtomicBool> {
        match self {
            Self::Console(session) => session.stop(),
            Self::Api(_) => Arc::default(),
        }
    }
}

/// One look, and when it was taken.
type Looked = (Result<Figures, Failure>, Instant);

/// Looks at the server in a thread of its own, so that keys are heard whatever the server, its name or its handshake does.
struct Looker {
    orders: Sender<()>,
    looks: Receiver<Looked>,
    stop: Arc<AtomicBool>,
}

impl Looker {
    fn start(mut source: Source) -> io::Result<Self> {
        let (orders, wanted) = channel();
        let (done, looks) = channel();
        let stop = source.stop();
        thread::Builder::new().name("look".to_owned()).spawn(move || {
            while wanted.recv().is_ok() {
                let looked = source.look();
                if done.send((looked, Instant::now())).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self { orders, looks, stop })
    }
}

impl Drop for Looker {
    /// The thread is not waited for: a name that is being resolved cannot be interrupted.
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Looks and draws, until a key ends it.
fn watch(
    terminal: &mut ratatui::DefaultTerminal,
    looker: &Looker,
    place: String,
    first: Figures,
    interval: Duration,
) -> io::Result<()> {
    let mut screen = Look::new(place);
    let mut asked = Instant::now();
    screen.take(first, asked);
    let mut is_looking = false;
    loop {
        match looker.looks.try_recv() {
            Ok((looked, at)) => {
                is_looking = false;
                match looked {
                    Ok(figures) => screen.take(figures, at),
                    Err(failure) => screen.fail(&failure.to_string()),
                }
            }
            Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) => return Err(io::Error::other("the thread that looks has ended")),
        }
        terminal.draw(|frame| draw(frame, &screen))?;
        let left = interval.saturating_sub(asked.elapsed());
        let left = if is_looking { WAIT_MAX } else { left };
        if poll(left.min(WAIT_MAX))? {
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
        if !is_looking && !screen.is_paused && asked.elapsed() >= interval {
            asked = Instant::now();
            is_looking = looker.orders.send(()).is_ok();
        }
    }
}

/// Takes one look at the server, which has so long to answer.
fn look(session: &mut Session, limit: Duration) -> Result<Figures, Failure> {
    let until = Instant::now() + limit;
    session.connect()?;
    if let Some(warning) = session.take_warnings().pop() {
        session.hang_up();
        return Err(Failure::Lost(warning));
    }
    // The replies of what was asked would be taken for those of the next look.
    look_until(session, until).inspect_err(|_| session.hang_up())
}

fn look_until(session: &mut Session, until: Instant) -> Result<Figures, Failure> {
    let mut figures = Figures::default();
    for (request, panel, _) in TABLES {
        let reply = session.ask_until(request, until)?;
        if let Some(Part::Leaf(ReplyKind::Error, text)) = part(&reply) {
            return Err(Failure::Lost(format!("{}: {}", request.join(" "), String::from_utf8_lossy(text))));
        }
        figures.tables.push((panel, Table::of(&reply)));
    }
    for request in [["INFO", "PROXY"], ["INFO", "STATS"]] {
        let reply = session.ask_until(&request, until)?;
        if let Some(Part::Leaf(ReplyKind::Bulk | ReplyKind::Verbatim, text)) = part(&reply) {
            figures.add_info(&String::from_utf8_lossy(text));
        }
    }
    Ok(figures)
}

#[cfg(test)]
mod tests {
    use respool_connection::Endpoint;
    use respool_testkit::{Act, Address, FakeBackend};

    use super::*;
    use crate::session::Target;

    #[test]
    fn a_server_that_stops_answering_is_given_up() {
        // The first connection is silent in the middle of a look, the next one answers.
        let node = FakeBackend::start(|request| match request.connection {
            0 if request.command() == "INFO" => Act::Silence,
            _ => Act::Usual,
        });
        let node = node.unwrap();
        let Address::Tcp(address) = node.address() else { panic!("{:?}", node.address()) };
        let target = Target {
            endpoint: Endpoint::Tcp { host: address.ip().to_string(), port: address.port() },
            tls: None,
            credentials: None,
            database: 0,
            protocol: None,
            is_cluster: false,
        };
        let mut session = Session::new(target, Arc::new(AtomicBool::new(false)));
        let late = look(&mut session, Duration::from_millis(200));
        assert!(matches!(late, Err(Failure::Late)), "{late:?}");
        assert!(!session.is_connected());
        assert!(look(&mut session, Duration::from_secs(60)).is_ok());
    }
}
