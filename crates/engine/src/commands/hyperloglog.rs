//! `PFADD` and its kin: strings that count distinct elements.

use respool_command::HyperloglogCommand;

use super::{Answer, Call, Fault};
use crate::keyspace::{Edited, Found, events};
use crate::values::hyperloglog::{self, Corrupted, Registers};

const NOT_ONE: &str = "WRONGTYPE Key is not a valid HyperLogLog string value.";
const CORRUPTED: &str = "INVALIDOBJ Corrupted HLL object detected";
const NO_KEY: &str = "ERR The specified key does not exist";
const NOT_SPARSE: &str = "ERR HLL encoding is not sparse";

/// Elements that `PFSELFTEST` adds.
const TESTED_ELEMENTS: u32 = 1_000;
/// The relative error that the self test accepts: more than six standard errors.
const TESTED_ERROR: f64 = 0.05;

impl From<Corrupted> for Fault {
    fn from(_: Corrupted) -> Self {
        CORRUPTED.into()
    }
}

/// Runs one command of the group.
pub(super) fn run(command: HyperloglogCommand, call: &mut Call<'_, '_>) -> Answer {
    match command {
        HyperloglogCommand::Pfadd => pfadd(call),
        HyperloglogCommand::Pfcount => pfcount(call),
        HyperloglogCommand::Pfdebug => pfdebug(call),
        HyperloglogCommand::Pfmerge => pfmerge(call),
        HyperloglogCommand::Pfselftest => pfselftest(call),
    }
}

impl Call<'_, '_> {
    fn expect_counter(&self, found: Option<Found>) -> Result<Option<Found>, Fault> {
        let Some(found) = self.expect_string(found)? else { return Ok(None) };
        let is_valid = self.keyspace.text(found).is_some_and(|text| text.read(hyperloglog::is_valid));
        if is_valid { Ok(Some(found)) } else { Err(NOT_ONE.into()) }
    }

    /// Finds the HyperLogLog at `key` for reading.
    fn read_counter(&mut self, key: &[u8]) -> Result<Option<Found>, Fault> {
        let found = self.keyspace.read(self.at, key);
        self.expect_counter(found)
    }

    /// Finds the HyperLogLog at `key` for writing.
    fn find_counter(&mut self, key: &[u8]) -> Result<Option<Found>, Fault> {
        let found = self.keyspace.find(self.at, key);
        self.expect_counter(found)
    }
}

fn pfadd(call: &mut Call<'_, '_>) -> Answer {
    let key = call.arg(1);
    let elements = call.args.from(2);
    let bytes_max = call.keyspace.heap.encodings.hyperloglog_sparse_bytes_max;
    let add_all = |text: &mut Vec<u8>, is_new: bool| {
        let mut is_changed = is_new;
        let mut said = Ok(());
        for element in elements.iter() {
            match hyperloglog::add(text, element, bytes_max) {
                Ok(is_raised) => is_changed |= is_raised,
                Err(corrupted) => {
                    said = Err(corrupted);
                    break;
                }
            }
        }
        if is_changed {
            hyperloglog::forget_count(text);
        }
        Edited::when(is_changed, said.map(|()| is_changed)).named(events::PFADD)
    };
    let is_changed = match call.find_counter(key)? {
        Some(found) => call.keyspace.edit_text(call.at, key, found, |text| add_all(text, false))?,
        None => {
            let mut fresh = hyperloglog::new();
            let is_changed = add_all(&mut fresh, true).said()?;
            call.keyspace.set_edited(call.at, key, fresh);
            call.notify(events::PFADD, key);
            is_changed
        }
    };
    call.reply_integer(is_changed.into())
}

/// The union of all these keys, and whether one of them is dense.
fn union(call: &mut Call<'_, '_>, first: usize) -> Result<(Registers, bool), Fault> {
    let (mut union, mut is_dense) = (Registers::new(), false);
    for key in call.args.from(first).iter() {
        let Some(found) = call.read_counter(key)? else { continue };
        let Some(text) = call.keyspace.text(found) else { continue };
        text.read(|text| {
            is_dense |= hyperloglog::is_dense(text);
            union.merge(text)
        })?;
    }
    Ok((union, is_dense))
}

fn pfcount(call: &mut Call<'_, '_>) -> Answer {
    if call.args.len() > 2 {
        let (union, _) = union(call, 1)?;
        return call.reply_integer(union.count() as i64);
    }
    let key = call.arg(1);
    let Some(found) = call.read_counter(key)? else { return call.reply_integer(0) };
    // A count that is computed is cached in the string, which is a write.
    let count = call.keyspace.edit_text(call.at, key, found, |text| {
        if let Some(count) = hyperloglog::kept_count(text) {
            return Edited::when(false, Ok(count));
        }
        Edited::attempt(|| {
            let count = hyperloglog::count(text)?;
            hyperloglog::keep_count(text, count);
            Ok::<_, Corrupted>(count)
        })
    })?;
    call.reply_integer(count as i64)
}

fn pfmerge(call: &mut Call<'_, '_>) -> Answer {
    let key = call.arg(1);
    let (union, is_dense) = union(call, 1)?;
    let bytes_max = call.keyspace.heap.encodings.hyperloglog_sparse_bytes_max;
    let merge = |text: &mut Vec<u8>| {
        Edited::attempt(|| {
            if is_dense {
                hyperloglog::make_dense(text)?;
            }
            for (index, value) in union.iter() {
                hyperloglog::raise(text, index, value, bytes_max)?;
            }
            hyperloglog::forget_count(text);
            Ok::<_, Corrupted>(())
        })
        .named(events::PFADD)
    };
    match call.find_counter(key)? {
        Some(found) => call.keyspace.edit_text(call.at, key, found, merge)?,
        None => {
            let mut fresh = hyperloglog::new();
            merge(&mut fresh).said()?;
            call.keyspace.set_edited(call.at, key, fresh);
            call.notify(events::PFADD, key);
        }
    }
    call.reply_ok()
}

fn pfdebug(call: &mut Call<'_, '_>) -> Answer {
    let key = call.arg(2);
    if call.keyspace.find(call.at, key).is_none() {
        return Err(NO_KEY.into());
    }
    let Some(found) = call.find_counter(key)? else { return Err(NO_KEY.into()) };
    // PFDEBUG unshares the string even if it only reads; a change of the encoding is not a change for WATCH.
    let (is_registers, is_dense) = (call.is_word(1, "GETREG"), call.is_word(1, "TODENSE"));
    let (text, was_dense) = call.keyspace.edit_text(call.at, key, found, |text| {
        let was_dense = hyperloglog::is_dense(text);
        let made = if is_registers || is_dense { hyperloglog::make_dense(text) } else { Ok(()) };
        Edited::when(false, made.map(|()| (text.clone(), was_dense)))
    })?;
    match () {
        () if is_registers => {
            let registers = hyperloglog::dense_registers(&text);
            call.reply.array(registers.len());
            registers.for_each(|value| call.reply.integer(i64::from(value)));
            Ok(())
        }
        () if is_dense => call.reply_integer((!was_dense).into()),
        () if call.is_word(1, "DECODE") && hyperloglog::is_dense(&text) => Err(NOT_SPARSE.into()),
        () if call.is_word(1, "DECODE") => {
            call.reply.bulk(hyperloglog::describe(&text).as_bytes());
            Ok(())
        }
        () if call.is_word(1, "ENCODING") => {
            call.reply.simple(if hyperloglog::is_dense(&text) { "dense" } else { "sparse" });
            Ok(())
        }
        () => Err(Fault::Written([b"ERR Unknown PFDEBUG subcommand '", call.arg(1), b"'"].concat())),
    }
}

/// Counts the same elements in both encodings. Takes milliseconds, where Redis's own test takes seconds.
fn pfselftest(call: &mut Call<'_, '_>) -> Answer {
    let (mut sparse, mut dense) = (hyperloglog::new(), hyperloglog::new());
    hyperloglog::make_dense(&mut dense)?;
    for number in 0..TESTED_ELEMENTS {
        let element = number.to_le_bytes();
        let bytes_max = if number < 500 { usize::MAX } else { 0 };
        let is_raised = hyperloglog::add(&mut sparse, &element, bytes_max)?;
        if is_raised != hyperloglog::add(&mut dense, &element, 0)? {
            return Err("ERR TESTFAILED the encodings disagree".into());
        }
        if number.is_power_of_two() && hyperloglog::count(&sparse)? != hyperloglog::count(&dense)? {
            return Err("ERR TESTFAILED the encodings disagree on the count".into());
        }
    }
    let count = hyperloglog::count(&dense)? as f64;
    if (count / f64::from(TESTED_ELEMENTS) - 1.0).abs() > TESTED_ERROR {
        return Err("ERR TESTFAILED the count is too far from the truth".into());
    }
    call.reply_ok()
}

#[cfg(test)]
mod tests {
    use crate::transcript::play;

    #[test]
    fn distinct_elements_are_counted() {
        play(
            "PFADD a -> :1
             PFADD a -> :0
             PFCOUNT a -> :0
             PFADD a x y z x -> :1
             PFADD a x -> :0
             PFCOUNT a -> :3
             PFADD b z w -> :1
             PFCOUNT a b none -> :4
             PFMERGE c a b -> +OK
             PFCOUNT c -> :4
             PFDEBUG ENCODING c -> +sparse
             PFDEBUG TODENSE c -> :1
             PFDEBUG TODENSE c -> :0
             PFCOUNT c -> :4
             STRLEN c -> :12304
             PFSELFTEST -> +OK
             SET s x -> +OK
             PFADD s x -> -WRONGTYPE Key is not a valid HyperLogLog string value.
             PFCOUNT s a -> -WRONGTYPE Key is not a valid HyperLogLog string value.
             RPUSH l x -> :1
             PFMERGE c l -> -WRONGTYPE Operation against a key holding the wrong kind of value",
        );
    }

    #[test]
    fn registers_that_no_hash_has_count_as_in_redis() {
        let mut script = crate::transcript::Script::new();
        let mut text = b"HYLL\0\0\0\0\0\0\0\0\0\0\0\x80".to_vec();
        text.resize(12_304, 0xff);
        script.send(&[b"SET", b"h", &text]);
        assert_eq!(script.say("PFCOUNT h"), ":-9223372036854775808");
        assert_eq!(script.say("PFCOUNT h h"), ":-9223372036854775808");
    }
}
