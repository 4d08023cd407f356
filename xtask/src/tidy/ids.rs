//! Ids of clients, lanes, nodes and workers have types of their own.
//!
//! A number that means one of several things is sooner or later given to what means another: a client's reply to its
//! neighbour, a request to another server. So no parameter, field, variable or function that is named for one of them has an
//! integer's type; what makes an id of a place, and gives the place back, is in the file of its type.

use std::fs;

use super::circles::tokens;
use super::text::{lines_of_code, rust_files};
use crate::command;

/// Crates in which all four kinds meet.
const CRATES: [&str; 4] = ["connection", "net", "proxy", "route"];

/// What has an id.
const KINDS: [&str; 4] = ["client", "lane", "node", "worker"];

/// Words beside it that leave a name one for an id.
const BESIDE: [&str; 10] = ["by", "first", "from", "id", "index", "last", "next", "number", "other", "place"];

const INTEGERS: [&str; 8] = ["i16", "i32", "i64", "isize", "u16", "u32", "u64", "usize"];

pub(super) fn check() -> Vec<String> {
    let mut complaints = Vec::new();
    for name in CRATES {
        for file in rust_files(&command::root().join("crates").join(name).join("src")) {
            let text = fs::read_to_string(&file).unwrap_or_default();
            let code: Vec<&str> = lines_of_code(&text).map(|(_, line)| line).collect();
            let found = raw_ids(&code.join("\n"));
            let file = file.strip_prefix(command::root()).unwrap_or(&file).display();
            complaints.extend(found.iter().map(|id| format!("{file}: `{id}` is an id without a type of its own")));
        }
    }
    complaints
}

/// What is named for an id and declared as a number: `name: type` of parameters, fields and variables, `fn name -> type`.
fn raw_ids(code: &str) -> Vec<String> {
    let tokens = tokens(code);
    let mut found = Vec::new();
    for (at, name) in tokens.iter().enumerate() {
        let Some(means_several) = named_for_id(name) else { continue };
        let declared = match tokens.get(at + 1) {
            Some(&":") => type_at(&tokens, at + 2),
            Some(&"(" | &"<") if at > 0 && tokens[at - 1] == "fn" => returned_type(&tokens, at + 1),
            _ => continue,
        };
        if is_number(declared, means_several) {
            found.push(format!("{name}: {}", declared.concat()));
        }
    }
    found
}

/// Whether a name is one for an id, and if so whether it is for several of them.
fn named_for_id(name: &str) -> Option<bool> {
    let mut kinds = name.split('_').filter(|word| !BESIDE.contains(word));
    let (kind, None) = (kinds.next()?, kinds.next()) else { return None };
    let is_one_of = |kind: &str| KINDS.contains(&kind);
    if is_one_of(kind) { Some(false) } else { kind.strip_suffix('s').filter(|kind| is_one_of(kind)).map(|_| true) }
}

/// The tokens of the type that begins here.
fn type_at<'a, 't>(tokens: &'a [&'t str], at: usize) -> &'a [&'t str] {
    let mut depth = 0_i32;
    let rest = tokens.get(at..).unwrap_or_default();
    let ends = |token: &&str| {
        match *token {
            "<" | "(" | "[" => depth += 1,
            ">" | ")" | "]" => depth -= 1,
            _ => {}
        }
        depth < 0 || matches!(*token, "{" | "}" | "=" | ";" | "|") || depth == 0 && *token == ","
    };
    let end = rest.iter().position(ends).unwrap_or(rest.len());
    &rest[..end]
}

/// The type behind the arrow of the function whose parameters begin here.
fn returned_type<'a, 't>(tokens: &'a [&'t str], at: usize) -> &'a [&'t str] {
    let head = tokens[at..].iter().position(|token| matches!(*token, "{" | ";")).unwrap_or(0);
    let head = &tokens[at..at + head];
    let arrow = head.windows(3).rposition(|pair| pair[..2] == ["-", ">"] && pair[2] != "bool");
    arrow.map_or(&[], |arrow| type_at(head, arrow + 2))
}

/// Whether a type is an integer, a reference to one or an option of one; of several things, a collection of integers: their number
/// alone is a count.
fn is_number(declared: &[&str], means_several: bool) -> bool {
    // An expression, as in `node: place as u32` or `node: u32::from(place)`.
    let is_type = !declared.iter().any(|token| matches!(*token, "as" | "." | "!" | "+"));
    let is_path = |at: usize| declared.get(at + 1) == Some(&"::");
    let is_integer = |(at, token): (usize, &&str)| INTEGERS.contains(token) && !is_path(at);
    let is_collection =
        declared.iter().any(|token| matches!(*token, "[" | "Vec" | "Box" | "Arc" | "VecDeque" | "BTreeSet"));
    is_type && declared.iter().enumerate().any(is_integer) && (!means_several || is_collection)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_types_of_their_own() {
        assert_eq!(check(), Vec::<String>::new());
    }

    #[test]
    fn raw_ids_are_found_wherever_they_are_declared() {
        for (code, found) in [
            ("fn send(&mut self, worker: usize, mail: Mail) {", "worker: usize"),
            ("struct Line {\n    pub(super) client: u64,\n}", "client: u64"),
            ("fn at(next_node: Option<usize>) {", "next_node: Option<usize>"),
            ("let last = |lane: &u32| lane + 1;", "lane: &u32"),
            ("let client_id: u64 = 7;", "client_id: u64"),
            ("fn post(to: &[Mail], workers: &[usize]) {", "workers: &[usize]"),
            ("ends: Vec<u8>, node: (usize, Box<str>),", "node: (usize,Box<str>)"),
            ("fn node(&self, key: &[u8]) -> usize {", "node: usize"),
            ("fn next_client_id(&self) -> Option<u64> {", "next_client_id: Option<u64>"),
        ] {
            assert_eq!(raw_ids(code), [found], "{code}");
        }
    }

    #[test]
    fn counts_and_expressions_are_no_raw_ids() {
        for code in [
            "fn share(workers: usize, clients: u64) {",
            "fn send(worker: WorkerId, lanes: &[LaneId]) -> usize {",
            "Line { client: number as u64, node: u32::from(place), lane: self.next.u32() }",
            "pub client_idle_us: u64, per_node: usize",
            "fn node(&self) -> bool { let count: usize = 1; }",
            "match node { Some(place) => place, None => 0_usize }",
        ] {
            assert_eq!(raw_ids(code), Vec::<String>::new(), "{code}");
        }
    }
}
