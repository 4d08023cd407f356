//! The engine's bounds, each with its reason.

/// Databases, unless configured otherwise: what Redis has.
pub(crate) const DATABASES: usize = 16;

/// Bytes that a string may grow to: Redis's `proto-max-bulk-len`, 512 MB.
pub(crate) const STRING_BYTES_MAX: usize = 512 * 1024 * 1024;

/// Records of forgotten values that one request frees; the rest waits for ticks. Small values are freed at once.
pub(crate) const REAPED_AT_ONCE: usize = 1024;

/// A value of more records or nodes counts as one that is freed a part at a time, as in Redis.
pub(crate) const LARGE_EFFORT: usize = 64;

/// So many bytes of a forgotten value cost about as much as a record: the allocator gives them back by pages.
const BYTES_LIKE_A_RECORD: usize = 16 * 1024;

/// Bytes of a list that are freed a part at a time, however few its chunks are.
pub(crate) const LARGE_BYTES: usize = LARGE_EFFORT * BYTES_LIKE_A_RECORD;

/// As how many records so many bytes count that are freed.
pub(crate) const fn records_like(bytes: usize) -> usize {
    bytes / BYTES_LIKE_A_RECORD
}

/// Records of forgotten values that one tick frees: about a millisecond.
pub(crate) const REAPED_PER_TICK: usize = 16 * 1024;

/// Keys that are drawn for `RANDOMKEY` while expired ones are kept, as in Redis.
pub(crate) const RANDOM_DRAWS_MAX: usize = 100;

/// Keys that are looked at behind these draws for one that has not expired: some tenths of a millisecond.
pub(crate) const RANDOM_LOOKS_MAX: usize = 4 * 1024;

/// Deadlines of one database that one tick looks at. They lie side by side, so this is some tens of microseconds.
pub(crate) const SWEPT_AT_ONCE: usize = 32 * 1024;

/// Keys, or fields of hashes, of one database that one tick expires: about a millisecond.
pub(crate) const EXPIRED_AT_ONCE: usize = 4 * 1024;

/// Expired fields of a hash that one request removes before it reads the hash: some tenths of a millisecond. Few in debug builds, so
/// that tests meet hashes with expired fields that are left.
pub(crate) const FIELDS_EXPIRED_AT_ONCE: usize = if cfg!(debug_assertions) { 2 } else { 1024 };

/// The list of deadlines gives memory back only above this many entries.
pub(crate) const EXPIRING_SLACK: usize = 1024;

/// Milliseconds between two turns of the active cycle while a deadline is near; Redis's `hz 10`.
pub(crate) const TICK_BUSY_MS: u64 = 100;

/// Milliseconds between two turns while none is: a request may set one at any time, and a turn costs next to nothing.
pub(crate) const TICK_IDLE_MS: u64 = 1000;

/// Integers below this are shared objects in Redis, which `OBJECT REFCOUNT` shows.
pub(crate) const SHARED_INTEGERS: i64 = 10_000;

/// Elements in the reply to a random choice with repetition: a request of a few bytes must not make a reply without end.
pub(crate) const RANDOM_ELEMENTS_MAX: i64 = 16 * 1024 * 1024;

/// Bytes that one reply may have. Arguments that repeat a key repeat its value, so a request of a megabyte could otherwise
/// ask for a reply of any size.
pub(crate) const REPLY_BYTES_MAX: usize = 1 << 30;

/// Keys of each database that are looked at for one that is evicted, unless configured otherwise: Redis's `maxmemory-samples`.
pub(crate) const EVICTION_SAMPLES: usize = 5;

/// The most keys that one eviction looks at in a database, as a setting may say: more of them only hold requests up.
pub(crate) const EVICTION_SAMPLES_MAX: usize = 64;

/// Databases with keys that are looked at for one eviction: what Redis has by default. More take turns.
pub(crate) const EVICTION_DATABASES: usize = 16;

/// Keys that are kept as the best to evict, as in Redis.
pub(crate) const EVICTION_CANDIDATES: usize = 16;

/// What one request spends on making room, in records: about half a millisecond, as by default in Redis. Records that wait to be freed
/// count one each.
pub(crate) const EVICTION_SLICE: usize = 4 * 1024;

/// The same for one tick.
pub(crate) const EVICTION_TICK_SLICE: usize = 16 * 1024;

/// What one eviction counts: several keys are looked at, and one is removed.
pub(crate) const EVICTION_COST: usize = 8;

/// Records that are freed between two looks at whether there is room.
pub(crate) const REAPED_FOR_ROOM: usize = 256;

/// What scripts hold is taken from the room for keys up to this part of it, a half: more of it makes no key go.
pub(crate) const SCRIPT_SHARE: usize = 2;

/// The frequency of a new key, so that it is not the first to go (Redis's `LFU_INIT_VAL`).
pub(crate) const LFU_INITIAL: u8 = 5;

/// How much harder each step of the frequency is (Redis's default of `lfu-log-factor`).
pub(crate) const LFU_LOG_FACTOR: u64 = 10;

/// Minutes without use that cost a step of the frequency (Redis's default of `lfu-decay-time`).
pub(crate) const LFU_DECAY_MINUTES: u32 = 1;

/// Records of values whose keys expire that count as one key for the active cycle.
pub(crate) const RECORDS_PER_EXPIRED_KEY: u64 = 4;

/// Keys that one request, or one turn of the active cycle, may change before all keys count as changed.
pub(crate) const JOURNAL_KEYS_MAX: usize = 100_000;

/// Bytes of these keys. A script can make keys as long as it likes, and remove them again.
pub(crate) const JOURNAL_KEY_BYTES_MAX: usize = 16 << 20;

/// Events that a script may make before it waits until they are published: each is a message, and a script may make any number.
#[cfg(feature = "scripting")]
pub(crate) const JOURNAL_EVENTS_MAX: usize = 4_096;

/// Bytes of their keys, for the same reason.
#[cfg(feature = "scripting")]
pub(crate) const JOURNAL_EVENT_BYTES_MAX: usize = 1 << 20;

/// Bytes at which a stream's listpack takes no further entry, whatever `stream-node-max-bytes` says: an entry is looked for by
/// walking through its listpack.
pub(crate) const STREAM_NODE_BYTES_CEILING: usize = 1 << 20;

/// Listpacks that approximate trimming removes by default, as in Redis.
pub(crate) const STREAM_NODES_TRIMMED_AT_ONCE: usize = 100;

/// Entries that approximate trimming removes by default at most, as in Redis.
pub(crate) const STREAM_TRIMMED_AT_ONCE_MAX: usize = 1_000_000;

/// Entries that approximate trimming removes by default where a listpack may have any number of them, as in Redis.
pub(crate) const STREAM_TRIMMED_AT_ONCE: usize = 10_000;

/// Bytes of one stream entry: what Redis takes.
pub(crate) const STREAM_ENTRY_BYTES_MAX: usize = 1 << 30;

/// Entries that a request without `COUNT` gets after it was blocked, as in Redis.
pub(crate) const STREAM_AWAITED_ENTRIES: i64 = 1000;

/// Entries that one XAUTOCLAIM may ask for. Redis refuses what it cannot find memory for.
pub(crate) const CLAIMED_AT_ONCE: i64 = 1 << 30;

/// Bytes that the compressed strings of one serialised value may become: what a reply may have, since a value that is larger could not
/// have been dumped.
pub(crate) const READ_BYTES_MAX: usize = REPLY_BYTES_MAX;

/// Bytes that all scripts of an engine may hold together: their variables and their compiled texts. Redis has no such bound.
#[cfg(feature = "scripting")]
pub(crate) const SCRIPT_MEMORY_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Bytes beside what scripts need below which nothing is collected while one runs: a collection of all that takes some tenths of a second.
#[cfg(feature = "scripting")]
pub(crate) const SCRIPT_MEMORY_SPARE_BYTES: usize = 16 * 1024 * 1024;

/// Garbage that scripts may leave beside as much again as they needed before: more is collected at once.
#[cfg(feature = "scripting")]
pub(crate) const SCRIPT_GARBAGE_BYTES: usize = 4 * 1024 * 1024;

/// Bytes of the interpreter's own stack. Lua nests at most 200 C calls, of which `gsub` takes the most, some 10 KB each.
/// Pages that are not touched take no memory.
#[cfg(feature = "scripting")]
pub(crate) const SCRIPT_STACK_BYTES: usize = 16 * 1024 * 1024;

/// Instructions of a script between two looks at whether it may go on, as in Redis: about a millisecond.
#[cfg(feature = "scripting")]
pub(crate) const SCRIPT_SLICE_INSTRUCTIONS: u32 = 100_000;

/// Coroutines that a script makes between two looks: each counts its instructions anew.
#[cfg(feature = "scripting")]
pub(crate) const SCRIPT_SLICE_COROUTINES: u32 = 8;

/// Quick commands that a script runs between two looks.
#[cfg(feature = "scripting")]
pub(crate) const SCRIPT_SLICE_COMMANDS: u32 = 256;

/// As how many of them another command counts, which may take any time: a look costs a tenth of what a quick command does. One whose
/// request or reply is large counts as all.
#[cfg(feature = "scripting")]
pub(crate) const SCRIPT_SLOW_COMMAND: u32 = 32;

/// Milliseconds after which others are told that a script runs, unless configured otherwise: Redis's `busy-reply-threshold`.
pub(crate) const SCRIPT_BUSY_AFTER_MS: u64 = 5_000;

/// Bytes of the arguments of one command that a script runs: twice what it can hold, since it may name a string again and again.
#[cfg(feature = "scripting")]
pub(crate) const SCRIPT_REQUEST_BYTES_MAX: usize = 2 * SCRIPT_MEMORY_BYTES_MAX;

/// Bytes of one line that a script writes to the log: Redis's `LOG_MAX_LEN`.
#[cfg(feature = "scripting")]
pub(crate) const SCRIPT_LOG_BYTES_MAX: usize = 1024;

/// What a look counts for where there is no clock.
#[cfg(feature = "scripting")]
pub(crate) const SCRIPT_SLICE_MS: u64 = 1;

/// How deep a script's reply may be: what client libraries take. A table that holds itself gets 7,995 levels out of Redis.
#[cfg(feature = "scripting")]
pub(crate) const SCRIPT_REPLY_DEPTH_MAX: usize = 1_000;

/// Bytes of one string that `string.rep` makes.
#[cfg(feature = "scripting")]
pub(crate) const SCRIPT_STRING_BYTES_MAX: usize = SCRIPT_MEMORY_BYTES_MAX / 2;

/// Values that `unpack` gives at most. Lua's own stack of 8,000 ends there.
#[cfg(feature = "scripting")]
pub(crate) const UNPACKED_VALUES_MAX: i64 = 7_900;

/// How deep values may be that cjson writes or reads, whatever a script sets.
#[cfg(feature = "scripting")]
pub(crate) const JSON_DEPTH_MAX: usize = 1_000;

/// Bytes of the texts of cached scripts. Redis keeps all; the oldest are forgotten here, and a client that gets `NOSCRIPT` says
/// them again.
#[cfg(feature = "scripting")]
pub(crate) const SCRIPT_CACHE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Bytes that cached scripts take in the interpreter, where a short text may be nine times as long: a quarter of what scripts may hold, so
/// that the scripts of one client leave room for what those of others do. The oldest are compiled again when they are called.
#[cfg(feature = "scripting")]
pub(crate) const SCRIPT_COMPILED_BYTES_MAX: usize = SCRIPT_MEMORY_BYTES_MAX / 4;

/// What a cached script takes beside its text.
#[cfg(feature = "scripting")]
pub(crate) const SCRIPT_COST_BYTES: usize = 1024;

/// Calls within each other that one match of a pattern takes: each has a frame on the interpreter's stack, and Lua 5.1 has no such
/// bound. Later versions of Lua allow 200.
#[cfg(feature = "scripting")]
pub(crate) const PATTERN_DEPTH_MAX: usize = 1_000;

/// Steps of the host's functions between two looks at whether the script may go on: some milliseconds.
#[cfg(feature = "scripting")]
pub(crate) const SCRIPT_SLICE_STEPS: usize = 200_000;

/// Looks at a library while it is loaded, before it is given up: about as long as Redis waits.
#[cfg(feature = "scripting")]
pub(crate) const LIBRARY_LOAD_LOOKS_MAX: u32 = 500;

/// Bytes of the names and descriptions of one library's functions: some hundreds for each of as many as there may be. Redis keeps what
/// it has memory for.
#[cfg(feature = "scripting")]
pub(crate) const LIBRARY_TEXT_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Functions of one library.
#[cfg(feature = "scripting")]
pub(crate) const LIBRARY_FUNCTIONS_MAX: usize = 10_000;

/// Keys that `DEBUG POPULATE` creates at once, which nothing interrupts.
pub(crate) const POPULATED_KEYS_MAX: u64 = 10_000_000;

/// Bytes of the values that it creates.
pub(crate) const POPULATED_BYTES_MAX: u64 = 1 << 30;

/// Bytes of what `DEBUG RELOAD` has serialised that are kept for `DEBUG RELOAD NOSAVE`.
pub(crate) const SNAPSHOT_BYTES_KEPT: usize = 1 << 20;

/// Microseconds that `DEBUG SLEEP` waits at most: a day.
pub(crate) const SLEEP_US_MAX: u64 = 86_400 * 1_000_000;

/// Bytes of scripts' calls that are kept for clients that monitor before the host takes them.
#[cfg(feature = "scripting")]
pub(crate) const WATCHED_CALLS_BYTES: usize = 64 * 1024;

/// Keys that a script has read which are kept for a client that tracks: as many as those of a transaction. One that has read more
/// is told to forget everything.
#[cfg(feature = "scripting")]
pub(crate) const SCRIPT_READS_KEPT: usize = 10_000;

/// Bytes of these keys: a hundred each. A script can make keys as long as it likes.
#[cfg(feature = "scripting")]
pub(crate) const SCRIPT_READ_BYTES_KEPT: usize = 1 << 20;

/// Lines at which a debugger of scripts stops, as in Redis.
#[cfg(feature = "scripting")]
pub(crate) const DEBUGGER_BREAKPOINTS_MAX: usize = 64;

/// Bytes that a debugger of scripts says in one reply: a script may show values without end between two stops.
#[cfg(feature = "scripting")]
pub(crate) const DEBUGGER_LOG_BYTES_MAX: usize = 1 << 20;

/// Bytes of one value that a debugger shows, whatever its client wants: tables may hold themselves.
#[cfg(feature = "scripting")]
pub(crate) const DEBUGGER_VALUE_BYTES_MAX: usize = 256 * 1024;

/// Bytes of a script that is debugged, and of code that the client of a debugger has run: calls are put into its code, while no client is served.
#[cfg(feature = "scripting")]
pub(crate) const DEBUGGER_SCRIPT_BYTES_MAX: usize = 1 << 20;

/// Instructions of a script that is debugged, those of the calls included, which name each variable in scope. A script of 10,000 lines with
/// thirty variables has 650,000.
#[cfg(feature = "scripting")]
pub(crate) const DEBUGGER_CODE_WORDS_MAX: usize = 2 << 20;

/// Bytes of the code of a script before calls are put into it, which is held once more with them until Lua has it. Scripts have up to some ten times
/// as many as their text, unless long names of variables are used in functions that are nested deeply: each function around has the name too.
#[cfg(feature = "scripting")]
pub(crate) const DEBUGGER_CODE_BYTES_MAX: usize = 16 << 20;

/// Functions under way whose variables a debugger knows, in each coroutine. Lua nests 20,000 calls; those that take the place of others
/// have no end.
#[cfg(feature = "scripting")]
pub(crate) const DEBUGGER_FRAMES_MAX: usize = 20_000;

/// Functions under way that a debugger traces: for each, all within it are looked at.
#[cfg(feature = "scripting")]
pub(crate) const DEBUGGER_TRACED_MAX: usize = 1_000;

/// Coroutines of whose functions it knows the variables. A script makes as many as it likes.
#[cfg(feature = "scripting")]
pub(crate) const DEBUGGER_THREADS_MAX: usize = 32;

/// Bytes of the name of code that a script compiles, which is its text if the script says none. The binding reads all of it wherever it tells
/// which function a frame is of: under a debugger at each line. Lua shows sixty of them, and they are among those kept.
#[cfg(feature = "scripting")]
pub(crate) const CODE_NAME_BYTES_MAX: usize = 4096;

/// Lines that begin between two places at which a debugger may stop: a statement of several lines.
#[cfg(feature = "scripting")]
pub(crate) const DEBUGGER_LINES_BEGUN_MAX: usize = 64;

/// Bytes of keys and values that are copied for a debugger whose changes no other client is to see, and as much memory again.
#[cfg(feature = "scripting")]
pub(crate) const DEBUGGER_COPY_BYTES_MAX: usize = 64 << 20;

/// Such keys, and the records and nodes of their values. No client is served meanwhile: 1,820,000 small keys, which are 58 MB, held a `PING`
/// up for 1.9 s, one hash of 2,500,000 small fields, which is 64 MB, for 1.7 s.
#[cfg(feature = "scripting")]
pub(crate) const DEBUGGER_COPY_PARTS_MAX: usize = 500_000;

/// Bytes that a script may add to such a copy, if `maxmemory` leaves it as many; it is refused commands that need memory from then on.
#[cfg(feature = "scripting")]
pub(crate) const DEBUGGER_COPY_BYTES_ADDED: usize = 64 << 20;
