//! The direction of arrows between the crates.

use std::collections::{BTreeMap, BTreeSet};

use crate::command;

/// What each crate may build on, lowest level first. Whatever those build on is allowed as well.
const ARROWS: [(&str, &[&str]); 10] = [
    ("respool-wire", &[]),
    ("respool-command", &["respool-wire"]),
    ("respool-connection", &["respool-command"]),
    ("respool-route", &["respool-command"]),
    ("respool-engine", &["respool-command"]),
    ("respool-proxy", &["respool-connection", "respool-route"]),
    ("respool-net", &["respool-connection"]),
    ("respool", &["respool-proxy", "respool-net", "respool-engine"]),
    ("respool-testkit", &["respool-command"]),
    ("xtask", &["respool", "respool-testkit"]),
];

/// What a crate's tests may use beside that.
const TEST_ARROWS: [(&str, &[&str]); 2] = [
    // Peers and generators, for everybody (the empty name).
    ("", &["respool-testkit"]),
    // A local node to route to.
    ("respool-proxy", &["respool-engine"]),
];

/// Dependencies between the workspace's crates that the drawing in ARCHITECTURE.md does not have.
pub(super) fn check() -> Vec<String> {
    let metadata = match command::metadata(&["--no-deps"]) {
        Ok(metadata) => metadata,
        Err(error) => return vec![error.to_string()],
    };
    complaints(&edges(&metadata))
}

struct Edge {
    from: String,
    to: String,
    /// `normal`, `dev` or `build`.
    kind: String,
}

fn edges(metadata: &serde_json::Value) -> Vec<Edge> {
    let list = |value: &serde_json::Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &serde_json::Value| value.as_str().unwrap_or("normal").to_owned();
    let packages = list(&metadata["packages"]);
    let names: BTreeSet<String> = packages.iter().map(|package| text(&package["name"])).collect();
    let mut edges = Vec::new();
    for package in &packages {
        for dependency in list(&package["dependencies"]) {
            let to = text(&dependency["name"]);
            if names.contains(&to) {
                edges.push(Edge { from: text(&package["name"]), to, kind: text(&dependency["kind"]) });
            }
        }
        // So that a crate without any edge is known as well.
        edges.push(Edge { from: text(&package["name"]), to: text(&package["name"]), kind: "normal".into() });
    }
    edges
}

fn complaints(edges: &[Edge]) -> Vec<String> {
    let arrows = BTreeMap::from(ARROWS);
    let mut complaints = Vec::new();
    for Edge { from, to, kind } in edges {
        if !arrows.contains_key(from.as_str()) {
            if from == to {
                complaints.push(format!("{from} has no place in the drawing: add it to {}", file!()));
            }
            continue;
        }
        let reachable = closure(&arrows, from);
        let is_for_tests = kind == "dev"
            && TEST_ARROWS
                .iter()
                .any(|(crates, tests)| (crates.is_empty() || crates == from) && tests.contains(&to.as_str()));
        if from != to && !reachable.contains(to.as_str()) && !is_for_tests {
            complaints.push(format!("{from} must not depend on {to} ({kind})"));
        }
    }
    complaints
}

fn closure<'a>(arrows: &BTreeMap<&'a str, &'a [&'a str]>, from: &str) -> BTreeSet<&'a str> {
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
        let edge = |from: &str, to: &str, kind: &str| Edge { from: from.into(), to: to.into(), kind: kind.into() };
        let found = complaints(&[
            edge("respool-engine", "respool-connection", "normal"),
            edge("respool-net", "respool-proxy", "normal"),
            edge("respool-wire", "respool-testkit", "normal"),
            edge("respool-new", "respool-new", "normal"),
        ]);
        assert_eq!(found.len(), 4, "{found:?}");
        let found = complaints(&[
            edge("respool-wire", "respool-testkit", "dev"),
            edge("respool-proxy", "respool-engine", "dev"),
            edge("respool-net", "respool-wire", "normal"),
        ]);
        assert_eq!(found, Vec::<String>::new());
    }
}
