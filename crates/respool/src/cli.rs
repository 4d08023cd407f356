//! The command line: its grammar, made from the table of settings, and what each subcommand does.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use clap_complete::Shell;

use crate::admin::{self, Metrics};
use crate::control::{Control, Phase};
use crate::failure::Failure;
use crate::logging::Logging;
use crate::serve::Job;
use crate::settings::meaning::Understood;
use crate::settings::row::{Kind, Row, Scope};
use crate::settings::said::Statement;
use crate::settings::{Address, CONFIG_ENV, Fault, Faults, Origin, Said, Setting, file, page, resolve};
use crate::{banner, output, serve, signals};

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
    }
}

/// Why a run ended early.
enum Ending {
    /// The command line could not be parsed, or help was asked for.
    Clap(clap::Error),
    /// Something went wrong.
    Failure(Failure),
}

impl<E: Into<Failure>> From<E> for Ending {
    fn from(error: E) -> Self {
        Self::Failure(error.into())
    }
}

fn run(args: Vec<OsString>, env: Vec<(String, String)>) -> Result<(), Ending> {
    let matches = grammar().try_get_matches_from(args).map_err(Ending::Clap)?;
    match matches.subcommand() {
        Some(("serve", matches)) => Ok(serve(Sources::of(matches, env))?),
        Some(("check", matches)) => Ok(check(matches)?),
        Some(("settings", matches)) => Ok(settings(matches)?),
        Some(("completions", matches)) => Ok(completions(matches)?),
        Some(("man", matches)) => Ok(man(matches)?),
        _ => Ok(output::print(&format!("respool {}\n", env!("CARGO_PKG_VERSION")))?),
    }
}

/// The whole grammar.
#[must_use]
pub fn grammar() -> Command {
    Command::new("respool")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Proxy, pooler and embedded server for everybody who talks to Redis or Valkey")
        .long_about(
            "Respool accepts any number of clients that speak the Redis protocol and carries their requests over few \
             pipelined connections to the nodes behind it: Redis or Valkey servers, or engines in its own process. Without \
             a node it is an in-memory server itself.",
        )
        .after_help("`respool serve --help` shows all settings; `respool check FILE` says what a settings file means.")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(serve_grammar())
        .subcommand(check_grammar())
        .subcommand(settings_grammar())
        .subcommand(Command::new("version").about("Print the version"))
        .subcommand(completions_grammar())
        .subcommand(man_grammar())
}

fn serve_grammar() -> Command {
    let config = Arg::new("config")
        .long("config")
        .value_name("FILE")
        .value_parser(value_parser!(PathBuf))
        .help("Settings file in TOML")
        .long_help(format!("Settings file in TOML; flags and environment overrule it. [env: {CONFIG_ENV}]"));
    Command::new("serve")
        .about("Serve clients: as a proxy in front of nodes, or without nodes as an embedded server")
        .long_about(
            "Serves clients. With nodes (--node, --nodes, or in a settings file) it is a proxy in front of them; without \
             any it is an in-memory server. Every flag below is also a key of the settings file (with underscores) and an \
             environment variable; a flag overrules the environment, the environment the file.",
        )
        .after_long_help(SERVE_EXAMPLES)
        .arg(config)
        .args(Setting::ALL.iter().map(|setting| flag(setting.row())))
}

const SERVE_EXAMPLES: &str = "\
Examples:
  respool serve
      an in-memory server on port 6379
  respool serve --listen :6380 --nodes 10.0.0.1:6379,10.0.0.2:6379
      a proxy in front of two servers
  respool serve --node embedded: --node embedded: --node embedded: --node embedded:
      a proxy in front of four engines of its own
  respool serve --config /etc/respool.toml --log debug
      what the file says, but talkative

Signals: SIGTERM and SIGINT drain (a second one ends at once), SIGHUP reads the settings again.";

fn flag(row: &'static Row) -> Arg {
    let default = if row.default.is_empty() { "unset" } else { row.default };
    let help = row.doc.trim_end_matches('.');
    let more = if row.more.is_empty() { String::new() } else { format!("\n\n{}", row.more.replace('`', "")) };
    let words = match row.kind {
        Kind::Word(_) => String::new(),
        _ => format!(" Allowed: {}.", row.bounds()),
    };
    let facts = format!("[default: {default}] [env: {}]", row.env());
    let arg = Arg::new(row.name)
        .long(row.flag())
        .value_name(value_name(row))
        .help_heading(row.group.title())
        .allow_hyphen_values(true)
        .action(if row.is_list() { ArgAction::Append } else { ArgAction::Set })
        .help(format!("{help} [{default}]"))
        .long_help(format!("{help}.{words}{more}\n\n{facts}"));
    let arg = match row.alias {
        Some(alias) => arg.visible_alias(alias),
        None => arg,
    };
    match row.kind {
        Kind::Word(choices) => {
            let words = choices().iter().map(|choice| PossibleValue::new(&*choice.name).help(choice.doc));
            arg.value_parser(PossibleValuesParser::new(words))
        }
        Kind::Path => arg.value_hint(clap::ValueHint::FilePath),
        _ => arg,
    }
}

fn value_name(row: &Row) -> &'static str {
    match row.kind {
        Kind::Count { .. } => "N",
        Kind::Bytes { .. } => "SIZE",
        Kind::Duration { .. } => "TIME",
        Kind::Mode => "MODE",
        Kind::Word(_) => "NAME",
        Kind::Text => "TEXT",
        Kind::Secret => "SECRET",
        Kind::Path => "FILE",
        Kind::Tcp | Kind::Listeners => "ADDR",
        Kind::Nodes => "NODE",
    }
}

fn check_grammar() -> Command {
    Command::new("check")
        .about("Say what a settings file means, or what is wrong with it")
        .long_about(
            "Reads a settings file as `serve` would, without flags and environment, and prints what it means. Ends with 0, \
             or with 2 if something is wrong.",
        )
        .arg(Arg::new("file").value_name("CONFIG").required(true).value_parser(value_parser!(PathBuf)))
}

fn settings_grammar() -> Command {
    let format = Arg::new("format").long("format").value_name("FORMAT").default_value("toml");
    let formats = [
        PossibleValue::new("toml").help("a settings file to start from"),
        PossibleValue::new("markdown").help("the page docs/settings.md"),
    ];
    Command::new("settings")
        .about("Print all settings with their defaults, as a settings file or a page")
        .arg(format.value_parser(PossibleValuesParser::new(formats)).help("How to print them"))
}

fn completions_grammar() -> Command {
    Command::new("completions")
        .about("Print a shell's completions")
        .after_help("For bash: respool completions bash > /etc/bash_completion.d/respool")
        .arg(Arg::new("shell").required(true).value_parser(value_parser!(Shell)).help("The shell"))
}

fn man_grammar() -> Command {
    Command::new("man")
        .about("Print the manual page, of the program or of one subcommand")
        .after_help("respool man serve | man -l -")
        .arg(Arg::new("subcommand").value_name("SUBCOMMAND").help("The subcommand; without it, the program"))
}

/// Where settings come from; can be asked again for a reload.
struct Sources {
    config: Option<PathBuf>,
    flags: Vec<(Setting, Vec<String>)>,
    env: Vec<(String, String)>,
}

impl Sources {
    fn of(matches: &ArgMatches, env: Vec<(String, String)>) -> Self {
        let values = |setting: &Setting| {
            let said = matches.get_many::<String>(setting.row().name)?;
            Some((*setting, said.cloned().collect()))
        };
        let from_env = || env.iter().find(|(name, _)| name == CONFIG_ENV).map(|(_, path)| PathBuf::from(path));
        let config = matches.get_one::<PathBuf>("config").cloned().or_else(from_env);
        Self { config, flags: Setting::ALL.iter().filter_map(values).collect(), env }
    }

    /// Reads everything anew.
    fn load(&self) -> Result<Understood, Faults> {
        let mut said = Said::default();
        let mut faults = match &self.config {
            Some(path) => hear_file(&mut said, path),
            None => Vec::new(),
        };
        let slips = said.hear_env(self.env.iter().cloned());
        for (setting, values) in &self.flags {
            said.hear_flag(*setting, values);
        }
        let mut understood = understand(&said, &mut faults)?;
        understood.warnings.extend(slips);
        Ok(understood)
    }
}

fn hear_file(said: &mut Said, path: &Path) -> Vec<Fault> {
    let name = path.display().to_string();
    match std::fs::read_to_string(path) {
        Ok(text) => file::hear(said, &name, text),
        Err(error) => {
            let fault = Fault::new(Origin::Default, format!("{name} cannot be read: {error}"));
            vec![fault.hint("`respool settings` prints a settings file to start from")]
        }
    }
}

/// Adds what is wrong with the values to what was wrong with the file.
fn understand(said: &Said, faults: &mut Vec<Fault>) -> Result<Understood, Faults> {
    let understood = resolve(said, &|path| std::fs::read_to_string(path));
    if faults.is_empty() {
        return understood;
    }
    let mut all = std::mem::take(faults);
    all.extend(understood.err().map_or_else(Vec::new, |more| more.faults));
    Err(Faults { file: said.file.clone(), faults: all })
}

fn serve(sources: Sources) -> Result<(), Failure> {
    let understood = sources.load()?;
    let process = understood.process.clone();
    let logging = Logging::start(&process.log).map_err(|error| Failure::running(error.to_string()))?;
    understood.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
    let job = Job {
        workers: process.workers.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from)),
        control: Control::new(understood),
        metrics: Metrics::default(),
    };
    job.metrics.observe(admin::process::snapshot);
    serve::run(&job, |bound| {
        signals::watch(Arc::clone(&job.control), logging, Box::new(move || sources.load()))?;
        let admin = process.admin.listen.as_ref().map(|address| start_admin(address, &job)).transpose()?;
        let banner = banner::render(&process, job.workers, bound, admin.as_ref());
        job.control.enter(Phase::Serving);
        // Whoever closed standard output does not want to know.
        let _ = output::print(&format!("{banner}{}\n", banner::READY));
        Ok(())
    })
}

fn start_admin(address: &Address, job: &Job) -> Result<Address, Failure> {
    let started = admin::http::start(address, Arc::clone(&job.control), job.metrics.clone());
    started.map_err(|error| Failure::running(format!("metrics cannot be served on {address}: {error}")))
}

fn check(matches: &ArgMatches) -> Result<(), Failure> {
    let path = matches.get_one::<PathBuf>("file").ok_or_else(|| Failure::settings("which file?"))?;
    let mut said = Said::default();
    let mut faults = hear_file(&mut said, path);
    let understood = understand(&said, &mut faults)?;
    Ok(output::print(&summary(path, &said, &understood))?)
}

/// What a settings file means, for people.
fn summary(path: &Path, said: &Said, understood: &Understood) -> String {
    let mut lines = vec![format!("{} is fine", path.display())];
    let said_about = |statements: &[Statement], scope: Option<Scope>, number: usize| {
        let counts =
            |s: &&Statement| s.setting != Setting::Listen && scope.is_none_or(|scope| s.setting.row().scope == scope);
        let rows = statements.iter().filter(counts);
        let line = |statement: &Statement| {
            let row = statement.setting.row();
            format!("    {} = {}", row.name, understood.values[number][statement.setting as usize].show(row))
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
        lines.extend(instance.net.listen.iter().map(|address| format!("    listens on {address}")));
        let own = said.pools.get(number).map_or(&[][..], |pool| &pool.statements[..]);
        let inherited: Vec<Statement> =
            said.top.iter().filter(|s| own.iter().all(|o| o.setting != s.setting)).cloned().collect();
        lines.extend(said_about(own, None, number));
        lines.extend(said_about(&inherited, Some(Scope::Pool), number));
    }
    lines.extend(understood.warnings.iter().map(|warning| format!("  note: {warning}")));
    lines.push(String::new());
    lines.join("\n")
}

fn settings(matches: &ArgMatches) -> Result<(), Failure> {
    let is_markdown = matches.get_one::<String>("format").is_some_and(|format| format == "markdown");
    Ok(output::print(&if is_markdown { page::markdown() } else { page::toml() })?)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grammar_is_sound() {
        grammar().debug_assert();
    }
}
