//! One worker: the machine that a loop drives.
//!
//! This file holds the state and the seam to the loop. What happens to a request is in `dispatch`, to a reply in `replies`, when time
//! has passed in `timers`.

mod clients;
mod console;
mod dispatch;
mod drain;
mod internal_requests;
mod local;
pub(crate) mod pins;
mod queries;
mod reload;
mod replies;
mod subscriptions;
mod timers;
mod transaction;

use crate::admin::AdminState;
use crate::blocking::queue::Blocking;
use crate::dedicated::Dedicated;
use crate::ended::Ended;
use crate::env::{Env, WorkerSetup};
use crate::error_text;
use crate::flush::client::Received;
use crate::lifecycle::drain::DrainProgress;
use crate::lifecycle::memory::MemoryPressure;
use crate::lifecycle::table_shrink::TableShrink;
use crate::mail::{Mail, Query};
use crate::pool::LaneEnd;
use crate::pool::table::LaneId;
use crate::pubsub::Subscriptions;
use crate::request::unknown_command::CommandInfoQueries;
use crate::scripts::functions::Functions;
use crate::session::id::ClientId;
use crate::session::{Flow, SessionFlags};
use crate::workers::query::Queries;
use respool_command::Execute;
use respool_connection::flush::Held;
use respool_connection::{Action, ConnId, DialFailure, Machine, Now, Peer, Service, ServiceAction, Wait};

/// The state of one worker.
#[derive(Debug)]
pub struct Worker<E> {
    pub(crate) env: Env<E>,
    pub(crate) blocking: Blocking,
    pub(crate) dedicated: Dedicated,
    pub(crate) queries: Queries<Query>,
    pub(crate) admin: AdminState,
    pub(crate) subscriptions: Subscriptions,
    pub(crate) pressure: MemoryPressure,
    /// Names that nodes are asked for.
    pub(crate) learnings: CommandInfoQueries,
    pub(crate) functions: Functions,
    pub(crate) retirement: DrainProgress,
    pub(crate) tidying: TableShrink,
}

impl<E: Execute> Worker<E> {
    /// A worker with no connections.
    pub fn new(setup: WorkerSetup<E>) -> Self {
        let mut worker = Self {
            subscriptions: Subscriptions::new(&setup.config, setup.entropy),
            env: Env::new(setup),
            blocking: Blocking::default(),
            dedicated: Dedicated::default(),
            queries: Queries::default(),
            admin: AdminState::default(),
            pressure: MemoryPressure::default(),
            learnings: CommandInfoQueries::default(),
            functions: Functions::default(),
            retirement: DrainProgress::default(),
            tidying: TableShrink::default(),
        };
        worker.env.adopt_allowances();
        worker.blocking.review_events(&mut worker.env, &mut worker.subscriptions);
        worker
    }

    /// Reads requests from what has just been received.
    fn read_client(&mut self, index: ClientId, bytes: usize) {
        match self.env.note_received(index, bytes) {
            Received::Fresh => {}
            Received::Input => return self.read_input(index),
            Received::Kept => return,
        }
        // Both are borrowed from the worker for the time of the call, which may change anything else of it.
        let buffer = std::mem::take(&mut self.env.read_buffer);
        let mut decoder = self.env.decoder.take().unwrap_or_default();
        self.read_fresh(index, &mut decoder, buffer.get(..bytes).unwrap_or_default());
        self.env.read_buffer = buffer;
        self.env.decoder = Some(decoder);
    }

    fn read_upstream(&mut self, lane: LaneId, bytes: usize) {
        self.env.note_lane_read(lane, bytes);
        let buffer = std::mem::take(&mut self.env.read_buffer);
        self.take_replies(lane, buffer.get(..bytes).unwrap_or_default());
        self.env.read_buffer = buffer;
    }

    /// Tells features what has ended, as [`crate::ended`] says.
    #[inline(always)]
    pub(crate) fn tell_ended(&mut self) {
        if !self.env.ended.is_empty() {
            self.tell_all_ended();
        }
    }

    #[cold]
    fn tell_all_ended(&mut self) {
        while let Some(ended) = self.env.ended.pop_front() {
            match ended {
                ended @ (Ended::PushLane { .. } | Ended::Listener { .. }) => {
                    self.subscriptions.handle_ended(&mut self.env, ended)
                }
                Ended::SilentNode { node } => self.blocking.end_waiting(&mut self.env, node),
                Ended::Dedicated { reader, error } => {
                    self.dedicated.handle_lane_ended(&mut self.env, reader, &error);
                }
                Ended::Select { selecting, class, is_certain, error } => {
                    self.env.miss_select(&mut self.subscriptions, selecting, class, is_certain, &error);
                }
                Ended::Client { client, subscriber, blocked } => {
                    self.dedicated.handle_client_gone(&mut self.env, client);
                    self.blocking.release_all_of(&mut self.env, blocked);
                    if let Some(subscriber) = subscriber {
                        self.subscriptions.forget(*subscriber);
                    }
                }
            }
        }
    }

    #[inline(never)]
    fn next_action(&mut self) -> Option<Action<ServiceAction<Mail>>> {
        self.go_on();
        let action = self.env.actions.pop_front()?;
        match &action {
            Action::Close { conn } if conn.is_upstream() => self.env.lanes.note_closed(LaneId::of(*conn)),
            Action::Close { conn } | Action::Finish { conn } => {
                self.env.clients.sessions.release(ClientId::of(*conn));
            }
            _ => {}
        }
        Some(action)
    }

    /// Goes on with clients that had to wait, and begins dials: what has come up since the last turn's reads.
    fn go_on(&mut self) {
        let before = self.env.lanes.listed.len();
        self.conclude_tasks();
        while let Some(doomed) = self.env.clients.doomed.pop() {
            self.env.cut_off_doomed(doomed);
        }
        self.tell_ended();
        let has_resumed = !self.env.clients.resuming.is_empty();
        self.env.clients.sort_resuming();
        while let Some(index) = self.env.clients.resuming.pop_front() {
            let Some(session) = self.env.clients.sessions.at_mut(index) else { continue };
            session.is_resuming = false;
            if session.pause.is_none() {
                self.resume_client(index);
            } else if session.is_to_end_exec_reply() {
                let _: Flow = self.continue_exec_reply(index);
                self.env.clients.list(index);
            }
        }
        self.tell_ended();
        self.env.lanes.write_last(before);
        if has_resumed {
            // The turn's end has passed, and what they subscribe to or give up is told before they are answered.
            self.tell_what_is_new();
        }
        self.env.take_dialling_turns();
        self.tell_ended();
    }

    fn resume_client(&mut self, index: ClientId) {
        if self.env.clients.sessions.at(index).is_some_and(|s| s.flags.has(SessionFlags::QUEUEING))
            && self.continue_exec_reply(index) != Flow::Next
        {
            return;
        }
        if self.env.clients.sessions.at(index).is_some_and(|s| s.input.is_some()) {
            self.read_input(index);
        }
        if self.env.goes_on(index) {
            self.note_ended(index);
        }
    }
}

impl<E: Execute> Machine for Worker<E> {
    type ServiceAction = ServiceAction<Mail>;

    fn begin_turn(&mut self, now: Now) {
        self.env.begin_turn(now);
        self.env.check_client_memory();
        self.tell_ended();
        if self.subscriptions.is_refilling() {
            self.subscriptions.go_on_refilling(&mut self.env);
        }
    }

    #[inline]
    fn read_buffer(&mut self, conn: ConnId) -> Option<&mut [u8]> {
        if conn.is_upstream() {
            return self.env.room_of_lane(LaneId::of(conn));
        }
        self.env.room_of_client(ClientId::of(conn))
    }

    #[inline]
    fn handle_read(&mut self, conn: ConnId, bytes: usize) {
        if conn.is_upstream() {
            self.read_upstream(LaneId::of(conn), bytes);
        } else {
            self.read_client(ClientId::of(conn), bytes);
        }
    }

    fn handle_ended(&mut self, conn: ConnId) {
        if self.env.is_closing(conn) {
            return;
        }
        if conn.is_upstream() {
            self.env.close_upstream(LaneId::of(conn));
            self.env.end_lane(LaneId::of(conn), LaneEnd::Lost(None));
        } else {
            self.note_ended(ClientId::of(conn));
        }
        self.tell_ended();
    }

    fn handle_hung_up(&mut self, conn: ConnId) {
        if conn.is_upstream() {
            return;
        }
        self.blocking.handle_hung_up(&mut self.env, ClientId::of(conn));
        self.tell_ended();
    }

    fn handle_gone(&mut self, conn: ConnId) {
        if !conn.is_upstream() {
            self.env.note_gone(ClientId::of(conn));
            self.tell_ended();
        }
    }

    fn handle_broken(&mut self, conn: ConnId, error: &str) {
        if self.env.is_closing(conn) {
            return;
        }
        if conn.is_upstream() {
            self.env.end_lane(LaneId::of(conn), LaneEnd::Lost(Some(error.to_owned())));
        } else {
            self.env.drop_client(ClientId::of(conn));
        }
        self.tell_ended();
    }

    fn handle_address(&mut self, conn: ConnId, address: &str) {
        if !self.env.is_closing(conn) && conn.is_upstream() {
            self.env.note_lane_address(LaneId::of(conn), address);
        }
    }

    fn handle_moved(&mut self, conn: ConnId, addresses: &str) {
        if !self.env.is_closing(conn) && conn.is_upstream() {
            self.env.note_moved(LaneId::of(conn), addresses);
        }
    }

    fn handle_connected(&mut self, conn: ConnId) {
        if !self.env.is_closing(conn) {
            self.env.handle_lane_connected(LaneId::of(conn));
        }
    }

    fn handle_dial_failed(&mut self, conn: ConnId, failure: DialFailure) {
        if self.env.is_closing(conn) {
            return;
        }
        self.env.counters.dials_without_descriptor.add(u64::from(failure == DialFailure::NoDescriptor));
        self.env.end_lane(LaneId::of(conn), LaneEnd::Dial(failure));
        self.tell_ended();
    }

    fn end_turn(&mut self) {
        self.env.lanes.held = Held::default();
        if self.env.engine.is_some() {
            if self.env.slices.script.is_some() {
                self.go_on_with_script();
            }
            // What a request that was refused, or a client that ended itself, has made ready.
            self.blocking.serve_ready(&mut self.env, &mut self.subscriptions);
        }
        // What requests of this turn have ended.
        self.tell_ended();
        if self.env.lanes.may_go_on {
            self.env.lanes.let_go_on();
        }
        // Taken from its end: what was asked first on several connections to a node is written first, behind what nodes
        // are told of subscriptions.
        if self.env.lanes.listed.len() > 1 {
            self.env.lanes.listed.reverse();
        }
        // Held bytes are looked at again: their replies may have come in this turn, or their time.
        self.env.lanes.list_unflushed();
        let before = self.env.lanes.listed.len();
        self.run_timers();
        self.env.lanes.write_first(before);
        self.subscriptions.evict_tracked(&mut self.env);
        self.tell_what_is_new();
        self.env.begin_slices();
        self.tell_ended();
        if !self.env.clients.unflushed.is_empty() && self.env.patient_until_us().is_none() {
            self.env.clients.release_unflushed();
        }
    }

    #[inline(always)]
    fn poll_action(&mut self) -> Option<Action<ServiceAction<Mail>>> {
        // Asked several times in every turn, and mostly in vain.
        if self.env.actions.is_empty() && !self.env.has_come_up() { None } else { self.next_action() }
    }

    #[inline(always)]
    fn poll_output(&mut self) -> Option<ConnId> {
        loop {
            if let Some(lane) = self.env.next_lane_to_write() {
                return Some(lane.conn());
            }
            while let Some(index) = self.env.clients.listed.pop() {
                if self.env.review_client(index) {
                    return Some(index.conn());
                }
            }
            self.tell_ended();
            // The review of a client, or what it has ended, may have listed others.
            if self.env.lanes.listed.is_empty() && self.env.clients.listed.is_empty() {
                if !self.env.has_come_up() {
                    return None;
                }
                // Writing lets clients go on, and the requests that they had sent leave now: the loop would sleep on them.
                self.go_on();
            }
        }
    }

    #[inline]
    fn output(&self, conn: ConnId) -> &[u8] {
        if conn.is_upstream() {
            self.env.lanes[LaneId::of(conn)].up.output()
        } else {
            self.env.clients.sessions.at(ClientId::of(conn)).map_or(&[], |s| s.down.output().as_slice())
        }
    }

    #[inline(always)]
    fn handle_written(&mut self, conn: ConnId, bytes: usize) {
        if conn.is_upstream() {
            return self.env.handle_lane_written(LaneId::of(conn), bytes);
        }
        let index = ClientId::of(conn);
        let Some(written) = self.env.handle_client_written(index, bytes) else { return };
        if written.is_dedicated {
            self.dedicated.handle_written(&mut self.env, index);
        }
        if written.has_subscriber {
            self.subscriptions.note_room(&mut self.env, index);
        }
    }

    fn handle_writable(&mut self, conn: ConnId) {
        if conn.is_upstream() {
            self.env.handle_lane_writable(LaneId::of(conn));
        } else if let Some(session) = self.env.clients.sessions.at_mut(ClientId::of(conn)) {
            session.is_blocked = false;
            self.env.clients.list(ClientId::of(conn));
        }
    }

    fn wait(&self) -> Wait {
        self.env.wait()
    }

    fn flush_held(&mut self) {
        self.env.flush_held();
    }

    fn measures_waits(&self) -> bool {
        self.env.config.flush.is_adaptive()
    }

    fn handle_waited(&mut self, waited_us: u64) {
        self.env.note_waited(waited_us);
    }

    fn next_wakeup_us(&self) -> Option<u64> {
        let mut due = self.env.next_due_us();
        if let Some(at) = self.subscriptions.subscriptions_due_us(&self.env) {
            due = due.min(at);
        }
        if let Some(at) = self.blocking.next_due_us() {
            due = due.min(at);
        }
        Some(due)
    }
}

impl<E: Execute> Service for Worker<E> {
    type Mail = Mail;

    fn is_accepting(&self) -> bool {
        !self.retirement.is_retiring()
    }

    fn handle_accept(&mut self, peer: Peer) -> Result<ConnId, &'static [u8]> {
        let accepted = self.env.accept(&mut self.subscriptions, peer);
        self.tell_ended();
        accepted
    }

    fn handle_no_room(&mut self, peer: Peer) -> &'static [u8] {
        self.env.shared.turn_away(&self.env.counters, peer, error_text::TOO_MANY_CLIENTS)
    }

    fn handle_handshake_failed(&mut self) {
        self.env.counters.handshakes_failed.add(1);
    }

    fn handle_mail(&mut self, mail: Mail) {
        // What replies of this turn lead to comes before orders that hold requests back.
        self.conclude_tasks();
        self.take_mail(mail);
        self.tell_ended();
    }
}
