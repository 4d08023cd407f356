//! Tracked keys under routes: by which route a key was read, and what clients call what a node speaks of.
//!
//! A key is remembered under the route by which it was read and under the name that its client has for it. What a node
//! says has changed is looked up under every route that leads to that node's pool, by the name that it has before the
//! route renames it, so a client that is led to another pool, or to another name, is told of nothing that is not its own.

use super::reads;
use crate::env::Env;
use crate::ids::{ClientId, NodeId};
use crate::push::places::user_text;
use crate::session::table::Clients;
use crate::tracking::Subscriptions;
use crate::tracking::state::Tracking;
use respool_command::{Execute, Row};
use respool_route::{RouteScratch, Routes};
use respool_wire::Args;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Bytes of a route's number.
const SCOPE_BYTES: usize = size_of::<u16>();

/// A key's name with the route by which it was read.
fn scoped(route: u16, name: &[u8]) -> Box<[u8]> {
    [&route.to_be_bytes()[..], name].concat().into()
}

/// The name without the route.
pub(super) fn name(scoped: &[u8]) -> &[u8] {
    scoped.get(SCOPE_BYTES..).unwrap_or_default()
}

/// What keys of a node may be called, each with the route that leads there under this name.
fn names(routes: &Routes, node: NodeId, keys: &[&[u8]]) -> Vec<(u16, Vec<u8>)> {
    let Some(pool) = routes.pool_at(node.place()) else { return Vec::new() };
    let leading = routes.routes().iter().enumerate().filter(|(_, route)| route.pool == pool);
    let of_route = |number: u16| keys.iter().filter_map(move |key| Some((number, routes.name_before(number, key)?)));
    leading.flat_map(|(number, _)| of_route(number as u16)).collect()
}

/// What a user calls keys of a node, if it can be led to them.
pub(super) fn names_for(routes: &Routes, node: NodeId, user: &[u8], keys: &[&[u8]]) -> Vec<Box<[u8]>> {
    reachable(routes, user, &names(routes, node, keys))
}

fn reachable(routes: &Routes, user: &[u8], names: &[(u16, Vec<u8>)]) -> Vec<Box<[u8]>> {
    let user = user_text(user);
    let reached = names.iter().filter(|(number, name)| routes.may_lead(*number, user, name));
    let mut reached: Vec<Box<[u8]>> = reached.map(|(_, name)| name.as_slice().into()).collect();
    reached.sort_unstable();
    reached.dedup();
    reached
}

impl Subscriptions {
    /// A node tells of changed keys.
    pub(super) fn invalidate_routed(&mut self, routes: &Routes, node: NodeId, keys: &[&[u8]], clients: &mut Clients) {
        let names = names(routes, node, keys);
        for (route, name) in &names {
            if let Some(id) = self.tracked.keys.find(&scoped(*route, name)) {
                self.invalidate_key(id, clients);
            }
        }
        // Clients of one user are led alike.
        let mut by_user: BTreeMap<Box<[u8]>, Vec<Box<[u8]>>> = BTreeMap::new();
        for handle in self.broadcast_clients(clients) {
            let Some(session) = clients.sessions.get_mut(handle) else { continue };
            let user = session.user_name();
            let reached = match by_user.get(user) {
                Some(reached) => reached,
                None => by_user.entry(user.into()).or_insert_with_key(|user| reachable(routes, user, &names)),
            };
            let reached: Vec<&[u8]> = reached.iter().map(|key| &**key).collect();
            self.tell_by_prefix(handle, &reached, clients);
        }
    }

    /// Other routes may hold: what was remembered under those before is told of as if it had changed.
    pub(crate) fn forget_names(&mut self, env: &mut Env<impl Execute>) {
        let was_routed = self.is_routed;
        self.is_routed = !env.config.routes.are_plain();
        if !was_routed && !self.is_routed {
            return;
        }
        self.invalidate_all(&mut env.clients);
        for (_, session) in env.clients.sessions.iter_mut() {
            if let Some(tracking) = Tracking::of_mut(&mut session.subscriber) {
                tracking.is_transaction_in_doubt = true;
                tracking.queued_keys.clear();
            }
        }
    }
}

impl<E: Execute> Env<E> {
    /// The keys that a request reads, each with the route that leads to it. `None`: it reads none.
    pub(super) fn scoped_keys(&self, index: ClientId, row: &'static Row, args: Args<'_>) -> Option<Vec<Box<[u8]>>> {
        if !reads(row) {
            return None;
        }
        let routes = Arc::clone(&self.config.routes);
        let mut scratch = RouteScratch::default();
        // What is refused reads nothing.
        routes.plan_keys(self.clients.subject(index, row), args, &mut scratch).ok()?;
        let keys = scratch.keys(&routes, args).into_iter();
        Some(keys.map(|key| scoped(key.place.route, args.get(key.index as usize).unwrap_or_default())).collect())
    }
}
