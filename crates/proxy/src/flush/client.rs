//! When a client is read, and when it is written: what its connection has to do with the replies that it is owed.

use crate::env::Env;
use crate::ids::ClientId;
use crate::limits::{CHECKED_INPUT_BYTES, CLAIM_SOFT_FACTOR, REVIEWED_WRITE_BYTES};
use crate::session::disconnect_log::DisconnectReason;
use crate::session::{PauseReasons, SessionFlags};
use respool_command::Execute;
use respool_connection::Action;

/// What a client that has been written is to other features.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WrittenClient {
    /// Connections serve it alone.
    pub(crate) is_dedicated: bool,
    /// It may have messages that wait for room.
    pub(crate) has_subscriber: bool,
}

/// Where the bytes are that a client has sent.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Received {
    /// In the read buffer.
    Fresh,
    /// In the client's own input.
    Input,
    /// In the client's own input, where they stay while one of its requests waits; or the client is not there.
    Kept,
}

impl<E: Execute> Env<E> {
    /// A client has sent so many bytes.
    #[inline(always)]
    pub(crate) fn note_received(&mut self, index: ClientId, bytes: usize) -> Received {
        self.counters.client_reads.add(1);
        self.counters.client_bytes_in.add(bytes as u64);
        let Some(session) = self.clients.sessions.at_mut(index) else { return Received::Kept };
        let before_us = std::mem::replace(&mut session.last_active_us, self.now.mono_us);
        let gap_us = self.now.mono_us.saturating_sub(before_us);
        self.clients.arrivals.note_request(&mut session.pace, gap_us, self.now.mono_us);
        let Some(input) = &mut session.input else { return Received::Fresh };
        input.fill(bytes);
        let (is_large, is_read) = (input.len() >= CHECKED_INPUT_BYTES, session.pause.is_none());
        if is_large && self.config.budgets.clients != usize::MAX && !self.check_received(index) {
            return Received::Kept;
        }
        if is_read {
            return Received::Input;
        }
        self.clients.list(index);
        Received::Kept
    }

    /// Room for what a client sends. `None`: it is not read.
    #[inline(always)]
    pub(super) fn room_of_client(&mut self, index: ClientId) -> Option<&mut [u8]> {
        let is_pressed = self.shared.ledger.held_bytes() > self.config.budgets.process;
        let session = self.clients.sessions.at_mut(index)?;
        // One that has closed its side is read to its end: what is held for it is given back with it.
        if is_pressed && !session.details.has_hung_up {
            session.pause.add(PauseReasons::PRESSURE);
            self.is_busy = true;
        }
        if !session.pause.is_none() {
            return session.room_ahead();
        }
        if session.is_resuming {
            // What it has sent before is looked at first, and is not forgotten for its end.
            return None;
        }
        match &mut session.input {
            Some(input) => Some(input.room()),
            None => Some(&mut self.read_buffer),
        }
    }

    /// A client has been written.
    #[inline(always)]
    pub(super) fn handle_client_written(&mut self, index: ClientId, bytes: usize) -> Option<WrittenClient> {
        self.counters.client_writes.add(1);
        self.counters.client_bytes_out.add(bytes as u64);
        let session = self.clients.sessions.at_mut(index)?;
        session.down.advance(bytes, &mut self.clients.pool);
        session.is_blocked = !session.down.output().is_empty();
        session.credit.note_written(bytes);
        if session.is_blocked {
            session.note_full(self.now.mono_us);
            self.clients.full.insert(index);
        }
        if bytes >= REVIEWED_WRITE_BYTES {
            session.credit.review(&session.down, self.config.budgets.client_output_soft);
        }
        if session.flags.has(SessionFlags::LIMITED) {
            session.charge_written(self.now.mono_us, bytes);
        }
        if session.down.is_drained() {
            self.clients.arrivals.note_answered(&mut session.pace, self.now.mono_us);
        }
        session.account(&self.shared.ledger);
        let has_subscriber = session.subscriber.is_some();
        let is_dedicated = session.flags.has(SessionFlags::DEDICATED);
        if !session.pause.is_none() {
            self.relieve_client(index);
        }
        Some(WrittenClient { is_dedicated, has_subscriber })
    }

    /// Looks at a client that something happened to: whether it is to be written, cut off, closed or read on.
    /// Returns whether it is to be written.
    pub(super) fn review_client(&mut self, index: ClientId) -> bool {
        let budgets = self.config.budgets;
        let Some(session) = self.clients.sessions.at_mut(index) else { return false };
        session.is_listed = false;
        if session.subscriber.as_ref().is_some_and(|subscriber| subscriber.backlog_bytes() > 0) {
            self.clients.refill_outbox(index);
        }
        let Some(session) = self.clients.sessions.at_mut(index) else { return false };
        let waiting = session.reply_bytes();
        if waiting > budgets.client_output_soft.saturating_mul(CLAIM_SOFT_FACTOR) {
            self.claim_lanes_of(index);
        }
        let Some(session) = self.clients.sessions.at_mut(index) else { return false };
        if waiting > session.output_hard(budgets.client_output_hard) && waiting > session.details.owed_at_once {
            self.cut_off(index, DisconnectReason::Output);
            return false;
        }
        let backlog = session.subscriber.as_ref().map_or(0, |subscriber| subscriber.backlog_bytes());
        if waiting + backlog > budgets.soft_limits.least() {
            self.note_soft_limit(index);
        }
        let Some(session) = self.clients.sessions.at_mut(index) else { return false };
        if waiting > budgets.client_output_soft && !session.pause.has(PauseReasons::OUTPUT) {
            session.pause.add(PauseReasons::OUTPUT);
            self.counters.pauses.add(1);
        }
        if !session.pause.is_none() {
            self.relieve_client(index);
        }
        let is_to_write = self.is_to_be_written(index);
        // Output that is written now is accounted for after the write, with what is left of it: mostly nothing.
        if !is_to_write && let Some(session) = self.clients.sessions.at_mut(index) {
            session.account(&self.shared.ledger);
        }
        is_to_write
    }

    /// Removes the reasons not to read a client that have gone, and closes it if that is all it waited for.
    fn relieve_client(&mut self, index: ClientId) {
        let budgets = self.config.budgets;
        let Some(session) = self.clients.sessions.at(index) else { return };
        if session.pause.has(PauseReasons::CLOSING) && session.is_owed_nothing() {
            // Of a client that is closed for no fault of its own something may still be unread.
            let may_be_unread = self.drain_until_us.is_some() || session.details.has_hung_up;
            match may_be_unread && !session.details.has_ended {
                true => self.finish_client(index),
                false => self.close_client(index),
            }
            return;
        }
        let (is_settled, has_pins) = (session.down.is_settled(), session.pins.is_some());
        let is_light = session.reply_bytes() <= budgets.client_output_soft / 2;
        self.resume_lanes_of(index);
        if is_light {
            self.clients.unpause(index, PauseReasons::OUTPUT);
            if let Some(session) = self.clients.sessions.at_mut(index) {
                session.details.owed_at_once = 0;
            }
        }
        self.clients.let_ask_again(&self.config, index);
        if is_settled {
            if has_pins {
                self.settle_watch_failure(index);
            }
            self.clients.unpause(index, PauseReasons::BARRIER);
        }
    }

    #[inline(always)]
    fn is_to_be_written(&mut self, index: ClientId) -> bool {
        let Some(session) = self.clients.sessions.at_mut(index) else { return false };
        if session.down.output().is_empty() || session.is_blocked {
            return false;
        }
        // Only a client that is still owed replies can be held back.
        let may_be_held = session.down.outstanding() > 0 || session.held_since_us > 0;
        !(may_be_held && self.is_patient() && self.holds_back(index))
    }

    /// A client that had to wait has been read on. It is read from its connection again. Returns whether it has ended instead.
    pub(crate) fn goes_on(&mut self, index: ClientId) -> bool {
        let Some(session) = self.clients.sessions.at(index) else { return false };
        if session.pause.is_none() && session.details.has_ended {
            return true;
        }
        if session.pause.is_none() || session.is_waiting() || session.is_listed {
            // One that is not to be read may have been answered, and a loop looks for output again behind an action.
            self.actions.push_back(Action::Resume { conn: index.conn() });
        }
        false
    }
}
