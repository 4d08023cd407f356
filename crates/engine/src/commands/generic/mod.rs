//! Keys of any type.

mod expire;
mod object;
mod serialised;
mod sort;

use respool_command::{GenericCommand, glob, text};

pub(super) use serialised::restore;

use super::arguments::Moment;
use super::scan::Scanned;
use super::{Answer, Call, Fault, unsupported};
use crate::keyspace::{At, events};
use crate::number::integer;
use crate::store::listpack::Element;

const NO_MIGRATION: &str = "ERR MIGRATE is refused: this server makes no connections to others";
const NO_MIGRATION_IN_SCRIPTS: &str = "ERR MIGRATE is refused in scripts: all clients would wait for the other server";

/// Runs one command of the group.
pub(super) fn run(command: GenericCommand, call: &mut Call<'_, '_>) -> Answer {
    match command {
        GenericCommand::Copy => copy(call),
        GenericCommand::Del | GenericCommand::Unlink => del(call),
        GenericCommand::Dump => serialised::dump(call),
        GenericCommand::Exists => exists(call),
        GenericCommand::Touch => touch(call),
        GenericCommand::Expire => expire::expire(call, Moment::SECONDS_FROM_NOW),
        GenericCommand::Expireat => expire::expire(call, Moment::SECONDS),
        GenericCommand::Expiretime => expire::time(call, Moment::SECONDS),
        GenericCommand::Keys => keys(call),
        GenericCommand::Move => move_key(call),
        GenericCommand::ObjectEncoding => object::encoding(call),
        GenericCommand::ObjectFreq => object::freq(call),
        GenericCommand::ObjectHelp => object::help(call),
        GenericCommand::ObjectIdletime => object::idletime(call),
        GenericCommand::ObjectRefcount => object::refcount(call),
        GenericCommand::Persist => expire::persist(call),
        GenericCommand::Pexpire => expire::expire(call, Moment::MILLIS_FROM_NOW),
        GenericCommand::Pexpireat => expire::expire(call, Moment::MILLIS),
        GenericCommand::Pexpiretime => expire::time(call, Moment::MILLIS),
        GenericCommand::Pttl => expire::time(call, Moment::MILLIS_FROM_NOW),
        GenericCommand::Randomkey => randomkey(call),
        GenericCommand::Rename => rename(call, false),
        GenericCommand::Renamenx => rename(call, true),
        GenericCommand::Restore => serialised::restore(call),
        GenericCommand::Scan => scan(call),
        GenericCommand::Sort => sort::sort(call, true),
        GenericCommand::SortRo => sort::sort(call, false),
        GenericCommand::Ttl => expire::time(call, Moment::SECONDS_FROM_NOW),
        GenericCommand::Type => key_type(call),
        // What has the engine moves keys; a script that calls this has nothing else to do it.
        GenericCommand::Migrate if call.session.is_in_script => Err(NO_MIGRATION_IN_SCRIPTS.into()),
        GenericCommand::Migrate => Err(NO_MIGRATION.into()),
        // A container is never executed.
        GenericCommand::Object => Err(unsupported(call.row)),
        GenericCommand::Wait => super::server::wait(call),
    }
}

fn del(call: &mut Call<'_, '_>) -> Answer {
    let mut removed = 0;
    for key in call.args.from(1).iter() {
        removed += i64::from(call.delete(key));
    }
    call.reply_integer(removed)
}

/// It is no use of a key.
fn exists(call: &mut Call<'_, '_>) -> Answer {
    let mut found = 0;
    for key in call.args.from(1).iter() {
        found += i64::from(call.keyspace.inspect(call.at, key).is_some());
    }
    call.reply_integer(found)
}

/// It is nothing but a use of keys, so also where others leave no trace.
fn touch(call: &mut Call<'_, '_>) -> Answer {
    let was_spared = call.keyspace.spare_uses(false);
    let mut found = 0;
    for key in call.args.from(1).iter() {
        found += i64::from(call.keyspace.read(call.at, key).is_some());
    }
    call.keyspace.spare_uses(was_spared);
    call.reply_integer(found)
}

fn key_type(call: &mut Call<'_, '_>) -> Answer {
    let found = call.keyspace.inspect(call.at, call.arg(1));
    call.reply.simple(found.map_or("none", |found| call.keyspace.kind(found).type_name()));
    Ok(())
}

fn keys(call: &mut Call<'_, '_>) -> Answer {
    let pattern = call.arg(1);
    let mut found = Vec::new();
    call.keyspace.each_key(call.at, |key| {
        if pattern == b"*" || glob::matches(pattern, key) {
            found.push(key.to_vec());
        }
    });
    call.reply.array(found.len());
    found.iter().for_each(|key| call.reply.bulk(key));
    Ok(())
}

fn scan(call: &mut Call<'_, '_>) -> Answer {
    let cursor = call.cursor(1)?;
    let wanted = call.wanted(2, Scanned::Keys)?;
    let mut found = Vec::new();
    let next = call.keyspace.scan(call.at, cursor, wanted.count, |key, kind| {
        let is_of_type = wanted.type_name.is_none_or(|name| name.eq_ignore_ascii_case(kind.type_name().as_bytes()));
        if is_of_type && wanted.lets(Element::Bytes(key)) {
            found.push(key.to_vec());
        }
    });
    call.reply_scan(next, &found)
}

fn randomkey(call: &mut Call<'_, '_>) -> Answer {
    match call.keyspace.random_key(call.at) {
        Some(key) => call.reply.bulk(&key),
        None => call.reply.null(),
    }
    Ok(())
}

fn rename(call: &mut Call<'_, '_>, only_if_absent: bool) -> Answer {
    let (from, to) = (call.arg(1), call.arg(2));
    if call.keyspace.find(call.at, from).is_none() {
        return Err(text::NO_SUCH_KEY.into());
    }
    let is_taken = call.keyspace.find(call.at, to).is_some();
    let moves = from != to && !(only_if_absent && is_taken);
    if moves {
        if let Some(taken) = call.keyspace.peek(call.at, to) {
            call.keyspace.remove(call.at.database, taken);
        }
        if let Some(found) = call.keyspace.peek(call.at, from) {
            call.keyspace.rename(call.at, found, call.at, to);
        }
        call.notify(events::RENAME_FROM, from);
        call.notify(events::RENAME_TO, to);
    }
    if only_if_absent { call.reply_integer(moves.into()) } else { call.reply_ok() }
}

impl Call<'_, '_> {
    /// The number of a database at `index`.
    fn database(&self, index: usize) -> Result<usize, Fault> {
        let number = integer::parse(self.arg(index)).ok_or(text::NOT_AN_INTEGER)?;
        if i32::try_from(number).is_err() {
            return Err(super::arguments::NOT_IN_INT_RANGE.into());
        }
        usize::try_from(number)
            .ok()
            .filter(|number| *number < self.keyspace.databases.len())
            .ok_or_else(|| text::DB_OUT_OF_RANGE.into())
    }
}

fn move_key(call: &mut Call<'_, '_>) -> Answer {
    let key = call.arg(1);
    let to = At { database: call.database(2)?, ..call.at };
    if to.database == call.at.database {
        return Err(text::SAME_OBJECT.into());
    }
    if call.keyspace.find(call.at, key).is_none() {
        return call.reply_integer(0);
    }
    let is_taken = call.keyspace.find(to, key).is_some();
    match call.keyspace.peek(call.at, key).filter(|_| !is_taken) {
        Some(found) => {
            call.keyspace.rename(call.at, found, to, key);
            call.notify(events::MOVE_FROM, key);
            call.keyspace.notify(to.database, events::MOVE_TO, key);
            call.reply_integer(1)
        }
        None => call.reply_integer(0),
    }
}

fn copy(call: &mut Call<'_, '_>) -> Answer {
    let (from, key) = (call.arg(1), call.arg(2));
    let mut to = call.at;
    let mut replaces = false;
    let mut index = 3;
    while index < call.args.len() {
        if call.is_word(index, "REPLACE") {
            replaces = true;
        } else if call.is_word(index, "DB") && index + 1 < call.args.len() {
            index += 1;
            to.database = call.database(index)?;
        } else {
            return Err(text::SYNTAX.into());
        }
        index += 1;
    }
    if to.database == call.at.database && from == key {
        return Err(text::SAME_OBJECT.into());
    }
    if call.keyspace.read(call.at, from).is_none() {
        return call.reply_integer(0);
    }
    let is_taken = call.keyspace.find(to, key).is_some();
    let is_refused = is_taken && !replaces;
    match call.keyspace.peek(call.at, from).filter(|_| !is_refused) {
        Some(found) => {
            if is_taken {
                // What it takes the place of is deleted first.
                call.keyspace.notify(to.database, events::NEW, key);
            }
            call.keyspace.copy(found, to, key);
            call.keyspace.notify(to.database, events::COPY_TO, key);
            call.reply_integer(1)
        }
        None => call.reply_integer(0),
    }
}

#[cfg(test)]
mod tests {
    use crate::transcript::{Script, play};

    #[test]
    fn keys_come_and_go() {
        play(
            "MSET a 1 b 2 -> +OK
             EXISTS a a b c -> :3
             TYPE a -> +string
             TYPE c -> +none
             DEL a c -> :1
             UNLINK b -> :1
             DBSIZE -> :0
             RANDOMKEY -> $-1
             SET a 1 -> +OK
             RANDOMKEY -> $1 a
             KEYS [a-c]* -> *1 $1 a
             FLUSHDB -> +OK
             KEYS * -> *0",
        );
    }

    #[test]
    fn keys_change_names_and_databases() {
        play(
            "SET a 1 PX 500 -> +OK
             RENAME a b -> +OK
             PTTL b -> :500
             RENAME a b -> -ERR no such key
             RENAMENX b b -> :0
             SET c 2 -> +OK
             RENAMENX b c -> :0
             COPY b c -> :0
             COPY b c REPLACE -> :1
             GET c -> $1 1
             PTTL c -> :500
             MOVE b 1 -> :1
             MOVE b 1 -> :0
             MOVE c 16 -> -ERR DB index is out of range
             SWAPDB 0 1 -> +OK
             KEYS * -> *1 $1 b
             FLUSHALL -> +OK
             DBSIZE -> :0",
        );
    }

    #[test]
    fn deadlines_are_kept() {
        play(
            "TTL a -> :-2
             SET a 1 -> +OK
             TTL a -> :-1
             EXPIRE a 100 XX -> :0
             EXPIRE a 100 NX -> :1
             TTL a -> :100
             EXPIRE a 50 GT -> :0
             EXPIRE a 50 LT -> :1
             PEXPIRETIME a -> :1600000050000
             PERSIST a -> :1
             PERSIST a -> :0
             PEXPIRE a 10 -> :1
             @10
             EXISTS a -> :1
             @1
             EXISTS a -> :0
             SET a 1 -> +OK
             EXPIREAT a 1 -> :1
             EXISTS a -> :0
             SET a 1 -> +OK
             EXPIRE a 9223372036854775 -> -ERR invalid expire time in 'expire' command
             EXPIRE a 1 NX GT -> -ERR NX and XX, GT or LT options at the same time are not compatible",
        );
    }

    #[test]
    fn the_active_cycle_removes_keys_without_a_request() {
        use respool_command::{Execute, Millis};
        let mut script = Script::new();
        for number in 0..10_000 {
            script.say(&format!("SET k{number} v PX {}", 1 + number % 2_000));
            script.say(&format!("SET stays{number} v"));
        }
        assert_eq!(script.engine.keyspace_size(0).expires, 10_000);
        let (mut now, mut turns) = (script.session.now, 0);
        while script.engine.keyspace_size(0).expires > 0 {
            let next = script.engine.tick(now).expect("the engine wants to be called again");
            assert!(next > now && next.0 <= now.0 + 1_000, "the next turn lies ahead, but not far");
            now = next;
            turns += 1;
            assert!(turns < 200, "the cycle comes to an end");
        }
        assert!(now <= Millis(script.session.now.0 + 3_500), "the cycle is prompt");
        let size = script.engine.keyspace_size(0);
        assert_eq!((size.keys, size.expires, script.engine.counters().expired_keys), (10_000, 0, 10_000));
    }

    #[test]
    fn a_random_key_is_found_among_any_number_of_expired_ones() {
        let mut script = Script::new();
        for number in 0..5_000 {
            script.say(&format!("SET k{number} v PX 1"));
        }
        script.say("SET stays v");
        script.session.now.0 += 2;
        assert_eq!(script.say("RANDOMKEY"), "$5 stays");
        script.say("DEL stays");
        assert_eq!((script.say("RANDOMKEY"), script.say("DBSIZE")), ("$-1".to_owned(), ":0".to_owned()));
    }

    #[test]
    fn object_tells_encodings() {
        play(
            "SET a 12 -> +OK
             OBJECT ENCODING a -> $3 int
             OBJECT REFCOUNT a -> :2147483647
             SET a 12x -> +OK
             OBJECT ENCODING a -> $6 embstr
             OBJECT REFCOUNT a -> :1
             APPEND a y -> :4
             OBJECT ENCODING a -> $3 raw
             @3000
             OBJECT IDLETIME a -> :3
             OBJECT ENCODING b -> $-1",
        );
    }

    #[test]
    fn a_scan_sees_every_key() {
        let mut script = Script::new();
        for number in 0..1_000 {
            script.say(&format!("SET k{number} v"));
        }
        let (mut cursor, mut seen) = ("0".to_owned(), std::collections::BTreeSet::new());
        loop {
            let reply = script.say(&format!("SCAN {cursor} COUNT 7 MATCH k*"));
            let words: Vec<&str> = reply.split(' ').collect();
            cursor = words[2].to_owned();
            seen.extend(words[4..].iter().filter(|word| word.starts_with('k')).map(|word| (*word).to_owned()));
            if cursor == "0" {
                break;
            }
        }
        assert_eq!(seen.len(), 1_000);
    }
}
