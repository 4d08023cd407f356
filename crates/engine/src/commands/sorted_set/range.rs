//! Ranges of sorted sets by rank, score or member: shown, stored, counted, removed.
//!
//! Every bound becomes a rank, so all of these work on a first rank and a number of members.

use respool_command::text;
use respool_wire::Protocol;

use super::super::list;
use super::super::{Answer, Call, Fault, bulk};
use crate::keyspace::{Edited, events};
use crate::number::double;
use crate::store::heap::Heap;
use crate::store::listpack::Element;
use crate::values::SortedSet;

const LIMIT_NEEDS_BOUNDS: &str =
    "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX";
const NO_SCORES_BY_LEX: &str = "ERR syntax error, WITHSCORES not supported in combination with BYLEX";

/// By what a range is bounded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Bounds {
    Rank,
    Score,
    Lex,
}

/// From the lowest member up, or from the highest down.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Direction {
    Up,
    Down,
}

/// A range as it was asked for.
enum Range<'c> {
    Ranks(i64, i64),
    Scores(ScoreBound, ScoreBound),
    Members(MemberBound<'c>, MemberBound<'c>),
}

#[derive(Clone, Copy)]
struct ScoreBound {
    score: f64,
    is_exclusive: bool,
}

#[derive(Clone, Copy)]
enum MemberBound<'c> {
    Lowest,
    Highest,
    Inclusive(&'c [u8]),
    Exclusive(&'c [u8]),
}

impl ScoreBound {
    fn read(text: &[u8]) -> Result<Self, Fault> {
        let (is_exclusive, digits) = match text {
            [b'(', digits @ ..] => (true, digits),
            digits => (false, digits),
        };
        let score = double::parse_bound(digits).ok_or(text::MIN_OR_MAX_NOT_A_FLOAT)?;
        Ok(Self { score, is_exclusive })
    }
}

impl<'c> MemberBound<'c> {
    fn read(text: &'c [u8]) -> Result<Self, Fault> {
        match text {
            [b'-'] | [b'-', 0, ..] => Ok(Self::Lowest),
            [b'+'] | [b'+', 0, ..] => Ok(Self::Highest),
            [b'[', member @ ..] => Ok(Self::Inclusive(member)),
            [b'(', member @ ..] => Ok(Self::Exclusive(member)),
            _ => Err(text::MIN_OR_MAX_NOT_A_RANGE_ITEM.into()),
        }
    }

    /// Whether `member` lies below a range that begins here.
    fn is_above(self, member: &[u8]) -> bool {
        match self {
            Self::Lowest => false,
            Self::Highest => true,
            Self::Inclusive(bound) => member < bound,
            Self::Exclusive(bound) => member <= bound,
        }
    }

    /// Whether `member` does not lie above a range that ends here.
    fn reaches(self, member: &[u8]) -> bool {
        match self {
            Self::Lowest => false,
            Self::Highest => true,
            Self::Inclusive(bound) => member <= bound,
            Self::Exclusive(bound) => member < bound,
        }
    }
}

impl<'c> Range<'c> {
    /// Reads the bounds at two arguments.
    fn read(call: &Call<'c, '_>, bounds: Bounds, min: usize, max: usize) -> Result<Self, Fault> {
        Ok(match bounds {
            Bounds::Rank => Self::Ranks(call.integer(min)?, call.integer(max)?),
            Bounds::Score => Self::Scores(ScoreBound::read(call.arg(min))?, ScoreBound::read(call.arg(max))?),
            Bounds::Lex => Self::Members(MemberBound::read(call.arg(min))?, MemberBound::read(call.arg(max))?),
        })
    }

    /// The first rank and the number of members; ranks of a range by rank count in `direction`.
    fn resolve(&self, sorted: &SortedSet, heap: &Heap, direction: Direction) -> (usize, usize) {
        let (first, end) = match *self {
            Self::Ranks(start, end) => {
                let (start, count) = list::range(start, end, sorted.len());
                return match direction {
                    Direction::Up => (start, count),
                    Direction::Down => (sorted.len().saturating_sub(start + count), count),
                };
            }
            Self::Scores(min, max) => (
                sorted.rank_by_score(|score| score < min.score || (min.is_exclusive && score == min.score)),
                sorted.rank_by_score(|score| score < max.score || (!max.is_exclusive && score == max.score)),
            ),
            Self::Members(min, max) if sorted.is_packed() => return walk(sorted, heap, (min, max), direction, 0),
            Self::Members(min, max) => (
                sorted.rank_by_member(heap, |member| min.is_above(member)),
                sorted.rank_by_member(heap, |member| max.reaches(member)),
            ),
        };
        (first, end.saturating_sub(first))
    }
}

/// The first rank and the number of members between two members, as Redis finds them in the compact encoding: it walks from
/// the end that the direction begins at. Where not all scores are equal, members are in no order of their own, and what a
/// walk finds depends on where it begins. The first `skipped` are passed over unseen.
fn walk(
    sorted: &SortedSet,
    heap: &Heap,
    (min, max): (MemberBound<'_>, MemberBound<'_>),
    direction: Direction,
    skipped: usize,
) -> (usize, usize) {
    let mut marks = Vec::with_capacity(sorted.len());
    sorted.each_from(heap, 0, false, |member, _| {
        marks.push(member.read(|member| (!min.is_above(member), max.reaches(member))));
        true
    });
    // Whether any can be found it judges by the first and the last.
    let (Some((_, true)), Some((true, _))) = (marks.first(), marks.last()) else { return (0, 0) };
    match direction {
        Direction::Up => {
            let first = marks.iter().position(|(is_from, _)| *is_from).unwrap_or(0);
            let start = if marks[first].1 { first.saturating_add(skipped).min(marks.len()) } else { marks.len() };
            (start, marks[start..].iter().take_while(|(_, reaches)| *reaches).count())
        }
        Direction::Down => {
            let last = marks.iter().rposition(|(_, reaches)| *reaches).unwrap_or(0);
            let end = if marks[last].0 { (last + 1).saturating_sub(skipped) } else { 0 };
            let count = marks[..end].iter().rev().take_while(|(is_from, _)| *is_from).count();
            (end - count, count)
        }
    }
}

/// A range command's arguments, read.
struct Wanted<'c> {
    range: Range<'c>,
    direction: Direction,
    with_scores: bool,
    limit: Option<(i64, i64)>,
}

impl<'c> Wanted<'c> {
    /// Reads the arguments behind the key at `key`. What the command leaves open, options say.
    fn read(
        call: &Call<'c, '_>,
        key: usize,
        bounds: Option<Bounds>,
        direction: Option<Direction>,
        is_stored: bool,
    ) -> Result<Self, Fault> {
        let (mut bounds, mut direction, mut with_scores, mut limit) = (bounds, direction, false, None);
        let mut index = key + 3;
        while index < call.args.len() {
            if !is_stored && call.is_word(index, "WITHSCORES") {
                with_scores = true;
            } else if call.is_word(index, "LIMIT") && index + 2 < call.args.len() {
                limit = Some((call.integer(index + 1)?, call.integer(index + 2)?));
                index += 2;
            } else if direction.is_none() && call.is_word(index, "REV") {
                direction = Some(Direction::Down);
            } else if bounds.is_none() && call.is_word(index, "BYLEX") {
                bounds = Some(Bounds::Lex);
            } else if bounds.is_none() && call.is_word(index, "BYSCORE") {
                bounds = Some(Bounds::Score);
            } else {
                return Err(text::SYNTAX.into());
            }
            index += 1;
        }
        let (bounds, direction) = (bounds.unwrap_or(Bounds::Rank), direction.unwrap_or(Direction::Up));
        if bounds == Bounds::Rank && limit.is_some_and(|(_, count)| count != -1) {
            return Err(LIMIT_NEEDS_BOUNDS.into());
        }
        if bounds == Bounds::Lex && with_scores {
            return Err(NO_SCORES_BY_LEX.into());
        }
        let (min, max) = match (bounds, direction) {
            (Bounds::Score | Bounds::Lex, Direction::Down) => (key + 2, key + 1),
            _ => (key + 1, key + 2),
        };
        let limit = limit.filter(|_| bounds != Bounds::Rank);
        Ok(Self { range: Range::read(call, bounds, min, max)?, direction, with_scores, limit })
    }

    /// The rank to start from and the number of members, `LIMIT` applied.
    fn resolve(&self, sorted: &SortedSet, heap: &Heap) -> (usize, usize) {
        // A negative offset leaves nothing; a negative count leaves all.
        let (offset, limit) = self.limit.map_or((0, usize::MAX), |(offset, limit)| {
            (usize::try_from(offset).unwrap_or(usize::MAX), usize::try_from(limit).unwrap_or(usize::MAX))
        });
        let (first, count, skipped) = match self.range {
            Range::Members(min, max) if sorted.is_packed() => {
                let (first, count) = walk(sorted, heap, (min, max), self.direction, offset);
                (first, count, 0)
            }
            _ => {
                let (first, count) = self.range.resolve(sorted, heap, self.direction);
                (first, count, offset.min(count))
            }
        };
        let shown = (count - skipped).min(limit);
        match self.direction {
            Direction::Up => (first + skipped, shown),
            Direction::Down => ((first + count).saturating_sub(skipped + 1), shown),
        }
    }
}

/// Shows the members from `start` on in `direction`, `count` of them.
fn each<'a>(
    sorted: &'a SortedSet,
    heap: &'a Heap,
    (start, count): (usize, usize),
    direction: Direction,
    mut see: impl FnMut(Element<'a>, f64),
) {
    let mut left = count;
    if left == 0 {
        return;
    }
    sorted.each_from(heap, start, direction == Direction::Down, |member, score| {
        see(member, score);
        left -= 1;
        left > 0
    });
}

pub(super) fn show(call: &mut Call<'_, '_>, bounds: Option<Bounds>, direction: Option<Direction>) -> Answer {
    let wanted = Wanted::read(call, 1, bounds, direction, false)?;
    let found = call.read::<SortedSet>(call.arg(1))?;
    let Some((sorted, heap)) = found.and_then(|found| call.keyspace.view::<SortedSet>(found)) else {
        call.reply.array(0);
        return Ok(());
    };
    let shown = wanted.resolve(sorted, heap);
    let is_nested = wanted.with_scores && call.reply.protocol() == Protocol::Resp3;
    call.reply.array(if wanted.with_scores && !is_nested { shown.1 * 2 } else { shown.1 });
    each(sorted, heap, shown, wanted.direction, |member, score| {
        if is_nested {
            call.reply.array(2);
        }
        bulk(call.reply, member);
        if wanted.with_scores {
            call.reply.double(score);
        }
    });
    Ok(())
}

pub(super) fn store(call: &mut Call<'_, '_>) -> Answer {
    let wanted = Wanted::read(call, 2, None, None, true)?;
    let found = call.read::<SortedSet>(call.arg(2))?;
    let mut members: Vec<(f64, Vec<u8>)> = Vec::new();
    if let Some((sorted, heap)) = found.and_then(|found| call.keyspace.view::<SortedSet>(found)) {
        let shown = wanted.resolve(sorted, heap);
        each(sorted, heap, shown, wanted.direction, |member, score| members.push((score, member.to_vec())));
    }
    let heap = &mut call.keyspace.heap;
    let mut stored = SortedSet::new_for(heap, 0);
    for (score, member) in &members {
        stored.insert(heap, *score, member);
    }
    call.store(call.arg(1), stored, events::ZRANGESTORE);
    call.reply_count(members.len())
}

pub(super) fn count(call: &mut Call<'_, '_>, bounds: Bounds) -> Answer {
    let range = Range::read(call, bounds, 2, 3)?;
    let found = call.read::<SortedSet>(call.arg(1))?;
    let sorted = found.and_then(|found| call.keyspace.view::<SortedSet>(found));
    let count = sorted.map_or(0, |(sorted, heap)| range.resolve(sorted, heap, Direction::Up).1);
    call.reply_count(count)
}

pub(super) fn remove(call: &mut Call<'_, '_>, bounds: Bounds) -> Answer {
    let range = Range::read(call, bounds, 2, 3)?;
    let removed = call.update(call.arg(1), |sorted: &mut SortedSet, heap| {
        let (first, count) = range.resolve(sorted, heap, Direction::Up);
        sorted.remove_range(heap, first, count);
        Edited::count(count).named(match bounds {
            Bounds::Rank => events::ZREMRANGEBYRANK,
            Bounds::Score => events::ZREMRANGEBYSCORE,
            Bounds::Lex => events::ZREMRANGEBYLEX,
        })
    })?;
    call.reply_count(removed.unwrap_or(0))
}
