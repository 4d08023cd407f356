//! `cargo xtask redis-py`: the tests of the Python client, straight to a redis-server and through Respool.
//!
//! The client's source distribution carries them. Some fail straight too, since they want a newer server; those do not
//! count. A failure is named by its test, and every failure through Respool that the straight run lacks is an error.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{fs, io};

use clap::Args;
use respool_testkit::{Address, RedisServer, Respool};

use crate::binary::Binary;
use crate::{Outcome, command, setup};

const VERSION: &str = "8.1.0";
/// What the tests import beside the client.
const PACKAGES: [&str; 6] = ["pytest", "pytest-asyncio", "pytest-timeout", "numpy", "xxhash", "pybreaker"];
/// Files whose tests talk to one server.
const FILES: [&str; 19] = [
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
];
/// Tests for which the suite wants a cluster, modules or certificates.
const MARKS: &str = "not onlycluster and not redismod and not ssl";
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

pub(crate) fn run(options: &Options) -> Outcome {
    let suite = locate()?;
    let respool = options.through_proxy.then(|| options.binary.locate("release")).transpose()?;
    let arguments = options.binary.arguments(&RESPOOL_ARGUMENTS);
    let files: Vec<&str> =
        if options.file.is_empty() { FILES.to_vec() } else { options.file.iter().map(String::as_str).collect() };
    let (mut passed, mut own) = (0, 0);
    for protocol in options.protocol.map_or(vec![2, 3], |protocol| vec![protocol]) {
        let straight = attempt(&suite, &files, protocol, None)?;
        show("straight", protocol, &straight);
        passed += straight.passed.len();
        let Some(binary) = &respool else { continue };
        let respool = Some((binary.as_path(), &arguments[..]));
        let through = attempt(&suite, &files, protocol, respool)?;
        show("through Respool", protocol, &through);
        // One that passes straight and is missing here was not reached, which is no better than failing. Some wait for a
        // fifth of a second at most, which a busy machine stretches: those that fail have another try by themselves.
        let mut missing: Vec<&str> = straight.passed.difference(&through.passed).map(String::as_str).collect();
        if !missing.is_empty() {
            let again = attempt(&suite, &missing, protocol, respool)?;
            show("once more", protocol, &again);
            missing.retain(|test| !again.passed.contains(*test));
        }
        for test in missing {
            own += 1;
            let how = if through.failed.contains(test) { "fails" } else { "does not end" };
            println!("  RESP{protocol} {test} {how} through Respool alone");
        }
    }
    match own {
        0 => Ok(format!("{passed} passed straight, no failure of Respool's own")),
        _ => Err(format!("{own} failures that a straight run lacks; logs are in {}", suite.display()).into()),
    }
}

fn show(what: &str, protocol: u8, results: &Results) {
    println!("RESP{protocol} {what}: {} passed, {} failed", results.passed.len(), results.failed.len());
}

/// Where the client's source is unpacked, after it was fetched if need be, with an environment to run it in.
fn locate() -> io::Result<PathBuf> {
    let directory = command::target_directory()?.join("suites").join("redis-py");
    let suite = directory.join(format!("redis-{VERSION}"));
    let fetched = fetch(&directory, &suite);
    fetched.map(|()| suite.clone()).map_err(|error| {
        let place = suite.display();
        io::Error::other(format!(
            "cannot fetch the tests of redis-py {VERSION} ({error}); unpack its source as {place}"
        ))
    })
}

fn fetch(directory: &Path, suite: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    let environment = directory.join("venv");
    let pip = || {
        let mut pip = Command::new(environment.join("bin").join("python"));
        pip.current_dir(directory).args(["-m", "pip", "--quiet", "--disable-pip-version-check"]);
        pip
    };
    if !environment.join("bin").join("pytest").is_file() {
        let python = setup::find("python3").ok_or_else(|| io::Error::other("no python3 here"))?;
        command::run(Command::new(python).args(["-m", "venv"]).arg(&environment))?;
        command::run(pip().arg("install").args(PACKAGES))?;
    }
    if suite.join("tests").join("conftest.py").is_file() {
        return Ok(());
    }
    let wanted = format!("redis=={VERSION}");
    command::run(pip().args(["download", "--no-deps", "--no-binary", "redis", &wanted]))?;
    command::run(Command::new("tar").current_dir(directory).args(["-xzf", &format!("redis-{VERSION}.tar.gz")]))
}

/// A binary and its arguments.
type Through<'a> = (&'a Path, &'a [&'a str]);

/// One run of the tests against fresh servers.
fn attempt(suite: &Path, files: &[&str], protocol: u8, through: Option<Through<'_>>) -> io::Result<Results> {
    let server = RedisServer::start_with(&SERVER_ARGUMENTS)?;
    let start = |(binary, arguments): Through<'_>| Respool::start(binary, &[server.tcp()], arguments);
    let respool = through.map(start).transpose()?;
    let address: Address = respool.as_ref().map_or(server.tcp(), Respool::tcp);
    let log = suite.join(format!("resp{protocol}-{}.log", if respool.is_some() { "through" } else { "straight" }));
    let output = fs::File::create(&log)?;
    let mut tests = Command::new(suite.with_file_name("venv").join("bin").join("python"));
    tests.current_dir(suite).env("PYTHONPATH", suite).env("PYTHONDONTWRITEBYTECODE", "1");
    tests.args(["-m", "pytest", "-p", "no:cacheprovider", "--quiet", "-rA", "--tb=short", "-W", "ignore"]);
    tests.args(["--timeout", TEST_SECONDS, "--timeout-method=signal", "-m", MARKS]);
    tests.arg(format!("--redis-url=redis://{address}/0")).arg(format!("--protocol={protocol}")).args(files);
    // Its own code says only whether all passed.
    tests.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output).status()?;
    Ok(read(&String::from_utf8_lossy(&fs::read(&log)?)))
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
    fn a_summary_is_read() {
        let text = "....F\nPASSED tests/a.py::A::one\nPASSED tests/a.py::A::two[x y]\nFAILED tests/a.py::A::three - Error: PASSED\n\
            ERROR tests/a.py::A::one - at the end\nSKIPPED [1] tests/a.py:3: no\n2 passed in 1s\n";
        let results = read(text);
        assert_eq!(results.passed.iter().collect::<Vec<_>>(), ["tests/a.py::A::two[x y]"]);
        assert_eq!(results.failed.iter().collect::<Vec<_>>(), ["tests/a.py::A::one", "tests/a.py::A::three"]);
    }
}
