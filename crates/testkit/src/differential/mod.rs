//! The same script to two servers, reply by reply.

pub(crate) mod differences;
mod state;

use std::collections::BTreeMap;
use std::io;

use crate::differential::differences::{Likeness, is_refused_by_engines};
use crate::differential::state::States;
use crate::{Address, Client, Request, Rng, Script, Subset, elements, request};

/// Requests sent in one go at most.
const BATCH_MAX: usize = 40;
/// Requests between two comparisons of all that is stored.
const STATE_AFTER: usize = 200;
/// Requests before a difference that are told of with it.
const HISTORY_MAX: usize = 12;
/// Requests that are looked through for those.
const HISTORY_KEPT: usize = 5_000;

/// A comparison to be made.
#[derive(Debug, Clone, Copy)]
pub struct Comparison {
    /// What both servers can do.
    pub subset: Subset,
    /// The protocol version that both clients ask for: 2 or 3.
    pub protocol: u8,
    /// Requests to send to each.
    pub requests: usize,
    /// What the script follows from.
    pub seed: u64,
}

/// Two replies that are not as much alike as they have to be.
#[derive(Debug)]
pub struct Disagreement {
    /// The command's first words, in capitals.
    pub command: String,
    /// Everything that is known of it, as text.
    pub told: String,
    /// It follows from what was asked: a script answered in types of RESP3, which a node that speaks RESP2 alone cannot
    /// pass on.
    pub is_lost_by_resp2: bool,
    /// It follows from what the first server was asked before: a number out of range, after which it refuses to sort any.
    pub is_stale_error: bool,
}

/// What redis-server says then: it asks `strtod` for an error and does not clear the one before.
const STALE_ERROR: &[u8] = b"-ERR One or more scores can't be converted into double\r\n";

/// Sends one script to both servers in pipelines and odd pieces; returns how many replies were errors, or fails with
/// the first difference, the requests before it that share a key with it, and the seed.
pub fn compare(expected: &Address, subject: &Address, comparison: &Comparison) -> io::Result<usize> {
    let mut run = Run::new(expected, subject, comparison)?;
    let mut left = comparison.requests;
    while left > 0 {
        if let Some(found) = run.batch(&mut left)? {
            return Err(io::Error::other(found.told));
        }
    }
    Ok(run.errors)
}

/// What came of a comparison.
#[derive(Debug, Default)]
pub struct Compared {
    /// Differences.
    pub found: Vec<Disagreement>,
    /// Replies that were compared, in which way.
    pub replies: BTreeMap<Likeness, usize>,
    /// Keys whose values were compared, each time that all are.
    pub keys: usize,
}

/// As [`compare`], but goes on after a difference, with both servers emptied, until `most` were found, and compares now and then what
/// is stored: value, encoding and whether it expires.
pub fn compare_all(
    expected: &Address,
    subject: &Address,
    comparison: &Comparison,
    most: usize,
) -> io::Result<Compared> {
    let mut run = Run::new(expected, subject, comparison)?;
    let mut states = States::new(expected, subject)?;
    let (mut found, mut keys) = (Vec::new(), 0);
    let (mut left, mut left_then) = (comparison.requests, comparison.requests);
    let mut is_over = false;
    while !is_over && found.len() < most {
        let mut one = if left > 0 { run.batch(&mut left)? } else { None };
        is_over = left == 0;
        if one.is_none() && (is_over || left + STATE_AFTER <= left_then) {
            left_then = left;
            match states.compare()? {
                Ok(compared) => keys += compared,
                Err(difference) => one = Some(run.difference_of_state(&difference)),
            }
        }
        if let Some(one) = one {
            found.push(one);
            run.begin_anew(expected, subject)?;
        }
    }
    Ok(Compared { found, replies: run.compared, keys })
}

/// As [`compare_all`], one request at a time, of a server with one engine and one with several: what the latter refuses because it is
/// not in one engine is not sent to the former, in whose transaction an error takes its place.
pub fn compare_engines(
    one: &Address,
    several: &Address,
    comparison: &Comparison,
    most: usize,
) -> io::Result<(Vec<Disagreement>, BTreeMap<Likeness, usize>)> {
    let mut run = Run::new(one, several, comparison)?;
    let mut found = Vec::new();
    for _ in 0..comparison.requests {
        if found.len() == most {
            break;
        }
        if let Some(one_found) = run.request()? {
            found.push(one_found);
            run.begin_anew(one, several)?;
        }
    }
    Ok((found, run.compared))
}

/// A script under way.
struct Run<'c> {
    comparison: &'c Comparison,
    script: Script,
    rng: Rng,
    clients: [Client; 2],
    history: Vec<Request>,
    errors: usize,
    compared: BTreeMap<Likeness, usize>,
}

impl<'c> Run<'c> {
    fn new(expected: &Address, subject: &Address, comparison: &'c Comparison) -> io::Result<Self> {
        Ok(Run {
            comparison,
            script: Script::new(comparison.seed, comparison.subset),
            rng: Rng::part(comparison.seed, 1),
            clients: connect(expected, subject, comparison.protocol)?,
            history: Vec::new(),
            errors: 0,
            compared: BTreeMap::new(),
        })
    }

    /// Both servers are emptied and both clients replaced: what follows a difference says nothing.
    fn begin_anew(&mut self, expected: &Address, subject: &Address) -> io::Result<()> {
        self.clients = connect(expected, subject, self.comparison.protocol)?;
        for client in &mut self.clients {
            for words in ["FLUSHALL", "SCRIPT FLUSH", "FUNCTION FLUSH"] {
                client.ask(words)?;
            }
        }
        self.history.clear();
        Ok(())
    }

    /// Sends and compares some requests; gives the first difference among them.
    fn batch(&mut self, left: &mut usize) -> io::Result<Option<Disagreement>> {
        let count = self.rng.between(1, BATCH_MAX).min(*left);
        *left -= count;
        let batch: Vec<Request> = (0..count).map(|_| self.script.next_request()).collect();
        let bytes: Vec<u8> = batch.iter().flat_map(|one| request(&one.arguments)).collect();
        self.clients[0].send(&bytes)?;
        let piece = *self.rng.pick(&[usize::MAX, 5_000, 100]);
        self.clients[1].send_in_pieces(&bytes, piece.min(bytes.len()))?;
        for sent in batch {
            let said = self.clients[0].reply()?;
            let heard = match self.clients[1].reply() {
                Ok(heard) => heard,
                Err(error) => {
                    return Ok(Some(self.disagreement(&sent, &said, format!("{error} instead of {}", shown(&said)))));
                }
            };
            if let Some(found) = self.settle(sent, &said, &heard) {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Sends one request, to the subject first.
    fn request(&mut self) -> io::Result<Option<Disagreement>> {
        let sent = self.script.next_request();
        let heard = match self.walk(&sent.arguments) {
            Ok(heard) => heard,
            Err(error) => return Ok(Some(self.disagreement(&sent, b"", error.to_string()))),
        };
        if is_refused_by_engines(&heard) {
            // Without a transaction this changes nothing.
            self.clients[0].ask("NOSUCHCOMMAND")?;
            return Ok(None);
        }
        let said = self.clients[0].command(&sent.arguments)?;
        Ok(self.settle(sent, &said, &heard))
    }

    /// What the subject replies: to `SCAN`, in the end, with the keys of all its steps, which takes one for each engine.
    fn walk(&mut self, arguments: &[Vec<u8>]) -> io::Result<Vec<u8>> {
        let subject = &mut self.clients[1];
        let mut reply = subject.command(arguments)?;
        if !arguments[0].eq_ignore_ascii_case(b"SCAN") {
            return Ok(reply);
        }
        let mut keys: Vec<Vec<u8>> = Vec::new();
        let mut next = arguments.to_vec();
        while let [cursor, found] = elements(&reply)[..] {
            keys.extend(elements(found).into_iter().map(<[u8]>::to_vec));
            next[1] = cursor.split(|byte| *byte == b'\n').nth(1).unwrap_or_default().trim_ascii().to_vec();
            if next[1] == b"0" {
                let head = format!("*2\r\n$1\r\n0\r\n*{}\r\n", keys.len()).into_bytes();
                return Ok([head, keys.concat()].concat());
            }
            reply = subject.command(&next)?;
        }
        Ok(reply)
    }

    /// Compares two replies, and remembers what was asked if they are as much alike as they have to be.
    fn settle(&mut self, sent: Request, said: &[u8], heard: &[u8]) -> Option<Disagreement> {
        if !are_alike(sent.likeness, said, heard) {
            let replies = format!("\nexpected {}\nsubject  {}", shown(said), shown(heard));
            return Some(self.disagreement(&sent, said, replies));
        }
        *self.compared.entry(sent.likeness).or_default() += 1;
        self.errors += usize::from(said.starts_with(b"-"));
        if self.history.len() >= 2 * HISTORY_KEPT {
            self.history.drain(..HISTORY_KEPT);
        }
        self.history.push(sent);
        None
    }

    fn difference_of_state(&self, difference: &str) -> Disagreement {
        let last: Vec<String> = self.history.iter().rev().take(STATE_AFTER + BATCH_MAX).map(line).collect();
        let after: Vec<String> = last.into_iter().rev().collect();
        Disagreement {
            command: "what is stored".to_owned(),
            told: format!("{difference}, {:?}\nafter\n  {}", self.comparison, after.join("\n  ")),
            is_lost_by_resp2: false,
            is_stale_error: false,
        }
    }

    fn disagreement(&self, sent: &Request, said: &[u8], replies: String) -> Disagreement {
        let words: Vec<String> = sent.arguments.iter().take(2).map(|word| shown(word).to_uppercase()).collect();
        let after = tell(&self.history, sent);
        let asks_for_resp3 = |argument: &Vec<u8>| argument.starts_with(b"redis.setresp(3)");
        Disagreement {
            command: words.join(" "),
            told: format!("replies differ, {:?}{replies}{after}", self.comparison),
            is_lost_by_resp2: sent.arguments.iter().any(asks_for_resp3),
            is_stale_error: self.comparison.subset == Subset::EmbeddedTable && contains(said, STALE_ERROR),
        }
    }
}

/// Whether a reply, which may be that to a transaction, has this as a part.
fn contains(reply: &[u8], part: &[u8]) -> bool {
    reply.windows(part.len()).any(|window| window == part)
}

fn connect(expected: &Address, subject: &Address, protocol: u8) -> io::Result<[Client; 2]> {
    let mut clients = [Client::connect(expected)?, Client::connect(subject)?];
    if protocol == 3 {
        for client in &mut clients {
            client.ask("HELLO 3")?;
        }
    }
    Ok(clients)
}

/// Whether two replies are as much alike as they have to be. Errors always have to be the same, but for those of kinds.
pub fn are_alike(likeness: Likeness, said: &[u8], heard: &[u8]) -> bool {
    let is_error = said.starts_with(b"-") || heard.starts_with(b"-");
    match likeness {
        Likeness::Same => said == heard,
        _ if said == heard => true,
        Likeness::Kind => said.starts_with(b"-") == heard.starts_with(b"-"),
        _ if is_error => false,
        Likeness::Unordered => sorted(said) == sorted(heard),
        Likeness::Alike => skeleton(said) == skeleton(heard),
        Likeness::NotSent => false,
    }
}

/// A reply with the elements of its aggregates in order.
fn sorted(reply: &[u8]) -> Vec<u8> {
    let Some((head, elements)) = opened(reply) else { return reply.to_vec() };
    let mut elements: Vec<Vec<u8>> = elements.into_iter().map(sorted).collect();
    elements.sort_unstable();
    [head.to_vec(), elements.concat()].concat()
}

/// The types of a reply's parts and the lengths of its aggregates.
fn skeleton(reply: &[u8]) -> Vec<u8> {
    match opened(reply) {
        Some((head, elements)) => [head.to_vec(), elements.into_iter().flat_map(skeleton).collect()].concat(),
        None => reply.iter().take(1).copied().collect(),
    }
}

/// An aggregate's first line and elements.
fn opened(reply: &[u8]) -> Option<(&[u8], Vec<&[u8]>)> {
    let is_aggregate = matches!(reply.first(), Some(b'*' | b'~' | b'%' | b'>'));
    let head = reply.iter().position(|&byte| byte == b'\n').map_or(reply.len(), |at| at + 1);
    is_aggregate.then(|| (&reply[..head], elements(reply)))
}

/// The request that differed and the last ones before it that have an argument in common with it.
fn tell(history: &[Request], last: &Request) -> String {
    let related = |one: &&Request| one.arguments[1..].iter().any(|argument| last.arguments[1..].contains(argument));
    let mut lines: Vec<String> = history.iter().rev().filter(related).take(HISTORY_MAX).map(line).collect();
    lines.reverse();
    lines.push(line(last));
    format!("\nafter\n  {}", lines.join("\n  "))
}

fn line(request: &Request) -> String {
    request.arguments.iter().map(|argument| shown(argument)).collect::<Vec<_>>().join(" ")
}

fn shown(bytes: &[u8]) -> String {
    let start = &bytes[..bytes.len().min(300)];
    let text = start.escape_ascii().to_string();
    if start.len() < bytes.len() { format!("{text}... ({} bytes)", bytes.len()) } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_as_alike_as_they_have_to_be() {
        let (one, other) = (b"*2\r\n:1\r\n*2\r\n+a\r\n+b\r\n", b"*2\r\n*2\r\n+b\r\n+a\r\n:1\r\n");
        assert!(are_alike(Likeness::Unordered, one, other) && !are_alike(Likeness::Same, one, other));
        assert!(!are_alike(Likeness::Alike, one, other) && are_alike(Likeness::Kind, one, other));
        assert!(are_alike(Likeness::Alike, b"*1\r\n$1\r\na\r\n", b"*1\r\n$2\r\nab\r\n"));
        assert!(!are_alike(Likeness::Alike, b"-ERR a\r\n", b"-ERR b\r\n"));
        assert!(!are_alike(Likeness::Kind, b"-ERR a\r\n", b"+OK\r\n"));
    }
}
