//! A server whose keys are shared by several engines, each with a thread of its own (`engine_threads`).

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use respool_testkit::{
    Address, Client, Comparison, PATIENCE, Process, Respool, Subset, TempDir, compare, elements, request, wait_until,
};

use super::{assert_error, bulk};

const ENGINES: usize = 4;

/// A server with four engines and so many workers in front of them.
fn server(workers: &str) -> io::Result<Respool> {
    let arguments = ["--workers", workers, "--engine-threads", "4"];
    Respool::start(Path::new(env!("CARGO_BIN_EXE_respool")), &[], &arguments)
}

/// A key of each engine, and a second one of the first: slots are in equal ranges, so a few hundred names reach all of them.
fn keys_of_engines(client: &mut Client) -> io::Result<(Vec<String>, String)> {
    let mut keys: Vec<String> = Vec::new();
    for number in 0..1_000 {
        let key = format!("key{number}");
        let is_with = |client: &mut Client, other: &String| -> io::Result<bool> {
            Ok(!client.command(&["SINTER", other.as_str(), key.as_str()])?.starts_with(b"-CROSSSLOT"))
        };
        let mut known = false;
        for (place, other) in keys.clone().iter().enumerate() {
            if is_with(client, other)? {
                if keys.len() == ENGINES && place == 0 {
                    return Ok((keys, key));
                }
                known = true;
            }
        }
        if !known {
            keys.push(key);
        }
    }
    panic!("{keys:?} are not keys of all engines")
}

#[test]
fn keys_of_several_engines_are_joined_or_refused() -> io::Result<()> {
    let server = server("1")?;
    let mut client = server.client()?;
    let (keys, with_first) = keys_of_engines(&mut client)?;
    for key in &keys {
        assert_eq!(client.command(&["SET", key, key])?, b"+OK\r\n");
    }
    let mut all = vec!["MGET"];
    all.extend(keys.iter().map(String::as_str));
    let values = client.command(&all)?;
    assert_eq!(elements(&values), keys.iter().map(|key| bulk(key)).collect::<Vec<_>>(), "in the order of the request");
    assert_eq!(client.ask("DBSIZE")?, ":4\r\n");
    assert_eq!(elements(&client.command(&["KEYS", "*"])?).len(), 4);
    let mut seen = Vec::new();
    let mut cursor = "0".to_owned();
    loop {
        let reply = client.command(&["SCAN", &cursor])?;
        let parts = elements(&reply);
        seen.extend(elements(parts[1]).into_iter().map(<[u8]>::to_vec));
        cursor = String::from_utf8_lossy(parts[0]).split("\r\n").nth(1).unwrap_or("0").to_owned();
        if cursor == "0" {
            break;
        }
    }
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 4, "a walk over all engines finds every key");
    for refused in [
        vec!["RENAME", &keys[0], &keys[1]],
        vec!["SINTERSTORE", &keys[0], &keys[1], &keys[2]],
        vec!["BLPOP", &keys[0], &keys[1], "0"],
        vec!["EVAL", "return 1", "2", &keys[0], &keys[1]],
    ] {
        let reply = client.command(&refused)?;
        assert!(reply.starts_with(b"-CROSSSLOT"), "{refused:?}: {}", String::from_utf8_lossy(&reply));
    }
    assert_eq!(client.command(&["RENAME", &keys[0], &with_first])?, b"+OK\r\n", "both are in one engine");
    all[0] = "DEL";
    assert_eq!(client.command(&all)?, b":3\r\n");
    assert_eq!(client.ask("FLUSHALL")?, "+OK\r\n");
    assert_eq!(client.ask("DBSIZE")?, ":0\r\n");
    Ok(())
}

#[test]
fn requests_over_engines_are_refused_where_that_is_said() -> io::Result<()> {
    let server = server("2")?;
    let mut client = server.client()?;
    let (keys, with_first) = keys_of_engines(&mut client)?;
    let requests =
        [vec!["MGET", &keys[0], &keys[1]], vec!["MSET", &keys[2], "1", &keys[3], "2"], vec!["DEL", &keys[1], &keys[0]]];
    assert_eq!(client.ask("CONFIG GET cross-slot")?, "*2\r\n$10\r\ncross-slot\r\n$5\r\nsplit\r\n");
    for word in ["refuse", "split"] {
        assert_eq!(client.command(&["CONFIG", "SET", "cross-slot", word])?, b"+OK\r\n");
        for request in &requests {
            let reply = client.command(request)?;
            assert_eq!(reply.starts_with(b"-CROSSSLOT"), word == "refuse", "{word} {request:?}");
        }
        assert_eq!(client.command(&["EXISTS", &keys[0], &with_first])?, b":0\r\n", "they are in one engine");
    }
    let arguments = ["--workers", "2", "--engine-threads", "4", "--cross-slot", "refuse"];
    let server = Respool::start(Path::new(env!("CARGO_BIN_EXE_respool")), &[], &arguments)?;
    // Whichever worker a client has.
    for _ in 0..8 {
        assert!(server.client()?.command(&requests[0])?.starts_with(b"-CROSSSLOT"));
    }
    Ok(())
}

/// There is no node that could be asked instead.
#[test]
fn a_debugger_is_refused_where_there_are_several_engines() -> io::Result<()> {
    let refused = server("1")?.client()?.ask("SCRIPT DEBUG YES")?;
    assert_eq!(
        refused,
        "-ERR SCRIPT DEBUG is not supported here: this server has several engines (engine_threads)\r\n"
    );
    Ok(())
}

#[test]
fn no_key_goes_while_clients_are_paused() -> io::Result<()> {
    for engines in ["1", "4"] {
        let arguments = ["--workers", "2", "--engine-threads", engines];
        let server = Respool::start(Path::new(env!("CARGO_BIN_EXE_respool")), &[], &arguments)?;
        let mut client = server.client()?;
        assert_eq!(client.ask("CLIENT PAUSE 60000 ALL")?, "+OK\r\n");
        assert_eq!(client.ask("CLIENT UNPAUSE")?, "+OK\r\n");
        client.ask("SET k v PX 100")?;
        assert_eq!(client.ask("CLIENT PAUSE 60000 WRITE")?, "+OK\r\n");
        // Keys whose time has come are removed a hundred times a second.
        std::thread::sleep(Duration::from_millis(400));
        assert_eq!(client.ask("DBSIZE")?, ":1\r\n", "{engines} engines");
        assert_eq!(client.ask("GET k")?, "$-1\r\n", "it is not shown");
        assert_eq!(client.ask("CLIENT UNPAUSE")?, "+OK\r\n");
        wait_until("it is removed", PATIENCE, || Ok(client.ask("DBSIZE")? == ":0\r\n"))?;
    }
    Ok(())
}

/// Whatever means the same wherever the keys are: `DIFFERENCES` of the testkit lists what may differ, and why.
#[test]
fn three_engines_answer_as_one() -> io::Result<()> {
    for (protocol, seed) in [(2, 21), (3, 22)] {
        let start = |engines| {
            Respool::start(
                Path::new(env!("CARGO_BIN_EXE_respool")),
                &[],
                &["--workers", "2", "--engine-threads", engines],
            )
        };
        let (one, three) = (start("1")?, start("3")?);
        let comparison = Comparison { subset: Subset::Spread, protocol, requests: 8_000, seed };
        compare(&one.tcp(), &three.tcp(), &comparison)?;
        let (all, of_three) = (one.client()?.ask("DBSIZE")?, three.client()?.ask("DBSIZE")?);
        assert!(all == of_three && all != ":0\r\n", "{all} {of_three}");
    }
    Ok(())
}

#[test]
fn parameters_set_at_the_same_time_hold_for_all_engines() -> io::Result<()> {
    const SETTERS: usize = 4;
    let server = server("2")?;
    let mut client = server.client()?;
    let (keys, _) = keys_of_engines(&mut client)?;
    for round in 0..10 {
        let setters: Vec<Client> = (0..SETTERS).map(|_| server.client()).collect::<io::Result<_>>()?;
        std::thread::scope(|scope| {
            for (number, mut setter) in setters.into_iter().enumerate() {
                scope.spawn(move || {
                    for turn in 0..20 {
                        let entries = if (number + turn) % 2 == 0 { "1" } else { "512" };
                        let reply = setter.command(&["CONFIG", "SET", "hash-max-listpack-entries", entries]);
                        assert_eq!(reply.expect("the server is there"), b"+OK\r\n");
                    }
                });
            }
        });
        let is_small = client.ask("CONFIG GET hash-max-listpack-entries")?.contains("\r\n512\r\n");
        let expected = bulk(if is_small { "listpack" } else { "hashtable" });
        for key in &keys {
            client.command(&["DEL", key])?;
            client.command(&["HSET", key, "a", "1", "b", "2"])?;
            assert_eq!(client.command(&["OBJECT", "ENCODING", key])?, expected, "round {round}, {key}");
        }
    }
    Ok(())
}

/// A server whose engines are busy after this time.
fn server_with_threshold(threshold: &str) -> io::Result<Respool> {
    let arguments = ["--workers", "2", "--engine-threads", "4", "--busy-reply-threshold", threshold];
    Respool::start(Path::new(env!("CARGO_BIN_EXE_respool")), &[], &arguments)
}

const BUSY: &str = "-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.\r\n";

const LIBRARY: &str =
    "#!lua name=own\nredis.register_function('get', function(keys) return redis.call('GET', keys[1]) end)";

/// Keys of all engines that have the value of their database, in three of them.
fn fill_databases(client: &mut Client, keys: &[String]) -> io::Result<()> {
    for database in ["2", "1", "0"] {
        client.command(&["SELECT", database])?;
        for key in keys {
            assert_eq!(client.command(&["SET", key, database])?, b"+OK\r\n");
        }
    }
    Ok(())
}

#[test]
fn a_change_of_all_engines_is_refused_beside_a_late_script() -> io::Result<()> {
    let server = server_with_threshold("100ms")?;
    let (mut client, mut stalled, mut other) = (server.client()?, server.client()?, server.client()?);
    let (keys, _) = keys_of_engines(&mut client)?;
    fill_databases(&mut client, &keys)?;
    stalled.send_command(&["EVAL", "while true do end", "1", &keys[0]])?;
    wait_until("the engine is busy", PATIENCE, || Ok(client.command(&["GET", &keys[0]])?.starts_with(b"-BUSY")))?;
    // A database that no connection to the engine has selected so far.
    other.ask("SELECT 9")?;
    assert_eq!(other.command(&["GET", &keys[0]])?, BUSY.as_bytes());
    for words in ["SWAPDB 0 1", "FLUSHDB", "FLUSHALL", "FUNCTION FLUSH", "CONFIG SET hash-max-listpack-entries 1"] {
        assert_eq!(client.ask(words)?, BUSY, "{words}");
    }
    assert_eq!(client.command(&["FUNCTION", "LOAD", LIBRARY])?, BUSY.as_bytes());
    assert_eq!(client.command(&["GET", &keys[1]])?, bulk("0"), "another engine has not changed");
    let list = client.ask("FUNCTION LIST")?;
    assert!(list.starts_with("-BUSY") || list == "*0\r\n", "{list}");
    assert!(client.ask("CONFIG GET hash-max-listpack-entries")?.contains("\r\n512\r\n"));
    assert_eq!(client.ask("SCRIPT KILL")?, "+OK\r\n");
    assert_error(&stalled.reply()?, "the script");
    assert_eq!(client.ask("SWAPDB 0 1")?, "+OK\r\n");
    assert_eq!(client.command(&["FUNCTION", "LOAD", LIBRARY])?, bulk("own"));
    for key in &keys {
        assert_eq!(client.command(&["FCALL", "get", "1", key])?, bulk("1"));
    }
    Ok(())
}

#[test]
fn a_change_of_all_engines_waits_for_a_script_that_turns_late() -> io::Result<()> {
    let server = server_with_threshold("2s")?;
    let [mut client, mut stalled, mut setter, mut reader] =
        [server.client()?, server.client()?, server.client()?, server.client()?];
    let (keys, _) = keys_of_engines(&mut client)?;
    fill_databases(&mut client, &keys)?;
    // Connections to the engine of their own: behind what waits, the requests of others would wait.
    reader.ask("HELLO 3")?;
    setter.ask("HELLO 3")?;
    reader.command(&["GET", &keys[0]])?;
    let script = "redis.log(redis.LOG_WARNING, 'the script has begun') while true do end";
    stalled.send_command(&["EVAL", script, "1", &keys[0]])?;
    server.wait_for_line("the script has begun", PATIENCE)?;
    client.send_command(&["SWAPDB", "0", "1"])?;
    setter.send_command(&["CONFIG", "SET", "hash-max-listpack-entries", "1"])?;
    wait_until("the engine is busy", PATIENCE, || Ok(reader.command(&["GET", &keys[0]])?.starts_with(b"-BUSY")))?;
    // The engine takes it over before anything else.
    assert_eq!(setter.reply()?, b"+OK\r\n");
    assert_eq!(client.take_arrived()?, b"", "the engine with the script has not changed");
    assert_eq!(reader.ask("SCRIPT KILL")?, "+OK\r\n");
    assert_error(&stalled.reply()?, "the script");
    assert_eq!(client.reply()?, b"+OK\r\n");
    for key in &keys {
        assert_eq!(client.command(&["GET", key])?, bulk("1"), "{key}");
        client.command(&["DEL", key])?;
        client.command(&["HSET", key, "a", "1", "b", "2"])?;
        assert_eq!(client.command(&["OBJECT", "ENCODING", key])?, bulk("hashtable"), "{key}");
    }
    Ok(())
}

#[test]
fn changes_of_all_engines_come_to_each_in_the_same_order() -> io::Result<()> {
    const CLIENTS: usize = 6;
    let server = server("2")?;
    let mut client = server.client()?;
    let (keys, _) = keys_of_engines(&mut client)?;
    fill_databases(&mut client, &keys)?;
    let changers: Vec<Client> = (0..CLIENTS).map(|_| server.client()).collect::<io::Result<_>>()?;
    std::thread::scope(|scope| {
        for (number, mut changer) in changers.into_iter().enumerate() {
            scope.spawn(move || {
                if number % 2 == 0 {
                    changer.ask("HELLO 3").expect("the server is there");
                }
                for turn in 0..100 {
                    let swap = ["SWAPDB 0 1", "SWAPDB 1 2", "SWAPDB 0 2"][(number + turn) % 3];
                    assert_eq!(changer.ask(swap).expect("the server is there"), "+OK\r\n");
                    let version =
                        format!("#!lua name=own\nredis.register_function('version', function() return '{number}' end)");
                    let reply = changer.command(&["FUNCTION", "LOAD", "REPLACE", &version]);
                    assert_eq!(reply.expect("the server is there"), bulk("own"));
                }
            });
        }
    });
    let mut seen = Vec::new();
    for database in ["0", "1", "2"] {
        client.command(&["SELECT", database])?;
        let values: Vec<Vec<u8>> = keys.iter().map(|key| client.command(&["GET", key])).collect::<io::Result<_>>()?;
        assert!(values.iter().all(|value| *value == values[0]), "database {database}: {values:?}");
        seen.extend(values.into_iter().next());
    }
    seen.sort();
    assert_eq!(seen, ["0", "1", "2"].map(bulk));
    let version = client.command(&["FCALL", "version", "1", &keys[0]])?;
    for key in &keys {
        assert_eq!(client.command(&["FCALL", "version", "1", key])?, version);
    }
    Ok(())
}

#[test]
fn parameters_may_be_set_in_a_transaction() -> io::Result<()> {
    let server = server("2")?;
    let mut client = server.client()?;
    let (keys, _) = keys_of_engines(&mut client)?;
    for words in
        ["MULTI", "CONFIG SET hash-max-listpack-entries 1", "CONFIG GET hash-max-listpack-entries", "DEBUG SLEEP 0"]
    {
        client.ask(words)?;
    }
    let reply = client.ask("EXEC")?;
    // DEBUG is refused when it is queued, as at a server that does not allow it.
    assert!(reply.starts_with("-EXECABORT"), "{reply}");
    client.ask("MULTI")?;
    client.command(&["SET", &keys[0], "1"])?;
    client.ask("CONFIG SET hash-max-listpack-entries 1")?;
    client.ask("CONFIG GET hash-max-listpack-entries")?;
    let reply = client.ask("EXEC")?;
    assert_eq!(reply, "*3\r\n+OK\r\n+OK\r\n*2\r\n$25\r\nhash-max-listpack-entries\r\n$1\r\n1\r\n");
    for key in &keys[1..] {
        client.command(&["HSET", key, "a", "1", "b", "2"])?;
        assert_eq!(client.command(&["OBJECT", "ENCODING", key])?, bulk("hashtable"));
    }
    Ok(())
}

#[test]
fn a_request_is_refused_at_the_door_or_by_no_engine() -> io::Result<()> {
    const TRANSACTION: usize = 120_000;
    let server = Respool::start(
        Path::new(env!("CARGO_BIN_EXE_respool")),
        &[],
        &[
            "--workers",
            "1",
            "--engine-threads",
            "2",
            "--request-elements-max",
            "2000000",
            "--transaction-commands-max",
            "120000",
        ],
    )?;
    let (mut client, mut other) = (server.client()?, server.client()?);
    other.command(&["SET", "{a}k", "1"])?;
    // More words than a node of another kind takes: the connection that clients share goes on.
    let mut words = vec!["{a}x"; 1_200_000];
    words[0] = "EXISTS";
    client.send_command(&words)?;
    other.send_command(&["GET", "{a}k"])?;
    assert_eq!(client.reply()?, b":0\r\n");
    assert_eq!(other.reply()?, bulk("1"));
    // The same of a transaction that is longer than elsewhere.
    client.ask("MULTI")?;
    client.send(&request(&["INCR", "{a}n"]).repeat(TRANSACTION))?;
    assert_eq!(client.replies(TRANSACTION)?.last().map(|reply| &reply[..]), Some(&b"+QUEUED\r\n"[..]));
    let reply = client.ask("EXEC")?;
    assert!(reply.ends_with(&format!(":{TRANSACTION}\r\n")), "{:.100}", reply);
    client.send(b"*2000001\r\n")?;
    assert!(client.read_to_close()?.starts_with(b"-ERR Protocol error"));
    assert_eq!(other.command(&["GET", "{a}k"])?, bulk("1"));
    Ok(())
}

#[test]
fn changes_of_all_engines_are_told_once() -> io::Result<()> {
    let server = server("2")?;
    let (mut client, mut listener, mut reader) = (server.client()?, server.client()?, server.client()?);
    let (keys, _) = keys_of_engines(&mut client)?;
    assert_eq!(client.ask("CONFIG SET notify-keyspace-events KEA")?, "+OK\r\n");
    listener.ask("PSUBSCRIBE *")?;
    reader.ask("HELLO 3")?;
    assert_eq!(reader.ask("CLIENT TRACKING ON")?, "+OK\r\n");
    for key in &keys {
        reader.command(&["GET", key])?;
        client.command(&["SET", key, "1"])?;
        let push = reader.reply()?;
        assert!(push.starts_with(b">2\r\n$10\r\ninvalidate") && push.ends_with(&bulk(key)), "{}", push.escape_ascii());
        for _ in 0..2 {
            let message = listener.reply()?;
            let text = String::from_utf8_lossy(&message).into_owned();
            assert!(text.contains("__key") && text.contains(key.as_str()), "{text}");
        }
        client.command(&["PUBLISH", key, "m"])?;
        let message = listener.reply()?;
        assert!(message.ends_with(&bulk("m")), "{}", message.escape_ascii());
    }
    client.command(&["PUBLISH", "behind", "all"])?;
    let message = listener.reply()?;
    assert!(message.ends_with(&bulk("all")), "nothing is told twice: {}", message.escape_ascii());
    assert_eq!(reader.ask("PING")?, "+PONG\r\n", "nothing is told twice");
    Ok(())
}

#[test]
fn pipelined_replies_of_several_engines_stay_in_order() -> io::Result<()> {
    let server = server("2")?;
    let mut client = server.client()?;
    let (keys, _) = keys_of_engines(&mut client)?;
    let mut expected = Vec::new();
    for round in 0..500 {
        let key = &keys[round % ENGINES];
        client.send_command(&["INCR", key])?;
        expected.push(format!(":{}\r\n", round / ENGINES + 1).into_bytes());
        client.send_command(&["ECHO", key])?;
        expected.push(bulk(key));
    }
    assert_eq!(client.replies(expected.len())?, expected);
    Ok(())
}

#[test]
fn an_engine_that_stands_still_holds_up_no_other_engine() -> io::Result<()> {
    // Before that time an engine answers no request but its script.
    let arguments = ["--workers", "1", "--engine-threads", "4", "--busy-reply-threshold", "20s"];
    let server = Respool::start(Path::new(env!("CARGO_BIN_EXE_respool")), &[], &arguments)?;
    let (mut client, mut stalled) = (server.client()?, server.client()?);
    let (keys, _) = keys_of_engines(&mut client)?;
    let script = "while true do end";
    stalled.send_command(&["EVAL", script, "1", &keys[0]])?;
    let mut behind = server.client()?;
    // The script goes another way than this client's requests, which its engine answers until it has begun.
    behind.set_timeout(Duration::from_millis(500))?;
    while behind.command(&["SET", &keys[0], "1"]).is_ok() {}
    behind.set_timeout(PATIENCE)?;
    for _ in 0..100 {
        assert_eq!(client.command(&["SET", &keys[1], "1"])?, b"+OK\r\n");
    }
    assert!(behind.take_arrived()?.is_empty(), "the engine of the script still stands still");
    wait_until("the script is killed", PATIENCE, || Ok(client.ask("SCRIPT KILL")? == "+OK\r\n"))?;
    assert_error(&stalled.reply()?, "the script");
    assert!(!behind.reply()?.is_empty(), "its engine answers again");
    Ok(())
}

#[test]
fn a_script_reaches_the_keys_of_its_engine_alone() -> io::Result<()> {
    let server = server("1")?;
    let mut client = server.client()?;
    let (keys, _) = keys_of_engines(&mut client)?;
    let script = "return redis.call('SET', ARGV[1], 'v')";
    for (place, key) in keys.iter().enumerate() {
        let reply = client.command(&["EVAL", script, "1", &keys[0], key])?;
        if place == 0 {
            assert_eq!(reply, b"+OK\r\n");
        } else {
            assert!(reply.starts_with(b"-CROSSSLOT"), "{}", String::from_utf8_lossy(&reply));
        }
    }
    assert_eq!(client.ask("DBSIZE")?, ":1\r\n", "no key is where no request looks for it");
    Ok(())
}

#[test]
fn a_transaction_and_its_watched_keys_are_in_one_engine() -> io::Result<()> {
    let server = server("1")?;
    let (mut client, mut other) = (server.client()?, server.client()?);
    let (keys, with_first) = keys_of_engines(&mut client)?;
    client.command(&["WATCH", &keys[0]])?;
    other.command(&["SET", &keys[0], "changed"])?;
    client.ask("MULTI")?;
    client.command(&["SET", &with_first, "1"])?;
    assert!(client.ask("EXEC")?.starts_with("*-1"), "a watched key has changed");
    client.ask("MULTI")?;
    assert_eq!(client.command(&["SET", &keys[0], "1"])?, b"+QUEUED\r\n");
    assert!(client.command(&["SET", &keys[1], "1"])?.starts_with(b"-CROSSSLOT"));
    assert!(client.ask("EXEC")?.starts_with("-EXECABORT"));
    client.ask("MULTI")?;
    client.command(&["INCR", &with_first])?;
    client.command(&["INCR", &with_first])?;
    assert_eq!(client.ask("EXEC")?, "*2\r\n:1\r\n:2\r\n");
    Ok(())
}

#[test]
fn parameters_hold_for_every_engine() -> io::Result<()> {
    let server = server("2")?;
    let mut client = server.client()?;
    let (keys, _) = keys_of_engines(&mut client)?;
    assert_eq!(client.ask("CONFIG SET hash-max-listpack-entries 1 maxclients 77")?, "+OK\r\n");
    for key in &keys {
        client.command(&["HSET", key, "a", "1", "b", "2"])?;
        assert_eq!(client.command(&["OBJECT", "ENCODING", key])?, bulk("hashtable"));
    }
    assert!(client.ask("CONFIG GET hash-max-listpack-entries")?.contains("\r\n1\r\n"));
    assert!(client.ask("CONFIG GET maxclients")?.contains("\r\n77\r\n"));
    assert!(client.ask("CONFIG SET hash-max-listpack-entries x")?.starts_with("-ERR CONFIG SET failed"));
    // The engines have equal parts of it, so a quarter is full where a whole value goes to one of them.
    assert_eq!(client.ask("CONFIG SET maxmemory 4mb")?, "+OK\r\n");
    assert!(client.ask("CONFIG GET maxmemory")?.contains("4194304"));
    let large = "x".repeat(1 << 20);
    client.command(&["SET", &keys[0], &large])?;
    assert!(client.command(&["SET", &keys[0], "1"])?.starts_with(b"-OOM"));
    assert_eq!(client.command(&["SET", &keys[1], "1"])?, b"+OK\r\n", "the others have room");
    assert!(client.ask("INFO memory")?.contains("maxmemory:4194304\r\n"));
    Ok(())
}

#[test]
fn blocked_commands_and_messages_cross_engines() -> io::Result<()> {
    let server = server("2")?;
    let (mut client, mut waiter, mut listener) = (server.client()?, server.client()?, server.client()?);
    let (keys, _) = keys_of_engines(&mut client)?;
    for key in &keys {
        waiter.send_command(&["BLPOP", key, "0"])?;
        client.command(&["RPUSH", key, "v"])?;
        assert_eq!(elements(&waiter.reply()?), [bulk(key), bulk("v")]);
        listener.send_command(&["SUBSCRIBE", key])?;
        listener.reply()?;
        assert_eq!(client.command(&["PUBLISH", key, "m"])?, b":1\r\n");
        assert_eq!(elements(&listener.reply()?)[2], bulk("m"));
    }
    Ok(())
}

#[test]
fn operators_see_a_server_and_end_it() -> io::Result<()> {
    let server = server("2")?;
    let (mut client, mut other) = (server.client()?, server.client()?);
    client.ask("SET a 1")?;
    let info = client.ask("INFO")?;
    assert!(info.contains("redis_mode:standalone") && info.contains("db0:keys=1"), "{info}");
    assert!(!info.contains("used_memory_rss:0\r\n"));
    assert_eq!(client.ask("CLIENT LIST")?.matches("id=").count(), 2);
    let number = other.ask("CLIENT ID")?.trim_start_matches(':').trim_end().to_owned();
    assert_eq!(client.command(&["CLIENT", "KILL", "ID", &number])?, b":1\r\n");
    assert!(other.read_to_close()?.is_empty());
    assert!(client.ask("DEBUG DIGEST")?.starts_with("-ERR DEBUG command not allowed"));
    client.send_command(&["SHUTDOWN", "NOSAVE"])?;
    assert!(client.read_to_close()?.is_empty(), "its reply is the end");
    Ok(())
}

/// A server with four engines in the place of redis-server, whose clients may use DEBUG.
fn debug_server(directory: &TempDir) -> io::Result<Process> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_respool"));
    command.args(["server", "--port", "0", "--unixsocket", "s.sock", "--enable-debug-command", "yes"]);
    command.env_clear().env("RESPOOL_ENGINE_THREADS", "4").env("RESPOOL_WORKERS", "2");
    let process = Process::spawn("respool server", command.current_dir(directory.path()).stdin(Stdio::null()))?;
    process.wait_for_line("The server is now ready to accept connections at", PATIENCE)?;
    Ok(process)
}

#[test]
fn debug_reaches_the_engines_that_it_is_about() -> io::Result<()> {
    let directory = TempDir::new()?;
    let _process = debug_server(&directory)?;
    let mut client = Client::connect(&Address::Unix(directory.path().join("s.sock")))?;
    let (keys, with_first) = keys_of_engines(&mut client)?;
    for key in keys.iter().chain([&with_first]) {
        client.command(&["SET", key, "v"])?;
    }
    // A signature of a key that is elsewhere would be that of a key that is not there.
    let digests = client.command(&["DEBUG", "DIGEST-VALUE", &keys[0], &with_first])?;
    let [one, other] = elements(&digests)[..] else { panic!("{}", digests.escape_ascii()) };
    assert!(one == other && !one.starts_with(b"+0000"), "{}", digests.escape_ascii());
    let apart = client.command(&["DEBUG", "DIGEST-VALUE", &keys[0], &keys[1]])?;
    assert!(apart.starts_with(b"-CROSSSLOT"), "{}", apart.escape_ascii());
    // Switches hold for all engines, also those of a transaction.
    let expiring: Vec<String> = keys.iter().map(|key| format!("{{{key}}}expiring")).collect();
    assert_eq!(client.ask("DEBUG SET-ACTIVE-EXPIRE 0")?, "+OK\r\n");
    for key in &expiring {
        client.command(&["SET", key, "v", "PX", "1"])?;
    }
    // Longer than keys stay whose time has come.
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(client.ask("DBSIZE")?, ":9\r\n", "they are not asked for");
    for words in ["MULTI", "DEBUG SET-ACTIVE-EXPIRE 1"] {
        client.ask(words)?;
    }
    assert_eq!(client.ask("EXEC")?, "*1\r\n+OK\r\n");
    wait_until("keys of all engines expire", PATIENCE, || Ok(client.ask("DBSIZE")? == ":5\r\n"))?;
    // A script has one engine, and DEBUG in it would be about that alone.
    assert_eq!(client.ask("DEBUG SET-DISABLE-DENY-SCRIPTS 1")?, "+OK\r\n");
    let reply = client.command(&["EVAL", "return redis.call('DEBUG', 'POPULATE', 10)", "1", &keys[0]])?;
    assert!(reply.starts_with(b"-CROSSSLOT"), "{}", reply.escape_ascii());
    assert_eq!(client.ask("DEBUG RELOAD")?, "+OK\r\n");
    assert_eq!(client.ask("DBSIZE")?, ":5\r\n", "no key is where no request looks for it");
    Ok(())
}
