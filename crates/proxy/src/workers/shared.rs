//! What the workers of one proxy have in common. Everything in it is safe to touch from any of them without a lock.

use crate::hooks::Hooks;
use crate::interfaces::known_scripts::Scripts;
use crate::nodes::kinds::{Databases, NodeKinds, NodeMismatch};
use crate::observe::calls::CallCounts;
use crate::observe::counters::Counters;
use crate::observe::histogram::Histogram;
use crate::observe::rates::Traffic;
use crate::users::access::Access;
use crate::users::process_workers::{PoolNumber, PostMail, ProcessWorkers};
use crate::workers::budget::ProcessBudget;
use crate::workers::info_cache::InfoCache;
use crate::workers::late_scripts::LateScripts;
use crate::workers::learnt::LearntCommands;
use crate::workers::node_stats::WorkerNodeStats;
use crate::workers::operator_state::{OperatorState, ServerPause};
use crate::workers::quiescence::Quiescence;
use crate::workers::turns::Turns;
use respool_command::Renames;
use respool_connection::WorkerId;
use std::sync::atomic::{AtomicU16, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Shared by all workers of one proxy.
#[derive(Debug)]
pub struct Shared {
    /// One set per worker.
    pub counters: Vec<Arc<Counters>>,
    /// What all of them had counted when a client began the statistics anew (`CONFIG RESETSTAT`).
    counted_before: Counters,
    /// When the process started, in microseconds of the monotonic clock.
    pub started_us: u64,
    /// Text for `INFO`: what the process is and runs on.
    pub about: ProcessFacts,
    /// What each worker has written down of nodes.
    pub(crate) stats: Vec<WorkerNodeStats>,
    /// The identification of nodes.
    pub(crate) kinds: NodeKinds,
    /// Orders that hold until they are taken back.
    pub(crate) standing: Mutex<OperatorState>,
    /// The names of the nodes that are configured.
    node_names: Mutex<Vec<String>>,
    /// Commands that nodes know and the table does not.
    pub(crate) learnt: Mutex<LearntCommands>,
    /// What workers have left, for orders whose replies wait.
    pub(crate) settling: Quiescence,
    /// The last replies of nodes to INFO.
    pub(crate) last_words: Arc<Mutex<InfoCache>>,
    /// Scripts that clients have sent, for nodes that forget them.
    pub(crate) scripts: Mutex<Scripts>,
    /// Which databases nodes are known to have.
    pub(crate) databases: Databases,
    /// One more than the bound of tracked keys that a client has set; 0 if none has.
    pub(crate) tracked_keys_said: AtomicUsize,
    /// In which order changes of all engines of a server are made.
    pub(crate) turns: Turns,
    /// Late scripts of all engines of a server, whose workers and engines have this in common.
    pub(crate) late_scripts: Arc<LateScripts>,
    /// The same of a pause of clients.
    pub(crate) server_pause: Arc<ServerPause>,
    /// Of one of these engines: which it is.
    pub(crate) engine_place: Option<usize>,
    /// What the workers of such a server have answered without an engine.
    pub(crate) calls: Arc<Mutex<CallCounts>>,
    /// What counts for the whole process, however many proxies it has.
    pub ledger: Arc<ProcessBudget>,
    /// Users and their rights, in the whole process.
    pub access: Arc<Access>,
    /// The workers of the whole process, and which of its proxies this is.
    pub(crate) process: Arc<ProcessWorkers>,
    pub(crate) pool: PoolNumber,
    /// What is measured, by kind and name, each by one worker.
    measured: Mutex<Vec<Measured>>,
    /// The hooks for rare events and demands of operators.
    pub hooks: Hooks,
    /// Under which names clients call commands.
    pub(crate) renames: Arc<Renames>,
    /// Whether those that are plain for a node or the engine have their own names, so that they are found without a look.
    pub(crate) has_plain_names: bool,
}

/// How one node is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeReach {
    /// Its name.
    pub name: String,
    /// Connections of all workers to it.
    pub connections: usize,
    /// `up`, `idle` (no worker has tried) or `down`.
    pub state: &'static str,
    /// Whether it is connected, or refuses only the proxy's own credentials where users have others.
    pub is_there: bool,
    /// Whether an operator has drained it.
    pub is_drained: bool,
    /// How it differs from the settings: `replica`, `cluster member` or `sentinel`.
    pub misfit: Option<&'static str>,
}

/// Durations of one kind, as one worker has measured them.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Of what: `node` or `command`.
    pub kind: &'static str,
    /// Which one.
    pub name: String,
    /// How long it took.
    pub histogram: Arc<Histogram>,
}

/// Facts for `INFO` that a pure crate cannot find out.
#[derive(Clone, Debug, Default)]
pub struct ProcessFacts {
    /// The program's version.
    pub version: String,
    /// The process's number.
    pub process_id: u32,
    /// The operating system and machine.
    pub os: String,
    /// The first TCP port listened on, or 0. All that hold these facts see a change.
    pub tcp_port: Arc<AtomicU16>,
    /// The configuration file's path, or empty.
    pub config_file: String,
    /// The path of the program, or empty.
    pub executable: String,
    /// 40 hexadecimal digits that name this run.
    pub run_id: String,
    /// How many pools the process serves.
    pub pools: usize,
}

impl Shared {
    /// For `workers` workers.
    pub fn new(workers: usize, started_us: u64, about: ProcessFacts, ledger: Arc<ProcessBudget>) -> Self {
        let counters = (0..workers).map(|_| Arc::new(Counters::default())).collect();
        Self {
            renames: Arc::default(),
            has_plain_names: true,
            counters,
            counted_before: Counters::default(),
            started_us,
            about,
            stats: (0..workers).map(|_| WorkerNodeStats::default()).collect(),
            kinds: NodeKinds::default(),
            standing: Mutex::default(),
            node_names: Mutex::default(),
            learnt: Mutex::default(),
            settling: Quiescence::new(workers),
            last_words: Arc::new(Mutex::new(InfoCache::new(Arc::clone(&ledger)))),
            scripts: Mutex::default(),
            databases: Databases::default(),
            tracked_keys_said: AtomicUsize::default(),
            turns: Turns::default(),
            late_scripts: Arc::default(),
            server_pause: Arc::default(),
            engine_place: None,
            calls: Arc::default(),
            ledger,
            access: Arc::default(),
            process: Arc::default(),
            pool: PoolNumber::default(),
            measured: Mutex::default(),
            hooks: Hooks::default(),
        }
    }

    /// The workers, each with what it has counted.
    pub(crate) fn workers(&self) -> impl Iterator<Item = (WorkerId, &Arc<Counters>)> {
        self.counters.iter().enumerate().map(|(place, counters)| (WorkerId::new(place), counters))
    }

    /// Bytes of replies to INFO that are remembered, which are accounted as held although no client waits for them.
    pub fn info_cache_bytes(&self) -> usize {
        self.last_words().held_bytes()
    }

    pub(crate) fn last_words(&self) -> MutexGuard<'_, InfoCache> {
        self.last_words.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A histogram of this kind and name for one worker, shown with those of the others.
    pub(crate) fn histogram(&self, kind: &'static str, name: &str) -> Arc<Histogram> {
        let histogram = Arc::new(Histogram::default());
        let measured = Measured { kind, name: name.to_owned(), histogram: Arc::clone(&histogram) };
        self.measured.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(measured);
        histogram
    }

    /// Sets the names of the configured nodes. Called before a worker runs as well, so that readiness knows them.
    pub fn name_nodes(&self, names: impl Iterator<Item = String>) {
        *self.node_names.lock().unwrap_or_else(PoisonError::into_inner) = names.collect();
    }

    /// Which nodes there are, and how they are reached, as all workers have seen it last.
    pub fn nodes(&self) -> Vec<NodeReach> {
        let names = self.node_names.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let sums = crate::workers::node_stats::sums(&self.stats, names.len());
        let drained = self.standing().drained.clone();
        let reach = |(name, stats): (String, crate::workers::node_stats::NodeStats)| NodeReach {
            is_drained: drained.contains(&name),
            misfit: self.kinds.of(&name).misfit.map(NodeMismatch::name),
            name,
            connections: stats.connections,
            state: stats.state(),
            is_there: stats.connections > 0 || stats.is_there_for_others,
        };
        names.into_iter().zip(sums).map(reach).collect()
    }

    /// What is measured.
    pub fn measured(&self) -> Vec<Measured> {
        self.measured.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }

    /// The same with hooks.
    #[must_use]
    pub fn with_hooks(self, hooks: Hooks) -> Self {
        Self { hooks, ..self }
    }

    /// Has clients call commands by other names.
    #[must_use]
    pub fn with_renames(self, renames: Arc<Renames>) -> Self {
        let has_plain_names = renames.spares(|row| row.is_plain || row.is_quick);
        Self { renames, has_plain_names, ..self }
    }

    /// Late scripts of the engines of this server, for the engines.
    pub fn late_scripts(&self) -> Arc<LateScripts> {
        Arc::clone(&self.late_scripts)
    }

    /// The pause of clients of this server, for the engines.
    pub fn server_pause(&self) -> Arc<ServerPause> {
        Arc::clone(&self.server_pause)
    }

    /// Of one of the engines of a server, which has these in common with its workers and others.
    #[must_use]
    pub fn of_engine(self, place: usize, late_scripts: Arc<LateScripts>, server_pause: Arc<ServerPause>) -> Self {
        Self { engine_place: Some(place), late_scripts, server_pause, ..self }
    }

    /// With these users.
    #[must_use]
    pub fn with_access(self, access: Arc<Access>) -> Self {
        Self { access, ..self }
    }

    /// One of several proxies of a process, which are all to be added before a worker runs. `workers`: the mailboxes of its own.
    #[must_use]
    pub fn in_process(self, process: Arc<ProcessWorkers>, workers: impl Iterator<Item = PostMail>) -> Self {
        let pool = process.add(workers);
        Self { process, pool, ..self }
    }

    /// The sum of one counter over all workers.
    pub fn sum(&self, pick: impl Fn(&Counters) -> u64) -> u64 {
        self.counters.iter().map(|c| pick(c)).sum()
    }

    /// The sum of a counter that only grows, since a client has begun the statistics anew.
    pub(crate) fn statistic(&self, pick: impl Fn(&Counters) -> u64) -> u64 {
        self.sum(&pick).saturating_sub(pick(&self.counted_before))
    }

    /// What clients have sent and received in all.
    pub(crate) fn traffic(&self) -> Traffic {
        Traffic {
            requests: self.sum(|c| c.requests.value()),
            bytes_in: self.sum(|c| c.client_bytes_in.value()),
            bytes_out: self.sum(|c| c.client_bytes_out.value()),
            since: self.counted_before.requests.value(),
        }
    }

    /// The statistics begin anew; those of engines are theirs. Counters go on: metrics are read as sums that only grow.
    pub(crate) fn reset_statistics(&self) {
        self.counted_before.set_to_sum(&self.counters);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_counted_in_and_out() {
        let ledger = ProcessBudget::default();
        assert!(ledger.admit(1));
        assert!(!ledger.admit(1));
        ledger.leave();
        assert!(ledger.admit(1));
    }
}
