//! `OBJECT`: how a value is kept.

use super::super::{Answer, Call};
use crate::keyspace::{Found, Value};
use crate::limits::SHARED_INTEGERS;

const NO_FREQUENCIES: &str = "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that \
     when switching between policies at runtime LRU and LFU data will take some time to adjust.";

const NO_IDLE_TIMES: &str = "ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that when switching \
     between policies at runtime LRU and LFU data will take some time to adjust.";

/// What `OBJECT HELP` says.
const HELP: &[&str] = &[
    "OBJECT <subcommand> [<argument> ...]. Subcommands are:",
    "ENCODING <key>",
    "    Tell in which encoding the value of the key is kept.",
    "FREQ <key>",
    "    Tell how often the key was used lately, on a logarithmic scale.",
    "IDLETIME <key>",
    "    Tell for how many seconds the key was not used.",
    "REFCOUNT <key>",
    "    Tell how many times the value of the key is referred to.",
    "HELP",
    "    Print this help.",
];

impl Call<'_, '_> {
    /// The key at argument 2, not counted as used; replies null if there is none.
    fn object_or_null(&mut self) -> Option<Found> {
        let found = self.keyspace.peek(self.at, self.arg(2));
        if found.is_none() {
            self.reply.null();
        }
        found
    }
}

pub(super) fn encoding(call: &mut Call<'_, '_>) -> Answer {
    let Some(found) = call.object_or_null() else { return Ok(()) };
    let name = match call.keyspace.value(found) {
        Value::Integer(_) => "int",
        Value::Short(_) => "embstr",
        Value::Raw(_) | Value::Long(_) => "raw",
        Value::Object(..) => call.keyspace.object(found).map_or("", |object| object.encoding()),
    };
    call.reply.bulk(name.as_bytes());
    Ok(())
}

pub(super) fn refcount(call: &mut Call<'_, '_>) -> Answer {
    let Some(found) = call.object_or_null() else { return Ok(()) };
    match call.keyspace.value(found) {
        Value::Integer(0..SHARED_INTEGERS) if !call.keyspace.keeps_values_apart() => {
            call.reply_integer(i32::MAX.into())
        }
        _ => call.reply_integer(1),
    }
}

pub(super) fn idletime(call: &mut Call<'_, '_>) -> Answer {
    let Some(found) = call.object_or_null() else { return Ok(()) };
    if call.keyspace.counts_uses() {
        return Err(NO_IDLE_TIMES.into());
    }
    call.reply_integer(call.keyspace.idle_seconds(found, call.at.now).into())
}

pub(super) fn freq(call: &mut Call<'_, '_>) -> Answer {
    let Some(found) = call.object_or_null() else { return Ok(()) };
    if !call.keyspace.counts_uses() {
        return Err(NO_FREQUENCIES.into());
    }
    call.reply_integer(call.keyspace.frequency(found, call.at.now).into())
}

pub(super) fn help(call: &mut Call<'_, '_>) -> Answer {
    call.reply.array(HELP.len());
    HELP.iter().for_each(|line| call.reply.simple(line));
    Ok(())
}
