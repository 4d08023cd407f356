//! Faults: requests that fail, hang or lose their connection because the test says so.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use respool_connection::Peer;
use respool_proxy::hooks::Verdict;
use respool_wire::Args;

/// What is to go wrong, and for which requests. Without more words it meets every request, the first ones of a client among them
/// (`HELLO`, `AUTH`, `CLIENT SETINFO`).
#[derive(Clone, Debug)]
pub struct Fault {
    effect: Effect,
    command: Option<String>,
    argument: Option<Vec<u8>>,
    skipped: u64,
    left: u64,
}

#[derive(Clone, Debug)]
enum Effect {
    Error(String),
    Hang,
    Close,
}

impl Fault {
    /// The request is not executed, and answered with this error, its code first: `LOADING Redis is loading the dataset in memory`.
    /// Within `MULTI` it spoils the transaction.
    #[must_use]
    pub fn error(text: &str) -> Self {
        Self::of(Effect::Error(text.to_owned()))
    }

    /// The request is not executed or answered, and nothing else that its client sends, until the fault is lifted: then it is.
    #[must_use]
    pub fn hang() -> Self {
        Self::of(Effect::Hang)
    }

    /// The request is not executed, and its client's connection is closed.
    #[must_use]
    pub fn close() -> Self {
        Self::of(Effect::Close)
    }

    fn of(effect: Effect) -> Self {
        Self { effect, command: None, argument: None, skipped: 0, left: u64::MAX }
    }

    /// It is for this command alone. Of commands with subcommands, for all of these.
    #[must_use]
    pub fn on(mut self, command: &str) -> Self {
        self.command = Some(command.to_owned());
        self
    }

    /// It is for requests alone that have this word among their arguments, as a key or a subcommand.
    #[must_use]
    pub fn with_argument(mut self, argument: impl AsRef<[u8]>) -> Self {
        self.argument = Some(argument.as_ref().to_vec());
        self
    }

    /// It lets the first `requests` pass that it is for.
    #[must_use]
    pub fn after(mut self, requests: u64) -> Self {
        self.skipped = requests;
        self
    }

    /// It meets so many requests and no more.
    #[must_use]
    pub fn times(mut self, requests: u64) -> Self {
        self.left = requests;
        self
    }

    fn is_for(&self, args: Args<'_>) -> bool {
        self.command.as_ref().is_none_or(|command| command.as_bytes().eq_ignore_ascii_case(args.name()))
            && self.argument.as_ref().is_none_or(|argument| args.iter().skip(1).any(|arg| arg == argument))
    }
}

#[derive(Debug, Default)]
pub(super) struct Faults(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// Those in force with their numbers, in the order in which they were injected.
    faults: Vec<(usize, Fault)>,
    /// How many requests each has met, by its number.
    met: Vec<u64>,
    /// Clients whose next request hangs, by address and descriptor, and because of which fault; `None`: that was lifted, and the request is
    /// asked about once more.
    hanging: HashMap<(String, i32), Option<usize>>,
    refuses_connections: bool,
    closes_all: bool,
}

/// While it is there every request loses its connection. Behind it no client is left that was there before.
pub(super) struct ClosingAll<'a>(&'a Faults);

impl Drop for ClosingAll<'_> {
    fn drop(&mut self) {
        let mut known = self.0.known();
        known.closes_all = false;
        known.hanging.clear();
    }
}

impl Faults {
    /// How many requests a fault has met.
    pub(super) fn met(&self, number: usize) -> u64 {
        self.known().met.get(number).copied().unwrap_or(0)
    }

    pub(super) fn add(&self, fault: Fault) -> usize {
        let mut known = self.known();
        let number = known.met.len();
        known.met.push(0);
        known.faults.push((number, fault));
        number
    }

    pub(super) fn lift(&self, number: usize) {
        let mut known = self.known();
        known.faults.retain(|(other, _)| *other != number);
        known.hanging.values_mut().filter(|by| **by == Some(number)).for_each(|by| *by = None);
    }

    pub(super) fn lift_all(&self) {
        let mut known = self.known();
        known.faults.clear();
        known.hanging.values_mut().for_each(|by| *by = None);
        known.refuses_connections = false;
    }

    pub(super) fn refuse_connections(&self, is_refusing: bool) {
        self.known().refuses_connections = is_refusing;
    }

    /// Every request loses its connection, as long as this is held.
    pub(super) fn closing_all(&self) -> ClosingAll<'_> {
        self.known().closes_all = true;
        ClosingAll(self)
    }

    /// A client has connected; whether it is turned away. What an earlier one of its address and descriptor has left is not its own: over
    /// a unix socket all have the same address.
    pub(super) fn refuses(&self, peer: &Peer) -> bool {
        let mut known = self.known();
        if !known.hanging.is_empty() {
            known.hanging.remove(&(peer.address.clone(), peer.fd));
        }
        known.refuses_connections
    }

    /// What becomes of a request, and whether it has not been asked about before.
    pub(super) fn judge(&self, peer: &Peer, args: Args<'_>) -> (Verdict, bool) {
        let mut known = self.known();
        let Known { faults, met, hanging, closes_all, .. } = &mut *known;
        if *closes_all {
            return (Verdict::Close, false);
        }
        let client = || (peer.address.clone(), peer.fd);
        match if hanging.is_empty() { None } else { hanging.remove(&client()) } {
            Some(Some(number)) => {
                hanging.insert(client(), Some(number));
                return (Verdict::Hold, false);
            }
            Some(None) => return (Verdict::Pass, false),
            None => {}
        }
        for (number, fault) in faults.iter_mut().filter(|(_, fault)| fault.left > 0 && fault.is_for(args)) {
            if fault.skipped > 0 {
                fault.skipped -= 1;
                continue;
            }
            fault.left -= 1;
            met[*number] += 1;
            let verdict = match &fault.effect {
                Effect::Error(text) => Verdict::Refuse(text.clone()),
                Effect::Close => Verdict::Close,
                Effect::Hang => {
                    hanging.insert(client(), Some(*number));
                    Verdict::Hold
                }
            };
            return (verdict, true);
        }
        (Verdict::Pass, true)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
