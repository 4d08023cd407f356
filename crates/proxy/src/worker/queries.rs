//! Messages of other workers, and queries to all of them: what each means to the features of this one.

use crate::admin::answer_inquiry::answer_inquiry;
use crate::admin::inquiry::Inquiry;
use crate::admin::query::{AdminAnswer, AdminQuery};
use crate::admin::show::Shown;
use crate::engines::change::ChangeTurn;
use crate::env::Env;
use crate::error_text;
use crate::ids::{Asker, ClientHandle, ClientId};
use crate::interfaces::client_query::{ClientAnswer, ClientQuery, ClientQuestion};
use crate::interfaces::transfer::TransferEnd;
use crate::mail::Mail;
use crate::session::Flow;
use crate::tracking::state::{LostRedirect, Redirected};
use crate::visits::Visit;
use crate::worker::Worker;
use crate::worker::dispatch::with_migrations;
use crate::worker::internal_requests::by_type;
use crate::worker::pins::list_pins;
use crate::worker::query::{Answer, Query};
use crate::workers::ask::{AnswerQueries, ask_workers, handle_query_message};
use crate::workers::query::WorkerQuery;
use crate::workers::query::{Queries, QueryMessage, Step};
use respool_command::Execute;
use respool_connection::{Action, ServiceAction};
use std::any::Any;
use std::sync::Arc;

impl<E: Execute> AnswerQueries for Worker<E> {
    type Engine = E;
    type Query = Query;

    fn env(&mut self) -> &mut Env<E> {
        &mut self.env
    }

    fn queries(&mut self) -> &mut Queries<Query> {
        &mut self.queries
    }

    fn answer_query(&mut self, query: &Query, client: Option<ClientHandle>) -> Answer {
        match query {
            Query::Admin(query) => Answer::Admin(self.answer_admin_query(query)),
            Query::Clients(query) => Answer::Clients(self.answer_client_query(query, client)),
            Query::Pubsub(query) => Answer::Pubsub(self.subscriptions.answer_pubsub_query(&mut self.env, query)),
            Query::Redirect(search) => Answer::Redirect(self.env.clients.find_redirect(self.env.number, search)),
        }
    }

    fn finish_query(&mut self, asker: Option<Asker>, query: &Query, answer: Answer, missing: usize) {
        let Some(asker) = asker else { return };
        match (query, answer) {
            (Query::Admin(query), Answer::Admin(answer)) => {
                self.admin.reply_to_admin_query(&mut self.env, asker, query, answer, missing)
            }
            (Query::Clients(query), Answer::Clients(_)) if missing > 0 && query.is_promise() => {
                self.env.clients.fail_asker(asker, &error_text::WORKERS_ENDED.into());
            }
            (Query::Clients(query), Answer::Clients(answer)) => {
                self.env.clients.reply(asker, |reply| query.reply(answer, reply));
            }
            (Query::Pubsub(query), Answer::Pubsub(answer)) => {
                self.env.clients.reply(asker, |reply| query.reply(&answer, reply));
            }
            (Query::Redirect(search), Answer::Redirect(found)) => {
                if let Some(wanted) = self.env.clients.redirected(asker, search, found) {
                    self.start_tracking(asker.session.index, asker.seq, wanted);
                }
            }
            _ => debug_assert!(false, "a query is finished with an answer to it"),
        }
    }
}

impl<E: Execute> Worker<E> {
    pub(crate) fn take_mail(&mut self, mail: Mail) {
        match mail {
            Mail::Feature(message) => self.take_message(message.0),
            Mail::Drain => self.begin_drain(),
            Mail::Retire => self.retirement.begin_retirement(&mut self.env),
            Mail::Stop => self.env.actions.push_back(Action::Service(ServiceAction::Exit)),
            Mail::Reload(config) => self.adopt(config),
            Mail::Wipe => self.env.wipe_reads(),
            Mail::Orders => {
                self.admin.adopt_orders(&mut self.env, &mut self.blocking);
                self.functions.adopt_client_pause(&mut self.env, &mut self.blocking);
                self.env.settle_holding(&mut self.blocking);
            }
        }
    }

    fn take_message(&mut self, message: Arc<dyn Any + Send + Sync>) {
        by_type!(message {
            message => QueryMessage<Query>: handle_query_message(self, Arc::unwrap_or_clone(message)),
            redirected => Redirected: self.env.take_redirected(Arc::unwrap_or_clone(redirected)),
            broken => LostRedirect: self.env.clients.break_redirection(*broken),
            turn => ChangeTurn: self.env.send_change(turn.0),
            visit => Arc<Visit>: self.visits.expect(Arc::clone(&visit), self.env.counters.turns.value()),
            end => TransferEnd: with_migrations(self, |migrations, side| migrations.take_end(side, Arc::unwrap_or_clone(end))),
            inquiry => Arc<Inquiry>: answer_inquiry(self, &inquiry, Self::answer_admin_query),
        });
    }

    /// Does what is left to do of a request that may concern all workers.
    pub(crate) fn take_step<Q: Into<Query>>(&mut self, index: ClientId, step: Step<Q>) -> Flow {
        match step {
            Step::Done(flow) => flow,
            Step::Ask(query) => ask_workers(self, index, query.into()),
        }
    }

    /// Shows or does this worker's part.
    fn answer_admin_query(&mut self, query: &AdminQuery) -> AdminAnswer {
        match query {
            AdminQuery::Show(show, rows_max) => {
                let pins = || list_pins(&self.env, &self.blocking, &self.dedicated);
                let table = Shown::of(&self.env).table(*show, *rows_max, pins, |pool| self.subscriptions.told_to(pool));
                AdminAnswer::of_table(table)
            }
            AdminQuery::Order(order) => {
                AdminAnswer::of_count(self.admin.carry_out(&mut self.env, &mut self.blocking, order))
            }
            AdminQuery::Slowlog(order) => self.env.slowlog_of(*order),
        }
    }

    /// Answers for the clients of this worker. `asker`: the client that asks, if it is one of them.
    fn answer_client_query(&mut self, query: &ClientQuery, asker: Option<ClientHandle>) -> ClientAnswer {
        let ClientQuery { question, filter } = query;
        let mut answer = ClientAnswer::default();
        match *question {
            ClientQuestion::Users { .. } => {
                self.env.adopt_users(&mut self.subscriptions, asker.map(|asker| asker.index));
            }
            ClientQuestion::ClientPause => self.functions.adopt_client_pause(&mut self.env, &mut self.blocking),
            ClientQuestion::Unblock(release) => {
                answer.count = self.blocking.unblock_clients(&mut self.env, filter, release)
            }
            ClientQuestion::List { request_bytes } => {
                answer.lines = self.env.clients.list_clients(self.env.now, filter, asker, request_bytes);
            }
            ClientQuestion::KillOne | ClientQuestion::KillSome => answer.count = self.env.kill_clients(filter, asker),
        }
        self.tell_ended();
        answer
    }
}
