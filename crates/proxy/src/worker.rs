//! One worker: the machine that a loop drives.
//!
//! This file holds the state and the seam to the loop. What happens to a request is in `dispatch`, to a reply in `replies`, when time
//! has passed in `timers`.

mod clients;
mod dispatch;
mod drain;
mod internal_requests;
mod local;
pub(crate) mod pins;
mod queries;
pub(crate) mod query;
mod reload;
mod replies;
mod subscriptions;
mod timers;
mod transaction;

use crate::admin::AdminState;
use crate::blocking::queue::Blocking;
use crate::client_pause::follow_server;
use crate::client_pause::functions::Functions;
use crate::dedicated::Dedicated;
use crate::ended::Ended;
use crate::env::{Env, WorkerSetup};
use crate::error_reply::ErrorReply;
use crate::error_text;
use crate::flush::connections::Party;
use crate::ids::{ClientId, LaneId};
use crate::lifecycle::drain::DrainProgress;
use crate::lifecycle::memory::MemoryPressure;
use crate::lifecycle::table_shrink::TableShrink;
use crate::mail::Mail;
use crate::migrate::Migrations;
use crate::pool::LaneEnd;
use crate::request::dispatch::{read_client, read_input};
use crate::request::unknown_command::CommandInfoQueries;
use crate::session::table::Resumption;
use crate::session::{Flow, PauseReasons, SessionFlags};
use crate::tracking::Subscriptions;
use crate::transaction::exec_reply::continue_exec_reply;
use crate::visits::Visits;
use crate::worker::dispatch::go_on_with_scripts;
use crate::worker::query::Query;
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
    pub(crate) migrations: Migrations,
    pub(crate) retirement: DrainProgress,
    pub(crate) tidying: TableShrink,
    pub(crate) visits: Visits,
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
            migrations: Migrations::default(),
            retirement: DrainProgress::default(),
            tidying: TableShrink::default(),
            visits: Visits::default(),
        };
        worker.env.adopt_allowances();
        worker.engine_side().review_events();
        worker
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
                Ended::Wait { lane } => self.blocking.take_large_part(&mut self.env, lane),
                Ended::Client { client, subscriber, blocked } => {
                    self.dedicated.handle_client_gone(&mut self.env, client);
                    self.blocking.release_all_of(&mut self.env, blocked);
                    self.subscriptions.forget(subscriber);
                }
            }
        }
    }

    #[inline(never)]
    fn next_action(&mut self) -> Option<Action<ServiceAction<Mail>>> {
        self.go_on();
        self.env.next_action()
    }

    /// Goes on with clients that had to wait, and begins dials: what has come up since the last turn's reads.
    fn go_on(&mut self) {
        let before = self.env.lanes.listed.len();
        self.conclude_tasks();
        self.env.cut_off_all_doomed();
        self.tell_ended();
        let goes_on = self.env.slices.begin_round(&mut self.env.clients);
        while goes_on && let Some((index, resumption)) = self.env.clients.next_resuming() {
            match resumption {
                Resumption::Read => self.resume_client(index),
                Resumption::EndExecReply => {
                    let _: Flow = continue_exec_reply(self, index);
                    self.env.clients.list(index);
                }
            }
        }
        self.tell_ended();
        self.env.lanes.write_last(before);
        if goes_on {
            // The turn's end has passed, and what they subscribe to or give up is told before they are answered.
            self.tell_what_is_new();
        }
        self.env.take_dialling_turns();
        self.tell_ended();
    }

    fn resume_client(&mut self, index: ClientId) {
        if self.env.clients.sessions.at(index).is_some_and(|s| s.flags.has(SessionFlags::QUEUEING))
            && continue_exec_reply(self, index) != Flow::Next
        {
            return;
        }
        read_input(self, index);
        if self.env.goes_on(index) {
            self.note_ended(index);
        }
    }
}

impl<E: Execute> Machine for Worker<E> {
    type ServiceAction = ServiceAction<Mail>;

    fn begin_turn(&mut self, now: Now) {
        self.env.begin_turn(now);
        follow_server(&mut self.env);
        self.pressure.note_growth(&mut self.env);
        self.tell_ended();
        if !self.subscriptions.refilling.is_empty() {
            self.subscriptions.go_on_refilling(&mut self.env);
        }
    }

    #[inline]
    fn read_buffer(&mut self, conn: ConnId) -> Option<&mut [u8]> {
        self.env.room_of(conn)
    }

    #[inline]
    fn handle_read(&mut self, conn: ConnId, bytes: usize) {
        match Party::of(conn) {
            Party::Lane(lane) => self.read_upstream(lane, bytes),
            Party::Client(client) => read_client(self, client, bytes),
        }
    }

    fn handle_ended(&mut self, conn: ConnId) {
        match self.env.party(conn) {
            Some(Party::Lane(lane)) => {
                self.env.close_upstream(lane);
                self.env.end_lane(lane, LaneEnd::Lost(None));
            }
            Some(Party::Client(client)) => self.note_ended(client),
            None => {}
        }
        self.tell_ended();
    }

    fn handle_hung_up(&mut self, conn: ConnId) {
        if let Party::Client(client) = Party::of(conn) {
            self.blocking.handle_hung_up(&mut self.env, client);
            self.env.clients.unpause(client, PauseReasons::PRESSURE);
            self.tell_ended();
        }
    }

    fn handle_gone(&mut self, conn: ConnId) {
        if let Party::Client(client) = Party::of(conn) {
            self.env.note_gone(client);
            self.tell_ended();
        }
    }

    fn handle_broken(&mut self, conn: ConnId, error: &str) {
        match self.env.party(conn) {
            Some(Party::Lane(lane)) => self.env.end_lane(lane, LaneEnd::Lost(Some(error.to_owned()))),
            Some(Party::Client(client)) => self.env.drop_client(client),
            None => {}
        }
        self.tell_ended();
    }

    fn handle_address(&mut self, conn: ConnId, address: &str) {
        self.env.handle_address(conn, address);
    }

    fn handle_moved(&mut self, conn: ConnId, addresses: &str) {
        self.env.handle_moved(conn, addresses);
    }

    fn handle_connected(&mut self, conn: ConnId) {
        self.env.handle_connected(conn);
    }

    fn handle_dial_failed(&mut self, conn: ConnId, failure: DialFailure) {
        self.env.handle_dial_failed(conn, failure);
        self.tell_ended();
    }

    fn end_turn(&mut self) {
        self.env.lanes.held = Held::default();
        if self.env.engine.is_some() {
            go_on_with_scripts(self);
            // What a request that was refused, or a client that ended itself, has made ready.
            self.engine_side().serve_ready();
        }
        self.tell_ended();
        let before = self.env.lanes.begin_writing();
        self.run_timers();
        self.env.lanes.write_first(before);
        self.receive_visits();
        self.subscriptions.evict_tracked(&mut self.env);
        self.tell_what_is_new();
        self.env.begin_slices();
        self.tell_ended();
        self.env.end_patience();
    }

    #[inline(always)]
    fn poll_action(&mut self) -> Option<Action<ServiceAction<Mail>>> {
        // Asked several times in every turn, and mostly in vain.
        if self.env.actions.is_empty() && !self.env.has_come_up() { None } else { self.next_action() }
    }

    #[inline(always)]
    fn poll_output(&mut self) -> Option<ConnId> {
        loop {
            if let Some(conn) = self.env.next_output() {
                return Some(conn);
            }
            self.tell_ended();
            // The review of a client, or what it has ended, may have listed others.
            if self.env.lanes.listed.is_empty() && self.env.clients.listed.is_empty() {
                if self.env.has_come_up() {
                    // Writing lets clients go on, and the requests that they had sent leave now: the loop would sleep on them.
                    self.go_on();
                } else if !self.env.flush_messages() {
                    return None;
                }
            }
        }
    }

    #[inline]
    fn output(&self, conn: ConnId) -> &[u8] {
        self.env.output_of(conn)
    }

    #[inline(always)]
    fn handle_written(&mut self, conn: ConnId, bytes: usize) {
        let Some((client, written)) = self.env.handle_written(conn, bytes) else { return };
        if written.is_dedicated {
            self.dedicated.handle_written(&mut self.env, client);
        }
        if written.has_subscriber {
            self.subscriptions.note_room(&mut self.env, client);
        }
    }

    fn handle_writable(&mut self, conn: ConnId) {
        self.env.handle_writable(conn);
    }

    fn wait(&self) -> Wait {
        self.env.wait()
    }

    fn flush_held(&mut self) {
        self.env.flush_held();
    }

    fn measures_waits(&self) -> bool {
        self.subscriptions.is_any()
    }

    fn handle_waited(&mut self, waited_us: u64) {
        self.env.note_waited(waited_us);
    }

    fn next_wakeup_us(&self) -> Option<u64> {
        let of_features = [self.subscriptions.subscriptions_due_us(&self.env), self.blocking.next_due_us(&self.env)];
        of_features.into_iter().flatten().chain([self.env.next_due_us()]).min()
    }
}

impl<E: Execute> Service for Worker<E> {
    type Mail = Mail;

    fn is_accepting(&self) -> bool {
        !self.retirement.is_retiring()
    }

    fn handle_accept(&mut self, peer: Peer) -> Result<ConnId, Vec<u8>> {
        let accepted = self.env.accept(&mut self.subscriptions, peer);
        self.tell_ended();
        accepted.map_err(ErrorReply::into_bytes)
    }

    fn handle_no_room(&mut self, peer: Peer) -> Vec<u8> {
        self.env.shared.turn_away(&self.env.counters, peer, error_text::TOO_MANY_CLIENTS).into_bytes()
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
