//! The suite's sources: Debian's source package of the redis that is installed, fetched once into the target directory.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use crate::{command, setup};

/// Its directory's name, which is how its version is checked.
const NAME: &str = "redis-7.0.15";

/// Programs that some tests start themselves.
const PROGRAMS: [&str; 5] = ["redis-server", "redis-cli", "redis-benchmark", "redis-check-aof", "redis-check-rdb"];

/// Where the unpacked suite is: `given`, or what was fetched earlier, or what is fetched now.
pub(super) fn locate(given: Option<&Path>) -> io::Result<PathBuf> {
    let source = match given {
        Some(path) => path.canonicalize()?,
        None => {
            let directory = command::target_directory()?.join("suites").join("redis");
            let source = directory.join(NAME);
            if !is_suite(&source) {
                fetch(&directory).map_err(|error| cannot_fetch(&source, &error))?;
            }
            source
        }
    };
    if !is_suite(&source) {
        return Err(io::Error::other(format!("{} does not hold the suite of {NAME}", source.display())));
    }
    if setup::find("tclsh").is_none() {
        return Err(io::Error::other("no tclsh here: run `cargo xtask setup`, or install the package tcl"));
    }
    link_programs(&source)?;
    Ok(source)
}

/// The suite in a folder of its own, where `program` stands in the place of redis-server.
pub(super) fn with_server(source: &Path, program: &Path) -> io::Result<PathBuf> {
    let tree = command::target_directory()?.join("suites").join("redis-by-respool");
    let programs = tree.join("src");
    fs::create_dir_all(&programs)?;
    // The suite writes beside its tests, and is told where they are by its working directory.
    for entry in fs::read_dir(source)? {
        let entry = entry?;
        let link = tree.join(entry.file_name());
        if link.file_name() != programs.file_name() && fs::symlink_metadata(&link).is_err() {
            std::os::unix::fs::symlink(entry.path(), link)?;
        }
    }
    for name in PROGRAMS {
        let link = programs.join(name);
        if fs::symlink_metadata(&link).is_ok() {
            fs::remove_file(&link)?;
        }
        let own = if name == "redis-server" { program.to_owned() } else { source.join("src").join(name) };
        std::os::unix::fs::symlink(own, link)?;
    }
    Ok(tree)
}

fn is_suite(source: &Path) -> bool {
    source.join("tests").join("test_helper.tcl").is_file()
}

fn cannot_fetch(source: &Path, error: &io::Error) -> io::Error {
    io::Error::other(format!(
        "cannot fetch the suite ({error}); unpack the source of {NAME} as {} or name its place with --source",
        source.display()
    ))
}

/// Downloads and unpacks. The system's lists of packages stay as they are: apt gets a list of sources, and a place for what
/// it learns, of its own.
fn fetch(directory: &Path) -> io::Result<()> {
    let lists = directory.join("lists");
    fs::create_dir_all(lists.join("partial"))?;
    let (list, text) = source_list()?;
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
    command::run(apt().args(["source", "--download-only", "redis"]))?;
    let mut names = fs::read_dir(directory)?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let description = names
        .find(|name| name.starts_with("redis_7.0.15-") && name.ends_with(".dsc"))
        .ok_or_else(|| io::Error::other("this system's redis is not 7.0.15"))?;
    command::run(Command::new("dpkg-source").current_dir(directory).args(["--no-check", "-x", &description, NAME]))
}

/// The system's own list with sources in place of packages, and the name it needs: apt tells its two formats by it.
fn source_list() -> io::Result<(&'static str, String)> {
    if let Ok(text) = fs::read_to_string("/etc/apt/sources.list.d/debian.sources") {
        return Ok(("src.sources", text.replace("Types: deb\n", "Types: deb-src\n")));
    }
    let text = fs::read_to_string("/etc/apt/sources.list")?;
    let lines = text.lines().filter_map(|line| line.strip_prefix("deb ").map(|rest| format!("deb-src {rest}\n")));
    Ok(("src.list", lines.collect()))
}

/// The suite looks for programs where a build would have left them.
fn link_programs(source: &Path) -> io::Result<()> {
    for program in PROGRAMS {
        let link = source.join("src").join(program);
        if link.exists() {
            continue;
        }
        let path = setup::find(program)
            .ok_or_else(|| io::Error::other(format!("no {program} here: run `cargo xtask setup`")))?;
        std::os::unix::fs::symlink(path, link)?;
    }
    Ok(())
}
