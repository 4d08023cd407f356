//! The search for an order.

use std::collections::HashSet;

use super::Operation;
use super::store::{Answer, Store};

/// What a search found.
pub(super) enum Found {
    Order,
    None,
    TooLong,
}

/// Which requests have been taken, as bits.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Taken(Vec<u64>);

impl Taken {
    fn has(&self, place: usize) -> bool {
        self.0[place / 64] >> (place % 64) & 1 == 1
    }

    fn with(&self, place: usize) -> Taken {
        let mut taken = self.clone();
        taken.0[place / 64] |= 1 << (place % 64);
        taken
    }
}

/// One point of the search: what was taken, what the store holds then, and which request is tried next.
struct Point {
    taken: Taken,
    store: Store,
    candidates: Vec<usize>,
}

/// Looks for an order of these requests. Those that have ended have to be in it, the others may be.
pub(super) fn find_order(operations: &[&Operation], steps_max: usize) -> Found {
    let mut operations = operations.to_vec();
    operations.sort_by_key(|operation| (operation.called, operation.client));
    let before = predecessors(&operations);
    let first = Taken(vec![0; operations.len().div_ceil(64).max(1)]);
    let Some(first_ones) = candidates(&operations, &before, &first) else { return Found::Order };
    let mut seen: HashSet<(Taken, Store)> = HashSet::new();
    let mut path = vec![Point { taken: first, store: Store::default(), candidates: first_ones }];
    let mut steps = 0;
    while let Some(point) = path.last_mut() {
        let Some(next) = point.candidates.pop() else {
            path.pop();
            continue;
        };
        steps += 1;
        if steps > steps_max {
            return Found::TooLong;
        }
        let mut store = point.store.clone();
        if !happens(operations[next], &mut store) {
            continue;
        }
        let taken = point.taken.with(next);
        if !seen.insert((taken.clone(), store.clone())) {
            continue;
        }
        match candidates(&operations, &before, &taken) {
            None => return Found::Order,
            Some(next_ones) => path.push(Point { taken, store, candidates: next_ones }),
        }
    }
    Found::None
}

/// Does a request to the store. `false`: its client would have been told something else.
fn happens(operation: &Operation, store: &mut Store) -> bool {
    match &operation.ended {
        Some((_, answers)) => {
            answers.len() == operation.actions.len()
                && operation.actions.iter().zip(answers).all(|(action, answer)| store.apply(action, answer))
        }
        None => operation.actions.iter().all(|action| store.apply(action, &Answer::Any)),
    }
}

/// For each request the one of the same client before it that has ended, if there is one.
fn predecessors(operations: &[&Operation]) -> Vec<Option<usize>> {
    let of_same = |place: usize| {
        let client = operations[place].client;
        (0..place).rev().find(|&before| operations[before].client == client && operations[before].ended.is_some())
    };
    // One that never ended may happen at any time, also behind what its client asked later.
    (0..operations.len()).map(|place| operations[place].ended.is_some().then(|| of_same(place)).flatten()).collect()
}

/// Requests that may be next, the likeliest last; `None` when all that have ended are taken. One may be next if it was called
/// before the earliest end of those that are left, and what its client asked before it is taken.
fn candidates(operations: &[&Operation], before: &[Option<usize>], taken: &Taken) -> Option<Vec<usize>> {
    let left = || (0..operations.len()).filter(|&place| !taken.has(place));
    let ends = left().filter_map(|place| operations[place].ended.as_ref().map(|(at, _)| *at));
    let first_end = ends.min()?;
    let may_be =
        |&place: &usize| operations[place].called <= first_end && before[place].is_none_or(|before| taken.has(before));
    let mut candidates: Vec<usize> = left().filter(may_be).collect();
    // Those that have ended first come first, and those that may never have happened last.
    candidates
        .sort_by_key(|&place| std::cmp::Reverse(operations[place].ended.as_ref().map_or(u64::MAX, |(at, _)| *at)));
    Some(candidates)
}
