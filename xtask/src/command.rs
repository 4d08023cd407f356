//! Running other programs, and where things are in the workspace.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs, io};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The workspace's root directory.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace")
}

/// The cargo that started this program, run in the workspace's root.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// Runs `command` with its output shown, after a line that says what is run.
pub(crate) fn run(command: &mut Command) -> io::Result<()> {
    println!("$ {}", shown(command));
    let status = command.stdin(Stdio::null()).status().map_err(|error| cannot_run(command, &error))?;
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("`{}` failed: {status}", shown(command)))) }
}

/// Runs `command` silently and returns its standard output.
pub(crate) fn capture(command: &mut Command) -> io::Result<String> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| cannot_run(command, &error))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(io::Error::other(format!("`{}` failed: {}\n{said}", shown(command), output.status)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// What cargo knows about the workspace and everything it depends on.
pub(crate) fn metadata(arguments: &[&str]) -> io::Result<serde_json::Value> {
    let text = capture(cargo().args(["metadata", "--format-version", "1", "--locked"]).args(arguments))?;
    Ok(serde_json::from_str(&text)?)
}

/// Builds the respool binary and returns its path.
pub(crate) fn build_respool(profile: &str) -> io::Result<PathBuf> {
    run(cargo().args(["build", "--locked", "--package", "respool", "--bin", "respool", "--profile", profile]))?;
    let directory = if profile == "dev" { "debug" } else { profile };
    Ok(target_directory()?.join(directory).join("respool"))
}

/// Where cargo puts what it builds, and this program what it fetches.
pub(crate) fn target_directory() -> io::Result<PathBuf> {
    let metadata = metadata(&["--no-deps"])?;
    Ok(metadata["target_directory"].as_str().expect("cargo metadata names the target directory").into())
}

/// The rows of a table in `xtask/expected`: fields between tabs, comments behind `#`.
pub(crate) fn expected(file: &str, columns: usize) -> io::Result<Vec<Vec<String>>> {
    let path = root().join("xtask").join("expected").join(file);
    let text = fs::read_to_string(&path)
        .map_err(|error| io::Error::new(error.kind(), format!("cannot read {}: {error}", path.display())))?;
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let fields: Vec<String> = line.split('\t').map(str::to_owned).collect();
            let is_whole = fields.len() == columns && fields.iter().all(|field| !field.is_empty());
            if is_whole { Ok(fields) } else { Err(malformed(file, line, &format!("not {columns} fields"))) }
        })
        .collect()
}

pub(crate) fn malformed(file: &str, line: &str, error: &dyn std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("xtask/expected/{file}: {line:?}: {error}"))
}

/// Raises this process's own limit of open files if it is lower.
pub(crate) fn allow_open_files(count: u64) -> io::Result<()> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < count) {
        let wanted = Rlimit { current: Some(count), maximum: limit.maximum };
        setrlimit(Resource::Nofile, wanted)
            .map_err(|error| io::Error::other(format!("{count} open files are needed (ulimit -n): {error}")))?;
    }
    Ok(())
}

fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

fn cannot_run(command: &Command, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot run {}: {error}", command.get_program().to_string_lossy()))
}
