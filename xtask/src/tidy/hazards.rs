//! What docs/testing.md says is tested is tested: every test, file and verb that it names exists.
//!
//! The page names tests by functions. `behaviour::x` is a file of the binary's behaviour tests and `behaviour::x::y` a
//! test in it; a path is one within `crates` or within the binary's crate; a name that stands alone belongs to the file
//! named last for the same hazard. Hazards are headings of the third level, and the list below each has its tests.

use std::fs;
use std::path::{Path, PathBuf};

use clap::CommandFactory;

use super::text::rust_files;
use crate::{Arguments, command};

const PAGE: &str = "docs/testing.md";
/// Places whose sources read environment variables.
const SOURCES: [&str; 2] = ["crates", "xtask"];

pub(super) fn check() -> Vec<String> {
    let root = command::root();
    let verbs: Vec<String> = Arguments::command().get_subcommands().map(|verb| verb.get_name().to_owned()).collect();
    match fs::read_to_string(root.join(PAGE)) {
        Ok(text) => complaints_about(&text, root, &verbs),
        Err(error) => vec![format!("{PAGE}: {error}")],
    }
}

fn complaints_about(text: &str, root: &Path, verbs: &[String]) -> Vec<String> {
    let mut complaints = Vec::new();
    // The file that was named last in the same hazard.
    let mut file: Option<PathBuf> = None;
    for (number, text) in statements(text) {
        let mut complain = |name: &str, why: &str| complaints.push(format!("{PAGE}:{number}: {name}: {why}"));
        let tests = match &text {
            Statement::Hazard => {
                file = None;
                continue;
            }
            Statement::Tests(tests) => tests,
        };
        for (name, _) in spans(tests).iter().filter(|(name, _)| name.starts_with("RESPOOL_")) {
            let variable = name.split('=').next().unwrap_or_default();
            if !is_read(variable, root) {
                complain(name, "nothing reads it");
            }
        }
        for (name, before) in spans(tests).into_iter().filter(|(name, _)| !name.starts_with("RESPOOL_")) {
            let (named, test) = match name.strip_prefix("behaviour::") {
                Some(path) => {
                    let (module, test) = path.split_once("::").map_or((path, None), |(file, test)| (file, Some(test)));
                    (Some(root.join(format!("crates/respool/tests/behaviour/{module}.rs"))), test)
                }
                None if name.ends_with(".rs") => (Some(source(name, root)), None),
                None if before.trim_end().ends_with("fuzz target") => {
                    (Some(root.join(format!("fuzz/fuzz_targets/{name}.rs"))), None)
                }
                None => (None, Some(name)),
            };
            if let Some(verb) = name.strip_prefix("cargo xtask ") {
                if !verbs.iter().any(|known| verb.split(' ').next() == Some(known)) {
                    complain(name, "no such verb");
                }
                continue;
            }
            if named.is_some() {
                file = named;
            }
            match (&file, test) {
                (Some(file), _) if !file.is_file() => complain(name, "no such file"),
                (Some(file), Some(test)) if !has_test(&fs::read_to_string(file).unwrap_or_default(), test) => {
                    complain(name, &format!("no such test in {}", file.display()));
                }
                (None, Some(_)) => complain(name, "of which file?"),
                _ => {}
            }
        }
    }
    complaints
}

/// What the page says of tests.
enum Statement {
    /// A hazard begins.
    Hazard,
    /// Its tests, or an environment variable that tests read.
    Tests(String),
}

/// The hazards with the lists of their tests, and what tables begin with if it is an environment variable, each with the
/// number of its line.
fn statements(text: &str) -> Vec<(usize, Statement)> {
    let mut statements = Vec::new();
    let mut is_hazard = false;
    for (number, line) in text.lines().enumerate().map(|(at, line)| (at + 1, line)) {
        if line.starts_with('#') {
            is_hazard = line.starts_with("### ");
            statements.push((number, Statement::Hazard));
        } else if let Some(variable) = line.strip_prefix("| ").filter(|row| row.starts_with("`RESPOOL_")) {
            let names = variable.split(" | ").next().unwrap_or_default();
            statements.push((number, Statement::Tests(names.to_owned())));
        } else if is_hazard && let Some(tests) = line.strip_prefix("* ") {
            statements.push((number, Statement::Tests(tests.to_owned())));
        } else if is_hazard
            && let Some(rest) = line.strip_prefix("  ")
            && let Some((_, Statement::Tests(tests))) = statements.last_mut()
        {
            tests.push(' ');
            tests.push_str(rest);
        }
    }
    statements
}

/// What stands between backticks, and what stands before it.
fn spans(text: &str) -> Vec<(&str, &str)> {
    let parts: Vec<&str> = text.split('`').collect();
    parts.chunks_exact(2).map(|pair| (pair[1], pair[0])).collect()
}

/// Where the file of a path within a crate is.
fn source(path: &str, root: &Path) -> PathBuf {
    let within_crates = root.join("crates").join(path);
    if within_crates.is_file() { within_crates } else { root.join("crates/respool").join(path) }
}

/// Whether a test of that name is in the text: a function right behind `#[test]`, or behind other attributes of it.
fn has_test(text: &str, name: &str) -> bool {
    let head = format!("fn {name}(");
    let mut is_test = false;
    for line in text.lines().map(str::trim_start) {
        if line.starts_with("#[test]") {
            is_test = true;
        } else if !line.starts_with("#[") && !line.starts_with("//") {
            if is_test && line.starts_with(&head) {
                return true;
            }
            is_test = false;
        }
    }
    false
}

fn is_read(variable: &str, root: &Path) -> bool {
    let quoted = format!("\"{variable}\"");
    let mut files = SOURCES.iter().flat_map(|directory| rust_files(&root.join(directory)));
    files.any(|file| fs::read_to_string(file).is_ok_and(|text| text.contains(&quoted)))
}

#[cfg(test)]
mod tests {
    use respool_testkit::TempDir;

    use super::*;

    #[test]
    fn every_test_that_the_page_names_exists() {
        assert_eq!(check(), Vec::<String>::new());
    }

    #[test]
    fn names_of_nothing_are_found() {
        let directory = TempDir::new().unwrap();
        let root = directory.path();
        for (path, text) in [
            ("crates/respool/tests/behaviour/order.rs", "#[test]\nfn in_order() {}\nfn no_test() {}\n"),
            (
                "crates/respool/tests/tls.rs",
                "#[test]\n// Why.\n#[cfg(unix)]\nfn shakes_hands() { env(\"RESPOOL_N\") }\n",
            ),
            ("crates/wire/src/reply.rs", "    #[test]\n    fn reads() {}\n"),
            ("fuzz/fuzz_targets/keys.rs", ""),
        ] {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), text).unwrap();
        }
        let complaints = |tests: &str| {
            let page =
                if tests.starts_with('|') { tests.to_owned() } else { format!("### A hazard\n\nNever.\n\n{tests}") };
            complaints_about(&page, root, &["attribution".to_owned()])
        };
        for good in [
            "* `behaviour::order::in_order`, `tests/tls.rs`: `shakes_hands`",
            "* `wire/src/reply.rs`: `reads`\n* `behaviour::order`:\n  `in_order`",
            "* fuzz target `keys`, by hand `cargo xtask attribution`, with `RESPOOL_N=20`",
            "| `RESPOOL_N=20` | does something, as in `tests/nothing.rs` |",
            "prose about `behaviour::nothing`",
            "## Elsewhere\n\n* `behaviour::nothing`",
        ] {
            assert_eq!(complaints(good), Vec::<String>::new(), "{good}");
        }
        for (bad, why) in [
            ("* `behaviour::order::out_of_order`", "no such test"),
            ("* `behaviour::order::no_test`", "no such test"),
            ("* `behaviour::disorder::in_order`", "no such file"),
            ("* `wire/src/reply.rs`: `reads`,\n  `in_order`", "no such test"),
            ("* `tests/nothing.rs`", "no such file"),
            ("* `in_order`", "of which file?"),
            ("* `behaviour::order`\n\n### Another hazard\n\n* `in_order`", "of which file?"),
            ("* fuzz target `locks`", "no such file"),
            ("* `cargo xtask attributions`", "no such verb"),
            ("| `RESPOOL_M=20` | does nothing |", "nothing reads it"),
        ] {
            let found = complaints(bad);
            assert!(found.len() == 1 && found[0].contains(why), "{bad}: {found:?}");
        }
    }
}
