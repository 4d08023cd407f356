//! EXEC: a queued block goes to its node in one piece, and the client gets the reply to EXEC alone.
//!
//! ```text
//!   MULTI  cmd  cmd  ..  EXEC      one piece on a lane, a ticket of the task for each
//!    +OK  +QUEUED ..   *n ...      the first ones are read here
//!                       '--------> the client's place; or, if some requests are ours or a database was selected,
//!                                  a script: the node's elements and our own replies, in the order of the block
//! ```

use crate::env::Env;
use crate::error_reply::ErrorReply;
use crate::error_text;
use crate::ids::{ClientId, ClientNumber, LaneHandle, LaneId, NodeId};
use crate::interfaces::known_scripts::NamedScript;
use crate::limits::TRIALS_MAX;
use crate::nodes::multi::Multi;
use crate::pool::Lanes;
use crate::pool::lane_reset::ResetNeeded;
use crate::reply::owner::Owner;
use crate::reply::progress::{LostReply, ReplyMode};
use crate::reply::task::Tasks;
use crate::request::held_requests::Held;
use crate::session::marks::{WantedState, WatchFailure, WatchedLane, Watches};
use crate::session::table::Clients;
use crate::session::{Flow, PauseReasons, SessionFlags};
use crate::transaction::exec_request::{BEGIN, EXEC, Exec, MOVES_MAX, QUEUE};
use crate::transaction::queue::QueuedCommands;
use crate::transaction::say;
use crate::transaction::state::Transaction;
use crate::workers::shared::Shared;
use respool_command::{Execute, text as texts};
use respool_route::PoolMode;
use respool_wire::{Args, elements};
use std::sync::PoisonError;

/// The node that a block runs at, if anything binds it to one.
fn node_of(queued: &QueuedCommands, watches: &[WatchedLane]) -> Option<NodeId> {
    queued.node.or(watches.first().map(|watch| watch.node)).or(queued.keyless_node)
}

/// How a block goes to its node.
struct ExecPath {
    /// The connection to itself that it runs on, if it does.
    private: Option<LaneHandle>,
    node: NodeId,
    /// Keys are watched there.
    is_watching: bool,
}

impl<E: Execute> Env<E> {
    /// EXEC of a session that is queueing. `Some`: it goes no further, for reasons that are known here.
    pub(crate) fn refuse_exec(&mut self, index: ClientId) -> Option<Flow> {
        let Some(session) = self.clients.sessions.at_mut(index) else { return Some(Flow::Stop) };
        let Some(queued) = session.queued_mut() else { return Some(Flow::Stop) };
        if queued.is_dirty {
            let is_stranded = queued.strands();
            self.clients.discard_queued(index);
            self.leave_watches(index);
            self.clients.strand(index, is_stranded);
            return Some(self.refuse(index, texts::EXECABORT));
        }
        if session.pins.as_ref().is_some_and(|pins| pins.is_touched) {
            self.clients.discard_queued(index);
            self.leave_watches(index);
            return Some(self.answer(index, |reply| reply.null_array()));
        }
        let Some(session) = self.clients.sessions.at_mut(index) else { return Some(Flow::Stop) };
        if session.flags.has(SessionFlags::HELD)
            && let Some(flow) = self.hold_exec(index)
        {
            return Some(flow);
        }
        let Some(session) = self.clients.sessions.at_mut(index) else { return Some(Flow::Stop) };
        // What is watched is forgotten with the question, so nothing may put EXEC off behind it.
        let is_watching_here = session.pins.as_ref().is_some_and(|pins| pins.local_watch.is_some());
        if is_watching_here && self.clients.settle_before(index).is_none() {
            return Some(Flow::Again);
        }
        None
    }

    /// The queued transaction goes to its node. `None`: no node has a part in it, and its reply is put together here.
    pub(crate) fn send_queued(&mut self, index: ClientId, args: Args<'_>) -> Option<Flow> {
        let Some(session) = self.clients.sessions.at_mut(index) else { return Some(Flow::Stop) };
        let class = session.class;
        let Some(pins) = session.pins.as_deref_mut() else { return Some(Flow::Stop) };
        let Some(queued) = Transaction::queued_in(&mut pins.transaction) else { return Some(Flow::Stop) };
        let Watches { lanes: watches, failure } = &pins.watches;
        if *failure != WatchFailure::None {
            let has_select = queued.has_select;
            return Some(self.refuse_queued(index, has_select, error_text::PIN_LOST));
        }
        let is_watching = !watches.is_empty();
        let (has_own, has_select, mode) = (queued.has_own(), queued.has_select, queued.mode);
        let (has_scripts, is_for_node) = (queued.has_scripts, queued.for_node > 0);
        // What might wait does so on a connection of its own, should the node not take MULTI any more.
        let waits = queued.has_blocking;
        let node = node_of(queued, watches).unwrap_or(self.config.default_node());
        let class = self.lanes.without_scripts(class);
        // The transaction runs on one connection, and only keys that are watched there guard it. A lost one could be of any class.
        let is_elsewhere = |watch: &WatchedLane| watch.node != node || !self.lanes.is_pinned_in(watch, class);
        if watches.len() > 1 || watches.iter().any(is_elsewhere) {
            return Some(self.refuse_queued(index, has_select, error_text::WATCHED_ELSEWHERE));
        }
        if self.clients.changes_midway(index) {
            return Some(self.refuse_queued(index, has_select, error_text::CHANGED_MIDWAY));
        }
        let mode = mode.unwrap_or_else(|| self.clients.mode_of(&self.config, index));
        let is_transaction_mode = mode == PoolMode::Transaction && self.engine.is_none();
        let is_private = is_transaction_mode || is_watching || has_select || waits && self.engine.is_none();
        if mode == PoolMode::Session
            && !is_watching
            && self.engine.is_none()
            && let Some(flow) = self.own_nodes(index, &[node])
        {
            if flow != Flow::Again {
                self.clients.drop_block(index, has_select);
            }
            return Some(flow);
        }
        if has_scripts
            && !is_private
            && let Some(flow) = self.go_with_scripts(index)
        {
            return Some(flow);
        }
        if is_for_node
            && !is_private
            && let Some(flow) = self.wait_for_room_at(index, node)
        {
            if flow != Flow::Again {
                self.clients.drop_block(index, has_select);
            }
            return Some(flow);
        }
        if (is_private || has_own) && self.clients.settle_before(index).is_none() {
            return Some(Flow::Again);
        }
        let Some(session) = self.clients.sessions.at_mut(index) else { return Some(Flow::Stop) };
        let Some(pins) = session.pins.as_deref_mut() else { return Some(Flow::Stop) };
        let transaction = Transaction::of_mut(&mut pins.transaction);
        let Some(queued) = transaction.and_then(|it| it.queued.take()) else { return Some(Flow::Stop) };
        let pin = pins.watches.lanes.pop();
        session.settle_pins();
        if pin.is_some() {
            self.clients.unpin();
        }
        self.counters.transactions.add(1);
        if queued.flushes_scripts {
            self.shared.scripts().forget_all();
        }
        if pin.is_none() && queued.for_node == 0 {
            self.clients.begin_exec_reply(index, queued, &[]);
            return None;
        }
        let is_watching = pin.is_some();
        let private = match pin {
            Some(pin) => Some(pin.lane),
            None if is_private => match self.private_for(index, node) {
                Ok(lane) => Some(lane),
                Err(error) => {
                    self.clients.strand(index, has_select);
                    return Some(self.refuse(index, error));
                }
            },
            None => None,
        };
        let (sent_on, flow) = self.send_transaction(index, queued, ExecPath { private, node, is_watching });
        match (sent_on, flow) {
            // Nothing else keeps it from asking for more than it can be given: what is queued is answered here.
            (Some(lane), Flow::Next) => Some(self.keep_pace(index, lane, args)),
            _ => Some(flow),
        }
    }

    /// Returns the lane that it has been sent on, if it has been, and how its client goes on.
    fn send_transaction(&mut self, index: ClientId, queued: QueuedCommands, way: ExecPath) -> (Option<LaneId>, Flow) {
        let ExecPath { private, node, is_watching } = way;
        let Some(asker) = self.clients.expect(index) else { return (None, Flow::Stop) };
        let Some(session) = self.clients.sessions.at_mut(index) else { return (None, Flow::Stop) };
        let class = session.class;
        let is_read = queued.has_own() || queued.has_select;
        // What comes behind it must not overtake it while MULTI is tried.
        let is_tried = || {
            let lane = self.lanes.known(node, class);
            lane.is_none_or(|lane| !self.lanes[lane].multi.is_taken())
        };
        let flow = if is_read || private.is_some() || is_tried() {
            session.pause.add(PauseReasons::BARRIER);
            Flow::Pause
        } else {
            Flow::Next
        };
        let exec = Exec {
            asker,
            class: self.lanes.base(class),
            queued,
            private,
            sent_on: None,
            node,
            is_read,
            refusal: None,
            reply: None,
            has_begun: true,
            is_lost: false,
            is_refused: false,
            is_answered: false,
            is_overtaken: false,
            is_late: false,
            is_watching,
            trials: 0,
            lacks_script: false,
            moves: 0,
        };
        self.clients.list(index);
        (self.send_exec(exec), flow)
    }

    /// Puts a whole block into the outbox of its lane: nothing of other clients comes between. Returns the lane, unless nothing has been
    /// sent.
    pub(crate) fn send_exec(&mut self, exec: Exec) -> Option<LaneId> {
        let class = self.clients.sessions.get(exec.asker.session).map_or(exec.class, |session| session.class);
        self.shared.ledger.account(0, exec.queued.held_bytes());
        let lane = match exec.private {
            Some(lane) => self.lanes.find(lane),
            None => Some(self.lanes.lane(&self.config, exec.node, class)),
        };
        let admitted = match lane {
            // What has waited for a trial is held anyway, and to refuse it now would free nothing.
            Some(lane) if exec.trials > 0 && self.lanes[lane].up.is_ready() => Ok(lane),
            Some(lane) => self.lanes.admit(lane, &self.config, self.now).map(|()| lane),
            None => Err(error_text::PIN_LOST.into()),
        };
        self.is_busy = true;
        let lane = match admitted {
            Ok(lane) => lane,
            Err(error) => {
                self.counters.node_errors.add(1);
                let mut exec = exec;
                exec.fail(LostReply::Unsent, &error, &mut self.clients);
                self.end_exec(exec);
                return None;
            }
        };
        let mut exec = exec;
        // CLIENT CACHING is about the next command on a connection whose node tells its client of changes: a trial between
        // the two would take its place. Such a connection is that client's alone.
        let is_tracking = self.lanes[lane].up.identity().tracking.is_some();
        if !self.lanes[lane].multi.is_taken() && !is_tracking {
            self.try_before(lane, exec);
            return None;
        }
        // Taken out for the time of the writing; the task needs it again only if the keys turn out to have moved.
        let queued = std::mem::take(&mut exec.queued);
        exec.sent_on = Some(self.lanes.handle(lane));
        let task = self.tasks.begin(exec);
        let missing = self.lanes.missing_scripts(&self.shared, lane, &queued);
        let Self { lanes, clients, now, .. } = self;
        // EXEC answers for its requests as they are, so what they need has to be there before.
        for named in missing {
            let load = |out: &mut Vec<u8>| say(&[b"SCRIPT", b"LOAD", &named.script])(out);
            lanes.push(lane, Owner::Discard, *now, &mut clients.pool, load);
        }
        let mut push = |step: u16, write: &mut dyn FnMut(&mut Vec<u8>)| {
            let owner: Owner = Tasks::owner(task, step);
            lanes.push(lane, owner, *now, &mut clients.pool, |out| write(out));
        };
        push(BEGIN, &mut |out| say(&[b"MULTI"])(out));
        for request in queued.requests() {
            push(QUEUE, &mut |out| out.extend_from_slice(request));
        }
        push(EXEC, &mut |out| say(&[b"EXEC"])(out));
        if let Some(exec) = self.tasks.get_mut::<Exec>(task) {
            exec.queued = queued;
        }
        Some(lane)
    }

    /// A block is the first on its connection: nothing of it is sent before the node has been seen to take MULTI.
    #[cold]
    fn try_before(&mut self, lane: LaneId, mut exec: Exec) {
        exec.trials += 1;
        if exec.is_watching {
            // It was tried with the first WATCH. A trial now would end the watching.
            let refusal = match &self.lanes[lane].multi {
                Multi::Refused(error) => error.clone(),
                _ => error_text::PIN_LOST.into(),
            };
            exec.refuse(&refusal, &mut self.clients);
        } else if exec.trials > TRIALS_MAX {
            let name = &self.lanes.nodes[exec.node].name;
            let error = error_text::not_sent(name, &"its connections ended one after the other");
            exec.fail(LostReply::Unsent, &error, &mut self.clients);
        } else {
            return self.try_multi(lane, Some(Box::new(exec)));
        }
        self.end_exec(exec);
    }

    /// Nothing of a transaction has been sent, and nothing will be.
    fn end_exec(&mut self, mut exec: Exec) {
        self.settle_exec(&exec);
        self.leave_exec(&mut exec);
    }

    /// What is known by a transaction, however it has ended.
    fn settle_exec(&mut self, exec: &Exec) {
        self.shared.ledger.account(exec.queued.held_bytes(), 0);
        if exec.lacks_script {
            self.shared.scripts().note_flushed();
        }
        if !exec.has_begun {
            // The node took MULTI before. The next transaction finds out first.
            let lane = exec.sent_on.and_then(|lane| self.lanes.find(lane));
            lane.into_iter().for_each(|lane| self.lanes[lane].multi = Multi::Unknown);
        }
    }

    /// A transaction leaves its connection.
    fn leave_exec(&mut self, exec: &mut Exec) {
        if let Some(private) = exec.private.take() {
            self.take_back(private, exec);
        }
        let has_failed = exec.is_lost || exec.is_refused;
        if has_failed && self.clients.sessions.get_mut(exec.asker.session).is_some() {
            self.clients.strand(exec.asker.session.index, exec.queued.has_select);
        }
    }

    /// The reply has come, or will not. Returns the client whose reply is put together here and goes on from now on.
    #[must_use]
    pub(crate) fn conclude_exec(&mut self, mut exec: Exec) -> Option<ClientId> {
        self.settle_exec(&exec);
        let node_at = |address: &str| self.config.find_node(|node| node.endpoint.to_string() == address);
        if let Some(node) = exec.moved_to().and_then(node_at)
            && exec.private.is_none()
            && exec.reply.is_some()
            && exec.moves < MOVES_MAX
        {
            // EXEC was refused because queueing was: nothing has run, so it may be sent again.
            exec.moves += 1;
            exec.refusal = None;
            exec.reply = None;
            exec.node = node;
            let _: Option<LaneId> = self.send_exec(exec);
            return None;
        }
        self.leave_exec(&mut exec);
        let reply = exec.reply.take()?;
        self.clients.sessions.get_mut(exec.asker.session)?;
        let index = exec.asker.session.index;
        if !exec.is_read || elements(&reply).is_none() {
            exec.answer(&reply, &mut self.clients);
            return None;
        }
        // The place ends before the script begins, which then answers as if it had just been asked.
        self.clients.feed(exec.asker.session, exec.asker.seq, &[], true);
        if !exec.asker.is_wanted
            && let Some(session) = self.clients.sessions.at_mut(index)
            && session.reply_mode == ReplyMode::On
        {
            session.reply_mode = ReplyMode::SkipNext;
        }
        self.clients.begin_exec_reply(index, exec.queued, &reply).then_some(index)
    }

    /// Requests are held back: EXEC waits if something of the block would go to a node that is paused, and nothing is ended before.
    #[cold]
    fn hold_exec(&mut self, index: ClientId) -> Option<Flow> {
        let pins = self.clients.sessions.at(index)?.pins.as_deref()?;
        let (queued, watches) = (Transaction::queued_of(&pins.transaction)?, &pins.watches.lanes);
        let is_for_one = self.engine.is_some() || queued.for_node > 0 || !watches.is_empty();
        let one = is_for_one.then(|| node_of(queued, watches).unwrap_or(self.config.default_node()));
        let has_select = queued.has_select;
        let mut nodes = Vec::from_iter(one);
        let mut is_sent = is_for_one;
        if self.engine.is_none() {
            // What the proxy runs of it asks nodes as it would outside of a transaction.
            for (row, args) in queued.own().filter(|(row, args)| self.asks_nodes(row, *args)) {
                is_sent = true;
                if !self.is_all_paused {
                    nodes.extend(self.nodes_of(index, row, args));
                }
            }
        }
        if !is_sent {
            return None;
        }
        match self.hold_for_nodes(index, &nodes)? {
            Held::Waits => Some(Flow::Again),
            Held::Refused(words) => {
                self.counters.holds_expired.add(1);
                Some(self.refuse_queued(index, has_select, error_text::exec_paused(&words)))
            }
        }
    }

    /// What a client has queued is not executed, and it watches nothing any more. `has_select`: it was to select a database by it.
    fn refuse_queued(&mut self, index: ClientId, has_select: bool, error: impl Into<ErrorReply>) -> Flow {
        self.clients.drop_block(index, has_select);
        self.leave_watches(index);
        self.refuse(index, error)
    }

    /// A block has run on a private connection, or tried to.
    fn take_back(&mut self, lane: LaneHandle, exec: &Exec) {
        let Some(place) = self.lanes.find(lane) else { return };
        // EXEC ends both the transaction and the watching, whatever it answers; unless something was answered that no
        // node should answer.
        let is_clean = !exec.is_refused && !exec.queued.has_select;
        if exec.is_lost {
            self.close_lane(place);
        } else if is_clean && self.tasks.has_block_on(lane) {
            // A client that has vanished had sent several. The last of them gives it back.
        } else if exec.is_refused {
            self.give_back(lane, ResetNeeded { is_watching: exec.is_watching, ..ResetNeeded::default() });
        } else {
            self.give_back(lane, ResetNeeded { is_elsewhere: exec.queued.has_select, ..ResetNeeded::default() });
        }
    }
}

impl Clients {
    /// Whether the transaction that a session has queued adds data, for which an engine needs room.
    pub(crate) fn queued_adds_data(&self, index: ClientId) -> bool {
        let session = self.sessions.at(index);
        let queued = session.and_then(|session| Transaction::queued_of(&session.pins.as_ref()?.transaction));
        queued.is_some_and(QueuedCommands::adds_data)
    }

    /// A session's transaction is to run. If it watches something in the engine of this process that ends: the number that the
    /// engine knows it by.
    pub(crate) fn take_local_watch(&mut self, index: ClientId) -> Option<ClientNumber> {
        let session = self.sessions.at_mut(index)?;
        session.pins.as_mut()?.local_watch.take()?;
        Some(session.id)
    }

    /// Whether a client would be another user's, or speak RESP2 again, before a node runs more of its transaction. What comes behind that
    /// is for the state that it asked for.
    fn changes_midway(&mut self, index: ClientId) -> bool {
        let Some(session) = self.sessions.at(index) else { return false };
        let queued = session.pins.as_ref().and_then(|pins| Transaction::queued_of(&pins.transaction));
        let queued = queued.filter(|queued| queued.has_own());
        let changes = queued.and_then(|queued| queued.changes_midway(session.user_name(), session.protocol));
        changes.into_iter().for_each(|wish| self.note_unmet(index, wish));
        changes.is_some()
    }

    /// What a client has queued is not executed, for reasons that a server would not have.
    fn drop_block(&mut self, index: ClientId, has_select: bool) {
        self.discard_queued(index);
        self.strand(index, has_select);
    }

    /// A transaction has not run, for reasons that a server would not have. If it would have selected a database, what comes
    /// behind it is not for the one that is selected now.
    fn strand(&mut self, index: ClientId, has_select: bool) {
        if has_select {
            self.note_unmet(index, WantedState::Database);
        }
    }
}

impl Lanes {
    /// The scripts that a block names and that its node may not know.
    fn missing_scripts(&mut self, shared: &Shared, lane: LaneId, queued: &QueuedCommands) -> Vec<NamedScript> {
        if queued.scripts.is_empty() {
            return Vec::new();
        }
        let scripts = shared.scripts.lock().unwrap_or_else(PoisonError::into_inner);
        let given = &mut self[lane].given;
        queued.scripts.iter().filter(|named| given.lacks(named, &scripts)).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::key_id::LaneKey;
    use crate::testing::env_with_node;

    #[test]
    fn a_transaction_is_refused_if_one_of_two_watches_is_lost() {
        let mut env = env_with_node();
        let client = env.test_client();
        let [first, second] = [0, 1].map(|database| {
            let before = env.test_session(client).class;
            let class = LaneKey { database, ..env.lanes.state_of(before) };
            let class = env.class_of(class).expect("there are numbers");
            env.test_session(client).class = class;
            env.pin(client, NodeId::nth(0)).expect("it may be dialled")
        });
        assert_ne!(first, second, "each database is watched on its own");
        env.lanes.retire(first.index);
        env.begin_queueing(client);
        let _: String = env.take_output(client);
        let flow = crate::testing::request("EXEC", |_, args| env.send_queued(client, args));
        assert_eq!(flow, Some(Flow::Next));
        let output = env.take_output(client);
        assert!(output.starts_with("-CROSSSLOT Watched keys"), "{output}");
        assert!(env.test_session(client).pins.is_none(), "nothing is watched or queued any more");
    }
}
