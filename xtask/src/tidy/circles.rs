//! Circles of imports within a crate: files that name each other, directly or through others, and so can only be read together.
//!
//! A file names another if a path of its code leads there: `crate::`, `super::` and `self::` paths wherever they stand, and
//! the `use` of a child module. Paths through a re-export count for the file that re-exports. The root of a crate
//! (`lib.rs`, `main.rs`) names everything and is left out, and so are unit tests.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::text::rust_files;
use crate::command;

/// The largest circle that each crate may have, in files; 1: none. These bounds are only ever lowered.
const CIRCLES_MAX: [(&str, usize); 16] = [
    ("crates/access", 1),
    ("crates/bench", 2),
    ("crates/cli", 2),
    ("crates/client", CLIENT_MAX),
    ("crates/client-derive", 1),
    ("crates/command", 2),
    ("crates/connection", 1),
    ("crates/engine", 2),
    ("crates/net", 2),
    ("crates/proxy", 2),
    ("crates/respool", 1),
    ("crates/route", 2),
    ("crates/sim", 2),
    ("crates/testkit", 1),
    ("crates/wire", 1),
    ("xtask", 2),
];

/// A node of the client has a side for subscriptions and lanes, and these go by its cluster when their slot moves: so what a cluster is made of,
/// its calls, its subscriptions and its caches name each other. Smaller ones: the core of a connection, and the generated commands, each of which names
/// the whole.
const CLIENT_MAX: usize = 31;

/// Names of modules, the root of the crate not among them.
type Module = Vec<String>;

pub(super) fn check() -> Vec<String> {
    let mut complaints = Vec::new();
    for (name, max) in CIRCLES_MAX {
        let graph = graph(&command::root().join(name).join("src"));
        let circle = largest_circle(&graph);
        if circle.len() > max {
            complaints.push(format!(
                "{name} has a circle of {} files, more than {max}: {}",
                circle.len(),
                shown(&circle)
            ));
        }
    }
    complaints
}

/// The largest circle of each crate that has one, and how large it may be.
pub(super) fn figures() -> String {
    let figure = |(name, max): (&str, usize)| {
        let files = largest_circle(&graph(&command::root().join(name).join("src"))).len();
        (files > 1).then(|| format!("{} {files} of {max}", name.trim_start_matches("crates/")))
    };
    CIRCLES_MAX.into_iter().filter_map(figure).collect::<Vec<_>>().join(", ")
}

fn shown(circle: &BTreeSet<&Module>) -> String {
    circle.iter().map(|module| module.join("::")).collect::<Vec<_>>().join(", ")
}

/// Which file names which others.
fn graph(directory: &Path) -> BTreeMap<Module, BTreeSet<Module>> {
    let sources: BTreeMap<Module, String> = rust_files(directory)
        .into_iter()
        .filter_map(|file| {
            let text = fs::read_to_string(&file).ok()?;
            Some((module_of(file.strip_prefix(directory).ok()?), code_of(&text)))
        })
        .collect();
    let tests: BTreeSet<Module> = sources.iter().flat_map(|(module, code)| test_modules(module, code)).collect();
    let is_code = |module: &Module| !module.is_empty() && !(1..=module.len()).any(|end| tests.contains(&module[..end]));
    let sources: BTreeMap<Module, String> = sources.into_iter().filter(|(module, _)| is_code(module)).collect();
    let modules: BTreeSet<&Module> = sources.keys().collect();
    sources.iter().map(|(module, code)| (module.clone(), named_by(module, code, &modules))).collect()
}

/// A file without comments and without the unit tests at its end. Other items of tests stay: code follows them.
fn code_of(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect();
    let begins_tests = |pair: &[&str]| pair[0] == TEST && pair[1].starts_with("mod ") && pair[1].ends_with('{');
    let end = lines.windows(2).position(begins_tests).unwrap_or(lines.len());
    lines[..end].join("\n")
}

/// The files of tests that a file declares.
fn test_modules(module: &Module, code: &str) -> Vec<Module> {
    let lines: Vec<&str> = code.lines().collect();
    let declared = lines.windows(2).filter(|pair| pair[0] == TEST).filter_map(|pair| {
        let name = pair[1].trim_start_matches("pub(crate) ").strip_prefix("mod ")?.strip_suffix(';')?;
        Some(module.iter().cloned().chain([name.to_owned()]).collect())
    });
    declared.collect()
}

/// What stands in front of an item that only tests have.
const TEST: &str = "#[cfg(test)]";

fn module_of(file: &Path) -> Module {
    let mut names: Module = file.with_extension("").iter().map(|name| name.to_string_lossy().into_owned()).collect();
    if names.last().is_some_and(|name| ["mod", "lib", "main"].contains(&name.as_str())) {
        names.pop();
    }
    names
}

fn named_by(module: &Module, code: &str, modules: &BTreeSet<&Module>) -> BTreeSet<Module> {
    let tokens = tokens(code);
    let mut named = BTreeSet::new();
    for (at, token) in tokens.iter().enumerate() {
        let follows_path = at > 0 && tokens[at - 1] == "::";
        let begins_path = tokens.get(at + 1) == Some(&"::") && !follows_path;
        let is_from_here = ["crate", "super", "self"].contains(token);
        let is_use = at > 0 && tokens[at - 1] == "use";
        if begins_path && (is_from_here || is_use) {
            let mut paths = Vec::new();
            read_tree(&tokens, at, &mut Vec::new(), &mut paths);
            named.extend(paths.iter().filter_map(|path| file_of(module, path, modules)));
        }
    }
    named.remove(module);
    named
}

/// Names, `::`, and single characters.
pub(super) fn tokens(code: &str) -> Vec<&str> {
    let is_of_name = |c: char| c.is_alphanumeric() || c == '_';
    let mut tokens = Vec::new();
    let mut rest = code.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = if is_of_name(first) {
            rest.find(|c| !is_of_name(c)).unwrap_or(rest.len())
        } else if rest.starts_with("::") {
            2
        } else {
            first.len_utf8()
        };
        let (token, behind) = rest.split_at(length);
        tokens.push(token);
        rest = behind.trim_start();
    }
    tokens
}

/// Reads a path, or all paths of a `use` with braces. Gives the place behind it.
fn read_tree<'t>(tokens: &[&'t str], mut at: usize, prefix: &mut Vec<&'t str>, paths: &mut Vec<Vec<&'t str>>) -> usize {
    let depth = prefix.len();
    loop {
        match tokens.get(at) {
            Some(&"{") => {
                at += 1;
                while tokens.get(at).is_some_and(|token| *token != "}") {
                    let next = read_tree(tokens, at, prefix, paths);
                    at = next + usize::from(tokens.get(next) == Some(&","));
                }
                at += 1;
                break;
            }
            Some(name) if name.starts_with(|c: char| c.is_alphabetic() || c == '_') => {
                prefix.push(name);
                at += 1;
                if tokens.get(at) == Some(&"::") {
                    at += 1;
                    continue;
                }
                if tokens.get(at) == Some(&"as") {
                    at += 2;
                }
            }
            // `*`, or the `<` of a generic argument.
            _ => at += 1,
        }
        paths.push(prefix.clone());
        break;
    }
    prefix.truncate(depth);
    at
}

/// The file in which a path ends. `None`: it is another crate's, or the root's.
fn file_of(module: &Module, path: &[&str], modules: &BTreeSet<&Module>) -> Option<Module> {
    let mut base = module.clone();
    let mut rest = path;
    while let Some((first, behind)) = rest.split_first() {
        match *first {
            "crate" => base.clear(),
            "super" => drop(base.pop()),
            "self" => {}
            _ => break,
        }
        rest = behind;
    }
    base.extend(rest.iter().map(|name| (*name).to_owned()));
    // What is named of a file stands behind it in the path. A path that leads to nothing but this file's own parents is
    // another crate's.
    let shortest = if rest.len() == path.len() { module.len() + 1 } else { 1 };
    (shortest..=base.len()).rev().map(|length| base[..length].to_vec()).find(|prefix| modules.contains(prefix))
}

/// The most files of which each leads to each other one.
fn largest_circle(graph: &BTreeMap<Module, BTreeSet<Module>>) -> BTreeSet<&Module> {
    let reached: BTreeMap<&Module, BTreeSet<&Module>> =
        graph.keys().map(|module| (module, reachable(graph, module))).collect();
    let circle = |module| {
        let mutual = |other: &&Module| reached.get(other).is_some_and(|back| back.contains(module));
        let mut circle: BTreeSet<&Module> = reached[module].iter().copied().filter(mutual).collect();
        circle.insert(module);
        circle
    };
    graph.keys().map(circle).max_by_key(BTreeSet::len).unwrap_or_default()
}

fn reachable<'g>(graph: &'g BTreeMap<Module, BTreeSet<Module>>, from: &Module) -> BTreeSet<&'g Module> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&Module> = graph.get(from).into_iter().flatten().collect();
    while let Some(next) = open.pop() {
        if reached.insert(next) {
            open.extend(graph.get(next).into_iter().flatten());
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn circles_are_as_small_as_they_were() {
        assert_eq!(check(), Vec::<String>::new());
    }

    fn module(path: &str) -> Module {
        path.split("::").map(str::to_owned).collect()
    }

    #[test]
    fn paths_lead_to_files() {
        let all = ["pool", "pool::lease", "pool::key", "text", "worker"].map(module);
        let modules: BTreeSet<&Module> = all.iter().collect();
        let named = |code| -> Vec<String> {
            named_by(&module("pool::lease"), code, &modules).iter().map(|module| module.join("::")).collect()
        };
        assert_eq!(named("use crate::worker::Worker;"), ["worker"]);
        assert_eq!(named("use crate::{pool::{self, key::Key}, text as words};"), ["pool", "pool::key", "text"]);
        assert_eq!(named("use super::key::*;"), ["pool::key"]);
        assert_eq!(named("fn f() { crate::text::error(); super::lane::<u8>() }"), ["pool", "text"]);
        assert_eq!(named("use text::Shown; use std::pool::key; use self::inner::Thing;"), Vec::<String>::new());
        let named_by_parent = named_by(&module("pool"), "pub use lease::Lease;", &modules);
        assert_eq!(named_by_parent, BTreeSet::from([module("pool::lease")]));
    }

    #[test]
    fn a_circle_is_found() {
        let arrows = [("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("d", "e"), ("e", "d")];
        let mut graph: BTreeMap<Module, BTreeSet<Module>> = BTreeMap::new();
        for (from, to) in arrows {
            graph.entry(module(from)).or_default().insert(module(to));
        }
        assert_eq!(shown(&largest_circle(&graph)), "a, b, c");
        graph.remove(&module("c"));
        assert_eq!(shown(&largest_circle(&graph)), "d, e");
    }
}
