//! What an operator has done to nodes: `PROXY PAUSE`, `RESUME`, `DRAIN` and `RECONNECT`.
//!
//! A paused node's requests wait with their clients, which are not read meanwhile; a drained node gets none, and what
//! becomes of them is for the route to say. Sessions know of a pause by a flag, so it costs nothing otherwise. What
//! holds until it is taken back is written down in [`crate::workers::operator_state`].

use crate::admin::AdminState;
use crate::admin::inquiry::Wanted;
use crate::admin::query::{AdminQuery, NodeAction, Order};
use crate::config::Config;
use crate::env::Env;
use crate::error_reply::ErrorReply;
use crate::error_text;
use crate::hooks::{Event, ProcessAction};
use crate::ids::{ClientId, ClientNumber, NodeId};
use crate::interfaces::held_back::WaitsAtNodes;
use crate::pool::Lanes;
use crate::session::Flow;
use crate::workers::operator_state::{OperatorState, Suspension};
use crate::workers::query::Step;
use crate::workers::quiescence::Until;
use respool_command::{Execute, ProxyCommand};
use respool_wire::Args;

impl<E: Execute> Env<E> {
    pub(super) fn order(&mut self, index: ClientId, command: ProxyCommand, args: Args<'_>) -> Step<AdminQuery> {
        let what = match command {
            ProxyCommand::ProxyPause => NodeAction::Pause,
            ProxyCommand::ProxyResume => NodeAction::Resume,
            ProxyCommand::ProxyDrain if args.is_empty() => {
                return self.demand(index, ProcessAction::Drain).into();
            }
            ProxyCommand::ProxyDrain => NodeAction::Drain,
            ProxyCommand::ProxySuspend => NodeAction::Suspend,
            ProxyCommand::ProxyWaitClose => NodeAction::WaitClose,
            _ => NodeAction::Reconnect,
        };
        let waits =
            what == NodeAction::Pause && args.iter().next().is_some_and(|word| word.eq_ignore_ascii_case(b"WAIT"));
        let args = args.from(usize::from(waits));
        let until = match what {
            NodeAction::Pause if waits => Some(Until::Answered),
            NodeAction::Suspend => Some(Until::Flushed),
            NodeAction::WaitClose => Some(Until::Closed),
            _ => None,
        };
        let by = self.clients.sessions.at(index).map(|session| session.id);
        match self.give_order(what, args.iter(), until, by) {
            Ok(order) => {
                let client = self.clients.sessions.at(index);
                let client = client.map_or_else(String::new, |session| session.details.peer.address.clone());
                self.tell_order(&order.words(), client);
                Step::Ask(AdminQuery::Order(order))
            }
            Err(words) => self.refuse(index, words).into(),
        }
    }

    /// Decides on an order that comes over no connection.
    pub(crate) fn decide(&mut self, wanted: &Wanted) -> Result<Order, String> {
        let order = self.give_order(wanted.what.action(), wanted.names.iter().map(String::as_bytes), None, None);
        let order = order.map_err(|error| String::from_utf8_lossy(error.words()).into_owned())?;
        self.tell_order(&order.words(), wanted.by.clone());
        Ok(order)
    }

    /// Finds the nodes and has the order hold from now on. `by`: the client that gives it. Otherwise the text of the error.
    fn give_order<'a>(
        &mut self,
        what: NodeAction,
        names: impl Iterator<Item = &'a [u8]>,
        until: Option<Until>,
        by: Option<ClientNumber>,
    ) -> Result<Order, ErrorReply> {
        let mut nodes = Vec::new();
        for name in names {
            let named = named(&self.config, name);
            if named.is_empty() {
                return Err(error_text::no_node_or_pool(name));
            }
            nodes.extend(named);
        }
        let all = self.config.nodes.iter().map(|node| node.name.clone());
        let is_taken = match what {
            NodeAction::Pause => self.shared.change_orders(|standing| standing.pause(&nodes)),
            NodeAction::Suspend => self.shared.change_orders(|standing| {
                standing.pause(&[]);
                standing.suspended = Some(Suspension { since_us: self.now.mono_us, by });
            }),
            NodeAction::Resume => self.shared.change_orders(|standing| standing.resume(&nodes, all)),
            NodeAction::Drain => self.shared.change_orders(|standing| standing.drained.extend(nodes.iter().cloned())),
            // It is over once it is carried out.
            NodeAction::Reconnect | NodeAction::WaitClose => true,
        };
        if is_taken { Ok(Order { what, nodes, until }) } else { Err(error_text::HANDED_OVER.into()) }
    }

    /// Makes a node what is ordered of one with its name. Returns whether it is drained since: what it owes is still answered, and
    /// no client watches keys there any longer.
    fn adopt_order(&mut self, node: NodeId, standing: &OperatorState) -> bool {
        let this = &mut self.lanes.nodes[node];
        this.is_paused = standing.paused.contains(&this.name);
        let is_drained = standing.drained.contains(&this.name);
        let was_drained = std::mem::replace(&mut this.is_drained, is_drained);
        if was_drained || !is_drained {
            return false;
        }
        self.lanes.leave_node(node);
        self.leave_watches_at(node);
        self.leave_large_where(|other| other == node);
        true
    }

    /// Other nodes are configured: orders for those that have gone are forgotten.
    pub(crate) fn forget_orders_for_others(&mut self) {
        let nodes = &self.config.nodes;
        self.shared.standing().keep(|name| nodes.iter().any(|node| node.name == *name));
    }

    /// Asks the process for something.
    pub(super) fn demand(&mut self, index: ClientId, demand: ProcessAction) -> Flow {
        let client = self.clients.sessions.at(index).map_or_else(String::new, |s| s.details.peer.address.clone());
        self.tell_order(&format!("{demand:?}"), client);
        if !self.shared.hooks.demand(demand) {
            return self.refuse(index, error_text::NO_ORDERS);
        }
        self.answer(index, |reply| match demand {
            ProcessAction::Reload => reply.simple("The settings are being read again; the log says what has changed"),
            ProcessAction::Drain | ProcessAction::Stop => {
                reply.simple("Draining: no new clients, and the process ends once all replies are out")
            }
        })
    }

    fn tell_order(&self, order: &str, client: String) {
        self.shared.hooks.tell(&Event::Ordered { order: order.trim().to_owned(), client });
    }

    /// Whether requests are held back at all.
    pub(crate) fn is_holding(&self) -> bool {
        self.is_all_paused || self.lanes.nodes.iter().any(|node| node.is_paused)
    }
}

impl AdminState {
    /// Does what was ordered. Returns how many connections were replaced.
    pub(crate) fn carry_out(
        &mut self,
        env: &mut Env<impl Execute>,
        waits: &mut impl WaitsAtNodes,
        order: &Order,
    ) -> u64 {
        let lanes = env.lanes.reconnect(&env.config, order);
        if order.is_standing() {
            self.adopt_orders(env, waits);
            env.settle_holding(waits);
        }
        if order.until.is_some() {
            self.note_unsettled(env);
        }
        env.is_busy = true;
        lanes as u64
    }

    /// Makes the nodes of this worker what is ordered of those with their names.
    pub(crate) fn adopt_orders(&mut self, env: &mut Env<impl Execute>, waits: &mut impl WaitsAtNodes) {
        let standing = env.shared.standing().clone();
        env.is_all_paused = standing.is_all_paused;
        self.adopt_suspension(env, standing.suspended);
        for node in env.config.node_ids() {
            if env.adopt_order(node, &standing) {
                waits.recall_blocked_from(env, node);
            }
        }
    }
}

impl Lanes {
    /// Replaces the connections to the nodes of a RECONNECT. Returns how many there were.
    fn reconnect(&mut self, config: &Config, order: &Order) -> usize {
        if order.what != NodeAction::Reconnect {
            return 0;
        }
        let is_meant = |name: &String| order.nodes.is_empty() || order.nodes.contains(name);
        let nodes = config.node_ids().filter(|node| is_meant(&self.nodes[*node].name));
        nodes.collect::<Vec<_>>().into_iter().map(|node| self.renew(node)).sum()
    }
}

/// The nodes that a name means: one, or all of a pool.
fn named(config: &Config, name: &[u8]) -> Vec<String> {
    let node = config.nodes.iter().find(|node| node.name.as_bytes() == name);
    if let Some(node) = node {
        return vec![node.name.clone()];
    }
    let pool = config.routes.pools().iter().find(|pool| pool.name.as_bytes() == name);
    pool.map_or_else(Vec::new, |pool| {
        let replicas = pool.replicas.iter().flatten().copied();
        let places = pool.places().filter(|_| !config.nodes.is_empty());
        places.chain(replicas).map(|place| config.nodes[place.get()].name.clone()).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::SessionFlags;
    use crate::testing::{EchoEngine, NotedWaits, env_with_node, request};
    use respool_command::Command;

    /// Has an order carried out, and gives what it led to.
    fn carry_out(env: &mut Env<EchoEngine>, said: &str) -> (AdminState, NotedWaits) {
        let client = env.test_client();
        let step = request(said, |row, args| match row.command {
            Command::Proxy(command) => env.order(client, command, args.from(2)),
            _ => panic!("{said} is no order"),
        });
        let Step::Ask(AdminQuery::Order(order)) = step else { panic!("{said}: {step:?}") };
        let (mut admin, mut waits) = (AdminState::default(), NotedWaits::default());
        admin.carry_out(env, &mut waits, &order);
        (admin, waits)
    }

    #[test]
    fn a_paused_node_holds_requests_back_until_it_is_resumed() {
        let mut env = env_with_node();
        let client = env.test_client();
        let node = NodeId::nth(0);
        let (_, waits) = carry_out(&mut env, "PROXY PAUSE n");
        assert!(env.lanes.nodes[node].is_paused && env.is_holding() && waits.went_on == 1);
        assert!(env.test_session(client).flags.has(SessionFlags::HELD));
        let (_, waits) = carry_out(&mut env, "PROXY RESUME n");
        assert!(!env.lanes.nodes[node].is_paused && !env.is_holding() && waits.went_on == 1);
        assert!(!env.test_session(client).flags.has(SessionFlags::HELD));
    }

    #[test]
    fn what_waits_at_a_node_ends_once_when_it_is_drained() {
        let mut env = env_with_node();
        let (_, waits) = carry_out(&mut env, "PROXY DRAIN n");
        assert_eq!(waits.recalled, [NodeId::nth(0)]);
        let (_, waits) = carry_out(&mut env, "PROXY DRAIN n");
        assert!(waits.recalled.is_empty(), "it was drained before");
    }

    #[test]
    fn an_order_for_an_unknown_node_is_refused() {
        let mut env = env_with_node();
        let client = env.test_client();
        let step = request("PROXY PAUSE nosuch", |_, args| env.order(client, ProxyCommand::ProxyPause, args.from(2)));
        assert!(matches!(step, Step::Done(Flow::Next)));
        assert!(env.take_output(client).starts_with("-ERR there is no node or pool 'nosuch'"));
        assert!(!env.is_holding());
    }

    #[test]
    fn a_pool_means_its_nodes() {
        let env = env_with_node();
        assert_eq!(named(&env.config, b"main"), ["n"]);
        assert_eq!(named(&env.config, b"n"), ["n"]);
        assert!(named(&env.config, b"x").is_empty());
    }
}
