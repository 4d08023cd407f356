//! The prompt on a real terminal, which tmux provides: keys are pressed, and the screen is looked at.

use std::cell::RefCell;
use std::fs;
use std::process::Command;

use respool_testkit::{PATIENCE, RedisServer, TempDir, wait_until};

use crate::server;

/// A terminal with a shell in it.
struct Terminal {
    directory: TempDir,
    /// What was entered last.
    entered: RefCell<String>,
}

impl Terminal {
    /// Starts `respool cli` with these arguments.
    fn start(args: &str) -> Self {
        Self::start_subcommand(&format!("cli {args}"))
    }

    /// Starts `respool` with this subcommand and its arguments.
    fn start_subcommand(words: &str) -> Self {
        let this = Self { directory: TempDir::new().expect("a directory"), entered: RefCell::default() };
        let history = this.history_path();
        let program = env!("CARGO_BIN_EXE_respool");
        let line = format!("env RESPOOL_CLI_HISTORY={history} {program} {words}");
        this.tmux(&["-f", "/dev/null", "new-session", "-d", "-x", "100", "-y", "40", &line]);
        this
    }

    fn history_path(&self) -> String {
        self.directory.join("history").display().to_string()
    }

    fn history(&self) -> String {
        fs::read_to_string(self.history_path()).unwrap_or_default()
    }

    fn tmux(&self, args: &[&str]) -> String {
        let socket = self.directory.join("tmux").display().to_string();
        let mut command = Command::new("tmux");
        // A terminal that every system knows, and a locale in which what is typed is text.
        command
            .env("TERM", "xterm-256color")
            .env("LC_ALL", "C.UTF-8")
            .env_remove("TMUX")
            .args(["-S", &socket])
            .args(args);
        match command.output() {
            Ok(output) => String::from_utf8_lossy(&output.stdout).into_owned(),
            Err(error) => panic!(
                "tmux, which shows what a terminal shows, does not start ({error}): `cargo xtask setup` installs it"
            ),
        }
    }

    fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    /// Presses keys as tmux names them.
    fn press(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat());
    }

    /// Types text, once the shell reads lines again: keys that are pressed while a prompt begins are lost.
    #[track_caller]
    fn type_text(&self, text: &str) {
        let is_prompt =
            |line: &str| ["127.0.0.1:", "not connected", "Please input"].iter().any(|begin| line.starts_with(begin));
        let is_read = || {
            let (screen, entered) = (self.screen(), self.entered.borrow());
            let last = screen.trim_end().lines().last().unwrap_or_default();
            Ok(is_prompt(last) && (entered.is_empty() || !last.ends_with(entered.as_str())))
        };
        let seen = wait_until("a prompt", PATIENCE, is_read);
        assert!(seen.is_ok(), "no prompt is on the screen:\n{}", self.screen());
        self.tmux(&["send-keys", "-l", text]);
    }

    /// Types the rest of a line that is begun, and sends it.
    fn complete(&self, rest: &str) {
        self.tmux(&["send-keys", "-l", rest]);
        self.press(&["Enter"]);
        self.entered.replace(rest.to_owned());
    }

    /// Types a line and sends it.
    fn enter(&self, line: &str) {
        self.type_text(line);
        self.press(&["Enter"]);
        self.entered.replace(line.to_owned());
    }

    /// Waits until the screen holds `text`.
    #[track_caller]
    fn shows(&self, text: &str) {
        let seen = wait_until(text, PATIENCE, || Ok(self.screen().contains(text)));
        assert!(seen.is_ok(), "{text:?} is not on the screen:\n{}", self.screen());
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

fn at(server: &RedisServer) -> Terminal {
    let terminal = Terminal::start(&format!("-p {}", server.port()));
    terminal.shows(&prompt(server));
    terminal
}

fn prompt(server: &RedisServer) -> String {
    format!("127.0.0.1:{}>", server.port())
}

#[test]
fn a_line_is_hinted_completed_and_executed() {
    let server = server();
    let terminal = at(&server);
    terminal.type_text("set ");
    terminal.shows("set key value [NX|XX");
    terminal.complete("greeting \"hello there\"");
    terminal.shows("OK");
    terminal.type_text("getr");
    terminal.press(&["Tab"]);
    terminal.shows("> getrange");
    terminal.complete(" greeting 0 4");
    terminal.shows("\"hello\"");
    terminal.enter("get");
    terminal.shows("(error) ERR wrong number of arguments");
    terminal.enter("help getrange");
    terminal.shows("GETRANGE key start end");
    terminal.enter("multi");
    terminal.shows("(TX)>");
    terminal.enter("incr n");
    terminal.shows("QUEUED");
    terminal.enter("exec");
    terminal.shows("1) (integer) 1");
    terminal.enter("select 3");
    terminal.shows("[3]>");
    terminal.enter("get \"x");
    terminal.shows("Invalid argument(s)");
}

#[test]
fn passwords_do_not_come_into_the_history() {
    let server = server();
    let terminal = at(&server);
    terminal.enter("auth canary");
    terminal.shows("(error) ERR AUTH");
    terminal.enter("acl setuser ann on >canary");
    terminal.enter("echo \"canary");
    terminal.shows("Invalid argument(s)");
    terminal.enter("echo kept");
    terminal.shows("\"kept\"");
    wait_until("the history", PATIENCE, || Ok(terminal.history().contains("echo kept"))).expect("it is written");
    assert!(!terminal.history().contains("canary"), "{}", terminal.history());
    // Nor is it there for the key that goes back in the history.
    terminal.press(&["C-l"]);
    terminal.press(&["Up", "Up", "Up"]);
    terminal.shows("> echo kept");
}

#[test]
fn messages_come_live_and_an_interrupt_brings_the_prompt_back() {
    let server = server();
    let terminal = at(&server);
    terminal.enter("subscribe news");
    terminal.shows("Reading messages...");
    terminal.shows("3) (integer) 1");
    let mut client = server.client().expect("a client");
    assert_eq!(client.ask("PUBLISH news hello").expect("a reply"), ":1\r\n");
    terminal.shows("3) \"hello\"");
    terminal.press(&["C-c"]);
    terminal.shows("not connected>");
    terminal.enter("monitor");
    terminal.shows("OK");
    client.ask("SET seen 1").expect("a reply");
    terminal.shows("\"SET\" \"seen\" \"1\"");
    terminal.press(&["C-c"]);
    terminal.enter("echo back");
    terminal.shows("\"back\"");
}

#[test]
fn pushes_are_shown_while_a_line_is_typed() {
    let server = server();
    let terminal = Terminal::start(&format!("-3 -p {}", server.port()));
    terminal.shows(&prompt(&server));
    terminal.enter("client tracking on");
    terminal.shows("OK");
    terminal.enter("get tracked");
    terminal.shows("(nil)");
    terminal.type_text("echo one");
    terminal.shows("> echo one");
    server.client().expect("a client").ask("SET tracked 1").expect("a reply");
    terminal.shows("invalidate");
    // The line is there as it was, and goes on.
    terminal.complete("+half");
    terminal.shows("\"one+half\"");
}

#[test]
fn a_lost_transaction_is_not_continued_on_another_connection() {
    let server = server();
    let terminal = at(&server);
    terminal.enter("multi");
    terminal.shows("(TX)>");
    let mut client = server.client().expect("a client");
    client.ask("CLIENT KILL TYPE normal SKIPME yes").expect("a reply");
    terminal.enter("set outside 1");
    terminal.shows("the command was not sent");
    // The rest of the transaction may have been typed before that was shown.
    terminal.enter("set outside 1");
    terminal.enter("echo behind");
    terminal.enter("exec");
    terminal.enter("echo after");
    terminal.shows("\"after\"");
    assert!(!terminal.screen().contains("\"behind\""), "{}", terminal.screen());
    assert_eq!(client.ask("EXISTS outside").expect("a reply"), ":0\r\n");
    // Without a transaction the shell connects again by itself.
    client.ask("CLIENT KILL TYPE normal SKIPME yes").expect("a reply");
    terminal.enter("set inside 1");
    wait_until("the key", PATIENCE, || Ok(client.ask("EXISTS inside")? == ":1\r\n")).expect("it is set");
}

#[test]
fn a_password_that_is_asked_for_is_not_shown() {
    let server = server();
    server.client().expect("a client").ask("CONFIG SET requirepass canary").expect("a reply");
    let terminal = Terminal::start(&format!("-p {} --askpass", server.port()));
    terminal.shows("Please input password:");
    terminal.enter("canary");
    terminal.shows(&prompt(&server));
    terminal.enter("echo inside");
    terminal.shows("\"inside\"");
    assert!(!terminal.screen().contains("canary"), "{}", terminal.screen());
}

#[test]
fn the_live_view_shows_nodes_and_requests_until_q() {
    let node = server();
    let name = node.tcp().to_string();
    let respool = crate::support::serve(&["--listen", "127.0.0.1:0", "--node", &name]);
    let address = respool.addresses()[0];
    let terminal = Terminal::start_subcommand(&format!("top -p {} -i 0.1", address.port()));
    terminal.shows(&format!("respool {address}"));
    for part in ["ops/s", "nodes", "pools", "latency, us", "leases", "hot keys", "slow requests", "primary"] {
        terminal.shows(part);
    }
    // A lease is seen while it is held.
    let mut client = respool.client(0);
    client.ask("WATCH key").expect("a reply");
    terminal.shows("watch");
    terminal.press(&["q"]);
    // The shell's window ends with its program, and the terminal with its last window.
    wait_until("the end", PATIENCE, || Ok(!terminal.screen().contains("ops/s"))).expect("it ends");
}

#[test]
fn the_live_view_is_fed_by_the_dashboards_api() {
    let node = server();
    let name = node.tcp().to_string();
    let respool = crate::support::serve(&[
        "--listen",
        "127.0.0.1:0",
        "--metrics",
        "127.0.0.1:0",
        "--dashboard",
        "local",
        "--node",
        &name,
    ]);
    let url = respool.says("metrics at");
    let url = url.trim().trim_start_matches("metrics at ").trim_end_matches("/metrics").to_owned();
    let terminal = Terminal::start_subcommand(&format!("top --url {url} -i 0.1"));
    terminal.shows(&format!("respool {}", url.trim_start_matches("http://")));
    for part in ["ops/s", "latency, us", "slow requests", "primary"] {
        terminal.shows(part);
    }
    let mut client = respool.client(0);
    client.ask("WATCH key").expect("a reply");
    terminal.shows("watch");
    terminal.shows("clients 1");
    terminal.press(&["q"]);
    wait_until("the end", PATIENCE, || Ok(!terminal.screen().contains("ops/s"))).expect("it ends");
}
