//! Connections that we have ended and whose peers have not closed yet: what they still send is thrown away.
//!
//! Closing a socket that holds unread bytes resets the connection, and a reset takes away what the peer has not been given yet.
//! So what comes is read for as long as it comes, within bounds, and once more before the socket is closed. What the kernel
//! still has for the peer then it delivers by itself, also after the end of the process, as long as the peer sends nothing more.

use crate::limits::{CONNECTIONS_KEPT, LINGER_READS_MAX, LINGER_US, LINGER_US_MAX, LINGERING_MAX};
use crate::sockets::Permit;
use crate::transport::Socket;
use std::collections::VecDeque;
use std::io;

#[derive(Debug)]
struct Lingerer {
    socket: Socket,
    _permit: Permit,
    /// The connection is dropped at this time even if bytes still come.
    until_us: u64,
    /// Bytes have come since it was last looked at.
    has_sent: bool,
}

/// All of them, of one worker.
#[derive(Debug, Default)]
pub(crate) struct Lingering {
    places: Vec<Option<Lingerer>>,
    free: Vec<usize>,
    /// The timeouts of the connections, earliest first: all timeouts have the same length.
    due: VecDeque<(u64, usize)>,
    /// Connections whose sockets may hold more unread bytes: read again in the next turn.
    ready: Vec<usize>,
    count: usize,
}

impl Lingering {
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Keeps a connection until its peer closes it or its time is over. `None`: there are too many, it is dropped.
    pub(crate) fn keep(&mut self, socket: Socket, permit: Permit, now_us: u64) -> Option<(usize, &mut Socket)> {
        // A place is free again only when its time is over, so that no other connection's time ends with it.
        if self.due.len() >= LINGERING_MAX {
            return None;
        }
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            self.places.len() - 1
        });
        self.due.push_back((now_us + LINGER_US, place));
        self.count += 1;
        let lingerer = Lingerer { socket, _permit: permit, until_us: now_us + LINGER_US_MAX, has_sent: false };
        Some((place, &mut self.places[place].insert(lingerer).socket))
    }

    /// The socket is readable: discards the bytes, or notes the end of the stream.
    pub(crate) fn hear(&mut self, place: usize) {
        let Some(Some(lingerer)) = self.places.get_mut(place) else { return };
        let mut nowhere = [0; 4096];
        for _ in 0..LINGER_READS_MAX {
            match lingerer.socket.read(&mut nowhere) {
                Ok(1..) => lingerer.has_sent = true,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Ok(0) | Err(_) => return self.drop_at(place),
            }
        }
        // The socket may hold more, and readiness is edge-triggered.
        if !self.ready.contains(&place) {
            self.ready.push(place);
        }
    }

    /// Whether any connection is pending a read or a timeout.
    #[inline]
    pub(crate) fn is_any_left(&self) -> bool {
        !(self.due.is_empty() && self.ready.is_empty())
    }

    /// Whether any connection is readable in the next turn.
    pub(crate) fn is_any_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Reads the connections that are readable.
    pub(crate) fn go_on(&mut self) {
        for place in std::mem::take(&mut self.ready) {
            self.hear(place);
        }
    }

    pub(crate) fn drop_at(&mut self, place: usize) {
        if self.places.get_mut(place).and_then(Option::take).is_some() {
            self.count -= 1;
        }
    }

    pub(crate) fn next_due_us(&self) -> Option<u64> {
        self.due.front().map(|(due_us, _)| *due_us)
    }

    /// Drops connections whose timeout has passed. A peer that sent bytes meanwhile may not have read its replies yet: its timeout
    /// is renewed.
    pub(crate) fn expire(&mut self, now_us: u64) {
        while let Some(&(due_us, place)) = self.due.front()
            && due_us <= now_us
        {
            self.due.pop_front();
            self.hear(place);
            if let Some(Some(lingerer)) = self.places.get_mut(place)
                && std::mem::take(&mut lingerer.has_sent)
                && now_us < lingerer.until_us
            {
                self.due.push_back((now_us + LINGER_US, place));
                continue;
            }
            self.drop_at(place);
            self.ready.retain(|ready| *ready != place);
            self.free.push(place);
        }
        if self.due.is_empty() && self.places.len() > CONNECTIONS_KEPT {
            // All places are free.
            *self = Self::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sockets::{Side, Sockets};
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    /// A connection that we have ended, with as much for its peer as its kernel takes, and that peer.
    fn ended(lingering: &mut Lingering) -> (usize, TcpStream, usize) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (ours, _) = listener.accept().unwrap();
        ours.set_nonblocking(true).unwrap();
        let mut socket = Socket::Tcp(mio::net::TcpStream::from_std(ours));
        let mut owed = 0;
        while let Ok(written) = socket.write(&[b'x'; 65_536]) {
            owed += written;
        }
        socket.finish().unwrap();
        let permit = std::sync::Arc::<Sockets>::default().take(Side::Client).unwrap();
        let (place, _) = lingering.keep(socket, permit, 0).unwrap();
        (place, peer, owed)
    }

    fn read_all(mut peer: TcpStream) -> usize {
        let mut all = Vec::new();
        peer.read_to_end(&mut all).expect("its end comes, and no reset");
        all.len()
    }

    #[test]
    fn what_was_sent_meanwhile_does_not_reset_the_connection() {
        let mut lingering = Lingering::default();
        let (_, mut peer, owed) = ended(&mut lingering);
        // No edge has told of it.
        peer.write_all(&[b'y'; 10_000]).unwrap();
        lingering.expire(LINGER_US);
        assert!(!lingering.is_empty(), "who has sent something is given more time");
        lingering.expire(2 * LINGER_US);
        assert!(lingering.is_empty());
        assert_eq!(read_all(peer), owed);
    }

    #[test]
    fn a_long_pipeline_is_read_to_its_end_in_turns() {
        let mut lingering = Lingering::default();
        let (place, mut peer, owed) = ended(&mut lingering);
        let sending = std::thread::spawn(move || {
            peer.write_all(&vec![b'y'; 8 << 20]).unwrap();
            peer
        });
        while !sending.is_finished() {
            lingering.hear(place);
            lingering.go_on();
            assert!(!lingering.is_empty(), "it is not cut off for sending much");
        }
        lingering.expire(LINGER_US);
        lingering.expire(2 * LINGER_US);
        assert_eq!(read_all(sending.join().unwrap()), owed);
    }

    #[test]
    fn one_that_never_stops_sending_is_dropped_in_the_end() {
        let mut lingering = Lingering::default();
        let (_, mut peer, _) = ended(&mut lingering);
        let mut now_us = 0;
        while !lingering.is_empty() {
            peer.write_all(b"more").unwrap();
            now_us += LINGER_US;
            lingering.expire(now_us);
        }
        assert_eq!(now_us, LINGER_US_MAX);
        assert!(lingering.next_due_us().is_none() && !lingering.is_any_ready());
    }
}
