//! `cargo xtask redis-py`: the tests of the Python client, straight to a redis-server and through Respool.
//!
//! The client's source distribution carries them. Some fail straight too, since they want a newer server; those do not
//! count. Every test has to end through Respool, or against the embedded server, as it does straight, in one run in a fixed order without a second try: what one
//! test leaves behind for another shows. The tests of TLS and of credentials are among them.

mod source;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{fs, io};

use clap::Args;
use respool_testkit::{Address, RedisServer, Respool, free_port};

use crate::binary::Binary;
use crate::{Outcome, command};

/// Files whose tests talk to one server, in the order in which they are run.
const FILES: [&str; 33] = [
    "tests/test_commands.py",
    "tests/test_pipeline.py",
    "tests/test_pubsub.py",
    "tests/test_lock.py",
    "tests/test_scripting.py",
    "tests/test_function.py",
    "tests/test_monitor.py",
    "tests/test_encoding.py",
    "tests/test_connection.py",
    "tests/test_connection_pool.py",
    "tests/test_multiprocessing.py",
    "tests/test_keyspace_notifications.py",
    "tests/test_asyncio/test_commands.py",
    "tests/test_asyncio/test_pipeline.py",
    "tests/test_asyncio/test_pubsub.py",
    "tests/test_asyncio/test_lock.py",
    "tests/test_asyncio/test_scripting.py",
    "tests/test_asyncio/test_encoding.py",
    "tests/test_asyncio/test_monitor.py",
    "tests/test_asyncio/test_connection.py",
    "tests/test_asyncio/test_connection_pool.py",
    "tests/test_asyncio/test_keyspace_notifications.py",
    // Connections that are broken off in the midst of replies, and used again.
    "tests/test_asyncio/test_cwe_404.py",
    "tests/test_client.py",
    "tests/test_connect.py",
    "tests/test_asyncio/test_connect.py",
    "tests/test_max_connections_error.py",
    "tests/test_legacy_responses_arg.py",
    "tests/test_cache.py",
    "tests/test_ssl.py",
    "tests/test_asyncio/test_ssl.py",
    "tests/test_credentials.py",
    "tests/test_asyncio/test_credentials.py",
];
/// Tests for which the suite wants a cluster, modules or an account somewhere.
const MARKS: &str = "not onlycluster and not redismod and not cp_integration";
/// Seconds a test may take. By signal: a thread that waits for a reply cannot be ended in another way.
const TEST_SECONDS: &str = "30";
const SERVER_ARGUMENTS: [&str; 4] = ["--enable-debug-command", "yes", "--enable-protected-configs", "yes"];
const RESPOOL_ARGUMENTS: [&str; 6] =
    ["--admin-commands", "allow", "--request-timeout", "1m", "--node-silence-timeout", "1m"];

/// Run the Python client's tests straight to a redis-server and through Respool, in both dialects
#[derive(Args)]
pub(crate) struct Options {
    /// Put Respool between the tests and the server, and compare with a straight run
    #[arg(long)]
    through_proxy: bool,
    /// Run them against `respool server` in the place of redis-server, and compare with a straight run
    #[arg(long, conflicts_with = "through_proxy")]
    embedded: bool,
    /// Only this dialect, 2 or 3
    #[arg(long, value_parser = clap::value_parser!(u8).range(2..=3))]
    protocol: Option<u8>,
    /// Run this file only, such as `tests/test_lock.py`; may be given several times
    #[arg(long, value_name = "FILE")]
    file: Vec<String>,
    #[command(flatten)]
    binary: Binary,
}

/// Names of tests by how they ended.
#[derive(Default)]
struct Results {
    passed: BTreeSet<String>,
    failed: BTreeSet<String>,
}

impl Results {
    fn all(&self) -> impl Iterator<Item = &String> {
        self.passed.iter().chain(&self.failed)
    }

    fn ending(&self, test: &str) -> &'static str {
        match (self.passed.contains(test), self.failed.contains(test)) {
            (true, _) => "passes",
            (_, true) => "fails",
            _ => "is skipped or not reached",
        }
    }
}

pub(crate) fn run(options: &Options) -> Outcome {
    let suite = source::locate()?;
    let is_tried = options.through_proxy || options.embedded;
    let respool = is_tried.then(|| options.binary.locate("release")).transpose()?;
    let arguments = options.binary.arguments(&RESPOOL_ARGUMENTS);
    let subject = match &respool {
        Some(binary) if options.embedded => Subject::Embedded(binary),
        Some(binary) => Subject::Through(binary, &arguments),
        None => Subject::Redis,
    };
    let files: Vec<&str> =
        if options.file.is_empty() { FILES.to_vec() } else { options.file.iter().map(String::as_str).collect() };
    let known = Known::load(subject.table())?;
    let (mut passed, mut complaints) = (0, Vec::new());
    for protocol in options.protocol.map_or(vec![2, 3], |protocol| vec![protocol]) {
        let straight = attempt(&suite, &files, protocol, Subject::Redis)?;
        show("straight", protocol, &straight);
        passed += straight.passed.len();
        if is_tried {
            let tried = attempt(&suite, &files, protocol, subject)?;
            show(subject.name(), protocol, &tried);
            complaints.extend(judge(protocol, &straight, &tried, &known));
        }
    }
    complaints.iter().for_each(|complaint| println!("  {complaint}"));
    match complaints.len() {
        0 => Ok(format!("{passed} passed straight, and nothing ends otherwise with Respool but what is written down")),
        count => {
            Err(format!("{count} tests end otherwise than in a straight run; logs are in {}", suite.display()).into())
        }
    }
}

/// What ends otherwise through Respool. Nothing has a second try: a test that fails behind others and passes by itself has found
/// what those left behind, and one that passes through Respool alone was perhaps not run as it should be.
fn judge(protocol: u8, straight: &Results, through: &Results, known: &Known) -> Vec<String> {
    let all: BTreeSet<&String> = straight.all().chain(through.all()).collect();
    let mut complaints = Vec::new();
    for test in all {
        let (straight, through) = (straight.ending(test), through.ending(test));
        let how = known.how(protocol, test);
        let is_as_known = match how {
            None => straight == through,
            Some(How::Varies) => true,
            Some(How::Differs) => straight != through,
        };
        if !is_as_known {
            let known = if how.is_some() { ", although it is written down to differ" } else { "" };
            complaints.push(format!("RESP{protocol} {test}: {straight} straight, {through} with Respool{known}"));
        }
    }
    complaints
}

/// Tests that may end otherwise, each with its reason: `xtask/expected/redis-py.tsv`, or `redis-py-embedded.tsv`.
struct Known(Vec<[String; 4]>);

#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    /// It does, and must.
    Differs,
    /// It may, in a straight run too: time or chance decides.
    Varies,
}

impl Known {
    fn load(file: &str) -> io::Result<Known> {
        let rows = command::expected(file, 4)?.into_iter();
        Ok(Known(rows.map(|fields| <[String; 4]>::try_from(fields).expect("four were read")).collect()))
    }

    fn how(&self, protocol: u8, test: &str) -> Option<How> {
        let is_it = |[dialect, name, ..]: &&[String; 4]| {
            name == test && (dialect == "both" || *dialect == protocol.to_string())
        };
        self.0.iter().find(is_it).map(|[_, _, how, _]| if how == "varies" { How::Varies } else { How::Differs })
    }
}

fn show(what: &str, protocol: u8, results: &Results) {
    println!("RESP{protocol} {what}: {} passed, {} failed", results.passed.len(), results.failed.len());
}

/// What the tests talk to.
#[derive(Clone, Copy)]
enum Subject<'a> {
    /// A redis-server.
    Redis,
    /// Respool with a redis-server behind it: the binary and its arguments.
    Through(&'a Path, &'a [&'a str]),
    /// `respool server`.
    Embedded(&'a Path),
}

impl Subject<'_> {
    /// The table of tests that may end otherwise.
    fn table(self) -> &'static str {
        if let Self::Embedded(_) = self { "redis-py-embedded.tsv" } else { "redis-py.tsv" }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Redis => "straight",
            Self::Through(..) => "through Respool",
            Self::Embedded(_) => "against the embedded server",
        }
    }

    /// Names its log.
    fn word(self) -> &'static str {
        match self {
            Self::Redis => "straight",
            Self::Through(..) => "through",
            Self::Embedded(_) => "embedded",
        }
    }
}

/// A link to the program by the name under which it takes redis-server's command line.
fn as_redis_server(suite: &Path, binary: &Path) -> io::Result<PathBuf> {
    let directory = suite.with_file_name("respool-server");
    fs::create_dir_all(&directory)?;
    let link = directory.join("redis-server");
    if fs::symlink_metadata(&link).is_ok() {
        fs::remove_file(&link)?;
    }
    std::os::unix::fs::symlink(binary, &link)?;
    Ok(link)
}

/// One run of the tests against fresh servers.
fn attempt(suite: &Path, files: &[&str], protocol: u8, subject: Subject<'_>) -> io::Result<Results> {
    let [certificate, key, authority] =
        ["redis.crt", "redis.key", "ca.crt"].map(|file| source::certificate(suite, file));
    let tls = free_port()?.to_string();
    let of_server = ["--tls-cert-file", &certificate, "--tls-key-file", &key, "--tls-ca-cert-file", &authority];
    let mut wanted = SERVER_ARGUMENTS.to_vec();
    if !matches!(subject, Subject::Through(..)) {
        wanted.extend(["--tls-port", &tls, "--tls-auth-clients", "optional"]);
        wanted.extend(of_server);
    }
    let server = match subject {
        Subject::Embedded(binary) => RedisServer::start_program(&as_redis_server(suite, binary)?, &wanted)?,
        Subject::Redis | Subject::Through(..) => RedisServer::start_with(&wanted)?,
    };
    let listen = format!("tls:127.0.0.1:{tls}");
    let of_respool = ["--tls-cert-file", &certificate, "--tls-key-file", &key, "--tls-client-ca-file", &authority];
    let respool = match subject {
        Subject::Through(binary, arguments) => {
            let tls = ["--listen", &listen, "--tls-auth-clients", "optional"];
            Some(Respool::start(binary, &[server.tcp()], &[arguments, &tls, &of_respool].concat())?)
        }
        Subject::Redis | Subject::Embedded(_) => None,
    };
    let address: Address = respool.as_ref().map_or(server.tcp(), Respool::tcp);
    let log = suite.join(format!("resp{protocol}-{}.log", subject.word()));
    let output = fs::File::create(&log)?;
    let mut tests = Command::new(suite.with_file_name("venv").join("bin").join("python"));
    tests.current_dir(suite).env("PYTHONPATH", suite).env("PYTHONDONTWRITEBYTECODE", "1");
    tests.env("PYTHONHASHSEED", "0");
    tests.args([
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        "-p",
        source::PLUGIN_NAME,
        "--quiet",
        "-rA",
        "--tb=short",
        "-W",
        "ignore",
    ]);
    tests.args(["--timeout", TEST_SECONDS, "--timeout-method=signal", "-m", MARKS]);
    tests.arg(format!("--redis-url=redis://{address}/0")).arg(format!("--protocol={protocol}"));
    tests.arg(format!("--redis-ssl-url=rediss://127.0.0.1:{tls}")).args(files);
    let status = tests.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output).status()?;
    let text = String::from_utf8_lossy(&fs::read(&log)?).into_owned();
    // That tests have failed is code 1.
    if !matches!(status.code(), Some(0 | 1)) || !has_summary(&text) {
        return Err(io::Error::other(format!("pytest has ended early: see {}", log.display())));
    }
    Ok(read(&text))
}

/// Whether pytest has come to its last line, which counts all tests. If something ends it amid a test no test is named, and two such runs
/// would be alike.
fn has_summary(text: &str) -> bool {
    let last = text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
    last.starts_with(|first: char| first.is_ascii_digit()) && last.contains(" passed") && last.contains(" in ")
}

/// Reads the summary that names every test.
fn read(text: &str) -> Results {
    let mut results = Results::default();
    for line in text.lines() {
        let Some((status, rest)) = line.split_once(' ') else { continue };
        let test = rest.split(" - ").next().unwrap_or_default().trim();
        if !test.contains("::") {
            continue;
        }
        match status {
            "PASSED" => drop(results.passed.insert(test.to_owned())),
            "FAILED" | "ERROR" => drop(results.failed.insert(test.to_owned())),
            _ => {}
        }
    }
    // A test can pass and its clean-up fail.
    results.passed.retain(|test| !results.failed.contains(test));
    results
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_difference_is_a_complaint() {
        let results = |passed: &[&str], failed: &[&str]| Results {
            passed: passed.iter().map(|&test| test.to_owned()).collect(),
            failed: failed.iter().map(|&test| test.to_owned()).collect(),
        };
        let row = |test: &str, how: &str| ["2", test, how, "known"].map(str::to_owned);
        let known = Known(vec![row("d", "differs"), row("e", "differs"), row("f", "varies")]);
        let straight = results(&["a", "b", "d", "e", "f"], &["c"]);
        let through = results(&["b", "c", "e"], &["a", "d", "f"]);
        let complaints = judge(2, &straight, &through, &known);
        let told: Vec<&str> = complaints.iter().filter_map(|one| one.split([' ', ':']).nth(1)).collect();
        assert_eq!(told, ["a", "c", "e"], "one that fails, one that passes, one that is written down in vain");
        assert_eq!(judge(2, &straight, &results(&["b"], &[]), &Known(Vec::new())).len(), 5, "those not reached");
    }

    #[test]
    fn a_run_that_was_cut_off_is_no_run() {
        let whole = "....F\nPASSED tests/a.py::A::one\n16 failed, 2263 passed, 7 errors in 847.22s (0:14:07)\n\n";
        assert!(has_summary(whole) && has_summary("1 passed in 0.01s"));
        for text in ["", "....F+++ Timeout +++\n  File \"a.py\", line 3\n+++ Timeout +++\n", "no tests ran in 0.01s"] {
            assert!(!has_summary(text), "{text}");
        }
    }

    #[test]
    fn the_committed_table_can_be_read() {
        for table in [Subject::Redis, Subject::Embedded(Path::new("respool"))].map(Subject::table) {
            let known = Known::load(table).unwrap();
            assert!(known.0.iter().all(|[_, _, how, _]| how == "varies" || how == "differs"), "{table}");
        }
    }

    #[test]
    fn a_summary_is_read() {
        let text = "....F\nPASSED tests/a.py::A::one\nPASSED tests/a.py::A::two[x y]\nFAILED tests/a.py::A::three - Error: PASSED\n\
            ERROR tests/a.py::A::one - at the end\nSKIPPED [1] tests/a.py:3: no\n2 passed in 1s\n";
        let results = read(text);
        assert_eq!(results.passed.iter().collect::<Vec<_>>(), ["tests/a.py::A::two[x y]"]);
        assert_eq!(results.failed.iter().collect::<Vec<_>>(), ["tests/a.py::A::one", "tests/a.py::A::three"]);
    }
}
