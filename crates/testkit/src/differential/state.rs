//! Whether two servers hold the same, key by key.

use std::collections::BTreeSet;
use std::time::Duration;
use std::{io, thread};

use crate::{Address, Client, RedisServer, elements};

/// Databases that are looked through.
const DATABASES: usize = 16;
/// A key with less time left than this may have expired on one of two servers. It is looked at again behind that.
const EXPIRES_SOON: Duration = Duration::from_millis(100);

/// Two servers, and a third that restores what they dump and says by `DEBUG DIGEST-VALUE` whether it is the same value: payloads of
/// equal values differ where a table has no order.
#[derive(Debug)]
pub(crate) struct States {
    clients: [Client; 2],
    judge: Client,
    /// It stops when this is dropped.
    _server: RedisServer,
}

/// What one server says of a key.
#[derive(Debug, PartialEq, Eq)]
struct Stored {
    payload: Option<Vec<u8>>,
    expires: bool,
    encoding: Vec<u8>,
}

impl States {
    pub(crate) fn new(expected: &Address, subject: &Address) -> io::Result<Self> {
        let server = RedisServer::start_with(&["--enable-debug-command", "yes"])?;
        let judge = server.client()?;
        Ok(States { clients: [Client::connect(expected)?, Client::connect(subject)?], judge, _server: server })
    }

    /// How many keys were compared, or the first that is not the same with both.
    pub(crate) fn compare(&mut self) -> io::Result<Result<usize, String>> {
        let mut compared = 0;
        for database in 0..DATABASES {
            let mut keys = BTreeSet::new();
            for client in &mut self.clients {
                expect(&client.ask(&format!("SELECT {database}"))?, "+OK")?;
                let found = client.command(&["KEYS", "*"])?;
                keys.extend(elements(&found).into_iter().filter_map(bulk));
            }
            for key in keys {
                if let Some(difference) = self.difference(&key)? {
                    return Ok(Err(format!("database {database}, key {}: {difference}", key.escape_ascii())));
                }
                compared += 1;
            }
        }
        Ok(Ok(compared))
    }

    fn difference(&mut self, key: &[u8]) -> io::Result<Option<String>> {
        let stored = self.stored(key)?;
        if self.are_equal(&stored)? {
            return Ok(None);
        }
        // It may expire now at the one and a moment later at the other.
        let mut left_ms = [0; 2];
        for (left, client) in left_ms.iter_mut().zip(&mut self.clients) {
            *left = integer(&client.command(&[b"PTTL", key])?)?;
        }
        let soon_ms = EXPIRES_SOON.as_millis() as i64;
        if left_ms.iter().any(|left| *left == -1 || *left > soon_ms) {
            return Ok(Some(format!("{:?}, {left_ms:?} ms left", stored.map(|one| one.told()))));
        }
        thread::sleep(EXPIRES_SOON);
        let stored = self.stored(key)?;
        let are_gone = stored.iter().all(|one| one.payload.is_none());
        Ok((!are_gone).then(|| format!("{:?} although it has expired", stored.map(|one| one.told()))))
    }

    fn stored(&mut self, key: &[u8]) -> io::Result<[Stored; 2]> {
        let [one, other] = &mut self.clients;
        Ok([Stored::ask(one, key)?, Stored::ask(other, key)?])
    }

    fn are_equal(&mut self, stored: &[Stored; 2]) -> io::Result<bool> {
        let [one, other] = stored;
        if one == other {
            return Ok(true);
        }
        let [Some(payload), Some(other_payload)] = [&one.payload, &other.payload] else { return Ok(false) };
        if (one.expires, &one.encoding) != (other.expires, &other.encoding) {
            return Ok(false);
        }
        for (name, payload) in [("one", payload), ("other", other_payload)] {
            let words: [&[u8]; 5] = [b"RESTORE", name.as_bytes(), b"0", payload, b"REPLACE"];
            let reply = self.judge.command(&words)?;
            if reply != b"+OK\r\n" {
                return Err(io::Error::other(format!("RESTORE of {name}: {}", reply.escape_ascii())));
            }
        }
        let digests = self.judge.command(&["DEBUG", "DIGEST-VALUE", "one", "other"])?;
        let digests = elements(&digests);
        Ok(digests.len() == 2 && digests[0] == digests[1])
    }
}

impl Stored {
    fn ask(client: &mut Client, key: &[u8]) -> io::Result<Stored> {
        let payload = bulk(&client.command(&[b"DUMP", key])?);
        let expires = integer(&client.command(&[b"PTTL", key])?)? >= 0;
        let encoding = client.command(&[&b"OBJECT"[..], b"ENCODING", key])?;
        Ok(Stored { payload, expires, encoding })
    }

    fn told(&self) -> String {
        let payload = self.payload.as_ref().map_or_else(|| "nothing".to_owned(), |it| it.escape_ascii().to_string());
        let encoding = self.encoding.escape_ascii();
        format!("{payload}, {encoding}, {}", if self.expires { "expires" } else { "stays" })
    }
}

fn expect(reply: &str, begin: &str) -> io::Result<()> {
    match reply.starts_with(begin) {
        true => Ok(()),
        false => Err(io::Error::other(format!("{reply:?} instead of {begin}"))),
    }
}

/// The bytes of a bulk string. `None`: it is null.
fn bulk(reply: &[u8]) -> Option<Vec<u8>> {
    let head = reply.iter().position(|byte| *byte == b'\n')? + 1;
    (reply.starts_with(b"$") && reply.len() >= head + 2).then(|| reply[head..reply.len() - 2].to_vec())
}

fn integer(reply: &[u8]) -> io::Result<i64> {
    let text = reply.strip_prefix(b":").map(|digits| String::from_utf8_lossy(digits).trim().to_owned());
    let number = text.and_then(|digits| digits.parse().ok());
    number.ok_or_else(|| io::Error::other(format!("{} instead of a number", reply.escape_ascii())))
}
