//! Requests that belong together, line by line: what each gets while all is well, what else it may get when its node is in
//! trouble, and what it writes.

use std::time::Instant;

use respool_testkit::{elements, reply_length, request};

use super::faults::{Faults, Unexplained};
use super::layout::Nodes;
use super::ledger::{Fate, Id, Ledger};

/// What a request gets.
#[derive(Debug, Clone)]
pub(super) enum Wanted {
    Nothing,
    Exactly(String),
    /// A reply that begins so: the rest differs from one server to the next.
    Beginning(&'static str),
    /// What a counter or a queue that all clients share has come to by its write.
    Total,
    /// A value that some client wrote to this key, or nothing.
    Value(String),
    /// What a replica may answer of a key that no other client writes, the oldest first: not older than what it answered before.
    Lagging(Vec<String>),
    /// The result of a transaction whose one request gives the old value: the same that this line got, unless another client
    /// came between and there is no result.
    SameAs(usize),
    /// An element of a queue of this name, or nothing in time.
    Element(String),
}

/// A request and what it gets.
#[derive(Debug, Clone)]
pub(super) struct Line {
    pub(super) words: Vec<String>,
    pub(super) wanted: Wanted,
    /// What it may get besides when something before it has failed or its node was replaced by another.
    or: Vec<String>,
    /// It may get that as well where a node was in trouble of which nothing before it had to be told.
    bends: bool,
    /// It is answered without a node.
    is_local: bool,
    /// What it writes, and into which database: the number of the write within the conversation.
    write: Option<(u16, u8)>,
    /// What becomes of the writes that are queued.
    block: Block,
}

/// What a line means for the transaction that is being queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Block {
    None,
    Queued,
    Executes,
    Drops,
    /// It shows whether this write, which had no reply, was done.
    Shows(u16),
}

pub(super) fn bulk(text: &str) -> String {
    format!("${}\r\n{text}\r\n", text.len())
}

/// A request to a node.
pub(super) fn say(words: &str, wanted: impl Into<String>) -> Line {
    let words = words.split(' ').map(str::to_owned).collect();
    let wanted = Wanted::Exactly(wanted.into());
    Line { words, wanted, or: Vec::new(), bends: false, is_local: false, write: None, block: Block::None }
}

/// A request that the proxy answers itself.
pub(super) fn locally(words: &str, wanted: impl Into<String>) -> Line {
    Line { is_local: true, ..say(words, wanted) }
}

/// A request without a reply.
pub(super) fn quietly(words: &str) -> Line {
    Line { wanted: Wanted::Nothing, ..say(words, "") }
}

impl Line {
    pub(super) fn or(mut self, reply: impl Into<String>) -> Line {
        self.or.push(reply.into());
        self
    }

    /// The same where a node was in trouble.
    pub(super) fn or_in_trouble(self, reply: impl Into<String>) -> Line {
        Line { bends: true, ..self.or(reply) }
    }

    pub(super) fn gets(self, wanted: Wanted) -> Line {
        Line { wanted, ..self }
    }

    pub(super) fn writes(self, part: u16, database: u8) -> Line {
        Line { write: Some((part, database)), ..self }
    }

    /// It is queued in a transaction, which is the proxy's own doing.
    pub(super) fn queued(self) -> Line {
        Line { block: Block::Queued, is_local: true, ..self }
    }

    pub(super) fn executes(self) -> Line {
        Line { block: Block::Executes, ..self }
    }

    pub(super) fn drops(self) -> Line {
        Line { block: Block::Drops, ..self }
    }

    pub(super) fn shows(self, part: u16) -> Line {
        Line { block: Block::Shows(part), ..self }
    }

    fn told(&self) -> String {
        self.words.join(" ").chars().take(100).collect()
    }

    fn is_answered(&self) -> bool {
        !matches!(self.wanted, Wanted::Nothing)
    }

    fn is_wanted(&self, reply: &[u8], before: &[&[u8]]) -> bool {
        match &self.wanted {
            Wanted::Nothing => false,
            Wanted::Exactly(wanted) => reply == wanted.as_bytes(),
            Wanted::Beginning(wanted) => reply.starts_with(wanted.as_bytes()),
            Wanted::Total => number(reply).is_some_and(|number| number > 0),
            Wanted::Value(_) => reply == b"$-1\r\n" || value(reply).and_then(Id::of).is_some(),
            Wanted::Lagging(contents) => age(contents, reply).is_some(),
            Wanted::SameAs(line) => {
                let read = before.get(*line).copied().unwrap_or_default();
                // What was read is not known if that has failed.
                let is_unread = read.starts_with(b"-");
                let is_value = |reply: &[u8]| reply == b"$-1\r\n" || value(reply).and_then(Id::of).is_some();
                let replaced = reply.strip_prefix(b"*1\r\n");
                reply == b"*-1\r\n" || replaced.is_some_and(|old| old == read || is_unread && is_value(old))
            }
            Wanted::Element(queue) => reply == b"*-1\r\n" || element(reply, queue).is_some(),
        }
    }
}

/// A conversation of one client.
#[derive(Debug, Clone)]
pub(super) struct Conversation {
    pub(super) lines: Vec<Line>,
    /// Where its keys are, and where reads may go to besides.
    pub(super) node: u8,
    pub(super) nodes: Nodes,
    pub(super) client: u64,
    pub(super) seq: u64,
}

/// How a conversation went.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Right,
    /// Something failed, as it may: the first error.
    Failed(Vec<u8>),
    /// The same, and nothing says why it took too long.
    Late(String),
    Wrong(String),
}

/// What a client knows of the time in which a conversation took place.
#[derive(Clone, Copy)]
pub(super) struct Meanwhile<'f> {
    pub(super) faults: &'f Faults,
    pub(super) since: Instant,
    /// A node was replaced by another server.
    pub(super) has_moved: bool,
}

impl Conversation {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        self.lines.iter().for_each(|line| out.extend_from_slice(&request(&line.words)));
    }

    /// How many replies belong to it, without what may come between them.
    pub(super) fn replies(&self) -> usize {
        self.lines.iter().filter(|line| line.is_answered()).count()
    }

    /// The client does not know how it ended.
    pub(super) fn abandon(&self, ledger: &mut Ledger) {
        self.end_all(Fate::Unknown, ledger);
    }

    /// All that it writes has ended so.
    pub(super) fn end_all(&self, fate: Fate, ledger: &mut Ledger) {
        for line in &self.lines {
            if let Some((part, database)) = line.write {
                self.note(part, database, fate, ledger);
            }
            if fate == Fate::Unknown {
                ledger.popped_perhaps += u64::from(matches!(line.wanted, Wanted::Element(_)));
            }
        }
    }

    fn note(&self, part: u16, database: u8, fate: Fate, ledger: &mut Ledger) {
        let id = Id { client: self.client, seq: self.seq, part };
        ledger.note(id, self.node, database, fate);
    }

    /// Judges all replies, with what came between them, and notes what was written.
    pub(super) fn check(
        &self,
        replies: &[u8],
        may_hear: impl Fn(&[u8]) -> bool,
        meanwhile: Meanwhile<'_>,
        ledger: &mut Ledger,
    ) -> Outcome {
        let (asides, replies): (Vec<&[u8]>, Vec<&[u8]>) = split(replies).partition(|reply| is_aside(reply));
        let mut wrong =
            asides.iter().find(|aside| !may_hear(aside)).map(|aside| format!("it was told {}", shown(aside)));
        let is_troubled = meanwhile.faults.were_in_trouble(self.nodes, meanwhile.since);
        let mut given = replies.iter();
        let mut before: Vec<&[u8]> = Vec::new();
        let mut first_error = None;
        let mut late = None;
        // Something before has ended in another way than it does while all is well.
        let mut is_otherwise = false;
        // The newest value that a replica has answered.
        let mut seen_age = None;
        let mut queued: Vec<(u16, u8)> = Vec::new();
        let mut quiet: Vec<(u16, u8)> = Vec::new();
        for line in &self.lines {
            if !line.is_answered() {
                quiet.extend(line.write);
                // Its error would have had no reply either.
                is_otherwise |= is_troubled && line.write.is_some();
                continue;
            }
            let Some(reply) = given.next() else {
                wrong.get_or_insert_with(|| "a reply is missing".to_owned());
                break;
            };
            let is_spoilt = line.block == Block::Executes && meanwhile.faults.were_changed(self.nodes, meanwhile.since);
            let is_doubtful = first_error.is_some() || meanwhile.has_moved || is_spoilt || is_otherwise;
            let mut fate = Fate::Done;
            let is_older = |contents: &[String]| {
                let older = age(contents, reply).is_some_and(|age| seen_age.is_some_and(|seen| age < seen));
                older && !is_troubled
            };
            let goes_back = matches!(&line.wanted, Wanted::Lagging(contents) if is_older(contents));
            let is_wanted = line.is_wanted(reply, &before) && !goes_back;
            if let Wanted::Lagging(contents) = &line.wanted {
                seen_age = age(contents, reply).max(seen_age);
            }
            if !is_wanted {
                let is_error = reply.starts_with(b"-");
                let error = meanwhile.faults.judge(reply, self.nodes, meanwhile.since);
                match error {
                    Ok(of_error) if is_error && !line.is_local => {
                        fate = of_error;
                        first_error.get_or_insert_with(|| reply.to_vec());
                    }
                    _ if (is_doubtful || line.bends && is_troubled)
                        && line.or.iter().any(|or| or.as_bytes() == *reply) =>
                    {
                        is_otherwise = true;
                        // A transaction without a result is not done; a write that finds something else is.
                        fate = if line.block == Block::Executes { Fate::NotDone } else { Fate::Done };
                    }
                    Err(why) if is_error => {
                        let told = format!("{} got {}: {}", line.told(), shown(reply), why.why());
                        match why {
                            Unexplained::Late(_, of_error) if !line.is_local => {
                                fate = of_error;
                                first_error.get_or_insert_with(|| reply.to_vec());
                                late.get_or_insert(told);
                            }
                            _ => {
                                fate = Fate::Unknown;
                                wrong.get_or_insert(told);
                            }
                        }
                    }
                    _ => {
                        fate = Fate::Unknown;
                        let behind = before.iter().map(|reply| shown(reply)).collect::<Vec<_>>().join(", ");
                        let changed = meanwhile.faults.last_change(self.nodes);
                        wrong.get_or_insert_with(|| {
                            format!("{} got {} behind {behind} ({changed})", line.told(), shown(reply))
                        });
                    }
                }
            } else if **reply == *b"*-1\r\n" {
                // Another client came between: nothing of the transaction is done.
                fate = Fate::NotDone;
            }
            self.learn(line, reply, fate, ledger);
            match line.block {
                Block::None => {
                    if let Some((part, database)) = line.write {
                        self.note(part, database, fate, ledger);
                    }
                }
                Block::Queued => queued.extend(line.write),
                Block::Executes | Block::Drops => {
                    let fate = if line.block == Block::Drops { Fate::NotDone } else { fate };
                    queued.drain(..).for_each(|(part, database)| self.note(part, database, fate, ledger));
                }
                Block::Shows(part) => {
                    // The reply shows nothing if another request has failed.
                    if is_wanted && let Some(at) = quiet.iter().position(|(quiet, _)| *quiet == part) {
                        let (part, database) = quiet.remove(at);
                        self.note(part, database, Fate::Done, ledger);
                    }
                }
            }
            before.push(reply);
        }
        if given.next().is_some() {
            wrong.get_or_insert_with(|| "there are more replies than requests".to_owned());
        }
        // What had no reply and was not shown either has to be done all the same, unless its node was in trouble.
        let fate = if is_troubled { Fate::Unknown } else { Fate::Done };
        quiet.into_iter().for_each(|(part, database)| self.note(part, database, fate, ledger));
        queued.into_iter().for_each(|(part, database)| self.note(part, database, Fate::Unknown, ledger));
        match (wrong, late, first_error) {
            (Some(wrong), ..) => Outcome::Wrong(wrong),
            (None, Some(late), _) => Outcome::Late(late),
            (None, None, Some(error)) => Outcome::Failed(error),
            (None, None, None) => Outcome::Right,
        }
    }

    fn learn(&self, line: &Line, reply: &[u8], fate: Fate, ledger: &mut Ledger) {
        match &line.wanted {
            Wanted::Total => {
                let id = line.write.map(|(part, _)| Id { client: self.client, seq: self.seq, part });
                ledger.totals.extend(id.zip(number(reply)).filter(|_| fate == Fate::Done));
            }
            Wanted::Value(key) => {
                if let Some(id) = value(reply).and_then(Id::of) {
                    ledger.note_read(id, key);
                }
            }
            Wanted::Element(queue) => match element(reply, queue) {
                Some(id) => ledger.popped.push(id),
                None => ledger.popped_perhaps += u64::from(fate == Fate::Unknown),
            },
            _ => {}
        }
    }
}

/// Whether this is no reply: it may come at any time.
pub(super) fn is_aside(reply: &[u8]) -> bool {
    reply.first() == Some(&b'>')
        && matches!(elements(reply).first(), Some(&b"$7\r\nmessage\r\n" | &b"$10\r\ninvalidate\r\n"))
}

/// Replies that stand one behind the other.
fn split(mut replies: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let length = reply_length(replies).ok().flatten()?;
        let (reply, rest) = replies.split_at(length);
        replies = rest;
        Some(reply)
    })
}

/// The place of a reply among contents that are ordered by age.
fn age(contents: &[String], reply: &[u8]) -> Option<usize> {
    contents.iter().position(|content| content.as_bytes() == reply)
}

fn number(reply: &[u8]) -> Option<u64> {
    let digits = reply.strip_prefix(b":")?.strip_suffix(b"\r\n")?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// The content of a bulk reply.
fn value(bulk: &[u8]) -> Option<&[u8]> {
    let start = bulk.strip_prefix(b"$")?.iter().position(|&byte| byte == b'\n')? + 2;
    bulk.get(start..)?.strip_suffix(b"\r\n")
}

/// The element of a queue that a pop gave.
fn element(reply: &[u8], queue: &str) -> Option<Id> {
    let rest = reply.strip_prefix(b"*2\r\n")?.strip_prefix(bulk(queue).as_bytes())?;
    Id::of(value(rest)?)
}

fn shown(reply: &[u8]) -> String {
    format!("{:?}", String::from_utf8_lossy(&reply[..reply.len().min(160)]))
}
