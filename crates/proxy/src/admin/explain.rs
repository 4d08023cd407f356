//! `PROXY EXPLAIN`: what would be done with a command, without doing it.
//!
//! Asks the parts that decide: the rows, the routes, the placement. Nothing is decided here a second time.

use crate::config::Config;
use crate::env::Env;
use crate::error_reply::ErrorReply;
use crate::ids::{ClientId, NodeId};
use crate::push::places::ChannelPlace;
use crate::request::target::nodes_of_all;
use crate::session::Flow;
use respool_command::{Execute, Lane, Row, resolve, text as texts};
use respool_route::{KeyPlace, Place, RouteScratch, Routed, slot};
use respool_wire::{Args, Encoder};
use std::sync::Arc;

/// What was found out.
#[derive(Default)]
struct Explained {
    /// Where the request would go, in a word.
    plan: &'static str,
    /// The number of the route; `None` if no node is asked.
    route: Option<u16>,
    keys: Vec<KeyPlace>,
    channels: Vec<ChannelPlace>,
    nodes: Vec<NodeId>,
    refusal: Option<String>,
}

impl<E: Execute> Env<E> {
    pub(super) fn explain(&mut self, index: ClientId, args: Args<'_>) -> Flow {
        let row = match resolve(args) {
            Ok(row) => row,
            Err(unknown) => return self.refuse(index, ErrorReply::of(|words| unknown.write_text(args, words))),
        };
        if !row.accepts(args.len()) {
            return self.refuse(index, ErrorReply::of(|words| texts::wrong_arity(row, words)));
        }
        let explained = self.find_out(index, row, args);
        let denial = self.denial_of(index, row, args);
        let acl = denial.as_ref().map_or("allowed".into(), |denial| String::from_utf8_lossy(denial.words()));
        let lane = row.lane(args).name();
        let mode = explained
            .route
            .map_or_else(|| self.clients.mode_of(&self.config, index), |route| self.mode_under(index, route));
        let config = Arc::clone(&self.config);
        self.answer(index, |reply| {
            let routes = &config.routes;
            let route = explained.route.map(|number| routes.route(number));
            let pool = explained.route.map(|number| &*routes.pool_of(number).name);
            reply.map(11);
            field("command", row.full_name(), reply);
            field("acl", &acl, reply);
            field("lane", lane, reply);
            field("mode", mode.name(), reply);
            field("plan", explained.plan, reply);
            optional("route", route.map(|route| &*route.name), reply);
            optional("pool", pool, reply);
            reply.bulk(b"keys");
            reply.array(explained.keys.len());
            for key in &explained.keys {
                reply.map(5);
                reply.bulk(b"key");
                reply.bulk(args.get(key.index as usize).unwrap_or_default());
                reply.bulk(b"sent_as");
                reply.bulk(&key.name);
                reply.bulk(b"slot");
                reply.integer(i64::from(slot(&key.name)));
                field("route", &routes.route(key.place.route).name, reply);
                field("node", &config.nodes[key.place.node.get()].name, reply);
            }
            reply.bulk(b"channels");
            reply.array(explained.channels.len());
            for ChannelPlace { name, way, nodes } in &explained.channels {
                reply.map(5);
                reply.bulk(b"channel");
                reply.bulk(name);
                reply.bulk(b"sent_as");
                reply.bulk(&way.name);
                field("route", &routes.route(way.route).name, reply);
                field("pool", &routes.pools()[usize::from(way.pool)].name, reply);
                name_nodes(&config, nodes, reply);
            }
            name_nodes(&config, &explained.nodes, reply);
            optional("refused", explained.refusal.as_deref(), reply);
        })
    }

    /// The nodes that a request would go to.
    pub(crate) fn nodes_of(&self, index: ClientId, row: &'static Row, args: Args<'_>) -> Vec<NodeId> {
        self.find_out(index, row, args).nodes
    }

    fn find_out(&self, index: ClientId, row: &'static Row, args: Args<'_>) -> Explained {
        let local = |plan| Explained { plan, ..Explained::default() };
        if row.lane(args) == Lane::Local {
            return local("local");
        }
        if self.config.nodes.is_empty() {
            return local("engine");
        }
        let channels = self.clients.channels_named(&self.config, index, row, args);
        if !channels.is_empty() {
            let mut nodes: Vec<NodeId> = channels.iter().flat_map(|channel| channel.nodes.clone()).collect();
            nodes.sort_unstable();
            nodes.dedup();
            let route = channels.first().map(|channel| channel.way.route);
            let plan = if nodes.len() > 1 { "several" } else { "one" };
            return Explained { plan, route, channels, nodes, ..Explained::default() };
        }
        let routes = Arc::clone(&self.config.routes);
        let choose = |place: Place| match row.lane(args) {
            Lane::Blocking => self.choose_waiting_node(index, &routes, place),
            _ => self.choose_node(index, &routes, place, row),
        };
        let mut scratch = RouteScratch::default();
        let planned = routes.plan_keys(self.clients.subject(index, row), args, &mut scratch);
        let (plan, route, nodes, refusal) = match planned {
            Ok(Routed::One(place)) => ("one", Some(place.route), vec![choose(place)], None),
            Ok(Routed::All(route)) => ("all", Some(route), nodes_of_all(&routes, route, row), None),
            Ok(Routed::Scan(route, step)) => {
                ("scan", Some(route), vec![NodeId::at(routes.pool_of(route).place(step.node))], None)
            }
            Ok(Routed::Split) => {
                let places: Vec<_> = scratch.parts().map(|(place, _)| place).collect();
                let nodes = places.iter().map(|place| choose(*place)).collect();
                ("split", places.first().map(|place| place.route), nodes, None)
            }
            Err(error) => {
                let mut out = Vec::new();
                error.write(&routes, row, args, &mut Encoder::new(&mut out, respool_wire::Protocol::Resp2));
                let words = String::from_utf8_lossy(&out).trim_start_matches('-').trim_end().to_owned();
                ("refused", None, Vec::new(), Some(words))
            }
        };
        Explained { plan, route, keys: scratch.keys(&routes, args), nodes, refusal, ..Explained::default() }
    }
}

fn name_nodes(config: &Config, nodes: &[NodeId], reply: &mut Encoder<'_>) {
    reply.bulk(b"nodes");
    reply.array(nodes.len());
    nodes.iter().for_each(|node| reply.bulk(config.nodes[node.index()].name.as_bytes()));
}

fn field(name: &str, value: &str, reply: &mut Encoder<'_>) {
    reply.bulk(name.as_bytes());
    reply.bulk(value.as_bytes());
}

fn optional(name: &str, value: Option<&str>, reply: &mut Encoder<'_>) {
    reply.bulk(name.as_bytes());
    match value {
        Some(value) => reply.bulk(value.as_bytes()),
        None => reply.null(),
    }
}
