//! Queries about the clients of all workers: CLIENT LIST, KILL, UNBLOCK, PAUSE, and users that have changed.

use crate::blocking::request::Release;
use crate::session::Session;
use crate::session::id::ClientNumber;
use crate::workers::query::Step;
use respool_command::text as texts;
use respool_wire::Encoder;
use std::cmp::Ordering;
use std::sync::Arc;

/// What is asked, and about which clients.
#[derive(Clone, Debug)]
pub(crate) struct ClientQuery {
    pub(crate) question: ClientQuestion,
    pub(crate) filter: ClientFilter,
}

/// What workers answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClientAnswer {
    /// Clients by number, each described in a line.
    pub(crate) lines: Vec<(ClientNumber, String)>,
    /// How many clients it was done to.
    pub(crate) count: usize,
}

/// What is asked about clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientQuestion {
    /// Describe them; the request that asks for it has so many bytes.
    List { request_bytes: usize },
    /// Close the one with this address; it is an error if there is none.
    KillOne,
    /// Close them and say how many there were.
    KillSome,
    /// Go by the users that are in force now; how many were removed, if that was asked.
    Users {
        /// Users that there were.
        removed: Option<u32>,
    },
    /// Let them wait no longer, if they do.
    Unblock(Release),
    /// Adopt the pause of the standing orders (`CLIENT PAUSE`).
    ClientPause,
}

/// Which clients are meant: those that fit everything that is said.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClientFilter {
    pub(crate) ids: Option<Ids>,
    pub(crate) address: Option<String>,
    pub(crate) local_address: Option<String>,
    pub(crate) user: Option<Vec<u8>>,
    /// A client that is not meant whatever else fits.
    pub(crate) spared: Option<ClientNumber>,
    /// Only clients that had come by then; before the clock's beginning there were none.
    pub(crate) connected_by_us: Option<i64>,
    /// Only clients of this kind.
    pub(crate) kind: Option<ClientKind>,
}

/// Numbers of clients. A request may name a million of them, and every client of every worker is looked for among them: they are
/// sorted once, and all workers share them.
#[derive(Clone, Debug)]
pub(crate) struct Ids(Arc<[ClientNumber]>);

impl Ids {
    pub(crate) fn of(mut ids: Vec<ClientNumber>) -> Self {
        ids.sort_unstable();
        ids.dedup();
        Self(ids.into())
    }

    pub(crate) fn has(&self, id: ClientNumber) -> bool {
        self.place(id, |one, other| one.cmp(other)).is_ok()
    }

    fn place(
        &self,
        id: ClientNumber,
        mut compare: impl FnMut(&ClientNumber, &ClientNumber) -> Ordering,
    ) -> Result<usize, usize> {
        self.0.binary_search_by(|known| compare(known, &id))
    }
}

/// What a client is to the others, as Redis tells clients apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientKind {
    Normal,
    /// It subscribes to something.
    Pubsub,
    /// It follows a node.
    Replica,
    /// A node follows it. None of a proxy's ever is.
    Master,
}

impl ClientKind {
    fn of(session: &Session) -> Self {
        if session.is_replica() {
            Self::Replica
        } else if session.subscriber.as_ref().is_some_and(|s| s.is_subscribed()) {
            Self::Pubsub
        } else {
            Self::Normal
        }
    }
}

/// What is left to do of a request about clients.
pub(crate) type ClientStep = Step<ClientQuery>;

impl ClientStep {
    /// Puts a question about clients to every worker.
    pub(crate) fn ask(question: ClientQuestion, filter: ClientFilter) -> Self {
        Self::Ask(ClientQuery { question, filter })
    }

    /// Closes the clients with these numbers.
    pub(crate) fn kill(ids: Vec<ClientNumber>) -> Self {
        Self::ask(ClientQuestion::KillSome, ClientFilter { ids: Some(Ids::of(ids)), ..ClientFilter::default() })
    }
}

impl ClientFilter {
    pub(crate) fn matches(&self, session: &Session) -> bool {
        let peer = &session.details.peer;
        self.spared != Some(session.id)
            && self.kind.is_none_or(|kind| kind == ClientKind::of(session))
            && self.ids.as_ref().is_none_or(|ids| ids.has(session.id))
            && self.address.as_ref().is_none_or(|a| *a == peer.address)
            && self.local_address.as_ref().is_none_or(|a| *a == peer.local_address)
            && self
                .connected_by_us
                .is_none_or(|by_us| i64::try_from(session.details.connected_us).is_ok_and(|at_us| at_us <= by_us))
            && self.user.as_ref().is_none_or(|user| session.user_name() == user)
    }
}

impl ClientQuery {
    /// Whether the reply may be large, so that a client's next request waits for it.
    pub(crate) fn is_large(&self) -> bool {
        matches!(self.question, ClientQuestion::List { .. })
    }

    pub(crate) fn reply(&self, answer: ClientAnswer, reply: &mut Encoder<'_>) {
        let ClientAnswer { mut lines, count } = answer;
        match self.question {
            ClientQuestion::List { .. } => {
                lines.sort_unstable();
                let mut text = String::new();
                for (_, line) in &lines {
                    text.push_str(line);
                    text.push('\n');
                }
                reply.verbatim("txt", text.as_bytes());
            }
            ClientQuestion::KillOne if count == 0 => reply.error(texts::NO_SUCH_CLIENT.as_bytes()),
            ClientQuestion::KillOne | ClientQuestion::ClientPause | ClientQuestion::Users { removed: None } => {
                reply.raw(respool_wire::replies::OK);
            }
            ClientQuestion::Users { removed: Some(removed) } => reply.integer(removed.into()),
            ClientQuestion::KillSome | ClientQuestion::Unblock(_) => reply.integer(count as i64),
        }
    }
}

impl ClientAnswer {
    pub(crate) fn join(&mut self, other: Self) {
        self.count += other.count;
        self.lines.extend(other.lines);
    }

    pub(crate) fn bytes(&self) -> usize {
        self.lines.iter().map(|(_, line)| line.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::{ClientNumber, Ids};

    #[test]
    fn a_client_is_found_among_many_numbers_in_few_steps() {
        let ids = Ids::of((0..100_000).rev().flat_map(|id| [2 * id, 2 * id]).map(ClientNumber::new).collect());
        for id in [0, 2, 77_776, 199_998] {
            assert!(ids.has(ClientNumber::new(id)) && !ids.has(ClientNumber::new(id + 1)));
        }
        let mut steps = 0;
        let _ = ids.place(ClientNumber::new(77_777), |one, other| {
            steps += 1;
            one.cmp(other)
        });
        assert!(steps < 20, "{steps}");
    }
}
