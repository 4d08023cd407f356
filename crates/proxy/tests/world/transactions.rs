//! Transactions and watched keys in the seeded world.
//!
//! Every key names its client. So a node sees at once whose requests come between a MULTI and its EXEC, whose keys are
//! watched on a connection, and whether the next client finds what the last one left.

use super::blocking::at_once;
use super::{Chance, Client, Expected, value_of};
use respool_wire::{Args, encode_request};

/// What a connection to a node remembers.
#[derive(Default)]
pub(super) struct State {
    /// Whose transaction is being queued, once a key has told, and the replies it will get.
    block: Option<(Option<String>, Vec<Vec<u8>>)>,
    /// Whose keys are watched.
    watcher: Option<String>,
    /// Another client has changed one of them.
    is_stale: bool,
}

/// The client that a key belongs to.
fn owner(key: &[u8]) -> String {
    let key = String::from_utf8_lossy(key);
    let name = key.trim_start_matches('{').split(':').next().expect("a key begins with its client's name");
    name.to_owned()
}

impl State {
    /// Answers what is about transactions, or inside of one. `false`: it is an ordinary request.
    pub(super) fn take(&mut self, args: Args<'_>, out: &mut Vec<u8>, chance: &mut Chance, is_session: bool) -> bool {
        match (args.name(), &mut self.block) {
            (b"MULTI", None) => {
                self.block = Some((None, Vec::new()));
                out.extend_from_slice(b"+OK\r\n");
            }
            (b"EXEC", Some((whose, replies))) => {
                if let (Some(whose), Some(watcher)) = (&whose, &self.watcher) {
                    assert_eq!(whose, watcher, "a transaction meets the keys that another client watched");
                }
                if std::mem::take(&mut self.is_stale) {
                    out.extend_from_slice(b"*-1\r\n");
                } else {
                    out.extend_from_slice(format!("*{}\r\n", replies.len()).as_bytes());
                    out.extend(replies.concat());
                }
                self.block = None;
                self.watcher = None;
            }
            (b"UNWATCH", None) => {
                self.watcher = None;
                self.is_stale = false;
                out.extend_from_slice(b"+OK\r\n");
            }
            (b"WATCH", None) => {
                for key in args.from(1).iter() {
                    let watcher = self.watcher.get_or_insert_with(|| owner(key));
                    assert_eq!(*watcher, owner(key), "keys of two clients are watched on one connection");
                    self.is_stale |= key.ends_with(b"stale");
                }
                out.extend_from_slice(b"+OK\r\n");
            }
            (b"GET", Some((whose, replies))) => {
                let whose = whose.get_or_insert_with(|| owner(args.at(1)));
                assert_eq!(*whose, owner(args.at(1)), "requests of two clients are in one transaction");
                let value = value_of(args.at(1));
                replies.push([format!("${}\r\n", value.len()).as_bytes(), &value, b"\r\n"].concat());
                out.extend_from_slice(b"+QUEUED\r\n");
            }
            (b"BLPOP", Some((_, replies))) => {
                replies.push(at_once(args.at(1), chance).unwrap_or_else(|| b"*-1\r\n".to_vec()));
                out.extend_from_slice(b"+QUEUED\r\n");
            }
            (b"SELECT", Some((_, replies))) => {
                replies.push(b"+OK\r\n".to_vec());
                out.extend_from_slice(b"+QUEUED\r\n");
            }
            (b"PING", Some((_, replies))) => {
                replies.push(b"+PONG\r\n".to_vec());
                out.extend_from_slice(b"+QUEUED\r\n");
            }
            (b"SELECT" | b"PING", None) => return false,
            (name, block) => {
                assert!(block.is_none(), "{} came into a transaction", String::from_utf8_lossy(name));
                let name = String::from_utf8_lossy(name);
                // In pool mode `session` a client's own requests do.
                let is_watchers =
                    is_session && self.watcher.as_ref().is_some_and(|watcher| *watcher == owner(args.at(1)));
                assert!(
                    self.watcher.is_none() || is_watchers,
                    "{name} came to a connection on which another client's keys are watched"
                );
                return false;
            }
        }
        true
    }
}

/// Has a client ask for a transaction; perhaps with watched keys, perhaps never to be executed.
pub(super) fn ask(client: &mut Client, key: &str, chance: &mut Chance) {
    let say = |out: &mut Vec<u8>, words: &[&str]| encode_request(out, words.iter().map(|w| w.as_bytes()));
    let mut asks: Vec<(Vec<&str>, Expected)> = Vec::new();
    let own = |reply: &[u8]| Expected::Own(reply.to_vec());
    let (first, second, stale) = (format!("{{{key}}}"), format!("{{{key}}}9"), format!("{{{key}}}stale"));
    let is_watching = chance.one_in(2);
    let (mut is_stale, mut has_unwatched) = (false, false);
    if is_watching {
        is_stale = chance.one_in(3);
        asks.push((vec!["WATCH", &first, if is_stale { &stale } else { &second }], Expected::Watches(Vec::new())));
        if chance.one_in(4) {
            asks.push((vec!["UNWATCH"], own(b"+OK\r\n")));
            (is_stale, has_unwatched) = (false, true);
        }
    }
    let mut elements: Vec<Vec<u8>> = Vec::new();
    asks.push((vec!["MULTI"], own(b"+OK\r\n")));
    let bulk = |value: Vec<u8>| [format!("${}\r\n", value.len()).as_bytes(), &value, b"\r\n"].concat();
    for _ in 0..chance.below(5) {
        let (words, element) = match chance.below(12) {
            0 => (vec!["PING"], b"+PONG\r\n".to_vec()),
            1 => (vec!["CLIENT", "GETNAME"], b"$-1\r\n".to_vec()),
            2 => (vec!["SELECT", "1"], b"+OK\r\n".to_vec()),
            3..=5 => (vec!["GET", &second], bulk(value_of(second.as_bytes()))),
            _ => (vec!["GET", &first], bulk(value_of(first.as_bytes()))),
        };
        asks.push((words, own(b"+QUEUED\r\n")));
        elements.push(element);
    }
    match chance.below(6) {
        0 => asks.push((vec!["DISCARD"], own(b"+OK\r\n"))),
        1 => {
            let text = b"-ERR unknown command 'NOSUCH', with args beginning with: \r\n";
            asks.push((vec!["NOSUCH"], Expected::Reply(text.to_vec())));
            asks.push((vec!["EXEC"], own(b"-EXECABORT Transaction discarded because of previous errors.\r\n")));
        }
        _ => {
            let all = [format!("*{}\r\n", elements.len()).into_bytes(), elements.concat()].concat();
            if let Some((_, Expected::Watches(unwatched))) = asks.first_mut() {
                unwatched.clone_from(&all);
            }
            let reply = if is_stale { b"*-1\r\n".to_vec() } else { all };
            let selects = asks.iter().any(|(words, _)| words[0] == "SELECT");
            asks.push((
                vec!["EXEC"],
                match (is_watching && !has_unwatched, selects) {
                    (true, selects) => Expected::Watched(reply, selects),
                    (false, true) => Expected::Selects(reply),
                    (false, false) => Expected::Reply(reply),
                },
            ));
        }
    }
    for (words, expected) in asks {
        say(&mut client.to_send, &words);
        client.expected.push_back(expected);
    }
}
