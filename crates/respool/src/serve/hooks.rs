//! What workers tell the process: rare events, for the log, and demands of operators, which are signals to itself. A program
//! that Respool is a part of has hooks of its own.

use std::fmt;
use std::sync::{Arc, Once, Weak};
use std::time::{Duration, UNIX_EPOCH};

use respool_net::MovableClock;
use respool_proxy::hooks::{ClockOrder, Event, Hooks, ProcessAction};
use rustix::process::{Signal, getpid, kill_process};
use tracing::{debug, error, info, warn};

use crate::control::{Control, Phase};

/// What `DEBUG CLOCK` does.
pub(super) fn move_clock(clock: &MovableClock, order: ClockOrder) {
    match order {
        ClockOrder::Advance(ms) => clock.advance(Duration::from_millis(ms)),
        ClockOrder::Set(unix_ms) => clock.set(UNIX_EPOCH + Duration::from_millis(unix_ms)),
        ClockOrder::Freeze => clock.set_frozen(true),
        ClockOrder::Run => clock.set_frozen(false),
    }
}

/// Makes the hooks of one proxy: every pool gets its own.
pub struct HookMaker(Box<dyn Fn() -> Hooks + Send + Sync>);

impl HookMaker {
    /// Hooks as `make` makes them.
    pub fn new(make: impl Fn() -> Hooks + Send + Sync + 'static) -> Self {
        Self(Box::new(make))
    }

    /// Hooks for a process that is Respool's own: its log is told, and its signals do what operators demand, but for an end at once.
    #[must_use]
    pub fn of_process(control: &Arc<Control>) -> Self {
        let control = Arc::downgrade(control);
        Self::new(move || {
            let control = control.clone();
            let hooks = Hooks::default().on_event(tell).on_demand(move |demand| obey(demand, &control));
            #[cfg(all(feature = "jemalloc", target_os = "linux", target_env = "gnu"))]
            let hooks = hooks.with_allocator(crate::allocator::give_back);
            hooks
        })
    }

    pub(super) fn make(&self) -> Hooks {
        (self.0)()
    }
}

impl fmt::Debug for HookMaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HookMaker").finish_non_exhaustive()
    }
}

/// Tells the log.
pub(crate) fn tell(event: &Event) {
    match event {
        Event::NodeOut { node, worker, why } => {
            warn!(node, worker = worker.get(), "node {node} is out of use: it {why}")
        }
        Event::NodeReached { node, worker, address, took_us, server } => {
            let took = std::time::Duration::from_micros(*took_us);
            let server = if server.is_empty() { "it does not say what it is" } else { server };
            info!(node, worker = worker.get(), "node {node} is reached at {address} within {took:?}: {server}");
        }
        Event::NodeMoved { node, worker, to } => {
            info!(
                node,
                worker = worker.get(),
                "node {node} is to be found at {to} now: its connections stay in use until one there is ready"
            );
        }
        Event::AddressLeft { node, worker, connections } => {
            info!(
                node,
                worker = worker.get(),
                "node {node} is up at its new address: {connections} connections to the former one are left"
            );
        }
        Event::NodeRefuses { node, worker, why } => error!(
            node,
            worker = worker.get(),
            "node {node} refuses its new credentials ({why}): connections that it has accepted before stay in use, and others \
             are made with the former credentials if it accepts those"
        ),
        Event::NodeUnfit { node, worker, what } => warn!(node, worker = worker.get(), "node {node} is {what}"),
        Event::NodeBack { node, worker } => info!(node, worker = worker.get(), "node {node} is back in use"),
        Event::OutOfStep { node, worker } => {
            error!(
                node,
                worker = worker.get(),
                "node {node} sent replies that are not those to its requests; its connection is given up"
            );
        }
        Event::ClientCutOff { client, address, user, bytes, why, untold } => {
            warn!(
                client = client.get(),
                address, user, bytes, untold, "client {client} ({address}) is disconnected: {why}"
            );
        }
        Event::ElementLost { node, worker, why, untold } => {
            warn!(
                node,
                worker = worker.get(),
                untold,
                "what was taken at node {node} for a client that had left is lost: {why}"
            );
        }
        Event::DrainCutOff { worker, requests } => {
            warn!(
                worker = worker.get(),
                requests, "the drain timeout is over: {requests} requests have not been answered by their nodes"
            );
        }
        // Any client can cause this at will.
        Event::ClientRefused { address, why } => debug!(address, "a client was refused: {why}"),
        Event::Ordered { order, client } => info!(client, "an operator ordered: {order}"),
    }
}

/// The thread that waits for signals does what is demanded. A drain is demanded once however often operators say so, because a second
/// signal of that kind ends at once. No signal does that by itself.
fn obey(demand: ProcessAction, control: &Weak<Control>) {
    static DRAIN: Once = Once::new();
    match demand {
        ProcessAction::Reload => signal_ourselves(Signal::HUP),
        ProcessAction::Drain => DRAIN.call_once(|| signal_ourselves(Signal::TERM)),
        ProcessAction::Stop => {
            warn!("User requested shutdown...");
            control.upgrade().map(|control| control.enter(Phase::Stopping));
        }
    }
}

fn signal_ourselves(signal: Signal) {
    if let Err(error) = kill_process(getpid(), signal) {
        error!("the process cannot signal itself: {error}");
    }
}
