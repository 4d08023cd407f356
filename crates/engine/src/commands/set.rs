//! Sets.

use std::collections::BTreeSet;

use respool_command::{SetCommand, text};
use respool_wire::Args;

use super::list::NUMKEYS;
use super::scan::Scanned;
use super::{Answer, Call, Fault, bulk, check_reply, pick};
use crate::keyspace::{Edited, events};
use crate::store::heap::Heap;
use crate::values::{Object, Set};

const TOO_MANY_KEYS: &str = "ERR Number of keys can't be greater than number of args";
pub(super) const LIMIT_NEGATIVE: &str = "ERR LIMIT can't be negative";

/// Runs one command of the group.
pub(super) fn run(command: SetCommand, call: &mut Call<'_, '_>) -> Answer {
    match command {
        SetCommand::Sadd => sadd(call),
        SetCommand::Scard => scard(call),
        SetCommand::Sdiff => combine(call, Operation::Difference),
        SetCommand::Sdiffstore => combine_into(call, Operation::Difference),
        SetCommand::Sinter => combine(call, Operation::Intersection),
        SetCommand::Sintercard => sintercard(call),
        SetCommand::Sinterstore => combine_into(call, Operation::Intersection),
        SetCommand::Sismember => sismember(call),
        SetCommand::Smembers => smembers(call),
        SetCommand::Smismember => smismember(call),
        SetCommand::Smove => smove(call),
        SetCommand::Spop => spop(call),
        SetCommand::Srandmember => srandmember(call),
        SetCommand::Srem => srem(call),
        SetCommand::Sscan => sscan(call),
        SetCommand::Sunion => sunion(call),
        SetCommand::Sunionstore => sunionstore(call),
    }
}

fn sadd(call: &mut Call<'_, '_>) -> Answer {
    let members = call.args.from(2);
    let added = call.upsert(
        call.arg(1),
        |_| Set::new(),
        |set: &mut Set, heap| {
            Edited::count(members.iter().filter(|member| set.insert(heap, member)).count()).named(events::SADD)
        },
    )?;
    call.reply_count(added)
}

fn srem(call: &mut Call<'_, '_>) -> Answer {
    let members = call.args.from(2);
    let removed = call.update(call.arg(1), |set: &mut Set, heap| {
        Edited::count(members.iter().filter(|member| set.remove(heap, member)).count()).named(events::SREM)
    })?;
    call.reply_count(removed.unwrap_or(0))
}

fn scard(call: &mut Call<'_, '_>) -> Answer {
    let found = call.read::<Set>(call.arg(1))?;
    let len = found.and_then(|found| call.keyspace.view::<Set>(found)).map_or(0, |(set, _)| set.len());
    call.reply_count(len)
}

fn sismember(call: &mut Call<'_, '_>) -> Answer {
    let found = call.read::<Set>(call.arg(1))?;
    let set = found.and_then(|found| call.keyspace.view::<Set>(found));
    let is_member = set.is_some_and(|(set, heap)| set.contains(heap, call.arg(2)));
    call.reply_integer(is_member.into())
}

fn smismember(call: &mut Call<'_, '_>) -> Answer {
    let found = call.read::<Set>(call.arg(1))?;
    let set = found.and_then(|found| call.keyspace.view::<Set>(found));
    let members = call.args.from(2);
    call.reply.array(members.len());
    for member in members.iter() {
        call.reply.integer(set.is_some_and(|(set, heap)| set.contains(heap, member)).into());
    }
    Ok(())
}

fn smembers(call: &mut Call<'_, '_>) -> Answer {
    let found = call.read::<Set>(call.arg(1))?;
    let Some((set, heap)) = found.and_then(|found| call.keyspace.view::<Set>(found)) else {
        call.reply.set(0);
        return Ok(());
    };
    call.reply.set(set.len());
    set.each(heap, |member| {
        bulk(call.reply, member);
        true
    });
    Ok(())
}

fn smove(call: &mut Call<'_, '_>) -> Answer {
    let (source, target, member) = (call.arg(1), call.arg(2), call.arg(3));
    if call.find::<Set>(source)?.is_none() {
        return call.reply_integer(0);
    }
    call.find::<Set>(target)?;
    if source == target {
        return sismember_of(call, source, member);
    }
    let removed = call.update(source, |set: &mut Set, heap| {
        let was_in = set.remove(heap, member);
        Edited::when(was_in, was_in).named(events::SREM)
    })?;
    let was_in = removed.unwrap_or(false);
    if was_in {
        let add = |set: &mut Set, heap: &mut Heap| Edited::when(set.insert(heap, member), ()).named(events::SADD);
        call.upsert(target, |_| Set::new(), add)?;
    }
    call.reply_integer(was_in.into())
}

fn sismember_of(call: &mut Call<'_, '_>, key: &[u8], member: &[u8]) -> Answer {
    let found = call.find::<Set>(key)?;
    let set = found.and_then(|found| call.keyspace.view::<Set>(found));
    let is_member = set.is_some_and(|(set, heap)| set.contains(heap, member));
    call.reply_integer(is_member.into())
}

fn spop(call: &mut Call<'_, '_>) -> Answer {
    let has_count = match call.args.len() {
        2 => false,
        3 => true,
        _ => return Err(text::SYNTAX.into()),
    };
    let count = if has_count { call.positive_or_zero(2)? } else { 1 };
    let found = call.find::<Set>(call.arg(1))?.filter(|_| count > 0);
    let Some(found) = found else {
        if has_count {
            call.reply.set(0)
        } else {
            call.reply.null()
        }
        return Ok(());
    };
    call.keyspace.edit_or_remove(call.at.database, found, |set: &mut Set, heap| {
        let count = count.min(set.len());
        if has_count {
            call.reply.set(count);
        }
        for _ in 0..count {
            if let Some(member) = set.random(heap) {
                call.reply.bulk(&member);
                set.remove(heap, &member);
            }
        }
        Edited::count(count).named(events::SPOP)
    });
    Ok(())
}

fn srandmember(call: &mut Call<'_, '_>) -> Answer {
    let key = call.arg(1);
    let count = match call.args.len() {
        2 => None,
        3 => Some(call.random_count(2, false)?),
        _ => return Err(text::SYNTAX.into()),
    };
    let found = call.read::<Set>(key)?.filter(|_| count != Some(0));
    super::limit_repetition(found, count.unwrap_or(0))?;
    let Some((set, heap)) = found.and_then(|found| call.keyspace.pick_from::<Set>(found)) else {
        if count.is_some() {
            call.reply.array(0)
        } else {
            call.reply.null()
        }
        return Ok(());
    };
    match count {
        None => show_random(call.reply, set, heap),
        Some(count @ ..0) => {
            call.reply.array(count.unsigned_abs() as usize);
            for _ in count..0 {
                show_random(call.reply, set, heap);
                check_reply(call.reply, call.start)?;
            }
        }
        Some(count) => {
            let shown = set.len().min(usize::try_from(count).unwrap_or(usize::MAX));
            let picked = pick(&mut heap.random, set.len(), shown);
            call.reply.array(shown);
            let (mut index, mut next) = (0, 0);
            set.each(heap, |member| {
                if picked.as_ref().is_none_or(|picked| picked.get(next) == Some(&index)) {
                    bulk(call.reply, member);
                    next += 1;
                }
                index += 1;
                next < shown
            });
        }
    }
    Ok(())
}

fn show_random(reply: &mut respool_wire::Encoder<'_>, set: &Set, heap: &mut Heap) {
    match set.random(heap) {
        Some(member) => reply.bulk(&member),
        None => reply.null(),
    }
}

fn sscan(call: &mut Call<'_, '_>) -> Answer {
    let cursor = call.cursor(2)?;
    let Some(found) = call.read::<Set>(call.arg(1))? else { return call.reply_scan(0, &[]) };
    let wanted = call.wanted(3, Scanned::Members)?;
    let mut seen = Vec::new();
    let next = call.keyspace.view::<Set>(found).map_or(0, |(set, heap)| {
        set.scan(heap, cursor, wanted.count, |member| {
            if wanted.lets(member) {
                seen.push(member.to_vec());
            }
        })
    });
    call.reply_scan(next, &seen)
}

/// How sets are combined that are not united.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Operation {
    Intersection,
    Difference,
}

impl<'c> Call<'c, '_> {
    /// Checks that every key is missing or a set, and removes those that have expired, so that later look-ups agree.
    fn check_sets(&mut self, keys: Args<'c>) -> Result<(), Fault> {
        keys.iter().try_for_each(|key| self.read::<Set>(key).map(|_| ()))
    }

    /// The set at a key that [`Call::check_sets`] has seen.
    fn set_at(&self, key: &[u8]) -> Option<&Set> {
        let found = self.keyspace.look(self.at, key)?;
        self.keyspace.view::<Set>(found).map(|(set, _)| set)
    }
}

/// Shows the members of the intersection until `see` says false.
fn each_common(call: &Call<'_, '_>, keys: Args<'_>, mut see: impl FnMut(&[u8]) -> bool) {
    let sets: Option<Vec<&Set>> = keys.iter().map(|key| call.set_at(key)).collect();
    let Some(mut sets) = sets else { return };
    sets.sort_by_key(|set| set.len());
    let Some((smallest, others)) = sets.split_first() else { return };
    // A set that is named again has its own members.
    let others: Vec<&Set> = others.iter().copied().filter(|set| !std::ptr::eq(*set, *smallest)).collect();
    let heap = &call.keyspace.heap;
    smallest
        .each(heap, |member| member.read(|member| !others.iter().all(|set| set.contains(heap, member)) || see(member)));
}

/// The members of a combination, each once.
fn combined(call: &Call<'_, '_>, keys: Args<'_>, operation: Operation) -> Vec<Vec<u8>> {
    let heap = &call.keyspace.heap;
    let mut members = Vec::new();
    match operation {
        Operation::Intersection => each_common(call, keys, |member| {
            members.push(member.to_vec());
            true
        }),
        Operation::Difference => {
            let Some(first) = call.set_at(&keys[0]) else { return members };
            let others: Vec<&Set> = keys.iter().skip(1).filter_map(|key| call.set_at(key)).collect();
            difference(heap, first, &others, &mut members);
        }
    }
    members
}

/// Whether the others' members are taken away from those of `first`, instead of the others being asked for each of them:
/// as Redis reckons which is less to do.
fn takes_away(first: &Set, others: &[&Set]) -> bool {
    let all: usize = others.iter().map(|set| set.len()).sum();
    first.len().saturating_mul(others.len() + 1) / 2 > first.len() + all
}

/// The members that what a difference stores has for a while, which leave their mark on its encoding.
fn passing(call: &Call<'_, '_>, keys: Args<'_>) -> Vec<Vec<u8>> {
    let mut members = Vec::new();
    let others: Vec<&Set> = keys.iter().skip(1).filter_map(|key| call.set_at(key)).collect();
    if let Some(first) = call.set_at(&keys[0]).filter(|first| takes_away(first, &others)) {
        first.each(&call.keyspace.heap, |member| {
            members.push(member.to_vec());
            true
        });
    }
    members
}

/// The members of `first` that no other set has. Asks the others for every member, or takes the others' members away,
/// whichever is less to do.
fn difference(heap: &Heap, first: &Set, others: &[&Set], members: &mut Vec<Vec<u8>>) {
    if takes_away(first, others) {
        let mut left = BTreeSet::new();
        first.each(heap, |member| {
            left.insert(member.to_vec());
            true
        });
        for other in others {
            other.each(heap, |member| {
                member.read(|member| left.remove(member));
                true
            });
        }
        members.extend(left);
        return;
    }
    first.each(heap, |member| {
        if !member.read(|member| others.iter().any(|other| other.contains(heap, member))) {
            members.push(member.to_vec());
        }
        true
    });
}

/// The union, as a set of its own.
fn union(call: &mut Call<'_, '_>, keys: Args<'_>) -> Set {
    let mut union = Set::new();
    for key in keys.iter() {
        // They are copied out: the pool that they lie in grows while they are put in again.
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        if let Some(set) = call.set_at(key) {
            set.each(&call.keyspace.heap, |member| {
                member.read(|member| bytes.extend_from_slice(member));
                ends.push(bytes.len());
                true
            });
        }
        let mut start = 0;
        for end in ends {
            union.insert(&mut call.keyspace.heap, &bytes[start..end]);
            start = end;
        }
    }
    union
}

fn combine(call: &mut Call<'_, '_>, operation: Operation) -> Answer {
    let keys = call.args.from(1);
    call.check_sets(keys)?;
    let members = combined(call, keys, operation);
    call.reply.set(members.len());
    members.iter().for_each(|member| call.reply.bulk(member));
    Ok(())
}

fn sunion(call: &mut Call<'_, '_>) -> Answer {
    let keys = call.args.from(1);
    call.check_sets(keys)?;
    let union = union(call, keys);
    call.reply.set(union.len());
    union.each(&call.keyspace.heap, |member| {
        bulk(call.reply, member);
        true
    });
    call.keyspace.discard(Object::Set(union));
    Ok(())
}

fn sunionstore(call: &mut Call<'_, '_>) -> Answer {
    let keys = call.args.from(2);
    call.check_sets(keys)?;
    let union = union(call, keys);
    let len = union.len();
    call.store(call.arg(1), union, events::SUNIONSTORE);
    call.reply_count(len)
}

fn combine_into(call: &mut Call<'_, '_>, operation: Operation) -> Answer {
    let keys = call.args.from(2);
    call.check_sets(keys)?;
    let members = combined(call, keys, operation);
    let passing = if operation == Operation::Difference { passing(call, keys) } else { Vec::new() };
    let mut set = Set::new();
    let heap = &mut call.keyspace.heap;
    for member in passing.iter().chain(&members) {
        set.insert(heap, member);
    }
    if !passing.is_empty() {
        let stay: BTreeSet<&Vec<u8>> = members.iter().collect();
        for member in passing.iter().filter(|member| !stay.contains(member)) {
            set.remove(heap, member);
        }
    }
    let event = if operation == Operation::Difference { events::SDIFFSTORE } else { events::SINTERSTORE };
    call.store(call.arg(1), set, event);
    call.reply_count(members.len())
}

fn sintercard(call: &mut Call<'_, '_>) -> Answer {
    let count = call.integer_from(1, 1, NUMKEYS)?;
    if count > call.args.len() - 2 {
        return Err(TOO_MANY_KEYS.into());
    }
    let mut limit = 0;
    let mut index = 2 + count;
    while index < call.args.len() {
        if !call.is_word(index, "LIMIT") || index + 1 >= call.args.len() {
            return Err(text::SYNTAX.into());
        }
        limit = call.integer_from(index + 1, 0, LIMIT_NEGATIVE)?;
        index += 2;
    }
    let keys = call.args.from(2).first(count);
    call.check_sets(keys)?;
    let mut common = 0;
    each_common(call, keys, |_| {
        common += 1;
        common != limit
    });
    call.reply_count(common)
}

#[cfg(test)]
mod tests {
    use crate::transcript::{Script, play};

    #[test]
    fn members_come_and_go() {
        play(
            "SADD s 3 1 2 1 -> :3
             SMEMBERS s -> *3 $1 1 $1 2 $1 3
             OBJECT ENCODING s -> $6 intset
             SISMEMBER s 2 -> :1
             SISMEMBER s 02 -> :0
             SMISMEMBER s 1 9 -> *2 :1 :0
             SADD s x -> :1
             OBJECT ENCODING s -> $9 hashtable
             SCARD s -> :4
             SREM s x y 1 -> :2
             SMOVE s t 2 -> :1
             SMOVE s t 9 -> :0
             SMEMBERS t -> *1 $1 2
             SPOP s -> $1 3
             EXISTS s -> :0
             SPOP s -> $-1
             SPOP s 1 -> *0
             SRANDMEMBER t -> $1 2
             SRANDMEMBER t -2 -> *2 $1 2 $1 2
             #3
             SMEMBERS t -> ~1 $1 2",
        );
    }

    #[test]
    fn sets_are_combined() {
        play(
            "SADD a 1 2 3 4 -> :4
             SADD b 3 4 5 -> :3
             SINTER a b -> *2 $1 3 $1 4
             SINTER a none -> *0
             SINTER b a a b a -> *2 $1 3 $1 4
             SINTERCARD 4 a a b a -> :2
             SDIFF a b -> *2 $1 1 $1 2
             SADD few 2 9 -> :2
             SDIFF a few few few few few few -> *3 $1 1 $1 3 $1 4
             SUNION a b none -> *5 $1 1 $1 2 $1 3 $1 4 $1 5
             SINTERCARD 2 a b LIMIT 1 -> :1
             SINTERCARD 0 a -> -ERR numkeys should be greater than 0
             SINTERCARD 3 a b -> -ERR Number of keys can't be greater than number of args
             SINTERSTORE a a b -> :2
             SMEMBERS a -> *2 $1 3 $1 4
             SDIFFSTORE a a b -> :0
             EXISTS a -> :0
             SADD many 1 2 3 4 5 x -> :6
             SADD one x -> :1
             SDIFFSTORE r many one -> :5
             OBJECT ENCODING r -> $6 intset
             SDIFFSTORE r many one one -> :5
             OBJECT ENCODING r -> $9 hashtable
             SET x 1 -> +OK
             SUNION b x -> -WRONGTYPE Operation against a key holding the wrong kind of value",
        );
    }

    #[test]
    fn a_random_choice_has_no_repetition() {
        let mut script = Script::new();
        for number in 0..600 {
            script.say(&format!("SADD s {number}"));
        }
        assert_eq!(script.say("OBJECT ENCODING s"), "$9 hashtable");
        for wanted in [1, 10, 500, 600, 1_000] {
            let reply = script.say(&format!("SRANDMEMBER s {wanted}"));
            let members: std::collections::BTreeSet<&str> =
                reply.split(' ').skip(1).filter(|word| !word.starts_with('$')).collect();
            assert_eq!(members.len(), wanted.min(600));
        }
        assert!(script.say("SPOP s 599").starts_with("*599 "));
        assert_eq!(script.say("SCARD s"), ":1");
    }
}
