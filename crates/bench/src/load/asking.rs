//! Makes requests and judges replies: what is drawn for each, what each has to prove, and what is counted.

use std::sync::Arc;

use respool_connection::{BufferPool, Event};
use respool_wire::{ReplyKind, ReplyLimits};

use crate::keys::Keys;
use crate::plan::Plan;
use crate::tally::Tally;
use crate::values::is_proof;
use crate::work::Work;

use super::connection::{Connection, Sent};
use super::shared::Shared;

/// What one thread asks and counts.
pub(super) struct Asking {
    work: Arc<Work>,
    keys: Keys,
    weights: u64,
    pub(super) tally: Tally,
    /// What makes the run pointless.
    pub(super) fatal: Option<String>,
    warm_up_ns: u64,
    goes_on: bool,
    outstanding: usize,
    /// Replies that the others have not been told of, and whether there were any since the last look.
    unpublished: u64,
    has_heard: bool,
    scratch: Vec<u8>,
}

/// Bytes of an error or of a wrong value that are shown.
const SHOWN_BYTES: usize = 120;

impl Asking {
    pub(super) fn new(plan: &Plan, work: Arc<Work>, number: usize) -> Self {
        let shape = &work.shape;
        Self {
            keys: Keys::new(
                shape.spread,
                shape.keys.unwrap_or(1),
                plan.seed ^ 0xA5A5,
                number as u64,
                plan.threads as u64,
            ),
            weights: work.operations.iter().map(|operation| operation.weight).sum(),
            tally: Tally::new(work.operations.len(), plan.interval.as_nanos() as u64),
            fatal: None,
            warm_up_ns: plan.warm_up.as_nanos() as u64,
            goes_on: plan.goes_on,
            outstanding: 0,
            unpublished: 0,
            has_heard: false,
            scratch: Vec::new(),
            work,
        }
    }

    /// Queues one request, which is due at `due_ns`; 0: when it is written.
    #[inline]
    pub(super) fn ask(
        &mut self,
        connection: &mut Connection,
        tags: &[[u8; 5]],
        due_ns: u64,
        now_us: u64,
        pool: &mut BufferPool,
    ) {
        let number = self.draw_operation();
        let operation = &self.work.operations[number];
        let (keys, writer) = (&mut self.keys, self.tally.sent);
        let mut sent =
            Sent { due_ns, key: 0, operation: number as u16, is_proven: operation.is_proven, is_tombstone: false };
        // The ticket is queued behind the bytes: what is drawn for them is part of it.
        connection.upstream.tell(now_us, pool, |out| sent.key = operation.template.write(out, keys, writer, tags).key);
        connection.upstream.send(sent, now_us, pool, |_| {});
        self.tally.sent += 1;
        self.outstanding += 1;
    }

    #[inline]
    fn draw_operation(&mut self) -> usize {
        let operations = &self.work.operations;
        if operations.len() == 1 {
            return 0;
        }
        let mut drawn = self.keys.below(self.weights);
        for (number, operation) in operations.iter().enumerate() {
            match drawn.checked_sub(operation.weight) {
                Some(rest) => drawn = rest,
                None => return number,
            }
        }
        0
    }

    /// A request of an open loop was due at `due_ns` and is sent at `now_ns`; the run began at `began_ns`.
    #[inline]
    pub(super) fn note_sent(&mut self, due_ns: u64, now_ns: u64, began_ns: u64) {
        if due_ns >= began_ns + self.warm_up_ns {
            self.tally.sent_late.record(now_ns.saturating_sub(due_ns));
        }
    }

    /// Takes what one read brought. `times`: that of the read, and when the run began.
    #[inline]
    pub(super) fn take_replies(
        &mut self,
        connection: &mut Connection,
        mut input: &[u8],
        limits: &ReplyLimits,
        (read_ns, began_ns): (u64, u64),
        now_us: u64,
    ) -> Result<(), String> {
        let written_ns = connection.written_ns.unwrap_or(read_ns);
        loop {
            match connection.upstream.next_event(&mut input, limits, now_us) {
                Ok(None) => return Ok(()),
                Ok(Some(Event::Reply { ticket, bytes, kind })) => {
                    self.outstanding = self.outstanding.saturating_sub(1);
                    let from_ns = if ticket.due_ns > 0 { ticket.due_ns } else { written_ns };
                    self.count(ticket, from_ns, read_ns, began_ns);
                    if kind != ReplyKind::Simple || ticket.is_proven {
                        self.judge(ticket, bytes, kind);
                    }
                }
                Ok(Some(_)) => {}
                Err(fault) => return Err(fault.to_string()),
            }
        }
    }

    #[inline]
    fn count(&mut self, ticket: Sent, from_ns: u64, read_ns: u64, began_ns: u64) {
        self.unpublished += 1;
        if ticket.is_tombstone || from_ns < began_ns + self.warm_up_ns {
            return;
        }
        let latency_ns = read_ns.saturating_sub(from_ns);
        let (from_ns, read_ns) = (from_ns - began_ns, read_ns.saturating_sub(began_ns));
        let tally = &mut self.tally;
        tally.latencies[usize::from(ticket.operation)].record(latency_ns);
        tally.timeline.record(read_ns, latency_ns);
        tally.replies += 1;
        tally.first_ns = tally.first_ns.min(from_ns);
        tally.last_ns = read_ns;
    }

    /// Looks at a reply that is no plain success.
    #[inline]
    fn judge(&mut self, ticket: Sent, bytes: &[u8], kind: ReplyKind) {
        match kind {
            ReplyKind::Error | ReplyKind::BlobError => self.note_error(bytes),
            ReplyKind::Null | ReplyKind::NullBulk => self.tally.wrongs.misses += 1,
            _ if ticket.is_proven => self.verify(ticket, bytes),
            _ => {}
        }
    }

    #[cold]
    fn note_error(&mut self, bytes: &[u8]) {
        let text = shown(bytes.strip_prefix(b"-").unwrap_or(bytes));
        self.tally.wrongs.errors += 1;
        self.tally.wrongs.first_error.get_or_insert_with(|| text.clone());
        if !self.goes_on {
            self.fatal.get_or_insert(format!("Error from server: {text}"));
        }
    }

    fn verify(&mut self, ticket: Sent, bytes: &[u8]) {
        let body = bytes.iter().position(|&byte| byte == b'\n').map(|end| &bytes[end + 1..]);
        let value = body.and_then(|body| body.strip_suffix(b"\r\n"));
        if !value.is_some_and(|value| is_proof(value, ticket.key, &mut self.scratch)) {
            self.tally.wrongs.mismatches += 1;
            self.tally.wrongs.first_mismatch.get_or_insert_with(|| {
                format!("the reply for key {:012} was {}", ticket.key, shown(value.unwrap_or(bytes)))
            });
        }
    }

    /// So many requests went down with a connection.
    pub(super) fn note_lost(&mut self, requests: usize) {
        self.outstanding = self.outstanding.saturating_sub(requests);
        self.tally.wrongs.unanswered += requests as u64;
    }

    /// Requests that are not answered.
    #[inline]
    pub(super) fn outstanding(&self) -> usize {
        self.outstanding
    }

    /// Whether replies have come since this was asked last.
    pub(super) fn has_heard(&mut self) -> bool {
        std::mem::take(&mut self.has_heard)
    }

    /// Tells the others how far this thread is.
    #[inline]
    pub(super) fn publish(&mut self, shared: &Shared) {
        if self.unpublished > 0 {
            shared.add_replies(std::mem::take(&mut self.unpublished));
            self.has_heard = true;
        }
    }

    /// What was counted. What is not answered by now never is.
    pub(super) fn take_tally(&mut self) -> Tally {
        self.tally.wrongs.unanswered += self.outstanding as u64;
        let nothing = Tally::new(0, 1);
        std::mem::replace(&mut self.tally, nothing)
    }
}

fn shown(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(SHOWN_BYTES)]);
    text.trim_end().chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}
