//! Half-closed clients: at most [`HALF_CLOSES_PER_TURN_MAX`] are handled per turn.
//!
//! Closing is the most expensive operation per client. Of thousands of connections that are closed at the same moment, because their
//! program has ended, all but a few wait for later turns, so that other clients are served in between.

use super::Worker;
use crate::limits::HALF_CLOSES_PER_TURN_MAX;
use respool_connection::{ConnId, Service};

impl<M: Service> Worker<M> {
    /// A client has shut down its sending side, perhaps behind requests that have not been read.
    #[cold]
    pub(super) fn note_half_closed(&mut self, conn: ConnId) {
        let Some(connection) = self.connection(conn) else { return };
        if !std::mem::replace(&mut connection.is_half_closed, true) {
            self.half_closed.push_back(conn);
        }
    }

    /// Hands the connections that were half-closed first to the machine.
    #[cold]
    pub(super) fn handle_half_closed(&mut self) {
        for _ in 0..HALF_CLOSES_PER_TURN_MAX {
            let Some(conn) = self.half_closed.pop_front() else { return };
            // Another client may be in its place by now.
            let Some(connection) = self.connection(conn) else { continue };
            if std::mem::take(&mut connection.is_half_closed) {
                let is_gone = connection.is_gone;
                self.machine.handle_hung_up(conn);
                if is_gone {
                    self.machine.handle_gone(conn);
                }
                self.read(conn);
                self.list_again(conn);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::ACCEPTS_PER_TURN_MAX;
    use crate::testing::{Reacts, alone};
    use crate::{TransportOptions, bind, mailbox};
    use respool_connection::{Action, Endpoint, Now, Peer, ServiceAction};
    use std::os::unix::net::UnixStream;
    use std::sync::mpsc::{Receiver, Sender, channel};

    /// Accepts all, waits until all have closed, and leaves when the last is gone.
    struct Crowd {
        expected: usize,
        accepted: usize,
        departed: usize,
        /// Which connections came and went in each turn.
        turns: Vec<(usize, usize)>,
        actions: Vec<Action<ServiceAction<()>>>,
        buffer: [u8; 64],
        all_are_here: Sender<()>,
        all_have_gone: Receiver<()>,
        result: Sender<Vec<(usize, usize)>>,
    }

    impl Reacts for Crowd {
        fn actions(&mut self) -> &mut Vec<Action<ServiceAction<()>>> {
            &mut self.actions
        }

        fn begin_turn(&mut self, _: Now) {
            self.turns.push((0, 0));
        }

        fn handle_accept(&mut self, _: Peer) -> Result<ConnId, Vec<u8>> {
            self.accepted += 1;
            self.turns.last_mut().expect("a turn has begun").0 += 1;
            Ok(ConnId::client(self.accepted as u32 - 1))
        }

        fn read_buffer(&mut self) -> Option<&mut [u8]> {
            Some(&mut self.buffer)
        }

        fn handle_hung_up(&mut self, _: ConnId) {
            self.turns.last_mut().expect("a turn has begun").1 += 1;
        }

        fn handle_ended(&mut self, conn: ConnId) {
            self.actions.push(Action::Close { conn });
            self.departed += 1;
            if self.departed == self.expected {
                self.actions.insert(0, Action::Service(ServiceAction::Exit));
                self.result.send(self.turns.clone()).expect("the test waits for it");
            }
        }

        fn end_turn(&mut self) {
            if self.accepted == self.expected && self.departed == 0 {
                self.all_are_here.send(()).expect("the test waits for it");
                self.all_have_gone.recv().expect("they go");
                // Once is enough.
                self.accepted += 1;
            }
        }
    }

    #[test]
    fn a_crowd_comes_and_goes_a_few_in_each_turn() {
        const CROWD: usize = 200;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s").to_str().unwrap().to_owned();
        let endpoint = Endpoint::Unix { path: path.clone() };
        let mut shares = bind(&endpoint, 1, CROWD as i32, 0o600, &TransportOptions::default()).unwrap();
        let clients: Vec<_> = (0..CROWD).map(|_| UnixStream::connect(&path).unwrap()).collect();
        let ((here, are_here), (gone, have_gone), (result, results)) = (channel(), channel(), channel());
        let machine = Crowd {
            expected: CROWD,
            accepted: 0,
            departed: 0,
            turns: Vec::new(),
            actions: Vec::new(),
            buffer: [0; 64],
            all_are_here: here,
            all_have_gone: have_gone,
            result,
        };
        let (mail_sender, inbox) = mailbox();
        let setup = alone(machine, (mail_sender, inbox), shares.remove(0));
        let worker = std::thread::spawn(|| Worker::new(setup).unwrap().run().unwrap());
        are_here.recv().unwrap();
        drop(clients);
        gone.send(()).unwrap();
        let turns: Vec<(usize, usize)> = results.recv().unwrap();
        worker.join().unwrap();
        assert_eq!(turns.iter().map(|(_, went)| went).sum::<usize>(), CROWD);
        assert!(turns.iter().all(|(came, _)| *came <= ACCEPTS_PER_TURN_MAX), "{turns:?}");
        assert!(turns.iter().all(|(_, went)| *went <= HALF_CLOSES_PER_TURN_MAX), "{turns:?}");
    }
}
