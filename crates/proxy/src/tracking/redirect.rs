//! CLIENT TRACKING REDIRECT: the client that is told in another's place, which any worker may have.

use super::state::{Redirect, RedirectSearch, TrackingOptions};
use crate::session::id::Asker;
use crate::session::table::Clients;
use respool_command::text as texts;
use respool_connection::WorkerId;
use respool_wire::{Encoder, Protocol};

impl Clients {
    /// The client to redirect to has been found, or not. `Some`: what the client that asks has asked for, with the other.
    pub(crate) fn redirected(
        &mut self,
        asker: Asker,
        search: &RedirectSearch,
        found: Option<Redirect>,
    ) -> Option<TrackingOptions> {
        let Asker { session, seq } = asker;
        self.sessions.get_mut(session)?;
        if found.is_some() {
            return Some(TrackingOptions { redirect: found, ..search.wanted.clone() });
        }
        let mut error = Vec::new();
        Encoder::new(&mut error, Protocol::Resp2).error(texts::TRACKING_REDIRECT_UNKNOWN.as_bytes());
        self.feed(session, seq, if search.wanted.is_reply_wanted { &error } else { &[] }, true);
        None
    }

    /// The client that is looked for, if this worker has it.
    pub(crate) fn find_redirect(&self, number: WorkerId, search: &RedirectSearch) -> Option<Redirect> {
        let (index, _) = self.sessions.iter().find(|(_, session)| session.id == search.id)?;
        let session = self.sessions.handle(index)?;
        Some(Redirect { id: search.id, worker: number, session })
    }
}
