//! Whether peers are still there, as far as their kernels say.
//!
//! TCP_USER_TIMEOUT gives a connection up that makes no progress, and a peer that does not read makes none: behind a full
//! window it is taken for dead however often its kernel says that it is alive. So it is not set for nodes, and taken back
//! for clients, which may well pause. Instead the
//! loop asks its own kernel about connections to which something was written and from which nothing comes. One that has
//! sent something, or has asked whether there is room now, and has heard no acknowledgement of any kind since, is in
//! doubt; if that goes on for as long as the timeout says, although it was sent again, the peer has vanished.
//!
//! ```text
//!             written to                      nothing comes              no acknowledgement
//!   [quiet] -------------> [to be looked at] --------------> [in doubt] --------------------> (lost)
//!      ^                     |         ^      sent or asked      |       for the timeout
//!      '--- all is there ----'         '-- any acknowledgement --'
//! ```
//!
//! Where the kernel does not answer (not Linux, or a sandbox without netlink), TCP_USER_TIMEOUT is set after all.

#[cfg(any(target_os = "linux", target_os = "android"))]
mod sock_diag;

use crate::limits::{LOOK_AT_CLIENTS_US, LOOK_US};
use crate::transport::Socket;
use respool_connection::{ConnId, Now};
use socket2::SockRef;
use std::collections::HashMap;
use std::time::Duration;

#[cfg(any(target_os = "linux", target_os = "android"))]
use sock_diag::Diag;

/// Times of acknowledgements that differ by less are the same: the kernel tells whole milliseconds, and counts in up to ten.
const SAME_US: u64 = 20_000;

/// How long a peer without room may leave a question for it unanswered, because it has answered one shortly before.
const ROOM_ANSWERS: Duration = Duration::from_millis(500);

/// What the kernel knows of one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Signs {
    /// All that was written has been acknowledged.
    pub(crate) is_all_there: bool,
    /// What it waits for an answer to.
    pub(crate) asks: Asks,
    /// How long ago the last acknowledgement of any kind came, in microseconds.
    pub(crate) since_heard_us: u64,
}

/// What the kernel has sent since anything of any kind came from the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asks {
    /// Nothing: there is nothing to send, or the peer has no room and was not asked since it said so.
    Nothing,
    /// Bytes, once. On a long way that proves nothing.
    Once,
    /// Whether there is room, once. Peers answer that twice a second and not more often.
    Room,
    /// More than once, or it cannot even send.
    Again,
}

/// A connection that may have lost its peer.
#[derive(Clone, Copy, Debug)]
struct Doubt {
    began_us: u64,
    /// The last acknowledgement before it.
    heard_us: u64,
}

/// Result of a liveness check of one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Liveness {
    /// Not checked again before something is written.
    Quiet,
    /// Undecided: it is checked again.
    Open,
    /// Its peer has vanished.
    Gone,
}

/// Liveness checks of the connections of one worker, to nodes or of clients.
#[derive(Debug)]
pub(crate) struct PeerLiveness {
    patience: Option<Duration>,
    #[cfg(any(target_os = "linux", target_os = "android"))]
    kernel: Option<Diag>,
    /// Whether the kernel has answered when it was asked last.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    has_answered: bool,
    /// By the place of the connection.
    doubts: HashMap<ConnId, Doubt>,
    /// Something was written that may not have arrived.
    pub(crate) is_awake: bool,
    looked_us: u64,
    /// The time between two looks, in microseconds.
    interval_us: u64,
}

impl PeerLiveness {
    /// Checks that take a peer for gone after `patience`; `None`: it is left to the kernel.
    pub(crate) fn new(patience: Option<Duration>) -> Self {
        Self {
            patience,
            #[cfg(any(target_os = "linux", target_os = "android"))]
            kernel: patience.and_then(|_| Diag::open().ok()),
            #[cfg(any(target_os = "linux", target_os = "android"))]
            has_answered: false,
            doubts: HashMap::new(),
            is_awake: false,
            looked_us: 0,
            interval_us: LOOK_US,
        }
    }

    /// Checks of clients, whose patience is the one that their listener has set.
    pub(crate) fn over_clients() -> Self {
        Self { interval_us: LOOK_AT_CLIENTS_US, ..Self::new(None) }
    }

    /// A client has come. The kernel's rule by which it would be given up is taken back if it can be watched instead. A kernel that has
    /// answered is not asked again for that: it would be four system calls for each client that comes.
    pub(crate) fn take_over(&mut self, conn: ConnId, socket: &mut Socket) {
        self.doubts.remove(&conn);
        #[cfg(any(target_os = "linux", target_os = "android"))]
        {
            let timeout = socket.tcp().and_then(|stream| SockRef::from(&*stream).tcp_user_timeout().ok().flatten());
            if timeout.is_none() {
                return;
            }
            if self.patience != timeout {
                self.set_patience(timeout);
            }
            if (self.has_answered || self.ask(socket).is_some())
                && let Some(stream) = socket.tcp()
            {
                // If that fails it is as it was.
                let _ = SockRef::from(&*stream).set_tcp_user_timeout(None);
            }
        }
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        let _ = socket;
    }

    /// Another time holds from now on, for all connections that are watched.
    pub(crate) fn set_patience(&mut self, patience: Option<Duration>) {
        self.patience = patience;
        #[cfg(any(target_os = "linux", target_os = "android"))]
        if self.kernel.is_none() && patience.is_some() {
            self.kernel = Diag::open().ok();
        }
    }

    /// A connection to a node is there. If it cannot be watched, the kernel is told to give it up by its own rule.
    pub(crate) fn begin(&mut self, conn: ConnId, socket: &mut Socket) {
        self.doubts.remove(&conn);
        if let Some(patience) = self.patience
            && self.ask(socket).is_none()
            && let Some(stream) = socket.tcp()
        {
            // Without it a node that vanishes is found later; nothing else depends on it.
            #[cfg(any(target_os = "linux", target_os = "android"))]
            let _ = SockRef::from(&*stream).set_tcp_user_timeout(Some(patience));
            #[cfg(not(any(target_os = "linux", target_os = "android")))]
            let _ = (stream, patience);
        }
    }

    /// When connections have to be looked at, if any.
    pub(crate) fn next_look_us(&self) -> Option<u64> {
        (self.is_awake && self.can_ask()).then_some(self.looked_us + self.interval_us)
    }

    /// Whether they are to be looked at now.
    pub(crate) fn begin_look(&mut self, now: Now) -> bool {
        let is_due = self.next_look_us().is_some_and(|at| now.mono_us >= at);
        if is_due {
            self.looked_us = now.mono_us;
            self.is_awake = false;
        }
        is_due
    }

    /// Bytes have come from a node: it is there.
    pub(crate) fn trust(&mut self, conn: ConnId) {
        self.doubts.remove(&conn);
        self.is_awake = true;
    }

    /// Looks at a connection to which something was written and from which nothing came since the last look.
    pub(crate) fn judge(&mut self, conn: ConnId, socket: &mut Socket, now: Now) -> Liveness {
        let verdict = self.ask(socket).map_or(Liveness::Quiet, |signs| self.weigh(conn, signs, now));
        self.is_awake |= verdict == Liveness::Open;
        verdict
    }

    fn weigh(&mut self, conn: ConnId, signs: Signs, now: Now) -> Liveness {
        if signs.asks == Asks::Nothing {
            self.doubts.remove(&conn);
            return if signs.is_all_there { Liveness::Quiet } else { Liveness::Open };
        }
        let heard_us = now.mono_us.saturating_sub(signs.since_heard_us);
        let fresh = Doubt { began_us: now.mono_us, heard_us };
        let doubt = self.doubts.entry(conn).or_insert(fresh);
        if heard_us > doubt.heard_us + SAME_US {
            *doubt = fresh;
        }
        let patience = match (self.patience, signs.asks) {
            (Some(patience), Asks::Again) => patience,
            (Some(patience), Asks::Room) => patience + ROOM_ANSWERS,
            _ => return Liveness::Open,
        };
        if u128::from(now.mono_us - doubt.began_us) >= patience.as_micros() { Liveness::Gone } else { Liveness::Open }
    }

    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn can_ask(&self) -> bool {
        self.kernel.is_some()
    }

    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn ask(&mut self, socket: &mut Socket) -> Option<Signs> {
        let stream = socket.tcp()?;
        let (local, peer) = (stream.local_addr().ok()?, stream.peer_addr().ok()?);
        let signs = self.kernel.as_mut()?.ask(local, peer).ok();
        self.has_answered = signs.is_some();
        signs
    }

    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    fn can_ask(&self) -> bool {
        false
    }

    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    fn ask(&mut self, _socket: &mut Socket) -> Option<Signs> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: ConnId = ConnId::upstream(0);
    const PATIENCE: Duration = Duration::from_millis(900);

    fn at(millis: u64) -> Now {
        Now::of_clocks(millis * 1000, 0)
    }

    fn asking(since_heard_ms: u64) -> Signs {
        Signs { is_all_there: false, asks: Asks::Again, since_heard_us: since_heard_ms * 1000 }
    }

    #[test]
    fn a_silent_peer_is_gone_after_the_patience_and_not_before() {
        let mut liveness = PeerLiveness::new(Some(PATIENCE));
        // It had said nothing for long, because nothing was asked: that counts for nothing.
        for ms in (60_000..60_900).step_by(100) {
            assert_eq!(liveness.weigh(NODE, asking(ms), at(ms)), Liveness::Open, "{ms}");
        }
        assert_eq!(liveness.weigh(NODE, asking(60_900), at(60_900)), Liveness::Gone);
    }

    #[test]
    fn every_acknowledgement_ends_a_doubt() {
        let mut liveness = PeerLiveness::new(Some(PATIENCE));
        for ms in (10_000..60_000).step_by(100) {
            // The last acknowledgement is half a second old at most.
            assert_eq!(liveness.weigh(NODE, asking(ms % 500), at(ms)), Liveness::Open, "{ms}");
        }
        assert_eq!(liveness.weigh(NODE, Signs { asks: Asks::Nothing, ..asking(0) }, at(60_000)), Liveness::Open);
        assert!(liveness.doubts.is_empty());
        let all_there = Signs { asks: Asks::Nothing, is_all_there: true, ..asking(0) };
        assert_eq!(liveness.weigh(NODE, all_there, at(60_100)), Liveness::Quiet);
    }

    #[test]
    fn a_long_way_is_waited_for_until_the_kernel_has_tried_again() {
        let mut liveness = PeerLiveness::new(Some(PATIENCE));
        for ms in (1_000..5_000).step_by(100) {
            let signs = Signs { asks: Asks::Once, ..asking(ms) };
            assert_eq!(liveness.weigh(NODE, signs, at(ms)), Liveness::Open, "{ms}");
        }
        assert_eq!(liveness.weigh(NODE, asking(5_000), at(5_000)), Liveness::Gone);
    }

    #[test]
    fn a_peer_without_room_may_leave_one_question_unanswered() {
        let mut liveness = PeerLiveness::new(Some(PATIENCE));
        let asking_room = |ms: u64| Signs { asks: Asks::Room, ..asking(ms) };
        // Asked 499 ms after its last answer; the next question is 998 ms later.
        for ms in (500..1_500).step_by(100) {
            assert_eq!(liveness.weigh(NODE, asking_room(ms), at(10_000 + ms)), Liveness::Open, "{ms}");
        }
        assert_eq!(liveness.weigh(NODE, asking_room(20), at(11_520)), Liveness::Open);
        for ms in (100..1_400).step_by(100) {
            assert_eq!(liveness.weigh(NODE, asking_room(20 + ms), at(11_520 + ms)), Liveness::Open, "{ms}");
        }
        assert_eq!(liveness.weigh(NODE, asking_room(1_520), at(13_020)), Liveness::Gone);
    }

    #[test]
    fn a_loop_that_has_slept_does_not_take_its_sleep_for_the_peers() {
        let mut liveness = PeerLiveness::new(Some(PATIENCE));
        assert_eq!(liveness.weigh(NODE, asking(300), at(10_000)), Liveness::Open);
        // What the kernel has heard meanwhile counts, and what it has not is asked for once more.
        assert_eq!(liveness.weigh(NODE, asking(50), at(15_000)), Liveness::Open);
        assert_eq!(liveness.weigh(NODE, asking(850), at(15_800)), Liveness::Open);
        assert_eq!(liveness.weigh(NODE, asking(950), at(15_900)), Liveness::Gone);
    }

    #[test]
    fn nothing_is_looked_at_before_something_is_written() {
        let mut liveness = PeerLiveness::new(Some(PATIENCE));
        assert_eq!(liveness.next_look_us(), None);
        liveness.is_awake = true;
        assert_eq!(liveness.next_look_us().is_some(), liveness.can_ask());
        assert_eq!(liveness.begin_look(at(1_000)), liveness.can_ask());
        assert!(!liveness.begin_look(at(1_000)));
        assert_eq!(PeerLiveness::new(None).next_look_us(), None);
    }

    #[cfg(any(target_os = "linux", target_os = "android"))]
    #[test]
    fn a_kernel_that_has_answered_is_not_asked_about_each_client() {
        let listener = mio::net::TcpListener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = listener.local_addr().unwrap();
        let mut liveness = PeerLiveness::over_clients();
        let mut timeouts = Vec::new();
        let mut clients = Vec::new();
        for index in 0..3 {
            clients.push(std::net::TcpStream::connect(address).unwrap());
            let (stream, _) = listener.accept().unwrap();
            SockRef::from(&stream).set_tcp_user_timeout(Some(PATIENCE)).unwrap();
            let mut socket = Socket::Tcp(stream);
            liveness.take_over(ConnId::client(index), &mut socket);
            timeouts.push(SockRef::from(&*socket.tcp().unwrap()).tcp_user_timeout().unwrap());
        }
        let Some(kernel) = liveness.kernel.as_ref().filter(|_| liveness.has_answered) else {
            assert!(timeouts.iter().all(|timeout| *timeout == Some(PATIENCE)), "what cannot be watched keeps it");
            return;
        };
        assert_eq!((timeouts, kernel.asked(), liveness.patience), (vec![None; 3], 1, Some(PATIENCE)));
    }
}
