//! Connections that serve one client for good: MONITOR, and what replicas say.
//!
//! ```text
//!             MONITOR, SYNC, PSYNC                   the node agrees
//!   [shared] ----------------------> [asking] ---------------------------> [passing] --- client leaves,
//!      |  ^                         ^  |  the node refuses: its error         |  |       node ends: both
//!      |  '-------------------------|--'  (MONITOR: connections closed)       |  |       are closed
//!      |   '------------------------|---------- RESET of MONITOR: closed -----'  |
//!      |                            |                                            |
//!      '- REPLCONF -> [preparing] --' <--- SYNC, PSYNC refused ---- (asking)     '-- slow client: nodes not read
//!                          '---- RESET, client leaves: closed
//! ```
//!
//! Nothing is passed on before the node has agreed, and nothing of other clients ever goes over such a connection: it is
//! closed in the end, never lent again. To a replica the node's bytes pass as they come, and it gets nothing else; what it
//! says is still read request by request, so that it may do no more than its user. MONITOR shows the lines of all nodes,
//! each whole; the client may go on asking for what is not about keys, as it may in Redis.

use crate::config::Config;
use crate::env::Env;
use crate::error_text;
use crate::limits::{AGREEMENT_BYTES_MAX, AGREEMENT_US_MIN, MONITOR_LINE_BYTES_MAX};
use crate::nodes::id::NodeId;
use crate::pool::replace::Moves;
use crate::pool::table::{LaneHandle, LaneId};
use crate::pool::{LaneUse, Lanes};
use crate::reply::owner::Owner;
use crate::session::id::{ClientHandle, ClientId};
use crate::session::table::Clients;
use crate::session::{Asker, Flow, Pause, Session, SessionFlags};
use respool_command::{Command, ConnectionCommand as C, Execute, Flags, Row, ServerCommand as S, text as texts};
use respool_connection::Action;
use respool_wire::{Args, Request, encode_request, replies};

/// What for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Monitor,
    Replica,
}

/// How far it has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// A replica has told the node of itself and follows it not yet.
    Preparing,
    /// Nodes have been asked and have not all agreed. `is_wanted`: the client has not switched replies off.
    Asking { asker: Asker, since_us: u64, is_wanted: bool },
    /// The node's bytes are the client's.
    Passing { asker: Asker },
}

/// A connection to one node.
#[derive(Debug)]
struct Link {
    node: NodeId,
    lane: LaneHandle,
    has_agreed: bool,
    /// The beginning of the node's answer, or of a line of MONITOR.
    partial: Vec<u8>,
    /// The rest of the line is left out.
    is_cut: bool,
}

/// What one client has of connections that serve it alone.
#[derive(Debug)]
pub(crate) struct Dedicated {
    kind: Kind,
    stage: Stage,
    links: Vec<Link>,
    since_us: u64,
    /// The nodes are not read because the client does not read.
    is_paused: bool,
}

/// What a node's bytes mean.
#[derive(Debug, PartialEq, Eq)]
enum Parsed {
    /// Nothing yet.
    Nothing,
    /// These are the client's.
    Bytes(Vec<u8>),
    /// The node has agreed; these are the client's.
    Agreed(Vec<u8>),
    /// The node refuses, with this error.
    Refused(Vec<u8>),
    /// The node answers as no node should.
    Nonsense,
}

impl Link {
    fn take(&mut self, kind: Kind, bytes: &[u8]) -> Parsed {
        if self.has_agreed {
            return match kind {
                Kind::Replica => Parsed::Bytes(bytes.to_vec()),
                Kind::Monitor => self.lines(bytes),
            };
        }
        self.partial.extend_from_slice(bytes);
        let end = self.partial.windows(2).position(|pair| pair == b"\r\n").map(|at| at + 2);
        match (self.partial.first(), kind, end) {
            (None, ..) => Parsed::Nothing,
            (Some(b'-'), _, Some(end)) => {
                let is_all = end == self.partial.len();
                self.partial.truncate(end);
                if is_all { Parsed::Refused(std::mem::take(&mut self.partial)) } else { Parsed::Nonsense }
            }
            (Some(b'-'), _, None) | (Some(_), Kind::Monitor, None) => {
                if self.partial.len() > AGREEMENT_BYTES_MAX {
                    Parsed::Nonsense
                } else {
                    Parsed::Nothing
                }
            }
            // Whatever else begins here: the status of PSYNC, the length of a snapshot, or the empty lines by which the
            // node says that it is still making it.
            (Some(_), Kind::Replica, _) => {
                self.has_agreed = true;
                Parsed::Agreed(std::mem::take(&mut self.partial))
            }
            (Some(_), Kind::Monitor, Some(end)) => {
                if self.partial.get(..end) != Some(replies::OK) {
                    return Parsed::Nonsense;
                }
                self.has_agreed = true;
                let rest = std::mem::take(&mut self.partial).split_off(end);
                match self.lines(&rest) {
                    Parsed::Bytes(lines) => Parsed::Agreed(lines),
                    Parsed::Nonsense => Parsed::Nonsense,
                    _ => Parsed::Agreed(Vec::new()),
                }
            }
        }
    }

    /// Whole lines, each with its end; what is left of the last one is kept. A very long line is cut.
    fn lines(&mut self, bytes: &[u8]) -> Parsed {
        let mut lines = Vec::new();
        let mut rest = bytes;
        let mut is_begun = self.is_cut || !self.partial.is_empty();
        while let Some(first) = rest.first() {
            // What is shown to the client is nothing else, so that no reply of another kind can be made of it.
            if !is_begun && *first != b'+' {
                return Parsed::Nonsense;
            }
            is_begun = false;
            let Some(at) = rest.iter().position(|byte| *byte == b'\n') else { break };
            let (line, behind) = rest.split_at(at + 1);
            rest = behind;
            let start = lines.len();
            lines.append(&mut self.partial);
            match std::mem::take(&mut self.is_cut) {
                true => lines.extend_from_slice(b"...\r\n"),
                false => lines.extend_from_slice(line),
            }
            if !is_line(lines.get(start..).unwrap_or_default()) {
                return Parsed::Nonsense;
            }
        }
        if !self.is_cut {
            let room = MONITOR_LINE_BYTES_MAX.saturating_sub(self.partial.len());
            self.is_cut = rest.len() > room;
            // A line's end may have come in part: without its beginning.
            let rest = rest.strip_suffix(b"\r").filter(|_| self.is_cut).unwrap_or(rest);
            self.partial.extend_from_slice(rest.get(..room).unwrap_or(rest));
        }
        if lines.is_empty() { Parsed::Nothing } else { Parsed::Bytes(lines) }
    }
}

/// Whether this is one line, which ends as lines of the protocol do.
fn is_line(line: &[u8]) -> bool {
    line.iter().position(|byte| *byte == b'\r').is_some_and(|at| at + 2 == line.len())
}

impl Dedicated {
    fn new(kind: Kind, since_us: u64) -> Self {
        Self { kind, stage: Stage::Preparing, links: Vec::new(), since_us, is_paused: false }
    }

    /// Bytes held.
    pub(crate) fn held_bytes(&self) -> usize {
        size_of::<Self>() + self.links.iter().map(|link| size_of::<Link>() + link.partial.capacity()).sum::<usize>()
    }

    /// What it is, in a word.
    pub(crate) fn reason(&self) -> &'static str {
        match (self.kind, self.stage) {
            (Kind::Monitor, _) => "monitor",
            (Kind::Replica, Stage::Preparing) => "replconf",
            (Kind::Replica, _) => "replica",
        }
    }

    /// Since when, and to which nodes.
    pub(crate) fn places(&self) -> (u64, impl Iterator<Item = NodeId> + '_) {
        (self.since_us, self.links.iter().map(|link| link.node))
    }

    /// The letter by which CLIENT LIST tells of it.
    pub(crate) fn flag(&self) -> Option<char> {
        match (self.kind, self.stage) {
            (Kind::Monitor, Stage::Passing { .. }) => Some('O'),
            (Kind::Replica, Stage::Passing { .. }) => Some('S'),
            _ => None,
        }
    }

    /// Its bytes are the node's, and nothing of ours may come between them.
    fn is_raw(&self) -> bool {
        self.kind == Kind::Replica && matches!(self.stage, Stage::Passing { .. })
    }

    fn asker(&self) -> Option<Asker> {
        match self.stage {
            Stage::Preparing => None,
            Stage::Asking { asker, .. } | Stage::Passing { asker } => Some(asker),
        }
    }
}

impl Session {
    pub(crate) fn dedicated(&self) -> Option<&Dedicated> {
        self.pins.as_ref()?.dedicated.as_deref()
    }

    /// Whether the client follows a node.
    pub(crate) fn is_replica(&self) -> bool {
        self.dedicated().is_some_and(Dedicated::is_raw)
    }

    fn dedicated_mut(&mut self) -> Option<&mut Dedicated> {
        self.pins.as_mut()?.dedicated.as_deref_mut()
    }
}

impl Clients {
    fn feed_all(&mut self, asker: Asker, bytes: &[u8]) {
        self.feed(asker.session, asker.seq, bytes, false);
    }
}

impl<E: Execute> Env<E> {
    /// A request of the dedicated lane.
    #[cold]
    pub(crate) fn dedicate(&mut self, index: ClientId, row: &'static Row, request: &Request<'_>) -> Flow {
        if row.is_admin(request.args) && self.refuses_to_steer(row) {
            return self.refuse(index, error_text::admin_refused(row.name).as_bytes());
        }
        let in_transaction =
            self.clients.sessions.at(index).and_then(|s| s.pins.as_ref()).is_some_and(|pins| pins.exec_reply.is_some());
        match row.command {
            Command::Server(S::Monitor) if in_transaction => self.refuse(index, texts::MONITOR_DENIED.as_bytes()),
            _ if in_transaction => self.refuse_unsupported(index, row, "not inside a transaction"),
            _ if self.engine.is_some() => {
                self.refuse_unsupported(index, row, "the engine in this process has no connections of this kind")
            }
            Command::Server(S::Monitor) => self.monitor(index, request.args),
            Command::Server(S::Replconf) => self.replconf(index, row, request.args),
            Command::Server(S::Sync | S::Psync) => self.follow(index, row, request.args),
            _ => self.refuse_unsupported(index, row, "it changes what its connection is; ask the node itself"),
        }
    }

    /// A request of a session with connections of its own for good. `None`: it is done as any other.
    pub(crate) fn while_dedicated(
        &mut self,
        index: ClientId,
        row: &'static Row,
        request: &Request<'_>,
    ) -> Option<Flow> {
        let dedicated = self.clients.sessions.at(index)?.dedicated()?;
        if dedicated.is_raw() {
            return Some(self.pass_to_node(index, request.args));
        }
        if dedicated.kind == Kind::Replica {
            return None;
        }
        match row.command {
            Command::Connection(C::Reset | C::Quit) => None,
            Command::Server(S::Replconf) => Some(self.refuse_unsupported(index, row, "its client monitors")),
            // As in Redis, without an answer.
            Command::Server(S::Monitor | S::Sync | S::Psync) => Some(Flow::Next),
            _ if crate::commands::client_pause::may_change(row) || row.flags.has(Flags::READONLY) => {
                Some(self.refuse_unread(index, texts::REPLICA_AND_KEYSPACE.as_bytes()))
            }
            _ => None,
        }
    }

    /// MONITOR: every node shows what it is asked.
    fn monitor(&mut self, index: ClientId, args: Args<'_>) -> Flow {
        if self.settle_before(index).is_none() {
            return Flow::Again;
        }
        self.leave_dedicated(index);
        let mut dedicated = Box::new(Dedicated::new(Kind::Monitor, self.now.mono_us));
        for node in self.config.node_ids() {
            match self.link(index, node, LaneUse::Dedicated) {
                Ok(link) => dedicated.links.push(link),
                Err(error) => {
                    self.close_links(&dedicated);
                    self.answer(index, |reply| reply.raw(&error));
                    return Flow::Next;
                }
            }
        }
        self.begin_dedicated(index, dedicated, args)
    }

    /// REPLCONF: what a replica tells the node of itself holds for the connection on which it is told.
    fn replconf(&mut self, index: ClientId, row: &'static Row, args: Args<'_>) -> Flow {
        if self.config.nodes.len() != 1 {
            return self.refuse_unsupported(index, row, error_text::ONE_NODE_ONLY);
        }
        let is_silent = |option: &[u8]| option.eq_ignore_ascii_case(b"ACK") || option.eq_ignore_ascii_case(b"GETACK");
        if args.from(1).iter().step_by(2).any(is_silent) && args.len() % 2 == 1 {
            // Only a replica that follows acknowledges; Redis ignores all others.
            return Flow::Next;
        }
        let known = self.clients.sessions.at(index).and_then(Session::dedicated).and_then(|d| d.links.first());
        let lane = match known.map(|link| link.lane) {
            Some(lane) => lane,
            None => match self.link(index, NodeId::at(0), LaneUse::Private) {
                Ok(link) => {
                    let lane = link.lane;
                    let mut dedicated = Box::new(Dedicated::new(Kind::Replica, self.now.mono_us));
                    dedicated.links.push(link);
                    self.hold_dedicated(index, dedicated);
                    lane
                }
                Err(error) => {
                    self.answer(index, |reply| reply.raw(&error));
                    return Flow::Next;
                }
            },
        };
        let Some(lane) = self.lanes.find(lane) else { return self.refuse_lost(index) };
        let is_wanted = self.passes_reply(index);
        let Some(handle) = self.clients.sessions.handle(index) else { return Flow::Stop };
        let Some(session) = self.clients.sessions.at_mut(index) else { return Flow::Stop };
        let owner = match is_wanted {
            true => Owner::Client { index, generation: handle.generation, seq: session.down.expect() },
            false => Owner::Unanswered { index, generation: handle.generation },
        };
        let Self { lanes, clients, config, now, .. } = self;
        let write = |out: &mut Vec<u8>| encode_request(out, args.iter());
        match (lanes.send(lane, owner, config, *now, &mut clients.pool, write), owner) {
            (Err(error), Owner::Client { seq, .. }) => clients.fail(handle, seq, &error),
            (Err(_), _) => {}
            (Ok(()), owner) => clients.note_sent(owner),
        }
        self.is_busy = true;
        self.keep_pace(index, lane)
    }

    /// What the node was told of the client is lost with its connection: as if the client were new.
    fn refuse_lost(&mut self, index: ClientId) -> Flow {
        self.leave_dedicated(index);
        self.answer(index, |reply| reply.raw(&error_text::replica_lost()));
        Flow::Next
    }

    /// SYNC and PSYNC: the client follows the node.
    fn follow(&mut self, index: ClientId, row: &'static Row, args: Args<'_>) -> Flow {
        if self.config.nodes.len() != 1 {
            return self.refuse_unsupported(index, row, error_text::ONE_NODE_ONLY);
        }
        if self.settle_before(index).is_none() {
            return Flow::Again;
        }
        let Some(session) = self.clients.sessions.at_mut(index) else { return Flow::Stop };
        if session.subscriber.as_ref().is_some_and(|s| s.is_subscribed()) || session.flags.has(SessionFlags::TRACKING) {
            return self.refuse_unsupported(index, row, "its client is told of messages or changed keys");
        }
        let class = self.lanes.base(session.class);
        let mut prepared = session.pins.as_mut().and_then(|pins| pins.dedicated.take());
        if let Some(link) = prepared.as_mut().and_then(|dedicated| dedicated.links.first_mut()) {
            // A reply that comes late would be taken for the beginning of the snapshot.
            let is_fit = |lane: &LaneId| {
                let lane = &self.lanes[*lane];
                lane.class == class && lane.up.tickets().is_empty()
            };
            let Some(lane) = self.lanes.find(link.lane).filter(is_fit) else {
                self.give_up_dedicated(index, prepared);
                return self.refuse_lost(index);
            };
            let this = &mut self.lanes[lane];
            this.purpose = LaneUse::Dedicated;
            this.reader = self.clients.sessions.handle(index);
            link.has_agreed = false;
        }
        let dedicated = match prepared {
            Some(dedicated) => dedicated,
            None => match self.link(index, NodeId::at(0), LaneUse::Dedicated) {
                Ok(link) => {
                    let mut dedicated = Box::new(Dedicated::new(Kind::Replica, self.now.mono_us));
                    dedicated.links.push(link);
                    dedicated
                }
                Err(error) => {
                    self.answer(index, |reply| reply.raw(&error));
                    return Flow::Next;
                }
            },
        };
        self.begin_dedicated(index, dedicated, args)
    }

    /// Bytes have come on a connection that serves one client alone.
    #[cold]
    pub(crate) fn take_dedicated(&mut self, lane: LaneId, bytes: &[u8]) {
        let now_us = self.now.mono_us;
        let this = &mut self.lanes[lane];
        this.up.note_heard(now_us);
        let Some(reader) = this.reader else { return };
        let handle = self.lanes.handle(lane);
        let Some(session) = self.clients.sessions.get_mut(reader) else { return };
        let Some(dedicated) = session.dedicated_mut() else { return };
        let kind = dedicated.kind;
        let Some(link) = dedicated.links.iter_mut().find(|link| link.lane == handle) else { return };
        match link.take(kind, bytes) {
            Parsed::Nothing => {}
            Parsed::Bytes(bytes) => self.pass_to_client(reader, &bytes),
            Parsed::Agreed(bytes) => self.agree(reader, &bytes),
            Parsed::Refused(error) => self.refuse_dedicated(reader, &error),
            Parsed::Nonsense => {
                let node = link.node;
                let error = error_text::broken_off(&self.lanes.nodes[node].name, &"answered as no node should");
                self.lose_dedicated(reader, &error);
            }
        }
    }

    /// A node refuses. A replica may have another way to ask; a client that wanted to see all nodes sees none.
    fn refuse_dedicated(&mut self, reader: ClientHandle, error: &[u8]) {
        let Some(session) = self.clients.sessions.get_mut(reader) else { return };
        let Some(dedicated) = session.dedicated_mut() else { return };
        let Stage::Asking { asker, is_wanted, .. } = dedicated.stage else { return };
        dedicated.stage = Stage::Preparing;
        if dedicated.kind == Kind::Monitor {
            self.leave_dedicated(reader.index);
        } else if let Some(lane) = dedicated.links.first().and_then(|link| self.lanes.find(link.lane)) {
            let this = &mut self.lanes[lane];
            this.purpose = LaneUse::Private;
            this.reader = None;
            self.count_dedicated();
        }
        self.clients.feed(asker.session, asker.seq, if is_wanted { error } else { &[] }, true);
    }

    /// A connection of a client's is lost, or cannot be trusted. Who has not been shown anything yet is told; who has is
    /// disconnected, since it would miss something.
    pub(crate) fn lose_dedicated(&mut self, reader: ClientHandle, error: &[u8]) {
        let Some(session) = self.clients.sessions.get_mut(reader) else { return };
        let Some(dedicated) = session.dedicated() else { return };
        let stage = dedicated.stage;
        match stage {
            Stage::Preparing => self.leave_dedicated(reader.index),
            Stage::Asking { asker, is_wanted, .. } => {
                self.counters.node_errors.add(1);
                self.leave_dedicated(reader.index);
                self.clients.feed(asker.session, asker.seq, if is_wanted { error } else { &[] }, true);
            }
            Stage::Passing { .. } => self.end_dedicated(reader.index),
        }
    }

    /// Ends what a client is shown, and with it the client: what comes after is not for it to miss.
    pub(crate) fn end_dedicated(&mut self, index: ClientId) {
        let Some(dedicated) = self.clients.sessions.at(index).and_then(Session::dedicated) else { return };
        let (stage, asker) = (dedicated.stage, dedicated.asker());
        self.leave_dedicated(index);
        if let Some(asker) = asker {
            self.clients.feed(asker.session, asker.seq, &[], true);
        }
        if stage != Stage::Preparing {
            self.stop_client(index);
        }
    }

    /// All that a client has sent has been read. What it has asked of its nodes is still answered; what never ends, ends now.
    pub(crate) fn end_dedicated_of_ended(&mut self, index: ClientId) {
        let Some(Dedicated { kind, stage, .. }) = self.clients.sessions.at(index).and_then(Session::dedicated) else {
            return;
        };
        if matches!((kind, stage), (Kind::Replica, Stage::Asking { .. }) | (_, Stage::Passing { .. })) {
            self.end_dedicated(index);
        }
    }

    /// Every client with dedicated connections has to leave: the worker ends, or its nodes are others now.
    pub(crate) fn end_all_dedicated(&mut self) {
        self.end_dedicated_where(|_| true);
    }

    fn end_dedicated_where(&mut self, is_to_end: impl Fn(&Dedicated) -> bool) {
        let is_meant = |session: &Session| session.dedicated().is_some_and(&is_to_end);
        let indexes = self.clients.sessions.iter().filter(|(_, s)| is_meant(s)).map(|(index, _)| index);
        for index in indexes.collect::<Vec<ClientId>>() {
            self.end_dedicated(index);
        }
    }

    /// The session is like any other from now on (RESET).
    pub(crate) fn leave_dedicated(&mut self, index: ClientId) {
        let Some(session) = self.clients.sessions.at_mut(index) else { return };
        let dedicated = session.pins.as_mut().and_then(|pins| pins.dedicated.take());
        self.give_up_dedicated(index, dedicated);
    }

    fn give_up_dedicated(&mut self, index: ClientId, dedicated: Option<Box<Dedicated>>) {
        if let Some(session) = self.clients.sessions.at_mut(index) {
            session.settle_pins();
        }
        if let Some(dedicated) = dedicated {
            self.close_links(&dedicated);
        }
    }

    /// Closes connections that were one client's alone.
    pub(crate) fn close_links(&mut self, dedicated: &Dedicated) {
        for link in &dedicated.links {
            if let Some(lane) = self.lanes.find(link.lane) {
                let this = &mut self.lanes[lane];
                this.reader = None;
                this.is_unread = false;
                self.close_lane(lane);
            }
        }
        self.count_dedicated();
    }

    /// Whether a node has been asked on a connection of this kind and has not agreed. It is given up if that takes too long.
    pub(crate) fn check_dedicated(&mut self, lane: LaneId) -> bool {
        let this = &self.lanes[lane];
        let Some(reader) = this.reader else { return false };
        let Some(dedicated) = self.clients.sessions.get(reader).and_then(Session::dedicated) else { return false };
        let Stage::Asking { since_us, .. } = dedicated.stage else { return false };
        let patience_us = self.config.timeouts.response_us.max(AGREEMENT_US_MIN);
        if self.lag.due_us(self.now.mono_us, patience_us).is_some_and(|due_us| since_us <= due_us) {
            self.counters.timeouts.add(1);
            let error = error_text::timed_out(&self.lanes.nodes[this.node].name, patience_us);
            self.lose_dedicated(reader, &error);
        }
        true
    }

    /// Other nodes are configured. Who followed or watched all nodes there were would miss something without noticing.
    pub(crate) fn move_dedicated(&mut self, moves: &Moves) {
        match moves.left {
            None if moves.is_none() => {}
            None => self.end_all_dedicated(),
            Some(_) => {
                self.end_dedicated_where(|dedicated| {
                    dedicated.links.iter().any(|link| moves.has_left_on(link.node, link.lane))
                });
            }
        }
    }
}

impl<E: Execute> Env<E> {
    /// What a replica says goes to its node as it is.
    fn pass_to_node(&mut self, index: ClientId, args: Args<'_>) -> Flow {
        let link = self.clients.sessions.at(index).and_then(Session::dedicated).and_then(|d| d.links.first());
        let Some(lane) = link.and_then(|link| self.lanes.find(link.lane)) else { return Flow::Stop };
        let up = &mut self.lanes[lane].up;
        up.tell(self.now.mono_us, &mut self.clients.pool, |out| encode_request(out, args.iter()));
        self.lanes.list(lane);
        self.keep_pace(index, lane)
    }

    /// A connection to a node for one client. `Err` is what the client is told instead.
    fn link(&mut self, index: ClientId, node: NodeId, purpose: LaneUse) -> Result<Link, Vec<u8>> {
        let lend = |lanes: &mut Lanes, config: &Config, class, now| lanes.lend_new(config, node, class, purpose, now);
        let lane = self.lend(index, node, lend)?;
        if let Some(place) = self.lanes.find(lane) {
            self.lanes[place].reader = self.clients.sessions.handle(index).filter(|_| purpose == LaneUse::Dedicated);
        }
        self.is_busy = true;
        Ok(Link { node, lane, has_agreed: false, partial: Vec::new(), is_cut: false })
    }

    /// Asks the nodes; the client is not read before they have all agreed or one has refused.
    fn begin_dedicated(&mut self, index: ClientId, mut dedicated: Box<Dedicated>, args: Args<'_>) -> Flow {
        let Some(asker) = self.expect_behind_barrier(index) else { return Flow::Stop };
        let is_wanted = self.passes_reply(index);
        dedicated.stage = Stage::Asking { asker, since_us: self.now.mono_us, is_wanted };
        for link in &dedicated.links {
            let Some(lane) = self.lanes.find(link.lane) else { continue };
            let up = &mut self.lanes[lane].up;
            up.tell(self.now.mono_us, &mut self.clients.pool, |out| encode_request(out, args.iter()));
            self.lanes.list(lane);
        }
        self.hold_dedicated(index, dedicated);
        self.is_busy = true;
        Flow::Pause
    }

    fn hold_dedicated(&mut self, index: ClientId, dedicated: Box<Dedicated>) {
        let Some(session) = self.clients.sessions.at_mut(index) else { return };
        session.flags.add(SessionFlags::DEDICATED);
        session.pins_mut().dedicated = Some(dedicated);
        self.count_dedicated();
    }

    fn count_dedicated(&mut self) {
        let is_its = |lane: &&crate::pool::Lane| lane.purpose == LaneUse::Dedicated && !lane.is_retired;
        let count = self.lanes.all.iter().filter(is_its).count();
        self.shared.ledger.account_dedicated(self.counters.dedicated.value() as usize, count);
        self.counters.dedicated.set(count as u64);
    }

    /// Gives the client what a node has for it.
    fn pass_to_client(&mut self, reader: ClientHandle, bytes: &[u8]) {
        let Some(session) = self.clients.sessions.get_mut(reader) else { return };
        let Some(Dedicated { kind, stage: Stage::Passing { asker }, .. }) = session.dedicated() else { return };
        match (kind, *asker) {
            (Kind::Replica, asker) => self.clients.feed_all(asker, bytes),
            (Kind::Monitor, _) => {
                session.down.push(None, &mut self.clients.pool, |out| out.extend_from_slice(bytes));
                self.clients.list(reader.index);
            }
        }
        self.pace_dedicated(reader);
    }

    fn agree(&mut self, reader: ClientHandle, bytes: &[u8]) {
        let Some(session) = self.clients.sessions.get_mut(reader) else { return };
        let Some(dedicated) = session.dedicated_mut() else { return };
        let Stage::Asking { asker, is_wanted, .. } = dedicated.stage else { return };
        if !dedicated.links.iter().all(|link| link.has_agreed) {
            // What is seen before all nodes are seen is left out.
            return;
        }
        dedicated.stage = Stage::Passing { asker };
        if dedicated.kind == Kind::Monitor {
            self.clients.feed(asker.session, asker.seq, if is_wanted { replies::OK } else { &[] }, true);
        } else {
            // Its reply never ends, and nothing waits behind it.
            self.clients.unpause(reader.index, Pause::BARRIER);
        }
        self.pass_to_client(reader, bytes);
    }

    /// The nodes are left alone while their client has enough to read.
    fn pace_dedicated(&mut self, reader: ClientHandle) {
        let Some(session) = self.clients.sessions.get_mut(reader) else { return };
        if session.down.waiting_bytes() <= self.config.budgets.client_output_soft {
            return;
        }
        let Some(dedicated) = session.dedicated_mut().filter(|d| !d.is_paused) else { return };
        dedicated.is_paused = true;
        self.counters.pauses.add(1);
        for link in &dedicated.links {
            if let Some(lane) = self.lanes.find(link.lane) {
                self.lanes[lane].is_unread = true;
            }
        }
    }

    /// A client has taken most of what waited for it: its nodes are read on.
    pub(crate) fn resume_dedicated_of(&mut self, index: ClientId) {
        let Some(dedicated) = self.clients.sessions.at_mut(index).and_then(Session::dedicated_mut) else { return };
        if !std::mem::take(&mut dedicated.is_paused) {
            return;
        }
        for link in &dedicated.links {
            let Some(lane) = self.lanes.find(link.lane) else { continue };
            let this = &mut self.lanes[lane];
            this.is_unread = false;
            this.up.note_heard(self.now.mono_us);
            self.actions.push_back(Action::Resume { conn: lane.conn() });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::table::LaneTable;
    use crate::slab::Handle;

    fn link() -> Link {
        let lane = Handle { index: LaneTable::<()>::default().next_id(), generation: 0 };
        Link { node: NodeId::at(0), lane, has_agreed: false, partial: Vec::new(), is_cut: false }
    }

    /// All that a link makes of bytes, fed in two pieces.
    fn take(kind: Kind, bytes: &[u8], split: usize) -> (Vec<u8>, bool, Vec<Parsed>) {
        let mut link = link();
        let (mut shown, mut ends) = (Vec::new(), Vec::new());
        for piece in [&bytes[..split], &bytes[split..]] {
            if piece.is_empty() || !ends.is_empty() {
                continue;
            }
            match link.take(kind, piece) {
                Parsed::Nothing => {}
                Parsed::Bytes(bytes) | Parsed::Agreed(bytes) => shown.extend(bytes),
                end => ends.push(end),
            }
        }
        (shown, link.has_agreed, ends)
    }

    #[test]
    fn a_snapshot_passes_as_it_comes_however_it_is_cut() {
        for bytes in
            [&b"$5\r\nREDIS*1\r\n$4\r\nPING\r\n"[..], b"\n\n$0\r\n", b"+FULLRESYNC abc 0\r\n$1\r\nx", b"+CONTINUE\r\n"]
        {
            for split in 0..bytes.len() {
                assert_eq!(take(Kind::Replica, bytes, split), (bytes.to_vec(), true, Vec::new()), "split at {split}");
            }
        }
    }

    #[test]
    fn a_refusal_is_told_whole_and_nothing_may_come_behind_it() {
        let error = b"-NOMASTERLINK Can't SYNC while not connected with my master\r\n";
        for kind in [Kind::Replica, Kind::Monitor] {
            for split in 0..error.len() {
                let (shown, has_agreed, ends) = take(kind, error, split);
                assert!(shown.is_empty() && !has_agreed);
                assert_eq!(ends, [Parsed::Refused(error.to_vec())], "split at {split}");
            }
        }
        assert_eq!(take(Kind::Replica, b"-ERR no\r\n$3\r\n", 0).2, [Parsed::Nonsense]);
        assert_eq!(take(Kind::Monitor, b"$3\r\nabc\r\n", 0).2, [Parsed::Nonsense]);
        let endless = [&b"-"[..], &[b'x'; AGREEMENT_BYTES_MAX + 1]].concat();
        assert_eq!(take(Kind::Monitor, &endless, 0).2, [Parsed::Nonsense]);
    }

    #[test]
    fn lines_are_shown_whole() {
        let bytes = b"+OK\r\n+1.0 [0 a:1] \"get\" \"k\"\r\n+1.1 [0 a:1] \"ping\"\r\n+1.2 [0";
        for split in 0..bytes.len() {
            let (shown, has_agreed, ends) = take(Kind::Monitor, bytes, split);
            assert_eq!(shown, b"+1.0 [0 a:1] \"get\" \"k\"\r\n+1.1 [0 a:1] \"ping\"\r\n", "split at {split}");
            assert!(has_agreed && ends.is_empty());
        }
    }

    #[test]
    fn what_is_no_line_is_not_shown() {
        for bytes in [
            &b"+OK\r\n$3\r\nabc\r\n"[..],
            b"+OK\r\n+1 \"get\"\r\n:1\r\n",
            b"+OK\r\n\r\n",
            b"+OK\r\n+1\n",
            b"+OK\r\n+1\r2\r\n",
        ] {
            for split in 0..bytes.len() {
                assert_eq!(take(Kind::Monitor, bytes, split).2, [Parsed::Nonsense], "split at {split}");
            }
        }
    }

    #[test]
    fn a_line_without_end_is_cut_and_holds_no_more_than_its_limit() {
        let mut link = link();
        assert_eq!(link.take(Kind::Monitor, b"+OK\r\n+"), Parsed::Agreed(Vec::new()));
        let mut shown = Vec::new();
        for _ in 0..(2 * MONITOR_LINE_BYTES_MAX / 1024) {
            assert_eq!(link.take(Kind::Monitor, &[b'x'; 1024]), Parsed::Nothing);
            assert!(link.partial.len() <= MONITOR_LINE_BYTES_MAX);
        }
        for bytes in [&b"\r"[..], b"\n+next\r\n"] {
            if let Parsed::Bytes(bytes) = link.take(Kind::Monitor, bytes) {
                shown.extend(bytes);
            }
        }
        assert_eq!(shown.len(), MONITOR_LINE_BYTES_MAX + b"...\r\n+next\r\n".len());
        assert!(shown.ends_with(b"x...\r\n+next\r\n"));
    }
}
