//! The driver: a task of the callers' runtime that reads and writes while several tasks wait.
//!
//! It exists because a task that waits need not be polled: it may be one of several in another future, which looks at it later. So
//! one task may read for itself, but several are never left to one of them. The driver also gathers: it is woken by the first
//! request of a batch, lets every task run that can, and writes what they have queued together. It sleeps again when there has
//! been one caller at a time for a while.

use super::link::Socket;
use super::read::ReadOnce;
use super::slots::Waiter;
use super::{Core, Leader, Link, SlotId, Wait};
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};
use tokio::io::Interest;
use tokio::net::{TcpStream, UnixStream};
use tokio::runtime::Handle;

/// Reads in a row that served one caller, after which the caller reads for itself.
const CALM_READS: u32 = 8;

/// Reads in one turn, after which other tasks run.
const READS_MAX: usize = 4;

/// Whether something can be read, as a runtime tells a task. A copy of the socket, which nothing is read from.
#[derive(Debug)]
pub(crate) enum Watched {
    Tcp(TcpStream),
    Unix(UnixStream),
}

pub(crate) type Readiness = Arc<Watched>;

impl Watched {
    /// Lets the runtime of this task watch the socket.
    fn new(link: &Link) -> io::Result<Self> {
        Ok(match link.copy_for_tasks()? {
            Socket::Tcp(socket) => Self::Tcp(TcpStream::from_std(socket)?),
            Socket::Unix(socket) => Self::Unix(UnixStream::from_std(socket)?),
        })
    }

    fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Tcp(socket) => socket.poll_read_ready(cx),
            Self::Unix(socket) => socket.poll_read_ready(cx),
        }
    }

    /// Reads what there is. If that was all, the runtime wakes the task when there is more.
    fn recv(&self, link: &Link, buffer: &mut [u8]) -> io::Result<usize> {
        let would_block = || io::Error::from(io::ErrorKind::WouldBlock);
        let mut read = Err(would_block());
        let mut recv = || {
            read = link.recv(buffer, Wait::Not);
            if matches!(read, Ok(bytes) if bytes == buffer.len()) { Ok(()) } else { Err(would_block()) }
        };
        // What it returns says only whether there may be more.
        let _ = match self {
            Self::Tcp(socket) => socket.try_io(Interest::READABLE, &mut recv),
            Self::Unix(socket) => socket.try_io(Interest::READABLE, &mut recv),
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
    /// The runtime of the task that was last polled.
    runtime: Option<Handle>,
    readiness: Option<Readiness>,
    core: Weak<Core>,
}

/// What is done for the driver once the lock is free.
#[derive(Debug, Default)]
pub(crate) struct Wakes {
    waker: Option<Waker>,
    spawn: Option<Handle>,
    readiness: Option<Readiness>,
    core: Weak<Core>,
}

impl Wakes {
    pub(super) fn run(&mut self) {
        drop(self.readiness.take());
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
        if let Some(runtime) = self.spawn.take() {
            runtime.spawn(Driver { core: std::mem::take(&mut self.core), has_yielded: false, calm: 0 });
        }
    }
}

impl State {
    pub(super) fn new(core: Weak<Core>) -> Self {
        Self { core, ..Self::default() }
    }

    /// A task is polled: its runtime may run the driver.
    pub(crate) fn note_runtime(&mut self) {
        if self.runtime.is_none() {
            self.runtime = Handle::try_current().ok();
        }
    }

    /// How the calling task learns that something can be read; `None` outside of a runtime.
    pub(super) fn readiness(&mut self, link: Option<&Arc<Link>>) -> Option<Readiness> {
        if self.readiness.is_none() && Handle::try_current().is_ok() {
            self.readiness = Watched::new(link?).ok().map(Arc::new);
        }
        self.readiness.clone()
    }

    /// Lets the driver run. Whether there is a runtime for it.
    pub(super) fn wake(&mut self, wakes: &mut super::Wakes) -> bool {
        if self.is_woken {
            return true;
        }
        if self.is_alive {
            self.is_woken = true;
            wakes.driver.waker = self.waker.clone();
        } else if let Some(runtime) = &self.runtime {
            (self.is_woken, self.is_alive) = (true, true);
            wakes.driver.spawn = Some(runtime.clone());
            wakes.driver.core = self.core.clone();
        }
        self.is_alive
    }

    /// The connection is gone.
    pub(super) fn forget_link(&mut self, wakes: &mut super::Wakes) {
        self.is_flush_due = false;
        wakes.driver.readiness = self.readiness.take();
    }

    pub(super) fn waker(&self) -> Option<Waker> {
        self.waker.clone()
    }
}

impl Core {
    /// The task at `id` leads: reads until it has its reply, another leads, or there is nothing to read. Then it is woken when there is.
    pub(crate) fn poll_lead(self: &Arc<Self>, id: SlotId, cx: &mut Context<'_>) {
        let leader = Leader::Task(id);
        let mut attempts = 0;
        loop {
            let mut guard = self.lock();
            let state = &mut *guard;
            if state.leader != leader || state.slots.has_ended(id) {
                return;
            }
            let Some(readiness) = state.driver.readiness(state.link.as_ref()) else {
                drop(guard);
                return self.serve_by_thread();
            };
            drop(guard);
            match readiness.poll_read_ready(cx) {
                Poll::Pending => return,
                Poll::Ready(Err(_)) => {
                    // The runtime that watched the socket is gone. This task has another.
                    let old = self.lock().driver.readiness.take();
                    drop(old);
                    attempts += 1;
                    if attempts > 1 {
                        return self.serve_by_thread();
                    }
                }
                Poll::Ready(Ok(())) => {
                    let mut guard = self.lock();
                    let state = &mut *guard;
                    let Some(half) = state.read_half.take() else { return };
                    // It runs already.
                    let own = state.slots.take_waiter(id);
                    drop(guard);
                    half.read_by(self, leader, |link, buffer| readiness.recv(link, buffer));
                    let old = match own {
                        Waiter::Task(waker) => self.lock().slots.wait_as_task(id, &waker),
                        _ => Waiter::None,
                    };
                    drop(old);
                }
            }
        }
    }

    /// The runtime of the driver is gone, or the driver is.
    fn lose_driver(self: &Arc<Self>) {
        let mut guard = self.lock();
        let state = &mut *guard;
        let mut wakes = super::Wakes::default();
        let (waker, readiness) = (state.driver.waker.take(), state.driver.readiness.take());
        state.driver = State::new(Arc::downgrade(self));
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
        drop((waker, readiness));
        tasks.into_iter().for_each(Waiter::wake);
        wakes.run_on(self);
    }
}

/// The task.
struct Driver {
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
            state.expected = 0;
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
            let Some(readiness) = state.driver.readiness(state.link.as_ref()) else { return Poll::Pending };
            let is_calm = state.slots.waiting() <= 1;
            drop(guard);
            let Poll::Ready(ready) = readiness.poll_read_ready(cx) else { return Poll::Pending };
            if ready.is_err() {
                return Poll::Ready(());
            }
            let Some(half) = core.lock().read_half.take() else { return Poll::Pending };
            let once = half.read_by(&core, Leader::Driver, |link, buffer| readiness.recv(link, buffer));
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
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        if let Some(core) = self.core.upgrade() {
            core.lose_driver();
        }
    }
}
