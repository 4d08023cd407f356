//! Proof that the replies of a shared connection are whose the tickets say.
//!
//! A node that leaves a reply out, or sends one too many, shifts all replies behind it, and what follows looks like RESP all
//! the same. So requests are sealed: behind a run of them goes an ECHO of an unpredictable number, and their replies
//! are held until it has come back in its place.
//!
//! ```text
//!   sent      [a][b][c][ECHO 71][d][e][ECHO 72]
//!   answered  [a][b][c][71]                       in its place: a, b and c leave
//!             [a][c][71]                          too early: a reply is missing    -- the connection ends, and each
//!             [a][x][b][c]                        no echo: one is too many         -- is owed something gets an error
//! ```
//!
//! A run that is exchanged within itself is not noticed: that is what the length of runs is for. With runs of one request
//! every reply stands between two echoes, and no two replies can change places without passing one. What no echo shows
//! is a reply that is wrong in its right place. A lane that is not checked has none of this and pays for one test.

use std::collections::VecDeque;

use respool_wire::ReplyKind;

use crate::Ticket;
use crate::limits::INTEGRITY_KEPT_BYTES;

/// What is checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IntegrityTerms {
    /// One batch in so many, by chance; 0: none, 1: all.
    pub every: u32,
    /// An echo behind so many requests as well as at a batch's end; 0: at its end alone.
    pub run: u32,
    /// Bytes of replies that one connection holds until they are proved; a reply that would exceed them is an error.
    pub held_bytes: usize,
}

/// Requests whose replies are let go together.
#[derive(Debug)]
struct Run {
    /// How many have not been answered.
    requests: usize,
    is_checked: bool,
    /// The number that is echoed behind them, once that has been asked for.
    seal: Option<u64>,
}

/// A reply that waits for its proof.
#[derive(Debug)]
pub struct UnprovedReply<T> {
    /// A tombstone while it is arriving.
    pub owner: T,
    /// What it is; `None` while it is arriving.
    pub kind: Option<ReplyKind>,
    start: usize,
    end: usize,
    /// It was not kept, because there would have been too much to keep.
    pub is_too_large: bool,
}

/// What becomes of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is not checked: it leaves as it is.
    Pass,
    /// It is held.
    Kept,
    /// It was an echo in its place: what is held may leave.
    Proved,
    /// It stands where an echo should, and is an error: nothing is known of what is held.
    Unproved,
    /// It stands where it must not: the connection cannot be trusted.
    OutOfStep,
}

/// What is known of the replies on one connection beyond its tickets.
#[derive(Debug)]
pub struct EchoCheck<T> {
    terms: IntegrityTerms,
    entropy: u64,
    /// All that is owed, in the order of the tickets.
    runs: VecDeque<Run>,
    /// Whether the batch that is being queued is checked; `None` before its first request.
    batch: Option<bool>,
    /// The requests of a transaction are being queued: an echo between them would be one of them.
    is_in_transaction: bool,
    held: Vec<UnprovedReply<T>>,
    bytes: Vec<u8>,
    /// What the caller's account has of it.
    pub accounted: usize,
}

/// The request that asks for an echo, and its reply, are these with the number in between.
const ECHO: &[u8] = b"*2\r\n$4\r\nECHO\r\n";
const MARK: &[u8] = b"$24\r\nrespool:";

/// Appends what a node answers to an ECHO of this number.
fn write_mark(number: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(MARK);
    out.extend((0..16).rev().map(|digit| b"0123456789abcdef"[(number >> (digit * 4)) as usize & 15]));
    out.extend_from_slice(b"\r\n");
}

/// Appends the request for an echo of this number.
pub fn write_echo(number: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(ECHO);
    write_mark(number, out);
}

fn is_mark(number: u64, reply: &[u8]) -> bool {
    let mut mark = Vec::with_capacity(MARK.len() + 18);
    write_mark(number, &mut mark);
    reply == mark
}

impl<T: Ticket> EchoCheck<T> {
    /// For a lane on which nothing is owed; `None` if nothing is to be checked.
    pub fn new(terms: IntegrityTerms, entropy: u64) -> Option<Self> {
        (terms.every > 0).then(|| Self {
            terms,
            entropy: entropy | 1,
            runs: VecDeque::new(),
            batch: None,
            is_in_transaction: false,
            held: Vec::new(),
            bytes: Vec::new(),
            accounted: 0,
        })
    }

    /// The same for a lane on which so much is owed that was not checked.
    pub fn behind(terms: IntegrityTerms, entropy: u64, owed: usize) -> Option<Self> {
        let mut proof = Self::new(terms, entropy)?;
        if owed > 0 {
            proof.runs.push_back(Run { requests: owed, is_checked: false, seal: None });
        }
        Some(proof)
    }

    /// Other terms hold for what is queued from now on; of what is owed, what was promised.
    pub fn set_terms(&mut self, terms: IntegrityTerms) {
        self.terms = terms;
    }

    /// As at the beginning, with other numbers.
    pub fn anew(&self) -> Option<Self> {
        Self::new(self.terms, self.entropy.rotate_left(17))
    }

    fn chance(&mut self) -> u64 {
        self.entropy ^= self.entropy << 13;
        self.entropy ^= self.entropy >> 7;
        self.entropy ^= self.entropy << 17;
        self.entropy.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A request has been queued. Returns whether an echo is due behind it.
    pub fn note(&mut self, request: &[u8]) -> bool {
        let is_checked = match self.batch {
            Some(is_checked) => is_checked,
            None => self.terms.every > 0 && self.chance().is_multiple_of(u64::from(self.terms.every)),
        };
        self.batch = Some(is_checked);
        match self.runs.back_mut().filter(|run| run.is_checked == is_checked && run.seal.is_none()) {
            Some(run) => run.requests += 1,
            None => self.runs.push_back(Run { requests: 1, is_checked, seal: None }),
        }
        // These two are written by us alone, and always so.
        if request == b"*1\r\n$5\r\nMULTI\r\n" {
            self.is_in_transaction = true;
        } else if request == b"*1\r\n$4\r\nEXEC\r\n" {
            self.is_in_transaction = false;
        }
        let length = self.runs.back().map_or(0, |run| run.requests);
        is_checked && self.terms.run > 0 && length >= self.terms.run as usize && !self.is_in_transaction
    }

    /// The number to have echoed behind what has been queued; `None`: nothing there is to be checked.
    pub fn seal(&mut self) -> Option<u64> {
        let number = self.chance();
        let run = self.runs.back_mut().filter(|run| run.is_checked && run.seal.is_none())?;
        run.seal = Some(number);
        Some(number)
    }

    /// What has been queued is about to be written: the next request begins another batch.
    pub fn end_batch(&mut self) -> Option<u64> {
        self.batch = None;
        self.seal()
    }

    /// A reply, or a piece of one if `kind` is `None`, has come for a ticket of `owner`.
    pub fn take(&mut self, owner: T, kind: Option<ReplyKind>, bytes: &[u8]) -> Verdict {
        let Some(run) = self.runs.front_mut() else { return Verdict::OutOfStep };
        if run.requests > 0 {
            if kind.is_some() && run.is_checked && run.seal.is_some_and(|number| is_mark(number, bytes)) {
                return Verdict::OutOfStep;
            }
            run.requests -= usize::from(kind.is_some());
            if run.is_checked {
                self.keep(owner, kind, bytes);
                return Verdict::Kept;
            }
            if run.requests == 0 {
                self.runs.pop_front();
            }
            return Verdict::Pass;
        }
        let word = match kind {
            Some(_) if run.seal.is_some_and(|number| is_mark(number, bytes)) => Verdict::Proved,
            Some(ReplyKind::Error) => Verdict::Unproved,
            _ => return Verdict::OutOfStep,
        };
        self.runs.pop_front();
        word
    }

    fn keep(&mut self, owner: T, kind: Option<ReplyKind>, bytes: &[u8]) {
        let at = self.bytes.len();
        if self.held.last().is_none_or(|last| last.kind.is_some()) {
            self.held.push(UnprovedReply {
                owner: T::tombstone(),
                kind: None,
                start: at,
                end: at,
                is_too_large: false,
            });
        }
        let Some(last) = self.held.last_mut() else { return };
        // Whose a reply is that is still arriving, its ticket tells: its owner gets one answer, from one of the two.
        if kind.is_some() {
            last.owner = owner;
        }
        last.kind = kind;
        last.is_too_large |= at + bytes.len() > self.terms.held_bytes;
        if last.is_too_large {
            self.bytes.truncate(last.start);
        } else {
            self.bytes.extend_from_slice(bytes);
        }
        last.end = self.bytes.len();
    }

    /// Takes what is held, for as long as [`Self::release`] is not called.
    pub fn held(&mut self) -> (Vec<UnprovedReply<T>>, Vec<u8>) {
        (std::mem::take(&mut self.held), std::mem::take(&mut self.bytes))
    }

    /// Nothing is held any more.
    pub fn release(&mut self, mut held: Vec<UnprovedReply<T>>, mut bytes: Vec<u8>) {
        held.clear();
        bytes.clear();
        if bytes.capacity() > INTEGRITY_KEPT_BYTES {
            bytes = Vec::new();
        }
        (self.held, self.bytes) = (held, bytes);
    }

    /// Owners of whole replies that are held wait no longer.
    pub fn give_up(&mut self, mut each: impl FnMut(T)) {
        for held in &mut self.held {
            each(std::mem::replace(&mut held.owner, T::tombstone()));
        }
    }

    /// Bytes of the replies that are held.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }
}

impl<T> UnprovedReply<T> {
    /// The reply among all that is held.
    pub fn reply<'a>(&self, all: &'a [u8]) -> &'a [u8] {
        all.get(self.start..self.end).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whose a reply is.
    #[derive(Debug, PartialEq, Eq)]
    enum Owner {
        Client,
        Discard,
    }

    impl Ticket for Owner {
        fn tombstone() -> Self {
            Self::Discard
        }

        fn takes_pieces(&self) -> bool {
            true
        }
    }

    const TERMS: IntegrityTerms = IntegrityTerms { every: 1, run: 0, held_bytes: 1024 };

    fn proof(terms: IntegrityTerms) -> EchoCheck<Owner> {
        EchoCheck::new(terms, 77).expect("it checks")
    }

    fn mark(number: u64) -> Vec<u8> {
        let mut mark = Vec::new();
        write_mark(number, &mut mark);
        mark
    }

    fn simple(proof: &mut EchoCheck<Owner>, reply: &[u8]) -> Verdict {
        proof.take(Owner::Discard, Some(ReplyKind::Simple), reply)
    }

    #[test]
    fn replies_leave_when_their_echo_is_in_its_place() {
        let mut proof = proof(TERMS);
        assert!(!proof.note(b"a") && !proof.note(b"b"));
        let number = proof.end_batch().expect("two are checked");
        assert_eq!(proof.end_batch(), None, "nothing has been queued since");
        assert_eq!(simple(&mut proof, b"+1\r\n"), Verdict::Kept);
        assert_eq!(simple(&mut proof, b"+2\r\n"), Verdict::Kept);
        assert_eq!(proof.take(Owner::Discard, Some(ReplyKind::Bulk), &mark(number)), Verdict::Proved);
        let (held, bytes) = proof.held();
        let replies: Vec<&[u8]> = held.iter().map(|held| held.reply(&bytes)).collect();
        assert_eq!(replies, [b"+1\r\n", b"+2\r\n"]);
    }

    #[test]
    fn one_reply_more_or_less_is_seen() {
        let mut missing = proof(TERMS);
        missing.note(b"a");
        missing.note(b"b");
        let number = missing.end_batch().expect("two are checked");
        assert_eq!(simple(&mut missing, b"+2\r\n"), Verdict::Kept);
        assert_eq!(missing.take(Owner::Discard, Some(ReplyKind::Bulk), &mark(number)), Verdict::OutOfStep);
        let mut more = proof(TERMS);
        more.note(b"a");
        more.end_batch();
        assert_eq!(simple(&mut more, b"+1\r\n"), Verdict::Kept);
        assert_eq!(simple(&mut more, b"+1\r\n"), Verdict::OutOfStep);
        let mut refused = proof(TERMS);
        refused.note(b"a");
        refused.end_batch();
        simple(&mut refused, b"+1\r\n");
        assert_eq!(refused.take(Owner::Discard, Some(ReplyKind::Error), b"-BUSY\r\n"), Verdict::Unproved);
    }

    #[test]
    fn what_was_queued_under_other_terms_is_answered_under_them() {
        let mut proof = EchoCheck::behind(TERMS, 77, 2).expect("it checks");
        assert!(!proof.note(b"c"));
        let number = proof.end_batch().expect("one is checked");
        assert_eq!(simple(&mut proof, b"+a\r\n"), Verdict::Pass);
        // From here on nothing more is checked, but what was.
        proof.set_terms(IntegrityTerms::default());
        assert!(!proof.note(b"d"));
        assert_eq!(proof.end_batch(), None);
        assert_eq!(simple(&mut proof, b"+b\r\n"), Verdict::Pass);
        assert_eq!(simple(&mut proof, b"+c\r\n"), Verdict::Kept);
        assert_eq!(proof.take(Owner::Discard, Some(ReplyKind::Bulk), &mark(number)), Verdict::Proved);
        let (held, bytes) = proof.held();
        proof.release(held, bytes);
        assert_eq!(simple(&mut proof, b"+d\r\n"), Verdict::Pass);
        assert!(proof.anew().is_none());
        assert!(EchoCheck::<Owner>::behind(IntegrityTerms::default(), 77, 2).is_none());
        let mut idle = EchoCheck::behind(TERMS, 77, 0).expect("it checks");
        assert_eq!(simple(&mut idle, b"+1\r\n"), Verdict::OutOfStep);
    }

    #[test]
    fn runs_end_behind_so_many_requests_but_never_in_a_transaction() {
        let mut proof = proof(IntegrityTerms { run: 2, ..TERMS });
        assert!(!proof.note(b"a"));
        assert!(proof.note(b"b"));
        assert!(proof.seal().is_some());
        for request in [&b"*1\r\n$5\r\nMULTI\r\n"[..], b"a", b"b", b"c"] {
            assert!(!proof.note(request));
        }
        assert!(proof.note(b"*1\r\n$4\r\nEXEC\r\n"));
    }

    #[test]
    fn a_reply_in_pieces_is_held_as_one_and_too_much_is_not_kept() {
        let mut proof = proof(TERMS);
        proof.note(b"a");
        proof.note(b"b");
        let number = proof.end_batch().expect("two are checked");
        assert_eq!(proof.take(Owner::Discard, None, b"$6\r\nab"), Verdict::Kept);
        assert_eq!(proof.take(Owner::Discard, Some(ReplyKind::Bulk), b"cdef\r\n"), Verdict::Kept);
        assert_eq!(proof.take(Owner::Discard, None, &[b'x'; 1000]), Verdict::Kept);
        assert_eq!(proof.take(Owner::Discard, None, &[b'x'; 1000]), Verdict::Kept);
        assert_eq!(proof.take(Owner::Discard, Some(ReplyKind::Bulk), b"x\r\n"), Verdict::Kept);
        assert_eq!(proof.take(Owner::Discard, Some(ReplyKind::Bulk), &mark(number)), Verdict::Proved);
        let (held, bytes) = proof.held();
        assert_eq!(held[0].reply(&bytes), b"$6\r\nabcdef\r\n");
        assert!(!held[0].is_too_large && held[1].is_too_large);
        assert_eq!(bytes.len(), 12);
    }

    #[test]
    fn unchecked_batches_pass_between_checked_ones() {
        let mut proof = proof(IntegrityTerms { every: 3, ..TERMS });
        let mut checked = 0;
        for _ in 0..3_000 {
            proof.note(b"a");
            match proof.end_batch() {
                Some(number) => {
                    checked += 1;
                    assert_eq!(simple(&mut proof, b"+1\r\n"), Verdict::Kept);
                    assert_eq!(proof.take(Owner::Discard, Some(ReplyKind::Bulk), &mark(number)), Verdict::Proved);
                    let (held, bytes) = proof.held();
                    proof.release(held, bytes);
                }
                None => assert_eq!(simple(&mut proof, b"+1\r\n"), Verdict::Pass),
            }
        }
        assert!((800..1_200).contains(&checked), "{checked}");
    }

    #[test]
    fn a_reply_that_is_not_wanted_counts_once_it_is_whole() {
        let mut proof = proof(TERMS);
        assert!(!proof.note(b"a") && !proof.note(b"b"));
        let told = |proof: &mut EchoCheck<Owner>| {
            let mut told = Vec::new();
            proof.give_up(|owner| told.push(owner));
            told
        };
        proof.take(Owner::Client, Some(ReplyKind::Simple), b"+PONG\r\n");
        proof.take(Owner::Client, None, b"$6\r\nab");
        assert_eq!(told(&mut proof), [Owner::Client, Owner::Discard], "of the second its ticket tells");
        proof.take(Owner::Client, Some(ReplyKind::Bulk), b"cdef\r\n");
        assert_eq!(told(&mut proof), [Owner::Discard, Owner::Client]);
    }
}
