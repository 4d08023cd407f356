//! One unit of the suite at a time, against servers and a Respool of its own.

use std::fs::{self, File};
use std::io;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use respool_testkit::{Address, RedisServer, Respool, wait_until};

use super::Options;
use super::expected::Expectations;
use super::output::{self, Ending, Failure, Run, Tally};
use super::source;
use crate::command;

/// The first port that the suite takes for itself and its servers, and how many it may take: below those that the system gives away, and
/// apart from those of a run through Respool at the same time.
const INTERNAL_PORTS: (&str, &str) = ("12111", "3000");
/// Servers behind Respool in the suite's cluster mode.
const CLUSTER_NODES: usize = 4;
/// Arguments with which the baselines were taken: the suite needs what they allow.
const SERVER_ARGUMENTS: [&str; 6] =
    ["--enable-protected-configs", "yes", "--enable-debug-command", "yes", "--enable-module-command", "yes"];
/// The suite steers its server; some tests have it sleep or count for seconds, which a busy machine stretches; and some count
/// on requests of two connections being read in the order in which they were written, as by a server with one thread.
const ARGUMENTS: [&str; 8] =
    ["--admin-commands", "allow", "--request-timeout", "2m", "--node-silence-timeout", "2m", "--workers", "1"];
/// A security test of a later redis: its payload has a version that 7.0 does not know.
const SKIPPED: [&str; 1] = ["RESTORE fail with invalid payload size"];
/// What is left out of every run: tests that take minutes.
const TAGS: &str = "-slow";
/// The same of the embedded server, which has neither replicas nor files. Which tests that are stands in a file.
const EMBEDDED_TAGS: &str = "-slow -needs:repl -needs:save -needs:cluster -needs:rename -needs:deprecated";
/// Units whose tests with this tag are those that need an append-only file, and others need not.
const WITH_APPEND_ONLY_FILE: ([&str; 2], &str) = (["unit/type/stream", "unit/type/stream-cgroups"], "-needs:debug");
/// How long a unit may take in all; the longest takes a minute and a half alone on a machine.
const UNIT_LIMIT: Duration = Duration::from_secs(15 * 60);
/// Seconds without progress after which a test that is run alone counts as hung: most of those that are hang.
const ALONE_TIMEOUT_S: u64 = 12;
/// A unit is run again without the test that hung, so that the others of it can be judged, at most so often.
const REPEATS_MAX: usize = 6;

/// What a unit is run with.
pub(super) struct Deployment<'a> {
    pub(super) source: PathBuf,
    /// The binary between suite and server.
    pub(super) respool: Option<PathBuf>,
    /// The server, if it is not redis-server: a path that ends with its name.
    pub(super) server: Option<PathBuf>,
    pub(super) expectations: &'a Expectations,
    pub(super) options: &'a Options,
}

/// Where the output of each unit is kept.
pub(super) fn logs() -> PathBuf {
    command::target_directory().unwrap_or_default().join("suites").join("tcl-logs")
}

impl Deployment<'_> {
    /// The names of all units, as the suite lists them.
    pub(super) fn units(&self) -> io::Result<Vec<String>> {
        let text = command::capture(self.suite().arg("--list-tests"))?;
        Ok(text.lines().map(str::to_owned).collect())
    }

    /// Runs one unit, again without each test that hangs.
    pub(super) fn run(&self, unit: &str) -> io::Result<Tally> {
        let mut hung: Vec<String> = Vec::new();
        let left_out: Vec<&str> = SKIPPED.into_iter().chain(self.expectations.left_out(unit)).collect();
        loop {
            let skipped = left_out.iter().copied().chain(hung.iter().map(String::as_str));
            let only = self.options.only.iter().map(String::as_str);
            let mut run = self.attempt(unit, skipped, only, self.options.timeout)?;
            if let Some(what) = run.broken.take() {
                run.tally.failed.push(failure("the unit ended early", Ending::Broken, &what));
            }
            if let Some(test) = run.hung.take() {
                let is_new = test != output::OUTSIDE && !hung.contains(&test);
                hung.push(test);
                if is_new && hung.len() <= REPEATS_MAX {
                    continue;
                }
            }
            let hung = hung.iter().map(|test| failure(test, Ending::Hung, "made no progress any more\n"));
            run.tally.failed.extend(hung);
            return Ok(run.tally);
        }
    }

    /// Runs one test of a unit, with nothing before it or behind it; or, if it `ends` the unit, with all others that spoil nothing.
    pub(super) fn run_alone(&self, unit: &str, test: &str, ends: bool, others: &Expectations) -> io::Result<Tally> {
        let skipped = others.left_out(unit).filter(|other| ends && *other != test);
        let only = (!ends).then_some(test).into_iter();
        let mut run = self.attempt(unit, SKIPPED.into_iter().chain(skipped), only, ALONE_TIMEOUT_S)?;
        if let Some(what) = run.broken.take() {
            run.tally.failed.push(failure("the unit ended early", Ending::Broken, &what));
        }
        if let Some(test) = run.hung.take() {
            run.tally.failed.push(failure(&test, Ending::Hung, "made no progress any more\n"));
        }
        Ok(run.tally)
    }

    fn attempt<'t>(
        &self,
        unit: &str,
        skipped: impl Iterator<Item = &'t str>,
        only: impl Iterator<Item = &'t str>,
        timeout_s: u64,
    ) -> io::Result<Run> {
        if self.options.internal {
            return self.attempt_internally(unit, skipped, only, timeout_s);
        }
        let is_proxied = self.respool.is_some();
        let count = if is_proxied && self.options.cluster_mode { CLUSTER_NODES } else { 1 };
        let servers = (0..count).map(|_| self.server(is_proxied)).collect::<io::Result<Vec<_>>>()?;
        let nodes: Vec<Address> = servers.iter().map(RedisServer::tcp).collect();
        let arguments = self.options.binary.arguments(&ARGUMENTS);
        let mut respool = self.respool.as_ref().map(|binary| Respool::start(binary, &nodes, &arguments)).transpose()?;
        let Address::Tcp(address) = respool.as_ref().map_or(servers[0].tcp(), Respool::tcp) else {
            unreachable!("both listen for TCP first");
        };

        let mut suite = self.suite();
        suite.args(["--host", &address.ip().to_string(), "--port", &address.port().to_string()]);
        if self.options.cluster_mode {
            suite.arg("--cluster-mode");
        }
        if self.server.is_some() {
            suite.args(["--baseport", INTERNAL_PORTS.0, "--portcount", INTERNAL_PORTS.1]);
        }
        suite.args(["--tags", &self.tags(unit)]);
        if self.options.suite == source::Suite::Valkey {
            // Encodings of values are those of redis 7.0.
            suite.arg("--ignore-encoding");
        }
        let mut run = run(suite, unit, skipped, only, timeout_s)?;
        if let Some(what) = respool.as_mut().and_then(damage) {
            run.broken = Some(what);
        }
        Ok(run)
    }

    /// The suite starts its servers itself, in folders of its own.
    fn attempt_internally<'t>(
        &self,
        unit: &str,
        skipped: impl Iterator<Item = &'t str>,
        only: impl Iterator<Item = &'t str>,
        timeout_s: u64,
    ) -> io::Result<Run> {
        let mut suite = self.suite();
        suite.args(["--clients", "1", "--baseport", INTERNAL_PORTS.0, "--portcount", INTERNAL_PORTS.1]);
        suite.args(["--tags", &self.tags(unit)]);
        run(suite, unit, skipped, only, timeout_s)
    }

    /// What is left out, by the suite's tags.
    fn tags(&self, unit: &str) -> String {
        let (units, tag) = WITH_APPEND_ONLY_FILE;
        match self.server {
            None => TAGS.to_owned(),
            Some(_) if units.contains(&unit) => format!("{EMBEDDED_TAGS} {tag}"),
            Some(_) => EMBEDDED_TAGS.to_owned(),
        }
    }

    fn server(&self, is_proxied: bool) -> io::Result<RedisServer> {
        if let Some(program) = &self.server {
            return RedisServer::start_program(program, &SERVER_ARGUMENTS);
        }
        if is_proxied || !self.options.cluster_mode {
            return RedisServer::start_with(&SERVER_ARGUMENTS);
        }
        let mut arguments = SERVER_ARGUMENTS.to_vec();
        arguments.extend(["--cluster-enabled", "yes"]);
        let server = RedisServer::start_with(&arguments)?;
        let mut client = server.client()?;
        client.ask("CLUSTER ADDSLOTSRANGE 0 16383")?;
        wait_until("the cluster is up", Duration::from_secs(20), || {
            Ok(client.ask("CLUSTER INFO")?.contains("cluster_state:ok"))
        })?;
        Ok(server)
    }

    fn suite(&self) -> Command {
        let mut suite = Command::new("tclsh");
        // No colours.
        suite.current_dir(&self.source).arg("tests/test_helper.tcl").env_remove("TERM");
        if let Some(programs) = self.server.as_ref().and_then(|server| server.parent()) {
            suite.env("VALKEY_BIN_DIR", programs);
        }
        suite
    }
}

/// Runs the suite to its end, and reads what it prints.
fn run<'t>(
    mut suite: Command,
    unit: &str,
    skipped: impl Iterator<Item = &'t str>,
    only: impl Iterator<Item = &'t str>,
    timeout_s: u64,
) -> io::Result<Run> {
    let log = logs().join(format!("{}.log", unit.replace('/', "-")));
    fs::create_dir_all(logs())?;
    suite.args(["--durable", "--timeout", &timeout_s.to_string(), "--single", unit]);
    for test in skipped {
        suite.args(["--skiptest", test]);
    }
    for test in only {
        suite.args(["--only", test]);
    }
    let output = File::create(&log)?;
    let mut child = Suite(suite.stdout(output.try_clone()?).stderr(output).stdin(Stdio::null()).spawn()?);
    let ended = wait_until(&format!("{unit} has ended"), UNIT_LIMIT, || Ok(child.0.try_wait()?.is_some()));
    // The suite prints what the servers answered, whatever bytes that are.
    let text = fs::read(&log)?;
    let mut run = output::read(&String::from_utf8_lossy(&text), unit);
    if let Err(error) = ended {
        run.broken = Some(error.to_string());
    }
    Ok(run)
}

fn failure(test: &str, ending: Ending, details: &str) -> Failure {
    Failure { test: test.to_owned(), ending, details: details.to_owned() }
}

/// What a unit has done to Respool that no line of the list excuses: it has ended, panicked, or takes no clients any more.
fn damage(respool: &mut Respool) -> Option<String> {
    match respool.process().try_wait() {
        Ok(None) => {}
        Ok(Some(status)) => return Some(format!("Respool has ended: {status}")),
        Err(error) => return Some(format!("Respool has ended: {error}")),
    }
    let panicked = respool.output().into_iter().find(|line| line.contains("panicked"));
    // A unit may leave users or pauses behind: any answer shows that it is alive.
    let answer = || respool.client()?.ask("ECHO alive");
    panicked.or_else(|| answer().err().map(|error| format!("Respool takes no new client: {error}")))
}

/// The running suite, ended with the value; its own child ends when it is left alone.
struct Suite(Child);

impl Drop for Suite {
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(None)) {
            // It may just have ended; then there is nothing to kill.
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
}
