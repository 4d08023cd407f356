//! Streams: their entries. Groups, reading and `XINFO` have files of their own.

mod claim;
mod deletion;
mod groups;
mod info;
mod read;

use respool_command::words::until_nul;
use respool_command::{StreamCommand, text};
use respool_wire::Encoder;

use super::{Answer, Call, Fault, bulk, named, unsupported};
use crate::keyspace::{Edited, Expiry, Kind, events};
use crate::limits::{
    STREAM_ENTRY_BYTES_MAX, STREAM_NODES_TRIMMED_AT_ONCE, STREAM_TRIMMED_AT_ONCE, STREAM_TRIMMED_AT_ONCE_MAX,
};
use crate::values::stream::id::{self, Said, Seq};
use crate::values::stream::{Entry, Id, NodeLimits, References, Trim, Trimming};
use crate::values::{Held, Stream};

const INVALID_ID: &str = "ERR Invalid stream ID specified as stream command argument";
const INVALID_START: &str = "ERR invalid start ID for the interval";
const INVALID_END: &str = "ERR invalid end ID for the interval";
const ID_ZERO: &str = "ERR The ID specified in XADD must be greater than 0-0";
const ID_NOT_GREATER: &str = "ERR The ID specified in XADD is equal or smaller than the target stream top item";
const IDS_EXHAUSTED: &str = "ERR The stream has exhausted the last possible ID, unable to add more items";
const TOO_LARGE: &str = "ERR Elements are too large to be stored";
const TWO_STRATEGIES: &str = "ERR syntax error, MAXLEN and MINID options at the same time are not compatible";
const NO_STRATEGY: &str = "ERR syntax error, XTRIM must be called with a trimming strategy";
const LIMIT_WITHOUT_STRATEGY: &str = "ERR syntax error, LIMIT cannot be used without specifying a trimming strategy";
const LIMIT_WITHOUT_ABOUT: &str = "ERR syntax error, LIMIT cannot be used without the special ~ option";
const MAXLEN_NEGATIVE: &str = "ERR The MAXLEN argument must be >= 0.";
const LIMIT_NEGATIVE: &str = "ERR The LIMIT argument must be >= 0.";
const ADDED_NEGATIVE: &str = "ERR entries_added must be positive";
const SMALLER_THAN_DELETED: &str = "ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id";
const SMALLER_THAN_TOP: &str = "ERR The ID specified in XSETID is smaller than the target stream top item";
const ADDED_BELOW_LENGTH: &str = "ERR The entries_added specified in XSETID is smaller than the target stream length";

/// Runs one command of the group.
pub(super) fn run(command: StreamCommand, call: &mut Call<'_, '_>) -> Answer {
    match command {
        StreamCommand::Xack => groups::xack(call),
        StreamCommand::Xackdel => deletion::xackdel(call),
        StreamCommand::Xadd => xadd(call),
        StreamCommand::Xautoclaim => claim::xautoclaim(call),
        StreamCommand::Xclaim => claim::xclaim(call),
        StreamCommand::Xdel => xdel(call),
        StreamCommand::Xdelex => deletion::xdelex(call),
        StreamCommand::XgroupCreate => groups::create(call),
        StreamCommand::XgroupCreateconsumer => groups::create_consumer(call),
        StreamCommand::XgroupDelconsumer => groups::remove_consumer(call),
        StreamCommand::XgroupDestroy => groups::destroy(call),
        StreamCommand::XgroupHelp => groups::help(call),
        StreamCommand::XgroupSetid => groups::set_id(call),
        StreamCommand::XinfoConsumers => info::consumers(call),
        StreamCommand::XinfoGroups => info::groups(call),
        StreamCommand::XinfoHelp => info::help(call),
        StreamCommand::XinfoStream => info::stream(call),
        StreamCommand::Xlen => xlen(call),
        StreamCommand::Xpending => groups::xpending(call),
        StreamCommand::Xrange => xrange(call, false),
        StreamCommand::Xread => read::read(call, false),
        StreamCommand::Xreadgroup => read::read(call, true),
        StreamCommand::Xrevrange => xrange(call, true),
        StreamCommand::Xsetid => xsetid(call),
        StreamCommand::Xtrim => xtrim(call),
        // A container is never executed.
        StreamCommand::Xgroup | StreamCommand::Xinfo => Err(unsupported(call.row)),
    }
}

/// Parses an id; `missing` is the sequence number of an id that has none.
fn strict_id(text: &[u8], missing: u64) -> Result<Id, Fault> {
    match id::parse(text) {
        Some(Said { ms, seq: None }) => Ok(Id { ms, seq: missing }),
        Some(Said { ms, seq: Some(Seq::Number(seq)) }) => Ok(Id { ms, seq }),
        Some(Said { seq: Some(Seq::Any), .. }) | None => Err(INVALID_ID.into()),
    }
}

/// As [`strict_id`], with `-` for the least id and `+` for the greatest.
fn id_or_end(text: &[u8], missing: u64) -> Result<Id, Fault> {
    match until_nul(text) {
        b"-" => Ok(Id::MIN),
        b"+" => Ok(Id::MAX),
        _ => strict_id(text, missing),
    }
}

/// Parses the start of an interval; `(` excludes the id.
fn start_of(text: &[u8]) -> Result<Id, Fault> {
    match text {
        [b'(', id @ ..] if !id.is_empty() => strict_id(id, 0)?.next().ok_or(INVALID_START.into()),
        _ => id_or_end(text, 0),
    }
}

/// Parses the end of an interval; `(` excludes the id.
fn end_of(text: &[u8]) -> Result<Id, Fault> {
    match text {
        [b'(', id @ ..] if !id.is_empty() => strict_id(id, u64::MAX)?.previous().ok_or(INVALID_END.into()),
        _ => id_or_end(text, u64::MAX),
    }
}

/// Writes an id as a bulk string.
fn reply_id(reply: &mut Encoder<'_>, id: Id) {
    reply.bulk(id.text().as_bytes());
}

/// Writes an entry: its id, and its fields and values.
fn reply_entry(reply: &mut Encoder<'_>, entry: &Entry<'_>) {
    reply.array(2);
    reply_id(reply, entry.id);
    reply.array(2 * entry.fields);
    for (field, value) in entry.pairs() {
        bulk(reply, field);
        bulk(reply, value);
    }
}

/// Writes up to `count` entries as an array; zero is no limit.
fn reply_entries<'e>(
    call: &mut Encoder<'_>,
    entries: impl Iterator<Item = Entry<'e>>,
    count: usize,
    start: usize,
) -> Answer {
    let (position, mut written) = (call.position(), 0);
    for entry in entries.take(if count == 0 { usize::MAX } else { count }) {
        reply_entry(call, &entry);
        written += 1;
        super::check_reply(call, start)?;
    }
    call.array_at(position, written);
    Ok(())
}

/// The options of `XADD` and `XTRIM`.
struct Options {
    trimming: Option<Trimming>,
    references: References,
    only_if_there: bool,
    /// `None`: `*`, the server generates the id.
    id: Option<Said>,
    /// Index of the first field.
    fields_at: usize,
}

impl Call<'_, '_> {
    /// Reads the options of `XADD` and `XTRIM` and, for the former, the id.
    fn trim_options(&self, is_add: bool) -> Result<Options, Fault> {
        let (mut what, mut is_approximate, mut limit) = (None, false, None);
        let (mut only_if_there, mut id, mut references) = (false, None, None);
        let mut index = 2;
        let len = self.args.len();
        while index < len {
            if is_add && self.arg(index) == b"*" {
                break;
            }
            let has_more = index + 1 < len;
            let is_length = self.is_word(index, "MAXLEN");
            if has_more && (is_length || self.is_word(index, "MINID")) {
                if what.is_some() {
                    return Err(TWO_STRATEGIES.into());
                }
                let sign = self.arg(index + 1);
                let is_signed = index + 2 < len && (sign == b"~" || sign == b"=");
                is_approximate = is_signed && sign == b"~";
                index += 1 + usize::from(is_signed);
                what = Some(if is_length {
                    let max = self.integer(index)?;
                    Trim::ToLength(usize::try_from(max).map_err(|_| MAXLEN_NEGATIVE)?)
                } else {
                    Trim::Before(strict_id(self.arg(index), 0)?)
                });
            } else if has_more && self.is_word(index, "LIMIT") {
                index += 1;
                limit = Some(usize::try_from(self.integer(index)?).map_err(|_| LIMIT_NEGATIVE)?);
            } else if is_add && self.is_word(index, "NOMKSTREAM") {
                only_if_there = true;
            } else if let Some(treatment) = References::of(self.arg(index)) {
                if references.replace(treatment).is_some() {
                    return Err(text::SYNTAX.into());
                }
            } else if is_add {
                id = Some(id::parse(self.arg(index)).ok_or(INVALID_ID)?);
                break;
            } else {
                return Err(text::SYNTAX.into());
            }
            index += 1;
        }
        if what.is_none() && limit.is_some_and(|limit| limit > 0) {
            return Err(LIMIT_WITHOUT_STRATEGY.into());
        }
        if what.is_none() && !is_add {
            return Err(NO_STRATEGY.into());
        }
        if limit.is_some() && !is_approximate {
            return Err(LIMIT_WITHOUT_ABOUT.into());
        }
        let limit = limit.unwrap_or_else(|| if is_approximate { self.trimmed_at_once() } else { 0 });
        let trimming = what.map(|what| Trimming { what, is_approximate, limit });
        Ok(Options { trimming, references: references.unwrap_or_default(), only_if_there, id, fields_at: index + 1 })
    }

    /// Entries that approximate trimming removes at most, unless the request says how many.
    fn trimmed_at_once(&self) -> usize {
        match self.keyspace.heap.encodings.stream_node_entries_max {
            0 => STREAM_TRIMMED_AT_ONCE,
            entries => entries.saturating_mul(STREAM_NODES_TRIMMED_AT_ONCE).min(STREAM_TRIMMED_AT_ONCE_MAX),
        }
    }

    /// The ids from argument `index` on.
    fn ids(&self, index: usize) -> Result<Vec<Id>, Fault> {
        self.args.from(index).iter().map(|text| strict_id(text, 0)).collect()
    }
}

/// The id of an entry that is appended after `last`.
fn new_id(said: Option<Said>, last: Id, now: i64) -> Result<Id, Fault> {
    let id = match said {
        None => {
            let fresh = Id { ms: u64::try_from(now).unwrap_or(0), seq: 0 };
            if fresh.ms > last.ms { Some(fresh) } else { last.next() }
        }
        Some(Said { ms, seq: Some(Seq::Any) }) if ms == last.ms => last.seq.checked_add(1).map(|seq| Id { ms, seq }),
        Some(Said { ms, seq: Some(Seq::Any) | None }) => Some(Id { ms, seq: 0 }),
        Some(Said { ms, seq: Some(Seq::Number(seq)) }) => Some(Id { ms, seq }),
    };
    id.filter(|id| *id > last).ok_or(ID_NOT_GREATER.into())
}

fn xadd(call: &mut Call<'_, '_>) -> Answer {
    let options = call.trim_options(true)?;
    let pairs = call.args.from(options.fields_at.min(call.args.len()));
    if pairs.len() < 2 || pairs.len() % 2 == 1 {
        return Err(named(call.row, text::wrong_arity));
    }
    if matches!(options.id, Some(Said { ms: 0, seq: None | Some(Seq::Number(0)) })) {
        return Err(ID_ZERO.into());
    }
    let key = call.arg(1);
    let found = call.find::<Stream>(key)?;
    if found.is_none() && options.only_if_there {
        call.reply.null();
        return Ok(());
    }
    let stream = found.and_then(|found| call.keyspace.view::<Stream>(found));
    let last = stream.map_or(Id::MIN, |(stream, _)| stream.figures.last_id);
    if last == Id::MAX {
        return Err(IDS_EXHAUSTED.into());
    }
    let id = new_id(options.id, last, call.at.now)?;
    if pairs.iter().map(<[u8]>::len).sum::<usize>() > STREAM_ENTRY_BYTES_MAX {
        return Err(TOO_LARGE.into());
    }
    let limits = NodeLimits::new(&call.keyspace.heap.encodings);
    let add = |stream: &mut Stream| {
        stream.append(id, pairs, limits);
        options.trimming.map_or(0, |trimming| stream.trim_with(trimming, options.references))
    };
    let trimmed;
    match found {
        Some(found) => {
            let add = |stream: &mut Stream, _: &mut _| Edited::change(add(stream)).named(events::XADD);
            trimmed = call.keyspace.edit(call.at.database, found, add);
            call.keyspace.signal(call.at.database, key, Kind::Stream);
        }
        None => {
            let mut stream = Stream::new();
            trimmed = Some(add(&mut stream));
            call.keyspace.set_object(call.at, key, stream.into_object(), Expiry::Never);
            call.notify(events::XADD, key);
        }
    }
    if trimmed.is_some_and(|trimmed| trimmed > 0) {
        call.notify(events::XTRIM, key);
    }
    reply_id(call.reply, id);
    Ok(())
}

fn xtrim(call: &mut Call<'_, '_>) -> Answer {
    let options = call.trim_options(false)?;
    let Some((found, trimming)) = call.find::<Stream>(call.arg(1))?.zip(options.trimming) else {
        return call.reply_integer(0);
    };
    let trim = |stream: &mut Stream, _: &mut _| {
        Edited::count(stream.trim_with(trimming, options.references)).named(events::XTRIM)
    };
    let removed = call.keyspace.edit(call.at.database, found, trim).unwrap_or(0);
    call.reply_count(removed)
}

fn xdel(call: &mut Call<'_, '_>) -> Answer {
    let Some(found) = call.find::<Stream>(call.arg(1))? else { return call.reply_integer(0) };
    let ids = call.ids(2)?;
    let delete = |stream: &mut Stream, _: &mut _| Edited::count(stream.delete(&ids)).named(events::XDEL);
    let deleted = call.keyspace.edit(call.at.database, found, delete).unwrap_or(0);
    call.reply_count(deleted)
}

fn xlen(call: &mut Call<'_, '_>) -> Answer {
    let found = call.read::<Stream>(call.arg(1))?;
    let len = found.and_then(|found| call.keyspace.view::<Stream>(found)).map_or(0, |(stream, _)| stream.len());
    call.reply_count(len)
}

fn xrange(call: &mut Call<'_, '_>, is_backward: bool) -> Answer {
    let (start_at, end_at) = if is_backward { (3, 2) } else { (2, 3) };
    let from = start_of(call.arg(start_at))?;
    let to = end_of(call.arg(end_at))?;
    let mut count = None;
    let mut index = 4;
    while index < call.args.len() {
        if !call.is_word(index, "COUNT") || index + 1 >= call.args.len() {
            return Err(text::SYNTAX.into());
        }
        count = Some(usize::try_from(call.integer(index + 1)?).unwrap_or(0));
        index += 2;
    }
    let Some(found) = call.read::<Stream>(call.arg(1))? else {
        call.reply.array(0);
        return Ok(());
    };
    let count = match count {
        Some(0) => {
            call.reply.null_array();
            return Ok(());
        }
        count => count.unwrap_or(0),
    };
    let Some((stream, _)) = call.keyspace.view::<Stream>(found) else { return Ok(()) };
    if is_backward {
        reply_entries(call.reply, stream.log.range_back(from, to), count, call.start)
    } else {
        reply_entries(call.reply, stream.log.range(from, to), count, call.start)
    }
}

fn xsetid(call: &mut Call<'_, '_>) -> Answer {
    let id = strict_id(call.arg(2), 0)?;
    let (mut added, mut max_deleted) = (None, Id::MIN);
    let mut index = 3;
    while index < call.args.len() {
        if index + 1 >= call.args.len() {
            return Err(text::SYNTAX.into());
        }
        if call.is_word(index, "ENTRIESADDED") {
            added = Some(Some(call.integer(index + 1)?).filter(|added| *added >= 0).ok_or(ADDED_NEGATIVE)?);
        } else if call.is_word(index, "MAXDELETEDID") {
            max_deleted = strict_id(call.arg(index + 1), 0)?;
            if id < max_deleted {
                return Err(SMALLER_THAN_DELETED.into());
            }
        } else {
            return Err(text::SYNTAX.into());
        }
        index += 2;
    }
    let found = call.find::<Stream>(call.arg(1))?.ok_or(text::NO_SUCH_KEY)?;
    if let Some((stream, _)) = call.keyspace.view::<Stream>(found)
        && stream.len() > 0
    {
        if stream.log.last_id().is_some_and(|last| id < last) {
            return Err(SMALLER_THAN_TOP.into());
        }
        if added.is_some_and(|added| (added as u64) < stream.len() as u64) {
            return Err(ADDED_BELOW_LENGTH.into());
        }
    }
    call.keyspace.edit(call.at.database, found, |stream: &mut Stream, _| {
        let figures = &mut stream.figures;
        figures.last_id = id;
        figures.entries_added = added.unwrap_or(figures.entries_added);
        if max_deleted != Id::MIN {
            figures.max_deleted_id = max_deleted;
        }
        // As in Redis, this is not a change for WATCH.
        Edited::unwatched(true, ())
    });
    call.notify(events::XSETID, call.arg(1));
    call.reply_ok()
}

#[cfg(test)]
mod tests {
    use respool_command::{Execute, Millis};

    use crate::transcript::{Script, play};

    #[test]
    fn entries_come_and_go() {
        play(
            "XADD s 5-1 f v g w -> $3 5-1
             XADD s 5-1 f v -> -ERR The ID specified in XADD is equal or smaller than the target stream top item
             XADD s 5-* f v -> $3 5-2
             XADD s * f v -> $15 1600000000000-0
             XADD s * f v -> $15 1600000000000-1
             XADD t NOMKSTREAM * f v -> $-1
             XADD s 0-0 f v -> -ERR The ID specified in XADD must be greater than 0-0
             XADD s * f v g -> -ERR wrong number of arguments for 'xadd' command
             XLEN s -> :4
             TYPE s -> +stream
             OBJECT ENCODING s -> $6 stream
             XRANGE s - (5-2 -> *1 *2 $3 5-1 *4 $1 f $1 v $1 g $1 w
             XREVRANGE s + - COUNT 1 -> *1 *2 $15 1600000000000-1 *2 $1 f $1 v
             XDEL s 5-2 5-2 9-9 -> :1
             XTRIM s MAXLEN 1 -> :2
             XTRIM s MAXLEN 0 -> :1
             EXISTS s -> :1
             XRANGE s - + -> *0
             XADD s 7 f v -> -ERR The ID specified in XADD is equal or smaller than the target stream top item",
        );
    }

    #[test]
    fn a_group_hands_entries_out_until_they_are_acknowledged() {
        play(
            "XGROUP CREATE s g $ -> -ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the MKSTREAM option to create an empty stream automatically.
             XGROUP CREATE s g $ MKSTREAM -> +OK
             XADD s 1-1 f v -> $3 1-1
             XADD s 2-1 f v -> $3 2-1
             XREADGROUP GROUP g a COUNT 1 STREAMS s > -> *1 *2 $1 s *1 *2 $3 1-1 *2 $1 f $1 v
             XREADGROUP GROUP g b STREAMS s > -> *1 *2 $1 s *1 *2 $3 2-1 *2 $1 f $1 v
             XREADGROUP GROUP g b STREAMS s > -> *-1
             @5
             XPENDING s g -> *4 :2 $3 1-1 $3 2-1 *2 *2 $1 a $1 1 *2 $1 b $1 1
             XPENDING s g - + 9 b -> *1 *4 $3 2-1 $1 b :5 :1
             XCLAIM s g b 6 1-1 -> *0
             XCLAIM s g b 5 1-1 JUSTID -> *1 $3 1-1
             XDEL s 1-1 -> :1
             XREADGROUP GROUP g b STREAMS s 0 -> *1 *2 $1 s *2 *2 $3 1-1 *-1 *2 $3 2-1 *2 $1 f $1 v
             XAUTOCLAIM s g a 0 0 -> *3 $3 0-0 *1 *2 $3 2-1 *2 $1 f $1 v *1 $3 1-1
             XACK s g 2-1 1-1 -> :1
             XINFO GROUPS s -> *1 *12 $4 name $1 g $9 consumers :2 $7 pending :0 $17 last-delivered-id $3 2-1 $12 entries-read :2 $3 lag :0
             XGROUP DESTROY s g -> :1
             XACK s g 2-1 -> :0",
        );
    }

    #[test]
    fn a_large_stream_is_freed_little_by_little() {
        let mut script = Script::new();
        script.say("XGROUP CREATE s g 0 MKSTREAM");
        for _ in 0..150_000 {
            script.say("XADD s * field value");
        }
        script.say("XREADGROUP GROUP g c COUNT 100000 STREAMS s >");
        let full = script.engine.memory_bytes();
        script.say("UNLINK s");
        let (mut turns, mut least) = (0, full);
        while script.engine.tick(Millis(1)) < Some(Millis(100)) {
            turns += 1;
            assert!(turns < 100 && script.engine.memory_bytes() <= least, "the engine comes to rest");
            least = script.engine.memory_bytes();
        }
        let left = script.engine.memory_bytes();
        assert!(turns > 2 && left < full / 100, "{left} of {full} bytes are held after {turns} turns");
    }

    #[test]
    fn the_last_entry_is_read() {
        play(
            "XADD s 5-1 f v -> $3 5-1
              XADD s 6-1 f w -> $3 6-1
              XREAD COUNT 9 STREAMS s t + + -> *1 *2 $1 s *1 *2 $3 6-1 *2 $1 f $1 w
              XDEL s 6-1 -> :1
              XREAD STREAMS s + -> *1 *2 $1 s *1 *2 $3 5-1 *2 $1 f $1 v
              XDEL s 5-1 -> :1
              XREAD STREAMS s + -> *-1
              XGROUP CREATE s g 0 -> +OK
              XREADGROUP GROUP g c STREAMS s + -> -ERR Invalid stream ID specified as stream command argument",
        );
        let mut script = Script::new();
        script.say("XADD s 5-1 f v");
        script.say("XTRIM s MAXLEN 0");
        assert_eq!(script.say("XREAD BLOCK 9 STREAMS s +"), "");
        script.say("XADD s 5-2 f v");
        assert_eq!(script.served(), Some((1, "*1 *2 $1 s *1 *2 $3 5-2 *2 $1 f $1 v".to_owned())));
    }

    #[test]
    fn a_blocked_read_has_the_ids_of_its_arrival() {
        let mut script = Script::new();
        script.say("XADD s 5-1 f v");
        assert_eq!(script.say("XREAD BLOCK 9 STREAMS s t $ $"), "");
        assert_eq!(script.say("XREAD STREAMS s $"), "*-1");
        // An entry of which the readers are not told: it was added and is gone, and the ids have gone on.
        script.say("XSETID s 7-1");
        assert_eq!(script.served(), None);
        script.say("XADD s 8-1 f v");
        assert_eq!(script.served(), Some((1, "*1 *2 $1 s *1 *2 $3 8-1 *2 $1 f $1 v".to_owned())));
        assert_eq!(script.say("XREAD BLOCK 9 STREAMS t $"), "");
        script.say("XADD t 1-1 f v");
        assert_eq!(script.served(), Some((2, "*1 *2 $1 t *1 *2 $3 1-1 *2 $1 f $1 v".to_owned())));
        play(
            "#3
              XADD s 5-1 f v -> $3 5-1
              XREAD STREAMS s t 0 0 -> %1 $1 s *1 *2 $3 5-1 *2 $1 f $1 v",
        );
    }

    #[test]
    fn memory_per_entry_is_that_of_its_bytes() {
        let mut script = Script::new();
        for number in 0..20_000 {
            script.say(&format!("XADD s * sensor {number} state ok"));
        }
        let per_entry = script.engine.memory_bytes() / 20_000;
        assert!(per_entry < 24, "{per_entry} bytes per entry");
    }
}
