//! The suites' sources: Debian's source packages of the redis that is installed and of the newest Valkey, fetched once into the
//! target directory.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use crate::{command, setup};

/// Whose tests are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Suite {
    /// Those of redis 7.0.15.
    Redis,
    /// Those of the Valkey that Debian's unstable distribution has.
    Valkey,
}

impl Suite {
    /// The name of the source package, and of the folder that everything of it is in.
    fn package(self) -> &'static str {
        match self {
            Self::Redis => "redis",
            Self::Valkey => "valkey",
        }
    }

    /// The folder that its sources are unpacked in.
    fn folder(self) -> &'static str {
        match self {
            Self::Redis => "redis-7.0.15",
            Self::Valkey => "valkey",
        }
    }

    /// What apt is asked for: the version that belongs to the system, or that of a distribution.
    fn wanted(self) -> &'static str {
        match self {
            Self::Redis => "redis",
            Self::Valkey => "valkey/sid",
        }
    }

    /// How the name of the description begins that is unpacked.
    fn description(self) -> &'static str {
        match self {
            Self::Redis => "redis_7.0.15-",
            Self::Valkey => "valkey_",
        }
    }

    /// Programs that some tests start themselves, the server first, and what stands for each where there is nothing of that name.
    fn programs(self) -> [(&'static str, &'static str); 5] {
        match self {
            Self::Redis => [
                ("redis-server", "redis-server"),
                ("redis-cli", "redis-cli"),
                ("redis-benchmark", "redis-benchmark"),
                ("redis-check-aof", "redis-check-aof"),
                ("redis-check-rdb", "redis-check-rdb"),
            ],
            Self::Valkey => [
                ("valkey-server", "redis-server"),
                ("valkey-cli", "redis-cli"),
                ("valkey-benchmark", "redis-benchmark"),
                ("valkey-check-aof", "redis-check-aof"),
                ("valkey-check-rdb", "redis-check-rdb"),
            ],
        }
    }

    /// The server's name in the suite's folder of programs.
    pub(super) fn server(self) -> &'static str {
        self.programs()[0].0
    }
}

/// Where the unpacked suite is: `given`, or what was fetched earlier, or what is fetched now.
pub(super) fn locate(suite: Suite, given: Option<&Path>) -> io::Result<PathBuf> {
    let source = match given {
        Some(path) => path.canonicalize()?,
        None => {
            let directory = command::target_directory()?.join("suites").join(suite.package());
            let source = directory.join(suite.folder());
            if !is_suite(&source) {
                fetch(suite, &directory).map_err(|error| cannot_fetch(suite, &source, &error))?;
            }
            source
        }
    };
    if !is_suite(&source) {
        return Err(io::Error::other(format!("{} does not hold the suite of {}", source.display(), suite.folder())));
    }
    if setup::find("tclsh").is_none() {
        return Err(io::Error::other("no tclsh here: run `cargo xtask setup`, or install the package tcl"));
    }
    link_programs(suite, &source)?;
    Ok(source)
}

/// A folder with the programs of the suite, where `program` stands in the place of its server; and the suite itself in the folder above,
/// as that of redis takes programs from nowhere else.
pub(super) fn with_server(suite: Suite, source: &Path, program: &Path) -> io::Result<PathBuf> {
    let tree = command::target_directory()?.join("suites").join(format!("{}-by-respool", suite.package()));
    let programs = tree.join("src");
    fs::create_dir_all(&programs)?;
    // The suite is told where its tests are by its working directory.
    for entry in fs::read_dir(source)? {
        let entry = entry?;
        let link = tree.join(entry.file_name());
        if entry.file_name() == "tests" {
            copy_tests(&entry.path(), &link)?;
        } else if link.file_name() != programs.file_name() && fs::symlink_metadata(&link).is_err() {
            std::os::unix::fs::symlink(entry.path(), link)?;
        }
    }
    for (name, _) in suite.programs() {
        let link = programs.join(name);
        if fs::symlink_metadata(&link).is_ok() {
            fs::remove_file(&link)?;
        }
        let own = if name == suite.server() { program.to_owned() } else { source.join("src").join(name) };
        std::os::unix::fs::symlink(own, link)?;
    }
    Ok(tree)
}

/// What servers of the suite are given that `respool server` does not start with: there is no such thing here. A unit would end with its
/// first server that does not start, so the tests of these have a tag by which they are left out.
const NOT_HERE: [(&str, &str); 5] = [
    ("appendonly yes", "needs:save"),
    ("appendonly {yes}", "needs:save"),
    ("cluster-enabled yes", "needs:cluster"),
    ("rename-command", "needs:rename"),
    ("lua-enable-deprecated-api", "needs:deprecated"),
];

/// What a test does that needs what there is not here, whatever its own tags say.
const NOT_POSSIBLE: [(&str, &str); 3] = [
    ("attach_to_replication_stream", "needs:repl"),
    ("bgrewriteaof", "needs:save"),
    ("config set appendonly yes", "needs:save"),
];

/// The lines of a file of tests, with those tags on servers and tests that need such a thing.
fn tagged(text: &str) -> String {
    let lines: Vec<&str> = text.split('\n').collect();
    let mut tagged: Vec<String> = lines.iter().map(|line| tagged_line(line)).collect();
    for (start, line) in lines.iter().enumerate() {
        let indentation = &line[..line.len() - line.trim_start().len()];
        let is_test = line.trim_start().starts_with("test ") && line.ends_with('{');
        let is_end = |line: &&str| line.strip_prefix(indentation).is_some_and(|rest| rest.starts_with('}'));
        let length = lines[start + 1..].iter().position(is_end).filter(|_| is_test);
        let Some(end) = length.map(|length| start + 1 + length) else { continue };
        let body = &lines[start + 1..end];
        let needs = |what: &str| body.iter().any(|line| line.to_ascii_lowercase().contains(what));
        let needed = NOT_POSSIBLE.iter().find(|(what, _)| needs(what));
        if let Some((_, tag)) = needed
            && let Some(last) = tagged_end(lines[end], tag)
        {
            tagged[end] = last;
        }
    }
    tagged.join("\n")
}

/// The last line of a test with one more tag: behind its body are what it is to give, if that matters, and its tags.
fn tagged_end(line: &str, tag: &str) -> Option<String> {
    let (mut depth, mut words) = (1_i32, 0);
    for byte in line.trim_start().bytes() {
        match byte {
            b'{' => {
                words += i32::from(depth == 0);
                depth += 1;
            }
            b'}' => depth -= 1,
            b' ' => {}
            // A word without braces would need more care, and no test that is meant has one.
            _ if depth == 0 => return None,
            _ => {}
        }
    }
    match (depth, words) {
        (0, 0) => Some(format!("{line} undefined {{{tag}}}")),
        (0, 1) => Some(format!("{line} {{{tag}}}")),
        (0, 2) => line.strip_suffix('}').map(|line| format!("{line} {tag}}}")),
        _ => None,
    }
}

/// A line: what is not within a test ends the unit as well.
fn tagged_line(line: &str) -> String {
    let is_server = line.trim_start().starts_with("start_server ");
    let needed = NOT_HERE.iter().find(|(given, _)| line.contains(given));
    match needed.filter(|_| is_server) {
        Some((_, tag)) if line.contains("tags {") => line.replacen("tags {", &format!("tags {{{tag} "), 1),
        Some((_, tag)) => line.replacen("start_server {", &format!("start_server {{tags {{{tag}}} "), 1),
        None => line.to_owned(),
    }
}

/// Copies the tests, with tags on what cannot run here.
fn copy_tests(from: &Path, to: &Path) -> io::Result<()> {
    if fs::symlink_metadata(to).is_ok_and(|known| known.is_symlink()) {
        fs::remove_file(to)?;
    }
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            // What earlier runs have left.
            if entry.file_name() != "tmp" {
                copy_tests(&entry.path(), &target)?;
            }
        } else if entry.path().extension().is_some_and(|kind| kind == "tcl") {
            // Some tests have bytes that are no text.
            let bytes = fs::read(entry.path())?;
            let text = match String::from_utf8(bytes) {
                Ok(text) => tagged(&text).into_bytes(),
                Err(error) => error.into_bytes(),
            };
            fs::write(target, text)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    fs::create_dir_all(to.join("tmp"))
}

fn is_suite(source: &Path) -> bool {
    source.join("tests").join("test_helper.tcl").is_file()
}

fn cannot_fetch(suite: Suite, source: &Path, error: &io::Error) -> io::Error {
    io::Error::other(format!(
        "cannot fetch the suite ({error}); unpack the source of {} as {} or name its place with --source",
        suite.folder(),
        source.display()
    ))
}

/// Downloads and unpacks. The system's lists of packages stay as they are: apt gets a list of sources, and a place for what
/// it learns, of its own.
fn fetch(suite: Suite, directory: &Path) -> io::Result<()> {
    let lists = directory.join("lists");
    fs::create_dir_all(lists.join("partial"))?;
    let (list, text) = source_list(suite)?;
    let list = directory.join(list);
    fs::write(&list, text)?;
    let apt = || {
        let mut apt = Command::new("apt-get");
        apt.current_dir(directory).args(["--quiet", "-o", "Dir::Etc::sourceparts=/dev/null"]);
        apt.args(["-o", "APT::Sandbox::User=root"]);
        apt.arg("-o").arg(format!("Dir::Etc::sourcelist={}", list.display()));
        apt.arg("-o").arg(format!("Dir::State::lists={}", lists.display()));
        apt
    };
    command::run(apt().arg("update"))?;
    command::run(apt().args(["source", "--download-only", suite.wanted()]))?;
    let mut names = fs::read_dir(directory)?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let description = names
        .find(|name| name.starts_with(suite.description()) && name.ends_with(".dsc"))
        .ok_or_else(|| io::Error::other(format!("there is no package that begins with {}", suite.description())))?;
    let unpack = ["--no-check", "-x", &description, suite.folder()];
    command::run(Command::new("dpkg-source").current_dir(directory).args(unpack))
}

/// The system's own list with sources in place of packages, and the name it needs: apt tells its two formats by it.
fn source_list(suite: Suite) -> io::Result<(&'static str, String)> {
    if suite == Suite::Valkey {
        // No distribution that is released has it in the version that is wanted.
        let key = "/usr/share/keyrings/debian-archive-keyring.gpg";
        let place = "URIs: http://deb.debian.org/debian\nSuites: sid\nComponents: main";
        return Ok(("src.sources", format!("Types: deb-src\n{place}\nSigned-By: {key}\n")));
    }
    if let Ok(text) = fs::read_to_string("/etc/apt/sources.list.d/debian.sources") {
        return Ok(("src.sources", text.replace("Types: deb\n", "Types: deb-src\n")));
    }
    let text = fs::read_to_string("/etc/apt/sources.list")?;
    let lines = text.lines().filter_map(|line| line.strip_prefix("deb ").map(|rest| format!("deb-src {rest}\n")));
    Ok(("src.list", lines.collect()))
}

/// The suite looks for programs where a build would have left them.
fn link_programs(suite: Suite, source: &Path) -> io::Result<()> {
    for (program, stand_in) in suite.programs() {
        let link = source.join("src").join(program);
        if link.exists() {
            continue;
        }
        let path = setup::find(program)
            .or_else(|| setup::find(stand_in))
            .ok_or_else(|| io::Error::other(format!("no {program} here: run `cargo xtask setup`")))?;
        std::os::unix::fs::symlink(path, link)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_that_cannot_start_here_are_tagged() {
        for (line, expected) in [
            (
                "    start_server {overrides {appendonly {yes}} tags {external:skip}} {",
                "    start_server {overrides {appendonly {yes}} tags {needs:save external:skip}} {",
            ),
            (
                "start_server {overrides {appendonly yes save {}}} {",
                "start_server {tags {needs:save} overrides {appendonly yes save {}}} {",
            ),
            (
                "start_server {tags {\"a b\"} overrides {rename-command {x y}}} {",
                "start_server {tags {needs:rename \"a b\"} overrides {rename-command {x y}}} {",
            ),
            ("start_server {tags {\"a\"}} {", "start_server {tags {\"a\"}} {"),
            ("    r config set appendonly yes", "    r config set appendonly yes"),
        ] {
            assert_eq!(tagged(line), expected);
        }
    }

    #[test]
    fn tests_that_read_replication_or_append_only_files_are_tagged() {
        let test = |body: &str, end: &str| format!("  test {{a}} {{\n    if {{1}} {{\n{body}\n    }}\n{end}\n  other");
        let repl = "      set repl [attach_to_replication_stream]";
        for (body, end, expected) in [
            (repl, "  }", "  } undefined {needs:repl}"),
            (repl, "  } {}", "  } {} {needs:repl}"),
            (repl, "  } {1 {2}} {needs:debug}", "  } {1 {2}} {needs:debug needs:repl}"),
            ("      r bgrewriteaof", "  } {OK}", "  } {OK} {needs:save}"),
            ("      r config set appendonly yes", "  } {-1} {needs:debug}", "  } {-1} {needs:debug needs:save}"),
            // The keys are loaded from memory here.
            ("      r debug loadaof", "  }", "  }"),
            // A pattern of several lines is left alone.
            (repl, "  } {a", "  } {a"),
            (repl, "  } \"a\"", "  } \"a\""),
        ] {
            assert_eq!(tagged(&test(body, end)), test(body, expected));
        }
        let apart = format!("{repl}\n  test {{a}} {{\n    r set a b\n  }} {{}}\n{repl}");
        assert_eq!(tagged(&apart), apart, "what stands beside a test is not within it");
    }
}
