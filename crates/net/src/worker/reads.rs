//! Which connections a turn reads, and when: nodes in each turn, clients as far as [`super::read_queue`] has room.

use super::Worker;
use respool_connection::{ConnId, Role, Service};

impl<M: Service> Worker<M> {
    /// Reads a connection of which an edge told, in this turn or in the next.
    #[inline]
    pub(super) fn read_or_defer(&mut self, conn: ConnId) {
        if conn.role() == Role::Node || self.reads.has_room() {
            return self.read(conn);
        }
        if let Some(connection) = self.connections.get_mut(conn)
            && !connection.is_listed
        {
            connection.is_listed = true;
            self.reads.deferred.push_back(conn);
        }
    }

    /// Reads `conn` again in the next turn.
    pub(super) fn list_again(&mut self, conn: ConnId) {
        let Some(connection) = self.connections.get_mut(conn) else { return };
        connection.is_readable = true;
        if !std::mem::replace(&mut connection.is_listed, true) {
            match conn.role() {
                Role::Node => self.reads.nodes.push(conn),
                Role::Client => self.reads.again.push_back(conn),
            }
        }
    }

    /// Reads nodes that an earlier turn did not empty. Each was listed in an earlier turn: call it before those of this turn are.
    pub(super) fn read_listed_nodes(&mut self, nodes: Vec<ConnId>) {
        nodes.into_iter().for_each(|conn| self.read_listed(conn));
    }

    /// Takes the list of [`Self::read_listed_nodes`].
    #[inline]
    pub(super) fn take_listed_nodes(&mut self) -> Vec<ConnId> {
        std::mem::take(&mut self.reads.nodes)
    }

    /// Reads clients that an earlier turn deferred, as long as this one has room.
    #[inline]
    pub(super) fn read_deferred(&mut self) {
        while self.reads.has_room()
            && let Some(conn) = self.reads.deferred.pop_front()
        {
            self.read_listed(conn);
        }
    }

    /// Reads clients that were listed before this turn: all for which there is room, but at least one.
    pub(super) fn read_again(&mut self, listed: usize) {
        for nth in 0..listed {
            if nth > 0 && !self.reads.has_room() {
                return;
            }
            let Some(conn) = self.reads.again.pop_front() else { return };
            self.read_listed(conn);
        }
    }

    /// How many clients there are for [`Self::read_again`].
    #[inline]
    pub(super) fn count_again(&self) -> usize {
        self.reads.again.len()
    }

    fn read_listed(&mut self, conn: ConnId) {
        // Another connection may be in its place by now, which has nothing to read, or is read early.
        if let Some(connection) = self.connections.get_mut(conn) {
            connection.is_listed = false;
            self.read(conn);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::CLIENT_BYTES_PER_TURN;
    use crate::testing::{Reacts, alone};
    use crate::{TransportOptions, bind, mailbox};
    use respool_connection::{Action, Endpoint, Now, Peer, ServiceAction};
    use socket2::SockRef;
    use std::io::Write;
    use std::net::TcpStream;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;
    use std::sync::mpsc::{Sender, channel};
    use std::time::Duration;

    const READ_BYTES: usize = CLIENT_BYTES_PER_TURN / 2;
    const LARGE_CLIENTS: usize = 5;
    const READS_EACH: usize = 8;

    /// Reads all of some clients that have sent much, and has another send a byte once it has begun.
    struct Reader {
        accepted: u32,
        small: UnixStream,
        /// The connections that were read in each turn, and how many bytes of each.
        turns: Vec<Vec<(usize, usize)>>,
        left: usize,
        actions: Vec<Action<ServiceAction<()>>>,
        buffer: [u8; READ_BYTES],
        result: Sender<Vec<Vec<(usize, usize)>>>,
    }

    impl Reacts for Reader {
        fn actions(&mut self) -> &mut Vec<Action<ServiceAction<()>>> {
            &mut self.actions
        }

        fn begin_turn(&mut self, _: Now) {
            if self.turns.iter().filter(|turn| !turn.is_empty()).count() == 2 {
                self.small.write_all(b"s").expect("the worker has not closed it");
            }
            self.turns.push(Vec::new());
        }

        fn handle_accept(&mut self, _: Peer) -> Result<ConnId, Vec<u8>> {
            self.accepted += 1;
            Ok(ConnId::client(self.accepted - 1))
        }

        fn read_buffer(&mut self) -> Option<&mut [u8]> {
            Some(&mut self.buffer)
        }

        fn handle_read(&mut self, conn: ConnId, bytes: usize) {
            self.turns.last_mut().expect("a turn has begun").push((conn.index(), bytes));
            self.left = self.left.saturating_sub(bytes);
            if self.left == 0 {
                self.actions.push(Action::Service(ServiceAction::Exit));
                self.result.send(self.turns.clone()).expect("the test waits for it");
                self.left = usize::MAX;
            }
        }
    }

    #[test]
    fn a_turn_reads_clients_in_turn_and_no_more_than_its_bound() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s").to_str().unwrap().to_owned();
        let endpoint = Endpoint::Unix { path: path.clone() };
        let mut shares = bind(&endpoint, 1, 16, 0o600, &TransportOptions::default()).unwrap();
        // What they send lies in their sockets before the worker accepts them.
        let large: Vec<UnixStream> = (0..LARGE_CLIENTS)
            .map(|_| {
                let mut client = UnixStream::connect(&path).unwrap();
                client.write_all(&[b'l'; READ_BYTES * READS_EACH]).unwrap();
                client
            })
            .collect();
        let small = UnixStream::connect(&path).unwrap();
        let (result, results) = channel();
        let machine = Reader {
            accepted: 0,
            small,
            turns: Vec::new(),
            left: LARGE_CLIENTS * READ_BYTES * READS_EACH,
            actions: Vec::new(),
            buffer: [0; READ_BYTES],
            result,
        };
        let (mail_sender, inbox) = mailbox();
        let setup = alone(machine, (mail_sender, inbox), shares.remove(0));
        let worker = std::thread::spawn(|| Worker::new(setup).unwrap().run().unwrap());
        let turns: Vec<_> = results.recv().unwrap().into_iter().filter(|turn| !turn.is_empty()).collect();
        worker.join().unwrap();
        drop(large);

        let bound = CLIENT_BYTES_PER_TURN + 2 * READ_BYTES;
        let bytes_of = |turn: &[(usize, usize)]| turn.iter().map(|(_, bytes)| bytes).sum::<usize>();
        assert!(turns.iter().all(|turn| bytes_of(turn) < bound), "{turns:?}");
        // It sent in the third turn that read anything: it is read in the next, before those that are read again.
        assert_eq!(turns[3].first(), Some(&(LARGE_CLIENTS, 1)), "{turns:?}");
        // No client is read more than two times more often than another, at any time.
        let mut reads = [0; LARGE_CLIENTS];
        for (client, _) in turns.iter().flatten().filter(|(client, _)| *client < LARGE_CLIENTS) {
            reads[*client] += 1;
            let (fewest, most) = (reads.iter().min().unwrap(), reads.iter().max().unwrap());
            assert!(most - fewest <= 2, "{turns:?}");
        }
    }

    /// Notes what it is sent by a client, until that is so much.
    struct Hearer {
        heard: Vec<u8>,
        expected: usize,
        actions: Vec<Action<ServiceAction<()>>>,
        buffer: [u8; READ_BYTES],
        result: Sender<Vec<u8>>,
    }

    impl Reacts for Hearer {
        fn actions(&mut self) -> &mut Vec<Action<ServiceAction<()>>> {
            &mut self.actions
        }

        fn handle_accept(&mut self, _: Peer) -> Result<ConnId, Vec<u8>> {
            Ok(ConnId::client(0))
        }

        fn read_buffer(&mut self) -> Option<&mut [u8]> {
            Some(&mut self.buffer)
        }

        fn handle_read(&mut self, _: ConnId, bytes: usize) {
            self.heard.extend_from_slice(&self.buffer[..bytes]);
            if self.heard.len() >= self.expected {
                let _ = self.result.send(std::mem::take(&mut self.heard));
                self.actions.push(Action::Service(ServiceAction::Exit));
            }
        }
    }

    /// A read ends at an urgent byte, so it is short though there is more, and no edge tells of what is behind.
    #[test]
    fn what_stands_behind_an_urgent_byte_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s").to_str().unwrap().to_owned();
        let unix = Endpoint::Unix { path: path.clone() };
        let tcp = Endpoint::Tcp { host: "127.0.0.1".to_owned(), port: 0 };
        for endpoint in [tcp, unix] {
            let listener = bind(&endpoint, 1, 8, 0o600, &TransportOptions::default()).unwrap().remove(0).remove(0);
            let client: Box<dyn AsFd> = match endpoint {
                Endpoint::Tcp { .. } => Box::new(TcpStream::connect(listener.address()).unwrap()),
                _ => Box::new(UnixStream::connect(&path).unwrap()),
            };
            let client = SockRef::from(&client);
            // All of it is there when the worker reads first.
            client.send(b"before").unwrap();
            if client.send_out_of_band(b"!").is_err() {
                // Not every kernel has that for sockets that are files.
                continue;
            }
            client.send(b"behind").unwrap();
            let (result, heard) = channel();
            let hearer =
                Hearer { heard: Vec::new(), expected: 12, actions: Vec::new(), buffer: [0; READ_BYTES], result };
            let setup = alone(hearer, mailbox(), vec![listener]);
            std::thread::spawn(|| Worker::new(setup).unwrap().run().unwrap());
            let heard = heard.recv_timeout(Duration::from_secs(5)).expect("everything is read");
            assert_eq!(heard, b"beforebehind", "{endpoint:?}");
        }
    }
}
