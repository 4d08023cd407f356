//! Hashes. Deadlines of fields have a file of their own.

mod fields;

use respool_command::{HashCommand, text};
use respool_wire::{Encoder, Protocol};

use super::arguments::Moment;
use super::scan::Scanned;
use super::{Answer, Call, bulk, named};
use crate::keyspace::{Edited, Expiry, events};
use crate::number::integer;
use crate::number::integer::IntegerText;
use crate::number::long_double::LongDouble;
use crate::store::listpack::Element;
use crate::values::Hash;

const NOT_FINITE: &str = "ERR value is NaN or Infinity";

/// Runs one command of the group.
pub(super) fn run(command: HashCommand, call: &mut Call<'_, '_>) -> Answer {
    match command {
        HashCommand::Hdel => hdel(call),
        HashCommand::Hexists => hexists(call),
        HashCommand::Hexpire => fields::expire(call, Moment::SECONDS_FROM_NOW),
        HashCommand::Hexpireat => fields::expire(call, Moment::SECONDS),
        HashCommand::Hexpiretime => fields::time(call, Moment::SECONDS),
        HashCommand::Hget => hget(call),
        HashCommand::Hgetall => hgetall(call, Shown::Both),
        HashCommand::Hgetdel => fields::hgetdel(call),
        HashCommand::Hgetex => fields::hgetex(call),
        HashCommand::Hincrby => hincrby(call),
        HashCommand::Hincrbyfloat => hincrbyfloat(call),
        HashCommand::Hkeys => hgetall(call, Shown::Fields),
        HashCommand::Hlen => hlen(call),
        HashCommand::Hmget => hmget(call),
        HashCommand::Hmset => hset(call, false),
        HashCommand::Hpersist => fields::persist(call),
        HashCommand::Hpexpire => fields::expire(call, Moment::MILLIS_FROM_NOW),
        HashCommand::Hpexpireat => fields::expire(call, Moment::MILLIS),
        HashCommand::Hpexpiretime => fields::time(call, Moment::MILLIS),
        HashCommand::Hpttl => fields::time(call, Moment::MILLIS_FROM_NOW),
        HashCommand::Hrandfield => hrandfield(call),
        HashCommand::Hscan => hscan(call),
        HashCommand::Hset => hset(call, true),
        HashCommand::Hsetex => fields::hsetex(call),
        HashCommand::Hsetnx => hsetnx(call),
        HashCommand::Hstrlen => hstrlen(call),
        HashCommand::Httl => fields::time(call, Moment::SECONDS_FROM_NOW),
        HashCommand::Hvals => hgetall(call, Shown::Values),
    }
}

fn hset(call: &mut Call<'_, '_>, tells_count: bool) -> Answer {
    if !call.args.len().is_multiple_of(2) {
        return Err(named(call.row, text::wrong_arity));
    }
    let args = call.args.from(2);
    let added = call.upsert(
        call.arg(1),
        |_| Hash::new(),
        |hash: &mut Hash, heap| {
            hash.make_room_for(heap, args.iter());
            let pairs = args.iter().step_by(2).zip(args.from(1).iter().step_by(2));
            Edited::change(pairs.filter(|(field, value)| hash.set(heap, field, value)).count()).named(events::HSET)
        },
    )?;
    if tells_count { call.reply_count(added) } else { call.reply_ok() }
}

fn hsetnx(call: &mut Call<'_, '_>) -> Answer {
    let (field, value) = (call.arg(2), call.arg(3));
    let is_new = call.upsert(
        call.arg(1),
        |_| Hash::new(),
        |hash: &mut Hash, heap| {
            let is_new = hash.get(heap, field).is_none() && hash.set(heap, field, value);
            Edited::when(is_new, is_new).named(events::HSET)
        },
    )?;
    call.reply_integer(is_new.into())
}

fn hget(call: &mut Call<'_, '_>) -> Answer {
    let found = call.read::<Hash>(call.arg(1))?;
    let hash = found.and_then(|found| call.keyspace.view::<Hash>(found));
    match hash.and_then(|(hash, heap)| hash.get(heap, call.arg(2))) {
        Some(value) => bulk(call.reply, value),
        None => call.reply.null(),
    }
    Ok(())
}

fn hmget(call: &mut Call<'_, '_>) -> Answer {
    let found = call.read::<Hash>(call.arg(1))?;
    let hash = found.and_then(|found| call.keyspace.view::<Hash>(found));
    let fields = call.args.from(2);
    call.reply.array(fields.len());
    for field in fields.iter() {
        match hash.and_then(|(hash, heap)| hash.get(heap, field)) {
            Some(value) => bulk(call.reply, value),
            None => call.reply.null(),
        }
        super::check_reply(call.reply, call.start)?;
    }
    Ok(())
}

fn hdel(call: &mut Call<'_, '_>) -> Answer {
    let fields = call.args.from(2);
    let removed = call.update(call.arg(1), |hash: &mut Hash, heap| {
        Edited::count(fields.iter().filter(|field| hash.remove(heap, field)).count()).named(events::HDEL)
    })?;
    call.reply_count(removed.unwrap_or(0))
}

fn hlen(call: &mut Call<'_, '_>) -> Answer {
    let found = call.read::<Hash>(call.arg(1))?;
    let len = found.and_then(|found| call.keyspace.view::<Hash>(found)).map_or(0, |(hash, heap)| hash.len(heap));
    call.reply_count(len)
}

fn hexists(call: &mut Call<'_, '_>) -> Answer {
    let found = call.read::<Hash>(call.arg(1))?;
    let hash = found.and_then(|found| call.keyspace.view::<Hash>(found));
    let is_there = hash.is_some_and(|(hash, heap)| hash.get(heap, call.arg(2)).is_some());
    call.reply_integer(is_there.into())
}

fn hstrlen(call: &mut Call<'_, '_>) -> Answer {
    let found = call.read::<Hash>(call.arg(1))?;
    let hash = found.and_then(|found| call.keyspace.view::<Hash>(found));
    let len = hash.and_then(|(hash, heap)| hash.get(heap, call.arg(2))).map_or(0, Element::len);
    call.reply_count(len)
}

/// Which part of a hash is asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    Fields,
    Values,
    Both,
}

fn hgetall(call: &mut Call<'_, '_>, shown: Shown) -> Answer {
    let found = call.read::<Hash>(call.arg(1))?;
    let hash = found.and_then(|found| call.keyspace.view::<Hash>(found));
    let len = hash.map_or(0, |(hash, heap)| hash.len(heap));
    if shown == Shown::Both {
        call.reply.map(len)
    } else {
        call.reply.array(len)
    }
    let Some((hash, heap)) = hash else { return Ok(()) };
    hash.each(heap, |field, value| {
        if shown != Shown::Values {
            bulk(call.reply, field);
        }
        if shown != Shown::Fields {
            bulk(call.reply, value);
        }
    });
    Ok(())
}

fn hincrby(call: &mut Call<'_, '_>) -> Answer {
    let (field, amount) = (call.arg(2), call.integer(3)?);
    let sum = call.upsert(
        call.arg(1),
        |_| Hash::new(),
        |hash: &mut Hash, heap| {
            Edited::attempt(|| {
                let old = match hash.get(heap, field) {
                    None => 0,
                    Some(Element::Integer(old)) => old,
                    Some(Element::Bytes(bytes)) => integer::parse(bytes).ok_or(text::HASH_VALUE_NOT_AN_INTEGER)?,
                };
                let sum = old.checked_add(amount).ok_or(text::OVERFLOW)?;
                hash.set_with(heap, field, IntegerText::new(sum).as_bytes(), Expiry::Keep);
                Ok::<_, &'static str>(sum)
            })
            .named(events::HINCRBY)
        },
    )??;
    call.reply_integer(sum)
}

fn hincrbyfloat(call: &mut Call<'_, '_>) -> Answer {
    let field = call.arg(2);
    let amount = LongDouble::parse(call.arg(3)).ok_or(text::NOT_A_FLOAT)?;
    if !amount.is_finite() {
        return Err(NOT_FINITE.into());
    }
    let sum = call.upsert(
        call.arg(1),
        |_| Hash::new(),
        |hash: &mut Hash, heap| {
            Edited::attempt(|| {
                let old = match hash.get(heap, field) {
                    None => LongDouble::from_integer(0),
                    Some(old) => old.read(LongDouble::parse).ok_or(text::HASH_VALUE_NOT_A_FLOAT)?,
                };
                let sum = old.checked_add(amount).ok_or(text::INCREMENT_NOT_FINITE)?.to_text();
                hash.set_with(heap, field, &sum, Expiry::Keep);
                Ok::<_, &'static str>(sum)
            })
            .named(events::HINCRBYFLOAT)
        },
    )??;
    call.reply.bulk(&sum);
    Ok(())
}

fn hscan(call: &mut Call<'_, '_>) -> Answer {
    let cursor = call.cursor(2)?;
    let Some(found) = call.read::<Hash>(call.arg(1))? else { return call.reply_scan(0, &[]) };
    let wanted = call.wanted(3, Scanned::Fields)?;
    let mut seen = Vec::new();
    let next = call.keyspace.view::<Hash>(found).map_or(0, |(hash, heap)| {
        hash.scan(heap, cursor, wanted.count, |field, value| {
            if wanted.lets(field) {
                seen.push(field.to_vec());
                seen.extend((!wanted.is_bare).then(|| value.to_vec()));
            }
        })
    });
    call.reply_scan(next, &seen)
}

fn hrandfield(call: &mut Call<'_, '_>) -> Answer {
    let key = call.arg(1);
    let with_values = call.args.len() == 4 && call.is_word(3, "WITHVALUES");
    if call.args.len() == 2 {
        let Some(found) = call.read::<Hash>(key)? else {
            call.reply.null();
            return Ok(());
        };
        let Some((hash, heap)) = call.keyspace.pick_from::<Hash>(found) else { return Ok(()) };
        hash.random(heap, |field, _| bulk(call.reply, field));
        return Ok(());
    }
    call.symmetric(2)?;
    if call.args.len() > 4 || (call.args.len() == 4 && !with_values) {
        return Err(text::SYNTAX.into());
    }
    let count = call.random_count(2, with_values)?;
    let found = call.read::<Hash>(key)?.filter(|_| count != 0);
    super::limit_repetition(found, count)?;
    let Some((hash, heap)) = found.and_then(|found| call.keyspace.pick_from::<Hash>(found)) else {
        call.reply.array(0);
        return Ok(());
    };
    let is_nested = with_values && call.reply.protocol() == Protocol::Resp3;
    let len = hash.len(heap);
    let shown = if count < 0 { count.unsigned_abs() as usize } else { len.min(count as usize) };
    call.reply.array(if with_values && !is_nested { shown * 2 } else { shown });
    let reply = &mut *call.reply;
    let show = |reply: &mut Encoder<'_>, field: Element<'_>, value: Element<'_>| {
        if is_nested {
            reply.array(2);
        }
        bulk(reply, field);
        if with_values {
            bulk(reply, value);
        }
    };
    if count < 0 {
        let mut checked = Ok(());
        hash.draw(heap, shown, |field, value| {
            show(reply, field, value);
            checked = super::check_reply(reply, call.start);
            checked.is_ok()
        });
        checked?;
    } else {
        let picked = super::pick(&mut heap.random, len, shown);
        let (mut index, mut next) = (0, 0);
        hash.each(heap, |field, value| {
            if picked.as_ref().is_none_or(|picked| picked.get(next) == Some(&index)) {
                show(reply, field, value);
                next += 1;
            }
            index += 1;
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::transcript::{Script, play};

    #[test]
    fn fields_are_set_and_read() {
        play(
            "HSET h a 1 b 2 -> :2
             HSET h a 3 c x -> :1
             HSET h a 1 b -> -ERR wrong number of arguments for 'hset' command
             HMSET h d 4 -> +OK
             HGET h a -> $1 3
             HGET h z -> $-1
             HGET none z -> $-1
             HMGET h a z d -> *3 $1 3 $-1 $1 4
             HLEN h -> :4
             HGETALL h -> *8 $1 a $1 3 $1 b $1 2 $1 c $1 x $1 d $1 4
             HKEYS h -> *4 $1 a $1 b $1 c $1 d
             HVALS h -> *4 $1 3 $1 2 $1 x $1 4
             HDEL h a a b -> :2
             HSTRLEN h c -> :1
             HEXISTS h c -> :1
             HSETNX h c y -> :0
             HDEL h c d -> :2
             EXISTS h -> :0
             SET s 1 -> +OK
             HGET s a -> -WRONGTYPE Operation against a key holding the wrong kind of value
             #3
             HSET h a 1 -> :1
             HGETALL h -> %1 $1 a $1 1
             HRANDFIELD h 5 WITHVALUES -> *1 *2 $1 a $1 1
             HGETALL none -> %0",
        );
    }

    #[test]
    fn numbers_in_fields_are_counted() {
        play(
            "HINCRBY h a 5 -> :5
             HINCRBY h a -7 -> :-2
             HINCRBYFLOAT h a 0.5 -> $4 -1.5
             HINCRBY h a 1 -> -ERR hash value is not an integer
             HSET h a x b 9223372036854775807 -> :1
             HINCRBYFLOAT h a 1 -> -ERR hash value is not a float
             HINCRBY h b 1 -> -ERR increment or decrement would overflow
             HINCRBY none a x -> -ERR value is not an integer or out of range
             EXISTS none -> :0",
        );
    }

    #[test]
    fn hashes_leave_the_compact_encoding() {
        let mut script = Script::new();
        for number in 0..=512 {
            assert_eq!(script.say("OBJECT ENCODING h"), if number == 0 { "$-1" } else { "$8 listpack" });
            script.say(&format!("HSET h f{number} v{number}"));
        }
        assert_eq!(script.say("OBJECT ENCODING h"), "$9 hashtable");
        for number in 0..=512 {
            assert!(script.say(&format!("HGET h f{number}")).ends_with(&format!("v{number}")));
        }
        script.say(&format!("HSET g f {}", "x".repeat(65)));
        assert_eq!(script.say("OBJECT ENCODING g"), "$9 hashtable");
        assert!(script.say("HSCAN h 0 COUNT 1000 MATCH f50?").starts_with("*2 $1 0 *20 "));
        assert!(script.say("HSCAN h 0 NOVALUES COUNT 1000 MATCH f50?").starts_with("*2 $1 0 *10 $4 f50"));
        assert_eq!(script.say("HSCAN h 0 NOSCORES"), "-ERR syntax error");
    }
}
