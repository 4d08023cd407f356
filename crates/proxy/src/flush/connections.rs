//! What the loop tells of a connection and asks for it, whether it is a client's or one to a node.
//!
//! Nothing here concerns a feature. What does is in `worker`, which knows by [`Party`] whose a connection is.

use crate::env::Env;
use crate::flush::client::WrittenClient;
use crate::ids::{ClientId, LaneId};
use crate::mail::Mail;
use crate::pool::LaneEnd;
use respool_command::Execute;
use respool_connection::{Action, ConnId, DialFailure, ServiceAction};

/// Whose a connection of the loop is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Party {
    /// One to a node.
    Lane(LaneId),
    /// A client's.
    Client(ClientId),
}

impl Party {
    #[inline(always)]
    pub(crate) fn of(conn: ConnId) -> Self {
        if conn.is_upstream() { Self::Lane(LaneId::of(conn)) } else { Self::Client(ClientId::of(conn)) }
    }
}

impl<E: Execute> Env<E> {
    /// The owner of a connection on which something has happened. `None`: the worker has given the connection up, and events of it are ignored.
    pub(crate) fn party(&self, conn: ConnId) -> Option<Party> {
        let party = Party::of(conn);
        match party {
            Party::Lane(lane) if self.lanes.all.get(lane).is_none_or(|lane| lane.is_closing) => None,
            Party::Lane(_) | Party::Client(_) => Some(party),
        }
    }

    fn open_lane(&self, conn: ConnId) -> Option<LaneId> {
        match self.party(conn)? {
            Party::Lane(lane) => Some(lane),
            Party::Client(_) => None,
        }
    }

    /// Room for what is sent on a connection. `None`: it is not read.
    #[inline]
    pub(crate) fn room_of(&mut self, conn: ConnId) -> Option<&mut [u8]> {
        match Party::of(conn) {
            Party::Lane(lane) => self.room_of_lane(lane),
            Party::Client(client) => self.room_of_client(client),
        }
    }

    /// The bytes that wait to be written to a connection.
    #[inline]
    pub(crate) fn output_of(&self, conn: ConnId) -> &[u8] {
        match Party::of(conn) {
            Party::Lane(lane) => self.lanes[lane].up.output(),
            Party::Client(client) => self.clients.sessions.at(client).map_or(&[], |s| s.down.output().as_slice()),
        }
    }

    /// A connection has been written. `Some`: that concerns features.
    #[inline(always)]
    pub(crate) fn handle_written(&mut self, conn: ConnId, bytes: usize) -> Option<(ClientId, WrittenClient)> {
        match Party::of(conn) {
            Party::Lane(lane) => {
                self.handle_lane_written(lane, bytes);
                None
            }
            Party::Client(client) => Some((client, self.handle_client_written(client, bytes)?)),
        }
    }

    /// A connection can be written again.
    pub(crate) fn handle_writable(&mut self, conn: ConnId) {
        match Party::of(conn) {
            Party::Lane(lane) => self.handle_lane_writable(lane),
            Party::Client(client) => {
                if let Some(session) = self.clients.sessions.at_mut(client) {
                    session.is_blocked = false;
                    self.clients.full.remove(&client);
                    self.clients.list(client);
                }
            }
        }
    }

    /// A dial has reached an address of its node.
    pub(crate) fn handle_connected(&mut self, conn: ConnId) {
        if let Some(lane) = self.open_lane(conn) {
            self.handle_lane_connected(lane);
        }
    }

    /// A dial has failed.
    pub(crate) fn handle_dial_failed(&mut self, conn: ConnId, failure: DialFailure) {
        if let Some(lane) = self.open_lane(conn) {
            self.counters.dials_without_descriptor.add(u64::from(failure == DialFailure::NoDescriptor));
            self.end_lane(lane, LaneEnd::Dial(failure));
        }
    }

    /// Which address a connection to a node has, or is dialled at.
    pub(crate) fn handle_address(&mut self, conn: ConnId, address: &str) {
        if let Some(lane) = self.open_lane(conn) {
            self.note_lane_address(lane, address);
        }
    }

    /// The name of a node has led to these addresses.
    pub(crate) fn handle_moved(&mut self, conn: ConnId, addresses: &str) {
        if let Some(lane) = self.open_lane(conn) {
            self.note_moved(lane, addresses);
        }
    }

    /// What the loop is to do next, apart from writing.
    pub(crate) fn next_action(&mut self) -> Option<Action<ServiceAction<Mail>>> {
        let action = self.actions.pop_front()?;
        if let Action::Close { conn } | Action::Finish { conn } = action {
            match Party::of(conn) {
                Party::Lane(lane) => self.lanes.note_closed(lane),
                Party::Client(client) => self.clients.sessions.release(client),
            }
        }
        Some(action)
    }

    /// What the loop is to write next. `None`: for now there is nothing.
    #[inline(always)]
    pub(crate) fn next_output(&mut self) -> Option<ConnId> {
        if let Some(lane) = self.next_lane_to_write() {
            return Some(lane.conn());
        }
        while let Some(index) = self.clients.listed.pop() {
            if self.review_client(index) {
                return Some(index.conn());
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{LaneKeyId, NodeId};
    use crate::testing::env_with_node;

    #[test]
    fn a_closed_connection_is_nothing_to_the_worker_any_more() {
        let mut env = env_with_node();
        let client = env.test_client();
        let lane = env.lanes.lane(&env.config, NodeId::nth(0), LaneKeyId::PLAIN);
        assert_eq!(env.party(lane.conn()), Some(Party::Lane(lane)));
        assert_eq!(env.party(client.conn()), Some(Party::Client(client)));
        env.close_upstream(lane);
        assert_eq!(env.party(lane.conn()), None);
        env.handle_address(lane.conn(), "10.0.0.1:1");
        assert_eq!(env.lanes[lane].at, None, "what the loop tells of it is about its former connection");
        env.close_upstream(lane);
        assert!(matches!(env.next_action(), Some(Action::Close { conn }) if conn == lane.conn()));
        assert!(env.next_action().is_none(), "it is closed once");
    }

    #[test]
    fn clients_that_are_listed_are_written_once() {
        let mut env = env_with_node();
        let [first, second] = [(), ()].map(|()| env.test_client());
        env.answer(first, |reply| reply.simple("A"));
        env.clients.list(second);
        assert_eq!(env.next_output(), Some(first.conn()), "there is nothing for the other");
        assert_eq!(env.output_of(first.conn()), b"+A\r\n");
        let written = env.handle_written(first.conn(), 4);
        assert!(matches!(written, Some((client, written)) if client == first && !written.has_subscriber));
        assert!(env.output_of(first.conn()).is_empty());
        assert_eq!(env.next_output(), None);
    }

    #[test]
    fn a_client_is_written_on_when_its_socket_takes_more() {
        let mut env = env_with_node();
        let client = env.test_client();
        env.answer(client, |reply| reply.simple("A"));
        assert_eq!(env.next_output(), Some(client.conn()));
        env.handle_written(client.conn(), 1);
        assert!(env.test_session(client).is_blocked);
        env.clients.list(client);
        assert_eq!(env.next_output(), None, "its socket is full");
        env.handle_writable(client.conn());
        assert_eq!((env.next_output(), env.output_of(client.conn())), (Some(client.conn()), &b"A\r\n"[..]));
    }
}
