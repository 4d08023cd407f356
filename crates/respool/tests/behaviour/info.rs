//! INFO of an embedded server beside that of redis-server, to which the same requests were sent.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use respool_testkit::{Address, Client, Respool, request};

use super::{proxy, redis_servers};

/// Requests of the first client.
const REQUESTS: &[&[&str]] = &[
    &["SET", "a", "1"],
    &["GET", "a"],
    &["GET", "a"],
    &["SET", "a"],
    &["NOSUCH", "a"],
    &["LPUSH", "a", "1"],
    &["SELECT", "99"],
    &["CLIENT", "ID"],
    &["CLIENT", "NOSUCH"],
    &["OBJECT", "ENCODING", "a"],
    &["MULTI"],
    &["SET", "a", "2"],
    &["LPUSH", "a", "1"],
    &["EXEC"],
    &["EXEC"],
    &["MULTI"],
    &["SET", "a"],
    &["EXEC"],
    &["MULTI"],
    &["PING"],
    &["DISCARD"],
    &["WATCH", "a"],
    &["UNWATCH"],
    &["EVAL", "redis.pcall('lpush', 'a', '1') return redis.call('incr', 'n')", "0"],
    &["EVAL", "return redis.call('lpush', 'a', '1')", "0"],
    &["EVAL", "return redis.pcall('nosuch')", "0"],
    &["EVAL", "return redis.call('get')", "0"],
    &["EVAL", "return redis.call('subscribe', 'a')", "0"],
    &["EVAL", "return redis.error_reply('MY_ERR no')", "0"],
    &["EVAL", "return redis.error_reply('no')", "0"],
    &["EVAL", "return {", "0"],
    &["EVALSHA", "0000000000000000000000000000000000000000", "0"],
    &["XGROUP", "CREATECONSUMER", "s", "g", "c"],
    &["BLPOP", "list", "0.01"],
    &["RPUSH", "list", "x"],
    &["BLPOP", "list", "0"],
    &["CONFIG", "SET", "maxmemory", "1"],
    &["SET", "b", "1"],
    &["MULTI"],
    &["GET", "a"],
    &["EXEC"],
    &["CONFIG", "SET", "maxmemory", "0"],
    &["ACL", "SETUSER", "few", "on", ">pw", "+get", "~f*"],
    &["AUTH", "few", "no"],
];

/// Those of one that has few rights.
const REQUESTS_OF_FEW: &[&[&str]] =
    &[&["AUTH", "few", "pw"], &["GET", "f"], &["GET", "a"], &["SET", "f", "1"], &["SET", "f"]];

/// The lines of a section of INFO that begin so, without the times that commands took.
fn lines(client: &mut Client, section: &str, prefix: &str) -> io::Result<BTreeMap<String, String>> {
    let text = client.ask(&format!("INFO {section}"))?;
    let is_time = |part: &&str| part.starts_with("usec");
    let pairs = text.lines().filter(|line| line.starts_with(prefix)).filter_map(|line| line.split_once(':'));
    let without = |value: &str| value.split(',').filter(|part| !is_time(part)).collect::<Vec<_>>().join(",");
    Ok(pairs.map(|(name, value)| (name.to_owned(), without(value))).collect())
}

#[test]
fn commands_and_errors_are_counted_as_by_redis() -> io::Result<()> {
    let server = redis_servers(1)?.remove(0);
    let own = proxy(&[], &[])?;
    let play = |address: &Address| -> io::Result<BTreeMap<String, String>> {
        let (mut client, mut few) = (Client::connect(address)?, Client::connect(address)?);
        client.ask("PING")?;
        assert_eq!(client.ask("CONFIG RESETSTAT")?, "+OK\r\n");
        for request in REQUESTS {
            client.command(request)?;
        }
        for request in REQUESTS_OF_FEW {
            few.command(request)?;
        }
        let mut counted = lines(&mut client, "commandstats", "cmdstat_")?;
        counted.extend(lines(&mut client, "errorstats", "errorstat_")?);
        counted.extend(lines(&mut client, "stats", "total_error_replies")?);
        counted.extend(lines(&mut client, "stats", "total_commands_processed")?);
        // No part of what is shown by default.
        assert!(lines(&mut client, "default", "cmdstat_")?.is_empty());
        assert_eq!(client.ask("CONFIG RESETSTAT")?, "+OK\r\n");
        assert!(lines(&mut client, "everything", "errorstat_")?.is_empty());
        assert_eq!(lines(&mut client, "commandstats", "cmdstat_")?.len(), 2, "RESETSTAT and INFO");
        Ok(counted)
    };
    let (wanted, counted) = (play(&server.tcp())?, play(&own.tcp())?);
    let differ: Vec<_> = wanted.iter().filter(|(name, value)| counted.get(*name) != Some(value)).collect();
    let more: Vec<_> = counted.iter().filter(|(name, _)| !wanted.contains_key(*name)).collect();
    let ours: Vec<_> = differ.iter().map(|(name, _)| counted.get(*name)).collect();
    assert!(differ.is_empty() && more.is_empty(), "{differ:#?}\n{ours:#?}\n{more:#?}");
    Ok(())
}

/// Requests that fail, most of them before any engine has them.
const FAILING: &[&str] = &[
    "SET a",
    "NOSUCH a",
    "CLIENT NOSUCH",
    "SELECT 99",
    "CLIENT KILL ID x",
    "EXEC",
    "LPUSH a x",
    "MULTI",
    "MULTI",
    "SET a",
    "EXEC",
    "AUTH few no",
    // Each engine is asked.
    "SCRIPT KILL",
    "FUNCTION LOAD x",
    "FLUSHALL x",
    "SWAPDB x 1",
    "SCAN x",
];

/// Requests that succeed, of one key or of none.
const SUCCEEDING: &[&str] = &[
    "PING",
    "SELECT 1",
    "SELECT 0",
    "GET a",
    "DBSIZE",
    "SCRIPT FLUSH",
    "MULTI",
    "GET a",
    "INCR {a}n",
    "EXEC",
    "WATCH a",
    "MULTI",
    "EXEC",
    "MULTI",
    "DISCARD",
    "CLIENT ID",
    "CONFIG GET maxmemory",
    "CONFIG SET maxmemory 0",
    "EVAL return{redis.call('GET','a'),redis.call('PING')} 1 a",
];

/// Requests of a client that wants no replies until the last.
const UNWANTED: &[&[&str]] = &[
    &["CLIENT", "REPLY", "OFF"],
    &["LPUSH", "a", "1"],
    &["NOSUCH"],
    &["SET", "a"],
    // What may wait, and does not.
    &["BLPOP", "a", "0"],
    &["EVAL", "return {err = 'MINE'}", "0"],
    &["EVAL", "return redis.call('LPUSH', 'a', 1)", "1", "a"],
    &["MULTI"],
    &["INCR", "a"],
    &["LPUSH", "a", "1"],
    &["EXEC"],
    &["MULTI"],
    &["SET", "a"],
    &["EXEC"],
    &["CLIENT", "REPLY", "ON"],
];

/// The errors that the server counts, in all and by their codes, and how often it has refused commands and some have failed.
fn failures(client: &mut Client) -> io::Result<BTreeMap<String, String>> {
    let mut counted = lines(client, "errorstats", "errorstat_")?;
    counted.extend(lines(client, "stats", "total_error_replies")?);
    counted.extend(lines(client, "stats", "total_commands_processed")?);
    for (name, figures) in lines(client, "commandstats", "cmdstat_")? {
        let figures: Vec<&str> = figures.split(',').skip(1).collect();
        if figures != ["rejected_calls=0", "failed_calls=0"] {
            counted.insert(name, figures.join(","));
        }
    }
    Ok(counted)
}

#[test]
fn errors_are_counted_wherever_they_are_replied() -> io::Result<()> {
    let redis = redis_servers(1)?.remove(0);
    let play = |address: &Address| -> io::Result<[BTreeMap<String, String>; 2]> {
        let mut clients: Vec<Client> = (0..4).map(|_| Client::connect(address)).collect::<io::Result<_>>()?;
        assert_eq!(clients[0].ask("SET a 1")?, "+OK\r\n");
        assert_eq!(clients[0].ask("ACL SETUSER few on >pw +get ~f*")?, "+OK\r\n");
        assert_eq!(clients[0].ask("CONFIG RESETSTAT")?, "+OK\r\n");
        for client in &mut clients {
            FAILING.iter().chain(SUCCEEDING).try_for_each(|request| client.ask(request).map(drop))?;
            // These errors stand behind a reply that is outstanding.
            client.send(b"GET a\r\nNOSUCH\r\nSET a\r\nGET a\r\nSELECT x\r\n")?;
            client.replies(5)?;
        }
        // Errors count that their client does not want, and so does what it calls.
        clients[0].send(&UNWANTED.iter().flat_map(|words| request(words)).collect::<Vec<u8>>())?;
        assert_eq!(clients[0].reply()?, b"+OK\r\n");
        let mut subscriber = Client::connect(address)?;
        subscriber.ask("SUBSCRIBE c")?;
        subscriber.ask("UNSUBSCRIBE c")?;
        let mut few = Client::connect(address)?;
        for request in ["AUTH few pw", "GET f", "GET a", "SET f 1", "SET f", "NOSUCH"] {
            few.ask(request)?;
        }
        few.send(b"*1\r\n+PING\r\n")?;
        assert!(few.reply()?.starts_with(b"-ERR Protocol error"));
        let counted = failures(&mut clients[1])?;
        assert_eq!(clients[2].ask("CONFIG RESETSTAT")?, "+OK\r\n");
        Ok([counted, failures(&mut clients[3])?])
    };
    let wanted = play(&redis.tcp())?;
    assert!(wanted[0].len() > 5 && wanted[1].len() == 2, "{wanted:#?}");
    for [engines, workers] in [["1", "1"], ["4", "1"], ["4", "2"]] {
        let arguments = ["--engine-threads", engines, "--workers", workers];
        let own = Respool::start(Path::new(env!("CARGO_BIN_EXE_respool")), &[], &arguments)?;
        assert_eq!(play(&own.tcp())?, wanted, "{engines} engines, {workers} workers");
    }
    Ok(())
}

/// Statistics that `CONFIG RESETSTAT` begins anew.
const STATISTICS: &[&str] = &[
    "total_connections_received",
    "total_commands_processed",
    "total_net_input_bytes",
    "total_net_output_bytes",
    "rejected_connections",
    "total_reads_processed",
    "total_writes_processed",
    "expired_keys",
    "keyspace_hits",
    "keyspace_misses",
    "total_error_replies",
];

/// Asks for what each of them counts, and shows them; with a client that has come for that, whose end would be counted as well.
fn spend(client: &mut Client, address: &Address) -> io::Result<(BTreeMap<String, String>, Client)> {
    for request in ["SET a 1", "GET a", "GET none", "LPUSH a x", "SET e v PX 1", "BLPOP nothing 0.05", "GET e"] {
        client.ask(request)?;
    }
    let mut other = Client::connect(address)?;
    assert_eq!(other.ask("PING")?, "+PONG\r\n");
    assert_eq!(client.ask("CONFIG SET maxclients 1")?, "+OK\r\n");
    assert!(Client::connect(address)?.reply()?.starts_with(b"-ERR max number of clients"));
    assert_eq!(client.ask("CONFIG SET maxclients 100")?, "+OK\r\n");
    let mut shown = lines(client, "stats", "")?;
    shown.retain(|name, _| STATISTICS.contains(&name.as_str()));
    Ok((shown, other))
}

#[test]
fn statistics_begin_anew_where_those_of_redis_do() -> io::Result<()> {
    let server = redis_servers(1)?.remove(0);
    let play = |address: &Address, reset: &[&str]| -> io::Result<_> {
        let mut client = Client::connect(address)?;
        let (before, _first) = spend(&mut client, address)?;
        reset.iter().try_for_each(|request| client.ask(request).map(drop))?;
        assert!(lines(&mut client, "errorstats", "errorstat_")?.is_empty());
        assert!(lines(&mut client, "commandstats", "cmdstat_get")?.is_empty());
        reset.iter().try_for_each(|request| client.ask(request).map(drop))?;
        Ok((before, spend(&mut client, address)?.0))
    };
    for engines in ["1", "4"] {
        for reset in [&["CONFIG RESETSTAT"][..], &["MULTI", "CONFIG RESETSTAT", "EXEC"]] {
            let own = proxy(&[], &["--engine-threads", engines])?;
            let ((_, mut wanted), (before, mut shown)) = (play(&server.tcp(), reset)?, play(&own.tcp(), reset)?);
            if engines == "4" {
                // An array whose elements come from several threads may be written in parts.
                for figures in [&mut wanted, &mut shown] {
                    figures.remove("total_writes_processed");
                }
            }
            assert!(before.values().all(|value| value != "0"), "{engines}: {before:?}");
            assert_eq!(shown, wanted, "{engines}: {reset:?}");
        }
    }
    Ok(())
}

#[test]
fn quick_commands_are_counted_each_and_timed_now_and_then() -> io::Result<()> {
    let own = proxy(&[], &[])?;
    let mut client = own.client()?;
    for _ in 0..3_000 {
        client.send_command(&["SET", "a", "1"])?;
        client.send_command(&["GET", "a"])?;
    }
    client.replies(6_000)?;
    for command in ["set", "get"] {
        let counted = lines(&mut client, "commandstats", &format!("cmdstat_{command}"))?;
        let figures = counted.get(&format!("cmdstat_{command}")).map(String::as_str);
        assert_eq!(figures, Some("calls=3000,rejected_calls=0,failed_calls=0"));
        let timed = lines(&mut client, "latencystats", &format!("latency_percentiles_usec_{command}"))?;
        assert_eq!(timed.len(), 1, "{timed:?}");
    }
    Ok(())
}

#[test]
fn latencies_have_the_percentiles_that_are_asked_for() -> io::Result<()> {
    let own = proxy(&[], &[])?;
    let mut client = own.client()?;
    let shown = |client: &mut Client| -> io::Result<Vec<String>> {
        client.ask("KEYS *")?;
        let lines = lines(client, "latencystats", "latency_percentiles_usec_keys")?;
        let name = |part: &str| part.split('=').next().unwrap_or_default().to_owned();
        Ok(lines.values().flat_map(|value| value.split(',').map(name)).collect())
    };
    assert_eq!(shown(&mut client)?, ["p50", "p99", "p99.9"]);
    client.command(&["CONFIG", "SET", "latency-tracking-info-percentiles", "0 1.5 100"])?;
    assert_eq!(shown(&mut client)?, ["p0", "p1.5", "p100"]);
    client.command(&["CONFIG", "SET", "latency-tracking-info-percentiles", ""])?;
    assert!(shown(&mut client)?.is_empty());
    client.command(&["CONFIG", "SET", "latency-tracking-info-percentiles", "50"])?;
    client.ask("CONFIG SET latency-tracking no")?;
    assert!(shown(&mut client)?.is_empty());
    Ok(())
}

/// Lines of redis-server's that are missing: figures that are not known here.
const MISSING: &[&str] = &[
    "Clients: client_recent_max_input_buffer",
    "Clients: client_recent_max_output_buffer",
    "Clients: clients_in_timeout_table",
    "Memory: allocator_active",
    "Memory: allocator_allocated",
    "Memory: allocator_frag_bytes",
    "Memory: allocator_frag_ratio",
    "Memory: allocator_resident",
    "Memory: allocator_rss_bytes",
    "Memory: allocator_rss_ratio",
    "Memory: rss_overhead_bytes",
    "Memory: rss_overhead_ratio",
    "Server: atomicvar_api",
    "Server: gcc_version",
    "Server: redis_build_id",
    "Stats: current_eviction_exceeded_time",
    "Stats: dump_payload_sanitizations",
    "Stats: expire_cycle_cpu_milliseconds",
    "Stats: expired_stale_perc",
    "Stats: expired_time_cap_reached_count",
    "Stats: reply_buffer_expands",
    "Stats: reply_buffer_shrinks",
    "Stats: total_eviction_exceeded_time",
];

/// The names of all lines, with those of their sections.
fn names(text: &str) -> BTreeSet<String> {
    let mut section = "";
    let mut names = BTreeSet::new();
    for line in text.lines() {
        match line.strip_prefix("# ") {
            Some(title) => {
                section = title;
                names.insert(title.to_owned());
            }
            None => names.extend(line.split_once(':').map(|(name, _)| format!("{section}: {name}"))),
        }
    }
    names
}

#[test]
fn info_has_the_lines_of_redis_in_its_sections() -> io::Result<()> {
    let server = redis_servers(1)?.remove(0);
    let own = proxy(&[], &[])?;
    let play = |client: &mut Client| -> io::Result<BTreeSet<String>> {
        client.ask("CONFIG RESETSTAT")?;
        client.ask("SET a 1")?;
        client.ask("SET a")?;
        Ok(names(&client.ask("INFO everything")?))
    };
    let (wanted, shown) = (play(&mut server.client()?)?, play(&mut own.client()?)?);
    let missing: Vec<&str> = wanted.difference(&shown).map(String::as_str).collect();
    assert_eq!(missing, MISSING);
    let default = names(&own.client()?.ask("INFO")?);
    let extra: Vec<&str> =
        ["Commandstats", "Latencystats"].into_iter().filter(|name| default.contains(*name)).collect();
    assert!(extra.is_empty(), "{extra:?}");
    Ok(())
}

#[test]
fn time_of_the_processor_and_memory_are_the_systems() -> io::Result<()> {
    let own = proxy(&[], &[])?;
    let mut client = own.client()?;
    let value = |text: &str, name: &str| -> f64 {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.and_then(|value| value.parse().ok()).unwrap_or(-1.0)
    };
    // Time is counted in hundredths of a second.
    loop {
        client.command(&["EVAL", "for i = 1, 1000000 do end", "0"])?;
        let text = client.ask("INFO cpu memory")?;
        assert!(value(&text, "used_memory_rss") > 1e6 && value(&text, "total_system_memory") > 1e8, "{text}");
        let names = ["used_cpu_sys", "used_cpu_user", "used_cpu_sys_main_thread", "used_cpu_user_main_thread"];
        assert!(names.iter().all(|name| value(&text, name) >= 0.0), "{text}");
        if value(&text, "used_cpu_user") > 0.0 && value(&text, "used_cpu_user_main_thread") > 0.0 {
            return Ok(());
        }
    }
}
