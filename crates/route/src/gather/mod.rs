//! Joining the replies of several nodes to the one reply that the client waits for.
//!
//! A gather is begun for a request that was split or sent to all, hears each part's complete reply once, in whatever order
//! the nodes answer, and writes the joint reply. The order of arrival never shows: what is compared is compared by part.
//!
//! | response policy | joint reply | kept meanwhile |
//! |---|---|---|
//! | key order | array of the elements, each at its key's place | the elements |
//! | concat | aggregate of all elements, part by part | the elements |
//! | sum, min, max | integer | one number |
//! | and, or | integer, or array of integers | one number an element |
//! | all succeeded | the first part's | one reply |
//! | one succeeded | the first part's that is no error | one reply |
//! | random, newest, figures, texts, busiest, sections, scan | see `merge` | all replies |
//!
//! What does not fit is an error, never a wrong reply. A part that fails (its reply is an error, of a type that cannot be
//! joined, or an array of the wrong length) fails the whole, with the message of the first part that failed; only under
//! "one succeeded" every part has to fail. The others may have been executed, so a number behind the message says how many
//! failed. From the first failure on nothing but messages is kept.

mod info;
mod merge;

use respool_command::{ResponsePolicy, Row};
use respool_wire::{Args, Elements, Encoder, Protocol, ReplyKind, Value, elements};

use crate::gather::merge::Merge;
use crate::limits::{FAILURE_TEXT_BYTES_MAX, GATHER_BYTES_KEPT, GATHER_ITEMS_KEPT};
use crate::scan::ScanStep;
use crate::split::Scratch;

/// Joins replies. Made to be reused: it keeps its memory, within limits.
#[derive(Debug, Default)]
pub struct Gather {
    join: Join,
    /// How whole replies are joined, where they are.
    merge: Option<Merge>,
    /// The command's row. `None`: it waits for nothing.
    row: Option<&'static Row>,
    parts: Vec<Heard>,
    pending: usize,
    failed: usize,
    /// Parts that have no reply, and need none.
    passed: usize,
    /// The first part that failed, and what it said.
    failure: Option<(usize, Vec<u8>)>,
    /// The first part that is fit to be the reply, where one is chosen.
    chosen: Option<usize>,
    /// What the first answer was like, and whether another was not.
    form: Option<Form>,
    is_mixed: bool,
    /// For each key, its part. Key order only.
    owners: Vec<u16>,
    /// Where in `bytes` each element ends, part by part. Key order only.
    ends: Vec<usize>,
    /// The chosen reply, or the elements of aggregates.
    bytes: Vec<u8>,
    /// The numbers so far: one for integers, one an element for arrays.
    numbers: Vec<i128>,
    /// The fold of each element, where they differ.
    folds: Vec<Fold>,
}

/// What is known of one part.
#[derive(Clone, Copy, Debug, Default)]
struct Heard {
    is_in: bool,
    /// Keys that it was sent.
    keys: usize,
    /// Elements of its reply; a pair of a map counts twice.
    elements: u64,
    /// Where in `bytes` its elements are. `start` moves on when they are taken.
    start: usize,
    end: usize,
    /// Where in `ends` the end of its next element is.
    next: usize,
}

/// What replies are joined to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Join {
    #[default]
    AllSucceeded,
    OneSucceeded,
    KeyOrder,
    Concat,
    Number(Fold),
    /// All replies are kept, and understood at the end.
    Whole,
}

/// How two numbers become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fold {
    Sum,
    Min,
    Max,
    And,
    Or,
}

/// What replies must agree in, in order to be joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Aggregate(ReplyKind),
    Integer,
    /// An array of this many integers.
    Integers(u64),
}

impl Gather {
    /// A gather that waits for nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins to wait for the parts of a request of `row` that was just planned as [`Plan::Split`](crate::Plan::Split).
    pub fn begin_split(&mut self, row: &'static Row, scratch: &Scratch) {
        self.begin(row, scratch.parts().map(|part| part.keys.len()));
        if self.join == Join::KeyOrder {
            self.owners.extend_from_slice(scratch.owners());
        }
    }

    /// Begins to wait for all nodes, of which there are `nodes`, for a request planned as [`Plan::All`](crate::Plan::All).
    /// `chance` is any number; where one of several replies is picked, it decides which.
    pub fn begin_all(&mut self, row: &'static Row, args: Args<'_>, nodes: usize, chance: u64) {
        self.begin(row, std::iter::repeat_n(0, nodes));
        self.merge = match row.response_policy {
            ResponsePolicy::Random => Some(Merge::Random(chance)),
            ResponsePolicy::Newest => Some(Merge::Newest { most: entries_asked(args), nodes: Vec::new() }),
            ResponsePolicy::Figures => Some(Merge::Figures),
            ResponsePolicy::Texts => Some(Merge::Texts),
            ResponsePolicy::Busiest => Some(Merge::Busiest),
            ResponsePolicy::Sections => Some(Merge::Sections { own: String::new(), behind: String::new() }),
            _ => None,
        };
        if self.merge.is_some() {
            self.join = Join::Whole;
        }
    }

    /// Sets the policy for each number of the replies; further numbers are joined by the row's policy. Only right after
    /// `begin_all`, for a request whose replies are arrays of numbers.
    pub fn join_each_by(&mut self, policies: impl IntoIterator<Item = ResponsePolicy>) {
        let fold = |policy| match Join::of(policy) {
            Join::Number(fold) => Some(fold),
            _ => None,
        };
        self.folds.extend(policies.into_iter().map_while(fold));
    }

    /// Puts text of the proxy's own before what the nodes have in sum. Only for a request of that policy, just begun.
    pub fn precede_by(&mut self, text: String) {
        if let Some(Merge::Sections { own, .. }) = &mut self.merge {
            *own = text;
        }
    }

    /// Appends lines of one section behind the text of the nodes. The heading is written once.
    pub fn follow_by(&mut self, heading: &str, lines: &str) {
        if let Some(Merge::Sections { behind, .. }) = &mut self.merge {
            behind.push_str(if behind.is_empty() { heading } else { "" });
            behind.push_str(lines);
        }
    }

    /// Has entries of logs say which node they are of. `name` gives the name of a part's node; one that answers alone needs none.
    /// Only for a request to all nodes, just begun.
    pub fn name_parts<'a>(&mut self, name: impl Fn(usize) -> &'a str) {
        let parts = self.parts.len();
        if let Some(Merge::Newest { nodes, .. }) = &mut self.merge
            && parts > 1
        {
            nodes.extend((0..parts).map(|part| name(part).to_owned()));
        }
    }

    /// Begins to wait for one step of a walk over all nodes.
    pub fn begin_scan(&mut self, row: &'static Row, step: ScanStep) {
        self.begin(row, std::iter::once(0));
        self.join = Join::Whole;
        self.merge = Some(Merge::Scan(step));
    }

    fn begin(&mut self, row: &'static Row, keys: impl Iterator<Item = usize>) {
        self.clear();
        self.row = Some(row);
        self.join = Join::of(row.response_policy);
        self.parts.extend(keys.map(|keys| Heard { keys, ..Heard::default() }));
        self.pending = self.parts.len();
    }

    /// The command's name, for messages.
    fn command(&self) -> &'static str {
        self.row.map_or("", Row::full_name)
    }

    /// Whether every part has answered, so that [`finish`](Self::finish) may be called.
    #[inline]
    pub fn is_complete(&self) -> bool {
        self.pending == 0
    }

    /// Bytes that are held for the parts that answered so far. Grows with what nodes send; budgets are checked against it.
    pub fn held_bytes(&self) -> usize {
        self.bytes.len() + size_of_val(&self.ends[..]) + size_of_val(&self.numbers[..])
    }

    /// Memory that it takes before anything has come.
    pub fn frame_bytes(&self) -> usize {
        self.parts.capacity() * size_of::<Heard>() + self.owners.capacity() * size_of::<u16>()
    }

    /// The joint reply is not wanted any more: nothing is kept of what has come or will.
    pub fn give_up(&mut self) {
        self.failed += 1;
        self.forget_replies();
        self.chosen = None;
        self.failure.get_or_insert_with(|| (usize::MAX, Vec::new()));
        (self.join, self.merge) = (Join::AllSucceeded, None);
    }

    /// Hears the complete reply of part `part`, in the client's dialect, with the kind that the scanner found. An error
    /// made here because a node did not answer is as good as the node's own. A part is heard once: what comes after that,
    /// or for a part that does not exist, is ignored.
    pub fn accept(&mut self, part: usize, kind: ReplyKind, reply: &[u8]) {
        let Some(heard) = self.parts.get_mut(part).filter(|heard| !heard.is_in) else { return };
        heard.is_in = true;
        self.pending -= 1;
        if kind.is_error() {
            return self.fail(part, error_text(reply));
        }
        let fits = match self.join {
            Join::AllSucceeded | Join::OneSucceeded => self.choose(part, reply),
            Join::KeyOrder => self.keep_apart(part, reply),
            Join::Concat => self.keep(part, reply),
            Join::Number(fold) => self.count(fold, kind, reply),
            Join::Whole => self.keep_whole(part, reply),
        };
        if !fits {
            let text = format!("ERR a node gave '{}' a reply that cannot be joined with others", self.command());
            self.fail(part, text.into_bytes());
        }
    }

    /// Part `part` of a request to all nodes has no reply: its node has left meanwhile, or has become one with another that is asked.
    pub fn pass_over(&mut self, part: usize) {
        if let Some(heard) = self.parts.get_mut(part).filter(|heard| !heard.is_in) {
            heard.is_in = true;
            (self.pending, self.passed) = (self.pending - 1, self.passed + 1);
        }
    }

    /// Appends the joint reply and forgets everything. Panics unless [`is_complete`](Self::is_complete).
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        assert!(self.is_complete(), "a joint reply needs every part's");
        // The elements are in the client's dialect; in RESP3 the encoder writes just the head that it is told.
        let mut reply = Encoder::new(out, Protocol::Resp3);
        let has_some = self.parts.iter().any(|heard| heard.end > heard.start);
        let is_rest_enough = self.forgives() && (has_some || self.merge.as_ref().is_some_and(Merge::has_own));
        let is_chosen = self.join == Join::OneSucceeded && self.chosen.is_some() || is_rest_enough;
        match &self.failure {
            Some((_, text)) if !is_chosen => reply.error(&self.counted(text)),
            _ if self.is_mixed => {
                reply.error(format!("ERR the nodes' replies to '{}' are not alike", self.command()).as_bytes());
            }
            _ => self.write(&mut reply),
        }
        self.clear();
    }

    /// A failed part's message, and how many failed unless all did.
    fn counted(&self, text: &[u8]) -> Vec<u8> {
        let (failed, parts) = (self.failed, self.parts.len() - self.passed);
        let count = if failed < parts { format!(" ({failed} of {parts} nodes failed)") } else { String::new() };
        [text.trim_ascii_end(), count.as_bytes()].concat()
    }

    /// Writes what the parts come to, none of which failed.
    fn write(&mut self, reply: &mut Encoder<'_>) {
        match self.join {
            Join::AllSucceeded | Join::OneSucceeded => reply.raw(&self.bytes),
            Join::KeyOrder => self.write_in_key_order(reply),
            Join::Concat => self.write_part_by_part(reply),
            Join::Number(_) => self.write_numbers(reply),
            Join::Whole => self.write_merged(reply),
        }
    }

    fn write_merged(&self, reply: &mut Encoder<'_>) {
        let replies: Vec<&[u8]> = self
            .parts
            .iter()
            .filter(|heard| heard.end > heard.start)
            .map(|heard| &self.bytes[heard.start..heard.end])
            .collect();
        let is_merged = self.merge.as_ref().is_some_and(|merge| merge.write(&replies, reply));
        if !is_merged {
            reply.error(format!("ERR the nodes' replies to '{}' cannot be joined", self.command()).as_bytes());
        }
    }

    /// Whether parts may fail without failing the whole.
    fn forgives(&self) -> bool {
        self.merge.as_ref().is_some_and(Merge::forgives)
    }

    fn write_in_key_order(&mut self, reply: &mut Encoder<'_>) {
        reply.array(self.owners.len());
        for owner in &self.owners {
            let heard = &mut self.parts[usize::from(*owner)];
            let end = self.ends[heard.next];
            reply.raw(&self.bytes[heard.start..end]);
            heard.start = end;
            heard.next += 1;
        }
    }

    fn write_part_by_part(&self, reply: &mut Encoder<'_>) {
        let elements = self.parts.iter().map(|heard| heard.elements).sum::<u64>() as usize;
        match self.form {
            Some(Form::Aggregate(ReplyKind::Map)) => reply.map(elements / 2),
            Some(Form::Aggregate(ReplyKind::Set)) => reply.set(elements),
            _ => reply.array(elements),
        }
        self.parts.iter().for_each(|heard| reply.raw(&self.bytes[heard.start..heard.end]));
    }

    fn write_numbers(&self, reply: &mut Encoder<'_>) {
        if self.numbers.iter().any(|number| i64::try_from(*number).is_err()) {
            return reply.error(format!("ERR the nodes' replies to '{}' overflow", self.command()).as_bytes());
        }
        if let Some(Form::Integers(length)) = self.form {
            reply.array(length as usize);
        }
        self.numbers.iter().for_each(|number| reply.integer(*number as i64));
    }

    /// Keeps the reply if its part comes before those that answered so far.
    fn choose(&mut self, part: usize, reply: &[u8]) -> bool {
        let is_wanted = self.failed == 0 || self.join == Join::OneSucceeded;
        if is_wanted && self.chosen.is_none_or(|chosen| part < chosen) {
            self.chosen = Some(part);
            self.bytes.clear();
            self.bytes.extend_from_slice(reply);
        }
        true
    }

    /// Keeps the elements of an array, and where each ends; says whether it is one with an element for each key.
    fn keep_apart(&mut self, part: usize, reply: &[u8]) -> bool {
        let Some(walk) = elements(reply) else { return false };
        let heard = &mut self.parts[part];
        if walk.kind() != ReplyKind::Array || walk.declared() != heard.keys as u64 {
            return false;
        }
        heard.start = self.bytes.len();
        heard.next = self.ends.len();
        let mut end = heard.start;
        self.ends.extend(walk.clone().map(|element| {
            end += element.len();
            end
        }));
        heard.end = end;
        let is_whole = self.ends.len() - heard.next == heard.keys;
        if self.failed == 0 {
            self.bytes.extend_from_slice(&walk.rest()[..end - heard.start]);
        } else {
            self.ends.clear();
        }
        is_whole
    }

    /// Keeps the elements of an aggregate; says whether it is one.
    fn keep(&mut self, part: usize, reply: &[u8]) -> bool {
        let Some(walk) = elements(reply).filter(|walk| walk.kind() != ReplyKind::Push) else { return false };
        if self.agrees(Form::Aggregate(walk.kind())) {
            let start = self.bytes.len();
            self.bytes.extend_from_slice(walk.rest());
            let heard = &mut self.parts[part];
            *heard = Heard { elements: walk.declared(), start, end: self.bytes.len(), ..*heard };
        }
        true
    }

    /// Keeps a reply as it is.
    fn keep_whole(&mut self, part: usize, reply: &[u8]) -> bool {
        if self.failed == 0 || self.forgives() {
            let start = self.bytes.len();
            self.bytes.extend_from_slice(reply);
            let heard = &mut self.parts[part];
            *heard = Heard { start, end: self.bytes.len(), ..*heard };
        }
        true
    }

    /// Folds an integer or an array of integers into the numbers so far; says whether it is one.
    fn count(&mut self, fold: Fold, kind: ReplyKind, reply: &[u8]) -> bool {
        if kind != ReplyKind::Integer {
            return elements(reply).is_some_and(|walk| self.count_each(fold, walk));
        }
        let number = integer(reply);
        if let Some(number) = number.filter(|_| self.agrees(Form::Integer)) {
            self.fold(fold, 0, number);
        }
        number.is_some()
    }

    fn count_each(&mut self, fold: Fold, walk: Elements<'_>) -> bool {
        if walk.kind() != ReplyKind::Array || !walk.clone().all(|element| integer(element).is_some()) {
            return false;
        }
        if self.agrees(Form::Integers(walk.declared())) {
            walk.filter_map(integer).enumerate().for_each(|(at, number)| self.fold(fold, at, number));
        }
        true
    }

    /// Folds `number` into the one at place `at`, or puts it there if it is the first.
    fn fold(&mut self, fold: Fold, at: usize, number: i64) {
        let fold = self.folds.get(at).copied().unwrap_or(fold);
        let number = fold.entry(i128::from(number));
        match self.numbers.get_mut(at) {
            Some(so_far) => *so_far = fold.joined(*so_far, number),
            None => self.numbers.push(number),
        }
    }

    /// Notes what a reply is like; says whether it is worth keeping.
    fn agrees(&mut self, form: Form) -> bool {
        if *self.form.get_or_insert(form) != form {
            self.is_mixed = true;
            self.forget_replies();
        }
        !self.is_mixed && self.failed == 0
    }

    fn fail(&mut self, part: usize, text: Vec<u8>) {
        self.failed += 1;
        if self.failure.as_ref().is_none_or(|(earlier, _)| part < *earlier) {
            self.failure = Some((part, text));
        }
        if self.join != Join::OneSucceeded && !self.forgives() {
            self.forget_replies();
        }
    }

    /// Gives up what was kept of replies, and the memory too if it was much.
    fn forget_replies(&mut self) {
        reset(&mut self.bytes, GATHER_BYTES_KEPT);
        reset(&mut self.ends, GATHER_ITEMS_KEPT);
        reset(&mut self.numbers, GATHER_ITEMS_KEPT);
    }

    fn clear(&mut self) {
        self.forget_replies();
        reset(&mut self.owners, GATHER_ITEMS_KEPT);
        reset(&mut self.folds, GATHER_ITEMS_KEPT);
        self.parts.clear();
        (self.pending, self.failed, self.passed, self.is_mixed) = (0, 0, 0, false);
        (self.failure, self.chosen, self.form, self.merge) = (None, None, None, None);
    }
}

/// How many entries `SLOWLOG GET [count]` asks for: ten unless it says otherwise, all with -1.
fn entries_asked(args: Args<'_>) -> usize {
    const USUAL: usize = 10;
    let said = args.get(2).and_then(|text| std::str::from_utf8(text).ok()).and_then(|text| text.parse::<i64>().ok());
    said.map_or(USUAL, |count| usize::try_from(count).unwrap_or(usize::MAX))
}

fn reset<T>(items: &mut Vec<T>, kept: usize) {
    items.clear();
    items.shrink_to(kept);
}

/// The message of an error reply.
fn error_text(reply: &[u8]) -> Vec<u8> {
    match Value::parse(reply) {
        Ok(Value::Error(mut text) | Value::BlobError(mut text)) => {
            text.truncate(FAILURE_TEXT_BYTES_MAX);
            text
        }
        _ => b"ERR a node failed".to_vec(),
    }
}

/// The integer that a reply is. One without an attribute, which nearly all are, takes the short way.
fn integer(reply: &[u8]) -> Option<i64> {
    let digits = reply.strip_prefix(b":").and_then(|line| line.strip_suffix(b"\r\n"));
    if let Some(digits) = digits.and_then(|digits| std::str::from_utf8(digits).ok()) {
        return digits.parse().ok();
    }
    match Value::parse(reply) {
        Ok(Value::Integer(number)) => Some(number),
        _ => None,
    }
}

impl Join {
    /// A policy for a single reply, and one of a command's own, have no place here: no request of such a row is planned
    /// for several nodes. If it is, the first part's reply is the one.
    const fn of(policy: ResponsePolicy) -> Self {
        match policy {
            ResponsePolicy::Random
            | ResponsePolicy::Newest
            | ResponsePolicy::Figures
            | ResponsePolicy::Texts
            | ResponsePolicy::Busiest
            | ResponsePolicy::Sections => Self::Whole,
            ResponsePolicy::AllSucceeded | ResponsePolicy::Single | ResponsePolicy::Special => Self::AllSucceeded,
            ResponsePolicy::OneSucceeded => Self::OneSucceeded,
            ResponsePolicy::KeyOrder => Self::KeyOrder,
            ResponsePolicy::Concat => Self::Concat,
            ResponsePolicy::Sum => Self::Number(Fold::Sum),
            ResponsePolicy::Min => Self::Number(Fold::Min),
            ResponsePolicy::Max => Self::Number(Fold::Max),
            ResponsePolicy::And => Self::Number(Fold::And),
            ResponsePolicy::Or => Self::Number(Fold::Or),
        }
    }
}

impl Fold {
    /// A number as it is before any other joins it.
    fn entry(self, number: i128) -> i128 {
        match self {
            Self::Sum | Self::Min | Self::Max => number,
            Self::And | Self::Or => i128::from(number != 0),
        }
    }

    /// Two numbers joined. A sum of [`NODES_MAX`](crate::limits::NODES_MAX) 64-bit numbers is far from 128 bits.
    fn joined(self, a: i128, b: i128) -> i128 {
        match self {
            Self::Sum => a + b,
            Self::Min | Self::And => a.min(b),
            Self::Max | Self::Or => a.max(b),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fold_joins_numbers() {
        let folded = |fold: Fold, numbers: &[i128]| {
            numbers.iter().map(|number| fold.entry(*number)).reduce(|a, b| fold.joined(a, b))
        };
        assert_eq!(folded(Fold::Sum, &[1, -2, 30]), Some(29));
        assert_eq!(folded(Fold::Min, &[1, -2, 30]), Some(-2));
        assert_eq!(folded(Fold::Max, &[1, -2, 30]), Some(30));
        assert_eq!(folded(Fold::And, &[1, 1]), Some(1));
        assert_eq!(folded(Fold::And, &[1, 0]), Some(0));
        assert_eq!(folded(Fold::And, &[2]), Some(1));
        assert_eq!(folded(Fold::Or, &[0, 5]), Some(1));
        assert_eq!(folded(Fold::Or, &[0, 0]), Some(0));
    }
}
