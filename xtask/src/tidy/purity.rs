//! The pure crates never name sockets, files, clocks, threads or chance.
//!
//! Sources are searched for the names, which finds a slip even where clippy is not run; clippy finds it by type, and it
//! is checked here that it looks. Unit tests (after `#[cfg(test)]`) may use what they like.

use std::fs;

use super::text::{lines_of_code, rust_files};
use crate::command;

/// Crates whose behaviour depends on their arguments alone.
const PURE: [&str; 7] = ["wire", "command", "connection", "access", "route", "engine", "proxy"];

/// Parts of `std` that a pure crate may not name, by path or inside braces.
const STD_MODULES: [&str; 7] = ["net", "fs", "thread", "process", "env", "os", "io"];
/// Traits and types of `std::io` do no input or output by themselves, its functions do.
const IO_FUNCTIONS: [&str; 3] = ["stdin", "stdout", "stderr"];

const WORDS: [&str; 8] = ["Instant", "SystemTime", "tokio", "mio", "rand", "fastrand", "getrandom", "rustix"];

pub(super) fn check() -> Vec<String> {
    let mut complaints = Vec::new();
    let crates = command::root().join("crates");
    let lints = fs::read_to_string(crates.join("pure.clippy.toml")).unwrap_or_default();
    for name in PURE {
        let directory = crates.join(name);
        if !lints.contains("disallowed-types")
            || fs::read_to_string(directory.join("clippy.toml")).ok().as_ref() != Some(&lints)
        {
            complaints.push(format!("crates/{name}/clippy.toml is not crates/pure.clippy.toml"));
        }
        for file in rust_files(&directory.join("src")) {
            let text = fs::read_to_string(&file).unwrap_or_default();
            for (number, line) in lines_of_code(&text) {
                if let Some(what) = impurity(line) {
                    complaints.push(format!("{}:{number}: names {what}", file.display()));
                }
            }
        }
    }
    complaints
}

/// What a line of code names that it should not.
fn impurity(line: &str) -> Option<String> {
    let words = words(line);
    let follows = |first: &str, second: &str| words.windows(2).any(|pair| pair[0] == first && pair[1] == second);
    // `use std::{fs, net}` names modules without the path before them.
    let is_import_list = line.trim_start().starts_with("use std::{");
    let is_module_named = |module: &str| follows("std", module) || (is_import_list && words.contains(&module));
    let module = STD_MODULES.iter().find(|&&module| module != "io" && is_module_named(module));
    let function = IO_FUNCTIONS.iter().find(|&&function| follows("io", function));
    let word = WORDS.iter().find(|word| words.contains(word));
    module.map(|module| format!("std::{module}")).or(function.or(word).map(|&word| word.to_owned()))
}

fn words(line: &str) -> Vec<&str> {
    let is_part = |character: char| character.is_alphanumeric() || character == '_';
    line.split(|character| !is_part(character)).filter(|word| !word.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pure_crates_are_pure() {
        assert_eq!(check(), Vec::<String>::new());
    }

    #[test]
    fn impure_lines_are_found() {
        for line in [
            "use std::net::TcpStream;",
            "use std::{fmt, fs};",
            "    let now = Instant::now();",
            "std::thread::spawn(f)",
            "use rand::Rng;",
            "std::io::stdout()",
        ] {
            assert!(impurity(line).is_some(), "{line}");
        }
        for line in ["use std::collections::HashMap;", "use std::{fmt, mem};", "let instant = operand;", "let net = 1;"]
        {
            assert_eq!(impurity(line), None, "{line}");
        }
    }
}
