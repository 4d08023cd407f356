//! One thread of load: connections that are asked at a pace, driven by the same loop as the proxy's.
//!
//! ```text
//!            all connected           first request               nothing left to send
//!   [gathering] ------------> [warm-up] ------------> [counting] --------------------> [ending] -> exit
//! ```
//!
//! In a closed loop a connection gets its next batch when the last reply of the one before has come; a batch counts from just before
//! it is written. In an open loop requests have times of their own, and a reply's latency is counted from the time at which its
//! request was due, however late it was sent.

mod asking;
mod connection;
mod pace;
mod shared;

pub(crate) use shared::Shared;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use respool_connection::{
    Action, BufferPool, ConnId, DialFailure, Endpoint, Machine, Now, Peer, Service, ServiceAction,
};
use respool_wire::ReplyLimits;

use crate::clock::monotonic_ns;
use crate::dial_failure::words_of;
use crate::limits::{CONNECT_PATIENCE, LOOK_US, PATIENCE, READ_BYTES, STALL, TLS_PATIENCE};
use crate::plan::Plan;
use crate::processes::waited_ns;
use crate::tally::Tally;
use crate::target::Target;
use crate::work::Work;
use asking::Asking;
use connection::Connection;
use pace::Pacer;

/// What a thread has to say when it ends.
pub(crate) type Ended = Result<Tally, String>;

/// One thread's part of a run.
pub(crate) struct Load {
    plan: Arc<Plan>,
    target: Arc<Target>,
    shared: Arc<Shared>,
    asking: Asking,
    pacer: Pacer,
    connections: Vec<Connection>,
    /// Connections that may have something to write.
    outputs: Vec<u32>,
    actions: VecDeque<Action<ServiceAction<()>>>,
    pool: BufferPool,
    buffer: Vec<u8>,
    limits: ReplyLimits,
    now: Now,
    /// The time at the beginning of the turn, as [`monotonic_ns`] has it.
    turn_ns: u64,
    /// Since when all connections wait to be there, and since when nothing has been answered.
    started_ns: u64,
    heard_ns: u64,
    /// How many connections have been dialled, and how many were ready once.
    dialled: usize,
    ready: usize,
    has_begun: bool,
    /// How long this thread had waited for a processor when the run began.
    waited_before_ns: u64,
    /// When lost connections are dialled again.
    redial_ns: u64,
    /// Since when nothing more is sent.
    ending_ns: Option<u64>,
    is_over: bool,
    report: Sender<Ended>,
}

/// Connections that are being dialled at once.
const DIALS_MAX: usize = 256;
/// How long after the last loss lost connections are dialled again.
const REDIAL_NS: u64 = 50_000_000;

impl Load {
    /// Thread `number` of a run.
    pub(crate) fn new(
        plan: Arc<Plan>,
        work: Arc<Work>,
        target: Arc<Target>,
        shared: Arc<Shared>,
        number: usize,
        report: Sender<Ended>,
    ) -> Self {
        let count = plan.connections_of(number);
        let nodes = target.nodes.len().max(1);
        let connection = |place: usize| Connection::new((number + place * plan.threads) % nodes, &target.identity);
        let asking = Asking::new(&plan, work, number);
        let now_ns = monotonic_ns();
        Self {
            connections: (0..count).map(connection).collect(),
            pacer: Pacer::new(&plan, number),
            asking,
            plan,
            target,
            shared,
            outputs: Vec::new(),
            actions: VecDeque::new(),
            pool: BufferPool::new(),
            buffer: vec![0; READ_BYTES],
            limits: ReplyLimits::default(),
            now: Now::default(),
            turn_ns: now_ns,
            started_ns: now_ns,
            heard_ns: now_ns,
            dialled: 0,
            ready: 0,
            has_begun: false,
            waited_before_ns: 0,
            redial_ns: u64::MAX,
            ending_ns: None,
            is_over: false,
            report,
        }
    }

    /// Dials so many connections that no more than [`DIALS_MAX`] are under way.
    fn dial_more(&mut self) {
        while self.dialled < self.connections.len() && self.dialled - self.ready < DIALS_MAX {
            let place = self.dialled;
            self.dialled += 1;
            self.dial(place);
        }
    }

    fn dial(&mut self, place: usize) {
        let connection = &mut self.connections[place];
        connection.upstream.begin_dial();
        let endpoint = Arc::clone(&self.target.nodes[connection.node].endpoint);
        self.actions.push_back(Action::Dial { conn: conn_of(place), endpoint });
    }

    fn list(&mut self, place: usize) {
        if !std::mem::replace(&mut self.connections[place].is_listed, true) {
            self.outputs.push(place as u32);
        }
    }

    /// A connection can be asked.
    fn note_ready(&mut self, place: usize) {
        let connection = &mut self.connections[place];
        if !std::mem::replace(&mut connection.was_ready, true) {
            self.ready += 1;
            self.dial_more();
            if self.ready == self.connections.len() {
                self.shared.note_ready();
            }
        }
        if self.has_begun {
            self.go_on(place);
        }
    }

    /// Every thread has its connections: the run begins.
    fn begin(&mut self) {
        self.has_begun = true;
        self.waited_before_ns = waited_ns();
        let began_ns = self.shared.began_ns();
        self.heard_ns = began_ns;
        self.pacer.begin(began_ns);
        for place in 0..self.connections.len() {
            self.go_on(place);
        }
    }

    /// Nothing waits for a reply on this connection: it gets its next batch, if this is a closed loop and it is its turn.
    fn go_on(&mut self, place: usize) {
        if self.pacer.is_open() || self.is_over || !self.has_begun {
            return;
        }
        let connection = &self.connections[place];
        if !connection.upstream.is_ready() || !connection.upstream.tickets().is_empty() {
            return;
        }
        let now_ns = self.turn_ns;
        if !self.pacer.is_taking_part(place, self.connections.len(), now_ns) {
            return;
        }
        let batch = self.pacer.take_batch(&self.shared, now_ns);
        let connection = &mut self.connections[place];
        connection.written_ns = None;
        let tags = &self.target.nodes[connection.node].tags;
        for _ in 0..batch {
            self.asking.ask(connection, tags, 0, self.now.mono_us, &mut self.pool);
        }
        if batch > 0 {
            self.list(place);
        }
    }

    /// Sends what is due by now.
    fn send_due(&mut self, now_ns: u64) {
        while let Some(due_ns) = self.pacer.take_due(&self.shared, now_ns) {
            let place = self.pacer.next_place(self.connections.len());
            let is_full = self.asking.outstanding() >= crate::limits::OUTSTANDING_MAX;
            if is_full || !self.connections[place].upstream.is_ready() {
                self.asking.tally.wrongs.unsent += 1;
                continue;
            }
            if self.asking.outstanding() == 0 {
                // The server had nothing to answer since the last reply.
                self.heard_ns = self.turn_ns;
            }
            let connection = &mut self.connections[place];
            let tags = &self.target.nodes[connection.node].tags;
            self.asking.ask(connection, tags, due_ns, self.now.mono_us, &mut self.pool);
            self.asking.note_sent(due_ns, now_ns, self.shared.began_ns());
            self.list(place);
        }
    }

    /// The last reply of a batch has come.
    fn end_batch(&mut self, place: usize) {
        if self.plan.is_kept {
            return self.go_on(place);
        }
        if !self.connections[place].upstream.tickets().is_empty() {
            return;
        }
        self.actions.push_back(Action::Close { conn: conn_of(place) });
        self.connections[place].upstream.reset(&mut self.pool).for_each(drop);
        if !self.pacer.has_ended(&self.shared, self.turn_ns) {
            self.dial(place);
        }
    }

    /// A connection is gone, and with it what it owed.
    fn lose(&mut self, place: usize, why: &str) {
        let connection = &mut self.connections[place];
        let was_ready = connection.was_ready;
        let lost = connection.upstream.reset(&mut self.pool).count();
        self.asking.note_lost(lost);
        if self.is_over {
            return;
        }
        if !was_ready || !self.plan.goes_on {
            let name = &self.target.nodes[self.connections[place].node].endpoint;
            let what = if was_ready { "lost the connection to" } else { "could not connect to" };
            return self.fail(format!("{what} {name}: {why}"));
        }
        self.asking.tally.wrongs.lost_connections += 1;
        // After a pause, so that a server that is away is not dialled in a circle.
        self.connections[place].is_to_be_dialled = true;
        self.redial_ns = self.turn_ns + REDIAL_NS;
    }

    fn fail(&mut self, why: String) {
        if !self.is_over {
            self.shared.stop();
            self.finish(Err(why));
        }
    }

    fn finish(&mut self, mut ended: Ended) {
        self.is_over = true;
        if let Ok(tally) = &mut ended
            && self.has_begun
        {
            tally.waited_ns = waited_ns().saturating_sub(self.waited_before_ns);
        }
        // The receiver waits for as many as there are threads.
        let _ = self.report.send(ended);
        self.actions.push_back(Action::Service(ServiceAction::Exit));
    }

    /// What is looked at in every turn, and at least every [`LOOK_US`].
    fn look(&mut self) {
        if self.is_over {
            return;
        }
        if self.dialled == 0 {
            if self.connections.is_empty() {
                self.shared.note_ready();
            }
            self.dial_more();
        }
        if !self.has_begun {
            let waited_ns = self.turn_ns.saturating_sub(self.started_ns);
            let is_late = waited_ns > CONNECT_PATIENCE.as_nanos() as u64;
            if self.shared.is_ready() {
                self.begin();
            } else if self.shared.is_stopped() {
                let tally = self.asking.take_tally();
                return self.finish(Ok(tally));
            } else if is_late {
                let (ready, all) = (self.ready, self.connections.len());
                return self.fail(format!("{ready} of {all} connections were there after {CONNECT_PATIENCE:?}"));
            } else if self.ready == 0
                && waited_ns > TLS_PATIENCE.as_nanos() as u64
                && let Some(connection) = self.connections.first()
                && let endpoint @ Endpoint::Tls { .. } = &*self.target.nodes[connection.node].endpoint
            {
                let why = format!("no TLS handshake was over after {TLS_PATIENCE:?}: is TLS spoken there?");
                return self.fail(format!("could not connect to {endpoint}: {why}"));
            }
        }
        if self.has_begun {
            self.look_at_end();
        }
    }

    fn look_at_end(&mut self) {
        if let Some(error) = self.asking.fatal.take() {
            return self.fail(error);
        }
        if self.turn_ns >= self.redial_ns {
            self.redial();
        }
        if self.pacer.is_ramping(self.turn_ns) {
            (0..self.connections.len()).for_each(|place| self.go_on(place));
        }
        if self.asking.has_heard() {
            self.heard_ns = self.turn_ns;
        }
        let is_waiting = self.asking.outstanding() > 0;
        let has_ended = self.pacer.has_ended(&self.shared, self.turn_ns);
        let is_stalled = self.turn_ns.saturating_sub(self.heard_ns) > STALL.as_nanos() as u64;
        if is_stalled && (is_waiting || (!has_ended && self.is_cut_off())) {
            return self.fail(format!("nothing was answered for {STALL:?}"));
        }
        if has_ended {
            let since_ns = *self.ending_ns.get_or_insert(self.turn_ns);
            if !is_waiting || self.turn_ns.saturating_sub(since_ns) > PATIENCE.as_nanos() as u64 {
                let tally = self.asking.take_tally();
                self.finish(Ok(tally));
            }
        }
    }

    /// Whether a closed loop cannot go on: nothing is asked before a connection is there again. An open loop goes on without,
    /// and counts what it could not send.
    fn is_cut_off(&self) -> bool {
        let is_ready = |connection: &Connection| connection.upstream.is_ready();
        !self.pacer.is_open() && !self.connections.is_empty() && !self.connections.iter().any(is_ready)
    }

    fn redial(&mut self) {
        self.redial_ns = u64::MAX;
        for place in 0..self.connections.len() {
            if std::mem::take(&mut self.connections[place].is_to_be_dialled) {
                self.dial(place);
            }
        }
    }
}

impl Machine for Load {
    type ServiceAction = ServiceAction<()>;

    fn begin_turn(&mut self, now: Now) {
        self.now = now;
        self.turn_ns = monotonic_ns();
    }

    #[inline]
    fn read_buffer(&mut self, _: ConnId) -> Option<&mut [u8]> {
        Some(&mut self.buffer)
    }

    #[inline]
    fn handle_read(&mut self, conn: ConnId, bytes: usize) {
        let place = conn.index();
        let read_ns = monotonic_ns();
        let connection = &mut self.connections[place];
        let input = &self.buffer[..bytes];
        if !connection.upstream.is_ready() {
            match connection.upstream.shake(input, &self.limits, self.now.mono_us, &mut self.pool) {
                Ok(respool_connection::Shake::Ready) => return self.note_ready(place),
                Ok(respool_connection::Shake::Continues) => return self.list(place),
                Err(fault) => return self.fail(format!("{}: {fault}", self.target.name)),
            }
        }
        let elapsed = (read_ns, self.shared.began_ns());
        match self.asking.take_replies(connection, input, &self.limits, elapsed, self.now.mono_us) {
            Ok(()) if connection.upstream.tickets().is_empty() => self.end_batch(place),
            Ok(()) => {}
            Err(why) => self.fail(format!("{}: {why}", self.target.name)),
        }
    }

    fn handle_ended(&mut self, conn: ConnId) {
        if !self.is_over {
            self.actions.push_back(Action::Close { conn });
            self.lose(conn.index(), "it was closed by the server");
        }
    }

    fn handle_broken(&mut self, conn: ConnId, error: &str) {
        self.lose(conn.index(), error);
    }

    fn handle_connected(&mut self, conn: ConnId) {
        let place = conn.index();
        let upstream = &mut self.connections[place].upstream;
        if upstream.identity().steps().len() == 1 {
            upstream.handle_connected_bare(self.now.mono_us);
            self.note_ready(place);
        } else {
            upstream.handle_connected(self.now.mono_us, &mut self.pool);
            self.list(place);
        }
    }

    fn handle_dial_failed(&mut self, conn: ConnId, failure: DialFailure) {
        let why = words_of(failure);
        self.lose(conn.index(), &why);
    }

    fn end_turn(&mut self) {
        // Before the look: replies of this turn are heard in it, however long ago the turn before was.
        self.asking.publish(&self.shared);
        self.look();
        if self.has_begun && self.pacer.is_open() && !self.is_over {
            self.send_due(monotonic_ns());
        }
    }

    fn poll_action(&mut self) -> Option<Action<ServiceAction<()>>> {
        self.actions.pop_front()
    }

    #[inline]
    fn poll_output(&mut self) -> Option<ConnId> {
        loop {
            let place = self.outputs.pop()?;
            let connection = &mut self.connections[place as usize];
            connection.is_listed = false;
            if connection.upstream.wants_write(self.now.mono_us) {
                // Only of a batch's first piece: the socket may take it in several, with long pauses between them.
                connection.written_ns.get_or_insert_with(monotonic_ns);
                return Some(ConnId::upstream(place));
            }
        }
    }

    #[inline]
    fn output(&self, conn: ConnId) -> &[u8] {
        self.connections[conn.index()].upstream.output()
    }

    #[inline]
    fn handle_written(&mut self, conn: ConnId, bytes: usize) {
        self.connections[conn.index()].upstream.handle_written(bytes, self.now.mono_us, &mut self.pool);
    }

    fn handle_writable(&mut self, conn: ConnId) {
        self.list(conn.index());
    }

    fn next_wakeup_us(&self) -> Option<u64> {
        let look_us = self.now.mono_us + if self.has_begun { LOOK_US } else { 1_000 };
        if !self.has_begun || self.is_over {
            return Some(look_us);
        }
        let due_us = self.pacer.wakeup_us(self.now.mono_us, self.turn_ns, self.asking.outstanding() > 0);
        Some(due_us.map_or(look_us, |due_us| due_us.min(look_us)))
    }
}

impl Service for Load {
    type Mail = ();

    fn handle_accept(&mut self, _: Peer) -> Result<ConnId, Vec<u8>> {
        Err(Vec::new())
    }

    fn handle_mail(&mut self, (): ()) {}
}

fn conn_of(place: usize) -> ConnId {
    ConnId::upstream(place as u32)
}

#[cfg(test)]
mod tests;
