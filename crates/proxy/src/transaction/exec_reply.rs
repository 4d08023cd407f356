//! The reply to EXEC: the node's elements, and those of requests that the proxy or the engine runs, in the order of the block.

use crate::env::Env;
use crate::ids::{ClientHandle, ClientId};
use crate::interfaces::call::Call;
use crate::interfaces::read_tracker::ReadTracker;
use crate::interfaces::requests::HandleRequests;
use crate::limits::{OWN_BYTES_PER_TURN_MAX, OWN_PER_TURN_MAX};
use crate::reply::progress::ReplyMode;
use crate::session::marks::{Departure, Pins, WantedState};
use crate::session::table::Clients;
use crate::session::{Flow, PauseReasons, Session, SessionFlags};
use crate::transaction::queue::{QueuedCommand, QueuedCommands, is_hello};
use crate::transaction::reply_parts::{ExecReply, Part};
use crate::transaction::state::Transaction;
use respool_command::Execute;
use respool_wire::{Protocol, Request, elements, replies};
use std::collections::VecDeque;

/// Goes on with a client's reply to EXEC, as far as that goes. Its own CLIENT NO-TOUCH holds meanwhile, not that of the current client.
pub(crate) fn continue_exec_reply(by: &mut impl HandleRequests, index: ClientId) -> Flow {
    let env = by.env();
    let session = env.clients.sessions.at(index);
    let is_spared = session.is_some_and(|session| session.flags.has(SessionFlags::NO_TOUCH));
    let was_spared = env.engine.as_mut().map(|engine| engine.spare_uses(is_spared));
    let flow = continue_parts(by, index);
    if let (Some(engine), Some(was_spared)) = (&mut by.env().engine, was_spared) {
        engine.spare_uses(was_spared);
    }
    flow
}

fn continue_parts(by: &mut impl HandleRequests, index: ClientId) -> Flow {
    let mut turn = ExecTurn::begin(&by.env().clients, index);
    loop {
        let part = match turn.next_step(by.env()) {
            ExecStep::Part(part) => part,
            ExecStep::Leave(flow) => return flow,
            ExecStep::Complete(flow) => {
                if by.env().clients.is_tracking(index) {
                    let (env, reads) = by.parts();
                    reads.end_parts(env, index);
                }
                by.end_transaction();
                return flow;
            }
        };
        let flow = do_part(by, index, &part);
        if let Some(flow) = turn.note_done(by.env(), part, flow) {
            return flow;
        }
    }
}

fn do_part(by: &mut impl HandleRequests, index: ClientId, part: &Part) -> Flow {
    let (env, reads) = by.parts();
    match part {
        Part::Remote(bytes) => env.clients.pass_on_part(index, bytes),
        Part::BehindHello(both) => env.clients.pass_on_behind_hello(index, both),
        Part::Select(database) => env.select_in_reply(reads, index, *database),
        Part::Local(row, args) => {
            let unmet = env.ask_unmet(index, row, args.as_args());
            if let Some(flow) = unmet.or_else(|| env.refuse_part(index, row, args.as_args())) {
                return flow;
            }
            if env.clients.is_tracking(index) {
                reads.track_part(env, index, row, args.as_args());
            }
            return by.run(Call { index, row, request: &Request::made(args.as_args()) });
        }
    }
    Flow::Next
}

/// The script that a client's transaction has waited for has ended: the transaction goes on, if it is there still.
pub(crate) fn go_on_behind_script(by: &mut impl HandleRequests, client: ClientHandle) {
    if !by.env().clients.goes_on_with_exec(client) {
        return;
    }
    let departure = by.env().clients.departure_of(client.index);
    // A transaction is not interrupted: a client that may not be read does not keep the rest of its own.
    let _: Flow = continue_exec_reply(by, client.index);
    let env = by.env();
    match departure.filter(|_| env.slices.script.is_none()) {
        Some(Departure::Gone) => env.drop_client(client.index),
        Some(Departure::Closing) => env.close_client(client.index),
        None => env.clients.list(client.index),
    }
}

/// What is next for the reply to an EXEC.
#[derive(Debug)]
enum ExecStep {
    /// This part.
    Part(Part),
    /// Nothing more, and the client goes on like this: all parts have been done.
    Complete(Flow),
    /// Nothing for now, and the client goes on like this.
    Leave(Flow),
}

/// The part of a worker's turn in which it goes on with a client's reply to EXEC.
#[derive(Debug)]
struct ExecTurn {
    index: ClientId,
    /// Parts that were executed here.
    own: usize,
    /// Bytes of replies that waited at its beginning.
    before: usize,
    /// The client has ended its connection, and what comes behind that is done all the same.
    is_stopped: bool,
}

impl ExecTurn {
    fn begin(clients: &Clients, index: ClientId) -> Self {
        Self { index, own: 0, before: clients.waiting_bytes_of(index), is_stopped: false }
    }

    /// The next part, if there is time for it.
    fn next_step(&mut self, env: &mut Env<impl Execute>) -> ExecStep {
        // What the engine of this process does is one transaction; what nodes have not done is none anyway.
        if env.engine.is_none() && self.is_used_up(&env.clients) {
            env.end_slice(self.index);
            return ExecStep::Leave(Flow::Pause);
        }
        match env.clients.next_part(self.index) {
            NextPart::Part(part) => {
                self.own += usize::from(matches!(part, Part::Local(..)));
                ExecStep::Part(part)
            }
            NextPart::None => ExecStep::Leave(Flow::Next),
            NextPart::Gone => ExecStep::Leave(Flow::Stop),
            NextPart::Last { has_taken_time } => {
                if has_taken_time {
                    env.catch_up_behind(self.index);
                }
                ExecStep::Complete(if self.is_stopped { Flow::Stop } else { Flow::Next })
            }
        }
    }

    /// A part has led to this. `Some`: the client goes on like that, and no part is done for now.
    fn note_done(&mut self, env: &mut Env<impl Execute>, part: Part, flow: Flow) -> Option<Flow> {
        let is_whole = env.engine.is_some();
        let hard = env.config.budgets.client_output_hard;
        let mut session = env.clients.sessions.at_mut(self.index);
        match flow {
            Flow::Next => None,
            // A transaction is not interrupted for want of room.
            Flow::Pause if session.as_mut().is_some_and(|s| waits_for_room_alone(s, hard, is_whole)) => None,
            Flow::Pause => Some(Flow::Pause),
            Flow::Stop if is_whole && session.as_mut().is_some_and(|s| ends_unanswered(s)) => {
                self.is_stopped = true;
                None
            }
            Flow::Stop => {
                env.clients.leave_exec_reply(self.index);
                Some(Flow::Stop)
            }
            Flow::Again => {
                env.clients.put_part_back(self.index, part);
                // The request that is being read is EXEC, and that has been dealt with.
                Some(Flow::Pause)
            }
        }
    }

    fn is_used_up(&self, clients: &Clients) -> bool {
        let is_much = || clients.waiting_bytes_of(self.index).saturating_sub(self.before) > OWN_BYTES_PER_TURN_MAX;
        self.own >= OWN_PER_TURN_MAX || self.own > 0 && is_much()
    }
}

/// Whether a client is not read only because of the replies that it has not taken. One that has more of them than it may
/// leaves is disconnected at the end of the turn; what it asked for is done, and not answered. `is_whole`: a transaction is executed
/// as a whole, whatever else keeps its client from being read, as by the engine of this process.
fn waits_for_room_alone(session: &mut Session, hard: usize, is_whole: bool) -> bool {
    let mut others = session.pause;
    others.remove(PauseReasons::OUTPUT);
    // Nor for being about to be closed.
    others.remove(PauseReasons::CLOSING);
    if is_whole {
        others.remove(PauseReasons::SUSPENDED);
        others.remove(PauseReasons::PRESSURE);
    }
    if session.down.waiting_bytes() > hard {
        session.reply_mode = ReplyMode::Off;
    }
    others.is_none()
}

/// The client has ended its own connection. Whether what comes behind that is done all the same, and not answered: as in Redis,
/// the engine of this process executes a transaction as a whole. A client that is no user any more has none of it done.
fn ends_unanswered(session: &mut Session) -> bool {
    session.reply_mode = ReplyMode::Off;
    !session.flags.has(SessionFlags::UNAUTHENTICATED)
}

/// What is left of the reply to an EXEC.
#[derive(Debug)]
enum NextPart {
    /// This.
    Part(Part),
    /// Nothing: that was the last one, and the client goes on as before.
    Last { has_taken_time: bool },
    /// Nothing: none is being put together.
    None,
    /// The client is not there.
    Gone,
}

impl Clients {
    /// Begins to put together the reply to an EXEC of which `said` is the node's part. `false`: its client is not there.
    pub(super) fn begin_exec_reply(&mut self, index: ClientId, queued: QueuedCommands, said: &[u8]) -> bool {
        let mut parts: VecDeque<Part> = VecDeque::with_capacity(queued.entries.len() + 1);
        parts.push_back(Part::Remote(format!("*{}\r\n", queued.entries.len()).into_bytes()));
        let mut said = elements(said).into_iter().flatten();
        let is_resp2 = self.sessions.at(index).is_some_and(|session| session.protocol == Protocol::Resp2);
        let mut shapes = queued.shapes().filter(|_| is_resp2);
        let mut is_behind_hello = false;
        for entry in queued.entries {
            let database = match entry {
                QueuedCommand::Local { row, args } => {
                    is_behind_hello |= is_hello(row);
                    parts.push_back(Part::Local(row, args));
                    continue;
                }
                QueuedCommand::Select { database, .. } => Some(database),
                QueuedCommand::Node { .. } => None,
            };
            let element = said.next().unwrap_or_default();
            let in_resp3 = shapes.as_mut().and_then(|shapes| shapes.convert(element)).filter(|_| is_behind_hello);
            match (in_resp3, parts.back_mut()) {
                (Some(in_resp3), _) => parts.push_back(Part::BehindHello([element.to_vec(), in_resp3])),
                (None, Some(Part::Remote(before))) => before.extend_from_slice(element),
                _ => parts.push_back(Part::Remote(element.to_vec())),
            }
            if let Some(database) = database.filter(|_| element == replies::OK) {
                parts.push_back(Part::Select(database));
            }
        }
        let Some(session) = self.sessions.at_mut(index) else { return false };
        let restored = match session.reply_mode {
            ReplyMode::On => None,
            ReplyMode::Off => Some(ReplyMode::Off),
            ReplyMode::SkipNext => Some(ReplyMode::On),
        };
        if restored.is_some() {
            session.reply_mode = ReplyMode::Off;
        }
        let pins = session.pins_mut();
        (pins.departure, pins.has_taken_time) = (None, false);
        if let Some(transaction) = Transaction::begun(&mut pins.transaction) {
            transaction.exec_reply = Some(ExecReply::new(parts, restored));
        }
        // Messages and invalidations must not be written between the elements of the array.
        session.down.begin_joint();
        session.flags.add(SessionFlags::QUEUEING);
        // What it holds is accounted for at the end of the turn.
        self.list(index);
        true
    }

    /// The next part of a client's reply to EXEC.
    fn next_part(&mut self, index: ClientId) -> NextPart {
        let Some(session) = self.sessions.at_mut(index) else { return NextPart::Gone };
        let Some(pins) = &mut session.pins else { return NextPart::None };
        let Some(reply) = Transaction::reply_in(&mut pins.transaction) else { return NextPart::None };
        if let Some(part) = reply.take_part() {
            return NextPart::Part(part);
        }
        let (restored, has_taken_time) = (reply.restored, pins.has_taken_time);
        end_reply(pins);
        if let Some(mode) = restored {
            session.reply_mode = mode;
        }
        session.settle_pins();
        session.down.end_joint(&mut self.pool);
        self.list(index);
        NextPart::Last { has_taken_time }
    }

    fn is_tracking(&self, index: ClientId) -> bool {
        self.sessions.at(index).is_some_and(|session| session.flags.has(SessionFlags::TRACKING))
    }

    /// What a node has replied, as part of the reply to EXEC.
    fn pass_on_part(&mut self, index: ClientId, bytes: &[u8]) {
        if self.sessions.at(index).is_some_and(|session| session.reply_mode == ReplyMode::On) {
            self.answer(index, |out| out.extend_from_slice(bytes));
        }
    }

    /// The same in the dialect that the client speaks by now: at a server a HELLO of the transaction changes it for the rest.
    #[cold]
    fn pass_on_behind_hello(&mut self, index: ClientId, [in_resp2, in_resp3]: &[Vec<u8>; 2]) {
        let is_resp3 = self.sessions.at(index).is_some_and(|session| session.protocol == Protocol::Resp3);
        self.pass_on_part(index, if is_resp3 { in_resp3 } else { in_resp2 });
    }

    /// The script that was part of a client's transaction has ended. Returns whether the transaction goes on.
    fn goes_on_with_exec(&mut self, client: ClientHandle) -> bool {
        let Some(session) = self.sessions.get(client) else { return false };
        if !session.is_amid_exec_reply() {
            return false;
        }
        if session.down.is_settled() {
            self.unpause(client.index, PauseReasons::BARRIER);
        }
        true
    }

    /// A part is executed later after all.
    fn put_part_back(&mut self, index: ClientId, part: Part) {
        let session = self.sessions.at_mut(index);
        if let Some(reply) = session.and_then(|s| Transaction::reply_in(&mut s.pins.as_mut()?.transaction)) {
            reply.put_back(part);
        }
    }

    /// The client has ended its own connection: what comes behind that is not done.
    fn leave_exec_reply(&mut self, index: ClientId) {
        let Some(session) = self.sessions.at_mut(index) else { return };
        if let Some(pins) = &mut session.pins {
            end_reply(pins);
        }
        session.settle_pins();
        session.down.end_joint(&mut self.pool);
    }
}

/// Nothing is left of a session's reply to EXEC.
fn end_reply(pins: &mut Pins) {
    (pins.departure, pins.has_taken_time) = (None, false);
    if let Some(transaction) = Transaction::of_mut(&mut pins.transaction) {
        transaction.exec_reply = None;
    }
}

impl<E: Execute> Env<E> {
    /// A SELECT of the transaction was executed.
    fn select_in_reply(&mut self, reads: &mut impl ReadTracker, index: ClientId, database: u32) {
        let Some(session) = self.clients.sessions.at(index) else { return };
        let protocol = session.protocol;
        self.shared.databases.note(database);
        if self.reclass(reads, index, database, protocol) {
            self.clients.note_met(index, &[WantedState::Database]);
        } else {
            self.clients.note_unmet(index, WantedState::Database);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::ClientNumber;
    use crate::observe::counters::Counters;
    use respool_command::lookup;
    use respool_connection::Peer;
    use respool_wire::ArgsBuf;
    use std::sync::Arc;

    fn client() -> (Clients, ClientId) {
        let mut clients = Clients::new(Arc::new(Counters::default()));
        let index = clients.sessions.insert(Session::new(ClientNumber::new(1), Peer::default(), 0, 0)).index;
        (clients, index)
    }

    fn queued(entries: Vec<QueuedCommand>) -> QueuedCommands {
        let mut queued = QueuedCommands::default();
        queued.entries = entries;
        queued
    }

    fn local() -> QueuedCommand {
        let row = lookup(b"PING").expect("a known command");
        QueuedCommand::Local { row, args: ["PING"].iter().collect::<ArgsBuf>().as_args().into() }
    }

    #[test]
    fn parts_come_in_the_order_of_the_block() {
        let (mut clients, index) = client();
        let node = || QueuedCommand::Node { end: 0 };
        assert!(clients.begin_exec_reply(
            index,
            queued(vec![node(), local(), node(), node()]),
            b"*3\r\n:1\r\n:2\r\n:3\r\n"
        ));
        let mut shown = Vec::new();
        loop {
            match clients.next_part(index) {
                NextPart::Part(Part::Remote(bytes)) => shown.push(String::from_utf8(bytes).expect("text")),
                NextPart::Part(Part::Local(row, _)) => shown.push(row.name.to_owned()),
                NextPart::Part(part) => panic!("{part:?}"),
                NextPart::Last { .. } => break,
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(shown, ["*4\r\n:1\r\n", "PING", ":2\r\n:3\r\n"]);
        assert!(matches!(clients.next_part(index), NextPart::None));
    }

    #[test]
    fn a_turn_is_used_up_by_what_was_executed_here() {
        let (clients, index) = client();
        let mut turn = ExecTurn::begin(&clients, index);
        turn.own = OWN_PER_TURN_MAX - 1;
        assert!(!turn.is_used_up(&clients));
        turn.own = OWN_PER_TURN_MAX;
        assert!(turn.is_used_up(&clients));
    }

    #[test]
    fn only_want_of_room_lets_a_transaction_go_on() {
        let (mut clients, index) = client();
        let session = clients.sessions.at_mut(index).expect("it is there");
        session.pause.add(PauseReasons::OUTPUT);
        assert!(waits_for_room_alone(session, usize::MAX, false));
        session.pause.add(PauseReasons::PRESSURE);
        assert!(!waits_for_room_alone(session, usize::MAX, false));
        assert!(waits_for_room_alone(session, usize::MAX, true), "an engine executes it as a whole");
        session.pause.add(PauseReasons::BARRIER);
        assert!(!waits_for_room_alone(session, usize::MAX, true));
    }

    #[test]
    fn a_client_that_is_no_user_any_more_has_nothing_done() {
        let (mut clients, index) = client();
        let session = clients.sessions.at_mut(index).expect("it is there");
        assert!(ends_unanswered(session));
        assert_eq!(session.reply_mode, ReplyMode::Off);
        session.flags.add(SessionFlags::UNAUTHENTICATED);
        assert!(!ends_unanswered(session));
    }
}
