//! What orders and questions of operators mean to the features of a worker.

use crate::admin::Console;
use crate::admin::inquiry::{Asks, Inquiry};
use crate::admin::query::{AdminAnswer, AdminQuery, Order, Show};
use crate::admin::show::{self, Shown};
use crate::admin::table::{Line, Table};
use crate::commands::client_query::{ClientFilter, ClientQuestion, ClientStep, Ids};
use crate::mail::{Mail, Query};
use crate::session::Flow;
use crate::session::id::ClientId;
use crate::worker::Worker;
use crate::worker::pins::{PinLine, list_pins};
use respool_command::{Execute, ProxyCommand, Row};
use respool_connection::{Action, ServiceAction};
use respool_wire::Args;
use std::sync::Arc;

impl<E: Execute> Worker<E> {
    /// Answers a request of the console. The arity has been checked.
    pub(crate) fn handle_console(
        &mut self,
        index: ClientId,
        command: ProxyCommand,
        row: &'static Row,
        args: Args<'_>,
    ) -> Flow {
        match self.env.console(index, command, row, args) {
            Console::Done(flow) => flow,
            Console::Ask(query) => self.ask_workers(index, Query::Admin(query)),
            Console::Kill(ids) => {
                let filter = ClientFilter { ids: Some(Ids::of(ids)), ..ClientFilter::default() };
                self.take_client_step(index, ClientStep::ask(ClientQuestion::KillSome, filter))
            }
        }
    }

    /// Shows or does this worker's part.
    pub(super) fn answer_admin_query(&mut self, query: &AdminQuery) -> AdminAnswer {
        match query {
            AdminQuery::Show(show, rows_max) => AdminAnswer::of_table(self.table_of(*show, *rows_max)),
            AdminQuery::Order(order) => AdminAnswer::of_count(self.carry_out(order)),
            AdminQuery::Slowlog(order) => self.env.slowlog_of(*order),
        }
    }

    /// Answers what is asked from outside.
    pub(super) fn answer_inquiry(&mut self, inquiry: &Arc<Inquiry>) {
        match inquiry.asks() {
            // The deadline has passed. A worker that stood still gives its time to clients.
            Asks::All(_) if inquiry.is_over() => {}
            Asks::All(queries) => {
                let parts = queries.iter().map(|query| self.answer_admin_query(query)).collect();
                inquiry.answer(parts);
            }
            Asks::Order(_) if inquiry.is_decided() => inquiry.answer_order(),
            Asks::Order(wanted) => {
                let order = self.env.decide(wanted);
                if let Ok(order) = &order {
                    self.ask_workers_for(None, None, Query::Admin(AdminQuery::Order(order.clone())));
                }
                inquiry.note_decided(order.map(Order::into_nodes));
                let mail = Mail::Inquiry(Arc::clone(inquiry));
                self.env.actions.push_back(Action::Service(ServiceAction::Post { worker: self.env.number, mail }));
            }
        }
    }

    /// What this worker has to tell.
    fn table_of(&self, show: Show, rows_max: usize) -> Table {
        let shown = match show {
            Show::TransactionState => self.show_pins(),
            Show::Pools => Shown::of(&self.env).show_pools(|pool| self.subscriptions.told_to(pool)),
            show => Shown::of(&self.env).rows_of(show, rows_max),
        };
        let mut table = Table::of(shown);
        match show {
            Show::Clients => table.left_out = self.env.clients.sessions.len().saturating_sub(table.rows.len()),
            // Their order and number are known only when all workers have told theirs.
            show if show.is_joined() => {}
            _ => table.truncate(rows_max),
        }
        table
    }

    /// What clients hold that is not shared.
    fn show_pins(&self) -> Vec<Line> {
        let line = |pin: PinLine| {
            show::line_of_held(pin.client, self.env.number, pin.node, pin.reason, pin.mode.name(), pin.age_us)
        };
        list_pins(&self.env, &self.blocking, &self.dedicated).into_iter().map(line).collect()
    }

    /// Does what was ordered. Returns how many connections were replaced.
    fn carry_out(&mut self, order: &Order) -> u64 {
        let lanes = self.env.lanes.reconnect(&self.env.config, order);
        if order.is_standing() {
            self.adopt_orders();
            self.settle_holding();
        }
        if order.until.is_some() {
            self.admin.note_unsettled(&self.env);
        }
        self.env.is_busy = true;
        lanes as u64
    }

    /// Has sessions know whether requests are held back, and those go on that waited.
    pub(crate) fn settle_holding(&mut self) {
        self.env.settle_holding();
        self.blocking.go_on_waiting(&mut self.env);
    }

    /// Makes the nodes of this worker what is ordered of those with their names.
    pub(crate) fn adopt_orders(&mut self) {
        let standing = self.env.shared.standing().clone();
        self.env.is_all_paused = standing.is_all_paused;
        self.admin.adopt_suspension(&mut self.env, standing.suspended);
        for node in self.env.config.node_ids() {
            if self.env.adopt_order(node, &standing) {
                self.blocking.recall_blocked_from(&mut self.env, node);
            }
        }
    }

    /// A process that ran before has left orders.
    pub(crate) fn take_up_orders(&mut self) {
        self.adopt_orders();
        self.adopt_client_pause();
        self.settle_holding();
    }
}
