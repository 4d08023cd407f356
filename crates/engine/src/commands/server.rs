//! The commands of the server group that are about data. The others belong to the host of the engine.

mod alone;
mod debug;
mod latency;
mod memory;

use respool_command::{ServerCommand, asks_for_section, human_bytes, text};

pub(super) use alone::wait;

use super::{Answer, Call, Fault, unsupported};
use crate::keyspace::Database;
use crate::number::integer;

const INVALID_FIRST_DB: &str = "ERR invalid first DB index";
const INVALID_SECOND_DB: &str = "ERR invalid second DB index";

/// Runs one command of the group.
pub(super) fn run(command: ServerCommand, call: &mut Call<'_, '_>) -> Answer {
    match command {
        ServerCommand::ConfigGet | ServerCommand::ConfigSet | ServerCommand::ConfigResetstat => Err(Fault::Parameters),
        ServerCommand::Dbsize => {
            let len = call.keyspace.databases[call.at.database].table.len();
            call.reply_count(len)
        }
        ServerCommand::Flushall => {
            check_flush_mode(call)?;
            call.keyspace.flush_all();
            call.reply_ok()
        }
        ServerCommand::Flushdb => {
            check_flush_mode(call)?;
            call.keyspace.flush(call.at.database);
            call.reply_ok()
        }
        ServerCommand::Bgrewriteaof | ServerCommand::Save => alone::refuse_to_save(call.row),
        ServerCommand::Bgsave => alone::bgsave(call),
        ServerCommand::Debug => debug::debug(call),
        ServerCommand::Failover => alone::failover(call),
        ServerCommand::Info => info(call),
        ServerCommand::Lastsave => alone::lastsave(call),
        ServerCommand::LatencyDoctor => latency::doctor(call),
        ServerCommand::LatencyGraph => latency::graph(call),
        ServerCommand::CommandlogHelp
        | ServerCommand::ConfigHelp
        | ServerCommand::LatencyHelp
        | ServerCommand::MemoryHelp
        | ServerCommand::ModuleHelp
        | ServerCommand::SlowlogHelp => super::container_help(call),
        ServerCommand::LatencyHistogram => latency::histograms(call),
        ServerCommand::LatencyHistory | ServerCommand::LatencyLatest => latency::samples(call),
        ServerCommand::LatencyReset => latency::reset(call),
        ServerCommand::Lolwut => alone::lolwut(call),
        ServerCommand::MemoryDoctor => memory::doctor(call),
        ServerCommand::MemoryMallocStats => memory::allocator(call),
        ServerCommand::MemoryPurge => memory::purge(call),
        ServerCommand::MemoryStats => memory::stats(call),
        ServerCommand::MemoryUsage => memory::usage(call),
        ServerCommand::ModuleList => alone::modules(call),
        ServerCommand::ModuleLoad | ServerCommand::ModuleLoadex | ServerCommand::ModuleUnload => alone::refuse_module(),
        ServerCommand::Replicaof | ServerCommand::Slaveof => alone::replicaof(call),
        ServerCommand::RestoreAsking => super::generic::restore(call),
        ServerCommand::Role => alone::role(call),
        ServerCommand::Swapdb => swapdb(call),
        _ => Err(unsupported(call.row)),
    }
}

/// Figures of what there is not, as redis-server shows them that has no use for it.
const PERSISTENCE: &str = "loading:0\r\nasync_loading:0\r\ncurrent_cow_peak:0\r\ncurrent_cow_size:0\r\n\
    current_cow_size_age:0\r\ncurrent_fork_perc:0.00\r\ncurrent_save_keys_processed:0\r\ncurrent_save_keys_total:0\r\n\
    rdb_bgsave_in_progress:0\r\nrdb_last_bgsave_status:ok\r\nrdb_last_bgsave_time_sec:-1\r\n\
    rdb_current_bgsave_time_sec:-1\r\nrdb_saves:0\r\nrdb_last_cow_size:0\r\nrdb_last_load_keys_expired:0\r\n\
    rdb_last_load_keys_loaded:0\r\naof_enabled:0\r\naof_rewrite_in_progress:0\r\naof_rewrite_scheduled:0\r\n\
    aof_last_rewrite_time_sec:-1\r\naof_current_rewrite_time_sec:-1\r\naof_last_bgrewrite_status:ok\r\naof_rewrites:0\r\n\
    aof_rewrites_consecutive_failures:0\r\naof_last_write_status:ok\r\naof_last_cow_size:0\r\n\
    module_fork_in_progress:0\r\nmodule_fork_last_cow_size:0\r\n";

/// The same: replicas, further processes and threads.
const ABSENT: &str = "total_net_repl_input_bytes:0\r\ntotal_net_repl_output_bytes:0\r\n\
    instantaneous_input_repl_kbps:0.00\r\ninstantaneous_output_repl_kbps:0.00\r\nsync_full:0\r\nsync_partial_ok:0\r\n\
    sync_partial_err:0\r\nlatest_fork_usec:0\r\ntotal_forks:0\r\n\
    slave_expires_tracked_keys:0\r\nactive_defrag_hits:0\r\nactive_defrag_misses:0\r\nactive_defrag_key_hits:0\r\n\
    active_defrag_key_misses:0\r\ntotal_active_defrag_time:0\r\ncurrent_active_defrag_time:0\r\n\
    unexpected_error_replies:0\r\nio_threaded_reads_processed:0\r\nio_threaded_writes_processed:0\r\n";

const REPLICATION: &str = "master_replid2:0000000000000000000000000000000000000000\r\nmaster_repl_offset:0\r\n\
    second_repl_offset:-1\r\nrepl_backlog_active:0\r\nrepl_backlog_size:1048576\r\nrepl_backlog_first_byte_offset:0\r\n\
    repl_backlog_histlen:0\r\n";

/// The sections that only the store can write; the host of the engine puts its own around them.
fn info(call: &mut Call<'_, '_>) -> Answer {
    let began = call.keyspace.began_s(call.at.now);
    let keyspace = &*call.keyspace;
    let mut text = String::new();
    let mut section = |name: &str, lines: String| {
        if asks_for_section(call.args, name) {
            let gap = if text.is_empty() { "" } else { "\r\n" };
            text.push_str(&format!("{gap}# {name}\r\n{lines}"));
        }
    };
    // There is no snapshot, so these are all changes since the start.
    let changes = keyspace.counters.changes;
    let (used, dataset, startup) = (keyspace.bounded_bytes(), keyspace.used_bytes(), keyspace.own_bytes());
    let peak = keyspace.peak_bytes.max(used);
    let share = |part: usize, whole: usize| if whole == 0 { 100.0 } else { part as f64 * 100.0 / whole as f64 };
    let mut memory = format!(
        "used_memory:{used}\r\nused_memory_human:{}\r\nused_memory_peak:{peak}\r\nused_memory_peak_human:{}\r\n\
         used_memory_peak_perc:{:.2}%\r\nused_memory_overhead:{}\r\nused_memory_startup:{startup}\r\n\
         used_memory_dataset:{dataset}\r\nused_memory_dataset_perc:{:.2}%\r\nmaxmemory_policy:{}\r\n",
        human_bytes(used as u64),
        human_bytes(peak as u64),
        share(used, peak),
        used - dataset,
        share(dataset, used - startup),
        keyspace.eviction_policy().name()
    );
    let counters = keyspace.counters;
    memory += &format!(
        "lazyfree_pending_objects:{}\r\nlazyfreed_objects:{}\r\n",
        keyspace.waiting_to_be_freed(),
        counters.freed_slowly
    );
    keyspace.script_memory.write_lines(&mut memory);
    section("Memory", memory);
    section(
        "Persistence",
        format!("{PERSISTENCE}rdb_last_save_time:{began}\r\nrdb_changes_since_last_save:{changes}\r\n"),
    );
    section(
        "Stats",
        format!(
            "expired_keys:{}\r\nexpired_fields:{}\r\nevicted_keys:{}\r\nkeyspace_hits:{}\r\nkeyspace_misses:{}\r\n\
             {ABSENT}",
            counters.expired_keys,
            counters.expired_fields,
            counters.evicted_keys,
            counters.keyspace_hits,
            counters.keyspace_misses
        ),
    );
    section("Replication", REPLICATION.to_owned());
    section("Modules", String::new());
    section("Cluster", "cluster_enabled:0\r\n".to_owned());
    let databases = keyspace.databases.iter().enumerate().filter(|(_, database)| database.table.len() > 0);
    let line = |(number, database): (usize, &Database)| {
        let (keys, expires) = (database.table.len(), database.keys.entries.len());
        // Redis 7.0 knows no deadlines of fields, so the line is its own until there are some.
        let volatile = match database.hashes.entries.len() {
            0 => String::new(),
            hashes => format!(",keys_with_volatile_items={hashes}"),
        };
        format!("db{number}:keys={keys},expires={expires},avg_ttl=0{volatile}\r\n")
    };
    section("Keyspace", databases.map(line).collect());
    call.reply.verbatim("txt", text.as_bytes());
    Ok(())
}

/// `SYNC` and `ASYNC` are taken and change nothing: no flush makes a client wait.
fn check_flush_mode(call: &Call<'_, '_>) -> Result<(), Fault> {
    let is_mode = || call.is_word(1, "SYNC") || call.is_word(1, "ASYNC");
    match call.args.len() {
        1 => Ok(()),
        2 if is_mode() => Ok(()),
        _ => Err(text::SYNTAX.into()),
    }
}

fn swapdb(call: &mut Call<'_, '_>) -> Answer {
    let index = |index, fault: &'static str| {
        let number = integer::parse(call.arg(index)).and_then(|number| i32::try_from(number).ok());
        number.ok_or(Fault::Text(fault))
    };
    let (a, b) = (index(1, INVALID_FIRST_DB)?, index(2, INVALID_SECOND_DB)?);
    let known = |number: i32| usize::try_from(number).ok().filter(|number| *number < call.keyspace.databases.len());
    let (Some(a), Some(b)) = (known(a), known(b)) else { return Err(text::DB_OUT_OF_RANGE.into()) };
    call.keyspace.swap(call.at.now, a, b);
    call.reply_ok()
}

#[cfg(test)]
mod tests {
    use respool_command::{Execute, Millis};

    use crate::transcript::Script;

    #[test]
    fn info_tells_the_databases_that_have_keys() {
        let mut script = Script::new();
        script.say("SET a 1");
        script.say("SET b 1 EX 100");
        let told = script.say("INFO keyspace");
        assert!(told.contains("db0:keys=2,expires=1,avg_ttl=0"), "{told}");
        assert!(!told.contains("db1:") && !told.contains("Stats"), "{told}");
    }

    #[test]
    fn large_values_count_as_freed_slowly() {
        let mut script = Script::new();
        let counted = |script: &mut Script| {
            let told = script.say("INFO memory");
            let figure = told.split(' ').find_map(|line| line.strip_prefix("lazyfreed_objects:"));
            figure.expect("the line is there").to_owned()
        };
        for number in 0..200 {
            script.say(&format!("SADD large m{number}"));
            script.say(&format!("XADD stream {number}-1 f {}", "x".repeat(3000)));
        }
        script.say("SADD small a b");
        script.say("XADD short 1-1 f v");
        script.say("UNLINK small short");
        assert_eq!(counted(&mut script), "0");
        script.say("UNLINK large stream");
        assert_eq!(counted(&mut script), "2");
        script.say("CONFIG RESETSTAT");
        assert_eq!(counted(&mut script), "0");
    }

    #[test]
    fn no_request_pays_for_the_index_of_a_large_value() {
        let mut script = Script::new();
        for (fill, drop) in
            [("ZADD", "DEL large"), ("RPUSH", "UNLINK large"), ("ZADD", "SET large x"), ("RPUSH", "FLUSHDB")]
        {
            let empty = script.engine.memory_bytes();
            // A chunk of a thousand leaves is freed at once: of so many members these are a tenth.
            for number in 0..if fill == "ZADD" { 400_000 } else { 200_000 } {
                match fill {
                    "ZADD" => script.send(&[b"ZADD", b"large", b"1", number.to_string().as_bytes()]),
                    _ => script.send(&[b"RPUSH", b"large", "x".repeat(100).as_bytes()]),
                };
            }
            let full = script.engine.memory_bytes();
            script.say(drop);
            let left = script.engine.memory_bytes();
            // The index is a quarter of a sorted set; a request may free eight megabytes of a list's chunks.
            let share = if fill == "ZADD" { 85 } else { 50 };
            assert!(left - empty > (full - empty) / 100 * share, "{drop} frees {left} of {full} bytes at once");
            let mut turns = 0;
            while script.engine.tick(script.session.now) < Some(Millis(script.session.now.0 + 100)) {
                turns += 1;
                assert!(turns < 40, "the engine comes to rest");
            }
            script.say("DEL large");
            let left = script.engine.memory_bytes();
            assert!(left < empty + (full - empty) / 3, "{left} of {full} bytes are still held after {drop}");
        }
    }

    #[test]
    fn what_is_large_by_its_bytes_alone_is_freed_in_parts() {
        let mut script = Script::new();
        let (large, now) = (vec![b'x'; 1 << 20], script.session.now);
        for (fill, drop) in [
            (&["RPUSH", "large"][..], "DEL large"),
            (&["HSET", "large", "field"], "UNLINK large"),
            (&["XADD", "large", "*", "field"], "SET large x"),
            (&["SET", "large"], "FLUSHDB"),
            (&["SET", "large"], "FLUSHALL"),
            (&["RPUSH", "large"], "FLUSHALL"),
            (&["HSET", "large", "field"], "FLUSHALL ASYNC"),
        ] {
            let empty = script.engine.memory_bytes();
            for number in 0..120 {
                let mut words: Vec<Vec<u8>> = fill.iter().map(|word| word.as_bytes().to_vec()).collect();
                match fill[0] {
                    "HSET" | "SET" => words.last_mut().into_iter().for_each(|name| name.push(number)),
                    _ => {}
                }
                words.push(large.clone());
                script.send(&words.iter().map(Vec::as_slice).collect::<Vec<_>>());
            }
            let full = script.engine.memory_bytes();
            script.say(drop);
            let left = script.engine.memory_bytes();
            assert!(left - empty > (full - empty) / 2, "{drop} frees all but {left} of {full} bytes at once");
            let mut turns = 0;
            while script.engine.tick(now) < Some(Millis(now.0 + 100)) {
                turns += 1;
                assert!(turns < 40, "the engine comes to rest");
            }
            script.say("DEL large");
            let left = script.engine.memory_bytes();
            assert!(left < empty + (full - empty) / 3, "{left} of {full} bytes are still held after {drop}");
        }
    }

    #[test]
    fn a_flushed_database_is_freed_little_by_little() {
        let mut script = Script::new();
        for number in 0..2_000 {
            script.say(&format!("SET key:{number} {}", "x".repeat(number % 600)));
            script.say(&format!("SADD set m{number}"));
            script.say(&format!("HSET hash{} f{number} {}", number % 20, "x".repeat(80)));
            script.say(&format!("ZADD sorted{} {number} m{number}", number % 3));
        }
        let full = script.engine.memory_bytes();
        assert_eq!(script.say("FLUSHDB"), "+OK");
        assert_eq!(script.say("DBSIZE"), ":0");
        let mut turns = 0;
        while script.engine.tick(Millis(1)) < Some(Millis(100)) {
            turns += 1;
            assert!(turns < 10, "the engine comes to rest");
        }
        let left = script.engine.memory_bytes();
        assert!(left < full / 3, "{left} of {full} bytes are still held");
    }

    #[test]
    fn a_flushed_server_is_freed_little_by_little() {
        let mut script = Script::new();
        let empty = script.engine.used_bytes();
        let fill = |script: &mut Script| {
            for number in 0..6_000 {
                script.session.database = number as u32 % 3;
                script.say(&format!("HSET hash{number} f v"));
                script.say(&format!("RPUSH list{number} {number}"));
                script.say(&format!("SET key{number} {}", "x".repeat(600)));
                script.say(&format!("ZADD sorted {number} m{number}"));
                script.say(&format!("HPEXPIRE hash{number} 60000 FIELDS 1 f"));
            }
            script.say("XADD log 1-1 f v");
        };
        let pending = |script: &mut Script| {
            let told = script.say("INFO memory");
            let figure = told.split(' ').find_map(|line| line.strip_prefix("lazyfree_pending_objects:"));
            figure.and_then(|number| number.parse::<usize>().ok())
        };
        fill(&mut script);
        let full = script.engine.used_bytes();
        // Some of it is on its way to be freed: keys of a database, and a value.
        script.say("FLUSHDB");
        script.say("DEL sorted");
        for line in ["FLUSHALL", "FLUSHALL ASYNC", "FLUSHALL SYNC"] {
            assert_eq!(script.say(line), "+OK");
            assert_eq!(script.say("DBSIZE"), ":0");
            let left = script.engine.used_bytes();
            assert!(left - empty > (full - empty) / 4, "{line} frees all but {left} of {full} bytes at once");
            assert_eq!(script.engine.used_bytes(), script.engine.walked_bytes());
            assert_eq!(pending(&mut script), Some(1), "an empty server waits for nothing");
        }
        let (mut turns, mut before) = (0, script.engine.used_bytes());
        while script.engine.tick(script.session.now) < Some(Millis(script.session.now.0 + 100)) {
            let left = script.engine.used_bytes();
            assert!(left < before, "{left} {before}");
            (before, turns) = (left, turns + 1);
            assert!(turns < 40, "the engine comes to rest");
            // What comes meanwhile is not mixed up with what goes.
            assert_eq!(script.say(&format!("RPUSH new{turns} a")), ":1");
            assert_eq!(script.say(&format!("DEL new{turns}")), ":1");
        }
        assert!(turns > 0);
        assert_eq!((script.engine.used_bytes(), pending(&mut script)), (empty, Some(0)));
        script.say("SET one 1");
        script.say("FLUSHALL");
        assert_eq!((script.engine.used_bytes(), pending(&mut script)), (empty, Some(0)), "a little is freed at once");
    }
}
