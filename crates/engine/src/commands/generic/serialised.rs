//! `DUMP` and `RESTORE`: serialises a value, and creates a key from a serialised value.

use respool_command::text;

use super::super::{Answer, Call, Fault};
use crate::keyspace::{Expiry, Form, events};
use crate::limits::STRING_BYTES_MAX;
use crate::rdb::{self, Loaded, Reader, Stored, Writer, payload};

const IDLE_NEGATIVE: &str = "ERR Invalid IDLETIME value, must be >= 0";
const FREQUENCY_OUT_OF_RANGE: &str = "ERR Invalid FREQ value, must be >= 0 and <= 255";
const TTL_NEGATIVE: &str = "ERR Invalid TTL value, must be >= 0";
const NOT_A_PAYLOAD: &str = "ERR DUMP payload version or checksum are wrong";
const BROKEN: &str = "ERR Bad data format";

pub(super) fn dump(call: &mut Call<'_, '_>) -> Answer {
    let Some(found) = call.keyspace.read(call.at, call.arg(1)) else {
        call.reply.null();
        return Ok(());
    };
    let keyspace = &*call.keyspace;
    let mut writer = Writer::new();
    let stored = keyspace.object(found).map(Stored::Object).or_else(|| keyspace.text(found).map(Stored::Text));
    if let Some(stored) = stored {
        rdb::write(&mut writer, stored, &keyspace.heap);
    }
    call.reply.bulk(&payload::seal(writer.finish()));
    call.check_reply()
}

/// The options of `RESTORE`.
#[derive(Default)]
struct Options {
    replaces: bool,
    is_absolute: bool,
    idle_seconds: Option<i64>,
    frequency: Option<u8>,
}

fn options(call: &Call<'_, '_>) -> Result<Options, Fault> {
    let mut options = Options::default();
    let mut index = 4;
    while index < call.args.len() {
        let has_value = index + 1 < call.args.len();
        match () {
            () if call.is_word(index, "REPLACE") => options.replaces = true,
            () if call.is_word(index, "ABSTTL") => options.is_absolute = true,
            () if call.is_word(index, "IDLETIME") && has_value && options.frequency.is_none() => {
                index += 1;
                let seconds = call.integer(index)?;
                if seconds < 0 {
                    return Err(IDLE_NEGATIVE.into());
                }
                options.idle_seconds = Some(seconds);
            }
            () if call.is_word(index, "FREQ") && has_value && options.idle_seconds.is_none() => {
                index += 1;
                let frequency = u8::try_from(call.integer(index)?).map_err(|_| FREQUENCY_OUT_OF_RANGE)?;
                options.frequency = Some(frequency);
            }
            () => return Err(text::SYNTAX.into()),
        }
        index += 1;
    }
    Ok(options)
}

pub(crate) fn restore(call: &mut Call<'_, '_>) -> Answer {
    let options = options(call)?;
    let key = call.arg(1);
    if !options.replaces && call.keyspace.find(call.at, key).is_some() {
        return Err(text::BUSYKEY.into());
    }
    let ttl = call.integer(2)?;
    if ttl < 0 {
        return Err(TTL_NEGATIVE.into());
    }
    let skips_checksum = call.keyspace.debugging.skips_checksums;
    let value = payload::open_with(call.arg(3), skips_checksum).ok_or(NOT_A_PAYLOAD)?;
    let loaded = rdb::read(&mut Reader::new(value), &mut call.keyspace.heap).map_err(|rdb::Broken| BROKEN)?;
    if matches!(&loaded, Loaded::Text(text) if text.len() > STRING_BYTES_MAX) {
        return Err(BROKEN.into());
    }
    let replaced = call.keyspace.peek(call.at, key);
    if let Some(old) = replaced {
        call.keyspace.remove(call.at.database, old);
    }
    let expiry = match ttl {
        0 => Expiry::Never,
        _ if options.is_absolute => Expiry::At(ttl),
        // A time that overflows 64 bits wraps to a negative one: the key expires at once.
        _ => Expiry::At(ttl.wrapping_add(call.at.now)),
    };
    if matches!(expiry, Expiry::At(moment) if moment <= call.at.now) {
        if let Loaded::Object(object) = loaded {
            call.keyspace.discard(object);
        }
        if replaced.is_some() {
            call.keyspace.counters.changes += 1;
            call.notify(events::DEL, key);
        }
        return call.reply_ok();
    }
    match loaded {
        Loaded::Text(text) => call.keyspace.set_text(call.at, key, &text, expiry, Form::Smallest),
        Loaded::Object(object) => call.keyspace.set_object(call.at, key, object, expiry),
    }
    call.notify(events::RESTORE, key);
    // As in Redis, of the two only what the policy goes by is kept.
    match (options.idle_seconds, options.frequency) {
        (Some(seconds), _) if !call.keyspace.counts_uses() => call.keyspace.set_idle(call.at, key, seconds),
        (_, Some(frequency)) if call.keyspace.counts_uses() => call.keyspace.set_frequency(call.at, key, frequency),
        _ => {}
    }
    call.reply_ok()
}

#[cfg(test)]
mod tests {
    use crate::transcript::Script;

    fn dump(script: &mut Script, key: &[u8]) -> Vec<u8> {
        let reply = script.send(&[b"DUMP", key]);
        let head = reply.iter().position(|byte| *byte == b'\n').expect("a bulk string");
        reply[head + 1..reply.len() - 2].to_vec()
    }

    #[test]
    fn a_value_is_carried_to_another_key() {
        let mut script = Script::new();
        script.say("ZADD z 1 a 2.5 b");
        let value = dump(&mut script, b"z");
        let mut restore = |words: &[&[u8]]| {
            let head: [&[u8]; 2] = [b"RESTORE", b"copy"];
            String::from_utf8(script.send(&[&head, words].concat())).expect("a text")
        };
        assert_eq!(restore(&[b"0", &value]), "+OK\r\n");
        assert_eq!(restore(&[b"0", &value]), "-BUSYKEY Target key name already exists.\r\n");
        assert_eq!(restore(&[b"-1", &value, b"REPLACE"]), "-ERR Invalid TTL value, must be >= 0\r\n");
        assert_eq!(restore(&[b"500", &value, b"REPLACE", b"IDLETIME", b"90"]), "+OK\r\n");
        assert_eq!(restore(&[b"5", b"x", b"REPLACE"]), "-ERR DUMP payload version or checksum are wrong\r\n");
        assert_eq!(script.say("OBJECT IDLETIME copy"), ":90");
        assert_eq!(script.say("PTTL copy"), ":500");
        assert_eq!(script.say("ZSCORE copy b"), "$3 2.5");
        assert_eq!(script.send(&[b"RESTORE", b"copy", b"1", &value, b"REPLACE", b"ABSTTL"]), b"+OK\r\n");
        assert_eq!(script.say("EXISTS copy"), ":0");
        assert_eq!(script.say("DUMP none"), "$-1");
    }
}
