//! A connection without a socket: what the kernel holds between the two ends.

use super::{interleave, world};
use crate::core::Wait;
use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

/// How the node has ended a connection. One end may follow another that is above it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Ending {
    /// It sends nothing more, and reads on.
    Half,
    /// It sends nothing more, and what it is sent is refused.
    Closed,
    /// It is reset.
    Reset,
}

/// What the kernel knows of a connection.
#[derive(Debug, Default)]
pub(super) struct Kernel {
    /// Taken from the client, and not by the node.
    pub(super) sent: VecDeque<u8>,
    /// How much of that there may be.
    pub(super) capacity: usize,
    /// Sent by the node, and not read.
    pub(super) arrived: VecDeque<u8>,
    pub(super) ending: Option<Ending>,
    is_shut: bool,
    resets_when_closed: bool,
    /// Counts what readers are told of.
    version: u64,
    watchers: Vec<(u64, Waker)>,
    watchers_made: u64,
}

impl Kernel {
    pub(super) fn is_readable(&self) -> bool {
        !self.arrived.is_empty() || self.ending.is_some() || self.is_shut
    }

    /// Who is told of what, for what is printed.
    pub(super) fn watched(&self) -> (u64, Vec<u64>) {
        (self.version, self.watchers.iter().map(|(number, _)| *number).collect())
    }

    fn is_writable(&self) -> bool {
        self.sent.len() < self.capacity || self.is_shut || matches!(self.ending, Some(Ending::Closed | Ending::Reset))
    }
}

/// A connection.
#[derive(Debug, Default)]
pub(super) struct Pipe(Mutex<Kernel>);

impl Pipe {
    pub(super) fn lock(&self) -> MutexGuard<'_, Kernel> {
        self.0.lock().unwrap()
    }

    /// There is something to read.
    pub(super) fn tell_readers(&self) {
        let mut kernel = self.lock();
        kernel.version += 1;
        let watchers = std::mem::take(&mut kernel.watchers);
        drop(kernel);
        watchers.into_iter().for_each(|(_, waker)| waker.wake());
    }

    /// The node ends it.
    pub(super) fn end(&self, ending: Ending) {
        let mut kernel = self.lock();
        if kernel.ending >= Some(ending) {
            return;
        }
        if ending == Ending::Reset && kernel.ending.is_none() && kernel.version.is_multiple_of(2) {
            // What has come before may be lost.
            kernel.arrived.clear();
        }
        kernel.ending = Some(ending);
        if ending != Ending::Half {
            kernel.sent.clear();
        }
        drop(kernel);
        self.tell_readers();
    }
}

/// The client's end. It is closed when the last holder lets go of it.
#[derive(Debug)]
pub(crate) struct End(pub(super) Arc<Pipe>);

impl Drop for End {
    fn drop(&mut self) {
        let mut kernel = self.0.lock();
        kernel.is_shut = true;
        if kernel.resets_when_closed {
            kernel.sent.clear();
        }
    }
}

fn refused(kind: io::ErrorKind) -> io::Result<usize> {
    Err(kind.into())
}

impl End {
    pub(crate) fn recv(&self, buffer: &mut [u8], wait: Wait) -> io::Result<usize> {
        interleave();
        if !matches!(wait, Wait::Not) {
            // The script reads in a thread when there is something to read, or time has passed. Only a handshake waits here.
            world().unwrap().answer_handshake(&self.0);
        }
        let mut kernel = self.0.lock();
        let read = if kernel.is_shut {
            Ok(0)
        } else if !kernel.arrived.is_empty() {
            let count = buffer.len().min(kernel.arrived.len());
            for (place, byte) in buffer.iter_mut().zip(kernel.arrived.drain(..count)) {
                *place = byte;
            }
            Ok(count)
        } else {
            match kernel.ending {
                None => refused(io::ErrorKind::WouldBlock),
                Some(Ending::Reset) => refused(io::ErrorKind::ConnectionReset),
                Some(Ending::Half | Ending::Closed) => Ok(0),
            }
        };
        drop(kernel);
        interleave();
        read
    }

    pub(crate) fn send<'a>(&self, slices: impl Iterator<Item = &'a [u8]>) -> io::Result<usize> {
        interleave();
        let short = world().unwrap().short_write();
        let mut kernel = self.0.lock();
        let sent = match kernel.ending {
            _ if kernel.is_shut => refused(io::ErrorKind::BrokenPipe),
            Some(Ending::Reset) => refused(io::ErrorKind::ConnectionReset),
            Some(Ending::Closed) => {
                // It is taken, and answered by a reset.
                kernel.ending = Some(Ending::Reset);
                Ok(slices.map(<[u8]>::len).sum())
            }
            None | Some(Ending::Half) => {
                let room = kernel.capacity.saturating_sub(kernel.sent.len()).min(short);
                let mut left = room;
                let mut is_any = false;
                for slice in slices {
                    let count = slice.len().min(left);
                    kernel.sent.extend(&slice[..count]);
                    left -= count;
                    is_any |= !slice.is_empty();
                }
                if room == 0 && is_any { refused(io::ErrorKind::WouldBlock) } else { Ok(room - left) }
            }
        };
        drop(kernel);
        interleave();
        sent
    }

    pub(crate) fn is_readable(&self) -> bool {
        self.0.lock().is_readable()
    }

    pub(crate) fn is_writable(&self) -> bool {
        world().unwrap().answer_handshake(&self.0);
        self.0.lock().is_writable()
    }

    pub(crate) fn has_ended(&self) -> bool {
        let kernel = self.0.lock();
        kernel.ending.is_some() || kernel.is_shut
    }

    pub(crate) fn is_spoilt(&self) -> bool {
        let kernel = self.0.lock();
        match kernel.arrived.front() {
            _ if kernel.is_shut => true,
            Some(first) => *first != b'>',
            None => kernel.ending.is_some(),
        }
    }

    pub(crate) fn reset_when_closed(&self) {
        self.0.lock().resets_when_closed = true;
    }

    /// What was sent before arrives still.
    pub(crate) fn shut(&self) {
        self.0.lock().is_shut = true;
        self.0.tell_readers();
    }
}

/// How a runtime tells of one socket, as tokio does: at edges, and to one task.
#[derive(Debug)]
pub(crate) struct Watcher {
    pipe: Arc<Pipe>,
    number: u64,
    /// What the runtime has told of last, when a read found nothing more.
    cleared: Mutex<Option<u64>>,
    /// The runtime is gone.
    is_gone: Arc<AtomicBool>,
}

impl Watcher {
    pub(crate) fn new(end: &Arc<End>) -> Self {
        let mut kernel = end.0.lock();
        kernel.watchers_made += 1;
        let number = kernel.watchers_made;
        drop(kernel);
        let is_gone = world().unwrap().runtime_in().map_or_else(Arc::default, |runtime| runtime.is_gone.clone());
        Self { pipe: Arc::clone(&end.0), number, cleared: Mutex::new(None), is_gone }
    }

    fn is_ready(&self, kernel: &Kernel) -> bool {
        if kernel.ending.is_some() || kernel.is_shut {
            // Tokio forgets no end that it was told of.
            return true;
        }
        match *self.cleared.lock().unwrap() {
            None => kernel.is_readable(),
            Some(version) => kernel.version > version,
        }
    }

    pub(crate) fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        interleave();
        if self.is_gone.load(Ordering::Relaxed) {
            return Poll::Ready(Err(io::Error::other("the runtime is gone")));
        }
        let mut kernel = self.pipe.lock();
        if self.is_ready(&kernel) {
            return Poll::Ready(Ok(()));
        }
        kernel.watchers.retain(|(number, _)| *number != self.number);
        kernel.watchers.push((self.number, cx.waker().clone()));
        Poll::Pending
    }

    pub(crate) fn try_io(&self, io: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let kernel = self.pipe.lock();
        let (version, is_ready) = (kernel.version, self.is_ready(&kernel));
        drop(kernel);
        if !is_ready {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let result = io();
        if result.is_err() {
            *self.cleared.lock().unwrap() = Some(version);
        }
        result
    }
}
