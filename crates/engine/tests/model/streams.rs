//! Streams of the naive model. All ids are of millisecond 7, so a sequence number identifies an entry.

use std::collections::{BTreeMap, BTreeSet};

use respool_wire::{Encoder, Protocol};

/// Entries by their numbers, and the groups.
#[derive(Clone, Default)]
pub(crate) struct Stream {
    entries: BTreeMap<u64, (String, String)>,
    /// The number of the next entry.
    next: u64,
    groups: BTreeMap<String, Group>,
}

#[derive(Clone, Default)]
struct Group {
    /// The number of the next entry to be delivered.
    next: u64,
    /// The consumers of the pending entries.
    pending: BTreeMap<u64, String>,
    consumers: BTreeSet<String>,
}

/// The number in `7-number`.
fn number(id: &str) -> u64 {
    id.strip_prefix("7-").and_then(|number| number.parse().ok()).expect("the script writes such ids")
}

fn id(number: u64) -> String {
    format!("7-{number}")
}

fn encoded(write: impl FnOnce(&mut Encoder<'_>)) -> Vec<u8> {
    let mut reply = Vec::new();
    write(&mut Encoder::new(&mut reply, Protocol::Resp2));
    reply
}

fn integer(value: usize) -> Vec<u8> {
    encoded(|reply| reply.integer(value as i64))
}

fn results(results: impl Iterator<Item = i64>) -> Vec<u8> {
    let results: Vec<i64> = results.collect();
    encoded(|reply| {
        reply.array(results.len());
        results.into_iter().for_each(|result| reply.integer(result));
    })
}

fn ids(reply: &mut Encoder<'_>, numbers: &[u64]) {
    reply.array(numbers.len());
    numbers.iter().for_each(|number| reply.bulk(id(*number).as_bytes()));
}

impl Stream {
    fn write(&self, reply: &mut Encoder<'_>, numbers: &[u64]) {
        reply.array(numbers.len());
        for number in numbers {
            let (field, value) = &self.entries[number];
            reply.array(2);
            reply.bulk(id(*number).as_bytes());
            reply.array(2);
            reply.bulk(field.as_bytes());
            reply.bulk(value.as_bytes());
        }
    }

    /// Deletes the entries among these that the treatment of references lets go; how many.
    fn delete(&mut self, numbers: Vec<u64>, references: &str) -> usize {
        let mut deleted = 0;
        for number in numbers {
            if references == "ACKED" && self.is_referred_to(number) {
                continue;
            }
            if references == "DELREF" {
                self.groups.values_mut().for_each(|group| _ = group.pending.remove(&number));
            }
            deleted += usize::from(self.entries.remove(&number).is_some());
        }
        deleted
    }

    fn is_referred_to(&self, number: u64) -> bool {
        self.groups.values().any(|group| group.next <= number || group.pending.contains_key(&number))
    }

    /// Deletes entries by `MAXLEN` or `MINID`, as the words say.
    fn trim(&mut self, w: &[&str]) -> usize {
        let word = |name: &str| w.iter().position(|word| *word == name).map(|at| w[at + 1]);
        let references = w.iter().find(|word| ["ACKED", "DELREF"].contains(*word)).copied().unwrap_or_default();
        let len = word("MAXLEN").map(|len| len.parse::<usize>().expect("the script writes numbers"));
        let least = word("MINID").map_or(u64::MAX, number);
        let most = len.map_or(usize::MAX, |len| self.entries.len().saturating_sub(len));
        let numbers = self.entries.keys().copied().take(most).take_while(|number| *number < least).collect();
        self.delete(numbers, references)
    }

    /// The reply to the request `w`.
    pub(crate) fn execute(&mut self, w: &[&str]) -> Vec<u8> {
        match w[0] {
            "XADD" => {
                let entry = (w[w.len() - 2].to_owned(), w[w.len() - 1].to_owned());
                self.entries.insert(self.next, entry);
                self.next += 1;
                if w.contains(&"MAXLEN") {
                    self.trim(w);
                }
                encoded(|reply| reply.bulk(id(self.next - 1).as_bytes()))
            }
            "XLEN" => integer(self.entries.len()),
            "XRANGE" => {
                let all: Vec<u64> = self.entries.keys().copied().collect();
                encoded(|reply| self.write(reply, &all))
            }
            "XDEL" => integer(w[2..].iter().filter(|id| self.entries.remove(&number(id)).is_some()).count()),
            "XTRIM" => integer(self.trim(w)),
            "XDELEX" => results(w[5..].iter().map(|id| {
                let number = number(id);
                let is_there = self.entries.contains_key(&number);
                let is_kept = w[2] == "ACKED" && (self.groups.is_empty() || self.is_referred_to(number));
                match is_there {
                    true if is_kept => 2,
                    _ if self.delete(vec![number], w[2]) > 0 => 1,
                    _ => -1,
                }
            })),
            "XACKDEL" => results(w[6..].iter().map(|id| {
                let number = number(id);
                let pending = self.groups.get_mut(w[2]).and_then(|group| group.pending.remove(&number));
                match pending {
                    None => -1,
                    Some(_) => {
                        self.delete(vec![number], w[3]);
                        if self.entries.contains_key(&number) { 2 } else { 1 }
                    }
                }
            })),
            "XGROUP" if w[1] == "CREATE" => {
                if self.groups.contains_key(w[3]) {
                    return b"-BUSYGROUP Consumer Group name already exists\r\n".to_vec();
                }
                self.groups.insert(w[3].to_owned(), Group::default());
                b"+OK\r\n".to_vec()
            }
            "XGROUP" if w[1] == "DESTROY" => integer(self.groups.remove(w[3]).is_some().into()),
            "XREADGROUP" => self.read(w),
            _ => self.of_group(w),
        }
    }

    /// `XREADGROUP GROUP group consumer COUNT number STREAMS key >`.
    fn read(&mut self, w: &[&str]) -> Vec<u8> {
        let count: usize = w[5].parse().expect("the script writes numbers");
        let Some(group) = self.groups.get_mut(w[2]) else {
            let told = format!(
                "-NOGROUP No such key '{}' or consumer group '{}' in XREADGROUP with GROUP option\r\n",
                w[7], w[2]
            );
            return told.into_bytes();
        };
        let limit = if count == 0 { usize::MAX } else { count };
        let read: Vec<u64> = self.entries.range(group.next..).map(|(number, _)| *number).take(limit).collect();
        let Some(last) = read.last() else { return b"*-1\r\n".to_vec() };
        group.next = last + 1;
        group.consumers.insert(w[3].to_owned());
        group.pending.extend(read.iter().map(|number| (*number, w[3].to_owned())));
        encoded(|reply| {
            reply.array(1);
            reply.array(2);
            reply.bulk(w[7].as_bytes());
            self.write(reply, &read);
        })
    }

    /// Commands that need the group in the second argument.
    fn of_group(&mut self, w: &[&str]) -> Vec<u8> {
        let Some(group) = self.groups.get_mut(w[2]) else {
            if w[0] == "XACK" {
                return integer(0);
            }
            return format!("-NOGROUP No such key '{}' or consumer group '{}'\r\n", w[1], w[2]).into_bytes();
        };
        match w[0] {
            "XACK" => integer(w[3..].iter().filter(|id| group.pending.remove(&number(id)).is_some()).count()),
            "XPENDING" => {
                let mut owned: BTreeMap<&str, usize> = BTreeMap::new();
                group.pending.values().for_each(|consumer| *owned.entry(consumer).or_default() += 1);
                let ends = group.pending.keys().next().zip(group.pending.keys().next_back());
                encoded(|reply| {
                    reply.array(4);
                    reply.integer(group.pending.len() as i64);
                    let Some((first, last)) = ends else {
                        reply.null();
                        reply.null();
                        return reply.null_array();
                    };
                    reply.bulk(id(*first).as_bytes());
                    reply.bulk(id(*last).as_bytes());
                    reply.array(owned.len());
                    for (consumer, count) in owned {
                        reply.array(2);
                        reply.bulk(consumer.as_bytes());
                        reply.bulk(count.to_string().as_bytes());
                    }
                })
            }
            // `XCLAIM key group consumer 0 id JUSTID`.
            "XCLAIM" => {
                let wanted = number(w[5]);
                let is_there = self.entries.contains_key(&wanted);
                let was_pending = group.pending.remove(&wanted).is_some();
                let claimed = if was_pending && is_there { vec![wanted] } else { Vec::new() };
                group.pending.extend(claimed.iter().map(|number| (*number, w[3].to_owned())));
                encoded(|reply| ids(reply, &claimed))
            }
            // `XAUTOCLAIM key group consumer 0 id JUSTID`.
            "XAUTOCLAIM" => {
                let all: Vec<u64> = group.pending.range(number(w[5])..).map(|(number, _)| *number).collect();
                let (now, later) = all.split_at(all.len().min(100));
                let (claimed, gone): (Vec<u64>, Vec<u64>) =
                    now.iter().partition(|number| self.entries.contains_key(*number));
                gone.iter().for_each(|number| _ = group.pending.remove(number));
                group.pending.extend(claimed.iter().map(|number| (*number, w[3].to_owned())));
                encoded(|reply| {
                    reply.array(3);
                    reply.bulk(later.first().map_or("0-0".to_owned(), |next| id(*next)).as_bytes());
                    ids(reply, &claimed);
                    ids(reply, &gone);
                })
            }
            other => panic!("the model does not know {other}"),
        }
    }
}

/// The reply for a stream that does not exist; `None` if the command creates it.
pub(crate) fn without_stream(w: &[&str]) -> Option<Vec<u8>> {
    let makes = w[0] == "XADD" || w.contains(&"MKSTREAM");
    (!makes).then(|| match w[0] {
        "XRANGE" => b"*0\r\n".to_vec(),
        "XGROUP" => {
            b"-ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the \
            MKSTREAM option to create an empty stream automatically.\r\n"
                .to_vec()
        }
        // A stream without groups gives the same reply.
        _ => Stream::default().execute(w),
    })
}
