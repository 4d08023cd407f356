//! The driver: a task of the callers' runtime that reads and writes while several tasks wait.
//!
//! It exists because a task that waits need not be polled: it may be one of several in another future, which looks at it later. So
//! one task may read for itself, but several are never left to one of them. The driver also gathers: it is woken by the first
//! request of a batch, lets every task run that can, and writes what they have queued together. It sleeps again when there has
//! been one caller at a time for a while.

use super::link::Socket;
use super::read::ReadOnce;
use super::slots::Waiter;
use super::{Core, Leader, Link, SlotId, Wait, standing};
use std::future::Future;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, MutexGuard, Weak};
use std::task::{Context, Poll, Waker};
use tokio::io::Interest;
use tokio::net::{TcpStream, UnixStream};
use tokio::runtime::{Handle, Id};

/// Reads in a row that served one caller, after which the caller reads for itself.
pub(super) const CALM_READS: u32 = 8;

/// Reads in one turn, after which other tasks run.
const READS_MAX: usize = 4;

/// Whether something can be read, as a runtime tells a task. A copy of the socket, which nothing is read from.
#[derive(Debug)]
enum Watch {
    Tcp(TcpStream),
    Unix(UnixStream),
    #[cfg(test)]
    Simulated(super::simulated::Watcher),
}

/// A socket that a runtime watches.
#[derive(Debug)]
pub(crate) struct Watched {
    socket: Watch,
    link: Arc<Link>,
}

pub(crate) type Readiness = Arc<Watched>;

impl Watched {
    /// Lets the runtime of this task watch the socket.
    fn new(link: &Arc<Link>) -> io::Result<Self> {
        let socket = match link.copy_for_tasks()? {
            Socket::Tcp(socket) => Watch::Tcp(TcpStream::from_std(socket)?),
            Socket::Unix(socket) => Watch::Unix(UnixStream::from_std(socket)?),
            #[cfg(test)]
            Socket::Simulated(end) => Watch::Simulated(super::simulated::Watcher::new(&end)),
        };
        Ok(Self { socket, link: Arc::clone(link) })
    }

    fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.link.holds_more() {
            // The runtime sees the socket alone, not what was decrypted.
            return Poll::Ready(Ok(()));
        }
        match &self.socket {
            Watch::Tcp(socket) => socket.poll_read_ready(cx),
            Watch::Unix(socket) => socket.poll_read_ready(cx),
            #[cfg(test)]
            Watch::Simulated(watcher) => watcher.poll_read_ready(cx),
        }
    }

    /// Reads what there is. If that was all, the runtime wakes the task when there is more.
    fn recv(&self, link: &Link, buffer: &mut [u8]) -> io::Result<usize> {
        if link.holds_more() {
            return link.recv(buffer, Wait::Not);
        }
        let would_block = || io::Error::from(io::ErrorKind::WouldBlock);
        let mut read = Err(would_block());
        let mut recv = || {
            read = link.recv(buffer, Wait::Not);
            let is_full = matches!(read, Ok(bytes) if bytes == buffer.len());
            if is_full || link.holds_more() { Ok(()) } else { Err(would_block()) }
        };
        // What it returns says only whether there may be more.
        let _ = match &self.socket {
            Watch::Tcp(socket) => socket.try_io(Interest::READABLE, &mut recv),
            Watch::Unix(socket) => socket.try_io(Interest::READABLE, &mut recv),
            #[cfg(test)]
            Watch::Simulated(watcher) => watcher.try_io(&mut recv),
        };
        read
    }
}

/// What is known of the driver and of the runtime.
#[derive(Debug, Default)]
pub(crate) struct State {
    waker: Option<Waker>,
    /// The task exists.
    is_alive: bool,
    /// It will be polled.
    is_woken: bool,
    /// Requests wait for it to be written.
    pub(crate) is_flush_due: bool,
    /// The runtime of the driver.
    home: Option<Id>,
    /// The runtime of the task that has begun to wait last.
    runtime: Option<Handle>,
    /// Tasks of several runtimes wait, and one of the runtimes may stand still: a thread reads.
    is_mixed: bool,
    /// What tells that something can be read, and by which runtime.
    readiness: Option<(Id, Readiness)>,
    /// The runtime that was found to watch no sockets.
    blind: Option<Id>,
    /// Reads in a row of a thread that serves, each for one caller.
    served_calm: u32,
    core: Weak<Core>,
}

/// What is done for the driver once the lock is free.
#[derive(Debug, Default)]
pub(crate) struct Wakes {
    spawn: Option<Handle>,
    readiness: Option<(Id, Readiness)>,
    /// Runtimes of tasks that have waited before. The last handle of a runtime may drop its tasks.
    runtimes: Vec<Handle>,
    core: Weak<Core>,
}

impl Wakes {
    pub(super) fn run(&mut self) {
        drop((self.readiness.take(), std::mem::take(&mut self.runtimes)));
        if let Some(runtime) = self.spawn.take() {
            let driver = Driver { core: std::mem::take(&mut self.core), has_yielded: false, calm: 0 };
            #[cfg(test)]
            let Some(driver) = super::simulated::take_driver(&runtime, driver) else { return };
            runtime.spawn(driver);
        }
    }
}

impl State {
    pub(super) fn new(core: Weak<Core>) -> Self {
        Self { core, ..Self::default() }
    }

    /// The calling task begins to wait: its runtime is driven, others may not be. `tasks` wait beside it.
    pub(super) fn note_runtime(&mut self, tasks: usize, wakes: &mut super::Wakes) {
        let current = standing::runtime();
        let is_same = current.as_ref().map(Handle::id) == self.runtime.as_ref().map(Handle::id);
        if tasks == 0 {
            self.is_mixed = false;
        } else if !is_same {
            self.is_mixed = true;
        }
        if !is_same {
            wakes.rare().driver.runtimes.extend(std::mem::replace(&mut self.runtime, current));
        }
    }

    /// The runtime of the task that was noted last.
    #[inline]
    pub(crate) fn runtime(&self) -> Option<Id> {
        self.runtime.as_ref().map(Handle::id)
    }

    /// What tells a task of this runtime that something can be read, if it is there already.
    #[inline]
    fn readiness_in(&self, runtime: Option<Id>) -> Option<Readiness> {
        let (watches, readiness) = self.readiness.as_ref()?;
        (Some(*watches) == runtime).then(|| Arc::clone(readiness))
    }

    /// What tells a task that something can be read, of whichever runtime.
    #[inline]
    fn any_readiness(&self) -> Option<Readiness> {
        self.readiness.as_ref().map(|(_, readiness)| Arc::clone(readiness))
    }

    /// Whether the driver is in the runtime of all tasks that wait.
    pub(super) fn is_near(&self) -> bool {
        self.is_alive && !self.is_mixed && self.home == self.runtime.as_ref().map(Handle::id)
    }

    /// A thread that serves has read, for one caller or for several. Whether the caller reads for itself from now on: it has been one at
    /// a time for a while, and its runtime could tell it that something can be read.
    pub(super) fn is_calm(&mut self, is_for_one: bool) -> bool {
        self.served_calm = if is_for_one { self.served_calm.saturating_add(1) } else { 0 };
        let can_watch = || self.runtime().is_some_and(|runtime| !self.is_mixed && self.blind != Some(runtime));
        let is_calm = self.served_calm >= CALM_READS && can_watch();
        if is_calm {
            self.served_calm = 0;
        }
        is_calm
    }

    /// Lets the driver run. Whether it will: it is of no use in a runtime that is not that of the tasks that wait.
    pub(super) fn wake(&mut self, wakes: &mut super::Wakes) -> bool {
        if self.is_alive {
            if !self.is_near() {
                return false;
            }
            if !std::mem::replace(&mut self.is_woken, true) {
                wakes.driver = self.waker.clone();
            }
        } else if let Some(runtime) = self.runtime.as_ref().filter(|_| !self.is_mixed) {
            (self.is_woken, self.is_alive, self.home) = (true, true, Some(runtime.id()));
            let wakes = &mut wakes.rare().driver;
            (wakes.spawn, wakes.core) = (Some(runtime.clone()), self.core.clone());
        }
        self.is_alive
    }

    /// The connection is gone.
    pub(super) fn forget_link(&mut self, wakes: &mut super::Wakes) {
        self.is_flush_due = false;
        wakes.rare().driver.readiness = self.readiness.take();
    }

    /// The runtime that watches the socket.
    #[cfg(test)]
    pub(super) fn watched_in(&self) -> Option<Id> {
        self.readiness.as_ref().map(|(runtime, _)| *runtime)
    }

    pub(super) fn waker(&self) -> Option<Waker> {
        self.waker.clone()
    }
}

/// What a task has left that read for others. Dropping it may close a socket and run destructors of other tasks' wakers.
#[derive(Default)]
pub(crate) struct Spent {
    waiter: Waiter,
    readiness: Option<Readiness>,
}

impl Core {
    /// How a task of this runtime learns that something can be read; `None` outside of a runtime, and in one that watches no sockets. The
    /// lock is free while the runtime begins to watch.
    fn readiness(&self, runtime: Option<Id>) -> Option<Readiness> {
        let id = runtime?;
        let state = self.lock();
        if let Some(readiness) = state.driver.readiness_in(runtime) {
            return Some(readiness);
        }
        if state.driver.blind == Some(id) {
            return None;
        }
        let (link, epoch) = (state.link.clone()?, state.epoch);
        drop(state);
        // It panics in a runtime that was built without its I/O driver, and there is no way to ask. A thread reads for such.
        let watched = catch_unwind(AssertUnwindSafe(|| Watched::new(&link)));
        let mut state = self.lock();
        let Ok(watched) = watched else {
            state.driver.blind = Some(id);
            return None;
        };
        let readiness = Arc::new(watched.ok()?);
        let mut old = None;
        if state.epoch == epoch {
            old = state.driver.readiness.replace((id, Arc::clone(&readiness)));
        }
        let is_current = state.epoch == epoch;
        drop(state);
        drop(old);
        is_current.then_some(readiness)
    }

    /// The task at `id` reads until its reply has come, another reader leads, or the socket has nothing to read. In the last case the socket
    /// wakes the task. It has just begun to lead in `runtime`, or led already and is polled again. Returns the lock. The caller releases it
    /// before it drops `spent`.
    pub(crate) fn poll_lead<'s>(
        self: &'s Arc<Self>,
        mut state: MutexGuard<'s, super::State>,
        id: SlotId,
        (is_again, mut runtime): (bool, Option<Id>),
        spent: &mut Spent,
        cx: &mut Context<'_>,
    ) -> MutexGuard<'s, super::State> {
        let leader = Leader::Task(id);
        // What is polled again has mostly been woken by the socket. Which runtime it is in matters only if there is nothing to read.
        let mut is_noted = !is_again;
        if spent.readiness.is_none() {
            spent.readiness = if is_again { state.driver.any_readiness() } else { state.driver.readiness_in(runtime) };
        }
        let mut is_woken = is_again && spent.readiness.is_some();
        let (mut attempts, mut reads) = (0, 0);
        while state.leader == leader && !state.slots.has_ended(id) {
            if !std::mem::take(&mut is_woken) {
                let mut wakes = super::Wakes::default();
                let mut old = None;
                if !std::mem::replace(&mut is_noted, true) {
                    let others = state.slots.tasks().saturating_sub(1);
                    state.driver.note_runtime(others, &mut wakes);
                    runtime = state.driver.runtime();
                    old = std::mem::replace(&mut spent.readiness, state.driver.readiness_in(runtime));
                }
                drop(state);
                drop(old);
                wakes.run_on(self);
                if spent.readiness.is_none() {
                    spent.readiness = self.readiness(runtime);
                }
                let Some(watched) = &spent.readiness else {
                    self.serve_by_thread();
                    return self.lock();
                };
                match watched.poll_read_ready(cx) {
                    Poll::Pending => {
                        state = self.lock();
                        if state.leader == Leader::Driver {
                            // It has begun to lead since the lock was released. A socket wakes one task: the driver asks again.
                            state.drive(&mut wakes);
                            drop(state);
                            wakes.run_on(self);
                            state = self.lock();
                        }
                        return state;
                    }
                    Poll::Ready(Err(_)) => {
                        // The runtime that watched the socket is gone. This task has another.
                        let old = self.lock().driver.readiness.take();
                        drop((old, spent.readiness.take()));
                        attempts += 1;
                        if attempts > 1 {
                            self.serve_by_thread();
                            return self.lock();
                        }
                        state = self.lock();
                        continue;
                    }
                    Poll::Ready(Ok(())) => state = self.lock(),
                }
            }
            let Some(watched) = &spent.readiness else { continue };
            let Some(half) = state.read_half.take() else { return state };
            // It runs already.
            let own = state.slots.take_waiter(id);
            drop(state);
            (state, _) = half.read_by(self, leader, |link, buffer| watched.recv(link, buffer));
            spent.waiter = state.slots.wait_again(id, own);
            reads += 1;
            if reads >= READS_MAX && !state.slots.has_ended(id) {
                // More of a large reply may come as quickly as it is read. Others have their turn first.
                drop(state);
                let_others_run(cx);
                return self.lock();
            }
        }
        state
    }

    /// The runtime of the driver is gone, or the driver is.
    fn lose_driver(self: &Arc<Self>) {
        let mut guard = self.lock();
        let state = &mut *guard;
        let mut wakes = super::Wakes::default();
        let old = std::mem::replace(&mut state.driver, State::new(Arc::downgrade(self)));
        let mut tasks = Vec::new();
        if state.leader == Leader::Driver {
            state.leader = Leader::None;
            if state.slots.threads() > 0 {
                state.appoint(&mut wakes);
            } else {
                state.slots.take_tasks(&mut tasks);
            }
        }
        drop(self.write(guard));
        drop(old);
        tasks.into_iter().for_each(Waiter::wake);
        wakes.run_on(self);
    }
}

/// The task.
pub(super) struct Driver {
    core: Weak<Core>,
    /// Other tasks have had their turn since the flush was asked for.
    has_yielded: bool,
    /// Reads in a row that served one caller.
    calm: u32,
}

impl Future for Driver {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Some(core) = self.core.upgrade() else { return Poll::Ready(()) };
        let mut guard = core.lock();
        let state = &mut *guard;
        let mut old = None;
        if state.driver.waker.as_ref().is_none_or(|waker| !waker.will_wake(cx.waker())) {
            old = state.driver.waker.replace(cx.waker().clone());
        }
        state.driver.is_woken = false;
        if state.driver.is_flush_due {
            if !self.has_yielded {
                self.has_yielded = true;
                state.driver.is_woken = true;
                drop(guard);
                drop(old);
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            state.driver.is_flush_due = false;
            state.gathering.give_up();
            guard = core.write(guard);
        }
        self.has_yielded = false;
        drop(guard);
        drop(old);
        for _ in 0..READS_MAX {
            let mut guard = core.lock();
            let state = &mut *guard;
            if state.leader != Leader::Driver {
                return Poll::Pending;
            }
            let is_calm = state.slots.waiting() <= 1;
            drop(guard);
            let Some(readiness) = core.readiness(standing::runtime().as_ref().map(Handle::id)) else {
                if core.lock().link.is_some() {
                    core.serve_by_thread();
                }
                return Poll::Pending;
            };
            let Poll::Ready(ready) = readiness.poll_read_ready(cx) else {
                let mut wakes = super::Wakes::default();
                let mut guard = core.lock();
                let state = &mut *guard;
                if let Leader::Task(id) = state.leader {
                    // It has begun to lead since the lock was released. A socket wakes one task: that one asks again.
                    wakes.push(state.slots.take_waiter(id));
                }
                drop(guard);
                wakes.run_on(&core);
                return Poll::Pending;
            };
            if ready.is_err() {
                return Poll::Ready(());
            }
            let Some(half) = core.lock().read_half.take() else { return Poll::Pending };
            let (guard, once) = half.read_by(&core, Leader::Driver, |link, buffer| readiness.recv(link, buffer));
            drop(guard);
            if once == ReadOnce::Lost {
                return Poll::Pending;
            }
            self.calm = if is_calm { self.calm + 1 } else { 0 };
            if self.calm >= CALM_READS {
                self.calm = 0;
                let mut wakes = super::Wakes::default();
                let mut guard = core.lock();
                if guard.leader == Leader::Driver {
                    guard.appoint(&mut wakes);
                }
                drop(guard);
                wakes.run_on(&core);
            }
        }
        core.lock().driver.is_woken = true;
        let_others_run(cx);
        Poll::Pending
    }
}

/// The task is polled again when the others have run and the runtime has looked at its sockets. If it woke itself the runtime would look at them once in
/// 61 turns only, which are 15 MiB: small replies on one connection would wait for a large one on another.
fn let_others_run(cx: &mut Context<'_>) {
    // Its first poll leaves the waker with the runtime. Nothing waits for its end.
    let _ = std::pin::pin!(tokio::task::yield_now()).poll(cx);
}

impl Drop for Driver {
    fn drop(&mut self) {
        if let Some(core) = self.core.upgrade() {
            core.lose_driver();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn a_task_that_reads_on_lets_the_runtime_look_at_sockets() {
        // Fewer than those behind which a runtime looks in any case.
        const TURNS: usize = 40;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
        runtime.block_on(async {
            let (near, far) = UnixStream::pair().unwrap();
            let turns = Arc::new(AtomicUsize::new(0));
            let counted = Arc::clone(&turns);
            let reads = tokio::spawn(std::future::poll_fn(move |cx| {
                if counted.fetch_add(1, Ordering::Relaxed) >= TURNS {
                    return Poll::Ready(());
                }
                let_others_run(cx);
                Poll::Pending
            }));
            near.writable().await.unwrap();
            near.try_write(b"!").unwrap();
            far.readable().await.unwrap();
            let turns = turns.load(Ordering::Relaxed);
            assert!(turns < TURNS, "{turns}");
            reads.await.unwrap();
        });
    }
}
