//! Looking after nodes of which nothing is heard, and the options of connections.

use super::{Worker, earlier};
use crate::TransportOptions;
use crate::limits::CLIENTS_LOOKED_AT_MAX;
use crate::peer_liveness::Liveness;
use respool_connection::{ConnId, Now, Service};
use rustix::io::Errno;

impl<M: Service> Worker<M> {
    /// A connection to a node is there.
    pub(super) fn watch(&mut self, conn: ConnId) {
        if let Some(Some(connection)) = self.connections.nodes.get_mut(conn.index()) {
            self.liveness.begin(conn, &mut connection.socket);
            self.plan_looks();
        }
    }

    /// Connections get other options from now on. What a listener accepts has its options.
    #[cold]
    pub(super) fn take_options(&mut self, of_clients: TransportOptions, of_nodes: TransportOptions) {
        self.transport = of_nodes;
        self.names.set_interval(of_nodes.names_interval);
        // There may be connections already.
        let now = self.clock.now();
        self.names.plan(now);
        self.liveness.set_patience(of_nodes.user_timeout);
        self.plan_looks();
        for listener in &self.listeners {
            if let Err(error) = listener.set_options(&of_clients) {
                tracing::warn!(listener = listener.address(), %error, "the options of its clients stay as they were");
            }
        }
    }

    /// Checks node and client connections if their intervals have passed.
    #[cold]
    pub(super) fn look_at_all(&mut self, now: Now) {
        if self.liveness.begin_look(now) {
            self.look(now);
        }
        if self.client_liveness.begin_look(now) {
            self.look_at_clients(now);
        }
        self.plan_looks();
    }

    /// Sets the time of the next check. To be called when a check has become necessary, or possible.
    pub(super) fn plan_looks(&mut self) {
        self.look_us = earlier(self.liveness.next_look_us(), self.client_liveness.next_look_us());
    }

    /// The same for client connections, at most `CLIENTS_LOOKED_AT_MAX` at a time.
    #[cold]
    fn look_at_clients(&mut self, now: Now) {
        let (mut gone, mut asked) = (Vec::new(), 0);
        let first = if self.client_looked_at < self.connections.clients.len() { self.client_looked_at } else { 0 };
        self.client_looked_at = 0;
        for (place, connection) in self.connections.clients.iter_mut().enumerate().skip(first) {
            let Some(connection) = connection.as_mut().filter(|c| c.has_gone) else { continue };
            let conn = ConnId::client(place as u32);
            if std::mem::take(&mut connection.has_come) {
                self.client_liveness.trust(conn);
                continue;
            }
            if asked == CLIENTS_LOOKED_AT_MAX {
                self.client_looked_at = place;
                self.client_liveness.is_awake = true;
                break;
            }
            asked += 1;
            match self.client_liveness.judge(conn, &mut connection.socket, now) {
                Liveness::Quiet => connection.has_gone = false,
                Liveness::Open => {}
                Liveness::Gone => gone.push(conn),
            }
        }
        self.client_liveness.is_awake |= first > 0;
        for conn in gone {
            self.lose(conn, &Errno::TIMEDOUT.into());
        }
    }

    /// Looks at the connections to which something was written and from which nothing comes, and gives up those whose peers
    /// have vanished.
    #[cold]
    fn look(&mut self, now: Now) {
        let mut gone = Vec::new();
        for (place, connection) in self.connections.nodes.iter_mut().enumerate() {
            let Some(connection) = connection.as_mut().filter(|c| c.has_gone && !c.is_dialing) else { continue };
            let conn = ConnId::upstream(place as u32);
            if std::mem::take(&mut connection.has_come) {
                self.liveness.trust(conn);
                continue;
            }
            match self.liveness.judge(conn, &mut connection.socket, now) {
                Liveness::Quiet => connection.has_gone = false,
                Liveness::Open => {}
                Liveness::Gone => gone.push(conn),
            }
        }
        for conn in gone {
            self.lose(conn, &Errno::TIMEDOUT.into());
        }
    }
}
