//! What only administrators may do, and what is done to all clients at once.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use respool_testkit::{PATIENCE, RedisServer, Respool, request, wait_until};

use super::proxy;

#[test]
fn commands_that_steer_nodes_are_refused_unless_allowed() -> io::Result<()> {
    let server = RedisServer::start()?;
    let refusing = proxy(&[server.tcp()], &[])?;
    let mut client = refusing.client()?;
    for request in [
        "CONFIG SET maxmemory 1mb",
        "CONFIG REWRITE",
        "MIGRATE 127.0.0.1 1 k 0 10",
        "DEBUG JMAP",
        "REPLICAOF NO ONE",
        "FAILOVER ABORT",
        "MODULE LOAD x.so",
        "BGSAVE",
        "SLOWLOG RESET",
        "CLUSTER RESET",
    ] {
        let reply = client.ask(request)?;
        assert!(reply.starts_with("-NOPERM ") && reply.contains("admin_commands"), "{request}: {reply}");
    }
    for request in
        ["CONFIG GET maxmemory", "SLOWLOG GET", "LATENCY LATEST", "MODULE LIST", "INFO", "ROLE", "CLIENT LIST"]
    {
        assert!(!client.ask(request)?.starts_with('-'), "{request}");
    }
    let allowing = proxy(&[server.tcp()], &["--admin-commands", "allow"])?;
    let mut client = allowing.client()?;
    assert_eq!(client.ask("CONFIG SET maxmemory 0")?, "+OK\r\n");
    assert_eq!(client.ask("CONFIG GET tls-key-file")?, "*2\r\n$12\r\ntls-key-file\r\n$0\r\n\r\n");
    assert_eq!(client.ask("CONFIG GET requirepass")?, "*2\r\n$11\r\nrequirepass\r\n$0\r\n\r\n");
    assert_eq!(client.ask("REPLICAOF NO ONE")?, "+OK\r\n");
    Ok(())
}

/// What a client that steers nothing is shown of settings is what is known to be harmless.
#[test]
fn settings_that_may_be_secret_are_hidden_from_every_client() -> io::Result<()> {
    const CANARY: &str = "canary-77aa";
    let node = RedisServer::start_with(&["--masterauth", CANARY, "--masteruser", CANARY, "--maxclients", "15000"])?;
    let proxy = proxy(&[node.tcp()], &[])?;
    let mut client = proxy.client()?;
    assert_eq!(client.ask("CONFIG GET maxclients")?, "*2\r\n$10\r\nmaxclients\r\n$5\r\n15000\r\n");
    assert_eq!(client.ask("CONFIG GET masterauth")?, "*2\r\n$10\r\nmasterauth\r\n$8\r\n(hidden)\r\n");
    let name = client.ask("PROXY SHOW NODES")?;
    let name = name.split("\r\n").skip_while(|word| *word != "node").nth(2).expect("it has a name").to_owned();
    for hello in ["HELLO 2", "HELLO 3"] {
        client.ask(hello)?;
        for request in
            ["CONFIG GET *", "CONFIG GET m?ster*", "CONFIG GET maxclients MASTERAUTH", "CONFIG GET [m]asteruser"]
        {
            for prefix in [String::new(), format!("PROXY NODE {name} ")] {
                let reply = client.ask(&format!("{prefix}{request}"))?;
                assert!(reply.contains("(hidden)") && !reply.contains(CANARY), "{prefix}{request}: {reply}");
            }
            client.ask("MULTI")?;
            assert_eq!(client.ask(request)?, "+QUEUED\r\n");
            let reply = client.ask("EXEC")?;
            assert!(reply.contains("(hidden)") && !reply.contains(CANARY), "EXEC of {request}: {reply}");
        }
        let all = client.ask("CONFIG GET *")?;
        assert!(all.contains("maxclients\r\n$5\r\n15000\r\n"), "{all}");
        for request in ["INFO everything", "CLIENT LIST", "ACL LIST", "MODULE LIST"] {
            assert!(!client.ask(request)?.contains(CANARY), "{request}");
        }
    }
    Ok(())
}

/// What a node asks of the proxy is between the two.
#[test]
fn passwords_of_nodes_are_neither_shown_nor_set_by_clients() -> io::Result<()> {
    const CANARY: &str = "canary-5b0e";
    let node = RedisServer::start_with(&["--requirepass", CANARY, "--masterauth", CANARY])?;
    let arguments = ["--node-password", CANARY, "--admin-commands", "allow"];
    let proxy = proxy(&[node.tcp()], &arguments)?;
    let mut client = proxy.client()?;
    for request in
        ["CONFIG GET requirepass", "CONFIG GET *", "CONFIG GET maxmemory MASTERAUTH", "HELLO 3", "CONFIG GET *"]
    {
        assert!(!client.ask(request)?.contains(CANARY), "{request}");
    }
    client.ask("HELLO 2")?;
    assert_eq!(client.ask("CONFIG GET masterauth")?, "*2\r\n$10\r\nmasterauth\r\n$8\r\n(hidden)\r\n");
    assert_eq!(client.ask("CONFIG GET requirepass")?, "*2\r\n$11\r\nrequirepass\r\n$0\r\n\r\n", "it is the proxy's");
    for request in ["CONFIG SET maxmemory 0 requirepass other", "CONFIG SET RequirePass other maxmemory 0"] {
        let reply = client.ask(request)?;
        assert!(reply.starts_with("-ERR CONFIG SET failed (possibly related to argument '"), "{reply}");
    }
    client.command(&["MULTI"])?;
    client.ask("CONFIG GET masterauth")?;
    assert!(client.ask("EXEC")?.contains("(hidden)"));
    let mut inside = node.client()?;
    assert_eq!(inside.command(&["AUTH", CANARY])?, b"+OK\r\n", "it is what it was");
    assert_eq!(client.ask("CONFIG SET requirepass mine")?, "+OK\r\n");
    assert_eq!(client.ask("CONFIG GET requirepass")?, "*2\r\n$11\r\nrequirepass\r\n$8\r\n(hidden)\r\n");
    assert_eq!(proxy.client()?.ask("PING")?, "-NOAUTH Authentication required.\r\n");
    assert_eq!(inside.command(&["AUTH", CANARY])?, b"+OK\r\n");
    Ok(())
}

#[test]
fn a_pause_holds_back_writes_or_everything() -> io::Result<()> {
    let server = RedisServer::start()?;
    let proxy = Respool::start(Path::new(env!("CARGO_BIN_EXE_respool")), &[server.tcp()], &["--workers", "2"])?;
    let mut boss = proxy.client()?;
    let mut others = (0..8).map(|_| proxy.client()).collect::<io::Result<Vec<_>>>()?;
    assert_eq!(boss.ask("CLIENT PAUSE nonsense")?, "-ERR timeout is not an integer or out of range\r\n");
    assert_eq!(boss.ask("CLIENT PAUSE -1")?, "-ERR timeout is negative\r\n");
    assert_eq!(boss.ask("CLIENT PAUSE 1 NOSUCH")?, "-ERR CLIENT PAUSE mode must be WRITE or ALL\r\n");
    assert_eq!(boss.ask("CLIENT UNPAUSE")?, "+OK\r\n");

    assert_eq!(boss.ask("CLIENT PAUSE 60000 WRITE")?, "+OK\r\n");
    wait_until("reads go on and writes wait", PATIENCE, || {
        for client in &mut others {
            if client.ask("GET k")? != "$-1\r\n" {
                return Ok(false);
            }
        }
        Ok(true)
    })?;
    // One that was connected during the pause waits as well.
    others.push(proxy.client()?);
    for client in &mut others {
        client.ask("PING")?;
        client.send_command(&["INCR", "n"])?;
        client.send_command(&["GET", "k"])?;
    }
    assert_eq!(server.client()?.ask("EXISTS n")?, ":0\r\n");
    assert_eq!(boss.ask("CLIENT UNPAUSE")?, "+OK\r\n");
    for client in &mut others {
        assert!(client.reply()?.starts_with(b":"));
        assert_eq!(client.reply()?, b"$-1\r\n");
    }
    assert_eq!(server.client()?.ask("GET n")?, "$1\r\n9\r\n");

    // Whichever worker is asked tells of the connections of both.
    wait_until("both workers' connections are told", PATIENCE, || {
        Ok(boss.ask("INFO nodes")?.contains("state=up,connections=2,"))
    })?;

    let before = Instant::now();
    assert_eq!(boss.ask("CLIENT PAUSE 300")?, "+OK\r\n");
    assert_eq!(boss.ask("PING")?, "+PONG\r\n");
    assert!(before.elapsed() >= Duration::from_millis(295), "{:?}", before.elapsed());
    Ok(())
}

#[test]
fn a_pause_of_writes_holds_for_all_workers_and_transactions() -> io::Result<()> {
    let server = RedisServer::start()?;
    let proxy = Respool::start(Path::new(env!("CARGO_BIN_EXE_respool")), &[server.tcp()], &["--workers", "2"])?;
    let mut boss = proxy.client()?;
    let mut others = (0..8).map(|_| proxy.client()).collect::<io::Result<Vec<_>>>()?;
    for client in &mut others {
        assert_eq!(client.ask("MULTI")?, "+OK\r\n");
        assert_eq!(client.ask("INCR n")?, "+QUEUED\r\n");
    }
    let mut reader = proxy.client()?;
    assert_eq!(reader.ask("MULTI")?, "+OK\r\n");
    assert_eq!(reader.ask("GET n")?, "+QUEUED\r\n");

    assert_eq!(boss.ask("CLIENT PAUSE 60000 WRITE")?, "+OK\r\n");
    others.iter_mut().try_for_each(|client| client.send_command(&["EXEC"]))?;
    wait_until("all transactions that write are held back", PATIENCE, || {
        Ok(boss.ask("INFO clients")?.contains("blocked_clients:8\r\n"))
    })?;
    assert_eq!(reader.ask("EXEC")?, "*1\r\n$-1\r\n", "one that reads is not");
    let script = "#!lua flags=no-writes\nreturn 1";
    assert_eq!(reader.command(&["EVAL", script, "0"])?, b":1\r\n", "nor a script that says so");
    let mut writer = proxy.client()?;
    writer.send_command(&["EVAL", "return 1", "0"])?;
    wait_until("another script is", PATIENCE, || Ok(boss.ask("INFO clients")?.contains("blocked_clients:9\r\n")))?;
    assert_eq!(boss.ask("CLIENT UNPAUSE")?, "+OK\r\n");
    assert_eq!(writer.reply()?, b":1\r\n");
    for client in &mut others {
        assert!(client.reply()?.starts_with(b"*1\r\n:"));
    }
    assert_eq!(boss.ask("GET n")?, "$1\r\n8\r\n");
    assert!(boss.ask("INFO clients")?.contains("blocked_clients:0\r\n"));
    Ok(())
}

#[test]
fn the_client_that_asks_is_described_as_redis_does() -> io::Result<()> {
    let server = RedisServer::start()?;
    let proxy = Respool::start(Path::new(env!("CARGO_BIN_EXE_respool")), &[server.tcp()], &["--workers", "2"])?;
    let (mut client, _other) = (proxy.client()?, proxy.client()?);
    let list = client.ask("CLIENT LIST")?;
    let own = list.lines().find(|line| line.contains("cmd=client|list")).unwrap_or_default();
    assert!(own.contains(" qbuf=26 ") && own.contains(" oll=0 ") && own.contains(" events=r "), "{list}");
    let info = client.ask("CLIENT INFO")?;
    assert!(info.contains(" qbuf=26 ") && info.contains(" oll=0 ") && info.contains(" events=r "), "{info}");
    Ok(())
}

#[test]
fn a_pause_of_writes_does_not_hold_functions_that_only_read() -> io::Result<()> {
    let server = RedisServer::start()?;
    let proxy = Respool::start(Path::new(env!("CARGO_BIN_EXE_respool")), &[server.tcp()], &["--workers", "2"])?;
    let mut boss = proxy.client()?;
    let library = "#!lua name=own\n\
        redis.register_function{function_name='reads', flags={'no-writes'}, \
            callback=function(keys) return redis.call('get', keys[1]) end}\n\
        redis.register_function('writes', function(keys) return redis.call('incr', keys[1]) end)";
    assert_eq!(boss.command(&["FUNCTION", "LOAD", library])?, b"$3\r\nown\r\n");
    assert_eq!(boss.ask("SET k v")?, "+OK\r\n");
    for dialect in ["2", "3", "2"] {
        assert_eq!(boss.ask("CLIENT PAUSE 60000 WRITE")?, "+OK\r\n");
        let (mut reader, mut writer) = (proxy.client()?, proxy.client()?);
        reader.ask(&format!("HELLO {dialect}"))?;
        writer.send(&[request(&["FCALL", "writes", "1", "n"]), request(&["GET", "n"])].concat())?;
        // Nor what is about scripts and runs none.
        for words in [&["SCRIPT", "LOAD", "return 1"][..], &["SCRIPT", "EXISTS", "x"], &["FUNCTION", "LIST"]] {
            let reply = reader.command(words)?;
            assert!(reply.starts_with(b"$40") || reply.starts_with(b"*1"), "{words:?}: {}", reply.escape_ascii());
        }
        for _ in 0..3 {
            assert_eq!(reader.command(&["FCALL", "Reads", "1", "k"])?, b"$1\r\nv\r\n");
        }
        wait_until("only the one that writes waits", PATIENCE, || {
            Ok(boss.ask("INFO clients")?.contains("blocked_clients:1\r\n"))
        })?;
        assert_eq!(server.client()?.ask("EXISTS n")?, ":0\r\n");
        assert_eq!(boss.ask("CLIENT UNPAUSE")?, "+OK\r\n");
        assert_eq!(writer.reply()?, b":1\r\n");
        assert_eq!(writer.reply()?, b"$1\r\n1\r\n");
        boss.ask("DEL n")?;
    }
    // An embedded server counts each once, by the name that its client has said.
    let embedded = Respool::start(Path::new(env!("CARGO_BIN_EXE_respool")), &[], &[])?;
    let mut client = embedded.client()?;
    assert_eq!(client.command(&["FUNCTION", "LOAD", library])?, b"$3\r\nown\r\n");
    assert_eq!(client.ask("CLIENT PAUSE 60000 WRITE")?, "+OK\r\n");
    assert_eq!(client.command(&["FCALL", "reads", "1", "k"])?, b"$-1\r\n");
    let counted = client.ask("INFO commandstats")?;
    assert!(counted.contains("cmdstat_fcall:calls=1,") && !counted.contains("cmdstat_fcall_ro"), "{counted}");
    // It holds everything if it is told to.
    let before = Instant::now();
    assert_eq!(boss.ask("CLIENT PAUSE 200")?, "+OK\r\n");
    assert_eq!(proxy.client()?.command(&["FCALL", "reads", "1", "k"])?, b"$1\r\nv\r\n");
    assert!(before.elapsed() >= Duration::from_millis(195), "{:?}", before.elapsed());
    Ok(())
}
