//! A server that refuses to write though it was dialled as one that does: the name or the address that it was dialled by may lead to another by
//! now, as where a failover moves a name. The old one lives on as a replica and keeps its connections, so nothing else ends them.

use super::{Core, State, Wakes};
use crate::limits::DEMOTION_PAUSE;
use std::sync::{Arc, Weak};

/// What refusals to write have come to.
#[derive(Debug, Default)]
pub(super) struct Demotion {
    /// The connection on which the first has come; 0 for none.
    epoch: u64,
    /// When it did.
    since_us: u64,
    /// When a connection was ended for one.
    ended_us: Option<u64>,
}

impl Demotion {
    /// A write was refused. Whether its connection is ended now: if no caller waits there, or callers have not ceased to for the whole pause, and none
    /// was ended for that within the pause.
    fn note(&mut self, epoch: u64, is_idle: bool, now_us: u64) -> bool {
        let pause_us = DEMOTION_PAUSE.as_micros() as u64;
        if self.epoch != epoch {
            (self.epoch, self.since_us) = (epoch, now_us);
        }
        let is_soon = self.ended_us.is_some_and(|ended_us| now_us.saturating_sub(ended_us) < pause_us);
        let is_due = !is_soon && (is_idle || now_us.saturating_sub(self.since_us) >= pause_us);
        if is_due {
            self.ended_us = Some(now_us);
        }
        is_due
    }
}

impl Core {
    /// The server has refused to write, on the connection with this number.
    #[cold]
    pub(crate) fn note_readonly(self: &Arc<Self>, epoch: u64) {
        let state = self.lock();
        let (link, is_pinned) = (state.link.clone().filter(|_| state.epoch == epoch), state.is_pinned);
        drop(state);
        // What has come of another connection than that of now says nothing of its server.
        let Some(link) = link else { return };
        if let Some(sentinels) = &self.config.sentinels {
            return sentinels.note_refused(link.peer());
        }
        // A call of a cluster looks for another node by itself. What is watched ends with its connection, which its caller has to itself.
        if !self.config.is_member() && !is_pinned {
            self.first().and_then(Weak::upgrade).as_ref().unwrap_or(self).leave_demoted();
        }
    }

    /// Ends the connection and the second one beside it, so that the next call looks the name up and dials.
    fn leave_demoted(self: &Arc<Self>) {
        let both = || std::iter::once(self).chain(self.second_made());
        let is_idle = both().all(|core| core.lock().slots.waiting() == 0);
        let now_us = self.now_us();
        let mut state = self.lock();
        let epoch = state.epoch;
        let is_due = state.demotion.note(epoch, is_idle, now_us);
        drop(state);
        if is_due {
            both().for_each(|core| core.leave_for_another(now_us));
        }
    }

    fn leave_for_another(self: &Arc<Self>, now_us: u64) {
        let mut wakes = Wakes::default();
        let mut guard = self.lock();
        let state: &mut State = &mut guard;
        if state.link.is_some() {
            state.lose_link(&"the server refuses to write", now_us, &mut wakes);
            state.open_lobby(&mut wakes);
        }
        drop(guard);
        wakes.run_on(self);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_ended_for_refusals_once_in_a_pause() {
        let pause_us = DEMOTION_PAUSE.as_micros() as u64;
        let mut demotion = Demotion::default();
        assert!(demotion.note(1, true, 10), "no call waits");
        assert!(!demotion.note(2, true, 9 + pause_us), "it is soon again");
        assert!(!demotion.note(2, false, 10 + pause_us), "others wait");
        assert!(!demotion.note(2, false, 8 + 2 * pause_us));
        assert!(demotion.note(2, false, 9 + 2 * pause_us), "they have waited all the time");
    }
}
