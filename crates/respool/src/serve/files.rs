//! The shares of the limit on open files: clients, connections to nodes, and the process itself.
//!
//! ```text
//!   limit (ulimit -n) = open already + listeners + each worker's own + admin side + spare   (fixed)
//!                     + connections to nodes that clients never take                        (kept for nodes)
//!                     + clients, at most max_clients                                        (the rest)
//! ```
//!
//! If the rest is less than `max_clients`, the limit on clients is lowered, and the log names it. Connections to nodes may
//! use descriptors that clients leave free: `respool_net::Sockets` counts both while the process runs.

use std::sync::Arc;

use respool_net::Sockets;
use rustix::process::{Resource, getrlimit, setrlimit};

use super::handover::Inherited;
use crate::control::Control;
use crate::failure::Failure;
use crate::settings::{Address, Instance, NodeAddress, Process};

/// Files of one worker's loop: two epoll sets, an eventfd, a timer, two netlink sockets, and a client that is being
/// refused.
const OF_WORKER: usize = 7;

/// Files of the HTTP side: its listener and a duplicate, the epoll set of its runtime, and a few scrapers.
const OF_METRICS: usize = 8;

/// Files of the takeover socket: the socket and a duplicate, the pair that ends the wait for successors, and connections of
/// successors.
const OF_TAKEOVER: usize = 8;

/// Files that are open temporarily: reloaded settings and certificates, logs, name resolution, signals.
const SPARE: usize = 8;

/// Connections of one worker to one node that are reserved: shared ones of both protocols, one for messages or scripts, and
/// one private.
const OF_NODE: usize = 4;

/// A process with room for fewer clients does not start.
const CLIENTS_MIN: usize = 1;

/// The most files that room is made for before they are there: each takes the kernel eight bytes.
const FILES_MAX: usize = 1 << 20;

/// The open files of a serving process.
#[derive(Debug)]
pub(super) struct Files {
    /// Counts the sockets of clients and nodes.
    pub(super) sockets: Arc<Sockets>,
    workers: usize,
    /// Files that are neither of clients nor of connections to nodes.
    fixed: usize,
}

/// The shares of the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shares {
    limit: usize,
    fixed: usize,
    kept_for_nodes: usize,
    clients_wanted: usize,
}

impl Shares {
    /// The limit that suffices for `max_clients`.
    fn wanted(self) -> usize {
        self.kept().saturating_add(self.clients_wanted)
    }

    /// The limit that is needed to serve at all.
    fn needed(self) -> usize {
        self.kept().saturating_add(CLIENTS_MIN)
    }

    fn kept(self) -> usize {
        self.fixed.saturating_add(self.kept_for_nodes)
    }

    fn clients_max(self) -> usize {
        self.clients_wanted.min(self.limit.saturating_sub(self.kept()).max(CLIENTS_MIN))
    }
}

impl Files {
    /// Raises the soft limit to the hard one, computes the shares, and has the kernel allocate its table of descriptors.
    ///
    /// # Errors
    /// The limit is too low to serve a single client.
    pub(super) fn share_out(process: &Process, workers: usize, inherited: &Inherited) -> Result<Self, Failure> {
        let fixed = opened().saturating_add(fixed(process, workers, inherited.len()));
        let files = Self { sockets: Arc::default(), workers, fixed };
        let shares = files.shares(process);
        if shares.limit < shares.needed() {
            let Shares { limit, fixed, kept_for_nodes, .. } = shares;
            let message = format!(
                "the process may have {limit} files open and needs at least {}: {fixed} for itself, {kept_for_nodes} for \
                 connections of {workers} workers to nodes, and {CLIENTS_MIN} for a client",
                shares.needed()
            );
            return Err(
                Failure::running(message).hint("raise the limit on open files (ulimit -n), or have fewer workers")
            );
        }
        files.tell(process, shares);
        make_room(shares.wanted().min(shares.limit));
        Ok(files)
    }

    /// Computes the shares anew at each reload. It must be registered before the instances that use them.
    pub(super) fn follow(self: &Arc<Self>, control: &Arc<Control>) {
        let (files, weak) = (Arc::clone(self), Arc::downgrade(control));
        let seen = std::sync::Mutex::new(control.adoptions());
        control.on_change(Box::new(move || {
            let Some(control) = weak.upgrade() else { return };
            let mut seen = seen.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let adoptions = control.adoptions();
            if std::mem::replace(&mut *seen, adoptions) != adoptions {
                let process = control.settings();
                files.tell(&process, files.shares(&process));
            }
        }));
    }

    /// The limit on connected clients.
    pub(super) fn clients_max(&self, process: &Process) -> usize {
        self.shares(process).clients_max()
    }

    fn shares(&self, process: &Process) -> Shares {
        let of_instance = |instance: &Instance| {
            let of_worker: usize = instance.nodes().map(|node| OF_NODE * ends_of(&node.address)).sum();
            of_worker.saturating_mul(self.workers)
        };
        Shares {
            limit: limit(),
            fixed: self.fixed,
            kept_for_nodes: process.instances.iter().map(of_instance).sum(),
            clients_wanted: process.clients_max,
        }
    }

    fn tell(&self, process: &Process, shares: Shares) {
        let Shares { limit, kept_for_nodes, clients_wanted, .. } = shares;
        self.sockets.set(limit.saturating_sub(self.fixed), kept_for_nodes);
        let clients_max = shares.clients_max();
        if limit < shares.needed() {
            tracing::error!(
                limit,
                needed = shares.needed(),
                "too few files may be open for these settings: connections to nodes will fail"
            );
        }
        if clients_max < clients_wanted {
            tracing::warn!(
                limit,
                kept = shares.kept(),
                "max_clients is lowered from {} to {clients_max}, because the process may have no more files open; {} would do \
                 for all (ulimit -n)",
                process.clients_max,
                shares.wanted(),
            );
        }
    }
}

/// Sockets of this process per connection to a node.
fn ends_of(address: &NodeAddress) -> usize {
    if *address == NodeAddress::Embedded { 2 } else { 1 }
}

/// Files opened later that are neither of clients nor of connections to nodes. Inherited sockets are open already.
fn fixed(process: &Process, workers: usize, inherited: usize) -> usize {
    let is_offering = process.takeover_socket.is_some();
    let of_instance = |instance: &Instance| {
        let engines = instance.nodes().filter(|node| node.address == NodeAddress::Embedded).count();
        let workers = if instance.is_embedded() { 1 } else { workers };
        let listeners: usize = instance.net.listen.iter().map(|spec| listeners_of(&spec.address, workers)).sum();
        // A process that offers its listeners holds a duplicate of each.
        (workers + engines) * OF_WORKER + listeners * if is_offering { 2 } else { 1 }
    };
    let of_instances: usize = process.instances.iter().map(of_instance).sum();
    let of_metrics = if process.admin.listen.is_some() { OF_METRICS } else { 0 };
    let of_takeover = if is_offering { OF_TAKEOVER } else { 0 };
    of_instances.saturating_sub(inherited) + of_metrics + of_takeover + SPARE
}

fn listeners_of(address: &Address, workers: usize) -> usize {
    match address {
        Address::Unix { .. } => 1,
        Address::Any { .. } => 2 * workers,
        Address::Tcp { .. } => workers,
    }
}

/// Raises the soft limit on open files to the hard one and returns it. The soft limit of a shell is often far below.
fn limit() -> usize {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        limit.current = limit.maximum;
        if let Err(error) = setrlimit(Resource::Nofile, limit) {
            tracing::warn!(%error, "the limit on open files cannot be raised");
        }
    }
    let allowed = getrlimit(Resource::Nofile).current;
    allowed.and_then(|allowed| usize::try_from(allowed).ok()).unwrap_or(usize::MAX)
}

/// The number of open files; if the system does not give it, that of a program at its start.
fn opened() -> usize {
    const AT_START: usize = 8;
    // One of them is the folder itself, which is closed afterwards.
    std::fs::read_dir("/proc/self/fd").map_or(AT_START, |files| files.count().saturating_sub(1))
}

/// Has the kernel allocate its table of descriptors for so many files.
fn make_room(files: usize) {
    // The kernel's table of a process's files is doubled whenever it is full, and until that is done no thread can open or
    // accept anything: as soon as there are several threads that takes ten milliseconds and more each time. It never gets
    // smaller: a file at its end that is closed at once makes it as large as it has to be.
    let last = files.min(FILES_MAX).saturating_sub(1);
    if let Err(error) = rustix::io::fcntl_dupfd_cloexec(std::io::stdin(), last as i32) {
        tracing::debug!(%error, "no room could be made for the files of all clients");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(limit: usize) -> Shares {
        Shares { limit, fixed: 30, kept_for_nodes: 8, clients_wanted: 100 }
    }

    #[test]
    fn clients_get_what_nodes_and_the_process_leave() {
        assert_eq!(shares(64).clients_max(), 26);
        assert_eq!(shares(138).clients_max(), 100);
        assert_eq!(shares(usize::MAX).clients_max(), 100);
        assert_eq!((shares(64).wanted(), shares(64).needed()), (138, 39));
        assert_eq!(shares(10).clients_max(), CLIENTS_MIN);
    }
}
