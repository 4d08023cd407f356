//! Commands that wait, in the seeded world.
//!
//! A key says what becomes of who waits for it: `now` has an element, `later` gets one some time, `never` gets none. Elements
//! name their key, and keys their client, so a client that gets another's is found out.

use super::{Chance, Client, Expected, value_of};
use respool_wire::{Args, encode_request};
use std::collections::BTreeMap;

/// Who waits at the nodes: for each connection's number, what it gets in the end and when it gives up.
#[derive(Default)]
pub(super) struct Parked {
    waiting: BTreeMap<u64, Parking>,
    /// What those get that wait no longer.
    pub(super) woken: Vec<(u64, Vec<u8>)>,
    /// How often elements went to those who waited, and clients were taken back.
    pub(super) served: usize,
    pub(super) taken_back: usize,
}

struct Parking {
    /// `None`: nothing ever comes.
    element: Option<Vec<u8>>,
    deadline_us: Option<u64>,
}

fn element_of(key: &[u8]) -> Vec<u8> {
    let value = value_of(key);
    let head = format!("*2\r\n${}\r\n", key.len());
    [head.as_bytes(), key, format!("\r\n${}\r\n", value.len()).as_bytes(), &value, b"\r\n"].concat()
}

/// What BLPOP gives at once; `None`: nothing is there yet.
pub(super) fn at_once(key: &[u8], chance: &mut Chance) -> Option<Vec<u8>> {
    let is_there = key.ends_with(b"now") || key.ends_with(b"later") && chance.one_in(3);
    is_there.then(|| element_of(key))
}

impl Parked {
    pub(super) fn has(&self, id: u64) -> bool {
        self.waiting.contains_key(&id)
    }

    /// A connection has ended.
    pub(super) fn forget(&mut self, id: u64) {
        self.waiting.remove(&id);
    }

    /// Some get what they wait for, and some have waited long enough.
    pub(super) fn pass_time(&mut self, now_us: u64, is_calm: bool, chance: &mut Chance) {
        let ids: Vec<u64> = self.waiting.keys().copied().collect();
        for id in ids {
            let Parking { element, deadline_us } = &self.waiting[&id];
            let reply = match element {
                Some(element) if is_calm || chance.one_in(20) => element.clone(),
                None if deadline_us.is_some_and(|d| now_us >= d) => b"*-1\r\n".to_vec(),
                _ => continue,
            };
            self.served += 1;
            self.waiting.remove(&id);
            self.woken.push((id, reply));
        }
    }

    /// Answers what is about waiting. `None`: it is an ordinary request, or one that waits from now on.
    pub(super) fn take(&mut self, id: u64, args: Args<'_>, now_us: u64, chance: &mut Chance) -> Option<Vec<u8>> {
        match args.name() {
            b"CLIENT" if args.at(1) == b"ID" => Some(format!(":{id}\r\n").into_bytes()),
            b"CLIENT" if args.at(1) == b"UNBLOCK" => {
                let other: u64 = String::from_utf8_lossy(args.at(2)).parse().expect("numbers are asked for");
                let was_waiting = self.waiting.remove(&other).is_some();
                if was_waiting {
                    self.taken_back += 1;
                    self.woken.push((other, b"*-1\r\n".to_vec()));
                }
                Some(format!(":{}\r\n", u8::from(was_waiting)).into_bytes())
            }
            b"LPUSH" => Some(b":1\r\n".to_vec()),
            b"BLPOP" => {
                let key = args.at(1);
                if let Some(element) = at_once(key, chance) {
                    return Some(element);
                }
                let seconds: f64 = String::from_utf8_lossy(args.at(2)).parse().expect("timeouts are numbers");
                let deadline_us = (seconds > 0.0).then(|| now_us + (seconds * 1e6) as u64);
                let element = key.ends_with(b"later").then(|| element_of(key));
                assert!(element.is_some() || deadline_us.is_some(), "no client waits for ever for nothing");
                self.waiting.insert(id, Parking { element, deadline_us });
                None
            }
            _ => None,
        }
    }
}

/// Has a client ask for something that may take its time.
pub(super) fn ask(client: &mut Client, key: &str, chance: &mut Chance) {
    let (what, timeout) = [("now", "0"), ("later", "0"), ("never", "0.05")][chance.below(3)];
    let key = format!("{{{key}}}{what}");
    encode_request(&mut client.to_send, ["BLPOP", &key, timeout].iter().map(|w| w.as_bytes()));
    let reply = if what == "never" { b"*-1\r\n".to_vec() } else { element_of(key.as_bytes()) };
    client.expected.push_back(Expected::Reply(reply));
}
