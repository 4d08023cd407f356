//! Room for files: every client and every connection to a node is one.

use rustix::process::{Resource, getrlimit, setrlimit};

/// Files beside clients that room is made for at once: connections to nodes, listeners, logs.
const OTHER_FILES: u64 = 1024;

/// The most files that room is made for before they are there: each takes the kernel eight bytes.
const FILES_MAX: u64 = 1 << 20;

/// Allows as many files as the system does, and has the kernel make room for as many as there may be clients.
pub(super) fn make_room(clients_max: usize) {
    let mut limit = getrlimit(Resource::Nofile);
    // The one that a shell sets is often far below what the system allows.
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::warn!(%error, "the limit on open files cannot be raised");
    }
    let allowed = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let expected = (clients_max as u64).saturating_add(OTHER_FILES).min(FILES_MAX);
    // The kernel's table of a process's files is doubled whenever it is full, and until that is done no thread can open or
    // accept anything: as soon as there are several threads that takes ten milliseconds and more each time. It never gets
    // smaller: a file at its end that is closed at once makes it as large as it has to be.
    let last = expected.min(allowed).saturating_sub(1);
    if let Err(error) = rustix::io::fcntl_dupfd_cloexec(std::io::stdin(), last as i32) {
        tracing::debug!(%error, "no room could be made for the files of all clients");
    }
}
