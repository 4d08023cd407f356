//! Questions and orders of operators that come over no client's connection, as over HTTP.
//!
//! ```text
//!   another thread: Inquiry --Mail--> each worker --> its part is joined --> the last one calls `on_end`
//!                      |                                                          |
//!                      '-------------- or the asker's own deadline ------------> end(): what is known
//! ```
//!
//! The asker keeps the time and wakes itself; no worker waits for another. An order is put to one worker, which knows the
//! nodes, has the order hold and tells the others. What a worker tells others is posted when its turn ends, so it posts the inquiry to
//! itself behind that, and answers then. So what the asker posts to a worker after that is taken after the order.

use crate::admin::query::{AdminAnswer, AdminQuery, NodeAction, Show, SlowlogOrder};
use crate::admin::table::{Cell, Line, Table};
use crate::mail::Mail;
use crate::workers::query::WorkerQuery;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The slow log among the tables.
const SLOWLOG: &str = "slowlog";

/// What is done to nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeOrder {
    /// Requests are held back.
    Pause,
    /// Pauses and drains end.
    Resume,
    /// Nothing more is sent.
    Drain,
}

/// A question or an order, on its way to the workers of one proxy.
pub struct Inquiry {
    asks: Asks,
    joint: Mutex<Joint>,
    on_end: OnEnd,
}

/// Wakes the thread that asks.
type OnEnd = Box<dyn Fn() + Send + Sync>;

/// What workers are asked for.
#[derive(Debug)]
pub(crate) enum Asks {
    /// Each worker's part of these.
    All(Vec<AdminQuery>),
    /// The order that these words mean. One worker is asked.
    Order(Wanted),
}

/// An order as it was given.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub(super) what: NodeOrder,
    /// Nodes and pools; none: all nodes.
    pub(super) names: Vec<String>,
    /// The operator or client that gave it, for the log.
    pub(super) by: String,
}

/// What workers have answered so far.
#[derive(Debug, Default)]
struct Joint {
    awaited: usize,
    /// Of each worker, one for each query. They are joined by the asker: no worker spends a turn on that.
    answers: Vec<Vec<AdminAnswer>>,
    decided: Option<Result<Vec<String>, String>>,
    /// The order is not decided on once more.
    is_decided: bool,
    /// The report has been made: what comes later changes nothing.
    is_over: bool,
}

/// What was found out, or done.
#[derive(Debug, Default)]
pub struct Report {
    /// The tables, in the order in which they were asked for.
    pub tables: Vec<ReportTable>,
    /// Workers that have not answered.
    pub missing: usize,
    /// What became of an order: its nodes (none: all), or why it is refused.
    pub decided: Option<Result<Vec<String>, String>>,
}

/// One table of a report.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ReportTable {
    /// Rows of named cells.
    pub rows: Vec<Vec<(&'static str, ReportCell)>>,
    /// How many more there are.
    pub left_out: usize,
}

/// A cell of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReportCell {
    /// Any text; what clients or nodes have chosen of it is as they sent it.
    Text(String),
    /// A figure.
    Number(u64),
}

impl Inquiry {
    /// The names of all tables, as `PROXY SHOW` has them, in small letters.
    pub fn tables() -> impl Iterator<Item = String> {
        Show::ALL.into_iter().map(|show| show.name().to_ascii_lowercase()).chain([SLOWLOG.to_owned()])
    }

    /// Asks so many workers for tables, of each at most so many rows. `None`: there is no table of such a name.
    pub fn show(names: &[&str], rows_max: usize, workers: usize, on_end: OnEnd) -> Option<Arc<Self>> {
        let query = |name: &&str| match *name {
            SLOWLOG => Some(AdminQuery::Slowlog(SlowlogOrder::Get(rows_max))),
            name => Show::named(name.as_bytes()).map(|what| AdminQuery::Show(what, rows_max)),
        };
        let queries = names.iter().map(query).collect::<Option<Vec<_>>>()?;
        let joint = Mutex::new(Joint { awaited: workers, ..Joint::default() });
        Some(Arc::new(Self { asks: Asks::All(queries), joint, on_end }))
    }

    /// Puts an order for these nodes and pools to one worker. `by`: the operator or client that gives it, for the log.
    pub fn order(what: NodeOrder, names: Vec<String>, by: String, on_end: OnEnd) -> Arc<Self> {
        let joint = Mutex::new(Joint { awaited: 1, ..Joint::default() });
        Arc::new(Self { asks: Asks::Order(Wanted { what, names, by }), joint, on_end })
    }

    pub(crate) fn asks(&self) -> &Asks {
        &self.asks
    }

    /// Whether no answer is waited for any more.
    pub(crate) fn is_over(&self) -> bool {
        self.joint().is_over
    }

    /// A worker has answered.
    pub(crate) fn answer(&self, parts: Vec<AdminAnswer>) {
        self.take_answer(|joint| joint.answers.push(parts));
    }

    /// The worker has given the order to these nodes, or refuses it. The asker is told by [`Self::answer_order`].
    pub(crate) fn note_decided(&self, decided: Result<Vec<String>, String>) {
        let mut joint = self.joint();
        if !joint.is_over {
            joint.decided = Some(decided);
        }
        joint.is_decided = true;
    }

    /// Whether the worker has given the order, or refused it.
    pub(crate) fn is_decided(&self) -> bool {
        self.joint().is_decided
    }

    /// What the worker has told others of the order is on its way to them.
    pub(crate) fn answer_order(&self) {
        self.take_answer(|_| ());
    }

    /// A worker could not be reached: nothing is awaited of it.
    pub fn miss(&self) {
        self.take_answer(|_| ());
    }

    fn take_answer(&self, take: impl FnOnce(&mut Joint)) {
        let mut joint = self.joint();
        if joint.is_over {
            return;
        }
        take(&mut joint);
        joint.awaited = joint.awaited.saturating_sub(1);
        let is_last = joint.awaited == 0;
        drop(joint);
        if is_last {
            (self.on_end)();
        }
    }

    /// What is known. Answers that come later are dropped.
    pub fn end(&self) -> Report {
        let mut joint = self.joint();
        joint.is_over = true;
        let (answers, decided, awaited) = (std::mem::take(&mut joint.answers), joint.decided.take(), joint.awaited);
        drop(joint);
        let Asks::All(queries) = &self.asks else {
            return Report { missing: awaited, decided, ..Report::default() };
        };
        let mut joined: Vec<AdminAnswer> = queries.iter().map(|_| AdminAnswer::default()).collect();
        for parts in answers {
            for ((query, all), one) in queries.iter().zip(&mut joined).zip(parts) {
                query.join(all, one);
            }
        }
        let tables = queries.iter().zip(joined).map(|(query, answer)| ReportTable::of(query, answer)).collect();
        Report { tables, missing: awaited, decided: None }
    }

    fn joint(&self) -> MutexGuard<'_, Joint> {
        self.joint.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl From<Arc<Inquiry>> for Mail {
    fn from(inquiry: Arc<Inquiry>) -> Self {
        Self::of_feature(inquiry)
    }
}

impl fmt::Debug for Inquiry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inquiry").field("asks", &self.asks).finish_non_exhaustive()
    }
}

impl NodeOrder {
    pub(super) fn action(self) -> NodeAction {
        match self {
            Self::Pause => NodeAction::Pause,
            Self::Resume => NodeAction::Resume,
            Self::Drain => NodeAction::Drain,
        }
    }
}

impl ReportTable {
    fn of(query: &AdminQuery, answer: AdminAnswer) -> Self {
        let Table { rows, left_out } = query.finish(answer);
        let row = |line: Line| line.into_iter().map(|(name, cell)| (name, ReportCell::of(cell))).collect();
        Self { rows: rows.into_iter().map(row).collect(), left_out }
    }
}

impl ReportCell {
    fn of(cell: Cell) -> Self {
        match cell {
            Cell::Text(text) => Self::Text(text),
            Cell::Word(_, word) => Self::Text(word.to_owned()),
            Cell::Same(figure) | Cell::Sum(figure) | Cell::Max(figure) => Self::Number(figure),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn node(name: &str, outstanding: u64) -> AdminAnswer {
        let row = vec![("node", Cell::Text(name.to_owned())), ("outstanding", Cell::Sum(outstanding))];
        AdminAnswer::of_table(Table::of(vec![row]))
    }

    fn counted() -> (Arc<AtomicUsize>, OnEnd) {
        let ends = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&ends);
        (ends, Box::new(move || _ = count.fetch_add(1, Ordering::Relaxed)))
    }

    #[test]
    fn the_last_worker_ends_an_inquiry_once() {
        let (ends, on_end) = counted();
        let inquiry = Inquiry::show(&["nodes", "slowlog"], 9, 2, on_end).expect("there are these tables");
        inquiry.answer(vec![node("a", 1), AdminAnswer::default()]);
        assert_eq!(ends.load(Ordering::Relaxed), 0);
        inquiry.answer(vec![node("a", 2), AdminAnswer::default()]);
        assert_eq!(ends.load(Ordering::Relaxed), 1);
        let report = inquiry.end();
        let row = vec![("node", ReportCell::Text("a".to_owned())), ("outstanding", ReportCell::Number(3))];
        assert_eq!(report.tables, [ReportTable { rows: vec![row], left_out: 0 }, ReportTable::default()]);
        assert_eq!(report.missing, 0);
        inquiry.answer(vec![node("b", 2), AdminAnswer::default()]);
        assert_eq!(ends.load(Ordering::Relaxed), 1, "a late answer is dropped");
    }

    #[test]
    fn a_worker_that_is_silent_or_gone_is_counted_as_missing() {
        let (ends, on_end) = counted();
        let inquiry = Inquiry::show(&["nodes"], 9, 3, on_end).expect("there is this table");
        inquiry.answer(vec![node("a", 1)]);
        let report = inquiry.end();
        assert_eq!((report.tables[0].rows.len(), report.missing, ends.load(Ordering::Relaxed)), (1, 2, 0));
    }

    #[test]
    fn more_rows_than_wanted_are_cut_and_told() {
        for (rows_max, left, left_out) in [(1, 1, 1), (2, 2, 0), (3, 2, 0)] {
            let inquiry = Inquiry::show(&["nodes"], rows_max, 2, Box::new(|| ())).expect("there is this table");
            inquiry.answer(vec![node("a", 1)]);
            inquiry.answer(vec![node("b", 1)]);
            let table = inquiry.end().tables.remove(0);
            assert_eq!((table.rows.len(), table.left_out), (left, left_out), "{rows_max}");
        }
    }

    #[test]
    fn every_table_can_be_asked_for_by_its_name() {
        let names: Vec<String> = Inquiry::tables().collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert!(Inquiry::show(&names, 1, 1, Box::new(|| ())).is_some(), "{names:?}");
        assert!(Inquiry::show(&["nodes", "nosuch"], 1, 1, Box::new(|| ())).is_none());
    }
}
