//! Whether what is written waits a moment for more: nodes' replies that are on their way, requests that clients are about to send.

use crate::limits::PATIENT_LANES_MAX;
use crate::worker::Worker;
use respool_command::Execute;
use respool_connection::Patience;
use respool_connection::limits::{HELD_AGE_US_MAX, HELD_BYTES_MAX};

impl<E: Execute> Worker<E> {
    /// Whether replies that are outstanding may be waited for, as far as is known in this turn.
    pub(crate) fn is_patient(&mut self) -> bool {
        if self.is_patient.is_none() {
            self.is_patient = Some(self.patient_until_us().is_some());
        }
        self.is_patient == Some(true)
    }

    /// Until when the nodes' replies are worth waiting for, and clients need not be looked at.
    pub(crate) fn patient_until_us(&self) -> Option<u64> {
        let shared = &self.lanes.shared;
        if !self.is_busy || self.is_filling() || shared.len() > PATIENT_LANES_MAX || self.drain_until_us.is_some() {
            return None;
        }
        let mut until_us: Option<u64> = None;
        for lane in shared {
            match self.lanes.all[*lane as usize].up.patience(self.now.mono_us) {
                Patience::NothingOwed => {}
                Patience::Until(lane_us) => until_us = Some(until_us.map_or(lane_us, |other| other.min(lane_us))),
                // One node that may take its time is reason enough to look at clients: theirs may be other nodes.
                Patience::None => return None,
            }
        }
        until_us
    }

    pub(crate) fn is_filling(&self) -> bool {
        self.lanes.is_filling && self.clients.are_awaited()
    }

    pub(crate) fn stop_filling(&mut self) {
        self.clients.awaited.give_up();
        self.lanes.is_filling = false;
        self.lanes.list_held();
    }

    /// A pipeline over several nodes is answered piece by piece. While the other pieces are due, the first ones wait for
    /// them and leave in the same write. Returns whether this client's replies do.
    pub(crate) fn holds_back(&mut self, index: u32) -> bool {
        let now_us = self.now.mono_us;
        let Some(session) = self.clients.sessions.at_mut(index) else { return false };
        let since_us = if session.held_since_us > 0 { session.held_since_us } else { now_us };
        let is_held = session.down.outstanding() > 0
            && session.down.waiting_bytes() < HELD_BYTES_MAX
            && now_us - since_us < HELD_AGE_US_MAX;
        session.held_since_us = if is_held { since_us } else { 0 };
        if is_held && !session.is_in_held {
            session.is_in_held = true;
            self.clients.held.push(index);
        }
        is_held
    }
}
