//! EXEC: a queued block goes to its node in one piece, and the client gets the reply to EXEC alone.
//!
//! ```text
//!   MULTI  cmd  cmd  ..  EXEC      one piece on a lane, a ticket of the task for each
//!    +OK  +QUEUED ..   *n ...      the first ones are read here
//!                       '--------> the client's place; or, if some requests are ours or a database was selected,
//!                                  a script: the node's elements and our own replies, in the order of the block
//! ```

use crate::env::Env;
use crate::error_text;
use crate::internal_request::{InternalRequest, InternalRequests, LostReply, Progress};
use crate::limits::TRIALS_MAX;
use crate::nodes::id::NodeId;
use crate::pool::key_id::LaneKeyId;
use crate::pool::lease::ResetNeeded;
use crate::pool::replace::Moves;
use crate::pool::table::{LaneHandle, LaneId};
use crate::reply::owner::Owner;
use crate::request::held_requests::Held;
use crate::scripts::NamedScript;
use crate::session::id::ClientId;
use crate::session::refused_state::WantedState;
use crate::session::table::Clients;
use crate::session::{Asker, Flow, Pause, ReplyMode, SessionFlags};
use crate::transaction::multi_probe::{Multi, Then};
use crate::transaction::queue::QueuedCommands;
use crate::transaction::{TransactionState, WatchFailure, WatchedLane, say};
use respool_command::{Execute, text as texts};
use respool_route::PoolMode;
use respool_wire::{Encoder, Protocol, elements, replies};
use std::sync::PoisonError;

/// The requests that a task of this kind has in a lane.
const BEGIN: u16 = 0;
const QUEUE: u16 = 1;
const EXEC: u16 = 2;

/// A block on its way.
#[derive(Debug)]
pub(crate) struct Exec {
    pub(crate) asker: Asker,
    is_wanted: bool,
    /// The client's shared class. The transaction runs there if the client has disconnected before the transaction is sent.
    class: LaneKeyId,
    queued: QueuedCommands,
    /// The private connection that it runs on, if it does.
    private: Option<LaneHandle>,
    /// The connection that it was sent on.
    sent_on: Option<LaneHandle>,
    node: NodeId,
    /// The reply has to be read: some requests are ours, or a database was selected.
    is_read: bool,
    /// What the node said where it should have said OK or QUEUED.
    refusal: Option<Vec<u8>>,
    reply: Option<Vec<u8>>,
    /// MULTI was not refused.
    has_begun: bool,
    /// The state of its connection is not known, or there is none.
    is_lost: bool,
    /// The node refused MULTI before anything else was sent.
    is_refused: bool,
    /// The client has its reply.
    is_answered: bool,
    /// The nodes have changed before anything of it was sent, and it can be sent nowhere now.
    is_overtaken: bool,
    /// Its time was over; what the node says nevertheless is only looked at.
    is_late: bool,
    /// Keys are watched on its connection.
    is_watching: bool,
    /// How often MULTI has been tried for it.
    trials: u8,
    /// The node did not know a script that it had been given: others have flushed them.
    lacks_script: bool,
    /// How often the block has been sent elsewhere because it was not there.
    moves: u8,
}

/// A block is sent after its keys that often. A cluster that goes on moving them while it is asked is at odds with itself.
const MOVES_MAX: u8 = 5;

impl Exec {
    /// The class in which it runs if its client has disconnected.
    pub(crate) fn class(&self) -> LaneKeyId {
        self.class
    }

    /// Other nodes are configured. A block that is on its way is not sent again to a node that has gone.
    pub(crate) fn move_to(&mut self, moves: &Moves) {
        let has_left =
            self.sent_on.map_or_else(|| moves.has_left(self.node), |lane| moves.has_left_on(self.node, lane));
        match has_left {
            true => self.moves = MOVES_MAX,
            false => self.node = moves.namesake_of(self.node).unwrap_or(NodeId::NONE),
        }
    }

    /// Other nodes are configured, and nothing of the block has been sent. It goes to the node of the same name, unless keys are
    /// placed or named in another way now (`has_other_ways`), or it was to run on a connection to the server that was left.
    pub(crate) fn follow(&mut self, moves: &Moves, has_other_ways: bool) {
        let is_bound = has_other_ways || self.private.is_some_and(|lane| moves.has_left_on(self.node, lane));
        match moves.namesake_of(self.node).filter(|_| !is_bound) {
            Some(node) => self.node = node,
            None => self.is_overtaken = true,
        }
    }

    /// Whether it runs on this private connection.
    pub(crate) fn runs_on(&self, lane: LaneHandle) -> bool {
        self.private == Some(lane)
    }

    /// Whether it runs on this private connection, and has not been answered.
    pub(crate) fn waits_on(&self, lane: LaneHandle) -> bool {
        self.runs_on(lane) && !self.is_answered
    }

    /// It has the connection to itself from now on that it was to share with its client's other requests.
    pub(crate) fn take_for_itself(&mut self, lane: LaneHandle) {
        self.private = Some(lane);
    }

    /// The same, if it was sent on this connection and has not been answered. Returns whether it was.
    pub(crate) fn bind_to(&mut self, lane: LaneHandle) -> bool {
        let is_on_it = self.sent_on == Some(lane) && !self.is_answered;
        if is_on_it {
            self.take_for_itself(lane);
        }
        is_on_it
    }

    pub(crate) fn is_overtaken(&self) -> bool {
        self.is_overtaken
    }

    pub(crate) fn is_answered(&self) -> bool {
        self.is_answered
    }

    pub(crate) fn is_late(&self) -> bool {
        self.is_late
    }

    /// Bytes held.
    pub(crate) fn held_bytes(&self) -> usize {
        self.queued.held_bytes()
    }

    pub(crate) fn feed(&mut self, step: u16, reply: &[u8], clients: &mut Clients) -> Progress {
        let awaited = match step {
            BEGIN => replies::OK,
            QUEUE => replies::QUEUED,
            _ => return self.finish(reply, clients),
        };
        if reply != awaited {
            if !is_error(reply) {
                return self.doubt(clients);
            }
            self.refusal.get_or_insert_with(|| reply.to_vec());
            self.has_begun &= step != BEGIN;
        }
        Progress::Waits
    }

    /// No node answers a transaction so. The client, and all behind it, would get replies of others.
    fn doubt(&mut self, clients: &mut Clients) -> Progress {
        self.is_lost = true;
        self.answer(&error_text::exec_in_doubt(), clients);
        Progress::OutOfStep
    }

    fn finish(&mut self, reply: &[u8], clients: &mut Clients) -> Progress {
        let replies = elements(reply).map(|replies| replies.declared());
        let is_over = match replies {
            // One reply for each request that was queued, and none was refused.
            Some(count) => self.refusal.is_none() && count == self.queued.for_node as u64,
            None if self.has_begun => is_null(reply) || is_abort(reply),
            None => reply.starts_with(WITHOUT_MULTI),
        };
        if !is_over && self.has_begun && is_error(reply) {
            // EXEC itself was refused, as old servers do while a script runs, and the transaction is still open: others on
            // the connection would go on with it. Nothing has run, and nothing will once the connection is closed.
            self.is_lost = true;
            self.answer(&aborted(self.refusal.as_deref().unwrap_or(reply)), clients);
            return Progress::OutOfStep;
        }
        if !is_over {
            return self.doubt(clients);
        }
        if self.is_answered {
            return Progress::Through;
        }
        let has_run = replies.is_some();
        self.lacks_script = !self.queued.scripts.is_empty()
            && elements(reply).is_some_and(|mut replies| replies.any(|reply| reply.starts_with(b"-NOSCRIPT")));
        if !self.has_begun {
            // Without MULTI nothing was queued, and what was not refused for the same reason ran alone.
            self.is_lost = true;
            let refusal = self.refusal.take().filter(|r| r.starts_with(b"-")).unwrap_or_else(error_text::exec_in_doubt);
            self.answer(&aborted(&refusal), clients);
        } else if self.is_read && has_run || self.moved_to().is_some() {
            self.reply = Some(reply.to_vec());
        } else if let Some(refusal) = self.refusal.as_deref().filter(|r| r.starts_with(b"-")) {
            // The client saw its requests queued, so to it EXEC is the first that is refused, and for this reason.
            let line = aborted(refusal);
            self.answer(&line, clients);
        } else {
            self.answer(reply, clients);
        }
        Progress::Through
    }

    pub(crate) fn fail(&mut self, loss: LostReply, error: &[u8], clients: &mut Clients) -> Progress {
        self.is_lost = true;
        self.answer(error, clients);
        // Others share the connection, and a transaction that is not over would go on with their requests.
        self.is_late = loss == LostReply::Late && self.private.is_none();
        if self.is_late { Progress::Waits } else { Progress::Through }
    }

    /// The node refuses MULTI. Nothing else has been sent.
    pub(crate) fn refuse(&mut self, words: &[u8], clients: &mut Clients) {
        self.is_refused = true;
        self.answer(&aborted(words), clients);
    }

    fn answer(&mut self, reply: &[u8], clients: &mut Clients) {
        if std::mem::replace(&mut self.is_answered, true) {
            return;
        }
        clients.feed(self.asker.session, self.asker.seq, if self.is_wanted { reply } else { &[] }, true);
    }

    /// Where the node says the keys are, if that is why it refused to queue them.
    fn moved_to(&self) -> Option<&str> {
        let line = self.refusal.as_deref()?.strip_prefix(b"-MOVED ")?;
        std::str::from_utf8(line).ok()?.trim_end().split(' ').nth(1)
    }
}

/// The node that a block runs at, if anything binds it to one.
fn node_of(queued: &QueuedCommands, watches: &[WatchedLane]) -> Option<NodeId> {
    queued.node.or(watches.first().map(|watch| watch.node)).or(queued.keyless_node)
}

/// What a node says to EXEC if it has taken no MULTI.
const WITHOUT_MULTI: &[u8] = b"-ERR EXEC without MULTI";

/// What a client is told whose transaction a node has refused in these words. None of it has run.
fn aborted(refusal: &[u8]) -> Vec<u8> {
    let (mut words, mut line) = (Vec::new(), Vec::new());
    texts::exec_refused(refusal, &mut words);
    Encoder::new(&mut line, Protocol::Resp2).error(&words);
    line
}

/// Whether a node says that it has thrown a transaction away.
pub(crate) fn is_abort(reply: &[u8]) -> bool {
    reply.starts_with(b"-EXECABORT")
}

pub(crate) fn is_error(reply: &[u8]) -> bool {
    matches!(reply.first(), Some(b'-' | b'!'))
}

/// A transaction whose watched keys have changed.
fn is_null(reply: &[u8]) -> bool {
    matches!(reply, b"*-1\r\n" | b"$-1\r\n" | b"_\r\n")
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
        let Some(TransactionState { queued: Some(queued), .. }) = session.pins.as_deref_mut() else {
            return Some(Flow::Stop);
        };
        if queued.is_dirty {
            let is_stranded = queued.strands();
            self.discard_queued(index);
            self.leave_watches(index);
            self.strand(index, is_stranded);
            return Some(self.refuse(index, texts::EXECABORT.as_bytes()));
        }
        let is_touched = session.pins.as_ref().is_some_and(|pins| pins.is_touched);
        if is_touched {
            self.discard_queued(index);
            self.leave_watches(index);
            self.answer(index, |reply| reply.null_array());
            return Some(Flow::Next);
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
        if is_watching_here && self.settle_before(index).is_none() {
            return Some(Flow::Again);
        }
        None
    }

    /// Whether the transaction that a session has queued adds data, for which an engine needs room.
    pub(crate) fn queued_adds_data(&self, index: ClientId) -> bool {
        let session = self.clients.sessions.at(index);
        let queued = session.and_then(|session| session.pins.as_ref()?.queued.as_ref());
        queued.is_some_and(QueuedCommands::adds_data)
    }

    /// A session's transaction is to run. If it watches something in the engine of this process that ends: the number that the
    /// engine knows it by.
    pub(crate) fn take_local_watch(&mut self, index: ClientId) -> Option<u64> {
        let session = self.clients.sessions.at_mut(index)?;
        session.pins.as_mut()?.local_watch.take()?;
        Some(session.id)
    }

    /// The queued transaction goes to its node. `None`: no node has a part in it, and its reply is put together here.
    pub(crate) fn send_queued(&mut self, index: ClientId) -> Option<Flow> {
        let Some(session) = self.clients.sessions.at_mut(index) else { return Some(Flow::Stop) };
        let class = session.class;
        let Some(TransactionState { queued: Some(queued), watches, failure, .. }) = session.pins.as_deref_mut() else {
            return Some(Flow::Stop);
        };
        if *failure != WatchFailure::None {
            let has_select = queued.has_select;
            self.discard_queued(index);
            self.leave_watches(index);
            self.strand(index, has_select);
            self.answer(index, |reply| reply.raw(&error_text::pin_lost()));
            return Some(Flow::Next);
        }
        let is_watching = !watches.is_empty();
        let (has_own, has_select, mode) = (queued.has_own(), queued.has_select, queued.mode);
        let has_scripts = queued.has_scripts;
        // What might wait does so on a connection of its own, should the node not take MULTI any more.
        let waits = queued.has_blocking;
        let node = node_of(queued, watches).unwrap_or(self.config.default_node());
        let class = self.lanes.without_scripts(class);
        let is_elsewhere = watches.iter().any(|w| w.node != node || !self.lanes.is_pinned_in(w, class));
        if is_elsewhere {
            self.discard_queued(index);
            self.leave_watches(index);
            self.strand(index, has_select);
            return Some(self.refuse(index, error_text::WATCHED_ELSEWHERE.as_bytes()));
        }
        let mode = mode.unwrap_or_else(|| self.mode_of(index));
        let is_transaction_mode = mode == PoolMode::Transaction && self.engine.is_none();
        let is_private = is_transaction_mode || is_watching || has_select || waits && self.engine.is_none();
        if mode == PoolMode::Session
            && !is_watching
            && self.engine.is_none()
            && let Some(flow) = self.own_nodes(index, &[node])
        {
            if flow != Flow::Again {
                self.discard_queued(index);
                self.strand(index, has_select);
            }
            return Some(flow);
        }
        if has_scripts
            && !is_private
            && let Some(flow) = self.go_with_scripts(index)
        {
            return Some(flow);
        }
        if (is_private || has_own) && self.settle_before(index).is_none() {
            return Some(Flow::Again);
        }
        let Some(session) = self.clients.sessions.at_mut(index) else { return Some(Flow::Stop) };
        let Some(pins) = session.pins.as_deref_mut() else { return Some(Flow::Stop) };
        let Some(queued) = pins.queued.take() else { return Some(Flow::Stop) };
        let pin = pins.watches.pop();
        session.settle_pins();
        if pin.is_some() {
            self.unpin();
        }
        self.counters.transactions.add(1);
        if pin.is_none() && queued.for_node == 0 {
            self.begin_exec_reply(index, queued, &[]);
            return None;
        }
        let is_watching = pin.is_some();
        let private = match pin {
            Some(pin) => Some(pin.lane),
            None if is_private => match self.private_for(index, node) {
                Ok(lane) => Some(lane),
                Err(error) => {
                    self.strand(index, has_select);
                    self.answer(index, |reply| reply.raw(&error));
                    return Some(Flow::Next);
                }
            },
            None => None,
        };
        Some(self.send_transaction(index, queued, ExecPath { private, node, is_watching }))
    }

    fn send_transaction(&mut self, index: ClientId, queued: QueuedCommands, way: ExecPath) -> Flow {
        let ExecPath { private, node, is_watching } = way;
        let is_wanted = self.passes_reply(index);
        let Some(handle) = self.clients.sessions.handle(index) else { return Flow::Stop };
        let Some(session) = self.clients.sessions.at_mut(index) else { return Flow::Stop };
        let asker = Asker { session: handle, seq: session.down.expect() };
        let class = session.class;
        let is_read = queued.has_own() || queued.has_select;
        // What comes behind it must not overtake it while MULTI is tried.
        let is_tried = || {
            let lane = self.lanes.known(node, class);
            lane.is_none_or(|lane| !self.lanes[lane].multi.is_taken())
        };
        let flow = if is_read || private.is_some() || is_tried() {
            session.pause.add(Pause::BARRIER);
            Flow::Pause
        } else {
            Flow::Next
        };
        let exec = Exec {
            asker,
            is_wanted,
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
        self.send_exec(exec);
        flow
    }

    /// Puts a whole block into the outbox of its lane: nothing of other clients comes between.
    pub(crate) fn send_exec(&mut self, exec: Exec) {
        let class = self.clients.sessions.get(exec.asker.session).map_or(exec.class, |session| session.class);
        self.shared.ledger.account(0, exec.queued.held_bytes());
        let lane = match exec.private {
            Some(lane) => self.lanes.find(lane),
            None => Some(self.lanes.lane(&self.config, exec.node, class)),
        };
        let admitted = match lane {
            Some(lane) => self.lanes.admit(lane, &self.config, self.now).map(|()| lane),
            None => Err(error_text::pin_lost()),
        };
        self.is_busy = true;
        let lane = match admitted {
            Ok(lane) => lane,
            Err(error) => {
                self.counters.node_errors.add(1);
                let mut exec = exec;
                exec.fail(LostReply::Unsent, &error, &mut self.clients);
                return self.end_exec(exec);
            }
        };
        let mut exec = exec;
        // CLIENT CACHING is about the next command on a connection whose node tells its client of changes: a trial between
        // the two would take its place. Such a connection is that client's alone.
        let is_tracking = self.lanes[lane].up.identity().tracking.is_some();
        if !self.lanes[lane].multi.is_taken() && !is_tracking {
            return self.try_before(lane, exec);
        }
        // Taken out for the time of the writing; the task needs it again only if the keys turn out to have moved.
        let queued = std::mem::take(&mut exec.queued);
        exec.sent_on = Some(self.lanes.handle(lane));
        let task = self.tasks.begin(InternalRequest::Exec(Box::new(exec)));
        let missing = self.missing_scripts(lane, &queued);
        let Self { lanes, clients, now, .. } = self;
        // EXEC answers for its requests as they are, so what they need has to be there before.
        for named in missing {
            let load = |out: &mut Vec<u8>| say(&[b"SCRIPT", b"LOAD", &named.script])(out);
            lanes.push(lane, Owner::Discard, *now, &mut clients.pool, load);
        }
        let mut push = |step: u16, write: &mut dyn FnMut(&mut Vec<u8>)| {
            let owner: Owner = InternalRequests::owner(task, step);
            lanes.push(lane, owner, *now, &mut clients.pool, |out| write(out));
        };
        push(BEGIN, &mut |out| say(&[b"MULTI"])(out));
        for request in queued.requests() {
            push(QUEUE, &mut |out| out.extend_from_slice(request));
        }
        push(EXEC, &mut |out| say(&[b"EXEC"])(out));
        if let Some(InternalRequest::Exec(exec)) = self.tasks.get_mut(task) {
            exec.queued = queued;
        }
    }

    /// A block is the first on its connection: nothing of it is sent before the node has been seen to take MULTI.
    #[cold]
    fn try_before(&mut self, lane: LaneId, mut exec: Exec) {
        exec.trials += 1;
        if exec.is_watching {
            // It was tried with the first WATCH. A trial now would end the watching.
            let refusal = match &self.lanes[lane].multi {
                Multi::Refused(words) => words.to_vec(),
                _ => error_text::pin_lost(),
            };
            exec.refuse(&refusal, &mut self.clients);
        } else if exec.trials > TRIALS_MAX {
            let name = &self.lanes.nodes[exec.node].name;
            let error = error_text::not_sent(name, &"its connections ended one after the other");
            exec.fail(LostReply::Unsent, &error, &mut self.clients);
        } else {
            return self.try_multi(lane, Then::Send(Box::new(exec)));
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
            self.scripts().note_flushed();
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
            self.strand(exec.asker.session.index, exec.queued.has_select);
        }
    }

    /// The reply has come, or will not. Returns the client whose reply is put together here and goes on from now on.
    #[must_use]
    pub(crate) fn conclude_exec(&mut self, mut exec: Exec) -> Option<ClientId> {
        self.settle_exec(&exec);
        if let Some(node) = exec.moved_to().and_then(|address| self.node_at(address))
            && exec.private.is_none()
            && exec.reply.is_some()
            && exec.moves < MOVES_MAX
        {
            // EXEC was refused because queueing was: nothing has run, so it may be sent again.
            exec.moves += 1;
            exec.refusal = None;
            exec.reply = None;
            exec.node = node;
            self.send_exec(exec);
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
        if !exec.is_wanted
            && let Some(session) = self.clients.sessions.at_mut(index)
            && session.reply_mode == ReplyMode::On
        {
            session.reply_mode = ReplyMode::SkipNext;
        }
        self.begin_exec_reply(index, exec.queued, &reply).then_some(index)
    }

    /// Requests are held back: EXEC waits if it would go to a node that is paused, and nothing is ended before.
    #[cold]
    fn hold_exec(&mut self, index: ClientId) -> Option<Flow> {
        let TransactionState { queued: Some(queued), watches, .. } =
            self.clients.sessions.at(index)?.pins.as_deref()?
        else {
            return None;
        };
        if self.engine.is_none() && queued.for_node == 0 && watches.is_empty() {
            return None;
        }
        let node = node_of(queued, watches).unwrap_or(self.config.default_node());
        let has_select = queued.has_select;
        match self.hold_for_nodes(index, &[node])? {
            Held::Waits => Some(Flow::Again),
            Held::Refused(words) => {
                self.counters.holds_expired.add(1);
                self.discard_queued(index);
                self.leave_watches(index);
                self.strand(index, has_select);
                let words = format!("EXECABORT Transaction discarded because of: {words}; nothing of it was sent");
                Some(self.refuse(index, words.as_bytes()))
            }
        }
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

    /// A transaction has not run, for reasons that a server would not have. If it would have selected a database, what comes
    /// behind it is not for the one that is selected now.
    fn strand(&mut self, index: ClientId, has_select: bool) {
        if has_select {
            self.note_unmet(index, WantedState::Database);
        }
    }

    /// A connection for what must not share one: the client's own if it has one to the node.
    pub(crate) fn private_for(&mut self, index: ClientId, node: NodeId) -> Result<LaneHandle, Vec<u8>> {
        let class = self.clients.sessions.at(index).map_or(LaneKeyId::PLAIN, |session| session.class);
        if self.lanes.owns(class, node) {
            let lane = self.lanes.lane(&self.config, node, class);
            return Ok(self.lanes.handle(lane));
        }
        self.lend(index, node, |lanes, config, class, now| lanes.borrow(config, node, class, now))
    }

    /// The scripts that a block names and that its node may not know.
    fn missing_scripts(&mut self, lane: LaneId, queued: &QueuedCommands) -> Vec<NamedScript> {
        if queued.scripts.is_empty() {
            return Vec::new();
        }
        let scripts = self.shared.scripts.lock().unwrap_or_else(PoisonError::into_inner);
        let given = &mut self.lanes[lane].given;
        queued.scripts.iter().filter(|named| given.lacks(named, &scripts)).cloned().collect()
    }

    fn node_at(&self, address: &str) -> Option<NodeId> {
        self.config.find_node(|node| node.endpoint.to_string() == address)
    }
}
