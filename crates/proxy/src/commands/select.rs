//! `SELECT`: the database is the session's own. Nodes are asked only whether there is such a one, and only while that is not
//! known.
//!
//! ```text
//!   known: accepted by some node before, below one that was, an embedded node's --------------------------> +OK
//!   else   a node of those that the client's requests go to is dialled in that database
//!             | it has the database -------------------------------------------------- known from now on --> +OK
//!             | it says that there is none ------------------------- the client stays where it was, as at a server
//!             '- it cannot say: down, loading ..: another one is asked; if none can: error, and `session::refused_state`
//! ```
//!
//! So a node that is down matters to its own keys alone. Where a node has fewer databases than another, its keys
//! in the others are refused in its own words, request by request.

use crate::config::Config;
use crate::env::Env;
use crate::error_reply::ErrorReply;
use crate::error_text;
use crate::ids::{Asker, ClientId, LaneId, LaneKeyId, NodeId};
use crate::integer::integer;
use crate::interfaces::read_tracker::ReadTracker;
use crate::limits::DATABASE_ASKED_MAX;
use crate::pool::key_id::LaneKey;
use crate::reply::missed_select::says_that_there_is_none;
use crate::session::marks::WantedState;
use crate::session::selecting::Selecting;
use crate::session::table::Clients;
use crate::session::{Flow, SessionFlags};
use respool_command::{Execute, text as texts};
use respool_connection::Endpoint;
use respool_wire::{Args, replies};

/// Whether a database is known to exist without any node having said so.
fn is_embedded(config: &Config, database: u32) -> bool {
    let is_embedded = |node: &crate::config::NodeConfig| matches!(&*node.endpoint, Endpoint::Embedded { .. });
    database == 0 || database < config.databases && config.nodes.iter().any(is_embedded)
}

impl<E: Execute> Env<E> {
    pub(crate) fn select(&mut self, reads: &mut impl ReadTracker, index: ClientId, args: Args<'_>) -> Flow {
        let Some(number) = integer(args.at(1)) else {
            return self.refuse(index, texts::NOT_AN_INTEGER);
        };
        if i32::try_from(number).is_err() {
            return self.refuse(index, error_text::DATABASE_OUT_OF_RANGE);
        }
        let Ok(database) = u32::try_from(number) else {
            return self.refuse(index, texts::DB_OUT_OF_RANGE);
        };
        let Some(session) = self.clients.sessions.at(index) else { return Flow::Stop };
        let protocol = session.protocol;
        if session.database == database {
            return self.confirm_select(index);
        }
        if self.is_server() && database >= self.config.databases {
            return self.refuse(index, texts::DB_OUT_OF_RANGE);
        }
        let Some(()) = self.clients.settle_before(index) else { return Flow::Again };
        if self.engine.is_none() && !self.shared.databases.has(database) && !is_embedded(&self.config, database) {
            return self.ask_for_database(reads, index, database);
        }
        if !self.reclass(reads, index, database, protocol) {
            return self.refuse_select(index);
        }
        self.confirm_select(index)
    }

    /// Nodes are asked whether they have the database; nothing more is read of the client until one has answered.
    fn ask_for_database(&mut self, reads: &mut impl ReadTracker, index: ClientId, database: u32) -> Flow {
        let Some(session) = self.clients.sessions.at(index) else { return Flow::Stop };
        let (protocol, node_user) = (session.protocol, self.lanes.node_user_of(session.class));
        let Some(class) = self.class_of(LaneKey { database, protocol, node_user }) else {
            return self.refuse_select(index);
        };
        let Some(asker) = self.clients.expect_behind_barrier(index) else { return Flow::Stop };
        let selecting = Selecting { asker, asked: Vec::new() };
        self.ask_next_node(reads, selecting, class, &error_text::no_node_for_database(database));
        Flow::Pause
    }

    /// Asks one node more, of those that the client's requests would go to in that database, the ones that are up first.
    /// `error` is what the client is told if there is none.
    fn ask_next_node(
        &mut self,
        reads: &mut impl ReadTracker,
        mut selecting: Selecting,
        class: LaneKeyId,
        error: &ErrorReply,
    ) {
        let database = self.lanes.state_of(class).database;
        let mut error = error.clone();
        let mut nodes = self.clients.nodes_in(&self.config, selecting.asker.session.index, database);
        nodes.sort_by_key(|node| self.lanes.nodes[*node].is_unhealthy());
        for node in nodes {
            if selecting.asked.len() >= DATABASE_ASKED_MAX {
                break;
            }
            if selecting.asked.contains(&node) {
                continue;
            }
            let lane = self.lanes.lane(&self.config, node, class);
            if self.lanes[lane].up.is_ready() {
                return self.finish_select(reads, selecting, lane);
            }
            match self.lanes.prepare(lane, &self.config, self.now) {
                Ok(()) => {
                    self.is_busy = true;
                    selecting.asked.push(node);
                    self.lanes[lane].selects.push(selecting);
                    return;
                }
                Err(refusal) => {
                    // What the node said of this database a moment ago it would say again.
                    let state = self.lanes.state_of(class);
                    match self.lanes.nodes[node].health.refuses(state, self.now.mono_us).and_then(|known| known.words) {
                        Some(words) if says_that_there_is_none(words) => {
                            return self.clients.fill(selecting.asker, error_text::verbatim(words).as_bytes());
                        }
                        Some(words) => error = error_text::verbatim(words),
                        None => error = refusal,
                    }
                }
            }
        }
        self.clients.note_unmet_of(selecting.asker);
        self.clients.fill(selecting.asker, error.as_bytes());
    }

    /// A lane that a SELECT waited for is ready: the client is in that database now.
    pub(crate) fn finish_select(&mut self, reads: &mut impl ReadTracker, selecting: Selecting, lane: LaneId) {
        let database = self.lanes.class_database(lane);
        let Some(session) = self.clients.sessions.get_mut(selecting.asker.session) else { return };
        let (index, protocol) = (selecting.asker.session.index, session.protocol);
        if self.reclass(reads, index, database, protocol) {
            self.clients.note_met(index, &[WantedState::Database]);
            self.clients.fill(selecting.asker, replies::OK);
        } else {
            // The classes have been given to others while the node was dialled.
            self.clients.note_unmet(index, WantedState::Database);
            self.clients.fill(selecting.asker, ErrorReply::new(error_text::TOO_MANY_CLASSES).as_bytes());
        }
    }

    /// A lane that a SELECT waited for will not be ready, as [`crate::reply::missed_select::why_missed`] says.
    pub(crate) fn miss_select(
        &mut self,
        reads: &mut impl ReadTracker,
        selecting: Selecting,
        class: LaneKeyId,
        is_certain: bool,
        error: &ErrorReply,
    ) {
        match is_certain {
            true => self.clients.fill(selecting.asker, error.as_bytes()),
            false => self.ask_next_node(reads, selecting, class, error),
        }
    }

    fn confirm_select(&mut self, index: ClientId) -> Flow {
        self.clients.note_met(index, &[WantedState::Database]);
        self.confirm(index)
    }

    /// There is no room for another kind of connection.
    fn refuse_select(&mut self, index: ClientId) -> Flow {
        self.clients.note_unmet(index, WantedState::Database);
        self.refuse(index, error_text::TOO_MANY_CLASSES)
    }
}

impl Clients {
    /// The nodes that a client's requests may go to in a database.
    fn nodes_in(&self, config: &Config, index: ClientId, database: u32) -> Vec<NodeId> {
        let is_routed = self.sessions.at(index).is_some_and(|session| session.flags.has(SessionFlags::ROUTED));
        if is_routed {
            return config.routes.nodes_in(self.user_of(index), database).into_iter().map(NodeId::at).collect();
        }
        let first = config.default_node();
        std::iter::once(first).chain(config.topology_ids().filter(|node| *node != first)).collect()
    }

    fn note_unmet_of(&mut self, asker: Asker) {
        if self.sessions.get_mut(asker.session).is_some() {
            self.note_unmet(asker.session.index, WantedState::Database);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::nodes::kinds::Databases;

    #[test]
    fn a_database_that_was_accepted_vouches_for_those_below() {
        let databases = Databases::default();
        assert!(!databases.has(0));
        databases.note(3);
        databases.note(1);
        assert!(databases.has(0) && databases.has(3) && !databases.has(4));
        databases.note(u32::MAX);
        assert!(databases.has(u32::MAX - 1));
    }
}
