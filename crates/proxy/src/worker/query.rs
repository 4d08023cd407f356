//! What workers may be asked: the queries of all features. What each means is in the feature; they are put together here.

use crate::admin::query::AdminQuery;
use crate::interfaces::client_query::ClientQuery;
use crate::observe::counters::Counters;
use crate::pubsub::query::PubsubQuery;
use crate::tracking::state::RedirectSearch;
use crate::workers::query::WorkerQuery;

/// Puts queries together to one, and their answers.
macro_rules! queries {
    ($($kind:ident($query:ty),)+) => {
        /// What workers may be asked.
        #[derive(Clone, Debug)]
        pub(crate) enum Query { $($kind($query),)+ }

        /// What they answer: to each query an answer of its kind.
        #[derive(Clone, Debug)]
        pub(crate) enum Answer { $($kind(<$query as WorkerQuery>::Answer),)+ }

        $(impl From<$query> for Query {
            fn from(query: $query) -> Self {
                Self::$kind(query)
            }
        })+

        impl WorkerQuery for Query {
            type Answer = Answer;

            fn is_large(&self) -> bool {
                match self { $(Self::$kind(query) => query.is_large(),)+ }
            }

            fn is_promise(&self) -> bool {
                match self { $(Self::$kind(query) => query.is_promise(),)+ }
            }

            fn concerns(&self, counters: &Counters) -> bool {
                match self { $(Self::$kind(query) => query.concerns(counters),)+ }
            }

            fn is_of_process(&self) -> bool {
                match self { $(Self::$kind(query) => query.is_of_process(),)+ }
            }

            fn no_answer(&self) -> Answer {
                match self { $(Self::$kind(query) => Answer::$kind(query.no_answer()),)+ }
            }

            fn join(&self, all: &mut Answer, one: Answer) {
                match (self, all, one) {
                    $((Self::$kind(query), Answer::$kind(all), Answer::$kind(one)) => query.join(all, one),)+
                    _ => debug_assert!(false, "a worker answers what it was asked"),
                }
            }

            fn bytes_of(answer: &Answer) -> usize {
                match answer { $(Answer::$kind(answer) => <$query>::bytes_of(answer),)+ }
            }
        }
    };
}

queries! {
    Admin(AdminQuery),
    Clients(ClientQuery),
    Pubsub(PubsubQuery),
    // Which worker has the client that receives invalidations of another.
    Redirect(RedirectSearch),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::query::Show;
    use crate::interfaces::client_query::ClientAnswer;
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
