//! The direction of arrows between the crates.

use std::collections::{BTreeMap, BTreeSet};

use crate::command;

/// What each crate may build on, lowest level first. Whatever those build on is allowed as well.
const ARROWS: &[(&str, &[&str])] = &[
    ("respool-wire", &[]),
    ("respool-command", &["respool-wire"]),
    ("respool-connection", &["respool-wire"]),
    ("respool-access", &["respool-command"]),
    ("respool-route", &["respool-command"]),
    ("respool-engine", &["respool-command"]),
    ("respool-proxy", &["respool-connection", "respool-access", "respool-route"]),
    ("respool-net", &["respool-connection"]),
    ("respool-client-derive", &[]),
    ("respool-client", &["respool-connection", "respool-route", "respool-client-derive"]),
    ("respool-bench", &["respool-net", "respool-route"]),
    ("respool-cli", &["respool-net", "respool-client"]),
    ("respool", &["respool-proxy", "respool-net", "respool-engine", "respool-bench", "respool-cli"]),
    ("respool-testkit", &["respool-command"]),
    ("respool-sim", &["respool-route", "respool-engine", "respool-testkit"]),
    ("xtask", &["respool", "respool-testkit"]),
];

/// What a crate's tests may use beside that.
const TEST_ARROWS: [(&str, &[&str]); 3] = [
    // Peers and generators, for all crates (the empty name).
    ("", &["respool-testkit"]),
    // A local node to route to, and a world of servers.
    ("respool-proxy", &["respool-engine", "respool-sim"]),
    // A world for its cluster, and a server for its examples.
    ("respool-client", &["respool-sim", "respool"]),
];

/// Dependencies between the workspace's crates that the drawing in ARCHITECTURE.md does not have.
pub(super) fn check() -> Vec<String> {
    let metadata = match command::metadata(&["--no-deps"]) {
        Ok(metadata) => metadata,
        Err(error) => return vec![error.to_string()],
    };
    let packages = metadata["packages"].as_array().cloned().unwrap_or_default();
    let names: BTreeSet<&str> = packages.iter().filter_map(|package| package["name"].as_str()).collect();
    let mut complaints: Vec<String> = names.iter().filter_map(|name| unplaced(name)).collect();
    for package in &packages {
        let from = package["name"].as_str().unwrap_or_default();
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let to = dependency["name"].as_str().unwrap_or_default();
            // An ordinary dependency has no kind.
            let kind = dependency["kind"].as_str().unwrap_or("normal");
            if names.contains(to) && !is_allowed(from, to, kind) {
                complaints.push(format!("{from} must not depend on {to} ({kind})"));
            }
        }
    }
    complaints
}

fn unplaced(name: &str) -> Option<String> {
    let is_placed = ARROWS.iter().any(|(placed, _)| *placed == name);
    (!is_placed).then(|| format!("{name} has no place in the drawing: add it to {}", file!()))
}

fn is_allowed(from: &str, to: &str, kind: &str) -> bool {
    let is_for_tests =
        |(crates, tests): &(&str, &[&str])| (crates.is_empty() || *crates == from) && tests.contains(&to);
    // A crate names itself to be tested with features that few programs want.
    closure(from).contains(to) || (kind == "dev" && (from == to || TEST_ARROWS.iter().any(is_for_tests)))
}

/// All that can be reached by the arrows from one crate.
fn closure(from: &str) -> BTreeSet<&'static str> {
    let arrows: BTreeMap<_, _> = ARROWS.iter().copied().collect();
    let mut reached = BTreeSet::new();
    let mut open: Vec<&str> = arrows.get(from).map_or(vec![], |direct| direct.to_vec());
    while let Some(next) = open.pop() {
        if reached.insert(next) {
            open.extend(arrows.get(next).copied().unwrap_or_default());
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrows_point_where_the_architecture_says() {
        assert_eq!(check(), Vec::<String>::new());
    }

    #[test]
    fn a_wrong_arrow_is_found() {
        for (from, to, kind) in [
            ("respool-engine", "respool-connection", "normal"),
            ("respool-engine", "respool-connection", "dev"),
            ("respool-net", "respool-proxy", "normal"),
            ("respool-wire", "respool-testkit", "normal"),
        ] {
            assert!(!is_allowed(from, to, kind), "{from} -> {to} ({kind})");
        }
        for (from, to, kind) in [
            ("respool-wire", "respool-testkit", "dev"),
            ("respool-proxy", "respool-engine", "dev"),
            ("respool-net", "respool-wire", "normal"),
        ] {
            assert!(is_allowed(from, to, kind), "{from} -> {to} ({kind})");
        }
        assert!(unplaced("respool-new").is_some());
    }
}
