//! What workers may be asked: the queries of all features. What each means is in the feature; they are put together here.

use crate::admin::query::{AdminAnswer, AdminQuery};
use crate::interfaces::client_query::{ClientAnswer, ClientQuery};
use crate::observe::counters::Counters;
use crate::pubsub::query::{PubsubAnswer, PubsubQuery};
use crate::tracking::state::{Redirect, RedirectSearch};
use crate::workers::query::WorkerQuery;

/// What workers may be asked.
#[derive(Clone, Debug)]
pub(crate) enum Query {
    Admin(AdminQuery),
    Clients(ClientQuery),
    Pubsub(PubsubQuery),
    /// Which worker has the client that receives invalidations of another.
    Redirect(RedirectSearch),
}

/// What they answer: to each query an answer of its kind.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    Admin(AdminAnswer),
    Clients(ClientAnswer),
    Pubsub(PubsubAnswer),
    Redirect(Option<Redirect>),
}

impl From<AdminQuery> for Query {
    fn from(query: AdminQuery) -> Self {
        Self::Admin(query)
    }
}

impl From<ClientQuery> for Query {
    fn from(query: ClientQuery) -> Self {
        Self::Clients(query)
    }
}

impl From<PubsubQuery> for Query {
    fn from(query: PubsubQuery) -> Self {
        Self::Pubsub(query)
    }
}

impl WorkerQuery for Query {
    type Answer = Answer;

    fn is_large(&self) -> bool {
        match self {
            Self::Admin(query) => query.is_large(),
            Self::Clients(query) => query.is_large(),
            Self::Pubsub(query) => query.is_large(),
            Self::Redirect(_) => false,
        }
    }

    fn concerns(&self, counters: &Counters) -> bool {
        !matches!(self, Self::Pubsub(_)) || counters.subscriptions.value() > 0
    }

    fn no_answer(&self) -> Answer {
        match self {
            Self::Admin(_) => Answer::Admin(AdminAnswer::default()),
            Self::Clients(_) => Answer::Clients(ClientAnswer::default()),
            Self::Pubsub(_) => Answer::Pubsub(PubsubAnswer::default()),
            Self::Redirect(_) => Answer::Redirect(None),
        }
    }

    fn join(&self, all: &mut Answer, one: Answer) {
        match (self, all, one) {
            (Self::Admin(query), Answer::Admin(all), Answer::Admin(one)) => query.join(all, one),
            (_, Answer::Clients(all), Answer::Clients(one)) => all.join(one),
            (_, Answer::Pubsub(all), Answer::Pubsub(one)) => all.join(one),
            (_, Answer::Redirect(all), Answer::Redirect(one)) => *all = all.or(one),
            _ => debug_assert!(false, "a worker answers what it was asked"),
        }
    }

    fn bytes_of(answer: &Answer) -> usize {
        match answer {
            Answer::Admin(answer) => answer.bytes(),
            Answer::Clients(answer) => answer.bytes(),
            Answer::Pubsub(answer) => answer.bytes(),
            Answer::Redirect(_) => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::query::Show;
    use crate::interfaces::client_query::ClientQuestion;

    #[test]
    fn questions_about_channels_go_to_workers_with_subscribers_only() {
        let counters = Counters::default();
        let about_channels: Query = PubsubQuery::Patterns.into();
        let about_nodes: Query = AdminQuery::Show(Show::Nodes, 1).into();
        assert!(!about_channels.concerns(&counters) && about_nodes.concerns(&counters));
        counters.subscriptions.set(1);
        assert!(about_channels.concerns(&counters));
    }

    #[test]
    fn what_only_changes_something_has_a_small_reply() {
        let users = ClientQuery { question: ClientQuestion::ClientPause, filter: Default::default() };
        let list = ClientQuery { question: ClientQuestion::List { request_bytes: 1 }, filter: Default::default() };
        assert!(!Query::from(users).is_large() && Query::from(list).is_large());
        assert!(Query::from(PubsubQuery::Patterns).is_large());
    }

    #[test]
    fn answers_are_joined_by_their_kind() {
        let query = Query::from(ClientQuery { question: ClientQuestion::KillSome, filter: Default::default() });
        let mut all = query.no_answer();
        for count in [1, 2] {
            query.join(&mut all, Answer::Clients(ClientAnswer { count, ..ClientAnswer::default() }));
        }
        assert!(matches!(&all, Answer::Clients(answer) if answer.count == 3));
    }
}
