//! Clients of TLS listeners before they are clients: the machine hears of one when its handshake is over.

use super::{FIRST_HANDSHAKE, Worker};
use crate::limits::HANDSHAKE_STEPS_PER_TURN_MAX;
use crate::sockets::Permit;
use crate::tls::{Current, IdentityError};
use crate::transport::Socket;
use mio::Token;
use respool_connection::{Now, Peer, Service};
use std::fmt::Display;
use std::sync::Arc;

impl<M: Service> Worker<M> {
    /// Begins the handshake of a connection that was just accepted.
    pub(super) fn greet(&mut self, socket: Socket, peer: Peer, permit: Permit, tls: Arc<Current>, now: Now) {
        let Socket::Tcp(stream) = socket else { return self.turn_away(&peer, &"TLS is spoken over TCP only") };
        let socket = match tls.accept(stream) {
            Ok(socket) => Socket::Tls(Box::new(socket)),
            Err(error) => return self.turn_away(&peer, &error),
        };
        let due_us = now.mono_us.saturating_add(u64::try_from(tls.handshake_timeout.as_micros()).unwrap_or(u64::MAX));
        match self.handshakes.begin(socket, peer, permit, tls, due_us) {
            Ok((place, socket)) => {
                let token = Token(FIRST_HANDSHAKE + place);
                if let Err(error) = socket.register(self.poll.registry(), token)
                    && let Some(shaking) = self.handshakes.take(place)
                {
                    self.turn_away(&shaking.peer, &error);
                }
            }
            Err(peer) => self.turn_away(&peer, &"too many TLS handshakes are under way"),
        }
    }

    /// Goes on with the handshakes that something came for, within the turn's bound, and ends those that take too long.
    pub(super) fn shake_hands(&mut self, now: Now) {
        for _ in 0..HANDSHAKE_STEPS_PER_TURN_MAX {
            let Some(place) = self.handshakes.next_ready() else { break };
            let Some(shaking) = self.handshakes.get_mut(place) else { continue };
            let Socket::Tls(socket) = &mut shaking.socket else { continue };
            match socket.shake() {
                Ok(false) => {}
                Ok(true) => self.welcome(place),
                Err(error) => self.give_up(place, &error),
            }
        }
        while let Some(place) = self.handshakes.next_overdue(now.mono_us) {
            self.give_up(place, &"the TLS handshake took too long");
        }
    }

    /// A handshake is complete: the client is accepted, if its certificate names it plainly.
    fn welcome(&mut self, place: usize) {
        let Some(shaking) = self.handshakes.take(place) else { return };
        let mut peer = shaking.peer;
        let identity = match &shaking.socket {
            Socket::Tls(socket) => shaking.tls.identify(socket),
            _ => Err(IdentityError::Malformed),
        };
        match identity {
            Ok(identity) => peer.identity = identity,
            Err(error) => {
                let mut socket = shaking.socket;
                socket.say_goodbye();
                return self.turn_away(&peer, &error);
            }
        }
        if let Some(conn) = self.admit(shaking.socket, peer, shaking.permit, Socket::reregister) {
            // Its first requests may have come with the end of the handshake, and no edge tells of what is decrypted.
            self.list_again(conn);
        }
    }

    fn give_up(&mut self, place: usize, why: &dyn Display) {
        if let Some(shaking) = self.handshakes.take(place) {
            self.turn_away(&shaking.peer, why);
        }
    }

    /// Any peer can cause this at will, so it is counted and not loud.
    fn turn_away(&mut self, peer: &Peer, why: &dyn Display) {
        tracing::debug!(peer = peer.address, "a TLS handshake failed: {why}");
        self.machine.handle_handshake_failed();
    }
}
