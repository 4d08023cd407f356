//! CLIENT TRACKING REDIRECT: the client that is told in another's place, which any worker may have.

use super::state::{Redirect, RedirectSearch, TrackingOptions};
use crate::error_reply::ErrorReply;
use crate::ids::Asker;
use crate::session::table::Clients;
use crate::workers::query::WorkerQuery;
use respool_command::text as texts;
use respool_connection::WorkerId;

impl Clients {
    /// The client to redirect to has been found, or not. `Some`: what the client that asks has asked for, with the other.
    pub(crate) fn redirected(
        &mut self,
        asker: Asker,
        search: &RedirectSearch,
        found: Option<Redirect>,
    ) -> Option<TrackingOptions> {
        self.sessions.get_mut(asker.session)?;
        if found.is_some() {
            return Some(TrackingOptions { redirect: found, ..search.wanted.clone() });
        }
        self.fill(asker, ErrorReply::new(texts::TRACKING_REDIRECT_UNKNOWN).as_bytes());
        None
    }

    /// The client that is looked for, if this worker has it.
    pub(crate) fn find_redirect(&self, number: WorkerId, search: &RedirectSearch) -> Option<Redirect> {
        let (index, _) = self.sessions.iter().find(|(_, session)| session.id == search.id)?;
        let session = self.sessions.handle(index)?;
        Some(Redirect { id: search.id, worker: number, session })
    }
}

impl WorkerQuery for RedirectSearch {
    type Answer = Option<Redirect>;

    fn no_answer(&self) -> Option<Redirect> {
        None
    }

    fn join(&self, all: &mut Option<Redirect>, one: Option<Redirect>) {
        *all = all.or(one);
    }

    fn bytes_of(_: &Option<Redirect>) -> usize {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::ClientNumber;
    use crate::testing::env_with_node;

    #[test]
    fn the_client_that_is_told_instead_is_found_by_its_number() {
        let mut env = env_with_node();
        let [first, second] = [(), ()].map(|()| env.test_client());
        let number = env.test_session(second).id;
        let search = RedirectSearch { id: number, wanted: TrackingOptions::default() };
        let found = env.clients.find_redirect(WorkerId::FIRST, &search).expect("it is at this worker");
        assert_eq!((found.id, found.session.index), (number, second));
        let asker = env.test_asker(first);
        let wanted = env.clients.redirected(asker, &search, Some(found)).expect("tracking begins");
        assert!(wanted.redirect.is_some_and(|redirect| redirect.id == number));
        assert_eq!(env.take_output(first), "", "what begins is answered when it has begun");
    }

    #[test]
    fn an_unknown_number_is_an_error_if_a_reply_is_wanted() {
        for (is_reply_wanted, beginning) in [(true, "-ERR"), (false, "")] {
            let mut env = env_with_node();
            let client = env.test_client();
            let search = RedirectSearch { id: ClientNumber::new(99), wanted: TrackingOptions::default() };
            assert!(env.clients.find_redirect(WorkerId::FIRST, &search).is_none());
            let asker = Asker { is_wanted: is_reply_wanted, ..env.test_asker(client) };
            assert!(env.clients.redirected(asker, &search, None).is_none());
            let output = env.take_output(client);
            assert!(output.starts_with(beginning) && output.is_empty() != is_reply_wanted, "{output}");
        }
    }
}
