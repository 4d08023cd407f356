//! `DEBUG`: what shows how values are kept, and switches that tests need. Whether a client may use it the host decides.
//!
//! What would end the server, or what it does not have, is refused with a reason. `RELOAD` is about functions as well, which only the
//! engine knows.

use respool_command::text;
use respool_wire::Encoder;

use super::super::{Answer, Call, Fault};
use crate::keyspace::{Database, Expiry, Form, Found, Value};
use crate::limits;
use crate::number::integer;
use crate::store::table::Table;
use crate::values::{Hash, Object, Set};

const NO_SUCH_KEY: &str = text::NO_SUCH_KEY;
const NO_SLEEP: &str = "ERR this server cannot sleep";
const ENDS_THE_SERVER: &str = "ERR a client may not end the server in this way: see SHUTDOWN";
const NOTHING_SUCH: &str = "ERR the embedded server has nothing that this DEBUG subcommand is about";
const NOT_A_THRESHOLD: &str = "ERR argument must be a memory value bigger than 1 and smaller than 4gb";
const NOT_A_TYPE: &str = "ERR Wrong protocol type name. Please use one of the following: string|integer|double|bignum|null|array|set|map|\
                          attrib|push|verbatim|true|false";
const NOT_IN_RESP2: &str = "ERR RESP2 is not supported by this command";
const NOT_A_TABLE: &str = "ERR The value stored at the specified key is not represented using an hash table";
const NOT_A_LISTPACK: &str = "ERR Not a listpack encoded object.";
const NOT_A_QUICKLIST: &str = "ERR Not a quicklist encoded object.";
const NOT_A_TEXT: &str = "ERR Not an sds encoded string.";
const NO_SUCH_DATABASE: &str = "ERR Out of range database";
const TOO_MANY_KEYS: &str = "ERR DEBUG POPULATE makes no more than so many keys and bytes at once";

/// Redis's limit of a threshold: 4 GB less a megabyte.
const THRESHOLD_MAX: u64 = (1 << 32) - (1 << 20);

/// What `DEBUG HELP` says.
const HELP: &[&str] = &[
    "DEBUG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "CHANGE-REPL-ID",
    "    Accepted and without effect: there is no replication.",
    "CONFIG-REWRITE-FORCE-ALL",
    "    As CONFIG REWRITE, but also write what is as its default is.",
    "DIGEST",
    "    Show a signature of all keys and values.",
    "DIGEST-VALUE <key> [<key> ...]",
    "    Show a signature of the value of each key.",
    "ERROR <string>",
    "    Reply an error with this text.",
    "HTSTATS <dbid>",
    "    Show the sizes of the tables of a database.",
    "HTSTATS-KEY <key>",
    "    Show the sizes of the table that the key's value is kept in.",
    "LEAK <string>",
    "    Accepted and without effect: no memory is lost.",
    "LISTPACK <key>",
    "    Tell whether the key's value is kept as a listpack.",
    "LOADAOF",
    "    The same as RELOAD: there is no append-only file.",
    "LOG <message>",
    "    Accepted and without effect.",
    "OBJECT <key>",
    "    Show how the key's value is kept.",
    "PAUSE-CRON <0|1>",
    "    Stop what is done outside of requests.",
    "POPULATE <count> [<prefix>] [<size>]",
    "    Create so many string keys, named key:<number> or by the prefix.",
    "PROTOCOL <type>",
    "    Reply a value of this type: string, integer, double, bignum, null, array, set, map, attrib, push, verbatim, true, false.",
    "QUICKLIST <key> [<0|1>]",
    "    Tell whether the key's value is kept as a quicklist.",
    "QUICKLIST-PACKED-THRESHOLD <size>",
    "    Accepted and without effect: an element that is too large for a node has one of its own.",
    "RELOAD [option ...]",
    "    Serialise every key and function and read them back, in memory. Options: MERGE, NOFLUSH, NOSAVE.",
    "REPLYBUFFER <PEAK-RESET-TIME <NEVER|RESET|time> | RESIZING <0|1>>",
    "    Accepted and without effect: buffers of replies are not kept.",
    "SDSLEN <key>",
    "    Show the lengths of the key and of its string.",
    "SET-ACTIVE-EXPIRE <0|1>",
    "    Have keys expire only when they are asked for, or by themselves, too.",
    "SET-DISABLE-DENY-SCRIPTS <0|1>",
    "    Let scripts use DEBUG.",
    "SET-SKIP-CHECKSUM-VALIDATION <0|1>",
    "    Look at no checksums of RESTORE's payloads.",
    "SLEEP <seconds>",
    "    Stop the server for so long. Decimals allowed.",
    "STRINGMATCH-TEST",
    "    Accepted and without effect.",
    "STRUCTSIZE",
    "    Show the sizes of structures of the store.",
    "HELP",
    "    Print this help.",
];

/// Runs `DEBUG`.
pub(super) fn debug(call: &mut Call<'_, '_>) -> Answer {
    let word = call.arg(1).to_ascii_lowercase();
    match (&*word, call.args.len()) {
        (b"help", 2) => help(call),
        (b"object", 3) => object(call),
        (b"sdslen", 3) => lengths(call),
        (b"digest", 2) => {
            let digest = call.keyspace.digest();
            call.reply.simple(&digest.to_hex());
            Ok(())
        }
        (b"digest-value", _) => digest_value(call),
        (b"htstats", 3) => database_table(call),
        (b"htstats-key", 3) => value_table(call),
        (b"listpack", 3) => is_encoded(call, "listpack", NOT_A_LISTPACK, "Listpack structure printed on stdout"),
        (b"quicklist", 3 | 4) => {
            is_encoded(call, "quicklist", NOT_A_QUICKLIST, "Quicklist structure printed on stdout")
        }
        (b"quicklist-packed-threshold", 3) => threshold(call),
        (b"populate", 3..=5) => populate(call),
        (b"protocol", 3) => protocol(call),
        (b"error", 3) => {
            call.reply.error(call.arg(2));
            Ok(())
        }
        (b"sleep", 3) => sleep(call),
        (b"set-active-expire", 3) => switch(call, |call, on| call.keyspace.debugging.expires_on_access_only = !on),
        (b"pause-cron", 3) => switch(call, |call, on| call.keyspace.debugging.is_paused = on),
        (b"set-disable-deny-scripts", 3) => switch(call, |call, on| call.keyspace.debugging.is_open_to_scripts = on),
        (b"set-skip-checksum-validation", 3) => switch(call, |call, on| call.keyspace.debugging.skips_checksums = on),
        (b"replybuffer", 4) => reply_buffer(call),
        (b"reload", _) | (b"loadaof", 2) => Err(Fault::Reload),
        (b"change-repl-id", 2) | (b"leak" | b"log" | b"aof-flush-sleep", 3) => call.reply_ok(),
        (b"stringmatch-test", 2) => {
            call.reply.simple("Apparently the server did not crash: test passed");
            Ok(())
        }
        (b"structsize", 2) => {
            let (object, list) = (size_of::<Object>(), size_of::<crate::store::quick_list::QuickList>());
            let sizes = format!("bits:{} robj:{object} quicklist:{list} table:{} ", usize::BITS, size_of::<Table>());
            call.reply.bulk(sizes.as_bytes());
            Ok(())
        }
        (b"segfault" | b"panic" | b"assert" | b"oom" | b"restart" | b"crash-and-recover", _) => {
            Err(ENDS_THE_SERVER.into())
        }
        (
            b"client-eviction"
            | b"clusterlink"
            | b"drop-cluster-packet-filter"
            | b"mallctl"
            | b"mallctl-str"
            | b"replicate",
            _,
        ) => Err(NOTHING_SUCH.into()),
        _ => Err(unknown(call)),
    }
}

fn unknown(call: &Call<'_, '_>) -> Fault {
    let mut words = Vec::new();
    text::subcommand_syntax(call.args, &mut words);
    Fault::Written(words)
}

fn help(call: &mut Call<'_, '_>) -> Answer {
    call.reply.array(HELP.len());
    HELP.iter().for_each(|line| call.reply.simple(line));
    Ok(())
}

/// As C's `atoi`, of which only zero matters.
fn is_on(word: &[u8]) -> bool {
    let digits = word.strip_prefix(b"-").or_else(|| word.strip_prefix(b"+")).unwrap_or(word);
    let number = digits.iter().take_while(|byte| byte.is_ascii_digit());
    number.clone().any(|digit| *digit != b'0')
}

fn switch(call: &mut Call<'_, '_>, set: fn(&mut Call<'_, '_>, bool)) -> Answer {
    let on = is_on(call.arg(2));
    set(call, on);
    call.reply_ok()
}

/// The key at argument 2, whose time may have come.
fn key(call: &Call<'_, '_>) -> Result<Found, Fault> {
    call.keyspace.find_expired_too(call.at.database, call.arg(2)).ok_or(Fault::Text(NO_SUCH_KEY))
}

fn encoding(call: &Call<'_, '_>, found: Found) -> &'static str {
    match call.keyspace.value(found) {
        Value::Integer(_) => "int",
        Value::Short(_) => "embstr",
        Value::Raw(_) | Value::Long(_) => "raw",
        Value::Object(..) => call.keyspace.object(found).map_or("", Object::encoding),
    }
}

/// `OBJECT`. Values have no addresses that mean anything to a client.
fn object(call: &mut Call<'_, '_>) -> Answer {
    let found = key(call)?;
    let keyspace = &*call.keyspace;
    let references = match keyspace.value(found) {
        Value::Integer(0..limits::SHARED_INTEGERS) => i32::MAX,
        _ => 1,
    };
    let idle = keyspace.idle_seconds(found, call.at.now);
    let lru = ((call.at.now / 1000) as u32).wrapping_sub(idle) & 0xff_ffff;
    let mut line = format!(
        "Value at:0x0 refcount:{references} encoding:{} serializedlength:{} lru:{lru} lru_seconds_idle:{idle}",
        encoding(call, found),
        keyspace.serialised_bytes(found),
    );
    if let Some(Object::List(list)) = keyspace.object(found) {
        let nodes = list.chunks().len();
        let bytes: usize = list.chunks().map(|chunk| chunk.byte_len()).sum();
        line += &format!(
            " ql_nodes:{nodes} ql_avg_node:{:.2} ql_listpack_max:-2 ql_compressed:0 ql_uncompressed_size:{bytes}",
            list.len() as f64 / nodes.max(1) as f64,
        );
    }
    call.reply.simple(&line);
    Ok(())
}

/// `SDSLEN`. Strings have no room to spare.
fn lengths(call: &mut Call<'_, '_>) -> Answer {
    let found = key(call)?;
    let len = match call.keyspace.value(found) {
        Value::Short(_) | Value::Raw(_) | Value::Long(_) => call.keyspace.text(found).map(|text| text.len()),
        Value::Integer(_) | Value::Object(..) => None,
    };
    let (key, value) = (call.arg(2).len(), len.ok_or(Fault::Text(NOT_A_TEXT))?);
    call.reply.simple(&format!(
        "key_sds_len:{key}, key_sds_avail:0, key_zmalloc: {key}, val_sds_len:{value}, val_sds_avail:0, val_zmalloc: {value}"
    ));
    Ok(())
}

fn digest_value(call: &mut Call<'_, '_>) -> Answer {
    call.reply.array(call.args.len() - 2);
    for key in call.args.from(2).iter() {
        let digest = call.keyspace.digest_of(call.at.database, key);
        call.reply.simple(&digest.to_hex());
    }
    Ok(())
}

/// The sizes of a table, under the names that redis-server has for them where they mean the same.
fn stats(table: &Table, name: &str) -> String {
    if table.len() == 0 {
        return "No stats available for empty dictionaries\n".to_owned();
    }
    let (buckets, overflow) = table.shape();
    format!(
        "Hash table 0 stats ({name}):\n table size: {buckets}\n number of elements: {}\n overflow buckets: {overflow}\n",
        table.len(),
    )
}

fn database_table(call: &mut Call<'_, '_>) -> Answer {
    let number = call.integer(2)?;
    let databases = &call.keyspace.databases;
    let database: &Database =
        usize::try_from(number).ok().and_then(|number| databases.get(number)).ok_or(Fault::Text(NO_SUCH_DATABASE))?;
    let expires = match database.keys.entries.len() {
        0 => "No stats available for empty dictionaries\n".to_owned(),
        len => format!("Hash table 0 stats (main hash table):\n table size: {len}\n number of elements: {len}\n"),
    };
    let lines = format!("[Dictionary HT]\n{}[Expires HT]\n{expires}", stats(&database.table, "main hash table"));
    call.reply.verbatim("txt", lines.as_bytes());
    Ok(())
}

fn value_table(call: &mut Call<'_, '_>) -> Answer {
    let found = call.keyspace.peek(call.at, call.arg(2)).ok_or(Fault::Text(NO_SUCH_KEY))?;
    let table = match call.keyspace.object(found) {
        Some(Object::Hash(Hash::Table(table)) | Object::Set(Set::Table(table))) => Some(&**table),
        Some(Object::Hash(Hash::Volatile(volatile))) => Some(volatile.table()),
        Some(Object::SortedSet(sorted)) => sorted.table(),
        _ => None,
    };
    let lines = stats(table.ok_or(Fault::Text(NOT_A_TABLE))?, "main hash table");
    call.reply.verbatim("txt", lines.as_bytes());
    Ok(())
}

fn is_encoded(call: &mut Call<'_, '_>, wanted: &str, otherwise: &'static str, said: &str) -> Answer {
    let found = call.keyspace.peek(call.at, call.arg(2)).ok_or(Fault::Text(NO_SUCH_KEY))?;
    if encoding(call, found) != wanted {
        return Err(otherwise.into());
    }
    call.reply.simple(said);
    Ok(())
}

/// `QUICKLIST-PACKED-THRESHOLD`: the argument is read as redis-server reads it.
fn threshold(call: &mut Call<'_, '_>) -> Answer {
    let word = call.arg(2).to_ascii_lowercase();
    let digits = word.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let unit: Option<u64> = match &word[digits..] {
        b"" | b"b" => Some(1),
        b"k" => Some(1000),
        b"kb" => Some(1 << 10),
        b"m" => Some(1_000_000),
        b"mb" => Some(1 << 20),
        b"g" => Some(1_000_000_000),
        b"gb" => Some(1 << 30),
        _ => None,
    };
    let number = integer::parse(&word[..digits]).and_then(|number| u64::try_from(number).ok());
    let bytes = number.zip(unit).and_then(|(number, unit)| number.checked_mul(unit));
    match bytes {
        Some(bytes) if bytes <= THRESHOLD_MAX => call.reply_ok(),
        _ => Err(NOT_A_THRESHOLD.into()),
    }
}

fn reply_buffer(call: &mut Call<'_, '_>) -> Answer {
    if call.is_word(2, "PEAK-RESET-TIME") {
        if !call.is_word(3, "NEVER") && !call.is_word(3, "RESET") {
            call.integer(3)?;
        }
    } else if !call.is_word(2, "RESIZING") {
        return Err(unknown(call));
    }
    call.reply_ok()
}

/// `POPULATE count [prefix] [size]`. Keys that are there are left alone.
fn populate(call: &mut Call<'_, '_>) -> Answer {
    let positive = |call: &Call<'_, '_>, index| match call.integer(index)? {
        ..0 => Err(Fault::Text("ERR value is out of range, must be positive")),
        number => Ok(number.unsigned_abs()),
    };
    let count = positive(call, 2)?;
    let size = if call.args.len() == 5 { positive(call, 4)? } else { 0 };
    let prefix = if call.args.len() > 3 { call.arg(3) } else { b"key" };
    let bytes = size.max(1).checked_add(prefix.len() as u64).and_then(|each| count.checked_mul(each));
    if count > limits::POPULATED_KEYS_MAX || bytes.is_none_or(|bytes| bytes > limits::POPULATED_BYTES_MAX) {
        return Err(TOO_MANY_KEYS.into());
    }
    for number in 0..count {
        let key = [prefix, format!(":{number}").as_bytes()].concat();
        if call.keyspace.find(call.at, &key).is_some() {
            continue;
        }
        let mut value = format!("value:{number}").into_bytes();
        if size > 0 {
            value.resize(usize::try_from(size).unwrap_or(usize::MAX), 0);
        }
        call.keyspace.set_text(call.at, &key, &value, Expiry::Never, Form::Smallest);
    }
    call.reply_ok()
}

/// `SLEEP`: the host waits, and with it all that it serves.
fn sleep(call: &mut Call<'_, '_>) -> Answer {
    let seconds = std::str::from_utf8(call.arg(2)).ok().and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
    let Some(sleep) = &mut call.keyspace.debugging.sleep else { return Err(NO_SLEEP.into()) };
    // What is no number, or negative, becomes zero.
    sleep(((seconds * 1e6) as u64).min(limits::SLEEP_US_MAX));
    call.reply_ok()
}

/// `PROTOCOL`: one value of each type that the protocol has.
fn protocol(call: &mut Call<'_, '_>) -> Answer {
    let reply = &mut *call.reply;
    let is_resp3 = reply.protocol() == respool_wire::Protocol::Resp3;
    let integers = |reply: &mut Encoder<'_>| (0..3).for_each(|number| reply.integer(number));
    match &*call.args.at(2).to_ascii_lowercase() {
        b"string" => reply.bulk(b"Hello World"),
        b"integer" => reply.integer(12345),
        b"double" => reply.double(3_141.0 / 1_000.0),
        b"bignum" => reply.big_number(b"1234567999999999999999999999999999999"),
        b"null" => reply.null(),
        b"array" => {
            reply.array(3);
            integers(reply);
        }
        b"set" => {
            reply.set(3);
            integers(reply);
        }
        b"map" => {
            reply.map(3);
            for number in 0..3 {
                reply.integer(number);
                reply.boolean(number == 1);
            }
        }
        b"attrib" => {
            if is_resp3 {
                reply.raw(b"|1\r\n");
                reply.bulk(b"key-popularity");
                reply.array(2);
                reply.bulk(b"key:123");
                reply.integer(90);
            }
            reply.bulk(b"Some real reply following the attribute");
        }
        b"push" if !is_resp3 => return Err(NOT_IN_RESP2.into()),
        b"push" => {
            reply.push(2);
            reply.bulk(b"server-cpu-usage");
            reply.integer(42);
            reply.bulk(b"Some real reply following the push reply");
        }
        b"true" => reply.boolean(true),
        b"false" => reply.boolean(false),
        b"verbatim" => reply.verbatim("txt", b"This is a verbatim\nstring"),
        _ => return Err(NOT_A_TYPE.into()),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use respool_command::{Execute, Millis};

    use crate::transcript::{Script, play};

    #[test]
    fn digests_are_those_of_redis_server() {
        // Redis's own, of an empty server and of keys of every type.
        let mut script = Script::new();
        assert_eq!(script.say("DEBUG DIGEST"), format!("+{}", "0".repeat(40)));
        for line in [
            "SET s hello",
            "SET n 12",
            "RPUSH l a 1 b",
            "SADD i 1 2 3",
            "SADD m a b",
            "ZADD z 1.5 a -2 b 0.1 c",
            "HSET h f v g 1",
            "XADD x 1-1 f v g w",
            "SET e 1",
            "PEXPIREAT e 1900000000000",
        ] {
            script.say(line);
        }
        assert_eq!(script.say("DEBUG DIGEST"), "+435f9ce5939c7040c4618347bf34b7085fb06296");
        assert_eq!(
            script.say("DEBUG DIGEST-VALUE s n l i m z h x e none"),
            concat!(
                "*10 ",
                "+36b23a1456b2dce2c3ed252c456761301dba8060 ",
                "+655ac46b180ad2f61a3cee25f0b1780fa2ec879a ",
                "+d5f44352f6226abea9252dad248ef5de0d964396 ",
                "+2a462a3f51a1db89738ebbeef0c47ce1bbc85246 ",
                "+dd99329063ca0f1f28df2ac68d94b82fd95501c6 ",
                "+a31143a24c44e317b62ffd18bcf4d6337263dfee ",
                "+6679ee22f89ed8001eeb5309d0900265ea56c03a ",
                "+02a6cc6f9620c93c4a87ca6697dad2078434368e ",
                "+5279988c5d1911f474bcbbf2f0a87012d40f8459 ",
                "+0000000000000000000000000000000000000000",
            )
        );
    }

    #[test]
    fn a_reload_leaves_what_there_was() {
        let mut script = Script::new();
        script.say("SET s hello");
        script.say("SET e 1 PX 5000");
        script.say("HSET h f v");
        script.say("HPEXPIRE h 5000 FIELDS 1 f");
        script.say("SADD m a b");
        script.say("XADD x 1-1 f v");
        script.say("XGROUP CREATE x g 0");
        script.say("SET gone 1 PX 5");
        // The fields of one are all past their time before anything has removed them, and some of another's are.
        script.say("HSET past f v g v");
        script.say("HPEXPIRE past 5 FIELDS 2 f g");
        script.say("HSET rest f v g w");
        script.say("HPEXPIRE rest 5 FIELDS 1 f");
        script.session.now = Millis(script.session.now.0 + 100);
        script.session.database = 3;
        script.say("RPUSH l a b c");
        let before = script.say("DEBUG DIGEST-VALUE l");
        for line in ["DEBUG RELOAD", "DEBUG LOADAOF", "DEBUG RELOAD NOFLUSH MERGE"] {
            assert_eq!(script.say(line), "+OK", "{line}");
            assert_eq!(script.say("DEBUG DIGEST-VALUE l"), before);
        }
        script.session.database = 0;
        assert_eq!(script.say("DBSIZE"), ":6");
        assert_eq!(script.say("HGETALL rest"), "*2 $1 g $1 w");
        assert_eq!(script.say("PTTL e"), ":4900");
        assert_eq!(script.say("HPTTL h FIELDS 1 f"), "*1 :4900");
        assert!(script.say("XINFO GROUPS x").contains("last-delivered-id"));
        assert_eq!(script.engine.used_bytes(), script.engine.walked_bytes());
    }

    #[test]
    fn a_reload_can_bring_back_what_was_saved_last() {
        let mut script = Script::new();
        let refused = "-ERR Error trying to load the RDB dump";
        assert_eq!(script.say("DEBUG RELOAD NOSAVE"), refused);
        script.say("SET a 1");
        assert_eq!(script.say("DEBUG RELOAD NOFLUSH"), refused, "a key that is there conflicts");
        assert_eq!(script.say("DEBUG RELOAD"), "+OK");
        script.say("DEL a");
        script.say("SET b 1");
        assert_eq!(script.say("DEBUG RELOAD NOSAVE NOFLUSH MERGE"), "+OK");
        assert_eq!(script.say("MGET a b"), "*2 $1 1 $1 1");
        assert_eq!(script.say("DEBUG RELOAD NOSAVE"), "+OK");
        assert_eq!(script.say("MGET a b"), "*2 $1 1 $-1");
        assert!(script.say("DEBUG RELOAD WHY").starts_with("-ERR DEBUG RELOAD only supports"));
    }

    #[test]
    fn active_expiry_can_be_switched_off() {
        let mut script = Script::new();
        script.say("DEBUG SET-ACTIVE-EXPIRE 0");
        script.say("SET k v PX 5");
        let later = Millis(script.session.now.0 + 2_000);
        script.engine.tick(later);
        script.session.now = later;
        assert_eq!(script.say("DBSIZE"), ":1");
        assert!(script.say("DEBUG OBJECT k").contains("encoding:embstr"), "an expired key that is there is shown");
        assert_eq!(script.say("GET k"), "$-1");
        assert_eq!(script.say("DEBUG OBJECT k"), "-ERR no such key");
        script.say("SET k v PX 5");
        script.say("DEBUG SET-ACTIVE-EXPIRE 1");
        script.engine.tick(Millis(later.0 + 2_000));
        assert_eq!(script.say("DBSIZE"), ":0");
    }

    #[test]
    fn sleep_waits_as_long_as_it_is_told() {
        let mut script = Script::new();
        assert_eq!(script.say("DEBUG SLEEP 1"), "-ERR this server cannot sleep");
        let slept = Arc::new(AtomicU64::new(0));
        let so_far = Arc::clone(&slept);
        script.engine.set_sleep(move |us| {
            so_far.fetch_add(us, Ordering::Relaxed);
        });
        for said in ["0.25", "-1", "x", "nan"] {
            assert_eq!(script.say(&format!("DEBUG SLEEP {said}")), "+OK", "{said}");
        }
        assert_eq!(slept.load(Ordering::Relaxed), 250_000);
    }

    #[test]
    fn values_of_all_types_can_be_asked_for() {
        play(
            "DEBUG PROTOCOL string -> $11 Hello World
             DEBUG PROTOCOL double -> $5 3.141
             DEBUG PROTOCOL null -> $-1
             DEBUG PROTOCOL map -> *6 :0 :0 :1 :1 :2 :0
             DEBUG PROTOCOL attrib -> $39 Some real reply following the attribute
             DEBUG PROTOCOL push -> -ERR RESP2 is not supported by this command
             #3
             DEBUG PROTOCOL double -> ,3.141
             DEBUG PROTOCOL bignum -> (1234567999999999999999999999999999999
             DEBUG PROTOCOL set -> ~3 :0 :1 :2
             DEBUG PROTOCOL map -> %3 :0 #f :1 #t :2 #f
             DEBUG PROTOCOL true -> #t
             DEBUG PROTOCOL attrib -> |1 $14 key-popularity *2 $7 key:123 :90 $39 Some real reply following the attribute
             DEBUG PROTOCOL push -> >2 $16 server-cpu-usage :42 $40 Some real reply following the push reply",
        );
    }

    #[test]
    fn what_is_refused_says_so() {
        let mut script = Script::new();
        assert_eq!(
            script.say("DEBUG nothing"),
            "-ERR unknown subcommand or wrong number of arguments for 'nothing'. Try DEBUG HELP."
        );
        for line in
            ["DEBUG SEGFAULT", "DEBUG PANIC", "DEBUG RESTART 1", "DEBUG MALLCTL a", "DEBUG POPULATE 99999999999"]
        {
            assert!(script.say(line).starts_with("-ERR "), "{line}");
        }
        assert_eq!(script.say("DEBUG ERROR BUSY\\x"), "-BUSY\\x");
        assert_eq!(script.say("DEBUG QUICKLIST-PACKED-THRESHOLD 100b"), "+OK");
        assert!(script.say("DEBUG QUICKLIST-PACKED-THRESHOLD 4gb").starts_with("-ERR argument must be"));
        assert!(script.say("DEBUG QUICKLIST-PACKED-THRESHOLD -1").starts_with("-ERR argument must be"));
    }

    #[test]
    fn populate_leaves_keys_alone_that_are_there() {
        let mut script = Script::new();
        script.say("SET key:1 mine");
        assert_eq!(script.say("DEBUG POPULATE 3"), "+OK");
        assert_eq!(script.say("MGET key:0 key:1 key:2 key:3"), "*4 $7 value:0 $4 mine $7 value:2 $-1");
        assert_eq!(script.say("DEBUG POPULATE 1 p 3"), "+OK");
        assert_eq!(script.say("GET p:0"), "$3 val");
        let long = "p".repeat(1 << 20);
        assert!(script.say(&format!("DEBUG POPULATE 1000000 {long}")).starts_with('-'), "names take room, too");
    }
}
