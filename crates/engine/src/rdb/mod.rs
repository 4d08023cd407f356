//! Serialised values: the encoding of Redis's dumps and files (RDB), version 10, and all older encodings of values. Hashes with
//! deadlines of fields have the encoding of Valkey 9.
//!
//! [`write()`] and [`read()`] serialise one value: a byte for the type and the content, as in a file after the key.
//! [`payload`] puts the version and the checksum of `DUMP` around it.
//!
//! Input is validated in all its parts before it is used, and the memory for it is bounded by its own length and
//! [`READ_BYTES_MAX`](crate::limits::READ_BYTES_MAX).

mod foreign;
mod format;
#[cfg(feature = "scripting")]
pub(crate) mod libraries;
mod lzf;
pub(crate) mod payload;
mod read;
mod reader;
mod stream;
mod write;
mod writer;

pub(crate) use format::Broken;
pub(crate) use read::{Loaded, read};
pub(crate) use reader::Reader;
pub(crate) use write::{Stored, write};
pub(crate) use writer::Writer;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::heap::{EncodingLimits, Heap};
    use crate::store::random::Random;
    use crate::transcript::Script;
    use crate::values::stream::{Id, Trim, Trimming};

    /// A dump of a value of each encoding.
    fn dumps() -> Vec<Vec<u8>> {
        let (mut script, mut dumps) = (Script::new(), Vec::new());
        let numbers = |count: usize, text: &str| {
            (0..count).map(|number| text.replace('#', &number.to_string())).collect::<Vec<_>>().join(" ")
        };
        script.say("HSETEX h EX 50 FIELDS 3 a 1 b 2 c -70000");
        script.say("HSET h d 5");
        for line in [
            "COPY h k",
            "SET k 12",
            "SET k -70000",
            "SET k 12345678901",
            "SET k hello",
            &format!("SET k {}", "abc".repeat(300)),
            "RPUSH k a 1 -5 300000 b",
            &format!("RPUSH k {}", numbers(900, "element-number-#")),
            "SADD k 1 2 3",
            "SADD k 1 70000 -5000000000",
            "SADD k a b c",
            "HSET k a 1 b 2",
            &format!("HSET k {}", numbers(20, "field# a-value-that-is-somewhat-long-and-has-a-number-in-it-namely-#")),
            "ZADD k 1 a 2.5 b inf c",
            "XADD k 5-1 a 1 b 2",
            &format!("ZADD k {}", numbers(140, "#.25 m#")),
        ] {
            script.say("DEL k");
            script.say(line);
            let reply = script.send(&[b"DUMP", b"k"]);
            let head = reply.iter().position(|byte| *byte == b'\n').expect("a bulk string");
            let dump = reply[head + 1..reply.len() - 2].to_vec();
            // The value that is read equals the one that was written.
            assert_eq!(script.send(&[b"RESTORE", b"l", b"0", &dump, b"REPLACE"]), b"+OK\r\n", "{line}");
            let encoding = script.say("OBJECT ENCODING k");
            assert_eq!(script.say("OBJECT ENCODING l"), encoding, "{line}");
            if !encoding.ends_with("hashtable") {
                assert_eq!(script.send(&[b"DUMP", b"l"]), reply, "{line}");
            }
            dumps.push(dump);
        }
        dumps
    }

    #[test]
    fn broken_values_are_refused_or_sound() {
        let mut random = Random::new(4);
        let mut heap = Heap::new(EncodingLimits::default(), [1, 2]);
        // No deadline has passed: the number of fields is that of the payload.
        heap.now = i64::MIN;
        let mut refused = 0;
        for dump in dumps() {
            let body = payload::open(&dump).expect("it is whole");
            for _ in 0..600 {
                let mut broken = body.to_vec();
                for _ in 0..=random.below(3) {
                    let at = random.below(broken.len() as u64) as usize;
                    match random.below(3) {
                        0 => broken[at] = random.bits() as u8,
                        1 => broken[at] ^= 1 << random.below(8),
                        _ => broken.truncate(at + 1),
                    }
                }
                match read(&mut Reader::new(&broken), &mut heap) {
                    Err(Broken) => refused += 1,
                    Ok(Loaded::Text(_)) => {}
                    Ok(Loaded::Object(object)) => {
                        let is_stream = matches!(object, crate::values::Object::Stream(_));
                        assert!(object.len() > 0 || is_stream, "nothing else is empty");
                        let mut writer = Writer::new();
                        write::object(&mut writer, &object, &heap);
                        let again = writer.finish();
                        let read = read(&mut Reader::new(&again), &mut heap).expect("what is written is read");
                        let Loaded::Object(copy) = read else { panic!("an object is read as one") };
                        assert_eq!(copy.len(), object.len());
                        if let crate::values::Object::Stream(mut stream) = object {
                            // A value that was accepted can be used.
                            assert_eq!(stream.log.range(Id::MIN, Id::MAX).count(), stream.len());
                            assert_eq!(stream.log.range_back(Id::MIN, Id::MAX).count(), stream.len());
                            let what = Trim::ToLength(stream.len() / 2);
                            stream.trim(Trimming { what, is_approximate: false, limit: 0 });
                        } else {
                            read::free(object, &mut heap);
                        }
                        read::free(copy, &mut heap);
                    }
                }
            }
        }
        assert!(refused > 2_000, "{refused} were refused");
    }
}
