//! Connections that clients have to themselves: how they are got, read on, brought back to their plain state and given back.
//!
//! ```text
//!              borrow                 give_back              all acknowledged
//!   [warm] ------------> [lent] ------------------> [cleaned] ----------------> [warm]
//!      ^  none warm: dial  |                            |          enough are warm: closed
//!                          '--- lost, in doubt ---------'---> closed
//! ```
//!
//! Handles are of one borrower: with the next one they are void. One goes back to the warm ones only after the node has
//! acknowledged every request that brings it back to its plain state. In doubt it is closed: the next borrower must never meet
//! what the last one left.
//!
//! What a connection is to its client is its [`Lease`]. Whatever it is for, it is had, read on and given up by the same verbs:
//!
//! | verb | for |
//! |---|---|
//! | `lend` | the client's user may have one more: `SCRIPT KILL`, `MONITOR`, `PSYNC`; `private_for`: `WATCH`, `EXEC`, large replies |
//! | `take_warm`, `dial_unshared` | all of these, pool mode `session`, `BLPOP` and its kin, `CLIENT TRACKING NOLOOP`, successors |
//! | `read_on` | what was left unread because its client did not read |
//! | `give_back` | it is read on, cleaned and waits for the next client, or is closed; others that wait on it are answered first |
//! | `disown` | it is closed, and its client has no use for the news |

use crate::config::Config;
use crate::env::Env;
use crate::error_reply::ErrorReply;
use crate::error_text;
use crate::ids::{ClientId, LaneHandle, LaneId, LaneKeyId, NodeId};
use crate::pool::lane_reset::{LaneReset, ResetNeeded};
use crate::pool::lease::Lease;
use crate::pool::{LaneUse, Lanes};
use respool_command::Execute;
use respool_connection::{Action, Now, Phase};
use respool_wire::encode_request;

impl Lanes {
    /// Lends a private connection to a node, a warm one if there is one; it may still have to be dialled, and requests
    /// wait for that. `Err` is what the client is told instead.
    pub(crate) fn borrow(
        &mut self,
        config: &Config,
        node: NodeId,
        class: LaneKeyId,
        now: Now,
    ) -> Result<LaneHandle, ErrorReply> {
        match self.take_warm(node, class) {
            Some(lane) => Ok(self.handle(lane)),
            None => self.lend_new(config, node, class, LaneUse::Private, now),
        }
    }

    /// A connection to a node that is clean and free.
    pub(crate) fn take_warm(&mut self, node: NodeId, class: LaneKeyId) -> Option<LaneId> {
        let class = self.base(class);
        let fits = |lane: &LaneId| {
            let this = &self.all[*lane];
            // What waits for the answer to a PING may have lost its peer; and what comes over one that is owed nothing may be its end.
            this.node == node && this.class == class && this.probed_us == 0 && !this.is_left
        };
        // The one that was used last is the likeliest to be alive.
        let at = self.warm.iter().rposition(fits)?;
        Some(self.warm.remove(at))
    }

    /// Whether one more connection to a node may be one client's.
    pub(crate) fn may_lend(&self, config: &Config, node: NodeId) -> bool {
        self.count_lent(node) < config.lanes.private_max
    }

    /// How many connections to a node are lent or wait for that.
    pub(crate) fn count_lent(&self, node: NodeId) -> usize {
        let is_lent = |purpose: LaneUse| matches!(purpose, LaneUse::Private | LaneUse::Dedicated);
        self.all.iter().filter(|l| is_lent(l.purpose) && !l.is_retired && l.node == node).count()
    }

    /// Lends a new connection.
    fn lend_new(
        &mut self,
        config: &Config,
        node: NodeId,
        class: LaneKeyId,
        purpose: LaneUse,
        now: Now,
    ) -> Result<LaneHandle, ErrorReply> {
        if !self.may_lend(config, node) {
            return Err(error_text::too_many_private(&self.nodes[node].name));
        }
        let lane = self.dial_unshared(config, node, self.base(class), purpose, now)?;
        Ok(self.handle(lane))
    }

    /// A lane that is not in the table of classes, and will be dialled. `Err`: there is no hope for now, and none was made.
    pub(crate) fn dial_unshared(
        &mut self,
        config: &Config,
        node: NodeId,
        class: LaneKeyId,
        purpose: LaneUse,
        now: Now,
    ) -> Result<LaneId, ErrorReply> {
        let lane = self.add_unshared(config, node, class, purpose);
        self.prepare(lane, config, now).inspect_err(|_| self.release(lane))?;
        Ok(lane)
    }

    /// Whether a lane is sent PINGs while it is idle: those that all share, and those that wait for the next client.
    pub(crate) fn is_probed(&self, lane: LaneId) -> bool {
        match self.all[lane].purpose {
            LaneUse::Shared => true,
            LaneUse::Private => self.warm.contains(&(lane)),
            _ => false,
        }
    }

    /// Keeps a clean connection for the next borrower. `false`: enough are kept, and the caller closes it.
    fn keep_warm(&mut self, lane: LaneId, config: &Config) -> bool {
        let this = &self.all[lane];
        if this.is_stale || self.nodes[this.node].is_removed {
            return false;
        }
        let (node, class) = (this.node, this.class);
        let alike = |l: &&LaneId| self.all[**l].node == node && self.all[**l].class == class;
        let has_room = self.warm.iter().filter(alike).count() < config.lanes.private_warm_max;
        self.all[lane].lease = Lease::default();
        if has_room {
            // Its former holder may have requests that are through and not concluded: those must not give it back once more.
            let this = &mut self.all[lane];
            this.generation = this.generation.wrapping_add(1);
            self.warm.push(lane);
        }
        has_room
    }
}

impl<E: Execute> Env<E> {
    /// Closes a lane without a holder. Owners of outstanding replies hear that it was given up.
    pub(crate) fn close_lane(&mut self, lane: LaneId) {
        if !matches!(self.lanes[lane].up.phase(), Phase::Idle) {
            self.close_upstream(lane);
        }
        self.end_lane(lane, crate::pool::LaneEnd::GivenUp);
    }

    /// Lends a client a connection to a node for such a use, within its user's bounds. A private one may be warm.
    pub(crate) fn lend(
        &mut self,
        index: ClientId,
        node: NodeId,
        class: LaneKeyId,
        purpose: LaneUse,
    ) -> Result<LaneHandle, ErrorReply> {
        let Some(session) = self.clients.sessions.at(index) else {
            return Err(error_text::gone(&self.lanes.nodes[node].name));
        };
        let lease = Lease::within(session.details.allowance.as_deref())?;
        let Self { lanes, config, now, .. } = self;
        let lane = match purpose {
            LaneUse::Private => lanes.borrow(config, node, class, *now)?,
            _ => lanes.lend_new(config, node, class, purpose, *now)?,
        };
        lanes[lane.index].lease = lease;
        Ok(lane)
    }

    /// A connection for what must not share one: the client's own if it has one to the node.
    pub(crate) fn private_for(&mut self, index: ClientId, node: NodeId) -> Result<LaneHandle, ErrorReply> {
        let class = self.clients.sessions.at(index).map_or(LaneKeyId::PLAIN, |session| session.class);
        if self.lanes.owns(class, node) {
            let lane = self.lanes.lane(&self.config, node, class);
            return Ok(self.lanes.handle(lane));
        }
        self.lend(index, node, class, LaneUse::Private)
    }

    /// A lane that was left alone, since its reader did not read, is read again.
    pub(crate) fn read_on(&mut self, lane: LaneId) {
        let this = &mut self.lanes[lane];
        if this.lease.take_unread() {
            // It was silent because it was not read.
            this.up.note_heard(self.now.mono_us);
            self.actions.push_back(Action::Resume { conn: lane.conn() });
        }
    }

    /// A lane is not read as fast as its client reads any more.
    pub(crate) fn stop_pacing(&mut self, lane: LaneId) {
        self.lanes[lane].lease.set_reader(None);
        self.read_on(lane);
    }

    /// Closes a client's connection. The client has no use for it any more, and is not told.
    pub(crate) fn disown(&mut self, lane: LaneHandle) {
        let Some(place) = self.lanes.find(lane) else { return };
        let this = &mut self.lanes[place];
        this.lease = Lease::default();
        self.close_lane(place);
    }

    /// Takes a private connection back from its holder. What is still owed on it goes to its owners first.
    pub(crate) fn give_back(&mut self, lane: LaneHandle, dirt: ResetNeeded) {
        let Some(place) = self.lanes.find(lane) else { return };
        let this = &self.lanes[place];
        if this.purpose == LaneUse::Leaving && this.sending.is_none() {
            // It ends once it has answered what it owes.
            return;
        }
        // A client's own stays with it; what the node knew has ended with the connection.
        let stays = this.purpose == LaneUse::Own;
        if !stays {
            self.stop_pacing(place);
            if self.lanes.leave_claimed(place) {
                return;
            }
        }
        let this = &self.lanes[place];
        // Half a request must not become the beginning of another's.
        if !this.up.is_ready() || this.sending.is_some() {
            if !stays {
                self.close_lane(place);
            }
            return;
        }
        let database = self.lanes.class_database(place).to_string();
        let mut requests: Vec<&[&[u8]]> = Vec::new();
        let select: &[&[u8]] = &[b"SELECT", database.as_bytes()];
        if dirt.is_queueing {
            requests.push(&[b"DISCARD"]);
        }
        if dirt.is_watching && !dirt.is_queueing {
            requests.push(&[b"UNWATCH"]);
        }
        if dirt.is_elsewhere {
            requests.push(select);
        }
        let awaited = requests.len() as u16;
        if awaited == 0 && stays {
            return;
        }
        // A transaction that was answered in this turn may have selected a database.
        let is_in_doubt = self.tasks.leaves_something_on(lane);
        if awaited == 0 && this.up.tickets().is_empty() && !is_in_doubt {
            if !self.lanes.keep_warm(place, &self.config) {
                self.close_lane(place);
            }
            return;
        }
        if awaited == 0 {
            // Replies are outstanding, or state is left that no task resets: a connection in doubt is closed.
            self.close_lane(place);
            return;
        }
        let task = self.tasks.begin(LaneReset::new(lane, awaited));
        for (step, request) in requests.into_iter().enumerate() {
            if !self.send_for_task(task, step as u16, place, |out| encode_request(out, request.iter().copied())) {
                return;
            }
        }
    }

    pub(crate) fn conclude_cleaning(&mut self, cleaning: LaneReset) {
        let Some(lane) = self.lanes.find(cleaning.lane) else { return };
        let this = &self.lanes[lane];
        if this.purpose == LaneUse::Own && cleaning.is_clean {
            return;
        }
        let is_reusable = cleaning.is_clean && this.up.is_ready() && this.up.tickets().is_empty();
        if !is_reusable || !self.lanes.keep_warm(lane, &self.config) {
            self.close_lane(lane);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lifecycle::memory::MemoryPressure;
    use crate::testing::{EchoEngine, config, env_with_node};

    #[test]
    fn a_warm_connection_is_lent_first_and_to_one_at_a_time() {
        let config = config();
        let mut lanes = Lanes::new(&config, 1);
        let first =
            lanes.borrow(&config, NodeId::nth(0), LaneKeyId::PLAIN, Now::default()).expect("nothing is in the way");
        let second =
            lanes.borrow(&config, NodeId::nth(0), LaneKeyId::PLAIN, Now::default()).expect("nothing is in the way");
        assert_ne!(first, second);
        assert!(lanes.keep_warm(first.index, &config));
        let again = lanes.borrow(&config, NodeId::nth(0), LaneKeyId::PLAIN, Now::default()).expect("one is warm");
        assert_eq!(again.index, first.index);
        assert!(lanes.find(again).is_some() && lanes.find(first).is_none(), "the first borrower's handle is void");
        assert!(lanes.shared.is_empty(), "their replies are not waited for");
    }

    #[test]
    fn a_place_is_reused_once_closed_and_its_handle_is_void() {
        let config = config();
        let mut lanes = Lanes::new(&config, 1);
        let shared = lanes.lane(&config, NodeId::nth(0), LaneKeyId::PLAIN);
        let first =
            lanes.borrow(&config, NodeId::nth(0), LaneKeyId::PLAIN, Now::default()).expect("nothing is in the way");
        lanes.retire(first.index);
        assert_eq!(lanes.find(first), None);
        let second =
            lanes.borrow(&config, NodeId::nth(0), LaneKeyId::PLAIN, Now::default()).expect("nothing is in the way");
        assert_ne!(second.index, first.index, "the loop may still close the first");
        lanes.note_closed(first.index);
        let third =
            lanes.borrow(&config, NodeId::nth(0), LaneKeyId::PLAIN, Now::default()).expect("nothing is in the way");
        assert_eq!(third.index, first.index);
        assert_eq!(lanes.find(first), None, "it is another's");
        assert_eq!(lanes.find(third), Some(first.index));
        assert_eq!(lanes.lane(&config, NodeId::nth(0), LaneKeyId::PLAIN), shared, "shared lanes keep their places");
    }

    /// A client and its own connection, which is ready.
    fn env_with_own_lane() -> (Env<EchoEngine>, ClientId, LaneId) {
        let mut env = env_with_node();
        let client = env.test_client();
        assert!(env.own_all(client));
        let class = env.test_session(client).class;
        let lane = env.lanes.lane(&env.config, NodeId::nth(0), class);
        env.lanes[lane].up.handle_connected_bare(env.now.mono_us);
        (env, client, lane)
    }

    #[test]
    fn a_returned_connection_was_silent_because_it_was_not_read() {
        let (mut env, client, lane) = env_with_own_lane();
        let this = &mut env.lanes[lane];
        this.lease.leave_unread();
        env.now.mono_us += 60_000_000;
        env.stop_owning(client);
        let this = &env.lanes[lane];
        assert!(env.lanes.warm.contains(&lane) && !this.lease.is_unread(), "it waits for the next client, and is read");
        assert_eq!(this.up.last_heard_us(), env.now.mono_us);
    }

    #[test]
    fn a_connection_left_unread_is_read_on_once_it_is_returned() {
        let (mut env, client, lane) = env_with_own_lane();
        env.node_reads.stop(env.now.mono_us);
        // Its end has come, as it may be on any connection that is owed nothing.
        let Env { node_reads, lanes, .. } = &mut env;
        assert!(node_reads.leaves(lane, &mut lanes[lane]));
        env.stop_owning(client);
        let (node, class) = (env.lanes[lane].node, env.lanes[lane].class);
        assert!(
            env.lanes.warm.contains(&lane) && env.lanes.take_warm(node, class).is_none(),
            "none is lent it meanwhile"
        );
        env.actions.clear();
        MemoryPressure::default().note_growth(&mut env);
        assert!(!env.lanes[lane].is_left, "its deadlines count again");
        assert!(matches!(env.actions.back(), Some(Action::Resume { conn }) if *conn == lane.conn()));
        assert_eq!(env.lanes.take_warm(node, class), Some(lane));
    }

    #[test]
    fn a_waiting_connection_is_read_on_once_its_client_has_left() {
        let (mut env, client, lane) = env_with_own_lane();
        let this = &mut env.lanes[lane];
        this.is_waiting = true;
        // The element that it waited for is large, and its client takes its time.
        this.lease.leave_unread();
        env.stop_owning(client);
        let this = &env.lanes[lane];
        assert_eq!((this.purpose, this.lease.is_unread()), (LaneUse::Blocking, false), "what it brings is put back");
    }

    #[test]
    fn a_connection_that_cannot_be_dialled_leaves_nothing() {
        let config = config();
        let mut lanes = Lanes::new(&config, 1);
        lanes.nodes[NodeId::nth(0)].is_drained = true;
        let refused = lanes.borrow(&config, NodeId::nth(0), LaneKeyId::PLAIN, Now::default());
        assert_eq!(refused, Err(error_text::drained("n")));
        lanes.nodes[NodeId::nth(0)].is_drained = false;
        let lent = lanes.borrow(&config, NodeId::nth(0), LaneKeyId::PLAIN, Now::default()).expect("it may be dialled");
        assert_eq!((lent.index.number(), lanes.count_lent(NodeId::nth(0))), (0, 1), "its place is used again");
    }
}
