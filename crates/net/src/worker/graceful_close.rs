//! Graceful close: shut down the sending side, drain input for [`LINGER_US`](crate::limits::LINGER_US), close.

use super::{FIRST_LINGERING, Worker};
use crate::transport::Socket;
use mio::Token;
use respool_connection::{ConnId, Service};

impl<M: Service> Worker<M> {
    /// Tells a client that nothing more comes and waits a moment for it to close: closing a socket that holds unread bytes
    /// would reset it, and a reset can take away replies that the client has not read yet.
    pub(super) fn finish(&mut self, conn: ConnId) {
        let Some(connection) = self.connections.forget(conn) else { return };
        let (mut socket, permit) = (connection.socket, connection.permit);
        // A client that is gone already, or that has ended its side, has nothing to send any more.
        if socket.finish().is_err() || connection.has_ended {
            return;
        }
        let now_us = self.clock.now().mono_us;
        if let Some((place, socket)) = self.lingering.keep(socket, permit, now_us)
            && Socket::reregister(socket, self.poll.registry(), Token(FIRST_LINGERING + place)).is_err()
        {
            self.lingering.drop_at(place);
        }
    }
}
