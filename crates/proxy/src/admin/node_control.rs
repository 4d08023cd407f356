//! What an operator has done to nodes: `PROXY PAUSE`, `RESUME`, `DRAIN` and `RECONNECT`.
//!
//! A paused node's requests wait with their clients, which are not read meanwhile; a drained node gets none, and what
//! becomes of them is for the route to say. Sessions know of a pause by a flag, so it costs nothing otherwise. What
//! holds until it is taken back is written down in [`crate::admin::operator_state`].

use crate::admin::AdminQuery;
use crate::admin::held_requests::HeldTime;
use crate::admin::quiesce::Until;
use crate::admin::suspend::Suspension;
use crate::config::Config;
use crate::env::Env;
use crate::error_text;
use crate::hooks::{Event, ProcessAction};
use crate::mail::Query;
use crate::session::id::ClientId;
use crate::session::{Flow, Pause, SessionFlags};
use crate::worker::Worker;
use respool_command::{Execute, ProxyCommand};
use respool_wire::Args;

/// An order to every worker. Nodes are named, because workers may be about to take over other lists of them.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    what: NodeAction,
    /// None named: all nodes.
    nodes: Vec<String>,
    /// What the reply to it waits for.
    pub(super) until: Option<Until>,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NodeAction {
    Pause,
    Resume,
    Drain,
    Reconnect,
    Suspend,
    /// Changes nothing; only the reply waits.
    WaitClose,
}

impl Order {
    /// The nodes that the order names; none: all.
    pub(super) fn nodes(&self) -> &[String] {
        &self.nodes
    }

    /// Whether the asker wants to know how many there were.
    pub(super) fn is_counted(&self) -> bool {
        self.what == NodeAction::Reconnect
    }
}

impl<E: Execute> Worker<E> {
    pub(super) fn order(&mut self, index: ClientId, command: ProxyCommand, args: Args<'_>) -> Flow {
        let what = match command {
            ProxyCommand::ProxyPause => NodeAction::Pause,
            ProxyCommand::ProxyResume => NodeAction::Resume,
            ProxyCommand::ProxyDrain if args.is_empty() => return self.env.demand(index, ProcessAction::Drain),
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
        let mut nodes = Vec::new();
        for name in args.iter() {
            let named = named(&self.env.config, name);
            if named.is_empty() {
                let words = [b"ERR there is no node or pool '", name, b"'; PROXY SHOW NODES names them"].concat();
                return self.env.refuse(index, &words);
            }
            nodes.extend(named);
        }
        let by = self.env.clients.sessions.at(index).map_or(0, |session| session.id);
        let all = self.env.config.nodes.iter().map(|node| node.name.clone());
        let is_taken = match what {
            NodeAction::Pause => self.env.change_orders(|standing| standing.pause(&nodes)),
            NodeAction::Suspend => self.env.change_orders(|standing| {
                standing.pause(&[]);
                standing.suspended = Some(Suspension { since_us: self.env.now.mono_us, by });
            }),
            NodeAction::Resume => self.env.change_orders(|standing| standing.resume(&nodes, all)),
            NodeAction::Drain => self.env.change_orders(|standing| standing.drained.extend(nodes.iter().cloned())),
            // It is over once it is carried out.
            NodeAction::Reconnect | NodeAction::WaitClose => true,
        };
        if !is_taken {
            return self.env.refuse(index, error_text::HANDED_OVER.as_bytes());
        }
        self.env.tell_order(index, &format!("{what:?} {}", nodes.join(" ")));
        self.ask_workers(index, Query::Admin(AdminQuery::Order(Order { what, nodes, until })))
    }

    /// Does what was ordered. Returns how many connections were replaced.
    pub(super) fn carry_out(&mut self, order: &Order) -> u64 {
        let mut lanes = 0;
        if order.what == NodeAction::Reconnect {
            let is_meant = |name: &String| order.nodes.is_empty() || order.nodes.contains(name);
            let nodes = self.env.config.node_ids().filter(|node| is_meant(&self.env.lanes.nodes[*node].name));
            lanes = nodes.collect::<Vec<_>>().into_iter().map(|node| self.env.lanes.renew(node)).sum();
        } else if order.what != NodeAction::WaitClose {
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
        let is_holding = self.env.is_holding() || self.client_pause.is_some();
        self.env.for_each_session(|flags| {
            if is_holding { flags.add(SessionFlags::HELD) } else { flags.remove(SessionFlags::HELD) }
        });
        if !self.env.is_holding() {
            self.env.clients.sessions.iter_mut().for_each(|(_, session)| session.details.held = HeldTime::default());
        }
        let waiting = self.env.clients.sessions.iter().filter(|(_, session)| session.pause.has(Pause::HELD));
        let indexes: Vec<ClientId> = waiting.map(|(index, _)| index).collect();
        self.env.unmark_held(indexes.len());
        // A client that has to wait on finds out when its request is read again.
        indexes.into_iter().for_each(|index| self.env.clients.unpause(index, Pause::HELD));
        self.go_on_waiting();
    }
}

impl<E: Execute> Env<E> {
    /// Asks the process for something.
    pub(super) fn demand(&mut self, index: ClientId, demand: ProcessAction) -> Flow {
        self.tell_order(index, &format!("{demand:?}"));
        if !self.shared.hooks.demand(demand) {
            return self.refuse(index, b"ERR this process takes no such orders");
        }
        self.answer(index, |reply| match demand {
            ProcessAction::Reload => reply.simple("The settings are being read again; the log says what has changed"),
            ProcessAction::Drain => {
                reply.simple("Draining: no new clients, and the process ends once all replies are out")
            }
        });
        Flow::Next
    }

    fn tell_order(&self, index: ClientId, order: &str) {
        let client = self.clients.sessions.at(index).map_or_else(String::new, |s| s.details.peer.address.clone());
        self.shared.hooks.tell(&Event::Ordered { order: order.trim().to_owned(), client });
    }

    /// Whether requests are held back at all.
    pub(crate) fn is_holding(&self) -> bool {
        self.is_all_paused || self.lanes.nodes.iter().any(|node| node.is_paused)
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
        let replicas = pool.replicas.iter().flatten().map(|replica| usize::from(*replica));
        let places = pool.places().filter(|_| !config.nodes.is_empty());
        places.chain(replicas).map(|place| config.nodes[place].name.clone()).collect()
    })
}
