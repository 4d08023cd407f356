//! Is a history linearizable? A history is what clients asked and were told, and when.
//!
//! It is if each request can be thought to have happened at one moment between its call and its reply, so that all replies are
//! those of one store that does one thing at a time. A request whose outcome its client does not know has no end: it may happen
//! at any moment after its call, or never. That is no excuse for others: if its effect is seen once, it has happened.
//!
//! The search is Wing and Gong's with the memory of states of Lowe: the next request is one that was called before the earliest end
//! of those that are left, and no set of requests is tried twice with the same store. Requests of one client that have ended are
//! taken in the client's order. Keys that no transaction connects are checked apart, which keeps the sets small.

mod search;
mod store;
pub mod talk;

use std::collections::BTreeMap;
use std::fmt;

pub use store::{Action, Answer};

/// A request of a history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// Who asked.
    pub client: u32,
    /// When, on any scale on which later is more.
    pub called: u64,
    /// When the reply was there, and what it was. `None`: the client does not know whether it happened.
    pub ended: Option<(u64, Vec<Answer>)>,
    /// What happens, all at one moment.
    pub actions: Vec<Action>,
}

impl Operation {
    fn keys(&self) -> impl Iterator<Item = u32> {
        self.actions.iter().map(Action::key)
    }
}

/// What a search came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// There is an order.
    Linearizable,
    /// There is none: the requests of the keys concerned, as text.
    Violation(String),
    /// The search was given up: so many steps were not enough.
    Undecided,
}

/// Looks for an order in which all replies are right. Gives up after `steps_max` steps for one group of keys.
pub fn check(history: &[Operation], steps_max: usize) -> Verdict {
    let mut is_undecided = false;
    for group in groups(history) {
        match search::find_order(&group, steps_max) {
            search::Found::Order => {}
            search::Found::None => return Verdict::Violation(told(&group)),
            search::Found::TooLong => is_undecided = true,
        }
    }
    if is_undecided { Verdict::Undecided } else { Verdict::Linearizable }
}

/// The number of independent histories: keys that no request has in common are in separate ones.
pub fn count(history: &[Operation]) -> usize {
    groups(history).len()
}

/// Requests by the keys that belong together, because one request has both.
fn groups(history: &[Operation]) -> Vec<Vec<&Operation>> {
    let mut leaders: BTreeMap<u32, u32> = BTreeMap::new();
    fn leader(leaders: &mut BTreeMap<u32, u32>, key: u32) -> u32 {
        let above = *leaders.entry(key).or_insert(key);
        if above == key {
            return key;
        }
        let top = leader(leaders, above);
        leaders.insert(key, top);
        top
    }
    for operation in history {
        let mut keys = operation.keys();
        let Some(first) = keys.next() else { continue };
        for key in keys {
            let (one, other) = (leader(&mut leaders, first), leader(&mut leaders, key));
            leaders.insert(other, one);
        }
    }
    let mut groups: BTreeMap<u32, Vec<&Operation>> = BTreeMap::new();
    for operation in history {
        if let Some(key) = operation.keys().next() {
            groups.entry(leader(&mut leaders, key)).or_default().push(operation);
        }
    }
    groups.into_values().collect()
}

/// A history for people, by the time of the calls.
fn told(group: &[&Operation]) -> String {
    let mut sorted = group.to_vec();
    sorted.sort_by_key(|operation| operation.called);
    let lines: Vec<String> = sorted.iter().map(|operation| operation.to_string()).collect();
    lines.join("\n")
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>6}..", self.called)?;
        match &self.ended {
            Some((at, answers)) => write!(f, "{at:<6} client {}: {:?} -> {answers:?}", self.client, self.actions),
            None => write!(f, "       client {}: {:?} -> unknown", self.client, self.actions),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEPS: usize = 100_000;

    fn operation(client: u32, called: u64, ended: u64, action: Action, answer: Answer) -> Operation {
        Operation { client, called, ended: Some((ended, vec![answer])), actions: vec![action] }
    }

    fn unknown(client: u32, called: u64, action: Action) -> Operation {
        Operation { client, called, ended: None, actions: vec![action] }
    }

    fn set(value: u64) -> Action {
        Action::Set { key: 1, value }
    }

    const GET: Action = Action::Get { key: 1 };
    const INCR: Action = Action::Increment { key: 1 };
    const POP: Action = Action::Pop { key: 1 };

    fn push(value: u64) -> Action {
        Action::Push { key: 1, value }
    }

    fn is_linearizable(history: &[Operation]) -> bool {
        match check(history, STEPS) {
            Verdict::Linearizable => true,
            Verdict::Violation(_) => false,
            Verdict::Undecided => panic!("so short a history is decided"),
        }
    }

    #[test]
    fn overlapping_requests_may_have_happened_in_any_order() {
        let history = |read| {
            [
                operation(1, 0, 10, set(1), Answer::Done),
                operation(2, 2, 8, set(2), Answer::Done),
                operation(3, 11, 12, GET, Answer::Value(Some(read))),
            ]
        };
        assert!(is_linearizable(&history(1)) && is_linearizable(&history(2)));
        assert!(!is_linearizable(&history(3)), "a value that was never written");
    }

    #[test]
    fn what_has_ended_is_seen_by_what_comes_later() {
        let stale = [
            operation(1, 0, 1, set(1), Answer::Done),
            operation(1, 2, 3, set(2), Answer::Done),
            operation(2, 4, 5, GET, Answer::Value(Some(1))),
        ];
        assert!(!is_linearizable(&stale), "a stale read");
        let lost = [operation(1, 0, 1, set(1), Answer::Done), operation(2, 2, 3, GET, Answer::Value(None))];
        assert!(!is_linearizable(&lost), "a lost write");
        let back = [
            operation(1, 0, 9, set(1), Answer::Done),
            operation(2, 1, 2, GET, Answer::Value(Some(1))),
            operation(3, 3, 4, GET, Answer::Value(None)),
        ];
        assert!(!is_linearizable(&back), "a write that is seen, and then not");
    }

    #[test]
    fn a_client_sees_its_own_requests_in_order() {
        // Sent in one go: both calls come before both replies.
        let pipelined = |first, second| {
            [
                operation(1, 0, 9, set(1), Answer::Done),
                operation(1, 1, 9, GET, Answer::Value(first)),
                operation(1, 2, 9, GET, Answer::Value(second)),
            ]
        };
        assert!(is_linearizable(&pipelined(Some(1), Some(1))));
        assert!(!is_linearizable(&pipelined(None, Some(1))), "the read has overtaken the write");
    }

    #[test]
    fn an_unknown_request_happens_once_at_any_time_or_never() {
        let history = |reads: [Option<u64>; 3]| {
            let read = |at: u64, value| operation(2, at, at + 1, GET, Answer::Value(value));
            [
                operation(1, 0, 1, set(1), Answer::Done),
                unknown(1, 2, set(2)),
                read(10, reads[0]),
                read(20, reads[1]),
                read(30, reads[2]),
            ]
        };
        assert!(is_linearizable(&history([Some(1), Some(1), Some(1)])), "never");
        assert!(is_linearizable(&history([Some(1), Some(2), Some(2)])), "late");
        assert!(!is_linearizable(&history([Some(2), Some(1), Some(2)])), "taken back");
        let counted = |first, second| {
            [
                unknown(1, 0, INCR),
                operation(2, 1, 2, INCR, Answer::Count(first)),
                operation(2, 3, 4, INCR, Answer::Count(second)),
            ]
        };
        assert!(is_linearizable(&counted(1, 2)) && is_linearizable(&counted(2, 3)) && is_linearizable(&counted(1, 3)));
        assert!(!is_linearizable(&counted(2, 4)) && !is_linearizable(&counted(3, 4)), "done twice");
    }

    #[test]
    fn a_counter_gives_each_number_once() {
        let history = |first, second| {
            [operation(1, 0, 9, INCR, Answer::Count(first)), operation(2, 1, 8, INCR, Answer::Count(second))]
        };
        assert!(is_linearizable(&history(1, 2)) && is_linearizable(&history(2, 1)));
        assert!(!is_linearizable(&history(1, 1)) && !is_linearizable(&history(1, 3)));
    }

    #[test]
    fn an_element_is_given_to_one_client() {
        let pop = |client, value| operation(client, 2, 9, POP, Answer::Value(value));
        let pushed = operation(1, 0, 1, push(7), Answer::Count(1));
        assert!(is_linearizable(&[pushed.clone(), pop(2, Some(7)), pop(3, None)]));
        assert!(!is_linearizable(&[pushed.clone(), pop(2, Some(7)), pop(3, Some(7))]), "given twice");
        assert!(!is_linearizable(&[pushed.clone(), pop(2, None)]), "it was there");
        let after = [pushed, unknown(2, 2, POP), operation(3, 3, 4, POP, Answer::Value(None))];
        assert!(is_linearizable(&after), "the other one may have had it");
        let order = [
            operation(1, 0, 1, push(7), Answer::Count(1)),
            operation(1, 2, 3, push(8), Answer::Count(2)),
            operation(2, 4, 5, POP, Answer::Value(Some(8))),
        ];
        assert!(!is_linearizable(&order), "the first goes first");
    }

    #[test]
    fn what_was_taken_may_come_back_once() {
        let history = |seen: [Option<u64>; 3]| {
            let pop = |at: u64, value| operation(3, at, at + 1, POP, Answer::Value(value));
            [
                operation(1, 0, 1, push(7), Answer::Count(1)),
                unknown(2, 2, Action::Take { key: 1, ticket: 5 }),
                unknown(2, 2, Action::PutBack { key: 1, ticket: 5 }),
                pop(10, seen[0]),
                pop(20, seen[1]),
                pop(30, seen[2]),
            ]
        };
        assert!(is_linearizable(&history([None, None, None])) && is_linearizable(&history([None, Some(7), None])));
        assert!(is_linearizable(&history([Some(7), None, None])));
        assert!(!is_linearizable(&history([Some(7), None, Some(7)])), "given twice");
        assert!(!is_linearizable(&history([None, Some(8), None])), "another one");
    }

    #[test]
    fn compare_and_set_replaces_what_it_has_read() {
        let cas = |client, called, ended, expected, value, answer| {
            operation(client, called, ended, Action::CompareAndSet { key: 1, expected, value }, answer)
        };
        let set = operation(1, 0, 1, set(1), Answer::Done);
        let both = [
            set.clone(),
            cas(2, 2, 9, Some(1), 2, Answer::Swapped(true)),
            cas(3, 3, 8, Some(1), 3, Answer::Swapped(true)),
        ];
        assert!(!is_linearizable(&both), "an update is lost");
        let one =
            [set, cas(2, 2, 9, Some(1), 2, Answer::Swapped(true)), cas(3, 3, 8, Some(1), 3, Answer::Swapped(false))];
        assert!(is_linearizable(&one));
    }

    #[test]
    fn a_transaction_happens_at_one_moment() {
        let both = Operation {
            client: 1,
            called: 0,
            ended: Some((9, vec![Answer::Done, Answer::Done])),
            actions: vec![Action::Set { key: 1, value: 1 }, Action::Set { key: 2, value: 1 }],
        };
        let reads = |first, second| Operation {
            client: 2,
            called: 1,
            ended: Some((8, vec![Answer::Value(first), Answer::Value(second)])),
            actions: vec![Action::Get { key: 1 }, Action::Get { key: 2 }],
        };
        assert!(is_linearizable(&[both.clone(), reads(None, None)]));
        assert!(is_linearizable(&[both.clone(), reads(Some(1), Some(1))]));
        assert!(!is_linearizable(&[both.clone(), reads(Some(1), None)]), "half of it");
        let open = Operation { ended: None, ..both };
        assert!(!is_linearizable(&[open, reads(None, Some(1))]), "nor is half of it done when its outcome is unknown");
    }

    #[test]
    fn keys_apart_are_checked_apart_and_a_bound_is_kept() {
        let on = |key, at: u64| operation(1, at, at + 1, Action::Set { key, value: at }, Answer::Done);
        let history: Vec<Operation> = (0..3_000).map(|at| on(at as u32 % 1_000, 2 * at)).collect();
        assert_eq!(check(&history, 100), Verdict::Linearizable);
        let crowd: Vec<Operation> =
            (0..40).map(|client| operation(client, 0, 9, INCR, Answer::Count(u64::from(client) + 2))).collect();
        assert_eq!(check(&crowd, 1_000), Verdict::Violation(told(&crowd.iter().collect::<Vec<_>>())), "found at once");
        let open: Vec<Operation> = (0..40)
            .map(|client| unknown(client, 0, set(u64::from(client))))
            .chain([operation(50, 1, 2, GET, Answer::Value(Some(99)))])
            .collect();
        assert_eq!(check(&open, 1_000), Verdict::Undecided);
    }
}
