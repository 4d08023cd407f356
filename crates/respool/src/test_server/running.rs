//! A server that runs or is stopped: what its clock, its databases and its faults have in common.

use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use respool_net::{MailSender, MovableClock};
use respool_proxy::{Mail, Visit};

use super::engines::{Engine, databases_of, visit, wait_for};
use super::faults::Faults;
use crate::builder::Server;

/// How often something that is waited for is looked at.
const LOOK_EVERY: Duration = Duration::from_micros(500);

/// A server with its clock and its faults, which stay when it is stopped.
pub(super) struct Running {
    pub(super) clock: MovableClock,
    pub(super) faults: Arc<Faults>,
    server: Mutex<Option<Server>>,
}

impl std::fmt::Debug for Running {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Running").finish_non_exhaustive()
    }
}

impl Running {
    pub(super) fn new(clock: MovableClock, faults: Arc<Faults>, server: Server) -> Self {
        Self { clock, faults, server: Mutex::new(Some(server)) }
    }

    /// The server. `None`: it is stopped.
    pub(super) fn server(&self) -> MutexGuard<'_, Option<Server>> {
        self.server.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many databases it has. `None`: it is stopped.
    pub(super) fn databases(&self) -> Option<u32> {
        self.server().as_ref().map(databases_of)
    }

    pub(super) fn engines(&self) -> usize {
        self.visit(|_| ()).len()
    }

    /// Waits until something holds. Whether it did `within` that time.
    pub(super) fn wait_for(within: Duration, holds: impl Fn() -> bool) -> bool {
        let until = Instant::now() + within;
        loop {
            if holds() {
                return true;
            }
            if Instant::now() >= until {
                return false;
            }
            thread::sleep(LOOK_EVERY);
        }
    }

    /// Requests that hang are asked about again.
    pub(super) fn let_go_on(&self) {
        let server = self.server();
        let instances = server.iter().flat_map(|server| &server.instances);
        instances.flat_map(|instance| &instance.workers).for_each(|worker| {
            // A worker that has ended lets nothing go on.
            worker.post(Mail::Orders);
        });
    }

    /// What its engines show.
    ///
    /// # Panics
    /// The server is stopped.
    pub(super) fn visit<T: Send + 'static>(
        &self,
        look: impl Fn(&mut Engine<'_>) -> T + Clone + Send + 'static,
    ) -> Vec<T> {
        visit(self.server().as_ref().expect("the test server is stopped"), look)
    }

    /// Waits until all that is over by the server's clock has ended.
    ///
    /// An engine in a thread of its own is visited twice: what it has to tell because of the first visit is on its way before the
    /// second. Then workers are, which have read that by the time at which they receive their visit.
    pub(super) fn settle(&self) {
        let server = self.server();
        let Some(server) = server.as_ref() else { return };
        let nothing = |_: &mut Engine<'_>| ();
        visit(server, nothing);
        if has_engine_threads(server) {
            visit(server, nothing);
            visit_workers(server);
        }
    }

    /// Waits until engines in threads of their own have received what workers have read so far.
    pub(super) fn settle_requests(&self) {
        let server = self.server();
        if let Some(server) = server.as_ref().filter(|server| has_engine_threads(server)) {
            visit_workers(server);
            visit(server, |_| ());
        }
    }
}

/// Closes all connections of clients; how many there were.
pub(super) fn close_clients(server: &Server) -> usize {
    let closed = |workers: &[MailSender<Mail>]| {
        wait_for(workers.iter().map(|worker| {
            let (tell, told) = channel();
            worker.post(Visit::closing_clients(move |count| _ = tell.send(count)).into());
            told
        }))
    };
    server.instances.iter().flat_map(|instance| closed(&instance.workers)).sum()
}

fn has_engine_threads(server: &Server) -> bool {
    server.instances.iter().any(|instance| !instance.engines.is_empty())
}

/// Waits until each worker that serves clients has ended its turn and begun another.
fn visit_workers(server: &Server) {
    let workers = server.instances.iter().flat_map(|instance| &instance.workers);
    wait_for(workers.map(|worker| {
        let (tell, told) = channel();
        worker.post(Visit::new(move |_| _ = tell.send(())).into());
        told
    }));
}
