//! Unions, intersections and differences of sorted sets and sets.

use std::collections::BTreeMap;

use respool_command::text;
use respool_wire::{Args, Protocol};

use super::super::set::LIMIT_NEGATIVE;
use super::super::{Answer, Call, Fault, named};
use crate::keyspace::{Kind, events};
use crate::number::double;
use crate::store::heap::Heap;
use crate::store::listpack::Element;
use crate::values::{Object, SortedSet};

const WEIGHT_NOT_A_FLOAT: &str = "ERR weight value is not a float";

/// How sorted sets are combined.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Operation {
    Union,
    Intersection,
    Difference,
}

/// How the scores that a member has in several inputs become one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Aggregate {
    Sum,
    Min,
    Max,
}

impl Aggregate {
    fn join(self, a: f64, b: f64) -> f64 {
        match self {
            // Plus and minus infinity make no number; Redis calls it zero.
            Self::Sum => zero_if_nan(a + b),
            Self::Min => {
                if b < a {
                    b
                } else {
                    a
                }
            }
            Self::Max => {
                if b > a {
                    b
                } else {
                    a
                }
            }
        }
    }
}

fn zero_if_nan(score: f64) -> f64 {
    if score.is_nan() { 0.0 } else { score }
}

/// What is combined, and how.
struct Wanted<'c> {
    keys: Args<'c>,
    weights: Vec<f64>,
    aggregate: Aggregate,
    with_scores: bool,
    limit: usize,
}

/// Which options a command takes.
#[derive(Clone, Copy)]
struct Taken {
    /// `WEIGHTS` and `AGGREGATE`.
    weights: bool,
    with_scores: bool,
    limit: bool,
}

/// Reads the arguments from the count of keys at `index` on.
fn wanted<'c>(call: &mut Call<'c, '_>, index: usize, taken: Taken) -> Result<Wanted<'c>, Fault> {
    let count = call.integer(index)?;
    if count < 1 {
        return Err(named(call.row, text::no_input_key));
    }
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    if count > call.args.len() - (index + 1) {
        return Err(text::SYNTAX.into());
    }
    let keys = call.args.from(index + 1).first(count);
    for key in keys.iter() {
        let kind = call.keyspace.read(call.at, key).map(|found| call.keyspace.kind(found));
        if kind.is_some_and(|kind| !matches!(kind, Kind::Set | Kind::SortedSet)) {
            return Err(text::WRONGTYPE.into());
        }
    }
    let mut wanted =
        Wanted { keys, weights: vec![1.0; count], aggregate: Aggregate::Sum, with_scores: false, limit: 0 };
    let mut at = index + 1 + count;
    while at < call.args.len() {
        let left = call.args.len() - at;
        if taken.weights && left > count && call.is_word(at, "WEIGHTS") {
            for (offset, weight) in wanted.weights.iter_mut().enumerate() {
                *weight = double::parse(call.arg(at + 1 + offset)).ok_or(WEIGHT_NOT_A_FLOAT)?;
            }
            at += 1 + count;
        } else if taken.weights && left >= 2 && call.is_word(at, "AGGREGATE") {
            wanted.aggregate = match () {
                () if call.is_word(at + 1, "SUM") => Aggregate::Sum,
                () if call.is_word(at + 1, "MIN") => Aggregate::Min,
                () if call.is_word(at + 1, "MAX") => Aggregate::Max,
                () => return Err(text::SYNTAX.into()),
            };
            at += 2;
        } else if taken.with_scores && call.is_word(at, "WITHSCORES") {
            wanted.with_scores = true;
            at += 1;
        } else if taken.limit && left >= 2 && call.is_word(at, "LIMIT") {
            wanted.limit = call.integer_from(at + 1, 0, LIMIT_NEGATIVE)?;
            at += 2;
        } else {
            return Err(text::SYNTAX.into());
        }
    }
    Ok(wanted)
}

/// One input with its weight: a sorted set, or a set whose members all score one.
#[derive(Clone, Copy)]
struct Input<'k> {
    object: Option<&'k Object>,
    weight: f64,
}

impl<'k> Input<'k> {
    fn len(&self) -> usize {
        self.object.map_or(0, Object::len)
    }

    fn is_same(&self, other: &Self) -> bool {
        self.object.zip(other.object).is_some_and(|(a, b)| std::ptr::eq(a, b))
    }

    /// The weighted score of a member. It may be no number, which is only looked at once it has been joined: then no sum
    /// is zero, and it is neither the least nor the greatest.
    fn score(&self, heap: &Heap, member: &[u8]) -> Option<f64> {
        let score = match self.object? {
            Object::Set(set) => set.contains(heap, member).then_some(1.0),
            Object::SortedSet(sorted) => sorted.score(heap, member),
            _ => None,
        };
        score.map(|score| score * self.weight)
    }

    fn each(&self, heap: &'k Heap, mut see: impl FnMut(Element<'k>, f64) -> bool) {
        let weighted = |score: f64| zero_if_nan(score * self.weight);
        match self.object {
            Some(Object::Set(set)) => set.each(heap, |member| see(member, weighted(1.0))),
            Some(Object::SortedSet(sorted)) => {
                sorted.each_from(heap, 0, false, |member, score| see(member, weighted(score)));
            }
            _ => {}
        }
    }
}

/// The inputs; all but differences are joined from the smallest to the largest, which decides how sums are rounded.
fn inputs<'k>(call: &'k Call<'_, '_>, wanted: &Wanted<'_>, operation: Operation) -> Vec<Input<'k>> {
    let object = |key| call.keyspace.object(call.keyspace.look(call.at, key)?);
    let weighted = wanted.keys.iter().zip(&wanted.weights);
    let mut inputs: Vec<_> = weighted.map(|(key, &weight)| Input { object: object(key), weight }).collect();
    if operation != Operation::Difference {
        inputs.sort_by_key(Input::len);
    }
    inputs
}

/// The combination, as a sorted set of its own.
fn combined(call: &mut Call<'_, '_>, wanted: &Wanted<'_>, operation: Operation) -> SortedSet {
    let mut members: Vec<(f64, Vec<u8>)> = Vec::new();
    {
        let inputs = inputs(call, wanted, operation);
        let heap = &call.keyspace.heap;
        match (operation, inputs.split_first()) {
            (_, None) => {}
            (Operation::Union, _) => {
                let mut union = BTreeMap::<Vec<u8>, f64>::new();
                for input in &inputs {
                    input.each(heap, |member, score| {
                        let joined = union.entry(member.to_vec());
                        joined.and_modify(|sum| *sum = wanted.aggregate.join(*sum, score)).or_insert(score);
                        true
                    });
                }
                members.extend(union.into_iter().map(|(member, score)| (score, member)));
            }
            (Operation::Intersection, Some((first, others))) => first.each(heap, |member, score| {
                let joined = member.read(|text| common_score(first, others, heap, text, score, wanted.aggregate));
                members.extend(joined.map(|score| (score, member.to_vec())));
                true
            }),
            (Operation::Difference, Some((first, others))) => difference(heap, first, others, &mut members),
        }
    }
    let heap = &mut call.keyspace.heap;
    let mut result = SortedSet::new_indexed();
    for (score, member) in &members {
        result.insert(heap, *score, member);
    }
    result
}

/// The members of `first` that no other input has. Asks the others for every member, or takes the others' members away,
/// whichever is less to do.
fn difference(heap: &Heap, first: &Input<'_>, others: &[Input<'_>], members: &mut Vec<(f64, Vec<u8>)>) {
    let all: usize = others.iter().map(Input::len).sum();
    if first.len().saturating_mul(others.len()) / 2 > first.len() + all {
        let mut left = BTreeMap::new();
        first.each(heap, |member, score| {
            left.insert(member.to_vec(), score);
            true
        });
        for other in others {
            other.each(heap, |member, _| {
                member.read(|member| left.remove(member));
                true
            });
        }
        members.extend(left.into_iter().map(|(member, score)| (score, member)));
        return;
    }
    first.each(heap, |member, score| {
        if !member.read(|member| others.iter().any(|other| other.score(heap, member).is_some())) {
            members.push((score, member.to_vec()));
        }
        true
    });
}

/// The score in an intersection of a member that the first input has.
fn common_score(
    first: &Input<'_>,
    others: &[Input<'_>],
    heap: &Heap,
    member: &[u8],
    score: f64,
    aggregate: Aggregate,
) -> Option<f64> {
    let mut joined = score;
    for other in others {
        // Bit by bit: weights of 0 and -0 are equal, and give zeros of both signs.
        let is_repeated = first.is_same(other) && other.weight.to_bits() == first.weight.to_bits();
        let score = if is_repeated { Some(score) } else { other.score(heap, member) };
        joined = aggregate.join(joined, score?);
    }
    Some(joined)
}

pub(super) fn reply(call: &mut Call<'_, '_>, operation: Operation) -> Answer {
    let taken = Taken { weights: operation != Operation::Difference, with_scores: true, limit: false };
    let wanted = wanted(call, 1, taken)?;
    let result = combined(call, &wanted, operation);
    let is_nested = wanted.with_scores && call.reply.protocol() == Protocol::Resp3;
    call.reply.array(if wanted.with_scores && !is_nested { result.len() * 2 } else { result.len() });
    result.each_from(&call.keyspace.heap, 0, false, |member, score| {
        if is_nested {
            call.reply.array(2);
        }
        super::super::bulk(call.reply, member);
        if wanted.with_scores {
            call.reply.double(score);
        }
        true
    });
    call.keyspace.discard(Object::SortedSet(result));
    Ok(())
}

pub(super) fn store(call: &mut Call<'_, '_>, operation: Operation) -> Answer {
    let taken = Taken { weights: operation != Operation::Difference, with_scores: false, limit: false };
    let wanted = wanted(call, 2, taken)?;
    let mut result = combined(call, &wanted, operation);
    result.repack(&mut call.keyspace.heap);
    let len = result.len();
    let event = match operation {
        Operation::Union => events::ZUNIONSTORE,
        Operation::Intersection => events::ZINTERSTORE,
        Operation::Difference => events::ZDIFFSTORE,
    };
    call.store(call.arg(1), result, event);
    call.reply_count(len)
}

pub(super) fn card(call: &mut Call<'_, '_>) -> Answer {
    let wanted = wanted(call, 1, Taken { weights: false, with_scores: false, limit: true })?;
    let mut common = 0;
    {
        let inputs = inputs(call, &wanted, Operation::Intersection);
        let heap = &call.keyspace.heap;
        if let Some((first, others)) = inputs.split_first() {
            // A key that is named again has its own members.
            let others: Vec<_> = others.iter().filter(|other| !other.is_same(first)).collect();
            first.each(heap, |member, _| {
                if member.read(|text| others.iter().all(|other| other.score(heap, text).is_some())) {
                    common += 1;
                }
                common == 0 || common != wanted.limit
            });
        }
    }
    call.reply_count(common)
}
