//! What clients hold that is not shared, whichever feature gave it to them.

use crate::admin::show::PinLine;
use crate::blocking::queue::Blocking;
use crate::dedicated::Dedicated;
use crate::env::Env;
use crate::ids::NodeId;
use crate::transaction::state::Transaction;
use respool_command::Execute;

/// What each client holds, for `PROXY SHOW PINS`.
pub(super) fn list_pins<E: Execute>(env: &Env<E>, blocking: &Blocking, dedicated: &Dedicated) -> Vec<PinLine> {
    let mut lines = Vec::new();
    let name = |node: NodeId| env.lanes.nodes.get(node).map(|n| n.name.clone());
    for (index, session) in env.clients.sessions.iter() {
        let mode = env.clients.mode_of(&env.config, index);
        let owning = if env.clients.has_noloop_lanes(index) { "tracking" } else { "session" };
        let line = |node: Option<NodeId>, reason: &'static str, since_us: u64| PinLine {
            client: session.id,
            node: node.and_then(name),
            reason,
            mode,
            age_us: env.now.mono_us.saturating_sub(since_us),
        };
        lines.extend(
            env.lanes.owned_nodes(session.class).map(|node| line(Some(node), owning, session.details.connected_us)),
        );
        let Some(pins) = &session.pins else { continue };
        let queued = Transaction::queued_of(&pins.transaction);
        lines.extend(queued.map(|queued| line(queued.node, "multi", pins.since_us)));
        lines.extend(pins.watches.lanes.iter().map(|pin| line(Some(pin.node), "watch", pin.since_us)));
        let client = env.clients.sessions.handle(index);
        if let Some((reason, since_us, nodes)) = client.and_then(|client| dedicated.places(client)) {
            lines.extend(nodes.map(|node| line(Some(node), reason, since_us)));
        }
        lines.extend(pins.local_watch.as_ref().map(|_| line(None, "watch", pins.since_us)));
        let blocked = pins.blocked.iter().filter_map(|w| blocking.requests.at(w.index));
        lines.extend(blocked.map(|blocked| line(Some(blocked.node), "blocked", blocked.arrived_us)));
    }
    lines
}
