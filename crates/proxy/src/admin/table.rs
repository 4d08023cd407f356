//! What the console shows: rows of named cells, made by each worker and put together by the one that was asked.

use respool_wire::Encoder;

/// A figure or a text, and what becomes of it when two workers tell it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cell {
    /// A text that all workers tell alike, or that one worker alone tells. The first that is not empty holds.
    Text(String),
    /// A figure that all workers tell alike.
    Same(u64),
    /// Figures that are added up.
    Sum(u64),
    /// Figures of which the greatest is shown.
    Max(u64),
    /// A word of which the one with the greatest rank is shown.
    Word(u8, &'static str),
}

impl Cell {
    fn join(&mut self, other: Self) {
        match (self, other) {
            (Self::Text(here), Self::Text(there)) if here.is_empty() => *here = there,
            (Self::Sum(here), Self::Sum(there)) => *here = here.saturating_add(there),
            (Self::Max(here), Self::Max(there)) => *here = (*here).max(there),
            (Self::Word(rank, word), Self::Word(other, there)) if other > *rank => {
                *rank = other;
                *word = there;
            }
            _ => {}
        }
    }

    fn write(&self, reply: &mut Encoder<'_>) {
        match self {
            Self::Text(text) => reply.bulk(text.as_bytes()),
            Self::Word(_, word) => reply.bulk(word.as_bytes()),
            Self::Same(figure) | Self::Sum(figure) | Self::Max(figure) => {
                reply.integer(i64::try_from(*figure).unwrap_or(i64::MAX));
            }
        }
    }
}

/// A row: what each cell is called, and the cell. The first names the row.
pub(crate) type Line = Vec<(&'static str, Cell)>;

/// Rows in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Table {
    pub(crate) rows: Vec<Line>,
    /// Rows that there are beside these.
    pub(crate) left_out: usize,
}

impl Table {
    /// A table that is told as a whole.
    pub(crate) fn of(rows: Vec<Line>) -> Self {
        Self { rows, left_out: 0 }
    }

    /// Leaves no more than so many rows.
    pub(crate) fn truncate(&mut self, rows_max: usize) {
        self.left_out += self.rows.len().saturating_sub(rows_max);
        self.rows.truncate(rows_max);
    }

    /// Adds what another worker tells: rows of the same name are joined cell by cell, others are added.
    pub(crate) fn join(&mut self, other: Self) {
        for row in other.rows {
            match self.rows.iter_mut().find(|known| known.first() == row.first()) {
                Some(known) => {
                    known.iter_mut().zip(row).for_each(|((_, here), (_, there))| here.join(there));
                }
                None => self.rows.push(row),
            }
        }
    }

    /// The rows that stand on their own: nothing is joined.
    pub(crate) fn append(&mut self, other: Self) {
        self.rows.extend(other.rows);
        self.left_out += other.left_out;
    }

    /// Bytes of the texts and cells.
    pub(crate) fn bytes(&self) -> usize {
        let text = |cell: &Cell| if let Cell::Text(text) = cell { text.len() } else { 0 };
        let bytes = |row: &Line| size_of_val(&**row) + row.iter().map(|(_, cell)| text(cell)).sum::<usize>();
        self.rows.iter().map(bytes).sum()
    }

    /// An array of maps; in RESP2, of names and values in turn.
    pub(crate) fn write(&self, reply: &mut Encoder<'_>) {
        reply.array(self.rows.len());
        for row in &self.rows {
            reply.map(row.len());
            for (name, cell) in row {
                reply.bulk(name.as_bytes());
                cell.write(reply);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use respool_wire::Protocol;

    fn line(name: &str, sum: u64, max: u64, word: (u8, &'static str)) -> Line {
        vec![
            ("name", Cell::Text(name.to_owned())),
            ("sum", Cell::Sum(sum)),
            ("max", Cell::Max(max)),
            ("word", Cell::Word(word.0, word.1)),
        ]
    }

    #[test]
    fn rows_of_one_name_become_one() {
        let mut table = Table::of(vec![line("a", 1, 5, (0, "up"))]);
        table.join(Table::of(vec![line("b", 1, 1, (0, "up")), line("a", 2, 3, (1, "down"))]));
        assert_eq!(table.rows, [line("a", 3, 5, (1, "down")), line("b", 1, 1, (0, "up"))]);
    }

    #[test]
    fn a_row_is_a_map_or_a_flat_list() {
        let table = Table::of(vec![vec![("id", Cell::Same(7))]]);
        for (protocol, bytes) in
            [(Protocol::Resp2, "*1\r\n*2\r\n$2\r\nid\r\n:7\r\n"), (Protocol::Resp3, "*1\r\n%1\r\n$2\r\nid\r\n:7\r\n")]
        {
            let mut out = Vec::new();
            table.write(&mut Encoder::new(&mut out, protocol));
            assert_eq!(String::from_utf8_lossy(&out), bytes);
        }
    }
}
