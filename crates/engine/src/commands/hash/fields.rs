//! Commands about the deadlines of fields. Where Redis 8 and Valkey 9 differ, this is Valkey's behaviour: arguments are read up to
//! the word `FIELDS`, which ends the options, and a time must not be negative but may have passed.

use respool_command::text;
use respool_wire::Args;

use super::super::arguments::{Conditions, Moment};
use super::super::{Answer, Call, Fault, REPLY_TOO_LARGE, bulk};
use crate::keyspace::events::{self, Event};
use crate::keyspace::{Edited, Expiry, Found};
use crate::limits::REPLY_BYTES_MAX;
use crate::store::heap::Heap;
use crate::store::listpack::Element;
use crate::values::Hash;

const FIELDS_MISMATCH: &str = "ERR numfields should be greater than 0 and match the provided number of fields";

/// Replies for one field.
const NO_FIELD: i64 = -2;
const NO_DEADLINE: i64 = -1;
const REFUSED: i64 = 0;
const CHANGED: i64 = 1;
const REMOVED: i64 = 2;

/// Bytes of a reply beside the value of a field.
const VALUE_COST_BYTES: usize = 16;

impl<'c> Call<'c, '_> {
    /// The index of the word `FIELDS`, at `first` or later.
    fn fields_at(&self, first: usize) -> Result<usize, Fault> {
        let mut indexes = first..self.args.len().saturating_sub(1);
        indexes.find(|index| self.is_word(*index, "FIELDS")).ok_or_else(|| FIELDS_MISMATCH.into())
    }

    /// The fields whose number is at `index`, with as many arguments for each.
    fn fields(&self, index: usize, arguments: usize, mismatch: &'static str) -> Result<Args<'c>, Fault> {
        let count = usize::try_from(self.integer(index)?).ok().filter(|count| *count > 0);
        let fields = self.args.from(index + 1);
        match count.and_then(|count| count.checked_mul(arguments)) {
            Some(count) if count == fields.len() => Ok(fields),
            _ => Err(mismatch.into()),
        }
    }

    /// The fields of a command that has `FIELDS` as its second argument.
    fn plain_fields(&self, mismatch: &'static str) -> Result<Args<'c>, Fault> {
        if self.is_word(2, "FIELDS") { self.fields(3, 1, mismatch) } else { Err(text::SYNTAX.into()) }
    }

    /// Replies an integer for each field, which `edit` finds for a hash that exists; its changes are this event.
    fn edit_fields(
        &mut self,
        fields: Args<'_>,
        event: Event,
        mut edit: impl FnMut(&mut Hash, &mut Heap, &[u8]) -> (i64, bool),
    ) -> Answer {
        let found = self.find::<Hash>(self.arg(1))?;
        let reply = &mut *self.reply;
        reply.array(fields.len());
        let Some(found) = found else {
            fields.iter().for_each(|_| reply.integer(NO_FIELD));
            return Ok(());
        };
        self.keyspace.edit_or_remove(self.at.database, found, |hash: &mut Hash, heap| {
            let mut changes = 0;
            for field in fields.iter() {
                let (result, is_change) = edit(hash, heap, field);
                reply.integer(result);
                changes += usize::from(is_change);
            }
            Edited::count(changes).named(event)
        });
        Ok(())
    }

    /// Replies the values of fields, with null for missing ones, and has `edit` change each after it was read; returns how many were
    /// changed. The size of the reply is checked before anything changes.
    fn read_fields(
        &mut self,
        found: Option<Found>,
        fields: Args<'_>,
        event: Event,
        mut edit: impl FnMut(&mut Hash, &mut Heap, &[u8]) -> bool,
    ) -> Answer {
        let reply = &mut *self.reply;
        let Some(found) = found else {
            reply.array(fields.len());
            fields.iter().for_each(|_| reply.null());
            return Ok(());
        };
        let hash = self.keyspace.view::<Hash>(found);
        let value_bytes = |field| hash.and_then(|(hash, heap)| hash.get(heap, field)).map_or(0, Element::len);
        let bytes: usize = fields.iter().map(|field| value_bytes(field) + VALUE_COST_BYTES).sum();
        if bytes > REPLY_BYTES_MAX {
            return Err(REPLY_TOO_LARGE.into());
        }
        reply.array(fields.len());
        self.keyspace.edit_or_remove(self.at.database, found, |hash: &mut Hash, heap| {
            let mut changes = 0;
            for field in fields.iter() {
                match hash.get(heap, field) {
                    Some(value) => bulk(reply, value),
                    None => reply.null(),
                }
                changes += usize::from(edit(hash, heap, field));
            }
            Edited::count(changes).named(event)
        });
        Ok(())
    }
}

/// `HEXPIRE key time [NX|XX|GT|LT] FIELDS count field ...` and its kin.
pub(super) fn expire(call: &mut Call<'_, '_>, moment: Moment) -> Answer {
    let fields_at = call.fields_at(3)?;
    let conditions = Conditions::read(call, 3..fields_at)?;
    let fields = call.fields(fields_at + 1, 1, FIELDS_MISMATCH)?;
    let deadline = call.deadline_from(2, moment, 0)?;
    let is_past = deadline <= call.at.now;
    let event = if is_past { events::HEXPIRED } else { events::HEXPIRE };
    let mut expired = 0;
    call.edit_fields(fields, event, |hash, heap, field| match hash.deadline(heap, field) {
        None => (NO_FIELD, false),
        Some(old) if !conditions.allow(old, deadline) => (REFUSED, false),
        Some(_) if is_past => (REMOVED, removed(hash, heap, field, &mut expired)),
        Some(_) => (CHANGED, hash.set_deadline(heap, field, deadline)),
    })?;
    call.keyspace.counters.expired_fields += expired;
    Ok(())
}

/// Removes a field whose new deadline has passed already, and counts it as one that has expired; returns whether there was one.
fn removed(hash: &mut Hash, heap: &mut Heap, field: &[u8], expired: &mut u64) -> bool {
    let is_removed = hash.remove(heap, field);
    *expired += u64::from(is_removed);
    is_removed
}

/// `HTTL key FIELDS count field ...` and its kin.
pub(super) fn time(call: &mut Call<'_, '_>, moment: Moment) -> Answer {
    let fields = call.plain_fields(text::SYNTAX)?;
    let found = call.read::<Hash>(call.arg(1))?;
    let hash = found.and_then(|found| call.keyspace.view::<Hash>(found));
    call.reply.array(fields.len());
    for field in fields.iter() {
        call.reply.integer(match hash.and_then(|(hash, heap)| hash.deadline(heap, field)) {
            None => NO_FIELD,
            Some(None) => NO_DEADLINE,
            Some(Some(deadline)) => moment.shown(deadline, call.at.now),
        });
    }
    Ok(())
}

/// `HPERSIST key FIELDS count field ...`.
pub(super) fn persist(call: &mut Call<'_, '_>) -> Answer {
    let fields = call.plain_fields(FIELDS_MISMATCH)?;
    call.edit_fields(fields, events::HPERSIST, |hash, heap, field| match hash.deadline(heap, field) {
        None => (NO_FIELD, false),
        Some(None) => (NO_DEADLINE, false),
        Some(Some(_)) => {
            hash.clear_deadline(heap, field);
            (CHANGED, true)
        }
    })
}

/// The options of `HGETEX` and `HSETEX`.
#[derive(Default)]
struct Options {
    /// `NX` and `XX`: whether the key has to exist.
    key_exists: Option<bool>,
    /// `FNX` and `FXX`: whether all fields, or none, have to exist.
    fields_exist: Option<bool>,
    keeps_deadlines: bool,
    drops_deadlines: bool,
    /// Where the moment stands, and how to read it.
    deadline: Option<(usize, Moment)>,
}

impl Options {
    /// Parses the options before the word `FIELDS`.
    fn read(call: &Call<'_, '_>, fields_at: usize, is_set: bool) -> Result<Self, Fault> {
        let mut options = Self::default();
        let mut index = 2;
        while index < fields_at {
            let has_expiry = options.keeps_deadlines || options.drops_deadlines || options.deadline.is_some();
            let choice = |old: &mut Option<bool>, new| match old.replace(new) {
                Some(old) if old != new => Err(Fault::from(text::SYNTAX)),
                _ => Ok(()),
            };
            match Moment::of(call.arg(index)) {
                Some(moment) if !has_expiry && index + 1 < fields_at => {
                    options.deadline = Some((index + 1, moment));
                    index += 1;
                }
                None if is_set && call.is_word(index, "NX") => choice(&mut options.key_exists, false)?,
                None if is_set && call.is_word(index, "XX") => choice(&mut options.key_exists, true)?,
                None if is_set && call.is_word(index, "FNX") => choice(&mut options.fields_exist, false)?,
                None if is_set && call.is_word(index, "FXX") => choice(&mut options.fields_exist, true)?,
                None if is_set && !has_expiry && call.is_word(index, "KEEPTTL") => options.keeps_deadlines = true,
                None if !is_set && !has_expiry && call.is_word(index, "PERSIST") => options.drops_deadlines = true,
                _ => return Err(text::SYNTAX.into()),
            }
            index += 1;
        }
        Ok(options)
    }

    fn deadline(&self, call: &Call<'_, '_>) -> Result<Option<i64>, Fault> {
        self.deadline.map(|(index, moment)| call.deadline_from(index, moment, 0)).transpose()
    }
}

/// `HGETEX key [EX|PX|EXAT|PXAT time|PERSIST] FIELDS count field ...`.
pub(super) fn hgetex(call: &mut Call<'_, '_>) -> Answer {
    let fields_at = call.fields_at(2)?;
    let options = Options::read(call, fields_at, false)?;
    let fields = call.fields(fields_at + 1, 1, FIELDS_MISMATCH)?;
    let found = call.read::<Hash>(call.arg(1))?;
    let deadline = options.deadline(call)?;
    let now = call.at.now;
    let event = match deadline {
        Some(deadline) if deadline <= now => events::HEXPIRED,
        Some(_) => events::HEXPIRE,
        None => events::HPERSIST,
    };
    let mut expired = 0;
    call.read_fields(found, fields, event, |hash, heap, field| match deadline {
        Some(deadline) if deadline <= now => removed(hash, heap, field, &mut expired),
        Some(deadline) => hash.set_deadline(heap, field, deadline),
        None if options.drops_deadlines && matches!(hash.deadline(heap, field), Some(Some(_))) => {
            hash.clear_deadline(heap, field);
            true
        }
        None => false,
    })?;
    call.keyspace.counters.expired_fields += expired;
    Ok(())
}

/// `HGETDEL key FIELDS count field ...`.
pub(super) fn hgetdel(call: &mut Call<'_, '_>) -> Answer {
    let fields = call.plain_fields(FIELDS_MISMATCH)?;
    let found = call.read::<Hash>(call.arg(1))?;
    call.read_fields(found, fields, events::HDEL, |hash, heap, field| hash.remove(heap, field))
}

/// `HSETEX key [NX|XX] [FNX|FXX] [EX|PX|EXAT|PXAT time|KEEPTTL] FIELDS count field value ...`.
pub(super) fn hsetex(call: &mut Call<'_, '_>) -> Answer {
    let fields_at = call.fields_at(2)?;
    let options = Options::read(call, fields_at, true)?;
    let pairs = call.fields(fields_at + 1, 2, FIELDS_MISMATCH)?;
    let key = call.arg(1);
    let found = call.find::<Hash>(key)?;
    if options.key_exists.is_some_and(|exists| exists != found.is_some()) {
        return call.reply_integer(REFUSED);
    }
    let deadline = options.deadline(call)?;
    let fields = || pairs.iter().step_by(2);
    if let Some(expected) = options.fields_exist {
        let hash = found.and_then(|found| call.keyspace.view::<Hash>(found));
        let exists = |field| hash.is_some_and(|(hash, heap)| hash.get(heap, field).is_some());
        if fields().any(|field| exists(field) != expected) {
            return call.reply_integer(REFUSED);
        }
    }
    let is_past = deadline.is_some_and(|deadline| deadline <= call.at.now);
    let expiry = match deadline {
        // As in Valkey such fields are set and expire at once, which is four events.
        Some(_) if is_past => Expiry::Never,
        Some(deadline) => Expiry::At(deadline),
        None if options.keeps_deadlines => Expiry::Keep,
        None => Expiry::Never,
    };
    call.upsert(
        key,
        |_| Hash::new(),
        |hash: &mut Hash, heap| {
            hash.make_room_for(heap, pairs.iter());
            for (field, value) in fields().zip(pairs.from(1).iter().step_by(2)) {
                hash.set_with(heap, field, value, expiry);
            }
            Edited::change(()).named(events::HSET)
        },
    )?;
    if deadline.is_some() {
        call.notify(events::HEXPIRE, key);
    }
    if is_past {
        let mut expired = 0;
        call.update(key, |hash: &mut Hash, heap| {
            let removed = fields().filter(|field| removed(hash, heap, field, &mut expired)).count();
            Edited::count(removed).named(events::HEXPIRED)
        })?;
        call.keyspace.counters.expired_fields += expired;
    }
    call.reply_integer(CHANGED)
}

#[cfg(test)]
mod tests {
    use crate::transcript::{Script, play};
    use respool_command::Execute;
    use respool_wire::ArgsBuf;

    #[test]
    fn fields_expire_one_by_one() {
        play(
            "HSET h a 1 b 2 c 3 -> :3
             OBJECT ENCODING h -> $8 listpack
             HPEXPIRE h 10 FIELDS 2 a none -> *2 :1 :-2
             OBJECT ENCODING h -> $9 hashtable
             HEXPIRE h 5 FIELDS 1 b -> *1 :1
             HTTL h FIELDS 4 a b c none -> *4 :0 :5 :-1 :-2
             HPTTL h FIELDS 2 a b -> *2 :10 :5000
             HEXPIRETIME h FIELDS 1 b -> *1 :1600000005
             HPEXPIRETIME h FIELDS 2 a b -> *2 :1600000000010 :1600000005000
             @10
             HGET h a -> $1 1
             @1
             HGET h a -> $-1
             HMGET h a b -> *2 $-1 $1 2
             HEXISTS h a -> :0
             HSTRLEN h a -> :0
             HLEN h -> :2
             HTTL h FIELDS 1 a -> *1 :-2
             HPERSIST h FIELDS 4 a b c none -> *4 :-2 :1 :-1 :-2
             OBJECT ENCODING h -> $9 hashtable
             @60000
             HMGET h a b c -> *3 $-1 $1 2 $1 3
             HEXPIRE none 5 FIELDS 2 a b -> *2 :-2 :-2
             HTTL none FIELDS 1 a -> *1 :-2
             HPERSIST none FIELDS 1 a -> *1 :-2",
        );
    }

    #[test]
    fn a_key_goes_with_its_last_field() {
        play(
            "HSET h a 1 b 2 -> :2
             HPEXPIRE h 10 FIELDS 1 a -> *1 :1
             HPEXPIRE h 20 FIELDS 1 b -> *1 :1
             @21
             EXISTS h -> :0
             TYPE h -> +none
             KEYS * -> *0
             DBSIZE -> :0
             HSET h a 1 -> :1
             HPEXPIRE h 5 FIELDS 1 a -> *1 :1
             @6
             SCAN 0 -> *2 $1 0 *0
             RANDOMKEY -> $-1
             HSET h a 1 b 2 -> :2
             HEXPIRE h 0 FIELDS 1 a -> *1 :2
             HEXPIREAT h 1 FIELDS 2 b b -> *2 :2 :-2
             EXISTS h -> :0
             HSETEX h PX 5 FIELDS 1 a 1 -> :1
             RENAME h g -> +OK
             @6
             RENAME g h -> -ERR no such key
             HSETEX h PX 5 FIELDS 1 a 1 -> :1
             SET h string -> +OK
             @6
             GET h -> $6 string",
        );
    }

    #[test]
    fn deadlines_have_conditions() {
        play(
            "HSET h a 1 b 2 -> :2
             HEXPIRE h 10 XX FIELDS 1 a -> *1 :0
             HEXPIRE h 10 GT FIELDS 1 a -> *1 :0
             HEXPIRE h 10 LT FIELDS 1 a -> *1 :1
             HEXPIRE h 20 NX FIELDS 2 a b -> *2 :0 :1
             HEXPIRE h 15 GT FIELDS 2 a b -> *2 :1 :0
             HEXPIRE h 15 LT FIELDS 2 a b -> *2 :0 :1
             HEXPIRE h 5 XX LT FIELDS 1 a -> *1 :1
             HTTL h FIELDS 2 a b -> *2 :5 :15
             HEXPIRE h 5 NX XX FIELDS 1 a -> -ERR NX and XX, GT or LT options at the same time are not compatible
             HEXPIRE h 5 GT LT FIELDS 1 a -> -ERR GT and LT options at the same time are not compatible
             HEXPIRE h 5 NOPE FIELDS 1 a -> -ERR Unsupported option NOPE
             HEXPIRE h -1 FIELDS 1 a -> -ERR invalid expire time in 'hexpire' command
             HPEXPIREAT h -1 FIELDS 1 a -> -ERR invalid expire time in 'hpexpireat' command
             HEXPIRE h 9223372036854775 FIELDS 1 a -> -ERR invalid expire time in 'hexpire' command
             HPEXPIRE h 9223372036854775807 FIELDS 1 a -> -ERR invalid expire time in 'hpexpire' command
             HEXPIRE h x FIELDS 1 a -> -ERR value is not an integer or out of range
             HPEXPIREAT h 9223372036854775807 FIELDS 1 a -> *1 :1
             HPEXPIRETIME h FIELDS 1 a -> *1 :9223372036854775807
             HEXPIRETIME h FIELDS 1 a -> *1 :9223372036854775",
        );
    }

    #[test]
    fn the_number_of_fields_has_to_match() {
        let mismatch = "-ERR numfields should be greater than 0 and match the provided number of fields";
        let not_an_integer = "-ERR value is not an integer or out of range";
        let mut script = Script::new();
        script.say("HSET h a 1 b 2");
        for head in ["HEXPIRE h 5", "HPEXPIREAT h 1", "HPERSIST h", "HGETEX h", "HGETEX h EX 5", "HGETDEL h"] {
            for (tail, expected) in [
                ("FIELDS 0 a", mismatch),
                ("FIELDS 2 a", mismatch),
                ("FIELDS 1 a b", mismatch),
                ("FIELDS -1 a", mismatch),
                ("FIELDS 9223372036854775807 a", mismatch),
                ("FIELDS 9223372036854775808 a", not_an_integer),
                ("FIELDS x a", not_an_integer),
            ] {
                assert_eq!(script.say(&format!("{head} {tail}")), expected, "{head} {tail}");
            }
        }
        for tail in ["FIELDS 0 a 1", "FIELDS 2 a 1", "FIELDS 1 a 1 b", "FIELDS 4611686018427387904 a 1"] {
            assert_eq!(script.say(&format!("HSETEX h {tail}")), mismatch, "{tail}");
        }
        for tail in ["FIELDS 0 a", "FIELDS 2 a", "FIELDZ 1 a"] {
            assert_eq!(script.say(&format!("HTTL h {tail}")), "-ERR syntax error", "{tail}");
        }
        assert_eq!(script.say("HEXPIRE h 5 FIELDZ 1 a"), mismatch);
        assert_eq!(script.say("HPERSIST h FIELDZ 1 a"), "-ERR syntax error");
        assert_eq!(script.say("HGETALL h"), "*4 $1 a $1 1 $1 b $1 2");
        script.say("SET s x");
        for request in ["HEXPIRE s 5 FIELDS 1 a", "HTTL s FIELDS 1 a", "HSETEX s FIELDS 1 a 1", "HGETEX s FIELDS 1 a"] {
            assert!(script.say(request).starts_with("-WRONGTYPE "), "{request}");
        }
    }

    #[test]
    fn writes_keep_or_drop_deadlines() {
        play(
            "HSETEX h EX 10 FIELDS 4 a 1 b 2 c x d 1 -> :1
             HSET h a 1 -> :0
             HINCRBY h b 1 -> :3
             HINCRBYFLOAT h d 0.5 -> $3 1.5
             HSETNX h c y -> :0
             HINCRBY h c 1 -> -ERR hash value is not an integer
             HTTL h FIELDS 4 a b c d -> *4 :-1 :10 :10 :10
             HSETEX h KEEPTTL FIELDS 2 a 5 b 5 -> :1
             HTTL h FIELDS 2 a b -> *2 :-1 :10
             HSETEX h FIELDS 1 b 6 -> :1
             HTTL h FIELDS 1 b -> *1 :-1
             HMSET h c z -> +OK
             HTTL h FIELDS 1 c -> *1 :-1
             HPEXPIRE h 5 FIELDS 2 a b -> *2 :1 :1
             @6
             HSETNX h a 7 -> :1
             HSET h b 8 -> :1
             HTTL h FIELDS 2 a b -> *2 :-1 :-1
             HPEXPIRE h 5 FIELDS 1 a -> *1 :1
             @6
             HINCRBY h a 1 -> :1
             HTTL h FIELDS 1 a -> *1 :-1
             HPEXPIRE h 5 FIELDS 1 a -> *1 :1
             HDEL h a -> :1
             HSET h a 1 -> :1
             @6
             HGET h a -> $1 1",
        );
    }

    #[test]
    fn fields_are_set_with_a_deadline() {
        play(
            "HSETEX h FNX EX 10 FIELDS 2 a 1 b 2 -> :1
             HSETEX h FNX FIELDS 2 b 3 c 3 -> :0
             HSETEX h FXX FIELDS 2 b 3 c 3 -> :0
             HSETEX h FXX PX 5 FIELDS 2 a 4 b 4 -> :1
             HPTTL h FIELDS 2 a b -> *2 :5 :5
             @6
             HSETEX h FXX FIELDS 1 a 1 -> :0
             EXISTS h -> :0
             HSETEX h XX FIELDS 1 a 1 -> :0
             HSETEX h NX FIELDS 1 a 1 -> :1
             HSETEX h NX FIELDS 1 a 2 -> :0
             HSETEX h XX EXAT 1 FIELDS 2 a 2 b 2 -> :1
             EXISTS h -> :0
             HSETEX h EX 0 FIELDS 1 a 1 -> :1
             EXISTS h -> :0
             HSETEX h FIELDS 2 a 1 a 2 -> :1
             HGETALL h -> *2 $1 a $1 2
             HSETEX h EX 1 PX 1 FIELDS 1 a 1 -> -ERR syntax error
             HSETEX h EX 1 KEEPTTL FIELDS 1 a 1 -> -ERR syntax error
             HSETEX h FNX FXX FIELDS 1 a 1 -> -ERR syntax error
             HSETEX h NX XX FIELDS 1 a 1 -> -ERR syntax error
             HSETEX h EX FIELDS 1 a 1 -> -ERR syntax error
             HSETEX h PERSIST FIELDS 1 a 1 -> -ERR syntax error
             HSETEX h EX -1 FIELDS 1 a 1 -> -ERR invalid expire time in 'hsetex' command",
        );
    }

    #[test]
    fn values_are_read_and_changed() {
        play(
            "HSET h a 1 b 2 c 3 d 4 -> :4
             HGETEX h EX 10 FIELDS 3 a none a -> *3 $1 1 $-1 $1 1
             HTTL h FIELDS 2 a b -> *2 :10 :-1
             HGETEX h FIELDS 1 a -> *1 $1 1
             HTTL h FIELDS 1 a -> *1 :10
             HGETEX h PERSIST FIELDS 2 a b -> *2 $1 1 $1 2
             HTTL h FIELDS 2 a b -> *2 :-1 :-1
             HGETEX h PX 0 FIELDS 2 a a -> *2 $1 1 $-1
             HGETEX h KEEPTTL FIELDS 1 b -> -ERR syntax error
             HGETEX h EX 1 PERSIST FIELDS 1 b -> -ERR syntax error
             HGETEX h EX -10 FIELDS 1 b -> -ERR invalid expire time in 'hgetex' command
             HGETDEL h FIELDS 3 b b none -> *3 $1 2 $-1 $-1
             HLEN h -> :2
             HGETDEL h FIELDS 2 c d -> *2 $1 3 $1 4
             EXISTS h -> :0
             HGETDEL h FIELDS 2 c d -> *2 $-1 $-1
             HGETEX h EX 5 FIELDS 1 c -> *1 $-1
             HSET h a 1 -> :1
             HGETEX h EXAT 1 FIELDS 1 a -> *1 $1 1
             EXISTS h -> :0",
        );
    }

    #[test]
    fn fields_of_a_passed_deadline_count_as_expired() {
        let mut script = Script::new();
        for (request, expired) in [
            ("HEXPIRE h 0 FIELDS 3 a none a", 1),
            ("HGETEX h EXAT 1 FIELDS 2 b none", 2),
            ("HSETEX h PX 0 FIELDS 2 c 1 d 1", 4),
            ("HDEL h e", 4),
        ] {
            script.say("HSET h a 1 b 1 e 1");
            script.say(request);
            assert_eq!(script.engine.counters().expired_fields, expired, "{request}");
        }
    }

    #[test]
    fn info_tells_of_hashes_with_deadlines() {
        let mut script = Script::new();
        script.say("HSET h a 1");
        assert!(script.say("INFO keyspace").ends_with("db0:keys=1,expires=0,avg_ttl=0"), "as ever, without any");
        script.say("HEXPIRE h 10 FIELDS 1 a");
        let told = script.say("INFO keyspace");
        assert!(told.ends_with("db0:keys=1,expires=0,avg_ttl=0,keys_with_volatile_items=1"), "{told}");
    }

    #[test]
    fn deadlines_move_with_the_key() {
        play(
            "HSETEX h PX 100 FIELDS 1 a 1 -> :1
             HSET h b 2 -> :1
             EXPIRE h 50 -> :1
             COPY h c -> :1
             RENAME h g -> +OK
             MOVE g 1 -> :1
             HPTTL c FIELDS 2 a b -> *2 :100 :-1
             SWAPDB 0 1 -> +OK
             HPTTL g FIELDS 2 a b -> *2 :100 :-1
             HPEXPIRE g 200 FIELDS 1 a -> *1 :1
             SWAPDB 0 1 -> +OK
             @101
             HGETALL c -> *2 $1 b $1 2
             SWAPDB 0 1 -> +OK
             HLEN g -> :2
             PERSIST g -> :1
             @100
             HGETALL g -> *2 $1 b $1 2
             TTL g -> :-1",
        );
    }

    #[test]
    fn expired_fields_are_nowhere_to_be_seen() {
        let mut script = Script::new();
        for number in 0..3_000 {
            script.say(&format!("HSET h f{number} v"));
        }
        for number in 0..2_900 {
            assert_eq!(script.say(&format!("HPEXPIRE h 5 FIELDS 1 f{number}")), "*1 :1");
        }
        script.session.now.0 += 6;
        // Some of them are still there, since one request removes a bounded number.
        assert_eq!(script.say("HLEN h"), ":100");
        assert_eq!(script.say("HGET h f2899"), "$-1");
        let field = script.say("HRANDFIELD h");
        let number: usize = field.rsplit('f').next().and_then(|number| number.parse().ok()).expect("a field");
        assert!(number >= 2_900, "{field}");
        script.say("HSET g x 1");
        for number in 0..3_000 {
            script.say(&format!("HSETEX g PX 5 FIELDS 1 f{number} v"));
        }
        script.session.now.0 += 6;
        for request in ["HGETALL g", "HRANDFIELD g 3000 WITHVALUES", "HRANDFIELD g -1 WITHVALUES"] {
            assert_eq!(script.say(request), "*2 $1 x $1 1", "{request}");
        }
        assert_eq!(script.say("HSCAN g 0 COUNT 10000"), "*2 $1 0 *2 $1 x $1 1");
    }

    #[test]
    fn the_active_cycle_removes_fields() {
        use respool_command::Execute;
        let mut script = Script::new();
        for number in 0..20_000 {
            script.say(&format!("HSETEX h{} PX {} FIELDS 1 f{number} v", number % 300, 1 + number % 2_000));
        }
        script.say("HSET h7 stays v");
        let held = script.engine.memory_bytes();
        let (mut now, mut turns) = (script.session.now, 0);
        while script.engine.counters().expired_fields < 20_000 {
            let next = script.engine.tick(now).expect("the engine wants to be called again");
            assert!(next > now && next.0 <= now.0 + 1_000, "the next turn lies ahead, but not far");
            now = next;
            turns += 1;
            assert!(turns < 200, "the cycle comes to an end");
        }
        assert!(now.0 <= script.session.now.0 + 3_500, "the cycle is prompt");
        let size = script.engine.keyspace_size(0);
        assert_eq!((size.keys, size.expires, script.engine.counters().expired_keys), (1, 0, 0));
        assert!(script.engine.memory_bytes() < held / 2);
    }

    #[test]
    fn a_hash_without_deadlines_pays_nothing_for_them() {
        const FIELDS: usize = 20_000;
        let bytes_of = |request: &str, more: &str| {
            let mut script = Script::new();
            for number in 0..FIELDS {
                script.say(&format!("{request} f:{number} value"));
            }
            script.say(more);
            script.engine.memory_bytes() as f64 / FIELDS as f64
        };
        let plain = bytes_of("HSET h", "EXISTS h");
        assert!(plain < 36.0, "{plain} bytes a field");
        let volatile = bytes_of("HSETEX h EX 100 FIELDS 1", "EXISTS h");
        assert!(volatile < plain + 36.0, "{volatile} bytes a field with a deadline");
        // One deadline among many fields, which takes one page for a record of another size, and one that was removed.
        for more in ["HEXPIRE h 100 FIELDS 1 f:7", "HEXPIRE h 0 FIELDS 1 f:7"] {
            let bytes = bytes_of("HSET h", more);
            assert!(bytes < plain + 4.0, "{bytes} bytes a field after {more}");
        }
    }

    #[test]
    fn a_watched_hash_changes_when_a_field_expires() {
        let mut script = Script::new();
        let watch = |script: &mut Script| {
            let keys: ArgsBuf = ["h"].into_iter().collect();
            script.engine.unwatch(1);
            script.engine.watch(1, 0, script.session.now, keys.as_args());
        };
        let is_dirty = |script: &mut Script| script.engine.is_dirty(1, script.session.now);
        script.say("HSET h a 1 b 2");
        script.say("HPEXPIRE h 5 FIELDS 1 a");
        watch(&mut script);
        assert_eq!(script.say("HTTL h FIELDS 1 a"), "*1 :0");
        assert_eq!(script.say("HGETEX h FIELDS 1 a"), "*1 $1 1");
        assert!(!is_dirty(&mut script), "reads change nothing");
        script.session.now.0 += 6;
        assert!(is_dirty(&mut script));
        watch(&mut script);
        script.say("HEXPIRE h 5 XX FIELDS 1 b");
        assert!(!is_dirty(&mut script), "a condition that fails changes nothing");
        for request in ["HEXPIRE h 5 FIELDS 1 b", "HGETEX h PERSIST FIELDS 1 b", "HSETEX h FIELDS 1 b 3"] {
            watch(&mut script);
            script.say(request);
            assert!(is_dirty(&mut script), "{request}");
        }
    }

    #[test]
    fn dumps_have_the_deadlines_of_fields() {
        let mut script = Script::new();
        script.say("HSET h a 1 b 2");
        script.say("HPEXPIRE h 50 FIELDS 1 b");
        let reply = script.send(&[b"DUMP", b"h"]);
        let head = reply.iter().position(|byte| *byte == b'\n').expect("a bulk string");
        let payload = reply[head + 1..reply.len() - 2].to_vec();
        assert_eq!(payload[0], 22, "Valkey's type of hashes with deadlines");
        assert_eq!(payload[payload.len() - 10], 80, "Valkey's version");
        assert_eq!(script.send(&[b"RESTORE", b"g", b"0", &payload]), b"+OK\r\n");
        assert_eq!(script.say("HPTTL g FIELDS 2 a b"), "*2 :-1 :50");
        script.session.now.0 += 51;
        assert_eq!(script.say("HGETALL g"), "*2 $1 a $1 1");
        assert_eq!(script.send(&[b"RESTORE", b"g", b"0", &payload, b"REPLACE"]), b"+OK\r\n");
        assert_eq!(script.say("HGETALL g"), "*2 $1 a $1 1");
        // A hash without deadlines is dumped as ever.
        script.say("HPERSIST g FIELDS 1 a");
        let reply = script.send(&[b"DUMP", b"g"]);
        let head = reply.iter().position(|byte| *byte == b'\n').expect("a bulk string");
        assert_eq!(reply[head + 1], 4);
    }
}
