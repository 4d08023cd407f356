//! The engine: what the rest of Respool sees of the data store.

mod execute;

use crate::keyspace::{Counters, EvictionPolicy, FrequencyTerms, Keyspace};
use crate::limits;
#[cfg(feature = "scripting")]
use crate::script::{ScriptLogLevel, Scripts};
use crate::store::heap::{EncodingLimits, Heap};

/// What an engine is told when it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineConfig {
    /// How many databases there are; at least one.
    pub databases: usize,
    /// Above this many bytes keys are evicted, or commands that need memory refused; `None` never does either.
    pub memory_bytes_max: Option<u64>,
    /// Which keys are evicted.
    pub eviction: EvictionPolicy,
    /// Keys that are looked at for one that is evicted; at least one.
    pub eviction_samples: usize,
    /// Up to which sizes values keep their compact encodings.
    pub encodings: EncodingLimits,
    /// Milliseconds after which others are told that a script runs.
    pub script_busy_after_ms: u64,
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self {
            databases: limits::DATABASES,
            memory_bytes_max: None,
            eviction: EvictionPolicy::NoEviction,
            eviction_samples: limits::EVICTION_SAMPLES,
            encodings: EncodingLimits::default(),
            script_busy_after_ms: limits::SCRIPT_BUSY_AFTER_MS,
        }
    }
}

/// How many keys a database has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyspaceSize {
    /// All keys, expired ones that are not removed yet included.
    pub keys: usize,
    /// Keys that have a deadline.
    pub expires: usize,
}

/// The embedded data store.
pub struct Engine {
    keyspace: Keyspace,
    pub(crate) memory_bytes_max: Option<u64>,
    /// There was no room when the last transaction began.
    began_full: bool,
    /// How many databases requests may use: none while a script is under way, so that its test is the one that there is anyway.
    open_databases: usize,
    #[cfg(feature = "scripting")]
    scripts: Scripts,
}

impl Engine {
    /// An empty store. `seed` keys the hash function and feeds all choices by chance: it should be random, and the same
    /// seed gives the same choices.
    pub fn new(config: EngineConfig, seed: [u64; 2]) -> Self {
        let heap = Heap::new(config.encodings, seed);
        let databases = config.databases.max(1);
        let mut keyspace = Keyspace::new(heap, databases);
        keyspace.set_eviction(config.eviction, config.eviction_samples);
        keyspace.note_bound(config.memory_bytes_max.is_some());
        Self {
            keyspace,
            memory_bytes_max: config.memory_bytes_max,
            began_full: false,
            open_databases: databases,
            #[cfg(feature = "scripting")]
            scripts: Scripts::new(config.script_busy_after_ms),
        }
    }

    /// How many databases there are.
    pub fn databases(&self) -> usize {
        self.keyspace.databases.len()
    }

    /// The size of one database; zero for one that does not exist.
    pub fn keyspace_size(&self, database: usize) -> KeyspaceSize {
        let database = self.keyspace.databases.get(database);
        database.map_or_else(KeyspaceSize::default, |database| KeyspaceSize {
            keys: database.table.len(),
            expires: database.keys.entries.len(),
        })
    }

    /// What has happened to keys since the engine was made.
    pub fn counters(&self) -> Counters {
        self.keyspace.counters
    }

    /// Bytes that the store and its scripts hold from the allocator. Costs the same however many keys there are.
    pub fn memory_bytes(&self) -> usize {
        self.keyspace.memory_bytes()
    }

    /// Bytes that keys and values take: [`Engine::memory_bytes`] without scripts, and without room that the next values get.
    pub fn used_bytes(&self) -> usize {
        self.keyspace.used_bytes()
    }

    /// As [`Engine::used_bytes`], by a walk over every key.
    #[cfg(debug_assertions)]
    #[doc(hidden)]
    pub fn walked_bytes(&self) -> usize {
        self.keyspace.walked_bytes()
    }

    /// Says how long scripts have been running, in milliseconds from any point on. Without it the engine counts what they do.
    #[cfg(feature = "scripting")]
    #[must_use]
    pub fn with_script_clock(mut self, clock: impl FnMut() -> u64 + Send + 'static) -> Self {
        self.scripts.set_clock(Box::new(clock));
        self
    }

    /// Is told what scripts write to the log.
    #[cfg(feature = "scripting")]
    #[must_use]
    pub fn with_script_log(mut self, log: impl FnMut(ScriptLogLevel, &[u8]) + Send + 'static) -> Self {
        self.scripts.set_log(Box::new(log));
        self
    }

    /// Scripts call commands by other names, as clients of the host do.
    #[cfg(feature = "scripting")]
    #[must_use]
    pub fn with_renames(mut self, renames: std::sync::Arc<respool_command::Renames>) -> Self {
        self.scripts.set_renames(renames);
        self
    }

    /// The engine is one of several that share the keys of a server: scripts reach only those keys and channels for which `owns`
    /// holds. Other requests have to be sent to the engine that has their keys.
    #[cfg(feature = "scripting")]
    #[must_use]
    pub fn with_key_owner(mut self, owns: impl Fn(&[u8]) -> bool + Send + 'static) -> Self {
        self.scripts.set_key_owner(Box::new(owns));
        self
    }

    /// Says how to wait for so many microseconds, which `DEBUG SLEEP` does. Without it there is none.
    pub fn set_sleep(&mut self, sleep: impl FnMut(u64) + Send + 'static) {
        self.keyspace.debugging.sleep = Some(Box::new(sleep));
    }

    /// The keyspace itself.
    pub(crate) fn keyspace_mut(&mut self) -> &mut Keyspace {
        &mut self.keyspace
    }

    pub(crate) fn encodings(&self) -> &EncodingLimits {
        &self.keyspace.heap.encodings
    }

    pub(crate) fn encodings_mut(&mut self) -> &mut EncodingLimits {
        &mut self.keyspace.heap.encodings
    }

    #[cfg(feature = "scripting")]
    pub(crate) fn scripts(&self) -> &Scripts {
        &self.scripts
    }

    #[cfg(feature = "scripting")]
    pub(crate) fn scripts_mut(&mut self) -> &mut Scripts {
        &mut self.scripts
    }

    /// Sets `maxmemory`.
    pub(crate) fn bound_memory(&mut self, bytes_max: Option<u64>) {
        self.memory_bytes_max = bytes_max;
        self.keyspace.note_bound(bytes_max.is_some());
    }

    pub(crate) fn reset_counters(&mut self) {
        let changes = self.keyspace.counters.changes;
        self.keyspace.counters = Counters { changes, ..Counters::default() };
    }

    /// The policy of eviction, and how many keys are looked at.
    pub(crate) fn eviction_terms(&self) -> (EvictionPolicy, usize) {
        self.keyspace.eviction_terms()
    }

    pub(crate) fn tenacity(&self) -> u8 {
        self.keyspace.tenacity()
    }

    pub(crate) fn set_tenacity(&mut self, tenacity: u8) {
        self.keyspace.set_tenacity(tenacity);
    }

    pub(crate) fn frequency_terms(&self) -> &FrequencyTerms {
        self.keyspace.frequency_terms()
    }

    pub(crate) fn frequency_terms_mut(&mut self) -> &mut FrequencyTerms {
        self.keyspace.frequency_terms_mut()
    }

    /// Evicts by another policy from now on, for which `samples` keys are looked at. As in Redis, what is known of the use of keys
    /// says something else under another kind of policy, and is right again once they were used.
    pub fn set_eviction(&mut self, policy: EvictionPolicy, samples: usize) {
        self.keyspace.set_eviction(policy, samples);
    }

    /// Whether there is no room for what adds data, and none can be made. Keys go first, also where that is not enough.
    #[inline]
    fn is_full(&mut self) -> bool {
        let Some(max) = self.memory_bytes_max.filter(|_| !self.keyspace.keeps_keys) else { return false };
        !self.keyspace.make_room(max) || max < self.keyspace.own_bytes() as u64
    }
}
