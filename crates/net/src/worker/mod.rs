//! One readiness loop: sockets and timers on one side, a machine on the other.
//!
//! ```text
//!   wait -> begin_turn(now) -> one read per ready node -> mail -> one read per ready client -> end_turn
//!        -> actions (dial, close, resume) and outboxes (one write each), until there are none -> wait
//! ```
//!
//! Readiness is edge-triggered: a connection is registered once, for both directions, and the loop remembers what each
//! edge promised. A socket that may hold more than one read took is read again in the next turn, after all others.

mod connections;
mod dial;
mod dial_addresses;
mod graceful_close;
mod half_close;
mod liveness;
mod named;
mod names;
mod read_queue;
mod reads;
mod tls_accept;
#[cfg(test)]
mod wakes;

use crate::clock::{Clock, MovableClock};
use crate::limits::{ACCEPT_LOG_INTERVAL_US, ACCEPT_PAUSE_US, ACCEPTS_PER_TURN_MAX, EVENTS_MAX, SETTLE_ROUNDS_MAX};
use crate::linger::Lingering;
use crate::listener::ListenerSocket;
use crate::mailbox::{Inbox, MailSender, Message};
use crate::peer_liveness::PeerLiveness;
use crate::readiness::{Event, Events};
use crate::resolver::Resolver;
use crate::sockets::{Permit, Side, Sockets};
use crate::timerfd::WakeTimer;
use crate::tls::TlsClients;
use crate::tls::accept::Handshakes;
use crate::transport::Socket;
use crate::yielding::CoreYield;
use crate::{Listener, TransportOptions};
use connections::{Connection, Connections};
use dial_addresses::{Resolving, Silences};
use mio::{Interest, Poll, Registry, Token, Waker};
use names::Names;
use read_queue::ReadQueue;
use respool_connection::{Action, ConnId, Now, Peer, Role, Service, ServiceAction, Wait, WorkerId};
use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::time::Duration;

const WAKER: Token = Token(1 << 40);
const FIRST_LINGERING: usize = 1 << 39;
const FIRST_HANDSHAKE: usize = 1 << 38;
const FIRST_LISTENER: usize = 1 << 36;

/// What a worker is made of.
pub struct Setup<M: Service> {
    /// The machine to drive.
    pub machine: M,
    /// The receiving half of the worker's own channel.
    pub inbox: Inbox<M::Mail>,
    /// The sending halves of all workers of the same machine, in the order of their ids.
    pub workers: Vec<MailSender<M::Mail>>,
    /// Which worker this is.
    pub number: WorkerId,
    /// Sockets to accept from.
    pub listeners: Vec<Listener>,
    /// Where `Endpoint::Embedded` connections are handed to: a function that takes over the engine's end.
    pub engines: Vec<EngineDialer>,
    /// Options of the TCP connections that are dialled.
    pub transport: TransportOptions,
    /// What `Endpoint::Tls` is dialled with.
    pub tls: Arc<TlsClients>,
    /// How many sockets the process may have.
    pub sockets: Arc<Sockets>,
}

/// A way to hand one end of a connection in process to the worker of an embedded engine.
pub struct EngineDialer(Box<dyn Fn(Socket, Peer, Permit) -> bool + Send>);

impl EngineDialer {
    /// Hands connections to the engine whose worker is reached by `mail_sender`.
    pub fn new<Mail: Send + 'static>(mail_sender: MailSender<Mail>) -> Self {
        Self(Box::new(move |socket, peer, permit| mail_sender.put(Message::Socket(socket, peer, permit))))
    }
}

/// One loop and all it owns.
pub struct Worker<M: Service> {
    machine: M,
    poll: Poll,
    /// The connections to nodes once more, alone: to wait for them and nothing else.
    nodes_poll: Poll,
    /// Ends a wait of `nodes_poll` early.
    wake_timer: WakeTimer,
    clock: Clock,
    /// Closed before the connections: a client whose connection ends with the worker finds no server any more.
    listeners: Vec<Listener>,
    connections: Connections,
    inbox: Inbox<M::Mail>,
    workers: Vec<MailSender<M::Mail>>,
    engines: Vec<EngineDialer>,
    number: WorkerId,
    transport: TransportOptions,
    reads: ReadQueue,
    /// Half-closed clients.
    half_closed: VecDeque<ConnId>,
    tls: Arc<TlsClients>,
    sockets: Arc<Sockets>,
    /// Clients whose TLS handshake is not complete.
    handshakes: Handshakes,
    /// Clients whose connection is being closed gracefully.
    lingering: Lingering,
    resolver: Option<Resolver<M::Mail>>,
    resolving: HashMap<u64, Resolving>,
    silences: Silences,
    names: Names,
    next_resolution: u64,
    /// The worker that gets the next connection of a shared listener.
    next_worker: WorkerId,
    /// A client may wait at a listener, which was left alone until then.
    accept_again_us: Option<u64>,
    /// When the log was last told of that.
    complained_us: Option<u64>,
    is_exiting: bool,
    core_yield: CoreYield,
    liveness: PeerLiveness,
    /// The same for client connections.
    client_liveness: PeerLiveness,
    /// The time of the next check of either, in microseconds.
    look_us: Option<u64>,
    /// The client connection at which the next check begins.
    client_looked_at: usize,
}

impl<M: Service> Worker<M> {
    /// Builds the loop; nothing runs yet.
    pub fn new(setup: Setup<M>) -> io::Result<Self> {
        let poll = Poll::new()?;
        let nodes_poll = Poll::new()?;
        let waker = Waker::new(poll.registry(), WAKER)?;
        if let Some(own) = setup.workers.get(setup.number.get()) {
            own.set_waker(waker);
        }
        let mut worker = Self {
            machine: setup.machine,
            poll,
            wake_timer: WakeTimer::new(nodes_poll.registry()),
            nodes_poll,
            clock: Clock::new(),
            connections: Connections::default(),
            listeners: Vec::new(),
            inbox: setup.inbox,
            workers: setup.workers,
            engines: setup.engines,
            number: setup.number,
            liveness: PeerLiveness::new(setup.transport.user_timeout),
            transport: setup.transport,
            reads: ReadQueue::default(),
            half_closed: VecDeque::new(),
            tls: setup.tls,
            sockets: setup.sockets,
            handshakes: Handshakes::default(),
            lingering: Lingering::default(),
            resolver: None,
            resolving: HashMap::new(),
            silences: Silences::default(),
            names: Names::default(),
            next_resolution: 0,
            next_worker: WorkerId::FIRST,
            accept_again_us: None,
            complained_us: None,
            is_exiting: false,
            core_yield: CoreYield::default(),
            client_liveness: PeerLiveness::over_clients(),
            look_us: None,
            client_looked_at: 0,
        };
        worker.names.set_interval(worker.transport.names_interval);
        setup.listeners.into_iter().try_for_each(|listener| worker.listen(listener))?;
        Ok(worker)
    }

    /// Has clients see the time of a clock that the program moves.
    #[must_use]
    pub fn with_clock(mut self, clock: Option<MovableClock>) -> Self {
        clock.into_iter().for_each(|clock| self.clock.follow(clock));
        self
    }

    /// Accepts from one more socket.
    fn listen(&mut self, mut listener: Listener) -> io::Result<()> {
        let token = Token(FIRST_LISTENER + self.listeners.len());
        match &mut listener.socket {
            ListenerSocket::Tcp(socket) => self.poll.registry().register(socket, token, Interest::READABLE)?,
            ListenerSocket::Unix(socket) => self.poll.registry().register(socket, token, Interest::READABLE)?,
        }
        self.listeners.push(listener);
        Ok(())
    }

    /// Runs until the machine asks to exit.
    pub fn run(mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(EVENTS_MAX);
        // Messages may have been sent before the waker was set.
        let mut has_mail = true;
        let mut is_settled = true;
        let mut now = self.clock.now();
        let mut nodes_events = Events::with_capacity(EVENTS_MAX);
        while !self.is_exiting || !self.lingering.is_empty() {
            let has_clients_left = !self.reads.is_empty() || !self.half_closed.is_empty();
            let has_left_over = has_mail
                || !is_settled
                || has_clients_left
                || self.has_non_clients() && (self.handshakes.is_any_ready() || self.lingering.is_any_ready());
            let (measures_waits, mut waits_since_us) = (self.machine.measures_waits(), None);
            let timeout_us = if has_left_over {
                Some(0)
            } else {
                waits_since_us = measures_waits.then(|| self.clock.now().mono_us);
                if self.wait(&mut nodes_events, now)? { Some(0) } else { self.timeout_us(now) }
            };
            match events.wait(&mut self.poll, timeout_us) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                outcome => outcome?,
            }
            now = self.clock.now();
            if measures_waits {
                self.machine.handle_waited(waits_since_us.map_or(0, |since_us| now.mono_us.saturating_sub(since_us)));
            }
            self.machine.begin_turn(now);
            self.take_events(&events, now, std::mem::take(&mut has_mail));
            if self.accept_again_us.is_some_and(|at| at <= now.mono_us) {
                self.accept_again_us = None;
                // Mail may say that a successor has taken over: clients that connect from then on are the successor's.
                self.take_mail();
                if self.machine.is_accepting() {
                    (0..self.listeners.len()).for_each(|place| self.accept(place, now));
                }
            }
            if self.has_non_clients() {
                self.mind_non_clients(now);
            }
            if self.look_us.is_some_and(|at| at <= now.mono_us) {
                self.look_at_all(now);
            }
            if self.names.due_us().is_some_and(|at| at <= now.mono_us) {
                self.look_names_up(now);
            }
            self.machine.end_turn();
            is_settled = self.settle();
        }
        Ok(())
    }

    /// Waits as the machine wishes, unless that is for anything. Whatever ends the wait, what else is ready is then taken
    /// without another one. Returns whether to look without waiting.
    fn wait(&mut self, events: &mut Events, now: Now) -> io::Result<bool> {
        let timeout_us = match self.machine.wait() {
            Wait::Anything => {
                self.core_yield.begin();
                return Ok(false);
            }
            Wait::Nodes { until_us } => {
                self.core_yield.begin();
                until_us.saturating_sub(now.mono_us)
            }
            Wait::Yielding { until_us } => match self.let_others_run(until_us, now) {
                Some(timeout_us) => timeout_us,
                None => return Ok(true),
            },
        };
        match events.wait(&mut self.nodes_poll, Some(timeout_us)) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            outcome => outcome?,
        }
        Ok(true)
    }

    /// Gives up the core, where others may want it. Returns how long to sleep then; `None`: look at once. Once is enough: then all that
    /// share the core have sent what they could, and would wait for a sleeper.
    fn let_others_run(&mut self, until_us: u64, mut now: Now) -> Option<u64> {
        let may_yield = self.core_yield.may_yield(now);
        if may_yield {
            let before = self.clock.now();
            std::thread::yield_now();
            now = self.clock.now();
            self.core_yield.note(before, now);
        }
        let timeout_us = until_us.saturating_sub(now.mono_us);
        if !may_yield && (timeout_us == 0 || self.core_yield.had_others()) {
            self.core_yield.begin();
            self.machine.flush_held();
            return None;
        }
        (timeout_us > 0 && !self.core_yield.had_others() && self.wake_timer.set(Duration::from_micros(timeout_us)))
            .then_some(timeout_us)
    }

    fn timeout_us(&self, now: Now) -> Option<u64> {
        let of_machine = earlier(self.machine.next_wakeup_us(), self.names.due_us());
        let mut due_us = earlier(earlier(of_machine, self.look_us), self.accept_again_us);
        if self.has_non_clients() {
            due_us = earlier(due_us, earlier(self.handshakes.next_due_us(), self.lingering.next_due_us()));
        }
        due_us.map(|at| at.saturating_sub(now.mono_us))
    }

    /// Whether there are connections that are not clients yet, or are clients no more.
    #[inline]
    fn has_non_clients(&self) -> bool {
        !self.handshakes.is_empty() || self.lingering.is_any_left()
    }

    #[cold]
    fn mind_non_clients(&mut self, now: Now) {
        if !self.handshakes.is_empty() {
            self.shake_hands(now);
        }
        if self.lingering.is_any_left() {
            self.lingering.go_on();
            self.lingering.expire(now.mono_us);
        }
    }

    /// Reads what is ready: nodes first, so that their replies leave with this turn's writes whatever is read later. Messages
    /// come before clients: a request that was sent after other settings were posted is read after they have been taken. Clients
    /// that leave come before those that stay: one that waits is given nothing that was sent after it had left.
    fn take_events(&mut self, events: &Events, now: Now, has_mail: bool) {
        let (mut has_rare, mut has_clients, mut has_leavers) = (has_mail, false, false);
        let listed_nodes = self.take_listed_nodes();
        let listed_again = self.count_again();
        self.reads.begin_turn();
        for event in events.iter() {
            match role_of(event) {
                Some(Role::Node) => self.take_edge(event),
                Some(Role::Client) => {
                    has_clients = true;
                    has_leavers |= event.has_left();
                }
                None => has_rare = true,
            }
        }
        self.read_listed_nodes(listed_nodes);
        if has_rare {
            self.take_rare_events(events, now, has_mail);
        }
        if has_leavers {
            events
                .iter()
                .filter(|event| role_of(*event) == Some(Role::Client) && event.has_left())
                .for_each(|event| self.take_edge(event));
        }
        if !self.half_closed.is_empty() {
            self.handle_half_closed();
        }
        self.read_deferred();
        if has_clients {
            for event in events.iter() {
                if role_of(event) == Some(Role::Client) && !(has_leavers && event.has_left()) {
                    self.take_edge(event);
                }
            }
        }
        if listed_again > 0 {
            self.read_again(listed_again);
        }
    }

    /// What has come for neither nodes nor clients. All listeners are tried once per turn, whichever of them is ready.
    #[cold]
    fn take_rare_events(&mut self, events: &Events, now: Now, has_mail: bool) {
        let mut is_woken = has_mail;
        for event in events.iter() {
            match event.token() {
                WAKER => is_woken = true,
                Token(place) if place >= FIRST_LINGERING => self.lingering.hear(place - FIRST_LINGERING),
                Token(place) if place >= FIRST_HANDSHAKE => self.handshakes.list(place - FIRST_HANDSHAKE),
                Token(place) if place >= FIRST_LISTENER => self.accept_again_us = Some(now.mono_us),
                Token(_) => {}
            }
        }
        if is_woken {
            self.take_mail();
        }
    }

    fn take_edge(&mut self, event: Event) {
        let conn = conn_of(event);
        let Some(connection) = self.connection(conn) else { return };
        if connection.is_dialing {
            self.answer_dial(conn);
            return;
        }
        connection.is_readable |= event.is_readable();
        connection.is_read_to_end |= event.is_urgent();
        if event.is_writable() && !self.note_writable(conn) {
            return;
        }
        if event.has_left() {
            self.take_end(conn, event.is_gone());
        } else if event.is_readable() {
            self.read_or_defer(conn);
        }
    }

    /// There is room to write, or may be. `false`: the connection is lost.
    #[inline(always)]
    fn note_writable(&mut self, conn: ConnId) -> bool {
        let Some(connection) = self.connections.get_mut(conn) else { return false };
        if let Err(error) = connection.socket.handle_writable() {
            self.lose(conn, &error);
            return false;
        }
        if !connection.is_writable {
            connection.is_writable = true;
            self.machine.handle_writable(conn);
        }
        true
    }

    /// Room that is too little for an edge is used as well. A write that is cut short again has the kernel tell of the next.
    #[cold]
    fn try_write(&mut self, conn: ConnId) {
        if self.connection(conn).is_some_and(|connection| !connection.is_writable && !connection.is_dialing) {
            self.note_writable(conn);
        }
    }

    /// A peer has closed its side. That may hide behind bytes that came before, without an edge of its own.
    #[cold]
    fn take_end(&mut self, conn: ConnId, is_gone: bool) {
        let Some(connection) = self.connection(conn) else { return };
        connection.is_gone |= is_gone;
        connection.is_readable = true;
        connection.is_read_to_end = true;
        match conn.role() {
            Role::Node => {
                self.read(conn);
                self.list_again(conn);
            }
            Role::Client => self.note_half_closed(conn),
        }
    }

    /// One read, if the machine wants it.
    fn read(&mut self, conn: ConnId) {
        let Some(connection) = self.connections.get_mut(conn) else { return };
        if !connection.is_readable {
            return;
        }
        let Some(buffer) = self.machine.read_buffer(conn) else { return };
        let room = buffer.len();
        match connection.socket.read(buffer) {
            Ok(0) => {
                connection.is_readable = false;
                if !connection.has_ended {
                    connection.has_ended = true;
                    self.machine.handle_ended(conn);
                }
            }
            Ok(bytes) => {
                connection.has_come = true;
                connection.is_readable = bytes == room || connection.is_read_to_end || connection.socket.holds_more();
                let is_again = connection.is_readable;
                if conn.role() == Role::Client {
                    self.reads.note_read(bytes);
                }
                self.machine.handle_read(conn, bytes);
                if is_again {
                    self.list_again(conn);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                connection.is_readable = false;
                if connection.socket.holds_more() {
                    self.list_again(conn);
                }
            }
            Err(error) => self.lose(conn, &error),
        }
    }

    fn take_mail(&mut self) {
        while let Some(message) = self.inbox.take() {
            match message {
                Message::Mail(mail) => self.machine.handle_mail(mail),
                Message::Socket(socket, peer, permit) => self.adopt(socket, peer, permit),
                Message::Listen(listeners) => self.take_listeners(listeners),
                Message::CloseEnded => self.close_ended_listeners(),
                Message::Options(of_clients, of_nodes) => self.take_options(of_clients, of_nodes),
                Message::Resolved(number, answer) => self.take_resolution(number, answer),
            }
        }
    }

    /// Adds listeners to a running worker. Registration reports connections that already wait in their backlogs.
    fn take_listeners(&mut self, listeners: Vec<Listener>) {
        if !self.machine.is_accepting() {
            return;
        }
        for listener in listeners {
            let address = listener.address().to_owned();
            if let Err(error) = self.listen(listener) {
                tracing::error!(listener = address, %error, "a worker cannot wait for connections");
            }
        }
    }

    fn close_ended_listeners(&mut self) {
        let poll = &self.poll;
        self.listeners.retain_mut(|listener| {
            let has_ended = listener.has_ended();
            if has_ended {
                // Another hand on the socket would keep it registered. What is not registered need not be taken out.
                let _ = match &mut listener.socket {
                    ListenerSocket::Tcp(socket) => poll.registry().deregister(socket),
                    ListenerSocket::Unix(socket) => poll.registry().deregister(socket),
                };
            }
            !has_ended
        });
    }

    fn accept(&mut self, place: usize, now: Now) {
        for _ in 0..ACCEPTS_PER_TURN_MAX {
            let Some(listener) = self.listeners.get(place) else { return };
            match listener.accept() {
                Ok((socket, peer)) => match self.sockets.take(Side::Client) {
                    None => {
                        let is_encrypted = listener.tls.is_some();
                        self.refuse(socket, peer, is_encrypted);
                    }
                    Some(permit) if listener.is_shared => self.hand_round(socket, peer, permit),
                    Some(permit) => match listener.tls.as_ref().map(|tls| tls.current()) {
                        Some(tls) => self.greet(socket, peer, permit, tls, now),
                        None => self.adopt(socket, peer, permit),
                    },
                },
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // It is about to be closed.
                Err(_) if listener.has_ended() => return,
                // The peer was gone before we came: nothing is wrong with the listener.
                Err(error) if matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted) => {
                }
                Err(error) => {
                    if self.complained_us.is_none_or(|at| now.mono_us >= at + ACCEPT_LOG_INTERVAL_US) {
                        self.complained_us = Some(now.mono_us);
                        tracing::warn!(listener = listener.address(), %error, "cannot accept; trying ten times a second");
                    }
                    self.accept_again_us = Some(now.mono_us + ACCEPT_PAUSE_US);
                    return;
                }
            }
        }
        // More may wait, and no edge will say so.
        self.accept_again_us = Some(now.mono_us);
    }

    /// The process may have no more connections of clients. Where TLS is spoken, plain words would be noise.
    fn refuse(&mut self, mut socket: Socket, peer: Peer, is_encrypted: bool) {
        let refusal = self.machine.handle_no_room(peer);
        if !is_encrypted {
            // A fresh socket takes a line; if it does not, the peer sees the close alone.
            let _ = socket.write(&refusal);
            socket.say_goodbye();
        }
    }

    fn hand_round(&mut self, socket: Socket, peer: Peer, permit: Permit) {
        let worker = self.next_worker;
        self.next_worker = WorkerId::new((worker.get() + 1) % self.workers.len().max(1));
        match self.workers.get(worker.get()) {
            Some(mail_sender) if worker != self.number => {
                // A worker that has ended drops the connection, which is what a client sees of a process that ends.
                mail_sender.put(Message::Socket(socket, peer, permit));
            }
            _ => self.adopt(socket, peer, permit),
        }
    }

    fn adopt(&mut self, socket: Socket, peer: Peer, permit: Permit) {
        self.admit(socket, peer, permit, Socket::register);
    }

    /// Asks the machine whether a connection may come in, and has `register` give it its number. Returns the number.
    fn admit(
        &mut self,
        mut socket: Socket,
        peer: Peer,
        permit: Permit,
        register: fn(&mut Socket, &Registry, Token) -> io::Result<()>,
    ) -> Option<ConnId> {
        match self.machine.handle_accept(peer) {
            Ok(conn) => match register(&mut socket, self.poll.registry(), token_of(conn)) {
                Ok(()) => {
                    self.client_liveness.take_over(conn, &mut socket);
                    self.plan_looks();
                    self.connections.keep(conn, Connection::open(socket, permit));
                    return Some(conn);
                }
                Err(error) => self.machine.handle_broken(conn, &error.to_string()),
            },
            Err(refusal) => {
                // A fresh socket takes a line; if it does not, the peer sees the close alone.
                let _ = socket.write(&refusal);
                socket.say_goodbye();
            }
        }
        None
    }

    fn connection(&mut self, conn: ConnId) -> Option<&mut Connection> {
        self.connections.get_mut(conn)
    }

    fn lose(&mut self, conn: ConnId, error: &io::Error) {
        if self.connections.forget(conn).is_some() {
            self.machine.handle_broken(conn, &error.to_string());
        }
    }

    /// Does what the machine wants until it wants no more. `false`: it still does, and the next turn must not wait.
    fn settle(&mut self) -> bool {
        for _ in 0..SETTLE_ROUNDS_MAX {
            while let Some(action) = self.machine.poll_action() {
                self.act(action);
            }
            while let Some(conn) = self.machine.poll_output() {
                self.write(conn);
            }
            // There is no more output unless something else is done; that writing, or looking for output, may have produced.
            match self.machine.poll_action() {
                Some(action) => self.act(action),
                None => return true,
            }
        }
        false
    }

    fn act(&mut self, action: Action<ServiceAction<M::Mail>>) {
        match action {
            Action::Dial { conn, endpoint } => self.dial(conn, endpoint),
            Action::Close { conn } => match self.connections.forget(conn) {
                Some(mut connection) => {
                    if connection.is_dialing {
                        self.silences.note(&connection.alternatives);
                    }
                    connection.socket.say_goodbye();
                }
                None => self.forget_resolution(conn),
            },
            Action::Finish { conn } => self.finish(conn),
            Action::Resume { conn } => {
                if self.connection(conn).is_some_and(|c| c.is_readable) {
                    self.list_again(conn);
                }
            }
            Action::TryWrite { conn } => self.try_write(conn),
            Action::Service(action) => self.act_for_service(action),
        }
    }

    fn act_for_service(&mut self, action: ServiceAction<M::Mail>) {
        match action {
            ServiceAction::Post { worker, mail } => {
                if let Some(mail_sender) = self.workers.get(worker.get()) {
                    // A worker that has ended does not answer: the asker waits for no answer for long once the process ends.
                    mail_sender.post(mail);
                }
            }
            ServiceAction::StopAccepting => self.listeners.clear(),
            ServiceAction::Exit => self.is_exiting = true,
        }
    }

    #[inline]
    fn write(&mut self, conn: ConnId) {
        let Some(connection) = self.connections.get_mut(conn) else { return };
        if !connection.is_writable {
            return;
        }
        let bytes = self.machine.output(conn);
        let wanted = bytes.len();
        match connection.socket.write(bytes) {
            Ok(written) => {
                connection.is_writable = written == wanted;
                connection.has_gone = true;
                let liveness = match conn.role() {
                    Role::Node => &mut self.liveness,
                    Role::Client => &mut self.client_liveness,
                };
                if !liveness.is_awake {
                    liveness.is_awake = true;
                    self.plan_looks();
                }
                self.machine.handle_written(conn, written);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                connection.is_writable = false;
                self.machine.handle_written(conn, 0);
            }
            Err(error) => self.lose(conn, &error),
        }
    }
}

/// The earlier of two times, of which there may be none.
#[inline]
fn earlier(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

fn token_of(conn: ConnId) -> Token {
    Token(conn.to_bits() as usize)
}

/// The role of the connection that an event is about; `None`: it is about none.
#[inline]
fn role_of(event: Event) -> Option<Role> {
    (event.token().0 < FIRST_LISTENER).then(|| conn_of(event).role())
}

fn conn_of(event: Event) -> ConnId {
    ConnId::from_bits(event.token().0 as u32)
}
