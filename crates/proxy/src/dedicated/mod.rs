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
//! closed in the end, never lent again. To a replica of one node its bytes pass as they come, and it gets nothing else; what
//! it says is still read request by request, so that it may do no more than its user. One of several nodes is given a stream
//! that is made of theirs (`merged_replication`). MONITOR shows the lines of all nodes,
//! each whole; the client may go on asking for what is not about keys, as it may in Redis. An engine in this process has no
//! connection: it agrees at once, and [`crate::command_log::monitors`] makes its lines.

mod link;
mod merged_replication;

use crate::dedicated::link::{Kind, Link, Parsed};
use crate::dedicated::merged_replication::MergedReplication;
use crate::env::Env;
use crate::error_reply::ErrorReply;
use crate::error_text;
use crate::ids::{Asker, ClientHandle, ClientId, LaneId, LaneKeyId, NodeId};
use crate::interfaces::call::Call;
use crate::limits::AGREEMENT_US_MIN;
use crate::nodes::moves::Moves;
use crate::pool::LaneUse;
use crate::reply::owner::Owner;
use crate::reply::progress::ReplyMode;
use crate::session::marks::{DedicatedMark, DedicatedRole};
use crate::session::table::Clients;
use crate::session::{Flow, PauseReasons, Session, SessionFlags};
use respool_command::{Command, ConnectionCommand as C, Execute, Flags, Row, ServerCommand as S, text as texts};
use respool_wire::{Args, encode_request, replies};
use std::collections::BTreeMap;

/// How far it has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// A replica has told the node of itself and follows it not yet.
    Preparing,
    /// Nodes have been asked and have not all agreed.
    Asking { asker: Asker, since_us: u64 },
    /// The node's bytes are the client's.
    Passing { asker: Asker },
}

/// What one client has of connections that serve it alone.
#[derive(Debug)]
struct DedicatedClient {
    kind: Kind,
    stage: Stage,
    links: Vec<Link>,
    since_us: u64,
    /// The nodes are not read because the client does not read.
    is_paused: bool,
    /// What a replica of several nodes has beside its links.
    merged: Option<Box<MergedReplication>>,
}

/// The clients of one worker with connections that serve them alone. A client that has left stays here until
/// [`crate::ended`] says so.
#[derive(Debug, Default)]
pub(crate) struct Dedicated {
    clients: BTreeMap<ClientHandle, DedicatedClient>,
}

impl DedicatedClient {
    fn new(kind: Kind, since_us: u64) -> Self {
        Self { kind, stage: Stage::Preparing, links: Vec::new(), since_us, is_paused: false, merged: None }
    }

    /// What its session remembers of it.
    fn mark(&self) -> DedicatedMark {
        let links = self.links.iter().map(Link::held_bytes);
        let role = match (self.kind, self.stage) {
            (Kind::Monitor, Stage::Passing { .. }) => DedicatedRole::Monitors,
            (Kind::Replica, Stage::Passing { .. }) => DedicatedRole::Follows,
            _ => DedicatedRole::None,
        };
        let merged = self.merged.as_ref().map_or(0, |merged| merged.held_bytes());
        DedicatedMark { role, bytes: size_of::<Self>() + links.sum::<usize>() + merged }
    }

    /// What it is, in a word.
    fn reason(&self) -> &'static str {
        match (self.kind, self.stage) {
            (Kind::Monitor, _) => "monitor",
            (Kind::Replica, Stage::Preparing) => "replconf",
            (Kind::Replica, _) => "replica",
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

impl Dedicated {
    /// Why a client has connections of its own, since when, and to which nodes.
    pub(crate) fn places(
        &self,
        client: ClientHandle,
    ) -> Option<(&'static str, u64, impl Iterator<Item = NodeId> + '_)> {
        let this = self.clients.get(&client)?;
        Some((this.reason(), this.since_us, this.links.iter().map(|link| link.node)))
    }

    /// How many clients there are, those that have just left included.
    pub(crate) fn len(&self) -> usize {
        self.clients.len()
    }

    fn of<E>(&self, env: &Env<E>, index: ClientId) -> Option<&DedicatedClient> {
        self.clients.get(&env.clients.sessions.handle(index)?)
    }

    /// A request of the dedicated lane.
    #[cold]
    pub(crate) fn handle_request<E: Execute>(&mut self, env: &mut Env<E>, call: Call<'_>) -> Flow {
        let Call { index, row, request } = call;
        if row.is_admin(request.args) && env.refuses_to_steer(row) {
            return env.refuse(index, error_text::admin_refused(row.name));
        }
        let in_transaction = env.clients.sessions.at(index).is_some_and(Session::is_amid_exec_reply);
        match row.command {
            Command::Server(S::Monitor) if in_transaction => env.refuse(index, texts::MONITOR_DENIED),
            _ if in_transaction => env.refuse_unsupported(index, row, "not inside a transaction"),
            Command::Server(S::Monitor) if env.engine.is_some() => self.monitor_engine(env, index),
            Command::Server(S::Shutdown) if env.is_server() => env.shut_down(index, row, request.args),
            _ if env.engine.is_some() => {
                env.refuse_unsupported(index, row, "the engine in this process has no connections of this kind")
            }
            Command::Server(S::Monitor) => self.monitor(env, index, request.args),
            Command::Server(S::Replconf) => self.replconf(env, index, request.args),
            Command::Server(S::Sync | S::Psync) => self.follow(env, index, row, request.args),
            _ if env.is_server() => {
                env.refuse_unsupported(index, row, "this server has several engines (engine_threads)")
            }
            _ => env.refuse_unsupported(index, row, "it changes what its connection is; ask the node itself"),
        }
    }

    /// A request of a session with connections of its own for good. `None`: it is done as any other.
    pub(crate) fn handle_any_request<E: Execute>(&mut self, env: &mut Env<E>, call: Call<'_>) -> Option<Flow> {
        let Call { index, row, request } = call;
        let this = self.of(env, index)?;
        if this.is_raw() {
            return Some(self.pass_to_node(env, index, request.args));
        }
        if this.kind == Kind::Replica {
            return None;
        }
        match row.command {
            Command::Connection(C::Reset | C::Quit) => None,
            Command::Server(S::Replconf) => Some(env.refuse_unsupported(index, row, "its client monitors")),
            // As in Redis, without an answer.
            Command::Server(S::Monitor | S::Sync | S::Psync) => Some(Flow::Next),
            _ if crate::request::client_pause::may_change(row) || row.flags.has(Flags::READONLY) => {
                Some(env.refuse_unread(index, texts::REPLICA_AND_KEYSPACE))
            }
            _ => None,
        }
    }

    /// Bytes have come on a connection that serves one client alone.
    #[cold]
    pub(crate) fn handle_bytes<E: Execute>(&mut self, env: &mut Env<E>, lane: LaneId, bytes: &[u8]) {
        let now_us = env.now.mono_us;
        let this = &mut env.lanes[lane];
        this.up.note_heard(now_us);
        let Some(reader) = this.lease.reader() else { return };
        let handle = env.lanes.handle(lane);
        if env.clients.sessions.get(reader).is_none() {
            return;
        }
        let Some(this) = self.clients.get_mut(&reader) else { return };
        if this.merged.is_some() {
            return self.take_merged(env, reader, handle, bytes);
        }
        let kind = this.kind;
        let Some(link) = this.links.iter_mut().find(|link| link.lane == handle) else { return };
        let (node, parsed) = (link.node, link.take(kind, bytes));
        self.mark(env, reader);
        match parsed {
            Parsed::Nothing => {}
            Parsed::Bytes(bytes) => self.pass_to_client(env, reader, &bytes),
            Parsed::Agreed(bytes) => self.agree(env, reader, &bytes),
            Parsed::Refused(error) => self.refuse(env, reader, &ErrorReply::of_reply(&error)),
            Parsed::Nonsense => {
                let error = error_text::broken_off(&env.lanes.nodes[node].name, &"answered as no node should");
                self.handle_lane_ended(env, reader, &error);
            }
        }
    }

    /// A connection of a client is lost, or cannot be trusted. A client that has not been sent anything yet gets the error; any other is
    /// disconnected, since its stream would have a gap.
    pub(crate) fn handle_lane_ended<E: Execute>(&mut self, env: &mut Env<E>, reader: ClientHandle, error: &ErrorReply) {
        if env.clients.sessions.get(reader).is_none() {
            return;
        }
        let Some(this) = self.clients.get(&reader) else { return };
        match this.stage {
            Stage::Preparing => self.leave(env, reader.index),
            Stage::Asking { asker, .. } => {
                env.counters.node_errors.add(1);
                self.leave(env, reader.index);
                env.clients.fill(asker, error.as_bytes());
            }
            Stage::Passing { .. } => self.end(env, reader.index),
        }
    }

    /// All that a client has sent has been read. What it has asked of its nodes is still answered; what never ends, ends now.
    pub(crate) fn handle_half_closed<E: Execute>(&mut self, env: &mut Env<E>, index: ClientId) {
        let Some(this) = self.of(env, index) else { return };
        if matches!((this.kind, this.stage), (Kind::Replica, Stage::Asking { .. }) | (_, Stage::Passing { .. })) {
            self.end(env, index);
        }
    }

    /// A client has left.
    pub(crate) fn handle_client_gone<E: Execute>(&mut self, env: &mut Env<E>, client: ClientHandle) {
        if let Some(this) = self.clients.remove(&client) {
            close_links(env, &this);
        }
    }

    /// A client has been written something: if little waits for it now, its nodes are read on.
    pub(crate) fn handle_written<E: Execute>(&mut self, env: &mut Env<E>, index: ClientId) {
        let Some(session) = env.clients.sessions.at(index) else { return };
        if session.reply_bytes() > env.config.budgets.client_output_soft / 2 {
            return;
        }
        let Some(client) = env.clients.sessions.handle(index) else { return };
        let Some(this) = self.clients.get_mut(&client) else { return };
        if !std::mem::take(&mut this.is_paused) {
            return;
        }
        if this.merged.is_some() {
            return self.resume_merged(env, client);
        }
        for link in &this.links {
            env.lanes.find(link.lane).into_iter().for_each(|lane| env.read_on(lane));
        }
    }

    /// Gives up nodes that have been asked and have not agreed in time. Returns whether any has been asked.
    pub(crate) fn handle_timer<E: Execute>(&mut self, env: &mut Env<E>) -> bool {
        if self.clients.is_empty() {
            return false;
        }
        let patience_us = env.config.timeouts.response_us.max(AGREEMENT_US_MIN);
        let due_us = env.lag.due_us(env.now.mono_us, patience_us);
        let (mut is_busy, mut late) = (false, Vec::new());
        for (client, this) in &self.clients {
            let Stage::Asking { since_us, .. } = this.stage else { continue };
            // A connection that is not ready yet has a deadline of its own.
            let is_ready = |link: &&Link| env.lanes.find(link.lane).is_some_and(|lane| env.lanes[lane].up.is_ready());
            let Some(link) = this.links.iter().find(is_ready) else { continue };
            is_busy = true;
            if due_us.is_some_and(|due_us| since_us <= due_us) {
                late.push((*client, link.node));
            }
        }
        for (client, node) in late {
            env.counters.timeouts.add(1);
            let error = error_text::timed_out(&env.lanes.nodes[node].name, patience_us);
            self.handle_lane_ended(env, client, &error);
        }
        is_busy | self.check_merged(env)
    }

    /// Other nodes are configured. A client that followed or monitored all nodes before would miss something without noticing.
    pub(crate) fn handle_nodes_changed<E: Execute>(&mut self, env: &mut Env<E>, moves: &Moves) {
        match moves.left {
            // The nodes are the same, but others of them may have keys now, or keys may be on several.
            None if moves.is_none() => {
                let nodes = merged_replication::nodes(&env.config).unwrap_or_default();
                self.end_where(env, |this| {
                    let follows_all = this.merged.is_some() && !this.links.is_empty();
                    follows_all && !this.links.iter().map(|link| link.node).eq(nodes.iter().copied())
                });
            }
            None => self.end_all(env),
            Some(_) => {
                self.end_where(env, |this| this.links.iter().any(|link| moves.has_left_on(link.node, link.lane)));
            }
        }
    }

    /// Every client with dedicated connections has to leave: the worker ends, or its nodes are others now.
    pub(crate) fn end_all<E: Execute>(&mut self, env: &mut Env<E>) {
        self.end_where(env, |_| true);
    }

    fn end_where<E: Execute>(&mut self, env: &mut Env<E>, is_to_end: impl Fn(&DedicatedClient) -> bool) {
        let meant: Vec<ClientHandle> =
            self.clients.iter().filter(|(_, this)| is_to_end(this)).map(|(client, _)| *client).collect();
        for client in meant {
            if env.clients.sessions.get(client).is_some() {
                self.end(env, client.index);
            }
        }
    }

    /// The session is like any other from now on (RESET).
    pub(crate) fn leave<E: Execute>(&mut self, env: &mut Env<E>, index: ClientId) {
        if let Some(this) = self.take(env, index) {
            close_links(env, &this);
        }
    }

    /// What a client has is taken from it; its session is like any other.
    fn take<E>(&mut self, env: &mut Env<E>, index: ClientId) -> Option<DedicatedClient> {
        let client = env.clients.sessions.handle(index)?;
        if let Some(session) = env.clients.sessions.at_mut(index) {
            if let Some(pins) = &mut session.pins {
                pins.dedicated = None;
            }
            session.settle_pins();
        }
        env.command_log.monitors.remove(client);
        self.clients.remove(&client)
    }

    fn hold<E>(&mut self, env: &mut Env<E>, index: ClientId, this: DedicatedClient) {
        let Some(client) = env.clients.sessions.handle(index) else { return };
        let Some(session) = env.clients.sessions.at_mut(index) else { return };
        session.flags.add(SessionFlags::DEDICATED);
        session.pins_mut().dedicated = Some(this.mark());
        self.clients.insert(client, this);
        count(env);
    }

    /// The session remembers what has become of it.
    fn mark<E>(&self, env: &mut Env<E>, client: ClientHandle) {
        let Some(session) = env.clients.sessions.get_mut(client) else { return };
        if let Some(this) = self.clients.get(&client)
            && let Some(pins) = &mut session.pins
        {
            pins.dedicated = Some(this.mark());
        }
    }

    /// MONITOR: every node shows what it is asked.
    fn monitor<E: Execute>(&mut self, env: &mut Env<E>, index: ClientId, args: Args<'_>) -> Flow {
        let Some(()) = env.clients.settle_before(index) else { return Flow::Again };
        self.leave(env, index);
        let mut this = DedicatedClient::new(Kind::Monitor, env.now.mono_us);
        let nodes = env.config.node_ids().collect();
        if let Err(error) = link(env, index, &mut this, nodes) {
            return env.refuse(index, error);
        }
        self.begin(env, index, this, |out| encode_request(out, args.iter()))
    }

    /// MONITOR of the engine in this process, which agrees at once.
    fn monitor_engine<E: Execute>(&mut self, env: &mut Env<E>, index: ClientId) -> Flow {
        let Some(()) = env.clients.settle_before(index) else { return Flow::Again };
        let Some(client) = env.clients.sessions.handle(index) else { return Flow::Stop };
        let this = DedicatedClient::new(Kind::Monitor, env.now.mono_us);
        let flow = self.begin(env, index, this, |_| {});
        self.agree(env, client, &[]);
        env.command_log.monitors.add(client);
        flow
    }

    /// REPLCONF: what a replica tells the node of itself holds for the connection on which it is told.
    fn replconf<E: Execute>(&mut self, env: &mut Env<E>, index: ClientId, args: Args<'_>) -> Flow {
        let is_silent = |option: &[u8]| option.eq_ignore_ascii_case(b"ACK") || option.eq_ignore_ascii_case(b"GETACK");
        if args.from(1).iter().step_by(2).any(is_silent) && args.len() % 2 == 1 {
            // Only a replica that follows acknowledges; Redis ignores all others.
            return Flow::Next;
        }
        if merged_replication::is_for(&env.config) {
            return self.describe_follower(env, index, args);
        }
        let known = self.of(env, index).and_then(|this| this.links.first());
        let lane = match known.map(|link| link.lane) {
            Some(lane) => lane,
            None => {
                let this = match follower_of_first(env, index) {
                    Ok(this) => this,
                    Err(error) => return env.refuse(index, error),
                };
                let lane = this.links[0].lane;
                // Its replies come one by one until it follows.
                let told = &mut env.lanes[lane.index];
                told.purpose = LaneUse::Private;
                told.lease.set_reader(None);
                self.hold(env, index, this);
                lane
            }
        };
        let Some(lane) = env.lanes.find(lane) else { return self.refuse_lost(env, index) };
        let Some(handle) = env.clients.sessions.handle(index) else { return Flow::Stop };
        let Some(session) = env.clients.sessions.at_mut(index) else { return Flow::Stop };
        let owner = session.expect_from_node(handle);
        let Env { lanes, clients, config, now, .. } = env;
        let write = |out: &mut Vec<u8>| encode_request(out, args.iter());
        match (lanes.send(lane, owner, config, *now, &mut clients.pool, write), owner) {
            (Err(error), Owner::Client { seq, .. }) => clients.fail(handle, seq, &error),
            (Err(_), _) => {}
            (Ok(()), owner) => clients.note_sent(owner),
        }
        env.is_busy = true;
        env.keep_pace(index, lane, args)
    }

    /// What the node was told of the client is lost with its connection: as if the client were new.
    fn refuse_lost<E: Execute>(&mut self, env: &mut Env<E>, index: ClientId) -> Flow {
        self.leave(env, index);
        env.refuse(index, error_text::REPLICA_LOST)
    }

    /// SYNC and PSYNC: the client follows the node.
    fn follow<E: Execute>(&mut self, env: &mut Env<E>, index: ClientId, row: &'static Row, args: Args<'_>) -> Flow {
        let Some(()) = env.clients.settle_before(index) else { return Flow::Again };
        let Some(session) = env.clients.sessions.at(index) else { return Flow::Stop };
        if session.subscriber.as_ref().is_some_and(|s| s.is_subscribed()) || session.flags.has(SessionFlags::TRACKING) {
            return env.refuse_unsupported(index, row, "its client is told of messages or changed keys");
        }
        let class = env.lanes.base(session.class);
        if merged_replication::is_for(&env.config) {
            return self.follow_all(env, index, row);
        }
        let mut prepared = self.take(env, index);
        if let Some(link) = prepared.as_mut().and_then(|this| this.links.first_mut()) {
            // A reply that comes late would be taken for the beginning of the snapshot.
            let is_fit = |lane: &LaneId| {
                let lane = &env.lanes[*lane];
                lane.class == class && lane.up.tickets().is_empty()
            };
            let Some(lane) = env.lanes.find(link.lane).filter(is_fit) else {
                prepared.iter().for_each(|this| close_links(env, this));
                return self.refuse_lost(env, index);
            };
            let this = &mut env.lanes[lane];
            this.purpose = LaneUse::Dedicated;
            this.lease.set_reader(env.clients.sessions.handle(index));
            link.has_agreed = false;
        }
        let this = match prepared.map_or_else(|| follower_of_first(env, index), Ok) {
            Ok(this) => this,
            Err(error) => return env.refuse(index, error),
        };
        self.begin(env, index, this, |out| encode_request(out, args.iter()))
    }

    /// Asks the nodes; the client is not read before they have all agreed or one has refused.
    fn begin<E: Execute>(
        &mut self,
        env: &mut Env<E>,
        index: ClientId,
        mut this: DedicatedClient,
        ask: impl Fn(&mut Vec<u8>),
    ) -> Flow {
        let Some(asker) = env.clients.expect_behind_barrier(index) else { return Flow::Stop };
        this.stage = Stage::Asking { asker, since_us: env.now.mono_us };
        for link in &this.links {
            let Some(lane) = env.lanes.find(link.lane) else { continue };
            let up = &mut env.lanes[lane].up;
            up.tell(env.now.mono_us, &mut env.clients.pool, &ask);
            env.lanes.list(lane);
        }
        self.hold(env, index, this);
        env.is_busy = true;
        Flow::Pause
    }

    /// What a replica says goes to its node as it is.
    fn pass_to_node<E: Execute>(&mut self, env: &mut Env<E>, index: ClientId, args: Args<'_>) -> Flow {
        let this = self.of(env, index);
        if this.is_some_and(|this| this.merged.is_some()) {
            return self.hear_follower(env, index, args);
        }
        let link = this.and_then(|this| this.links.first());
        let Some(lane) = link.and_then(|link| env.lanes.find(link.lane)) else { return Flow::Stop };
        let up = &mut env.lanes[lane].up;
        up.tell(env.now.mono_us, &mut env.clients.pool, |out| encode_request(out, args.iter()));
        env.lanes.list(lane);
        env.keep_pace(index, lane, args)
    }

    /// A node refuses. A replica may have another way to ask; a client that wanted to see all nodes sees none.
    fn refuse<E: Execute>(&mut self, env: &mut Env<E>, reader: ClientHandle, error: &ErrorReply) {
        let Some(this) = self.clients.get_mut(&reader) else { return };
        let Stage::Asking { asker, .. } = this.stage else { return };
        this.stage = Stage::Preparing;
        if this.kind == Kind::Monitor {
            self.leave(env, reader.index);
        } else if let Some(lane) = this.links.first().and_then(|link| env.lanes.find(link.lane)) {
            let this = &mut env.lanes[lane];
            this.purpose = LaneUse::Private;
            this.lease.set_reader(None);
            count(env);
        }
        env.clients.fill(asker, error.as_bytes());
    }

    /// Ends what a client is shown, and with it the client: what comes after is not for it to miss.
    fn end<E: Execute>(&mut self, env: &mut Env<E>, index: ClientId) {
        let Some(this) = self.of(env, index) else { return };
        let (stage, asker) = (this.stage, this.asker());
        self.leave(env, index);
        if let Some(asker) = asker {
            env.clients.feed(asker.session, asker.seq, &[], true);
        }
        if stage != Stage::Preparing {
            env.clients.stop_client(index);
        }
    }

    fn agree<E: Execute>(&mut self, env: &mut Env<E>, reader: ClientHandle, bytes: &[u8]) {
        let Some(this) = self.clients.get_mut(&reader) else { return };
        let Stage::Asking { asker, .. } = this.stage else { return };
        if !this.links.iter().all(|link| link.has_agreed) {
            // What is seen before all nodes are seen is left out.
            return;
        }
        this.stage = Stage::Passing { asker };
        let kind = this.kind;
        self.mark(env, reader);
        if kind == Kind::Monitor {
            env.clients.fill(asker, replies::OK);
        } else {
            // Its reply never ends, and nothing waits behind it.
            env.clients.unpause(reader.index, PauseReasons::BARRIER);
        }
        self.pass_to_client(env, reader, bytes);
    }

    /// Gives the client what a node has for it.
    fn pass_to_client<E: Execute>(&mut self, env: &mut Env<E>, reader: ClientHandle, bytes: &[u8]) {
        let Some(this) = self.clients.get(&reader) else { return };
        let DedicatedClient { kind, stage: Stage::Passing { asker }, .. } = this else { return };
        let Some(session) = env.clients.sessions.get_mut(reader) else { return };
        match (kind, *asker) {
            (Kind::Replica, asker) => env.clients.feed_all(asker, bytes),
            // These are whole lines. As at a node, a client that wants no replies is shown none.
            (Kind::Monitor, _) if session.reply_mode == ReplyMode::Off => {}
            (Kind::Monitor, _) => {
                session.down.push(None, &mut env.clients.pool, |out| out.extend_from_slice(bytes));
                env.clients.list(reader.index);
            }
        }
        self.pace(env, reader);
    }

    /// The nodes are left alone while their client has enough to read.
    fn pace<E: Execute>(&mut self, env: &mut Env<E>, reader: ClientHandle) {
        let Some(session) = env.clients.sessions.get_mut(reader) else { return };
        if session.down.waiting_bytes() <= env.config.budgets.client_output_soft {
            return;
        }
        let Some(this) = self.clients.get_mut(&reader).filter(|this| !this.is_paused) else { return };
        this.is_paused = true;
        env.counters.pauses.add(1);
        for link in &this.links {
            if let Some(lane) = env.lanes.find(link.lane) {
                env.lanes[lane].lease.leave_unread();
            }
        }
    }
}

impl Clients {
    fn feed_all(&mut self, asker: Asker, bytes: &[u8]) {
        self.feed(asker.session, asker.seq, bytes, false);
    }
}

/// Closes connections that were one client's alone.
fn close_links<E: Execute>(env: &mut Env<E>, of: &DedicatedClient) {
    of.links.iter().for_each(|link| env.disown(link.lane));
    count(env);
}

/// A client that is to follow the first node.
fn follower_of_first<E: Execute>(env: &mut Env<E>, index: ClientId) -> Result<DedicatedClient, ErrorReply> {
    let mut this = DedicatedClient::new(Kind::Replica, env.now.mono_us);
    link(env, index, &mut this, vec![NodeId::nth(0)])?;
    Ok(this)
}

/// Gives a client a connection to each of these nodes, or none. `Err` is what the client is told instead.
fn link<E: Execute>(
    env: &mut Env<E>,
    index: ClientId,
    this: &mut DedicatedClient,
    nodes: Vec<NodeId>,
) -> Result<(), ErrorReply> {
    let class = env.clients.sessions.at(index).map_or(LaneKeyId::PLAIN, |session| session.class);
    for node in nodes {
        let lane = env.lend(index, node, class, LaneUse::Dedicated).inspect_err(|_| close_links(env, this))?;
        env.lanes[lane.index].lease.set_reader(env.clients.sessions.handle(index));
        this.links.push(Link::new(node, lane));
    }
    env.is_busy = true;
    Ok(())
}

/// Counts the connections that serve one client alone.
fn count<E>(env: &mut Env<E>) {
    let is_its = |lane: &&crate::pool::Lane| lane.purpose == LaneUse::Dedicated && !lane.is_retired;
    let count = env.lanes.all.iter().filter(is_its).count();
    env.shared.ledger.account_dedicated(env.counters.dedicated.value() as usize, count);
    env.counters.dedicated.set(count as u64);
}
