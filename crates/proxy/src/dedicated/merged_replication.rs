//! SYNC and PSYNC with several nodes: the client follows all of them as if they were one server.
//!
//! Each node is asked for a replication stream on a connection of the client's own, and [`Merge`] makes one of them.
//! Nodes are asked without `capa eof`: each then writes its snapshot to its disk, says how long it is, and waits as long as
//! those before it take. The stream is new to every client that asks, so none is continued. What cannot be merged, and the
//! end of any of the connections, disconnects the client: it synchronizes again and misses nothing.

use crate::config::Config;
use crate::dedicated::link::Kind;
use crate::dedicated::{Dedicated, DedicatedClient, Stage, link};
use crate::env::Env;
use crate::error_reply::ErrorReply;
use crate::error_text;
use crate::ids::{ClientHandle, ClientId, ClientNumber, LaneHandle, NodeId};
use crate::limits::{MERGED_ACKNOWLEDGE_US, MERGED_ACKNOWLEDGEMENTS_BYTES_MAX, MERGED_APART_US, MERGED_SILENCE_US};
use crate::session::disconnect_log::DisconnectReason;
use crate::session::{Flow, PauseReasons};
use respool_command::{Command, Execute, Row, ServerCommand as S, text as texts};
use respool_route::replication::{Fault, Merge, Outcome, Terms};
use respool_route::{DeadNode, NodePlace};
use respool_wire::{Args, encode_request};
use std::collections::BTreeSet;

/// What a client that follows all nodes has beside its connections.
#[derive(Debug, Default)]
pub(crate) struct MergedReplication {
    /// What it has said of itself before.
    terms: Terms,
    /// `None` before SYNC or PSYNC.
    merge: Option<Box<Merge>>,
    /// When nodes have been sent an acknowledgement last.
    acknowledged_us: u64,
}

impl MergedReplication {
    pub(super) fn held_bytes(&self) -> usize {
        size_of::<Self>() + self.merge.as_ref().map_or(0, |merge| size_of::<Merge>() + merge.held_bytes())
    }
}

/// A name for a stream that no other stream has, as long as `entropy` and `now_us` are not the same.
fn stream_id(entropy: u64, now_us: u64, client: ClientNumber) -> String {
    let mut state = entropy ^ now_us.rotate_left(20) ^ client.get().rotate_left(44);
    let mut word = || {
        // splitmix64.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    };
    format!("{:016x}{:016x}{:08x}", word(), word(), word() as u32)
}

/// Whether a replica is shown several nodes.
pub(super) fn is_for(config: &Config) -> bool {
    config.nodes.len() != 1
}

/// The nodes that have keys, each server once.
pub(super) fn nodes(config: &Config) -> Result<Vec<NodeId>, &'static str> {
    let routes = &config.routes;
    let may_be_elsewhere = |place: NodePlace| {
        let numbers = (0..routes.routes().len()).filter_map(|number| u16::try_from(number).ok());
        let mut numbers = numbers.filter(|number| routes.pool_of(*number).has(place));
        numbers.any(|number| routes.dead_node(number) == DeadNode::Next)
    };
    let (mut nodes, mut known) = (Vec::new(), BTreeSet::new());
    for place in routes.pools().iter().flat_map(|pool| pool.places()) {
        if may_be_elsewhere(place) {
            return Err(error_text::KEYS_ON_SEVERAL_NODES);
        }
        let node = NodeId::at(place);
        if config.node(node).is_some_and(|config| known.insert(config.endpoint.to_string())) {
            nodes.push(node);
        }
    }
    Ok(nodes)
}

impl Dedicated {
    /// What a client has said of itself as a follower.
    fn terms_of<E>(&self, env: &Env<E>, index: ClientId) -> Terms {
        let merged = self.of(env, index).and_then(|this| this.merged.as_ref());
        merged.map(|merged| merged.terms).unwrap_or_default()
    }

    /// REPLCONF before SYNC or PSYNC. What nodes have to know of it they are told when they are asked.
    pub(super) fn describe_follower<E: Execute>(&mut self, env: &mut Env<E>, index: ClientId, args: Args<'_>) -> Flow {
        let mut terms = self.terms_of(env, index);
        if args.len().is_multiple_of(2) {
            return env.refuse(index, texts::SYNTAX);
        }
        for at in (1..args.len()).step_by(2) {
            let (option, value) = (args.at(at), args.at(at + 1));
            let is = |name: &str| option.eq_ignore_ascii_case(name.as_bytes());
            if is("rdb-only") {
                terms.is_snapshot_only = value != b"0";
            } else if is("rdb-filter-only") {
                return env.refuse(index, error_text::NO_FILTERED_SNAPSHOT);
            } else if !["listening-port", "ip-address", "capa", "version"].iter().any(|name| is(name)) {
                return env.refuse(index, error_text::unknown_replconf(option));
            }
        }
        self.leave(env, index);
        let mut this = DedicatedClient::new(Kind::Replica, env.now.mono_us);
        this.merged = Some(Box::new(MergedReplication { terms, ..MergedReplication::default() }));
        self.hold(env, index, this);
        env.confirm(index)
    }

    /// SYNC and PSYNC: every node is asked.
    pub(super) fn follow_all<E: Execute>(&mut self, env: &mut Env<E>, index: ClientId, row: &'static Row) -> Flow {
        let nodes = match nodes(&env.config) {
            Ok(nodes) => nodes,
            Err(because) => return env.refuse_unsupported(index, row, because),
        };
        let mut terms = self.terms_of(env, index);
        self.leave(env, index);
        terms.has_offsets = row.command == Command::Server(S::Psync);
        let now_us = env.now.mono_us;
        let client = env.clients.sessions.at(index).map_or(ClientNumber::new(0), |session| session.id);
        let id = stream_id(env.lanes.entropy_of_all(), env.now.unix_us, client);
        let merge = Box::new(Merge::new(nodes.len(), terms, &id, now_us));
        let mut this = DedicatedClient::new(Kind::Replica, now_us);
        this.merged = Some(Box::new(MergedReplication { terms, merge: Some(merge), acknowledged_us: now_us }));
        if let Err(error) = link(env, index, &mut this, nodes) {
            return env.refuse(index, error);
        }
        self.begin(env, index, this, |out| match terms.has_offsets {
            true => encode_request(out, [&b"PSYNC"[..], b"?", b"-1"].into_iter()),
            false => encode_request(out, [&b"SYNC"[..]].into_iter()),
        })
    }

    /// Bytes have come from one of the nodes.
    pub(super) fn take_merged<E: Execute>(
        &mut self,
        env: &mut Env<E>,
        reader: ClientHandle,
        from: LaneHandle,
        bytes: &[u8],
    ) {
        let now_us = env.now.mono_us;
        let Some(this) = self.clients.get_mut(&reader) else { return };
        let Some(at) = this.links.iter().position(|link| link.lane == from) else { return };
        if let Some(merge) = this.merge_mut() {
            merge.push(at, bytes, now_us);
        }
        self.pass_merged(env, reader);
    }

    /// Passes on what the follower may be given now, and reads those nodes of which more is wanted.
    fn pass_merged<E: Execute>(&mut self, env: &mut Env<E>, reader: ClientHandle) {
        // With one byte more than the soft bound a client has enough.
        let (now_us, enough) = (env.now.mono_us, env.config.budgets.client_output_soft.saturating_add(1));
        let Some(session) = env.clients.sessions.get(reader) else { return };
        let waiting = session.down.waiting_bytes();
        let Some(this) = self.clients.get_mut(&reader) else { return };
        let stage = this.stage;
        let (asker, is_asking) = match stage {
            Stage::Preparing => return,
            Stage::Asking { asker, .. } => (asker, true),
            Stage::Passing { asker } => (asker, false),
        };
        let Some(merge) = this.merge_mut() else { return };
        let mut out = Vec::new();
        let outcome = match is_asking {
            true => merge.open().and_then(|outcome| match outcome {
                Outcome::Going if merge.is_agreed() => merge.pass(enough, &mut out, now_us),
                outcome => Ok(outcome),
            }),
            false => merge.pass(enough.saturating_sub(waiting), &mut out, now_us),
        };
        let is_agreed = merge.is_agreed();
        match outcome {
            Ok(Outcome::Refused(error)) if is_asking => {
                return self.handle_lane_ended(env, reader, &ErrorReply::of_reply(&error));
            }
            Err(fault) if is_asking => {
                return self.handle_lane_ended(env, reader, &error_text::cannot_merge(fault.words()));
            }
            Ok(Outcome::Refused(_)) => return self.break_off_merged(env, reader, Fault::Malformed),
            Err(fault) => return self.break_off_merged(env, reader, fault),
            Ok(Outcome::Going | Outcome::Done) => {}
        }
        if is_asking && is_agreed {
            this.stage = Stage::Passing { asker };
            // Its reply never ends, and nothing waits behind it.
            env.clients.unpause(reader.index, PauseReasons::BARRIER);
        }
        self.mark(env, reader);
        env.clients.feed_all(asker, &out);
        match outcome {
            Ok(Outcome::Done) => self.end(env, reader.index),
            _ => self.pace_merged(env, reader),
        }
    }

    fn break_off_merged<E: Execute>(&mut self, env: &mut Env<E>, reader: ClientHandle, fault: Fault) {
        self.leave(env, reader.index);
        env.cut_off(reader.index, DisconnectReason::Unmerged(fault.words()));
    }

    /// Nodes are left alone while their follower has enough to read, or while what they have sent waits for others.
    fn pace_merged<E: Execute>(&mut self, env: &mut Env<E>, reader: ClientHandle) {
        let Some(session) = env.clients.sessions.get(reader) else { return };
        let has_enough = session.down.waiting_bytes() > env.config.budgets.client_output_soft;
        let Some(this) = self.clients.get_mut(&reader) else { return };
        if has_enough && !std::mem::replace(&mut this.is_paused, true) {
            env.counters.pauses.add(1);
        }
        let is_paused = this.is_paused;
        let Some(merge) = this.merged.as_ref().and_then(|merged| merged.merge.as_ref()) else { return };
        for (at, link) in this.links.iter().enumerate() {
            let Some(lane) = env.lanes.find(link.lane) else { continue };
            match is_paused || !merge.is_hungry(at) {
                true => _ = env.lanes[lane].lease.leave_unread(),
                false => env.read_on(lane),
            }
        }
    }

    /// The follower has taken most of what waited for it.
    pub(super) fn resume_merged<E: Execute>(&mut self, env: &mut Env<E>, client: ClientHandle) {
        if let Some(merge) = self.clients.get_mut(&client).and_then(DedicatedClient::merge_mut) {
            merge.restart_time(env.now.mono_us);
        }
        self.pass_merged(env, client);
    }

    /// What a follower says. Only its acknowledgements mean something; a replica is sent no replies.
    pub(super) fn hear_follower<E: Execute>(&mut self, env: &mut Env<E>, index: ClientId, args: Args<'_>) -> Flow {
        let is_acknowledged = args.name().eq_ignore_ascii_case(b"REPLCONF")
            && args.get(1).is_some_and(|option| option.eq_ignore_ascii_case(b"ACK"));
        let position = args.get(2).and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
        let client = env.clients.sessions.handle(index).and_then(|client| self.clients.get_mut(&client));
        if let (true, Some(position), Some(this)) = (is_acknowledged, position, client) {
            if let Some(merge) = this.merge_mut() {
                merge.confirm(position);
            }
            this.acknowledge(env);
        }
        Flow::Next
    }

    /// What is due at times: acknowledgements, and an end where nothing comes any more. Returns whether any client follows.
    pub(super) fn check_merged<E: Execute>(&mut self, env: &mut Env<E>) -> bool {
        let now_us = env.now.mono_us;
        let (silent_us, apart_us) =
            (env.lag.due_us(now_us, MERGED_SILENCE_US), env.lag.due_us(now_us, MERGED_APART_US));
        let (mut is_busy, mut faults) = (false, Vec::new());
        for (client, this) in &mut self.clients {
            let (is_paused, is_passing) = (this.is_paused, matches!(this.stage, Stage::Passing { .. }));
            let Some(merge) = this.merge_mut().filter(|_| is_passing) else { continue };
            is_busy = true;
            if is_paused {
                merge.restart_time(now_us);
            }
            match merge.check(silent_us, apart_us) {
                Err(fault) => faults.push((*client, fault)),
                Ok(()) if this.is_acknowledgement_due(now_us) => this.acknowledge(env),
                Ok(()) => {}
            }
        }
        for (client, fault) in faults {
            if env.clients.sessions.get(client).is_some() {
                self.break_off_merged(env, client, fault);
            }
        }
        is_busy
    }
}

impl DedicatedClient {
    fn merge_mut(&mut self) -> Option<&mut Merge> {
        self.merged.as_mut()?.merge.as_deref_mut()
    }

    fn is_acknowledgement_due(&self, now_us: u64) -> bool {
        let is_due =
            |merged: &MergedReplication| now_us.saturating_sub(merged.acknowledged_us) >= MERGED_ACKNOWLEDGE_US;
        self.merged.as_deref().is_some_and(is_due)
    }

    /// Tells each node how far the follower has come. A node that hears nothing closes the connection.
    fn acknowledge<E: Execute>(&mut self, env: &mut Env<E>) {
        let now_us = env.now.mono_us;
        let Some(merged) = self.merged.as_mut() else { return };
        merged.acknowledged_us = now_us;
        let Some(merge) = merged.merge.as_ref() else { return };
        for (at, link) in self.links.iter().enumerate() {
            let (Some(position), Some(lane)) = (merge.confirmed(at), env.lanes.find(link.lane)) else { continue };
            // What a later one says is in it. A node that does not read is sent no more meanwhile.
            if env.lanes[lane].up.queued_bytes() > MERGED_ACKNOWLEDGEMENTS_BYTES_MAX {
                continue;
            }
            let position = position.to_string();
            let words = [&b"REPLCONF"[..], b"ACK", position.as_bytes()];
            env.lanes[lane].up.tell(now_us, &mut env.clients.pool, |out| encode_request(out, words.into_iter()));
            env.lanes.list(lane);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_has_forty_digits_that_no_other_has() {
        let id = |entropy, now_us, client| stream_id(entropy, now_us, ClientNumber::new(client));
        let ids = [id(1, 2, 3), id(1, 2, 4), id(1, 3, 3), id(2, 2, 3)];
        assert!(ids.iter().all(|id| id.len() == 40 && id.bytes().all(|digit| digit.is_ascii_hexdigit())));
        assert!((1..4).all(|at| !ids[..at].contains(&ids[at])));
    }
}
