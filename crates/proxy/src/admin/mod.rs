//! The console: `PROXY`, with which an operator looks into the proxy and is_mutating it, over the protocol that is there anyway.
//!
//! What concerns all workers is put to all of them, see [`crate::workers::ask`]; the asker's reply keeps its place and is filled in
//! when the last worker has answered.

pub(crate) mod answer_inquiry;
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
use crate::error_text;
use crate::hooks::ProcessAction;
use crate::ids::{ClientId, ClientNumber};
use crate::integer::integer;
use crate::interfaces::help::help;
use crate::workers::operator_state::Suspension;
use crate::workers::query::Step;
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
    /// It has been dealt with, or all workers are asked.
    Step(Step<AdminQuery>),
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
        if is_mutating(command) && self.refuses_admin() {
            return Console::Step(self.refuse(index, error_text::admin_refused(row.name)).into());
        }
        Console::Step(match command {
            ProxyCommand::ProxyExplain => self.explain(index, args.from(2)).into(),
            ProxyCommand::ProxyShow => self.show(index, args.from(2)),
            ProxyCommand::ProxyKill => match numbers(args.from(2)) {
                Some(ids) => return Console::Kill(ids),
                None => self.refuse(index, error_text::CLIENT_NUMBER).into(),
            },
            ProxyCommand::ProxyPause
            | ProxyCommand::ProxyResume
            | ProxyCommand::ProxyDrain
            | ProxyCommand::ProxyReconnect
            | ProxyCommand::ProxySuspend
            | ProxyCommand::ProxyWaitClose => self.order(index, command, args.from(2)),
            ProxyCommand::ProxyReload => self.demand(index, ProcessAction::Reload).into(),
            ProxyCommand::ProxyNode => self.ask_node(index, args.from(2)).into(),
            ProxyCommand::ProxySlowlog => self.slowlog(index, args.from(2)),
            ProxyCommand::Proxy | ProxyCommand::ProxyHelp => self.answer(index, |reply| help(row, reply)).into(),
        })
    }

    fn show(&mut self, index: ClientId, args: Args<'_>) -> Step<AdminQuery> {
        let Some(show) = Show::named(args.at(0)) else {
            let names: Vec<&str> = Show::ALL.iter().map(|show| show.name()).collect();
            return self.refuse(index, error_text::nothing_to_show(&names.join(", "))).into();
        };
        if args.len() > 1 {
            return self.refuse(index, texts::SYNTAX).into();
        }
        Step::Ask(AdminQuery::Show(show, usize::MAX))
    }
}

/// The numbers of clients; `None`: something else is among them.
fn numbers(ids: Args<'_>) -> Option<Vec<ClientNumber>> {
    let number = |id: &[u8]| u64::try_from(integer(id)?).ok().filter(|id| *id > 0).map(ClientNumber::new);
    ids.iter().map(number).collect()
}

/// Whether the subcommand changes state (needs `admin_commands`).
fn is_mutating(command: ProxyCommand) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::session::Flow;
    use crate::testing::{EchoEngine, env_of, env_with_node, request, roomy_config};
    use respool_command::Command;

    fn ask(env: &mut Env<EchoEngine>, client: ClientId, said: &str) -> Console {
        request(said, |row, args| match row.command {
            Command::Proxy(command) => env.console(client, command, row, args),
            _ => panic!("{said} is not of the console"),
        })
    }

    #[test]
    fn clients_are_killed_by_numbers_alone() {
        let mut env = env_with_node();
        let client = env.test_client();
        let killed = ask(&mut env, client, "PROXY KILL 3 4");
        assert!(matches!(killed, Console::Kill(ids) if ids == [3, 4].map(ClientNumber::new)));
        for said in ["PROXY KILL 3 x", "PROXY KILL 0", "PROXY KILL -1"] {
            assert!(matches!(ask(&mut env, client, said), Console::Step(Step::Done(Flow::Next))), "{said}");
            assert!(env.take_output(client).starts_with("-ERR a client's number"), "{said}");
        }
    }

    #[test]
    fn those_that_may_not_steer_may_look() {
        let mut env = env_of(Config { allows_admin: false, ..roomy_config() }, None);
        let client = env.test_client();
        for said in ["PROXY KILL 3", "PROXY PAUSE n", "PROXY RELOAD", "PROXY SUSPEND"] {
            assert!(matches!(ask(&mut env, client, said), Console::Step(Step::Done(_))), "{said}");
            assert!(env.take_output(client).starts_with("-"), "{said}");
        }
        assert!(!env.shared.standing().paused.contains("n"));
        let shown = ask(&mut env, client, "PROXY SHOW nodes");
        assert!(matches!(shown, Console::Step(Step::Ask(AdminQuery::Show(Show::Nodes, _)))));
    }

    #[test]
    fn what_cannot_be_shown_is_refused_with_what_can() {
        let mut env = env_with_node();
        let client = env.test_client();
        assert!(matches!(ask(&mut env, client, "PROXY SHOW nosuch"), Console::Step(Step::Done(_))));
        assert!(env.take_output(client).contains("BIGKEYS, CLIENTS"));
        assert!(matches!(ask(&mut env, client, "PROXY SHOW nodes x"), Console::Step(Step::Done(_))));
    }
}
