//! The payload of `FUNCTION DUMP` and `FUNCTION RESTORE`: the texts of libraries, one behind the other.

use super::{Reader, Writer, payload};

/// What stands in front of each text.
const LIBRARY: u8 = 245;

/// Serialises libraries.
pub(crate) fn write<'a>(texts: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut writer = Writer::new();
    for text in texts {
        writer.byte(LIBRARY);
        writer.text(text);
    }
    payload::seal(writer.finish())
}

/// What is wrong with a payload.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// Its version or checksum.
    Payload,
    /// It holds something else than libraries, or is broken inside.
    Content,
}

/// The texts of serialised libraries.
pub(crate) fn read(payload: &[u8]) -> Result<Vec<Vec<u8>>, Flaw> {
    let bytes = payload::open(payload).ok_or(Flaw::Payload)?;
    let mut reader = Reader::new(bytes);
    let mut texts = Vec::new();
    while !reader.is_empty() {
        let [kind] = reader.array().map_err(|_| Flaw::Content)?;
        if kind != LIBRARY {
            return Err(Flaw::Content);
        }
        texts.push(reader.text().map_err(|_| Flaw::Content)?.into_owned());
    }
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_written_as_redis_does() {
        assert_eq!(write(std::iter::empty()), b"\n\0]\x9b\\@\x0f\x7f\xa2\xda");
        let texts = [&b"#!lua name=a\nreturn 1"[..], b"#!lua name=b\nreturn 2"];
        let written = write(texts.into_iter());
        assert_eq!(read(&written).expect("it has just been written"), texts);
        for at in 0..written.len() {
            assert!(read(&written[..at]).is_err());
        }
        assert_eq!(read(&payload::seal(b"\0\x01x".to_vec())), Err(Flaw::Content));
    }
}
