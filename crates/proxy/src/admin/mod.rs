//! The console: `PROXY`, with which an operator looks into the proxy and steers it, over the protocol that is there anyway.
//!
//! What concerns all workers is put to all of them, see [`crate::mail`]; the asker's reply keeps its place and is filled in
//! when the last worker has answered.

mod explain;
pub(crate) mod inquiry;
mod node;
mod node_control;
pub(crate) mod query;
mod quiesce;
pub(crate) mod show;
mod slowlog;
mod suspend;
pub(crate) mod table;

use crate::admin::query::{AdminQuery, Show};
use crate::env::Env;
use crate::hooks::ProcessAction;
use crate::session::Flow;
use crate::session::id::{ClientId, ClientNumber};
use crate::workers::operator_state::Suspension;
use respool_command::{Execute, ProxyCommand, Row, text as texts};
use respool_wire::Args;

use quiesce::Wait;

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

/// What becomes of a request of the console.
#[derive(Debug)]
pub(crate) enum Console {
    Done(Flow),
    /// All workers are asked; their answers make the reply.
    Ask(AdminQuery),
    /// The clients of these numbers are closed.
    Kill(Vec<ClientNumber>),
}

impl<E: Execute> Env<E> {
    /// Answers a request of the console. The arity has been checked.
    pub(crate) fn console(
        &mut self,
        index: ClientId,
        command: ProxyCommand,
        row: &'static Row,
        args: Args<'_>,
    ) -> Console {
        if steers(command) && self.refuses_admin() {
            return Console::Done(self.refuse(index, crate::error_text::admin_refused(row.name).as_bytes()));
        }
        match command {
            ProxyCommand::ProxyExplain => Console::Done(self.explain(index, args.from(2))),
            ProxyCommand::ProxyShow => self.show(index, args.from(2)),
            ProxyCommand::ProxyKill => self.kill(index, args.from(2)),
            ProxyCommand::ProxyPause
            | ProxyCommand::ProxyResume
            | ProxyCommand::ProxyDrain
            | ProxyCommand::ProxyReconnect
            | ProxyCommand::ProxySuspend
            | ProxyCommand::ProxyWaitClose => self.order(index, command, args.from(2)),
            ProxyCommand::ProxyReload => Console::Done(self.demand(index, ProcessAction::Reload)),
            ProxyCommand::ProxyNode => Console::Done(self.ask_node(index, args.from(2))),
            ProxyCommand::ProxySlowlog => self.slowlog(index, args.from(2)),
            ProxyCommand::Proxy | ProxyCommand::ProxyHelp => Console::Done(self.console_help(index, row)),
        }
    }

    fn show(&mut self, index: ClientId, args: Args<'_>) -> Console {
        let Some(show) = Show::named(args.at(0)) else {
            let names: Vec<&str> = Show::ALL.iter().map(|show| show.name()).collect();
            let words = format!("ERR there is nothing of that name to show; there is {}", names.join(", "));
            return Console::Done(self.refuse(index, words.as_bytes()));
        };
        if args.len() > 1 {
            return Console::Done(self.refuse(index, texts::SYNTAX.as_bytes()));
        }
        Console::Ask(AdminQuery::Show(show, usize::MAX))
    }

    /// `PROXY KILL id [id ...]`.
    fn kill(&mut self, index: ClientId, args: Args<'_>) -> Console {
        let number = |id: &[u8]| {
            crate::integer::integer(id)
                .and_then(|id| u64::try_from(id).ok())
                .filter(|id| *id > 0)
                .map(ClientNumber::new)
        };
        let Some(ids) = args.iter().map(number).collect::<Option<Vec<_>>>() else {
            return Console::Done(
                self.refuse(index, b"ERR a client's number is needed, as PROXY SHOW CLIENTS shows it"),
            );
        };
        Console::Kill(ids)
    }

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
