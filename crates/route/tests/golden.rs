//! Every placement puts keys where the program that it comes from puts them. The vectors were made by running those
//! programs; the head of each file in `tests/data` says which.

use respool_route::{Node, Placement, Scheme, TagRule, slot};

/// One column of a vector file: what it applies to, and the placement made from it.
struct Column {
    title: String,
    placement: Placement,
}

impl Column {
    fn new(title: &str) -> Self {
        let (scheme, names) = title.split_once(' ').expect("a scheme, then nodes");
        let scheme: Scheme = scheme.parse().expect("a known scheme");
        let nodes: Vec<Node> = match names.strip_prefix('=') {
            Some(count) => (0..count.parse().expect("a number")).map(|i: usize| Node::new(format!("n{i}"))).collect(),
            None => names.split(' ').map(node).collect(),
        };
        Self { title: title.to_owned(), placement: Placement::new(scheme, &nodes).expect("a list that fits") }
    }
}

fn node(text: &str) -> Node {
    match text.split_once('*') {
        Some((name, weight)) => Node::new(name).with_weight(weight.parse().expect("a weight")),
        None => Node::new(text),
    }
}

/// Reads `"text"` with `\xNN` for bytes and `\\` for a backslash.
fn key(quoted: &str) -> Vec<u8> {
    let text = quoted.strip_prefix('"').and_then(|text| text.strip_suffix('"')).expect("a key in quotes");
    let mut bytes = Vec::new();
    let mut rest = text.chars();
    while let Some(char) = rest.next() {
        match char {
            '\\' if rest.as_str().starts_with('\\') => bytes.extend(rest.next().map(|_| b'\\')),
            '\\' => {
                let hex = rest.as_str().strip_prefix('x').and_then(|rest| rest.get(..2)).expect("two digits");
                bytes.push(u8::from_str_radix(hex, 16).expect("two hexadecimal digits"));
                rest.nth(2);
            }
            char => bytes.push(u8::try_from(char).expect("ASCII")),
        }
    }
    bytes
}

/// Checks every cell of a file; says how many there were.
fn check(vectors: &str) -> usize {
    let mut columns = Vec::new();
    let mut cells = 0;
    let mut wrong = Vec::new();
    for line in vectors.lines().filter(|line| !line.starts_with('#')) {
        if let Some(title) = line.strip_prefix("column ") {
            columns.push(Column::new(title));
            continue;
        }
        let mut fields = line.splitn(columns.len() + 1, ' ');
        let expected: Vec<usize> =
            fields.by_ref().take(columns.len()).map(|field| field.parse().expect("a node")).collect();
        let key = key(fields.next().expect("a key behind the numbers"));
        for (column, expected) in columns.iter().zip(expected) {
            cells += 1;
            let placed = column.placement.place(&key).get();
            if placed != expected {
                wrong.push(format!(
                    "{}: {:?} on {placed}, not {expected}",
                    column.title,
                    key.escape_ascii().to_string()
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {cells} keys are elsewhere:\n{}", wrong.len(), wrong.join("\n"));
    cells
}

#[test]
fn rmux_places_as_rmux() {
    assert_eq!(check(include_str!("data/rmux.txt")), 99 * 11);
}

#[test]
fn rmux_2013_places_as_the_first_rmux() {
    assert_eq!(check(include_str!("data/rmux-2013.txt")), 99 * 8);
}

#[test]
fn crc32_places_as_redis_sharding() {
    assert_eq!(check(include_str!("data/crc32.txt")), 99 * 12);
}

#[test]
fn slots_place_as_a_fresh_cluster() {
    assert_eq!(check(include_str!("data/slots.txt")), 99 * 10);
}

#[test]
fn ketama_places_as_twemproxy() {
    assert_eq!(check(include_str!("data/ketama.txt")), 99 * 21);
}

#[test]
fn rendezvous_places_as_defined() {
    assert_eq!(check(include_str!("data/rendezvous.txt")), 99 * 11);
}

#[test]
fn jump_places_as_in_the_paper() {
    assert_eq!(check(include_str!("data/jump.txt")), 99 * 10);
}

#[test]
fn slots_are_those_of_the_server() {
    let lines = include_str!("data/keyslot.txt").lines().filter(|line| !line.starts_with('#'));
    for line in lines {
        let (expected, quoted) = line.split_once(' ').expect("a slot, then a key");
        let key = key(quoted);
        assert_eq!(slot(TagRule::Cluster.hashed(&key)).to_string(), expected, "{quoted}");
    }
}
