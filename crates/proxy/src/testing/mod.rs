//! What unit tests of features share: an environment with a node or an engine, clients, and fakes of the features beside the tested one.

pub(crate) mod silent_worker;

use crate::config::{Budgets, Config, NodeConfig, Reconnects, Timeouts};
use crate::env::{Env, WorkerSetup};
use crate::ids::{Asker, ClientId, ClientNumber, LaneKeyId, NodeId};
use crate::interfaces::call::Call;
use crate::interfaces::held_back::WaitsAtNodes;
use crate::interfaces::read_tracker::ReadTracker;
use crate::interfaces::requests::HandleRequests;
use crate::pool::key_id::LaneKey;
use crate::request::dispatch::read_client;
use crate::request::fast_path::Plain;
use crate::session::{Flow, Session, SessionFlags};
use crate::workers::late_scripts::LateScript;
use crate::workers::shared::{ProcessFacts, Shared};
use respool_access::User;
use respool_command::{Execute, Millis, Outcome, Row, SessionView, UnknownCommand, resolve};
use respool_connection::{Endpoint, FlushPolicy, Peer, WorkerId};
use respool_route::{Node, Pool, Routes, Scheme, Topology};
use respool_wire::{Args, ArgsBuf, Encoder, ReplyLimits, Request, RequestLimits};
use std::sync::Arc;

/// An engine that answers every request with its own words, and notes them.
#[derive(Debug, Default)]
pub(crate) struct EchoEngine {
    pub(crate) asked: Vec<String>,
    /// It has no room, and can make none.
    pub(crate) is_full: bool,
    /// What clients watch has changed.
    pub(crate) is_dirty: bool,
}

impl Execute for EchoEngine {
    fn execute(&mut self, _: &'static Row, args: Args<'_>, _: &mut SessionView, reply: &mut Encoder<'_>) -> Outcome {
        let words = words(args);
        reply.simple(&words);
        self.asked.push(words);
        Outcome::Done
    }

    fn tick(&mut self, _: Millis) -> Option<Millis> {
        None
    }

    fn make_room(&mut self, _: Millis) -> bool {
        !self.is_full
    }

    fn is_dirty(&mut self, _: u64, _: Millis) -> bool {
        self.is_dirty
    }
}

fn words(args: Args<'_>) -> String {
    args.iter().map(String::from_utf8_lossy).collect::<Vec<_>>().join(" ")
}

/// The feature that tracks what clients read, where nothing is tracked.
#[derive(Debug, Default)]
pub(crate) struct Untracked;

impl ReadTracker for Untracked {
    fn track_request(&mut self, _: &mut Env<impl Execute>, _: ClientId, _: &'static Row, _: Args<'_>) {}

    fn track_part(&mut self, _: &mut Env<impl Execute>, _: ClientId, _: &'static Row, _: Args<'_>) {}

    fn end_parts(&mut self, _: &mut Env<impl Execute>, _: ClientId) {}

    fn hear_out(&mut self, _: &mut Env<impl Execute>, _: ClientId) -> Option<Flow> {
        None
    }

    fn speak_otherwise(&mut self, _: &mut Env<impl Execute>, _: ClientId, _: LaneKeyId, _: LaneKey) -> bool {
        false
    }

    fn restart_noloop(&mut self, _: &mut Env<impl Execute>, _: ClientId) {}

    fn forget_read_as_other(&mut self, _: &mut Env<impl Execute>, _: ClientId) {}

    fn has_forbidden_subscription(&self, _: &Env<impl Execute>, _: ClientId, _: &User) -> bool {
        false
    }
}

/// The feature whose requests wait at nodes, which notes what it is told.
#[derive(Debug, Default)]
pub(crate) struct NotedWaits {
    /// How often requests were to go on.
    pub(crate) went_on: usize,
    pub(crate) recalled: Vec<NodeId>,
}

impl WaitsAtNodes for NotedWaits {
    fn go_on_waiting(&mut self, _: &mut Env<impl Execute>) {
        self.went_on += 1;
    }

    fn recall_blocked_from(&mut self, _: &mut Env<impl Execute>, node: NodeId) {
        self.recalled.push(node);
    }
}

/// An environment with one node, named `n`, and room for replies.
pub(crate) fn env_with_node() -> Env<EchoEngine> {
    env_of(roomy_config(), None)
}

/// An environment with an engine.
pub(crate) fn env_with_engine() -> Env<EchoEngine> {
    env_of(Config { nodes: Vec::new(), ..roomy_config() }, Some(EchoEngine::default()))
}

/// Settings of one node, named `n`, with bounds that are come to at once.
pub(crate) fn config() -> Config {
    let node =
        NodeConfig { name: "n".to_owned(), endpoint: Arc::new(Endpoint::Embedded { index: 0 }), credentials: None };
    let topology = Topology::new(Scheme::default(), vec![Node::new("n")]).expect("one node is enough");
    let topology = Arc::new(topology);
    Config {
        nodes: vec![node],
        routes: Arc::new(Routes::plain(Pool::plain("main", Arc::clone(&topology)))),
        topology,
        request_limits: RequestLimits::default(),
        reply_limits: ReplyLimits::default(),
        timeouts: Timeouts {
            connect_us: 1,
            response_us: 1,
            silence_us: 1,
            client_idle_us: 0,
            probe_idle_us: 0,
            probe_patience_us: 0,
            slow_start_us: 0,
            drain_us: 1,
            pause_us: 0,
        },
        reconnects: Reconnects { backoff_min_us: 1, backoff_max_us: 1, redials_per_second: 1 },
        budgets: Budgets {
            client_output_soft: 1,
            client_output_hard: 1,
            clients: usize::MAX,
            soft_limits: Default::default(),
            upstream_queue: 1 << 20,
            request_whole: 1 << 20,
            process: 1 << 20,
        },
        lanes: crate::config::LaneLimits::default(),
        clients_max: 1,
        databases: 16,
        keyspace_events: respool_command::EventClasses::NONE,
        flush: FlushPolicy::EachTurn,
        seeing: Default::default(),
        dials_ahead: false,
        integrity: Default::default(),
        allows_admin: true,
        is_server: false,
        trusts_clients: false,
        subscriptions: crate::config::SubscriptionTerms::default(),
        access: crate::users::access::AccessRules::default(),
    }
}

/// Settings of one node, with bounds that no test comes to by chance.
pub(crate) fn roomy_config() -> Config {
    let mut config = config();
    config.budgets.client_output_soft = 1 << 20;
    config.budgets.client_output_hard = 2 << 20;
    config.clients_max = 100;
    config
}

pub(crate) fn env_of(config: Config, engine: Option<EchoEngine>) -> Env<EchoEngine> {
    let shared = Arc::new(Shared::new(1, 0, ProcessFacts::default(), Arc::default()));
    let mut env =
        Env::new(WorkerSetup { config: Arc::new(config), shared, number: WorkerId::FIRST, engine, entropy: 1 });
    env.now.mono_us = 1_000_000;
    env
}

impl Env<EchoEngine> {
    /// A client that has just come, with a number that no other has.
    pub(crate) fn test_client(&mut self) -> ClientId {
        let number = ClientNumber::new(self.clients.sessions.len() as u64 + 1);
        let soft = self.config.budgets.client_output_soft;
        self.clients.sessions.insert(Session::new(number, Peer::default(), self.now.mono_us, soft)).index
    }

    pub(crate) fn test_session(&mut self, client: ClientId) -> &mut Session {
        self.clients.sessions.at_mut(client).expect("it is there")
    }

    /// The place of a reply that a client waits for.
    pub(crate) fn test_asker(&mut self, client: ClientId) -> Asker {
        self.clients.expect_reply(client).flatten().expect("it wants a reply")
    }

    /// A script that this client waits for and that has become late.
    pub(crate) fn test_late_script(&mut self, client: ClientId, said: &str) -> LateScript {
        let (asker, id) = (self.test_asker(client), self.test_session(client).id);
        request(said, |row, args| {
            let (args, mark) = (args.iter().collect(), self.shared.late_scripts.begin(row));
            LateScript { asker, id, row, database: 0, args, us: 0, mark }
        })
    }

    /// What a client has been answered since this was last asked.
    pub(crate) fn take_output(&mut self, client: ClientId) -> String {
        let Some(session) = self.clients.sessions.at_mut(client) else { return "gone".to_owned() };
        let output = String::from_utf8_lossy(session.down.output().as_slice()).into_owned();
        session.down.advance(output.len(), &mut self.clients.pool);
        output
    }
}

/// Has a request done that the table knows.
pub(crate) fn request<R>(said: &str, run: impl FnOnce(&'static Row, Args<'_>) -> R) -> R {
    let args: ArgsBuf = said.split(' ').collect();
    run(resolve(args.as_args()).expect("a known command"), args.as_args())
}

/// The features behind the way of a request: each answers with its name and the request's words.
#[derive(Debug)]
pub(crate) struct Layers {
    pub(crate) env: Env<EchoEngine>,
    reads: Untracked,
    /// The states that were asked, in order.
    pub(crate) asked: Vec<SessionFlags>,
    /// The state whose owner deals with requests.
    pub(crate) owner: Option<SessionFlags>,
    /// What the feature of a lane says of the client.
    pub(crate) flow: Flow,
    /// Transactions that have ended.
    pub(crate) ended: usize,
}

impl Layers {
    pub(crate) fn new(env: Env<EchoEngine>) -> Self {
        Self { env, reads: Untracked, asked: Vec::new(), owner: None, flow: Flow::Next, ended: 0 }
    }

    /// A client sends these bytes in one read.
    pub(crate) fn receive(&mut self, client: ClientId, bytes: &[u8]) -> String {
        let room = self.env.room_of(client.conn()).expect("it is read");
        room[..bytes.len()].copy_from_slice(bytes);
        read_client(self, client, bytes.len());
        self.env.take_output(client)
    }
}

impl HandleRequests for Layers {
    type Engine = EchoEngine;
    type Reads = Untracked;

    fn parts(&mut self) -> (&mut Env<EchoEngine>, &mut Untracked) {
        (&mut self.env, &mut self.reads)
    }

    fn do_plain(&mut self, _: Plain, _: ClientId, _: &Request<'_>) -> Option<Flow> {
        None
    }

    fn learnt_row(&mut self, index: ClientId, _: UnknownCommand, _: &Request<'_>) -> Result<&'static Row, Flow> {
        Err(self.env.refuse(index, b"ERR unknown"))
    }

    fn ask_state(&mut self, state: SessionFlags, call: Call<'_>) -> Option<Flow> {
        let Call { index, row: _, request: _ } = call;
        self.asked.push(state);
        (self.owner == Some(state)).then(|| self.env.refuse(index, b"ERR state"))
    }

    fn ask_debugger(&mut self, _: ClientId, _: &Request<'_>) -> Option<Flow> {
        None
    }

    fn run(&mut self, call: Call<'_>) -> Flow {
        crate::command_log::timed::run(self, call)
    }

    fn run_in_lane(&mut self, call: Call<'_>) -> Flow {
        let Call { index, row: _, request } = call;
        if self.flow != Flow::Again {
            self.env.answer(index, |reply| reply.simple(&words(request.args)));
        }
        self.flow
    }

    fn end_transaction(&mut self) {
        self.ended += 1;
    }

    fn tell_ended(&mut self) {}
}
