//! What a node really executed: its append-only file, read back.
//!
//! The servers of the run keep one without rewriting it, and hand what they have executed to the kernel before they answer. So
//! it holds every write that a client was told of, in order, with its database, also after the server was killed.

use std::io;
use std::path::Path;

/// Arguments with which a server keeps such a file.
pub(super) const SERVER_ARGUMENTS: [&str; 10] = [
    "--appendonly",
    "yes",
    "--appendfsync",
    "no",
    "--aof-use-rdb-preamble",
    "no",
    "--auto-aof-rewrite-percentage",
    "0",
    "--aof-timestamp-enabled",
    "yes",
];

/// One write that a node has executed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Executed {
    pub(super) database: u32,
    /// The transaction in which it was, counted from 1; 0 for none.
    pub(super) block: u32,
    /// The second of the wall clock in which it was executed, or the last one in the file before it.
    pub(super) second: u64,
    pub(super) words: Vec<Vec<u8>>,
}

/// Reads the files of a server whose directory this is, oldest first.
pub(super) fn read(directory: &Path) -> io::Result<Vec<Executed>> {
    let directory = directory.join("appendonlydir");
    let mut files: Vec<_> = std::fs::read_dir(&directory)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.to_string_lossy().ends_with(".incr.aof"))
        .collect();
    files.sort_by_key(|path| {
        path.to_string_lossy().split('.').rev().nth(2).and_then(|number| number.parse::<u32>().ok())
    });
    let mut log = Log::default();
    for file in files {
        log.take(&std::fs::read(file)?);
    }
    Ok(log.executed)
}

#[derive(Default)]
struct Log {
    executed: Vec<Executed>,
    database: u32,
    blocks: u32,
    is_block: bool,
    second: u64,
}

impl Log {
    /// A server that was killed may have left half a request at the end, which it cuts off when it starts again.
    fn take(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        loop {
            while let Some((comment, after)) = line(rest).filter(|(line, _)| line.starts_with(b"#")) {
                let second = std::str::from_utf8(comment).ok().and_then(|text| text.strip_prefix("#TS:")?.parse().ok());
                self.second = second.unwrap_or(self.second);
                rest = after;
            }
            let Some((words, after)) = request(rest) else { return };
            rest = after;
            match words.first().map(|name| name.to_ascii_uppercase()).as_deref() {
                Some(b"SELECT") => {
                    self.database =
                        words.get(1).and_then(|n| std::str::from_utf8(n).ok()?.parse().ok()).unwrap_or_default();
                }
                Some(b"MULTI") => {
                    self.blocks += 1;
                    self.is_block = true;
                }
                Some(b"EXEC") => self.is_block = false,
                _ => {
                    let block = if self.is_block { self.blocks } else { 0 };
                    let (database, second) = (self.database, self.second);
                    self.executed.push(Executed { database, block, second, words });
                }
            }
        }
    }
}

/// The first request and the bytes behind it, if it is complete.
fn request(bytes: &[u8]) -> Option<(Vec<Vec<u8>>, &[u8])> {
    let (head, mut rest) = line(bytes)?;
    let count: usize = number(head, b'*')?;
    let mut words = Vec::with_capacity(count);
    for _ in 0..count {
        let (head, after) = line(rest)?;
        let length = number(head, b'$')?;
        let word = after.get(..length)?;
        rest = after.get(length + 2..)?;
        words.push(word.to_vec());
    }
    Some((words, rest))
}

fn line(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|&byte| byte == b'\n')?;
    Some((bytes[..end].strip_suffix(b"\r").unwrap_or(&bytes[..end]), &bytes[end + 1..]))
}

fn number(head: &[u8], kind: u8) -> Option<usize> {
    let digits = head.split_first().filter(|(first, _)| **first == kind)?.1;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn databases_and_blocks_are_told_apart() {
        let requests: [&[&str]; 8] = [
            &["SELECT", "3"],
            &["SET", "a", "1"],
            &["MULTI"],
            &["SET", "b", "2"],
            &["RPUSH", "c", "3"],
            &["EXEC"],
            &["select", "0"],
            &["DEL", "a"],
        ];
        let mut bytes: Vec<u8> = b"#TS:1700000000\r\n".to_vec();
        requests.iter().for_each(|words| bytes.extend(respool_testkit::request(words)));
        bytes.extend(b"*2\r\n$3\r\nDE");
        let mut log = Log::default();
        log.take(&bytes);
        let told: Vec<_> = log.executed.iter().map(|one| (one.database, one.block, one.words.len())).collect();
        assert_eq!(told, [(3, 0, 3), (3, 1, 3), (3, 1, 3), (0, 0, 2)]);
    }
}
