//! The command line of `respool cli`: the flags of redis-cli.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgGroup, Command, value_parser};

const EXAMPLES: &str = "\
Examples:
  respool cli
      a prompt at 127.0.0.1:6379
  respool cli -h 10.0.0.1 -a secret set key value
      one command
  respool cli -x set key < file
      a file's bytes as the last argument
  respool cli --scan --pattern 'user:*' --type hash
      names of keys, a line each
  respool cli --eval script.lua key1 key2 , arg1
      a script from a file
  cat requests.resp | respool cli --pipe
      mass insertion
Without a command and with standard input that is no terminal, commands are read from there, a line each.";

/// The grammar.
#[must_use]
pub fn grammar() -> Command {
    Command::new("cli")
        .about("Talk to a server: one command, a prompt, or one of redis-cli's modes")
        .long_about(
            "Takes the command lines of redis-cli and prints what that prints, for any server that speaks RESP. Without a command \
             it prompts, with completion and hints from Respool's own table of commands.",
        )
        .after_help(EXAMPLES)
        .disable_help_subcommand(true)
        .disable_help_flag(true)
        .disable_version_flag(true)
        .args(server_args())
        .args(output_args())
        .args(mode_args())
        .group(ArgGroup::new("mode").args(MODES))
        .arg(
            Arg::new("command")
                .value_name("COMMAND")
                .num_args(0..)
                .trailing_var_arg(true)
                .allow_hyphen_values(true)
                .value_parser(value_parser!(OsString))
                .help("A command and its arguments"),
        )
}

/// Flags that say what is done, of which there is one at most.
const MODES: [&str; 12] = [
    "stat",
    "scan",
    "bigkeys",
    "memkeys",
    "hotkeys",
    "latency",
    "latency-history",
    "latency-dist",
    "pipe",
    "intrinsic",
    "eval",
    "monitor",
];

/// Those that say where the server is, and who is asking.
pub(crate) fn server_args() -> Vec<Arg> {
    vec![
        text("host", "HOST", "Server host name [default: 127.0.0.1]").short('h'),
        Arg::new("port")
            .short('p')
            .value_name("PORT")
            .value_parser(value_parser!(u16))
            .help("Server port [default: 6379]"),
        text("socket", "PATH", "Server socket (overrides host and port)")
            .short('s')
            .value_hint(clap::ValueHint::FilePath),
        text("password", "PASSWORD", "Password for AUTH; safer in the environment as REDISCLI_AUTH")
            .short('a')
            .visible_alias("pass")
            .long("password")
            .allow_hyphen_values(true),
        text("user", "NAME", "User for AUTH; needs a password").long("user"),
        switch("askpass", "Ask for the password on the terminal").long("askpass"),
        text("uri", "URI", "Server as redis://user:password@host:port/database, rediss:// or unix://").short('u'),
        Arg::new("database").short('n').value_name("N").value_parser(value_parser!(u32)).help("Select this database"),
        switch("resp2", "Speak RESP2").short('2').conflicts_with("resp3"),
        switch("resp3", "Speak RESP3").short('3'),
        switch("cluster", "Follow the redirections of a cluster (MOVED, ASK)").short('c'),
        switch("tls", "Speak TLS").long("tls"),
        text("sni", "NAME", "Name that the server's certificate must have [default: the host]").long("sni"),
        file("cacert", "Authorities of the server's certificate (PEM) [default: the system's]").long("cacert"),
        switch("insecure", "Do not check the server's certificate").long("insecure").conflicts_with("cacert"),
        file("cert", "Certificate to show (PEM)").long("cert").requires("key"),
        file("key", "Its private key (PEM)").long("key").requires("cert"),
        switch("no-auth-warning", "No warning about a password on the command line").long("no-auth-warning"),
        Arg::new("help").long("help").action(ArgAction::Help).help("Print help"),
    ]
}

fn output_args() -> Vec<Arg> {
    vec![
        number_text("repeat", "N", "Execute the command so often; -1 without end").short('r'),
        number_text("interval", "SECONDS", "Wait between repetitions, or rounds of a mode").short('i'),
        switch("stdin", "Read the last argument from standard input").short('x'),
        text("stdin-tag", "TAG", "Read the argument that says TAG from standard input")
            .short('X')
            .conflicts_with("stdin"),
        text("delimiter", "TEXT", "What stands between elements in the raw format [default: \\n]")
            .short('d')
            .allow_hyphen_values(true),
        text("reply-delimiter", "TEXT", "What stands behind replies in the raw format [default: \\n]")
            .short('D')
            .allow_hyphen_values(true),
        switch("exit-code", "End with 1 if the command fails").short('e'),
        switch("raw", "The bytes of replies (default where standard output is no terminal)").long("raw"),
        switch("no-raw", "Replies with their types, also where standard output is no terminal").long("no-raw"),
        switch("csv", "Replies as CSV").long("csv"),
        switch("json", "Replies as JSON, and RESP3 unless -2 is said").long("json"),
        switch("quoted-json", "The same with strings of ASCII alone").long("quoted-json"),
        switch("quoted-input", "Arguments are quoted strings, as at the prompt").long("quoted-input"),
        Arg::new("show-pushes")
            .long("show-pushes")
            .value_name("yes|no")
            .value_parser(PossibleValuesParser::new(["yes", "no", "y", "n"]))
            .help("Show RESP3's pushes [default: where standard output is a terminal]"),
    ]
}

fn mode_args() -> Vec<Arg> {
    let heading = "Modes";
    let count = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name("N").value_parser(value_parser!(u64)).help(help).help_heading(heading)
    };
    let mode = |name: &'static str, help: &'static str| switch(name, help).long(name).help_heading(heading);
    vec![
        file("eval", "Send the Lua script of this file with EVAL; a comma stands between keys and arguments")
            .long("eval")
            .help_heading(heading),
        mode("stat", "Print figures of the server again and again"),
        mode("scan", "Print the names of keys"),
        mode("bigkeys", "Look for the largest keys by their numbers of elements"),
        mode("memkeys", "Look for the largest keys by their memory"),
        count("memkeys-samples", "Elements of each key that its memory is estimated by"),
        mode("hotkeys", "Look for the keys that are used most; needs an LFU maxmemory-policy"),
        text("pattern", "PATTERN", "Only keys like this").long("pattern").help_heading(heading),
        text("quoted-pattern", "PATTERN", "The same, quoted").long("quoted-pattern").help_heading(heading),
        text("type", "TYPE", "Only keys of this type").long("type").help_heading(heading),
        count("count", "How many keys a server looks at for one SCAN"),
        mode("latency", "Measure round trips"),
        mode("latency-history", "The same, with a line for every 15 s, or -i"),
        mode("latency-dist", "The same as a spectrum of colours, for every second, or -i"),
        mode("monitor", "Print what all clients ask, as MONITOR"),
        mode("pipe", "Mass insertion: send requests from standard input, count the replies"),
        count("pipe-timeout", "Seconds without a reply after which --pipe gives up, 0 for never [default: 30]"),
        Arg::new("intrinsic")
            .long("intrinsic-latency")
            .value_name("SECONDS")
            .value_parser(value_parser!(u64))
            .help("Measure the delays of this machine itself; there is no server")
            .help_heading(heading),
    ]
}

fn text(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name).value_name(value).help(help)
}

fn number_text(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name).value_name(value).allow_hyphen_values(true).help(help)
}

fn switch(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).action(ArgAction::SetTrue).help(help)
}

fn file(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name)
        .value_name("FILE")
        .value_parser(value_parser!(PathBuf))
        .value_hint(clap::ValueHint::FilePath)
        .help(help)
}
