//! What every feature of a worker may use: time, settings, users, clients, connections to nodes, and requests under way.
//!
//! No machine of a feature is here: features have theirs in fields of `Worker`, which hands them the environment. A few values that features set
//! are, because the layers that every request passes read them and name no feature: a pause, quotas, learnt commands, work in slices
//! (ARCHITECTURE.md lists them).

use crate::command_log::log::CommandLog;
use crate::config::Config;
use crate::ended::Ended;
use crate::lifecycle::client_limits::ClientLimits;
use crate::lifecycle::loop_lag::LoopLag;
use crate::lifecycle::node_reads::NodeReads;
use crate::limits::READ_BYTES;
use crate::mail::Mail;
use crate::observe::counters::Counters;
use crate::observe::rates::Rates;
use crate::observe::samples::Samples;
use crate::pool::Lanes;
use crate::reply::task::Tasks;
use crate::request::client_pause::ClientPause;
use crate::request::gathers::Scatters;
use crate::request::time_slices::Slices;
use crate::session::disconnect_log::DisconnectLog;
use crate::session::table::Clients;
use crate::users::access::UserQuotas;
use crate::workers::late_scripts::Debuggers;
use crate::workers::shared::Shared;
use respool_access::Users;
use respool_command::{Execute, KeyPositions, Millis, Row};
use respool_connection::{Action, Now, ServiceAction, WorkerId};
use respool_route::RouteScratch;
use respool_wire::RequestDecoder;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// What a worker is made of.
#[derive(Debug)]
pub struct WorkerSetup<E> {
    /// What the proxy is told to be.
    pub config: Arc<Config>,
    /// What all workers have in common.
    pub shared: Arc<Shared>,
    /// Which worker this is.
    pub number: WorkerId,
    /// The engine that answers, if there are no nodes.
    pub engine: Option<E>,
    /// Seed of the jitter of reconnects.
    pub entropy: u64,
}

/// The state of one worker that is no feature's own.
#[derive(Debug)]
pub(crate) struct Env<E> {
    pub(crate) config: Arc<Config>,
    pub(crate) shared: Arc<Shared>,
    /// The users that this worker goes by.
    pub(crate) users: Arc<Users>,
    /// What some of them may ask for.
    pub(crate) allowances: Arc<UserQuotas>,
    /// Some of them have connections of their own to nodes.
    pub(crate) has_node_users: bool,
    /// Room for the keys of requests that are judged.
    pub(crate) permit_keys: KeyPositions,
    pub(crate) counters: Arc<Counters>,
    pub(crate) number: WorkerId,
    pub(crate) engine: Option<E>,
    pub(crate) now: Now,
    pub(crate) clients: Clients,
    pub(crate) lanes: Lanes,
    pub(crate) scatters: Scatters,
    pub(crate) tasks: Tasks,
    pub(crate) seen: Samples,
    /// What commands of the engine took.
    pub(crate) command_log: CommandLog,
    pub(crate) client_limits: ClientLimits,
    /// What clients of an engine have sent and received of late.
    pub(crate) rates: Rates,
    /// Room for plans. `None` while it is in use.
    pub(crate) scratch: Option<Box<RouteScratch>>,
    /// Requests under each route.
    pub(crate) route_hits: Vec<u64>,
    /// An operator holds all requests back.
    pub(crate) is_all_paused: bool,
    /// Clients have had all of them hold their requests back, until then.
    pub(crate) client_pause: Option<ClientPause>,
    /// The engine of this worker, one of several of a server, keeps its keys because clients of the server are paused.
    pub(crate) is_server_paused: bool,
    /// Which replica was asked last.
    pub(crate) replica_turn: u32,
    /// What features have not been told of yet.
    pub(crate) ended: VecDeque<Ended>,
    pub(crate) actions: VecDeque<Action<ServiceAction<Mail>>>,
    /// All reads of connections without an unfinished request or reply go here.
    pub(crate) read_buffer: Vec<u8>,
    /// Secrets are in it, or in clients' own input.
    pub(crate) has_read_secret: bool,
    /// Decodes requests that lie whole in the read buffer.
    pub(crate) decoder: Option<Box<RequestDecoder>>,
    /// Whether replies that are outstanding may be waited for; `None` if that has not been looked at in this turn.
    pub(crate) is_patient: Option<bool>,
    /// Something may be outstanding, so timers are looked at often.
    pub(crate) is_busy: bool,
    pub(crate) cron_at_us: u64,
    pub(crate) lag: LoopLag,
    pub(crate) node_reads: NodeReads,
    /// The timers run later than they would if anything were outstanding.
    pub(crate) is_cron_slow: bool,
    pub(crate) engine_at_us: u64,
    pub(crate) cut_off_lines: DisconnectLog,
    /// Bytes of tables that are in the account of the process.
    pub(crate) tables_accounted: usize,
    /// A drain is under way and ends by then.
    pub(crate) drain_until_us: Option<u64>,
    /// Commands learnt from nodes, as far as this worker has heard of them.
    pub(crate) learnt: Arc<BTreeMap<String, &'static Row>>,
    pub(crate) slices: Slices,
    pub(crate) debuggers: Debuggers<E>,
}

impl<E> Env<E> {
    /// The time by which keys of an engine expire.
    #[inline(always)]
    pub(crate) fn engine_now(&self) -> Millis {
        Millis(self.now.unix_us / 1000)
    }

    /// The environment of a worker with no connections.
    pub(crate) fn new(setup: WorkerSetup<E>) -> Self {
        let counters = Arc::clone(&setup.shared.counters[setup.number.get()]);
        let mut env = Self {
            lanes: Lanes::new(&setup.config, setup.entropy),
            clients: Clients::new(Arc::clone(&counters)),
            users: setup.shared.access.users(),
            allowances: setup.shared.access.allowances(),
            has_node_users: false,
            permit_keys: KeyPositions::new(),
            scatters: Scatters::new(Arc::clone(&setup.shared.last_words)),
            seen: Samples::new(setup.config.seeing),
            command_log: CommandLog::default(),
            client_limits: ClientLimits::default(),
            rates: Rates::default(),
            config: setup.config,
            shared: setup.shared,
            counters,
            number: setup.number,
            engine: setup.engine,
            now: Now::default(),
            tasks: Tasks::default(),
            scratch: None,
            route_hits: Vec::new(),
            replica_turn: 0,
            is_all_paused: false,
            client_pause: None,
            is_server_paused: false,
            ended: VecDeque::new(),
            actions: VecDeque::new(),
            read_buffer: vec![0; READ_BYTES],
            has_read_secret: false,
            decoder: Some(Box::default()),
            is_patient: None,
            is_busy: false,
            cron_at_us: 0,
            lag: LoopLag::default(),
            node_reads: NodeReads::default(),
            is_cron_slow: true,
            engine_at_us: 0,
            cut_off_lines: DisconnectLog::default(),
            tables_accounted: 0,
            drain_until_us: None,
            learnt: Arc::default(),
            slices: Slices::default(),
            debuggers: Debuggers::default(),
        };
        env.clients.output_hard = env.config.budgets.client_output_hard;
        env.command_log.of_workers = env.config.is_server.then(|| Arc::clone(&env.shared.calls));
        env.command_log.is_first_engine = env.shared.engine_place.map(|place| place == 0);
        env.lanes.asks = env.number == WorkerId::FIRST && env.config.dials_ahead;
        env.shared.name_nodes(env.config.nodes.iter().map(|node| node.name.clone()));
        env
    }
}

/// The time by which blocked requests wait here: that of the clients where an engine in this process has parked them. Where nodes mind
/// their time it is only a bound for them.
pub(crate) fn waiting_us<E>(env: &Env<E>) -> u64 {
    if env.engine.is_some() { env.now.client_us } else { env.now.mono_us }
}

/// When a time of [`waiting_us`] comes, on the monotonic clock.
pub(crate) fn waiting_due_us<E>(env: &Env<E>, at_us: u64) -> Option<u64> {
    if env.engine.is_some() { env.now.due_us(at_us) } else { Some(at_us) }
}

impl<E: Execute> Env<E> {
    /// Overwrites what was read. It is not needed between two turns.
    pub(crate) fn wipe_reads(&mut self) {
        self.has_read_secret = false;
        respool_wire::wipe(&mut self.read_buffer);
        self.decoder.iter_mut().for_each(|decoder| decoder.wipe());
    }

    /// Another turn of the loop begins.
    #[inline]
    pub(crate) fn begin_turn(&mut self, now: Now) {
        if self.lag.is_late(now.mono_us) {
            self.lag.note(self.now.mono_us, now.mono_us);
        }
        debug_assert!(self.ended.is_empty(), "features have been told of all that ended before");
        self.now = now;
        self.slices.rounds = 0;
        self.is_patient = None;
        if self.config.flush.is_adaptive() {
            let reads = self.counters.client_reads.value();
            let (is_delayed, clients) = (self.lanes.held.is_for_arrivals(), self.clients.sessions.len());
            self.clients.arrivals.begin_turn(now.mono_us, reads, is_delayed, clients);
        }
        if self.clients.gathered.is_holding() || self.clients.gathered.policy.is_measured() {
            let messages = self.counters.messages_received.value();
            self.clients.gathered.policy.begin_turn(now.mono_us, self.reads(), messages);
        }
        self.counters.turns.add(1);
    }

    /// Whether there is anything for `go_on`.
    #[inline(always)]
    pub(crate) fn has_come_up(&self) -> bool {
        !(self.tasks.through.is_empty()
            && self.clients.doomed.is_empty()
            && (self.clients.resuming.is_empty() || !self.slices.has_round())
            && !self.lanes.dialling.has_news())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::PauseReasons;
    use crate::testing::env_with_node;

    #[test]
    fn nothing_comes_up_by_itself() {
        let mut env = env_with_node();
        assert!(!env.has_come_up());
        let client = env.test_client();
        env.test_session(client).pause.add(PauseReasons::SLICE);
        env.clients.unpause(client, PauseReasons::SLICE);
        assert!(env.has_come_up());
    }

    #[test]
    fn what_was_read_is_overwritten() {
        let mut env = env_with_node();
        (env.read_buffer[0], env.has_read_secret) = (b's', true);
        env.wipe_reads();
        assert!(!env.has_read_secret && env.read_buffer.iter().all(|byte| *byte == 0));
    }

    #[test]
    fn a_turn_begins_with_the_time_and_without_old_knowledge() {
        let mut env = env_with_node();
        env.is_patient = Some(true);
        env.begin_turn(Now::of_clocks(2_000_000, 7_000_000));
        assert_eq!((env.is_patient, env.engine_now(), env.counters.turns.value()), (None, Millis(7_000), 1));
    }
}
