//! The console: `PROXY`, with which an operator looks into the proxy and steers it, over the protocol that is there anyway.
//!
//! What concerns all workers is put to all of them, see [`crate::mail`]; the asker's reply keeps its place and is filled in
//! when the last worker has answered.

mod explain;
mod held_requests;
mod node;
mod node_control;
pub(crate) mod operator_state;
mod query;
mod quiesce;
mod show;
mod slowlog;
mod suspend;
mod table;

use crate::commands::client_query::{ClientFilter, ClientQuestion, Ids};
use crate::env::Env;
use crate::hooks::ProcessAction;
use crate::mail::Query;
use crate::session::Flow;
use crate::session::id::ClientId;
use crate::worker::Worker;
use respool_command::{Execute, ProxyCommand, Row, text as texts};
use respool_wire::Args;

pub(crate) use held_requests::{Held, HeldTime};
pub(crate) use query::{AdminAnswer, AdminQuery};
pub(crate) use quiesce::Quiescence;
use quiesce::Wait;
use show::Show;
pub(crate) use suspend::Suspension;

/// What a worker keeps for the console.
#[derive(Debug, Default)]
pub(crate) struct AdminState {
    /// Replies to operators that wait for something to settle.
    waits: Vec<Wait>,
    /// The suspension of clients that this worker has adopted.
    suspension: Option<Suspension>,
}

impl AdminState {
    /// How many replies wait for something to settle.
    pub(crate) fn waits(&self) -> usize {
        self.waits.len()
    }
}

impl<E: Execute> Worker<E> {
    /// Answers a request of the console. The arity has been checked.
    pub(crate) fn console(
        &mut self,
        index: ClientId,
        command: ProxyCommand,
        row: &'static Row,
        args: Args<'_>,
    ) -> Flow {
        if steers(command) && self.env.refuses_admin() {
            return self.env.refuse(index, crate::error_text::admin_refused(row.name).as_bytes());
        }
        match command {
            ProxyCommand::ProxyExplain => self.env.explain(index, args.from(2)),
            ProxyCommand::ProxyShow => self.show(index, args.from(2)),
            ProxyCommand::ProxyKill => self.kill(index, args.from(2)),
            ProxyCommand::ProxyPause
            | ProxyCommand::ProxyResume
            | ProxyCommand::ProxyDrain
            | ProxyCommand::ProxyReconnect
            | ProxyCommand::ProxySuspend
            | ProxyCommand::ProxyWaitClose => self.order(index, command, args.from(2)),
            ProxyCommand::ProxyReload => self.env.demand(index, ProcessAction::Reload),
            ProxyCommand::ProxyNode => self.ask_node(index, args.from(2)),
            ProxyCommand::ProxySlowlog => self.slowlog(index, args.from(2)),
            ProxyCommand::Proxy | ProxyCommand::ProxyHelp => self.env.console_help(index, row),
        }
    }

    fn show(&mut self, index: ClientId, args: Args<'_>) -> Flow {
        let Some(show) = Show::named(args.at(0)) else {
            let names: Vec<&str> = Show::ALL.iter().map(|show| show.name()).collect();
            let words = format!("ERR there is nothing of that name to show; there is {}", names.join(", "));
            return self.env.refuse(index, words.as_bytes());
        };
        if args.len() > 1 {
            return self.env.refuse(index, texts::SYNTAX.as_bytes());
        }
        self.ask_workers(index, Query::Admin(AdminQuery::Show(show)))
    }

    /// `PROXY KILL id [id ...]`.
    fn kill(&mut self, index: ClientId, args: Args<'_>) -> Flow {
        let number = |id: &[u8]| {
            crate::commands::connection::integer(id).and_then(|id| u64::try_from(id).ok()).filter(|id| *id > 0)
        };
        let Some(ids) = args.iter().map(number).collect::<Option<Vec<u64>>>() else {
            return self.env.refuse(index, b"ERR a client's number is needed, as PROXY SHOW CLIENTS shows it");
        };
        self.ask_clients(
            index,
            ClientQuestion::KillSome,
            ClientFilter { ids: Some(Ids::of(ids)), ..ClientFilter::default() },
        )
    }
}

impl<E: Execute> Env<E> {
    fn console_help(&mut self, index: ClientId, row: &'static Row) -> Flow {
        self.answer(index, |reply| crate::commands::client::help(row, reply));
        Flow::Next
    }
}

/// Whether it is more than a look.
fn steers(command: ProxyCommand) -> bool {
    match command {
        ProxyCommand::ProxyDrain
        | ProxyCommand::ProxyKill
        | ProxyCommand::ProxyPause
        | ProxyCommand::ProxyReconnect
        | ProxyCommand::ProxyReload
        | ProxyCommand::ProxyResume
        | ProxyCommand::ProxySuspend => true,
        ProxyCommand::Proxy
        | ProxyCommand::ProxyExplain
        | ProxyCommand::ProxyHelp
        // What it asks for may steer, and is judged by itself.
        | ProxyCommand::ProxyNode
        | ProxyCommand::ProxyShow
        | ProxyCommand::ProxySlowlog
        | ProxyCommand::ProxyWaitClose => false,
    }
}
