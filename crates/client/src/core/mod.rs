//! One connection that threads and tasks share.
//!
//! No thread or task belongs to it. A caller encodes its request, appends it, and writes it if nothing else is about to be written.
//! Then it waits, and while it waits it reads for all:
//!
//! ```text
//!   who waits                     who reads (the leader)
//!   one task                      the task, in its own poll
//!   several tasks                 the driver, a task of the same runtime, until there is one caller again
//!   threads, tasks or none beside one of the threads, in the kernel
//! ```
//!
//! A leader that has its reply leaves, and appoints the next. Nothing waits in the kernel to write, so a server that does not read
//! cannot keep replies from being read. What is not connected waits outside: no request is queued before the handshake is
//! through, so that one which is given up there was not sent and never will be.

mod deadline_heap;
mod deadlines;
mod demotion;
mod dial;
#[cfg(feature = "tokio")]
mod driver;
mod large;
mod link;
mod lookup;
mod note;
mod read;
#[cfg(feature = "tls")]
mod session;
mod silence;
#[cfg(test)]
mod simulated;
mod slots;
pub(crate) mod standing;
mod submit;
mod system;
#[cfg(test)]
mod tests;
mod wakes;
mod write;

pub(crate) use dial::{Failure, greet};
#[cfg(feature = "tokio")]
pub(crate) use driver::Spent;
#[cfg(feature = "cache")]
pub(crate) use link::wait_readable;
pub(crate) use link::{Link, Peer, Socket, Wait};
pub(crate) use lookup::Lookup;
pub(crate) use note::START_BYTES;
pub(crate) use read::ReadHalf;
#[cfg(feature = "tls")]
pub(crate) use session::Disagreement;
pub(crate) use silence::Asked;
pub(crate) use slots::{Ended, SlotId, Waiter};
pub(crate) use submit::{Face, Submitted};
pub(crate) use system::{chance, current};
pub(crate) use wakes::Wakes;
use write::WriteHalf;

use crate::{Config, ErrorKind, Outcome};
use bytes::Bytes;
use respool_connection::flush::CallerGathering;
use respool_connection::{BufferPool, FlushPolicy, Reconnect, Segments, Upstream};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// What the callers of one client share.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) config: Config,
    state: Mutex<State>,
    began: Instant,
    keeper: Arc<deadlines::Keeper>,
    lookup: lookup::Lookup,
    telling: Mutex<dial::Telling>,
    /// Absent on a connection that one caller has to itself.
    large: Option<large::Large>,
}

/// Who reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leader {
    /// Nothing does, and nothing has to.
    None,
    /// The thread that waits at this place.
    Thread(SlotId),
    /// The task that waits at this place.
    Task(SlotId),
    /// The driver.
    Driver,
}

/// The state of the connection. Never locked while the kernel is waited for, or something is woken or dropped that is not ours.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) upstream: Upstream<SlotId, Segments<Bytes>>,
    pub(crate) pool: BufferPool,
    pub(crate) slots: slots::Slots,
    pub(crate) link: Option<Arc<Link>>,
    /// Counts connections, so that what was begun on one is not ended on another.
    pub(crate) epoch: u64,
    /// What is needed to read; absent while something reads.
    pub(crate) read_half: Option<Box<ReadHalf>>,
    /// What is needed to write; absent while something writes.
    pub(crate) write_half: Option<Box<WriteHalf>>,
    pub(crate) leader: Leader,
    /// What has come of a large reply.
    large: Vec<u8>,
    /// What callers are about to send, and have queued.
    pub(crate) gathering: CallerGathering,
    #[cfg(feature = "tokio")]
    pub(crate) driver: driver::State,
    /// Callers that wait for a connection, or for room.
    lobby: VecDeque<submit::Outside>,
    /// When they give up, by their numbers.
    lobby_deadlines: deadline_heap::DeadlineHeap<u64>,
    lobby_count: u64,
    /// A thread reads for tasks of no runtime.
    is_served: bool,
    /// That thread has found that another reads, and is begun again when that one is through.
    is_serve_due: bool,
    /// It does so for callers that wait outside, as none waits for a reply.
    serves_outside: bool,
    reconnect: Reconnect,
    is_dialling: bool,
    /// Why the last attempt to connect has failed.
    last_failure: Option<Arc<str>>,
    /// Set if the server has refused the handshake.
    refusal: Option<ErrorKind>,
    /// Counts the times that connecting was given up.
    pub(crate) failed_dials: u64,
    /// When a request was last queued.
    last_used_us: u64,
    /// How many requests there had been when the connection was last looked at before it was written to.
    looked_over: u64,
    /// How many requests there had been when it was last looked for late ones.
    looked_at: u64,
    /// When calls are looked at that are late.
    keeper_us: u64,
    /// Since when nothing has come, as late calls have found.
    silent: Option<Asked>,
    /// What refusals to write have come to.
    demotion: demotion::Demotion,
    /// Of the reads, those that found nothing.
    vain_reads: u64,
    /// How often the kernel has taken more of what it had not taken at once.
    confirmed: u64,
    is_closed: bool,
    /// It is not connected again.
    is_pinned: bool,
    /// Replies are read also when no caller wants them any longer: they are large, and the next call may come late.
    is_drained: bool,
    counts: Counts,
}

/// What a connection has done.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) requests: u64,
    pub(crate) writes: u64,
    pub(crate) reads: u64,
    pub(crate) connections: u64,
}

impl Core {
    /// A connection of one caller at a time. Nothing is dialled yet.
    pub(crate) fn new(config: Config) -> Arc<Self> {
        // What waits on the server there may do so for long.
        let config = Config { silence: None, ..config };
        Self::new_with(config, Instant::now(), None)
    }

    /// `began`: when its clock begins.
    fn new_with(config: Config, began: Instant, large: Option<large::Large>) -> Arc<Self> {
        Arc::new_cyclic(|core| Self::with(config, began, large, core))
    }

    #[cfg_attr(not(feature = "tokio"), allow(unused_variables, reason = "the driver needs it"))]
    fn with(config: Config, began: Instant, large: Option<large::Large>, core: &std::sync::Weak<Self>) -> Self {
        let state = State {
            upstream: Upstream::new(config.identity.clone(), FlushPolicy::EachTurn),
            pool: BufferPool::new(),
            slots: slots::Slots::default(),
            link: None,
            epoch: 0,
            read_half: None,
            write_half: None,
            leader: Leader::None,
            large: Vec::new(),
            gathering: CallerGathering::default(),
            #[cfg(feature = "tokio")]
            driver: driver::State::new(core.clone()),
            lobby: VecDeque::new(),
            lobby_deadlines: deadline_heap::DeadlineHeap::default(),
            lobby_count: 0,
            is_served: false,
            is_serve_due: false,
            serves_outside: false,
            reconnect: Reconnect::new(config.reconnect),
            is_dialling: false,
            last_failure: None,
            refusal: None,
            failed_dials: 0,
            last_used_us: 0,
            looked_over: 0,
            looked_at: 0,
            keeper_us: u64::MAX,
            silent: None,
            demotion: demotion::Demotion::default(),
            vain_reads: 0,
            confirmed: 0,
            is_closed: false,
            is_pinned: false,
            is_drained: false,
            counts: Counts::default(),
        };
        Self {
            config,
            state: Mutex::new(state),
            began,
            keeper: Arc::default(),
            lookup: lookup::Lookup::default(),
            telling: Mutex::default(),
            large,
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Microseconds since the client was made.
    pub(crate) fn now_us(&self) -> u64 {
        #[cfg(test)]
        if let Some(now_us) = simulated::now_us() {
            return now_us;
        }
        self.began.elapsed().as_micros() as u64
    }

    /// No call succeeds from now on.
    pub(crate) fn close(&self) {
        let mut wakes = Wakes::default();
        let mut state = self.lock();
        state.is_closed = true;
        state.lose(&ErrorKind::Closed, &mut wakes);
        state.open_lobby(&mut wakes);
        drop(state);
        wakes.run();
        if let Some(second) = self.second_made() {
            second.close();
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.lock().is_closed
    }

    /// Whether there is no connection, and the last attempt to make one has failed. Then another one is made behind its pause, for which no
    /// call waits: what is passed over while it is down would never be found to be up again.
    pub(crate) fn is_down(self: &Arc<Self>) -> bool {
        let state = self.lock();
        let is_down = state.link.is_none() && state.reconnect.failures() > 0;
        drop(state);
        is_down && !self.begin_early()
    }

    /// Whether a connection that is lost stays so: it had a state that the next one would not have.
    pub(crate) fn pin(&self, is_pinned: bool) {
        self.lock().is_pinned = is_pinned;
    }

    /// The connection, if there is one.
    pub(crate) fn link(&self) -> Option<Arc<Link>> {
        self.lock().link.clone()
    }

    /// Where it leads to. Behind sentinels the server that it is connected to, or whose master or replica they are asked for.
    pub(crate) fn shown(&self) -> String {
        let Some(sentinels) = &self.config.sentinels else { return self.config.endpoint.to_string() };
        // The settings name a sentinel.
        self.link().map_or_else(|| sentinels.shown(), |link| link.endpoint().to_string())
    }

    /// Requests that wait for replies, those whose callers have left among them, and places that are taken.
    pub(crate) fn in_flight(&self) -> (usize, usize) {
        let state = self.lock();
        (state.upstream.tickets().len(), state.slots.taken())
    }

    pub(crate) fn counts(&self) -> Counts {
        self.lock().counts
    }
}

impl State {
    /// The connection is gone or must go: every request on it ends, with whether it may have been sent.
    pub(crate) fn lose(&mut self, why: &ErrorKind, wakes: &mut Wakes) {
        for (id, was_sent) in self.upstream.reset(&mut self.pool) {
            let outcome = if was_sent { Outcome::MaybeExecuted } else { Outcome::NotSent };
            wakes.push(self.slots.end(id, Ended::Failed(why.clone(), outcome)));
        }
        self.slots.forget_left();
        if let Some(link) = self.link.take() {
            link.shut();
            wakes.rare().link = Some(link);
        }
        self.epoch += 1;
        (self.read_half, self.write_half) = (None, None);
        self.leader = Leader::None;
        self.large = Vec::new();
        self.gathering.give_up();
        #[cfg(feature = "tokio")]
        self.driver.forget_link(wakes);
    }

    /// As [`Self::lose`], for a connection that was in use. What is not sent yet is never sent: requests that wait may be repeated elsewhere, and
    /// a write must not come behind its repetition.
    pub(crate) fn lose_link(&mut self, how: &dyn std::fmt::Display, now_us: u64, wakes: &mut Wakes) {
        if let Some(link) = &self.link {
            link.reset_when_closed();
        }
        let how: Arc<str> = how.to_string().into();
        wakes.rare().lost = Some((Arc::clone(&how), self.upstream.tickets().len()));
        self.last_failure = Some(Arc::clone(&how));
        self.lose(&ErrorKind::Lost(how), wakes);
        self.reconnect.note_lost(now_us, chance());
    }

    /// Lets in what waits outside.
    fn open_lobby(&mut self, wakes: &mut Wakes) {
        for outside in self.lobby.drain(..) {
            wakes.push(outside.waiter);
        }
    }

    /// There is no leader: appoints one if something waits.
    pub(crate) fn appoint(&mut self, wakes: &mut Wakes) {
        self.leader = Leader::None;
        if self.link.is_none() {
            return;
        }
        if self.slots.threads() > 0 {
            let next = self.upstream.tickets().iter().copied().find(|id| self.slots.is_thread(*id));
            if let Some(id) = next {
                self.leader = Leader::Thread(id);
                wakes.push(self.slots.take_waiter(id));
            }
        } else if self.slots.tasks() == 1 {
            let next = self.upstream.tickets().iter().copied().find(|id| self.slots.is_task(*id));
            if let Some(id) = next {
                self.leader = Leader::Task(id);
                wakes.push(self.slots.take_waiter(id));
            }
        } else if self.slots.tasks() > 1 {
            self.drive(wakes);
        } else if self.is_drained && !self.upstream.tickets().is_empty() {
            self.leader = Leader::Driver;
            wakes.rare().serve = true;
        } else {
            self.serve_outside(wakes);
        }
    }

    /// A thread reads if callers wait outside for room, and all callers inside have left: what these have asked for is answered all the same,
    /// and takes the room until it was read. What leads may be the driver of a runtime that stands still.
    pub(crate) fn serve_outside(&mut self, wakes: &mut Wakes) {
        if !self.lobby.is_empty() && self.slots.waiting() == 0 {
            self.serve_abandoned(wakes);
        }
    }

    /// As [`Self::serve_outside`], if no caller waits inside.
    #[cold]
    fn serve_abandoned(&mut self, wakes: &mut Wakes) {
        let is_read = self.is_served && self.leader == Leader::Driver;
        if !is_read && self.link.is_some() && !self.upstream.tickets().is_empty() {
            (self.leader, self.serves_outside) = (Leader::Driver, true);
            wakes.rare().serve = true;
        }
    }

    /// The driver leads from now on.
    pub(crate) fn drive(&mut self, wakes: &mut Wakes) {
        self.leader = Leader::Driver;
        #[cfg(feature = "tokio")]
        if self.driver.wake(wakes) {
            return;
        }
        wakes.rare().serve = true;
    }

    /// A caller that waits at `id` leaves. If it leads, another does from now on.
    pub(crate) fn leave(&mut self, id: SlotId, wakes: &mut Wakes) {
        let (waiter, ended) = self.slots.leave(id);
        wakes.trash(waiter, ended);
        if matches!(self.leader, Leader::Thread(leader) | Leader::Task(leader) if leader == id) {
            self.appoint(wakes);
        } else {
            self.serve_outside(wakes);
        }
    }
}
