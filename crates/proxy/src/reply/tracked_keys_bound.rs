//! A `CONFIG SET` of the bound of tracked keys (`tracking-table-max-keys`) on its way to the nodes: it holds in this process once all of them
//! have taken it.

use crate::env::Env;
use crate::ids::ClientId;
use crate::integer::integer;
use crate::reply::progress::Progress;
use crate::reply::task::{InternalTask, JointReply, TaskReply};
use crate::session::Flow;
use crate::session::table::Clients;
use respool_command::{Execute, Row};
use respool_route::Gather;
use respool_wire::{Args, encode_request};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Redis' name of the bound.
const NAME: &[u8] = b"tracking-table-max-keys";

/// A CONFIG SET of the bound on its way to the nodes.
#[derive(Debug)]
pub(crate) struct TrackedKeysBound {
    reply: JointReply,
    keys_max: usize,
    is_refused: bool,
}

impl InternalTask for TrackedKeysBound {
    fn handle_reply(&mut self, reply: TaskReply<'_>, clients: &mut Clients) -> Progress {
        self.is_refused |= reply.kind.is_error();
        self.reply.take(reply, clients)
    }
}

/// The bound that a CONFIG SET sets, if it sets one.
fn bound_in(pairs: Args<'_>) -> Option<usize> {
    let places = (0..pairs.len().saturating_sub(1)).step_by(2);
    let mut values =
        places.filter(|place| pairs.at(*place).eq_ignore_ascii_case(NAME)).map(|place| pairs.at(place + 1));
    values.next_back().and_then(integer).and_then(|count| usize::try_from(count).ok())
}

/// A permitted CONFIG SET of the bound: it holds here once all nodes have taken it, which track keys for clients with connections of
/// their own. `None`: it is about something else, or goes to no node.
pub(crate) fn set_tracked_keys_max(
    env: &mut Env<impl Execute>,
    index: ClientId,
    row: &'static Row,
    args: Args<'_>,
) -> Option<Flow> {
    let keys_max = bound_in(args.from(2))?;
    let nodes = env.nodes_of(index, row, args);
    let class = env.clients.sessions.at(index)?.class;
    if nodes.is_empty() {
        return None;
    }
    let Some(asker) = env.clients.expect_reply(index) else { return Some(Flow::Stop) };
    let mut gather = Gather::new();
    gather.begin_all(row, args, nodes.len(), 0);
    let config = Arc::clone(&env.config);
    gather.name_parts(|part| &config.nodes[nodes[part].index()].name);
    let reply = JointReply { asker, gather };
    let task = env.tasks.begin(TrackedKeysBound { reply, keys_max, is_refused: false });
    let mut fullest = None;
    for (part, node) in nodes.into_iter().enumerate() {
        let lane = env.lanes.lane(&env.config, node, class);
        env.send_for_task(task, part as u16, lane, |out| encode_request(out, args.iter()));
        fullest = Some(env.lanes.fuller(fullest, lane));
    }
    Some(env.keep_pace_of_all(index, fullest, args))
}

/// All nodes have answered.
pub(crate) fn conclude_tracked_keys_max<E>(env: &mut Env<E>, bound: &TrackedKeysBound) {
    if !bound.is_refused {
        env.shared.tracked_keys_said.store(bound.keys_max.saturating_add(1), Ordering::Relaxed);
        env.is_busy = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{env_with_node, request};
    use respool_wire::ReplyKind;

    /// What the bound is once a node has answered a CONFIG SET so.
    fn bound(said: &str, kind: ReplyKind, reply: &[u8]) -> usize {
        let mut env = env_with_node();
        env.shared.tracked_keys_said.store(8, Ordering::Relaxed);
        let keys_max = request(&format!("CONFIG SET {said}"), |_, args| bound_in(args.from(2)));
        if let Some(keys_max) = keys_max {
            let mut gather = Gather::new();
            request(&format!("CONFIG SET {said}"), |row, args| gather.begin_all(row, args, 1, 0));
            let reply_to_none = JointReply { asker: None, gather };
            let mut task = TrackedKeysBound { reply: reply_to_none, keys_max, is_refused: false };
            let progress = task.handle_reply(TaskReply { step: 0, kind, bytes: reply }, &mut env.clients);
            assert_eq!(progress, Progress::Through);
            conclude_tracked_keys_max(&mut env, &task);
        }
        env.shared.tracked_keys_max(&env.config)
    }

    #[test]
    fn the_bound_is_the_one_that_was_said_last_and_none_is_none() {
        for (said, expected) in [
            ("tracking-table-max-keys 9", 9),
            ("maxmemory 5", 7),
            ("Tracking-Table-Max-Keys many", 7),
            ("tracking-table-max-keys 3 maxmemory 5 TRACKING-TABLE-MAX-KEYS 9", 9),
            ("tracking-table-max-keys 0", usize::MAX),
        ] {
            assert_eq!(bound(said, ReplyKind::Simple, b"+OK\r\n"), expected, "{said}");
            assert_eq!(bound(said, ReplyKind::Error, b"-ERR no\r\n"), 7, "{said} is refused");
        }
    }
}
