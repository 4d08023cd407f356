//! Queries of the console: what all workers show or do, and the joint reply.

use crate::admin::AdminState;
use crate::admin::node_control::Order;
use crate::admin::show::Show;
use crate::admin::slowlog::{self, SlowlogOrder};
use crate::admin::table::Table;
use crate::env::Env;
use crate::error_text;
use crate::session::Asker;
use respool_command::Execute;
use respool_wire::Encoder;

/// What workers show or do.
#[derive(Clone, Debug)]
pub(crate) enum AdminQuery {
    Show(Show),
    Order(Order),
    Slowlog(SlowlogOrder),
}

/// What workers answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct AdminAnswer {
    table: Table,
    count: u64,
}

impl AdminQuery {
    /// Whether the reply may be large, so that a client's next request waits for it.
    pub(crate) fn is_large(&self) -> bool {
        !matches!(self, Self::Order(_) | Self::Slowlog(SlowlogOrder::Reset))
    }

    pub(crate) fn join(&self, all: &mut AdminAnswer, one: AdminAnswer) {
        all.count += one.count;
        match self {
            Self::Show(show) if show.is_joined() => all.table.join(one.table),
            _ => all.table.append(one.table),
        }
    }

    fn reply(&self, answer: AdminAnswer, reply: &mut Encoder<'_>) {
        let AdminAnswer { mut table, count } = answer;
        match self {
            Self::Show(show) => {
                show.arrange(&mut table);
                table.write(reply);
            }
            Self::Slowlog(order @ SlowlogOrder::Get(_)) => {
                slowlog::arrange(*order, &mut table);
                table.write(reply);
            }
            Self::Slowlog(SlowlogOrder::Len) => reply.integer(count as i64),
            Self::Order(order) if order.is_counted() => reply.integer(count as i64),
            Self::Order(_) | Self::Slowlog(SlowlogOrder::Reset) => reply.raw(respool_wire::replies::OK),
        }
    }
}

impl AdminAnswer {
    pub(crate) fn of_table(table: Table) -> Self {
        Self { table, count: 0 }
    }

    pub(crate) fn of_count(count: u64) -> Self {
        Self { table: Table::default(), count }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.table.bytes()
    }
}

impl AdminState {
    /// Replies, or begins to wait for what an order's reply waits for. `missing`: so many workers have not answered.
    pub(crate) fn reply_to_admin_query(
        &mut self,
        env: &mut Env<impl Execute>,
        asker: Asker,
        query: &AdminQuery,
        answer: AdminAnswer,
        missing: usize,
    ) {
        match query {
            AdminQuery::Order(order @ Order { until: Some(until), .. }) => match missing {
                0 => self.begin_settling(env, asker, order, *until),
                _ => env.clients.fail(asker.session, asker.seq, error_text::WORKER_BUSY),
            },
            _ => env.clients.reply(asker, |reply| query.reply(answer, reply)),
        }
    }
}
