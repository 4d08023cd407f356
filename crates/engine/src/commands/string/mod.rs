//! Strings.

mod conditional;
mod lcs;

use respool_command::{StringCommand, text};
use respool_wire::Args;

use super::arguments::Moment;
use super::bitmap::grow;
use super::{Answer, Call, Fault, bulk, named};
use crate::keyspace::{Edited, Expiry, Form, NotAString, events};
use crate::limits::STRING_BYTES_MAX;
use crate::number::integer;
use crate::number::long_double::LongDouble;
use crate::store::listpack::Element;

use conditional::Comparison;

/// Runs one command of the group.
#[inline]
pub(super) fn run(command: StringCommand, call: &mut Call<'_, '_>) -> Answer {
    match command {
        StringCommand::Append => append(call),
        StringCommand::Decr => add(call, -1),
        StringCommand::Decrby => decrby(call),
        StringCommand::Delex => conditional::delex(call),
        StringCommand::Delifeq => conditional::delifeq(call),
        StringCommand::Digest => conditional::digest(call),
        StringCommand::Get => get(call),
        StringCommand::Getdel => getdel(call),
        StringCommand::Getex => getex(call),
        StringCommand::Getrange | StringCommand::Substr => getrange(call),
        StringCommand::Getset => getset(call),
        StringCommand::Incr => add(call, 1),
        StringCommand::Incrby => add(call, call.integer(2)?),
        StringCommand::Incrbyfloat => incrbyfloat(call),
        StringCommand::Lcs => lcs::lcs(call),
        StringCommand::Mget => mget(call),
        StringCommand::Mset => mset(call),
        StringCommand::Msetex => conditional::msetex(call),
        StringCommand::Msetnx => msetnx(call),
        StringCommand::Psetex => setex(call, false),
        StringCommand::Set => set(call),
        StringCommand::Setex => setex(call, true),
        StringCommand::Setnx => setnx(call),
        StringCommand::Setrange => setrange(call),
        StringCommand::Strlen => strlen(call),
    }
}

#[inline]
fn get(call: &mut Call<'_, '_>) -> Answer {
    match call.keyspace.read_text(call.at, call.arg(1)) {
        Ok(Some(text)) => bulk(call.reply, text),
        Ok(None) => call.reply.null(),
        Err(NotAString) => return Err(text::WRONGTYPE.into()),
    }
    Ok(())
}

/// The commands that share options.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OptionsOf {
    Set,
    Getex,
    Msetex,
}

/// The options of `SET`, `GETEX` and `MSETEX`.
#[derive(Default)]
struct Options {
    only_if_absent: bool,
    only_if_present: bool,
    /// The comparison with the old value, and where the argument stands that it is compared with.
    comparison: Option<(Comparison, usize)>,
    replies_old: bool,
    keeps_deadline: bool,
    drops_deadline: bool,
    /// Where the moment stands, and how to read it.
    deadline: Option<(usize, Moment)>,
}

/// Parses options from `first` on.
fn options(args: Args<'_>, first: usize, of: OptionsOf) -> Result<Options, Fault> {
    let (is_set, has_condition) = (of == OptionsOf::Set, of != OptionsOf::Getex);
    let mut options = Options::default();
    let mut index = first;
    while let Some(word) = args.get(index) {
        let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
        let moment = Moment::of(word);
        match (moment, options.deadline) {
            (Some(moment), other) if other.is_none_or(|(_, other)| other == moment) => {
                let is_free = !options.keeps_deadline && !options.drops_deadline && index + 1 < args.len();
                if !is_free {
                    return Err(text::SYNTAX.into());
                }
                options.deadline = Some((index + 1, moment));
                index += 1;
            }
            (None, _) if has_condition && is("NX") && !options.only_if_present && options.comparison.is_none() => {
                options.only_if_absent = true;
            }
            (None, _) if has_condition && is("XX") && !options.only_if_absent && options.comparison.is_none() => {
                options.only_if_present = true;
            }
            (None, _) if is_set && is("GET") => options.replies_old = true,
            (None, None) if has_condition && is("KEEPTTL") => options.keeps_deadline = true,
            (None, None) if !has_condition && is("PERSIST") => options.drops_deadline = true,
            (None, _) if is_set => {
                let is_free = !options.only_if_absent && !options.only_if_present && options.comparison.is_none();
                let comparison =
                    Comparison::of(word).filter(|_| is_free && index + 1 < args.len()).ok_or(text::SYNTAX)?;
                options.comparison = Some((comparison, index + 1));
                index += 1;
            }
            _ => return Err(text::SYNTAX.into()),
        }
        index += 1;
    }
    Ok(options)
}

impl Options {
    /// What becomes of the deadline.
    fn expiry(&self, call: &Call<'_, '_>) -> Result<Expiry, Fault> {
        Ok(match self.deadline {
            Some((index, moment)) => Expiry::At(call.deadline(index, moment)?),
            None if self.keeps_deadline => Expiry::Keep,
            None => Expiry::Never,
        })
    }
}

#[inline]
fn set(call: &mut Call<'_, '_>) -> Answer {
    if call.args.len() == 3 {
        call.keyspace.set_text(call.at, call.args.at(1), call.args.at(2), Expiry::Never, Form::Smallest);
        if call.keyspace.is_noted() {
            tell_of_set(call);
        }
        return call.reply_ok();
    }
    set_with_options(call)
}

/// Out of the way of `SET`, which then costs one test more than without events.
#[cold]
#[inline(never)]
fn tell_of_set(call: &mut Call<'_, '_>) {
    call.notify(events::SET, call.args.at(1));
}

#[inline(never)]
fn set_with_options(call: &mut Call<'_, '_>) -> Answer {
    let (key, value) = (call.arg(1), call.arg(2));
    let options = options(call.args, 3, OptionsOf::Set)?;
    let expiry = options.expiry(call)?;
    let found = match () {
        () if options.replies_old => call.read_string(key)?,
        () if options.comparison.is_some() => call.find_string(key)?,
        () => call.keyspace.find(call.at, key),
    };
    let is_refused = match options.comparison {
        Some((comparison, index)) => {
            let value = found.and_then(|found| call.keyspace.text(found));
            !comparison.holds(value, call.arg(index))?
        }
        None if found.is_some() => options.only_if_absent,
        None => options.only_if_present,
    };
    if options.replies_old {
        call.reply_text(found);
    } else if is_refused {
        call.reply.null();
    }
    if is_refused {
        return Ok(());
    }
    call.set_string(key, value, expiry);
    if options.replies_old { Ok(()) } else { call.reply_ok() }
}

fn setex(call: &mut Call<'_, '_>, is_seconds: bool) -> Answer {
    let deadline = call.deadline(2, Moment { is_seconds, is_relative: true })?;
    call.set_string(call.arg(1), call.arg(3), Expiry::At(deadline));
    call.reply_ok()
}

fn setnx(call: &mut Call<'_, '_>) -> Answer {
    let (key, value) = (call.arg(1), call.arg(2));
    let is_absent = call.keyspace.find(call.at, key).is_none();
    if is_absent {
        call.set_string(key, value, Expiry::Never);
    }
    call.reply_integer(is_absent.into())
}

fn getset(call: &mut Call<'_, '_>) -> Answer {
    let (key, value) = (call.arg(1), call.arg(2));
    let found = call.read_string(key)?;
    call.reply_text(found);
    call.set_string(key, value, Expiry::Never);
    Ok(())
}

fn getdel(call: &mut Call<'_, '_>) -> Answer {
    let found = call.read_string(call.arg(1))?;
    call.reply_text(found);
    if let Some(found) = found {
        call.keyspace.delete(call.at.database, found);
    }
    Ok(())
}

fn getex(call: &mut Call<'_, '_>) -> Answer {
    let key = call.arg(1);
    let options = options(call.args, 2, OptionsOf::Getex)?;
    let Some(found) = call.read_string(key)? else {
        call.reply.null();
        return Ok(());
    };
    let deadline = match options.deadline {
        Some((index, moment)) => Some((call.deadline(index, moment)?, moment)),
        None => None,
    };
    call.reply_text(Some(found));
    match deadline {
        Some((deadline, moment)) if !moment.is_relative && deadline <= call.at.now => {
            call.keyspace.delete(call.at.database, found);
        }
        Some((deadline, _)) => {
            call.keyspace.set_deadline(call.at, key, deadline);
            call.notify(events::EXPIRE, key);
        }
        None if options.drops_deadline => _ = call.drop_deadline(key, found),
        None => {}
    }
    Ok(())
}

fn strlen(call: &mut Call<'_, '_>) -> Answer {
    let found = call.read_string(call.arg(1))?;
    let len = found.and_then(|found| call.keyspace.text(found)).map_or(0, Element::len);
    call.reply_count(len)
}

fn getrange(call: &mut Call<'_, '_>) -> Answer {
    let (start, end) = (call.integer(2)?, call.integer(3)?);
    let found = call.read_string(call.arg(1))?;
    match found.and_then(|found| call.keyspace.text(found)) {
        Some(text) => text.read(|text| call.reply.bulk(slice(text, start, end))),
        None => call.reply.bulk(b""),
    }
    Ok(())
}

/// The part of `text` between two inclusive offsets that may count from the end.
fn slice(text: &[u8], start: i64, end: i64) -> &[u8] {
    if start < 0 && end < 0 && start > end {
        return b"";
    }
    let len = i64::try_from(text.len()).unwrap_or(i64::MAX);
    let from_start = |offset: i64| if offset < 0 { offset.saturating_add(len).max(0) } else { offset };
    let (start, end) = (from_start(start), from_start(end).min(len - 1));
    if start > end {
        return b"";
    }
    text.get(start as usize..=end as usize).unwrap_or_default()
}

/// Whether a string of `len` bytes may exist.
pub(super) fn check_length(len: Option<usize>) -> Result<(), Fault> {
    match len {
        Some(len) if len <= STRING_BYTES_MAX => Ok(()),
        _ => Err(text::STRING_TOO_LONG.into()),
    }
}

fn setrange(call: &mut Call<'_, '_>) -> Answer {
    let (key, value) = (call.arg(1), call.arg(3));
    let offset = call.integer(2)?;
    let Ok(offset) = usize::try_from(offset) else { return Err(text::OFFSET_OUT_OF_RANGE.into()) };
    let found = call.find_string(key)?;
    let old = found.and_then(|found| call.keyspace.text(found)).map_or(0, Element::len);
    if value.is_empty() {
        return call.reply_count(old);
    }
    let end = offset.checked_add(value.len());
    check_length(end)?;
    let end = offset + value.len();
    let write = |text: &mut Vec<u8>| {
        grow(text, end);
        text[offset..end].copy_from_slice(value);
        Edited::change(()).named(events::SETRANGE)
    };
    call.edit_or_create(key, write)?;
    call.reply_count(old.max(end))
}

impl Call<'_, '_> {
    /// Gives a key a string as `SET` does.
    #[inline]
    pub(super) fn set_string(&mut self, key: &[u8], value: &[u8], expiry: Expiry) {
        self.keyspace.set_text(self.at, key, value, expiry, Form::Smallest);
        self.notify(events::SET, key);
        if let Expiry::At(_) = expiry {
            self.notify(events::EXPIRE, key);
        }
    }

    /// Changes the string at `key`, which starts empty if there is none.
    pub(super) fn edit_or_create<R>(
        &mut self,
        key: &[u8],
        edit: impl FnOnce(&mut Vec<u8>) -> Edited<R>,
    ) -> Result<R, Fault> {
        if let Some(found) = self.find_string(key)? {
            return Ok(self.keyspace.edit_text(self.at, key, found, edit));
        }
        let mut text = Vec::new();
        let edited = edit(&mut text);
        self.keyspace.set_edited(self.at, key, text);
        if let Some(event) = edited.event() {
            self.notify(event, key);
        }
        Ok(edited.said())
    }
}

fn append(call: &mut Call<'_, '_>) -> Answer {
    let (key, value) = (call.arg(1), call.arg(2));
    let Some(found) = call.find_string(key)? else {
        call.keyspace.set_text(call.at, key, value, Expiry::Never, Form::Smallest);
        call.notify(events::APPEND, key);
        return call.reply_count(value.len());
    };
    let len = call.keyspace.text(found).map_or(0, Element::len).checked_add(value.len());
    check_length(len)?;
    call.keyspace.edit_text(call.at, key, found, |text| {
        text.extend_from_slice(value);
        Edited::change(()).named(events::APPEND)
    });
    call.reply_count(len.unwrap_or(0))
}

fn decrby(call: &mut Call<'_, '_>) -> Answer {
    let amount = call.integer(2)?;
    let negated = amount.checked_neg().ok_or(text::DECREMENT_OVERFLOW)?;
    add(call, negated)
}

/// Adds to the integer at the first argument.
fn add(call: &mut Call<'_, '_>, amount: i64) -> Answer {
    let key = call.arg(1);
    let Some(found) = call.find_string(key)? else {
        call.keyspace.set_integer(call.at, key, amount, Expiry::Never);
        call.notify(events::INCRBY, key);
        return call.reply_integer(amount);
    };
    let (old, is_integer) = match call.keyspace.text(found) {
        Some(Element::Integer(old)) => (Some(old), true),
        Some(Element::Bytes(bytes)) => (integer::parse(bytes), false),
        None => (None, false),
    };
    let sum = old.ok_or(text::NOT_AN_INTEGER)?.checked_add(amount).ok_or(text::OVERFLOW)?;
    if is_integer {
        call.keyspace.edit_integer(call.at.database, found, sum);
    } else {
        call.keyspace.set_integer(call.at, key, sum, Expiry::Keep);
    }
    call.notify(events::INCRBY, key);
    call.reply_integer(sum)
}

fn incrbyfloat(call: &mut Call<'_, '_>) -> Answer {
    let key = call.arg(1);
    let found = call.find_string(key)?;
    let old = match found.and_then(|found| call.keyspace.text(found)) {
        None => LongDouble::from_integer(0),
        Some(Element::Integer(value)) => LongDouble::from_integer(value),
        Some(Element::Bytes(bytes)) => LongDouble::parse(bytes).ok_or(text::NOT_A_FLOAT)?,
    };
    let amount = LongDouble::parse(call.arg(2)).ok_or(text::NOT_A_FLOAT)?;
    let sum = old.checked_add(amount).ok_or(text::INCREMENT_NOT_FINITE)?.to_text();
    call.keyspace.set_text(call.at, key, &sum, Expiry::Keep, Form::Text);
    call.notify(events::INCRBYFLOAT, key);
    call.reply.bulk(&sum);
    Ok(())
}

fn mget(call: &mut Call<'_, '_>) -> Answer {
    call.reply.array(call.args.len() - 1);
    for key in call.args.from(1).iter() {
        match call.keyspace.read_text(call.at, key) {
            Ok(Some(text)) => bulk(call.reply, text),
            Ok(None) | Err(NotAString) => call.reply.null(),
        }
        call.check_reply()?;
    }
    Ok(())
}

/// The keys and values of `MSET`.
fn pairs<'c>(call: &Call<'c, '_>) -> Result<impl Iterator<Item = (&'c [u8], &'c [u8])> + use<'c>, Fault> {
    if call.args.len().is_multiple_of(2) {
        return Err(named(call.row, text::wrong_arity));
    }
    let (keys, values) = (call.args.from(1), call.args.from(2));
    Ok(keys.iter().step_by(2).zip(values.iter().step_by(2)))
}

fn mset(call: &mut Call<'_, '_>) -> Answer {
    for (key, value) in pairs(call)? {
        call.set_string(key, value, Expiry::Never);
    }
    call.reply_ok()
}

fn msetnx(call: &mut Call<'_, '_>) -> Answer {
    for (key, _) in pairs(call)? {
        if call.keyspace.find(call.at, key).is_some() {
            return call.reply_integer(0);
        }
    }
    for (key, value) in pairs(call)? {
        call.set_string(key, value, Expiry::Never);
    }
    call.reply_integer(1)
}

#[cfg(test)]
mod tests {
    use crate::transcript::play;

    #[test]
    fn strings_are_set_and_read() {
        play(
            "GET a -> $-1
             SET a hello -> +OK
             GET a -> $5 hello
             STRLEN a -> :5
             APPEND a -you -> :9
             GETRANGE a -3 -1 -> $3 you
             SETRANGE b 3 x -> :4
             STRLEN b -> :4
             MSET a 1 c 3 -> +OK
             MGET a nothing c -> *3 $1 1 $-1 $1 3
             MSETNX c 4 d 4 -> :0
             GETSET c 5 -> $1 3
             GETDEL c -> $1 5
             GET c -> $-1
             #3
             GET c -> _",
        );
    }

    #[test]
    fn integers_are_counted() {
        play(
            "INCR a -> :1
             INCRBY a 41 -> :42
             DECRBY a 50 -> :-8
             GET a -> $2 -8
             DECRBY a -9223372036854775808 -> -ERR decrement would overflow
             SET a 9223372036854775807 -> +OK
             INCR a -> -ERR increment or decrement would overflow
             SET a 1.5 -> +OK
             INCR a -> -ERR value is not an integer or out of range
             INCRBYFLOAT a 0.1 -> $3 1.6
             INCRBYFLOAT a x -> -ERR value is not a valid float",
        );
    }

    #[test]
    fn set_has_options() {
        play(
            "SET a 1 XX -> $-1
             SET a 1 NX GET -> $-1
             SET a 2 NX -> $-1
             SET a 2 GET -> $1 1
             SET a 2 NX XX -> -ERR syntax error
             SET a 2 EX 0 -> -ERR invalid expire time in 'set' command
             SET a 2 EX x -> -ERR value is not an integer or out of range
             SET a 2 EX 10 PX 10 -> -ERR syntax error
             SET a 2 PX 10 -> +OK
             SET a 3 KEEPTTL -> +OK
             @10
             GET a -> $1 3
             @1
             GET a -> $-1
             SETEX a 1 x -> +OK
             GETEX a PERSIST -> $1 x
             @5000
             GET a -> $1 x",
        );
    }

    #[test]
    fn strings_are_set_and_deleted_by_what_they_were() {
        play(
            "SET a 2 IFEQ 1 -> $-1
             SET a 2 IFNE 1 -> +OK
             SET a 3 IFNE 2 -> $-1
             SET a 3 IFEQ 2 EX 10 -> +OK
             TTL a -> :10
             SET a 4 IFEQ 2 GET -> $1 3
             SET a 4 IFEQ 3 GET KEEPTTL -> $1 3
             GET a -> $1 4
             TTL a -> :10
             SET a 5 IFEQ 4 NX -> -ERR syntax error
             SET a 5 XX IFEQ 4 -> -ERR syntax error
             SET a 5 IFEQ 4 IFEQ 4 -> -ERR syntax error
             SET a 5 IFEQ -> -ERR syntax error
             GETEX a IFEQ 4 -> -ERR syntax error
             RPUSH l x -> :1
             SET l 5 IFEQ x -> -WRONGTYPE Operation against a key holding the wrong kind of value
             DELIFEQ none x -> :0
             DELIFEQ a 5 -> :0
             DELIFEQ a 4 -> :1
             DELIFEQ l x -> -WRONGTYPE Operation against a key holding the wrong kind of value
             SET a abc -> +OK
             DELEX a IFEQ abd -> :0
             DELEX a IFNE abc -> :0
             DELEX a NOPE abc -> -ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE
             DELEX a IFEQ -> -ERR wrong number of arguments for 'delex' command
             DELEX a IFNE abd -> :1
             DELEX a IFNE abd -> :0
             DELEX l IFEQ x -> -ERR Key should be of string type if conditions are specified
             DELEX l -> :1
             DELEX l -> :0",
        );
    }

    #[test]
    fn strings_are_compared_by_digests() {
        play(
            "DIGEST a -> $-1
             SET a hello -> +OK
             DIGEST a -> $16 9555e8555c62dcfd
             SET a world IFDEQ 9555e8555c62dcfe -> $-1
             SET a world IFDNE 9555e8555c62dcfd -> $-1
             SET a 12 IFDEQ 9555E8555C62DCFD -> +OK
             SET b 1 IFDEQ x -> $-1
             SET b 1 IFDNE x -> +OK
             SET b 1 IFDNE x -> -ERR must be exactly 16 hexadecimal characters
             DELEX a IFDEQ zzzzzzzzzzzzzzzz -> :0
             DELEX a IFDEQ zzz -> -ERR must be exactly 16 hexadecimal characters
             DELEX a IFDNE zzzzzzzzzzzzzzzz -> :1
             DELEX a IFDEQ zzz -> :0
             RPUSH l x -> :1
             DIGEST l -> -WRONGTYPE Operation against a key holding the wrong kind of value",
        );
    }

    #[test]
    fn several_strings_are_set_with_one_deadline() {
        play(
            "MSETEX 2 a 1 b 2 EX 10 -> :1
             TTL b -> :10
             MSETEX 2 b 3 c 3 NX -> :0
             MSETEX 2 b 3 c 3 XX -> :0
             EXISTS c -> :0
             MSETEX 2 a 4 b 5 XX KEEPTTL -> :1
             MGET a b -> *2 $1 4 $1 5
             TTL a -> :10
             MSETEX 1 a 6 -> :1
             TTL a -> :-1
             MSETEX 2 d 1 d 2 NX PXAT 1 -> :1
             GET d -> $-1
             MSETEX 0 a 1 -> -ERR invalid numkeys value
             MSETEX x a 1 -> -ERR invalid numkeys value
             MSETEX 2147483648 a 1 -> -ERR invalid numkeys value
             MSETEX 2147483647 a 1 -> -ERR wrong number of key-value pairs
             MSETEX 2 a 1 b -> -ERR wrong number of key-value pairs
             MSETEX 1 a 1 b 2 -> -ERR syntax error
             MSETEX 1 a 1 NX XX -> -ERR syntax error
             MSETEX 1 a 1 GET -> -ERR syntax error
             MSETEX 1 a 1 IFEQ 6 -> -ERR syntax error
             MSETEX 1 a 1 EX 0 -> -ERR invalid expire time in 'msetex' command
             MSETEX 1 a 1 EX 5 KEEPTTL -> -ERR syntax error
             RPUSH l x -> :1
             MSETEX 1 l 1 XX -> :1
             GET l -> $1 1",
        );
    }

    #[test]
    fn lcs_tells_what_two_strings_share() {
        play(
            "MSET a ohmytext b mynewtext -> +OK
             LCS a b -> $6 mytext
             LCS a b LEN -> :6
             LCS a b IDX MINMATCHLEN 4 WITHMATCHLEN -> *4 $7 matches *1 *3 *2 :4 :7 *2 :5 :8 :4 $3 len :6",
        );
    }
}
