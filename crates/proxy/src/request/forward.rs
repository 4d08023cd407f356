//! Sends a request to the node or the nodes that answer it.
//!
//! Which they are says [`crate::request::target`]. A session under routes pays for the choice with every request; without
//! routes most requests are sent after one look at their row.

use crate::env::Env;
use crate::ids::{ClientId, Handle, LaneId, NodeId};
use crate::interfaces::call::Call;
use crate::reply::owner::Owner;
use crate::reply::progress::LostReply;
use crate::reply::task::Tasks;
use crate::request::target::nodes_of_all;
use crate::session::{Flow, SessionFlags};
use crate::workers::shared::Shared;
use respool_command::{Command, Execute, Row, ServerCommand};
use respool_route::{PoolMode, RouteScratch, Routed, Routes, plan_at_once};
use respool_wire::{Args, Request};
use std::sync::Arc;

/// Whether a request is INFO, which has sections of our own, or about parameters that are ours.
#[inline]
pub(crate) fn is_own_info(row: &Row, shared: &Shared) -> bool {
    match row.command {
        Command::Server(ServerCommand::Info) => true,
        Command::Server(ServerCommand::ConfigGet) => shared.hooks.has_parameters(),
        _ => false,
    }
}

/// Whether INFO asks for nothing but sections that only the proxy has.
pub(crate) fn asks_for_proxy(args: Args<'_>) -> bool {
    let is_own = |word: &[u8]| [&b"proxy"[..], b"nodes"].iter().any(|own| word.eq_ignore_ascii_case(own));
    args.len() > 1 && args.from(1).iter().all(is_own)
}

impl<E: Execute> Env<E> {
    /// The nodes that have the keys answer.
    #[inline]
    pub(crate) fn forward(&mut self, call: Call<'_>) -> Flow {
        let Call { index, row, request } = call;
        if self.config.routes.are_plain()
            && let Some(node) = plan_at_once(row, request.args, &self.config.topology)
        {
            return self.forward_to(index, NodeId::of(node), request);
        }
        self.forward_planned(call)
    }

    /// The same where one look at the row does not say which they are.
    #[inline(never)]
    pub(crate) fn forward_planned(&mut self, call: Call<'_>) -> Flow {
        let Call { index, row, request } = call;
        let routes = Arc::clone(&self.config.routes);
        // Borrowed for the time of the call, which may change anything else of the worker.
        let mut scratch = self.scratch.take().unwrap_or_default();
        let planned = routes.plan(self.clients.subject(index, row), request.args, &mut scratch);
        let own = planned.as_ref().ok().and_then(|planned| self.own_planned(call, &routes, *planned, &scratch));
        let flow = match (own, planned) {
            (Some(flow), _) => flow,
            (None, Ok(Routed::One(place))) => {
                let node = self.choose_node(index, &routes, place, row);
                let flow = self.send_to(index, node, request.args, |out| {
                    scratch.encode_one(&routes, place.route, request.args, request.raw, out);
                });
                if flow != Flow::Again {
                    self.note_place(place, node, row);
                }
                flow
            }
            (None, Ok(Routed::Split)) => self.fan_out(call, &routes, &scratch),
            (None, Ok(Routed::All(route))) => {
                self.note_route(route);
                if self.config.is_server && row.changes_every_shard() {
                    self.scratch = Some(scratch);
                    return self.change_engines(index, row, request.args);
                }
                let nodes = nodes_of_all(&routes, route, row);
                self.fan_out_to_all(call, &nodes)
            }
            (None, Ok(Routed::Scan(route, step))) => {
                self.note_route(route);
                let node = NodeId::at(routes.pool_of(route).place(step.node));
                self.scan(call, step, node)
            }
            (None, Err(error)) => self.answer(index, |reply| error.write(&routes, row, request.args, reply)),
        };
        self.scratch = Some(scratch);
        self.take_turns();
        flow
    }

    #[inline]
    pub(crate) fn forward_to(&mut self, index: ClientId, node: NodeId, request: &Request<'_>) -> Flow {
        self.send_to(index, node, request.args, |out| match request.raw {
            Some(raw) => out.extend_from_slice(raw),
            None => respool_wire::encode_request(out, request.args.iter()),
        })
    }

    /// One node answers what `write` appends, which is the request of `args`.
    #[inline]
    pub(crate) fn send_to(
        &mut self,
        index: ClientId,
        node: NodeId,
        args: Args<'_>,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Flow {
        let own = match self.clients.sessions.at(index) {
            Some(session) if session.flags.has(SessionFlags::LARGE) => match self.large_lane(index, node) {
                Ok(own) => own,
                Err(flow) => return flow,
            },
            _ => None,
        };
        let Some(session) = self.clients.sessions.at(index) else { return Flow::Stop };
        let lane = own.unwrap_or_else(|| self.lanes.lane(&self.config, node, session.class));
        if let Some(flow) = self.wait_for_room(index, lane) {
            return flow;
        }
        let Self { clients, lanes, config, now, .. } = self;
        let Some(handle) = clients.sessions.handle(index) else { return Flow::Stop };
        let Some(session) = clients.sessions.at_mut(index) else { return Flow::Stop };
        let owner = session.expect_from_node(handle);
        let sent = lanes.send(lane, owner, config, *now, &mut clients.pool, write);
        self.is_busy = true;
        if let Err(error) = sent {
            self.counters.node_errors.add(1);
            if let Owner::Client { seq, .. } = owner {
                self.clients.fail(handle, seq, &error);
            }
            return Flow::Next;
        }
        self.clients.note_sent(owner);
        self.keep_pace(index, lane, args)
    }

    /// Sends request number `step` of a task on a lane. `false`: it cannot leave, and the task has been told.
    pub(crate) fn send_for_task(
        &mut self,
        task: Handle,
        step: u16,
        lane: LaneId,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> bool {
        let Self { lanes, clients, tasks, config, now, counters, .. } = self;
        let sent = lanes.send(lane, Tasks::owner(task, step), config, *now, &mut clients.pool, write);
        self.is_busy = true;
        if let Err(error) = &sent {
            counters.node_errors.add(1);
            tasks.fail(task, step, LostReply::Unsent, error, clients);
        }
        sent.is_ok()
    }

    /// Has a client have its own lanes to the nodes of a request if the routes say so. `Some`: not yet, or never.
    fn own_planned(
        &mut self,
        call: Call<'_>,
        routes: &Routes,
        planned: Routed,
        scratch: &RouteScratch,
    ) -> Option<Flow> {
        let Call { index, row, .. } = call;
        if routes.are_plain() {
            // Whether a client has its own lanes to all nodes is known without its requests.
            return None;
        }
        let wants = |worker: &Self, route: u16| worker.mode_under(index, route) == PoolMode::Session;
        let nodes = match planned {
            Routed::One(place) if wants(self, place.route) => vec![self.choose_node(index, routes, place, row)],
            Routed::All(route) if wants(self, route) => nodes_of_all(routes, route, row),
            Routed::Scan(route, step) if wants(self, route) => vec![NodeId::at(routes.pool_of(route).place(step.node))],
            Routed::Split => {
                let places = scratch.parts().map(|(place, _)| place).filter(|place| wants(self, place.route));
                places.map(|place| self.choose_node(index, routes, place, row)).collect()
            }
            _ => return None,
        };
        if nodes.is_empty() { None } else { self.own_nodes(index, &nodes) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use respool_wire::ArgsBuf;

    #[test]
    fn info_is_the_proxys_alone_only_if_every_section_is() {
        for (words, is_alone) in [
            (&["INFO"][..], false),
            (&["INFO", "Proxy"], true),
            (&["INFO", "NODES", "proxy"], true),
            (&["INFO", "proxy", "memory"], false),
            (&["INFO", ""], false),
        ] {
            let args: ArgsBuf = words.iter().collect();
            assert_eq!(asks_for_proxy(args.as_args()), is_alone, "{words:?}");
        }
    }
}
