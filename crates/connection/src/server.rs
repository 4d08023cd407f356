//! What a node says of itself: its program, version, mode and role, from its answer to HELLO, or to INFO where it has no HELLO.
//!
//! It is for logs and listings, never for decisions about requests: a node may say anything, and what is kept of it is short and
//! printable.

use respool_wire::{Value, elements};

/// The longest word of a node that is kept, in bytes.
const WORD_BYTES_MAX: usize = 32;

/// Elements of a HELLO reply that are parsed: servers send seven names with their values.
const ELEMENTS_MAX: usize = 64;

/// What a node says that it is. A word that it did not say is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Server {
    /// The program: `redis`, `valkey` ...
    pub program: String,
    /// Its version.
    pub version: String,
    /// `standalone`, `cluster` or `sentinel`.
    pub mode: String,
    /// `master` or `replica`.
    pub role: String,
}

impl Server {
    /// What an answer to HELLO says, in either dialect. `None`: it is no such answer.
    pub fn of_hello(reply: &[u8]) -> Option<Self> {
        let mut server = Self::default();
        let mut fields = elements(reply)?.take(ELEMENTS_MAX);
        while let (Some(name), Some(value)) = (fields.next(), fields.next()) {
            if let (Some(name), Some(value)) = (text(name), text(value)) {
                server.take(&name, &value);
            }
        }
        server.is_known().then_some(server)
    }

    /// What an answer to INFO says. `None`: it is no such answer.
    pub fn of_info(reply: &[u8]) -> Option<Self> {
        let mut server = Self::default();
        for line in text(reply)?.split(|byte| *byte == b'\n') {
            if let Some(colon) = line.iter().position(|byte| *byte == b':') {
                server.take(&line[..colon], line[colon + 1..].trim_ascii());
            }
        }
        server.is_known().then_some(server)
    }

    fn is_known(&self) -> bool {
        *self != Self::default()
    }

    fn take(&mut self, name: &[u8], value: &[u8]) {
        let word: String = value
            .iter()
            .take(WORD_BYTES_MAX)
            .filter(|byte| byte.is_ascii_graphic())
            .map(|byte| *byte as char)
            .collect();
        match name {
            b"server" => self.program = word,
            b"version" => self.version = word,
            b"mode" => self.mode = word,
            b"role" => self.role = if word == "slave" { "replica".to_owned() } else { word },
            b"redis_version" => (self.program, self.version) = ("redis".to_owned(), word),
            // Some forks say their own version beside that of the Redis that they are compatible with.
            b"valkey_version" => (self.program, self.version) = ("valkey".to_owned(), word),
            b"redis_mode" | b"server_mode" => self.mode = word,
            b"cluster_enabled" if word == "1" => self.mode = "cluster".to_owned(),
            _ => {}
        }
    }
}

fn text(reply: &[u8]) -> Option<Vec<u8>> {
    match Value::parse(reply) {
        Ok(Value::Bulk(text) | Value::Simple(text) | Value::Verbatim { text, .. }) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(words: [&str; 4]) -> Option<Server> {
        let [program, version, mode, role] = words.map(str::to_owned);
        Some(Server { program, version, mode, role })
    }

    #[test]
    fn hello_is_understood_in_both_dialects() {
        let bulk =
            |words: &[&str]| words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len())).collect::<String>();
        let fields = bulk(&["server", "redis", "version", "7.0.15", "proto"])
            + ":2\r\n"
            + &bulk(&["id"])
            + ":5\r\n"
            + &bulk(&["mode", "cluster", "role", "master", "modules"])
            + "*0\r\n";
        let known = server(["redis", "7.0.15", "cluster", "master"]);
        assert_eq!(Server::of_hello(format!("*14\r\n{fields}").as_bytes()), known);
        assert_eq!(Server::of_hello(format!("%7\r\n{fields}").as_bytes()), known);
        for odd in ["+OK\r\n", "-ERR no\r\n", "*0\r\n", "*1\r\n$6\r\nserver\r\n", "*2\r\n:1\r\n:2\r\n", "$-1\r\n"] {
            assert_eq!(Server::of_hello(odd.as_bytes()), None, "{odd}");
        }
    }

    #[test]
    fn info_is_understood() {
        let info = "# Server\r\nredis_version:5.0.14\r\nredis_mode:standalone\r\n# Replication\r\nrole:slave\r\n\
                    # Cluster\r\ncluster_enabled:0\r\n";
        let reply = format!("${}\r\n{info}\r\n", info.len());
        assert_eq!(Server::of_info(reply.as_bytes()), server(["redis", "5.0.14", "standalone", "replica"]));
        let of_cluster = "$37\r\nredis_version:5.0.14\ncluster_enabled:1\r\n";
        assert_eq!(Server::of_info(of_cluster.as_bytes()), None, "its length is wrong");
        let of_cluster = "$38\r\nredis_version:5.0.14\ncluster_enabled:1\r\n";
        assert_eq!(Server::of_info(of_cluster.as_bytes()), server(["redis", "5.0.14", "cluster", ""]));
        assert_eq!(Server::of_info(b"-NOPERM no\r\n"), None);
    }

    #[test]
    fn what_is_kept_of_a_word_is_short_and_printable() {
        let long = format!("a\x1b[31m\n{}", "x".repeat(1_000));
        let reply = format!("*2\r\n$7\r\nversion\r\n${}\r\n{long}\r\n", long.len());
        let kept = Server::of_hello(reply.as_bytes()).expect("it says something").version;
        assert!(kept.len() <= WORD_BYTES_MAX && kept.bytes().all(|byte| byte.is_ascii_graphic()), "{kept:?}");
    }
}
