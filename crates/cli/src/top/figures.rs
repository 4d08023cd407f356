//! What was seen at one look: the tables of the console or of the JSON API, which are the same, and figures.

use std::collections::HashMap;

use respool_wire::{Part, elements, part};
use serde_json::Value;

use super::view::Panel;

/// Rows of named cells, as the console shows them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Table {
    rows: Vec<Vec<(String, String)>>,
}

/// What was seen at one look.
#[derive(Clone, Debug, Default)]
pub(super) struct Figures {
    pub(super) tables: Vec<(Panel, Table)>,
    info: HashMap<String, u64>,
    /// Workers without whose part the tables are.
    pub(super) missing: u64,
}

impl Table {
    /// The table that a reply is: an array of maps, or in RESP2 of names and values in turn. What is neither has no rows.
    pub(super) fn of(reply: &[u8]) -> Self {
        let row = |row: &[u8]| {
            let cells: Vec<String> = elements(row).into_iter().flatten().map(cell).collect();
            cells.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect()
        };
        Self { rows: elements(reply).into_iter().flatten().map(row).collect() }
    }

    /// The rows of a table of the JSON API. What is none has no rows.
    pub(super) fn of_json(table: &Value) -> Self {
        let cell = |value: &Value| plain(&value.as_str().map_or_else(|| value.to_string(), str::to_owned));
        let row = |row: &Value| {
            let cells = row.as_object().into_iter().flatten();
            cells.map(|(name, value)| (name.clone(), cell(value))).collect()
        };
        Self { rows: table["rows"].as_array().into_iter().flatten().map(row).collect() }
    }

    /// The cells of these columns, row by row.
    pub(super) fn columns<'a>(&'a self, names: &'a [&str]) -> impl Iterator<Item = Vec<&'a str>> {
        self.rows.iter().map(move |row| {
            let value = |name: &&str| row.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value);
            names.iter().map(value).collect()
        })
    }
}

/// A text without what a terminal would take for a command.
pub(super) fn plain(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_control()).collect()
}

/// A cell as text, without what a terminal would take for a command.
fn cell(reply: &[u8]) -> String {
    match part(reply) {
        Some(Part::Leaf(_, text)) => plain(&String::from_utf8_lossy(text)),
        Some(Part::Aggregate(walk)) => walk.map(cell).collect::<Vec<_>>().join(" "),
        None => String::new(),
    }
}

impl Figures {
    /// Adds the figures of a section of INFO.
    pub(super) fn add_info(&mut self, text: &str) {
        let fields = text.lines().filter_map(|line| line.trim_end().split_once(':'));
        self.info.extend(fields.filter_map(|(name, value)| Some((name.to_owned(), value.parse().ok()?))));
    }

    /// Adds figures that are numbers already.
    pub(super) fn add_numbers(&mut self, figures: impl Iterator<Item = (String, u64)>) {
        self.info.extend(figures);
    }

    /// A figure of INFO, or a counter of the JSON API, which are called the same.
    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.info.get(name).copied()
    }

    /// One of the tables.
    pub(super) fn table(&self, panel: Panel) -> Option<&Table> {
        self.tables.iter().find(|(known, _)| *known == panel).map(|(_, table)| table)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_read_in_both_dialects() {
        let resp3 = b"*1\r\n%2\r\n$4\r\nnode\r\n$1\r\na\r\n$5\r\nstate\r\n$2\r\nup\r\n";
        let resp2 = b"*1\r\n*4\r\n$4\r\nnode\r\n$1\r\na\r\n$5\r\nstate\r\n$2\r\nup\r\n";
        assert_eq!(Table::of(resp3), Table::of(resp2));
        let table = Table::of(resp3);
        assert_eq!(table.columns(&["state", "nosuch", "node"]).collect::<Vec<_>>(), [["up", "", "a"]]);
        assert_eq!(Table::of(b"+OK\r\n"), Table::default());
    }

    #[test]
    fn a_cell_cannot_command_the_terminal() {
        assert_eq!(cell(b"$6\r\na\x1b[2Jb\r\n"), "a[2Jb");
    }

    #[test]
    fn figures_of_info_are_numbers() {
        let mut figures = Figures::default();
        figures.add_info("# Proxy\r\nrequests:18\r\nrole:master\r\nclients:1\r\n");
        assert_eq!((figures.number("requests"), figures.number("role")), (Some(18), None));
    }
}
