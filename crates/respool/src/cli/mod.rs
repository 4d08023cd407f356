//! The command line: its grammar, made from the table of settings, and what each subcommand does.

#[cfg(feature = "bench")]
mod bench;
mod grammar;
mod redis_server;
#[cfg(feature = "shell")]
mod shell;
mod sources;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::{ArgMatches, Command};
use clap_complete::Shell;

use crate::admin::{self, Metrics};
use crate::control::{Control, Phase};
use crate::failure::Failure;
use crate::frontend::{Program, Translation};
use crate::logging::Logging;
use crate::serve::handover::Inherited;
use crate::serve::hooks::HookMaker;
use crate::serve::{Job, Opened};
use crate::settings::config::Resolved;
use crate::settings::raw::Statement;
use crate::settings::row::{Reload, Scope};
use crate::settings::{Address, RawSettings, Setting, page};
use crate::{banner, output, parameters, serve, signals, systemd};

pub use grammar::grammar;
use sources::{Sources, Voice, hear_any_file, understand};

/// Runs the program with the process' own arguments and environment.
#[must_use]
pub fn main() -> ExitCode {
    // A variable that is not UTF-8 is not ours: all our names and values are.
    let utf8 = |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
    match run(std::env::args_os().collect(), std::env::vars_os().filter_map(utf8).collect()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Ending::Clap(error)) => {
            let _ = error.print();
            ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
        }
        Err(Ending::Failure(failure)) => {
            output::complain(&failure.to_string());
            failure.exit_code()
        }
        #[cfg(feature = "shell")]
        Err(Ending::Told) => ExitCode::FAILURE,
    }
}

/// Why a run ended early.
enum Ending {
    /// The command line could not be parsed, or help was asked for.
    Clap(clap::Error),
    /// Something went wrong.
    Failure(Failure),
    /// Something went wrong, and the user was told so.
    #[cfg(feature = "shell")]
    Told,
}

impl<E: Into<Failure>> From<E> for Ending {
    fn from(error: E) -> Self {
        Self::Failure(error.into())
    }
}

fn run(args: Vec<OsString>, env: Vec<(String, String)>) -> Result<(), Ending> {
    if let Some(own) = redis_server::recognise(&args) {
        return Ok(redis_server::run(&args, own, &env)?);
    }
    if let Some((program, args)) = Program::recognise(&args) {
        return Ok(serve(Sources { voice: Voice::Foreign { program, args }, env }, None)?);
    }
    let matches = grammar().try_get_matches_from(args).map_err(Ending::Clap)?;
    match matches.subcommand() {
        Some(("serve", matches)) => {
            let take_over = matches.get_one::<PathBuf>("take-over");
            Ok(serve(Sources::of(matches, env), take_over.map(PathBuf::as_path))?)
        }
        Some(("check", matches)) => Ok(check(matches)?),
        Some(("settings", matches)) => Ok(settings(matches)?),
        #[cfg(feature = "bench")]
        Some(("bench", matches)) => Ok(bench::run(matches)?),
        #[cfg(feature = "bench")]
        Some(("pubsub", matches)) => Ok(bench::run_experiment(matches)?),
        #[cfg(feature = "shell")]
        Some(("cli", matches)) => shell::run(matches),
        #[cfg(feature = "shell")]
        Some(("top", matches)) => Ok(shell::watch(matches)?),
        Some(("completions", matches)) => Ok(completions(matches)?),
        Some(("man", matches)) => Ok(man(matches)?),
        _ => Ok(output::print(&format!("respool {}\n", env!("CARGO_PKG_VERSION")))?),
    }
}

fn serve(sources: Sources, take_over: Option<&Path>) -> Result<(), Failure> {
    if let Voice::Foreign { program, args } = &sources.voice
        && program.is_help_wanted(args)
    {
        return Ok(output::print(&program.help())?);
    }
    let understood = sources.load()?;
    let process = understood.process.clone();
    let logging = Logging::start(&process.log).map_err(|error| Failure::running(error.to_string()))?;
    understood.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
    let control = Control::new(understood);
    let job = Job {
        workers: process.workers.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from)),
        hooks: HookMaker::of_process(&control),
        control,
        metrics: Metrics::default(),
        parameters: None,
        clock: None,
    };
    job.metrics.observe(admin::process::snapshot);
    let inherited = Inherited::ask(take_over)?;
    let mut statsd = None;
    let served = serve::run(&job, inherited, |mut opened| {
        signals::watch(Arc::clone(&job.control), logging, Box::new(move || sources.load()))?;
        let metrics = process.admin.listen.as_ref();
        let admin = metrics.map(|address| start_admin(address, &job, &mut opened)).transpose()?;
        statsd = admin::statsd::start(&process.admin.statsd, &job.control, job.metrics.clone())?;
        let banner = banner::render(&process, job.workers, opened.addresses, admin.as_ref());
        let is_serving = job.control.enter(Phase::Serving);
        if !is_serving && opened.inherited.has_predecessor() {
            return Err(serve::told_to_end());
        }
        opened.inherited.settle()?;
        systemd::say_ready();
        // The reader that closed standard output wants no more.
        let _ = output::print(&format!("{banner}{}\n", banner::READY));
        Ok(())
    });
    job.control.enter(Phase::Stopping);
    statsd.into_iter().for_each(admin::End::wait);
    served
}

fn start_admin(address: &Address, job: &Job, opened: &mut Opened<'_>) -> Result<Address, Failure> {
    let adopted = opened.inherited.of_metrics(address);
    let instances = std::mem::take(&mut opened.instances);
    let started = admin::http::start(address, adopted, Arc::clone(&job.control), job.metrics.clone(), instances);
    let refused = |error| Failure::running(format!("metrics cannot be served on {address}: {error}"));
    let running = started.map_err(refused)?;
    if let Some(offered) = opened.offered {
        offered.metrics(address, running.socket);
    }
    Ok(running.address)
}

fn check(matches: &ArgMatches) -> Result<(), Failure> {
    let path = matches.get_one::<PathBuf>("file").ok_or_else(|| Failure::settings("which file?"))?;
    let Translation { said, notes, mut faults, .. } = hear_any_file(path);
    let mut understood = understand(&said, &mut faults)?;
    understood.warnings.extend(notes);
    serve::check(&understood.process)?;
    Ok(output::print(&summary(path, &said, &understood))?)
}

/// What a settings file means, for people.
fn summary(path: &Path, said: &RawSettings, understood: &Resolved) -> String {
    let mut lines = vec![format!("{} is fine", path.display())];
    let said_about = |statements: &[Statement], scope: Option<Scope>, number: usize| {
        let counts =
            |s: &&Statement| s.setting != Setting::Listen && scope.is_none_or(|scope| s.setting.row().scope == scope);
        let rows = statements.iter().filter(counts);
        let line = |statement: &Statement| {
            let row = statement.setting.row();
            let mark = if row.reload == Reload::Restart { "  (restart)" } else { "" };
            format!("    {} = {}{mark}", row.name, understood.values[number][statement.setting as usize].show(row))
        };
        rows.map(line).collect::<Vec<_>>()
    };
    let process = said_about(&said.top, Some(Scope::Process), 0);
    if !process.is_empty() {
        lines.push("  the whole process".to_owned());
        lines.extend(process);
    }
    for (number, instance) in understood.process.instances.iter().enumerate() {
        lines.push(format!("  pool {}: {}", instance.name, banner::describe(instance)));
        lines.extend(instance.net.listen.iter().map(|spec| format!("    listens on {spec}  (restart)")));
        let own = said.pools.get(number).map_or(&[][..], |pool| &pool.statements[..]);
        let inherited: Vec<Statement> =
            said.top.iter().filter(|s| own.iter().all(|o| o.setting != s.setting)).cloned().collect();
        lines.extend(said_about(own, None, number));
        lines.extend(said_about(&inherited, Some(Scope::Pool), number));
    }
    lines.push("  a reload (SIGHUP) takes all of this but what is marked (restart)".to_owned());
    lines.extend(understood.warnings.iter().map(|warning| format!("  note: {warning}")));
    lines.push(String::new());
    lines.join("\n")
}

fn settings(matches: &ArgMatches) -> Result<(), Failure> {
    let text = match matches.get_one::<String>("format").map(String::as_str) {
        Some("markdown") => page::markdown(),
        Some("redis-conf") => parameters::page::markdown(),
        _ => page::toml(),
    };
    Ok(output::print(&text)?)
}

fn completions(matches: &ArgMatches) -> Result<(), Failure> {
    let shell = matches.get_one::<Shell>("shell").copied().ok_or_else(|| Failure::settings("which shell?"))?;
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut grammar(), "respool", &mut script);
    Ok(output::print(&String::from_utf8_lossy(&script))?)
}

fn man(matches: &ArgMatches) -> Result<(), Failure> {
    let mut root = grammar();
    root.build();
    let page = match matches.get_one::<String>("subcommand") {
        None => root,
        Some(name) => root.find_subcommand(name).cloned().ok_or_else(|| {
            let names = root.get_subcommands().map(Command::get_name).collect::<Vec<_>>().join(", ");
            Failure::settings(format!("there is no subcommand {name}")).hint(format!("there are {names}"))
        })?,
    };
    let mut text = Vec::new();
    clap_mangen::Man::new(page).render(&mut text)?;
    Ok(output::print(&String::from_utf8_lossy(&text))?)
}
