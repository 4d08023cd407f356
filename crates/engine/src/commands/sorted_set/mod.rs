//! Sorted sets.

mod combine;
mod range;

use respool_command::{SortedSetCommand, text};
use respool_wire::Protocol;

use super::list::NUMKEYS;
use super::scan::Scanned;
use super::{Answer, Call, Fault, bulk, check_reply, pick};
use crate::keyspace::{Edited, Found, events};
use crate::number::double;
use crate::store::listpack::Element;
use crate::values::SortedSet;
use range::{Bounds, Direction};

const NX_WITH_XX: &str = "ERR XX and NX options at the same time are not compatible";
const GT_LT_NX: &str = "ERR GT, LT, and/or NX options at the same time are not compatible";
const INCR_ONE_PAIR: &str = "ERR INCR option supports a single increment-element pair";

/// Runs one command of the group.
pub(super) fn run(command: SortedSetCommand, call: &mut Call<'_, '_>) -> Answer {
    use SortedSetCommand as C;
    match command {
        C::Bzmpop => zmpop(call, 2),
        C::Bzpopmax => bzpop(call, Direction::Down),
        C::Bzpopmin => bzpop(call, Direction::Up),
        C::Zadd => zadd(call, Addition::default()),
        C::Zcard => zcard(call),
        C::Zcount => range::count(call, Bounds::Score),
        C::Zdiff => combine::reply(call, combine::Operation::Difference),
        C::Zdiffstore => combine::store(call, combine::Operation::Difference),
        C::Zincrby => zadd(call, Addition { increments: true, ..Addition::default() }),
        C::Zinter => combine::reply(call, combine::Operation::Intersection),
        C::Zintercard => combine::card(call),
        C::Zinterstore => combine::store(call, combine::Operation::Intersection),
        C::Zlexcount => range::count(call, Bounds::Lex),
        C::Zmpop => zmpop(call, 1),
        C::Zmscore => zmscore(call),
        C::Zpopmax => zpop(call, Direction::Down),
        C::Zpopmin => zpop(call, Direction::Up),
        C::Zrandmember => zrandmember(call),
        C::Zrange => range::show(call, None, None),
        C::Zrangebylex => range::show(call, Some(Bounds::Lex), Some(Direction::Up)),
        C::Zrangebyscore => range::show(call, Some(Bounds::Score), Some(Direction::Up)),
        C::Zrangestore => range::store(call),
        C::Zrank => zrank(call, Direction::Up),
        C::Zrem => zrem(call),
        C::Zremrangebylex => range::remove(call, Bounds::Lex),
        C::Zremrangebyrank => range::remove(call, Bounds::Rank),
        C::Zremrangebyscore => range::remove(call, Bounds::Score),
        C::Zrevrange => range::show(call, Some(Bounds::Rank), Some(Direction::Down)),
        C::Zrevrangebylex => range::show(call, Some(Bounds::Lex), Some(Direction::Down)),
        C::Zrevrangebyscore => range::show(call, Some(Bounds::Score), Some(Direction::Down)),
        C::Zrevrank => zrank(call, Direction::Down),
        C::Zscan => zscan(call),
        C::Zscore => zscore(call),
        C::Zunion => combine::reply(call, combine::Operation::Union),
        C::Zunionstore => combine::store(call, combine::Operation::Union),
    }
}

/// How `ZADD` treats members that are there, and what it replies.
#[derive(Clone, Copy, Default)]
struct Addition {
    only_new: bool,
    only_old: bool,
    only_greater: bool,
    only_less: bool,
    counts_changes: bool,
    increments: bool,
}

/// As `ZADD` with these options, for computed scores; `scored` is not empty.
pub(super) fn add_scored<'a>(
    call: &mut Call<'_, '_>,
    key: &[u8],
    [only_new, only_old, counts_changes]: [bool; 3],
    scores: &[f64],
    members: impl Iterator<Item = &'a [u8]> + Clone,
) -> Answer {
    let addition = Addition { only_new, only_old, counts_changes, ..Addition::default() };
    add(call, key, addition, scores, members)
}

/// What became of one member.
enum Added {
    Not,
    New(f64),
    Changed(f64),
    Same(f64),
}

impl Addition {
    fn read(mut self, call: &Call<'_, '_>, first: usize) -> (Self, usize) {
        let mut index = first;
        while index < call.args.len() {
            match () {
                () if call.is_word(index, "NX") => self.only_new = true,
                () if call.is_word(index, "XX") => self.only_old = true,
                () if call.is_word(index, "CH") => self.counts_changes = true,
                () if call.is_word(index, "INCR") => self.increments = true,
                () if call.is_word(index, "GT") => self.only_greater = true,
                () if call.is_word(index, "LT") => self.only_less = true,
                () => break,
            }
            index += 1;
        }
        (self, index)
    }

    fn check(self) -> Result<(), Fault> {
        if self.only_new && self.only_old {
            return Err(NX_WITH_XX.into());
        }
        let is_conditional = self.only_greater || self.only_less;
        if (is_conditional && self.only_new) || (self.only_greater && self.only_less) {
            return Err(GT_LT_NX.into());
        }
        Ok(())
    }

    fn apply(
        self,
        sorted: &mut SortedSet,
        heap: &mut crate::store::heap::Heap,
        score: f64,
        member: &[u8],
    ) -> Result<Added, Fault> {
        let mut added = Ok(Added::Not);
        sorted.revise(heap, member, |old| {
            added = self.decide(old, score);
            match added {
                Ok(Added::New(score) | Added::Changed(score)) => Some(score),
                _ => None,
            }
        });
        added
    }

    /// What becomes of a member with the old score, if there is one.
    fn decide(self, old: Option<f64>, score: f64) -> Result<Added, Fault> {
        let Some(old) = old else { return Ok(if self.only_old { Added::Not } else { Added::New(score) }) };
        if self.only_new {
            return Ok(Added::Not);
        }
        let score = if self.increments { old + score } else { score };
        if score.is_nan() {
            return Err(text::SCORE_NOT_A_NUMBER.into());
        }
        if (self.only_less && score >= old) || (self.only_greater && score <= old) {
            return Ok(Added::Not);
        }
        Ok(if score == old { Added::Same(score) } else { Added::Changed(score) })
    }
}

fn zadd(call: &mut Call<'_, '_>, addition: Addition) -> Answer {
    let key = call.arg(1);
    // ZINCRBY has no room for options, but what looks like one is taken for one all the same.
    let (addition, first) = addition.read(call, 2);
    let pairs = call.args.from(first);
    if pairs.is_empty() || !pairs.len().is_multiple_of(2) {
        return Err(text::SYNTAX.into());
    }
    addition.check()?;
    if addition.increments && pairs.len() > 2 {
        return Err(INCR_ONE_PAIR.into());
    }
    let mut scores = pairs.iter().step_by(2).map(|score| double::parse(score).ok_or(text::NOT_A_FLOAT));
    let (one, several): ([f64; 1], Vec<f64>);
    let scores = match (pairs.len(), scores.next()) {
        // The usual case needs no vector.
        (2, Some(score)) => {
            one = [score?];
            &one[..]
        }
        (_, first) => {
            several = first.into_iter().chain(scores).collect::<Result<_, _>>()?;
            &several[..]
        }
    };
    add(call, key, addition, scores, pairs.from(1).iter().step_by(2))
}

/// Adds members with their scores, of which there is at least one.
fn add<'a>(
    call: &mut Call<'_, '_>,
    key: &[u8],
    addition: Addition,
    scores: &[f64],
    members: impl Iterator<Item = &'a [u8]> + Clone,
) -> Answer {
    let first_member_bytes = members.clone().next().map_or(0, <[u8]>::len);
    let (mut added, mut changed, mut last) = (0, 0, None);
    call.upsert(
        key,
        |heap| SortedSet::new_for(heap, first_member_bytes),
        |sorted, heap| {
            let add_all = || {
                for (&score, member) in scores.iter().zip(members) {
                    last = match addition.apply(sorted, heap, score, member)? {
                        Added::Not => None,
                        Added::New(score) => {
                            added += 1;
                            Some(score)
                        }
                        Added::Changed(score) => {
                            changed += 1;
                            Some(score)
                        }
                        Added::Same(score) => Some(score),
                    };
                }
                Ok::<_, Fault>(())
            };
            let said = add_all();
            let event = if addition.increments { events::ZINCR } else { events::ZADD };
            Edited::when(added + changed > 0, said).named(event)
        },
    )??;
    if !addition.increments {
        return call.reply_count(if addition.counts_changes { added + changed } else { added });
    }
    match last {
        Some(score) => call.reply.double(score),
        None => call.reply.null(),
    }
    Ok(())
}

fn zrem(call: &mut Call<'_, '_>) -> Answer {
    let members = call.args.from(2);
    let removed = call.update(call.arg(1), |sorted: &mut SortedSet, heap| {
        Edited::count(members.iter().filter(|member| sorted.remove(heap, member)).count()).named(events::ZREM)
    })?;
    call.reply_count(removed.unwrap_or(0))
}

fn zcard(call: &mut Call<'_, '_>) -> Answer {
    let found = call.read::<SortedSet>(call.arg(1))?;
    let len = found.and_then(|found| call.keyspace.view::<SortedSet>(found)).map_or(0, |(sorted, _)| sorted.len());
    call.reply_count(len)
}

fn zscore(call: &mut Call<'_, '_>) -> Answer {
    let found = call.read::<SortedSet>(call.arg(1))?;
    let sorted = found.and_then(|found| call.keyspace.view::<SortedSet>(found));
    match sorted.and_then(|(sorted, heap)| sorted.score(heap, call.arg(2))) {
        Some(score) => call.reply.double(score),
        None => call.reply.null(),
    }
    Ok(())
}

fn zmscore(call: &mut Call<'_, '_>) -> Answer {
    let found = call.read::<SortedSet>(call.arg(1))?;
    let sorted = found.and_then(|found| call.keyspace.view::<SortedSet>(found));
    let members = call.args.from(2);
    call.reply.array(members.len());
    for member in members.iter() {
        match sorted.and_then(|(sorted, heap)| sorted.score(heap, member)) {
            Some(score) => call.reply.double(score),
            None => call.reply.null(),
        }
    }
    Ok(())
}

fn zrank(call: &mut Call<'_, '_>, direction: Direction) -> Answer {
    let found = call.read::<SortedSet>(call.arg(1))?;
    let sorted = found.and_then(|found| call.keyspace.view::<SortedSet>(found));
    let rank = sorted.and_then(|(sorted, heap)| {
        let rank = sorted.rank(heap, call.arg(2))?;
        Some(if direction == Direction::Up { rank } else { sorted.len() - 1 - rank })
    });
    match rank {
        Some(rank) => call.reply_count(rank),
        None => {
            call.reply.null();
            Ok(())
        }
    }
}

fn zscan(call: &mut Call<'_, '_>) -> Answer {
    let cursor = call.cursor(2)?;
    let Some(found) = call.read::<SortedSet>(call.arg(1))? else { return call.reply_scan(0, &[]) };
    let wanted = call.wanted(3, Scanned::Scores)?;
    let mut seen = Vec::new();
    let next = call.keyspace.view::<SortedSet>(found).map_or(0, |(sorted, heap)| {
        sorted.scan(heap, cursor, wanted.count, |member, score| {
            if wanted.lets(member) {
                seen.push(member.to_vec());
                seen.extend((!wanted.is_bare).then(|| score.to_vec()));
            }
        })
    });
    call.reply_scan(next, &seen)
}

/// How members that are popped look in the reply.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pairs {
    Flat,
    Nested,
}

/// Takes members out at one end and replies them with their scores; the head of the array comes from the caller.
fn pop_from(call: &mut Call<'_, '_>, found: Found, direction: Direction, count: usize, pairs: Pairs) {
    call.keyspace.edit_or_remove(call.at.database, found, |sorted: &mut SortedSet, heap| {
        let len = sorted.len();
        let count = count.min(len);
        let first = if direction == Direction::Up { 0 } else { len - 1 };
        let mut left = count;
        sorted.each_from(heap, first, direction == Direction::Down, |member, score| {
            if left == 0 {
                return false;
            }
            left -= 1;
            if pairs == Pairs::Nested {
                call.reply.array(2);
            }
            bulk(call.reply, member);
            call.reply.double(score);
            true
        });
        sorted.remove_range(heap, if direction == Direction::Up { 0 } else { len - count }, count);
        Edited::count(count).named(if direction == Direction::Up { events::ZPOPMIN } else { events::ZPOPMAX })
    });
}

impl Call<'_, '_> {
    fn sorted_len(&self, found: Found) -> usize {
        self.keyspace.view::<SortedSet>(found).map_or(0, |(sorted, _)| sorted.len())
    }
}

fn zpop(call: &mut Call<'_, '_>, direction: Direction) -> Answer {
    let count = match call.args.len() {
        2 => 1,
        3 => call.positive_or_zero(2)?,
        _ => return Err(text::SYNTAX.into()),
    };
    let Some(found) = call.find::<SortedSet>(call.arg(1))?.filter(|_| count > 0) else {
        call.reply.array(0);
        return Ok(());
    };
    let shown = count.min(call.sorted_len(found));
    let is_nested = call.args.len() == 3 && call.reply.protocol() == Protocol::Resp3;
    let pairs = if is_nested { Pairs::Nested } else { Pairs::Flat };
    call.reply.array(if is_nested { shown } else { shown * 2 });
    pop_from(call, found, direction, shown, pairs);
    Ok(())
}

fn bzpop(call: &mut Call<'_, '_>, direction: Direction) -> Answer {
    let timeout = call.args.len() - 1;
    call.check_timeout(timeout)?;
    for key in call.args.from(1).first(timeout - 1).iter() {
        if let Some(found) = call.find::<SortedSet>(key)? {
            call.reply.array(3);
            call.reply.bulk(key);
            pop_from(call, found, direction, 1, Pairs::Flat);
            return Ok(());
        }
    }
    call.nothing(true)
}

/// `ZMPOP`, and `BZMPOP` with a timeout in front, whose keys are counted at `index`.
fn zmpop(call: &mut Call<'_, '_>, index: usize) -> Answer {
    let (keys, behind) = call.counted_keys(index, NUMKEYS)?;
    let direction = if call.is_word(behind, "MIN") {
        Direction::Up
    } else if call.is_word(behind, "MAX") {
        Direction::Down
    } else {
        return Err(text::SYNTAX.into());
    };
    let count = call.pop_count(behind + 1)?;
    if index == 2 {
        call.check_timeout(1)?;
    }
    for key in keys.first(behind - index - 1).iter() {
        if let Some(found) = call.find::<SortedSet>(key)? {
            let shown = count.min(call.sorted_len(found));
            call.reply.array(2);
            call.reply.bulk(key);
            call.reply.array(shown);
            pop_from(call, found, direction, shown, Pairs::Nested);
            return Ok(());
        }
    }
    call.nothing(true)
}

fn zrandmember(call: &mut Call<'_, '_>) -> Answer {
    let key = call.arg(1);
    let with_scores = call.args.len() == 4 && call.is_word(3, "WITHSCORES");
    let count = match call.args.len() {
        2 => None,
        3.. => {
            call.symmetric(2)?;
            if call.args.len() > 4 || (call.args.len() == 4 && !with_scores) {
                return Err(text::SYNTAX.into());
            }
            Some(call.random_count(2, with_scores)?)
        }
        _ => return Err(text::SYNTAX.into()),
    };
    let found = call.read::<SortedSet>(key)?.filter(|_| count != Some(0));
    super::limit_repetition(found, count.unwrap_or(0))?;
    let Some((sorted, heap)) = found.and_then(|found| call.keyspace.pick_from::<SortedSet>(found)) else {
        if count.is_some() {
            call.reply.array(0)
        } else {
            call.reply.null()
        }
        return Ok(());
    };
    let len = sorted.len();
    let ranks: Vec<usize> = match count {
        None => vec![heap.random.below(len as u64) as usize],
        Some(count @ ..0) => (count..0).map(|_| heap.random.below(len as u64) as usize).collect(),
        Some(count) => {
            let shown = len.min(usize::try_from(count).unwrap_or(usize::MAX));
            pick(&mut heap.random, len, shown).unwrap_or_else(|| (0..len).collect())
        }
    };
    let is_nested = with_scores && call.reply.protocol() == Protocol::Resp3;
    if count.is_some() {
        call.reply.array(if with_scores && !is_nested { ranks.len() * 2 } else { ranks.len() });
    }
    let mut show = |member: Element<'_>, score| {
        if is_nested {
            call.reply.array(2);
        }
        bulk(call.reply, member);
        if with_scores {
            call.reply.double(score);
        }
        check_reply(call.reply, call.start)
    };
    // Of a compact set all members are looked up before several are chosen: a walk to each would take the product of both numbers.
    let mut members = Vec::new();
    if sorted.is_packed() && ranks.len() > 1 {
        sorted.each_from(heap, 0, false, |member, score| {
            members.push((member, score));
            true
        });
    }
    for rank in ranks {
        if let Some(&(member, score)) = members.get(rank) {
            show(member, score)?;
            continue;
        }
        let mut shown = Ok(());
        sorted.each_from(heap, rank, false, |member, score| {
            shown = show(member, score);
            false
        });
        shown?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::transcript::{Script, play};

    #[test]
    fn members_are_added_and_scored() {
        play(
            "ZADD z 1 a 2 b -> :2
             ZADD z XX CH 5 a 1 c -> :1
             ZADD z NX 9 a 3 c -> :1
             ZADD z GT CH 4 a 10 b -> :1
             ZADD z INCR 1.5 c -> $3 4.5
             ZADD z NX INCR 1 a -> $-1
             ZADD z NX XX 1 a -> -ERR XX and NX options at the same time are not compatible
             ZADD z GT LT 1 a -> -ERR GT, LT, and/or NX options at the same time are not compatible
             ZADD z x a -> -ERR value is not a valid float
             ZADD z NX 1 -> -ERR syntax error
             ZSCORE z c -> $3 4.5",
        );
        play(
            "ZADD z inf a -inf b 3.3 c -> :3
             ZMSCORE z a b c d -> *4 $3 inf $4 -inf $18 3.2999999999999998 $-1
             ZINCRBY z -inf a -> -ERR resulting score is not a number (NaN)
             ZINCRBY z 1 new -> $1 1
             ZINCRBY z NX new -> -ERR syntax error
             ZCARD z -> :4
             ZRANK z c -> :2
             ZREVRANK z c -> :1
             ZRANK z none -> $-1
             ZREM z a b none -> :2
             #3
             ZSCORE z new -> ,1
             ZREM z c new -> :2
             EXISTS z -> :0",
        );
    }

    #[test]
    fn ranges_are_shown() {
        play(
            "ZADD z 1 a 2 b 3 c 4 d -> :4
             ZRANGE z 0 -1 -> *4 $1 a $1 b $1 c $1 d
             ZRANGE z 1 2 REV WITHSCORES -> *4 $1 c $1 3 $1 b $1 2
             ZRANGE z (1 3 BYSCORE -> *2 $1 b $1 c
             ZRANGE z 3 (1 BYSCORE REV LIMIT 0 1 -> *1 $1 c
             ZRANGEBYSCORE z -inf +inf LIMIT 1 -1 -> *3 $1 b $1 c $1 d
             ZREVRANGEBYSCORE z 3 2 -> *2 $1 c $1 b
             ZREVRANGE z 0 0 -> *1 $1 d
             ZCOUNT z (1 (4 -> :2
             ZRANGE z 0 1 LIMIT 0 1 -> -ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX
             ZRANGE z x 1 -> -ERR value is not an integer or out of range
             ZRANGEBYSCORE z x 1 -> -ERR min or max is not a float
             ZRANGESTORE t z 2 3 BYSCORE -> :2
             ZREMRANGEBYRANK t 0 0 -> :1
             ZREMRANGEBYSCORE t 3 3 -> :1
             EXISTS t -> :0
             #3
             ZRANGE z 0 0 WITHSCORES -> *1 *2 $1 a ,1",
        );
        play(
            "ZADD z 0 a 0 b 0 c 0 d -> :4
             ZRANGEBYLEX z [b + -> *3 $1 b $1 c $1 d
             ZREVRANGEBYLEX z (d [b -> *2 $1 c $1 b
             ZLEXCOUNT z - (c -> :2
             ZRANGEBYLEX z b + -> -ERR min or max not valid string range item
             ZREMRANGEBYLEX z [b (d -> :2
             ZRANGE z 0 -1 -> *2 $1 a $1 d",
        );
    }

    #[test]
    fn members_are_popped() {
        play(
            "ZADD z 1 a 2 b 3 c 4 d -> :4
             ZPOPMIN z -> *2 $1 a $1 1
             ZPOPMAX z 2 -> *4 $1 d $1 4 $1 c $1 3
             ZPOPMAX z 0 -> *0
             ZPOPMAX z -1 -> -ERR value is out of range, must be positive
             ZMPOP 2 none z MIN COUNT 9 -> *2 $1 z *1 *2 $1 b $1 2
             ZMPOP 1 z MIN -> *-1
             ZADD z 1 a -> :1
             BZPOPMIN none z 0 -> *3 $1 z $1 a $1 1
             ZADD z 1 a 2 b -> :2
             #3
             ZPOPMIN z 1 -> *1 *2 $1 a ,1
             ZPOPMIN z -> *2 $1 b ,2",
        );
    }

    #[test]
    fn sorted_sets_are_combined() {
        play(
            "ZADD a 1 x 2 y -> :2
             ZADD b 10 y 20 z -> :2
             SADD s x q -> :2
             ZUNION 2 a b WITHSCORES -> *6 $1 x $1 1 $1 y $2 12 $1 z $2 20
             ZADD c 3 m -> :1
             ZADD d 0 m -> :1
             ZINTER 2 c d WEIGHTS 1 inf AGGREGATE SUM WITHSCORES -> *2 $1 m $1 0
             ZINTER 2 c d WEIGHTS 1 inf AGGREGATE MIN WITHSCORES -> *2 $1 m $1 3
             ZUNION 2 c d WEIGHTS 1 inf AGGREGATE MIN WITHSCORES -> *2 $1 m $1 0
             ZINTER 2 a b WEIGHTS 2 0.5 AGGREGATE MAX WITHSCORES -> *2 $1 y $1 5
             ZINTER 2 c c WEIGHTS -0 0 WITHSCORES -> *2 $1 m $1 0
             ZINTER 2 c c WEIGHTS -0 -0 WITHSCORES -> *2 $1 m $2 -0
             ZDIFF 2 a b -> *1 $1 x
             ZDIFF 9 a b b b b b b b b WITHSCORES -> *2 $1 x $1 1
             ZUNION 2 a s WITHSCORES -> *6 $1 q $1 1 $1 x $1 2 $1 y $1 2
             ZINTERCARD 2 a b LIMIT 1 -> :1
             ZUNIONSTORE a 2 a b -> :3
             ZDIFFSTORE a 2 a a -> :0
             EXISTS a -> :0
             ZUNION 0 a -> -ERR at least 1 input key is needed for 'zunion' command
             ZUNION 5 a -> -ERR syntax error
             ZUNION 1 b WEIGHTS x -> -ERR weight value is not a float",
        );
    }

    #[test]
    fn large_sorted_sets_do_what_small_ones_do() {
        let mut script = Script::new();
        for number in 0..200 {
            script.say(&format!("ZADD z {} m{number}", number * 7 % 200));
        }
        assert_eq!(script.say("OBJECT ENCODING z"), "$8 skiplist");
        assert_eq!(script.say("ZRANGE z 0 1"), "*2 $2 m0 $4 m143");
        assert_eq!(script.say("ZCOUNT z (10 20"), ":10");
        assert_eq!(script.say("ZADD z CH 500 m0"), ":1");
        assert_eq!(script.say("ZREVRANK z m0"), ":0");
        assert_eq!(script.say("ZREMRANGEBYRANK z 0 99"), ":100");
        assert_eq!(script.say("ZCARD z"), ":100");
        assert!(script.say("ZSCAN z 0 COUNT 1000 MATCH m0").ends_with("*2 $2 m0 $3 500"));
        assert!(script.say("ZSCAN z 0 COUNT 1000 MATCH m0 NOSCORES").ends_with("*1 $2 m0"));
        script.say("ZUNIONSTORE z 1 z");
        assert_eq!(script.say("OBJECT ENCODING z"), "$8 listpack");
    }
}
