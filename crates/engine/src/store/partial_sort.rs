//! Sorts only a range of a slice, and leaves equal elements in the same order as Redis does.
//!
//! Bentley's and McIlroy's quicksort ("Engineering a sort function", 1993), which sorts a part only if it overlaps the range.
//! Which of several equal elements are among the first depends on each of its steps, so they are all as published. Adversarial input
//! could make it quadratic: below a limit on the depth, a part is sorted by another algorithm.

use std::cmp::Ordering;
use std::ops::Range;

/// Parts smaller than this are sorted by insertion.
const INSERTED_MAX: usize = 7;
/// Parts larger than this have their middle estimated from nine elements instead of three.
const THREE_MAX: usize = 40;

/// Sorts so that the elements at `wanted` are those of the sorted slice. If `wanted` is the whole slice, the sort is stable.
pub(crate) fn sort<T>(items: &mut [T], wanted: Range<usize>, mut compare: impl FnMut(&T, &T) -> Ordering) {
    if wanted.start == 0 && wanted.end >= items.len() {
        return items.sort_by(compare);
    }
    let depth_max = 2 * items.len().checked_ilog2().unwrap_or(0) + 8;
    if !wanted.is_empty() {
        sort_part(items, &wanted, 0, depth_max, &mut compare);
    }
}

/// Sorts a part that begins at index `base` of the whole slice.
fn sort_part<T>(
    mut items: &mut [T],
    wanted: &Range<usize>,
    mut base: usize,
    mut depth_left: u32,
    compare: &mut impl FnMut(&T, &T) -> Ordering,
) {
    loop {
        let len = items.len();
        if len < INSERTED_MAX {
            return insert_all(items, compare);
        }
        let Some(left) = depth_left.checked_sub(1) else { return items.sort_by(compare) };
        depth_left = left;
        let (less, greater) = split(items, compare);
        let is_wanted = |base: usize, len: usize| len > 1 && wanted.start < base + len && wanted.end > base;
        if is_wanted(base, less) {
            sort_part(&mut items[..less], wanted, base, depth_left, compare);
        }
        base += len - greater;
        if !is_wanted(base, greater) {
            return;
        }
        items = &mut items[len - greater..];
    }
}

fn insert_all<T>(items: &mut [T], compare: &mut impl FnMut(&T, &T) -> Ordering) {
    for end in 1..items.len() {
        let mut at = end;
        while at > 0 && compare(&items[at - 1], &items[at]).is_gt() {
            items.swap(at - 1, at);
            at -= 1;
        }
    }
}

/// Partitions around a pivot: less in front, greater at the back; returns how many there are of each.
fn split<T>(items: &mut [T], compare: &mut impl FnMut(&T, &T) -> Ordering) -> (usize, usize) {
    let len = items.len();
    let middle = middle_of(items, compare);
    items.swap(0, middle);
    // Equal elements gather at both ends first: [equal | less | open | greater | equal].
    let (mut equal, mut low) = (1, 1);
    let (mut high, mut equal_high) = (len, len);
    loop {
        while low < high {
            let order = compare(&items[low], &items[0]);
            if order.is_gt() {
                break;
            }
            if order.is_eq() {
                items.swap(equal, low);
                equal += 1;
            }
            low += 1;
        }
        while low < high {
            let order = compare(&items[high - 1], &items[0]);
            if order.is_lt() {
                break;
            }
            if order.is_eq() {
                items.swap(high - 1, equal_high - 1);
                equal_high -= 1;
            }
            high -= 1;
        }
        if low >= high {
            break;
        }
        items.swap(low, high - 1);
        low += 1;
        high -= 1;
    }
    let (less, greater) = (low - equal, equal_high - high);
    let moved = equal.min(less);
    (0..moved).for_each(|index| items.swap(index, low - moved + index));
    let moved = greater.min(len - equal_high);
    (0..moved).for_each(|index| items.swap(low + index, len - moved + index));
    (less, greater)
}

/// An element that is probably near the middle.
fn middle_of<T>(items: &[T], compare: &mut impl FnMut(&T, &T) -> Ordering) -> usize {
    let len = items.len();
    let middle = len / 2;
    if len == INSERTED_MAX {
        return middle;
    }
    let mut median = |a: usize, b: usize, c: usize| {
        let mut order = |a: usize, b: usize| compare(&items[a], &items[b]);
        if order(a, b).is_lt() {
            if order(b, c).is_lt() {
                b
            } else if order(a, c).is_lt() {
                c
            } else {
                a
            }
        } else if order(b, c).is_gt() {
            b
        } else if order(a, c).is_lt() {
            a
        } else {
            c
        }
    };
    let (mut low, mut mid, mut high) = (0, middle, len - 1);
    if len > THREE_MAX {
        let step = len / 8;
        low = median(low, low + step, low + 2 * step);
        mid = median(mid - step, mid, mid + step);
        high = median(high - 2 * step, high - step, high);
    }
    median(low, mid, high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::random::Random;

    #[test]
    fn what_is_wanted_is_sorted() {
        let mut random = Random::new(21);
        for round in 0..2_000 {
            let len = random.below(300) as usize;
            let values: Vec<u64> = (0..len).map(|_| random.below(1 + round % 50)).collect();
            let start = random.below(len as u64 + 2) as usize;
            let end = start + random.below(20) as usize;
            let (mut sorted, mut partly) = (values.clone(), values);
            sorted.sort_unstable();
            sort(&mut partly, start..end, Ord::cmp);
            assert_eq!(partly.get(start..end.min(len)), sorted.get(start..end.min(len)));
            partly.sort_unstable();
            assert_eq!(partly, sorted, "nothing is lost");
        }
    }

    #[test]
    fn chosen_input_does_not_make_it_quadratic() {
        // The adversary fixes the order of two elements only when they are compared, as late as possible.
        const LEN: usize = 20_000;
        let (mut fixed, mut open) = (vec![usize::MAX; LEN], (0, 0));
        let mut compared = 0_usize;
        let mut items: Vec<usize> = (0..LEN).collect();
        sort(&mut items, 0..LEN - 1, |&a, &b| {
            compared += 1;
            let (next, candidate) = &mut open;
            if fixed[a] == usize::MAX && fixed[b] == usize::MAX {
                fixed[if a == *candidate { a } else { b }] = *next;
                *next += 1;
            }
            if fixed[a] == usize::MAX {
                *candidate = a;
            } else if fixed[b] == usize::MAX {
                *candidate = b;
            }
            fixed[a].cmp(&fixed[b])
        });
        assert!(compared < LEN * 100, "{compared} comparisons");
    }
}
