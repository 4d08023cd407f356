//! The texts of the sources: how they open, how long they are, what was left lying about.

use std::fs;
use std::path::{Path, PathBuf};

use crate::command;

/// Files longer than this say why, in a comment that holds [`EXCUSE`]; tables of rows need no excuse.
const LINES_MAX: usize = 800;
const EXCUSE: &str = "Long because";

/// Names of functions, of tests above all, are no longer than this.
const NAME_MAX: usize = 60;

/// Where Rust sources are.
const DIRECTORIES: [&str; 3] = ["crates", "xtask", "fuzz"];

pub(super) fn check() -> Vec<String> {
    let mut complaints = Vec::new();
    for directory in DIRECTORIES {
        for file in rust_files(&command::root().join(directory)) {
            let text = fs::read_to_string(&file).unwrap_or_default();
            let name = file.strip_prefix(command::root()).unwrap_or(&file).to_string_lossy().into_owned();
            complaints.extend(complaints_about(&name, &text).into_iter().map(|what| format!("{name}: {what}")));
        }
    }
    complaints
}

fn complaints_about(name: &str, text: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    let opening = text.lines().find(|line| !line.starts_with("#![")).unwrap_or_default();
    // `include!` takes no inner comment in the middle of an example.
    let mark = if name.contains("/doc/") { "// " } else { "//!" };
    if !opening.starts_with(mark) {
        complaints.push(format!("does not open with a paragraph about itself (`{mark}`)"));
    }
    let count = text.lines().count();
    if count > LINES_MAX && !name.contains("/table/") && !text.contains(EXCUSE) {
        complaints.push(format!("has {count} lines: split it, or say `{EXCUSE} ...`"));
    }
    let is_root = name.ends_with("src/lib.rs") || name.ends_with("src/main.rs");
    let has_code = text.lines().any(|line| !line.starts_with("//!") && !line.is_empty());
    if is_root && has_code && !text.contains("#![forbid(unsafe_code)]") {
        complaints.push("lacks #![forbid(unsafe_code)]".into());
    }
    for (number, line) in text.lines().enumerate() {
        if let Some(leftover) = leftovers().iter().find(|leftover| line.contains(leftover.as_str())) {
            complaints.push(format!("line {}: {leftover}", number + 1));
        }
        if let Some(name) = function_in(line).filter(|name| name.len() > NAME_MAX) {
            complaints.push(format!("line {}: {name} has {} characters, more than {NAME_MAX}", number + 1, name.len()));
        }
    }
    complaints
}

/// The name of the function that a line begins.
fn function_in(line: &str) -> Option<&str> {
    let (before, name) = line.split_once("fn ")?;
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let is_function =
        before.split_whitespace().all(|word| word.starts_with("pub") || ["async", "const"].contains(&word));
    is_function.then(|| name.split(|c| !is_word(c)).next().unwrap_or_default())
}

/// Written in two parts, so that this file does not complain about itself.
fn leftovers() -> [String; 6] {
    [("TO", "DO"), ("FIX", "ME"), ("XX", "X:"), ("#[ig", "nore"), ("to", "do!("), ("unimple", "mented!(")]
        .map(|(first, second)| format!("{first}{second}"))
}

/// All Rust sources below a directory, build products excepted.
pub(super) fn rust_files(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let Ok(entries) = fs::read_dir(directory) else { return files };
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        if path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// Numbered lines without comments, up to the unit tests at the end of the file.
pub(super) fn lines_of_code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let code = text.lines().enumerate().take_while(|(_, line)| !line.trim_start().starts_with("#[cfg(test)]"));
    code.map(|(number, line)| (number + 1, line.split("//").next().unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_tidy() {
        assert_eq!(check(), Vec::<String>::new());
    }

    #[test]
    fn untidy_sources_are_found() {
        let good = "//! A noun.\n#![forbid(unsafe_code)]\n";
        assert_eq!(complaints_about("crates/x/src/lib.rs", good), Vec::<String>::new());
        assert_eq!(complaints_about("crates/x/src/lib.rs", "//! A noun.\nfn main() {}\n").len(), 1);
        assert_eq!(complaints_about("crates/x/src/noun.rs", "use std::fmt;\n").len(), 1);
        let long = good.to_owned() + &"\n".repeat(LINES_MAX);
        assert_eq!(complaints_about("crates/x/src/noun.rs", &long).len(), 1);
        assert_eq!(complaints_about("crates/x/src/table/noun.rs", &long).len(), 0);
        let named = |length| format!("//! A noun.\n    pub(crate) fn {}() {{\n", "n".repeat(length));
        assert_eq!(complaints_about("crates/x/src/noun.rs", &named(NAME_MAX)).len(), 0);
        assert_eq!(complaints_about("crates/x/src/noun.rs", &named(NAME_MAX + 1)).len(), 1);
        for leftover in leftovers() {
            assert_eq!(complaints_about("crates/x/src/noun.rs", &format!("//! A noun.\n// {leftover}\n")).len(), 1);
        }
    }

    #[test]
    fn comments_and_unit_tests_are_no_code() {
        let text = "//! Doc.\ncode // comment\n#[cfg(test)]\nmod tests {}\n";
        assert_eq!(lines_of_code(text).collect::<Vec<_>>(), [(1, ""), (2, "code ")]);
    }
}
