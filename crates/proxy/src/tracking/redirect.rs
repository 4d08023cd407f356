//! CLIENT TRACKING REDIRECT: the client that is told in another's place, which any worker may have.

use super::TrackingOptions;
use crate::env::Env;
use crate::mail::Query;
use crate::session::Asker;
use crate::session::id::{ClientHandle, ClientId};
use crate::worker::Worker;
use respool_command::{Execute, text as texts};
use respool_connection::Seq;
use respool_wire::{Encoder, Protocol};

/// Who is told in a client's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Redirect {
    pub(crate) id: u64,
    pub(crate) worker: usize,
    pub(crate) session: ClientHandle,
}

/// The client of a number is looked for, to be told in the place of another.
#[derive(Clone, Debug)]
pub(crate) struct RedirectSearch {
    pub(super) id: u64,
    /// What the other client has asked for.
    pub(super) wanted: TrackingOptions,
}

impl<E: Execute> Worker<E> {
    /// Looks for the client to which a client redirects its invalidations.
    pub(super) fn search_redirect(&mut self, index: ClientId, seq: Seq, search: RedirectSearch) {
        let Some(session) = self.env.clients.sessions.handle(index) else { return };
        self.env.is_busy = true;
        self.ask_workers_for(Some(Asker { session, seq }), None, Query::Redirect(search));
    }

    /// The client to redirect to has been found, or not.
    pub(crate) fn redirect_tracking(&mut self, asker: Asker, search: &RedirectSearch, found: Option<Redirect>) {
        let Asker { session, seq } = asker;
        if self.env.clients.sessions.get_mut(session).is_none() {
            return;
        }
        match found {
            Some(_) => {
                self.begin_tracking(session.index, seq, TrackingOptions { redirect: found, ..search.wanted.clone() });
            }
            None => {
                let mut error = Vec::new();
                Encoder::new(&mut error, Protocol::Resp2).error(texts::TRACKING_REDIRECT_UNKNOWN.as_bytes());
                self.env.clients.feed(session, seq, if search.wanted.is_reply_wanted { &error } else { &[] }, true);
            }
        }
    }
}

impl<E: Execute> Env<E> {
    /// The client that is looked for, if this worker has it.
    pub(crate) fn find_redirect(&self, search: &RedirectSearch) -> Option<Redirect> {
        let (index, _) = self.clients.sessions.iter().find(|(_, session)| session.id == search.id)?;
        let session = self.clients.sessions.handle(index)?;
        Some(Redirect { id: search.id, worker: self.number, session })
    }
}
