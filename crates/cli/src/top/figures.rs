//! What was seen at one look: the console's tables, and the figures of INFO.

use std::collections::HashMap;

use respool_wire::{Part, elements, part};

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

    /// The cells of these columns, row by row.
    pub(super) fn columns<'a>(&'a self, names: &'a [&str]) -> impl Iterator<Item = Vec<&'a str>> {
        self.rows.iter().map(move |row| {
            let value = |name: &&str| row.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value);
            names.iter().map(value).collect()
        })
    }
}

/// A cell as text, without what a terminal would take for a command.
fn cell(reply: &[u8]) -> String {
    match part(reply) {
        Some(Part::Leaf(_, text)) => {
            String::from_utf8_lossy(text).chars().filter(|letter| !letter.is_control()).collect()
        }
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

    /// A figure of INFO.
    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.info.get(name).copied()
    }

    /// One of the tables.
    pub(super) fn table(&self, panel: Panel) -> Option<&Table> {
        self.tables.iter().find(|(known, _)| *known == panel).map(|(_, table)| table)
    }
}
