//! Debuggers of scripts of the engine in this process: which clients have one, and in which engine their scripts run.

use crate::ids::{Asker, ClientHandle, ClientNumber};
use respool_command::Row;

/// The debuggers of one worker whose scripts are under way.
#[derive(Debug)]
pub(crate) struct Debuggers<E> {
    pub(crate) all: Vec<Debugging<E>>,
    /// Clients that were held back may go on.
    pub(crate) has_released: bool,
    /// From when on keys may be copied again, in microseconds of the monotonic clock.
    pub(crate) copies_from_us: u64,
}

/// A script with a debugger.
#[derive(Debug)]
pub(crate) struct Debugging<E> {
    pub(crate) client: ClientHandle,
    /// The client, as the engine knows it.
    pub(crate) id: ClientNumber,
    pub(crate) row: &'static Row,
    pub(crate) database: u32,
    /// The engine with the copies of all keys; `None`: it runs where everybody's keys are.
    pub(crate) own: Option<Box<E>>,
    /// The script runs, and its client waits for it to stop.
    pub(crate) asker: Option<Asker>,
    /// When its client has last said something.
    pub(crate) runs_since_us: u64,
}

impl<E> Default for Debuggers<E> {
    fn default() -> Self {
        Self { all: Vec::new(), has_released: false, copies_from_us: 0 }
    }
}

impl<E> Debuggers<E> {
    /// Whether all other clients have to wait.
    pub(crate) fn holds_others(&self) -> bool {
        self.all.iter().any(|one| one.own.is_none())
    }

    /// How many have copies of all keys.
    pub(crate) fn copies(&self) -> usize {
        self.all.iter().filter(|one| one.own.is_some()).count()
    }

    /// Whether a client has one.
    pub(crate) fn has(&self, client: ClientHandle) -> bool {
        self.all.iter().any(|one| one.client == client)
    }

    /// The script of a client.
    pub(crate) fn take(&mut self, client: ClientHandle) -> Option<Debugging<E>> {
        let place = self.all.iter().position(|one| one.client == client)?;
        Some(self.all.swap_remove(place))
    }
}
