//! Reply observers: state kept in step with the ticket queue (conversion from RESP2, integrity check). Replies of lanes with
//! observers go through here; those of every other lane pay for one test.

use crate::env::Env;
use crate::error_reply::ErrorReply;
use crate::ids::{Handle, LaneId};
use crate::observe::counters::Counters;
use crate::pool::{LaneUse, Lanes};
use crate::reply::observers::ReplyObservers;
use crate::reply::owner::Owner;
use crate::reply::progress::LostReply;
use crate::reply::refuse;
use crate::reply::task::Tasks;
use crate::request::gathers::Scatters;
use crate::session::table::Clients;
use crate::workers::budget::ProcessBudget;
use crate::{error_text, hooks};
use respool_command::{Execute, ReplyShapes, Shape};
use respool_connection::echo_check::{EchoCheck, IntegrityTerms, UnprovedReply, Verdict, write_echo};
use respool_connection::{BufferPool, Event, Fault, Now};
use respool_wire::{ReplyKind, ReplyLimits, ReplyScanner, Scan};
use std::borrow::Cow;

impl Lanes {
    /// A request has been queued for a lane of which more is known: the bytes from `queued` on.
    #[cold]
    pub(crate) fn note_beside(&mut self, lane: LaneId, queued: usize, now: Now, pool: &mut BufferPool) {
        let this = &mut self.all[lane];
        let Some(beside) = &mut this.beside else { return };
        let request = this.up.queued_from(queued);
        if let Some(dues) = &mut beside.dues {
            dues.note(&request);
        }
        if beside.proof.as_mut().is_some_and(|proof| proof.note(&request)) {
            self.seal(lane, now, pool, EchoCheck::seal);
        }
    }

    /// What is queued for a lane of which more is known is about to be written.
    #[cold]
    pub(crate) fn end_batch(&mut self, lane: LaneId, now: Now, pool: &mut BufferPool) {
        self.seal(lane, now, pool, EchoCheck::end_batch);
    }

    /// Whether replies are checked has changed. What is owed is answered as it was asked for, and what comes is checked as it
    /// is wanted now. A busy lane of which nothing needs to be known any more is replaced.
    #[cold]
    pub(crate) fn take_integrity(&mut self, terms: IntegrityTerms, ledger: &ProcessBudget) {
        for place in self.all.ids() {
            let entropy = self.entropy_of(place);
            let this = &mut self.all[place];
            if this.is_retired || !matches!(this.purpose, LaneUse::Shared | LaneUse::Successor) {
                continue;
            }
            let owed = this.up.tickets().len();
            let Some(proof) = this.beside.as_mut().and_then(|beside| beside.proof.as_mut()) else {
                if let Some(proof) = EchoCheck::behind(terms, entropy, owed) {
                    this.beside.get_or_insert_default().proof = Some(proof);
                }
                continue;
            };
            proof.set_terms(terms);
            if terms.every == 0 && owed == 0 {
                ledger.account(proof.accounted, 0);
                this.beside = this.beside.take().filter(|beside| beside.dues.is_some());
                this.beside.iter_mut().for_each(|beside| beside.proof = None);
            } else if terms.every == 0 && this.purpose == LaneUse::Shared && this.up.is_ready() {
                this.is_stale = true;
            }
        }
    }

    fn seal(
        &mut self,
        lane: LaneId,
        now: Now,
        pool: &mut BufferPool,
        number: impl Fn(&mut EchoCheck<Owner>) -> Option<u64>,
    ) {
        let this = &mut self.all[lane];
        let Some(beside) = &mut this.beside else { return };
        let Some(number) = beside.proof.as_mut().and_then(number) else { return };
        let queued = this.up.queued_bytes();
        this.up.seal(now.mono_us, pool, |out| write_echo(number, out));
        if let Some(dues) = &mut beside.dues {
            dues.note(&this.up.queued_from(queued));
        }
    }

    /// A lane is ready, and its node does not know the dialect that it was asked for: what waits to be sent is looked at.
    #[cold]
    pub(crate) fn begin_converting(&mut self, lane: LaneId) {
        let this = &mut self[lane];
        let mut dues = ReplyShapes::default();
        dues.note(&this.up.queued_from(0));
        // Of a request that is being passed on in pieces not even the beginning may be known.
        while dues.known() < this.up.tickets().len() {
            dues.note_shape(&Shape::Plain);
        }
        this.beside.get_or_insert_default().dues = Some(dues);
    }
}

/// Where replies go.
struct ReplySinks<'a> {
    clients: &'a mut Clients,
    scatters: &'a mut Scatters,
    tasks: &'a mut Tasks,
    counters: &'a Counters,
}

impl ReplySinks<'_> {
    /// Gives the owner of a reply what has come of it; `kind` if that is the end of it. `false`: it cannot be for the owner that
    /// the tickets say.
    fn deliver(&mut self, owner: Owner, kind: Option<ReplyKind>, reply: &[u8]) -> bool {
        match (owner, kind) {
            (Owner::Client { index, generation, seq }, kind) => {
                self.clients.feed(Handle { index, generation }, seq, reply, kind.is_some());
            }
            (Owner::Part { gather, generation, part }, Some(kind)) => {
                self.scatters.feed(Handle { index: gather, generation }, part, kind, reply, self.clients);
            }
            (Owner::Task { task, generation, step }, Some(kind)) => {
                self.tasks.feed(Handle { index: task, generation }, step, kind, reply, self.clients);
                return !self.tasks.take_out_of_step();
            }
            (Owner::Unanswered { index, generation }, Some(_)) => {
                self.counters.replies_swallowed.add(1);
                self.clients.end_unanswered(Handle { index, generation }, reply.len());
            }
            (Owner::Discard, Some(_)) => self.counters.replies_swallowed.add(1),
            // Only what goes to a client is passed on in pieces.
            (_, None) => {}
        }
        true
    }

    fn refuse(&mut self, owner: Owner, error: &ErrorReply) {
        self.counters.node_errors.add(u64::from(owner != Owner::Discard));
        refuse(owner, LostReply::Unknown, error, self.clients, self.scatters, self.tasks);
    }

    /// What was held is proved, or has to be given up because an error stands where the proof should.
    fn let_go(&mut self, held: &[UnprovedReply<Owner>], all: &[u8], node: &str, error: Option<&ErrorReply>) -> bool {
        let mut is_in_step = true;
        for one in held {
            let reply = one.reply(all);
            // A node that refuses everything has refused this, too.
            let is_known = error.is_none_or(|error| reply == error.as_bytes());
            if is_known && !one.is_too_large {
                is_in_step &= self.deliver(one.owner, one.kind, reply);
                continue;
            }
            self.counters.integrity_withheld.add(1);
            let error = match error {
                Some(error) => error_text::unproved(node, error),
                None => error_text::too_large_to_prove(node),
            };
            self.refuse(one.owner, &error);
        }
        is_in_step
    }
}

impl<E: Execute> Env<E> {
    /// Bytes have come from a node of whose lane more is known. Gives what is wrong with them, and whether it was waited for.
    #[cold]
    pub(crate) fn take_beside(&mut self, lane: LaneId, bytes: &[u8]) -> (Option<Fault>, bool) {
        let Self { lanes, clients, scatters, tasks, config, counters, now, shared, .. } = self;
        let this = &mut lanes.all[lane];
        let node = &lanes.nodes[this.node].name;
        let Some(beside) = this.beside.as_deref_mut() else { return (None, false) };
        let mut takers = ReplySinks { clients, scatters, tasks, counters };
        let mut was_awaited = false;
        let mut part_for = None;
        let mut rest = bytes;
        let fault = loop {
            let (owner, bytes, end) = match this.up.next_event(&mut rest, &config.reply_limits, now.mono_us) {
                Ok(None) => break None,
                Err(fault) => break Some(fault),
                Ok(Some(Event::Reply { ticket, bytes, kind })) => (ticket, bytes, Some(kind)),
                Ok(Some(Event::Piece { ticket, bytes })) => (*ticket, bytes, None),
                // No lane that is observed delivers them.
                Ok(Some(Event::Push { .. })) => continue,
            };
            let (reply, kind) = match &mut beside.dues {
                // Replies to convert arrive whole, except one whose ticket became a tombstone because it exceeded the limit.
                Some(dues) if end.is_none() => {
                    dues.pass_over();
                    continue;
                }
                Some(dues) if dues.is_passing_over() => {
                    dues.end_passing_over();
                    (Cow::Borrowed(&[][..]), end)
                }
                Some(dues) => {
                    let reply = dues.convert(bytes);
                    let found = reply.and_then(|reply| kind_of(&reply, &config.reply_limits).map(|kind| (reply, kind)));
                    let Some((reply, kind)) = found else {
                        takers.refuse(owner, &error_text::broken_off(node, &Fault::Unsolicited));
                        break Some(Fault::Unsolicited);
                    };
                    counters.replies_converted.add(1);
                    (Cow::Owned(reply), Some(kind))
                }
                None => (Cow::Borrowed(bytes), end),
            };
            let is_large = end.is_none();
            was_awaited |= !matches!(owner, Owner::Discard | Owner::Unanswered { .. });
            let word = beside.proof.as_mut().map_or(Verdict::Pass, |proof| proof.take(owner, kind, &reply));
            let is_in_step = match (word, &mut beside.proof) {
                (Verdict::Proved | Verdict::Unproved, Some(proof)) => {
                    let (held, all) = proof.held();
                    let error = (word == Verdict::Unproved).then(|| ErrorReply::of_reply(&reply));
                    let is_in_step = takers.let_go(&held, &all, node, error.as_ref());
                    proof.release(held, all);
                    is_in_step
                }
                (Verdict::OutOfStep, _) => {
                    // Its ticket is gone: nothing else would tell.
                    takers.refuse(owner, &error_text::broken_off(node, &Fault::OutOfStep));
                    break Some(Fault::OutOfStep);
                }
                (Verdict::Kept, _) => true,
                _ => takers.deliver(owner, kind, &reply),
            };
            if let Some(multi) = takers.tasks.take_known() {
                this.multi = multi;
            }
            if !is_in_step {
                break Some(Fault::Unsolicited);
            }
            if is_large && let Owner::Client { index, generation, .. } = owner {
                part_for = Some(Handle { index, generation });
            }
        };
        if let Some(proof) = &mut beside.proof {
            let held = proof.bytes();
            shared.ledger.account(proof.accounted, held);
            proof.accounted = held;
        }
        if let Some(client) = part_for {
            self.note_large(lane, client);
        }
        (fault, was_awaited)
    }

    /// Requests of a lane of which more is known have passed their deadline: so have those before them, whose replies wait
    /// for a proof.
    #[cold]
    pub(crate) fn expire_beside(&mut self, lane: LaneId, error: &ErrorReply) {
        let Self { lanes, clients, scatters, tasks, counters, .. } = self;
        let Some(proof) = lanes[lane].beside.as_mut().and_then(|beside| beside.proof.as_mut()) else { return };
        let mut takers = ReplySinks { clients, scatters, tasks, counters };
        proof.give_up(|owner| {
            counters.timeouts.add(u64::from(owner != Owner::Discard));
            takers.refuse(owner, error);
        });
    }

    /// A lane of which more is known has ended: owners of unproved replies get an error instead.
    #[cold]
    pub(crate) fn end_beside(&mut self, lane: LaneId, error: &ErrorReply) {
        let Self { lanes, clients, scatters, tasks, counters, shared, .. } = self;
        let Some(beside) = lanes[lane].beside.take() else { return };
        let Some(mut proof) = beside.proof else { return };
        shared.ledger.account(proof.accounted, 0);
        let mut takers = ReplySinks { clients, scatters, tasks, counters };
        proof.give_up(|owner| takers.refuse(owner, error));
        lanes[lane].beside = ReplyObservers::proving(proof.anew());
    }

    /// A node's replies were not those to its requests.
    #[cold]
    pub(crate) fn note_out_of_step(&mut self, lane: LaneId) {
        self.counters.integrity_faults.add(1);
        let node = self.lanes.nodes[self.lanes[lane].node].name.clone();
        self.shared.hooks.tell(&hooks::Event::OutOfStep { node, worker: self.number });
    }
}

/// The kind of a complete reply.
fn kind_of(reply: &[u8], limits: &ReplyLimits) -> Option<ReplyKind> {
    match ReplyScanner::new().scan(reply, limits) {
        Ok(Scan::Complete { kind, .. }) => Some(kind),
        _ => None,
    }
}
