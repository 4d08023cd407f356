//! Queries of the console: what all workers show or do, and the joint reply.

use crate::admin::table::{Cell, Line, Table};
use crate::limits::RANKED_KEYS_MAX;
use crate::workers::query::WorkerQuery;
use crate::workers::quiescence::Until;
use respool_wire::Encoder;
use std::cmp::Reverse;

/// What can be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Show {
    Bigkeys,
    Clients,
    Hotkeys,
    Latency,
    Mem,
    Nodes,
    Pins,
    Pools,
    Routes,
}

impl Show {
    pub(crate) const ALL: [Self; 9] = [
        Self::Bigkeys,
        Self::Clients,
        Self::Hotkeys,
        Self::Latency,
        Self::Mem,
        Self::Nodes,
        Self::Pins,
        Self::Pools,
        Self::Routes,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Bigkeys => "BIGKEYS",
            Self::Clients => "CLIENTS",
            Self::Hotkeys => "HOTKEYS",
            Self::Latency => "LATENCY",
            Self::Mem => "MEM",
            Self::Nodes => "NODES",
            Self::Pins => "PINS",
            Self::Pools => "POOLS",
            Self::Routes => "ROUTES",
        }
    }

    pub(crate) fn named(word: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|show| show.name().as_bytes().eq_ignore_ascii_case(word))
    }

    /// Whether workers tell of the same things, or each of its own.
    pub(crate) fn is_joined(self) -> bool {
        matches!(self, Self::Nodes | Self::Pools | Self::Routes | Self::Hotkeys | Self::Bigkeys | Self::Latency)
    }

    /// Brings the rows into the order in which they are shown, and leaves no more than so many.
    pub(crate) fn arrange(self, table: &mut Table, rows_max: usize) {
        if self == Self::Clients && rows_max < usize::MAX {
            table.rows.sort_by_key(|row| (Reverse(figure_of(row, "held_bytes")), figure_of(row, "idle_s")));
        } else if matches!(self, Self::Clients | Self::Pins | Self::Mem) {
            let number = |row: &Line| match row.first() {
                Some((_, Cell::Same(number))) => *number,
                _ => u64::MAX,
            };
            table.rows.sort_by_key(number);
        }
        if matches!(self, Self::Hotkeys | Self::Bigkeys) {
            let figure = |row: &Line| match row.get(1) {
                Some((_, Cell::Sum(figure) | Cell::Max(figure))) => *figure,
                _ => 0,
            };
            table.rows.sort_by_key(|row| Reverse(figure(row)));
            table.truncate(RANKED_KEYS_MAX);
        }
        table.truncate(rows_max);
    }
}

/// An order to every worker. Nodes are named, because workers may be about to take over other lists of them.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    pub(super) what: NodeAction,
    /// None named: all nodes.
    pub(super) nodes: Vec<String>,
    /// What the reply to it waits for.
    pub(crate) until: Option<Until>,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NodeAction {
    Pause,
    Resume,
    Drain,
    Reconnect,
    Suspend,
    /// Changes nothing; only the reply waits.
    WaitClose,
}

impl Order {
    /// Whether workers adopt the orders in force because of it.
    pub(crate) fn is_standing(&self) -> bool {
        !matches!(self.what, NodeAction::Reconnect | NodeAction::WaitClose)
    }

    /// The order in words, for the log.
    pub(super) fn words(&self) -> String {
        format!("{:?} {}", self.what, self.nodes.join(" "))
    }

    /// The nodes that the order names; none: all.
    pub(super) fn nodes(&self) -> &[String] {
        &self.nodes
    }

    /// The same, when nothing else of it is needed any more.
    pub(crate) fn into_nodes(self) -> Vec<String> {
        self.nodes
    }

    /// Whether the asker wants to know how many there were.
    pub(super) fn is_counted(&self) -> bool {
        self.what == NodeAction::Reconnect
    }
}

/// What is wanted of the slow log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SlowlogOrder {
    /// The newest, so many of them.
    Get(usize),
    Len,
    Reset,
}

/// What workers show or do.
#[derive(Clone, Debug)]
pub(crate) enum AdminQuery {
    /// So many rows of all together, at most; and of each worker, where workers tell of different things.
    Show(Show, usize),
    Order(Order),
    Slowlog(SlowlogOrder),
}

/// What workers answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct AdminAnswer {
    table: Table,
    count: u64,
}

impl WorkerQuery for AdminQuery {
    type Answer = AdminAnswer;

    fn is_large(&self) -> bool {
        !matches!(self, Self::Order(_) | Self::Slowlog(SlowlogOrder::Reset))
    }

    fn no_answer(&self) -> AdminAnswer {
        AdminAnswer::default()
    }

    fn join(&self, all: &mut AdminAnswer, one: AdminAnswer) {
        all.count += one.count;
        match self {
            Self::Show(show, _) if show.is_joined() => all.table.join(one.table),
            _ => all.table.append(one.table),
        }
    }

    fn bytes_of(answer: &AdminAnswer) -> usize {
        answer.table.bytes()
    }
}

impl AdminQuery {
    /// The rows of all workers, in order.
    pub(super) fn finish(&self, answer: AdminAnswer) -> Table {
        let mut table = answer.table;
        match self {
            Self::Show(show, rows_max) => show.arrange(&mut table, *rows_max),
            Self::Slowlog(order) => newest(*order, &mut table),
            Self::Order(_) => {}
        }
        table
    }

    pub(super) fn reply(&self, answer: AdminAnswer, reply: &mut Encoder<'_>) {
        let count = answer.count;
        match self {
            Self::Show(..) | Self::Slowlog(SlowlogOrder::Get(_)) => self.finish(answer).write(reply),
            Self::Slowlog(SlowlogOrder::Len) => reply.integer(count as i64),
            Self::Order(order) if order.is_counted() => reply.integer(count as i64),
            Self::Order(_) | Self::Slowlog(SlowlogOrder::Reset) => reply.raw(respool_wire::replies::OK),
        }
    }
}

impl AdminAnswer {
    pub(crate) fn of_table(table: Table) -> Self {
        Self { table, count: 0 }
    }

    pub(crate) fn of_count(count: u64) -> Self {
        Self { table: Table::default(), count }
    }
}

/// The figure of that name in a row.
fn figure_of(row: &Line, name: &str) -> u64 {
    match row.iter().find(|(known, _)| *known == name) {
        Some((_, Cell::Same(figure) | Cell::Sum(figure) | Cell::Max(figure))) => *figure,
        _ => 0,
    }
}

/// The newest first, and no more than were asked for.
fn newest(order: SlowlogOrder, table: &mut Table) {
    let SlowlogOrder::Get(count) = order else { return };
    let age = |row: &Line| match row.first() {
        Some((_, Cell::Same(unix_us))) => Reverse(*unix_us),
        _ => Reverse(0),
    };
    table.rows.sort_by_key(age);
    table.truncate(count);
}

#[cfg(test)]
mod tests {
    use super::*;
    use respool_wire::Protocol;

    fn row(number: u64, figure: u64) -> Line {
        vec![("client", Cell::Same(number)), ("held_bytes", Cell::Same(figure)), ("idle_s", Cell::Same(number))]
    }

    fn numbers(table: &Table) -> Vec<u64> {
        table.rows.iter().map(|row| figure_of(row, "client")).collect()
    }

    #[test]
    fn every_thing_that_is_shown_is_found_by_its_name() {
        for show in Show::ALL {
            assert_eq!(Show::named(show.name().to_ascii_lowercase().as_bytes()), Some(show));
        }
        assert_eq!(Show::named(b"NOSUCH"), None);
    }

    #[test]
    fn clients_are_shown_in_the_order_of_numbers_or_of_size() {
        let table = || Table::of(vec![row(3, 5), row(1, 7), row(2, 5)]);
        let mut all = table();
        Show::Clients.arrange(&mut all, usize::MAX);
        assert_eq!(numbers(&all), [1, 2, 3]);
        let mut some = table();
        Show::Clients.arrange(&mut some, 2);
        assert_eq!((numbers(&some), some.left_out), (vec![1, 2], 1), "of two alike, the one that was used last");
    }

    #[test]
    fn the_newest_slow_requests_of_all_workers_are_shown() {
        let query = AdminQuery::Slowlog(SlowlogOrder::Get(2));
        let mut all = AdminAnswer::default();
        for unix_us in [5, 9, 7] {
            query.join(&mut all, AdminAnswer::of_table(Table::of(vec![vec![("unix_us", Cell::Same(unix_us))]])));
        }
        let table = query.finish(all);
        assert_eq!(table.rows.iter().map(|row| figure_of(row, "unix_us")).collect::<Vec<_>>(), [9, 7]);
    }

    #[test]
    fn connections_that_all_workers_have_replaced_are_added_up() {
        let order = |what| AdminQuery::Order(Order { what, nodes: Vec::new(), until: None });
        let reply = |query: &AdminQuery| {
            let mut all = AdminAnswer::default();
            [2, 3].into_iter().for_each(|count| query.join(&mut all, AdminAnswer::of_count(count)));
            let mut out = Vec::new();
            query.reply(all, &mut Encoder::new(&mut out, Protocol::Resp2));
            out
        };
        assert_eq!(reply(&order(NodeAction::Reconnect)), b":5\r\n");
        assert_eq!(reply(&order(NodeAction::Pause)), b"+OK\r\n");
    }
}
