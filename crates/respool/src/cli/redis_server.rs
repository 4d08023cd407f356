//! `respool server`: the program in the place of redis-server, with its arguments, file, log, pid file and signals.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Read, Write};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use respool_net::MovableClock;

use super::sources::understand;
use crate::admin::{self, Metrics};
use crate::control::{Control, Phase};
use crate::failure::Failure;
use crate::frontend::redis_server::{CommandLine, Loaded, System};
use crate::logging::{LogFile, Logging};
use crate::parameters::Parameters;
use crate::serve::handover::Inherited;
use crate::serve::hooks::HookMaker;
use crate::serve::{self, Job, Opened};
use crate::settings::Address;
use crate::settings::config::Resolved;
use crate::{output, signals, systemd};

/// Tells the program that it was started by itself, to serve without a terminal.
const DETACHED_ENV: &str = "RESPOOL_SERVER_DETACHED";
/// The pid file of a server without a terminal, where none is named.
const PID_FILE: &str = "/var/run/redis.pid";
/// Bytes of standard input that are read as configuration.
const INPUT_BYTES_MAX: u64 = 16 << 20;

const HELP: &str = "\
Usage: respool server [/path/to/redis.conf] [options] [-]
       respool server - (read the configuration from standard input)
       respool server -v or --version
       respool server -h or --help

Serves as redis-server does: an in-memory server with its configuration file, flags, CONFIG, log lines, pid file and signals.
A link to respool with the name redis-server or valkey-server does the same. Nothing is written to disk: what the server holds is lost
when it ends. docs/redis-conf.md lists all parameters and what each does here.

Examples:
       respool server --port 7777 --save \"\"
       respool server /etc/redis/redis.conf --loglevel verbose
       echo 'maxmemory 128mb' | respool server -
";

/// The arguments behind the program's name, if it is to be redis-server: by its own name or by the subcommand.
pub(super) fn recognise(args: &[OsString]) -> Option<&[OsString]> {
    let (name, rest) = args.split_first()?;
    let own = Path::new(name).file_name();
    if ["redis-server", "valkey-server"].iter().any(|known| own == Some(OsStr::new(known))) {
        return Some(rest);
    }
    (rest.first()? == "server").then(|| &rest[1..])
}

/// Runs until it is told to end.
pub(super) fn run(all: &[OsString], args: &[OsString], env: &[(String, String)]) -> Result<(), Failure> {
    let (file, reads_input, directives) = match CommandLine::read(args) {
        CommandLine::Help => return Ok(output::print(HELP)?),
        CommandLine::Version => return Ok(output::print(&version())?),
        CommandLine::Refused(why) => return Err(Failure::running(why)),
        CommandLine::Serve { file, reads_input, directives } => (file, reads_input, directives),
    };
    let input = reads_input.then(read_input).transpose()?;
    // A file is named once, from where the program was started; the directory may change afterwards.
    let file = file.map(std::path::absolute).transpose()?;
    let mut system = RealSystem;
    let refused = |error: crate::frontend::redis_server::LoadError| Failure::running(error.to_string());
    let started_in = std::env::current_dir()?;
    let mut loaded = Loaded::load(file.as_deref(), input.as_deref(), &directives, &mut system).map_err(refused)?;
    let mut said = loaded.settings(&mut system).map_err(refused)?;
    let mut parameters = loaded.parameters;
    let notes = said.hear_env(env.iter().cloned());
    let mut resolved = understand(&said, &mut Vec::new())?;
    resolved.warnings.extend(notes);
    if !resolved.process.instances.iter().all(crate::settings::Instance::is_server) {
        return Err(
            Failure::settings("a server has no nodes").hint("respool serve --nodes ... is a proxy in front of nodes")
        );
    }
    parameters.take_into(&mut resolved.process, 0);
    refuse_data(&parameters)?;
    let log = LogFile::named(parameters.value("logfile"));
    log.check().map_err(|error| Failure::running(format!("Can't open the log file: {error}")))?;
    let is_detached = std::env::var_os(DETACHED_ENV).is_some();
    let is_daemon = parameters.value("daemonize") == "yes" && !is_supervised(&parameters);
    if is_daemon && !is_detached {
        return detach(all, &started_in, input.as_deref());
    }
    if is_daemon {
        // Without a terminal there is no signal from one. It fails only for a process that leads its group already.
        let _ = rustix::process::setsid();
    }
    serve(resolved, parameters, log, file.is_some() || !args.is_empty(), is_daemon)
}

fn version() -> String {
    let bits = usize::BITS;
    format!(
        "Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc bits={bits} build=respool-{}\n",
        env!("CARGO_PKG_VERSION")
    )
}

fn read_input() -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    io::stdin().lock().take(INPUT_BYTES_MAX).read_to_end(&mut text)?;
    Ok(text)
}

fn is_supervised(parameters: &Parameters) -> bool {
    match parameters.value("supervised") {
        "systemd" => true,
        "auto" => std::env::var_os("NOTIFY_SOCKET").is_some(),
        _ => false,
    }
}

/// A server that started empty beside a snapshot would look as if all were lost, to its users and to the next backup.
fn refuse_data(parameters: &Parameters) -> Result<(), Failure> {
    let file = parameters.value("dbfilename");
    if file.is_empty() || !Path::new(file).exists() {
        return Ok(());
    }
    let directory = std::env::current_dir().unwrap_or_default();
    let why = format!(
        "{} is there, and snapshots cannot be loaded here: the server would start without its data",
        directory.join(file).display()
    );
    Err(Failure::running(why).hint("name another directory (--dir) or another file (--dbfilename) to start without it"))
}

/// Starts the program again, without a terminal, and leaves it alone. A fork in the middle of a process is nothing that safe
/// Rust can do.
fn detach(all: &[OsString], started_in: &Path, input: Option<&[u8]>) -> Result<(), Failure> {
    let program = std::env::current_exe()?;
    let mut command = Command::new(program);
    let (name, args) = all.split_first().ok_or_else(|| Failure::running("the program has no name"))?;
    command.arg0(name).args(args).current_dir(started_in).env(DETACHED_ENV, "1");
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() });
    let mut child = command.spawn()?;
    if let (Some(mut pipe), Some(input)) = (child.stdin.take(), input) {
        pipe.write_all(input)?;
    }
    Ok(())
}

fn serve(
    mut resolved: Resolved,
    parameters: Parameters,
    log: LogFile,
    is_configured: bool,
    is_daemon: bool,
) -> Result<(), Failure> {
    let warnings = std::mem::take(&mut resolved.warnings);
    let process = resolved.process.clone();
    let logging = Logging::start_as_redis_server(process.log.level, log.clone());
    let logging = logging.map_err(|error| Failure::running(error.to_string()))?;
    let pid = std::process::id();
    tracing::warn!("oO0OoO0OoO0Oo Respool is starting oO0OoO0OoO0Oo");
    tracing::warn!("Respool version={}, for clients Redis 7.0.15, pid={pid}, just started", env!("CARGO_PKG_VERSION"));
    match is_configured {
        true => tracing::warn!("Configuration loaded"),
        false => tracing::warn!("Warning: no config file specified, using the default config."),
    }
    warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
    warn_of_what_is_without_effect(&parameters);
    let port = parameters.value("port").to_owned();
    let pid_file = pid_file(&parameters, is_daemon);
    if parameters.value("always-show-logo") == "yes" {
        log.write(logo(&port, pid).as_bytes());
    }
    let socket = parameters.value("unixsocket").to_owned();
    let control = Control::new(resolved);
    let job = Job {
        workers: 1,
        hooks: HookMaker::of_process(&control),
        control,
        metrics: Metrics::default(),
        // DEBUG can move it, where it is allowed.
        clock: (parameters.value("enable-debug-command") != "no").then(MovableClock::default),
        parameters: Some(parameters),
    };
    job.metrics.observe(admin::process::snapshot);
    let control = Arc::downgrade(&job.control);
    job.control.on_change(Box::new(move || {
        if let Some(control) = control.upgrade() {
            logging.set_level(control.settings().log.level);
        }
    }));
    let mut is_open = false;
    let served = serve::run(&job, Inherited::ask(None)?, |mut opened| {
        is_open = true;
        signals::watch_as_redis_server(Arc::clone(&job.control))?;
        if let Some(address) = &process.admin.listen {
            super::start_admin(address, &job, &mut opened)?;
        }
        write_pid(pid_file.as_deref(), pid);
        tracing::info!("Running mode=standalone, port={port}.");
        tracing::warn!("Server initialized");
        job.control.enter(Phase::Serving);
        opened.inherited.settle()?;
        say_ready(&opened, &socket);
        systemd::say_ready();
        Ok(())
    });
    job.control.enter(Phase::Stopping);
    if !is_open && served.is_err() {
        tracing::warn!("Failed listening on port {port} (TCP), aborting.");
    }
    if is_open && let Some(file) = &pid_file {
        tracing::info!("Removing the pid file.");
        // It may be gone already.
        let _ = fs::remove_file(file);
    }
    if served.is_ok() {
        tracing::warn!("Respool is now ready to exit, bye bye...");
    }
    served
}

fn warn_of_what_is_without_effect(parameters: &Parameters) {
    if !parameters.value("save").is_empty() {
        tracing::warn!(
            "Nothing is written to disk: what this server holds is lost when it ends. `save` changes nothing."
        );
    }
    let names: Vec<&str> = parameters.without_effect().map(|(name, _)| name).filter(|name| *name != "save").collect();
    if !names.is_empty() {
        tracing::warn!("Parameters that change nothing here (docs/redis-conf.md says why): {}", names.join(", "));
    }
}

fn logo(port: &str, pid: u32) -> String {
    format!(
        "\n  Respool {} in the place of redis-server\n\n  Running in standalone mode\n  Port: {port}\n  PID: {pid}\n\n",
        env!("CARGO_PKG_VERSION")
    )
}

fn say_ready(opened: &Opened<'_>, socket: &str) {
    if opened.addresses.iter().flatten().any(|address| !matches!(address, Address::Unix { .. })) {
        tracing::info!("Ready to accept connections");
    }
    if !socket.is_empty() {
        tracing::info!("The server is now ready to accept connections at {socket}");
    }
}

fn pid_file(parameters: &Parameters, is_daemon: bool) -> Option<PathBuf> {
    match parameters.value("pidfile") {
        "" => is_daemon.then(|| PathBuf::from(PID_FILE)),
        file => Some(PathBuf::from(file)),
    }
}

fn write_pid(file: Option<&Path>, pid: u32) {
    let Some(file) = file else { return };
    if let Err(error) = fs::write(file, format!("{pid}\n")) {
        tracing::info!("the pid file {} cannot be written: {error}", file.display());
    }
}

/// The system that the process runs in.
struct RealSystem;

impl System for RealSystem {
    fn read(&mut self, file: &Path) -> io::Result<Vec<u8>> {
        let mut text = Vec::new();
        fs::File::open(file)?.take(INPUT_BYTES_MAX + 1).read_to_end(&mut text)?;
        Ok(text)
    }

    fn names(&mut self, directory: &Path) -> Vec<OsString> {
        let entries = fs::read_dir(directory).into_iter().flatten();
        entries.filter_map(|entry| Some(entry.ok()?.file_name())).collect()
    }

    fn enter(&mut self, directory: &Path) -> io::Result<()> {
        std::env::set_current_dir(directory)
    }

    fn has_address(&mut self, host: &str) -> bool {
        TcpListener::bind((host, 0)).is_ok()
    }
}
