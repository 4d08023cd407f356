//! What a connection asks of the process that it runs in: threads, and places where these stand still. What a thread does comes in
//! steps, between which no lock is held. In tests a script may take the place of the process (`simulated`).

use super::read::Server;
use super::write::Tail;
use super::{Core, dial};
use std::io;
use std::sync::Weak;
use std::time::Duration;

#[cfg(not(test))]
pub(crate) use std::thread::Thread as Parked;

#[cfg(test)]
pub(crate) use super::simulated::Parked;

/// What a thread of the library does.
#[derive(Debug)]
pub(super) enum Job {
    /// Connects.
    Dial(Weak<Core>),
    /// Reads for tasks that no runtime wakes.
    Serve(Server),
    /// Writes what the kernel has not taken at once.
    Write(Tail),
}

/// What follows a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The next one.
    Next,
    /// The next one, not before so long a pause.
    Pause(Duration),
    /// Nothing.
    Over,
}

impl Job {
    fn name(&self) -> &'static str {
        match self {
            Self::Dial(_) => "respool-dial",
            Self::Serve(_) => "respool-read",
            Self::Write(_) => "respool-write",
        }
    }

    /// One step. It waits for the kernel at most once.
    pub(super) fn step(&mut self) -> Step {
        match self {
            Self::Dial(core) => dial::step(core),
            Self::Serve(server) => server.step(),
            Self::Write(tail) => tail.step(),
        }
    }

    fn run(mut self) {
        loop {
            match self.step() {
                Step::Next => {}
                Step::Pause(pause) => std::thread::sleep(pause),
                Step::Over => return,
            }
        }
    }
}

/// Begins a thread.
pub(super) fn spawn(job: Job) -> io::Result<()> {
    #[cfg(test)]
    let Some(job) = super::simulated::take_job(job)? else { return Ok(()) };
    std::thread::Builder::new().name(job.name().to_owned()).spawn(move || job.run()).map(drop)
}

/// The thread that calls, to be woken from where it is parked.
pub(crate) fn current() -> Parked {
    #[cfg(test)]
    return Parked::current();
    #[cfg(not(test))]
    std::thread::current()
}

/// Other threads that can run do so first.
pub(super) fn yield_now() {
    #[cfg(test)]
    super::simulated::interleave();
    std::thread::yield_now();
}

/// A number that differs from process to process and from call to call.
pub(crate) fn chance() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    #[cfg(test)]
    if let Some(chance) = super::simulated::chance() {
        return chance;
    }
    std::collections::hash_map::RandomState::new().build_hasher().finish()
}
