//! Streams: their listpacks unchanged, the metadata of a stream, and its groups.
//!
//! ```text
//! listpacks, each: id of the first entry (16 bytes, a string), listpack
//! entries, last id, [first id, greatest deleted id, entries ever added]
//! groups, each: name, last id, [entries read], pending entries, consumers
//! pending entry: id (16 bytes), when it was delivered, how often
//! consumer: name, when it was seen, ids of its pending entries
//! ```
//!
//! Other ids are two lengths. Parts in brackets exist since version 10 of the format.

use std::collections::BTreeMap;

use super::format::{Broken, kind};
use super::reader::Reader;
use super::writer::Writer;
use crate::values::Stream;
use crate::values::stream::{Group, Id, READ_UNKNOWN};

impl Writer {
    fn id(&mut self, id: Id) {
        self.number(id.ms);
        self.number(id.seq);
    }
}

pub(super) fn write(writer: &mut Writer, stream: &Stream) {
    writer.byte(kind::STREAM_WITH_FIGURES);
    writer.number(stream.log.nodes() as u64);
    for (first, pack) in stream.log.packs() {
        writer.text(&first.number().to_be_bytes());
        writer.text(pack.as_bytes());
    }
    let figures = &stream.figures;
    writer.number(figures.len as u64);
    for id in [figures.last_id, figures.first_id, figures.max_deleted_id] {
        writer.id(id);
    }
    writer.number(figures.entries_added as u64);
    writer.number(stream.groups.len() as u64);
    for (name, group) in stream.groups.iter() {
        writer.text(name);
        writer.id(group.last_id);
        writer.number(group.entries_read as u64);
        writer.number(group.pending_len() as u64);
        for (id, pending) in group.pending_from(Id::MIN, None) {
            writer.raw(&id.number().to_be_bytes());
            writer.raw(&pending.delivered.to_le_bytes());
            writer.number(pending.deliveries as u64);
        }
        writer.number(group.consumers().len() as u64);
        for (number, consumer) in group.consumers() {
            writer.text(&consumer.name);
            writer.raw(&consumer.seen.to_le_bytes());
            writer.number(consumer.pending_len() as u64);
            for (id, _) in group.pending_from(Id::MIN, Some(number)) {
                writer.raw(&id.number().to_be_bytes());
            }
        }
    }
}

impl Reader<'_> {
    fn id(&mut self) -> Result<Id, Broken> {
        Ok(Id { ms: self.count()?, seq: self.count()? })
    }

    fn raw_id(&mut self) -> Result<Id, Broken> {
        Ok(Id::of_number(u128::from_be_bytes(self.array()?)))
    }

    pub(super) fn moment(&mut self) -> Result<i64, Broken> {
        Ok(i64::from_le_bytes(self.array()?))
    }
}

/// Reads a stream; `has_figures` if it has the metadata of version 10.
pub(super) fn read(reader: &mut Reader<'_>, has_figures: bool) -> Result<Stream, Broken> {
    let mut stream = Stream::new();
    let (mut entries, mut last) = (0, None);
    for _ in 0..reader.count()? {
        let first: [u8; 16] = reader.text()?.as_ref().try_into().map_err(|_| Broken)?;
        let pack = reader.listpack()?;
        entries += stream.log.push_pack(Id::of_number(u128::from_be_bytes(first)), pack, &mut last).ok_or(Broken)?;
    }
    if reader.count()? != entries as u64 {
        return Err(Broken);
    }
    stream.figures.len = entries;
    stream.figures.last_id = reader.id()?;
    stream.figures.entries_added = entries as i64;
    if has_figures {
        // The first id is derived from the entries.
        reader.id()?;
        stream.figures.max_deleted_id = reader.id()?;
        stream.figures.entries_added = reader.count()? as i64;
    }
    stream.figures.first_id = stream.log.first_id().unwrap_or(Id::MIN);
    if stream.log.last_id().is_some_and(|id| id > stream.figures.last_id) {
        return Err(Broken);
    }
    for _ in 0..reader.count()? {
        let name = reader.text()?.into_owned().into_boxed_slice();
        let group = group(reader, &stream, has_figures)?;
        if !stream.groups.insert(name, group) {
            return Err(Broken);
        }
    }
    Ok(stream)
}

fn group(reader: &mut Reader<'_>, stream: &Stream, has_figures: bool) -> Result<Group, Broken> {
    let last_id = reader.id()?;
    let entries_read = match has_figures {
        true => reader.count()? as i64,
        false => stream.figures.added_up_to(last_id).unwrap_or(READ_UNKNOWN),
    };
    let mut group = Group::new(last_id, entries_read);
    let mut pending = BTreeMap::new();
    for _ in 0..reader.count()? {
        let (id, delivered) = (reader.raw_id()?, reader.moment()?);
        if pending.insert(id, (delivered, reader.count()? as i64)).is_some() {
            return Err(Broken);
        }
    }
    for _ in 0..reader.count()? {
        let name = reader.text()?;
        let seen = reader.moment()?;
        let consumer = group.create_consumer(&name, seen).ok_or(Broken)?;
        for _ in 0..reader.count()? {
            // Each pending entry belongs to exactly one consumer.
            let id = reader.raw_id()?;
            let (delivered, deliveries) = pending.remove(&id).ok_or(Broken)?;
            group.claim(id, consumer, delivered, deliveries);
        }
    }
    if pending.is_empty() { Ok(group) } else { Err(Broken) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rdb::payload;
    use crate::transcript::Script;

    const DELETED: i64 = 1;
    const SAME_FIELDS: i64 = 2;

    /// A listpack of integers and one-byte texts. Every integer takes eight bytes, however small it is.
    fn wide_pack(elements: &[Result<i64, u8>]) -> Vec<u8> {
        let mut bytes = vec![0; 6];
        for element in elements {
            match element {
                Ok(value) => {
                    bytes.push(0xf4);
                    bytes.extend_from_slice(&value.to_le_bytes());
                    bytes.push(9);
                }
                Err(letter) => bytes.extend_from_slice(&[0x81, *letter, 2]),
            }
        }
        bytes.push(0xff);
        let (total, count) = (bytes.len() as u32, elements.len() as u16);
        bytes[..4].copy_from_slice(&total.to_le_bytes());
        bytes[4..6].copy_from_slice(&count.to_le_bytes());
        bytes
    }

    /// A listpack of entries with one field each, whose flags are these; the numbers of their ids count from zero.
    fn entries(flags: impl Iterator<Item = i64> + Clone) -> Vec<u8> {
        let gone = flags.clone().filter(|flags| flags & DELETED != 0).count() as i64;
        let all = flags.clone().count() as i64;
        let mut elements = vec![Ok(all - gone), Ok(gone), Ok(1), Err(b'f'), Ok(0)];
        for (number, flags) in flags.enumerate() {
            elements.extend([Ok(flags), Ok(0), Ok(number as i64), Err(b'v'), Ok(4)]);
        }
        wide_pack(&elements)
    }

    /// The payload of a stream of these listpacks, whose last id is 99-0.
    fn dump(packs: &[(Id, Vec<u8>)], len: u64) -> Vec<u8> {
        let mut writer = Writer::new();
        writer.byte(kind::STREAM);
        writer.number(packs.len() as u64);
        for (first, pack) in packs {
            writer.text(&first.number().to_be_bytes());
            writer.text(pack);
        }
        writer.number(len);
        writer.id(Id { ms: 99, seq: 0 });
        writer.number(0);
        payload::seal(writer.finish())
    }

    fn restore(dump: &[u8]) -> Script {
        let mut script = Script::new();
        let reply = script.send(&[b"RESTORE", b"s", b"0", dump]);
        assert_eq!(String::from_utf8_lossy(&reply), "+OK\r\n");
        script
    }

    #[test]
    fn entries_with_wide_flags_are_trimmed() {
        let pack = entries([SAME_FIELDS; 40].into_iter());
        let mut script = restore(&dump(&[(Id { ms: 5, seq: 1 }, pack)], 40));
        assert_eq!(script.say("XTRIM s MAXLEN 2"), ":38");
        assert_eq!(script.say("XRANGE s - +"), "*2 *2 $4 5-39 *2 $1 f $1 v *2 $4 5-40 *2 $1 f $1 v");
        assert_eq!(script.say("XDEL s 5-39"), ":1");
        assert_eq!(script.say("XREVRANGE s + -"), "*1 *2 $4 5-40 *2 $1 f $1 v");
    }

    #[test]
    fn a_listpack_whose_figures_grow_can_be_removed() {
        for how in ["XDEL", "XTRIM"] {
            let mut writer = crate::store::listpack::Listpack::new();
            let mut put = |value| writer.insert_integer(None, value);
            [300, 0, 0, 0].into_iter().for_each(&mut put);
            for number in 0..300 {
                [SAME_FIELDS, 0, number, 3].into_iter().for_each(&mut put);
            }
            let pack = writer.as_bytes().to_vec();
            let mut script = restore(&dump(&[(Id { ms: 5, seq: 0 }, pack)], 300));
            if how == "XDEL" {
                (0..200).for_each(|number| assert_eq!(script.say(&format!("XDEL s 5-{number}")), ":1"));
            } else {
                assert_eq!(script.say("XTRIM s MAXLEN 100"), ":200");
            }
            assert_eq!(script.say("XTRIM s MAXLEN 0"), ":100");
        }
    }

    #[test]
    fn listpacks_of_deleted_entries_are_read_in_one_go() {
        let pack = entries([DELETED | SAME_FIELDS].into_iter());
        let packs: Vec<_> = (1..=20_000).map(|seq| (Id { ms: 5, seq }, pack.clone())).collect();
        let mut script = restore(&dump(&packs, 0));
        assert_eq!(script.say("XLEN s"), ":0");
    }
}
