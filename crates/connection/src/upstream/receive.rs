//! Cuts what a node sends on a connection that is ready into events.
//!
//! A reply that has not fully arrived is collected, or passed on in pieces if it is large and its ticket takes them.

use super::event::{Event, Pushes};
use super::{Fault, Upstream};
use crate::buffer::occupied_bytes;
use crate::flush::RoundTrip;
use crate::in_flight::Recorder;
use crate::limits::CUT_THROUGH_BYTES;
use crate::{Outbox, Ticket};
use respool_wire::{Protocol, ReplyKind, ReplyLimits, Scan};

impl<T: Ticket, O: Outbox> Upstream<T, O> {
    /// Cuts the next event off `input`. `Ok(None)` when `input` is used up; call again until then. `now_us` is the time on the
    /// monotonic clock. An error ends the connection: what follows in `input` must not be read.
    #[inline(always)]
    pub fn next_event<'a, 'i: 'a>(
        &'a mut self,
        input: &mut &'i [u8],
        limits: &ReplyLimits,
        now_us: u64,
    ) -> Result<Option<Event<'a, T>>, Fault> {
        if self.reader.is_partial_spent {
            self.reader.forget_partial();
        }
        loop {
            if input.is_empty() {
                return Ok(None);
            }
            match self.reader.scanner.scan(input, limits).map_err(Fault::Malformed)? {
                Scan::Complete { consumed, kind } => {
                    let (bytes, rest) = input.split_at(consumed);
                    *input = rest;
                    if kind == ReplyKind::Push {
                        if self.reader.pushes != Pushes::Dropped {
                            return Ok(Some(self.finish_push(bytes, kind, now_us)));
                        }
                        self.drop_push()?;
                        continue;
                    }
                    let Some((ticket, sample)) = self.tickets.pop() else {
                        return self.take_unasked(bytes, kind, now_us).map(Some);
                    };
                    if let Some(written_us) = sample {
                        end_batch(&mut self.round_trip, &mut self.recorder, now_us.saturating_sub(written_us));
                    }
                    self.timing.has_reply_come = true;
                    self.reader.is_streaming = false;
                    self.reader.streamed_bytes = 0;
                    return Ok(Some(Event::Reply { ticket, bytes: self.reader.finish(bytes), kind }));
                }
                Scan::Partial => {
                    let bytes = std::mem::take(input);
                    return self.keep_partial(bytes);
                }
            }
        }
    }

    /// `bytes` belong to a reply or push that has not ended. They are collected, or passed on if the reply is large and its ticket
    /// takes pieces.
    fn keep_partial<'a>(&'a mut self, bytes: &'a [u8]) -> Result<Option<Event<'a, T>>, Fault> {
        let reader = &mut self.reader;
        let first = reader.partial.first().or(bytes.first());
        let is_push = !reader.is_streaming && matches!(first, Some(b'>' | b'|'));
        if is_push && self.identity.protocol == Protocol::Resp2 && reader.pushes == Pushes::Dropped {
            // It is refused when it is whole, and need not be kept until then.
            return Err(Fault::Unsolicited);
        }
        let ticket = if is_push { None } else { self.tickets.front() };
        if ticket.is_none() && !is_push && reader.pushes != Pushes::Only {
            return Err(Fault::Unsolicited);
        }
        let Some(ticket) = ticket.filter(|ticket| ticket.takes_pieces()) else {
            reader.partial.extend_from_slice(bytes);
            return Ok(None);
        };
        if reader.is_streaming {
            reader.streamed_bytes += bytes.len();
            return Ok(Some(Event::Piece { ticket, bytes }));
        }
        reader.partial.extend_from_slice(bytes);
        if reader.partial.len() <= CUT_THROUGH_BYTES || reader.is_old {
            return Ok(None);
        }
        reader.is_streaming = true;
        reader.streamed_bytes = reader.partial.len();
        reader.is_partial_spent = true;
        Ok(Some(Event::Piece { ticket, bytes: &reader.partial }))
    }

    /// A whole push came that is not delivered: a node that speaks RESP3 may send one unasked.
    fn drop_push(&mut self) -> Result<(), Fault> {
        self.reader.forget_partial();
        if self.identity.protocol == Protocol::Resp3 { Ok(()) } else { Err(Fault::Unsolicited) }
    }

    #[cold]
    fn finish_push<'a>(&'a mut self, last: &'a [u8], kind: ReplyKind, now_us: u64) -> Event<'a, T> {
        let bytes = self.reader.finish(last);
        if self.tickets.front_mut().is_none_or(|ticket| !ticket.is_ended_by(bytes)) {
            return Event::Push { bytes, kind };
        }
        let Some((ticket, sample)) = self.tickets.pop() else { return Event::Push { bytes, kind } };
        if let Some(written_us) = sample {
            end_batch(&mut self.round_trip, &mut self.recorder, now_us.saturating_sub(written_us));
        }
        self.timing.has_reply_come = true;
        Event::Reply { ticket, bytes, kind }
    }

    /// Something has come that is no push by its form, and no reply is owed.
    #[cold]
    fn take_unasked<'a>(&'a mut self, last: &'a [u8], kind: ReplyKind, now_us: u64) -> Result<Event<'a, T>, Fault> {
        if self.reader.pushes == Pushes::Only {
            Ok(self.finish_push(last, kind, now_us))
        } else {
            Err(Fault::Unsolicited)
        }
    }

    /// Drops the bytes held of the reply that is arriving and turns its ticket into a tombstone: the rest is discarded. Returns
    /// the ticket.
    pub fn abandon_partial(&mut self) -> Option<T> {
        self.reader.partial = Vec::new();
        self.reader.is_partial_spent = false;
        self.reader.is_streaming = true;
        self.tickets.abandon_front()
    }

    /// Whether what has begun to arrive is a push: it belongs to no ticket.
    pub fn is_push_arriving(&self) -> bool {
        !self.reader.is_streaming && self.reader.partial.first() == Some(&b'>')
    }

    /// The reply that is arriving belongs to another ticket from now on, which may take it in pieces.
    pub fn readdress(&mut self, ticket: T) {
        if let Some(front) = self.tickets.front_mut() {
            *front = ticket;
        }
    }

    /// As [`Self::expire_where`], for all tickets.
    pub fn expire(&mut self, written_us: u64, each: impl FnMut(T) -> T) {
        self.tickets.expire(written_us, self.is_arriving(), each);
    }

    /// Turns those requests written at or before `written_us` into tombstones whose ticket `is_due`, and gives their tickets to
    /// `each`. What that returns takes the ticket's place: a tombstone, unless the late reply is read, too. A reply that is arriving
    /// keeps its ticket.
    pub fn expire_where(&mut self, written_us: u64, is_due: impl Fn(&T) -> bool, each: impl FnMut(T) -> T) {
        self.tickets.expire_where(written_us, self.is_arriving(), is_due, each);
    }
}

/// The last request of a batch has been answered, so long after it was written.
#[inline(always)]
fn end_batch(round_trip: &mut RoundTrip, recorder: &mut Option<Box<Recorder>>, took_us: u64) {
    round_trip.note(took_us);
    if let Some(recorder) = recorder {
        recorder.end_batch();
    }
}

impl<T: Ticket, O: Outbox> Upstream<T, O> {
    /// Sets what becomes of messages that answer no request.
    pub fn set_pushes(&mut self, pushes: Pushes) {
        self.reader.pushes = pushes;
    }

    /// Whether the node speaks RESP2 although it was asked for RESP3.
    pub fn is_old(&self) -> bool {
        self.reader.is_old
    }

    /// Whether what comes next begins a reply.
    pub fn is_between_replies(&self) -> bool {
        self.reader.scanner.is_idle()
    }

    /// Whether a large reply is arriving, whether it is passed on or collected. It is not late, however long the rest of it takes, for as
    /// long as anything of it comes.
    pub fn is_arriving(&self) -> bool {
        self.reader.is_streaming || self.arrived_bytes() > CUT_THROUGH_BYTES
    }

    /// Bytes that have come of a reply that has not fully arrived, those among them that were passed on.
    pub fn arrived_bytes(&self) -> usize {
        let reader = &self.reader;
        let is_reply = !reader.is_partial_spent && reader.partial.first() != Some(&b'>');
        if reader.is_streaming {
            reader.streamed_bytes
        } else if is_reply {
            reader.partial.len()
        } else {
            0
        }
    }

    /// Bytes held of a reply that has not fully arrived.
    pub fn partial_bytes(&self) -> usize {
        self.reader.partial.len()
    }

    /// Memory that is held for a reply that has not fully arrived, or of which nothing was passed on before its end.
    #[inline]
    pub fn partial_held_bytes(&self) -> usize {
        if self.reader.partial.is_empty() { 0 } else { occupied_bytes(&self.reader.partial) }
    }

    /// Bytes that have been delivered of the reply in progress; 0 if none of it has been.
    pub fn streamed_bytes(&self) -> usize {
        self.reader.streamed_bytes
    }

    /// The least length of the reply in progress, in bytes, including what its header announces; 0 if no part of it was delivered.
    pub fn announced_bytes(&self) -> usize {
        let reader = &self.reader;
        if reader.is_streaming { reader.streamed_bytes.saturating_add(reader.scanner.announced()) } else { 0 }
    }
}
