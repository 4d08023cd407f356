//! Orders that hold until they are taken back: paused and drained nodes, and the pause of all clients.
//!
//! They are written down once for all workers, by the names of nodes, so that they outlive what a worker knows of a node: a
//! reload that gives the node another address, and the process, if another one takes over its clients. A worker that is told
//! of a change makes its own nodes what is written here.

use crate::ids::ClientNumber;
use crate::workers::shared::Shared;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{MutexGuard, PoisonError};

/// The orders in force.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OperatorState {
    /// All requests are held back, whatever nodes there are.
    pub(crate) is_all_paused: bool,
    /// Nodes whose requests are held back.
    pub(crate) paused: BTreeSet<String>,
    /// Nodes that are sent nothing.
    pub(crate) drained: BTreeSet<String>,
    /// The suspension of clients. It is not handed over to another process, which has none of these clients.
    pub(crate) suspended: Option<Suspension>,
    /// The pause of all clients.
    pub(crate) client_pause: Option<KeptClientPause>,
}

/// A suspension of clients (`PROXY SUSPEND`). It is an order in force, since messages of two workers arrive in any order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Suspension {
    /// Clients that connected until then are not read.
    pub(crate) since_us: u64,
    /// The client that gave the order: it is read.
    pub(crate) by: Option<ClientNumber>,
}

/// A pause of all clients (`CLIENT PAUSE`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeptClientPause {
    /// When it ends, on the clock of this process.
    pub(crate) until_us: u64,
    /// Whether reads wait, too.
    pub(crate) is_for_all: bool,
}

impl OperatorState {
    /// Requests to these nodes are held back; without names all are.
    pub(crate) fn pause(&mut self, names: &[String]) {
        self.is_all_paused |= names.is_empty();
        self.paused.extend(names.iter().cloned());
    }

    /// Nothing holds any more for these nodes of `all`; without names for none. Where all were paused, the others stay so.
    pub(crate) fn resume(&mut self, names: &[String], all: impl Iterator<Item = String>) {
        self.suspended = None;
        if names.is_empty() {
            (self.paused, self.drained) = Default::default();
            self.is_all_paused = false;
            return;
        }
        if std::mem::take(&mut self.is_all_paused) {
            self.paused.extend(all);
        }
        self.paused.retain(|name| !names.contains(name));
        self.drained.retain(|name| !names.contains(name));
    }

    /// Orders for nodes that are not configured any more are forgotten.
    pub(crate) fn keep(&mut self, is_known: impl Fn(&String) -> bool) {
        self.paused.retain(&is_known);
        self.drained.retain(&is_known);
    }

    /// As another process reads it, a line for each order; empty if there is none.
    fn text(&self, now_us: u64) -> String {
        let mut text = String::new();
        if self.is_all_paused {
            text.push_str("pause\n");
        }
        self.paused.iter().for_each(|name| _ = writeln!(text, "pause {name}"));
        self.drained.iter().for_each(|name| _ = writeln!(text, "drain {name}"));
        if let Some(hold) = self.client_pause.filter(|hold| hold.until_us > now_us) {
            let what = if hold.is_for_all { "all" } else { "writes" };
            let _ = writeln!(text, "hold {what} {}", hold.until_us - now_us);
        }
        text
    }

    /// What [`Self::text`] says, now. `None`: it is nothing of the kind.
    fn read(text: &str, now_us: u64) -> Option<Self> {
        let mut standing = Self::default();
        for line in text.lines() {
            match line.split_once(' ').unwrap_or((line, "")) {
                ("pause", "") => standing.is_all_paused = true,
                ("pause", name) => _ = standing.paused.insert(name.to_owned()),
                ("drain", name) if !name.is_empty() => _ = standing.drained.insert(name.to_owned()),
                ("hold", rest) => {
                    let (what, left_us) = rest.split_once(' ')?;
                    let is_for_all = match what {
                        "all" => true,
                        "writes" => false,
                        _ => return None,
                    };
                    let until_us = now_us.saturating_add(left_us.parse().ok()?);
                    standing.client_pause = Some(KeptClientPause { until_us, is_for_all });
                }
                _ => return None,
            }
        }
        Some(standing)
    }
}

impl Shared {
    /// Changes the orders in force. `false`: another process takes over, or has done so, and would not hear of it.
    pub(crate) fn change_orders(&self, change: impl FnOnce(&mut OperatorState)) -> bool {
        let mut standing = self.standing();
        // Asked while the orders are locked: what is handed over afterwards has this change, or it is refused.
        if self.ledger.has_successor() {
            return false;
        }
        change(&mut standing);
        true
    }

    pub(crate) fn standing(&self) -> MutexGuard<'_, OperatorState> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The orders in force at this time of the process's clock, for a process that goes on with them; empty if there are none.
    pub fn standing_orders(&self, now_us: u64) -> String {
        self.standing().text(now_us)
    }

    /// Goes on with what [`Shared::standing_orders`] of another process says; it is now this time of this process's clock.
    /// Workers have to be told.
    ///
    /// # Errors
    /// It is nothing of the kind; then nothing is changed.
    pub fn go_on_with_orders(&self, text: &str, now_us: u64) -> Result<(), String> {
        let standing = OperatorState::read(text, now_us).ok_or("they are in a form that this version does not know")?;
        *self.standing() = standing;
        Ok(())
    }
}

/// Until when all clients of a server are paused, as its engines learn of it if it has several: its workers hold requests back, and its engines
/// remove no key of their own accord meanwhile.
#[derive(Debug, Default)]
pub struct ServerPause {
    /// On the clock that clients see, in microseconds; 0: they are not.
    until_us: AtomicU64,
}

impl ServerPause {
    /// A pause has begun, or has another end; `None`: it is over.
    pub(crate) fn set(&self, until_us: Option<u64>) {
        self.until_us.store(until_us.unwrap_or(0), Ordering::Release);
    }

    /// Whether clients are paused at that time.
    #[inline]
    pub(crate) fn holds(&self, now_us: u64) -> bool {
        now_us < self.until_us.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn resuming_one_node_leaves_the_others_paused() {
        let mut standing = OperatorState::default();
        standing.pause(&[]);
        standing.resume(&names(&["a"]), names(&["a", "b", "c"]).into_iter());
        assert!(!standing.is_all_paused);
        assert_eq!(standing.paused.iter().collect::<Vec<_>>(), ["b", "c"]);
        standing.resume(&[], names(&["a", "b", "c"]).into_iter());
        assert_eq!(standing, OperatorState::default());
    }

    #[test]
    fn orders_are_read_as_they_are_written() {
        let mut standing = OperatorState::default();
        assert_eq!(standing.text(0), "");
        standing.pause(&[]);
        standing.pause(&names(&["a", "10.0.0.1:6379"]));
        standing.drained.extend(names(&["a"]));
        standing.client_pause = Some(KeptClientPause { until_us: 17, is_for_all: false });
        let there = OperatorState {
            client_pause: Some(KeptClientPause { until_us: 107, is_for_all: false }),
            ..standing.clone()
        };
        assert_eq!(
            OperatorState::read(&standing.text(10), 100),
            Some(there),
            "seven microseconds are left on either clock"
        );
        let ended = OperatorState { client_pause: None, ..standing.clone() };
        assert_eq!(OperatorState::read(&standing.text(17), 100), Some(ended));
        for other in ["resume a", "drain", "hold all", "hold some 7", "hold all x"] {
            assert_eq!(OperatorState::read(other, 0), None, "{other}");
        }
    }
}
