//! What workers tell the process: rare events, for the log, and demands of operators, which are signals to itself.

use respool_proxy::hooks::{Demand, Event, Hooks};
use rustix::process::{Signal, getpid, kill_process};
use tracing::{error, info, warn};

/// The hooks of one proxy.
pub(super) fn hooks() -> Hooks {
    Hooks::default().on_event(tell).on_demand(obey)
}

fn tell(event: &Event) {
    match event {
        Event::NodeOut { node, worker, why } => warn!(node, worker, "node {node} is out of use: it {why}"),
        Event::NodeBack { node, worker } => info!(node, worker, "node {node} is back in use"),
        Event::Ordered { order, client } => info!(client, "an operator ordered: {order}"),
    }
}

/// The way that signals take is the only one: whoever waits for them does what is demanded.
fn obey(demand: Demand) {
    let signal = match demand {
        Demand::Reload => Signal::HUP,
        Demand::Drain => Signal::TERM,
    };
    if let Err(error) = kill_process(getpid(), signal) {
        error!("the process cannot signal itself: {error}");
    }
}
