//! `respool cli` as its users meet it: beside redis-cli at the same server, in pipes, and on a terminal.

#[path = "../support/mod.rs"]
mod support;

mod alike;
mod encrypted;
mod modes;
mod redirections;
mod terminal;

use std::io::Write;
use std::process::{Command, Output, Stdio};

use respool_testkit::RedisServer;

/// A server with what the tests ask for.
fn server() -> RedisServer {
    RedisServer::start_with(&["--enable-debug-command", "yes"]).expect("redis-server starts")
}

/// What a run printed and how it ended.
#[derive(Debug, PartialEq, Eq)]
struct Run {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        let text = |bytes: Vec<u8>| bytes.escape_ascii().to_string().replace("\\n", "\n").replace("\\\"", "\"");
        Self { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

/// `respool cli`, with nothing of the machine's own settings.
fn respool_cli(args: &[&str]) -> Command {
    let mut command = support::respool(&["cli"]);
    command.args(args);
    command
}

fn redis_cli(args: &[&str]) -> Command {
    let mut command = Command::new("redis-cli");
    command.env_remove("REDISCLI_AUTH").args(args);
    command
}

/// Runs a command to its end with `input` as its standard input; without, it has none.
fn run(command: &mut Command, input: Option<&[u8]>) -> Run {
    let stdin = if input.is_some() { Stdio::piped() } else { Stdio::null() };
    let mut child =
        command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
    if let Some(input) = input {
        // One that ends before it has read everything says so by itself.
        let _ = child.stdin.take().expect("a pipe").write_all(input);
    }
    child.wait_with_output().expect("it ends").into()
}

/// Runs `respool cli` at a server.
fn at(server: &RedisServer, args: &[&str], input: Option<&[u8]>) -> Run {
    let port = server.port().to_string();
    run(&mut respool_cli(&[&["-p", &port], args].concat()), input)
}
