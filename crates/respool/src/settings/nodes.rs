//! The nodes of an instance or pool: names, credentials, replicas, and whether the placement can tell them apart.

use std::collections::HashSet;

use respool_route::{DeadNode, Node, Placement, PlacementError, Scheme};

use super::address::{NodeAddress, NodeSpec};
use super::config::{Credentials, NodeSettings};
use super::diagnostic::Fault;
use super::raw::{Origin, RawPool};
use super::resolver::Resolver;
use super::suggestion::nearest;
use super::table::Setting;
use super::values::Values;

impl Resolver<'_> {
    /// The nodes, each with what it is told to let us in: its own words, or what is said for all of them.
    pub(super) fn nodes(
        &mut self,
        of: &Values<'_>,
        credentials: Option<&Credentials>,
        pool: Option<&RawPool>,
    ) -> Vec<NodeSettings> {
        let texts = of.nodes(Setting::Nodes);
        let mut nodes = named_nodes(texts, credentials);
        let origin = self.said.about(Setting::Nodes, pool).map_or(Origin::Default, |said| said.origin.clone());
        for (node, text) in nodes.iter_mut().zip(texts) {
            let password = match &text.password_file {
                Some(path) => self.secret_at(path, &origin),
                None => node.credentials.as_ref().map(|credentials| credentials.password.clone()),
            };
            if text.username.is_none() && text.password_file.is_none() {
                continue;
            }
            let Some(password) = password else {
                if text.password_file.is_none() {
                    let fault = Fault::new(origin.clone(), format!("node {} has a user without a password", node.name));
                    self.fault(fault.hint("add password_file=FILE behind it, or set node_password_file"));
                }
                continue;
            };
            let username = text.username.clone().or(node.credentials.take().and_then(|known| known.username));
            node.credentials = Some(Credentials { username, password });
        }
        nodes
    }

    /// The engines of an embedded server that has several. What is said of nodes cannot be meant for them.
    pub(super) fn engines(&mut self, of: &Values<'_>, threads: usize, pool: Option<&RawPool>) -> Vec<NodeSettings> {
        let hint = "engines beside nodes are nodes themselves: embedded:";
        if !of.nodes(Setting::Nodes).is_empty() {
            self.blame(Setting::EngineThreads, pool, "engine_threads is about a server without nodes", hint);
        }
        let routing = pool.map(|pool| &pool.routing).filter(|routing| !routing.is_empty());
        if !routing.unwrap_or(&self.said.routing).is_empty() {
            self.blame(Setting::EngineThreads, pool, "engine_threads is about a server without routes", hint);
        }
        if DeadNode::ALL[of.word(Setting::DeadNode)].0 != DeadNode::Error {
            let message = "an engine's keys are in no other engine: dead_node cannot be next with engine_threads";
            self.blame(Setting::DeadNode, pool, message, "leave it out");
        }
        let engine = |number| NodeSettings {
            name: format!("engine-{number}"),
            address: NodeAddress::Embedded,
            weight: 1,
            replica_of: None,
            credentials: None,
            tls: None,
        };
        (1..=threads).map(engine).collect()
    }

    /// Whether the placement can tell the nodes apart; without nodes there is nothing to place.
    pub(super) fn nodes_fit(&mut self, nodes: &[NodeSettings], scheme: Scheme, pool: Option<&RawPool>) {
        let mut seen = HashSet::new();
        for node in nodes.iter().filter(|node| !seen.insert(&node.name)) {
            let hint = "give one of them another with name=NAME behind its address";
            self.blame(Setting::Nodes, pool, &format!("two nodes have the name {}", node.name), hint);
        }
        for node in nodes {
            let Some(primary) = &node.replica_of else { continue };
            if !nodes.iter().any(|other| other.name == *primary && other.replica_of.is_none()) {
                let hint = "replica_of= names a node of the same pool that is no replica itself";
                let message = format!("node {} is a replica of {primary}, which is not there", node.name);
                self.blame(Setting::Nodes, pool, &message, hint);
            }
        }
        match placed(scheme, nodes) {
            // Reported above, for every placement, because logs and metrics tell nodes apart by name as well.
            Ok(_) | Err(PlacementError::NoNodes | PlacementError::SameName { .. }) => {}
            Err(error) => {
                let message = format!("placement {scheme} does not fit these nodes");
                self.blame(Setting::Nodes, pool, &message, error);
            }
        }
    }

    pub(super) fn default_node(&mut self, of: &Values<'_>, nodes: &[NodeSettings], pool: Option<&RawPool>) -> usize {
        let Some(wanted) = of.text(Setting::DefaultNode) else { return 0 };
        let mut primaries = nodes.iter().filter(|node| node.replica_of.is_none());
        let position = primaries.position(|node| node.name == wanted || node.address.to_string() == wanted);
        position.unwrap_or_else(|| {
            let hint = match nearest(wanted, nodes.iter().map(|node| node.name.as_str())) {
                Some(near) => format!("the nearest is {near}"),
                None => "a node is named by its address, or by name=NAME behind it".to_owned(),
            };
            self.blame(Setting::DefaultNode, pool, &format!("there is no node {wanted:.200?}"), hint);
            0
        })
    }

    pub(super) fn credentials(&mut self, of: &Values<'_>, pool: Option<&RawPool>) -> Option<Credentials> {
        let username = of.text(Setting::NodeUsername).map(str::to_owned);
        let places = [Setting::NodePassword, Setting::NodePasswordFile];
        let password = self.secret(of, places, pool);
        if username.is_some() && of.secret(places[0]).is_none() && of.text(places[1]).is_none() {
            self.blame(Setting::NodeUsername, pool, "a user without a password", "set node_password_file");
        }
        password.map(|password| Credentials { username, password })
    }
}

fn named_nodes(nodes: &[NodeSpec], credentials: Option<&Credentials>) -> Vec<NodeSettings> {
    let mut engines = 0;
    let mut named = Vec::with_capacity(nodes.len());
    for node in nodes {
        let plain = match &node.address {
            NodeAddress::Embedded => {
                engines += 1;
                format!("embedded-{engines}")
            }
            NodeAddress::Remote(address) => address.to_string(),
        };
        let credentials = matches!(node.address, NodeAddress::Remote(_)).then(|| credentials.cloned()).flatten();
        named.push(NodeSettings {
            name: node.name.clone().unwrap_or(plain),
            address: node.address.clone(),
            weight: node.weight,
            replica_of: node.replica_of.clone(),
            credentials,
            tls: node.tls.clone(),
        });
    }
    named
}

/// Whether a placement can tell the nodes apart that keys are placed on.
pub(super) fn placed(scheme: Scheme, nodes: &[NodeSettings]) -> Result<Placement, PlacementError> {
    let primaries = nodes.iter().filter(|node| node.replica_of.is_none());
    let nodes: Vec<Node> = primaries.map(|node| Node::new(&*node.name).with_weight(node.weight)).collect();
    Placement::new(scheme, &nodes)
}
