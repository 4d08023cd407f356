//! A server that runs or is stopped: what its clock, its databases and its faults have in common.

use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use respool_net::{MovableClock, Postbox};
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

    /// The mailboxes of the workers that serve clients, of each pool.
    ///
    /// # Panics
    /// The server is stopped.
    pub(super) fn workers(&self) -> Vec<Vec<Postbox<Mail>>> {
        let server = self.server();
        let server = server.as_ref().expect("the test server is stopped");
        server.instances.iter().map(|instance| instance.workers.clone()).collect()
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
    /// second. Then workers are, who have read that by the time at which they receive their visit.
    pub(super) fn settle(&self) {
        let server = self.server();
        let Some(server) = server.as_ref() else { return };
        let nothing = |_: &mut Engine<'_>| ();
        visit(server, nothing);
        if server.instances.iter().any(|instance| !instance.engines.is_empty()) {
            visit(server, nothing);
            let workers = server.instances.iter().flat_map(|instance| &instance.workers);
            wait_for(workers.map(|worker| {
                let (tell, told) = channel();
                worker.post(Visit::new(move |_| _ = tell.send(())).into());
                told
            }));
        }
    }
}
