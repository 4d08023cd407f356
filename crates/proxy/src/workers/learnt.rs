//! Commands that nodes were asked for, known to all workers, and how many more a worker or a client may have them asked for.

use crate::error_reply::ErrorReply;
use crate::limits::{LEARN_AGAIN_US, LEARNT_MAX, UNKNOWN_COMMANDS_MAX};
use respool_command::Row;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What all workers know of names that the table does not have.
#[derive(Debug, Default)]
pub(crate) struct LearntCommands {
    pub(crate) rows: Arc<BTreeMap<String, &'static Row>>,
    /// Names that a node did not know, and until when that is taken for granted.
    pub(crate) unknown: BTreeMap<String, u64>,
}

/// What is known of a name.
pub(crate) enum LearntCommand {
    Row(&'static Row),
    /// A node has said that there is no such command.
    Unknown,
    /// Nothing yet.
    Nothing,
}

impl LearntCommands {
    pub(crate) fn find(&self, name: &str, now_us: u64) -> LearntCommand {
        if let Some(row) = self.rows.get(name) {
            return LearntCommand::Row(row);
        }
        if self.unknown.get(name).is_some_and(|until_us| now_us < *until_us) {
            LearntCommand::Unknown
        } else {
            LearntCommand::Nothing
        }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.rows.len() >= LEARNT_MAX
    }

    pub(crate) fn note_row(&mut self, name: &str, row: &'static Row) {
        // A worker that has the rows at hand keeps those that it knows.
        let mut rows = BTreeMap::clone(&self.rows);
        rows.entry(name.to_owned()).or_insert(row);
        self.rows = Arc::new(rows);
    }

    /// Remembers that a node does not know a name. Of too many the one that would be asked for again first is forgotten.
    pub(crate) fn note_unknown(&mut self, name: &str, now_us: u64) {
        self.unknown.retain(|_, until_us| now_us < *until_us);
        if self.unknown.len() >= UNKNOWN_COMMANDS_MAX
            && let Some(first) =
                self.unknown.iter().min_by_key(|(_, until_us)| **until_us).map(|(name, _)| name.clone())
        {
            self.unknown.remove(&first);
        }
        self.unknown.insert(name.to_owned(), now_us + LEARN_AGAIN_US);
    }
}

/// A leaky bucket of questions.
#[derive(Debug, Default)]
pub(crate) struct Bucket {
    /// When all questions have been paid for, on the monotonic clock.
    pub(crate) paid_us: u64,
}

impl Bucket {
    /// When the next question may be put; it counts as put.
    pub(crate) fn take(&mut self, now_us: u64, burst: u64, interval_us: u64) -> u64 {
        self.paid_us = self.paid_us.max(now_us) + interval_us;
        self.paid_us.saturating_sub(interval_us * burst)
    }

    /// Whether one more question may be put now.
    pub(crate) fn has_room(&self, now_us: u64, burst: u64, interval_us: u64) -> bool {
        self.paid_us.max(now_us) + interval_us <= now_us + interval_us * burst
    }
}

/// What a client has had nodes asked for.
#[derive(Debug, Default)]
pub(crate) struct LearningBudget {
    pub(crate) bucket: Bucket,
    /// Its turn to ask has come, or it may ask at once.
    pub(crate) has_turn: bool,
    /// The name that was asked for last on its behalf, and what came of it if that is no row. It is for the same request,
    /// which is read again, and so never asks twice.
    pub(crate) outcome: Option<(Box<str>, Outcome)>,
}

/// What came of a question, if it is no row.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    Unknown,
    /// There are as many rows as there may be.
    Full,
    /// The nodes could not be asked, or did not answer: the words of the error.
    Unasked(ErrorReply),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::{LEARN_BURST, LEARN_INTERVAL_US};
    use respool_command::lookup;

    fn is_unknown(learnt: &LearntCommands, name: &str, now_us: u64) -> bool {
        matches!(learnt.find(name, now_us), LearntCommand::Unknown)
    }

    #[test]
    fn a_name_that_a_node_did_not_know_is_asked_for_again_later() {
        let mut learnt = LearntCommands::default();
        assert!(matches!(learnt.find("X", 0), LearntCommand::Nothing));
        learnt.note_unknown("X", 5);
        assert!(is_unknown(&learnt, "X", 4 + LEARN_AGAIN_US));
        assert!(matches!(learnt.find("X", 5 + LEARN_AGAIN_US), LearntCommand::Nothing));
    }

    #[test]
    fn a_row_stays_and_stands_before_an_earlier_refusal() {
        let [get, set] = [&b"GET"[..], b"SET"].map(|name| lookup(name).expect("it has a row"));
        let mut learnt = LearntCommands::default();
        learnt.note_unknown("X", 0);
        learnt.note_row("X", get);
        learnt.note_row("X", set);
        assert!(matches!(learnt.find("X", 0), LearntCommand::Row(row) if std::ptr::eq(row, get)));
    }

    #[test]
    fn of_too_many_unknown_names_the_oldest_is_forgotten() {
        let mut learnt = LearntCommands::default();
        for n in 0..=UNKNOWN_COMMANDS_MAX {
            learnt.note_unknown(&format!("X{n}"), n as u64);
        }
        assert_eq!(learnt.unknown.len(), UNKNOWN_COMMANDS_MAX);
        let now_us = UNKNOWN_COMMANDS_MAX as u64;
        assert!(!is_unknown(&learnt, "X0", now_us));
        assert!(is_unknown(&learnt, "X1", now_us) && is_unknown(&learnt, &format!("X{UNKNOWN_COMMANDS_MAX}"), now_us));
    }

    #[test]
    fn what_a_node_has_said_holds_for_a_time() {
        let mut learnt = LearntCommands::default();
        let now_us = 1_000_000_000;
        learnt.note_unknown("N1", now_us);
        assert!(matches!(learnt.find("N1", now_us), LearntCommand::Unknown));
        assert!(matches!(learnt.find("N2", now_us), LearntCommand::Nothing));
        assert!(matches!(learnt.find("N1", now_us + LEARN_AGAIN_US), LearntCommand::Nothing));
        learnt.note_row("N3", lookup(b"GET").expect("it has a row"));
        assert!(matches!(learnt.find("N3", now_us), LearntCommand::Row(_)));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut learnt = LearntCommands::default();
        for number in 0..2 * UNKNOWN_COMMANDS_MAX as u64 {
            learnt.note_unknown(&format!("A{number}"), number);
        }
        assert_eq!(learnt.unknown.len(), UNKNOWN_COMMANDS_MAX);
        assert!(matches!(
            learnt.find(&format!("A{}", 2 * UNKNOWN_COMMANDS_MAX - 1), 2 * UNKNOWN_COMMANDS_MAX as u64),
            LearntCommand::Unknown
        ));
        for number in 0..LEARNT_MAX {
            assert!(!learnt.is_full());
            learnt.note_row(&format!("B{number}"), lookup(b"GET").expect("it has a row"));
        }
        assert!(learnt.is_full());
    }

    #[test]
    fn a_bucket_gives_a_burst_and_then_one_in_each_interval() {
        let mut bucket = Bucket::default();
        let mut turns = Vec::new();
        for _ in 0..5 {
            turns.push(bucket.take(1000, 3, 10));
        }
        // Three at once, which means at a time that has come; the others at one interval after another.
        assert!(turns[..3].iter().all(|due_us| *due_us <= 1000), "{turns:?}");
        assert_eq!(turns[3..], [1010, 1020]);
    }

    #[test]
    fn a_bucket_has_room_exactly_when_the_turn_has_come() {
        let mut bucket = Bucket::default();
        for _ in 0..3 {
            assert!(bucket.has_room(1000, 3, 10));
            assert!(bucket.take(1000, 3, 10) <= 1000);
        }
        assert!(!bucket.has_room(1000, 3, 10));
        assert!(!bucket.has_room(1009, 3, 10));
        assert!(bucket.has_room(1010, 3, 10));
        assert!(bucket.take(1010, 3, 10) <= 1010);
    }

    #[test]
    fn questions_have_a_rate() {
        let mut bucket = Bucket::default();
        let now_us = 1_000_000_000;
        let at_once = (0..1_000).filter(|_| bucket.take(now_us, LEARN_BURST, LEARN_INTERVAL_US) <= now_us).count();
        assert_eq!(at_once as u64, LEARN_BURST);
        // Each of the others has a time of its own.
        assert_eq!(bucket.paid_us, now_us + 1_000 * LEARN_INTERVAL_US);
    }
}
