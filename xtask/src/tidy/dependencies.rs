//! How many crates a program gets that depends on the client library, with its default features.

use std::collections::BTreeSet;
use std::io;

use crate::command;

/// Crates of others. Each is one more to be trusted, built and updated by every program that uses the library.
const MAX: usize = 25;

/// That the client library brings more crates than it may.
pub(super) fn check() -> Vec<String> {
    match tree() {
        Ok(tree) => too_many(&foreign(&tree), MAX).into_iter().collect(),
        Err(error) => vec![error.to_string()],
    }
}

/// A line for each crate that is linked or runs while it is built: name, version, and where it is if it is ours.
fn tree() -> io::Result<String> {
    let arguments = ["tree", "--locked", "--package", "respool-client", "--edges", "normal,build", "--prefix", "none"];
    command::capture(command::cargo().args(arguments))
}

/// The names of those that are not of this workspace.
fn foreign(tree: &str) -> BTreeSet<&str> {
    let is_ours = |line: &&str| line.contains("(/") || line.contains("(file:");
    tree.lines().filter(|line| !is_ours(line)).filter_map(|line| line.split(' ').next()).collect()
}

fn too_many(names: &BTreeSet<&str>, max: usize) -> Option<String> {
    let list = || names.iter().copied().collect::<Vec<_>>().join(", ");
    (names.len() > max).then(|| format!("respool-client brings {} crates, {max} at most: {}", names.len(), list()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_client_library_brings_few_crates() {
        assert_eq!(check(), Vec::<String>::new());
        assert!(foreign(&tree().unwrap()).contains("tokio"));
    }

    #[test]
    fn crates_of_others_are_counted_once() {
        let tree = "ours v0.1.0 (/home/ours)\na v1.0.0\nb v2.0.0 (proc-macro)\na v1.0.0 (*)\n";
        assert_eq!(foreign(tree), BTreeSet::from(["a", "b"]));
        assert_eq!(too_many(&foreign(tree), 2), None);
        assert!(too_many(&foreign(tree), 1).unwrap().ends_with("2 crates, 1 at most: a, b"));
    }
}
