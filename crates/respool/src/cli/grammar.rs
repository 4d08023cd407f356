//! The grammar of the command line. The flags of `serve` are made from the table of settings.

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Arg, ArgAction, Command, value_parser};
use clap_complete::Shell;

use crate::settings::row::{Kind, Row};
use crate::settings::{CONFIG_ENV, Setting};

/// The whole grammar.
#[must_use]
pub fn grammar() -> Command {
    Command::new("respool")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Proxy, pooler and embedded server for programs that talk to Redis or Valkey")
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
        .subcommands(bench_grammars())
        .subcommands(shell_grammar())
        .subcommand(Command::new("version").about("Print the version"))
        .subcommand(completions_grammar())
        .subcommand(man_grammar())
        .subcommand(server_grammar())
        .subcommand(front_end_grammar("rmux", "Serve in the place of rmux: take its flags or its JSON file"))
        .subcommand(front_end_grammar("redis-sharding", "Serve in the place of redis-sharding: take its flags"))
}

/// Those of the load generator.
#[cfg(feature = "bench")]
fn bench_grammars() -> [Command; 2] {
    [respool_bench::cli::grammar(), respool_bench::pubsub::cli::grammar()]
}

/// The program was built without it.
#[cfg(not(feature = "bench"))]
fn bench_grammars() -> [Command; 0] {
    []
}

/// Those of the shell and of the live view.
#[cfg(feature = "shell")]
fn shell_grammar() -> [Command; 2] {
    [respool_cli::grammar(), respool_cli::top::grammar()]
}

/// The program was built without it.
#[cfg(not(feature = "shell"))]
fn shell_grammar() -> [Command; 0] {
    []
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
        .arg(
            Arg::new("take-over")
                .long("take-over")
                .value_name("PATH")
                .value_parser(value_parser!(PathBuf))
                .value_hint(clap::ValueHint::FilePath)
                .help("Take over the listeners of the process that has this takeover_socket, and let it end"),
        )
        .args(Setting::ALL.iter().map(|setting| flag(setting.row())))
}

const SERVE_EXAMPLES: &str = "\
Examples:
  respool serve
      an in-memory server on port 6379
  respool serve --listen 127.0.0.1:6380 --nodes 10.0.0.1:6379,10.0.0.2:6379
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
        // A password may begin with a dash; anything else that does is the next flag.
        .allow_hyphen_values(row.is_secret())
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
        Kind::Events => "LETTERS",
        Kind::Nodes => "NODE",
    }
}

fn check_grammar() -> Command {
    Command::new("check")
        .about("Say what a settings file means, or what is wrong with it")
        .long_about(
            "Reads a settings file as `serve` would, without flags and environment, and prints what it means. A file whose \
             name ends with .json is read as rmux' configuration. Ends with 0, or with 2 if something is wrong.",
        )
        .arg(Arg::new("file").value_name("CONFIG").required(true).value_parser(value_parser!(PathBuf)).help("The settings file"))
}

fn settings_grammar() -> Command {
    let format = Arg::new("format").long("format").value_name("FORMAT").default_value("toml");
    let formats = [
        PossibleValue::new("toml").help("a settings file to start from"),
        PossibleValue::new("markdown").help("the page docs/settings.md"),
        PossibleValue::new("redis-conf")
            .help("the page docs/redis-conf.md: redis-server's parameters and what they do here"),
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

/// Named here for the help and the manual; `cli::redis_server` takes these arguments before this grammar sees them.
fn server_grammar() -> Command {
    let args = Arg::new("args").value_name("CONFIG|--PARAMETER VALUE|-").num_args(0..);
    Command::new("server")
        .about("Serve in the place of redis-server: take its flags, its redis.conf and its signals")
        .long_about(
            "Serves as redis-server does: with its configuration file, its flags (`--port 7777 --save \"\"`), its parameters in CONFIG \
             GET, SET and REWRITE, its log lines, pid file and signals. Nothing is written to disk: what the server holds is lost \
             when it ends; `appendonly yes` and `replicaof` are refused.",
        )
        .disable_help_flag(true)
        .after_help(
            "A link to respool with the name redis-server does the same. `respool settings --format redis-conf` lists all \
             parameters and what each does here.",
        )
        .arg(args.trailing_var_arg(true).allow_hyphen_values(true).help("As redis-server takes them"))
}

/// Named here for the help and the manual; [`Program::recognise`](crate::frontend::Program::recognise) takes these arguments before this grammar sees them.
fn front_end_grammar(name: &'static str, about: &'static str) -> Command {
    let flags = Arg::new("flags").value_name("FLAGS").num_args(0..).trailing_var_arg(true).allow_hyphen_values(true);
    let link = format!("A link to respool with the name {name} does the same. `respool {name} -help` lists the flags.");
    Command::new(name)
        .about(about)
        .disable_help_flag(true)
        .after_help(link)
        .arg(flags.help("As that program takes them"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_sound() {
        grammar().debug_assert();
    }
}
