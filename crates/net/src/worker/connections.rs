//! The connections of one loop: a table for each role, dense because the machine numbers them so.

use super::dial_addresses::Alternatives;
use super::named::Named;
use crate::limits::CONNECTIONS_KEPT;
use crate::sockets::Permit;
use crate::transport::Socket;
use respool_connection::{ConnId, Role};

/// A socket and what its edges promised.
pub(super) struct Connection {
    pub(super) socket: Socket,
    pub(super) permit: Permit,
    /// The dial has not been answered yet.
    pub(super) is_dialing: bool,
    /// The socket may have bytes: an edge came, or the last read did not empty it.
    pub(super) is_readable: bool,
    /// The last write was not cut short, or there has been an edge since.
    pub(super) is_writable: bool,
    /// It is in the list of those to read in the next turn.
    pub(super) is_listed: bool,
    /// A read that is cut short does not say that nothing is left: the peer has closed its side, or has sent an urgent byte, at which reads
    /// end. No edge of its own tells of what is behind.
    pub(super) is_read_to_end: bool,
    /// The peer has closed its side, and the machine knows.
    pub(super) has_ended: bool,
    /// The peer has closed its side, and waits for its turn to be taken leave of.
    pub(super) is_half_closed: bool,
    /// It has closed the other as well, or reset the connection.
    pub(super) is_gone: bool,
    /// Bytes have come since it was last looked at.
    pub(super) has_come: bool,
    /// Bytes have gone that may not have arrived.
    pub(super) has_gone: bool,
    /// The name by which it was dialled, if it was.
    pub(super) named: Option<Box<Named>>,
    /// Further ways to dial, if this one does not lead anywhere.
    pub(super) alternatives: Alternatives,
}

impl Connection {
    pub(super) fn open(socket: Socket, permit: Permit) -> Self {
        Self {
            socket,
            permit,
            is_dialing: false,
            is_readable: false,
            is_writable: true,
            is_listed: false,
            is_read_to_end: false,
            has_ended: false,
            is_half_closed: false,
            is_gone: false,
            has_come: false,
            has_gone: false,
            named: None,
            alternatives: Alternatives::default(),
        }
    }
}

/// All connections, by what the machine called them when they were registered.
#[derive(Default)]
pub(super) struct Connections {
    pub(super) clients: Vec<Option<Connection>>,
    pub(super) nodes: Vec<Option<Connection>>,
}

impl Connections {
    #[inline]
    fn table(&mut self, conn: ConnId) -> &mut Vec<Option<Connection>> {
        match conn.role() {
            Role::Client => &mut self.clients,
            Role::Node => &mut self.nodes,
        }
    }

    /// The connection of this number, if it has not been forgotten.
    #[inline]
    pub(super) fn get_mut(&mut self, conn: ConnId) -> Option<&mut Connection> {
        self.table(conn).get_mut(conn.index())?.as_mut()
    }

    pub(super) fn keep(&mut self, conn: ConnId, connection: Connection) {
        let table = self.table(conn);
        if table.len() <= conn.index() {
            table.resize_with(conn.index() + 1, || None);
        }
        table[conn.index()] = Some(connection);
    }

    /// Forgets a connection. Dropping the socket closes it, which also takes it out of the poll.
    pub(super) fn forget(&mut self, conn: ConnId) -> Option<Connection> {
        let table = self.table(conn);
        let gone = table.get_mut(conn.index())?.take();
        if conn.index() + 1 == table.len() {
            give_back(table);
        }
        gone
    }
}

/// Truncates the empty places at a table's end, and shrinks its capacity when a quarter would do, so that a reallocation moves no
/// more than what was freed.
#[cold]
fn give_back(table: &mut Vec<Option<Connection>>) {
    while table.pop_if(|last| last.is_none()).is_some() {}
    let kept = table.len().max(CONNECTIONS_KEPT);
    if table.capacity() > 4 * kept {
        table.shrink_to(2 * kept);
    }
}
